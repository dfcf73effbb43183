"""Channels of the cells of a range, exactly: RR-on-Bins, mixtures of bins, and what any of them costs real answers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from solvers.arrays import Integers, Vector
from workbench.exact.distribution import Distribution
from workbench.families.channel.losses import loss_table
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.repair import loss_of
from workbench.families.channel.request import ChannelRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.problem import Answer
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import on_bins
from workbench.mechanisms.range_query import RangeQuery, cell_loss
from workbench.privacy.expected_error import expected_error


class GivenChannel(ChannelProblem):
    """A channel of a finite question, every two points neighbours: integers (k, m) and outputs, repaired."""

    def __init__(
        self, request: ChannelRequest, question: FiniteQuery, law: Any, outputs: tuple[Fraction, ...], name: str
    ) -> None:
        placed = question.placed(outputs)
        super().__init__(replace(request, question=placed, losses=loss_table(placed, request.loss)))
        self._law, self._name = law, name

    def closed_form(self) -> Answer:
        """The randomizer."""
        rows = Channel(tuple(map(Distribution.from_integers, self._law.tolist())))
        return Answer(self.request.channel(rows), None, None, self._name, (self._law, None))

    def oracle(self, answer: Answer) -> OracleVerdict:
        """None: the points are not the range."""
        return OracleVerdict.none("it is for a range.")

    def proven(self, reached: Design) -> Design:
        """What is proven is said of the range."""
        return reached


def law_of_bins(
    question: FiniteQuery, starts: Integers, values: Vector, epsilon: Fraction, delta: Fraction
) -> tuple[Any, tuple[Fraction, ...]]:
    """RR-on-Bins on points, which publishes the own bin's value with probability δ whatever it says: integers (k, m)
    and outputs."""
    labels = Labels(question.places[0], [float(p) for p in question.prior or ()])
    bins = on_bins(labels, starts, [float(f"{value:.12g}") for value in values], epsilon)
    outputs, at = np.unique(bins.outputs, return_inverse=True)  # two bins may publish one value
    rows = np.array([row.integers for row in map(bins.row, range(question.k))], dtype=object)
    law = np.zeros((question.k, outputs.size), dtype=object)
    np.add.at(law.T, at, rows.T)
    total, own = law.sum(axis=1), np.searchsorted(starts, np.arange(question.k), side="right") - 1
    law *= delta.denominator - delta.numerator
    law[np.arange(question.k), at[own]] += total * delta.numerator
    return law, tuple(map(Fraction, map(repr, outputs.tolist())))


def cost_of(reached: Design, cells: RangeQuery) -> Fraction:
    """What the channel costs, the rounding charged, exactly."""
    loss, outputs, rows = str(reached.request.loss), reached.question.outputs, reached.mechanism.rows
    if cells.weights is not None:
        means = ((w, rows[i].mean([cell_loss(loss, o - at, h) for o in outputs])) for i, at, h, w in cells.pieces())
        return sum((w * mean for w, mean in means), Fraction(0))
    if cells.edges is not None:
        sides = (FiniteQuery(ends, outputs, neighbours="all") for ends in (cells.ends[:-1], cells.ends[1:]))
        law = np.array([row.integers for row in rows], dtype=object)
        return max(loss_of(law, loss_table(side, loss), None) for side in sides)
    worst = expected_error(cells.published(reached.mechanism), loss).worst
    assert worst is not None  # of pieces
    return worst
