"""Answers that noise on the reals publishes are taken as they are, not as the nearest floats."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.questions.unbounded_noise import RealNoise

LARGE = 2**53 + 1  # The nearest float is 2^53.
# The atom has nearly all mass, so the answer is published on the grid without noise.
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
def test_other_number_types_are_published_exactly(kind):
    assert BARE.publish(np.array([100], dtype=kind), insecure_seed=1).tolist() == [100.0]


def test_every_mechanism_reads_numbers_exactly() -> None:
    """Numbers beside a float in a list stay exact, and a float is the decimal that it shows."""
    assert BARE.publish([LARGE, 0.5], insecure_seed=1).tolist() == [2.0**53 + 2, 0.0]
    # Both numbers have the same nearest double.
    first = 10**17 + 8
    second = 10**17 + 9
    rows = Channel.from_rows([[1, 0], [0, 1]]).rows
    labelled = Channel(
        rows, None, ((Fraction(first), Fraction(second)), (Fraction(0), Fraction(1)))
    )
    assert labelled.sample([second, first, second]).tolist() == [1, 0, 1]
    ends = tuple(map(Fraction, (first - 1, second, second + 1)))
    cells = RangeMechanism(
        rows, None, ((Fraction(1), Fraction(2)), (Fraction(0), Fraction(1))), ends, Fraction(2)
    )
    assert cells.publish([first, second, Decimal(first), 1e17 + 16]).tolist() == [0, 1, 0, 1]
    quantizer = PiecewiseAffine(
        ends, (Fraction(0), Fraction(1)), (rows[0], rows[0], rows[1], rows[1])
    )
    for column in ([first, second], np.array([first, second]), [Fraction(first), Fraction(second)]):
        assert quantizer.publish(column).tolist() == [0, 1]
    tenths = RangeMechanism(
        rows, None, cells.axis_labels, (Fraction(0), Fraction(3, 10), Fraction(1)), Fraction(1)
    )
    assert tenths.publish(np.array([0.3, 0.29999999999999993])).tolist() == [1, 0]
    assert tenths.publish(np.array([0.3], dtype=np.float32)).tolist() == [1]
