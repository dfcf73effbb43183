"""Plan the trade-off of noise: the least loss against the budget, and the least ε against the loss.

curve       what a row is
point       the noise with the smallest expected loss at a budget, certified unless the option
            certify is off, with a lower bound for all noise. For several runs: the best noise
            found, without a bound
level       the least ε at which the expected loss is at most a limit. The column `mechanism` is
            "least epsilon" and the column `objective` is this ε
baseline    published noise at the same budget, in floating point, for comparison only
"""

from __future__ import annotations

from typing import Any

from workbench.exact.objects import Values
from workbench.families.noise.family import FAMILY
from workbench.pipeline.frontier_plan import Plan, make_design_task
from workbench.pipeline.frontier_plots import Series
from workbench.pipeline.notion_points import list_notion_requests, make_notion_plan
from workbench.pipeline.requirements import list_hockey_stick_notions

# The legend, colour and line style of every mechanism in plots.
SERIES = {
    "noise": Series("optimal noise", 2),
    "geometric": Series("geometric", colour=7, dash=":"),
    "truncated geometric": Series("truncated geometric", colour=4, dash="--"),
    "discrete Gaussian": Series("discrete Gaussian", colour=5, dash="--"),
    "rounded Gaussian": Series("rounded Gaussian", colour=3, dash=":"),
    "staircase": Series("staircase", colour=1, dash="-."),
    "staircase (pure)": Series("staircase (pure)", colour=4, dash="-."),
    "Laplace": Series("Laplace", colour=7, dash=":"),
    "uniform": Series("uniform", colour=0, dash=":"),
    "truncated Laplace": Series("truncated Laplace", colour=6, dash="--"),
    "Gaussian": Series("Gaussian", colour=5, dash="--"),
}


def plan_noise_frontier(question: Any, values: Values) -> Plan:
    """Plan a frontier of noise.

    Args:
        question: the noise, or None if options describe it.
        values: the exact values of the options, by name.

    Returns:
        The plan: title, tasks that each compute rows of the table, and plots.

    Raises:
        InvalidRequest: a request of the frontier is invalid.
    """
    requests = [*list_notion_requests(FAMILY, question, values)]
    series = SERIES
    if any(columns.get("runs", 1) > 1 for columns, _ in requests):
        # No lower bound is proven for several runs, so the noise is not called optimal.
        series = SERIES | {"noise": Series("best noise found", 2)}
    return make_notion_plan(
        requests, "noise", series, list_hockey_stick_notions(), make_design_task
    )
