"""Compute how far two rounded floats may differ and still mean the same number.

`numpy.linspace(0, 1, 11)` contains 0.30000000000000004, which is more than 0.1 above 0.2. By an
exact comparison with a threshold ("at most 0.1 apart") these two would not be neighbours, and would
not be protected. Distances are therefore compared with a tolerance, which can only add neighbours:

    tolerance = max(1e-9 threshold, 4 units in the last place of the largest |value|)

The unit in the last place depends on the type of the values (float16, float32, float64). Integers,
fractions and decimals that are no floats are exact: for them, only the first term is used. A column
of float32 that was converted by Python or read from a file is recognised by its digits. The values
themselves are never changed.

The "bits" of a type are the bits of the fraction of its floats: 52 for float64, 23 for float32. An
"entry" is the object from which a number was read. Its type tells the bits.
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

_RELATIVE_TOLERANCE = Fraction(1, 10**9)  # A distance may exceed a threshold by this part of it.
_LAST_PLACES = 4  # Computed values may differ by this many units in the last place.
_SINGLE_DIGITS = 7  # A decimal with more digits may have been computed in float32.
_DOUBLE_BITS = 52  # Bits of the fraction of a float64.
_SINGLE_BITS = 23  # Bits of the fraction of a float32.


def collect_numbers(values: Iterable[Any]) -> list[Fraction]:
    """Collect the numbers of points, including the parts of tuples. Texts are left out.

    Args:
        values: Fractions, texts and tuples of these.
    """
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
    """Bound the rounding of computed numbers by four units in the last place of the largest one.

    Args:
        numbers: Exact values of the numbers.
        entries: Objects that the numbers were read from. A type such as float32 has fewer digits
            than float64.
        spacing: Smallest distance of two of the numbers. If it is None, float32 is not recognised
            by its digits.
        threshold: Threshold for distances. It may be a float64 even if the numbers are float32.

    Returns:
        The bound. It is 0 if neither the numbers nor the threshold are floats.
    """
    typed_entries = [entry for entry in entries if not isinstance(entry, (int, Fraction, str))]
    bits = set()
    for entry in typed_entries:
        type_bits = _count_fraction_bits(entry)
        if type_bits is not None:
            bits.add(type_bits)
    computed = [number for number in numbers if number.denominator != 1 and _is_float(number)]
    if computed or (threshold.denominator != 1 and _is_float(threshold)):
        bits.add(_DOUBLE_BITS)
    if not bits:
        return ZERO
    largest_size = max(map(abs, [*numbers, threshold]))
    tolerance = _measure_last_places(largest_size, min(bits))
    has_doubles = bool(computed) and min(bits) == _DOUBLE_BITS
    if spacing is not None and has_doubles and _are_single(numbers, computed):
        single_tolerance = _measure_last_places(largest_size, _SINGLE_BITS)
        if 2 * single_tolerance <= spacing:
            return single_tolerance
    return tolerance


def compute_threshold_tolerance(
    threshold: Fraction,
    numbers: Sequence[Fraction],
    entries: Sequence[Any],
    name: str,
    spacing: Fraction | None = None,
) -> Fraction:
    """Compute by how much the distance of two neighbours may exceed the threshold.

    Args:
        threshold: Largest distance of neighbours.
        numbers: The values, or the coordinates of all places.
        entries: Objects that the values were read from.
        name: Name of the values in errors.
        spacing: Smallest distance of two different values. None: it is computed from the numbers.

    Raises:
        InvalidRequest: The tolerance exceeds half the smallest distance, so that it could join
            different values.
    """
    ordered = sorted({*numbers})
    if spacing is None:
        spacing = find_least_spacing(ordered)
    tolerance = _RELATIVE_TOLERANCE * min(threshold, ordered[-1] - ordered[0])
    # Integers of NumPy and whole Fractions have the denominator 1.
    are_integers = all(
        isinstance(entry, int) or getattr(entry, "denominator", 0) == 1 for entry in entries
    )
    if not are_integers:
        tolerance = max(tolerance, bound_rounding(numbers, entries, spacing, threshold))
    if 2 * tolerance > spacing:
        min_spacing = 2 * nearest_float(tolerance)
        must(
            name,
            f"at least {min_spacing:.3g} apart for this distance of neighbours, which is compared "
            "with a tolerance for rounded floats (a list of pairs of neighbours needs none)",
            f"two that are {nearest_float(spacing):.3g} apart",
        )
    return tolerance


def find_least_spacing(numbers: Iterable[Fraction]) -> Fraction:
    """Return the smallest distance between different numbers, or 0 if there is only one.

    Args:
        numbers: Numbers in any order.
    """
    ordered = sorted(set(numbers))
    return min((high - low for low, high in pairwise(ordered)), default=ZERO)


class PointIndex:
    """Positions of points by value. Numbers match within the rounding of floats, texts exactly.

    Args:
        points: Fractions, texts and tuples of these.
    """

    def __init__(self, points: Sequence[Any]) -> None:
        self._positions = {value: position for position, value in enumerate(points)}
        numbers = [(value, k) for k, value in enumerate(points) if isinstance(value, Fraction)]
        self._numbers = sorted(numbers)
        self._tuples = [(value, k) for k, value in enumerate(points) if isinstance(value, tuple)]
        self._tolerances: dict[int | None, Fraction] = {}

    def find(self, value: Any, entry: Any = None) -> int | None:
        """Find the position of a point.

        Args:
            value: The point, as `workbench.data.points.read_point` reads it.
            entry: Object that it was read from, whose type (float32) may have fewer digits.

        Returns:
            The position of the equal point, otherwise of the nearest one within the tolerance, or
            None if there is none.
        """
        position = self._positions.get(value)
        if position is not None:
            return position
        if isinstance(value, Fraction):
            bits = _count_fraction_bits(entry)
            if bits is None and _is_float(value) and _are_single(numbers=[value], computed=[value]):
                bits = _SINGLE_BITS
            return self._find_nearest(value, self._get_tolerance(bits))
        if isinstance(value, tuple) and self._tuples:
            return self._find_tuple(value, entry)
        return None

    def _find_tuple(self, value: tuple[Any, ...], entry: Any) -> int | None:
        """Return the position of the only tuple within the tolerance of a tuple, otherwise None."""
        numbers = collect_numbers(point for point, _ in self._tuples)
        largest_size = max(map(abs, numbers), default=ZERO)
        bits = _count_fraction_bits(entry) or _DOUBLE_BITS
        tolerance = _measure_last_places(largest_size, bits)
        matches = [k for point, k in self._tuples if _are_close(point, value, tolerance)]
        if len(matches) == 1:
            return matches[0]
        return None

    def _find_nearest(self, value: Fraction, tolerance: Fraction) -> int | None:
        """Return the position of the nearest number within the tolerance, or None without one."""
        # Positions are at least 0, so (value, -1) sorts before every number that equals the value.
        upper = bisect_left(self._numbers, (value, -1))
        candidates = self._numbers[max(0, upper - 1) : upper + 1]
        distances = [(abs(number - value), position) for number, position in candidates]
        # Without numbers, the default is too far away.
        distance, position = min(distances, default=(tolerance + 1, 0))
        if distance <= tolerance:
            return position
        return None

    def _get_tolerance(self, bits: int | None) -> Fraction:
        """Return the tolerance for entries of a type with these bits. None for exact entries.

        It is 0 if it would not be less than half the smallest distance of two numbers.
        """
        if bits not in self._tolerances:
            numbers = [value for value, _ in self._numbers]
            spacing = find_least_spacing(numbers)
            largest_size = max(map(abs, numbers), default=ZERO)
            tolerance = max(
                _RELATIVE_TOLERANCE * spacing,
                bound_rounding(numbers, entries=(), spacing=spacing),
                _measure_last_places(largest_size, bits or _DOUBLE_BITS),
            )
            is_unique = 2 * tolerance < spacing or len(numbers) < 2
            self._tolerances[bits] = tolerance if is_unique else ZERO
        return self._tolerances[bits]


def find_nearest_positions(known: Vector, values: Vector, dtype: Any = None) -> Positions:
    """Find the positions of values among increasing numbers, within the rounding of floats.

    Args:
        known: Increasing numbers among which the values are searched. Shape (k,).
        values: Numbers to find. Any shape.
        dtype: Type of the values before they were converted to float64. None for float64.

    Returns:
        Position of each value in `known`. -1 if it is not among them. Shape as `values`.
    """
    upper = np.clip(np.searchsorted(known, values), 0, known.size - 1)
    lower = np.maximum(upper - 1, 0)
    is_lower_nearer = np.abs(known[lower] - values) < np.abs(known[upper] - values)
    nearest = np.where(is_lower_nearer, lower, upper)
    bits = _DOUBLE_BITS
    if dtype in (np.float16, np.float32):
        bits = np.finfo(dtype).nmant
    spacing = np.diff(known).min(initial=np.inf)
    largest_size = Fraction(float(np.abs(known).max()))
    tolerance = float(_measure_last_places(largest_size, bits))
    if np.isfinite(spacing):
        tolerance = max(tolerance, float(_RELATIVE_TOLERANCE) * spacing)
    if 2 * tolerance >= spacing:
        tolerance = 0.0
    return np.where(np.abs(known[nearest] - values) <= tolerance, nearest, -1)


def _are_close(first: Any, second: Any, tolerance: Fraction) -> bool:
    """Return whether two points are equal up to a tolerance in every number."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        parts = zip(first, second, strict=False)
        return len(first) == len(second) and all(_are_close(a, b, tolerance) for a, b in parts)
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return abs(first - second) <= tolerance
    return bool(first == second)


def _count_fraction_bits(entry: Any) -> int | None:
    """Return the bits of the fraction of a NumPy float smaller than float64, or None.

    For a tuple or array it is the smallest number of its entries.
    """
    if isinstance(entry, (tuple, list)) or (isinstance(entry, np.ndarray) and entry.ndim):
        part_bits = [_count_fraction_bits(part) for part in entry]
        return min((bits for bits in part_bits if bits is not None), default=None)
    if isinstance(entry, (np.float16, np.float32)):
        return int(np.finfo(type(entry)).nmant)
    return None


def _is_float(number: Fraction) -> bool:
    """Return whether a number is the shortest decimal of a float64."""
    nearest = nearest_float(number)
    return math.isfinite(nearest) and parse_rational(nearest) == number


def _are_single(numbers: Sequence[Fraction], computed: Sequence[Fraction]) -> bool:
    """Return whether numbers look like float32: all are values of float32, and not all are short.

    Args:
        numbers: Exact numbers. Each must be the decimal that is printed for a float32, or for the
            same number as float64.
        computed: The numbers that are floats. If all have few digits, they were probably typed.
    """
    if all(_has_single_digits(number) for number in computed):
        return False
    with np.errstate(over="ignore", under="ignore"):
        singles = [np.float32(nearest_float(number)) for number in numbers]
    for number, single in zip(numbers, singles, strict=True):
        if number not in (parse_rational(single), parse_rational(float(single))):
            return False
    return True


def _has_single_digits(number: Fraction) -> bool:
    """Return whether a number is a decimal of so few digits that it need not have been computed."""
    return parse_rational(f"{nearest_float(number):.{_SINGLE_DIGITS}g}") == number


def _measure_last_places(largest_size: Fraction, bits: int) -> Fraction:
    """Return four units in the last place of a float with the given number of fraction bits."""
    if not largest_size:
        return ZERO
    # `frexp` returns a fraction in [1/2, 1), so the first bit has the value 2^(exponent - 1).
    _, exponent = math.frexp(nearest_float(largest_size))
    return _LAST_PLACES * Fraction(2) ** (exponent - 1 - bits)
