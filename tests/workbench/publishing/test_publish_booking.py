"""Test that releases are booked before they are shown, and that the ledger refuses too many.

A ledger is a file with a total budget and all releases about the same people. Each entry has the
cost and the value of its release. The report for the owner of the data has private facts, so only
the owner may read it.
"""

from __future__ import annotations

import json
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main
from workbench.data.private_table import read_private_table
from workbench.errors import InvalidRequest
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import LedgerEntry, LedgerTerms, ReleaseLedger

PEOPLE = {"age": [20, 30, 40, 99], "smoker": ["yes", "no", "yes", "no"]}
# The process kills itself instead of booking, or directly after the entry is on the disk.
KILL_SCRIPT = """
import os, signal, sys
from workbench.privacy.release_ledger import ReleaseLedger
from workbench.cli import main
book = ReleaseLedger.book
def book_and_die(ledger, entry):
    if sys.argv[1] == "after":
        book(ledger, entry)
    os.kill(os.getpid(), signal.SIGKILL)
ReleaseLedger.book = book_and_die
main(sys.argv[2:])
"""


def list_booked_values(path: Path) -> list[object]:
    """List the values that a ledger holds."""
    releases = ReleaseLedger.open(path).releases
    return [json.loads(release.value)["value"] for release in releases]


def write_people(folder: Path) -> Path:
    """Write a small table, and return its path."""
    path = folder / "people.csv"
    path.write_text("age,smoker\n20,yes\n30,no\n40,yes\n")
    return path


def test_a_third_release_of_one_half_is_refused_under_a_total_of_one(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    second = wb.publish.mean(PEOPLE, "age", range="18..95", epsilon="0.5", ledger=ledger)
    assert second.ledger.remaining == "epsilon = 0"
    with pytest.raises(InvalidRequest, match="has epsilon = 0 left"):
        wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger)
    assert len(list_booked_values(ledger)) == 2


def refuse_to_read(*arguments: object, **options: object) -> None:
    """Fail in place of a reader of data."""
    raise MemoryError("The data were opened.")


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_too_little_budget_is_refused_before_the_data_are_opened(
    accounting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "people.ledger"
    options = {"ledger": ledger, "total": 1, "total_delta": "1e-6", "accounting": accounting}
    wb.publish.count(PEOPLE, epsilon="0.1", **options)
    monkeypatch.setattr("workbench.publishing.run.read_private_table", refuse_to_read)
    with pytest.raises(InvalidRequest, match=r"Nothing was published\. `publish again"):
        wb.publish.count("no.csv", epsilon=3, ledger=ledger)
    with pytest.raises(MemoryError, match="opened"):
        wb.publish.count("no.csv", epsilon="0.1", ledger=ledger)


def test_a_refused_first_release_leaves_no_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    with pytest.raises(
        InvalidRequest, match=r"which has epsilon = 1 left\. Nothing was published\.$"
    ):
        wb.publish.count(PEOPLE, epsilon=2, ledger=ledger, total=1)
    plan = {"statistic": [{"kind": "count"}, {"kind": "count"}], "expected-rows": 4}
    with pytest.raises(InvalidRequest, match="which has epsilon = 1 left"):
        wb.publish.plan(plan, PEOPLE, epsilon=2, ledger=ledger, total=1)
    assert [*tmp_path.iterdir()] == []


def test_other_commands_leave_no_ledger_of_a_refused_first_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mechanism = tmp_path / "noise.json"
    wb.design(wb.IntegerNoise(1), epsilon=2).save(mechanism)
    ledger = tmp_path / "people.ledger"
    options = f"--ledger {ledger} --total 1"
    for command in (
        f"sample {mechanism} --answer 3 --neighbours replace {options}",
        # The file is not opened.
        f"privatise noise {tmp_path / 'no.csv'} --column age --mechanism {mechanism} "
        f"--clip 20..21 --out {tmp_path / 'out.csv'} {options}",
        f"privatise labels {tmp_path / 'no.csv'} --column age --labels 0..9 --epsilon 2 "
        f"--out {tmp_path / 'out.csv'} {options}",
    ):
        with pytest.raises(SystemExit) as stop:
            main(command.split())
        assert stop.value.code == 2
        captured = capsys.readouterr()
        assert "which has epsilon = 1 left" in " ".join(captured.err.split())
        assert captured.out == ""
        assert not ledger.exists()
    assert not (tmp_path / "out.csv").exists()


def test_a_booking_checks_the_budget_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release is booked while the data of this one are read."""
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.1", ledger=ledger, total=1)

    def read_slowly(*arguments: object, **options: object) -> object:
        monkeypatch.undo()
        wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger)
        return read_private_table(*arguments, **options)

    monkeypatch.setattr("workbench.publishing.run.read_private_table", read_slowly)
    with pytest.raises(InvalidRequest, match=r"which has epsilon = 0\.4 left"):
        wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger)
    assert len(list_booked_values(ledger)) == 2


@pytest.mark.parametrize(
    ("epsilon", "words", "fits", "left_after"),
    [
        ("0.25", "The release fits, and would leave this: epsilon = 0.25.", True, "epsilon = 0.25"),
        ("0.5", "The release fits, and would leave this: epsilon = 0.", True, "epsilon = 0"),
        ("0.501", "The release does not fit, and would be refused.", False, None),
    ],
)
def test_a_dry_run_says_whether_the_release_fits(
    epsilon: str, words: str, fits: bool, left_after: str | None, tmp_path: Path
) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    before = ledger.read_bytes()
    release = wb.publish.count("no.csv", epsilon=epsilon, ledger=ledger, dry_run=True)
    budget = dict(release.facts())["budget"]
    assert budget.endswith(f"this is left before the release: epsilon = 0.5. {words}")
    assert (release.ledger.fits, release.ledger.left_after) == (fits, left_after)
    assert ledger.read_bytes() == before


def test_a_dry_run_counts_the_releases_of_a_ledger_in_json(tmp_path: Path) -> None:
    ledger = tmp_path / "old.json"
    budget = {"epsilon": "4/5", "delta": "0", "per_distance": False}
    entry = {"column": "age", "digest": "", "notion": "pure", "budget": budget, "output": "o.csv"}
    content = {"format": "dp-workbench releases", "version": 1, "key": "0" * 64}
    ledger.write_text(json.dumps({**content, "releases": [entry]}))
    options = {"ledger": ledger, "neighbours": "replace", "total": 1}
    release = wb.publish.count("no.csv", epsilon="0.5", dry_run=True, **options)
    assert release.ledger.remaining == "epsilon = 0.2"
    assert release.ledger.fits is False
    with pytest.raises(InvalidRequest, match=r"which has epsilon = 0\.2 left"):
        wb.publish.count(PEOPLE, epsilon="0.5", **options)
    assert ledger.read_text().startswith("{")


def test_a_ledger_without_a_limit_accepts_every_release(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon=50, ledger=ledger, total="inf")
    second = wb.publish.count(PEOPLE, epsilon=50, ledger=ledger, total="inf")
    assert second.ledger.remaining == "no limit"
    with pytest.raises(InvalidRequest, match=r"people\.ledger has no limit"):
        wb.publish.count(PEOPLE, epsilon=50, ledger=ledger, total=3)


def test_the_ledger_holds_the_published_value(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    release = wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    assert list_booked_values(ledger) == [release.value]


def test_a_new_ledger_needs_a_total(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"total must be given, as .* is a new ledger"):
        wb.publish.count(PEOPLE, epsilon=1, ledger=tmp_path / "people.ledger")


def test_a_ledger_that_a_killed_command_left_empty_may_be_deleted(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    ReleaseLedger.create(ledger, LedgerTerms("add-remove", epsilon=Fraction(1)))
    hint = r"people\.ledger has no releases\. To start with other terms, delete it\."
    for options in ({"total": 2}, {"neighbours": "replace"}, {"total_delta": "1e-6"}):
        with pytest.raises(InvalidRequest, match=hint):
            wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, **{"total": 1, **options})
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    with pytest.raises(InvalidRequest, match="total must be left out") as refused:
        wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=2)
    assert "delete" not in str(refused.value)


def test_a_release_with_another_relation_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=2)
    with pytest.raises(InvalidRequest, match="ledger must be one for data sets of equal size"):
        wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, neighbours="replace")


def test_a_release_for_another_person_column_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=2)
    with pytest.raises(InvalidRequest, match="person must be left out"):
        wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, person="age", rows_per_person=1)


def test_a_refused_cell_uses_no_budget(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    with pytest.raises(InvalidRequest):
        wb.publish.sum(PEOPLE, "smoker", range="0..1", epsilon="0.5", ledger=ledger)
    assert len(list_booked_values(ledger)) == 1


def test_a_pure_release_costs_half_its_squared_epsilon_in_a_zcdp_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    terms = {"ledger": ledger, "total": 1, "total_delta": "1e-6", "accounting": "zcdp"}
    release = wb.publish.count(PEOPLE, epsilon="0.1", **terms)
    (entry,) = ReleaseLedger.open(ledger).releases
    assert entry.zcdp_rho == Fraction(1, 200)
    assert (
        "It counts rho = 0.005. Of the total epsilon = 1, delta = 1e-06, this is left: rho"
        in str(release)
    )


def test_the_releases_of_a_plan_add_their_rho(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    counts = [{"kind": "count", "weight": weight} for weight in (1, 2)]
    terms = {"ledger": ledger, "total": 2, "total_delta": "1e-6", "accounting": "zcdp"}
    wb.publish.plan({"statistic": counts}, PEOPLE, epsilon="0.3", **terms)
    (entry,) = ReleaseLedger.open(ledger).releases
    assert entry.zcdp_rho == Fraction(1, 10) ** 2 / 2 + Fraction(2, 10) ** 2 / 2


def test_a_release_with_delta_is_refused_by_a_zcdp_ledger_before_data_are_read(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "people.ledger"
    terms = {"ledger": ledger, "total": 1, "total_delta": "1e-6", "accounting": "zcdp"}
    with pytest.raises(InvalidRequest, match=r"delta must be left out, as .* adds up"):
        wb.publish.count("no.csv", epsilon="0.1", delta="1e-7", **terms)
    assert not ledger.exists()
    wb.publish.count(PEOPLE, epsilon="0.1", **terms)
    with pytest.raises(InvalidRequest, match=r"delta must be left out, as .* adds up"):
        wb.publish.count("no.csv", epsilon="0.1", delta="1e-7", ledger=ledger)


def test_a_dry_run_states_the_rho_that_a_new_zcdp_ledger_has(tmp_path: Path) -> None:
    terms = {"ledger": tmp_path / "p", "total": 1, "total_delta": "1e-6", "accounting": "zcdp"}
    release = wb.publish.count("no.csv", epsilon="0.1", dry_run=True, **terms)
    # (sqrt(L + 1) - sqrt(L))^2 with L = ln(10^6).
    assert release.ledger.remaining == "rho = 0.0174689"


@pytest.mark.parametrize("options", [{"ledger": "people.ledger", "total": 1}, {}])
def test_the_limits_in_a_ledger_are_those_that_are_printed(tmp_path, monkeypatch, options) -> None:
    monkeypatch.chdir(tmp_path)
    release = wb.publish.count(PEOPLE, epsilon="0.5", **options)
    warning_of_other_releases = (
        "The ledger knows only its own releases. Any other release about the same people tells "
        "more about them."
    )
    assert (warning_of_other_releases in release.not_promised) == bool(options)
    if options:
        (entry,) = ReleaseLedger.open("people.ledger").releases
        assert json.loads(entry.value)["not_promised"] == [*release.not_promised]


def test_an_unknown_error_does_not_show_its_text(tmp_path: Path) -> None:
    class FailingColumn(list[int]):
        """A column whose values cannot be read. Its error names a private value."""

        def __iter__(self) -> Iterator[int]:
            raise RuntimeError("secretvalue")

    report = tmp_path / "owner.json"
    with pytest.raises(InvalidRequest) as caught:
        wb.publish.count({"age": FailingColumn()}, epsilon=1, owner_report=report)
    assert "secretvalue" not in str(caught.value)
    assert "secretvalue" in report.read_text()


def test_a_dry_run_creates_no_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count("no.csv", epsilon="0.5", ledger=ledger, total=1, dry_run=True)
    assert not ledger.exists()


def test_only_the_owner_can_read_the_report_for_the_owner(tmp_path: Path) -> None:
    report = tmp_path / "owner.json"
    wb.publish.count(PEOPLE, where="smoker=yes", epsilon=1, owner_report=report)
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    (facts,) = json.loads(report.read_text())["statistics"]
    assert facts["rows that satisfy the conditions"] == 2


def test_a_report_that_others_can_read_is_refused(tmp_path: Path) -> None:
    report = tmp_path / "owner.json"
    report.touch(mode=0o644)
    with pytest.raises(InvalidRequest, match="only its owner can read"):
        wb.publish.count(PEOPLE, epsilon=1, owner_report=report)


def test_the_report_for_the_owner_does_not_overwrite_the_data(tmp_path: Path) -> None:
    table = write_people(tmp_path)
    table.chmod(0o600)
    with pytest.raises(InvalidRequest):
        wb.publish.count(table, epsilon=1, owner_report=table)
    assert table.read_text().startswith("age,smoker")


@pytest.mark.parametrize(("moment", "booked_count"), [("before", 0), ("after", 1)])
def test_a_killed_process_has_shown_nothing_that_is_not_booked(
    moment: str, booked_count: int, tmp_path: Path
) -> None:
    ledger = tmp_path / "people.ledger"
    command = ["publish", "count", str(write_people(tmp_path)), "--epsilon", "0.5"]
    command += ["--ledger", str(ledger), "--total", "1"]
    process = subprocess.run(
        [sys.executable, "-c", KILL_SCRIPT, moment, *command], check=False, capture_output=True
    )
    assert process.returncode == -signal.SIGKILL
    assert process.stdout == b""
    assert len(list_booked_values(ledger)) == booked_count


def test_thirty_kills_lose_nothing_and_show_nothing_unbooked(tmp_path: Path) -> None:
    """The kills are spread over the time of a whole release, and more of them over its end."""
    ledger = tmp_path / "people.ledger"
    command = [sys.executable, "-m", "workbench", "publish", "count", str(write_people(tmp_path))]
    command += ["--epsilon", "0.01", "--ledger", str(ledger), "--total", "1", "--json"]
    generator = random.Random(1)
    printed = []
    for number in range(31):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                # The first release is not killed, so that the ledger exists.
                seconds = None if number == 0 else generator.triangular(low=0.3, high=1.5, mode=1.0)
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
        if output:
            printed.append(json.loads(output)["value"])
    booked = list_booked_values(ledger)
    for value in printed:
        booked.remove(value)
    assert printed
    assert len(booked) <= 30


def test_the_rest_of_a_ledger_is_not_published_if_costs_count_private_rows(tmp_path: Path) -> None:
    """The column of six rows of one person cost ε = 6. The rest of 40 would tell this."""
    path = tmp_path / "people.ledger"
    budget = PrivacyBudget(Fraction(6))
    ledger = ReleaseLedger.create(path, LedgerTerms("replace", "id", epsilon=Fraction(40)))
    ledger.book(LedgerEntry("age", "", "pure", budget, budget, output="ages.csv"))
    table = {"id": [1, 1, 2]}
    options = {"person": "id", "rows_per_person": 1, "neighbours": "replace", "ledger": path}
    for dry_run in (True, False):
        release = wb.publish.count(table, epsilon=1, dry_run=dry_run, **options)
        assert "private" in release.ledger.remaining
        assert "3" not in release.ledger.remaining
        assert release.ledger.all_releases is None


def test_the_ledger_states_the_guesses_for_all_its_releases(tmp_path: Path) -> None:
    """Two releases at ε = 1/2 have ε = 1: 100 e / (1 + e) = 73.1 right guesses."""
    ledger = tmp_path / "people.ledger"
    first = wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    second = wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger)
    assert "epsilon = 0.5, at most 63 of 100 guesses" in str(first)
    assert "together: epsilon = 1, at most 74 of 100 guesses" in str(second)


def test_the_guesses_of_a_zcdp_ledger_follow_from_rho(tmp_path: Path) -> None:
    """Pinsker: ρ = 2 (0.1)²/2 = 0.01 gives 50 (1 + √0.005) = 53.5. The sum of ε gives 55."""
    terms = {"ledger": tmp_path / "p", "total": 1, "total_delta": "1e-6", "accounting": "zcdp"}
    wb.publish.count(PEOPLE, epsilon="0.1", **terms)
    second = wb.publish.count(PEOPLE, epsilon="0.1", **terms)
    assert "at most 54 of 100 guesses are right" in str(second)
