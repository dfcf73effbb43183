"""Two exact distributions P and Q on the same outcomes: what breaks a budget ε, and the largest ratio.

violations      V = {i : P(i) > e^ε Q(i)}       decided exactly, outcome by outcome
above           P(V) and Q(V)                   rationals
max_ratio       max P(i) / Q(i)                 a rational, or None for ∞ (a zero of Q is reached)
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from workbench.exact.distribution import Distribution
from workbench.exact.numbers import exp_bounds, sign_exp

__all__ = ["Laws", "max_ratio", "violations"]

_FEW = 64  # outcomes up to which integers are as fast as floats
# Leading 53 bits of two integers and of the threshold, one product: five roundings of 2^-53 and room to spare.
_MARGIN = 2.0**-48


class Laws:
    """P and Q on the same outcomes, and what several notions ask of them, computed once."""

    def __init__(self, p: Distribution, q: Distribution) -> None:
        self.p, self.q = p, q
        self._violations: tuple[Fraction, NDArray[np.bool_]] | None = None
        self._above: tuple[Fraction, tuple[Fraction, Fraction]] | None = None

    def violations(self, epsilon: Fraction) -> NDArray[np.bool_]:
        """Whether P(i) > e^ε Q(i), decided exactly for every outcome. Shape (len(p),)."""
        if self._violations is None or not _same(self._violations[0], epsilon):
            self._violations = epsilon, violations(self.p, self.q, epsilon)
        return self._violations[1]

    def above(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """P(V) and Q(V) of the violations V at ε."""
        if self._above is None or not _same(self._above[0], epsilon):
            broken = self.violations(epsilon).tolist()
            a, b = (Fraction(sum(compress(law.integers, broken)), law.total) for law in (self.p, self.q))
            self._above = epsilon, (a, b)
        return self._above[1]

    @cached_property
    def max_ratio(self) -> tuple[Fraction | None, int]:
        """The largest P(i)/Q(i), None for ∞, and an outcome that attains it."""
        return max_ratio(self.p, self.q)


def _same(a: Fraction, b: Fraction) -> bool:
    return a is b or a == b  # the budget of many comparisons is one object


def violations(p: Distribution, q: Distribution, epsilon: Fraction) -> NDArray[np.bool_]:
    """Whether P(i) > e^ε Q(i), decided exactly for every outcome i. Shape (len(p),).

    With integers k, l over totals K, L this is k > t l for t = (K/L) e^ε. Of many outcomes floating point decides all
    that are not within 2^-48 of equality; integers against a ball around t decide the rest.
    """
    reach = max(p.integers).bit_length() + q.total.bit_length()
    if epsilon > reach:  # e^ε > 2^ε L/K >= any k L / K: only a zero of Q can be exceeded
        return np.asarray((p.mantissa > 0) & (q.mantissa == 0))
    if len(p) <= _FEW:
        return np.array(_by_integers(p, q, epsilon), dtype=bool)
    k, l, bits = p.array, q.array, 128
    above, open_ = _by_floats(p, q, epsilon)
    while open_.size:
        low, high = exp_bounds(epsilon, bits)
        p_side, q_side = k[open_] * (q.total << bits), l[open_] * p.total
        above[open_] = p_side > q_side * high
        open_ = open_[(p_side > q_side * low) & ~above[open_]]
        bits *= 2
    return above


def _by_integers(p: Distribution, q: Distribution, epsilon: Fraction) -> list[bool]:
    """Whether P(i) > e^ε Q(i), outcome by outcome."""
    low, high = exp_bounds(epsilon, 64)
    left, below, above = q.total << 64, p.total * low, p.total * high
    return [
        k * left > l * above
        or (k * left > l * below and sign_exp(Fraction(k * q.total), Fraction(l * p.total), epsilon) > 0)
        for k, l in zip(p.integers, q.integers, strict=True)
    ]


def _by_floats(p: Distribution, q: Distribution, epsilon: Fraction) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Whether P(i) > e^ε Q(i), and the outcomes of which that is not decided."""
    low, _ = exp_bounds(epsilon, 64)
    top = p.total * low
    threshold_exp = top.bit_length() - q.total.bit_length()
    threshold = Fraction(top, q.total) / Fraction(2) ** threshold_exp  # in (1/2, 2), within 2^-61 of t's digits
    gap = p.exponent - q.exponent - (threshold_exp - 64)
    left = np.ldexp(p.mantissa, np.clip(gap, -64, 64).astype(np.int32))  # beyond 2^64 the comparison is over
    right = q.mantissa * float(threshold)
    above: NDArray[np.bool_] = left > right * (1 + _MARGIN)
    return above, np.flatnonzero(~above & (left >= right * (1 - _MARGIN)) & (p.mantissa > 0))


def max_ratio(p: Distribution, q: Distribution) -> tuple[Fraction | None, int]:
    """(max P(i)/Q(i) over the outcomes P can produce, an outcome attaining it); None when Q(i) = 0 < P(i)."""
    if 0 in q.integers:
        alone = np.flatnonzero((p.mantissa > 0) & (q.mantissa == 0))
        if alone.size:
            heaviest = np.lexsort((p.mantissa[alone], p.exponent[alone]))[-1]
            return None, int(alone[heaviest])
    close = _close(p, q) if len(p) > _FEW else [i for i, k in enumerate(p.integers) if k]
    best, top, bottom = -1, 0, 1
    for i in close:
        k, l = p.integers[i], q.integers[i]
        if k * bottom > top * l:
            best, top, bottom = i, k, l
    return Fraction(top * q.total, bottom * p.total), best


def _close(p: Distribution, q: Distribution) -> list[int]:
    """The outcomes whose ratios may be the largest, by floats. Never empty: P has mass somewhere."""
    live = np.flatnonzero(p.mantissa > 0)
    digits = p.mantissa[live] / q.mantissa[live]
    power = p.exponent[live] - q.exponent[live]
    digits, power = np.where(digits < 1, digits * 2, digits), np.where(digits < 1, power - 1, power)
    near = np.ldexp(digits, np.clip(power - power.max(), -64, 0).astype(np.int32))
    close: list[int] = live[near >= near.max() * (1 - _MARGIN)].tolist()
    return close
