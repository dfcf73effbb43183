"""The question of a channel for real answers in a range: they are rounded to points that are h apart.

The points are the middles of equal cells; where the worst answer counts, the ends of cells, of which an answer goes at
random to one of the two nearest, with itself as the mean. Neighbours differ by S at most: their points by ⌈S/h⌉ h, at
random too if both use one draw. All points are neighbours where S is the whole range, the default.
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

_CELLS = 8  # until a design chooses
MAX_CELLS = 512
_TOLD = 12  # weights of a prior, that its words tell


def mean_cell_loss(loss: str, r: Fraction, h: Fraction) -> Fraction:
    """Mean loss, absolute or squared, of an output at a distance r from the middle of a cell of width h, of answers
    uniform on the cell."""
    if loss == "squared":
        return r * r + h * h / 12
    return abs(r) if 2 * abs(r) >= h else h / 4 + r * r / h


class RangeQuery(FiniteQuery):
    """A query with real answers in a range.

    range: "LOW..HIGH", or two numbers; sensitivity: how far neighbouring answers differ at most, all of the range by
    default; cells: how many, chosen by the design unless given; prior: "uniform" on the range, "worst", or weights of
    equal parts of the range, uniform on each. weights: of the parts, None where the worst answer counts. Raises
    InvalidRequest.
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
        reach = high - low if sensitivity is None else read_positive(sensitivity, "sensitivity")
        if reach > high - low:
            must("sensitivity", "at most the width of the range", float(reach))
        parts = len(weights or (1,))
        count = (
            -(-_CELLS // parts) * parts
            if cells is None
            else read_integer(cells, "cells", 2, MAX_CELLS)
        )
        if count % parts:
            must("cells", f"a multiple of {parts}, the parts of the prior", count)
        self.__dict__.update(
            low=low, high=high, sensitivity=reach, cells=count, has_user_cells=cells is not None
        )
        self.__dict__["weights"] = weights
        self.__dict__.update(self.finite_query(self.max_point_distance).__dict__)

    @property
    def width(self) -> Fraction:
        """h."""
        return (self.high - self.low) / self.cells

    @property
    def uniform(self) -> bool:
        """Whether the answers are uniform on the range."""
        return len({*(self.weights or ())}) == 1

    @property
    def has_all_neighbours(self) -> bool:
        """Whether every two answers are neighbours."""
        return self.sensitivity == self.high - self.low

    @property
    def max_point_distance(self) -> int:
        """Points that neighbours are apart at most."""
        return self._apart(math.ceil)

    def _apart(self, whole: Callable[[Fraction], int]) -> int:
        last = self.cells - (self.weights is not None)
        return last if self.has_all_neighbours else min(last, whole(self.sensitivity / self.width))

    def finite_query(self, max_distance: int, outputs: Any = None) -> FiniteQuery:
        """The question of the points, where points so far apart are neighbours. outputs: the points by default."""
        relation: Record = {"max_shift": max_distance * self.width}
        if max_distance >= len(self.points) - 1:
            relation = {"neighbours": "all"}
        prior: Any = "worst"
        if self.weights is not None:
            prior = self.cell_weights
        return FiniteQuery(self.points, outputs, prior=prior, **relation)

    @property
    def cell_weights(self) -> list[Fraction]:
        """The probability of every cell: a cell lies in one part of the prior. Empty where the worst answer counts."""
        in_part = self.cells // self.part_count
        return [weight / in_part for weight in self.weights or () for _ in range(in_part)]

    @property
    def ends(self) -> Sequence[Fraction]:
        """Of the cells, in order."""
        return [self.low + self.width * i for i in range(self.cells + 1)]

    def lower_bound_query(self, outputs: Any = None) -> FiniteQuery | None:
        """A question whose least loss no channel of the range is below; None where it has no neighbours."""
        apart = self._apart(math.floor)
        return self.finite_query(apart, outputs) if apart else None

    @property
    def points(self) -> list[Fraction]:
        """To which answers are rounded."""
        if self.weights is None:
            return [*self.ends]
        return [(a + b) / 2 for a, b in pairwise(self.ends)]

    def divided_ends(self, parts: int) -> Rationals:
        """The ends of cells, and of so many equal parts of each."""
        part = self.width / parts
        return tuple(self.low + part * i for i in range(parts * self.cells + 1))

    @property
    def part_count(self) -> int:
        """Of the prior."""
        return len(self.weights or (1,))

    def best_constant(self, loss: str) -> RationalPair:
        """The output to publish whatever the answer is, and what it costs."""
        width = (self.high - self.low) / self.part_count
        middles = [self.low + width * (2 * i + 1) / 2 for i in range(self.part_count)]
        if self.weights is None:
            return middles[0], width / 2 if loss == "absolute" else width**2 / 4
        best = sum((w * m for w, m in zip(self.weights, middles, strict=True)), ZERO)
        if loss == "absolute":
            below = ZERO
            for weight, middle in zip(self.weights, middles, strict=True):
                if below + weight >= Fraction(1, 2):
                    best = middle - width / 2 + width * (Fraction(1, 2) - below) / weight
                    break
                below += weight
        costs = [
            w * mean_cell_loss(loss, best - m, width)
            for w, m in zip(self.weights, middles, strict=True)
        ]
        return best, sum(costs, ZERO)

    def with_cells(self, cells: int) -> RangeQuery:
        """The same range in so many cells."""
        prior = "worst" if self.weights is None else self.weights
        return RangeQuery(
            (self.low, self.high), sensitivity=self.sensitivity, cells=cells, prior=prior
        )

    def make_mechanism(self, channel: Channel) -> RangeMechanism:
        """The mechanism on all real answers that a channel of the points is."""
        parts = channel.rows, channel.neighbours, channel.axis_labels
        return RangeMechanism(*parts, tuple(self.ends), self.sensitivity, self.weights is None)

    def with_outputs(self, outputs: tuple[Point, ...]) -> RangeQuery:
        """The same question with these outputs."""
        other = object.__new__(RangeQuery)
        other.__dict__.update({**self.__dict__, "outputs": outputs})
        other.__dict__.pop("numbers", None)  # of other outputs
        return other

    @property
    def points_text(self) -> str:
        """The points, as `FiniteQuery` reads them."""
        points = self.points
        return f"{format_range((points[0], points[-1]))}:{format_fraction(self.width)}"

    def to_dict(self) -> Record:
        """JSON-ready."""
        range_: Record = {
            "range": format_range((self.low, self.high)),
            "sensitivity": format_fraction(self.sensitivity),
        }
        prior = "worst" if self.weights is None else [*map(format_fraction, self.weights)]
        return (
            super().to_dict()
            | range_
            | {"prior": prior}
            | ({"cells": self.cells} if self.has_user_cells else {})
        )

    def __str__(self) -> str:
        apart = (
            "every two neighbours"
            if self.has_all_neighbours
            else f"neighbours at most {float(self.sensitivity):g} apart"
        )
        return f"{format_range((self.low, self.high))}, {apart}, {self.prior_text}"

    @property
    def prior_text(self) -> str:
        """Of which answers a loss is the mean."""
        if self.weights is None:
            return "the worst answer"
        if self.uniform:
            return "uniform answers"
        words = f"a prior of {self.part_count} equal parts"
        return (
            f"{words}, {':'.join(map(str, _whole(self.weights)))}"
            if self.part_count <= _TOLD
            else words
        )


def _whole(weights: Rationals) -> list[int]:
    """The least whole numbers in the proportions of weights."""
    unit = math.lcm(*(weight.denominator for weight in weights))
    shares = [int(weight * unit) for weight in weights]
    return [share // math.gcd(*shares) for share in shares]
