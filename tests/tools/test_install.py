"""Tests of `tools/install.py`: it leaves out pinned versions that the package index has withdrawn.

The index is a folder of small wheels. Nothing is downloaded.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "install.py"


def write_wheel(folder: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> Path:
    """Write a wheel that holds one module with its version."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = [
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {line}" for line in requires),
    ]
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\n" + "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Return a package index with a project that needs alpha 1.x and beta 2.x."""
    folder = tmp_path / "index"
    folder.mkdir()
    for version in ("1.0", "1.2"):
        write_wheel(folder, "alpha", version)
    for version in ("2.0", "2.1"):
        write_wheel(folder, "beta", version)
    write_wheel(folder, "project", "0.1", ("alpha>=1,<2", "beta>=2,<3"))
    return folder


@dataclass(frozen=True)
class Installation:
    """The result of `tools/install.py`.

    Attributes:
        exit_code: exit code of the program.
        output: its stdout and stderr.
        versions: name -> version of each installed package.
    """

    exit_code: int
    output: str
    versions: dict[str, str]


def run_install(
    tmp_path: Path, index: Path, *pins: str, options: tuple[str, ...] = ()
) -> Installation:
    """Install the project into a new environment.

    Args:
        tmp_path: folder of the environment and of the file of pins.
        index: folder of wheels.
        pins: pinned versions, such as "alpha==1.0".
        options: other options of the program.
    """
    (tmp_path / "pins.txt").write_text("# a comment\n" + "\n".join(pins), "utf-8")
    venv = tmp_path / "venv"
    environment = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PATH": "/usr/bin:/bin",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    process = subprocess.run(
        [
            *(sys.executable, str(SCRIPT)),
            *("--venv", str(venv)),
            *("--pins", str(tmp_path / "pins.txt")),
            *("--project", str(index / "project-0.1-py3-none-any.whl")),
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    versions = {}
    for folder in venv.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        versions[name] = version
    return Installation(process.returncode, process.stdout + process.stderr, versions)


def test_available_pins_are_used(tmp_path: Path, index: Path) -> None:
    installation = run_install(tmp_path, index, "alpha==1.0", "beta==2.0")
    assert installation.exit_code == 0, installation.output
    assert installation.versions["alpha"] == "1.0"
    assert installation.versions["beta"] == "2.0"
    assert "no longer available" not in installation.output


def test_a_withdrawn_pin_is_left_out_and_named(tmp_path: Path, index: Path) -> None:
    installation = run_install(tmp_path, index, "alpha==1.1", "beta==2.0")
    assert installation.exit_code == 0, installation.output
    assert installation.versions["alpha"] == "1.2"
    assert installation.versions["beta"] == "2.0"
    assert "alpha==1.1 is no longer available" in installation.output
    assert "beta==2.0" not in installation.output
    assert "workbench doctor" in installation.output


def test_pins_that_exclude_each_other_are_all_left_out(tmp_path: Path, index: Path) -> None:
    write_wheel(index, "alpha", "1.3", requires=("beta>=2.1",))
    installation = run_install(tmp_path, index, "alpha==1.3", "beta==2.0")
    assert installation.exit_code == 0, installation.output
    assert installation.versions["alpha"] == "1.3"
    assert installation.versions["beta"] == "2.1"
    assert "cannot be installed together" in installation.output


def test_without_pins_the_newest_versions_in_range_are_installed(
    tmp_path: Path, index: Path
) -> None:
    installation = run_install(tmp_path, index, "alpha==1.0", options=("--no-pins",))
    assert installation.exit_code == 0, installation.output
    assert installation.versions["alpha"] == "1.2"
    assert installation.versions["beta"] == "2.1"


def test_a_folder_that_cannot_be_created_ends_with_one_sentence(
    tmp_path: Path, index: Path
) -> None:
    (tmp_path / "venv").write_text("a file where the folder would be", "utf-8")
    installation = run_install(tmp_path, index)
    assert installation.exit_code == 1
    assert "cannot be created" in installation.output
    assert "Traceback" not in installation.output


def test_a_project_that_cannot_be_installed_ends_with_pips_message(
    tmp_path: Path, index: Path
) -> None:
    for file in index.glob("beta-*"):
        file.unlink()
    installation = run_install(tmp_path, index, "alpha==1.0")
    assert installation.exit_code == 1
    assert "beta" in installation.output
    assert "The installation failed" in installation.output
