"""Trade-offs between privacy and error as a plan of small tasks, each a few rows of one table, and its plots.

A family has a frontier when its `Family.frontier` names a module with `FRONTIER = Frontier(...)`, which is loaded to
list commands and therefore imports no model. Every row has the COLUMNS below and whatever else its family says. What
fails is a row with its error, not a crash.

    curve        "point" (asked for), "level" (least delta at a given error), "piece" (an exact piece of the frontier
                 between two deltas), "baseline" (a published mechanism at the same budget), "limit" (a proven bound),
                 "failed" (a task that did not get as far as rows of its own: see `error`)
    objective, bound     the optimum lies in [bound, objective]; of a baseline the objective is its error, exactly
    pdp_delta, dp_delta, pure_epsilon     of the mechanism itself, by the exact audit
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.families.option import Option, Reader, listed
from workbench.families.outcome import attempt, failure
from workbench.io.parameter_grid import grid
from workbench.io.result import Plots, Row

if TYPE_CHECKING:
    import pandas as pd

    from workbench.families.base import Request
    from workbench.families.design import Design

__all__ = [
    "COLUMNS",
    "EPSILON",
    "BudgetTask",
    "Frontier",
    "Plan",
    "Plots",
    "Row",
    "Task",
    "budget_row",
    "design_row",
    "failed_row",
    "several",
]

COLUMNS = (
    "curve", "mechanism", "notion", "cost", "epsilon", "delta", "objective", "bound", "pdp_delta", "dp_delta",
    "pure_epsilon", "private", "certified", "oracle", "oracle_value", "oracle_kind", "oracle_agrees", "status",
    "solver", "seconds", "error",
)  # fmt: skip
_OF_THE_SOLVE = ("gap", "residual", "start", "audited", "version")  # columns of a design that a trade-off leaves out

Task = Callable[[], Iterable[Row]]


@dataclass(frozen=True)
class Plan:
    """What is to be computed: title of the whole, tasks in order, how its table is drawn, what to close at the end.

    learn: told the rows of every task when it has ended, in the process that made the plan; tasks that run in others
    take with them what it had learned when they were sent. waits: positions of tasks that need the rows of all before.
    """

    title: str
    tasks: Sequence[Task]
    draw: Callable[[pd.DataFrame], Plots] = lambda table: {}
    close: Callable[[], None] = lambda: None
    learn: Callable[[Sequence[Row]], None] = lambda rows: None
    waits: Sequence[int] = ()


@dataclass(frozen=True)
class BudgetTask:
    """One task of the budget table: what is published, and every mechanism for it at one budget.

    name: of the task; rows: (values of the options, ε, δ, numbers of bits) -> rows made by `budget_row`.
    options: that the task takes; delta: whether the budgets' δ is used.
    check: refuses values and grids of ε and δ before anything is solved.
    """

    name: str
    rows: Callable[[Mapping[str, Any], Fraction, Fraction, Sequence[Fraction]], Iterable[Row]]
    options: Sequence[Option] = ()
    delta: bool = True
    check: Callable[[Mapping[str, Any], Sequence[Fraction], Sequence[Fraction]], None] = lambda *_: None


@dataclass(frozen=True)
class Frontier:
    """How the trade-offs of a family are asked for.

    summary: one sentence; examples: command lines; tasks: of the budget table.
    options: those that spell the question (question=True), then those of the trade-off; a grid is read by
        `workbench.io.parameter_grid`. Their defaults are read like what is given.
    plan: (question, exact values of the options) -> its plan, with everything checked before anything is solved;
        the question is None where options spell it.
    points: the same -> (columns that name a point, its request), where baselines of other packages join.
    """

    summary: str
    options: Sequence[Option]
    plan: Callable[[Any, Mapping[str, Any]], Plan]
    examples: Sequence[str] = ()
    tasks: Sequence[BudgetTask] = ()
    points: Callable[[Any, Mapping[str, Any]], Iterable[tuple[Row, Request]]] | None = None


EPSILON = Option("epsilon", grid, help='Grid: "0.1:4:40" (equal steps), "0.1:4:40:log", "0.5,1,2".', required=True)


def several(read_one: Reader) -> Reader:
    """Some words that a reader takes, each once: "pdp,dp", or a list of them."""
    read = listed(read_one)
    return lambda value, name: tuple(dict.fromkeys(read(value, name)))


def design_row(solve: Callable[[], Design], **known: Any) -> Row:
    """The row of a design; of an unproven one its incumbent and bound, of a failed one the error."""
    row, _ = attempt(solve)
    return known | _shown(row)


def failed_row(error: WorkbenchError, **known: Any) -> Row:
    """The row of what could not be had."""
    return known | _shown(failure(error))


def _shown(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _OF_THE_SOLVE}


def budget_row(
    task: str, group: str, mechanism: str, epsilon: Fraction, delta: Fraction, needs: float | None, **more: Any
) -> Row:
    """A row of the budget table; needs: bits of a message, None where no number of them suffices."""
    return {"curve": "budget", "task": task, "group": group, "mechanism": mechanism, "epsilon": float(epsilon),
            "delta": float(delta), "needs_bits": needs, "note": "", **more}  # fmt: skip
