"""Modulo noise as a recommendation for a query whose answers are all multiples of a step between two."""

from __future__ import annotations

from collections.abc import Iterable
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

_NAME = "modulo noise"


def candidates(query: Query) -> Iterable[Candidate]:
    """Modulo noise, where the answers are all multiples of a step between two, and there is a prior."""
    grid = query.grid
    if grid is None or not grid.is_complete or query.is_per_distance:
        yield Candidate(_NAME, reason="it is for answers in equal steps, published as they are")
        return
    if query.question.prior is None:
        yield Candidate(_NAME, reason="its loss is that of a prior, not of the worst input")
        return
    named, places = (
        _named(query),
        "n + 1" if not grid.low and grid.step == 1 else f"{grid.last + 1} places",
    )
    needs = f"no prior; wraps around (answer + noise modulo {places}), and protects the pairs that wrap as well"
    question, command = _question(query, grid), None
    if named and not query.question.directed and not grid.low and grid.step == 1:
        command = query.design_command("modulo", n=grid.last, max_shift=grid.reach, loss=named)
    ask = partial(_ask, query, grid, question, named)
    read = Value.from_design if named and not grid.low else partial(_value_of_answers, query)
    yield Candidate.from_request(
        _NAME,
        needs,
        ask,
        query.time,
        read,
        finds_least_epsilon=True,
        supports_runs=True,
        command=command,
    )


def _named(query: Query) -> str | None:
    """The name that noise has for the loss of answers in steps of 1, where the prior is uniform."""
    uniform, name = len({*(query.question.prior or ())}) == 1, query.losses.name
    known = (
        ("squared", "error-rate")
        if query.grid is not None and query.grid.step == 1
        else ("error-rate",)
    )
    return name if uniform and name in known else None


def _question(query: Query, grid: AnswerGrid) -> ModuloNoise:
    """The differences of neighbours: all up to the largest, of directed ones those of their pairs."""
    q = query.question
    if not q.directed:
        return ModuloNoise(n=grid.last, max_shift=grid.reach)
    shifts = {grid.places[i] - grid.places[j] for i, j in q.neighbour_pairs}
    return ModuloNoise(n=grid.last, shifts=[*shifts], directed=True)


def _ask(query: Query, grid: AnswerGrid, question: ModuloNoise, named: str | None) -> Request:
    """Ask for the noise of least loss; a loss without a name is that of every noise value under the prior."""
    loss: Any = named
    if named is None:
        places = np.arange(grid.last + 1)
        prior = np.array([float(p) for p in grid.spread_weights(query.question.prior or ())])
        wrapped = (places[:, None] + places) % (grid.last + 1)  # (answer, noise)
        table = query.losses.floats[np.argsort(grid.places)][:, [*grid.nearest_outputs]]
        loss = prior @ np.take_along_axis(table, wrapped, axis=1)
    return query.make_request(FAMILY, question, loss=loss, **query.budget_options)


def _value_of_answers(query: Query, design: Design, stopped: bool) -> Value:
    """Return the value of noise whose design is that of the answers themselves, not of their places."""
    value = Value.from_design(design, stopped)
    return value._replace(design=partial(make_certified_design, query, _NAME, value.mechanism))
