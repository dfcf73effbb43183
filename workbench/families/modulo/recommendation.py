"""Additive noise modulo the number of answers for a query: the loss of what is published, wrapped, and the truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.families.modulo.family import FAMILY
from workbench.families.recommendation import Candidate, Query, Value, designed
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["candidates"]

_NAME = "modulo noise"


def candidates(query: Query) -> Iterable[Candidate]:
    """Modulo noise, where the answers are 0..n, neighbours differ by at most D, and there is a prior."""
    n, reach = query.last, query.reach
    if n is None or reach is None or query.per_distance:
        yield Candidate(_NAME, reason="it is for answers 0..n, published as they are, with neighbours at most D apart")
        return
    if query.question.prior is None:
        yield Candidate(_NAME, reason="its loss is that of a prior, not of the worst input")
        return
    named = _named(query)
    needs = "no prior; wraps around (answer + noise modulo n + 1), and protects the pairs that wrap as well"
    command = query.command("design modulo", n=n, max_shift=reach, loss=named) if named else None
    yield Candidate(_NAME, needs, command, lambda: _best(query, n, reach, named), extra_loss="Wrapping around")


def _named(query: Query) -> str | None:
    """The name that noise has for the loss, where the prior is uniform."""
    uniform, name = len({*(query.question.prior or ())}) == 1, query.losses.name
    return name if uniform and name in ("squared", "error-rate") else None


def _best(query: Query, n: int, reach: int, named: str | None) -> Value:
    loss: Any = named
    if named is None:
        answers = np.arange(n + 1)
        prior = np.array([float(p) for p in query.question.prior or ()])
        wrapped = (answers[:, None] + answers) % (n + 1)  # (answer, noise)
        loss = prior @ np.take_along_axis(query.losses.floats, wrapped, axis=1)
    return designed(FAMILY, ModuloNoise(n=n, max_shift=reach), loss=loss, **query.budget)
