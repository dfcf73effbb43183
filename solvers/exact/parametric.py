"""The optimum of a linear program as a formula in its parameters, each region of a formula proven.

    V(x, δ) = min c(x)'z   s.t.   lo <= A(x) z <= hi,   l <= z <= u

A, c, l, u are polynomials in x, the sides lo, hi polynomials affine in δ. For a basis (basic columns F, rows T held at
a side, as many) the point z_F = A[T,F]^-1 (side - A[T,rest] z_rest) and the multipliers y = A[T,F]^-T c_F are rational
functions of x, z affine in δ. The basis is optimal, and c'z its formula, wherever

    z_F within l, u;  A z within lo, hi  (affine in δ)        reduced costs c - A'y and y of the right sign  (x alone)

Each is a sign of a polynomial: exact at one rational x, and without a root in the interval around it, it holds in the
whole interval. A solver proposes the basis at that x; nothing of it is believed.

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

_BASIC, _AT_UPPER = 1, 2  # of HiGHS's HighsBasisStatus

Entry = tuple[fmpq_poly, fmpq_poly]  # of a program's data: its constant and its slope in δ


@dataclass(frozen=True)
class Basis:
    """What is held where. columns, rows: -1 at the lower, 1 at the upper side, 0 basic; a free column may be held at 0,
    as -1."""

    columns: Ints
    rows: Ints


@dataclass(frozen=True)
class Vertex:
    """What a basis says, symbolically.

    Attributes:
        point: of every column; multipliers: of every row (0 where it is basic).
        value: the objective.
        primal: what must not be negative, affine in δ; dual: the same, without δ.
    """

    basis: Basis
    point: tuple[Affine, ...]
    multipliers: tuple[Affine, ...]
    value: Affine
    primal_conditions: tuple[Affine, ...]
    dual_conditions: tuple[Affine, ...]

    def has_dual_feasibility(self, x: Fraction) -> bool:
        """Whether the multipliers have the right signs at x, strictly."""
        at = to_flint(x)
        return all(
            condition.constant(at) * condition.denominator(at) > 0
            for condition in self.dual_conditions
            if condition.constant
        )

    def feasible_deltas(self, x: Fraction, low: Fraction, high: Fraction) -> Interval:
        """The part of an interval of δ where the point is feasible at x; nothing: the lower end is above the upper."""
        at, least, most = to_flint(x), to_flint(low), to_flint(high)
        for condition in self.primal_conditions:
            sign = condition.denominator(at)
            here, slope = condition.constant(at), condition.slope(at)
            if sign < 0:
                here, slope = -here, -slope
            if slope > 0:
                least = max(least, -here / slope)
            elif slope < 0:
                most = min(most, -here / slope)
            elif here < 0:
                return high, low
        return to_fraction(least), to_fraction(most)


class ParametricProgram:
    """A program whose entries are polynomials in x, and whose rows' sides are affine in δ, in exact integers.

    program: for the solver that proposes bases. powers: parameter -> what each of its entries is, a polynomial in x or
    a power of it; delta: the name of the parameter δ; numbers: the values of the other parameters; exact: section of
    the data -> position -> the rational that its float stands for.

    Raises:
        NoRationalSolution: there are integer columns or cones, or δ moves more than sides of rows.
    """

    def __init__(
        self,
        program: Program,
        powers: Mapping[str, Sequence[int | Poly]],
        delta: str | None = None,
        numbers: Mapping[str, Sequence[Fraction]] | None = None,
        exact: Mapping[str, Mapping[int, Fraction]] | None = None,
    ) -> None:
        if program.is_mip or program.cones is not None:
            raise NoRationalSolution(
                "A formula needs a program without integer columns and without cones."
            )
        self.program, self.delta = program, delta
        self.powers = {
            name: [
                fmpz_poly([0] * entry + [1]) if isinstance(entry, int) else entry
                for entry in entries
            ]
            for name, entries in powers.items()
        }
        self.numbers, self.exact = numbers or {}, exact or {}
        symbols, parameters = program.symbols, self._parameters()
        entries = [
            None if base is None else _sum_parameters(base, terms, parameters)
            for base, terms in symbols.values
        ]
        self._codes, self._entries = symbols.codes, entries
        self._stays = [not terms for _, terms in symbols.values]
        self.cost = [_require_constant_in_delta(entry) for entry in self._section("c")]
        (self.offset,) = map(_require_constant_in_delta, self._section("offset"))
        self.bounds = [
            *zip(
                *([_column_bound(e) for e in self._section(end)] for end in ("lower", "upper")),
                strict=True,
            )
        ]
        rows: list[dict[int, fmpq_poly]] = [{} for _ in symbols.codes["row_lower"]]
        for i, j, entry in zip(
            symbols.row.tolist(), symbols.column.tolist(), self._section("A"), strict=True
        ):
            if value := _require_constant_in_delta(entry):
                rows[i][j] = value
        self.rows: list[dict[int, Poly]] = []
        self.sides: list[tuple[tuple[Poly, Poly] | None, tuple[Poly, Poly] | None]] = []
        sides = zip(self._section("row_lower"), self._section("row_upper"), strict=True)
        for row, (low, high) in zip(rows, sides, strict=True):
            parts = [part for side in (low, high) if side is not None for part in side]
            common = lcm(*(int(v.denom()) for v in (*row.values(), *parts)))
            self.rows.append({j: (v * common).numer() for j, v in row.items()})
            whole = [
                None if s is None else ((s[0] * common).numer(), (s[1] * common).numer())
                for s in (low, high)
            ]
            self.sides.append((whole[0], whole[1]))
        self._session: Session | None = None
        self._vertices: dict[Basis, Vertex] = {}

    @property
    def degree(self) -> int:
        """The highest power of x among the parameters."""
        return max(
            (entry.degree() for entries in self.powers.values() for entry in entries), default=1
        )

    def _section(self, section: str) -> list[Entry | None]:
        """The entries of a section, as the rationals that those which stay stand for."""
        codes, known = self._codes[section].tolist(), self.exact.get(section, {})
        return [
            (_to_polynomial(known[at]), fmpq_poly([]))
            if at in known and self._stays[code]
            else self._entries[code]
            for at, code in enumerate(codes)
        ]

    def _parameters(self) -> list[Entry]:
        """What every entry of the stacked parameter vector is."""
        stacked = []
        for name, shape in self.program.parameters.items():
            if name == self.delta:
                stacked.append((fmpq_poly([]), fmpq_poly([1])))
            elif name in self.powers:
                stacked += [(fmpq_poly(entry), fmpq_poly([])) for entry in self.powers[name]]
            else:
                stacked += [
                    (_to_polynomial(Fraction(value)), fmpq_poly([]))
                    for value in self.numbers[name][: prod(shape)]
                ]
        return stacked

    @cached_property
    def relaxation(self) -> ParametricProgram:
        """The least sum of violations of rows: positive exactly where the program is infeasible."""
        data, m, n = self.program.template, *self.program.shape
        every = sp.eye_array(m, format="csc")
        end, ones = np.full(2 * m, np.inf), np.ones(2 * m)
        whole = Data(
            np.r_[np.zeros(n), ones],
            0.0,
            sp.csc_array(sp.hstack([data.A, every, -every], format="csc")),
            data.row_lower,
            data.row_upper,
            np.r_[data.lower, 0 * ones],
            np.r_[data.upper, end],
            np.zeros(n + 2 * m, dtype=bool),
        )
        moves = {
            name: move for name, move in self.program.moves.items() if name not in ("c", "offset")
        }
        program = replace(self.program, template=whole, moves=moves, cost=1.0, shift=0.0)
        kept = {name: known for name, known in self.exact.items() if name not in ("c", "offset")}
        return ParametricProgram(program, self.powers, self.delta, self.numbers, kept)

    # Bases.

    def propose_basis(self, x: Fraction, delta: Fraction) -> Basis | None:
        """What a solver proposes there; None where it finds the program infeasible."""
        if self._session is None:
            tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
            self._session = get_backend("highs").open(
                self.program, Options(algorithm="simplex", native=tight)
            )
        shapes, values = self.program.parameters, self._values(x, delta)
        floats = {
            name: np.reshape([*map(float, own)], shapes[name], order="F")
            for name, own in values.items()
        }
        solution = self._session.solve(floats)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.termination is Termination.INFEASIBLE:
            return None
        if solution.termination is not Termination.OPTIMAL or solution.basis is None:
            raise NoRationalSolution(f"The solver proposes no basis: {solution.raw_status}.")
        columns, rows = (
            [int(v) for v in part]
            for part in (solution.basis.col_status, solution.basis.row_status)
        )
        return Basis(
            tuple(
                _side_of_status(status, ends)
                for status, ends in zip(columns, self.bounds, strict=True)
            ),
            tuple(
                _side_of_status(status, ends) for status, ends in zip(rows, self.sides, strict=True)
            ),
        )

    def _in_scale(self, lp: RationalLP) -> RationalLP:
        """The same program at the costs that solvers see: the same points are optimal."""
        scaled = RationalLP(lp.columns, lp.bits)
        scaled.bounds, scaled.sides, scaled.rows = lp.bounds, lp.sides, lp.rows
        scaled.cost = [cost * Fraction(self.program.cost) for cost in lp.cost]
        return scaled

    def _values(self, x: Fraction, delta: Fraction) -> dict[str, list[Fraction]]:
        """Those of the parameters there, entry by entry; of such that x does not move as floats have them."""
        values = {}
        for name, shape in self.program.parameters.items():
            if name == self.delta:
                values[name] = [delta]
            elif name in self.powers:
                values[name] = [evaluate_polynomial(power, x) for power in self.powers[name]]
            else:
                values[name] = [
                    Fraction(float(value)) for value in self.numbers[name][: prod(shape)]
                ]
        return values

    def refine_basis(self, x: Fraction, delta: Fraction) -> Basis:
        """That of rational refinement, which tells apart what a solver's tolerance does not. x: a dyadic rational.
        Raises NoRationalSolution."""
        lp = RationalLP.from_program(self.program, self._values(x, delta))
        point = solve_rational(lp if self.program.cost == 1 else self._in_scale(lp))
        columns = zip(point.is_column_fixed.tolist(), point.x, lp.bounds, strict=True)
        activity = [sum((a * point.x[j] for j, a in row.items()), Fraction(0)) for row in lp.rows]
        rows = zip(point.is_row_tight.tolist(), activity, lp.sides, strict=True)
        return Basis(tuple(starmap(_nearest_side, columns)), tuple(starmap(_nearest_side, rows)))

    def close(self) -> None:
        """Give the solver's resources back."""
        if self._session is not None:
            self._session.close()
        if "relaxation" in vars(self):
            self.relaxation.close()

    def find_optimal_vertices(
        self, x: Fraction, low: Fraction, high: Fraction
    ) -> list[tuple[Fraction, Fraction, Vertex]]:
        """The vertices so far that are optimal at x for some part of an interval of δ, each with that part."""
        ranges = (
            (*v.feasible_deltas(x, low, high), v)
            for v in reversed(self._vertices.values())
            if v.has_dual_feasibility(x)
        )
        return [part for part in ranges if part[0] < part[1]]

    def compute_vertex(self, basis: Basis) -> Vertex:
        """The point, the multipliers and the conditions of a basis. Raises NoRationalSolution when it is singular."""
        if basis not in self._vertices:
            self._vertices[basis] = self._vertex(basis)
        return self._vertices[basis]

    def _vertex(self, basis: Basis) -> Vertex:
        free = [j for j, at in enumerate(basis.columns) if not at]
        tight = [i for i, at in enumerate(basis.rows) if at]
        if len(free) != len(tight):
            raise NoRationalSolution(
                f"The basis has {len(tight)} equations for {len(free)} unknowns."
            )
        held = {
            j: Affine.from_number(ends[at > 0] or 0)
            for j, (at, ends) in enumerate(zip(basis.columns, self.bounds, strict=True))
            if at
        }
        unknown = set(free)
        equations = []
        for i in tight:
            row, side = self.rows[i], self.sides[i][basis.rows[i] > 0]
            if side is None:
                raise NoRationalSolution("The basis holds a row where it has no side.")
            right = Affine.from_ratio(*side, ONE)
            for j, entry in row.items():
                if j in held and held[j].constant:
                    right = right - held[j].multiply(entry)
            equations.append(({j: entry for j, entry in row.items() if j in unknown}, right))
        point = solve_affine_system(equations) | held
        transposed: dict[int, dict[int, Poly]] = {j: {} for j in free}
        for i in tight:
            for j, entry in self.rows[i].items():
                if j in unknown:
                    transposed[j][i] = entry
        multipliers = solve_affine_system([(transposed[j], _to_affine(self.cost[j])) for j in free])
        value = _to_affine(self.offset)
        for j, cost in enumerate(self.cost):
            if cost:
                value = value + point[j].multiply(cost.numer(), fmpz_poly([int(cost.denom())]))
        return Vertex(
            basis,
            tuple(point[j] for j in range(len(self.cost))),
            tuple(multipliers.get(i, Affine.from_number(0)) for i in range(len(self.rows))),
            value,
            _unique_conditions(self._primal(basis, point)),
            _unique_conditions(self._dual(basis, multipliers)),
        )

    def _primal(self, basis: Basis, point: Mapping[int, Affine]) -> list[Affine]:
        """Basic columns and rows within their sides."""
        conditions = []
        for j, (at, ends) in enumerate(zip(basis.columns, self.bounds, strict=True)):
            if not at:
                conditions += _range_conditions(
                    point[j], [None if end is None else Affine.from_number(end) for end in ends]
                )
        for i, (at, sides) in enumerate(zip(basis.rows, self.sides, strict=True)):
            if not at:
                activity = Affine.from_number(0)
                for j, entry in self.rows[i].items():
                    activity = activity + point[j].multiply(entry)
                conditions += _range_conditions(
                    activity,
                    [None if side is None else Affine.from_ratio(*side, ONE) for side in sides],
                )
        return conditions

    def _dual(self, basis: Basis, multipliers: Mapping[int, Affine]) -> list[Affine]:
        """Reduced costs of what is held, signed: what must not be negative."""
        reduced = {j: _to_affine(self.cost[j]) for j, at in enumerate(basis.columns) if at}
        conditions = []
        for i, y in multipliers.items():
            low, high = self.sides[i]
            if low != high:
                conditions.append(y if basis.rows[i] < 0 else y.multiply(-ONE))
            if y.constant:
                for j, entry in self.rows[i].items():
                    if j in reduced:
                        reduced[j] = reduced[j] - y.multiply(entry)
        for j, cost in reduced.items():
            low_end, high_end = self.bounds[j]
            if low_end is None and high_end is None:
                conditions += [
                    cost,
                    cost.multiply(-ONE),
                ]  # a free column that is held costs nothing
            elif low_end != high_end:
                conditions.append(cost if basis.columns[j] < 0 else cost.multiply(-ONE))
        return conditions


def _to_polynomial(value: Fraction) -> fmpq_poly:
    return fmpq_poly([fmpq(value.numerator, value.denominator)])


def _sum_parameters(
    base: Fraction, terms: Iterable[tuple[int, Fraction]], parameters: Sequence[Entry]
) -> Entry:
    """base + Σ factor * parameter."""
    constant, slope = _to_polynomial(base), fmpq_poly([])
    for at, factor in terms:
        share, (first, second) = _to_polynomial(factor), parameters[at]
        constant, slope = constant + share * first, slope + share * second
    return constant, slope


def _require_constant_in_delta(entry: Entry | None) -> fmpq_poly:
    """An entry that δ does not move. Raises NoRationalSolution."""
    if entry is None or entry[1]:
        raise NoRationalSolution(
            "A formula in delta needs a program where delta moves sides of rows only."
        )
    return entry[0]


def _column_bound(entry: Entry | None) -> Fraction | None:
    """A bound of a column, a number; None where there is none. Raises NoRationalSolution."""
    if entry is None:
        return None
    if (value := _require_constant_in_delta(entry)).degree() > 0:
        raise NoRationalSolution("A formula needs columns whose bounds no parameter moves.")
    return to_fraction(value[0])


def _to_affine(polynomial: fmpq_poly) -> Affine:
    return Affine.from_ratio(polynomial.numer(), ZERO, fmpz_poly([int(polynomial.denom())]))


def _side_of_status(status: int, ends: tuple[object, object]) -> int:
    """-1, 0 or 1 of a solver's word."""
    if status == _BASIC:
        return 0
    return 1 if ends[1] is not None and (status == _AT_UPPER or ends[0] is None) else -1


def _nearest_side(
    held: bool, value: Fraction, ends: tuple[Rational | None, Rational | None]
) -> int:
    """-1, 0 or 1 of a value that is held at the nearer of its ends."""
    low, high = ends
    if not held or high is None:
        return -int(held)
    return 1 if low is None or abs(high - value) < abs(value - low) else -1


def _unique_conditions(conditions: Sequence[Affine]) -> tuple[Affine, ...]:
    """Those that are no numbers >= 0, each once."""
    kept: dict[tuple[Ints, ...], Affine] = {}
    for condition in conditions:
        parts = condition.constant, condition.slope, condition.denominator
        if (
            condition.slope
            or any(part.degree() > 0 for part in parts)
            or condition(Fraction(1)) < 0
        ):
            kept.setdefault(tuple(tuple(map(int, part.coeffs())) for part in parts), condition)
    return tuple(kept.values())


def _range_conditions(value: Affine, ends: Sequence[Affine | None]) -> list[Affine]:
    low, high = ends
    return ([] if low is None else [value - low]) + ([] if high is None else [high - value])
