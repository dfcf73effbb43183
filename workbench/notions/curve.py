"""Decide a privacy curve: (ε_i, δ_i)-DP at several points at once, Σ max(0, P - e^ε_i Q) <= δ_i.

P and Q are the laws of the output for two neighbours. A convex piecewise linear trade-off function
states the same kind of bounds (`workbench.notions.tradeoff`): a line β >= c - m α between type I
error α and type II error β means that the hockey stick at ε = ln m is at most 1 - c (Dong, Roth and
Su 2022, Sec. 2).
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

Stick = RationalPair  # (ε, δ) or (slope, δ) of a hockey stick.


class HockeySticks(Notion):
    """A notion that bounds several hockey sticks at once.

    A budget is a list of (position, δ). The position is an ε or a slope, and the hockey stick there
    is at most δ. The only parameter has the name of the notion.

    Attributes:
        WORK_PER_STICK: The work for one outcome and one hockey stick, in units of
            `workbench.privacy.audit_work`.
        BUDGET_FORMAT: Form of a budget in words, for errors.
    """

    is_convex = True
    WORK_PER_STICK = 1
    BUDGET_FORMAT: ClassVar[str]

    def read_pairs(self, value: Any) -> list[tuple[Any, Any]]:
        """Split a budget into pairs, whose parts are not read yet.

        Args:
            value: A list or a mapping of pairs, or a text "0.5:0.1,1:0.01".

        Raises:
            InvalidRequest: If the value is not made of pairs.
        """
        entries = value
        if isinstance(value, Mapping):
            entries = value.items()
        elif isinstance(value, str):
            entries = [part.split(":") for part in value.split(",")]
        try:
            return [(first, second) for first, second in entries]
        except (TypeError, ValueError):
            return must(self.name, self.BUDGET_FORMAT, repr(value))

    @abstractmethod
    def sticks(self, budget: Values) -> Sequence[Stick]:
        """Return (ε, δ) or (slope, δ) of every hockey stick.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """

    @abstractmethod
    def scale_budget(self, points: Sequence[Stick], scale: Fraction) -> Sequence[Stick]:
        """Return the budget at a scale.

        Args:
            points: The (ε, δ) or (slope, δ) of the budget.
            scale: 1 for the budget itself, and less for a stricter budget.

        Raises:
            InvalidRequest: If the notion does not accept this scale.
        """

    @abstractmethod
    def measure_stick(self, laws: Laws, position: Fraction) -> ExpNumber:
        """Compute the exact hockey stick at a position.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            position: The ε, or the slope, of the hockey stick.
        """

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Compute every hockey stick.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return tuple(self.measure_stick(laws, position) for position, _ in self.sticks(budget))

    def work_per_outcome(self, budget: Values) -> int:
        """Return the work for one outcome at all points of the budget.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        points = budget.get(self.name)
        count = len(points) if isinstance(points, tuple) else 1
        return self.WORK_PER_STICK * max(count, 1)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether every hockey stick is at most its δ.

        Args:
            measurement: Value of every hockey stick, in the order of `sticks`.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return all(
            stick <= delta
            for stick, (_, delta) in zip(measurement, self.sticks(budget), strict=True)
        )

    def tightest_stick(self, measurement: Any, budget: Values) -> tuple[bool, float, int]:
        """Find the hockey stick that exceeds its δ most, or comes closest to it.

        A hockey stick above its δ goes before all others.

        Args:
            measurement: Value of every hockey stick, in the order of `sticks`.
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Returns:
            (whether it is above its δ, its excess over δ, its position in the budget).
        """
        candidates = []
        for position, (_, delta) in enumerate(self.sticks(budget)):
            stick = measurement[position]
            candidates.append((stick > delta, stick.upper - float(delta), position))
        return max(candidates)

    def severity(self, measurement: Any, budget: Values) -> Any:
        """Return the tightest hockey stick, to choose what to show.

        Args:
            measurement: Value of every hockey stick, in the order of `sticks`.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return self.tightest_stick(measurement, budget)


class Curve(HockeySticks):
    """DP at several budgets (ε, δ) at once.

    The parameter `curve` is a list of pairs (ε, δ), or a mapping ε -> δ.
    """

    name = "curve"
    title = "DP curve"
    parameters = ("curve",)
    quantity = "curve"
    BUDGET_FORMAT = "a list of pairs (epsilon, delta)"
    _point_notion = DP()

    def parse(self, parameter: str, value: Any) -> Any:
        """Read pairs (ε, δ) as exact numbers, sorted by ε.

        Args:
            parameter: One of `parameters`, the names of the parameters of the notion.
            value: As for `read_pairs`.

        Raises:
            InvalidRequest: If there is no pair, if an ε is negative or occurs twice, if a δ is
                outside [0, 1], or if δ grows with ε.
        """
        pairs = self.read_pairs(value)
        points = {}
        for epsilon, delta in pairs:
            key = read_positive(epsilon, "epsilon", or_zero=True)
            points[key] = read_probability(delta, "delta")
        if not points or len(points) < len(pairs):
            must(parameter, f"{self.BUDGET_FORMAT}, each epsilon once", repr(value))
        curve = sorted(points.items())
        for (low, low_delta), (high, high_delta) in itertools.pairwise(curve):
            # An (ε, δ)-private mechanism is so at every larger ε.
            if high_delta > low_delta:
                points_text = (
                    f"{float(low_delta):g} at {float(low):g} and "
                    f"{float(high_delta):g} at {float(high):g}"
                )
                constraint = f"{self.BUDGET_FORMAT} whose delta does not grow with epsilon"
                must(parameter, constraint, points_text)
        return tuple(curve)

    def sticks(self, budget: Values) -> Sequence[Stick]:
        """Return the points (ε, δ).

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        points: Sequence[Stick] = budget["curve"]
        return points

    def scale_budget(self, points: Sequence[Stick], scale: Fraction) -> Sequence[Stick]:
        """Multiply every ε by the scale.

        Args:
            points: The points (ε, δ).
            scale: The factor > 0 of every ε.
        """
        return tuple((epsilon * scale, delta) for epsilon, delta in points)

    def measure_stick(self, laws: Laws, position: Fraction) -> ExpNumber:
        """Compute the exact δ at ε.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            position: The ε of the hockey stick.
        """
        delta: ExpNumber = self._point_notion.measure(laws, {"epsilon": position})
        return delta

    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe the δ beside the requested one, at the ε of the tightest hockey stick.

        Args:
            measurement: Value of every hockey stick, in the order of `sticks`.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: Not used.
        """
        _, _, index = self.tightest_stick(measurement, budget)
        epsilon, delta = budget["curve"][index]
        point_text = f"epsilon = {float(epsilon):.9g}, of {len(budget['curve'])} on the curve"
        point_budget = {"epsilon": epsilon, "delta": delta}
        return self._point_notion.describe_finding(measurement[index], point_budget, point_text)

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe an outcome with P > e^ε Q at the ε of the tightest hockey stick.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        _, _, index = self.tightest_stick(result.measurement, result.budget)
        epsilon, _ = result.budget["curve"][index]
        point_budget = {"epsilon": epsilon}
        point_result = ComparisonResult(result.label, result.measurement[index], point_budget)
        return self._point_notion.describe_witness(laws, point_result, names)

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return a hockey stick for every point.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return tuple(HockeyStick(epsilon, delta) for epsilon, delta in budget["curve"])
