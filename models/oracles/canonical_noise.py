"""Compute the smallest mean loss of integer noise for a trade-off function, at sensitivity D = 1.

The trade-off curve T(P, Q) of two laws is the smallest type II error of a test between them as a
function of its type I error α. A notion of privacy requires that T(η, η + 1), for the noise η and
the shifted noise, is at least a trade-off function f. The functions compute the smallest mean loss
of such noise, which canonical noise attains. The sources are Awan and Vadhan 2023 and Awan and
Ramasethu 2023.

Notation. c is the fixed point of f, (ε_i, δ_i) are budgets of DP, μ is the budget of Gaussian DP,
and Φ the normal distribution function.

For a symmetric trade-off function f with f(c) = c, the law with Pr[η > 0] = c and

    Pr[η > k] = f(1 - Pr[η > k - 1]),   k = 1, 2, ...,     symmetric about 0,

satisfies T(η, η + 1) >= f. Among all such noise on the integers, |η| is stochastically smallest:
the mean of every loss that is even and does not fall as |η| grows is minimal (arXiv 2308.08343).

    trade-off function                               its noise
    max_i(0, 1 - δ_i - e^ε_i α, e^-ε_i (1 - δ_i - α))    of (ε_i, δ_i) at once; δ = 0: the
                                                         geometric mechanism
    Φ(Φ^-1(1 - α) - μ)                               N(0, 1/μ²), rounded to the nearest integer

    discrete_gaussian_loss: E η² of exp(-η²/2σ²), which is D²/2σ²-zCDP
                            (Canonne, Kamath and Steinke 2020)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

from workbench.solvers.search import bisect

_MIN_TAIL = 1e-18  # Sums over tails end at a smaller tail.
_MAX_TERMS = 1_000_000  # Sums over tails have at most this many terms.
_GAUSSIAN_EXPONENT = 45  # Discrete Gaussian masses below e^-45 are left out.


def canonical_loss(points: Sequence[tuple[float, float]], loss: Callable[[int], float]) -> float:
    """Compute the mean loss of canonical noise that satisfies several budgets (ε, δ) at once.

    Args:
        points: pairs (ε, δ) of budgets. At least one δ is below 1.
        loss: even function of the integer η that does not fall as |η| grows.
    """

    def next_tail(tail: float) -> float:
        """Return f(1 - tail), in a form in which a small tail keeps its digits."""
        lines = [0.0]  # f is the largest of these lines.
        for epsilon, delta in points:
            lines.append(math.exp(-epsilon) * (tail - delta))
            lines.append(1 - delta - math.exp(epsilon) * (1 - tail))
        return max(lines)

    # The first tail is the fixed point f(c) = c. It is unique, since f falls.
    tail, _ = bisect(is_above=lambda c: next_tail(1 - c) <= c, low=0.0, high=0.5)
    # The mean of an even loss is loss(0) + Σ_k Pr[|η| > k] (loss(k + 1) - loss(k)).
    mean_loss = loss(0)
    for k in range(_MAX_TERMS):
        mean_loss += 2 * tail * (loss(k + 1) - loss(k))
        tail = next_tail(tail)
        if tail < _MIN_TAIL:
            break
    return mean_loss


def rounded_gaussian_loss(mu: float, loss: Callable[[int], float]) -> float:
    """Compute the mean loss of rounded N(0, 1/μ²), for which Pr[|η| > k] = 2 Φ(-μ (k + ½)).

    Args:
        mu: budget μ > 0 of Gaussian DP.
        loss: even function of η that does not fall as |η| grows.
    """
    normal = NormalDist()
    mean_loss = loss(0)
    for k in range(_MAX_TERMS):
        tail = 2 * normal.cdf(-mu * (k + 0.5))
        mean_loss += tail * (loss(k + 1) - loss(k))
        if tail < _MIN_TAIL:
            break
    return mean_loss


def discrete_gaussian_loss(variance: float, loss: Callable[[int], float]) -> float:
    """Compute the mean loss of the discrete Gaussian Pr[η] ~ exp(-η²/2σ²).

    Args:
        variance: parameter σ² > 0. The variance of the noise is slightly smaller.
        loss: even function of η.
    """
    end = math.ceil(math.sqrt(2 * variance * _GAUSSIAN_EXPONENT)) + 1
    weights = [math.exp(-k * k / (2 * variance)) for k in range(end)]
    total = 2 * sum(weights) - 1  # The weight of 0, which is 1, counts once.
    side_sum = sum(w * loss(k) for k, w in enumerate(weights) if k)
    return (weights[0] * loss(0) + 2 * side_sum) / total
