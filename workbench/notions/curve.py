"""A privacy curve: hockey sticks at several ε at once, Σ max(0, P - e^ε_i Q) <= δ_i for every i.

The convex piecewise linear trade-off functions are the same thing: a line β >= c - m α between type I error α and type
II error β says that the hockey stick at ε = ln m is at most 1 - c (Dong, Roth and Su 2022, Sec. 2).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from workbench.errors import must
from workbench.exact.numbers import ExpNumber, RationalPair, read_positive, read_probability
from workbench.notions.dp import DP
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import ComparisonResult, HockeyStick, Notion, Requirement, Values

Stick = RationalPair  # (ε or slope, δ)


class HockeySticks(Notion):
    """A notion that is several hockey sticks at once, each at a number of its own (an ε, a slope) and at most a δ; its
    only parameter has its name.

    WORK: of one outcome for each of them; WHAT: a pair of the budget in words.
    """

    is_convex = True
    WORK_PER_STICK = 1
    BUDGET_FORMAT: ClassVar[str]

    def read_pairs(self, value: Any) -> list[tuple[Any, Any]]:
        """The pairs of a budget: a list or a mapping of them, or "0.5:0.1,1:0.01". Raises InvalidRequest."""
        given = value.items() if isinstance(value, Mapping) else value
        if isinstance(given, str):
            given = [part.split(":") for part in given.split(",")]
        try:
            return [(first, second) for first, second in given]
        except (TypeError, ValueError):
            return must(self.name, self.BUDGET_FORMAT, repr(value))

    @abstractmethod
    def sticks(self, values: Values) -> Sequence[Stick]:
        """(ε, δ) or (slope, δ) of every one."""

    @abstractmethod
    def scale_budget(self, points: Sequence[Stick], scale: Fraction) -> Sequence[Stick]:
        """The budget at a scale: 1 as it is, less where it is nearer to perfect privacy. Raises InvalidRequest."""

    @abstractmethod
    def measure_stick(self, laws: Laws, position: Fraction) -> ExpNumber:
        """The hockey stick there, exact."""

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Every hockey stick."""
        return tuple(self.measure_stick(laws, at) for at, _ in self.sticks(budget))

    def work_per_outcome(self, budget: Values) -> int:
        """That of every point of the budget."""
        points = budget.get(self.name)
        return self.WORK_PER_STICK * (len(points) or 1 if isinstance(points, tuple) else 1)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether every hockey stick is at most its δ."""
        return all(
            reached <= delta
            for reached, (_, delta) in zip(measurement, self.sticks(budget), strict=True)
        )

    def tightest_stick(self, measured: Any, values: Values) -> tuple[bool, float, int]:
        """(whether it is missed, the largest excess over its δ, which one), of what is missed where something is."""
        sticks = enumerate(zip(measured, self.sticks(values), strict=True))
        return max((at > delta, at.upper - float(delta), k) for k, (at, (_, delta)) in sticks)

    def severity(self, measurement: Any, budget: Values) -> Any:
        """That, to choose what to show."""
        return self.tightest_stick(measurement, budget)


class Curve(HockeySticks):
    """DP at several budgets (ε, δ) at once; curve: a list of pairs, or a mapping ε -> δ."""

    name = "curve"
    title = "DP curve"
    parameters = ("curve",)
    quantity = "curve"
    BUDGET_FORMAT = "a list of pairs (epsilon, delta)"
    _point = DP()

    def parse(self, parameter: str, value: Any) -> Any:
        """Pairs (ε, δ), exact, ε growing."""
        pairs = self.read_pairs(value)
        points = {
            read_positive(epsilon, "epsilon", or_zero=True): read_probability(delta, "delta")
            for epsilon, delta in pairs
        }
        if not points or len(points) < len(pairs):
            must(parameter, f"{self.BUDGET_FORMAT}, each epsilon once", repr(value))
        curve = sorted(points.items())
        for (low, delta), (high, more) in itertools.pairwise(curve):
            if more > delta:  # what is (ε, δ)-private is so at every larger ε
                growing = (
                    f"{float(delta):g} at {float(low):g} and {float(more):g} at {float(high):g}"
                )
                must(
                    parameter,
                    f"{self.BUDGET_FORMAT} whose delta does not grow with epsilon",
                    growing,
                )
        return tuple(curve)

    def sticks(self, values: Values) -> Sequence[Stick]:
        """The points."""
        points: Sequence[Stick] = values["curve"]
        return points

    def scale_budget(self, points: Sequence[Stick], scale: Fraction) -> Sequence[Stick]:
        """Every ε times the scale."""
        return tuple((epsilon * scale, delta) for epsilon, delta in points)

    def measure_stick(self, laws: Laws, position: Fraction) -> ExpNumber:
        """The exact δ at ε."""
        delta: ExpNumber = self._point.measure(laws, {"epsilon": position})
        return delta

    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """The δ beside the one asked, at the ε that is tightest."""
        *_, at = self.tightest_stick(measurement, values)
        epsilon, delta = values["curve"][at]
        where = f"epsilon = {float(epsilon):.9g}, of {len(values['curve'])} on the curve"
        return self._point.describe_finding(
            measurement[at], {"epsilon": epsilon, "delta": delta}, where
        )

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """One of the outcomes above that e^ε."""
        *_, at = self.tightest_stick(result.measurement, result.budget)
        values = {"epsilon": result.budget["curve"][at][0]}
        return self._point.describe_witness(
            laws, ComparisonResult(result.label, result.measurement[at], values), names
        )

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """A hockey stick for every point."""
        return tuple(HockeyStick(epsilon, delta) for epsilon, delta in budget["curve"])
