"""Install the workbench into a virtual environment, in the tested versions of its dependencies.

    python tools/install.py --venv .venv --extras learning        (what `make install` calls)
    python tools/install.py --venv .venv --extras all,dev --no-pins

A pin is a line NAME==VERSION. workbench/io/tested_versions.txt pins the packages that can change a
computed number: solvers, numpy, scipy, pandas, matplotlib and the like. All other packages follow
the ranges of pyproject.toml. If the package index no longer offers a pinned version, the
installation is tried again without this pin, and then without any pin. A sentence is printed in
both cases. `workbench doctor` names the packages that differ from the tested versions.

The exit code is 0. If the installation fails, it is 1, and the message of pip or venv and one
sentence are printed. Standard library only.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "workbench" / "io" / "tested_versions.txt"
OLDEST_PYTHON = (3, 11)  # An older Python is refused.


def read_pins(path: Path) -> list[str]:
    """Read the pins of a file, without comments and empty lines.

    Args:
        path: path of a file with one NAME==VERSION on each line; "#" starts a comment.
    """
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def create_environment(folder: Path) -> Path:
    """Create a virtual environment unless it exists, and return the path of its Python.

    Args:
        folder: folder of the environment.

    Raises:
        SystemExit: the environment cannot be created.
    """
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        process = subprocess.run([sys.executable, "-m", "venv", folder])
        if process.returncode != 0:
            raise SystemExit(
                f"The environment {folder} cannot be created; the message of venv is above."
            )
    return python


def run_pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip of an environment and collect its output.

    Args:
        python: Python executable of the environment.
        arguments: arguments of pip.
    """
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def is_available(python: Path, pin: str) -> bool:
    """Return whether the package index still offers a pinned version for this Python.

    Args:
        python: Python executable of the environment.
        pin: NAME==VERSION.
    """
    process = run_pip(python, "install", "--dry-run", "--ignore-installed", "--no-deps", pin)
    return process.returncode == 0


def install_requirement(
    python: Path, requirement: list[str], pins: list[str]
) -> subprocess.CompletedProcess[str]:
    """Install a requirement with pip, in the versions of some pins.

    Args:
        python: Python executable of the environment.
        requirement: arguments of pip that name it, such as ["--editable", "."].
        pins: lines NAME==VERSION. An empty list for no pins.

    Returns:
        The process, whose exit code is 0 if the installation succeeded.
    """
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "pins.txt"
        constraints.write_text("\n".join(pins), "utf-8")
        return run_pip(python, "install", "--quiet", "--constraint", str(constraints), *requirement)


def install_with_pins(python: Path, requirement: list[str], pins: list[str]) -> list[str]:
    """Install a requirement with all pins, else with the available pins, else without pins.

    Args:
        python: Python executable of the environment.
        requirement: arguments of pip that name the requirement.
        pins: lines NAME==VERSION.

    Returns:
        Sentences about the pins that were dropped. Empty if all were used.

    Raises:
        SystemExit: the requirement cannot be installed even without pins. The message contains
            pip's message.
    """
    first_attempt = install_requirement(python, requirement, pins)
    if first_attempt.returncode == 0:
        return []
    if not pins:
        raise SystemExit(
            f"{first_attempt.stderr.strip()}\nThe installation failed; pip's message is above."
        )
    print("A pinned version cannot be installed; looking for it ...", flush=True)
    missing_pins = [pin for pin in pins if not is_available(python, pin)]
    valid_pins = [pin for pin in pins if pin not in missing_pins]
    can_retry = bool(missing_pins and valid_pins)
    if can_retry and install_requirement(python, requirement, valid_pins).returncode == 0:
        return [
            f"The tested version {pin} is no longer available. Another version of "
            f"{pin.partition('==')[0]} within the range of pyproject.toml was installed."
            for pin in missing_pins
        ]
    last_attempt = install_requirement(python, requirement, [])
    if last_attempt.returncode != 0:
        raise SystemExit(
            f"{last_attempt.stderr.strip()}\n"
            "The installation failed, also without pinned versions. pip's message is above."
        )
    missing = ""
    if missing_pins:
        missing = f" ({', '.join(missing_pins)}: no longer available)"
    return [
        f"The tested versions cannot be installed together{missing}. "
        f"All packages were installed within the ranges of pyproject.toml."
    ]


def main(arguments: list[str] | None = None) -> None:
    """Install the workbench with the options of the command line.

    Args:
        arguments: arguments of the command line. Default: those of this process.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--venv",
        type=Path,
        default=ROOT / ".venv",
        help="folder of the environment. Default: .venv",
    )
    parser.add_argument(
        "--extras", default="", help="extras of pyproject.toml, separated by commas"
    )
    parser.add_argument(
        "--pins", type=Path, default=PINS, help="file of pins. Default: the tested versions"
    )
    parser.add_argument(
        "--no-pins", action="store_true", help="use only the ranges of pyproject.toml"
    )
    parser.add_argument(
        "--project", default=str(ROOT), help="folder or wheel to install. Default: this project"
    )
    options = parser.parse_args(arguments)
    if sys.version_info < OLDEST_PYTHON:
        version = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"Python must be 3.11 or newer. Got {version}. "
            "Name another one: make PYTHON=python3.11 install"
        )
    print(f"Installing into {options.venv.name} (a minute or two) ...", flush=True)
    python = create_environment(options.venv)
    target = f"{options.project}[{options.extras}]" if options.extras else options.project
    requirement = ["--editable", target] if Path(options.project).is_dir() else [target]
    pins = [] if options.no_pins else read_pins(options.pins)
    sentences = install_with_pins(python, requirement, pins)
    for sentence in sentences:
        print(sentence)
    if sentences or options.no_pins:
        print(
            "Numbers may differ in their last digits. "
            "`workbench doctor` lists every version that differs."
        )


if __name__ == "__main__":
    main()
