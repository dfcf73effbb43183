"""The work of Algorithm 2 as printed and of the fast exact algorithm, in steps; bench/bench_bins.py has the seconds.

Seconds differ from run to run and from machine to machine, so a reproduction shows what does not: how many candidates
the printed algorithm weighs, and how many interval costs the fast one takes.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from models.oracles.bins import Bins, optimal_bins, printed_bins
from workbench.papers.artifact import Artifact
from workbench.plots import COLOURS, MARKERS, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "growth", "runtime", "timed"]

LINES = (("printed", "squared"), ("fast", "squared"), ("fast", "absolute"))


def timed(algorithm: str, k: int, loss: str, turns: int = 1) -> tuple[float, Bins]:
    """Best CPU seconds of one run on k labels, an uneven prior, ε = 2; and the bins it found."""
    rng = np.random.default_rng(k)
    labels, prior = np.arange(float(k)), rng.gamma(0.5, 1.0, k)
    run = optimal_bins if algorithm == "fast" else printed_bins
    best = math.inf
    for _ in range(turns):
        begin = time.process_time()
        found = run(labels, prior, 2.0, loss)
        best = min(best, time.process_time() - begin)
    return best, found


def growth(sizes: list[int], work: list[float]) -> float:
    """The exponent of k fitted to the logarithm of the work."""
    return float(np.polyfit(np.log(sizes), np.log(work), 1)[0])


def runtime(full: bool) -> Artifact:
    """Steps against k."""
    plan = {
        "printed": [100, 200, 400, 800] + ([1500, 3000] if full else []),
        "fast": [100, 1000, 10_000, 100_000, 1_000_000],
    }
    rows = [
        (algorithm, loss, k, found.steps, found.rounds)
        for algorithm, loss in LINES
        for k in plan[algorithm]
        for found in [timed(algorithm, k, loss)[1]]
    ]
    frame = pd.DataFrame(rows, columns=["algorithm", "loss", "labels", "steps", "rounds"])
    return Artifact(
        "runtime",
        "Work of Algorithm 2 as printed and of the fast exact algorithm",
        frame,
        lambda table: draw(table, "steps", "steps"),
        "Steps counted, ε = 2, an uneven prior: candidates weighed by the printed algorithm, which is O(k³) and not "
        "O(k²) (erratum), and interval costs taken by the fast one (Dinkelbach over clamped Monge partitions, "
        "O(k log k) a round), which returns the same optimum. A step of the printed one is an addition and a "
        "comparison inside an array operation, one of the fast algorithm some tens of operations. Seconds are measured "
        "by make bench (results/bench/bins.csv): they change with every run.",
    )


def draw(table: pd.DataFrame, column: str, label: str) -> Figure:
    """A column of work against k on logarithmic axes, each curve with the exponent of its three largest sizes."""
    figure, (axis,) = panels(width=6.2, height=4.4)
    for at, (algorithm, loss) in enumerate(LINES):
        part = table[(table["algorithm"] == algorithm) & (table["loss"] == loss)]
        slope = growth(part["labels"].tolist()[-3:], part[column].tolist()[-3:])
        axis.loglog(part["labels"], part[column], color=COLOURS[at], marker=MARKERS[at], markersize=5,
                    label=f"{algorithm}, {loss} loss, fitted k^{slope:.1f}")  # fmt: skip
    axis.set_xlabel("labels k")
    axis.set_ylabel(label)
    axis.legend(frameon=False, fontsize=9)
    return figure
