"""Test that the largest shift has the largest ratio, for even noise that falls with its size."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest

import workbench as wb
from tools.check_certificate import READERS, LineLaw, Refused, check_privacy
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.audit import audit, audit_extremes, audit_for_claim
from workbench.privacy.claim import Claim
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise


def draw_even_law(rng: random.Random) -> IntegerLaw:
    """Draw an even law, which often falls with |η|. Some laws have tails, and others have none."""
    right_half = sorted((rng.randint(1, 9) for _ in range(rng.randint(1, 5))), reverse=True)
    if rng.random() < 0.3:
        rng.shuffle(right_half)
    weights = [*right_half[:0:-1], *right_half]
    ratio = rng.choice([0, Fraction(1, 10), Fraction(rng.randint(1, 9), 10)])
    return IntegerLaw(1 - len(right_half), weights, rng.randint(1, len(weights)), ratio)


def is_even_and_falling_by_weights(law: IntegerLaw) -> bool:
    """Return whether a law is even and never rises with |η|, by its weights up to a large |η|."""
    end = law.last + 4 * law.period
    right = [law.weight(eta) for eta in range(end)]
    left = [law.weight(-eta) for eta in range(end)]
    return right == left and all(inner >= outer for inner, outer in pairwise(right))


@pytest.mark.parametrize("seed", range(60))
def test_a_law_is_called_even_and_falling_only_if_its_weights_are(seed: int):
    law = draw_even_law(random.Random(seed))
    has_long_period = law.period > law.last + 1
    if law.is_even_and_falling:
        assert is_even_and_falling_by_weights(law)
    else:
        # Laws with a long period are not recognised.
        assert has_long_period or not is_even_and_falling_by_weights(law)


def draw_noise(rng: random.Random, law: IntegerLaw) -> AdditiveIntegerNoise | AdditiveRealNoise:
    """Draw noise with a law, on the integers or the reals. Its largest shift is 1 to 4 steps."""
    reach = rng.randint(1, 4)
    point_mass = rng.choice([0, 0, Fraction(1, 3)])
    if rng.random() < 0.5:
        return AdditiveRealNoise(RealNoise(1), reach, law, Fraction(point_mass))
    return AdditiveIntegerNoise(IntegerNoise(reach), law)


@pytest.mark.parametrize("seed", range(60))
def test_the_audit_of_the_largest_shifts_equals_the_audit_of_all_shifts(seed: int):
    rng = random.Random(seed)
    noise = draw_noise(rng, draw_even_law(rng))
    full_audit = audit(noise, 1)
    short_audit = audit_extremes(noise, 1)
    assert short_audit.pure_ratio == full_audit.pure_ratio
    assert short_audit.pdp_delta == full_audit.pdp_delta
    assert short_audit.dp_delta == full_audit.dp_delta


@pytest.mark.parametrize("seed", range(60))
def test_one_shift_is_audited_if_the_noise_is_even_and_falls(seed: int):
    rng = random.Random(seed)
    law = draw_even_law(rng)
    noise = draw_noise(rng, law)
    all_pairs = audit(noise, 1).pairs
    audited_pairs = audit_extremes(noise, 1).pairs
    if law.is_even_and_falling:
        assert len(audited_pairs) == 1
        assert noise.audit_size.extremes == 1
    else:
        assert len(audited_pairs) == len(all_pairs)
        assert noise.audit_size.extremes is None


@pytest.mark.parametrize("seed", range(20))
def test_the_independent_checker_decides_the_same(seed: int):
    rng = random.Random(100 + seed)
    law = draw_even_law(rng)
    noise = AdditiveIntegerNoise(IntegerNoise(rng.randint(1, 3)), law)
    checker_law = LineLaw(law.first, law.weights, law.period, law.ratio)
    assert checker_law.is_unimodal() == law.is_even_and_falling
    checker_noise = READERS["integer-noise"](noise.to_dict())
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        claim = Claim("dp", epsilon)
        try:
            check_privacy(checker_noise, "dp", {None: epsilon}, {"delta": Fraction(0)})
            is_proven = True
        except Refused:
            is_proven = False
        assert audit(noise, epsilon).meets("dp", epsilon, 0) == is_proven
        assert audit_for_claim(noise, claim).holds(claim) == is_proven


def test_a_density_in_thousands_of_cells_is_certified_by_one_shift():
    design = wb.design(wb.RealNoise(1), epsilon=20, loss="squared")
    assert design.mechanism.steps > 400
    assert len(design.privacy.pairs) == 1
    assert design.certificate.deciding_audit.pure_epsilon <= 20
