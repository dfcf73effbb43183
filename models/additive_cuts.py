"""Additive noise on the integers under (ε, δ)-DP by cutting planes, with bounds recomputed from the duals.

    min Σ c(η) f(η) (+ c(0) a)   s.t.  Σ f (+ a) = 1,   (a +) Σ_V (f(η) - e^ε f(η + s)) <= δ

for all shifts s of the sensitivity D and all V: the hockey stick at s is the largest of these sums, at V = {f(η) > e^ε
f(η + s)}. So one pass over the shifts finds the constraints that a point breaks. Points between the master program's
vertex and a running centre are separated instead where they break one ("in-out"), which takes far fewer rounds.

    letter      here                     letter      here
    D           sensitivity              f(η)        masses, |η| <= reach
    e^ε         exp_epsilon              a           atom: a point mass beside the cells (real noise alone)
    V           within |η| <= inner      y_s(η)      eliminated

Upper side: inner = reach, f vanishes beyond. Lower side: inner = reach - D; mass of any noise beyond the reach, moved
to ±reach, costs no more (c does not fall as |η| grows) and only relaxes what is stated, so the optimum is a lower bound
for noise on all integers. Folded: c is even, f is (the mean of f and its mirror image), and s > 0 suffice.

Several budgets (ε_i, δ_i) at once are so many times the constraints, each cut one of a budget; `more` are those beyond
the first.

Bound: for any multipliers u >= 0 of rows R,  min >= min_η (c(η) + (R'u)(η)) - δ Σ u, in exact arithmetic; a bound for a
larger e^ε is one for e^ε, as its constraints are weaker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.additive_lp import solved
from solvers.backend import Options
from solvers.errors import SolverError
from solvers.growing import GrowingProgram, Point

__all__ = ["WHOLE", "Answer", "Cut", "LineProgram", "moved", "refined"]

Vector = NDArray[np.float64]
Cut = tuple[int, NDArray[np.bool_], int]  # shift s, V as a mask over -inner..inner, which of the budgets

_SCALE = 1 << 80  # multipliers are rounded down to multiples of its inverse
_ROUNDS = 4000
_LEAST_TOLERANCE = 1e-10  # of HiGHS
WHOLE = 15_000  # excesses y, up to which the program in one piece is the faster one for few shifts


@dataclass(frozen=True)
class LineProgram:
    """One program of the module's docstring.

    costs: of the columns, |η| = 0..reach when folded, else η = -reach..reach; atom: the cost of one, None without;
    exp_epsilon: a rational >= e^ε; delta: > 0; more: pairs of these, of other budgets.
    """

    sensitivity: int
    exp_epsilon: Fraction
    delta: Fraction
    reach: int
    inner: int
    costs: Sequence[Fraction]
    folded: bool = True
    atom: Fraction | None = None
    more: tuple[tuple[Fraction, Fraction], ...] = ()

    @property
    def budgets(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """All pairs (>= e^ε, δ)."""
        return ((self.exp_epsilon, self.delta), *self.more)

    @cached_property
    def _levels(self) -> tuple[Vector, Vector]:
        """e^ε and δ of every row of the hockey sticks: all shifts, budget by budget."""
        pairs = [pair for pair in self.budgets for _ in self.shifts]
        return np.array([float(e) for e, _ in pairs]), np.array([float(d) for _, d in pairs])

    @cached_property
    def shifts(self) -> NDArray[np.int64]:
        """All that are stated."""
        up = np.arange(1, self.sensitivity + 1)
        return up if self.folded else np.concatenate([up, -up])

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """The column of every η in -inner..inner."""
        eta = np.arange(-self.inner, self.inner + 1)
        return np.abs(eta) if self.folded else eta + self.reach

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """The column of η + s, one row for each shift; one past the last where f is not stated."""
        eta = np.arange(-self.inner, self.inner + 1)[None, :] + self.shifts[:, None]
        columns = np.abs(eta) if self.folded else eta + self.reach
        return np.where(np.abs(eta) <= self.reach, columns, len(self.costs))

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """How often a column counts in Σ f, the atom last."""
        counts = np.ones(len(self.costs), dtype=np.int64)
        if self.folded:
            counts[1:] = 2
        return counts if self.atom is None else np.append(counts, 1)

    def excess(self, x: Vector) -> tuple[Vector, Vector]:
        """f(η) - e^ε f(η + s) for every budget and shift, and the hockey sticks over δ. (budgets shifts, 2 inner + 1),
        (budgets shifts,)."""
        f, (e, delta) = np.append(x[: len(self.costs)], 0.0), self._levels
        gaps = f[self.columns][None, :] - e[:, None] * np.tile(f[self.targets], (len(self.budgets), 1))
        atom = 0.0 if self.atom is None else float(x[-1])
        return gaps, (np.maximum(gaps, 0.0).sum(axis=1) + atom) / delta

    def cut(self, row: int, gaps: Vector) -> Cut:
        """The cut of one row of `excess`."""
        budget, shift = divmod(row, self.shifts.size)
        return int(self.shifts[shift]), gaps[row] > 0, budget

    def counts(self, cut: Cut) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A row as (plus, minus) by column: plus - e^ε minus."""
        shift, inside, _ = cut
        size = len(self.costs)
        row = abs(shift) - 1 + (self.sensitivity if shift < 0 else 0)
        plus = np.bincount(self.columns[inside], minlength=size)
        minus = np.bincount(self.targets[row][inside], minlength=size + 1)[:size]
        if self.atom is not None:
            plus, minus = np.append(plus, 1), np.append(minus, 0)
        return plus, minus

    def masses(self, x: Vector) -> Vector:
        """f on -reach..reach."""
        f = np.maximum(x[: len(self.costs)], 0.0)
        return np.concatenate([f[:0:-1], f]) if self.folded else f

    def bound(self, cuts: Sequence[Cut], multipliers: Vector) -> Fraction:
        """A proven lower bound on the optimum, from any multipliers >= 0 of the rows of these cuts."""
        u = [int(value * _SCALE) for value in multipliers.tolist()]
        priced = _Priced(self)
        for cut, amount in zip(cuts, u, strict=True):
            if amount:
                inside, shifted = self.counts(cut)
                for k in np.flatnonzero(inside).tolist():
                    priced.plus[k] += amount * int(inside[k])
                for k in np.flatnonzero(shifted).tolist():
                    priced.minus[cut[2]][k] += amount * int(shifted[k])
                priced.total[cut[2]] += amount
        return priced.bound()

    def whole_bound(self, v: Vector, u: Vector) -> Fraction:
        """The same from multipliers 0 <= v <= u of the inequalities of `models.additive_lp`."""
        priced, shifts = _Priced(self), self.shifts.size
        for place, (row, limit) in enumerate(zip(v, u.tolist(), strict=True)):
            most, (budget, shift) = int(limit * _SCALE), divmod(place, shifts)
            targets = self.targets[shift]
            priced.total[budget] += most
            for k in np.flatnonzero(row).tolist():
                amount = min(most, int(row[k] * _SCALE))
                priced.plus[self.columns[k]] += amount
                if targets[k] < len(self.costs):
                    priced.minus[budget][targets[k]] += amount
        if self.atom is not None:
            priced.plus[-1] = sum(priced.total)
        return priced.bound()

    @property
    def excesses(self) -> int:
        """How many y the program in one piece has."""
        return len(self.budgets) * self.targets.size

    def solve(
        self, cuts: Sequence[Cut] = (), *, precision: float = 1e-9, stall: float = 0.0, stop: float | None = None,
        solver: str = "highs",
        whole: int = WHOLE,
    ) -> Answer:  # fmt: skip
        """The optimum: in one piece of up to `whole` excesses, else by cutting planes (with HiGHS), from these cuts on.

        precision: the excess over δ, relative to δ, at which a point counts as feasible; stall: stop where eight
        rounds raise the value by less than this share; stop: time (perf_counter) to stop at. A point that stopped early
        breaks δ by `excess`; the bound is proven all the same.
        """
        if self.excesses <= whole or solver != "highs":
            return self._in_one_piece(solver, stop)
        return _Rounds(self, precision, stall, stop).run(cuts)

    def sharper(self, answer: Answer, *, stop: float | None = None, solver: str = "highs") -> Answer:
        """The answer with the bound of duals at HiGHS's least tolerance, where that is the better one: reduced costs
        within the usual tolerance may cost a bound 1e-8 of its value. Cutting planes have that tolerance anyway."""
        if solver != "highs" or self.excesses > WHOLE:
            return answer
        again = self._in_one_piece(solver, stop, _LEAST_TOLERANCE)
        return answer if again.bound <= answer.bound else replace(answer, bound=again.bound)

    def _in_one_piece(self, solver: str, stop: float | None, tolerance: float | None = None) -> Answer:
        begin = time.perf_counter()
        limit = None if stop is None else max(1.0, stop - begin)
        options = Options(time_limit=limit, dual_feasibility_tolerance=tolerance)
        solution, v, u = solved(self, solver, options)
        assert solution.x is not None
        x = np.maximum(solution.x[: self.weights.size], 0.0)
        gaps, sticks = self.excess(x)
        near = np.flatnonzero(sticks >= 1 - 1e-7)
        cuts = tuple(self.cut(k, gaps) for k in near.tolist())
        value = float(solution.objective or 0.0)
        seconds = time.perf_counter() - begin
        rounds, version = solution.iterations or 0, solution.version
        return Answer(self, x, value, self.whole_bound(v, u), float(sticks.max()) - 1, cuts, rounds, seconds, version)


@dataclass(frozen=True)
class Answer:
    """x: (columns, the atom last); value: of the master program; bound: proven; excess: the largest hockey stick over
    δ, minus 1; cuts: those that press; rounds, seconds: of work."""

    program: LineProgram
    x: Vector
    value: float
    bound: Fraction
    excess: float
    cuts: tuple[Cut, ...]
    rounds: int
    seconds: float
    version: str


class _Priced:
    """Multipliers added up by column, in units of 1/_SCALE: of f(η), of e^ε f(η + s) and of δ, these by budget."""

    def __init__(self, line: LineProgram) -> None:
        self.line = line
        self.plus = [0] * line.weights.size
        self.minus = [[0] * line.weights.size for _ in line.budgets]
        self.total = [0] * len(line.budgets)

    def bound(self) -> Fraction:
        """min_η of the priced costs, less δ times the multipliers."""
        line, scale = self.line, Fraction(1, _SCALE)
        costs = [*line.costs] if line.atom is None else [*line.costs, line.atom]
        priced = (
            c + scale * (p - sum(e * m for (e, _), m in zip(line.budgets, several, strict=True))) / int(w)
            for c, p, several, w in zip(costs, self.plus, zip(*self.minus, strict=True), line.weights, strict=True)
        )  # fmt: skip
        allowance = sum((d * total for (_, d), total in zip(line.budgets, self.total, strict=True)), Fraction(0))
        return Fraction(min(priced) - allowance * scale)


class _Rounds:
    """One run of cutting planes."""

    PER_ROUND = 12  # cuts, or a quarter of the shifts where that is more
    IDLE = 3  # solves without pressure after which a row goes

    def __init__(self, program: LineProgram, precision: float, stall: float, stop: float | None) -> None:
        self.program, self.precision, self.stall, self.stop = program, precision, stall, stop
        costs = program.costs if program.atom is None else [*program.costs, program.atom]
        weights = program.weights.astype(float)
        self.unit = max(map(float, costs)) or 1.0  # so that dual tolerances are relative to the costs
        priced = weights * np.array([float(cost) for cost in costs]) / self.unit
        self.master = GrowingProgram(priced, [(weights, 1.0)], tolerance=1e-10)
        self.cuts: list[Cut] = []
        self.idle: list[int] = []

    def add(self, cuts: Sequence[Cut]) -> None:
        rows = []
        for cut in cuts:
            (e, delta), (plus, minus) = self.program.budgets[cut[2]], self.program.counts(cut)
            rows.append((plus - float(e) * minus) / float(delta))
        self.master.add(rows, 1.0)
        self.cuts += cuts
        self.idle += [0] * len(cuts)

    def drop(self, duals: Vector) -> None:
        self.idle = [0 if pressed else rounds + 1 for rounds, pressed in zip(self.idle, duals > 0, strict=True)]
        gone = {k for k, rounds in enumerate(self.idle) if rounds > self.IDLE}
        if 5 * len(gone) > len(self.cuts):
            self.master.remove(gone)
            self.cuts = [cut for k, cut in enumerate(self.cuts) if k not in gone]
            self.idle = [rounds for k, rounds in enumerate(self.idle) if k not in gone]

    def run(self, start: Sequence[Cut]) -> Answer:
        program, begin = self.program, time.perf_counter()
        self.add([*start])
        centre: Vector | None = None
        values: list[float] = []
        weight = 0.5
        known: tuple[Point, list[Cut], float] | None = None
        for rounds in range(1, _ROUNDS + 1):
            try:
                point = self.master.solve()
            except SolverError:  # numerical trouble: what was known before it stands
                if known is None:
                    raise
                point, self.cuts, excess = known
                break
            values.append(point.value)
            gaps, sticks = program.excess(point.x)
            excess = float(sticks.max()) - 1
            known = point, [*self.cuts], excess
            stalled = len(values) > 12 and values[-1] - values[-9] < self.stall * abs(values[-1])
            late = self.stop is not None and time.perf_counter() > self.stop
            if excess <= self.precision or stalled or late:
                break
            if centre is None:
                centre = point.x
            between = weight * centre + (1 - weight) * point.x
            inner_gaps, inner_sticks = program.excess(between)
            if inner_sticks.max() - 1 > self.precision:
                gaps, sticks = inner_gaps, inner_sticks
                centre = 0.7 * centre + 0.3 * point.x
            else:
                centre = between
            order = np.argsort(-sticks)[: max(self.PER_ROUND, program.sensitivity // 4)]
            new = [program.cut(k, gaps) for k in order.tolist() if sticks[k] - 1 > self.precision]
            if rounds == _ROUNDS:  # what the point was solved with stands
                break
            if rounds % 5 == 0:
                self.drop(point.duals)
            self.add(new)
        # of scaled rows, in scaled costs
        cuts = self.cuts[: point.duals.size]
        deltas = np.array([float(program.budgets[cut[2]][1]) for cut in cuts])
        multipliers = point.duals * self.unit / deltas
        bound = program.bound(cuts, multipliers)
        pressed = tuple(cut for cut, u in zip(cuts, multipliers, strict=True) if u > 0)
        seconds = time.perf_counter() - begin
        value = point.value * self.unit
        return Answer(program, point.x, value, bound, excess, pressed, rounds, seconds, self.master.version)


def refined(cuts: Sequence[Cut], inner: int, factor: Fraction | int = 2) -> list[Cut]:
    """Cuts of a coarse grid on one `factor` times finer, whose constraints are stated on -inner..inner: a fine cell is
    in V where the coarse cell that holds its centre is, and the shift is the nearest. Any such cut is valid."""
    eta = np.arange(-inner, inner + 1)
    coarse = np.floor(eta / float(factor) + 0.5).astype(np.int64)
    fine_cuts = []
    for shift, inside, budget in cuts:
        reach = inside.size // 2
        known = np.abs(coarse) <= reach
        fine = np.zeros(eta.size, dtype=bool)
        fine[known] = inside[coarse[known] + reach]
        fine_cuts.append((round(shift * factor), fine, budget))
    return fine_cuts


def moved(cuts: Sequence[Cut], inner: int) -> list[Cut]:
    """The same cuts where constraints are stated on -inner..inner."""
    return refined(cuts, inner, 1)
