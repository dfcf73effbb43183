"""Live sessions: every kind of change, hot equals cold, refused numbers, silence, licences."""

from __future__ import annotations

from dataclasses import replace

import conformance_instances as instances
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from solvers.backend import Options, backend
from solvers.canonical import compile
from solvers.data import Data
from solvers.errors import InvalidProgram, LicenceExceeded, SolverError
from solvers.program import Program
from solvers.solution import Start, Termination

needs = pytest.mark.needs

# One parameter per kind of number. Optimal vertices are unique at all these values.
BASE = {"right": 1.0, "coefficient": 0.5, "cost": 1.0, "bound": 2.0, "level": 0.3, "constant": 0.0}
CHANGES = [
    {"right": 1.2},
    {"coefficient": 0.9},
    {"cost": 3.5},
    {"bound": 0.6},
    {"level": 0.45},
    {"constant": -7.0},
    {"coefficient": 0.0},
    {"right": 0.8, "coefficient": 0.7, "cost": 2.0, "bound": 1.1, "level": 0.1, "constant": 4.0},
    {"right": -5.0},  # infeasible
    {"right": 1.0},
]


def model(scale=1.0, integer=False):
    p = {name: cp.Parameter(name=name) for name in BASE}
    kind = {"integer": True} if integer else {}
    x = cp.Variable(6, name="x", bounds=[0, 3], **kind)
    z = cp.Variable(name="z", bounds=[0, p["bound"]], **kind)  # CVXPY: no other parameter may multiply it
    rng = np.random.default_rng(3)
    A = rng.uniform(0.2, 1, (10, 6))
    rows = [
        A @ x <= A.sum(axis=1) * (1 + p["right"]),
        p["coefficient"] * x[0] + x[1] + x[2] <= 2.25 + p["right"],
        (1 + p["coefficient"]) * x[3] >= 0.4,
        x[4] + x[5] == 1 + (0.0 if integer else 1.0) * p["level"],
        z + 0.5 * x[5] <= 1.7,
        cp.sum(x) >= 0.5,
    ]
    cost = rng.uniform(0.5, 1.5, 6) @ x + 1.1 * z + p["cost"] * x[0] + 0.37 * p["cost"] * x[3] + p["constant"]
    return compile(cp.Problem(cp.Maximize(cost), rows), "moving", scale=scale)


def values():
    now = dict(BASE)
    yield now
    for change in CHANGES:
        now = now | change
        yield now


def same(one, other, accuracy):
    assert one.termination is other.termination
    if one.termination is Termination.OPTIMAL:
        assert one.objective == pytest.approx(other.objective, abs=accuracy)
        assert one.x == pytest.approx(other.x, abs=10 * accuracy)
    if one.row_dual is not None and other.row_dual is not None:
        assert one.row_dual == pytest.approx(other.row_dual, abs=10 * accuracy)
        assert one.bound == pytest.approx(other.bound, abs=10 * accuracy)


@needs("lp")
@pytest.mark.parametrize("scale", [1.0, 2.0**20])
def test_resolve_equals_cold(label, accuracy, scale):
    program = model(scale)
    starts = []
    with backend(label).open(program) as session, backend("highs").open(model()) as judge:
        for now in values():
            hot = session.solve(now)
            cold = judge.solve(now, start="cold")
            starts.append(hot.start)
            same(hot, cold, 10 * accuracy)
        same(session.solve(now, start="cold"), cold, 10 * accuracy)
    assert starts[0] is Start.COLD
    if backend(label).capabilities().hot_start:
        assert starts[1:] == [Start.HOT] * len(CHANGES)


@pytest.mark.parametrize("scale", [1.0, 2.0**20])
def test_an_lp_passed_again_keeps_its_basis_and_its_answers(scale, monkeypatch):
    """HiGHS takes many new coefficients by one pass of the LP: the same answers, from the same basis."""
    from solvers import highs

    monkeypatch.setattr(highs, "_CALLS", -1000)
    program, now = model(scale), dict(BASE)
    with backend("highs").open(program) as session, backend("highs").open(model()) as judge:
        session.solve(now)
        for k, change in enumerate(CHANGES):
            if "right" in change and change["right"] < 0:
                continue
            now = now | change | {"coefficient": 0.5 + 0.01 * k}
            hot = session.solve(now)
            assert hot.start is Start.HOT
            same(hot, judge.solve(now, start="cold"), 1e-8)
        again = session.solve(now | {"coefficient": now["coefficient"] + 1e-9})
        assert again.start is Start.HOT
        assert again.iterations == 0  # the basis was kept: a cold start needs some
        assert session.solve(now, start="cold").iterations > 0


@needs("lp")
def test_a_session_follows_other_costs_and_bounds_on_its_matrix(label, accuracy):
    """The live object goes on hot, and its answers are those of a new one."""
    rng = np.random.default_rng(5)
    A = sp.csc_array(rng.uniform(0.2, 1, (8, 6)))

    def plain(k):
        low = np.where(rng.random(6) < 0.5, 0.0, -rng.random(6))
        high = np.where(rng.random(6) < 0.3, np.inf, 1 + rng.random(6))
        limit = A.sum(axis=1) * (0.5 + rng.random())
        cost = rng.uniform(-1, 1, 6) - 0.1 * k
        return Program(f"plain {k}", Data(cost, float(k), A, np.full(8, -np.inf), limit, low, high, np.zeros(6, bool)))

    solver = backend(label)
    with solver.open(plain(0)) as session:
        session.solve()
        for k in range(1, 8):
            program = plain(k)
            session.follow(program)
            hot = session.solve()
            with backend("highs").open(program) as judge:
                cold = judge.solve()
            assert hot.program is program
            assert hot.termination is cold.termination
            if cold.x is not None:
                assert hot.objective == pytest.approx(cold.objective, abs=100 * accuracy)
            if label == "highs":
                assert hot.start is Start.HOT
        whole = replace(program.template, integrality=np.ones(6, bool))
        for wrong in (Program("whole", whole), model()):
            with pytest.raises(InvalidProgram, match="matrix pattern and integer columns of plain 7"):
                session.follow(wrong)
        session.follow(Program("crossed", replace(program.template, lower=program.template.upper + 1)))
        with pytest.raises(InvalidProgram, match="crossed bounds"):
            session.solve()


@needs("milp")
def test_milp_resolve_equals_cold(label):
    with backend(label).open(model(integer=True)) as session:
        for now in values():
            again = session.solve(now)
            cold = session.solve(now, start="cold")
            assert again.termination is cold.termination
            if cold.x is not None:
                assert again.x.tolist() == cold.x.tolist()
                assert again.bound == pytest.approx(again.objective, abs=1e-6)


@needs("lp")
def test_maximisation(label, accuracy):
    """Objective and bound are the model's; duals are those of minimising its negative."""
    x = cp.Variable(2, name="x", nonneg=True)
    limit = cp.Parameter(name="limit")
    program = compile(cp.Problem(cp.Maximize(cp.sum(x) + 5), [x[0] + 2 * x[1] <= limit, 2 * x[0] + x[1] <= 3]))
    with backend(label).open(program) as session:
        solution = session.solve({"limit": 3.0})
        assert solution.objective == pytest.approx(7, abs=accuracy)
        more = session.solve({"limit": 3.3})
        assert more.objective == pytest.approx(7.1, abs=accuracy)
    if backend(label).capabilities().duals:
        assert solution.bound == pytest.approx(7, abs=10 * accuracy)
        assert solution.row_dual == pytest.approx([-1 / 3, -1 / 3], abs=10 * accuracy)


@needs("lp")
def test_ranged_rows_move_on_both_sides(label, accuracy):
    """min x0 + x1, low <= x0 + 2 x1 <= high, and its mirror image."""
    for sign, side, optimum in ((1.0, "row_lower", 0.5), (-1.0, "row_upper", -3.0)):
        base = instances.program([sign, sign], [[1, 2]], 1, 3)
        with backend(label).open(instances.movable(base, **{side: ("shift", 0)})) as session:
            assert session.solve({"shift": 0.0}).objective == pytest.approx(optimum, abs=accuracy)
            moved = 0.75 if sign > 0 else -3.5
            assert session.solve({"shift": 0.5}).objective == pytest.approx(moved, abs=accuracy)
            # far enough to change the kind of the row: the two sides meet
            shift = 2.0 if sign > 0 else -2.0
            meet = 1.5 if sign > 0 else -1.0
            assert session.solve({"shift": shift}).objective == pytest.approx(meet, abs=accuracy)
            assert session.solve({"shift": 0.0}).objective == pytest.approx(optimum, abs=accuracy)


@needs("lp")
def test_goes_on_after_infeasible_and_unbounded(label, accuracy):
    """min -x, x <= upper with upper infinite or not, x >= floor."""
    base = instances.program([0.0], [[1.0], [1.0]], [-np.inf, 0.0], [4.0, np.inf], upper=10.0)
    program = instances.movable(base, c=("cost", 0), row_upper=("ceiling", 0))
    with backend(label).open(program) as session:
        assert session.solve({"cost": -1.0, "ceiling": 0.0}).objective == pytest.approx(-4, abs=accuracy)
        assert session.solve({"cost": -1.0, "ceiling": -6.0}).termination is Termination.INFEASIBLE
        assert session.solve({"cost": -1.0, "ceiling": 1.0}).objective == pytest.approx(-5, abs=accuracy)
        assert session.solve({"cost": 2.0, "ceiling": 1.0}).objective == pytest.approx(0, abs=accuracy)
    free = instances.program([0.0, 0.0], [[1.0, -1.0]], -np.inf, 1.0)
    with backend(label).open(instances.movable(free, c=("cost", 0))) as session:
        assert session.solve({"cost": 1.0}).objective == pytest.approx(0, abs=accuracy)
        assert session.solve({"cost": -1.0}).termination is Termination.UNBOUNDED
        assert session.solve({"cost": 1.0}).objective == pytest.approx(0, abs=accuracy)


@needs("lp", "hot_start")
def test_basis_start(label):
    program = model()
    with backend(label).open(program) as session:
        first = session.solve(BASE)
        assert first.basis is not None
        session.solve(BASE | {"cost": -3.0})
        again = session.solve(BASE, start="basis", basis=first.basis)
        assert again.start is Start.BASIS
        assert again.objective == pytest.approx(first.objective, abs=1e-9)
        assert again.iterations <= first.iterations
    with backend(label).open(program) as fresh:
        solution = fresh.solve(BASE, start="basis", basis=first.basis)
        assert solution.objective == pytest.approx(first.objective, abs=1e-9)
        assert solution.iterations <= first.iterations


BAD = [np.nan, np.inf, -np.inf, 2e15, -1e16]


@pytest.mark.parametrize("hot", [False, True])
@pytest.mark.parametrize("section", ["c", "A", "row_upper", "upper", "offset"])
def test_misread_numbers_are_refused(label, section, hot):
    integer = not backend(label).capabilities().lp
    base = instances.program([-1.0, -1.0], [[1.0, 2.0], [2.0, 1.0]], -np.inf, 3.0, upper=9, integer=integer)
    program = instances.movable(base, **{section: ("number", 0)})
    with backend(label).open(program) as session:
        if hot:
            assert session.solve({"number": 0.0}).termination is Termination.OPTIMAL
        start = "hot" if hot else "cold"
        for number in BAD:
            with pytest.raises(InvalidProgram, match=r"finite|1e15|crossed"):
                session.solve({"number": number}, start=start)
        if section == "A":  # the entry is 1 + number
            with pytest.raises(InvalidProgram, match="1e-9"):
                session.solve({"number": -1.0 + 2.0**-40}, start=start)
        if section in ("upper", "row_upper"):
            crossed = instances.movable(
                instances.program([1.0], [[1.0]], 0.0, 1.0, upper=1.0, integer=integer), **{section: ("number", 0)}
            )
            with backend(label).open(crossed) as other:
                other.solve({"number": 0.0})
                with pytest.raises(InvalidProgram, match="crossed"):
                    other.solve({"number": -2.0}, start=start)
        assert session.solve({"number": 0.0}).objective == pytest.approx(-2, abs=1e-2)


def test_constant_nan_is_refused(label):
    integer = not backend(label).capabilities().lp
    for section in ("c", "row_upper", "lower"):
        program = instances.program([-1.0], [[1.0]], -np.inf, 3.0, upper=9, integer=integer)
        getattr(program.template, section)[0] = np.nan
        with backend(label).open(program) as session, pytest.raises(InvalidProgram, match="nan"):
            session.solve()


def test_silence(label, capfd):
    capabilities = backend(label).capabilities()
    programs = []
    if capabilities.lp:
        programs += [instances.triangle(), instances.infeasible(), instances.unbounded(), instances.both()]
        programs += [instances.mixed(False), instances.random_lp(60, 40)]
    if capabilities.milp:
        programs += [instances.knapsack(), instances.infeasible(True), instances.unbounded(True)]
        programs += [instances.packing(5, 15)]
    for program in programs:
        with backend(label).open(program) as session:
            session.solve()
            session.solve()
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == ""


def test_licence_is_known_before_building(label, monkeypatch):
    solver = backend(label)
    licence = solver.licence()
    if licence.max_columns is None:
        wide = instances.program(np.zeros(2500), np.ones((1, 2500)), 0, 1, integer=not solver.capabilities().lp)
        solver.check_size(wide)
        return
    monkeypatch.setattr("solvers.session.Session._load", lambda *_: pytest.fail("built"))
    for rows, columns in ((1, licence.max_columns + 1), (licence.max_rows + 1, 1)):
        large = instances.program(np.zeros(columns), np.ones((rows, columns)), 0, 1, name="large one")
        with pytest.raises(LicenceExceeded, match=r"admits 2000 columns and 2000 rows; large one has .* and .*\.$"):
            solver.open(large)
    solver.open(instances.program(np.zeros(licence.max_columns), np.ones((1, licence.max_columns)), -np.inf, 1)).close()


def test_a_closed_session_says_so(label):
    session = backend(label).open(instances.triangle(integer=not backend(label).capabilities().lp))
    solution = session.solve()
    session.close()
    session.close()
    with pytest.raises(SolverError, match=f"the session of triangle by {label} is closed"):
        session.solve()
    assert solution["x"] == pytest.approx([1, 1], abs=1e-2)


@needs("milp")
def test_bounds_of_integers_move(label):
    base = instances.program([-1.0], [[2.0]], -np.inf, 13.0, upper=0.0, integer=True)
    with backend(label).open(instances.movable(base, upper=("end", 0))) as session:
        objectives = [session.solve({"end": end}).objective for end in (3.5, 3.999, 4.0, 40.0, 0.5)]
    assert objectives == pytest.approx([-3, -3, -4, -6, 0], abs=1e-6)


@needs("lp")
def test_sessions_do_not_disturb_each_other(label, accuracy):
    one, other = backend(label).open(instances.triangle()), backend(label).open(instances.mixed(False))
    with one, other:
        for _ in range(2):
            assert one.solve().objective == pytest.approx(3, abs=accuracy)
            assert other.solve().objective == pytest.approx(0.25, abs=accuracy)


def test_thread_counts_can_change_in_one_process():
    """HiGHS keeps one thread pool per process and fails when a second count is asked for."""
    for threads in (1, 2, 1, None, 2):
        with backend("highs").open(instances.triangle(), Options(threads=threads)) as session:
            assert session.solve().termination is Termination.OPTIMAL


def test_a_foreign_pool_size_does_not_matter():
    """Another library in the process may run HiGHS on its own number of threads between our solves."""
    highspy = pytest.importorskip("highspy")
    with backend("highs").open(instances.triangle()) as session:
        assert session.solve().termination is Termination.OPTIMAL
        foreign = highspy.Highs()
        foreign.setOptionValue("output_flag", False)
        foreign.setOptionValue("threads", 2)
        foreign.resetGlobalScheduler(True)
        foreign.addVar(0, 1)
        foreign.run()
        assert session.solve(start="cold").termination is Termination.OPTIMAL


def test_highs_info_that_is_not_valid_counts_as_none():
    """After a failed run HiGHS returns numbers that mean nothing (once 2,905,069,856 iterations), with a warning."""
    with backend("highs").open(model()) as session:
        assert session.solve(dict(BASE), start="cold").iterations > 0
        native = session._h
        native.clearSolver()
        for name in ("simplex_iteration_count", "primal_solution_status", "basis_validity"):
            assert str(native.getInfoValue(name)[0]) != "HighsStatus.kOk"
            assert session._info(name) == 0
