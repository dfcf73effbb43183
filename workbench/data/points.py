"""Inputs and outputs of finite queries: numbers held exactly, texts, tuples of these; and tables of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from workbench.data.labels import LabelledTuple
from workbench.data.places import read_places
from workbench.data.plain import read_list
from workbench.data.tables import is_number, read_table
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import (
    Rationals,
    nearest_float,
    parse_rational,
    read_number,
    read_positive,
)
from workbench.io.files import names_file

Point: TypeAlias = "Fraction | str | tuple[Any, ...]"

MAX_POINTS = 4_000  # inputs, or outputs


def read_points(given: Any, name: str) -> tuple[Point, ...]:
    """Inputs or outputs: "0..100", "0..5:0.5", "a,b", a CSV file of one column, or a list. Raises InvalidRequest."""
    return read_point_entries(list_entries(given, name), name)


def list_entries(given: Any, name: str) -> list[Any]:
    """List what inputs or outputs are read from, as it was given. Raises InvalidRequest."""
    if isinstance(given, (str, Path)):
        given = _split_point_text(given, name)
    return read_list(given, name, "a list", column=True)


def read_entries(given: Any, name: str) -> tuple[list[Any], list[Fraction] | None]:
    """List what points are read from, and the weights of places; None without weights.

    given: what `entries_of` takes, or a CSV file of x, y or of x, y, weight. Raises InvalidRequest.
    """
    is_file = _read_range(given) is None and names_file(given)
    places = read_places(given, name) if is_file else None
    values, weights = (given, None) if places is None else places
    return list_entries(values, name), weights


def _read_range(given: Any) -> Rationals | None:
    """Read (LOW, HIGH, STEP) of the text of a range, which is never the name of a file; None for anything else."""
    return read_steps(given) if isinstance(given, str) and ".." in given else None


def read_point_entries(entries: Sequence[Any], name: str) -> tuple[Point, ...]:
    """Read the entries of `entries_of`. Raises InvalidRequest."""
    read = [read_point(value, f"every one of the {name}") for value in entries][: MAX_POINTS + 1]
    if not 1 <= len(read) <= MAX_POINTS:
        must(name, f"1 to {MAX_POINTS} of them", "none" if not read else f"more than {MAX_POINTS}")
    if len({*read}) < len(read):
        twice = next(repeated for at, repeated in enumerate(read) if repeated in read[:at])
        must(name, "all different (1, 1.0 and '1' are one number)", f"{format_point(twice)} twice")
    return tuple(read)


def _split_point_text(given: str | Path, name: str) -> Iterable[Any]:
    text = str(given)
    expected = 'LOW..HIGH, LOW..HIGH:STEP, "a,b,c" or a CSV file of one column'
    span = _read_range(given)
    if span is not None:
        first, last, step = span
        return [
            first + step * i for i in range(min(int((last - first) / step) + 1, MAX_POINTS + 1))
        ]
    if names_file(given):
        rows = read_table(given, name)
        if any(len(row) != 1 for row in rows):
            must(name, "a CSV file of one column", Path(given).name)
        return [row[0] for row in rows]
    if ".." in text or "," not in text:
        must(name, expected, repr(text))
    return [part.strip() for part in text.split(",")]


def read_steps(text: str) -> Rationals | None:
    """(LOW, HIGH, STEP) of "LOW..HIGH" or "LOW..HIGH:STEP"; None for a text that spells no numbers LOW <= HIGH and
    STEP > 0, of a size that doubles have."""
    ends, _, by = text.partition(":")
    read = tuple(map(parse_rational, (*ends.partition("..")[::2], by or "1")))
    known = tuple(
        n for n in read if n is not None and (not n or 0 < abs(nearest_float(n)) < math.inf)
    )
    return known if len(known) == 3 and known[0] <= known[1] and known[2] > 0 else None


def list_cells(
    given: Any, name: str, constraint: str = "numbers, as a list or as a CSV file"
) -> list[Any]:
    """The entries of a list or of a data frame of one column, of a text "1,2,1", or the cells of a CSV file of one row
    or column; labels are left to the caller (`workbench.data.labels`). Raises InvalidRequest."""
    if isinstance(given, str) and not names_file(given):
        return given.strip().removesuffix(",").split(",") if given.strip() else []
    if isinstance(given, (str, Path)):
        rows = [[cell for cell in row if cell] for row in read_table(given, name)]
        if (
            len(rows) > 1 and (widest := max(map(len, rows))) > 1
        ):  # read in a row, they would be something else
            must(
                name, "one row or one column of a file", f"{len(rows)} rows of up to {widest} cells"
            )
        return [cell for row in rows for cell in row]
    return read_list(given, name, constraint, column=True)


def list_labelled_cells(given: Any, name: str, constraint: str) -> LabelledTuple:
    """Read the entries of a container as `cells_of` does, with their labels.

    The labels are those of a Series or a table, or the first of two columns of a CSV file. Raises InvalidRequest.
    """
    if isinstance(given, Path) or (isinstance(given, str) and names_file(given)):
        rows = read_table(given, name)
        if len(rows) > 1 and all(len(row) == 2 and all(row) for row in rows):
            labelled = LabelledTuple(row[1] for row in rows)
            labelled.labels = [row[0] for row in rows]
            return labelled
    return LabelledTuple.with_labels_of(given, list_cells(given, name, constraint))


def read_point(value: Any, name: str) -> Point:
    """A number as the decimal it shows, a text that spells none as itself, a tuple part by part."""
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return tuple(read_point(part, name) for part in value)
    if isinstance(value, str):
        try:
            return read_number(value, name)
        except InvalidRequest:
            if (
                not value.strip() or parse_rational(value) is not None or is_number(value)
            ):  # too large, or nan and inf
                raise
            return value.strip()
    return read_number(value, name, "a finite number, a text or a tuple of these")


def format_point(value: Point) -> Any:
    """A point as text or number for reports and JSON."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return [format_point(part) for part in value] if isinstance(value, tuple) else value


def rationals_or_none(values: Sequence[Point]) -> Rationals | None:
    """The values where all are numbers, else None."""
    rationals = tuple(value for value in values if isinstance(value, Fraction))
    return rationals if len(rationals) == len(values) else None


def is_zero_cell(cell: Any) -> bool:
    """Whether a cell is a number, and 0."""
    return is_number(cell) and float(cell) == 0


def read_number_matrix(given: Any, name: str, shape: tuple[int, ...]) -> list[list[Fraction]]:
    """A matrix (rows, columns) of exact numbers >= 0 from a matrix or a CSV file of one. Raises InvalidRequest."""
    if isinstance(given, (str, Path)):
        given = read_table(given, name)
    expected = f"a matrix of {shape[0]} rows and {shape[1]} columns of finite numbers >= 0"
    entries = [read_list(row, name, expected) for row in read_list(given, name, expected)]
    if len(entries) != shape[0] or any(len(row) != shape[1] for row in entries):
        widths = sorted({len(row) for row in entries})
        must(
            name,
            expected,
            f"{len(entries)} rows of {' or '.join(map(str, widths[:3])) or 0} columns",
        )
    return [
        [read_positive(cell, f"every entry of {name}", or_zero=True) for cell in row]
        for row in entries
    ]
