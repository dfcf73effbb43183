"""Compare the error of published statistics with OpenDP and diffprivlib.

All publish the same table of 2,000 rows at the same ε, under the same neighbour relation and with
the same bounds of the ages. The number of rows is public under replace, and private under
add-remove. A row is left out if a package does not have it. `bench/rivals.py` runs the packages
that are installed for the interpreter RIVALS_PYTHON (an environment variable; default: the
interpreter of the benchmark). diffprivlib 0.6.6 needs scikit-learn below 1.7, so it needs an
environment of its own.

The theoretical error of the workbench is exact. The theoretical errors of the others are those of
(discrete) Laplace noise with their scale. No bounds of an output change an error here by more than
1e-9 of it.
"""

from __future__ import annotations

import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import workbench as wb
from workbench.exact.objects import Record
from workbench.publishing.histogram import find_best_candidate
from workbench.questions.joint_query import ADD_REMOVE, REPLACE, ROWS_ANYWHERE, JointQuery

TITLE = "Errors of published statistics, beside OpenDP and diffprivlib"
EPSILON = Fraction(1)
ROWS = 2000
LOW, HIGH = 18, 95  # The range of ages, as in `bench/rivals.py`.
DRAWS = 3000  # Number of releases of a rival. The measured error is known to about 2 %.
OWN_DRAWS = 200_000
_OWN_NAME = f"workbench {version('dp-workbench')}"
_RIVALS_PATH = Path(__file__).with_name("rivals.py")


def run_rivals_benchmark() -> pd.DataFrame:
    """Return one row for each statistic, relation and package."""
    rows = list(_list_own_errors())
    errors = {(row["statistic"], row["neighbours"]): row["RMSE"] for row in rows}
    rows += _run_rivals()
    rows.sort(key=lambda row: list(errors).index((row["statistic"], row["neighbours"])))
    for row in rows:
        row["ratio"] = row["RMSE"] / errors[row["statistic"], row["neighbours"]]
    return pd.DataFrame(rows)


def _list_own_errors() -> Iterator[Record]:
    """Yield a row for each statistic that the workbench publishes."""
    numbers: list[tuple[str, str, Any]] = [
        ("count", ADD_REMOVE, wb.IntegerNoise(1)),
        ("sum", ADD_REMOVE, wb.RealNoise(HIGH)),
        ("sum", REPLACE, wb.RealNoise(HIGH - LOW)),
        ("mean", REPLACE, wb.RealNoise(Fraction(HIGH - LOW, ROWS))),
    ]
    for statistic, neighbours, question in numbers:
        design = wb.design(question, loss="squared", epsilon=EPSILON)
        draws = wb.sample(design, OWN_DRAWS, answer=0, insecure_seed=1)
        error = math.sqrt(design.objective)
        yield _make_row(statistic, neighbours, _OWN_NAME, error, draws)
    for neighbours in (ADD_REMOVE, REPLACE):
        best = find_best_candidate(JointQuery(ROWS_ANYWHERE, neighbours), EPSILON)
        draws = wb.sample(best.mechanism, OWN_DRAWS, insecure_seed=1)
        error = math.sqrt(best.variance)
        yield _make_row("histogram", neighbours, _OWN_NAME, error, draws)


def _run_rivals() -> Iterator[Record]:
    """Yield a row for each release of the packages that are installed."""
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["age", "smoker", "region"])
            for _ in range(ROWS):
                age = generator.randint(LOW, HIGH)
                smoker = generator.choice(["yes", "no"])
                region = generator.choice(["north", "south", "coast", "other"])
                writer.writerow([age, smoker, region])
        python = os.environ.get("RIVALS_PYTHON", sys.executable)
        command = [python, str(_RIVALS_PATH), str(path), str(float(EPSILON)), str(DRAWS)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        release = json.loads(line)
        scale = release["scale"]
        error = math.sqrt(2) * scale
        if release["is_discrete"]:
            a = math.exp(-1 / scale)
            error = math.sqrt(2 * a) / (1 - a)
        package = f"{release['package']} {release['version']}"
        relation = release["neighbours"]
        yield _make_row(release["statistic"], relation, package, error, release["errors"])


def _make_row(statistic: str, neighbours: str, package: str, error: float, draws: Any) -> Record:
    """Make a row from the theoretical error and the errors of independent releases."""
    squares = np.asarray(draws, dtype=float).ravel() ** 2
    measured = math.sqrt(squares.mean())
    return {
        "statistic": statistic,
        "neighbours": neighbours,
        "package": package,
        "RMSE": error,
        "measured RMSE": measured,
        "standard error": float(squares.std()) / math.sqrt(squares.size) / (2 * measured),
    }
