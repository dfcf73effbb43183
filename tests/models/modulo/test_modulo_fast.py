"""Tests of the fast method against the literal MILP and closed forms, and of stopped searches."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.models import oracles
from workbench.models.convex.requirements import HOCKEY_STICK as DP
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo.constraints import NoiseEquations
from workbench.models.modulo.fast import FastSession
from workbench.models.modulo.level_noise import distance_weights, simplest_noise
from workbench.models.modulo.patterns import NoiseProblem, build_milp, build_relaxation
from workbench.models.modulo.program import ModuloModel, loss_vector, shift_positions
from workbench.models.modulo.search import PatternSearch
from workbench.solvers.backend import Options, get_backend, solve
from workbench.solvers.session import Session
from workbench.solvers.solution import PointStatus, Termination

BD3 = ((1,), (2,), (3,))
ROUND = (*BD3, (8,), (7,), (6,))
GRID = ((0, 1), (1, 0))


def fast(
    model: ModuloModel, epsilon: list[float], delta=None, max_loss=None, solver="highs", **options
):
    with FastSession(model, get_backend(solver), Options(**options)) as session:
        return session.solve(model.values(epsilon, delta, max_loss))


def noise(sizes, shifts, epsilon: float, loss: str = "error-rate", **more) -> NoiseProblem:
    return NoiseProblem(
        sizes, shifts, np.full(len(shifts), math.exp(epsilon)), loss_vector(loss, sizes), **more
    )


def spent(sizes, shifts, levels, f) -> float:
    """The PDP delta of a PMF: the mass of the elements that break a shift, the worst shift."""
    return max(
        f[f > np.exp(e) * f[shift_positions(sizes, mu)] + 1e-11].sum()
        for mu, e in zip(shifts, levels, strict=True)
    )


@pytest.mark.parametrize(
    ("sizes", "shifts", "loss", "epsilon", "delta"),
    [
        ((9,), BD3, "error-rate", 1.5, 0.1212),
        ((9,), BD3, "error-rate", 0.5, 0.2),
        ((9,), BD3, "squared", 1.0, 0.1),
        ((9,), BD3, "eta-squared", 1.0, 0.1),
        ((9,), BD3, "circular-squared", 0.5, 0.02),
        ((9,), ROUND, "error-rate", 0.7, 0.1),
        ((9,), ROUND, "squared", 1.5, 0.1),
        ((9,), ((3,),), "error-rate", 0.7, 0.3),
        ((4, 3), GRID, "error-rate", 0.5, 0.1),
        ((3, 3), GRID, "squared", 1.0, 0.1),
        ((8,), ((1,), (4,), (5,)), "error-rate", 0.4, 0.15),
        ((7,), ((1,), (6,)), "worst-squared", 1.0, 0.1),
        ((9,), BD3, "error-rate", 1.5, 1.0),
        ((9,), BD3, "error-rate", 1.5, 1e-8),
    ],
)
def test_equals_the_literal_milp(sizes, shifts, loss, epsilon, delta):
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    literal = solve(model.program, model.values([epsilon], delta), options=Options(gap=1e-9))
    solution = fast(model, [epsilon], delta)
    assert solution.is_optimal
    assert solution.objective == pytest.approx(
        literal.objective, abs=1e-8 * max(1, literal.objective)
    )
    assert solution.bound <= solution.objective
    assert solution.gap <= 1e-9
    assert (
        solution.residuals.max_violation <= 1e-9
    )  # These are violations of (13), in its own variables.
    assert spent(sizes, shifts, [epsilon] * len(shifts), solution["f"]) <= delta + 1e-9
    assert {f"u_{'_'.join(map(str, mu))}" for mu in shifts} <= {
        block.name for block in solution.program.variables
    }


@pytest.mark.parametrize(
    ("sizes", "shifts", "loss", "epsilon", "delta"),
    [
        ((11,), BD3, "squared", 0.5, 0.02),
        ((11,), (*BD3, (10,), (9,), (8,)), "squared", 1.0, 0.02),
        ((9,), BD3, "worst-squared", 0.7, 0.03),
        ((4, 3), (*GRID, (1, 1)), "squared", 1.0, 0.02),
    ],
)
def test_splits_at_elements_lose_nothing(monkeypatch, sizes, shifts, loss, epsilon, delta):
    """A split at an element above delta: light, or with all its pairs kept."""
    splits = []
    original = PatternSearch.split_node

    def counted(self, node, pair):
        sides, alone = original(self, node, pair)
        element = self.relaxation.source[pair]
        if not alone:
            splits.append(node.x[element])
            (heavy, same), (open_, light) = sides
            assert not (heavy[self.relaxation.source == element] == 0).any()
            assert (open_ == node.pattern).all()
            assert light[element]
            assert not same[element]
        return sides, alone

    monkeypatch.setattr(PatternSearch, "split_node", counted)
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    solution = fast(model, [epsilon], delta)
    assert splits
    assert min(splits) > delta
    literal = solve(model.program, model.values([epsilon], delta), options=Options(gap=1e-9))
    assert solution.is_optimal
    assert solution.objective == pytest.approx(
        literal.objective, abs=1e-8 * max(1, literal.objective)
    )
    assert solution.gap <= 1e-9
    assert spent(sizes, shifts, [epsilon] * len(shifts), solution["f"]) <= delta + 1e-9


@pytest.mark.parametrize(
    ("sizes", "shifts", "loss", "epsilon", "delta"),
    [
        (
            (3, 3),
            ((1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)),
            "squared",
            15.0,
            0.999,
        ),  # The dual values are loose here.
        ((9,), ((1,), (2,), (7,), (8,)), "squared", 5.0, 1e-7),  # The dual values are loose here.
        ((3,), ((1,), (2,)), "squared", 15.0, 0.001),  # HiGHS's presolve reports "unbounded" here.
        ((8,), ((3,), (5,)), "error-rate", 5.0, 1e-5),  # HiGHS reports "infeasible" here.
        (
            (7,),
            ((1,), (2,), (3,), (4,), (5,), (6,)),
            "error-rate",
            5.0,
            0.001,
        ),  # A heavy kept pair has a rounding error here.
        (
            (4,),
            ((1,), (2,), (3,)),
            "worst-squared",
            15.0,
            1e-9,
        ),  # HiGHS cannot solve some programs here.
        ((8,), ((2,), (3,), (5,), (6,)), "squared", 15.0, 1e-9),
        ((6,), ((1,), (5,)), "squared", 1e-6, 1e-9),
        ((6,), ((1,), (5,)), "error-rate", 1e-6, 0.3),
        ((6,), ((1,), (2,)), "error-rate", 20.0, 0.3),
    ],
)
def test_extreme_requests_are_proven(sizes, shifts, loss, epsilon, delta):
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    solution = fast(model, [epsilon], delta)
    assert solution.is_optimal
    assert solution.notes[0].startswith("proven over violation patterns")
    assert len(solution.notes) == 1  # No note says that a status was not checked.
    assert solution.bound <= solution.objective
    assert solution.gap <= 1e-9
    assert solution.residuals.max_violation <= 1e-6
    reference = solve(model.program, model.values([epsilon], delta), "scip")
    assert solution.objective == pytest.approx(
        reference.objective, abs=1e-8 * max(1, reference.objective)
    )


def test_one_with_two_budgets_of_different_size():
    model = ModuloModel(
        (3, 3),
        ((0, 1), (1, 0), (1, 1)),
        PDP,
        loss_vector("circular-squared", (3, 3)),
        groups=(0, 0, 1),
    )
    solution = fast(model, [15.0, 1.6363266720536973], 0.001)
    assert solution.is_optimal
    assert solution.residuals.max_violation <= 1e-9  # The broken pairs are those that y covers.


def test_programs_that_are_never_solved_leave_the_proof_open(monkeypatch: pytest.MonkeyPatch):
    """A solver that fails on every decided pair gives no wrong proof; a note names the fallback."""
    model = ModuloModel((9,), BD3, PDP, loss_vector("squared", (9,)))
    optimum = fast(model, [0.5], 0.1).objective
    original = Session.solve

    def fail_when_decided(self, values=None, **more):
        answer = original(self, values, **more)
        if values and "room" in values and (np.asarray(values["room"]) == 0).any():
            return replace(
                answer, termination=Termination.NUMERICAL, point=PointStatus.NONE, x=None
            )
        return answer

    monkeypatch.setattr(Session, "solve", fail_when_decided)
    solution = fast(model, [0.5], 0.1)
    assert solution.objective == pytest.approx(optimum, abs=1e-8)
    assert solution.bound <= optimum + 1e-9
    assert "in one piece" in solution.notes[0]


def test_one_epsilon_per_difference():
    model = ModuloModel(
        (8,), ((1,), (2,), (7,)), PDP, loss_vector("error-rate", (8,)), groups=(0, 1, 0)
    )
    literal = solve(model.program, model.values([0.4, 1.1], 0.1))
    solution = fast(model, [0.4, 1.1], 0.1)
    assert solution.objective == pytest.approx(literal.objective, abs=1e-8)
    assert spent((8,), model.shifts, [0.4, 1.1, 0.4], solution["f"]) <= 0.1 + 1e-9


@pytest.mark.parametrize(
    "make",
    [
        NoiseEquations((7,)),
        NoiseEquations(equal_mass_groups=((1, 6), (2, 5))),
        lambda f: [f[0] <= 0.3, f[2] >= f[1]],
    ],
)
def test_constraints_of_the_user(make):
    model = ModuloModel((7,), ((1,), (2,)), PDP, loss_vector("error-rate", (7,)), constraints=make)
    literal = solve(model.program, model.values([1.0], 0.15))
    solution = fast(model, [1.0], 0.15)
    assert solution.objective == pytest.approx(literal.objective, abs=1e-8)
    free = fast(ModuloModel((7,), ((1,), (2,)), PDP, loss_vector("error-rate", (7,))), [1.0], 0.15)
    assert (
        free.objective < solution.objective - 1e-4
    )  # The constraint changes the optimum, so it was applied.


def test_infeasible_constraints():
    model = ModuloModel(
        (7,),
        ((1,), (2,)),
        PDP,
        loss_vector("error-rate", (7,)),
        constraints=lambda f: [f[0] >= 0.9],
    )
    solution = fast(model, [1.0], 0.15)
    assert solution.termination is Termination.INFEASIBLE
    assert solution.x is None
    # The DP relaxation is feasible here, although no pattern is.
    model = ModuloModel(
        (2,), ((1,),), PDP, loss_vector("error-rate", (2,)), constraints=lambda f: [f[0] == 0.8]
    )
    assert fast(model, [0.5], 0.5).termination is Termination.INFEASIBLE
    assert fast(model, [0.5], 0.81).is_optimal


@pytest.mark.parametrize(
    ("shifts", "loss", "max_loss"),
    [
        (BD3, "error-rate", 0.4425),
        (BD3, "error-rate", 0.3),
        (BD3, "error-rate", 0.5),
        (BD3, "squared", 8.0),
        (ROUND, "error-rate", 0.5),
    ],
)
def test_minimum_delta(shifts, loss, max_loss):
    model = ModuloModel((9,), shifts, PDP, loss_vector(loss, (9,)), minimise="delta")
    literal = solve(model.program, model.values([1.5], max_loss=max_loss))
    solution = fast(model, [1.5], max_loss=max_loss)
    assert solution.objective == pytest.approx(literal.objective, abs=1e-8)
    assert model.loss @ solution["f"] <= max_loss + 1e-9
    assert spent((9,), shifts, [1.5] * len(shifts), solution["f"]) <= solution.objective + 1e-9


@pytest.mark.parametrize("solver", ["gurobi", "scip", "ortools:gscip", "ortools"])
@pytest.mark.parametrize("loss", ["error-rate", "squared"])
def test_other_solvers(solver, loss):
    if not get_backend(solver).is_installed():
        pytest.skip(f"{solver} is not installed")
    model = ModuloModel((9,), BD3, PDP, loss_vector(loss, (9,)))
    reference = fast(model, [1.0], 0.05)
    solution = fast(model, [1.0], 0.05, solver=solver)
    assert solution.solver.startswith(solver)
    assert solution.objective == pytest.approx(reference.objective, rel=1e-8)
    assert solution.bound <= solution.objective + 1e-9
    assert solution.gap <= 1e-8


@pytest.mark.parametrize(
    ("n", "mu", "epsilon", "delta"),
    [(256, 3, 1.5, 0.1), (256, 3, 1.0, 0.01), (64, 4, 1.0, 0.01), (48, 3, 0.5, 0.01)],
)
def test_large_groups_against_the_chain_bound(n, mu, epsilon, delta):
    shifts = tuple((k,) for k in range(1, mu + 1))
    model = ModuloModel((n + 1,), shifts, PDP, loss_vector("error-rate", (n + 1,)))
    solution = fast(model, [epsilon], delta)
    law = oracles.error_rate_bounds((n + 1,), shifts, True, epsilon, delta, PDP).strongest
    assert solution.is_optimal
    assert law.kind == "optimum"
    assert solution.objective == pytest.approx(law.value, abs=1e-9)
    assert spent((n + 1,), shifts, [epsilon] * mu, solution["f"]) <= delta + 1e-9


def test_large_group_with_another_loss_against_no_truncation():
    sizes = (49,)
    model = ModuloModel(sizes, BD3, PDP, loss_vector("squared", sizes))
    solution = fast(model, [1.5], 0.05)
    problem = noise(sizes, BD3, 1.5, "squared", delta=0.05)
    relaxation = build_relaxation(problem)
    with get_backend("highs").open(relaxation.program) as session:
        outcome = PatternSearch(problem, relaxation, session).run()
    assert solution.objective == pytest.approx(outcome.value, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "circular-squared"])
def test_truncation_ends_where_shifts_reach_a_part_of_the_group(loss):
    """Of 42 answers shift 2 reaches the even ones alone, which limits the growth of the support."""
    model = ModuloModel((42,), ((2,),), PDP, loss_vector(loss, (42,)))
    answer, literal = (
        fast(model, [1.0], 0.05, gap=1e-9),
        solve(model.program, model.values([1.0], 0.05)),
    )
    assert answer.termination is Termination.OPTIMAL
    assert answer.objective == pytest.approx(literal.objective, rel=1e-8)


def test_truncation_is_a_relaxation():
    problem = noise((9,), BD3, 0.5, "squared", delta=0.1)
    values = []
    for keep in (3, 5, 7, 9):
        kept = np.arange(9) < keep
        relaxation = build_relaxation(problem, kept)
        with get_backend("highs").open(relaxation.program) as session:
            values.append(PatternSearch(problem, relaxation, session).run().value)
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(values))
    assert values[0] < values[-1] - 1e-3


@pytest.mark.parametrize(
    ("sizes", "shifts"), [((9,), BD3), ((9,), ROUND), ((4, 3), GRID), ((8,), ((2,),))]
)
def test_the_level_theorem_holds_at_the_literal_optimum(sizes, shifts):
    for epsilon, delta in ((0.5, 0.05), (1.5, 0.2)):
        problem = noise(sizes, shifts, epsilon, delta=delta)
        w = distance_weights(problem)
        hops = oracles.hops.hop_distances(sizes, shifts)
        assert w == pytest.approx(np.where(hops < 0, 0.0, np.exp(-epsilon * hops)), abs=1e-15)
        known = simplest_noise(problem, w)
        assert known.pmf.sum() == pytest.approx(1.0)
        assert 1.0 - known.pmf[0] == pytest.approx(known.value, abs=1e-12)
        assert spent(sizes, shifts, [epsilon] * len(shifts), known.pmf) <= delta + 1e-12
        model = ModuloModel(sizes, shifts, PDP, problem.loss)
        best = solve(model.program, model.values([epsilon], delta))
        assert best.objective <= known.value + 1e-9
        # The constraint f <= w f(0) does not change the optimum.
        bounded = replace(model, constraints=lambda f, w=w: [f <= w * f[0]])
        with_weights = solve(bounded.program, bounded.values([epsilon], delta))
        assert with_weights.objective == pytest.approx(best.objective, abs=1e-8)


def test_better_rows_relax_to_the_dp_program():
    problem = noise((9,), BD3, 1.0, delta=0.1)
    program = build_milp(problem, "relaxed")
    no_integers = np.zeros_like(program.template.integrality)
    relaxed = solve(replace(program, template=replace(program.template, integrality=no_integers)))
    dp = ModuloModel((9,), BD3, DP, loss_vector("error-rate", (9,)))
    assert relaxed.objective >= solve(dp.program, dp.values([1.0], 0.1)).objective - 1e-9


def test_limits_leave_a_valid_bound():
    sizes = (25,)
    shifts = ((1,), (2,), (3,), (4,))
    model = ModuloModel(sizes, shifts, PDP, loss_vector("squared", sizes))
    optimum = fast(model, [0.5], 0.1).objective
    for nodes in (1, 5, 20):
        stopped = fast(model, [0.5], 0.1, node_limit=nodes)
        assert stopped.termination is Termination.NODE_LIMIT
        assert stopped.bound <= optimum + 1e-9
        assert stopped.objective >= optimum - 1e-9
        assert spent(sizes, shifts, [0.5] * 4, stopped["f"]) <= 0.1 + 1e-9
    late = fast(model, [0.5], 0.1, time_limit=1e-9)
    assert late.termination is Termination.TIME_LIMIT
    assert late.bound is None
    loose = fast(model, [0.5], 0.1, gap=0.05)
    assert loose.bound <= optimum + 1e-9 <= loose.objective + 2e-9
    assert loose.gap <= 0.05
    assert loose.termination in (Termination.GAP_LIMIT, Termination.OPTIMAL)


@pytest.mark.parametrize(
    ("sizes", "loss"), [((120,), "squared"), ((1200,), "error-rate"), ((360,), "worst-squared")]
)
def test_a_time_limit_leaves_an_incumbent_soon(sizes, loss):
    """However little time there was: what the search found, or uniform noise."""
    shifts = tuple((k % sizes[0],) for k in (1, 3, 4, -1, -3, -4))
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    for limit in (1e-9, 0.2):
        stopped = fast(model, [0.2], 0.05, time_limit=limit)
        assert stopped.termination is Termination.TIME_LIMIT
        assert stopped.seconds < 2.0
        assert stopped.bound is None or stopped.bound <= stopped.objective
        assert stopped["f"].sum() == pytest.approx(1.0)
        assert spent(sizes, shifts, [0.2] * 6, stopped["f"]) <= 0.05 + 1e-9


def test_ctrl_c_keeps_incumbent_and_bound(monkeypatch: pytest.MonkeyPatch):
    model = ModuloModel((17,), BD3, PDP, loss_vector("squared", (17,)))
    optimum = fast(model, [0.5], 0.1).objective
    original, calls = Session.solve, []

    def solve_few(self, *args, **more):
        calls.append(1)
        if len(calls) > 12:
            raise KeyboardInterrupt
        return original(self, *args, **more)

    monkeypatch.setattr(Session, "solve", solve_few)
    solution = fast(model, [0.5], 0.1)
    assert solution.termination is Termination.INTERRUPTED
    assert solution.bound <= optimum + 1e-9


def test_only_pdp_with_delta():
    for model in (
        ModuloModel((9,), BD3, DP, loss_vector("error-rate", (9,))),
        ModuloModel((9,), BD3, PDP, loss_vector("error-rate", (9,)), has_delta=False),
    ):
        with pytest.raises(ValueError, match="method fast"):
            FastSession(model, get_backend("highs"))


def test_a_bound_that_closes_the_proof_needs_no_point(monkeypatch: pytest.MonkeyPatch):
    """HiGHS at e^10 calls feasible points infeasible; the bound alone proves the optimum here."""
    model = ModuloModel(
        (2, 2), ((0, 1), (1, 0), (1, 1)), PDP, loss_vector("error-rate", (2, 2)), minimise="delta"
    )
    solution = fast(model, [10.0], max_loss=0.6409986212826413)
    assert solution.is_optimal
    assert solution.objective == 0.0
    assert solution.notes[0].startswith("proven over violation patterns")
    original = Session.solve

    def without_points(self, *args, **more):
        return replace(original(self, *args, **more), point=PointStatus.NONE, x=None)

    monkeypatch.setattr(Session, "solve", without_points)
    other = ModuloModel((9,), BD3, PDP, loss_vector("error-rate", (9,)))
    stopped = fast(other, [0.5], 0.2)
    assert stopped.x is None  # No proof is claimed if the bound does not close it.
    assert not stopped.is_optimal
