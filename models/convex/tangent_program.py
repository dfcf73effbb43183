"""Linear programs whose columns hold laws under convex bounds, which are stated by tangents as they are needed.

    min c'x  s.t.  rows of x,  and  Σ_o φ(P_o, Q_o) <= limit   for every bound and comparison (P, Q), linear in x

Every bound (`workbench.models.convex.requirements`) is such a sum with terms φ that are convex, homogeneous and >= 0:
the largest of 0 and their tangents a P + b Q at ratios P/Q (`workbench.models.convex.tangents`):

    t_o >= a P_o + b Q_o  for some tangents,  t >= 0,  Σ_o t_o <= limit            limit = 0: a P_o + b Q_o <= 0

A hockey stick has one tangent beside 0, so that nothing is lost; cones gain tangents where a point breaks them.
Whatever is stated, the program is a relaxation, and multipliers prove a lower bound on the optimum.

Few t are positive at an optimum. They are stated where a point breaks a bound; what is not stated is 0. HiGHS goes on
by its dual simplex method: the new column costs nothing, so duals stay feasible. Notions that amount to infinitely many
bounds add those that a point breaks (`More`).

Vertices break bounds by far, and at steep ratios. Where even laws are a point of the program, the way from a point
within all bounds to each optimum is followed, and tangents are those where it leaves a bound (in-out separation,
Ben-Ameur and Neto 2007); the answer is the cheapest point of these ways that is within all bounds. Where all bounds are
smooth, an interior-point method finds the first of these points (`workbench.models.convex.interior`), and its tangents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from workbench.models.convex.interior import LevelRange, solve_interior_point
from workbench.models.convex.requirements import HOCKEY_STICK, RELATIVE_ENTROPY, Bound
from workbench.models.convex.tangents import compute_tangents, evaluate_terms, max_term_sum
from workbench.solvers.arrays import Flags, Integers, Ints, Pair, Vector
from workbench.solvers.backend import Options, solve
from workbench.solvers.data import MIN_COEFFICIENT
from workbench.solvers.errors import SolverError
from workbench.solvers.growing import GrowingProgram, Point, RestatedProgram
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline, bisect_each
from workbench.solvers.solution import Solution

FindBrokenBounds = Callable[
    [Vector, Vector], Iterable[Bound]
]  # (P, Q) -> further bounds that they break

_TOLERANCE = (
    1e-10  # HiGHS's least: reduced costs within its usual one may cost a bound 1e-8 of its value
)
_ROUNDS, _AT_ONCE = (
    2000,
    8,
)  # of work; bounds, and comparisons of cones, that gain tangents in a round where few do
_LITTLE = 1e-2  # share of the worst outcome's excess from which outcomes gain tangents
_ROUGH = 1e-2  # relative excess up to which further bounds are asked for
_NEARLY = 1e-7  # relative, below a limit, where a bound may press at the optimum
_SPECK = 1e-9  # mass beside which ratios do not count
_HALVINGS, _INWARDS = (
    40,
    0.5,
)  # of the way to an optimum; of the way that is inside, by which the point inside follows
_FIRST, _LESS = 3, 1e-3  # bounds of a comparison, those that the way leaves first; as _LITTLE
_CLOSE, _IDLE, _GAIN = (
    1e-10,
    8,
    0.9,
)  # relative gap that is enough; rounds, and share of the gap that they must close
_WIDE = 11_000  # outcomes of all comparisons, where few gain tangents, from which these are priced by Devex weights
_ENOUGH, _COLUMNS, _MISSED = (
    5e-8,
    1500,
    1e-9,
)  # the gap from an interior point; columns of one; what rows may miss


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Laws as columns x >= 0 hold them: with e = entries x,  P = e[first],  Q = e[second].

    entries: (entries, columns) >= 0; first: (comparisons, outcomes), or (outcomes,) where P is the same in all; second:
    (comparisons, outcomes).
    """

    entries: sp.csr_array
    first: Integers
    second: Integers

    def laws_at(self, x: Vector) -> Pair:
        """(P, Q) at the columns x, each (comparisons, outcomes)."""
        e = self.entries @ x
        return np.broadcast_to(e[self.first], self.second.shape), e[self.second]

    def law_entries(self, comparison: int) -> tuple[Integers, Integers]:
        """Which entries (P, Q) are."""
        return (self.first if self.first.ndim == 1 else self.first[comparison]), self.second[
            comparison
        ]


class StatedBound:
    """A bound of the program. unit: of its rows; columns: of its t, -1 where none is stated, (comparisons, outcomes);
    sums: the row Σ t <= limit of every comparison, -1 where none is."""

    def __init__(self, bound: Bound, shape: Ints) -> None:
        self.requirement, self.limit = bound, max_term_sum(bound)
        self.unit = max(1.0, self.limit)
        self.columns, self.sums = np.full(shape, -1), np.full(shape[0], -1)

    def evaluate_terms(self, p: Vector, q: Vector) -> Vector:
        """φ(P, Q), but for the steepest ratios, where it is the steepest tangent."""
        a, b = compute_tangents(self.requirement, p, q)
        return np.maximum(a * p + b * q, 0.0)

    def feasible_shares(self, inside: Pair, laws: Pair) -> Vector:
        """How much of the way from laws inside the bound to others is inside it, at every comparison."""

        def out(share: Vector) -> Flags:
            p, q = _between(inside, laws, share[:, None])
            return self.relative_excess(evaluate_terms(self.requirement, p, q), p) > 0

        none, whole = np.zeros(self.sums.size), np.ones(self.sums.size)
        left = out(whole)
        low, _ = bisect_each(out, none, whole, _HALVINGS if left.any() else 0)
        return np.where(left, low, 1.0)

    def relative_excess(self, terms: Vector, p: Vector) -> Vector:
        """Over the limit, relative, at every comparison; of the worst outcome where the limit is 0."""
        if self.limit:
            return np.asarray(terms.sum(axis=1) / self.limit - 1)
        return np.asarray((terms / np.maximum(p, _SPECK)).max(axis=1))


@dataclass(frozen=True)
class Tangents:
    """Rows a P + b Q <= t of outcomes of a bound, at one comparison, from a row on."""

    row: int
    bound: StatedBound
    comparison: int
    outcomes: Integers
    a: Vector
    b: Vector


@dataclass(frozen=True)
class BoundMultipliers:
    """Of a bound at one comparison: of its sum, and of tangents a P + b Q <= t of outcomes, whose entries are first (P)
    and second (Q)."""

    limit: float
    sum_multiplier: float
    outcomes: Integers
    first: Integers
    second: Integers
    a: Vector
    b: Vector
    tangent_multipliers: Vector


class TangentProgram:
    """The program as far as it is stated.

    base: the rows of x, without a moving number; few: whether the comparisons are so much alike (shifts of one law)
    that a bound gains tangents at few of them in a round, a hockey stick at its worst alone; levels: bounds of which
    `More` gives some; solver: HiGHS goes on from basis to basis unless there are whole numbers.
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
        self.base, self.comparisons, self.has_similar_comparisons, self.size = (
            base,
            comparisons,
            has_similar_comparisons,
            base.shape[1],
        )
        self.level_range = level_range
        live = solver == "highs" and not base.is_mip and options in (None, Options())
        wide = has_similar_comparisons and comparisons.second.size >= _WIDE
        self.master = (
            GrowingProgram(base, _TOLERANCE, use_devex=wide)
            if live
            else RestatedProgram(base, solver, options)
        )
        self.solver, self.options = solver, options or Options()
        self.bounds: list[StatedBound] = []
        self.tangents: list[Tangents] = []
        self.point: Point | None = None
        self.x, self.largest_excess, self.rounds = np.zeros(self.size), 0.0, 0
        self._know(bounds)
        self.even_columns: Vector | None = (
            None  # columns within all bounds, where the way to every optimum begins
        )
        self.inner_columns, self.best_columns, self.best_value = (
            self.x,
            self.x,
            np.inf,
        )  # others; the cheapest, and their value
        self.best_proof: Solution | None = (
            None  # what proves the highest bound, where there is an even point; else the last
        )
        self.bound, self.gap_history = (
            -np.inf,
            [np.inf] * _IDLE,
        )  # what it proves; from there to the cheapest, by rounds

    def solve(
        self,
        find_broken_bounds: FindBrokenBounds | None,
        precision: float,
        deadline: Deadline | None = None,
    ) -> Point:
        """The last point, which breaks no limit by more than a relative precision, but where rounds or time were up.

        more: where bounds are infinitely many. Raises SolverError where there is no point at all.
        """
        for _ in range(_ROUNDS):
            try:
                self.point = self.master.solve(deadline)
            except SolverError:  # numerical trouble, or no time: what was known before it stands
                if self.point is None:
                    raise
                break
            self.x, self.rounds = np.maximum(self.point.x[: self.size], 0.0), self.rounds + 1
            if not self.has_similar_comparisons:
                self._prove(self.point)
                if self.rounds == 1 and self._start(deadline) and self._state_inside(deadline):
                    continue
            if self.rounds == 2 and self.best_value - self.bound <= _ENOUGH * abs(self.point.value):
                break
            new = (
                self._left(self.point, find_broken_bounds)
                if self.even_columns is not None
                else self._broken(self.point, find_broken_bounds, precision)
            )
            if not new or (deadline is not None and deadline.has_passed):
                break
        assert self.point is not None
        return self.point

    def build_solution(self) -> Solution:
        """The multipliers that prove most, with the cheapest columns known within all bounds, or else their own."""
        assert self.best_proof is not None
        x = np.array(self.best_proof.x)
        if self.best_value < np.inf:
            x[: self.size] = self.best_columns
        return replace(self.best_proof, x=x)

    def _prove(self, point: Point) -> None:
        """Keep a point that proves more than those before: near-parallel rows spoil multipliers of some optima."""
        answer = self.master.to_solution(point)
        bound = -np.inf if answer.bound is None else answer.bound - self.base.shift
        if self.even_columns is None or bound > self.bound:
            self.best_proof, self.bound = answer, bound

    def bound_multipliers(self, point: Point) -> Iterator[BoundMultipliers]:
        """What a point proves, of every bound and comparison that has tangents."""
        duals, known = np.maximum(-point.duals, 0.0), defaultdict(list)
        for part in self.tangents:
            known[id(part.bound), part.comparison].append(part)
        for parts in known.values():
            bound, at = parts[0].bound, parts[0].comparison
            first, second = self.comparisons.law_entries(at)
            o, a, b = (
                np.concatenate([getattr(part, k) for part in parts]) for k in ("outcomes", "a", "b")
            )
            amounts = np.concatenate(
                [duals[part.row : part.row + part.outcomes.size] for part in parts]
            )
            own = np.bincount(
                o[: amounts.size], amounts
            )  # a t may be at its own bound, with no multiplier of the sum
            of_sum = float(
                own.max(initial=duals[bound.sums[at]] if 0 <= bound.sums[at] < duals.size else 0.0)
            )
            yield BoundMultipliers(
                bound.limit / bound.unit, of_sum, o, first[o], second[o], a, b, amounts
            )

    def _start(self, deadline: Deadline | None) -> bool:
        """Begin at columns whose laws are even on what they may hold. Whether the program has such a point."""
        data = self.base.template
        allowed, even, compared = data.upper > 0, self.x.copy(), np.zeros(self.size, dtype=bool)
        for comparison in range(len(self.comparisons.second)):
            for law in self.comparisons.law_entries(comparison):
                even[law], compared[law] = (
                    self.x[law].sum() * allowed[law] / max(1, allowed[law].sum()),
                    True,
                )
        lower, upper = (np.where(compared, even, side) for side in (data.lower, data.upper))
        spread = replace(self.base, template=replace(data, lower=lower, upper=upper))
        options = replace(
            self.options, time_limit=None if deadline is None else deadline.solver_time_limit
        )
        self.even_columns = solve(spread, solver=self.solver, options=options).x
        if self.even_columns is not None:
            self.inner_columns = self.even_columns
        return self.even_columns is not None

    def _state_inside(self, deadline: Deadline | None) -> bool:
        """Whether the interior-point method knows a point, whose tangents are stated."""
        stated = [
            b.requirement
            for b in self.bounds
            if self.level_range is None or b.requirement.kind == RELATIVE_ENTROPY
        ]
        smooth = all(bound.kind != HOCKEY_STICK and max_term_sum(bound) > 0 for bound in stated)
        if not smooth or self.size > _COLUMNS or self.base.is_mip:
            return False
        data, compared = (
            self.base.template,
            (self.comparisons.entries, self.comparisons.first, self.comparisons.second),
        )
        answer = solve_interior_point(
            data, compared, stated, self.level_range, self.inner_columns, deadline
        )
        if answer is None:
            return False
        x, rows = answer.x, data.A @ answer.x
        if (
            np.concatenate([data.row_lower - rows, rows - data.row_upper, x - data.upper]).max()
            > _MISSED
        ):
            return False
        self.inner_columns, self.best_columns, self.best_value = (
            x,
            x,
            float(data.c @ x) + data.offset,
        )
        self._know(bound for bound, *_ in answer.active_bounds)
        known, (p, q) = (
            {bound.requirement: bound for bound in self.bounds},
            self.comparisons.laws_at(x),
        )
        for bound, at, _ in answer.active_bounds:
            self._state(known[bound], at, p[at], q[at], np.ones(p.shape[1], dtype=bool))
        return True

    def _left(self, point: Point, more: FindBrokenBounds | None) -> bool:
        """Whether the way from the point inside to the last one leaves a bound, of which more is now stated. The point
        inside follows."""
        inside, outside = (
            self.comparisons.laws_at(self.inner_columns),
            self.comparisons.laws_at(self.x),
        )
        shares = np.array([bound.feasible_shares(inside, outside) for bound in self.bounds])
        for _ in range(_AT_ONCE):
            known, laws = len(self.bounds), _between(inside, outside, shares.min(initial=1.0))
            if more is None or not self._know(
                [bound for p, q in zip(*laws, strict=True) for bound in more(p, q)]
            ):
                break
            shares = np.vstack(
                [shares, [bound.feasible_shares(inside, outside) for bound in self.bounds[known:]]]
            )
        if not self._gained(float(shares.min(initial=1.0)), point):
            return False
        t, new = np.append(point.x, 0.0), False
        for k, at in zip(
            *np.nonzero((shares < 1) & (shares.argsort(axis=0).argsort(axis=0) < _FIRST)),
            strict=True,
        ):
            bound, p, q = self.bounds[k], outside[0][at], outside[1][at]
            r, s = _between((inside[0][at], inside[1][at]), (p, q), shares[k, at])
            a, b = compute_tangents(bound.stated, r, s)
            gaps = a * p + b * q - t[bound.columns[at]] * bound.unit
            new |= self._state(bound, int(at), r, s, gaps > _LESS * gaps.max())
        return new

    def _gained(self, share: float, point: Point) -> bool:
        """Follow the way by a share that is inside. Whether the gap is worth further rounds."""
        assert self.even_columns is not None
        data = self.base.template
        reached = self.inner_columns + share * (self.x - self.inner_columns)
        value = float(data.c @ reached) + data.offset
        if share and value < self.best_value:
            self.best_columns, self.best_value = reached, value
        self.inner_columns = (
            self.inner_columns + _INWARDS * (reached - self.inner_columns)
            if share
            else (self.inner_columns + self.even_columns) / 2
        )
        self.gap_history.append(self.best_value - self.bound)
        return (
            _CLOSE * abs(point.value) < self.gap_history[-1] <= _GAIN * self.gap_history[-1 - _IDLE]
        )

    def _know(self, bounds: Iterable[Bound]) -> bool:
        """Whether any of the bounds is new."""
        known = {bound.requirement for bound in self.bounds}
        new = [bound for bound in dict.fromkeys(bounds) if bound not in known]
        self.bounds += [StatedBound(bound, self.comparisons.second.shape) for bound in new]
        return bool(new)

    def add_all_tangents(self) -> None:
        """Tangents of all outcomes, of cones at P = Q/2 and P = 2 Q."""
        comparisons, outcomes = (
            len(self.comparisons.second),
            np.ones(self.comparisons.second.shape[1]),
        )
        for bound in self.bounds:
            for comparison in range(comparisons):
                for ratio in (1.0,) if bound.requirement.kind == HOCKEY_STICK else (0.5, 2.0):
                    self._state(bound, comparison, ratio * outcomes, outcomes, outcomes > 0)

    def add_tangents_near(self, x: Vector) -> None:
        """Tangents of all bounds that a point reaches."""
        p, q = self.comparisons.laws_at(x)
        for bound in self.bounds:
            terms = bound.evaluate_terms(p, q)
            nearly = _NEARLY if bound.requirement.kind == HOCKEY_STICK else 1.0
            for comparison in np.flatnonzero(bound.relative_excess(terms, p) >= -nearly).tolist():
                self._state(bound, comparison, p[comparison], q[comparison], terms[comparison] > 0)

    def _broken(self, point: Point, more: FindBrokenBounds | None, precision: float) -> bool:
        """Whether the last point breaks a bound, of which more is now stated."""
        p, q = self.comparisons.laws_at(self.x)
        t = np.append(point.x, 0.0)  # 0 where none is stated
        worst = []
        for bound in self.bounds:
            terms = bound.evaluate_terms(p, q)
            excess = bound.relative_excess(terms, p)
            alone = self.has_similar_comparisons and bound.requirement.kind == HOCKEY_STICK
            broken = (
                [int(excess.argmax())] if alone else np.flatnonzero(excess > precision).tolist()
            )
            worst += [(float(excess[at]), at, bound, terms[at]) for at in broken]
        worst.sort(key=lambda each: -each[0])
        self.largest_excess, new = max([0.0, *(each[0] for each in worst[:1])]), False
        for excess_there, at, bound, term in worst[
            : _AT_ONCE if self.has_similar_comparisons else None
        ]:
            if excess_there > precision:
                gaps = term - t[bound.columns[at]] * bound.unit
                least = 0.0 if bound.requirement.kind == HOCKEY_STICK else _LITTLE * gaps.max()
                new |= self._state(bound, at, p[at], q[at], gaps > least)
        if more is not None and self.largest_excess < _ROUGH:
            for first, second in zip(p, q, strict=True):
                new |= self._know(more(first, second))
        return new

    def _state(
        self, bound: StatedBound, comparison: int, p: Vector, q: Vector, where: Flags
    ) -> bool:
        """State the tangents of some outcomes at their ratios p/q. Whether there are new ones."""
        entries, (first, second) = (
            self.comparisons.entries,
            self.comparisons.law_entries(comparison),
        )
        columns = bound.columns[comparison]
        o = np.flatnonzero(
            where & (columns < 0) if bound.requirement.kind == HOCKEY_STICK else where
        )
        if not o.size:
            return False
        none, width = np.zeros(0, dtype=np.intp), self.master.width
        if bound.limit and bound.sums[comparison] < 0:
            limit = bound.limit / bound.unit
            bound.sums[comparison] = self.master.extend(none, sp.csr_array((1, width)), limit)
        a, b = (side / bound.unit for side in compute_tangents(bound.requirement, p[o], q[o]))
        new, of = o[columns[o] < 0], entries[np.concatenate([first[o], second[o]])].tocoo()
        parts: list[tuple[Any, ...]] = [
            (of.data * np.concatenate([a, b])[of.row], of.row % o.size, of.col)
        ]
        columns[new] = width + np.arange(new.size) if bound.limit else 0
        places, wide = none, self.size
        if bound.limit:
            wide = width + new.size
            parts.append((np.full(o.size, -1.0), np.arange(o.size), columns[o]))
            places = np.full(new.size, bound.sums[comparison])
        values, rows, at = map(np.concatenate, zip(*parts, strict=True))
        stated = _seen(sp.csr_array((values, (rows, at)), shape=(o.size, wide)))
        row = self.master.extend(places, stated, 0.0, bound.limit / bound.unit)
        self.tangents.append(Tangents(row, bound, comparison, o, a, b))
        return True


def _between(inside: Pair, laws: Pair, share: Vector | float) -> Pair:
    p, q = (here + share * (there - here) for here, there in zip(inside, laws, strict=True))
    return p, q


def _seen(rows: sp.csr_array) -> sp.csr_array:
    """Rows without coefficients that solvers would drop: smaller ones, so that no x >= 0 is cut off."""
    small = np.abs(rows.data) <= MIN_COEFFICIENT
    rows.data[small] = np.where(rows.data[small] < 0, -np.nextafter(MIN_COEFFICIENT, 1.0), 0.0)
    rows.eliminate_zeros()
    return rows
