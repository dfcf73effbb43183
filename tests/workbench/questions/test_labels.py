"""Test label randomizers: exact laws, losses and privacy, and samplers that follow the laws.

A label randomizer is randomized response in four forms: on all labels (k-ary), on bins of labels, on
the k likeliest labels (top k), and on the best k for the prior. `distinct_rows` has one label of
each different law, and `audit_rows` the two laws that decide the budget.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from itertools import combinations
from typing import Any

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


def are_counts_close(counts: np.ndarray, law: np.ndarray, draw_count: int) -> bool:
    """Check whether all counts are within 5 standard deviations of their mean.

    Args:
        counts: the number of draws of each outcome. Shape (m,).
        law: the probabilities of the outcomes. Shape (m,).
        draw_count: the number of all draws.
    """
    deviations = np.sqrt(draw_count * law * (1 - law))
    return bool((np.abs(counts - draw_count * law) <= 5 * deviations + 1e-9).all())


def count_draws(draws: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Count the draws of each outcome."""
    return np.array([(draws == outcome).sum() for outcome in outcomes])


# Randomized response.


RANDOMIZERS = {
    "k-ary": lambda epsilon: rr_k_ary(SMALL, epsilon),
    "bins": lambda epsilon: rr_on_bins(
        SMALL, starts=[0, 2, 5], values=[0.5, 3.0, 9.5], epsilon=epsilon
    ),
    "top 3": lambda epsilon: rr_top_k(SMALL, count=3, epsilon=epsilon),
    "best k": lambda epsilon: rr_with_prior(SMALL, epsilon),
}


@pytest.fixture(params=itertools.product(RANDOMIZERS, ["0.01", 1, "12"]), ids=str)
def budget_and_randomizer(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Return ε and a randomizer for it."""
    name, epsilon = request.param
    return epsilon, RANDOMIZERS[name](epsilon)


def list_distinct_laws(randomizer: Any) -> Any:
    """Return the different laws of a randomizer."""
    return randomizer._rows(randomizer.distinct_rows())


def test_randomized_response_is_private_at_the_requested_budget(budget_and_randomizer):
    """It is not private below, if two labels have different outputs of their own."""
    epsilon, randomizer = budget_and_randomizer
    laws = list_distinct_laws(randomizer)
    if len(laws.rows) == 1:
        assert randomizer.outputs.size == 1  # A constant output.
        return
    pairs = list(combinations(range(len(laws.rows)), 2))
    privacy = audit(Channel.from_pairs(laws, pairs), epsilon)
    assert privacy.meets("pure", epsilon)
    own_outputs = randomizer.own[randomizer.own >= 0]
    if np.unique(own_outputs).size > 1:
        assert privacy.pure_epsilon == pytest.approx(float(Fraction(epsilon)), rel=1e-12)
    extreme_pairs = find_extreme_pairs(randomizer.audit_rows.rows)
    short_audit = audit(Channel.from_pairs(randomizer.audit_rows, extreme_pairs), epsilon)
    assert short_audit.pure_ratio == privacy.pure_ratio


def test_the_loss_of_randomized_response_is_the_mean_over_its_matrix(budget_and_randomizer):
    _, randomizer = budget_and_randomizer
    laws = np.array([randomizer.row(i).floats for i in range(SMALL.k)])
    assert np.allclose(laws, randomizer.matrix, atol=1e-15)
    losses = SQUARED.matrix(randomizer.outputs, SMALL.values)
    mean_loss = float((SMALL.prior[:, None] * laws * losses).sum())
    assert randomizer.loss(SQUARED) == pytest.approx(mean_loss, rel=1e-12)


def test_rr_with_prior_maximises_the_probability_of_the_true_label():
    error_rate = parse_loss("error-rate")
    for epsilon in (0.3, 1.0, 4.0):
        losses = [rr_top_k(SMALL, k, epsilon).loss(error_rate) for k in range(1, 7)]
        loss = rr_with_prior(SMALL, epsilon).loss(error_rate)
        assert loss == pytest.approx(min(losses), rel=1e-12)


def test_the_audit_of_few_rows_equals_the_complete_audit():
    randomizer = rr_k_ary(Labels.uniform(0, 59), 1)
    assert len(randomizer.audit_rows.rows) == 2
    some_pairs = list(itertools.product((0, 7, 59), (3, 30)))
    full_audit = audit(Channel.from_pairs(list_distinct_laws(randomizer), some_pairs), 1)
    short_audit = audit(Channel.from_pairs(randomizer.audit_rows, [(0, 1)]), 1)
    assert short_audit.pure_ratio == full_audit.pure_ratio


def test_samples_of_rr_on_bins_follow_the_law():
    randomizer = RANDOMIZERS["bins"](1)
    for i in (0, 3, 5):
        draws = randomizer.sample(np.full(40_000, SMALL.values[i]), Source(i))
        counts = count_draws(draws, randomizer.outputs)
        assert are_counts_close(counts, randomizer.row(i).floats, draw_count=40_000)


def test_a_label_without_an_output_of_its_own_draws_all_outputs_equally_often():
    randomizer = rr_top_k(SMALL, count=2, epsilon=1)
    label = SMALL.values[randomizer.own < 0][0]
    draws = randomizer.sample(np.full(20_000, label), Source(9))
    counts = count_draws(draws, randomizer.outputs)
    assert are_counts_close(counts, np.full(2, 0.5), draw_count=20_000)


def test_a_number_that_is_no_label_cannot_be_sampled():
    with pytest.raises(InvalidRequest, match="one of the"):
        RANDOMIZERS["bins"](1).sample([4.0])


# Exact draws.


class FixedSource(Source):
    """A source whose 64-bit words a test chooses."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(0)
        self.words = [*words]

    def draw_uint64(self, count: int) -> np.ndarray:
        """Return the next `count` words."""
        drawn_words = self.words[:count]
        self.words = self.words[count:]
        return np.array(drawn_words, dtype=np.uint64)


# 2^64/3 = THIRD + 1/3, so a word THIRD is tied and the next word decides.
THIRD = (1 << 64) // 3


@pytest.mark.parametrize(
    ("words", "is_success"),
    [
        ([THIRD - 1], True),
        ([THIRD, 0], True),
        ([THIRD, THIRD + 1], False),
        ([THIRD, THIRD, THIRD + 1], False),
    ],
)
def test_a_draw_with_probability_one_third_resolves_ties_with_more_words(
    words: list[int], is_success: bool
):
    draws = FixedSource(words).draw_bernoulli(numerator=1, denominator=3, count=1)
    assert draws.tolist() == [is_success]


def test_a_word_above_the_last_multiple_of_the_bound_is_drawn_again():
    words = [(1 << 64) - 1, 5]
    assert FixedSource(words).draw_integers(bound=10, count=1).tolist() == [5]


def test_discrete_laplace_follows_its_law():
    """Pr[η] is proportional to e^(-s|η|/t)."""
    s = 3
    t = 7
    draw_count = 60_000
    draws = Source(1).draw_discrete_laplace(s, t, draw_count)
    alpha = math.exp(-s / t)
    values = np.arange(-6, 7)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    assert are_counts_close(count_draws(draws, values), law, draw_count)


def test_sources_without_a_seed_draw_different_words():
    assert not np.array_equal(Source().draw_uint64(4), Source().draw_uint64(4))


def test_a_negative_seed_is_refused():
    with pytest.raises(InvalidRequest, match="seed must be"):
        Source(-1)
