"""Numbers as places on a grid, so that noise on integers serves answers of any start, step and order.

x = low + step place,  place = 0..last        step: the greatest number of which all differences are multiples
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from workbench.exact.numbers import ZERO, Rationals
from workbench.exact.objects import Pair
from workbench.questions.finite_query import FiniteQuery

MAX_GRID_PLACES = 10_000


@dataclass(frozen=True)
class AnswerGrid:
    """The answers and outputs of a query by value.

    low, step, last: as above; places: (k,) of the answers, in the query's order; reach: how many steps neighbours are
    apart at most; nearest: for every place the position of the output nearest to it, of two the lower number.
    """

    low: Fraction
    step: Fraction
    places: tuple[int, ...]
    reach: int
    nearest_outputs: tuple[int, ...]
    has_same_outputs: bool

    @property
    def last(self) -> int:
        """Of the places of answers."""
        return max(self.places)

    @property
    def is_complete(self) -> bool:
        """Whether every place is an answer, and the answers are what may be published."""
        return len(self.places) == self.last + 1 and self.has_same_outputs

    @property
    def clamp(self) -> Pair:
        """The answers in steps: from 0 where the least is no multiple of the step."""
        start = self.low / self.step
        first = int(start) if start.denominator == 1 else 0
        return first, first + self.last

    def spread_weights(self, weights: Sequence[Fraction]) -> Rationals:
        """Weights of the answers as weights of all places."""
        spread = [ZERO] * (self.last + 1)
        for place, weight in zip(self.places, weights, strict=True):
            spread[place] = weight
        return tuple(spread)

    def convert_rows(
        self, rows: Sequence[NDArray[np.object_]], outputs: int
    ) -> list[NDArray[np.object_]]:
        """Laws on the places, one for each place, as laws on the query's outputs, one for each of its answers."""
        if self.is_complete:
            at = np.argsort(self.nearest_outputs)
            return [rows[place][at] for place in self.places]
        published = []
        for place in self.places:
            row = np.full(outputs, 0, dtype=object)
            for mass, position in zip(rows[place], self.nearest_outputs, strict=True):
                row[position] = row[position] + mass
            published.append(row)
        return published


def find_answer_grid(question: FiniteQuery) -> AnswerGrid | None:
    """The grid of a query's answers; None where they are no numbers, or more than MOST_PLACES steps apart."""
    if question.numbers is None:
        return None
    inputs, outputs = question.numbers
    low = min(inputs)
    scale = math.lcm(*(x.denominator for x in inputs))
    step = Fraction(math.gcd(*(int((x - low) * scale) for x in inputs)), scale)
    places = tuple(int((x - low) / step) for x in inputs)
    if max(places) > MAX_GRID_PLACES:
        return None
    order = sorted(range(len(outputs)), key=outputs.__getitem__)
    nearest, at = [], 0
    for place in range(max(places) + 1):
        value = low + step * place
        while at + 1 < len(order) and abs(outputs[order[at + 1]] - value) < abs(
            outputs[order[at]] - value
        ):
            at += 1
        nearest.append(order[at])
    pairs = question.pairs
    reach = max(places) if pairs is None else max(abs(places[i] - places[j]) for i, j in pairs)
    return AnswerGrid(low, step, places, reach, tuple(nearest), {*inputs} == {*outputs})
