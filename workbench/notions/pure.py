"""Pure ε-DP: P <= e^ε Q on every outcome, decided from the largest ratio, a rational."""

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
    """max P/Q, None where Q vanishes and P does not; outcome: where; mass: P of all outcomes above e^ε."""

    value: Fraction | None
    outcome: int
    mass: Fraction

    @property
    def loss(self) -> float:
        """The largest privacy loss ln P/Q, rounded up; inf where Q is 0."""
        return math.inf if self.value is None else log_upper_bound(self.value)


class Pure(Notion):
    """ε-DP. A budget has a delta for the sake of files and requests; it must be 0."""

    name = "pure"
    title = "pure DP"
    parameters = ("epsilon", "delta")
    defaults: ClassVar[Values] = {"delta": ZERO}
    quantity = "ratio"
    is_convex = True
    has_delta = False

    def parse(self, parameter: str, value: Any) -> Fraction:
        """ε >= 0, δ = 0."""
        if parameter == "epsilon":
            return read_positive(value, "epsilon", or_zero=True)
        if read_probability(value, "delta"):
            must("delta", f"0 for the notion {self.name}", value)
        return ZERO

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Yes."""
        return True

    def measure(self, laws: Laws, budget: Values) -> Any:
        """The largest ratio."""
        value, outcome = laws.max_ratio
        return Ratio(value, outcome, laws.violation_masses(budget["epsilon"])[0])

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether the ratio is at most e^ε."""
        return (
            measurement.value is not None
            and sign_exp(measurement.value, ONE, budget["epsilon"]) <= 0
        )

    def severity(self, measurement: Any, budget: Values) -> Any:
        """The ratio; of those that are unbounded, the mass above e^ε."""
        return (
            measurement.value is None,
            measurement.mass if measurement.value is None else measurement.value,
        )

    def worst_violation(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """The loss furthest above its own budget."""
        return max(
            results,
            key=lambda result: (
                result.measurement.loss - float(result.budget["epsilon"]),
                result.measurement.mass,
            ),
        )

    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """The exact ε beside the one asked."""
        reached = "unbounded" if measurement.value is None else repr(measurement.loss)
        return f"exact pure epsilon is {reached}, asked {budget_text}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """The outcome of largest ratio."""
        return laws.describe_excess(result.measurement.outcome, result.budget["epsilon"], names)

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """The hockey stick with nothing above."""
        return (HockeyStick(budget["epsilon"]),)
