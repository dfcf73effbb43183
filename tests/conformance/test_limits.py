"""Limits, options, and what is left of an answer when one of them stops the solver."""

from __future__ import annotations

import time

import conformance_instances as instances
import pytest

from solvers.backend import Options, backend
from solvers.errors import UnsupportedOption
from solvers.solution import PointStatus, Termination

needs = pytest.mark.needs

# an acceptable value of every option, by name
VALUES = {
    "time_limit": 60.0,
    "gap": 1e-4,
    "node_limit": 10_000,
    "iteration_limit": 100_000,
    "threads": 1,
    "seed": 3,
    "feasibility_tolerance": 1e-7,
    "integrality_tolerance": 1e-7,
    "presolve": False,
    "algorithm": "simplex",
    "dual_feasibility_tolerance": 1e-8,
}


def easy(label):
    return instances.triangle() if backend(label).capabilities().lp else instances.knapsack()


def answer(label, program, **options):
    with backend(label).open(program, Options(**options)) as session:
        return session.solve()


@needs("milp")
def test_time_limit_with_incumbent(label):
    for limit in (0.4, 4.0, 20.0):  # a busy machine may have no incumbent sooner
        begin = time.perf_counter()
        solution = answer(label, instances.packing(), time_limit=limit)
        assert time.perf_counter() - begin < 120
        if solution.x is not None:
            break
    assert solution.termination is Termination.TIME_LIMIT
    assert solution.point is PointStatus.FEASIBLE
    assert solution.residuals.worst <= 1e-6
    assert solution.bound < solution.objective < 0
    assert solution.gap > 1e-6


@needs("milp")
def test_time_limit_without_incumbent(label):
    solution = answer(label, instances.market_split(), time_limit=0.3)
    assert solution.termination is Termination.TIME_LIMIT
    assert solution.x is None
    assert solution.point is PointStatus.NONE
    assert solution.objective is None
    assert solution.gap is None
    assert solution.bound is None or 0 <= solution.bound <= 40


@needs("lp")
def test_lp_time_limit(label):
    solution = answer(label, instances.slow_lp(500), time_limit=0.003)
    assert solution.termination is Termination.TIME_LIMIT
    assert solution.x is None or solution.point is PointStatus.INFEASIBLE or solution.residuals.worst < 1e-6


@needs("lp")
def test_time_limit_is_per_solve(label):
    """HiGHS's own limit counts from the birth of its object."""
    base = instances.random_lp(60, 40, seed=2)
    program = instances.movable(base, row_upper=("shift", 1))
    limit, count = 3.0 if label == "highs" else 1.0, 0
    begin = time.perf_counter()
    with backend(label).open(program, Options(time_limit=limit)) as session:
        while time.perf_counter() - begin < limit + 0.3:
            count += 1
            solution = session.solve({"shift": 0.001 * (count % 7)})
            slow = solution.seconds > limit / 2  # the machine, not the solver
            assert slow or solution.termination is Termination.OPTIMAL


@needs("milp")
def test_gap_limit(label):
    solution = answer(label, instances.packing(), gap=0.25, time_limit=20)
    assert solution.termination is Termination.GAP_LIMIT
    assert 1e-9 < solution.gap <= 0.25
    assert solution.bound < solution.objective


@needs("milp")
def test_node_limit(label):
    if "node_limit" not in backend(label).supported_options:
        with pytest.raises(UnsupportedOption, match="node_limit"):
            answer(label, instances.packing(), node_limit=1)
        return
    solution = answer(label, instances.packing(), node_limit=1, time_limit=30)
    assert solution.termination is Termination.NODE_LIMIT
    assert solution.gap is None or solution.gap > 1e-6


@needs("lp")
def test_iteration_limit(label):
    if "iteration_limit" not in backend(label).supported_options:
        with pytest.raises(UnsupportedOption, match="iteration_limit"):
            answer(label, instances.random_lp(), iteration_limit=1)
        return
    solution = answer(label, instances.slow_lp(60), iteration_limit=2)
    assert solution.termination is Termination.ITERATION_LIMIT


@pytest.mark.parametrize("option", sorted(VALUES))
def test_every_option_is_honoured_or_refused_by_name(label, option):
    options = Options(**({"threads": None} | {option: VALUES[option]}))
    solver = backend(label)
    if option not in solver.supported_options:
        with pytest.raises(UnsupportedOption, match=rf"^{label} cannot honour the option {option}; leave it out\.$"):
            solver.open(easy(label), options)
        return
    with solver.open(easy(label), options) as session:
        solution = session.solve()
    assert solution.termination is Termination.OPTIMAL
    assert solution.threads == options.threads
    assert solution.seed == options.seed


def test_unknown_native_option_is_refused_by_name(label):
    with pytest.raises(UnsupportedOption, match="no_such_option"):
        backend(label).open(easy(label), Options(native={"no_such_option": 1}))


@pytest.mark.parametrize(
    ("known", "value"),
    [
        ("highs", {"simplex_strategy": 4}),
        ("gurobi", {"Method": 0}),
        ("ortools:glop", {"use_dual_simplex": True}),
        ("ortools:pdlp", {"termination_criteria.simple_optimality_criteria.eps_optimal_relative": 1e-9}),
        ("ortools:cp-sat", {"cp_model_presolve": False}),
        ("ortools:gscip", {"separating/maxrounds": 0}),
        ("cvxpy:clarabel", {"tol_gap_abs": 1e-10}),
        ("cvxpy:scs", {"normalize": False}),
        ("scip", {"separating/maxrounds": 0}),
    ],
)
def test_native_options_pass(known, value):
    solver = backend(known)
    if not solver.installed() or not solver.licence().usable:
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
        solver = backend(label)
        if solver.installed() and solver.licence().usable:
            with pytest.raises(UnsupportedOption, match=next(iter(native))):
                solver.open(easy(label), Options(native=native))


@needs("lp")
def test_unknown_algorithm_is_refused(label):
    if "algorithm" in backend(label).supported_options:
        with pytest.raises(UnsupportedOption, match="algorithm must be one of simplex"):
            backend(label).open(easy(label), Options(algorithm="guessing"))


def test_more_threads(label):
    try:
        solution = answer(label, easy(label), threads=2)
    except UnsupportedOption as error:
        assert "thread" in str(error)  # noqa: PT017
    else:
        assert solution.termination is Termination.OPTIMAL
        assert solution.threads == 2


@needs("lp")
@pytest.mark.parametrize("scale", [1.0, 2.0**20])
def test_a_cutoff_ends_a_linear_program_only_where_its_duals_prove_it(label, scale):
    base = instances.random_lp(40, 30, seed=4, scale=scale)
    optimum = answer(label, base).objective
    with backend(label).open(base, Options()) as session:
        for cutoff in (optimum + 1.0, optimum - 1.0, None):
            found = session.solve(start="cold", cutoff=cutoff)
            if found.termination is Termination.CUTOFF:
                assert found.x is None
                assert cutoff - 1e-6 <= found.bound <= optimum + 1e-6
                assert cutoff < optimum
            else:
                assert found.termination is Termination.OPTIMAL
                assert found.objective == pytest.approx(optimum, rel=1e-4)


@needs("lp", "hot_start")
def test_a_cutoff_saves_iterations(label):
    if label != "highs":
        pytest.skip("only HiGHS stops at a cutoff")
    base = instances.random_lp(40, 30, seed=4)
    with backend("highs").open(base, Options(presolve=False)) as session:
        whole = session.solve()
        cut = session.solve(start="cold", cutoff=whole.objective - 0.5 * abs(whole.objective))
        again = session.solve(start="cold")
    assert cut.termination is Termination.CUTOFF
    assert cut.iterations < whole.iterations
    assert again.objective == pytest.approx(whole.objective)  # a cutoff is of one solve


@needs("lp", "hot_start")
def test_a_solve_can_have_less_time_than_the_session(label):
    if label not in ("highs", "gurobi"):
        pytest.skip("its time limit is the session's")
    program = instances.slow_lp(500)
    with backend(label).open(program, Options(time_limit=60.0)) as session:
        assert session.solve(time_limit=0.003).termination is Termination.TIME_LIMIT
        assert session.solve(start="cold").termination is Termination.OPTIMAL


@needs("milp")
def test_loading_counts_against_the_time_limit(label):
    with backend(label).open(instances.packing(), Options(time_limit=300.0)) as session:
        load = session._build

        def slowly(data):
            session._deadline._begin -= 299.5  # as if loading had taken so long
            load(data)

        session._build = slowly
        begin = time.perf_counter()
        solution = session.solve()
    assert solution.termination is Termination.TIME_LIMIT
    assert solution.seconds > 299.5
    assert time.perf_counter() - begin < 120
