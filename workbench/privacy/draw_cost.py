"""The privacy cost of draws from a mechanism that publish one true answer.

Each draw about the same answer costs the budget of the mechanism once more:

    T draws, each (ε, δ)-private     (Tε, Tδ), by basic composition
    T draws, each ρ-zCDP             Tρ; a pure ε is ε²/2-zCDP (Bun and Steinke 2016)

The claim of a certificate compares neighbouring answers. It protects a person of a table if the
answers of any two neighbouring tables are equal or neighbours. This is a property of the query, and
of the relation between tables, so only the user can state it. A certificate of a joint release also
contains the relation between tables.

For three kinds of mechanisms the cost for a person of a table is not known, so it cannot be booked.
Without a certificate, no neighbours are stated. With directed neighbours, only one of two tables is
protected. If ε is per unit of distance, the distance of neighbouring answers is not stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import must
from workbench.exact.objects import Record
from workbench.notions import BUILT_IN_NOTIONS
from workbench.notions.notion import format_rational
from workbench.privacy.certificate import Certificate
from workbench.privacy.loading import FileContents
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets, budget_of_claim
from workbench.privacy.release_ledger import LedgerEntry
from workbench.privacy.row_cost import budget_record


@dataclass(frozen=True)
class DrawCost:
    """The cost of one draw between neighbouring answers.

    Attributes:
        notion: Name of the notion of the claim, "none" without a certificate.
        budget: ε and δ of one draw. None for a notion without them.
        rho: ρ of zCDP of one draw. None if it is not known.
        refusal: What the file is instead of a certificate whose cost can be booked, such as
            "a certificate of directed neighbours". "" if the cost can be booked.
    """

    notion: str
    budget: PrivacyBudget | None
    rho: Fraction | None
    refusal: str = ""

    @classmethod
    def from_file(cls, contents: FileContents) -> DrawCost:
        """Return the cost of one draw from the mechanism of a file.

        Args:
            contents: Contents of a mechanism file or a certificate.
        """
        certificate = contents.certificate
        if certificate is None:
            return cls(
                notion="none", budget=None, rho=None, refusal="a mechanism without a certificate"
            )
        claim = certificate.claim
        name = claim.notion.name
        if name not in BUILT_IN_NOTIONS:
            return cls(
                notion=name,
                budget=None,
                rho=None,
                refusal=f"a certificate of the notion {name} of a plug-in",
            )
        budget = budget_of_claim(claim)
        rho = claim.values.get("rho")
        if budget is not None:
            rho = budget.zcdp_rho
        refusal = ""
        if certificate.mechanism.is_one_sided:
            refusal = "a certificate of directed neighbours"
        elif budget is not None and budget.per_distance:
            refusal = "a certificate with a budget per unit of distance"
        return cls(name, budget, rho, refusal)

    def describe(self, count: int) -> str:
        """Describe the cost of one draw and of several, in sentences for the owner of the data.

        Args:
            count: Number of draws.
        """
        name = self._describe_one()
        sentence = f"Each draw about the same true answer costs {name} once more."
        if count > 1 and self.budget is not None and not self.budget.per_distance:
            total = add_budgets([self.budget], count)
            sentence += f" These {count} draws cost {total} together (basic composition)."
        elif count > 1 and self.rho is not None:
            total_rho = format_rational(count * self.rho)
            sentence += f" These {count} draws cost rho = {total_rho} together."
        return f"{sentence} The mean of many draws reveals the answer."

    def _describe_one(self) -> str:
        """Describe the cost of one draw."""
        if self.budget is not None:
            return str(self.budget)
        if self.rho is not None:
            return f"rho = {format_rational(self.rho)}"
        if self.notion == "none":
            return "a budget that no certificate states (`workbench audit` computes it)"
        return f"the budget of its certificate ({self.notion})"

    def to_dict(self, count: int) -> Record:
        """Return the cost of one draw and of several as data for JSON.

        Args:
            count: Number of draws.

        Returns:
            budget_of_a_draw and budget_of_all_draws (each None or a `budget_record`).
        """
        return {
            "budget_of_a_draw": budget_record(self.budget),
            "budget_of_all_draws": budget_record(add_budgets([self.budget], count)),
        }

    def make_entry(self, count: int, name: str, value: bytes) -> LedgerEntry:
        """Make the ledger entry of several draws.

        The entry has no digest of the true answer. A single number could be found from its digest
        by trying all numbers.

        Args:
            count: Number of draws, at least 1.
            name: Name of the mechanism file.
            value: The printed draws.

        Raises:
            InvalidRequest: The cost for a person is not known.
        """
        if self.refusal:
            rule = "a certificate with one budget that protects both of any two neighbours"
            must("FILE", rule, f"{name}, {self.refusal}")
        draws = "1 draw"
        if count > 1:
            draws = f"{count} draws"
        budget = add_budgets([self.budget], count)
        rho = None
        if self.rho is not None:
            rho = count * self.rho
        return LedgerEntry(
            f"{draws} of {name}",
            digest="",
            notion=self.notion,
            neighbours=budget,
            charge=budget,
            output="",
            rho=rho,
            value=value,
        )


def read_relation(certificate: Certificate | None, neighbours: str | None) -> str:
    """Return the relation between tables under which draws are private.

    Args:
        certificate: Certificate of the mechanism, None without one.
        neighbours: The relation that the user states, "replace" or "add-remove". None if the
            certificate must state it.

    Raises:
        InvalidRequest: The relation is not known, or the certificate states another one.
    """
    mechanism: Any = getattr(certificate, "mechanism", None)
    # Only the question of a joint release has a relation between tables.
    stated_relation = getattr(getattr(mechanism, "question", None), "neighbours", None)
    if isinstance(stated_relation, str):
        if neighbours not in (None, stated_relation):
            must("neighbours", f"{stated_relation}, as the certificate says", neighbours)
        return stated_relation
    if neighbours is None:
        must(
            "neighbours",
            "given with a ledger. Choose add-remove if adding or removing all rows of one person "
            "leaves the true answer equal or makes it a neighbouring answer. Choose replace if "
            "exchanging them for as many rows does",
            "none",
        )
    return neighbours
