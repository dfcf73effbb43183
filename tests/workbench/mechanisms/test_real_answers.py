"""Answers that noise on the reals publishes are taken as they are, not as the nearest floats."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.real_noise import AdditiveRealNoise, RealNoise

LARGE = 2**53 + 1  # as a float it is 2^53
# no noise but the atom: what is published is the answer on the grid
BARE = AdditiveRealNoise(RealNoise(1, 2), 1, IntegerLaw(0, [1]), Fraction(10**40))


@pytest.mark.parametrize(
    "answers",
    [
        np.array([LARGE]),
        [LARGE],
        np.array([LARGE], dtype=object),
        np.array([np.int64(LARGE)], dtype=object),
        [Fraction(LARGE)],
        [Decimal(LARGE)],
    ],
)
def test_large_whole_answers_stay_exact(answers):
    assert BARE.publish(answers, insecure_seed=1).tolist() == [2.0**53 + 2]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.longdouble, np.int8])
def test_other_kinds_of_numbers(kind):
    assert BARE.publish(np.array([100], dtype=kind), insecure_seed=1).tolist() == [100.0]
