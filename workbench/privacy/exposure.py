"""Compute how likely the output of a finite channel reveals which of two neighbours was the input.

    exposure = max over ordered neighbours x, x' of Pr[S | x]
    S        = {o : Pr[o | x] > 10^4 e^ε Pr[o | x']}

Whoever sees an output in S knows almost surely that the input was not x'. Outputs that x' cannot
produce are in S. A channel from an interior-point solver has tiny masses in place of most zeros,
which reveal as much. So S also includes all outputs whose ratio is far above e^ε.

Under (ε, δ)-privacy, δ >= Pr[S | x] - e^ε Pr[S | x'] >= (1 - 10^-4) Pr[S | x]. So the exposure is
at most δ/(1 - 10^-4), and 0 if δ is 0.

If answers are rounded to points at random, this is the exposure of the points.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.exact.arrays import Vector
from workbench.exact.numbers import exp_interval
from workbench.mechanisms.channel import Channel

_MAX_MASSES = 50_000_000  # With more masses in all pairs, the exposure is None.
_REVEALING_FACTOR = 10_000  # A ratio of this times e^ε is as revealing as an impossible output.
_EXP_BITS = 64  # Binary digits of e^ε.
_PAIRS_PER_BLOCK = 1024  # Pairs are compared in blocks of this size, which bounds the memory.
_SMALLEST_POSITIVE = 1e-300  # A positive mass is not rounded to 0 in floats.


def _bound_revealing_ratio(epsilon: Fraction) -> Fraction:
    """Return the ratio above which an output counts, 10^4 e^ε, rounded up."""
    _, exp_upper_bound = exp_interval(epsilon, _EXP_BITS)
    return _REVEALING_FACTOR * exp_upper_bound


def find_float_exposure(
    rows: Vector, pairs: Iterable[tuple[int, int]], epsilon: Fraction, *, is_directed: bool = False
) -> tuple[float, tuple[int, int]] | None:
    """Find the largest exposure in floats, and its ordered pair.

    Args:
        rows: Masses. Shape (inputs, outputs).
        pairs: Neighbouring row numbers.
        epsilon: ε of the budget.
        is_directed: Whether pairs are compared in the given order only. Default: both orders.

    Returns:
        (exposure, pair). If no output reveals anything, (0, (0, 0)). None if there are too many
        masses.
    """
    pair_array = np.array([*pairs], dtype=np.int64).reshape(-1, 2)
    if pair_array.shape[0] * rows.shape[1] > _MAX_MASSES:
        return None
    largest_exposure = 0.0
    largest_pair = (0, 0)
    thresholds = rows * float(_bound_revealing_ratio(epsilon))
    orders = [pair_array.T] if is_directed else [pair_array.T, pair_array.T[::-1]]
    for first, second in orders:
        for start in range(0, len(first), _PAIRS_PER_BLOCK):
            i = first[start : start + _PAIRS_PER_BLOCK]
            j = second[start : start + _PAIRS_PER_BLOCK]
            exposures = np.where(rows[i] > thresholds[j], rows[i], 0.0).sum(axis=1)
            index = int(exposures.argmax())
            if exposures[index] > largest_exposure:
                largest_exposure = float(exposures[index])
                largest_pair = (int(i[index]), int(j[index]))
    return largest_exposure, largest_pair


def compute_exposure(channel: Channel, epsilon: Fraction) -> Fraction | None:
    """Compute the exposure of a channel over its ordered neighbours.

    The worst pair is found in floats, and its exposure is exact.

    Args:
        channel: Channel with exact rows and a neighbour relation.
        epsilon: ε of the budget.

    Returns:
        The exact exposure of this pair, in [0, 1]. None if there are too many masses.
    """
    row_count = len(channel.rows)
    pairs: Any = channel.neighbours
    is_directed = pairs is not None
    if pairs is None:
        # There are about row_count² / 2 unordered pairs.
        if row_count * row_count * len(channel.rows[0]) > 2 * _MAX_MASSES:
            return None
        pairs = np.transpose(np.tril_indices(row_count, -1))  # All (i, j) with j < i, row by row.
    is_positive = np.array([[mass > 0 for mass in row.integers] for row in channel.rows])
    masses = np.where(is_positive, np.maximum(channel.matrix, _SMALLEST_POSITIVE), 0.0)
    largest = find_float_exposure(masses, pairs, epsilon, is_directed=is_directed)
    if largest is None:
        return None
    _, (i, j) = largest
    p = channel.rows[i]
    q = channel.rows[j]
    ratio = _bound_revealing_ratio(epsilon) * p.total / q.total
    revealing_mass = 0
    for mass, neighbour_mass in zip(p.integers, q.integers, strict=True):
        if mass > ratio * neighbour_mass:
            revealing_mass += mass
    return Fraction(revealing_mass, p.total)
