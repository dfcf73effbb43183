"""Odd MPS files: ours is HiGHS's reading, or the file is refused by line."""

from __future__ import annotations

from pathlib import Path

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

from workbench.solvers.backend import solve
from workbench.solvers.data import Data
from workbench.solvers.errors import InvalidProgram
from workbench.solvers.mps import read_mps
from workbench.solvers.program import Program

# min x - 2y + z,  x + y <= r,  x >= g,  y + z = e
BASE = """NAME t
ROWS
 N c
 L r
 G g
 E e
COLUMNS
 x c 1 r 1
 x g 1
 y c -2 r 1
 y e 1
 z c 1 e 1
"""
FIXED = """NAME          T
ROWS
 N  COST
 L  MY ROW
 G  R 2
COLUMNS
    X 1       COST               1.0   MY ROW             1.0
    X 1       R 2                1.0
    Y         COST              -2.0   MY ROW             1.0
RHS
    RHS 1     MY ROW            10.0   R 2                1.0
BOUNDS
 UP BND 1     Y                  4.0
ENDATA
"""
Y = " y c -2 r 1\n y e 1\n"
Z = " z c 1 e 1\n"


def whole(columns: str) -> str:
    """Columns between markers of integers."""
    return f" M 'MARKER' 'INTORG'\n{columns} M 'MARKER' 'INTEND'\n"


def file(
    rhs: str = " RHS r 10 g 1\n RHS e 4\n",
    ranges: str = "",
    bounds: str = "",
    base: str = BASE,
    sense: str = "",
) -> str:
    """A file of the base program with other sections."""
    text = sense + base + "RHS\n" + rhs
    text += f"RANGES\n{ranges}" if ranges else ""
    text += f"BOUNDS\n{bounds}" if bounds else ""
    return text + "ENDATA\n"


FILES = {
    "plain": file(),
    "two_rhs": file(rhs=" A r 10 g 1\n A e 4\n B r 50\n B e 9\n"),
    "two_rhs_unnamed": file(rhs=" r 10 g 1\n e 4\n B r 50\n"),
    "two_ranges": file(ranges=" A r 3\n B r 9\n B e 2\n"),
    "two_bounds": file(bounds=" UP A y 3\n UP B y 1\n UP B x 2\n"),
    "two_bounds_unnamed_first": file(bounds=" UP y 3\n UP B y 1\n"),
    "range_e_pos": file(ranges=" R e 2\n"),
    "range_e_neg": file(ranges=" R e -2\n"),
    "range_l_neg": file(ranges=" R r -3\n"),
    "range_g": file(ranges=" R g 3\n"),
    "range_e_zero": file(ranges=" R e 0\n"),
    "range_inf": file(ranges=" R r 1e30\n"),
    "range_e_inf": file(ranges=" R e 1e20\n"),
    "rhs_obj": file(rhs=" RHS c -7 r 10\n RHS g 1 e 4\n"),
    "rhs_obj_max": file(
        rhs=" RHS c -7 r 10\n RHS g 1 e 4\n",
        sense="OBJSENSE\n MAX\n",
        bounds=" UP b x 5\n UP b z 3\n",
    ),
    "sense_inline": file(sense="OBJSENSE MAX\n", bounds=" UP b x 5\n UP b z 3\n"),
    "sense_min": file(sense="OBJSENSE\n    MINIMIZE\n"),
    "up_neg": file(bounds=" UP b z -1\n"),
    "up_neg_lo0": file(bounds=" LO b z 0\n UP b z -1\n"),
    "up_zero": file(bounds=" UP b z 0\n"),
    "mi": file(bounds=" MI b z\n UP b y 6\n"),
    "mi_val": file(bounds=" MI b z 0.0\n UP b y 6\n"),
    "mi_noset": file(bounds=" MI z\n UP y 6\n"),
    "mi_noset_val": file(bounds=" MI z 0.0\n UP y 6\n"),
    "fr_val": file(bounds=" FR b z 0\n UP b y 6\n"),
    "fr_noset": file(bounds=" FR z\n UP y 6\n"),
    "pl_val": file(bounds=" PL b z 1e30\n"),
    "pl_after_up": file(bounds=" UP b y 1\n PL b y\n"),
    "bv": file(bounds=" BV b y\n"),
    "bv_val": file(bounds=" BV b y 1\n"),
    "bv_noset_val": file(bounds=" BV y 1\n"),
    "li": file(bounds=" LI b x 2\n"),
    "ui": file(bounds=" UI b y 3\n"),
    "ui_frac": file(bounds=" UI b y 3.5\n"),
    "li_neg_ui": file(bounds=" LI b z -3\n UI b z 2\n"),
    "ui_neg": file(bounds=" UI b z -2\n UP b y 7\n LO b z -5\n"),
    "up_1e20": file(bounds=" UP b y 1e20\n"),
    "up_1e30": file(bounds=" UP b y 1e30\n"),
    "lo_m1e30": file(bounds=" LO b z -1e30\n UP b y 6\n"),
    "rhs_1e30": file(rhs=" RHS r 1e30 g 1\n RHS e 4\n"),
    "rhs_1e20": file(rhs=" RHS r 1e20 g 1\n RHS e 4\n"),
    "rhs_g_m1e30": file(rhs=" RHS r 10 g -1e30\n RHS e 4\n"),
    "fx": file(bounds=" FX b x 2.5\n"),
    "up_lo_order": file(bounds=" UP b z 3\n LO b z 1\n"),
    "dollar_rhs": file(rhs=" RHS r 10 $ a comment\n RHS g 1 e 4\n"),
    "dollar_col": file(base=BASE.replace(" x g 1\n", " x g 1 $ more words here\n")),
    "dollar_bound": file(bounds=" UP b y 3 $ note 5\n"),
    "star_indent": file(base=BASE.replace("COLUMNS\n", "COLUMNS\n* note\n  * note two\n")),
    "crlf": file().replace("\n", "\r\n"),
    "bom": "\ufeff" + file(),
    "tabs": file().replace(" ", "\t"),
    "fortran": file(base=BASE.replace("y c -2 r 1", "y c -2.D0 r 1D0")),
    "fortran2": file(rhs=" RHS r 1.0d+1 g 1\n RHS e 4.D0\n"),
    "objective_second": file(
        base=BASE.replace(" N c\n", " N c\n N d\n").replace(" x g 1\n", " x g 1 d 9\n"),
        rhs=" RHS r 10 d 5\n RHS g 1 e 4\n",
    ),
    "marker": file(base=BASE.replace(Y, whole(Y))),
    "marker_lo": file(base=BASE.replace(Y, whole(Y)), bounds=" LO b y 1\n"),
    "marker_mi": file(base=BASE.replace(Y, whole(Y)), bounds=" MI b y\n"),
    "marker_up": file(base=BASE.replace(Y, whole(Y)), bounds=" UP b y 2.5\n"),
    "marker_pl": file(base=BASE.replace(Y, whole(Y)), bounds=" PL b y\n"),
    "marker_upneg": file(base=BASE.replace(Z, whole(Z)), bounds=" UP b z -1\n UP b y 7\n"),
    "dup_rhs": file(rhs=" RHS r 10 g 1\n RHS e 4\n RHS r 5\n"),
    "dup_bound": file(bounds=" UP b y 3\n UP b y 1\n"),
    "col1": file(base=BASE.replace(" z c 1 e 1\n", " 1 c 1 e 1\n"), bounds=" BV bnd y 1\n"),
    "col1b": file(
        base=BASE.replace(" z c 1 e 1\n", " 1 c 1 e 1\n"), bounds=" UP bnd y 3\n MI bnd 1\n"
    ),
    "no_rhs_section": BASE + "ENDATA\n",
    "blank_lines": file().replace("COLUMNS", "\n\nCOLUMNS"),
    "lower_sections": file().replace("ROWS", "rows").replace("COLUMNS", "columns"),
    "name_blanks": file().replace("NAME t", "NAME          a name of four"),
    "no_name": file().replace("NAME t\n", "NAME\n"),
    "fixed_blanks": FIXED,
    "neg_rhs": file(
        rhs=" RHS r -3 g -5\n RHS e -2\n",
        bounds=" FR b x\n FR b y\n FR b z\n UP b y 9\n LO b x -50\n",
    ),
    "inf_word": file(bounds=" UP b y Inf\n LO b z -infinity\n UP b x 1e3\n"),
    "negative_up_then_lo": file(bounds=" UP b z -1\n LO b z -4\n UP b y 7\n"),
}

# readers differ on these, or refuse them: the line that is named
REFUSED = {
    "two_ranges": 19,
    "two_bounds": 19,
    "up_neg": 17,
    "up_neg_lo0": 19,
    "pl_after_up": 18,
    "star_indent": 9,
    "objective_second": 15,
    "marker_upneg": 19,
    "dup_rhs": 16,
    "dup_bound": 18,
    "neg_rhs": 20,
}


def by_highs(path: Path) -> tuple[Data, int, float | None]:
    """HiGHS's reading of a file, its sense, and its optimum."""
    highs = highspy.Highs()
    highs.silent()
    assert highs.readModel(str(path)) != highspy.HighsStatus.kError
    lp = highs.getLp()
    matrix, shape = lp.a_matrix_, (lp.num_row_, lp.num_col_)
    sense = 1 if lp.sense_ == highspy.ObjSense.kMinimize else -1
    whole = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_] or [
        False
    ] * lp.num_col_
    data = Data(
        sense * np.array(lp.col_cost_), sense * lp.offset_,
        sp.csc_array((np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_)), shape=shape),
        *map(np.array, (lp.row_lower_, lp.row_upper_, lp.col_lower_, lp.col_upper_, whole)),
    )  # fmt: skip
    highs.run()
    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return data, sense, highs.getInfo().objective_function_value if optimal else None


@pytest.mark.parametrize("name", [name for name in FILES if name not in REFUSED])
def test_ours_is_the_reading_of_highs(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.mps").write_bytes(FILES[name].encode())
    theirs, sense, optimum = by_highs(tmp_path / "a.mps")
    ours = read_mps(FILES[name])
    assert ours.sense == sense
    for part in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        assert getattr(ours.data, part).tolist() == getattr(theirs, part).tolist(), part
    assert ours.data.offset == theirs.offset
    assert (ours.data.A != theirs.A).nnz == 0
    solution = solve(Program("odd", ours.data, ours.sense))
    assert solution.is_optimal == (optimum is not None)
    if optimum is not None:
        assert solution.objective == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_what_readers_read_differently_is_refused_by_line(name: str) -> None:
    with pytest.raises(InvalidProgram, match=rf"^line {REFUSED[name]}\b"):
        read_mps(FILES[name])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" x c 1 r 1", " x c 1_0 r 1"),
        (" x c 1 r 1", " x c 1 r 1e400"),
        (" x c 1 r 1", " x c 0x1 r 1"),
        (" L r", " L r s"),
        (" L r", " L"),
        ("NAME t", "OBJSENSE\n sideways"),
        ("COLUMNS\n", "COLUMNS\n M 'MARKER' 'SOSORG'\n"),
        (" RHS r 10 g 1", " RHS r 10 g"),
        (" RHS r 10 g 1", " RHS r -1e30 g 1"),
        (" RHS e 4", " RHS e 1e30"),
        (" RHS e 4", " RHS e nan"),
        ("ENDATA", "BOUNDS\n LO b x 1e30\nENDATA"),
        ("ENDATA", "BOUNDS\n UP b x -1e30\nENDATA"),
        ("ENDATA", "BOUNDS\n FX b x 1e20\nENDATA"),
        ("ENDATA", "BOUNDS\n FR x y\nENDATA"),
        ("ENDATA", "BOUNDS\n UP b x 1 2\nENDATA"),
        ("ENDATA", "BOUNDS\n SC b x 1\nENDATA"),
        ("ENDATA", "QUADOBJ\n x x 1\nENDATA"),
        ("ENDATA", ""),
    ],
)
def test_what_has_no_meaning_is_refused(old: str, new: str) -> None:
    text = file()
    assert text.count(old) == 1
    with pytest.raises(InvalidProgram):
        read_mps(text.replace(old, new))


def test_a_column_may_be_named_like_a_number() -> None:
    text = file(bounds=" FR b 1\n BV b y 1\n PL b x 1e30\n", base=BASE.replace(Z, " 1 c 1 e 1\n"))
    data = read_mps(text).data
    assert data.lower.tolist() == [0.0, 0.0, -np.inf]
    assert data.upper.tolist() == [np.inf, 1.0, np.inf]
    assert data.integrality.tolist() == [False, True, False]
