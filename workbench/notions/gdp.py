"""Decide μ-Gaussian DP: the trade-off function T(P, Q) lies above f(α) = Φ(Φ^-1(1-α) - μ).

P and Q are the laws of the output for two neighbours, and Φ is the normal distribution function.
The definition is by Dong, Roth and Su 2022. T(P, Q)(α) is the smallest type II error β of a test of
P against Q with type I error α. For a finite law it is piecewise linear. Its vertices come from the
sets A = {P/Q >= r}, one for each ratio r, with 1 - α = P(A) and β = Q(A). f is convex, so a chord
between two points above f stays above f. So T >= f holds everywhere if, at every vertex,

    Φ^-1(P(A)) - Φ^-1(Q(A)) <= μ

This is decided by balls (intervals) of growing precision. T(P, Q) is jointly convex in (P, Q), so
the laws at the knots decide the claim for real inputs.
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

_MAX_BALL_BITS = 4096  # A claim that balls of this precision do not decide is not proven.
_MIN_BALL_BITS = 128  # The precision of the first ball around a vertex.
_FIRST_BALL_WORK = 1000  # Work for a ball at low precision, in units of `privacy.audit_work`.
_MAX_PROGRAM_MU = 20  # Programs refuse a larger μ, because their tangents have slopes e^(μ²/2).

# A vertex gets a tangent if its hockey stick exceeds the curve by this share of its mass.
_MIN_CUT_EXCESS = 1e-9
_MIN_SOLVER_PROBABILITY = 1e-10  # A solver cannot distinguish smaller probabilities from 0.
_MAX_TANGENT_EPSILON = 20  # Tangents are not used at a larger ε, because e^ε is a coefficient.
_MAX_CUTS = 4  # At most this many tangents are added at once.
_EPSILON_STEPS_PER_UNIT = 1 << 14  # The ε of tangents are multiples of 1 over this number.
_TANGENT_ROUNDING = 1e-14  # The hockey stick of a tangent is increased by this rounding error.

# The quantiles z of the tangents of the hockey stick grid: a fine grid, and a coarser one in the
# tail.
_FINE_STEP = 0.125
_TAIL_START = 3.0
_TAIL_END = 6.75
_TAIL_STEP = 0.25

Vertex = tuple[int, int, int, int]


def _gaussian_hockey_stick(mu: float, epsilon: float) -> HockeyStick:
    """Return the hockey stick of N(0, 1) against N(μ, 1) at ε, rounded up.

    It is Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) (Dong, Roth and Su 2022, Cor. 2.13). ε may be negative.
    It is first rounded to a multiple of 2^-14, because solvers cannot tell rows of closer hockey
    sticks apart.
    """
    rounded_epsilon = Fraction(round(epsilon * _EPSILON_STEPS_PER_UNIT), _EPSILON_STEPS_PER_UNIT)
    x = float(rounded_epsilon)
    # The complementary error function keeps all digits of both tails.
    first_tail = math.erfc((x / mu - mu / 2) / math.sqrt(2)) / 2
    second_tail = math.erfc((x / mu + mu / 2) / math.sqrt(2)) / 2
    delta = max(first_tail - math.exp(x) * second_tail, 0.0) + _TANGENT_ROUNDING
    return HockeyStick(rounded_epsilon, Fraction(min(1.0, delta)))


class TradeOffCurve:
    """Vertices of a trade-off curve, for the sets A of the outcomes with the largest ratios P/Q.

    A vertex (P(A), Q(A)) = (k/K, l/L) is stored as the integers (k, K, l, L). Only vertices with
    P(A) > Q(A) are kept, because the claim holds at all others. The fractions are not reduced,
    since reducing long integers would take most of the time of an audit.

    Args:
        vertices: The vertices as (k, K, l, L).
    """

    def __init__(self, vertices: Iterable[Vertex]) -> None:
        self.vertices = [
            (k, p_total, l, q_total)
            for k, p_total, l, q_total in vertices
            if k * q_total > l * p_total
        ]

    @property
    def is_unbounded(self) -> bool:
        """Return whether one law has an outcome that the other has not, so that no μ is enough."""
        return any(k == p_total or not l for k, p_total, l, _ in self.vertices)

    def mu_enclosure(self, vertex: Vertex, bits: int) -> Interval:
        """Return an interval of rationals around Φ^-1(k/K) - Φ^-1(l/L), the μ that a vertex needs.

        Args:
            vertex: A vertex with 0 < l/L < k/K < 1.
            bits: Working precision of the balls in bits.
        """
        from flint import arb, ctx

        # Φ^-1(x) is √2 erf^-1(2x - 1).
        with ctx.workprec(bits):
            k, p_total, l, q_total = map(arb, vertex)
            p_quantile = (2 * (k / p_total) - 1).erfinv()
            q_quantile = (2 * (l / q_total) - 1).erfinv()
            return ball_ends(arb(2).sqrt() * (p_quantile - q_quantile))

    @cached_property
    def smallest_mu(self) -> float:
        """Return the smallest μ for which the claim holds, rounded up, or inf if there is none."""
        if self.is_unbounded:
            return math.inf
        bounds = []
        for vertex in self.vertices:
            _, high = self.mu_enclosure(vertex, _first_bits(*vertex))
            bounds.append(round_up(high))
        return max(bounds, default=0.0)

    def is_enough(self, mu: Fraction) -> bool:
        """Decide whether all vertices lie above the curve of μ.

        Args:
            mu: Parameter μ >= 0 of Gaussian DP.

        Raises:
            NotProven: If 4096 bits, or the allowed work, do not decide it.
        """
        if self.is_unbounded:
            return False
        return all(self._is_enough_at(vertex, mu) for vertex in self.vertices)

    def _is_enough_at(self, vertex: Vertex, mu: Fraction) -> bool:
        """Decide whether one vertex lies above the curve of μ. Raises NotProven."""
        return decide_at_most(
            name="mu",
            budget=mu,
            enclosure=partial(self.mu_enclosure, vertex),
            limit=mu,
            work=_ball_work,
            bits=_first_bits(*vertex),
            max_bits=_MAX_BALL_BITS,
        )


def _ball_work(bits: int) -> int:
    """Return the work for a ball around the μ of a vertex, in units of `privacy.audit_work`."""
    # It grows as the square of the precision.
    return _FIRST_BALL_WORK + bits * bits // 200


def _first_bits(k: int, p_total: int, l: int, q_total: int) -> int:
    """Return the bits of the first ball around the vertex (k/p_total, l/q_total).

    They are enough to tell k/p_total from 1 and l/q_total from 0.
    """
    return _MIN_BALL_BITS + max(p_total // (p_total - k), q_total // l).bit_length()


class GDP(SmallestParameterNotion):
    """Gaussian differential privacy."""

    name = "gdp"
    title = "GDP"
    parameters = ("mu",)
    quantity = "gdp"
    series_work = 20_000

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Compute the trade-off curve.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Not used.
        """
        return TradeOffCurve((k, laws.p.total, l, laws.q.total) for k, l in laws.corners)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether every vertex lies above the curve of N(0, 1) against N(μ, 1).

        Args:
            measurement: Vertices of the comparison, a TradeOffCurve.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return bool(measurement.is_enough(budget["mu"]))

    def severity(self, measurement: Any, budget: Values) -> float:
        """Return the smallest μ.

        Args:
            measurement: Vertices of the comparison, a TradeOffCurve.
            budget: Not used.
        """
        return float(measurement.smallest_mu)

    def initial_requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the hockey sticks at a few ε around μ²/2.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Raises:
            InvalidRequest: If μ is too large for a program.
        """
        if budget["mu"] > _MAX_PROGRAM_MU:
            mu_text = f"{nearest_float(budget['mu']):g}"
            must("mu", f"at most {_MAX_PROGRAM_MU} in a program", mu_text)
        mu = float(budget["mu"])
        return tuple(_gaussian_hockey_stick(mu, mu * (mu / 2 + z)) for z in (-1, 0, 1, 2))

    def hockey_stick_grid(self, budget: Values) -> tuple[tuple[HockeyStick, HockeyStick], ...]:
        """Return the hockey sticks at ε = μ (μ/2 + z) >= 0 for z on a grid.

        Hockey sticks at ε < 0 belong to the other order of P and Q. Each one is paired with the
        hockey stick of μ/(1 + h²/8) at the same ε, where h is the step of the grid. Tangents of f
        at z and z + h intersect below f, on the curve of a parameter <= μ (1 + h²/8). So the
        tangents for μ/(1 + h²/8) intersect above f, and together they imply the budget.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        mu = float(budget["mu"])
        quantiles = np.concatenate(
            [
                np.arange(-mu / 2, _TAIL_START, _FINE_STEP),
                np.arange(_TAIL_START, _TAIL_END, _TAIL_STEP),
            ]
        )
        grid = []
        for z in quantiles.tolist():
            epsilon = mu * (mu / 2 + z)
            if epsilon < _MAX_TANGENT_EPSILON:
                step = _FINE_STEP if z < _TAIL_START else _TAIL_STEP
                tighter_mu = mu / (1 + step * step / 8)
                grid.append(
                    (
                        _gaussian_hockey_stick(mu, epsilon),
                        _gaussian_hockey_stick(tighter_mu, epsilon),
                    )
                )
        return tuple(grid)

    def gaussian_mu(self, budget: Values) -> Fraction:
        """Return μ itself.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return Fraction(budget["mu"])

    def find_cuts(self, p: Vector, q: Vector, budget: Values) -> Sequence[Requirement]:
        """Find the hockey sticks at the tangents of f at the vertices that lie furthest below it.

        Args:
            p: The masses of P, shape (m,).
            q: The masses of Q, shape (m,).
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Returns:
            At most `_MAX_CUTS` hockey sticks.
        """
        normal = NormalDist()
        mu = float(budget["mu"])
        # Outcomes are sorted by falling P/Q. A mass of 0 counts as 1e-300 in the logarithm.
        order = np.argsort(-np.log(np.maximum(p, 1e-300)) + np.log(np.maximum(q, 1e-300)))
        candidates = []
        # a and b are P(A) and Q(A) of the sets A of the outcomes with the largest ratios.
        for a, b in np.cumsum([p[order], q[order]], axis=1).T.tolist():
            is_inner = _MIN_SOLVER_PROBABILITY < a < 1 - _MIN_SOLVER_PROBABILITY
            if not is_inner or b >= a:
                continue
            if b > _MIN_SOLVER_PROBABILITY * a:
                z = normal.inv_cdf(b)
                gap = a - normal.cdf(z + mu)
            else:
                # Q(A) is about 0, so the tangent is the one at P(A). The curve of μ is exceeded by
                # all of P(A).
                z = normal.inv_cdf(a) - mu
                gap = a
            excess = gap / min(a, 1 - b)
            epsilon = -mu * (z + mu / 2)
            if excess > _MIN_CUT_EXCESS and epsilon < _MAX_TANGENT_EPSILON:
                candidates.append((excess, epsilon))
        worst_candidates = sorted(candidates, reverse=True)[:_MAX_CUTS]
        return tuple(_gaussian_hockey_stick(mu, epsilon) for _, epsilon in worst_candidates)
