"""What a cold command costs, in CPU of one process from its start to its end, beside one that loads numpy and highspy.

    python -m bench.bench_startup

Programs of noise, channels, quantizers and labels are stated without loading a modelling language
(`workbench.models.statement`), so that a whole cold design, certificate included, takes less than `import cvxpy` would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pandas as pd

__all__ = ["TITLE", "run"]

TITLE = "Cold commands, CPU beside importing numpy and highspy"

TURNS = 7
YARDSTICK = "import numpy, highspy"
IMPORTS = ("import scipy.sparse", "import cvxpy")
COUNT = "--answers 0..10 --max-shift 1 --loss absolute --epsilon 1"
COMMANDS = {
    "help": "--help",
    "design channel --help": "design channel --help",
    "design modulo, PDP": "design modulo --n 20 --max-shift 2 --epsilon 1 --delta 0.05 --notion pdp",
    "design modulo, DP": "design modulo --n 20 --max-shift 2 --epsilon 1 --delta 0.05 --notion dp",
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


def _cpu(arguments: list[str]) -> float:
    """User and system seconds of a process."""
    child = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime


def _calls(folder: Path) -> dict[str, list[str]]:
    """Name -> arguments of a Python process. folder: with a certificate, made.json."""
    _cpu(
        [
            "-m",
            "workbench",
            "design",
            "channel",
            *COUNT.split(),
            "--save",
            str(folder / "made.json"),
        ]
    )
    calls = {name: ["-c", name] for name in (YARDSTICK, *IMPORTS)}
    for name, line in COMMANDS.items():
        calls[name] = [
            "-m",
            "workbench",
            *line.replace("made.json", str(folder / "made.json")).split(),
        ]
    checker = Path(__file__).parents[1] / "tools" / "check_certificate.py"
    return calls | {"tools/check_certificate.py": [str(checker), str(folder / "made.json")]}


ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
    "OPENBLAS_NUM_THREADS": "1"
}


def run() -> pd.DataFrame:
    """The least CPU seconds of every command, and the median over turns of its ratio to the yardstick that runs right
    before it: what else the machine does slows a process by up to two, for seconds or minutes, and both alike."""
    with TemporaryDirectory() as folder:
        calls = _calls(Path(folder))
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
        for turn in range(TURNS + 1):
            for name, arguments in calls.items():
                measured = _cpu(calls[YARDSTICK]), _cpu(arguments)
                if turn:
                    times[name].append(measured)
    return pd.DataFrame(
        {
            "command": name,
            "cpu_s": min(seconds for _, seconds in several),
            "ratio": median(seconds / yardstick for yardstick, seconds in several),
        }
        for name, several in times.items()
    )


if __name__ == "__main__":
    print(run().to_string(index=False, float_format=lambda value: f"{value:.3g}"))
