"""Test errors of commands: one line in one form and exit code 2, also if stdout is closed or full.

An error is "InvalidRequest: RULE. Got VALUE." or another class of `workbench.errors` with its
message.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import InvalidRequest
from workbench.mechanisms.dyadic_laplace.randomness import SharedStream

WORKBENCH = [sys.executable, "-P", "-m", "workbench"]


def run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a command line. Return its exit code and its texts on stdout and stderr."""
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("design modulo --n eight --epsilon 1", "n must be an integer. Got eight."),
        ("design modulo --n=eight --epsilon 1", "n must be an integer. Got eight."),
        ("results list --limit -1", "limit must be at least 0. Got -1."),
        ("design modulo --n 8 --max-shift 1", "epsilon must be given. Got none."),
        ("design modulo --n 8 --epsilon", "epsilon must be given. Got none."),
        ("audit", "file must be given. Got none."),
        ("doctor --json=3", "json must be given without a value. Got 3."),
        (
            "design channel --cost x",
            "No such option --cost; did you mean --constraint, --loss or --plot?",
        ),
        ("check --jsn x", "No such option --jsn; did you mean --json?"),
        ("adit", "No such command adit; did you mean 'audit'?"),
        ("doctor now", "arguments must be among those that --help lists. Got now."),
        ("doctor " + "x" * 9999, "arguments must be among those that --help lists. Got xxx"),
    ],
)
def test_a_wrong_command_line_is_refused_with_rule_and_value(
    capsys: pytest.CaptureFixture[str], line: str, message: str
):
    code, out, err = run(line, capsys)
    assert (code, out) == (2, "")
    assert err.startswith(f"InvalidRequest: {message}")
    assert len(err) < 400


@pytest.mark.parametrize(
    "line",
    [
        "frontier laplace --bits 1e400 --epsilon 1",
        "reproduce --only nothing",
        "reproduce --only nothing --out new/folder",
        "compare --suite small --solvers nobody --out new/folder",
        "programs export new/folder --names nothing*",
    ],
)
def test_a_request_that_is_refused_leaves_no_folder(
    capsys: pytest.CaptureFixture[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(line, capsys)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line",
    [
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --density=normal:0,1e-300",
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --density=normal:1e300,1",
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --c 1e5000",
        "design quantizer --bins=-1e5000,1e5000 --epsilon 1",
        "audit rqm --with bins=-3,-0.5,0.5,3 --with q=0.2 --with c=1e-5000",
        "design labels --labels 0..3 --epsilon 1 --loss huber:1e300",
    ],
)
def test_numbers_beyond_doubles_are_refused_without_a_warning(
    capsys: pytest.CaptureFixture[str], line: str
):
    code, _, err = run(line, capsys)
    assert code == 2
    assert err.startswith("InvalidRequest: ")
    assert err.count("\n") == 1


def test_a_folder_in_place_of_a_ledger_is_refused(capsys: pytest.CaptureFixture[str]):
    code, _, err = run("results export o.csv --ledger=. --spec=nobody", capsys)
    assert code == 2
    assert err.startswith("InvalidRequest: ")
    assert err.count("\n") == 1


def test_an_infeasible_design_exits_with_2(capsys: pytest.CaptureFixture[str]):
    code, out, err = run("design laplace --epsilon 11 --bits 5", capsys)
    assert (code, out) == (2, "")
    assert err.startswith("Infeasible: Not reachable: no ell brings the mean length")
    assert err.count("\n") == 1


@pytest.mark.parametrize("folder", ["/proc/none", "file/folder", "file"])
@pytest.mark.parametrize(
    "line",
    [
        "reproduce --out {}",
        "frontier modulo --n 4 --max-shift 1 --epsilon 1 --out {}",
        "frontier laplace --epsilon 1 --bits 5 --out {}",
        "compare --suite small --out {}",
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_before_the_computation(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    folder: str,
):
    """A file is no folder, and nothing can be written into /proc."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    code, out, err = run(line.format(folder), capsys)
    assert (code, out) == (2, "")
    assert "must be a folder that can be written. Got " in err
    assert err.count("\n") == 1


# Streams.


def run_in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `workbench` with this text, which may redirect streams, in a new shell."""
    return subprocess.run(
        ["bash", "-c", f'"$0" -P -m workbench {line}', sys.executable],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


# A command that succeeds, and the error on a full device.
GOOD = "design laplace --epsilon 1 --bits 5"
FULL = "WorkbenchError: The output cannot be written: No space left on device.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize(
    ("line", "codes", "err"),
    [
        (f"{GOOD} > /dev/full", [2], FULL),
        (f"{GOOD} --json > /dev/full", [2], FULL),
        ("--version > /dev/full", [2], FULL),
        (
            "design laplace --epsilon x --bits 5 --json > /dev/full",
            [2],
            "InvalidRequest: epsilon must be a finite number > 0. Got x.\n",
        ),
        ("design laplace --epsilon x --bits 5 2> /dev/full", [2], ""),
        (f"{GOOD} >&-", [0], ""),
        (f"{GOOD} --json >&- <&-", [0], ""),
        ("design laplace --epsilon x --bits 5 >&- 2>&-", [2], ""),
        (f"{GOOD} 2>&- >/dev/null", [0], ""),
        # `true` closes the pipe before or after the report is written.
        (f"{GOOD} | true; exit ${{PIPESTATUS[0]}}", [0, 2], ""),
    ],
    ids=[
        "full",
        "full json",
        "full version",
        "error beside full",
        "error on full",
        "closed",
        "closed json",
        "error beside closed",
        "closed stderr",
        "closed pipe",
    ],
)
def test_the_message_and_exit_code_if_stdout_is_closed_or_full(
    tmp_path: Path, line: str, codes: list[int], err: str
):
    """`codes` are the allowed exit codes."""
    completed = run_in_shell(line, tmp_path)
    assert completed.stderr == err
    assert completed.returncode in codes


LOST = (
    "Release 1 of my account is booked. `workbench publish again 'my account' 1` prints it and "
    "uses no further budget.\n"
)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("> /dev/full", f"{FULL.strip()} {LOST}"),
        ("--json > /dev/full", f"{FULL.strip()} {LOST}"),
        ("--json | true", f"note: {LOST}"),
        ("| true", f"note: {LOST}"),
        (
            "--owner-report /dev/full",
            "InvalidRequest: owner_report must be a writable file. Got full: No space left on "
            f"device. {LOST}",
        ),
        (
            "--save /dev/full",
            "InvalidRequest: output must be a writable file. Got full: No space left on device. "
            f"{LOST}",
        ),
    ],
)
def test_the_error_after_a_booking_says_how_to_print_the_release(
    tmp_path: Path, end: str, message: str
):
    (tmp_path / "p.csv").write_text("age\n20\n30\n")
    line = "publish count p.csv --epsilon 1 --ledger 'my account' --total 1"
    # The pipe is closed before the command writes.
    reader = end.replace("| true", "> >(true)")
    completed = run_in_shell(f"{line} {reader}", tmp_path)
    assert completed.stderr == message
    again = run_in_shell("publish again 'my account' 1", tmp_path)
    assert (again.returncode, again.stdout[:6]) == (0, "count:")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize("end", ["", "--json"])
def test_the_error_after_booked_draws_says_how_to_print_them(tmp_path: Path, end: str):
    noise = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1)
    noise.save(tmp_path / "noise.json")
    line = "sample noise.json --answer 3 --ledger account --neighbours add-remove --total 1"
    completed = run_in_shell(f"{line} {end} > /dev/full", tmp_path)
    assert completed.returncode == 2
    assert f"{FULL.strip()} Release 1 of account is booked." in completed.stderr


def test_an_error_before_a_booking_names_no_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The release of the command before is not that of this one."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("age\n20\n30\n")
    line = "publish count p.csv --epsilon 1 --ledger account"
    assert run(f"{line} --total 1", capsys)[0] == 0
    code, _, err = run(line, capsys)
    assert code == 2
    assert "is booked" not in err


def test_a_closed_stdout_never_becomes_a_file(tmp_path: Path):
    """The next opened file would otherwise get the number of stdout, and the output."""
    completed = run_in_shell("laplace keygen key >&- 2>&-", tmp_path)
    assert completed.returncode == 0
    assert (tmp_path / "key").stat().st_size == 32


def test_the_command_beside_a_file_called_models_designs(tmp_path: Path):
    (tmp_path / "models.py").write_text("raise RuntimeError('a file of the user was imported')")
    completed = subprocess.run(
        [*WORKBENCH, "design", "modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (completed.returncode, completed.stderr) == (0, "")


# Wrong types from Python (tests/fuzz looks for more).


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SharedStream(bytes(16), bytes(16), position=True), "position must be an integer"),
        (lambda: wb.Quantization(bins=3), "bins must be a list of numbers. Got 3."),
        (lambda: wb.Quantization(bins=["x", "y"]), "a bin must be"),
        (lambda: wb.DataLaw.point("0.5"), "x must be a finite number."),  # type: ignore[arg-type]
        (lambda: wb.sweep(3), "specification must be the path of a file. Got 3."),  # type: ignore[arg-type]
        (
            lambda: wb.sweep(
                {"grid": {"model": "modulo", "n": 3, "max_shift": 1, "epsilon": 1}}, 3
            ),
            "ledger must be the path of a file. Got 3.",
        ),  # type: ignore[arg-type]
        (
            lambda: wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1, constraints=""),
            "constraints must be",
        ),
        (
            lambda: wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1, solver=[1, 2]),
            "solver must be",
        ),
    ],
)
def test_a_wrong_type_is_refused_with_the_name_of_the_argument(call: Any, message: str):
    with pytest.raises(InvalidRequest) as raised:
        call()
    assert str(raised.value).startswith(message)


# Commands without a budget.
NOISE = "design modulo --n 4 --max-shift 1"
INTEGERS = "design noise --on integers --sensitivity 1 --loss squared"
CHANNEL = "design channel --answers 0..4 --max-shift 1"
LABELS = "design labels --labels 0..4 --method lp"


@pytest.mark.parametrize("command", [NOISE, INTEGERS, CHANNEL, LABELS])
@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("zcdp --rho 1e400", "rho must be 0, or of a size from 5e-324 to 1.79e308. Got 1e400."),
        ("gdp --mu 1e-400", "mu must be 0, or of a size from 5e-324 to 1.79e308. Got 1e-400."),
        ("renyi --epsilon 1 --alpha 1", "alpha must be a finite number > 1. Got 1."),
        ("zcdp --rho 1e101", "rho must be between 1e-100 and 1e+100. Got 1e101."),
        (
            "renyi --epsilon 1 --alpha 1e300",
            "alpha must be between 1 + 1e-9 and 1e+09. Got 1e300.",
        ),
        ("renyi --epsilon 1 --alpha " + f"1.{'0' * 20}1", "alpha must be between 1 + 1e-9"),
        ("nonsense --epsilon 1", "notion must be one of "),
    ],
)
def test_a_budget_outside_the_range_of_floats_is_refused(
    capsys: pytest.CaptureFixture[str], command: str, budget: str, message: str
):
    code, out, err = run(f"{command} --notion {budget}", capsys)
    assert (code, out) == (2, "")
    assert err.startswith(f"InvalidRequest: {message}")
    if budget.startswith("nonsense"):
        assert all(name in err for name in ("dp", "pure", "curve", "renyi", "zcdp", "gdp"))


FRONTIER = "frontier modulo --n 2 --max-shift 1 --no-baselines"
PRIVATISE = "privatise labels FOLDER/d.csv --column age --out FOLDER/o.csv"
# Commands with a number at NUMBER, or in a cell of a file of FOLDER.
COMMANDS_WITH_A_NUMBER = [
    "audit FOLDER/m.csv --epsilon NUMBER",
    "design quantizer --levels 4 --epsilon 1 --reach NUMBER",
    "design quantizer --levels 2 --epsilon NUMBER",
    f"{FRONTIER} --max-loss NUMBER",
    f"{FRONTIER} --epsilon 1 --level NUMBER",
    f"{FRONTIER} --epsilon 1 --delta NUMBER",
    "frontier laplace --bits NUMBER --epsilon 1",
    "frontier laplace --bits 5 --epsilon NUMBER",
    "frontier labels --labels 0..3 --epsilon NUMBER",
    "frontier quantizer --levels 2 --epsilon 1 --no-baselines --loss NUMBER",
    f"{PRIVATISE} --epsilon NUMBER",
    f"{PRIVATISE} --epsilon 1 --split NUMBER",
    "design channel --answers 0..2 --max-shift 1 --epsilon 1 --prior FOLDER/prior.csv",
    "frontier channel --answers 0..1 --max-shift 1 --epsilon 1 --baseline FOLDER/own.csv",
]


@pytest.mark.parametrize("number", ["1e400", "1e-400", "1e-5000", "1e-300"])
def test_numbers_outside_the_range_of_doubles_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, number: str
):
    """Numbers are in options and in cells. 1e-300 is a double, so it may also be accepted."""
    (tmp_path / "m.csv").write_text("0.9,0.1\n0.5,0.5")
    (tmp_path / "d.csv").write_text("age\n1\n2\n1")
    (tmp_path / "prior.csv").write_text(f"0,{number}\n1,1\n2,3")
    (tmp_path / "own.csv").write_text(f"x,0,1\n0,0.5,{number}\n1,0.5,0.5")
    allowed_codes = (0, 2) if number == "1e-300" else (2,)
    for command in COMMANDS_WITH_A_NUMBER:
        line = command.replace("NUMBER", number).replace("FOLDER", str(tmp_path))
        code, out, err = run(line, capsys)
        assert code in allowed_codes, (line, err)
        if code == 2:
            assert err.startswith("InvalidRequest: "), line
            assert err.count("\n") == 1, line
        # No message expands 1e400 into its digits.
        assert "0" * 30 not in out + err, line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            f"{NOISE} --notion curve --curve 1e300:0.1",
            "InvalidRequest: epsilon must be at most 34 in a program.",
        ),
        (
            f"{INTEGERS} --notion curve --curve 1e300:0.1",
            "InvalidRequest: epsilon must be between 1e-09 and 700.",
        ),
        (
            f"{INTEGERS} --notion dp --epsilon 1e300",
            "InvalidRequest: epsilon must be between 1e-09 and 700.",
        ),
        (
            f"{CHANNEL} --notion renyi --alpha 4 --epsilon 1e300",
            "InvalidRequest: epsilon must be at most",
        ),
        (
            f"{NOISE} --minimise epsilon --max-loss=-1",
            "Infeasible: No noise has loss error-rate below 0.",
        ),
    ],
)
def test_a_budget_that_programs_cannot_represent_is_refused(
    capsys: pytest.CaptureFixture[str], line: str, message: str
):
    code, out, err = run(line, capsys)
    assert (code, out) == (2, "")
    assert err.startswith(message)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("privatise noise x.csv --runs 3", "--help lists the options"),
        ("doctor --runs 3", "--help lists the options"),
        ("formula channel --answers 0..3 --max-shift 1 --solver scip", "did you mean"),
        ("frontier noise --answers 0..3", "of frontier noise; frontier channel has it"),
        ("design channel --levels 4", "of design channel; design quantizer has it"),
    ],
)
def test_an_unknown_option_names_the_commands_that_have_it(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "No such option" in err
    assert words in err
    assert "of this command" not in err
