"""Linear programs in exact rationals: stated row by row, solved to hundreds of bits, or to the exact vertex of a basis.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A solver finds the basis, `solvers.rational_refinement` the digits. What is returned is proven here and not by the
solver: the violations that are left, exactly, and a Lagrangian bound of the optimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from .arrays import Flags, Vector
from .data import Data
from .errors import NoRationalSolution

__all__ = ["Rational", "RationalLP", "RationalPoint"]

Rational: TypeAlias = int | Fraction

_DENSE = 400  # unknowns of an exact basis


@dataclass(frozen=True)
class RationalPoint:
    """A point of an RationalLP. x: (columns,) rationals; bound: a proven lower bound on the optimum, None if none is;
    violation: the largest violation of a row or bound, exact; tight: (rows,) whether the last basis holds a row at a
    bound; fixed: (columns,) the same for the bounds of columns."""

    lp: RationalLP
    x: list[Fraction]
    objective: Fraction
    bound: Fraction | None
    violation: Fraction
    tight: Flags
    fixed: Flags

    def vertex(self) -> list[Fraction]:
        """The exact vertex of the last basis: its equations solved in rationals, so every tight row holds exactly.

        Raises:
            NoRationalSolution: the basis is singular, too large (400 unknowns), or violates a row or bound.
        """
        from flint import fmpq, fmpq_mat

        free = np.flatnonzero(~self.fixed).tolist()
        rows = np.flatnonzero(self.tight).tolist()
        if len(free) != len(rows) or len(free) > _DENSE:
            raise NoRationalSolution(f"The exact basis has {len(rows)} equations for {len(free)} unknowns.")
        at = {j: k for k, j in enumerate(free)}
        x = [_nearest(v, bounds) for v, bounds in zip(self.x, self.lp.bounds, strict=True)]
        matrix = [[fmpq(0)] * len(free) for _ in rows]
        right = []
        for k, i in enumerate(rows):
            row = self.lp.rows[i]
            here = sum((a * self.x[j] for j, a in row.items()), Fraction(0))
            side = _nearest(here, self.lp.sides[i])
            for j, a in row.items():
                if j in at:
                    matrix[k][at[j]] = fmpq(a.numerator, a.denominator)
                else:
                    side -= a * x[j]
            right.append([fmpq(side.numerator, side.denominator)])
        try:
            solved = fmpq_mat(matrix).solve(fmpq_mat(right)).table() if free else []
        except ZeroDivisionError:
            raise NoRationalSolution("The exact basis is singular.") from None
        for j, (value,) in zip(free, solved, strict=True):
            x[j] = Fraction(int(value.p), int(value.q))
        activity = [sum((a * x[j] for j, a in row.items()), Fraction(0)) for row in self.lp.rows]
        for value, (low, high) in zip([*x, *activity], [*self.lp.bounds, *self.lp.sides], strict=True):
            if (low is not None and value < low) or (high is not None and value > high):
                raise NoRationalSolution("The exact basis is infeasible.")
        return x


class RationalLP:
    """A linear program with exact rational data, built row by row.

    columns: how many; every column starts with bounds [0, 1] and cost 0. bits: P, the resolution of x.
    """

    def __init__(self, columns: int, bits: int = 320) -> None:
        self.columns, self.bits = columns, bits
        self.cost: list[Rational] = [0] * columns
        self.bounds: list[tuple[Rational | None, Rational | None]] = [(0, 1)] * columns
        self.rows: list[dict[int, Rational]] = []
        self.sides: list[tuple[Rational | None, Rational | None]] = []

    @classmethod
    def of(cls, data: Data, bits: int = 320) -> RationalLP:
        """A linear program whose floats are taken as the rationals they are; its offset is left out."""
        lp, A = cls(data.c.size, bits), data.A.tocsr()
        lp.cost = [*map(Fraction, data.c.tolist())]
        lp.bounds = _sides(data.lower, data.upper)
        for i, (low, high) in enumerate(_sides(data.row_lower, data.row_upper)):
            part = slice(A.indptr[i], A.indptr[i + 1])
            lp.row(dict(zip(A.indices[part].tolist(), map(Fraction, A.data[part].tolist()), strict=True)), low, high)
        return lp

    def row(self, entries: Mapping[int, Rational], low: Rational | None = None, high: Rational | None = None) -> int:
        """Add low <= Σ entries[j] x_j <= high (None: no bound); returns its position."""
        self.rows.append({j: v for j, v in entries.items() if v})
        self.sides.append((low, high))
        return len(self.rows) - 1


def _sides(low: Vector, high: Vector) -> list[tuple[Rational | None, Rational | None]]:
    """Lower and upper bounds, None where there are none."""
    rows = zip(low.tolist(), high.tolist(), strict=True)
    return [(Fraction(a) if np.isfinite(a) else None, Fraction(b) if np.isfinite(b) else None) for a, b in rows]


def _nearest(value: Fraction, sides: tuple[Rational | None, Rational | None]) -> Fraction:
    """The side a value is nearest to; itself without any."""
    near = min((side for side in sides if side is not None), key=lambda side: abs(side - value), default=value)
    return Fraction(near)
