"""Read the private table of a release from a CSV file or from objects of Python.

An error about a cell names the option and the column, and says what to do. It shows neither the
cell nor its row, because an error message is published more easily than meant. The line of the cell
is in `PrivateCellError.detail`, which belongs into a private report for the owner of the data.

Rules for cells:

    missing      a blank cell, a text such as NA or null, NaN, None, pandas.NA
    number       a decimal such as 12, -0.5 or 1e3. A float is the decimal that it shows
    category     a text without the blanks around it. Upper and lower case are equal. 2 and 2.0 are
                 equal, but 02 is another text

The names of columns are in the first row of a CSV file. A blank line in the file is an error unless
it is at the end of a file of several columns.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.csv_column import MISSING_TEXTS
from workbench.data.csv_rows import split_rows
from workbench.data.tables import CSV_LIMIT, is_number
from workbench.errors import CorruptFile, InvalidRequest, WorkbenchError, must
from workbench.exact.numbers import parse_rational
from workbench.io.files import read_text

# A decimal without zeros in front. Other texts of digits, such as 007, are names.
_PLAIN_DECIMAL = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?")
_MAX_SHOWN_CHARACTERS = 60  # An error shows at most this many characters of a cell.
_MAX_POSITION_DIGITS = 9  # A text of more digits is no position of a column.
_MISSING_TYPES = ("NAType", "NaTType")  # Types of pandas.NA and pandas.NaT.
# Names of 32-bit and 16-bit floats in NumPy, pandas, polars and pyarrow.
_SHORT_FLOAT = re.compile(r"\b(?:float32|float16|halffloat)\b|^float(?:\[pyarrow\])?$", re.I)
_TABLE_FORMS = (
    "the path of a CSV file, a DataFrame, a Series, a pyarrow table, a structured array, a list of "
    "cells, or a mapping from names to lists of cells"
)
# Methods that load the rows of a table which is not in memory.
_LOADING_METHODS = ("collect", "compute", "to_table", "read_all", "fetchall")
# Files with these endings are no text.
_OTHER_FILES = frozenset((
    ".gz", ".zip", ".bz2", ".xz", ".zst", ".parquet", ".feather", ".arrow", ".xlsx", ".xls",
    ".ods", ".pkl", ".pickle", ".db", ".sqlite", ".h5", ".dta", ".sav", ".rds",
))  # fmt: skip


class PrivateCellError(InvalidRequest):
    """A private cell, row or line of the data is wrong. The message does not show it.

    Attributes:
        detail: A private sentence that shows the place.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


def make_category_key(value: Any) -> Hashable:
    """Return a key that is equal for all spellings of one category.

    Args:
        value: A text, a number or a boolean that is not missing.
    """
    if isinstance(value, (bool, np.bool_)):
        return str(value).casefold()
    if isinstance(value, (Number, np.number)):
        number = parse_rational(value)
        if number is not None:
            return number
    text = unicodedata.normalize("NFKC", _format_date(value)).strip().casefold()
    if _PLAIN_DECIMAL.fullmatch(text) and text.isascii():
        return parse_rational(text)
    return text


def _format_date(value: Any) -> str:
    """Return the text of a cell. A day without a time is written as in a file: 2020-01-31."""
    cell = value
    if isinstance(value, np.datetime64):
        cell = value.astype("datetime64[us]").item()
    if isinstance(cell, datetime) and cell.time() == time() and cell.tzinfo is None:
        return cell.date().isoformat()
    return str(cell)


def parse_number(value: Any) -> Fraction | None:
    """Return the number of a cell, or None. A text such as 1/2 may be a date and is no number.

    Args:
        value: The cell.
    """
    if isinstance(value, str) and "/" in value:
        return None
    return parse_rational(value)


def is_missing_cell(cell: Any) -> bool:
    """Return whether a cell is missing: blank, a text such as NA, NaN, None or pandas.NA.

    Args:
        cell: The cell.
    """
    if is_missing_object(cell):
        return True
    if isinstance(cell, (Number, np.number, np.bool_)):
        return False
    return make_category_key(cell) in ("", *MISSING_TEXTS)


def is_missing_object(cell: Any) -> bool:
    """Return whether a cell is missing although it is no text.

    Args:
        cell: The cell.
    """
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return True
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return isinstance(cell, (float, np.floating)) and bool(cell != cell)  # Only NaN is unequal.


@dataclass(frozen=True)
class PrivateColumn:
    """A column of the private table.

    Attributes:
        name: Name of the column, as the user gave it.
        cells: The cells, as the file or the object has them.
        places: Private description of the place of each row. Empty: the rows are counted from 1.
    """

    name: str
    cells: Sequence[Any]
    places: Sequence[str] = ()

    def refuse_cell(self, row: int, rule: str) -> None:
        """Raise PrivateCellError for a cell, without showing it.

        Args:
            row: Number of the row, counted from 0.
            rule: What the cells must be, and what to do.
        """
        place = f"row {row + 1}"
        if self.places:
            place = self.places[row]
        shown_cell = str(self.cells[row])[:_MAX_SHOWN_CHARACTERS]
        raise PrivateCellError(
            f"Every cell of column {self.name} that is used must be {rule}. At least one is not.",
            f"{place}, column {self.name}: {shown_cell!r} is not {rule}.",
        )

    def list_numbers(self) -> list[Fraction | None]:
        """List the cells as exact numbers, None for a missing cell.

        A cell that is no number is an error.

        Raises:
            PrivateCellError: A cell is neither missing nor a number.
        """
        numbers: list[Fraction | None] = []
        for row, cell in enumerate(self.cells):
            number = parse_number(cell)
            if number is None and not is_missing_cell(cell):
                self.refuse_cell(
                    row,
                    "a finite number such as 1234.5 (without units, thousands separators or "
                    "decimal commas), or empty with --drop-missing",
                )
            numbers.append(number)
        return numbers

    def list_categories(self, listed: Collection[Hashable] = ()) -> list[Hashable | None]:
        """List the keys of the cells by `make_category_key`, None for a missing cell.

        Args:
            listed: Keys that are categories even if their text, such as "none", may mean a missing
                value.
        """
        keys: list[Hashable | None] = []
        for cell in self.cells:
            key = None
            if not is_missing_object(cell):
                key = make_category_key(cell)
            if key not in listed and is_missing_cell(cell):
                key = None
            keys.append(key)
        return keys


@dataclass(frozen=True)
class PrivateTable:
    """The private table of a release.

    Attributes:
        title: Name of the file, or what the table is.
        names: Name of each column. Empty texts for a file without a header.
        columns: Cells of each column.
        row_count: Number of rows, which may be private.
        places: Private description of the place of each row, or empty.
        has_known_names: Whether the names are surely names. The first row of a file may be private
            data, unless the user says that it has names.
    """

    title: str
    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    row_count: int
    places: Sequence[str] = ()
    has_known_names: bool = False

    def select_column(self, name: str | None, option: str) -> PrivateColumn:
        """Return the column with a name or a number.

        Args:
            name: Name of the column, or its number from 1 as text. None: the only column.
            option: Name of the option, for errors.

        Raises:
            InvalidRequest: There is no such column, several columns have the name, or the name is
                also the number of another column of a file without --header.
        """
        width = len(self.columns)
        if name is None:
            if width != 1:
                must(option, f"given for {self.title}, which has {width} columns", "none")
            return PrivateColumn("1", self.columns[0], self.places)
        text = str(name).strip()
        matches = [position for position, title in enumerate(self.names) if title == text]
        is_position = text.isascii() and text.isdecimal() and len(text) <= _MAX_POSITION_DIGITS
        if is_position and 1 <= int(text) <= width:
            position = int(text) - 1
            if matches not in ([], [position]) and not self.has_known_names:
                # The first row of a file is private, unless the user says that it has names.
                rule = "given with --header, if it is the name of a column and no number"
                must(option, rule, f"{text!r}, which {self.title} has as a name and as a number")
            matches = matches or [position]
        if len(matches) == 1:
            return PrivateColumn(text, self.columns[matches[0]], self.places)
        if matches:
            numbers = " or ".join(str(position + 1) for position in matches)
            must(option, f"{numbers}, as several columns have the name {text}", repr(name))
        proposals = [title for title in self.names if title.casefold() == text.casefold()]
        if self.has_known_names and not proposals:
            titles = [title for title in self.names if title]
            proposals = difflib.get_close_matches(text, titles, 1)
        hint = ""
        if proposals:
            hint = f", such as {proposals[0]}"
        rule = f"a column of {self.title}{hint}, by its name or its number from 1 to {width}"
        return must(option, rule, repr(name))


def read_private_table(data: Any, *, header: bool | None = None) -> PrivateTable:
    """Read a private table.

    Args:
        data: Path of a UTF-8 CSV file; or a DataFrame, a Series or a table of pyarrow; or a
            structured array; or a mapping from names to lists of equal length; or a list, which is
            the only column.
        header: Whether the first row of a file has the names of the columns. Default: yes, but a
            first row in which every cell may be a value is refused.

    Raises:
        InvalidRequest: The file cannot be read, or the object is no table.
        PrivateCellError: The file is no CSV.
    """
    if isinstance(data, (str, Path)):
        return _read_csv(data, header)
    title = f"the {type(data).__name__}"
    _refuse_unloaded_table(data)
    try:
        names, columns = _list_columns(data)
    except WorkbenchError:
        raise
    except Exception as error:
        # The text of this error may show a cell.
        raise PrivateCellError(
            f"data must be {_TABLE_FORMS}. Got {title}, which cannot be read.",
            f"{type(error).__name__}: {error}",
        ) from None
    heights = {len(column) for column in columns}
    if len(heights) != 1:
        must("data", "a table with at least one column, and columns of equal length", title)
    titles = [str(name).strip() for name in names]
    return PrivateTable(title, titles, columns, heights.pop(), has_known_names=True)


def _refuse_unloaded_table(data: Any) -> None:
    """Raise InvalidRequest for a table that is not in memory, such as a LazyFrame of polars.

    An iterator is refused, too: it is empty when it is read for the second time, and the iterator
    of a file begins with the names of the columns.
    """
    for method in _LOADING_METHODS:
        # The attributes of a DataFrame are its columns, too, so its type is asked.
        if hasattr(type(data), method):
            rule = f"a table in memory. Load it first, such as with its method {method}()"
            must("data", rule, f"a {type(data).__name__}")
    if hasattr(type(data), "__next__"):
        rule = "a table that can be read twice, such as list(...) or the path of a file"
        must("data", rule, f"a {type(data).__name__}")


def _list_columns(data: Any) -> tuple[list[Any], list[list[Any]]]:
    """List the names and the cells of the columns of an object. Raises InvalidRequest."""
    if isinstance(data, Mapping):
        names = [*data]
        columns = [_list_cells(data[name], str(name)) for name in names]
    elif hasattr(data, "iloc") and hasattr(data, "columns"):
        names = [*data.columns]
        columns = [_list_cells(data.iloc[:, k], str(name)) for k, name in enumerate(names)]
    elif hasattr(data, "column_names"):  # A table of pyarrow.
        names = [*data.column_names]
        columns = [_list_cells(data.column(k), str(name)) for k, name in enumerate(names)]
    elif hasattr(data, "columns"):
        names = [*data.columns]
        columns = [_list_cells(data[name], str(name)) for name in names]
    elif isinstance(data, np.ndarray) and data.dtype.names is not None:
        names = [*data.dtype.names]
        columns = [_list_cells(data[name], name) for name in names]
    else:
        if isinstance(data, (str, bytes, Set)) or not hasattr(data, "__iter__"):
            must("data", _TABLE_FORMS, type(data).__name__)
        names = [getattr(data, "name", None) or ""]
        columns = [_list_cells(data, "1")]
        if any(isinstance(cell, (Mapping, list, tuple, np.ndarray)) for cell in columns[0]):
            rule = f"{_TABLE_FORMS}. pandas.DataFrame(rows) makes a table from rows"
            must("data", rule, f"a {type(data).__name__} of rows")
    return names, columns


def _list_cells(values: Any, name: str) -> list[Any]:
    """List the cells of a column of an object. Raises InvalidRequest."""
    is_text = isinstance(values, (str, bytes, Mapping))
    # A set would hold equal cells of two persons once, and an iterator is read only once.
    has_no_rows = isinstance(values, Set) or hasattr(values, "__next__")
    if is_text or has_no_rows or not hasattr(values, "__iter__"):
        must(f"column {name}", "a list, an array or a Series", type(values).__name__)
    if getattr(values, "ndim", 1) != 1:
        must(f"column {name}", "one-dimensional", f"{values.ndim} dimensions")
    if isinstance(values, np.ma.MaskedArray):
        cells: list[Any] = values.tolist()  # A masked cell becomes None.
        return cells
    if hasattr(values, "to_pylist"):  # The cells of pyarrow are objects of its own.
        cells = [*values.to_pylist()]
    else:
        cells = [*values]
    kind = str(getattr(values, "dtype", getattr(values, "type", "")))
    if _SHORT_FLOAT.search(kind):
        # Libraries widen these floats, so that 0.1 would become 0.10000000149.
        cells = [np.float32(cell) if isinstance(cell, float) else cell for cell in cells]
    return cells


def _read_csv(path: str | Path, header: bool | None) -> PrivateTable:
    """Read a CSV file. Raises InvalidRequest, PrivateCellError."""
    title = Path(path).name
    try:
        text = read_text(path, CSV_LIMIT, "data").removeprefix("\ufeff")
        rows, lines = split_rows(text, title)
    except InvalidRequest as error:
        # The separator is wrong, or the file cannot be read.
        raise InvalidRequest(str(error).replace("input must be", "data must be")) from None
    except CorruptFile as error:
        if Path(path).suffix.lower() in _OTHER_FILES:
            rule = (
                "an uncompressed CSV file (in Python, load it, such as with pandas, and give the "
            )
            must("data", f"{rule}table)", title)
        raise PrivateCellError(
            "data must be a CSV file in UTF-8 with commas between the cells, without line breaks "
            f"or stray quotes in cells, and not too large. Got {title}.",
            str(error),
        ) from None
    if not rows:
        must("data", "a CSV file with a header", f"{title}, which is empty")
    width = max(len(rows[0]), 1)
    for row, line in zip(rows, lines, strict=True):
        # Blank lines at the end are dropped before. Others are refused, so that no row changes the
        # meaning of another one. In a file of one column, the line "" is a missing value.
        is_blank_line = width == 1 and row != [""] and not "".join(row).strip()
        if len(row) != width or is_blank_line:
            raise PrivateCellError(
                f"data must have the same number of cells, {width}, in every line, and no blank "
                f"line. Got {title}, in which at least one line differs.",
                f"line {line} of {title} has {len(row)} cells.",
            )
    if width == 1 and not text.splitlines()[-1].strip():
        # In a file of one column, a blank line and a missing value look alike. If it were dropped,
        # a missing value would change the number of rows, which "replace" takes as fixed.
        raise PrivateCellError(
            "data must have no blank line at the end if it has one column, as a blank line may be "
            f'a missing value. Delete the line, or write "" for a missing value. Got {title}.',
            f"the last line of {title} is blank.",
        )
    could_be_values = [not any(map(str.isalpha, cell)) or is_number(cell) for cell in rows[0]]
    if header is None and all(could_be_values):
        must(
            "data",
            "a CSV file whose first row has the names of the columns, or given with --header or "
            "--no-header",
            f"{title}, in whose first row every cell may be a value",
        )
    names = [""] * width
    body = rows
    first_row = 0
    if header is not False:
        names = [cell.strip() for cell in rows[0]]
        body = rows[1:]
        first_row = 1
    columns = [[row[position] for row in body] for position in range(width)]
    places = [f"line {line}" for line in lines[first_row:]]
    has_known_names = header is True
    return PrivateTable(
        title=title,
        names=names,
        columns=columns,
        row_count=len(body),
        places=places,
        has_known_names=has_known_names,
    )
