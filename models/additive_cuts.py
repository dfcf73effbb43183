"""The program of `models.additive_lp` by cutting planes: fewer rounds than stating excesses where grids are fine.

    min Σ c(η) f(η) (+ c(0) a)   s.t.  Σ f (+ a) = 1,   (a +) Σ_V (f(η) - e^ε f(η + s)) <= δ  for all shifts s and all V

The hockey stick at s is the largest of these sums, at V = {f(η) > e^ε f(η + s)}. So one pass over the shifts finds the
constraints that a point breaks. Points between the master program's vertex and a running centre are separated instead
where they break one ("in-out"), which takes far fewer rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.additive_lp import Answer, Cut, LineProgram
from solvers.arrays import Vector
from solvers.errors import SolverError
from solvers.growing import GrowingProgram, Point
from solvers.search import Deadline

__all__ = ["by_cuts"]

_ROUNDS = 4000
_PER_ROUND = 12  # cuts, or a quarter of the shifts where that is more
_IDLE = 3  # solves without pressure after which a row goes


def by_cuts(line: LineProgram, start: Sequence[Cut], *, precision: float, stall: float, deadline: Deadline) -> Answer:
    """The optimum, from these cuts on. precision: as of `LineProgram.solve`; stall: stop where eight rounds raise the
    value by less than this share. Raises SolverError."""
    master = _Master(line, start)
    centre: Vector | None = None
    values: list[float] = []
    known: tuple[Point, list[Cut], float] | None = None
    for rounds in range(1, _ROUNDS + 1):
        try:
            point = master.program.solve()
        except SolverError:  # numerical trouble: what was known before it stands
            if known is None:
                raise
            point, master.cuts, excess = known
            break
        values.append(point.value)
        gaps, sticks = line.excess(point.x)
        excess = float(sticks.max()) - 1
        known = point, [*master.cuts], excess
        stalled = len(values) > 12 and values[-1] - values[-9] < stall * abs(values[-1])
        if excess <= precision or stalled or deadline.passed or rounds == _ROUNDS:
            break
        centre = point.x if centre is None else centre
        between = 0.5 * centre + 0.5 * point.x
        inner_gaps, inner_sticks = line.excess(between)
        if inner_sticks.max() - 1 > precision:
            gaps, sticks = inner_gaps, inner_sticks
            centre = 0.7 * centre + 0.3 * point.x
        else:
            centre = between
        order = np.argsort(-sticks)[: max(_PER_ROUND, line.sensitivity // 4)]
        new = [line.cut(k, gaps) for k in order.tolist() if sticks[k] - 1 > precision]
        if rounds % 5 == 0:
            master.drop(point.duals)
        master.add(new)
    return master.answer(point, excess, rounds)


class _Master:
    """The master program: rows over δ, losses in units of the largest, so that dual tolerances are relative to it."""

    def __init__(self, line: LineProgram, start: Sequence[Cut]) -> None:
        self.line, self.unit = line, max(map(float, line.costs)) or 1.0
        weights = line.weights.astype(float)
        priced = weights * np.array([float(loss) for loss in line.costs]) / self.unit
        self.program = GrowingProgram(priced, [(weights, 1.0)], tolerance=1e-10)
        self.cuts: list[Cut] = []
        self.idle: list[int] = []
        self.add(start)

    def add(self, cuts: Sequence[Cut]) -> None:
        """Rows Σ_V (f(η) - e^ε f(η + s)) (+ a) <= δ."""
        size = len(self.line.losses)
        for cut in cuts:
            _, inside, _ = cut
            place = self.line.place(cut)
            e, delta = self.line.levels[place]
            plus = np.bincount(self.line.columns[inside], minlength=size)
            minus = np.bincount(self.line.every_target[place][inside], minlength=size + 1)[:size]
            row = (plus - e * minus) / delta
            self.program.add(row if self.line.atom is None else np.append(row, 1 / delta), 1.0)
        self.cuts += cuts
        self.idle += [0] * len(cuts)

    def drop(self, duals: Vector) -> None:
        """Rows that have not pressed for long, once they are a fifth of all."""
        self.idle = [0 if pressed else rounds + 1 for rounds, pressed in zip(self.idle, duals > 0, strict=True)]
        gone = {k for k, rounds in enumerate(self.idle) if rounds > _IDLE}
        if 5 * len(gone) > len(self.cuts):
            self.program.remove(gone)
            self.cuts = [cut for k, cut in enumerate(self.cuts) if k not in gone]
            self.idle = [rounds for k, rounds in enumerate(self.idle) if k not in gone]

    def answer(self, point: Point, excess: float, rounds: int) -> Answer:
        """With the bound that the duals prove: those of the cuts of a shift add up to multipliers of its excesses."""
        line = self.line
        v, u = np.zeros(line.every_target.shape), np.zeros(len(line.every_target))
        pressed = []
        for cut, dual in zip(self.cuts, point.duals.tolist(), strict=False):
            if dual > 0:
                place = line.place(cut)
                amount = dual * self.unit / line.levels[place, 1]
                v[place] += amount * cut[1]
                u[place] += amount
                pressed.append(cut)
        value, bound = point.value * self.unit, line.bound(v, u)
        return Answer(line, point.x, value, bound, excess, tuple(pressed), rounds, self.program.version)
