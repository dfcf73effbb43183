"""The trade-off of noise on the integers and the reals: least loss against a budget, and least ε against a loss.

curve       what a row is
point       the least-loss noise, certified unless it is asked not to be, with its bound on all noise; for many runs
            the best noise found, without a bound
level       the least ε of an error budget (mechanism "least epsilon", its objective)
baseline    known noise at the same budget, in floating point: for comparison only
"""

from __future__ import annotations

from typing import Any

from workbench.exact.objects import Values
from workbench.families.noise.family import FAMILY
from workbench.pipeline.frontier_plan import Plan, make_design_task
from workbench.pipeline.frontier_plots import Series
from workbench.pipeline.notion_points import list_notion_requests, make_notion_plan
from workbench.pipeline.requirements import list_hockey_stick_notions

SERIES = {
    "noise": Series("best noise", 2), "geometric": Series("geometric", 7, ":"),
    "truncated geometric": Series("truncated geometric", 4, "--"),
    "discrete Gaussian": Series("discrete Gaussian", 5, "--"), "rounded Gaussian": Series("rounded Gaussian", 3, ":"),
    "staircase": Series("staircase", 1, "-."),
    "staircase (pure)": Series("staircase (pure)", 4, "-."), "Laplace": Series("Laplace", 7, ":"),
    "uniform": Series("uniform", 0, ":"),
    "truncated Laplace": Series("truncated Laplace", 6, "--"), "Gaussian": Series("Gaussian", 5, "--"),
}  # fmt: skip


def plan_noise_frontier(question: Any, values: Values) -> Plan:
    """The plan of a frontier of noise."""
    points = [*list_notion_requests(FAMILY, question, values)]
    return make_notion_plan(points, "noise", SERIES, list_hockey_stick_notions(), make_design_task)
