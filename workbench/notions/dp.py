"""Decide (ε, δ)-DP: the hockey stick Σ max(0, P - e^ε Q) is at most δ.

P and Q are the laws of the output for two neighbours. The value of the hockey stick is
P(V) - e^ε Q(V), where V is the set of the outcomes with P > e^ε Q (the violations).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from workbench.exact.numbers import ZERO, ExpNumber, RationalPair, read_positive, read_probability
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import (
    ComparisonResult,
    HockeyStick,
    Notion,
    Requirement,
    Values,
    format_delta,
    format_rational,
)


class DeltaNotion(Notion):
    """A notion with a budget (ε, δ) whose measurement is the smallest δ at ε, a number a - b e^ε.

    Attributes:
        counts_excess: Whether δ is the excess P(V) - e^ε Q(V), and not the whole mass P(V).
    """

    parameters = ("epsilon", "delta")
    defaults: ClassVar[Values] = {"delta": ZERO}
    has_delta = True
    counts_excess: ClassVar[bool]

    def coefficients(self, p_mass: Fraction, q_mass: Fraction) -> RationalPair:
        """Return (a, b) with δ = a - b e^ε.

        Args:
            p_mass: The mass P(V) of the violations.
            q_mass: The mass Q(V) of the violations.
        """
        return p_mass, q_mass if self.counts_excess else ZERO

    def parse(self, parameter: str, value: Any) -> Fraction:
        """Read ε >= 0 or δ in [0, 1].

        Args:
            parameter: One of `parameters`, the names of the parameters of the notion.
            value: Number, or text of a number, as the user gave it.

        Raises:
            InvalidRequest: If the value is no number, ε is negative, or δ is outside [0, 1].
        """
        if parameter == "epsilon":
            return read_positive(value, parameter, or_zero=True)
        return read_probability(value, parameter)

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Return whether the largest ratio P/Q decides the claim, because δ is 0.

        It is False for a subclass that measures or decides in another way.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        # A subclass with its own measure or decision need not agree with the ratio.
        is_measure_overridden = type(self).measure is not DeltaNotion.measure
        is_decision_overridden = type(self).is_within_budget is not DeltaNotion.is_within_budget
        if is_measure_overridden or is_decision_overridden:
            return False
        return budget.get("delta") == 0

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Compute the exact δ at ε.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        epsilon = budget["epsilon"]
        return ExpNumber.from_terms(*self.coefficients(*laws.violation_masses(epsilon)), epsilon)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether the exact δ is at most the requested one.

        Args:
            measurement: Exact δ of the comparison, an ExpNumber.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return bool(measurement <= budget["delta"])

    def severity(self, measurement: Any, budget: Values) -> Any:
        """Return the δ itself, which is compared exactly.

        Args:
            measurement: Exact δ of the comparison, an ExpNumber.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return measurement

    def delta_upper_bound(self, measurement: Any) -> Fraction:
        """Return δ if it is rational, otherwise a rational that exceeds δ by at most 2^-60 of it.

        Args:
            measurement: The exact δ of the comparison, an ExpNumber.
        """
        delta: ExpNumber = measurement
        return delta.a if delta.b == 0 else delta.tight_enclosure()[1]

    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe the exact δ beside the requested one.

        Args:
            measurement: Exact δ of the comparison, an ExpNumber.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: ε in words, such as "epsilon = 1".
        """
        requested_delta = budget["delta"]
        delta = format_delta(self.delta_upper_bound(measurement), requested_delta)
        return (
            f"exact {self.title} delta is {delta} at {budget_text}, "
            f"requested {format_rational(requested_delta)}"
        )

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe one of the outcomes with P > e^ε Q.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        if not result.label:
            # All pairs of real inputs were measured together, so there are no two laws to show.
            return None
        epsilon = result.budget["epsilon"]
        return laws.describe_excess(laws.example_violation(epsilon), epsilon, names)


class DP(DeltaNotion):
    """Approximate differential privacy."""

    name = "dp"
    title = "DP"
    quantity = "dp_delta"
    can_compose = True
    is_convex = True  # The hockey stick is a maximum of functions that are linear in (P, Q).
    counts_excess = True

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the hockey stick itself.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return (HockeyStick(budget["epsilon"], budget["delta"]),)
