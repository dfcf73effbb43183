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
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.numbers import exact, positive
from workbench.families.baseline import read_baselines
from workbench.families.channel.family import FAMILY
from workbench.families.channel.request import ChannelTooLarge
from workbench.families.frontier_plan import NotApplicable
from workbench.families.option import Option, one_of, read, two_ends
from workbench.families.recommendation import Candidate, Query, RealQuery, all_candidates, texts
from workbench.io.result import Plots, Result, Row, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


COLUMNS = ("class", "objective", "bound", "certified", "command", "notes")
_NONE = "No class serves this query with a certificate."
_LOSS = FAMILY.option("loss")
OPTIONS: tuple[Option, ...] = (
    *(option for option in FAMILY.options if option.question),
    Option("loss", _LOSS.read, "squared", _LOSS.help),
    FAMILY.option("notion"),
    FAMILY.option("delta"),
    Option("epsilon", FAMILY.option("epsilon").read, help="Privacy budget > 0.", required=True),
    Option("baseline", read_baselines, kind=list, help="Your own."),
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
)


def recommend(*, epsilon: Any, delta: Any = 0, notion: str = "dp", loss: Any = "squared", **question: Any) -> Result:
    """Classes of mechanisms for a finite or real query at one budget, with proven numbers, the least loss first.

    Of mechanisms outside the classes compared nothing is claimed: another one may cost less.

        >>> import workbench as wb
        >>> table = wb.recommend(answers="0..10", max_shift=1, epsilon=1, delta="1e-5")
        >>> [row["class"] for row in table][:2]
        ['best channel', 'integer noise, clamped']

    Args:
        epsilon, delta, notion: the budget. loss: a loss by name, a matrix (answers, outputs), or a function.
        question: range and perhaps sensitivity, for real answers between two numbers (neighbours: every two unless a
            sensitivity is given; costs are means over answers uniform on the range); or answers, outputs, max_shift or
            neighbours, prior, as `workbench.FiniteQuery` takes them; baseline: your own, a PMF {noise: probability}, a
            matrix, a function (epsilon, delta) -> one of these, a CSV file, or a mapping from names to such.

    Returns:
        One row for each class compared (the module's columns); a class that does not apply says why.

    Raises:
        InvalidRequest: a wrong value, before anything is solved.
    """
    given = {"epsilon": epsilon, "delta": delta, "notion": notion, "loss": loss, **question}
    if "range" in given:
        return _real(read(REAL_OPTIONS, given, "request with a range"))
    values = read(OPTIONS, given)
    finite_query = FAMILY.spelled_question({"answers": None, **values})
    query = Query(question=finite_query, words=texts(given), own=values["baseline"] or (), **_budget(values))
    try:  # what no class could serve is refused; a channel too large is a row of its own
        FAMILY.request(query.question, loss=query.loss, **query.budget)
    except ChannelTooLarge:
        assert query.losses  # whose errors are the user's as well
    return _compared(query, f"{finite_query!r}, {query.losses.name} loss")


def _budget(values: Values) -> Values:
    return {name: values[name] for name in ("epsilon", "notion", "loss")} | {"delta": values["delta"] or Fraction(0)}


def _real(values: Values) -> Result:
    """The same for real answers in a range."""
    low, high = values["range"]
    query = RealQuery(low=low, high=high, sensitivity=values["sensitivity"] or high - low, **_budget(values))
    if query.sensitivity > query.width:
        InvalidRequest.must("sensitivity", "at most the width of the range", float(query.sensitivity))
    if query.notion == "pure" and query.delta:
        InvalidRequest.must("delta", "0 for the notion pure", float(query.delta))
    apart = f"neighbours at most {float(query.sensitivity):g} apart"
    relation = "every two neighbours" if query.local else apart
    return _compared(query, f"real answers in [{float(low):g}, {float(high):g}], {relation}, {query.loss} error")


def _compared(query: Query | RealQuery, subject: str) -> Result:
    begin = time.perf_counter()
    candidates = list(all_candidates(query))
    rows = sorted(map(_row, candidates), key=lambda row: (row["objective"] is None, row["objective"] or 0.0))
    extra = {candidate.name: candidate.extra_loss for candidate in candidates if candidate.extra_loss}
    title = f"{subject}, {query.notion} at epsilon = {float(query.epsilon):g}, delta = {float(query.delta):g}"
    sentences = tuple(_of_reals(query, rows) if isinstance(query, RealQuery) else _sentences(rows, extra))
    return Result(
        title,
        rows,
        "recommend",
        COLUMNS,
        partial(_draw, title=title),
        len(rows),
        len(rows),
        time.perf_counter() - begin,
        sentences,
    )


def _row(candidate: Candidate) -> Row:
    row: Row = dict.fromkeys(COLUMNS) | {"class": candidate.name, "notes": candidate.reason or candidate.needs}
    if candidate.solve is None:
        return row | {"command": candidate.command}
    try:
        value = candidate.solve()._asdict()
    except NotApplicable as error:
        return row | {"notes": str(error)}
    except WorkbenchError as error:
        return row | {"command": candidate.command, "notes": f"{type(error).__name__}: {error}"}
    notes = ": ".join(filter(None, (candidate.needs, value.pop("parameter"))))
    return row | value | {"command": candidate.command, "notes": notes}


def _certified(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["objective"] is not None and row["certified"]]


def _use(best: Row, where: str = "") -> str:
    """The sentence that recommends a class, with what is proven of it: the bound where it does not show the loss."""
    loss, bound = _shown(best["objective"]), best["bound"]
    than = "" if bound is None or _shown(bound) == loss else f" than {_shown(bound)}"
    proven = "" if bound is None else f", and none of its class costs less{than}"
    return f"Use the {best['class']}{where}: {loss}{proven}."


def _sentences(rows: list[Row], extra: Mapping[str, str]) -> Iterator[str]:
    """What to use, and what others cost beside it. extra: class -> what makes it cost more."""
    served = _certified(rows)
    if not served:
        yield _NONE
        return
    tied = [row for row in served if _shown(row["objective"]) == _shown(served[0]["objective"])]
    best = next((row for row in tied if row["bound"] is not None), tied[0])
    yield _use(best)
    if others := [row["class"] for row in tied if row is not best]:
        yield f"At the same loss: {'; '.join(others)}."
    for row in served[1:]:
        if row["class"] in extra and row["objective"] > 1.05 * best["objective"]:
            yield f"{extra[row['class']]} costs {row['objective'] / best['objective']:.3g}x."


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
        loss = _shown(served[0]["objective"])
        yield (
            f"For one answer alone the {served[0]['class']} (biased) costs least of the classes compared: {loss}. "
            "Others may cost less."
        )
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
