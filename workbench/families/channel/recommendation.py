"""The best channel for a query, and published mechanisms beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from workbench.errors import WorkbenchError
from workbench.families.baseline import Baseline, baselines_of, own_baselines
from workbench.families.channel.baselines import BASELINES, audited, published
from workbench.families.channel.family import FAMILY
from workbench.families.channel.request import ChannelTooLarge
from workbench.families.frontier_plan import NotApplicable
from workbench.families.recommendation import Candidate, Query, Value, designed
from workbench.mechanisms.channel import Channel

__all__ = ["candidates"]

_SPELLING = ("answers", "outputs", "max_shift", "neighbours", "prior")


def candidates(query: Query) -> Iterable[Candidate]:
    """The best channel and every baseline, each with its least parameter at the budget."""
    bits = math.ceil(math.log2(max(2, query.question.m)))
    prior = "the worst input" if query.question.prior is None else "the prior"
    command = query.command("design channel", *_SPELLING, **_loss(query))

    best = partial(designed, FAMILY, query.question, loss=query.loss, **query.budget)
    try:
        FAMILY.request(query.question, loss=query.loss, **query.budget)
        yield Candidate("best channel", f"made for {prior}; publishes only the outputs, {bits} bits", command, best)
    except ChannelTooLarge as error:
        yield Candidate("best channel", reason=str(error))
    for name in BASELINES:
        yield Candidate(name, "published, made for no prior", None, partial(_usual, query, name))
    others = [
        *((known, "your own baseline") for known in own_baselines(query.own, "channel")),
        *((known, f"of {package}") for known, package in baselines_of("channel")),
    ]
    for baseline, words in others:
        yield Candidate(baseline.name, words, None, partial(_other, query, baseline))


def _usual(query: Query, name: str) -> Value:
    reference = published(query, name)
    return Value(reference.objective, None, reference.certified, reference.words)


def _other(query: Query, baseline: Baseline) -> Value:
    """A baseline that is not ours, audited; its code may raise anything."""
    try:
        given: Any = baseline.built(query)
    except WorkbenchError:
        raise
    except Exception as error:
        raise NotApplicable(f"it raised {type(error).__name__}: {error}") from error
    channel = getattr(given, "certified_form", lambda: given)()
    if not isinstance(channel, Channel):
        raise NotApplicable(f"it is no channel of the query's answers but {given.describe()}")
    reference = audited(query, channel)
    if not reference.certified:
        raise NotApplicable(f"it costs {reference.objective:.9g}, and is not private at this budget")
    return Value(reference.objective, None, True)


def _loss(query: Query) -> dict[str, Any]:
    """The loss as an option: its name, or the file that it came from."""
    named = query.losses.named
    return {"loss": named.name if named is not None else (query.words or {}).get("loss")}
