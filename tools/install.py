"""Install the workbench into a virtual environment, with the versions that its numbers were tested with.

    python tools/install.py --venv .venv --extras learning        (what `make install` calls)
    python tools/install.py --venv .venv --extras all,dev --no-pins

The pins stand in workbench/io/tested_versions.txt. They cover the packages that can change a
number: solvers, numpy, scipy, pandas, matplotlib and the like. All other packages follow the ranges
of pyproject.toml. An index may withdraw a pinned version. The install then goes on without this
pin, within the range of pyproject.toml, and says so. If that fails as well, it goes on without any
pin. `workbench doctor` names the packages that differ from the tested versions.

Exit code 0, or 1 with one sentence after pip's own message. Standard library only.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "workbench" / "io" / "tested_versions.txt"
OLDEST_PYTHON = (3, 11)


def read_pins(path: Path) -> list[str]:
    """Read the pins of a file, one NAME==VERSION a line; "#" starts a comment."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def create_environment(folder: Path) -> Path:
    """Create a virtual environment where there is none; its Python."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return python


def run_pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip of an environment and collect what it prints."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def is_available(python: Path, pin: str) -> bool:
    """Whether the package index still offers a pinned version for this Python."""
    done = run_pip(python, "install", "--dry-run", "--ignore-installed", "--no-deps", pin)
    return done.returncode == 0


def install(
    python: Path, requirement: list[str], pins: list[str]
) -> subprocess.CompletedProcess[str]:
    """Install a requirement, given as pip's arguments, under pins."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "pins.txt"
        constraints.write_text("\n".join(pins), "utf-8")
        return run_pip(python, "install", "--quiet", "--constraint", str(constraints), *requirement)


def install_with_pins(python: Path, requirement: list[str], pins: list[str]) -> list[str]:
    """Install a requirement under its pins, without those that the package index no longer offers.

    Args:
        python: the environment's Python.
        requirement: what pip installs, as its arguments.
        pins: lines NAME==VERSION.

    Returns:
        Sentences that say which pins were left out; empty where all were kept.

    Raises:
        SystemExit: with pip's message, where the requirement cannot be installed even without pins.
    """
    first = install(python, requirement, pins)
    if first.returncode == 0:
        return []
    if not pins:
        raise SystemExit(
            f"{first.stderr.strip()}\nThe installation failed; pip's message is above."
        )
    print("A pinned version cannot be installed; looking for the one that is gone ...", flush=True)
    gone = [pin for pin in pins if not is_available(python, pin)]
    kept = [pin for pin in pins if pin not in gone]
    if gone and kept and install(python, requirement, kept).returncode == 0:
        return [
            f"The tested version {pin} is no longer available. Another version of "
            f"{pin.partition('==')[0]} within the range of pyproject.toml was installed."
            for pin in gone
        ]
    last = install(python, requirement, [])
    if last.returncode != 0:
        raise SystemExit(
            f"{last.stderr.strip()}\nThe installation failed, also without pinned versions. pip's message is above."
        )
    missing = f" ({', '.join(gone)}: no longer available)" if gone else ""
    return [
        f"The tested versions cannot be installed together{missing}. "
        f"All packages were installed within the ranges of pyproject.toml."
    ]


def main(arguments: list[str] | None = None) -> None:
    """Install as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--venv",
        type=Path,
        default=ROOT / ".venv",
        help="folder of the environment (default: .venv)",
    )
    parser.add_argument(
        "--extras", default="", help="extras of pyproject.toml, separated by commas"
    )
    parser.add_argument(
        "--pins", type=Path, default=PINS, help="file of pins (default: the tested versions)"
    )
    parser.add_argument(
        "--no-pins", action="store_true", help="use the ranges of pyproject.toml alone"
    )
    parser.add_argument(
        "--project", default=str(ROOT), help="folder or wheel to install (default: this project)"
    )
    given = parser.parse_args(arguments)
    if sys.version_info < OLDEST_PYTHON:
        version = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"Python 3.11 or newer is needed. Got {version}. Name one: make PYTHON=python3.11 install"
        )
    print(f"Installing into {given.venv.name} (a minute or two) ...", flush=True)
    python = create_environment(given.venv)
    target = f"{given.project}[{given.extras}]" if given.extras else given.project
    requirement = ["--editable", target] if Path(given.project).is_dir() else [target]
    pins = [] if given.no_pins else read_pins(given.pins)
    sentences = install_with_pins(python, requirement, pins)
    for sentence in sentences:
        print(sentence)
    if sentences or given.no_pins:
        print(
            "Numbers may differ in their last digits. `workbench doctor` lists every version that differs."
        )


if __name__ == "__main__":
    main()
