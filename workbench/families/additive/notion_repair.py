"""The repair of noise under notions of several convex bounds: a solver's law, mixed with one of a tighter budget.

The exact audit decides; the share of the tighter law is about the least at which it accepts the mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from workbench.errors import Infeasible, NotCertified, NotProven
from workbench.exact.integer_law import IntegerLaw
from workbench.families.additive.notion_programs import BITS, LineNoise, NotionPrograms
from workbench.families.additive.unclamped import private_unclamped
from workbench.privacy.claim import Claim

__all__ = ["accepted", "repaired"]

Vector = NDArray[np.float64]

_LESS = (0, Fraction(1, 50_000), Fraction(1, 1000), Fraction(1, 50))  # of a budget, without which a law is tried
_POWERS = range(40, -1, -3)


def repaired(programs: NotionPrograms, claim: Claim, size: int, ratio: Fraction, units: Vector) -> LineNoise:
    """The solver's law, mixed with one of a tighter budget where the exact audit does not accept it. Raises
    NotCertified."""
    make, raw = programs.line.make, None
    for less in _LESS:
        try:
            law = programs.law(_tighter(claim, less) if less else claim, size, ratio, units)
        except (NotProven, Infeasible):  # out of digits
            continue
        if not programs.request.certified or accepted(make(law), claim):
            return make(law) if raw is None else _least_share(make, claim, raw, law)
        raw = raw or law
    raise NotCertified("The solver's law could not be repaired.")


def _least_share(
    make: Callable[[IntegerLaw], LineNoise], claim: Claim, raw: IntegerLaw, inner: IntegerLaw
) -> LineNoise:
    """A law that is not private, mixed with about the least share of one that is with which it is."""
    best, high = make(inner), Fraction(1)
    for power in _POWERS:
        candidate = make(_mixed(raw, inner, Fraction(1, 1 << power)))
        if accepted(candidate, claim):
            best, high = candidate, Fraction(1, 1 << power)
            break
    low = high / 8
    for _ in range(4):
        middle = (low + high) / 2
        candidate = make(_mixed(raw, inner, middle))
        if accepted(candidate, claim):
            best, high = candidate, middle
        else:
            low = middle
    return best


def accepted(mechanism: LineNoise, claim: Claim) -> bool:
    """Whether the exact audit proves the claim."""
    try:
        return private_unclamped(mechanism, claim)
    except NotProven:  # as good as refused: a law a little further away can be proven
        return False


def _mixed(law: IntegerLaw, other: IntegerLaw, share: Fraction) -> IntegerLaw:
    """(1 - share) of one law and share of another of the same shape."""
    first, second = (1 - share) / law.total, share / other.total
    weights = [a * first + b * second for a, b in zip(law.weights, other.weights, strict=True)]
    short = [max(1, round(weight * (1 << BITS))) for weight in weights]
    return IntegerLaw(law.first, short, law.period, law.ratio)


def _tighter(claim: Claim, less: Fraction | int) -> Claim:
    """The claim without a share of its budget: of hockey sticks, of every δ, and a little of ε where δ is 0."""
    sticks = [(stick.epsilon, stick.delta) for stick in claim.requirements(())]
    if sticks:
        return Claim("curve", curve=tuple((e if d else e * (1 - less / 50), d * (1 - less)) for e, d in sticks))
    first = claim.notion.parameters[0]
    return Claim(claim.notion, **{**claim.values, first: claim.values[first] * (1 - less)})
