"""The second checker of formulas: alone on a bare Python; it proves what the workbench finds, and refuses the rest."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_formula.py"
COUNTS = wb.FiniteQuery("0..3", max_shift=1)

QUESTIONS: list[tuple[Any, dict[str, Any]]] = [
    (COUNTS, {"loss": "absolute"}),
    (COUNTS, {"loss": "squared", "delta": "0..1"}),
    (COUNTS, {"loss": "absolute", "delta": "1/20", "epsilon": "0.5..2"}),
    (wb.FiniteQuery("0..3", neighbours="all", prior=[1, 2, 3, 4]), {"loss": "error-rate", "epsilon": 1}),
    (wb.FiniteQuery("0..2", "0..3", neighbours="all"), {"loss": "absolute", "delta": "0..0.5"}),
    (wb.ModuloNoise(n=12, max_shift=2), {"loss": "circular-squared"}),
    (wb.ModuloNoise(n=8, max_shift=3, directed=True), {"delta": "0..1"}),
    (wb.ModuloNoise(sizes=[3, 4], shifts=[(0, 1), (1, 0)]), {"delta": "0.1", "epsilon": "0.5..2", "loss": "squared"}),
    (wb.ModuloNoise(n=5, max_shift=2), {"loss": "worst-squared", "delta": "0.1"}),
    (wb.ModuloNoise(n=5, max_shift=2), {"loss": ["0", "1", "2", "1/3", "2", "1"], "delta": "0.1"}),
    (wb.ModuloNoise(n=5, max_shift=2), {"notion": "metric", "epsilon": {1: "1/2", 2: 1}}),
    (wb.FiniteQuery("0,0.5,2", neighbours="all"), {"notion": "metric", "loss": "absolute"}),
    (COUNTS, {"loss": "absolute", "constraints": ["unbiased"], "delta": "1/20"}),
    (COUNTS, {"loss": "absolute", "constraints": ["row-monotone", "symmetric"], "delta": "0..1"}),
    (COUNTS, {"loss": "absolute", "constraints": ["honest", "column-monotone"], "notion": "pure"}),
    (
        wb.FiniteQuery("0..2", prior="worst", max_shift=1),
        {"loss": [[0, 1, 2], [1, 0, "1/3"], [2, 1, 0]], "delta": "0.1"},
    ),
    (wb.Labels([0, 1, 4], [1, 2, 3]), {"method": "lp", "outputs": (0, 2, 4), "loss": "squared"}),
    (wb.Labels(range(4)), {"method": "lp", "neighbours": "consecutive", "notion": "dp", "delta": "0.1"}),
    (wb.Quantization("-2,-0.5,0.5,2"), {}),  # infeasible up to ε = ln 3
    (wb.Quantization("-3,-1,1,3", c=2), {"loss": "squared", "knots": 3}),
]


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(TOOL), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


COMMANDS = [
    "channel --answers 0..2 --max-shift 1 --loss absolute",
    "channel --answers 0..2 --max-shift 1 --loss absolute --directed --prior 1,2,3",
    "modulo --n 8 --max-shift 3 --directed",
    "labels --labels 0,1,4 --prior 1,2,3 --method lp",
    "quantizer --bins -2,-0.5,0.5,2",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_it_reads_what_the_command_line_saved(command: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with pytest.raises(SystemExit, match="0"):
        main(["formula", *command.split(), "--save", str(path)])
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert wb.check(path)


def test_it_is_one_file_of_the_standard_library() -> None:
    names = set()
    for node in ast.walk(ast.parse(TOOL.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert names <= {"__future__", *sys.stdlib_module_names}


@pytest.mark.parametrize(("question", "options"), QUESTIONS)
def test_it_proves_what_the_workbench_finds(question: Any, options: dict[str, Any], tmp_path: Path) -> None:
    formula = wb.formula(question, **options)
    (path,) = formula.save(tmp_path / "f.json")
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr
    one_way = " (one side of each pair alone)" if getattr(question, "directed", False) else ""
    assert f"proven: {formula.what}{one_way}: {len(formula.pieces)} formulas" in done.stdout
    assert "without gap" in done.stdout


def _numerator(data: Any) -> None:
    data["pieces"][0]["numerator"][0] += 1


def _delta(data: Any) -> None:
    data["delta"][1] = "1/2"


def _loss(data: Any) -> None:
    data["question"]["options"]["loss"] = "absolute"


def _region(data: Any) -> None:
    del data["regions"][1]


def _end(data: Any) -> None:
    data["regions"][0]["high"] = data["regions"][1]["low"] = "5"


def _basis(data: Any) -> None:
    data["regions"][0]["bases"] = data["regions"][1]["bases"]


def _wider(data: Any) -> None:
    data["regions"] = [{**data["regions"][0], "high": None}]


@pytest.mark.parametrize("change", [_numerator, _delta, _loss, _region, _end, _basis, _wider])
@pytest.mark.parametrize("free", [True, False])
def test_it_refuses_what_is_changed(change: Callable[[Any], None], free: bool, tmp_path: Path) -> None:
    (path,) = wb.formula(COUNTS, loss="squared", delta="0..1" if free else "1/20").save(tmp_path / "f.json")
    data = json.loads(path.read_text())
    changed = copy.deepcopy(data)
    change(changed)
    assert changed != data
    path.write_text(json.dumps(changed))
    done = run(path)
    assert done.returncode == 1, done.stdout
    assert "false" in done.stdout


def _feasible(data: Any) -> None:
    data["regions"][0]["feasible"] = True


def _violated(data: Any) -> None:
    data["regions"][-1]["feasible"] = False


def _outputs(data: Any) -> None:
    data["question"]["options"]["bins"] = ["-2", "-0.5", "0.5", "3"]


def _scale(data: Any) -> None:
    data["question"]["options"]["c"] = "3/2"


def _power(data: Any) -> None:
    data["variable"] = "x = exp(epsilon/2)"


@pytest.mark.parametrize("change", [_feasible, _violated, _outputs, _scale, _power, _region])
def test_it_refuses_a_changed_quantizer(change: Callable[[Any], None], tmp_path: Path) -> None:
    (path,) = wb.formula(wb.Quantization("-2,-0.5,0.5,2")).save(tmp_path / "f.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    assert run(path).returncode in (1, 2)
    assert "proven" not in run(path).stdout


def test_what_it_does_not_know_it_says(tmp_path: Path) -> None:
    (path,) = wb.formula(COUNTS, loss="pinball:0.3", epsilon=1).save(tmp_path / "f.json")
    assert (run(path).returncode, "unknown" in run(path).stdout) == (2, True)
    path.write_text("{}")
    assert run(path).returncode == 2
    assert run(tmp_path / "none.json").returncode == 2


def test_an_interval_that_is_open_is_said(tmp_path: Path) -> None:
    formula = wb.formula(wb.FiniteQuery("0..4", max_shift=1), loss="absolute", delta="0..1", time_limit=0.02)
    assert formula.open
    (path,) = formula.save(tmp_path / "f.json")
    done = run(path)
    assert done.returncode == 0, done.stdout
    assert "are open" in done.stdout
