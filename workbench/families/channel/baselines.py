"""Usual channels for a question, their laws exact and private as they are: geometric noise and randomized response."""

from __future__ import annotations

import numpy as np

from models.oracles.count_channel import geometric
from workbench.families.channel.repair import Edges, repaired, to_integers
from workbench.families.channel.request import ChannelRequest
from workbench.mechanisms.channel import Channel
from workbench.privacy.repair import threshold

__all__ = ["BASELINES", "clamped_geometric", "randomized_response"]

_BITS = 112  # as `threshold`


def _own_outputs(request: ChannelRequest) -> list[int] | None:
    """The position of every input among the outputs; None where one is missing."""
    q = request.question
    at = {output: j for j, output in enumerate(q.outputs)}
    own = [at.get(x, -1) for x in q.inputs]
    return own if min(own) >= 0 else None


def clamped_geometric(request: ChannelRequest) -> Channel | None:
    """Pr[z | y] ~ e^(-ε |y - z|) with what falls outside at the ends, where neighbours follow each other in a row and
    outputs are the inputs; rounded so that it is private exactly."""
    q = request.question
    if not q.line or q.outputs != q.inputs or request.per_distance:
        return None
    assert request.epsilon is not None
    K = to_integers(geometric(q.k, float(request.epsilon)))
    rows = repaired(K, Edges.of(q.listed, [request.epsilon]), request.bounds.delta * 0, q.k // 2)
    return request.channel(rows.tolist())


def randomized_response(request: ChannelRequest) -> Channel | None:
    """The input with e^ε times the probability of any other output; private for every neighbour relation."""
    own = _own_outputs(request)
    if own is None or request.per_distance:
        return None
    assert request.epsilon is not None
    q = request.question
    rows = np.full((q.k, q.m), 1 << _BITS, dtype=object)
    rows[np.arange(q.k), own] = threshold(request.epsilon)
    return request.channel(rows.tolist())


BASELINES = {"clamped geometric": clamped_geometric, "randomized response": randomized_response}
