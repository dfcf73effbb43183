"""Test the laws of the dyadic quantized Laplace mechanism (DQL) against the paper's formulas.

Notation of the paper: ℓ is the ratio of the two guarantees, T the random level, δ_T = δ₀/2^T the
step at level T (times ε), F_T the distribution function of T, and f_t the density of the noise at
level t for ε = 1. `dql_oracle` computes the printed formulas in 160 digits.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

import dql_oracle as oracle
import numpy as np
import pytest

from workbench.errors import InvalidRequest
from workbench.mechanisms.dyadic_laplace.dyadic_law import (
    component,
    compute_levels,
    compute_levels_at,
    delta_zero,
    ell_from_delta,
    level_thresholds,
    step_weights,
    tail,
    tail_mean,
)

ELLS = (1 + 2.0**-40, 1.001, 1.3, 2.0, 7.5, 50.0, 1e6)


def test_laws_have_the_pinned_values() -> None:
    """The values at ℓ = 2, as computed once in 160 digits."""
    law = compute_levels(2.0)
    # Values of `dql_oracle`, pinned.
    assert delta_zero(2.0) == pytest.approx(1.2564312086262, abs=5e-14)
    assert law.cdf[0] == pytest.approx(0.321039280262, abs=5e-13)
    assert law.cdf[1] == pytest.approx(0.647622062978, abs=5e-13)
    assert law.mean_neg_log_delta == pytest.approx(0.716874059732, abs=5e-13)


@pytest.mark.parametrize("ell", ELLS)
def test_cancellation_free_forms_equal_the_printed_formulas(ell: float) -> None:
    assert delta_zero(ell) == float(oracle.delta_zero(ell))
    law = compute_levels(ell)
    for t in (0, 1, 2, 5, 20, 40):
        assert law.cdf[t] == pytest.approx(float(oracle.cdf(ell, t)), rel=3e-15, abs=0)
        assert law.pmf[t] == pytest.approx(oracle.pmf(ell, t), rel=1e-14, abs=0)


@pytest.mark.parametrize("ell", [*ELLS, 1e150, 2.0**500])
def test_level_law_is_a_cdf(ell: float) -> None:
    law = compute_levels(ell)
    assert (np.diff(law.cdf) >= 0).all()
    assert (law.pmf >= 0).all()
    assert law.cdf[0] >= 0
    assert 1 - 2e-16 <= law.cdf[-1] <= 1
    assert math.fsum(law.pmf) == pytest.approx(1, abs=1e-14)
    assert np.allclose(np.cumsum(law.pmf), law.cdf, atol=1e-14)


@pytest.mark.parametrize("ell", [*ELLS, 1e150, 2.0**500])
def test_capped_level_law_is_the_conditional_law(ell: float) -> None:
    law = compute_levels(ell)
    capped = compute_levels(ell, max_level=20)
    assert capped.cdf[-1] == 1
    assert capped.pmf[3] * law.cdf[20] == pytest.approx(law.pmf[3], rel=1e-14)


@pytest.mark.parametrize("ell", ELLS)
def test_thresholds_are_the_capped_law(ell: float) -> None:
    """A 64-bit word below threshold number t stands for a level of at most t."""
    law = compute_levels(ell, max_level=30)
    thresholds = level_thresholds(ell, 30)
    assert list(thresholds) == sorted(thresholds)
    probabilities = np.array([float(threshold) for threshold in thresholds]) / 2.0**64
    assert probabilities == pytest.approx(law.cdf[:-1], abs=3e-16)


def test_thresholds_are_pinned_because_both_parties_must_agree() -> None:
    pinned = (5922129440631194638, 11946518452293171775, 15307986789887147303)
    assert level_thresholds(ell=2.0, max_level=37)[:3] == pinned


@pytest.mark.parametrize("ell", ELLS)
def test_ell_from_delta_inverts_delta_zero(ell: float) -> None:
    computed_ell, excess = ell_from_delta(delta_zero(ell))
    assert computed_ell == pytest.approx(ell, rel=1e-15)
    assert excess == pytest.approx(ell - 1, rel=2e-15)


def test_levels_of_an_array_equal_those_of_its_elements() -> None:
    ell, deltas, pmf = compute_levels_at(np.array([delta_zero(2.0), delta_zero(50.0)]))
    assert ell == pytest.approx([2, 50])
    assert deltas[1, 3] == delta_zero(50.0) / 8
    assert pmf[0, :10] == pytest.approx(compute_levels(2.0).pmf[:10], rel=1e-14)


@pytest.mark.parametrize("ell", ELLS)
@pytest.mark.parametrize("t", [0, 1, 2, 7, 15])
def test_weights_of_step_9_agree_with_160_digits(ell: float, t: int) -> None:
    """The weights A at even and B at odd multiples of δ, as printed in step 9 of the algorithm.

    They satisfy A/B = 1 + δℓ. In their formula, r is F_T(t - 1)/F_T(t).
    """
    with decimal.localcontext(oracle.DIGITS):
        delta = oracle.delta_zero(ell) / 2**t
        e1 = (-delta).exp()
        e2 = (-2 * delta).exp()
        c0 = delta * (1 + e1) / (1 - e1)
        c1 = 2 * delta * (1 + e2) / (1 - e2)
        r = oracle.cdf(ell, t - 1) / oracle.cdf(ell, t)
        a = 1 / c0 - r / c1
        b = e1 / c0 - r * (1 + e2) / (2 * c1)
        assert abs(a / b / (1 + delta * Decimal(ell)) - 1) < Decimal("1e-60")
        share = float(a / (a + a * e2 + 2 * b))
    computed_a, computed_b, computed_e2 = step_weights(np.array(float(delta)), ell)[:3]
    computed_share = computed_a / (computed_a * (1 + computed_e2) + 2 * computed_b)
    assert float(computed_share) == pytest.approx(share, rel=1e-14, abs=0)


@pytest.mark.parametrize("ell", [1.001, 1.3, 2.0, 7.5, 50.0])
def test_components_equal_the_printed_formula_and_are_positive(ell: float) -> None:
    x = np.linspace(-30, 30, 6007)
    for t in range(7):
        density = component(ell, t).density(x)
        assert (density > 0).all()
        assert density == pytest.approx(oracle.f(ell, t, x), rel=1e-8, abs=1e-13)


@pytest.mark.parametrize("ell", [1.3, 2.0, 50.0])
def test_the_mixture_of_components_is_laplace(ell: float) -> None:
    x = np.linspace(-20, 20, 4001)
    law = compute_levels(ell)
    mixture = sum(law.pmf[t] * component(ell, t).density(x) for t in range(48))
    assert np.abs(mixture - np.exp(-np.abs(x)) / 2).max() < 1e-12


@pytest.mark.parametrize("ell", [1.001, 1.3, 2.0, 7.5, 50.0, 1e6])
def test_epsilon_of_every_component_is_ell(ell: float) -> None:
    for t in range(30):
        mechanism = component(ell, t)
        assert mechanism.epsilon == pytest.approx(ell, rel=2**-50 / mechanism.step + 1e-14)


@pytest.mark.parametrize("ell", [1.001, 1.3, 2.0, 7.5, 50.0, 1e6])
def test_lipschitz_constant_of_every_component_is_ell_in_160_digits(ell: float) -> None:
    """The ratios of consecutive weights are A/B and B/(e^-2δ A), and their inverses."""
    with decimal.localcontext(oracle.DIGITS):
        for t in range(60):
            delta = oracle.delta_zero(ell) / 2**t
            first_ratio = 1 + delta * Decimal(ell)
            second_ratio = (2 * delta).exp() / first_ratio
            ratios = (first_ratio, 1 / first_ratio, second_ratio, 1 / second_ratio)
            lipschitz_constant = max((ratio - 1) / delta for ratio in ratios)
            assert lipschitz_constant <= Decimal(ell) * (1 + Decimal("1e-90"))
            assert abs(lipschitz_constant / Decimal(ell) - 1) < Decimal("1e-90")


def test_the_mean_of_minus_log_delta_obeys_the_bound_of_the_paper() -> None:
    """The bound is log(1 + e/(ℓ - 1)) - 1/2, and it is nearly reached."""
    ells = 1 + np.concatenate([np.geomspace(1e-12, 1, 60), np.linspace(1, 49, 60)])
    gaps = []
    for ell in ells.tolist():
        bound = math.log1p(math.e / (ell - 1)) - 0.5
        gaps.append(bound - compute_levels(ell).mean_neg_log_delta)
    assert 0 < min(gaps) < 0.1


@pytest.mark.parametrize("ell", [1.01, 2.0, 50.0])
def test_tail_is_the_integral_of_the_density(ell: float) -> None:
    """y is the noise in units of the step δ. The density is compared with difference quotients."""
    law = compute_levels(ell)
    y = np.concatenate([np.arange(-6, 7), np.linspace(-7, 9, 41)])
    for t in (0, 1, 3, 8):
        delta = law.deltas[t]
        h = 1e-5
        slope = (tail(y - h, delta, ell) - tail(y + h, delta, ell)) / (2 * h)
        assert slope == pytest.approx(component(ell, t).density(y * delta) * delta, abs=1e-5)
        # The noise is symmetric.
        both_tails = tail(y, delta, ell) + tail(-y, delta, ell)
        assert both_tails == pytest.approx(np.ones(y.size), abs=1e-15)
        assert tail(np.array(2000 / delta), delta, ell) == 0


@pytest.mark.parametrize("ell", [1.01, 2.0, 50.0])
@pytest.mark.parametrize("width", [0.0, 1e-9, 0.3, 1.0, 7.3])
def test_tail_mean_is_the_mean_of_the_tail(ell: float, width: float) -> None:
    """The tail is a quadratic between whole numbers, so Gauss quadrature is exact on each piece."""
    law = compute_levels(ell)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    for t in (0, 1, 3, 30):
        delta = law.deltas[t]
        for low in (-9.3, -0.4, 0.0, 0.2, 1.9999, 5.5):
            high = low + width
            knots = np.unique(
                np.concatenate([[low, high], np.arange(np.ceil(low), np.floor(high) + 1)])
            )
            left, right = knots[:-1, None], knots[1:, None]
            tails = tail((left + right) / 2 + (right - left) / 2 * nodes, delta, ell)
            integral = float(((right - left) / 2 * tails * weights).sum())
            if high > low:
                expected = integral / (high - low)
            else:
                expected = float(tail(np.array(low), delta, ell))
            mean = tail_mean(np.array(low), np.array(high), delta, ell)
            assert mean == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("ell", [1.0, 0.5, -2.0, math.nan, math.inf, 2.0**501, "2"])
def test_ell_outside_its_range_is_refused(ell: object) -> None:
    with pytest.raises(
        InvalidRequest, match=r"ell must be a finite number > 1, at most 2\^500\. Got"
    ):
        delta_zero(ell)


def test_a_negative_largest_level_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="max_level must be"):
        compute_levels(ell=2.0, max_level=-1)


@pytest.mark.parametrize("t", [-1, 80])
def test_a_level_outside_the_law_is_refused(t: int) -> None:
    with pytest.raises(InvalidRequest, match="t must be an integer from 0 to"):
        component(ell=2.0, t=t)
