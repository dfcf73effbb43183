"""Linear programs in exact rationals: stated row by row, solved to hundreds of bits, or to the exact vertex of a basis.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A solver finds the basis, `solvers.rational_refinement` the digits. What is returned is proven here and not by the
solver: the violations that are left, exactly, and a Lagrangian bound of the optimum. For any y

    L(y) = c0 + Σ_i (y_i > 0 ? y_i lo_i : y_i hi_i) + Σ_j min(r_j l_j, r_j u_j),   r = c - A'y

bounds the objective of every feasible point from below (Σ over rows i and columns j; a multiplier or reduced cost that
meets an infinite side makes it worthless: such multipliers are left out, and infinite l, u are replaced by what rows
imply). `exact_objective`, `exact_violation` and `exact_bound` take the doubles of a program, a point and multipliers as
the rationals they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from .arrays import Flags, Positions, Vector
from .data import Data
from .errors import NoRationalSolution
from .program import Program

Rational: TypeAlias = int | Fraction
Integers = NDArray[np.object_]  # of any size

_DENSE = 400  # unknowns of an exact basis


class Entries(NamedTuple):
    """Rows, columns and values of the entries of A, and c, as integers over a common denominator."""

    row: Positions
    column: Positions
    value: Integers
    cost: Integers
    common: int


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
        if self.lp.excess(x):
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
        self.sides: list[tuple[Rational | None, Rational | None]] = []
        self._listed: tuple[list[int], list[int], list[Rational]] | None = None

    @cached_property
    def rows(self) -> list[dict[int, Rational]]:
        """The entries of every row that are not 0, by their columns."""
        rows: list[dict[int, Rational]] = [{} for _ in self.sides]
        for i, j, value in zip(*self._listed or ((), (), ()), strict=True):
            if value:
                rows[i][j] = value
        return rows

    @cached_property
    def integers(self) -> Entries:
        """Matrix and costs over their common denominator."""
        listed = self._listed or (
            [i for i, row in enumerate(self.rows) for _ in row],
            [j for row in self.rows for j in row],
            [value for row in self.rows for value in row.values()],
        )
        different = {id(value): value for value in (*listed[2], *self.cost)}
        common = math.lcm(*{value.denominator for value in different.values()})
        over = {key: value.numerator * (common // value.denominator) for key, value in different.items()}
        i, j = (np.array(part, dtype=np.intp) for part in listed[:2])
        values, cost = (object_array([over[id(value)] for value in part]) for part in (listed[2], self.cost))
        return Entries(i, j, values, cost, common)

    @classmethod
    def of(cls, data: Data, bits: int = 320, moved: Mapping[str, Mapping[int, Fraction]] | None = None) -> RationalLP:
        """A linear program whose floats are taken as the rationals they are; its offset is left out.

        moved: section of the data -> position -> the rational that stands there instead.
        """
        others = moved or {}

        def section(name: str, values: Vector) -> list[Rational | None]:
            exact = _different(values)
            numbers: list[Rational | None] = [exact.get(v) for v in values.tolist()]
            for position, value in others.get(name, {}).items():
                numbers[position] = value
            return numbers

        lp = cls(data.c.size, bits)
        lp.cost = [v or 0 for v in section("c", data.c)]
        lp.bounds = [*zip(section("lower", data.lower), section("upper", data.upper), strict=True)]
        lp.sides = [*zip(section("row_lower", data.row_lower), section("row_upper", data.row_upper), strict=True)]
        columns = np.repeat(np.arange(lp.columns), np.diff(data.A.indptr)).tolist()
        lp._listed = data.A.indices.tolist(), columns, [v for v in section("A", data.A.data) if v is not None]
        return lp

    @classmethod
    def at(cls, program: Program, values: Mapping[str, Sequence[Rational]], bits: int = 320) -> RationalLP:
        """A program at rational values of its parameters, each listed entry by entry."""
        p = [Fraction(value) for name in program.parameters for value in values[name]]
        moved = {}
        for section, (place, base, factors) in program.moves.items():
            at, matrix = place.tolist(), csr_array(factors).tocoo()
            exact, (which, parameter) = _different(np.append(base, matrix.data)), matrix.coords
            moved[section] = entries = {row: exact[value] for row, value in zip(at, base.tolist(), strict=True)}
            terms = [*zip(parameter.tolist(), matrix.data.tolist(), strict=True)]
            products = {(j, factor): exact[factor] * p[j] for j, factor in set(terms)}
            for k, term in zip(which.tolist(), terms, strict=True):
                entries[at[k]] = entries[at[k]] + products[term] if entries[at[k]] else products[term]
        return cls.of(program.template, bits, moved)

    def excess(self, x: Sequence[Fraction]) -> Fraction:
        """The largest violation of a row or bound at a point, exact."""
        activity = [sum((a * x[j] for j, a in row.items()), Fraction(0)) for row in self.rows]
        gaps: list[Rational] = [Fraction(0)]
        for value, (low, high) in zip([*x, *activity], [*self.bounds, *self.sides], strict=True):
            gaps += [] if low is None else [low - value]
            gaps += [] if high is None else [value - high]
        return Fraction(max(gaps))

    def bound(self, y: Sequence[Fraction]) -> Fraction | None:
        """L(y) of the module's docstring, a lower bound of the minimum; None where it is -∞."""
        common = math.lcm(*{v.denominator for v in y})
        return self.bound_over([v.numerator * (common // v.denominator) for v in y], common)

    def bound_over(self, y: Sequence[int], common: int) -> Fraction | None:
        """L(y / common)."""
        i, j, a, c, own = self.integers
        total, usable = Fraction(0), object_array([0] * len(y))
        for row, (value, (low, high)) in enumerate(zip(y, self.sides, strict=True)):
            side = low if value > 0 else high
            if value and side is not None:
                usable[row] = value
                if side:
                    total += value * side * own
        reduced = c * common
        np.subtract.at(reduced, j, a * usable[i])
        for cost, (low, high) in zip(reduced.tolist(), self._boxes(), strict=True):
            end = low if cost > 0 else high
            if cost and end is None:
                return None
            if end:
                total += cost * end
        return total / (own * common)

    def _boxes(self) -> list[list[Rational | None]]:
        """Lower and upper bounds of the columns; one that is missing is replaced by the best that a row implies.

        In a row Σ a_j x_j <= hi, x_j <= (hi - least activity of the others)/a_j for a_j > 0, and >= for a_j < 0.
        """
        boxes = [list(ends) for ends in self.bounds]
        if not any(low is None or high is None for low, high in boxes):
            return boxes
        for row, (low, high) in zip(self.rows, self.sides, strict=True):
            for sign, side in ((1, high), (-1, low)):  # sign * row <= sign * side
                if side is None:
                    continue
                # the columns where sign * row is least, and those of them without an end
                ends = {j: self.bounds[j][sign * a < 0] for j, a in row.items()}
                loose = [j for j, end in ends.items() if end is None]
                activity = sum((a * (ends[j] or 0) for j, a in row.items()), Fraction(0))
                for j, a in row.items():
                    which = int(sign * a > 0)
                    if self.bounds[j][which] is None and loose in ([], [j]):
                        value = Fraction(side - activity + a * (ends[j] or 0)) / a
                        known = boxes[j][which]
                        boxes[j][which] = value if known is None else (max, min)[which](known, value)
        return boxes

    def row(self, entries: Mapping[int, Rational], low: Rational | None = None, high: Rational | None = None) -> int:
        """Add low <= Σ entries[j] x_j <= high (None: no bound); returns its position."""
        self.rows.append({j: v for j, v in entries.items() if v})
        self.sides.append((low, high))
        self._listed = None
        self.__dict__.pop("integers", None)
        return len(self.rows) - 1


def each(function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """A function of every value, called once for each object: of which there are few where there are many values."""
    listed = [*values]
    values_of = {key: function(value) for key, value in {id(value): value for value in listed}.items()}
    return [values_of[id(value)] for value in listed]


def object_array(values: Sequence[Any]) -> Integers:
    """Integers of any size as an array."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _different(values: Vector) -> dict[float, Fraction]:
    """The different finite ones of some floats, as the rationals they are."""
    return {v: _rational(v) for v in set(values[np.isfinite(values)].tolist())}


@lru_cache(1024)
def _rational(value: float) -> Fraction:
    return Fraction(value)


def _nearest(value: Fraction, sides: tuple[Rational | None, Rational | None]) -> Fraction:
    """The side a value is nearest to; itself without any."""
    near = min((side for side in sides if side is not None), key=lambda side: abs(side - value), default=value)
    return Fraction(near)


def exact_objective(data: Data, x: ArrayLike) -> Fraction:
    """c'x + c0 of the minimisation."""
    return sum(map(mul, _rationals(data.c), _rationals(x)), Fraction(data.offset))


def exact_violation(data: Data, x: ArrayLike) -> Fraction:
    """The largest violation of a row, a bound or an integrality by a point."""
    point = _rationals(x)
    off = [abs(point[j] - round(point[j])) for j in np.flatnonzero(data.integrality).tolist()]
    return max([RationalLP.of(data).excess(point), *off])


def exact_bound(data: Data, y: ArrayLike) -> Fraction | None:
    """L(y), a lower bound of the minimum (also of a mixed-integer program's); None where it is -∞."""
    bound = RationalLP.of(data).bound(_rationals(y))
    return None if bound is None else bound + Fraction(data.offset)


def _rationals(values: ArrayLike) -> list[Fraction]:
    return [Fraction(v) for v in np.asarray(values, dtype=float).tolist()]
