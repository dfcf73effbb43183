"""Noise on the integers, clamped into the answers, for a finite query; noise on the reals for one with real answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

from workbench.exact.numbers import ZERO
from workbench.families.channel.query_channels import make_certified_design
from workbench.families.noise.family import FAMILY
from workbench.families.noise.problem import clamp_design
from workbench.families.noise.request import NAMED_LOSSES, AnswerLoss
from workbench.io.files import format_fraction
from workbench.pipeline.design import Design
from workbench.pipeline.integer_laws import LAW_NAMES
from workbench.pipeline.published import Published, published_for
from workbench.pipeline.recommendation import (
    Candidate,
    Query,
    Value,
    design_within_time,
    evaluate_published,
)
from workbench.pipeline.request import Request
from workbench.pipeline.requirements import is_hockey_stick
from workbench.questions.answer_grid import AnswerGrid
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise

_NAME = "integer noise, clamped"
CLAMPED_NAMES = tuple(f"clamped {name}" for name in LAW_NAMES)
MAX_LOSS_STEPS, _SPELLED = (
    2_000,
    50,
)  # steps whose losses are added up; weights of a prior on a command line


def candidates(query: Query) -> Iterable[Candidate]:
    """The best noise on the integers, private before it is clamped, where the answers are numbers: in steps of the grid
    that they lie on, published as the nearest output."""
    grid = query.grid
    if grid is None or not (
        not query.claim.is_epsilon_delta or is_hockey_stick(query.claim.notion)
    ):
        yield Candidate(
            _NAME,
            reason="it is for answers that are numbers, under a notion that survives clamping",
        )
        return
    words = "the same noise for every answer; private before it is clamped"
    words += "; protects both sides of each pair" if query.question.directed else ""
    if grid.last > MAX_LOSS_STEPS:
        yield Candidate(_NAME, reason=f"its answers are more than {MAX_LOSS_STEPS} steps apart")
        return
    if grid.step != 1:
        words += f"; in steps of {format_fraction(grid.step)}"
    if grid.clamp[0] * grid.step != grid.low:
        words += f" from {format_fraction(grid.low)}"
    if not grid.is_complete:
        words += "; published as the nearest output"
    named = query.losses.named_loss
    plain = named is not None and named.kind in NAMED_LOSSES and grid.is_complete
    short = named.name if plain and named else None
    contains = () if not query.claim.is_epsilon_delta else CLAMPED_NAMES
    told = plain and named and not query.question.directed
    command = _command(query, grid, named.name) if told and named else None
    ask = partial(_ask, query, grid, short)
    read = Value.from_design if grid.is_complete and short else partial(_value_of_answers, query)
    yield Candidate.from_request(
        _NAME,
        words,
        ask,
        query.time,
        read,
        contains=contains,
        finds_least_epsilon=True,
        command=command,
    )


def _command(query: Query, grid: AnswerGrid, named: str) -> str | None:
    """The line that designs the same noise: its answers in steps."""
    prior, (low, high) = query.question.prior, grid.clamp
    given: dict[str, object] = {
        "on": "integers",
        "sensitivity": grid.reach,
        "clamp": f"{low}..{high}",
        "loss": named,
    }
    if grid.step != 1:
        given["unit"] = format_fraction(grid.step)
    if prior is None:
        given["prior"] = "worst"
    elif len({*prior}) > 1:
        given["prior"] = (
            ",".join(map(format_fraction, grid.spread_weights(prior)))
            if len(prior) <= _SPELLED
            else None
        )
    return query.design_command("noise", **given)


def _ask(query: Query, grid: AnswerGrid, named: str | None) -> Request:
    """Ask for the clamped noise of least loss, in steps of the grid."""
    prior = query.question.prior
    shares = "worst" if prior is None else grid.spread_weights(prior)
    loss = named or _of_answers(query, grid)
    unit = grid.step if named else Fraction(1)
    question = IntegerNoise(grid.reach, clamp=grid.clamp)
    return query.make_request(
        FAMILY, question, loss=loss, unit=unit, prior=shares, **query.budget_options
    )


def _value_of_answers(query: Query, design: Design, stopped: bool) -> Value:
    """Return the value of noise whose design is that of the answers themselves, not of their places."""
    value = Value.from_design(design, stopped)
    return value._replace(design=partial(make_certified_design, query, _NAME, value.mechanism))


def _of_answers(query: Query, grid: AnswerGrid) -> AnswerLoss:
    """What publishing the nearest output costs every answer, by place; nothing at places that are no answers."""
    losses, none = query.losses, (Fraction(0),) * (grid.last + 1)
    rows = [none] * (grid.last + 1)
    for place, row in zip(grid.places, losses.values.tolist(), strict=True):
        rows[place] = tuple(
            Fraction(row[position], losses.unit) for position in grid.nearest_outputs
        )
    return AnswerLoss(losses.name.replace(" ", "-"), tuple(rows), tuple(sorted(grid.places)))


def real_candidates(query: Query) -> Iterable[Candidate]:
    """The best noise on the reals, as it is and clamped into the range, and published noise beside it."""
    real = query.range_query
    question, ends, weights = RealNoise(real.sensitivity), (real.low, real.high), real.weights

    ask = partial(query.make_request, FAMILY, question, loss=query.aim.loss, **query.budget_options)

    @cache
    def solved() -> tuple[Design, bool]:
        return design_within_time(ask(), query.time)

    def plain() -> Value:
        return Value.from_design(*solved())

    def clamped() -> Value:
        design, stopped = solved()
        prior = {} if real.uniform else {"prior": "worst" if weights is None else weights}
        request = design.request.with_values(question=replace(question, clamp=ends), **prior)
        return Value.from_design(clamp_design(design, request), stopped)

    pure = query.make_request(
        FAMILY, question, loss=query.aim.loss, notion="dp", epsilon=Fraction(1), delta=ZERO
    )
    listed = published_for(pure)
    words = "unbiased; the same for every answer; publishes outside the range"
    inside = tuple(entry.name for entry in listed)
    yield Candidate(
        "real noise",
        words,
        plain,
        contains=inside,
        uses_solver=True,
        finds_least_epsilon=True,
        request=ask,
    )
    words = "its best noise before it is clamped into the range; biased"
    yield Candidate("real noise, clamped", words, clamped, uses_solver=True, request=ask)

    def closed_form(entry: Published) -> Value:
        value = evaluate_published(entry, ask(), partial(_staircase, question, query))
        if value.mechanism is not None or query.aim.loss == "squared":
            return value
        squared = entry.make_reference(
            query.make_request(FAMILY, question, loss="squared", **query.budget_options)
        )
        absolute = entry.make_reference(
            query.make_request(FAMILY, question, loss="absolute", **query.budget_options)
        )
        if squared.value == absolute.value:  # the same law
            return value._replace(squared_error=squared.objective)
        if entry.name == "uniform" and absolute.value is not None:  # (1 - p) w²/3 of (1 - p) w/2
            return value._replace(squared_error=absolute.objective * absolute.value * 2 / 3)
        return value

    proven = (
        "a closed form in floating point"
        if not query.claim.is_epsilon_delta
        else "private at its exact parameter, rounded here"
    )
    for entry in listed:
        words = f"unbiased; published ({entry.source}); {proven}"
        yield Candidate(entry.name, words, partial(closed_form, entry))


def _staircase(question: RealNoise, query: Query, name: str, noise: Any) -> Design:
    """The design that the staircase on the reals is, which has no parameter but ε."""
    return FAMILY.design_request(
        query.make_request(
            FAMILY,
            question,
            loss=query.aim.loss,
            notion=query.claim.notion.name,
            epsilon=query.claim.epsilon,
            delta=ZERO,
        )
    )
