"""MPS files keep every bit of a program, also in other readers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from workbench.solvers.backend import solve
from workbench.solvers.data import Data
from workbench.solvers.errors import InvalidProgram
from workbench.solvers.exact.rational_lp import exact_bound, exact_objective, exact_violation
from workbench.solvers.mps import format_mps, read_mps
from workbench.solvers.program import Block, Program

INF = np.inf


def everything() -> Data:
    """State a program with rows, bounds and integers of every kind, and awkward numbers."""
    A = sp.csc_array(
        np.array(
            [
                [1.0, 1 / 3, 0, 0, 1, 0, 0.1],
                [0.1, 0, -2, 1, 0, 0, 0],
                [0, 1, 1, 0, 0, 0, 1],
                [1, 0, 0, 1e-7, 0, 0, 0],
                [0, 0, 1, 1, 0, 0, 0],
            ]
        )
    )
    return Data(
        np.array([1.0, -1 / 3, 0.1, 0, 2, 0, -1]),
        1 / 7,
        A,
        np.array([0.1, -INF, 1 / 3, -1.0, 0.1]),
        np.array([0.1, 0.7, INF, 1.0, 0.7]),
        np.array([0.0, -1.5, -INF, 0, 0, 0, 0]),
        np.array([INF, -0.5, INF, 3, 5, 0, 1]),
        np.array([False, False, False, True, True, False, True]),
    )


def same(first: Data, second: Data) -> bool:
    vectors = ("c", "row_lower", "row_upper", "lower", "upper", "integrality")
    equal = all(np.array_equal(getattr(first, name), getattr(second, name)) for name in vectors)
    return equal and first.offset == second.offset and (first.A != second.A).nnz == 0


def test_there_and_back() -> None:
    data = everything()
    found = read_mps(
        format_mps("a name", data, [Block("f", 0, (3,)), Block("t", 3, ())], ["what it is"])
    )
    assert same(found.data, data)
    assert (found.name, found.comments) == ("a_name", ("what it is",))
    assert list(found.columns) == ["f_0", "f_1", "f_2", "t", "x4", "x5", "x6"]


def test_a_range_that_no_double_states_becomes_two_rows() -> None:
    low, high = -3.7, 0.1
    assert low + (high - low) != high
    box = np.zeros(1), np.ones(1), np.zeros(1, dtype=bool)
    data = Data(np.ones(1), 0.0, sp.csc_array([[1.0]]), np.array([low]), np.array([high]), *box)
    found = read_mps(format_mps("x", data))
    assert (found.data.row_lower.tolist(), found.data.row_upper.tolist()) == (
        [low, -INF],
        [INF, high],
    )


def test_rows_without_bounds_are_left_out() -> None:
    box = np.zeros(1), np.ones(1), np.zeros(1, dtype=bool)
    A = sp.csc_array(np.ones((2, 1)))
    found = read_mps(
        format_mps("x", Data(np.ones(1), 0.0, A, np.array([-INF, 0.5]), np.array([INF, INF]), *box))
    )
    assert found.data.A.shape == (1, 1)


def _highs(path: Path) -> float:
    import highspy

    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.run()
    return float(highs.getInfo().objective_function_value)


def _gurobi(path: Path) -> float:
    import gurobipy

    with gurobipy.Env(empty=True) as env:
        env.setParam("OutputFlag", 0)
        env.start()
        with gurobipy.read(str(path), env=env) as model:
            model.optimize()
            return float(model.ObjVal)


def _scip(path: Path) -> float:
    scip = pytest.importorskip("pyscipopt")
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    return float(model.getObjVal())


@pytest.mark.parametrize("reader", [_highs, _gurobi, _scip])
def test_other_readers_read_the_same_program(reader, tmp_path: Path) -> None:
    data = everything()
    ours = solve(Program("everything", data)).objective
    (tmp_path / "a.mps").write_text(format_mps("everything", data))
    assert reader(tmp_path / "a.mps") == pytest.approx(ours, abs=1e-7)


def test_files_of_others() -> None:
    text = """* a comment
NAME          classic
OBJSENSE
    MAX
ROWS
 N  profit
 L  wood
 G  least
 N  ignored
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    chairs    profit  45.0   wood  5.0
    chairs    ignored  9.0
    tables    profit  80   wood  20
    MARKER                 'MARKER'                 'INTEND'
    rest      wood  1.0  least 1.0
RHS
    RHS       wood  400.0   least 2
    RHS       profit  -7
RANGES
    R  wood  390
BOUNDS
 UP B  chairs  24
 UI B  tables  1e2
ENDATA
"""
    found = read_mps(text)
    data = found.data
    assert found.sense == -1
    assert (data.c.tolist(), data.offset) == ([-45, -80, 0], -7)
    assert (data.row_lower.tolist(), data.row_upper.tolist()) == ([10, 2], [400, INF])
    assert (data.lower.tolist(), data.upper.tolist()) == ([0, 0, 0], [24, 100, INF])
    assert data.integrality.tolist() == [True, True, False]
    best = solve(Program("classic", data, found.sense))
    assert best.objective == pytest.approx(
        23 * 45 + 14 * 80 + 7
    )  # 115 + 280 of wood, and 2 of the rest


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must end with ENDATA"),
        ("NAME x\nROWS\n N c\n", "must end with ENDATA"),
        ("SECTION\nENDATA", "line 1: a section must be one of"),
        ("ROWS\n E r\nCOLUMNS\n x r 1\nENDATA", "an objective must be given"),
        ("ROWS\n N c\n E r\n L r\nENDATA", "line 4: every row must be named once"),
        ("ROWS\n N c\n X r\nENDATA", "line 3: a row must be"),
        ("ROWS\n N c\n E r\nCOLUMNS\n x s 1\nENDATA", "line 5"),
        ("ROWS\n N c\n E r\nCOLUMNS\n x r one\nENDATA", "line 5"),
        ("ROWS\n N c\n E r\nCOLUMNS\n x r\nENDATA", "line 5"),
        (
            "ROWS\n N c\n E r\nCOLUMNS\n x r 1\n x r 2\nENDATA",
            "line 6: every entry must be given once",
        ),
        ("ROWS\n N c\n E r\nCOLUMNS\n x r 1\nBOUNDS\n SC b x 1\nENDATA", "line 7: a bound must be"),
        ("ROWS\n N c\n E r\nCOLUMNS\n x r nan\nENDATA", "line 5.*is no number"),
        (
            "ROWS\n N c\n E r\nCOLUMNS\n x r 1\nBOUNDS\n LO b x 2\n UP b x 1\nENDATA",
            "crossed bounds",
        ),
    ],
)
def test_what_is_no_program_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidProgram, match=reason):
        read_mps(text)


# Exact checks.


def _small(lower: float = 0.0, upper: float = INF) -> Data:
    """min x + 2y, x + y >= 1, x <= 1/2, x + 3y <= 4."""
    A = sp.csc_array(np.array([[1.0, 1], [1, 0], [1, 3]]))
    ends = np.array([1.0, -INF, -INF]), np.array([INF, 0.5, 4.0])
    return Data(
        np.array([1.0, 2.0]),
        0.25,
        A,
        *ends,
        np.full(2, lower),
        np.full(2, upper),
        np.zeros(2, dtype=bool),
    )


def test_a_dual_proves_a_bound_in_rationals() -> None:
    data = _small(upper=9.0)
    assert exact_bound(data, [2.0, -1.0, 0.0]) == Fraction(
        7, 4
    )  # 2 - 1/2 + 1/4: the optimum, at (1/2, 1/2)
    assert exact_objective(data, [0.5, 0.5]) == Fraction(7, 4)
    assert exact_bound(data, [0.0, 0.0, 0.0]) == Fraction(1, 4)
    assert exact_bound(data, [3.0, -1.0, 0.0]) == Fraction(1, 4) + 3 - Fraction(1, 2) - 9 - 9
    assert exact_bound(data, [-1.0, 5.0, 0.0]) == Fraction(
        1, 4
    )  # multipliers of sides that are not there


def test_what_rows_imply_bounds_columns_without_bounds() -> None:
    # y <= 4/3 and x <= 1/2 by rows 3 and 2, so a reduced cost of -1 loses no more than that
    expected = Fraction(1, 4) + 3 - Fraction(1, 2) - Fraction(1, 2) - Fraction(4, 3)
    assert exact_bound(_small(), [3.0, -1.0, 0.0]) == expected
    assert exact_bound(_small(lower=-INF), [3.0, -1.0, 0.0]) is None


def test_violations_are_exact() -> None:
    data = everything()
    assert exact_violation(_small(), [0.5, 0.5]) == 0
    assert exact_violation(_small(), [0.5, 0.25]) == Fraction(1, 4)
    assert exact_violation(_small(), [-0.5, 2.0]) == Fraction(3, 2)
    x = solve(Program("everything", data)).x
    assert x is not None
    assert 0 <= exact_violation(data, x) <= Fraction(1, 10**8)
    whole = x + np.array([0, 0, 0, 0.25, 0, 0, 0])
    assert exact_violation(data, whole) >= Fraction(1, 4)
