"""Test the unbiased totals of a channel by listing all outputs of a small table."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import workbench as wb
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.name_totals import estimate_totals

SQUARE = Channel.from_rows([[6, 2, 1], [1, 4, 1], [1, 1, 5]])
WIDE = Channel.from_rows([[4, 2, 1, 1], [1, 3, 3, 1]])


@pytest.mark.parametrize("channel", [SQUARE, WIDE], ids=["3 x 3", "2 x 4"])
def test_totals_are_unbiased_and_so_are_their_variances(channel: Channel) -> None:
    """Four rows with the inputs 0, 0, 1, 1 have 81 or 256 lists of outputs."""
    table = [0, 0, 1, 1]
    matrix = channel.matrix
    input_count, output_count = matrix.shape
    mean = np.zeros(input_count)
    second_moment = np.zeros(input_count)
    mean_variance = np.zeros(input_count)
    # The standard error is the root of an estimate that is never below 0 for many rows only, so
    # the estimate is computed again without the maximum.
    inverse = np.linalg.pinv(matrix.T)
    for outputs in product(range(output_count), repeat=len(table)):
        probability = np.prod([matrix[x, o] for x, o in zip(table, outputs, strict=True)])
        counts = np.bincount(outputs, minlength=output_count)
        totals = estimate_totals(channel, counts)
        variance = inverse**2 @ counts - totals.values
        assert totals.errors == pytest.approx(np.sqrt(np.maximum(variance, 0)))
        mean += probability * totals.values
        second_moment += probability * totals.values**2
        mean_variance += probability * variance
    assert mean == pytest.approx(np.bincount(table, minlength=input_count), abs=1e-12)
    assert mean_variance == pytest.approx(second_moment - mean**2, abs=1e-12)


def test_totals_of_randomized_response_are_those_by_hand() -> None:
    """M = (3/4, 1/4; 1/4, 3/4) and N = (60, 40): t = (2 * 60 - 50, 2 * 40 - 50) = (70, 30).

    A = (3/2, -1/2; -1/2, 3/2): Σ A² N = 9/4 * 60 + 1/4 * 40 = 145, so the variance is 75.
    """
    totals = estimate_totals(Channel.from_rows([[3, 1], [1, 3]]), np.array([60, 40]))
    assert totals.values == pytest.approx([70, 30])
    assert totals.errors == pytest.approx([75**0.5, 75**0.5])


@pytest.mark.parametrize("rows", [[[1, 1], [1, 1]], [[2, 1], [1, 1], [1, 2]]])
def test_dependent_laws_have_no_totals(rows: list[list[int]]) -> None:
    channel = Channel.from_rows(rows)
    with pytest.raises(wb.InvalidRequest, match="linearly dependent"):
        estimate_totals(channel, np.ones(2, dtype=np.int64))
