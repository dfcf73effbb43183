"""The command line as a user meets it: fresh processes are slow, so most tests call main() in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.cli import main

NOISE = [
    "design",
    "modulo",
    "--n",
    "8",
    "--shifts",
    "1,2,3",
    "--directed",
    "--epsilon",
    "1.5",
    "--notion",
    "pdp",
]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_design_json_is_one_object(capsys):
    code, out, _ = run(capsys, *NOISE, "--delta", "0.1212", "--json")
    made = json.loads(out)
    assert code == 0
    assert made["objective"] == pytest.approx(0.450172331, abs=1e-9)
    assert made["oracle"]["agrees"] is True
    assert out.count("\n") == 1


def test_design_says_what_a_reader_must_know(capsys):
    code, out, _ = run(capsys, *NOISE, "--delta", "0.1212")
    assert code == 0
    for words in ("0.450172331", "bound", "PDP delta", "known formula", "directed"):
        assert words in out


def test_vector_query_and_per_difference_epsilon(capsys):
    code, out, _ = run(
        capsys,
        "design",
        "modulo",
        "--sizes",
        "5x5",
        "--shifts",
        "0,1;1,0",
        "--epsilon",
        "0,1=0.5;1,0=1",
        "--json",
    )
    made = json.loads(out)
    assert code == 0
    assert len(made["pmf"]) == 25
    assert made["epsilon"]["0,1"] == 0.5


def test_save_and_plot(capsys, tmp_path: Path):
    saved, plot = tmp_path / "noise.json", tmp_path / "noise.png"
    code, _, _ = run(capsys, *NOISE, "--save", str(saved), "--plot", str(plot))
    assert code == 0
    made = json.loads(saved.read_text())
    assert made["format"] == "dp-workbench certificate"
    assert float(made["objective"]["value"]) == pytest.approx(0.456808001, abs=1e-9)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_compare_keeps_a_failure_as_a_row(capsys):
    code, out, _ = run(
        capsys,
        "compare",
        "modulo",
        "--n",
        "8",
        "--max-shift",
        "3",
        "--epsilon",
        "1.5",
        "--delta",
        "0.1",
        "--notion",
        "pdp",
        "--solvers",
        "highs,ortools:glop,nonsense",
        "--json",
    )
    rows = {row["solver"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["highs"]["status"] == "optimal"
    assert rows["ortools:glop"]["status"] == "unavailable"
    assert "nonsense" in rows["nonsense"]["failure"]


def test_verify_small_grid(capsys):
    code, out, _ = run(capsys, "verify", "--small", "--json")
    made = json.loads(out)
    assert code == 0
    assert made["disagreements"] == 0
    assert made["requests"] > 100
    assert any(group["kind"] == "optimum" and group["agree"] > 50 for group in made["summary"])


def test_solvers_list(capsys):
    code, out, _ = run(capsys, "doctor", "--json")
    rows = {row["name"]: row for row in json.loads(out)["solvers"]}
    assert code == 0
    assert rows["highs"]["installed"]
    assert {"gurobi", "ortools:glop", "cvxpy:clarabel"} <= set(rows)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--n", "0", "--max-shift", "1", "--epsilon", "1"],
        ["--n", "x", "--max-shift", "1", "--epsilon", "1"],
        ["--n", "8", "--epsilon", "1"],
        ["--n", "8", "--shifts", "", "--epsilon", "1"],
        ["--n", "8", "--shifts", "0", "--epsilon", "1"],
        ["--n", "8", "--shifts", "9", "--epsilon", "1"],
        ["--n", "8", "--shifts", "a", "--epsilon", "1"],
        ["--n", "8", "--max-shift", "9", "--epsilon", "1"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "0"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "nan"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "inf"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1e400"],
        [
            "--n",
            "8",
            "--max-shift",
            "3",
            "--epsilon",
            "1e-4999",
            "--delta",
            "1e-4999",
            "--notion",
            "dp",
        ],
        ["--n", "8", "--shifts", "1,2", "--epsilon", "1=0.5,1=1,2=1"],
        ["--n", "8", "--shifts", "1,,2", "--epsilon", "1"],
        ["--n", "40000000", "--max-shift", "100", "--epsilon", "1"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1", "--delta", "2"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1", "--delta", "nan"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1", "--solver", "cplex"],
        [
            "--n",
            "8",
            "--max-shift",
            "3",
            "--epsilon",
            "1",
            "--minimise",
            "delta",
            "--max-loss",
            "-1",
        ],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1", "--plot", "p.bmp"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1", "--save", "no/such/folder/x.json"],
        [
            "--n",
            "8",
            "--max-shift",
            "3",
            "--epsilon",
            "1",
            "--loss",
            "prior-squared",
            "--prior",
            "missing.csv",
        ],
        ["--sizes", "5x5", "--shifts", "1,2,3", "--epsilon", "1"],
        ["--sizes", "5x5", "--max-shift", "2", "--epsilon", "1"],
        ["--n", "8", "--max-shift", "3"],
        ["--n", "8", "--max-shift", "3", "--epsilon", "1", "--nonsense"],
        [
            "--n",
            "60",
            "--max-shift",
            "4",
            "--epsilon",
            "0.5",
            "--delta",
            "0.05",
            "--time-limit",
            "1e-7",
        ],
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    capsys, arguments: list[str], tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "design", "modulo", *arguments, "--json")
    assert code == 2
    assert set(json.loads(out)) >= {"error", "message"}
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_help_with_examples(capsys):
    for command in (
        ["doctor"],
        ["verify"],
        ["reproduce"],
        ["design", "modulo"],
        ["compare", "modulo"],
    ):
        code, out, _ = run(capsys, *command, "--help")
        assert code == 0
        assert "workbench " + " ".join(command) in out.replace("\n", " ")
        assert "--json" in out


def test_a_real_process_prints_no_traceback(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "workbench",
        "design",
        "modulo",
        "--n",
        "8",
        "--shifts",
        "0",
        "--epsilon",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0].startswith("InvalidRequest: a shift must be")


def test_native_chatter_never_reaches_stdout_with_json():
    """Gurobi and SCIP print to the process's stdout when Ctrl-C is pressed."""
    program = (
        "import os\n"
        "from workbench.cli.console import emit_json, out, reserve_stdout\n"
        "with reserve_stdout():\n"
        "    os.write(1, b'pressed CTRL-C\\n')\n"
        "    emit_json({'status': 'ε'})\n"
        "print('after')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert ran.stdout == '{"status": "ε"}\nafter\n'
    assert ran.stderr == "pressed CTRL-C\n"


def test_progress_that_nobody_sees_leaves_nothing_on_stderr():
    command = [sys.executable, "-m", "workbench", "verify", "--small", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert json.loads(ran.stdout)["disagreements"] == 0


def test_what_a_solver_is_not_made_for_is_no_disagreement(capsys):
    code, out, _ = run(capsys, "verify", "--small", "--solvers", "ortools:glop,scip", "--json")
    said = json.loads(out)
    rows = {(row["solver"], row["oracle"]): row for row in said["summary"]}
    assert code == 0
    assert said["disagreements"] == 0
    assert rows["ortools:glop", "not for this solver"]["requests"] == 28
    assert rows["ortools:glop", "hop law"]["agree"] == 84
    assert ("scip", "failed") not in rows
    code, out, err = run(capsys, "verify", "--solvers", "nobody")
    assert code == 2
    assert err.startswith("SolverUnavailable: solver must be one of highs, ")
