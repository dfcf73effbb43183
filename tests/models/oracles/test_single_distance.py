"""Tests of the optimal PDP noise for a single difference (Theorem 2 of Kadam et al. 2024).

The noise is modulo `size` = n + 1, and the answers differ by μ, the shift. The hops of a noise
value are the number of steps by μ from 0 to it. The multiples of μ form a cycle of N_μ elements.
As δ grows, the error rate is in turn constant and linear; the ends of these sections are
breakpoints. Numbers such as (19a) are equations of the paper. Remark 3 of the paper prints n -> N_μ
and is read as n -> N_μ - 1. Corollary 1 gives the smallest δ at which an error rate is possible.

The masses of the hop law fall by the factor e^-ε with each hop. Those of a level cut do so up to
some hop, and all masses beyond it are smaller by a common factor.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_truth import hop_law, level_cut_law, pdp_delta, pdp_error

from workbench.models.oracles.rational_forms import theorem2
from workbench.models.oracles.single_distance import level_curve, single_distance_law

# The masses f(0), ..., f(7) of Figure 9, left: n = 7, μ = 3, ε = 0.75, δ = 0.
FIG_9 = [0.528945, 0.055750, 0.005876, 0.249856, 0.026335, 0.002776, 0.118023, 0.012440]


def test_masses_of_figure_9():
    """An odd shift gives every element a mass, an even one only the even elements."""
    np.testing.assert_allclose(
        single_distance_law(sizes=(8,), shift=(3,), epsilon=0.75, delta=0.0).pmf, FIG_9, atol=5e-7
    )
    even = single_distance_law(sizes=(8,), shift=(2,), epsilon=0.75, delta=0.0).pmf
    assert np.all(even[1::2] == 0.0)
    np.testing.assert_allclose(even[2::2] / even[:-2:2], math.exp(-0.75), rtol=1e-12)


def printed_theorem_2(n: int, epsilon: float, delta: float) -> np.ndarray:
    """Return the masses of (19)-(21) as printed, by the number of hops 0..n from 0."""
    a = math.exp(-epsilon)

    def lower(k: int) -> float:
        """Return the smallest δ of the k-th constant section."""
        return 0.0 if k == 0 else a ** (n - k) * (1 - a) / (1 - a ** (n - k + 1))

    def upper(k: int) -> float:
        """Return the largest δ of the k-th constant section."""
        return 1.0 if k == n else a ** (n - k - 1) * (1 - a) / (1 - a ** (n - k + 1))

    hops = np.arange(n + 1)
    for k in range(n + 1):
        if lower(k) <= delta <= upper(k):
            head = (1 - a) / (1 - a ** (n - k + 1)) * a**hops  # (20); its k = 0 is Lemma 3
            return np.where(hops <= n - k, head, 0.0)
        if k and upper(k - 1) < delta <= lower(k):
            tail = (
                np.exp((n - hops) * epsilon)
                * np.expm1(epsilon)
                / np.expm1(k * epsilon)
                * (1 - delta / lower(k))
            )
            return np.where(hops <= n - k, delta * np.exp((n - k - hops) * epsilon), tail)
    raise AssertionError("the sections cover [0, 1]")


@pytest.mark.parametrize(("size", "mu"), [(8, 3), (8, 2), (9, 6), (10, 5), (11, 4)])
@pytest.mark.parametrize("epsilon", [0.2, 0.75, 2.0])
def test_theorem_2_as_printed_with_remark_3_read_right(size, mu, epsilon):
    cycle = size // math.gcd(size, mu)
    for delta in np.linspace(0.0, 1.0, 41):
        masses = single_distance_law(sizes=(size,), shift=(mu,), epsilon=epsilon, delta=delta).pmf[
            np.arange(cycle) * mu % size
        ]
        np.testing.assert_allclose(masses, printed_theorem_2(cycle - 1, epsilon, delta), atol=1e-12)


def list_breakpoints(exp_epsilon: Fraction) -> tuple[list[float], list[float]]:
    """Return the smallest and the largest δ of the constant sections k = 0..7, for n = 7."""
    # The pieces of theorem2 end at upper(0), lower(1), upper(1), lower(2), ..., lower(7).
    inner_ends = [float(end(exp_epsilon)) for end, _ in theorem2(length=8)]
    return [0.0, *inner_ends[1::2]], [*inner_ends[::2], 1.0]


def test_the_breakpoints_of_the_formula_are_those_of_19a_to_19c():
    lower, upper = list_breakpoints(Fraction(math.exp(0.75)))
    a = math.exp(-0.75)
    n = 7
    for k in range(1, 8):
        printed_lower = a ** (n - k) * (1 - a) / (1 - a ** (n - k + 1))
        printed_upper = a ** (n - k) * (1 - a) / (1 - a ** (n - k + 2))
        assert lower[k] == pytest.approx(printed_lower, rel=1e-12)
        assert upper[k - 1] == pytest.approx(printed_upper, rel=1e-12)


def test_the_error_rate_is_constant_and_falls_in_turn_between_the_breakpoints():
    lower, upper = list_breakpoints(Fraction(math.exp(0.75)))

    def compute_error_rate(delta: float) -> float:
        """Compute the smallest error rate at δ, for n = 7 and μ = 3."""
        return single_distance_law(sizes=(8,), shift=(3,), epsilon=0.75, delta=delta).value

    for k in range(1, 8):
        flat_error_rate = compute_error_rate(lower[k])
        flat_middle = (lower[k] + upper[k]) / 2
        assert compute_error_rate(flat_middle) == pytest.approx(flat_error_rate, rel=1e-12)
        slope_middle = (upper[k - 1] + lower[k]) / 2
        slope_error_rate = compute_error_rate(slope_middle)
        assert compute_error_rate(upper[k - 1]) > slope_error_rate > flat_error_rate
        mean_of_ends = (compute_error_rate(upper[k - 1]) + flat_error_rate) / 2
        assert slope_error_rate == pytest.approx(mean_of_ends, rel=1e-12)


@given(st.integers(2, 30), st.floats(0.05, 3.0), st.floats(0.0, 0.99))
@settings(max_examples=200, deadline=None)
def test_corollary_1_inverts_theorem_2(order, epsilon, error_rate):
    """`order` is the number N_μ of elements of the cycle."""
    min_delta = level_curve(order, epsilon, error_rate)
    assert (
        single_distance_law(sizes=(order,), shift=(1,), epsilon=epsilon, delta=min_delta).value
        <= error_rate + 1e-9
    )
    if min_delta > 1e-9:
        law_below = single_distance_law(
            sizes=(order,), shift=(1,), epsilon=epsilon, delta=min_delta * (1 - 1e-6)
        )
        assert law_below.value > error_rate + 1e-13


def test_corollary_1_at_extreme_error_rates():
    assert level_curve(order=5, epsilon=1.0, error_rate=0.0) == 1.0
    assert level_curve(order=5, epsilon=1e-6, error_rate=0.85) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_theorem_2_has_the_optimum_of_the_milp(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 9))
    epsilon = float(rng.uniform(0.3, 1.5))
    delta = float(rng.uniform(0.02, 0.6))
    mu = int(rng.integers(1, size))
    law = single_distance_law(sizes=(size,), shift=(mu,), epsilon=epsilon, delta=delta)
    assert law.kind == "optimum"
    assert law.value == pytest.approx(
        pdp_error(sizes=(size,), shifts=[(mu,)], epsilon=epsilon, delta=delta), abs=2e-5
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_symmetric_law_has_the_optimum_of_the_milp(seed):
    rng = np.random.default_rng(100 + seed)
    size = int(rng.integers(3, 9))
    epsilon = float(rng.uniform(0.3, 1.5))
    delta = float(rng.uniform(0.02, 0.6))
    mu = int(rng.integers(1, (size + 1) // 2))
    law = single_distance_law(
        sizes=(size,), shift=(mu,), epsilon=epsilon, delta=delta, both_ways=True
    )
    assert law.value == pytest.approx(
        pdp_error(sizes=(size,), shifts=[(mu,), (size - mu,)], epsilon=epsilon, delta=delta),
        abs=2e-5,
    )


@given(
    st.integers(3, 25), st.integers(1, 24), st.floats(0.02, 4.0), st.floats(0.0, 1.0), st.booleans()
)
@settings(max_examples=200, deadline=None)
def test_both_laws_are_private_and_equal_the_level_cut(size, mu, epsilon, delta, symmetric):
    mu = 1 + mu % (size - 1)
    symmetric = symmetric and 2 * mu != size
    law = single_distance_law(
        sizes=(size,), shift=(mu,), epsilon=epsilon, delta=delta, both_ways=symmetric
    )
    shifts = [(mu,), (size - mu,)] if symmetric else [(mu,)]
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.pmf.min() >= 0.0
    assert law.value == pytest.approx(1.0 - law.pmf[0], abs=1e-12)
    assert pdp_delta(law.pmf, (size,), shifts, epsilon) <= delta * (1 + 1e-12) + 1e-15
    assert law.value <= hop_law((size,), shifts, epsilon).value + 1e-15
    assert level_cut_law((size,), shifts, epsilon, delta).value == pytest.approx(
        law.value, abs=1e-12
    )


def test_a_vector_shift_has_mass_on_its_own_cycle_only():
    # This shift has order 2.
    law = single_distance_law(sizes=(4, 6), shift=(2, 3), epsilon=1.0, delta=0.1)
    assert np.flatnonzero(law.pmf).tolist() == [0, 2 * 6 + 3]
    assert law.value == pytest.approx(1 / (1 + math.e), rel=1e-12)


def test_a_tiny_delta_on_a_long_cycle_gives_finite_masses():
    law = single_distance_law(sizes=(3000,), shift=(1,), epsilon=1.0, delta=1e-300)
    assert law.value == pytest.approx(math.exp(-1.0), rel=1e-12)
    assert np.isfinite(law.pmf).all()
