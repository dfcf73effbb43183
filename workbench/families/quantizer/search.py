"""Bins and parameters of published mechanisms when only the number of outputs is given.

OPTM and the product optimum (the outer loop of Algorithm 2): m bins are -B, then m - 2 equally spaced from -b to b,
then B. B and b run over a grid; for four bins that is the paper's search. What is minimised is the exact MAE, and a
mechanism whose exact ε exceeds the request does not count.

RQM: its outermost output on a grid, bins equally spaced, its selection probability q the largest for the budget.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.data.intervals import read_bins
from workbench.errors import NotProven
from workbench.exact.numbers import ZERO, Real, read_number, read_positive
from workbench.families.quantizer.certify import is_private
from workbench.families.quantizer.laws import Bins, LawQuestion
from workbench.families.quantizer.optm import ProgramSolver, list_slice_widths, solve_optm
from workbench.families.quantizer.product import solve_product_optimum
from workbench.mechanisms.baselines.two_bin import equal_bins, randomized_response, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach, smallest_reach
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import Density
from workbench.solvers.search import bisect

_FINEST = 10**18  # of 1/(1 - q)


_FACTORS = (
    1.0001,
    1.03,
    1.1,
    1.15,
    1.2,
    1.25,
    1.3,
    1.35,
    1.45,
    1.6,
    1.9,
)  # of the least reach: outer bins of RQM
_REFINED = 4  # how often the grid is halved around its best


def search_bins(
    m: int,
    question: LawQuestion,
    method: str = "optm",
    *,
    reach: float | None = None,
    stride: int = 1,
) -> Bins:
    """The best bins of the family for method "optm" or "product". Raises NotProven when the search ends with none.

    reach: the largest output allowed, by default twice the least feasible one; every: a part of the grid, the every-th
    outer and inner bin.
    """
    top = default_reach(question.float_epsilon) if reach is None else reach
    grid = list_bin_grid(m, question, top, stride=stride)
    widths = list_slice_widths(question.epsilon)
    for width in widths if m <= 5 else dict.fromkeys((widths[0], None)):
        best = _best_of(grid, question, width)
        if best is not None:
            return best if method == "optm" else _refined(best, question, top)
    raise NotProven(
        f"The search over {m} bins ended without a private mechanism at epsilon = {question.float_epsilon:g}."
    )


def list_bin_grid(m: int, question: LawQuestion, top: float, *, stride: int = 1) -> list[Bins]:
    """The bins that the search of Algorithm 2 looks at: -B, m - 2 around a centre (one: the centre itself), B."""
    density, step = question.density, max(stride, 2 if m > 5 else 1)
    least = smallest_reach(question.float_epsilon)
    # bins are of use to about 2 beyond the least reach, however far that is: inner bins get at most about ε/2 each
    span = min(least, 5.0)
    far = top if span == least else min(top, least + span)
    inner = [ZERO] if m <= 3 else [Fraction(k, 10) for k in range(1, 11, step)]
    centres = [ZERO]
    if not density.is_symmetric:
        x, w = density.quadrature([0.0])
        centres = [_near(s * math.fsum(x * w)) for s in (0.0, 0.5, 1.0)]
    grid = []
    for outer in np.linspace(least + 0.02 * span, far, 11)[::step]:
        for b, centre in itertools.product(inner, centres):
            between = [centre - b + 2 * b * Fraction(k, max(1, m - 3)) for k in range(m - 2)]
            grid.append((-_near(outer), *between, _near(outer)))
    return [bins for bins in grid if _rising(bins)]


def _rising(bins: Sequence[Fraction]) -> bool:
    return all(a < b for a, b in itertools.pairwise(bins))


def _best_of(grid: Sequence[Bins], question: LawQuestion, width: float | None) -> Bins | None:
    """The bins of the grid whose OPTM has the least exact error and is private, up to rounding; None without one."""
    epsilon, density = question.epsilon, question.density
    live = ProgramSolver(question)
    least, best = math.inf, None
    for at, bins in enumerate(grid):
        if at == 0 or bins[-1] != grid[at - 1][-1]:
            question.progress(
                f"outer bin {float(bins[-1]):g} ({at + 1} of {len(grid)} choices of bins), {live.solve_count} LPs"
            )
        design = solve_optm(bins, question, width=width, solver=live)
        if design is None:
            continue
        value = design.quantizer.expected_loss(question.loss, density)
        if value < least and is_private(design.quantizer, epsilon + Fraction(1, 10**9)):
            least, best = value, bins
    live.close()
    return best


def _refined(bins: Bins, question: LawQuestion, top: float) -> Bins:
    """The bins moved one after the other while the product optimum improves (symmetric pairs together)."""
    m, even = len(bins), question.density.is_symmetric

    def value_of(bins: Bins) -> float:
        best = solve_product_optimum(bins, question, nodes=40 if m <= 6 else 4)
        return math.inf if best is None else best.objective

    value, step = value_of(bins), Fraction(1, 5)
    while step > Fraction(1, 100):
        moved = False
        for i, sign in itertools.product(range(m // 2 if even else 0, m), (1, -1)):
            trial = list(bins)
            trial[i] += sign * step
            if even:
                trial[m - 1 - i] = -trial[i]
            if (
                _rising(trial)
                and trial[0] <= -1
                and trial[-1] >= 1
                and max(-trial[0], trial[-1]) <= top
            ):
                there = value_of(tuple(trial))
                if there < value - 1e-6:
                    bins, value, moved = tuple(trial), there, True
        step = step if moved else step / 2
        question.progress(f"bins moved in steps of {float(step):g}: {value:.6f}")
    return bins


def _near(value: float) -> Fraction:
    """A bin in hundredths."""
    return read_number(f"{value:.2f}", "a bin")


def find_largest_q_rqm(bins: Any, epsilon: Real, *, digits: int = 3) -> Quantizer | None:
    """RQM with the largest q that is exactly ε-private on these bins; None when there is none.

    digits: of q, and of 1 - q where that is smaller: a large budget allows a q that many digits of q round down.
    """
    outputs, top = read_bins(bins), 10**digits

    def leaks(k: float) -> bool:
        return not audit_extremes(rqm(outputs, Fraction(int(k), top)), 0).meets("pure", epsilon)

    if leaks(0):
        return None
    while True:
        largest, _ = bisect(
            leaks, 0, top, tolerance=1, choose_point=lambda low, high: (low + high) // 2
        )
        if top - largest >= 10 ** (digits - 2) or top >= _FINEST:
            break
        top *= 10
    return rqm(outputs, Fraction(int(largest), top))


def find_best_rqm(
    levels: int, epsilon: Real, loss: Any = "absolute", density: Density | None = None
) -> Quantizer | None:
    """The best RQM with equal bins on [-1, 1]: outer bin on a grid that is refined around the best, the largest private
    q to three digits.

    With two outputs it is randomized response. None when no bin of the grid admits one.
    """
    if levels == 2:
        return randomized_response(epsilon)
    reach = 1 / math.tanh(float(read_positive(epsilon, "epsilon")) / 2)
    tried: dict[float, tuple[float, Quantizer | None]] = {}

    def expected(factor: float) -> float:
        if factor not in tried:
            outer = Fraction(math.ceil(reach * factor * 10**4), 10**4)
            quantizer = find_largest_q_rqm(equal_bins(levels, outer), epsilon)
            tried[factor] = (
                math.inf if quantizer is None else quantizer.expected_loss(loss, density),
                quantizer,
            )
        return tried[factor][0]

    best = min(_FACTORS, key=expected)
    for _ in range(_REFINED):
        factors = sorted(tried)
        position = factors.index(best)
        near = [factors[i] for i in (position - 1, position + 1) if 0 <= i < len(factors)]
        best = min([best, *((best + other) / 2 for other in near)], key=expected)
    return tried[best][1]
