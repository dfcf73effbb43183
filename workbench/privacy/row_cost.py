"""Compute the privacy cost of one row of a column: between neighbours, and between any two values.

The budget of a mechanism holds between neighbours, which may only be numbers near each other.
People need the budget between any two values of the domain of the column. The domain is the set of
inputs of the mechanism, or the range of `--clip`. It is never read from the data. The budget
between any two values is the smaller one of

* the exact ε of the same law with every two values of the domain as neighbours, at the same δ, and
* (kε, δ (1 + e^ε + ... + e^((k-1)ε))), if any two values are connected by k steps between
  neighbours.
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

# Above this number of masses, the budget between any two values is only the sum of steps.
_MAX_AUDIT_MASSES = 3_000_000
_MAX_PROFILE_MASSES = 300_000  # The same limit for δ > 0, which needs every comparison.
_BITS_PER_SHORT_INTEGER = 512  # A mass with more bits counts as several masses.
_MAX_EXPONENT = 700  # Above this ε, e^ε is no double, and no protection is claimed.
_MAX_STEPS = 10_000  # Sums of more steps are not computed for δ > 0.
_BISECTIONS = 40  # The interval of the smallest ε at a δ is halved this many times.


@dataclass(frozen=True)
class RowCost:
    """The privacy cost of one row.

    Attributes:
        neighbours: ε and δ between neighbours. None for a notion without ε and δ.
        any_two: ε and δ between any two values of the domain. None if they are not known. Its ε is
            None if distant values have no protection.
        is_local: Whether `any_two` is larger than `neighbours`: distant values are protected less.
        domain: The possible values in words. None if there is no bound on them.
        notion: Name of the notion of the claim.
        rho: ρ of zCDP between any two values. None if it is not known.
        neighbour_condition: Clause that says which values are neighbours.
    """

    neighbours: PrivacyBudget | None
    any_two: PrivacyBudget | None
    is_local: bool
    domain: str | None
    notion: str
    rho: Fraction | None = None
    neighbour_condition: str = ""

    def for_rows(self, count: int) -> RowCost:
        """Return the cost of several rows of one person, by basic composition.

        Args:
            count: Number of rows.
        """
        rho = None
        if self.rho is not None:
            rho = self.rho * count
        return replace(
            self,
            neighbours=add_budgets([self.neighbours], count),
            any_two=add_budgets([self.any_two], count),
            rho=rho,
        )

    @property
    def headline(self) -> str:
        """Return both budgets in words, or one if they are equal."""
        values = "values"
        if self.domain is not None:
            values = f"of {self.domain}"
        any_two = "no epsilon"  # If it is not known.
        if self.any_two is not None:
            any_two = str(self.any_two)
        if not self.is_local and self.neighbours == self.any_two:
            return f"{any_two}, between any two {values}"
        between = "see the claim: its notion has no epsilon"
        if self.neighbours is not None:
            between = str(self.neighbours)
        elif self.any_two is None:
            return between
        if self.is_local or (self.neighbours and self.neighbours.per_distance):
            return f"{between} between neighbours; {any_two} between any two {values}"
        return f"{between}; {any_two} between any two {values}"

    @property
    def sentences(self) -> list[str]:
        """Return sentences that explain a local guarantee. A global one needs none."""
        if not self.is_local:
            return []
        condition = self.neighbour_condition or "that are neighbours"
        near = f"Only values {condition} are hidden from each other at the first budget."
        if self.any_two is None or self.any_two.epsilon is None:
            bound = ""
            if self.domain is None:
                bound = " without a bound"
            return [
                f"{near} A person whose value could be any number{bound} has no stated "
                "protection: whoever sees the published number may distinguish distant values with "
                "certainty."
            ]
        percent = min(100, math.ceil(100 * bound_right_guesses(self.any_two)))
        return [
            f"{near} A person whose value could be any in {self.domain} is only protected at "
            f"{self.any_two}: an attacker who considers two such values equally likely guesses "
            f"right in up to {percent} of 100 cases. Without the release it is 50 of 100."
        ]

    def to_dict(self) -> Record:
        """Return the cost as data for JSON.

        Returns:
            budget_of_a_row and budget_between_any_two_values (each None or a `budget_record`),
            domain (text or None), local_neighbours (whether the second budget is worse).
        """
        return {
            "budget_of_a_row": budget_record(self.neighbours),
            "budget_between_any_two_values": budget_record(self.any_two),
            "domain": self.domain,
            "local_neighbours": self.is_local,
        }


def bound_right_guesses(budget: PrivacyBudget) -> float:
    """Return the largest probability of a right guess, (e^ε + δ)/(1 + e^ε), rounded up.

    The guess is between two equally likely inputs.

    Args:
        budget: Budget between the two inputs.
    """
    if budget.epsilon is None or budget.epsilon > _MAX_EXPONENT:
        return 1.0
    growth = math.exp(float(budget.epsilon))
    return min(1.0, (growth + float(budget.delta)) / (1 + growth) * (1 + 1e-15))


def find_exact_budget(mechanism: Any, delta: Fraction) -> PrivacyBudget | None:
    """Find the smallest ε of a mechanism at a δ, decided exactly and rounded up.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        delta: δ in [0, 1).

    Returns:
        The budget, with ε None if no ε is sufficient. None if the computation would take too long.
    """
    size = mechanism.audit_size
    # A long integer takes as much work as several short ones.
    masses = size.outcomes * (1 + size.bits // _BITS_PER_SHORT_INTEGER)
    if not delta:
        # The pure ε needs only the extreme comparisons, if the mechanism states which these are.
        if masses * (size.extremes or size.comparisons) > _MAX_AUDIT_MASSES:
            return None
        pure_epsilon = audit_extremes(mechanism, 0).pure_epsilon
        return PrivacyBudget(None if math.isinf(pure_epsilon) else Fraction(pure_epsilon))
    if masses * size.comparisons > _MAX_PROFILE_MASSES:
        return None
    curve = profile(mechanism)
    # The last piece of a curve is for ε -> infinity. There δ is the mass of the outcomes that the
    # neighbour never produces.
    if any(pieces[-1].p > delta for pieces in curve.curves):
        return PrivacyBudget(epsilon=None, delta=delta)
    high = Fraction(1)
    while curve.exact_delta(high) > delta:
        high *= 2
    low = high / 2 if high > 1 else Fraction(0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if curve.exact_delta(middle) > delta:
            low = middle
        else:
            high = middle
    return PrivacyBudget(Fraction(round_up(high)), delta)


def compose_steps(budget: PrivacyBudget, steps: int) -> PrivacyBudget:
    """Return the budget between values that are several steps apart, by group privacy.

    k steps of (ε, δ) are (kε, δ (1 + e^ε + ... + e^((k-1)ε))).

    Args:
        budget: Budget of one step.
        steps: Number of steps.
    """
    if budget.epsilon is None:
        return PrivacyBudget(epsilon=None)
    if not budget.delta:
        return PrivacyBudget(budget.epsilon * steps)
    if steps > _MAX_STEPS or budget.epsilon * steps > _MAX_EXPONENT:
        return PrivacyBudget(epsilon=None)
    growth_factors = [Fraction(math.exp(float(budget.epsilon) * k)) for k in range(steps)]
    delta = sum(growth_factors) * budget.delta
    # The margin covers the rounding of the exponentials.
    delta = Fraction(round_up(delta * (1 + Fraction(1, 10**12))))
    if delta < 1:
        return PrivacyBudget(budget.epsilon * steps, delta)
    return PrivacyBudget(epsilon=None)


def budget_record(budget: PrivacyBudget | None) -> Record | None:
    """Return a budget as data for a report, or None if there is none."""
    if budget is None:
        return None
    return budget.to_dict()
