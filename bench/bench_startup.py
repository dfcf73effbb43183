"""What a cold command costs, in CPU of one process from its start to its end, beside loading CVXPY alone.

    python -m bench.bench_startup

Designs of noise, quantizers and labels by bins write their programs directly and load no modelling language
(`models.affine_program`), so that a whole cold design, certificate included, takes less than `import cvxpy` would.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd

__all__ = ["TITLE", "run"]

TITLE = "Cold commands, CPU beside importing CVXPY"

TURNS = 5
YARDSTICK = "import cvxpy"
COMMANDS = {
    "help": "--help",
    "design modulo --help": "design noise --help",
    "noise, PDP": "design modulo --n 20 --max-shift 2 --epsilon 1 --delta 0.05 --notion pdp",
    "noise, DP": "design modulo --n 20 --max-shift 2 --epsilon 1 --delta 0.05 --notion dp",
    "quantizer": "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
    "labels by bins": "design labels --labels 0..20 --epsilon 1",
}


def _cpu(arguments: list[str]) -> float:
    """User and system seconds of a process."""
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime


ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"OPENBLAS_NUM_THREADS": "1"}


def run() -> pd.DataFrame:
    """The least of five turns of every command; they take turns, so that a busy machine slows all alike."""
    calls = {YARDSTICK: ["-c", YARDSTICK]} | {name: ["-m", "workbench", *c.split()] for name, c in COMMANDS.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(TURNS + 1):
        for name, arguments in calls.items():
            seconds = _cpu(arguments)
            if turn:
                times[name].append(seconds)
    least = {name: min(several) for name, several in times.items()}
    rows = [{"command": name, "cpu_s": value, "ratio": value / least[YARDSTICK]} for name, value in least.items()]
    return pd.DataFrame(rows)


if __name__ == "__main__":
    print(run().to_string(index=False, float_format=lambda value: f"{value:.3g}"))
