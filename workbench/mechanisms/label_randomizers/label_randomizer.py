"""The labels party: Algorithm 3 (LabelRandomizer) with its private prior, Algorithm 4.

    1. h_y = number of labels equal to y;  h'_y = h_y + noise with Pr[η] ∝ e^{-|η| ε₁/2}                  (Algorithm 4)
    2. P' = h' projected onto the probabilities
    3. bins = the best RR-on-Bins for P' at ε₂;  publish RR-on-Bins(y_i) for every i                       (Algorithm 3)

| paper          | code                                                                     |
|----------------|--------------------------------------------------------------------------|
| ε₁, ε₂         | epsilon_prior, epsilon_response; their sum is ε exactly                  |
| ε₁ = sqrt(k/n) | split=1 (Theorem 7); split=1/2 or 1/4 measured better for large n        |
| clip, divide   | projection="clip"; all counts clipped to 0 (not settled by the paper): the uniform prior |
| (ours)         | projection="simplex": the nearest probabilities in Euclidean distance    |

Changing one label changes two counts by one, so noise of scale 2/ε₁ makes step 1 ε₁-DP. Ours is the discrete Laplace
law with that scale, sampled exactly, where the paper adds continuous Lap(2/ε₁): integer counts need no more. 𝒴 must be
known beforehand: the guarantee is for columns over one and the same label set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

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
_GRAIN = (
    10**9
)  # ε₁ is a rational with at most this denominator, so that its noise can be sampled exactly


def split_budget(epsilon: Real, k: int, n: int, split: Real = 1) -> RationalPair:
    """(ε₁, ε₂) with ε₁ = split · sqrt(k/n), rounded down to a short rational, and ε₁ + ε₂ = ε exactly.

    Raises InvalidRequest unless ε₁ < ε, which is n > split² k/ε².
    """
    budget = read_positive(epsilon, "epsilon")
    share = read_positive(split, "split")
    for name, count in (("k", k), ("n", n)):
        read_integer(count, name, 1)
    wanted = float(share) * math.sqrt(k / n) * _GRAIN
    first = Fraction(max(1, math.floor(wanted)), _GRAIN) if wanted < math.inf else budget
    if first >= budget:
        least = Decimal(math.floor(share**2 * k / budget**2) + 1)
        raise InvalidRequest(
            f"n must be at least {least:.15g} records to learn a prior over {k} labels with epsilon = "
            f"{float(budget):g} and split = {float(share):g} (n > split^2 k / epsilon^2). Got {n}."
        )
    return first, budget - first


def project_counts(noisy: ArrayLike, projection: str = "clip") -> Vector:
    """Probabilities from noisy counts (k,): "clip" negative ones to 0 and divide by the sum (uniform when all are 0),
    or the nearest point of the "simplex" in Euclidean distance (counts divided by n). Raises InvalidRequest.
    """
    h = read_finite_floats(noisy, "noisy counts")
    InvalidRequest.check_choice(PROJECTIONS, "projection", projection)
    if projection == "clip":
        kept = np.maximum(h, 0.0)
        total = float(kept.sum())
        if total > 0:
            return kept / total
        return np.full(h.size, 1 / h.size)
    # the nearest x >= 0 with Σ x = 1 is max(h - θ, 0) for one θ, found from the sorted values
    down = np.sort(h)[::-1]
    excess = (np.cumsum(down) - 1.0) / np.arange(1, h.size + 1)
    kept = np.maximum(h - excess[np.flatnonzero(down > excess)[-1]], 0.0)
    return np.asarray(kept / kept.sum())


def estimate_private_prior(
    counts: ArrayLike, epsilon: Fraction, *, projection: str = "clip", source: Source | None = None
) -> Vector:
    """Algorithm 4: an ε-DP estimate of the distribution behind counts (k,). Raises InvalidRequest."""
    given = read_floats(counts, "counts", "whole numbers >= 0")
    if not ((given >= 0) & (given == np.floor(given)) & (given < 2.0**53)).all():
        must("counts", "whole numbers >= 0", given)
    h = given.astype(np.int64)
    rate = read_positive(epsilon, "epsilon") / 2
    if rate.denominator >= 1 << 40:
        must("epsilon", "a rational with a denominator below 2^39", epsilon)
    noisy = h + (source or Source()).draw_discrete_laplace(rate.numerator, rate.denominator, h.size)
    return project_counts(noisy / max(int(h.sum()), 1), projection)


@dataclass(frozen=True)
class Release:
    """What a run of LabelRandomizer publishes, and what it may say about itself.

    labels: (n,) the randomized labels; mechanism: the one that made them; known: the label set with P';
    epsilon_prior, epsilon_response: ε₁, ε₂. Everything here is a function of ε-DP outputs.
    """

    labels: Vector
    mechanism: RandomizedResponse | Channel
    label_set: Labels
    epsilon_prior: Fraction
    epsilon_response: Fraction

    @property
    def epsilon(self) -> Fraction:
        """ε₁ + ε₂."""
        return self.epsilon_prior + self.epsilon_response

    @property
    def expected_error(self) -> dict[str, float]:
        """What a published label is off by, and what the means are, under P' and for the worst label."""
        mechanism = self.mechanism
        prior = self.label_set.prior
        errors = mechanism.losses(lambda o, y: np.abs(o - y))
        shifts = mechanism.losses(lambda o, y: o - y)
        squared = float(prior @ mechanism.losses(lambda o, y: (o - y) ** 2))
        mean = float(prior @ shifts)
        largest = float(np.abs(shifts).max())
        rounding = 1e-12 * float(
            np.abs([*mechanism.outputs, *self.label_set.values]).max()
        )  # of the sums above
        return {
            "mean absolute error under the private prior": float(prior @ errors),
            "root mean squared error under the private prior": math.sqrt(squared),
            "largest mean absolute error of any label": float(errors.max()),
            "shift of the mean under the private prior": mean if abs(mean) > rounding else 0.0,
            "largest shift of the mean of any label": largest if largest > rounding else 0.0,
        }


class LabelRandomizer:
    """Algorithm 3 over a known label set.

    values: (k,) the label set 𝒴; epsilon: the whole budget; optimise: (labels with P', ε₂) -> the mechanism to use
    (`best_bins` of workbench.families.labels.problem for a loss); split, projection: see the module; epsilon_prior: ε₁
    itself, instead of split. Raises InvalidRequest, when run also for n <= split² k/ε² records.
    """

    not_exact = "LabelRandomizer looks at a whole column to learn a prior: run it on one, and use the mechanism of its Release."

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
        self.first = None if epsilon_prior is None else read_number(epsilon_prior, "epsilon_prior")
        if self.first is not None and not 0 < self.first < self.epsilon:
            must(
                "epsilon_prior",
                f"above 0 and below epsilon = {float(self.epsilon):g}",
                epsilon_prior,
            )

    def budgets(self, n: int) -> RationalPair:
        """(ε₁, ε₂) for n records. Raises InvalidRequest."""
        if self.first is not None:
            return self.first, self.epsilon - self.first
        return split_budget(self.epsilon, self.labels.k, n, self.split)

    def run(self, values: ArrayLike, source: Source | None = None) -> Release:
        """Randomize a column of labels (n,). Raises InvalidRequest, also for a value outside the label set,
        and NotCertified when the mechanism spends more than ε₂.
        """
        given = read_floats(values, "labels", column=True)
        if given.ndim != 1 or given.size == 0:
            must("labels", "a non-empty column", f"shape {given.shape}")
        source = source or Source()
        first, second = self.budgets(given.size)
        counts = np.bincount(self.labels.find_positions(given), minlength=self.labels.k)
        known = Labels(
            self.labels.values,
            estimate_private_prior(counts, first, projection=self.projection, source=source),
        )
        mechanism = self.optimise(known, second)
        shown = mechanism.audit_rows if isinstance(mechanism, RandomizedResponse) else mechanism
        for masses in zip(*shown.rows, strict=True):  # of one output, for every kind of label
            if sign_exp(max(masses), min(masses), second) > 0:
                raise NotCertified(
                    f"A ratio of masses of the mechanism exceeds e^{float(second):g}, its budget."
                )
        return Release(mechanism.sample(given, source), mechanism, known, first, second)
