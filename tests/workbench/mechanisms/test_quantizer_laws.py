"""Test published quantizers: their laws, errors, ε, samples, files and rejected arguments.

"The paper" is Cai et al. 2024. Its Algorithm 1 draws the output of a two-bin mechanism: one bin
below the input, one above it, and then one of these two. `compute_algorithm1_law` is an independent
implementation of it.

Inputs x are in [-1, 1]. The bins are the m outputs, in increasing order. RQM and ERM are two-bin
mechanisms: RQM keeps each inner bin with the probability q, ERM prefers near bins by a parameter γ.
The margin is the distance from the input range to the outermost bin. MAE and MSE are the mean
absolute and squared error for uniform inputs; `mae_51` is the mean over 51 equally spaced inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

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
    erm_proven_epsilon_bound,
    estimate_rqm_epsilon,
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


def compute_algorithm1_law(
    bins: list[float], left: list[list[float]], right: list[list[float]], x: float
) -> np.ndarray:
    """Compute Pr[M(x) = B_i] by adding up all draws of Algorithm 1. Shape (m,).

    Args:
        bins: the m outputs B_1 < ... < B_m.
        left: left[j - 1][l - 1] is the probability of drawing B_l if j bins are at or below x.
        right: right[k - 1][i - 1] is the probability of drawing the i-th bin from the right end if
            k bins are above x.
        x: the input.
    """
    m = len(bins)
    count_below = sum(b <= x for b in bins)
    count_above = m - count_below
    p = np.zeros(m)
    for l in range(1, count_below + 1):
        for r in range(count_below + 1, m + 1):
            pair_probability = left[count_below - 1][l - 1] * right[count_above - 1][m - r]
            lower_share = (bins[r - 1] - x) / (bins[r - 1] - bins[l - 1])
            p[l - 1] += pair_probability * lower_share
            p[r - 1] += pair_probability * (1 - lower_share)
    return p


@pytest.mark.parametrize("m", [3, 4, 6, 9])
def test_two_bin_law_equals_algorithm_1(m: int):
    rng = np.random.default_rng(m)
    bins = np.sort(np.concatenate([[-2.5, 3.0], rng.uniform(-1.5, 1.5, m - 2)])).tolist()
    left = [rng.dirichlet(np.ones(j)).tolist() for j in range(1, m)]
    right = [rng.dirichlet(np.ones(j)).tolist() for j in range(1, m)]
    quantizer = two_bin(bins, left, right)
    assert quantizer.bias == 0  # Rationals are not rounded.
    # At a bin the law jumps, and has its limit from the right.
    inputs = [*rng.uniform(low=-1, high=1, size=20), *(b for b in bins if -1 < b < 1)]
    for x in inputs:
        np.testing.assert_allclose(
            quantizer.probabilities(x), compute_algorithm1_law(bins, left, right, x), atol=1e-13
        )


def test_rqm_has_the_law_of_random_subsets_of_bins():
    """RQM keeps each inner bin with probability q, and rounds to the two nearest kept bins."""
    bins = [-2.0, -0.4, 0.3, 0.9, 2.0]
    q = 0.3
    x = 0.5
    p = np.zeros(5)
    for is_kept in product((False, True), repeat=3):
        kept_bins = [0, *(i for i in (1, 2, 3) if is_kept[i - 1]), 4]
        subset_probability = math.prod(q if is_inner_kept else 1 - q for is_inner_kept in is_kept)
        l = max(i for i in kept_bins if bins[i] <= x)
        r = min(i for i in kept_bins if bins[i] > x)
        lower_share = (bins[r] - x) / (bins[r] - bins[l])
        p[l] += subset_probability * lower_share
        p[r] += subset_probability * (1 - lower_share)
    np.testing.assert_allclose(rqm(bins, q).probabilities(x), p, atol=1e-14)


def test_rqm_has_its_pinned_errors():
    quantizer = rqm("-2.7,-0.9,0.9,2.7", "0.22")
    # Values of the current program, pinned.
    assert quantizer.mae_51 == pytest.approx(1.99286, abs=5e-6)
    assert quantizer.mae() == pytest.approx(1.99734, abs=5e-6)


@pytest.mark.parametrize(
    ("bins", "gamma", "printed_error"),
    [("-5.1,-0.1,0.1,5.1", "0.026", 2.216), ("-2.7,-0.4,0.4,2.7", "0.043", 1.304)],
)
def test_erm_has_the_error_that_the_paper_prints(bins: str, gamma: str, printed_error: float):
    assert erm(bins, gamma).mae_51 == pytest.approx(printed_error, abs=5e-4)


def test_randomized_response_has_the_error_of_its_closed_form():
    """The outputs are ±c with c = (e^ε + 1) / (e^ε - 1), so E|M - x| = (c² - x²) / c."""
    c = (math.exp(0.5) + 1) / (math.exp(0.5) - 1)
    assert randomized_response("0.5").mae() == pytest.approx(c - 1 / (3 * c))


@pytest.mark.parametrize(
    "density",
    [uniform_density(), normal_density(mu=0.5, sigma=0.2), normal_density(mu=-0.1, sigma=0.03)],
)
@pytest.mark.parametrize(("loss", "power"), [("absolute", 1), ("squared", 2)])
def test_exact_integrals_agree_with_a_fine_quadrature(density: Density, loss: str, power: int):
    quantizer = rqm([-1.7, -0.35, 0.2, 0.8, 1.9], "0.4")
    x, weights = density.quadrature(np.linspace(-1, 1, 4001))
    x = np.clip(x, -1, 1)
    losses = np.abs(quantizer.outputs - x[:, None]) ** power
    mean_losses = (quantizer.probabilities(x) * losses).sum(axis=1)
    expected = float(weights @ mean_losses)
    assert quantizer.expected_loss(loss, density) == pytest.approx(expected, abs=2e-7)


def test_mixed_loss_is_the_mixture_of_both_losses():
    quantizer = rqm([-1.7, -0.35, 0.2, 0.8, 1.9], "0.4")
    mixture = 0.25 * quantizer.mae() + 0.75 * quantizer.mse()
    assert quantizer.expected_loss("0.25") == pytest.approx(mixture)


def test_mean_error_of_a_discrete_density_is_a_mean_over_its_atoms():
    quantizer = rqm([-1.7, -0.35, 0.2, 0.8, 1.9], "0.4")
    atoms = ((-1.0, 0.25), (0.3, 0.5), (0.77, 0.25))
    density = Density("samples", c=1.0, shape=np.zeros_like, breaks=(), atoms=atoms)
    errors = quantizer.error_at([-1.0, 0.3, 0.3, 0.77])
    assert quantizer.mae(density) == pytest.approx(errors.mean())


def test_a_quantizer_of_two_outputs_has_its_closed_form():
    """For outputs ±2, E(M - x)² = 4 - x² and E|M - x| = (4 - x²)/2."""
    quantizer = two_bin(bins=[-2, 2], selection=[[1]])
    assert quantizer.mae() == pytest.approx((4 - 1 / 3) / 2, abs=1e-14)
    assert quantizer.mse() == pytest.approx(4 - 1 / 3, abs=1e-14)


def test_expected_error_is_the_sum_of_weights_times_end_laws():
    quantizer = rqm("-2,-0.5,0.5,2", "0.3")
    knots = np.array([float(k) for k in quantizer.knots])
    weights = ErrorIntegrals(knots, quantizer.outputs, uniform_density()).weights()
    assert weights.shape == (len(quantizer.pieces), 2, quantizer.m)
    error = (weights.reshape(-1, quantizer.m) * quantizer.matrix).sum()
    assert error == pytest.approx(quantizer.mae(), abs=1e-15)


def test_samples_follow_the_law():
    """Shares and the mean of 200,000 draws are within 5 standard deviations."""
    quantizer = rqm("-2,-0.5,0.5,2", "0.3")
    x = np.full(200_000, 0.37)
    draws = quantizer.sample(x, insecure_seed=1)
    shares = [(draws == b).mean() for b in quantizer.outputs]
    max_deviation = 5 * np.sqrt(0.25 / x.size)
    np.testing.assert_allclose(shares, quantizer.probabilities(0.37), atol=max_deviation)
    assert abs(draws.mean() - 0.37) < 5 * draws.std() / np.sqrt(x.size)


def test_samples_have_the_shape_of_the_inputs():
    quantizer = rqm("-2,-0.5,0.5,2", "0.3")
    assert isinstance(quantizer.sample(0.1), float)
    assert quantizer.sample(np.zeros((2, 3))).shape == (2, 3)


def test_inputs_outside_the_range_are_refused_without_clipping():
    quantizer = rqm("-2,-0.5,0.5,2", "0.3")
    for x in (1.01, [0.0, -3.0]):
        with pytest.raises(InvalidRequest, match=r"x must be in \[-1, 1\]"):
            quantizer.sample(x)
    with pytest.raises(InvalidRequest, match="finite"):
        quantizer.probabilities(float("nan"))


def test_clipped_inputs_have_the_law_of_the_nearest_end():
    quantizer = rqm("-2,-0.5,0.5,2", "0.3")
    assert quantizer.sample([5.0, -5.0], clip=True).shape == (2,)
    at_end = quantizer.probabilities(1.0)
    np.testing.assert_array_equal(quantizer.probabilities(7.0, clip=True), at_end)


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ("3,1,-3", "strictly increasing. Got 3, 1, -3"),
        ([-3, -3, 3], "strictly increasing"),
        ("-0.5,0.5", r"cover the inputs"),
        ("3", "at least 2"),
        ("-3,x,3", "a bin must be a finite number. Got x"),
        ([-3, float("nan")], "finite"),
    ],
)
def test_invalid_bins_are_refused(bins: object, message: str):
    with pytest.raises(InvalidRequest, match=message):
        read_bins(bins)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: equal_bins(m=1, reach=3), "m must be an integer >= 2"),
        (lambda: erm("-3,0,0.5,3", 1), "symmetric"),
        (lambda: rqm("-3,3", 1), r"q must be a number in \[0, 1\)"),
        (lambda: error_coefficients("rmse"), "loss must be"),
    ],
)
def test_invalid_parameters_of_published_quantizers_are_refused(
    call: Callable[[], object], message: str
):
    with pytest.raises(InvalidRequest, match=message):
        call()


@pytest.mark.parametrize("text", ["gauss", "normal:1", "normal:0,0", "normal:a,b", "uniform:2"])
def test_an_invalid_text_of_a_density_is_refused(text: str):
    with pytest.raises(InvalidRequest):
        parse_density(text)


def test_a_density_of_another_mass_than_1_is_refused():
    with pytest.raises(InvalidRequest, match="mass 1"):
        density_from_function(lambda x: np.ones_like(x))


def test_a_density_with_negative_values_is_refused():
    with pytest.raises(InvalidRequest, match=">= 0"):
        density_from_function(lambda x: 0.5 + x)


@pytest.mark.parametrize(("mu", "sigma"), [(0, 1e-4), (1e6, 1e-4), (-1e6, 1e6), (0.3, 1e-4)])
def test_a_normal_density_with_parameters_at_the_limits_has_total_mass_1(mu: float, sigma: float):
    density = normal_density(mu, sigma).validate()
    assert density.interval_masses([-1, 0, 1]).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("mu", "sigma"),
    [(0, 9e-5), (2e6, 1), (0, 2e6), (0, 0), (0, -1), ("1e5000", 1), (0, "nan")],
)
def test_parameters_of_a_normal_density_beyond_the_limits_are_refused(mu: object, sigma: object):
    with pytest.raises(InvalidRequest, match="must be "):
        normal_density(mu, sigma)


def test_a_clipped_normal_density_has_point_masses_at_the_ends():
    density = normal_density(mu=0.5, sigma=0.3)
    assert density.interval_masses([-1, 0.5, 1]) == pytest.approx([0.5, 0.5], abs=1e-12)
    mass_above_1 = 0.047790  # 1 - Φ((1 - 0.5)/0.3)
    assert dict(density.atoms)[1.0] == pytest.approx(mass_above_1, abs=1e-6)


@pytest.mark.parametrize("m", [4, 6, 10])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
def test_erm_satisfies_theorem_2_of_the_paper(m: int, gamma: float):
    quantizer = erm(equal_bins(m, 2), gamma)
    assert quantizer.error_at(np.linspace(-1, 1, 201)).max() <= erm_error_bound(m, gamma, delta=1)


@pytest.mark.parametrize("m", [4, 6, 10])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
def test_erm_is_below_the_printed_bound_of_theorem_1_at_a_margin_of_1(m: int, gamma: float):
    audited_epsilon = audit_extremes(erm(equal_bins(m, 2), gamma), 0).pure_epsilon
    assert audited_epsilon < erm_epsilon_bound(m, gamma, delta=1)


def compute_erm_epsilon(m: int, margin: float, gamma: float) -> float:
    """Compute ε of ERM with equal bins, without the code of the mechanism.

    The probabilities of the bins are those of equation (2) of the paper, and the choice between the
    two drawn bins is that of equation (4).
    """
    spacing = 2 * (1 + margin) / (m - 1)
    bins = [-1 - margin + k * spacing for k in range(m)]

    def compute_selection(count: int) -> list[float]:
        """Compute the probabilities (2) of `count` bins, from the nearest to the farthest."""
        scale = max(count - 1, 1)
        weights = [math.exp(-gamma * k / (2 * scale)) for k in range(count)]
        return [weight / sum(weights) for weight in weights]

    def compute_law(x: float, left_count: int) -> list[float]:
        """Compute the law (4) at x if `left_count` bins count as below x."""
        left = compute_selection(left_count)[::-1]
        right = compute_selection(m - left_count)
        law = [0.0] * m
        for i, k in product(range(left_count), range(m - left_count)):
            lower_share = (bins[left_count + k] - x) / (bins[left_count + k] - bins[i])
            law[i] += left[i] * right[k] * lower_share
            law[left_count + k] += left[i] * right[k] * (1 - lower_share)
        return law

    # Between bins the law is affine, so its extremes are limits at bins from both sides, and at ±1.
    inner_bins = [b for b in bins if -1 < b < 1]
    ends = [-1.0, *inner_bins, 1.0]
    first_count = sum(b <= -1 for b in bins)
    laws = []
    for k in range(len(ends) - 1):
        left_count = first_count + k
        laws += [compute_law(ends[k], left_count), compute_law(ends[k + 1], left_count)]
    return max(math.log(max(column) / min(column)) for column in zip(*laws, strict=True))


@pytest.mark.parametrize(
    ("m", "margin", "gamma", "epsilon", "printed_bound"),
    [(4, "0.1", "0.1", 4.1270233, 2.2747517), (32, "0.01", "8", 13.4379016, 12.1688334)],
)
def test_theorem_1_of_the_paper_is_false_for_a_small_margin(
    m: int, margin: str, gamma: str, epsilon: float, printed_bound: float
):
    quantizer = erm(equal_bins(m, 1 + Fraction(margin)), gamma)
    audited_epsilon = audit_extremes(quantizer, 0).pure_epsilon
    assert audited_epsilon == pytest.approx(epsilon, abs=1e-7)
    assert compute_erm_epsilon(m, float(margin), float(gamma)) == pytest.approx(epsilon, abs=1e-7)
    assert erm_epsilon_bound(m, gamma, margin) == pytest.approx(printed_bound, abs=1e-7)
    assert audited_epsilon > printed_bound


def test_erm_without_a_margin_has_no_finite_epsilon_although_theorem_1_gives_one():
    assert audit_extremes(erm(equal_bins(m=4, reach=1), "0.1"), 0).pure_epsilon == math.inf
    assert erm_epsilon_bound(m=4, gamma="0.1", delta=0) == pytest.approx(0.1 + math.log(8))
    assert erm_proven_epsilon_bound(m=4, gamma="0.1", delta=0) == math.inf


@pytest.mark.parametrize("m", [2, 3, 4, 8, 32])
@pytest.mark.parametrize("margin", ["0.01", "0.1", "0.5", "1", "5"])
@pytest.mark.parametrize("gamma", ["0", "1", "8"])
def test_erm_satisfies_the_proven_bound(m: int, margin: str, gamma: str):
    quantizer = erm(equal_bins(m, 1 + Fraction(margin)), gamma)
    audited_epsilon = audit_extremes(quantizer, 0).pure_epsilon
    assert audited_epsilon <= erm_proven_epsilon_bound(m, gamma, margin)


@pytest.mark.parametrize("margin", [1.41422, 2.0, 50.0])
def test_the_printed_bound_of_theorem_1_follows_from_the_proven_one_for_a_large_margin(
    margin: float,
):
    for m in (2, 4, 64, 4096):
        assert erm_epsilon_bound(m, 1, margin) > erm_proven_epsilon_bound(m, 1, margin)


@pytest.mark.parametrize("m", [4, 6, 10])
@pytest.mark.parametrize("q", [0.2, 0.5])
def test_rqm_satisfies_the_bound_of_youn_et_al(m: int, q: float):
    audited_epsilon = audit_extremes(rqm(equal_bins(m, 2), q), 0).pure_epsilon
    assert audited_epsilon <= rqm_epsilon_bound(m, q, delta=1)


def test_files_round_trip_and_damage_is_noticed():
    quantizer = rqm("-2,-0.5,0.5,2", "0.3")
    content = quantizer.to_dict()
    assert Quantizer.from_dict(content) == quantizer
    for damaged in ({}, content | {"outputs": ["1", "0"]}, content | {"ends": [["0x1"]]}):
        with pytest.raises((CorruptFile, InvalidRequest)):
            Quantizer.from_dict(damaged)


def test_the_poisson_binomial_mechanism_has_its_law_and_epsilon():
    """An output is a scaled sum of 3 coins, each of which is 1 with probability 1/2 + 0.2 x."""
    quantizer = poisson_binomial(4, theta="0.2")
    assert quantizer.ratio == Fraction(7, 3) ** 3
    x = np.linspace(-1, 1, 2001)
    law = quantizer.probabilities(x)
    np.testing.assert_allclose(law @ quantizer.outputs, x, atol=1e-13)
    epsilon = np.log(law.max(axis=0) / law.min(axis=0)).max()
    assert epsilon == pytest.approx(quantizer.epsilon, abs=1e-12)
    unit = 1 / (0.2 * 3)
    variances = 3 * (0.25 - (0.2 * x) ** 2) * unit**2
    np.testing.assert_allclose(quantizer.error_at(x, "squared"), variances, atol=1e-11)
    mean_variance = 3 * (0.25 - 0.04 / 3) * unit**2
    assert quantizer.mse() == pytest.approx(mean_variance, abs=1e-11)
    with pytest.raises(InvalidRequest, match="theta"):
        poisson_binomial(4, theta="0.5")


def test_the_poisson_binomial_mechanism_for_a_budget_uses_it():
    epsilon = poisson_binomial(4, epsilon=1).epsilon
    assert epsilon == pytest.approx(1, abs=1e-12)
    assert epsilon <= 1


def test_the_biased_quantizer_has_its_law_and_epsilon():
    """The reference values are maxima and means over a fine grid of inputs."""
    bins = "-2.7,-0.9,0.9,2.7"
    quantizer = BiasedQuantizer.from_selection(bins, rqm_selection(4, "0.22"), "0.4")
    x = np.linspace(-1, 1, 20_001)
    law = quantizer.probabilities(x)
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-14)
    grid_epsilon = np.log(law.max(axis=0) / law.min(axis=0)).max()
    assert grid_epsilon - 1e-12 <= quantizer.epsilon <= grid_epsilon + 1e-3
    assert quantizer.bias == pytest.approx(np.abs(law @ quantizer.outputs - x).max(), abs=1e-3)
    assert quantizer.bias > 0.1
    grid_errors = quantizer.error_at(np.linspace(-1, 1, 40_001))
    assert quantizer.mae() == pytest.approx(grid_errors.mean(), abs=1e-4)


def test_the_biased_quantizer_without_a_selection_publishes_nothing():
    """With q = 0 and β = 0 it is a fair coin between the outermost bins."""
    coin = BiasedQuantizer.from_selection("-2.7,-0.9,0.9,2.7", rqm_selection(m=4, q=0), beta=0)
    assert coin.epsilon < 1e-12


@pytest.mark.parametrize("q", ["0.02", "1/3", "0.97"])
@pytest.mark.parametrize("bins", [equal_bins(7, "1.3"), read_bins("-2,-1,0.25,1,1.5")])
def test_the_estimate_of_rqm_in_floats_is_its_exact_epsilon_up_to_rounding(
    q: str, bins: tuple[Fraction, ...]
):
    exact_epsilon = audit_extremes(rqm(bins, q), 0).pure_epsilon
    assert estimate_rqm_epsilon(bins, Fraction(q)) == pytest.approx(exact_epsilon, rel=1e-12)


def test_the_estimate_of_rqm_without_inner_bins_is_its_epsilon():
    """With q = 0 only the two outermost bins are drawn."""
    bins = equal_bins(m=4, reach=2)
    exact_epsilon = audit_extremes(rqm(bins, 0), 0).pure_epsilon
    assert estimate_rqm_epsilon(bins, Fraction(0)) == pytest.approx(exact_epsilon)


def test_the_estimate_of_rqm_is_infinite_if_an_output_has_no_probability_for_some_inputs():
    assert estimate_rqm_epsilon(equal_bins(m=4, reach=1), Fraction(1, 2)) == math.inf
