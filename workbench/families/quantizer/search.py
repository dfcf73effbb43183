"""Search for the outputs and parameters of published quantizers when only their number is given.

`search_bins` finds the outputs at which OPTM or the product optimum has the smallest mean absolute
error (MAE). `find_best_rqm` finds the outputs and the parameter of RQM. Inputs are in [-1, 1].

Terms. The outputs of a two-bin mechanism are called bins, as in Cai et al. 2024; m is their number.
OPTM (`optm`) and the product optimum (`product`) are designs of two-bin mechanisms. RQM is the
randomized quantization mechanism: each inner output is selected with probability q, and one of the
two selected outputs next to the input is published. The least reach is the smallest size of the
outermost outputs at which an unbiased private law exists.

OPTM and the product optimum (the outer loop of Algorithm 2 of Cai et al. 2024): the m bins are -B,
then m - 2 equally spaced bins from -b to b, then B. B and b run over a grid; for four bins this is
the search of the paper. The exact MAE is minimised. A mechanism whose exact ε exceeds the requested
ε is left out. For the product optimum, the grid is searched with OPTM. The bins of the best OPTM
are then moved one by one (`_refine_bins`).

RQM: the outermost output runs over a grid, the outputs are equally spaced, and q is the largest
private selection probability.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import closing
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
from workbench.mechanisms.baselines.two_bin import (
    equal_bins,
    estimate_rqm_epsilon,
    randomized_response,
    rqm,
)
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach, smallest_reach
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import Density
from workbench.solvers.search import Deadline, bisect_integers

_MAX_SELECTION_UNITS = 10**18  # q is a multiple of 1/units, for a power of 10 up to this.
# Outermost outputs of RQM that are tried, as multiples of the least reach.
_RQM_REACH_FACTORS = (1.0001, 1.03, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.45, 1.6, 1.9)

# The steps of the grid of outermost outputs are halved around the best output this many times.
_RQM_REFINEMENTS = 4
_RQM_OUTPUT_UNITS = 10**4  # Outermost outputs of RQM are rounded up to a multiple of 10^-4.
# Boxes of the product optimum at each move of a bin. More than 6 bins have more expensive boxes.
_MAX_FINE_BINS = 6
_FINE_BOX_COUNT = 40
_COARSE_BOX_COUNT = 4
_OUTER_BIN_COUNT = 11  # The grid has this many values of B.
_FIRST_OUTER_SHARE = 0.02  # The first B is this share of the grid's length beyond the least reach.
# For more bins only every second value of B and b is tried, and fewer slice widths of OPTM.
_MAX_FULL_GRID_BINS = 5
_MAX_OUTER_BIN_SPAN = 5.0  # The grid of B ends at most this far beyond the least reach.
_FIRST_BIN_STEP = Fraction(1, 5)  # Bins are moved by this step first.
_LAST_BIN_STEP = Fraction(1, 100)  # Bins are not moved by this step or a smaller one.
_MIN_BIN_GAIN = 1e-6  # A bin is only moved if this lowers the error by more than this.
# A mechanism may exceed ε by this before its repair; with a larger excess it is left out.
_EPSILON_ROUNDING = Fraction(1, 10**9)


class SearchClock:
    """Tell a search whether to stop before its next trial, and remember that it was stopped.

    Args:
        deadline: when the search must have ended.

    Attributes:
        is_stopped: whether the search was told to stop.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self.is_stopped = False

    def should_stop(self) -> bool:
        """Return whether the deadline has passed."""
        self.is_stopped = self.is_stopped or self._deadline.has_passed
        return self.is_stopped


def search_bins(
    m: int,
    question: LawQuestion,
    method: str = "optm",
    *,
    reach: float | None = None,
    stride: int = 1,
) -> Bins:
    """Search for the best bins of a method.

    Args:
        m: the number of bins.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        method: "optm" or "product".
        reach: the largest output allowed. Default: twice the least feasible one.
        stride: only every stride-th outer and inner bin of the grid is tried.

    Returns:
        The bins in increasing order.

    Raises:
        NotProven: no bins of the grid have a private mechanism.
    """
    max_output = default_reach(question.float_epsilon) if reach is None else reach
    grid = list_bin_grid(m, question, max_output, stride=stride)
    # Thinner slices of OPTM's programs are only tried if thick ones find no private mechanism.
    widths = list_slice_widths(question.epsilon)
    if m > _MAX_FULL_GRID_BINS:
        # The widest slices, then slices relative to q. At a small ε the list has only the latter,
        # and the dict keeps one of two equal entries.
        widths = tuple(dict.fromkeys((widths[0], None)))
    for width in widths:
        best_bins = _find_best_bins(grid, question, width)
        if best_bins is None:
            continue
        if method == "optm":
            return best_bins
        return _refine_bins(best_bins, question, max_output)
    raise NotProven(
        f"The search over {m} bins ended without a private mechanism at "
        f"epsilon = {question.float_epsilon:g}."
    )


def list_bin_grid(
    m: int, question: LawQuestion, max_output: float, *, stride: int = 1
) -> list[Bins]:
    """List the bins that Algorithm 2 searches: -B, m - 2 around a centre, B.

    Args:
        m: the number of bins. If m = 3, the inner bin is the centre.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        max_output: the largest outermost bin B.
        stride: only every stride-th outer and inner bin of the grid is listed.

    Returns:
        The bins, each in increasing order.
    """
    density = question.density
    step = stride
    if m > _MAX_FULL_GRID_BINS:
        step = max(stride, 2)
    least_reach = smallest_reach(question.float_epsilon)
    span = min(least_reach, _MAX_OUTER_BIN_SPAN)
    last_output = max_output
    # At a small ε the least reach is large, and inner bins have a probability of at most about ε/2.
    # Bins far beyond the least reach only raise the error, so the grid then ends near it.
    if least_reach > _MAX_OUTER_BIN_SPAN:
        last_output = min(max_output, least_reach + _MAX_OUTER_BIN_SPAN)
    inner_reaches = [ZERO]
    if m > 3:
        inner_reaches = [Fraction(k, 10) for k in range(1, 11, step)]
    centres = [ZERO]
    if not density.is_symmetric:
        # Centres at 0, at the mean of the inputs, and halfway between the two.
        x, w = density.quadrature([0.0])
        mean = math.fsum(x * w)
        centres = [_round_bin(share * mean) for share in (0.0, 0.5, 1.0)]
    grid = []
    first_output = least_reach + _FIRST_OUTER_SHARE * span
    for outer in np.linspace(first_output, last_output, _OUTER_BIN_COUNT)[::step]:
        for b, centre in itertools.product(inner_reaches, centres):
            inner = [centre - b + 2 * b * Fraction(k, max(1, m - 3)) for k in range(m - 2)]
            grid.append((-_round_bin(outer), *inner, _round_bin(outer)))
    return [bins for bins in grid if is_increasing(bins)]


def is_increasing(bins: Sequence[Fraction]) -> bool:
    """Check whether bins are strictly increasing.

    Args:
        bins: the bins.
    """
    return all(a < b for a, b in itertools.pairwise(bins))


def _find_best_bins(
    grid: Sequence[Bins], question: LawQuestion, width: float | None
) -> Bins | None:
    """Find the bins of the grid whose OPTM has the least exact error and is private.

    Args:
        grid: the bins to try, with equal outermost bins next to each other.
        question: density, loss and ε of the law, with the solver.
        width: the width of the slices of OPTM's programs (see `list_slice_widths`). None: slices
            whose width is relative to the selection probabilities.

    Returns:
        The bins; None if no bins of the grid have a mechanism that is private up to rounding.
    """
    epsilon = question.epsilon
    least_error = math.inf
    best = None
    with closing(ProgramSolver(question)) as solver:
        for k, bins in enumerate(grid):
            if k == 0 or bins[-1] != grid[k - 1][-1]:
                question.progress(
                    f"outer bin {float(bins[-1]):g} ({k + 1} of {len(grid)} choices of bins), "
                    f"{solver.solve_count} LPs"
                )
            answer = solve_optm(bins, question, width=width, solver=solver)
            if answer is None:
                continue
            error = answer.quantizer.expected_loss(question.loss, question.density)
            if error < least_error and is_private(answer.quantizer, epsilon + _EPSILON_ROUNDING):
                least_error = error
                best = bins
    return best


def _refine_bins(bins: Bins, question: LawQuestion, max_output: float) -> Bins:
    """Move one bin after the other while this lowers the error of the product optimum.

    If the density is symmetric, a bin and its mirror image move together.

    Returns:
        The moved bins, all within ±max_output.
    """
    m = len(bins)
    is_symmetric = question.density.is_symmetric

    box_count = _FINE_BOX_COUNT if m <= _MAX_FINE_BINS else _COARSE_BOX_COUNT

    def compute_least_error(bins: Bins) -> float:
        """Compute the least error of a two-bin mechanism on bins; infinite if there is none."""
        answer = solve_product_optimum(bins, question, nodes=box_count)
        return math.inf if answer is None else answer.objective

    error = compute_least_error(bins)
    step = _FIRST_BIN_STEP
    while step > _LAST_BIN_STEP:
        has_moved = False
        for i, sign in itertools.product(range(m // 2 if is_symmetric else 0, m), (1, -1)):
            trial = list(bins)
            trial[i] += sign * step
            if is_symmetric:
                trial[m - 1 - i] = -trial[i]
            if not is_increasing(trial) or trial[0] > -1 or trial[-1] < 1:
                continue
            if max(-trial[0], trial[-1]) > max_output:
                continue
            trial_error = compute_least_error(tuple(trial))
            if trial_error < error - _MIN_BIN_GAIN:
                bins = tuple(trial)
                error = trial_error
                has_moved = True
        if not has_moved:
            step /= 2
        question.progress(f"bins moved in steps of {float(step):g}: {error:.6f}")
    return bins


def _round_bin(value: float) -> Fraction:
    """Round a bin to hundredths."""
    return read_number(f"{value:.2f}", "a bin")


def find_largest_q(bins: Any, epsilon: Real, *, digits: int = 3) -> Fraction | None:
    """Find the largest q for which RQM is exactly ε-private on these bins.

    Args:
        bins: the outputs in increasing order, as text or numbers.
        epsilon: the budget ε > 0.
        digits: number of decimals of q. If 1 - q is then below 10^-2, decimals are added until
            1 - q has `digits` - 1 significant digits.

    Returns:
        q, or None if q = 0 is not private. The bisection assumes that no larger q is private than
        the first one that is not.
    """
    outputs = read_bins(bins)
    budget = read_positive(epsilon, "epsilon")
    unit_count = 10**digits

    def violates_privacy(k: int) -> bool:
        """Check whether RQM with q = k/unit_count is not ε-private."""
        mechanism = rqm(outputs, Fraction(k, unit_count))
        return not audit_extremes(mechanism, 0).meets("pure", epsilon)

    if violates_privacy(0):
        return None

    def violates_estimate(k: int) -> bool:
        """Do what `violates_privacy` does in floats, which is much faster."""
        return estimate_rqm_epsilon(outputs, Fraction(k, unit_count)) > float(budget)

    # 1 - q is (unit_count - largest_k) / unit_count. Its numerator has `digits` - 1 digits if it is
    # at least 10^(digits - 2).
    while True:
        guess, _ = bisect_integers(violates_estimate, 0, unit_count)
        largest_k, _ = bisect_integers(violates_privacy, 0, unit_count, guess)
        has_enough_digits = unit_count - largest_k >= 10 ** (digits - 2)
        if has_enough_digits or unit_count >= _MAX_SELECTION_UNITS:
            break
        unit_count *= 10
    return Fraction(largest_k, unit_count)


def find_largest_q_rqm(bins: Any, epsilon: Real, *, digits: int = 3) -> Quantizer | None:
    """Find RQM with the largest q that is exactly ε-private on these bins.

    Args:
        bins: the outputs in increasing order, as text or numbers.
        epsilon: the budget ε > 0.
        digits: number of decimals of q; more if q is near 1, as for `find_largest_q`.

    Returns:
        The mechanism, or None if no q is private.
    """
    q = find_largest_q(bins, epsilon, digits=digits)
    return None if q is None else rqm(bins, q)


def find_best_rqm(
    levels: int,
    epsilon: Real,
    loss: Any = "absolute",
    density: Density | None = None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Quantizer | None:
    """Find the best RQM with equal bins on [-1, 1].

    The outer bin is on a grid that is refined around the best, and q is the largest private one to
    three digits. With two outputs RQM is randomized response.

    Args:
        levels: the number of outputs, at least 2.
        epsilon: the budget ε > 0.
        loss: "absolute", "squared", or λ in [0, 1] for λ|e| + (1 - λ) e² of the error e.
        density: the density of the inputs on [-1, 1]. None: uniform.
        should_stop: is asked before every outer bin. Once it returns True, no more are tried.

    Returns:
        The mechanism, or None if no outer bin that was tried has one.
    """
    if levels == 2:
        return randomized_response(epsilon)
    # This is `smallest_reach`, coth(ε/2), up to rounding.
    least_reach = 1 / math.tanh(float(read_positive(epsilon, "epsilon")) / 2)
    # Keys are the outermost output as a multiple of the least reach.
    quantizers: dict[float, Quantizer | None] = {}
    errors: dict[float, float] = {}

    def find_error(factor: float) -> float:
        """Return the error at an outermost output; infinite without a private q, or if stopped."""
        if factor not in errors:
            quantizers[factor] = None
            errors[factor] = math.inf
            if should_stop():
                return math.inf
            outer = math.ceil(least_reach * factor * _RQM_OUTPUT_UNITS)
            bins = equal_bins(levels, Fraction(outer, _RQM_OUTPUT_UNITS))
            quantizer = find_largest_q_rqm(bins, epsilon)
            if quantizer is not None:
                quantizers[factor] = quantizer
                errors[factor] = quantizer.expected_loss(loss, density)
        return errors[factor]

    best_factor = min(_RQM_REACH_FACTORS, key=find_error)
    for _ in range(_RQM_REFINEMENTS):
        factors = sorted(errors)
        index = factors.index(best_factor)
        neighbours = [factors[i] for i in (index - 1, index + 1) if 0 <= i < len(factors)]
        midpoints = [(best_factor + neighbour) / 2 for neighbour in neighbours]
        best_factor = min([best_factor, *midpoints], key=find_error)
    return quantizers[best_factor]
