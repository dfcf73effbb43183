"""Test the largest integers that noise accepts.

Larger ones are refused, because the sum of noise and answer would not fit into 64 bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.data.plain import MAX_FILE_INTEGER
from workbench.errors import InvalidRequest
from workbench.exact.integer_law import IntegerLaw


@pytest.mark.parametrize(
    "first", [MAX_FILE_INTEGER + 1, -MAX_FILE_INTEGER - 1, 2**62, 2**63 - 5, 10**30]
)
def test_noise_on_too_large_integers_is_refused(first: int):
    """The sum with an answer would overflow, and become a number at the other end of the range."""
    with pytest.raises(InvalidRequest, match="first must be an integer in"):
        IntegerLaw(first, [1, 2, 1])


@pytest.mark.parametrize("low", [MAX_FILE_INTEGER - 4, -MAX_FILE_INTEGER - 1, 2**63 - 6, 2**70])
def test_clamping_ranges_of_too_large_integers_are_refused(low: int):
    with pytest.raises(InvalidRequest, match="clamp must be within"):
        wb.IntegerNoise(1, (low, low + 5))


@pytest.mark.parametrize("low", [MAX_FILE_INTEGER - 5, -MAX_FILE_INTEGER])
def test_the_farthest_clamp_is_published_inside_and_read_back(low: int, tmp_path):
    law = IntegerLaw(first=-3, weights=[1, 2, 4, 8, 4, 2, 1], period=1, ratio="1/2")
    noise = wb.AdditiveIntegerNoise(wb.IntegerNoise(1, (low, low + 5)), law)
    steps_above_low = noise.publish(np.full(500, low + 5), insecure_seed=3) - low
    assert set(steps_above_low.tolist()) <= set(range(6))
    # The answer is the upper end, which is published whenever the noise is not negative.
    assert (steps_above_low == 5).mean() > 0.5
    wb.certify(noise, "dp", epsilon=3, delta=0).save(tmp_path / "far.json")
    assert wb.check(tmp_path / "far.json").holds()


def test_the_farthest_answer_of_unclamped_noise_does_not_overflow():
    largest_answer = (1 << 62) - 1
    constant_noise = IntegerLaw(MAX_FILE_INTEGER, [1])
    mechanism = wb.AdditiveIntegerNoise(wb.IntegerNoise(1), constant_noise)
    published = mechanism.publish(np.array([largest_answer, -largest_answer]))
    assert published.tolist() == [
        largest_answer + MAX_FILE_INTEGER,
        MAX_FILE_INTEGER - largest_answer,
    ]
