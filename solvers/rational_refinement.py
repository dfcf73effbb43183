"""Iterative refinement: a double-precision solver taken far beyond double precision.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A, c are rationals with a power of two as denominator, the bounds and x are integers over 2^P: residuals are exact. One
round solves the same program for a correction z of the point and its multipliers, blown up until the solver sees what
was below its tolerance (iterative refinement: Gleixner, Steffy and Wolter, INFORMS J. Computing 28, 2016),

    minimise   D (c - A'y)'z + D y't
    s.t.       A z = t,   S (lo - A x) <= t <= S (hi - A x),   S (l - x) <= z <= S (u - x)
    x <- x + z/S,   y <- y + w/D     (w the multipliers of A z = t)

The matrix of all rounds is one, so one live solver object takes them all; only costs and bounds move. Numbers of the
program are kept as integers over 2^(S+P), with 2^S the common denominator of A and c, columns before rows.

Every round gains about 30 bits, so masses of 1e-40 come out right although a solver alone calls them zero. Where the
first basis, that of the caller or of the first round, is optimal in exact numbers, no other round is needed: its free
columns and tight rows are two systems of linear equations, A x = side and A'y = c, factored once and refined by exact
residuals, about 45 bits a turn. A basis that a caller's solver took for optimal is often wrong in the tail alone: then
the program is solved for a correction of its exact point, which leads to the next basis (`near_basis`).

What is returned is proven here and not by the solver: the violations that are left, exactly, and the Lagrangian bound
of y.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import Flags, Positions, Vector
from .backend import Options, backend
from .errors import NoRationalSolution
from .program import Data, Program
from .rational_lp import Integers, RationalLP, RationalPoint, object_array
from .search import Deadline
from .session import Session
from .solution import Solution, Termination

Side = tuple[Flags, Integers]  # whether there is a bound, and which
_AT_LOWER, _AT_UPPER = 0, 2  # of HiGHS's HighsBasisStatus, whose names take long to read
_ROUNDS = 24
_STEP = 30  # bits a round may gain
_DUAL = 3  # rounds at the scale of the program, which settle the basis
_HUGE = 1e14  # a scaled bound beyond this is no bound for a correction
_STEEP = 1e6  # the largest scaled cost: HiGHS's dual simplex method fails at larger ones, of 1e8 with 400 columns
_SMALL = 150  # equations up to which a dense inverse takes less time than sparse factors
_CLOSE = 1 << 50  # a basis is optimal where its point and its multipliers agree to this share
_LEAST = 1e-8  # solvers drop smaller coefficients; the residuals still see them


def solve_rational(
    lp: RationalLP,
    *,
    relaxed: RationalLP | None = None,
    accuracy: int = 230,
    time_limit: float | None = None,
    basis: Any = None,
    held: tuple[Flags, Flags] | None = None,
) -> RationalPoint:
    """Refine until every violation is below 2^-accuracy. time_limit: seconds for all rounds.

    relaxed: another program of the same rows, columns and bits, of whose optimum the bound is to be. basis: of HiGHS,
    for a program of these rows and columns, that may be optimal. held: the columns and rows that another such basis
    holds at their lower, and at their upper bounds; it is tried first.

    Raises:
        NoRationalSolution: the program is infeasible, refinement stopped gaining digits, or there was no time left
            (all in words).
    """
    bounded = relaxed or lp
    with _Refinement(lp, time_limit) as refinement:
        if held is not None:
            refinement.held = held
            if (exact := refinement.at_basis(accuracy, bounded)) is not None:
                return exact
        near = None if basis is None else refinement.near_basis(basis, accuracy, bounded)
        return near or refinement.run(accuracy, bounded)


def held_by(basis: Any) -> tuple[Flags, Flags]:
    """The columns and rows that a basis of HiGHS holds at their lower, and at their upper bounds."""
    numbers = np.frombuffer(bytes([*basis.col_status, *basis.row_status]), np.uint8)
    return numbers == _AT_LOWER, numbers == _AT_UPPER


class _Refinement:
    """The state of one solve: exact integers, and the live solver that sees their leading digits."""

    def __init__(self, lp: RationalLP, time_limit: float | None) -> None:
        self.deadline = Deadline(time_limit)
        self.lp, self.P = lp, lp.bits
        self.i, self.j, self.a, self.floats, cost, common = lp.integers
        if common & (common - 1):
            raise NoRationalSolution("The exact program has a coefficient that is no dyadic rational; round it first.")
        self.S, self.c = common.bit_length() - 1, cost << self.P
        self.low, self.high = self._sides()
        self.session: Session | None = None
        self.point: Integers | None = None  # columns and activities of the rows at the last basis, if it has any
        self.held = self.low[0], self.high[0]  # columns and rows at their lower, upper bound

    def __enter__(self) -> _Refinement:
        return self

    def __exit__(self, *_: object) -> None:
        if self.session is not None:
            self.session.close()
        self.session = None

    def _sides(self) -> tuple[Side, Side]:
        """Lower and upper bounds, rounded inwards to integers over 2^P: where there are any, and 2^S times each."""
        symbols, P = self.lp.symbols, self.P
        values = [value or 0 for value in symbols.values]
        lower, upper = (np.concatenate([symbols.codes[end], symbols.codes[f"row_{end}"]]) for end in ("lower", "upper"))
        low = object_array([-((-v.numerator << P) // v.denominator) for v in values])[lower]
        high = object_array([(v.numerator << P) // v.denominator for v in values])[upper]
        above, below = symbols.there[lower], symbols.there[upper]
        for k in np.flatnonzero(above & below & (low > high)).tolist():
            if values[lower[k]] <= values[upper[k]]:  # an equation whose side is not over 2^P
                low[k] = high[k] = round(Fraction(values[lower[k]]) * (1 << P))
        return (above, low << self.S), (below, high << self.S)

    @cached_property
    def matrix(self) -> sp.csc_array:
        """The matrix in doubles."""
        keep, shape = np.abs(self.floats) >= _LEAST, (self.low[0].size - self.lp.columns, self.lp.columns)
        return sp.csc_array((self.floats[keep], (self.i[keep], self.j[keep])), shape=shape)

    @cached_property
    def A(self) -> sp.csc_array:
        """The matrix, and a column t = A z for every row, so that multipliers of either sign can be corrected."""
        return sp.csc_array(sp.hstack([self.matrix, -sp.eye_array(self.matrix.shape[0])]))

    def at_basis(self, accuracy: int, bounded: RationalLP, counted: Flags | bool = True) -> RationalPoint | None:
        """The point and the multipliers of the basis, None unless both are feasible to 2^-accuracy and prove each other
        optimal. bounded: whose optimum the multipliers bound; counted: which rows' equations count."""
        n, (low, high) = self.lp.columns, self.held
        free = ~(low | high)
        free[n:] |= ~np.asarray(counted)
        self.point = None
        columns, rows = np.flatnonzero(free[:n]), np.flatnonzero(~free[n:])
        sides = np.where(low, self.low[1], self.high[1])
        if columns.size != rows.size or not np.where(low, self.low[0], self.high[0])[~free].all():
            return None
        x, y = np.where(free[:n], 0, sides[:n] >> self.S), object_array([0] * free[n:].size)
        place = np.full(free.size, -1)
        place[columns], place[n + rows] = np.arange(columns.size), np.arange(rows.size)
        inside = (place[self.j] >= 0) & (place[n + self.i] >= 0)
        system = _System(
            place[n + self.i[inside]], place[self.j[inside]], self.a[inside], self.floats[inside], rows.size
        )
        goal = self.P + self.S - accuracy - 1
        if (correct := system.solved((sides - self._point(x))[n + rows], self.S, goal)) is None:
            return None
        x[columns] = correct
        self.point = self._point(x)
        if self._violation(self.point) > 1 << (self.P - accuracy):
            return None
        if (correct := system.transposed.solved(self.c[columns], self.S, goal)) is None:
            return None
        y[rows] = correct
        exact = self._result(self.point, y, bounded, ~free[n:], ~free[:n])
        proven = exact.bound is not None and exact.objective - exact.bound <= abs(exact.objective) / _CLOSE
        return exact if proven else None

    def near_basis(self, basis: Any, accuracy: int, bounded: RationalLP) -> RationalPoint | None:
        """The same of a basis of HiGHS, or of one near it: where the exact point violates rows or bounds, a correction
        is sought that mends it, blown up until a solver sees it. None where that leads nowhere.

        Multipliers need none: those of a basis are exact.
        """
        n, shift, grown = self.lp.columns, self.P + self.S, 0
        cost, nothing = _floats(self.c, shift), np.zeros(self.lp.columns, dtype=bool)
        while True:
            self.held = held_by(basis)
            exact = self.at_basis(accuracy, bounded)
            if exact is not None or self.point is None:
                break
            grow = self.P - self._violation(self.point).bit_length()
            if not grown < grow < accuracy:
                break
            grown, (lower, upper) = grow, self._moved(self.point, grow)
            data = Data(cost, 0.0, self.matrix, lower[n:], upper[n:], lower[:n], upper[:n], nothing)
            solution = self._solve(Program("correction of a basis", data), basis)
            if solution.termination is not Termination.OPTIMAL or (basis := solution.basis) is None:
                break
        self.__exit__()
        return exact

    def _result(
        self,
        point: Integers,
        y: Integers,
        bounded: RationalLP,
        tight: Flags,
        fixed: Flags,
        bound: Fraction | None = None,
    ) -> RationalPoint:
        """Columns, and activities of rows, with what they violate, and the better of the bound of multipliers over 2^P
        and another."""
        x = point[: self.lp.columns] >> self.S
        P, own = self.P, bounded.bound_over(y.tolist(), 1 << self.P)
        value = Fraction(sum((self.c * x).tolist()), 1 << (self.S + 2 * P))
        violation = Fraction(self._violation(point), 1 << P)
        best = max((b for b in (bound, own) if b is not None), default=None)
        return RationalPoint(self.lp, [Fraction(v, 1 << P) for v in x.tolist()], value, best, violation, tight, fixed)

    def run(self, accuracy: int, bounded: RationalLP) -> RationalPoint:
        """Round after round until every violation is below 2^-accuracy. bounded: whose optimum the multipliers bound.
        Raises NoRationalSolution."""
        m, n, P, S = len(self.lp.sides), self.lp.columns, self.P, self.S
        x, y = object_array([0] * n), object_array([0] * m)  # over 2^P
        grow, dual_grow, stalls, best = 20, 0, 0, 1 << (P + 8)
        early = None  # a basis that is left later for a feasible one has worse multipliers
        for turn in range(_ROUNDS):
            point = self._point(x)
            violation = self._violation(point)
            if turn == _DUAL:
                early = bounded.bound_over(y.tolist(), 1 << P)
            if turn >= _DUAL:
                if violation <= 1 << (P - accuracy):
                    break
                stalls = stalls + 1 if violation > best >> 4 else 0
                if stalls > 2:
                    raise NoRationalSolution("Refining the solver's answer stopped gaining digits.")
                grow = min(grow + 2 * _STEP, max(20, P - violation.bit_length()))
                best = min(best, violation)
            z, w, tight, (low, high) = self._correct(point, self._prices(y), grow, dual_grow, turn >= _DUAL)
            if turn in (0, *range(_DUAL, _ROUNDS)) and (exact := self.at_basis(accuracy, bounded, tight)) is not None:
                return exact
            x = x + scaled(z[:n], P - grow)
            y = y + scaled(w, P - dual_grow)
            x = np.where(low[:n], self.low[1][:n] >> S, np.where(high[:n], self.high[1][:n] >> S, x))
            dual_grow = min(dual_grow + _STEP, _STEP * (_DUAL - 1))
        at = self.held[0] | self.held[1]
        refined = self._result(self._point(x), y, bounded, at[n:] & tight, at[:n], early)
        if refined.violation > Fraction(1, 1 << 100):
            raise NoRationalSolution("Refining the solver's answer did not reach an exactly feasible point.")
        return refined

    def _point(self, x: Integers) -> Integers:
        """The columns and the activities of the rows."""
        activity, counted = object_array([0] * (self.low[0].size - x.size)), (x != 0)[self.j]
        np.add.at(activity, self.i[counted], self.a[counted] * x[self.j[counted]])
        return np.concatenate([x << self.S, activity])

    def _prices(self, y: Integers) -> Integers:
        """The reduced costs c - A'y of the columns, and the multipliers y of the rows, which are theirs."""
        transposed = object_array([0] * self.lp.columns)
        np.add.at(transposed, self.j, self.a * y[self.i])
        return np.concatenate([self.c - transposed, y << self.S])

    def _violation(self, point: Integers) -> int:
        """The largest violation, over 2^P, rounded up."""
        (below, low), (above, high) = self.low, self.high
        gaps = [0, *(low[below] - point[below]).tolist(), *(point[above] - high[above]).tolist()]
        return -(-int(max(gaps)) >> self.S)

    def _moved(self, point: Integers, grow: int) -> list[Vector]:
        """Lower and upper bounds of a correction of a point, 2^grow times as large; those that are far are none."""
        bounds = []
        for (there, value), otherwise in ((self.low, -np.inf), (self.high, np.inf)):
            gap = _floats(value - point, self.P + self.S - grow)
            bounds.append(np.where(there & (np.abs(gap) < _HUGE), gap, otherwise))
        return bounds

    def _correct(
        self, point: Integers, prices: Integers, grow: int, dual_grow: int, optimal: bool
    ) -> tuple[Vector, Vector, Flags, tuple[Flags, Flags]]:
        """One solve: the correction of columns and rows, that of the multipliers, which rows' equations count, and
        which columns and rows are held at a finite lower, upper bound.

        optimal: the basis is optimal, so basic columns cost nothing and others what keeps them at their bound; then
        no digit beyond the solver's can make the program unbounded.
        """
        lower, upper = self._moved(point, grow)
        cost = np.clip(_floats(prices, self.P + self.S - dual_grow), -_STEEP, _STEEP)
        if optimal:
            low, high = self.held
            cost = np.clip(cost, np.where(high, -np.inf, 0), np.where(low, np.inf, 0))
        nothing = np.zeros(self.A.shape[0])
        data = Data(cost, 0.0, self.A, nothing, nothing, lower, upper, np.zeros(cost.size, dtype=bool))
        solution = self._solve(Program("refinement of an exact program", data))
        if solution.x is None or solution.row_dual is None or solution.termination is not Termination.OPTIMAL:
            raise NoRationalSolution(f"The exact program of the solver's pattern has no answer: {solution.raw_status}.")
        (low, high), size = held_by(solution.basis), lower.size
        at = low | high
        fixed = (lower == upper) & at[:size]
        self.held = low, high = low[:size] | fixed, high[:size] | fixed
        return solution.x, solution.row_dual, at[size:], (low & np.isfinite(lower), high & np.isfinite(upper))

    def _solve(self, program: Program, first: Any = None) -> Solution:
        """The answer, hot from the basis of the last round, or `first` in the first; from none where that one leads
        nowhere."""
        if self.session is None:
            tight = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
            self.session = backend("highs").open(program, Options(native=tight))
            return self.session.solve(start="hot" if first is None else "basis", basis=first, time_limit=self._left())
        self.session.follow(program)
        solution = self.session.solve(time_limit=self._left())
        if solution.termination is Termination.OPTIMAL:
            return solution
        return self.session.solve(start="cold", time_limit=self._left())

    def _left(self) -> float | None:
        """Seconds that are left, None without a limit. Raises NoRationalSolution when none are."""
        if self.deadline.passed:
            raise NoRationalSolution("There was no time left to solve the exact program of the solver's pattern.")
        return self.deadline.limit


class _System:
    """A square system of linear equations: entries as integers over 2^S and as doubles, in which it is factored."""

    def __init__(self, i: Positions, j: Positions, a: Integers, floats: Vector, size: int) -> None:
        self.entries, self.size, self.transpose = (i, j, a), size, False
        self._solve: Callable[[Vector, bool], Vector] | None = None
        if size <= _SMALL:
            dense = np.zeros((size, size))
            dense[i, j] = floats
            with contextlib.suppress(np.linalg.LinAlgError):
                inverse = np.linalg.inv(dense)
                self._solve = lambda right, transpose: (inverse.T if transpose else inverse) @ right
        else:
            from scipy.sparse.linalg import splu  # slow to import

            with contextlib.suppress(RuntimeError):  # a singular system
                factors: Any = splu(sp.csc_array((floats, (i, j)), shape=(size, size)))
                self._solve = lambda right, transpose: factors.solve(right, "T" if transpose else "N")

    @property
    def transposed(self) -> _System:
        """The transposed system, of the same factors."""
        other, (i, j, a) = copy.copy(self), self.entries
        other.entries, other.transpose = (j, i, a), True
        return other

    def solved(self, right: Integers, S: int, goal: int) -> Integers | None:
        """v over 2^P, where the right side is over 2^(P+S): residuals are at most 2^goal; None if it is lost."""
        i, j, a = self.entries
        v, before = object_array([0] * self.size), None
        for _ in range(_ROUNDS):
            residual = right.copy()
            np.subtract.at(residual, i, a * v[j])
            worst = max(map(abs, residual.tolist()), default=0)
            if worst <= 1 << goal:
                return v
            if self._solve is None or (before is not None and worst > before >> 8):
                return None
            before, shift = worst, max(0, worst.bit_length() - 53)
            step = self._solve(_floats(residual, shift), self.transpose)
            if not np.isfinite(step).all():
                return None
            v = v + scaled(step, shift - S)
        return None


def _floats(values: Integers, shift: int) -> Vector:
    """values / 2^shift, each the nearest float or one of size 2^1000."""
    try:
        return np.asarray(values / (1 << shift), dtype=np.float64)
    except OverflowError:
        most = 1 << (1000 + shift)
        return _floats(object_array([max(-most, min(most, v)) for v in values.tolist()]), shift)


def scaled(values: Vector, shift: int) -> Integers:
    """⌊values 2^shift⌋, exactly. Of the shape of values."""
    fraction, exponent = np.frexp(values)
    digits = (fraction * 2.0**53).astype(np.int64).astype(object)  # exact: a double has 53 bits
    up = exponent.astype(np.int64) - 53 + shift
    return np.asarray((digits << np.maximum(up, 0).astype(object)) >> np.maximum(-up, 0).astype(object))
