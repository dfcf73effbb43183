"""The unbiased label randomizer with its exact channel and certificate: CPU seconds, gap, size of the file.

The plain statement beside it is the channel LP on a grid of outputs with the constraint "unbiased", as far as it goes:
an upper bound of the optimum, which the intervals' program reaches without a grid. CPU seconds of one thread.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import workbench as wb
from bench import seconds_of

TITLE = "Unbiased label randomizers: cones over intervals of labels, certified (CPU seconds)"

CASES = [
    ("uniform", k, epsilon)
    for k in (52, 201, 401, 1001)
    for epsilon in (("0.01", 1, 4, 12) if k < 1001 else (1,))
]
CASES += [("lognormal", k, epsilon) for k in (201, 401) for epsilon in ("0.01", 1, 12)]
GRID = 11  # labels up to which the LP on a grid is solved as well


def run() -> pd.DataFrame:
    """One row for each prior, size and budget."""
    rows = [_row(*case) for case in [("uniform", GRID, 1), *CASES]]
    columns = [
        "labels",
        "k",
        "epsilon",
        "loss",
        "gap",
        "outputs",
        "cpu_s",
        "file_kb",
        "grid_loss",
        "grid_cpu_s",
    ]
    return pd.DataFrame(rows, columns=columns)


def _row(kind: str, k: int, epsilon: Any) -> tuple[Any, ...]:
    labels = wb.Labels.uniform(0, k - 1)
    if kind == "lognormal":
        labels = wb.Labels(np.sort(np.random.default_rng(5).lognormal(size=k)))
    seconds, design = seconds_of(lambda: wb.design(labels, epsilon=epsilon, method="unbiased"))
    assert design.certificate is not None
    assert design.certificate.bias is not None
    assert design.certificate.bias.worst == 0
    with TemporaryDirectory() as folder:
        design.save(Path(folder) / "made.json")
        size = (Path(folder) / "made.json").stat().st_size / 1000
    grid_loss = grid_seconds = None
    if k <= GRID:
        options = {
            "method": "lp",
            "outputs": tuple(range(-3 * k, 4 * k)),
            "constraints": ("unbiased",),
        }
        grid_seconds, plain = seconds_of(lambda: wb.design(labels, epsilon=epsilon, **options))
        grid_loss = plain.objective
    assert design.bound is not None
    gap = (design.objective - design.bound) / design.objective
    return (
        kind,
        k,
        float(epsilon),
        design.objective,
        gap,
        design.mechanism.outputs.size,
        seconds,
        size,
        grid_loss,
        grid_seconds,
    )
