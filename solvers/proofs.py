"""What a point, multipliers and a ray prove about a program, recomputed by us from its numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .data import Data

__all__ = ["Residuals", "infeasible_by", "lagrangian_bound", "residuals", "unbounded_along"]

Vector = NDArray[np.float64]

_UNIT = 2.0**-53  # relative rounding error of one operation
_SUMMED = 64  # ... of numpy's pairwise sum of a product, in units, up to 10^9 terms


@dataclass(frozen=True)
class Residuals:
    """Largest violations of a point, recomputed from A, bounds and integrality in double precision (absolute)."""

    rows: float
    bounds: float
    integrality: float

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.rows, self.bounds, self.integrality)


def residuals(data: Data, x: Vector) -> Residuals:
    """Largest violation of rows, bounds and integrality at x (columns,)."""

    def worst(value: Vector, low: Vector, high: Vector) -> float:
        return float(np.maximum(low - value, value - high).max(initial=0.0))

    whole = x[data.integrality]
    return Residuals(
        rows=worst(data.A @ x, data.row_lower, data.row_upper),
        bounds=worst(x, data.lower, data.upper),
        integrality=float(np.abs(whole - np.round(whole)).max(initial=0.0)),
    )


def lagrangian_bound(
    data: Data, row_dual: Vector, tolerance: float = 1e-9, *, columns: NDArray[np.intp] | None = None
) -> float | None:
    """The lower bound on min c'x + c0 that row multipliers prove over the box of the variables.

        min_x c'x + y'(r - Ax)  =  sum_i y_i r_i + sum_j min over [lower_j, upper_j] of (c - A'y)_j x_j

    with r_i the lower row bound where y_i > 0, else the upper one. Multipliers that point at an infinite row bound are
    set to zero; reduced costs that point at an infinite variable bound spoil the bound unless they are within
    `tolerance` (relative to 1 + |c_j|) of zero, which is dual feasibility as solvers mean it. Where all variables are
    bounded the value is a bound in spite of rounding: it is lowered by the most that rounding can have added.

    Args:
        columns: the column of each entry of A, where it is known (`Program.entry_columns`).

    Returns:
        The bound, or None when the multipliers prove nothing.
    """
    A = data.A
    lengths = np.diff(A.indptr)
    of = np.repeat(np.arange(data.c.size), lengths) if columns is None else columns
    side = np.where(row_dual > 0, data.row_lower, data.row_upper)
    usable = np.isfinite(side)
    if not usable.all():
        row_dual, side = np.where(usable, row_dual, 0.0), np.where(usable, side, 0.0)
    products = A.data * row_dual[A.indices]
    reduced = data.c - np.bincount(of, products, data.c.size)
    end = np.where(reduced > 0, data.lower, data.upper)
    reach = np.maximum(np.abs(data.lower), np.abs(data.upper))
    size = np.abs(data.c) + np.bincount(of, np.abs(products), data.c.size)  # of what makes a reduced cost
    if not np.isfinite(reach).all():
        free = ~np.isfinite(end)
        if (np.abs(reduced[free]) > tolerance * (1.0 + np.abs(data.c[free]))).any():
            return None
        reduced, end, size = (np.where(free, 0.0, part) for part in (reduced, end, size))
        reach = np.where(np.isfinite(reach), reach, np.abs(end))
    terms = np.concatenate([row_dual * side, reduced * end, [data.offset]])
    longest = int(lengths.max(initial=0)) + 2
    return float(terms.sum() - _UNIT * (longest * float(size @ reach) + _SUMMED * float(np.abs(terms).sum())))


def infeasible_by(data: Data, multipliers: Vector, tolerance: float = 1e-7) -> bool:
    """Whether row multipliers (rows,) of size one prove that no point exists: their bound on the zero objective is
    positive, although it cannot exceed zero at a feasible point. (Over a box rounding is accounted for; else it must
    exceed 1e-9.)"""
    value = lagrangian_bound(replace(data, c=np.zeros_like(data.c), offset=0.0), multipliers, tolerance)
    box = bool(np.isfinite(data.lower).all() and np.isfinite(data.upper).all())
    return value is not None and value > (0.0 if box else 1e-9)


def unbounded_along(data: Data, direction: Vector, tolerance: float = 1e-7) -> bool:
    """Whether a direction (columns,) of size one stays feasible for ever and improves the objective."""

    def stays(step: Vector, low: Vector, high: Vector) -> bool:
        return bool((step[np.isfinite(high)] <= tolerance).all() and (step[np.isfinite(low)] >= -tolerance).all())

    return (
        float(data.c @ direction) < -tolerance
        and stays(data.A @ direction, data.row_lower, data.row_upper)
        and stays(direction, data.lower, data.upper)
    )
