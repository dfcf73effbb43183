"""`make install` goes on where the package index has withdrawn a pinned version, and says which
one.

The index is a folder of small wheels; nothing is downloaded.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
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
    """A package index with a project that needs alpha 1.x and beta 2.x."""
    folder = tmp_path / "index"
    folder.mkdir()
    for version in ("1.0", "1.2"):
        write_wheel(folder, "alpha", version)
    for version in ("2.0", "2.1"):
        write_wheel(folder, "beta", version)
    write_wheel(folder, "project", "0.1", ("alpha>=1,<2", "beta>=2,<3"))
    return folder


def run_install(
    tmp_path: Path, index: Path, *pins: str, options: tuple[str, ...] = ()
) -> tuple[int, str, dict[str, str]]:
    """Install the project; exit code, output and the installed versions."""
    (tmp_path / "pins.txt").write_text("# a comment\n" + "\n".join(pins), "utf-8")
    venv = tmp_path / "venv"
    environment = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PATH": "/usr/bin:/bin",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    done = subprocess.run(
        [
            *(
                sys.executable,
                str(SCRIPT),
                "--venv",
                str(venv),
                "--pins",
                str(tmp_path / "pins.txt"),
            ),
            *("--project", str(index / "project-0.1-py3-none-any.whl"), *options),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    installed = {}
    for file in venv.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = file.name.removesuffix(".dist-info").partition("-")
        installed[name] = version
    return done.returncode, done.stdout + done.stderr, installed


def test_pins_are_used_where_they_can_be_had(tmp_path: Path, index: Path) -> None:
    code, printed, installed = run_install(tmp_path, index, "alpha==1.0", "beta==2.0")
    assert code == 0, printed
    assert (installed["alpha"], installed["beta"]) == ("1.0", "2.0")
    assert "no longer available" not in printed


def test_a_withdrawn_pin_is_left_out_and_named(tmp_path: Path, index: Path) -> None:
    code, printed, installed = run_install(tmp_path, index, "alpha==1.1", "beta==2.0")
    assert code == 0, printed
    assert (installed["alpha"], installed["beta"]) == ("1.2", "2.0")
    assert "alpha==1.1 is no longer available" in printed
    assert "beta==2.0" not in printed
    assert "workbench doctor" in printed


def test_pins_that_exclude_each_other_are_all_left_out(tmp_path: Path, index: Path) -> None:
    write_wheel(index, "alpha", "1.3", ("beta>=2.1",))
    code, printed, installed = run_install(tmp_path, index, "alpha==1.3", "beta==2.0")
    assert code == 0, printed
    assert (installed["alpha"], installed["beta"]) == ("1.3", "2.1")
    assert "cannot be installed together" in printed


def test_without_pins_the_newest_versions_in_range_are_installed(
    tmp_path: Path, index: Path
) -> None:
    code, printed, installed = run_install(tmp_path, index, "alpha==1.0", options=("--no-pins",))
    assert code == 0, printed
    assert (installed["alpha"], installed["beta"]) == ("1.2", "2.1")


def test_a_project_that_cannot_be_installed_ends_with_pips_message(
    tmp_path: Path, index: Path
) -> None:
    for file in index.glob("beta-*"):
        file.unlink()
    code, printed, _ = run_install(tmp_path, index, "alpha==1.0")
    assert code == 1
    assert "beta" in printed
    assert "The installation failed" in printed
