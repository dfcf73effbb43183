"""Numbers and outcomes in the sentences of a verdict."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from workbench.exact.numbers import ExpNumber, exact
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.notion import Names

__all__ = ["apart", "decimal", "exceeding", "telling_outcome"]


def decimal(value: Fraction) -> str:
    """A rational in at most 17 digits."""
    return f"{float(value):.17g}" if exact(f"{float(value):.6g}", "value") != value else f"{float(value):.6g}"


def apart(value: Fraction, budget: Fraction) -> str:
    """A δ rounded up to 6 digits, or to as many as show how far on which side of the asked one it lies."""
    text = ""
    for digits in (6, 9, 12, 17):
        up = Context(prec=digits, rounding=ROUND_CEILING)
        text = f"{up.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(up):g}"
        if value == budget or 10 * (Fraction(text) - value) <= abs(value - budget):
            return text
    side = "above" if value > budget else "below"
    return f"{text} ({float(abs(value - budget)):.2g} {side} the one asked)"


def telling_outcome(laws: Laws, epsilon: Fraction) -> int:
    """An outcome with P > e^ε Q to show: a rounding accident if there is one, else the heaviest."""
    broken = np.flatnonzero(laws.violations(epsilon))
    p, q = laws.p.floats[broken], laws.q.floats[broken]
    with np.errstate(all="ignore"):  # only a choice of example: floats will do, and may underflow
        spare = 1 - math.exp(min(float(epsilon), 700.0)) * q / p
    spare = np.abs(np.where(np.isfinite(spare), spare, 1.0))
    return int(broken[np.argmin(spare) if spare.min() < 1e-6 else np.argmax(p)])


def exceeding(laws: Laws, outcome: int, epsilon: Fraction, names: Names) -> str:
    """By how much an outcome's mass in P exceeds e^ε times that in Q."""
    high, low = names(outcome)
    gap = ExpNumber.of(laws.p[outcome], laws.q[outcome], epsilon).upper
    if laws.q[outcome] == 0:
        return f"{high} is {gap:.2g} where {low} is 0"
    return f"{high} exceeds e^epsilon {low} by {gap:.2g}"
