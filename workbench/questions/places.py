"""Places of the plane: read from a CSV file, how far apart, who is near, and which pairs say all of metric privacy.

    norm    distance of (a, b)          exact as
    L1      |a1 - b1| + |a2 - b2|       a rational
    L2      √((a1-b1)² + (a2-b2)²)      its square; as a budget rounded down to 2^-40 of it, as a loss to 2^-60
    Linf    max(|a1-b1|, |a2-b2|)       a rational

Budgets ε d add up along a path. Where a place c lies between a and b, d(a,c) + d(c,b) = d(a,b) exactly, the bound of
(a, b) follows from those of (a, c) and (c, b), whose distances are less: pairs with nobody between them imply all.
Everything here is decided in integers, coordinates being taken over their common denominator.
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

MAX_COORDINATE = 10**150  # The size of a coordinate.
_BUDGET, _LOSS = 40, 60  # bits of a distance that is no rational


def are_planar(values: Sequence[Any]) -> bool:
    """Whether values are points of the plane: pairs of numbers."""
    return all(
        isinstance(v, tuple) and len(v) == 2 and all(isinstance(c, Fraction) for c in v)
        for v in values
    )


class Plane:
    """Distances of places to others, in integers over a common denominator. size: of `table` in units of it."""

    def __init__(self, first: Sequence[Any], second: Sequence[Any], norm: str) -> None:
        """first (k,), second (m,): points."""
        numbers, self.unit = to_common_denominator(
            [c for point in (*first, *second) for c in point]
        )
        coordinates = np.array(numbers, dtype=object).reshape(-1, 2)
        largest = max(map(abs, numbers), default=0)
        if (
            largest > MAX_COORDINATE * self.unit
        ):  # Distances and their squares are then beyond doubles.
            must(
                "places",
                f"of coordinates of size at most {MAX_COORDINATE:.0e}",
                nearest_float(Fraction(largest, self.unit)),
            )
        if largest < 1 << 29:  # squares of differences fit into 64 bits
            coordinates = coordinates.astype(np.int64)
        self.norm = norm
        self.first, self.second = coordinates[: len(first)], coordinates[len(first) :]
        gaps = np.abs(self.first[:, None, :] - self.second[None, :, :])
        a, b = gaps[:, :, 0], gaps[:, :, 1]
        self.table = {"L1": a + b, "Linf": np.maximum(a, b), "L2": a * a + b * b}[
            norm
        ]  # of L2 the squares

    def find_within(self, radius: Fraction) -> Flags:
        """Whether distances are at most a radius, exactly. (k, m)"""
        reach = radius * self.unit
        limit = math.floor(reach if self.norm != "L2" else reach * reach)
        if self.table.dtype != object:
            limit = min(limit, np.iinfo(np.int64).max)
        return np.asarray(self.table <= limit, dtype=bool)

    @property
    def smallest_distance(self) -> Fraction:
        """The least distance of two different places of `first`, which are `second`, rounded down."""
        apart = self.table + 0
        np.fill_diagonal(apart, apart.max() + 1)
        i, j = np.unravel_index(int(apart.argmin()), apart.shape)
        return self.distance(int(i), int(j))

    def distance(self, i: int, j: int) -> Fraction:
        """Of one pair; L2 rounded down by less than 2^-40 of it."""
        value = int(self.table[i, j])
        if self.norm != "L2":
            return Fraction(value, self.unit)
        return Fraction(math.isqrt(value << (2 * _BUDGET)), self.unit << _BUDGET)

    def losses(self) -> tuple[Table, int]:
        """(values, unit) of the distances as losses; L2 to the nearest 2^-60 below."""
        if self.norm != "L2":
            return self.table.astype(object), self.unit
        root = np.frompyfunc(lambda value: math.isqrt(int(value) << (2 * _LOSS)), 1, 1)
        kinds, which = np.unique(self.table, return_inverse=True)
        return np.asarray(
            root(kinds.astype(object))[which.reshape(self.table.shape)]
        ), self.unit << _LOSS

    def direct(self, near: Flags) -> Flags:
        """Of the pairs that are near, those with no place exactly between them: the others follow. (k, k)"""
        kept = near.copy()
        np.fill_diagonal(kept, False)
        for c in range(len(self.first)):  # from a over c to b
            through = self._between(c)
            through[c, :] = through[:, c] = False
            kept &= ~(through & near[:, c, None] & near[None, c, :])
        return kept

    def _between(self, c: int) -> Flags:
        """Whether c lies between a and b, exactly. (k, k)"""
        if self.norm != "L2":
            return np.asarray(
                self.table[:, c, None] + self.table[None, c, :] == self.table, dtype=bool
            )
        gap = self.first - self.first[c]
        x, y = gap[:, 0], gap[:, 1]
        cross = x[:, None] * y[None, :] - y[:, None] * x[None, :]
        dot = x[:, None] * x[None, :] + y[:, None] * y[None, :]
        return np.asarray((cross == 0) & (dot < 0), dtype=bool)


def pairs_within_radius(
    places: Sequence[Any], radius: Fraction, norm: str, entries: Sequence[Any] = ()
) -> Pairs:
    """List the pairs of positions at most a radius apart, up to the rounding of floats.

    entries: what the places were read from. Raises InvalidRequest where there is no pair.
    """
    plane = Plane(places, places, norm)
    coordinates = collect_numbers(places)
    tolerance = compute_threshold_tolerance(
        radius, coordinates, entries, "places", plane.smallest_distance
    )
    near = plane.find_within(radius + tolerance)
    pairs = np.argwhere(np.triu(near, 1))
    if not len(pairs):
        must(
            "neighbours",
            "within the least distance of two places at least",
            f"within {format_fraction(radius)}",
        )
    return tuple((i, j) for i, j in pairs.tolist())


def reduce_metric_pairs(
    places: Sequence[Any], pairs: Sequence[Pair] | None, norm: str
) -> tuple[Pairs, Rationals]:
    """Pairs from which the budgets of all given ones (None: of every two) follow, and their distances, rounded down."""
    plane = Plane(places, places, norm)
    near = np.full(plane.table.shape, pairs is None)
    if pairs is not None:
        i, j = np.array(pairs).T
        near[i, j] = near[j, i] = True
    kept = tuple((i, j) for i, j in np.argwhere(np.triu(plane.direct(near), 1)).tolist())
    return kept, tuple(plane.distance(i, j) for i, j in kept)
