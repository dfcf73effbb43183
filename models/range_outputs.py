"""Outputs whose worst answer in [0, 1] costs least where the nearest ones are likelier, in the limit of many outputs.

Any two answers are neighbours: of m outputs the L nearest to x weigh e^ε = 1 + q, the others 1. With K = m/L and n(x)
outputs over L by length, N = ∫ n + q, and s, w = 1, 1/4 for c(r) = |r| and 2, 1/12 for c(r) = r²,

    loss(x) = G(x) + W(x),   G(x) = ∫ n(y) c(x - y) dy / N,   W(x) = q w / (N n(x)^s)

is the same for all x where n is best for its K; K is best where bins of density n are best under some prior p:

    p = (F - λ) n^(s+1) / (s w q),   ∫ p = 1,   λ = loss      since Σ over bins of F - λ + q w p / n^(s+1) is then least

F(x) = ∫ p(y) c(x - y) dy, so that F - λ solves a linear system. What is private, what it costs and what the bound is is
decided elsewhere, of any outputs and any prior: near the ends, where windows of own outputs are one-sided, neither is
the limit's, and `level` moves outputs until the largest loss falls no more. The loss at a cut is smooth in the outputs,
as it is the same with the own outputs on either side: a step is a linear program, within the reach where the slopes
foretell what it gains (a trust region).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.arrays import Pair, Positions, Vector
from solvers.search import bisect

_GRID, _ROUNDS, _SPREAD = 1 << 9, 60, 25  # cells of [0, 1]; of the limit; of a spread of outputs
_NEAR = 1e-6  # of K, relative
_DAMPED, _LEAST = 0.7, 0.02  # exponent of a round; of z, what z - G is at least
_OWN, _OUTPUTS, _NO_MASS = 16, 512, 1e-9  # of `by_masses`: L and m at least; masses that count
_STEPS, _BINS, _WHOLE = 12, 8, 700  # of `level`; bins of an end whose outputs move; outputs that all move
_REACH, _TRUE, _ENOUGH = 0.05, (0.3, 0.7), 3e-4  # bins, of a step; gained, of what slopes say; gain that ends it


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


def by_masses(outputs: Vector, t: Vector, q: float, loss: str) -> tuple[int, Vector, Pair]:
    """(L, outputs spread as the least masses t of those given are, (places, how many bins are below each)).

    t: (m,), of `models.range_channel`.
    """
    held, total = np.cumsum(t) - t / 2, float(t.sum())
    bins = total * q / max(1 - total, _NO_MASS)
    own = max(_OWN, round(_OUTPUTS / bins))
    count = max(own + 1, round(own * bins))
    o = np.interp((np.arange(count) + 0.5) / count * total, held, outputs)
    known = np.linspace(0, 1, max(3, round(bins) + 1))
    below = np.interp(known, outputs, held - held[0]) * bins / total
    return own, level(o, own, q, loss), (known, below)


def level(outputs: Vector, own: int, q: float, loss: str) -> Vector:
    """The outputs, moved until the largest loss falls no more: steps of linear programs, as far as their slopes are
    true. Of many outputs those near the ends move, of the bins there."""
    from scipy.optimize import linprog  # slow to import

    o, m = (outputs + 1 - outputs[::-1]) / 2, outputs.size
    size = m // 2 if m <= _WHOLE else _BINS * own
    _, G, W = losses(o, own, q, loss)
    z, reach = float((G + W).max()), _REACH * own / m
    order = sp.eye_array(size) - sp.eye_array(size, k=-1)
    for _ in range(_STEPS):
        slopes = sp.csr_array(_slopes(o, size, own, q, loss) / z)
        parts: Any = [[slopes, np.full((slopes.shape[0], 1), -1.0)], [-order, None]]
        rows: Any = sp.block_array(parts, format="csr")
        limits = np.concatenate([-(G + W)[: slopes.shape[0]] / z, np.diff(o[:size], prepend=0.0)])
        bounds = [(-reach, reach)] * size + [(None, None)]
        solution = linprog(np.append(np.zeros(size), 1.0), rows, limits, bounds=bounds, method="highs")
        if solution.x is None or (gain := 1 - float(solution.fun or 0)) < _ENOUGH:
            break
        moved = o[:size] + solution.x[:-1]
        moved = np.sort(np.clip(np.concatenate([moved, o[size : m - size], 1 - moved]), 0, 1))
        _, *moved_losses = losses(moved, own, q, loss)
        least = float(np.add(*moved_losses).max())
        share = (1 - least / z) / gain
        reach *= 2 if share > _TRUE[1] else 1 if share > _TRUE[0] else 1 / 3
        if least < z:
            o, (G, W), z = moved, moved_losses, least
    return o


def _slopes(o: Vector, size: int, own: int, q: float, loss: str) -> Vector:
    """How the losses at 0 and the first cuts grow with the first outputs, the last ones being their mirror image.
    Shape (rows, size)."""
    m, absolute = o.size, loss == "absolute"
    row = np.arange(min(size, m - own) + 1)
    first = np.maximum(row - 1, 0)
    last = first + own
    x = np.where(row > 0, (o[first] + o[last]) / 2, 0.0)
    sums = np.append(0.0, np.cumsum(o))

    def slope(a: Any, b: Any) -> Vector:  # of Σ c(o - x) from a to b, as x falls
        if absolute:
            return np.asarray(a + b - 2 * np.clip(np.searchsorted(o, x), a, b))
        return np.asarray(2 * (sums[b] - sums[a] - (b - a) * x))

    moving = np.append(np.arange(size), np.arange(m - size, m))
    gaps = o[moving] - x[:, None]
    likely = 1 + q * ((moving >= first[:, None]) & (moving < last[:, None]))
    slopes = (np.sign(gaps) if absolute else 2 * gaps) * likely
    back = np.where(row > 0, -(slope(0, m) + q * slope(first, last)) / 2, 0.0)  # of the cut, half of it each of two
    for end in (first, last):
        inside = (end < size) | (end >= m - size)
        slopes[row[inside], np.where(end < size, end, end - m + 2 * size)[inside]] += back[inside]
    return np.asarray(slopes[:, :size] - slopes[:, : size - 1 : -1]) / (m + q * own)
