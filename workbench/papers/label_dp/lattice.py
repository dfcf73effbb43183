"""Integer noise on the labels low..high, clipped to them, exactly: clamped noise of the workbench, and one channel."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.privacy.repair import inverse_exponential, staircase


def best_stairs(width: int, epsilon: float) -> int:
    """The r in 1..width that minimises E η² = 2 a Σ_j c^j Σ_{0 <= i < D} (i + jD)² (1 if i < r else c), unclipped."""
    c, r, i = math.exp(-epsilon), np.arange(1, width + 1), np.arange(width, dtype=float)
    s0, s1, s2 = 1 / (1 - c), c / (1 - c) ** 2, c * (1 + c) / (1 - c) ** 3  # Σ c^j, Σ j c^j, Σ j² c^j
    reach = np.cumsum(i * i * s0 + 2 * i * width * s1 + width**2 * s2)
    a = (1 - c) / (2 * r + 2 * c * (width - r) - (1 - c))
    return int(np.argmin(a * (reach + c * (reach[-1] - reach)))) + 1


def lattice_noise(kind: str, low: int, high: int, epsilon: float) -> AdditiveIntegerNoise | Channel:
    """Integer noise on the labels low..high, clipped to them: a mechanism with exact laws, all labels neighbours.

    With D = high - low: discrete Laplace (Def. 22), α just above e^(-ε/D); the discrete staircase (Def. 24), whose
    inner step is the best for the squared loss unclipped; exponential (App. F), Pr[o|y] ∝ β^|o-y| on low..high, β just
    above e^(-ε/2D)."""
    width, budget = high - low, Fraction(epsilon)
    if kind == "exponential":
        ratio = inverse_exponential(budget / (2 * width))
        weights = [ratio.numerator**i * ratio.denominator ** (width - i) for i in range(width + 1)]
        rows = [[weights[abs(i - j)] for j in range(width + 1)] for i in range(width + 1)]
        return Channel(tuple(map(Distribution, rows)))
    if kind == "laplace":
        law = IntegerLaw(0, [1], 1, inverse_exponential(budget / width))
    else:
        law = staircase(inverse_exponential(budget), width, best_stairs(width, epsilon))
    return AdditiveIntegerNoise(IntegerNoise(width, (low, high)), law)
