"""(ε, δ)-DP: the hockey stick Σ max(0, P - e^ε Q) = P(V) - e^ε Q(V) is at most δ, V = {P > e^ε Q}."""

from __future__ import annotations

from fractions import Fraction

from workbench.privacy.notions.delta_notion import DeltaNotion
from workbench.privacy.notions.notion import HockeyStick, Requirement, Values

__all__ = ["DP"]


class DP(DeltaNotion):
    """Approximate differential privacy."""

    name = "dp"
    title = "DP"
    quantity = "dp_delta"
    convex = True  # a maximum of functions linear in (P, Q)

    def coefficients(self, a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
        """δ = a - b e^ε."""
        return a, b

    def requires(self, values: Values) -> tuple[Requirement, ...]:
        """The hockey stick itself."""
        return (HockeyStick(values["epsilon"], values["delta"]),)
