"""Add the budgets (ε, δ) of one person in several rows and releases, by basic composition.

    one row, an (ε, δ)-private mechanism      (ε, δ)
    at most k rows of one person              (k ε, k δ)
    releases 1..m of the same rows            (Σ k_i ε_i, Σ k_i δ_i)

These sums also hold for adaptive releases, and are upper bounds. The δ of probabilistic DP (PDP) is
the mass of the outcomes whose privacy loss exceeds ε, and it adds up as well. Budgets per unit of
distance are only added to each other. Notions without ε and δ (zCDP, Rényi,
GDP, a curve) are not added here.
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
    """The budget (ε, δ) of one person's part in a release.

    Attributes:
        epsilon: ε >= 0. None if it is unbounded.
        delta: δ >= 0.
        per_distance: Whether ε is per unit of |x - x'|.
    """

    epsilon: Fraction | None
    delta: Fraction = ZERO
    per_distance: bool = False

    def __str__(self) -> str:
        epsilon = "unbounded"
        if self.epsilon is not None:
            epsilon = format_rational(self.epsilon)
        unit = ""
        if self.per_distance:
            unit = " per unit of distance"
        delta = ""
        if self.delta:
            delta = f", delta = {format_rational(self.delta)}"
        return f"epsilon = {epsilon}{unit}{delta}"

    @property
    def zcdp_rho(self) -> Fraction | None:
        """Return ε²/2, the ρ of a pure budget (Bun and Steinke 2016). None for another budget."""
        if self.epsilon is None or self.delta or self.per_distance:
            return None
        return self.epsilon**2 / 2

    def round_up_epsilon(self) -> PrivacyBudget:
        """Return the budget with ε rounded up to six digits."""
        if self.epsilon is None:
            return self
        context = Context(prec=6, rounding=ROUND_CEILING)
        numerator = Decimal(self.epsilon.numerator)
        denominator = Decimal(self.epsilon.denominator)
        return replace(self, epsilon=Fraction(context.divide(numerator, denominator)))

    def is_within(self, limit: PrivacyBudget | None) -> bool:
        """Return whether ε and δ are at most those of another budget of the same unit.

        Args:
            limit: The other budget. None for no budget, which nothing is within.
        """
        if limit is None or self.per_distance != limit.per_distance or self.delta > limit.delta:
            return False
        return limit.epsilon is None or (self.epsilon is not None and self.epsilon <= limit.epsilon)

    def to_dict(self) -> Record:
        """Return epsilon, delta and per_distance for JSON, rounded up. An unbounded ε is "inf"."""
        return {
            "epsilon": "inf" if self.epsilon is None else round_up(self.epsilon),
            "delta": round_up(self.delta),
            "per_distance": self.per_distance,
        }


def budget_of_claim(claim: Claim) -> PrivacyBudget | None:
    """Return ε and δ of a claim, with the largest ε if neighbours have different ones.

    Args:
        claim: Notion of privacy with the exact values of its parameters.

    Returns:
        None for a notion without ε and δ.
    """
    if not claim.is_epsilon_delta:
        return None
    epsilon = claim.epsilon
    if isinstance(epsilon, Mapping):
        epsilon = max(epsilon.values())
    return PrivacyBudget(epsilon, claim.delta, claim.notion.is_per_distance)


def add_budgets(budgets: Sequence[PrivacyBudget | None], rows: int = 1) -> PrivacyBudget | None:
    """Add budgets by basic composition.

    Args:
        budgets: Budgets of one row each. None for an unknown budget.
        rows: Number of rows of one person.

    Returns:
        The sum. None if a budget is unknown, or if the units differ.
    """
    known_budgets = [budget for budget in budgets if budget is not None]
    units = {budget.per_distance for budget in known_budgets}
    if len(known_budgets) < len(budgets) or len(units) > 1:
        return None
    finite = [budget.epsilon for budget in known_budgets if budget.epsilon is not None]
    epsilon = None
    if len(finite) == len(known_budgets):
        epsilon = sum(finite, ZERO) * rows
    delta = sum((budget.delta for budget in known_budgets), ZERO) * rows
    return PrivacyBudget(epsilon, min(ONE, delta), any(units))
