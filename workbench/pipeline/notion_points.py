"""List the points of a frontier, one request for each budget, and plot the table of its designs.

A user gives a grid of numbers for each parameter of a notion. Every combination of the numbers is
one point. For example, --notion dp --epsilon 1,2 --delta 0,0.1 gives four points. Each point names
its budget in columns of the table:

notion                grids                          columns of the budget
dp, pdp               epsilon, delta                 epsilon, delta
pure, metric          epsilon                        epsilon
renyi                 alpha, epsilon                 epsilon, alpha
zcdp                  rho                            rho
gdp                   mu                             mu
curve, tradeoff       scale                          scale

The last row has one budget, the option --curve or --tradeoff, which every number of `scale` makes
weaker or stricter (`HockeySticks.scale_budget`).

With the grid `max_loss`, other points minimise ε instead of the loss. They exist for the notions
dp, pdp, pure and metric (δ = 0 for the last two). Their columns are max_loss and delta, and the
column objective is the minimal ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from workbench.data.parameter_grid import read_grid
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Record, Values
from workbench.notions import get_notion
from workbench.notions.curve import HockeySticks
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plan import (
    LEAST_EPSILON,
    Plan,
    Plots,
    Point,
    Row,
    Task,
    make_design_task,
)
from workbench.pipeline.option import MAX_LOSS, NOTION_PARAMETERS, RUNS, Option, integer_reader

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pipeline.frontier_plots import AllSeries

# At most this many figures show the loss against the number of runs, so that a fine grid of
# budgets does not write hundreds of files.
_MAX_RUNS_FIGURES = 4
_MAX_RUNS = 1024  # A larger number of runs is an error.
# The largest expected losses at which the minimal ε is computed.
_MAX_LOSS_GRID = replace(
    MAX_LOSS,
    read=read_grid,
    help="Grid of loss limits, instead of --epsilon. The smallest ε is computed for each limit. "
    "Only for notions with ε and δ.",
    hot=False,
)
_PARAMETER_GRID_HELP = {
    "alpha": "Grid of Rényi orders > 1, for --notion renyi.",
    "rho": "Grid of ρ, for --notion zcdp.",
    "mu": "Grid of μ, for --notion gdp.",
}


def _make_parameter_option(option: Option) -> Option:
    """Return the grid of a parameter of a notion. Curves and trade-off functions have no grid."""
    if option.name not in _PARAMETER_GRID_HELP:
        return option
    return replace(option, read=read_grid, help=_PARAMETER_GRID_HELP[option.name])


# The grids of the module header.
NOTION_OPTIONS = (
    Option(
        "epsilon",
        read_grid,
        help='Grid of ε: "0.1:4:40" (40 values, equal steps), "0.1:4:40:log" (equal ratios) or '
        '"0.5,1,2".',
    ),
    Option(
        "delta",
        read_grid,
        default="0",
        help="Grid of δ in [0, 1], in the form of --epsilon.",
    ),
    *map(_make_parameter_option, NOTION_PARAMETERS),
    Option(
        "scale",
        read_grid,
        default="1",
        help="Grid of factors. With --curve: every ε is multiplied by the factor. With --tradeoff: "
        "the factor s in (0, 1] mixes the function f(α) with perfect privacy, "
        "s f(α) + (1 - s)(1 - α).",
    ),
    _MAX_LOSS_GRID,
)


def _read_runs_grid(value: Any, name: str) -> tuple[int, ...]:
    """Read a grid of numbers of runs, such as "1:10:10". Raises InvalidRequest for a fraction."""
    read_count = integer_reader(minimum=1, maximum=_MAX_RUNS)
    counts = []
    for number in read_grid(value, name):
        # The reader refuses a fraction, and its message shows it as a float.
        count = int(number) if number.denominator == 1 else float(number)
        counts.append(read_count(count, name))
    return tuple(counts)


RUNS_GRID = replace(
    RUNS,
    read=_read_runs_grid,
    default=None,
    help="Grid of the number of runs that share the budget. Default: 1.",
    kind=str,
)


def _require_value(values: Values, name: str, notion: str) -> Any:
    """Return the value of an option that a notion needs. Raises InvalidRequest."""
    value = values[name]
    if not value:
        raise InvalidRequest(f"{name} must be given for the notion {notion}. Got none.")
    return value


def list_budget_points(values: Values) -> Iterator[tuple[Row, Record]]:
    """List the points of a frontier. The points that minimise ε come last.

    Args:
        values: Exact values of the options.

    Yields:
        The columns that name a point, as floats, and the options of its request, as exact numbers.

    Raises:
        InvalidRequest: An option that a notion needs is missing.
    """
    for name in values["notion"]:
        parameters = set(get_notion(name).parameters)
        minimises_only_epsilon = values["max_loss"] and not values["epsilon"]
        if minimises_only_epsilon and parameters == {"epsilon", "delta"}:
            continue
        if isinstance(get_notion(name), HockeySticks):
            yield from _list_scaled_points(name, values)
        else:
            yield from _list_parameter_points(name, values)
    if values["max_loss"]:
        for name in values["notion"]:
            yield from _list_least_epsilon_points(name, values)


def _list_scaled_points(name: str, values: Values) -> Iterator[tuple[Row, Record]]:
    """List the points of the notion curve or tradeoff, one for every scale."""
    notion = get_notion(name)
    assert isinstance(notion, HockeySticks)
    (parameter,) = notion.parameters
    budget = notion.parse(parameter, _require_value(values, parameter, name))
    for scale in values["scale"]:
        row = {"notion": name, "scale": float(scale)}
        yield row, {"notion": name, parameter: notion.scale_budget(budget, scale)}


def _list_parameter_points(name: str, values: Values) -> Iterator[tuple[Row, Record]]:
    """List the points of a notion whose parameters are numbers."""
    notion = get_notion(name)
    if not set(notion.parameters) <= {"epsilon", "delta", "alpha", "rho", "mu"}:
        rule = "one with an epsilon, rho, mu, curve or tradeoff to draw against"
        must("notion", rule, repr(name))
    parameter_order = ("delta", "alpha", "rho", "mu", "epsilon")
    names = [parameter for parameter in parameter_order if parameter in notion.parameters]
    grids = []
    for parameter in names:
        if parameter == "delta":
            grids.append(_list_deltas(name, values))
        else:
            grids.append(_require_value(values, parameter, name))
    for numbers in product(*grids):
        point = dict(zip(names, numbers, strict=True))
        row = {parameter: float(number) for parameter, number in point.items()}
        yield {"notion": name, **row}, {"notion": name, **point}


def _list_deltas(name: str, values: Values) -> Sequence[Any]:
    """Return the grid of δ of a notion, 0 if it has none."""
    if get_notion(name).has_delta:
        deltas: Sequence[Any] = values["delta"]
        return deltas
    return [ZERO]


def _list_least_epsilon_points(name: str, values: Values) -> Iterator[tuple[Row, Record]]:
    """List the points that minimise ε, one for each δ and each number of `max_loss`."""
    notion = get_notion(name)
    if set(notion.parameters) != {"epsilon", "delta"}:
        return  # Other notions have no single ε to minimise.
    for delta in _list_deltas(name, values):
        for max_loss in values["max_loss"]:
            row = {"notion": name, "max_loss": float(max_loss), "delta": float(delta)}
            options = {
                "notion": name,
                "delta": delta,
                "max_loss": max_loss,
                "minimise": "epsilon",
            }
            yield row, options


def list_notion_requests(kind: Family, question: Any, values: Values) -> Iterator[Point]:
    """List the points of a family whose requests have a notion, a loss and perhaps runs.

    Args:
        kind: The `Family`.
        question: The question. None: options describe it.
        values: Exact values of the options.

    Yields:
        The columns that name a point, and its request.
    """
    query = question or kind.parse_question(values)
    common_names = ("loss", "solver", "certify", "time_limit")
    common_options = {name: values[name] for name in common_names if name in values}
    runs_options: list[Record] = [{"runs": number} for number in values.get("runs") or ()]
    if not runs_options:
        runs_options = [{}]  # Without the option `runs`, the table has no such column.
    for budget_columns, budget_options in [*list_budget_points(values)]:
        for runs in runs_options:
            request = kind.make_request(query, **runs, **common_options, **budget_options)
            yield {**budget_columns, "loss": str(request.loss_name), **runs}, request


def make_notion_plan(
    points: Sequence[Point],
    name: str,
    series: AllSeries,
    notions: Iterable[str],
    task: Callable[[Row, Any, str], Task] = make_design_task,
    title: str = "",
) -> Plan:
    """Make the plan of a frontier from the points of `list_notion_requests`.

    Args:
        points: Columns and request of each point. All requests have the same question and loss.
        name: Name of the designed mechanism in the table and in the legends.
        series: Label, colour and line style of each mechanism, by name.
        notions: Notions whose loss is plotted against ε and δ.
        task: Function of the columns, the request and `name` that returns the task of a point.
        title: Text before question and loss in the title.
    """
    if not points:
        return Plan(title="", tasks=[])
    _, first_request = points[0]
    loss_label = f"{first_request.loss_name} loss"
    full_title = f"{title}{first_request.question}, {loss_label}"
    draw = partial(
        draw_notion_frontier,
        name=name,
        series=series,
        notions=[*notions],
        title=full_title,
        loss_label=loss_label,
    )
    return Plan(full_title, [task(row, request, name) for row, request in points], draw)


def draw_notion_frontier(
    table: pd.DataFrame,
    name: str,
    series: AllSeries,
    notions: Sequence[str],
    title: str,
    loss_label: str,
) -> Plots:
    """Return every plot of a frontier by its name. A plot is a function that draws the figure.

    Args:
        table: Rows of the frontier.
        name: Name of the designed mechanism in the table.
        series: Label, colour and line style of each mechanism, by name.
        notions: Notions whose loss is plotted against ε and δ.
        title: Title of the plots.
        loss_label: Label of the axis of the expected loss.
    """
    from workbench.pipeline.frontier_plots import make_budget_plots

    is_budget_notion = table["notion"].isin(notions)
    rows = table[is_budget_notion & ~table["mechanism"].eq(LEAST_EPSILON)]
    if "runs" in rows:
        rows = rows[rows["runs"].fillna(1).eq(1)]
    return {
        **make_budget_plots(rows, name, series, title, loss_label),
        **make_notion_plots(table, series, title, loss_label),
    }


def make_notion_plots(table: pd.DataFrame, series: AllSeries, title: str, loss_label: str) -> Plots:
    """Return plots of the loss against other parameters than (ε, δ), and of the minimal ε.

    The other parameters are runs, ρ, μ, the scale of a curve, and ε of Rényi DP.

    Args:
        table: Rows of the frontier.
        series: Label, colour and line style of each mechanism, by name.
        title: Title of the plots.
        loss_label: Label of the axis of the expected loss.
    """
    # This module is slow to import.
    from workbench.pipeline.frontier_plots import Quantity, draw_panels, make_value_series

    log_loss = Quantity("objective", loss_label, log=True)

    def plot_against(notion: str, column: str, label: str, subtitle: str) -> Any:
        """Return the plot of the loss of one notion against one column."""
        rows = table[table["notion"].eq(notion)]
        x_quantity = Quantity(column, label, log=True)
        return partial(draw_panels, rows, x_quantity, log_loss, series, f"{title}: {subtitle}")

    is_least_epsilon = table["mechanism"].eq(LEAST_EPSILON)
    least_epsilon_rows = table[is_least_epsilon]
    renyi_rows = table[table["notion"].eq("renyi") & table["curve"].eq("point")]
    plots = {
        **_plot_against_runs(table[~is_least_epsilon], series, title, f"{loss_label} of one run"),
        "error_rho": plot_against("zcdp", "rho", "ρ", "zCDP"),
        "error_mu": plot_against("gdp", "mu", "μ", "GDP"),
    }
    for name in ("curve", "tradeoff"):
        plot = plot_against(name, "scale", "scale of the budget", name)
        plots[f"error_scale_{name}"] = plot
    plots["error_epsilon_renyi"] = partial(
        draw_panels,
        renyi_rows,
        Quantity("epsilon", "ε", log=True),
        log_loss,
        make_value_series(renyi_rows.get("alpha", ()), "α = {:g}"),
        f"{title}: Rényi DP",
        by="alpha",
    )
    plots["epsilon_budget"] = partial(
        draw_panels,
        least_epsilon_rows,
        Quantity("max_loss", loss_label),
        Quantity("objective", "minimal ε", log=True),
        make_value_series(least_epsilon_rows.get("delta", ()), "δ = {:g}"),
        f"{title}: the minimal ε",
        by="delta",
    )
    return plots


def _plot_against_runs(
    table: pd.DataFrame, series: AllSeries, title: str, loss_label: str
) -> Plots:
    """Return one plot of the loss against the number of runs for each of the first budgets (ε, δ).

    Mechanisms with a single number of runs are left out, as they have no line.
    """
    from workbench.pipeline.frontier_plots import Quantity, add_baseline_series, draw_panels

    plots: Record = {}
    if "runs" not in table or table["runs"].nunique() < 2:
        return plots
    rows_by_budget = [*table[table["runs"].notna()].groupby(["epsilon", "delta"])]
    for k, ((epsilon, delta), rows) in enumerate(rows_by_budget[:_MAX_RUNS_FIGURES]):
        run_counts = rows.groupby("mechanism")["runs"].nunique()
        styles = add_baseline_series(series, rows)
        lines = {name: style for name, style in styles.items() if run_counts.get(name, 0) > 1}
        plots["loss_runs" + (f"_{k + 1}" if k else "")] = partial(
            draw_panels,
            rows,
            Quantity("runs", "runs under one budget", log=True, has_value_ticks=True),
            Quantity("objective", loss_label, log=True),
            lines,
            f"{title}\nε = {epsilon:g}, δ = {delta:g}",
        )
    return plots
