"""Compute two laws whose hockey stick is the worst one of a mechanism, at every ε at once.

A pair (P*, Q*) dominates a mechanism if, for every E >= 0 (E stands for e^ε), the supremum over
neighbours of Σ max(0, P - E Q) is at most Σ max(0, P* - E Q*) (Zhu, Dong and Wang, 2022). For one
pair of neighbours, the sum is A - B E, where A and B are the masses under P and Q of the outcomes
with P > E Q. The supremum h(E) is therefore the maximum of finitely many lines A - B E, and is
convex and piecewise affine. Its vertices (E_j, h(E_j)) and its slope changes Q*_j there give the
pair that attains it exactly, in rational numbers:

    outcome j            Q*_j = slope change at E_j,  P*_j = E_j Q*_j
    one more outcome     Q* = 0, P* = h(∞): the mass that only P* has
    one more outcome     P* = 0, Q* = 1 - Σ Q*_j: the mass that only Q* has

For example, for randomized response with the laws (3/4, 1/4) and (1/4, 3/4), the lines are 0,
3/4 - E/4 and 1 - E. The vertices are E = 1/3 and E = 3, and the pair is the two laws themselves.
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

_MAX_FLOAT_ERROR = 1e-12  # A line may lie this far below the float envelope and still be on it.
_MIN_FLOAT_SLOPE = 1e-290  # Lines with a smaller slope are compared in exact arithmetic only.


def compute_dominating_pair(mechanism: Any) -> Laws:
    """Compute the exact dominating pair (P*, Q*) of a mechanism with its neighbour relation.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.

    Returns:
        Two laws on the same outcomes that attain the worst hockey stick at every ε.

    Raises:
        InvalidRequest: The argument is no mechanism.
    """
    # Each entry is a line A - B E: numerator and denominator of A, then those of B.
    lines = [(0, 1, 0, 1)]
    for laws in list_compared_laws(mechanism):
        lines += [(k, laws.p.total, l, laws.q.total) for k, l in laws.corners]
    heights = [a / a_total for a, a_total, *_ in lines]
    slopes = [b / b_total for *_, b, b_total in lines]
    exact_lines = set()
    for position in _select_upper_candidates(heights, slopes):
        a, a_total, b, b_total = lines[position]
        exact_lines.add((Fraction(a, a_total), Fraction(b, b_total)))
    envelope = _compute_upper_envelope(exact_lines)
    # Two lines a1 - b1 E and a2 - b2 E cross at E_j = (a1 - a2) / (b1 - b2), with Q*_j = b1 - b2.
    atoms = [(a1 - a2, b1 - b2) for (a1, b1), (a2, b2) in pairwise(envelope)]
    p_only = (envelope[-1][0], 0)
    q_only = (0, 1 - sum(q for _, q in atoms))
    outcomes = [outcome for outcome in [p_only, *atoms, q_only] if any(outcome)]
    p_masses, q_masses = zip(*outcomes, strict=True)
    return Laws(Distribution(p_masses), Distribution(q_masses))


def list_compared_laws(mechanism: Any) -> list[Laws]:
    """List the pairs of laws that are compared, each different pair once.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
    """
    comparisons = as_mechanism(mechanism).comparisons()
    law_pairs = dict.fromkeys((comparison.p, comparison.q) for comparison in comparisons)
    return [Laws(p, q) for p, q in law_pairs]


def _select_upper_candidates(heights: list[float], slopes: list[float]) -> list[int]:
    """Return the positions of lines A - B E that may be on the upper envelope.

    A line is dropped if its point (B, A) lies clearly below the concave hull of all points.
    """
    a = np.array(heights)
    b = np.array(slopes)
    envelope = _compute_upper_envelope({*zip(heights, slopes, strict=True)})
    hull: Vector = np.array(envelope)[::-1]  # `np.interp` needs increasing B.
    is_near = a >= np.interp(b, hull[:, 1], hull[:, 0]) - _MAX_FLOAT_ERROR
    return np.flatnonzero(is_near | (b < _MIN_FLOAT_SLOPE)).tolist()


def _compute_upper_envelope(lines: set[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """Return the lines (A, B) of the upper envelope of A - B E on E >= 0, largest B first."""
    hull: list[tuple[Number, Number]] = []
    for a, b in sorted(lines, key=lambda line: (-line[1], line[0])):
        # A line that is lower at E = 0 and falls faster is never on the envelope.
        while hull and hull[-1][0] <= a:
            hull.pop()
        while len(hull) > 1:
            (a1, b1), (a2, b2) = hull[-2], hull[-1]
            if (a1 - a) * (b1 - b2) <= (a1 - a2) * (b1 - b):
                hull.pop()  # The new line crosses before the last line does.
            else:
                break
        hull.append((a, b))
    return hull
