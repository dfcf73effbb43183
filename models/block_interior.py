"""Channels by a primal-dual interior point whose blocks are the outputs: columns of a channel meet only in row sums.

    min Σ_o c_o · v_o    s.t.  Σ_o v_o = 1,    w_o = G v_o >= 0 for every output o,

G the privacy rows of `models.channel`, the same for every output: λ v_b - v_a of neighbours, or t <= v <= λ t of all
pairs. With multipliers y of the sums and z_o of G, Newton's step towards w z = ν falls apart by outputs,

    H_o = G' diag(z_o/w_o) G,    H_o dv_o = dy + h_o,    h_o = G'(ν/w_o) - c_o + y,
    (Σ_o H_o⁻¹) dy = 1 - Σ_o v_o - Σ_o H_o⁻¹ h_o,

a k × k Schur complement, and its step lengths and centring are Mehrotra's (1992). For the worst input c_o = π ∘ ℓ_o
with the multipliers π of Σ_o ℓ_o v_o + s = ω, which join the sums: (q = (y, -π), W_o = [1, ℓ_o]) in what follows.

`models.block_factors` inverts the blocks without cancellation. A `Part` holds some outputs; what parts tell each other
are sums over their outputs, of k or k × k numbers. Multipliers G'z + Σ W q = c hold after every step up to what is
refined here, since z/w multiplies the rounding of dw.

| here             | meaning                                                              |
|------------------|----------------------------------------------------------------------|
| x (n, m)         | v_o, for all pairs with t_o as its last row                          |
| w, z (rows, m)   | G x and its multipliers                                              |
| q (K,)           | multipliers of what is summed over outputs: K = k, or 2k (worst case)|
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.linalg import LinAlgError

from models.block_factors import AllPairs, Factors, Graph, Order
from models.block_sums import Sums, longest
from solvers.arrays import Positions, Vector
from solvers.search import Deadline

_STEPS = 300
_SHARE = 0.995  # of the way to the boundary
_LEAST = 1e-8  # centring
_FEASIBLE = 1e-9  # residual of a sum that is 1
_REFINED, _ENOUGH = 5, 1e-15  # turns, and the residual of multipliers (in units of the largest loss) that is enough
_LOST = 1e-9  # ... up to which a direction is one
_STUCK = 1e-7  # step
_STALE = 8  # steps without a better bound


@dataclass(frozen=True, eq=False)
class Blocks:
    """What is solved: losses (k, m), times the prior (k,) unless that is None, for the worst input.

    first, second, ratios: (rows,) rows v[first] <= ratio v[second]; None: all pairs under one ratio, ratios (1,).
    """

    losses: Vector
    prior: Vector | None
    first: Positions | None
    second: Positions | None
    ratios: Vector

    @property
    def rows(self) -> int:
        """Privacy rows of an output."""
        return 2 * self.losses.shape[0] if self.first is None else self.first.size


@dataclass(frozen=True, eq=False)
class BlockPoint:
    """What was reached. masses: (k, m), > 0, rows nearly summing to 1; multipliers: (rows, m) of G; weights: (k,) of
    the inputs, where the worst one counts; objective, bound: in floats; done: whether they meet; why: it stopped."""

    masses: Vector
    multipliers: Vector
    weights: Vector | None
    objective: float
    bound: float
    iterations: int
    seconds: float
    why: str
    interrupted: bool = False

    @property
    def done(self) -> bool:
        """Whether objective and bound meet as closely as was asked."""
        return self.why == "optimal"


class Part:
    """Some outputs: their point, and what of it is summed."""

    def __init__(self, factors: Factors, costs: Vector, weights: Vector | None, share: float, scale: float) -> None:
        """costs, weights: (k, outputs), in the order of the factors; scale: of multipliers at the start."""
        self._f, self._weights, k = factors, weights, factors.k
        self._costs = np.zeros((factors.n, costs.shape[1]))
        self._costs[:k] = costs
        self.x = factors.inside(share, costs.shape[1])
        self.w = factors.rows(self.x)
        self.z = scale / self.w
        self._k, self._step, self._off = k, np.empty(0), np.empty(0)
        self._dx, self._dw, self._dz = np.zeros_like(self.x), np.zeros_like(self.w), np.zeros_like(self.z)

    def pull(self, q: Vector) -> Vector:
        """Σ W q, (n, outputs)."""
        out, k = np.zeros_like(self.x), self._k
        out[:k] = q[:k, None]
        if self._weights is not None:
            out[:k] += self._weights * q[k:, None]
        return out

    def sums(self, x: Vector) -> Vector:
        """Σ_o W' x. (K,)"""
        labels = x[: self._k]
        plain = labels.sum(axis=1)
        return plain if self._weights is None else np.concatenate([plain, (self._weights * labels).sum(axis=1)])

    def measured(self, q: Vector) -> tuple[Vector, float, float, Vector]:
        """(sums, cost, w · z, the least reduced cost but for y of every label)."""
        reduced = (self._costs - self._f.adjoint(self._f.feasible(self.z)))[: self._k]
        if self._weights is not None:
            reduced = reduced - self._weights * q[self._k :, None]
        cost = float((self._costs * self.x).sum())
        return self.sums(self.x), cost, float((self.w * self.z).sum()), reduced.min(axis=1)

    def system(self) -> Vector:
        """The part's share of the Schur complement. (K, K)"""
        self._f.factor(self.x, self.w, self.z)
        return self._f.summed(self._weights)

    def begin(self, q: Vector, aim: float | None) -> Vector:
        """Start a direction, towards w z = aim with the second order of the last one, or 0; Σ W' H⁻¹ h."""
        more = np.zeros_like(self.w) if aim is None else (aim - self._dw * self._dz) / self.w
        slack = self._costs - self.pull(q)
        self._residual = slack - self._f.adjoint(self.z)
        h = self._f.adjoint(more) - slack
        self._dx, self._dw = np.zeros_like(self.x), np.zeros_like(self.w)
        self._dz = more - self.z
        self._step = self._f.solve(h)
        return self.sums(self._step)

    def end(self, more: Vector, total: Vector) -> tuple[Vector, float]:
        """Take a step with `more` multipliers, `total` of them in this direction: (sums of dx, the largest residual of
        the multipliers)."""
        step = self._step + self._f.solve(self.pull(more))
        self._dx += step
        move = self._f.rows(step)
        self._dw += move
        self._dz -= self.z / self.w * move
        self._off = self.pull(total) + self._f.adjoint(self._dz) - self._residual
        return self.sums(self._dx), float(np.abs(self._off).max())

    def again(self) -> Vector:
        """Start a refinement of the direction."""
        self._step = self._f.solve(self._off)
        return self.sums(self._step)

    def longest(self) -> tuple[float, float]:
        """The longest steps that keep w and z >= 0."""
        return longest(self.w, self._dw), longest(self.z, self._dz)

    def ahead(self, primal: float, dual: float) -> float:
        """w · z after steps."""
        return float(((self.w + primal * self._dw) * (self.z + dual * self._dz)).sum())

    def move(self, primal: float, dual: float) -> None:
        """Take the direction."""
        self.x = self.x + primal * self._dx
        self.w, self.z = self.w + primal * self._dw, self.z + dual * self._dz


def _summed(each: Iterable[Vector]) -> Vector:
    first, *others = each
    return sum(others, first)


@dataclass
class _Best:
    """The best point and the best multipliers so far."""

    objective: float = np.inf
    bound: float = -np.inf
    masses: list[Vector] = field(default_factory=list)
    multipliers: list[Vector] = field(default_factory=list)
    weights: Vector | None = None
    since: int = 0


class Interior:
    """The method on some blocks. report: told (iteration, objective, bound) after every step."""

    def __init__(self, blocks: Blocks, report: Callable[[int, float, float], None] | None = None) -> None:
        self.blocks, self._report = blocks, report
        k, m = blocks.losses.shape
        worst = blocks.prior is None
        costs = blocks.losses if blocks.prior is None else blocks.losses * blocks.prior[:, None]
        low = np.full(k, costs.min()) if worst else costs.min(axis=1)
        self._low = float(low[0] if worst else low.sum())
        costs = costs - low[:, None]
        self._unit = float((costs.max(axis=0) if worst else costs.sum(axis=0)).min()) or float(costs.max()) or 1.0
        costs = costs / self._unit
        if blocks.first is None or blocks.second is None:
            factors: Factors = AllPairs(k, float(blocks.ratios[0]))
            self.place = np.arange(k)
        else:
            order = Order(k, blocks.first, blocks.second, blocks.ratios)
            factors, self.place = Graph(order), order.place
            costs = costs[order.order]
        start = factors.inside(1 / m, 1)
        pulled = float(np.abs(factors.adjoint(1 / factors.rows(start))[:k]).sum()) * m
        scale = max(float(costs.sum()) / (k if worst else 1), 1e-3) / pulled
        zero = np.zeros_like(costs) if worst else costs
        self.parts = [Part(factors, zero, costs if worst else None, 1 / m, scale)]
        self._master = Sums(k, worst, _summed(part.sums(part.x) for part in self.parts))
        self._count = sum(part.w.size for part in self.parts) + self._master.slack.size

    def solve(self, gap: float, deadline: Deadline | None = None) -> BlockPoint:
        """The best that is reached: to a relative gap, to where floats end, at the deadline, or at Ctrl-C."""
        deadline, best = deadline or Deadline(), _Best()
        why, iteration, interrupted = "iteration limit", 0, False
        try:
            for iteration in range(_STEPS):
                self._measured(best)
                if self._report is not None:
                    self._report(iteration, *self._values(best))
                value, bound = self._values(best)
                if value - bound <= gap * max(abs(value), abs(bound)):
                    why = "optimal"
                    break
                if deadline.passed:
                    why = "time limit"
                    break
                if best.since > _STALE or not self._stepped():
                    why = "floats end here"
                    break
        except KeyboardInterrupt:
            why, interrupted = "interrupted", True
        if not best.masses:
            self._measured(best)
        value, bound = self._values(best)
        k = self._master.k
        masses = np.maximum(np.concatenate(best.masses, axis=1)[:k][self.place], 0.0)
        weights = None if best.weights is None else best.weights[self.place]
        multipliers = np.concatenate(best.multipliers, axis=1)[: self.blocks.rows] * self._unit
        return BlockPoint(masses, multipliers, weights, value, bound, iteration, deadline.elapsed, why, interrupted)

    def _values(self, best: _Best) -> tuple[float, float]:
        return best.objective * self._unit + self._low, best.bound * self._unit + self._low

    def _measured(self, best: _Best) -> None:
        """Objective and bound at the point, kept where they are the best."""
        master = self._master
        told = [part.measured(master.q) for part in self.parts]
        self._sums = _summed(each[0] for each in told)
        off = float(np.abs(1 - self._sums[: master.k]).max())
        self._mean = (sum(each[2] for each in told) + master.complementarity()) / self._count
        value = float(self._sums[master.k :].max()) if master.worst else sum(each[1] for each in told)
        bound = float(np.minimum.reduce([each[3] for each in told]).sum())
        if master.worst:
            bound /= float(master.weights.sum())
        best.since += 1
        if off <= _FEASIBLE and value < best.objective:
            best.objective, best.masses = value, [part.x for part in self.parts]
        if bound > best.bound:
            best.bound, best.multipliers, best.since = bound, [part.z for part in self.parts], 0
            best.weights = master.weights / master.weights.sum() if master.worst else None
            if master.worst:
                best.multipliers = [z / master.weights.sum() for z in best.multipliers]

    def _stepped(self) -> bool:
        """One step of Mehrotra's; False where floats allow none."""
        parts, master = self.parts, self._master
        try:
            master.factor(_summed(part.system() for part in parts))
            while not self._directed(None) <= _LOST:
                master.factors.stiffer()
        except LinAlgError:
            return False
        primal, dual = (min(1.0, each) for each in self._longest())
        ahead = sum(part.ahead(primal, dual) for part in parts) + master.ahead(primal, dual)
        share = max((max(ahead, 0.0) / self._count / self._mean) ** 3, _LEAST)
        self._directed(share * self._mean)
        primal, dual = (min(1.0, _SHARE * each) for each in self._longest())
        if not max(primal, dual) > _STUCK:
            return False
        for part in parts:
            part.move(primal, dual)
        master.move(primal, dual)
        return True

    def _directed(self, aim: float | None) -> float:
        """The direction of every part, refined while that helps; what it leaves of the equations."""
        parts, master = self.parts, self._master
        lack = master.missing(self._sums)
        sums = _summed(part.begin(master.q, aim) for part in parts)
        more = master.step(lack - sums, aim)
        before = np.inf
        for turn in range(_REFINED + 1):
            told = [part.end(more, master.d_q) for part in parts]
            left = lack - _summed(each[0] for each in told)
            off = max([each[1] for each in told] + [float(np.abs(left[: master.k]).max())])
            if off <= _ENOUGH or turn == _REFINED or not off < 0.5 * before:
                break
            before = off
            more = master.refine(left - _summed(part.again() for part in parts))
        return off

    def _longest(self) -> tuple[float, float]:
        steps = [*(part.longest() for part in self.parts), self._master.longest()]
        return min(each[0] for each in steps), min(each[1] for each in steps)
