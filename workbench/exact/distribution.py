"""Probability masses held exactly: non-negative integers over their own sum.

    Pr[i] = k_i / Σ k_j,    k_i integers without a common factor

A float is a dyadic rational, so a solver's PMF is held as it is, subnormal masses included, and normalised by its
exact sum. Comparisons start from the logarithms of the integers, which is what makes an exact audit of 10^5 masses
fast; only those that these leave undecided ever touch the integers.
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

LOG2_TOLERANCE = (
    1e-6  # in log2: far beyond the rounding of the logarithm of a number of a million bits
)


class Distribution:
    """A probability distribution on 0..len-1 with exact masses. Immutable and hashable.

    weights: non-negative ints or Fractions, not all zero; the masses are the weights over their sum.
    name: what error messages call the weights. Raises InvalidRequest.
    """

    integers: tuple[int, ...]
    total: int

    def __init__(self, weights: Iterable[Any], name: str = "weights") -> None:
        values = [
            _rational(value, name)
            for value in read_list(weights, name, "a list of exact numbers >= 0")
        ]
        self._set(to_common_denominator(values)[0], name)

    @classmethod
    def from_floats(cls, values: ArrayLike, name: str = "pmf") -> Distribution:
        """The masses proportional to floats, each read as the exact dyadic rational it is.

        values: 1-D array-like of finite floats >= 0; ints and Fractions among them stay exact. Raises InvalidRequest.
        """
        if type(values) is np.ndarray and values.dtype == np.float64:
            array = values
        else:
            given = read_plain_array(values, name, "an array of finite numbers >= 0")
            if given.ndim == 1 and given.dtype.kind in "iuO":  # no float64 holds every one of these
                return cls([_finite(value, name) for value in given.tolist()], name)
            array = read_floats(values, name, "an array of finite numbers >= 0")
        if array.ndim != 1:
            must(name, "a 1-D array", f"shape {array.shape}")
        bad = ~(np.isfinite(array) & (array >= 0))
        if bad.any():
            must(name, "an array of finite numbers >= 0", array[bad][0])
        ratios = [value.as_integer_ratio() for value in array.tolist()]
        scale = max((below for _, below in ratios), default=1)  # powers of two
        return cls.from_integers([top * (scale // below) for top, below in ratios], name)

    @classmethod
    def read(cls, weights: Any, name: str) -> Distribution:
        """The law of weights that may be floats, read as the exact rationals they are; a Distribution is itself.
        Raises InvalidRequest."""
        if isinstance(weights, Distribution):
            return weights
        if isinstance(weights, np.ndarray):
            return cls.from_floats(weights, name)
        listed = read_list(weights, name, "a list of numbers")
        rounded = any(isinstance(value, (float, np.floating)) for value in listed)
        return cls.from_floats(weights, name) if rounded else cls(listed, name)

    @classmethod
    def read_rows(cls, rows: Iterable[Any], name: str) -> tuple[Distribution, ...]:
        """Read the laws of rows, each as `read` does. Raises InvalidRequest."""
        return tuple([cls.read(row, name) for row in rows])

    @classmethod
    def read_rounded(cls, weights: Any, name: str) -> Distribution:
        """As `read`, of a list whose floats may be below 0 by the rounding of a solver, and are 0 there. Raises
        InvalidRequest."""
        listed = [
            max(value, 0.0) if isinstance(value, float) and value > -1e-6 else value
            for value in weights
        ]
        return cls.read(listed, name)

    @classmethod
    def from_integers(cls, weights: list[int], name: str = "weights") -> Distribution:
        """As `Distribution(weights)`, of Python integers that are known to be >= 0. Raises InvalidRequest."""
        self = cls.__new__(cls)
        self._set(weights, name)
        return self

    def _set(self, integers: list[int], name: str) -> None:
        divisor = math.gcd(*integers)
        if divisor == 0:
            must(name, "not all zero", "an empty list" if not integers else "zeros only")
        self.integers = tuple(integers) if divisor == 1 else tuple(k // divisor for k in integers)
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
        """Σ Pr[i] values[i], exact. values: (len,)."""
        return self.mean_of_integers(*to_common_denominator(values))

    def mean_of_integers(self, values: Sequence[int], scale: int) -> Fraction:
        """Σ Pr[i] values[i] / scale, exact. values: (len,) integers."""
        if len(values) != len(self.integers):
            raise InvalidRequest(f"A mean over {len(self.integers)} masses needs as many values.")
        return Fraction(sum(map(mul, self.integers, values)), scale * self.total)

    @cached_property
    def floats(self) -> Vector:
        """The masses as floats, each the nearest to its exact value. Shape (len,), read-only."""
        values = np.array([k / self.total for k in self.integers], dtype=np.float64)
        values.setflags(write=False)
        return values

    @property
    def fractions(self) -> list[Fraction]:
        """The masses, exact."""
        return [Fraction(k, self.total) for k in self.integers]

    @cached_property
    def array(self) -> NDArray[np.object_]:
        """The integers as an object array (exact arithmetic, elementwise). Shape (len,)."""
        return np.array(self.integers, dtype=object)

    @cached_property
    def logs(self) -> Vector:
        """log2 of every integer, -inf for 0; to well within `NEAR`. Shape (len,)."""
        return np.array([math.log2(k) if k else -math.inf for k in self.integers])

    def reorder(self, index: Positions) -> Distribution:
        """The same masses in another order: entry i is this entry index[i]. index: a permutation of 0..len-1."""
        moved = Distribution.__new__(Distribution)
        moved.total = self.total
        moved.__dict__["array"] = self.array[index]
        moved.__dict__["logs"] = self.logs[index]
        moved.integers = tuple(moved.array)
        return moved


def to_common_denominator(values: Sequence[Fraction | int]) -> tuple[list[int], int]:
    """(integers, scale): the values are integers / scale."""
    scale = math.lcm(*{value.denominator for value in values})
    return [value.numerator * (scale // value.denominator) for value in values], scale


def _finite(value: Any, name: str) -> Any:
    """A float as the rational it is; anything else as it is."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        must(name, "an array of finite numbers >= 0", value)
    return Fraction(value)


def _rational(value: Any, name: str) -> Fraction | int:
    if type(value) in (int, Fraction) and value.numerator >= 0:
        exact: Fraction | int = value
        return exact
    number = int(value) if is_integer(value) else value
    if not isinstance(number, (int, Fraction)) or isinstance(number, bool) or number < 0:
        must(name, "exact numbers >= 0 (int or Fraction)", value)
    return number
