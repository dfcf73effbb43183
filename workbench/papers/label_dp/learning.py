"""Regressors trained on privatised labels: the paper's Generalization experiment on data that can be bundled.

| set      | features                          | labels                                     | regressor          |
|----------|-----------------------------------|--------------------------------------------|--------------------|
| diabetes | scikit-learn's own, 442 records   | 0, 10, ..., 350 (rounded down)             | ridge              |
| census   | SYNTHETIC, behind drawn labels    | drawn from the census labels (data.census) | ridge              |
| counts   | SYNTHETIC                         | Poisson counts clipped to 0..40            | Poisson regression |

Each run splits 80 % / 20 %, privatises the training labels, and measures against true test labels; means over runs.
RR-on-Bins and RRWithPrior learn their prior privately (Algorithm 3) from those same labels, so they need n > k/ε².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.errors import InvalidRequest
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.families.labels.problem import find_best_bins
from workbench.io.extras import require_extra
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer
from workbench.mechanisms.label_randomizers.randomized_response import rr_with_prior
from workbench.papers.label_dp.data import census
from workbench.papers.label_dp.lattice import lattice_noise
from workbench.solvers.arrays import Vector

Privatise = Callable[[Vector, int], Vector]

EPSILONS = (0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def _sklearn() -> Any:
    require_extra("learning", "Training on privatised labels")
    import sklearn.datasets
    import sklearn.linear_model

    return sklearn


RESPONSES = {
    "RR-on-Bins": find_best_bins,
    "RRWithPrior": rr_with_prior,
}  # labels and ε -> the response


def continuous_noise(name: str, values: Vector, epsilon: float) -> LabelNoise:
    """Noise on a label set of a name such as "Laplace, unclipped"."""
    kind, _, unclipped = name.lower().partition(", ")
    return LabelNoise(kind, values[0], values[-1], epsilon, clip=not unclipped)


def _privatise(name: str, values: Vector, epsilon: float, *, integer: bool) -> Privatise:
    """A randomizer compared, for a label set."""
    if name in RESPONSES:
        return lambda y, seed: (
            LabelRandomizer(values, epsilon, RESPONSES[name]).run(y, Source(seed)).labels
        )
    if not integer:
        noise = continuous_noise(name, values, epsilon)
        return lambda y, seed: noise.insecure_sample(y, np.random.default_rng(seed))
    low = int(values[0])
    rows = lattice_noise(name.lower(), low, int(values[-1]), epsilon).rows

    def exactly(y: Vector, seed: int) -> Vector:
        present, which = np.unique(y, return_inverse=True)
        laws = [rows[int(label) - low] for label in present]
        return (low + Sampler(laws, Source(seed)).draw_from(which)).astype(float)

    return exactly


class _Task(NamedTuple):
    """What is learnt. features: (n, d); truth: (n,) what is predicted, whose labels are the values below; fit: features
    and labels -> model; score: guesses and truth -> error; integer: whether noise stays on the labels."""

    features: Vector
    truth: Vector
    values: Vector
    fit: Callable[[Any, Vector], Any]
    score: Callable[[Vector, Vector], float]
    integer: bool


def _experiment(
    task: _Task, epsilons: Sequence[float], repeats: int, *, given_prior: bool = False
) -> pd.DataFrame:
    """Rows (epsilon, mechanism, mse, std); "none" (epsilon inf) trains on true labels."""
    features, truth, values = task.features, task.truth, task.values
    labels = values[np.maximum(np.searchsorted(values, truth, side="right") - 1, 0)]
    splits = []
    for run in range(repeats):
        order = np.random.default_rng(run).permutation(truth.size)
        splits.append((order[: truth.size * 4 // 5], order[truth.size * 4 // 5 :]))

    def errors(privatise: Privatise) -> list[float]:
        scores = []
        for run, (train, test) in enumerate(splits):
            model = task.fit(features[train], privatise(labels[train], 1000 + run))
            scores.append(task.score(np.asarray(model.predict(features[test])), truth[test]))
        return scores

    rows = [(np.inf, "none", *_summary(errors(lambda y, seed: y)))]
    names = ["RR-on-Bins", "Laplace", "staircase", "exponential"]
    names += [] if task.integer else ["Laplace, unclipped", "staircase, unclipped"]
    for epsilon, name in product(epsilons, [*names, "RRWithPrior"] if given_prior else names):
        with suppress(InvalidRequest):  # n <= k/ε²: Algorithm 3 refuses
            privatise = _privatise(name, values, epsilon, integer=task.integer)
            rows.append((epsilon, name, *_summary(errors(privatise))))
    return pd.DataFrame(rows, columns=["epsilon", "mechanism", "mse", "std"])


def _summary(errors: list[float]) -> tuple[float, float]:
    return float(f"{np.mean(errors):.8g}"), float(f"{np.std(errors):.6g}")


def _squared(guess: Vector, truth: Vector) -> float:
    return float(np.mean((guess - truth) ** 2))


def _ridge(x: Any, y: Vector) -> Any:
    return _sklearn().linear_model.Ridge(alpha=0.1).fit(x, y)


@cache
def diabetes_errors(full: bool) -> pd.DataFrame:
    """Test MSE on the diabetes data."""
    features, truth = _sklearn().datasets.load_diabetes(return_X_y=True)
    values = np.arange(0, 351, 10.0)
    task = _Task(features, np.asarray(truth, dtype=float), values, _ridge, _squared, integer=False)
    return _experiment(task, EPSILONS, 100 if full else 30)


@cache
def census_errors(full: bool) -> pd.DataFrame:
    """Test MSE on labels drawn from the census distribution, with synthetic features."""
    data, rng = census(), np.random.default_rng(1940)
    truth = rng.choice(data.labels.values, p=data.labels.prior, size=100_000 if full else 20_000)
    noise = rng.normal(size=(truth.size, 3))
    features = np.column_stack(
        [truth / 52 + 0.5 * noise[:, 0], (truth == 52) + noise[:, 1], noise[:, 2]]
    )
    task = _Task(features, truth, data.labels.values, _ridge, _squared, integer=True)
    return _experiment(task, (0.5, 1.0, 2.0, 4.0, 8.0), 10 if full else 3, given_prior=True)


@cache
def count_errors(full: bool) -> pd.DataFrame:
    """(E - E₀)/E₀ for the Poisson deviance E on synthetic counts, E₀ without privacy; column mse holds it."""
    rng = np.random.default_rng(7)
    features = rng.uniform(-1, 1, size=(100_000 if full else 20_000, 5))
    rate = np.exp(0.7 + features @ np.array([0.9, -0.6, 0.4, 0.2, 0.0]))
    truth = np.minimum(rng.poisson(rate), 40).astype(float)

    def fit(x: Any, y: Vector) -> Any:
        return _sklearn().linear_model.PoissonRegressor(alpha=1e-6, max_iter=300).fit(x, y)

    def deviance(guess: Vector, true: Vector) -> float:
        return float(
            np.mean(
                guess - true + np.where(true > 0, true * np.log(np.maximum(true, 1) / guess), 0.0)
            )
        )

    task = _Task(features, truth, np.arange(41.0), fit, deviance, integer=True)
    table = _experiment(task, (0.5, 1.0, 2.0, 4.0, 8.0), 10 if full else 3)
    base = float(table.loc[table["mechanism"] == "none", "mse"].iloc[0])
    return table.assign(mse=table["mse"] / base - 1, std=table["std"] / base)


ERRORS = {
    "diabetes": diabetes_errors,
    "census": census_errors,
    "count": count_errors,
}  # of models, by data set
