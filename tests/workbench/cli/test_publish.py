"""Test the commands `publish`: their output, and that nothing private is beside the release.

`publish count`, `sum`, `mean`, `histogram` and `plan` publish statistics of a table of people with
noise. Errors must not show a cell of the table. The report of --owner-report is for the owner
alone.
"""

from __future__ import annotations

import hashlib
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.publishing.release_noise import NumberNoise, PairNoise, Published

SECRET = "secretvalue"
CLEAN = "id,age,smoker,region\n1,20,yes,north\n2,30,no,south\n3,40,yes,north\n"
# Rows that are missing, clipped, not listed, and more than a person may have.
MESSY = (
    "id,age,smoker,region\n1,,yes,north\n1,999,no,north\n1,20,YES ,north\n4,-7,,elsewhere\n"
    "5,30,no,\n6,30,yes,south\n"
)
COMMANDS = {
    "count": ["count", "--where", "smoker=yes"],
    "sum": ["sum", "--column", "age", "--range", "18..95"],
    "mean": ["mean", "--column", "age", "--range", "18..95"],
    "histogram": ["histogram", "--column", "region", "--values", "north,south", "--drop-unlisted"],
}

# A function that runs a command and returns its exit code, its stdout and its stderr.
Runner = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Return a function that runs `workbench publish` with arguments."""

    def run_command(*arguments: object) -> tuple[int, str, str]:
        """Run the command. Return its exit code, its stdout and its stderr."""
        with pytest.raises(SystemExit) as stop:
            main(["publish", *map(str, arguments)])
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run_command


def write_table(folder: Path, text: str) -> Path:
    """Write a table, and return its path."""
    path = folder / "people.csv"
    path.write_text(text)
    return path


def publish_fixed_numbers(noise: Any, answer: Any, source: Any) -> Published:
    """Publish numbers that do not depend on the data, in place of noisy ones."""
    count = max(1, len(answer.values), len(answer.pairs))
    return Published([7] * count, [(6, 8)] * count, 1.5)


@pytest.mark.parametrize("kind", COMMANDS)
def test_nothing_but_the_published_numbers_depends_on_the_data(
    kind: str, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fixed published numbers, a clean and a messy table give the same output and files."""
    monkeypatch.setattr(NumberNoise, "publish", publish_fixed_numbers)
    monkeypatch.setattr(PairNoise, "publish", publish_fixed_numbers)
    files = {"--save": tmp_path / "release.json", "--html": tmp_path / "release.html"}
    options = ["--drop-missing", "--epsilon", 1, "--person", "id", "--rows-per-person", 1]
    command_outputs = []
    file_texts = []
    for text in (CLEAN, MESSY):
        command = [*COMMANDS[kind], write_table(tmp_path, text), *options]
        for name, path in files.items():
            command += [name, path]
        command_outputs.append([run(*command), run(*command, "--json")])
        file_texts.append([path.read_text() for path in files.values()])
    assert command_outputs[0] == command_outputs[1]
    assert file_texts[0] == file_texts[1]
    code, *_ = command_outputs[0][0]
    assert code == 0


@pytest.mark.parametrize(
    ("text", "command", "name"),
    [
        (f"age\n20\n{SECRET}\n", COMMANDS["sum"], "column age"),
        (f"region\nnorth\n{SECRET}\n", COMMANDS["histogram"][:-1], "column region"),
        ("age\n20\nNA\n", COMMANDS["mean"], "--drop-missing"),
        (f"age,smoker\n20,yes\n{SECRET}\n", COMMANDS["count"], "data must have"),
    ],
)
def test_an_error_shows_neither_the_cell_nor_its_line(
    text: str, command: list[str], name: str, run: Runner, tmp_path: Path
) -> None:
    code, out, err = run(*command, write_table(tmp_path, text), "--epsilon", 1, "--json")
    assert code == 2
    assert name in err
    for output in (out, err):
        assert SECRET not in output
        assert "line 3" not in output
        assert "row 2" not in output


def test_the_report_for_the_owner_names_the_line_of_a_wrong_cell(
    run: Runner, tmp_path: Path
) -> None:
    table = write_table(tmp_path, f"age\n20\n{SECRET}\n")
    report = tmp_path / "owner.json"
    code, _, err = run(*COMMANDS["sum"], table, "--epsilon", 1, "--owner-report", report)
    assert code == 2
    assert "owner.json" in err
    assert "line 3" in json.loads(report.read_text())["place"]


def test_the_output_of_a_count(run: Runner, tmp_path: Path) -> None:
    code, out, _ = run(*COMMANDS["count"], write_table(tmp_path, CLEAN), "--epsilon", 200)
    assert code == 0
    for line in ("value          2", "Each row counts as one person", "guarantee", "limits"):
        assert line in out


def test_the_output_of_a_plan(run: Runner, tmp_path: Path) -> None:
    write_table(tmp_path, CLEAN)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'data = "people.csv"\n'
        '[[statistic]]\nkind = "count"\nwhere = "smoker=yes"\nweight = 1\n'
        '[[statistic]]\nkind = "sum"\ncolumn = "age"\nrange = "0..100"\nweight = 1\n'
    )
    save = tmp_path / "plan.json"
    code, out, _ = run("plan", plan, "--epsilon", 400, "--save", save)
    assert code == 0
    assert "count where smoker=yes   200       2 " in out
    assert [path.exists() for path in (save, tmp_path / "plan-1.json")] == [False, True]
    code, *_ = run("plan", plan, "--epsilon", 1, "--json")
    assert code == 0


def test_values_of_one_column_are_given_once(run: Runner, tmp_path: Path) -> None:
    command = [*COMMANDS["histogram"], "--values", "coast", write_table(tmp_path, CLEAN)]
    code, _, err = run(*command, "--epsilon", 1)
    assert code == 2
    assert "values must be given once" in err


def test_a_dry_run_opens_no_data(run: Runner, tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    code, out, _ = run(*COMMANDS["count"], missing, "--epsilon", "0.5", "--dry-run")
    assert code == 0
    assert "root mean squared error 2.799" in out


def test_the_page_to_sign_escapes_names(run: Runner, tmp_path: Path) -> None:
    page = tmp_path / "release.html"
    table = write_table(tmp_path, "<b>,age\n1,2\n")
    command = ["count", table, "--where", 'age="<i>"', "--epsilon", 1, "--html", page]
    code, *_ = run(*command)
    assert code == 0
    assert "<i>" not in page.read_text()
    assert "Name and signature" in page.read_text()


def test_the_page_to_sign_names_the_data_and_the_certificate(run: Runner, tmp_path: Path) -> None:
    page = tmp_path / "release.html"
    certificate = tmp_path / "count.json"
    outputs = ("--html", page, "--save", certificate)
    table = write_table(tmp_path, CLEAN)
    code, *_ = run(*COMMANDS["count"], table, "--epsilon", 1, *outputs)
    assert code == 0
    text = page.read_text()
    assert f"SHA-256 {hashlib.sha256(certificate.read_bytes()).hexdigest()}" in text
    assert f"<td>{table.name}</td>" in text
    assert str(tmp_path) not in text
    assert f"workbench {wb.__version__}" in text


def test_the_page_of_a_dry_run_is_a_request(run: Runner, tmp_path: Path) -> None:
    page = tmp_path / "request.html"
    code, *_ = run(*COMMANDS["count"], "no.csv", "--epsilon", 1, "--dry-run", "--html", page)
    assert code == 0
    assert "<h1>Request: " in page.read_text()
    assert "the limits of this request" in page.read_text()


def test_a_plan_is_printed_again_with_the_published_numbers(run: Runner, tmp_path: Path) -> None:
    write_table(tmp_path, CLEAN)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'data = "people.csv"\n'
        '[[statistic]]\nkind = "mean"\ncolumn = "age"\nrange = "0..100"\nweight = 1\n'
        '[[statistic]]\nkind = "histogram"\ncolumn = "smoker"\nvalues = ["yes", "no"]\n'
        "weight = 1\n"
    )
    ledger = tmp_path / "people.ledger"
    release = wb.publish.plan(plan, epsilon=1, ledger=ledger, total=1)
    code, out, _ = run("again", ledger, 1)
    assert code == 0
    for name, _, value, interval, _ in release.rows:
        assert f"{name}: {value} (95 % interval {interval})\n" in out


def test_a_command_has_no_options_of_other_statistics(run: Runner, tmp_path: Path) -> None:
    table = write_table(tmp_path, CLEAN)
    code, _, err = run(*COMMANDS["histogram"], table, "--epsilon", 1, "--loss", "absolute")
    assert code == 2
    assert "loss" in err


def test_the_data_are_not_overwritten(run: Runner, tmp_path: Path) -> None:
    table = write_table(tmp_path, CLEAN)
    for option in ("--save", "--owner-report", "--ledger"):
        code, _, _ = run(*COMMANDS["count"], table, "--epsilon", 1, option, table)
        assert code == 2
    assert table.read_text() == CLEAN


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_release_of_2000_rows_takes_less_than_2_cpu_seconds(
    kind: str, run: Runner, tmp_path: Path
) -> None:
    rows = "".join(f"{k},{18 + k % 78},yes,north\n" for k in range(2000))
    table = write_table(tmp_path, f"id,age,smoker,region\n{rows}")
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    code, *_ = run(*COMMANDS[kind], table, "--epsilon", 1)
    assert code == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - start < 2


def test_the_help_of_a_histogram_says_that_bins_replace_rows_of_a_person(run: Runner) -> None:
    _, out, _ = run("histogram", "--help")
    help_text = " ".join(out.replace("│", " ").split())
    assert "Required with --person, unless --bins-per-person is given." in help_text
