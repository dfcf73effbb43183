"""Tests of the optimal noise at δ = 0 (the hop law) and of the distances it is made of.

The hop law gives η the weight e^(-ε d), d the smallest number of shifts from 0 to η.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_truth import (
    add_opposite_shifts,
    directed_question,
    dp_error,
    hop_distances,
    hop_law,
    one_sided_shifts,
    shifted_positions,
)
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.hops import hop_weights, shift_multiples, shift_order
from workbench.models.oracles.single_distance import single_distance_law


@st.composite
def groups(draw):
    """Draw the sizes of a group and one to four shifts."""
    sizes = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    shift = st.tuples(*(st.integers(-9, 9) for _ in sizes))
    return sizes, draw(st.lists(shift, min_size=1, max_size=4))


def graph_distances(sizes, budgets):
    """Return the distance of every element from 0, by Dijkstra's algorithm. budgets: step lengths."""
    size = math.prod(sizes)
    lightest = np.full((size, size), np.inf)
    for shift, weight in budgets.items():
        for source, target in enumerate(shifted_positions(sizes, shift)):
            if source != target:
                lightest[source, target] = min(lightest[source, target], weight)
    source, target = np.nonzero(np.isfinite(lightest))
    graph = csr_array((lightest[source, target], (source, target)), shape=(size, size))
    return dijkstra(graph, indices=0)


@given(groups())
@settings(max_examples=150, deadline=None)
def test_hop_distances_are_shortest_paths(group):
    sizes, shifts = group
    expected = graph_distances(sizes, dict.fromkeys(shifts, 1.0))
    distances = hop_distances(sizes, shifts)
    assert np.array_equal(distances, np.where(np.isinf(expected), -1, expected))


@given(groups(), st.lists(st.floats(0.01, 5.0), min_size=4, max_size=4))
@settings(max_examples=150, deadline=None)
def test_budget_distances_are_weighted_shortest_paths(group, weights):
    sizes, shifts = group
    budgets = dict(zip(shifts, weights, strict=False))
    reduced = directed_question(sizes, list(budgets), budgets).budgets
    distances = hop_weights(sizes, tuple(reduced.items()))
    np.testing.assert_allclose(distances, np.exp(-graph_distances(sizes, reduced)), rtol=1e-11)


def test_distances_count_many_repetitions_of_one_shift():
    # The shift has order 4999: the last element needs 4998 steps, so every doubling is used.
    distances = hop_distances(sizes=(4999,), shifts=[(7,)])
    assert sorted(distances.tolist()) == list(range(4999))
    assert distances[4999 - 7] == 4998


@given(groups(), st.floats(0.05, 4.0))
@settings(max_examples=100, deadline=None)
def test_the_hop_law_is_private_and_sums_to_one(group, epsilon):
    sizes, shifts = group
    law = hop_law(sizes, shifts, epsilon)
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.value == pytest.approx(1.0 - law.pmf[0], abs=1e-12)
    for shift in shifts:
        assert np.all(
            law.pmf <= math.exp(epsilon) * law.pmf[shifted_positions(sizes, shift)] * (1 + 1e-12)
        )


@pytest.mark.parametrize("seed", range(6))
def test_the_hop_law_of_several_budgets_has_the_optimum_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    sizes = [(7,), (8,), (3, 4), (2, 2, 3), (9,), (12,)][seed]
    shifts = {tuple(int(rng.integers(n)) for n in sizes) for _ in range(3)} - {(0,) * len(sizes)}
    budgets = {shift: float(rng.uniform(0.2, 2.0)) for shift in sorted(shifts)}
    assert hop_law(sizes, list(budgets), budgets).value == pytest.approx(
        dp_error(sizes, budgets, delta=0.0), abs=1e-8
    )


def test_the_printed_examples_of_vector_queries():
    square = [(i, j) for i in range(3) for j in range(3)]
    assert hop_law((5, 5), square, 3.0).pmf[0] == pytest.approx(0.6954312896, abs=5e-11)  # (59)
    assert hop_law((7, 7), [(i, j) for i in (1, 3) for j in (2, 5)], 3.0).pmf[0] == pytest.approx(
        0.8174751, abs=5e-8
    )
    # The case n = 16 of Fig. 14.
    for epsilon, error_rate in ((0.5, 0.8622908), (1.0, 0.7335712), (1.5, 0.5717809)):
        law = hop_law((17,), [(1,), (3,), (5,), (6,)], epsilon)
        assert law.value == pytest.approx(error_rate, abs=5e-8)


def test_masses_of_matrix_59_fall_with_the_larger_coordinate():
    square = [(i, j) for i in range(3) for j in range(3)]
    law = hop_law((5, 5), square, 3.0).pmf.reshape(5, 5)
    rows = np.maximum.outer(np.ceil(np.arange(5) / 2), np.ceil(np.arange(5) / 2))
    np.testing.assert_allclose(law, law[0, 0] * np.exp(-3.0 * rows), rtol=1e-12)


def test_symmetric_neighbours_have_a_larger_error_rate_than_one_sided_ones():
    """The values are those of the erratum to (6) in results/README.md."""
    one_sided = one_sided_shifts(3)
    symmetric = add_opposite_shifts((9,), one_sided)
    assert hop_law((9,), one_sided, 1.5).value == pytest.approx(0.456808, abs=5e-7)
    assert hop_law((9,), symmetric, 1.5).value == pytest.approx(0.589887, abs=5e-7)


@pytest.mark.parametrize(("n", "mu_bar"), [(1, 1), (8, 3), (9, 9), (24, 6), (17, 5), (40, 1)])
@pytest.mark.parametrize("epsilon", [0.05, 1.5, 20.0])
def test_lemma_4_is_a_hop_law(n, mu_bar, epsilon):
    closed, law = (
        column_cut_law(n, mu_bar, epsilon, delta=0.0),
        hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon),
    )
    assert closed.value == pytest.approx(law.value, rel=1e-12)
    np.testing.assert_allclose(closed.pmf, law.pmf, rtol=1e-12)


def limit_of_long_ranges(reach: int, epsilon: float) -> float:
    """Return the error rate κa/(κa + 1 - a) as n -> ∞, equation (49) of Kadam et al. 2024.

    κ is `reach`: μ̄ if neighbours are directed, else 2μ̄.
    """
    a = math.exp(-epsilon)
    return reach * a / (reach * a + 1 - a)


def test_error_rates_of_long_ranges_are_near_the_limit():
    for epsilon in (0.3, 1.0):
        assert hop_law((4001,), one_sided_shifts(3), epsilon).value == pytest.approx(
            limit_of_long_ranges(3, epsilon), rel=1e-9
        )
        symmetric = hop_law(
            (4001,), add_opposite_shifts((4001,), one_sided_shifts(3)), epsilon
        ).value
        assert symmetric == pytest.approx(limit_of_long_ranges(6, epsilon), rel=1e-9)
        long = single_distance_law(sizes=(2001,), shift=(5,), epsilon=epsilon, delta=0.0).value
        assert long == pytest.approx(math.exp(-epsilon), rel=1e-9)
    assert limit_of_long_ranges(reach=3, epsilon=0.3) > 0.5  # (50) prints 0.5 here


def test_masses_that_underflow_are_zero_without_a_warning():
    law = hop_law((5000,), [(1,)], 3.0)
    assert law.pmf[-1] == 0.0
    assert law.value == pytest.approx(math.exp(-3.0), rel=1e-12)


def test_a_tiny_error_rate_keeps_its_accuracy():
    assert hop_law((4,), [(1,)], 50.0).value == pytest.approx(math.exp(-50.0), rel=1e-12)


def test_shifts_that_generate_a_subgroup_leave_other_elements_without_mass():
    assert hop_law((6,), [(0,)], 1.0).value == 0.0
    law = hop_law((6,), [(2,), (0,), (8,)], 1.0)
    assert np.flatnonzero(law.pmf).tolist() == [0, 2, 4]


def test_the_order_of_a_shift_and_its_multiples():
    assert shift_order(sizes=(12,), shift=(8,)) == 3
    assert shift_order(sizes=(4, 6), shift=(2, 3)) == 2
    assert shift_multiples(sizes=(12,), shift=(8,)).tolist() == [0, 8, 4]
    assert shift_multiples(sizes=(2, 3), shift=(1, 1)).tolist() == [0, 4, 2, 3, 1, 5]


@pytest.mark.parametrize(
    ("sizes", "shifts", "max_distance"),
    [
        ((1_000_000,), [(1,), (2,), (3,)], 333_333),
        ((1000, 1000), [(1, 0), (0, 1), (999, 0), (0, 999)], 1000),
    ],
)
def test_distances_of_a_million_elements(sizes, shifts, max_distance):
    assert hop_distances(sizes, shifts).max() == max_distance
