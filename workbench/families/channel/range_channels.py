"""Mechanisms of a range, exactly: nearest outputs, channels of cells, and what they cost."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import numpy as np

from solvers.arrays import Flags, Pair, Vector
from workbench.families.channel.request import ChannelRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.problem import Answer, Problem
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.mechanisms.range_query import RangeQuery, cell_loss
from workbench.privacy.expected_error import expected_error

_MASSES = 33_000  # compared on the cells' own points; with δ half
_NEAR, NARROW = 0.8, 8  # bins between an output and answers that it tells apart, where there are more bins


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


def cost_of(reached: Design, cells: RangeQuery) -> Fraction:
    """What the channel costs, the rounding charged, exactly."""
    loss, outputs, rows = str(reached.request.loss), reached.question.outputs, reached.mechanism.rows
    if cells.weights is not None:
        means = ((w, rows[i].mean([cell_loss(loss, o - at, h) for o in outputs])) for i, at, h, w in cells.pieces())
        return sum((w * mean for w, mean in means), Fraction(0))
    worst = expected_error(cells.published(reached.mechanism), loss).worst
    assert worst is not None  # of pieces
    return worst


def near(answers: Vector, outputs: Vector, scale: Pair) -> Flags:
    """Where bins may tell answers apart. scale: points, and how many bins are below each. Shape (answers, outputs)."""
    between = np.abs(np.interp(answers, *scale)[:, None] - np.interp(outputs, *scale))
    return np.asarray(between <= (_NEAR if scale[1][-1] > NARROW else math.inf))


def few(request: ChannelRequest, cells: RangeQuery) -> bool:
    """Whether the program is one of moments."""
    pairs = cells.cells * (2 if cells.local and not request.delta else cells.far)
    return 2 * pairs * cells.cells <= (_MASSES // 2 if request.delta else _MASSES)
