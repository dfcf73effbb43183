"""`wb.recommend`: classes of mechanisms for one query at one budget, the class of least loss first.

A query becomes one table in four steps:

    options or a question ─▶ Query ─▶ [Candidate, ...] ─▶ a Value of each, within one time limit ─▶ rows, sentences

    Query       the question, the claim, the aim, the time limit, and the requests that were built for it
    Candidate   one class: a Request of its family and what is read off the design, or a closed form; or the reason why
                the class does not serve the query
    Value       loss, bound, mechanism and certificate of a class
    row         one line of the table, with the command that designs the class alone

Each family says in its module `recommendation` which classes it has. A request is built once, from exact values, and
designed as `workbench.design` would (`pipeline.recommendation.best_design`). `TimeShares` divides the time limit: each
class gets an equal share of what is left, its solver most of that; closed forms come first, and the class that uses
most time comes last. A command of a row is text for people: it repeats the options of the query and the budget of the
claim, and is never read back.

column        what it holds
class         of mechanisms; its optimum lies in [bound, objective] where a bound is proven
objective     expected loss of published and true answer under the query's prior (or of the worst answer); with
              minimise="epsilon" the least ε for the largest loss
certified     whether exact arithmetic proves the mechanism private
rmse          the root of a mean squared loss; of real answers that of the mechanism, whatever the loss
worst         the largest mean loss of any answer, whatever the prior
bias          how far the mean of what is published is from the answer at most, which no average makes smaller
bits          that tell apart what is published
command       that makes it alone, or goes on where it was stopped; where the query is a text
notes         what it needs, or why it does not apply
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data.intervals import format_range
from workbench.errors import InvalidRequest, NotProven, WorkbenchError, must
from workbench.exact.numbers import read_positive
from workbench.exact.objects import Record, Values
from workbench.exact.time_limit import OutOfTime, limit_time
from workbench.families.channel.family import FAMILY, FINITE_OPTIONS
from workbench.families.channel.problem import DIRECTED_NOTE
from workbench.families.channel.query_channels import compute_float_laws
from workbench.families.channel.request import ChannelTooLarge
from workbench.io.result import Plots, Progress, Result, Row, check_progress, ignore_progress
from workbench.pipeline.design import Design
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.option import (
    NOTION_PARAMETERS,
    TIME_LIMIT,
    Option,
    choice_reader,
    read_options,
    read_plain_text,
)
from workbench.pipeline.published import index_by_name
from workbench.pipeline.recommendation import (
    Candidate,
    Query,
    TimeShares,
    Value,
    find_least_epsilon,
    format_option_texts,
    list_candidates,
)
from workbench.pipeline.request import BUDGET_OPTIONS, Aim, read_claim
from workbench.pipeline.user_baselines import read_baselines
from workbench.privacy.claim import format_parameter
from workbench.privacy.expected_error import compute_expected_error
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import RangeQuery
from workbench.recommendation.queries import count_prior
from workbench.recommendation.wording import (
    BORROWED_NOTE,
    STOPPED_NOTE,
    UNBIASED_NOTE,
    choose_row,
    describe_finite_query,
    describe_range_query,
    describe_runs,
    format_loss,
    select_certified,
)
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_LAW_COLUMNS = ("rmse", "worst", "bias", "bits")
COLUMNS = ("class", "objective", "bound", "certified", *_LAW_COLUMNS, "command", "notes")
_TIME_LIMIT_OPTION = replace(
    TIME_LIMIT,
    default=Fraction(20),
    help="Seconds for all classes together.",
    kind=str,
    solver=False,
)
_MAX_READ_MASSES = 1_000_000  # of a mechanism, up to which its other columns are computed
_BOUND_ROUNDING = 1e-9  # relative, by which rounding may carry a bound above a loss
_MIN_LONGER_SECONDS, _LONGER_FACTOR = (
    600,
    10,
)  # seconds of the command that goes on, and how many times those of this one, at least


OPTIONS = (
    *FINITE_OPTIONS,
    FAMILY.get_option("loss"),
    FAMILY.get_option("notion"),
    *NOTION_PARAMETERS,
    replace(
        FAMILY.get_option("minimise"),
        read=choice_reader("loss", "epsilon"),
        help="loss, or epsilon for a largest loss.",
    ),
    replace(FAMILY.get_option("max_loss"), read=read_positive),
    FAMILY.get_option("runs"),
    FAMILY.get_option("delta"),
    FAMILY.get_option("epsilon"),
    Option("baseline", read_baselines, kind=list, help="Your own."),
    Option("only", read_plain_text, help="One class, by its name."),
    FAMILY.get_option("unit"),
    _TIME_LIMIT_OPTION,
)


_QUESTION_NAMES = {option.name for option in FINITE_OPTIONS} | {"range", "sensitivity", "cells"}
_BUDGET_NAMES = {"notion", "minimise", "max_loss", "runs", "delta", "epsilon", "only", "time_limit"}
REAL_OPTIONS = (
    replace(FAMILY.get_option("range"), required=True),
    FAMILY.get_option("sensitivity"),
    replace(
        FAMILY.get_option("loss"),
        read=choice_reader("absolute", "squared"),
        help="absolute or squared.",
    ),
    *(
        each
        for each in OPTIONS
        if each.name in {*_BUDGET_NAMES, "prior"} or each in NOTION_PARAMETERS
    ),
)


@dataclass(frozen=True, repr=False, eq=False)
class Recommendation(Result):
    """The rows of classes, the least loss first. chosen: the name of the class to use, None where none serves; makers:
    of every class that serves, what makes its certified design."""

    notebook_columns = ("class", "objective", "bound", "certified", "notes")
    chosen: str | None = None
    design_makers: Mapping[str, Callable[[], Design]] = field(default_factory=dict)

    @property
    def best(self) -> Design:
        """The design of the class to use. Raises InvalidRequest where no class serves the query."""
        return self.design(self.chosen or "")

    def design(self, name: str) -> Design:
        """The certified design of a class. Raises InvalidRequest, NotCertified."""
        if name not in self.design_makers:
            must(
                "class",
                f"one of {', '.join(self.design_makers) or 'none with a certificate'}",
                repr(name),
            )
        return self.design_makers[name]()


def recommend(
    question: FiniteQuery | None = None,
    /,
    *,
    epsilon: Any = None,
    delta: Any = 0,
    notion: str = "dp",
    loss: Any = "squared",
    time_limit: Any = 20,
    progress: Progress = ignore_progress,
    **options: Any,
) -> Recommendation:
    """Classes of mechanisms for a finite or real query at one budget, with proven numbers, the least loss first.

    Of mechanisms outside the classes compared nothing is claimed: another one may cost less.

        >>> import workbench as wb
        >>> table = wb.recommend(answers="0..10", max_shift=1, epsilon=1, delta="1e-5")
        >>> [row["class"] for row in table][:2]
        ['best channel', 'integer noise, clamped']

        >>> wb.recommend(answers="0..3", max_shift=1, minimise="epsilon", max_loss="0.4").best.certificate is not None
        True

        >>> wb.recommend(wb.FiniteQuery("0..3", max_shift=1), epsilon=1).chosen
        'best channel'

    Args:
        question: a FiniteQuery, instead of the options that spell one.
        epsilon, delta, notion: the budget; or alpha, rho, mu, curve or tradeoff of other notions; with notion metric
            also "0.7/km", for places whose coordinates are in the unit given.
        loss: a loss by name, a matrix (answers, outputs), or a function.
        time_limit: seconds for all classes together; a class that is stopped shows what was found, and its bound.
        progress: told (classes done, classes, what has come out) as rows are ready.
        options: range and perhaps sensitivity, for real answers between two numbers (neighbours: every two unless a
            sensitivity is given; prior: uniform on the range, worst, or weights of equal parts of it); or answers,
            outputs, max_shift or neighbours, prior, as `workbench.FiniteQuery` takes them; baseline: your own, a PMF
            {noise: probability}, a matrix, a function (epsilon, delta) -> one of these, a CSV file, or a mapping from
            names to such; minimise: "epsilon", with max_loss the largest loss allowed (ε is then an upper limit); runs:
            that the budget is for, or such answers of which one person changes as many; only: one class; column: of the
            CSV file `prior`, whose values are counted as the prior (and are the answers, every two neighbours, unless
            they are given).

    Returns:
        One row for each class compared (the module's columns); a class that does not apply says why. After Ctrl-C, the
        rows that were ready. `best` is the design of the class to use, `design(name)` that of any.

    Raises:
        InvalidRequest: a wrong value, before anything is solved.
    """
    check_progress(progress)
    unit = options.get("unit")
    if question is not None:
        options = _spell_question_options(question, options)
    given = {
        **options,
        "epsilon": epsilon,
        "delta": delta,
        "notion": notion,
        "loss": loss,
        "time_limit": time_limit,
    }
    more = [DIRECTED_NOTE] if given.get("directed") else []
    if given.get("directed") is False:
        del given["directed"]
    if question is not None:
        known = REAL_OPTIONS if isinstance(question, RangeQuery) else OPTIONS
        if not isinstance(question, RangeQuery):
            given = {**FAMILY.convert_epsilon_unit(given), "unit": None}
        own = {name: value for name, value in given.items() if name not in _QUESTION_NAMES}
        values = read_options(
            [option for option in known if option.name not in _QUESTION_NAMES], own
        )
    elif given.get("range") is not None:
        values = read_options(REAL_OPTIONS, given, "request with a range")
    else:
        given, words = count_prior(given)
        more += words
        given = {**FAMILY.convert_epsilon_unit(given), "unit": None}
        values = read_options(OPTIONS, given)
    query, subject = _make_query(values, _read_query_budget(values, given), question)
    if unit is not None and not query.question.is_planar and not query.is_per_distance:
        must("unit", "left out unless places are given, or an epsilon per unit", repr(unit))
    return _compare_classes(query, subject, progress, values["only"], more)


def _spell_question_options(question: Any, options: Values) -> Record:
    """The options of a request, and those that spell its question for commands. Raises InvalidRequest."""
    if not isinstance(question, FiniteQuery):
        must(
            "the question",
            "a FiniteQuery, which alone has classes that are compared",
            repr(question)[:80],
        )
    if twice := sorted(options.keys() & {*_QUESTION_NAMES, "column"}):
        must("the question", f"given once, as an object or as options ({', '.join(twice)})", "both")
    spelled_options: Record = {"answers": None}
    with suppress(WorkbenchError):
        spelled_options = FAMILY.question_to_options(question)
    if spelled_options.get("outputs") == spelled_options.get("answers"):
        spelled_options.pop("outputs", None)
    return {**spelled_options, **options}


def _read_query_budget(values: Values, given: Values) -> Record:
    """What queries of both kinds have. Raises InvalidRequest."""
    least = values["minimise"] == "epsilon"
    if least != (values["max_loss"] is not None):
        raise InvalidRequest("minimise epsilon and max_loss must be given together.")
    claim = read_claim({name: values[name] for name in ("notion", "minimise", *BUDGET_OPTIONS)})
    aim = Aim(**{name: values[name] for name in ("loss", "minimise", "max_loss", "runs")})
    plain = {
        **(recommend.__kwdefaults__ or {}),
        "prior": "uniform",
    }  # need not be repeated in commands
    words = format_option_texts(
        {name: value for name, value in given.items() if str(value) != str(plain.get(name))}
    )
    time = TimeShares(float(values["time_limit"]))
    return {"claim": claim, "aim": aim, "option_texts": words, "time": time}


def _make_query(
    values: Values, budget: Record, stated: FiniteQuery | None = None
) -> tuple[Query, str]:
    """The query, and what the table is of. stated: the question, where it is an object. Raises InvalidRequest."""
    given = values.get("baseline") or ()
    own, named = (
        tuple(each for each in given if each[1] is not None),
        tuple(name for name, law in given if law is None),
    )
    for name in named:
        InvalidRequest.check_choice(index_by_name(FAMILY.published_mechanisms()), "baseline", name)
    question: FiniteQuery
    if stated is not None:
        question = stated
    elif "range" in values:
        question = RangeQuery(
            values["range"], sensitivity=values["sensitivity"], prior=values["prior"]
        )
        budget["option_texts"] |= {"range": format_range(values["range"])}
    else:
        question = FAMILY.parse_question({"answers": None, **values})
    query = Query(question=question, user_baselines=own, compared_names=named, **budget)
    try:  # what no class could serve is refused; a channel too large is a row of its own
        request: Any = query.make_request(
            FAMILY, query.question, loss=query.aim.loss, **query.budget_options
        )
        if query.aim.max_loss is not None:
            request.check_max_loss()
    except ChannelTooLarge:
        assert query.losses  # whose errors are the user's as well
    words = (
        f"{query.question}, {query.aim.loss if query.has_real_answers else query.losses.name} loss"
    )
    return (
        query,
        words
        if query.aim.max_loss is None
        else f"least epsilon, {words} at most {float(query.aim.max_loss):g}",
    )


def _compare_classes(
    query: Query, subject: str, progress: Progress, only: str | None, more: Sequence[str] = ()
) -> Recommendation:
    clock = Deadline()
    candidates = list(list_candidates(query))
    if only is not None:
        InvalidRequest.check_choice([candidate.name for candidate in candidates], "only", only)
        candidates = [candidate for candidate in candidates if candidate.name == only]
    values: dict[str, Value] = {}
    rows = _solve_candidates(query, candidates, progress, values)
    rows = sorted(
        _drop_false_bounds([*_improve_stopped_rows(rows, candidates, values)], candidates),
        key=_sort_key,
    )
    budget = {
        name: value
        for name, value in query.budget_options.items()
        if name not in ("notion", "minimise", "max_loss")
    }
    shown = ", ".join(f"{name} = {float(v) if isinstance(v, Fraction) else v:g}" if isinstance(v, (int, Fraction))
                      else f"{name} = {format_parameter(v)}" for name, v in budget.items())  # fmt: skip
    title = (
        f"{subject}, {query.claim.notion.name} at {shown}"
        if shown
        else f"{subject}, {query.claim.notion.name}"
    )
    mechanisms = {
        name: value.mechanism for name, value in values.items() if value.mechanism is not None
    }
    words = (describe_range_query if query.has_real_answers else describe_finite_query)(
        query, rows, candidates, mechanisms
    )
    separation = [] if query.question.separation is None else [query.question.separation]
    best = choose_row(rows, candidates)
    return Recommendation(
        title,
        rows,
        "recommend",
        COLUMNS,
        partial(
            _make_class_plots,
            title=title,
            what="expected loss" if query.aim.max_loss is None else "epsilon",
        ),
        len(rows),
        len(candidates),
        clock.elapsed_seconds,
        (*words, *describe_runs(query, candidates), *separation, *more),
        None if best is None else best["class"],
        {
            name: value.design
            for name, value in values.items()
            if value.is_certified and value.design is not None
        },
    )


def _solve_candidates(
    query: Query, candidates: Sequence[Candidate], progress: Progress, values: dict[str, Value]
) -> list[Row]:
    """The rows, those without programs first, the least simple last, which have what time is left, and what was found
    by class; after Ctrl-C what was ready."""
    waiting, rows = (
        sorted(candidates, key=lambda candidate: (candidate.uses_solver, candidate.complexity)),
        [],
    )
    left = sum(candidate.uses_solver and candidate.solve is not None for candidate in waiting)
    for candidate in waiting:
        left -= candidate.uses_solver and candidate.solve is not None
        if query.time is not None:
            query.time.waiting_classes = left
        try:
            rows.append(_make_class_row(query, candidate, values))
            value = rows[-1]["objective"]
            progress(
                len(rows),
                len(waiting),
                candidate.name + ("" if value is None else f": {format_loss(value)}"),
            )
        except KeyboardInterrupt:
            break
    return rows


def _sort_key(row: Row) -> tuple[bool, float]:
    return row["objective"] is None, row["objective"] or 0.0


def _improve_stopped_rows(
    rows: list[Row], candidates: Sequence[Candidate], values: dict[str, Value]
) -> Iterator[Row]:
    """The rows; a class that was stopped is that of the best mechanism in it that others found, where it costs less,
    and costs no less than what is proven of a class that contains it."""
    contains = {candidate.name: candidate.contains for candidate in candidates}
    bounds = {
        row["class"]: row["bound"] for row in rows if (row["bound"] or 0.0) > 0
    }  # 0 says nothing
    for row in rows:
        name = row["class"]
        if STOPPED_NOTE not in row["notes"]:
            yield row
            continue
        bound = max(
            (bounds[other] for other in bounds if other == name or name in contains[other]),
            default=None,
        )
        row = row | {
            "bound": bound,
            "notes": row["notes"] + ("; no bound is known" if bound is None else ""),
        }
        inside = [other for other in select_certified(rows) if other["class"] in contains[name]]
        least = min(inside, key=_sort_key, default=None)
        if least is not None and (
            row["objective"] is None or least["objective"] < row["objective"]
        ):
            shared = {known: least[known] for known in ("objective", "certified", *_LAW_COLUMNS)}
            row = row | {**shared, "notes": f"{row['notes']}; {BORROWED_NOTE} {least['class']}"}
            values[name] = values[least["class"]]
        yield row


def _drop_false_bounds(rows: list[Row], candidates: Sequence[Candidate]) -> Iterator[Row]:
    """The rows; a bound above what a mechanism of its class reaches is none, and the row says so."""
    contains = {candidate.name: candidate.contains for candidate in candidates}
    for row in rows:
        name, bound = row["class"], row["bound"]
        reached = [
            other["objective"]
            for other in select_certified(rows)
            if other["class"] in (name, *contains[name])
        ]
        if bound is not None and reached and bound > min(reached) * (1 + _BOUND_ROUNDING):
            words = f"{bound:.9g} is above the {min(reached):.9g} that its class reaches: it is no bound, and not shown"
            row = row | {"bound": None, "notes": f"{row['notes']}; {words}"}
        yield row


def _make_class_row(query: Query, candidate: Candidate, values: dict[str, Value]) -> Row:
    row = dict.fromkeys(COLUMNS) | {
        "class": candidate.name,
        "notes": candidate.reason or candidate.needs,
    }
    if candidate.solve is None:
        return row
    command, longer = (
        query.class_command(candidate.name, **more)
        for more in ({}, {"time_limit": _choose_longer_limit(query)})
    )
    if candidate.command:
        command, longer = (
            candidate.command,
            f"{candidate.command} --time-limit {_choose_longer_limit(query)}",
        )
    try:
        by_bisection = query.aim.max_loss is not None and not candidate.finds_least_epsilon
        with limit_time(None if query.time is None else query.time.class_seconds):
            value = find_least_epsilon(query, candidate.name) if by_bisection else candidate.solve()
    except (NotProven, OutOfTime) as error:
        why = f"{STOPPED_NOTE}: {str(error).rstrip('.') or 'not certified in time'}"
        return row | {"command": longer, "notes": why, "bound": error.bound}
    except WorkbenchError as error:
        return row | {"notes": str(error)}
    values[candidate.name] = value
    notes = ": ".join(filter(None, (candidate.needs, value.parameter)))
    if getattr(value.mechanism, "is_one_sided", False):
        notes += "; protects one side of each pair only"
    if value.is_stopped:
        what = "loss" if query.aim.max_loss is None else "epsilon"
        notes += f"; {STOPPED_NOTE}: the optimum of its class is at most this {what}"
        command = longer
    if candidate.supports_runs and query.aim.runs > 1 and value.bound is None:
        notes += f"; best found for {query.aim.runs} runs, not proven optimal"
    known = {"objective": value.objective, "bound": value.bound, "certified": value.is_certified}
    return (
        row
        | known
        | _measure_law(query, value, candidate.needs.startswith(UNBIASED_NOTE))
        | {"command": command, "notes": notes}
    )


def _choose_longer_limit(query: Query) -> int:
    """Seconds of the command that goes on where a class was stopped."""
    return max(
        _MIN_LONGER_SECONDS,
        math.ceil(_LONGER_FACTOR * (0.0 if query.time is None else query.time.seconds)),
    )


def _measure_law(query: Query, value: Value, unbiased: bool) -> Row:
    """What the laws say beside the loss, where they are not too many. unbiased: whether the class is."""
    if query.has_real_answers:
        return _measure_real_law(query, value, unbiased)
    if value.mechanism is None:
        return {}
    question = query.question
    if question.k * question.m > _MAX_READ_MASSES:
        return {}
    rows, outputs = compute_float_laws(query, value.mechanism)
    placed = question if outputs == question.outputs else question.with_outputs(outputs)
    losses = query.losses if placed is question else make_loss_table(placed, query.aim.loss)
    used = rows.max(axis=0) > 0
    columns = {
        "worst": float((rows[:, used] * losses.floats[:, used]).sum(axis=1).max()),
        "bits": max(1, int(used.sum()) - 1).bit_length(),
    }
    if placed.numbers is not None:
        x, o = placed.coordinates
        columns["bias"] = float(np.abs(rows @ o - x).max())
        if query.losses.name == "squared" and query.aim.max_loss is None:
            columns["rmse"] = value.objective**0.5
    return columns


def _measure_real_law(query: Query, value: Value, unbiased: bool) -> Row:
    """The bias of a mechanism for real answers, and of an unbiased one the root of its mean squared error.

    The error is that of uniform answers where they are uniform, else that of the worst answer.
    """
    mechanism = value.mechanism
    law = getattr(mechanism, "real_law", mechanism)
    bias = 0.0 if unbiased else getattr(law, "largest_bias", getattr(law, "bias", None))
    columns: Row = {} if bias is None else {"bias": float(bias)}
    if query.aim.max_loss is not None or not unbiased:
        return columns
    square = value.objective if query.aim.loss == "squared" else value.squared_error
    if square is None and mechanism is not None:
        with suppress(WorkbenchError):
            error = compute_expected_error(mechanism, "squared")
            square = float(
                error.mean_error
                if query.range_query.uniform or error.worst_error is None
                else error.worst_error
            )
    return columns if square is None else columns | {"rmse": square**0.5}


def _make_class_plots(table: pd.DataFrame, title: str, what: str) -> Plots:
    def dots() -> Figure | None:
        from workbench.io.figures import draw_dot_plot

        costs = table.dropna(subset=["objective"])
        return (
            None
            if costs.empty
            else draw_dot_plot(costs.to_dict("records"), what, textwrap.fill(title, 90))
        )

    return {"classes": dots}
