"""(ε, δ)-DP: the hockey stick Σ max(0, P - e^ε Q) = P(V) - e^ε Q(V) is at most δ, V = {P > e^ε Q}."""

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
    """A notion with a budget (ε, δ) whose measure is a δ, one number a - b e^ε for every ε.

    counts_excess: whether δ is the excess P(V) - e^ε Q(V), and not the whole mass P(V).
    """

    parameters = ("epsilon", "delta")
    defaults: ClassVar[Values] = {"delta": ZERO}
    has_delta = True
    counts_excess: ClassVar[bool]

    def coefficients(self, a: Fraction, b: Fraction) -> RationalPair:
        """Return (c, d) with δ = c - d e^ε, from a = P(V) and b = Q(V)."""
        return a, b if self.counts_excess else ZERO

    def parse(self, parameter: str, value: Any) -> Fraction:
        """ε >= 0, δ in [0, 1]."""
        return (
            read_positive(value, parameter, or_zero=True)
            if parameter == "epsilon"
            else read_probability(value, parameter)
        )

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Where δ = 0, so that no outcome may have P > e^ε Q: of a subclass that measures something else, no."""
        same = (type(self).measure, type(self).is_within_budget) == (
            DeltaNotion.measure,
            DeltaNotion.is_within_budget,
        )
        return same and budget.get("delta") == 0

    def measure(self, laws: Laws, budget: Values) -> Any:
        """The exact δ at ε."""
        epsilon = budget["epsilon"]
        return ExpNumber.from_terms(*self.coefficients(*laws.violation_masses(epsilon)), epsilon)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether the exact δ is at most the one asked."""
        return bool(measurement <= budget["delta"])

    def severity(self, measurement: Any, budget: Values) -> Any:
        """The δ, compared exactly."""
        return measurement

    def delta_upper_bound(self, measured: Any) -> Fraction:
        """A rational that δ does not exceed: δ itself where it is one, else at most 2^-60 of it above."""
        delta: ExpNumber = measured
        return delta.a if delta.b == 0 else delta.tight_enclosure()[1]

    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """The exact δ beside the one asked."""
        allowed = values["delta"]
        return f"exact {self.title} delta is {format_delta(self.delta_upper_bound(measurement), allowed)} at {budget_text}, asked {format_rational(allowed)}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """One of the outcomes above e^ε."""
        epsilon = result.budget["epsilon"]
        return (
            laws.describe_excess(laws.example_violation(epsilon), epsilon, names)
            if result.label
            else None
        )


class DP(DeltaNotion):
    """Approximate differential privacy."""

    name = "dp"
    title = "DP"
    quantity = "dp_delta"
    can_compose = True
    is_convex = True  # a maximum of functions linear in (P, Q)
    counts_excess = True

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """The hockey stick itself."""
        return (HockeyStick(budget["epsilon"], budget["delta"]),)
