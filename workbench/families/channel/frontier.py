"""The trade-off of finite channels: least loss against ε, and against δ where the notion has one.

curve       what a row is
point       the least-loss channel, certified unless it is asked not to be
baseline    published mechanisms with the least parameter that meets the budget; exact laws, audited
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.exact.objects import Values
from workbench.families.channel.family import FAMILY
from workbench.pipeline.frontier_plan import Plan
from workbench.pipeline.frontier_plots import Series
from workbench.pipeline.notion_points import list_notion_requests, make_notion_plan
from workbench.pipeline.requirements import list_ratio_notions

if TYPE_CHECKING:
    pass


SERIES = {
    "channel": Series("best channel", 2), "clamped geometric": Series("clamped geometric", 7, "-", width=3.0),
    "randomized response": Series("randomized response", 5, "--"),
    "clamped truncated geometric": Series("clamped truncated geometric", 4, (0, (5, 1, 1, 1, 1, 1))),
    "clamped discrete Gaussian": Series("clamped discrete Gaussian", 1, "--"),
    "clamped staircase": Series("clamped staircase", 0, ":"), "exponential": Series("exponential", 3, "-."),
    "planar Laplace, remapped": Series("planar Laplace, remapped", 7, ":"),
    "planar exponential": Series("planar exponential", 3, "-."),
    "permute-and-flip": Series("permute-and-flip", 6, "-."),
}  # fmt: skip


def plan_channel_frontier(question: Any, values: Values) -> Plan:
    """The plan of a channel frontier."""
    points = [*list_notion_requests(FAMILY, question, values)]
    plan = make_notion_plan(points, "channel", SERIES, list_ratio_notions(), title="Best channel, ")
    separations = dict.fromkeys(request.question.separation for _, request in points)
    return replace(plan, sentences=tuple(words for words in separations if words))
