"""Lower bounds on the mean absolute error of every private unbiased quantizer of uniform inputs, by weak duality.

A mechanism draws output o_i for input x in [-1, 1] with probability p_x(i); ε-private: low_i <= p_x(i) <= t low_i,
t = e^ε, low_i the infimum over x. Take any functions α, β on [-1, 1] (here affine between nodes) and numbers α_±, β_±
at x = ±1. With f = 1/2 the density,

    g(x; o) = f |o - x| - α(x) - β(x) o,    g_±(o) = -α_± - β_± o
    h(o)    = ∫ min(g, t g) dx + min(g_-, t g_-) + min(g_+, t g_+)
    error   = ∫ Σ_i p_x(i) f |o_i - x| dx  >=  T + Σ_i low_i h(o_i)  >=  T + min(0, min_i h(o_i))
    T       = ∫ α(x) + x β(x) dx + α_- - β_- + α_+ + β_+

because the laws sum to 1 with mean x, p g >= low min(g, t g), and Σ low_i <= 1. Nothing is assumed of the laws between
points, so the bound holds for every mechanism on real inputs, and for whatever set of outputs h is bounded on.

On an interval of outputs without a point of (-1, 1) the function g is affine in o, so h is concave and least at an end.
On one of length L inside, |o - x| misses its chord by 2 (x - o1)(o2 - x)/L at most where o = x, so that h is at least
its least end less t f L²/3.

Doubles: α, β and the outputs are taken as they are; e^ε is rounded up; each sum is moved down by more than its
rounding (`_ULPS` units in the last place of the sum of the sizes of its terms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Vector

from .quantizer import odds_of

_ULPS = 1000 * 2.0**-53  # a sum here has some 100 terms of some 20 roundings each, most of them of parts of a term


def largest_ratio(epsilon: float) -> float:
    """e^ε, rounded up."""
    return math.nextafter(1 + odds_of(epsilon), math.inf)


@dataclass(frozen=True)
class OutputDual:
    """α and β at nodes -1 = x_0 < ... < x_n = 1, affine between them, and α_±, β_±.

    nodes, alpha, beta: (n + 1,); ends: (2, 2), rows α and β, columns at -1 and 1.
    """

    nodes: Vector
    alpha: Vector
    beta: Vector
    ends: Vector

    @staticmethod
    def of(middles: Vector, row_dual: Vector) -> OutputDual:
        """From the duals of the laws at -1, the middles of equal cells, and 1: sums first, then means, as in LawModel.

        A dual at a middle, over the cell's width, is the function's value there; it is affine between middles.
        """
        n, width = middles.size + 2, float(middles[1] - middles[0])
        nodes = np.concatenate([[-1.0], middles, [1.0]])
        parts = []
        for dual in (row_dual[:n], row_dual[n : 2 * n]):
            inner = dual[1:-1] / width
            first, last = 1.5 * inner[0] - 0.5 * inner[1], 1.5 * inner[-1] - 0.5 * inner[-2]
            parts.append(np.concatenate([[first], inner, [last]]))
        ends = np.array([[row_dual[0], row_dual[n - 1]], [row_dual[n], row_dual[2 * n - 1]]])
        return OutputDual(nodes, parts[0], parts[1], ends)

    def lowered(self, by: float) -> OutputDual:
        """With α less everywhere: T falls by twice that, h rises by 2 to 2 t of it."""
        return replace(self, alpha=self.alpha - by)

    @property
    def total(self) -> float:
        """T, rounded down."""
        a, b, x = self.alpha, self.beta, self.nodes
        width = np.diff(x)
        # ∫ x β over a segment: β at its ends times the means of x and of the ends' hats
        moment = (b[:-1] * (2 * x[:-1] + x[1:]) + b[1:] * (x[:-1] + 2 * x[1:])) / 6
        terms = np.concatenate([width * (a[:-1] + a[1:]) / 2, width * moment, self.ends[0], self.ends[1] * [-1, 1]])
        return math.fsum(terms) - _ULPS * math.fsum(np.abs(terms))

    def price(self, outputs: Vector, ratio: float) -> Vector:
        """h at outputs, rounded down. ratio: `largest_ratio`. Shape (m,)."""
        x, o = self.nodes, outputs[:, None]
        g = np.abs(o - x) / 2 - self.alpha - self.beta * o
        size = (np.abs(o) + np.abs(x)) / 2 + np.abs(self.alpha) + np.abs(self.beta * o)
        width = np.diff(x)
        pieces = width * _least(g[:, :-1], g[:, 1:], ratio)
        cell = np.searchsorted(x, outputs, side="right") - 1
        inside = np.flatnonzero((outputs > x[0]) & (outputs < x[-1]))
        if inside.size:  # the kink of |o - x| is in this segment: two instead of one
            k, at = cell[inside], outputs[inside]
            middle = -np.interp(at, x, self.alpha) - np.interp(at, x, self.beta) * at
            left, right = g[inside, k], g[inside, k + 1]
            pieces[inside, k] = (at - x[k]) * _least(left, middle, ratio) + (x[k + 1] - at) * _least(
                middle, right, ratio
            )
        ends = -self.ends[0] - self.ends[1] * o
        value = pieces.sum(axis=1) + np.minimum(ends, ratio * ends).sum(axis=1)
        sizes = (width * (size[:, :-1] + size[:, 1:])).sum(axis=1) + (
            np.abs(self.ends[0]) + np.abs(self.ends[1] * o)
        ).sum(axis=1)
        return np.asarray(value - _ULPS * ratio * sizes)


def _least(a: Vector, b: Vector, ratio: float) -> Vector:
    """The mean of min(g, ratio g) over a segment on which g is affine from a to b."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    below = np.minimum(low, 0.0)
    mixed = (low < 0) & (high > 0)
    negative = np.where(mixed, below * (below / np.where(mixed, high - low, 1.0)) / -2, np.minimum(high, 0) + below)
    negative = np.where(mixed, negative, negative / 2)
    return (a + b) / 2 + (ratio - 1) * negative
