"""Tests of the oracle that searches level functions: MILP, brute force, other closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_truth import (
    add_opposite_shifts,
    level_cut_law,
    one_sided_shifts,
    pdp_delta,
    pdp_error,
    strongest_form,
)

from workbench.models.convex.requirements import HOCKEY_STICK as DP
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.oracles import OutsideDomain, error_rate_bounds
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.level_search import DEFAULT_NODES, search_levels
from workbench.models.oracles.question import ClosedForm, build_question
from workbench.models.oracles.single_distance import single_distance_law


def improve_level_cut(
    sizes, shifts, epsilon: float, delta: float, nodes: int = DEFAULT_NODES
) -> ClosedForm:
    """Return the result of a level search that starts from the best level cut."""
    return search_levels(
        build_question(sizes, shifts, is_directed=True, epsilon=epsilon, delta=delta, requires=PDP),
        level_cut_law(sizes, shifts, epsilon, delta),
        nodes,
    )


@pytest.mark.parametrize("seed", range(24))
def test_the_level_search_has_the_optimum_of_the_milp(seed):
    rng = np.random.default_rng(seed)
    sizes = [(5,), (6,), (7,), (8,), (2, 3), (2, 2, 2)][seed % 6]
    shifts = sorted(
        {tuple(int(rng.integers(n)) for n in sizes) for _ in range(3)} - {(0,) * len(sizes)}
    )
    is_symmetric = seed % 2 == 1
    if is_symmetric:
        shifts = add_opposite_shifts(sizes, shifts)
    epsilon, delta = float(rng.uniform(0.3, 1.5)), float(rng.uniform(0.02, 0.4))
    form = improve_level_cut(sizes, shifts, epsilon, delta)
    assert form.kind == "optimum"
    assert form.value == pytest.approx(pdp_error(sizes, shifts, epsilon, delta), abs=2e-5)


def best_levels_by_brute_force(n: int, shifts: list[int], epsilon: float, delta: float) -> float:
    """Return the largest f(0) of the level theorem over all level functions with values 0..n, ∞.

    The element 0 has level 0. Level n + 1 stands for ∞.
    """
    size = n + 1
    powers = [math.exp(-epsilon * level) for level in range(n + 1)] + [0.0]
    levels = np.array(np.meshgrid(*[range(n + 2)] * n, indexing="ij")).reshape(n, -1)
    levels = np.vstack([np.zeros(levels.shape[1], dtype=int), levels])
    mass = np.array(powers)[levels]
    totals = mass.sum(axis=0)
    charges = np.zeros_like(totals)
    for mu in shifts:
        charge = np.zeros_like(totals)
        for k in range(size):
            target = levels[(k + mu) % size]
            is_broken = (target > levels[k] + 1) | ((target == n + 1) & (levels[k] <= n))
            charge += np.where(is_broken, mass[k], 0.0)
        charges = np.maximum(charges, charge)
    return float(np.minimum(1 / totals, delta / np.maximum(charges, 1e-300)).max())


@pytest.mark.parametrize(
    ("n", "shifts"),
    [(4, [1]), (4, [1, 2]), (5, [1, 2]), (5, [1, 5]), (5, [2, 3]), (5, [1, 2, 4, 5]), (5, [1, 4])],
)
def test_the_search_finds_the_best_level_function_of_brute_force(n, shifts):
    rng = np.random.default_rng(n + sum(shifts))
    for _ in range(4):
        epsilon, delta = float(rng.uniform(0.1, 1.5)), float(rng.uniform(0.01, 0.5))
        form = improve_level_cut((n + 1,), [(mu,) for mu in shifts], epsilon, delta)
        expected = best_levels_by_brute_force(n, shifts, epsilon, delta)
        assert 1.0 - form.value == pytest.approx(expected, rel=1e-11)


@given(
    st.sampled_from([(9,), (10,), (12,), (13,), (3, 3), (4, 4), (2, 6)]),
    st.data(),
    st.floats(0.1, 3.0),
    st.floats(0.0, 1.0),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_level_search_finds_feasible_noise(sizes, data, epsilon, delta, symmetric):
    shift = st.tuples(*(st.integers(0, n - 1) for n in sizes)).filter(any)
    shifts = data.draw(st.lists(shift, min_size=1, max_size=3, unique=True))
    shifts = add_opposite_shifts(sizes, shifts) if symmetric else shifts
    form = improve_level_cut(sizes, shifts, epsilon, delta, nodes=20_000)
    assert form.pmf.sum() == pytest.approx(1.0, abs=1e-11)
    assert form.pmf.min() >= 0.0
    assert form.value == pytest.approx(1.0 - form.pmf[0], abs=1e-11)
    assert pdp_delta(form.pmf, sizes, shifts, epsilon) <= delta * (1 + 1e-11) + 1e-15
    # Every PDP mechanism is a DP mechanism, so the optimum of DP is a lower bound.
    dp_optimum = strongest_form(
        sizes, shifts, is_directed=True, epsilon=epsilon, delta=delta, requires=DP
    )
    assert dp_optimum.value <= form.value + 1e-12


def test_below_ln_2_the_search_improves_on_column_cuts():
    """The optimal noise breaks pairs of elements that both have mass, which no cut does."""
    form = improve_level_cut(sizes=(9,), shifts=one_sided_shifts(2), epsilon=0.5, delta=0.2)
    assert form.kind == "optimum"
    # It attains the chain bound (test_bounded_difference.py).
    assert form.pmf[0] == pytest.approx(0.329744254, abs=5e-10)
    assert form.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert pdp_delta(form.pmf, (9,), one_sided_shifts(2), 0.5) == pytest.approx(0.2, rel=1e-12)
    assert form.value < column_cut_law(n=8, mu_bar=2, epsilon=0.5, delta=0.2).value


def test_the_level_search_agrees_with_the_proven_laws():
    for n, mu_bar, epsilon, delta in ((24, 6, 1.5, 0.05), (30, 5, 0.8, 0.01), (20, 12, 0.2, 0.03)):
        law = column_cut_law(n, mu_bar, epsilon, delta)
        assert law.kind == "optimum"
        form = improve_level_cut((n + 1,), one_sided_shifts(mu_bar), epsilon, delta)
        assert form.value == pytest.approx(law.value, rel=1e-11)


def test_the_level_search_agrees_with_theorem_2_for_a_single_difference():
    law = single_distance_law(sizes=(40,), shift=(7,), epsilon=0.3, delta=0.02)
    form = improve_level_cut(sizes=(40,), shifts=[(7,)], epsilon=0.3, delta=0.02)
    assert form.value == pytest.approx(law.value, rel=1e-11)


def test_the_level_search_improves_on_column_cuts_of_a_long_range():
    """The case is that of the header of `cut_vectors`, where f(0) grows by the share 6e-5."""
    epsilon = 0.8772127281147313
    delta = 0.05058276231484343
    law = column_cut_law(n=59, mu_bar=7, epsilon=epsilon, delta=delta)
    form = improve_level_cut(
        sizes=(60,), shifts=one_sided_shifts(7), epsilon=epsilon, delta=delta, nodes=400_000
    )
    assert law.kind == "upper bound"
    assert form.kind == "optimum"
    growth_of_zero_mass = (1 - form.value) / (1 - law.value) - 1
    assert growth_of_zero_mass == pytest.approx(6.09e-5, rel=0.01)


def test_symmetric_neighbours_without_a_formula_get_an_optimum():
    sizes = (33,)
    shifts = add_opposite_shifts(sizes, one_sided_shifts(3))
    delta = 0.1047
    bounds = error_rate_bounds(
        sizes, shifts, is_directed=False, epsilon=1.0, delta=delta, requires=PDP
    )
    assert bounds.upper is bounds.lower
    assert bounds.upper.kind == "optimum"
    assert pdp_delta(bounds.upper.pmf, sizes, shifts, 1.0) <= delta * (1 + 1e-11)


def test_a_stopped_search_gives_an_upper_bound():
    sizes, shifts = (33,), add_opposite_shifts((33,), one_sided_shifts(3))
    stopped = improve_level_cut(sizes, shifts, epsilon=0.5, delta=0.1029, nodes=50)
    finished = improve_level_cut(sizes, shifts, epsilon=0.5, delta=0.1029)
    assert stopped.kind == "upper bound"
    assert finished.kind == "optimum"
    assert finished.value < stopped.value
    bounds = error_rate_bounds(
        sizes, shifts, is_directed=False, epsilon=0.5, delta=0.1029, requires=PDP, nodes=50
    )
    assert bounds.lower.kind == "lower bound"
    assert bounds.upper.kind == "upper bound"
    assert bounds.lower.value <= finished.value <= bounds.upper.value


def test_large_groups_are_refused():
    with pytest.raises(
        OutsideDomain, match=r"^sizes must have a product of at most 300\. Got \(301,\)\.$"
    ):
        improve_level_cut(sizes=(301,), shifts=[(1,), (2,)], epsilon=1.0, delta=0.1)
