"""The best channel along a line under pure ε, by columns: extreme rays of the cone that one output's masses are in.

    min z   s.t.  Σ_c λ_c B v_c = 1,    Σ_c λ_c D (c(o_c - x) ∘ T v_c) <= z,    λ >= 0

Points i = 0..n-1, any two at most w apart neighbours: the masses of an output are in the cone v_i <= e^ε v_j,
|i - j| <= w. A ray of it is extreme where n - 1 independent ones of these are equations, so that

    v_i = e^(ε k_i),  k_i whole, of any w + 1 points that follow each other two values at most, which are adjacent.

With multipliers y of the sums and q >= 0 of the losses, Σ q = 1, a column costs r·v more than it is worth,
r = T'(D'q ∘ c(o - x)) - B'y. Of one output the ray with the least r·v is a shortest path along the points: its state is
the direction of the last step of k, and how many points ago that was, up to w (`least`). Where r·v >= 0 for all outputs
and rays, no channel costs less than Σ y (weak duality; D'q is a prior). Else y is lowered evenly, until so.

x (L,) are places of answers, T (L, n) their laws, mixtures of those of points. D (R, L): the means of losses whose
worst counts, one row where a prior is given. B (s, n): what is summed; the identity, or means over neighbouring points,
for a bound alone: multipliers that are the same for them prove nearly as much. Where the reflected question is the
same, D and B are means with their reflections, which half of the rows say, and half of the outputs: channels are too.

Rounding. A path's value in doubles is Σ r_i v_i (1 + θ_i), |θ_i| <= 6 n u, u the unit roundoff: of products and sums
on the way, and of e^ε. r is lowered by more than that share of the sizes of its terms, so that what is >= 0 in doubles
is so exactly (`_ULPS`).

The squared loss of an output between two that are p apart is below their mean loss by p²/4 at most, for all answers
alike; the absolute one nowhere, where no place is between the two. So outputs at steps of p prove that much less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.arrays import Positions, Vector
from solvers.data import SMALLEST, Data
from solvers.errors import SolverError
from solvers.growing import GrowingProgram
from solvers.program import Block, Program
from solvers.search import Deadline

_ULPS = 10 * 2.0**-53  # of r, for each point
_AT_ONCE = 256  # outputs that are priced together, which a cache holds
_TURNS, _EVEN = 8, 1e-7  # of lowering; relative
_STAIRS = (0.0, 0.25, 0.5, 0.75)  # of the first columns
_ROUNDS, _SHARE, _FEWEST = 200, 0.5, 8  # of columns that cost too little, those that cost least
_OFF = 1e-14  # what rounded places, outputs and weights change a loss by, more than
_LARGEST = 10.0  # |y|, in units of about a loss
_UNIT = 2.0**30  # steps of an output


class Columns(NamedTuple):
    """outputs (c,), and k of their rays (n, c), at most 0."""

    outputs: Vector
    steps: Positions

    @property
    def keys(self) -> list[tuple[float, bytes]]:
        """What tells them apart."""
        return [(output, k.tobytes()) for output, k in zip(self.outputs.tolist(), self.steps.T, strict=True)]


@dataclass(frozen=True, eq=False)
class RayPoint:
    """columns, with their shares λ (c,); prior: D'q (L,), y (s,), and about what they prove; objective: what
    columns cost."""

    columns: Columns
    shares: Vector
    prior: Vector
    y: Vector
    bound: float
    objective: float


def least(r: Vector, w: int, ratio: float) -> tuple[Vector, Positions]:
    """(r·v of the rays with v_0 = 1 that cost least, for every column of r (n, m); their k). Shapes (m,), (n, m)."""
    (n, m), free = r.shape, 2 * w - 2  # states: a step up 0..w-2 points ago, one down, none of these
    later = np.arange(1, free + 2)
    later[[w - 2, free - 1, free]] = free
    value, taken = np.repeat(r[-1:], free + 1, axis=0), np.zeros((n, free + 1, m), dtype=np.int8)
    moves = (1, slice(w - 1, None)), (-1, np.r_[: w - 1, free])
    for i in range(n - 2, -1, -1):
        best = value[later]
        for (move, states), cost in zip(moves, (value[0] * ratio, value[w - 1] / ratio), strict=True):
            lower = cost < best[states]
            best[states] = np.where(lower, cost, best[states])
            taken[i, states] = np.where(lower, move, taken[i, states])
        value = best + r[i]
    k, state, each = np.zeros((n, m), dtype=np.intp), np.full(m, free), np.arange(m)
    for i in range(n - 1):
        move = taken[i, state, each]
        k[i + 1] = k[i] + move
        state = np.where(move == 0, later[state], np.where(move > 0, 0, w - 1))
    return value[free], k


@dataclass(frozen=True, eq=False)
class RayChannel:
    """A question. points (n,), places: increasing, in [0, 1]; laws, means, sums: T, D, B; width: of cells whose mean
    loss counts, or 0; apart: w; epsilon: ε; outputs: where rays are priced."""

    points: Vector
    places: Vector
    laws: sp.csr_array
    means: sp.csr_array
    sums: sp.csr_array
    squared: bool
    width: float
    apart: int
    epsilon: float
    outputs: Vector

    def losses(self, outputs: Vector) -> Vector:
        """c(o - x). Shape (L, outputs)."""
        r, h = np.abs(self.places[:, None] - outputs), self.width
        if self.squared:
            return np.asarray(r * r + h * h / 12)
        return np.where(2 * r >= h, r, h / 4 + r * r / (h or 1.0))

    def rays(self, steps: Positions) -> Vector:
        """v, of mean 1. Shape (n, columns)."""
        v = np.exp(self.epsilon * steps)
        return np.asarray(v / v.mean(axis=0))

    def moved(self, prior: Vector, steps: Positions) -> Columns:
        """Rays at the outputs that cost least under a prior: means, or medians."""
        steps = steps - steps.max(axis=0)
        weights = (prior[:, None] + 1e-300) * (self.laws @ self.rays(steps))
        below = np.cumsum(weights, axis=0)
        if self.squared:
            outputs = self.places @ weights / below[-1]
        else:
            at = (below < below[-1] / 2).sum(axis=0), np.arange(below.shape[1])
            outputs = self.places[at[0]] + self.width * ((below[-1] / 2 - below[at]) / weights[at] + 0.5)
        return Columns(np.rint(outputs * _UNIT) / _UNIT, steps)

    def solve(
        self, gap: float, goal: float = 0.0, first: Positions | None = None, deadline: Deadline | None = None
    ) -> RayPoint | None:
        """Columns, until objective and bound are a relative gap apart, or the objective is at most the goal, or the
        deadline has passed; None where it does at once. first: k of rays to begin with."""
        even, steps = self.means.T @ np.full(self.means.shape[0], 1 / self.means.shape[0]), self._stairs
        columns, point, known = Columns(np.empty(0), steps[:, :0]), None, set[tuple[float, bytes]]()
        fresh = self.moved(even, steps if first is None else np.concatenate([steps, first], axis=1))
        unit = float((even @ (self.losses(fresh.outputs) * (self.laws @ self.rays(fresh.steps)))).min())
        master = self._master()
        for _ in range(_ROUNDS):
            new = [j for j, key in enumerate(fresh.keys) if key not in known]
            known.update(fresh.keys)
            if not new:
                break
            fresh = Columns(fresh.outputs[new], fresh.steps[:, new])
            columns = Columns(*(np.concatenate(pair, axis=-1) for pair in zip(columns, fresh, strict=True)))
            master.extend(np.empty(0, dtype=int), self._rows(fresh, unit), 0.0)
            try:
                reached = master.solve(deadline)
            except SolverError:
                break
            y, q = np.split(reached.x, [self.sums.shape[0]])
            prior, y = self.means.T @ np.maximum(q, 0.0) / np.maximum(q, 0.0).sum(), y * unit
            _, cost, rays = self._priced(prior, self.sums.T @ y, self.outputs)
            objective = -reached.value * unit
            point = RayPoint(columns, -reached.duals[1:], prior, y, objective + min(float(cost.min()), 0.0), objective)
            over = deadline is not None and deadline.passed
            if objective - point.bound <= gap * objective or objective <= goal or over:
                break
            lacking = np.flatnonzero(cost < 0)
            lacking = lacking[np.argsort(cost[lacking])[: max(_FEWEST, int(_SHARE * lacking.size))]]
            fresh = self.moved(prior, rays[:, lacking])
        return point

    @property
    def _stairs(self) -> Positions:
        """k of a constant, and of staircases around every output."""
        n, far = len(self.points), self.apart * (self.points[1] - self.points[0])
        away = np.abs(self.points[:, None] - self.outputs) / far
        stairs = [-np.floor(away + share - 1e-9).clip(0).astype(np.intp) for share in _STAIRS]
        return np.concatenate([np.zeros((n, 1), dtype=np.intp), *stairs], axis=1)

    def _master(self) -> GrowingProgram:
        """The dual: max Σ y, Σ q <= 1, a row for every column to come; |y| bounded, which simplex likes."""
        s, rows = self.sums.shape[0], self.means.shape[0]
        total = sp.csc_array(np.append(np.zeros(s), np.ones(rows))[None])
        high = np.append(np.full(s, _LARGEST), np.full(rows, np.inf))
        low = np.append(np.full(s, -_LARGEST), np.zeros(rows))
        data = Data(-np.append(np.ones(s), np.zeros(rows)), 0.0, total, np.array([-np.inf]), np.ones(1), low, high,
                    np.zeros(s + rows, dtype=bool))  # fmt: skip
        blocks = Block("sums", 0, (s,)), Block("losses", s, (rows,))
        return GrowingProgram(Program("rays of a channel", data, variables=blocks, rows=(Block("one", 0, (1,)),)))

    def _rows(self, columns: Columns, unit: float) -> sp.csr_array:
        """B v, -D (c ∘ T v) of every column, losses in a unit."""
        v = self.rays(columns.steps)
        losses = self.losses(columns.outputs) * (self.laws @ v)
        rows = np.concatenate([self.sums @ v, self.means @ losses / -unit])
        return sp.csr_array(np.where(np.abs(rows) < SMALLEST, 0.0, rows).T)

    def _priced(self, prior: Vector, worth: Vector, outputs: Vector) -> tuple[Vector, Vector, Positions]:
        """(r·v with v_0 = 1, lowered by more than rounding; r·v with v of mean 1; k) of the least ray of every output.
        worth: B'y."""
        told: list[tuple[Vector, Vector, Positions]] = []
        for at in range(0, len(outputs), _AT_ONCE):
            charged = self.laws.T @ (prior[:, None] * self.losses(outputs[at : at + _AT_ONCE]))
            r = charged - worth[:, None]
            off = _ULPS * (len(worth) + 10) * (charged + np.abs(worth)[:, None])
            values, steps = least(r - off, self.apart, math.exp(self.epsilon))
            told.append((values, (r * self.rays(steps - steps.max(axis=0))).sum(axis=0), steps))
        of_each = [*zip(*told, strict=True)]
        return np.concatenate(of_each[0]), np.concatenate(of_each[1]), np.concatenate(of_each[2], axis=1)

    def proven(self, point: RayPoint, outputs: Vector) -> float:
        """What no channel on these outputs, increasing at equal steps, costs less than, whatever the point is worth;
        for the squared loss none with real outputs between them either."""
        worth, best, n = self.sums.T @ point.y, 0.0, len(self.points)
        for _ in range(_TURNS):
            values, cost, _ = self._priced(point.prior, worth, outputs)
            total = math.fsum(worth)
            if values.min() >= 0:
                best = max(best, total - _ULPS * n * math.fsum(np.abs(worth)))
            if values.min() >= 0 and cost.min() <= _EVEN * total:
                break
            worth = worth + (cost.min() - _EVEN / 2 * abs(total)) / n
        step = float(np.diff(outputs).max())
        return (1 - _ULPS * n) * best - self.squared * step * step / 4 - _OFF
