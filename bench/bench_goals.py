"""Measure the goals for the speed of tests, reproduction and answers: one row for each goal.

The columns `before` and `goal` are texts. `before` was measured on two cores in November 2026. The
column `after` has the user and system seconds of the command and its processes in this run. CPU
seconds grow with the load of the machine, so `ratio` divides them by those of a fixed process that
runs immediately before (`import numpy, highspy`). A command that exceeds its limit is stopped.
Commands of minutes are only measured with --full. The bytecode of the project is written first, as
otherwise every process would compile it, which takes half a second.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from packaging.requirements import Requirement

from bench.bench_frontier import run_frontier_benchmark

TITLE = "Goals for the speed of the workbench (CPU seconds)"

REFERENCE = (sys.executable, "-c", "import numpy, highspy")
PROJECT = Path(__file__).parents[1]
COMPILE_COMMAND = (sys.executable, "-m", "compileall", "-q", "workbench", "models", "solvers")
COUNT_OPTIONS = "--max-shift 1 --loss squared"


@dataclass(frozen=True)
class Goal:
    """A command with a goal.

    Attributes:
        work: what the command does.
        before: what it took when the goal was set, in CPU seconds if no unit is given.
        goal: the goal, in CPU seconds if no unit is given.
        command: the arguments of Python, or a command that starts with make.
        limit: CPU seconds after which a process of the command is stopped.
        is_long: whether it is only measured with --full.
    """

    work: str
    before: str
    goal: str
    command: str
    limit: int = 300
    is_long: bool = False


GOALS = (
    Goal(
        "make test",
        "842 CPU s for pytest alone",
        "4 minutes on 2 cores",
        "make test",
        limit=3600,
        is_long=True,
    ),
    Goal("make test-all", "-", "20 minutes on 2 cores", "make test-all", limit=7200, is_long=True),
    Goal(
        "reproduce",
        "340 CPU s",
        "150 CPU s",
        "-m workbench reproduce --jobs 1 --out {folder}",
        limit=1800,
        is_long=True,
    ),
    Goal(
        "recommend 0..20, delta = 1e-5, cold",
        "1.4 CPU s",
        "1.0",
        "-m workbench recommend --answers 0..20 --max-shift 1 --loss absolute --epsilon 1 "
        "--delta 1e-5",
    ),
    Goal(
        "recommend for a mean",
        "did not finish",
        "2",
        "-m workbench recommend --range 18..95 --sensitivity 0.0385 --loss absolute --epsilon 1",
        limit=60,
    ),
    Goal(
        "channel under zCDP, 0..50",
        "did not finish in 185",
        "20",
        f"-m workbench design channel --answers 0..50 {COUNT_OPTIONS} --notion zcdp --rho 0.5",
        limit=200,
    ),
    Goal(
        "channel under GDP, 0..10, mu = 1",
        "5.1",
        "2",
        f"-m workbench design channel --answers 0..10 {COUNT_OPTIONS} --notion gdp --mu 1",
    ),
    Goal(
        "frontier noise on the reals, zCDP, rho = 0.5",
        "did not finish in 170",
        "10",
        "-m workbench frontier noise --on reals --notion zcdp --rho 0.5",
        limit=200,
    ),
)


def run_goals_benchmark(full: bool = False) -> Iterator[pd.DataFrame]:
    """Yield the table after every goal.

    Args:
        full: whether commands of minutes are measured as well.
    """
    _run_process(COMPILE_COMMAND, GOALS[0].limit)
    rows = []
    for goal in GOALS:
        measured = "only with --full"
        ratio = float("nan")
        if full or not goal.is_long:
            reference_seconds, _ = _run_process(REFERENCE, goal.limit)
            seconds, is_complete = _run_command(goal)
            measured = f"{seconds:.2f}" if is_complete else f"failed or stopped at {seconds:.0f}"
            ratio = seconds / reference_seconds
        rows.append((goal.work, goal.before, goal.goal, measured, ratio))
        yield _make_table(rows)
    # `make install` installs the extra "learning".
    package_count = len(_list_required_packages("dp-workbench", frozenset({"learning"})))
    rows.append(("packages of make install", "170", "about 50", f"{package_count}", float("nan")))
    speeds = run_frontier_benchmark()["rows_a_second"]
    measured = f"{speeds.min():.0f} - {speeds.max():.0f}"
    rows.append(
        ("noise frontier, certified rows a second", "272 - 319", "keep", measured, float("nan"))
    )
    yield _make_table(rows)


def _make_table(rows: list[tuple[str, str, str, str, float]]) -> pd.DataFrame:
    """Return the rows as a table."""
    return pd.DataFrame(rows, columns=["work", "before", "goal", "after", "ratio"])


def _run_command(goal: Goal) -> tuple[float, bool]:
    """Run the command of a goal. Returns its CPU seconds, and whether it succeeded."""
    with TemporaryDirectory() as folder:
        words = goal.command.format(folder=folder).split()
        if words[0] != "make":
            words.insert(0, sys.executable)
        return _run_process(words, goal.limit)


def _run_process(words: tuple[str, ...] | list[str], limit: int) -> tuple[float, bool]:
    """Run a process. Returns its CPU seconds with those of its children, and whether it succeeded.

    Args:
        words: the program and its arguments.
        limit: CPU seconds after which the system stops a process.
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    set_limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (limit, limit + 1))
    child = subprocess.Popen(
        words,
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        preexec_fn=set_limit,
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, child.returncode == 0


def _list_required_packages(name: str, extras: frozenset[str]) -> set[str]:
    """List the installed packages that a package needs, with itself.

    Args:
        name: name of the package.
        extras: its extras.
    """
    found: set[str] = set()
    visited = set()
    waiting = [(name, extras)]
    while waiting:
        package, package_extras = waiting.pop()
        if (package, package_extras) in visited:
            continue
        visited.add((package, package_extras))
        try:
            lines = requires(package) or []
        except PackageNotFoundError:
            continue
        found.add(package.lower().replace("_", "-"))
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            environments = [{"extra": extra} for extra in ("", *package_extras)]
            if marker is None or any(marker.evaluate(values) for values in environments):
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return found
