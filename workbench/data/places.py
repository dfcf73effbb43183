"""Read places (points of the plane), and the text that says which places are neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from workbench.data.tables import read_table
from workbench.errors import must
from workbench.exact.numbers import Rationals, read_number, read_number_where

NORMS = ("L1", "L2", "Linf")
# Names of columns that are in degrees, in lower case.
_DEGREE_NAMES = ("lon", "lng", "long", "longitude", "lat", "latitude")
MAX_PLACES = 4_000  # More places are refused.


def read_places(
    path: Any, name: str, *, in_degrees: bool = False
) -> tuple[list[Rationals], list[Fraction] | None] | None:
    """Read a CSV file of rows "x,y" or "x,y,weight", with or without a header.

    Args:
        path: Path of the file.
        name: Name of the option in errors.
        in_degrees: Whether columns may be named as longitudes and latitudes.

    Returns:
        (points, weights). The weights are None for a file of two columns. The result is None if the
        file does not contain places: it is empty, or has one column or more than three.

    Raises:
        InvalidRequest: A cell is no number, rows have different widths, or there are too many
            places.
    """
    rows = read_table(path, name)
    if not rows or len(rows[0]) not in (2, 3):
        return None
    if len(rows) > MAX_PLACES:
        must("places", f"at most {MAX_PLACES}", len(rows))
    first_row = read_table(path, name, keep_header=True)[0]
    if not in_degrees:
        refuse_degrees(first_row, "places")
    elif first_row[0].lower() in _DEGREE_NAMES and first_row[0].lower().startswith("lat"):
        must("places", "a longitude before its latitude", f"the first column {first_row[0]}")
    if len({len(row) for row in rows}) != 1:
        must("places", "a CSV file of rows x, y[, weight]", "rows of several widths")
    numbers = []
    for row_number, row in enumerate(rows, 1):
        numbers.append([read_number(cell, f"row {row_number} of the places") for cell in row])
    points = [tuple(row[:2]) for row in numbers]
    weights = None
    if len(rows[0]) == 3:
        weights = [row[2] for row in numbers]
    return points, weights


def refuse_degrees(names: Iterable[str], option: str) -> None:
    """Raise InvalidRequest if columns are named as longitudes or latitudes, which are in degrees.

    Distances of degrees would have no meaning: a degree to the east is shorter than one to the
    north.

    Args:
        names: Names of columns of coordinates on a plane.
        option: Name of the option in errors.
    """
    degrees = [name for name in names if name.strip().lower() in _DEGREE_NAMES]
    if degrees:
        rule = (
            "coordinates on a plane, or longitudes and latitudes that --x and --y of `design "
            "channel` and `privatise places` name"
        )
        must(option, rule, f"the columns {', '.join(degrees)}")


def read_norm(text: str) -> str:
    """Read the name of a norm. An empty text means L2.

    Args:
        text: "L1", "L2" or "Linf" in upper or lower case, or an empty text.

    Raises:
        InvalidRequest: The text names no norm.
    """
    norms_by_name = {norm.lower(): norm for norm in NORMS}
    norm = norms_by_name.get(text.strip().lower() or "l2")
    return norm or must("the norm of neighbours", "L1, L2 or Linf", repr(text))


def read_plane_relation(text: str) -> tuple[Fraction | None, str] | None:
    """Read the text that says which places are neighbours.

    Args:
        text: Value of the option neighbours, such as "within 2 L1" or "all L2".

    Returns:
        (radius, norm). The radius is None for "all". The result is None for any other text, such as
        the name of a file.

    Raises:
        InvalidRequest: The radius is no number > 0, or the norm is unknown.
    """
    first_word, _, remainder = text.strip().partition(" ")
    if first_word == "all" and remainder:
        return None, read_norm(remainder)
    if first_word != "within":
        return None
    radius, _, norm = remainder.strip().partition(" ")
    constraint = 'such as "within 1 L1", a radius > 0 and L1, L2 or Linf'
    return read_number_where(radius, "neighbours", constraint, lambda r: r > 0), read_norm(norm)
