"""What searches are made of, once for all above: a deadline, bisection and chords, open nodes by their bound.

    Deadline     the one reader of clocks: `.left`, `.passed`, `.elapsed`
    bisect       where a monotone predicate turns, over floats or rationals
    bisect_each  the same of many floats at once
    Chords       where `bisect` asks next of a function that falls: by its chords
    OpenNodes    best-first search: the open nodes, least bound first; what is open bounds what is not yet seen

Loops that a search needs beside these (what a node is split into, which rows are dropped) are its own.
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

_LEAST = 1e-3  # seconds that a solver gets although the time is over


class Deadline:
    """So many seconds from its making; None for no end. cpu: of this process's work, else of the wall clock."""

    def __init__(self, seconds: float | None = None, *, cpu: bool = False) -> None:
        self._clock = time.process_time if cpu else time.perf_counter
        self.seconds, self._begin = seconds, self._clock()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since it was made."""
        return self._clock() - self._begin

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds that are left, below 0 when it has passed; None without an end."""
        return None if self.seconds is None else self.seconds - self.elapsed_seconds

    @property
    def solver_time_limit(self) -> float | None:
        """The time limit of a solver that starts now: what is left, but at least a little."""
        return None if self.seconds is None else max(_LEAST, self.seconds - self.elapsed_seconds)

    @property
    def has_passed(self) -> bool:
        """Whether it has."""
        return self.seconds is not None and self.elapsed_seconds > self.seconds

    def rescale(self, factor: float) -> Deadline:
        """The same clock with so many times the seconds: a part that ends earlier, or a grace."""
        other = copy(self)
        other.seconds = None if self.seconds is None else factor * self.seconds
        return other


def bisect(
    is_above: Callable[[Number], bool | None],
    low: Number,
    high: Number,
    *,
    tolerance: Number | int = 0,
    max_steps: int = 10_000,
    choose_point: Callable[[Number, Number], Number] | None = None,
) -> tuple[Number, Number]:
    """The last interval (low, high): `turned` is False at low and True at high, which are not asked themselves.

    Ends when high - low <= tolerance (of floats: when there is none between), after so many turns, or where `turned` is
    None: undecided. middle: where to ask, half-way by default; the geometric mean for numbers of unknown size; an end
    to end. A function that rises to a level is `lambda x: f(x) >= level`.
    """
    for _ in range(max_steps):
        at = (low + high) / 2 if choose_point is None else choose_point(low, high)
        if high - low <= tolerance or at in (low, high) or (verdict := is_above(at)) is None:
            break
        low, high = (low, at) if verdict else (at, high)
    return low, high


def bisect_each(
    is_above: Callable[[Vector], Flags], low: Vector, high: Vector, step_count: int
) -> Pair:
    """`bisect` of many numbers at once, by so many halvings. turned: of one argument for each. Shapes of low."""
    for _ in range(step_count):
        middle = (low + high) / 2
        there = is_above(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return low, high


class Chords:
    """Where a function that falls meets 0 between two ends: where their chord does, the value at an end that the last
    chords kept being halved (the Illinois rule; Dowell and Jarratt 1971).

    values: argument -> the function there, where it is known: the caller adds them. margin: the least share of the way.
    """

    def __init__(self, margin: float) -> None:
        self.values = defaultdict[Any, float](float)
        self._margin, self._asked = margin, list[set[Any]]()

    def choose_point(self, low: Number, high: Number, unknown: float = 0.5) -> float:
        """unknown: the share of the way from low to high unless values > 0 at low and < 0 at high are known."""
        self._asked.append({low, high})
        for end in set.intersection(*self._asked[-3:]) if len(self._asked) > 2 else ():
            self.values[end] /= 2
        above, below = self.values[low], self.values[high]
        share = above / (above - below) if above > 0 > below else unknown
        return float(low) + min(max(share, self._margin), 1 - self._margin) * float(high - low)


class OpenNodes(Generic[Node]):
    """The open nodes of a best-first search for a minimum; those of one bound come in the order in which they went."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Node]] = []
        self._count = 0

    def put(self, bound: float, node: Node) -> None:
        """Open a node; whatever is in it is worth at least its bound."""
        heapq.heappush(self._heap, (bound, self._count, node))
        self._count += 1

    @property
    def first_node(self) -> Node:
        """The node of the least bound. Take it, then `pop`: in this order Ctrl-C in between loses no bound."""
        return self._heap[0][2]

    def pop(self) -> None:
        """Close the first node. Raises IndexError when none is open."""
        heapq.heappop(self._heap)

    @property
    def lower_bound(self) -> float:
        """The least bound of all open nodes; inf without."""
        return self._heap[0][0] if self._heap else math.inf

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[tuple[float, Node]]:
        return ((bound, node) for bound, _, node in self._heap)
