"""One numeric column of a CSV file, in and out, each bad cell named by its row."""

from __future__ import annotations

import csv
import io
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Flags, Vector
from workbench.io.files import is_name, lines_of, read_rows


def _number(cell: str) -> float:
    """The number a cell spells, NaN if none; what only Python reads as one, 1_000 and full-width digits, is none."""
    try:
        return float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class CsvColumn:
    """One column of a UTF-8 CSV file, read whole with the rest of it.

    file: its name; rows: all cells; at: the index of the column; header: whether the first row is one.
    """

    file: str
    rows: list[list[str]]
    at: int
    header: bool

    @classmethod
    def read(cls, path: Path, column: str | None = None) -> CsvColumn:
        """column: a name in the header, or the number of the column counted from 1; may be None when there is only one.

        The first row is a header when its cell in the chosen column begins with a letter and spells no number (nan and
        inf are numbers). Raises InvalidRequest for an unreadable or empty file, an unknown column and a row of another
        width (an empty line before the last row included), CorruptFile for a file that is too large or no CSV.
        """
        rows, path = read_rows(path), Path(path)
        if not rows:
            must("input", "a CSV file with at least one number", f"{path.name}, which is empty")
        at, header = locate(rows[0], column, path.name)
        table = cls(path.name, rows, at, header)
        if not table.body:
            must("input", "a CSV file with at least one number", f"{path.name}, which has only a header")
        for index, row in enumerate(table.body):
            if len(row) != table.width:
                must(table.line(index), f"{table.width} cells wide", f"{len(row)} cells")
        return table

    @property
    def body(self) -> list[list[str]]:
        """The rows below the header."""
        return self.rows[1:] if self.header else self.rows

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    @property
    def name(self) -> str:
        """The column's name in the header, or its number."""
        return self.rows[0][self.at].strip() if self.header else f"column {self.at + 1}"

    def line(self, index: int) -> str:
        """What a message calls a row of the body: its line in the file."""
        return f"line {1 + lines_of(self.rows[: index + self.header])} of {self.file}"

    def numbers(self, largest: float = sys.float_info.max) -> Vector:
        """The column as finite numbers; shape (rows,). largest: a public bound on their size. Raises InvalidRequest."""
        values = np.array([_number(row[self.at]) for row in self.body])
        bound = "" if largest == sys.float_info.max else f", at most {largest:.6g} in size"
        self.refuse(~(np.abs(values) <= largest), f"a finite number{bound}")
        return values

    def refuse(self, wrong: Flags, constraint: str, more: str = "") -> None:
        """Raise InvalidRequest when some rows (rows,) are wrong, naming the first and how many there are."""
        bad = np.flatnonzero(wrong)
        if bad.size:
            first, rows = int(bad[0]), f"{bad.size} such rows" if bad.size > 1 else ""
            aside = "; ".join(filter(None, (rows, more)))
            got = repr(self.body[first][self.at][:60]) + (f" ({aside})" if aside else "")
            column = self.name if self.header else self.at + 1
            raise InvalidRequest(f"{self.line(first)}, column {column}, must be {constraint}. Got {got}.")

    def with_numbers(self, values: npt.NDArray[Any]) -> list[list[str]]:
        """All cells, with other numbers (rows,) in the column, whole ones without a point."""
        cells = map(repr, whole_as_integers(values))
        body = [[*row[: self.at], cell, *row[self.at + 1 :]] for row, cell in zip(self.body, cells, strict=True)]
        return [self.rows[0], *body] if self.header else body


def csv_bytes(rows: list[list[str]]) -> bytes:
    """Cells as a file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


def read_column(path: Path, column: str | None = None, largest: float = sys.float_info.max) -> Vector:
    """The finite numbers of one column of a UTF-8 CSV file; shape (rows,). Arguments and errors as `CsvColumn`."""
    return CsvColumn.read(path, column).numbers(largest)


def whole_as_integers(values: npt.NDArray[Any]) -> list[Any]:
    """Published values as a list, whole floats as integers: 1 is published where 1 is an output, not 1.0."""
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()]


def locate(first: list[str], column: str | None, name: str) -> tuple[int, bool]:
    """(the index of the chosen column, whether the first row of the file is a header). Raises InvalidRequest."""
    at = _place(first, column, name)
    return at, is_name(first[at])


def _place(head: list[str], column: str | None, name: str) -> int:
    """The index of the chosen column in the first row."""
    if column is None:
        if len(head) != 1:
            must("column", f"given for {name}, which has {len(head)} columns", "none")
        return 0
    if not isinstance(column, str):
        must("column", "a name, or a number from 1 as text", repr(column))
    names = [cell.strip() for cell in head]
    same = [str(at) for at, cell in enumerate(names, 1) if cell == column.strip()]
    if len(same) == 1:
        return int(same[0]) - 1
    if column.isascii() and column.isdecimal() and len(column) < 10 and 1 <= int(column) <= len(head):
        return int(column) - 1
    if same:
        must("column", f"one of {' and '.join(same)}, by number: {name} has {len(same)} columns {column}", column)
    raise InvalidRequest(
        f"column must be a column of {name}: one of {', '.join(names)}, or 1 to {len(head)}. Got {column!r}."
    )


def column_text(name: str, values: Vector) -> str:
    """A CSV text of one column with a header; every double is written so that it reads back the same."""
    return "\n".join([name, *map(repr, values.tolist())]) + "\n"
