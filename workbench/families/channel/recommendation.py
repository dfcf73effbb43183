"""The best channel for a query, and usual channels beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from workbench.families.channel.baselines import BASELINES
from workbench.families.channel.family import FAMILY
from workbench.families.recommendation import Candidate, Query, Value
from workbench.mechanisms.channel import Channel
from workbench.privacy.claim import Claim
from workbench.privacy.measure import holds

__all__ = ["candidates"]

_SPELLING = ("answers", "outputs", "max_shift", "neighbours", "prior")
_REASON = {
    "clamped geometric": "the neighbours are not the answers that follow each other, published as they are",
    "randomized response": "some answers are no outputs, or pairs have budgets of their own",
}
_NEEDS = {
    "clamped geometric": "nothing but the answers in a row; pure, δ unused",
    "randomized response": "nothing but the outputs; pure, δ unused",
}


def candidates(query: Query) -> Iterable[Candidate]:
    """The best channel, clamped geometric noise, randomized response."""
    bits = math.ceil(math.log2(max(2, query.question.m)))
    prior = "the worst input" if query.question.prior is None else "the prior"
    command = query.command("design channel", *_SPELLING, **_loss(query))

    def best() -> Value:
        with FAMILY.open(FAMILY.request(query.question, loss=query.loss, **query.budget)) as session:
            design = session.design()
        return Value(design.objective, design.bound, design.certificate is not None)

    yield Candidate("best channel", f"made for {prior}; publishes only the outputs, {bits} bits", command, best)
    request: Any = FAMILY.request(query.question, loss=query.loss, **query.budget)
    for name, make in BASELINES.items():
        mechanism = make(request)
        if mechanism is None:
            yield Candidate(name, reason=_REASON[name])
        else:
            yield Candidate(name, _NEEDS[name], None, partial(_usual, request, mechanism))


def _usual(request: Any, mechanism: Channel) -> Value:
    claim = Claim.of(request.notion, mechanism, {"epsilon": request.claim.epsilon, "delta": request.delta})
    return Value(FAMILY.cost(request, mechanism), None, holds(mechanism, claim))


def _loss(query: Query) -> dict[str, Any]:
    """The loss as an option: its name, or the file that it came from."""
    named = query.losses.named
    return {"loss": named.name if named is not None else (query.words or {}).get("cost")}
