"""One numeric column of a CSV file, in and out, each bad cell named by its row."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from workbench.errors import InvalidRequest

__all__ = ["column_text", "locate", "read_column"]


def _number(cell: str) -> float:
    """The number a cell spells, NaN if none; Python's own 1_000 is not one."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def read_column(path: Path, column: str | None = None, largest: float = sys.float_info.max) -> npt.NDArray[np.float64]:
    """The finite numbers of one column of a UTF-8 CSV file; shape (rows,).

    column: a name in the header, or the number of the column counted from 1; may be None when there is only one. The
    first row is a header when its cell in the chosen column begins with a letter and spells no number (nan and inf are
    numbers). largest: a public bound on their size.
    Raises InvalidRequest for an unreadable file, an unknown column, a row of another width (an empty line included),
    and a cell that is not a finite number within the bound; rows are counted from 1 below the header.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidRequest(f"input must be a readable CSV file. Got {path.name}: {reason}.") from None
    if not rows:
        InvalidRequest.must("input", "a CSV file with at least one number", f"{path.name}, which is empty")
    at, header = locate(rows[0], column, path.name)
    width = len(rows[0])
    body = rows[1:] if header else rows
    if not body:
        InvalidRequest.must("input", "a CSV file with at least one number", f"{path.name}, which has only a header")
    for number, row in enumerate(body, 1):
        if len(row) != width:
            InvalidRequest.must(f"row {number} of {path.name}", f"{width} cells wide", f"{len(row)} cells")
    values = np.array([_number(row[at]) for row in body])
    bad = np.flatnonzero(~(np.abs(values) <= largest))
    if bad.size:
        first = int(bad[0])
        more = f" ({bad.size} such rows)" if bad.size > 1 else ""
        bound = "" if largest == sys.float_info.max else f", at most {largest:.6g} in size"
        name = f"row {first + 1} of {path.name}"
        raise InvalidRequest(f"{name} must be a finite number{bound}. Got {body[first][at]!r}{more}.")
    return values


def _is_name(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip()[:1].isalpha() or cell.strip()[:1] == "_"
    return False


def locate(first: list[str], column: str | None, name: str) -> tuple[int, bool]:
    """(the index of the chosen column, whether the first row of the file is a header). Raises InvalidRequest."""
    at = _place(first, column, name)
    return at, _is_name(first[at])


def _place(head: list[str], column: str | None, name: str) -> int:
    """The index of the chosen column in the first row."""
    if column is None:
        if len(head) != 1:
            InvalidRequest.must("column", f"given for {name}, which has {len(head)} columns", "none")
        return 0
    names = [cell.strip() for cell in head]
    if names.count(column.strip()) == 1:
        return names.index(column.strip())
    if column.isdecimal() and 1 <= int(column) <= len(head):
        return int(column) - 1
    raise InvalidRequest(
        f"column must be a column of {name}: one of {', '.join(names)}, or 1 to {len(head)}. Got {column!r}."
    )


def column_text(name: str, values: npt.NDArray[np.float64]) -> str:
    """A CSV text of one column with a header; every double is written so that it reads back the same."""
    return "\n".join([name, *map(repr, values.tolist())]) + "\n"
