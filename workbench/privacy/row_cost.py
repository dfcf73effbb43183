"""What one row of a column costs: the budget between neighbours, and the one between any two values.

The budget of a mechanism holds between neighbours, which may be numbers near each other alone. What a person is told is
the budget between any two values of the column's domain: the inputs of the mechanism or the range that numbers are
clipped to, never one read from the data. It is the least that is known of

    the exact privacy loss of the same law where every two values of the domain are neighbours, at the same δ
    (kε, δ (1 + e^ε + ... + e^((k-1)ε))) where any two values are joined by k steps between neighbours
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from workbench.exact.numbers import round_up
from workbench.exact.objects import Record
from workbench.privacy.audit import audit_extremes
from workbench.privacy.curve import profile
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets

_MAX_AUDIT_MASSES = (
    3_000_000  # Beyond so many masses the budget between any two values is the sum of steps.
)
_MAX_PROFILE_MASSES = 300_000  # The same where δ > 0, which takes every comparison.


@dataclass(frozen=True)
class RowCost:
    """What one row costs.

    Attributes:
        neighbours: ε and δ between neighbours; None for a notion without them.
        any_two: ε and δ between any two values of the domain; None where they are not known.
        is_local: whether the second is worse: then values far apart are protected less.
        domain: the values, in words; None where there is no bound on them.
        notion: of the mechanism's claim.
        rho: between any two values, in zCDP, where that is known.
        apart: which values are neighbours, in words.
    """

    neighbours: PrivacyBudget | None
    any_two: PrivacyBudget | None
    is_local: bool
    domain: str | None
    notion: str
    rho: Fraction | None = None
    neighbour_condition: str = ""

    def for_rows(self, count: int) -> RowCost:
        """The same of a person with so many rows, by basic composition."""
        rho = None if self.rho is None else self.rho * count
        return replace(
            self,
            neighbours=add_budgets([self.neighbours], count),
            any_two=add_budgets([self.any_two], count),
            rho=rho,
        )

    @property
    def headline(self) -> str:
        """Both numbers in words."""
        values = "values" if self.domain is None else f"of {self.domain}"
        any_two = "no epsilon" if self.any_two is None else str(self.any_two)
        if not self.is_local and self.neighbours == self.any_two:
            return f"{any_two}, between any two {values}"
        if self.neighbours is None and self.any_two is None:
            return "see the claim: its notion has no epsilon"
        between = (
            "see the claim: its notion has no epsilon"
            if self.neighbours is None
            else str(self.neighbours)
        )
        if self.is_local or (self.neighbours and self.neighbours.per_distance):
            return f"{between} between neighbours; {any_two} between any two {values}"
        return f"{between}; {any_two} between any two {values}"

    @property
    def sentences(self) -> list[str]:
        """What a local guarantee means for a person."""
        if not self.is_local:
            return []
        near = f"Only values {self.neighbour_condition or 'that are neighbours'} are hidden among each other at the first budget."
        if self.any_two is None or self.any_two.epsilon is None:
            bound = " without a bound" if self.domain is None else ""
            return [
                f"{near} Somebody whose value could be any{bound} has no stated protection: whoever sees the published "
                "number may tell values far apart with certainty."
            ]
        percent = min(100, math.ceil(100 * bound_right_guesses(self.any_two)))
        return [
            f"{near} Of somebody whose value could be any in {self.domain}, {self.any_two} is all that is promised: "
            f"whoever holds two such values for equally likely may guess right in up to {percent} of 100 cases; 50 is "
            "guessing."
        ]

    def to_dict(self) -> Record:
        """JSON-ready."""
        return {
            "budget_of_a_row": budget_record(self.neighbours),
            "budget_between_any_two_values": budget_record(self.any_two),
            "domain": self.domain,
            "local_neighbours": self.is_local,
        }


def bound_right_guesses(budget: PrivacyBudget) -> float:
    """The largest probability of a right guess between two equally likely inputs: (e^ε + δ)/(1 + e^ε)."""
    if budget.epsilon is None or budget.epsilon > 700:
        return 1.0
    growth = math.exp(float(budget.epsilon))
    return min(1.0, (growth + float(budget.delta)) / (1 + growth) * (1 + 1e-15))


def find_exact_budget(joined: Any, delta: Fraction) -> PrivacyBudget | None:
    """The least ε at a δ of a mechanism, decided exactly and rounded up; None where that takes too long."""
    size = joined.audit_size
    masses = size.outcomes * (1 + size.bits // 512)
    if masses * (size.extremes or size.comparisons) <= _MAX_AUDIT_MASSES:
        pure = audit_extremes(joined, 0).pure_epsilon
        if not delta:
            return PrivacyBudget(None if math.isinf(pure) else Fraction(pure))
    if not delta or masses * size.comparisons > _MAX_PROFILE_MASSES:
        return None
    curve = profile(joined)
    if any(pieces[-1].p > delta for pieces in curve.curves):
        return PrivacyBudget(None, delta)
    high = Fraction(1)
    while curve.exact_delta(high) > delta:
        high *= 2
    low = high / 2 if high > 1 else Fraction(0)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if curve.exact_delta(middle) > delta else (low, middle)
    return PrivacyBudget(Fraction(round_up(high)), delta)


def compose_steps(budget: PrivacyBudget, steps: int) -> PrivacyBudget:
    """Group privacy: k steps of (ε, δ) are (kε, δ (1 + e^ε + ... + e^((k-1)ε)))."""
    if budget.epsilon is None or not budget.delta:
        return PrivacyBudget(None if budget.epsilon is None else budget.epsilon * steps)
    if budget.epsilon * steps > 700:
        return PrivacyBudget(None)
    delta = (
        sum(Fraction(math.exp(float(budget.epsilon) * k)) for k in range(min(steps, 10_000)))
        * budget.delta
    )
    delta = Fraction(round_up(delta * (1 + Fraction(1, 10**12))))
    return (
        PrivacyBudget(budget.epsilon * steps, delta)
        if delta < 1 and steps < 10_000
        else PrivacyBudget(None)
    )


def budget_record(budget: PrivacyBudget | None) -> Record | None:
    """A budget for a report; None where there is none."""
    return None if budget is None else budget.to_dict()
