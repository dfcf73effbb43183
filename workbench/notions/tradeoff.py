"""A trade-off function f: between neighbours every test with a type I error of α has a type II error of at least f(α).

f is convex and piecewise linear, through given points (α, β) (Dong, Roth and Su 2022). Its line β >= c - m α holds of
all tests of two laws, whichever of them is the null hypothesis, when

    Σ max(0, Q - m P) <= 1 - c     and     Σ max(0, P - m Q) <= 1 - c

Σ max(0, Q - m P) = 1 - m + m Σ max(0, P - Q/m), so a line with m < 1 says the same as Σ max(0, P - M Q) <= 1 - c/m at
M = 1/m. A pair (P, Q) is measured at these slopes M >= 1, rationals, in rational numbers throughout; all ordered pairs
of neighbours are T(P, Q) >= f in both orders. (One-sided neighbours are one order of each, as for DP.)
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

Points = tuple[Stick, ...]


@lru_cache(maxsize=64)
def _sticks(points: Points) -> Points:
    """(M, δ) of the lines of f, M >= 1 growing; without those that another one implies."""
    least: dict[Fraction, Fraction] = {}
    for (a, b), (a2, b2) in pairwise(points):
        m = (b - b2) / (a2 - a)
        if m:
            c = b + m * a
            slope, delta = (m, 1 - c) if m >= 1 else (1 / m, 1 - c / m)
            least[slope] = min(delta, least.get(slope, delta))
    kept: list[Stick] = []
    for slope, delta in sorted(least.items()):  # the hockey stick falls with M
        if not kept or delta < kept[-1][1]:
            kept.append((slope, delta))
    return tuple(kept)


class TradeOffFunction(HockeySticks):
    """f-DP for a piecewise linear f; tradeoff: points (α, β), from α = 0 to β = 0."""

    name = "tradeoff"
    title = "trade-off function"
    parameters = ("tradeoff",)
    quantity = "tradeoff"
    WORK_PER_STICK = 16  # slopes have up to four times the bits of points, and products square that
    BUDGET_FORMAT = "a list of points (alpha, beta)"

    def parse(self, parameter: str, value: Any) -> Points:
        """Points (α, β), exact, α growing. Raises InvalidRequest for what is not convex, or no trade-off function."""
        pairs = self.read_pairs(value)
        errors = {
            read_probability(alpha, "alpha"): read_probability(beta, "beta")
            for alpha, beta in pairs
        }
        if len(errors) < 2 or len(errors) < len(pairs):
            must(parameter, f"{self.BUDGET_FORMAT}, two or more, each alpha once", repr(value))
        points = tuple(sorted(errors.items()))
        if points[0][0] or points[-1][1]:
            must(
                parameter,
                "a function from alpha = 0 to beta = 0",
                f"from {_point(points[0])} to {_point(points[-1])}",
            )
        if any(above := [point for point in points if sum(point) > 1]):
            must(parameter, "at most 1 - alpha, the errors of a blind guess", _point(above[0]))
        slopes = [(b2 - b) / (a2 - a) for (a, b), (a2, b2) in pairwise(points)]
        for k, slope in enumerate(slopes):
            if slope > 0:
                must(
                    parameter,
                    "a function that does not rise",
                    f"{_point(points[k + 1])} after {_point(points[k])}",
                )
            if k and slope < slopes[k - 1]:
                must(parameter, "convex", f"{_point(points[k])} above the line of its neighbours")
        if not points[0][1]:
            must(parameter, "a function that is above 0 somewhere", "0 throughout")
        return points

    def sticks(self, values: Values) -> Sequence[Stick]:
        """(M, δ) of the lines."""
        return _sticks(values["tradeoff"])

    def scale_budget(self, points: Sequence[Stick], scale: Fraction) -> Sequence[Stick]:
        """s f(α) + (1 - s) (1 - α), s in (0, 1]: f with probability s, else a blind guess."""
        if not 0 < scale <= 1:
            must("scale", f"in (0, 1] for a {self.title}", f"{float(scale):g}")
        known = dict(points) | ({} if points[-1][0] == 1 else {ONE: ZERO})
        return tuple(
            (alpha, scale * beta + (1 - scale) * (1 - alpha)) for alpha, beta in known.items()
        )

    def measure_stick(self, laws: Laws, position: Fraction) -> ExpNumber:
        """Σ max(0, P - M Q), exact."""
        gaps, unit = _gaps(laws, position)
        return ExpNumber.from_terms(Fraction(sum(gap for gap in gaps if gap > 0), unit), ZERO, ZERO)

    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """The hockey stick beside its limit, at the line that is tightest."""
        *_, at = self.tightest_stick(measurement, values)
        slope, delta = self.sticks(values)[at]
        reached, stick = float(measurement[at].a), f"sum max(0, P - {float(slope):.6g} Q)"
        return f"{stick} is {reached:.12g}, at most {float(delta):.12g} asked by a line of the {self.title}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """The outcome that counts most."""
        *_, at = self.tightest_stick(result.measurement, result.budget)
        slope, _ = self.sticks(result.budget)[at]
        gaps, unit = _gaps(laws, slope)
        outcome = max(range(len(gaps)), key=gaps.__getitem__)
        high, low = names(outcome)
        excess = gaps[outcome] / unit
        return f"{high} exceeds {float(slope):.6g} {low} by {excess:.2g}" if excess > 0 else None

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """A hockey stick for every line."""
        return tuple(
            SlopedHockeyStick.from_slope(slope, delta) for slope, delta in self.sticks(budget)
        )


def _gaps(laws: Laws, slope: Fraction) -> tuple[list[int], int]:
    """P - slope Q of every outcome, in units of 1 over the second number."""
    (top, below), total, other = slope.as_integer_ratio(), laws.p.total, laws.q.total
    return (
        laws.p.array * (other * below) - laws.q.array * (total * top)
    ).tolist(), total * other * below


def _point(point: RationalPair) -> str:
    return f"({float(point[0]):g}, {float(point[1]):g})"
