"""Outputs whose worst answer in [0, 1] costs least where the nearest ones are likelier, in the limit of many outputs.

Any two answers are neighbours: of m outputs the L nearest to x weigh e^ε = 1 + q, the others 1. With K = m/L and n(x)
outputs over L by length, N = ∫ n + q, and s, w = 1, 1/4 for c(r) = |r| and 2, 1/12 for c(r) = r²,

    loss(x) = G(x) + W(x),   G(x) = ∫ n(y) c(x - y) dy / N,   W(x) = q w / (N n(x)^s)

is the same for all x where n is best for its K; K is best where bins of density n are best under some prior p:

    p = (F - λ) n^(s+1) / (s w q),   ∫ p = 1,   λ = loss      since Σ over bins of F - λ + q w p / n^(s+1) is then least

F(x) = ∫ p(y) c(x - y) dy, so that F - λ solves a linear system. What is private, what it costs and what the bound is is
decided elsewhere, of any outputs and any prior: near the ends, where windows of own outputs are one-sided, neither is
the limit's, and `level` moves outputs until no answer costs more than others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from solvers.arrays import Pair, Positions, Vector
from solvers.search import bisect

_GRID, _ROUNDS, _SPREAD = 1 << 9, 60, 25  # cells of [0, 1]; of the limit; of a spread of outputs
_NEAR = 1e-6  # of K, relative
_DAMPED, _LEAST = 0.7, 0.02  # exponent of a round; of z, what z - G is at least
_STEPS, _BINS, _TOWARDS = 20, 8, (0.6, 0.3, 0.15)  # of `level`; bins of an end whose outputs move; goals
_SHARES = (1.0, 0.5, 0.25, 0.1)  # of a step


@dataclass(frozen=True)
class Limit:
    """bins: K; density, prior: n, p at the middles of equal cells of [0, 1]."""

    bins: float
    density: Vector
    prior: Vector

    @classmethod
    def of(cls, q: float, loss: str) -> Limit:
        """The limit at q = e^ε - 1. loss: absolute or squared."""
        most = math.sqrt(q) if loss == "absolute" else 1.5 * q ** (1 / 3)
        _, bins = bisect(lambda bins: _limit(bins, q, loss)[2] > 0, most / 4, most, tolerance=_NEAR * most)
        density, prior, _ = _limit(bins, q, loss)
        return cls(bins, density, prior)

    def places(self, count: int) -> Vector:
        """Ends of cells of [0, 1] with equal shares of outputs. Shape (count + 1,)."""
        shares = np.append(0.0, np.cumsum(self.density))
        return np.interp(np.linspace(0, shares[-1], count + 1), shares, np.linspace(0, 1, shares.size))

    def labels(self, atom: float, of_a_bin: int) -> Pair:
        """(labels, weights) for the bound: a share of the first and the last bin is at its end, none beside it."""
        ends = self.places(round(of_a_bin * self.bins))
        weights = np.append(0.0, np.cumsum(np.maximum(self.prior, 0.0)))
        p = np.diff(np.interp(ends, np.linspace(0, 1, weights.size), weights))
        for side in (p, p[::-1]):
            whole = side[:of_a_bin].sum()
            side[: of_a_bin // 2] = 0.0
            side[0] = atom * whole
        return (ends[1:] + ends[:-1]) / 2, p


def _limit(bins: float, q: float, loss: str) -> tuple[Vector, Vector, float]:
    """(n, p, λ - loss) at K."""
    s, w = (1, 0.25) if loss == "absolute" else (2, 1 / 12)
    costs = np.abs(np.subtract.outer(np.arange(_GRID), np.arange(_GRID)) / _GRID) ** s / _GRID
    n = np.full(_GRID, bins)
    for _ in range(_ROUNDS):
        G, W = costs @ n / (bins + q), q * w / (bins + q) / n**s
        z = float(n @ (G + W)) / n.sum()
        n = n * (W / np.maximum(z - G, _LEAST * z)) ** (_DAMPED / s)
        n *= bins / n.mean()
    k = n ** (s + 1) / (s * w * q)
    share = np.linalg.solve(np.eye(_GRID) - costs * k, np.ones(_GRID))  # F - λ over -λ
    rate = -1 / float((k * share).mean())
    return n, -rate * k * share, rate - z


def losses(outputs: Vector, own: int, q: float, loss: str) -> tuple[Vector, Vector, Vector]:
    """(x, G, W) at 0, the cuts and 1, where a loss is largest. outputs: (m,) in order. Shape (m - own + 2,)."""
    o, m = outputs, outputs.size
    x = np.concatenate([[0.0], (o[:-own] + o[own:]) / 2, [1.0]])
    first = np.append(np.arange(m - own + 1), m - own)
    first[1:-1] -= 1
    sums = [np.append(0.0, np.cumsum(o**power)) for power in (1, 2)]

    def between(a: Positions, b: Positions) -> Vector:
        if loss == "squared":
            return np.asarray(sums[1][b] - sums[1][a] - 2 * x * (sums[0][b] - sums[0][a]) + (b - a) * x * x)
        at = np.clip(np.searchsorted(o, x), a, b)
        return np.asarray(x * (2 * at - a - b) + sums[0][a] + sums[0][b] - 2 * sums[0][at])

    total = m + q * own
    return x, between(np.zeros_like(first), np.full_like(first, m)) / total, q * between(first, first + own) / total


def spread(limit: Limit, own: int, q: float, loss: str) -> Vector:
    """K own outputs by the density, spread until the losses at them are nearly alike."""
    count, power = round(limit.bins * own), _DAMPED / (1 if loss == "absolute" else 2)
    gaps = np.diff(limit.places(count))
    best = math.inf, gaps
    for _ in range(_SPREAD):
        ends = np.append(0.0, np.cumsum(gaps)) / gaps.sum()
        o = (ends[1:] + ends[:-1]) / 2
        x, G, W = losses(o, own, q, loss)
        if (G + W).max() < best[0]:
            best = float((G + W).max()), o
        z = float(np.median(G + W))
        gaps = np.diff(ends) * np.interp(o, x, np.maximum(z - G, _LEAST * z) / W) ** power
    return np.asarray(best[1])


def level(outputs: Vector, own: int, q: float, loss: str) -> Vector:
    """The outputs, those near the ends moved until no answer costs much more than others: steps of least squares."""
    from scipy.sparse.linalg import lsmr  # slow to import

    o, size = outputs, min(outputs.size // 2, _BINS * own)
    _, G, W = losses(o, own, q, loss)
    goals = [*_TOWARDS]
    for _ in range(_STEPS):
        each = G + W
        worst, usual = each.max(), np.median(each)
        wanted = worst - goals[0] * (worst - usual) - each[:size]
        scale = np.append(o[0], np.diff(o[:size])) + _LEAST / outputs.size
        step = lsmr(_slopes(o, size, own, q, loss) @ sp.diags_array(scale), wanted, maxiter=200)[0] * scale
        for share in _SHARES:
            moved = np.clip(np.sort(np.append(o[:size] + share * step, o[size : -size or None])), 0, 1)
            moved = np.sort(np.append(moved, 1 - moved[:size][::-1]))
            _, G, W = losses(moved, own, q, loss)
            if (G + W).max() < worst:
                o = moved
                break
        else:
            _, G, W = losses(o, own, q, loss)
            goals.pop(0)
            if not goals:
                break
    return o


def _slopes(o: Vector, size: int, own: int, q: float, loss: str) -> sp.csr_array:
    """How W at 0 and the first cuts grows with the first outputs. Shape (size, size)."""
    row = np.arange(size)
    x = np.append(0.0, (o[: size - 1] + o[own : own + size - 1]) / 2)
    first = np.maximum(row - 1, 0)
    at = first[:, None] + np.arange(own)
    gap = o[at] - x[:, None]
    slope = (np.sign(gap) if loss == "absolute" else 2 * gap) * q / (o.size + q * own)
    back = -slope.sum(axis=1) / 2  # of the cut, half of it each of two outputs
    back[0] = 0.0
    rows = np.concatenate([row.repeat(own), row, row])
    columns = np.concatenate([at.ravel(), first, first + own])
    values = np.concatenate([slope.ravel(), back, back])
    inside = columns < size
    return sp.csr_array((values[inside], (rows[inside], columns[inside])), shape=(size, size))
