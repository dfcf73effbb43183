"""Compute the tables behind the figures of Ghazi et al., Regression with Label DP.

Each public function makes the rows of a table. declared/label_dp.toml names the function and its
arguments. The tables are losses of randomizers, optimal channels, splits of a budget, and the work
of algorithms. RR-on-Bins is randomized response onto a few outputs
(`workbench.models.oracles.bins`), RRWithPrior an earlier mechanism, k the number of labels, n the
number of records, and MSE the mean squared error.

RR-on-Bins is evaluated as in the paper: of the budget ε, ε₁ = sqrt(k/n) is used for the prior
(Theorem 7), and the bins have ε - ε₁. The loss from the noisy prior itself is below the printed
digits at these n (see the artifact "splits").

The seconds of an algorithm differ between runs and machines. Every reproduction therefore counts
steps, which do not differ: the candidates of the printed algorithm and the interval losses of the
fast one. Seconds are only measured with --full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from workbench.data.parameter_grid import Grid, read_grid_in_order
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
from workbench.papers.label_dp.data import DATA, DataSet, get_criteo_data
from workbench.papers.label_dp.lattice import make_lattice_noise
from workbench.papers.label_dp.learning import (
    RESPONSES,
    make_continuous_noise,
    measure_test_errors,
)
from workbench.pipeline.api import design
from workbench.questions.labels import Labels
from workbench.solvers.search import Deadline

SQUARED = parse_loss("squared")

_FITTED_POINTS = 3  # The growth of the work is fitted to this many of the largest sizes.

# Runs with at most this many labels are short, so the fastest of several runs is reported.
_MAX_REPEATED_LABELS = 500
_SHORT_RUN_REPEATS = 3


# Randomized labels, and models trained on them.


def compute_label_losses(data: str, mechanism: str, epsilon: Sequence[float]) -> pd.DataFrame:
    """Return the MSE of the randomized labels.

    RR-on-Bins and RRWithPrior have the budget ε - ε₁ and the true prior, whose private estimate
    would use ε₁. The sensitivity of noise is the label range. It is continuous for Criteo, and on
    the integers for the census. At ε = inf every label is published unchanged.

    Args:
        data: A key of `DATA`, such as "criteo" or "census".
        mechanism: A key of `RESPONSES`, or the name of a noise, such as "Laplace" or "Laplace,
            unclipped" (sums may leave the label range).
        epsilon: The values of ε, > 0; inf for no privacy.

    Returns:
        The columns epsilon and mse.
    """
    dataset = DATA[data]()
    labels = dataset.labels
    values = labels.values

    def compute_mse(budget: float) -> float:
        """Return the mean squared error of the mechanism at an ε, inf for no privacy."""
        if budget == math.inf:
            return float(labels.prior @ SQUARED(values, values))
        if mechanism in RESPONSES:
            return make_response(dataset, mechanism, budget).loss(SQUARED)
        if data == "census":
            return compute_lattice_noise_mse(labels, mechanism.lower(), budget)
        return make_continuous_noise(mechanism, values, budget).loss(labels)

    return pd.DataFrame({"epsilon": epsilon, "mse": [compute_mse(budget) for budget in epsilon]})


def make_response(data: DataSet, mechanism: str, epsilon: float) -> RandomizedResponse:
    """Return RR-on-Bins or RRWithPrior with the part of a budget that its prior does not use.

    Args:
        data: The labels with their prior, and the number of records.
        mechanism: A key of `RESPONSES`.
        epsilon: The whole budget ε, of which ε₁ is subtracted.
    """
    _, bins_budget = split_budget(epsilon, data.labels.k, data.records)
    return RESPONSES[mechanism](data.labels, bins_budget)


def compute_lattice_noise_mse(labels: Labels, kind: str, epsilon: float) -> float:
    """Return the MSE of clipped integer noise, a finite sum.

    Args:
        labels: The labels with their prior.
        kind: The kind of noise, as `make_lattice_noise` takes it.
        epsilon: The ε of the budget, > 0.
    """
    low = int(labels.values[0])
    high = int(labels.values[-1])
    outputs = np.arange(low, high + 1)
    noise = make_lattice_noise(kind, low, high, epsilon)
    channel = np.array([row.floats for row in noise.rows])
    mse = (channel * SQUARED.matrix(outputs, outputs)).sum(axis=1)
    return float(labels.prior @ mse[np.searchsorted(outputs, labels.values)])


def select_test_errors(
    training_data: str,
    epsilon: Grid,
    runs: int,
    records: int,
    excluded: str | None = None,
) -> pd.DataFrame:
    """Return the test errors of models trained on privatised labels.

    Args:
        training_data: A key of `TASKS`.
        epsilon: The values of ε, > 0.
        runs: The number of runs, each with its own split of the data.
        records: The number of records, if the data are synthetic.
        excluded: Mechanisms whose names contain this text are omitted. None: all are listed.

    Returns:
        The columns epsilon (inf: no privacy), mechanism ("none": true labels), mse and std.
    """
    epsilons = tuple(map(float, read_grid_in_order(epsilon, "epsilon")))
    table = measure_test_errors(training_data, epsilons, runs, records)
    if excluded is None:
        return table
    return table[~table["mechanism"].str.contains(excluded)]


def compute_table_blocks(
    data: str,
    training_data: str,
    mechanisms: Sequence[str],
    epsilon: Sequence[float],
    runs: int,
    records: int,
    *,
    sizes: bool = False,
) -> pd.DataFrame:
    """Return the MSE of the labels and the test error of models, by ε and mechanism.

    Args:
        data: The name of the data set of the labels.
        training_data: The name of the data set of the models.
        mechanisms: The names of the mechanisms, as in `compute_label_losses`.
        epsilon: The values of ε, > 0. A last row has ε = inf, no privacy.
        runs: The number of runs, each with its own split of the data.
        records: The number of records, if the data are synthetic.
        sizes: Whether to add how many labels the first mechanism can publish.

    Returns:
        One row for every ε. The columns are epsilon, for each mechanism "<name>" (MSE of the
        labels) and "<name>, test" (test error of the model), and with `sizes` labels_kept.
    """
    test_table = select_test_errors(training_data, epsilon, runs, records)
    errors = test_table.set_index(["mechanism", "epsilon"])["mse"]
    epsilons = [*epsilon, math.inf]
    table = pd.DataFrame({"epsilon": epsilons})
    for name in mechanisms:
        table[name] = compute_label_losses(data, name, epsilons)["mse"]
        table[f"{name}, test"] = [
            errors.get(("none" if budget == math.inf else name, budget)) for budget in epsilons
        ]
    if sizes:
        dataset = DATA[data]()
        kept_counts = [
            make_response(dataset, mechanisms[0], budget).outputs.size for budget in epsilon
        ]
        table["labels_kept"] = [*kept_counts, dataset.labels.k]
    return table


# The linear program of the optimal channel, and the price of unbiased outputs, E[o|y] = y.


def solve_channel_lp(labels: int, epsilon: float) -> list[Row]:
    """Solve the linear program of the optimal channel for labels 0..k-1 with a uniform prior.

    Args:
        labels: The number k of labels.
        epsilon: The ε of the budget, > 0.

    Returns:
        One row: objective (the loss of the certified channel), proven_bound (a lower bound),
        rr_on_bins_real_outputs (the loss of RR-on-Bins with real outputs), and gap (objective minus
        bound, relative to the objective).
    """
    lp_design = design(Labels.uniform(0, labels - 1), epsilon=epsilon, method="lp")
    assert lp_design.bound is not None
    assert lp_design.oracle.value is not None
    gap = max(lp_design.objective - lp_design.bound, 0.0) / lp_design.objective
    row: Row = {
        "objective": lp_design.objective,
        "proven_bound": lp_design.bound,
        "rr_on_bins_real_outputs": lp_design.oracle.value,
        "gap": float(f"{gap:.1g}"),
    }
    return [row]


def price_unbiasedness(last_label: int, epsilon: float) -> list[Row]:
    """Return the minimal MSE of all randomizers, of unbiased ones, and of debiased k-ary RR.

    The outputs of debiased k-ary RR are o_i = ((q + k) y_i - Σ y)/q with q = e^ε - 1.

    Args:
        last_label: The largest label. Labels are 0, 1, ..., last_label.
        epsilon: The ε of the budget, > 0.

    Returns:
        One row with the MSE: biased, unbiased, debiased_rr.
    """
    labels = Labels.uniform(0, last_label)
    k = labels.k
    unbiased_design = design(labels, epsilon=epsilon, method="unbiased")
    q = math.expm1(epsilon)
    outputs = ((q + k) * labels.values - labels.values.sum()) / q
    row: Row = {
        "biased": design(labels, epsilon=epsilon).objective,
        "unbiased": float(f"{unbiased_design.objective:.6g}"),
        "debiased_rr": replace(rr_k_ary(labels, epsilon), outputs=outputs).loss(SQUARED),
    }
    return [row]


def measure_budget_splits(
    split: str, projection: str, records: Sequence[int], repeats: int, epsilon: float
) -> pd.DataFrame:
    """Return the excess loss of Algorithm 3 over the optimum for a known prior.

    Algorithm 3 estimates the prior with the part ε₁ of the budget, and has the rest for the bins.
    Numbers of records for which the split leaves no budget for the bins are omitted.

    Args:
        split: The factor in ε₁ = split sqrt(k/n), as text, such as "1/2".
        projection: How noisy counts become a prior, as in `estimate_private_prior`.
        records: The numbers n of records.
        repeats: The number of runs for each n.
        epsilon: The ε of the whole budget, > 0.

    Returns:
        The columns records, excess (the mean over runs of loss/optimum - 1) and std (its standard
        deviation).
    """
    labels = get_criteo_data().labels
    optimum = find_best_bins(labels, epsilon).loss(SQUARED)
    rows = []
    for n in records:
        if Fraction(split) ** 2 * labels.k >= n * Fraction(epsilon) ** 2:
            continue  # ε₁ would be ε or more.
        prior_budget, bins_budget = split_budget(epsilon, labels.k, n, split)
        excesses = []
        for run in range(repeats):
            counts = np.random.default_rng((n, run)).multinomial(n, labels.prior)
            prior = estimate_private_prior(
                counts, prior_budget, projection=projection, source=Source(run)
            )
            randomizer = find_best_bins(Labels(labels.values, prior), bins_budget)
            loss = float(labels.prior @ randomizer.losses(SQUARED))
            excesses.append(loss / optimum - 1)
        rows.append((n, float(np.mean(excesses)), float(np.std(excesses))))
    return pd.DataFrame(rows, columns=["records", "excess", "std"])


# The work of Algorithm 2 as printed, and of the fast exact algorithm.


def time_algorithm(
    algorithm: str, k: int, loss: str, repeats: int = 1, epsilon: float = 2.0
) -> tuple[float, Bins]:
    """Return the fewest CPU seconds of a run on k labels, and its bins.

    The prior is not uniform.

    Args:
        algorithm: "fast" or "printed".
        k: The number of labels.
        loss: The name of the loss, such as "squared".
        repeats: The number of runs.
        epsilon: The ε of the budget, > 0.

    Returns:
        (Seconds, bins).
    """
    labels = np.arange(float(k))
    prior = np.random.default_rng(k).gamma(0.5, 1.0, k)
    run = optimal_bins if algorithm == "fast" else printed_bins
    fewest_seconds = math.inf
    for _ in range(repeats):
        clock = Deadline(cpu=True)
        optimum = run(labels, prior, epsilon, loss)
        fewest_seconds = min(fewest_seconds, clock.elapsed_seconds)
    return fewest_seconds, optimum


def measure_work(
    algorithm: str, loss: str, labels: Sequence[int], epsilon: float, *, seconds: bool = False
) -> list[Row]:
    """Return the seconds, the steps, the rounds and the objective for numbers of labels.

    Args:
        algorithm: "fast" or "printed".
        loss: The name of the loss, such as "squared".
        labels: The numbers k of labels.
        epsilon: The ε of the budget, > 0.
        seconds: Whether the seconds are used, so that short runs are repeated.

    Returns:
        One row for each k: labels, seconds, steps (candidates or interval losses that were
        computed, three digits), rounds of the algorithm, objective (the loss of the bins).
    """
    # The first call compiles, so it is not timed.
    optimal_bins(np.arange(3.0), None, 1.0)
    rows = []
    for k in labels:
        repeats = _SHORT_RUN_REPEATS if seconds and k <= _MAX_REPEATED_LABELS else 1
        elapsed_seconds, optimum = time_algorithm(algorithm, k, loss, repeats, epsilon)
        row: Row = {
            "labels": k,
            "seconds": elapsed_seconds,
            "steps": int(float(f"{optimum.steps:.3g}")),
            "rounds": optimum.rounds,
            "objective": optimum.objective,
        }
        rows.append(row)
    return rows


def fit_growth_exponent(sizes: Sequence[float], effort: Sequence[float]) -> float:
    """Return the exponent a of the power law, effort ∝ k^a, that fits best on a log-log scale.

    Args:
        sizes: Values of k.
        effort: The seconds or steps for each k.
    """
    # The logarithms lie on a line, whose slope is the exponent.
    exponent, _ = np.polyfit(np.log(sizes), np.log(effort), deg=1)
    return float(exponent)


def fit_growth_exponents(table: pd.DataFrame) -> dict[str, list[float]]:
    """Return the growth exponent of every line: of its seconds if measured, else of its steps.

    A line has the rows of one algorithm and one loss. Its last points are fitted.

    Args:
        table: A table of `measure_work` with the columns algorithm and loss.

    Returns:
        "growth": the exponents, in the order of the lines.
    """
    effort = "seconds" if "seconds" in table else "steps"
    exponents = []
    for _, line in table.groupby(["algorithm", "loss"], sort=False):
        end = line.tail(_FITTED_POINTS)
        exponents.append(fit_growth_exponent(end["labels"].tolist(), end[effort].tolist()))
    return {"growth": exponents}
