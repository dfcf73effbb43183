"""Noise on the integers for many runs where neighbouring answers differ by up to D > 1.

Candidates: a law of sensitivity 1 drawn out D times, f(η) ~ exp(-L(|η|/D)), with L linear between the log densities of
the best noise found for D = 1, or quadratic (the discrete Gaussian), L as steep as the composition allows; and the
staircase at ε/T. Of each the composition is proven for every shift ±1..±D.

Bound: noise η for D, published D a + η for answers D a, and then rounded at random to one of the two multiples of D
around it, so that the mean is kept, is noise for answers a that differ by 1, symmetric where η is. Rounding is
post-processing. It keeps the mean of |η|/D, and adds at most ⌊D/2⌋⌈D/2⌉/D² to that of (η/D)². So the cost for D is at
least D, or D² less what rounding adds, times a bound for D = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotCertified
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import round_down
from workbench.families.additive.request import AdditiveRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.privacy.composition import composed_delta
from workbench.privacy.repair_line import inverse_exponential, staircase

__all__ = ["lowered", "widened"]

Vector = NDArray[np.float64]
Proven = tuple[AdditiveIntegerNoise, Fraction]

_BITS = 80  # of a mass
_LAST = 45.0  # loss in all at which a quadratic law goes on geometrically
_HALVINGS, _SPAN = 12, 1.5  # of the steepness; its factors to begin with
_POINTS = 1 << 12  # of grids of losses


def lowered(bound: float, reach: int, power: int) -> float:
    """The bound for D from that for D = 1, rounded down. power: of the cost, 1 or 2."""
    whole = Fraction(bound) * reach**power - ((reach // 2) * ((reach + 1) // 2) if power == 2 else 0)
    return max(0.0, round_down(whole))


def widened(request: AdditiveRequest, losses: Vector) -> list[Proven]:
    """The candidates of the module's docstring, each with its proven δ of all runs. losses: of the noise for D = 1.

    Raises NotCertified where none is proven.
    """
    share = request.epsilon / request.runs
    reach: int = request.question.sensitivity
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    scale = float(sums[-1]) / losses.size
    wide = math.ceil(2 * _LAST / max(scale, 1e-3))
    deviation = math.sqrt(2 * request.runs * math.log(1 / float(request.delta))) / float(request.epsilon)

    def drawn(steepness: float) -> AdditiveIntegerNoise:
        return _law(request, steepness * sums)

    def gaussian(steepness: float) -> AdditiveIntegerNoise:
        sigma = deviation / math.sqrt(steepness)
        end = min(math.ceil(sigma * math.sqrt(2 * _LAST)) + 1, wide * 4)
        return _law(request, np.arange(end + 1) ** 2 / (2 * sigma**2))

    pure = [
        AdditiveIntegerNoise(request.question, staircase(inverse_exponential(share), reach, r))  # type: ignore[arg-type]
        for r in range(1, reach + 1)
    ]
    candidates = [(law, Fraction(0)) for law in pure]  # the largest losses add up
    for shape in (drawn, gaussian):
        best = _steepest(request, shape)
        if best is not None:
            candidates.append(best)
    if len(candidates) == len(pure):
        raise NotCertified("No noise drawn out from sensitivity 1 was proven to compose to the budget.")
    return candidates


def _law(request: AdditiveRequest, sums: Vector) -> AdditiveIntegerNoise:
    """f(η) ~ exp(-L(|η|/D)), L linear between its values at 0, 1, 2, ..., geometric from the last one on."""
    reach: int = request.question.sensitivity
    last = (sums.size - 1) * reach
    logs = np.interp(np.arange(last + 1) / reach, np.arange(sums.size), sums)
    side = [max(1, round(mass * 2.0**_BITS)) for mass in np.exp(-logs).tolist()]
    ratio = Fraction(math.floor(math.exp(-float(sums[-1] - sums[-2])) * 2**40), 2**40)
    law = IntegerLaw(-last, [*side[:0:-1], *side], reach, ratio)
    return AdditiveIntegerNoise(request.question, law)  # type: ignore[arg-type]


def _steepest(request: AdditiveRequest, shape: Callable[[float], AdditiveIntegerNoise]) -> Proven | None:
    """About the steepest law of a shape whose composition is proven to be within δ, and its δ."""

    def proven(steepness: float) -> Proven | None:
        law = shape(steepness)
        reached = composed_delta(law, request.runs, request.epsilon, request.delta, points=_POINTS)
        return (law, reached) if reached <= request.delta else None

    low, high, best = 1 / _SPAN, _SPAN, None
    for _ in range(_HALVINGS):
        best = proven(low)
        if best is not None:
            break
        low, high = low / _SPAN, low
    for _ in range(_HALVINGS if best is not None else 0):
        middle = math.sqrt(low * high)
        steeper = proven(middle)
        low, high, best = (low, middle, best) if steeper is None else (middle, high, steeper)
    return best
