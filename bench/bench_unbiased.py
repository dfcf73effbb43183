"""Measure CPU time, gap and certificate size of unbiased label randomizers.

Method "unbiased" optimises over all real outputs. For a small number k of labels, a linear program
whose outputs are a grid (method "lp" with the constraint "unbiased") is solved as well. Its loss
cannot be smaller, because a grid has fewer outputs. Times are CPU seconds of one thread.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import workbench as wb
from bench import time_call

TITLE = "Unbiased label randomizers over all real outputs, certified (CPU seconds)"

MAX_GRID_SIZE = 11  # Up to this many labels the LP on a grid is solved as well.
COLUMNS = (
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
)


def list_cases() -> list[tuple[str, int, Any]]:
    """Return the spacing of the labels, their number k and ε of every case.

    The spacing is "uniform", or "lognormal" for random labels. The prior is always uniform.
    """
    cases: list[tuple[str, int, Any]] = [("uniform", MAX_GRID_SIZE, 1)]
    for k in (52, 201, 401):
        cases += [("uniform", k, epsilon) for epsilon in ("0.01", 1, 4, 12)]
    cases.append(("uniform", 1001, 1))
    for k in (201, 401):
        cases += [("lognormal", k, epsilon) for epsilon in ("0.01", 1, 12)]
    return cases


def run_unbiased_benchmark() -> pd.DataFrame:
    """Return one row for each spacing of labels, number of labels and budget."""
    return pd.DataFrame([_time_labels(*case) for case in list_cases()], columns=[*COLUMNS])


def _time_labels(spacing: str, k: int, epsilon: Any) -> tuple[Any, ...]:
    """Return the row of one case, with COLUMNS."""
    labels = wb.Labels.uniform(0, k - 1)
    if spacing == "lognormal":
        labels = wb.Labels(np.sort(np.random.default_rng(5).lognormal(size=k)))
    seconds, design = time_call(lambda: wb.design(labels, epsilon=epsilon, method="unbiased"))
    assert design.certificate is not None
    assert design.certificate.bias is not None
    assert design.certificate.bias.worst == 0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.json"
        design.save(path)
        kilobytes = path.stat().st_size / 1000
    grid_loss = grid_seconds = None
    if k <= MAX_GRID_SIZE:
        # The grid reaches three times the range of the labels beyond both ends.
        options = {
            "method": "lp",
            "outputs": tuple(range(-3 * k, 4 * k)),
            "constraints": ("unbiased",),
        }
        grid_seconds, grid_design = time_call(lambda: wb.design(labels, epsilon=epsilon, **options))
        grid_loss = grid_design.objective
    assert design.bound is not None
    gap = (design.objective - design.bound) / design.objective
    return (
        spacing,
        k,
        float(epsilon),
        design.objective,
        gap,
        design.mechanism.outputs.size,
        seconds,
        kilobytes,
        grid_loss,
        grid_seconds,
    )
