"""The quick part of `make check-release`: the files of a wheel, and the core without a solver."""

from __future__ import annotations

import json
import os
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
FOLDERS = ("solvers", "models", "tools", "workbench")  # The last one has links into the others.


def list_package_files() -> set[str]:
    """List the files of the package, those of linked folders by the names that imports use."""
    files = set()
    for folder, _, names in os.walk(ROOT / "workbench", followlinks=True):
        for name in names:
            if not name.endswith(".pyc"):
                files.add((Path(folder) / name).relative_to(ROOT).as_posix())
    return files


def test_the_wheel_contains_exactly_the_files_of_the_package(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in FOLDERS:  # They are copied because a build leaves files in its folder.
        shutil.copytree(ROOT / name, source / name, symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(source),
    ]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == list_package_files()
    assert "workbench/models/modulo/program.py" in names
    assert f"-{workbench.__version__}-" in wheel.name


def test_mechanisms_are_audited_with_numpy_and_flint_alone(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tests" / "release" / "light_core.py"), "--blocked"]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert process.returncode == 0, process.stderr
    assert "needs" in json.loads(process.stdout)["solvers_error"]


def run_without_typer(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process in which typer cannot be imported."""
    program = (
        "import sys; sys.modules['typer'] = None; "
        f"from workbench.cli import main; main({[*arguments]})"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
    )


def test_a_command_without_typer_names_the_missing_package(tmp_path: Path) -> None:
    process = run_without_typer(tmp_path, "audit", "x.csv")
    assert process.returncode == 2
    assert process.stderr.startswith("NotInstalled: The command line needs typer")


def test_the_doctor_runs_without_typer(tmp_path: Path) -> None:
    process = run_without_typer(tmp_path, "doctor")
    assert process.returncode == 0
    assert not process.stderr.startswith("NotInstalled")


def test_version_and_date_are_the_same_in_all_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    version = re.search(r"^version: (.+)$", citation, re.MULTILINE)
    assert version is not None
    assert project["version"] == version.group(1) == workbench.__version__
    date = re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)
    assert date is not None
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## {workbench.__version__} ({date.group(1)})\n" in changes


@pytest.mark.parametrize("file", ["Dockerfile", "docs/ARTIFACT.md"])
def test_a_text_that_calls_make_only_names_existing_targets(file: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = (ROOT / file).read_text("utf-8")
    called_targets = set(re.findall(r"(?:`make |RUN make |dp-workbench make )([a-z-]+)", text))
    called_targets |= set(re.findall(r'\["make", "([a-z-]+)"\]', text))
    assert called_targets
    assert called_targets <= targets


@pytest.mark.parametrize(
    ("versions", "clash_count"),
    [
        ({"highspy": "1.13.1", "ortools": "9.15.6755", "cvxpy": "1.9.1"}, 0),
        ({"highspy": "1.16.0", "ortools": "9.15.6755", "cvxpy": "1.9.3"}, 0),
        ({"highspy": "1.15.0", "ortools": "9.15.6755", "cvxpy": "1.9.2"}, 1),
        ({"highspy": "1.14.0", "ortools": "9.15.6755", "cvxpy": "1.9.2"}, 1),
        ({"highspy": "1.14", "ortools": None, "cvxpy": "1.9.1"}, 1),
        ({"highspy": "1.13.1", "ortools": None, "cvxpy": "1.10"}, 1),
        ({"highspy": "1.15.1", "ortools": None, "cvxpy": "1.9.3"}, 0),
    ],
)
def test_combinations_of_versions_that_fail_are_known(
    versions: dict[str, str | None], clash_count: int
) -> None:
    assert len(installation.find_clashes(versions)) == clash_count


@pytest.fixture
def tested_versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Pretend that the tested versions are installed; a test changes some of them."""
    versions: dict[str, str | None] = {**installation.read_tested_versions()}
    find_version = installation._find_version

    def find_pretended_version(name: str) -> str | None:
        """Return the pretended version of a package, or else its real version."""
        return versions.get(name.lower(), find_version(name))

    monkeypatch.setattr(installation, "_find_version", find_pretended_version)
    return versions


def test_the_tested_versions_are_known_good(tested_versions: dict[str, str | None]) -> None:
    description = installation.describe_installation()
    assert (description["verdict"], description["clashes"]) == ("known good", [])
    assert all(row["writable"] for row in description["folders"])


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"highspy": None, "cvxpy": None}, "light core"),
        ({"numpy": None}, "incomplete"),
        ({"highspy": "1.14.0"}, "known bad"),
        ({"rich": "9.9"}, "not tested"),
        ({"numpy": "2.4.5"}, "not tested"),
    ],
)
def test_other_versions_have_another_verdict(
    tested_versions: dict[str, str | None], changes: dict[str, str | None], verdict: str
) -> None:
    tested_versions |= changes
    assert installation.describe_installation()["verdict"] == verdict


def test_the_doctor_names_each_version_that_differs(tested_versions: dict[str, str | None]) -> None:
    tested = tested_versions["numpy"]
    tested_versions |= {"numpy": "2.4.5", "rich": "9.9"}
    description = installation.describe_installation()
    status = {row["package"]: row["status"] for row in description["packages"]}
    assert status["numpy"] == "other version"
    assert status["rich"] == "outside the range"
    assert f"numpy 2.4.5 (tested: {tested})" in description["why"]
    assert "rich 9.9" in description["why"]
    assert "scipy" not in description["why"]


def test_every_tested_version_is_within_the_range_of_its_requirement() -> None:
    rows = {row["package"].lower(): row for row in installation.list_packages()}
    for name, version in installation.read_tested_versions().items():
        assert name not in rows or installation.meets_specifier(version, rows[name]["wanted"]), name


@pytest.mark.parametrize(
    ("version", "specifier", "expected"),
    [
        ("1.16.0", ">=1.13.1,!=1.14.*,!=1.15.*,<1.17", True),
        ("1.15.1", ">=1.13.1,!=1.14.*,!=1.15.*,<1.17", False),
        ("1.14", ">=1.13.1,!=1.14.*", False),
        ("1.1", "!=1.14.*", True),
        ("9.15.6755", "==9.15.*", True),
        ("1.0", "!=1", False),
    ],
)
def test_a_version_is_compared_with_a_specifier(
    version: str, specifier: str, expected: bool
) -> None:
    assert installation.meets_specifier(version, specifier) is expected


@pytest.mark.parametrize("specifier", ["~=1.0", ">=1.*", "1.0"])
def test_a_specifier_of_another_form_is_refused(specifier: str) -> None:
    with pytest.raises(ValueError, match="no known form"):
        installation.meets_specifier("1.0", specifier)


def test_no_text_tells_users_to_install_from_a_package_index() -> None:
    """The package is not on PyPI, so `pip install dp-workbench` would install something else."""
    files = [ROOT / "README.md"]
    for folder in (*FOLDERS, "docs"):
        files += (ROOT / folder).rglob("*")
    misleading_files = []
    for path in files:
        if path.suffix in (".py", ".md", ".toml", ".html", ".js"):
            text = path.read_text("utf-8")
            if re.search(r"pip install\W+(--\S+ )*'?dp-workbench", text):
                misleading_files.append(path.name)
    assert misleading_files == []
