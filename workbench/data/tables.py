"""Small CSV tables: rows that hold something, with the place of every cell, and what spells a number or a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.data.csv_rows import CsvRows, split_rows
from workbench.io.files import read_text

CSV_LIMIT = 1 << 28  # some 10^7 numbers, which take ten times that in memory


def read_rows(path: Path | str, name: str = "input", *, multiline: bool = False) -> CsvRows:
    """The rows of a CSV file in UTF-8, with or without a byte order mark, but for empty lines at its end.

    multiline: accept line breaks inside quoted cells. Raises InvalidRequest, CorruptFile.
    """
    text = read_text(path, CSV_LIMIT, name).removeprefix("\ufeff")
    return split_rows(text, Path(path).name, multiline=multiline)


class Cell(str):
    """A cell of a table, without spaces around it; place: what a message calls it."""

    place: str


def read_table(path: Path | str, name: str = "input", *, header: bool = False) -> list[list[Cell]]:
    """The rows of a small CSV file that hold something, as `Cell`s: a message names a bad one by line and column.

    header: keep a first row of names, one that spells no number in a column of numbers. Raises InvalidRequest,
    CorruptFile.
    """
    table = []
    for row, line in zip(*read_rows(path, name, multiline=True), strict=True):
        cells = [Cell(cell.strip()) for cell in row]
        for column, cell in enumerate(cells, 1):
            cell.place = f"line {line}, column {column} of {Path(path).name}"
        table += [cells] if any(cells) else []
    numbers = [[is_number(cell) for cell in row] for row in table]
    named = (
        len(table) > 1
        and not any(numbers[0])
        and any(all(column) for column in zip(*numbers[1:], strict=False))
    )
    return table[1:] if named and not header else table


def is_number(cell: Any) -> bool:
    """Whether a cell is a number or spells one."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def is_name(cell: str) -> bool:
    """Whether a cell is a column's name: it begins with a letter, and is none of nan, inf and infinity."""
    name = cell.strip().strip("\"'")
    return (name[:1].isalpha() or name[:1] == "_") and not is_number(name)
