"""Integer noise on the labels low..high, clipped to them, exactly: clamped noise of the workbench, and one channel."""

from __future__ import annotations

from fractions import Fraction

from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.oracles.line_noise import staircase_integers
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise


def lattice_noise(kind: str, low: int, high: int, epsilon: float) -> AdditiveIntegerNoise | Channel:
    """Integer noise on the labels low..high, clipped to them: a mechanism with exact laws, all labels neighbours.

    With D = high - low: discrete Laplace (Def. 22), α just above e^(-ε/D); the discrete staircase (Def. 24), whose
    inner step is the best for the squared loss unclipped; exponential (App. F), Pr[o|y] ∝ β^|o-y| on low..high, β just
    above e^(-ε/2D)."""
    width, budget = high - low, Fraction(epsilon)
    if kind == "exponential":
        ratio = bound_inverse_exponential(budget / (2 * width))
        weights = [ratio.numerator**i * ratio.denominator ** (width - i) for i in range(width + 1)]
        rows = [[weights[abs(i - j)] for j in range(width + 1)] for i in range(width + 1)]
        return Channel(tuple(map(Distribution, rows)))
    if kind == "laplace":
        law = IntegerLaw(0, [1], 1, bound_inverse_exponential(budget / width))
    else:
        ratio = bound_inverse_exponential(budget)
        law = build_staircase_law(ratio, width, staircase_integers(ratio, width, "squared")[1])
    return AdditiveIntegerNoise(IntegerNoise(width, (low, high)), law)
