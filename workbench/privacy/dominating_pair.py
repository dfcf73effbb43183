"""The dominating pair of a mechanism, exact: the two laws that attain its worst hockey stick at every ε at once.

A pair (P*, Q*) dominates a mechanism when, for every E >= 0, sup over neighbours of Σ max(0, P - E Q) is at most
Σ max(0, P* - E Q*) (Zhu, Dong and Wang, 2022). The supremum is a convex, piecewise affine function h(E) of the pairs'
lines A - B E. Its vertices (E_j, h(E_j)) and slope changes Q*_j give the pair that attains it exactly, in rationals:

    outcome j      Q*_j = slope change at E_j,  P*_j = E_j Q*_j       and one outcome with Q* = 0, P* = h(∞)
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.mechanisms.mechanism import as_mechanism
from workbench.notions.laws import Laws

Number = TypeVar("Number", Fraction, float)


def compute_dominating_pair(mechanism: Any) -> Laws:
    """The exact dominating pair (P*, Q*) of a mechanism with its neighbour relation: two laws on the same outcomes that
    attain its worst hockey stick at every ε at once. Raises InvalidRequest."""
    points = [(0, 1, 0, 1)]  # A, B of the lines, each as a numerator and a denominator
    for laws in list_compared_laws(mechanism):
        points += [(k, laws.p.total, l, laws.q.total) for k, l in laws.corners]
    near = _select_upper_candidates(
        [a / of_a for a, of_a, *_ in points], [b / of_b for *_, b, of_b in points]
    )
    hull = _compute_upper_envelope(
        {
            (Fraction(a, of_a), Fraction(b, of_b))
            for a, of_a, b, of_b in map(points.__getitem__, near)
        }
    )
    # E_j (b - d) of P, for the vertex E_j = (high - low)/(b - d)
    both = [(high - low, b - d) for (high, b), (low, d) in pairwise(hull)]
    # beyond the last vertex h is constant: mass that Q cannot produce; in the end mass that P cannot
    atoms = [(hull[-1][0], 0), *both, (0, 1 - sum(q for _, q in both))]
    return Laws(*map(Distribution, zip(*filter(any, atoms), strict=True)))


def list_compared_laws(mechanism: Any) -> list[Laws]:
    """The different pairs of laws that are compared."""
    return [
        Laws(p, q)
        for p, q in dict.fromkeys(
            (pair.p, pair.q) for pair in as_mechanism(mechanism).comparisons()
        )
    ]


def _select_upper_candidates(heights: list[float], slopes: list[float]) -> list[int]:
    """The lines A - B E that may be on their upper envelope: those whose (B, A) lie no further below the concave curve
    over all of them than floats may err, or whose B is beyond floats."""
    a, b = np.array(heights), np.array(slopes)
    hull: Vector = np.array(_compute_upper_envelope({*zip(heights, slopes, strict=True)}))[::-1]
    return np.flatnonzero(
        (a >= np.interp(b, hull[:, 1], hull[:, 0]) - 1e-12) | (b < 1e-290)
    ).tolist()


def _compute_upper_envelope(lines: set[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """The lines (A, B) of the upper envelope of A - B E on E >= 0, steepest (largest B) first."""
    hull: list[tuple[Number, Number]] = []
    for a, b in sorted(lines, key=lambda line: (-line[1], line[0])):
        while hull and hull[-1][0] <= a:  # already lower at E = 0, and falling faster
            hull.pop()
        while len(hull) > 1:
            (a1, b1), (a2, b2) = hull[-2], hull[-1]
            if (a1 - a) * (b1 - b2) <= (a1 - a2) * (
                b1 - b
            ):  # the new line overtakes before the last one does
                hull.pop()
            else:
                break
        hull.append((a, b))
    return hull
