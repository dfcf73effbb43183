"""Test the exact audit of finite channels, and that a profile is the audit at every budget.

A row of a channel is the law of the output for one answer, as integer weights or masses. `pairs` are
the rows of neighbouring answers, in both orders unless the channel is directed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit_truth import PairAudit, mechanisms
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.mechanisms.additive import AdditiveNoise, ModuloNoise
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.notions.dp import DP
from workbench.privacy.audit import audit, audit_extremes
from workbench.privacy.claim import Claim
from workbench.privacy.curve import profile


@pytest.mark.parametrize(
    ("rows", "pairs", "epsilon", "message"),
    [
        (
            [[1, 1]],
            [],
            1,
            "pairs must be a list of at least one pair of neighbouring rows. Got none.",
        ),
        (
            [[1, 1], [1]],
            [(0, 1)],
            1,
            "rows must be at least one row, all of one length. Got [2, 1].",
        ),
        ([[1, 1], [1, 2]], [(0, 2)], 1, "a pair must be two rows in 0..1. Got (0, 2)."),
        ([[1, 1], [1, 2]], [(0, -1)], 1, "a pair must be two rows in 0..1. Got (0, -1)."),
        ([[1, 1], [1, 2]], [(0, 1, 1)], 1, "a pair must be two rows in 0..1. Got (0, 1, 1)."),
        ([[1, 1], [1, 2]], [(1, 1)], 1, "a pair must be two different rows. Got (1, 1)."),
        (
            [[0, 0], [1, 2]],
            [(0, 1)],
            1,
            "a row of the channel must be not all zero. Got zeros only.",
        ),
        (
            [[0.5, -0.1], [1, 2]],
            [(0, 1)],
            1,
            "a row of the channel must be an array of finite numbers >= 0. Got -0.1.",
        ),
        ([[1, 1]] * 3, [(0, 1), (1, 2)], {(0, 1): 1}, "epsilon has no budget for pair (1, 2)."),
        (
            [[1, 1]] * 3,
            [(0, 1)],
            {(0, 1): 1, (0, 2): 1},
            "epsilon has a budget for (0, 2), which is not one of the pairs.",
        ),
    ],
)
def test_invalid_channels_are_errors(rows: Any, pairs: Any, epsilon: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        audit(Channel.from_pairs(rows, pairs), epsilon)
    assert str(caught.value) == message


@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=2, max_size=4
    ),
    st.sampled_from(["0.1", "0.69", "1.5"]),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_the_audit_of_channels_agrees_with_the_definitions(
    rows: list[list[int]], epsilon: str, directed: bool
) -> None:
    pairs = pairs_within(len(rows) - 1, 1)
    privacy = audit(Channel.from_pairs(rows, pairs, directed=directed), epsilon)
    masses = [[Fraction(weight, sum(row)) for weight in row] for row in rows]
    ordered_pairs = pairs
    if not directed:
        ordered_pairs = sorted([*pairs, *((j, i) for i, j in pairs)])
    slow_pairs = [PairAudit(masses[i], masses[j], Fraction(epsilon)) for i, j in ordered_pairs]
    assert [pair.label for pair in privacy.pairs] == ordered_pairs
    assert [pair.pdp_delta for pair in privacy.pairs] == [pair.pdp for pair in slow_pairs]
    assert [pair.ratio for pair in privacy.pairs] == [pair.ratio for pair in slow_pairs]
    largest_delta = float(max(pair.dp for pair in slow_pairs))
    assert privacy.dp_delta.lower - 1e-15 <= largest_delta <= privacy.dp_delta.upper + 1e-15


THIRD = Fraction(1, 3)


@pytest.mark.parametrize(
    "rows",
    [
        [[THIRD, 0.5, Fraction(1, 6)]] * 2,
        np.array([[THIRD, Fraction(1, 2), Fraction(1, 6)]] * 2, dtype=object),
    ],
    ids=["beside floats", "in an array"],
)
def test_fractions_of_a_channel_stay_exact(rows: Any) -> None:
    assert Channel.from_rows(rows).rows[0][0] == THIRD


def test_integers_beyond_doubles_stay_exact() -> None:
    weight = 2**60 + 1
    channel = Channel.from_rows(np.array([[weight, 1], [1, weight]]))
    assert channel.rows[0].integers == (weight, 1)


def test_fractions_of_noise_stay_exact() -> None:
    question = ModuloNoise(n=2, shifts=[1])
    assert AdditiveNoise.from_pmf(question, [THIRD, THIRD, THIRD]).exact_pmf == [THIRD] * 3
    noise = AdditiveNoise.from_pmf(question, [0.5, 0.25, Fraction(1, 4)])
    assert noise.exact_pmf[0] == Fraction(1, 2)


@pytest.mark.parametrize(
    "pmf", [[0.5, math.nan, THIRD], [0.5, "x", THIRD], [-1, 1, THIRD], [0.5, None, 1]]
)
def test_masses_that_are_no_numbers_or_negative_are_refused(pmf: Any) -> None:
    with pytest.raises(InvalidRequest):
        AdditiveNoise.from_pmf(ModuloNoise(n=2, shifts=[1]), pmf)


def make_random_noise() -> AdditiveNoise:
    """Return noise with random masses for the answers 0..6, which are neighbours within 2."""
    pmf = np.random.default_rng(5).random(7)
    return AdditiveNoise.from_pmf(ModuloNoise(n=6, max_shift=2), pmf)


def test_a_row_of_the_channel_of_noise_is_the_shifted_noise() -> None:
    noise = make_random_noise()
    expected_matrix = np.array([np.roll(noise.pmf, answer) for answer in range(7)])
    assert (Channel.from_noise(noise).matrix == expected_matrix).all()


def test_additive_noise_and_its_channel_have_the_same_audit() -> None:
    noise = make_random_noise()
    pairs = [(answer, (answer + shift) % 7) for answer in range(7) for shift in (1, 2)]
    noise_audit = audit(noise, 0.4)
    channel_audit = audit(Channel.from_pairs(Channel.from_noise(noise), pairs), 0.4)
    assert noise_audit.pdp_delta == channel_audit.pdp_delta
    assert noise_audit.dp_delta == channel_audit.dp_delta
    assert noise_audit.pure_ratio == channel_audit.pure_ratio


def test_equal_channels_have_equal_audits() -> None:
    channel = Channel.from_noise(make_random_noise())
    first, second = (audit(Channel.from_pairs(channel, [(0, 1)]), 0.4) for _ in range(2))
    assert first == second


def test_additive_noise_and_its_channel_have_the_same_losses() -> None:
    """The channel knows the answers, so its squared error is the one of the published integers.

    Noise η publishes q + η, or q + η - 7 for the η largest of the 7 answers. The mean squared error
    over uniform answers q is (η² (7 - η) + (7 - η)² η)/7 = η (7 - η).
    """
    noise = make_random_noise()
    channel = Channel.from_noise(noise)
    assert channel.error_rate == pytest.approx(noise.error_rate, abs=1e-15)
    squared_error = noise.expected_loss([eta * (7 - eta) for eta in range(7)])
    assert channel.mse == pytest.approx(squared_error, abs=1e-12)


def test_each_pair_of_rows_can_have_its_own_budget() -> None:
    rows = [[4, 1], [2, 3], [1, 4]]
    budgets = {(0, 1): "1.2", (2, 1): "0.7"}
    privacy = audit(Channel.from_pairs(rows, pairs_within(n=2, max_shift=1)), budgets)
    assert {pair.label: pair.epsilon for pair in privacy.pairs} == {
        (0, 1): Fraction(6, 5),
        (1, 0): Fraction(6, 5),
        (1, 2): Fraction(7, 10),
        (2, 1): Fraction(7, 10),
    }
    assert privacy.meets("metric", budgets)
    # The largest ratio of the rows 0 and 1 is (3/5)/(1/5) = 3 = e^1.0986.
    assert not privacy.meets("metric", {**budgets, (0, 1): "1.09"})


@given(mechanisms())
@settings(max_examples=40, deadline=None)
def test_profiles_are_the_audit_at_every_budget(noise: AdditiveNoise) -> None:
    epsilons = ["0", "0.01", "0.5", "0.7", "1.1", "3", "40"]
    dp, pdp = (profile(noise, notion).deltas(epsilons) for notion in ("dp", "pdp"))
    for i, epsilon in enumerate(epsilons):
        privacy = audit(noise, epsilon)
        assert dp[i] == privacy.dp_delta.upper
        assert Fraction(pdp[i]) >= privacy.pdp_delta
        assert pdp[i] == pytest.approx(float(privacy.pdp_delta), rel=1e-15)
    # δ decreases with ε, and PDP implies DP.
    assert (np.diff(dp) <= 0).all()
    assert (np.diff(pdp) <= 0).all()
    assert (dp <= np.nextafter(pdp, 2)).all()


def test_the_profile_of_a_float_matrix_has_known_values() -> None:
    rows = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    epsilons = np.linspace(0, 2, 9)
    channel = Channel.from_pairs(rows, pairs_within(n=2, max_shift=1))
    dp, pdp = (profile(channel, notion).deltas(epsilons) for notion in ("dp", "pdp"))
    # At ε = 0 the rows 0 and 1 have (0.7 - 0.2) + 0 + 0 and, in the other order,
    # (0.6 - 0.2) + (0.2 - 0.1). The rows 2 and 1 are their mirror images.
    assert dp[0] == pytest.approx(0.5, abs=1e-15)
    # ε = 1. Only the ratio 0.7/0.2 is above e.
    assert dp[4] == pytest.approx(0.7 - math.e * 0.2, abs=1e-15)
    assert pdp[4] == pytest.approx(0.7, abs=1e-15)
    assert (dp[-1], pdp[-1]) == (0, 0)


# The short audit compares extreme pairs only. At δ = 0 the largest ratio decides a claim, and the
# extreme pairs have it.

RANDOM_EPSILON = "1.3"  # The ε of the claims about random channels. Some are true.


def make_random_channels() -> list[wb.Channel]:
    """Return 30 channels with five rows of four random weights. All pairs of rows are neighbours."""
    generator = np.random.default_rng(24)
    smallest_weights = np.array([1, 0, 2, 1])
    channels = []
    for _ in range(30):
        weights = generator.integers(low=0, high=4, size=(5, 4)) + smallest_weights
        channels.append(wb.Channel.from_pairs(weights.tolist()))
    return channels


def test_the_short_audit_has_the_delta_of_the_audit_of_all_pairs():
    for channel in make_random_channels():
        full_audit = wb.audit(channel, RANDOM_EPSILON)
        short_audit = audit_extremes(channel, RANDOM_EPSILON)
        assert len(short_audit.pairs) < len(full_audit.pairs)
        assert short_audit.dp_delta == full_audit.dp_delta
        assert short_audit.pdp_delta == full_audit.pdp_delta


@pytest.mark.parametrize("delta", [0, "1e-3"])
@pytest.mark.parametrize("notion", ["dp", "pdp"])
def test_the_short_audit_has_the_verdict_of_the_audit_of_all_pairs(notion: str, delta: Any):
    for channel in make_random_channels():
        full_audit = wb.audit(channel, RANDOM_EPSILON)
        short_audit = audit_extremes(channel, RANDOM_EPSILON)
        verdict = full_audit.verdict(notion, epsilon=RANDOM_EPSILON, delta=delta)
        assert short_audit.verdict(notion, epsilon=RANDOM_EPSILON, delta=delta) == verdict


@pytest.mark.parametrize("notion", ["dp", "pdp"])
def test_a_certificate_at_delta_0_is_decided_by_the_short_audit(notion: str):
    """A claim that fails reports the verdict of the audit of all pairs."""
    verdicts = set()
    for channel in make_random_channels():
        full_audit = wb.audit(channel, RANDOM_EPSILON)
        is_private = full_audit.meets(notion, epsilon=RANDOM_EPSILON, delta=0)
        verdicts.add(is_private)
        if is_private:
            proof = wb.Certificate(channel, notion, RANDOM_EPSILON, 0)
            short_audit = audit_extremes(channel, RANDOM_EPSILON)
            assert len(proof.deciding_audit.pairs) == len(short_audit.pairs)
            assert proof.privacy.dp_delta == full_audit.dp_delta
        else:
            with pytest.raises(wb.NotCertified) as refused:
                wb.Certificate(channel, notion, RANDOM_EPSILON, 0)
            verdict = full_audit.verdict(notion, epsilon=RANDOM_EPSILON, delta=0)
            assert str(refused.value) == verdict
    assert verdicts == {True, False}


def test_only_claims_of_dp_at_delta_0_with_one_epsilon_are_decided_by_the_largest_ratio():
    assert Claim("dp", 1).is_decided_by_ratio
    assert not Claim("dp", epsilon=1, delta=Fraction(1, 10**9)).is_decided_by_ratio
    assert not Claim("dp", {(0, 1): Fraction(1)}).is_decided_by_ratio


def test_a_notion_that_measures_something_else_compares_every_pair():
    class HalvedDP(DP):
        """DP with half of the ε that it is given."""

        name = "halved"
        quantity = "halved_delta"

        def measure(self, laws, values):
            """Measure two laws at half of the ε."""
            return super().measure(laws, {"epsilon": values["epsilon"] / 2})

    assert not Claim(HalvedDP(), 1).is_decided_by_ratio
