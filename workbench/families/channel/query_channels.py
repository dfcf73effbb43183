"""Convert mechanisms of other families to channels of a finite query, for `recommend`.

A channel is returned as probabilities in floats, or as a certified design.

A *row* of a channel is the law of the output at one answer x. The *place* of x is its position on
the grid of the answers: for the answers 0, 5, 15 the places are 0, 1, 3.

mechanism                      row of the answer x
noise on the integers          the law of place + noise, clamped, moved to the nearest output
noise modulo n + 1             the law of place + noise modulo n + 1
`RandomizedResponse`           the law of its output at the label x
`Channel`, a row per answer    its row of x
`Channel` of two answers       p at the output x, q at every other output; p and q are the first two
                               probabilities of its first row. It is the channel by which randomized
                               response is audited.
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
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.integer_laws import Number, compute_clamped_rows
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.problem import make_certificate
from workbench.privacy.audit import audit
from workbench.questions.finite_query import FiniteQuery

if TYPE_CHECKING:
    from workbench.pipeline.recommendation import Query

# (rows, outputs): a row for every answer, each an array of numbers or a Distribution; and the
# output of each column.
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
    record = {}
    # A certificate states labels only if they are numbers. For other labels the record adds them.
    if question.numbers is None:
        record = {"inputs": question.inputs, "outputs": outputs}
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


def _compute_laws(query: Query, mechanism: Any, number_type: Number) -> Laws:
    """Return the rows of a mechanism, as the table of the header states, and its outputs.

    number_type: float or Fraction, the type of the masses of noise. Other rows are Distributions.
    """
    question = query.question
    if isinstance(mechanism, (AdditiveIntegerNoise, AdditiveNoise)):
        return _compute_noise_rows(query, mechanism, number_type), question.outputs
    if isinstance(mechanism, RandomizedResponse):
        assert question.numbers is not None
        label_rows: list[Any] = [mechanism.law(nearest_float(x)) for x in question.numbers[0]]
        return label_rows, tuple(map(Fraction, mechanism.outputs.tolist()))
    if not isinstance(mechanism, Channel):
        raise TypeError(f"no rows are known for {type(mechanism).__name__}")
    if len(mechanism.rows) != question.k:
        # Only randomized response is audited by two rows that stand for all (`published`).
        return _make_response_rows(question, mechanism, number_type), question.outputs
    outputs = question.outputs if mechanism.axis_labels is None else mechanism.axis_labels[1]
    return [*mechanism.rows], outputs


def _compute_noise_rows(
    query: Query, mechanism: AdditiveIntegerNoise | AdditiveNoise, number_type: Number
) -> list[Any]:
    """Return the rows of noise on the integers or modulo n + 1, arrays of m numbers."""
    grid = query.grid
    assert grid is not None
    if isinstance(mechanism, AdditiveIntegerNoise):
        rows = compute_clamped_rows(mechanism.noise, grid.last + 1, number_type)
    elif number_type is float:
        rows = [law.floats for law in Channel.from_noise(mechanism).rows]
    else:
        rows = [np.array(law.fractions) for law in Channel.from_noise(mechanism).rows]
    # Each place of the grid is published as its nearest output.
    return grid.convert_rows(rows, query.question.m)


def _make_response_rows(question: FiniteQuery, two_rows: Channel, number_type: Number) -> list[Any]:
    """Return the rows of randomized response for all answers, k arrays of m numbers.

    two_rows: the channel of two answers whose audit decides. Its first row begins with the
    probability of the answer itself and that of one other output.
    """
    answer_columns = [question.outputs.index(x) for x in question.inputs]
    kept_mass, other_mass = (number_type(two_rows.rows[0][j]) for j in (0, 1))
    rows = np.full((question.k, question.m), other_mass, dtype=object)
    rows[np.arange(question.k), answer_columns] = kept_mass
    return [*rows]
