"""OPTM as the authors' public code computes it (osu-srml/DP_Linprog): its programs, slices and choices of bins.

The programs are restated in models.optm_authors. A mechanism is the winning LP's answer, before any repair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from models.entrywise_program import EntrywiseProgram
from models.optm import TwoBinShape
from models.optm_authors import asymmetric, symmetric
from models.quantizer import smallest_reach
from workbench.families.quantizer.optm import Live, shape_of
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.density import normal, uniform
from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = ["authors_optm", "authors_optm_gaussian"]

Bins = tuple[Fraction, ...]


@lru_cache
def authors_optm(bins: Bins, epsilon: Fraction) -> Quantizer:
    """optm.py: given symmetric bins, uniform inputs, slices [l, l + .01] of q_2(1), l = .01, ..., .99."""
    shape = shape_of(bins, Fraction(1), uniform())
    return _least((bins, shape, symmetric(shape, float(epsilon), k / 100, (k + 1) / 100)) for k in range(1, 100))


@lru_cache
def authors_optm_gaussian(mu: float, sigma: float, epsilon: Fraction) -> Quantizer:
    """asy_optm.py: inputs N(mu, sigma²) clipped to [-1, 1], slices [l, l + .01] of both sides, l = .05, .1, ..., .95.

    Outer bins ±2, ±3, ±4, the inner two of -.6, -.2, .2, .6; the least objective of all bins and slices wins. Masses
    of pieces are exact here; theirs are counted in 1000 draws, new ones for every choice of bins.
    """
    inner = itertools.combinations([Fraction(k, 5) for k in (-3, -1, 1, 3)], 2)
    outer = [b for b in map(Fraction, (2, 3, 4)) if b >= smallest_reach(float(epsilon), 1.0)]  # nearer: no law
    slices = [(k / 20, k / 20 + 0.01) for k in range(1, 20)]

    def programs() -> Iterable[tuple[Bins, TwoBinShape, EntrywiseProgram]]:
        for pair, b in itertools.product(inner, outer):
            bins = (-b, *pair, b)
            shape = shape_of(bins, Fraction(1), normal(mu, sigma))
            for left, right in itertools.product(slices, repeat=2):
                yield bins, shape, asymmetric(shape, float(epsilon), left, right)

    return _least(programs())


def _least(programs: Iterable[tuple[Bins, TwoBinShape, EntrywiseProgram]]) -> Quantizer:
    """The mechanism of the program of least objective. Raises ValueError when none has a solution."""
    live, best = Live(), None
    for bins, shape, lp in programs:
        solution = live.solve(lp, ("authors' code",), "OPTM (authors' code)")
        if solution.optimal and solution.objective is not None and (best is None or solution.objective < best[0]):
            assert solution.x is not None
            best = solution.objective, bins, shape.selection(solution.x)
    live.close()
    if best is None:
        raise ValueError("The authors' program has no solution at these bins.")
    return two_bin(list(best[1]), *best[2], name="OPTM")
