"""Test the plain sentences about a mechanism: the number of right guesses and the neighbours.

The sentences say in how many of 100 cases an attacker guesses right which of two neighbours is
true. With the total variation distance d of their laws, this is 50 (1 + d), rounded up.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.joint_noise import JointNoise
from workbench.mechanisms.label_randomizers.randomized_response import rr_k_ary
from workbench.privacy.composition import ComposedClaim
from workbench.publishing import mechanism_guarantee
from workbench.publishing.mechanism_guarantee import (
    bound_one_sided_advantage,
    describe_mechanism_guarantee,
)
from workbench.questions.joint_query import JointQuery


def describe(subject: Any) -> str:
    """Return the two sentences of a mechanism."""
    guarantee = describe_mechanism_guarantee(subject)
    assert guarantee is not None
    return " ".join(guarantee.sentences)


def make_geometric_law(ratio: Fraction) -> IntegerLaw:
    """Return the law of geometric noise: the weight of η is ratio^|η|."""
    return IntegerLaw(first=0, weights=[1], period=1, ratio=ratio)


HALF_LAW = make_geometric_law(Fraction(1, 2))


def make_geometric_rows(ratio: Fraction, size: int) -> list[list[Fraction]]:
    """Return rows of weights ratio^|i - j|."""
    return [[ratio ** abs(i - j) for j in range(size)] for i in range(size)]


RATIOS = [Fraction(k, 21) for k in range(1, 21)]


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_guesses_of_integer_noise_are_exact(ratio: Fraction) -> None:
    """P(η) ∝ a^|η| at the shift 2, summed one by one. The tail beyond 400 is below 1e-7."""
    noise = wb.AdditiveIntegerNoise(wb.IntegerNoise(2), make_geometric_law(ratio))
    scale = (1 - ratio) / (1 + ratio)
    weights = {k: float(scale * ratio ** abs(k)) for k in range(-402, 403)}
    advantage = sum(max(0.0, weights[k] - weights[k + 2]) for k in range(-402, 401))
    expected = math.ceil(50 * (1 + advantage) - 1e-5)
    assert f"in at most {expected} of 100 cases" in describe(noise)


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_guesses_of_a_channel_are_those_of_its_worst_neighbours(ratio: Fraction) -> None:
    rows = make_geometric_rows(ratio, size=5)
    channel = wb.Channel.from_pairs(rows, [(i, i + 1) for i in range(4)])
    laws = [[weight / sum(row) for weight in row] for row in rows]
    distances = []
    for i in range(4):
        terms = [max(Fraction(0), p - q) for p, q in zip(laws[i], laws[i + 1], strict=True)]
        distances.append(sum(terms, Fraction(0)))
    expected = math.ceil(50 * (1 + max(distances)))
    assert f"in at most {expected} of 100 cases" in describe(channel)


def test_channels_speak_of_neighbouring_answers_and_name_the_worst_pair() -> None:
    query = wb.FiniteQuery("30..34", max_shift=1)
    design = wb.design(query, loss="absolute", epsilon=1)
    text = describe(design)
    # Several pairs are the worst, so any of them may be named. The 3 begins an answer of 30..34.
    assert "one of two given answers that are neighbours, such as 3" in text
    assert "the person" not in text


def test_a_channel_on_names_speaks_of_any_two_values() -> None:
    query = wb.FiniteQuery("north,south,coast", neighbours="all")
    text = describe(wb.design(query, loss="error-rate", epsilon=1))
    assert "one of two given values, such as north and " in text


def test_names_of_inputs_are_printable_and_short() -> None:
    channel = wb.Channel.from_rows([[3, 1], [1, 3]])
    names = ("a\x1b[31m", "b" * 500)
    text = describe(wb.Channel(channel.rows, axis_labels=(names, names)))
    assert f"such as a?[31m and {'b' * 60}." in text


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (
            wb.AdditiveIntegerNoise(wb.IntegerNoise(3), HALF_LAW),
            "the true answer is one of two given integers that differ by at most 3, such as 30 and 33",
        ),
        (
            wb.AdditiveIntegerNoise(wb.IntegerNoise(1, clamp=(5, 9)), HALF_LAW),
            "the true answer is one of two given integers that differ by 1, such as 5 and 6",
        ),
        (
            wb.AdditiveNoise(wb.ModuloNoise(n=4, max_shift=2), [3, 2, 1, 1, 2]),
            "the true answer is one of two given answers that differ by at most 2 modulo 5",
        ),
        (
            wb.AdditiveNoise(wb.ModuloNoise(n=6, shifts=[2, 3]), [3, 2, 1, 1, 1, 1, 2]),
            "the true answer is one of two given answers that differ by 2 or 3 modulo 7",
        ),
        (
            two_bin(bins=[-3, 3], selection=[[1]]),
            "the person's value is one of two given values",
        ),
        (
            rr_k_ary(wb.Labels([0, 1, 2, 5], [4, 3, 2, 1]), 1),
            "the person's label is one of two given labels",
        ),
        (
            JointNoise(JointQuery("rows-anywhere", "replace", 2), HALF_LAW),
            "the rows of the person are one of two given sets of rows",
        ),
    ],
)
def test_the_words_fit_the_mechanism(mechanism: Any, words: str) -> None:
    assert f"equally likely beforehand that {words}" in describe(mechanism)


def test_a_joint_release_promises_nothing_beyond_its_rows() -> None:
    mechanism = JointNoise(JointQuery("rows-anywhere", rows=3), HALF_LAW)
    guarantee = describe_mechanism_guarantee(mechanism)
    assert guarantee is not None
    assert any(
        "A person with more than 3 rows is protected less" in text for text in guarantee.limits
    )
    assert any("in no ledger" in text for text in guarantee.limits)


def test_metric_privacy_speaks_of_the_smallest_distance() -> None:
    """ε = .5 at distance 1 and 1 at distance 2: 63 and at most 74 of 100."""
    query = wb.FiniteQuery([(0, 0), (1, 0), (0, 2)], neighbours="all L1")
    design = wb.design(query, loss="euclidean", epsilon="0.5", notion="metric")
    guarantee = describe_mechanism_guarantee(design)
    assert guarantee is not None
    assert "answers at the smallest distance, such as (0, 0) and (1, 0)" in guarantee.sentences[0]
    assert guarantee.right_guesses <= 63
    assert any("Other answers are easier to tell apart" in text for text in guarantee.limits)


def test_one_sided_neighbours_are_named() -> None:
    """P(A) <= 3/2 Q(A) holds in the stored order, but not in the other one."""
    channel = wb.Channel.from_pairs([[3, 1, 0], [2, 1, 1]], [(0, 1)], directed=True)
    guarantee = describe_mechanism_guarantee(channel)
    assert guarantee is not None
    assert any("in one order only" in text for text in guarantee.limits)
    # P = (.75, .25, 0) and Q = (.5, .25, .25) differ by .25: 62.5 of 100.
    assert guarantee.right_guesses == 63


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2"])
@pytest.mark.parametrize("delta", ["0", "0.01", "0.2"])
def test_the_one_sided_bound_is_that_of_decimals(epsilon: str, delta: str) -> None:
    bound = bound_one_sided_advantage(Fraction(epsilon), Fraction(delta))
    with localcontext() as context:
        context.prec = 40
        expected = 1 - (1 - Decimal(delta)) * (-Decimal(epsilon)).exp()
    assert float(bound) == pytest.approx(float(expected), abs=1e-15)


def test_the_one_sided_bound_is_reached() -> None:
    """P = (1, 0), Q = (1/3, 2/3) at e^ε = 3: P(A) - Q(A) = 2/3."""
    bound = bound_one_sided_advantage(Fraction(math.log(3)), Fraction(0))
    assert float(bound) == pytest.approx(2 / 3, abs=1e-12)


def test_a_large_audit_is_replaced_by_the_bound_of_the_claim(monkeypatch: Any) -> None:
    channel = wb.Channel.from_rows([[3, 1], [1, 3]])
    certificate = wb.Certificate(channel, "dp", 2, Fraction(1, 10))
    exact = describe_mechanism_guarantee(certificate)
    monkeypatch.setattr(mechanism_guarantee, "_MAX_WORK_UNITS", 0)
    bounded = describe_mechanism_guarantee(certificate)
    assert exact is not None
    assert bounded is not None
    assert (exact.right_guesses, exact.is_exact) == (75, True)
    # 100 (e^2 + .1) / (e^2 + 1) = 89.27.
    assert (bounded.right_guesses, bounded.is_exact) == (90, False)
    assert describe_mechanism_guarantee(certificate.mechanism) is None


def test_several_runs_have_their_own_number() -> None:
    channel = wb.Channel.from_rows([[3, 1], [1, 3]])
    composed = ComposedClaim.for_mechanism(channel, 2, Fraction(5, 2), Fraction(0))
    certificate = wb.Certificate(channel, "pure", "1.1", composed=composed)
    guarantee = describe_mechanism_guarantee(certificate)
    assert guarantee is not None
    # 100 e^2.5 / (e^2.5 + 1) = 92.4.
    assert any("2 outputs up to 93 of 100 cases" in text for text in guarantee.limits)
