"""Compare classes of mechanisms for one query at one budget, the smallest loss first
(`wb.recommend`).

A class is a kind of mechanism, such as "modulo noise" or "best channel". A query becomes a table in
four steps:

    options or a question ─▶ Query ─▶ [Candidate, ...] ─▶ a Value of each ─▶ rows, sentences

    Query       the question, the claim, the aim, the time limit, and the requests that were built
    Candidate   one class: a request of its family and how to read its design, or a closed form; or
                the reason why the class does not apply
    Value       loss, bound, mechanism and certificate of a class
    row         one line of the table, with the command that designs the class alone

The module `recommendation` of each family lists its classes. A request is built once, from exact
values, and designed as `workbench.design` would (`pipeline.recommendation.design_within_time`).
`TimeShares` divides the time limit: each class gets an equal share of the time that is left, and
its solver most of that share. Closed forms come first, and the class that uses most time comes
last. The command of a row is text for people. It repeats the options of the query and the budget of
the claim, and no program reads it.

Where to change: a class is added in the module `recommendation` of its family, a sentence in
`wording`, and a column in `COLUMNS` here and in `_measure_law`.

column        meaning
class         class of mechanisms; its optimum lies in [bound, objective] if a bound is proven
objective     expected loss under the prior of the query (or of the worst answer); with
              minimise="epsilon" the smallest ε for the largest loss
certified     whether exact arithmetic proves the mechanism private
rmse          root of a mean squared loss; for real answers that of the mechanism, whatever the loss
worst         largest expected loss of any answer, whatever the prior
bias          largest distance of the mean output from the answer, which averaging does not reduce
bits          bits that distinguish the outputs
command       command that designs the class alone, or continues a stopped search; empty if the
              query cannot be written as a command
notes         properties of the class, or the reason why it does not apply
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
from workbench.recommendation.publish_command import describe_publish_command
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

    from workbench.publishing.mechanism_guarantee import Guarantee


_LAW_COLUMNS = ("rmse", "worst", "bias", "bits")
COLUMNS = ("class", "objective", "bound", "certified", *_LAW_COLUMNS, "command", "notes")
# The columns rmse, worst, bias and bits are computed for at most this many masses (answers times
# outputs). They are empty for larger mechanisms.
_MAX_MEASURED_MASSES = 1_000_000
# A bound that exceeds a loss of its class by more than this share is false, and is not shown. Less
# is a rounding error.
_BOUND_ROUNDING = 1e-9
# The command that continues a search has at least this time limit.
_MIN_LONGER_SECONDS = 600
# The command that continues a search has at least this times the time limit of the search.
_LONGER_FACTOR = 10
# The titles of plots are wrapped at this many characters.
_TITLE_WIDTH = 90

_TIME_LIMIT_OPTION = replace(
    TIME_LIMIT,
    default=Fraction(20),
    help="Time limit for all classes together, in seconds.",
    kind=str,
    solver=False,
)

OPTIONS = (
    *FINITE_OPTIONS,
    FAMILY.get_option("loss"),
    FAMILY.get_option("notion"),
    *NOTION_PARAMETERS,
    replace(
        FAMILY.get_option("minimise"),
        read=choice_reader("loss", "epsilon"),
        help="Quantity to minimise: loss, or epsilon for a largest loss.",
    ),
    replace(FAMILY.get_option("max_loss"), read=read_positive),
    FAMILY.get_option("runs"),
    FAMILY.get_option("delta"),
    FAMILY.get_option("epsilon"),
    Option("baseline", read_baselines, kind=list, help="User-defined mechanism to compare."),
    Option("only", read_plain_text, help="Name of the only class to compute."),
    FAMILY.get_option("unit"),
    _TIME_LIMIT_OPTION,
)


_QUESTION_NAMES = {option.name for option in FINITE_OPTIONS} | {"range", "sensitivity", "cells"}
_BUDGET_NAMES = {"notion", "minimise", "max_loss", "runs", "delta", "epsilon", "only", "time_limit"}


def _is_real_option(option: Option) -> bool:
    """Return whether an option of finite queries applies to a range as well."""
    return option.name in {*_BUDGET_NAMES, "prior"} or option in NOTION_PARAMETERS


REAL_OPTIONS = (
    replace(FAMILY.get_option("range"), required=True),
    FAMILY.get_option("sensitivity"),
    replace(
        FAMILY.get_option("loss"),
        read=choice_reader("absolute", "squared"),
        help="Loss: absolute or squared.",
    ),
    *filter(_is_real_option, OPTIONS),
)


@dataclass(frozen=True, repr=False, eq=False)
class Recommendation(Result):
    """The rows of the compared classes, the smallest loss first.

    Attributes:
        chosen: name of the class to use. None if no class serves the query.
        design_makers: name of a class -> function that makes its certified design.
        query: the query whose classes are compared, without the baselines of the user.
        mechanisms: name of a class -> its mechanism, for classes that have one.
    """

    notebook_columns = ("class", "objective", "bound", "certified", "notes")
    chosen: str | None = None
    design_makers: Mapping[str, Callable[[], Design]] = field(default_factory=dict)
    query: Query | None = None
    mechanisms: Values = field(default_factory=dict)

    @property
    def guarantee(self) -> Guarantee | None:
        """Return the guarantee of the class to use, in plain words. None without a design of it."""
        from workbench.publishing.mechanism_guarantee import describe_mechanism_guarantee

        if self.chosen not in self.design_makers:
            return None
        return describe_mechanism_guarantee(self.best)

    @property
    def best(self) -> Design:
        """Return the design of the class to use.

        Raises InvalidRequest if no class serves the query.
        """
        return self.design(self.chosen or "")

    def design(self, name: str) -> Design:
        """Return the certified design of a class.

        Args:
            name: name of the class.

        Raises:
            InvalidRequest: the class has no certificate.
            NotCertified: the design could not be certified.
        """
        if name not in self.design_makers:
            names = ", ".join(self.design_makers) or "none with a certificate"
            must("class", f"one of {names}", repr(name))
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
    """Compare classes of mechanisms for a finite or real query at one budget, with proven numbers.

    The smallest loss comes first. Nothing is claimed about mechanisms outside the compared classes.

        >>> import workbench as wb
        >>> table = wb.recommend(answers="0..5", max_shift=1, epsilon=1, delta="1e-5")
        >>> [row["class"] for row in table][:2]
        ['best channel', 'integer noise, clamped']

        >>> table = wb.recommend(answers="0..3", max_shift=1, minimise="epsilon", max_loss="0.4")
        >>> table.best.certificate is not None
        True

        >>> wb.recommend(wb.FiniteQuery("0..3", max_shift=1), epsilon=1).chosen
        'best channel'

    Args:
        question: a FiniteQuery, instead of the options that define one.
        epsilon: ε of the budget. With notion metric also "0.7/km", for places whose coordinates
            have the given unit. Other notions take alpha, rho, mu, curve or tradeoff instead.
        delta: δ of the budget, in [0, 1].
        notion: name of the notion of privacy.
        loss: name of a loss, a matrix (answers, outputs), or a function.
        time_limit: seconds for all classes together. A class that reaches the limit shows the best
            mechanism found and its bound.
        progress: function that is called with (classes done, classes, result) when a row is ready.
        options: for real answers between two numbers: range, and sensitivity (default: every two
            answers are neighbours), and prior (uniform on the range, worst, or weights of equal
            parts of it). For finite answers: answers, outputs, max_shift or neighbours, and prior,
            as `workbench.FiniteQuery` takes them. In both cases:
            baseline: a user-defined mechanism: a PMF {noise: probability}, a matrix, a function
            (epsilon, delta) -> one of these, a CSV file, or a mapping from names to such.
            minimise: "epsilon", with max_loss as the largest loss; ε is then an upper limit.
            runs: number of runs, or of answers that one person changes, that share the budget.
            only: name of the only class to compute.
            column: column of the CSV file `prior` whose values are counted as the prior. If no
            answers are given, they are the values of the column, and every two are neighbours.

    Returns:
        One row for each class, with the columns of this module. A class that does not apply states
        the reason. After Ctrl-C, the rows that were ready. `best` is the design of the class to
        use, and `design(name)` that of any class.

    Raises:
        InvalidRequest: a value is wrong. It is raised before anything is solved.
    """
    check_progress(progress)
    unit = options.get("unit")
    if question is not None:
        options = _spell_question_options(question, options)
    all_options: Record = {
        **options,
        "epsilon": epsilon,
        "delta": delta,
        "notion": notion,
        "loss": loss,
        "time_limit": time_limit,
    }
    notes = []
    if all_options.get("directed"):
        notes.append(DIRECTED_NOTE)
    elif all_options.get("directed") is False:
        del all_options["directed"]
    if question is not None:
        offered_options = OPTIONS
        if isinstance(question, RangeQuery):
            offered_options = REAL_OPTIONS
        else:
            all_options = {**FAMILY.convert_epsilon_unit(all_options), "unit": None}
        budget_options = [
            option for option in offered_options if option.name not in _QUESTION_NAMES
        ]
        budget_values = {
            name: value for name, value in all_options.items() if name not in _QUESTION_NAMES
        }
        values = read_options(budget_options, budget_values)
    elif all_options.get("range") is not None:
        values = read_options(REAL_OPTIONS, all_options, "request with a range")
    else:
        all_options, prior_notes = count_prior(all_options)
        notes += prior_notes
        all_options = {**FAMILY.convert_epsilon_unit(all_options), "unit": None}
        values = read_options(OPTIONS, all_options)
    budget = _read_query_budget(values, all_options)
    query, subject = _make_query(values, budget, question)
    if unit is not None and not query.question.is_planar and not query.is_per_distance:
        must("unit", "left out unless places are given, or an epsilon per unit", repr(unit))
    return _compare_classes(query, subject, progress, only_class=values["only"], notes=notes)


def _spell_question_options(question: Any, options: Values) -> Record:
    """Return options together with the options that define a question, which commands repeat.

    Raises InvalidRequest if the question is no FiniteQuery, or if it is given by options too.
    """
    if not isinstance(question, FiniteQuery):
        rule = "a FiniteQuery, because only its classes are compared"
        must("the question", rule, repr(question)[:80])
    repeated_names = sorted(options.keys() & {*_QUESTION_NAMES, "column"})
    if repeated_names:
        rule = f"given once, as an object or as options ({', '.join(repeated_names)})"
        must("the question", rule, "both")
    question_options: Record = {"answers": None}
    with suppress(WorkbenchError):
        question_options = FAMILY.question_to_options(question)
    if question_options.get("outputs") == question_options.get("answers"):
        question_options.pop("outputs", None)
    return {**question_options, **options}


def _read_query_budget(values: Values, options: Values) -> Record:
    """Return the fields of a query that do not depend on its question. Raises InvalidRequest."""
    minimises_epsilon = values["minimise"] == "epsilon"
    if minimises_epsilon != (values["max_loss"] is not None):
        raise InvalidRequest("minimise epsilon and max_loss must be given together.")
    claim = read_claim({name: values[name] for name in ("notion", "minimise", *BUDGET_OPTIONS)})
    aim = Aim(**{name: values[name] for name in ("loss", "minimise", "max_loss", "runs")})
    # Commands do not repeat default values.
    defaults = {**(recommend.__kwdefaults__ or {}), "prior": "uniform"}
    changed_values = {
        name: value for name, value in options.items() if str(value) != str(defaults.get(name))
    }
    return {
        "claim": claim,
        "aim": aim,
        "option_texts": format_option_texts(changed_values),
        "time": TimeShares(float(values["time_limit"])),
    }


def _make_query(
    values: Values, budget: Record, question: FiniteQuery | None = None
) -> tuple[Query, str]:
    """Return (query, subject of its table), such as "... 0..20, ..., squared loss".

    Args:
        values: exact values of the options.
        budget: fields of `_read_query_budget`. The text of a range is added to it.
        question: the question if it is given as an object. None: the options define it.

    Raises:
        InvalidRequest: a value is wrong, or no class could serve the query.
    """
    # A baseline without a law is the name of a published mechanism.
    baselines = values.get("baseline") or ()
    user_baselines = tuple((name, law) for name, law in baselines if law is not None)
    compared_names = tuple(name for name, law in baselines if law is None)
    for name in compared_names:
        published_names = index_by_name(FAMILY.published_mechanisms())
        InvalidRequest.check_choice(published_names, "baseline", name)
    if question is None and "range" in values:
        question = RangeQuery(
            values["range"], sensitivity=values["sensitivity"], prior=values["prior"]
        )
        budget["option_texts"] |= {"range": format_range(values["range"])}
    elif question is None:
        question = FAMILY.parse_question({"answers": None, **values})
    query = Query(
        question=question, user_baselines=user_baselines, compared_names=compared_names, **budget
    )
    _check_query(query)
    loss_name = query.aim.loss if query.has_real_answers else query.losses.name
    subject = f"{query.question}, {loss_name} loss"
    if query.aim.max_loss is not None:
        subject = f"minimal epsilon, {subject} at most {float(query.aim.max_loss):g}"
    return query, subject


def _check_query(query: Query) -> None:
    """Refuse a query that no class could serve. Raises InvalidRequest.

    A channel that is too large is not refused, because its row states the reason.
    """
    try:
        request: Any = query.make_request(
            FAMILY, query.question, loss=query.aim.loss, **query.budget_options
        )
        if query.aim.max_loss is not None:
            request.check_max_loss()
    except ChannelTooLarge:
        # Errors in the loss are errors of the user as well, and computing the losses raises them.
        _ = query.losses


def _compare_classes(
    query: Query,
    subject: str,
    progress: Progress,
    only_class: str | None,
    notes: Sequence[str] = (),
) -> Recommendation:
    """Compute the table of a query.

    Args:
        query: the query.
        subject: subject of the title, from `_make_query`.
        progress: as for `recommend`.
        only_class: name of the only class to compute. None: all classes.
        notes: sentences that follow those on the classes.
    """
    clock = Deadline()
    candidates = list(list_candidates(query))
    if only_class is not None:
        InvalidRequest.check_choice(
            [candidate.name for candidate in candidates], "only", only_class
        )
        candidates = [candidate for candidate in candidates if candidate.name == only_class]
    values: dict[str, Value] = {}
    rows = _solve_candidates(query, candidates, progress, values)
    improved_rows = [*_improve_stopped_rows(rows, candidates, values)]
    rows = sorted(_drop_false_bounds(improved_rows, candidates), key=_sort_key)
    mechanisms = {}
    design_makers = {}
    for name, value in values.items():
        if value.mechanism is not None:
            mechanisms[name] = value.mechanism
        if value.is_certified and value.design is not None:
            design_makers[name] = value.design
    describe = describe_range_query if query.has_real_answers else describe_finite_query
    sentences = [*describe(query, rows, candidates, mechanisms)]
    sentences += describe_runs(query, candidates)
    if query.question.separation is not None:
        sentences.append(query.question.separation)
    sentences += describe_publish_command(query)
    title = _make_title(query, subject)
    axis_label = "expected loss" if query.aim.max_loss is None else "epsilon"
    best = choose_row(rows, candidates)
    return Recommendation(
        title=title,
        rows=rows,
        name="recommend",
        columns=COLUMNS,
        draw=partial(_make_class_plots, title=title, axis_label=axis_label),
        finished=len(rows),
        total=len(candidates),
        seconds=clock.elapsed_seconds,
        sentences=(*sentences, *notes),
        chosen=None if best is None else best["class"],
        design_makers=design_makers,
        # A baseline may be a function, which cannot be pickled.
        query=replace(query, user_baselines=()),
        mechanisms=mechanisms,
    )


def _make_title(query: Query, subject: str) -> str:
    """Return the title of a table: its subject and its budget."""
    parameters = []
    for name, value in query.budget_options.items():
        if name in ("notion", "minimise", "max_loss"):
            continue
        if isinstance(value, Fraction):
            parameters.append(f"{name} = {float(value):g}")
        elif isinstance(value, int):
            parameters.append(f"{name} = {value:g}")
        else:
            parameters.append(f"{name} = {format_parameter(value)}")
    title = f"{subject}, {query.claim.notion.name}"
    if parameters:
        title += f" at {', '.join(parameters)}"
    return title


def _solve_candidates(
    query: Query, candidates: Sequence[Candidate], progress: Progress, values: dict[str, Value]
) -> list[Row]:
    """Return the rows of the classes. After Ctrl-C, the rows that were ready.

    Classes without a solver come first. The most complex class comes last, and may use the time
    that is left.

    Args:
        query: the query.
        candidates: the classes.
        progress: as for `recommend`.
        values: name of a class -> its value. Every solved class is added.
    """
    queue = sorted(candidates, key=lambda candidate: (candidate.uses_solver, candidate.complexity))
    rows: list[Row] = []
    for position, candidate in enumerate(queue):
        if query.time is not None:
            # The time that is left is divided among this class and the solvers that wait.
            waiting_classes = [
                later
                for later in queue[position + 1 :]
                if later.uses_solver and later.solve is not None
            ]
            query.time.waiting_classes = len(waiting_classes)
        try:
            row = _make_class_row(query, candidate, values)
            rows.append(row)
            message = candidate.name
            if row["objective"] is not None:
                message += f": {format_loss(row['objective'])}"
            progress(len(rows), len(queue), message)
        except KeyboardInterrupt:
            break
    return rows


def _sort_key(row: Row) -> tuple[bool, float]:
    """Return the sort key of a row: the smallest loss first, rows without a loss last."""
    return row["objective"] is None, row["objective"] or 0.0


def _improve_stopped_rows(
    rows: list[Row], candidates: Sequence[Candidate], values: dict[str, Value]
) -> Iterator[Row]:
    """Yield the rows, with better results for classes that reached the time limit.

    Such a class shows the best mechanism of a class that it contains, if that has a smaller loss.
    Its bound is the largest bound of a class that contains it.
    """
    contained_classes = {candidate.name: candidate.contains for candidate in candidates}
    # The bound 0 is trivial.
    bounds = {row["class"]: row["bound"] for row in rows if (row["bound"] or 0.0) > 0}
    for row in rows:
        if STOPPED_NOTE not in row["notes"]:
            yield row
            continue
        name = row["class"]
        class_bounds = []
        for other_name, other_bound in bounds.items():
            if other_name == name or name in contained_classes[other_name]:
                class_bounds.append(other_bound)
        notes = row["notes"]
        if not class_bounds:
            notes += "; no bound is known"
        improved_row = row | {"bound": max(class_bounds, default=None), "notes": notes}
        contained_rows = [
            other for other in select_certified(rows) if other["class"] in contained_classes[name]
        ]
        best = min(contained_rows, key=_sort_key, default=None)
        is_better = best is not None and (
            row["objective"] is None or best["objective"] < row["objective"]
        )
        if best is not None and is_better:
            for column in ("objective", "certified", *_LAW_COLUMNS):
                improved_row[column] = best[column]
            improved_row["notes"] = f"{notes}; {BORROWED_NOTE} {best['class']}"
            values[name] = values[best["class"]]
        yield improved_row


def _drop_false_bounds(rows: list[Row], candidates: Sequence[Candidate]) -> Iterator[Row]:
    """Yield the rows, without bounds that exceed the loss of a mechanism in the class."""
    contained_classes = {candidate.name: candidate.contains for candidate in candidates}
    for row in rows:
        classes = (row["class"], *contained_classes[row["class"]])
        bound = row["bound"]
        certified_rows = select_certified(rows)
        losses = [other["objective"] for other in certified_rows if other["class"] in classes]
        if bound is not None and losses and bound > min(losses) * (1 + _BOUND_ROUNDING):
            note = (
                f"the bound {bound:.9g} is not shown, because it is above {min(losses):.9g}, a "
                "loss in the class"
            )
            yield row | {"bound": None, "notes": f"{row['notes']}; {note}"}
        else:
            yield row


def _make_class_row(query: Query, candidate: Candidate, values: dict[str, Value]) -> Row:
    """Return the row of one class, and add its value to `values`."""
    row: Row = dict.fromkeys(COLUMNS)
    row["class"] = candidate.name
    row["notes"] = candidate.reason or candidate.needs
    if candidate.solve is None:
        return row
    longer_limit = _choose_longer_limit(query)
    if candidate.command:
        command: str | None = candidate.command
        longer_command: str | None = f"{candidate.command} --time-limit {longer_limit}"
    else:
        command = query.class_command(candidate.name)
        longer_command = query.class_command(candidate.name, time_limit=longer_limit)
    class_seconds = None if query.time is None else query.time.class_seconds
    solve = candidate.solve
    if query.aim.max_loss is not None and not candidate.finds_least_epsilon:
        solve = partial(find_least_epsilon, query, candidate.name)
    try:
        with limit_time(class_seconds):
            value = solve()
    except (NotProven, OutOfTime) as error:
        reason = str(error).rstrip(".") or "not certified in time"
        note = f"{STOPPED_NOTE}: {reason}"
        return row | {"command": longer_command, "notes": note, "bound": error.bound}
    except WorkbenchError as error:
        return row | {"notes": str(error)}
    values[candidate.name] = value
    row["objective"] = value.objective
    row["bound"] = value.bound
    row["certified"] = value.is_certified
    row |= _measure_law(query, value, is_unbiased=candidate.needs.startswith(UNBIASED_NOTE))
    row["command"] = longer_command if value.is_stopped else command
    row["notes"] = _describe_value(query, candidate, value)
    return row


def _describe_value(query: Query, candidate: Candidate, value: Value) -> str:
    """Return the notes of a solved class."""
    notes = ": ".join(filter(None, (candidate.needs, value.parameter)))
    if getattr(value.mechanism, "is_one_sided", False):
        notes += "; protects one order of each pair only"
    if value.is_stopped:
        quantity = "loss" if query.aim.max_loss is None else "epsilon"
        notes += f"; {STOPPED_NOTE}: the optimum of its class is at most this {quantity}"
    if candidate.supports_runs and query.aim.runs > 1 and value.bound is None:
        notes += f"; best found for {query.aim.runs} runs, not proven optimal"
    return notes


def _choose_longer_limit(query: Query) -> int:
    """Return the time limit, in seconds, of the command that continues a stopped search."""
    seconds = 0.0 if query.time is None else query.time.seconds
    return max(_MIN_LONGER_SECONDS, math.ceil(_LONGER_FACTOR * seconds))


def _measure_law(query: Query, value: Value, *, is_unbiased: bool) -> Row:
    """Return the columns worst, bits, bias and rmse of a mechanism, as far as they are defined.

    Empty if there is no mechanism or it is too large.
    """
    if query.has_real_answers:
        return _measure_real_law(query, value, is_unbiased=is_unbiased)
    question = query.question
    if value.mechanism is None or question.k * question.m > _MAX_MEASURED_MASSES:
        return {}
    rows, outputs = compute_float_laws(query, value.mechanism)
    losses = query.losses
    if outputs != question.outputs:
        question = question.with_outputs(outputs)
        losses = make_loss_table(question, query.aim.loss)
    is_used = rows.max(axis=0) > 0  # Outputs that have a probability above 0 at some answer.
    answer_losses = (rows[:, is_used] * losses.floats[:, is_used]).sum(axis=1)
    # The used outputs are numbered from 0. A single output counts as one bit.
    largest_number = max(1, int(is_used.sum()) - 1)
    columns: Row = {"worst": float(answer_losses.max()), "bits": largest_number.bit_length()}
    if question.numbers is not None:
        inputs, output_values = question.coordinates
        columns["bias"] = float(np.abs(rows @ output_values - inputs).max())
        # With max_loss the objective is an ε, otherwise a mean squared loss.
        if query.losses.name == "squared" and query.aim.max_loss is None:
            columns["rmse"] = value.objective**0.5
    return columns


def _measure_real_law(query: Query, value: Value, *, is_unbiased: bool) -> Row:
    """Return the columns bias and rmse of a mechanism for real answers, as far as they are known.

    Only unbiased mechanisms have an rmse. It is that of uniform answers if the prior is uniform,
    else that of the worst answer.
    """
    mechanism = value.mechanism
    law = getattr(mechanism, "real_law", mechanism)
    bias: Any = 0.0
    if not is_unbiased:
        # Depending on its type, a law states its largest bias as `largest_bias` or as `bias`.
        bias = getattr(law, "largest_bias", getattr(law, "bias", None))
    columns: Row = {} if bias is None else {"bias": float(bias)}
    if query.aim.max_loss is not None or not is_unbiased:
        return columns
    squared_error = value.squared_error
    if query.aim.loss == "squared":
        squared_error = value.objective
    if squared_error is None and mechanism is not None:
        with suppress(WorkbenchError):
            error = compute_expected_error(mechanism, "squared")
            if query.range_query.uniform or error.worst_error is None:
                squared_error = float(error.mean_error)
            else:
                squared_error = float(error.worst_error)
    if squared_error is not None:
        columns["rmse"] = squared_error**0.5
    return columns


def _make_class_plots(table: pd.DataFrame, title: str, axis_label: str) -> Plots:
    """Return the plots of a table."""

    def draw_classes() -> Figure | None:
        """Draw the loss and the bound of every class."""
        from workbench.io.figures import draw_dot_plot

        solved_rows = table.dropna(subset=["objective"])
        if solved_rows.empty:
            return None
        wrapped_title = textwrap.fill(title, _TITLE_WIDTH)
        return draw_dot_plot(solved_rows.to_dict("records"), axis_label, wrapped_title)

    return {"classes": draw_classes}
