"""The public face: every name loads, importing is cheap, and strangers' `models` and `solvers` do no harm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench import errors


def test_every_public_name_loads():
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None
    assert set(errors.__all__) <= set(workbench.__all__)
    with pytest.raises(AttributeError):
        _ = workbench.nonsense


def test_no_public_function_is_hidden_by_a_module_of_its_name():
    folder = Path(workbench.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
    assert not modules & set(workbench.__all__)


def test_the_error_tree_is_the_one_in_the_docstring():
    listed = [word for word in errors.__doc__.split() if word in errors.__all__]
    assert set(listed) == set(errors.__all__)
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.WorkbenchError)
    assert issubclass(errors.LicenceLimit, errors.SolverUnavailable)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)


def test_auditing_imports_no_solver_and_no_model(tmp_path: Path):
    code = """
import sys, workbench as wb
from workbench.privacy.audit import audit
question = wb.ModuloNoise(n=3, max_shift=1)
print(float(audit(wb.AdditiveNoise(question, [4, 2, 1, 2]), 1).pdp_delta))
print(sorted({m.split(".")[0] for m in sys.modules} & {"cvxpy", "ortools", "gurobipy", "highspy", "models", "solvers"}))
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_foreign_packages_are_named_in_one_error(tmp_path: Path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("")
    code = """
import workbench as wb
question = wb.ModuloNoise(n=3, max_shift=1)
try:
    wb.design(question, epsilon=1)
except wb.WorkbenchError as error:
    print(error)
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "own package 'models'" in done.stdout
    assert "taken by" in done.stdout


def test_floors_are_not_broken():
    root = Path(workbench.__file__).parent.parent
    for room, banned in (("solvers", ("models", "workbench")), ("models", ("workbench",))):
        for path in (root / room).rglob("*.py"):
            for line in path.read_text("utf-8").splitlines():
                words = line.split()
                if words[:1] in (["import"], ["from"]):
                    assert words[1].split(".")[0] not in banned, f"{path}: {line}"
    for room in ("mechanisms", "privacy"):
        for path in (root / "workbench" / room).rglob("*.py"):
            for line in path.read_text("utf-8").splitlines():
                words = line.split()
                if words[:1] in (["import"], ["from"]):
                    assert words[1].split(".")[0] not in ("models", "solvers", "cvxpy"), f"{path}: {line}"
