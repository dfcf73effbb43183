"""Recommend the best additive noise for a query, with its expected loss and a lower bound.

For finitely many answers this is clamped noise on the integers (`candidates`); for answers in a
range of real numbers it is noise on the reals, clamped and not clamped (`real_candidates`). Answers
are counted in steps of their grid: the place of an answer is its number of steps from the smallest
answer (`workbench.questions.answer_grid`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

from workbench.exact.numbers import ZERO
from workbench.families.channel.query_channels import make_certified_design
from workbench.families.noise.clamped_reals import clamp_design
from workbench.families.noise.family import FAMILY
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
MAX_LOSS_STEPS = 2_000  # Noise is recommended for answers at most this many steps apart.
_MAX_SPELLED_WEIGHTS = 50  # If the prior has more weights, no command line is shown.


# Finite queries.


def candidates(query: Query) -> Iterable[Candidate]:
    """Recommend the best noise on the integers if the answers are numbers.

    The noise is private before it is clamped. It is counted in steps of the grid on which the
    answers lie, and the nearest output is published.

    Args:
        query: the query with its budget and loss.

    Yields:
        One candidate. It is refused, with a reason, if the answers are not numbers or too many
        steps apart, or if the notion does not survive clamping (pdp).
    """
    grid = query.grid
    has_clampable_notion = not query.claim.is_epsilon_delta or is_hockey_stick(query.claim.notion)
    if grid is None or not has_clampable_notion:
        reason = "it is for answers that are numbers, under a notion that survives clamping"
        yield Candidate(_NAME, reason=reason)
        return
    if grid.last > MAX_LOSS_STEPS:
        reason = f"its answers are more than {MAX_LOSS_STEPS} steps apart"
        yield Candidate(_NAME, reason=reason)
        return
    named_loss = query.losses.named_loss
    is_named = named_loss is not None and named_loss.kind in NAMED_LOSSES and grid.is_complete
    loss_name = named_loss.name if is_named and named_loss else None
    command = None
    if loss_name and not query.question.directed:
        command = _make_command(query, grid, loss_name)
    read_value: Callable[[Design, bool], Value] = partial(_make_answer_value, query)
    if grid.is_complete and loss_name:
        read_value = Value.from_design
    yield Candidate.from_request(
        _NAME,
        _describe_integer_noise(query, grid),
        request=partial(_make_request, query, grid, loss_name),
        time=query.time,
        read=read_value,
        contains=CLAMPED_NAMES if query.claim.is_epsilon_delta else (),
        finds_least_epsilon=True,
        command=command,
    )


def _describe_integer_noise(query: Query, grid: AnswerGrid) -> str:
    """Describe clamped integer noise for the table of recommendations."""
    text = "the same noise for every answer; private before it is clamped"
    if query.question.directed:
        text += "; protects both sides of each pair"
    if grid.step != 1:
        text += f"; in steps of {format_fraction(grid.step)}"
    first_step, _ = grid.clamp
    if first_step * grid.step != grid.low:
        text += f" from {format_fraction(grid.low)}"
    if not grid.is_complete:
        text += "; published as the nearest output"
    return text


def _make_command(query: Query, grid: AnswerGrid, loss_name: str) -> str | None:
    """Make the command line that designs the same noise, with answers counted in steps.

    Returns None if `Query.design_command` cannot state the query.
    """
    prior = query.question.prior
    low, high = grid.clamp
    options: dict[str, object] = {
        "on": "integers",
        "sensitivity": grid.reach,
        "clamp": f"{low}..{high}",
        "loss": loss_name,
    }
    if grid.step != 1:
        options["unit"] = format_fraction(grid.step)
    if prior is None:
        options["prior"] = "worst"
    elif len({*prior}) > 1:
        options["prior"] = None
        if len(prior) <= _MAX_SPELLED_WEIGHTS:
            options["prior"] = ",".join(map(format_fraction, grid.spread_weights(prior)))
    return query.design_command("noise", **options)


def _make_request(query: Query, grid: AnswerGrid, loss_name: str | None) -> Request:
    """Make the request for the clamped noise of least loss, in steps of the grid."""
    prior = query.question.prior
    return query.make_request(
        FAMILY,
        IntegerNoise(grid.reach, clamp=grid.clamp),
        loss=loss_name or _tabulate_answer_loss(query, grid),
        unit=grid.step if loss_name else Fraction(1),
        prior="worst" if prior is None else grid.spread_weights(prior),
        **query.budget_options,
    )


def _make_answer_value(query: Query, design: Design, is_stopped: bool) -> Value:
    """Make the value of noise whose design shows the answers themselves, not their places."""
    value = Value.from_design(design, is_stopped)
    return value._replace(design=partial(make_certified_design, query, _NAME, value.mechanism))


def _tabulate_answer_loss(query: Query, grid: AnswerGrid) -> AnswerLoss:
    """Tabulate the loss of publishing the output that is nearest to a place.

    The table is indexed by the place of the true answer and the place that the noise leads to. The
    rows of places without an answer are 0.
    """
    losses = query.losses
    zeros = (Fraction(0),) * (grid.last + 1)
    rows = [zeros] * (grid.last + 1)
    for place, row in zip(grid.places, losses.values.tolist(), strict=True):
        rows[place] = tuple(
            Fraction(row[position], losses.unit) for position in grid.nearest_outputs
        )
    name = losses.name.replace(" ", "-")
    return AnswerLoss(name, tuple(rows), tuple(sorted(grid.places)))


# Ranges.


def real_candidates(query: Query) -> Iterable[Candidate]:
    """Recommend the best noise on the reals, clamped and not clamped, and published noise.

    Args:
        query: the query of a range of real answers.

    Yields:
        Noise that is not clamped, the same noise clamped, and each published noise.
    """
    real_range = query.range_query
    question = RealNoise(real_range.sensitivity)
    make_request = partial(
        query.make_request, FAMILY, question, loss=query.aim.loss, **query.budget_options
    )

    @cache
    def find_design() -> tuple[Design, bool]:
        """Design the noise that is not clamped, once for both candidates."""
        return design_within_time(make_request(), query.time)

    def make_plain_value() -> Value:
        return Value.from_design(*find_design())

    def make_clamped_value() -> Value:
        design, is_stopped = find_design()
        clamped_question = replace(question, clamp=(real_range.low, real_range.high))
        values: dict[str, Any] = {"question": clamped_question}
        if not real_range.uniform:
            values["prior"] = "worst" if real_range.weights is None else real_range.weights
        request = design.request.with_values(**values)
        return Value.from_design(clamp_design(design, request), is_stopped)

    pure_request = query.make_request(
        FAMILY, question, loss=query.aim.loss, notion="dp", epsilon=Fraction(1), delta=ZERO
    )
    published_entries = published_for(pure_request)
    yield Candidate(
        "real noise",
        "unbiased; the same for every answer; publishes outside the range",
        make_plain_value,
        contains=tuple(entry.name for entry in published_entries),
        uses_solver=True,
        finds_least_epsilon=True,
        request=make_request,
    )
    yield Candidate(
        "real noise, clamped",
        "its best noise before it is clamped into the range; biased",
        make_clamped_value,
        uses_solver=True,
        request=make_request,
    )
    proof = "a closed form in floating point"
    if query.claim.is_epsilon_delta:
        proof = "private at its exact parameter, rounded here"
    for entry in published_entries:
        text = f"unbiased; published ({entry.source}); {proof}"
        yield Candidate(entry.name, text, partial(_make_published_value, query, question, entry))


def _make_published_value(query: Query, question: RealNoise, entry: Published) -> Value:
    """Make the value of published noise, with its squared error if a closed form gives it.

    Args:
        query: the query of a range of real answers.
        question: the noise on the reals with the sensitivity of the query.
        entry: the published noise.
    """

    def request_loss(loss: str) -> Request:
        """Make the request for a loss: "absolute" or "squared"."""
        return query.make_request(FAMILY, question, loss=loss, **query.budget_options)

    request = request_loss(query.aim.loss)
    value = evaluate_published(entry, request, partial(_design_staircase, question, query))
    if value.mechanism is not None or query.aim.loss == "squared":
        return value
    squared_reference = entry.make_reference(request_loss("squared"))
    absolute_reference = entry.make_reference(request_loss("absolute"))
    if squared_reference.value == absolute_reference.value:
        # Both losses have the same parameter, so the law is the same.
        return value._replace(squared_error=squared_reference.objective)
    if entry.name == "uniform" and absolute_reference.value is not None:
        # The squared loss is (1 - p) w²/3, the absolute loss is (1 - p) w/2.
        return value._replace(
            squared_error=absolute_reference.objective * absolute_reference.value * 2 / 3
        )
    return value


def _design_staircase(question: RealNoise, query: Query, name: str, noise: Any) -> Design:
    """Design the staircase on the reals, which has no parameter except ε.

    `evaluate_published` also passes the `name` and the `noise` of the law, which are not needed.
    """
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
