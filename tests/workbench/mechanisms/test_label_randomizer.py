"""Test Algorithm 3 of Ghazi et al. 2022 (a private prior, then a response), and reading of labels.

The algorithm splits the budget: `first` is the ε of the private prior, and `second` that of the
response, which is designed for this prior.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InvalidRequest, NotCertified
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_randomizer import (
    LabelRandomizer,
    estimate_private_prior,
    project_counts,
    split_budget,
)
from workbench.mechanisms.label_randomizers.randomized_response import rr_on_bins
from workbench.questions.labels import Labels

# Algorithm 3.


@pytest.mark.parametrize("share", [1, "1/2", "0.25"])
def test_split_budgets_add_up_exactly(share: object):
    """With 7 labels and 12,345 records, the first budget is the share of √(7/12,345)."""
    first, second = split_budget("0.3", k=7, n=12_345, split=share)
    assert first + second == Fraction(3, 10)
    exact_first = float(Fraction(share)) * math.sqrt(7 / 12_345)
    assert float(first) == pytest.approx(exact_first, abs=2e-9)
    assert float(first) <= exact_first


def test_a_budget_for_too_few_records_is_refused():
    first, _ = split_budget(epsilon=1, k=10, n=11)
    assert first < 1  # The second part is positive.
    with pytest.raises(InvalidRequest, match="n must be at least 11 records"):
        split_budget(epsilon=1, k=10, n=10)


def test_clipped_counts_are_divided_by_their_sum():
    assert project_counts([3.0, -1.0, 1.0]).tolist() == [0.75, 0.0, 0.25]
    assert project_counts([-1.0, -2.0]).tolist() == [0.5, 0.5]
    with pytest.raises(InvalidRequest, match="projection must be"):
        project_counts([1.0], "l1")


def test_the_simplex_projection_is_the_nearest_probability_vector():
    assert project_counts([0.9, 0.4, -0.2], "simplex") == pytest.approx([0.75, 0.25, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = rng.normal(size=5)
        projection = project_counts(counts, "simplex")
        assert projection.sum() == pytest.approx(1)
        random_priors = rng.dirichlet(np.ones(5), size=200)
        distances = ((random_priors - counts) ** 2).sum(axis=1)
        assert distances.min() >= ((projection - counts) ** 2).sum() - 1e-12


def test_the_private_prior_has_noise_of_the_stated_scale():
    """One person changes two counts, so geometric noise with α = e^(-ε/2) is added to each."""
    counts = np.full(4000, 1000)
    epsilon = Fraction(1, 5)
    prior = estimate_private_prior(counts, epsilon, projection="clip", source=Source(4))
    alpha = math.exp(-float(epsilon) / 2)
    variance = 2 * alpha / (1 - alpha) ** 2
    assert np.var(prior * counts.sum()) == pytest.approx(variance, rel=0.1)


def optimise_two_bins(labels: Labels, response_epsilon: Fraction):
    """Return RR-on-Bins for the labels 0..3 with the bins {0, 1} and {2, 3}.

    A `LabelRandomizer` calls such a function with the private prior and the rest of its budget.
    """
    return rr_on_bins(labels, starts=[0, 2], values=[0.5, 2.5], epsilon=response_epsilon)


def test_a_run_publishes_labels_by_algorithm_3():
    """The rest of the budget is spent on the response, for a private estimate of the prior."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 4, size=20_000).astype(float)
    calls = []

    def optimise_and_record(labels: Labels, response_epsilon: Fraction):
        """Return the mechanism of two bins, and keep the arguments in `calls`."""
        calls.append((labels, response_epsilon))
        return optimise_two_bins(labels, response_epsilon)

    randomizer = LabelRandomizer(np.arange(4), epsilon=1, optimise=optimise_and_record)
    release = randomizer.run(truth, Source(1))
    private_labels, response_epsilon = calls[0]
    assert release.epsilon == 1
    assert release.epsilon_response == response_epsilon
    assert np.abs(private_labels.prior - 0.25).max() < 0.05
    share_in_true_bin = np.mean((release.labels > 1) == (truth > 1))
    ratio = math.exp(float(response_epsilon))
    assert share_in_true_bin == pytest.approx(ratio / (1 + ratio), abs=0.02)


def test_an_unknown_label_is_refused():
    with pytest.raises(InvalidRequest, match="one of the"):
        LabelRandomizer(np.arange(4), epsilon=1, optimise=optimise_two_bins).run([9.0] * 100)


def test_a_prior_that_needs_the_whole_budget_is_refused():
    with pytest.raises(InvalidRequest, match="epsilon_prior must be"):
        LabelRandomizer(np.arange(4), epsilon=1, optimise=optimise_two_bins, epsilon_prior=1)


# Labels.


def test_labels_of_a_file_are_sorted_with_their_weights(tmp_path: Path):
    file = tmp_path / "prior.csv"
    file.write_text("label,weight\n3,1\n-1,3\n")
    labels = Labels.parse(str(file))
    assert labels.values.tolist() == [-1, 3]
    assert labels.prior.tolist() == [0.75, 0.25]


def test_a_file_of_labels_may_have_one_column(tmp_path: Path):
    file = tmp_path / "prior.csv"
    file.write_text("stars\n4\n1\n\n")
    assert Labels.read(str(file)).values.tolist() == [1, 4]


def test_labels_are_read_from_columns_of_a_frame():
    frame = pd.DataFrame({"label": [1, 4], "weight": [1, 3]})
    assert Labels(frame[["label"]]).values.tolist() == [1, 4]
    assert Labels(frame["label"], frame["weight"]).prior.tolist() == [0.25, 0.75]


def test_ranges_of_labels_have_an_optional_step():
    assert Labels.parse("0..20").k == 21
    assert Labels.parse("0..200000:1000").values.tolist() == [*range(0, 200001, 1000)]
    assert Labels.parse("0..0.3:0.1").values.tolist() == [0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize("text", ["5..1", "0..x", "0..5:0", "0..5:-1", "0..1e30:1e20"])
def test_an_invalid_range_of_labels_is_refused(text: str):
    with pytest.raises(InvalidRequest, match="LOW"):
        Labels.parse(text)


def test_huge_weights_are_normalised_without_overflow():
    assert Labels(values=[1, 2, 3], prior=[1e308, 1e308, 1e308]).prior == pytest.approx(1 / 3)


def test_decreasing_labels_are_refused():
    with pytest.raises(InvalidRequest, match="strictly increasing"):
        Labels([2, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3,1\n3,2\n", "line 2"),
        ("a,b\n1,x\n", "line 2"),
        ("1,-2\n", "line 1"),
        ("l,w\n", "line 1, column 1"),
        ("\n", "at least one label"),
        ("1\n2,1\n", "line 2"),  # The first line is no header, because it begins with a number.
        ("1;1\n2;1\n", "semicolons"),
        ("1_0,1\n", "line 1"),
        ("nan,1\n2,1\n", "line 1"),
        ("1e200,1\n", "at most 1e\\+100 in size"),
    ],
)
def test_errors_of_files_of_labels_name_the_line(text: str, message: str, tmp_path: Path):
    file = tmp_path / "prior.csv"
    file.write_text(text)
    with pytest.raises(InvalidRequest, match=message):
        Labels.read(file)


def optimise_beyond_the_budget(labels: Labels, response_epsilon: Fraction):
    """Return RR-on-Bins with a slightly larger ε than the response may have."""
    return optimise_two_bins(labels, response_epsilon + Fraction(1, 10**6))


def optimise_for_neighbouring_labels(labels: Labels, response_epsilon: Fraction):
    """Return a channel that compares only neighbouring labels. Its laws of 0 and 2 differ more."""
    rows = (Distribution([9, 1]), Distribution([4, 6]), Distribution([1, 9]))
    outputs = (Fraction(0), Fraction(2))
    return Channel(rows, ((0, 1), (1, 2)), (tuple(map(Fraction, labels.values)), outputs))


@pytest.mark.parametrize(
    ("optimise", "label_count"),
    [(optimise_beyond_the_budget, 4), (optimise_for_neighbouring_labels, 3)],
)
def test_a_response_beyond_its_budget_is_refused(optimise: Any, label_count: int):
    """The masses of every output are compared over all labels, not only over neighbouring ones."""
    randomizer = LabelRandomizer(np.arange(label_count), epsilon=2, optimise=optimise)
    with pytest.raises(NotCertified, match="exceeds e"):
        randomizer.run([0.0, 1.0] * 1000)
