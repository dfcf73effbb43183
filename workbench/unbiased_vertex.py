"""From the rays of an unbiased randomizer to an exact channel: the weights of a vertex, solved for in rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import unbiased
from workbench.mechanisms.channel import Channel

__all__ = ["mixture"]


def mixture(
    y: NDArray[np.float64], odds: Fraction, rays: unbiased.Rays, t: NDArray[np.float64]
) -> tuple[tuple[NDArray[np.float64], Channel], bool]:
    """((outputs, channel), whether exact): the mixture of rays, its weights solved for in rationals where they can be.

    At a vertex with 2k rays in use their weights solve the 2k equations; with exact odds <= e^ε every such mixture with
    weights >= 0 is exactly private and exactly unbiased.
    """
    used = np.flatnonzero(t > 0)
    k = y.size
    weights: list[Fraction] | None = None
    if used.size == 2 * k:
        weights = _solve_exactly(y, odds, rays.keep(used))
    exact = weights is not None
    mass = weights if weights is not None else [Fraction(float(value)) for value in t[used]]
    outputs, place = np.unique(rays.outputs[used], return_inverse=True)
    table = [[Fraction(0)] * outputs.size for _ in range(k)]
    for j, weight in enumerate(mass):
        raised = rays.raised[used[j]]
        for i in range(k):
            table[i][place[j]] += weight * odds if raised[i] else weight
    return (outputs, Channel.from_rows(table)), exact


def _solve_exactly(y: NDArray[np.float64], odds: Fraction, rays: unbiased.Rays) -> list[Fraction] | None:
    from flint import fmpq, fmpq_mat

    def rational(value: Fraction) -> Any:
        return fmpq(value.numerator, value.denominator)

    k = y.size
    labels, outputs = [Fraction(v) for v in y.tolist()], [Fraction(v) for v in rays.outputs.tolist()]
    left, right = fmpq_mat(2 * k, 2 * k), fmpq_mat(2 * k, 1)
    for i in range(k):
        right[i, 0] = fmpq(1)
        for j, output in enumerate(outputs):
            weight = odds if rays.raised[j, i] else Fraction(1)
            left[i, j], left[k + i, j] = rational(weight), rational(weight * (output - labels[i]))
    try:
        found = left.solve(right)
    except ZeroDivisionError:
        return None
    values = [Fraction(int(found[j, 0].p), int(found[j, 0].q)) for j in range(2 * k)]
    return values if min(values) >= 0 else None
