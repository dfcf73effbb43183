"""The channel of points of a range whose worst point costs least, every two neighbours: a sparse linear program.

With q = e^ε - 1 and t_o the least mass of an output (the column form of `models.channel`), M(i, o) = t_o + s(i, o) is
the law of the point x_i:

    min z   s.t.  Σ_o t_o + Σ_o s(i, o) = 1,   0 <= s(i, o) <= q t_o,
                  z >= Σ_o t_o c(o - x_i) + Σ_o s(i, o) c(o - x_i)     for every i

z is at most what the worst answer of the range costs with any channel to these outputs, and the multipliers of the
points are the prior under which every such channel costs at least z. Under a given prior z is the mean over the points.

Sparse: s(i, o) is stated where o is near the point, as bins are narrow, and is 0 elsewhere. That may raise the value of
the program; a bound on all channels is proven apart, under the multipliers as a prior. G(x) = Σ_o t_o c(o - x) comes by
recurrence:

    squared     G(x) = m_0 x² - 2 m_1 x + m_2,  m_r = Σ_o t_o o^r                        columns "moments" (3,)
    absolute    G(o_j+1) - G(o_j) = (o_j+1 - o_j)(2 T_j - T_last),  T_j = Σ_{i<=j} t_i   columns "moments": T, G (2 m,)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.arrays import Flags, Positions, Vector
from solvers.data import Data
from solvers.program import Block, Program
from solvers.solution import Solution

_LEAST = 1e-9


@dataclass(frozen=True)
class RangeChannel:
    """The program of given points and outputs.

    points: (n,) x; outputs: (m,) increasing, points among them; near: (n, m) where s is stated; q: e^ε - 1;
    loss: absolute or squared; all of it in [0, 1]; weights: (n,) of a given prior;
    mirrored: whether the points are those of a left half, the middle the last, and t_o = t_m-1-o. Where outputs and
    points are their own mirror image, so may be the channel: its mean with that costs no more.
    """

    points: Vector
    outputs: Vector
    near: Flags
    q: float
    loss: str
    weights: Vector | None = None
    mirrored: bool = False

    @property
    def _own(self) -> Positions:
        """The column of t for every output. Shape (m,)."""
        each = np.arange(self.outputs.size)
        return np.minimum(each, each[::-1]) if self.mirrored else each

    def program(self) -> Program:
        """The program, without parameters."""
        n, m = self.near.shape
        point, output = np.nonzero(self.near)
        size, each = point.size, np.arange(point.size)
        costs = np.abs(self.outputs[output] - self.points[point]) ** (1 + (self.loss == "squared"))
        own = sp.csr_array((costs, (point, each)), shape=(n, size))
        defined, total, below = self._moments()
        h = int(self._own.max()) + 1
        fold = sp.csr_array((np.ones(m), (np.arange(m), self._own)), shape=(m, h))
        if self.weights is not None:
            prior = sp.csr_array(self.weights[None])
            own, below = prior @ own, prior @ below
        ones, p = sp.csr_array((np.ones(size), (point, each)), shape=(n, size)), own.shape[0]
        link = sp.csr_array((np.full(size, -self.q), (each, self._own[output])), shape=(size, h))
        parts: Any = [
            [None, own, below, sp.csr_array(np.full((p, 1), -1.0))],
            [link, sp.eye_array(size), None, None],
            [None, ones, sp.csr_array(np.tile(total, (n, 1))), None],
            [defined[0] @ fold, None, defined[1], None],
        ]
        rows = sp.csc_array(sp.block_array(parts))
        rows.data[np.abs(rows.data) < _LEAST] = 0.0  # as solvers do; no bound is read off the program alone
        rows.eliminate_zeros()
        sizes, inequalities = (h, size, total.size, 1), p + size
        right = np.concatenate([np.zeros(inequalities), np.ones(n), np.zeros(defined[0].shape[0])])
        left = np.where(np.arange(right.size) < inequalities, -np.inf, right)
        columns, first = rows.shape[1], np.cumsum([0, *sizes])
        lower = np.where((np.arange(columns) < h + size) | (np.arange(columns) == columns - 1), 0.0, -np.inf)
        cost = np.concatenate([np.zeros(columns - 1), [1.0]])
        data = Data(cost, 0.0, rows, left, right, lower, np.full(columns, np.inf), np.zeros(columns, dtype=bool))
        names = ("least", "more", "moments", "worst")
        blocks = tuple(Block(name, int(first[i]), (sizes[i],)) for i, name in enumerate(names))
        named = Block("losses", 0, (p,)), Block("sums", inequalities, (n,))
        return Program(f"channel of a range, {n} points", data, variables=blocks, rows=named)

    def _moments(self) -> tuple[tuple[sp.csr_array, sp.csr_array], Vector, sp.csr_array]:
        """(rows that define the moments of t: columns of t, of the moments; Σ t as a row of moments; G of points)."""
        x, o, m = self.points, self.outputs, self.outputs.size
        if self.loss == "squared":
            powers = sp.csr_array(np.stack([o**0, o, o**2]))
            G = sp.csr_array(np.stack([x**2, -2 * x, x**0], axis=1))
            return (powers, -sp.eye_array(3, format="csr")), np.array([1.0, 0.0, 0.0]), G
        steps, apart, none = np.arange(m - 1), np.diff(o), sp.csr_array((m, m))
        running = sp.eye_array(m) - sp.eye_array(m, k=-1)  # T_j - T_j-1 = t_j
        at = np.concatenate([steps, steps]), np.concatenate([steps, np.full(m - 1, m - 1)])
        slopes = sp.csr_array((np.concatenate([-2 * apart, apart]), at), shape=(m - 1, m))
        rises = sp.eye_array(m - 1, m, k=1) - sp.eye_array(m - 1, m)
        start = sp.csr_array((np.ones(1), ([0], [m])), shape=(1, 2 * m))
        of_t = sp.vstack([-sp.eye_array(m), sp.csr_array((m - 1, m)), sp.csr_array((o[0] - o)[None])])
        moments = sp.vstack([sp.hstack([running, none]), sp.hstack([slopes, rises]), start])
        G = sp.csr_array((np.ones(x.size), (np.arange(x.size), m + np.searchsorted(o, x))), shape=(x.size, 2 * m))
        return (sp.csr_array(of_t), sp.csr_array(moments)), np.eye(2 * m)[m - 1], G

    def least(self, solution: Solution) -> Vector:
        """t. Shape (m,)."""
        return np.maximum(solution["least"], 0.0)[self._own]

    def both(self, half: Vector) -> Vector:
        """Numbers of the left half, the last of which is the middle, as those of all, of twice the sum."""
        return np.concatenate([half[:-1], 2 * half[-1:], half[-2::-1]])

    def prior(self, solution: Solution) -> Vector:
        """What every point counts. Shape (n,)."""
        assert solution.row_dual is not None
        return np.maximum(-solution.row_dual[: self.points.size], 0.0)

    def multipliers(self, solution: Solution) -> Vector:
        """What every law's sum costs. Shape (n,)."""
        assert solution.row_dual is not None
        first = solution.program.rows[1].start
        return solution.row_dual[first : first + len(self.near)]
