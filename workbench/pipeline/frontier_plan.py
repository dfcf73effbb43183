"""Trade-offs between privacy and error as a plan of small tasks, each a few rows of one table, and its plots.

A family has a frontier when its `Family.frontier` names a module with `FRONTIER = Frontier(...)`, which is loaded to
list commands and therefore imports no model. Every row has the COLUMNS below and whatever else its family says. What
fails is a row with its `failure`, not a crash.

    curve        "point" (asked for), "level" (least delta at a given error), "piece" (an exact piece of the frontier
                 between two deltas), "baseline" (a published mechanism at the same budget), "limit" (a proven bound),
                 "failed" (a task that did not get as far as rows of its own: see `failure`)
    objective, bound     the optimum lies in [bound, objective]; of a baseline the objective is its error, exactly
    pdp_delta, dp_delta, pure_epsilon     of the mechanism itself, by the exact audit
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.data.parameter_grid import read_grid
from workbench.errors import NotApplicable, WorkbenchError
from workbench.exact.objects import Values
from workbench.io.result import Plots as Plots
from workbench.io.result import Row as Row
from workbench.pipeline.option import Option, Reader, list_reader
from workbench.pipeline.outcome import attempt_design, failure_row

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pipeline.design import Design
    from workbench.pipeline.published import Published
    from workbench.pipeline.request import Request

FRONTIER_COLUMNS = (
    "curve",
    "mechanism",
    "notion",
    "loss",
    "epsilon",
    "delta",
    "objective",
    "bound",
    "pdp_delta",
    "dp_delta",
    "pure_epsilon",
    "private",
    "certified",
    "oracle",
    "oracle_value",
    "oracle_kind",
    "oracle_agrees",
    "status",
    "solver",
    "seconds",
    "failure",
)
LEAST_EPSILON = "least epsilon"  # mechanism of a row whose objective is an ε
# columns of a design that a trade-off leaves out
_OF_THE_SOLVE = ("gap", "residual", "start", "audited", "version", "bins_used")

Task = Callable[[], Iterable[Row]]
Point = tuple[Row, Any]  # columns that name it, its request
Points = Callable[[Any, Values], Iterable[Point]]  # of a question and values of options


@dataclass(frozen=True)
class Plan:
    """What is to be computed: title of the whole, tasks in order, how its table is drawn, what is said of all rows."""

    title: str
    tasks: Sequence[Task]
    draw: Callable[[pd.DataFrame], Plots] = lambda table: {}
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Frontier:
    """How the trade-offs of a family are asked for.

    summary: one sentence; examples: command lines.
    options: those that spell the question (question=True), then those of the trade-off; a grid is read by
        `workbench.data.parameter_grid`. Their defaults are read like what is given.
    plan: (question, exact values of the options) -> its plan, with everything checked before anything is solved;
        the question is None where options spell it.
    points: the same -> (columns that name a point, its request), where baselines of other packages join.
    """

    summary: str
    options: Sequence[Option]
    plan: Callable[[Any, Values], Plan]
    examples: Sequence[str] = ()
    points: Points | None = None


EPSILON = Option(
    "epsilon",
    read_grid,
    help='Grid: "0.1:4:40" (equal steps), "0.1:4:40:log", "0.5,1,2".',
    required=True,
)


def distinct_list_reader(read_one: Reader) -> Reader:
    """Some words that a reader takes, each once: "pdp,dp", or a list of them."""
    read = list_reader(read_one)
    return lambda value, name: tuple(dict.fromkeys(read(value, name)))


def load_when_called(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported when it is called: listing frontiers loads neither models nor solvers."""
    return lambda *given: getattr(importlib.import_module(module), name)(*given)


def select_loss_points(points: Points, **fixed: Any) -> Points:
    """Of some points those that baselines are compared at: a loss minimised. fixed: values of options."""
    return lambda question, values: [
        (row, request)
        for row, request in points(question, {**values, **fixed})
        if request.aim.minimise == "loss"
    ]


def make_design_row(
    solve: Callable[[], Design],
    extra_columns: Callable[[Design], Row] = lambda design: {},
    **known: Any,
) -> Row:
    """The row of a design; of an unproven one its incumbent and bound, of a failed one the error. more: its columns
    that the design's own row has not."""
    row, design = attempt_design(solve)
    return known | _without_solver_columns(row) | ({} if design is None else extra_columns(design))


def make_design_task(
    row: Row,
    request: Request,
    mechanism: str,
    extra_columns: Callable[[Design], Row] = lambda design: {},
) -> Task:
    """The task of one point: its design as a row, of a mechanism, or of the least ε where that is asked for."""
    least = request.aim.minimise == "epsilon"
    known = (
        {"curve": "level", "mechanism": LEAST_EPSILON}
        if least
        else {"curve": "point", "mechanism": mechanism}
    )

    def compute() -> list[Row]:
        with request.family.open_session(request) as session:
            return [make_design_row(session.design, extra_columns, **known, **row)]

    return compute


def make_baseline_task(
    name: str, point: Row, answer: Callable[[], Row], curve: str = "baseline"
) -> Task:
    """The task of a published mechanism at one point, or of a limit; what does not apply there says why."""

    def compute() -> list[Row]:
        known = {"curve": curve, "mechanism": name, **point}
        try:
            return [known | answer()]
        except NotApplicable as error:
            return [known | error.columns]
        except WorkbenchError as error:
            return [make_failed_row(error, **known)]

    return compute


def make_published_tasks(
    entries: Iterable[Published], points: Iterable[Point], named: Collection[str] = ()
) -> list[Task]:
    """Make one task for each entry at each point of a frontier that lists it.

    Points that differ only in the fixed columns of an entry are one point.

    Args:
        entries: Entries of the registry.
        points: Pairs (columns that name the point, its request).
        named: Names of entries that say so if they serve no point.
    """
    all_points = list(points)
    tasks: dict[Any, Task] = {}
    for entry in entries:
        if entry.name in named and not any(
            entry.is_listed_for(request) for _, request in all_points
        ):
            error = NotApplicable(f"{entry.name} is for none of these budgets, and is not drawn.")
            tasks[entry.name] = partial(
                list, [{"curve": "baseline", "mechanism": entry.name, **error.columns}]
            )
        for point, request in all_points:
            row = {**point, **entry.fixed}
            key = (entry.name, *map(str, row.items()))
            if key not in tasks and entry.is_listed_for(request):
                tasks[key] = make_baseline_task(entry.name, row, partial(entry.row, request))
    return [*tasks.values()]


def make_failed_row(error: WorkbenchError, **known: Any) -> Row:
    """The row of what could not be had."""
    return known | _without_solver_columns(failure_row(error))


def _without_solver_columns(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _OF_THE_SOLVE}
