"""Define the question of a channel for real answers in a range, which are rounded to points.

The range is divided into equal cells of width h. The points are the middles of the cells. If the
worst answer counts, the points are the ends of the cells instead, and an answer is rounded at
random to one of the two nearest ends, such that the mean is the answer. For example, "0..8" with
four cells has the points 1, 3, 5, 7, or 0, 2, 4, 6, 8 for the worst answer.

Neighbours differ by at most the sensitivity S, so their points differ by at most ⌈S/h⌉ h. With
random rounding this holds if both answers use the same random number. By default S is the width of
the range, and all points are neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from workbench.data.intervals import format_range, read_range
from workbench.data.plain import read_integer
from workbench.data.points import Point
from workbench.data.priors import read_range_prior
from workbench.errors import must
from workbench.exact.numbers import ZERO, RationalPair, Rationals, read_positive
from workbench.exact.objects import Record
from workbench.io.files import format_fraction
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.questions.finite_query import FiniteQuery

MAX_CELLS = 512  # More cells are refused.
_DEFAULT_CELLS = 8  # The number of cells until a design chooses it.
_MAX_LISTED_WEIGHTS = 12  # The weights of a prior with more parts are not listed in words.


def mean_cell_loss(loss: str, r: Fraction, h: Fraction) -> Fraction:
    """Compute the expected loss of a fixed output for an answer that is uniform on a cell.

    Args:
        loss: The loss, "absolute" or "squared".
        r: The output minus the middle of the cell.
        h: The width of the cell, > 0.

    Returns:
        The exact mean.
    """
    if loss == "squared":
        return r * r + h * h / 12
    if 2 * abs(r) >= h:
        return abs(r)
    return h / 4 + r * r / h


class RangeQuery(FiniteQuery):
    """A query with real answers in a range.

    Args:
        range: "LOW..HIGH", or two numbers.
        sensitivity: The largest difference of neighbouring answers. Default: the width of the
            range.
        cells: The number of cells. Default: the design chooses it.
        prior: "uniform" on the range, "worst", or weights of equal parts of the range, uniform on
            each.

    Attributes:
        weights: The prior weights of the parts of the range. None if the worst answer counts.
        has_user_cells: Whether the number of cells was given.

    Raises:
        InvalidRequest: If range is not LOW..HIGH, if sensitivity is not in (0, high - low], or if
            cells is not a multiple of the number of parts of the prior.
    """

    low: Fraction
    high: Fraction
    sensitivity: Fraction
    cells: int
    has_user_cells: bool
    weights: Rationals | None

    def __init__(
        self, range: Any, *, sensitivity: Any = None, cells: int | None = None, prior: Any = None
    ) -> None:
        low, high = read_range(range)
        weights = read_range_prior(prior)
        max_difference = high - low
        if sensitivity is not None:
            max_difference = read_positive(sensitivity, "sensitivity")
        if max_difference > high - low:
            must("sensitivity", "at most the width of the range", float(max_difference))
        part_count = len(weights or (1,))  # Without weights, the range is one part.
        if cells is None:
            # Every part of the prior gets the same number of cells.
            cell_count = math.ceil(_DEFAULT_CELLS / part_count) * part_count
        else:
            cell_count = read_integer(cells, "cells", 2, MAX_CELLS)
        if cell_count % part_count:
            must("cells", f"a multiple of {part_count}, the parts of the prior", cell_count)
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(
            low=low,
            high=high,
            sensitivity=max_difference,
            cells=cell_count,
            has_user_cells=cells is not None,
            weights=weights,
        )
        # The attributes of the finite question of the points follow from those above.
        points_query = self.finite_query(self.max_point_distance)
        self.__dict__.update(points_query.__dict__)

    @property
    def width(self) -> Fraction:
        """Return h, the width of a cell."""
        return (self.high - self.low) / self.cells

    @property
    def uniform(self) -> bool:
        """Return whether the answers are uniform on the range."""
        return len({*(self.weights or ())}) == 1  # All parts have one weight.

    @property
    def has_all_neighbours(self) -> bool:
        """Return whether every two answers are neighbours."""
        return self.sensitivity == self.high - self.low

    @property
    def max_point_distance(self) -> int:
        """Return the largest number of steps between the points of two neighbouring answers."""
        return self._count_points(math.ceil)

    def _count_points(self, round_distance: Callable[[Fraction], int]) -> int:
        """Return the sensitivity in steps between points, rounded by a function.

        It is at most the number of steps from the first point to the last one.
        """
        # The points are numbered from 0. They are the ends of the cells if the worst answer counts,
        # and the middles of the cells otherwise.
        last_point = self.cells
        if self.weights is not None:
            last_point = self.cells - 1
        if self.has_all_neighbours:
            return last_point
        return min(last_point, round_distance(self.sensitivity / self.width))

    def finite_query(self, max_distance: int, outputs: Any = None) -> FiniteQuery:
        """Return the question of the points.

        Args:
            max_distance: Points at most this number of steps apart are neighbours.
            outputs: As for FiniteQuery. Default: the points.
        """
        relation: Record = {"max_shift": max_distance * self.width}
        if max_distance >= len(self.points) - 1:
            relation = {"neighbours": "all"}
        prior: Any = "worst"
        if self.weights is not None:
            prior = self.cell_weights
        return FiniteQuery(self.points, outputs, prior=prior, **relation)

    @property
    def cell_weights(self) -> list[Fraction]:
        """Return the prior probability of every cell. Empty if the worst answer counts.

        A cell lies in one part of the prior.
        """
        cells_per_part = self.cells // self.part_count
        weights: list[Fraction] = []
        for weight in self.weights or ():
            weights += [weight / cells_per_part] * cells_per_part
        return weights

    @property
    def ends(self) -> Sequence[Fraction]:
        """Return the ends of the cells, in order. Length cells + 1."""
        return [self.low + self.width * i for i in range(self.cells + 1)]

    def lower_bound_query(self, outputs: Any = None) -> FiniteQuery | None:
        """Return a finite query whose optimal loss is a lower bound for every channel on the range.

        Args:
            outputs: As for FiniteQuery. Default: the points.

        Returns:
            None if the query would have no neighbouring points.
        """
        max_distance = self._count_points(math.floor)
        if not max_distance:
            return None
        return self.finite_query(max_distance, outputs)

    @property
    def points(self) -> list[Fraction]:
        """Return the grid points to which answers are rounded."""
        if self.weights is None:
            return [*self.ends]
        return [(a + b) / 2 for a, b in pairwise(self.ends)]

    def divided_ends(self, parts: int) -> Rationals:
        """Return the ends of the equal parts into which each cell is divided, in order.

        Args:
            parts: The number of equal parts of each cell.
        """
        part_width = self.width / parts
        return tuple(self.low + part_width * i for i in range(parts * self.cells + 1))

    @property
    def part_count(self) -> int:
        """Return the number of equal parts of the range that the prior weighs."""
        return len(self.weights or (1,))

    def best_constant(self, loss: str) -> RationalPair:
        """Return (output, expected loss) of the best mechanism that ignores the answer.

        Args:
            loss: The loss, "absolute" or "squared".
        """
        width = (self.high - self.low) / self.part_count
        middles = [self.low + width * (2 * i + 1) / 2 for i in range(self.part_count)]
        if self.weights is None:
            if loss == "absolute":
                return middles[0], width / 2
            return middles[0], width**2 / 4
        weighted_middles = [*zip(self.weights, middles, strict=True)]
        output = sum((weight * middle for weight, middle in weighted_middles), ZERO)
        if loss == "absolute":
            # The median of the prior minimises the absolute loss. The mean is for squared loss.
            mass_before = ZERO
            for weight, middle in weighted_middles:
                if mass_before + weight >= Fraction(1, 2):
                    share = (Fraction(1, 2) - mass_before) / weight
                    output = middle - width / 2 + width * share
                    break
                mass_before += weight
        losses = [
            weight * mean_cell_loss(loss, output - middle, width)
            for weight, middle in weighted_middles
        ]
        return output, sum(losses, ZERO)

    def with_cells(self, cells: int) -> RangeQuery:
        """Return the same question with another number of cells.

        Args:
            cells: The new number of cells.
        """
        prior = "worst" if self.weights is None else self.weights
        ends = (self.low, self.high)
        return RangeQuery(ends, sensitivity=self.sensitivity, cells=cells, prior=prior)

    def make_mechanism(self, channel: Channel) -> RangeMechanism:
        """Make the mechanism on all real answers from a channel of the points.

        Args:
            channel: The channel of the points, with axis labels.

        Raises:
            InvalidRequest: If the channel has no axis labels or not one row for each point, or if
                rows that must be compared are no neighbours.
        """
        return RangeMechanism(
            channel.rows,
            channel.neighbours,
            channel.axis_labels,
            ends=tuple(self.ends),
            sensitivity=self.sensitivity,
            at_ends=self.weights is None,
        )

    def with_outputs(self, outputs: tuple[Point, ...]) -> RangeQuery:
        """Return the same question with other outputs.

        Args:
            outputs: The outputs, shape (m,).
        """
        query = object.__new__(RangeQuery)
        query.__dict__.update({**self.__dict__, "outputs": outputs})
        # The cached numbers are those of the old outputs.
        query.__dict__.pop("numbers", None)
        return query

    @property
    def points_text(self) -> str:
        """Return the points as a text that `FiniteQuery` reads."""
        points = self.points
        return f"{format_range((points[0], points[-1]))}:{format_fraction(self.width)}"

    def to_dict(self) -> Record:
        """Return the question as data for JSON.

        Returns:
            The entries of `FiniteQuery.to_dict` for the points, and range ("LOW..HIGH"),
            sensitivity, and cells if the user gave it. prior is "worst" or the weights of equal
            parts of the range.
        """
        record = super().to_dict()
        record["range"] = format_range((self.low, self.high))
        record["sensitivity"] = format_fraction(self.sensitivity)
        record["prior"] = "worst"
        if self.weights is not None:
            record["prior"] = [*map(format_fraction, self.weights)]
        if self.has_user_cells:
            record["cells"] = self.cells
        return record

    def __str__(self) -> str:
        relation = f"neighbours at most {float(self.sensitivity):g} apart"
        if self.has_all_neighbours:
            relation = "every two neighbours"
        return f"{format_range((self.low, self.high))}, {relation}, {self.prior_text}"

    @property
    def prior_text(self) -> str:
        """Return the prior in words, as the answers over which an expected loss is the mean."""
        if self.weights is None:
            return "the worst answer"
        if self.uniform:
            return "uniform answers"
        text = f"a prior of {self.part_count} equal parts"
        if self.part_count > _MAX_LISTED_WEIGHTS:
            return text
        return f"{text}, {':'.join(map(str, _to_whole_numbers(self.weights)))}"


def _to_whole_numbers(weights: Rationals) -> list[int]:
    """Return the smallest whole numbers in the proportions of weights."""
    unit = math.lcm(*(weight.denominator for weight in weights))
    shares = [int(weight * unit) for weight in weights]
    return [share // math.gcd(*shares) for share in shares]
