"""Decide metric privacy: P <= exp(ε(x, x')) Q, where the budget grows with the distance of inputs.

P and Q are the laws of the output for two neighbours x and x', which have the budget ε(x, x'). On
real inputs the budget is ε |x - x'|. There the law is affine in x on segments [a, b]. Pr[i|x] is
the probability of output i for the input x, and P_a(i) is its value at the end a.

An ε is sufficient if the slope of ln Pr[i|x] is at most ε everywhere. On a segment, ln Pr[i|x] is
concave, so its slope is largest in size at the end with less mass:

    the smallest ε = max over segments [a, b] and outputs i of
                     |P_b(i) - P_a(i)| / ((b - a) min(P_a(i), P_b(i)))

This is a rational number. No ε is sufficient if the law jumps between segments, or if a mass
vanishes at one end of a segment only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ZERO, round_up
from workbench.notions.notion import Values
from workbench.notions.pure import Pure


@dataclass(frozen=True)
class Slope:
    """The measurement of metric privacy on real inputs.

    Attributes:
        value: Largest slope of ln Pr[i|x] in size, exact. None if it is unbounded.
    """

    value: Fraction | None


class Metric(Pure):
    """Pure DP with a budget that grows with the distance of the inputs."""

    name = "metric"
    title = "metric DP"
    is_convex = False  # The budget of two inputs shrinks with their distance.
    is_per_distance = True

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Return False: every distance has its own budget.

        Args:
            budget: Not used.
        """
        return False

    def measure_segments(self, segments: Sequence[Any], budget: Values) -> Any:
        """Compute the smallest ε for the distance |x - x'|.

        Args:
            segments: Pieces of the input range, with the attributes low and high (their ends) and
                left and right (the laws of the output at these ends).
            budget: Not used.
        """
        for first, second in pairwise(segments):
            if first.high == second.low and first.right != second.left:
                return Slope(value=None)
        max_slope = ZERO
        for segment in segments:
            rise = _largest_rise(segment.left, segment.right)
            if rise is None:
                return Slope(value=None)
            max_slope = max(max_slope, rise / (segment.high - segment.low))
        return Slope(value=max_slope)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether the slope, or the ratio of two laws, is within its budget.

        Args:
            measurement: A Slope on real inputs, otherwise the largest ratio P/Q, a Ratio.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        if isinstance(measurement, Slope):
            return measurement.value is not None and measurement.value <= budget["epsilon"]
        return super().is_within_budget(measurement, budget)

    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe the exact ε beside the requested one.

        Args:
            measurement: A Slope on real inputs, otherwise the largest ratio P/Q, a Ratio.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: ε in words, such as "epsilon = 1".
        """
        if not isinstance(measurement, Slope):
            return super().describe_finding(measurement, budget, budget_text)
        if measurement.value is None:
            return (
                "exact metric epsilon is unbounded (the law jumps or vanishes), "
                f"requested {budget_text}"
            )
        meaning = "Pr[i|x] <= e^(epsilon |x-x'|) Pr[i|x'] for all inputs x, x' and every output i"
        epsilon = round_up(measurement.value)
        return f"exact metric epsilon is {epsilon!r}, requested {budget_text} ({meaning})"


def _largest_rise(first: Distribution, second: Distribution) -> Fraction | None:
    """Compute max over outputs of |P(i) - Q(i)| / min(P(i), Q(i)), in integers.

    Returns None if one of the two masses of an output vanishes alone.
    """
    if first is second:
        return ZERO
    numerator = 0
    denominator = 1
    for first_weight, second_weight in zip(first.integers, second.integers, strict=True):
        # Both masses are in units of 1 / (first.total second.total).
        first_mass = first_weight * second.total
        second_mass = second_weight * first.total
        if first_mass == second_mass:
            continue
        smaller_mass = min(first_mass, second_mass)
        gap = abs(first_mass - second_mass)
        if not smaller_mass:
            return None
        if gap * denominator > numerator * smaller_mass:
            numerator = gap
            denominator = smaller_mass
    return Fraction(numerator, denominator)
