"""Test the package `workbench` itself: its public names, the cost of its import, and its links.

`workbench/models` and `workbench/solvers` are links to the top-level folders of the repository. A
user's own modules named `models` and `solvers` must not be imported instead.
"""

from __future__ import annotations

import shutil
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


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError):
        _ = workbench.nonsense


def test_no_public_function_is_hidden_by_a_module_of_its_name():
    folder = Path(workbench.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    modules |= {path.name for path in folder.iterdir() if path.is_dir()}
    assert not modules & set(workbench.__all__)


def test_the_error_tree_is_the_one_in_the_docstring():
    listed = [word for word in errors.__doc__.split() if word in errors.__all__]
    assert set(listed) == set(errors.__all__)
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.WorkbenchError)
    assert issubclass(errors.LicenceLimit, errors.SolverUnavailable)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own, with a folder as the current folder."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )


def test_auditing_imports_no_solver_and_no_model(tmp_path: Path):
    code = """
import sys, workbench as wb
from workbench.privacy.audit import audit
question = wb.ModuloNoise(n=3, max_shift=1)
print(float(audit(wb.AdditiveNoise(question, [4, 2, 1, 2]), 1).pdp_delta))
slow_packages = ("cvxpy", "ortools", "gurobipy", "highspy", "workbench.models", "workbench.solvers")
print([name for name in sys.modules if name.startswith(slow_packages)])
"""
    process = run(code, tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("layout", ["modules", "packages"])
def test_a_script_beside_folders_named_models_and_solvers_can_design(tmp_path: Path, layout: str):
    for name in ("models", "solvers"):
        user_code = "raise RuntimeError('a file of the user was imported')"
        if layout == "modules":
            (tmp_path / f"{name}.py").write_text(user_code)
        else:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(user_code)
    script = """
import sys
import workbench as wb
design = wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1)
print(design.certificate is not None, {"models", "solvers"} & {*sys.modules})
"""
    (tmp_path / "script.py").write_text(script)
    process = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "True set()\n"


def test_an_error_explains_a_clone_without_symbolic_links(tmp_path: Path):
    root = Path(workbench.__file__).parents[1]
    ignored = shutil.ignore_patterns("models", "solvers", "__pycache__")
    shutil.copytree(root / "workbench", tmp_path / "workbench", ignore=ignored)
    for name in ("models", "solvers"):
        (tmp_path / "workbench" / name).write_text(f"../{name}")
    # Without the finder of the editable installation, Python imports this copy.
    code = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "Editable" not in getattr(finder, "__name__", "")]
import workbench as wb
wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1)
"""
    design = run(code, tmp_path)
    assert "NotInstalled: This clone has no symbolic links" in design.stderr
    assert "installing.md" in design.stderr
    doctor_code = (
        code.rpartition("import workbench")[0]
        + "from workbench.cli.doctor import doctor; sys.exit(doctor())"
    )
    doctor = run(doctor_code, tmp_path)
    assert doctor.returncode == 1, doctor.stderr
    assert "solvers: This clone has no symbolic links" in doctor.stdout
