"""Measure the CPU time of whole processes: commands of the workbench, and imports of libraries.

    python -m bench.bench_startup

The CPU time of a process is its user and system time from start to end. The reference is a process
that imports only numpy and highspy, which every design needs. `import cvxpy` is measured too: it is
the time that the workbench saves, as it states its programs without CVXPY.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pandas as pd

__all__ = ["TITLE", "run_startup_benchmark"]

TITLE = "Cold commands, CPU time against importing numpy and highspy"

TURNS = 7
REFERENCE = "import numpy, highspy"
IMPORTS = ("import scipy.sparse", "import cvxpy")
MODULO = "--n 20 --max-shift 2 --epsilon 1 --delta 0.05"
COUNT = "--answers 0..10 --max-shift 1 --loss absolute --epsilon 1"
COMMANDS = {
    "help": "--help",
    "design channel --help": "design channel --help",
    "design modulo, PDP": f"design modulo {MODULO} --notion pdp",
    "design modulo, DP": f"design modulo {MODULO} --notion dp",
    "design channel": f"design channel {COUNT}",
    "design noise": "design noise --sensitivity 1 --loss absolute --epsilon 1",
    "design noise, DP": "design noise --sensitivity 1 --loss absolute --epsilon 1 --delta 1e-5",
    "design quantizer": "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
    "design labels": "design labels --labels 0..20 --epsilon 1",
    "design labels, lp": "design labels --labels 0..10 --epsilon 1 --method lp",
    "recommend": f"recommend {COUNT}",
    "formula": "formula channel --answers 0..3 --max-shift 1 --loss absolute",
    "frontier": "frontier modulo --n 8 --max-shift 1 --epsilon 1 --delta 0",
    "check": "check made.json",
    "audit": "audit made.json --epsilon 1",
    "sample": "sample made.json --answer 3 --count 5",
}


# Compiled bytecode is stored as usual, so that only the first turn compiles the modules.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["OPENBLAS_NUM_THREADS"] = "1"


def _run_python(arguments: list[str]) -> float:
    """Run a Python process, and return its user and system seconds."""
    child = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime


def _list_processes(folder: Path) -> dict[str, list[str]]:
    """Return the arguments of the Python process of every row of the table.

    Args:
        folder: the certificate made.json is stored here. Some commands read it.
    """
    certificate = str(folder / "made.json")
    design = ["design", "channel", *COUNT.split(), "--save", certificate]
    _run_python(["-m", "workbench", *design])
    processes = {name: ["-c", name] for name in (REFERENCE, *IMPORTS)}
    for name, command in COMMANDS.items():
        arguments = command.replace("made.json", certificate).split()
        processes[name] = ["-m", "workbench", *arguments]
    checker = Path(__file__).parents[1] / "tools" / "check_certificate.py"
    processes["tools/check_certificate.py"] = [str(checker), certificate]
    return processes


def run_startup_benchmark() -> pd.DataFrame:
    """Measure every command in several turns, and compare it with the reference.

    Returns:
        One row for each command, with the columns command, cpu_s (the fewest CPU seconds of a turn)
        and ratio (to the CPU seconds of the reference; median over turns).
    """
    with TemporaryDirectory() as folder:
        processes = _list_processes(Path(folder))
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
        for turn in range(TURNS + 1):
            is_warm_up = turn == 0
            for name, arguments in processes.items():
                # The reference runs immediately before each command, because other work on the
                # machine slows a process by a factor of up to two for seconds or minutes.
                reference_seconds = _run_python(processes[REFERENCE])
                seconds = _run_python(arguments)
                if not is_warm_up:
                    times[name].append((reference_seconds, seconds))
    return pd.DataFrame(
        {
            "command": name,
            "cpu_s": min(seconds for _, seconds in pairs),
            "ratio": median(seconds / reference for reference, seconds in pairs),
        }
        for name, pairs in times.items()
    )


if __name__ == "__main__":
    table = run_startup_benchmark()
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
