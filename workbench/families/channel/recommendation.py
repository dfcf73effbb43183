"""The best channel as a recommendation for a query, with published channels and the user's own baselines beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from workbench.families.channel.family import FAMILY
from workbench.families.channel.output_cells import CONVEX_LOSSES, LINEAR_LOSSES
from workbench.families.channel.query_channels import make_certified_design
from workbench.families.channel.request import ChannelTooLarge
from workbench.pipeline.design import Design
from workbench.pipeline.published import list_entries
from workbench.pipeline.recommendation import (
    RANGE_CHANNEL,
    Candidate,
    Query,
    Value,
    evaluate_published,
    format_bits,
)
from workbench.pipeline.requirements import (
    MASS_ABOVE_RATIO,
    bounds_one_ratio,
    get_ratio_kind,
    list_ratio_notions,
)
from workbench.pipeline.user_baselines import make_baselines
from workbench.questions.finite_query import FREE

# Classes whose mechanisms are channels on the same outputs.
_CHANNEL_CLASSES = (
    "integer noise, clamped",
    "modulo noise",
    *(entry.name for entry in FAMILY.published_mechanisms()),
)
_QUESTION_OPTIONS = ("answers", "places", "outputs", "max_shift", "neighbours", "directed", "prior")


def candidates(query: Query) -> Iterable[Candidate]:
    """The best channel and every baseline, each with its least parameter at the budget."""
    prior = "the worst input" if query.question.prior is None else "the prior"
    listed = _explain_listed_outputs(query)
    question = query.question.with_free_outputs() if listed is None else query.question
    options = {"loss": query.aim.loss, **query.budget_options}
    try:
        request = query.make_request(FAMILY, question, **options)
        publishes = (
            ""
            if question.has_free_outputs
            else f"; publishes only the outputs, {format_bits(question.m)}{listed}"
        )
        publishes += (
            "; the loss taken as linear between them"
            if question.has_free_outputs and query.losses.named_loss is None
            else ""
        )
        contains = (*_CHANNEL_CLASSES, *(("RR-on-Bins",) if question.has_free_outputs else ()))
        freed = {"outputs": FREE} if question.has_free_outputs else {}
        loss = (
            query.losses.named_loss.name
            if query.losses.named_loss is not None
            else (query.option_texts or {}).get("loss")
        )
        command = query.design_command("channel", *_QUESTION_OPTIONS, **freed, loss=loss)
        yield Candidate.from_request(
            "best channel",
            f"made for {prior}{publishes}",
            lambda: request,
            query.time,
            _read_free_outputs_value if question.has_free_outputs else Value.from_design,
            contains=contains,
            complexity=3,
            finds_least_epsilon=True,
            supports_runs=True,
            command=command,
        )
    except ChannelTooLarge as error:
        yield Candidate("best channel", reason=str(error))
    certified = partial(
        make_certified_design, replace(query, user_baselines=())
    )  # without functions of the user, which no copy can hold
    for entry in list_entries(FAMILY, make_baselines(query.user_baselines, FAMILY.name)):
        if not entry.serves(query):
            continue
        value = partial(evaluate_published, entry, query, certified)
        if entry.package:
            yield Candidate(entry.name, f"{entry.package} baseline", value)
            continue
        words = f"published ({entry.source}), made for {'the' if entry.with_prior else 'no'} prior"
        yield Candidate(
            entry.name, words, value, complexity=int(entry.name != "randomized response")
        )


def real_candidates(query: Query) -> Iterable[Candidate]:
    """The best channel on cells of the range."""
    words = (
        f"biased; made for {query.range_query.prior_text} on the range; publishes values of its own"
    )
    ask = partial(
        query.make_request, FAMILY, query.question, loss=query.aim.loss, **query.budget_options
    )
    yield Candidate.from_request(
        RANGE_CHANNEL, words, ask, query.time, _read_range_value, supports_runs=True
    )


def _explain_listed_outputs(query: Query) -> str | None:
    """Why a channel publishes the listed outputs alone, "" where that was asked for or others are of no use; None where
    it may publish any real numbers: the loss has a proof over all of them, under a notion of one bound on ratios."""
    named = query.losses.named_loss
    given = (
        "outputs" in (query.option_texts or {}) or query.question.outputs != query.question.inputs
    )
    if (
        given
        or query.question.numbers is None
        or (named is not None and named.kind == "error-rate")
    ):
        return ""
    if (
        query.claim.delta
        and bounds_one_ratio(query.claim.notion)
        and get_ratio_kind(query.claim.notion) == MASS_ABOVE_RATIO
    ):
        return f" (randomising between two others may break {query.claim.notion.name})"
    if isinstance(query.aim.loss, tuple) or (named is not None and named.kind in CONVEX_LOSSES):
        if query.claim.notion.name in list_ratio_notions():
            return None
        if (
            named is None or named.kind in LINEAR_LOSSES
        ):  # No output between those that are listed has a smaller loss.
            return ""
        return f" (under {query.claim.notion.name} outputs are listed; values between them may have a smaller loss)"
    half = float(max(b - a for a, b in pairwise(sorted(query.question.numbers[1])))) / 2
    return f" (if the loss changes by at most s a unit, others between them cost at most {half:g} s less)"


def _read_free_outputs_value(design: Design, stopped: bool) -> Value:
    """Return the value of a channel, with the outputs that it chose in words."""
    words = (
        f"{FAMILY.published(design)}, {format_bits(FAMILY.extra_columns(design)['outputs_used'])}"
    )
    return Value.from_design(design, stopped, words)


def _read_range_value(design: Design, stopped: bool) -> Value:
    """Return the value of a channel of a range, with its first sentence."""
    return Value.from_design(design, stopped, design.words[0])
