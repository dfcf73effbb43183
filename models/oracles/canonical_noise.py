"""Canonical noise on the integers for a trade-off function, D = 1 (Awan and Vadhan 2023; Awan and Ramasethu 2023).

For a symmetric trade-off function f with f(c) = c, the law with Pr[η > 0] = c and

    Pr[η > k] = f(1 - Pr[η > k - 1]),   k = 1, 2, ...,     symmetric about 0,

satisfies T(η, η + 1) >= f, and |η| is stochastically smallest among all noise on the integers that does: it has the
least mean of every loss that is even and does not fall as |η| grows (arXiv 2308.08343).

    trade-off function                               its noise
    max_i(0, 1 - δ_i - e^ε_i α, e^-ε_i (1 - δ_i - α))    of (ε_i, δ_i) at once; δ = 0: the geometric mechanism
    Φ(Φ^-1(1 - α) - μ)                               N(0, 1/μ²), rounded to the nearest integer

    discrete_gaussian: E η² of exp(-η²/2σ²), which is D²/2σ²-zCDP (Canonne, Kamath and Steinke 2020)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

from workbench.solvers.search import bisect

_END, _MOST = 1e-18, 1_000_000


def canonical_loss(points: Sequence[tuple[float, float]], loss: Callable[[int], float]) -> float:
    """The mean loss of canonical noise for budgets (ε, δ) at once, some δ < 1.

    loss: even, not falling as |η| grows.
    """

    def following(tail: float) -> float:
        """f(1 - x) of the tail x: a small one keeps its digits."""
        return max(
            0.0,
            *(max(math.exp(-e) * (tail - d), 1 - d - math.exp(e) * (1 - tail)) for e, d in points),
        )

    tail, _ = bisect(lambda c: following(1 - c) <= c, 0.0, 0.5)  # f(c) = c: f falls
    value = loss(0)
    for k in range(_MOST):
        value += 2 * tail * (loss(k + 1) - loss(k))
        tail = following(tail)
        if tail < _END:
            break
    return value


def rounded_gaussian_loss(mu: float, loss: Callable[[int], float]) -> float:
    """The mean loss of N(0, 1/μ²), rounded: Pr[|η| > k] = 2 Φ(-μ (k + ½))."""
    normal, value = NormalDist(), loss(0)
    for k in range(_MOST):
        tail = 2 * normal.cdf(-mu * (k + 0.5))
        value += tail * (loss(k + 1) - loss(k))
        if tail < _END:
            break
    return value


def discrete_gaussian_loss(variance: float, loss: Callable[[int], float]) -> float:
    """The mean loss of Pr[η] ~ exp(-η²/2σ²); variance: the parameter σ²."""
    end = math.ceil(math.sqrt(2 * variance * 45)) + 1
    weights = [math.exp(-k * k / (2 * variance)) for k in range(end)]
    total = 2 * sum(weights) - 1
    return (weights[0] * loss(0) + 2 * sum(w * loss(k) for k, w in enumerate(weights) if k)) / total
