"""Test that the largest shift has the largest ratio, for even noise that falls with its size."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import workbench as wb
from tools.check_certificate import READERS, LineLaw, Refused, check_privacy
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.audit import audit, audit_extremes, audit_for_claim
from workbench.privacy.claim import Claim
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise


def even_law(draw: random.Random) -> IntegerLaw:
    """Often falling, at times not, with and without tails."""
    half = sorted((draw.randint(1, 9) for _ in range(draw.randint(1, 5))), reverse=True)
    if draw.random() < 0.3:
        draw.shuffle(half)
    weights = [*half[:0:-1], *half]
    ratio = draw.choice([0, Fraction(1, 10), Fraction(draw.randint(1, 9), 10)])
    return IntegerLaw(1 - len(half), weights, draw.randint(1, len(weights)), ratio)


def by_hand(law: IntegerLaw) -> bool:
    far = law.last + 4 * law.period
    right, left = ([law.weight(sign * eta) for eta in range(far)] for sign in (1, -1))
    return right == left and all(a >= b for a, b in pairwise(right))


@pytest.mark.parametrize("seed", range(60))
def test_the_largest_shift_decides(seed: int):
    draw = random.Random(seed)
    law, reach = even_law(draw), draw.randint(1, 4)
    atom = draw.choice([0, 0, Fraction(1, 3)])
    noise: Any = AdditiveIntegerNoise(IntegerNoise(reach), law)
    if draw.random() < 0.5:
        noise = AdditiveRealNoise(RealNoise(1), reach, law, Fraction(atom))
    whole, few = audit(noise, 1), audit_extremes(noise, 1)
    assert few.pure_ratio == whole.pure_ratio
    assert (few.pdp_delta, few.dp_delta) == (whole.pdp_delta, whole.dp_delta)
    assert not law.is_even_and_falling or by_hand(law)
    assert law.is_even_and_falling or not by_hand(law) or law.period > law.last + 1
    assert len(few.pairs) == (1 if law.is_even_and_falling else 2 * reach)
    assert noise.audit_size.extremes == (1 if law.is_even_and_falling else None)


@pytest.mark.parametrize("seed", range(20))
def test_the_independent_checker_decides_the_same(seed: int):
    draw = random.Random(100 + seed)
    law, reach = even_law(draw), draw.randint(1, 3)
    noise = AdditiveIntegerNoise(IntegerNoise(reach), law)
    assert (
        LineLaw(law.first, law.weights, law.period, law.ratio).is_unimodal()
        == law.is_even_and_falling
    )
    read = READERS["integer-noise"](noise.to_dict())
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        claim = Claim("dp", epsilon)
        try:
            check_privacy(read, "dp", {None: epsilon}, {"delta": Fraction(0)})
            proven = True
        except Refused:
            proven = False
        assert (
            proven
            == audit(noise, epsilon).meets("dp", epsilon, 0)
            == audit_for_claim(noise, claim).holds(claim)
        )


def test_a_density_in_thousands_of_cells_is_certified_by_one_shift():
    design = wb.design(wb.RealNoise(1), epsilon=20, loss="squared")
    assert design.mechanism.steps > 400
    assert len(design.privacy.pairs) == 1
    assert design.certificate.deciding_audit.pure_epsilon <= 20
