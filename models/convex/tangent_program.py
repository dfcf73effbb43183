"""Solve a linear program whose variables are laws under convex privacy bounds, by tangents.

`TangentProgram` answers: what is the smallest linear loss c'x of a mechanism whose laws satisfy
these convex bounds, and what lower bound is proven? It adds tangents of the bounds until the
solution breaks none of them.

Notation. x >= 0 are the columns (variables) of the base program. A comparison is a pair of laws
(P, Q) whose masses P_o and Q_o at the outcomes o are linear in x. A bound limits the sum of its
terms φ over the outcomes of every comparison. t_o is a variable for the term at outcome o.

    min c'x  s.t.  rows of x,  and
                   Σ_o φ(P_o, Q_o) <= limit   for every bound and comparison (P, Q)

Every bound (`workbench.models.convex.requirements`) has terms φ that are convex, homogeneous and
>= 0. Such a φ is the largest of 0 and its tangents a P + b Q, one for each ratio P/Q
(`workbench.models.convex.tangents`). So the program is stated with some tangents:

    t_o >= a P_o + b Q_o  for some tangents,  t >= 0,  Σ_o t_o <= limit
    a P_o + b Q_o <= 0                                                      if limit = 0

A hockey stick has a single tangent beside 0, so this states it exactly. Other bounds gain tangents
where a solution breaks them. With any set of tangents the program is a relaxation, so its
multipliers prove a lower bound on the optimum.

Few t are positive at an optimum. A t becomes a column when a solution breaks its bound; until then
it is 0. HiGHS continues with its dual simplex method: the new column has cost 0, so the dual values
stay feasible. Some notions amount to infinitely many bounds. For these a function finds the bounds
that a solution breaks (`FindBrokenBounds`), and they are added.

If these are hockey sticks, a law needs hundreds of levels, and the t of all levels would be most of
the program. A stick is then stated for single events S, sets of outcomes, which needs no t:

    Σ_{o in S} (P_o - m Q_o) <= limit,        S = {o: P_o > m Q_o} at the laws that break it

The vertices of the relaxation exceed the bounds by a large amount. Therefore, if laws that are even
(uniform) on their outcomes satisfy the program, in-out separation is used (Ben-Ameur and Neto
2007). An inner point is within all bounds. The segment from it to each optimum of the relaxation is
followed, and tangents are added where the segment leaves a bound. The answer is the point of these
segments within all bounds that has the smallest loss. If all bounds are smooth, an interior-point
method finds the first inner point and its tangents (`workbench.models.convex.interior`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from workbench.models.convex.interior import (
    MAX_INTERIOR_COLUMNS,
    LevelRange,
    list_smooth_bounds,
    solve_interior_point,
)
from workbench.models.convex.requirements import HOCKEY_STICK, Bound
from workbench.models.convex.tangents import compute_tangents, evaluate_terms, max_term_sum
from workbench.solvers.arrays import Flags, Integers, Ints, Pair, Vector
from workbench.solvers.backend import Options, solve
from workbench.solvers.data import MIN_COEFFICIENT
from workbench.solvers.errors import SolverError
from workbench.solvers.growing import GrowingProgram, Point, RestatedProgram
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline, bisect_each
from workbench.solvers.solution import Solution

# A function of one comparison (P, Q) that lists further bounds that the two laws break.
FindBrokenBounds = Callable[[Vector, Vector], Iterable[Bound]]


@dataclass(frozen=True)
class TangentLimits:
    """The tuning numbers of `TangentProgram`.

    Attributes:
        simplex_tolerance: tolerance of HiGHS, the smallest it accepts. Its usual tolerance on
            reduced costs can shift a bound by 1e-8 of its value.
        max_rounds: largest number of rounds of solving and adding tangents.
        max_bounds_per_round: largest number of bounds that gain tangents in one round, and of
            passes that look for further bounds on one segment.
        min_gap_share: an outcome gains a tangent if its term exceeds its t by more than this share
            of the largest such excess.
        max_excess_for_new_bounds: further bounds are searched while the relative excess is below
            this.
        active_margin: a bound this close below its limit, relatively, may be active at the optimum.
        min_ratio_mass: smaller masses count as this where a ratio of masses is limited.
        segment_halvings: number of bisection steps that find where a segment leaves a bound.
        inner_step_share: share of the feasible part of a segment by which the inner point follows.
        inner_step_share_with_events: the same share, if rows state hockey sticks for events.
        max_exit_bounds: largest number of bounds of a comparison that gain tangents on one segment,
            in the order in which the segment leaves them.
        min_event_excess: an event gains a row if the last optimum exceeds the limit of the row by
            more than this, which is above the tolerance of HiGHS. Other rows would be nearly
            parallel to a row of the program, and HiGHS finds no optimum with many of them.
        min_exit_share: the same share as `min_gap_share`, for tangents where a segment leaves a
            bound.
        closed_gap: the method ends at this gap between the best value and the proven bound,
            relative to the objective.
        idle_rounds: number of rounds over which this gap must shrink.
        max_gap_ratio: the gap after `idle_rounds` must be at most this share of the gap before.
        min_devex_outcomes: with this many outcomes of similar comparisons or more, HiGHS uses
            Devex weights.
        interior_gap: relative gap at which the interior point is accepted as the answer.
        max_interior_violation: rows may miss their sides by this much at the interior point.
    """

    simplex_tolerance: float = 1e-10
    max_rounds: int = 2000
    max_bounds_per_round: int = 8
    min_gap_share: float = 1e-2
    max_excess_for_new_bounds: float = 1e-2
    active_margin: float = 1e-7
    min_ratio_mass: float = 1e-9
    segment_halvings: int = 40
    inner_step_share: float = 0.5
    inner_step_share_with_events: float = 0.8
    max_exit_bounds: int = 3
    min_event_excess: float = 2e-10
    min_exit_share: float = 1e-3
    closed_gap: float = 1e-10
    idle_rounds: int = 8
    max_gap_ratio: float = 0.9
    min_devex_outcomes: int = 11_000
    interior_gap: float = 5e-8
    max_interior_violation: float = 1e-9


_LIMITS = TangentLimits()


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Pairs of laws (P, Q) that are linear in the columns x >= 0 of a program.

    With e = entries x, the laws are P = e[first] and Q = e[second].

    Attributes:
        entries: nonnegative matrix, shape (entries, columns). It is the identity, unless
            `TangentProgram.has_similar_comparisons`. `TangentProgram._start_even` and `_add_event`
            rely on this: they read positions among the entries as column numbers.
        first: positions of P among the entries, shape (comparisons, outcomes), or (outcomes,) if P
            is the same in all comparisons.
        second: positions of Q among the entries, shape (comparisons, outcomes).
    """

    entries: sp.csr_array
    first: Integers
    second: Integers

    def laws_at(self, x: Vector) -> Pair:
        """Compute (P, Q) of all comparisons.

        Args:
            x: values of the columns, shape (columns,).

        Returns:
            P and Q, each of shape (comparisons, outcomes).
        """
        e = self.entries @ x
        return np.broadcast_to(e[self.first], self.second.shape), e[self.second]

    def law_entries(self, comparison: int) -> tuple[Integers, Integers]:
        """Return the positions of P and Q among the entries, each of shape (outcomes,).

        Args:
            comparison: number of the comparison.
        """
        first = self.first if self.first.ndim == 1 else self.first[comparison]
        return first, self.second[comparison]


class StatedBound:
    """A bound of the program with the columns and rows that state it.

    Args:
        bound: the bound on every comparison.
        shape: numbers of comparisons and of outcomes.

    Attributes:
        requirement: the argument `bound`.
        limit: largest sum of the terms of one comparison.
        unit: factor by which the rows of the bound are divided.
        has_rows: whether each outcome has a tangent, shape (comparisons, outcomes).
        columns: column of each t, shape (comparisons, outcomes). It is -1 for an outcome without
            a tangent, and for all outcomes if the limit is 0, since there are no t then.
        sums: number of the row Σ t <= limit of each comparison, shape (comparisons,). It is -1
            before the row is stated, and stays -1 if the limit is 0.
    """

    def __init__(
        self,
        bound: Bound,
        shape: Ints,
    ) -> None:
        self.requirement = bound
        self.limit = max_term_sum(bound)
        self.unit = max(1.0, self.limit)
        self.has_rows = np.zeros(shape, dtype=bool)
        self.columns = np.full(shape, -1)
        self.sums = np.full(shape[0], -1)

    def tangent_terms(
        self,
        p: Vector,
        q: Vector,
    ) -> Vector:
        """Evaluate the terms by the tangents at their own ratios.

        The result equals φ(P, Q), except at extreme ratios, where the steepest tangent replaces φ.

        Args:
            p: masses P, shape (comparisons, outcomes).
            q: masses Q, the same shape.
        """
        a, b = compute_tangents(self.requirement, p, q)
        return np.maximum(a * p + b * q, 0.0)

    def feasible_shares(
        self,
        inner_laws: Pair,
        outer_laws: Pair,
    ) -> Vector:
        """Find the share of the segment between two points that is within the bound.

        Args:
            inner_laws: (P, Q) within the bound, each of shape (comparisons, outcomes).
            outer_laws: (P, Q) at the other end, the same shapes.

        Returns:
            Share in [0, 1] of the segment that is within the bound, shape (comparisons,).
        """

        def is_outside(shares: Vector) -> Flags:
            """Return whether each comparison exceeds the bound at its share of the segment."""
            p, q = _interpolate_laws(inner_laws, outer_laws, shares[:, None])
            return self.relative_excess(evaluate_terms(self.requirement, p, q), p) > 0

        start = np.zeros(self.sums.size)
        end = np.ones(self.sums.size)
        has_exit = is_outside(end)
        step_count = _LIMITS.segment_halvings if has_exit.any() else 0
        low, _ = bisect_each(is_outside, start, end, step_count)
        return np.where(has_exit, low, 1.0)

    def relative_excess(
        self,
        terms: Vector,
        p: Vector,
    ) -> Vector:
        """Compute the relative excess of the terms over the limit.

        Args:
            terms: terms of the outcomes, shape (comparisons, outcomes).
            p: masses P, the same shape.

        Returns:
            Excess of each comparison, shape (comparisons,). If the limit is 0, it is the largest
            ratio of a term to its mass.
        """
        if self.limit:
            return np.asarray(terms.sum(axis=1) / self.limit - 1)
        return np.asarray((terms / np.maximum(p, _LIMITS.min_ratio_mass)).max(axis=1))


@dataclass(frozen=True)
class Tangents:
    """Consecutive rows a P + b Q <= t of some outcomes of a bound, at one comparison.

    Attributes:
        row: the first of the rows.
        bound: the bound that the rows belong to.
        comparison: number of the comparison.
        outcomes: outcomes of the rows, shape (rows,).
        a: coefficients of P, shape (rows,).
        b: coefficients of Q, shape (rows,).
    """

    row: int
    bound: StatedBound
    comparison: int
    outcomes: Integers
    a: Vector
    b: Vector


@dataclass(frozen=True)
class BoundMultipliers:
    """The multipliers of a bound at one comparison.

    Attributes:
        limit: the limit of the sum row, in its unit.
        sum_multiplier: multiplier of the row Σ t <= limit.
        outcomes: outcomes of the tangents, shape (tangents,).
        first: entries of P, shape (tangents,).
        second: entries of Q, shape (tangents,).
        a: coefficients of P, shape (tangents,).
        b: coefficients of Q, shape (tangents,).
        tangent_multipliers: multipliers of the rows a P + b Q <= t, shape (solved tangents,).
            Tangents added after the last solve come last and have none.
    """

    limit: float
    sum_multiplier: float
    outcomes: Integers
    first: Integers
    second: Integers
    a: Vector
    b: Vector
    tangent_multipliers: Vector


class _BrokenBound(NamedTuple):
    """A bound and a comparison at which the last optimum may break it.

    Attributes:
        excess: relative excess of the terms over the limit.
        comparison: number of the comparison.
        bound: the bound.
        terms: terms of the outcomes, shape (outcomes,).
    """

    excess: float
    comparison: int
    bound: StatedBound
    terms: Vector


class RowBatch:
    """Rows and columns that are added to a growing program at once.

    One call of the solver for every few rows takes longer than the simplex method.

    Args:
        program: the program that gains the rows and columns.
    """

    def __init__(self, program: RestatedProgram) -> None:
        self._program = program
        self._clear()

    def _clear(self) -> None:
        """Forget the rows and columns."""
        self._values: list[Vector] = []
        self._row_numbers: list[Integers] = []
        self._column_numbers: list[Integers] = []
        self._row_uppers: list[Vector] = []
        self._column_rows: list[Integers] = []
        self._column_uppers: list[Vector] = []
        self._next_row = self._program.rows
        self._next_column = self._program.width

    def add_rows(self, count: int, upper: float) -> int:
        """Add rows without coefficients. Returns the number of the first one.

        Args:
            count: number of rows.
            upper: upper bound of the rows.
        """
        first_row = self._next_row
        self._next_row += count
        self._row_uppers.append(np.full(count, upper))
        return first_row

    def add_columns(self, row: int, count: int, upper: float) -> Integers:
        """Add columns with the entry 1 in a row. Returns their numbers, shape (count,).

        Args:
            row: number of the row, which may be new.
            count: number of columns.
            upper: upper bound of the columns.
        """
        columns = self._next_column + np.arange(count)
        self._next_column += count
        self._column_uppers.append(np.full(count, upper))
        is_new_row = row >= self._program.rows
        # The program accepts entries of new columns in its present rows (-1 for none). An entry in
        # a new row is one of the coefficients of that row.
        self._column_rows.append(np.full(count, -1 if is_new_row else row))
        if is_new_row:
            self.add_coefficients(np.ones(count), np.full(count, row), columns)
        return columns

    def add_coefficients(self, values: Vector, rows: Integers, columns: Integers) -> None:
        """Add coefficients of new rows. Those of one row and column add up.

        Args:
            values: coefficients, shape (coefficients,).
            rows: their rows, the same shape.
            columns: their columns, the same shape.
        """
        self._values.append(values)
        self._row_numbers.append(rows)
        self._column_numbers.append(columns)

    def flush(self) -> None:
        """Add all rows and columns to the program."""
        if self._next_row == self._program.rows:
            return
        row_numbers = np.concatenate(self._row_numbers) - self._program.rows
        coordinates = (row_numbers, np.concatenate(self._column_numbers))
        shape = (self._next_row - self._program.rows, self._next_column)
        rows = sp.csr_array((np.concatenate(self._values), coordinates), shape=shape)
        no_columns = np.zeros(0, dtype=np.intp)
        self._program.extend(
            np.concatenate([no_columns, *self._column_rows]),
            _weaken_small_entries(rows),
            np.concatenate(self._row_uppers),
            np.concatenate([np.zeros(0), *self._column_uppers]),
        )
        self._clear()


class TangentProgram:
    """A linear program with the tangents that have been added so far.

    Args:
        base: program with the columns x and their rows, without parameters.
        comparisons: pairs of laws that are bounded.
        bounds: bounds that hold for every comparison.
        solver: name of the backend. HiGHS continues from basis to basis, unless there are
            integer columns.
        has_similar_comparisons: whether the comparisons are nearly alike (shifts of one law). Then
            a bound gains tangents at few of them in a round, a hockey stick at its worst one.
        level_range: a range of levels whose bounds `FindBrokenBounds` adds, or None.
        options: options of every solve; None for the defaults.

    Attributes:
        size: number of columns x of the base program.
        master: the program with all t, rows and tangents so far, which is solved in every round.
        bounds: the bounds so far, with their columns and rows.
        tangents: the tangents so far, in the order in which they were added.
        point: last optimum of the master program; None before the first one.
        x: the columns x of the last optimum, shape (size,).
        largest_excess: largest relative excess of the last optimum over a limit, if tangents are
            added where a solution breaks a bound.
        rounds: number of solves so far.
        even_columns: columns whose laws are even, shape (size,); None if they are not feasible or
            if `has_similar_comparisons`.
        inner_columns: columns within all bounds where every further segment starts.
        best_columns: the cheapest known columns within all bounds.
        best_value: objective of `best_columns`, infinite if none are known.
        best_proof: solution whose multipliers prove the highest lower bound; None before a proof.
        proven_bound: the highest lower bound.
        gap_history: gap between `best_value` and `proven_bound` after each round with a segment.
    """

    def __init__(
        self,
        base: Program,
        comparisons: Comparisons,
        bounds: Iterable[Bound],
        solver: str = "highs",
        *,
        has_similar_comparisons: bool = False,
        level_range: LevelRange | None = None,
        options: Options | None = None,
    ) -> None:
        self.base = base
        self.comparisons = comparisons
        self.has_similar_comparisons = has_similar_comparisons
        self.level_range = level_range
        self.size = base.shape[1]
        if solver == "highs" and not base.is_mip and options in (None, Options()):
            outcome_count = comparisons.second.size
            use_devex = has_similar_comparisons and outcome_count >= _LIMITS.min_devex_outcomes
            self.master: RestatedProgram = GrowingProgram(
                base, _LIMITS.simplex_tolerance, use_devex=use_devex
            )
        else:
            self.master = RestatedProgram(base, solver, options)
        self._batch = RowBatch(self.master)
        # (comparison, outcomes as bytes, level) of the rows that state a hockey stick for an event.
        self._events: set[tuple[int, bytes, float]] = set()
        self.solver = solver
        self.options = options or Options()
        self.bounds: list[StatedBound] = []
        self.tangents: list[Tangents] = []
        self.point: Point | None = None
        self.x = np.zeros(self.size)
        self.largest_excess = 0.0
        self.rounds = 0
        self._add_bounds(bounds)
        self.even_columns: Vector | None = None
        self.inner_columns = self.x
        self.best_columns = self.x
        self.best_value = np.inf
        # Without even columns this is the proof of the last optimum.
        self.best_proof: Solution | None = None
        self.proven_bound = -np.inf
        # The first rounds are compared with these gaps, so they never count as idle.
        self.gap_history = [np.inf] * _LIMITS.idle_rounds

    def solve(
        self,
        find_broken_bounds: FindBrokenBounds | None,
        precision: float,
        deadline: Deadline | None = None,
    ) -> Point:
        """Solve, adding tangents until the optimum breaks no limit by more than the precision.

        Args:
            find_broken_bounds: function that finds further bounds that two laws break. None if
                `bounds` has all of them.
            precision: accepted relative excess over a limit.
            deadline: deadline of the solve. None: no time limit.

        Returns:
            The last optimum. It may break a limit if rounds or time ran out.

        Raises:
            SolverError: no optimum was found at all.
        """
        for _ in range(_LIMITS.max_rounds):
            self._batch.flush()
            try:
                self.point = self.master.solve(deadline)
            except SolverError:
                # After numerical trouble or a time limit the last optimum stays the answer.
                if self.point is None:
                    raise
                break
            self.x = np.maximum(self.point.x[: self.size], 0.0)
            self.rounds += 1
            if not self.has_similar_comparisons:
                self._record_proof(self.point)
                has_even_start = self.rounds == 1 and self._start_even(deadline)
                if has_even_start and self._start_inside(deadline):
                    continue
            # The second relaxation has the tangents at the interior point. If it proves that the
            # interior point is optimal, no further rounds are needed.
            max_gap = _LIMITS.interior_gap * abs(self.point.value)
            if self.rounds == 2 and self.best_value - self.proven_bound <= max_gap:
                break
            if self.even_columns is not None:
                has_new_rows = self._add_exit_tangents(self.point, find_broken_bounds)
            else:
                has_new_rows = self._add_broken_tangents(self.point, find_broken_bounds, precision)
            if not has_new_rows or (deadline is not None and deadline.has_passed):
                break
        assert self.point is not None
        return self.point

    def build_solution(self) -> Solution:
        """Return the best proof with the cheapest columns that are known to be within all bounds.

        If no such columns are known, the solution has the columns of the proof.
        """
        assert self.best_proof is not None
        x = np.array(self.best_proof.x)
        if self.best_value < np.inf:
            x[: self.size] = self.best_columns
        return replace(self.best_proof, x=x)

    def _record_proof(self, point: Point) -> None:
        """Keep a point if it proves a higher bound than all before.

        Nearly parallel rows spoil the multipliers of some optima.
        """
        solution = self.master.to_solution(point)
        bound = -np.inf if solution.bound is None else solution.bound - self.base.shift
        if self.even_columns is None or bound > self.proven_bound:
            self.best_proof = solution
            self.proven_bound = bound

    def bound_multipliers(self, point: Point) -> Iterator[BoundMultipliers]:
        """Yield the multipliers of every bound and comparison that has tangents.

        Args:
            point: an optimum of the master program with its duals.
        """
        duals = np.maximum(-point.duals, 0.0)
        groups = defaultdict(list)
        for tangents in self.tangents:
            groups[id(tangents.bound), tangents.comparison].append(tangents)
        for group in groups.values():
            # All tangents of a group belong to the same bound and comparison.
            first_tangents, *_ = group
            bound = first_tangents.bound
            comparison = first_tangents.comparison
            first, second = self.comparisons.law_entries(comparison)
            outcomes = np.concatenate([tangents.outcomes for tangents in group])
            a = np.concatenate([tangents.a for tangents in group])
            b = np.concatenate([tangents.b for tangents in group])
            multiplier_slices = [
                duals[tangents.row : tangents.row + tangents.outcomes.size] for tangents in group
            ]
            tangent_multipliers = np.concatenate(multiplier_slices)
            # Tangents and sums that were added after the last solve have no dual values yet.
            sum_row = bound.sums[comparison]
            sum_dual = duals[sum_row] if 0 <= sum_row < duals.size else 0.0
            # Every t_o also has the upper bound `limit` of its column. If t_o is at this bound, the
            # multipliers of its tangents are not in the dual value of the sum row. Their sum is
            # then the multiplier of the limit.
            outcome_sums = np.bincount(outcomes[: tangent_multipliers.size], tangent_multipliers)
            yield BoundMultipliers(
                limit=bound.limit / bound.unit,
                sum_multiplier=float(outcome_sums.max(initial=sum_dual)),
                outcomes=outcomes,
                first=first[outcomes],
                second=second[outcomes],
                a=a,
                b=b,
                tangent_multipliers=tangent_multipliers,
            )

    def _start_even(self, deadline: Deadline | None) -> bool:
        """Find columns whose laws are even on the outcomes they may use.

        Returns whether the program has such columns.
        """
        data = self.base.template
        is_usable = data.upper > 0
        even = self.x.copy()
        is_compared = np.zeros(self.size, dtype=bool)
        for comparison in range(len(self.comparisons.second)):
            for law in self.comparisons.law_entries(comparison):
                # `law` has positions among the entries. They are columns if `entries` is the
                # identity.
                usable_count = max(1, is_usable[law].sum())  # 1 avoids a division by 0.
                # The law keeps its total mass.
                even[law] = self.x[law].sum() * is_usable[law] / usable_count
                is_compared[law] = True
        lower = np.where(is_compared, even, data.lower)
        upper = np.where(is_compared, even, data.upper)
        fixed_program = replace(self.base, template=replace(data, lower=lower, upper=upper))
        time_limit = None if deadline is None else deadline.solver_time_limit
        options = replace(self.options, time_limit=time_limit)
        self.even_columns = solve(fixed_program, solver=self.solver, options=options).x
        if self.even_columns is None:
            return False
        self.inner_columns = self.even_columns
        return True

    def _start_inside(self, deadline: Deadline | None) -> bool:
        """Run the interior-point method and add the tangents at its point.

        Returns whether the method applies and found a point.
        """
        stated_requirements = [bound.requirement for bound in self.bounds]
        requirements = list_smooth_bounds(stated_requirements, self.level_range)
        if requirements is None or self.size > MAX_INTERIOR_COLUMNS or self.base.is_mip:
            return False
        data = self.base.template
        answer = solve_interior_point(
            data,
            (self.comparisons.entries, self.comparisons.first, self.comparisons.second),
            requirements,
            self.level_range,
            self.inner_columns,
            deadline,
        )
        if answer is None:
            return False
        x = answer.x
        rows = data.A @ x
        violations = [data.row_lower - rows, rows - data.row_upper, x - data.upper]
        if np.concatenate(violations).max() > _LIMITS.max_interior_violation:
            return False
        self.inner_columns = x
        self.best_columns = x
        self.best_value = float(data.c @ x) + data.offset
        self._add_bounds(bound for bound, *_ in answer.active_bounds)
        stated_bounds = {bound.requirement: bound for bound in self.bounds}
        p, q = self.comparisons.laws_at(x)
        all_outcomes = np.ones(p.shape[1], dtype=bool)
        for bound, comparison, _ in answer.active_bounds:
            self._add_tangents(
                stated_bounds[bound], comparison, p[comparison], q[comparison], all_outcomes
            )
        return True

    def _add_exit_tangents(
        self,
        point: Point,
        find_broken_bounds: FindBrokenBounds | None,
    ) -> bool:
        """Add tangents where the segment from the inner point to the last optimum leaves a bound.

        The inner point follows the segment. Returns whether tangents were added.
        """
        assert self.even_columns is not None
        inner_laws = self.comparisons.laws_at(self.inner_columns)
        outer_laws = self.comparisons.laws_at(self.x)
        shares = _find_feasible_shares(self.bounds, inner_laws, outer_laws)
        for _ in range(_LIMITS.max_bounds_per_round):
            if find_broken_bounds is None:
                break
            bound_count = len(self.bounds)
            # With rows for events, each comparison is followed to its own first exit: the shape is
            # (comparisons, 1). Otherwise all are followed to the first exit of any.
            exit_shares = shares.min(axis=0, keepdims=True, initial=1.0).T
            if not self._events:
                exit_shares = exit_shares.min(axis=0)
            laws = _interpolate_laws(inner_laws, outer_laws, exit_shares)
            broken_bounds: list[Bound] = []
            for p, q in zip(*laws, strict=True):
                broken_bounds += find_broken_bounds(p, q)
            if not self._add_bounds(broken_bounds):
                break
            new_bounds = self.bounds[bound_count:]
            new_shares = _find_feasible_shares(new_bounds, inner_laws, outer_laws)
            shares = np.vstack([shares, new_shares])
        if not self._follow_segment(float(shares.min(initial=1.0)), point):
            return False
        t = np.append(point.x, 0.0)  # Index -1 reads this 0, the value of a t without a column.
        has_new_rows = False
        if find_broken_bounds is not None:
            has_new_rows = self._add_events(outer_laws, find_broken_bounds)
        # Sorting the positions of the sorted shares gives the rank of each bound, 0 for the first
        # exit of the comparison.
        exit_rank = shares.argsort(axis=0).argsort(axis=0)
        is_early_exit = (shares < 1) & (exit_rank < _LIMITS.max_exit_bounds)
        for bound_index, comparison in zip(*np.nonzero(is_early_exit), strict=True):
            bound = self.bounds[bound_index]
            p, q = (law[comparison] for law in outer_laws)
            inner_p, inner_q = (law[comparison] for law in inner_laws)
            inner_law = (inner_p, inner_q)
            exit_p, exit_q = _interpolate_laws(inner_law, (p, q), shares[bound_index, comparison])
            if find_broken_bounds is not None and _is_stick_with_limit(bound.requirement):
                has_new_rows |= self._add_event(bound.requirement, int(comparison), exit_p, exit_q)
                continue
            a, b = compute_tangents(bound.requirement, exit_p, exit_q)
            gaps = a * p + b * q - t[bound.columns[comparison]] * bound.unit
            gains_tangent = gaps > _LIMITS.min_exit_share * gaps.max()
            has_new_rows |= self._add_tangents(
                bound, int(comparison), exit_p, exit_q, gains_tangent
            )
        if self._events and not has_new_rows:
            # The optimum is within all bounds up to the tolerance of the solver. A segment from
            # deep inside leaves them close to it.
            self.inner_columns = (self.inner_columns + self.even_columns) / 2
            inner_laws = self.comparisons.laws_at(self.inner_columns)
            shares = _find_feasible_shares(self.bounds, inner_laws, outer_laws)
            self._follow_segment(float(shares.min(initial=1.0)), point)
        return has_new_rows

    def _add_events(self, laws: Pair, find_broken_bounds: FindBrokenBounds) -> bool:
        """Add a row for every hockey stick that laws break. Returns whether rows were added.

        Args:
            laws: (P, Q), each of shape (comparisons, outcomes).
            find_broken_bounds: function that finds the broken bounds.
        """
        has_new_rows = False
        for comparison, (p, q) in enumerate(zip(*laws, strict=True)):
            for bound in find_broken_bounds(p, q):
                if _is_stick_with_limit(bound):
                    has_new_rows |= self._add_event(bound, comparison, p, q)
        return has_new_rows

    def _add_event(
        self,
        stick: Bound,
        comparison: int,
        p: Vector,
        q: Vector,
    ) -> bool:
        """State a hockey stick for the event at which two laws have their sum of terms.

        Args:
            stick: a hockey stick with a positive limit.
            comparison: number of the comparison.
            p: masses P, shape (outcomes,).
            q: masses Q, the same shape.

        Returns:
            Whether the row was added. It is not if the last optimum satisfies it.
        """
        a, b = compute_tangents(stick, p, q)
        event = np.flatnonzero(a * p + b * q > 0)
        key = (comparison, event.tobytes(), stick.level)
        first, second = self.comparisons.law_entries(comparison)
        # The entries are columns, because the comparisons are not similar.
        columns = np.concatenate([first[event], second[event]])
        slopes = np.concatenate([a[event], b[event]])
        excess = float(slopes @ self.x[columns]) - stick.limit
        if excess <= _LIMITS.min_event_excess or key in self._events:
            return False
        self._events.add(key)
        row = self._batch.add_rows(1, stick.limit)
        self._batch.add_coefficients(slopes, np.full(columns.size, row), columns)
        return True

    def _follow_segment(
        self,
        share: float,
        point: Point,
    ) -> bool:
        """Move the inner point along a share of the segment that is within all bounds.

        Returns whether the gap is worth further rounds: it is not closed, and it has shrunk enough
        during the last rounds.
        """
        data = self.base.template
        reached_columns = self.inner_columns + share * (self.x - self.inner_columns)
        value = float(data.c @ reached_columns) + data.offset
        if share and value < self.best_value:
            self.best_columns = reached_columns
            self.best_value = value
        if share:
            step = reached_columns - self.inner_columns
            step_share = _LIMITS.inner_step_share
            if self._events:
                step_share = _LIMITS.inner_step_share_with_events
            self.inner_columns = self.inner_columns + step_share * step
        else:
            # The inner point is at a bound, and the segment leaves it at once.
            assert self.even_columns is not None
            self.inner_columns = (self.inner_columns + self.even_columns) / 2
        gap = self.best_value - self.proven_bound
        self.gap_history.append(gap)
        earlier_gap = self.gap_history[-1 - _LIMITS.idle_rounds]
        return _LIMITS.closed_gap * abs(point.value) < gap <= _LIMITS.max_gap_ratio * earlier_gap

    def _add_bounds(self, bounds: Iterable[Bound]) -> bool:
        """Add the bounds that the program does not have yet. Returns whether there are any."""
        present = {bound.requirement for bound in self.bounds}
        new_bounds = [bound for bound in dict.fromkeys(bounds) if bound not in present]
        shape = self.comparisons.second.shape
        self.bounds += [StatedBound(bound, shape) for bound in new_bounds]
        return bool(new_bounds)

    def add_all_tangents(self) -> None:
        """Add tangents of all outcomes.

        A hockey stick gains its only tangent, every other bound those at P = Q/2 and P = 2 Q.
        """
        comparison_count, outcome_count = self.comparisons.second.shape
        q = np.ones(outcome_count)
        all_outcomes = np.ones(outcome_count, dtype=bool)
        for bound in self.bounds:
            # The tangent of a hockey stick does not depend on the ratio.
            ratios = (1.0,) if bound.requirement.kind == HOCKEY_STICK else (0.5, 2.0)
            for comparison in range(comparison_count):
                for ratio in ratios:
                    self._add_tangents(bound, comparison, ratio * q, q, all_outcomes)
        self._batch.flush()

    def add_tangents_near(self, x: Vector) -> None:
        """Add tangents at a point: of every hockey stick that it nearly reaches, and of all others.

        Args:
            x: values of the columns, shape (columns,).
        """
        p, q = self.comparisons.laws_at(x)
        for bound in self.bounds:
            terms = bound.tangent_terms(p, q)
            is_stick = bound.requirement.kind == HOCKEY_STICK
            # A relative excess is at least -1, so the margin 1 admits all other bounds.
            margin = _LIMITS.active_margin if is_stick else 1.0
            is_reached = bound.relative_excess(terms, p) >= -margin
            for comparison in np.flatnonzero(is_reached).tolist():
                self._add_tangents(
                    bound, comparison, p[comparison], q[comparison], terms[comparison] > 0
                )

    def _add_broken_tangents(
        self,
        point: Point,
        find_broken_bounds: FindBrokenBounds | None,
        precision: float,
    ) -> bool:
        """Add tangents of the bounds that the last optimum breaks.

        If `find_broken_bounds` is given, also add the bounds it finds; they gain tangents in later
        rounds. Returns whether any tangent or bound was added.
        """
        p, q = self.comparisons.laws_at(self.x)
        t = np.append(point.x, 0.0)  # Index -1 reads this 0, the value of a t without a column.
        candidates: list[_BrokenBound] = []
        for bound in self.bounds:
            terms = bound.tangent_terms(p, q)
            excess = bound.relative_excess(terms, p)
            if self.has_similar_comparisons and bound.requirement.kind == HOCKEY_STICK:
                broken_comparisons = [int(excess.argmax())]
            else:
                broken_comparisons = np.flatnonzero(excess > precision).tolist()
            candidates += [
                _BrokenBound(float(excess[k]), k, bound, terms[k]) for k in broken_comparisons
            ]
        candidates.sort(key=lambda candidate: -candidate.excess)
        self.largest_excess = 0.0
        if candidates:
            self.largest_excess = max(0.0, candidates[0].excess)
        if self.has_similar_comparisons:
            candidates = candidates[: _LIMITS.max_bounds_per_round]
        has_new_rows = False
        for candidate in candidates:
            if candidate.excess > precision:
                bound = candidate.bound
                comparison = candidate.comparison
                gaps = candidate.terms - t[bound.columns[comparison]] * bound.unit
                min_gap = 0.0
                if bound.requirement.kind != HOCKEY_STICK:
                    min_gap = _LIMITS.min_gap_share * gaps.max()
                has_new_rows |= self._add_tangents(
                    bound, comparison, p[comparison], q[comparison], gaps > min_gap
                )
        is_near_limits = self.largest_excess < _LIMITS.max_excess_for_new_bounds
        if find_broken_bounds is not None and is_near_limits:
            for first, second in zip(p, q, strict=True):
                has_new_rows |= self._add_bounds(find_broken_bounds(first, second))
        return has_new_rows

    def _add_tangents(
        self,
        bound: StatedBound,
        comparison: int,
        p: Vector,
        q: Vector,
        is_selected: Flags,
    ) -> bool:
        """Add the tangents of the selected outcomes at their ratios p/q.

        A hockey stick has one tangent for each outcome, which is added once. `p`, `q` and
        `is_selected` have the shape (outcomes,). Returns whether any tangents were added.
        """
        first, second = self.comparisons.law_entries(comparison)
        columns = bound.columns[comparison]
        if bound.requirement.kind == HOCKEY_STICK:
            is_selected = is_selected & ~bound.has_rows[comparison]
        outcomes = np.flatnonzero(is_selected)
        if not outcomes.size:
            return False
        count = outcomes.size
        limit = bound.limit / bound.unit
        if bound.limit and bound.sums[comparison] < 0:
            bound.sums[comparison] = self._batch.add_rows(1, limit)
        slopes = compute_tangents(bound.requirement, p[outcomes], q[outcomes])
        a, b = (slope / bound.unit for slope in slopes)
        bound.has_rows[comparison, outcomes] = True
        first_row = self._batch.add_rows(count, 0.0)
        # The coefficients of P and Q are slopes times rows of the matrix of entries, first the
        # `count` rows of P, then those of Q. So place k of this list is in the new row k % count.
        entries = self.comparisons.entries
        law_entries = np.concatenate([first[outcomes], second[outcomes]])
        starts = entries.indptr[law_entries]
        sizes = entries.indptr[law_entries + 1] - starts
        places = np.repeat(np.arange(2 * count), sizes)
        # Each row of entries is the range start..start + size - 1 of the data of the matrix. The
        # ranges are listed one after the other; `cumsum(sizes) - sizes` is where each begins.
        positions = np.arange(places.size) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        self._batch.add_coefficients(
            entries.data[positions] * np.concatenate([a, b])[places],
            first_row + places % count,
            entries.indices[positions],
        )
        if bound.limit:
            new_outcomes = outcomes[columns[outcomes] < 0]
            sum_row = int(bound.sums[comparison])
            columns[new_outcomes] = self._batch.add_columns(sum_row, new_outcomes.size, limit)
            rows = first_row + np.arange(count)
            self._batch.add_coefficients(np.full(count, -1.0), rows, columns[outcomes])
        self.tangents.append(Tangents(first_row, bound, comparison, outcomes, a, b))
        return True


def _is_stick_with_limit(bound: Bound) -> bool:
    """Return whether a bound is a hockey stick with a positive limit."""
    return bound.kind == HOCKEY_STICK and bound.limit > 0


def _find_feasible_shares(
    bounds: Sequence[StatedBound],
    inner_laws: Pair,
    outer_laws: Pair,
) -> Vector:
    """Find the share of the segment between two points that is within each bound.

    Args:
        bounds: the bounds.
        inner_laws: (P, Q) within all bounds, each of shape (comparisons, outcomes).
        outer_laws: (P, Q) at the other end, the same shapes.

    Returns:
        Share in [0, 1] of the segment that is within the bound, shape (bounds, comparisons).
    """
    outer_p, _ = outer_laws
    shares = np.ones((len(bounds), len(outer_p)))
    stick_indices = []
    for index, bound in enumerate(bounds):
        if _is_stick_with_limit(bound.requirement):
            stick_indices.append(index)
        else:
            shares[index] = bound.feasible_shares(inner_laws, outer_laws)
    if stick_indices:
        sticks = [bounds[index] for index in stick_indices]
        shares[stick_indices] = _find_stick_shares(sticks, inner_laws, outer_laws)
    return shares


def _find_stick_shares(
    sticks: Sequence[StatedBound],
    inner_laws: Pair,
    outer_laws: Pair,
) -> Vector:
    """Do what `_find_feasible_shares` does for hockey sticks of positive limits, all at once."""
    levels = np.array([stick.requirement.level for stick in sticks])
    limits = np.array([stick.limit for stick in sticks])
    terms = [evaluate_terms(stick.requirement, *outer_laws) for stick in sticks]
    sums = np.array([terms_of_stick.sum(axis=1) for terms_of_stick in terms])
    stick_numbers, comparisons = np.nonzero(sums / limits[:, None] - 1 > 0)
    exit_levels = levels[stick_numbers, None]
    exit_limits = limits[stick_numbers]
    inner_p, inner_q = inner_laws
    outer_p, outer_q = outer_laws
    exit_inner_laws = (inner_p[comparisons], inner_q[comparisons])
    exit_outer_laws = (outer_p[comparisons], outer_q[comparisons])

    def is_outside(exit_shares: Vector) -> Flags:
        """Return whether each sum exceeds its limit at its share of the segment."""
        p, q = _interpolate_laws(exit_inner_laws, exit_outer_laws, exit_shares[:, None])
        exit_sums = np.maximum(p - exit_levels * q, 0.0).sum(axis=1)
        return np.asarray(exit_sums / exit_limits - 1 > 0)

    start = np.zeros(comparisons.size)
    end = np.ones(comparisons.size)
    shares = np.ones(sums.shape)
    shares[stick_numbers, comparisons], _ = bisect_each(
        is_outside, start, end, _LIMITS.segment_halvings
    )
    return shares


def _interpolate_laws(
    inner_laws: Pair,
    outer_laws: Pair,
    share: Vector | float,
) -> Pair:
    """Return the laws at a share of the segment between two pairs of laws."""
    inner_p, inner_q = inner_laws
    outer_p, outer_q = outer_laws
    return inner_p + share * (outer_p - inner_p), inner_q + share * (outer_q - inner_q)


def _weaken_small_entries(rows: sp.csr_array) -> sp.csr_array:
    """Replace coefficients that solvers would drop by smaller ones that they read.

    A smaller coefficient weakens the row, so that no x >= 0 is cut off.
    """
    is_small = np.abs(rows.data) <= MIN_COEFFICIENT
    weaker_entries = np.where(rows.data[is_small] < 0, -np.nextafter(MIN_COEFFICIENT, 1.0), 0.0)
    rows.data[is_small] = weaker_entries
    rows.eliminate_zeros()
    return rows
