"""Noise on the integers for many runs where neighbouring answers differ by up to D > 1.

Candidates: f(η) ~ exp(-s L(|η|)), L the log densities of the best noise found for D = 1, drawn out D times and linear
between, or those of published noise (`models.repeated_wide_noise`), s as large as the composition allows; and the
staircase at ε/T. Of the cheapest the composition is proven for every shift ±1..±D.

Bound: noise η for D, published D a + η for answers D a, and then rounded at random to one of the two multiples of D
around it, so that the mean is kept, is noise for answers a that differ by 1, symmetric where η is. Rounding is
post-processing. It keeps the mean of |η|/D, and adds at most ⌊D/2⌋⌈D/2⌉/D² to that of (η/D)². So the loss for D is at
least D, or D² less what rounding adds, times a bound for D = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from models.oracles.line_noise import POWERS
from models.repeated_wide_noise import RepeatedWideNoise, published_shapes
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import round_down
from workbench.families.noise.request import NoiseRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.privacy.composition import composed_delta
from workbench.privacy.repair import inverse_exponential, staircase

__all__ = ["lowered", "tailed", "widened", "within_budget"]

Vector = NDArray[np.float64]
Proven = tuple[AdditiveIntegerNoise, Fraction]

_BITS = 80  # of a mass
_TURNS = 12  # of shrinking


def lowered(bound: float, reach: int, power: int) -> float:
    """The bound for D from that for D = 1, rounded down. power: of the loss, 1 or 2."""
    whole = Fraction(bound) * reach**power - ((reach // 2) * ((reach + 1) // 2) if power == 2 else 0)
    return max(0.0, round_down(whole))


def widened(request: NoiseRequest, losses: Vector, stop: Callable[[], bool]) -> list[Proven]:
    """The candidates of the module's docstring, each with its proven δ of all runs.

    losses: of the noise for D = 1; stop: asked before each composition, whether the staircases will do.
    """
    reach: int = request.question.sensitivity
    least = inverse_exponential(request.epsilon / request.runs)
    pure = [_noise(request, staircase(least, reach, r)) for r in range(1, reach + 1)]
    candidates = [(law, Fraction(0)) for law in pure]  # the largest losses add up
    sums = np.concatenate([[0.0], np.cumsum(losses)])

    def drawn_out(eta: Vector) -> Vector:
        beyond = np.maximum(0.0, eta / reach - losses.size) * losses[-1]
        return np.asarray(np.interp(eta / reach, np.arange(sums.size), sums) + beyond)

    noises = [
        RepeatedWideNoise(request.runs, float(request.epsilon), float(request.delta), reach, shape)
        for shape in (drawn_out, *published_shapes(reach).values())
    ]
    means = [noise.mean(np.abs) if POWERS[request.loss_name] == 1 else noise.mean(np.square) for noise in noises]
    for k in np.argsort(means, kind="stable").tolist():
        best = within_budget(request, partial(_steep, request, noises[k]), noises[k].slope(noises[k].steepest), stop)
        if best is not None:
            return [*candidates, best]
    return candidates


def _steep(request: NoiseRequest, noise: RepeatedWideNoise, share: float) -> AdditiveIntegerNoise:
    """The law at a share of the largest steepness."""
    exponents = noise.exponents(share * noise.steepest)
    loss = float(exponents[-1] - exponents[-1 - request.question.sensitivity])
    return tailed(request, np.exp(-exponents), loss)


def within_budget(
    request: NoiseRequest, law: Callable[[float], AdditiveIntegerNoise], slope: float, stop: Callable[[], bool]
) -> Proven | None:
    """The first law of falling steepness, from 1 on, whose composition is proven to be within δ, and its δ of all runs.

    slope: about how fast log δ falls with the log of the steepness.
    """
    steepness = 1.0
    for turn in range(_TURNS):
        if stop():
            break
        noise = law(steepness)
        reached = composed_delta(noise, request.runs, request.epsilon, request.delta)
        if reached <= request.delta:
            return noise, reached
        excess = math.log(reached / request.delta)
        steepness *= 1 - min(0.05, (1.02 + turn) * excess / max(1.0, slope) + 1e-9)
    return None


def tailed(request: NoiseRequest, masses: Vector, loss: float) -> AdditiveIntegerNoise:
    """Noise of rational masses of |η| = 0, 1, ..., geometric from the last of them on: by a loss, every D values."""
    side = [max(1, round(mass * 2.0**_BITS)) for mass in masses.tolist()]
    ratio = Fraction(math.floor(math.exp(-loss) * 2**40), 2**40)
    return _noise(request, IntegerLaw(1 - len(side), [*side[:0:-1], *side], request.question.sensitivity, ratio))


def _noise(request: NoiseRequest, law: IntegerLaw) -> AdditiveIntegerNoise:
    question = request.question
    assert isinstance(question, IntegerNoise)
    return AdditiveIntegerNoise(question, law)
