"""Computed floats: how far two numbers may differ and still mean the same number.

`numpy.linspace(0, 1, 11)` holds 0.30000000000000004, which is more than 0.1 above 0.2. A threshold relation ("at most
0.1 apart") that compares exactly loses such neighbours, and with them their privacy. Thresholds are therefore compared
with a tolerance, which only ever adds neighbours:

    tolerance = max(1e-9 threshold, 4 units in the last place of the largest |value|)

The unit in the last place is that of the type of the values (float16, float32, float64). Integers, fractions and
decimals that no float spells are exact: they have no last place, and only the first term counts. A column of float32
that went through Python or a file is recognised by its digits. The values themselves are never changed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.errors import must
from workbench.exact.arrays import Positions, Vector
from workbench.exact.numbers import ZERO, nearest_float, parse_rational

_RELATIVE = Fraction(1, 10**9)  # A threshold may be exceeded by this part of it.
_LAST_PLACES = 4  # Units in the last place by which two computed values may differ.
_SINGLE_DIGITS = 7  # A decimal with more digits than this may have been computed in float32.
_DOUBLE_BITS, _SINGLE_BITS = 52, 23  # of the fraction of a float64, and of a float32


def collect_numbers(values: Iterable[Any]) -> list[Fraction]:
    """Collect the numbers of points: of a tuple its parts; texts are left out."""
    numbers = []
    for value in values:
        if isinstance(value, Fraction):
            numbers.append(value)
        elif isinstance(value, tuple):
            numbers += collect_numbers(value)
    return numbers


def bound_rounding(
    numbers: Sequence[Fraction],
    entries: Iterable[Any] = (),
    spacing: Fraction | None = None,
    threshold: Fraction = ZERO,
) -> Fraction:
    """Bound the rounding of computed numbers by four units in the last place of the largest of them.

    Args:
        numbers: the numbers, exact.
        entries: what they were read from, whose types (such as float32) have fewer digits than a float64.
        spacing: the least distance of two of the numbers; without one, float32 is not recognised by its digits.
        threshold: what distances are compared with, which may be a float64 beside numbers of float32.

    Returns:
        0 where none of the numbers is one that a float spells.
    """
    others = [entry for entry in entries if not isinstance(entry, (int, Fraction, str))]
    bits = {type_bits for entry in others if (type_bits := _fraction_bits(entry)) is not None}
    computed = [number for number in numbers if number.denominator != 1 and _is_float(number)]
    if computed or (threshold.denominator != 1 and _is_float(threshold)):
        bits.add(_DOUBLE_BITS)
    if not bits:
        return ZERO
    largest = max(map(abs, [*numbers, threshold]))
    tolerance = _last_places(largest, min(bits))
    if (
        spacing is not None
        and computed
        and min(bits) == _DOUBLE_BITS
        and _are_single(numbers, computed)
    ):
        single = _last_places(largest, _SINGLE_BITS)
        if 2 * single <= spacing:
            return single
    return tolerance


def compute_threshold_tolerance(
    threshold: Fraction,
    numbers: Sequence[Fraction],
    entries: Sequence[Any],
    name: str,
    spacing: Fraction | None = None,
) -> Fraction:
    """How far two values may exceed a threshold and still be neighbours.

    Args:
        threshold: the largest distance of neighbours.
        numbers: the values, or the coordinates of all places.
        entries: what they were read from.
        name: what a message calls the values.
        spacing: the least distance of two different values; by default that of the numbers.

    Raises:
        InvalidRequest: the tolerance is more than half the least distance, so that it could join different values.
    """
    ordered = sorted({*numbers})
    if spacing is None:
        spacing = min((after - before for before, after in pairwise(ordered)), default=ZERO)
    tolerance = _RELATIVE * min(threshold, ordered[-1] - ordered[0])
    if not all(
        isinstance(entry, int) or getattr(entry, "denominator", 0) == 1 for entry in entries
    ):
        tolerance = max(tolerance, bound_rounding(numbers, entries, spacing, threshold))
    if 2 * tolerance > spacing:
        must(
            name,
            f"at least {2 * nearest_float(tolerance):.3g} apart for this distance of neighbours, which is compared "
            "with a tolerance for rounded floats (a list of pairs of neighbours needs none)",
            f"two that are {nearest_float(spacing):.3g} apart",
        )
    return tolerance


def find_least_spacing(numbers: Iterable[Fraction]) -> Fraction:
    """The least distance between different numbers; 0 where there is only one."""
    ordered = sorted(set(numbers))
    return min((after - before for before, after in pairwise(ordered)), default=ZERO)


class PointIndex:
    """Positions of points, found by value: numbers match within the rounding of floats, texts exactly."""

    def __init__(self, points: Sequence[Any]) -> None:
        self._places = {value: position for position, value in enumerate(points)}
        numbers = [(value, at) for at, value in enumerate(points) if isinstance(value, Fraction)]
        self._numbers = sorted(numbers)
        self._tuples = [
            (value, position) for position, value in enumerate(points) if isinstance(value, tuple)
        ]
        self._tolerances: dict[int | None, Fraction] = {}

    def find(self, value: Any, entry: Any = None) -> int | None:
        """Find the position of a point.

        Args:
            value: a point, as `workbench.data.points.point` reads it.
            entry: what it was read from, whose type (float32) may have fewer digits.

        Returns:
            The position of the equal point, or else of the nearest within the tolerance; None where there is none.
        """
        position = self._places.get(value)
        if position is not None:
            return position
        if isinstance(value, Fraction):
            bits = _fraction_bits(entry)
            if bits is None and _is_float(value) and _are_single([value], [value]):
                bits = _SINGLE_BITS
            return self._nearest(value, self._tolerance(bits))
        if isinstance(value, tuple) and self._tuples:
            known = collect_numbers(value for value, _ in self._tuples)
            largest = max(map(abs, known), default=ZERO)
            tolerance = _last_places(largest, _fraction_bits(entry) or _DOUBLE_BITS)
            near = [place for known, place in self._tuples if _is_near(known, value, tolerance)]
            return near[0] if len(near) == 1 else None
        return None

    def _nearest(self, value: Fraction, tolerance: Fraction) -> int | None:
        at = bisect_left(self._numbers, (value, -1))
        around = self._numbers[max(0, at - 1) : at + 1]
        distance, position = min(
            ((abs(known - value), place) for known, place in around), default=(tolerance + 1, 0)
        )
        return position if distance <= tolerance else None

    def _tolerance(self, bits: int | None) -> Fraction:
        """The tolerance for entries of a type; less than half the least distance, or 0."""
        if bits not in self._tolerances:
            known = [value for value, _ in self._numbers]
            spacing = find_least_spacing(known)
            largest = max(map(abs, known), default=ZERO)
            own = bound_rounding(known, (), spacing)
            tolerance = max(_RELATIVE * spacing, own, _last_places(largest, bits or _DOUBLE_BITS))
            self._tolerances[bits] = (
                tolerance if 2 * tolerance < spacing or len(known) < 2 else ZERO
            )
        return self._tolerances[bits]


def find_nearest_positions(known: Vector, values: Vector, dtype: Any = None) -> Positions:
    """Find every value among increasing numbers, within the rounding of floats.

    Args:
        known: increasing numbers, shape (k,).
        values: the numbers to find, any shape.
        dtype: the type that the values had before they were float64.

    Returns:
        Positions, -1 where a value is none of the numbers. Shape as `values`.
    """
    above = np.clip(np.searchsorted(known, values), 0, known.size - 1)
    below = np.maximum(above - 1, 0)
    at = np.where(np.abs(known[below] - values) < np.abs(known[above] - values), below, above)
    bits = np.finfo(dtype).nmant if dtype in (np.float16, np.float32) else _DOUBLE_BITS
    spacing = np.diff(known).min(initial=np.inf)
    tolerance = float(_last_places(Fraction(float(np.abs(known).max())), bits))
    tolerance = max(tolerance, float(_RELATIVE) * spacing if np.isfinite(spacing) else 0.0)
    if 2 * tolerance >= spacing:
        tolerance = 0.0
    return np.where(np.abs(known[at] - values) <= tolerance, at, -1)


def _is_near(known: Any, value: Any, tolerance: Fraction) -> bool:
    """Whether two points are equal up to a tolerance in every number."""
    if isinstance(known, tuple) and isinstance(value, tuple):
        parts = zip(known, value, strict=False)
        return len(known) == len(value) and all(_is_near(a, b, tolerance) for a, b in parts)
    if isinstance(known, Fraction) and isinstance(value, Fraction):
        return abs(known - value) <= tolerance
    return bool(known == value)


def _fraction_bits(entry: Any) -> int | None:
    """Bits after the point of the significand of a NumPy float with fewer of them than a float64; else None."""
    if isinstance(entry, (tuple, list)) or (isinstance(entry, np.ndarray) and entry.ndim):
        return min(
            (bits for part in entry if (bits := _fraction_bits(part)) is not None), default=None
        )
    if isinstance(entry, (np.float16, np.float32)):
        return int(np.finfo(type(entry)).nmant)
    return None


def _is_float(number: Fraction) -> bool:
    """Whether a number is the shortest decimal of a float64."""
    near = nearest_float(number)
    return math.isfinite(near) and parse_rational(near) == number


def _are_single(numbers: Sequence[Fraction], computed: Sequence[Fraction]) -> bool:
    """Whether all numbers are of float32: its shortest decimals, or these as float64 shows them."""
    if not any(
        parse_rational(f"{nearest_float(number):.{_SINGLE_DIGITS}g}") != number
        for number in computed
    ):
        return False
    with np.errstate(over="ignore", under="ignore"):
        singles = [np.float32(nearest_float(number)) for number in numbers]
    pairs = zip(numbers, singles, strict=True)
    return all(
        number in (parse_rational(single), parse_rational(float(single)))
        for number, single in pairs
    )


def _last_places(largest: Fraction, bits: int) -> Fraction:
    """Four units in the last place of a float with so many bits after its point."""
    if not largest:
        return ZERO
    _, exponent = math.frexp(nearest_float(largest))
    return _LAST_PLACES * Fraction(2) ** (exponent - 1 - bits)
