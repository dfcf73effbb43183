"""The work of Algorithm 2 as printed and of the fast exact algorithm, in steps and in seconds.

Seconds differ from run to run and from machine to machine, so every reproduction shows what does not: how many
candidates the printed algorithm weighs, and how many interval costs the fast one takes. Seconds come with --full.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd

from models.oracles.bins import Bins, optimal_bins, printed_bins
from workbench.papers.artifact import Artifact, artifact

__all__ = ["growth", "runtime", "timed", "work"]

LINES = (("printed", "squared"), ("fast", "squared"), ("fast", "absolute"))


def timed(algorithm: str, k: int, loss: str, turns: int = 1) -> tuple[float, Bins]:
    """Best CPU seconds of one run on k labels, an uneven prior, ε = 2; and the bins it found."""
    rng = np.random.default_rng(k)
    labels, prior = np.arange(float(k)), rng.gamma(0.5, 1.0, k)
    run = optimal_bins if algorithm == "fast" else printed_bins
    best = math.inf
    for _ in range(turns):
        begin = time.process_time()
        optimum = run(labels, prior, 2.0, loss)
        best = min(best, time.process_time() - begin)
    return best, optimum


def growth(sizes: list[int], work: list[float]) -> float:
    """The exponent of k fitted to the logarithm of the work."""
    return float(np.polyfit(np.log(sizes), np.log(work), 1)[0])


def _growth(frame: pd.DataFrame, column: str) -> list[float]:
    """Of each line, at its three largest sizes."""
    lines = [frame[(frame["algorithm"] == algorithm) & (frame["loss"] == loss)].tail(3) for algorithm, loss in LINES]
    return [growth(part["labels"].tolist(), part[column].tolist()) for part in lines]


def work(full: bool) -> Artifact:
    """Steps against k."""
    plan = {
        "printed": [100, 200, 400, 800] + ([1500, 3000] if full else []),
        "fast": [100, 1000, 10_000, 100_000, 1_000_000],
    }
    rows = [
        (algorithm, loss, k, int(float(f"{optimum.steps:.3g}")), optimum.rounds)
        for algorithm, loss in LINES
        for k in plan[algorithm]
        for optimum in [timed(algorithm, k, loss)[1]]
    ]
    frame = pd.DataFrame(rows, columns=["algorithm", "loss", "labels", "steps", "rounds"])
    return artifact("label_dp", "work", frame, growth=_growth(frame, "steps"))


def runtime(full: bool) -> Artifact:
    """Seconds against k, both algorithms in one run."""
    optimal_bins(np.arange(3.0), None, 1.0)  # compile before the clock runs
    plan = {"printed": [100, 200, 500, 1000, 2000, 3000], "fast": [100, 1000, 3000, 10_000, 100_000, 1_000_000]}
    rows = [
        (algorithm, loss, k, *timed(algorithm, k, loss, 3 if k <= 500 else 1))
        for algorithm, loss in LINES
        for k in plan[algorithm]
    ]
    frame = pd.DataFrame(
        [(*row[:4], row[4].objective) for row in rows], columns=["algorithm", "loss", "labels", "seconds", "objective"]
    )
    both = frame[(frame["loss"] == "squared") & (frame["labels"] == plan["printed"][-1])].set_index("algorithm")
    seconds = both["seconds"]
    return artifact(
        "label_dp",
        "runtime",
        frame,
        growth=_growth(frame, "seconds"),
        printed=plan["printed"][-1],
        printed_2=seconds["printed"] / seconds["fast"],
    )
