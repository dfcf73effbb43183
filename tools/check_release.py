"""Build the wheel and the source distribution, and try both as a new user would.

    make check-release          (minutes; downloads the dependencies of the workbench)

1. The source distribution (sdist) is built from a clean copy, and the wheel from the sdist. Both
   must contain every file.
2. The wheel is installed without extras into an empty environment. Commands run in a folder of a
   user whose own modules `models` and `solvers` raise an error when they are imported. A few
   commands run once more on a newer Python (3.13 or 3.12) if there is one.
3. The wheel is installed without its dependencies, with numpy and python-flint only ("light core").
   Audits and certificates must work without a solver. A second environment also has a newer cvxpy,
   whose solver is removed.
4. Some of the tests run from the unpacked sdist.

The first failure is printed, and the exit code is 1. Standard library only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "workbench" / "io" / "tested_versions.txt"
# Folders with code. The wheel has `workbench` alone, whose links models and solvers lead to the
# first two.
CODE_FOLDERS = ("solvers", "models", "workbench")
# Names that research projects often use beside their scripts.
USER_MODULES = ("models", "solvers", "models.py", "solvers.py")
OTHER_FOLDERS = ("tests", "tools", "bench", "examples", "docs")  # The sdist has these as well.
# Files of the top folder that the sdist contains.
FILES = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "Dockerfile",
)
# Fast tests that run from the unpacked sdist.
TESTS = (
    "tests/workbench/test_layers.py",
    "tests/workbench/privacy/test_audit.py",
    "tests/tools/test_check_certificate.py",
)
COMMAND_SECONDS = 3600  # A command that takes longer fails.


class Command(NamedTuple):
    """A command of the workbench and what it must do.

    Attributes:
        arguments: the words after `workbench`.
        expected_text: a text in the output.
        exit_code: the expected exit code.
    """

    arguments: str
    expected_text: str = ""
    exit_code: int = 0


# Designs, and commands that read their files. They run on a newer Python as well.
SHORT_COMMANDS = (
    Command(
        "design modulo --n 8 --max-shift 3 --epsilon 1.5 --delta 0.1 --notion pdp --save "
        "noise.json",
        "0.581339117",
    ),
    Command("design labels --labels 0..20 --epsilon 2 --save labels.json", "certified"),
    Command("design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --save quantizer.json", "certified"),
    Command("design laplace --epsilon 0.1 --bits 8 --low 18 --high 90", "2.54090189"),
    Command("check noise.json", "Proven"),
    Command("sample noise.json --count 3 --answer 3"),
)
# They run one after the other in one folder, and later ones read files of earlier ones.
COMMANDS = (
    Command("--version"),
    Command("doctor", "known good"),
    *SHORT_COMMANDS,
    Command("audit noise.json --epsilon 1", "pure epsilon"),
    Command("verify --small", "Theorem 2"),
    Command(
        "frontier modulo --n 4 --max-shift 1 --epsilon 1 --delta 0 --notion pdp --out frontier",
    ),
    Command("compare modulo --n 8 --max-shift 3 --epsilon 1 --solvers highs,ortools:glop", "Use "),
    Command("programs export library --names mvu-m[24]", "Wrote 2 programs"),
    Command("programs verify library", "2 of 2 records hold"),
    Command("compare --programs library --solvers highs --time-limit 5", "2 of 2"),
    Command("reproduce --paper modulo-noise --only table1 --out results", "README.md"),
    Command("reproduce --paper label-dp --out results", "need the extra 'learning'"),
    Command(
        "reproduce --paper label-dp --only table1 --out results",
        "pip install '.[learning]'",
        exit_code=2,
    ),
    Command("compose noise.json --times 5 --delta 0.2", "Composition"),
    Command("audit noise.json --epsilon 1 --risk", "attack advantage"),
    Command("recommend --answers 0..20 --max-shift 1 --epsilon 1 --delta 1e-5", "best channel"),
    Command(
        "design noise --on integers --epsilon 1 --delta 1e-5 --json",
        "best noise on all integers",
    ),
    Command(
        "explore --export noise.html --family modulo --n 8 --max-shift 3 --epsilon 1.5",
        "noise.html",
    ),
)


def run_step(*command: object, cwd: Path, exit_code: int = 0, expected_text: str = "") -> str:
    """Run a command, and exit if its exit code or its output is wrong.

    Args:
        command: the program and its arguments.
        cwd: the folder in which it runs.
        exit_code: the expected exit code.
        expected_text: a text that the output must contain; line breaks count as blanks.

    Returns:
        What the command printed to stdout.
    """
    arguments = [str(argument) for argument in command]
    begin = time.perf_counter()
    process = subprocess.run(
        arguments, cwd=cwd, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    seconds = time.perf_counter() - begin
    line = " ".join([Path(arguments[0]).name, *arguments[1:]])
    print(f"  {line[:110]}  ({seconds:.1f} s)", flush=True)
    output = " ".join((process.stdout + process.stderr).split())
    if process.returncode != exit_code or expected_text not in output:
        print(process.stdout[-4000:], process.stderr[-4000:], sep="\n")
        sys.exit(
            f"exit code must be {exit_code}, and the output must contain {expected_text!r}. "
            f"Got exit code {process.returncode}."
        )
    return process.stdout


NEWER_PYTHONS = ("3.13", "3.12")  # The supported versions, newest first.


def find_newer_python() -> str | None:
    """Return the path of the newest of NEWER_PYTHONS, or None if none is installed.

    A Python is looked for on the PATH and in the folder of pyenv.
    """
    # A Python without the module venv cannot create an environment.
    script = "import sys, venv; print(sys.version_info[:2])"
    for version in NEWER_PYTHONS:
        program = shutil.which(f"python{version}")
        candidates = [Path(program)] if program else []
        candidates += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
        for candidate in candidates:
            process = subprocess.run([str(candidate), "-c", script], capture_output=True, text=True)
            if process.stdout.strip() == str(tuple(map(int, version.split(".")))):
                return str(candidate)
    return None


def create_environment(folder: Path, *packages: object, python: str = sys.executable) -> Path:
    """Create a virtual environment with packages, and return its folder of programs.

    Args:
        folder: folder of the environment.
        packages: arguments of pip.
        python: the program that creates the environment.
    """
    run_step(python, "-m", "venv", folder, cwd=ROOT)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if packages:
        pip_install(programs, *packages, cwd=folder)
    return programs


def pip_install(programs: Path, *packages: object, cwd: Path) -> None:
    """Install packages into an environment.

    Args:
        programs: the environment's folder of programs.
        packages: arguments of pip.
        cwd: the folder in which pip runs.
    """
    run_step(programs / "python", "-m", "pip", "install", "--quiet", *packages, cwd=cwd)


def make_hostile_folder(folder: Path) -> None:
    """Make a folder of a user whose own `models` and `solvers` must not be imported.

    Args:
        folder: path of the new folder. It gets both names as modules and as packages.
    """
    folder.mkdir()
    for name in USER_MODULES:
        path = folder / name if name.endswith(".py") else folder / name / "__init__.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise RuntimeError('a file of the user was imported')\n", "utf-8")


def copy_sources(source: Path) -> set[str]:
    """Copy the project without caches, results and other untracked files, and list the copy.

    Args:
        source: path of the new folder.

    Returns:
        Paths of the files that the sdist must contain, relative to `source`. A file in a linked
        folder is listed twice, for example as models/x.py and as workbench/models/x.py.
    """
    ignored = shutil.ignore_patterns(
        "__pycache__", "*.pyc", "*.egg-info", ".*", "*.sqlite*", "build", "dist", "_build"
    )
    for name in (*CODE_FOLDERS, *OTHER_FOLDERS):
        shutil.copytree(ROOT / name, source / name, ignore=ignored, symlinks=True)
    for name in (*FILES, "pyproject.toml", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    files = set()
    for folder, _, names in os.walk(source, followlinks=True):
        files |= {(Path(folder) / name).relative_to(source).as_posix() for name in names}
    return files


def build_distributions(work: Path) -> tuple[Path, Path]:
    """Build the sdist and the wheel from a clean copy. Exit if a file is missing in one of them.

    Args:
        work: a temporary folder.

    Returns:
        The paths of the sdist and the wheel.
    """
    source = work / "source"
    expected_files = copy_sources(source)
    programs = create_environment(work / "builder", "build")
    run_step(programs / "python", "-m", "build", "--outdir", work / "dist", source, cwd=work)
    (sdist,) = (work / "dist").glob("*.tar.gz")
    (wheel,) = (work / "dist").glob("*.whl")
    with tarfile.open(sdist) as archive:
        sdist_files = {
            member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()
        }
    missing_files = sorted(expected_files - sdist_files)
    if missing_files:
        sys.exit(f"the sdist lacks {', '.join(missing_files)}")
    wheel_files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package_files = {name for name in expected_files if name.startswith("workbench/")}
    if wheel_files != package_files:
        differences = ", ".join(sorted(wheel_files ^ package_files))
        sys.exit(f"the wheel and the packages differ in {differences}")
    return sdist, wheel


def run_commands(programs: Path, folder: Path, commands: Sequence[Command] = COMMANDS) -> None:
    """Run commands of the workbench. Exit if an exit code or an output is wrong.

    Args:
        programs: the environment's folder of programs.
        folder: folder in which they run.
        commands: the commands with their expected exit codes and outputs.
    """
    for command in commands:
        run_step(
            programs / "workbench",
            *command.arguments.split(),
            cwd=folder,
            exit_code=command.exit_code,
            expected_text=command.expected_text,
        )


def check_wheel(work: Path, wheel: Path) -> Path:
    """Try the wheel without extras, also on a newer Python if there is one.

    Args:
        work: a temporary folder.
        wheel: the path of the wheel.

    Returns:
        The folder of programs of the environment in which the wheel is installed.
    """
    programs = create_environment(work / "user", "--constraint", PINS, wheel)
    user_folder = work / "empty"
    make_hostile_folder(user_folder)
    script = "import workbench; print(workbench.__file__)"
    location = run_step(programs / "python", "-c", script, cwd=user_folder)
    if str(work / "user") not in location:
        sys.exit(f"the workbench was imported from {location}")
    run_commands(programs, user_folder)
    gallery = (user_folder / "results" / "README.md").read_text("utf-8")
    # One paper is complete; the other one lacks the artifacts that need an extra.
    for title in ("Table 1", "Fig. 2", "channel LP"):
        if title not in gallery:
            sys.exit(f"the gallery lacks {title}")
    newer_python = find_newer_python()
    if newer_python is None:
        print("  neither Python 3.13 nor 3.12 was found: not tried on a newer Python")
    else:
        folder = work / "newer"
        newer_programs = create_environment(
            folder, "--constraint", PINS, wheel, python=newer_python
        )
        newer_user_folder = work / "newer-empty"
        make_hostile_folder(newer_user_folder)
        run_commands(newer_programs, newer_user_folder, SHORT_COMMANDS)
    return programs


def check_light_core(work: Path, wheel: Path, *extras: str) -> None:
    """Try the wheel with numpy and python-flint, without a solver.

    Args:
        work: a temporary folder.
        wheel: the path of the wheel.
        extras: other packages in the same environment.
    """
    programs = create_environment(work / f"light{len(extras)}", "--no-deps", wheel)
    pip_install(programs, "numpy", "python-flint", *extras, cwd=work)
    if extras:  # cvxpy installs a solver, which must not be there.
        uninstall = ("-m", "pip", "uninstall", "--quiet", "--yes", "highspy")
        run_step(programs / "python", *uninstall, cwd=work)
    folder = work / f"light{len(extras)}-empty"
    folder.mkdir()
    run_step(programs / "python", ROOT / "tests" / "release" / "light_core.py", cwd=folder)
    report = json.loads(run_step(programs / "workbench", "doctor", "--json", cwd=folder))
    if report["verdict"] != "light core":
        sys.exit(f"doctor reports {report['verdict']}: {report['why']}")


def check_tests(work: Path, sdist: Path, programs: Path) -> None:
    """Run some tests from the unpacked sdist.

    Args:
        work: a temporary folder.
        sdist: the path of the source distribution.
        programs: the folder of programs of an environment with the wheel.
    """
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", filter="data")
    (unpacked,) = (work / "unpacked").iterdir()
    pip_install(programs, "--constraint", PINS, "pytest", "pytest-timeout", "hypothesis", cwd=work)
    run_step(programs / "python", "-m", "pytest", *TESTS, cwd=unpacked)


def check_release() -> None:
    """Run all steps in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="workbench-release-") as folder:
        work = Path(folder)
        print("1. build")
        sdist, wheel = build_distributions(work)
        for path in (sdist, wheel):
            print(f"  {path.name}: {path.stat().st_size / 1e3:.0f} kB")
        print("2. the wheel without extras, from a folder with hostile models and solvers")
        programs = check_wheel(work, wheel)
        print("3. numpy and python-flint are enough without a solver")
        check_light_core(work, wheel)
        check_light_core(work, wheel, "cvxpy>=1.9.2")
        print("4. tests from the sdist")
        check_tests(work, sdist, programs)
    print("The release is complete.")


if __name__ == "__main__":
    check_release()
