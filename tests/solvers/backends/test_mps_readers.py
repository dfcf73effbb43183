"""Tests of unusual MPS files: `read_mps` reads them as HiGHS does, or refuses them.

Every file is the program BASE with one unusual section, column or number. If readers differ on a
file, `read_mps` refuses it, and the message names the line.

The first word of a line of BOUNDS is the kind of the bound:

    LO, UP, FX    lower, upper, both             MI, PL, FR    -∞, ∞, both
    LI, UI, BV    the same as LO, UP for integer columns; BV for columns that are 0 or 1

The next word is the name of a set of bounds, which may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
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

# min x - 2y + z,  x + y <= 10,  x >= 1,  y + z = 4. The rows are r, g and e. `make_file` adds their
# right-hand sides 10, 1 and 4.
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
# A file in fixed columns, whose names contain blanks.
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
Y = " y c -2 r 1\n y e 1\n"  # The lines of the column y in BASE.
Z = " z c 1 e 1\n"  # The line of the column z.


def mark_integer(columns: str) -> str:
    """Return lines of columns between the markers of integer columns."""
    return f" M 'MARKER' 'INTORG'\n{columns} M 'MARKER' 'INTEND'\n"


def make_file(
    rhs: str = " RHS r 10 g 1\n RHS e 4\n",
    ranges: str = "",
    bounds: str = "",
    base: str = BASE,
    sense: str = "",
) -> str:
    """Return the text of a file: `sense`, `base`, and the lines of the other sections."""
    text = sense + base + "RHS\n" + rhs
    if ranges:
        text += f"RANGES\n{ranges}"
    if bounds:
        text += f"BOUNDS\n{bounds}"
    return text + "ENDATA\n"


# Name -> text of a file. The name says what is unusual: the kinds of bounds of the module header,
# `noset` for a bound without the name of a set, `val` for a number that the kind does not need,
# `dup` for a line that is given twice, `col1` for a column with the name 1.
FILES = {
    "plain": make_file(),
    "two_rhs": make_file(rhs=" A r 10 g 1\n A e 4\n B r 50\n B e 9\n"),
    "two_rhs_unnamed": make_file(rhs=" r 10 g 1\n e 4\n B r 50\n"),
    "two_ranges": make_file(ranges=" A r 3\n B r 9\n B e 2\n"),
    "two_bounds": make_file(bounds=" UP A y 3\n UP B y 1\n UP B x 2\n"),
    "two_bounds_unnamed_first": make_file(bounds=" UP y 3\n UP B y 1\n"),
    "range_e_pos": make_file(ranges=" R e 2\n"),
    "range_e_neg": make_file(ranges=" R e -2\n"),
    "range_l_neg": make_file(ranges=" R r -3\n"),
    "range_g": make_file(ranges=" R g 3\n"),
    "range_e_zero": make_file(ranges=" R e 0\n"),
    "range_inf": make_file(ranges=" R r 1e30\n"),
    "range_e_inf": make_file(ranges=" R e 1e20\n"),
    "rhs_obj": make_file(rhs=" RHS c -7 r 10\n RHS g 1 e 4\n"),
    "rhs_obj_max": make_file(
        rhs=" RHS c -7 r 10\n RHS g 1 e 4\n",
        sense="OBJSENSE\n MAX\n",
        bounds=" UP b x 5\n UP b z 3\n",
    ),
    "sense_inline": make_file(sense="OBJSENSE MAX\n", bounds=" UP b x 5\n UP b z 3\n"),
    "sense_min": make_file(sense="OBJSENSE\n    MINIMIZE\n"),
    "up_neg": make_file(bounds=" UP b z -1\n"),
    "up_neg_lo0": make_file(bounds=" LO b z 0\n UP b z -1\n"),
    "up_zero": make_file(bounds=" UP b z 0\n"),
    "mi": make_file(bounds=" MI b z\n UP b y 6\n"),
    "mi_val": make_file(bounds=" MI b z 0.0\n UP b y 6\n"),
    "mi_noset": make_file(bounds=" MI z\n UP y 6\n"),
    "mi_noset_val": make_file(bounds=" MI z 0.0\n UP y 6\n"),
    "fr_val": make_file(bounds=" FR b z 0\n UP b y 6\n"),
    "fr_noset": make_file(bounds=" FR z\n UP y 6\n"),
    "pl_val": make_file(bounds=" PL b z 1e30\n"),
    "pl_after_up": make_file(bounds=" UP b y 1\n PL b y\n"),
    "bv": make_file(bounds=" BV b y\n"),
    "bv_val": make_file(bounds=" BV b y 1\n"),
    "bv_noset_val": make_file(bounds=" BV y 1\n"),
    "li": make_file(bounds=" LI b x 2\n"),
    "ui": make_file(bounds=" UI b y 3\n"),
    "ui_frac": make_file(bounds=" UI b y 3.5\n"),
    "li_neg_ui": make_file(bounds=" LI b z -3\n UI b z 2\n"),
    "ui_neg": make_file(bounds=" UI b z -2\n UP b y 7\n LO b z -5\n"),
    "up_1e20": make_file(bounds=" UP b y 1e20\n"),
    "up_1e30": make_file(bounds=" UP b y 1e30\n"),
    "lo_m1e30": make_file(bounds=" LO b z -1e30\n UP b y 6\n"),
    "rhs_1e30": make_file(rhs=" RHS r 1e30 g 1\n RHS e 4\n"),
    "rhs_1e20": make_file(rhs=" RHS r 1e20 g 1\n RHS e 4\n"),
    "rhs_g_m1e30": make_file(rhs=" RHS r 10 g -1e30\n RHS e 4\n"),
    "fx": make_file(bounds=" FX b x 2.5\n"),
    "up_lo_order": make_file(bounds=" UP b z 3\n LO b z 1\n"),
    "dollar_rhs": make_file(rhs=" RHS r 10 $ a comment\n RHS g 1 e 4\n"),
    "dollar_col": make_file(base=BASE.replace(" x g 1\n", " x g 1 $ more words here\n")),
    "dollar_bound": make_file(bounds=" UP b y 3 $ note 5\n"),
    "star_indent": make_file(base=BASE.replace("COLUMNS\n", "COLUMNS\n* note\n  * note two\n")),
    "crlf": make_file().replace("\n", "\r\n"),
    "bom": "\ufeff" + make_file(),
    "tabs": make_file().replace(" ", "\t"),
    "fortran_col": make_file(base=BASE.replace("y c -2 r 1", "y c -2.D0 r 1D0")),
    "fortran_rhs": make_file(rhs=" RHS r 1.0d+1 g 1\n RHS e 4.D0\n"),
    "objective_second": make_file(
        base=BASE.replace(" N c\n", " N c\n N d\n").replace(" x g 1\n", " x g 1 d 9\n"),
        rhs=" RHS r 10 d 5\n RHS g 1 e 4\n",
    ),
    "marker": make_file(base=BASE.replace(Y, mark_integer(Y))),
    "marker_lo": make_file(base=BASE.replace(Y, mark_integer(Y)), bounds=" LO b y 1\n"),
    "marker_mi": make_file(base=BASE.replace(Y, mark_integer(Y)), bounds=" MI b y\n"),
    "marker_up": make_file(base=BASE.replace(Y, mark_integer(Y)), bounds=" UP b y 2.5\n"),
    "marker_pl": make_file(base=BASE.replace(Y, mark_integer(Y)), bounds=" PL b y\n"),
    "marker_upneg": make_file(
        base=BASE.replace(Z, mark_integer(Z)), bounds=" UP b z -1\n UP b y 7\n"
    ),
    "dup_rhs": make_file(rhs=" RHS r 10 g 1\n RHS e 4\n RHS r 5\n"),
    "dup_bound": make_file(bounds=" UP b y 3\n UP b y 1\n"),
    "col1_bv": make_file(base=BASE.replace(" z c 1 e 1\n", " 1 c 1 e 1\n"), bounds=" BV bnd y 1\n"),
    "col1_mi": make_file(
        base=BASE.replace(" z c 1 e 1\n", " 1 c 1 e 1\n"), bounds=" UP bnd y 3\n MI bnd 1\n"
    ),
    "no_rhs_section": BASE + "ENDATA\n",
    "blank_lines": make_file().replace("COLUMNS", "\n\nCOLUMNS"),
    "lower_sections": make_file().replace("ROWS", "rows").replace("COLUMNS", "columns"),
    "name_blanks": make_file().replace("NAME t", "NAME          a name of four"),
    "no_name": make_file().replace("NAME t\n", "NAME\n"),
    "fixed_blanks": FIXED,
    "neg_rhs": make_file(
        rhs=" RHS r -3 g -5\n RHS e -2\n",
        bounds=" FR b x\n FR b y\n FR b z\n UP b y 9\n LO b x -50\n",
    ),
    "inf_word": make_file(bounds=" UP b y Inf\n LO b z -infinity\n UP b x 1e3\n"),
    "negative_up_then_lo": make_file(bounds=" UP b z -1\n LO b z -4\n UP b y 7\n"),
}

# Files on which readers differ -> the line that the message names.
REFUSED_LINES = {
    # Only a later vector has a number of the row e, or of the column x.
    "two_ranges": 19,
    "two_bounds": 19,
    # An upper bound below 0 needs a lower bound, which must not be above it.
    "up_neg": 17,
    "marker_upneg": 19,
    "up_neg_lo0": 19,
    # A bound or a right-hand side is given twice, with different numbers.
    "pl_after_up": 18,
    "dup_rhs": 16,
    "dup_bound": 18,
    "neg_rhs": 20,
    # A comment begins with its star in the first column.
    "star_indent": 9,
    # Only the first row of type N may have a right-hand side.
    "objective_second": 15,
}


@dataclass(frozen=True)
class HighsReading:
    """The program that HiGHS reads from a file.

    Attributes:
        data: its numbers, which always minimise.
        sense: -1 if the file maximises, else 1.
        optimum: the optimum that HiGHS finds, in the sense of the file. None if it finds none.
    """

    data: Data
    sense: int
    optimum: float | None


def read_by_highs(path: Path) -> HighsReading:
    """Read and solve a file with HiGHS."""
    highs = highspy.Highs()
    highs.silent()
    assert highs.readModel(str(path)) != highspy.HighsStatus.kError
    lp = highs.getLp()
    sense = 1 if lp.sense_ == highspy.ObjSense.kMinimize else -1
    is_integer = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_]
    if not is_integer:  # HiGHS leaves the list empty if the program is linear.
        is_integer = [False] * lp.num_col_
    matrix = lp.a_matrix_
    entries = (np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_))
    data = Data(
        c=sense * np.array(lp.col_cost_),
        offset=sense * lp.offset_,
        A=sp.csc_array(entries, shape=(lp.num_row_, lp.num_col_)),
        row_lower=np.array(lp.row_lower_),
        row_upper=np.array(lp.row_upper_),
        lower=np.array(lp.col_lower_),
        upper=np.array(lp.col_upper_),
        integrality=np.array(is_integer),
    )
    highs.run()
    optimum = None
    if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        optimum = highs.getInfo().objective_function_value
    return HighsReading(data, sense, optimum)


@pytest.mark.parametrize("name", [name for name in FILES if name not in REFUSED_LINES])
def test_a_file_is_read_as_highs_reads_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.mps").write_bytes(FILES[name].encode())
    expected = read_by_highs(tmp_path / "a.mps")
    mps = read_mps(FILES[name])
    assert mps.sense == expected.sense
    for section in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        numbers = getattr(mps.data, section).tolist()
        assert numbers == getattr(expected.data, section).tolist(), section
    assert mps.data.offset == expected.data.offset
    assert (mps.data.A != expected.data.A).nnz == 0
    solution = solve(Program("odd", mps.data, mps.sense))
    assert solution.is_optimal == (expected.optimum is not None)
    if expected.optimum is not None:
        assert solution.objective == pytest.approx(expected.optimum, abs=1e-9)


@pytest.mark.parametrize("name", REFUSED_LINES)
def test_a_file_that_readers_read_differently_is_refused_by_line(name: str) -> None:
    with pytest.raises(InvalidProgram, match=rf"^line {REFUSED_LINES[name]}\b"):
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
def test_a_line_without_a_meaning_is_refused(old: str, new: str) -> None:
    text = make_file()
    assert text.count(old) == 1
    with pytest.raises(InvalidProgram):
        read_mps(text.replace(old, new))


def test_a_column_may_be_named_like_a_number() -> None:
    text = make_file(
        bounds=" FR b 1\n BV b y 1\n PL b x 1e30\n", base=BASE.replace(Z, " 1 c 1 e 1\n")
    )
    data = read_mps(text).data
    assert data.lower.tolist() == [0.0, 0.0, -np.inf]
    assert data.upper.tolist() == [np.inf, 1.0, np.inf]
    assert data.integrality.tolist() == [False, True, False]
