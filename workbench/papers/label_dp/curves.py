"""The rows that declared/label_dp.toml asks for: losses of randomizers, channel programs, splits of a budget, work.

RR-on-Bins is held to the paper's rule: of the budget ε, ε₁ = sqrt(k/n) goes to the prior (Theorem 7), the bins have
ε - ε₁. What the noisy prior itself costs at these n is below the printed digits (the artifact "splits" shows it).

Seconds of `work` differ from run to run and from machine to machine, so every reproduction shows what does not: how
many candidates the printed algorithm weighs, and how many interval costs the fast one takes. Seconds come with --full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from workbench.exact.random_source import Source
from workbench.families.labels.problem import find_best_bins
from workbench.io.result import Row
from workbench.mechanisms.label_randomizers.label_randomizer import (
    estimate_private_prior,
    split_budget,
)
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, rr_k_ary
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import Bins, optimal_bins, printed_bins
from workbench.papers.label_dp.data import DATA, DataSet, criteo
from workbench.papers.label_dp.lattice import lattice_noise
from workbench.papers.label_dp.learning import ERRORS, RESPONSES, continuous_noise
from workbench.pipeline.api import design
from workbench.questions.labels import Labels
from workbench.solvers.search import Deadline

SQUARED = parse_loss("squared")


# Randomized labels, and models trained on them.


def losses(data: str, mechanism: str, epsilon: Sequence[float]) -> pd.DataFrame:
    """MSE of the labels: of RR-on-Bins or RRWithPrior at ε - ε₁, the prior known up to its loss ε₁; of continuous noise
    with the label range as sensitivity ("Laplace, unclipped"), of noise on the integers for the census. Without a limit
    on ε every label is published as it is."""
    chosen = DATA[data]()
    labels, values = chosen.labels, chosen.labels.values

    def mse(e: float) -> float:
        if e == math.inf:
            return float(labels.prior @ SQUARED(values, values))
        if mechanism in RESPONSES:
            return make_response(chosen, mechanism, e).loss(SQUARED)
        if data == "census":
            return lattice_noise_mse(labels, mechanism.lower(), e)
        return continuous_noise(mechanism, values, e).loss(labels)

    return pd.DataFrame({"epsilon": epsilon, "mse": [mse(e) for e in epsilon]})


def make_response(data: DataSet, mechanism: str, epsilon: float) -> RandomizedResponse:
    """RR-on-Bins or RRWithPrior with what the prior leaves of a budget."""
    _, second = split_budget(epsilon, data.labels.k, data.records)
    return RESPONSES[mechanism](data.labels, second)


def lattice_noise_mse(labels: Labels, kind: str, epsilon: float) -> float:
    """MSE of clipped integer noise, a finite sum."""
    low, high = int(labels.values[0]), int(labels.values[-1])
    outputs = np.arange(low, high + 1)
    rows = np.array([row.floats for row in lattice_noise(kind, low, high, epsilon).rows])
    mse = (rows * SQUARED.matrix(outputs, outputs)).sum(axis=1)
    return float(labels.prior @ mse[np.searchsorted(outputs, labels.values)])


def trained(on: str, without: str | None = None, *, full: bool = False) -> pd.DataFrame:
    """Test errors of models trained on privatised labels, but those of mechanisms whose names hold `without`."""
    table = ERRORS[on](full)
    return table if without is None else table[~table["mechanism"].str.contains(without)]


def blocks(
    data: str,
    on: str,
    mechanisms: Sequence[str],
    epsilon: Sequence[float],
    *,
    full: bool = False,
    sizes: bool = False,
) -> pd.DataFrame:
    """At every ε the MSE of the labels of each mechanism, and of models trained on a data set's labels of its; sizes:
    also how many labels the first one keeps."""
    errors = ERRORS[on](full).set_index(["mechanism", "epsilon"])["mse"]
    table = pd.DataFrame({"epsilon": epsilon})
    for name in mechanisms:
        table[name] = losses(data, name, epsilon)["mse"]
        table[f"{name}, test"] = [
            errors.get(("none" if e == math.inf else name, e)) for e in epsilon
        ]
    if sizes:
        chosen = DATA[data]()
        kept = (
            make_response(chosen, mechanisms[0], e).outputs.size for e in epsilon if e < math.inf
        )
        table["labels_kept"] = [*kept, chosen.labels.k]
    return table


# The channel LP beside the closed world of bins, and what E[o|y] = y costs.


def channel_lp(labels: int, epsilon: int) -> list[Row]:
    """The LP on the grid of so many labels."""
    solved = design(Labels.uniform(0, labels - 1), epsilon=epsilon, method="lp")
    assert solved.bound is not None
    assert solved.oracle.value is not None
    row = {
        "objective": solved.objective,
        "proven_bound": solved.bound,
        "rr_on_bins_real_outputs": solved.oracle.value,
    }
    gap = max(solved.objective - solved.bound, 0.0) / solved.objective
    return [row | {"gap": float(f"{gap:.1g}")}]


def unbiasedness(epsilon: float) -> list[Row]:
    """The least MSE of any randomizer, of any unbiased one, and of k-ary RR with the bias taken out of its outputs,
    o_i = ((q + k) y_i - Σ y)/q."""
    labels = Labels.uniform(0, 10)
    solved = design(labels, epsilon=epsilon, method="unbiased")
    q, k = math.expm1(epsilon), labels.k
    outputs = ((q + k) * labels.values - labels.values.sum()) / q
    debiased = replace(rr_k_ary(labels, epsilon), outputs=outputs).loss(SQUARED)
    row = {
        "biased": design(labels, epsilon=epsilon).objective,
        "unbiased": float(f"{solved.objective:.6g}"),
    }
    return [{**row, "debiased_rr": debiased}]


def splits(split: str, projection: str, records: Sequence[int], repeats: int) -> pd.DataFrame:
    """Algorithm 3 at ε = 1 against the known prior, where a split leaves a budget."""
    labels, epsilon = criteo().labels, 1
    ideal = find_best_bins(labels, epsilon).loss(SQUARED)
    rows = []
    for n in records:
        if Fraction(split) ** 2 * labels.k >= n:
            continue
        first, second = split_budget(epsilon, labels.k, n, split)
        lost = []
        for run in range(repeats):
            counts = np.random.default_rng((n, run)).multinomial(n, labels.prior)
            prior = estimate_private_prior(counts, first, projection=projection, source=Source(run))
            randomizer = find_best_bins(Labels(labels.values, prior), second)
            lost.append(float(labels.prior @ randomizer.losses(SQUARED)) / ideal - 1)
        rows.append((n, float(np.mean(lost)), float(np.std(lost))))
    return pd.DataFrame(rows, columns=["records", "excess", "std"])


# The work of Algorithm 2 as printed and of the fast exact algorithm.


def time_algorithm(algorithm: str, k: int, loss: str, repeats: int = 1) -> tuple[float, Bins]:
    """Best CPU seconds of one run on k labels, an uneven prior, ε = 2; and the bins it found."""
    labels, prior = np.arange(float(k)), np.random.default_rng(k).gamma(0.5, 1.0, k)
    run = optimal_bins if algorithm == "fast" else printed_bins
    best = math.inf
    for _ in range(repeats):
        clock = Deadline(cpu=True)
        optimum = run(labels, prior, 2.0, loss)
        best = min(best, clock.elapsed_seconds)
    return best, optimum


def work(algorithm: str, loss: str, labels: Sequence[int], *, seconds: bool = False) -> list[Row]:
    """Steps and rounds against k; or seconds, the best of some turns, and the objective."""
    optimal_bins(np.arange(3.0), None, 1.0)  # compile before the clock runs
    runs = [time_algorithm(algorithm, k, loss, 3 if seconds and k <= 500 else 1) for k in labels]
    return [
        {
            "labels": k,
            "seconds": s,
            "steps": int(float(f"{o.steps:.3g}")),
            "rounds": o.rounds,
            "objective": o.objective,
        }
        for k, (s, o) in zip(labels, runs, strict=True)
    ]


def fit_growth_exponent(sizes: Sequence[float], effort: Sequence[float]) -> float:
    """The exponent of k fitted to the logarithm of the work."""
    return float(np.polyfit(np.log(sizes), np.log(effort), 1)[0])


def growths(table: pd.DataFrame) -> dict[str, list[float]]:
    """How fast the work of each line grows at its end: in seconds, where they were taken."""
    effort = "seconds" if "seconds" in table else "steps"
    lines = [line.tail(3) for _, line in table.groupby(["algorithm", "loss"], sort=False)]
    return {
        "growth": [
            fit_growth_exponent(line["labels"].tolist(), line[effort].tolist()) for line in lines
        ]
    }
