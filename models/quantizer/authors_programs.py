"""State the linear programs of the authors' public code of OPTM for four bins.

The code is osu-srml/DP_Linprog. Its programs are not the program of Theorem 5 of Cai et al. 2024
(workbench.models.quantizer.two_bin, which defines the notation). B_1 < ... < B_4 are the bins; B_2
and B_3 are inside the input range (-c, c). p(x, i) is the probability of bin i at the input x. For
an input between two bins, q_j(i) is the probability of selecting bin i on the left side (q^l) or
the i-th bin from the right on the right side (q^r). Every q is at least 1e-5. A slice is an
interval [l, u] of values of q_2(1).

The products of two q's are not linear, so a bound replaces one factor. The two programs differ from
Theorem 5 in the factor that they replace, and in the probabilities that they compare:

* symmetric (optm.py): on a slice l <= q_2(1) <= u, p(B_2, 2) = q_2(2) is not bounded. In
  q_2(2) q_2(1) at B_3 the factor q_2(1) is replaced. p(B_3, 2) from the right is omitted.
* asymmetric (asy_optm.py): on slices of q^l_2(1) and q^r_2(1), a product of two q's is bounded
  below by the lower end of one of them, and above by 1. Every larger probability of any output is
  compared with every smaller one of any output, which is more than ε-DP needs. From the right, two
  terms are not the mirror images of those from the left: p(B_2, 4) has the coefficient
  (B_4 - B_2)/(B_4 - B_1) instead of (B_2 - B_1)/(B_4 - B_1), and in q^l_2(1) q^r_2(1) it is again
  q^r_2(1) that is replaced.

The programs compare fewer probabilities than ε-DP needs, so a solution must be audited.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.models.quantizer.two_bin import Entries, TwoBinShape, VectorKey

# The probabilities of outputs on one side that may be large, and those that may be small. Entries
# are (columns, coefficients) of a linear expression.
_Side = tuple[list[Entries], list[Entries]]

_MIN_SELECTION = 1e-5  # Every q is at least this.
_INPUT_END = 1.0  # The inputs are in [-c, c] with c = 1.


def _start_program(
    shape: TwoBinShape, slices: Mapping[VectorKey, tuple[float, float]], extra: int
) -> EntrywiseProgram:
    """Return a program with Σ q = 1 and q >= 1e-5, without an objective.

    slices: for a vector q, such as ("l", 2) for q^l_2, the bounds of its first entry. extra: the
    number of further columns.
    """
    bounds = {}
    for key in shape.columns:
        _, size = key
        lower = np.full(size, _MIN_SELECTION)
        upper = np.ones(size)
        if key in slices:
            low, high = slices[key]
            lower[0] = max(low, _MIN_SELECTION)
            upper[0] = high
        bounds[key] = (lower, upper)
    return shape.start_program(extra, bounds)


def build_symmetric_program(
    shape: TwoBinShape, epsilon: float, low: float, high: float
) -> EntrywiseProgram:
    """Return the program of a slice low <= q_2(1) <= high.

    Its objective is a multiple of (7) without the constant.

    Args:
        shape: the four bins, symmetric, two of them inside (-1, 1).
        epsilon: the budget ε > 0.
        low: the lower end of the slice.
        high: the upper end of the slice.
    """
    b1, b2, b3, b4 = shape.bins
    c = _INPUT_END
    q2 = shape.columns["l", 2]
    q3 = shape.columns["l", 3]
    program = _start_program(shape, {("l", 2): (low, high)}, extra=0)
    program.c[q3[:2]] = (b2 + c) * (b4 - b2), (b2 + c) * (b3 - b2)
    program.c[q2[0]] = -2 * b2 * (b2 - b1)

    def replace_factors(piece: int, x: float, bound: float = 1.0) -> list[Entries]:
        """Return p(x, i) for every bin i of the piece, with q_2 replaced by a bound in products."""
        return shape.replaced_probabilities(piece, x, {("l", 2): np.full(2, bound)})

    def replace_outer_factors(piece: int, x: float, bound: float = 1.0) -> Entries:
        """Return p(x, 1), for the outer bin 1 only."""
        outer_entries, *_ = replace_factors(piece, x, bound)
        return outer_entries

    # Linear expressions for probabilities of the outer bin 1 and of the inner bin 2. The larger
    # ones are upper bounds, the smaller ones lower bounds.
    outer_at_start, inner_at_start, *_ = replace_factors(1, -c)
    outer_at_end, inner_at_end, *_ = replace_factors(3, c)
    ones = np.ones(1)
    larger_outer = (
        outer_at_start,
        replace_outer_factors(2, b2, high),
        replace_outer_factors(3, b3),
    )
    smaller_outer = (
        replace_outer_factors(1, b2),
        replace_outer_factors(2, b3, low),
        outer_at_end,
    )
    larger_inner = ((q2[1:], ones), (q3[2:], ones))
    # q_2(2) q_2(1) at B_3, with q_2(1) replaced by its lower end.
    product = (q2[1:], low * shape.left_probabilities(2, b3)[1:, 1])
    smaller_inner = (product, inner_at_end, inner_at_start)

    # ε-DP: each larger probability is at most e^ε times each smaller one of the same bin.
    ratio = float(np.exp(epsilon))
    for larger_entries, smaller_entries in (
        (larger_outer, smaller_outer),
        (larger_inner, smaller_inner),
    ):
        for large_entry, small_entry in itertools.product(larger_entries, smaller_entries):
            program.add_at_most(large_entry, small_entry, ratio)
    return program


def build_asymmetric_program(
    shape: TwoBinShape, epsilon: float, left: tuple[float, float], right: tuple[float, float]
) -> EntrywiseProgram:
    """Return the program of a slice `left` of q^l_2(1) and a slice `right` of q^r_2(1).

    Its objective is twice that of `TwoBinShape.theorem5`.

    Args:
        shape: the four bins, two of them inside (-1, 1); not symmetric, so with columns "r".
        epsilon: the budget ε > 0.
        left: the lower and upper end of the slice of q^l_2(1).
        right: the same for q^r_2(1).
    """
    b1, b2, _, b4 = shape.bins
    program = _start_program(shape, {("l", 2): left, ("r", 2): right}, extra=1)
    program.c[: shape.size] = 2 * shape.losses

    left_low, _ = left
    right_low, _ = right
    left_side = _list_one_side(shape, right_low)
    right_larger, right_smaller = (
        _swap_sides(terms, shape.size) for terms in _list_one_side(_mirror_shape(shape), left_low)
    )
    # The two terms that are not mirror images.
    right_larger[2] = shape.columns["r", 3][:1], np.array([(b4 - b2) / (b4 - b1)])
    right_smaller[1] = shape.columns["l", 2][:1], np.array([right_low * (b2 - b1) / (b4 - b1)])

    # The extra column t shortens the program: z <= e^ε t and t <= w for a t between them are
    # equivalent to z <= e^ε w for every larger z and smaller w.
    t = [shape.size], [1.0]
    ratio = float(np.exp(epsilon))
    for larger_entries, smaller_entries in (left_side, (right_larger, right_smaller)):
        for entries in larger_entries:
            program.add_at_most(entries, t, ratio)
        for entries in smaller_entries:
            program.add_at_most(t, entries)
    return program


def _swap_sides(terms: list[Entries], size: int) -> list[Entries]:
    """Return terms of the mirrored shape with the columns of the shape.

    The left columns of the mirrored shape are the right columns of the shape.
    """
    return [((columns + size // 2) % size, values) for columns, values in terms]


@lru_cache(maxsize=256)
def _replace_probabilities(shape: TwoBinShape, j: int, x: float) -> list[Entries]:
    """Return p(x, i) on piece j, with q_2 replaced by its bound 1."""
    return shape.replaced_probabilities(j, x, {("l", 2): np.ones(2)})


@lru_cache(maxsize=32)
def _mirror_shape(shape: TwoBinShape) -> TwoBinShape:
    """Return the shape with mirrored bins."""
    return replace(shape, bins=tuple(-b for b in reversed(shape.bins)))


def _list_one_side(shape: TwoBinShape, low: float) -> _Side:
    """Return the larger and the smaller probabilities of outputs left of their inputs.

    low: the lower end of the right slice, which replaces q^r_2(1) at B_3.
    """
    _, b2, b3, _ = shape.bins
    c = _INPUT_END
    q = shape.columns["l", 2]
    # The probabilities at B_3, with the right factor replaced by its lower end.
    at_b3_lower = low * shape.left_probabilities(2, b3)[:, 1]
    at_b3 = _replace_probabilities(shape, 3, b3)
    at_end = _replace_probabilities(shape, 3, c)
    larger_entries = [
        _replace_probabilities(shape, 1, -c)[0],
        _replace_probabilities(shape, 2, b2)[0],
        at_b3[0],
        (q[1:], np.ones(1)),
        *at_b3[1:3],
    ]
    smaller_entries = [
        _replace_probabilities(shape, 1, b2)[0],
        (q[:1], at_b3_lower[:1]),
        at_end[0],
        (q[1:], at_b3_lower[1:]),
        *at_end[1:3],
    ]
    return larger_entries, smaller_entries
