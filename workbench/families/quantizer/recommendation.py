"""Quantizers as recommendations for a query with real answers in a range: few outputs, so few bits a message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from workbench.families.quantizer.family import FAMILY
from workbench.io.files import format_fraction
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.published import published_for
from workbench.pipeline.recommendation import (
    Candidate,
    Query,
    Value,
    evaluate_published,
    format_bits,
)
from workbench.pipeline.requirements import is_hockey_stick
from workbench.privacy.expected_error import compute_expected_error
from workbench.questions.quantization import Quantization
from workbench.questions.range_query import RangeQuery


def candidates(query: Query) -> Iterable[Candidate]:
    """None for finitely many answers."""
    yield Candidate(
        "quantizer", reason="it is for real answers in a range: --range instead of --answers"
    )


def real_candidates(query: Query) -> Iterable[Candidate]:
    """Quantizers with few optimised outputs, and what is published, where every two answers are neighbours."""
    real = query.range_query
    private = real.has_all_neighbours and is_hockey_stick(query.claim.notion)
    served = private and real.uniform
    none = (
        None
        if served
        else "it is for all of a range on which answers are uniform, under dp or pure"
    )
    ends, weights = (real.low, real.high), real.weights
    prior = (
        {}
        if real.uniform or weights is None
        else {"density": f"parts:{','.join(map(format_fraction, weights))}"}
    )
    for levels in (2, 4):
        question = Quantization(levels=levels, range=ends, **prior)
        ask = partial(
            query.make_request, FAMILY, question, loss=query.aim.loss, epsilon=query.claim.epsilon
        )
        words = f"unbiased; {format_bits(levels)} a message; pure, δ unused"
        if weights is None:
            words += (
                "; the best for uniform answers"
                if levels == 2
                else "; the best found for uniform answers"
            )
        name = f"quantizer, {levels} outputs"
        if private:
            quantizer = Candidate.from_request(name, words, ask, query.time, partial(_value, query))
            yield replace(quantizer, uses_solver=levels > 2)
        else:
            yield Candidate(name, reason="it is for all of a range, under dp or pure")
    whole = replace(query, question=RangeQuery(ends))
    for entry in published_for(whole, FAMILY):
        unbiased = "unbiased; " if entry.is_unbiased else ""
        words = (
            f"{unbiased}published ({entry.source}); a closed form in floating point, not certified"
        )
        yield Candidate(
            entry.name, words, None if none else partial(evaluate_published, entry, query), none
        )


def _value(query: Query, design: Design, stopped: bool) -> Value:
    """Return the value of the best quantizer for the prior; of the best for uniform answers where the worst counts."""
    if query.range_query.weights is not None:
        return Value.from_design(design, stopped)
    loss = float(compute_expected_error(design.mechanism, str(query.aim.loss)).worst_error or 0)
    words = f"The best for uniform answers ({design.objective:.9g}); for {query.range_query.prior_text} this is the loss."
    chosen = replace(design, objective=loss, bound=None, words=(*design.words, words),
                     oracle=OracleVerdict.without_formula("no closed form is known for other answers."))  # fmt: skip
    return Value.from_design(chosen)
