"""Name the command `publish` that answers the question of a recommendation, if there is one.

    question                                              statistic
    answers 0, 1, ..., n, neighbours at most K apart      a count; a person has at most K rows
    reals in [lo, hi], neighbours at most (hi - lo)/N     the mean of N rows, one for each person
    apart

The budget must be one of (ε, δ) for one run, neighbours must be protected in both orders, and the
prior must be uniform or the worst answer. Other questions have no such command, because `publish`
uses no other notion and no prior. The loss is squared or absolute.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from workbench.io.files import format_fraction
from workbench.pipeline.recommendation import Query
from workbench.publishing.losses import LOSSES
from workbench.questions.joint_query import MAX_ROWS

_NOTIONS = ("dp", "pure")


def describe_publish_command(query: Query) -> Iterator[str]:
    """Yield a sentence with the command `publish` for the question of a query, and its Python form.

    Args:
        query: The query.
    """
    if query.claim.notion.name not in _NOTIONS or query.aim.minimise == "epsilon":
        return
    epsilon = query.claim.epsilon
    has_common_budget = isinstance(epsilon, Fraction)
    if not has_common_budget or query.aim.runs > 1 or query.question.directed:
        return
    # A loss may also be a matrix or a function.
    if not isinstance(query.aim.loss, str) or query.aim.loss not in LOSSES:
        return
    arguments = {"epsilon": format_fraction(epsilon)}
    if query.claim.delta:
        arguments["delta"] = format_fraction(query.claim.delta)
    if query.aim.loss != LOSSES[0]:
        arguments["loss"] = query.aim.loss
    if query.has_real_answers:
        yield from _describe_mean(query, arguments)
    else:
        yield from _describe_count(query, arguments)


def _describe_count(query: Query, budget: dict[str, str]) -> Iterator[str]:
    """Yield the sentence of a count, if the answers can be counts of rows."""
    question = query.question
    max_rows = find_rows_per_person(query)
    if max_rows is None:
        return
    if question.has_free_outputs or question.outputs != question.inputs:
        return
    arguments = dict(budget)
    condition = "no person has more than one row"
    if max_rows > 1:
        condition = f"no person has more than {max_rows} rows"
        arguments |= {"person": "COLUMN", "rows_per_person": str(max_rows)}
    yield (
        f"If the answer is the number of rows of a table that match a condition, and {condition}, "
        f"publish it with {_write_calls('count', arguments)}."
    )


def find_rows_per_person(query: Query) -> int | None:
    """Find K if the answers of a query are 0..n and neighbours are at most K < n apart, else None.

    Args:
        query: A query with finitely many answers.
    """
    question = query.question
    if question.inputs != tuple(map(Fraction, range(question.k))) or question.pairs is None:
        return None
    if question.distances is not None or not _has_plain_prior(question.prior):
        return None
    max_rows = max(j - i for i, j in question.pairs)
    # All pairs at most K apart must be neighbours. There are n + 1 - d pairs at the distance d.
    pair_count = sum(question.k - difference for difference in range(1, max_rows + 1))
    if len(question.pairs) != pair_count or max_rows > MAX_ROWS:
        return None
    return max_rows


def _describe_mean(query: Query, budget: dict[str, str]) -> Iterator[str]:
    """Yield the sentence of a mean, if the sensitivity is the width of the range over N rows."""
    question = query.range_query
    rows = (question.high - question.low) / question.sensitivity
    if rows.denominator != 1 or rows < 2 or not _has_plain_prior(question.weights):
        return
    low = format_fraction(question.low)
    high = format_fraction(question.high)
    arguments = {"column": "COLUMN", "range": f"{low}..{high}", "rows": str(rows), **budget}
    yield (
        f"If the answer is the mean of {rows} rows, one for each person, whose number is public, "
        f"publish it with {_write_calls('mean', arguments)}."
    )


def _has_plain_prior(weights: tuple[Fraction, ...] | None) -> bool:
    """Return whether a prior is uniform, or only the worst answer counts."""
    return weights is None or len({*weights}) == 1


def _write_calls(statistic: str, arguments: dict[str, str]) -> str:
    """Write the command and the call in Python."""
    options = [f"--{name.replace('_', '-')} {value}" for name, value in arguments.items()]
    keywords = []
    for name, value in arguments.items():
        text = value if name.startswith("rows") else f'"{value}"'
        keywords.append(f"{name}={text}")
    return (
        f"`workbench publish {statistic} DATA.csv {' '.join(options)}`, or in Python with "
        f'`wb.publish.{statistic}("DATA.csv", {", ".join(keywords)})`'
    )
