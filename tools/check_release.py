"""Build the wheel and the source distribution, and try both outside the repository, as a stranger would.

    make check-release          (minutes; downloads what the workbench depends on)

1. sdist from a clean copy, wheel from the sdist; both hold every file they should.
2. The wheel, installed without extras into an empty environment, does its work from a folder whose own `models` and
   `solvers` raise when they are imported.
   The same on a newer Python (3.13 or 3.12) where one is found, in short.
3. The wheel without its dependencies, with numpy and python-flint: the core without a solver; once more with a cvxpy
   newer than the tested one beside it.
4. Some of the tests, from the unpacked sdist.

Exit code 1 with the failing step. Standard library only.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "workbench" / "io" / "tested_versions.txt"
FOLDERS = (
    "solvers",
    "models",
    "workbench",
)  # workbench/models and workbench/solvers link to the first two
HOSTILE = (
    "models",
    "solvers",
    "models.py",
    "solvers.py",
)  # what research projects have beside their scripts
BESIDE = ("tests", "tools", "bench", "examples", "docs")  # folders of the sdist, with these files
FILES = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "Dockerfile",
)
TESTS = (
    "tests/workbench/test_layers.py",
    "tests/workbench/privacy/test_audit.py",
    "tests/tools/test_check_certificate.py",
)

# what a stranger does: command -> (exit code, what the output says); from an empty folder
COMMANDS: tuple[tuple[str, int, str], ...] = (
    ("--version", 0, ""),
    ("doctor", 0, "known good"),
    (
        "design modulo --n 8 --max-shift 3 --epsilon 1.5 --delta 0.1 --notion pdp --save noise.json",
        0,
        "0.581339117",
    ),
    ("design labels --labels 0..20 --epsilon 2 --save labels.json", 0, "certified"),
    ("design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --save quantizer.json", 0, "certified"),
    ("design laplace --epsilon 0.1 --bits 8 --low 18 --high 90", 0, "2.54090189"),
    ("check noise.json", 0, "Proven"),
    ("sample noise.json --count 3 --answer 3", 0, ""),
    ("audit noise.json --epsilon 1", 0, "pure epsilon"),
    ("verify --small", 0, "Theorem 2"),
    (
        "frontier modulo --n 4 --max-shift 1 --epsilon 1 --delta 0 --notion pdp --out frontier",
        0,
        "",
    ),
    ("compare modulo --n 8 --max-shift 3 --epsilon 1 --solvers highs,ortools:glop", 0, "Use "),
    ("programs export library --names mvu-m[24]", 0, "Wrote 2 programs"),
    ("programs verify library", 0, "2 of 2 records hold"),
    ("compare --programs library --solvers highs --time-limit 5", 0, "2 of 2"),
    ("reproduce --paper modulo-noise --only table1 --out results", 0, "README.md"),
    ("reproduce --paper label-dp --out results", 0, "need the extra 'learning'"),
    ("reproduce --paper label-dp --only table1 --out results", 2, "pip install '.[learning]'"),
    ("compose noise.json --times 5 --delta 0.2", 0, "Composition"),
    ("audit noise.json --epsilon 1 --risk", 0, "attack advantage"),
    ("recommend --answers 0..20 --max-shift 1 --epsilon 1 --delta 1e-5", 0, "best channel"),
    ("design noise --on integers --epsilon 1 --delta 1e-5 --json", 0, "best noise on all integers"),
    (
        "explore --export noise.html --family modulo --n 8 --max-shift 3 --epsilon 1.5",
        0,
        "noise.html",
    ),
)


def run(*command: object, cwd: Path, code: int = 0, says: str = "") -> str:
    """Run a command; stops everything where its exit code or its output is not what it should be."""
    words = [str(word) for word in command]
    begin = time.perf_counter()
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=3600)
    print(
        f"  {' '.join([Path(words[0]).name, *words[1:]])[:110]}  ({time.perf_counter() - begin:.1f} s)",
        flush=True,
    )
    if done.returncode != code or says not in " ".join((done.stdout + done.stderr).split()):
        print(done.stdout[-4000:], done.stderr[-4000:], sep="\n")
        sys.exit(
            f"exit code {done.returncode} where {code} was expected, or the output lacks {says!r}"
        )
    return done.stdout


# What is tried on a newer Python: a few commands that use every solver package.
SHORT_COMMANDS = COMMANDS[2:8]
NEWER_PYTHONS = ("3.13", "3.12")


def find_newer_python() -> str | None:
    """Find the newest other Python that the classifiers name; its program, or None."""
    folders = [Path.home() / ".pyenv" / "versions"]
    for version in NEWER_PYTHONS:
        program = shutil.which(f"python{version}")
        candidates = [Path(program)] if program else []
        for folder in folders:
            candidates += sorted(folder.glob(f"{version}.*/bin/python"))
        for candidate in candidates:
            done = subprocess.run([str(candidate), "-c", "import sys, venv; print(sys.version_info[:2])"],
                                  capture_output=True, text=True)  # fmt: skip
            if done.stdout.strip() == str(tuple(map(int, version.split(".")))):
                return str(candidate)
    return None


def environment(folder: Path, *packages: object, python: str = sys.executable) -> Path:
    """A new environment with packages, pinned as tested; its folder of programs."""
    run(python, "-m", "venv", folder, cwd=ROOT)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if packages:
        run(programs / "python", "-m", "pip", "install", "--quiet", *packages, cwd=folder)
    return programs


def make_hostile_folder(folder: Path) -> None:
    """Make a folder with a user's own `models` and `solvers`, as modules and as packages, that must not be imported."""
    folder.mkdir()
    for name in HOSTILE:
        path = folder / name if name.endswith(".py") else folder / name / "__init__.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise RuntimeError('a file of the user was imported')\n", "utf-8")


def built(work: Path) -> tuple[Path, Path]:
    """The sdist and the wheel made from it, out of a copy without what a working folder gathers."""
    source = work / "source"
    waste = shutil.ignore_patterns(
        "__pycache__", "*.pyc", "*.egg-info", ".*", "*.sqlite*", "build", "dist", "_build"
    )
    for name in (*FOLDERS, *BESIDE):
        shutil.copytree(ROOT / name, source / name, ignore=waste, symlinks=True)
    for name in (*FILES, "pyproject.toml", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    programs = environment(work / "builder", "build")
    run(programs / "python", "-m", "build", "--outdir", work / "dist", source, cwd=work)
    (sdist,), (wheel,) = (work / "dist").glob("*.tar.gz"), (work / "dist").glob("*.whl")
    expected = set()
    for folder, _, names in os.walk(source, followlinks=True):
        expected |= {(Path(folder) / name).relative_to(source).as_posix() for name in names}
    expected = {
        name for name in expected if ".egg-info/" not in name and not name.startswith("build/")
    }
    with tarfile.open(sdist) as archive:
        inside = {
            member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()
        }
    if missing := sorted(expected - inside):
        sys.exit(f"the sdist lacks {', '.join(missing)}")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if packed != (ours := {name for name in expected if name.startswith("workbench/")}):
        sys.exit(f"the wheel and the packages differ in {', '.join(sorted(packed ^ ours))}")
    return sdist, wheel


def main() -> None:
    """All steps, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="workbench-release-") as folder:
        work = Path(folder)
        print("1. build")
        sdist, wheel = built(work)
        print(
            f"  {sdist.name}: {sdist.stat().st_size / 1e3:.0f} kB, {wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB"
        )

        print("2. the wheel without extras, from a folder with hostile models and solvers")
        programs = environment(work / "user", "--constraint", PINS, wheel)
        empty = work / "empty"
        make_hostile_folder(empty)
        where = run(
            programs / "python", "-c", "import workbench; print(workbench.__file__)", cwd=empty
        )
        if str(work / "user") not in where:
            sys.exit(f"the workbench was imported from {where}")
        for command, code, says in COMMANDS:
            run(programs / "workbench", *command.split(), cwd=empty, code=code, says=says)
        gallery = (empty / "results" / "README.md").read_text("utf-8")
        for title in (
            "Table 1",
            "Fig. 2",
            "channel LP",
        ):  # one paper complete, the other without what needs an extra
            if title not in gallery:
                sys.exit(f"the gallery lacks {title}")

        newer = find_newer_python()
        if newer is None:
            print("  neither Python 3.13 nor 3.12 was found: not tried on a newer Python")
        else:
            programs_newer = environment(work / "newer", "--constraint", PINS, wheel, python=newer)
            beside = work / "beside"
            make_hostile_folder(beside)
            for command, code, says in SHORT_COMMANDS:
                run(
                    programs_newer / "workbench", *command.split(), cwd=beside, code=code, says=says
                )

        print("3. numpy and python-flint are enough without a solver")
        for extra in ((), ("cvxpy>=1.9.2",)):
            light = environment(work / f"light{len(extra)}", "--no-deps", wheel)
            run(
                light / "python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "numpy",
                "python-flint",
                *extra,
                cwd=work,
            )
            if extra:  # cvxpy brings a solver; there must be none of ours
                run(
                    light / "python",
                    "-m",
                    "pip",
                    "uninstall",
                    "--quiet",
                    "--yes",
                    "highspy",
                    cwd=work,
                )
            alone = work / f"alone{len(extra)}"
            alone.mkdir()
            script = ROOT / "tests" / "release" / "light_core.py"
            run(light / "python", script, cwd=alone)
            report = json.loads(run(light / "workbench", "doctor", "--json", cwd=alone))
            if report["verdict"] != "light core":
                sys.exit(f"doctor says {report['verdict']}: {report['why']}")

        print("4. tests from the sdist")
        with tarfile.open(sdist) as archive:
            archive.extractall(work / "unpacked", filter="data")
        (unpacked,) = (work / "unpacked").iterdir()
        pins = ("--constraint", PINS, "pytest", "pytest-timeout", "hypothesis")
        run(programs / "python", "-m", "pip", "install", "--quiet", *pins, cwd=work)
        run(programs / "python", "-m", "pytest", *TESTS, cwd=unpacked)
    print("The release is complete.")


if __name__ == "__main__":
    main()
