"""Readers of places of the plane and of the relation between them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from workbench.data.tables import read_table
from workbench.errors import must
from workbench.exact.numbers import Rationals, read_number, read_number_where

NORMS = ("L1", "L2", "Linf")
_MAX_PLACES = 4_000  # places


def read_places(path: Any, name: str) -> tuple[list[Rationals], list[Fraction] | None] | None:
    """(points, weights or None) of a CSV file of x, y[, weight], with or without a header; None for another table.

    Raises InvalidRequest for a place twice, NaN, rows of several widths, and more places than can be taken.
    """
    rows = read_table(path, name)
    if not rows or len(rows[0]) not in (2, 3):
        return None
    if len(rows) > _MAX_PLACES:
        must("places", f"at most {_MAX_PLACES}", len(rows))
    if len({len(row) for row in rows}) != 1:
        must("places", "a CSV file of rows x, y[, weight]", "rows of several widths")
    cells = [
        [read_number(cell, f"row {at} of the places") for cell in row]
        for at, row in enumerate(rows, 1)
    ]
    return [tuple(row[:2]) for row in cells], [row[2] for row in cells] if len(
        rows[0]
    ) == 3 else None


def read_norm(words: str) -> str:
    """The norm that a text names, L2 where it names none. Raises InvalidRequest."""
    named = {norm.lower(): norm for norm in NORMS}.get(words.strip().lower() or "l2")
    return named or must("the norm of neighbours", "L1, L2 or Linf", repr(words))


def read_plane_relation(text: str) -> tuple[Fraction | None, str] | None:
    """Read "within R NORM" as (R, norm) and "all NORM" as (None, norm); None for another text.

    Raises InvalidRequest.
    """
    first, _, rest = text.strip().partition(" ")
    if first == "all" and rest:
        return None, read_norm(rest)
    if first != "within":
        return None
    radius, _, norm = rest.strip().partition(" ")
    wanted = 'such as "within 1 L1", a radius > 0 and L1, L2 or Linf'
    return read_number_where(radius, "neighbours", wanted, lambda r: r > 0), read_norm(norm)
