"""OPTM as the authors' public code computes it (osu-srml/DP_Linprog): its programs, slices and choices of bins.

Its linear programs for m = 4 gave the paper's Tables 1 and 2, and are not Theorem 5's
(workbench.models.quantizer.two_bin). B_2 < B_3 are inside (-c, c), every q is 1e-5 at least.

* symmetric (optm.py): on a slice l <= q_2(1) <= u, p(B_2, 2) = q_2(2) is left as it is; of q_2(2) q_2(1) at B_3 the
  factor q_2(1) is bounded; p(B_3, 2) from the right is left out;
* asymmetric (asy_optm.py): on slices of q^l_2(1) and q^r_2(1), a product of two q's is bounded below by the lower end
  of one of them, and above by 1; every larger probability of any output stands against every smaller one of any
  output, which is more than ε-DP needs. From the right, two terms are not the mirror images of those from the left:
  p(B_2, 4) has the coefficient (B_4 - B_2)/(B_4 - B_1) instead of (B_2 - B_1)/(B_4 - B_1), and of q^l_2(1) q^r_2(1)
  it is again q^r_2(1) that is replaced.

What they give is audited like everything else. A mechanism is the winning LP's answer, before any repair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from workbench.exact.numbers import ONE
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.optm import ProgramSolver, make_two_bin_shape
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.models.quantizer.program import smallest_reach
from workbench.models.quantizer.two_bin import Entries, TwoBinShape, VectorKey
from workbench.questions.density import normal_density, uniform_density

Bins = tuple[Fraction, ...]
_LEAST = 1e-5  # of every q


@lru_cache
def authors_optm(bins: Bins, epsilon: Fraction) -> Quantizer:
    """optm.py: given symmetric bins, uniform inputs, slices [l, l + .01] of q_2(1), l = .01, ..., .99."""
    shape = make_two_bin_shape(bins, uniform_density())
    return _least(
        (bins, shape, _symmetric(shape, float(epsilon), k / 100, (k + 1) / 100))
        for k in range(1, 100)
    )


@lru_cache
def authors_optm_gaussian(mu: float, sigma: float, epsilon: Fraction) -> Quantizer:
    """asy_optm.py: inputs N(mu, sigma²) clipped to [-1, 1], slices [l, l + .01] of both sides, l = .05, .1, ..., .95.

    Outer bins ±2, ±3, ±4, the inner two of -.6, -.2, .2, .6; the least objective of all bins and slices wins. Masses
    of pieces are exact here; theirs are counted in 1000 draws, new ones for every choice of bins.
    """
    inner = itertools.combinations([Fraction(k, 5) for k in (-3, -1, 1, 3)], 2)
    outer = [
        b for b in map(Fraction, (2, 3, 4)) if b >= smallest_reach(float(epsilon))
    ]  # nearer: no law
    slices = [(k / 20, k / 20 + 0.01) for k in range(1, 20)]

    def programs() -> Iterable[tuple[Bins, TwoBinShape, EntrywiseProgram]]:
        for pair, b in itertools.product(inner, outer):
            bins = (-b, *pair, b)
            shape = make_two_bin_shape(bins, normal_density(mu, sigma))
            for left, right in itertools.product(slices, repeat=2):
                yield bins, shape, _asymmetric(shape, float(epsilon), left, right)

    return _least(programs())


def _least(programs: Iterable[tuple[Bins, TwoBinShape, EntrywiseProgram]]) -> Quantizer:
    """The mechanism of the program of least objective."""
    live, best = ProgramSolver(LawQuestion(ONE)), None
    for bins, shape, lp in programs:
        point = live.solve(lp)
        if point is not None and (best is None or point.objective < best[0]):
            best = point.objective, bins, shape.read_selections(point.x)
    live.close()
    assert best
    return two_bin(list(best[1]), *best[2], name="OPTM")


def _program(
    shape: TwoBinShape, slices: Mapping[VectorKey, tuple[float, float]], extra: int
) -> EntrywiseProgram:
    """Σ q = 1, q >= 1e-5, slices of first entries, and so many columns more; no losses."""
    every = {key: (np.full(key[1], _LEAST), np.ones(key[1])) for key in shape.columns}
    for key, (low, high) in slices.items():
        every[key][0][0], every[key][1][0] = max(low, _LEAST), high
    return shape.start_program(extra, every)


def _symmetric(shape: TwoBinShape, epsilon: float, low: float, high: float) -> EntrywiseProgram:
    """The LP of one slice low <= q_2(1) <= high; the objective is a multiple of (7) without its constant."""
    (B1, B2, B3, B4), c, q2, q3 = shape.bins, 1.0, shape.columns["l", 2], shape.columns["l", 3]
    lp = _program(shape, {("l", 2): (low, high)}, 0)
    lp.c[q3[:2]] = (B2 + c) * (B4 - B2), (B2 + c) * (B3 - B2)
    lp.c[q2[0]] = -2 * B2 * (B2 - B1)

    def law(j: int, x: float, q: float = 1.0) -> list[Entries]:
        return shape.replaced_probabilities(j, x, {("l", 2): np.full(2, q)})

    at_ends, whole = (law(1, -c), law(3, c)), np.ones(1)
    outer = (
        (at_ends[0][0], law(2, B2, high)[0], law(3, B3)[0]),
        (law(1, B2)[0], law(2, B3, low)[0], at_ends[1][0]),
    )
    inner = (
        ((q2[1:], whole), (q3[2:], whole)),
        ((q2[1:], low * shape.left_probabilities(2, B3)[1:, 1]), at_ends[1][1], at_ends[0][1]),
    )
    for larger, smaller in (outer, inner):
        for z, w in itertools.product(larger, smaller):
            lp.add_at_most(z, w, float(np.exp(epsilon)))
    return lp


def _asymmetric(
    shape: TwoBinShape, epsilon: float, left: tuple[float, float], right: tuple[float, float]
) -> EntrywiseProgram:
    """The LP of one pair of slices, left of q^l_2(1) and right of q^r_2(1); the objective is twice `theorem5`'s."""
    B1, B2, _, B4 = shape.bins
    lp = _program(shape, {("l", 2): left, ("r", 2): right}, 1)
    lp.c[: shape.size] = 2 * shape.losses
    sides = (
        _one_side(shape, right[0]),
        tuple(
            [((columns + shape.size // 2) % shape.size, values) for columns, values in terms]
            for terms in _one_side(_mirrored(shape), left[0])  # its left columns are our right ones
        ),
    )
    larger, smaller = sides[1]  # the two terms that are not mirror images
    larger[2] = shape.columns["r", 3][:1], np.array([(B4 - B2) / (B4 - B1)])
    smaller[1] = shape.columns["l", 2][:1], np.array([right[0] * (B2 - B1) / (B4 - B1)])
    t = [shape.size], [1.0]  # z <= e^ε t, t <= w: as much as every pair of the two
    for large, small in sides:
        for z in large:
            lp.add_at_most(z, t, float(np.exp(epsilon)))
        for w in small:
            lp.add_at_most(t, w)
    return lp


@lru_cache(maxsize=256)
def _law(shape: TwoBinShape, j: int, x: float) -> list[Entries]:
    """p(x, i) on piece j, where q_2 is bounded by 1."""
    return shape.replaced_probabilities(j, x, {("l", 2): np.ones(2)})


@lru_cache(maxsize=32)
def _mirrored(shape: TwoBinShape) -> TwoBinShape:
    return replace(shape, bins=tuple(-b for b in reversed(shape.bins)))


def _one_side(shape: TwoBinShape, low: float) -> tuple[list[Entries], list[Entries]]:
    """Larger and smaller probabilities of outputs left of their inputs. low: the lower end of the right slice."""
    (_, B2, B3, _), c, q = shape.bins, 1.0, shape.columns["l", 2]

    far = low * shape.left_probabilities(2, B3)[:, 1]  # beside the last bin
    at_b3, at_c = _law(shape, 3, B3), _law(shape, 3, c)
    larger = [
        _law(shape, 1, -c)[0],
        _law(shape, 2, B2)[0],
        at_b3[0],
        (q[1:], np.ones(1)),
        *at_b3[1:3],
    ]
    return larger, [_law(shape, 1, B2)[0], (q[:1], far[:1]), at_c[0], (q[1:], far[1:]), *at_c[1:3]]
