"""Test that a repaired mechanism is exactly private and close to the input, or an error is raised.

A solver returns masses that are private up to rounding. A repair rounds them to rationals, raises
masses that are too small, or mixes in a mechanism without information, until the claim holds exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from certificate_samples import certify_channel, certify_quantizer
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.exact.numbers import exp_bounds
from workbench.families.quantizer.certify import repair_quantizer
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.privacy.audit import audit_extremes
from workbench.privacy.claim import Claim
from workbench.privacy.repair import (
    compute_exact_loss,
    find_violation_pattern,
    raise_weights,
    repair_noise,
)


def make_claim(name: str, budgets: dict[tuple[int, ...], Fraction], delta: Fraction) -> Claim:
    """Make a claim with a budget ε for each shift."""
    return Claim(name, budgets, delta)


def to_fractions(weights: np.ndarray) -> list[Fraction]:
    """Divide weights by their sum in floats, and return the exact values of the floats."""
    return [Fraction(mass) for mass in (weights / weights.sum()).tolist()]


def make_staircase(n: int, reach: int, epsilon: float) -> list[Fraction]:
    """Return the optimal masses at δ = 0 for symmetric neighbours at distance up to `reach`.

    They are floats, so their ratios equal e^ε up to rounding, in both directions.
    """
    noise_values = np.arange(n + 1)
    distances = np.minimum(noise_values, n + 1 - noise_values)
    return to_fractions(np.exp(-epsilon * np.ceil(distances / reach)))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(4, 24),
    st.integers(1, 3),
    st.sampled_from(["0.3", "1", "2.5"]),
    st.sampled_from(["0", "1e-9", "0.05"]),
)
def test_tight_floats_become_private_and_hardly_move(n, reach, epsilon, delta):
    question = wb.ModuloNoise(n=n, max_shift=reach)
    budgets = question.budgets(epsilon)
    masses = make_staircase(n, reach, float(epsilon))
    for notion in ("pdp", "dp", "pure"):
        allowed_delta = Fraction(delta) if notion != "pure" else Fraction(0)
        claim = make_claim(notion, budgets, allowed_delta)
        repaired = repair_noise(question, masses, claim).mechanism
        assert wb.audit(repaired, budgets).meets(notion, budgets, allowed_delta)
        changes = [abs(a - b) for a, b in zip(repaired.exact_pmf, masses, strict=True)]
        assert sum(changes) < 1e-14


def test_weights_are_raised_to_the_least_that_their_predecessors_allow():
    question = wb.ModuloNoise(n=6, shifts=[1], directed=True)
    budgets = question.budgets(1)
    weights = raise_weights(question, [10**30, 0, 0, 0, 0, 0, 1], budgets, pattern=None)
    # A rational slightly below e.
    low, _ = exp_bounds(Fraction(1), 112)
    max_ratio = Fraction(low, 1 << 112)
    for eta in range(6):
        assert weights[eta + 1] == math.ceil(weights[eta] / max_ratio)
    assert weights[0] == 10**30


def test_zero_masses_stay_zero_and_the_budget_is_kept():
    question = wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True)
    budgets = question.budgets("1.5")
    weights = np.array([1.0] + [math.exp(-1.5)] * 3 + [math.exp(-3)] * 3 + [0.0, 0.0])
    claim = make_claim("pdp", budgets, Fraction("0.1212"))
    repaired = repair_noise(question, to_fractions(weights), claim).mechanism
    assert repaired.exact_pmf[7] == repaired.exact_pmf[8] == 0
    assert wb.audit(repaired, budgets).meets("pdp", budgets, "0.1212")
    # The mass before the zeros is above every ratio.
    violations = find_violation_pattern(repaired, budgets)
    assert any(is_violated.any() for is_violated in violations.values())


def test_a_mixture_reaches_a_missed_delta():
    question = wb.ModuloNoise(n=5, max_shift=1)
    budgets = question.budgets(1)
    masses = [Fraction(percent, 100) for percent in (60, 15, 5, 0, 5, 15)]
    audit_before_repair = wb.audit(wb.AdditiveNoise(question, masses), budgets)
    for notion, delta in (("dp", "0.05"), ("pdp", "0.001"), ("dp", "1e-9")):
        assert not audit_before_repair.meets(notion, budgets, delta)
        claim = make_claim(notion, budgets, Fraction(delta))
        repaired = repair_noise(question, masses, claim).mechanism
        assert wb.audit(repaired, budgets).meets(notion, budgets, delta)


def test_negative_masses_are_refused():
    question = wb.ModuloNoise(n=2, max_shift=1)
    claim = make_claim("pure", question.budgets(1), Fraction(0))
    with pytest.raises(wb.NotCertified, match="no mass"):
        repair_noise(question, [Fraction(-1)] * 3, claim)


def test_extremely_small_masses_are_refused():
    question = wb.ModuloNoise(n=2, max_shift=1)
    claim = make_claim("pure", question.budgets(1), Fraction(0))
    tiny = Fraction(1, 1 << 5000)
    with pytest.raises(wb.NotCertified, match="bits"):
        repair_noise(question, [1 - 2 * tiny, tiny, tiny], claim)


def test_the_exact_loss_is_the_mean_over_noise_values_and_rows_of_losses():
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [1, 1, 1])
    assert compute_exact_loss(noise, [0, 1, 4]) == Fraction(5, 3)
    assert compute_exact_loss(noise, [[0, 1, 4], [1, 1, 1]]) == Fraction(5, 3)


def test_noise_with_a_budget_for_each_shift_is_repaired():
    question = wb.ModuloNoise(sizes=(3, 4), shifts=[(0, 1), (1, 0)])
    budgets = question.budgets({(0, 1): "0.5", (1, 0): 1})
    masses = to_fractions(np.random.default_rng(5).random(12))
    claim = make_claim("pure", budgets, Fraction(0))
    privacy = wb.audit(repair_noise(question, masses, claim).mechanism, budgets)
    assert privacy.meets("metric", budgets)
    assert not privacy.meets("metric", question.budgets("0.49"))


# Channels.


def make_random_rows(seed: int, answers: int, outputs: int) -> np.ndarray:
    """Return random rows of a channel without tiny masses, shape (answers, outputs)."""
    rows = np.random.default_rng(seed).random((answers, outputs)) + 0.2
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("notion", ["pure", "dp", "pdp"])
@pytest.mark.parametrize("pairs", ["all", [(0, 1), (1, 2), (2, 3)]])
def test_any_channel_can_be_certified_by_mixing(notion, pairs):
    delta = 0 if notion == "pure" else "0.001"
    proof = certify_channel(
        make_random_rows(seed=1, answers=4, outputs=5),
        pairs,
        notion=notion,
        epsilon="0.3",
        delta=delta,
    )
    assert proof.privacy.meets(notion, "0.3", delta)
    assert 0 < proof.record["repair_mixed_in"] < 1
    assert len(proof.mechanism.pairs) == (12 if pairs == "all" else 6)


def test_a_private_channel_is_not_changed():
    rows = [[Fraction(3, 5), Fraction(2, 5)], [Fraction(2, 5), Fraction(3, 5)]]
    proof = certify_channel(rows, epsilon="0.41")
    assert proof.mechanism == Channel.from_rows(rows)
    assert proof.record == {}
    with pytest.raises(wb.NotCertified):
        wb.Certificate(proof.mechanism, "pure", Fraction("0.405"))


def test_tight_randomized_response_moves_by_rounding_only():
    odds = math.exp(0.7)
    for count in range(2, 12):
        weights = np.ones((count, count)) + (odds - 1) * np.eye(count)
        rows = weights / (odds + count - 1)
        proof = certify_channel(rows, epsilon="0.7")
        assert proof.privacy.meets("pure", "0.7")
        assert np.abs(proof.mechanism.matrix - rows).max() < 1e-14


def test_tiny_masses_on_unused_outputs_barely_change_the_repair():
    # Solvers return 1e-17 in place of 0. It must not move the repaired channel to the average row.
    rows = np.array([[0.6, 0.4, 0.0, 1e-17], [0.4, 0.6, 0.0, 0.0], [0.5, 0.5, 1e-15, 0.0]])
    proof = certify_channel(rows, epsilon="0.5")
    assert proof.privacy.meets("pure", "0.5")
    assert np.abs(proof.mechanism.matrix - rows).max() < 1e-8


OUTPUTS = [-4.0, -1.0, 1.0, 3.0, 6.0]
LABELS = [0.0, 1.0, 2.0]
# The solution of a linear program, to 8 digits. It is neither exactly private nor exactly unbiased.
UNBIASED = np.array(
    [
        [0.03995318, 0.6911054, 0.0, 0.25424347, 0.01469795],
        [0.01469795, 0.48530205, 0.0, 0.48530205, 0.01469795],
        [0.01469795, 0.25424347, 0.0, 0.6911054, 0.03995318],
    ]
)


def test_repair_preserves_unbiasedness_exactly():
    proof = certify_channel(UNBIASED, epsilon=1, outputs=OUTPUTS, unbiased_for=LABELS)
    assert proof.bias.worst == 0
    for row, label in zip(proof.mechanism.rows, (0, 1, 2), strict=True):
        assert row.mean([Fraction(output) for output in OUTPUTS]) == label
    assert np.abs(proof.mechanism.matrix - UNBIASED).max() < 1e-6
    assert "exactly unbiased" in str(proof)


# At ε = 0.05 the outputs are too close to the labels for an unbiased mechanism.


def test_impossible_unbiasedness_is_refused():
    with pytest.raises(wb.NotCertified, match="unbiased"):
        certify_channel(UNBIASED, epsilon="0.05", outputs=OUTPUTS, unbiased_for=LABELS)


def test_the_exact_bias_is_stated_if_it_is_allowed():
    proof = certify_channel(
        UNBIASED, epsilon="0.05", outputs=OUTPUTS, unbiased_for=LABELS, allow_bias=True
    )
    means = [row.mean([Fraction(output) for output in OUTPUTS]) for row in proof.mechanism.rows]
    biases = [abs(mean - label) for mean, label in zip(means, (0, 1, 2), strict=True)]
    assert proof.bias.worst == max(biases) > 0
    assert "largest bias" in str(proof)


def test_metric_budgets_scale_with_the_distance():
    rows = [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]]
    proof = certify_channel(
        rows, notion="metric", epsilon={(0, 1): "0.3", (0, 2): "0.6", (1, 2): "0.3"}
    )
    assert proof.epsilon[0, 2] == 2 * proof.epsilon[0, 1] == Fraction(3, 5)
    assert proof.privacy.meets("metric", proof.epsilon)
    with pytest.raises(wb.InvalidRequest, match="no budget for pair"):
        certify_channel(rows, notion="metric", epsilon={(0, 1): 1})


# Quantizers.


def test_a_quantizer_of_two_outputs_has_its_known_ratio_and_no_smaller_one():
    """For outputs ±B on [-c, c], Pr[+B|x] = (x + B)/2B. Its largest ratio is (B + c)/(B - c)."""
    ends = [[Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]]
    proof = certify_quantizer([-1, 1], [-3, 3], ends, epsilon="0.6932")
    assert proof.bias.worst == 0
    assert proof.privacy.pure_ratio == 2
    # B < c (e^ε + 1)/(e^ε - 1), so no unbiased mechanism exists.
    with pytest.raises(wb.NotCertified):
        certify_quantizer([-1, 1], [-3, 3], ends, epsilon="0.69")


def test_a_jump_between_knots_is_detected():
    """The ends of the interval alone would miss the one-sided limits at the knot 0."""
    ends = [[0.5, 0.5], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]
    law = wb.PiecewiseAffine.from_laws([-1, 0, 1], [-3, 3], ends)
    proof = wb.certify(law, "pure", 2)
    assert math.exp(proof.privacy.pure_epsilon) == pytest.approx(0.7 / 0.2)
    assert wb.audit(law, 1).worst_result("metric").measurement.value is None
    with pytest.raises(wb.NotCertified):
        wb.Certificate(law, "metric", Fraction(100))
    with pytest.raises(wb.InvalidRequest, match="real inputs"):
        _ = proof.privacy.pdp_delta  # End laws alone would understate it.


def test_quantizer_repair_keeps_means_and_continuity():
    """Randomized response at ε = 1 with a middle output without mass, repaired for ε = 1.0001."""
    smaller_mass = 1 / (math.e + 1)
    larger_mass = 1 - smaller_mass
    # The laws at both ends of the pieces [-1, 0] and [0, 1].
    ends = [
        [larger_mass, 0, smaller_mass],
        [0.5, 0, 0.5],
        [0.5, 0, 0.5],
        [smaller_mass, 0, larger_mass],
    ]
    largest_output = 1 / (larger_mass - smaller_mass)
    outputs = [-largest_output, 0.0, largest_output]
    repaired = certify_quantizer([-1, 0, 1], outputs, ends, epsilon="1.0001").mechanism
    assert repaired.bias == 0
    assert repaired.ends[1] == repaired.ends[2]
    max_ratio = math.exp(1.0001) * (1 + 1e-12)
    for x, y in np.random.default_rng(3).uniform(low=-1, high=1, size=(50, 2)):
        p = repaired.law(float(x))
        q = repaired.law(float(y))
        assert max(float(p[i] / q[i]) for i in range(3) if q[i]) <= max_ratio


def test_metric_privacy_of_a_quantizer_between_knots():
    ends = [[0.6, 0.4], [0.4, 0.6]]
    law = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], ends)
    largest_slope = float(wb.audit(law, 1).worst_result("metric").measurement.value)
    assert largest_slope == pytest.approx(0.5)  # The slope 0.2 over the least mass 0.4.
    inputs = np.linspace(0, 1, 101)
    log_masses = np.log([law.law(float(x)).floats for x in inputs])
    slopes = np.abs(np.diff(log_masses, axis=0)) / np.diff(inputs)[:, None]
    assert 0.99 * largest_slope < slopes.max() <= largest_slope * (1 + 1e-12)


def test_outputs_that_barely_cover_the_inputs_are_repaired_without_bias():
    """The outer outputs are a millionth beyond ±1.

    A share 2^-16 of the average law already moves means at ±1 out of their reach.
    """
    outer, inner = Fraction("1.000001"), Fraction("0.333333")
    outputs = [-outer, -inner, inner, outer]
    knots = [Fraction(-1), -inner, inner, Fraction(1)]

    def round_at_random(x: Fraction, left: int) -> list[Fraction]:
        """Return the law that rounds x at random to the outputs `left` and `left + 1`."""
        masses = [Fraction(0)] * 4
        masses[left + 1] = (x - outputs[left]) / (outputs[left + 1] - outputs[left])
        masses[left] = 1 - masses[left + 1]
        return masses

    ends = [(round_at_random(knots[k], k), round_at_random(knots[k + 1], k)) for k in range(3)]
    quantizer = Quantizer.from_ends("rounding", outputs, knots, ends)
    assert audit_extremes(quantizer, 0).pure_epsilon == math.inf
    repaired, mixed_in_share = repair_quantizer(quantizer, Fraction(20))
    assert audit_extremes(repaired, 0).meets("pure", 20)
    assert repaired.bias == 0
    assert 0 < mixed_in_share < Fraction(1, 64)
