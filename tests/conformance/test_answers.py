"""What a backend answers to programs with known answers: statuses, points, duals, bounds, certificates."""

from __future__ import annotations

import conformance_instances as instances
import numpy as np
import pytest
from conftest import ACCURACY, EXCLUDED

from solvers.backend import Options, backend, names
from solvers.errors import BackendUnavailable, SolverError
from solvers.solution import PointStatus, Start, Termination, infeasible_by, unbounded_along

needs = pytest.mark.needs


def answer(label, program, **options):
    with backend(label).open(program, Options(**options)) as session:
        return session.solve()


def without_point(solution):
    return solution.x is None and solution.point is PointStatus.NONE and solution.objective is None


@needs("lp")
def test_lp_optimal(label, accuracy):
    solution = answer(label, instances.triangle())
    assert solution.termination is Termination.OPTIMAL
    assert solution.point is PointStatus.FEASIBLE
    assert solution["x"] == pytest.approx([1, 1], abs=accuracy)
    assert solution.objective == pytest.approx(3, abs=accuracy)
    assert solution.residuals.worst <= accuracy
    assert solution.start is Start.COLD
    assert solution.nodes is None or solution.nodes >= 0
    assert solution.solver == label
    assert solution.version
    assert solution.raw_status
    assert solution.seconds > 0
    assert label in str(solution)


@needs("lp", "duals")
def test_duals_signs(label, accuracy):
    solution = answer(label, instances.triangle())
    assert solution.dual is PointStatus.FEASIBLE
    assert solution.row_dual == pytest.approx([-1 / 3, -1 / 3], abs=accuracy)
    assert solution.reduced_cost == pytest.approx([0, 0], abs=accuracy)
    assert solution.bound == pytest.approx(3, abs=10 * accuracy)


@needs("lp", "duals")
@pytest.mark.parametrize("seed", range(3))
def test_duals_are_slopes(label, accuracy, seed):
    """y_i is the derivative of the optimum by the right-hand side of row i, whichever side is active."""
    program = instances.random_lp(seed=seed)
    solution = answer(label, program)
    exact = answer("highs", program)
    assert solution.row_dual == pytest.approx(exact.row_dual, abs=10 * accuracy)
    data = program.template
    assert solution.reduced_cost == pytest.approx(data.c - data.A.T @ solution.row_dual, abs=10 * accuracy)
    row, side = int(np.argmax(np.abs(exact.row_dual[1:]))) + 1, 1e-4
    bound = "row_lower" if exact.row_dual[row] > 0 else "row_upper"
    with backend(label).open(instances.movable(program, **{bound: ("shift", row)})) as session:
        slope = (session.solve({"shift": side}).objective - session.solve({"shift": -side}).objective) / (2 * side)
    assert slope == pytest.approx(exact.row_dual[row], abs=max(1e-5, accuracy / side))


@needs("lp", "duals")
@pytest.mark.parametrize("seed", range(3))
def test_lagrangian_bound(label, accuracy, seed):
    solution = answer(label, instances.random_lp(seed=seed))
    assert solution.bound == pytest.approx(solution.objective, abs=10 * accuracy)
    assert solution.gap <= 10 * accuracy
    mixed = answer(label, instances.mixed(False))
    assert mixed.bound == pytest.approx(mixed.objective, abs=10 * accuracy)


@needs("lp")
def test_every_kind_of_row_and_column(label, accuracy):
    solution = answer(label, instances.mixed(False))
    assert solution.termination is Termination.OPTIMAL
    assert solution.objective == pytest.approx(0.25, abs=accuracy)
    assert solution["x"] == pytest.approx([2, -1.5, 0.5, -3, 1], abs=10 * accuracy)
    assert solution["x"][2] == pytest.approx(0.5, abs=accuracy)


@needs("lp")
def test_lp_infeasible(label):
    program = instances.infeasible()
    solution = answer(label, program)
    assert solution.termination is Termination.INFEASIBLE
    assert without_point(solution)
    assert solution.bound is None
    assert solution.gap is None
    if backend(label).capabilities().infeasibility_certificate:
        assert infeasible_by(program.template, solution.ray)


@needs("lp")
def test_lp_unbounded(label):
    program = instances.unbounded()
    solution = answer(label, program)
    assert solution.termination is Termination.UNBOUNDED
    assert solution.bound is None
    assert solution.ray is None or unbounded_along(program.template, solution.ray)
    assert solution.x is None or solution.residuals.worst < 1e-3


@needs("lp")
def test_lp_primal_and_dual_infeasible(label):
    solution = answer(label, instances.both())
    assert solution.termination is Termination.INFEASIBLE
    assert without_point(solution)


@needs("milp")
def test_milp_optimal(label):
    solution = answer(label, instances.knapsack())
    assert solution.termination is Termination.OPTIMAL
    assert solution.objective == pytest.approx(-41, abs=1e-6)
    assert solution.bound == pytest.approx(-41, abs=1e-6)
    assert solution.gap <= 1e-6
    assert solution.residuals.worst <= 1e-6
    assert solution.row_dual is None
    assert solution.reduced_cost is None


@needs("milp")
def test_mixed_integers(label):
    program = instances.mixed(True)
    if backend(label).capabilities().integer_only:
        with pytest.raises(BackendUnavailable, match="integers only"):
            answer(label, program)
        return
    solution = answer(label, program)
    assert solution.termination is Termination.OPTIMAL
    assert solution["x"] == pytest.approx([2, -1.5, 0.5, -3, 1], abs=1e-6)


@needs("milp")
def test_milp_with_a_constant_cost(label):
    base = instances.knapsack().template
    moved = instances.program(base.c, base.A.toarray(), -np.inf, 47, upper=1, integer=True, offset=100)
    solution = answer(label, moved)
    assert solution.objective == pytest.approx(59, abs=1e-6)
    assert solution.bound == pytest.approx(59, abs=1e-6)


@needs("milp")
def test_fractional_bounds_of_integers(label):
    """HiGHS 1.13 answers "infeasible" and false bounds to these as they stand; every backend gets them rounded."""
    program = instances.program(
        [0.7, -0.9],
        [[-1.91, 2.25], [0.09, -3.35], [3.56, 1.64]],
        [-np.inf, -np.inf, 3.18],
        [4.56, -6.44, 4.19],
        upper=[2.3, 2.6],
        integer=True,
    )
    solution = answer(label, program)
    assert solution.termination is Termination.OPTIMAL
    assert solution["x"] == pytest.approx([0, 2], abs=1e-6)
    assert solution.bound == pytest.approx(-1.8, abs=1e-6)
    nearly = instances.program([-1], [[1]], 0, 9, upper=3 - 1e-12, integer=True)
    assert answer(label, nearly).objective == pytest.approx(-3, abs=1e-6)
    none = instances.program([-1], [[1]], 0, 9, lower=1.25, upper=1.75, integer=True)
    assert answer(label, none).termination is Termination.INFEASIBLE


@needs("milp")
def test_implied_integers(label):
    """min x1, x1 >= x2, x0 + x2 = x3, 68 x2 + x3 <= 12: zero, where the MILP presolve of HiGHS 1.13 answers one."""
    if backend(label).capabilities().integer_only:
        return
    program = instances.program(
        [0, 1, 0, 0],
        [[0, 1, -1, 0], [1, 0, 1, -1], [0, 0, -68, -1]],
        [0, 0, -12],
        [np.inf, 0, np.inf],
        lower=[-np.inf, -np.inf, 0, 0],
        integer=[True, True, False, True],
    )
    solution = answer(label, program)
    assert solution.termination is Termination.OPTIMAL
    assert solution.objective == pytest.approx(0, abs=1e-6)


@needs("milp")
def test_proofs_beyond_what_a_solver_looks_at(label):
    """CP-SAT stops at 1e7 in every column; no optimum is claimed on that ground."""
    far = instances.program([-1.0, 1e-9], [[1.0, 1.0]], -np.inf, 5e7, upper=4e7, integer=True)
    solution = answer(label, far)
    if solution.termination is Termination.NUMERICAL:
        assert label == "ortools:cp-sat"
        assert solution.bound is None
        assert "1e7" in solution.notes[-1]
    else:
        assert solution.objective == pytest.approx(-4e7, rel=1e-6)
    kept_by_rows = instances.program([-1.0, -1.0], [[1.0, 1.0], [1.0, -1.0]], -5, 5, lower=-np.inf, integer=True)
    solution = answer(label, kept_by_rows)
    assert solution.objective == pytest.approx(-5, abs=1e-6) or label == "ortools:cp-sat"


@needs("milp")
def test_milp_infeasible(label):
    solution = answer(label, instances.infeasible(integer=True))
    assert solution.termination is Termination.INFEASIBLE
    assert without_point(solution)


@needs("milp")
def test_milp_infeasible_in_integers_alone(label):
    gap = instances.program([1, 1], [[2, 2]], 3, 3, upper=5, integer=True)
    assert answer(label, gap).termination is Termination.INFEASIBLE


@needs("milp")
def test_milp_unbounded(label):
    solution = answer(label, instances.unbounded(integer=True))
    assert solution.termination is Termination.UNBOUNDED
    assert solution.bound is None
    assert solution.x is None or np.abs(solution.x).max() < 1e15


@needs("milp")
def test_milp_primal_and_dual_infeasible(label):
    solution = answer(label, instances.both(integer=True))
    assert solution.termination is Termination.INFEASIBLE
    assert without_point(solution)


@pytest.mark.parametrize("integer", [False, True])
def test_empty(label, accuracy, integer):
    capabilities = backend(label).capabilities()
    if not (capabilities.milp if integer else capabilities.lp):
        with pytest.raises(BackendUnavailable, match="cannot solve"):
            answer(label, instances.program([-1], [[1]], 0, 1, upper=1, integer=integer))
        return
    no_rows = instances.program([-1, -2], np.zeros((0, 2)), 0, 0, upper=3, integer=integer)
    solution = answer(label, no_rows)
    assert solution.termination is Termination.OPTIMAL
    assert solution["x"] == pytest.approx([3, 3], abs=10 * accuracy)
    empty_row = instances.program([-1], [[0]], -1, 1, upper=3, integer=integer)
    assert answer(label, empty_row)["x"] == pytest.approx([3], abs=10 * accuracy)
    assert answer(label, instances.program([-1], [[0]], 1, 2, upper=3, integer=integer)).termination == "infeasible"


@needs("lp")
def test_no_columns(label):
    feasible = instances.program([], np.zeros((2, 0)), [-1, 0], [0, 1], offset=2.5)
    solution = answer(label, feasible)
    assert solution.termination is Termination.OPTIMAL
    assert solution.objective == 2.5
    assert solution.x.shape == (0,)
    assert answer(label, instances.program([], np.zeros((0, 0)), 0, 0)).termination is Termination.OPTIMAL
    assert answer(label, instances.program([], np.zeros((1, 0)), 1, 2)).termination is Termination.INFEASIBLE


@needs("lp")
def test_no_cost(label):
    """Any feasible point is optimal."""
    solution = answer(label, instances.program([0, 0], [[1, 1]], 1, 2))
    assert solution.termination is Termination.OPTIMAL
    assert solution.objective == 0
    assert solution.residuals.worst < 1e-3


@needs("lp")
@pytest.mark.parametrize("scale", [2.0**20])
def test_scaled_lp(label, accuracy, scale):
    plain, scaled = (instances.random_lp(seed=5, scale=s) for s in (1.0, scale))
    one, other = answer(label, plain), answer(label, scaled)
    assert other.termination is Termination.OPTIMAL
    assert other.objective == pytest.approx(one.objective, abs=10 * accuracy)
    assert other.x == pytest.approx(one.x, abs=10 * accuracy)
    assert other.residuals.worst <= 10 * accuracy
    if backend(label).capabilities().duals:
        assert other.row_dual == pytest.approx(one.row_dual, abs=10 * accuracy)
        assert other.reduced_cost == pytest.approx(one.reduced_cost, abs=10 * accuracy)


@needs("milp")
def test_scaled_milp(label):
    """Integer columns keep their values under scaling, continuous ones come back unscaled."""
    integer = backend(label).capabilities().integer_only or [True, False]
    program = instances.program(
        [-1, -3], [[2, 1], [0, 1]], -np.inf, [4.5, 1.25], upper=9, integer=integer, scale=2.0**20
    )
    solution = answer(label, program)
    best = [1, 1] if integer is True else [1, 1.25]
    assert solution.termination is Termination.OPTIMAL
    assert solution.x == pytest.approx(best, abs=1e-6)
    assert solution.bound == pytest.approx(-best[0] - 3 * best[1], abs=1e-6)


def test_exclusions_name_real_tests():
    import test_answers
    import test_interrupts
    import test_limits
    import test_sessions

    tests = {name for module in (test_answers, test_interrupts, test_limits, test_sessions) for name in dir(module)}
    assert EXCLUDED.keys() | ACCURACY.keys() <= set(names())
    for label, excluded in EXCLUDED.items():
        assert excluded.keys() <= tests, label
        assert all(excluded.values())


@needs("lp")
def test_an_optimal_lp_has_a_bound(label, accuracy):
    """From duals where there are some, else the solver's own."""
    solution = answer(label, instances.triangle())
    assert solution.termination is Termination.OPTIMAL
    assert solution.bound == pytest.approx(3, abs=10 * accuracy)
    assert (solution.native_bound is None) == backend(label).capabilities().duals


def test_a_native_exception_is_an_answer_or_an_error_of_ours(label, monkeypatch):
    """Never a raw traceback of somebody else's library."""
    program = instances.triangle() if backend(label).capabilities().lp else instances.knapsack()
    with backend(label).open(program) as session:
        monkeypatch.setattr(session, "_run", lambda *_: (_ for _ in ()).throw(RuntimeError("first\nsecond")))
        solution = session.solve()
        assert solution.termination is Termination.ERROR
        assert solution.x is None
        assert solution.bound is None
        assert solution.raw_status == "RuntimeError: first second"
        monkeypatch.undo()
        assert session.solve().termination is Termination.OPTIMAL  # the session is built afresh
        monkeypatch.setattr(session, "_build", lambda *_: {}["missing"])
        with pytest.raises(SolverError, match=rf"^{label} failed on .*: KeyError: 'missing'\.$"):
            session.solve(start="cold")
