"""The trade-off of noise on the integers and the reals: least loss against a budget, and least ε against a loss.

curve       what a row is
point       the least-loss noise, certified unless it is asked not to be, with its bound on all noise (for many runs: on
            symmetric noise)
limit       that bound as a curve of its own, where numbers of runs are compared
level       the least ε of an error budget (mechanism "least epsilon", its objective)
baseline    known noise at the same budget, in floating point: for comparison only
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from models.oracles.canonical_noise import discrete_gaussian, rounded_gaussian
from workbench.exact.objects import Values
from workbench.families.frontier_plan import LEAST_EPSILON, Plan, Plots, Row, Task, design_task
from workbench.families.frontier_plots import Series, budget_plots
from workbench.families.noise.family import FAMILY
from workbench.families.noise.published import beside
from workbench.families.notion_points import notion_plots, notion_requests
from workbench.families.requirements import hockey_stick_notions
from workbench.mechanisms.integer_noise import IntegerNoise

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
    if values["baselines"]:
        tasks += [partial(_baselines, row, request) for row, request in points if request.minimise == "loss"]
    request = points[0][1] if points else None
    title = "" if request is None else f"{request.question!r}, {request.loss_name} loss"
    return Plan(title, tasks, lambda table: _draw(table, title, "" if request is None else request.loss_name))


def _point(row: Row, request: NoiseRequest, limits: bool) -> Task:
    design = design_task(row, request, "noise")

    def compute() -> list[Row]:
        rows = [*design()]
        if limits and rows[0].get("bound") is not None:
            bound = rows[0]["bound"]
            rows.append({**row, "curve": "limit", "mechanism": "proven bound", "objective": bound, "bound": bound})
        return rows

    return compute


def _baselines(row: Row, request: NoiseRequest) -> list[Row]:
    losses = beside(request)
    if request.convex and isinstance(request.question, IntegerNoise) and request.line_losses[0].even:
        values, d = request.claim.values, request.question.sensitivity

        def loss(eta: int) -> float:
            return float(request.line_losses[0].at(eta))

        if (mu := request.claim.notion.gaussian_mu(values)) is not None:
            losses = [("rounded Gaussian", rounded_gaussian(float(mu) / d, loss))]
        if (variance := request.claim.notion.gaussian_variance(values)) is not None:
            losses = [("discrete Gaussian", discrete_gaussian(d * d * float(variance), loss))]
    known = {"curve": "baseline", "status": "closed form", **row}
    return [known | {"mechanism": name, "objective": value} for name, value in losses]


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    words = f"{loss} loss"
    plain = table[table["notion"].isin(hockey_stick_notions()) & ~table["mechanism"].eq(LEAST_EPSILON)]
    once = plain[plain["runs"].eq(1)] if "runs" in plain else plain
    dp = once[once["notion"].eq("dp") & once["mechanism"].eq("noise")]
    return {
        **budget_plots(once, dp, once, SERIES, title, words),
        **notion_plots(table, SERIES, title, words),
    }
