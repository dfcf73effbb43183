"""Plan the trade-off of quantizers: exact error against ε and the number of outputs.

The column `curve` says what a row is. `levels`, `objective` and `bound` are other columns.

curve       what a row is
point       a designed and certified quantizer with `levels` outputs. `objective` is its exact error
            in the requested loss. With method exact, `bound` is a lower bound for all outputs
            within the reach
baseline    a published mechanism. RQM (randomized quantization) has the best outermost outputs of
            a grid and the largest private selection probability q. PBM (Poisson binomial) has its
            largest private parameter θ. Both have `levels` outputs. Laplace noise has any real
            number as output
biased      a biased quantizer (Cai et al. 2024, Sec. 5), if `biased` is one of the methods.
            `objective` is its error and `bias` the largest |E M(x) - x|. No other one of the
            search has a smaller bias and a smaller error
limit       the interval from `bound` to `objective` contains the smallest mean absolute error with
            any outputs, for uniform inputs
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import NotProven
from workbench.exact.objects import Values
from workbench.families.quantizer.biased import trace_biased_quantizers
from workbench.families.quantizer.family import list_quantizer_points
from workbench.families.quantizer.limit import compute_mae_limit
from workbench.families.quantizer.search import SearchClock
from workbench.pipeline.frontier_plan import (
    Plan,
    Plots,
    Row,
    Task,
    make_baseline_task,
    make_design_task,
    make_failed_row,
)
from workbench.pipeline.frontier_plots import Quantity, Series, add_baseline_series, draw_panels
from workbench.pipeline.outcome import translate_errors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.families.quantizer.request import QuantizerRequest
    from workbench.pipeline.design import Design


# The legend, colour and line style of every mechanism in plots.
SERIES = {
    # The default reach: outputs may be twice as large as the smallest feasible outermost output.
    "exact": Series("exact quantizer, outputs within 2x the least reach", colour=0),
    "product": Series("product optimum", colour=5),
    "optm": Series("OPTM", colour=1),
    "mvu": Series("MVU", colour=2),
    "erm": Series("ERM", colour=6, dash="--", has_jumps=True),
    "rqm": Series("RQM", colour=3, dash="--", has_jumps=True),
    "pbm": Series("PBM", colour=4, dash="--"),
    "laplace": Series("Laplace, any real output", colour=7, dash=":"),
}

_UNBIASED_COLOUR_OFFSET = 4  # In the plot of the bias, unbiased points follow this many colours.
_ERROR_NAMES = {"absolute": "mean absolute error", "squared": "mean squared error"}


def plan_quantizer_frontier(question: Any, values: Values) -> Plan:
    """Plan a quantizer frontier on inputs in [-1, 1].

    Args:
        question: a question with levels, or None if options describe it.
        values: the exact values of the options.

    Raises:
        InvalidRequest: a request of the frontier is invalid.
    """
    methods = [method for method in values["method"] if method != "biased"]
    tasks: list[Task] = [
        make_design_task(columns, request, request.how.method, _list_mechanism_columns)
        for columns, request in list_quantizer_points(question, {**values, "method": methods})
    ]
    exact_points = [*list_quantizer_points(question, {**values, "method": ("exact",)})]
    _, first_request = exact_points[0]
    if first_request.aim.loss == "absolute" and first_request.question.density.shape is None:
        # The limit is the same for all numbers of outputs, so one of them is enough for each ε.
        for columns, request in exact_points:
            if request.question == first_request.question:
                limit_columns = {**columns, "levels": None}
                compute_limit = partial(_compute_limit_columns, request)
                tasks.append(
                    make_baseline_task("any outputs", limit_columns, compute_limit, "limit")
                )
    if "biased" in values["method"]:
        tasks += [partial(_list_biased_rows, *point) for point in exact_points]
    density = first_request.question.density.name
    inputs = f"x in [-1, 1], {density} inputs"
    title = f"Unbiased quantizers of {inputs}"
    loss = str(first_request.aim.loss)
    return Plan(title, tasks, draw=lambda table: _draw_quantizer_frontier(table, inputs, loss))


def _list_mechanism_columns(design: Design) -> Row:
    """Return the columns objective (the exact error), reach and bound of a design.

    The methods optm and mvu minimise another objective, so their bound is left out.
    """
    request = design.request
    quantizer = design.mechanism
    error = quantizer.expected_loss(request.aim.loss, request.question.density)
    bound = design.bound if request.how.method == "exact" else None
    return {"objective": error, "reach": float(quantizer.outputs[-1]), "bound": bound}


def _list_biased_rows(columns: Row, request: QuantizerRequest) -> list[Row]:
    """List the rows of biased quantizers at one ε and number of outputs."""
    question = request.law_question
    columns = {"curve": "biased", "mechanism": "biased", **columns}
    clock = SearchClock(question.deadline)
    try:
        points = trace_biased_quantizers(request.question.levels, question, clock)
    except NotProven as error:
        return [make_failed_row(error, **columns)]
    rows = []
    for point in points:
        quantizer = point.quantizer
        row = {
            **columns,
            "objective": point.error,
            "bias": point.bias,
            "pure_epsilon": quantizer.epsilon,
            "mae": quantizer.mae(question.density),
            "mse": quantizer.mse(question.density),
            "reach": float(quantizer.bins[-1]),
            "status": "time_limit" if clock.is_stopped else "searched",
        }
        rows.append(row)
    return rows


def _compute_limit_columns(request: QuantizerRequest) -> Row:
    """Compute the interval that contains the least MAE with any outputs."""
    with translate_errors():
        limit = compute_mae_limit(float(request.claim.epsilon))
    return {"objective": limit.upper, "bound": limit.lower, "status": "bounds"}


def _draw_quantizer_frontier(table: pd.DataFrame, inputs: str, loss: str) -> Plots:
    """Return the functions that draw the plots of a frontier, by name."""
    title = f"Unbiased quantizers of {inputs}"
    series = add_baseline_series(SERIES, table)
    biased_rows = table[table["curve"] == "biased"]
    table = table[table["curve"] != "biased"]
    epsilon = Quantity("epsilon", "ε")
    error = Quantity("objective", _ERROR_NAMES.get(loss, f"error {loss}"), log=True)
    return {
        "error_epsilon": partial(
            draw_panels,
            table,
            epsilon,
            error,
            series,
            f"{title}: error against ε",
            panel=Quantity("levels", "{:g} outputs"),
        ),
        "error_levels": partial(
            draw_panels,
            table,
            Quantity("levels", "number of outputs", has_value_ticks=True),
            error,
            series,
            f"{title}: error against outputs",
            panel=Quantity("epsilon", "ε = {:.3g}"),
        ),
        "error_bias": partial(
            _draw_bias, biased_rows, table[table["mechanism"] == "exact"], error, inputs
        ),
    }


def _draw_bias(
    rows: pd.DataFrame, unbiased_rows: pd.DataFrame, error: Quantity, inputs: str
) -> Figure | None:
    """Draw the error of biased quantizers against their bias. Returns None without any.

    The optimal unbiased quantizers of the same table are points at bias 0.
    """
    import pandas as pd

    if rows.empty:
        return None
    series = {}
    parts = []
    for k, levels in enumerate(sorted(rows["levels"].unique())):
        biased = rows[rows["levels"] == levels].assign(curve="point", series=f"biased {levels:g}")
        series[f"biased {levels:g}"] = Series(f"biased, {levels:g} outputs", colour=k)
        parts.append(biased)
        unbiased = unbiased_rows[unbiased_rows["levels"] == levels]
        if not unbiased.empty:
            name = f"unbiased {levels:g}"
            # Without bounds no band is drawn.
            parts.append(unbiased.assign(bias=0.0, series=name, bound=float("nan")))
            label = f"unbiased (exact), {levels:g} outputs"
            series[name] = Series(label, colour=k + _UNBIASED_COLOUR_OFFSET)
    rows = pd.concat(parts)
    return draw_panels(
        rows,
        Quantity("bias", "largest bias |E M(x) - x|"),
        error,
        series,
        f"Biased quantizers of {inputs}: error against bias",
        by="series",
        panel=Quantity("epsilon", "ε = {:.3g}"),
    )
