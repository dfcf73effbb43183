"""Linear programs in exact rationals: stated row by row, solved to hundreds of bits, or to the exact vertex of a basis.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A solver finds the basis, `solvers.rational_refinement` the digits. What is returned is proven here and not by the
solver: the violations that are left, exactly, and a Lagrangian bound of the optimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from .arrays import Flags, Vector
from .data import Data
from .errors import NoRationalSolution
from .program import Program

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
    def of(cls, data: Data, bits: int = 320, moved: Mapping[str, Mapping[int, Fraction]] | None = None) -> RationalLP:
        """A linear program whose floats are taken as the rationals they are; its offset is left out.

        moved: section of the data -> position -> the rational that stands there instead.
        """
        others = moved or {}

        def section(name: str, values: Vector) -> list[Rational | None]:
            numbers: list[Rational | None] = [Fraction(v) if np.isfinite(v) else None for v in values.tolist()]
            for position, value in others.get(name, {}).items():
                numbers[position] = value
            return numbers

        lp = cls(data.c.size, bits)
        lp.cost = [v or 0 for v in section("c", data.c)]
        lp.bounds = [*zip(section("lower", data.lower), section("upper", data.upper), strict=True)]
        columns = np.repeat(np.arange(lp.columns), np.diff(data.A.indptr)).tolist()
        rows: list[dict[int, Rational]] = [{} for _ in range(data.row_lower.size)]
        for i, j, v in zip(data.A.indices.tolist(), columns, section("A", data.A.data), strict=True):
            rows[i][j] = v or 0
        sides = zip(section("row_lower", data.row_lower), section("row_upper", data.row_upper), strict=True)
        for entries, (low, high) in zip(rows, sides, strict=True):
            lp.row(entries, low, high)
        return lp

    @classmethod
    def at(cls, program: Program, values: Mapping[str, Sequence[Rational]], bits: int = 320) -> RationalLP:
        """A program at rational values of its parameters, each listed entry by entry."""
        p = [Fraction(value) for name in program.parameters for value in values[name]]
        moved = {}
        for section, (place, base, factors) in program.moves.items():
            rows, at, matrix = place.tolist(), base.tolist(), csr_array(factors)
            moved[section] = entries = dict(zip(rows, map(Fraction, at), strict=True))
            for k, row in enumerate(rows):
                part = slice(matrix.indptr[k], matrix.indptr[k + 1])
                for j, factor in zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True):
                    entries[row] += Fraction(factor) * p[j]
        return cls.of(program.template, bits, moved)

    def excess(self, x: Sequence[Fraction]) -> Fraction:
        """The largest violation of a row at a point, exact."""
        gaps: list[Rational] = [Fraction(0)]
        for row, (low, high) in zip(self.rows, self.sides, strict=True):
            value = sum((a * x[j] for j, a in row.items()), Fraction(0))
            gaps += [] if low is None else [low - value]
            gaps += [] if high is None else [value - high]
        return Fraction(max(gaps))

    def row(self, entries: Mapping[int, Rational], low: Rational | None = None, high: Rational | None = None) -> int:
        """Add low <= Σ entries[j] x_j <= high (None: no bound); returns its position."""
        self.rows.append({j: v for j, v in entries.items() if v})
        self.sides.append((low, high))
        return len(self.rows) - 1


def _nearest(value: Fraction, sides: tuple[Rational | None, Rational | None]) -> Fraction:
    """The side a value is nearest to; itself without any."""
    near = min((side for side in sides if side is not None), key=lambda side: abs(side - value), default=value)
    return Fraction(near)
