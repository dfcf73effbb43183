"""Channels by a primal-dual interior point whose blocks are the outputs: columns of a channel meet only in row sums.

    min Σ_o c_o · v_o    s.t.  Σ_o v_o = 1,    w_o = G v_o >= 0 for every output o,

G the privacy rows of `workbench.models.channel.program`, the same for every output: λ v_b - v_a of neighbours, or t <=
v <= λ t of all pairs. With multipliers y of the sums and z_o of G, Newton's step towards w z = ν falls apart by
outputs,

    H_o = G' diag(z_o/w_o) G,    H_o dv_o = dy + h_o,    h_o = G'(ν/w_o) - c_o + y,
    (Σ_o H_o⁻¹) dy = 1 - Σ_o v_o - Σ_o H_o⁻¹ h_o,

a k × k Schur complement, and its step lengths and centring are Mehrotra's (1992), with correctors after Gondzio (1996):
several for each factorisation, while they lengthen the step. For the worst input c_o = π ∘ ℓ_o
with the multipliers π of Σ_o ℓ_o v_o + s = ω, which join the sums: (q = (y, -π), W_o = [1, ℓ_o]) in what follows. So
do linear rows of one's own, Σ_o A_o v_o <= b or = b: one within an output is a sum over that output alone.

`workbench.models.channel.block_factors` inverts the blocks without cancellation; δ > 0 adds the slacks of pairs
(`workbench.models.channel.block_slack`). `workbench.models.channel.block_parts` holds the columns, one for each
output, of which this file needs sums over outputs alone, of K or K × K numbers. Multipliers G'z + Σ W q = c hold after
every step up to what is refined here, since z/w multiplies the rounding of dw.

| here             | meaning                                                              |
|------------------|----------------------------------------------------------------------|
| x (n, m)         | v_o, for all pairs with t_o as its last row, flat with slacks for δ  |
| w, z (rows, m)   | G x and its multipliers                                              |
| q (K,)           | multipliers of what is summed over outputs: K = k, or 2k (worst case), own rows, pairs (δ) |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.linalg import LinAlgError

from workbench.models.channel.block_parts import BlockProblem, Setup
from workbench.models.channel.block_sums import Target
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline

_STEPS = 300
_SHARE, _SHORT_SHARE = 0.995, 0.7  # of the way to the boundary, of steps near 1 and near 0
_LEAST, _MOST = 1e-8, 0.1  # centring
_CORRECTORS, _LONG = 10, 0.95  # of a step, until it is so long
_SHRUNK = 0.5  # of the shorter step, below which a corrector is none
_FARTHER, _FAR = 1.08, 0.2  # a corrector looks at products this much farther along
_LOW, _HIGH = 0.1, 10.0  # times what products are to be
_FEASIBLE = 1e-8  # residual of a sum that is 1
_REFINED, _ENOUGH = (
    5,
    1e-15,
)  # turns, and the residual of multipliers (in units of the largest loss) that is enough
_MOST_REFINED, _WANTED = 15, 1e-12  # turns, where that many leave more
_LOST = 1e-7  # ... up to which a direction is one
_STUCK = 1e-7  # step
_STALE = 8  # steps without a better bound


@dataclass(frozen=True, eq=False)
class BlockPoint:
    """What was reached. masses: (k, m), > 0, rows nearly summing to 1; multipliers: (rows, m) of G; weights: (k,) of
    the inputs, where the worst one counts; extra: of `Blocks.extra`, <= 0 but for equations; objective, bound: in
    floats; why: it stopped, "optimal" where they meet, "interrupted" by Ctrl-C."""

    masses: Vector
    multipliers: Vector
    weights: Vector | None
    extra_multipliers: Vector
    objective: float
    bound: float
    iterations: int
    seconds: float
    stop_reason: str


@dataclass
class _Best:
    """The best point and the best multipliers so far."""

    objective: float = np.inf
    merit: float = np.inf
    bound: float = -np.inf
    x: Vector | None = None
    z: Vector | None = None
    total: float = 1.0
    weights: Vector | None = None
    extra: Vector = field(default_factory=lambda: np.zeros(0))
    since: int = 0


class BlockInteriorPoint:
    """The method on some blocks. report: told (iteration, objective, bound) after every step."""

    def __init__(
        self, blocks: BlockProblem, report: Callable[[int, float, float], None] | None = None
    ) -> None:
        self.blocks, self._report = blocks, report
        k = blocks.losses.shape[0]
        worst = blocks.prior is None
        costs = blocks.losses if blocks.prior is None else blocks.losses * blocks.prior[:, None]
        low = np.full(k, costs.min()) if worst else costs.min(axis=1)
        self._low = float(low[0] if worst else low.sum())
        costs = costs - low[:, None]
        self._unit = (
            float((costs.max(axis=0) if worst else costs.sum(axis=0)).min())
            or float(costs.max())
            or 1.0
        )
        self._setup = Setup(blocks, costs / self._unit)
        self._left = np.empty(0)  # what the sums lack after a direction
        self._start()

    def _start(self) -> None:
        costs = self._setup.costs
        pull = self._setup.columns().start()[1]
        scale = max(float(costs.sum()) / (costs.shape[0] if self._setup.worst else 1), 1e-3) / pull
        self._setup = replace(self._setup, scale=scale)
        self._columns = self._setup.columns()
        sums, _, count = self._columns.start()
        self._master = self._setup.sums(sums)
        self._count = count + self._master.slack.size
        self._state = self._columns.state()

    def solve(
        self, gap: float, deadline: Deadline | None = None, loss_floor: float = 0.0
    ) -> BlockPoint:
        """The best that is reached: to a gap relative to what is above the floor, to where floats end, at the deadline,
        or at Ctrl-C."""
        deadline, best = deadline or Deadline(), _Best(extra=np.zeros(self._setup.own.size))
        if self._setup.worst:
            best.weights = np.full(self._setup.costs.shape[0], 1 / self._setup.costs.shape[0])
        why, iteration = "iteration limit", 0
        try:
            for iteration in range(_STEPS):
                self._measured(best)
                if self._report is not None:
                    self._report(iteration, *self._values(best))
                value, bound = self._values(best)
                if np.isfinite(value) and value - bound <= gap * max(
                    abs(value - loss_floor), abs(bound - loss_floor)
                ):
                    why = "optimal"
                    break
                if deadline.has_passed:
                    why = "time limit"
                    break
                if best.since > _STALE or not self._stepped():
                    why = "floats end here"
                    break
        except KeyboardInterrupt:
            why = "interrupted"
        value, bound = self._values(best)
        state = self._state
        masses = self._columns.masses(state.x if best.x is None else best.x)
        multipliers = self._columns.multipliers(state.z if best.z is None else best.z)
        return BlockPoint(
            np.maximum(masses, 0.0),
            multipliers / best.total * self._unit,
            best.weights,
            best.extra * self._unit,
            value,
            bound,
            iteration,
            deadline.elapsed_seconds,
            why,
        )

    def _values(self, best: _Best) -> tuple[float, float]:
        return best.objective * self._unit + self._low, best.bound * self._unit + self._low

    def _measured(self, best: _Best) -> None:
        """Objective and bound at the point, kept where they are the best."""
        master = self._master
        self._sums, cost, products, least = self._columns.measured(master.q)
        self._mean = (products + master.complementarity()) / self._count
        losses = self._sums[master.most][master.rises]
        value = float(losses.max()) if master.worst else cost
        bound = float(master.limit @ least)
        total = float(master.weights.sum()) if master.worst else 1.0
        best.since += 1
        excess = master.excess(self._sums)
        merit = value + excess  # which is moved in the end, at a cost of about one unit
        if excess <= _FEASIBLE and merit < best.merit:
            best.objective, best.merit, best.x = value, merit, self._state.x
        if bound / total > best.bound:
            best.bound, best.z, best.since = bound / total, self._state.z, 0
            best.total = total
            best.weights = master.weights / total if master.worst else None
            best.extra = master.q[self._setup.own] / total

    def _stepped(self) -> bool:
        """One step of Mehrotra's, with Gondzio's correctors while they lengthen it; False where floats allow none."""
        master = self._master
        try:
            master.factor(self._columns.system())
            while not (self._affine() <= _LOST and self._centred() <= _LOST):
                master.factors.stiffer()
        except LinAlgError:
            return False
        low, high = _LOW * self._aim, _HIGH * self._aim
        taken = np.minimum(self._longest(), 1.0)
        for _ in range(_CORRECTORS):
            if taken.min() > _LONG:
                break
            primal, dual = np.minimum(_FARTHER * taken + _FAR, 1.0).tolist()
            left, before = self._left, taken
            off = self._corrected(Target(primal, dual, low, high))
            taken = np.minimum(self._longest(), 1.0)
            if not (
                off <= _LOST and taken.sum() > before.sum() and taken.min() > _SHRUNK * before.min()
            ):
                self._columns.undo()
                master.undo()
                self._left = left
                break
        self._refined(self._columns.again(), _ENOUGH)
        steps = self._longest()
        share = _SHORT_SHARE + (_SHARE - _SHORT_SHARE) * np.minimum(steps, 1.0)
        primal, dual = np.minimum(share * steps, 1.0).tolist()
        if not max(primal, dual) > _STUCK:
            return False
        self._state = self._columns.move(primal, dual)
        master.move(primal, dual)
        return True

    def _affine(self) -> float:
        """Newton's direction towards products that are 0; what it leaves of the equations."""
        self._master.begin()
        self._left = self._master.missing(self._sums)
        return self._refined(self._columns.begin(self._master.q))

    def _centred(self) -> float:
        """Mehrotra's direction, to products that are what the affine one promises; what it leaves of the equations."""
        steps = np.minimum(self._longest(), 1.0)
        ahead = self._columns.ahead(*steps) + self._master.ahead(*steps)
        aim = self._mean * min(
            max((max(ahead, 0.0) / self._count / self._mean) ** 3, _LEAST), _MOST
        )
        self._aim = aim
        return self._corrected(Target(1.0, 1.0, aim, aim))

    def _corrected(self, target: Target) -> float:
        """The direction to other products; what it leaves of the equations."""
        self._master.correct(target)
        return self._refined(self._columns.correct(target))

    def _refined(self, sums: Vector, enough: float = _WANTED) -> float:
        """Refine the direction while that helps; what it leaves of the equations."""
        master, before = self._master, np.inf
        lack = master.missing(self._sums)
        for turn in range(_MOST_REFINED + 1):
            moved, residual = self._columns.end(master.refine(self._left - sums), master.d_q)
            self._left = lack - moved
            off = max(residual, float(np.abs(self._left[master.fixed]).max()))
            if (
                off <= enough
                or (turn >= _REFINED and off <= _WANTED)
                or turn == _MOST_REFINED
                or not off < 0.5 * before
            ):
                break
            before = off
            sums = self._columns.again()
        return float(off)

    def _longest(self) -> Vector:
        """The longest steps of values and of multipliers."""
        return np.asarray(np.min([self._columns.longest(), self._master.longest()], axis=0))
