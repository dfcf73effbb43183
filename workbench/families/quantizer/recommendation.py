"""Quantizers as recommendations for a query with real answers in a range: few outputs, so few bits a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from workbench.families.design import OracleVerdict
from workbench.families.quantizer.family import FAMILY
from workbench.families.quantizer.published import PUBLISHED, UNBIASED
from workbench.families.recommendation import (
    Candidate,
    Query,
    RealQuery,
    Value,
    best_design,
    command_line,
    in_bits,
    published_value,
)
from workbench.families.requirements import is_hockey_stick
from workbench.io.files import spelled
from workbench.mechanisms.density import Density
from workbench.mechanisms.quantization import Quantization, spelled_range
from workbench.privacy.expected_error import expected_error


def candidates(query: Query) -> Iterable[Candidate]:
    """None for finitely many answers."""
    yield Candidate("quantizer", reason="it is for real answers in a range: --range instead of --answers")


def real_candidates(query: RealQuery) -> Iterable[Candidate]:
    """Quantizers with few optimised outputs, and what is published, where every two answers are neighbours."""
    private = query.local and is_hockey_stick(query.notion)
    served = private and query.uniform
    none = None if served else "it is for all of a range on which answers are uniform, under dp or pure"
    ends, loss = (query.low, query.high), query.loss
    for levels in (2, 4):
        question = Quantization(levels=levels, range=ends)
        best = partial(_designed, query, question)
        command = None
        if served and query.max_loss is None:
            given = {"range": spelled_range(ends), "levels": levels, "loss": loss, "epsilon": spelled(query.epsilon)}
            command = command_line("design quantizer", given)
        words = f"unbiased; {in_bits(levels)} a message; pure, δ unused"
        words += "" if query.uniform else "; the best for uniform answers"
        reason = None if private else "it is for all of a range, under dp or pure"
        yield Candidate(f"quantizer, {levels} outputs", words, command, best if private else None, reason,
                        programs=levels > 2)  # fmt: skip
    whole = replace(query, sensitivity=query.width)
    for entry in (entry for entry in PUBLISHED if entry.serves(whole)):
        unbiased = "unbiased; " if entry.name in UNBIASED else ""
        words = f"{unbiased}published ({entry.source}); a closed form in floating point, not certified"
        yield Candidate(entry.name, words, None, None if none else partial(published_value, entry, query), none)


def _designed(query: RealQuery, question: Quantization) -> Value:
    """The best quantizer for uniform answers, and what it costs the query's own: of it alone where they are others."""
    design, stopped = best_design(FAMILY, question, query.time, loss=query.loss, epsilon=query.epsilon)
    if query.uniform:
        return Value.of(design, stopped)
    law, weights = design.mechanism, query.question.weights
    if weights is None:
        loss = float(expected_error(law, query.loss).worst or 0)
    else:
        loss = law.expected(query.loss, _density(weights, float(law.c)))
    words = f"The best for uniform answers ({design.objective:.9g}); for {query.question.prior_words} this is the loss."
    chosen = replace(design, objective=loss, bound=None, words=(*design.words, words),
                     oracle=OracleVerdict.none("no closed form is known for other answers."))  # fmt: skip
    return Value.of(chosen)


def _density(weights: Sequence[Fraction], c: float) -> Density:
    """Uniform on each of so many equal parts of [-c, c]."""
    heights = np.array([float(w) for w in weights]) * len(weights) / (2 * c)
    breaks = np.linspace(-c, c, len(weights) + 1)[1:-1]
    return Density("parts", c, lambda x: heights[np.searchsorted(breaks, x, side="right")], tuple(breaks.tolist()))
