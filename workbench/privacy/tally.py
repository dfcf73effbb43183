"""Two exact distributions under one budget: which outcomes break it, and what they cost.

For distributions P and Q on the same outcomes and a budget ε (Sec. 2 of Kadam et al. 2024, and Dwork et al.)

    violations      V = {i : P(i) > e^ε Q(i)}                       decided exactly, outcome by outcome
    PDP delta       P(V)                                            a rational
    DP delta        P(V) - e^ε Q(V) = Σ max(0, P(i) - e^ε Q(i))     the hockey stick, a - b e^ε with rational a, b
    pure ratio      max P(i) / Q(i)                                 a rational, or None for ∞ (a zero of Q is reached)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from workbench.mechanisms.masses import Masses
from workbench.numbers import ExpNumber, exp_bounds

__all__ = ["Tally", "max_ratio", "tally", "violations"]

# Leading 53 bits of two integers and of the threshold, one product: five roundings of 2^-53 and room to spare.
_MARGIN = 2.0**-48


@dataclass(frozen=True)
class Tally:
    """What P reveals against Q at one budget. violations: how many outcomes have P > e^ε Q."""

    pdp_delta: Fraction
    dp_delta: ExpNumber
    violations: int


def tally(p: Masses, q: Masses, epsilon: Fraction) -> Tally:
    """The exact PDP and DP delta of P against Q at ε >= 0. p, q: distributions on the same outcomes."""
    broken = violations(p, q, epsilon)
    a = Fraction(int(p.array[broken].sum()), p.total)
    b = Fraction(int(q.array[broken].sum()), q.total)
    return Tally(a, ExpNumber.of(a, b, epsilon), int(broken.sum()))


def violations(p: Masses, q: Masses, epsilon: Fraction) -> NDArray[np.bool_]:
    """Whether P(i) > e^ε Q(i), decided exactly for every outcome i. Shape (len(p),).

    With integers k, l over totals K, L this is k > t l for t = (K/L) e^ε. Floating point decides all outcomes that
    are not within 2^-48 of equality; integers against a ball around t decide the rest.
    """
    k, l = p.array, q.array
    reach = int(p.exponent.max()) + q.total.bit_length()
    if epsilon > reach:  # e^ε > 2^ε L/K >= any k L / K: only a zero of Q can be exceeded
        return np.asarray((p.mantissa > 0) & (q.mantissa == 0))
    low, high = exp_bounds(epsilon, 64)
    top = p.total * low
    threshold_exp = top.bit_length() - q.total.bit_length()
    threshold = Fraction(top, q.total) / Fraction(2) ** threshold_exp  # in (1/2, 2), within 2^-61 of t's digits
    gap = p.exponent - q.exponent - (threshold_exp - 64)
    left = np.ldexp(p.mantissa, np.clip(gap, -64, 64).astype(np.int32))  # beyond 2^64 the comparison is over
    right = q.mantissa * float(threshold)
    above: NDArray[np.bool_] = left > right * (1 + _MARGIN)
    open_ = np.flatnonzero(~above & (left >= right * (1 - _MARGIN)) & (p.mantissa > 0))
    bits = 128
    while open_.size:
        low, high = exp_bounds(epsilon, bits)
        one, two = k[open_] * (q.total << bits), l[open_] * p.total
        above[open_] = one > two * high
        open_ = open_[(one > two * low) & ~above[open_]]
        bits *= 2
    return above


def max_ratio(p: Masses, q: Masses) -> tuple[Fraction | None, int]:
    """(max P(i)/Q(i) over the outcomes P can produce, an outcome attaining it); None when Q(i) = 0 < P(i)."""
    alone = np.flatnonzero((p.mantissa > 0) & (q.mantissa == 0))
    if alone.size:
        heaviest = np.lexsort((p.mantissa[alone], p.exponent[alone]))[-1]
        return None, int(alone[heaviest])
    live = np.flatnonzero(p.mantissa > 0)
    digits = p.mantissa[live] / q.mantissa[live]
    power = p.exponent[live] - q.exponent[live]
    digits, power = np.where(digits < 1, digits * 2, digits), np.where(digits < 1, power - 1, power)
    near = np.ldexp(digits, np.clip(power - power.max(), -64, 0).astype(np.int32))
    best: tuple[int, int, int] | None = None
    seen: set[tuple[int, int]] = set()
    for i in live[near >= near.max() * (1 - _MARGIN)]:
        pair = (p.array[i], q.array[i])
        if pair in seen:
            continue
        seen.add(pair)
        if best is None or pair[0] * best[1] > best[0] * pair[1]:
            best = (*pair, int(i))
    assert best is not None  # P has mass somewhere
    return Fraction(best[0] * q.total, best[1] * p.total), best[2]
