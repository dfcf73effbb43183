"""What a table of recommended classes says in sentences: which to use, why, and what others cost beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.data.points import format_point
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Values
from workbench.families.channel.query_channels import compute_float_laws
from workbench.io.files import format_fraction
from workbench.io.result import Row
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.pipeline.recommendation import Candidate, Query
from workbench.privacy.exposure import compute_exposure, find_float_exposure

BORROWED_NOTE, STOPPED_NOTE = "best so far:", "stopped"
UNBIASED_NOTE = "unbiased"  # how the notes of an unbiased class begin
_NO_CLASS_SENTENCE = "No class serves this query with a certificate."
_EXAMPLE_ANSWER = Fraction(42)  # the answer whose published law is told, where it is one
_MAX_SHOWN_OUTPUTS = 3  # published values that are told
_MAX_LAW_MASSES = 1_000_000  # masses of a mechanism up to which its laws are looked at
_MAX_EPSILON = Fraction(
    20
)  # No channel has a larger ε; stands for one that is not the same for all pairs.


def select_certified(rows: Sequence[Row]) -> list[Row]:
    """Those of mechanisms that are proven private."""
    return [row for row in rows if row["objective"] is not None and row["certified"]]


def choose_row(rows: Sequence[Row], candidates: Sequence[Candidate]) -> Row | None:
    """The row to use: of those that cost the least the simplest."""
    served, known = select_certified(rows), {candidate.name: candidate for candidate in candidates}
    return min(
        _select_tied(served) or served[:1],
        key=lambda row: known[row["class"]].complexity,
        default=None,
    )


def _select_tied(served: Sequence[Row]) -> list[Row]:
    """Those that cost the least."""
    return [
        row
        for row in served
        if _format_objective(row) == _format_objective(served[0])
        and BORROWED_NOTE not in row["notes"]
    ]


def _format_objective(row: Row) -> str:
    return format_loss(row["objective"])


def _describe_uncertified(rows: Sequence[Row], best: Row) -> Iterator[str]:
    """What costs less than the class to use and is not proven private."""
    less = [
        row
        for row in rows
        if not row["certified"] and (row["objective"] or math.inf) < best["objective"]
    ]
    if less:
        told = "; ".join(f"{row['class']} ({format_loss(row['objective'])})" for row in less)
        yield f"Not certified, and below {format_loss(best['objective'])}: {told}."


def _recommend_class(best: Row, where: str = "", lowest: float | None = None) -> str:
    """The sentence that recommends a class, with what is proven of it: the bound where it does not show the loss.
    lowest: of all classes, where it has no bound."""
    which = "its class" if best["bound"] is not None else "any class compared"
    loss, bound = format_loss(best["objective"]), lowest if best["bound"] is None else best["bound"]
    than = "" if bound is None or format_loss(bound) == loss else f" than {format_loss(bound)}"
    known = bound is not None and (bound > 0 or not best["objective"])
    proven = f", and none of {which} costs less{than}" if known else ""
    return f"Use the {best['class']}{where}: {loss}{proven}."


def describe_finite_query(
    query: Query, rows: list[Row], candidates: Sequence[Candidate], mechanisms: Values
) -> Iterator[str]:
    """Of a finite query."""
    best = choose_row(rows, candidates)
    if best is None:
        yield _NO_CLASS_SENTENCE
        return
    served, known = select_certified(rows), {candidate.name: candidate for candidate in candidates}
    if query.aim.max_loss is not None:
        yield _recommend_least_epsilon(query, best)
        yield from _describe_stopped(query, rows)
        yield from _describe_exposure(query, mechanisms.get(best["class"]))
        return
    yield _recommend_class(
        best, lowest=_find_lowest_bound(query, rows) if len(candidates) > 1 else None
    )
    yield from _describe_stopped(query, rows)
    yield from _describe_constant_output(query, best)
    yield from _describe_exposure(query, mechanisms.get(best["class"]))
    yield from _describe_uncertified(rows, best)
    if others := [row["class"] for row in _select_tied(served) if row is not best]:
        yield f"At the same loss, and less simple: {'; '.join(others)}."
    inside = [row["class"] for row in served if row["class"] in known[best["class"]].contains]
    if inside and best["bound"] is not None:
        yield f"It can cost no more than {'; '.join(inside)}: its class contains them."
    if best.get("worst") is not None and query.question.prior is not None:
        yield from _describe_wrong_prior(best, served)
    mechanism = mechanisms.get(best["class"])
    if mechanism is not None and BORROWED_NOTE not in best["notes"]:
        yield _describe_outputs(query, mechanism)
    if query.user_baselines or query.compared_names:
        from workbench.recommendation.published import describe_baseline_distances  # slow to import

        yield from describe_baseline_distances(query)


def _find_lowest_bound(query: Query, rows: Sequence[Row]) -> float | None:
    """Return a loss that no class of the table goes below; None where designs for several runs have no bound."""
    if query.aim.runs > 1 and query.claim.delta:
        return None
    proven = [row["bound"] is not None or STOPPED_NOTE in row["notes"] for row in rows]
    lows = [
        (row["bound"] or 0.0) if of else row["objective"]
        for row, of in zip(rows, proven, strict=True)
    ]
    return min(low for low in lows if low is not None)


def _describe_stopped(query: Query, rows: Sequence[Row]) -> Iterator[str]:
    """Which classes the time limit stopped before they had an answer of their own."""
    unknown = [
        row
        for row in rows
        if STOPPED_NOTE in row["notes"]
        and (row["objective"] is None or BORROWED_NOTE in row["notes"])
    ]
    if unknown and query.time is not None:
        names = "; ".join(row["class"] for row in unknown)
        what = "a lower loss" if query.aim.max_loss is None else "a smaller epsilon"
        yield (
            f"Stopped at the time limit of {query.time.seconds:g} seconds, with no answer of their own: {names}. "
            f"Each may have {what}: give more time (--time-limit)."
        )


def _describe_constant_output(query: Query, best: Row) -> Iterator[str]:
    """What publishing one output whatever the answer would do, where it does no worse."""
    losses, prior = query.losses.floats, query.question.prior
    each = losses.max(axis=0) if prior is None else np.array([float(p) for p in prior]) @ losses
    output = int(each.argmin())
    if best["objective"] > each[output] * (1 + 1e-9):
        told = _format_briefly(query.question.outputs[output])
        yield f"Publishing {told} whatever the answer has the loss {each[output]:.9g}, which is less, at any budget."


def _describe_exposure(query: Query, mechanism: Any) -> Iterator[str]:
    """Yield the sentence on δ: how likely an output is that a neighbour hardly ever produces (`privacy.exposure`)."""
    if not query.claim.delta or mechanism is None:
        return
    epsilon = (
        _MAX_EPSILON
        if query.claim.epsilon is None or query.is_per_distance
        else query.claim.epsilon
    )
    likely = float(query.claim.delta)
    if query.has_real_answers:
        exact = (
            compute_exposure(mechanism, epsilon) if isinstance(mechanism, RangeMechanism) else ZERO
        )
        likely = likely if exact is None else float(exact)
    elif query.question.k * query.question.m <= _MAX_LAW_MASSES:
        rows, _ = compute_float_laws(query, mechanism)
        exposed = find_float_exposure(
            rows, query.question.neighbour_pairs, epsilon, is_directed=query.question.directed
        )
        likely = likely if exposed is None else exposed[0]
    if likely:
        yield (
            f"With probability up to {likely:.3g} it publishes an output that a neighbour cannot produce, or produces "
            f"10,000 times more rarely than epsilon allows."
        )


def _recommend_least_epsilon(query: Query, best: Row, where: str = "") -> str:
    bound, at = best["bound"], f"a loss of at most {float(query.aim.max_loss or 0):g}"
    proven = (
        "" if bound is None else f", and none of its class does with less than {format_loss(bound)}"
    )
    return f"For {at} use the {best['class']}{where}: epsilon = {format_loss(best['objective'])}{proven}."


def describe_runs(query: Query, candidates: Sequence[Candidate]) -> Iterator[str]:
    """How the budgets of several runs, or answers, add up."""
    if query.aim.runs == 1:
        return
    several = [
        each.name
        for each in candidates
        if each.supports_runs and each.solve is not None and query.claim.delta
    ]
    names = ("epsilon", "delta") if query.claim.delta else ("epsilon",)
    each, whole = (
        ", ".join(f"{name} = {format_fraction(query.claim.values[name] / runs)}" for name in names)
        for runs in (query.aim.runs, 1)
    )
    known = (
        f" ({'; '.join(several)}: found for all {query.aim.runs}, whose whole budget is proven)"
        if several
        else ""
    )
    unproven = ""
    if query.claim.delta:
        unproven = f" No bound is proven over designs for {query.aim.runs} runs: no class is proven optimal."
    yield (
        f"The budget is for {query.aim.runs} runs, or for any number of such answers of which one person changes at "
        f"most {query.aim.runs}: each has {each}, which adds up to {whole}{known}. The losses are those of "
        f"one.{unproven}"
    )


def _describe_wrong_prior(best: Row, served: Sequence[Row]) -> Iterator[str]:
    """What the prior does where it is wrong."""
    safest = min(
        (row for row in served if row.get("worst") is not None), key=lambda row: row["worst"]
    )
    words = f"If the prior is wrong it costs up to {best['worst']:.6g}, on one answer"
    if safest["worst"] < best["worst"] * (1 - 1e-6):
        words += f"; the {safest['class']} at most {safest['worst']:.6g}"
    yield f"{words}."


def _describe_outputs(query: Query, mechanism: Any) -> str:
    """What comes out for one true answer: 42, or the middle one."""
    inputs, grid = query.question.inputs, query.grid
    order = (
        range(len(inputs))
        if grid is None
        else sorted(range(len(inputs)), key=grid.places.__getitem__)
    )
    at = inputs.index(_EXAMPLE_ANSWER) if _EXAMPLE_ANSWER in inputs else order[len(inputs) // 2]
    rows, outputs = compute_float_laws(query, mechanism)
    each = sorted(zip(rows[at].tolist(), outputs, strict=True), key=lambda pair: -pair[0])[
        :_MAX_SHOWN_OUTPUTS
    ]
    likely = ", ".join(
        f"{_format_briefly(output)} ({share:.3g})" for share, output in each if share > 0
    )
    return f"For a true {_format_briefly(inputs[at])} it publishes, most often: {likely}."


def _format_briefly(value: Any) -> str:
    """A published value; of a number six digits."""
    told = format_point(value)
    return f"{told:.6g}" if isinstance(told, float) else str(told)


def format_loss(loss: float) -> str:
    """In nine digits."""
    return f"{loss:.9g}"


def describe_range_query(
    query: Query, rows: list[Row], candidates: Sequence[Candidate], mechanisms: Values
) -> Iterator[str]:
    """What to use for one answer, and where many are averaged; what one answer alone is worth at this budget."""
    served = select_certified(rows)
    if not served:
        yield _NO_CLASS_SENTENCE
        yield from _describe_stopped(query, rows)
        return
    best, unbiased = served[0], [row for row in served if row["notes"].startswith(UNBIASED_NOTE)]
    if query.aim.max_loss is not None:
        yield _recommend_least_epsilon(query, best)
        yield from _describe_stopped(query, rows)
        yield from _describe_exposure(query, mechanisms.get(best["class"]))
        if unbiased and best not in unbiased:
            yield _recommend_least_epsilon(
                query, unbiased[0], " where many answers are averaged (unbiased)"
            )
        return
    if best not in unbiased:
        loss, bound = format_loss(best["objective"]), best["bound"]
        others = (
            f"No channel of the range costs less than {format_loss(bound)}."
            if bound
            else "Others may cost less."
        )
        floor = (
            ""
            if not best["bias"]
            else f" Its bias of up to {best['bias']:.6g} stays in every average."
        )
        yield f"Use the {best['class']} for one answer alone (biased): {loss}. {others}{floor}"
        yield from _describe_exposure(query, mechanisms.get(best["class"]))
    averaged = min(
        (row for row in unbiased if row["rmse"] is not None),
        key=lambda row: (row["rmse"], BORROWED_NOTE in row["notes"]),
        default=None,
    )
    if averaged is not None:
        variance = f"Its variance, {averaged['rmse'] ** 2:.6g}, is the least of the certified unbiased classes."
        alone = len(candidates) == 1 or query.aim.loss == "squared"
        yield f"{_recommend_class(averaged, ' where many answers are averaged (unbiased)')}{'' if alone else f' {variance}'}"
    yield from _describe_stopped(query, rows)
    yield from _describe_uncertified(rows, best)
    output, constant = map(float, query.range_query.best_constant(str(query.aim.loss)))
    if best["objective"] > constant:
        yield f"Publishing {output:g} whatever the answer is costs {constant:.9g}, less than every row of the table."
