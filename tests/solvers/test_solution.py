"""Tests of what a `Solution` computes: objective, bound, gap, residuals and checks of rays."""

from __future__ import annotations

import pickle
from fractions import Fraction
from importlib.metadata import version

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from workbench.solvers.backend import Options, get_backend, solve
from workbench.solvers.program import Block, Data, Move, Program
from workbench.solvers.session import Raw, Session
from workbench.solvers.solution import (
    DualValues,
    PointStatus,
    Solution,
    Termination,
    compute_residuals,
    is_unbounded_direction,
    lagrangian_bound,
    proves_infeasibility,
    relative_gap,
)

INF = np.inf


def make_data(integer=False):
    """State min 5 - x - y with x + 2y <= 3, 2x + y <= 3 and x, y >= 0: 3 at (1, 1)."""
    return Data(
        c=np.array([-1.0, -1.0]),
        offset=5.0,
        A=sp.csc_array(np.array([[1.0, 2.0], [2.0, 1.0]])),
        row_lower=np.full(2, -INF),
        row_upper=np.full(2, 3.0),
        lower=np.zeros(2),
        upper=np.full(2, INF),
        integrality=np.full(2, integer),
    )


def make_program(sense=1):
    """Return the program of `make_data`. A sense of -1 means that the model maximises."""
    return Program("box", make_data(), variables=(Block("x", 0, (2,)),), sense=sense)


def make_solution(*, sense=1, termination=Termination.OPTIMAL, **fields):
    """Return a solution of `make_program(sense)`. The other arguments are fields of `Solution`."""
    return Solution(make_program(sense), p=np.zeros(0), termination=termination, **fields)


def make_optimal_solution(sense):
    """Return the optimal solution with its multipliers."""
    return make_solution(
        sense=sense,
        x=np.ones(2),
        point=PointStatus.FEASIBLE,
        dual_values=DualValues(row_dual=np.full(2, -1 / 3), reduced_cost=np.zeros(2)),
        dual=PointStatus.FEASIBLE,
    )


def test_without_a_point_numbers_are_none():
    solution = make_solution(termination=Termination.TIME_LIMIT)
    assert solution.objective is None
    assert solution.bound is None
    assert solution.gap is None
    assert solution.residuals is None
    assert not solution.is_optimal
    assert "objective unknown" in str(solution)


def test_without_a_point_a_variable_has_no_value():
    solution = make_solution(termination=Termination.TIME_LIMIT)
    with pytest.raises(ValueError, match="has no value"):
        solution["x"]


@pytest.mark.parametrize("sense", [1, -1])
def test_objective_and_bound_have_the_sign_of_the_model(sense):
    solution = make_optimal_solution(sense)
    assert solution.objective == sense * 3
    assert solution.bound == pytest.approx(sense * 3)
    assert solution.gap == pytest.approx(0)
    assert make_solution(sense=sense, native_bound=2.5).bound == sense * 2.5


def test_an_optimal_point_is_read_by_the_name_of_its_variable():
    solution = make_optimal_solution(sense=1)
    assert solution.is_optimal
    assert solution.residuals.max_violation == 0
    assert solution["x"].tolist() == [1, 1]


def test_the_relative_gap_divides_by_objectives_above_one():
    assert relative_gap(objective=None, bound=1.0) is None
    assert relative_gap(objective=1.0, bound=None) is None
    assert relative_gap(objective=0.5, bound=0.25) == 0.25
    assert relative_gap(objective=-200.0, bound=-201.0) == 1 / 200


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_no_multipliers_prove_more_than_the_optimum(y):
    bound = lagrangian_bound(make_data(), np.array(y))
    assert bound is None or bound <= 3 + 1e-9


def test_optimal_multipliers_prove_the_optimum():
    assert lagrangian_bound(make_data(), np.full(2, -1 / 3)) == pytest.approx(3)


def test_multipliers_of_infinite_sides_prove_no_bound():
    """Positive multipliers belong to the lower sides of the rows, which are infinite."""
    assert lagrangian_bound(make_data(), np.zeros(2)) is None
    assert lagrangian_bound(make_data(), np.array([1.0, 1.0])) is None


def compute_exact_bound(data, y):
    """Return the Lagrangian bound of `lagrangian_bound` in rationals, for y >= 0."""
    multipliers = [Fraction(value) for value in y]
    bound = Fraction(data.offset)
    for multiplier, side in zip(multipliers, data.row_lower, strict=True):
        bound += multiplier * Fraction(side)
    A = data.A.toarray()
    for j in range(data.c.size):
        reduced_cost = Fraction(data.c[j])
        for i, multiplier in enumerate(multipliers):
            reduced_cost -= multiplier * Fraction(A[i, j])
        bound += min(reduced_cost * Fraction(data.lower[j]), reduced_cost * Fraction(data.upper[j]))
    return bound


@given(st.integers(0, 10**6), st.floats(0, 12))
def test_rounding_does_not_raise_a_bound_over_bounded_variables(seed, max_exponent):
    """The numbers have sizes from 10^-max_exponent to 10^max_exponent, so that sums cancel."""
    rng = np.random.default_rng(seed)
    row_count, column_count = rng.integers(1, 6, size=2)

    def draw_numbers(*shape):
        """Draw an array of normal numbers that are multiplied by random sizes."""
        sizes = 10 ** rng.uniform(-max_exponent, max_exponent, shape)
        return rng.normal(size=shape) * sizes

    low, high = np.sort(draw_numbers(2, column_count), axis=0)
    data = Data(
        c=draw_numbers(column_count),
        offset=float(draw_numbers()),
        A=sp.csc_array(draw_numbers(row_count, column_count)),
        row_lower=draw_numbers(row_count),
        row_upper=np.full(row_count, INF),
        lower=low,
        upper=high,
        integrality=np.zeros(column_count, dtype=bool),
    )
    y = np.abs(draw_numbers(row_count))
    assert Fraction(lagrangian_bound(data, y)) <= compute_exact_bound(data, y)


def test_residuals_are_the_largest_violations():
    data = make_data(integer=True)
    residuals = compute_residuals(data, np.array([1.5, -0.25]))
    assert residuals.rows == 0
    assert residuals.bounds == 0.25
    assert residuals.integrality == 0.5
    assert residuals.max_violation == 0.5
    assert compute_residuals(data, np.array([2.0, 2.0])).rows == 3


def test_multipliers_prove_that_rows_are_infeasible():
    """Half of 2x + y >= 7 minus x + 2y <= 3 is -3y/2 >= 1/2, which no y >= 0 satisfies."""
    data = make_data()
    data.row_lower[1] = 7.0
    data.row_upper[1] = INF
    assert proves_infeasibility(data, np.array([-1.0, 0.5]))
    assert not proves_infeasibility(data, np.array([1.0, -0.5]))
    assert not proves_infeasibility(data, np.zeros(2))


def test_a_direction_proves_that_a_program_is_unbounded():
    unbounded_data = make_data()
    unbounded_data.row_upper[:] = INF
    assert is_unbounded_direction(unbounded_data, np.array([1.0, 0.0]))
    assert not is_unbounded_direction(unbounded_data, np.array([-1.0, 0.0]))
    assert not is_unbounded_direction(make_data(), np.array([1.0, 0.0]))


def test_a_solution_prints_a_summary():
    with get_backend("highs").open(make_program()) as session:
        lines = str(session.solve()).splitlines()
    assert lines[0] == f"box by highs {version('highspy')}: optimal"
    assert lines[1].split() == ["point", "feasible,", "objective", "3"]
    assert lines[2].split()[:2] == ["bound", "3,"]
    assert lines[-1].split() == ["status", "Optimal"]


@pytest.mark.parametrize("label", ["highs", "gurobi"])
def test_solutions_keep_their_dual_values_after_later_solves(label):
    """The parameter is added to the costs (-1, -1) of the program."""
    backend = get_backend(label)
    if not backend.is_installed() or not backend.licence().usable:
        pytest.skip(f"{label} is not usable here")
    data = make_data()
    program = Program(
        "box",
        data,
        variables=(Block("x", 0, (2,)),),
        parameters={"costs": (2,)},
        moves={"c": Move(positions=np.arange(2), base=data.c, matrix=sp.csr_array(np.eye(2)))},
    )
    with backend.open(program) as session:
        first = session.solve({"costs": [0.0, 0.0]})
        assert first.basis is not None
        second = session.solve({"costs": [0.0, -1.0]})
        third = session.solve({"costs": [1.0, 1.0]})
    assert first.row_dual == pytest.approx([-1 / 3, -1 / 3])
    assert second.row_dual == pytest.approx([-1, 0])
    assert third.row_dual == pytest.approx([0, 0])
    assert second.reduced_cost == pytest.approx([0, 0])


def test_a_pickled_solution_has_no_basis():
    """The basis is an object of the solver's library, which cannot be pickled."""
    with get_backend("highs").open(make_program()) as session:
        solution = session.solve()
    assert solution.basis is not None
    copied_solution = pickle.loads(pickle.dumps(solution))
    assert copied_solution.basis is None
    assert copied_solution.row_dual.tolist() == solution.row_dual.tolist()
    assert copied_solution.objective == solution.objective


def test_multipliers_that_prove_nothing_are_dropped():
    """A solver may return multipliers of the rows although it did not decide feasibility."""
    data = Data(
        c=np.ones(1),
        offset=0.0,
        A=sp.csc_array(np.ones((3, 1))),
        row_lower=np.zeros(3),
        row_upper=np.ones(3),
        lower=np.zeros(1),
        upper=np.ones(1),
        integrality=np.zeros(1, dtype=bool),
    )
    program = Program("three rows", data, variables=(Block("x", 0, (1,)),), scale=2.0**20)

    class UndecidedSession(Session):
        """A session of a solver that decides nothing, but returns a ray."""

        def _build(self, data):
            """Load nothing."""

        def _run(self, start, basis):
            """Return multipliers of 1 that prove nothing."""
            return Raw(Termination.NUMERICAL, "Infeasible", ray=np.ones(3))

    solution = UndecidedSession(get_backend("highs"), program, Options()).solve()
    assert solution.termination is Termination.NUMERICAL
    assert solution.ray is None


def test_gurobi_without_crossover_has_dual_values_and_no_basis():
    pytest.importorskip("gurobipy")
    data = Data(
        c=-np.ones(2),
        offset=0.0,
        A=sp.csc_array(np.eye(2)),
        row_lower=np.full(2, -INF),
        row_upper=np.ones(2),
        lower=np.zeros(2),
        upper=np.full(2, 5.0),
        integrality=np.zeros(2, dtype=bool),
    )
    options = Options(native={"Method": 2, "Crossover": 0})
    solution = solve(Program("box", data), solver="gurobi", options=options)
    assert solution.termination is Termination.OPTIMAL
    assert solution.basis is None
    assert solution.bound == pytest.approx(-2, abs=1e-6)
