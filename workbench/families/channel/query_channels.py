"""Whatever serves a finite query as a channel of its answers: its laws in floats, and exactly, as a certified design.

mechanism                       the row of an answer x
noise on the integers           its law moved to the place of x, clamped to the places, published as the nearest output
noise modulo n + 1              its law moved to the place of x
channel                         its own
randomized response             the own output with the probability p that was audited, each other one with the rest
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

Laws = tuple[list[Any], tuple[Point, ...]]  # a row for every answer, and what its columns publish


def compute_float_laws(query: Query, mechanism: Any) -> tuple[Vector, tuple[Point, ...]]:
    """Pr[o | x], shape (answers, outputs), and the outputs."""
    rows, outputs = _compute_laws(query, mechanism, float)
    return np.array(
        [row.floats if isinstance(row, Distribution) else row.astype(float) for row in rows]
    ), outputs


def make_certified_design(query: Query, name: str, mechanism: Any) -> Design:
    """The certified design that a mechanism is for a query. name: of its class. Raises InvalidRequest, NotCertified."""
    rows, outputs = _compute_laws(query, mechanism, Fraction)
    question = (
        query.question
        if outputs == query.question.outputs
        else query.question.with_outputs(outputs)
    )
    losses = (
        query.losses if question is query.question else make_loss_table(question, query.aim.loss)
    )
    request: Any = query.make_request(
        FAMILY, question, loss=query.aim.loss, **query.single_run_budget
    )
    channel = request.channel(
        [row.integers if isinstance(row, Distribution) else row.tolist() for row in rows]
    )
    record = {"inputs": question.inputs, "outputs": outputs} if question.numbers is None else {}
    named = None if losses.named_loss is None else losses.named_loss.name
    claim = request.audited_claim
    certificate = make_certificate(channel, claim, named, question.numbers, question.prior, record)
    from workbench.families.channel.repair import compute_channel_loss

    loss = compute_channel_loss(channel, losses, question.prior)
    none = OracleVerdict.without_formula("it is a published mechanism, not an optimum.")
    privacy = audit(channel, claim.values.get("epsilon", 0))
    if not privacy.holds(claim):
        raise NotCertified(privacy.describe_verdict(claim, f"The {name} mechanism"))
    return Design(
        request,
        channel,
        float(loss),
        None,
        claim,
        none,
        privacy=privacy,
        certificate=certificate,
        origin=name,
        details={"loss": loss, "bound": None, "name": name},
    )


def _compute_laws(query: Query, mechanism: Any, number: Number) -> Laws:
    """Rows of numbers, or Distributions."""
    question, grid = query.question, query.grid
    if isinstance(mechanism, AdditiveIntegerNoise):
        assert grid is not None
        return grid.convert_rows(
            compute_clamped_rows(mechanism.noise, grid.last + 1, number), question.m
        ), question.outputs
    if isinstance(mechanism, AdditiveNoise):
        assert grid is not None
        laws = Channel.from_noise(mechanism).rows
        rows: list[Any] = [
            law.floats if number is float else np.array(law.fractions) for law in laws
        ]
        return grid.convert_rows(rows, question.m), question.outputs
    if not isinstance(mechanism, Channel):  # of labels in increasing order
        published = tuple(Fraction(value) for value in mechanism.outputs.tolist())
        assert question.numbers is not None
        return [mechanism.law(nearest_float(x)) for x in question.numbers[0]], published
    if len(mechanism.rows) == question.k:
        return [
            *mechanism.rows
        ], question.outputs if mechanism.axis_labels is None else mechanism.axis_labels[1]
    return _make_response_rows(question, mechanism, number), question.outputs


def _make_response_rows(question: FiniteQuery, pair: Channel, number: Number) -> list[Any]:
    """Rows of randomized response, from two of them."""
    own = [question.outputs.index(x) for x in question.inputs]
    kept, other = (number(pair.rows[0][j]) for j in (0, 1))
    rows = np.full((question.k, question.m), other, dtype=object)
    rows[np.arange(question.k), own] = kept
    return [*rows]
