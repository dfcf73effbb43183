"""Read and write columns of a CSV file. Every error about a cell names its line.

If the user does not say whether the first row is a header (`header` is None), this is decided from
the selection of the columns and from the first row alone:

    columns are selected   first row                                       decision
    by name                some cell cannot be a value                     header
    by number              every cell could be a value                     no header
    by number              the selected cells are texts such as "age"      header
    otherwise              for example "31 kg" or "#N/A" in a selected     error: the user must say
                           cell, or a name that is also a column number    whether it is a header

The decision matters for privacy. A header that is taken for a row adds a person who does not exist.
A row that is taken for a header is published unchanged.
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

# Programs write these texts for missing values.
MISSING_TEXTS = frozenset(("na", "n/a", "n.a.", "null", "none", "nil", "missing", "nan"))
# A first row with one of these texts may be a row of data. Marks such as "#" are stripped before.
_ODD_VALUES = MISSING_TEXTS | frozenset(
    ("n/d", "n.d.", "nd", "nv", "nat", "div/0", "unknown", "true", "false")
)
# A text that begins with a number, such as "31 kg" or "<5", but not with an ordinal: "2nd visit".
_QUANTITY = re.compile(r"\W*\d(?!\d*(?:st|nd|rd|th)\b)", re.IGNORECASE)
# A decimal comma ("1,5"), or digits in groups ("1 000").
_GROUPED_DIGITS = re.compile(r"\d[,'\s\xa0\u202f]\d")
_MAX_PLAIN_DIGITS = 18  # Integers of fewer digits are read without the general parser.
_MAX_POSITION_DIGITS = 10  # A text of fewer digits may be the number of a column.


def _parse_float_cell(cell: str) -> float:
    """Return the number of a cell, or NaN for a text that is no number.

    `float` also accepts "1_000" and full-width digits. These are NaN here.
    """
    try:
        if cell.isascii() and "_" not in cell:
            return float(cell)
        return math.nan
    except ValueError:
        return math.nan


def _parse_exact_cell(cell: str) -> int | Fraction | None:
    """Return the exact number of a numeric cell, or None if it has more than 5000 digits."""
    digits = cell.strip()
    if len(digits) < _MAX_PLAIN_DIGITS and digits.removeprefix("-").isdecimal():
        return int(digits)
    return parse_rational(cell)


def _could_be_value(cell: str) -> bool:
    """Return whether a cell may be a value: a number, a missing value, or a text of no letters."""
    text = cell.strip()
    return is_number(text) or text.lower() in MISSING_TEXTS or not any(map(str.isalpha, text))


def _could_be_odd_value(cell: str) -> bool:
    """Return whether a cell may be a damaged value or a number with a unit: "#N/A", "31 kg"."""
    text = cell.strip()
    # Spreadsheets write errors as #VALUE! and #NAME?.
    is_error = text.startswith("#") and text.endswith(("!", "?"))
    bare_text = text.lower().strip("#<>()!?*-. ")
    return bool(_QUANTITY.match(text)) or is_error or bare_text in _ODD_VALUES


@dataclass(frozen=True)
class CsvTable:
    """All cells of a UTF-8 CSV file.

    Attributes:
        file: Name of the file.
        rows: All rows, which have the same width.
        lines: Line of the file in which each row begins.
        header: Whether the first row contains the names of the columns.
        multiline: Whether cells may contain line breaks.
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
        options: Sequence[str] = (),
    ) -> tuple[CsvTable, list[CsvColumn]]:
        """Read a whole file and select some of its columns.

        Args:
            path: Path of the file.
            columns: Names in the header, or numbers such as "2", counted from 1. None stands for
                the only column.
            header: Whether the first row is a header. None: decided as the module header says.
            multiline: Whether line breaks inside quoted cells are accepted.
            options: For each column, the option that names it, for errors. Default: "column".

        Returns:
            The table, and the selected columns in the given order.

        Raises:
            InvalidRequest: The file cannot be read or is empty, a column is unknown, rows have
                different widths, or it is unclear whether the first row is a header.
            CorruptFile: The file is too large, or is no CSV.
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
        positions, has_header = _locate_columns(rows[0], columns, header, file, options)
        table = cls(file, rows, lines, has_header, multiline)
        if not table.body:
            must("input", "a CSV file with at least one number", f"{file}, which has only a header")
        table._refuse_hidden_rows(positions)
        return table, [CsvColumn(table, position) for position in positions]

    @property
    def body(self) -> list[list[str]]:
        """Return the rows below the header."""
        if self.header:
            return self.rows[1:]
        return self.rows

    @property
    def multiline_cell_count(self) -> int:
        """Return the number of cells that contain line breaks."""
        if not self.multiline:
            return 0
        count = 0
        for row in self.rows:
            count += sum("\n" in cell or "\r" in cell for cell in row)
        return count

    def _refuse_hidden_rows(self, positions: Sequence[int]) -> None:
        """Refuse a cell with line breaks if one of its lines looks like a row of the table.

        Such a cell is the result of an unclosed quote. A line looks like a row if it has as many
        cells as the table, and a number in a selected column. Raises InvalidRequest.
        """
        if not self.multiline_cell_count:
            return
        for index, row in enumerate(self.body):
            for cell in row:
                for text in re.split("[\r\n]+", cell)[1:]:
                    parts = text.split(",")
                    has_width = len(parts) >= self.width
                    if has_width and any(is_number(parts[position]) for position in positions):
                        must(
                            self.describe_row(index),
                            "without rows of the table inside a quoted cell",
                            "a cell with such a row",
                        )

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return len(self.rows[0])

    def describe_row(self, index: int) -> str:
        """Describe a row in errors: "line 3 of people.csv".

        Args:
            index: Number of the row in the body, counted from 0.
        """
        return f"line {self.lines[index + self.header]} of {self.file}"

    def replace_columns(
        self, positions: Sequence[int], numbers: dict[int, npt.NDArray[Any]]
    ) -> list[list[str]]:
        """Build a table of the copied columns and of columns with new numbers or texts.

        Args:
            positions: Positions of the columns that are copied, counted from 0.
            numbers: New numbers or texts by the position of their column. Shape (rows,) each. They
                replace a copied column of the same position.

        Returns:
            Cells of each row, with the header if there is one. The columns keep their order.
        """
        columns = []
        for position in sorted({*positions, *numbers}):
            column = []
            if self.header:
                column = [self.rows[0][position]]
            if position in numbers:
                column += map(str, list_with_integers(numbers[position]))
            else:
                column += [row[position] for row in self.body]
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class CsvColumn:
    """One column of a `CsvTable`, and its values below the header.

    Attributes:
        table: Table of the file that has the column.
        position: Position of the column, counted from 0.
    """

    table: CsvTable
    position: int

    @classmethod
    def read(
        cls, path: Path | str, column: str | None = None, *, header: bool | None = None
    ) -> CsvColumn:
        """Read one column of a file.

        Args:
            path: Path of the file.
            column: Name in the header, or number counted from 1. None stands for the only column.
            header: Whether the first row is a header. None: decided as the module header says.

        Raises:
            InvalidRequest, CorruptFile: As `CsvTable.read`.
        """
        _, (csv_column,) = CsvTable.read(path, [column], header=header)
        return csv_column

    @property
    def name(self) -> str:
        """Return the name in the header, or a text such as "column 2" without a header."""
        if self.table.header:
            return self.table.rows[0][self.position].strip()
        return f"column {self.position + 1}"

    @property
    def cells(self) -> list[str]:
        """Return the texts below the header."""
        return [row[self.position] for row in self.table.body]

    def numbers(self, max_size: float = sys.float_info.max) -> Vector:
        """Return the column as finite floats. Shape (rows,).

        Args:
            max_size: Largest accepted absolute value.

        Raises:
            InvalidRequest: A cell is no finite number, or its absolute value is too large.
        """
        values = np.array([_parse_float_cell(cell) for cell in self.cells])
        is_wrong = ~(np.abs(values) <= max_size)
        hint = ""
        if is_wrong.any():
            first_wrong_cell = self.cells[int(is_wrong.argmax())]
            if _GROUPED_DIGITS.search(first_wrong_cell):
                hint = "write 1234.5 without separators of thousands or decimal commas"
        bound = ""
        if max_size != sys.float_info.max:
            bound = f", at most {max_size:.6g} in size"
        self.refuse_rows(is_wrong, f"a finite number{bound}", hint)
        return values

    def exact_numbers(self) -> npt.NDArray[np.object_]:
        """Return the column as exact ints and Fractions. Shape (rows,). Raises InvalidRequest."""
        self.numbers()
        values = np.empty(len(self.table.body), dtype=object)
        values[:] = [_parse_exact_cell(cell) for cell in self.cells]
        is_too_long = np.array([value is None for value in values])
        self.refuse_rows(is_too_long, "a decimal within 5000 digits")
        return values

    def refuse_rows(self, is_wrong: Flags, constraint: str, hint: str = "") -> None:
        """Raise InvalidRequest if some rows are wrong.

        The error names the first wrong row and counts the wrong rows. It does not show the cell,
        which may be private.

        Args:
            is_wrong: Whether each row is wrong. Shape (rows,).
            constraint: What the cells must be, such as "a finite number".
            hint: How the user can correct the cell. Empty for no hint.
        """
        wrong_rows = np.flatnonzero(is_wrong)
        if not wrong_rows.size:
            return
        first = int(wrong_rows[0])
        count = ""
        if wrong_rows.size > 1:
            count = f"{wrong_rows.size} such rows"
        notes = "; ".join(filter(None, (count, hint)))
        got = "another text"
        if notes:
            got += f" ({notes})"
        column = self.name if self.table.header else self.position + 1
        raise InvalidRequest(
            f"{self.table.describe_row(first)}, column {column}, must be {constraint}. Got {got}."
        )


def encode_csv_rows(rows: list[list[str]]) -> bytes:
    """Encode cells as a CSV file.

    Args:
        rows: Texts of the cells of each row, with the header if there is one.
    """
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
    """Read one column of a UTF-8 CSV file as finite floats. Shape (rows,).

    Args:
        path: Path of the file.
        column: Name in the header, or number counted from 1. None stands for the only column.
        max_size: Largest accepted absolute value.
        header: Whether the first row is a header. None: decided as the module header says.

    Raises:
        InvalidRequest, CorruptFile: As `CsvTable.read` and `CsvColumn.numbers`.
    """
    return CsvColumn.read(path, column, header=header).numbers(max_size)


def list_with_integers(values: npt.NDArray[Any]) -> list[Any]:
    """List numbers for publication. Whole floats become ints, so that 1.0 is published as 1.

    Args:
        values: Numbers. Shape (n,).
    """
    numbers = []
    for number in values.tolist():
        is_whole_float = isinstance(number, float) and number.is_integer()
        numbers.append(int(number) if is_whole_float else number)
    return numbers


def read_two_names(text: str, path: Path) -> list[str]:
    """Read the names of two columns from a text such as "x,y".

    A name that contains a comma is quoted. Quotes are not needed if only one way to split the text
    gives two columns of the file.

    Args:
        text: Two names or numbers of columns, separated by a comma.
        path: Path of the CSV file.

    Raises:
        InvalidRequest: The text does not consist of two names.
    """
    first_row = [cell.strip() for cell in (read_rows(path).cells or [[]])[0]]
    names = [part.strip() for part in next(csv.reader([text], skipinitialspace=True))]
    if len(names) > 2:
        parts = [part.strip() for part in text.split(",")]
        candidates = []
        for split in range(1, len(parts)):
            pair = [",".join(parts[:split]), ",".join(parts[split:])]
            if all(name in first_row or _is_position(name, len(first_row)) for name in pair):
                candidates.append(pair)
        if len(candidates) == 1:
            names = candidates[0]
    if len(names) != 2 or not all(names):
        must("columns", "two columns, such as x,y (quote a name that holds a comma)", repr(text))
    return names


def _refuse_separator(first_row: list[str], file: str) -> None:
    """Refuse a file of one column whose first line has another separator. Raises InvalidRequest."""
    if len(first_row) != 1:
        return
    for separator, separator_name in SEPARATOR_NAMES.items():
        if separator in first_row[0]:
            got = f"{file}, whose cells are separated by {separator_name}"
            must("input", "a CSV file with commas between its cells", got)


def _is_position(column: str, width: int) -> bool:
    """Return whether a text is the number of a column, counted from 1."""
    is_short_number = column.isascii() and column.isdecimal() and len(column) < _MAX_POSITION_DIGITS
    return is_short_number and 1 <= int(column) <= width


def _locate_columns(
    first_row: list[str],
    columns: Sequence[str | None],
    header: bool | None,
    file: str,
    options: Sequence[str],
) -> tuple[list[int], bool]:
    """Return the positions of the selected columns, and whether the first row is a header.

    `options` has the option that names each column; empty for "column". Raises InvalidRequest.
    """
    names = []
    if header is not False:
        names = [cell.strip() for cell in first_row]
    positions = [
        _find_column(column, names, len(first_row), file, option, has_known_names=header is True)
        for column, option in zip(columns, options or ["column"] * len(columns), strict=True)
    ]
    if header is not None:
        return positions, header
    selected_by_name = [c for c in columns if c is not None and c.strip() in names]
    could_be_values = [*map(_could_be_value, first_row)]
    if selected_by_name:
        for column in selected_by_name:
            if _is_position(column.strip(), len(first_row)):
                _refuse_unclear_header(
                    f"{file}, in which {column} is a name of the first row and the number of a "
                    "column"
                )
        if all(could_be_values):
            _refuse_unclear_header(f"{file}, of whose first row every cell could be a value")
        return positions, True
    if all(could_be_values):
        return positions, False
    selected_cells = [first_row[position] for position in positions]
    if any(_could_be_value(cell) or _could_be_odd_value(cell) for cell in selected_cells):
        _refuse_unclear_header(f"{file}, whose first row may be names or data")
    return positions, True


def _refuse_unclear_header(got: str) -> None:
    """Refuse a first row that may or may not be a header. Raises InvalidRequest."""
    must(
        "input",
        "given with --header or --no-header, or begin with a row that can be nothing but names",
        got,
    )


def _find_column(
    column: str | None,
    names: list[str],
    width: int,
    file: str,
    option: str,
    *,
    has_known_names: bool,
) -> int:
    """Return the position of a selected column, counted from 0. Raises InvalidRequest.

    Args:
        column: Name or number of the column. None stands for the only column.
        names: Cells of the first row. Empty if the first row is no header.
        width: Number of columns.
        file: Name of the file in errors.
        option: Option that names the column.
        has_known_names: Whether the user says that the first row is a header. Otherwise it may be
            private, and errors only show a name that equals `column` but for case.
    """
    if column is None:
        if width != 1:
            must(option, f"given for {file}, which has {width} columns", "none")
        return 0
    if not isinstance(column, str):
        must(option, "a name, or a number from 1 as text", repr(column))
    stripped_name = column.strip()
    matches = [str(number) for number, name in enumerate(names, 1) if name == stripped_name]
    if len(matches) == 1:
        return int(matches[0]) - 1
    if _is_position(stripped_name, width):
        return int(stripped_name) - 1
    if matches:
        count = len(matches)
        must(
            option,
            f"one of {' and '.join(matches)}, by number: {file} has {count} columns {column}",
            column,
        )
    choices = f"1 to {width}, as it has no header"
    if names:
        choices = f"1 to {width}, or one of the names in its first row"
        similar_names = [name for name in names if name.casefold() == stripped_name.casefold()]
        if has_known_names:
            choices = f"one of {', '.join(names)}, or 1 to {width}"
        elif similar_names:
            choices = f"such as {similar_names[0]}, or 1 to {width}"
    raise InvalidRequest(f"{option} must be a column of {file}: {choices}. Got {column!r}.")


def format_csv_column(name: str, values: Vector) -> str:
    """Format one column with a header as CSV, so that every double is read back exactly.

    Args:
        name: Name of the column.
        values: Numbers. Shape (n,).
    """
    return "\n".join([name, *map(repr, values.tolist())]) + "\n"
