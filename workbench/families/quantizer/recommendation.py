"""Recommend quantizers for a query with real answers in a range: few outputs, so few bits.

A quantizer is a candidate with 2 or 4 outputs (_LEVEL_COUNTS), next to the published randomizers of
`workbench.families.quantizer.published`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

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

_LEVEL_COUNTS = (2, 4)  # Quantizers with these numbers of outputs are recommended.


def candidates(query: Query) -> Iterable[Candidate]:
    """Recommend no quantizer for finitely many answers, and give the reason.

    Args:
        query: the query with its answers, budget and loss.

    Yields:
        One candidate that is refused.
    """
    reason = "it needs real answers in a range; use --range"
    yield Candidate("quantizer", reason=reason)


def real_candidates(query: Query) -> Iterable[Candidate]:
    """Recommend quantizers and published randomizers if every two answers are neighbours.

    Args:
        query: the query of a range of real answers.

    Yields:
        A candidate for each number of outputs, then one for each published randomizer. A candidate
        that does not apply has a reason instead of a value.
    """
    real_range = query.range_query
    ends = (real_range.low, real_range.high)
    # ε-DP between every two values of the range, as quantizers have it.
    has_local_dp = real_range.has_all_neighbours and is_hockey_stick(query.claim.notion)
    for levels in _LEVEL_COUNTS:
        name = f"quantizer, {levels} outputs"
        if has_local_dp:
            yield _make_quantizer_candidate(query, name, levels)
        else:
            yield Candidate(
                name, reason="it needs every two answers to be neighbours, and dp or pure"
            )
    reason = None
    if not has_local_dp or not real_range.uniform:
        reason = "it needs uniform answers, all of them neighbours, and dp or pure"
    range_without_prior = replace(query, question=RangeQuery(ends))
    for entry in published_for(range_without_prior, FAMILY):
        text = f"published ({entry.source}); a closed form in floating point, not certified"
        if entry.is_unbiased:
            text = f"unbiased; {text}"
        evaluate = None if reason else partial(evaluate_published, entry, query)
        yield Candidate(entry.name, text, evaluate, reason)


def _make_quantizer_candidate(query: Query, name: str, levels: int) -> Candidate:
    """Make the candidate of a quantizer with a number of optimised outputs."""
    real_range = query.range_query
    options: dict[str, Any] = {"levels": levels, "range": (real_range.low, real_range.high)}
    text = f"unbiased; {format_bits(levels)} a message; pure, δ unused"
    # Without a prior, the quantizer is designed for uniform answers all the same.
    if real_range.weights is None:
        text += "; optimal" if levels == 2 else "; the best found"
        text += " for uniform answers"
    elif not real_range.uniform:
        options["density"] = f"parts:{','.join(map(format_fraction, real_range.weights))}"
    make_request = partial(
        query.make_request,
        FAMILY,
        Quantization(**options),
        loss=query.aim.loss,
        epsilon=query.claim.epsilon,
    )
    candidate = Candidate.from_request(
        name, text, make_request, query.time, read=partial(_make_quantizer_value, query)
    )
    # Two outputs have a closed form, so this candidate is computed with the fast ones.
    return replace(candidate, uses_solver=levels > 2)


def _make_quantizer_value(query: Query, design: Design, is_stopped: bool) -> Value:
    """Make the value of a quantizer, with its loss for the prior of the query.

    If the query has no prior, this is the loss for the worst answer. The quantizer is then the best
    one for uniform answers, and the value has a note that says so.
    """
    if query.range_query.weights is not None:
        return Value.from_design(design, is_stopped)
    error = compute_expected_error(design.mechanism, str(query.aim.loss))
    loss = float(error.worst_error or 0)
    note = (
        f"The quantizer is designed for uniform answers, with expected loss "
        f"{design.objective:.9g}. The stated loss is that for {query.range_query.prior_text}."
    )
    verdict = OracleVerdict.without_formula("no closed form is known for other answers.")
    return Value.from_design(
        replace(design, objective=loss, bound=None, words=(*design.words, note), oracle=verdict)
    )
