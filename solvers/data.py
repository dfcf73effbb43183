"""One linear program in numbers.

minimise    c'x + c0
subject to  row_lower <= A x <= row_upper,   lower <= x <= upper,   x_j integer for j in the integrality mask
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from workbench.solvers.arrays import Flags, Pair, Positions, Vector
from workbench.solvers.errors import InvalidProgram

_MAX_NUMBER = 1e15  # solvers treat larger numbers as infinite or refuse them by a status
_MIN_ROW_COEFFICIENT = (
    2.0**-20
)  # Rows whose coefficients are all smaller are multiplied by a power of two.
_MAX_ROW_SIDE = 2.0**44  # So are rows whose sides are larger.
MIN_COEFFICIENT = 1e-9  # HiGHS silently drops smaller matrix coefficients


@dataclass(frozen=True)
class Data:
    """One instance in numbers. A is CSC of shape (rows, columns); every bound may be infinite."""

    c: Vector
    offset: float
    A: scipy.sparse.csc_array
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integrality: Flags

    @property
    def is_mip(self) -> bool:
        """Whether any column must be integer."""
        return bool(self.integrality.any())

    def check(self) -> None:
        """Refuse numbers that solvers misread instead of refusing them.

        HiGHS answers "optimal" to NaN, drops |a| < 1e-9 and reads |a| >= 1e15 as infinite.

        Raises:
            InvalidProgram: for a NaN anywhere, an infinite or huge cost or coefficient, a coefficient too small to
                survive, crossed bounds, or a finite bound of size 1e15 or more.
        """
        _require_usable_numbers("offset", np.array([self.offset]))
        _require_usable_numbers("cost", self.c)
        _require_usable_numbers("coefficient", self.A.data)
        size = np.abs(self.A.data)
        tiny = size[(size > 0) & (size < MIN_COEFFICIENT)]
        if tiny.size:
            raise InvalidProgram(
                f"every non-zero coefficient must be at least 1e-9 in size (solvers drop smaller ones). "
                f"Got {tiny.min():g}."
            )
        _require_ordered_bounds("row", self.row_lower, self.row_upper)
        _require_ordered_bounds("variable", self.lower, self.upper)

    @property
    def without_costs(self) -> Data:
        """The same program where nothing costs anything: what is feasible alone matters."""
        return replace(self, c=np.zeros_like(self.c), offset=0.0)

    def has_same_pattern(self, other: Data) -> bool:
        """Whether the same entries stand in both matrices, and the same columns are integer."""
        return (
            self.A.shape == other.A.shape
            and np.array_equal(self.A.indptr, other.A.indptr)
            and np.array_equal(self.A.indices, other.A.indices)
            and np.array_equal(self.integrality, other.integrality)
        )

    def with_scaled_rows(self, factors: Vector | None) -> Data:
        """The same program with rows multiplied by positive factors (rows,); itself without any."""
        if factors is None:
            return self
        entries = self.A.data * factors[self.A.indices]
        lower, upper = self.row_lower * factors, self.row_upper * factors
        return replace(self, A=replace_entries(self.A, entries), row_lower=lower, row_upper=upper)

    def with_scale(self, scale: float, cost: float = 1.0) -> Data:
        """The same program in q = scale * x for the continuous columns, at larger costs (see
        `workbench.solvers.program`)."""
        if scale == cost == 1.0:
            return self
        column, A = np.where(self.integrality, scale, 1.0), self.A
        bound = np.where(self.integrality, 1.0, scale)
        if self.is_mip:
            A = replace_entries(A, A.data * np.repeat(column, np.diff(A.indptr)))
        return replace(
            self,
            c=self.c * (column * cost),
            offset=self.offset * (scale * cost),
            A=A,
            row_lower=self.row_lower * scale,
            row_upper=self.row_upper * scale,
            lower=self.lower * bound,
            upper=self.upper * bound,
        )


def compute_row_factors(data: Data, scale: float = 1.0) -> Vector | None:
    """Powers of two (rows,) by which rows are multiplied whose numbers are out of a solver's range: limits in very
    small or large units. None where there are none. scale: of the columns (`workbench.solvers.program`)."""
    entries, sides = np.abs(data.A.data), np.abs([data.row_lower, data.row_upper])
    far = (np.where(np.isfinite(sides), sides, 0.0) * scale > _MAX_ROW_SIDE).any(axis=0)
    if not far.any() and entries.min(initial=1.0) >= _MIN_ROW_COEFFICIENT:
        return None
    size = np.zeros(data.row_lower.size)
    np.maximum.at(size, data.A.indices, entries)
    moved = (size > 0) & ((size < _MIN_ROW_COEFFICIENT) | far)
    if not moved.any():
        return None
    return np.where(moved, np.exp2(-np.round(np.log2(np.where(moved, size, 1.0)))), 1.0)


@dataclass(frozen=True)
class Change:
    """The entries of a live object that move, in dispatched (scaled) units; an attribute is None when none does.

    Attributes:
        cost: (columns, values).
        offset: the new constant of the objective.
        coefficients: (rows, columns, values).
        rows, columns: (which, lower bounds, upper bounds).
    """

    cost: tuple[Positions, Vector] | None
    offset: float | None
    coefficients: tuple[Positions, Positions, Vector] | None
    rows: tuple[Positions, Vector, Vector] | None
    columns: tuple[Positions, Vector, Vector] | None

    @classmethod
    def find_changes(cls, old: Data, new: Data) -> Change:
        """What moves from one program to another with the same matrix pattern."""

        def moved(*pairs: Pair) -> Positions:
            different = [before != after for before, after in pairs if before is not after]
            return (
                np.flatnonzero(np.logical_or.reduce(different))
                if different
                else np.zeros(0, dtype=np.intp)
            )

        cost, entries = moved((old.c, new.c)), moved((old.A.data, new.A.data))
        rows = moved((old.row_lower, new.row_lower), (old.row_upper, new.row_upper))
        columns = moved((old.lower, new.lower), (old.upper, new.upper))
        at = np.searchsorted(new.A.indptr, entries, side="right") - 1
        return cls(
            (cost, new.c[cost]) if cost.size else None,
            new.offset if new.offset != old.offset else None,
            (new.A.indices[entries].astype(np.intp), at, new.A.data[entries])
            if entries.size
            else None,
            (rows, new.row_lower[rows], new.row_upper[rows]) if rows.size else None,
            (columns, new.lower[columns], new.upper[columns]) if columns.size else None,
        )


def replace_entries(A: scipy.sparse.csc_array, entries: Vector) -> scipy.sparse.csc_array:
    """The matrix of the same pattern with other entries; building it again would check it again."""
    other = copy(A)
    other.data = entries
    return other


def _require_usable_numbers(name: str, values: Vector) -> None:
    """Refuse NaN and anything of size 1e15 or more."""
    size = np.abs(values)
    if (size < _MAX_NUMBER).all():  # NaN is not
        return
    if not np.isfinite(size).all():
        raise InvalidProgram(f"every {name} must be finite. Got {values[~np.isfinite(size)][0]}.")
    raise InvalidProgram(f"every {name} must be below 1e15 in size. Got {size.max():g}.")


def _require_ordered_bounds(name: str, low: Vector, high: Vector) -> None:
    """Refuse bounds that cross, are NaN, infinite on the wrong side, or finite and of size 1e15 or more."""
    if not (low <= high).all():  # NaN is not
        if np.isnan(low).any() or np.isnan(high).any():
            raise InvalidProgram(f"every {name} bound must be a number. Got nan.")
        j = int(np.argmax(low > high))
        raise InvalidProgram(f"{name} {j} has crossed bounds: {low[j]:g} > {high[j]:g}.")
    if (low == np.inf).any() or (high == -np.inf).any():
        raise InvalidProgram(
            f"every lower {name} bound must be below inf, every upper one above -inf."
        )
    for bound in (low, high):
        size = np.abs(bound)
        if not ((size < _MAX_NUMBER) | (size == np.inf)).all():
            worst = size[np.isfinite(size)].max()
            raise InvalidProgram(
                f"every finite {name} bound must be below 1e15 in size. Got {worst:g}."
            )


def floor_to_bits(values: Vector, bits: int) -> NDArray[np.object_]:
    """Return ⌊values 2^bits⌋, exactly. Shape of values."""
    fraction, exponent = np.frexp(values)
    digits = (
        (fraction * 2.0**53).astype(np.int64).astype(object)
    )  # This is exact: a double has 53 bits.
    shift = exponent.astype(np.int64) - 53 + bits
    left = np.maximum(shift, 0).astype(object)
    right = np.maximum(-shift, 0).astype(object)
    return np.asarray((digits << left) >> right)
