"""A column of data through a saved mechanism: which mechanism may be used, which rows fit it, what it all costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.exact.arrays import Vector
from workbench.exact.numbers import round_up
from workbench.io.csv_column import CsvColumn, locate
from workbench.mechanisms.mechanism import ColumnInputs, ColumnPublisher, on_real_inputs
from workbench.privacy.audit import audit_extremes
from workbench.privacy.claim import Claim
from workbench.privacy.expected_error import expected_error
from workbench.privacy.loading import read
from workbench.privacy.releases import PrivacyBudget, Release, ReleaseLedger, budget_of, together

_CALLED = {
    "noise": "additive noise on the answers 0..n, on the integers or on the reals",
    "quantizer": "a mechanism on real inputs",
}


@dataclass(frozen=True)
class ColumnMechanism:
    """A mechanism for the numbers of a column. inputs: those it takes; claim: what its certificate proves, None
    without one."""

    mechanism: ColumnPublisher
    inputs: ColumnInputs
    claim: Claim | None
    words: tuple[str, ...]

    @property
    def pure_epsilon(self) -> float | str | None:
        """Without a certificate, the exact pure ε of the audit, rounded up ("inf": unbounded)."""
        if self.claim is not None:
            return None
        reached = audit_extremes(self.mechanism, 0).pure_epsilon
        return "inf" if reached == float("inf") else float(reached)

    @property
    def budget(self) -> PrivacyBudget | None:
        """ε and δ of one row; None for a notion without them."""
        if self.claim is not None:
            return budget_of(self.claim)
        reached = self.pure_epsilon
        return PrivacyBudget(None if isinstance(reached, str) or reached is None else Fraction(reached))

    @property
    def expected_error(self) -> dict[str, float]:
        """What a published number is off by, on average; of the mechanism alone, never of the data."""
        stated = self.mechanism.published_error()
        if stated is not None:
            return stated
        error = expected_error(self.mechanism)
        real = on_real_inputs(self.mechanism)
        if error.worst is not None:
            name = "input" if real else "answer"
            stated = {f"largest mean absolute error of any {name}": round_up(error.worst)}
        return (stated or {}) | (
            {"mean absolute error of inputs spread evenly": round_up(Fraction(error.mean))} if real else {}
        )

    def account(self, column: str, output: str, rows: Rows, ledger: Path | None) -> Account:
        """What publishing these rows costs, alone and with the ledger. Raises CorruptFile, InvalidRequest."""
        notion = "none" if self.claim is None else self.claim.notion.name
        return Account.of(self.budget, notion, column, output, rows.given, rows.most, ledger)


def mechanism_for_column(path: Path, kind: str, *, raw: bool = False) -> ColumnMechanism:
    """The mechanism in a file. kind: "noise" or "quantizer"; raw: take one without a certificate.

    Raises CorruptFile, also where a certificate does not prove its claim, and InvalidRequest.
    """
    stored = read(path)
    mechanism: Any = stored.mechanism
    inputs: ColumnInputs | None = getattr(mechanism, "column_inputs", None)
    if inputs is None or inputs.command != kind:
        got = mechanism.describe() if stored.relates and hasattr(mechanism, "describe") else "no such mechanism"
        InvalidRequest.must("mechanism", _CALLED[kind], f"{path.name}: {got}")
    words = []
    if stored.certificate is None:
        if not raw:
            InvalidRequest.must("mechanism", "a certificate (or use --raw)", f"{path.name}, which proves no privacy")
        words.append("The mechanism has no certificate and claims no privacy: the budget is its exact pure epsilon.")
    elif mechanism.one_sided:
        words.append("Only one side of each pair of neighbours is protected (directed differences).")
    words += mechanism.column_cautions
    claim = None if stored.certificate is None else stored.certificate.claim
    return ColumnMechanism(mechanism, inputs, claim, tuple(words))


@dataclass(frozen=True)
class Rows:
    """The numbers of a column as a mechanism takes them.

    given: as they are in the file; values: integers for noise, clipped where asked; clipped: how many were; most: the
    largest number of rows of one person, None where persons are not known.
    """

    given: Vector
    values: NDArray[Any]
    clipped: int
    most: int | None
    words: tuple[str, ...]

    @classmethod
    def read(cls, table: CsvColumn, subject: ColumnMechanism, *, clip: bool, person: str | None) -> Rows:
        """The rows of a column. Raises InvalidRequest with the row and the file for what does not fit."""
        given, inputs = table.numbers(), subject.inputs
        low, high = inputs.low, inputs.high
        if clip and not inputs.bounded:
            raise InvalidRequest("clip must be left out: noise that is not clamped takes every number.")
        if inputs.whole:
            table.refuse(given != np.floor(given), inputs.constraint)
        outside = (given < low) | (given > high)
        if not clip:
            table.refuse(outside, inputs.constraint, "--clip moves them to the nearest input")
        values = np.clip(given, low, high)
        words = [f"Numbers outside [{low:g}, {high:g}] were moved to the nearest of them first."] if clip else []
        most = None if person is None else rows_of_one_person(table, person)
        taken = values.astype(np.int64) if inputs.whole else values
        return cls(given, taken, int(outside.sum()), most, tuple(words))


@dataclass(frozen=True)
class Account:
    """What a release costs, in words and for its report; ledger: the file to be brought up to date, None without.

    own_words, own: for the owner of the data alone. The largest number of rows of one person, the budget it makes and
    the sums of a ledger are not private, and stand in nothing that is published.
    """

    words: list[str]
    report: dict[str, Any]
    own_words: list[str]
    own: dict[str, Any]
    headline: str
    ledger: Path | None
    after: ReleaseLedger | None = field(repr=False)

    @classmethod
    def of(
        cls,
        row: PrivacyBudget | None,
        notion: str,
        column: str,
        output: str,
        given: Vector,
        most: int | None,
        ledger: Path | None,
    ) -> Account:
        """What publishing a column costs, alone and with the ledger.

        row: the budget of one row, None for a notion without ε and δ; given: the column as it is in the file; most: the
        largest number of rows of one person, None where persons are not known. Raises CorruptFile, InvalidRequest.
        """
        whole = None if row is None else together([row], most or 1)
        counts = " (--person counts them)" if most is None else ""
        words = [f"The budget is that of one row; of somebody with k rows it is k times as large{counts}."]
        report: dict[str, Any] = {"budget_of_a_row": _shown(row)} | ({"budget": _shown(row)} if most is None else {})
        own: dict[str, Any] = {"budget": _shown(whole), "rows_of_one_person": most}
        own_words = [] if most is None else _person_words(row, whole, most)
        headline = "see the claim: its notion has no epsilon" if whole is None else str(whole)
        if ledger is None:
            words.append("Another release of the same people's data adds its budget to this one (--ledger adds up).")
            return cls(words, report, own_words, own, headline, None, None)
        known = ReleaseLedger.read(ledger)
        release = Release(column[:100], known.digest(given), notion, whole, output[:100])
        same, every = known.of_same_column(release), known.releases
        own["releases_of_this_column"] = len(same) + 1
        own["budget_of_all_releases_of_this_column"] = None
        for earlier, what in ((same, "this column"), (every, "these data")):
            if not earlier or (what == "these data" and len(every) == len(same)):
                continue
            total = _sum([*earlier, release])
            if what == "this column":
                own["budget_of_all_releases_of_this_column"] = _shown(total)
            number = f"This is release {len(earlier) + 1} of {what} in the ledger"
            if total is None:
                kinds = "their budgets are of kinds that are not added up here, but they do add up"
                own_words.append(f"{number}; {kinds}.")
            else:
                own_words.append(f"{number}: budgets add up to {total} (basic composition).")
        return cls(words, report, own_words, own, headline, ledger, known.add(release))

    def save(self) -> Callable[[], None]:
        """Enter the release into the ledger, before it is published; returns what takes it out again.

        Raises InvalidRequest.
        """
        path, after = self.ledger, self.after
        if path is None or after is None:
            return lambda: None
        before = ReleaseLedger(after.key, after.releases[:-1]) if path.exists() else None
        try:
            after.save(path)
        except OSError as error:
            InvalidRequest.must("ledger", "a file that can be written", f"{path.name}: {error.strerror}")
        return lambda: path.unlink(missing_ok=True) if before is None else before.save(path)


def rows_of_one_person(table: CsvColumn, person: str) -> int:
    """The largest number of rows with one entry in a column. Raises InvalidRequest."""
    at, _ = locate(table.rows[0], person, table.file)
    if at == table.at:
        InvalidRequest.must("person", "another column than the private one", repr(person))
    names = [row[at].strip() for row in table.body]
    if "" in names:
        raise InvalidRequest(f"{table.line(names.index(''))} must say whose row it is. Got an empty cell.")
    return max(Counter(names).values())


def _sum(releases: list[Release]) -> PrivacyBudget | None:
    """The budgets of all releases together; None where one has none, or their units differ."""
    budgets = [release.budget for release in releases]
    known = [budget for budget in budgets if budget is not None]
    if len(known) < len(budgets) or len({budget.per_distance for budget in known}) > 1:
        return None
    return together(known)


def _person_words(row: PrivacyBudget | None, whole: PrivacyBudget | None, most: int) -> list[str]:
    if most == 1:
        return ["No person has more than one row."]
    if whole is None:
        return [f"One person has up to {most} rows, whose budgets add up; this notion's are not added up here."]
    return [f"One person has up to {most} rows, each with {row}: together {whole} (basic composition)."]


def _shown(budget: PrivacyBudget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    epsilon = "inf" if budget.epsilon is None else round_up(budget.epsilon)
    return {"epsilon": epsilon, "delta": round_up(budget.delta), "per_distance": budget.per_distance}
