"""Convert mechanisms of other families to channels of a finite query, so that a recommendation can
compare them: as probabilities in floats, or as a certified design.

The table says how the row of an answer x is made. The place of x is its position on the grid of the
answers.

mechanism               the row of an answer x
noise on the integers   its law moved to the place of x, clamped, published as the nearest output
noise modulo n + 1      its law moved to the place of x
channel                 its own row
randomized response     x with the audited probability p, and every other output equally often
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data.points import Point
from workbench.errors import NotCertified
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import nearest_float
from workbench.families.channel.family import FAMILY
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.integer_laws import Number, compute_clamped_rows
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.problem import make_certificate
from workbench.privacy.audit import audit
from workbench.questions.finite_query import FiniteQuery

if TYPE_CHECKING:
    from workbench.pipeline.recommendation import Query

# A row for every answer, and the outputs of the columns.
Laws = tuple[list[Any], tuple[Point, ...]]


def compute_float_laws(query: Query, mechanism: Any) -> tuple[Vector, tuple[Point, ...]]:
    """Compute the law of the output for every answer, in floats.

    Args:
        query: a finite query.
        mechanism: a mechanism that answers it.

    Returns:
        (rows, outputs): Pr[o | x], shape (answers, outputs), and the outputs of the columns. The
        outputs differ from those of the query if the mechanism chooses its outputs.
    """
    rows, outputs = _compute_laws(query, mechanism, float)
    float_rows = [
        row.floats if isinstance(row, Distribution) else row.astype(float) for row in rows
    ]
    return np.array(float_rows), outputs


def make_certified_design(query: Query, name: str, mechanism: Any) -> Design:
    """Make the certified design of a mechanism for a query.

    Args:
        query: a finite query.
        name: name of the class of the mechanism, for reports.
        mechanism: a mechanism that answers the query.

    Returns:
        A design of the channel family without a bound. Its loss is exact.

    Raises:
        InvalidRequest: the query has no request with the outputs of the mechanism.
        NotCertified: the mechanism is not private at the budget.
    """
    from workbench.families.channel.repair import compute_channel_loss

    rows, outputs = _compute_laws(query, mechanism, Fraction)
    question = query.question
    losses = query.losses
    if outputs != question.outputs:
        question = question.with_outputs(outputs)
        losses = make_loss_table(question, query.aim.loss)
    request: Any = query.make_request(
        FAMILY, question, loss=query.aim.loss, **query.single_run_budget
    )
    exact_rows = [row.integers if isinstance(row, Distribution) else row.tolist() for row in rows]
    channel = request.make_channel(exact_rows)
    record = {"inputs": question.inputs, "outputs": outputs} if question.numbers is None else {}
    loss_name = None if losses.named_loss is None else losses.named_loss.name
    claim = request.audited_claim
    certificate = make_certificate(
        channel, claim, loss_name, question.numbers, question.prior, record
    )
    loss = compute_channel_loss(channel, losses, question.prior)
    privacy = audit(channel, claim.values.get("epsilon", 0))
    if not privacy.holds(claim):
        raise NotCertified(privacy.describe_verdict(claim, f"The {name} mechanism"))
    return Design(
        request,
        channel,
        float(loss),
        None,
        claim,
        OracleVerdict.without_formula("it is a published mechanism, not an optimum."),
        privacy=privacy,
        certificate=certificate,
        origin=name,
        details={"loss": loss, "bound": None, "name": name},
    )


def _compute_laws(query: Query, mechanism: Any, number: Number) -> Laws:
    """Return the rows of a mechanism, as arrays of numbers or as Distributions, and its outputs."""
    question = query.question
    grid = query.grid
    if isinstance(mechanism, AdditiveIntegerNoise):
        assert grid is not None
        grid_rows = compute_clamped_rows(mechanism.noise, grid.last + 1, number)
        return grid.convert_rows(grid_rows, question.m), question.outputs
    if isinstance(mechanism, AdditiveNoise):
        assert grid is not None
        laws = Channel.from_noise(mechanism).rows
        if number is float:
            rows: list[Any] = [law.floats for law in laws]
        else:
            rows = [np.array(law.fractions) for law in laws]
        return grid.convert_rows(rows, question.m), question.outputs
    if not isinstance(mechanism, Channel):
        # It is a randomizer of labels in increasing order.
        label_outputs = tuple(Fraction(value) for value in mechanism.outputs.tolist())
        assert question.numbers is not None
        label_rows = [mechanism.law(nearest_float(x)) for x in question.numbers[0]]
        return label_rows, label_outputs
    if len(mechanism.rows) == question.k:
        if mechanism.axis_labels is None:
            return [*mechanism.rows], question.outputs
        return [*mechanism.rows], mechanism.axis_labels[1]
    return _make_response_rows(question, mechanism, number), question.outputs


def _make_response_rows(question: FiniteQuery, pair: Channel, number: Number) -> list[Any]:
    """Return the rows of randomized response for all answers.

    pair: a channel of two answers, whose first row has the probabilities of the answer itself and
    of another output in its first two columns.
    """
    answer_columns = [question.outputs.index(x) for x in question.inputs]
    kept_mass, other_mass = (number(pair.rows[0][j]) for j in (0, 1))
    rows = np.full((question.k, question.m), other_mass, dtype=object)
    rows[np.arange(question.k), answer_columns] = kept_mass
    return [*rows]
