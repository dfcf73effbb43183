"""Test the program of a design as an MPS file: every solver finds the optimum of the design."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli.commands import main
from workbench.solvers.backend import Options, solve
from workbench.solvers.mps import read_mps
from workbench.solvers.program import Program

# Options of a design that a solver answers, by family.
REQUESTS: dict[str, dict[str, Any]] = {
    "channel": {
        "answers": "0..5",
        "max_shift": 1,
        "loss": "absolute",
        "epsilon": 1,
        "delta": "0.01",
    },
    "modulo": {"n": 6, "max_shift": 2, "epsilon": 1, "delta": "0.1", "notion": "pdp"},
    "labels": {"labels": "0..4", "epsilon": 1, "method": "lp"},
}


@pytest.mark.parametrize("family", REQUESTS)
def test_the_program_of_a_design_has_its_optimum(family: str, tmp_path: Path) -> None:
    design = wb.design(family, **REQUESTS[family])
    design.program.save(tmp_path / "mine.mps")
    mps = read_mps((tmp_path / "mine.mps").read_text())
    solution = solve(Program("again", mps.data), {}, "highs", Options())
    assert design.solution is not None
    assert solution.objective == pytest.approx(design.solution.objective, abs=1e-7)
    assert str(design.program) in mps.comments
    assert f"{mps.data.A.shape[1]} columns" in str(design.program)


def test_a_closed_form_has_no_program(tmp_path: Path) -> None:
    design = wb.design(wb.RealNoise(1), epsilon=1)
    with pytest.raises(wb.InvalidRequest, match="has no program"):
        design.program.save(tmp_path / "no.mps")


def test_a_program_is_only_saved_as_mps(tmp_path: Path) -> None:
    design = wb.design("channel", answers="0..3", max_shift=1, loss="absolute", epsilon=1)
    with pytest.raises(wb.InvalidRequest, match=r"program file must be named \.mps\. Got no\.lp"):
        design.program.save(tmp_path / "no.lp")


def run(command: str) -> int:
    """Run a command line, without the word "workbench". Return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    return int(stop.value.code or 0)


DESIGN_CHANNEL = "design channel --answers 0..3 --max-shift 1 --loss absolute --epsilon 1"


def test_the_command_writes_a_program_that_compare_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (
        f"{DESIGN_CHANNEL} --mps mine.mps",
        "compare --programs mine.mps --solvers highs",
    ):
        assert run(command) == 0, capsys.readouterr().err


def test_the_command_refuses_another_format_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(f"{DESIGN_CHANNEL} --mps mine.txt") == 2
    assert "program file must be named .mps" in capsys.readouterr().err


def test_the_best_mechanism_is_saved_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    design = wb.design("channel", answers="0..3", max_shift=1, loss="absolute", epsilon=1)

    def interrupt(family: Any, request: Any) -> Any:
        """Raise the error of an interrupted solve that has found a design."""
        raise wb.NotProven(
            "Interrupted: the optimum is at most 1.", design=design, interrupted=True
        )

    monkeypatch.setattr("workbench.pipeline.family.Family.design_request", interrupt)
    assert run(f"{DESIGN_CHANNEL} --save {tmp_path / 'c.json'}") != 0
    assert "best certified mechanism is in" in capsys.readouterr().err.replace("\n", " ")
    assert wb.check(tmp_path / "c.json").mechanism == design.mechanism
