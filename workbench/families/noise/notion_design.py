"""Noise on the integers or the reals under notions of several convex bounds: Rényi DP, zCDP, GDP, DP curves.

    lower side   a relaxation for noise on all integers, solved by cones; its bound from tangents, in exact arithmetic
    upper side   a law with geometric tails, solved by cones, then mixed with a law of a tighter budget, by the least
                 share at which the exact audit accepts it: that, and nothing a solver says, is the claim

(`notion_programs` and `repair` beside this.) On the reals the programs are those of a grid of steps Δ/k, as in
`models.real_noise`, without an atom: a point mass has no mass to face when it moves, so no such notion allows one.
A curve whose δ are all positive needs no tails and no cones: `workbench.families.noise.solve` has it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from models.line_notions import LineNotionModel
from models.oracles import line_noise
from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.families.noise.notion_programs import BITS, Line, LineNoise, NotionPrograms
from workbench.families.noise.repair import accepted, repaired_by_notion
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise, RealNoise
from workbench.privacy.claim import Claim
from workbench.privacy.notions.laws import Laws

if TYPE_CHECKING:
    from workbench.families.noise.request import NoiseRequest

__all__ = ["Bracketed", "bracket_notion", "pure_within"]

Vector = NDArray[np.float64]

_TAIL = 12.0  # losses of geometric noise after which a first program ends
_SEEN, _FAINT = 1e-5, 1e-8  # masses that a solver without units knows; the smallest unit
_TURNS = 3
_OUTCOMES = 6000  # times shifts, of a program
_STEPS, _FEW = 32, 400  # cells of a sensitivity, and outcomes times shifts, up to which a grid of the reals is refined
_STEEP = Fraction(999, 1000)  # of an ε without δ, for the tails
_WIDEST = 6.0  # ε of a budget


@dataclass(frozen=True)
class Bracketed:
    """mechanism: meets the claim where it was repaired; bound: proven; work: in words."""

    mechanism: LineNoise
    bound: Fraction
    work: dict[str, Any]


def pure_within(claim: Claim) -> Fraction:
    """About the largest ε whose pure DP implies a claim, from below: that of randomized response, on which every notion
    that survives post-processing is decided for all pairs of a pure ratio. Raises InvalidRequest where it is tiny."""
    values = claim.at(())

    def enough(epsilon: float) -> bool:
        heavy = max(1, round(math.exp(epsilon) * (1 << 40)))
        laws = Laws(Distribution([heavy, 1 << 40]), Distribution([1 << 40, heavy]))
        try:
            return claim.notion.meets(claim.notion.measure(laws, values), values)
        except NotProven:
            return False

    low, high = 0.0, 1e-4
    while high < 40 and enough(high):
        low, high = high, 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    if low > _WIDEST:
        InvalidRequest.must("the budget", f"missed by randomized response at epsilon = {_WIDEST:g}", "a larger one")
    if low < 1e-4:
        InvalidRequest.must("the budget", "met by randomized response at epsilon = 1e-4", "a smaller one")
    return Fraction(low)


def bracket_notion(request: NoiseRequest, exact_loss: Callable[[LineNoise], Fraction], begin: float) -> Bracketed:
    """The best noise found and a bound on all noise. Raises InvalidRequest, NotCertified, NotProven."""
    limit = request.options.time_limit
    stop = None if limit is None else begin + limit
    question = request.question
    if isinstance(question, IntegerNoise):
        loss = request.line_loss
        line = Line(
            question.sensitivity, loss.at, loss.at, loss.even, Fraction(0), partial(AdditiveIntegerNoise, question)
        )
        return _bracket(request, line, exact_loss, stop)
    assert isinstance(question, RealNoise)
    best: Bracketed | None = None
    steps = request.steps or 1
    epsilon = float(pure_within(request.claim))
    while True:
        bracket = _bracket(request, _cells(question, steps, request.loss_name), exact_loss, stop)
        if best is not None:
            better = min(best, bracket, key=lambda candidate: exact_loss(candidate.mechanism))
            bracket = Bracketed(better.mechanism, max(best.bound, bracket.bound), bracket.work)
        best = bracket
        value = exact_loss(best.mechanism)
        late = stop is not None and time.perf_counter() > stop
        steps *= 2
        large = steps > _STEPS or 2 * steps * steps * (_TAIL / epsilon + 1) > _FEW
        if request.steps or late or large or value - best.bound <= Fraction(request.target) * value:
            return best


def _cells(question: RealNoise, steps: int, name: str) -> Line:
    """The question on a grid of β = Δ/k (`models.real_noise` has the proofs)."""
    power, beta = line_noise.POWERS[name], question.sensitivity / steps

    def cell(j: int) -> Fraction:
        if power == 1:
            return Fraction(beta * (abs(j) or Fraction(1, 4)))
        return Fraction(beta**2 * (j * j + Fraction(1, 12)))

    off = Fraction(0) if power == 1 else beta**2 / 4

    def make(law: IntegerLaw) -> AdditiveRealNoise:
        return AdditiveRealNoise(question, steps, law)

    return Line(steps, cell, lambda j: Fraction(abs(beta * j) ** power), True, off, make)


def _bracket(
    request: NoiseRequest, line: Line, exact_loss: Callable[[LineNoise], Fraction], stop: float | None
) -> Bracketed:
    d, claim = line.reach, request.claim
    epsilon = float(pure_within(claim))
    size = d * math.ceil(_TAIL / epsilon) + 2 * d
    _check_size(d, size)
    programs = NotionPrograms(request, line)
    decay = np.maximum(np.exp(-epsilon * np.arange(size + d + 1) / d), _FAINT)
    model, x, bound = programs.below(size, decay)
    shape = _Shape(model, x)
    best: LineNoise | None = None
    faint, close = 1e-6, False
    for turn in range(_TURNS):
        size = shape.reach(line.loss, float(model.losses @ x), faint, 3 * size)
        _check_size(d, size)
        units = shape.at(np.arange(size + d + 1))
        try:
            model, x, proven = programs.below(size, units)
            bound = max(bound, proven)
            mechanism = repaired_by_notion(
                programs, claim, size, _ratio(claim, float(units[size] / units[size - d])), units
            )
        except (NotProven, NotCertified):  # out of digits: shorter or longer noise may do
            shape, faint = _Shape(model, x), faint * 30 if best is None else faint / 30
            if best is None and turn == _TURNS - 1:
                raise
            continue
        if best is None or exact_loss(mechanism) < exact_loss(best):
            best = mechanism
        value = exact_loss(best)
        close = value - (bound - line.off) <= Fraction(request.target / 10) * value
        if close or (stop is not None and time.perf_counter() > stop):
            break
        shape, faint = _Shape(model, x), faint / 30
    if not close and line.off == 0 and request.certified:
        known = _discrete_gaussian(claim, d)
        if known is not None and accepted(line.make(known), claim):
            best = min(best, line.make(known), key=exact_loss) if best is not None else line.make(known)
    assert best is not None
    work = {
        "solver": programs.solver,
        "version": programs.version,
        "rounds": programs.count,
        "reach": size,
        "turns": turn + 1,
    }
    if isinstance(best, AdditiveRealNoise):
        work["steps"] = d
    return Bracketed(best, bound - line.off, work)


def _ratio(claim: Claim, near: float) -> Fraction:
    """The ratio of the tails, no steeper than an ε without δ allows."""
    sticks = claim.requirements(())
    most = min((float(stick.epsilon * _STEEP) for stick in sticks if not stick.delta), default=math.inf)
    return Fraction(math.ceil((1 << 20) * min(0.98, max(0.008, near, math.exp(-most)))), 1 << 20)


def _check_size(reach: int, size: int) -> None:
    if reach * (2 * size + 1) > _OUTCOMES:
        fits = math.isqrt(_OUTCOMES * reach // (2 * size + reach))
        InvalidRequest.must(
            "sensitivity", f"at most about {fits} at this budget, where a program compares {_OUTCOMES} masses", reach
        )


def _discrete_gaussian(claim: Claim, reach: int) -> IntegerLaw | None:
    """Discrete Gaussian noise of a variance a little more than the budget needs, with geometric tails; None where that
    is not known."""
    least = claim.notion.gaussian_variance(claim.values)
    if least is None:
        return None
    variance = reach * reach * float(least) * (1 + 4e-6)
    size = math.ceil(7 * math.sqrt(variance)) + 2 * reach
    weights = [max(1, round(math.exp(-k * k / (2 * variance)) * 2.0**BITS)) for k in range(-size, size + 1)]
    steepest = math.exp((size - reach) ** 2 / (2 * variance) - size**2 / (2 * variance))
    return IntegerLaw(-size, weights, reach, _ratio(claim, steepest))


class _Shape:
    """About how large masses are: as found where a solver sees them, and beyond with losses that keep growing."""

    def __init__(self, model: LineNotionModel, x: Vector) -> None:
        d, last = model.sensitivity, model.last
        masses = model.masses(x)
        side = np.maximum(masses[last:], masses[last::-1])
        around = np.array([side[max(0, k - d + 1) : k + d].max() for k in range(side.size)])
        seen = min(side.size, max(2 * d + 1, int((around > _SEEN * around.max()).sum())))
        self.known = np.maximum(around[:seen], _SEEN * around.max() / 10)
        logs = np.log(self.known)
        self.loss = max(1e-3, float(logs[-1 - d] - logs[-1]))
        before = float(logs[-1 - 2 * d] - logs[-1 - d]) if seen > 2 * d else self.loss
        self.more, self.d = max(0.0, self.loss - before), d

    def at(self, distance: NDArray[np.int64]) -> Vector:
        """At |η|. (n,)"""
        last = self.known.size - 1
        steps = np.maximum(0, distance - last) / self.d
        beyond = np.exp(-steps * (self.loss + self.more * (steps + 1) / 2))
        return np.asarray(np.maximum(self.known[np.minimum(distance, last)] * beyond, _FAINT))

    def reach(self, loss: Callable[[int], Fraction], value: float, faint: float, most: int) -> int:
        """Where what is left out costs about a share `faint` of the whole."""
        for size in range(2 * self.d, most):
            mass = float(self.at(np.array([size]))[0])
            if mass <= _FAINT or mass * float(loss(size)) <= faint * value:
                return size
        return most
