"""Tests of MPS files, which keep every bit of a program, and of exact checks of a point.

The other readers are HiGHS, Gurobi and SCIP.
"""

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


# Bounds and integrality of the one column of a program: 0 <= x <= 1.
UNIT_BOUNDS = (np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))


def make_varied_program() -> Data:
    """State a program with all kinds of rows, bounds and integers, and with long decimals."""
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
        row_lower=np.array([0.1, -INF, 1 / 3, -1.0, 0.1]),
        row_upper=np.array([0.1, 0.7, INF, 1.0, 0.7]),
        lower=np.array([0.0, -1.5, -INF, 0, 0, 0, 0]),
        upper=np.array([INF, -0.5, INF, 3, 5, 0, 1]),
        integrality=np.array([False, False, False, True, True, False, True]),
    )


def test_a_written_program_is_read_back_exactly() -> None:
    data = make_varied_program()
    copied_data = read_mps(format_mps("varied", data)).data
    for section in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        assert getattr(copied_data, section).tolist() == getattr(data, section).tolist(), section
    assert copied_data.offset == data.offset
    assert (copied_data.A != data.A).nnz == 0


def test_names_and_comments_are_written() -> None:
    blocks = [Block("f", 0, (3,)), Block("t", 3, ())]
    mps = read_mps(format_mps("a name", make_varied_program(), blocks, comments=["a comment"]))
    assert mps.name == "a_name"
    assert mps.comments == ("a comment",)
    assert list(mps.columns) == ["f_0", "f_1", "f_2", "t", "x4", "x5", "x6"]


def test_a_row_whose_width_is_no_double_becomes_two_rows() -> None:
    low = -3.7
    high = 0.1
    assert low + (high - low) != high
    A = sp.csc_array([[1.0]])
    data = Data(np.ones(1), 0.0, A, np.array([low]), np.array([high]), *UNIT_BOUNDS)
    copied_data = read_mps(format_mps("x", data)).data
    assert copied_data.row_lower.tolist() == [low, -INF]
    assert copied_data.row_upper.tolist() == [INF, high]


def test_rows_without_bounds_are_left_out() -> None:
    A = sp.csc_array(np.ones((2, 1)))
    row_lower = np.array([-INF, 0.5])
    row_upper = np.array([INF, INF])
    data = Data(np.ones(1), 0.0, A, row_lower, row_upper, *UNIT_BOUNDS)
    assert read_mps(format_mps("x", data)).data.A.shape == (1, 1)


def _solve_by_highs(path: Path) -> float:
    """Return the optimum of a file as HiGHS reads it."""
    import highspy

    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.run()
    return float(highs.getInfo().objective_function_value)


def _solve_by_gurobi(path: Path) -> float:
    """Return the optimum of a file as Gurobi reads it."""
    import gurobipy

    with gurobipy.Env(empty=True) as env:
        env.setParam("OutputFlag", 0)
        env.start()
        with gurobipy.read(str(path), env=env) as model:
            model.optimize()
            return float(model.ObjVal)


def _solve_by_scip(path: Path) -> float:
    """Return the optimum of a file as SCIP reads it."""
    scip = pytest.importorskip("pyscipopt")
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    return float(model.getObjVal())


@pytest.mark.parametrize("solve_file", [_solve_by_highs, _solve_by_gurobi, _solve_by_scip])
def test_other_readers_find_the_same_optimum(solve_file, tmp_path: Path) -> None:
    data = make_varied_program()
    optimum = solve(Program("varied", data)).objective
    (tmp_path / "a.mps").write_text(format_mps("varied", data))
    assert solve_file(tmp_path / "a.mps") == pytest.approx(optimum, abs=1e-7)


# Wood for chairs and tables: an integer program that is maximised.
FILE_OF_ANOTHER_WRITER = """* a comment
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


def test_the_objective_of_a_file_of_another_writer_is_read() -> None:
    """A second row of type N is ignored, and the right side of the objective is minus its offset.

    The costs are negated, because programs are minimised.
    """
    mps = read_mps(FILE_OF_ANOTHER_WRITER)
    data = mps.data
    assert mps.sense == -1
    assert data.c.tolist() == [-45, -80, 0]
    assert data.offset == -7


def test_the_sides_of_a_file_of_another_writer_are_read() -> None:
    """The range 390 of a row with at most 400 is a lower side of 10."""
    data = read_mps(FILE_OF_ANOTHER_WRITER).data
    assert data.row_lower.tolist() == [10, 2]
    assert data.row_upper.tolist() == [400, INF]
    assert data.lower.tolist() == [0, 0, 0]
    assert data.upper.tolist() == [24, 100, INF]
    assert data.integrality.tolist() == [True, True, False]


def test_a_file_of_another_writer_has_its_optimum() -> None:
    mps = read_mps(FILE_OF_ANOTHER_WRITER)
    solution = solve(Program("classic", mps.data, mps.sense))
    # 23 chairs and 14 tables need 5 * 23 + 20 * 14 = 395 units of wood, and 3 of 400 remain.
    assert solution.objective == pytest.approx(23 * 45 + 14 * 80 + 7)


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
def test_a_text_that_is_no_program_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidProgram, match=reason):
        read_mps(text)


def _make_small_program(lower: float = 0.0, upper: float = INF) -> Data:
    """State min x + 2y + 1/4 with x + y >= 1, x <= 1/2 and x + 3y <= 4: 7/4 at (1/2, 1/2).

    Both columns have the bounds `lower` and `upper`.
    """
    return Data(
        c=np.array([1.0, 2.0]),
        offset=0.25,
        A=sp.csc_array(np.array([[1.0, 1], [1, 0], [1, 3]])),
        row_lower=np.array([1.0, -INF, -INF]),
        row_upper=np.array([INF, 0.5, 4.0]),
        lower=np.full(2, lower),
        upper=np.full(2, upper),
        integrality=np.zeros(2, dtype=bool),
    )


def test_the_optimal_multipliers_prove_the_optimum() -> None:
    data = _make_small_program(upper=9.0)
    assert exact_objective(data, [0.5, 0.5]) == Fraction(7, 4)
    assert exact_bound(data, [2.0, -1.0, 0.0]) == Fraction(7, 4)


def test_other_multipliers_prove_a_weaker_bound() -> None:
    data = _make_small_program(upper=9.0)
    assert exact_bound(data, [0.0, 0.0, 0.0]) == Fraction(1, 4)
    # The sides give 3 - 1/2. Both reduced costs are -1, and are multiplied by the upper bound 9.
    assert exact_bound(data, [3.0, -1.0, 0.0]) == Fraction(1, 4) + 3 - Fraction(1, 2) - 9 - 9


def test_multipliers_of_infinite_sides_are_ignored() -> None:
    data = _make_small_program(upper=9.0)
    assert exact_bound(data, [-1.0, 5.0, 0.0]) == Fraction(1, 4)


def test_bounds_that_rows_imply_replace_infinite_bounds() -> None:
    # Rows 2 and 3 imply x <= 1/2 and y <= 4/3, by which the reduced costs of -1 are multiplied.
    expected = Fraction(1, 4) + 3 - Fraction(1, 2) - Fraction(1, 2) - Fraction(4, 3)
    assert exact_bound(_make_small_program(), [3.0, -1.0, 0.0]) == expected
    assert exact_bound(_make_small_program(lower=-INF), [3.0, -1.0, 0.0]) is None


def test_violations_of_rows_and_bounds_are_exact() -> None:
    data = _make_small_program()
    assert exact_violation(data, [0.5, 0.5]) == 0
    assert exact_violation(data, [0.5, 0.25]) == Fraction(1, 4)
    assert exact_violation(data, [-0.5, 2.0]) == Fraction(3, 2)


def test_a_fraction_in_an_integer_column_is_a_violation() -> None:
    data = make_varied_program()
    x = solve(Program("varied", data)).x
    assert x is not None
    assert 0 <= exact_violation(data, x) <= Fraction(1, 10**8)
    x[3] += 0.25
    assert exact_violation(data, x) >= Fraction(1, 4)
