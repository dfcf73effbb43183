"""μ-Gaussian DP: the trade-off function T(P, Q) lies above f(α) = Φ(Φ^-1(1-α) - μ) (Dong, Roth and Su 2022).

T is piecewise linear; its vertices come from the sets A = {P/Q >= r}, with 1 - α = P(A) and β = Q(A). f is convex, so a
chord whose ends lie above it lies above it: T >= f everywhere when at every vertex

    Φ^-1(P(A)) - Φ^-1(Q(A)) <= μ

decided by balls of growing precision. T(P, Q) is jointly convex in (P, Q): laws at knots decide real inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any

import numpy as np

from workbench.errors import must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Interval, ball_ends, nearest_float, round_up
from workbench.notions.laws import Laws
from workbench.notions.notion import (
    HockeyStick,
    Requirement,
    SmallestParameterNotion,
    Values,
    decide_at_most,
)

_BITS = 4096  # of the balls, beyond which a claim is left undecided
_CUT, _SPECK = (
    1e-9,
    1e-10,
)  # share of a vertex beyond the curve that is cut off; probabilities that solvers can tell
_STEEPEST = 20  # ε of a tangent: e^ε is a coefficient
_MOST, _GRID = 4, 1 << 14  # tangents at once; ε of tangents are multiples of 1 over it
_APART, _THIN, _TAIL = (
    0.125,
    3.0,
    (6.75, 0.25),
)  # quantiles of dense tangents; from where they are less dense
Vertex = tuple[int, int, int, int]
_LARGEST = 20  # μ of a program, whose tangents are at e^(μ²/2)


def _tangent(mu: float, epsilon: float) -> HockeyStick:
    """The hockey stick of N(0, 1) against N(μ, 1) at ε, Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), rounded up (Dong, Roth and Su
    2022, Cor. 2.13). ε may be negative, and is the nearest multiple of 2^-14: sticks closer than that are rows that
    solvers cannot tell apart."""
    at = Fraction(round(epsilon * _GRID), _GRID)
    x = float(at)
    tails = [
        math.erfc((x / mu + side * mu / 2) / math.sqrt(2)) / 2 for side in (-1, 1)
    ]  # each to its last digits
    return HockeyStick(at, Fraction(min(1.0, max(tails[0] - math.exp(x) * tails[1], 0.0) + 1e-14)))


class TradeOffCurve:
    """Vertices (P(A), Q(A)) = (k/K, l/L) of a trade-off curve, as (k, K, l, L), for the sets A of largest ratios with
    P(A) > Q(A): elsewhere nothing is asked. To reduce long integers would take most of an audit."""

    def __init__(self, vertices: Iterable[Vertex]) -> None:
        self.vertices = [
            (k, total, l, other) for k, total, l, other in vertices if k * other > l * total
        ]

    @property
    def is_unbounded(self) -> bool:
        """Whether one law reaches what the other does not: no μ is enough."""
        return any(k == total or not l for k, total, l, _ in self.vertices)

    def mu_enclosure(self, vertex: Vertex, bits: int) -> Interval:
        """Rationals around Φ^-1(k/K) - Φ^-1(l/L), for 0 < l/L < k/K < 1."""
        from flint import arb, ctx

        with ctx.workprec(bits):
            k, total, l, other = map(arb, vertex)
            return ball_ends(
                arb(2).sqrt() * ((2 * (k / total) - 1).erfinv() - (2 * (l / other) - 1).erfinv())
            )

    @cached_property
    def smallest_mu(self) -> float:
        """The least μ, rounded up; inf where there is none."""
        if self.is_unbounded:
            return math.inf
        return max(
            (round_up(self.mu_enclosure(each, _bits(*each))[1]) for each in self.vertices),
            default=0.0,
        )

    def is_enough(self, mu: Fraction) -> bool:
        """Whether μ is enough. Raises NotProven where 4096 bits, or the work that is allowed, do not tell."""
        return not self.is_unbounded and all(self._within(each, mu) for each in self.vertices)

    def _within(self, vertex: Vertex, mu: Fraction) -> bool:
        ends = partial(self.mu_enclosure, vertex)
        return decide_at_most(
            "mu", mu, ends, mu, lambda bits: 1000 + bits * bits // 200, _bits(*vertex), _BITS
        )


def _bits(k: int, total: int, l: int, other: int) -> int:
    """At least so many: of a number beside 1 fewer would leave nothing."""
    return 128 + max(total // (total - k), other // l).bit_length()


class GDP(SmallestParameterNotion):
    """Gaussian differential privacy."""

    name = "gdp"
    title = "GDP"
    parameters = ("mu",)
    quantity = "gdp"
    series_work = 20_000

    def measure(self, laws: Laws, budget: Values) -> Any:
        """The trade-off curve."""
        return TradeOffCurve((k, laws.p.total, l, laws.q.total) for k, l in laws.corners)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether every vertex lies above the curve of N(0, 1) against N(μ, 1)."""
        return bool(measurement.is_enough(budget["mu"]))

    def severity(self, measurement: Any, budget: Values) -> float:
        """The least μ."""
        return float(measurement.smallest_mu)

    def initial_requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """The hockey sticks at a few ε around μ²/2."""
        if budget["mu"] > _LARGEST:
            must("mu", f"at most {_LARGEST} in a program", f"{nearest_float(budget['mu']):g}")
        mu = float(budget["mu"])
        return tuple(_tangent(mu, mu * (mu / 2 + k)) for k in (-1, 0, 1, 2))

    def hockey_stick_grid(self, budget: Values) -> tuple[tuple[HockeyStick, HockeyStick], ...]:
        """The hockey sticks at ε = μ (μ/2 + z) >= 0 for z on a grid: those of ε < 0 are of the other order. Tangents of
        f that are h apart in z meet μ h²/8 below it, measured in μ, or less: those of μ/(1 + h²/8) meet above it."""
        mu = float(budget["mu"])
        places = np.concatenate([np.arange(-mu / 2, _THIN, _APART), np.arange(_THIN, *_TAIL)])
        at = [(mu * (mu / 2 + z), _APART if z < _THIN else _TAIL[1]) for z in places.tolist()]
        return tuple(
            (_tangent(mu, each), _tangent(mu / (1 + h * h / 8), each))
            for each, h in at
            if each < _STEEPEST
        )

    def gaussian_mu(self, budget: Values) -> Fraction:
        """μ itself."""
        return Fraction(budget["mu"])

    def find_cuts(self, p: Vector, q: Vector, budget: Values) -> Sequence[Requirement]:
        """The hockey sticks at the tangents of f at the vertices that lie furthest below it."""
        normal, mu = NormalDist(), float(budget["mu"])
        order = np.argsort(-np.log(np.maximum(p, 1e-300)) + np.log(np.maximum(q, 1e-300)))
        sticks = []
        for a, b in np.cumsum([p[order], q[order]], axis=1).T.tolist():
            if _SPECK < a < 1 - _SPECK and b < a:
                told = b > _SPECK * a
                z = normal.inv_cdf(b) if told else normal.inv_cdf(a) - mu
                excess = (a - told * normal.cdf(z + mu)) / min(a, 1 - b)
                epsilon = -mu * (z + mu / 2)
                if excess > _CUT and epsilon < _STEEPEST:
                    sticks.append((excess, epsilon))
        return tuple(_tangent(mu, epsilon) for _, epsilon in sorted(sticks, reverse=True)[:_MOST])
