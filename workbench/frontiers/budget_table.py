"""Which mechanism for which budget: every mechanism of the workbench that fits a task, with its error at (ε, δ, bits).

Families declare the tasks (`Frontier.tasks`). Only rows of one `group` may be compared: the same task, the same
guarantee, the same measure of error. `best` marks the least error of a group at a budget among those that fit its bits.
`bound` is of the whole group at a budget: what no mechanism of it goes below, whatever its outputs; empty where that is
not proven (a bound of one family is left out). `gap` is the distance to it. Bits are log2 of the number of outputs in
use, for a variable-length code its exact mean length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.exact.objects import Values
from workbench.families.frontier_plan import BudgetTask, Plan, several
from workbench.families.frontier_plots import Quantity, by_name
from workbench.families.option import Option, one_of, read
from workbench.frontiers.run import frontier_of, run, with_frontiers
from workbench.io.parameter_grid import Grid, grid
from workbench.io.result import Progress, Result, Row, records, silent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_KEYS = ("task", "group", "epsilon", "delta", "bits")
COLUMNS = (*_KEYS, "mechanism", "objective", "bound", "needs_bits", "note", "failure", "fits", "gap", "best")


def _tasks() -> dict[str, BudgetTask]:
    return {task.name: task for kind in with_frontiers().values() for task in frontier_of(kind).tasks}


def options() -> list[Option]:
    """The options of the table: the budgets, the tasks, and what these take."""
    tasks = _tasks()
    return [
        Option("epsilon", grid, "0.5,1,2", 'Grid: "0.5,1,2", "0.1:4:8".'),
        Option("delta", grid, "0,0.01", "Grid of δ in [0, 1]."),
        Option("bits", grid, "2,4,6", "Bits a message may have, a grid."),
        Option("task", several(one_of(*tasks)), ",".join(tasks), f"{', '.join(tasks)}; several separated by commas."),
        *(option for task in tasks.values() for option in task.options),
    ]


def budget_table(
    epsilon: Grid = "0.5,1,2",
    delta: Grid = "0,0.01",
    bits: Grid = "2,4,6",
    *,
    progress: Progress = silent,
    **more: Any,
) -> Result:
    """Which mechanism for which budget: all that fit a task, and the best of those that may be compared.

        >>> from workbench.frontiers.budget_table import budget_table
        >>> table = budget_table(1, 0, 3, task="count", n=4).to_frame()
        >>> table[table["best"] & table["group"].str.contains("-DP")]["mechanism"].tolist()
        ['channel LP', 'clamped geometric']

    Args:
        epsilon, delta, bits: grids (`wb.frontier`) of budgets; bits in 1..64 that a message may have.
        progress: told (tasks done, tasks, title).
        more: task, some of the tasks (all by default), and what these take: `workbench frontier table --help`.

    Returns:
        One row for every mechanism at every budget: task, group (only rows of one may be compared), mechanism,
        objective (its error), bound, gap, needs_bits, fits, best, note. After Ctrl-C of the budgets finished so far.

    Raises:
        InvalidRequest: a wrong value, before anything is solved.
    """
    values = read(options(), {"epsilon": epsilon, "delta": delta, "bits": bits, **more})
    result = run(_plan(values), progress)
    rows = records(spread(result.rows, values["bits"]))
    return replace(
        result, rows=rows, name="table", columns=COLUMNS, draw=lambda table: {"errors": partial(_draw, table)}
    )


def _plan(values: Values) -> Plan:
    epsilons, deltas, bits = values["epsilon"], values["delta"], values["bits"]
    for size in bits:
        if not 1 <= size <= 64:
            InvalidRequest.must("bits", "in 1..64", f"{float(size):g}")
    plans = []
    for name in values["task"]:
        task = _tasks()[name]
        task.check(values, epsilons, deltas)
        budgets = [(epsilon, delta) for epsilon in epsilons for delta in (deltas if task.delta else [Fraction(0)])]
        plans += [partial(task.rows, values, epsilon, delta, bits) for epsilon, delta in budgets]
    return Plan("Which mechanism for which budget", plans)


def spread(rows: Iterable[Row], bits: Sequence[Fraction]) -> pd.DataFrame:
    """The rows as a table, one for every number of bits, with `fits`, `gap` and the `best` of every group."""
    import pandas as pd

    every = [
        row | {"bits": size} for row in rows for size in ([row["bits"]] if "bits" in row else [float(b) for b in bits])
    ]
    keys = list(_KEYS)
    table = pd.DataFrame(every).reindex(
        columns=[*keys, "mechanism", "objective", "bound", "needs_bits", "note", "failure"]
    )
    needs = table["needs_bits"].astype(float).fillna(math.inf)
    table["fits"] = needs <= table["bits"] + 1e-9
    table["bound"] = table.groupby(keys)["bound"].transform("max").clip(lower=0.0)  # no error is negative
    table["gap"] = table["objective"] - table["bound"]
    least = table[table["fits"]].groupby(keys)["objective"].transform("min")
    table["best"] = (table["objective"] <= least.reindex(table.index) * (1 + 1e-9)) & table["fits"]
    return table.sort_values([*keys, "objective"], kind="stable").reset_index(drop=True)


def _draw(table: pd.DataFrame) -> Figure | None:
    """The least error of every group against ε, at the least δ and the most bits of the table."""
    best = table[table["best"].astype(bool) & table["objective"].notna()]
    best = best[(best["bits"] == best["bits"].max()) & (best["delta"] == best["delta"].min())]
    least = f"least δ = {best['delta'].min():g}, {best['bits'].max():g} bits"
    epsilon, error = Quantity("epsilon", "ε"), Quantity("objective", "least error", True)
    return by_name(best, best["task"] + ", " + best["group"], epsilon, error, least)
