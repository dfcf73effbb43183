"""The trade-off of finite channels: least loss against ε, and against δ where the notion has one.

curve       what a row is
point       the least-loss channel, certified unless it is asked not to be
baseline    published mechanisms with the least parameter that meets the budget; exact laws, audited
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.families.channel.baselines import BASELINES, BudgetedQuery, published
from workbench.families.channel.family import FAMILY
from workbench.families.frontier_plan import LEAST_EPSILON, Plan, Plots, Row, Task, baseline_task, design_task
from workbench.families.frontier_plots import Series, budget_plots
from workbench.families.notion_points import notion_plots, notion_requests
from workbench.families.requirements import ratio_notions
from workbench.privacy.audit import audit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plan", "published_row"]

SERIES = {
    "channel": Series("best channel", 2), "clamped geometric": Series("clamped geometric", 7, ":"),
    "randomized response": Series("randomized response", 5, "--"),
    "clamped truncated geometric": Series("clamped truncated geometric", 4, ":"),
    "clamped discrete Gaussian": Series("clamped discrete Gaussian", 1, ":"),
    "clamped staircase": Series("clamped staircase", 0, ":"), "exponential": Series("exponential", 3, "-."),
}  # fmt: skip


def plan(question: Any, values: Mapping[str, Any]) -> Plan:
    """The plan of a channel frontier."""
    points = list(notion_requests(FAMILY, question, values))
    tasks: list[Task] = [design_task(row, request, "channel") for row, request in points]
    if values["baselines"]:
        tasks += [
            baseline_task(name, row, partial(published_row, request, name))
            for name in BASELINES
            for row, request in points
            if request.minimise == "loss" and request.notion in ratio_notions()
        ]
    if not points:
        return Plan("", [])
    request = points[0][1]
    title = f"{request.question!r}, {request.losses.name} loss"
    return Plan(title, tasks, lambda table: _draw(table, title, request.losses.name))


def published_row(query: BudgetedQuery, name: str) -> Row:
    """What a published mechanism costs. Raises NotApplicable."""
    reference = published(query, name)
    privacy = audit(reference.mechanism, query.epsilon or 0)
    return {
        "objective": reference.objective,
        "parameter": reference.value,
        "dp_delta": privacy.dp_delta.upper,
        "pure_epsilon": privacy.pure_epsilon,
        "private": reference.certified,
        "status": "audited",
        "failure": None,
    }


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    words = f"{loss} loss"
    plain = table[table["notion"].isin(ratio_notions()) & ~table["mechanism"].eq(LEAST_EPSILON)]
    ours = plain[plain["mechanism"].eq("channel")]
    return {**budget_plots(plain, ours, ours, SERIES, title, words), **notion_plots(table, SERIES, title, words)}
