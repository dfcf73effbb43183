"""Make the integer noise mechanisms of Ghazi et al., Regression with Label DP, with exact laws.

A law is exact if its masses are integers with a common total. Definition and appendix numbers are
the paper's.
"""

from __future__ import annotations

from fractions import Fraction

from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.oracles.line_noise import staircase_integers
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise


def make_lattice_noise(
    kind: str, low: int, high: int, epsilon: float
) -> AdditiveIntegerNoise | Channel:
    """Return integer noise on the labels low..high as a mechanism with exact laws.

    All labels are neighbours. With D = high - low, y the label and o the output, the kinds are:

    laplace       discrete Laplace noise (Def. 22), with α just above e^(-ε/D)
    staircase     the discrete staircase (Def. 24), with the inner step that minimises the squared
                  loss without clipping
    exponential   App. F: Pr[o|y] ∝ β^|o-y| on low..high, with β just above e^(-ε/2D)

    Args:
        kind: "laplace", "staircase" or "exponential".
        low: The smallest label.
        high: The largest label.
        epsilon: The ε of pure DP, > 0.

    Returns:
        Noise that is clamped into low..high, or for "exponential" a channel with one row and one
        column for each label.
    """
    width = high - low
    budget = Fraction(epsilon)
    if kind == "exponential":
        ratio = bound_inverse_exponential(budget / (2 * width))
        weights = [ratio.numerator**i * ratio.denominator ** (width - i) for i in range(width + 1)]
        rows = [[weights[abs(i - j)] for j in range(width + 1)] for i in range(width + 1)]
        return Channel(tuple(map(Distribution, rows)))
    if kind == "laplace":
        law = IntegerLaw(0, [1], ratio=bound_inverse_exponential(budget / width))
    else:
        ratio = bound_inverse_exponential(budget)
        _, inner_step = staircase_integers(ratio, width, "squared")
        law = build_staircase_law(ratio, width, inner_step)
    return AdditiveIntegerNoise(IntegerNoise(width, (low, high)), law)
