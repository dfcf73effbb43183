"""Figures of ours: the channel LP, the loss of unbiasedness, better budget splits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from solvers.backend import Options
from workbench.exact.random_source import Source
from workbench.families.api import design
from workbench.families.labels.problem import best_bins
from workbench.mechanisms.label_randomizers.label_randomizer import private_prior, split_budget
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import k_ary
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.label_dp.data import criteo
from workbench.papers.label_dp.mechanism_loss import SQUARED

__all__ = ["channel_lp", "channel_lp_large", "proven_gap", "splits", "unbiasedness"]


def channel_lp(full: bool) -> Artifact:
    """The LP on the label grid beside the closed world of bins."""
    rows = [_solved(k, epsilon) for k in (21, 52, 101) for epsilon in (1, 4)]
    return artifact("label_dp", "channel_lp", _channel_table(rows))


def channel_lp_large(full: bool) -> Artifact:
    """The same at sizes that take a minute or two."""
    rows = [*(_solved(201, epsilon) for epsilon in (1, 4)), proven_gap(401, 1)]
    return artifact("label_dp", "channel_lp_large", _channel_table(rows))


_CHANNEL = (
    "Uniform labels 0..k-1, squared loss, outputs on the label grid, column form (one variable t for each output), "
    "HiGHS. The bound is the Lagrangian value of the LP's duals, recomputed. The grid costs a little over RR-on-Bins, "
    "whose values are real numbers."
)


def _solved(k: int, epsilon: int) -> tuple[Any, ...]:
    solved = design(Labels.uniform(0, k - 1), epsilon=epsilon, method="lp")
    assert solved.bound is not None
    return k, epsilon, "optimal", solved.objective, solved.bound, solved.oracle.value


def _channel_table(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    columns = ["labels", "epsilon", "status", "objective", "proven_bound", "rr_on_bins_real_outputs"]
    frame = pd.DataFrame(rows, columns=columns)
    gaps = [float(f"{max(a - b, 0.0) / a:.1g}") for a, b in zip(frame["objective"], frame["proven_bound"], strict=True)]
    for column in columns[3:]:
        frame[column] = [float(f"{value:.10g}") for value in frame[column]]
    frame.insert(5, "gap", gaps)
    return frame


def proven_gap(k: int, epsilon: int) -> tuple[Any, ...]:
    """A row of `channel_lp_large` without a vertex: the incumbent is RR-on-Bins on the grid, the bound
    the Lagrangian value of an interior point's duals (no crossover).
    """
    labels = Labels.uniform(0, k - 1)
    options = Options(algorithm="interior-point", native={"run_crossover": "off"}, time_limit=3600)
    solved = design(labels, epsilon=epsilon, method="lp", options=options)
    ideal = best_bins(labels, epsilon)
    incumbent = best_on_grid(labels, ideal.own, float(epsilon))
    return k, epsilon, "proven gap", incumbent, solved.bound, ideal.loss(SQUARED)


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
        solved = design(labels, epsilon=epsilon, method="unbiased")
        free = design(labels, epsilon=epsilon)
        # k-ary RR, the bias taken out of its outputs: o_i = ((q + k) y_i - Σ y)/q
        q, k, response = math.expm1(epsilon), labels.k, k_ary(labels, epsilon)
        outputs = ((q + k) * labels.values - labels.values.sum()) / q
        debiased = float(labels.prior @ (response.matrix * SQUARED.matrix(outputs, labels.values)).sum(axis=1))
        rows.append((epsilon, free.objective, float(f"{solved.objective:.6g}"), debiased))
    frame = pd.DataFrame(rows, columns=["epsilon", "biased", "unbiased", "debiased_rr"])
    return artifact("label_dp", "unbiasedness", frame)


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
                    randomizer = best_bins(Labels(labels.values, prior), second)
                    lost.append(float(labels.prior @ randomizer.losses(SQUARED)) / ideal - 1)
                rows.append((n, split, projection, float(np.mean(lost)), float(np.std(lost))))
    frame = pd.DataFrame(rows, columns=["records", "split", "projection", "excess", "std"])
    return artifact(
        "label_dp",
        "splits",
        frame,
        digits={"excess": 6, "std": 4},
        words=data.words,
        repeats=repeats,
    )
