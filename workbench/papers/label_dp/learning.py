"""Measure the test errors of regressors that are trained on privatised labels.

This repeats the experiment "Generalization" of Ghazi et al. on data that can be bundled:

| set      | features                     | labels                          | regressor          |
|----------|------------------------------|---------------------------------|--------------------|
| criteo   | SYNTHETIC, from the labels   | the Criteo labels, each as      | ridge              |
|          |                              | often as in the whole log       |                    |
| diabetes | scikit-learn's, 442 records  | 0, 10, ..., 350 (rounded down)  | ridge              |
| census   | SYNTHETIC, from drawn labels | drawn from the census labels    | ridge              |
| count    | SYNTHETIC                    | Poisson counts clipped to 0..40 | Poisson regression |

Each run splits the data 80 % to 20 %, privatises the training labels, and measures the error on
true test labels. The errors are means over runs. RR-on-Bins and RRWithPrior estimate their prior
privately (Algorithm 3) from the same labels. With n records and k labels they need n > k/ε². The
442 records of the diabetes data are too few for it below ε = 0.32, unlike the paper's 1.7 million.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache
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
from workbench.papers.label_dp.data import get_census_data, get_criteo_data
from workbench.papers.label_dp.lattice import make_lattice_noise
from workbench.solvers.arrays import Vector

# A function of labels and a seed that returns privatised labels.
Privatise = Callable[[Vector, int], Vector]

# Name of a mechanism -> the function that makes it for labels (with their prior) and ε.
RESPONSES = {
    "RR-on-Bins": find_best_bins,
    "RRWithPrior": rr_with_prior,
}

# Mechanisms for every data set, and mechanisms for labels that noise may leave.
_MECHANISMS = ("RR-on-Bins", "Laplace", "staircase", "exponential")
_CONTINUOUS_MECHANISMS = ("Laplace, unclipped", "staircase, unclipped")

_TRAINING_SHARE = Fraction(4, 5)  # The share of the records that train a model.
_FIRST_PRIVACY_SEED = 1000  # Run r privatises with this seed plus r; the splits have the seeds r.
_RIDGE_PENALTY = 0.1  # The penalty of squared weights in a ridge regression.
_POISSON_PENALTY = 1e-6  # The penalty of squared weights in a Poisson regression.
_MAX_POISSON_ITERATIONS = 300  # The fit of a Poisson regression ends after this many iterations.

# The synthetic data.
_CRITEO_SEED = 2018
_CENSUS_SEED = 1940
_COUNT_SEED = 7
_VIEW_NOISE = 0.5  # The standard deviation of the noise of a feature that shows the label.
_MAX_WEEKS = 52  # The largest label of the census.
_MAX_COUNT = 40  # Counts are clipped here.
# The logarithm of the rate of a count is the first number plus the weighted sum of its features.
_COUNT_INTERCEPT = 0.7
_COUNT_WEIGHTS = (0.9, -0.6, 0.4, 0.2, 0.0)


def _import_sklearn() -> Any:
    """Return scikit-learn. Raises NotInstalled."""
    require_extra("learning", "Training on privatised labels")
    import sklearn.datasets
    import sklearn.linear_model

    return sklearn


def make_continuous_noise(name: str, values: Vector, epsilon: float) -> LabelNoise:
    """Return continuous noise for labels.

    Args:
        name: "Laplace" or "staircase"; with ", unclipped" the sums are not clipped to the labels.
        values: The labels in increasing order. Their range is the sensitivity.
        epsilon: The ε of pure DP, > 0.
    """
    kind, _, unclipped_suffix = name.lower().partition(", ")
    return LabelNoise(kind, values[0], values[-1], epsilon, clip=not unclipped_suffix)


def _make_randomizer(name: str, values: Vector, epsilon: float, *, is_integer: bool) -> Privatise:
    """Return the function that privatises labels with a mechanism.

    values: all possible labels, in increasing order. is_integer: whether noise is on the integers.
    """
    if name in RESPONSES:

        def respond(labels: Vector, seed: int) -> Vector:
            """Privatise labels by the randomized response for the data's prior."""
            randomizer = LabelRandomizer(values, epsilon, RESPONSES[name])
            return randomizer.run(labels, Source(seed)).labels

        return respond
    if not is_integer:
        noise = make_continuous_noise(name, values, epsilon)

        def add_noise(labels: Vector, seed: int) -> Vector:
            """Privatise labels by continuous noise."""
            return noise.insecure_sample(labels, np.random.default_rng(seed))

        return add_noise
    low = int(values[0])
    rows = make_lattice_noise(name.lower(), low, int(values[-1]), epsilon).rows

    def add_integer_noise(labels: Vector, seed: int) -> Vector:
        """Privatise integer labels by drawing from the rows of the clamped noise."""
        present, indices = np.unique(labels, return_inverse=True)
        laws = [rows[int(label) - low] for label in present]
        return (low + Sampler(laws, Source(seed)).draw_from(indices)).astype(float)

    return add_integer_noise


class _Task(NamedTuple):
    """A learning task.

    Attributes:
        features: The features of n records. Shape (n, d).
        truth: The numbers that are predicted. Shape (n,). A record's label is its number, rounded
            down to one of the values.
        values: The possible labels, in increasing order.
        fit: Fits a model to features and labels, and returns it. It has a method `predict`.
        score: Returns the error of predictions (first argument) for the truth (second).
        is_integer: Whether noise is on the integers, so that outputs are labels.
        has_prior: Whether RRWithPrior is compared too.
        is_relative: Whether the error E is reported as (E - E₀)/E₀, where E₀ is the error of the
            model that is trained on true labels.
    """

    features: Vector
    truth: Vector
    values: Vector
    fit: Callable[[Any, Vector], Any]
    score: Callable[[Vector, Vector], float]
    is_integer: bool
    has_prior: bool = False
    is_relative: bool = False


@cache
def measure_test_errors(
    training_data: str, epsilons: tuple[float, ...], runs: int, records: int
) -> pd.DataFrame:
    """Return the mean test error and its standard deviation over runs, by ε and mechanism.

    Args:
        training_data: A key of `TASKS`.
        epsilons: The values of ε, > 0.
        runs: The number of runs, each with its own split of the data.
        records: The number of records, if the data are synthetic.

    Returns:
        The columns epsilon (inf: no privacy), mechanism ("none": true labels), mse (the mean error)
        and std (NaN for one run).
    """
    return _measure_test_errors(TASKS[training_data](records), epsilons, runs)


def _measure_test_errors(task: _Task, epsilons: Sequence[float], run_count: int) -> pd.DataFrame:
    """Return the mean test error and its standard deviation over runs, by ε and mechanism.

    The mechanism "none" (ε = inf) trains on true labels. The columns are epsilon, mechanism, mse
    (the mean error) and std.
    """
    size = task.truth.size
    # Numbers below the first value get the first label.
    indices = np.searchsorted(task.values, task.truth, side="right") - 1
    labels = task.values[np.maximum(indices, 0)]
    splits = []
    for run in range(run_count):
        order = np.random.default_rng(run).permutation(size)
        training_size = math.floor(size * _TRAINING_SHARE)
        train = order[:training_size]
        test = order[training_size:]
        features = (task.features[train], task.features[test])
        splits.append((*features, labels[train], task.truth[test]))

    def measure(privatise: Privatise) -> list[float]:
        """Return the errors of models trained on privatised labels, one for each split."""
        errors = []
        for run, (train, test, train_labels, test_truth) in enumerate(splits):
            noisy_labels = privatise(train_labels, _FIRST_PRIVACY_SEED + run)
            model = task.fit(train, noisy_labels)
            errors.append(task.score(np.asarray(model.predict(test)), test_truth))
        return errors

    rows = [(np.inf, "none", *_summarise_errors(measure(lambda labels, seed: labels)))]
    names = [*_MECHANISMS]
    if not task.is_integer:
        names += _CONTINUOUS_MECHANISMS
    if task.has_prior:
        names.append("RRWithPrior")
    for epsilon, name in itertools.product(epsilons, names):
        # Algorithm 3 refuses if n <= k/ε².
        with suppress(InvalidRequest):
            privatise = _make_randomizer(name, task.values, epsilon, is_integer=task.is_integer)
            rows.append((epsilon, name, *_summarise_errors(measure(privatise))))
    table = pd.DataFrame(rows, columns=["epsilon", "mechanism", "mse", "std"])
    if task.is_relative:
        base_error = float(table["mse"].iloc[0])
        table = table.assign(mse=table["mse"] / base_error - 1, std=table["std"] / base_error)
    return table


def _summarise_errors(errors: list[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation, rounded to digits that all machines share."""
    deviation = np.std(errors) if len(errors) > 1 else np.nan
    return float(f"{np.mean(errors):.8g}"), float(f"{deviation:.6g}")


def _mean_squared_error(predictions: Vector, truth: Vector) -> float:
    """Return the mean squared error."""
    return float(np.mean((predictions - truth) ** 2))


def _fit_ridge(features: Any, labels: Vector) -> Any:
    """Return a ridge regression that is fitted to the labels."""
    return _import_sklearn().linear_model.Ridge(alpha=_RIDGE_PENALTY).fit(features, labels)


def _make_criteo_task(records: int) -> _Task:
    """Return the task on Criteo labels, each as often as in so many records, rounded.

    The features are synthetic: two noisy views of the label, linear and logarithmic, and pure
    noise.
    """
    labels = get_criteo_data().labels
    values = labels.values
    # Rounded cumulative counts sum to the number of records exactly.
    counts = np.diff(np.rint(records * np.cumsum(labels.prior)), prepend=0).astype(int)
    truth = np.repeat(values, counts)
    noise = np.random.default_rng(_CRITEO_SEED).normal(size=(truth.size, 3))
    logarithms = np.log1p(truth) / np.log1p(values[-1])
    columns = [
        truth / values[-1] + _VIEW_NOISE * noise[:, 0],
        logarithms + _VIEW_NOISE * noise[:, 1],
        noise[:, 2],
    ]
    features = np.column_stack(columns)
    return _Task(features, truth, values, _fit_ridge, _mean_squared_error, is_integer=False)


def _make_diabetes_task(records: int) -> _Task:
    """Return the task on the diabetes data of scikit-learn, which have 442 records."""
    features, truth = _import_sklearn().datasets.load_diabetes(return_X_y=True)
    values = np.arange(0, 351, 10.0)
    truth = np.asarray(truth, dtype=float)
    return _Task(features, truth, values, _fit_ridge, _mean_squared_error, is_integer=False)


def _make_census_task(records: int) -> _Task:
    """Return the task on labels drawn from the census distribution, with synthetic features."""
    data = get_census_data()
    rng = np.random.default_rng(_CENSUS_SEED)
    truth = rng.choice(data.labels.values, p=data.labels.prior, size=records)
    noise = rng.normal(size=(truth.size, 3))
    # Two features are noisy views of the label, and the third is pure noise.
    columns = [
        truth / _MAX_WEEKS + _VIEW_NOISE * noise[:, 0],
        (truth == _MAX_WEEKS) + noise[:, 1],
        noise[:, 2],
    ]
    features = np.column_stack(columns)
    values = data.labels.values
    score = _mean_squared_error
    return _Task(features, truth, values, _fit_ridge, score, is_integer=True, has_prior=True)


def _make_count_task(records: int) -> _Task:
    """Return the task on synthetic counts, whose error is the excess of the Poisson deviance."""
    rng = np.random.default_rng(_COUNT_SEED)
    features = rng.uniform(-1, 1, size=(records, len(_COUNT_WEIGHTS)))
    rate = np.exp(_COUNT_INTERCEPT + features @ np.array(_COUNT_WEIGHTS))
    truth = np.minimum(rng.poisson(rate), _MAX_COUNT).astype(float)

    def fit(x: Any, labels: Vector) -> Any:
        """Fit a Poisson regression to noisy labels."""
        regressor = _import_sklearn().linear_model.PoissonRegressor
        model = regressor(alpha=_POISSON_PENALTY, max_iter=_MAX_POISSON_ITERATIONS)
        return model.fit(x, labels)

    def deviance(predictions: Vector, true: Vector) -> float:
        """Return half of the mean Poisson deviance of the predictions from the true counts."""
        logarithms = true * np.log(np.maximum(true, 1) / predictions)
        return float(np.mean(predictions - true + np.where(true > 0, logarithms, 0.0)))

    values = np.arange(_MAX_COUNT + 1.0)
    return _Task(features, truth, values, fit, deviance, is_integer=True, is_relative=True)


# Data set -> the function that makes its task from a number of records.
TASKS = {
    "criteo": _make_criteo_task,
    "diabetes": _make_diabetes_task,
    "census": _make_census_task,
    "count": _make_count_task,
}
