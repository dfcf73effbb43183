"""Trace the trade-off between the bias and the error of biased quantizers at a budget.

Biased quantization (Cai et al. 2024, Sec. 5) draws two outputs around the input as RQM does, and
publishes one of them by the exponential mechanism with the rate β
(`workbench.mechanisms.baselines.two_bin.BiasedQuantizer`). It has three parameters here: the
outermost output B, the selection probability q and β. B and q run over a grid. β is the largest
private one, or a share of it, because a smaller β may have a smaller bias.

ε is enclosed by ball arithmetic and rounded up, so every mechanism of the result is private. The
errors and the bias are floats. Inputs are in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from workbench.errors import NotProven
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.search import SearchClock
from workbench.mechanisms.baselines.two_bin import BiasedQuantizer, equal_bins, rqm_selection
from workbench.models.quantizer.program import smallest_reach
from workbench.solvers.search import bisect_integers

_REACH_COUNT = 8  # The grid has this many outermost outputs.
_MAX_REACH_FACTOR = 1.5  # The largest one is this multiple of the least reach without bias.
_SELECTIONS = tuple(Fraction(k, 10) for k in (0, 1, 2, 4, 6, 8, 9))  # The values of q.
_MAX_RATE_PER_EPSILON = 8  # β is at most this multiple of ε.
_RATE_STEPS = 400  # The largest private β is a multiple of its upper limit divided by this.
_RATE_SHARES = tuple(Fraction(k, 4) for k in (1, 2, 3, 4))  # Shares of the largest private β.


@dataclass(frozen=True)
class BiasedPoint:
    """A biased quantizer that no other of the search beats in both bias and error.

    Attributes:
        quantizer: the mechanism.
        bias: the largest |E M(x) - x|.
        error: the expected loss of the question.
    """

    quantizer: BiasedQuantizer
    bias: float
    error: float


def trace_biased_quantizers(
    levels: int, question: LawQuestion, clock: SearchClock | None = None
) -> list[BiasedPoint]:
    """Find the biased quantizers with the smallest errors for their biases.

    Args:
        levels: the number of outputs, at least 2.
        question: density, loss and ε of the law (see `LawQuestion`).
        clock: is asked before every B and q of the grid, and says later whether it stopped the
            search. None: a clock with the deadline of the question.

    Returns:
        The points in the order of increasing bias and falling error; none if no quantizer of the
        grid is private.

    Raises:
        NotProven: the time limit ended the search before a private quantizer was found.
    """
    clock = clock or SearchClock(question.deadline)
    points = []
    for quantizer in _list_private_quantizers(levels, question, clock):
        error = quantizer.expected_loss(question.loss, question.density)
        points.append(BiasedPoint(quantizer, quantizer.bias, error))
    if clock.is_stopped and not points:
        raise NotProven(
            "The time limit ended the search before a private biased quantizer was found."
        )
    points.sort(key=lambda point: (point.bias, point.error))
    best_points: list[BiasedPoint] = []
    for point in points:
        if not best_points or point.error < best_points[-1].error:
            best_points.append(point)
    return best_points


def _list_private_quantizers(
    levels: int, question: LawQuestion, clock: SearchClock
) -> Iterator[BiasedQuantizer]:
    """Yield the private quantizers of the grid until the clock stops the search."""
    epsilon = question.float_epsilon
    max_rate = _MAX_RATE_PER_EPSILON * question.epsilon
    # With two outputs there is nothing to select.
    selections = _SELECTIONS if levels > 2 else _SELECTIONS[:1]
    for reach in np.geomspace(1, _MAX_REACH_FACTOR * smallest_reach(epsilon), _REACH_COUNT):
        bins = equal_bins(levels, Fraction(f"{reach:.4g}"))
        for q in selections:
            if clock.should_stop():
                return
            selection = rqm_selection(levels, q)
            build = partial(BiasedQuantizer.from_selection, bins, selection)
            largest_rate = _find_largest_rate(build, epsilon, max_rate)
            if largest_rate is not None:
                for share in _RATE_SHARES:
                    quantizer = build(share * largest_rate)
                    # That ε rises with β is not proven, so every quantizer is tested.
                    if quantizer.epsilon <= epsilon:
                        yield quantizer


def _find_largest_rate(
    build: Callable[[Fraction], BiasedQuantizer], epsilon: float, max_rate: Fraction
) -> Fraction | None:
    """Find the largest private β by bisection. None if β = 0 is not private.

    Args:
        build: returns the quantizer of a rate.
        epsilon: the budget ε > 0.
        max_rate: β is less than this.
    """

    def violates_privacy(k: int) -> bool:
        """Check whether β = k max_rate/_RATE_STEPS is not private."""
        return build(max_rate * k / _RATE_STEPS).epsilon > epsilon

    if violates_privacy(0):
        return None
    largest_k, _ = bisect_integers(violates_privacy, 0, _RATE_STEPS)
    return max_rate * largest_k / _RATE_STEPS
