"""`wb.recommend`: one query, one budget, classes of mechanisms that can serve it, the one that costs least first.

column        what it holds
class         of mechanisms; its optimum lies in [bound, objective] where a bound is proven
objective     expected loss of published and true answer under the query's prior (or of the worst answer)
certified     whether exact arithmetic proves the mechanism private
command       that makes it, where one line does
notes         what it needs, or why it does not apply
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, NotProven, WorkbenchError
from workbench.exact.numbers import exact, positive
from workbench.families.baseline import read_baselines
from workbench.families.channel.family import FAMILY
from workbench.families.channel.request import ChannelTooLarge
from workbench.families.frontier_plan import NotApplicable
from workbench.families.option import Option, one_of, read, seconds, two_ends
from workbench.families.recommendation import Candidate, Query, RealQuery, TimeShares, all_candidates, texts
from workbench.io.result import Plots, Progress, Result, Row, Values, check_progress, silent
from workbench.mechanisms.points import shown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


COLUMNS = ("class", "objective", "bound", "certified", "command", "notes")
_NONE = "No class serves this query with a certificate."
_LOSS = FAMILY.option("loss")
_LIMIT = Option("time_limit", seconds, Fraction(20), "Seconds for all classes together.")
_STOPPED, _BORROWED = "stopped", "best so far:"
_TOLD = Fraction(42)  # the answer whose published law is told, where it is one
_MORE = 600  # seconds of the command that goes on
OPTIONS: tuple[Option, ...] = (
    *(option for option in FAMILY.options if option.question),
    Option("loss", _LOSS.read, "squared", _LOSS.help),
    FAMILY.option("notion"),
    FAMILY.option("delta"),
    Option("epsilon", FAMILY.option("epsilon").read, help="Privacy budget > 0.", required=True),
    Option("baseline", read_baselines, kind=list, help="Your own."),
    _LIMIT,
)


def _range(value: Any, name: str) -> tuple[Fraction, Fraction]:
    """ "LOW..HIGH", or two numbers."""
    ends = two_ends(value, name, "two numbers LOW..HIGH, such as 0..200000")
    low, high = (exact(end, name) for end in ends)
    return (low, high) if low < high else InvalidRequest.must(name, "LOW..HIGH with LOW < HIGH", repr(value))


REAL_OPTIONS: tuple[Option, ...] = (
    Option("range", _range, help="Real answers between two numbers: 0..200000.", required=True),
    Option("sensitivity", positive, help="How far neighbouring answers differ at most; all of the range."),
    Option("loss", one_of("absolute", "squared"), "squared", "absolute or squared."),
    Option("notion", one_of("dp", "pure"), "dp", "dp or pure."),
    FAMILY.option("delta"),
    Option("epsilon", positive, help="Privacy budget > 0.", required=True),
    _LIMIT,
)


def recommend(
    *,
    epsilon: Any,
    delta: Any = 0,
    notion: str = "dp",
    loss: Any = "squared",
    time_limit: Any = 20,
    progress: Progress = silent,
    **question: Any,
) -> Result:
    """Classes of mechanisms for a finite or real query at one budget, with proven numbers, the least loss first.

    Of mechanisms outside the classes compared nothing is claimed: another one may cost less.

        >>> import workbench as wb
        >>> table = wb.recommend(answers="0..10", max_shift=1, epsilon=1, delta="1e-5")
        >>> [row["class"] for row in table][:2]
        ['best channel', 'integer noise, clamped']

    Args:
        epsilon, delta, notion: the budget. loss: a loss by name, a matrix (answers, outputs), or a function.
        time_limit: seconds for all classes together; a class that is stopped shows what was found, and its bound.
        progress: told (classes done, classes, what has come out) as rows are ready.
        question: range and perhaps sensitivity, for real answers between two numbers (neighbours: every two unless a
            sensitivity is given; costs are means over answers uniform on the range); or answers, outputs, max_shift or
            neighbours, prior, as `workbench.FiniteQuery` takes them; baseline: your own, a PMF {noise: probability}, a
            matrix, a function (epsilon, delta) -> one of these, a CSV file, or a mapping from names to such.

    Returns:
        One row for each class compared (the module's columns); a class that does not apply says why. After Ctrl-C, the
        rows that were ready.

    Raises:
        InvalidRequest: a wrong value, before anything is solved.
    """
    check_progress(progress)
    given = {"epsilon": epsilon, "delta": delta, "notion": notion, "loss": loss, "time_limit": time_limit, **question}
    if "range" in given:
        return _real(read(REAL_OPTIONS, given, "request with a range"), progress)
    values = read(OPTIONS, given)
    finite_query = FAMILY.spelled_question({"answers": None, **values})
    query = Query(question=finite_query, words=texts(given), own=values["baseline"] or (), **_budget(values))
    try:  # what no class could serve is refused; a channel too large is a row of its own
        FAMILY.request(query.question, loss=query.loss, **query.budget)
    except ChannelTooLarge:
        assert query.losses  # whose errors are the user's as well
    return _compared(query, f"{finite_query!r}, {query.losses.name} loss", progress)


def _budget(values: Values) -> Values:
    budget = {name: values[name] for name in ("epsilon", "notion", "loss")}
    return budget | {"delta": values["delta"] or Fraction(0), "time": TimeShares(float(values["time_limit"]))}


def _real(values: Values, progress: Progress) -> Result:
    """The same for real answers in a range."""
    low, high = values["range"]
    query = RealQuery(low=low, high=high, sensitivity=values["sensitivity"] or high - low, **_budget(values))
    if query.sensitivity > query.width:
        InvalidRequest.must("sensitivity", "at most the width of the range", float(query.sensitivity))
    if query.notion == "pure" and query.delta:
        InvalidRequest.must("delta", "0 for the notion pure", float(query.delta))
    apart = f"neighbours at most {float(query.sensitivity):g} apart"
    relation = "every two neighbours" if query.local else apart
    return _compared(
        query, f"real answers in [{float(low):g}, {float(high):g}], {relation}, {query.loss} error", progress
    )


def _compared(query: Query | RealQuery, subject: str, progress: Progress) -> Result:
    begin = time.perf_counter()
    candidates = list(all_candidates(query))
    mechanisms: dict[str, Any] = {}
    rows = _solved(query, candidates, progress, mechanisms)
    rows = sorted(_best_so_far(rows, candidates), key=_by_loss)
    title = f"{subject}, {query.notion} at epsilon = {float(query.epsilon):g}, delta = {float(query.delta):g}"
    sentences = tuple(
        _of_reals(query, rows) if isinstance(query, RealQuery) else _sentences(query, rows, candidates, mechanisms)
    )
    return Result(
        title,
        rows,
        "recommend",
        COLUMNS,
        partial(_draw, title=title),
        len(rows),
        len(candidates),
        time.perf_counter() - begin,
        sentences,
    )


def _solved(
    query: Query | RealQuery, candidates: Sequence[Candidate], progress: Progress, mechanisms: dict[str, Any]
) -> list[Row]:
    """The rows, those without programs first, and the mechanisms of designs by class; after Ctrl-C what was ready."""
    waiting, rows = sorted(candidates, key=lambda candidate: candidate.programs), []
    left = sum(candidate.programs and candidate.solve is not None for candidate in waiting)
    for candidate in waiting:
        if candidate.programs and candidate.solve is not None and query.time is not None:
            left -= 1
            query.time.waiting = left
        try:
            rows.append(_row(candidate, mechanisms))
            value = rows[-1]["objective"]
            progress(len(rows), len(waiting), candidate.name + ("" if value is None else f": {_shown(value)}"))
        except KeyboardInterrupt:
            break
    return rows


def _by_loss(row: Row) -> tuple[bool, float]:
    return row["objective"] is None, row["objective"] or 0.0


def _best_so_far(rows: list[Row], candidates: Sequence[Candidate]) -> Iterator[Row]:
    """The rows; a class that was stopped has what others in it cost, where that is less."""
    contains = {candidate.name: candidate.contains for candidate in candidates}
    for row in rows:
        inside = [other for other in _certified(rows) if other["class"] in contains[row["class"]]]
        least = min(inside, key=_by_loss, default=None)
        less = least is not None and (row["objective"] is None or least["objective"] < row["objective"])
        if _STOPPED in row["notes"] and least is not None and less:
            notes = f"{row['notes']}; {_BORROWED} {least['class']}"
            row = row | {"objective": least["objective"], "certified": True, "notes": notes}
        yield row


def _row(candidate: Candidate, mechanisms: dict[str, Any]) -> Row:
    row: Row = dict.fromkeys(COLUMNS) | {"class": candidate.name, "notes": candidate.reason or candidate.needs}
    if candidate.solve is None:
        return row | {"command": candidate.command}
    try:
        value = candidate.solve()._asdict()
    except NotApplicable as error:
        return row | {"notes": str(error)}
    except NotProven as error:
        command = candidate.command and f"{candidate.command} --time-limit {_MORE}"
        return row | {"command": command, "notes": f"{_STOPPED}: {error}", "bound": max(0.0, error.bound or 0.0)}
    except WorkbenchError as error:
        return row | {"command": candidate.command, "notes": f"{type(error).__name__}: {error}"}
    notes, command = ": ".join(filter(None, (candidate.needs, value.pop("parameter")))), candidate.command
    mechanisms[candidate.name] = value.pop("mechanism")
    if value.pop("stopped"):
        notes += f"; {_STOPPED}: the optimum of its class lies between the bound and this loss"
        command = command and f"{command} --time-limit {_MORE}"
    return row | value | {"command": command, "notes": notes}


def _certified(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["objective"] is not None and row["certified"]]


def _use(best: Row, where: str = "") -> str:
    """The sentence that recommends a class, with what is proven of it: the bound where it does not show the loss."""
    loss, bound = _shown(best["objective"]), best["bound"]
    than = "" if bound is None or _shown(bound) == loss else f" than {_shown(bound)}"
    proven = "" if bound is None else f", and none of its class costs less{than}"
    return f"Use the {best['class']}{where}: {loss}{proven}."


def _sentences(
    query: Query, rows: list[Row], candidates: Sequence[Candidate], mechanisms: Mapping[str, Any]
) -> Iterator[str]:
    """What to use, why, and what others cost beside it."""
    served, known = _certified(rows), {candidate.name: candidate for candidate in candidates}
    if not served:
        yield _NONE
        return
    loss = _shown(served[0]["objective"])
    tied = [row for row in served if _shown(row["objective"]) == loss and _BORROWED not in row["notes"]]
    best = min(tied, key=lambda row: known[row["class"]].simplicity)
    lowest = _shown(min(row["objective"] if row["bound"] is None else row["bound"] for row in served))
    if best["bound"] is None:
        than = "" if lowest == loss else f" than {lowest}"
        yield f"Use the {best['class']}: {loss}, and none of any class compared costs less{than}."
    else:
        yield _use(best)
    if others := [row["class"] for row in tied if row is not best]:
        yield f"At the same loss, and less simple: {'; '.join(others)}."
    inside = [row["class"] for row in served if row["class"] in known[best["class"]].contains]
    if inside and best["bound"] is not None:
        yield f"It can cost no more than {'; '.join(inside)}: its class contains them."
    if query.losses.name == "squared" and query.question.numbers is not None:
        yield f"Its root mean squared error is {best['objective'] ** 0.5:.6g}."
    publishes, mechanism = known[best["class"]].publishes, mechanisms.get(best["class"])
    if publishes is not None and mechanism is not None and _BORROWED not in best["notes"]:
        labelled = getattr(mechanism, "labelled", None)
        outputs = query.question.outputs if labelled is None else labelled[1]
        yield _published(query, outputs, partial(publishes, mechanism))
    for row in served:
        extra = known[row["class"]].extra_loss
        if extra and row["objective"] > 1.05 * best["objective"]:
            yield f"{extra} costs {row['objective'] / best['objective']:.3g}x."


def _published(query: Query, outputs: Sequence[Any], shares: Callable[[int], Sequence[float]]) -> str:
    """What comes out for one true answer: 42, or the middle one."""
    inputs, grid = query.question.inputs, query.grid
    order = range(len(inputs)) if grid is None else sorted(range(len(inputs)), key=grid.places.__getitem__)
    at = inputs.index(_TOLD) if _TOLD in inputs else order[len(inputs) // 2]
    each = sorted(zip(shares(at), outputs, strict=True), key=lambda pair: -pair[0])[:3]
    likely = ", ".join(f"{shown(output)} ({share:.3g})" for share, output in each if share > 0)
    return f"For a true {shown(inputs[at])} it publishes, most often: {likely}."


def _shown(loss: float) -> str:
    return f"{loss:.9g}"


def _of_reals(query: RealQuery, rows: list[Row]) -> Iterator[str]:
    """The unbiased mechanism to use, and what one answer alone is worth at this budget."""
    served = _certified(rows)
    if not served:
        yield _NONE
        return
    unbiased = [row for row in served if row["notes"].startswith("unbiased")]
    if unbiased:
        yield _use(unbiased[0], " where many answers are averaged (unbiased)")
    if served[0] not in unbiased:
        loss, bound = _shown(served[0]["objective"]), served[0]["bound"]
        others = (
            "Others may cost less." if bound is None else f"No channel of the range costs less than {_shown(bound)}."
        )
        name = served[0]["class"]
        yield f"For one answer alone the {name} (biased) costs least of the classes compared: {loss}. {others}"
    constant = float(query.width / 4 if query.loss == "absolute" else query.width**2 / 12)
    if served[0]["objective"] > constant:
        middle = float(query.low + query.width / 2)
        yield f"Publishing {middle:g} whatever the answer costs {constant:.9g}: one answer tells less than that here."


def _draw(table: pd.DataFrame, title: str) -> Plots:
    def bars() -> Figure | None:
        from workbench.families.frontier_plots import plain_log
        from workbench.io.figures import panels

        shown = table.dropna(subset=["objective"])
        if shown.empty:
            return None
        figure, (axes,) = panels(width=7, height=0.5 * len(shown) + 1.6)
        axes.barh(shown["class"][::-1], shown["objective"][::-1].astype(float))
        axes.set_xlabel("expected loss")
        if shown["objective"].max() > 20 * shown["objective"].min() > 0:
            plain_log(axes, "x")
        figure.suptitle(textwrap.fill(title, 90), fontsize=9)
        return figure

    return {"classes": bars}
