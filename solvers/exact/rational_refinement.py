"""Iterative refinement: linear programs solved far beyond double precision.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A and c are rationals whose denominators are powers of two. The bounds and x are integers over 2^P.
Therefore residuals are exact. The basic columns and tight rows of a basis give two systems of
linear equations, A x = side and A'y = c. They are factored once in doubles. Each turn computes the
exact residual and solves for it, which adds about 45 bits. If the exact point violates rows or
bounds, the program is solved for a correction z of the point. Its sides are multiplied by a factor
F, so large that the solver sees violations that were below its tolerance (iterative refinement:
Gleixner, Steffy and Wolter, INFORMS J. Computing 28, 2016),

    minimise   D c'z    s.t.    F (lo - A x) <= A z <= F (hi - A x),   F (l - x) <= z <= F (u - x)

whose basis is the next one. The costs are multiplied by D > 1 if multipliers have a wrong sign that
the solver did not see. All rounds have the same matrix, so one live solver object takes them all;
only costs and bounds move. In the code the numbers of the program are integers over 2^(S+P), where
2^S is the common denominator of A and c. In arrays of both, columns come before rows.

Masses of 1e-40 are found, although a solver alone calls them zero. The result is proven, but not by
the solver: the remaining violations are computed exactly, and so is the Lagrangian bound of y
(`workbench.solvers.exact.rational_lp`).
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

# Whether there is a bound, and the bound as an integer, for columns and rows.
Side = tuple[Flags, Integers]

# Values of HiGHS's HighsBasisStatus; reading their names takes long.
_AT_LOWER = 0
_AT_UPPER = 2
_MAX_ROUNDS = 24  # A system of equations is refined at most this often.
# The first correction and larger costs are scaled by 2 to this power. HiGHS's dual simplex method
# fails at costs of 1e8.
_FIRST_SCALE_BITS = 20
_MAX_SCALED_BOUND = 1e14  # A larger bound of a correction is left out.
# A dense inverse takes less time than sparse factors for at most this many equations.
_MAX_DENSE_SIZE = 150
_GAP_DIVISOR = 1 << 50  # A basis is optimal if its relative gap is at most 1 over this.
# Smaller coefficients are left out of corrections, because solvers drop them. Residuals have them.
_MIN_COEFFICIENT = 1e-8
_DOUBLE_BITS = 53
# Each round of refinement must reduce the residual by this many bits.
_MIN_GAINED_BITS = 8
_MAX_DOUBLE_EXPONENT = 1000  # Larger numbers become doubles of this size.


def solve_rational(
    lp: RationalLP,
    *,
    bound_program: RationalLP | None = None,
    accuracy: int = 230,
    time_limit: float | None = None,
    basis: Any = None,
    held_sides: tuple[Flags, Flags] | None = None,
) -> RationalPoint:
    """Solve a program in rationals by refinement, until every violation is below 2^-accuracy.

    Args:
        lp: the program in exact rationals.
        bound_program: another program of the same rows, columns and bits. The bound of the result
            is one on its optimum. Default: `lp`.
        accuracy: binary digits after the point.
        time_limit: seconds for all rounds. None for no limit.
        basis: a basis of HiGHS, for a program of these rows and columns, that may be optimal.
        held_sides: the columns and rows that another such basis holds at their lower, and at their
            upper bounds, as `read_held_sides` returns them. It is tried first.

    Raises:
        NoRationalSolution: the program is infeasible, refinement stopped gaining digits, or there
            was no time left. The message says which.
    """
    with _Refinement(lp, bound_program or lp, accuracy, time_limit) as refinement:
        if held_sides is not None:
            refinement.held_sides = held_sides
            exact_point = refinement.solve_basis()
            if exact_point is not None and _is_proven_optimal(exact_point):
                return exact_point
        exact_point = None
        if basis:
            exact_point = refinement.solve_near_basis(basis)
        if exact_point is None:
            exact_point = refinement.solve_near_basis(None)
        if exact_point is None:
            raise NoRationalSolution(
                "Refining the solver's answer did not reach an exactly feasible point."
            )
        return exact_point


def _is_proven_optimal(point: RationalPoint) -> bool:
    if point.bound is None:
        return False
    return point.objective - point.bound <= abs(point.objective) / _GAP_DIVISOR


def read_held_sides(basis: Any) -> tuple[Flags, Flags]:
    """Return which columns and rows a basis holds at their lower, and at their upper bounds.

    Args:
        basis: basis of HiGHS.

    Returns:
        Two arrays (columns + rows,).
    """
    statuses = np.frombuffer(bytes([*basis.col_status, *basis.row_status]), np.uint8)
    return statuses == _AT_LOWER, statuses == _AT_UPPER


class _Refinement:
    """State of one solve: exact integers, and the live solver that sees their leading digits.

    Attributes:
        low, high: bounds of columns and rows, over 2^(S+P).
        held_sides: (columns + rows,) held at the lower, and at the upper bound, by the last basis.
        point: columns and activities of rows of the last basis, over 2^(S+P), or None.
    """

    def __init__(
        self, lp: RationalLP, bound_program: RationalLP, accuracy: int, time_limit: float | None
    ) -> None:
        self.lp = lp
        self.bound_program = bound_program
        self.accuracy = accuracy
        self.deadline = Deadline(time_limit)
        self.P = lp.bits
        self.entries = lp.integers
        if self.entries.common & (self.entries.common - 1):
            raise NoRationalSolution(
                "The exact program has a coefficient that is no dyadic rational; round it first."
            )
        self.S = self.entries.common.bit_length() - 1
        self.c = self.entries.cost << self.P
        self.low, self.high = self._round_sides()
        self.session: Session | None = None
        self.point: Integers | None = None
        self.held_sides = self.low[0], self.high[0]

    def __enter__(self) -> _Refinement:
        return self

    def __exit__(self, *_: object) -> None:
        if self.session is not None:
            self.session.close()
        self.session = None

    def _round_sides(self) -> tuple[Side, Side]:
        """Round lower and upper bounds inwards to integers over 2^P, and return 2^S times them."""
        symbols = self.lp.symbols
        P = self.P
        values = [value or 0 for value in symbols.values]
        lower_codes = np.concatenate([symbols.codes["lower"], symbols.codes["row_lower"]])
        upper_codes = np.concatenate([symbols.codes["upper"], symbols.codes["row_upper"]])
        rounded_up = to_object_array([-((-v.numerator << P) // v.denominator) for v in values])
        rounded_down = to_object_array([(v.numerator << P) // v.denominator for v in values])
        low = rounded_up[lower_codes]
        high = rounded_down[upper_codes]
        has_low = symbols.is_finite[lower_codes]
        has_high = symbols.is_finite[upper_codes]
        for k in np.flatnonzero(has_low & has_high & (low > high)).tolist():
            # The sides of an equation may be no integer over 2^P.
            if values[lower_codes[k]] <= values[upper_codes[k]]:
                low[k] = high[k] = round(Fraction(values[lower_codes[k]]) * (1 << P))
        return (has_low, low << self.S), (has_high, high << self.S)

    @cached_property
    def matrix(self) -> sp.csc_array:
        """Return the matrix in doubles."""
        entries = self.entries
        column_count = self.lp.columns
        is_large = np.abs(entries.floats) >= _MIN_COEFFICIENT
        positions = (entries.row[is_large], entries.column[is_large])
        shape = (self.low[0].size - column_count, column_count)
        return sp.csc_array((entries.floats[is_large], positions), shape=shape)

    def solve_basis(self) -> RationalPoint | None:
        """Return the point and the multipliers' bound of the last basis.

        Return None unless both are found to 2^-accuracy and the point is feasible.
        """
        column_count = self.lp.columns
        is_at_lower, is_at_upper = self.held_sides
        is_basic = ~(is_at_lower | is_at_upper)
        self.point = None
        basic_columns = np.flatnonzero(is_basic[:column_count])
        tight_rows = np.flatnonzero(~is_basic[column_count:])
        has_side = np.where(is_at_lower, self.low[0], self.high[0])
        if basic_columns.size != tight_rows.size or not has_side[~is_basic].all():
            return None
        sides = np.where(is_at_lower, self.low[1], self.high[1])
        x = np.where(is_basic[:column_count], 0, sides[:column_count] >> self.S)
        y = to_object_array([0] * is_basic[column_count:].size)
        system = self._make_system(basic_columns, tight_rows)
        max_residual_bits = self.P + self.S - self.accuracy - 1
        right_sides = (sides - self._compute_activities(x))[column_count + tight_rows]
        basic_values = system.solve(right_sides, self.S, max_residual_bits)
        if basic_values is None:
            return None
        x[basic_columns] = basic_values
        self.point = self._compute_activities(x)
        violation = self._max_violation(self.point)
        if violation > 1 << (self.P - self.accuracy):
            return None
        multipliers = system.transposed_system.solve(
            self.c[basic_columns], self.S, max_residual_bits
        )
        if multipliers is None:
            return None
        y[tight_rows] = multipliers
        objective = sum((self.c * x).tolist())
        return RationalPoint(
            self.lp,
            [Fraction(v, 1 << self.P) for v in x.tolist()],
            Fraction(objective, 1 << (self.S + 2 * self.P)),
            self.bound_program.lagrangian_bound_over(y.tolist(), 1 << self.P),
            Fraction(violation, 1 << self.P),
            ~is_basic[column_count:],
            ~is_basic[:column_count],
        )

    def _make_system(self, basic_columns: Positions, tight_rows: Positions) -> _System:
        """Return the equations of a basis."""
        entries = self.entries
        column_position = np.full(self.lp.columns, -1)
        column_position[basic_columns] = np.arange(basic_columns.size)
        row_position = np.full(self.low[0].size - self.lp.columns, -1)
        row_position[tight_rows] = np.arange(tight_rows.size)
        is_inside = (column_position[entries.column] >= 0) & (row_position[entries.row] >= 0)
        return _System(
            row_position[entries.row[is_inside]],
            column_position[entries.column[is_inside]],
            entries.value[is_inside],
            entries.floats[is_inside],
            tight_rows.size,
        )

    def solve_near_basis(self, basis: Any) -> RationalPoint | None:
        """Return the point of a basis, or of one near it, or None.

        If the exact point violates rows or bounds, or its multipliers do not prove it optimal, the
        basis of a correction is tried next.

        Args:
            basis: basis of HiGHS. None for the basis of the program at the solver's tolerances.

        Raises:
            NoRationalSolution: the solver has no answer, or there is no time left.
        """
        if basis is None:
            origin = self._compute_activities(to_object_array([0] * self.lp.columns))
            solution = self._solve_correction(origin, _FIRST_SCALE_BITS)
            if solution.basis is None:
                raise NoRationalSolution(
                    "The exact program of the solver's pattern has no answer: "
                    f"{solution.raw_status}."
                )
            basis = solution.basis
        last_scale_bits = 0
        cost_bits = 0
        found_point = None
        while True:
            self.held_sides = read_held_sides(basis)
            exact_point = self.solve_basis()
            found_point = exact_point or found_point
            if self.point is None:
                break
            if exact_point is not None and (cost_bits or _is_proven_optimal(exact_point)):
                break
            scale_bits = self.P - self._max_violation(self.point).bit_length()
            if exact_point is not None:
                scale_bits = _FIRST_SCALE_BITS
                cost_bits = _FIRST_SCALE_BITS
            elif not last_scale_bits < scale_bits < self.accuracy:
                break
            last_scale_bits = scale_bits
            solution = self._solve_correction(self.point, scale_bits, cost_bits, basis)
            basis = solution.basis
            if basis is None:
                break
        self.__exit__()
        return found_point

    def _compute_activities(self, x: Integers) -> Integers:
        """Return the columns and the activities of the rows, over 2^(S+P)."""
        entries = self.entries
        activities = to_object_array([0] * (self.low[0].size - x.size))
        is_counted = (x != 0)[entries.column]
        products = entries.value[is_counted] * x[entries.column[is_counted]]
        np.add.at(activities, entries.row[is_counted], products)
        return np.concatenate([x << self.S, activities])

    def _max_violation(self, point: Integers) -> int:
        """Return the largest violation, over 2^P, rounded up."""
        has_low, low = self.low
        has_high, high = self.high
        below = (low[has_low] - point[has_low]).tolist()
        above = (point[has_high] - high[has_high]).tolist()
        return -(-int(max([0, *below, *above])) >> self.S)

    def _scale_bounds(self, point: Integers, scale_bits: int) -> tuple[Vector, Vector]:
        """Return lower and upper bounds of a correction of a point, times 2^scale_bits.

        Bounds that are far away are left out.
        """
        has_low, low = self.low
        has_high, high = self.high
        shift = self.P + self.S - scale_bits
        low_gap = _to_doubles(low - point, shift)
        high_gap = _to_doubles(high - point, shift)
        is_near_low = has_low & (np.abs(low_gap) < _MAX_SCALED_BOUND)
        is_near_high = has_high & (np.abs(high_gap) < _MAX_SCALED_BOUND)
        return (
            np.where(is_near_low, low_gap, -np.inf),
            np.where(is_near_high, high_gap, np.inf),
        )

    def _solve_correction(
        self, point: Integers, scale_bits: int, cost_bits: int = 0, first_basis: Any = None
    ) -> Solution:
        """Solve for a correction of a point, from the basis of the last round.

        If this fails, it is solved again from a cold start.

        Args:
            point: columns and activities of rows.
            scale_bits: the correction is multiplied by 2 to this power.
            cost_bits: costs are multiplied by 2 to this power.
            first_basis: basis of the first round, or None.
        """
        n = self.lp.columns
        lower, upper = self._scale_bounds(point, scale_bits)
        costs = _to_doubles(self.c, self.P + self.S - cost_bits)
        data = Data(
            c=costs,
            offset=0.0,
            A=self.matrix,
            row_lower=lower[n:],
            row_upper=upper[n:],
            lower=lower[:n],
            upper=upper[:n],
            integrality=np.zeros(n, dtype=bool),
        )
        program = Program("correction of a basis", data)
        if self.session is None:
            # Presolve calls programs with ratios close to 1 infeasible.
            native_options = {
                "primal_feasibility_tolerance": 1e-9,
                "dual_feasibility_tolerance": 1e-9,
                "presolve": "off",
            }
            self.session = get_backend("highs").open(program, Options(native=native_options))
            start = "hot" if first_basis is None else "basis"
            return self.session.solve(
                start=start, basis=first_basis, time_limit=self._require_time()
            )
        self.session.follow(program)
        solution = self.session.solve(time_limit=self._require_time())
        if solution.termination is Termination.OPTIMAL:
            return solution
        return self.session.solve(start="cold", time_limit=self._require_time())

    def _require_time(self) -> float | None:
        """Return the time limit of a solver that starts now. Raises NoRationalSolution."""
        if self.deadline.has_passed:
            raise NoRationalSolution(
                "There was no time left to solve the exact program of the solver's pattern."
            )
        return self.deadline.solver_time_limit


class _System:
    """A square system of linear equations, exact and factored in doubles.

    Attributes:
        entries: rows, columns and values of the coefficients; values are integers over 2^S.
        size: number of equations.
        is_transposed: whether the factors are those of the transposed system.
    """

    def __init__(self, i: Positions, j: Positions, a: Integers, floats: Vector, size: int) -> None:
        self.entries = (i, j, a)
        self.size = size
        self.is_transposed = False
        self._solve_in_doubles: Callable[[Vector, bool], Vector] | None = None
        if size <= _MAX_DENSE_SIZE:
            dense = np.zeros((size, size))
            dense[i, j] = floats
            with contextlib.suppress(np.linalg.LinAlgError):
                inverse = np.linalg.inv(dense)
                self._solve_in_doubles = lambda right, is_transposed: (
                    (inverse.T if is_transposed else inverse) @ right
                )
        else:
            from scipy.sparse.linalg import splu  # This import is slow.

            with contextlib.suppress(RuntimeError):  # The system is singular.
                factors: Any = splu(sp.csc_array((floats, (i, j)), shape=(size, size)))
                self._solve_in_doubles = lambda right, is_transposed: factors.solve(
                    right, "T" if is_transposed else "N"
                )

    @property
    def transposed_system(self) -> _System:
        """Return the transposed system, with the same factors."""
        system = copy.copy(self)
        i, j, a = self.entries
        system.entries = (j, i, a)
        system.is_transposed = True
        return system

    def solve(self, right_sides: Integers, S: int, max_residual_bits: int) -> Integers | None:
        """Solve the equations by refinement.

        Args:
            right_sides: (size,) over 2^(P+S).
            S: the coefficients are integers over 2^S.
            max_residual_bits: residuals of the result are at most 2 to this power.

        Returns:
            The solution (size,) over 2^P, or None if refinement stops gaining digits.
        """
        i, j, a = self.entries
        v = to_object_array([0] * self.size)
        last_residual: int | None = None
        for _ in range(_MAX_ROUNDS):
            residuals = right_sides.copy()
            np.subtract.at(residuals, i, a * v[j])
            max_residual = max(map(abs, residuals.tolist()), default=0)
            if max_residual <= 1 << max_residual_bits:
                return v
            if self._solve_in_doubles is None:
                return None
            if last_residual is not None and max_residual > last_residual >> _MIN_GAINED_BITS:
                return None
            last_residual = max_residual
            shift = max(0, max_residual.bit_length() - _DOUBLE_BITS)
            step = self._solve_in_doubles(_to_doubles(residuals, shift), self.is_transposed)
            if not np.isfinite(step).all():
                return None
            v = v + floor_to_bits(step, shift - S)
        return None


def _to_doubles(values: Integers, shift: int) -> Vector:
    """Return values / 2^shift, each as the nearest double or one of size 2^1000."""
    try:
        return np.asarray(values / (1 << shift), dtype=np.float64)
    except OverflowError:
        limit = 1 << (_MAX_DOUBLE_EXPONENT + shift)
        clipped = [max(-limit, min(limit, v)) for v in values.tolist()]
        return _to_doubles(to_object_array(clipped), shift)
