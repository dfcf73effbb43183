"""Test the exact audit of finite channels, and that a profile is the audit at every budget."""

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
    found = audit(Channel.from_pairs(rows, pairs, directed=directed), epsilon)
    exact = [[Fraction(k, sum(row)) for k in row] for row in rows]
    ordered = pairs if directed else sorted([*pairs, *((j, i) for i, j in pairs)])
    slow = [PairAudit(exact[i], exact[j], Fraction(epsilon)) for i, j in ordered]
    assert [pair.label for pair in found.pairs] == ordered
    assert [pair.pdp_delta for pair in found.pairs] == [one.pdp for one in slow]
    assert [pair.ratio for pair in found.pairs] == [one.ratio for one in slow]
    top = float(max(one.dp for one in slow))
    assert found.dp_delta.lower - 1e-15 <= top <= found.dp_delta.upper + 1e-15


def test_fractions_stay_exact_in_arrays_and_beside_floats() -> None:
    third, sixth = Fraction(1, 3), Fraction(1, 6)
    big = 2**60 + 1
    for rows in (
        [[third, 0.5, sixth]] * 2,
        np.array([[third, Fraction(1, 2), sixth]] * 2, dtype=object),
    ):
        assert Channel.from_rows(rows).rows[0][0] == third
    assert Channel.from_rows(np.array([[big, 1], [1, big]])).rows[0].integers == (big, 1)
    question = ModuloNoise(n=2, shifts=[1])
    assert AdditiveNoise.from_pmf(question, [third, third, third]).exact_pmf == [third] * 3
    assert AdditiveNoise.from_pmf(question, [0.5, 0.25, Fraction(1, 4)]).exact_pmf[0] == Fraction(
        1, 2
    )
    for bad in ([0.5, float("nan"), third], [0.5, "x", third], [-1, 1, third], [0.5, None, 1]):
        with pytest.raises(InvalidRequest):
            AdditiveNoise.from_pmf(question, bad)


def test_additive_noise_and_its_channel_have_the_same_audit() -> None:
    rng = np.random.default_rng(5)
    noise = AdditiveNoise.from_pmf(ModuloNoise(n=6, max_shift=2), rng.random(7))
    channel = Channel.from_noise(noise)
    assert channel.matrix == pytest.approx(
        np.array([np.roll(noise.pmf, q) for q in range(7)]), abs=0
    )
    pairs = [(i, (i + shift) % 7) for i in range(7) for shift in (1, 2)]
    one, two = audit(noise, 0.4), audit(Channel.from_pairs(channel, pairs), 0.4)
    assert (one.pdp_delta, one.dp_delta, one.pure_ratio) == (
        two.pdp_delta,
        two.dp_delta,
        two.pure_ratio,
    )
    assert audit(Channel.from_pairs(channel, pairs), 0.4) == two
    assert channel.error_rate == pytest.approx(noise.error_rate, abs=1e-15)
    wrapped = noise.expected_loss(
        [eta * (7 - eta) for eta in range(7)]
    )  # the true squared error, answers uniform
    assert channel.mse == pytest.approx(wrapped, abs=1e-12)


def test_each_pair_of_rows_can_have_its_own_budget() -> None:
    rows = [[4, 1], [2, 3], [1, 4]]
    budgets = {(0, 1): "1.2", (2, 1): "0.7"}
    found = audit(Channel.from_pairs(rows, pairs_within(n=2, max_shift=1)), budgets)
    assert {pair.label: pair.epsilon for pair in found.pairs} == {
        (0, 1): Fraction(6, 5),
        (1, 0): Fraction(6, 5),
        (1, 2): Fraction(7, 10),
        (2, 1): Fraction(7, 10),
    }
    assert found.meets("metric", budgets)
    assert not found.meets("metric", {**budgets, (0, 1): "1.09"})  # 3/1 = e^1.0986


@given(mechanisms())
@settings(max_examples=40, deadline=None)
def test_profiles_are_the_audit_at_every_budget(noise: AdditiveNoise) -> None:
    epsilons = ["0", "0.01", "0.5", "0.7", "1.1", "3", "40"]
    dp, pdp = (profile(noise, notion).deltas(epsilons) for notion in ("dp", "pdp"))
    for i, epsilon in enumerate(epsilons):
        found = audit(noise, epsilon)
        assert dp[i] == found.dp_delta.upper
        assert Fraction(pdp[i]) >= found.pdp_delta
        assert pdp[i] == pytest.approx(float(found.pdp_delta), rel=1e-15)
    assert (np.diff(dp) <= 0).all()
    assert (np.diff(pdp) <= 0).all()
    assert (dp <= np.nextafter(pdp, 2)).all()


def test_the_profile_of_a_float_matrix_has_known_values() -> None:
    rows = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    epsilons = np.linspace(0, 2, 9)
    channel = Channel.from_pairs(rows, pairs_within(n=2, max_shift=1))
    dp, pdp = (profile(channel, notion).deltas(epsilons) for notion in ("dp", "pdp"))
    # rows 0 and 1 (and their mirror) at ε = 0: (.7-.2) + 0 + 0 and (.6-.2) + (.2-.1)
    assert dp[0] == pytest.approx(0.5, abs=1e-15)
    assert dp[4] == pytest.approx(0.7 - math.e * 0.2, abs=1e-15)
    assert pdp[4] == pytest.approx(0.7, abs=1e-15)
    assert (dp[-1], pdp[-1]) == (0, 0)


def test_the_largest_ratio_decides_delta_0_and_a_failing_claim_reports_the_exact_delta():
    """All verdicts on 60 channels agree with the comparison of every pair."""
    rng, answers = np.random.default_rng(24), []
    for notion in ("dp", "pdp") * 30:
        channel = wb.Channel.from_pairs(
            (rng.integers(0, 4, (5, 4)) + np.array([1, 0, 2, 1])).tolist()
        )
        whole, few = wb.audit(channel, "1.3"), audit_extremes(channel, "1.3")
        assert len(few.pairs) < len(whole.pairs)
        assert (few.dp_delta, few.pdp_delta) == (whole.dp_delta, whole.pdp_delta)
        assert few.verdict(notion, epsilon="1.3", delta=0) == whole.verdict(
            notion, epsilon="1.3", delta=0
        )
        assert few.verdict(notion, "1.3", "1e-3") == whole.verdict(notion, "1.3", "1e-3")
        answers.append(whole.meets(notion, epsilon="1.3", delta=0))
        if answers[-1]:
            proof = wb.Certificate(channel, notion, "1.3", 0)
            assert len(proof.deciding_audit.pairs) == len(few.pairs)
            assert proof.privacy.dp_delta == whole.dp_delta
        else:
            with pytest.raises(wb.NotCertified) as refused:
                wb.Certificate(channel, notion, "1.3", 0)
            assert str(refused.value) == whole.verdict(notion, epsilon="1.3", delta=0)
    assert {*answers} == {True, False}


def test_a_notion_that_measures_something_else_compares_every_pair():
    class Halved(DP):
        name, quantity = "halved", "halved_delta"

        def measure(self, laws, values):
            return super().measure(laws, {"epsilon": values["epsilon"] / 2})

    assert Claim("dp", 1).is_decided_by_ratio
    assert not Claim("dp", epsilon=1, delta=Fraction(1, 10**9)).is_decided_by_ratio
    assert not Claim(Halved(), 1).is_decided_by_ratio
    assert not Claim("dp", {(0, 1): Fraction(1)}).is_decided_by_ratio
