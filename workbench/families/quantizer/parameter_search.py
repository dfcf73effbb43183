"""Find the parameters of RQM and ERM that have the smallest error at a budget.

RQM has one parameter q and ERM one parameter γ (`workbench.mechanisms.baselines.two_bin`). Inputs
are in [-1, 1]. The outputs are called bins, as in Cai et al. 2024, and m is their number.

Why the largest private parameter is the best one. Both mechanisms draw a left bin and a right bin
independently. As q or γ grows, the drawn bins move towards the input in the stochastic order. For
RQM more bins are selected. For ERM a nearer bin gains probability relative to a farther one. So the
draws for two parameters can be coupled such that the pair of the larger parameter lies between the
pair of the smaller one. Of two laws with mean x, each on a pair of bins, the law on the nearer pair
has the smaller expected loss, for every convex loss. The expected error therefore never increases
with q or γ, at every input.

It is not proven that ε never decreases with q or γ. A bisection finds a private parameter such that
the next larger one on its grid is not private. The exact audit decides at every step.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from workbench.data.intervals import read_bins
from workbench.errors import NotProven
from workbench.exact.numbers import Real
from workbench.families.quantizer.laws import Bins, LawQuestion
from workbench.families.quantizer.search import (
    SearchClock,
    find_best_rqm,
    find_largest_q,
    is_increasing,
    list_bin_grid,
)
from workbench.mechanisms.baselines.two_bin import erm, randomized_response, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach, smallest_reach
from workbench.privacy.audit import audit_extremes
from workbench.solvers.search import bisect_integers

_PARAMETER_DIGITS = 6  # q has this many significant digits, and γ this many decimals.
_SEARCH_DECIMALS = 3  # γ has this many decimals while bins are searched.
_MAX_GAMMA = 100  # A larger γ is not tried.
# ERM is private at a large γ if all bins are beyond the inputs and the innermost ones reach far
# enough. The innermost bins of this kind are these multiples of the least reach.
_WIDE_BIN_FACTORS = (1.001, 1.02)
_WIDE_BIN_RATIO = Fraction(3, 2)  # The ratio of neighbouring bins of this kind.
_FIRST_STEP = Fraction(1, 20)  # Bins are moved by this step first.
_LAST_STEP = Fraction(1, 100)  # Bins are not moved by a smaller step.


class FoundQuantizer(NamedTuple):
    """A mechanism with its parameter.

    Attributes:
        quantizer: the mechanism.
        parameter: the parameter as text, such as "q = 0.219". Empty for two outputs.
        is_stopped: whether the time limit stopped the search for the bins.
    """

    quantizer: Quantizer
    parameter: str
    is_stopped: bool = False


def find_best_parameter(
    method: str, bins: Bins | None, levels: int, question: LawQuestion
) -> FoundQuantizer | None:
    """Find the RQM or ERM of least error at a budget.

    Args:
        method: "rqm" or "erm".
        bins: the outputs in increasing order; symmetric around 0 for "erm". None: the search
            chooses them.
        levels: the number of outputs.
        question: density, loss, ε and deadline of the law (see `LawQuestion`). After the deadline
            no more bins are tried.

    Returns:
        The mechanism and its parameter. None if none was found.

    Raises:
        NotProven: the time limit ended the search before bins with a private parameter were found.
    """
    if bins is None and levels == 2:
        return FoundQuantizer(randomized_response(question.epsilon), "")
    clock = SearchClock(question.deadline)
    if bins is None:
        bins = _search_bins(method, levels, question, clock)
    if bins is None:
        if clock.is_stopped:
            raise NotProven(
                f"The time limit ended the search before bins with a private parameter of "
                f"{method.upper()} were found. Increase --time-limit."
            )
        return None
    if method == "rqm":
        q = find_largest_q(bins, question.epsilon, digits=_PARAMETER_DIGITS)
        if q is None:
            return None
        return FoundQuantizer(rqm(bins, q), f"q = {float(q):.9g}", clock.is_stopped)
    gamma = find_largest_gamma(bins, question.epsilon)
    if gamma is None:
        return None
    return FoundQuantizer(erm(bins, gamma), f"gamma = {float(gamma):.9g}", clock.is_stopped)


def _search_bins(
    method: str, levels: int, question: LawQuestion, clock: SearchClock
) -> Bins | None:
    """Return the best bins that are tried before the clock stops the search. None without any."""
    if method == "erm":
        return _ErmSearch(question, clock).find_best_bins(levels)
    best = find_best_rqm(
        levels, question.epsilon, question.loss, question.density, should_stop=clock.should_stop
    )
    return None if best is None else best.bins


def find_largest_gamma(
    bins: Any, epsilon: Real, *, decimals: int = _PARAMETER_DIGITS
) -> Fraction | None:
    """Find the largest γ for which ERM is exactly ε-private on these bins.

    Args:
        bins: the outputs in increasing order, symmetric around 0, as text or numbers.
        epsilon: the budget ε > 0.
        decimals: γ is a multiple of 10^-decimals.

    Returns:
        γ, at most 100, or None if γ = 0 is not private. The bisection assumes that no larger γ is
        private than the first one that is not.
    """
    outputs = read_bins(bins)
    unit_count = 10**decimals

    def violates_privacy(k: int) -> bool:
        """Check whether ERM with γ = k/unit_count is not ε-private."""
        mechanism = erm(outputs, Fraction(k, unit_count))
        return not audit_extremes(mechanism, 0).meets("pure", epsilon)

    if violates_privacy(0):
        return None
    largest_k = _MAX_GAMMA * unit_count
    if violates_privacy(largest_k):
        largest_k, _ = bisect_integers(violates_privacy, 0, largest_k)
    return Fraction(largest_k, unit_count)


class _ErmSearch:
    """Search for the bins of ERM: -B, m - 2 equally spaced bins from -b to b, and B.

    B and b run over the grid of Algorithm 2 (`list_bin_grid`). Bins without one inside the inputs
    are tried as well. B and b are then moved while this lowers the error.

    Args:
        question: density, loss and ε of the law.
        clock: is asked before every trial. Once it stops the search, no more bins are tried.

    Attributes:
        best_bins: the best bins found, None before there are any.
        least_error: the error of ERM on them, at its largest private γ.
    """

    def __init__(self, question: LawQuestion, clock: SearchClock) -> None:
        self.question = question
        self.clock = clock
        self.best_bins: Bins | None = None
        self.least_error = math.inf

    def find_best_bins(self, levels: int) -> Bins | None:
        """Return the best bins found, None if no bins that were tried have a private ERM."""
        question = self.question
        grid = list_bin_grid(levels, question, default_reach(question.float_epsilon))
        grid += _list_wide_bins(levels, question.float_epsilon)
        for bins in grid:
            self._try_bins(bins)
        step = _FIRST_STEP
        while self.best_bins is not None and step >= _LAST_STEP:
            has_moved = False
            for outer_shift, inner_shift in ((step, 0), (-step, 0), (0, step), (0, -step)):
                moved_bins = _move_bins(self.best_bins, outer_shift, inner_shift)
                has_moved = self._try_bins(moved_bins) or has_moved
            if not has_moved:
                step /= 2
        return self.best_bins

    def _try_bins(self, bins: Bins) -> bool:
        """Keep bins if their ERM has a smaller error than the best one, and return whether so."""
        is_symmetric = all(a == -b for a, b in zip(bins, reversed(bins), strict=True))
        if not is_symmetric or not is_increasing(bins) or bins[-1] < 1:
            return False
        if self.clock.should_stop():
            return False
        # A larger γ has a smaller error, so the largest one shows whether the bins can be better.
        if self._compute_error(bins, _MAX_GAMMA) >= self.least_error:
            return False
        gamma = find_largest_gamma(bins, self.question.epsilon, decimals=_SEARCH_DECIMALS)
        if gamma is None:
            return False
        error = self._compute_error(bins, gamma)
        if error >= self.least_error:
            return False
        self.best_bins = bins
        self.least_error = error
        self.question.progress(f"outer bin {float(bins[-1]):g}: error {error:.6f}")
        return True

    def _compute_error(self, bins: Bins, gamma: Real) -> float:
        """Compute the expected loss of ERM."""
        return erm(bins, gamma).expected_loss(self.question.loss, self.question.density)


def _list_wide_bins(levels: int, epsilon: float) -> list[Bins]:
    """List bins of which none is in [-1, 1], for an even number of outputs."""
    if levels % 2:
        return []
    wide_bins = []
    for factor in _WIDE_BIN_FACTORS:
        innermost = Fraction(math.ceil(100 * factor * smallest_reach(epsilon)), 100)
        positive_bins = [innermost * _WIDE_BIN_RATIO**k for k in range(levels // 2)]
        wide_bins.append((*(-b for b in reversed(positive_bins)), *positive_bins))
    return wide_bins


def _move_bins(bins: Bins, outer_shift: Fraction | int, inner_shift: Fraction | int) -> Bins:
    """Move the outermost bins outwards by a shift, and the ends b of the inner bins by another."""
    inner_reach = bins[-2]
    factor = Fraction(1)
    if inner_reach:
        factor += inner_shift / inner_reach
    inner_bins = [b * factor for b in bins[1:-1]]
    return (bins[0] - outer_shift, *inner_bins, bins[-1] + outer_shift)
