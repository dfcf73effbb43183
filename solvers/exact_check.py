"""A linear program's point and multipliers judged in rationals: what is proven whoever computed them, and however.

The numbers of the program and of the vectors are the doubles they are. For any y the Lagrangian value

    L(y) = c0 + Σ_i (y_i > 0 ? y_i lo_i : y_i hi_i) + Σ_j min(r_j l_j, r_j u_j),   r = c - A'y

bounds the objective of every feasible point from below (Σ over rows i and columns j; a multiplier or reduced cost that
meets an infinite side makes it worthless: such multipliers are left out, and l, u are tightened by what rows imply).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from .data import Data

__all__ = ["exact_bound", "exact_objective", "exact_violation", "rounded_down"]


def exact_objective(data: Data, x: ArrayLike) -> Fraction:
    """c'x + c0 of the minimisation."""
    point = np.asarray(x, dtype=float).tolist()
    return sum(
        (Fraction(c) * Fraction(v) for c, v in zip(data.c.tolist(), point, strict=True) if c and v),
        Fraction(data.offset),
    )


def exact_violation(data: Data, x: ArrayLike) -> Fraction:
    """The largest violation of a row, a bound or an integrality by a point."""
    point = [Fraction(v) for v in np.asarray(x, dtype=float).tolist()]
    rows = [Fraction(0)] * data.A.shape[0]
    for j, i, a in _entries(data):
        rows[i] += a * point[j]
    worst = Fraction(0)
    for values, low, high in ((rows, data.row_lower, data.row_upper), (point, data.lower, data.upper)):
        for value, least, most in zip(values, low.tolist(), high.tolist(), strict=True):
            if least != -math.inf and value < least:
                worst = max(worst, Fraction(least) - value)
            elif most != math.inf and value > most:
                worst = max(worst, value - Fraction(most))
    for j in np.flatnonzero(data.integrality).tolist():
        worst = max(worst, abs(point[j] - round(point[j])))
    return worst


def exact_bound(data: Data, y: ArrayLike) -> Fraction | None:
    """L(y), a lower bound of the minimum (also of a mixed-integer program's); None where it is -∞."""
    given = np.asarray(y, dtype=float).tolist()
    total, multipliers = Fraction(data.offset), []
    for value, low, high in zip(given, data.row_lower.tolist(), data.row_upper.tolist(), strict=True):
        side = low if value > 0 else high
        multipliers.append(Fraction(value) if value and math.isfinite(side) else Fraction(0))
        if multipliers[-1]:
            total += multipliers[-1] * Fraction(side)
    reduced = [Fraction(c) for c in data.c.tolist()]
    for j, i, a in _entries(data):
        if multipliers[i]:
            reduced[j] -= a * multipliers[i]
    lower, upper = _boxes(data)
    for cost, low, high in zip(reduced, lower, upper, strict=True):
        if cost:
            end = low if cost > 0 else high
            if end is None:
                return None
            total += cost * end
    return total


def _boxes(data: Data) -> tuple[list[Fraction | None], list[Fraction | None]]:
    """Bounds of the columns, None where there are none; an infinite one is replaced by what a single row implies.

    In a row Σ a_j x_j <= hi, x_j <= (hi - least activity of the others)/a_j for a_j > 0, and >= for a_j < 0.
    """
    lower, upper = (
        [Fraction(v) if math.isfinite(v) else None for v in side.tolist()] for side in (data.lower, data.upper)
    )
    if None not in lower and None not in upper:
        return lower, upper
    rows: list[list[tuple[int, Fraction]]] = [[] for _ in range(data.A.shape[0])]
    for j, i, a in _entries(data):
        rows[i].append((j, a))
    implied = [dict[int, Fraction](), dict[int, Fraction]()]
    for row, least, most in zip(rows, data.row_lower.tolist(), data.row_upper.tolist(), strict=True):
        for sign, side in ((1, most), (-1, -least)):  # sign * row <= side
            if not math.isfinite(side):
                continue
            ends = [(j, sign * a, lower[j] if sign * a > 0 else upper[j]) for j, a in row]
            loose = [j for j, _, end in ends if end is None]
            activity = sum((a * end for _, a, end in ends if end is not None), Fraction(0))
            for j, a, end in ends:
                if loose in ([], [j]):
                    value = (Fraction(side) - (activity - (0 if end is None else a * end))) / a
                    implied_ends, better = (implied[1], min) if a > 0 else (implied[0], max)
                    implied_ends[j] = better(implied_ends.get(j, value), value)
    return (
        [implied[0].get(j) if v is None else v for j, v in enumerate(lower)],
        [implied[1].get(j) if v is None else v for j, v in enumerate(upper)],
    )


def _entries(data: Data) -> list[tuple[int, int, Fraction]]:
    """(column, row, entry) of every non-zero."""
    columns = np.repeat(np.arange(data.A.shape[1]), np.diff(data.A.indptr)).tolist()
    entries = zip(columns, data.A.indices.tolist(), data.A.data.tolist(), strict=True)
    return [(j, i, Fraction(a)) for j, i, a in entries if a]


def rounded_down(value: Fraction) -> float:
    """The largest double that is not above a rational."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
