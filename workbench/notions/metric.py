"""Metric privacy: P <= e^ε(x, x') Q, each neighbouring pair under its own budget; ε |x - x'| on real inputs.

Where the law is affine in x, ln Pr[i|x] is concave and its slope is largest at the end with less mass:

    the least ε = max over segments [a, b] and outputs i of |P_b(i) - P_a(i)| / ((b - a) min(P_a(i), P_b(i)))

a rational; there is none where the law jumps between segments or a mass vanishes at one end only.
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
    """The largest slope of ln Pr[i|x], None where it is unbounded."""

    value: Fraction | None


class Metric(Pure):
    """Pure DP with a budget that grows with the distance of the inputs."""

    name = "metric"
    title = "metric DP"
    is_convex = False  # the budget of two inputs shrinks with their distance
    is_per_distance = True

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """No: every distance has its own budget."""
        return False

    def measure_segments(self, segments: Sequence[Any], budget: Values) -> Any:
        """The least ε for the distance |x - x'|."""
        if any(
            first.high == second.low and first.right != second.left
            for first, second in pairwise(segments)
        ):
            return Slope(None)
        rises = [
            (_largest_rise(segment.left, segment.right), segment.high - segment.low)
            for segment in segments
        ]
        steepest = [rise / width for rise, width in rises if rise is not None]
        return Slope(max(steepest, default=ZERO) if len(steepest) == len(rises) else None)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether every loss is within its own budget."""
        if isinstance(measurement, Slope):
            return measurement.value is not None and measurement.value <= budget["epsilon"]
        return super().is_within_budget(measurement, budget)

    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """The exact ε beside the one asked."""
        if not isinstance(measurement, Slope):
            return super().describe_finding(measurement, values, budget_text)
        if measurement.value is None:
            return f"exact metric epsilon is unbounded (the law jumps or vanishes), asked {budget_text}"
        law = "Pr[i|x] <= e^(epsilon |x-x'|) Pr[i|x'] for all inputs x, x' and every output i"
        return (
            f"exact metric epsilon is {round_up(measurement.value)!r}, asked {budget_text} ({law})"
        )


def _largest_rise(first: Distribution, second: Distribution) -> Fraction | None:
    """max over outputs of |P(i) - Q(i)| / min(P(i), Q(i)), None where one of them alone vanishes; in integers."""
    if first is second:
        return ZERO
    top, bottom = 0, 1
    for k, l in zip(first.integers, second.integers, strict=True):
        x, y = k * second.total, l * first.total
        if x == y:
            continue
        low, gap = (x, y - x) if x < y else (y, x - y)
        if not low:
            return None
        if gap * bottom > top * low:
            top, bottom = gap, low
    return Fraction(top, bottom)
