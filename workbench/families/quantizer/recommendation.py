"""Unbiased quantizers for a query with real answers in a range: few outputs, so few bits a message."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

from workbench.families.quantizer.family import FAMILY
from workbench.families.recommendation import Candidate, Query, RealQuery, designed
from workbench.families.requirements import is_hockey_stick
from workbench.io.files import spelled
from workbench.mechanisms.quantization import Quantization

__all__ = ["candidates", "real_candidates"]

_LEVELS = (2, 4)


def candidates(query: Query) -> Iterable[Candidate]:
    """None for finitely many answers."""
    yield Candidate("quantizer", reason="it is for real answers in a range: --range instead of --answers")


def real_candidates(query: RealQuery) -> Iterable[Candidate]:
    """Quantizers with few optimised outputs, where every two answers are neighbours."""
    if not query.local or not is_hockey_stick(query.notion):
        yield Candidate("quantizer", reason="it protects all of the range, under dp or pure")
        return
    c = query.width / 2
    for levels in _LEVELS:
        loss = query.loss
        best = partial(designed, FAMILY, Quantization(levels=levels, c=c), loss=loss, epsilon=query.epsilon)
        command = query.command(
            "design quantizer", levels=levels, c=spelled(c), loss=loss, epsilon=spelled(query.epsilon)
        )
        middle = query.low + c
        words = f"unbiased; {math.ceil(math.log2(levels))} bits a message; pure, δ unused"
        words += f"; takes answers minus {spelled(middle)}" if middle else ""
        yield Candidate(f"quantizer, {levels} outputs", words, command, best)
