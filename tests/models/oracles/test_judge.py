import math

import numpy as np
import pytest
from oracle_truth import both_ways, hop_law, judge, pdp_delta, pdp_error, run

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


def test_each_question_finds_its_oracle():
    sizes = (9,)
    pair, near = [(2,), (7,)], both_ways(sizes, run(2))
    names = {
        (True, DP, 0.0, tuple(run(3))): "hop law",
        (True, PDP, 0.0, tuple(run(3))): "hop law",
        (True, DP, 0.1, tuple(run(3))): "hockey-stick law",
        (False, DP, 0.1, tuple(near)): "hockey-stick law",
        (True, PDP, 0.1, ((2,),)): "Theorem 2",
        (False, PDP, 0.1, tuple(pair)): "symmetric single distance",
        (True, PDP, 0.1, tuple(run(3))): "column-cut law",
        (False, PDP, 0.05, tuple(near)): "level cut",
        (False, PDP, 0.2, tuple(both_ways((9,), [(1,), (3,)]))): "level search",
    }
    for (directed, notion, delta, shifts), name in names.items():
        verdict = judge(sizes, shifts, directed, 1.5, delta, notion)
        assert (verdict.name, verdict.kind) == (name, "optimum")


def test_a_shift_that_is_its_own_opposite_is_one_shift():
    verdict = judge((8,), [(4,)], False, 1.0, 0.1, PDP)
    assert verdict.name == "Theorem 2"
    assert verdict.value == pytest.approx(1 / (1 + math.e), rel=1e-12)


def test_bounded_difference_is_seen_through_any_unit_and_in_any_group():
    form = judge((9,), run(3), True, 1.5, 0.1212, PDP)
    turned = judge((9,), [(4,), (2,), (6,)], True, 1.5, 0.1212, PDP)
    assert turned.name == "column-cut law"
    assert turned.value == form.value
    assert pdp_delta(turned.pmf, (9,), [(2,), (4,), (6,)], 1.5) <= 0.1212
    inside = judge(
        (18, 2), [(4, 0), (8, 0), (12, 0)], True, 1.5, 0.1212, PDP
    )  # This subgroup is a copy of Z_9.
    assert inside.name == "column-cut law"
    assert inside.value == form.value
    assert pdp_delta(inside.pmf, (18, 2), [(4, 0), (8, 0), (12, 0)], 1.5) <= 0.1212


def test_every_other_answer_is_one_shift_in_both_directions():
    form = judge((6,), run(5), False, 1.0, 0.1, PDP)
    assert (form.name, form.kind) == ("column-cut law", "optimum")
    assert form.value == pytest.approx(judge((6,), run(5), True, 1.0, 0.0, DP).value, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_bracket_the_milp(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 8))
    shifts = sorted({(int(rng.integers(1, size)),) for _ in range(3)})
    directed = bool(seed % 2)
    shifts = shifts if directed else both_ways((size,), shifts)
    epsilon, delta = float(rng.uniform(0.3, 1.5)), float(rng.uniform(0.02, 0.5))
    error = pdp_error((size,), shifts, epsilon, delta)
    bounds = error_rate_bounds((size,), shifts, directed, epsilon, delta, PDP, nodes=0)
    assert bounds.lower.value - 2e-5 <= error <= bounds.upper.value + 2e-5
    assert judge((size,), shifts, directed, epsilon, delta, PDP).value == pytest.approx(
        error, abs=2e-5
    )


def test_one_epsilon_per_shift():
    budgets = {(1,): 0.5, (2,): 1.0}
    assert judge((7,), list(budgets), True, budgets, 0.0, DP).kind == "optimum"
    assert judge((7,), list(budgets), True, budgets, 0.1, DP).kind == "optimum"
    under_pdp = error_rate_bounds((7,), list(budgets), True, budgets, 0.1, PDP)
    assert under_pdp.lower.kind == "lower bound"
    assert under_pdp.upper is None
    assert (
        judge((7,), list(budgets), True, budgets, 0.1, PDP) is under_pdp.lower
        or under_pdp.lower.pmf is None
    )
    alike = {(1,): 1.5, (2,): 1.5, (3,): 1.5}
    assert judge((9,), list(alike), True, alike, 0.1212, PDP).name == "column-cut law"


def test_the_zero_shift_does_not_hide_a_single_shift():
    assert judge((8,), [(0,), (3,)], True, 0.75, 0.1, PDP).name == "Theorem 2"


@pytest.mark.parametrize(
    ("shifts", "epsilon", "delta"),
    [
        (run(3), 1.5, 0.1522),
        (run(2), 0.5, 0.2),
        ([(1,), (2,), (4,)], 1.0, 0.3),
        ([(3,), (5,)], 1.0, 0.02),
    ],
)
def test_bounds_are_the_best_of_what_each_oracle_proves(shifts, epsilon, delta):
    question = build_question((9,), shifts, True, epsilon, delta, PDP)
    stated = [bounds for oracle in ORACLES for bounds in oracle(question)]
    bounds = error_rate_bounds((9,), shifts, True, epsilon, delta, PDP, nodes=0)
    assert bounds.lower.value == max(one.value for one in stated if one.kind == "lower bound")
    assert bounds.upper.value == min(one.value for one in stated if one.kind == "upper bound")


def test_cached_results_equal_fresh_results():
    questions = [
        (sizes, shifts, directed, epsilon, delta, notion)
        for sizes, shifts, directed in [
            ((9,), both_ways((9,), run(3)), False),
            ((9,), run(3), True),
            ((8,), [(4,), (2,), (6,)], False),
            ((3, 4), [(0, 1), (0, 3), (1, 0), (2, 0)], False),
        ]
        for epsilon in (0.4, 1.5)
        for notion in (DP, PDP)
        for delta in (0.0, 0.03, 0.3)
    ]

    def forget():
        for module in (hops, cuts, bounded_difference, column_cut, level_search):
            for value in vars(module).values():
                for part in (
                    value,
                    *(cell.cell_contents for cell in getattr(value, "__closure__", None) or ()),
                ):
                    if hasattr(part, "cache_clear"):
                        part.cache_clear()

    def asked(question):
        verdicts = error_rate_bounds(*question)
        return [
            (v.name, v.kind, v.value, None if v.pmf is None else v.pmf.tolist())
            for v in (verdicts.lower, verdicts.upper)
        ]

    fresh = []
    for question in questions:
        forget()
        fresh.append(asked(question))
    assert [asked(question) for question in reversed(questions)] == fresh[::-1]
    with pytest.raises(ValueError, match="read-only"):
        hop_law((9,), run(3), 1.5).pmf[0] = 0.0


def test_unknown_losses_have_no_oracle():
    assert judge((9,), run(3), True, 1.5, 0.1, PDP, loss="squared") is None


def test_malformed_questions_are_refused():
    with pytest.raises(
        OutsideDomain,
        match=r"^shifts must be closed under negation unless directed\. Missing \(8,\)\.$",
    ):
        judge((9,), run(3), False, 1.5, 0.1, PDP)


def test_large_groups_are_answered_by_scalable_oracles():
    shifts = both_ways((5000,), run(3))
    bounds = error_rate_bounds((5000,), shifts, False, 1.0, 1e-3, PDP)
    assert bounds.lower.value < bounds.upper.value
    assert bounds.upper.name == "level cut"
    assert judge((5000,), shifts, False, 1.0, 0.0, PDP).kind == "optimum"


def test_skipped_and_unfinished_searches_are_reported():
    large = judge((1001,), [(1,), (3,), (4,)], True, 1.0, 0.05, PDP)
    assert large.kind == "upper bound"
    assert "was left out: sizes must have a product of at most 300" in large.proof
    short = judge((40,), [(1,), (3,), (4,)], True, 0.3, 0.05, PDP, nodes=50)
    assert short.kind == "upper bound"
    assert "stopped after 50 decisions" in short.proof


def test_a_long_range_is_judged_without_listing_its_cuts():
    """With 1250 rows of two columns, law and chain bound are those of all vectors c1 >= c2."""
    n, epsilon, delta = 2500, 1.0, 0.1
    law = judge((n + 1,), [(1,), (2,)], True, epsilon, delta, PDP)
    assert law.kind == "optimum"
    grid = Grid(n, 2, epsilon)
    rows = np.arange(2, 60)  # Deeper cuts gain less than the rounding error.
    cuts = evaluate_cuts(grid, np.array([(a, b) for a in rows for b in rows if a >= b]))
    best = np.minimum(1 / cuts.totals, delta / cuts.losses).max()
    assert 1 - law.value == pytest.approx(best, abs=1e-15)
