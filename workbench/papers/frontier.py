"""The trade-off curves of `workbench frontier`, at a moderate size: not a paper's, but made of all of them.

declared/frontier.toml states the runs of `wb.frontier` and, for each artifact, which plot of which run it is. One run
is shared by its artifacts; seconds are left out, so that a table is the same every time.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pandas as pd

from workbench.errors import WorkbenchError
from workbench.frontiers.budget_table import budget_table
from workbench.frontiers.run import frontier
from workbench.io.result import Result
from workbench.papers.artifact import DIGITS, Artifact, Paper, artifact, declared, given, rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_EXPECTED = ("infeasible", "unreachable")  # what no parameter or no code meets is an answer
# significant digits that a solver's or a search's tolerance leaves certain; of the others, the usual number
_CONVERGED = {"noise": 5, "labels": 5, "quantizer": 5, "dp_delta": 6}  # of a kind of frontier, or of a column


def _finished(result: Result) -> pd.DataFrame:
    if result.interrupted:
        raise KeyboardInterrupt
    return result.to_frame()


@lru_cache
def _computed(kind: str, full: bool) -> tuple[Result, pd.DataFrame]:
    """A frontier and its table. Raises WorkbenchError when a request failed."""
    result = frontier(kind, **given(declared("frontier")["frontiers"][kind], full))
    table = _finished(result)
    failed = table[table["objective"].isna() & table["failure"].notna() & ~table["status"].isin(_EXPECTED)]
    if len(failed):
        raise WorkbenchError(f"The {kind} frontier has a row that failed: {failed['failure'].iloc[0]}")
    table = table.drop(columns=["seconds"])
    if kind == "noise":  # what one run of a search's noise is private to hangs on masses that cost next to nothing
        table = table.drop(columns=["pdp_delta", "dp_delta", "pure_epsilon"])
    if kind == "labels":  # how many outputs an LP's optimum uses is not determined where several laws are optimal
        table.loc[table["mechanism"] == "unbiased", "outputs_used"] = None
    for column in table.columns.difference(["epsilon", "delta"]):
        digits = min(_CONVERGED.get(name, DIGITS) for name in (kind, str(column)))
        table[column] = [rounded(v, digits) if isinstance(v, float) else v for v in table[column]]
    return result, table


def _drawn(name: str, full: bool) -> Artifact:
    stated = declared("frontier")[name]
    result, rows = _computed(stated["of"], full)
    table = rows[rows["curve"].isin(stated["curves"])].dropna(axis="columns", how="all").reset_index(drop=True)

    def draw(_: pd.DataFrame) -> Figure:
        figure = result.draw(rows)[stated["plot"]]()
        assert figure is not None  # the rows are complete
        return figure

    verdicts = table["oracle_agrees"].dropna() if "oracle_agrees" in table else pd.Series(dtype=bool)
    laws = f" Closed forms agree with {int(verdicts.sum())} of {len(verdicts)} solver runs." if len(verdicts) else ""
    return artifact("frontier", name, table, draw=draw, laws=laws)


def _budgets(full: bool) -> Artifact:
    table = _finished(budget_table(**given(declared("frontier")["budgets"], full)))
    best = table[table["best"]].drop(columns=["best", "fits", "failure", "gap"]).reset_index(drop=True)
    return artifact("frontier", "budgets", best, digits={"objective": 6, "bound": 6})


PAPER = Paper(
    name="frontier",
    title="Trade-offs between privacy and error",
    citation="Computed by `workbench frontier`; no paper's figures, but the models, laws and baselines of all of them.",
    artifacts={name: partial(_drawn, name) for name in declared("frontier") if name not in ("frontiers", "budgets")}
    | {"budgets": _budgets},
    seconds={"budgets": 46, "quantizer": 27, "noise_error_epsilon": 13, "runs": 13, "laplace": 6, "labels": 3},
    together=[("noise_error_epsilon", "noise_error_delta", "noise_level_curves", "noise_heat_map", "noise_baselines")],
)
