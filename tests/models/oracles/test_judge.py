"""Tests of `error_rate_bounds`, which asks all oracles and combines their statements.

An oracle states a closed form or a bound for the error rate 1 - f(0) of noise on a group. The
`kind` of a statement is "optimum", "upper bound" or "lower bound".
"""

import math

import numpy as np
import pytest
from oracle_truth import (
    add_opposite_shifts,
    hop_law,
    one_sided_shifts,
    pdp_delta,
    pdp_error,
    strongest_form,
)

from workbench.models.convex.requirements import HOCKEY_STICK as DP
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.oracles import (
    ORACLES,
    OutsideDomain,
    bounded_difference,
    column_cut,
    cuts,
    error_rate_bounds,
    hops,
    level_search,
)
from workbench.models.oracles.cut_vectors import Grid, evaluate_cuts
from workbench.models.oracles.question import build_question

UP_TO_2_BOTH_WAYS = add_opposite_shifts((9,), one_sided_shifts(2))
BY_1_OR_3_BOTH_WAYS = add_opposite_shifts((9,), [(1,), (3,)])


@pytest.mark.parametrize(
    ("is_directed", "notion", "delta", "shifts", "name"),
    [
        (True, DP, 0.0, one_sided_shifts(3), "hop law"),
        (True, PDP, 0.0, one_sided_shifts(3), "hop law"),
        (True, DP, 0.1, one_sided_shifts(3), "hockey-stick law"),
        (False, DP, 0.1, UP_TO_2_BOTH_WAYS, "hockey-stick law"),
        (True, PDP, 0.1, [(2,)], "Theorem 2"),
        (False, PDP, 0.1, [(2,), (7,)], "symmetric single distance"),
        (True, PDP, 0.1, one_sided_shifts(3), "column-cut law"),
        (False, PDP, 0.05, UP_TO_2_BOTH_WAYS, "level cut"),
        (False, PDP, 0.2, BY_1_OR_3_BOTH_WAYS, "level search"),
    ],
)
def test_each_question_is_answered_by_its_oracle(is_directed, notion, delta, shifts, name):
    verdict = strongest_form(
        (9,), shifts, is_directed=is_directed, epsilon=1.5, delta=delta, requires=notion
    )
    assert (verdict.name, verdict.kind) == (name, "optimum")


def test_a_shift_that_is_its_own_opposite_is_one_shift():
    verdict = strongest_form((8,), [(4,)], is_directed=False, epsilon=1.0, delta=0.1, requires=PDP)
    assert verdict.name == "Theorem 2"
    assert verdict.value == pytest.approx(1 / (1 + math.e), rel=1e-12)


# The first δ > 0 of Table 1 of Kadam et al. 2024, for which the column-cut law is known.
TABLE_1_DELTA = 0.1212


@pytest.mark.parametrize(
    ("sizes", "shifts"),
    [
        # The shifts 1, 2 and 3 in units of 2 modulo 9.
        ((9,), [(4,), (2,), (6,)]),
        # These shifts generate a copy of Z_9.
        ((18, 2), [(4, 0), (8, 0), (12, 0)]),
    ],
    ids=["other unit", "other group"],
)
def test_bounded_differences_are_recognised_after_a_change_of_unit_or_group(sizes, shifts):
    budget = {"epsilon": 1.5, "delta": TABLE_1_DELTA, "requires": PDP}
    plain_form = strongest_form((9,), one_sided_shifts(3), is_directed=True, **budget)
    form = strongest_form(sizes, shifts, is_directed=True, **budget)
    assert form.name == "column-cut law"
    assert form.value == plain_form.value
    assert pdp_delta(form.pmf, sizes, shifts, 1.5) <= TABLE_1_DELTA


def test_neighbours_at_every_difference_are_bounded_differences():
    form = strongest_form(
        (6,), one_sided_shifts(5), is_directed=False, epsilon=1.0, delta=0.1, requires=PDP
    )
    assert (form.name, form.kind) == ("column-cut law", "optimum")
    assert form.value == pytest.approx(
        strongest_form(
            (6,), one_sided_shifts(5), is_directed=True, epsilon=1.0, delta=0.0, requires=DP
        ).value,
        rel=1e-12,
    )


@pytest.mark.parametrize("seed", range(10))
def test_bounds_enclose_the_optimum_of_the_milp(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 8))
    shifts = sorted({(int(rng.integers(1, size)),) for _ in range(3)})
    directed = bool(seed % 2)
    if not directed:
        shifts = add_opposite_shifts((size,), shifts)
    epsilon = float(rng.uniform(0.3, 1.5))
    delta = float(rng.uniform(0.02, 0.5))
    error = pdp_error((size,), shifts, epsilon, delta)
    bounds = error_rate_bounds((size,), shifts, directed, epsilon, delta, requires=PDP, nodes=0)
    assert bounds.lower.value - 2e-5 <= error <= bounds.upper.value + 2e-5
    assert strongest_form((size,), shifts, directed, epsilon, delta, PDP).value == pytest.approx(
        error, abs=2e-5
    )


def test_several_budgets_have_an_optimum_under_dp_and_a_bound_under_pdp():
    budgets = {(1,): 0.5, (2,): 1.0}
    assert (
        strongest_form(
            (7,), list(budgets), is_directed=True, epsilon=budgets, delta=0.0, requires=DP
        ).kind
        == "optimum"
    )
    assert (
        strongest_form(
            (7,), list(budgets), is_directed=True, epsilon=budgets, delta=0.1, requires=DP
        ).kind
        == "optimum"
    )
    under_pdp = error_rate_bounds(
        sizes=(7,), shifts=list(budgets), is_directed=True, epsilon=budgets, delta=0.1, requires=PDP
    )
    assert under_pdp.lower.kind == "lower bound"
    assert under_pdp.upper is None
    assert (
        strongest_form(
            (7,), list(budgets), is_directed=True, epsilon=budgets, delta=0.1, requires=PDP
        )
        is under_pdp.lower
        or under_pdp.lower.pmf is None
    )
    equal_budgets = {(1,): 1.5, (2,): 1.5, (3,): 1.5}
    form = strongest_form(
        (9,),
        list(equal_budgets),
        is_directed=True,
        epsilon=equal_budgets,
        delta=0.1212,
        requires=PDP,
    )
    assert form.name == "column-cut law"


def test_the_zero_shift_is_ignored():
    assert (
        strongest_form(
            (8,), [(0,), (3,)], is_directed=True, epsilon=0.75, delta=0.1, requires=PDP
        ).name
        == "Theorem 2"
    )


@pytest.mark.parametrize(
    ("shifts", "epsilon", "delta"),
    [
        (one_sided_shifts(3), 1.5, 0.1522),
        (one_sided_shifts(2), 0.5, 0.2),
        ([(1,), (2,), (4,)], 1.0, 0.3),
        ([(3,), (5,)], 1.0, 0.02),
    ],
)
def test_bounds_are_the_best_statements_of_all_oracles(shifts, epsilon, delta):
    question = build_question(
        sizes=(9,), shifts=shifts, is_directed=True, epsilon=epsilon, delta=delta, requires=PDP
    )
    forms = [form for oracle in ORACLES for form in oracle(question)]
    bounds = error_rate_bounds(
        sizes=(9,),
        shifts=shifts,
        is_directed=True,
        epsilon=epsilon,
        delta=delta,
        requires=PDP,
        nodes=0,
    )
    assert bounds.lower.value == max(form.value for form in forms if form.kind == "lower bound")
    assert bounds.upper.value == min(form.value for form in forms if form.kind == "upper bound")


def test_cached_results_equal_fresh_results():
    questions = [
        (sizes, shifts, directed, epsilon, delta, notion)
        for sizes, shifts, directed in [
            ((9,), add_opposite_shifts((9,), one_sided_shifts(3)), False),
            ((9,), one_sided_shifts(3), True),
            ((8,), [(4,), (2,), (6,)], False),
            ((3, 4), [(0, 1), (0, 3), (1, 0), (2, 0)], False),
        ]
        for epsilon in (0.4, 1.5)
        for notion in (DP, PDP)
        for delta in (0.0, 0.03, 0.3)
    ]

    def clear_caches():
        """Clear the cached functions of the oracles, also those inside decorated functions."""
        for module in (hops, cuts, bounded_difference, column_cut, level_search):
            for member in vars(module).values():
                closure = getattr(member, "__closure__", None) or ()
                for function in (member, *(cell.cell_contents for cell in closure)):
                    if hasattr(function, "cache_clear"):
                        function.cache_clear()

    def describe_bounds(question):
        """Return name, kind, error rate and PMF of both bounds of a question."""
        bounds = error_rate_bounds(*question)
        return [
            (form.name, form.kind, form.value, None if form.pmf is None else form.pmf.tolist())
            for form in (bounds.lower, bounds.upper)
        ]

    fresh_bounds = []
    for question in questions:
        clear_caches()
        fresh_bounds.append(describe_bounds(question))
    assert [describe_bounds(question) for question in reversed(questions)] == fresh_bounds[::-1]


def test_the_pmf_of_a_law_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        hop_law((9,), one_sided_shifts(3), 1.5).pmf[0] = 0.0


def test_other_losses_than_the_error_rate_have_no_oracle():
    assert (
        strongest_form(
            (9,),
            one_sided_shifts(3),
            is_directed=True,
            epsilon=1.5,
            delta=0.1,
            requires=PDP,
            loss="squared",
        )
        is None
    )


def test_shifts_without_their_opposites_are_refused():
    with pytest.raises(
        OutsideDomain,
        match=r"^shifts must be closed under negation unless directed\. Missing \(8,\)\.$",
    ):
        strongest_form(
            (9,), one_sided_shifts(3), is_directed=False, epsilon=1.5, delta=0.1, requires=PDP
        )


def test_large_groups_are_answered_by_scalable_oracles():
    shifts = add_opposite_shifts((5000,), one_sided_shifts(3))
    bounds = error_rate_bounds(
        sizes=(5000,), shifts=shifts, is_directed=False, epsilon=1.0, delta=1e-3, requires=PDP
    )
    assert bounds.lower.value < bounds.upper.value
    assert bounds.upper.name == "level cut"
    assert (
        strongest_form(
            (5000,), shifts, is_directed=False, epsilon=1.0, delta=0.0, requires=PDP
        ).kind
        == "optimum"
    )


def test_a_skipped_search_is_reported():
    large = strongest_form(
        (1001,), [(1,), (3,), (4,)], is_directed=True, epsilon=1.0, delta=0.05, requires=PDP
    )
    assert large.kind == "upper bound"
    assert "was left out: sizes must have a product of at most 300" in large.proof


def test_an_unfinished_search_is_reported():
    short = strongest_form(
        (40,), [(1,), (3,), (4,)], is_directed=True, epsilon=0.3, delta=0.05, requires=PDP, nodes=50
    )
    assert short.kind == "upper bound"
    assert "stopped after 50 decisions" in short.proof


def test_the_law_of_a_long_range_is_that_of_the_best_cut_vector():
    """The oracle does not list cuts here; the test tries all cut vectors (a, b) with a >= b."""
    n, epsilon, delta = 2500, 1.0, 0.1
    law = strongest_form(
        (n + 1,), [(1,), (2,)], is_directed=True, epsilon=epsilon, delta=delta, requires=PDP
    )
    assert law.kind == "optimum"
    grid = Grid(n, mu_bar=2, epsilon=epsilon)
    rows = np.arange(2, 60)  # Deeper cuts gain less than the rounding error.
    cuts = evaluate_cuts(grid, np.array([(a, b) for a in rows for b in rows if a >= b]))
    best = np.minimum(1 / cuts.totals, delta / cuts.broken_weights).max()
    assert 1 - law.value == pytest.approx(best, abs=1e-15)
