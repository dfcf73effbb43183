"""Linear programs in exact rationals: stated row by row, solved to hundreds of bits, or to the exact vertex of a basis.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A solver finds the basis, `workbench.solvers.exact.rational_refinement` the digits. What is returned is proven here and
not by the solver: the violations that are left, exactly, and a Lagrangian bound of the optimum. For any y

    L(y) = c0 + Σ_i (y_i > 0 ? y_i lo_i : y_i hi_i) + Σ_j min(r_j l_j, r_j u_j),   r = c - A'y

bounds the objective of every feasible point from below (Σ over rows i and columns j; a multiplier or reduced cost that
meets an infinite side makes it worthless: such multipliers are left out, and infinite l, u are replaced by what rows
imply). `exact_objective`, `exact_violation` and `exact_bound` take the doubles of a program, a point and multipliers as
the rationals they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.solvers.arrays import Flags, Positions, Vector
from workbench.solvers.data import Data
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.program import SECTIONS, Program, Symbols

Rational: TypeAlias = int | Fraction
Integers = NDArray[np.object_]  # of any size

_MAX_BASIS_SIZE = 400  # unknowns of an exact basis


Ends: TypeAlias = list[tuple[Rational | None, Rational | None]]  # lower and upper, None for none


class Entries(NamedTuple):
    """Rows, columns and values of the entries of A, and c, as integers over one denominator; floats: the values."""

    row: Positions
    column: Positions
    value: Integers
    floats: Vector
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
    is_row_tight: Flags
    is_column_fixed: Flags

    def solve_vertex(self) -> list[Fraction]:
        """The exact vertex of the last basis: its equations solved in rationals, so every tight row holds exactly.

        Raises:
            NoRationalSolution: the basis is singular, too large (400 unknowns), or violates a row or bound.
        """
        from flint import fmpq, fmpq_mat

        free = np.flatnonzero(~self.is_column_fixed).tolist()
        rows = np.flatnonzero(self.is_row_tight).tolist()
        if len(free) != len(rows) or len(free) > _MAX_BASIS_SIZE:
            raise NoRationalSolution(
                f"The exact basis has {len(rows)} equations for {len(free)} unknowns."
            )
        at = {j: k for k, j in enumerate(free)}
        x = [_round_to_side(v, bounds) for v, bounds in zip(self.x, self.lp.bounds, strict=True)]
        matrix = [[fmpq(0)] * len(free) for _ in rows]
        right = []
        for k, i in enumerate(rows):
            row = self.lp.rows[i]
            side = _round_to_side(
                sum((a * self.x[j] for j, a in row.items()), Fraction(0)), self.lp.sides[i]
            )
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
        if self.lp.max_violation(x):
            raise NoRationalSolution("The exact basis is infeasible.")
        return x


class RationalLP:
    """A linear program with exact rational data: those of `symbols`, or built row by row.

    columns: how many; every column of one that is built starts with bounds [0, 1] and cost 0. bits: P, the resolution
    of x.
    """

    def __init__(self, columns: int, bits: int = 320, symbols: Symbols | None = None) -> None:
        self.columns, self.bits = columns, bits
        if symbols is not None:
            self.symbols = symbols
        else:
            self.cost, self.bounds, self.sides, self.rows = (
                [0] * columns,
                [(0, 1)] * columns,
                [],
                [],
            )

    @cached_property
    def cost(self) -> list[Rational]:
        """The costs of the columns."""
        return [v or 0 for v in self.symbols.section_values("c")]

    @cached_property
    def bounds(self) -> Ends:
        """Those of the columns."""
        return [
            *zip(
                self.symbols.section_values("lower"),
                self.symbols.section_values("upper"),
                strict=True,
            )
        ]

    @cached_property
    def sides(self) -> Ends:
        """Those of the rows."""
        return [
            *zip(
                self.symbols.section_values("row_lower"),
                self.symbols.section_values("row_upper"),
                strict=True,
            )
        ]

    @cached_property
    def rows(self) -> list[dict[int, Rational]]:
        """The entries of every row that are not 0, by their columns."""
        symbols = self.symbols
        rows: list[dict[int, Rational]] = [{} for _ in self.sides]
        for i, j, value in zip(
            symbols.row.tolist(), symbols.column.tolist(), symbols.section_values("A"), strict=True
        ):
            if value:
                rows[i][j] = value
        return rows

    @cached_property
    def symbols(self) -> Symbols:
        """The numbers, each different one once."""
        which: dict[Rational | None, int] = {}
        entries = [(i, j, value) for i, row in enumerate(self.rows) for j, value in row.items()]
        ends = [
            [pair[end] for pair in pairs] for pairs in (self.bounds, self.sides) for end in (0, 1)
        ]
        listed: list[Sequence[Rational | None]] = [
            [value for *_, value in entries],
            self.cost,
            *ends,
        ]
        codes = {
            section: np.array(
                [which.setdefault(value, len(which)) for value in values], dtype=np.intp
            )
            for section, values in zip(SECTIONS, listed, strict=True)
        }
        i, j = (np.array([entry[k] for entry in entries], dtype=np.intp) for k in (0, 1))
        return Symbols(i, j, codes, [*which])

    @cached_property
    def integers(self) -> Entries:
        """Matrix and costs over their common denominator."""
        symbols = self.symbols
        A, c = symbols.codes["A"], symbols.codes["c"]
        used = {k: symbols.values[k] or 0 for k in {*A.tolist(), *c.tolist()}}
        common = math.lcm(*{value.denominator for value in used.values()})
        over, floats = to_object_array([0] * len(symbols.values)), np.zeros(len(symbols.values))
        for k, value in used.items():
            over[k] = value.numerator * (common // value.denominator)
            floats[k] = value
        return Entries(symbols.row, symbols.column, over[A], floats[A], over[c], common)

    @classmethod
    def from_data(cls, data: Data, bits: int = 320) -> RationalLP:
        """A linear program whose floats are taken as the rationals they are; its offset is left out."""
        return cls.from_program(Program("", data), {}, bits)

    @classmethod
    def from_program(
        cls, program: Program, values: Mapping[str, Sequence[Rational]], bits: int = 320
    ) -> RationalLP:
        """A program at rational values of its parameters, each listed entry by entry."""
        p = [Fraction(value) for name in program.parameters for value in values[name]]
        symbols = program.symbols
        exact = [
            base if base is None or not terms else base + sum(p[j] * factor for j, factor in terms)
            for base, terms in symbols.values
        ]
        return cls(program.shape[1], bits, symbols._replace(values=exact))

    def max_violation(self, x: Sequence[Fraction]) -> Fraction:
        """The largest violation of a row or bound at a point, exact."""
        activity = [sum((a * x[j] for j, a in row.items()), Fraction(0)) for row in self.rows]
        gaps = [Fraction(0)]
        for value, (low, high) in zip([*x, *activity], [*self.bounds, *self.sides], strict=True):
            gaps += [] if low is None else [low - value]
            gaps += [] if high is None else [value - high]
        return Fraction(max(gaps))

    def lagrangian_bound(self, y: Sequence[Fraction]) -> Fraction | None:
        """L(y) of the module's docstring, a lower bound of the minimum; None where it is -∞."""
        common = math.lcm(*{v.denominator for v in y})
        return self.lagrangian_bound_over(
            [v.numerator * (common // v.denominator) for v in y], common
        )

    def lagrangian_bound_over(self, y: Sequence[int], common: int) -> Fraction | None:
        """L(y / common)."""
        (i, j, a, _, c, own), symbols = self.integers, self.symbols
        multipliers = to_object_array(y)
        sides = np.where(multipliers > 0, symbols.codes["row_lower"], symbols.codes["row_upper"])
        usable = (multipliers != 0) & symbols.is_finite[sides]
        total: Fraction = symbols.weighted_sum(multipliers[usable], sides[usable]) * own
        reduced, used = c * common, usable[i]
        np.subtract.at(reduced, j[used], a[used] * multipliers[i[used]])
        ends = np.where(reduced > 0, symbols.codes["lower"], symbols.codes["upper"])
        known = symbols.is_finite[ends]
        total += symbols.weighted_sum(reduced[known], ends[known])
        for column in np.flatnonzero(~known & (reduced != 0)).tolist():
            end = self._implied_bounds[column][int(reduced[column] < 0)]
            if end is None:
                return None
            total += reduced[column] * end
        return total / (own * common)

    @cached_property
    def _implied_bounds(self) -> list[list[Rational | None]]:
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
                        boxes[j][which] = (
                            value if known is None else (max, min)[which](known, value)
                        )
        return boxes

    def add_row(
        self,
        entries: Mapping[int, Rational],
        low: Rational | None = None,
        high: Rational | None = None,
    ) -> int:
        """Add low <= Σ entries[j] x_j <= high (None: no bound); returns its position."""
        self.rows.append({j: v for j, v in entries.items() if v})
        self.sides.append((low, high))
        for known in ("symbols", "integers"):
            self.__dict__.pop(known, None)
        return len(self.rows) - 1


def to_object_array(values: Sequence[Any]) -> Integers:
    """Integers of any size as an array."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _round_to_side(value: Fraction, sides: tuple[Rational | None, Rational | None]) -> Fraction:
    """The side a value is nearest to; itself without any."""
    near = min(
        (side for side in sides if side is not None),
        key=lambda side: abs(side - value),
        default=value,
    )
    return Fraction(near)


def exact_objective(data: Data, x: ArrayLike) -> Fraction:
    """c'x + c0 of the minimisation."""
    return sum(map(mul, _to_rationals(data.c), _to_rationals(x)), Fraction(data.offset))


def exact_violation(data: Data, x: ArrayLike) -> Fraction:
    """The largest violation of a row, a bound or an integrality by a point."""
    point = _to_rationals(x)
    off = [abs(point[j] - round(point[j])) for j in np.flatnonzero(data.integrality).tolist()]
    return max([RationalLP.from_data(data).max_violation(point), *off])


def exact_bound(data: Data, y: ArrayLike) -> Fraction | None:
    """L(y), a lower bound of the minimum (also of a mixed-integer program's); None where it is -∞."""
    bound = RationalLP.from_data(data).lagrangian_bound(_to_rationals(y))
    return None if bound is None else bound + Fraction(data.offset)


def _to_rationals(values: ArrayLike) -> list[Fraction]:
    return [Fraction(v) for v in np.asarray(values, dtype=float).tolist()]
