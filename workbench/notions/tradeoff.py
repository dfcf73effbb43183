"""Decide f-DP: every test of two neighbours with type I error α has a type II error >= f(α).

f is convex and piecewise linear, through given points (α, β) (Dong, Roth and Su 2022). P and Q are
the laws of the output for two neighbours. A line β >= c - m α of f holds for all tests between P
and Q, whichever of them is the null hypothesis, if

    Σ max(0, Q - m P) <= 1 - c     and     Σ max(0, P - m Q) <= 1 - c

A line with m < 1 is stated with the slope M = 1/m instead. Because

    Σ max(0, Q - m P) = 1 - m + m Σ max(0, P - M Q),

its two conditions are equivalent to

    Σ max(0, P - M Q) <= 1 - c/m     and     Σ max(0, Q - M P) <= 1 - c/m

So a pair (P, Q) is measured at slopes M >= 1, in rational numbers throughout. All ordered pairs of
neighbours are compared. (One-sided neighbours are compared in one order, as for DP.)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from workbench.errors import must
from workbench.exact.numbers import ONE, ZERO, ExpNumber, RationalPair, read_probability
from workbench.notions.curve import HockeySticks, Stick
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import ComparisonResult, Requirement, SlopedHockeyStick, Values

Points = tuple[RationalPair, ...]  # The points (α, β) of f.
Sticks = tuple[Stick, ...]  # (slope M, δ) of hockey sticks.


@lru_cache(maxsize=64)
def _compute_sticks(points: Points) -> Sticks:
    """Compute (M, δ) of the lines of f, sorted by M >= 1, without lines that another implies."""
    smallest_deltas: dict[Fraction, Fraction] = {}
    for (a, b), (a2, b2) in pairwise(points):
        m = (b - b2) / (a2 - a)
        if not m:
            continue
        c = b + m * a
        slope = m
        delta = 1 - c
        if m < 1:
            slope = 1 / m
            delta = 1 - c / m
        smallest_deltas[slope] = min(delta, smallest_deltas.get(slope, delta))
    sticks: list[Stick] = []
    # The hockey stick falls with M, so a larger M is a new bound only with a smaller δ.
    for slope, delta in sorted(smallest_deltas.items()):
        if not sticks or delta < sticks[-1][1]:
            sticks.append((slope, delta))
    return tuple(sticks)


class TradeOffFunction(HockeySticks):
    """f-DP for a piecewise linear f.

    The parameter `tradeoff` has the points (α, β) of f, from α = 0 to β = 0.
    """

    name = "tradeoff"
    title = "trade-off function"
    parameters = ("tradeoff",)
    quantity = "tradeoff"
    # Slopes have up to four times the bits of points, and the work of a product is quadratic.
    WORK_PER_STICK = 16
    BUDGET_FORMAT = "a list of points (alpha, beta)"

    def parse(self, parameter: str, value: Any) -> Points:
        """Read points (α, β) as exact numbers, sorted by α.

        Args:
            parameter: One of `parameters`, the names of the parameters of the notion.
            value: As for `read_pairs`.

        Raises:
            InvalidRequest: If the points are not convex, or are no trade-off function.
        """
        pairs = self.read_pairs(value)
        betas_by_alpha = {}
        for alpha, beta in pairs:
            exact_alpha = read_probability(alpha, "alpha")
            betas_by_alpha[exact_alpha] = read_probability(beta, "beta")
        if len(betas_by_alpha) < 2 or len(betas_by_alpha) < len(pairs):
            must(parameter, f"{self.BUDGET_FORMAT}, two or more, each alpha once", repr(value))
        points = tuple(sorted(betas_by_alpha.items()))
        if points[0][0] or points[-1][1]:
            ends = f"from {_format_pair(points[0])} to {_format_pair(points[-1])}"
            must(parameter, "a function from alpha = 0 to beta = 0", ends)
        for point in points:
            if sum(point) > 1:
                constraint = "at most 1 - alpha, the errors of a blind guess"
                must(parameter, constraint, _format_pair(point))
        self._check_slopes(parameter, points)
        if not points[0][1]:
            must(parameter, "a function that is above 0 somewhere", "0 throughout")
        return points

    def _check_slopes(self, parameter: str, points: Points) -> None:
        """Raise InvalidRequest if the function rises or is not convex."""
        slopes = [(b2 - b) / (a2 - a) for (a, b), (a2, b2) in pairwise(points)]
        for k, slope in enumerate(slopes):
            if slope > 0:
                rise = f"{_format_pair(points[k + 1])} after {_format_pair(points[k])}"
                must(parameter, "a function that does not rise", rise)
            if k and slope < slopes[k - 1]:
                bend = f"{_format_pair(points[k])} above the line of its neighbours"
                must(parameter, "convex", bend)

    def sticks(self, budget: Values) -> Sequence[Stick]:
        """Return (M, δ) of the lines.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return _compute_sticks(budget["tradeoff"])

    def scale_budget(
        self, points: Sequence[RationalPair], scale: Fraction
    ) -> Sequence[RationalPair]:
        """Return s f(α) + (1 - s) (1 - α): f with probability s, else a blind guess.

        Args:
            points: The points (α, β).
            scale: The factor s in (0, 1].

        Raises:
            InvalidRequest: If the scale is not in (0, 1].
        """
        if not 0 < scale <= 1:
            must("scale", f"in (0, 1] for a {self.title}", f"{float(scale):g}")
        betas = dict(points)
        if points[-1][0] != 1:
            betas[ONE] = ZERO
        return tuple(
            (alpha, scale * beta + (1 - scale) * (1 - alpha)) for alpha, beta in betas.items()
        )

    def measure_stick(self, laws: Laws, position: Fraction) -> ExpNumber:
        """Compute Σ max(0, P - M Q) exactly.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            position: The slope M of the hockey stick.
        """
        gaps, unit = _compute_gaps(laws, position)
        return ExpNumber.from_terms(Fraction(sum(gap for gap in gaps if gap > 0), unit), ZERO, ZERO)

    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe the hockey stick beside its limit, at the tightest line.

        Args:
            measurement: Value of every hockey stick, in the order of `sticks`.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: Not used.
        """
        _, _, index = self.tightest_stick(measurement, budget)
        slope, delta = self.sticks(budget)[index]
        stick_text = f"sum max(0, P - {float(slope):.6g} Q)"
        return (
            f"{stick_text} is {float(measurement[index].a):.12g}, "
            f"at most {float(delta):.12g} requested by a line of the {self.title}"
        )

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe the outcome with the largest excess at the tightest line.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        _, _, index = self.tightest_stick(result.measurement, result.budget)
        slope, _ = self.sticks(result.budget)[index]
        gaps, unit = _compute_gaps(laws, slope)
        outcome = max(range(len(gaps)), key=gaps.__getitem__)
        high, low = names(outcome)
        excess = gaps[outcome] / unit
        if excess <= 0:
            return None
        return f"{high} exceeds {float(slope):.6g} {low} by {excess:.2g}"

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return a hockey stick for every line.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return tuple(
            SlopedHockeyStick.from_slope(slope, delta) for slope, delta in self.sticks(budget)
        )


def _compute_gaps(laws: Laws, slope: Fraction) -> tuple[list[int], int]:
    """Compute P - slope Q of every outcome.

    Returns:
        (integers, unit). The differences are the integers divided by the unit.
    """
    numerator, denominator = slope.as_integer_ratio()
    p_scale = laws.q.total * denominator
    q_scale = laws.p.total * numerator
    gaps = laws.p.array * p_scale - laws.q.array * q_scale
    return gaps.tolist(), laws.p.total * p_scale


def _format_pair(point: RationalPair) -> str:
    """Format a point (α, β) for an error."""
    alpha, beta = point
    return f"({float(alpha):g}, {float(beta):g})"
