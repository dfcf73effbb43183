"""Decide probabilistic DP: the mass P(V) of the outcomes V = {P > e^ε Q} is at most δ.

P and Q are the laws of the output for two neighbours. On real inputs the probability p_i(x) of
output i is affine in x on segments. P(V) is not convex in the laws, so the supremum over all pairs
of inputs may lie inside a segment:

    δ(ε) = sup over inputs x, x' of Σ p_i(x) over {i : p_i(x) > e^ε p_i(x')}

Consider x on one segment, at the share s in [0, 1] of its length, and x' on another segment, at the
share t. Then p_i(s) is affine in s, and q_i(t) = p_i(x') is affine in t, with the slope q_i'.
Outcome i is a violation for all t on one side of

    t_i(s) = (p_i(s)/E - q_i(0)) / q_i',      E = e^ε

As s grows, the order of the numbers t_i(s), 0 and 1 changes only where two of them are equal. These
critical s are numbers A + B E with rational A, B. Let s move between two consecutive critical s. As
t runs over [0, 1], the same sets of violations occur for every such s, and the mass of each set is
affine in s. So the supremum is attained, or approached, at a critical s or at an end of the
segment. Every comparison is decided exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from workbench.exact.numbers import ONE, ZERO, ExpNumber, RationalPair, max_exp_number, sign_exp
from workbench.notions.dp import DeltaNotion
from workbench.notions.notion import MassAboveRatio, Requirement, Values

Lines = tuple[RationalPair, ...]  # (value at 0, slope) of the mass of every outcome on a segment.

_FIRST_BITS = 64  # Precision of the first enclosures that separate two numbers.


class PDP(DeltaNotion):
    """Probabilistic differential privacy."""

    name = "pdp"
    title = "PDP"
    quantity = "pdp_delta"
    counts_excess = False

    def measure_segments(self, segments: Sequence[Any], budget: Values) -> Any:
        """Compute the exact δ over every two real inputs.

        Args:
            segments: Pieces of the input range, with the laws `left` and `right` at their ends.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        all_lines: list[Lines] = []
        for segment in segments:
            ends = zip(segment.left, segment.right, strict=True)
            all_lines.append(tuple((left, right - left) for left, right in ends))
        # Segments with equal lines give equal candidates, so one of them is enough.
        distinct_lines = list(dict.fromkeys(all_lines))
        candidates: list[ExpNumber] = []
        for p in distinct_lines:
            for q in distinct_lines:
                candidates.extend(_candidate_deltas(p, q, budget["epsilon"]))
        return max_exp_number(candidates)

    def segment_work(self, segments: int, outputs: int, bits: int) -> int:
        """Return the work for the critical inputs of every two segments and their violations.

        Args:
            segments: The number of segments.
            outputs: The number of outputs.
            bits: The bits of the integers of the laws.
        """
        # Every two segments have about outputs² critical inputs. Each has up to `outputs` sets of
        # violations, and each set is a sum over outputs. The last factor estimates the work for one
        # term with numbers of `bits` bits.
        return segments**2 * outputs**4 * (100 + 2 * (bits // 100) ** 2)

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the requirement: the mass of {P > e^ε Q} is at most δ.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return (MassAboveRatio(budget["epsilon"], budget["delta"]),)


def _candidate_deltas(p: Lines, q: Lines, epsilon: Fraction) -> Iterable[ExpNumber]:
    """Yield numbers whose largest is the supremum over s, t in [0, 1] for two segments."""
    zero = ExpNumber.from_terms(ZERO, ZERO, epsilon)
    one = ExpNumber.from_terms(ONE, ZERO, epsilon)
    yield zero
    critical_points = {s for s in _critical_points(p, q, epsilon) if zero < s < one}
    for low, high in pairwise([zero, *sorted(critical_points), one]):
        # The sets of violations are the same for all s between low and high, so one inner point
        # finds them. Their masses are largest at one of the two ends.
        inner_point = _find_between(low, high)
        for violations in _violation_sets(p, q, inner_point, epsilon):
            mass = sum((p[i][0] for i in violations), ZERO)
            slope = sum((p[i][1] for i in violations), ZERO)
            for s in (low, high):
                # `from_terms(a, b, epsilon)` is the number a - b E, and s = s.a - s.b E.
                yield ExpNumber.from_terms(mass + slope * s.a, slope * s.b, epsilon)


def _critical_points(p: Lines, q: Lines, epsilon: Fraction) -> Iterable[ExpNumber]:
    """Yield every s where t_i of an outcome passes 0 or 1, or two of them meet."""
    for (a, da), (b, db) in zip(p, q, strict=True):
        if da:
            # The equation is a + da s = E end.
            for end in (b, b + db):
                yield ExpNumber.from_terms(-a / da, -end / da, epsilon)
    for ((a, da), (b, db)), ((c, dc), (d, dd)) in combinations(zip(p, q, strict=True), 2):
        # The equation is (a + da s - E b) dd = (c + dc s - E d) db.
        slope = da * dd - dc * db
        if db and dd and slope:
            yield ExpNumber.from_terms(
                (c * db - a * dd) / slope, -(b * dd - d * db) / slope, epsilon
            )


def _violation_sets(
    p: Lines, q: Lines, s: Fraction, epsilon: Fraction
) -> Iterable[tuple[int, ...]]:
    """Yield the sets of violating outcomes at s that some open interval of t in [0, 1] produces."""
    zero = ExpNumber.from_terms(ZERO, ZERO, epsilon)
    # All t are multiplied by E, so that t = 1 becomes E.
    scaled_one = ExpNumber.from_terms(ZERO, Fraction(-1), epsilon)
    always_violated = []
    violated_below: dict[int, ExpNumber] = {}
    violated_above: dict[int, ExpNumber] = {}
    for i, ((a, da), (b, db)) in enumerate(zip(p, q, strict=True)):
        p_mass = a + da * s
        if not db:
            if sign_exp(p_mass, b, epsilon) > 0:
                always_violated.append(i)
            continue
        threshold = ExpNumber.from_terms(p_mass / db, b / db, epsilon)
        if db > 0:
            violated_below[i] = threshold
        else:
            violated_above[i] = threshold
    thresholds = (*violated_below.values(), *violated_above.values())
    ends = {t for t in thresholds if zero < t < scaled_one}
    for low, high in pairwise([zero, *sorted(ends), scaled_one]):
        lower_violations = [i for i, t in violated_below.items() if t >= high]
        upper_violations = [i for i, t in violated_above.items() if t <= low]
        yield tuple(always_violated + lower_violations + upper_violations)


def _find_between(low: ExpNumber, high: ExpNumber) -> Fraction:
    """Find a rational strictly between two different numbers."""
    bits = _FIRST_BITS
    while True:
        low_end = low.enclosure(bits)[1]
        high_end = high.enclosure(bits)[0]
        if low_end < high_end:
            return (low_end + high_end) / 2
        bits *= 2
