"""Mechanisms of a range, exactly: bins as a problem of a request, and the loss of a channel of cells."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

from workbench.exact.numbers import ZERO
from workbench.families.channel.request import ChannelRequest
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.problem import Problem
from workbench.pipeline.routes import Answer, Route, always
from workbench.privacy.expected_error import expected_error
from workbench.questions.range_query import RangeQuery, cell_loss


class GivenMechanism(Problem):
    """Bins, or one output for all, as a problem of a request in which any two answers of the range are neighbours."""

    request: ChannelRequest
    routes = (Route("given mechanism", always, lambda problem, programs, start: problem.answer),)

    def __init__(self, request: ChannelRequest, mechanism: NearestOutputs) -> None:
        super().__init__(request)
        self.answer = Answer(mechanism, None, None, "RR-on-Bins")
        weights = cast(RangeQuery, request.question).weights
        mean, worst, _ = mechanism.errors(str(request.aim.loss), weights or (Fraction(1),))
        self._loss = worst if weights is None else mean

    def loss(self, mechanism: NearestOutputs) -> Fraction:
        """Exact."""
        return self._loss

    def oracle(self, answer: Answer) -> OracleVerdict:
        """None: it is one of many."""
        return OracleVerdict.none("no closed form is known for a range.")

    def proven(self, reached: Design) -> Design:
        """Return the design: what is proven is said of the range."""
        return reached


def loss_of_cells(reached: Design, cells: RangeQuery) -> Fraction:
    """Return the exact loss of a channel of cells, rounding included: the expected one, or that of the worst answer."""
    loss, outputs, rows = str(reached.request.aim.loss), reached.question.outputs, reached.mechanism.rows
    if cells.weights is None:
        worst = expected_error(cells.published(reached.mechanism), loss).worst
        assert worst is not None  # The loss is made of finitely many pieces.
        return worst
    total = ZERO
    for row, middle, weight in zip(rows, cells.points, cells.cell_weights, strict=True):
        total += weight * row.mean([cell_loss(loss, output - middle, cells.width) for output in outputs])
    return total
