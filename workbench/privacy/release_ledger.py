"""The account of the releases of one data set: what each costs the people in it, added up by one rule.

The ledger is one SQLite file that only its owner can read. What it fixes when it is made:

    relation      which data sets are neighbours: "replace" (the rows of one person by as many others), "add-remove"
    person        the column that says whose row it is; without one every row is a person
    accounting    "basic": Σ ε <= ε and Σ δ <= δ of the ledger; "zcdp": ρ = Σ ρ_i is (ε, δ)-private for ρ <= ε and
                  (ε - ρ)² >= 4 ρ ln(1/δ), which is ρ + 2 √(ρ ln(1/δ)) <= ε (Bun and Steinke 2016)
    epsilon, delta  what all releases together may cost; without an ε there is no limit

Both rules hold when later releases depend on earlier outputs. A release is booked in one exclusive transaction, which
checks the total and is on the disk before `book` returns: two processes never book on the same sum, and nothing that is
published after `book` is lost by a crash. What is left of a ledger is decided in exact arithmetic.

A ledger in JSON, which earlier versions wrote, is read once and replaced by a file of this kind.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from workbench.errors import CorruptFile, InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import ONE, ZERO, sign_exp
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
from workbench.notions.notion import format_rational
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets

APPLICATION_ID = 0x64707265  # "dpre", in the file's header: a sweep's ledger has another number.
SCHEMA_VERSION = 1
RELATIONS = ("replace", "add-remove")
RULES = ("basic", "zcdp")
_PATIENCE_SECONDS = 60  # How long a booking waits for another process.
_HEAD = b"SQLite format 3\0"
_TABLES = (
    "create table terms (name text primary key, value text) strict",
    """create table releases (
             number integer primary key autoincrement, booked text not null, content text not null, value blob,
             seal text not null) strict""",
)


@dataclass(frozen=True)
class LedgerTerms:
    """What a ledger fixes when it is made; see the module's text. epsilon None: no limit. Raises InvalidRequest."""

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
class Release:
    """One release.

    Attributes:
        column: the name of what was published.
        digest: `ReleaseLedger.digest` of the true values, by which they are known again under another name.
        notion: the notion of privacy of the mechanism.
        neighbours: its budget between neighbours; None for a notion without ε and δ.
        charge: its budget under the relation of the ledger, for all rows of one person; None where it has none.
        rho: the same in zCDP, where that is known.
        output: where it was written.
        value: what was released, where the ledger holds it.
        number: its number in the ledger, 0 before it is booked.
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

    @property
    def zcdp_rho(self) -> Fraction | None:
        """ρ: the one that is known, or ε²/2 of a pure guarantee (Bun and Steinke 2016); None where there is none."""
        charge = self.charge
        if self.rho is not None:
            return self.rho
        if charge is None or charge.epsilon is None or charge.delta or charge.per_distance:
            return None
        return charge.epsilon**2 / 2


def _check_budget(budget: PrivacyBudget | None) -> None:
    """Refuse a budget that is none. Raises CorruptFile."""
    if budget is not None and ((budget.epsilon or 0) < 0 or not 0 <= budget.delta <= 1):
        raise_corrupt_entry("The budget", "numbers epsilon >= 0 and delta in [0, 1]")


_BUDGET = RecordForm(
    "The budget", epsilon=make_optional_entry(RATIO), delta=RATIO, per_distance=FLAG
)
_CONTENT = RecordForm(
    "A release", column=TEXT, digest=TEXT, notion=TEXT, neighbours=make_optional_entry(_BUDGET.as_entry_of(PrivacyBudget)),
    charge=make_optional_entry(_BUDGET.as_entry_of(PrivacyBudget)), output=TEXT, rho=make_optional_entry(RATIO),
)  # fmt: skip
_JSON_RELEASE = RecordForm(
    "A release",
    column=TEXT,
    digest=TEXT,
    notion=TEXT,
    budget=make_optional_entry(_BUDGET.as_entry_of(PrivacyBudget)),
    output=TEXT,
)
_JSON = RecordForm(
    "The ledger", {"format": "dp-workbench releases", "version": 1}, key=TEXT,
    releases=make_list_entry(_JSON_RELEASE.as_entry_of(lambda **entries: entries)),
)  # fmt: skip


class ReleaseLedger:
    """An account of releases in a file. `ReleaseLedger.open` makes one where there is none."""

    def __init__(self, path: Path, terms: LedgerTerms, key: bytes) -> None:
        self.path, self.terms, self.key = path, terms, key

    @classmethod
    def create(cls, path: Path | str, terms: LedgerTerms) -> ReleaseLedger:
        """Make a ledger. Raises InvalidRequest, also where the file exists."""
        where = read_file_path(path, "ledger")
        with _write_unfinished_ledger(where, terms, secrets.token_bytes(32), ()) as unfinished:
            try:
                os.link(unfinished, where)
            except FileExistsError:
                must("ledger", "a new file", f"{where.name}, which exists")
            _sync_folder(where)
        return cls.open(where, terms)

    @classmethod
    def open(cls, path: Path | str, terms: LedgerTerms | None = None) -> ReleaseLedger:
        """The ledger of a file; where there is none, or one in JSON, it is made with these terms.

        Raises:
            InvalidRequest: for a file that is no ledger, or cannot be read or written.
            CorruptFile: for one that is damaged.
        """
        where = Path(os.path.realpath(read_file_path(path, "ledger")))
        if not where.exists():
            if terms is None:
                must("ledger", "an existing file", where.name)
            try:
                return cls.create(where, terms)
            except InvalidRequest:
                if not where.exists():  # Otherwise another process has made it meanwhile.
                    raise
        if not where.is_file():
            must("ledger", "a file", where.name)
        with where.open("rb") as file:
            head = file.read(len(_HEAD))
        if head != _HEAD:
            if not head.lstrip().startswith(b"{"):
                must("ledger", "a ledger of releases", f"{where.name}, which is of another kind")
            _convert_json_ledger(where, terms or LedgerTerms())
        with _connect_database(where) as database:
            application, schema = (
                database.execute(f"pragma {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            )
            if application != APPLICATION_ID:
                must("ledger", "a ledger of releases", f"{where.name}, which is of another kind")
            if schema != SCHEMA_VERSION:
                must("ledger", f"of format {SCHEMA_VERSION}", f"{where.name}, of format {schema}")
            state = database.execute("pragma quick_check(1)").fetchone()[0]
            if state != "ok":
                raise CorruptFile(f"{where.name} is damaged: {state}.")
            entries = dict(database.execute("select name, value from terms"))
        with prefix_errors_with_file(where):
            return cls(where, *_read_terms(entries))

    def digest(self, values: Vector) -> str:
        """The HMAC of a column under the key of the ledger."""
        return hmac.new(
            self.key, np.asarray(values, dtype="<f8").tobytes(), hashlib.sha256
        ).hexdigest()

    @property
    def releases(self) -> tuple[Release, ...]:
        """All that are booked, in their order. Raises CorruptFile."""
        with _connect_database(self.path) as database:
            return self._read(database)

    def book(self, release: Release) -> tuple[Release, ...]:
        """Enter a release, which is on the disk when this returns; returns all there are, this one last.

        Raises:
            InvalidRequest: where the rule of the ledger has no sum for it, or the total would exceed the limit.
            CorruptFile: for a damaged ledger.
        """
        with _connect_database(self.path) as database, _lock_exclusively(database):
            earlier = self._read(database)
            self._check_limit(earlier, release)
            number = self._insert(database, release)
        return (*earlier, replace(release, number=number))

    def withdraw(self, number: int) -> None:
        """Take a release out again that was certainly not published: the file could not be written."""
        with _connect_database(self.path) as database, _lock_exclusively(database):
            database.execute("delete from releases where number = ?", (number,))

    def describe_remaining_budget(self, releases: Sequence[Release]) -> str:
        """What remains of the limit, rounded down, in words."""
        terms = self.terms
        if terms.epsilon is None:
            return "no limit"
        if terms.accounting == "zcdp":
            log = math.log(1 / terms.delta)
            limit = (math.sqrt(log + float(terms.epsilon)) - math.sqrt(log)) ** 2
            return f"rho = {max(0.0, limit * (1 - 1e-12) - float(_sum_rho(releases) or 0)):.6g}"
        total = add_budgets([each.charge for each in releases]) or PrivacyBudget(None)
        epsilon = ZERO if total.epsilon is None else max(ZERO, terms.epsilon - total.epsilon)
        delta = max(ZERO, terms.delta - total.delta)
        rest = f"epsilon = {_round_down(epsilon)}"
        return f"{rest}, delta = {_round_down(delta)}" if delta else rest

    def _check_limit(self, earlier: Sequence[Release], release: Release) -> None:
        """Refuse a release that the rule cannot add, or that exceeds the limit. Raises InvalidRequest."""
        terms = self.terms
        if terms.accounting == "zcdp":
            total = _sum_rho([*earlier, release])
            if total is None:
                must(
                    "release",
                    "zCDP or pure for a ledger that adds up rho",
                    f"{release.notion}, {release.charge}",
                )
            fits = terms.epsilon is None or _rho_fits(total, terms.epsilon, terms.delta)
        else:
            sums = add_budgets([each.charge for each in (*earlier, release)])
            fits = terms.epsilon is None or (
                sums is not None and sums.is_within(PrivacyBudget(terms.epsilon, terms.delta))
            )
        if not fits:
            rho = release.zcdp_rho
            cost = (
                f"rho = {format_rational(rho)}"
                if terms.accounting == "zcdp" and rho is not None
                else str(release.charge)
            )
            must(
                "ledger",
                f"one that has {cost} left",
                f"{self.path.name}, which has {self.describe_remaining_budget(earlier)} left",
            )

    def _insert(self, database: sqlite3.Connection, release: Release) -> int:
        content = json.dumps(_CONTENT.write(release), sort_keys=True, ensure_ascii=False)
        booked = datetime.now(UTC).isoformat(timespec="seconds")
        entry = (
            booked,
            content,
            release.value,
            _compute_seal(self.key, booked, content, release.value),
        )
        cursor = database.execute(
            "insert into releases (booked, content, value, seal) values (?, ?, ?, ?)", entry
        )
        return int(cursor.lastrowid or 0)

    def _read(self, database: sqlite3.Connection) -> tuple[Release, ...]:
        rows = database.execute(
            "select number, booked, content, value, seal from releases order by number"
        ).fetchall()
        releases = []
        with prefix_errors_with_file(self.path):
            for number, booked, content, value, seal in rows:
                if not hmac.compare_digest(seal, _compute_seal(self.key, booked, content, value)):
                    raise CorruptFile(f"Release {number} was changed after it was booked.")
                release = Release(**_CONTENT.read(parse_json(content)), value=value, number=number)
                _check_budget(release.neighbours)
                _check_budget(release.charge)
                releases.append(release)
        return tuple(releases)


def _round_down(value: Fraction) -> str:
    """A number in at most 17 digits, which is not more."""
    text = format_rational(value)
    if Fraction(text) <= value:
        return text
    return str(
        Context(prec=17, rounding=ROUND_FLOOR).divide(
            Decimal(value.numerator), Decimal(value.denominator)
        )
    )


def _compute_seal(key: bytes, booked: str, content: str, value: bytes | None) -> str:
    """The HMAC of a row, by which a changed one is noticed."""
    text = json.dumps([booked, content, None if value is None else value.hex()])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _sum_rho(releases: Iterable[Release]) -> Fraction | None:
    """Σ ρ; None where a release has none."""
    costs = [release.zcdp_rho for release in releases]
    known = [cost for cost in costs if cost is not None]
    return sum(known, ZERO) if len(known) == len(costs) else None


def _rho_fits(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether ρ + 2 √(ρ ln(1/δ)) <= ε, decided exactly: 1/δ <= e^((ε - ρ)² / 4ρ)."""
    if not rho:
        return True
    return rho <= epsilon and sign_exp(1 / delta, ONE, (epsilon - rho) ** 2 / (4 * rho)) <= 0


def _read_terms(entries: dict[str, Any]) -> tuple[LedgerTerms, bytes]:
    """The terms and the key. Raises CorruptFile."""
    names = {"relation", "person", "accounting", "epsilon", "delta", "key"}
    if set(entries) != names or not isinstance(entries["key"], str):
        raise CorruptFile("The terms of the ledger are incomplete.")
    epsilon = None if entries["epsilon"] is None else parse_ratio(entries["epsilon"], "epsilon")
    try:
        terms = LedgerTerms(entries["relation"], entries["person"], entries["accounting"], epsilon,
                            parse_ratio(entries["delta"], "delta"))  # fmt: skip
        return terms, _read_key(entries["key"])
    except InvalidRequest as error:
        raise CorruptFile(f"The terms of the ledger are damaged: {error}") from None


def _read_key(text: str) -> bytes:
    """The key in hexadecimal. Raises CorruptFile."""
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise_corrupt_entry("The key", "64 hexadecimal digits")
    return bytes.fromhex(text)


@contextmanager
def _connect_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes through to the disk. Raises InvalidRequest and CorruptFile for what SQLite says."""
    where = f"file:{quote(str(path.absolute()))}?mode=rw"
    try:
        with closing(
            sqlite3.connect(where, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None)
        ) as database:
            database.execute("pragma synchronous = extra")
            yield database
    except sqlite3.OperationalError as error:
        must("ledger", "a file that can be read and written", f"{path.name}: {error}")
    except (
        sqlite3.DatabaseError,
        UnicodeDecodeError,
    ) as error:  # The second for a text that is no UTF-8.
        raise CorruptFile(f"{path.name} is damaged: {error}.") from None


@contextmanager
def _lock_exclusively(database: sqlite3.Connection) -> Iterator[None]:
    """A transaction that no other process reads or writes beside; undone where anything is raised."""
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
    path: Path, terms: LedgerTerms, key: bytes, releases: Sequence[Release]
) -> Iterator[Path]:
    """A complete ledger under another name in the same folder, which is removed at the end."""
    unfinished = path.with_name(f".{path.name[:40]}.{os.urandom(8).hex()}")
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with _connect_database(unfinished) as database, _lock_exclusively(database):
            for statement in (
                *_TABLES,
                f"pragma application_id = {APPLICATION_ID}",
                f"pragma user_version = {SCHEMA_VERSION}",
            ):
                database.execute(statement)
            epsilon = None if terms.epsilon is None else format_fraction(terms.epsilon)
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
        must("ledger", "a file that can be written", f"{path.name}: {error.strerror}")
    finally:
        unfinished.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    """Write the entry of a file in its folder to the disk, where the system has that."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _convert_json_ledger(path: Path, terms: LedgerTerms) -> None:
    """Replace a ledger in JSON by one of this kind, once, whoever tries at the same time.

    Raises InvalidRequest, CorruptFile.
    """
    try:
        import fcntl
    except ImportError:
        must("ledger", "a ledger in SQLite on this system", f"{path.name}, in JSON")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # Held until the file is closed.
        with path.open("rb") as present:
            if os.fstat(present.fileno()).st_ino != os.fstat(file.fileno()).st_ino:
                return  # Another process has replaced it meanwhile.
        with prefix_errors_with_file(path):
            entries = _JSON.read(parse_json(read_text(path, name="ledger")))
            key = _read_key(entries["key"])
            releases = []
            for entry in entries["releases"]:
                budget = entry.pop("budget")
                _check_budget(budget)
                releases.append(Release(**entry, neighbours=budget, charge=budget))
        with _write_unfinished_ledger(path, terms, key, releases) as unfinished:
            os.replace(unfinished, path)
            _sync_folder(path)
