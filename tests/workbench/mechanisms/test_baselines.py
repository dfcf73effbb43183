"""The baselines of Figs 5-8 against sums over a long stretch of the integers."""

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

FAR = np.arange(-400, 401)


def brute(pmf: np.ndarray, n: int) -> np.ndarray:
    """(57) by adding up min(max(0, q + η), n) over η = -400..400."""
    table = np.zeros((n + 1, n + 1))
    for q in range(n + 1):
        np.add.at(table[q], np.clip(q + FAR, 0, n), pmf)
    return table


def geometric(alpha: float) -> np.ndarray:
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(FAR)


def gaussian(variance: float) -> np.ndarray:
    pmf = np.exp(-(FAR**2.0) / (2 * variance))
    return pmf / pmf.sum()


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("alpha", [0.1, 0.4717, 0.7])
def test_the_clamped_geometric_channel_has_its_law(n: int, alpha: float) -> None:
    assert clamped_geometric(n, alpha).matrix == pytest.approx(
        brute(geometric(alpha), n), abs=1e-15
    )


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("variance", [0.05, 0.7, 3.38, 40.0])
def test_the_clamped_gaussian_channel_has_its_law(n: int, variance: float) -> None:
    assert clamped_gaussian(n, variance).matrix == pytest.approx(
        brute(gaussian(variance), n), abs=1e-15
    )


def geometric_pmf(alpha: Fraction, eta: int) -> Fraction:
    return (1 - alpha) / (1 + alpha) * alpha ** abs(eta)


def geometric_cdf(alpha: Fraction, eta: int) -> Fraction:
    return alpha**-eta / (1 + alpha) if eta < 0 else 1 - alpha ** (eta + 1) / (1 + alpha)


@given(st.fractions(0, Fraction(49, 50), max_denominator=50), st.integers(-6, 6))
def test_the_geometric_law_and_its_distribution_function_agree(alpha: Fraction, eta: int) -> None:
    assert geometric_cdf(alpha, eta) - geometric_cdf(alpha, eta - 1) == geometric_pmf(alpha, eta)
    assert geometric_cdf(alpha, -eta) == 1 - geometric_cdf(alpha, eta - 1)


def test_equation_58_as_printed_loses_mass() -> None:
    """The printed 1 - F(n - q) misses f(n - q); with 1 - F(n - q - 1) the rows sum to 1."""
    alpha, n = Fraction(7, 10), 8
    found = clamped_geometric(n, alpha)
    for q in range(n + 1):
        body = geometric_cdf(alpha, -q) + sum(geometric_pmf(alpha, k - q) for k in range(1, n))
        assert body + 1 - geometric_cdf(alpha, n - q) == 1 - geometric_pmf(alpha, n - q)
        assert body + 1 - geometric_cdf(alpha, n - q - 1) == 1
        assert found.rows[q][n] == 1 - geometric_cdf(alpha, n - q - 1)
        assert found.rows[q][0] == geometric_cdf(alpha, -q)


def test_figures_6_and_8_print_the_wrong_variance() -> None:
    assert pytest.approx(15.56, abs=0.005) == 2 * 0.7 / 0.3**2
    assert (geometric(0.7) * FAR**2.0).sum() == pytest.approx(15.5556, abs=1e-4)
    assert geometric_alpha(3.38) == pytest.approx(0.4717, abs=5e-5)
    assert geometric_alpha("15.555555555555555") == pytest.approx(0.7, abs=1e-14)
    for variance in (1e-8, 0.5, 3.38, 1e6):
        alpha = geometric_alpha(variance)
        assert 2 * alpha / (1 - alpha) ** 2 == pytest.approx(variance, rel=1e-9)


def test_clamped_geometric_keeps_the_pure_epsilon_of_its_noise() -> None:
    """Ratios within |q - q'| = 1 are α or 1/α everywhere, the ends included: Ghosh et al. 2009."""
    found = audit(Channel.from_pairs(clamped_geometric(8, "0.7"), pairs_within(8, 1)), "0.3")
    assert found.pure_ratio == Fraction(10, 7)
    assert (
        audit(Channel.from_pairs(clamped_geometric(8, "0.7"), pairs_within(8, 3)), 1).pure_ratio
        == Fraction(10, 7) ** 3
    )


def test_the_exponential_mechanism_has_its_law() -> None:
    channel = exponential_mechanism(6, 1.3)
    weights = np.exp(-np.abs(np.subtract.outer(np.arange(7), np.arange(7))) / 1.3)
    assert channel.matrix == pytest.approx(weights / weights.sum(axis=1, keepdims=True), abs=1e-15)
    for shift in (1, 2, 3):
        found = audit(Channel.from_pairs(channel, pairs_within(6, shift)), 1)
        assert (
            shift / 1.3 < found.pure_epsilon < 2 * shift / 1.3
        )  # the general bound; not tight on a line


def test_gumbel_noise_and_argmax_draw_from_the_exponential_mechanism() -> None:
    rng = np.random.default_rng(11)
    n = 5
    q = 1
    scale = 0.9
    draws = 200_000
    scores = -np.abs(np.arange(n + 1) - q) + rng.gumbel(0, scale, size=(draws, n + 1))
    found = np.bincount(scores.argmax(axis=1), minlength=n + 1) / draws
    assert found == pytest.approx(exponential_mechanism(n, scale).matrix[q], abs=0.006)


def test_the_data_independent_mechanism_has_its_law() -> None:
    noise = data_independent(ModuloNoise(n=7, max_shift=1), "0.3")
    assert noise.exact_pmf == [Fraction(7, 10), *[Fraction(3, 70)] * 7]
    assert noise.error_rate == 0.3
    assert audit(noise, 1).pure_ratio == Fraction(49, 3)
    assert audit(noise, 1).pdp_delta == Fraction(7, 10)


def test_any_law_can_be_clamped() -> None:
    """An asymmetric law with a gap: η = -1, 0, 2."""
    channel = clamped_channel(3, IntegerLaw(-1, [1, 2, 0, Fraction(1)]))
    quarter = Fraction(1, 4)
    assert [[row[k] / quarter for k in range(4)] for row in channel.rows] == [
        [3, 0, 1, 0],
        [1, 2, 0, 1],
        [0, 1, 2, 1],
        [0, 0, 1, 3],
    ]
    assert channel.error_rate == 1 - Fraction(3 + 2 + 2 + 3, 16)
    assert channel.mse == (1 * 4 + (1 + 4) + (1 + 1) + 1) / 16
    assert audit(Channel.from_pairs(channel, pairs_within(3, 1)), 1).pure_epsilon == math.inf
    plugged = Channel.from_rows(channel.matrix)
    assert plugged == channel


@pytest.mark.parametrize("family", BASELINE_FAMILIES)
def test_fitted_parameters_have_the_requested_error(family: str) -> None:
    for n, mse in [(8, 0.6101), (8, 3.38), (1, 0.2), (20, 30.0)]:
        assert BASELINE_FAMILIES[family].build(
            n, fit_baseline(family, n, mse=mse)
        ).mse == pytest.approx(mse, rel=1e-9)
    for n, rate in [(7, 0.3), (8, 0.01), (1, 0.49), (20, 0.9)]:
        made = BASELINE_FAMILIES[family].build(n, fit_baseline(family, n, error_rate=rate))
        assert made.error_rate == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize("family", BASELINE_FAMILIES)
def test_the_float_table_agrees_with_the_exact_channel(family: str) -> None:
    table, _, parameter, build = BASELINE_FAMILIES[family]
    for x in (0.2, 0.6):
        assert table(7, x) == pytest.approx(build(7, parameter(x)).matrix, abs=1e-15)


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


def test_bad_parameters_are_refused() -> None:
    question = ModuloNoise(n=7, max_shift=1)
    for call, message in [
        (lambda: clamped_geometric(8, 1), r"^alpha must be a number in \[0, 1\)\. Got 1\.$"),
        (lambda: clamped_geometric(8, -0.1), r"^alpha must be a number in \[0, 1\)\. Got -0\.1\.$"),
        (lambda: clamped_geometric(0, 0.5), r"^n must be an integer in 1\.\.10000\. Got 0\.$"),
        (lambda: clamped_gaussian(8, 0), r"^variance must be a finite number > 0\. Got 0\.$"),
        (
            lambda: exponential_mechanism(8, math.nan),
            r"^scale must be a finite number > 0\. Got nan\.$",
        ),
        (
            lambda: data_independent(question, 1.1),
            r"^error_rate must be a number in \[0, 1\]\. Got 1\.1\.$",
        ),
        (lambda: pairs_within(8, 9), r"^max_shift must be an integer in 1\.\.8\. Got 9\.$"),
        (
            lambda: clamped_geometric(8, 0.5).expected_loss(np.eye(3)),
            r"^loss must be an array of shape \(9, 9\)\. Got",
        ),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            call()


def half_line(pmf: np.ndarray, shift: int, epsilon: float) -> tuple[float, float]:
    """PDP and DP δ of integer noise in floats, from η = -400..400."""
    p, q = pmf[shift:-shift], pmf[2 * shift :]
    over = p > np.exp(epsilon) * q * (1 + 1e-12)
    return p[over].sum(), (p - np.exp(epsilon) * q)[over].sum()


def test_clamping_raises_pdp_but_never_dp() -> None:
    """Sec. 2.1 and Fig. 6: PDP is not closed under post-processing, DP is."""
    epsilons = np.linspace(0, 3, 31)
    clamped = Channel.from_pairs(clamped_gaussian(8, "3.38"), pairs_within(8, 1))
    pdp, dp = np.array([half_line(gaussian(3.38), 1, epsilon) for epsilon in epsilons]).T
    assert (profile(clamped, "dp").deltas(epsilons) <= dp + 1e-14).all()
    assert (profile(clamped, "pdp").deltas(epsilons) - pdp).max() > 0.2


@given(st.sampled_from(sorted(BASELINE_FAMILIES)), st.floats(0.05, 0.8), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_channels_are_stochastic_and_mirror_symmetric(family: str, x: float, n: int) -> None:
    matrix = BASELINE_FAMILIES[family].build(n, BASELINE_FAMILIES[family].parameter(x)).matrix
    assert matrix.sum(axis=1) == pytest.approx(np.ones(n + 1), abs=1e-14)
    assert matrix == pytest.approx(matrix[::-1, ::-1], abs=1e-15)
