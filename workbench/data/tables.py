"""Read small CSV tables. Every cell knows its line and column, so that errors can name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.data.csv_rows import CsvRows, split_rows
from workbench.io.files import read_text

# Files of more bytes are refused, because reading one needs ten times its size in memory. A file of
# this size has about 10^7 numbers.
CSV_LIMIT = 1 << 28


def read_rows(path: Path | str, name: str = "input", *, multiline: bool = False) -> CsvRows:
    """Read the rows of a UTF-8 CSV file, without empty lines at its end.

    Args:
        path: Path of the file, which may begin with a byte order mark.
        name: Name of the option in errors.
        multiline: Whether line breaks inside quoted cells are accepted.

    Returns:
        The cells of each row, and the line in which each row begins.

    Raises:
        InvalidRequest: The file cannot be read, or has another separator.
        CorruptFile: The file is too large, or no CSV.
    """
    text = read_text(path, CSV_LIMIT, name).removeprefix("\ufeff")
    return split_rows(text, Path(path).name, multiline=multiline)


class Cell(str):
    """A cell of a table without spaces around it.

    Attributes:
        place: Line and column of the cell, for errors.
    """

    place: str


def read_table(
    path: Path | str, name: str = "input", *, keep_header: bool = False
) -> list[list[Cell]]:
    """Read the non-empty rows of a small CSV file.

    Args:
        path: Path of the file.
        name: Name of the option in errors.
        keep_header: Whether a header row is returned, too. The first row is a header if none of its
            cells is a number, but all other cells of some column are.

    Returns:
        Cells of each row. Every cell has its place in the file for errors.

    Raises:
        InvalidRequest: The file cannot be read, or has another separator.
        CorruptFile: The file is too large, or no CSV.
    """
    rows, lines = read_rows(path, name, multiline=True)
    file = Path(path).name
    table = []
    for row, line in zip(rows, lines, strict=True):
        cells = [Cell(cell.strip()) for cell in row]
        for column, cell in enumerate(cells, 1):
            cell.place = f"line {line}, column {column} of {file}"
        if any(cells):
            table.append(cells)
    if keep_header or not _has_header(table):
        return table
    return table[1:]


def _has_header(table: list[list[Cell]]) -> bool:
    """Return whether no cell of the first row is a number, but all others of some column are."""
    are_numbers = [[is_number(cell) for cell in row] for row in table]
    if len(table) < 2 or any(are_numbers[0]):
        return False
    return any(all(column) for column in zip(*are_numbers[1:], strict=False))


def is_number(cell: Any) -> bool:
    """Return whether a cell is a number or spells one.

    Args:
        cell: A number or a text.
    """
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def is_name(cell: str) -> bool:
    """Return whether a cell is the name of a column.

    A name begins with a letter or an underscore and is not a number. The texts nan, inf and
    infinity are numbers.

    Args:
        cell: Text of the cell, which may be quoted.
    """
    name = cell.strip().strip("\"'")
    return (name[:1].isalpha() or name[:1] == "_") and not is_number(name)
