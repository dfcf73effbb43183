"""Read the inputs and outputs of finite queries. Each of them is a point.

A point is an exact number, a text, or a tuple of these:

    "0..2"              the numbers 0, 1, 2
    "0..1:1/2"          the numbers 0, 1/2, 1
    "a,b"               the texts "a", "b"
    [(0, 1), (1, 1)]    two tuples, such as places of the plane

To read points:

    list_point_values               list the values as they were given
    list_point_values_and_weights   the same, and the weights of places in a file
    read_point_values               convert these values to points, all different
    read_points                     list the values and convert them

The module also reads lists of cells and matrices of numbers, such as priors and losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from workbench.data.intervals import split_ends
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
from workbench.io.files import format_fraction, names_file

Point: TypeAlias = "Fraction | str | tuple[Any, ...]"

MAX_POINTS = 4_000  # A question has at most this many inputs, and this many outputs.


def read_points(value: Any, name: str) -> tuple[Point, ...]:
    """Read inputs or outputs.

    Args:
        value: "LOW..HIGH", "LOW..HIGH:STEP", "a,b", the name of a CSV file of one column, a list,
            or an array or data frame of one column.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The value is none of these, steps from LOW do not end at HIGH, or a point
            occurs twice.
    """
    return read_point_values(list_point_values(value, name), name)


def list_point_values(value: Any, name: str) -> list[Any]:
    """List the values of inputs or outputs as they were given, not yet as points.

    Args:
        value: A form that `read_points` accepts.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The value is none of these.
    """
    if isinstance(value, (str, Path)):
        value = _split_point_text(value, name)
    return read_list(value, name, "a list", column=True)


def list_point_values_and_weights(
    value: Any, name: str, *, in_degrees: bool = False
) -> tuple[list[Any], list[Fraction] | None]:
    """List the values of inputs or outputs as they were given, and the weights of places.

    Args:
        value: A form that `read_points` accepts, or a CSV file of rows "x,y" or "x,y,weight".
        name: Name of the option in errors.
        in_degrees: Whether columns of a file may be named as longitudes and latitudes.

    Returns:
        The values, and the weights of places. The weights are None without such a column.

    Raises:
        InvalidRequest: The value is none of these.
    """
    is_file = _read_range(value) is None and names_file(value)
    places = None
    if is_file:
        places = read_places(value, name, in_degrees=in_degrees)
    if places is None:
        return list_point_values(value, name), None
    points, weights = places
    return list_point_values(points, name), weights


def _read_range(value: Any) -> Rationals | None:
    """Read a text such as "0..2" as (LOW, HIGH, STEP). None if the value is no such text."""
    if isinstance(value, str) and ".." in value:
        return read_steps(value)
    return None


def read_point_values(values: Sequence[Any], name: str) -> tuple[Point, ...]:
    """Convert the values of `list_point_values` to points.

    Args:
        values: Values that `list_point_values` returned.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: A value is no point, a point occurs twice, or there are no points or more
            than MAX_POINTS.
    """
    points = [read_point(value, f"every one of the {name}") for value in values]
    if not points:
        must(name, f"1 to {MAX_POINTS} of them", "none")
    if len(points) > MAX_POINTS:
        must(name, f"1 to {MAX_POINTS} of them", f"more than {MAX_POINTS}")
    seen_points: set[Point] = set()
    for point in points:
        if point in seen_points:
            constraint = "all different (1, 1.0 and '1' are one number)"
            must(name, constraint, f"{format_point(point)} twice")
        seen_points.add(point)
    return tuple(points)


def _split_point_text(value: str | Path, name: str) -> Iterable[Any]:
    """List the points of a range, a CSV file, or a text with commas. Raises InvalidRequest."""
    text = str(value)
    span = _read_range(value)
    if span is not None:
        check_last_step(span, name, text)
        first, last, step = span
        # One point more than allowed is enough for the error that refuses them.
        count = min(int((last - first) / step) + 1, MAX_POINTS + 1)
        return [first + step * i for i in range(count)]
    if names_file(value):
        rows = read_table(value, name)
        if any(len(row) != 1 for row in rows):
            must(name, "a CSV file of one column", Path(value).name)
        return [row[0] for row in rows]
    if ".." in text:
        split_ends(text, name)
    if ".." in text or "," not in text:
        forms = 'LOW..HIGH, LOW..HIGH:STEP, "a,b,c" or a CSV file of one column'
        must(name, forms, repr(text))
    return [part.strip() for part in text.split(",")]


def read_steps(text: str) -> Rationals | None:
    """Read "LOW..HIGH" or "LOW..HIGH:STEP" as (LOW, HIGH, STEP). The default step is 1.

    Args:
        text: Text of inputs or outputs.

    Returns:
        Three exact numbers. None if the text has another form, if a number is no double, or unless
        LOW <= HIGH and STEP > 0. Also None for three dots: 0...5 may mean 0 to 5, or 0 to .5.
    """
    if "..." in text:
        return None
    ends_text, _, step_text = text.partition(":")
    low_text, _, high_text = ends_text.partition("..")
    numbers = []
    for number in map(parse_rational, (low_text, high_text, step_text or "1")):
        if number is None or (number and not 0 < abs(nearest_float(number)) < math.inf):
            return None
        numbers.append(number)
    low, high, step = numbers
    if low <= high and step > 0:
        return low, high, step
    return None


def check_last_step(span: Rationals, name: str, text: str) -> None:
    """Check that the steps of a range reach its end.

    The numbers of 0..10:3 end at 9, so the question would be about 0 to 9.

    Args:
        span: LOW, HIGH and STEP, as `read_steps` returns them.
        name: Name of the option in errors.
        text: Text of the range.

    Raises:
        InvalidRequest: HIGH - LOW is no multiple of STEP.
    """
    low, high, step = span
    excess = (high - low) % step
    if not excess:
        return
    suffix = ""
    if ":" in text:
        suffix = f":{format_fraction(step)}"
    ends = [high - excess, high - excess + step]
    if ends[0] == low:
        ends.pop(0)  # A range of one number is hardly meant.
    low_text, high_text, step_text = map(format_fraction, span)
    ranges = [f"{low_text}..{format_fraction(end)}{suffix}" for end in ends]
    reason = f"as steps of {step_text} from {low_text} do not end at {high_text}"
    must(name, f"{' or '.join(ranges)}, {reason}", repr(text))


def list_cells(
    value: Any, name: str, constraint: str = "numbers, as a list or as a CSV file"
) -> list[Any]:
    """List the cells of a container, a text or a file. Labels are ignored.

    Args:
        value: A list, a data frame of one column, a text "1,2,1", or a CSV file of one row or one
            column.
        name: Name of the option in errors.
        constraint: What the value must be, in errors.

    Raises:
        InvalidRequest: The value is none of these.
    """
    if isinstance(value, str) and not names_file(value):
        if value.strip():
            return value.strip().removesuffix(",").split(",")
        return []
    if isinstance(value, (str, Path)):
        rows = [[*filter(None, row)] for row in read_table(value, name)]
        max_width = max(map(len, rows), default=0)
        if len(rows) > 1 and max_width > 1:
            # Cells of several rows and columns would be read in a wrong order.
            got = f"{len(rows)} rows of up to {max_width} cells"
            must(name, "one row or one column of a file", got)
        return [*chain.from_iterable(rows)]
    return read_list(value, name, constraint, column=True)


def list_labelled_cells(value: Any, name: str, constraint: str) -> LabelledTuple:
    """List the cells of a container with its labels.

    The labels are those of a Series or a table, or the first of two columns of a CSV file.

    Args:
        value: A form that `list_cells` accepts, or a CSV file of two columns.
        name: Name of the option in errors.
        constraint: What the value must be, in errors.

    Raises:
        InvalidRequest: The value is none of these.
    """
    if isinstance(value, Path) or (isinstance(value, str) and names_file(value)):
        rows = read_table(value, name)
        if len(rows) > 1 and all(len(row) == 2 and all(row) for row in rows):
            labelled = LabelledTuple(row[1] for row in rows)
            labelled.labels = [row[0] for row in rows]
            return labelled
    return LabelledTuple.with_labels_of(value, list_cells(value, name, constraint))


def read_point(value: Any, name: str) -> Point:
    """Read a point. Numbers are exact, other texts are kept, and tuples are read part by part.

    Args:
        value: A number, a text, or a tuple of these.
        name: Name of the point in errors.

    Raises:
        InvalidRequest: The value is none of these.
    """
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return tuple(read_point(part, name) for part in value)
    if not isinstance(value, str):
        return read_number(value, name, "a finite number, a text or a tuple of these")
    try:
        return read_number(value, name)
    except InvalidRequest:
        # A number that is too large, nan and inf are errors. Any other text is a point.
        if not value.strip() or parse_rational(value) is not None or is_number(value):
            raise
        return value.strip()


def format_point(value: Point) -> Any:
    """Return a point for reports and JSON: an int, float or text, or a list for a tuple.

    Args:
        value: A number, a text or a tuple of these.
    """
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        return float(value)
    if isinstance(value, tuple):
        return [format_point(part) for part in value]
    return value


def rationals_or_none(values: Sequence[Point]) -> Rationals | None:
    """Return points as rationals if all of them are numbers, otherwise None.

    Args:
        values: Points: numbers, texts or tuples of these.
    """
    rationals = tuple(value for value in values if isinstance(value, Fraction))
    if len(rationals) == len(values):
        return rationals
    return None


def is_zero_cell(cell: Any) -> bool:
    """Return whether a cell is the number 0.

    Args:
        cell: A number or a text.
    """
    return is_number(cell) and float(cell) == 0


def read_number_matrix(value: Any, name: str, shape: tuple[int, ...]) -> list[list[Fraction]]:
    """Read a matrix of exact numbers >= 0. Shape (rows, columns).

    Args:
        value: A matrix, or a CSV file of one.
        name: Name of the option in errors.
        shape: Numbers of rows and columns.

    Raises:
        InvalidRequest: The value is no such matrix.
    """
    if isinstance(value, (str, Path)):
        value = read_table(value, name)
    row_count, column_count = shape
    constraint = f"a matrix of {row_count} rows and {column_count} columns of finite numbers >= 0"
    rows = [read_list(row, name, constraint) for row in read_list(value, name, constraint)]
    if len(rows) != row_count or any(len(row) != column_count for row in rows):
        widths = sorted({len(row) for row in rows})
        shown_widths = " or ".join(map(str, widths[:3])) or 0
        must(name, constraint, f"{len(rows)} rows of {shown_widths} columns")
    entry_name = f"every entry of {name}"
    return [[read_positive(cell, entry_name, or_zero=True) for cell in row] for row in rows]
