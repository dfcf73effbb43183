"""Test that mechanisms read real answers exactly, not as the nearest floats.

The grid of `BARE` has the width 2, and `LARGE` = 2^53 + 1 is rounded up to the multiple 2^53 + 2.
A float of `LARGE` would be 2^53, which is itself a multiple.
"""

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
# The atom at 0 has 10^40 times the mass of the other noise. So the answer is only rounded.
BARE = AdditiveRealNoise(
    RealNoise(sensitivity=1, grid=2),
    steps=1,
    cells=IntegerLaw(first=0, weights=[1]),
    atom=Fraction(10**40),
)


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


def test_integers_beside_a_float_in_a_list_stay_exact() -> None:
    assert BARE.publish([LARGE, 0.5], insecure_seed=1).tolist() == [2.0**53 + 2, 0.0]


# These two numbers have the same nearest double.
FIRST = 10**17 + 8
SECOND = 10**17 + 9
# A mechanism that publishes the number of its row.
ROWS = Channel.from_rows([[1, 0], [0, 1]]).rows
OUTPUTS = (Fraction(0), Fraction(1))
# FIRST lies in the first cell, and SECOND is the end of both cells, which belongs to the second.
CELL_ENDS = (Fraction(FIRST - 1), Fraction(SECOND), Fraction(SECOND + 1))


def make_range_mechanism(ends: tuple[Fraction, ...], sensitivity: int) -> RangeMechanism:
    """Make a mechanism on two cells that publishes the number of the cell, 0 or 1."""
    points = (Fraction(1), Fraction(2))
    return RangeMechanism(ROWS, None, (points, OUTPUTS), ends, Fraction(sensitivity))


def test_a_channel_reads_labels_exactly() -> None:
    channel = Channel(ROWS, None, ((Fraction(FIRST), Fraction(SECOND)), OUTPUTS))
    assert channel.sample([SECOND, FIRST, SECOND]).tolist() == [1, 0, 1]


def test_a_range_mechanism_reads_answers_exactly() -> None:
    mechanism = make_range_mechanism(CELL_ENDS, sensitivity=2)
    answers = [FIRST, SECOND, Decimal(FIRST), 1e17 + 16]
    assert mechanism.publish(answers).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "answers",
    [[FIRST, SECOND], np.array([FIRST, SECOND]), [Fraction(FIRST), Fraction(SECOND)]],
    ids=["integers", "array", "fractions"],
)
def test_a_quantizer_reads_answers_exactly(answers: object) -> None:
    end_laws = (ROWS[0], ROWS[0], ROWS[1], ROWS[1])
    assert PiecewiseAffine(CELL_ENDS, OUTPUTS, end_laws).publish(answers).tolist() == [0, 1]


def test_a_float_is_read_as_the_decimal_that_it_shows() -> None:
    """The double 0.3 is slightly less than 3/10, but lies in the cell that begins at 3/10."""
    mechanism = make_range_mechanism((Fraction(0), Fraction(3, 10), Fraction(1)), sensitivity=1)
    assert mechanism.publish(np.array([0.3, 0.29999999999999993])).tolist() == [1, 0]
    assert mechanism.publish(np.array([0.3], dtype=np.float32)).tolist() == [1]
