"""Compute distances of places in the plane, and the pairs that are neighbours or imply all others.

A place a has the coordinates (a1, a2), and d(a, b) is the distance of two places:

    norm    d(a, b)                     stored as
    L1      |a1 - b1| + |a2 - b2|       a rational number
    L2      √((a1-b1)² + (a2-b2)²)      its square, which is rational. The distance itself is
                                        rounded down, as a budget and as a loss
    Linf    max(|a1-b1|, |a2-b2|)       a rational number

In metric privacy the budget of a and b is ε d(a, b), and budgets add up along a path. If a place c
lies between a and b, that is d(a,c) + d(c,b) = d(a,b) exactly, the budget of (a, b) follows from
the budgets of (a, c) and (c, b), whose distances are smaller. The budgets of the pairs without a
place between them therefore imply the budgets of all pairs. For example, of the places (0, 0),
(1, 0) and (2, 0) only two pairs need a budget. Everything is decided in integers, with coordinates
over their common denominator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.data.tolerance import collect_numbers, compute_threshold_tolerance
from workbench.errors import must
from workbench.exact.arrays import Flags
from workbench.exact.distribution import to_common_denominator
from workbench.exact.numbers import Rationals, nearest_float
from workbench.exact.objects import Pair, Pairs
from workbench.io.files import format_fraction

Table: TypeAlias = NDArray[np.object_]

MAX_COORDINATE = 10**150  # Larger coordinates are refused: squares of distances must be doubles.
_BUDGET_BITS = 40  # An irrational distance that is a budget is rounded down to 2^-40 of it.
_LOSS_BITS = 60  # An irrational distance that is a loss is rounded down to a multiple of 2^-60.
# Smaller coordinates are computed in 64-bit integers, into which squares of their differences fit.
_MAX_SHORT_COORDINATE = 1 << 29


def are_planar(values: Sequence[Any]) -> bool:
    """Return whether all values are points of the plane, pairs of rationals.

    Args:
        values: The values to test.
    """
    return all(_is_planar(value) for value in values)


def _is_planar(value: Any) -> bool:
    """Return whether a value is a pair of rationals."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return all(isinstance(coordinate, Fraction) for coordinate in value)


class Plane:
    """Distances between two lists of places, in integers over a common denominator.

    Args:
        first: k places (a1, a2) of rationals, the rows of the table.
        second: m places, the columns of the table.
        norm: The norm of the distances, "L1", "L2" or "Linf".

    Attributes:
        unit: The common denominator of the coordinates.
        table: The distances in units of 1/unit, for L2 their squares. Shape (k, m).

    Raises:
        InvalidRequest: If a coordinate is too large.
    """

    def __init__(self, first: Sequence[Any], second: Sequence[Any], norm: str) -> None:
        flat: list[Fraction] = []
        for point in (*first, *second):
            flat.extend(point)
        numbers, self.unit = to_common_denominator(flat)
        coordinates = np.array(numbers, dtype=object).reshape(-1, 2)
        max_size = max(map(abs, numbers), default=0)
        if max_size > MAX_COORDINATE * self.unit:
            constraint = f"of coordinates of size at most {MAX_COORDINATE:.0e}"
            must("places", constraint, nearest_float(Fraction(max_size, self.unit)))
        if max_size < _MAX_SHORT_COORDINATE:
            coordinates = coordinates.astype(np.int64)
        self.norm = norm
        self.first = coordinates[: len(first)]
        self.second = coordinates[len(first) :]
        differences = np.abs(self.first[:, None, :] - self.second[None, :, :])
        x = differences[:, :, 0]
        y = differences[:, :, 1]
        if norm == "L1":
            self.table = x + y
        elif norm == "Linf":
            self.table = np.maximum(x, y)
        else:
            self.table = x * x + y * y

    def find_within(self, radius: Fraction) -> Flags:
        """Decide exactly which distances are at most a radius. Shape (k, m).

        Args:
            radius: The largest distance, >= 0.
        """
        scaled_radius = radius * self.unit
        if self.norm == "L2":
            scaled_radius *= scaled_radius  # The table has squares.
        limit = math.floor(scaled_radius)
        if self.table.dtype != object:
            # A larger limit would not fit the 64-bit integers of the table.
            limit = min(limit, np.iinfo(np.int64).max)
        return np.asarray(self.table <= limit, dtype=bool)

    @property
    def smallest_distance(self) -> Fraction:
        """Return the smallest distance of two different places, rounded down.

        The two lists of places must be the same.
        """
        distances = self.table.copy()
        np.fill_diagonal(distances, distances.max() + 1)
        i, j = np.unravel_index(int(distances.argmin()), distances.shape)
        return self.distance(int(i), int(j))

    def distance(self, i: int, j: int) -> Fraction:
        """Return the distance of one pair; L2 is rounded down by less than 2^-40 of it.

        Args:
            i: A position in the first list.
            j: A position in the second.
        """
        value = int(self.table[i, j])
        if self.norm != "L2":
            return Fraction(value, self.unit)
        return Fraction(math.isqrt(value << (2 * _BUDGET_BITS)), self.unit << _BUDGET_BITS)

    def losses(self) -> tuple[Table, int]:
        """Return the distances as losses. An L2 distance is rounded down to a multiple of 2^-60.

        Returns:
            (integers, unit). A loss is its integer divided by the unit. The integers have the shape
            (k, m).
        """
        if self.norm != "L2":
            return self.table.astype(object), self.unit
        root = np.frompyfunc(lambda value: math.isqrt(int(value) << (2 * _LOSS_BITS)), 1, 1)
        squares, index = np.unique(self.table, return_inverse=True)
        roots = root(squares.astype(object))
        return np.asarray(roots[index.reshape(self.table.shape)]), self.unit << _LOSS_BITS

    def find_direct_neighbours(self, is_near: Flags) -> Flags:
        """Find the neighbours that have no place exactly between them.

        The budgets of these pairs imply the budgets of all other neighbours.

        Args:
            is_near: Whether two places are neighbours. Shape (k, k).

        Returns:
            Whether two places are such a pair. Shape (k, k).
        """
        is_direct = is_near.copy()
        np.fill_diagonal(is_direct, False)
        for c in range(len(self.first)):
            is_between = self._find_between(c)
            is_between[c, :] = False
            is_between[:, c] = False
            is_direct &= ~(is_between & is_near[:, c, None] & is_near[None, c, :])
        return is_direct

    def _find_between(self, c: int) -> Flags:
        """Decide exactly for every pair (a, b) whether c lies between them. Shape (k, k)."""
        if self.norm != "L2":
            detour = self.table[:, c, None] + self.table[None, c, :]
            return np.asarray(detour == self.table, dtype=bool)
        # c lies on the segment from a to b if a - c and b - c have opposite directions.
        offsets = self.first - self.first[c]
        x = offsets[:, 0]
        y = offsets[:, 1]
        cross_product = x[:, None] * y[None, :] - y[:, None] * x[None, :]
        dot_product = x[:, None] * x[None, :] + y[:, None] * y[None, :]
        return np.asarray((cross_product == 0) & (dot_product < 0), dtype=bool)


def pairs_within_radius(
    places: Sequence[Any], radius: Fraction, norm: str, entries: Sequence[Any] = ()
) -> Pairs:
    """List the pairs of positions at most a radius apart, up to the rounding of floats.

    Args:
        places: The k points of the plane, exact.
        radius: The largest distance of neighbours, > 0.
        norm: The norm of the distances, "L1", "L2" or "Linf".
        entries: Objects that the places were read from. Their types decide the tolerance for
            rounded floats.

    Returns:
        Pairs of positions i < j.

    Raises:
        InvalidRequest: If there is no pair.
    """
    plane = Plane(places, places, norm)
    coordinates = collect_numbers(places)
    tolerance = compute_threshold_tolerance(
        radius, coordinates, entries, name="places", spacing=plane.smallest_distance
    )
    is_near = plane.find_within(radius + tolerance)
    pairs = np.argwhere(np.triu(is_near, 1))
    if not len(pairs):
        must(
            "neighbours",
            "within the smallest distance of two places, or more",
            f"within {format_fraction(radius)}",
        )
    return tuple((i, j) for i, j in pairs.tolist())


def reduce_metric_pairs(
    places: Sequence[Any], pairs: Sequence[Pair] | None, norm: str
) -> tuple[Pairs, Rationals]:
    """Find pairs of places whose budgets imply the budgets of all given pairs.

    Args:
        places: The k points of the plane, exact.
        pairs: Pairs of positions of neighbours. None for every two places.
        norm: The norm of the distances, "L1", "L2" or "Linf".

    Returns:
        (pairs of positions i < j, distance of each pair, rounded down if it is irrational).
    """
    plane = Plane(places, places, norm)
    is_near = np.full(plane.table.shape, pairs is None)
    if pairs is not None:
        i, j = np.array(pairs).T
        is_near[i, j] = True
        is_near[j, i] = True
    is_direct = plane.find_direct_neighbours(is_near)
    direct_pairs = np.argwhere(np.triu(is_direct, 1)).tolist()
    distances = tuple(plane.distance(i, j) for i, j in direct_pairs)
    return tuple((i, j) for i, j in direct_pairs), distances
