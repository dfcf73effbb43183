"""Tests of Theorem 3 of Kadam et al. 2024 as it is printed, with its errors.

A staircase (h, j) is a PMF with groups of equal masses. The theorem claims that it is optimal from
δ = `lower` to δ = `upper`. Numbers such as (37c) are equations of the paper.
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
    region = next(
        step for step in staircases(n=24, mu_bar=6, epsilon=1.5) if (step.h, step.j) == (3, 1)
    )
    assert region.lower == pytest.approx(0.083636, abs=5e-7)
    assert pdp_delta(staircase_pmf(region, 1.5), (25,), one_sided_shifts(6), 1.5) == pytest.approx(
        0.087800, abs=5e-7
    )


@pytest.mark.parametrize(("n", "mu_bar"), [(24, 6), (23, 7), (14, 7), (31, 10), (8, 3), (9, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_lengths_boundaries_and_masses_follow_31_to_37(n, mu_bar, epsilon):
    b, r = divmod(n, mu_bar)
    a = math.exp(-epsilon)
    stairs = staircases(n, mu_bar, epsilon)
    if b + r < mu_bar:  # This is the domain of the theorem.
        assert len(stairs) == 1 + b * (b - 1) // 2
    # The first staircase has no predecessor. Only its sums are tested.
    for previous, step in zip([stairs[0], *stairs[:-1]], stairs, strict=True):
        h = step.h
        j = step.j
        assert sum(step.lengths) == n + 1
        assert staircase_pmf(step, epsilon).sum() == pytest.approx(1.0, rel=1e-12)
        if h == 0 or b + r >= mu_bar:
            continue
        expected = [1, *[mu_bar] * (b - h), *[mu_bar - 1] * h, r + h - (j != h)]
        if j != h:
            expected[b - h + j + 1] = mu_bar
        assert list(step.lengths) == expected  # (31)
        assert step.lower == pytest.approx(
            step.mass * a ** (b - h) * sum(a**i for i in range(j)), rel=1e-12
        )
        last = a**-1 if j == h else sum(a**i for i in range(j + 1))
        assert step.upper == pytest.approx(step.mass * a ** (b - h) * last, rel=1e-12)
        # This is the second form of (37c).
        lower = step.mass / previous.mass * previous.upper
        assert step.lower == pytest.approx(lower, rel=1e-12)


@pytest.mark.parametrize(("n", "mu_bar"), [(24, 6), (23, 7), (14, 7), (31, 10), (8, 3), (9, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_first_staircase_is_the_optimum_at_delta_0(n, mu_bar, epsilon):
    optimum_at_delta_0 = hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon)
    first_mass = staircases(n, mu_bar, epsilon)[0].mass
    assert first_mass == pytest.approx(1.0 - optimum_at_delta_0.value, rel=1e-12)


def test_linear_regions_join_the_flat_ones():
    n, mu_bar, epsilon = 24, 6, 1.5
    stairs = staircases(n, mu_bar, epsilon)
    for before, step in pairwise(stairs):
        assert before.upper < step.lower <= step.upper
        start = printed_pmf(n, mu_bar, epsilon, before.upper * (1 + 1e-9))
        end = printed_pmf(n, mu_bar, epsilon, step.lower * (1 - 1e-9))
        np.testing.assert_allclose(start, staircase_pmf(before, epsilon), atol=1e-7)
        np.testing.assert_allclose(end, staircase_pmf(step, epsilon), atol=1e-7)
        middle = printed_pmf(n, mu_bar, epsilon, (before.upper + step.lower) / 2)
        assert middle.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(middle, (start + end) / 2, atol=1e-7)


def test_the_last_segment_follows_equations_42_and_43():
    pmf = printed_pmf(n=8, mu_bar=3, epsilon=1.5, delta=0.9)
    np.testing.assert_allclose(pmf, [0.9] + [0.0125] * 8, rtol=1e-12)


def test_corollary_2_claims_more_than_the_smallest_delta_for_an_error_rate():
    """The error rate is that of the last column of Table 1. Its smallest δ is .124395."""
    assert printed_level_curve(n=8, mu_bar=3, epsilon=1.5, error_rate=0.4425) == pytest.approx(
        0.1522, abs=5e-5
    )


def test_corollary_2_claims_delta_0_for_an_error_rate_above_that_of_lemma_4():
    assert printed_level_curve(n=8, mu_bar=3, epsilon=1.5, error_rate=0.5) == 0.0


def test_corollary_2_claims_one_minus_the_error_rate_in_the_last_segment():
    assert printed_level_curve(n=8, mu_bar=3, epsilon=1.5, error_rate=0.2) == pytest.approx(
        0.8, rel=1e-12
    )


def test_corollary_2_inverts_the_printed_pmf_between_two_staircases():
    error = 1 - float(printed_pmf(n=24, mu_bar=6, epsilon=1.5, delta=0.083)[0])
    assert printed_level_curve(n=24, mu_bar=6, epsilon=1.5, error_rate=error) == pytest.approx(
        0.083, rel=1e-9
    )


def test_equation_34_contradicts_35_and_36_if_j_equals_h():
    for step in staircases(n=24, mu_bar=6, epsilon=1.5)[1:]:
        second = phi_35_36(n=24, mu_bar=6, epsilon=1.5, h=step.h, j=step.j)
        assert math.isclose(second, step.mass, rel_tol=1e-9) == (step.j != step.h)


def test_the_printed_first_boundary_is_too_late_when_r_is_positive():
    stairs = staircases(n=8, mu_bar=3, epsilon=1.5)
    a = math.exp(-1.5)
    right = stairs[0].mass * a**2  # φ₀ e^{-bε}
    assert stairs[0].upper == pytest.approx(right / a, rel=1e-12)
    assert column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=right).value == pytest.approx(
        1 - stairs[0].mass, rel=1e-12
    )
    assert (
        column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=right * 1.001).value
        < 1 - stairs[0].mass - 1e-6
    )
