"""Store probability masses exactly, as non-negative integers over their sum.

    Pr[i] = k_i / Σ k_j,    k_i >= 0 integers without a common factor

A float is a binary fraction k / 2^m. The PMF of a solver is therefore stored without rounding, even
if its masses are subnormal floats, and is normalised by its exact sum. Comparisons use the
logarithms of the integers first, which makes an exact audit of 10^5 masses fast. The integers
themselves are only compared if the logarithms do not decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.data.plain import is_integer, read_floats, read_list, read_plain_array
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Positions, Vector

# Logarithms (base 2) of masses that differ by more than this are in the right order. The rounding
# error of the logarithm of a number of a million bits is far smaller.
LOG2_TOLERANCE = 1e-6

_MAX_NEGATIVE_ROUNDING = 1e-6  # Masses of a solver that are below 0 by less than this count as 0.


class Distribution:
    """A probability distribution on 0..len-1 with exact masses. Immutable and hashable.

    Args:
        weights: Non-negative ints or Fractions, not all zero. The masses are the weights divided by
            their sum.
        name: Name of the weights in errors.

    Attributes:
        integers: The masses as integers without a common factor, shape (len,).
        total: The sum of these integers.

    Raises:
        InvalidRequest: If a weight is negative or no int or Fraction, or if all are 0.
    """

    integers: tuple[int, ...]
    total: int

    def __init__(self, weights: Iterable[Any], name: str = "weights") -> None:
        entries = read_list(weights, name, "a list of exact numbers >= 0")
        values = [_read_weight(value, name) for value in entries]
        integers, _ = to_common_denominator(values)
        self._set_integers(integers, name)

    @classmethod
    def from_floats(cls, values: ArrayLike, name: str = "pmf") -> Distribution:
        """Build the distribution whose masses are proportional to floats.

        A float means the binary fraction that it stores, without rounding.

        Args:
            values: 1-D array-like of finite floats >= 0; ints and Fractions among them stay exact.
            name: Name of the values in errors.

        Raises:
            InvalidRequest: If the array is not 1-D, if a value is negative, infinite or NaN, or if
                all are 0.
        """
        constraint = "an array of finite numbers >= 0"
        if type(values) is np.ndarray and values.dtype == np.float64:
            array = values
        else:
            entries = read_plain_array(values, name, constraint)
            # A float64 array could not hold all of these entries exactly.
            if entries.ndim == 1 and entries.dtype.kind in "iuO":
                return cls([_read_finite(value, name) for value in entries.tolist()], name)
            array = read_floats(values, name, constraint)
        if array.ndim != 1:
            must(name, "a 1-D array", f"shape {array.shape}")
        is_valid = np.isfinite(array) & (array >= 0)
        if not is_valid.all():
            must(name, constraint, array[~is_valid][0])
        ratios = [value.as_integer_ratio() for value in array.tolist()]
        # All denominators are powers of two, so the largest is a common one.
        scale = max((denominator for _, denominator in ratios), default=1)
        weights = [numerator * (scale // denominator) for numerator, denominator in ratios]
        return cls.from_integers(weights, name)

    @classmethod
    def read(cls, weights: Any, name: str) -> Distribution:
        """Read weights that may be floats. A float means the binary fraction that it stores.

        Args:
            weights: A list, an array or a Distribution.
            name: Name of the weights in errors.

        Raises:
            InvalidRequest: If a weight is negative or no finite number, or if all are 0.
        """
        if isinstance(weights, Distribution):
            return weights
        if isinstance(weights, np.ndarray):
            return cls.from_floats(weights, name)
        entries = read_list(weights, name, "a list of numbers")
        if any(isinstance(value, (float, np.floating)) for value in entries):
            return cls.from_floats(weights, name)
        return cls(entries, name)

    @classmethod
    def read_rows(cls, rows: Iterable[Any], name: str) -> tuple[Distribution, ...]:
        """Read the laws of several rows, each as `read` does.

        Args:
            rows: Weights of each law, in a form that `read` accepts.
            name: Name of a row in errors.

        Raises:
            InvalidRequest: If a weight is negative or no finite number, or if a row has only zeros.
        """
        return tuple([cls.read(row, name) for row in rows])

    @classmethod
    def read_rounded(cls, weights: Any, name: str) -> Distribution:
        """Read the weights of a solver. Floats that are slightly below 0 count as 0.

        Args:
            weights: Weights of the outcomes. Shape (len,).
            name: Name of the weights in errors.

        Raises:
            InvalidRequest: If a weight is no finite number or is at most -1e-6, if an exact weight
                is negative, or if all are 0.
        """
        entries = []
        for value in weights:
            is_rounded_zero = isinstance(value, float) and -_MAX_NEGATIVE_ROUNDING < value < 0
            entries.append(0.0 if is_rounded_zero else value)
        return cls.read(entries, name)

    @classmethod
    def from_integers(cls, weights: list[int], name: str = "weights") -> Distribution:
        """Build a distribution from Python integers >= 0, without checking them.

        Args:
            weights: Integers >= 0, not all 0.
            name: Name of the weights in errors.

        Raises:
            InvalidRequest: If all weights are 0, or the list is empty.
        """
        self = cls.__new__(cls)
        self._set_integers(weights, name)
        return self

    def _set_integers(self, integers: list[int], name: str) -> None:
        """Store integers >= 0 without their common factor. Raises InvalidRequest if all are 0."""
        divisor = math.gcd(*integers)  # The divisor of zeros, and of no numbers, is 0.
        if divisor == 0:
            must(name, "not all zero", "zeros only" if integers else "an empty list")
        if divisor == 1:
            self.integers = tuple(integers)
        else:
            self.integers = tuple(k // divisor for k in integers)
        self.total = sum(self.integers)

    def __len__(self) -> int:
        return len(self.integers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self.integers == other.integers

    def __hash__(self) -> int:
        return hash(self.integers)

    def __iter__(self) -> Iterator[Fraction]:
        return (Fraction(k, self.total) for k in self.integers)

    def __getitem__(self, i: int) -> Fraction:
        return Fraction(self.integers[i], self.total)

    def mean(self, values: Sequence[Fraction]) -> Fraction:
        """Compute Σ Pr[i] values[i] exactly.

        Args:
            values: The values, shape (len,).
        """
        return self.mean_of_integers(*to_common_denominator(values))

    def mean_of_integers(self, values: Sequence[int], scale: int) -> Fraction:
        """Compute Σ Pr[i] values[i] / scale exactly.

        Args:
            values: The numerators of the values, shape (len,).
            scale: The common denominator of the values, > 0.

        Raises:
            InvalidRequest: If the number of values is not the number of masses.
        """
        if len(values) != len(self.integers):
            raise InvalidRequest(f"A mean over {len(self.integers)} masses needs as many values.")
        return Fraction(sum(map(mul, self.integers, values)), scale * self.total)

    @cached_property
    def floats(self) -> Vector:
        """Return the masses as floats, each the nearest to its exact value.

        Shape (len,), read-only.
        """
        values = np.array([k / self.total for k in self.integers], dtype=np.float64)
        values.setflags(write=False)
        return values

    @property
    def fractions(self) -> list[Fraction]:
        """Return the exact masses."""
        return [Fraction(k, self.total) for k in self.integers]

    @cached_property
    def array(self) -> NDArray[np.object_]:
        """Return the integers as an object array, for exact elementwise arithmetic.

        Shape (len,).
        """
        return np.array(self.integers, dtype=object)

    @cached_property
    def logs(self) -> Vector:
        """Return log2 of every integer, -inf for 0; accurate to well within `LOG2_TOLERANCE`.

        Shape (len,).
        """
        return np.array([math.log2(k) if k else -math.inf for k in self.integers])

    def reorder(self, index: Positions) -> Distribution:
        """Return the same masses in another order: entry i is entry index[i] of this distribution.

        Args:
            index: A permutation of 0..len-1.
        """
        permuted = Distribution.__new__(Distribution)
        permuted.total = self.total
        # The cached properties are reordered too, because computing them again takes longer.
        permuted.__dict__["array"] = self.array[index]
        permuted.__dict__["logs"] = self.logs[index]
        permuted.integers = tuple(permuted.array)
        return permuted


def to_common_denominator(values: Sequence[Fraction | int]) -> tuple[list[int], int]:
    """Convert rationals to integers over a common denominator.

    Args:
        values: Rationals, in any order.

    Returns:
        (integers, scale), with values[i] = integers[i] / scale.
    """
    scale = math.lcm(*{value.denominator for value in values})
    return [value.numerator * (scale // value.denominator) for value in values], scale


def _read_finite(value: Any, name: str) -> Any:
    """Return a float as the rational that it is, and anything else unchanged."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        must(name, "an array of finite numbers >= 0", value)
    return Fraction(value)


def _read_weight(value: Any, name: str) -> Fraction | int:
    """Return an exact weight unchanged. Raises InvalidRequest for anything else."""
    if type(value) in (int, Fraction) and value.numerator >= 0:
        weight: Fraction | int = value
        return weight
    number = int(value) if is_integer(value) else value
    if not isinstance(number, (int, Fraction)) or isinstance(number, bool) or number < 0:
        must(name, "exact numbers >= 0 (int or Fraction)", value)
    return number
