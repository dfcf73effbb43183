"""Additive noise on the integers under (ε, δ)-DP as one linear program, with bounds recomputed from the duals.

    min Σ c(η) f(η) (+ c(0) a)  s.t.  Σ f (+ a) = 1,  y_s(η) >= f(η) - e^ε f(η + s),  y_s >= 0,  (a +) Σ_η y_s(η) <= δ

for all shifts s of the sensitivity D: the hockey stick at s is Σ_η max(0, f(η) - e^ε f(η + s)).

    letter      here                     letter      here
    D           sensitivity              f(η)        masses, |η| <= reach
    e^ε         exp_epsilon              a           atom: a point mass beside the cells (real noise alone)
    y_s(η)      stated for |η| <= inner

Upper side: inner = reach, f vanishes beyond. Lower side: inner = reach - D; mass of any noise beyond the reach, moved
to ±reach, costs no more (c does not fall as |η| grows) and only relaxes what is stated, so the optimum is a lower bound
for noise on all integers. Folded: c is even, f is (the mean of f and its mirror image), and s > 0 suffice.

Several budgets (ε_i, δ_i) at once are so many times the constraints; `more` are those beyond the first.

Bound: for any 0 <= v_s(η) <= u_s,

    min >= min_η (c(η) + Σ_s v_s(η) - e^ε v_s(η - s)) - δ Σ u,      in exact arithmetic;

a bound for a larger e^ε is one for e^ε, as its constraints are weaker.

Few y are positive at an optimum: of a tenth of all shifts, and near the ends of the noise. `LineProgram.solve` states
y_s(η) and its inequality where a point breaks the hockey stick at s, that of the worst shift alone in every round; a y
that is not stated is 0, with v = 0. HiGHS goes on by its dual simplex method: the new column costs nothing, so duals
stay feasible. Other solvers get the program in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from models.affine_program import AffineProgram
from solvers.arrays import Flags, Integers, Vector
from solvers.backend import Options, backend
from solvers.errors import SolverError
from solvers.growing import GrowingProgram
from solvers.program import Program
from solvers.search import Deadline

__all__ = ["Answer", "Cut", "LineProgram", "moved", "refined"]

Cut = tuple[int, Flags, int]  # shift s, where y is positive as a mask over -inner..inner, which of the budgets

SCALE = 2.0**20  # of all masses, so that tolerances are fine beside a small δ
_TOLERANCE = 1e-10  # HiGHS's least: reduced costs within its usual one may cost a bound 1e-8 of its value
_UNIT = 1 << 80  # multipliers are rounded down to multiples of its inverse


@dataclass(frozen=True)
class LineProgram:
    """One program of the module's docstring.

    losses: of the columns, |η| = 0..reach when folded, else η = -reach..reach; atom: the loss of one, None without;
    exp_epsilon: a rational >= e^ε; delta: > 0; more: pairs of these, of other budgets.
    """

    sensitivity: int
    exp_epsilon: Fraction
    delta: Fraction
    reach: int
    inner: int
    losses: Sequence[Fraction]
    folded: bool = True
    atom: Fraction | None = None
    more: tuple[tuple[Fraction, Fraction], ...] = ()

    @property
    def budgets(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """All pairs (>= e^ε, δ)."""
        return ((self.exp_epsilon, self.delta), *self.more)

    @cached_property
    def levels(self) -> Vector:
        """(e^ε, δ) of every hockey stick: all shifts, budget by budget. (budgets shifts, 2)"""
        pairs = [[float(e), float(delta)] for e, delta in self.budgets]
        return np.repeat(np.array(pairs), self.shifts.size, axis=0)

    @cached_property
    def shifts(self) -> Integers:
        """All that are stated."""
        up = np.arange(1, self.sensitivity + 1)
        return up if self.folded else np.concatenate([up, -up])

    @cached_property
    def columns(self) -> Integers:
        """The column of every η in -inner..inner."""
        eta = np.arange(-self.inner, self.inner + 1)
        return np.abs(eta) if self.folded else eta + self.reach

    @cached_property
    def targets(self) -> Integers:
        """The column of η + s, one row for each shift; one past the last where f is not stated."""
        eta = np.arange(-self.inner, self.inner + 1)[None, :] + self.shifts[:, None]
        columns = np.abs(eta) if self.folded else eta + self.reach
        return np.where(np.abs(eta) <= self.reach, columns, len(self.losses))

    @cached_property
    def every_target(self) -> Integers:
        """`targets` of every hockey stick. (budgets shifts, 2 inner + 1)"""
        return np.tile(self.targets, (len(self.budgets), 1))

    @cached_property
    def costs(self) -> list[Fraction]:
        """The losses of all columns, the atom last."""
        return [*self.losses] if self.atom is None else [*self.losses, self.atom]

    @cached_property
    def weighted(self) -> Vector:
        """What a unit of every column costs."""
        return np.asarray(self.weights * np.array([*map(float, self.costs)]))

    @cached_property
    def weights(self) -> Integers:
        """How often a column counts in Σ f, the atom last."""
        counts = np.ones(len(self.losses), dtype=np.int64)
        if self.folded:
            counts[1:] = 2
        return counts if self.atom is None else np.append(counts, 1)

    def excess(self, x: Vector) -> tuple[Vector, Vector]:
        """f(η) - e^ε f(η + s) for every budget and shift, and the hockey sticks over δ. (budgets shifts, 2 inner + 1),
        (budgets shifts,)."""
        f, (e, delta) = np.append(x[: len(self.losses)], 0.0), self.levels.T
        gaps = f[self.columns][None, :] - e[:, None] * f[self.every_target]
        atom = 0.0 if self.atom is None else float(x[-1])
        return gaps, (np.maximum(gaps, 0.0).sum(axis=1) + atom) / delta

    def cut(self, row: int, gaps: Vector) -> Cut:
        """The cut of one row of `excess`."""
        budget, shift = divmod(row, self.shifts.size)
        return int(self.shifts[shift]), gaps[row] > 0, budget

    def place(self, cut: Cut) -> int:
        """Which row of `excess` a cut is of."""
        return cut[2] * len(self.shifts) + int(np.flatnonzero(self.shifts == cut[0])[0])

    def masses(self, x: Vector) -> Vector:
        """f on -reach..reach."""
        f = np.maximum(x[: len(self.losses)], 0.0)
        return np.concatenate([f[:0:-1], f]) if self.folded else f

    def bound(self, v: Vector, u: Vector) -> Fraction:
        """A proven lower bound on the optimum, from multipliers 0 <= v <= u. v: as `excess`; u: (budgets shifts,)."""
        # added up by column, in units of 1/_UNIT: of f(η), of e^ε f(η + s) by budget, and of δ by budget
        plus = [0] * self.weights.size
        minus = [[0] * self.weights.size for _ in self.budgets]
        total = [0] * len(self.budgets)
        for place, (row, limit) in enumerate(zip(v, u.tolist(), strict=True)):
            most, budget, targets = int(limit * _UNIT), place // self.shifts.size, self.every_target[place]
            total[budget] += most
            for k in np.flatnonzero(row).tolist():
                amount = min(most, int(row[k] * _UNIT))
                plus[self.columns[k]] += amount
                if targets[k] < len(self.losses):
                    minus[budget][targets[k]] += amount
        if self.atom is not None:
            plus[-1] = sum(total)
        unit = Fraction(1, _UNIT)
        priced = (
            c + unit * (p - sum(e * m for (e, _), m in zip(self.budgets, several, strict=True))) / int(w)
            for c, p, several, w in zip(self.costs, plus, zip(*minus, strict=True), self.weights, strict=True)
        )
        allowance = sum((d * most for (_, d), most in zip(self.budgets, total, strict=True)), Fraction(0))
        return Fraction(min(priced) - allowance * unit)

    @property
    def stated(self) -> Program:
        """The program in one piece. Variables "f" (the atom last), "y" (noise values x shifts, by budget)."""
        shifts, values = self.every_target.shape
        name = f"noise on the integers up to {self.reach}, {self.sensitivity} differences"
        p = AffineProgram({})
        f = p.columns("f", self.weights.shape)
        y = p.columns("y", (values, shifts)).reshape(shifts, values)
        total, ratio = p.rows("total", 1, equal=True), p.rows("ratio", shifts * values).reshape(shifts, values)
        stick = p.rows("stick", shifts)
        p.loss(f, self.weighted)
        p.put(total, f, self.weights)
        p.right(total, 1.0)
        p.put(ratio, f[self.columns], 1.0)
        inside = self.every_target < len(self.losses)
        e = np.broadcast_to(self.levels[:, :1], inside.shape)
        p.put(ratio[inside], f[self.every_target[inside]], -e[inside])
        p.put(ratio, y, -1.0)
        p.put(stick[:, None], y, 1.0)
        if self.atom is not None:
            p.put(stick, f[-1], 1.0)
        p.right(stick, self.levels[:, 1])
        return p.program(name, SCALE)

    def solve(
        self,
        cuts: Sequence[Cut] = (),
        *,
        precision: float = 1e-9,
        deadline: Deadline | None = None,
        solver: str = "highs",
    ) -> Answer:
        """The optimum; with HiGHS by the y that are needed, those of these cuts first.

        precision: the excess over δ, relative to δ, at which a point counts as feasible. A point that stopped early
        breaks δ by `excess`; the bound is proven all the same. Raises SolverError.
        """
        deadline = deadline or Deadline()
        if solver == "highs":
            return self._grown(cuts, precision, deadline)
        limit = None if deadline.left is None else max(1.0, deadline.left)
        with backend(solver).open(self.stated, Options(time_limit=limit)) as session:
            solution = session.solve({})
        if solution.x is None or solution.row_dual is None:
            raise SolverError(f"{solver} gave no optimum with duals: {solution.raw_status!r}.")
        shape = self.every_target.shape
        duals = np.maximum(-solution.row_dual[1:], 0.0)
        v, u = duals[: -shape[0]].reshape(shape), duals[-shape[0] :]
        x, value = np.maximum(solution.x[: self.weights.size], 0.0), float(solution.objective or 0.0)
        return self._answer(x, value, (v, u), solution.iterations or 0, solution.version)

    def _grown(self, cuts: Sequence[Cut], precision: float, deadline: Deadline) -> Answer:
        size, targets = self.weights.size, self.every_target
        program = GrowingProgram(self.weighted, [(self.weights.astype(float), SCALE)], tolerance=_TOLERANCE)
        atom = np.zeros(size)
        atom[size - 1] = float(self.atom is not None)
        for delta in self.levels[:, 1].tolist():
            program.add(atom, delta * SCALE)
        stated, new = np.zeros(targets.shape, dtype=bool), np.zeros(targets.shape, dtype=bool)
        order: list[Integers] = []  # of the y, (row, noise value)
        for cut in cuts:
            new[self.place(cut)] |= cut[1]
        point, rounds = None, 0
        while True:
            if new.any():
                row, value = np.nonzero(new)
                order.append(np.array([row, value]))
                y, each = size + stated.sum() + np.arange(row.size), np.arange(row.size)
                source, target = self.columns[value], targets[row, value]
                there = target < len(self.losses)
                entries = np.concatenate([np.ones(row.size), -self.levels[row[there], 0], np.full(row.size, -1.0)])
                places = np.concatenate([each, each[there], each]), np.concatenate([source, target[there], y])
                program.extend(row, sp.csr_array((entries, places), shape=(row.size, y[-1] + 1)), 0.0)
                stated |= new
            try:
                last = program.solve(deadline)
            except SolverError:  # numerical trouble, or no time: what was known before it stands
                if point is None:
                    raise
                break
            point, rounds = last, rounds + 1
            x = np.maximum(point.x[:size], 0.0) / SCALE
            gaps, sticks = self.excess(x)
            new = np.zeros_like(stated)
            worst = np.argmax(sticks)
            new[worst] = (gaps[worst] > 0) & ~stated[worst]
            if sticks[worst] - 1 <= precision or not new.any() or deadline.passed:
                break
        v, u = np.zeros(stated.shape), point.duals[: len(targets)]
        held = np.concatenate(order, axis=1)[:, : point.duals.size - u.size] if order else np.zeros((2, 0), dtype=int)
        v[*held] = point.duals[u.size :]
        return self._answer(x, point.value / SCALE, (v, u), rounds, program.version)

    def _answer(self, x: Vector, value: float, duals: tuple[Vector, Vector], rounds: int, version: str) -> Answer:
        """With the cuts of the hockey sticks that reach δ."""
        gaps, sticks = self.excess(x)
        cuts = tuple(self.cut(k, gaps) for k in np.flatnonzero(sticks >= 1 - 1e-7).tolist())
        return Answer(self, x, value, self.bound(*duals), float(sticks.max()) - 1, cuts, rounds, version)


@dataclass(frozen=True)
class Answer:
    """x: (columns, the atom last); value: of the program; bound: proven; excess: the largest hockey stick over δ,
    minus 1; cuts: those that reach δ; rounds: of work."""

    program: LineProgram
    x: Vector
    value: float
    bound: Fraction
    excess: float
    cuts: tuple[Cut, ...]
    rounds: int
    version: str


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
