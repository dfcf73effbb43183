"""Plan a frontier (expected loss against privacy) as small tasks that give the rows of its table.

A family has a frontier if its `Family.frontier` names a module with `FRONTIER = Frontier(...)`. The
module is loaded to list commands and therefore imports no model. Every row has the columns below,
and those that the family adds. A task that fails gives a row with its `failure`.

    curve        "point" (requested), "level" (minimal delta at a given error), "piece" (an exact
                 piece of the frontier between two deltas), "baseline" (a published mechanism at the
                 same budget), "limit" (a proven bound), "failed" (a task without rows)
    objective, bound     the optimum lies in [bound, objective]; the exact error of a baseline
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
# The column "mechanism" has this value in rows whose objective is a minimal ε.
LEAST_EPSILON = "least epsilon"
# These columns of a design are left out of frontiers.
_SOLVER_COLUMNS = ("gap", "residual", "start", "audited", "version", "bins_used")

Task = Callable[[], Iterable[Row]]
Point = tuple[Row, Any]  # The columns that name the point, and its request.
# A function of a question and the values of options.
Points = Callable[[Any, Values], Iterable[Point]]


@dataclass(frozen=True)
class Plan:
    """What a frontier computes.

    Attributes:
        title: Title of the frontier.
        tasks: Tasks in the order of their rows.
        draw: Function that makes the plots of the table.
        sentences: Sentences about all rows.
    """

    title: str
    tasks: Sequence[Task]
    draw: Callable[[pd.DataFrame], Plots] = lambda table: {}
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Frontier:
    """The frontier of a family.

    Attributes:
        summary: One sentence for help pages.
        options: Options that describe the question (question=True), then those of the trade-off.
            `workbench.data.parameter_grid` reads grids. Defaults are read like given values.
        plan: Function of the question and the exact values of options that returns the plan. It
            checks everything before anything is solved. The question is None if options describe
            it.
        examples: Command lines.
        points: Function of the same arguments that returns the points at which baselines of other
            packages are compared. None: they are not.
    """

    summary: str
    options: Sequence[Option]
    plan: Callable[[Any, Values], Plan]
    examples: Sequence[str] = ()
    points: Points | None = None


EPSILON = Option(
    "epsilon",
    read_grid,
    help='Grid of ε: "0.1:4:40" (40 values, equal steps), "0.1:4:40:log" (equal ratios) or '
    '"0.5,1,2".',
    required=True,
)


def distinct_list_reader(read_one: Reader) -> Reader:
    """Return a reader that accepts a list, such as "pdp,dp", and drops repeated items.

    Args:
        read_one: Reader of one item.
    """
    read = list_reader(read_one)
    return lambda value, name: tuple(dict.fromkeys(read(value, name)))


def load_when_called(module: str, name: str) -> Callable[..., Any]:
    """Return a function whose module is imported when it is called.

    Listing frontiers therefore loads neither models nor solvers.

    Args:
        module: Name of the module.
        name: Name of the function.
    """
    return lambda *arguments: getattr(importlib.import_module(module), name)(*arguments)


def select_loss_points(points: Points, **options: Any) -> Points:
    """Return the points at which a loss is minimised, where baselines are compared.

    Args:
        points: Function that returns all points.
        options: Values of options that are fixed.
    """

    def select(question: Any, values: Values) -> list[Point]:
        """Return the points of the question whose request minimises the loss."""
        all_points = points(question, {**values, **options})
        return [(row, request) for row, request in all_points if request.aim.minimise == "loss"]

    return select


def make_design_row(
    solve: Callable[[], Design],
    extra_columns: Callable[[Design], Row] = lambda design: {},
    **columns: Any,
) -> Row:
    """Return the row of a design.

    Args:
        solve: Function that returns the design. If it is not proven optimal, the row has its
            incumbent and bound. If it fails, the row has the error.
        extra_columns: Function that returns further columns of a design.
        columns: Columns that name the row.
    """
    row, design = attempt_design(solve)
    row = columns | _without_solver_columns(row)
    if design is not None:
        row |= extra_columns(design)
    return row


def make_design_task(
    row: Row,
    request: Request,
    mechanism: str,
    extra_columns: Callable[[Design], Row] = lambda design: {},
) -> Task:
    """Return the task that designs a mechanism at one point.

    Args:
        row: Columns that name the point.
        request: The request of the point.
        mechanism: Name of the mechanism, unless ε is minimised.
        extra_columns: Function that returns further columns of a design.
    """
    columns = {"curve": "point", "mechanism": mechanism}
    if request.aim.minimise == "epsilon":
        columns = {"curve": "level", "mechanism": LEAST_EPSILON}

    def compute() -> list[Row]:
        """Design the mechanism in a session of its own, and return its row."""
        with request.family.open_session(request) as session:
            return [make_design_row(session.design, extra_columns, **columns, **row)]

    return compute


def make_baseline_task(
    name: str, point: Row, answer: Callable[[], Row], curve: str = "baseline"
) -> Task:
    """Return the task of a published mechanism, or of a limit, at one point.

    Args:
        name: Name of the mechanism.
        point: Columns that name the point.
        answer: Function that returns the other columns, or raises NotApplicable with a reason.
        curve: Curve of the row.
    """

    def compute() -> list[Row]:
        """Return the row of the mechanism. If it does not apply, the row has the reason."""
        columns = {"curve": curve, "mechanism": name, **point}
        try:
            return [columns | answer()]
        except NotApplicable as error:
            return [columns | error.columns]
        except WorkbenchError as error:
            return [make_failed_row(error, **columns)]

    return compute


def make_published_tasks(
    entries: Iterable[Published], points: Iterable[Point], named: Collection[str] = ()
) -> list[Task]:
    """Return one task for each entry at each point of a frontier that lists it.

    Points that differ only in the fixed columns of an entry are one point.

    Args:
        entries: Entries of the registry.
        points: Pairs of the columns that name the point, and its request.
        named: Names of entries that get a row with a reason if they apply to no point.
    """
    all_points = list(points)
    tasks: dict[Any, Task] = {}
    for entry in entries:
        applies = any(entry.is_listed_for(request) for _, request in all_points)
        if entry.name in named and not applies:
            error = NotApplicable(f"{entry.name} is for none of these budgets.")
            row = {"curve": "baseline", "mechanism": entry.name, **error.columns}
            # This task only returns the finished row.
            tasks[entry.name] = partial(list, [row])
        for point, request in all_points:
            row = {**point, **entry.fixed}
            key = (entry.name, *map(str, row.items()))
            if key not in tasks and entry.is_listed_for(request):
                tasks[key] = make_baseline_task(entry.name, row, partial(entry.row, request))
    return [*tasks.values()]


def make_failed_row(error: WorkbenchError, **columns: Any) -> Row:
    """Return the row of a task that failed.

    Args:
        error: The error that ended the design.
        columns: Columns that name the row.
    """
    return columns | _without_solver_columns(failure_row(error))


def _without_solver_columns(row: Row) -> Row:
    """Return a row without the columns that frontiers leave out."""
    return {name: value for name, value in row.items() if name not in _SOLVER_COLUMNS}
