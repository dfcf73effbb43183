"""Numbers of one linear program.

minimise    c'x + c0
subject to  row_lower <= A x <= row_upper,   lower <= x <= upper,
            x_j integer for j in the integrality mask
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from workbench.solvers.arrays import Flags, Pair, Positions, Vector
from workbench.solvers.errors import InvalidProgram

_MAX_NUMBER = 1e15  # Solvers treat larger numbers as infinite, or refuse them by a status.
# A row whose coefficients are all smaller is multiplied by a power of two.
_MIN_ROW_COEFFICIENT = 2.0**-20
_MAX_ROW_SIDE = 2.0**44  # A row with a larger side is multiplied by a power of two as well.
MIN_COEFFICIENT = 1e-9  # HiGHS drops smaller matrix coefficients without a message.
_DOUBLE_BITS = 53  # Binary digits of a double.


@dataclass(frozen=True)
class Data:
    """Numbers of a linear program. Every bound may be infinite.

    Attributes:
        c: (columns,) costs.
        offset: constant c0 of the objective.
        A: (rows, columns) coefficients.
        row_lower, row_upper: (rows,) bounds of rows.
        lower, upper: (columns,) bounds of columns.
        integrality: (columns,) whether a column must be integer.
    """

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
        """Return whether any column must be integer."""
        return bool(self.integrality.any())

    def check(self, checked_data: Data | None = None) -> None:
        """Raise InvalidProgram for numbers that solvers misread instead of refusing them.

        HiGHS answers "optimal" to NaN, drops |a| < 1e-9 and reads |a| >= 1e15 as infinite.

        Args:
            checked_data: data that passed this check. Arrays that both share are not checked again.

        Raises:
            InvalidProgram: a number is NaN, a cost or coefficient is infinite or huge, a
                coefficient is too small, bounds are crossed, or a finite bound is 1e15 or more.
        """

        def is_new(*sections: str) -> bool:
            """Return whether one of these arrays is not shared with the checked data."""
            return checked_data is None or any(
                getattr(self, section) is not getattr(checked_data, section) for section in sections
            )

        _require_usable_numbers("offset", np.array([self.offset]))
        if is_new("c"):
            _require_usable_numbers("cost", self.c)
        if is_new("A"):
            _require_usable_numbers("coefficient", self.A.data)
            size = np.abs(self.A.data)
            dropped = size[(size > 0) & (size < MIN_COEFFICIENT)]
            if dropped.size:
                raise InvalidProgram(
                    f"every non-zero coefficient must be at least 1e-9 in size (solvers drop "
                    f"smaller ones). Got {dropped.min():g}."
                )
        if is_new("row_lower", "row_upper"):
            _require_ordered_bounds("row", self.row_lower, self.row_upper)
        if is_new("lower", "upper"):
            _require_ordered_bounds("variable", self.lower, self.upper)

    def scale_next(self, data: Data, next_data: Data, scale: float, cost: float) -> Data:
        """Return next_data.with_scale(scale, cost), if this object is data.with_scale(scale, cost).

        The result shares the arrays that are the same in both programs with this object. So `check`
        and `Change.find_changes` need not read them again.

        Args:
            data: a program without integer columns.
            next_data: a program of the same pattern.
            scale: factor of the columns, rows and bounds.
            cost: factor of the costs.
        """

        def scale_section(section: str, factor: float) -> Vector:
            numbers: Vector = getattr(next_data, section)
            earlier_numbers: Vector = getattr(data, section)
            if numbers is earlier_numbers or np.array_equal(numbers, earlier_numbers):
                scaled_numbers: Vector = getattr(self, section)
                return scaled_numbers
            return numbers if factor == 1.0 else numbers * factor

        return Data(
            c=scale_section("c", cost),
            offset=next_data.offset * (scale * cost),
            A=next_data.A,
            row_lower=scale_section("row_lower", scale),
            row_upper=scale_section("row_upper", scale),
            lower=scale_section("lower", scale),
            upper=scale_section("upper", scale),
            integrality=next_data.integrality,
        )

    @property
    def without_costs(self) -> Data:
        """Return the same program with a zero objective."""
        return replace(self, c=np.zeros_like(self.c), offset=0.0)

    def has_same_pattern(self, other_data: Data) -> bool:
        """Return whether both programs have the same matrix pattern and integer columns.

        Args:
            other_data: another program.
        """
        return (
            self.A.shape == other_data.A.shape
            and np.array_equal(self.A.indptr, other_data.A.indptr)
            and np.array_equal(self.A.indices, other_data.A.indices)
            and np.array_equal(self.integrality, other_data.integrality)
        )

    def with_scaled_rows(self, factors: Vector | None) -> Data:
        """Return the same program with rows multiplied by factors.

        Args:
            factors: (rows,) positive; None for the program itself.
        """
        if factors is None:
            return self
        return replace(
            self,
            A=replace_entries(self.A, self.A.data * factors[self.A.indices]),
            row_lower=self.row_lower * factors,
            row_upper=self.row_upper * factors,
        )

    def with_scale(self, scale: float, cost: float = 1.0) -> Data:
        """Return the same program in q = scale * x for its continuous columns.

        `workbench.solvers.program` explains both factors.

        Args:
            scale: factor of the continuous columns, rows and bounds.
            cost: factor of the costs.
        """
        if scale == cost == 1.0:
            return self
        column_factor = np.where(self.integrality, scale, 1.0)
        bound_factor = np.where(self.integrality, 1.0, scale)
        A = self.A
        if self.is_mip:
            A = replace_entries(A, A.data * np.repeat(column_factor, np.diff(A.indptr)))
        return replace(
            self,
            c=self.c * (column_factor * cost),
            offset=self.offset * (scale * cost),
            A=A,
            row_lower=self.row_lower * scale,
            row_upper=self.row_upper * scale,
            lower=self.lower * bound_factor,
            upper=self.upper * bound_factor,
        )


def compute_row_factors(data: Data, scale: float = 1.0) -> Vector | None:
    """Return powers of two that bring the numbers of rows into the range of a solver.

    A row is out of range if a user-defined limit has a very small or very large unit.

    Args:
        data: numbers of the program.
        scale: factor of the continuous columns in the solver (`workbench.solvers.program`).

    Returns:
        Factors (rows,), or None if no row is out of range.
    """
    entries = np.abs(data.A.data)
    sides = np.abs([data.row_lower, data.row_upper])
    finite_sides = np.where(np.isfinite(sides), sides, 0.0)
    has_large_side = (finite_sides * scale > _MAX_ROW_SIDE).any(axis=0)
    if not has_large_side.any() and entries.min(initial=1.0) >= _MIN_ROW_COEFFICIENT:
        return None
    size = np.zeros(data.row_lower.size)
    np.maximum.at(size, data.A.indices, entries)
    is_scaled = (size > 0) & ((size < _MIN_ROW_COEFFICIENT) | has_large_side)
    if not is_scaled.any():
        return None
    exponent = -np.round(np.log2(np.where(is_scaled, size, 1.0)))
    return np.where(is_scaled, np.exp2(exponent), 1.0)


@dataclass(frozen=True)
class Change:
    """Entries of a live object that change, in dispatched (scaled) units. None: no change.

    Attributes:
        cost: (positions of columns, values).
        offset: new constant of the objective.
        coefficients: (rows, columns, values).
        rows: (positions, lower bounds, upper bounds).
        columns: (positions, lower bounds, upper bounds).
    """

    cost: tuple[Positions, Vector] | None
    offset: float | None
    coefficients: tuple[Positions, Positions, Vector] | None
    rows: tuple[Positions, Vector, Vector] | None
    columns: tuple[Positions, Vector, Vector] | None

    @classmethod
    def find_changes(cls, old: Data, new: Data) -> Change:
        """Compare two programs with the same matrix pattern.

        Args:
            old: the loaded program.
            new: the next program.
        """
        cost = _find_differences((old.c, new.c))
        entries = _find_differences((old.A.data, new.A.data))
        rows = _find_differences((old.row_lower, new.row_lower), (old.row_upper, new.row_upper))
        columns = _find_differences((old.lower, new.lower), (old.upper, new.upper))
        coefficients = None
        if entries.size:
            entry_rows = new.A.indices[entries].astype(np.intp)
            entry_columns = np.searchsorted(new.A.indptr, entries, side="right") - 1
            coefficients = (entry_rows, entry_columns, new.A.data[entries])
        return cls(
            cost=(cost, new.c[cost]) if cost.size else None,
            offset=new.offset if new.offset != old.offset else None,
            coefficients=coefficients,
            rows=(rows, new.row_lower[rows], new.row_upper[rows]) if rows.size else None,
            columns=(columns, new.lower[columns], new.upper[columns]) if columns.size else None,
        )


def _find_differences(*pairs: Pair) -> Positions:
    """Return the positions at which one of the pairs of arrays differs."""
    differences = [old != new for old, new in pairs if old is not new]
    if not differences:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.logical_or.reduce(differences))


def replace_entries(A: scipy.sparse.csc_array, entries: Vector) -> scipy.sparse.csc_array:
    """Return a matrix of the same pattern with other entries.

    Copying is faster than a new matrix, whose pattern would be checked again.

    Args:
        A: the matrix.
        entries: (non-zeros,) in the order of `A.data`.
    """
    result = copy(A)
    result.data = entries
    return result


def _require_usable_numbers(name: str, values: Vector) -> None:
    """Raise InvalidProgram for NaN and for numbers of size 1e15 or more."""
    size = np.abs(values)
    if (size < _MAX_NUMBER).all():  # This is false for NaN.
        return
    if not np.isfinite(size).all():
        raise InvalidProgram(f"every {name} must be finite. Got {values[~np.isfinite(size)][0]}.")
    raise InvalidProgram(f"every {name} must be below 1e15 in size. Got {size.max():g}.")


def _require_ordered_bounds(name: str, low: Vector, high: Vector) -> None:
    """Raise InvalidProgram for bounds that are crossed, NaN, on the wrong side, or too large."""
    if not (low <= high).all():  # This is true for NaN.
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
            max_size = size[np.isfinite(size)].max()
            raise InvalidProgram(
                f"every finite {name} bound must be below 1e15 in size. Got {max_size:g}."
            )


def floor_to_bits(values: Vector, bits: int) -> NDArray[np.object_]:
    """Return ⌊values 2^bits⌋, exactly. For example, 0.75 and 1 bit give 1.

    Args:
        values: array of any shape, which is the shape of the result.
        bits: number of binary digits after the point.
    """
    mantissa, exponent = np.frexp(values)
    # A double has 53 binary digits, so these integers are exact.
    digits = (mantissa * 2.0**_DOUBLE_BITS).astype(np.int64).astype(object)
    shift = exponent.astype(np.int64) - _DOUBLE_BITS + bits
    left_shift = np.maximum(shift, 0).astype(object)
    right_shift = np.maximum(-shift, 0).astype(object)
    return np.asarray((digits << left_shift) >> right_shift)
