"""Decide pure ε-DP: P <= e^ε Q on every outcome, so the largest ratio P/Q is at most e^ε.

P and Q are the laws of the output for two neighbours. The largest ratio is a rational number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from workbench.errors import must
from workbench.exact.numbers import (
    ONE,
    ZERO,
    log_upper_bound,
    read_positive,
    read_probability,
    sign_exp,
)
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import ComparisonResult, HockeyStick, Notion, Requirement, Values


@dataclass(frozen=True)
class Ratio:
    """The largest ratio of masses, max P/Q.

    Attributes:
        value: The ratio. None if Q vanishes at an outcome where P does not.
        outcome: An outcome with this ratio.
        mass: The mass P of all outcomes with P > e^ε Q.
    """

    value: Fraction | None
    outcome: int
    mass: Fraction

    @property
    def privacy_loss(self) -> float:
        """Return the largest privacy loss ln P/Q, rounded up, or inf if the ratio is unbounded."""
        return math.inf if self.value is None else log_upper_bound(self.value)


class Pure(Notion):
    """Pure ε-DP. Its budgets also have a delta, which must be 0, as files and requests have one."""

    name = "pure"
    title = "pure DP"
    parameters = ("epsilon", "delta")
    defaults: ClassVar[Values] = {"delta": ZERO}
    quantity = "ratio"
    is_convex = True
    has_delta = False

    def parse(self, parameter: str, value: Any) -> Fraction:
        """Read ε >= 0, or δ, which must be 0.

        Args:
            parameter: One of `parameters`, the names of the parameters of the notion.
            value: Number, or text of a number, as the user gave it.

        Raises:
            InvalidRequest: If ε is negative or no finite number, or δ is not 0.
        """
        if parameter == "epsilon":
            return read_positive(value, "epsilon", or_zero=True)
        if read_probability(value, "delta"):
            must("delta", f"0 for the notion {self.name}", value)
        return ZERO

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Return True: the largest ratio alone decides pure DP.

        Args:
            budget: Not used.
        """
        return True

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Compute the largest ratio of masses.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        value, outcome = laws.max_ratio
        violating_mass, _ = laws.violation_masses(budget["epsilon"])
        return Ratio(value, outcome, violating_mass)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether the ratio is at most e^ε.

        Args:
            measurement: Largest ratio P/Q of the comparison, a Ratio.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        if measurement.value is None:
            return False
        return sign_exp(measurement.value, ONE, budget["epsilon"]) <= 0

    def severity(self, measurement: Any, budget: Values) -> Any:
        """Return (False, the ratio), or (True, the violating mass) if the ratio is unbounded.

        An unbounded ratio is worse than every other one. The violating mass is P of the outcomes
        with P > e^ε Q.

        Args:
            measurement: Largest ratio P/Q of the comparison, a Ratio.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        if measurement.value is None:
            return True, measurement.mass
        return False, measurement.value

    def worst_violation(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """Return the result whose largest privacy loss ln P/Q exceeds its ε most.

        The violating mass breaks ties.

        Args:
            results: Results of comparisons, at least one.
        """

        def excess(result: ComparisonResult) -> tuple[float, Fraction]:
            """Return by how much the loss exceeds ε, and the mass of its outcome for ties."""
            ratio: Ratio = result.measurement
            return ratio.privacy_loss - float(result.budget["epsilon"]), ratio.mass

        return max(results, key=excess)

    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe the exact ε beside the requested one.

        Args:
            measurement: Largest ratio P/Q of the comparison, a Ratio.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: ε in words, such as "epsilon = 1".
        """
        epsilon = "unbounded" if measurement.value is None else repr(measurement.privacy_loss)
        return f"exact pure epsilon is {epsilon}, requested {budget_text}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe the outcome of the largest ratio.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        return laws.describe_excess(result.measurement.outcome, result.budget["epsilon"], names)

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the hockey stick with δ = 0.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return (HockeyStick(budget["epsilon"]),)
