"""Tests of single solvers besides the contract: native options, hot starts and threads of HiGHS."""

from __future__ import annotations

import pytest

from workbench.solvers.backend import Options, get_backend
from workbench.solvers.conformance import instances
from workbench.solvers.conformance.instances import MOVING_BASE, MOVING_CHANGES, make_moving_program
from workbench.solvers.conformance.sessions import require_same
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.solution import Start, Termination


def easy(label):
    return (
        instances.make_triangle()
        if get_backend(label).capabilities().lp
        else instances.make_knapsack()
    )


@pytest.mark.parametrize(
    ("known", "value"),
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
def test_native_options_pass(known, value):
    solver = get_backend(known)
    if not solver.is_installed() or not solver.licence().usable:
        pytest.skip(f"{known} is not usable here")
    with solver.open(easy(known), Options(native=value)) as session:
        solution = session.solve()
    assert solution.termination is Termination.OPTIMAL
    assert any(str(key).split(".")[0] in str(solution.options) for key in value)


def test_wrong_native_value_is_refused():
    for label, native in (
        ("highs", {"simplex_strategy": "fast"}),
        ("gurobi", {"Method": 99}),
        ("ortools:glop", {"use_dual_simplex": "perhaps"}),
        ("cvxpy:clarabel", {"max_iter": "many"}),
        ("scip", {"limits/nodes": "many"}),
    ):
        solver = get_backend(label)
        if solver.is_installed() and solver.licence().usable:
            with pytest.raises(UnsupportedOption, match=next(iter(native))):
                solver.open(easy(label), Options(native=native))


def test_a_cutoff_saves_iterations():
    """Only HiGHS stops at a cutoff."""
    base = instances.make_random_lp(40, 30, seed=4)
    with get_backend("highs").open(base, Options(presolve=False)) as session:
        whole = session.solve()
        cut = session.solve(start="cold", cutoff=whole.objective - 0.5 * abs(whole.objective))
        again = session.solve(start="cold")
    assert cut.termination is Termination.CUTOFF
    assert cut.iterations < whole.iterations
    assert again.objective == pytest.approx(whole.objective)  # a cutoff is of one solve


@pytest.mark.parametrize("label", ["highs", "gurobi"])
def test_a_solve_can_have_less_time_than_the_session(label):
    """The time limit of other solvers is the session's."""
    if not get_backend(label).is_installed() or not get_backend(label).licence().usable:
        pytest.skip(f"{label} is not usable here")
    program = instances.make_slow_lp(500)
    with get_backend(label).open(program, Options(time_limit=60.0)) as session:
        assert session.solve(time_limit=0.003).termination is Termination.TIME_LIMIT
        assert session.solve(start="cold").termination is Termination.OPTIMAL


@pytest.mark.parametrize("scale", [1.0, 2.0**20])
def test_an_lp_passed_again_keeps_its_basis_and_its_answers(scale, monkeypatch):
    """HiGHS receives many new coefficients by one pass of the LP, which keeps basis and answers."""
    from workbench.solvers.backends import highs

    monkeypatch.setattr(highs, "_MIN_PASS_CHANGES", -1000)
    program, now = make_moving_program(scale), dict(MOVING_BASE)
    with (
        get_backend("highs").open(program) as session,
        get_backend("highs").open(make_moving_program()) as judge,
    ):
        session.solve(now)
        for k, change in enumerate(MOVING_CHANGES):
            if "right" in change and change["right"] < 0:
                continue
            now = now | change | {"coefficient": 0.5 + 0.01 * k}
            hot = session.solve(now)
            assert hot.start is Start.HOT
            require_same(hot, judge.solve(now, start="cold"), 1e-8)
        again = session.solve(now | {"coefficient": now["coefficient"] + 1e-9})
        assert again.start is Start.HOT
        assert again.iterations == 0  # the basis was kept: a cold start needs some
        assert session.solve(now, start="cold").iterations > 0


def test_thread_counts_can_change_in_one_process():
    """HiGHS keeps one thread pool per process and fails when a second count is asked for."""
    for threads in (1, 2, 1, None, 2):
        with get_backend("highs").open(
            instances.make_triangle(), Options(threads=threads)
        ) as session:
            assert session.solve().termination is Termination.OPTIMAL


def test_a_foreign_pool_size_does_not_matter():
    """Another library in the process may run HiGHS with another number of threads."""
    highspy = pytest.importorskip("highspy")
    with get_backend("highs").open(instances.make_triangle()) as session:
        assert session.solve().termination is Termination.OPTIMAL
        foreign = highspy.Highs()
        foreign.setOptionValue("output_flag", False)
        foreign.setOptionValue("threads", 2)
        foreign.resetGlobalScheduler(True)
        foreign.addVar(0, 1)
        foreign.run()
        assert session.solve(start="cold").termination is Termination.OPTIMAL


def test_highs_info_that_is_not_valid_counts_as_none():
    """After a failed run HiGHS returns meaningless numbers, once 2,905,069,856 iterations."""
    with get_backend("highs").open(make_moving_program()) as session:
        assert session.solve(dict(MOVING_BASE), start="cold").iterations > 0
        native = session._h
        native.clearSolver()
        for name in ("simplex_iteration_count", "primal_solution_status", "basis_validity"):
            assert str(native.getInfoValue(name)[0]) != "HighsStatus.kOk"
            assert session._read_info(name) == 0
