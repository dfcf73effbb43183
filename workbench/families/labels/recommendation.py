"""RR-on-Bins for a query whose answers are all neighbours: the optimum over all real outputs."""

from __future__ import annotations

from collections.abc import Iterable

from models.oracles.bins import BIN_LOSSES
from workbench.families.labels.family import FAMILY
from workbench.families.recommendation import Candidate, Query, Value, designed
from workbench.mechanisms.label_randomizers.labels import Labels

__all__ = ["candidates"]

_NAME = "RR-on-Bins"


def candidates(query: Query) -> Iterable[Candidate]:
    """RR-on-Bins, where its labels are the answers."""
    q, named = query.question, query.losses.named
    if q.pairs is not None or q.numbers is None or q.prior is None or query.per_distance:
        yield Candidate(_NAME, reason="it is for numbers of which every two are neighbours, under a prior")
        return
    inputs = q.numbers[0]
    if named is None or named.kind not in BIN_LOSSES or sorted(inputs) != [*inputs]:
        yield Candidate(_NAME, reason="it is for increasing answers and the losses squared, absolute, pinball, poisson")
        return
    labels = Labels([float(x) for x in inputs], [float(p) for p in q.prior])
    low, high = inputs[0], inputs[-1]
    plain = [*inputs] == [low + i for i in range(q.k)] and low.denominator == 1 and len({*q.prior}) == 1
    command = f"workbench design labels --labels {low}..{high} --loss {named.name} --epsilon {float(query.epsilon):g}"

    def best() -> Value:
        value = designed(FAMILY, labels, epsilon=query.epsilon, loss=named)
        return value._replace(bound=None) if query.delta else value  # of pure mechanisms over all outputs

    yield Candidate(
        _NAME, "made for the prior; publishes real numbers of its own; pure, δ unused", command if plain else None, best
    )
