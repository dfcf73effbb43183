"""Test baselines for count queries: clamped noise, the exponential mechanism, and fitted parameters.

Figure, section and equation numbers are those of Kadam et al. 2024. The reference values are sums
over the noise values -400..400, beyond which the noise has practically no mass.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InvalidRequest
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.baselines.count_queries import (
    BASELINE_FAMILIES,
    clamped_channel,
    clamped_gaussian,
    clamped_geometric,
    data_independent,
    exponential_mechanism,
    fit_baseline,
    geometric_alpha,
)
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.privacy.audit import audit
from workbench.privacy.curve import profile
from workbench.questions.modulo_noise import ModuloNoise

NOISE_VALUES = np.arange(-400, 401)


def clamp_noise(pmf: np.ndarray, n: int) -> np.ndarray:
    """Compute the law of min(max(0, q + η), n) for each answer q, as in (57).

    Args:
        pmf: the masses of `NOISE_VALUES`. Shape (801,).
        n: the largest answer.

    Returns:
        The probability of each output (column) for each answer (row). Shape (n + 1, n + 1).
    """
    table = np.zeros((n + 1, n + 1))
    for q in range(n + 1):
        np.add.at(table[q], np.clip(q + NOISE_VALUES, 0, n), pmf)
    return table


def list_geometric_masses(alpha: float) -> np.ndarray:
    """Return the masses of geometric noise at `NOISE_VALUES`, proportional to α^|η|."""
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(NOISE_VALUES)


def list_gaussian_masses(variance: float) -> np.ndarray:
    """Return the masses of discrete Gaussian noise at `NOISE_VALUES`."""
    masses = np.exp(-(NOISE_VALUES**2.0) / (2 * variance))
    return masses / masses.sum()


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("alpha", [0.1, 0.4717, 0.7])
def test_the_clamped_geometric_channel_has_its_law(n: int, alpha: float) -> None:
    expected = clamp_noise(list_geometric_masses(alpha), n)
    assert clamped_geometric(n, alpha).matrix == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("variance", [0.05, 0.7, 3.38, 40.0])
def test_the_clamped_gaussian_channel_has_its_law(n: int, variance: float) -> None:
    expected = clamp_noise(list_gaussian_masses(variance), n)
    assert clamped_gaussian(n, variance).matrix == pytest.approx(expected, abs=1e-15)


def geometric_pmf(alpha: Fraction, eta: int) -> Fraction:
    """Return the probability f(η) of the noise value η."""
    return (1 - alpha) / (1 + alpha) * alpha ** abs(eta)


def geometric_cdf(alpha: Fraction, eta: int) -> Fraction:
    """Return the probability F(η) of noise values up to η."""
    if eta < 0:
        return alpha**-eta / (1 + alpha)
    return 1 - alpha ** (eta + 1) / (1 + alpha)


@given(st.fractions(0, Fraction(49, 50), max_denominator=50), st.integers(-6, 6))
def test_the_geometric_law_and_its_distribution_function_agree(alpha: Fraction, eta: int) -> None:
    assert geometric_cdf(alpha, eta) - geometric_cdf(alpha, eta - 1) == geometric_pmf(alpha, eta)
    assert geometric_cdf(alpha, -eta) == 1 - geometric_cdf(alpha, eta - 1)


def test_equation_58_as_printed_loses_mass() -> None:
    """The printed 1 - F(n - q) misses f(n - q); with 1 - F(n - q - 1) the rows sum to 1."""
    alpha = Fraction(7, 10)
    n = 8
    channel = clamped_geometric(n, alpha)
    for q in range(n + 1):
        mass_below_n = geometric_cdf(alpha, -q)
        mass_below_n += sum(geometric_pmf(alpha, k - q) for k in range(1, n))
        printed_mass_at_n = 1 - geometric_cdf(alpha, n - q)
        assert mass_below_n + printed_mass_at_n == 1 - geometric_pmf(alpha, n - q)
        correct_mass_at_n = 1 - geometric_cdf(alpha, n - q - 1)
        assert mass_below_n + correct_mass_at_n == 1
        assert channel.rows[q][n] == correct_mass_at_n
        assert channel.rows[q][0] == geometric_cdf(alpha, -q)


def test_the_variance_of_the_geometric_noise_in_figures_6_and_8() -> None:
    """The figures print 3.38, but geometric noise with α = 0.7 has the variance 15.56.

    The variance 2α/(1 - α)² is 3.38 at α = 0.4717.
    """
    variance = (list_geometric_masses(0.7) * NOISE_VALUES**2.0).sum()
    assert variance == pytest.approx(15.5556, abs=1e-4)
    assert geometric_alpha(3.38) == pytest.approx(0.4717, abs=5e-5)
    assert geometric_alpha("15.555555555555555") == pytest.approx(0.7, abs=1e-14)


@pytest.mark.parametrize("variance", [1e-8, 0.5, 3.38, 1e6])
def test_geometric_alpha_gives_the_requested_variance(variance: float) -> None:
    alpha = geometric_alpha(variance)
    assert 2 * alpha / (1 - alpha) ** 2 == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("max_shift", [1, 3])
def test_clamped_geometric_keeps_the_pure_epsilon_of_its_noise(max_shift: int) -> None:
    """Between consecutive answers all ratios are α or 1/α, also at the ends (Ghosh et al. 2009)."""
    channel = Channel.from_pairs(clamped_geometric(8, "0.7"), pairs_within(8, max_shift))
    assert audit(channel, 1).pure_ratio == Fraction(10, 7) ** max_shift


def test_the_exponential_mechanism_has_its_law() -> None:
    distances = np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    weights = np.exp(-distances / 1.3)
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert exponential_mechanism(n=6, scale=1.3).matrix == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_the_exponential_mechanism_spends_less_than_its_general_bound(shift: int) -> None:
    channel = Channel.from_pairs(exponential_mechanism(n=6, scale=1.3), pairs_within(6, shift))
    general_bound = 2 * shift / 1.3
    assert general_bound / 2 < audit(channel, 1).pure_epsilon < general_bound


def test_gumbel_noise_and_argmax_draw_from_the_exponential_mechanism() -> None:
    """The output with the largest score -|o - q| plus Gumbel noise has the same law."""
    rng = np.random.default_rng(11)
    n = 5
    q = 1
    scale = 0.9
    draw_count = 200_000
    scores = -np.abs(np.arange(n + 1) - q) + rng.gumbel(0, scale, size=(draw_count, n + 1))
    shares = np.bincount(scores.argmax(axis=1), minlength=n + 1) / draw_count
    assert shares == pytest.approx(exponential_mechanism(n, scale).matrix[q], abs=0.006)


def test_the_data_independent_mechanism_has_its_law() -> None:
    noise = data_independent(ModuloNoise(n=7, max_shift=1), "0.3")
    assert noise.exact_pmf == [Fraction(7, 10), *[Fraction(3, 70)] * 7]
    assert noise.error_rate == 0.3
    assert audit(noise, 1).pure_ratio == Fraction(49, 3)
    assert audit(noise, 1).pdp_delta == Fraction(7, 10)


def test_any_law_can_be_clamped() -> None:
    """The noise -1, 0 and 2 with the probabilities 1/4, 1/2 and 1/4, clamped to 0..3."""
    channel = clamped_channel(3, IntegerLaw(-1, [1, 2, 0, Fraction(1)]))
    assert [[4 * row[k] for k in range(4)] for row in channel.rows] == [
        [3, 0, 1, 0],
        [1, 2, 0, 1],
        [0, 1, 2, 1],
        [0, 0, 1, 3],
    ]
    assert channel.error_rate == 1 - Fraction(3 + 2 + 2 + 3, 16)
    assert channel.mse == (1 * 4 + (1 + 4) + (1 + 1) + 1) / 16
    assert (
        audit(Channel.from_pairs(channel, pairs_within(n=3, max_shift=1)), 1).pure_epsilon
        == math.inf
    )
    assert Channel.from_rows(channel.matrix) == channel


@pytest.mark.parametrize("family", BASELINE_FAMILIES)
@pytest.mark.parametrize(("n", "mse"), [(8, 0.6101), (8, 3.38), (1, 0.2), (20, 30.0)])
def test_fitted_parameters_have_the_requested_mse(family: str, n: int, mse: float) -> None:
    channel = BASELINE_FAMILIES[family].build(n, fit_baseline(family, n, mse=mse))
    assert channel.mse == pytest.approx(mse, rel=1e-9)


@pytest.mark.parametrize("family", BASELINE_FAMILIES)
@pytest.mark.parametrize(("n", "error_rate"), [(7, 0.3), (8, 0.01), (1, 0.49), (20, 0.9)])
def test_fitted_parameters_have_the_requested_error_rate(
    family: str, n: int, error_rate: float
) -> None:
    channel = BASELINE_FAMILIES[family].build(n, fit_baseline(family, n, error_rate=error_rate))
    assert channel.error_rate == pytest.approx(error_rate, rel=1e-9)


@pytest.mark.parametrize("family", BASELINE_FAMILIES)
def test_the_float_table_agrees_with_the_exact_channel(family: str) -> None:
    """x is the coordinate along which a parameter is searched, such as its logarithm."""
    compute_table, _, parameter_at, build = BASELINE_FAMILIES[family]
    for x in (0.2, 0.6):
        channel = build(7, parameter_at(x))
        assert compute_table(7, x) == pytest.approx(channel.matrix, abs=1e-15)


def test_impossible_targets_are_refused() -> None:
    for arguments, message in [
        (
            {"family": "geometric", "n": 8, "mse": 100},
            r"^mse must be in 0\.\.22\.6\d+ for the geometric baseline",
        ),
        (
            {"family": "exponential", "n": 8, "error_rate": "0.89"},
            r"^error_rate must be in 0\.\.0\.888\d* for the exp",
        ),
        ({"family": "geometric", "n": 8, "mse": 0}, r"^mse must be a finite number > 0\. Got 0\.$"),
        ({"family": "geometric", "n": 8}, "^A target must be given by exactly one of"),
        (
            {"family": "geometric", "n": 8, "mse": 1, "error_rate": 0.1},
            "^A target must be given by exactly one of",
        ),
        (
            {"family": "laplace", "n": 8, "mse": 1},
            r"^family must be one of geometric, gaussian, exponential\. Got",
        ),
        (
            {"family": "geometric", "n": 0, "mse": 1},
            r"^n must be an integer in 1\.\.10000\. Got 0\.$",
        ),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            fit_baseline(**arguments)  # type: ignore[arg-type]


def test_invalid_parameters_are_refused() -> None:
    question = ModuloNoise(n=7, max_shift=1)
    for call, message in [
        (
            lambda: clamped_geometric(n=8, alpha=1),
            r"^alpha must be a number in \[0, 1\)\. Got 1\.$",
        ),
        (
            lambda: clamped_geometric(n=8, alpha=-0.1),
            r"^alpha must be a number in \[0, 1\)\. Got -0\.1\.$",
        ),
        (
            lambda: clamped_geometric(n=0, alpha=0.5),
            r"^n must be an integer in 1\.\.10000\. Got 0\.$",
        ),
        (
            lambda: clamped_gaussian(n=8, variance=0),
            r"^variance must be a finite number > 0\. Got 0\.$",
        ),
        (
            lambda: exponential_mechanism(8, math.nan),
            r"^scale must be a finite number > 0\. Got nan\.$",
        ),
        (
            lambda: data_independent(question, 1.1),
            r"^error_rate must be a number in \[0, 1\]\. Got 1\.1\.$",
        ),
        (
            lambda: pairs_within(n=8, max_shift=9),
            r"^max_shift must be an integer in 1\.\.8\. Got 9\.$",
        ),
        (
            lambda: clamped_geometric(n=8, alpha=0.5).expected_loss(np.eye(3)),
            r"^loss must be an array of shape \(9, 9\)\. Got",
        ),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            call()


def compute_deltas_of_shift_1(pmf: np.ndarray, epsilon: float) -> tuple[float, float]:
    """Compute the δ of integer noise under PDP and under DP, for neighbours that differ by 1.

    Args:
        pmf: the masses of `NOISE_VALUES`. Shape (801,).
        epsilon: the ε of the budget.
    """
    p = pmf[1:-1]
    q = np.exp(epsilon) * pmf[2:]
    is_violated = p > q * (1 + 1e-12)
    return p[is_violated].sum(), (p - q)[is_violated].sum()


def test_clamping_increases_the_delta_of_pdp_but_not_of_dp() -> None:
    """Sec. 2.1 and Fig. 6: PDP is not closed under post-processing, DP is."""
    epsilons = np.linspace(0, 3, 31)
    clamped = Channel.from_pairs(clamped_gaussian(8, "3.38"), pairs_within(n=8, max_shift=1))
    masses = list_gaussian_masses(3.38)
    deltas = [compute_deltas_of_shift_1(masses, epsilon) for epsilon in epsilons]
    pdp_deltas, dp_deltas = np.array(deltas).T
    assert (profile(clamped, "dp").deltas(epsilons) <= dp_deltas + 1e-14).all()
    assert (profile(clamped, "pdp").deltas(epsilons) - pdp_deltas).max() > 0.2


@given(st.sampled_from(sorted(BASELINE_FAMILIES)), st.floats(0.05, 0.8), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_channels_are_stochastic_and_mirror_symmetric(family: str, x: float, n: int) -> None:
    baseline = BASELINE_FAMILIES[family]
    matrix = baseline.build(n, baseline.parameter(x)).matrix
    assert matrix.sum(axis=1) == pytest.approx(np.ones(n + 1), abs=1e-14)
    assert matrix == pytest.approx(matrix[::-1, ::-1], abs=1e-15)
