"""Compare two exact distributions P and Q: outcomes that violate a budget ε, and ratios P/Q.

violations        V = {i : P(i) > e^ε Q(i)}       decided exactly, outcome by outcome
violation_masses  P(V) and Q(V)                   rationals
max_ratio         max P(i) / Q(i)                 a rational, or None for ∞ (a zero of Q is reached)
corners, steps    P(A), Q(A) of A = {P/Q >= r}    for every value r of the ratio, the largest first

Floating point decides the outcomes whose ratio differs from e^ε by more than `LOG2_TOLERANCE` in
its binary logarithm. Integer arithmetic decides the others.
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

# A comparison of laws with more outcomes checks the time limit while it runs. For fewer outcomes,
# the loops over comparisons check it.
_MANY_OUTCOMES = 1_000

# Precision of the first enclosure of e^ε. It is doubled until all outcomes are decided.
_FIRST_BITS = 64
_ROUNDING_SHARE = 1e-6  # An excess below this share of the mass P is probably a rounding error.
_MAX_EXPONENT = 700.0  # A larger ε counts as this one in floats, because e^ε is no double.

Names: TypeAlias = Callable[[int], tuple[str, str]]
"""Outcome -> how its mass in P and in Q is written."""


class Laws:
    """P and Q on the same outcomes, and the quantities that several notions need, computed once.

    Args:
        p: Distribution P, with m outcomes.
        q: Distribution Q on the same outcomes.
    """

    def __init__(self, p: Distribution, q: Distribution) -> None:
        if len(p.integers) > _MANY_OUTCOMES:
            check_time_limit()
        self.p = p
        self.q = q
        self._masses_epsilon: Fraction | None = None
        self._masses: RationalPair = (ZERO, ZERO)

    @cached_property
    def losses(self) -> Vector:
        """Return log2 P(i)/Q(i) in floats; NaN where both are 0. Shape (len(p),)."""
        with np.errstate(invalid="ignore"):
            gaps: Vector = self.p.logs - self.q.logs
        return gaps + (math.log2(self.q.total) - math.log2(self.p.total))

    def violations(self, epsilon: Fraction) -> Flags:
        """Decide for every outcome whether P(i) > e^ε Q(i). Shape (len(p),).

        With integers k, l over totals K, L this is k > t l for t = (K/L) e^ε. Where floats do not
        decide, the integers are compared with an enclosure of e^ε.

        Args:
            epsilon: The budget ε, a rational.
        """
        excess = self.losses - float(epsilon) / math.log(2)
        is_violated = excess > LOG2_TOLERANCE
        open_outcomes = np.flatnonzero(np.abs(excess) <= LOG2_TOLERANCE)
        k = self.p.array
        l = self.q.array
        bits = _FIRST_BITS
        while open_outcomes.size:
            low, high = exp_bounds_of_ratio(epsilon.numerator, epsilon.denominator, bits)
            left = k[open_outcomes] * (self.q.total << bits)
            right = l[open_outcomes] * self.p.total
            is_violated[open_outcomes] = left > right * high
            open_outcomes = open_outcomes[(left > right * low) & ~is_violated[open_outcomes]]
            bits *= 2
        return is_violated

    def violation_masses(self, epsilon: Fraction) -> RationalPair:
        """Return P(V) and Q(V) of the violations V at ε.

        Args:
            epsilon: The budget ε, a rational.
        """
        # The budget of many comparisons is one object, so that comparing identities is enough.
        if self._masses_epsilon is not epsilon:
            is_violated = self.violations(epsilon).tolist()
            p_mass = Fraction(sum(compress(self.p.integers, is_violated)), self.p.total)
            q_mass = Fraction(sum(compress(self.q.integers, is_violated)), self.q.total)
            self._masses_epsilon = epsilon
            self._masses = p_mass, q_mass
        return self._masses

    @cached_property
    def max_ratio(self) -> tuple[Fraction | None, int]:
        """Return the largest ratio P(i)/Q(i), and an outcome that attains it.

        The ratio is None if it is ∞. The outcome is then the one with the largest mass P(i).
        """
        max_loss = np.nanmax(self.losses)
        candidates: list[int] = np.flatnonzero(self.losses >= max_loss - LOG2_TOLERANCE).tolist()
        k = self.p.integers
        l = self.q.integers
        if max_loss == math.inf:
            return None, max(candidates, key=k.__getitem__)
        best = candidates[0]
        for i in candidates[1:]:
            if k[i] * l[best] > k[best] * l[i]:
                best = i
        return Fraction(k[best] * self.q.total, l[best] * self.p.total), best

    @cached_property
    def corners(self) -> list[Pair]:
        """Return the masses of P and Q in A = {P/Q >= r} for every ratio r, the largest first.

        They are integers over `p.total` and `q.total`.
        """
        losses = self.losses.tolist()
        p = self.p.integers
        q = self.q.integers

        def order(i: int, j: int) -> int:
            """Return 1 if outcome i has a smaller ratio than j, 0 if the same, else -1."""
            gap: float = losses[j] - losses[i]
            if abs(gap) > LOG2_TOLERANCE:
                return (gap > 0) - (gap < 0)
            first = p[j] * q[i]
            second = p[i] * q[j]
            return (first > second) - (first < second)

        possible = (i for i in range(len(p)) if p[i] or q[i])
        outcomes = sorted(possible, key=cmp_to_key(order))
        is_last_of_ratio = [*(order(j, i) for i, j in pairwise(outcomes)), 1]
        p_sums = accumulate(map(p.__getitem__, outcomes))
        q_sums = accumulate(map(q.__getitem__, outcomes))
        return [*compress(zip(p_sums, q_sums, strict=True), is_last_of_ratio)]

    @cached_property
    def steps(self) -> list[tuple[Fraction | None, Fraction, Fraction]]:
        """Return (r, P(A), Q(A)) with A = {P/Q >= r} for every ratio r, the largest first.

        The ratio ∞ is None.
        """
        p_total = self.p.total
        q_total = self.q.total
        steps: list[tuple[Fraction | None, Fraction, Fraction]] = []
        for (p_before, q_before), (p_sum, q_sum) in pairwise([(0, 0), *self.corners]):
            ratio = None
            if q_sum > q_before:
                ratio = Fraction((p_sum - p_before) * q_total, (q_sum - q_before) * p_total)
            steps.append((ratio, Fraction(p_sum, p_total), Fraction(q_sum, q_total)))
        return steps

    def example_violation(self, epsilon: Fraction) -> int:
        """Choose an outcome with P > e^ε Q to show in a message.

        It is one that looks like a rounding error if there is such an outcome, otherwise the one
        with the largest mass P.

        Args:
            epsilon: ε, at which there is a violation.
        """
        violated_outcomes = np.flatnonzero(self.violations(epsilon))
        p = self.p.floats[violated_outcomes]
        q = self.q.floats[violated_outcomes]
        # This only chooses an example, so floats are good enough. They may underflow.
        with np.errstate(all="ignore"):
            excess = 1 - math.exp(min(float(epsilon), _MAX_EXPONENT)) * q / p
        excess_share = np.abs(np.where(np.isfinite(excess), excess, 1.0))
        if excess_share.min() < _ROUNDING_SHARE:
            return int(violated_outcomes[np.argmin(excess_share)])
        return int(violated_outcomes[np.argmax(p)])

    def describe_excess(self, outcome: int, epsilon: Fraction, names: Names) -> str:
        """Describe by how much the mass of an outcome in P exceeds e^ε times its mass in Q.

        Args:
            outcome: The position of the outcome.
            epsilon: The budget ε, a rational.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        high, low = names(outcome)
        p = self.p[outcome]
        q = self.q[outcome]
        excess = ExpNumber.from_terms(p, q, epsilon).upper
        if not q:
            return f"{high} is {excess:.2g} where {low} is 0"
        return f"{high} exceeds e^epsilon {low} by {excess:.2g}"
