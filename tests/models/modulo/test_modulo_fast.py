"""Tests of the branch and bound for PDP noise (method fast).

Its results are compared with the mixed-integer program of Kadam et al. 2024 (the literal MILP) and
with closed forms. A search that is stopped must leave a valid bound.

f(η) is the mass of the noise value η. A pair is a noise value η and a difference μ of answers (a
shift). It is broken if f(η) > e^ε f(η + μ), else kept. PDP limits the mass of the broken pairs of
each shift by δ. A violation pattern says of each pair whether it is broken, kept or free; the
branch and bound splits patterns.
"""

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
from workbench.models.modulo.search import FREE, PatternSearch
from workbench.solvers.backend import Options, get_backend, solve
from workbench.solvers.session import Session
from workbench.solvers.solution import PointStatus, Termination

BD3 = ((1,), (2,), (3,))  # One-sided neighbours at distance up to 3.
SYMMETRIC = (*BD3, (8,), (7,), (6,))  # BD3 in both directions, modulo 9.
GRID = ((0, 1), (1, 0))  # One-sided neighbours in a product of two groups.


def solve_fast(
    model: ModuloModel, epsilon: list[float], delta=None, max_loss=None, solver="highs", **options
):
    """Solve a model with a FastSession.

    Args:
        model: the model of noise under PDP.
        epsilon: ε of each group of shifts.
        delta: δ; None if the model minimises it.
        max_loss: the largest loss; None if the model minimises the loss.
        solver: label of the backend.
        options: those of `Options`, such as time_limit.
    """
    with FastSession(model, get_backend(solver), Options(**options)) as session:
        return session.solve(model.values(epsilon, delta, max_loss))


def make_problem(sizes, shifts, epsilon: float, loss: str = "error-rate", **fields) -> NoiseProblem:
    """Return a problem with one ε. fields: delta, max_loss and others of `NoiseProblem`."""
    exp_epsilons = np.full(len(shifts), math.exp(epsilon))
    return NoiseProblem(sizes, shifts, exp_epsilons, loss_vector(loss, sizes), **fields)


def pdp_delta(sizes, shifts, epsilons, f) -> float:
    """Return the smallest PDP delta of a PMF: the mass of broken pairs of the worst shift.

    `epsilons` has one ε for each shift. A ratio that exceeds e^ε by rounding counts as kept.
    """
    return max(
        f[f > np.exp(epsilon) * f[shift_positions(sizes, mu)] + 1e-11].sum()
        for mu, epsilon in zip(shifts, epsilons, strict=True)
    )


@pytest.mark.parametrize(
    ("sizes", "shifts", "loss", "epsilon", "delta"),
    [
        ((9,), BD3, "error-rate", 1.5, 0.1212),
        ((9,), BD3, "error-rate", 0.5, 0.2),
        ((9,), BD3, "squared", 1.0, 0.1),
        ((9,), BD3, "eta-squared", 1.0, 0.1),
        ((9,), BD3, "circular-squared", 0.5, 0.02),
        ((9,), SYMMETRIC, "error-rate", 0.7, 0.1),
        ((9,), SYMMETRIC, "squared", 1.5, 0.1),
        ((9,), ((3,),), "error-rate", 0.7, 0.3),
        ((4, 3), GRID, "error-rate", 0.5, 0.1),
        ((3, 3), GRID, "squared", 1.0, 0.1),
        ((8,), ((1,), (4,), (5,)), "error-rate", 0.4, 0.15),
        ((7,), ((1,), (6,)), "worst-squared", 1.0, 0.1),
        ((9,), BD3, "error-rate", 1.5, 1.0),
        ((9,), BD3, "error-rate", 1.5, 1e-8),
    ],
)
def test_the_optimum_equals_the_literal_milp(sizes, shifts, loss, epsilon, delta):
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    solution = solve_fast(model, epsilon=[epsilon], delta=delta)
    require_proven_optimum_of_milp(solution, model, epsilon, delta)
    # The violations are those of the literal MILP, in its own variables.
    assert solution.residuals.max_violation <= 1e-9


def require_proven_optimum_of_milp(solution, model: ModuloModel, epsilon: float, delta: float):
    """Require a proven optimum that is private and equals the optimum of the literal MILP."""
    literal = solve(model.program, model.values([epsilon], delta), options=Options(gap=1e-9))
    tolerance = 1e-8 * max(1, literal.objective)
    assert solution.is_optimal
    assert solution.objective == pytest.approx(literal.objective, abs=tolerance)
    assert solution.bound <= solution.objective
    assert solution.gap <= 1e-9
    epsilons = [epsilon] * len(model.shifts)
    assert pdp_delta(model.sizes, model.shifts, epsilons, solution["f"]) <= delta + 1e-9


def test_a_solution_has_the_variables_of_the_literal_milp():
    model = ModuloModel((4, 3), GRID, PDP, loss_vector("error-rate", (4, 3)))
    solution = solve_fast(model, epsilon=[0.5], delta=0.1)
    names = {block.name for block in solution.program.variables}
    assert {"f", "u_0_1", "u_1_0"} <= names


@pytest.mark.parametrize(
    ("sizes", "shifts", "loss", "epsilon", "delta"),
    [
        ((11,), BD3, "squared", 0.5, 0.02),
        ((11,), (*BD3, (10,), (9,), (8,)), "squared", 1.0, 0.02),
        ((9,), BD3, "worst-squared", 0.7, 0.03),
        ((4, 3), (*GRID, (1, 1)), "squared", 1.0, 0.02),
    ],
)
def test_splits_at_elements_keep_the_optimum(monkeypatch, sizes, shifts, loss, epsilon, delta):
    """An element of mass above 2 delta is light in one child; in the other all its pairs are kept.

    An element is a noise value. It is light if its mass is at most δ, so its pairs may be broken.
    """
    split_masses = []
    original = PatternSearch.split_node

    def check_split(self, node, pair):
        """Split a node as the search does, and check the children of a split at an element."""
        children, is_single_pair = original(self, node, pair)
        element = self.relaxation.source[pair]
        if not is_single_pair:
            split_masses.append(node.x[element])
            (kept_pattern, kept_is_light), (light_pattern, light_is_light) = children
            assert not (kept_pattern[self.relaxation.source == element] == FREE).any()
            assert not kept_is_light[element]
            assert (light_pattern == node.pattern).all()
            assert light_is_light[element]
        return children, is_single_pair

    monkeypatch.setattr(PatternSearch, "split_node", check_split)
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    solution = solve_fast(model, epsilon=[epsilon], delta=delta)
    assert split_masses  # There was a split at an element.
    assert min(split_masses) > delta
    require_proven_optimum_of_milp(solution, model, epsilon, delta)


@pytest.mark.parametrize(
    ("sizes", "shifts", "loss", "epsilon", "delta"),
    [
        # The dual values of the next two are inaccurate.
        ((3, 3), ((1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)), "squared", 15.0, 0.999),
        ((9,), ((1,), (2,), (7,), (8,)), "squared", 5.0, 1e-7),
        # The presolve of HiGHS reports "unbounded" here.
        ((3,), ((1,), (2,)), "squared", 15.0, 0.001),
        # HiGHS reports "infeasible" here.
        ((8,), ((3,), (5,)), "error-rate", 5.0, 1e-5),
        # A heavy kept pair has a rounding error here.
        ((7,), ((1,), (2,), (3,), (4,), (5,), (6,)), "error-rate", 5.0, 0.001),
        # HiGHS cannot solve some programs here.
        ((4,), ((1,), (2,), (3,)), "worst-squared", 15.0, 1e-9),
        ((8,), ((2,), (3,), (5,), (6,)), "squared", 15.0, 1e-9),
        ((6,), ((1,), (5,)), "squared", 1e-6, 1e-9),
        ((6,), ((1,), (5,)), "error-rate", 1e-6, 0.3),
        ((6,), ((1,), (2,)), "error-rate", 20.0, 0.3),
    ],
)
def test_extreme_requests_are_proven(sizes, shifts, loss, epsilon, delta):
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    solution = solve_fast(model, epsilon=[epsilon], delta=delta)
    assert solution.is_optimal
    # A second note would say that a status was not checked.
    (note,) = solution.notes
    assert note.startswith("proven over violation patterns")
    assert solution.bound <= solution.objective
    assert solution.gap <= 1e-9
    assert solution.residuals.max_violation <= 1e-6
    reference = solve(model.program, model.values([epsilon], delta), "scip")
    tolerance = 1e-8 * max(1, reference.objective)
    assert solution.objective == pytest.approx(reference.objective, abs=tolerance)


def test_two_budgets_of_very_different_size():
    model = ModuloModel(
        sizes=(3, 3),
        shifts=((0, 1), (1, 0), (1, 1)),
        requires=PDP,
        loss=loss_vector("circular-squared", (3, 3)),
        groups=(0, 0, 1),
    )
    solution = solve_fast(model, epsilon=[15.0, 1.6363266720536973], delta=0.001)
    assert solution.is_optimal
    # Only pairs that y covers count as broken, so rounding at e^15 breaks none.
    assert solution.residuals.max_violation <= 1e-9


def test_a_solver_that_fails_on_nodes_leads_to_the_milp_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
):
    """The solver fails on every program with a kept pair. A note names the fallback."""
    model = ModuloModel((9,), BD3, PDP, loss_vector("squared", (9,)))
    optimum = solve_fast(model, epsilon=[0.5], delta=0.1).objective
    original = Session.solve

    def fail_with_kept_pairs(self, values=None, **options):
        """Solve, but return a numerical error if the upper bound ("room") of an excess is 0."""
        answer = original(self, values, **options)
        if values and "room" in values and (np.asarray(values["room"]) == 0).any():
            return replace(
                answer, termination=Termination.NUMERICAL, point=PointStatus.NONE, x=None
            )
        return answer

    monkeypatch.setattr(Session, "solve", fail_with_kept_pairs)
    solution = solve_fast(model, epsilon=[0.5], delta=0.1)
    assert solution.objective == pytest.approx(optimum, abs=1e-8)
    assert solution.bound <= optimum + 1e-9
    assert "in one piece" in solution.notes[0]


def test_one_epsilon_for_each_difference():
    model = ModuloModel(
        sizes=(8,),
        shifts=((1,), (2,), (7,)),
        requires=PDP,
        loss=loss_vector("error-rate", (8,)),
        groups=(0, 1, 0),
    )
    literal = solve(model.program, model.values([0.4, 1.1], 0.1))
    solution = solve_fast(model, epsilon=[0.4, 1.1], delta=0.1)
    assert solution.objective == pytest.approx(literal.objective, abs=1e-8)
    assert pdp_delta((8,), model.shifts, [0.4, 1.1, 0.4], solution["f"]) <= 0.1 + 1e-9


@pytest.mark.parametrize(
    "constraints",
    [
        NoiseEquations((7,)),
        NoiseEquations(equal_mass_groups=((1, 6), (2, 5))),
        lambda f: [f[0] <= 0.3, f[2] >= f[1]],
    ],
)
def test_user_defined_constraints(constraints):
    model = ModuloModel(
        sizes=(7,),
        shifts=((1,), (2,)),
        requires=PDP,
        loss=loss_vector("error-rate", (7,)),
        constraints=constraints,
    )
    literal = solve(model.program, model.values([1.0], 0.15))
    solution = solve_fast(model, epsilon=[1.0], delta=0.15)
    assert solution.objective == pytest.approx(literal.objective, abs=1e-8)
    unconstrained = solve_fast(replace(model, constraints=None), epsilon=[1.0], delta=0.15)
    # The constraint changes the optimum, so it was applied.
    assert unconstrained.objective < solution.objective - 1e-4


def test_infeasible_constraints_are_reported():
    model = ModuloModel(
        sizes=(7,),
        shifts=((1,), (2,)),
        requires=PDP,
        loss=loss_vector("error-rate", (7,)),
        constraints=lambda f: [f[0] >= 0.9],
    )
    solution = solve_fast(model, epsilon=[1.0], delta=0.15)
    assert solution.termination is Termination.INFEASIBLE
    assert solution.x is None


def test_constraints_that_are_feasible_under_dp_but_not_under_pdp():
    model = ModuloModel(
        sizes=(2,),
        shifts=((1,),),
        requires=PDP,
        loss=loss_vector("error-rate", (2,)),
        constraints=lambda f: [f[0] == 0.8],
    )
    assert solve_fast(model, epsilon=[0.5], delta=0.5).termination is Termination.INFEASIBLE
    assert solve_fast(model, epsilon=[0.5], delta=0.81).is_optimal


@pytest.mark.parametrize(
    ("shifts", "loss", "max_loss"),
    [
        (BD3, "error-rate", 0.4425),
        (BD3, "error-rate", 0.3),
        (BD3, "error-rate", 0.5),
        (BD3, "squared", 8.0),
        (SYMMETRIC, "error-rate", 0.5),
    ],
)
def test_the_smallest_delta_equals_the_literal_milp(shifts, loss, max_loss):
    model = ModuloModel((9,), shifts, PDP, loss_vector(loss, (9,)), minimise="delta")
    literal = solve(model.program, model.values([1.5], max_loss=max_loss))
    solution = solve_fast(model, [1.5], max_loss=max_loss)
    assert solution.objective == pytest.approx(literal.objective, abs=1e-8)
    assert model.loss @ solution["f"] <= max_loss + 1e-9
    assert pdp_delta((9,), shifts, [1.5] * len(shifts), solution["f"]) <= solution.objective + 1e-9


@pytest.mark.parametrize("solver", ["gurobi", "scip", "ortools:gscip", "ortools"])
@pytest.mark.parametrize("loss", ["error-rate", "squared"])
def test_other_solvers_find_the_same_optimum(solver, loss):
    if not get_backend(solver).is_installed():
        pytest.skip(f"{solver} is not installed")
    model = ModuloModel((9,), BD3, PDP, loss_vector(loss, (9,)))
    reference = solve_fast(model, epsilon=[1.0], delta=0.05)
    solution = solve_fast(model, epsilon=[1.0], delta=0.05, solver=solver)
    assert solution.solver.startswith(solver)
    assert solution.objective == pytest.approx(reference.objective, rel=1e-8)
    assert solution.bound <= solution.objective + 1e-9
    assert solution.gap <= 1e-8


@pytest.mark.parametrize(
    ("n", "mu", "epsilon", "delta"),
    [(256, 3, 1.5, 0.1), (256, 3, 1.0, 0.01), (64, 4, 1.0, 0.01), (48, 3, 0.5, 0.01)],
)
def test_large_groups_have_the_optimum_of_the_closed_form(n, mu, epsilon, delta):
    shifts = tuple((k,) for k in range(1, mu + 1))
    model = ModuloModel((n + 1,), shifts, PDP, loss_vector("error-rate", (n + 1,)))
    solution = solve_fast(model, epsilon=[epsilon], delta=delta)
    form = oracles.error_rate_bounds(
        (n + 1,), shifts, is_directed=True, epsilon=epsilon, delta=delta, requires=PDP
    ).strongest
    assert solution.is_optimal
    assert form.kind == "optimum"
    assert solution.objective == pytest.approx(form.value, abs=1e-9)
    assert pdp_delta((n + 1,), shifts, [epsilon] * mu, solution["f"]) <= delta + 1e-9


def test_a_truncated_search_has_the_optimum_of_the_full_search():
    """A truncated program has one variable for all noise values where no mass is expected."""
    sizes = (49,)
    model = ModuloModel(sizes, BD3, PDP, loss_vector("squared", sizes))
    solution = solve_fast(model, epsilon=[1.5], delta=0.05)
    problem = make_problem(sizes, BD3, 1.5, "squared", delta=0.05)
    relaxation = build_relaxation(problem)
    with get_backend("highs").open(relaxation.program) as session:
        outcome = PatternSearch(problem, relaxation, session).run()
    assert solution.objective == pytest.approx(outcome.value, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "circular-squared"])
def test_truncation_ends_if_the_shifts_reach_only_a_part_of_the_group(loss):
    """The shift 2 reaches only the even elements of Z_42, so the support stops growing."""
    model = ModuloModel(sizes=(42,), shifts=((2,),), requires=PDP, loss=loss_vector(loss, (42,)))
    answer = solve_fast(model, epsilon=[1.0], delta=0.05, gap=1e-9)
    literal = solve(model.program, model.values([1.0], 0.05))
    assert answer.termination is Termination.OPTIMAL
    assert answer.objective == pytest.approx(literal.objective, rel=1e-8)


def test_the_loss_of_a_truncated_program_rises_with_the_number_of_variables():
    problem = make_problem((9,), BD3, 0.5, "squared", delta=0.1)
    min_losses = []
    for variable_count in (3, 5, 7, 9):
        has_own_mass = np.arange(9) < variable_count
        relaxation = build_relaxation(problem, has_own_mass)
        with get_backend("highs").open(relaxation.program) as session:
            min_losses.append(PatternSearch(problem, relaxation, session).run().value)
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(min_losses))
    assert min_losses[0] < min_losses[-1] - 1e-3


@pytest.mark.parametrize(
    ("sizes", "shifts"), [((9,), BD3), ((9,), SYMMETRIC), ((4, 3), GRID), ((8,), ((2,),))]
)
def test_the_level_theorem_holds_at_the_literal_optimum(sizes, shifts):
    for epsilon, delta in ((0.5, 0.05), (1.5, 0.2)):
        problem = make_problem(sizes, shifts, epsilon, delta=delta)
        w = distance_weights(problem)
        hops = oracles.hops.hop_distances(sizes, shifts)
        assert w == pytest.approx(np.where(hops < 0, 0.0, np.exp(-epsilon * hops)), abs=1e-15)
        simplest = simplest_noise(problem, w)
        assert simplest.pmf.sum() == pytest.approx(1.0)
        assert 1.0 - simplest.pmf[0] == pytest.approx(simplest.value, abs=1e-12)
        assert pdp_delta(sizes, shifts, [epsilon] * len(shifts), simplest.pmf) <= delta + 1e-12
        model = ModuloModel(sizes, shifts, PDP, problem.loss)
        literal = solve(model.program, model.values([epsilon], delta))
        assert literal.objective <= simplest.value + 1e-9
        # The constraint f <= w f(0) does not change the optimum.
        bounded = replace(model, constraints=lambda f, w=w: [f <= w * f[0]])
        with_weights = solve(bounded.program, bounded.values([epsilon], delta))
        assert with_weights.objective == pytest.approx(literal.objective, abs=1e-8)


def test_the_relaxed_milp_implies_the_program_of_dp():
    problem = make_problem((9,), BD3, 1.0, delta=0.1)
    program = build_milp(problem, "relaxed")
    no_integers = np.zeros_like(program.template.integrality)
    relaxed = solve(replace(program, template=replace(program.template, integrality=no_integers)))
    dp = ModuloModel((9,), BD3, DP, loss_vector("error-rate", (9,)))
    assert relaxed.objective >= solve(dp.program, dp.values([1.0], 0.1)).objective - 1e-9


# A model whose search takes more than 20 nodes.
LONG_MODEL = ModuloModel((25,), ((1,), (2,), (3,), (4,)), PDP, loss_vector("squared", (25,)))


@pytest.fixture(scope="module")
def long_optimum() -> float:
    """Return the smallest loss of LONG_MODEL at ε = 0.5 and δ = 0.1."""
    return solve_fast(LONG_MODEL, epsilon=[0.5], delta=0.1).objective


@pytest.mark.parametrize("node_limit", [1, 5, 20])
def test_a_node_limit_leaves_private_noise_and_a_valid_bound(node_limit, long_optimum):
    stopped = solve_fast(LONG_MODEL, epsilon=[0.5], delta=0.1, node_limit=node_limit)
    assert stopped.termination is Termination.NODE_LIMIT
    assert stopped.bound <= long_optimum + 1e-9
    assert stopped.objective >= long_optimum - 1e-9
    assert pdp_delta((25,), LONG_MODEL.shifts, [0.5] * 4, stopped["f"]) <= 0.1 + 1e-9


def test_a_time_limit_before_the_first_node_leaves_no_bound():
    timed_out = solve_fast(LONG_MODEL, epsilon=[0.5], delta=0.1, time_limit=1e-9)
    assert timed_out.termination is Termination.TIME_LIMIT
    assert timed_out.bound is None


def test_a_gap_limit_leaves_a_bound_within_the_gap(long_optimum):
    solution = solve_fast(LONG_MODEL, epsilon=[0.5], delta=0.1, gap=0.05)
    assert solution.bound <= long_optimum + 1e-9 <= solution.objective + 2e-9
    assert solution.gap <= 0.05
    assert solution.termination in (Termination.GAP_LIMIT, Termination.OPTIMAL)


@pytest.mark.parametrize(
    ("sizes", "loss"), [((120,), "squared"), ((1200,), "error-rate"), ((360,), "worst-squared")]
)
def test_a_short_time_limit_leaves_private_noise(sizes, loss):
    """It is the best noise that the search found, or uniform noise."""
    shifts = tuple((k % sizes[0],) for k in (1, 3, 4, -1, -3, -4))
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    for limit in (1e-9, 0.2):
        stopped = solve_fast(model, epsilon=[0.2], delta=0.05, time_limit=limit)
        assert stopped.termination is Termination.TIME_LIMIT
        assert stopped.bound is None or stopped.bound <= stopped.objective
        assert stopped["f"].sum() == pytest.approx(1.0)
        assert pdp_delta(sizes, shifts, [0.2] * 6, stopped["f"]) <= 0.05 + 1e-9


def test_ctrl_c_keeps_incumbent_and_bound(monkeypatch: pytest.MonkeyPatch):
    model = ModuloModel((17,), BD3, PDP, loss_vector("squared", (17,)))
    optimum = solve_fast(model, epsilon=[0.5], delta=0.1).objective
    original = Session.solve
    calls = itertools.count(1)

    def interrupt_after_12_solves(self, *args, **options):
        """Solve, and press Ctrl-C in the 13th solve."""
        if next(calls) > 12:
            raise KeyboardInterrupt
        return original(self, *args, **options)

    monkeypatch.setattr(Session, "solve", interrupt_after_12_solves)
    solution = solve_fast(model, epsilon=[0.5], delta=0.1)
    assert solution.termination is Termination.INTERRUPTED
    assert solution.bound <= optimum + 1e-9


def test_models_other_than_pdp_with_delta_are_refused():
    for model in (
        ModuloModel((9,), BD3, DP, loss_vector("error-rate", (9,))),
        ModuloModel((9,), BD3, PDP, loss_vector("error-rate", (9,)), has_delta=False),
    ):
        with pytest.raises(ValueError, match="method fast"):
            FastSession(model, get_backend("highs"))


def test_a_bound_proves_an_incumbent_although_the_solver_finds_no_point():
    """At e^10 HiGHS reports that feasible programs are infeasible."""
    model = ModuloModel(
        sizes=(2, 2),
        shifts=((0, 1), (1, 0), (1, 1)),
        requires=PDP,
        loss=loss_vector("error-rate", (2, 2)),
        minimise="delta",
    )
    solution = solve_fast(model, [10.0], max_loss=0.6409986212826413)
    assert solution.is_optimal
    assert solution.objective == 0.0
    assert solution.notes[0].startswith("proven over violation patterns")


def test_without_points_and_a_tight_bound_no_proof_is_claimed(monkeypatch: pytest.MonkeyPatch):
    original = Session.solve

    def remove_point(self, *args, **options):
        """Solve, and return the solution without its point."""
        return replace(original(self, *args, **options), point=PointStatus.NONE, x=None)

    monkeypatch.setattr(Session, "solve", remove_point)
    model = ModuloModel((9,), BD3, PDP, loss_vector("error-rate", (9,)))
    solution = solve_fast(model, epsilon=[0.5], delta=0.2)
    assert solution.x is None
    assert not solution.is_optimal
