"""A ledger of the releases of one data set, which adds their privacy costs by one rule.

The ledger is one SQLite file that only its owner can read. When it is created, these terms are
fixed:

    relation      which data sets are neighbours: "replace" (the rows of one person by as many
                  others) or "add-remove"
    person        the column that says whose row it is. Without one every row is a person.
    accounting    "basic": Σ ε <= ε and Σ δ <= δ of the ledger
                  "zcdp": ρ = Σ ρ_i is (ε, δ)-private for ρ <= ε and (ε - ρ)² >= 4 ρ ln(1/δ), which
                  is ρ + 2 √(ρ ln(1/δ)) <= ε (Bun and Steinke 2016)
    epsilon, delta  limit of all releases together. Without an ε there is no limit.

Both rules are valid even if later releases depend on earlier outputs. A release is booked in one
exclusive transaction. The transaction checks the total and is on the disk before `book` returns. So
two processes never add to the same total at once. A release that is published after `book` is in
the ledger even if the program crashes. The limit is checked in exact arithmetic.

A ledger in JSON, from earlier versions, is converted to this format when it is first opened.

A command reads its options into a `LedgerRequest` (`workbench.privacy.ledger_request`), which opens
the ledger and compares its terms.

To add a rule of accounting, add it to `RULES`, its check to `ReleaseLedger.check_limit`, and its
texts to `describe_used_budget` and `describe_remaining_budget`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from workbench.errors import CorruptFile, InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import ONE, ZERO, round_up, sign_exp
from workbench.exact.objects import Record
from workbench.io.files import (
    format_fraction,
    parse_json,
    parse_ratio,
    prefix_errors_with_file,
    read_file_path,
    read_text,
)
from workbench.io.records import (
    FLAG,
    RATIO,
    TEXT,
    RecordForm,
    make_list_entry,
    make_optional_entry,
    raise_corrupt_entry,
)
from workbench.io.shown import Facts, render_document, render_facts
from workbench.notions.notion import format_rational
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets

APPLICATION_ID = 0x64707265  # SQLite application ID "dpre". Ledgers of sweeps have another one.
SCHEMA_VERSION = 1
RELATIONS = ("replace", "add-remove")
RULES = ("basic", "zcdp")
RELATION_SENTENCES = {
    "replace": "replace: the rows of one person are replaced by the same number of others",
    "add-remove": "add-remove: all rows of one person are added or removed",
}
RULE_SENTENCES = {
    "basic": "basic: epsilon and delta add up",
    "zcdp": "zcdp: rho adds up, and must imply the total (epsilon, delta)",
}
_LOCK_TIMEOUT_SECONDS = 60  # A booking waits this long for another process.
_SQLITE_HEADER = b"SQLite format 3\0"
_KEY_BYTES = 32  # Size of the secret key of a ledger.
_MAX_TEMPORARY_CHARACTERS = 40  # A temporary file name starts with this much of the file name.
_SHOWN_DIGITS = 17  # Costs are rounded up, and remaining budgets down, to this many digits.
# Budgets that are computed in floats are shown after a move to the safe side by this share.
_DISPLAY_ROUNDING = 1e-12
_TABLES = (
    "create table terms (name text primary key, value text) strict",
    """create table releases (
             number integer primary key autoincrement, booked text not null,
             content text not null, value blob, seal text not null) strict""",
)


@dataclass(frozen=True)
class LedgerTerms:
    """The terms of a ledger, which are fixed when it is created.

    Attributes:
        relation: Which data sets are neighbours, "replace" or "add-remove".
        person: Column that says whose row it is. None if every row is a person.
        accounting: Rule of addition, "basic" or "zcdp".
        epsilon: Limit on ε. None for no limit.
        delta: Limit on δ.

    Raises:
        InvalidRequest: A term is wrong.
    """

    relation: str = "replace"
    person: str | None = None
    accounting: str = "basic"
    epsilon: Fraction | None = None
    delta: Fraction = ZERO

    def __post_init__(self) -> None:
        InvalidRequest.check_choice(RELATIONS, "relation", self.relation)
        InvalidRequest.check_choice(RULES, "accounting", self.accounting)
        if self.epsilon is not None and self.epsilon <= 0:
            must("epsilon", "a number > 0", self.epsilon)
        if not 0 <= self.delta < 1 or (self.accounting == "zcdp" and not self.delta):
            must("delta", "in [0, 1), and above 0 under zCDP", self.delta)


@dataclass(frozen=True)
class LedgerEntry:
    """One release, as the ledger stores it.

    Attributes:
        column: Name of the published column.
        digest: `ReleaseLedger.digest` of the true values. A renamed column has the same digest.
        notion: Notion of privacy of the mechanism.
        neighbours: Budget between neighbours. None for a notion without ε and δ.
        charge: Budget under the relation of the ledger, for all rows of one person. None if the
            notion has no ε and δ.
        output: Name of the output file.
        rho: Parameter ρ of zCDP for the same rows. None if it is not known.
        value: The published values. None if the ledger does not contain them.
        number: Number in the ledger, from 1. 0 before it is booked.
        booked_at: Time of the booking in UTC, such as "2026-05-01T12:00:00+00:00". "" before it is
            booked.
    """

    column: str
    digest: str
    notion: str
    neighbours: PrivacyBudget | None
    charge: PrivacyBudget | None
    output: str
    rho: Fraction | None = None
    value: bytes | None = None
    number: int = 0
    booked_at: str = ""

    @property
    def zcdp_rho(self) -> Fraction | None:
        """Return ρ, or ε²/2 for a pure guarantee (Bun and Steinke 2016), or None without either.

        If k rows of a person have a pure charge kε, this is (kε)²/2. The smaller k ε²/2 would hold
        for independent draws for each row, but not if rows share noise, such as that of a prior.
        """
        if self.rho is not None:
            return self.rho
        if self.charge is None:
            return None
        return self.charge.zcdp_rho

    def describe_cost(self, accounting: str) -> str:
        """Describe the cost of the release under a rule of accounting, rounded up.

        Args:
            accounting: Rule of the ledger, "basic" or "zcdp".
        """
        if accounting == "zcdp" and self.zcdp_rho is not None:
            return f"rho = {_round_up(self.zcdp_rho)}"
        if self.charge is not None:
            return _describe_rounded_up(self.charge)
        if self.rho is not None:
            return f"rho = {_round_up(self.rho)}, no epsilon"
        return "no epsilon"


def _check_budget(budget: PrivacyBudget | None) -> None:
    """Raise CorruptFile if ε or δ is out of range."""
    if budget is not None and ((budget.epsilon or 0) < 0 or not 0 <= budget.delta <= 1):
        raise_corrupt_entry("The budget", "numbers epsilon >= 0 and delta in [0, 1]")


_BUDGET = RecordForm(
    "The budget", epsilon=make_optional_entry(RATIO), delta=RATIO, per_distance=FLAG
)
# The column "content" of a row of the table of releases.
_CONTENT = RecordForm(
    "A release",
    column=TEXT,
    digest=TEXT,
    notion=TEXT,
    neighbours=make_optional_entry(_BUDGET.as_entry_of(PrivacyBudget)),
    charge=make_optional_entry(_BUDGET.as_entry_of(PrivacyBudget)),
    output=TEXT,
    rho=make_optional_entry(RATIO),
)
# A release and a ledger in the JSON format of earlier versions.
_JSON_RELEASE = RecordForm(
    "A release",
    column=TEXT,
    digest=TEXT,
    notion=TEXT,
    budget=make_optional_entry(_BUDGET.as_entry_of(PrivacyBudget)),
    output=TEXT,
)
_JSON_LEDGER = RecordForm(
    "The ledger",
    {"format": "dp-workbench releases", "version": 1},
    key=TEXT,
    releases=make_list_entry(_JSON_RELEASE.as_entry_of(dict)),
)


class ReleaseLedger:
    """A ledger in a file. `ReleaseLedger.open` creates the file if it does not exist.

    Args:
        path: Path of the file.
        terms: Terms of the ledger.
        key: Secret key, with which values and entries are signed.
    """

    def __init__(self, path: Path, terms: LedgerTerms, key: bytes) -> None:
        self.path = path
        self.terms = terms
        self.key = key

    @classmethod
    def create(cls, path: Path | str, terms: LedgerTerms) -> ReleaseLedger:
        """Create a ledger.

        Args:
            path: Path of a new file.
            terms: Terms of the ledger.

        Raises:
            InvalidRequest: The file exists already, or cannot be written.
        """
        ledger_path = read_file_path(path, "ledger")
        with _write_unfinished_ledger(
            ledger_path, terms, secrets.token_bytes(_KEY_BYTES), releases=()
        ) as unfinished:
            try:
                os.link(unfinished, ledger_path)
            except FileExistsError:
                must("ledger", "a new file", f"{ledger_path.name}, which exists")
            _sync_folder(ledger_path)
        return cls.open(ledger_path, terms)

    @classmethod
    def open(cls, path: Path | str, terms: LedgerTerms | None = None) -> ReleaseLedger:
        """Open the ledger of a file.

        A missing file is created with the given terms. A ledger in JSON is converted with them.

        Args:
            path: Path of the file.
            terms: Terms of a new ledger. None if the file must exist in the present format.

        Raises:
            InvalidRequest: The file is no ledger, or cannot be read or written.
            CorruptFile: The file is damaged.
        """
        ledger_path = Path(os.path.realpath(read_file_path(path, "ledger")))
        if not ledger_path.exists():
            if terms is None:
                must("ledger", "an existing file", f"{ledger_path.name}, which does not exist")
            try:
                return cls.create(ledger_path, terms)
            except InvalidRequest:
                if not ledger_path.exists():  # Otherwise another process has just created it.
                    raise
        if is_json_ledger(ledger_path):
            if terms is None:
                rule = "one of this version (the next release with --ledger converts it)"
                must("ledger", rule, f"{ledger_path.name}, in JSON")
            _convert_json_ledger(ledger_path, terms)
        with _connect_database(ledger_path) as database:
            application, schema = (
                database.execute(f"pragma {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            )
            if application != APPLICATION_ID:
                got = f"{ledger_path.name}, which is of another kind"
                must("ledger", "a ledger of releases", got)
            if schema != SCHEMA_VERSION:
                got = f"{ledger_path.name}, of format {schema}"
                must("ledger", f"of format {SCHEMA_VERSION}", got)
            finding = database.execute("pragma quick_check(1)").fetchone()[0]
            if finding != "ok":
                raise CorruptFile(f"{ledger_path.name} is damaged: {finding}.")
            entries = dict(database.execute("select name, value from terms"))
        with prefix_errors_with_file(ledger_path):
            return cls(ledger_path, *_read_terms(entries))

    def digest(self, values: Vector) -> str:
        """Return the HMAC of a column under the key of the ledger.

        Args:
            values: Values of the column. Shape (n,).
        """
        content = np.asarray(values, dtype="<f8").tobytes()
        return hmac.new(self.key, content, hashlib.sha256).hexdigest()

    @property
    def releases(self) -> tuple[LedgerEntry, ...]:
        """Return all booked releases in their order. Raises CorruptFile."""
        with _connect_database(self.path) as database:
            return self._read(database)

    def book(self, release: LedgerEntry) -> tuple[LedgerEntry, ...]:
        """Enter a release. It is on the disk when this method returns.

        Args:
            release: The release. It gets the next number of the ledger.

        Returns:
            All releases of the ledger, this one last.

        Raises:
            InvalidRequest: The rule of the ledger cannot add the release, or the total would exceed
                the limit.
            CorruptFile: The ledger is damaged.
        """
        with _connect_database(self.path) as database, _lock_exclusively(database):
            earlier = self._read(database)
            self.check_limit(earlier, release)
            booked_release = self._insert(database, release)
        return (*earlier, booked_release)

    def find_release(self, number: int) -> LedgerEntry:
        """Return the release of a number, with its published value.

        Args:
            number: Number of the release in the ledger.

        Raises:
            InvalidRequest: The ledger has no such release.
            CorruptFile: The ledger is damaged.
        """
        releases = {release.number: release for release in self.releases}
        if number not in releases:
            numbers = ", ".join(map(str, releases)) or "none"
            must("number", f"the number of a release of {self.path.name} ({numbers})", number)
        return releases[number]

    def withdraw(self, number: int) -> None:
        """Remove a release that was certainly not published, as its file could not be written.

        Args:
            number: Number of the release in the ledger.
        """
        with _connect_database(self.path) as database, _lock_exclusively(database):
            database.execute("delete from releases where number = ?", (number,))

    def describe_used_budget(self, releases: Sequence[LedgerEntry]) -> str:
        """Describe the sum of the costs by the rule of the ledger, rounded up.

        Args:
            releases: All releases of the ledger.
        """
        terms = self.terms
        if terms.accounting == "zcdp":
            rho = _sum_rho(releases) or ZERO
            # In floats, for display only, as in `describe_remaining_budget`.
            root = math.sqrt(float(rho) * _log_of_inverse(terms.delta))
            epsilon = (float(rho) + 2 * root) * (1 + _DISPLAY_ROUNDING)
            delta = format_rational(terms.delta)
            return f"rho = {_round_up(rho)} (epsilon = {epsilon:.6g} at delta = {delta})"
        charges = [release.charge for release in releases]
        total = add_budgets(charges)
        if total is None:
            return "releases whose costs are of different kinds, which are not added"
        return _describe_rounded_up(total)

    def describe_remaining_budget(self, releases: Sequence[LedgerEntry]) -> str:
        """Describe the remaining budget: rounded down, or under zCDP ρ with six digits.

        Args:
            releases: All releases of the ledger.
        """
        terms = self.terms
        if terms.epsilon is None:
            return "no limit"
        if terms.accounting == "zcdp":
            # The largest ρ with ρ + 2 √(ρ L) <= ε is (√(L + ε) - √L)², where L = ln(1/δ).
            log_term = _log_of_inverse(terms.delta)
            limit = (math.sqrt(log_term + float(terms.epsilon)) - math.sqrt(log_term)) ** 2
            # In floats, for display only. `_rho_fits` decides exactly whether a release fits.
            spent = float(_sum_rho(releases) or 0)
            return f"rho = {max(0.0, limit * (1 - _DISPLAY_ROUNDING) - spent):.6g}"
        # If the costs are of different kinds, their sum counts as unbounded, and no ε is left.
        total = add_budgets([release.charge for release in releases]) or PrivacyBudget(epsilon=None)
        epsilon = ZERO
        if total.epsilon is not None:
            epsilon = max(ZERO, terms.epsilon - total.epsilon)
        delta = max(ZERO, terms.delta - total.delta)
        text = f"epsilon = {_round_down(epsilon)}"
        if delta:
            return f"{text}, delta = {_round_down(delta)}"
        return text

    def has_private_costs(self, releases: Sequence[LedgerEntry]) -> bool:
        """Return whether a cost counts the rows of one person, which is private.

        It does for a published column if a person may have several rows.

        Args:
            releases: All releases of the ledger.
        """
        return self.terms.person is not None and any(release.output for release in releases)

    def describe_public_remainder(self, releases: Sequence[LedgerEntry]) -> str:
        """Describe the remaining budget for a report that may be published.

        Args:
            releases: All releases of the ledger.
        """
        if self.has_private_costs(releases):
            return f"private, as earlier costs count rows (publish ledger {self.path.name})"
        return self.describe_remaining_budget(releases)

    def facts(self) -> Facts:
        """Return the terms and the budget as rows (label, text). Raises CorruptFile."""
        terms = self.terms
        releases = self.releases
        total = "no limit"
        if terms.epsilon is not None:
            total = str(PrivacyBudget(terms.epsilon, terms.delta))
        person = "every row is a person"
        if terms.person is not None:
            person = f"the rows with the same {terms.person} are one person"
        return [
            ("ledger", self.path.name),
            ("neighbours", RELATION_SENTENCES[terms.relation]),
            ("person", person),
            ("accounting", RULE_SENTENCES[terms.accounting]),
            ("total", total),
            ("releases", str(len(releases))),
            ("used", self.describe_used_budget(releases)),
            ("left", self.describe_remaining_budget(releases)),
        ]

    def to_dict(self) -> Record:
        """Return the terms, the releases and the budget as data for JSON. Raises CorruptFile.

        Returns:
            ledger, neighbours, person, accounting, total and total_delta (None without a limit),
            releases (one record for each, as in `describe_release`), used and left (texts).
        """
        terms = self.terms
        releases = self.releases
        total = None
        total_delta = None
        if terms.epsilon is not None:
            total = float(terms.epsilon)
            total_delta = float(terms.delta)
        return {
            "ledger": self.path.name,
            "neighbours": terms.relation,
            "person": terms.person,
            "accounting": terms.accounting,
            "total": total,
            "total_delta": total_delta,
            "releases": [self.describe_release(release) for release in releases],
            "used": self.describe_used_budget(releases),
            "left": self.describe_remaining_budget(releases),
        }

    def describe_release(self, release: LedgerEntry) -> Record:
        """Describe a release as data for JSON, without its value.

        Args:
            release: A release of this ledger.

        Returns:
            number, booked (time in UTC), what, notion, cost (text), epsilon and delta (None without
            a budget, "inf" if unbounded), rho (None if it is not known), neighbours, output, and
            has_value (whether the ledger contains the published value).
        """
        budget: Record = {"epsilon": None, "delta": None}
        if release.charge is not None:
            budget = release.charge.to_dict()
        rho = release.zcdp_rho
        return {
            "number": release.number,
            "booked": release.booked_at.removesuffix("+00:00"),
            "what": release.column,
            "notion": release.notion,
            "cost": release.describe_cost(self.terms.accounting),
            "epsilon": budget["epsilon"],
            "delta": budget["delta"],
            "rho": None if rho is None else round_up(rho),
            "neighbours": self.terms.relation,
            "output": release.output,
            "has_value": release.value is not None,
        }

    def __repr__(self) -> str:
        return f"ReleaseLedger({self.path.name!r})"

    def __str__(self) -> str:
        return "\n".join(f"{label:<12}{text}" for label, text in self.facts())

    def _repr_html_(self) -> str:
        """Return the terms and the budget as HTML for a notebook."""
        return render_document("ReleaseLedger", render_facts(self.facts()))

    def check_limit(self, earlier: Sequence[LedgerEntry], release: LedgerEntry) -> None:
        """Check that a release can be added, and that the limit is not exceeded.

        Args:
            earlier: All releases of the ledger.
            release: The next release.

        Raises:
            InvalidRequest: The rule of the ledger cannot add the release, or the total would exceed
                the limit.
        """
        terms = self.terms
        if terms.accounting == "zcdp":
            total_rho = _sum_rho([*earlier, release])
            if total_rho is None:
                must(
                    "release",
                    f"zCDP or pure (delta = 0), as {self.path.name} adds up rho",
                    f"{release.notion}, {release.describe_cost('basic')}",
                )
            fits = terms.epsilon is None or _rho_fits(total_rho, terms.epsilon, terms.delta)
        else:
            if terms.epsilon is not None and release.charge is None:
                must(
                    "release",
                    f"one with a budget (epsilon, delta), as {self.path.name} adds these up",
                    f"{release.notion}, {release.describe_cost('basic')}",
                )
            total_budget = add_budgets([entry.charge for entry in (*earlier, release)])
            limit = PrivacyBudget(terms.epsilon, terms.delta)
            is_within_limit = total_budget is not None and total_budget.is_within(limit)
            fits = terms.epsilon is None or is_within_limit
        if not fits:
            name = self.path.name
            hint = f" `publish again {name} NUMBER` prints an earlier release."
            raise InvalidRequest(
                f"ledger must be one that has {release.describe_cost(terms.accounting)} left. "
                f"Got {name}, which has {self.describe_remaining_budget(earlier)} left. Nothing "
                f"was published.{hint if earlier else ''}"
            )

    def _insert(self, database: sqlite3.Connection, release: LedgerEntry) -> LedgerEntry:
        """Insert a release, and return it with its number and its time."""
        content = json.dumps(_CONTENT.write(release), sort_keys=True, ensure_ascii=False)
        booked_at = datetime.now(UTC).isoformat(timespec="seconds")
        seal = _compute_seal(self.key, booked_at, content, release.value)
        entry = (booked_at, content, release.value, seal)
        cursor = database.execute(
            "insert into releases (booked, content, value, seal) values (?, ?, ?, ?)", entry
        )
        return replace(release, number=int(cursor.lastrowid or 0), booked_at=booked_at)

    def _read(self, database: sqlite3.Connection) -> tuple[LedgerEntry, ...]:
        """Read all releases and verify their seals. Raises CorruptFile."""
        rows = database.execute(
            "select number, booked, content, value, seal from releases order by number"
        )
        releases = []
        with prefix_errors_with_file(self.path):
            for number, booked_at, content, value, seal in rows:
                if not hmac.compare_digest(
                    seal, _compute_seal(self.key, booked_at, content, value)
                ):
                    raise CorruptFile(f"Release {number} was changed after it was booked.")
                entries = _CONTENT.read(parse_json(content))
                release = LedgerEntry(**entries, value=value, number=number, booked_at=booked_at)
                _check_budget(release.neighbours)
                _check_budget(release.charge)
                releases.append(release)
        return tuple(releases)


def _round_down(value: Fraction) -> str:
    """Round a number down to at most 17 digits."""
    text = format_rational(value)
    if Fraction(text) <= value:
        return text
    context = Context(prec=_SHOWN_DIGITS, rounding=ROUND_FLOOR)
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _round_up(value: Fraction) -> str:
    """Round a number up to at most 17 digits."""
    text = format_rational(value)
    if Fraction(text) >= value:
        return text
    context = Context(prec=_SHOWN_DIGITS, rounding=ROUND_CEILING)
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _describe_rounded_up(budget: PrivacyBudget) -> str:
    """Describe a budget whose numbers are rounded up to at most 17 digits."""
    epsilon = "unbounded"
    if budget.epsilon is not None:
        epsilon = _round_up(budget.epsilon)
    unit = ""
    if budget.per_distance:
        unit = " per unit of distance"
    delta = ""
    if budget.delta:
        delta = f", delta = {_round_up(budget.delta)}"
    return f"epsilon = {epsilon}{unit}{delta}"


def describe_booked_release(path: Path, number: int) -> str:
    """Describe how to print a booked release, for an error that comes after the booking.

    Args:
        path: Path of the ledger, as the user gave it.
        number: Number of the release in the ledger.
    """
    return (
        f"Release {number} of {path.name} is booked. `workbench publish again "
        f"{shlex.quote(str(path))} {number}` prints it and uses no further budget."
    )


def is_json_ledger(path: Path) -> bool:
    """Return whether a file is a ledger in JSON, from an earlier version.

    Args:
        path: Path of an existing file.

    Raises:
        InvalidRequest: The file cannot be read, or is neither JSON nor an SQLite file.
    """
    if not path.is_file():
        must("ledger", "a file", f"{path.name}, which is a folder or a device")
    try:
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except OSError as error:
        must("ledger", "a readable file", f"{path.name}: {error.strerror}")
    if not header:
        rule = "a ledger of releases, or a new file (delete the empty one)"
        must("ledger", rule, f"{path.name}, which is empty")
    if header == _SQLITE_HEADER:
        return False
    if not header.lstrip().startswith(b"{"):
        must("ledger", "a ledger of releases", f"{path.name}, which is of another kind")
    return True


def _compute_seal(key: bytes, booked_at: str, content: str, value: bytes | None) -> str:
    """Return the HMAC of a row, which reveals a later change.

    The row has the time `booked_at`, its `content` as text, and the published `value` or None.
    """
    text = json.dumps([booked_at, content, None if value is None else value.hex()])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _sum_rho(releases: Iterable[LedgerEntry]) -> Fraction | None:
    """Return Σ ρ, or None if a release has no ρ."""
    total = ZERO
    for release in releases:
        rho = release.zcdp_rho
        if rho is None:
            return None
        total += rho
    return total


def _log_of_inverse(delta: Fraction) -> float:
    """Return ln(1/δ), also for a δ below the smallest double."""
    return math.log(delta.denominator) - math.log(delta.numerator)


def _rho_fits(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Return whether ρ + 2 √(ρ ln(1/δ)) <= ε, decided exactly: 1/δ <= e^((ε - ρ)² / 4ρ)."""
    if not rho:
        return True
    # sign_exp(a, b, t) is the sign of a - b e^t.
    return rho <= epsilon and sign_exp(1 / delta, ONE, (epsilon - rho) ** 2 / (4 * rho)) <= 0


def _read_terms(entries: dict[str, Any]) -> tuple[LedgerTerms, bytes]:
    """Read the terms and the key from the entries of the table. Raises CorruptFile."""
    names = {"relation", "person", "accounting", "epsilon", "delta", "key"}
    if set(entries) != names or not isinstance(entries["key"], str):
        raise CorruptFile("The terms of the ledger are incomplete.")
    epsilon = None
    if entries["epsilon"] is not None:
        epsilon = parse_ratio(entries["epsilon"], "epsilon")
    try:
        terms = LedgerTerms(
            entries["relation"],
            entries["person"],
            accounting=entries["accounting"],
            epsilon=epsilon,
            delta=parse_ratio(entries["delta"], "delta"),
        )
        return terms, _read_key(entries["key"])
    except InvalidRequest as error:
        raise CorruptFile(f"The terms of the ledger are damaged: {error}") from None


def _read_key(text: str) -> bytes:
    """Read a key in hexadecimal. Raises CorruptFile."""
    if len(text) != 2 * _KEY_BYTES or not set(text) <= set("0123456789abcdef"):
        raise_corrupt_entry("The key", f"{2 * _KEY_BYTES} hexadecimal digits")
    return bytes.fromhex(text)


@contextmanager
def _connect_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection that writes through to the disk.

    Errors of SQLite become InvalidRequest or CorruptFile.
    """
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
    # Without an isolation level, `sqlite3` begins no transactions of its own.
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)
        ) as database:
            database.execute("pragma synchronous = extra")
            yield database
    except sqlite3.OperationalError as error:
        must("ledger", "a readable and writable file", f"{path.name}: {error}")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # The second error is raised for a text that is not UTF-8.
        raise CorruptFile(f"{path.name} is damaged: {error}.") from None


@contextmanager
def _lock_exclusively(database: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction without other readers or writers. It is rolled back on any error."""
    database.execute("begin exclusive")
    try:
        yield
    except BaseException:
        if database.in_transaction:  # A full disk has ended it already.
            database.execute("rollback")
        raise
    database.execute("commit")


@contextmanager
def _write_unfinished_ledger(
    path: Path, terms: LedgerTerms, key: bytes, releases: Sequence[LedgerEntry]
) -> Iterator[Path]:
    """Write a complete ledger under a temporary name, yield its path, and remove it at the end.

    The file is in the same folder, so that it can be renamed to `path` in one step.
    """
    unfinished = path.with_name(f".{path.name[:_MAX_TEMPORARY_CHARACTERS]}.{os.urandom(8).hex()}")
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with _connect_database(unfinished) as database, _lock_exclusively(database):
            for statement in (
                *_TABLES,
                f"pragma application_id = {APPLICATION_ID}",
                f"pragma user_version = {SCHEMA_VERSION}",
            ):
                database.execute(statement)
            epsilon = None
            if terms.epsilon is not None:
                epsilon = format_fraction(terms.epsilon)
            entries = {
                **vars(terms),
                "epsilon": epsilon,
                "delta": format_fraction(terms.delta),
                "key": key.hex(),
            }
            database.executemany("insert into terms values (?, ?)", entries.items())
            ledger = ReleaseLedger(unfinished, terms, key)
            for release in releases:
                ledger._insert(database, release)
        yield unfinished
    except OSError as error:
        must("ledger", "a writable file", f"{path.name}: {error.strerror}")
    finally:
        unfinished.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    """Write the folder entry of a file to the disk, if the operating system supports it."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _convert_json_ledger(path: Path, terms: LedgerTerms) -> None:
    """Replace a ledger in JSON by one in SQLite, even if several processes try at the same time.

    Earlier versions booked budgets (ε, δ) between data sets of equal size. A ledger of another
    relation or rule cannot contain them. Raises InvalidRequest, CorruptFile.
    """
    if terms.relation != "replace" or terms.accounting != "basic":
        rule = "one of this version, or used with replace and basic accounting"
        got = f"{path.name}, in JSON, with {terms.relation} and {terms.accounting}"
        must("ledger", rule, got)
    try:
        import fcntl
    except ImportError:
        must("ledger", "a ledger in SQLite on this system", f"{path.name}, in JSON")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # Held until the file is closed.
        with path.open("rb") as present:
            if os.fstat(present.fileno()).st_ino != os.fstat(file.fileno()).st_ino:
                return  # Another process has replaced it meanwhile.
        key, releases = read_json_ledger(path)
        with _write_unfinished_ledger(path, terms, key, releases) as unfinished:
            os.replace(unfinished, path)
            _sync_folder(path)


def read_json_ledger(path: Path) -> tuple[bytes, list[LedgerEntry]]:
    """Read a ledger in the JSON format of earlier versions.

    Args:
        path: The file.

    Returns:
        The key, and the releases.

    Raises:
        CorruptFile: The ledger is damaged.
    """
    with prefix_errors_with_file(path):
        entries = _JSON_LEDGER.read(parse_json(read_text(path, name="ledger")))
        key = _read_key(entries["key"])
        releases = []
        for entry in entries["releases"]:
            budget = entry.pop("budget")
            _check_budget(budget)
            releases.append(LedgerEntry(**entry, neighbours=budget, charge=budget))
    return key, releases
