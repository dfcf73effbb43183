"""Pure ε-DP: P <= e^ε Q on every outcome, decided from the largest ratio, a rational."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from workbench.errors import must
from workbench.exact.numbers import ONE, ZERO, ln_up, positive, probability, sign_exp
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import HockeyStick, Notion, Requirement, Result, Values


@dataclass(frozen=True)
class Ratio:
    """max P/Q, None where Q vanishes and P does not; outcome: where; mass: P of all outcomes above e^ε."""

    value: Fraction | None
    outcome: int
    mass: Fraction

    @property
    def loss(self) -> float:
        """The largest privacy loss ln P/Q, rounded up; inf where Q is 0."""
        return math.inf if self.value is None else ln_up(self.value)


class Pure(Notion):
    """ε-DP. A budget has a delta for the sake of files and requests; it must be 0."""

    name = "pure"
    title = "pure DP"
    parameters = ("epsilon", "delta")
    defaults: ClassVar[Values] = {"delta": ZERO}
    quantity = "ratio"
    convex = True
    has_delta = False

    def parse(self, parameter: str, value: Any) -> Fraction:
        """ε >= 0, δ = 0."""
        if parameter == "epsilon":
            return positive(value, "epsilon", or_zero=True)
        if probability(value, "delta"):
            must("delta", f"0 for the notion {self.name}", value)
        return ZERO

    def ratio_decides(self, values: Values) -> bool:
        """Yes."""
        return True

    def measure(self, laws: Laws, values: Values) -> Any:
        """The largest ratio."""
        value, outcome = laws.max_ratio
        return Ratio(value, outcome, laws.above(values["epsilon"])[0])

    def meets(self, measured: Any, values: Values) -> bool:
        """Whether the ratio is at most e^ε."""
        return measured.value is not None and sign_exp(measured.value, ONE, values["epsilon"]) <= 0

    def size(self, measured: Any, values: Values) -> Any:
        """The ratio; of those that are unbounded, the mass above e^ε."""
        return measured.value is None, measured.mass if measured.value is None else measured.value

    def most_broken(self, results: Sequence[Result]) -> Result:
        """The loss furthest above its own budget."""
        return max(
            results,
            key=lambda result: (
                result.measured.loss - float(result.values["epsilon"]),
                result.measured.mass,
            ),
        )

    def finding(self, worst: Any, values: Values, budget: str) -> str:
        """The exact ε beside the one asked."""
        reached = "unbounded" if worst.value is None else repr(worst.loss)
        return f"exact pure epsilon is {reached}, asked {budget}"

    def witness(self, laws: Laws, result: Result, names: Names) -> str | None:
        """The outcome of largest ratio."""
        return laws.exceeding(result.measured.outcome, result.values["epsilon"], names)

    def requires(self, values: Values) -> tuple[Requirement, ...]:
        """The hockey stick with nothing above."""
        return (HockeyStick(values["epsilon"]),)
