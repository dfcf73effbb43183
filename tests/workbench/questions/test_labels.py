"""Test label randomizers: exact laws, losses and privacy, and samplers that follow the laws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from workbench.errors import InvalidRequest
from workbench.exact.random_source import Source
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import (
    rr_k_ary,
    rr_on_bins,
    rr_top_k,
    rr_with_prior,
)
from workbench.mechanisms.mechanism import find_extreme_pairs
from workbench.models.losses import parse_loss
from workbench.privacy.audit import audit
from workbench.questions.labels import Labels

SQUARED = parse_loss("squared")
SMALL = Labels(values=[0, 1, 2, 5, 9, 10], prior=[1, 4, 2, 0, 2, 1])


def close(count: np.ndarray, law: np.ndarray, size: int) -> bool:
    """Counts within 5 standard deviations of their law everywhere."""
    return bool((np.abs(count - size * law) <= 5 * np.sqrt(size * law * (1 - law)) + 1e-9).all())


# Randomized response.


@pytest.mark.parametrize("epsilon", ["0.01", 1, "12"])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: rr_k_ary(SMALL, e),
        lambda e: rr_on_bins(SMALL, starts=[0, 2, 5], values=[0.5, 3.0, 9.5], epsilon=e),
        lambda e: rr_top_k(SMALL, count=3, epsilon=e),
        lambda e: rr_with_prior(SMALL, e),
    ],
)
def test_randomized_response_is_private_at_the_requested_budget_and_not_below(make, epsilon):
    made = make(epsilon)
    channel, m = made._rows(made.distinct_rows()), made.outputs.size
    pairs = list(combinations(range(len(channel.rows)), 2)) if len(channel.rows) > 1 else None
    if pairs is None:
        assert m == 1
        return
    found = audit(Channel.from_pairs(channel, pairs), epsilon)
    assert found.meets("pure", epsilon)
    assert (
        audit(
            Channel.from_pairs(made.audit_rows, find_extreme_pairs(made.audit_rows.rows)), epsilon
        ).pure_ratio
        == found.pure_ratio
    )
    full = np.array([made.row(i).floats for i in range(SMALL.k)])
    assert np.allclose(full, made.matrix, atol=1e-15)
    expected = float(
        (SMALL.prior[:, None] * full * SQUARED.matrix(made.outputs, SMALL.values)).sum()
    )
    assert made.loss(SQUARED) == pytest.approx(expected, rel=1e-12)
    if (made.own >= 0).sum() > 1 and np.unique(made.own).size > 1:
        assert found.pure_epsilon == pytest.approx(float(Fraction(epsilon)), rel=1e-12)


def test_rr_with_prior_maximises_the_probability_of_the_true_label():
    for epsilon in (0.3, 1.0, 4.0):
        chosen = rr_with_prior(SMALL, epsilon)
        error_rate = parse_loss("error-rate")
        losses = [rr_top_k(SMALL, k, epsilon).loss(error_rate) for k in range(1, 7)]
        assert chosen.loss(error_rate) == pytest.approx(min(losses), rel=1e-12)


def test_the_audit_of_few_rows_equals_the_complete_audit():
    labels = Labels.uniform(0, 59)
    made = rr_k_ary(labels, 1)
    assert len(made.audit_rows.rows) == 2
    full = audit(
        Channel.from_pairs(
            made._rows(made.distinct_rows()), [(i, j) for i in (0, 7, 59) for j in (3, 30)]
        ),
        1,
    )
    assert audit(Channel.from_pairs(made.audit_rows, [(0, 1)]), 1).pure_ratio == full.pure_ratio


def test_randomized_response_sampling_follows_the_law():
    made = rr_on_bins(SMALL, starts=[0, 2, 5], values=[0.5, 3.0, 9.5], epsilon=1)
    for i in (0, 3, 5):
        drawn = made.sample(np.full(40_000, SMALL.values[i]), Source(i))
        count = np.array([(drawn == o).sum() for o in made.outputs])
        assert close(count, made.row(i).floats, size=40_000)
    mixed = rr_top_k(SMALL, count=2, epsilon=1)
    outside = SMALL.values[mixed.own < 0][0]
    drawn = mixed.sample(np.full(20_000, outside), Source(9))
    assert close(
        np.array([(drawn == o).sum() for o in mixed.outputs]), np.full(2, 0.5), size=20_000
    )
    with pytest.raises(InvalidRequest, match="one of the"):
        made.sample([4.0])


# Exact draws.


def test_bernoulli_and_choose_resolve_ties_with_more_bits():
    class Fixed(Source):
        def __init__(self, words):
            super().__init__(0)
            self.queue = list(words)

        def draw_uint64(self, count):
            taken, self.queue = self.queue[:count], self.queue[count:]
            return np.array(taken, dtype=np.uint64)

    # 2^64/3 = third + 1/3, so the first word ties and the second decides.
    third = (1 << 64) // 3
    assert Fixed([third, 0]).draw_bernoulli(numerator=1, denominator=3, count=1).tolist() == [True]
    assert Fixed([third, third + 1]).draw_bernoulli(
        numerator=1, denominator=3, count=1
    ).tolist() == [False]
    assert Fixed([third, third, third + 1]).draw_bernoulli(
        numerator=1, denominator=3, count=1
    ).tolist() == [False]
    assert Fixed([third - 1]).draw_bernoulli(numerator=1, denominator=3, count=1).tolist() == [True]
    # The first word lies above the last multiple of 10, so another one is drawn.
    assert Fixed([(1 << 64) - 1, 5]).draw_integers(bound=10, count=1).tolist() == [5]


def test_discrete_laplace_follows_its_law():
    s = 3
    t = 7
    size = 60_000
    drawn = Source(1).draw_discrete_laplace(s, t, size)
    alpha = math.exp(-s / t)
    values = np.arange(-6, 7)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    assert close(np.array([(drawn == v).sum() for v in values]), law, size)
    assert not np.array_equal(Source().draw_uint64(4), Source().draw_uint64(4))
    with pytest.raises(InvalidRequest, match="seed must be"):
        Source(-1)
