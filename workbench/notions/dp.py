"""(ε, δ)-DP: the hockey stick Σ max(0, P - e^ε Q) = P(V) - e^ε Q(V) is at most δ, V = {P > e^ε Q}."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from workbench.exact.numbers import ZERO, ExpNumber, RationalPair, positive, probability
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import (
    HockeyStick,
    Notion,
    Requirement,
    Result,
    Values,
    apart,
    decimal,
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
            positive(value, parameter, or_zero=True)
            if parameter == "epsilon"
            else probability(value, parameter)
        )

    def ratio_decides(self, values: Values) -> bool:
        """Where δ = 0, so that no outcome may have P > e^ε Q: of a subclass that measures something else, no."""
        same = (type(self).measure, type(self).meets) == (DeltaNotion.measure, DeltaNotion.meets)
        return same and values.get("delta") == 0

    def measure(self, laws: Laws, values: Values) -> Any:
        """The exact δ at ε."""
        epsilon = values["epsilon"]
        return ExpNumber.of(*self.coefficients(*laws.above(epsilon)), epsilon)

    def meets(self, measured: Any, values: Values) -> bool:
        """Whether the exact δ is at most the one asked."""
        return bool(measured <= values["delta"])

    def size(self, measured: Any, values: Values) -> Any:
        """The δ, compared exactly."""
        return measured

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
        epsilon = result.values["epsilon"]
        return (
            laws.exceeding(laws.telling_outcome(epsilon), epsilon, names) if result.label else None
        )


class DP(DeltaNotion):
    """Approximate differential privacy."""

    name = "dp"
    title = "DP"
    quantity = "dp_delta"
    composes = True
    convex = True  # a maximum of functions linear in (P, Q)
    counts_excess = True

    def requires(self, values: Values) -> tuple[Requirement, ...]:
        """The hockey stick itself."""
        return (HockeyStick(values["epsilon"], values["delta"]),)
