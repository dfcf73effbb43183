"""Test the exact audit of additive noise modulo n + 1, mostly against the slow audit of `audit_truth`.

An audit measures the smallest δ under DP and under PDP (probabilistic DP) at ε, and the largest
ratio of two masses, e^ε of pure DP. PDP counts the whole mass of each output whose ratio exceeds
e^ε, and DP only the excess (the hockey stick).
"""

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


def compare_with_slow_audit(noise: AdditiveNoise, epsilon: Any) -> None:
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
    compare_with_slow_audit(noise, epsilon)


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
    compare_with_slow_audit(
        AdditiveNoise.from_pmf(question, masses * (1 + np.array(ulps) * 2.0**-52)), epsilon
    )


# Masses that are subnormal doubles, and larger ones.
SUBNORMAL = [0.0, 5e-324, 1e-323, 1.5e-323, 2e-310, 2.3e-308, 1e-200, 0.3, 1.0]


@given(
    st.lists(st.sampled_from(SUBNORMAL), min_size=5, max_size=5).filter(any),
    st.sampled_from(["0", "1e-9", "0.5", "1.0986122886681098", "700"]),
)
@settings(max_examples=60, deadline=None)
def test_subnormal_masses_are_audited_exactly(pmf: list[float], epsilon: str) -> None:
    compare_with_slow_audit(AdditiveNoise.from_pmf(ModuloNoise(n=4, max_shift=2), pmf), epsilon)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1.5", "30", "700"])
@pytest.mark.parametrize("bits", [53, 96, 200, 1000])
def test_the_largest_private_integer_is_private_and_the_next_one_is_not(
    epsilon: str, bits: int
) -> None:
    """The masses are (k, l) with l = 2^bits. The largest private k is ⌊l e^ε⌋.

    The PDP δ of the next k is its whole mass, and its DP δ is less than two units of 1/l.
    """
    budget = Fraction(epsilon)
    unit_count = 2**bits
    largest, _ = exp_bounds(budget, bits)
    question = ModuloNoise(n=1, max_shift=1)
    with localcontext() as context:
        context.prec = DIGITS
        assert largest < decimal(budget).exp() * unit_count < largest + 1
    private_audit = audit(AdditiveNoise(question, [largest, unit_count]), epsilon)
    assert private_audit.meets("pure", epsilon)
    assert (private_audit.pdp_delta, private_audit.dp_delta.upper) == (0, 0)
    next_audit = audit(AdditiveNoise(question, [largest + 1, unit_count]), epsilon)
    assert not next_audit.meets("pure", epsilon)
    assert not next_audit.meets("dp", epsilon)
    assert next_audit.pdp_delta == Fraction(largest + 1, largest + 1 + unit_count)
    assert next_audit.dp_delta.compare(Fraction(0)) > 0
    assert 0 < next_audit.dp_delta.upper < 2 / unit_count


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1"])
@pytest.mark.parametrize("bits", [53, 200, 1000])
def test_rows_with_different_totals_are_compared_exactly(epsilon: str, bits: int) -> None:
    """Pr[0|1] = 1/3 and Pr[0|0] = k/2^bits: private up to k = ⌊2^bits e^ε / 3⌋."""
    largest = exp_bounds(Fraction(epsilon), bits + 64)[0] // (3 << 64)
    for k, pdp_delta in ((largest, Fraction(0)), (largest + 1, Fraction(largest + 1, 2**bits))):
        channel = Channel.from_pairs([[k, 2**bits - k], [1, 2]], [(0, 1)], directed=True)
        privacy = audit(channel, epsilon)
        assert privacy.pdp_delta == pdp_delta
        assert privacy.pure_ratio == Fraction(3 * k, 2**bits)


# Table 1 of Kadam et al. 2024, for n = 8, μ̄ = 3, ε = 1.5. The keys are printed δ. The masses of
# each printed staircase are e^(-1.5 level), up to their sum.
TABLE_1_LEVELS = {
    "0": [0, 1, 1, 1, 2, 2, 2, 3, 3],
    "0.1238": [0, 1, 1, 1, 2, 2, 3, 3, 3],
    "0.1522": [0, 1, 1, 1, 2, 2, 3, 3, 4],
}
# The PDP δ of each staircase for symmetric neighbours: values of the current program, pinned.
SYMMETRIC_DELTAS = {"0": 0.785597, "0.1238": 0.802456, "0.1522": 0.806317}
# The masses that the paper prints.
TABLE_1_MASSES = {
    "0": [0.5432, 0.1212, 0.1212, 0.1212, 0.0270, 0.0270, 0.0270, 0.0060, 0.0060],
    "0.1238": [0.5548, 0.1238, 0.1238, 0.1238, 0.0276, 0.0276, 0.0062, 0.0062, 0.0062],
    "0.1522": [0.5575, 0.1244, 0.1244, 0.1244, 0.0278, 0.0278, 0.0062, 0.0062, 0.0014],
}


def make_staircase(levels: list[int], *, directed: bool) -> AdditiveNoise:
    """Return noise with the masses e^(-1.5 level), rounded so that every step is within ε = 1.5.

    Args:
        levels: The level of each noise value 0..8.
        directed: Whether the differences of neighbouring answers are 1..3 instead of ±1..±3.
    """
    # An integer slightly below 2^300 e^1.5.
    low, _ = exp_bounds(Fraction(3, 2), 300)
    weights = [2**900]  # Integer weights of the levels 0, 1, ...
    for _ in range(max(levels)):
        # Each quotient is rounded up, so the ratio of two levels is at most e^1.5.
        weights.append(-(-(weights[-1] << 300) // low))
    return AdditiveNoise(
        ModuloNoise(n=8, max_shift=3, directed=directed), [weights[level] for level in levels]
    )


@pytest.mark.parametrize("delta", TABLE_1_LEVELS)
def test_table_1_is_not_private_for_symmetric_neighbours(delta: str) -> None:
    noise = make_staircase(TABLE_1_LEVELS[delta], directed=False)
    assert noise.pmf == pytest.approx(np.array(TABLE_1_MASSES[delta]), abs=1e-4)
    privacy = audit(noise, 1.5)
    assert float(privacy.pdp_delta) == pytest.approx(SYMMETRIC_DELTAS[delta], abs=5e-7)
    assert not privacy.meets("pdp", epsilon=1.5, delta=delta)


# The needed δ are values of the current program, pinned. The printed 0.1238 is one of them, rounded
# down.
@pytest.mark.parametrize(
    ("delta", "needed_delta"),
    [("0", 0.0), ("0.1238", 0.1238036), ("0.1522", 0.1521565)],
)
def test_a_staircase_of_table_1_is_private_at_its_delta_for_directed_neighbours(
    delta: str, needed_delta: float
) -> None:
    """The paper's differences M are one-sided."""
    privacy = audit(make_staircase(TABLE_1_LEVELS[delta], directed=True), 1.5)
    assert float(privacy.pdp_delta) == pytest.approx(needed_delta, abs=1e-7)
    assert privacy.meets("pdp", epsilon=1.5, delta=privacy.pdp_delta)
    assert privacy.meets("pure", epsilon=1.5) == (delta == "0")


@pytest.mark.parametrize("delta", TABLE_1_MASSES)
def test_the_rounded_masses_of_table_1_are_not_private_at_any_printed_delta(delta: str) -> None:
    question = ModuloNoise(n=8, max_shift=3, directed=True)
    privacy = audit(AdditiveNoise.from_pmf(question, TABLE_1_MASSES[delta]), 1.5)
    assert not privacy.meets("pdp", epsilon=1.5, delta="0.1522")


def test_a_tight_mechanism_is_reported_at_its_budget() -> None:
    """Every step is slightly below e^1.5, so the largest loss rounds up to 1.5 itself."""
    privacy = audit(make_staircase(TABLE_1_LEVELS["0"], directed=True), 1.5)
    assert (privacy.pdp_delta, privacy.dp_delta.upper, privacy.pure_epsilon) == (0, 0.0, 1.5)
    verdict = privacy.verdict("pure", epsilon=1.5)
    assert "is private" in verdict
    assert "exact pure epsilon is 1.5, requested epsilon = 1.5 for one-sided" in verdict


# Noise with the masses 4/7, 2/7 and 1/7, and answers that differ by 1 modulo 3.


def test_directed_differences_compare_each_mass_with_the_next_one_only() -> None:
    """The ratios are 4/2, 2/1 and 1/4. The largest one is 2, and ln 2 is between 0.69 and 0.7."""
    noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1], directed=True), [4, 2, 1])
    assert audit(noise, "0.7").pure_ratio == 2
    assert audit(noise, "0.7").pdp_delta == 0
    assert audit(noise, "0.69").pdp_delta == Fraction(6, 7)


def test_symmetric_differences_compare_each_mass_with_both_others() -> None:
    """The largest ratio is 4/1, of the output 0 at the shift 2 = -1 modulo 3."""
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [4, 2, 1]), "0.7")
    assert privacy.pure_ratio == 4
    assert privacy.pdp_delta == Fraction(4, 7)
    worst_result = privacy.worst_result("pure")
    assert (worst_result.label, worst_result.measurement.outcome) == ((2,), 0)


def test_a_reachable_zero_is_never_pure() -> None:
    """The output with the mass 8/9 has the mass 0 for a neighbouring answer."""
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [8, 1, 0]), 50)
    assert (privacy.pure_ratio, privacy.pure_epsilon) == (None, math.inf)
    assert not privacy.meets("pure", "1e300")
    assert privacy.pdp_delta == Fraction(8, 9)
    assert (privacy.dp_delta.a, privacy.dp_delta.b) == (Fraction(8, 9), 0)
    assert "f(0) is 0.89 where f(2) is 0" in privacy.verdict("pure", epsilon=50)


def test_a_zero_that_is_only_compared_with_zeros_may_be_pure() -> None:
    """The shift 2 modulo 4 compares the masses 2 and 1, and 0 with 0."""
    privacy = audit(AdditiveNoise(ModuloNoise(n=3, shifts=[2]), [2, 0, 1, 0]), 1)
    assert privacy.pure_ratio == 2
    assert privacy.meets("pure", epsilon=1)


def test_delta_of_pdp_is_compared_exactly() -> None:
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [3, 1, 1]), "1e-3")
    assert privacy.pdp_delta == Fraction(3, 5)
    assert privacy.meets("pdp", "0.001", "0.6")
    assert not privacy.meets("pdp", "0.001", Fraction(3, 5) - Fraction(1, 2**300))


def test_delta_of_dp_is_compared_exactly() -> None:
    """δ = a - b e^ε is irrational. The audit has the rational a and b, and encloses δ."""
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [3, 1, 1]), "1e-3")
    assert (privacy.dp_delta.a, privacy.dp_delta.b) == (Fraction(3, 5), Fraction(1, 5))
    low, high = privacy.dp_delta.enclosure(1000)
    assert privacy.meets("dp", "0.001", high)
    assert not privacy.meets("dp", "0.001", low)
    assert privacy.dp_delta.lower <= low <= high <= privacy.dp_delta.upper


# Noise with the largest ratio 2 at the shift 1, and 4 at the shift 2. ln 2 = 0.693, ln 4 = 1.386.
NOISE_OF_TWO_SHIFTS = AdditiveNoise(ModuloNoise(n=4, shifts=[1, 2]), [8, 4, 2, 2, 4])


def test_each_shift_can_have_its_own_budget() -> None:
    budgets = {1: "0.7", 2: "1.4"}
    privacy = audit(NOISE_OF_TWO_SHIFTS, budgets)
    assert privacy.meets("metric", budgets)
    assert privacy.epsilon is None
    assert not audit(NOISE_OF_TWO_SHIFTS, "0.7").meets("pure", "0.7")


@pytest.mark.parametrize("budgets", [{1: "0.7", 2: "1.38"}, {1: "0.3", 2: "1.38"}])
def test_audits_with_a_budget_for_each_shift_agree_with_the_slow_audit(
    budgets: dict[int, str],
) -> None:
    compare_with_slow_audit(NOISE_OF_TWO_SHIFTS, budgets)


def test_the_verdict_names_the_shift_whose_budget_is_exceeded() -> None:
    budgets = {1: "0.7", 2: "1.38"}
    privacy = audit(NOISE_OF_TWO_SHIFTS, budgets)
    assert not privacy.meets("metric", budgets)
    verdict = privacy.verdict("metric", budgets)
    assert "NOT private" in verdict
    # ln 4 = 1.3862943611198906, rounded up.
    assert "exact pure epsilon is 1.3862943611198908" in verdict
    assert "(f(0) exceeds e^epsilon f(2) by 0.0025)" in verdict


def test_an_audit_decides_claims_at_other_budgets() -> None:
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [4, 2, 2]), 0.1)
    assert not privacy.meets("pdp", epsilon=0.1, delta=0.2)
    assert privacy.meets("pdp", epsilon=0.7, delta=0)
    assert privacy.audit_at(0.1) is privacy
    assert privacy.audit_at(0.7).epsilon == Fraction(7, 10)
    assert pickle.loads(pickle.dumps(privacy)) == privacy


# Verdicts. The numbers in them are values of the current program, pinned, unless a comment derives
# them.


def make_rounded_staircase() -> AdditiveNoise:
    """Return the staircase of Table 1 at δ = 0.1238 with masses that are rounded to doubles.

    Some ratios exceed e^1.5 by the rounding.
    """
    pmf = np.exp(-1.5 * np.array(TABLE_1_LEVELS["0.1238"]))
    return AdditiveNoise.from_pmf(ModuloNoise(n=8, max_shift=3, directed=True), pmf / pmf.sum())


def test_a_verdict_that_is_not_private_names_the_subject_the_numbers_and_the_worst_output() -> None:
    verdict = audit(make_rounded_staircase(), 1.5).verdict(
        "pdp", epsilon=1.5, delta="0.1212", subject="The solver's PMF"
    )
    assert verdict.startswith("The solver's PMF is NOT private")
    assert "exact PDP delta is 0.7339" in verdict
    assert "one-sided neighbours, requested 0.1212 (f(0) exceeds e^epsilon f(" in verdict
    assert verdict.endswith("e-17)")


def test_a_private_verdict_has_the_measured_and_the_requested_delta() -> None:
    assert audit(make_rounded_staircase(), 1.5).verdict("dp", epsilon=1.5, delta="0.1212") == (
        "The mechanism is private at the requested budget: exact DP delta is 0.0961793 "
        "at epsilon = 1.5 for one-sided neighbours, "
        "requested 0.1212"
    )


def test_a_verdict_about_symmetric_neighbours_does_not_name_them() -> None:
    question = ModuloNoise(n=8, max_shift=3)
    noise = AdditiveNoise(question, make_rounded_staircase().masses)
    verdict = audit(noise, 1.5).verdict("dp", epsilon=1.5, delta=1)
    assert "is private" in verdict
    assert verdict.endswith("exact DP delta is 0.719584 at epsilon = 1.5, requested 1")


def test_only_differences_that_are_not_closed_under_negation_are_called_one_sided() -> None:
    # Modulo 3, the differences 1 and 2 are negatives of each other.
    closed_noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1, 2], directed=True), [2, 1, 1])
    assert "one-sided" not in audit(closed_noise, 1).verdict("pure", epsilon=1)
    channel = Channel.from_pairs(rows=[[2, 1], [1, 2]], pairs=[(0, 1)], directed=True)
    assert "one-sided" in audit(channel, 1).verdict("pure", epsilon=1)


def test_a_verdict_has_enough_digits_to_tell_delta_from_the_requested_one() -> None:
    """The PDP δ is (3u + 1)/(5u + 1) for u = 10^12: 0.6 + 8e-14."""
    masses = [3 * 10**12 + 1, 10**12, 10**12]
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), masses), 1)
    verdict = privacy.verdict("pdp", epsilon=1, delta="0.6")
    assert "is 0.60000000000008 at epsilon = 1, requested 0.6 " in verdict


def test_a_verdict_states_a_difference_from_the_requested_delta_below_its_digits() -> None:
    """The PDP δ is (3u + 1)/(5u + 1) for u = 10^30: 0.6 + 8e-32."""
    masses = [3 * 10**30 + 1, 10**30, 10**30]
    privacy = audit(AdditiveNoise(ModuloNoise(n=2, shifts=[1]), masses), 1)
    verdict = privacy.verdict("pdp", epsilon=1, delta="0.6")
    assert "8e-32 above the requested one" in verdict


def test_invalid_arguments_of_an_audit_are_errors() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, shifts=[1]), [2, 1, 1])
    privacy = audit(noise, 1)
    for call, message in [
        (lambda: audit(noise, -1), "epsilon must be a finite number >= 0. Got -1."),
        (lambda: audit(noise, math.nan), "epsilon must be a finite number >= 0. Got nan."),
        (
            lambda: audit(mechanism=[1], epsilon=1),
            "mechanism must be a mechanism, a Design or a Certificate. Got list.",
        ),
        (
            lambda: privacy.meets("rdp", epsilon=1),
            "notion must be one of pure, dp, pdp, metric, curve, tradeoff, renyi, zcdp, gdp. "
            "Got rdp.",
        ),
        (
            lambda: privacy.meets("pdp", epsilon=1, delta=2),
            "delta must be a number in [0, 1]. Got 2.",
        ),
        (
            lambda: privacy.meets("pure", epsilon=1, delta=0.1),
            "delta must be 0 for the notion pure. Got 0.1.",
        ),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert str(caught.value) == message


def test_a_large_law_with_ratios_at_the_bound_is_audited() -> None:
    """There are 1,000 answers and 20 shifts. Every second ratio is e^ε up to rounding."""
    noise_values = np.arange(1000)
    levels = np.minimum(noise_values, 1000 - noise_values) // 10
    question = ModuloNoise(n=999, max_shift=10)
    privacy = audit(AdditiveNoise.from_pmf(question, np.exp(-1.5 * levels)), 1.5)
    assert len(privacy.pairs) == 20


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
        """Yield the comparisons, and count after each one the laws that still exist."""
        for comparison in make_comparisons(self):
            laws.append(weakref.ref(comparison.q))
            yield comparison
            kept_counts.append(sum(law() is not None for law in laws))

    monkeypatch.setattr(AdditiveNoise, "comparisons", watch_comparisons)
    audit(mechanism, 1)
    assert len(kept_counts) > 5
    assert max(kept_counts) <= 2
