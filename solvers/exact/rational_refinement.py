"""Iterative refinement: a double-precision solver taken far beyond double precision.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A, c are rationals with a power of two as denominator, the bounds and x are integers over 2^P: residuals are exact. The
free columns and tight rows of a basis are two systems of linear equations, A x = side and A'y = c, factored once in
doubles and refined by exact residuals, about 45 bits a turn. Where the exact point violates rows or bounds, the program
is solved for a correction z of it, blown up until the solver sees what was below its tolerance (iterative refinement:
Gleixner, Steffy and Wolter, INFORMS J. Computing 28, 2016),

    minimise   D c'z    s.t.    S (lo - A x) <= A z <= S (hi - A x),   S (l - x) <= z <= S (u - x)

whose basis is the next one; D > 1 where multipliers have a wrong sign that the solver did not see. The matrix of all
rounds is one, so one live solver object takes them all; only costs and bounds move. Numbers of the program are kept as
integers over 2^(S+P), with 2^S the common denominator of A and c, columns before rows.

Masses of 1e-40 come out right although a solver alone calls them zero. What is returned is proven here and not by the
solver: the violations that are left, exactly, and the Lagrangian bound of y.
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

from workbench.solvers.arrays import Flags, Positions, Vector
from workbench.solvers.backend import Options, get_backend
from workbench.solvers.data import floor_to_bits
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.rational_lp import Integers, RationalLP, RationalPoint, to_object_array
from workbench.solvers.program import Data, Program
from workbench.solvers.search import Deadline
from workbench.solvers.session import Session
from workbench.solvers.solution import Solution, Termination

Side = tuple[Flags, Integers]  # whether there is a bound, and which
_AT_LOWER, _AT_UPPER = 0, 2  # of HiGHS's HighsBasisStatus, whose names take long to read
_ROUNDS = 24
_BLOWN = 20  # bits, of the first solve's bounds, and of costs: HiGHS's dual simplex method fails at costs of 1e8
_HUGE = 1e14  # a scaled bound beyond this is no bound for a correction
_SMALL = 150  # equations up to which a dense inverse takes less time than sparse factors
_CLOSE = 1 << 50  # a basis is optimal where its point and its multipliers agree to this share
_LEAST = 1e-8  # solvers drop smaller coefficients; the residuals still see them


def solve_rational(
    lp: RationalLP,
    *,
    bound_program: RationalLP | None = None,
    accuracy: int = 230,
    time_limit: float | None = None,
    basis: Any = None,
    held_sides: tuple[Flags, Flags] | None = None,
) -> RationalPoint:
    """Refine until every violation is below 2^-accuracy. time_limit: seconds for all rounds.

    relaxed: another program of the same rows, columns and bits, of whose optimum the bound is to be. basis: of HiGHS,
    for a program of these rows and columns, that may be optimal. held: the columns and rows that another such basis
    holds at their lower, and at their upper bounds; it is tried first.

    Raises:
        NoRationalSolution: the program is infeasible, refinement stopped gaining digits, or there was no time left
            (all in words).
    """
    with _Refinement(lp, bound_program or lp, accuracy, time_limit) as refinement:
        if held_sides is not None:
            refinement.held = held_sides
            if (exact := refinement.at_basis()) is not None and _is_proven(exact):
                return exact
        exact = (basis and refinement.near_basis(basis)) or refinement.near_basis(None)
        if exact is None:
            raise NoRationalSolution(
                "Refining the solver's answer did not reach an exactly feasible point."
            )
        return exact


def _is_proven(exact: RationalPoint) -> bool:
    return (
        exact.bound is not None and exact.objective - exact.bound <= abs(exact.objective) / _CLOSE
    )


def read_held_sides(basis: Any) -> tuple[Flags, Flags]:
    """The columns and rows that a basis of HiGHS holds at their lower, and at their upper bounds."""
    numbers = np.frombuffer(bytes([*basis.col_status, *basis.row_status]), np.uint8)
    return numbers == _AT_LOWER, numbers == _AT_UPPER


class _Refinement:
    """The state of one solve: exact integers, and the live solver that sees their leading digits."""

    def __init__(
        self, lp: RationalLP, bounded: RationalLP, accuracy: int, time_limit: float | None
    ) -> None:
        """bounded: whose optimum the multipliers bound."""
        self.deadline = Deadline(time_limit)
        self.lp, self.bounded, self.accuracy, self.P = lp, bounded, accuracy, lp.bits
        self.i, self.j, self.a, self.floats, cost, common = lp.integers
        if common & (common - 1):
            raise NoRationalSolution(
                "The exact program has a coefficient that is no dyadic rational; round it first."
            )
        self.S, self.c = common.bit_length() - 1, cost << self.P
        self.low, self.high = self._sides()
        self.session: Session | None = None
        self.point: Integers | None = (
            None  # columns and activities of the rows at the last basis, if it has any
        )
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
        lower, upper = (
            np.concatenate([symbols.codes[end], symbols.codes[f"row_{end}"]])
            for end in ("lower", "upper")
        )
        low = to_object_array([-((-v.numerator << P) // v.denominator) for v in values])[lower]
        high = to_object_array([(v.numerator << P) // v.denominator for v in values])[upper]
        above, below = symbols.is_finite[lower], symbols.is_finite[upper]
        for k in np.flatnonzero(above & below & (low > high)).tolist():
            if values[lower[k]] <= values[upper[k]]:  # an equation whose side is not over 2^P
                low[k] = high[k] = round(Fraction(values[lower[k]]) * (1 << P))
        return (above, low << self.S), (below, high << self.S)

    @cached_property
    def matrix(self) -> sp.csc_array:
        """The matrix in doubles."""
        keep, shape = (
            np.abs(self.floats) >= _LEAST,
            (self.low[0].size - self.lp.columns, self.lp.columns),
        )
        return sp.csc_array((self.floats[keep], (self.i[keep], self.j[keep])), shape=shape)

    def at_basis(self) -> RationalPoint | None:
        """The point and the multipliers of the basis, None unless both are found to 2^-accuracy, and the point is
        feasible."""
        n, (low, high) = self.lp.columns, self.held
        free = ~(low | high)
        self.point = None
        columns, rows = np.flatnonzero(free[:n]), np.flatnonzero(~free[n:])
        sides = np.where(low, self.low[1], self.high[1])
        if columns.size != rows.size or not np.where(low, self.low[0], self.high[0])[~free].all():
            return None
        x, y = np.where(free[:n], 0, sides[:n] >> self.S), to_object_array([0] * free[n:].size)
        place = np.full(free.size, -1)
        place[columns], place[n + rows] = np.arange(columns.size), np.arange(rows.size)
        inside = (place[self.j] >= 0) & (place[n + self.i] >= 0)
        system = _System(
            place[n + self.i[inside]],
            place[self.j[inside]],
            self.a[inside],
            self.floats[inside],
            rows.size,
        )
        goal = self.P + self.S - self.accuracy - 1
        if (correct := system.solved((sides - self._point(x))[n + rows], self.S, goal)) is None:
            return None
        x[columns] = correct
        self.point = self._point(x)
        violation = self._violation(self.point)
        if violation > 1 << (self.P - self.accuracy):
            return None
        if (correct := system.transposed.solved(self.c[columns], self.S, goal)) is None:
            return None
        y[rows] = correct
        return RationalPoint(
            self.lp,
            [Fraction(v, 1 << self.P) for v in x.tolist()],
            Fraction(sum((self.c * x).tolist()), 1 << (self.S + 2 * self.P)),
            self.bounded.lagrangian_bound_over(y.tolist(), 1 << self.P),
            Fraction(violation, 1 << self.P),
            ~free[n:],
            ~free[:n],
        )

    def near_basis(self, basis: Any) -> RationalPoint | None:
        """The same of a basis of HiGHS, or of one near it: where the exact point violates rows or bounds, or its
        multipliers do not prove it, a correction is sought that mends it. None where that leads nowhere.

        basis: None for that of the program at the solver's tolerances. Raises NoRationalSolution.
        """
        if basis is None:
            solution = self._solve(self._point(to_object_array([0] * self.lp.columns)), _BLOWN)
            if solution.basis is None:
                why = f"The exact program of the solver's pattern has no answer: {solution.raw_status}."
                raise NoRationalSolution(why)
            basis = solution.basis
        grown, steep, known = 0, 0, None
        while True:
            self.held = read_held_sides(basis)
            exact = self.at_basis()
            known = exact or known
            if self.point is None or (exact is not None and (steep or _is_proven(exact))):
                break
            grow = self.P - self._violation(self.point).bit_length()
            if exact is not None:
                grow, steep = _BLOWN, _BLOWN
            elif not grown < grow < self.accuracy:
                break
            grown = grow
            solution = self._solve(self.point, grow, steep, basis)
            if (basis := solution.basis) is None:
                break
        self.__exit__()
        return known

    def _point(self, x: Integers) -> Integers:
        """The columns and the activities of the rows."""
        activity, counted = to_object_array([0] * (self.low[0].size - x.size)), (x != 0)[self.j]
        np.add.at(activity, self.i[counted], self.a[counted] * x[self.j[counted]])
        return np.concatenate([x << self.S, activity])

    def _violation(self, point: Integers) -> int:
        """The largest violation, over 2^P, rounded up."""
        (below, low), (above, high) = self.low, self.high
        gaps = [0, *(low[below] - point[below]).tolist(), *(point[above] - high[above]).tolist()]
        return -(-int(max(gaps)) >> self.S)

    def _moved(self, point: Integers, grow: int) -> list[Vector]:
        """Lower and upper bounds of a correction of a point, 2^grow times as large; those that are far are none."""
        bounds = []
        for (there, value), otherwise in ((self.low, -np.inf), (self.high, np.inf)):
            gap = _to_doubles(value - point, self.P + self.S - grow)
            bounds.append(np.where(there & (np.abs(gap) < _HUGE), gap, otherwise))
        return bounds

    def _solve(self, point: Integers, grow: int, steep: int = 0, first: Any = None) -> Solution:
        """A correction of a point, 2^grow times as large, at costs 2^steep times as large; hot from the basis of the
        last round, or `first` in the first; from none where that one leads nowhere."""
        n, (lower, upper) = self.lp.columns, self._moved(point, grow)
        cost = _to_doubles(self.c, self.P + self.S - steep)
        sides = lower[n:], upper[n:], lower[:n], upper[:n]
        program = Program(
            "correction of a basis", Data(cost, 0.0, self.matrix, *sides, np.zeros(n, dtype=bool))
        )
        if self.session is None:
            tight = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
            plain = {"presolve": "off"}  # which calls programs with ratios close to 1 infeasible
            self.session = get_backend("highs").open(program, Options(native=tight | plain))
            return self.session.solve(
                start="hot" if first is None else "basis", basis=first, time_limit=self._left()
            )
        self.session.follow(program)
        solution = self.session.solve(time_limit=self._left())
        if solution.termination is Termination.OPTIMAL:
            return solution
        return self.session.solve(start="cold", time_limit=self._left())

    def _left(self) -> float | None:
        """Seconds that are left, None without a limit. Raises NoRationalSolution when none are."""
        if self.deadline.has_passed:
            raise NoRationalSolution(
                "There was no time left to solve the exact program of the solver's pattern."
            )
        return self.deadline.solver_time_limit


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
                self._solve = lambda right, transpose: factors.solve(
                    right, "T" if transpose else "N"
                )

    @property
    def transposed(self) -> _System:
        """The transposed system, of the same factors."""
        other, (i, j, a) = copy.copy(self), self.entries
        other.entries, other.transpose = (j, i, a), True
        return other

    def solved(self, right: Integers, S: int, goal: int) -> Integers | None:
        """v over 2^P, where the right side is over 2^(P+S): residuals are at most 2^goal; None if it is lost."""
        i, j, a = self.entries
        v, before = to_object_array([0] * self.size), None
        for _ in range(_ROUNDS):
            residual = right.copy()
            np.subtract.at(residual, i, a * v[j])
            worst = max(map(abs, residual.tolist()), default=0)
            if worst <= 1 << goal:
                return v
            if self._solve is None or (before is not None and worst > before >> 8):
                return None
            before, shift = worst, max(0, worst.bit_length() - 53)
            step = self._solve(_to_doubles(residual, shift), self.transpose)
            if not np.isfinite(step).all():
                return None
            v = v + floor_to_bits(step, shift - S)
        return None


def _to_doubles(values: Integers, shift: int) -> Vector:
    """values / 2^shift, each the nearest float or one of size 2^1000."""
    try:
        return np.asarray(values / (1 << shift), dtype=np.float64)
    except OverflowError:
        most = 1 << (1000 + shift)
        return _to_doubles(
            to_object_array([max(-most, min(most, v)) for v in values.tolist()]), shift
        )
