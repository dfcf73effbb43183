"""Compare the exact audit of additive noise with the slow audit of `audit_truth`."""

from __future__ import annotations

import copy
import math
import pickle
import weakref
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit_truth import DIGITS, decimal, mechanisms, slow_audit
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.exact.numbers import exp_bounds, sign_exp
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import Comparison
from workbench.privacy.audit import audit
from workbench.questions.modulo_noise import ModuloNoise


def check(noise: AdditiveNoise, epsilon: Any) -> None:
    """Assert that the audit of noise at ε (or one ε for each shift) agrees with the slow audit."""
    privacy = audit(noise, epsilon)
    slow_pairs = slow_audit(noise, noise.question.budgets(epsilon, or_zero=True))
    assert privacy.pdp_delta == max(pair.pdp for pair in slow_pairs)
    assert [pair.pdp_delta for pair in privacy.pairs] == [pair.pdp for pair in slow_pairs]
    assert [pair.ratio for pair in privacy.pairs] == [pair.ratio for pair in slow_pairs]
    largest_delta = max(pair.dp for pair in slow_pairs)
    with localcontext() as context:
        context.prec = DIGITS
        # The slow audit rounds its decimals.
        slack = Decimal(10) ** -30 * largest_delta + Decimal(10) ** -700
        assert Decimal(privacy.dp_delta.lower) <= largest_delta + slack
        assert Decimal(privacy.dp_delta.upper) >= largest_delta - slack
    assert privacy.dp_delta.lower >= 0
    assert privacy.dp_delta.compare(privacy.pdp_delta) <= 0  # PDP implies DP.
    for pair in privacy.pairs:
        is_pure = pair.ratio is not None and sign_exp(pair.ratio, Fraction(1), pair.epsilon) <= 0
        assert is_pure == (pair.pdp_delta == 0)


@given(
    mechanisms(),
    st.sampled_from(["0", "1e-9", "0.1", "0.69314718055994530942", "1.5", "5", "700", "1e6"]),
)
@settings(max_examples=50, deadline=None)
def test_the_audit_agrees_with_the_definitions(noise: AdditiveNoise, epsilon: str) -> None:
    check(noise, epsilon)


@given(
    st.lists(st.integers(0, 4), min_size=9, max_size=9),
    st.lists(st.integers(-2, 2), min_size=9, max_size=9),
    st.sampled_from(["0.1", "0.75", "1.5", "3"]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_ratios_a_few_ulps_from_the_budget_are_decided_exactly(
    levels: list[int], ulps: list[int], epsilon: str, directed: bool
) -> None:
    """Solvers return noise whose ratios are e^ε up to rounding.

    The last bit of a mass then decides whether the whole mass counts as a violation.
    """
    question = ModuloNoise(n=8, max_shift=3, directed=directed)
    masses = np.exp(-float(epsilon) * np.array(levels))
    check(AdditiveNoise.from_pmf(question, masses * (1 + np.array(ulps) * 2.0**-52)), epsilon)


# Masses that are subnormal doubles, and larger ones.
SUBNORMAL = [0.0, 5e-324, 1e-323, 1.5e-323, 2e-310, 2.3e-308, 1e-200, 0.3, 1.0]


@given(
    st.lists(st.sampled_from(SUBNORMAL), min_size=5, max_size=5).filter(any),
    st.sampled_from(["0", "1e-9", "0.5", "1.0986122886681098", "700"]),
)
@settings(max_examples=60, deadline=None)
def test_subnormal_masses_are_audited_exactly(pmf: list[float], epsilon: str) -> None:
    check(AdditiveNoise.from_pmf(ModuloNoise(n=4, max_shift=2), pmf), epsilon)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1.5", "30", "700"])
@pytest.mark.parametrize("bits", [53, 96, 200, 1000])
def test_the_largest_private_integer_is_private_and_the_next_one_is_not(
    epsilon: str, bits: int
) -> None:
    """With l = 2^bits the largest private k is ⌊l e^ε⌋. The PDP δ of the next k is its whole mass."""
    budget = Fraction(epsilon)
    largest, _ = exp_bounds(budget, bits)
    question = ModuloNoise(n=1, max_shift=1)
    with localcontext() as context:
        context.prec = DIGITS
        assert largest < decimal(budget).exp() * 2**bits < largest + 1
    inside = audit(AdditiveNoise(question, [largest, 2**bits]), epsilon)
    assert inside.pdp_delta == 0
    assert inside.dp_delta.upper == 0
    assert inside.meets("pure", epsilon)
    outside = audit(AdditiveNoise(question, [largest + 1, 2**bits]), epsilon)
    assert outside.pdp_delta == Fraction(largest + 1, largest + 1 + 2**bits)
    assert not outside.meets("pure", epsilon)
    assert not outside.meets("dp", epsilon)
    assert outside.dp_delta.compare(Fraction(0)) > 0
    assert outside.dp_delta.upper > 0
    assert outside.dp_delta.upper < 2.0 ** (1 - bits)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1"])
@pytest.mark.parametrize("bits", [53, 200, 1000])
def test_rows_with_different_totals_are_compared_exactly(epsilon: str, bits: int) -> None:
    """Pr[0|1] = 1/3 and Pr[0|0] = k/2^bits: private up to k = ⌊2^bits e^ε / 3⌋."""
    largest = exp_bounds(Fraction(epsilon), bits + 64)[0] // (3 << 64)
    for k, loss in ((largest, Fraction(0)), (largest + 1, Fraction(largest + 1, 2**bits))):
        found = audit(
            Channel.from_pairs([[k, 2**bits - k], [1, 2]], [(0, 1)], directed=True), epsilon
        )
        assert found.pdp_delta == loss
        assert found.pure_ratio == Fraction(3 * k, 2**bits)


# Table 1 of Kadam et al. 2024, for n = 8, μ̄ = 3, ε = 1.5. By printed δ: the level of each noise
# value in the printed staircase, and the PDP δ of this staircase for symmetric neighbours, which
# this test computes.
TABLE_1 = {
    "0": ([0, 1, 1, 1, 2, 2, 2, 3, 3], 0.785597),
    "0.1238": ([0, 1, 1, 1, 2, 2, 3, 3, 3], 0.802456),
    "0.1522": ([0, 1, 1, 1, 2, 2, 3, 3, 4], 0.806317),
}
PRINTED = {
    "0": [0.5432, 0.1212, 0.1212, 0.1212, 0.0270, 0.0270, 0.0270, 0.0060, 0.0060],
    "0.1238": [0.5548, 0.1238, 0.1238, 0.1238, 0.0276, 0.0276, 0.0062, 0.0062, 0.0062],
    "0.1522": [0.5575, 0.1244, 0.1244, 0.1244, 0.0278, 0.0278, 0.0062, 0.0062, 0.0014],
}


def staircase(levels: list[int], *, directed: bool) -> AdditiveNoise:
    """Return noise with the masses e^(-1.5 level), rounded so that every step is within ε = 1.5."""
    low, _ = exp_bounds(Fraction(3, 2), 300)
    weights = [2**900]
    for _ in range(max(levels)):
        weights.append(-(-(weights[-1] << 300) // low))
    return AdditiveNoise(
        ModuloNoise(n=8, max_shift=3, directed=directed), [weights[level] for level in levels]
    )


@pytest.mark.parametrize("delta", TABLE_1)
def test_table_1_is_not_private_for_symmetric_neighbours(delta: str) -> None:
    levels, symmetric_delta = TABLE_1[delta]
    noise = staircase(levels, directed=False)
    assert noise.pmf == pytest.approx(np.array(PRINTED[delta]), abs=1e-4)
    found = audit(noise, 1.5)
    assert float(found.pdp_delta) == pytest.approx(symmetric_delta, abs=5e-7)
    assert not found.meets("pdp", epsilon=1.5, delta=delta)


@pytest.mark.parametrize(
    ("delta", "needed"),
    [("0", 0.0), ("0.1238", 0.1238036), ("0.1522", 0.1521565)],
)
def test_table_1_needs_a_larger_delta_for_directed_neighbours(delta: str, needed: float) -> None:
    """The δ each printed staircase needs for the paper's one-sided M (0.1238 is rounded down)."""
    noise = staircase(TABLE_1[delta][0], directed=True)
    found = audit(noise, 1.5)
    assert float(found.pdp_delta) == pytest.approx(needed, abs=1e-7)
    assert found.meets("pdp", epsilon=1.5, delta=found.pdp_delta)
    assert found.meets("pure", epsilon=1.5) == (delta == "0")
    assert not audit(AdditiveNoise.from_pmf(noise.question, PRINTED[delta]), 1.5).meets(
        "pdp", epsilon=1.5, delta="0.1522"
    )


def test_a_tight_mechanism_is_reported_at_its_budget() -> None:
    """Every step is slightly below e^1.5, so the largest loss rounds up to 1.5 itself."""
    found = audit(staircase(TABLE_1["0"][0], directed=True), 1.5)
    assert (found.pdp_delta, found.dp_delta.upper, found.pure_epsilon) == (0, 0.0, 1.5)
    verdict = found.verdict("pure", epsilon=1.5)
    assert "is private" in verdict
    assert "exact pure epsilon is 1.5, requested epsilon = 1.5 for one-sided" in verdict


def test_directed_differences_need_smaller_budgets() -> None:
    one_way = AdditiveNoise(ModuloNoise(n=2, shifts=[1], directed=True), [4, 2, 1])
    assert audit(one_way, "0.7").pure_ratio == 2  # 4/2, 2/1, 1/4
    both = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [4, 2, 1])
    assert audit(both, "0.7").pure_ratio == 4
    assert audit(both, "0.7").pdp_delta == Fraction(4, 7)
    assert audit(one_way, "0.7").pdp_delta == 0
    assert audit(one_way, "0.69").pdp_delta == Fraction(6, 7)
    assert audit(both, "0.7").worst_result("pure").label == (2,)
    assert audit(both, "0.7").worst_result("pure").measurement.outcome == 0


def test_a_reachable_zero_is_never_pure() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [8, 1, 0])
    found = audit(noise, 50)
    assert found.pure_ratio is None
    assert found.pure_epsilon == math.inf
    assert not found.meets("pure", "1e300")
    assert found.pdp_delta == Fraction(8, 9)
    assert (found.dp_delta.a, found.dp_delta.b) == (Fraction(8, 9), 0)
    assert "f(0) is 0.89 where f(2) is 0" in found.verdict("pure", epsilon=50)
    unreachable = AdditiveNoise(ModuloNoise(n=3, shifts=[2]), [2, 0, 1, 0])
    assert audit(unreachable, 1).pure_ratio == 2
    assert audit(unreachable, 1).meets("pure", epsilon=1)


def test_delta_is_compared_exactly() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [3, 1, 1])
    found = audit(noise, "1e-3")
    assert found.pdp_delta == Fraction(3, 5)
    assert found.meets("pdp", "0.001", "0.6")
    assert not found.meets("pdp", "0.001", Fraction(3, 5) - Fraction(1, 2**300))
    a, b = found.dp_delta.a, found.dp_delta.b
    assert (a, b) == (Fraction(3, 5), Fraction(1, 5))
    low, high = found.dp_delta.enclosure(1000)
    assert found.meets("dp", "0.001", high)
    assert not found.meets("dp", "0.001", low)
    assert found.dp_delta.lower <= low <= high <= found.dp_delta.upper


def test_each_shift_can_have_its_own_budget() -> None:
    question = ModuloNoise(n=4, shifts=[1, 2])
    noise = AdditiveNoise(question, [8, 4, 2, 2, 4])
    budgets = {1: "0.7", 2: "1.4"}
    assert audit(noise, budgets).meets("metric", budgets)
    assert audit(noise, budgets).epsilon is None
    tight = {1: "0.7", 2: "1.38"}
    assert not audit(noise, tight).meets("metric", tight)
    assert not audit(noise, "0.7").meets("pure", "0.7")
    check(noise, tight)
    check(noise, {1: "0.3", 2: "1.38"})
    verdict = audit(noise, tight).verdict("metric", tight)
    assert "NOT private" in verdict
    assert "exact pure epsilon is 1.3862943611198908" in verdict
    assert "(f(0) exceeds e^epsilon f(2) by 0.0025)" in verdict


def test_an_audit_decides_claims_at_other_budgets() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [4, 2, 2])
    found = audit(noise, 0.1)
    assert not found.meets("pdp", epsilon=0.1, delta=0.2)
    assert found.meets("pdp", epsilon=0.7, delta=0)
    assert found.audit_at(0.1) is found
    assert found.audit_at(0.7).epsilon == Fraction(7, 10)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_verdict_states_measured_and_requested_numbers() -> None:
    question = ModuloNoise(n=8, max_shift=3, directed=True)
    solver = np.exp(-1.5 * np.array([0, 1, 1, 1, 2, 2, 3, 3, 3]))
    noise = AdditiveNoise.from_pmf(question, solver / solver.sum())
    found = audit(noise, 1.5)
    words = found.verdict("pdp", epsilon=1.5, delta="0.1212", subject="The solver's PMF")
    assert words.startswith("The solver's PMF is NOT private")
    assert "exact PDP delta is 0.7339" in words
    assert "one-sided neighbours, requested 0.1212 (f(0) exceeds e^epsilon f(" in words
    assert words.endswith("e-17)")
    assert found.verdict("dp", epsilon=1.5, delta="0.1212") == (
        "The mechanism is private at the requested budget: exact DP delta is 0.0961793 "
        "at epsilon = 1.5 for one-sided neighbours, "
        "requested 0.1212"
    )
    both = audit(AdditiveNoise(ModuloNoise(n=8, max_shift=3), noise.masses), 1.5).verdict(
        "dp", epsilon=1.5, delta=1
    )
    assert "is private" in both
    assert both.endswith("exact DP delta is 0.719584 at epsilon = 1.5, requested 1")
    round_trip = ModuloNoise(
        n=2, shifts=[1, 2], directed=True
    )  # closed under negation: nothing one-sided about it
    assert "one-sided" not in audit(AdditiveNoise(round_trip, [2, 1, 1]), 1).verdict(
        "pure", epsilon=1
    )
    assert "one-sided" in audit(
        Channel.from_pairs(rows=[[2, 1], [1, 2]], pairs=[(0, 1)], directed=True), 1
    ).verdict("pure", epsilon=1)
    close = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [3 * 10**12 + 1, 10**12, 10**12])
    assert "is 0.60000000000008 at epsilon = 1, requested 0.6 " in audit(close, 1).verdict(
        "pdp", epsilon=1, delta="0.6"
    )
    closer = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [3 * 10**30 + 1, 10**30, 10**30])
    assert "8e-32 above the requested one" in audit(closer, 1).verdict(
        "pdp", epsilon=1, delta="0.6"
    )


def test_invalid_arguments_of_an_audit_are_errors() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [2, 1, 1])
    found = audit(noise, 1)
    for call, message in [
        (lambda: audit(noise, -1), "epsilon must be a finite number >= 0. Got -1."),
        (lambda: audit(noise, math.nan), "epsilon must be a finite number >= 0. Got nan."),
        (
            lambda: audit(mechanism=[1], epsilon=1),
            "mechanism must be a mechanism, a Design or a Certificate. Got list.",
        ),
        (
            lambda: found.meets("rdp", epsilon=1),
            "notion must be one of pure, dp, pdp, metric, curve, tradeoff, renyi, zcdp, gdp. "
            "Got rdp.",
        ),
        (
            lambda: found.meets("pdp", epsilon=1, delta=2),
            "delta must be a number in [0, 1]. Got 2.",
        ),
        (
            lambda: found.meets("pure", epsilon=1, delta=0.1),
            "delta must be 0 for the notion pure. Got 0.1.",
        ),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert str(caught.value) == message


def test_a_large_law_with_ratios_at_the_bound_is_audited() -> None:
    """1,000 answers, 10 shifts both ways, every second ratio at e^ε up to rounding."""
    levels = np.minimum(np.arange(1000), 1000 - np.arange(1000)) // 10
    question = ModuloNoise(n=999, max_shift=10)
    found = audit(AdditiveNoise.from_pmf(question, np.exp(-1.5 * levels)), 1.5)
    assert len(found.pairs) == 20


def test_a_copy_of_an_audit_decides_every_claim_by_itself() -> None:
    audited = wb.audit(wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1]), 1)
    assert audited.meets("dp", epsilon=1, delta=0)
    for copied in (pickle.loads(pickle.dumps(audited)), copy.deepcopy(audited)):
        for _ in range(2):
            assert copied.meets("dp", epsilon=1, delta=0)
            assert not copied.meets("dp", epsilon=0.5, delta=0)
            assert not copied.meets("pure", epsilon=0.5)


def test_an_audit_keeps_the_laws_of_one_comparison_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Laws that are kept take memory that grows with the number of comparisons."""
    mechanism = AdditiveNoise(ModuloNoise(n=7, max_shift=7), [8, 7, 6, 5, 4, 3, 2, 1])
    make_comparisons = AdditiveNoise.comparisons
    laws: list[weakref.ref[Any]] = []
    kept_counts = []

    def watch_comparisons(self: AdditiveNoise) -> Iterator[Comparison]:
        for comparison in make_comparisons(self):
            laws.append(weakref.ref(comparison.q))
            yield comparison
            kept_counts.append(sum(law() is not None for law in laws))

    monkeypatch.setattr(AdditiveNoise, "comparisons", watch_comparisons)
    audit(mechanism, 1)
    assert len(kept_counts) > 5
    assert max(kept_counts) <= 2
