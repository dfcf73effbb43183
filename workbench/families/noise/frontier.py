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
from workbench.families.frontier_plan import Plan, Row, Task, design_task
from workbench.families.frontier_plots import Series
from workbench.families.noise.family import FAMILY
from workbench.families.notion_points import notion_plan, notion_requests
from workbench.families.requirements import hockey_stick_notions

if TYPE_CHECKING:
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
    points = [*notion_requests(FAMILY, question, values)]
    task = _with_limit if len({request.runs for _, request in points}) > 1 else design_task
    return notion_plan(points, "noise", SERIES, hockey_stick_notions(), task)


def _with_limit(row: Row, request: NoiseRequest, name: str) -> Task:
    design = design_task(row, request, name)

    def compute() -> list[Row]:
        rows = [*design()]
        if rows[0].get("bound") is not None:
            bound = rows[0]["bound"]
            rows.append({**row, "curve": "limit", "mechanism": "proven bound", "objective": bound, "bound": bound})
        return rows

    return compute
