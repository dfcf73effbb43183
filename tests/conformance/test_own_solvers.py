"""Tests of single solvers that are not part of the contract, such as threads of HiGHS.

The contract is `workbench.solvers.conformance`: tests that every backend must pass. A label names a
backend, such as "ortools:glop". The programs of known optimum come from `conformance.instances`.
"""

from __future__ import annotations

import pytest

from workbench.solvers.backend import Options, get_backend
from workbench.solvers.conformance import instances
from workbench.solvers.conformance.instances import MOVING_BASE, MOVING_CHANGES, make_moving_program
from workbench.solvers.conformance.sessions import require_same
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.solution import Start, Termination


def make_easy_program(label):
    """Return a small program of a kind that the backend solves: an LP or an integer program."""
    if get_backend(label).capabilities().lp:
        return instances.make_triangle()
    return instances.make_knapsack()


def get_usable_backend(label):
    """Return a backend, or skip the test if it is not installed or has no licence."""
    backend = get_backend(label)
    if not backend.is_installed() or not backend.licence().usable:
        pytest.skip(f"{label} is not usable here")
    return backend


@pytest.mark.parametrize(
    ("label", "native_options"),
    [
        ("highs", {"simplex_strategy": 4}),
        ("gurobi", {"Method": 0}),
        ("ortools:glop", {"use_dual_simplex": True}),
        (
            "ortools:pdlp",
            {"termination_criteria.simple_optimality_criteria.eps_optimal_relative": 1e-9},
        ),
        ("ortools:cp-sat", {"cp_model_presolve": False}),
        ("ortools:gscip", {"separating/maxrounds": 0}),
        ("cvxpy:clarabel", {"tol_gap_abs": 1e-10}),
        ("cvxpy:scs", {"normalize": False}),
        ("scip", {"separating/maxrounds": 0}),
    ],
)
def test_native_options_reach_the_solver(label, native_options):
    backend = get_usable_backend(label)
    options = Options(native=native_options)
    with backend.open(make_easy_program(label), options) as session:
        solution = session.solve()
    assert solution.termination is Termination.OPTIMAL
    for name in native_options:
        # OR-Tools reports only the first part of a dotted name.
        assert name.split(".")[0] in str(solution.options)


@pytest.mark.parametrize(
    ("label", "option", "wrong_value"),
    [
        ("highs", "simplex_strategy", "fast"),
        ("gurobi", "Method", 99),
        ("ortools:glop", "use_dual_simplex", "perhaps"),
        ("cvxpy:clarabel", "max_iter", "many"),
        ("scip", "limits/nodes", "many"),
    ],
)
def test_a_wrong_value_of_a_native_option_is_refused(label, option, wrong_value):
    backend = get_usable_backend(label)
    with pytest.raises(UnsupportedOption, match=option):
        backend.open(make_easy_program(label), Options(native={option: wrong_value}))


def test_highs_stops_at_a_cutoff_after_fewer_iterations():
    program = instances.make_random_lp(40, 30, seed=4)
    with get_backend("highs").open(program, Options(presolve=False)) as session:
        optimal = session.solve()
        cutoff = optimal.objective - 0.5 * abs(optimal.objective)
        stopped = session.solve(start="cold", cutoff=cutoff)
        next_solution = session.solve(start="cold")
    assert stopped.termination is Termination.CUTOFF
    assert stopped.iterations < optimal.iterations
    # The cutoff does not apply to the next solve.
    assert next_solution.objective == pytest.approx(optimal.objective)


@pytest.mark.parametrize("label", ["highs", "gurobi"])
def test_a_solve_can_have_less_time_than_the_session(label):
    program = instances.make_slow_lp(500)
    with get_usable_backend(label).open(program, Options(time_limit=60.0)) as session:
        assert session.solve(time_limit=0.003).termination is Termination.TIME_LIMIT
        assert session.solve(start="cold").termination is Termination.OPTIMAL


@pytest.mark.parametrize("scale", [1.0, 2.0**20])
def test_passing_the_whole_lp_again_keeps_the_basis_of_highs(scale, monkeypatch):
    """The LP is passed again if many coefficients change; here after every change.

    `scale` is the unit in which the program states its numbers.
    """
    from workbench.solvers.backends import highs

    # Coefficients are changed one by one up to this number, so no change is small enough.
    monkeypatch.setattr(highs, "_MAX_CALLS", -1000)
    values = dict(MOVING_BASE)
    with (
        get_backend("highs").open(make_moving_program(scale)) as session,
        get_backend("highs").open(make_moving_program()) as cold_session,
    ):
        session.solve(values)
        for k, change in enumerate(MOVING_CHANGES):
            if change.get("right", 0) < 0:  # The program is infeasible, so there is no basis.
                continue
            values = values | change | {"coefficient": 0.5 + 0.01 * k}
            solution = session.solve(values)
            assert solution.start is Start.HOT
            require_same(solution, cold_session.solve(values, start="cold"), tolerance=1e-8)
        values["coefficient"] += 1e-9
        solution = session.solve(values)
        assert solution.start is Start.HOT
        assert solution.iterations == 0  # The last basis is still optimal.
        assert session.solve(values, start="cold").iterations > 0


def test_sessions_of_highs_can_have_different_thread_counts():
    """HiGHS has one thread pool in a process, which must be reset for another count."""
    for threads in (1, 2, 1, None, 2):
        options = Options(threads=threads)
        with get_backend("highs").open(instances.make_triangle(), options) as session:
            assert session.solve().termination is Termination.OPTIMAL


def test_highs_solves_after_another_library_has_resized_its_pool():
    highspy = pytest.importorskip("highspy")
    with get_backend("highs").open(instances.make_triangle()) as session:
        assert session.solve().termination is Termination.OPTIMAL
        other_highs = highspy.Highs()
        other_highs.setOptionValue("output_flag", False)
        other_highs.setOptionValue("threads", 2)
        other_highs.resetGlobalScheduler(True)
        other_highs.addVar(0, 1)
        other_highs.run()
        assert session.solve(start="cold").termination is Termination.OPTIMAL


def test_info_of_highs_that_is_not_available_is_zero():
    """HiGHS itself returns arbitrary numbers then, for example 2,905,069,856 iterations."""
    with get_backend("highs").open(make_moving_program()) as session:
        assert session.solve(dict(MOVING_BASE), start="cold").iterations > 0
        native = session._h
        native.clearSolver()
        for name in ("simplex_iteration_count", "primal_solution_status", "basis_validity"):
            assert str(native.getInfoValue(name)[0]) != "HighsStatus.kOk"
            assert session._read_info(name) == 0
