"""OPTM's linear programs for m = 4 as the authors' public code states them (osu-srml/DP_Linprog).

They gave the paper's Tables 1 and 2, and are not Theorem 5's (models.optm). B_2 < B_3 are inside (-c, c), every q is
1e-5 at least.

* symmetric (optm.py): on a slice l <= q_2(1) <= u, p(B_2, 2) = q_2(2) is left as it is; of q_2(2) q_2(1) at B_3 the
  factor q_2(1) is bounded; p(B_3, 2) from the right is left out;
* asymmetric (asy_optm.py): on slices of q^l_2(1) and q^r_2(1), a product of two q's is bounded below by the lower end
  of one of them, and above by 1; every larger probability of any output stands against every smaller one of any
  output, which is more than ε-DP needs. From the right, two terms are not the mirror images of those from the left:
  p(B_2, 4) has the coefficient (B_4 - B_2)/(B_4 - B_1) instead of (B_2 - B_1)/(B_4 - B_1), and of q^l_2(1) q^r_2(1)
  it is again q^r_2(1) that is replaced.

What they give is audited like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .entrywise_program import EntrywiseProgram
from .optm import Key, TwoBinShape

__all__ = ["asymmetric", "symmetric"]

Terms = Mapping[int, float]
_LEAST = 1e-5  # of every q


def symmetric(shape: TwoBinShape, epsilon: float, low: float, high: float) -> EntrywiseProgram:
    """The LP of one slice low <= q_2(1) <= high; the objective is a multiple of (7) without its constant.

    Raises ValueError unless the bins are four, symmetric, with two inside.
    """
    (B1, B2, B3, B4), c = _bins(shape, symmetric=True), shape.c
    q21, q22 = (shape.column["l", 2, k] for k in (1, 2))
    q31, q32, q33 = (shape.column["l", 3, k] for k in (1, 2, 3))
    lp = _lp(shape, {("l", 2): (low, high)}, 0)
    lp.c[[q32, q31]] = (B2 + c) * (B3 - B2), (B2 + c) * (B4 - B2)
    lp.c[q21] = -2 * B2 * (B2 - B1)
    # output B_1: p(-c), and the two limits at B_2 and B_3 with q_2(1) or its other factor bounded
    outer_large = (
        {q33: (B2 + c) / (B2 - B1), q32: (B3 + c) / (B3 - B1), q31: (B4 + c) / (B4 - B1)},
        {q22: high * (B3 - B2) / (B3 - B1), q21: high * (B4 - B2) / (B4 - B1)},
        {q31: (B4 - B3) / (B4 - B1)},
    )
    outer_small = (
        {q32: (B3 - B2) / (B3 - B1), q31: (B4 - B2) / (B4 - B1)},
        {q21: low * (B4 - B3) / (B4 - B1)},
        {q31: (B4 - c) / (B4 - B1)},
    )
    # output B_2: its maxima are q_2(2) and q_3(3)
    inner_large = ({q22: 1.0}, {q33: 1.0})
    inner_small = ({q22: low * (B4 - B3) / (B4 - B2)}, {q32: (B4 - c) / (B4 - B2)}, {q33: (B4 - c) / (B4 - B3)})
    odds = float(np.exp(epsilon))
    for larger, smaller in ((outer_large, outer_small), (inner_large, inner_small)):
        for z in larger:
            for w in smaller:
                lp.row([*z, *w], [*z.values(), *(-odds * v for v in w.values())], -np.inf, 0.0)
    return lp


def asymmetric(
    shape: TwoBinShape, epsilon: float, left: tuple[float, float], right: tuple[float, float]
) -> EntrywiseProgram:
    """The LP of one pair of slices, left of q^l_2(1) and right of q^r_2(1); the objective is (8), twice `theorem5`'s.

    Raises ValueError unless the bins are four with two inside and the shape is not symmetric.
    """
    _bins(shape, symmetric=False)
    lp = _lp(shape, {("l", 2): left, ("r", 2): right}, 1)
    loss, constant = shape.losses
    lp.c[: loss.size] = 2 * loss
    lp.c[[shape.column["l", 2, 1], shape.column["l", 2, 2]]] += 2 * constant  # times 1; an offset would not move
    t, odds = loss.size, float(np.exp(epsilon))  # z <= e^ε t, t <= w: as much as every pair of the two
    for side, low in (("l", right[0]), ("r", left[0])):
        larger, smaller = _one_side(shape, side, low)
        if side == "r":  # the two terms that are not mirror images
            (B1, B2, _, B4) = shape.bins
            larger[2] = {shape.column["r", 3, 1]: (B4 - B2) / (B4 - B1)}
            smaller[1] = {shape.column["l", 2, 1]: right[0] * (B2 - B1) / (B4 - B1)}
        for z in larger:
            lp.row([*z, t], [*z.values(), -odds], -np.inf, 0.0)
        for w in smaller:
            lp.row([*w, t], [*(-v for v in w.values()), 1.0], -np.inf, 0.0)
    return lp


def _one_side(shape: TwoBinShape, side: str, low: float) -> tuple[list[Terms], list[Terms]]:
    """Larger and smaller probabilities of outputs left of their inputs (side "l"), or right of them by mirroring.

    low: the lower end of the other side's slice.
    """
    B1, B2, B3, B4 = shape.bins if side == "l" else tuple(-b for b in reversed(shape.bins))
    other, c = "r" if side == "l" else "l", shape.c
    near = {(j, k): shape.column[side, j, k] for j in (2, 3) for k in range(1, j + 1)}
    far = {(j, k): shape.column[other, j, k] for j in (2, 3) for k in range(1, j + 1)}
    larger: list[Terms] = [
        {far[3, 3]: (B2 + c) / (B2 - B1), far[3, 2]: (B3 + c) / (B3 - B1), far[3, 1]: (B4 + c) / (B4 - B1)},
        {far[2, 2]: (B3 - B2) / (B3 - B1), far[2, 1]: (B4 - B2) / (B4 - B1)},
        {near[3, 1]: (B4 - B3) / (B4 - B1)},
        {near[2, 2]: 1.0},
        {near[3, 2]: (B4 - B3) / (B4 - B2)},
        {near[3, 3]: 1.0},
    ]
    smaller: list[Terms] = [
        {far[3, 2]: (B3 - B2) / (B3 - B1), far[3, 1]: (B4 - B2) / (B4 - B1)},
        {near[2, 1]: low * (B4 - B3) / (B4 - B1)},
        {near[3, 1]: (B4 - c) / (B4 - B1)},
        {near[2, 2]: low * (B4 - B3) / (B4 - B2)},
        {near[3, 2]: (B4 - c) / (B4 - B2)},
        {near[3, 3]: (B4 - c) / (B4 - B3)},
    ]
    return larger, smaller


def _bins(shape: TwoBinShape, *, symmetric: bool) -> tuple[float, ...]:
    if shape.symmetric != symmetric or shape.m != 4 or not -shape.c < shape.bins[1] < shape.bins[2] < shape.c:
        kind = "symmetric" if symmetric else "asymmetric"
        raise ValueError(f"The authors' {kind} program must have four {kind} bins with two inside (-c, c).")
    return shape.bins


def _lp(shape: TwoBinShape, slices: Mapping[Key, tuple[float, float]], extra: int) -> EntrywiseProgram:
    """Σ q = 1, q >= 1e-5, the slices, and so many columns more; no losses."""
    every = {key: (np.full(key[1], _LEAST), np.ones(key[1])) for key in shape.vectors}
    for key, (low, high) in slices.items():
        every[key][0][0], every[key][1][0] = max(low, _LEAST), high
    return shape.program(extra, every)
