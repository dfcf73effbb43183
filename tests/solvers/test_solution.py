"""What a Solution computes by itself: objective, bound, gap, residuals, certificates."""

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


def box(integer=False):
    """min -x - y + 5, x + 2y <= 3, 2x + y <= 3, 0 <= x, y."""
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


def solution(**kwargs):
    program = Program("box", box(), variables=(Block("x", 0, (2,)),), sense=kwargs.pop("sense", 1))
    return Solution(
        program=program, p=np.zeros(0), **({"termination": Termination.OPTIMAL} | kwargs)
    )


def test_unknown_is_none():
    nothing = solution(termination=Termination.TIME_LIMIT)
    assert (nothing.objective, nothing.bound, nothing.gap, nothing.residuals) == (
        None,
        None,
        None,
        None,
    )
    assert not nothing.is_optimal
    with pytest.raises(ValueError, match="has no value"):
        nothing["x"]
    assert "objective unknown" in str(nothing)


@pytest.mark.parametrize("sense", [1, -1])
def test_signs_follow_the_model(sense):
    dual_values = DualValues(np.full(2, -1 / 3), np.zeros(2))
    known = solution(
        sense=sense,
        x=np.ones(2),
        point=PointStatus.FEASIBLE,
        dual_values=dual_values,
        dual=PointStatus.FEASIBLE,
    )
    assert known.objective == sense * 3
    assert known.bound == pytest.approx(sense * 3)
    assert known.gap == pytest.approx(0)
    assert solution(sense=sense, native_bound=2.5).bound == sense * 2.5
    assert known.is_optimal
    assert known.residuals.max_violation == 0
    assert known["x"].tolist() == [1, 1]


def test_gap():
    assert relative_gap(None, 1.0) is None
    assert relative_gap(1.0, None) is None
    assert relative_gap(0.5, 0.25) == 0.25
    assert relative_gap(-200.0, -201.0) == 1 / 200


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_every_multiplier_bounds_from_below(y):
    """Whatever the multipliers, the bound is below the optimum 3, or there is none."""
    bound = lagrangian_bound(box(), np.array(y))
    assert bound is None or bound <= 3 + 1e-9


def test_no_bound_from_multipliers_that_prove_nothing():
    assert lagrangian_bound(box(), np.zeros(2)) is None
    assert (
        lagrangian_bound(box(), np.array([1.0, 1.0])) is None
    )  # point at the infinite side: set to zero
    assert lagrangian_bound(box(), np.full(2, -1 / 3)) == pytest.approx(3)


@given(st.integers(0, 10**6), st.floats(0, 12))
def test_a_bound_over_a_box_survives_rounding(seed, spread):
    """Compare with the Lagrangian value in rationals, for numbers that cancel."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 6, 2)

    def numbers(*shape):
        return rng.normal(size=shape) * 10 ** rng.uniform(-spread, spread, shape)

    low, high = np.sort(numbers(2, columns), axis=0)
    data = Data(
        numbers(columns),
        float(numbers()),
        sp.csc_array(numbers(rows, columns)),
        numbers(rows),
        np.full(rows, INF),
        low,
        high,
        np.zeros(columns, dtype=bool),
    )
    y = np.abs(numbers(rows))
    A = [[Fraction(a) for a in row] for row in data.A.toarray().tolist()]
    exact = Fraction(data.offset) + sum(
        Fraction(a) * Fraction(b) for a, b in zip(y, data.row_lower, strict=True)
    )
    for j in range(columns):
        reduced = Fraction(data.c[j]) - sum(Fraction(y[i]) * A[i][j] for i in range(rows))
        exact += min(reduced * Fraction(low[j]), reduced * Fraction(high[j]))
    assert Fraction(lagrangian_bound(data, y)) <= exact


def test_residuals():
    data = box(integer=True)
    at = compute_residuals(data, np.array([1.5, -0.25]))
    assert (at.rows, at.bounds, at.integrality, at.max_violation) == (0, 0.25, 0.5, 0.5)
    assert compute_residuals(data, np.array([2.0, 2.0])).rows == 3


def test_certificates():
    data = box()
    data.row_lower[1] = 7.0
    data.row_upper[1] = INF
    # 2x + y >= 7 while x + 2y <= 3: twice the second less the first
    assert proves_infeasibility(data, np.array([-1.0, 0.5]))
    assert not proves_infeasibility(data, np.array([1.0, -0.5]))
    assert not proves_infeasibility(data, np.zeros(2))
    free = box()
    free.row_upper[:] = INF
    assert is_unbounded_direction(free, np.array([1.0, 0.0]))
    assert not is_unbounded_direction(free, np.array([-1.0, 0.0]))
    assert not is_unbounded_direction(box(), np.array([1.0, 0.0]))


def test_printed_summary():
    with get_backend("highs").open(
        Program("box", box(), variables=(Block("x", 0, (2,)),))
    ) as session:
        lines = str(session.solve()).splitlines()
    assert lines[0] == f"box by highs {version('highspy')}: optimal"
    assert lines[1].split() == ["point", "feasible,", "objective", "3"]
    assert lines[2].split()[:2] == ["bound", "3,"]
    assert lines[-1].split() == ["status", "Optimal"]


@pytest.mark.parametrize("label", ["highs", "gurobi"])
def test_the_rest_is_read_late_but_not_too_late(label):
    """Duals and basis stay in the solver until they are asked for, or the solver moves on."""
    solver = get_backend(label)
    if not solver.is_installed() or not solver.licence().usable:
        pytest.skip(f"{label} is not usable here")
    data = box()
    matrix = sp.csr_array(np.eye(2))
    program = Program(
        "box",
        data,
        variables=(Block("x", 0, (2,)),),
        parameters={"costs": (2,)},
        moves={"c": Move(np.arange(2), data.c, matrix)},
    )
    with solver.open(program) as session:
        first = session.solve({"costs": [0.0, 0.0]})
        second = session.solve({"costs": [0.0, -1.0]})
        third = session.solve({"costs": [1.0, 1.0]})
    assert first.row_dual == pytest.approx([-1 / 3, -1 / 3])
    assert second.row_dual == pytest.approx([-1, 0])
    assert third.row_dual == pytest.approx([0, 0])
    assert second.reduced_cost == pytest.approx([0, 0])
    assert first.basis is not None
    again = pickle.loads(pickle.dumps(second))
    assert again.basis is None  # the solver's own object stays behind
    assert again.row_dual.tolist() == second.row_dual.tolist()
    assert again.objective == second.objective


def test_multipliers_of_a_scaled_program_that_prove_nothing_are_dropped():
    """A solver may hand back as many multipliers as there are rows, and say it is not certain."""
    data = Data(
        np.ones(1),
        0.0,
        sp.csc_array(np.ones((3, 1))),
        np.zeros(3),
        np.ones(3),
        np.zeros(1),
        np.ones(1),
        np.zeros(1, dtype=bool),
    )
    program = Program("three rows", data, 1, (Block("x", 0, (1,)),), scale=2.0**20)
    raw = Raw(Termination.NUMERICAL, "Infeasible", ray=np.ones(3))

    class Answered(Session):
        def _build(self, data):
            pass

        def _run(self, start, basis):
            return raw

    answer = Answered(get_backend("highs"), program, Options()).solve()
    assert answer.termination is Termination.NUMERICAL
    assert answer.ray is None


def test_gurobi_without_crossover_has_duals_and_no_basis():
    pytest.importorskip("gurobipy")
    program = Program("a box", Data(-np.ones(2), 0.0, sp.csc_array(np.eye(2)), np.full(2, -np.inf), np.ones(2),
                      np.zeros(2), np.full(2, 5.0), np.zeros(2, dtype=bool)))  # fmt: skip
    found = solve(program, solver="gurobi", options=Options(native={"Method": 2, "Crossover": 0}))
    assert (found.termination, found.basis) == (Termination.OPTIMAL, None)
    assert found.bound == pytest.approx(-2, abs=1e-6)
