"""Tests of Theorem 3 of Kadam et al. 2024 as it is printed, with its errors.

The theorem states PDP noise modulo n + 1 for answers that differ by at most μ̄ (`mu_bar`). A
staircase (h, j) is a PMF with groups of equal masses. The theorem claims that it is optimal from
δ = `lower` to δ = `upper`, a flat region. Between two flat regions is a linear region, where the
masses are linear in δ. In the notation of the paper b = ⌊n/μ̄⌋, r = n - bμ̄ and a = e^-ε. Numbers
such as (37c) are equations of the paper. The errata are listed in results/README.md.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from oracle_truth import hop_law, one_sided_shifts, pdp_delta

from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.printed_theorem3 import (
    phi_35_36,
    printed_level_curve,
    printed_pmf,
    staircase_pmf,
    staircases,
)

# The columns of the printed Table 1: δ and the masses f(0), ..., f(8).
TABLE_1 = {
    0.0: [0.5432, 0.1212, 0.1212, 0.1212, 0.0270, 0.0270, 0.0270, 0.0060, 0.0060],
    0.1212: [0.5432, 0.1212, 0.1212, 0.1212, 0.0270, 0.0270, 0.0270, 0.0060, 0.0060],
    0.1238: [0.5548, 0.1238, 0.1238, 0.1238, 0.0276, 0.0276, 0.0062, 0.0062, 0.0062],
    0.1522: [0.5575, 0.1244, 0.1244, 0.1244, 0.0278, 0.0278, 0.0062, 0.0062, 0.0014],
}


def test_the_four_printed_columns_of_table_1():
    stairs = staircases(n=8, mu_bar=3, epsilon=1.5)
    assert [(step.h, step.j) for step in stairs] == [(0, 0), (1, 1), (1, 2)]
    # The boundaries are the δ of the columns of Table 1.
    assert [round(step.lower, 4) for step in stairs] == [0.0, 0.1238, 0.1522]
    assert round(stairs[0].upper, 4) == 0.1212
    for step, delta in zip(stairs, (0.0, 0.1238, 0.1522), strict=True):
        np.testing.assert_allclose(staircase_pmf(step, 1.5), TABLE_1[delta], atol=5.1e-5)
    np.testing.assert_allclose(
        printed_pmf(n=8, mu_bar=3, epsilon=1.5, delta=0.1212), TABLE_1[0.1212], atol=5.1e-5
    )


def test_only_groups_of_mu_bar_masses_split():
    lengths = [step.lengths for step in staircases(n=9, mu_bar=3, epsilon=1.5)]
    assert lengths == [(1, 3, 3, 3), (1, 3, 3, 2, 1), (1, 3, 2, 3, 1), (1, 3, 2, 2, 2)]


def test_the_printed_columns_of_table_1_need_the_printed_delta():
    for step in staircases(n=8, mu_bar=3, epsilon=1.5):
        pmf = staircase_pmf(step, 1.5)
        assert pdp_delta(pmf, (9,), one_sided_shifts(3), 1.5) == pytest.approx(
            step.lower, abs=1e-12
        )


def test_the_last_printed_column_of_table_1_has_a_larger_error_rate_than_the_optimum():
    step = staircases(n=8, mu_bar=3, epsilon=1.5)[-1]
    assert (step.h, step.j) == (1, 2)
    optimum = column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=step.lower).value
    assert 1.0 - staircase_pmf(step, 1.5)[0] > optimum + 1e-12


def test_a_printed_pmf_needs_a_larger_delta_than_printed():
    """The erratum to (31): by (37c) the staircase needs δ = 0.083636, but it needs 0.087800."""
    steps = {(step.h, step.j): step for step in staircases(n=24, mu_bar=6, epsilon=1.5)}
    step = steps[3, 1]
    assert step.lower == pytest.approx(0.083636, abs=5e-7)
    needed_delta = pdp_delta(staircase_pmf(step, 1.5), (25,), one_sided_shifts(6), 1.5)
    assert needed_delta == pytest.approx(0.087800, abs=5e-7)


SIZES = [(24, 6), (23, 7), (14, 7), (31, 10), (8, 3), (9, 3)]  # (n, μ̄)
# The sizes in the domain of the theorem, b + r < μ̄.
SIZES_IN_DOMAIN = [(n, mu_bar) for n, mu_bar in SIZES if sum(divmod(n, mu_bar)) < mu_bar]


@pytest.mark.parametrize(("n", "mu_bar"), SIZES)
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_every_staircase_is_a_pmf_on_n_plus_1_values(n, mu_bar, epsilon):
    for step in staircases(n, mu_bar, epsilon):
        assert sum(step.lengths) == n + 1
        assert staircase_pmf(step, epsilon).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("n", "mu_bar"), SIZES_IN_DOMAIN)
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_lengths_of_the_groups_follow_31(n, mu_bar, epsilon):
    b, r = divmod(n, mu_bar)
    stairs = staircases(n, mu_bar, epsilon)
    assert len(stairs) == 1 + b * (b - 1) // 2
    for step in stairs[1:]:
        h, j = step.h, step.j
        expected = [1, *[mu_bar] * (b - h), *[mu_bar - 1] * h, r + h - (j != h)]
        if j != h:
            expected[b - h + j + 1] = mu_bar
        assert list(step.lengths) == expected


@pytest.mark.parametrize(("n", "mu_bar"), SIZES_IN_DOMAIN)
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_boundaries_of_the_flat_regions_follow_37(n, mu_bar, epsilon):
    b = n // mu_bar
    a = math.exp(-epsilon)
    for previous, step in pairwise(staircases(n, mu_bar, epsilon)):
        h, j = step.h, step.j
        lower = step.mass * a ** (b - h) * sum(a**i for i in range(j))
        assert step.lower == pytest.approx(lower, rel=1e-12)
        upper_factor = a**-1 if j == h else sum(a**i for i in range(j + 1))
        assert step.upper == pytest.approx(step.mass * a ** (b - h) * upper_factor, rel=1e-12)
        # The second form of (37c).
        assert step.lower == pytest.approx(step.mass / previous.mass * previous.upper, rel=1e-12)


@pytest.mark.parametrize(("n", "mu_bar"), SIZES)
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_first_staircase_is_the_optimum_at_delta_0(n, mu_bar, epsilon):
    optimum_at_delta_0 = hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon)
    first_mass = staircases(n, mu_bar, epsilon)[0].mass
    assert first_mass == pytest.approx(1.0 - optimum_at_delta_0.value, rel=1e-12)


def test_linear_regions_join_the_flat_ones():
    n, mu_bar, epsilon = 24, 6, 1.5
    stairs = staircases(n, mu_bar, epsilon)
    for previous, step in pairwise(stairs):
        assert previous.upper < step.lower <= step.upper
        start = printed_pmf(n, mu_bar, epsilon, previous.upper * (1 + 1e-9))
        end = printed_pmf(n, mu_bar, epsilon, step.lower * (1 - 1e-9))
        np.testing.assert_allclose(start, staircase_pmf(previous, epsilon), atol=1e-7)
        np.testing.assert_allclose(end, staircase_pmf(step, epsilon), atol=1e-7)
        middle = printed_pmf(n, mu_bar, epsilon, (previous.upper + step.lower) / 2)
        assert middle.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(middle, (start + end) / 2, atol=1e-7)


def test_the_last_segment_follows_equations_42_and_43():
    pmf = printed_pmf(n=8, mu_bar=3, epsilon=1.5, delta=0.9)
    np.testing.assert_allclose(pmf, [0.9] + [0.0125] * 8, rtol=1e-12)


def test_corollary_2_claims_more_than_the_smallest_delta_for_an_error_rate():
    """The error rate is that of the last column of Table 1. Its smallest δ is .124395."""
    claimed_delta = printed_level_curve(n=8, mu_bar=3, epsilon=1.5, error_rate=0.4425)
    assert claimed_delta == pytest.approx(0.1522, abs=5e-5)  # The δ of this column.


def test_corollary_2_claims_delta_0_for_an_error_rate_above_that_of_lemma_4():
    assert printed_level_curve(n=8, mu_bar=3, epsilon=1.5, error_rate=0.5) == 0.0


def test_corollary_2_claims_one_minus_the_error_rate_in_the_last_segment():
    claimed_delta = printed_level_curve(n=8, mu_bar=3, epsilon=1.5, error_rate=0.2)
    assert claimed_delta == pytest.approx(0.8, rel=1e-12)


def test_corollary_2_inverts_the_printed_pmf_between_two_staircases():
    error_rate = 1 - float(printed_pmf(n=24, mu_bar=6, epsilon=1.5, delta=0.083)[0])
    claimed_delta = printed_level_curve(n=24, mu_bar=6, epsilon=1.5, error_rate=error_rate)
    assert claimed_delta == pytest.approx(0.083, rel=1e-9)


def test_equation_34_contradicts_35_and_36_if_j_equals_h():
    for step in staircases(n=24, mu_bar=6, epsilon=1.5)[1:]:
        second = phi_35_36(n=24, mu_bar=6, epsilon=1.5, h=step.h, j=step.j)
        assert math.isclose(second, step.mass, rel_tol=1e-9) == (step.j != step.h)


def test_the_printed_first_boundary_is_too_late_when_r_is_positive():
    """(37b) prints φ₀ e^{-(b-1)ε}. The optimum is flat only up to φ₀ e^{-bε}; here b = 2."""
    first = staircases(n=8, mu_bar=3, epsilon=1.5)[0]
    a = math.exp(-1.5)
    true_boundary = first.mass * a**2
    assert first.upper == pytest.approx(true_boundary / a, rel=1e-12)
    flat_error_rate = 1 - first.mass
    error_rate = column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=true_boundary).value
    assert error_rate == pytest.approx(flat_error_rate, rel=1e-12)
    error_rate_beyond = column_cut_law(
        n=8, mu_bar=3, epsilon=1.5, delta=true_boundary * 1.001
    ).value
    assert error_rate_beyond < flat_error_rate - 1e-6
