"""Linear programs in exact rationals, and exact bounds on their optima.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

`workbench.solvers.exact.rational_refinement` solves them to hundreds of bits. This file proves the
result without trusting the solver: it computes the remaining violations exactly, and a lower bound
on the optimum, the Lagrangian bound. For any multipliers y of the rows

    L(y) = c0 + Σ_i (y_i > 0 ? y_i lo_i : y_i hi_i) + Σ_j min(r_j l_j, r_j u_j),   r = c - A'y

is a lower bound on the objective c0 + c'x of every feasible point. (i counts rows, j columns, and r
are the reduced costs.) If a multiplier or reduced cost is multiplied by an infinite side, the bound
is -infinity. Therefore such multipliers are set to 0, and infinite l, u are replaced by the bounds
that rows imply.

`exact_objective`, `exact_violation` and `exact_bound` take a program, a point and multipliers in
doubles. They convert each double to the rational that it stores.
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
Integers = NDArray[np.object_]  # Python integers of any size.
Ends: TypeAlias = list[tuple[Rational | None, Rational | None]]  # (lower, upper); None for none.

_MAX_BASIS_SIZE = 400  # An exact basis with more unknowns is refused; it would take too long.
_DEFAULT_BITS = 320  # Binary digits of x after the point.


class Entries(NamedTuple):
    """The coefficients of A and the costs as integers over one denominator.

    Attributes:
        row, column: (non-zeros,) positions.
        value: (non-zeros,) numerators.
        floats: (non-zeros,) the values in doubles.
        cost: (columns,) numerators.
        common: the denominator.
    """

    row: Positions
    column: Positions
    value: Integers
    floats: Vector
    cost: Integers
    common: int


@dataclass(frozen=True)
class RationalPoint:
    """A point of a RationalLP.

    Attributes:
        lp: the program in exact rationals.
        x: (columns,) rationals.
        objective: value of the objective at the point.
        bound: proven lower bound on the optimum, or None.
        violation: largest violation of a row or bound, exact.
        is_row_tight: (rows,) whether the last basis holds a row at a bound.
        is_column_fixed: (columns,) whether the last basis holds a column at a bound.
    """

    lp: RationalLP
    x: list[Fraction]
    objective: Fraction
    bound: Fraction | None
    violation: Fraction
    is_row_tight: Flags
    is_column_fixed: Flags

    def solve_vertex(self) -> list[Fraction]:
        """Return the exact vertex of the last basis, at which every tight row holds exactly.

        Raises:
            NoRationalSolution: the basis is singular, has more than 400 unknowns, or violates a row
                or bound.
        """
        from flint import fmpq, fmpq_mat

        basic_columns = np.flatnonzero(~self.is_column_fixed).tolist()
        tight_rows = np.flatnonzero(self.is_row_tight).tolist()
        size = len(basic_columns)
        if size != len(tight_rows) or size > _MAX_BASIS_SIZE:
            raise NoRationalSolution(
                f"The exact basis has {len(tight_rows)} equations for {size} unknowns."
            )
        position = {j: k for k, j in enumerate(basic_columns)}
        x = [_round_to_side(v, ends) for v, ends in zip(self.x, self.lp.bounds, strict=True)]
        matrix = [[fmpq(0)] * size for _ in tight_rows]
        right_sides = []
        for k, i in enumerate(tight_rows):
            row = self.lp.rows[i]
            activity = sum((a * self.x[j] for j, a in row.items()), Fraction(0))
            right_side = _round_to_side(activity, self.lp.sides[i])
            for j, a in row.items():
                if j in position:
                    matrix[k][position[j]] = fmpq(a.numerator, a.denominator)
                else:
                    right_side -= a * x[j]
            right_sides.append([fmpq(right_side.numerator, right_side.denominator)])
        if size:
            try:
                solution = fmpq_mat(matrix).solve(fmpq_mat(right_sides)).table()
            except ZeroDivisionError:
                raise NoRationalSolution("The exact basis is singular.") from None
            for j, (value,) in zip(basic_columns, solution, strict=True):
                x[j] = Fraction(int(value.p), int(value.q))
        if self.lp.max_violation(x):
            raise NoRationalSolution("The exact basis is infeasible.")
        return x


class RationalLP:
    """A linear program with exact rational data.

    It is made from `Symbols`, or built row by row. A program that is built starts without rows, and
    every column has the bounds [0, 1] and cost 0.

    `cost`, `bounds`, `sides` and `rows` hold the same numbers as `symbols`. A program that is made
    from symbols computes the four when they are first read. A program that is built row by row
    computes `symbols` from the four.

    Attributes:
        columns: number of columns.
        bits: P, the number of binary digits of x after the point.
    """

    def __init__(
        self, columns: int, bits: int = _DEFAULT_BITS, symbols: Symbols | None = None
    ) -> None:
        """Begin a program.

        Args:
            columns: number of columns.
            bits: number of binary digits of x after the point.
            symbols: all numbers. None to build the program row by row.
        """
        self.columns = columns
        self.bits = bits
        if symbols is not None:
            self.symbols = symbols
        else:
            # Values that are set replace the cached properties of the same names.
            self.cost = [0] * columns
            self.bounds = [(0, 1)] * columns
            self.sides = []
            self.rows = []

    @cached_property
    def cost(self) -> list[Rational]:
        """Return the costs of the columns."""
        return [v or 0 for v in self.symbols.section_values("c")]

    @cached_property
    def bounds(self) -> Ends:
        """Return the bounds of the columns."""
        symbols = self.symbols
        lower = symbols.section_values("lower")
        return [*zip(lower, symbols.section_values("upper"), strict=True)]

    @cached_property
    def sides(self) -> Ends:
        """Return the bounds of the rows."""
        symbols = self.symbols
        lower = symbols.section_values("row_lower")
        return [*zip(lower, symbols.section_values("row_upper"), strict=True)]

    @cached_property
    def rows(self) -> list[dict[int, Rational]]:
        """Return the non-zero coefficients of every row, by columns."""
        symbols = self.symbols
        values = symbols.section_values("A")
        rows: list[dict[int, Rational]] = [{} for _ in self.sides]
        for i, j, value in zip(symbols.row.tolist(), symbols.column.tolist(), values, strict=True):
            if value:
                rows[i][j] = value
        return rows

    @cached_property
    def symbols(self) -> Symbols:
        """Return all numbers, with equal numbers stored once."""
        code_by_value: dict[Rational | None, int] = {}
        row_index: list[int] = []
        column_index: list[int] = []
        coefficients: list[Rational] = []
        for i, row in enumerate(self.rows):
            row_index += [i] * len(row)
            column_index += row.keys()
            coefficients += row.values()
        sections: dict[str, Sequence[Rational | None]] = {
            "A": coefficients,
            "c": self.cost,
            "lower": [low for low, _ in self.bounds],
            "upper": [high for _, high in self.bounds],
            "row_lower": [low for low, _ in self.sides],
            "row_upper": [high for _, high in self.sides],
        }
        codes = {}
        for section in SECTIONS:
            section_codes = [
                code_by_value.setdefault(value, len(code_by_value)) for value in sections[section]
            ]
            codes[section] = np.array(section_codes, dtype=np.intp)
        return Symbols(
            np.array(row_index, dtype=np.intp),
            np.array(column_index, dtype=np.intp),
            codes,
            [*code_by_value],
        )

    @cached_property
    def integers(self) -> Entries:
        """Return the matrix and the costs over their common denominator."""
        symbols = self.symbols
        A = symbols.codes["A"]
        c = symbols.codes["c"]
        used_values = {k: symbols.values[k] or 0 for k in {*A.tolist(), *c.tolist()}}
        common = math.lcm(*{value.denominator for value in used_values.values()})
        numerators = to_object_array([0] * len(symbols.values))
        floats = np.zeros(len(symbols.values))
        for k, value in used_values.items():
            numerators[k] = value.numerator * (common // value.denominator)
            floats[k] = value
        return Entries(
            symbols.row,
            symbols.column,
            value=numerators[A],
            floats=floats[A],
            cost=numerators[c],
            common=common,
        )

    @classmethod
    def from_data(cls, data: Data, bits: int = _DEFAULT_BITS) -> RationalLP:
        """Convert a program in doubles to rationals, without rounding. The offset is left out.

        Args:
            data: numbers of the program, as doubles.
            bits: number of binary digits of x after the point.
        """
        return cls.from_program(Program("", data), {}, bits)

    @classmethod
    def from_program(
        cls,
        program: Program,
        values: Mapping[str, Sequence[Rational]],
        bits: int = _DEFAULT_BITS,
    ) -> RationalLP:
        """Return a program at rational values of its parameters.

        Args:
            program: the program.
            values: parameter name -> its entries.
            bits: number of binary digits of x after the point.
        """
        p: list[Fraction] = []
        for name in program.parameters:
            p += map(Fraction, values[name])
        exact_values = []
        for base, terms in program.symbols.values:
            value = base
            if base is not None and terms:
                value = base + sum(p[j] * factor for j, factor in terms)
            exact_values.append(value)
        return cls(program.shape[1], bits, program.symbols._replace(values=exact_values))

    def max_violation(self, x: Sequence[Fraction]) -> Fraction:
        """Return the largest violation of a row or bound, exactly.

        Args:
            x: (columns,) the point.
        """
        activity = [sum((a * x[j] for j, a in row.items()), Fraction(0)) for row in self.rows]
        violation: Rational = 0
        for value, (low, high) in zip([*x, *activity], [*self.bounds, *self.sides], strict=True):
            if low is not None:
                violation = max(violation, low - value)
            if high is not None:
                violation = max(violation, value - high)
        return Fraction(violation)

    def lagrangian_bound(self, y: Sequence[Fraction]) -> Fraction | None:
        """Return L(y) of the module's docstring, a lower bound on the minimum, or None for -∞.

        Args:
            y: (rows,) multipliers.
        """
        common = math.lcm(*{v.denominator for v in y})
        return self.lagrangian_bound_over(
            [v.numerator * (common // v.denominator) for v in y], common
        )

    def lagrangian_bound_over(self, y: Sequence[int], common: int) -> Fraction | None:
        """Return L(y / common), or None for -∞.

        Args:
            y: (rows,) numerators of multipliers.
            common: their denominator.
        """
        entries = self.integers
        symbols = self.symbols

        # The sum over rows. Multipliers of infinite sides count as 0. The codes say where in
        # `symbols.values` the sides that count are.
        multipliers = to_object_array(y)
        is_positive = multipliers > 0
        side_codes = np.where(is_positive, symbols.codes["row_lower"], symbols.codes["row_upper"])
        is_used = (multipliers != 0) & symbols.is_finite[side_codes]
        total: Fraction = symbols.weighted_sum(multipliers[is_used], side_codes[is_used])
        # So far, the total is the sum times `common`. From here on, it is the sum times both
        # denominators.
        total *= entries.common

        # The reduced costs r = c - A'y, times both denominators, and the sum over columns.
        reduced_cost = entries.cost * common
        in_used_row = is_used[entries.row]
        used_rows = entries.row[in_used_row]
        products = entries.value[in_used_row] * multipliers[used_rows]
        np.subtract.at(reduced_cost, entries.column[in_used_row], products)
        end_codes = np.where(reduced_cost > 0, symbols.codes["lower"], symbols.codes["upper"])
        has_end = symbols.is_finite[end_codes]
        total += symbols.weighted_sum(reduced_cost[has_end], end_codes[has_end])
        for column in np.flatnonzero(~has_end & (reduced_cost != 0)).tolist():
            implied_low, implied_high = self._implied_bounds[column]
            end = implied_high if reduced_cost[column] < 0 else implied_low
            if end is None:
                return None
            total += reduced_cost[column] * end
        return total / (entries.common * common)

    @cached_property
    def _implied_bounds(self) -> list[list[Rational | None]]:
        """Return the bounds of the columns; a missing one is replaced by the best implied bound.

        A row Σ_k a_k x_k <= hi implies a_j x_j <= hi - m, where m is the smallest value of the sum
        over the other columns. Divided by a_j, this is an upper bound on x_j if a_j > 0, and a
        lower bound if a_j < 0.
        """
        implied = [list(ends) for ends in self.bounds]
        if not any(low is None or high is None for low, high in implied):
            return implied
        for row, (low, high) in zip(self.rows, self.sides, strict=True):
            for sign, side in ((1, high), (-1, low)):
                if side is not None:  # This is sign * row <= sign * side.
                    self._imply_bounds(implied, row, sign, side)
        return implied

    def _imply_bounds(
        self,
        implied: list[list[Rational | None]],
        row: Mapping[int, Rational],
        sign: int,
        side: Rational,
    ) -> None:
        """Tighten implied bounds by one side of a row.

        Args:
            implied: (columns,) the lists [lower, upper], changed in place.
            row: column -> coefficient.
            sign: 1 or -1. The side states sign * row <= sign * side.
            side: the side of the row.
        """
        # The ends of the columns at which sign * row is smallest, and the columns without one.
        # Position 0 of a pair of bounds is the lower bound, position 1 the upper one.
        ends = {j: self.bounds[j][int(sign * a < 0)] for j, a in row.items()}
        open_columns = [j for j, end in ends.items() if end is None]
        activity = sum((a * (ends[j] or 0) for j, a in row.items()), Fraction(0))
        for j, a in row.items():
            is_upper = int(sign * a > 0)
            # If another column has no end, the other columns have no smallest sum.
            if self.bounds[j][is_upper] is not None or open_columns not in ([], [j]):
                continue
            value = Fraction(side - activity + a * (ends[j] or 0)) / a
            bound = implied[j][is_upper]
            if bound is not None:
                value = Fraction(min(bound, value) if is_upper else max(bound, value))
            implied[j][is_upper] = value

    def add_row(
        self,
        entries: Mapping[int, Rational],
        low: Rational | None = None,
        high: Rational | None = None,
    ) -> int:
        """Add low <= Σ entries[j] x_j <= high to a program that is built row by row.

        Args:
            entries: column -> coefficient.
            low: lower bound, or None.
            high: upper bound, or None.

        Returns:
            The position of the row.
        """
        self.rows.append({j: v for j, v in entries.items() if v})
        self.sides.append((low, high))
        # These cached properties contain all rows, so they are computed again.
        for cached_name in ("symbols", "integers"):
            self.__dict__.pop(cached_name, None)
        return len(self.rows) - 1


def to_object_array(values: Sequence[Any]) -> Integers:
    """Return integers of any size as an array.

    Args:
        values: the integers.
    """
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _round_to_side(value: Fraction, sides: tuple[Rational | None, Rational | None]) -> Fraction:
    """Return the side that is nearest to a value, or the value if there is none."""
    finite_sides = [side for side in sides if side is not None]
    return Fraction(min(finite_sides, key=lambda side: abs(side - value), default=value))


def exact_objective(data: Data, x: ArrayLike) -> Fraction:
    """Return c'x + c0 of the minimisation, exactly.

    Args:
        data: numbers of the program, as doubles.
        x: (columns,) the point.
    """
    return sum(map(mul, _to_rationals(data.c), _to_rationals(x)), Fraction(data.offset))


def exact_violation(data: Data, x: ArrayLike) -> Fraction:
    """Return the largest violation of a row, a bound or an integrality, exactly.

    Args:
        data: numbers of the program, as doubles.
        x: (columns,) the point.
    """
    point = _to_rationals(x)
    integer_columns = np.flatnonzero(data.integrality).tolist()
    violations = [abs(point[j] - round(point[j])) for j in integer_columns]
    return max([RationalLP.from_data(data).max_violation(point), *violations])


def exact_bound(data: Data, y: ArrayLike) -> Fraction | None:
    """Return L(y), a lower bound on the minimum (also of a mixed-integer program), or None for -∞.

    Args:
        data: numbers of the program, as doubles.
        y: (rows,) multipliers.
    """
    bound = RationalLP.from_data(data).lagrangian_bound(_to_rationals(y))
    return None if bound is None else bound + Fraction(data.offset)


def _to_rationals(values: ArrayLike) -> list[Fraction]:
    """Return the rationals that doubles store."""
    return [Fraction(v) for v in np.asarray(values, dtype=float).tolist()]
