"""Quantizers as recommendations for a query with real answers in a range: few outputs, so few bits a message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from workbench.families.quantizer.family import FAMILY
from workbench.families.quantizer.published import PUBLISHED, UNBIASED
from workbench.families.recommendation import Candidate, Query, RealQuery, command_line, designed, published_value
from workbench.families.requirements import is_hockey_stick
from workbench.io.files import spelled
from workbench.mechanisms.quantization import Quantization, spelled_range


def candidates(query: Query) -> Iterable[Candidate]:
    """None for finitely many answers."""
    yield Candidate("quantizer", reason="it is for real answers in a range: --range instead of --answers")


def real_candidates(query: RealQuery) -> Iterable[Candidate]:
    """Quantizers with few optimised outputs, and what is published, where every two answers are neighbours."""
    served = query.local and is_hockey_stick(query.notion) and query.uniform
    none = None if served else "it is for all of a range on which answers are uniform, under dp or pure"
    ends, loss = (query.low, query.high), query.loss
    for levels in (2, 4):
        question = Quantization(levels=levels, range=ends)
        best = partial(designed, FAMILY, question, query.time, loss=loss, epsilon=query.epsilon)
        command = None
        if served and query.max_loss is None:
            given = {"range": spelled_range(ends), "levels": levels, "loss": loss, "epsilon": spelled(query.epsilon)}
            command = command_line("design quantizer", given)
        words = f"unbiased; {levels // 2} bits a message; pure, δ unused"
        yield Candidate(f"quantizer, {levels} outputs", words, command, None if none else best, none,
                        programs=levels > 2)  # fmt: skip
    whole = replace(query, sensitivity=query.width)
    for entry in (entry for entry in PUBLISHED if entry.serves(whole)):
        unbiased = "unbiased; " if entry.name in UNBIASED else ""
        words = f"{unbiased}published ({entry.source}); a closed form in floating point, not certified"
        yield Candidate(entry.name, words, None, None if none else partial(published_value, entry, query), none)
