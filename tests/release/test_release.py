"""The quick part of `make check-release`: what a wheel holds, and the core without a solver."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import workbench
from workbench.io import installation

ROOT = Path(__file__).parents[2]
PACKAGES = ("solvers", "models", "workbench")


def _files() -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name)  # a build leaves files in its folder
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == _files()
    assert f"-{workbench.__version__}-" in wheel.name


def test_numpy_and_flint_are_enough_for_mechanisms_given_by_hand(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tests" / "release" / "light_core.py"), "--blocked"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    assert "needs" in json.loads(done.stdout)["solvers_error"]


def test_the_command_line_says_what_it_lacks(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['typer'] = None; from workbench.cli import main; main({})"
    for arguments, code in ((["audit", "x.csv"], 2), (["doctor"], 0)):
        done = subprocess.run(
            [sys.executable, "-c", blocked.format(arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == code
        assert done.stderr.startswith("NotInstalled: The command line needs typer") == (code == 2)


def test_one_version_is_named_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited is not None
    assert project["version"] == cited.group(1) == workbench.__version__
    released = re.search(r'^date-released: "(.+)"$', (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert released is not None
    assert f"## {workbench.__version__} ({released.group(1)})\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize("file", ["Dockerfile", "docs/ARTIFACT.md"])
def test_containers_and_the_appendix_call_targets_that_exist(file: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = (ROOT / file).read_text("utf-8")
    called = set(re.findall(r"(?:`make |RUN make |dp-workbench make )([a-z-]+)", text))
    called |= set(re.findall(r'\["make", "([a-z-]+)"\]', text))
    assert called
    assert called <= targets


@pytest.mark.parametrize(
    ("versions", "bad"),
    [
        ({"highspy": "1.13.1", "ortools": "9.15.6755", "cvxpy": "1.9.1"}, 0),
        ({"highspy": "1.15.0", "ortools": "9.15.6755", "cvxpy": "1.9.2"}, 1),
        ({"highspy": "1.14.0", "ortools": "9.15.6755", "cvxpy": "1.9.2"}, 1),
        ({"highspy": "1.14", "ortools": None, "cvxpy": "1.9.1"}, 1),
        ({"highspy": "1.13.1", "ortools": None, "cvxpy": "1.10"}, 1),
        ({"highspy": "1.15.1", "ortools": None, "cvxpy": "1.9.3"}, 0),
    ],
)
def test_known_clashes(versions: dict[str, str | None], bad: int) -> None:
    assert len(installation.clashes(versions)) == bad


def test_what_is_installed_here_is_the_tested_set(monkeypatch: pytest.MonkeyPatch) -> None:
    found = installation.installation()
    assert (found["verdict"], found["clashes"]) == ("known good", [])
    assert all(row["writable"] for row in found["folders"])
    real = installation._version
    for gone, verdict in (({"highspy", "cvxpy"}, "light core"), ({"numpy"}, "incomplete")):
        monkeypatch.setattr(installation, "_version", lambda name, gone=gone: None if name in gone else real(name))
        assert installation.installation()["verdict"] == verdict
    monkeypatch.setattr(installation, "_version", lambda name: "1.14.0" if name == "highspy" else real(name))
    assert installation.installation()["verdict"] == "known bad"
    monkeypatch.setattr(installation, "_version", lambda name: "9.9" if name == "rich" else real(name))
    assert installation.installation()["verdict"] == "not tested"


def test_a_specifier_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no known form"):
        installation.within("1.0", "~=1.0")
