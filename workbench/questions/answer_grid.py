"""Convert the answers of a query to places on a grid, so that integer noise can be added to them.

The answers may have any start, step and order.

x = low + step place,  place = 0..last        step: the greatest common divisor of all differences
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
        step: The distance of two places.
        places: The places of the answers on the grid, in the query's order, shape (k,).
        reach: The largest number of steps between neighbours.
        nearest_outputs: For every place the position of the output nearest to it; of two, the
            smaller output.
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

        The smallest is 0 where it is no multiple of the step.
        """
        start = self.low / self.step
        first = int(start) if start.denominator == 1 else 0
        return first, first + self.last

    def spread_weights(self, weights: Sequence[Fraction]) -> Rationals:
        """Return weights of the answers as weights of all places.

        Args:
            weights: The weights, shape (k,).
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
            rows: A law for each place, shape (last + 1,) each.
            output_count: The number m of outputs of the query.

        Returns:
            A law for each answer of the query, shape (m,) each.
        """
        if self.is_complete:
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

    Returns None if the answers are no numbers, or more than MAX_GRID_PLACES steps apart.

    Args:
        question: Any finite query.
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
    return AnswerGrid(low, step, places, reach, tuple(nearest_outputs), has_same_outputs)
