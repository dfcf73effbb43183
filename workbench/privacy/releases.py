"""What several releases of the same people's data loss together: basic composition, and a ledger of releases.

    one row of a person, M (ε, δ)-private     (ε, δ)
    at most k rows of one person              (k ε, k δ)
    releases 1..m of the same rows            (Σ k_i ε_i, Σ k_i δ_i)

These sums hold for adaptive releases too, and are upper bounds; δ of PDP is a mass outside of which the loss is within
ε, and adds up as well. Budgets per unit of distance add up among themselves. What has no ε and δ (zCDP, Rényi, GDP, a
curve) is not added up here.

A ledger is a private file beside the data (mode 600). It knows a column again by its name, or by the HMAC of its
numbers under a key of its own: nothing about the data can be read from the files of a release.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import CorruptFile
from workbench.exact.arrays import Vector
from workbench.io.files import named, parse_json, ratio, read_text, spelled, write_whole
from workbench.io.records import refuse, short_text, take
from workbench.privacy.claim import Claim
from workbench.privacy.notions.notion import decimal

FORMAT, VERSION = "dp-workbench releases", 1


@dataclass(frozen=True)
class PrivacyBudget:
    """(ε, δ) of one person's part in a release; ε None: unbounded. per_distance: ε is per unit of |x - x'|."""

    epsilon: Fraction | None
    delta: Fraction = Fraction(0)
    per_distance: bool = False

    def __str__(self) -> str:
        epsilon = "unbounded" if self.epsilon is None else decimal(self.epsilon)
        unit = " per unit of distance" if self.per_distance else ""
        return f"epsilon = {epsilon}{unit}" + (f", delta = {decimal(self.delta)}" if self.delta else "")


def budget_of(claim: Claim) -> PrivacyBudget | None:
    """ε and δ of a claim, the largest ε where neighbours have their own; None for a notion without them."""
    if not {"epsilon"} <= set(claim.values) <= {"epsilon", "delta"}:
        return None
    epsilon = claim.values["epsilon"]
    most = max(epsilon.values()) if isinstance(epsilon, Mapping) else epsilon
    return PrivacyBudget(most, claim.values.get("delta", Fraction(0)), claim.notion.per_distance)


def together(budgets: Iterable[PrivacyBudget], rows: int = 1) -> PrivacyBudget:
    """The sum of budgets of one unit, each for k rows of a person."""
    listed = tuple(budgets)
    every = [budget.epsilon for budget in listed]
    known = [epsilon for epsilon in every if epsilon is not None]
    epsilon = sum(known, Fraction(0)) * rows if len(known) == len(every) else None
    delta = min(Fraction(1), sum((budget.delta for budget in listed), Fraction(0)) * rows)
    return PrivacyBudget(epsilon, delta, any(budget.per_distance for budget in listed))


@dataclass(frozen=True)
class Release:
    """One release in a ledger: of which column, under which notion, what it costs (None: no ε and δ), written where."""

    column: str
    digest: str
    notion: str
    budget: PrivacyBudget | None
    output: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        budget = self.budget
        loss = (
            None
            if budget is None
            else {
                "epsilon": None if budget.epsilon is None else spelled(budget.epsilon),
                "delta": spelled(budget.delta),
                "per_distance": budget.per_distance,
            }
        )
        return asdict(self) | {"budget": loss}

    @classmethod
    def from_dict(cls, data: Any) -> Release:
        """What `to_dict` wrote. Raises CorruptFile."""
        fields = take(data, "A release", {"column", "digest", "notion", "budget", "output"})
        texts = {name: short_text(fields[name], name) for name in ("column", "digest", "notion", "output")}
        loss = fields["budget"]
        if loss is not None:
            parts = take(loss, "The budget", {"epsilon", "delta", "per_distance"})
            epsilon = None if parts["epsilon"] is None else ratio(parts["epsilon"], "epsilon")
            delta = ratio(parts["delta"], "delta")
            if (epsilon is not None and epsilon < 0) or not 0 <= delta <= 1 or type(parts["per_distance"]) is not bool:
                refuse("The budget", "numbers epsilon >= 0 and delta in [0, 1]")
            loss = PrivacyBudget(epsilon, delta, parts["per_distance"])
        return cls(**texts, budget=loss)


@dataclass(frozen=True)
class ReleaseLedger:
    """The releases of one data set; `read`, `add`, `save`. key: of the digests, in hexadecimal."""

    key: str
    releases: tuple[Release, ...] = ()

    @classmethod
    def read(cls, path: Path) -> ReleaseLedger:
        """The ledger in a file, a new one where there is none. Raises CorruptFile, InvalidRequest."""
        if not path.exists():
            return cls(secrets.token_hex(32))
        text = read_text(path, name="ledger")
        with named(path):
            fields = take(parse_json(text), "The ledger", {"format", "version", "key", "releases"})
            if fields["format"] != FORMAT or type(fields["version"]) is not int or fields["version"] != VERSION:
                raise CorruptFile(f"The ledger must have the format {FORMAT!r}, version {VERSION}.")
            key = short_text(fields["key"], "The key")
            if len(key) != 64 or not set(key) <= set("0123456789abcdef") or not isinstance(fields["releases"], list):
                refuse("The ledger", "a key of 64 hexadecimal digits and a list of releases")
            return cls(key, tuple(map(Release.from_dict, fields["releases"])))

    def digest(self, values: Vector) -> str:
        """The HMAC of a column under the key."""
        content = np.asarray(values, dtype="<f8").tobytes()
        return hmac.new(bytes.fromhex(self.key), content, hashlib.sha256).hexdigest()

    def of_same_column(self, release: Release) -> tuple[Release, ...]:
        """Earlier releases of a column of this name, or of these very numbers."""
        return tuple(r for r in self.releases if r.column == release.column or r.digest == release.digest)

    def add(self, release: Release) -> ReleaseLedger:
        """The ledger with one more release."""
        return ReleaseLedger(self.key, (*self.releases, release))

    def save(self, path: Path) -> None:
        """Write the file, its owner's alone where it is new. Raises OSError."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "key": self.key,
            "releases": [release.to_dict() for release in self.releases],
        }
        write_whole(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode(), private=True)
