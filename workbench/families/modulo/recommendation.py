"""Recommend modulo noise for a query whose answers are equally spaced numbers with a prior.

The answers are counted in steps: the place of an answer is its number of steps from the smallest
answer (`workbench.questions.answer_grid`). The noise is added to the place, modulo the number of
places. It is designed for the prior (its loss is a mean over the prior), but its law is the same
for every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from workbench.families.channel.query_channels import make_certified_design
from workbench.families.modulo.family import FAMILY
from workbench.pipeline.design import Design
from workbench.pipeline.recommendation import Candidate, Query, Value
from workbench.pipeline.request import Request
from workbench.questions.answer_grid import AnswerGrid
from workbench.questions.modulo_noise import ModuloNoise
from workbench.solvers.arrays import Vector

_NAME = "modulo noise"


def candidates(query: Query) -> Iterable[Candidate]:
    """Recommend modulo noise if the answers are equally spaced and there is a prior.

    Args:
        query: the query with its budget and loss.

    Yields:
        One candidate. It is refused, with a reason, for other answers, for privacy by distance, and
        for the loss of the worst answer.
    """
    grid = query.grid
    if grid is None or not grid.is_complete or query.is_per_distance:
        yield Candidate(_NAME, reason="it is for answers in equal steps, published as they are")
        return
    if query.question.prior is None:
        yield Candidate(_NAME, reason="its loss is that of a prior, not of the worst input")
        return
    loss_name = _find_loss_name(query)
    question = _make_question(query, grid)
    starts_at_zero = not grid.low and grid.step == 1
    modulus = "n + 1" if starts_at_zero else f"{grid.last + 1} places"
    text = (
        f"does not use the prior; adds noise modulo {modulus}, which wraps around; also protects "
        "pairs across the wrap"
    )
    command = None
    if loss_name and not query.question.directed and starts_at_zero:
        command = query.design_command("modulo", n=grid.last, max_shift=grid.reach, loss=loss_name)
    read_value: Callable[[Design, bool], Value] = partial(_make_answer_value, query)
    if loss_name and not grid.low:
        read_value = Value.from_design
    yield Candidate.from_request(
        _NAME,
        text,
        request=partial(_make_request, query, grid, question, loss_name),
        time=query.time,
        read=read_value,
        finds_least_epsilon=True,
        supports_runs=True,
        command=command,
    )


def _find_loss_name(query: Query) -> str | None:
    """Return the name under which modulo noise has the loss of the query, or None.

    There is a name only if the prior is uniform, and only for the error rate and, if the answers
    are in steps of 1, the squared loss. For other losses the losses of all noise values are
    computed (`_compute_mean_losses`).
    """
    is_uniform = len({*(query.question.prior or ())}) == 1
    has_unit_step = query.grid is not None and query.grid.step == 1
    names: tuple[str, ...] = ("error-rate",)
    if has_unit_step:
        names = ("squared", "error-rate")
    name = query.losses.name
    return name if is_uniform and name in names else None


def _make_question(query: Query, grid: AnswerGrid) -> ModuloNoise:
    """Make the question of modulo noise on the places of the answers.

    Its differences are 1, ..., the largest difference of neighbours; for directed pairs only the
    differences of these pairs.
    """
    question = query.question
    if not question.directed:
        return ModuloNoise(n=grid.last, max_shift=grid.reach)
    shifts = {grid.places[i] - grid.places[j] for i, j in question.neighbour_pairs}
    return ModuloNoise(n=grid.last, shifts=[*shifts], directed=True)


def _make_request(
    query: Query, grid: AnswerGrid, question: ModuloNoise, loss_name: str | None
) -> Request:
    """Make the request for the noise of least loss."""
    loss: Any = loss_name
    if loss_name is None:
        loss = _compute_mean_losses(query, grid)
    return query.make_request(FAMILY, question, loss=loss, **query.budget_options)


def _compute_mean_losses(query: Query, grid: AnswerGrid) -> Vector:
    """Compute the mean loss of every noise value under the prior. Shape (places,)."""
    places = np.arange(grid.last + 1)
    prior = np.array([float(p) for p in grid.spread_weights(query.question.prior or ())])
    # The place that is published, for every true place (rows) and noise value (columns).
    outputs = (places[:, None] + places) % (grid.last + 1)
    # Rows: answers in increasing order. Columns: the output that is nearest to each place.
    table = query.losses.floats[np.argsort(grid.places)][:, [*grid.nearest_outputs]]
    return np.asarray(prior @ np.take_along_axis(table, outputs, axis=1))


def _make_answer_value(query: Query, design: Design, is_stopped: bool) -> Value:
    """Make the value of noise whose design shows the answers themselves, not their places."""
    value = Value.from_design(design, is_stopped)
    return value._replace(design=partial(make_certified_design, query, _NAME, value.mechanism))
