"""Compute the mechanism OPTM as the authors' public code does (osu-srml/DP_Linprog).

The linear programs of that code for m = 4 gave the paper's Tables 1 and 2. They are not the program
of Theorem 5 of Cai et al. 2024: workbench.models.quantizer.authors_programs states them and defines
the notation. A slice is an interval in which one probability of selecting a bin, q_2(1), must lie;
each slice has its own program. This file has the bins and slices that the code searches.

The mechanisms are the solutions of the best program, without repair. They are audited like all
others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache

from workbench.exact.numbers import ONE
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.optm import ProgramSolver, make_two_bin_shape
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.authors_programs import (
    build_asymmetric_program,
    build_symmetric_program,
)
from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.models.quantizer.program import smallest_reach
from workbench.models.quantizer.two_bin import TwoBinShape
from workbench.questions.density import normal_density, uniform_density

Bins = tuple[Fraction, ...]

# Bins, their shape, and the program of a slice.
_SliceProgram = tuple[Bins, TwoBinShape, EntrywiseProgram]


@lru_cache
def design_authors_optm(bins: Bins, epsilon: Fraction) -> Quantizer:
    """Return the mechanism of optm.py: symmetric bins and uniform inputs.

    The slices of q_2(1) are [l, l + .01] for l = .01, ..., .99.

    Args:
        bins: The four bins, increasing and symmetric.
        epsilon: The ε of pure DP, > 0.
    """
    shape = make_two_bin_shape(bins, uniform_density())
    programs = []
    for k in range(1, 100):
        program = build_symmetric_program(shape, float(epsilon), k / 100, (k + 1) / 100)
        programs.append((bins, shape, program))
    return _solve_best(programs)


@lru_cache
def design_authors_gaussian_optm(mu: float, sigma: float, epsilon: Fraction) -> Quantizer:
    """Return the mechanism of asy_optm.py: inputs N(μ, σ²) clipped to [-1, 1].

    The slices of q^l_2(1) and of q^r_2(1) are [l, l + .01], l = .05, .1, ..., .95. The outer bins
    are ±2, ±3, ±4, the inner two are from -.6, -.2, .2, .6. The smallest objective of all bins and
    slices wins. The probability of an input in each piece between bins is exact here. The authors
    estimate it from 1000 draws, which are new for every choice of bins.

    Args:
        mu: The mean μ of the inputs before they are clipped to [-1, 1].
        sigma: Their standard deviation σ > 0 before clipping.
        epsilon: The ε of pure DP, > 0.
    """
    inner_choices = [Fraction(k, 5) for k in (-3, -1, 1, 3)]
    # With nearer outer bins, no private mechanism is unbiased.
    outer_choices = [
        outer for outer in map(Fraction, (2, 3, 4)) if outer >= smallest_reach(float(epsilon))
    ]
    slices = [(k / 20, k / 20 + 0.01) for k in range(1, 20)]

    def list_programs() -> Iterator[_SliceProgram]:
        """Yield the program of every choice of bins and of slices on both sides."""
        for inner, outer in itertools.product(
            itertools.combinations(inner_choices, 2), outer_choices
        ):
            bins = (-outer, *inner, outer)
            shape = make_two_bin_shape(bins, normal_density(mu, sigma))
            for left, right in itertools.product(slices, repeat=2):
                yield bins, shape, build_asymmetric_program(shape, float(epsilon), left, right)

    return _solve_best(list_programs())


def _solve_best(programs: Iterable[_SliceProgram]) -> Quantizer:
    """Solve all programs and return the mechanism of the one with the smallest objective.

    Programs without a solution are skipped.
    """
    solver = ProgramSolver(LawQuestion(ONE))
    best = None
    least_objective = math.inf
    for bins, shape, program in programs:
        point = solver.solve(program)
        if point is not None and point.objective < least_objective:
            least_objective = point.objective
            best = bins, shape.read_selections(point.x)
    solver.close()
    assert best
    # The selections are the distributions q^l and q^r.
    best_bins, (left, right) = best
    return two_bin(list(best_bins), left, right, name="OPTM")
