"""Test commands as a user calls them: their JSON, their reports, and their errors on bad input.

A new process takes long to start, so most tests call `main` in the process of the tests.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.cli import main

# Noise modulo 9 of Kadam et al. 2024. Its smallest error rate is 0.450172331 at δ = 0.1212.
DIRECTED_NOISE = (
    "design modulo --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --delta 0.1212 --notion pdp"
)


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    """Run a command line. Return its exit code and its texts on stdout and stderr."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_the_json_of_a_design_is_one_object_on_one_line(capsys):
    code, out, _ = run(capsys, f"{DIRECTED_NOISE} --json")
    design = json.loads(out)
    assert code == 0
    assert design["objective"] == pytest.approx(0.450172331, abs=1e-9)
    assert design["oracle"]["agrees"] is True
    assert out.count("\n") == 1


def test_the_report_of_a_design_has_loss_bound_privacy_and_formula(capsys):
    code, out, _ = run(capsys, DIRECTED_NOISE)
    assert code == 0
    for text in ("0.450172331", "bound", "PDP delta", "known formula", "directed"):
        assert text in out


def test_a_vector_query_accepts_one_epsilon_for_each_difference(capsys):
    code, out, _ = run(
        capsys,
        'design modulo --sizes 5x5 --shifts "0,1;1,0" --epsilon "0,1=0.5;1,0=1" --json',
    )
    design = json.loads(out)
    assert code == 0
    assert len(design["pmf"]) == 25
    assert design["epsilon"]["0,1"] == 0.5


def test_a_design_writes_its_certificate_and_its_plot(capsys, tmp_path: Path):
    certificate_file = tmp_path / "noise.json"
    plot_file = tmp_path / "noise.png"
    code, _, _ = run(
        capsys,
        "design modulo --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --notion pdp "
        f"--save {certificate_file} --plot {plot_file}",
    )
    assert code == 0
    certificate = json.loads(certificate_file.read_text())
    assert certificate["format"] == "dp-workbench certificate"
    # The optimum under pure DP in `tests/models/modulo/test_modulo.py`.
    assert float(certificate["objective"]["value"]) == pytest.approx(0.456808001, abs=1e-9)
    assert plot_file.read_bytes().startswith(b"\x89PNG")


def test_compare_reports_a_failed_solver_as_a_row(capsys):
    code, out, _ = run(
        capsys,
        "compare modulo --n 8 --max-shift 3 --epsilon 1.5 --delta 0.1 --notion pdp "
        "--solvers highs,ortools:glop,nonsense --json",
    )
    rows = {row["solver"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["highs"]["status"] == "optimal"
    # The request is a mixed-integer program, and GLOP only solves linear programs.
    assert rows["ortools:glop"]["status"] == "unavailable"
    assert "nonsense" in rows["nonsense"]["failure"]


def test_compare_list_without_a_suite_lists_instances(capsys):
    code, out, _ = run(capsys, "compare --list")
    assert code == 0
    assert "instances" in out
    assert "Usage" not in out


def test_brackets_in_a_help_text_are_printed(capsys):
    _, out, _ = run(capsys, "design laplace --help")
    assert out.count("[low, high]") == 2


def test_compare_writes_its_table_and_its_plot(capsys, tmp_path: Path):
    folder = tmp_path / "results"
    plot_file = tmp_path / "seconds.svg"
    command = (
        f"compare modulo --n 4 --max-shift 1 --epsilon 1 --solvers highs --out {folder} "
        f"--plot {plot_file}"
    )
    code, out, _ = run(capsys, command)
    assert code == 0
    assert "PDP" not in out
    assert (folder / "comparison.csv").read_text().startswith("solver")
    assert b"<svg" in plot_file.read_bytes()


def test_compare_refuses_a_plot_of_an_unknown_format(capsys, tmp_path: Path):
    plot_file = tmp_path / "seconds.txt"
    code, _, err = run(
        capsys,
        f"compare modulo --n 4 --max-shift 1 --epsilon 1 --solvers highs --plot {plot_file}",
    )
    assert code == 2
    assert "plot file must be named .png, .svg or .pdf" in err


def test_verify_finds_no_disagreement_on_the_small_grid(capsys):
    code, out, _ = run(capsys, "verify --small --json")
    result = json.loads(out)
    assert code == 0
    assert result["disagreements"] == 0
    assert result["requests"] > 100
    assert any(group["kind"] == "optimum" and group["agree"] > 50 for group in result["summary"])


def test_doctor_lists_the_solvers(capsys):
    code, out, _ = run(capsys, "doctor --json")
    solvers = {row["name"]: row for row in json.loads(out)["solvers"]}
    assert code == 0
    assert solvers["highs"]["installed"]
    assert {"gurobi", "ortools:glop", "cvxpy:clarabel"} <= set(solvers)


@pytest.mark.parametrize(
    "options",
    [
        "--n 0 --max-shift 1 --epsilon 1",
        "--n x --max-shift 1 --epsilon 1",
        "--n 40000000 --max-shift 100 --epsilon 1",
        "--n 8 --epsilon 1",
        "--n 8 --shifts '' --epsilon 1",
        "--n 8 --shifts 0 --epsilon 1",
        "--n 8 --shifts 9 --epsilon 1",
        "--n 8 --shifts a --epsilon 1",
        "--n 8 --shifts 1,,2 --epsilon 1",
        "--n 8 --max-shift 9 --epsilon 1",
        "--n 8 --max-shift 3",
        "--n 8 --max-shift 3 --epsilon 0",
        "--n 8 --max-shift 3 --epsilon nan",
        "--n 8 --max-shift 3 --epsilon inf",
        "--n 8 --max-shift 3 --epsilon 1e400",
        "--n 8 --max-shift 3 --epsilon 1e-4999 --delta 1e-4999 --notion dp",
        "--n 8 --shifts 1,2 --epsilon 1=0.5,1=1,2=1",
        "--n 8 --max-shift 3 --epsilon 1 --delta 2",
        "--n 8 --max-shift 3 --epsilon 1 --delta nan",
        "--n 8 --max-shift 3 --epsilon 1 --solver cplex",
        "--n 8 --max-shift 3 --epsilon 1 --minimise delta --max-loss -1",
        "--n 8 --max-shift 3 --epsilon 1 --plot p.bmp",
        "--n 8 --max-shift 3 --epsilon 1 --save no/such/folder/x.json",
        "--n 8 --max-shift 3 --epsilon 1 --loss prior-squared --prior missing.csv",
        "--n 8 --max-shift 3 --epsilon 1 --nonsense",
        "--sizes 5x5 --shifts 1,2,3 --epsilon 1",
        "--sizes 5x5 --max-shift 2 --epsilon 1",
        "--n 60 --max-shift 4 --epsilon 0.5 --delta 0.05 --time-limit 1e-7",
    ],
)
def test_bad_input_prints_one_line_writes_no_file_and_exits_with_2(
    capsys, options: str, tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, f"design modulo {options} --json")
    assert code == 2
    assert set(json.loads(out)) >= {"error", "message"}
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["doctor", "verify", "reproduce", "design modulo", "compare modulo"]
)
def test_help_has_examples_and_json(capsys, command: str):
    code, out, _ = run(capsys, f"{command} --help")
    assert code == 0
    assert f"workbench {command}" in out.replace("\n", " ")
    assert "--json" in out


def test_an_error_in_a_new_process_prints_no_traceback(tmp_path: Path):
    command = ["-m", "workbench", "design", "modulo", "--n", "8", "--shifts", "0", "--epsilon", "1"]
    completed = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert completed.stderr.splitlines()[0].startswith("InvalidRequest: a shift must be")


def test_output_of_native_libraries_does_not_reach_stdout_with_json():
    """Gurobi and SCIP print to file descriptor 1 when Ctrl-C is pressed."""
    program = (
        "import os\n"
        "from workbench.cli.console import emit_json, reserve_stdout\n"
        "with reserve_stdout():\n"
        "    os.write(1, b'pressed CTRL-C\\n')\n"
        "    emit_json({'status': 'ε'})\n"
        "print('after')\n"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert completed.stdout == '{"status": "ε"}\nafter\n'
    assert completed.stderr == "pressed CTRL-C\n"


def test_progress_is_not_printed_if_stderr_is_no_terminal():
    command = ["-m", "workbench", "verify", "--small", "--json"]
    completed = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True
    )
    assert completed.stderr == ""
    assert json.loads(completed.stdout)["disagreements"] == 0


def test_verify_counts_requests_that_a_solver_cannot_solve_separately(capsys):
    code, out, _ = run(capsys, "verify --small --solvers ortools:glop,scip --json")
    result = json.loads(out)
    groups = {(row["solver"], row["oracle"]): row for row in result["summary"]}
    assert code == 0
    assert result["disagreements"] == 0
    # GLOP cannot solve 28 requests of the small grid. 84 others have the formula "hop law".
    assert groups["ortools:glop", "not for this solver"]["requests"] == 28
    assert groups["ortools:glop", "hop law"]["agree"] == 84
    assert ("scip", "failed") not in groups


def test_verify_refuses_an_unknown_solver(capsys):
    code, _, err = run(capsys, "verify --solvers nobody")
    assert code == 2
    assert err.startswith("SolverUnavailable: solver must be one of highs, ")
