"""Test the ledger of releases: exact sums, refusals over the limit, and damaged files."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import stat
from fractions import Fraction
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import LedgerEntry, LedgerTerms, ReleaseLedger

KEY = "ab" * 32  # 32 bytes in hexadecimal.


def make_release(epsilon: Any, delta: Any = 0, column: str = "age", **entries: Any) -> LedgerEntry:
    """Make a release with the charge (epsilon, delta). If epsilon is None, it has no charge."""
    budget = None if epsilon is None else PrivacyBudget(Fraction(epsilon), Fraction(delta))
    return LedgerEntry(
        column=column,
        digest="cd",
        notion="dp",
        neighbours=budget,
        charge=budget,
        output="o.csv",
        **entries,
    )


def write_json_ledger(path: Path, **damage: Any) -> dict[str, Any]:
    """Write the JSON ledger of an earlier version, with two releases, and return its data.

    Args:
        path: Path of the file.
        **damage: Entries that replace those of the valid ledger.
    """
    budget = {"epsilon": "1.5", "delta": "0.01", "per_distance": False}
    entry = {"column": "age", "digest": "cd", "notion": "dp", "budget": budget, "output": "o.csv"}
    data = {
        "format": "dp-workbench releases",
        "version": 1,
        "key": KEY,
        "releases": [entry] * 2,
    } | damage
    path.write_text(json.dumps(data))
    return data


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    """Return the path of the file of a new ledger."""
    return tmp_path / "account"


@pytest.fixture
def ledger(ledger_path: Path) -> ReleaseLedger:
    """Return a new ledger with a limit."""
    terms = LedgerTerms(person="who", epsilon=Fraction(7, 3), delta=Fraction(1, 10))
    return ReleaseLedger.open(ledger_path, terms)


def test_a_booked_release_is_read_back_exactly(ledger: ReleaseLedger, ledger_path: Path) -> None:
    release = make_release("1/3", "1/30", value=b"57.5\n", rho=Fraction(1, 7))
    assert [entry.number for entry in ledger.book(release)] == [1]
    ledger.book(make_release(2))
    first_release, _ = ReleaseLedger.open(ledger_path).releases
    assert first_release.charge == PrivacyBudget(Fraction(1, 3), Fraction(1, 30))
    assert first_release.value == b"57.5\n"
    assert first_release.rho == Fraction(1, 7)


def test_a_ledger_is_reopened_with_its_terms_and_its_key(
    ledger: ReleaseLedger, ledger_path: Path
) -> None:
    """The key decides the digests of columns."""
    reopened = ReleaseLedger.open(ledger_path)
    assert reopened.terms == ledger.terms
    assert reopened.digest(np.ones(3)) == ledger.digest(np.ones(3))


def test_only_the_owner_can_read_a_ledger(ledger: ReleaseLedger, ledger_path: Path) -> None:
    ledger.book(make_release(2))
    assert stat.S_IMODE(ledger_path.stat().st_mode) == 0o600


def test_no_temporary_file_is_left_beside_a_ledger(
    ledger: ReleaseLedger, ledger_path: Path
) -> None:
    ledger.book(make_release(2))
    assert [*ledger_path.parent.iterdir()] == [ledger_path]


def test_the_total_is_exact_and_a_refusal_states_the_remaining_budget(tmp_path: Path) -> None:
    ledger = ReleaseLedger.create(
        tmp_path / "a", LedgerTerms(epsilon=Fraction(1), delta=Fraction(1, 100))
    )
    for _ in range(9):
        ledger.book(make_release("0.1", "1/1000"))
    with pytest.raises(
        wb.InvalidRequest,
        match=r"epsilon = 0\.2 left\. Got a, which has epsilon = 0\.1, delta = 0\.001 left",
    ):
        ledger.book(make_release("0.2"))
    with pytest.raises(wb.InvalidRequest, match="left"):
        ledger.book(make_release("0.05", "1/900"))
    with pytest.raises(wb.InvalidRequest, match=r"a budget \(epsilon, delta\), as a adds these up"):
        ledger.book(make_release(None))
    ledger.book(make_release("0.1"))
    with pytest.raises(wb.InvalidRequest, match="left"):
        ledger.book(make_release("1e-30"))
    assert len(ledger.releases) == 10


def test_zcdp_adds_up_to_the_closed_form(tmp_path: Path) -> None:
    delta = Fraction(1, 10**6)
    ledger = ReleaseLedger.create(
        tmp_path / "a", LedgerTerms(accounting="zcdp", epsilon=Fraction(2), delta=delta)
    )
    # The largest rho with rho + 2 sqrt(rho ln(1/delta)) <= epsilon = 2.
    max_rho = (sqrt(log(10**6) + 2) - sqrt(log(10**6))) ** 2
    assert max_rho + 2 * sqrt(max_rho * log(10**6)) == pytest.approx(2)
    ledger.book(make_release(None, rho=Fraction(max_rho) * Fraction(1, 2)))
    with pytest.raises(wb.InvalidRequest, match=r"rho = 0\.03378"):
        ledger.book(make_release(None, rho=Fraction(max_rho) * Fraction(501, 1000)))
    # A pure guarantee has rho = epsilon^2 / 2, here 0.499 of the limit.
    ledger.book(make_release(sqrt(2 * max_rho * 0.499)))
    with pytest.raises(wb.InvalidRequest, match="zCDP or pure"):
        ledger.book(make_release(1, "1e-9"))
    assert len(ledger.releases) == 2


def test_a_ledger_without_a_limit_accepts_unbounded_releases(tmp_path: Path) -> None:
    ledger = ReleaseLedger.open(tmp_path / "a", LedgerTerms())
    unbounded = PrivacyBudget(None)
    entry = LedgerEntry(
        column="age",
        digest="cd",
        notion="dp",
        neighbours=unbounded,
        charge=unbounded,
        output="o.csv",
    )
    ledger.book(entry)
    ledger.book(make_release(None))
    assert [entry.charge for entry in ledger.releases] == [unbounded, None]


def test_withdrawn_numbers_are_not_used_again(tmp_path: Path) -> None:
    ledger = ReleaseLedger.open(tmp_path / "a", LedgerTerms())
    ledger.book(make_release(1))
    ledger.withdraw(ledger.book(make_release(2))[-1].number)
    assert [entry.number for entry in ledger.book(make_release(3))] == [1, 3]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forks beside threads.
@pytest.mark.parametrize("releases_before", [0, 2])
def test_six_processes_at_once_book_six_releases(tmp_path: Path, releases_before: int) -> None:
    """The ledger is new, or it is in JSON and has two releases."""
    path = tmp_path / "a"
    if releases_before:
        write_json_ledger(path)
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(6)

    def book() -> None:
        """Book a release as soon as all processes are ready."""
        barrier.wait(20)
        ReleaseLedger.open(path, LedgerTerms()).book(make_release(1))

    workers = [fork.Process(target=book) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    assert [worker.exitcode for worker in workers] == [0] * 6
    assert len(ReleaseLedger.open(path).releases) == 6 + releases_before
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_release_stays_booked_if_the_process_dies(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def book_and_die() -> None:
        """Book a release, and end this process at once."""
        ReleaseLedger.open(path, LedgerTerms()).book(make_release(1))
        os.kill(os.getpid(), 9)

    worker = multiprocessing.get_context("fork").Process(target=book_and_die)
    worker.start()
    worker.join(50)
    assert worker.exitcode == -9
    assert len(ReleaseLedger.open(path).releases) == 1


def test_a_ledger_in_json_is_converted_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_json_ledger(path)
    ledger = ReleaseLedger.open(path, LedgerTerms(person="who"))
    assert ledger.key.hex() == KEY
    assert ledger.terms.person == "who"
    booked = ledger.book(make_release(2))
    assert [entry.charge.epsilon for entry in booked if entry.charge] == [
        Fraction(3, 2),
        Fraction(3, 2),
        2,
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(ReleaseLedger.open(path).releases) == 3


@pytest.mark.parametrize(
    "damage",
    [
        {"format": "x"},
        {"version": 2},
        {"version": True},
        {"key": "ab"},
        {"key": "é" * 64},
        {"releases": {}},
        {"releases": [{}]},
        {"more": 1},
    ],
)
def test_damaged_ledgers_in_json_are_refused_and_kept(
    tmp_path: Path, damage: dict[str, Any]
) -> None:
    path = tmp_path / "account"
    write_json_ledger(path, **damage)
    before = path.read_bytes()
    with pytest.raises(wb.CorruptFile, match="account"):
        ReleaseLedger.open(path, LedgerTerms())
    assert path.read_bytes() == before


@pytest.mark.parametrize("epsilon", ["-1", 1, "1_0", "nan"])
def test_an_epsilon_in_a_json_ledger_must_be_the_text_of_a_number(
    tmp_path: Path, epsilon: Any
) -> None:
    path = tmp_path / "account"
    ledger = write_json_ledger(path)
    ledger["releases"][0]["budget"]["epsilon"] = epsilon
    path.write_text(json.dumps(ledger))
    with pytest.raises(wb.CorruptFile):
        ReleaseLedger.open(path, LedgerTerms())


def test_a_file_of_unknown_format_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"", b"\0" * 4096, b"age\n31\n", b"SQLite format 3\0", b"{"):
        path.write_bytes(content)
        with pytest.raises(wb.WorkbenchError, match="a"):
            ReleaseLedger.open(path, LedgerTerms())
        assert path.read_bytes() == content


def test_a_ledger_of_sweeps_is_not_opened_as_one_of_releases(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with wb.Ledger(path):
        pass
    with pytest.raises(wb.InvalidRequest, match="of another kind"):
        ReleaseLedger.open(path, LedgerTerms())


def test_a_missing_ledger_without_terms_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="an existing file"):
        ReleaseLedger.open(tmp_path / "none")


@pytest.fixture
def path_of_one_release(tmp_path: Path) -> Path:
    """Return the path of a ledger with one release of ε = 0.125."""
    path = tmp_path / "a"
    ReleaseLedger.open(path, LedgerTerms()).book(make_release("0.125"))
    return path


def test_a_changed_budget_in_a_ledger_file_is_detected(path_of_one_release: Path) -> None:
    content = path_of_one_release.read_bytes()
    # The budget between neighbours, and the charge.
    assert content.count(b'"0.125"') == 2
    path_of_one_release.write_bytes(content.replace(b'"0.125"', b'"0.025"'))
    with pytest.raises(wb.CorruptFile, match="Release 1 was changed"):
        _ = ReleaseLedger.open(path_of_one_release).releases


def test_a_ledger_file_that_was_cut_is_detected(path_of_one_release: Path) -> None:
    content = path_of_one_release.read_bytes()
    path_of_one_release.write_bytes(content[: len(content) // 2])
    with pytest.raises(wb.CorruptFile, match="damaged"):
        _ = ReleaseLedger.open(path_of_one_release).releases


def test_a_ledger_file_of_a_later_format_is_refused(path_of_one_release: Path) -> None:
    with sqlite3.connect(path_of_one_release) as database:
        database.execute("pragma user_version = 2")
    database.close()
    with pytest.raises(wb.InvalidRequest, match="of format 2"):
        ReleaseLedger.open(path_of_one_release)


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("relation", {"relation": "near"}),
        ("accounting", {"accounting": "exact"}),
        ("epsilon", {"epsilon": Fraction(0)}),
        ("delta", {"delta": Fraction(2)}),
        ("delta", {"accounting": "zcdp"}),
    ],
)
def test_wrong_terms_are_refused(name: str, terms: dict[str, Any]) -> None:
    with pytest.raises(wb.InvalidRequest, match=f"^{name} must be"):
        LedgerTerms(**terms)


def test_the_remaining_budget_is_never_rounded_up(tmp_path: Path) -> None:
    limit = Fraction("0.0999999999999999999999")
    ledger = ReleaseLedger.open(
        tmp_path / "account", LedgerTerms(epsilon=limit, delta=Fraction(1, 3))
    )
    epsilon, delta = (
        Fraction(part.split("= ")[1]) for part in ledger.describe_remaining_budget(()).split(",")
    )
    assert limit - Fraction(1, 10**16) < epsilon <= limit
    assert Fraction(1, 3) - Fraction(1, 10**16) < delta <= Fraction(1, 3)
    with pytest.raises(
        wb.InvalidRequest, match=r"0\.1 left\. Got account, which has epsilon = 0\.0999999999999999"
    ):
        ledger.book(make_release("0.1"))


def test_a_ledger_whose_texts_are_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "account"
    ReleaseLedger.open(path, LedgerTerms()).book(make_release(1))
    content = path.read_bytes()
    for text in (b"booked text", b"autoincrement", b"replace", b'"column": "age"'):
        path.write_bytes(content.replace(text, b"\x97\xae" + text[2:]))
        with pytest.raises((wb.CorruptFile, wb.InvalidRequest)):
            ReleaseLedger.open(path).book(make_release(1))


def test_a_full_disk_is_named_and_nothing_is_booked(tmp_path: Path) -> None:
    """A limit of pages simulates a full disk. SQLite ends the transaction before it raises."""
    ledger = ReleaseLedger.open(tmp_path / "account", LedgerTerms())
    ledger.book(make_release(1))
    connect = sqlite3.connect

    def connect_without_space(*args: Any, **options: Any) -> sqlite3.Connection:
        """Connect to a database that cannot grow."""
        database = connect(*args, **options)
        # SQLite raises this limit to the present number of pages.
        database.execute("pragma max_page_count = 1")
        return database

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_without_space)
        with pytest.raises(wb.InvalidRequest, match="full"):
            ledger.book(make_release(1, value=b"x" * 100_000))
    assert len(ledger.releases) == 1
