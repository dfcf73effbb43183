"""Columns of a CSV file, in and out, each bad cell named by its line.

Whether the first row is a header is decided from how the columns are asked for and from that row alone:

    asked for by a name of the first row     a header; where every cell of the row could be a value, it must be said
    asked for by number                      a header where the cell there is a text that is no number, none where
                                             every cell could be a value, and what is neither must be said: "31 kg"
                                             and "#N/A" may be names or what is left of a value

A name in the first row that is also the number of a column must be said as well: a header that is taken for a row is a
person who does not exist, and a row that is taken for a header is published as it is.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.data.csv_rows import SEPARATOR_NAMES
from workbench.data.tables import is_number, read_rows
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Flags, Vector
from workbench.exact.numbers import parse_rational

_MISSING = frozenset(("na", "n/a", "n.a.", "null", "none", "nil", "missing", "nan"))
# What programs write for a missing value, without the marks around it.
_ODD_VALUES = _MISSING | frozenset(
    ("n/d", "n.d.", "nd", "nv", "nat", "div/0", "unknown", "true", "false")
)
_QUANTITY = re.compile(
    r"\W*\d(?!\d*(?:st|nd|rd|th)\b)", re.IGNORECASE
)  # A number, but no "2nd visit".
_GROUPED = re.compile(r"\d[,'\s\xa0\u202f]\d")  # a decimal comma, or digits in groups
_SHORT_INTEGER = 18  # Integers of fewer digits are read without the general parser.


def _parse_float_cell(cell: str) -> float:
    """The number a cell spells, NaN if none; what only Python reads as one, 1_000 and full-width digits, is none."""
    try:
        return float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        return math.nan


def _parse_exact_cell(cell: str) -> int | Fraction | None:
    """The number a cell spells as it is written; None for one of more than 5000 digits."""
    digits = cell.strip()
    if len(digits) < _SHORT_INTEGER and digits.removeprefix("-").isdecimal():
        return int(digits)
    return parse_rational(cell)


def _could_be_value(cell: str) -> bool:
    """Whether a cell of the first row may be a value, in whatever notation, or a missing one."""
    text = cell.strip()
    return is_number(text) or text.lower() in _MISSING or not any(map(str.isalpha, text))


def _could_be_odd_value(cell: str) -> bool:
    """Whether a cell of the first row may be a value that no column of numbers has: "31 kg", "0x1f", "#N/A"."""
    text = cell.strip()
    is_error = text.startswith("#") and text.endswith(
        ("!", "?")
    )  # as spreadsheets write #VALUE! and #NAME?
    return (
        bool(_QUANTITY.match(text)) or is_error or text.lower().strip("#<>()!?*-. ") in _ODD_VALUES
    )


@dataclass(frozen=True)
class CsvTable:
    """All cells of a UTF-8 CSV file.

    Attributes:
        file: its name.
        rows: all rows, of one width.
        lines: the line of the file in which each row begins.
        header: whether the first row holds names.
        multiline: whether cells may hold line breaks.
    """

    file: str
    rows: list[list[str]]
    lines: list[int]
    header: bool
    multiline: bool = False

    @classmethod
    def read(
        cls,
        path: Path | str,
        columns: Sequence[str | None],
        *,
        header: bool | None = None,
        multiline: bool = False,
    ) -> tuple[CsvTable, list[CsvColumn]]:
        """The table, and the columns that are asked for.

        Args:
            path: of the file.
            columns: names in the header, or numbers counted from 1; None stands for the only column.
            header: whether the first row holds names; None: see the module's text.
            multiline: accept line breaks inside quoted cells.

        Raises:
            InvalidRequest: for an unreadable or empty file, an unknown column, rows of several widths, and a first row
                that may be a header or not.
            CorruptFile: for a file that is too large or no CSV.
        """
        rows, lines = read_rows(path, multiline=multiline)
        file = Path(path).name
        if not rows:
            must("input", "a CSV file with at least one number", f"{file}, which is empty")
        if not rows[0]:
            must(f"line 1 of {file}", "a row of cells", "an empty line")
        _refuse_separator(rows[0], file)
        for row, line in zip(rows, lines, strict=True):
            if len(row) != len(rows[0]):
                must(f"line {line} of {file}", f"{len(rows[0])} cells wide", f"{len(row)} cells")
        positions, has_header = _locate_columns(rows[0], columns, header, file)
        table = cls(file, rows, lines, has_header, multiline)
        if not table.body:
            must("input", "a CSV file with at least one number", f"{file}, which has only a header")
        table._refuse_hidden_rows(positions)
        return table, [CsvColumn(table, at) for at in positions]

    @property
    def body(self) -> list[list[str]]:
        """The rows below the header."""
        return self.rows[1:] if self.header else self.rows

    @property
    def multiline_cell_count(self) -> int:
        """How many cells hold line breaks."""
        return (
            sum("\n" in cell or "\r" in cell for row in self.rows for cell in row)
            if self.multiline
            else 0
        )

    def _refuse_hidden_rows(self, positions: Sequence[int]) -> None:
        """Refuse a cell with line breaks that may hold rows of the table, as a quote that is not closed makes them.

        A line inside a cell may be a row where it has as many commas, and a number for a column that is asked for.
        Raises InvalidRequest.
        """
        if not self.multiline_cell_count:
            return
        for index, row in enumerate(self.body):
            for cell in row:
                for text in re.split("[\r\n]+", cell)[1:]:
                    parts = text.split(",")
                    if len(parts) >= self.width and any(is_number(parts[at]) for at in positions):
                        must(
                            self.describe_row(index),
                            "without rows of the table inside a quoted cell",
                            repr(text[:60]),
                        )

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    def describe_row(self, index: int) -> str:
        """What a message calls a row of the body: its line in the file."""
        return f"line {self.lines[index + self.header]} of {self.file}"

    def replace_columns(
        self, positions: Sequence[int], numbers: dict[int, npt.NDArray[Any]]
    ) -> list[list[str]]:
        """The cells of some columns in their order, numbers (rows,) in place of those of a column."""
        columns = []
        for at in sorted({*positions, *numbers}):
            name = [self.rows[0][at]] if self.header else []
            column = (
                map(repr, list_with_integers(numbers[at]))
                if at in numbers
                else (row[at] for row in self.body)
            )
            columns.append([*name, *column])
        return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class CsvColumn:
    """One column of a table. at: its index."""

    table: CsvTable
    position: int

    @classmethod
    def read(
        cls, path: Path | str, column: str | None = None, *, header: bool | None = None
    ) -> CsvColumn:
        """The column of a file by its name or number; None stands for the only one. Arguments and errors as
        `CsvTable.read`."""
        return CsvTable.read(path, [column], header=header)[1][0]

    @property
    def name(self) -> str:
        """Its name in the header, or its number."""
        return (
            self.table.rows[0][self.position].strip()
            if self.table.header
            else f"column {self.position + 1}"
        )

    @property
    def cells(self) -> list[str]:
        """The texts below the header."""
        return [row[self.position] for row in self.table.body]

    def numbers(self, max_size: float = sys.float_info.max) -> Vector:
        """The column as finite numbers; shape (rows,). largest: a public bound on their size. Raises InvalidRequest."""
        values = np.array([_parse_float_cell(cell) for cell in self.cells])
        wrong = ~(np.abs(values) <= max_size)
        grouped = any(
            _GROUPED.search(self.cells[row]) for row in np.flatnonzero(wrong)[:1].tolist()
        )
        more = "write 1234.5 without separators of thousands or decimal commas" if grouped else ""
        bound = "" if max_size == sys.float_info.max else f", at most {max_size:.6g} in size"
        self.refuse_rows(wrong, f"a finite number{bound}", more)
        return values

    def exact_numbers(self) -> npt.NDArray[np.object_]:
        """The finite numbers of the column as they are written, integers and Fractions; shape (rows,). Raises
        InvalidRequest."""
        self.numbers()
        values = np.empty(len(self.table.body), dtype=object)
        values[:] = [_parse_exact_cell(cell) for cell in self.cells]
        self.refuse_rows(
            np.array([value is None for value in values]), "a decimal within 5000 digits"
        )
        return values

    def refuse_rows(self, wrong: Flags, constraint: str, more: str = "") -> None:
        """Raise InvalidRequest when some rows (rows,) are wrong, naming the first and how many there are."""
        bad = np.flatnonzero(wrong)
        if bad.size:
            first, rows = int(bad[0]), f"{bad.size} such rows" if bad.size > 1 else ""
            aside = "; ".join(filter(None, (rows, more)))
            got = repr(self.table.body[first][self.position][:60]) + (
                f" ({aside})" if aside else ""
            )
            column = self.name if self.table.header else self.position + 1
            raise InvalidRequest(
                f"{self.table.describe_row(first)}, column {column}, must be {constraint}. Got {got}."
            )


def encode_csv_rows(rows: list[list[str]]) -> bytes:
    """Cells as a file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


def read_column(
    path: Path,
    column: str | None = None,
    max_size: float = sys.float_info.max,
    *,
    header: bool | None = None,
) -> Vector:
    """The finite numbers of one column of a UTF-8 CSV file; shape (rows,). Arguments and errors as `CsvColumn`."""
    return CsvColumn.read(path, column, header=header).numbers(max_size)


def list_with_integers(values: npt.NDArray[Any]) -> list[Any]:
    """Published values as a list, whole floats as integers: 1 is published where 1 is an output, not 1.0."""
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()]


def read_two_names(text: str, path: Path) -> list[str]:
    """The names of two columns in a text such as "x,y", where a name that holds a comma is quoted, or is one of the
    first row. Raises InvalidRequest."""
    first = [cell.strip() for cell in (read_rows(path).cells or [[]])[0]]
    names = [part.strip() for part in next(csv.reader([text], skipinitialspace=True))]
    if len(names) > 2:
        parts = [part.strip() for part in text.split(",")]
        pairs = ([",".join(parts[:k]), ",".join(parts[k:])] for k in range(1, len(parts)))
        known = [
            pair
            for pair in pairs
            if all(name in first or _is_position(name, len(first)) for name in pair)
        ]
        names = known[0] if len(known) == 1 else names
    if len(names) != 2 or not all(names):
        must("columns", "two columns, such as x,y (quote a name that holds a comma)", repr(text))
    return names


def _refuse_separator(first: list[str], file: str) -> None:
    """Refuse a file of one column whose first line holds another separator. Raises InvalidRequest."""
    used = [
        words for mark, words in SEPARATOR_NAMES.items() if len(first) == 1 and mark in first[0]
    ]
    if used:
        must(
            "input",
            "a CSV file with commas between its cells",
            f"{file}, whose cells are separated by {used[0]}",
        )


def _is_position(column: str, width: int) -> bool:
    """Whether a text is the number of a column, counted from 1."""
    return (
        column.isascii() and column.isdecimal() and len(column) < 10 and 1 <= int(column) <= width
    )


def _locate_columns(
    first: list[str], columns: Sequence[str | None], header: bool | None, file: str
) -> tuple[list[int], bool]:
    """(the index of every chosen column, whether the first row is a header). Raises InvalidRequest."""
    names = [] if header is False else [cell.strip() for cell in first]
    positions = [_find_column(column, names, len(first), file) for column in columns]
    if header is None:
        by_name = [column for column in columns if column is not None and column.strip() in names]
        both = next(
            (column for column in by_name if _is_position(column.strip(), len(first))), None
        )
        values = [*map(_could_be_value, first)]
        if both is not None:
            _refuse_unclear_header(
                f"{file}, in which {both} is a name of the first row and the number of a column"
            )
        if by_name and all(values):
            _refuse_unclear_header(f"{file}, of whose first row every cell could be a value")
        chosen = {values[at] for at in positions}
        odd = any(_could_be_odd_value(first[at]) and not values[at] for at in positions)
        if not by_name and ((chosen != {False} and not all(values)) or odd):
            _refuse_unclear_header(f"{file}, whose first row is {','.join(first)[:60]}")
        header = bool(by_name) or chosen == {False}
    return positions, header


def _refuse_unclear_header(got: str) -> None:
    """Refuse a first row that may be a header or not. Raises InvalidRequest."""
    must(
        "input",
        "given with --header or --no-header, or begin with a row that can be nothing but names",
        got,
    )


def _find_column(column: str | None, names: list[str], width: int, file: str) -> int:
    """The index of a chosen column. names: of the first row, none where it is no header. Raises InvalidRequest."""
    if column is None:
        if width != 1:
            must("column", f"given for {file}, which has {width} columns", "none")
        return 0
    if not isinstance(column, str):
        must("column", "a name, or a number from 1 as text", repr(column))
    wanted = column.strip()
    same = [str(at) for at, name in enumerate(names, 1) if name == wanted]
    if len(same) == 1:
        return int(same[0]) - 1
    if _is_position(wanted, width):
        return int(wanted) - 1
    if same:
        must(
            "column",
            f"one of {' and '.join(same)}, by number: {file} has {len(same)} columns {column}",
            column,
        )
    known = (
        f"one of {', '.join(names)}, or 1 to {width}"
        if names
        else f"1 to {width}, as it has no header"
    )
    raise InvalidRequest(f"column must be a column of {file}: {known}. Got {column!r}.")


def format_csv_column(name: str, values: Vector) -> str:
    """A CSV text of one column with a header; every double is written so that it reads back the same."""
    return "\n".join([name, *map(repr, values.tolist())]) + "\n"
