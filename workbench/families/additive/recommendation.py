"""Noise on the integers, clamped into the answers, for a query: the loss of what is published and the truth."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from workbench.families.additive.family import FAMILY
from workbench.families.recommendation import Candidate, Query, Value
from workbench.mechanisms.integer_noise import IntegerNoise

__all__ = ["candidates"]

_NAME = "integer noise, clamped"
_COSTS = {"squared": "squared", "absolute": "absolute", "zero-one": "zero-one"}


def candidates(query: Query) -> Iterable[Candidate]:
    """The best noise on the integers, private before it is clamped, where the answers are 0..n and there is a prior."""
    n, reach, prior = query.last, query.reach, query.question.prior
    cost = _COSTS.get(query.losses.name)
    if n is None or reach is None or query.notion not in ("dp", "pure"):
        yield Candidate(_NAME, reason="it is for answers 0..n with neighbours at most D apart, under dp or pure")
        return
    if prior is None or cost is None:
        yield Candidate(
            _NAME, reason="its cost is squared, absolute or zero-one, of a prior and not of the worst input"
        )
        return
    uniform = len({*prior}) == 1
    given = {"on": "integers", "sensitivity": reach, "clamp": f"0..{n}", "cost": cost}
    command = query.command("design noise", **given) if uniform else None

    def best() -> Value:
        budget = {name: value for name, value in query.budget.items() if name in ("epsilon", "delta", "notion")}
        shares = None if uniform else tuple(map(Fraction, prior))
        question = IntegerNoise(reach, clamp=(0, n))
        with FAMILY.open(FAMILY.request(question, cost=cost, prior=shares, **budget)) as session:
            design = session.design()
        return Value(design.objective, design.bound, design.certificate is not None)

    yield Candidate(_NAME, "the same noise for every answer; private before it is clamped", command, best)
