"""Quantizers: eq. (4) against Algorithm 1, exact integrals, sampling, and refused requests."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from workbench.data.intervals import read_bins
from workbench.errors import CorruptFile, InvalidRequest
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.baselines.two_bin import (
    BiasedQuantizer,
    equal_bins,
    erm,
    erm_epsilon_bound,
    erm_error_bound,
    randomized_response,
    rqm,
    rqm_epsilon_bound,
    rqm_selection,
    two_bin,
)
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import ErrorIntegrals, error_coefficients
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import (
    Density,
    density_from_function,
    normal_density,
    parse_density,
    uniform_density,
)


def algorithm1(
    bins: list[float], left: list[list[float]], right: list[list[float]], x: float
) -> np.ndarray:
    """Pr[M(x) = B_i] by running through all draws of Algorithm 1."""
    m = len(bins)
    j = sum(b <= x for b in bins)
    p = np.zeros(m)
    for l in range(1, j + 1):
        for r in range(j + 1, m + 1):
            both = left[j - 1][l - 1] * right[m - j - 1][m + 1 - r - 1]
            share = (bins[r - 1] - x) / (bins[r - 1] - bins[l - 1])
            p[l - 1] += both * share
            p[r - 1] += both * (1 - share)
    return p


@pytest.mark.parametrize("m", [3, 4, 6, 9])
def test_the_law_is_that_of_algorithm_1(m: int):
    rng = np.random.default_rng(m)
    bins = np.sort(np.concatenate([[-2.5, 3.0], rng.uniform(-1.5, 1.5, m - 2)]))
    left = [rng.dirichlet(np.ones(j)).tolist() for j in range(1, m)]
    right = [rng.dirichlet(np.ones(j)).tolist() for j in range(1, m)]
    made = two_bin(bins.tolist(), left, right)
    for x in rng.uniform(-1, 1, 20):
        np.testing.assert_allclose(
            made.probabilities(x), algorithm1(bins.tolist(), left, right, x), atol=1e-13
        )
    assert made.bias == 0  # rationals: no rounding at all
    for b in made.bins:
        if -1 < b < 1:  # at a bin the law is the right limit
            np.testing.assert_allclose(
                made.probabilities(float(b)),
                algorithm1(bins.tolist(), left, right, float(b)),
                atol=1e-13,
            )


def test_rqm_has_the_law_of_random_subsets_of_bins():
    bins, q, x = [-2.0, -0.4, 0.3, 0.9, 2.0], 0.3, 0.5
    p = np.zeros(5)
    for chosen in range(8):
        kept = [0, *(i for i in (1, 2, 3) if chosen >> (i - 1) & 1), 4]
        chance = np.prod([q if chosen >> k & 1 else 1 - q for k in range(3)])
        l = max(i for i in kept if bins[i] <= x)
        r = min(i for i in kept if bins[i] > x)
        share = (bins[r] - x) / (bins[r] - bins[l])
        p[l] += chance * share
        p[r] += chance * (1 - share)
    np.testing.assert_allclose(rqm(bins, q).probabilities(x), p, atol=1e-14)


def test_published_mechanisms_have_their_known_values():
    one = rqm("-2.7,-0.9,0.9,2.7", "0.22")
    assert one.mae_51 == pytest.approx(1.99286, abs=5e-6)
    assert one.mae() == pytest.approx(1.99734, abs=5e-6)
    assert erm("-5.1,-0.1,0.1,5.1", "0.026").mae_51 == pytest.approx(2.216, abs=5e-4)
    assert erm("-2.7,-0.4,0.4,2.7", "0.043").mae_51 == pytest.approx(1.304, abs=5e-4)
    assert randomized_response("0.5").mae() == pytest.approx(4.0013, abs=1e-4)


def test_exact_integrals_agree_with_numerical_ones():
    made = rqm([-1.7, -0.35, 0.2, 0.8, 1.9], "0.4")
    for density in (uniform_density(), normal_density(0.5, 0.2), normal_density(-0.1, 0.03)):
        x, w = density.quadrature(np.linspace(-1, 1, 4001))
        inside = np.clip(x, -1, 1)
        for loss, power in (("absolute", 1), ("squared", 2)):
            errors = (
                made.probabilities(inside) * np.abs(made.outputs - inside[:, None]) ** power
            ).sum(axis=1)
            assert made.expected_loss(loss, density) == pytest.approx(float(w @ errors), abs=2e-7)
    assert made.expected_loss("0.25") == pytest.approx(0.25 * made.mae() + 0.75 * made.mse())
    atoms = ((-1.0, 0.25), (0.3, 0.5), (0.77, 0.25))
    drawn = Density("samples", 1.0, np.zeros_like, (), atoms)
    assert made.mae(drawn) == pytest.approx(made.error_at([-1.0, 0.3, 0.3, 0.77]).mean())


def test_a_quantizer_of_two_outputs_has_its_closed_form():
    made = two_bin([-2, 2], [[1]])
    assert made.mae() == pytest.approx((4 - 1 / 3) / 2, abs=1e-14)
    assert made.mse() == pytest.approx(4 - 1 / 3, abs=1e-14)  # E(M - x)² = B² - x²


def test_loss_weights_are_linear_in_the_ends():
    made = rqm("-2,-0.5,0.5,2", "0.3")
    weights = ErrorIntegrals(
        np.array([float(k) for k in made.knots]), made.outputs, uniform_density()
    ).weights()
    assert (weights.reshape(-1, made.m) * made.matrix).sum() == pytest.approx(made.mae(), abs=1e-15)
    assert weights.shape == (len(made.pieces), 2, made.m)


def test_samples_follow_the_law():
    made = rqm("-2,-0.5,0.5,2", "0.3")
    x = np.full(200_000, 0.37)
    drawn = made.sample(x, insecure_seed=1)
    shares = [(drawn == b).mean() for b in made.outputs]
    np.testing.assert_allclose(shares, made.probabilities(0.37), atol=5 * np.sqrt(0.25 / x.size))
    assert isinstance(made.sample(0.1), float)
    assert made.sample(np.zeros((2, 3))).shape == (2, 3)
    assert abs(drawn.mean() - 0.37) < 5 * drawn.std() / np.sqrt(x.size)


def test_inputs_outside_the_range_are_refused_without_clipping():
    made = rqm("-2,-0.5,0.5,2", "0.3")
    for bad in (1.01, [0.0, -3.0]):
        with pytest.raises(InvalidRequest, match=r"x must be in \[-1, 1\]"):
            made.sample(bad)
    with pytest.raises(InvalidRequest, match="finite"):
        made.probabilities(float("nan"))
    assert made.sample([5.0, -5.0], clip=True).shape == (2,)
    np.testing.assert_array_equal(made.probabilities(7.0, clip=True), made.probabilities(1.0))


def test_invalid_bins_are_refused():
    for bins, words in (
        ("3,1,-3", "strictly increasing. Got 3, 1, -3"),
        ([-3, -3, 3], "strictly increasing"),
        ("-0.5,0.5", r"cover the inputs"),
        ("3", "at least 2"),
        ("-3,x,3", "a bin must be a finite number. Got x"),
        ([-3, float("nan")], "finite"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            read_bins(bins)
    with pytest.raises(InvalidRequest, match="m must be an integer >= 2"):
        equal_bins(1, 3)
    with pytest.raises(InvalidRequest, match="symmetric"):
        erm("-3,0,0.5,3", 1)
    with pytest.raises(InvalidRequest, match=r"q must be a number in \[0, 1\)"):
        rqm("-3,3", 1)
    with pytest.raises(InvalidRequest, match="loss must be"):
        error_coefficients("rmse")


def test_functions_that_are_no_density_are_refused():
    for text in ("gauss", "normal:1", "normal:0,0", "normal:a,b", "uniform:2"):
        with pytest.raises(InvalidRequest):
            parse_density(text)
    with pytest.raises(InvalidRequest, match="mass 1"):
        density_from_function(lambda x: np.ones_like(x))
    with pytest.raises(InvalidRequest, match=">= 0"):
        density_from_function(lambda x: 0.5 + x)


def test_a_clipped_normal_density_has_point_masses_at_the_ends():
    density = normal_density(0.5, 0.3)
    assert density.interval_masses([-1, 0.5, 1]) == pytest.approx([0.5, 0.5], abs=1e-12)
    assert dict(density.atoms)[1.0] == pytest.approx(0.047790, abs=1e-6)


def test_theorems_1_and_2_and_the_bound_of_youn_hold():
    for m in (4, 6, 10):
        for gamma in (0.1, 1.0, 3.0):
            made = erm(equal_bins(m, 2), gamma)
            assert audit_extremes(made, 0).pure_epsilon < erm_epsilon_bound(m, gamma, 1)
            assert made.error_at(np.linspace(-1, 1, 201)).max() <= erm_error_bound(m, gamma, 1)
        for q in (0.2, 0.5):
            assert audit_extremes(rqm(equal_bins(m, 2), q), 0).pure_epsilon <= rqm_epsilon_bound(
                m, q, 1
            )


def test_files_round_trip_and_damage_is_noticed():
    made = rqm("-2,-0.5,0.5,2", "0.3")
    assert Quantizer.from_dict(made.to_dict()) == made
    for damage in (
        {},
        made.to_dict() | {"outputs": ["1", "0"]},
        made.to_dict() | {"ends": [["0x1"]]},
    ):
        with pytest.raises((CorruptFile, InvalidRequest)):
            Quantizer.from_dict(damage)


def test_the_poisson_binomial_mechanism_has_its_law_and_epsilon():
    made = poisson_binomial(4, theta="0.2")
    assert made.ratio == Fraction(7, 3) ** 3
    x = np.linspace(-1, 1, 2001)
    law = made.probabilities(x)
    np.testing.assert_allclose(law @ made.outputs, x, atol=1e-13)
    assert np.log(law.max(axis=0) / law.min(axis=0)).max() == pytest.approx(made.epsilon, abs=1e-12)
    variance = 3 * (0.25 - (0.2 * x) ** 2) * (1 / (0.2 * 3)) ** 2
    assert made.mse() == pytest.approx(3 * (0.25 - 0.04 / 3) * (1 / 0.6) ** 2, abs=1e-11)
    np.testing.assert_allclose(made.error_at(x, "squared"), variance, atol=1e-11)
    assert poisson_binomial(4, epsilon=1).epsilon == pytest.approx(1, abs=1e-12)
    assert poisson_binomial(4, epsilon=1).epsilon <= 1
    with pytest.raises(InvalidRequest, match="theta"):
        poisson_binomial(4, theta="0.5")


def test_the_biased_quantizer_has_its_law_and_epsilon():
    made = BiasedQuantizer.from_selection("-2.7,-0.9,0.9,2.7", rqm_selection(4, "0.22"), "0.4")
    x = np.linspace(-1, 1, 20_001)
    law = made.probabilities(x)
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-14)
    seen = np.log(law.max(axis=0) / law.min(axis=0)).max()
    assert seen - 1e-12 <= made.epsilon <= seen + 1e-3
    assert made.bias == pytest.approx(np.abs(law @ made.outputs - x).max(), abs=1e-3)
    assert made.bias > 0.1
    flat = BiasedQuantizer.from_selection(
        "-2.7,-0.9,0.9,2.7", rqm_selection(4, 0), 0
    )  # a fair coin between the outermost bins
    assert flat.epsilon < 1e-12
    assert made.mae() == pytest.approx(made.error_at(np.linspace(-1, 1, 40_001)).mean(), abs=1e-4)
