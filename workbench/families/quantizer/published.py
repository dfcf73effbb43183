"""The published RQM at its best: its outermost output and its selection probability q, chosen for a budget."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.exact.numbers import Real, positive
from workbench.mechanisms.baselines.two_bin import equal_bins, randomized_response, rqm
from workbench.mechanisms.density import Density
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.real_inputs import read_bins
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["best_rqm", "largest_q", "rqm_bins"]


def largest_q(bins: Any, epsilon: Real, *, digits: int = 3) -> Quantizer | None:
    """RQM with the largest q, to so many digits, that is exactly ε-private on these bins; None when there is none.

    Floats find the neighbourhood, the exact audit decides.
    """
    outputs = read_bins(bins)
    shown, top, budget = np.array([float(b) for b in outputs]), 10**digits, float(positive(epsilon, "epsilon"))

    def private(k: int) -> Quantizer | None:
        mechanism = rqm(outputs, Fraction(k, top))
        return mechanism if audit_quantizer(mechanism).meets("pure", epsilon) else None

    best = private(0)
    if best is None:
        return None
    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _loss(shown, middle / top) <= budget else (low, middle)
    while low and (candidate := private(low)) is None:
        low -= 1
    best = candidate if low else best
    while low + 1 < top and (candidate := private(low + 1)) is not None:
        low, best = low + 1, candidate
    return best


def _loss(outputs: NDArray[np.float64], q: float) -> float:
    """The privacy loss of RQM on [-1, 1], in floats. q in (0, 1)."""
    m = outputs.size
    selection = [np.array([(1 - q) ** (j - 1), *(q * (1 - q) ** (j - i) for i in range(2, j + 1))]) for j in range(m)]
    laws = []
    for a, b in pairwise([-1.0, *outputs[np.abs(outputs) < 1], 1.0]):
        j = int(np.searchsorted(outputs, a, side="right"))
        both = selection[j][:, None] * selection[m - j][::-1]
        for x in (a, b):
            left = both * (outputs[j:] - x) / (outputs[j:] - outputs[:j, None])
            laws.append(np.concatenate([left.sum(axis=1), (both - left).sum(axis=0)]))
    return float(np.log(np.max(laws, axis=0) / np.min(laws, axis=0)).max())


def rqm_bins(levels: int, epsilon: Real) -> list[tuple[Fraction, ...]]:
    """The equal bins on [-1, 1] that `best_rqm` chooses from."""
    reach = 1 / math.tanh(float(positive(epsilon, "epsilon")) / 2)
    factors = (1.0001, 1.03, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.45, 1.6, 1.9)
    return [tuple(equal_bins(levels, Fraction(math.ceil(reach * factor * 10**4), 10**4))) for factor in factors]


def best_rqm(levels: int, epsilon: Real, loss: Any = "absolute", density: Density | None = None) -> Quantizer | None:
    """The best RQM with equal bins on [-1, 1]: outer bin on a grid, the largest private q to three digits.

    With two outputs it is randomized response. None when no bin of the grid admits one.
    """
    if levels == 2:
        return randomized_response(epsilon)
    candidates = [
        mechanism for bins in rqm_bins(levels, epsilon) if (mechanism := largest_q(bins, epsilon)) is not None
    ]
    return min(candidates, key=lambda q: q.expected(loss, density), default=None)
