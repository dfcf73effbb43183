"""The trade-off of label randomizers: least expected loss against ε, and against δ where the notion has one.

curve       what a row is
point       a designed randomizer: bins (optimal over all real outputs), the channel LP on the labels themselves
            (pure, or DP where δ > 0), the unbiased randomizer
baseline    clipped Laplace and staircase noise, the exponential mechanism, RRWithPrior, k-ary randomized response;
            exact expectations, pure ε by construction
"""

from __future__ import annotations

from typing import Any

from workbench.errors import must
from workbench.exact.objects import Values
from workbench.families.labels.family import list_frontier_requests
from workbench.pipeline.frontier_plan import Plan, make_design_task
from workbench.pipeline.frontier_plots import Series, make_budget_plots

SERIES = {
    "bins": Series("RR-on-Bins", 0), "lp": Series("channel LP on the labels", 2),
    "unbiased": Series("unbiased randomizer", 1),
    "laplace": Series("clipped Laplace", 7, ":"), "staircase": Series("clipped staircase", 4, "--"),
    "exponential": Series("exponential mechanism", 3, "-."), "RRWithPrior": Series("RRWithPrior", 6, "--"),
    "k-ary RR": Series("k-ary randomized response", 5, ":"),
}  # fmt: skip


def plan_label_frontier(question: Any, values: Values) -> Plan:
    """The plan of a label frontier. Raises InvalidRequest."""
    if any(values["delta"]) and "lp" not in values["method"]:
        must("method", "lp among others where delta > 0", repr(",".join(values["method"])))
    tasks = [
        make_design_task(row, request, request.how.method)
        for row, request in list_frontier_requests(question, values)
    ]
    labels, loss = question or values["labels"], values["loss"]
    title = f"Randomizers of {labels}, {loss} loss"
    words = f"expected {loss} loss"
    return Plan(
        title,
        tasks,
        lambda table: make_budget_plots(table.assign(notion="dp"), "lp", SERIES, title, words),
    )
