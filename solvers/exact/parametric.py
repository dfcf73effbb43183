"""Compute the optimum of a linear program as a formula in two parameters x and δ.

    V(x, δ) = min c(x)'z   s.t.   lo <= A(x) z <= hi,   l <= z <= u

The parameter x is usually e^ε, or a root of it. The entries of A, c, l, u are polynomials in x. The
sides lo, hi are polynomials in x that are affine in δ. A basis names the basic columns F and
equally many rows T that are held at one of their sides. All other columns are held at a bound. The
basis has

    the point        z_F = A[T,F]^-1 (side - A[T,rest] z_rest)    rational in x, affine in δ
    the multipliers  y = A[T,F]^-T c_F                            rational in x

and is optimal, so that V = c'z, wherever

    z_F is within l, u, and A z within lo, hi                     conditions on x, affine in δ
    c - A'y and y have the signs that their sides require         conditions on x alone

Each condition is the sign of a polynomial. It is computed exactly at one rational x, the sample. If
the polynomial has no root in an interval around the sample, the condition holds in this interval. A
solver proposes the basis at the sample; nothing else of its answer is used.

Source: parametric programming, e.g. T. Gal, Postoptimal Analyses (1995); the roots as in
`workbench.solvers.exact.polynomials`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import starmap
from math import lcm, prod
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpq_poly, fmpz_poly

from workbench.solvers.arrays import Ints
from workbench.solvers.backend import Options, get_backend
from workbench.solvers.data import Data
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.polynomial_equations import solve_affine_system
from workbench.solvers.exact.polynomials import (
    ONE,
    ZERO,
    Affine,
    Interval,
    Poly,
    evaluate_polynomial,
    to_flint,
    to_fraction,
)
from workbench.solvers.exact.rational_lp import Rational, RationalLP
from workbench.solvers.exact.rational_refinement import solve_rational
from workbench.solvers.program import Program
from workbench.solvers.session import Session
from workbench.solvers.solution import Termination

# Values of HiGHS's HighsBasisStatus.
_BASIC = 1
_AT_UPPER = 2

Entry = tuple[fmpq_poly, fmpq_poly]  # An entry of a program: its constant and its slope in δ.
# The finest tolerance that HiGHS accepts gives the right basis most often.
_FINEST_HIGHS_TOLERANCE = 1e-10
_NO_SLOPE = fmpq_poly([])


@dataclass(frozen=True)
class Basis:
    """The side at which a basis holds each column and row: -1 lower, 1 upper, 0 basic.

    A column without bounds may be held at 0. It is marked by -1.

    Example: Basis(columns=(0, -1), rows=(1,)) holds the second column at its lower bound and the
    only row at its upper side. The first column is basic: the row determines it.

    Attributes:
        columns: sides of the columns, shape (columns,).
        rows: sides of the rows, shape (rows,).
    """

    columns: Ints
    rows: Ints


@dataclass(frozen=True)
class Vertex:
    """The point and the multipliers of a basis as functions, with the conditions of optimality.

    Attributes:
        basis: side at which each column and row is held.
        point: z, a function of x and δ for each column, shape (columns,).
        multipliers: y, a function of x for each row, shape (rows,); 0 for basic rows.
        value: the objective c'z as a function of x and δ.
        primal_conditions: functions of x and δ that are >= 0 where the point is feasible.
        dual_conditions: functions of x that are >= 0 where the multipliers have the right signs.
    """

    basis: Basis
    point: tuple[Affine, ...]
    multipliers: tuple[Affine, ...]
    value: Affine
    primal_conditions: tuple[Affine, ...]
    dual_conditions: tuple[Affine, ...]

    def has_dual_feasibility(self, x: Fraction) -> bool:
        """Return whether all dual conditions are positive, except those that are 0 for every x.

        Args:
            x: value of the parameter x.
        """
        flint_x = to_flint(x)
        return all(
            condition.constant(flint_x) * condition.denominator(flint_x) > 0
            for condition in self.dual_conditions
            if condition.constant
        )

    def feasible_deltas(self, x: Fraction, low: Fraction, high: Fraction) -> Interval | None:
        """Return the part of an interval of δ where the point is feasible.

        Args:
            x: value of the parameter x.
            low: lower end of the interval of δ.
            high: upper end of the interval of δ.

        Returns:
            The ends of the part. None if the part is empty or a single δ.
        """
        flint_x = to_flint(x)
        lowest = to_flint(low)
        highest = to_flint(high)
        for condition in self.primal_conditions:
            # The condition is constant + δ slope >= 0, after division by a positive denominator.
            constant = condition.constant(flint_x)
            slope = condition.slope(flint_x)
            if condition.denominator(flint_x) < 0:
                constant = -constant
                slope = -slope
            if slope > 0:
                lowest = max(lowest, -constant / slope)
            elif slope < 0:
                highest = min(highest, -constant / slope)
            elif constant < 0:
                return None
        if lowest < highest:
            return to_fraction(lowest), to_fraction(highest)
        return None


class VertexPart(NamedTuple):
    """A vertex, and an interval of δ in which it is optimal at one x.

    Attributes:
        low: lower end of δ.
        high: upper end of δ, larger than `low`.
        vertex: the vertex.
    """

    low: Fraction
    high: Fraction
    vertex: Vertex


class ParametricProgram:
    """A program whose entries are polynomials in x, and whose sides of rows are also affine in δ.

    For example, polynomials = {"odds": [1, 2]} and delta = "budget" mean that the parameter "odds"
    is (x, x²) and the parameter "budget" is δ.

    Attributes:
        program: the program that is passed to the solver, which proposes bases.
        polynomials: parameter of the program -> polynomial in x for each of its entries.
        delta: name of the parameter that is δ, or None.
        numbers: values of the other parameters.
        exact: section of `Data` -> position -> the rational that the double there stands for. For
            example {"c": {0: Fraction(1, 3)}}: the first cost is 1/3.
        cost: (columns,) polynomials.
        offset: polynomial.
        bounds: (columns,) lower and upper bounds; None for none.
        rows: (rows,) column -> coefficient, a polynomial.
        sides: (rows,) lower and upper sides as (constant, slope in δ); None for none.
    """

    def __init__(
        self,
        program: Program,
        polynomials: Mapping[str, Sequence[int | Poly]],
        delta: str | None = None,
        numbers: Mapping[str, Sequence[Fraction]] | None = None,
        exact: Mapping[str, Mapping[int, Fraction]] | None = None,
    ) -> None:
        """Convert a program to polynomials.

        Args:
            program: the `Program` whose parameters become x and δ.
            polynomials: parameter -> for each of its entries a polynomial in x, or an integer k for
                x^k.
            delta: name of the parameter that is δ, or None.
            numbers: values of the other parameters. None for no other parameters.
            exact: see the attribute. None for no such rationals.

        Raises:
            NoRationalSolution: there are integer columns or cones, or δ moves more than sides of
                rows.
        """
        if program.is_mip or program.cones is not None:
            raise NoRationalSolution(
                "A formula needs a program without integer columns and without cones."
            )
        self.program = program
        self.delta = delta
        self.polynomials = {
            name: [_power_to_polynomial(entry) for entry in entries]
            for name, entries in polynomials.items()
        }
        self.numbers = numbers or {}
        self.exact = exact or {}
        symbols = program.symbols
        parameters = self._list_parameters()
        self._codes = symbols.codes
        self._entries = [
            None if base is None else _sum_parameters(base, terms, parameters)
            for base, terms in symbols.values
        ]
        self._is_constant = [not terms for _, terms in symbols.values]
        self.cost = [_require_constant_in_delta(entry) for entry in self._section_entries("c")]
        (self.offset,) = map(_require_constant_in_delta, self._section_entries("offset"))
        lower = [_column_bound(entry) for entry in self._section_entries("lower")]
        upper = [_column_bound(entry) for entry in self._section_entries("upper")]
        self.bounds = [*zip(lower, upper, strict=True)]
        self.rows: list[dict[int, Poly]] = []
        self.sides: list[tuple[tuple[Poly, Poly] | None, tuple[Poly, Poly] | None]] = []
        self._add_rows()
        self._session: Session | None = None
        self._vertices: dict[Basis, Vertex] = {}

    def _add_rows(self) -> None:
        """Add all rows and their sides, multiplied by the common denominator of each row."""
        symbols = self.program.symbols
        rows: list[dict[int, fmpq_poly]] = [{} for _ in symbols.codes["row_lower"]]
        coefficients = zip(
            symbols.row.tolist(), symbols.column.tolist(), self._section_entries("A"), strict=True
        )
        for i, j, entry in coefficients:
            value = _require_constant_in_delta(entry)
            if value:
                rows[i][j] = value
        lower = self._section_entries("row_lower")
        upper = self._section_entries("row_upper")
        for row, low, high in zip(rows, lower, upper, strict=True):
            polynomials = [*row.values(), *(low or ()), *(high or ())]
            common = lcm(*(int(polynomial.denom()) for polynomial in polynomials))
            self.rows.append({j: (value * common).numer() for j, value in row.items()})
            self.sides.append((_scale_side(low, common), _scale_side(high, common)))

    @property
    def degree(self) -> int:
        """Return the highest power of x among the parameters."""
        degrees = [entry.degree() for entries in self.polynomials.values() for entry in entries]
        return max(degrees, default=1)

    def _section_entries(self, section: str) -> list[Entry | None]:
        """Return the entries of a section. Constant entries are replaced by those of `exact`."""
        exact_values = self.exact.get(section, {})
        entries: list[Entry | None] = []
        for position, code in enumerate(self._codes[section].tolist()):
            if position in exact_values and self._is_constant[code]:
                entries.append((_to_polynomial(exact_values[position]), _NO_SLOPE))
            else:
                entries.append(self._entries[code])
        return entries

    def _list_parameters(self) -> list[Entry]:
        """Return the entries of the stacked parameter vector."""
        stacked_entries = []
        for name, shape in self.program.parameters.items():
            if name == self.delta:
                stacked_entries.append((_NO_SLOPE, fmpq_poly([1])))
            elif name in self.polynomials:
                stacked_entries += [
                    (fmpq_poly(entry), _NO_SLOPE) for entry in self.polynomials[name]
                ]
            else:
                values = self.numbers[name][: prod(shape)]
                stacked_entries += [(_to_polynomial(Fraction(v)), _NO_SLOPE) for v in values]
        return stacked_entries

    @cached_property
    def relaxation(self) -> ParametricProgram:
        """Return the program that minimises the sum of the violations of all rows.

        Every row gets two new columns >= 0 of cost 1, which add to and subtract from its activity.
        The optimum is positive exactly where this program is infeasible.
        """
        data = self.program.template
        row_count, column_count = self.program.shape
        identity = sp.eye_array(row_count, format="csc")
        no_costs = np.zeros(column_count)
        ones = np.ones(2 * row_count)
        template = Data(
            c=np.r_[no_costs, ones],
            offset=0.0,
            A=sp.csc_array(sp.hstack([data.A, identity, -identity], format="csc")),
            row_lower=data.row_lower,
            row_upper=data.row_upper,
            lower=np.r_[data.lower, np.zeros(2 * row_count)],
            upper=np.r_[data.upper, np.full(2 * row_count, np.inf)],
            integrality=np.zeros(column_count + 2 * row_count, dtype=bool),
        )
        # The objective is replaced, so only the bounds, rows and sides still depend on parameters.
        moves = {
            name: move for name, move in self.program.moves.items() if name not in ("c", "offset")
        }
        program = replace(self.program, template=template, moves=moves, cost=1.0, shift=0.0)
        exact = {name: values for name, values in self.exact.items() if name not in ("c", "offset")}
        return ParametricProgram(program, self.polynomials, self.delta, self.numbers, exact)

    def propose_basis(self, x: Fraction, delta: Fraction) -> Basis | None:
        """Return the basis that a solver finds at a point, or None if it calls it infeasible.

        Args:
            x: the parameter x.
            delta: the parameter δ.

        Raises:
            NoRationalSolution: the solver finds no basis.
        """
        if self._session is None:
            tolerances = {
                "primal_feasibility_tolerance": _FINEST_HIGHS_TOLERANCE,
                "dual_feasibility_tolerance": _FINEST_HIGHS_TOLERANCE,
            }
            options = Options(algorithm="simplex", native=tolerances)
            self._session = get_backend("highs").open(self.program, options)
        floats = {}
        for name, entries in self._parameter_values(x, delta).items():
            shape = self.program.parameters[name]
            floats[name] = np.reshape([*map(float, entries)], shape, order="F")
        solution = self._session.solve(floats)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.termination is Termination.INFEASIBLE:
            return None
        if solution.termination is not Termination.OPTIMAL or solution.basis is None:
            raise NoRationalSolution(f"The solver proposes no basis: {solution.raw_status}.")
        column_statuses = [int(status) for status in solution.basis.col_status]
        row_statuses = [int(status) for status in solution.basis.row_status]
        return Basis(
            tuple(starmap(_side_of_status, zip(column_statuses, self.bounds, strict=True))),
            tuple(starmap(_side_of_status, zip(row_statuses, self.sides, strict=True))),
        )

    def _with_scaled_costs(self, lp: RationalLP) -> RationalLP:
        """Return a program with costs multiplied by `Program.cost`: the same points are optimal.

        Refinement begins with a solve in floats. Its tolerances would hide differences of small
        costs. The product has costs of ordinary size.
        """
        scaled_lp = RationalLP(lp.columns, lp.bits)
        scaled_lp.bounds = lp.bounds
        scaled_lp.sides = lp.sides
        scaled_lp.rows = lp.rows
        scaled_lp.cost = [cost * Fraction(self.program.cost) for cost in lp.cost]
        return scaled_lp

    def _parameter_values(self, x: Fraction, delta: Fraction) -> dict[str, list[Fraction]]:
        """Return the values of the parameters at a point; numbers are rounded to doubles."""
        values = {}
        for name, shape in self.program.parameters.items():
            if name == self.delta:
                values[name] = [delta]
            elif name in self.polynomials:
                values[name] = [evaluate_polynomial(entry, x) for entry in self.polynomials[name]]
            else:
                numbers = self.numbers[name][: prod(shape)]
                values[name] = [Fraction(float(number)) for number in numbers]
        return values

    def refine_basis(self, x: Fraction, delta: Fraction) -> Basis:
        """Return the basis that rational refinement finds at a point.

        Refinement distinguishes points that are the same within a solver's tolerance.

        Args:
            x: the parameter x, a rational whose denominator is a power of two.
            delta: the parameter δ.

        Raises:
            NoRationalSolution: refinement fails.
        """
        lp = RationalLP.from_program(self.program, self._parameter_values(x, delta))
        if self.program.cost == 1:
            point = solve_rational(lp)
        else:
            point = solve_rational(self._with_scaled_costs(lp))
        activity = [sum((a * point.x[j] for j, a in row.items()), Fraction(0)) for row in lp.rows]
        columns = zip(point.is_column_fixed.tolist(), point.x, lp.bounds, strict=True)
        rows = zip(point.is_row_tight.tolist(), activity, lp.sides, strict=True)
        return Basis(tuple(starmap(_nearest_side, columns)), tuple(starmap(_nearest_side, rows)))

    def close(self) -> None:
        """Release the solver's resources."""
        if self._session is not None:
            self._session.close()
        if "relaxation" in vars(self):
            self.relaxation.close()

    def find_optimal_vertices(self, x: Fraction, low: Fraction, high: Fraction) -> list[VertexPart]:
        """Return the vertices computed until now that are optimal at x for a part of an interval.

        Args:
            x: the parameter x.
            low: lower end of the interval of δ.
            high: upper end of the interval of δ.

        Returns:
            The vertices with their parts of the interval, the last computed vertex first.
        """
        parts = []
        for vertex in reversed(self._vertices.values()):
            if vertex.has_dual_feasibility(x):
                deltas = vertex.feasible_deltas(x, low, high)
                if deltas is not None:
                    parts.append(VertexPart(*deltas, vertex))
        return parts

    def compute_vertex(self, basis: Basis) -> Vertex:
        """Return the point, the multipliers and the conditions of a basis.

        Args:
            basis: side at which each column and row is held.

        Raises:
            NoRationalSolution: the basis is singular, or holds a row where it has no side.
        """
        if basis not in self._vertices:
            self._vertices[basis] = self._solve_vertex(basis)
        return self._vertices[basis]

    def _solve_vertex(self, basis: Basis) -> Vertex:
        """Solve the equations of a basis and list its conditions, as `compute_vertex` returns them.

        The caller stores the result.
        """
        basic_columns = [j for j, side in enumerate(basis.columns) if not side]
        tight_rows = [i for i, side in enumerate(basis.rows) if side]
        if len(basic_columns) != len(tight_rows):
            raise NoRationalSolution(
                f"The basis has {len(tight_rows)} equations for {len(basic_columns)} unknowns."
            )
        point = self._solve_point(basis, tight_rows)
        transposed_rows: dict[int, dict[int, Poly]] = {j: {} for j in basic_columns}
        for i in tight_rows:
            for j, entry in self.rows[i].items():
                if j in transposed_rows:
                    transposed_rows[j][i] = entry
        multipliers = solve_affine_system(
            [(transposed_rows[j], _to_affine(self.cost[j])) for j in basic_columns]
        )
        value = _to_affine(self.offset)
        for j, cost in enumerate(self.cost):
            if cost:
                denominator = fmpz_poly([int(cost.denom())])
                value = value + point[j].multiply(cost.numer(), denominator)
        zero = Affine.from_number(0)
        return Vertex(
            basis,
            tuple(point[j] for j in range(len(self.cost))),
            multipliers=tuple(multipliers.get(i, zero) for i in range(len(self.rows))),
            value=value,
            primal_conditions=_unique_conditions(self._list_primal_conditions(basis, point)),
            dual_conditions=_unique_conditions(self._list_dual_conditions(basis, multipliers)),
        )

    def _solve_point(self, basis: Basis, tight_rows: Sequence[int]) -> dict[int, Affine]:
        """Return the value of every column at a basis."""
        held_columns = {}
        for j, side in enumerate(basis.columns):
            if side:
                low, high = self.bounds[j]
                bound = high if side > 0 else low
                held_columns[j] = Affine.from_number(bound or 0)
        equations = []
        for i in tight_rows:
            low_side, high_side = self.sides[i]
            side_polynomials = high_side if basis.rows[i] > 0 else low_side
            if side_polynomials is None:
                raise NoRationalSolution("The basis holds a row where it has no side.")
            right = Affine.from_ratio(*side_polynomials, ONE)
            entries = {}
            for j, entry in self.rows[i].items():
                if j not in held_columns:
                    entries[j] = entry
                elif held_columns[j].constant:
                    right = right - held_columns[j].multiply(entry)
            equations.append((entries, right))
        return solve_affine_system(equations) | held_columns

    def _list_primal_conditions(self, basis: Basis, point: Mapping[int, Affine]) -> list[Affine]:
        """Return the distances of basic columns and rows from their sides."""
        conditions = []
        for j, side in enumerate(basis.columns):
            if not side:
                low, high = self.bounds[j]
                low_bound = None if low is None else Affine.from_number(low)
                high_bound = None if high is None else Affine.from_number(high)
                conditions += _range_conditions(point[j], low_bound, high_bound)
        for i, side in enumerate(basis.rows):
            if not side:
                activity = Affine.from_number(0)
                for j, entry in self.rows[i].items():
                    activity = activity + point[j].multiply(entry)
                low_side, high_side = self.sides[i]
                low_bound = None if low_side is None else Affine.from_ratio(*low_side, ONE)
                high_bound = None if high_side is None else Affine.from_ratio(*high_side, ONE)
                conditions += _range_conditions(activity, low_bound, high_bound)
        return conditions

    def _list_dual_conditions(
        self, basis: Basis, multipliers: Mapping[int, Affine]
    ) -> list[Affine]:
        """Return the multipliers of tight rows and the reduced costs of held columns.

        Their signs are changed where needed, so that each condition is "this function is >= 0". An
        equation and a fixed column have no condition.
        """
        reduced_costs = {
            j: _to_affine(self.cost[j]) for j, side in enumerate(basis.columns) if side
        }
        conditions = []
        for i, y in multipliers.items():
            low, high = self.sides[i]
            if low != high:
                conditions.append(y if basis.rows[i] < 0 else y.multiply(-ONE))
            if y.constant:
                for j, entry in self.rows[i].items():
                    if j in reduced_costs:
                        reduced_costs[j] = reduced_costs[j] - y.multiply(entry)
        for j, cost in reduced_costs.items():
            low_end, high_end = self.bounds[j]
            if low_end is None and high_end is None:
                # The reduced cost of a free column that is held must be 0.
                conditions += [cost, cost.multiply(-ONE)]
            elif low_end != high_end:
                conditions.append(cost if basis.columns[j] < 0 else cost.multiply(-ONE))
        return conditions


def _power_to_polynomial(entry: int | Poly) -> Poly:
    """Return x^k for an integer k, and a polynomial unchanged."""
    return fmpz_poly([0] * entry + [1]) if isinstance(entry, int) else entry


def _to_polynomial(value: Fraction) -> fmpq_poly:
    """Return a number as a constant polynomial."""
    return fmpq_poly([fmpq(value.numerator, value.denominator)])


def _sum_parameters(
    base: Fraction, terms: Iterable[tuple[int, Fraction]], parameters: Sequence[Entry]
) -> Entry:
    """Return base + Σ factor * parameter."""
    constant = _to_polynomial(base)
    slope = _NO_SLOPE
    for index, factor in terms:
        weight = _to_polynomial(factor)
        parameter_constant, parameter_slope = parameters[index]
        constant = constant + weight * parameter_constant
        slope = slope + weight * parameter_slope
    return constant, slope


def _require_constant_in_delta(entry: Entry | None) -> fmpq_poly:
    """Return an entry that δ does not move. Raises NoRationalSolution."""
    constant, slope = entry or (None, None)
    if constant is None or slope:
        raise NoRationalSolution(
            "A formula in delta needs a program where delta moves sides of rows only."
        )
    return constant


def _column_bound(entry: Entry | None) -> Fraction | None:
    """Return a bound of a column as a number; None for none. Raises NoRationalSolution."""
    if entry is None:
        return None
    value = _require_constant_in_delta(entry)
    if value.degree() > 0:
        raise NoRationalSolution("A formula needs columns whose bounds no parameter moves.")
    return to_fraction(value[0])


def _scale_side(side: Entry | None, factor: int) -> tuple[Poly, Poly] | None:
    """Return a side times an integer, as integer polynomials; None for none."""
    if side is None:
        return None
    constant, slope = side
    return (constant * factor).numer(), (slope * factor).numer()


def _to_affine(polynomial: fmpq_poly) -> Affine:
    """Return a polynomial in x as a function of x and δ."""
    return Affine.from_ratio(polynomial.numer(), ZERO, fmpz_poly([int(polynomial.denom())]))


def _side_of_status(status: int, ends: tuple[object, object]) -> int:
    """Return the side as in `Basis` (-1, 0 or 1) that a status of HiGHS means.

    Args:
        status: number of HiGHS's HighsBasisStatus.
        ends: lower and upper end of the column or row. None for no end.
    """
    if status == _BASIC:
        return 0
    low, high = ends
    is_at_upper = high is not None and (status == _AT_UPPER or low is None)
    return 1 if is_at_upper else -1


def _nearest_side(
    is_held: bool, value: Fraction, ends: tuple[Rational | None, Rational | None]
) -> int:
    """Return the side, -1 or 1, that is nearer to a held value; 0 if it is not held."""
    if not is_held:
        return 0
    low, high = ends
    if high is None:
        return -1
    is_at_upper = low is None or abs(high - value) < abs(value - low)
    return 1 if is_at_upper else -1


def _unique_conditions(conditions: Sequence[Affine]) -> tuple[Affine, ...]:
    """Return the different conditions, without those that hold everywhere (numbers >= 0)."""
    unique: dict[tuple[Ints, ...], Affine] = {}
    for condition in conditions:
        polynomials = (condition.constant, condition.slope, condition.denominator)
        is_number = not condition.slope and all(part.degree() <= 0 for part in polynomials)
        # A number has the same value at every x, such as 1.
        if not is_number or condition(Fraction(1)) < 0:
            key = tuple(tuple(map(int, part.coeffs())) for part in polynomials)
            unique.setdefault(key, condition)
    return tuple(unique.values())


def _range_conditions(value: Affine, low: Affine | None, high: Affine | None) -> list[Affine]:
    """Return value - low and high - value, which are >= 0 where the value is within its bounds."""
    conditions = []
    if low is not None:
        conditions.append(value - low)
    if high is not None:
        conditions.append(high - value)
    return conditions
