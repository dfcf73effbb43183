"""Solve linear programs far beyond double precision, by iterative refinement.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

For example, optimal masses of 1e-40 are found, although a solver alone calls them zero.

The search alternates between two steps, starting from the basis that the solver finds in doubles.

1. Solve the equations of the basis. Its basic columns and tight rows give two systems of linear
   equations, A x = side and A'y = c. They are factored once in doubles. Each round computes the
   exact residual and solves for it, which adds about 45 bits.
2. If the exact point x violates rows or bounds, ask the solver for a correction z of the point:

    minimise   D c'z    s.t.    F (lo - A x) <= A z <= F (hi - A x),   F (l - x) <= z <= F (u - x)

   The factor F is so large that the solver sees violations which were below its tolerance. The
   factor D > 1 of the costs makes it see multipliers of the wrong sign. The basis of the correction
   is the next basis (Gleixner, Steffy and Wolter, INFORMS J. Computing 28, 2016). All corrections
   have the same matrix, so one live solver object solves them all: its costs and bounds change.

Numbers. A and c are rationals over the common denominator 2^S, and the entries of x and the bounds
are integers over 2^P. Residuals are then exact integers over 2^(S+P). In arrays of columns and
rows, the columns come first.

The result is proven, but not by the solver: the remaining violations are computed exactly, and so
is the Lagrangian bound of y (`workbench.solvers.exact.rational_lp`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
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
# F of the first correction, and D if costs are scaled, are 2 to this power. HiGHS's dual simplex
# method fails at costs of 1e8.
_FIRST_SCALE_BITS = 20
_MAX_SCALED_BOUND = 1e14  # A larger bound of a correction is left out.
# A dense inverse takes less time than sparse factors for at most this many equations.
_MAX_DENSE_SIZE = 150
_GAP_DIVISOR = 1 << 50  # A basis counts as optimal if its relative gap is at most 1 over this.
# Smaller coefficients are left out of corrections, because solvers drop them. The exact residuals
# contain them.
_MIN_COEFFICIENT = 1e-8
_DOUBLE_BITS = 53  # Binary digits of a double.
# Each round of refinement must reduce the residual by this many bits.
_MIN_GAINED_BITS = 8
_DEFAULT_ACCURACY_BITS = 230  # Violations are at most 2 to minus this, unless the caller says more.
# Corrections are solved to this feasibility, because their bounds are about 1 in size.
_CORRECTION_TOLERANCE = 1e-9
_MAX_DOUBLE_EXPONENT = 1000  # Larger numbers become doubles of this size.


def solve_rational(
    lp: RationalLP,
    *,
    bound_program: RationalLP | None = None,
    accuracy: int = _DEFAULT_ACCURACY_BITS,
    time_limit: float | None = None,
    basis: Any = None,
    held_sides: tuple[Flags, Flags] | None = None,
) -> RationalPoint:
    """Solve a program in rationals by refinement, until every violation is below 2^-accuracy.

    Args:
        lp: the program in exact rationals.
        bound_program: another program of the same rows, columns and bits. The bound of the result
            is a bound on the optimum of this program. Default: `lp`.
        accuracy: binary digits after the point.
        time_limit: seconds for all rounds. None for no limit.
        basis: a basis of HiGHS, for a program of these rows and columns, that may be optimal. None
            to begin with the basis that HiGHS finds.
        held_sides: another basis that may be optimal, as `read_held_sides` returns it. It is tried
            before `basis`, but bases near it are not. None for no such basis.

    Raises:
        NoRationalSolution: the program is infeasible, refinement stopped gaining digits, or there
            was no time left. The message says which.
    """
    with _Refinement(lp, bound_program or lp, accuracy, time_limit) as refinement:
        if held_sides is not None:
            answer = refinement.solve_basis(held_sides)
            if answer is not None and answer.is_proven_optimal:
                assert answer.point is not None
                return answer.point
        point = None
        if basis:
            point = refinement.solve_near_basis(basis=basis)
        if point is None:
            point = refinement.solve_near_basis(basis=None)
        if point is None:
            raise NoRationalSolution(
                "Refining the solver's answer did not reach an exactly feasible point."
            )
        return point


def _is_proven_optimal(point: RationalPoint) -> bool:
    """Return whether the bound of a point proves that its objective is optimal to 50 bits."""
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


@dataclass(frozen=True)
class _BasisAnswer:
    """The exact point of a basis, which may violate rows or bounds.

    Attributes:
        activities: (columns + rows,) values of columns and rows, over 2^(S+P).
        violation: largest violation of a row or bound, over 2^P.
        point: the point with its proven bound. None if a violation is above 2^-accuracy, or if the
            multipliers were not found to this accuracy.
    """

    activities: Integers
    violation: int
    point: RationalPoint | None

    @property
    def is_proven_optimal(self) -> bool:
        """Return whether the point is feasible and its bound proves it optimal."""
        return self.point is not None and _is_proven_optimal(self.point)


class _Refinement:
    """One solve: the program in exact integers, and a live solver that sees their leading digits.

    Attributes:
        P, S: exponents of the denominators, as in the module's docstring.
        c: (columns,) costs over 2^(S+P).
        low: (flags, integers), each (columns + rows,): which columns and rows have a lower bound,
            and the bounds over 2^(S+P).
        high: the same of upper bounds.
        session: the live solver object. None until the first correction.
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
        # This number is 0 exactly for a power of two.
        if self.entries.common & (self.entries.common - 1):
            raise NoRationalSolution(
                "The exact program has a coefficient that is no dyadic rational; round it first."
            )
        self.S = self.entries.common.bit_length() - 1
        self.c = self.entries.cost << self.P
        self.low, self.high = self._round_sides()
        self.session: Session | None = None

    def __enter__(self) -> _Refinement:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the live solver object. The next correction opens another one."""
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
        # `//` rounds down, so -(-a // b) rounds a / b up.
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

    @property
    def row_count(self) -> int:
        """Return the number of rows."""
        has_low, _ = self.low
        return int(has_low.size) - self.lp.columns

    @cached_property
    def matrix(self) -> sp.csc_array:
        """Return the matrix in doubles."""
        entries = self.entries
        is_large = np.abs(entries.floats) >= _MIN_COEFFICIENT
        positions = (entries.row[is_large], entries.column[is_large])
        shape = (self.row_count, self.lp.columns)
        return sp.csc_array((entries.floats[is_large], positions), shape=shape)

    def solve_basis(self, held_sides: tuple[Flags, Flags]) -> _BasisAnswer | None:
        """Compute the exact point of a basis, and the bound that its multipliers prove.

        Args:
            held_sides: the columns and rows that the basis holds at their lower, and at their upper
                bound, as `read_held_sides` returns them.

        Returns:
            The answer. None if this is no basis, or if its point is not found to 2^-accuracy.
        """
        column_count = self.lp.columns
        is_at_lower, is_at_upper = held_sides
        is_basic = ~(is_at_lower | is_at_upper)
        basic_columns = np.flatnonzero(is_basic[:column_count])
        tight_rows = np.flatnonzero(~is_basic[column_count:])
        has_low, low = self.low
        has_high, high = self.high
        has_side = np.where(is_at_lower, has_low, has_high)
        if basic_columns.size != tight_rows.size or not has_side[~is_basic].all():
            return None
        # Held columns get the value of their bound. The tight rows determine the basic columns.
        sides = np.where(is_at_lower, low, high)
        x = np.where(is_basic[:column_count], 0, sides[:column_count] >> self.S)
        system = self._make_system(basic_columns, tight_rows)
        # Residuals are integers over 2^(P+S), so they must be at most 2^-(accuracy + 1).
        max_residual_bits = self.P + self.S - self.accuracy - 1
        right_sides = (sides - self._compute_activities(x))[column_count + tight_rows]
        basic_values = system.solve(right_sides, self.S, max_residual_bits)
        if basic_values is None:
            return None
        x[basic_columns] = basic_values
        activities = self._compute_activities(x)
        violation = self._max_violation(activities)
        if violation > 1 << (self.P - self.accuracy):
            return _BasisAnswer(activities, violation, point=None)

        # The multipliers y of the tight rows solve A'y = c in the basic columns.
        transposed_system = system.transpose()
        multipliers = transposed_system.solve(self.c[basic_columns], self.S, max_residual_bits)
        if multipliers is None:
            return _BasisAnswer(activities, violation, point=None)
        y = to_object_array([0] * is_basic[column_count:].size)
        y[tight_rows] = multipliers
        objective = sum((self.c * x).tolist())
        point = RationalPoint(
            lp=self.lp,
            x=[Fraction(v, 1 << self.P) for v in x.tolist()],
            objective=Fraction(objective, 1 << (self.S + 2 * self.P)),
            bound=self.bound_program.lagrangian_bound_over(y.tolist(), 1 << self.P),
            violation=Fraction(violation, 1 << self.P),
            is_row_tight=~is_basic[column_count:],
            is_column_fixed=~is_basic[:column_count],
        )
        return _BasisAnswer(activities, violation, point)

    def _make_system(self, basic_columns: Positions, tight_rows: Positions) -> _System:
        """Return the equations A x = side of a basis, without their right-hand sides."""
        entries = self.entries
        column_position = np.full(self.lp.columns, -1)
        column_position[basic_columns] = np.arange(basic_columns.size)
        row_position = np.full(self.row_count, -1)
        row_position[tight_rows] = np.arange(tight_rows.size)
        is_inside = (column_position[entries.column] >= 0) & (row_position[entries.row] >= 0)
        i = row_position[entries.row[is_inside]]
        j = column_position[entries.column[is_inside]]
        factors = _Factors(i, j, entries.floats[is_inside], tight_rows.size)
        return _System(i, j, a=entries.value[is_inside], size=tight_rows.size, factors=factors)

    def solve_near_basis(self, basis: Any) -> RationalPoint | None:
        """Refine a basis and the bases of its corrections until one is proven optimal.

        Args:
            basis: basis of HiGHS. None for the basis that HiGHS finds at its tolerances.

        Returns:
            The feasible point with a bound that was found last, or None if there is none.

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
        last_point = None
        while basis is not None:
            answer = self.solve_basis(read_held_sides(basis))
            if answer is None:
                break
            if answer.point is not None:
                last_point = answer.point
                # After a correction with scaled costs, another one would not help.
                if cost_bits or answer.is_proven_optimal:
                    break
                # The point is feasible, but a multiplier has the wrong sign. One correction with
                # scaled costs finds a better basis.
                scale_bits = _FIRST_SCALE_BITS
                cost_bits = _FIRST_SCALE_BITS
            else:
                # With this factor the largest violation becomes about 1.
                scale_bits = self.P - answer.violation.bit_length()
                if not last_scale_bits < scale_bits < self.accuracy:
                    break  # The violation did not fall, so another correction would not help.
            last_scale_bits = scale_bits
            basis = self._solve_correction(answer.activities, scale_bits, cost_bits, basis).basis
        self.close()
        return last_point

    def _compute_activities(self, x: Integers) -> Integers:
        """Return x and then A x, over 2^(S+P)."""
        entries = self.entries
        activities = to_object_array([0] * self.row_count)
        is_counted = (x != 0)[entries.column]
        products = entries.value[is_counted] * x[entries.column[is_counted]]
        np.add.at(activities, entries.row[is_counted], products)
        return np.concatenate([x << self.S, activities])

    def _max_violation(self, activities: Integers) -> int:
        """Return the largest violation of a bound by x or A x, over 2^P, rounded up."""
        has_low, low = self.low
        has_high, high = self.high
        excess_below = (low[has_low] - activities[has_low]).tolist()
        excess_above = (activities[has_high] - high[has_high]).tolist()
        # `>>` rounds down, so the two signs make it round up.
        return -(-int(max([0, *excess_below, *excess_above])) >> self.S)

    def _scale_bounds(self, activities: Integers, scale_bits: int) -> tuple[Vector, Vector]:
        """Return lower and upper bounds of a correction of a point, times 2^scale_bits.

        Scaled bounds above _MAX_SCALED_BOUND become infinite.
        """
        has_low, low = self.low
        has_high, high = self.high
        shift = self.P + self.S - scale_bits
        low_gap = _to_doubles(low - activities, shift)
        high_gap = _to_doubles(high - activities, shift)
        is_near_low = has_low & (np.abs(low_gap) < _MAX_SCALED_BOUND)
        is_near_high = has_high & (np.abs(high_gap) < _MAX_SCALED_BOUND)
        return (
            np.where(is_near_low, low_gap, -np.inf),
            np.where(is_near_high, high_gap, np.inf),
        )

    def _solve_correction(
        self, activities: Integers, scale_bits: int, cost_bits: int = 0, first_basis: Any = None
    ) -> Solution:
        """Solve for a correction of a point, from the basis of the last correction.

        If this fails, it is solved again from a cold start.

        Args:
            activities: the point as `_compute_activities` returns it.
            scale_bits: F of the module's docstring is 2 to this power.
            cost_bits: D is 2 to this power.
            first_basis: basis from which the first correction starts, or None.
        """
        n = self.lp.columns
        lower, upper = self._scale_bounds(activities, scale_bits)
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
                "primal_feasibility_tolerance": _CORRECTION_TOLERANCE,
                "dual_feasibility_tolerance": _CORRECTION_TOLERANCE,
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


class _Factors:
    """A square matrix in doubles, inverted if it is small and factored otherwise."""

    def __init__(self, i: Positions, j: Positions, floats: Vector, size: int) -> None:
        self._inverse: Vector | None = None
        self._sparse_factors: Any = None
        if size <= _MAX_DENSE_SIZE:
            dense = np.zeros((size, size))
            dense[i, j] = floats
            with contextlib.suppress(np.linalg.LinAlgError):  # The matrix is singular.
                self._inverse = np.asarray(np.linalg.inv(dense), dtype=np.float64)
        else:
            from scipy.sparse.linalg import splu  # This import is slow.

            with contextlib.suppress(RuntimeError):  # The matrix is singular.
                self._sparse_factors = splu(sp.csc_array((floats, (i, j)), shape=(size, size)))

    def solve(self, right: Vector, *, is_transposed: bool) -> Vector | None:
        """Solve matrix @ v = right, or its transpose @ v = right. None if the matrix is singular.

        Args:
            right: (size,) right-hand sides.
            is_transposed: whether the equations have the transposed matrix.
        """
        if self._inverse is not None:
            return (self._inverse.T if is_transposed else self._inverse) @ right
        if self._sparse_factors is not None:
            v: Vector = self._sparse_factors.solve(right, "T" if is_transposed else "N")
            return v
        return None


@dataclass(frozen=True)
class _System:
    """A square system of linear equations, exact and factored in doubles.

    Attributes:
        i, j: (non-zeros,) rows and columns of the coefficients.
        a: (non-zeros,) the coefficients, integers over 2^S.
        size: number of equations.
        factors: factors of the matrix, or of its transpose.
        has_transposed_factors: whether `factors` belong to the transpose.
    """

    i: Positions
    j: Positions
    a: Integers
    size: int
    factors: _Factors
    has_transposed_factors: bool = False

    def transpose(self) -> _System:
        """Return the transposed system, with the same factors."""
        return _System(
            i=self.j,
            j=self.i,
            a=self.a,
            size=self.size,
            factors=self.factors,
            has_transposed_factors=not self.has_transposed_factors,
        )

    def solve(self, right_sides: Integers, S: int, max_residual_bits: int) -> Integers | None:
        """Solve the equations by refinement.

        Args:
            right_sides: (size,) over 2^(P+S).
            S: the coefficients are integers over 2^S.
            max_residual_bits: residuals of the result are at most 2 to this power.

        Returns:
            The solution (size,) over 2^P, or None if refinement stops gaining digits.
        """
        v = to_object_array([0] * self.size)
        last_residual: int | None = None
        for _ in range(_MAX_ROUNDS):
            residuals = right_sides.copy()
            np.subtract.at(residuals, self.i, self.a * v[self.j])
            max_residual = max(map(abs, residuals.tolist()), default=0)
            if max_residual <= 1 << max_residual_bits:
                return v
            if last_residual is not None and max_residual > last_residual >> _MIN_GAINED_BITS:
                return None
            last_residual = max_residual
            shift = max(0, max_residual.bit_length() - _DOUBLE_BITS)
            step = self.factors.solve(
                _to_doubles(residuals, shift), is_transposed=self.has_transposed_factors
            )
            if step is None or not np.isfinite(step).all():
                return None
            v = v + floor_to_bits(step, shift - S)
        return None


def _to_doubles(values: Integers, shift: int) -> Vector:
    """Return values / 2^shift as doubles. Numbers above 2^1000 in size become ±2^1000."""
    try:
        return np.asarray(values / (1 << shift), dtype=np.float64)
    except OverflowError:
        limit = 1 << (_MAX_DOUBLE_EXPONENT + shift)
        clipped = [max(-limit, min(limit, v)) for v in values.tolist()]
        return _to_doubles(to_object_array(clipped), shift)
