"""From the rays of an unbiased randomizer to an exact channel, with E[o|y] = y and the privacy bound in rationals.

A mixture of rays with weights >= 0 is exactly private when the odds of a ray are a rational <= e^ε. What is left are
the 2k equations "total" and "mean" of `models.unbiased`:

    at a vertex        2k rays are in use: their weights are the solution of the equations
    otherwise          (degenerate) the solver's weights t, floats that miss the equations by some 1e-8, are kept as
                       (1-θ) t, and what is missing is made up by 2k further rays, for the least θ = 2^-j that leaves
                       their weights >= 0

The further rays are two for every label, (o_i - h, {i}) and (o_i + h, {i}) around the outputs o_i of k-ary randomized
response with its bias taken out. With Σ w t = R_i and Σ w o t = C_i to be made up for label i, and q = odds - 1,

    s_i = (R_i - Σ R/(k+q)) / q,   c_i = (C_i - Σ C/(k+q)) / q            (sum and first moment of the two weights)
    weights  (s_i o'' - c_i) / (o'' - o'),  (c_i - s_i o') / (o'' - o')   for the outputs o' < o''
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import unbiased
from workbench.mechanisms.channel import Channel

__all__ = ["mixture"]

Vector = NDArray[np.float64]
_VERTEX = 120  # rays up to which the equations are solved: the digits of the weights grow with their number
_SHARES = range(40, 0, -1)


def mixture(y: Vector, odds: Fraction, rays: unbiased.Rays, t: Vector) -> tuple[Vector, Channel, Fraction]:
    """(outputs, channel, θ): exactly private and exactly unbiased; θ is the share of further rays, 0 at a vertex.

    y: (k,) labels; odds <= e^ε; t: the solver's weights of the rays. Raises ArithmeticError when no share is enough.
    """
    used = np.flatnonzero(t > 0)
    kept, share = rays.keep(used), Fraction(0)
    weights: list[Fraction] | None = None
    if used.size >= 2 * y.size and 2 * y.size <= _VERTEX:
        heaviest = rays.keep(np.sort(np.argsort(-t, kind="stable")[: 2 * y.size]))
        weights = _solve_exactly(y, odds, heaviest)
        kept = kept if weights is None else heaviest
    if weights is None:
        kept, weights, share = _completed(y, odds, kept, t[used])
    outputs, place = np.unique(kept.outputs, return_inverse=True)
    table = [[Fraction(0)] * outputs.size for _ in range(y.size)]
    for j, weight in enumerate(weights):
        for i, raised in enumerate(kept.raised[j]):
            table[i][place[j]] += weight * odds if raised else weight
    return outputs, Channel.from_rows(table), share


def _completed(
    y: Vector, odds: Fraction, rays: unbiased.Rays, t: Vector
) -> tuple[unbiased.Rays, list[Fraction], Fraction]:
    """The rays in use and the further ones, with weights that meet the equations exactly, and θ."""
    k, q = y.size, odds - 1
    centres = unbiased.start(y, float(q))
    h = float(np.ptp(y)) / k
    below, above = centres.outputs - h, centres.outputs + h
    labels, given = [Fraction(v) for v in y.tolist()], [Fraction(v) for v in t.tolist()]
    outputs = [Fraction(v) for v in rays.outputs.tolist()]
    moments = [weight * o for weight, o in zip(given, outputs, strict=True)]
    total = [_sum(given, rays.raised[:, i], odds) for i in range(k)]
    first = [_sum(moments, rays.raised[:, i], odds) for i in range(k)]
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(below.tolist(), above.tolist(), strict=True)]
    for power in _SHARES:
        share = Fraction(1, 1 << power)
        s = _per_label([1 - (1 - share) * value for value in total], q)
        c = _per_label([label - (1 - share) * value for label, value in zip(labels, first, strict=True)], q)
        low = [(si * b - ci) / (b - a) for si, ci, (a, b) in zip(s, c, ends, strict=True)]
        high = [(ci - si * a) / (b - a) for si, ci, (a, b) in zip(s, c, ends, strict=True)]
        if min(low) >= 0 and min(high) >= 0:
            more = unbiased.Rays(np.concatenate([below, above]), np.concatenate([centres.raised, centres.raised]))
            return rays.plus(more), [(1 - share) * value for value in given] + low + high, share
    raise ArithmeticError("the solver's weights are too far from an unbiased mechanism")


def _sum(terms: list[Fraction], raised: NDArray[np.bool_], odds: Fraction) -> Fraction:
    return sum((term * odds if up else term for term, up in zip(terms, raised, strict=True)), Fraction(0))


def _per_label(missing: list[Fraction], q: Fraction) -> list[Fraction]:
    """x with Σ x + q x_i = missing_i."""
    common = sum(missing, Fraction(0)) / (len(missing) + q)
    return [(value - common) / q for value in missing]


def _solve_exactly(y: Vector, odds: Fraction, rays: unbiased.Rays) -> list[Fraction] | None:
    """The weights of 2k rays; None when they are not determined, or not all >= 0."""
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
        vertex = left.solve(right)
    except ZeroDivisionError:
        return None
    values = [Fraction(int(vertex[j, 0].p), int(vertex[j, 0].q)) for j in range(2 * k)]
    return values if min(values) >= 0 else None
