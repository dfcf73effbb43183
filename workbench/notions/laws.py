"""Compare two exact distributions P and Q: outcomes that violate a budget ε, and ratios P/Q.

violations        V = {i : P(i) > e^ε Q(i)}       decided exactly, outcome by outcome
violation_masses  P(V) and Q(V)                   rationals
max_ratio         max P(i) / Q(i)                 a rational, or None for ∞ (a zero of Q is reached)
corners, steps    P(A), Q(A) of A = {P/Q >= r}    for every value r of the ratio, the largest first

For example, P = (3/4, 1/4) and Q = (1/4, 3/4) have the ratios 3 and 1/3. The steps are
(3, 3/4, 1/4) and (1/3, 1, 1).

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
"""Takes an outcome. Returns the names of its masses in P and Q for messages: ("f(3)", "f(4)")."""


class Laws:
    """Two laws P and Q on the same outcomes, with cached quantities that several notions need.

    Args:
        p: Distribution P, with m outcomes.
        q: Distribution Q on the same outcomes.
    """

    def __init__(self, p: Distribution, q: Distribution) -> None:
        if len(p.integers) > _MANY_OUTCOMES:
            check_time_limit()
        self.p = p
        self.q = q
        # The last ε of `violation_masses`, and its result.
        self._masses_epsilon: Fraction | None = None
        self._masses: RationalPair = (ZERO, ZERO)

    @cached_property
    def log2_ratios(self) -> Vector:
        """Return log2 P(i)/Q(i) in floats; NaN where both are 0. Shape (len(p),)."""
        with np.errstate(invalid="ignore"):
            integer_ratios: Vector = self.p.logs - self.q.logs
        return integer_ratios + (math.log2(self.q.total) - math.log2(self.p.total))

    def violations(self, epsilon: Fraction) -> Flags:
        """Decide for every outcome whether P(i) > e^ε Q(i). Shape (len(p),).

        P(i) = k/K and Q(i) = l/L with integers k, l and totals K, L. If floats do not decide an
        outcome, k L is compared with l K times an enclosure of e^ε.

        Args:
            epsilon: The budget ε, a rational.
        """
        excess = self.log2_ratios - float(epsilon) / math.log(2)
        is_violated = excess > LOG2_TOLERANCE
        undecided = np.flatnonzero(np.abs(excess) <= LOG2_TOLERANCE)
        k = self.p.array
        l = self.q.array
        bits = _FIRST_BITS
        while undecided.size:
            # The ends satisfy low <= 2^bits e^ε <= high.
            low, high = exp_bounds_of_ratio(epsilon.numerator, epsilon.denominator, bits)
            left = k[undecided] * (self.q.total << bits)
            right = l[undecided] * self.p.total
            is_violated[undecided] = left > right * high
            undecided = undecided[(left > right * low) & ~is_violated[undecided]]
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
        log2_ratios = self.log2_ratios
        max_log2 = np.nanmax(log2_ratios)
        # Floats cannot order ratios this close, so the integers decide.
        candidates: list[int] = np.flatnonzero(log2_ratios >= max_log2 - LOG2_TOLERANCE).tolist()
        k = self.p.integers
        l = self.q.integers
        if max_log2 == math.inf:
            return None, max(candidates, key=k.__getitem__)
        largest = candidates[0]
        for i in candidates[1:]:
            if k[i] * l[largest] > k[largest] * l[i]:
                largest = i
        return Fraction(k[largest] * self.q.total, l[largest] * self.p.total), largest

    @cached_property
    def corners(self) -> list[Pair]:
        """Return the masses of P and Q in A = {P/Q >= r} for every ratio r, the largest first.

        They are integers over `p.total` and `q.total`.
        """
        log2_ratios = self.log2_ratios.tolist()
        p = self.p.integers
        q = self.q.integers

        def compare_ratios(i: int, j: int) -> int:
            """Return 1 if outcome i has a smaller ratio than j, 0 if the same, else -1."""
            difference: float = log2_ratios[j] - log2_ratios[i]
            if abs(difference) > LOG2_TOLERANCE:
                return (difference > 0) - (difference < 0)
            first = p[j] * q[i]
            second = p[i] * q[j]
            return (first > second) - (first < second)

        possible = (i for i in range(len(p)) if p[i] or q[i])
        outcomes = sorted(possible, key=cmp_to_key(compare_ratios))
        # 1 if the next outcome has a smaller ratio, otherwise 0.
        is_last_of_ratio = [*(compare_ratios(j, i) for i, j in pairwise(outcomes)), 1]
        p_sums = accumulate(p[i] for i in outcomes)
        q_sums = accumulate(q[i] for i in outcomes)
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
