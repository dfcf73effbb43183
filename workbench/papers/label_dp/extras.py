"""Figures of ours: run time of the two algorithms, the channel LP, the cost of unbiasedness, better budget splits."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from models.oracles.bins import optimal_bins, printed_bins
from solvers.backend import Options
from workbench.design_labels import best_bins, design
from workbench.mechanisms.draws import Source
from workbench.mechanisms.label_randomizer import private_prior, split_budget
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.randomized_response import k_ary
from workbench.papers.artifact import Artifact
from workbench.papers.label_dp.data import criteo
from workbench.papers.label_dp.mechanism_loss import SQUARED
from workbench.papers.label_dp.pictures import epsilon_axis
from workbench.plots import COLOURS, MARKERS, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["channel_lp", "growth", "runtime", "splits", "timed", "unbiasedness"]


def timed(algorithm: str, k: int, loss: str, turns: int = 1) -> float:
    """Best CPU seconds of one run on k labels, an uneven prior, ε = 2."""
    rng = np.random.default_rng(k)
    labels, prior = np.arange(float(k)), rng.gamma(0.5, 1.0, k)
    run = optimal_bins if algorithm == "fast" else printed_bins
    best = math.inf
    for _ in range(turns):
        begin = time.process_time()
        run(labels, prior, 2.0, loss)
        best = min(best, time.process_time() - begin)
    return best


def growth(sizes: list[int], seconds: list[float]) -> float:
    """The exponent of k fitted to log seconds."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def runtime(full: bool) -> Artifact:
    """Seconds against k."""
    optimal_bins(np.arange(3.0), None, 1.0)  # compile before the clock runs
    plan = {
        "printed": [100, 200, 400, 800] + ([1500, 3000] if full else []),
        "fast": [100, 1000, 10_000, 100_000, 1_000_000],
    }
    rows = []
    for algorithm, sizes in plan.items():
        for k in sizes:
            losses = ("squared", "absolute") if algorithm == "fast" else ("squared",)
            rows += [(algorithm, loss, k, timed(algorithm, k, loss, 3 if k <= 1000 else 1)) for loss in losses]
    frame = pd.DataFrame(rows, columns=["algorithm", "loss", "labels", "seconds"])
    parts = {
        "printed": frame.query("algorithm == 'printed' and labels >= 200"),
        "fast": frame.query("algorithm == 'fast' and loss == 'squared' and labels >= 10000"),
    }
    slopes = {name: growth(part["labels"].tolist(), part["seconds"].tolist()) for name, part in parts.items()}
    return Artifact(
        "runtime",
        "Run time of Algorithm 2 as printed and of the fast exact algorithm",
        frame,
        lambda table: _draw_runtime(table, slopes),
        "CPU seconds on the machine of the last reproduction (they change with every run; ε = 2, an uneven prior). "
        "The printed algorithm is O(k³), not O(k²) (erratum): its array operations grow towards k³. The fast one is "
        "Dinkelbach over clamped Monge partitions, O(k log k) a round, and returns the same optimum.",
    )


def _draw_runtime(table: pd.DataFrame, slopes: dict[str, float]) -> Figure:
    figure, (axis,) = panels(width=6.2, height=4.4)
    for at, (algorithm, loss) in enumerate((("printed", "squared"), ("fast", "squared"), ("fast", "absolute"))):
        part = table[(table["algorithm"] == algorithm) & (table["loss"] == loss)]
        slope = f", fitted k^{slopes[algorithm]:.1f}" if loss == "squared" else ""
        axis.loglog(part["labels"], part["seconds"], color=COLOURS[at], marker=MARKERS[at], markersize=5,
                    label=f"{algorithm}, {loss} loss{slope}")  # fmt: skip
    axis.set_xlabel("labels k")
    axis.set_ylabel("CPU seconds")
    axis.legend(frameon=False, fontsize=9)
    return figure


def channel_lp(full: bool) -> Artifact:
    """The LP on the label grid beside the closed world of bins."""
    rows: list[tuple[Any, ...]] = []
    for k in (21, 52, 101) + ((201,) if full else ()):
        labels = Labels.uniform(0, k - 1)
        for epsilon in (1, 4):
            made = design(labels, epsilon=epsilon, method="lp")
            assert made.bound is not None
            rows.append((k, epsilon, "optimal", made.objective, made.bound, made.oracle.value))
    if full:
        # 401 x 401: the incumbent is RR-on-Bins on the grid, the bound comes from the duals of an interior point
        labels = Labels.uniform(0, 400)
        options = Options(algorithm="interior-point", native={"run_crossover": "off"}, time_limit=3600)
        made = design(labels, epsilon=1, method="lp", options=options)
        ideal = best_bins(labels, 1)
        rounded = best_on_grid(labels, ideal.own, 1.0)
        rows.append((401, 1, "proven gap", rounded, made.bound, ideal.loss(SQUARED)))
    columns = ["labels", "epsilon", "status", "objective", "proven_bound", "rr_on_bins_real_outputs"]
    frame = pd.DataFrame(rows, columns=columns)
    for column in columns[3:]:
        frame[column] = [float(f"{value:.10g}") for value in frame[column]]
    frame.insert(
        5,
        "gap",
        [float(f"{abs(a - b) / a:.1g}") for a, b in zip(frame["objective"], frame["proven_bound"], strict=True)],
    )
    return Artifact(
        "channel_lp",
        "The channel LP (2) on the label grid, with its proven bound",
        frame,
        None,
        "Uniform labels 0..k-1, squared loss, outputs on the label grid, column form (one variable t for each output), "
        "HiGHS. The bound is the Lagrangian value of the LP's duals, recomputed. The grid costs a little over "
        "RR-on-Bins, whose values are real numbers. Sizes 201 and 401 run with --full; at 401 the incumbent is "
        "RR-on-Bins with its values rounded to the grid, and the gap to the dual bound is proven.",
    )  # fmt: skip


def best_on_grid(labels: Labels, own: Any, epsilon: float) -> float:
    """MSE of RR-on-Bins with these bins and the best label as the value of each."""
    q, y, p = math.expm1(epsilon), labels.values, labels.prior
    d = int(own.max()) + 1
    total = 0.0
    for j in range(d):
        weight = p * np.where(own == j, 1 + q, 1.0)
        total += float((SQUARED.matrix(y, y) * weight[:, None]).sum(axis=0).min())
    return total / (d + q)


def unbiasedness(full: bool) -> Artifact:
    """What E[o|y] = y costs."""
    rows = []
    labels = Labels.uniform(0, 10)
    for epsilon in (0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8):
        made = design(labels, epsilon=epsilon, method="unbiased")
        free = design(labels, epsilon=epsilon)
        # k-ary RR, the bias taken out of its outputs: o_i = ((q + k) y_i - Σ y)/q
        q, k, response = math.expm1(epsilon), labels.k, k_ary(labels, epsilon)
        outputs = ((q + k) * labels.values - labels.values.sum()) / q
        debiased = float(labels.prior @ (response.matrix * SQUARED.matrix(outputs, labels.values)).sum(axis=1))
        rows.append((epsilon, free.objective, float(f"{made.objective:.7g}"), debiased))
    frame = pd.DataFrame(rows, columns=["epsilon", "biased", "unbiased", "debiased_rr"])
    return Artifact(
        "unbiasedness",
        "The cost of unbiasedness (labels 0..10, uniform)",
        frame,
        _draw_unbiased,
        "Least MSE of any ε-DP randomizer (RR-on-Bins), of any unbiased one (E[o|y] = y; column generation without an "
        "output grid, relative gap at most 1e-8, every mass an exact rational where its vertex is regular), and of "
        "k-ary randomized response with its bias taken out. Outputs of unbiased randomizers leave the label range.",
    )


def _draw_unbiased(table: pd.DataFrame) -> Figure:
    figure, (axis,) = panels(width=6.0, height=4.2)
    names = {"biased": "RR-on-Bins (biased optimum)", "unbiased": "unbiased optimum",
             "debiased_rr": "k-ary RR, bias removed"}  # fmt: skip
    for at, (column, name) in enumerate(names.items()):
        axis.loglog(table["epsilon"], table[column], color=COLOURS[at], marker=MARKERS[at], markersize=5, label=name)
    epsilon_axis(axis)
    axis.set_ylabel("MSE of the randomized labels")
    axis.legend(frameon=False)
    return figure


def splits(full: bool) -> Artifact:
    """Algorithm 3 against the known prior, for several splits and both projections."""
    data, epsilon = criteo(), 1
    labels = data.labels
    ideal = best_bins(labels, epsilon).loss(SQUARED)
    rows = []
    repeats = 40 if full else 8
    for n in (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000):
        counts = [np.random.default_rng((n, run)).multinomial(n, labels.prior) for run in range(repeats)]
        for split in ("1", "1/2", "1/4"):
            if Fraction(split) ** 2 * labels.k >= n:
                continue
            first, second = split_budget(epsilon, labels.k, n, split)
            for projection in ("clip", "simplex"):
                lost = []
                for run, h in enumerate(counts):
                    prior = private_prior(h, first, projection=projection, source=Source(run))
                    made = best_bins(Labels(labels.values, prior), second)
                    lost.append(made.loss(SQUARED, labels.prior) / ideal - 1)
                rows.append((n, split, projection, float(np.mean(lost)), float(np.std(lost))))
    frame = pd.DataFrame(rows, columns=["records", "split", "projection", "excess", "std"])
    return Artifact(
        "splits",
        "What the private prior costs, and what a better split of the budget saves (ε = 1)",
        frame,
        _draw_splits,
        f"Excess MSE of Algorithm 3 over the optimum for a known prior, on {data.words}; means over {repeats} runs of "
        "n labels drawn from it, the loss of each run exact. split: ε₁ = split · sqrt(k/n), k = 401; the paper's is 1 "
        "with clipping. With few records the simplex projection helps; with many a smaller share for the prior does.",
    )


def _draw_splits(table: pd.DataFrame) -> Figure:
    figure, (axis,) = panels(width=6.4, height=4.4)
    for at, ((split, projection), part) in enumerate(table.groupby(["split", "projection"], sort=False)):
        paper = " (paper)" if (split, projection) == ("1", "clip") else ""
        axis.loglog(part["records"], part["excess"], color=COLOURS[at // 2], marker=MARKERS[at // 2], markersize=5,
                    linestyle="-" if projection == "clip" else "--",
                    markerfacecolor=COLOURS[at // 2] if projection == "clip" else "white",
                    label=f"split {split}, {projection}{paper}")  # fmt: skip
    axis.set_xlabel("records n")
    axis.set_ylabel("excess MSE over the known prior (relative)")
    axis.legend(frameon=False, fontsize=9)
    return figure
