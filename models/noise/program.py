"""Find the noise on the integers with the smallest expected loss under convex privacy bounds.

`LineProgram(...).solve()` returns the noise, and a proven lower bound on the loss of all such
noise.

Notation. f is the PMF of the noise η, c(η) its loss, D the sensitivity (the largest difference of
neighbouring answers), and s = ±1..±D a shift. P = f and Q = f(· + s) are the laws at two
neighbouring answers. A bound has a term φ at every outcome o and a limit
(`workbench.models.convex.requirements`). The noise is the solution of one linear program:

    min Σ c(η) f(η) (+ c a)   s.t.  Σ f (+ a) = 1,
                                    Σ_o φ(P_o, Q_o) <= limit   for every bound and shift s,

Tangents of the bounds are added as they are needed (`workbench.models.convex.tangent_program`). In
every round a hockey stick gains tangents only at the shift where it is exceeded most. Solvers other
than HiGHS get all tangents of hockey sticks at once.

    letter      here                     letter      here
    D           sensitivity              f(η)        columns, |η| <= last
    c           losses                   a           atom: a point mass beside the cells (reals)

Closed program (`is_open` is False): f is 0 for |η| > L, where L is the reach, and last = L. Under
hockey sticks every feasible point is a mechanism.

Open program: f(η) has columns for |η| <= last = L + D. The total mass of larger η, and that of
smaller η, has a column each. In a bound all outcomes η > L, and all η < -L, are merged into one.
This is post-processing, so every bound holds for the merged pair of laws. The loss of the mass
beyond is at least the loss at its first value, as c does not fall. So the optimum is a lower bound
for all noise.

Folded program: if c is even, some optimal f is even, because the mean of f and its mirror image is
feasible (the bounds are jointly convex). Then the shifts s > 0 suffice. With several losses c_q the
largest mean is minimised: min z, z >= Σ c_q f. The multipliers p_q of these rows are weights that
add up to 1, and c = Σ p_q c_q.

Lower bound: let v >= 0 be multipliers of the tangents a P + b Q <= t, and u multipliers of the sums
Σ t <= limit, such that the v of the tangents of each t sum to at most u. Then

    min >= min_j (c + Σ v (a P + b Q))_j / w_j - Σ u limit      in exact arithmetic,

where (...)_j is the coefficient of column j, and w_j that in Σ f.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from workbench.models import statement
from workbench.models.convex.requirements import Bound
from workbench.models.convex.tangent_program import (
    BoundMultipliers,
    Comparisons,
    FindBrokenBounds,
    TangentProgram,
)
from workbench.solvers.arrays import Integers, Vector
from workbench.solvers.data import MIN_COEFFICIENT, floor_to_bits
from workbench.solvers.exact.rational_lp import Integers as ExactIntegers
from workbench.solvers.exact.rational_lp import to_object_array
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline

_MASS_SCALE = 2.0**20  # Masses are solved in these units, so that tolerances are fine beside δ.
_MULTIPLIER_BITS = 80  # Multipliers are rounded down to this many binary digits.
_MULTIPLIER_UNIT = 1 << _MULTIPLIER_BITS  # A multiplier of 1 is this integer.
_DOUBLE_BITS = 53  # A double has this many significant binary digits.
# A point counts as feasible at this relative excess over a limit, unless the caller gives another.
_DEFAULT_PRECISION = 1e-9


@dataclass(frozen=True, eq=False)
class LineProgram:
    """One linear program of the module header: closed or open, folded or not.

    Attributes:
        sensitivity: D, the largest shift.
        reach: L >= D, the largest |η| whose outcome is not merged.
        losses: functions from η to c(η), which do not fall as |η| grows. With several functions
            their largest mean is minimised.
        bounds: bounds for every shift.
        is_folded: whether all losses are even and only η >= 0 has columns.
        is_open: whether noise continues beyond the last column.
        atom_loss: loss of the atom a, a point mass beside the cells of noise on the reals. None for
            no atom. Only programs under hockey sticks have an atom.
        tail_losses: for each loss, (right, left): a lower bound on the mean loss of the mass beyond
            `last`. None for the loss at the first value beyond.
        loss_unit: the program is solved in losses minus the smallest one, divided by this.
    """

    sensitivity: int
    reach: int
    losses: Sequence[Callable[[int], Fraction]]
    bounds: Sequence[Bound]
    is_folded: bool = True
    is_open: bool = True
    atom_loss: Fraction | None = None
    tail_losses: Sequence[tuple[Fraction, Fraction]] | None = None
    loss_unit: Fraction = Fraction(1)

    @property
    def last(self) -> int:
        """Return the largest η that has a column."""
        return self.reach + self.sensitivity * self.is_open

    @cached_property
    def shifts(self) -> Integers:
        """Return the shifts of all comparisons, shape (comparisons,)."""
        positive_shifts = np.arange(1, self.sensitivity + 1)
        if self.is_folded:
            return positive_shifts
        return np.concatenate([positive_shifts, -positive_shifts])

    @property
    def mass_columns(self) -> int:
        """Return the number of columns of f."""
        return self.last + 1 if self.is_folded else 2 * self.last + 1

    @property
    def _first(self) -> int:
        """Return the smallest η that has a column."""
        return 0 if self.is_folded else -self.last

    @cached_property
    def costs(self) -> list[list[Fraction]]:
        """Return the cost of a unit of mass in every column, one list for each loss.

        The columns are f; in an open program the mass beyond on the right and, unless folded, on
        the left; then the atom, if there is one.
        """
        side_count = 1 if self.is_folded else 2
        values = range(self._first, self.last + 1)
        if self.tail_losses is None:
            end = self.last + 1
            tail_losses = [(loss(end), loss(-end)) for loss in self.losses]
        else:
            tail_losses = [*self.tail_losses]
        atom_costs = [] if self.atom_loss is None else [self.atom_loss]
        costs = []
        for loss, tail in zip(self.losses, tail_losses, strict=True):
            tail_costs = tail[: side_count * self.is_open]
            costs.append([*map(loss, values), *tail_costs, *atom_costs])
        return costs

    @cached_property
    def shift(self) -> Fraction:
        """Return the smallest of all costs, a loss that every law has."""
        return min(map(min, self.costs))

    @cached_property
    def scaled_costs(self) -> list[list[Fraction]]:
        """Return the costs of the program that is solved, one list for each loss."""
        if not self.shift and self.loss_unit == 1:
            return self.costs
        return [[(cost - self.shift) / self.loss_unit for cost in row] for row in self.costs]

    @cached_property
    def weights(self) -> Integers:
        """Return how often each column counts in the total mass, shape (columns,).

        Columns of a folded program that stand for η and -η count twice.
        """
        counts = np.ones(len(self.costs[0]), dtype=np.int64)
        if self.is_folded:
            # In an open program the column behind f has the mass beyond, on both sides.
            counts[1 : self.mass_columns + self.is_open] = 2
        return counts

    @cached_property
    def comparisons(self) -> Comparisons:
        """Return P and Q for every shift.

        The entries are every column, then an entry without mass, then, if the program is open, the
        sums of the masses beyond each of the values near the reach.
        """
        size = self.base.shape[1]
        d = self.sensitivity
        rows = [sp.eye_array(size), sp.csr_array((1, size))]
        eta = np.arange(-self.reach, self.reach + 1)
        shifted_eta = eta[None, :] + self.shifts[:, None]
        has_column = np.abs(shifted_eta) <= self.last
        first = [self._column_of(eta)]
        second = [np.where(has_column, self._column_of(shifted_eta), size)]
        # An open program compares the mass beyond, on the right (side 1) and on the left (-1).
        for side in (1, -1) if self.is_open else ():
            # Entry `size` has no mass. Behind it are the 2 d + 1 sums of the right side, then those
            # of the left. The sum beyond the reach itself is in the middle of each.
            centre = size + 1 + d + (side < 0) * (2 * d + 1)
            rows.append(sp.csr_array(self._tail_rows(side, size)))
            first.append(np.array([centre]))
            second.append(centre + side * self.shifts[:, None])
        if self.atom_loss is not None:
            first.append(np.array([self.weights.size - 1]))
            second.append(np.full((self.shifts.size, 1), size))
        return Comparisons(sp.csr_array(sp.vstack(rows)), np.concatenate(first), np.hstack(second))

    def _tail_rows(self, side: int, size: int) -> Vector:
        """Return one row for each step in -D..D: the mass beyond reach + step on a side."""
        d = self.sensitivity
        table = np.zeros((2 * d + 1, size))
        for row, step in zip(table, range(-d, d + 1), strict=True):
            row[self._column_of(side * np.arange(self.reach + step + 1, self.last + 1))] = 1
            # The mass beyond the last column is in the column behind f, on the left of a program
            # that is not folded in the next one.
            row[self.mass_columns + (side < 0 and not self.is_folded)] = 1
        return table

    @cached_property
    def base(self) -> Program:
        """Build the program without bounds.

        With several losses the largest mean is a column behind the others.
        """
        weights = self.weights.astype(float)
        cost_table = np.array([[*map(float, row)] for row in self.scaled_costs])
        costs = cost_table * weights
        x = statement.Variable(weights.size, "x", (0.0, np.inf))
        rows = [weights @ x == 1]
        if len(costs) > 1:
            largest_mean = statement.Variable((), "largest mean", (0.0, np.inf))
            readable_costs = np.where(costs < MIN_COEFFICIENT, 0.0, costs)
            rows.append(readable_costs @ x <= largest_mean)
            objective: statement.Affine = largest_mean
        else:
            objective = costs[0] @ x
        name = f"noise on the integers up to {self.last}, {self.sensitivity} differences"
        program = statement.Problem(objective, rows, [x]).to_program(name, _MASS_SCALE)
        unit = float(self.loss_unit)
        data = program.template
        # Without blocks, files of programs number the columns and rows instead of naming them.
        return replace(
            program,
            template=replace(data, c=data.c * unit),
            cost=1 / unit,
            shift=float(self.shift),
            variables=(),
            rows=(),
        )

    def _column_of(self, eta: Integers) -> Integers:
        """Return the numbers of the columns of noise values, in the shape of `eta`."""
        return np.abs(eta) if self.is_folded else eta + self.last

    def masses(self, x: Vector) -> Vector:
        """Return f on -last..last, shape (2 last + 1,).

        Args:
            x: values of the columns, shape (columns,).
        """
        f = np.maximum(x[: self.mass_columns], 0.0)
        # The reversed part is f(last), ..., f(1).
        return np.concatenate([f[:0:-1], f]) if self.is_folded else f

    def columns_of_law(self, masses: Vector, refinement: float = 1.0) -> Vector:
        """Return the values of the columns for a law on -k..k, with no mass beyond.

        Args:
            masses: the law, shape (2 k + 1,).
            refinement: number of grid steps of this program in one step of the grid of the law.
                Unless it is 1 the columns are approximate.

        Returns:
            Values of the columns, shape (columns,).
        """
        size = masses.size // 2
        eta = np.arange(self._first, self.last + 1)
        # The nearest value of the coarse grid.
        coarse_eta = np.floor(eta / refinement + 0.5).astype(np.int64)
        x = np.zeros(self.base.shape[1])
        has_mass = np.abs(coarse_eta) <= size
        x[: self.mass_columns][has_mass] = masses[coarse_eta[has_mass] + size]
        return x

    @property
    def program(self) -> Program:
        """Build the program with all tangents. It is exact if all bounds are hockey sticks."""
        tangent_program = self._start("")
        tangent_program.add_all_tangents()
        return tangent_program.master.program

    def _start(self, solver: str) -> TangentProgram:
        """Start the program of tangents, with no tangent yet."""
        return TangentProgram(
            self.base, self.comparisons, self.bounds, solver, has_similar_comparisons=True
        )

    def solve(
        self,
        nearby_columns: Vector | None = None,
        *,
        find_broken_bounds: FindBrokenBounds | None = None,
        precision: float = _DEFAULT_PRECISION,
        deadline: Deadline | None = None,
        solver: str = "highs",
    ) -> LineAnswer:
        """Solve the program and prove a lower bound.

        If the time limit is reached, the point may exceed a limit by `LineAnswer.excess`. The bound
        is still proven.

        Args:
            nearby_columns: columns near the optimum, shape (columns,), where tangents are added at
                first. None for none.
            find_broken_bounds: function of (P, Q) that returns further bounds which they break, if
                the notion has infinitely many. None if `bounds` has all of them.
            precision: relative excess over a limit at which a point counts as feasible.
            deadline: time limit; None for none.
            solver: name of the backend.

        Returns:
            The last point with its value and the proven bound.

        Raises:
            SolverError: the solver found no optimum.
        """
        tangent_program = self._start(solver)
        if solver != "highs":
            tangent_program.add_all_tangents()
        elif nearby_columns is not None:
            tangent_program.add_tangents_near(nearby_columns)
        point = tangent_program.solve(find_broken_bounds, precision, deadline)
        unit = float(self.loss_unit)
        # Row 0 is Σ f = 1. With several losses, the rows of their means follow.
        loss_duals = np.maximum(-point.duals[1 : 1 + len(self.costs)], 0.0)
        weights = (loss_duals / unit).tolist()
        multipliers = (
            replace(
                part,
                sum_multiplier=part.sum_multiplier / unit,
                tangent_multipliers=part.tangent_multipliers / unit,
            )
            for part in tangent_program.bound_multipliers(point)
        )
        scaled_bound = prove_lower_bound(self, multipliers, weights)
        return LineAnswer(
            program=self,
            x=tangent_program.x[: self.weights.size],
            value=point.value + float(self.shift),
            bound=scaled_bound * self.loss_unit + self.shift,
            excess=tangent_program.largest_excess,
            rounds=tangent_program.rounds,
            version=tangent_program.master.version,
        )


@dataclass(frozen=True)
class LineAnswer:
    """A point of a `LineProgram` with a proven bound.

    Attributes:
        program: linear program that the point belongs to.
        x: values of the columns, shape (columns,).
        value: value of the program at the point.
        bound: proven lower bound on the optimum.
        excess: largest relative excess of the point over a limit.
        rounds: number of rounds of solving and adding tangents.
        version: version of the solver.
    """

    program: LineProgram
    x: Vector
    value: float
    bound: Fraction
    excess: float
    rounds: int
    version: str

    @property
    def masses(self) -> Vector:
        """Return f on -last..last, shape (2 last + 1,)."""
        return self.program.masses(self.x)

    @property
    def mean_tail_mass(self) -> float:
        """Return the mass beyond the last column on one side, the mean of both sides."""
        if not self.program.is_open:
            return 0.0
        return float(self.x[self.program.mass_columns :].mean())

    @property
    def tail_masses(self) -> tuple[float, float]:
        """Return the mass beyond on the right and on the left, for an open program."""
        tail = self.x[self.program.mass_columns :]
        return float(tail[0]), float(tail[-1])


def prove_lower_bound(
    line: LineProgram, multipliers: Iterable[BoundMultipliers], weights: Sequence[float]
) -> Fraction:
    """Compute the lower bound of the module header, at scaled costs, in exact arithmetic.

    Multipliers become integers in units of 1/_MULTIPLIER_UNIT, and slopes of tangents integers in
    units of 2^-coefficient_bits.

    Args:
        line: the program.
        multipliers: multipliers of the tangents and the sums of every bound and comparison.
        weights: the multipliers p_q of several losses, one for each loss. Not used for one loss.

    Returns:
        A lower bound on the optimum, in scaled costs.
    """
    parts = [*multipliers]
    entries = line.comparisons.entries
    limit_cost = Fraction(0)
    exponents = [0]
    for part in parts:
        for side in (part.a, part.b):
            _, side_exponents = np.frexp(side)
            exponents.append(side_exponents.min(initial=0))
    # Coefficients of tangents are doubles: with this many binary digits they are exact.
    coefficient_bits = _DOUBLE_BITS - int(min(exponents))
    entry_amounts = to_object_array([0] * entries.shape[0])
    for part in parts:
        sum_multiplier = int(part.sum_multiplier * _MULTIPLIER_UNIT)
        limit_cost += Fraction(part.limit) * sum_multiplier
        rows = np.flatnonzero(part.tangent_multipliers)
        rows = rows[np.argsort(part.outcomes[rows], kind="stable")]
        amounts = floor_to_bits(part.tangent_multipliers[rows], _MULTIPLIER_BITS)
        if part.limit and rows.size:
            amounts = _cap_by_outcome(amounts, part.outcomes[rows], sum_multiplier)
        for slopes, places in ((part.a, part.first), (part.b, part.second)):
            exact_slopes = floor_to_bits(slopes[rows], coefficient_bits)
            np.add.at(entry_amounts, places[rows], amounts * exact_slopes)
    costs = _weighted_costs(line, weights)
    column_amounts = to_object_array([0] * entries.shape[1])
    repeated_amounts = np.repeat(entry_amounts, np.diff(entries.indptr))
    np.add.at(column_amounts, entries.indices, repeated_amounts)
    ratios = []
    # With several losses, the column of the largest mean comes last and is left out.
    for cost, weight, amount in zip(costs, line.weights, column_amounts.tolist(), strict=False):
        price = cost * int(weight) * _MULTIPLIER_UNIT + Fraction(amount, 1 << coefficient_bits)
        ratios.append(price / int(weight))
    return (min(ratios) - limit_cost) / _MULTIPLIER_UNIT


def _weighted_costs(line: LineProgram, weights: Sequence[float]) -> list[Fraction]:
    """Return the mean scaled cost of every column over the losses, by the normalised weights."""
    shares = []
    if len(line.costs) > 1:
        shares = [int(weight * _MULTIPLIER_UNIT) for weight in weights]
    if not any(shares):
        # All weights are 0 where the losses are below the digits of a solver.
        shares = [1] * len(line.costs)
    total = sum(shares)
    costs = []
    for column_costs in zip(*line.scaled_costs, strict=True):
        products = (share * cost for share, cost in zip(shares, column_costs, strict=True))
        costs.append(sum(products, Fraction(0)) / total)
    return costs


def _cap_by_outcome(amounts: ExactIntegers, outcomes: Integers, max_sum: int) -> ExactIntegers:
    """Cut multipliers so that their sum over each outcome is at most `max_sum`.

    The multipliers are sorted by outcome.
    """
    is_first = np.diff(outcomes, prepend=-1) != 0
    sums = np.cumsum(amounts)
    sums_before_outcome = (sums - amounts)[is_first][np.cumsum(is_first) - 1]
    # Partial sums within each outcome, capped. Their differences are the capped multipliers.
    capped_sums: ExactIntegers = np.minimum(sums - sums_before_outcome, max_sum)
    capped_sums[~is_first] -= capped_sums[np.flatnonzero(~is_first) - 1]
    return capped_sums
