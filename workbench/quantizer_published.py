"""The published RQM at its best: its outermost output and its selection probability q, chosen for a budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from workbench.mechanisms.density import Density
from workbench.mechanisms.quantizer import Quantizer
from workbench.mechanisms.two_bin import equal_bins, randomized_response, rqm
from workbench.numbers import Real, positive
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["best_rqm", "largest_q"]


def largest_q(bins: Any, epsilon: Real, *, digits: int = 3) -> Quantizer | None:
    """RQM with the largest q, to so many digits, that is exactly ε-private on these bins; None when there is none."""
    unit, low, high = Fraction(1, 10**digits), 0, 10**digits
    best = rqm(bins, 0)
    if not audit_quantizer(best).meets("pure", epsilon):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        made = rqm(bins, middle * unit)
        if audit_quantizer(made).meets("pure", epsilon):
            low, best = middle, made
        else:
            high = middle
    return best


def best_rqm(levels: int, epsilon: Real, cost: Any = "mae", density: Density | None = None) -> Quantizer | None:
    """The best RQM with equal bins on [-1, 1]: outer bin on a grid, the largest private q to two digits.

    With two outputs it is randomized response. None when no bin of the grid admits one.
    """
    if levels == 2:
        return randomized_response(epsilon)
    reach = 1 / math.tanh(float(positive(epsilon, "epsilon")) / 2)
    found = []
    for factor in (1.001, 1.1, 1.2, 1.25, 1.35, 1.6, 1.9) if levels <= 5 else (1.001, 1.2, 1.6):
        made = largest_q(equal_bins(levels, Fraction(round(reach * factor * 1000), 1000)), epsilon, digits=2)
        if made is not None:
            found.append(made)
    return min(found, key=lambda q: q.expected(cost, density), default=None)
