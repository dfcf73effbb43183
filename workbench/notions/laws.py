"""Two exact distributions P and Q on the same outcomes: what breaks a budget ε, and the largest ratio.

violations      V = {i : P(i) > e^ε Q(i)}       decided exactly, outcome by outcome
above           P(V) and Q(V)                   rationals
max_ratio       max P(i) / Q(i)                 a rational, or None for ∞ (a zero of Q is reached)
corners, steps  P and Q of {P/Q >= r}           for every ratio r there is, the largest first

Floating point decides all outcomes whose ratio is not within 10^-6 of what it is compared with; integers the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, cmp_to_key
from itertools import accumulate, compress, pairwise
from typing import TypeAlias

import numpy as np

from workbench.exact.arrays import Flags, Vector
from workbench.exact.distribution import LOG2_TOLERANCE, Distribution
from workbench.exact.numbers import ZERO, ExpNumber, RationalPair, exp_bounds_of_ratio
from workbench.exact.objects import Pair
from workbench.exact.time_limit import check_time_limit

_MANY_OUTCOMES = (
    1_000  # Laws of more outcomes look at the clock; loops over comparisons of fewer do.
)

Names: TypeAlias = Callable[
    [int], tuple[str, str]
]  # outcome -> how its mass in P and in Q is written


class Laws:
    """P and Q on the same outcomes, and what several notions ask of them, computed once."""

    def __init__(self, p: Distribution, q: Distribution) -> None:
        if len(p.integers) > _MANY_OUTCOMES:
            check_time_limit()
        self.p, self.q = p, q
        self._above: tuple[Fraction | None, RationalPair] = None, (ZERO, ZERO)

    @cached_property
    def losses(self) -> Vector:
        """log2 P(i)/Q(i) in floats; NaN where both are 0. Shape (len(p),)."""
        with np.errstate(invalid="ignore"):
            gaps: Vector = self.p.logs - self.q.logs
        return gaps + (math.log2(self.q.total) - math.log2(self.p.total))

    def violations(self, epsilon: Fraction) -> Flags:
        """Whether P(i) > e^ε Q(i), decided exactly for every outcome. Shape (len(p),).

        With integers k, l over totals K, L this is k > t l for t = (K/L) e^ε, against a ball around e^ε where floats
        do not decide.
        """
        excess = self.losses - float(epsilon) / math.log(2)
        above, bits = excess > LOG2_TOLERANCE, 64
        open_ = np.flatnonzero(np.abs(excess) <= LOG2_TOLERANCE)
        k, l = self.p.array, self.q.array
        while open_.size:
            low, high = exp_bounds_of_ratio(epsilon.numerator, epsilon.denominator, bits)
            left, right = k[open_] * (self.q.total << bits), l[open_] * self.p.total
            above[open_] = left > right * high
            open_ = open_[(left > right * low) & ~above[open_]]
            bits *= 2
        return above

    def violation_masses(self, epsilon: Fraction) -> RationalPair:
        """P(V) and Q(V) of the violations V at ε."""
        if self._above[0] is not epsilon:  # the budget of many comparisons is one object
            broken = self.violations(epsilon).tolist()
            a, b = (
                Fraction(sum(compress(law.integers, broken)), law.total) for law in (self.p, self.q)
            )
            self._above = epsilon, (a, b)
        return self._above[1]

    @cached_property
    def max_ratio(self) -> tuple[Fraction | None, int]:
        """The largest P(i)/Q(i), None for ∞, and an outcome that attains it: of ∞ the heaviest."""
        top = np.nanmax(self.losses)
        close: list[int] = np.flatnonzero(self.losses >= top - LOG2_TOLERANCE).tolist()
        k, l = self.p.integers, self.q.integers
        if top == math.inf:
            return None, max(close, key=k.__getitem__)
        best = close[0]
        for i in close[1:]:
            if k[i] * l[best] > k[best] * l[i]:
                best = i
        return Fraction(k[best] * self.q.total, l[best] * self.p.total), best

    @cached_property
    def corners(self) -> list[Pair]:
        """The integers of P and of Q in {P/Q >= r} for every ratio r there is, the largest first."""
        losses, p, q = self.losses.tolist(), self.p.integers, self.q.integers

        def order(i: int, j: int) -> int:
            """1 where outcome i has a smaller ratio than j, 0 where the same: floats tell unless they are near."""
            gap = losses[j] - losses[i]
            first, second = (gap, 0) if abs(gap) > LOG2_TOLERANCE else (p[j] * q[i], p[i] * q[j])
            return (first > second) - (first < second)

        reached = sorted((i for i in range(len(p)) if p[i] or q[i]), key=cmp_to_key(order))
        last = [*(order(j, i) for i, j in pairwise(reached)), 1]
        sums = zip(*(accumulate(map(law.__getitem__, reached)) for law in (p, q)), strict=True)
        return [*compress(sums, last)]

    @cached_property
    def steps(self) -> list[tuple[Fraction | None, Fraction, Fraction]]:
        """(r, P(A), Q(A)) with A = {P/Q >= r} for every ratio r, the largest first; None for ∞."""
        total, other = self.p.total, self.q.total
        return [
            (
                Fraction((k - a) * other, (l - b) * total) if l > b else None,
                Fraction(k, total),
                Fraction(l, other),
            )
            for (a, b), (k, l) in pairwise([(0, 0), *self.corners])
        ]

    def example_violation(self, epsilon: Fraction) -> int:
        """An outcome with P > e^ε Q to show: a rounding accident if there is one, else the heaviest."""
        broken = np.flatnonzero(self.violations(epsilon))
        p, q = self.p.floats[broken], self.q.floats[broken]
        with np.errstate(
            all="ignore"
        ):  # only a choice of example: floats will do, and may underflow
            spare = 1 - math.exp(min(float(epsilon), 700.0)) * q / p
        spare = np.abs(np.where(np.isfinite(spare), spare, 1.0))
        return int(broken[np.argmin(spare) if spare.min() < 1e-6 else np.argmax(p)])

    def describe_excess(self, outcome: int, epsilon: Fraction, names: Names) -> str:
        """By how much an outcome's mass in P exceeds e^ε times that in Q, in words."""
        (high, low), p, q = names(outcome), self.p[outcome], self.q[outcome]
        gap = ExpNumber.from_terms(p, q, epsilon).upper
        return (
            f"{high} exceeds e^epsilon {low} by {gap:.2g}"
            if q
            else f"{high} is {gap:.2g} where {low} is 0"
        )
