"""The trade-off of finite channels: least loss against ε, and against δ where the notion has one.

curve       what a row is
point       the least-loss channel, certified unless it is asked not to be
baseline    published mechanisms with the least parameter that meets the budget; exact laws, audited

Beside it the same as recommendations for a query, and baselines from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from workbench.exact.objects import Values
from workbench.families.channel.family import FAMILY
from workbench.families.channel.output_cells import CONVEX, LINEAR
from workbench.families.channel.query_channels import design_of
from workbench.families.channel.request import ChannelTooLarge
from workbench.pipeline.frontier_plan import Plan
from workbench.pipeline.frontier_plots import Series
from workbench.pipeline.notion_points import notion_plan, notion_requests
from workbench.pipeline.published import list_entries
from workbench.pipeline.recommendation import (
    RANGE_CHANNEL,
    Candidate,
    Query,
    designed,
    in_bits,
    published_value,
)
from workbench.pipeline.requirements import MASS_ABOVE_RATIO, bounds_one_ratio, ratio_kind, ratio_notions
from workbench.pipeline.user_baselines import make_baselines
from workbench.questions.finite_query import FREE

if TYPE_CHECKING:
    from workbench.pipeline.design import Design


SERIES = {
    "channel": Series("best channel", 2), "clamped geometric": Series("clamped geometric", 7, "-", width=3.0),
    "randomized response": Series("randomized response", 5, "--"),
    "clamped truncated geometric": Series("clamped truncated geometric", 4, (0, (5, 1, 1, 1, 1, 1))),
    "clamped discrete Gaussian": Series("clamped discrete Gaussian", 1, "--"),
    "clamped staircase": Series("clamped staircase", 0, ":"), "exponential": Series("exponential", 3, "-."),
    "planar Laplace, remapped": Series("planar Laplace, remapped", 7, ":"),
    "planar exponential": Series("planar exponential", 3, "-."),
    "permute-and-flip": Series("permute-and-flip", 6, "-."),
}  # fmt: skip


def plan(question: Any, values: Values) -> Plan:
    """The plan of a channel frontier."""
    points = [*notion_requests(FAMILY, question, values)]
    plan = notion_plan(points, "channel", SERIES, ratio_notions(), title="Best channel, ")
    separations = dict.fromkeys(request.question.separation for _, request in points)
    return replace(plan, sentences=tuple(words for words in separations if words))


# Classes whose mechanisms are channels on the same outputs.
_CHANNELS = ("integer noise, clamped", "modulo noise", *(entry.name for entry in FAMILY.published_mechanisms()))
_SPELLING = ("answers", "places", "outputs", "max_shift", "neighbours", "directed", "prior")


def candidates(query: Query) -> Iterable[Candidate]:
    """The best channel and every baseline, each with its least parameter at the budget."""
    prior = "the worst input" if query.question.prior is None else "the prior"
    listed = _why_listed(query)
    question = query.question.freed() if listed is None else query.question
    options = {"loss": query.aim.loss, **query.budget}
    try:
        FAMILY.request(question, **options)
        chosen = {"parameter": _freed} if question.free else {}
        best = partial(designed, FAMILY, question, query.time, **chosen, **options)
        publishes = "" if question.free else f"; publishes only the outputs, {in_bits(question.m)}{listed}"
        publishes += "; the loss taken as linear between them" if question.free and query.losses.named is None else ""
        contains = (*_CHANNELS, *(("RR-on-Bins",) if question.free else ()))
        freed = {"outputs": FREE} if question.free else {}
        loss = query.losses.named.name if query.losses.named is not None else (query.words or {}).get("loss")
        command = query.design_command("channel", *_SPELLING, **freed, loss=loss)
        yield Candidate("best channel", f"made for {prior}{publishes}", best, contains=contains, programs=True,
                        simplicity=3, minimises=True, several=True, command=command)  # fmt: skip
    except ChannelTooLarge as error:
        yield Candidate("best channel", reason=str(error))
    certified = partial(design_of, replace(query, own=()))  # without functions of the user, which no copy can hold
    for entry in list_entries(FAMILY, make_baselines(query.own, FAMILY.name)):
        if not entry.serves(query):
            continue
        value = partial(published_value, entry, query, certified)
        if entry.package:
            yield Candidate(entry.name, f"{entry.package} baseline", value)
            continue
        words = f"published ({entry.source}), made for {'the' if entry.with_prior else 'no'} prior"
        yield Candidate(entry.name, words, value, simplicity=int(entry.name != "randomized response"))


def real_candidates(query: Query) -> Iterable[Candidate]:
    """The best channel on cells of the range."""
    words = f"biased; made for {query.range.prior_words} on the range; publishes values of its own"
    options = {"loss": query.aim.loss, **query.budget}
    best = partial(designed, FAMILY, query.question, query.time, lambda design: design.words[0], **options)
    yield Candidate(RANGE_CHANNEL, words, best, programs=True, several=True)


def _why_listed(query: Query) -> str | None:
    """Why a channel publishes the listed outputs alone, "" where that was asked for or others are of no use; None where
    it may publish any real numbers: the loss has a proof over all of them, under a notion of one bound on ratios."""
    named = query.losses.named
    given = "outputs" in (query.words or {}) or query.question.outputs != query.question.inputs
    if given or query.question.numbers is None or (named is not None and named.kind == "error-rate"):
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
        if named is None or named.kind in LINEAR:  # No output between those that are listed has a smaller loss.
            return ""
        return f" (under {query.claim.notion.name} outputs are listed; values between them may have a smaller loss)"
    half = float(max(b - a for a, b in pairwise(sorted(query.question.numbers[1])))) / 2
    return f" (if the loss changes by at most s a unit, others between them cost at most {half:g} s less)"


def _freed(design: Design) -> str:
    """What a channel with outputs of its own publishes."""
    return f"{FAMILY.published(design)}, {in_bits(FAMILY.columns(design)['outputs_used'])}"
