"""Plan the frontier of label randomizers: the smallest expected loss for many ε (and δ for the
channel LP), beside published randomizers.

curve       meaning of a row
point       a designed randomizer: bins (optimal over all real outputs), the channel LP on the
            labels themselves (pure, or DP with δ > 0), or the unbiased randomizer
baseline    clipped Laplace and staircase noise, the exponential mechanism, RRWithPrior, k-ary
            randomized response; exact expectations, pure ε by construction
"""

from __future__ import annotations

from typing import Any

from workbench.errors import must
from workbench.exact.objects import Values
from workbench.families.labels.family import list_frontier_requests
from workbench.pipeline.frontier_plan import Plan, make_design_task
from workbench.pipeline.frontier_plots import Series, make_budget_plots

# The colour and the line of every series of a plot.
SERIES = {
    # At δ = 0 the channel LP may have the same losses, and is drawn above this line.
    "bins": Series("RR-on-Bins", 0, width=3.5, marker_size=7.0),
    "lp": Series("channel LP on the labels", 2),
    "unbiased": Series("unbiased randomizer", 1),
    "laplace": Series("clipped Laplace", colour=7, dash=":"),
    "staircase": Series("clipped staircase", colour=4, dash="--"),
    "exponential": Series("exponential mechanism", colour=3, dash="-."),
    "RRWithPrior": Series("RRWithPrior", colour=6, dash="--"),
    "k-ary RR": Series("k-ary randomized response", colour=5, dash=":"),
}


def plan_label_frontier(question: Any, values: Values) -> Plan:
    """Make the plan of a frontier of label randomizers.

    Args:
        question: labels with a prior. None: the options define them.
        values: option -> value.

    Raises:
        InvalidRequest: a δ > 0 is given, and no method supports it.
    """
    if any(values["delta"]) and "lp" not in values["method"]:
        rule = "lp, alone or among others, if delta > 0"
        must("method", rule, repr(",".join(values["method"])))
    points = list_frontier_requests(question, values)
    tasks = [make_design_task(row, request, request.how.method) for row, request in points]
    labels = question or values["labels"]
    loss = values["loss"]
    title = f"Randomizers of {labels}, {loss} loss"
    axis_label = f"expected {loss} loss"
    return Plan(
        title,
        tasks,
        draw=lambda table: make_budget_plots(
            table.assign(notion="dp"), "lp", SERIES, title, axis_label
        ),
    )
