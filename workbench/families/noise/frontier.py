"""The trade-off of noise on the integers and the reals: least loss against a budget, and least ε against a loss.

curve       what a row is
point       the least-loss noise, certified unless it is asked not to be, with its bound on all noise (for many runs: on
            symmetric noise)
limit       that bound as a curve of its own, where numbers of runs are compared
level       the least ε of an error budget (mechanism "least epsilon", its objective)
baseline    known noise at the same budget, in floating point: for comparison only
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.exact.objects import Values
from workbench.families.frontier_plan import Plan, Plots, Row, Task, design_task
from workbench.families.frontier_plots import Series, budget_plots
from workbench.families.noise.family import FAMILY
from workbench.families.notion_points import notion_plots, notion_requests, one_run
from workbench.families.requirements import hockey_stick_notions

if TYPE_CHECKING:
    import pandas as pd

    from workbench.families.noise.request import NoiseRequest


SERIES = {
    "noise": Series("best noise", 2), "geometric": Series("geometric", 7, ":"),
    "truncated geometric": Series("truncated geometric", 4, "--"),
    "discrete Gaussian": Series("discrete Gaussian", 5, "--"), "rounded Gaussian": Series("rounded Gaussian", 3, ":"),
    "staircase": Series("staircase", 1, "-."),
    "staircase (pure)": Series("staircase (pure)", 4, "-."), "Laplace": Series("Laplace", 7, ":"),
    "uniform": Series("uniform", 0, ":"),
    "truncated Laplace": Series("truncated Laplace", 6, "--"), "Gaussian": Series("Gaussian", 5, "--"),
    "proven bound": Series("proven lower bound", 6, ":"),
}  # fmt: skip


def plan(question: Any, values: Values) -> Plan:
    """The plan of a frontier of noise."""
    points = list(notion_requests(FAMILY, question, values))
    limits = len({request.runs for _, request in points}) > 1
    tasks: list[Task] = [_point(row, request, limits) for row, request in points]
    request = points[0][1] if points else None
    title = "" if request is None else _title(request)
    return Plan(title, tasks, lambda table: _draw(table, title, "" if request is None else request.loss_name))


def _title(request: NoiseRequest) -> str:
    return f"{request.question}, {request.loss_name} loss"


def _point(row: Row, request: NoiseRequest, limits: bool) -> Task:
    design = design_task(row, request, "noise")

    def compute() -> list[Row]:
        rows = [*design()]
        if limits and rows[0].get("bound") is not None:
            bound = rows[0]["bound"]
            rows.append({**row, "curve": "limit", "mechanism": "proven bound", "objective": bound, "bound": bound})
        return rows

    return compute


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    words = f"{loss} loss"
    once = one_run(table, hockey_stick_notions())
    dp = once[once["notion"].eq("dp") & once["mechanism"].eq("noise")]
    return {
        **budget_plots(once, dp, once, SERIES, title, words),
        **notion_plots(table, SERIES, title, words),
    }
