"""The trade-off of quantizers: exact error of unbiased ε-private quantizers against ε and the number of outputs.

curve       what a row is
point       a designed quantizer, certified; `levels` outputs, `objective` its exact error in the asked loss. `bound`
            holds for every choice of outputs within the reach (exact; see `design_quantizer`)
baseline    RQM (best of a grid of outer outputs, largest q) and PBM (its largest θ) with so many outputs; Laplace with
            a real number as output
limit       [bound, objective] holds the least MAE with any outputs whatever (uniform inputs)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.exact.objects import Values
from workbench.families.quantizer.family import list_quantizer_points
from workbench.families.quantizer.limit import compute_mae_limit
from workbench.pipeline.frontier_plan import Plan, Plots, Row, make_baseline_task, make_design_task
from workbench.pipeline.frontier_plots import Quantity, Series, add_baseline_series, draw_panels
from workbench.pipeline.outcome import translate_errors

if TYPE_CHECKING:
    import pandas as pd

    from workbench.families.quantizer.request import QuantizerRequest
    from workbench.pipeline.design import Design


SERIES = {
    "exact": Series("exact quantizer, outputs within 2x the least reach", 0),
    "product": Series("product optimum", 5), "optm": Series("OPTM", 1), "mvu": Series("MVU", 2),
    "rqm": Series("RQM", 3, "--", has_jumps=True), "pbm": Series("PBM", 4, "--"),
    "laplace": Series("Laplace, any real output", 7, ":"),
}  # fmt: skip


def plan_quantizer_frontier(question: Any, values: Values) -> Plan:
    """The plan of a quantizer frontier on inputs in [-1, 1]. Raises InvalidRequest."""
    tasks = [
        make_design_task(row, request, request.how.method, _of_the_mechanism)
        for row, request in list_quantizer_points(question, values)
    ]
    plain = list(list_quantizer_points(question, {**values, "method": ("exact",)}))
    first = [(row, request) for row, request in plain if request.question == plain[0][1].question]
    unlimited = [({**row, "levels": None}, request) for row, request in first]
    request = plain[0][1]
    if request.aim.loss == "absolute" and request.question.density.shape is None:
        tasks += [
            make_baseline_task("any outputs", row, partial(_limit, request), "limit")
            for row, request in unlimited
        ]
    title = f"Unbiased quantizers of x in [-1, 1], {request.question.density.name} inputs"
    return Plan(title, tasks, lambda table: _draw(table, title, str(request.aim.loss)))


def _of_the_mechanism(design: Design) -> Row:
    """The error of the mechanism itself, whatever its method minimised."""
    request, quantizer = design.request, design.mechanism
    error = quantizer.expected_loss(request.aim.loss, request.question.density)
    bound = design.bound if request.how.method == "exact" else None
    return {"objective": error, "reach": float(quantizer.outputs[-1]), "bound": bound}


def _limit(request: QuantizerRequest) -> Row:
    with translate_errors():
        limit = compute_mae_limit(float(request.claim.epsilon))
    return {"objective": limit.upper, "bound": limit.lower, "status": "bounds"}


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    error = {"absolute": "mean absolute error", "squared": "mean squared error"}.get(
        loss, f"error {loss}"
    )
    series, epsilon, logged = (
        add_baseline_series(SERIES, table),
        Quantity("epsilon", "ε"),
        Quantity("objective", error, True),
    )
    return {
        "error_epsilon": partial(
            draw_panels,
            table,
            epsilon,
            logged,
            series,
            f"{title}: error against ε",
            panel=Quantity("levels", "{:g} outputs"),
        ),
        "error_levels": partial(
            draw_panels,
            table,
            Quantity("levels", "number of outputs", has_value_ticks=True),
            logged,
            series,
            f"{title}: error against outputs",
            panel=Quantity("epsilon", "ε = {:.3g}"),
        ),
    }
