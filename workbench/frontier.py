"""Trade-offs between privacy and error: a plan of small tasks, run to the end or to Ctrl-C, as one table and its plots.

A kind of frontier is one module with `plan(...) -> Plan` and one line in `cli_frontier.KINDS`. A task computes rows;
every row has the COLUMNS below and whatever else its kind says. What fails is a row with its error, not a crash.

    curve        "point" (asked for), "level" (least delta at a given error), "piece" (an exact piece of the frontier
                 between two deltas), "baseline" (a published mechanism at the same budget), "limit" (a proven bound),
                 "failed" (a task that did not get as far as rows of its own: see `error`)
    objective, bound     the optimum lies in [bound, objective]; of a baseline the objective is its error, exactly
    pdp_delta, dp_delta, pure_epsilon     of the mechanism itself, by the exact audit
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import Infeasible, NotProven, WorkbenchError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.designing import Design

__all__ = ["COLUMNS", "Outcome", "Plan", "Plots", "design_row", "failed_row", "frame", "run", "write"]

COLUMNS = (
    "curve", "mechanism", "notion", "cost", "epsilon", "delta", "objective", "bound", "pdp_delta", "dp_delta",
    "pure_epsilon", "private", "certified", "oracle", "oracle_value", "oracle_kind", "oracle_agrees", "status",
    "solver", "seconds", "error",
)  # fmt: skip

Row = dict[str, Any]
Task = Callable[[], Iterable[Row]]
Plots = Mapping[str, Callable[[], "Figure | None"]]  # a plot is drawn when it is called; None: too few rows


@dataclass(frozen=True)
class Plan:
    """What is to be computed: title of the whole, tasks in order, how its table is drawn, what to close at the end."""

    kind: str
    title: str
    tasks: Sequence[Task]
    draw: Callable[[pd.DataFrame], Plots]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Outcome:
    """The rows of the tasks that were finished, of how many."""

    rows: list[Row]
    finished: int
    tasks: int
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C came first."""
        return self.finished < self.tasks


def run(plan: Plan, progress: Callable[[int, int], None] = lambda done, total: None) -> Outcome:
    """Run a plan; Ctrl-C ends it after the rows of the tasks finished so far. progress: (tasks done, tasks)."""
    rows: list[Row] = []
    done, begin = 0, time.perf_counter()
    try:
        for task in plan.tasks:
            try:
                rows += task()
            except MemoryError:
                rows.append(failed_row(WorkbenchError("The request needs more memory than there is."), curve="failed"))
            except WorkbenchError as problem:
                _pass_on_interrupt(problem)
                rows.append(failed_row(problem, curve="failed"))
            done += 1
            progress(done, len(plan.tasks))
    except KeyboardInterrupt:
        pass
    finally:
        plan.close()
    return Outcome(rows, done, len(plan.tasks), time.perf_counter() - begin)


def design_row(make: Callable[[], Design], **known: Any) -> Row:
    """The row of a design; of an unproven one its incumbent and bound, of a failed one the error.

    Ctrl-C inside a solver, which designers report as errors of their own, is passed on as KeyboardInterrupt.
    """
    try:
        made, error = make(), None
    except WorkbenchError as problem:
        _pass_on_interrupt(problem)
        if not isinstance(problem, NotProven) or problem.design is None:
            return failed_row(problem, **known)
        made, error = problem.design, str(problem)
    found = made.to_dict()
    renamed = {"epsilon": "pure_epsilon", "delta": "dp_delta"}  # other kinds of designs have fewer values
    exact = {renamed.get(name, name): math.inf if value == "inf" else value for name, value in found["exact"].items()}
    law = made.oracle
    return known | {
        "objective": made.objective, "bound": made.bound, **exact,
        "private": made.private, "certified": made.certificate is not None,
        "oracle": law.name, "oracle_value": law.value, "oracle_kind": law.kind, "oracle_agrees": law.agrees,
        "status": made.status, "solver": found.get("solver"), "seconds": found.get("seconds"), "error": error,
    }  # fmt: skip


def _pass_on_interrupt(problem: WorkbenchError) -> None:
    """Raise KeyboardInterrupt where an error is what Ctrl-C inside a solver became."""
    if getattr(problem, "interrupted", False) or isinstance(problem.__context__, KeyboardInterrupt):
        raise KeyboardInterrupt from None


def failed_row(error: WorkbenchError, **known: Any) -> Row:
    """The row of what could not be had."""
    return known | {"status": "infeasible" if isinstance(error, Infeasible) else "failed", "error": str(error)}


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a table: the COLUMNS, then what the kind adds in order of appearance."""
    import pandas as pd

    made = [{**dict.fromkeys(COLUMNS), **row} for row in rows]
    extra = list(dict.fromkeys(name for row in made for name in row if name not in COLUMNS))
    table = pd.DataFrame(made, columns=[*COLUMNS, *extra])
    return table.drop(columns=[name for name in extra if table[name].isna().all()])


def write(plan: Plan, table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write frontier.csv and the plots (PNG and SVG) that the rows at hand allow. Returns the files."""
    from matplotlib.pyplot import close

    from workbench.files import write_whole
    from workbench.papers.reproduce import save_figure

    made = [folder / "frontier.csv"]
    write_whole(made[0], table.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode())
    for name, plot in plan.draw(table).items():
        figure = plot()
        if figure is None:
            continue
        for ending in ("png", "svg"):
            made.append(folder / f"{name}.{ending}")
            save_figure(figure, made[-1])
        close(figure)
    return made
