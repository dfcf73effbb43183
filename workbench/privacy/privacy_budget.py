"""(ε, δ) of one person's part in a release, and their sums by basic composition.

    one row of a person, M (ε, δ)-private     (ε, δ)
    at most k rows of one person              (k ε, k δ)
    releases 1..m of the same rows            (Σ k_i ε_i, Σ k_i δ_i)

These sums hold for adaptive releases too, and are upper bounds; δ of PDP is a mass outside of which the loss is within
ε, and adds up as well. Budgets per unit of distance add up among themselves. Notions without ε and δ (zCDP, Rényi, GDP,
a curve) are not added up here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from workbench.exact.numbers import ONE, ZERO, round_up
from workbench.exact.objects import Record
from workbench.notions.notion import format_rational
from workbench.privacy.claim import Claim


@dataclass(frozen=True)
class PrivacyBudget:
    """(ε, δ) of one person's part in a release; ε None: unbounded. per_distance: ε is per unit of |x - x'|."""

    epsilon: Fraction | None
    delta: Fraction = ZERO
    per_distance: bool = False

    def __str__(self) -> str:
        epsilon = "unbounded" if self.epsilon is None else format_rational(self.epsilon)
        unit = " per unit of distance" if self.per_distance else ""
        return f"epsilon = {epsilon}{unit}" + (
            f", delta = {format_rational(self.delta)}" if self.delta else ""
        )

    def round_up_epsilon(self) -> PrivacyBudget:
        """The same with an ε of six digits, which is not less."""
        if self.epsilon is None:
            return self
        digits = Context(prec=6, rounding=ROUND_CEILING)
        epsilon = digits.divide(Decimal(self.epsilon.numerator), Decimal(self.epsilon.denominator))
        return replace(self, epsilon=Fraction(epsilon))

    def is_within(self, other: PrivacyBudget | None) -> bool:
        """Whether both numbers are at most those of another budget of the same unit."""
        if other is None or self.per_distance != other.per_distance or self.delta > other.delta:
            return False
        return other.epsilon is None or (self.epsilon is not None and self.epsilon <= other.epsilon)

    def to_dict(self) -> Record:
        """JSON-ready, rounded up; "inf" for an unbounded ε."""
        epsilon = "inf" if self.epsilon is None else round_up(self.epsilon)
        return {
            "epsilon": epsilon,
            "delta": round_up(self.delta),
            "per_distance": self.per_distance,
        }


def budget_of_claim(claim: Claim) -> PrivacyBudget | None:
    """ε and δ of a claim, the largest ε where neighbours have their own; None for a notion without them."""
    if not claim.is_epsilon_delta:
        return None
    largest = max(claim.epsilon.values()) if isinstance(claim.epsilon, Mapping) else claim.epsilon
    return PrivacyBudget(largest, claim.delta, claim.notion.is_per_distance)


def add_budgets(budgets: Sequence[PrivacyBudget | None], rows: int = 1) -> PrivacyBudget | None:
    """The sum of budgets, each for k rows of a person; None where one is unknown, or their units differ."""
    known = [budget for budget in budgets if budget is not None]
    units = {budget.per_distance for budget in known}
    if len(known) < len(budgets) or len(units) > 1:
        return None
    finite = [budget.epsilon for budget in known if budget.epsilon is not None]
    epsilon = sum(finite, ZERO) * rows if len(finite) == len(known) else None
    return PrivacyBudget(
        epsilon, min(ONE, sum((budget.delta for budget in known), ZERO) * rows), any(units)
    )
