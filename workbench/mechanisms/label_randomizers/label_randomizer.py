"""Publish a column of labels privately, with randomizers that are optimal for a private prior.

The algorithms and theorems are those of Ghazi et al., Regression with Label Differential Privacy:
Algorithm 3 publishes the labels, and Algorithm 4 estimates the prior.

Notation: k labels 𝒴, n records y_i, P' the estimated prior, and budgets ε₁ + ε₂ = ε.

    1. h_y = number of labels equal to y;                                            (Algorithm 4)
       h'_y = h_y + noise with Pr[η] ∝ e^{-|η| ε₁/2}
    2. P' = h' projected onto the probabilities
    3. bins = the optimal RR-on-Bins for P' at ε₂;                                   (Algorithm 3)
       publish RR-on-Bins(y_i) for every i

| paper          | code                                                                     |
|----------------|--------------------------------------------------------------------------|
| ε₁, ε₂         | epsilon_prior, epsilon_response; their sum is ε exactly                  |
| ε₁ = sqrt(k/n) | split=1 (Theorem 7); split=1/2 or 1/4 measured better for large n        |
| clip, divide   | projection="clip"; all counts clipped to 0: the uniform prior (our reading) |
| (ours)         | projection="simplex": the nearest probabilities in Euclidean distance    |

Changing one label changes two counts by one, so noise of scale 2/ε₁ makes step 1 ε₁-DP. The paper
adds continuous Lap(2/ε₁) noise. Counts are integers, so this module adds discrete Laplace noise of
the same scale, which is sampled exactly. 𝒴 must be known beforehand, because the guarantee is for
columns over the same label set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.plain import read_finite_floats, read_floats, read_integer
from workbench.errors import InvalidRequest, NotCertified, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import RationalPair, Real, read_number, read_positive, sign_exp
from workbench.exact.random_source import Source
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
from workbench.questions.labels import Labels

Optimise = Callable[[Labels, Fraction], RandomizedResponse | Channel]

PROJECTIONS = ("clip", "simplex")
# The largest denominator of ε₁, so that its noise can be sampled exactly.
_MAX_PRIOR_DENOMINATOR = 10**9
# A shift of the mean below this share of the largest value is a rounding error.
_RELATIVE_ROUNDING = 1e-12


def split_budget(epsilon: Real, k: int, n: int, split: Real = 1) -> RationalPair:
    """Split a budget into (ε₁, ε₂) with ε₁ = split · sqrt(k/n), rounded down.

    The sum ε₁ + ε₂ is exactly ε.

    Args:
        epsilon: The budget ε > 0.
        k: The number of labels.
        n: The number of records.
        split: The factor of sqrt(k/n).

    Returns:
        (ε₁, ε₂), where ε₁ is a short rational.

    Raises:
        InvalidRequest: If ε₁ >= ε, that is, n <= split² k/ε².
    """
    budget = read_positive(epsilon, "epsilon")
    factor = read_positive(split, "split")
    for name, count in (("k", k), ("n", n)):
        read_integer(count, name, 1)
    numerator = float(factor) * math.sqrt(k / n) * _MAX_PRIOR_DENOMINATOR
    prior_epsilon = budget  # If `numerator` is infinite, ε₁ is too large, which raises below.
    if numerator < math.inf:
        prior_epsilon = Fraction(max(1, math.floor(numerator)), _MAX_PRIOR_DENOMINATOR)
    if prior_epsilon >= budget:
        min_count = Decimal(math.floor(factor**2 * k / budget**2) + 1)
        raise InvalidRequest(
            f"n must be at least {min_count:.15g} records to learn a prior over {k} labels "
            f"with epsilon = {float(budget):g} and split = {float(factor):g} "
            f"(n > split^2 k / epsilon^2). Got {n}."
        )
    return prior_epsilon, budget - prior_epsilon


def project_counts(noisy: ArrayLike, projection: str = "clip") -> Vector:
    """Project noisy counts onto k probabilities that sum to 1, shape (k,).

    Args:
        noisy: Counts divided by n, shape (k,).
        projection: "clip" negative ones to 0 and divide by the sum (uniform if all are 0), or the
            nearest point of the "simplex" in Euclidean distance.

    Raises:
        InvalidRequest: If a count is no finite number, or projection is unknown.
    """
    h = read_finite_floats(noisy, "noisy counts")
    InvalidRequest.check_choice(PROJECTIONS, "projection", projection)
    if projection == "clip":
        probabilities = np.maximum(h, 0.0)
        total = float(probabilities.sum())
        if total > 0:
            return probabilities / total
        return np.full(h.size, 1 / h.size)
    # The nearest x >= 0 with Σ x = 1 is max(h - θ, 0) for one θ. If the j largest values stay
    # positive, θ is (their sum - 1)/j, which is `excess`. The largest such j is the right one.
    descending = np.sort(h)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, h.size + 1)
    probabilities = np.maximum(h - excess[np.flatnonzero(descending > excess)[-1]], 0.0)
    return np.asarray(probabilities / probabilities.sum())


def estimate_private_prior(
    counts: ArrayLike, epsilon: Fraction, *, projection: str = "clip", source: Source | None = None
) -> Vector:
    """Compute an ε-DP estimate of the distribution behind counts, by Algorithm 4. Shape (k,).

    Args:
        counts: Whole numbers, shape (k,).
        epsilon: The budget ε > 0.
        projection: The projection, as for `project_counts`.
        source: The source of randomness, default: the operating system.

    Returns:
        Probabilities.

    Raises:
        InvalidRequest: If a count is no integer in 0..2^53 - 1, if epsilon is not > 0 or has a
            denominator of 2^39 or more, or if projection is unknown.
    """
    count_floats = read_floats(counts, "counts", "whole numbers >= 0")
    if not (
        (count_floats >= 0) & (count_floats == np.floor(count_floats)) & (count_floats < 2.0**53)
    ).all():
        must("counts", "whole numbers >= 0", count_floats)
    h = count_floats.astype(np.int64)
    rate = read_positive(epsilon, "epsilon") / 2
    if rate.denominator >= 1 << 40:
        must("epsilon", "a rational with a denominator below 2^39", epsilon)
    noisy = h + (source or Source()).draw_discrete_laplace(rate.numerator, rate.denominator, h.size)
    return project_counts(noisy / max(int(h.sum()), 1), projection)


@dataclass(frozen=True)
class Release:
    """The published result of a run of LabelRandomizer, and its description.

    All of it is a function of ε-DP outputs, so all of it may be published.

    Attributes:
        labels: The randomized labels, shape (n,).
        mechanism: The mechanism that published the labels.
        label_set: The label set with P'.
        epsilon_prior: The budget ε₁ spent on the prior.
        epsilon_response: The budget ε₂ spent on the labels.
    """

    labels: Vector
    mechanism: RandomizedResponse | Channel
    label_set: Labels
    epsilon_prior: Fraction
    epsilon_response: Fraction

    @property
    def epsilon(self) -> Fraction:
        """Return ε₁ + ε₂."""
        return self.epsilon_prior + self.epsilon_response

    @property
    def expected_error(self) -> dict[str, float]:
        """Return the errors of a published label and of means, under P' and for the worst label."""
        mechanism = self.mechanism
        prior = self.label_set.prior
        errors = mechanism.losses(lambda o, y: np.abs(o - y))
        shifts = mechanism.losses(lambda o, y: o - y)
        mean_square = float(prior @ mechanism.losses(lambda o, y: (o - y) ** 2))
        mean = float(prior @ shifts)
        max_shift = float(np.abs(shifts).max())
        max_size = float(np.abs([*mechanism.outputs, *self.label_set.values]).max())
        rounding = _RELATIVE_ROUNDING * max_size
        return {
            "mean absolute error under the private prior": float(prior @ errors),
            "root mean squared error under the private prior": math.sqrt(mean_square),
            "largest mean absolute error of any label": float(errors.max()),
            "shift of the mean under the private prior": mean if abs(mean) > rounding else 0.0,
            "largest shift of the mean of any label": max_shift if max_shift > rounding else 0.0,
        }


@dataclass(frozen=True)
class BucketRelease:
    """The published result of a run of LabelRandomizer on every bucket of records.

    Attributes:
        labels: The randomized labels, shape (n,).
        releases: Bucket -> the release of its records.
        counts: Bucket -> the number of its records.
    """

    labels: Vector
    releases: dict[Any, Release]
    counts: dict[Any, int]

    @property
    def expected_error(self) -> dict[str, float]:
        """Return the errors of `Release.expected_error` for all records together.

        Those under the private priors are means over the records. The others are the largest ones.
        """
        errors_by_bucket = [release.expected_error for release in self.releases.values()]
        shares = [count / self.labels.size for count in self.counts.values()]
        errors = {}
        for name in errors_by_bucket[0]:
            values = [bucket_errors[name] for bucket_errors in errors_by_bucket]
            if name.startswith("largest"):
                errors[name] = max(values)
            elif name.startswith("root"):
                errors[name] = math.sqrt(float(np.dot(shares, np.square(values))))
            else:
                errors[name] = float(np.dot(shares, values))
        return errors


class LabelRandomizer:
    """Randomize columns of labels by Algorithm 3, over a label set that is known beforehand.

    Args:
        values: The label set 𝒴, shape (k,).
        epsilon: The complete budget ε = ε₁ + ε₂, > 0.
        optimise: (labels with the estimated prior P', ε₂) -> the mechanism to use
            (`find_best_bins` of workbench.families.labels.problem).
        split: The factor in ε₁ = split * sqrt(k/n), for n records.
        projection: The projection of noisy counts, "clip" or "simplex".
        epsilon_prior: ε₁ itself, instead of split.

    Raises:
        InvalidRequest: If a parameter is outside its range. `run` also refuses n <= split² k/ε²
            records.
    """

    not_exact = (
        "LabelRandomizer learns a prior from a complete column: run it on one, "
        "and use the mechanism of its Release."
    )

    def __init__(
        self,
        values: ArrayLike,
        epsilon: Real,
        optimise: Optimise,
        *,
        split: Real = 1,
        projection: str = "clip",
        epsilon_prior: Real | None = None,
    ) -> None:
        self.labels = Labels(values)
        self.epsilon = read_positive(epsilon, "epsilon")
        self.optimise = optimise
        self.split = read_positive(split, "split")
        InvalidRequest.check_choice(PROJECTIONS, "projection", projection)
        self.projection = projection
        self.prior_epsilon: Fraction | None = None
        if epsilon_prior is not None:
            self.prior_epsilon = read_number(epsilon_prior, "epsilon_prior")
        if self.prior_epsilon is not None and not 0 < self.prior_epsilon < self.epsilon:
            must(
                "epsilon_prior",
                f"above 0 and below epsilon = {float(self.epsilon):g}",
                epsilon_prior,
            )

    def budgets(self, n: int) -> RationalPair:
        """Return (ε₁, ε₂) for n records.

        Args:
            n: The number of records.

        Raises:
            InvalidRequest: If no `epsilon_prior` was given and n <= split² k/ε², so that nothing is
                left for ε₂.
        """
        if self.prior_epsilon is not None:
            return self.prior_epsilon, self.epsilon - self.prior_epsilon
        return split_budget(self.epsilon, self.labels.k, n, self.split)

    def run(self, values: ArrayLike, source: Source | None = None) -> Release:
        """Randomize a column of labels.

        Args:
            values: The labels of n records, shape (n,).
            source: The source of randomness, default: the operating system.

        Raises:
            InvalidRequest: If a value is outside the label set, or there are too few records (see
                `budgets`).
            NotCertified: If the mechanism spends more than ε₂.
        """
        column = read_floats(values, "labels", column=True)
        if column.ndim != 1 or column.size == 0:
            must("labels", "a non-empty column", f"shape {column.shape}")
        source = source or Source()
        prior_epsilon, response_epsilon = self.budgets(column.size)
        counts = np.bincount(self.labels.find_positions(column), minlength=self.labels.k)
        label_set = Labels(
            self.labels.values,
            estimate_private_prior(
                counts, prior_epsilon, projection=self.projection, source=source
            ),
        )
        mechanism = self.optimise(label_set, response_epsilon)
        if isinstance(mechanism, RandomizedResponse):
            audited_rows = mechanism.audit_rows
        else:
            audited_rows = mechanism
        # The masses of one output are compared for every kind of label.
        for masses in zip(*audited_rows.rows, strict=True):
            if sign_exp(max(masses), min(masses), response_epsilon) > 0:
                raise NotCertified(
                    "A ratio of masses of the mechanism exceeds "
                    f"e^{float(response_epsilon):g}, its budget."
                )
        published_labels = mechanism.sample(column, source)
        return Release(
            published_labels,
            mechanism=mechanism,
            label_set=label_set,
            epsilon_prior=prior_epsilon,
            epsilon_response=response_epsilon,
        )

    def run_in_buckets(
        self, values: ArrayLike, buckets: Sequence[Any], source: Source | None = None
    ) -> BucketRelease:
        """Randomize a column of labels with one prior for each bucket of records.

        The complete budget ε holds for every record. Changing one label changes the counts and the
        published labels of its bucket alone, so the budgets of different buckets do not add up. In
        every bucket ε₁ = split · sqrt(k/n) has the number n of its records, and the rest is ε₂.

        Args:
            values: The labels of n records, shape (n,).
            buckets: The bucket of each record, of public data alone: a feature. Shape (n,).
            source: The source of randomness, default: the operating system.

        Raises:
            InvalidRequest: If there is not one bucket for each record, a value is outside the label
                set, or a bucket has too few records (see `budgets`).
            NotCertified: If a mechanism spends more than ε₂.
        """
        column = read_floats(values, "labels", column=True)
        rows_by_bucket: dict[Any, list[int]] = {}
        for row, bucket in enumerate(buckets):
            rows_by_bucket.setdefault(bucket, []).append(row)
        if column.ndim != 1 or column.size != len(buckets) or not column.size:
            must("buckets", f"one for each of the {column.size} labels", len(buckets))
        for bucket, rows in rows_by_bucket.items():
            # All buckets are checked before any randomness is drawn.
            try:
                self.budgets(len(rows))
            except InvalidRequest as error:
                raise InvalidRequest(
                    f"Bucket {bucket!r} has too few rows. {error} Merge buckets, or give a "
                    "smaller split."
                ) from None
        source = source or Source()
        published_labels = np.empty(column.size)
        releases = {}
        for bucket, rows in rows_by_bucket.items():
            releases[bucket] = self.run(column[rows], source)
            published_labels[rows] = releases[bucket].labels
        counts = {bucket: len(rows) for bucket, rows in rows_by_bucket.items()}
        return BucketRelease(published_labels, releases, counts)
