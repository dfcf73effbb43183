"""Test that releases are booked before they are shown, and that the ledger refuses too many."""

from __future__ import annotations

import json
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.privacy.release_ledger import ReleaseLedger

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


def test_the_ledger_holds_the_published_value(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    release = wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=1)
    assert list_booked_values(ledger) == [release.value]


def test_a_new_ledger_needs_a_total(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="total must be given for a new ledger"):
        wb.publish.count(PEOPLE, epsilon=1, ledger=tmp_path / "people.ledger")


def test_a_release_with_another_relation_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.count(PEOPLE, epsilon="0.5", ledger=ledger, total=2)
    with pytest.raises(InvalidRequest, match="neighbours must be add-remove"):
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


def test_an_unknown_error_does_not_show_its_text(tmp_path: Path) -> None:
    class Column(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise RuntimeError("secretvalue")

    report = tmp_path / "owner.json"
    with pytest.raises(InvalidRequest) as caught:
        wb.publish.count({"age": Column()}, epsilon=1, owner_report=report)
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


@pytest.mark.parametrize(("moment", "booked"), [("before", 0), ("after", 1)])
def test_a_killed_process_has_shown_nothing_that_is_not_booked(
    moment: str, booked: int, tmp_path: Path
) -> None:
    ledger = tmp_path / "people.ledger"
    command = ["publish", "count", str(write_people(tmp_path)), "--epsilon", "0.5"]
    command += ["--ledger", str(ledger), "--total", "1"]
    process = subprocess.run(
        [sys.executable, "-c", KILL_SCRIPT, moment, *command], check=False, capture_output=True
    )
    assert process.returncode == -signal.SIGKILL
    assert process.stdout == b""
    assert len(list_booked_values(ledger)) == booked


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
                seconds = None if number == 0 else generator.triangular(0.3, 1.5, 1.0)
                output = process.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                output = process.communicate()[0]
        if output:
            printed.append(json.loads(output)["value"])
    booked = list_booked_values(ledger)
    for value in printed:
        booked.remove(value)
    assert printed
    assert len(booked) <= 30
