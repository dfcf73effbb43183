"""How likely a finite channel reveals which of two neighbouring inputs it was given.

    exposure = max over ordered neighbours x, x' of Pr[S | x],  S = {o : Pr[o | x] > 10^4 e^ε Pr[o | x']}

Whoever sees an output in S knows almost surely that the input was not x'. Outputs that x' cannot produce are in S. A
channel from an interior point has tiny masses in place of most zeros, which reveal as much. So S includes all outputs
whose ratio is far above e^ε.

Under (ε, δ)-privacy, δ >= Pr[S | x] - e^ε Pr[S | x'] >= (1 - 10^-4) Pr[S | x]. So the exposure is at most
δ/(1 - 10^-4), and 0 where δ is 0.

Where answers are rounded to points at random, it is the exposure of the points.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.exact.arrays import Vector
from workbench.exact.numbers import ZERO, exp_interval
from workbench.mechanisms.channel import Channel

_MASSES = 50_000_000  # Masses of pairs above which the exposure is not worked out.
_FAR_ABOVE = 10_000  # A ratio of so many times e^ε is as revealing as an output that a neighbour cannot produce.
_EXP_BITS = 64  # Binary digits of e^ε.


def _bound_revealing_ratio(epsilon: Fraction) -> Fraction:
    """Return the ratio above which an output counts, 10^4 e^ε."""
    return _FAR_ABOVE * exp_interval(epsilon, _EXP_BITS)[1]


def find_float_exposure(
    rows: Vector, pairs: Iterable[tuple[int, int]], epsilon: Fraction, *, is_directed: bool = False
) -> tuple[float, tuple[int, int]] | None:
    """Find the largest exposure in floats, and its ordered pair.

    Args:
        rows: Masses, shape (inputs, outputs).
        pairs: Neighbouring row numbers.
        epsilon: The budget's ε.
        directed: Whether pairs are compared in the listed order only. Default: both orders.

    Returns:
        (exposure, pair); None where there are too many masses.
    """
    listed = np.array([*pairs], dtype=np.int64).reshape(-1, 2)
    if listed.shape[0] * rows.shape[1] > _MASSES:
        return None
    worst, of = 0.0, (0, 0)
    shown = rows * float(_bound_revealing_ratio(epsilon))
    orders = [listed.T] if is_directed else [listed.T, listed.T[::-1]]
    for first, second in orders:
        for start in range(0, len(first), 1024):
            i, j = first[start : start + 1024], second[start : start + 1024]
            alone = np.where(rows[i] > shown[j], rows[i], 0.0).sum(axis=1)
            at = int(alone.argmax())
            if alone[at] > worst:
                worst, of = float(alone[at]), (int(i[at]), int(j[at]))
    return worst, of


def compute_exposure(channel: Channel, epsilon: Fraction) -> Fraction | None:
    """Compute the exposure of a channel over its ordered neighbours; None where there are too many masses."""
    k = len(channel.rows)
    pairs: Any = channel.neighbours
    directed = pairs is not None
    if pairs is None:
        if k * k * len(channel.rows[0]) > 2 * _MASSES:
            return None
        pairs = [(i, j) for i in range(k) for j in range(i)]
    masses = np.array([[mass > 0 for mass in row.integers] for row in channel.rows])
    largest = find_float_exposure(
        np.where(masses, np.maximum(channel.matrix, 1e-300), 0.0),
        pairs,
        epsilon,
        is_directed=directed,
    )
    if largest is None:
        return None
    likely, (i, j) = largest
    p, q = channel.rows[i], channel.rows[j]
    ratio = _bound_revealing_ratio(epsilon) * p.total / q.total
    alone = sum(
        mass for mass, other in zip(p.integers, q.integers, strict=True) if mass > ratio * other
    )
    return Fraction(alone, p.total) if likely else ZERO
