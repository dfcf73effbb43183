"""A column of data through a saved mechanism: which mechanism may be used, which rows fit it, what it all costs.

Basic composition of several releases of the same people's data, and a ledger of releases:

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
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import ONE, ZERO, jsonable, rational, round_up
from workbench.exact.objects import Record
from workbench.io.csv_column import CsvColumn, locate
from workbench.io.files import named, parse_json, read_text, write_json
from workbench.io.records import FLAG, RATIO, TEXT, RecordForm, many, optional, refuse
from workbench.mechanisms.mechanism import ColumnInputs, ColumnPublisher, for_reals
from workbench.privacy.audit import audit_extremes
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.expected_error import expected_error
from workbench.privacy.loading import read
from workbench.privacy.notions.notion import decimal

FORMAT, VERSION = "dp-workbench releases", 1


@dataclass(frozen=True)
class PrivacyBudget:
    """(ε, δ) of one person's part in a release; ε None: unbounded. per_distance: ε is per unit of |x - x'|."""

    epsilon: Fraction | None
    delta: Fraction = ZERO
    per_distance: bool = False

    def __str__(self) -> str:
        epsilon = "unbounded" if self.epsilon is None else decimal(self.epsilon)
        unit = " per unit of distance" if self.per_distance else ""
        return f"epsilon = {epsilon}{unit}" + (f", delta = {decimal(self.delta)}" if self.delta else "")


def budget_of(claim: Claim) -> PrivacyBudget | None:
    """ε and δ of a claim, the largest ε where neighbours have their own; None for a notion without them."""
    if not claim.in_epsilon_delta:
        return None
    most = max(claim.epsilon.values()) if isinstance(claim.epsilon, Mapping) else claim.epsilon
    return PrivacyBudget(most, claim.delta, claim.notion.per_distance)


def together(budgets: Sequence[PrivacyBudget | None], rows: int = 1) -> PrivacyBudget | None:
    """The sum of budgets, each for k rows of a person; None where one is unknown, or their units differ."""
    known = [budget for budget in budgets if budget is not None]
    units = {budget.per_distance for budget in known}
    if len(known) < len(budgets) or len(units) > 1:
        return None
    finite = [budget.epsilon for budget in known if budget.epsilon is not None]
    epsilon = sum(finite, ZERO) * rows if len(finite) == len(known) else None
    return PrivacyBudget(epsilon, min(ONE, sum((budget.delta for budget in known), ZERO) * rows), any(units))


_BUDGET = RecordForm("The budget", epsilon=optional(RATIO), delta=RATIO, per_distance=FLAG)
_RELEASE = RecordForm(
    "A release", column=TEXT, digest=TEXT, notion=TEXT, budget=optional(_BUDGET.of(PrivacyBudget)), output=TEXT
)


@dataclass(frozen=True)
class Release:
    """One release in a ledger: of which column, under which notion, what it costs (None: no ε and δ), written where.
    Raises CorruptFile for a budget that is none."""

    column: str
    digest: str
    notion: str
    budget: PrivacyBudget | None
    output: str

    def __post_init__(self) -> None:
        budget = self.budget
        if budget is not None and ((budget.epsilon or 0) < 0 or not 0 <= budget.delta <= 1):
            refuse("The budget", "numbers epsilon >= 0 and delta in [0, 1]")


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
            known = cls(**_LEDGER.read(parse_json(text)))
            if len(known.key) != 64 or not set(known.key) <= set("0123456789abcdef"):
                refuse("The key", "64 hexadecimal digits")
            return known

    def digest(self, values: Vector) -> str:
        """The HMAC of a column under the key."""
        return hmac.new(bytes.fromhex(self.key), np.asarray(values, dtype="<f8").tobytes(), hashlib.sha256).hexdigest()

    def add(self, release: Release) -> ReleaseLedger:
        """The ledger with one more release."""
        return ReleaseLedger(self.key, (*self.releases, release))

    def save(self, path: Path) -> None:
        """Write the file, its owner's alone where it is new. Raises OSError."""
        write_json(path, _LEDGER.write(self), private=True)


_LEDGER = RecordForm(
    "The ledger", {"format": FORMAT, "version": VERSION}, key=TEXT, releases=many(_RELEASE.of(Release))
)
_CALLED = {
    "noise": "additive noise on the answers 0..n, on the integers or on the reals",
    "quantizer": "a mechanism on real inputs",
    "channel": "a channel of a range",
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
        reached: float | str = jsonable(audit_extremes(self.mechanism, 0).pure_epsilon)
        return reached

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
        error, real = expected_error(self.mechanism), for_reals(self.mechanism)
        name = f"largest mean absolute error of any {'input' if real else 'answer'}"
        stated = {} if error.worst is None else {name: round_up(error.worst)}
        if real:
            stated["mean absolute error of inputs spread evenly"] = round_up(Fraction(error.mean))
        return stated


def mechanism_for_column(path: Path, kind: str, *, raw: bool = False) -> ColumnMechanism:
    """The mechanism in a file. kind: the command's, as "noise"; raw: take one without a certificate.

    Raises CorruptFile, also where a certificate does not prove its claim, and InvalidRequest.
    """
    stored = read(path)
    mechanism = stored.mechanism
    inputs = getattr(mechanism, "column_inputs", None)
    if inputs is None or inputs.command != kind:
        got = mechanism.describe() if stored.relates and hasattr(mechanism, "describe") else "no such mechanism"
        must("mechanism", _CALLED[kind], f"{path.name}: {got}")
    words = []
    if stored.certificate is None:
        if not raw:
            must("mechanism", "a certificate (or use --raw)", f"{path.name}, which proves no privacy")
        words.append("The mechanism has no certificate and claims no privacy: the budget is its exact pure epsilon.")
    return _for_column(mechanism, stored.certificate, words)


def designed_for_column(design: Any) -> ColumnMechanism:
    """The mechanism of a design, or of a certificate."""
    return _for_column(design.mechanism, getattr(design, "certificate", design), [])


def _for_column(mechanism: Any, certificate: Certificate | None, words: list[str]) -> ColumnMechanism:
    if mechanism.one_sided:
        words.append("Only one side of each pair of neighbours is protected (directed differences).")
    words += mechanism.column_cautions
    inputs = mechanism.column_inputs
    return ColumnMechanism(mechanism, inputs, None if certificate is None else certificate.claim, tuple(words))


@dataclass(frozen=True)
class Rows:
    """The numbers of a column as a mechanism takes them.

    given: as they are in the file; values: integers for noise, clipped where asked, Fractions for a mechanism of
    exact numbers, which clips them itself; clipped: how many were.
    """

    given: Vector
    values: NDArray[Any]
    clipped: int
    words: tuple[str, ...]

    @classmethod
    def read(cls, table: CsvColumn, subject: ColumnMechanism, *, clip: bool) -> Rows:
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
        taken = values.astype(np.int64) if inputs.whole else values
        if inputs.exact:
            taken = np.array([rational(row[table.at]) for row in table.body], dtype=object)
            table.refuse(taken == None, "a decimal within 5000 digits")  # noqa: E711 - of every row
        return cls(given, taken, int(outside.sum()), tuple(words))


@dataclass(frozen=True)
class Account:
    """What a release costs, in words and for its report; ledger: the file to be brought up to date, None without.

    own_words, own: for the owner of the data alone. The largest number of rows of one person, the budget it makes and
    the sums of a ledger are not private, and stand in nothing that is published.
    """

    words: list[str]
    report: Record
    own_words: list[str]
    own: Record
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
        whole = together([row], most or 1)
        counts = " (--person counts them)" if most is None else ""
        words = [f"The budget is that of one row; of somebody with k rows it is k times as large{counts}."]
        report = {"budget_of_a_row": _shown(row)} | ({"budget": _shown(row)} if most is None else {})
        own = {"budget": _shown(whole), "rows_of_one_person": most}
        own_words = [] if most is None else _person_words(row, whole, most)
        headline = "see the claim: its notion has no epsilon" if whole is None else str(whole)
        if ledger is None:
            words.append("Another release of the same people's data adds its budget to this one (--ledger adds up).")
            return cls(words, report, own_words, own, headline, None, None)
        known = ReleaseLedger.read(ledger)
        release = Release(column[:100], known.digest(given), notion, whole, output[:100])
        every = known.releases
        same = [r for r in every if r.column == release.column or r.digest == release.digest]
        total = together([r.budget for r in (*same, release)]) if same else None
        own |= {"releases_of_this_column": len(same) + 1, "budget_of_all_releases_of_this_column": _shown(total)}
        own_words += _sum_words([*same, release], "this column")
        own_words += _sum_words([*every, release], "these data") if len(every) > len(same) else []
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
            must("ledger", "a file that can be written", f"{path.name}: {error.strerror}")
        return lambda: path.unlink(missing_ok=True) if before is None else before.save(path)


def rows_of_one_person(private: Sequence[CsvColumn], person: str) -> int:
    """The largest number of rows with one entry in a column. private: columns of one file. Raises InvalidRequest."""
    table = private[0]
    at, _ = locate(table.rows[0], person, table.file)
    if at in {column.at for column in private}:
        must("person", "another column than the private one", repr(person))
    names = [row[at].strip() for row in table.body]
    if "" in names:
        raise InvalidRequest(f"{table.line(names.index(''))} must say whose row it is. Got an empty cell.")
    return max(Counter(names).values())


def _sum_words(releases: list[Release], what: str) -> list[str]:
    """What the last of some releases makes of their sum; nothing of one alone."""
    if len(releases) == 1:
        return []
    total = together([release.budget for release in releases])
    number = f"This is release {len(releases)} of {what} in the ledger"
    if total is None:
        return [f"{number}; their budgets are of kinds that are not added up here, but they do add up."]
    return [f"{number}: budgets add up to {total} (basic composition)."]


def _person_words(row: PrivacyBudget | None, whole: PrivacyBudget | None, most: int) -> list[str]:
    if most == 1:
        return ["No person has more than one row."]
    if whole is None:
        return [f"One person has up to {most} rows, whose budgets add up; this notion's are not added up here."]
    return [f"One person has up to {most} rows, each with {row}: together {whole} (basic composition)."]


def _shown(budget: PrivacyBudget | None) -> Record | None:
    if budget is None:
        return None
    epsilon = "inf" if budget.epsilon is None else round_up(budget.epsilon)
    return {"epsilon": epsilon, "delta": round_up(budget.delta), "per_distance": budget.per_distance}
