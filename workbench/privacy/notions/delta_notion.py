"""What DP and PDP share: a δ at a budget ε, from the masses A = P(V) and B = Q(V) of V = {P > e^ε Q}."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

from workbench.exact.numbers import ExpNumber, largest, positive, probability
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.notion import Names, Notion, Result, Values
from workbench.privacy.notions.wording import apart, decimal, exceeding, telling_outcome

__all__ = ["DeltaNotion"]


class DeltaNotion(Notion):
    """A notion with a budget (ε, δ) whose measure is a δ, one number a - b e^ε for every ε."""

    parameters = ("epsilon", "delta")
    defaults: ClassVar[Values] = {"delta": Fraction(0)}

    @abstractmethod
    def coefficients(self, a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
        """(c, d) with δ = c - d e^ε, from a = P(V) and b = Q(V)."""

    def of_masses(self, a: Fraction, b: Fraction, epsilon: Fraction) -> ExpNumber:
        """The δ of P against Q at ε, from a = P(V) and b = Q(V)."""
        return ExpNumber.of(*self.coefficients(a, b), epsilon)

    def parse(self, parameter: str, value: Any) -> Fraction:
        """ε >= 0, δ in [0, 1]."""
        return positive(value, parameter, or_zero=True) if parameter == "epsilon" else probability(value, parameter)

    def measure(self, laws: Laws, values: Values) -> Any:
        """The exact δ at ε."""
        epsilon = values["epsilon"]
        return self.of_masses(*laws.above(epsilon), epsilon)

    def meets(self, measured: Any, values: Values) -> bool:
        """Whether the exact δ is at most the one asked."""
        return bool(measured.compare(values["delta"]) <= 0)

    def worst(self, results: Sequence[Result]) -> Result:
        """The largest δ."""
        top = largest(result.measured for result in results)
        return next(result for result in results if result.measured == top)

    def upper(self, measured: Any) -> Fraction:
        """A rational that δ does not exceed: δ itself where it is one, else at most 2^-60 of it above."""
        delta: ExpNumber = measured
        return delta.a if delta.b == 0 else delta.sharp()[1]

    def finding(self, worst: Any, values: Values, budget: str) -> str:
        """The exact δ beside the one asked."""
        allowed = values["delta"]
        return f"exact {self.title} delta is {apart(self.upper(worst), allowed)} at {budget}, asked {decimal(allowed)}"

    def witness(self, laws: Laws, result: Result, names: Names) -> str | None:
        """One of the outcomes above e^ε."""
        if not result.label:
            return None
        epsilon = result.values["epsilon"]
        return exceeding(laws, telling_outcome(laws, epsilon), epsilon, names)
