"""Channels of a range, exactly: nearest outputs, RR-on-Bins and mixtures of bins on cells, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from solvers.arrays import Integers, Vector
from workbench.exact.distribution import Distribution
from workbench.families.channel.losses import loss_table
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.repair import loss_of
from workbench.families.channel.request import ChannelRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.problem import Answer, Problem
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import odds_below, on_bins
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.mechanisms.range_query import RangeQuery, cell_loss
from workbench.privacy.expected_error import expected_error


class GivenMechanism(Problem):
    """Nearest outputs, any two answers of the range neighbours, as a problem of a request."""

    request: ChannelRequest

    def __init__(self, request: ChannelRequest, mechanism: NearestOutputs) -> None:
        super().__init__(request)
        self._mechanism, weights = mechanism, cast(RangeQuery, request.question).weights
        mean, worst, _ = mechanism.errors(str(request.loss), weights or (Fraction(1),))
        self._cost = worst if weights is None else mean

    def closed_form(self) -> Answer:
        """The mechanism."""
        return Answer(self._mechanism, None, None, "RR-on-Bins" if self._mechanism.own == 1 else "nearest outputs")

    def loss(self, mechanism: NearestOutputs) -> Fraction:
        """Exact."""
        return self._cost

    def oracle(self, answer: Answer) -> OracleVerdict:
        """None: it is one of many."""
        return OracleVerdict.none("no closed form is known for a range.")

    def proven(self, reached: Design) -> Design:
        """What is proven is said of the range."""
        return reached


def odds_at(epsilon: Fraction, delta: Fraction, outputs: int, own: int) -> Fraction:
    """The largest odds at which the hockey stick of nearest outputs, r (odds - e^ε)/(outputs - own + own odds) for
    r = min(own, outputs - own), is at most δ < r/own, e^ε rounded down."""
    e, r, delta = odds_below(epsilon)[0], min(own, outputs - own), min(delta, 1 - Fraction(1, 1 << 40))
    return (r * e + delta * (outputs - own)) / (r - delta * own)


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
    question: FiniteQuery, starts: Integers, values: Vector, epsilon: Fraction
) -> tuple[Any, tuple[Fraction, ...]]:
    """RR-on-Bins on points: integers (k, m) and outputs."""
    labels = Labels(question.places[0], [float(p) for p in question.prior or ()])
    bins = on_bins(labels, starts, [float(f"{value:.12g}") for value in values], epsilon)
    outputs, at = np.unique(bins.outputs, return_inverse=True)  # two bins may publish one value
    rows = np.array([row.integers for row in map(bins.row, range(question.k))], dtype=object)
    law = np.zeros((question.k, outputs.size), dtype=object)
    np.add.at(law.T, at, rows.T)
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
