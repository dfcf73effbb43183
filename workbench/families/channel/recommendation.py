"""The best channel as a recommendation for a query, with published channels and the user's own baselines beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from workbench.families.channel.family import FAMILY
from workbench.families.channel.output_cells import CONVEX, LINEAR
from workbench.families.channel.query_channels import design_of
from workbench.families.channel.request import ChannelTooLarge
from workbench.pipeline.design import Design
from workbench.pipeline.published import list_entries
from workbench.pipeline.recommendation import (
    RANGE_CHANNEL,
    Candidate,
    Query,
    Value,
    in_bits,
    published_value,
)
from workbench.pipeline.requirements import (
    MASS_ABOVE_RATIO,
    bounds_one_ratio,
    ratio_kind,
    ratio_notions,
)
from workbench.pipeline.user_baselines import make_baselines
from workbench.questions.finite_query import FREE

# Classes whose mechanisms are channels on the same outputs.
_CHANNELS = (
    "integer noise, clamped",
    "modulo noise",
    *(entry.name for entry in FAMILY.published_mechanisms()),
)
_SPELLING = ("answers", "places", "outputs", "max_shift", "neighbours", "directed", "prior")


def candidates(query: Query) -> Iterable[Candidate]:
    """The best channel and every baseline, each with its least parameter at the budget."""
    prior = "the worst input" if query.question.prior is None else "the prior"
    listed = _why_listed(query)
    question = query.question.freed() if listed is None else query.question
    options = {"loss": query.aim.loss, **query.budget}
    try:
        request = query.request(FAMILY, question, **options)
        publishes = (
            "" if question.free else f"; publishes only the outputs, {in_bits(question.m)}{listed}"
        )
        publishes += (
            "; the loss taken as linear between them"
            if question.free and query.losses.named is None
            else ""
        )
        contains = (*_CHANNELS, *(("RR-on-Bins",) if question.free else ()))
        freed = {"outputs": FREE} if question.free else {}
        loss = (
            query.losses.named.name
            if query.losses.named is not None
            else (query.words or {}).get("loss")
        )
        command = query.design_command("channel", *_SPELLING, **freed, loss=loss)
        yield Candidate.of_request(
            "best channel",
            f"made for {prior}{publishes}",
            lambda: request,
            query.time,
            _value_on_free_outputs if question.free else Value.of,
            contains=contains,
            simplicity=3,
            minimises=True,
            several=True,
            command=command,
        )
    except ChannelTooLarge as error:
        yield Candidate("best channel", reason=str(error))
    certified = partial(
        design_of, replace(query, own=())
    )  # without functions of the user, which no copy can hold
    for entry in list_entries(FAMILY, make_baselines(query.own, FAMILY.name)):
        if not entry.serves(query):
            continue
        value = partial(published_value, entry, query, certified)
        if entry.package:
            yield Candidate(entry.name, f"{entry.package} baseline", value)
            continue
        words = f"published ({entry.source}), made for {'the' if entry.with_prior else 'no'} prior"
        yield Candidate(
            entry.name, words, value, simplicity=int(entry.name != "randomized response")
        )


def real_candidates(query: Query) -> Iterable[Candidate]:
    """The best channel on cells of the range."""
    words = f"biased; made for {query.range.prior_words} on the range; publishes values of its own"
    ask = partial(query.request, FAMILY, query.question, loss=query.aim.loss, **query.budget)
    yield Candidate.of_request(RANGE_CHANNEL, words, ask, query.time, _value_on_range, several=True)


def _why_listed(query: Query) -> str | None:
    """Why a channel publishes the listed outputs alone, "" where that was asked for or others are of no use; None where
    it may publish any real numbers: the loss has a proof over all of them, under a notion of one bound on ratios."""
    named = query.losses.named
    given = "outputs" in (query.words or {}) or query.question.outputs != query.question.inputs
    if (
        given
        or query.question.numbers is None
        or (named is not None and named.kind == "error-rate")
    ):
        return ""
    if (
        query.claim.delta
        and bounds_one_ratio(query.claim.notion)
        and ratio_kind(query.claim.notion) == MASS_ABOVE_RATIO
    ):
        return f" (randomising between two others may break {query.claim.notion.name})"
    if isinstance(query.aim.loss, tuple) or (named is not None and named.kind in CONVEX):
        if query.claim.notion.name in ratio_notions():
            return None
        if (
            named is None or named.kind in LINEAR
        ):  # No output between those that are listed has a smaller loss.
            return ""
        return f" (under {query.claim.notion.name} outputs are listed; values between them may have a smaller loss)"
    half = float(max(b - a for a, b in pairwise(sorted(query.question.numbers[1])))) / 2
    return f" (if the loss changes by at most s a unit, others between them cost at most {half:g} s less)"


def _value_on_free_outputs(design: Design, stopped: bool) -> Value:
    """Return the value of a channel, with the outputs that it chose in words."""
    words = f"{FAMILY.published(design)}, {in_bits(FAMILY.columns(design)['outputs_used'])}"
    return Value.of(design, stopped, words)


def _value_on_range(design: Design, stopped: bool) -> Value:
    """Return the value of a channel of a range, with its first sentence."""
    return Value.of(design, stopped, design.words[0])
