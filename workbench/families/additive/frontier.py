"""The trade-off of noise on the integers and the reals: least cost against a budget, and least ε against a cost.

curve       what a row is
point       the least-cost noise, certified unless it is asked not to be, with its bound on all noise
level       the least ε of an error budget (mechanism "least epsilon", its objective)
baseline    known noise at the same budget, in floating point: for comparison only
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from models.oracles.canonical_noise import discrete_gaussian, rounded_gaussian
from workbench.families.additive.beside import beside
from workbench.families.additive.family import FAMILY
from workbench.families.frontier_plan import Plan, Plots, Row, Task, design_row
from workbench.families.frontier_plots import Series, by_panel, few, heat, lines
from workbench.families.notion_points import LEAST_EPSILON, notion_plots
from workbench.mechanisms.integer_noise import IntegerNoise

if TYPE_CHECKING:
    import pandas as pd

    from workbench.families.additive.request import AdditiveRequest

__all__ = ["plan"]

SERIES = {
    "noise": Series("best noise", 2), "geometric": Series("geometric", 7, ":"),
    "truncated geometric": Series("truncated geometric", 4, "--"),
    "discrete Gaussian": Series("discrete Gaussian", 5, "--"), "rounded Gaussian": Series("rounded Gaussian", 3, ":"),
    "staircase (pure)": Series("staircase (pure)", 4, "-."), "Laplace (pure)": Series("Laplace (pure)", 7, ":"),
    "truncated Laplace": Series("truncated Laplace", 6, "--"), "Gaussian": Series("Gaussian", 5, "--"),
}  # fmt: skip


def plan(points: Sequence[tuple[Row, AdditiveRequest]], *, baselines: bool = True) -> Plan:
    """The plan of a frontier of noise. points: columns that name a point, its request."""
    tasks: list[Task] = [_point(row, request) for row, request in points]
    if baselines:
        tasks += [partial(_baselines, row, request) for row, request in points if request.minimise == "error"]
    request = points[0][1] if points else None
    title = "" if request is None else f"{request.question!r}, {request.cost_name} cost"
    return Plan(title, tasks, lambda table: _draw(table, title, "" if request is None else request.cost_name))


def _point(row: Row, request: AdditiveRequest) -> Task:
    least = request.minimise == "epsilon"
    known = {"curve": "level", "mechanism": LEAST_EPSILON} if least else {"curve": "point", "mechanism": "noise"}

    def compute() -> list[Row]:
        with FAMILY.open(request) as session:
            return [design_row(session.design, **known, **row)]

    return compute


def _baselines(row: Row, request: AdditiveRequest) -> list[Row]:
    found = beside(request)
    if request.convex and isinstance(request.question, IntegerNoise) and request.line_cost.even:
        values, d = request.claim.values, request.question.sensitivity

        def cost(eta: int) -> float:
            return float(request.line_cost.at(eta))

        if request.notion == "gdp":
            found = [("rounded Gaussian", rounded_gaussian(float(values["mu"]) / d, cost))]
        if request.notion in ("zcdp", "renyi"):
            ratio = 1 / values["rho"] if request.notion == "zcdp" else values["alpha"] / values["epsilon"]
            found = [("discrete Gaussian", discrete_gaussian(d * d * float(ratio) / 2, cost))]
    known = {"curve": "baseline", "status": "closed form", **row}
    return [known | {"mechanism": name, "objective": value} for name, value in found]


def _draw(table: pd.DataFrame, title: str, cost: str) -> Plots:
    said, ours = f"{cost} cost", table[table["mechanism"].eq("noise")]
    plain = table[table["notion"].isin(["dp", "pure"]) & ~table["mechanism"].eq(LEAST_EPSILON)]
    least = plain[plain["delta"].eq(plain["delta"].min())] if len(plain) else plain
    dp = ours[ours["notion"].eq("dp")]
    series = {delta: Series(f"δ = {delta:g}", k) for k, delta in enumerate(few(dp["delta"].dropna().tolist(), 6))}
    return {
        "error_epsilon": partial(lines, least, "epsilon", "ε", said, "mechanism", SERIES, f"{title}: least δ"),
        "error_epsilon_delta": partial(
            lines, dp if len(series) > 1 else dp[:0], "epsilon", "ε", said, "delta", series, f"{title}, per δ"
        ),
        "error_delta": partial(
            by_panel, plain, "epsilon", "delta", "δ", said, SERIES, f"{title} against δ", panel="ε = {:.3g}"
        ),
        "heat_map": partial(heat, dp, "epsilon", "delta", "ε", "δ (one row each)", said, title),
        **notion_plots(table, SERIES, title, said),
    }  # fmt: skip
