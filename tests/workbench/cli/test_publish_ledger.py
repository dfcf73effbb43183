"""Test `publish ledger` and `publish again`, which show a ledger and print booked values again.

A ledger is an SQLite file with a total budget and all releases about the same people. A release is
booked with its budget and its value before the value is printed, so no value is lost.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from killed_commands import run_and_kill

import workbench as wb
from workbench.cli import main, privatise
from workbench.errors import must
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import LedgerEntry


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> wb.ReleaseLedger:
    """Change to a folder with the ledger `account`, which has a total of (2, 0.1)."""
    monkeypatch.chdir(tmp_path)
    terms = wb.LedgerTerms("add-remove", epsilon=Fraction(2), delta=Fraction(1, 10))
    return wb.ReleaseLedger.create("account", terms)


def make_entry(column: str, epsilon: str, value: bytes | None, output: str = "") -> LedgerEntry:
    """Make a release with the budget (epsilon, 0)."""
    budget = PrivacyBudget(Fraction(epsilon))
    return LedgerEntry(column, "", "pure", budget, budget, output, value=value)


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    """Run a command line. Return its exit code, its stdout, and its stderr with single spaces."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, " ".join(captured.err.split())


@pytest.fixture
def ledger_with_releases(ledger: wb.ReleaseLedger) -> wb.ReleaseLedger:
    """Book a count with ε = 1/3 and a mean with ε = 1/2 in the ledger `account`."""
    ledger.book(make_entry("count where smoker=yes", "1/3", b'{"value": 12}'))
    ledger.book(make_entry("mean of age", "1/2", b'{"value": 40.5}'))
    return ledger


def test_a_ledger_is_shown_with_its_terms_releases_and_rest(ledger_with_releases, capsys):
    code, out, _ = run(capsys, "publish ledger account")
    assert code == 0
    text = " ".join(out.split())
    assert "add-remove: all rows of one person are added or removed" in text
    assert "total epsilon = 2, delta = 0.1" in text
    assert "used epsilon = 0.83333333333333337" in text  # 5/6, rounded up.
    assert "left epsilon = 1.1666666666666666, delta = 0.1" in text  # 7/6, rounded down.
    assert "count where smoker=yes pure epsilon = 0.33333333333333334" in text


def test_the_json_of_a_ledger_has_its_terms_and_releases(ledger_with_releases, capsys):
    _, out, _ = run(capsys, "publish ledger account --json")
    report = json.loads(out)
    assert (report["neighbours"], report["accounting"]) == ("add-remove", "basic")
    assert (report["total"], report["total_delta"]) == (2, 0.1)
    count, mean = report["releases"]
    assert (count["what"], mean["what"]) == ("count where smoker=yes", "mean of age")
    assert mean["booked"].startswith("20")  # A date of this century.


def test_neither_the_key_nor_a_digest_of_private_values_is_shown(ledger_with_releases, capsys):
    _, out, _ = run(capsys, "publish ledger account --json")
    for release in json.loads(out)["releases"]:
        assert not {"key", "digest", "seal"} & release.keys()
    assert ledger_with_releases.key.hex() not in out


def test_a_booked_value_is_printed_again_without_cost(ledger, capsys):
    ledger.book(make_entry("count", "1", b'{"value": 12}'))
    ledger.book(make_entry("2 draws of noise.json", "1", b"3\n5\n"))
    before = Path("account").read_bytes()
    code, out, _ = run(capsys, "publish again account 1")
    assert (code, out) == (0, '{"value": 12}\n')
    code, out, _ = run(capsys, "publish again account 2")
    assert (code, out) == (0, "3\n5\n")
    _, out, _ = run(capsys, "publish again account 1 --json")
    report = json.loads(out)
    assert (report["number"], report["value"], report["cost"]) == (1, {"value": 12}, "epsilon = 1")
    assert Path("account").read_bytes() == before


def test_a_value_that_is_only_in_its_file_is_not_printed(ledger, capsys):
    ledger.book(make_entry("age", "1", None, output="o.csv"))
    code, out, err = run(capsys, "publish again account 1")
    assert (code, out) == (2, "")
    assert "number must be a release whose value is in account. Got 1, whose value is only" in err
    assert "in o.csv" in err


def test_a_release_that_is_not_in_the_ledger_is_not_printed(ledger, capsys):
    ledger.book(make_entry("count", "1", b"{}"))
    code, out, err = run(capsys, "publish again account 7")
    assert (code, out) == (2, "")
    assert "number must be the number of a release of account (1). Got 7." in err


@pytest.mark.parametrize(
    ("value", "output"),
    [("{id},x\n1,2\n", "o.csv"), ('{"a": 1}\n', "o.csv"), ("{left\n", "")],
    ids=["table", "table like an object", "drawn label"],
)
def test_a_booked_text_that_begins_with_a_brace_stays_a_text(ledger, capsys, value, output):
    ledger.book(make_entry("id", "1", value.encode(), output))
    _, out, _ = run(capsys, "publish again account 1 --json")
    assert json.loads(out)["value"] == value


@pytest.mark.parametrize("command", ["publish ledger FILE", "publish again FILE 1"])
def test_other_files_are_refused_and_not_made(ledger, capsys, command: str):
    Path("folder").mkdir()
    Path("empty").touch()
    Path("link").symlink_to("missing")
    Path("data.csv").write_text("age\n31\n")
    with sqlite3.connect("other") as database:
        database.execute("create table t (a)")
    database.close()
    messages = {
        "missing": "ledger must be an existing file. Got missing, which does not exist.",
        "link": "ledger must be an existing file. Got missing, which does not exist.",
        "folder": "ledger must be a file. Got folder, which is a folder or a device.",
        "/dev/null": "ledger must be a file. Got null, which is a folder or a device.",
        "empty": "Got empty, which is empty.",
        "data.csv": "ledger must be a ledger of releases. Got data.csv, which is of another kind.",
        "other": "ledger must be a ledger of releases. Got other, which is of another kind.",
    }
    for name, message in messages.items():
        code, out, err = run(capsys, command.replace("FILE", name))
        assert (code, out) == (2, "")
        assert message in err
    assert not Path("missing").exists()


def test_a_ledger_is_found_through_a_link(ledger, capsys):
    Path("link").symlink_to("account")
    wb.ReleaseLedger.open("link").book(make_entry("count", "1", b"{}"))
    assert Path("link").is_symlink()
    _, out, _ = run(capsys, "publish ledger account")
    assert "count" in out


def test_a_ledger_without_write_permission_is_shown_but_books_nothing(ledger, capsys, monkeypatch):
    """The tests may run as root, whom no mode stops. So the database is opened for reading."""
    ledger.book(make_entry("count", "1", b"{}"))
    connect = sqlite3.connect

    def connect_read_only(path: str, **options):
        """Open the database for reading only."""
        return connect(path.replace("mode=rw", "mode=ro"), **options)

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    code, _, _ = run(capsys, "publish ledger account")
    assert code == 0
    with pytest.raises(wb.InvalidRequest, match=r"writable file\. Got account: attempt to write"):
        ledger.book(make_entry("count", "1", b"{}"))
    assert len(ledger.releases) == 1


def test_a_file_system_without_locks_is_named(ledger, capsys, monkeypatch):
    class Database(sqlite3.Connection):
        """A database on a file system that has no locks, such as some kinds of NFS."""

        def execute(self, statement, *args):
            """Execute a statement, but fail to lock the database."""
            if statement == "begin exclusive":
                raise sqlite3.OperationalError("locking protocol")
            return super().execute(statement, *args)

    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **options: connect(path, factory=Database, **options)
    )
    with pytest.raises(wb.InvalidRequest, match="account: locking protocol"):
        ledger.book(make_entry("count", "1", b"{}"))
    monkeypatch.undo()


STARS = "who,stars,town\nann,1,Ulm\nbob,4,Rom\nann,0,Bari\n" + 7 * "cyd,2,Oslo\n"
STARS_COMMAND = (
    "privatise labels p.csv --column stars --labels 0..4 --epsilon 1 --ledger account --total 19 "
    "--person who --copy --out o.csv"
)


@pytest.fixture
def star_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with the file p.csv of STARS."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(STARS)


def test_a_published_column_is_in_the_ledger(star_rows, capsys):
    code, _, _ = run(capsys, STARS_COMMAND)
    assert code == 0
    published = [line.split(",")[1] for line in Path("o.csv").read_text().split()]
    code, out, _ = run(capsys, "publish again account 1")
    # The copied columns are not protected, so they are not in the ledger.
    assert (code, out.split()) == (0, published)


def test_a_published_column_costs_the_rows_of_the_person_with_most_rows(star_rows, capsys):
    run(capsys, STARS_COMMAND)
    _, out, _ = run(capsys, "publish ledger account")
    assert "epsilon = 7" in out  # cyd has seven rows.
    assert "counts the rows of the person with most rows" in " ".join(out.split())


def test_a_large_published_column_is_not_in_the_ledger(star_rows, capsys, monkeypatch):
    monkeypatch.setattr(privatise, "_MAX_STORED_BYTES", 10)
    code, out, _ = run(capsys, STARS_COMMAND)
    assert code == 0
    assert "too large for the ledger" in " ".join(out.split())
    _, _, err = run(capsys, "publish again account 1")
    assert "whose value is only in o.csv" in err


def test_under_zcdp_the_rows_of_one_person_cost_half_of_their_squared_epsilon(
    tmp_path: Path, capsys, monkeypatch
):
    """The rows share the noise of the prior, so three rows cost (3 ε)²/2, not 3 ε²/2."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("who,stars\n" + "ann,4\n" * 3 + "bob,1\ncyd,0\ndee,2\neva,2\n")
    command = (
        "privatise labels p.csv --column stars --labels 0..4 --epsilon 1 --person who --out o.csv "
        "--ledger account --total 30 --total-delta 1e-6 --accounting zcdp"
    )
    code, _, _ = run(capsys, command)
    assert code == 0
    (release,) = wb.ReleaseLedger.open("account").releases
    assert release.zcdp_rho == Fraction(9, 2)
    _, out, _ = run(capsys, "publish ledger account --json")
    assert json.loads(out)["releases"][0]["cost"] == "rho = 4.5"


def test_a_column_of_a_killed_command_is_booked_and_not_lost(tmp_path: Path, capsys, monkeypatch):
    """The command is killed after the booking, before it writes the first file."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("stars\n" + "4\n1\n0\n2\n" * 3)
    command = "privatise labels p.csv --column stars --labels 0..4 --epsilon 2 --out o.csv"
    arguments = [*command.split(), "--ledger", "account", "--total", "3"]
    function = "workbench.cli.privatise:write_output"
    assert run_and_kill(function, "before", arguments, tmp_path) == (-9, "")
    assert not Path("o.csv").exists()
    code, out, _ = run(capsys, "publish again account 1")
    assert code == 0
    header, *rows = out.split()
    assert (header, len(rows)) == ("stars", 12)
    # The budget is used.
    code, _, err = run(capsys, f"{command} --ledger account")
    assert code == 2
    assert "epsilon = 2 left. Got account, which has epsilon = 1 left" in err


def test_a_ledger_that_others_can_read_is_warned_of(ledger, capsys):
    Path("account").chmod(0o644)
    noise = wb.Channel.from_pairs([[3, 1], [1, 3]])
    wb.certify(noise, epsilon="3/2").save("channel.json")
    command = "sample channel.json --answer 1 --ledger account --neighbours add-remove"
    code, _, err = run(capsys, command)
    assert code == 0
    assert "Warning: other users can read the ledger account. Run chmod 600 account." in err


def test_a_notebook_shows_the_rest_of_a_ledger(ledger):
    ledger.book(make_entry("count", "1/2", b"{}"))
    assert dict(ledger.facts())["left"] == "epsilon = 1.5, delta = 0.1"
    assert "epsilon = 1.5, delta = 0.1" in ledger._repr_html_()
    assert "epsilon = 1.5, delta = 0.1" in str(ledger)


def test_a_ledger_whose_name_is_no_text_books_releases(tmp_path: Path):
    """A name of a file may have bytes that are not UTF-8."""
    path = tmp_path / "\udcff#?%41"
    ledger = wb.ReleaseLedger.create(path, wb.LedgerTerms())
    ledger.book(make_entry("count", "1", b"{}"))
    assert path.is_file()
    assert len(wb.ReleaseLedger.open(path).releases) == 1


@pytest.mark.parametrize(("has_old_output", "booked"), [(False, 0), (True, 1)])
def test_a_release_whose_report_stays_is_not_withdrawn(
    has_old_output: bool, booked: int, tmp_path: Path, capsys, monkeypatch
):
    """The disk is full when the output is written. The report has totals of the new column."""
    monkeypatch.chdir(tmp_path)
    names = wb.FiniteQuery(["north", "south"], neighbours="all")
    wb.design(names, loss="error-rate", epsilon=1).save("names.json")
    Path("p.csv").write_text("who,region\na,north\nb,south\n")
    if has_old_output:
        Path("o.csv").write_text("region\nsouth\n")
    write_output = privatise.write_output

    def write_on_full_disk(path: Path, content: bytes, *, private: bool = False) -> None:
        if path.name == "o.csv":
            must("output", "a writable file", "o.csv: No space left on device")
        write_output(path, content, private=private)

    monkeypatch.setattr(privatise, "write_output", write_on_full_disk)
    command = "privatise channel p.csv --column region --mechanism names.json --out o.csv"
    code, _, err = run(capsys, f"{command} --overwrite --ledger account --total 3")
    assert code == 2
    assert "No space left" in err
    assert Path("o.csv.json").exists() == bool(booked)
    assert len(wb.ReleaseLedger.open("account").releases) == booked


def test_draws_of_a_seed_are_not_booked(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("stars\n4\n1\n")
    command = "privatise labels p.csv --column stars --labels 0..4 --epsilon 1 --out o.csv"
    code, _, err = run(capsys, f"{command} --insecure-seed 3 --ledger account --total 3")
    assert code == 2
    assert "insecure_seed must be left out with a ledger" in err
    assert not Path("account").exists()
    assert not Path("o.csv").exists()
