"""Convert the answers of a query to places on a grid, so that integer noise can be added to them.

A query has k numeric answers in any order, with any start and step. Each answer x gets an integer
place:

    x = low + step place,  place = 0..last

Here low is the smallest answer, and step is the greatest common divisor of all differences. For
example, the answers 10, 40, 20 have low = 10, step = 10 and the places 0, 3, 1.
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

MAX_GRID_PLACES = 10_000  # Answers that are more steps apart have no grid.


@dataclass(frozen=True)
class AnswerGrid:
    """The answers and outputs of a query on a grid.

    Attributes:
        low: The smallest answer.
        step: The distance between two consecutive places, in units of the answers.
        places: The places of the answers on the grid, in the query's order, shape (k,).
        reach: The largest number of steps between neighbours.
        nearest_outputs: Position of the nearest output for every place, shape (last + 1,). If two
            outputs are equally near, it is the smaller output.
        has_same_outputs: Whether the outputs are the answers.
    """

    low: Fraction
    step: Fraction
    places: tuple[int, ...]
    reach: int
    nearest_outputs: tuple[int, ...]
    has_same_outputs: bool

    @property
    def last(self) -> int:
        """Return the largest place of an answer."""
        return max(self.places)

    @property
    def is_complete(self) -> bool:
        """Return whether every place is an answer, and the outputs are the answers."""
        return len(self.places) == self.last + 1 and self.has_same_outputs

    @property
    def clamp(self) -> Pair:
        """Return the smallest and the largest answer in steps.

        If the smallest answer is no multiple of the step, it counts as 0.
        """
        start = self.low / self.step
        first = int(start) if start.denominator == 1 else 0
        return first, first + self.last

    def spread_weights(self, weights: Sequence[Fraction]) -> Rationals:
        """Convert weights of the answers to weights of all places. Other places have the weight 0.

        Args:
            weights: Weight of each answer, in the query's order. Shape (k,).
        """
        place_weights = [ZERO] * (self.last + 1)
        for place, weight in zip(self.places, weights, strict=True):
            place_weights[place] = weight
        return tuple(place_weights)

    def convert_rows(
        self, rows: Sequence[NDArray[np.object_]], output_count: int
    ) -> list[NDArray[np.object_]]:
        """Convert laws on the places into laws on the query's outputs.

        Args:
            rows: Law of a published place for each true place. last + 1 laws of shape (last + 1,).
            output_count: The number m of outputs of the query.

        Returns:
            Law of the output for each answer, in the query's order. k laws of shape (m,). A place
            is published as its nearest output.
        """
        if self.is_complete:
            # Every place is an output, so its mass only moves to the position of that output.
            order = np.argsort(self.nearest_outputs)
            return [rows[place][order] for place in self.places]
        converted = []
        for place in self.places:
            row = np.full(output_count, 0, dtype=object)
            for mass, position in zip(rows[place], self.nearest_outputs, strict=True):
                row[position] = row[position] + mass
            converted.append(row)
        return converted


def find_answer_grid(question: FiniteQuery) -> AnswerGrid | None:
    """Find the grid of a query's answers.

    Args:
        question: Any finite query.

    Returns:
        None if answers or outputs are no numbers, or if the answers are more than MAX_GRID_PLACES
        steps apart.
    """
    if question.numbers is None:
        return None
    inputs, outputs = question.numbers
    low = min(inputs)
    scale = math.lcm(*(x.denominator for x in inputs))
    step = Fraction(math.gcd(*(int((x - low) * scale) for x in inputs)), scale)
    places = tuple(int((x - low) / step) for x in inputs)
    if max(places) > MAX_GRID_PLACES:
        return None
    # The nearest output never decreases from one place to the next, so the search goes on there.
    nearest_outputs = []
    order = sorted(range(len(outputs)), key=outputs.__getitem__)
    index = 0
    for place in range(max(places) + 1):
        value = low + step * place
        while index + 1 < len(order):
            distance = abs(outputs[order[index]] - value)
            if abs(outputs[order[index + 1]] - value) >= distance:
                break
            index += 1
        nearest_outputs.append(order[index])
    if question.pairs is None:
        reach = max(places)
    else:
        reach = max(abs(places[i] - places[j]) for i, j in question.pairs)
    has_same_outputs = {*inputs} == {*outputs}
    return AnswerGrid(
        low,
        step,
        places,
        reach,
        nearest_outputs=tuple(nearest_outputs),
        has_same_outputs=has_same_outputs,
    )
