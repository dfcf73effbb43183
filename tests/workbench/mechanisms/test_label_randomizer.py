"""Algorithm 3: budgets, projections, the private prior, complete runs, and sets of labels."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

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


def test_budgets_add_up_exactly_and_too_few_records_are_refused():
    for share in (1, "1/2", "0.25"):
        first, second = split_budget("0.3", 7, 12_345, share)
        assert first + second == Fraction(3, 10)
        assert float(first) == pytest.approx(
            float(Fraction(share)) * math.sqrt(7 / 12_345), abs=2e-9
        )
        assert float(first) <= float(Fraction(share)) * math.sqrt(7 / 12_345)
    with pytest.raises(InvalidRequest, match="n must be at least 11 records"):
        split_budget(1, 10, 10)
    assert split_budget(1, 10, 11)[0] < 1


def test_projections_give_the_expected_probabilities():
    assert project_counts([3.0, -1.0, 1.0]).tolist() == [0.75, 0.0, 0.25]
    assert project_counts([-1.0, -2.0]).tolist() == [0.5, 0.5]
    near = project_counts([0.9, 0.4, -0.2], "simplex")
    assert near == pytest.approx([0.75, 0.25, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(20):
        h = rng.normal(size=5)
        x = project_counts(h, "simplex")
        assert x.sum() == pytest.approx(1)
        other = rng.dirichlet(np.ones(5), size=200)
        assert ((other - h) ** 2).sum(axis=1).min() >= ((x - h) ** 2).sum() - 1e-12
    with pytest.raises(InvalidRequest, match="projection must be"):
        project_counts([1.0], "l1")


def test_the_private_prior_has_noise_of_the_stated_scale():
    counts = np.full(4000, 1000)
    first = Fraction(1, 5)
    noisy = estimate_private_prior(counts, first, projection="clip", source=Source(4)) * 4_000_000
    alpha = math.exp(-0.1)
    assert np.var(noisy) == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.1)


def test_a_run_publishes_labels_by_algorithm_3():
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 4, 20_000).astype(float)
    seen = []

    def optimise(labels: Labels, second: Fraction):
        seen.append((labels, second))
        return rr_on_bins(labels, [0, 2], [0.5, 2.5], second)

    release = LabelRandomizer(np.arange(4), 1, optimise).run(truth, Source(1))
    labels, second = seen[0]
    assert release.epsilon == 1
    assert release.epsilon_response == second
    assert np.abs(labels.prior - 0.25).max() < 0.05
    kept = np.mean((release.labels > 1) == (truth > 1))
    assert kept == pytest.approx(math.exp(float(second)) / (1 + math.exp(float(second))), abs=0.02)
    with pytest.raises(InvalidRequest, match="one of the"):
        LabelRandomizer(np.arange(4), 1, optimise).run([9.0] * 100)
    with pytest.raises(InvalidRequest, match="epsilon_prior must be"):
        LabelRandomizer(np.arange(4), 1, optimise, epsilon_prior=1)


# Labels.


def test_labels_are_read_in_any_order_and_errors_name_the_line(tmp_path: Path):
    file = tmp_path / "prior.csv"
    file.write_text("label,weight\n3,1\n-1,3\n")
    read = Labels.parse(str(file))
    assert read.values.tolist() == [-1, 3]
    assert read.prior.tolist() == [0.75, 0.25]
    assert Labels.parse("0..20").k == 21
    assert Labels.parse("0..200000:1000").values.tolist() == [*range(0, 200001, 1000)]
    assert Labels.parse("0..0.3:0.1").values.tolist() == [0, 0.1, 0.2, 0.3]
    file.write_text("stars\n4\n1\n\n")
    assert Labels.read(str(file)).values.tolist() == [1, 4]
    frame = pd.DataFrame({"label": [1, 4], "weight": [1, 3]})
    assert Labels(frame[["label"]]).values.tolist() == [1, 4]
    assert Labels(frame["label"], frame["weight"]).prior.tolist() == [0.25, 0.75]
    for text, message in (
        ("3,1\n3,2\n", "line 2"),
        ("a,b\n1,x\n", "line 2"),
        ("1,-2\n", "line 1"),
        ("l,w\n", "line 1, column 1"),
        ("\n", "at least one label"),
        ("1\n2,1\n", "line 2"),  # no header: it begins with a number
        ("1;1\n2;1\n", "semicolons"),
        ("1_0,1\n", "line 1"),
        ("nan,1\n2,1\n", "line 1"),
        ("1e200,1\n", "at most 1e\\+100 in size"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidRequest, match=message):
            Labels.read(file)
    assert Labels([1, 2, 3], [1e308, 1e308, 1e308]).prior == pytest.approx(1 / 3)
    for bad in ("5..1", "0..x", "0..5:0", "0..5:-1", "0..1e30:1e20"):
        with pytest.raises(InvalidRequest, match="LOW"):
            Labels.parse(bad)
    with pytest.raises(InvalidRequest, match="strictly increasing"):
        Labels([2, 1])


def test_a_response_beyond_its_budget_is_refused():
    """The masses of every output are compared over all labels, not only over neighbouring ones."""

    def too_much(labels: Labels, second: Fraction):
        return rr_on_bins(labels, [0, 2], [0.5, 2.5], second + Fraction(1, 10**6))

    def far_apart(labels: Labels, second: Fraction):
        rows = [Distribution([9, 1]), Distribution([4, 6]), Distribution([1, 9])]
        return Channel(
            tuple(rows),
            ((0, 1), (1, 2)),
            (tuple(map(Fraction, labels.values)), (Fraction(0), Fraction(2))),
        )

    for optimise, count in ((too_much, 4), (far_apart, 3)):
        with pytest.raises(NotCertified, match="exceeds e"):
            LabelRandomizer(np.arange(count), 2, optimise).run([0.0, 1.0] * 1000)
