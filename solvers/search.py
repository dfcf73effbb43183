"""Building blocks of searches: a deadline, bisection, chords, and open nodes sorted by their bound.

Deadline     a time limit: `remaining_seconds`, `has_passed`, `elapsed_seconds`
bisect       finds where a monotone predicate changes from False to True, for floats or rationals
bisect_each  the same for many floats at once
Chords       points for `bisect` that need fewer steps than midpoints
OpenNodes    the queue of a branch-and-bound search. A node stands for a set of candidates, and has
             a lower bound on their values. The node with the smallest bound is searched first
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import copy
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from workbench.solvers.arrays import Flags, Pair, Vector

Number = TypeVar("Number", float, Fraction)
Node = TypeVar("Node")

_MIN_SOLVER_SECONDS = 1e-3  # A solver gets this much time even if the deadline has passed.


class Deadline:
    """A time limit that starts when the object is made.

    Attributes:
        seconds: the limit, or None for no limit.
    """

    def __init__(self, seconds: float | None = None, *, cpu: bool = False) -> None:
        """Start the clock.

        Args:
            seconds: the limit, or None for no limit.
            cpu: whether to count CPU time of this process instead of wall-clock time.
        """
        self._clock = time.process_time if cpu else time.perf_counter
        self.seconds = seconds
        self._begin = self._clock()

    @property
    def elapsed_seconds(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._begin

    @property
    def remaining_seconds(self) -> float | None:
        """Return the seconds until the deadline, negative after it; None without a limit."""
        if self.seconds is None:
            return None
        return self.seconds - self.elapsed_seconds

    @property
    def solver_time_limit(self) -> float | None:
        """Return the time limit of a solver that starts now: the remaining time, but positive."""
        if self.seconds is None:
            return None
        return max(_MIN_SOLVER_SECONDS, self.seconds - self.elapsed_seconds)

    @property
    def has_passed(self) -> bool:
        """Return whether the deadline has passed."""
        return self.seconds is not None and self.elapsed_seconds > self.seconds

    def rescale(self, factor: float) -> Deadline:
        """Return a deadline with the same start and a limit multiplied by a factor.

        Args:
            factor: below 1 for an earlier end, above 1 for a grace period.
        """
        rescaled_deadline = copy(self)
        if self.seconds is not None:
            rescaled_deadline.seconds = factor * self.seconds
        return rescaled_deadline


def bisect(
    is_above: Callable[[Number], bool | None],
    low: Number,
    high: Number,
    *,
    tolerance: Number | int = 0,
    max_steps: int = 10_000,
    choose_point: Callable[[Number, Number], Number] | None = None,
) -> tuple[Number, Number]:
    """Return an interval (low, high) in which a monotone predicate changes from False to True.

    For the point where an increasing function reaches a level, pass `lambda x: f(x) >= level`.

    Args:
        is_above: the predicate. It is assumed to be False at `low` and True at `high`, and is not
            evaluated there. If it returns None (undecided), the search ends.
        low: lower end of the interval.
        high: upper end of the interval.
        tolerance: the search ends if high - low is at most this, or if no float lies between.
        max_steps: the search ends after this many evaluations.
        choose_point: maps (low, high) to the next point between them. If it returns low or high,
            the search ends. Default: the midpoint. Use the geometric mean for numbers of unknown
            size.
    """
    for _ in range(max_steps):
        point = (low + high) / 2 if choose_point is None else choose_point(low, high)
        if high - low <= tolerance or point in (low, high):
            break
        verdict = is_above(point)
        if verdict is None:
            break
        if verdict:
            high = point
        else:
            low = point
    return low, high


def bisect_integers(
    is_above: Callable[[int], bool], low: int, high: int, guess: int | None = None
) -> tuple[int, int]:
    """Return neighbouring integers between which a monotone predicate changes to True.

    Args:
        is_above: the predicate. It is assumed to be False at `low` and True at `high`, and is not
            evaluated there.
        low: an integer.
        high: a larger integer.
        guess: where the predicate may be False for the last time. It and the next integer are
            tried first. None: no guess.

    Returns:
        (last, last + 1): the last integer at which the predicate is False, and the next one.
    """
    for point in () if guess is None else (guess, guess + 1):
        if low < point < high:
            if is_above(point):
                high = point
            else:
                low = point
    while high - low > 1:
        middle = (low + high) // 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return low, high


def bisect_each(
    is_above: Callable[[Vector], Flags], low: Vector, high: Vector, step_count: int
) -> Pair:
    """Bisect many intervals at once.

    Args:
        is_above: predicate of arrays with the shape of `low`.
        low: lower ends, of any shape.
        high: upper ends, of the same shape.
        step_count: number of halvings.

    Returns:
        Arrays of the lower and the upper ends.
    """
    for _ in range(step_count):
        middle = (low + high) / 2
        verdicts = is_above(middle)
        low = np.where(verdicts, low, middle)
        high = np.where(verdicts, middle, high)
    return low, high


class Chords:
    """Points for `bisect` at which the chord of a decreasing function is 0.

    Pass the method `choose_point` to `bisect`, and store each computed value of the function in
    `values`. For example, the values 3 at 0 and -1 at 4 have a chord that is 0 at 3, so 3 is the
    next point.

    If one end is the same in three intervals in a row, its stored value is halved, which
    moves the next point towards it (the Illinois rule; Dowell and Jarratt 1971).

    Attributes:
        values: argument -> value of the function. The caller adds the computed values. An unknown
            value is 0.
    """

    def __init__(self, margin: float) -> None:
        """Begin without values.

        Args:
            margin: a point is at least this share of the interval away from both ends.
        """
        self.values = defaultdict[Any, float](float)
        self._margin = margin
        self._intervals = list[set[Any]]()  # The ends of every interval until now.

    def choose_point(self, low: Number, high: Number, default_share: float = 0.5) -> float:
        """Return the next point between the ends of an interval.

        Args:
            low: lower end.
            high: upper end.
            default_share: share of the way from low to high. It is used if the chord is unknown,
                that is, unless `values` is positive at low and negative at high.
        """
        self._intervals.append({low, high})
        if len(self._intervals) > 2:
            unmoved_ends = set.intersection(*self._intervals[-3:])
            for end in unmoved_ends:
                self.values[end] /= 2
        low_value = self.values[low]
        high_value = self.values[high]
        share = default_share
        if low_value > 0 > high_value:
            share = low_value / (low_value - high_value)
        return float(low) + min(max(share, self._margin), 1 - self._margin) * float(high - low)


class OpenNodes(Generic[Node]):
    """Open nodes of a best-first search for a minimum.

    Nodes with the same bound are visited in the order in which they were added.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Node]] = []
        self._count = 0

    def put(self, bound: float, node: Node) -> None:
        """Add an open node.

        Args:
            bound: lower bound on the values in the node.
            node: the node.
        """
        heapq.heappush(self._heap, (bound, self._count, node))
        self._count += 1

    @property
    def first_node(self) -> Node:
        """Return the node with the smallest bound.

        Call `pop` after reading it. In this order, Ctrl-C between the two loses no bound.
        """
        return self._heap[0][2]

    def pop(self) -> None:
        """Remove the first node. Raises IndexError if no node is open."""
        heapq.heappop(self._heap)

    @property
    def lower_bound(self) -> float:
        """Return the smallest bound of all open nodes, or inf without nodes."""
        if self._heap:
            return self._heap[0][0]
        return math.inf

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[tuple[float, Node]]:
        return ((bound, node) for bound, _, node in self._heap)
