"""Points of a trade-off under any notion: ε and δ, Rényi's order and ε, ρ, μ; and the least ε of error budgets.

notion                options that are crossed       column of the table
dp, pdp               epsilon, delta                 epsilon, delta
pure, metric          epsilon                        epsilon
renyi                 alpha, epsilon                 epsilon, alpha
zcdp, gdp             rho; mu                        rho; mu
curve, tradeoff       curve; tradeoff, scale         scale: of the budget, 1 as it is (`HockeySticks.scaled`)
any with an ε alone   budget, delta                  budget: the least ε of an error, its objective
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
from workbench.pipeline.option import MAX_LOSS, NOTION_PARAMETERS, Option, integer_reader
from workbench.pipeline.option import RUNS as ONE_RUN

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pipeline.frontier_plots import AllSeries

_FIGURES = 4  # against runs
LOSS_BUDGET = replace(
    MAX_LOSS,
    read=read_grid,
    help="Grid of errors: the least ε of each, of notions with ε and δ.",
    hot=False,
)
_GRIDS_OF_PARAMETERS = {
    "alpha": "Grid of orders > 1, with the notion renyi.",
    "rho": "Grid of ρ, with the notion zcdp.",
    "mu": "Grid of μ, with the notion gdp.",
}
NOTION_OPTIONS = (
    Option("epsilon", read_grid, help='Grid: "0.1:4:40" (equal steps), "0.1:4:40:log", "0.5,1,2"; of notions with an ε.'),
    Option("delta", read_grid, "0", "Grid of δ in [0, 1], as --epsilon."),
    *(
        replace(option, read=read_grid, help=_GRIDS_OF_PARAMETERS[option.name])
        if option.name in _GRIDS_OF_PARAMETERS
        else option
        for option in NOTION_PARAMETERS
    ),
    Option("scale", read_grid, "1", "Grid: ε of the curve times it; the weight, in (0, 1], of a trade-off function."),
    LOSS_BUDGET,
)  # fmt: skip


def _read_runs_grid(value: Any, name: str) -> tuple[int, ...]:
    """A grid of whole numbers."""
    read_count = integer_reader(1, 1024)
    return tuple(
        read_count(int(n) if n.denominator == 1 else float(n), name) for n in read_grid(value, name)
    )


RUNS_GRID = replace(
    ONE_RUN,
    read=_read_runs_grid,
    default=None,
    help="Grid of how many runs share the budget; one by default.",
    kind=str,
)


def _require_value(values: Values, name: str, named: str) -> Any:
    given = values[name]
    if not given:
        raise InvalidRequest(f"{name} must be given for the notion {named}. Got none.")
    return given


def list_budget_points(values: Values) -> Iterator[tuple[Row, Record]]:
    """(columns that name a point, the options of its request); those of the least ε of error budgets last. Raises
    InvalidRequest."""
    for named in values["notion"]:
        measure = get_notion(named)
        parameters = measure.parameters
        if values["max_loss"] and not values["epsilon"] and set(parameters) == {"epsilon", "delta"}:
            continue  # only the least ε is wanted
        if isinstance(measure, HockeySticks):
            (name,) = parameters
            budget = measure.parse(name, _require_value(values, name, named))
            for scale in values["scale"]:
                yield (
                    {"notion": named, "scale": float(scale)},
                    {"notion": named, name: measure.scale_budget(budget, scale)},
                )
            continue
        if not set(parameters) <= {"epsilon", "delta", "alpha", "rho", "mu"}:
            must(
                "notion",
                "one with an epsilon, rho, mu, curve or tradeoff to draw against",
                repr(named),
            )
        deltas = values["delta"] if measure.has_delta else [ZERO]
        names = [name for name in ("delta", "alpha", "rho", "mu", "epsilon") if name in parameters]
        for chosen in product(
            *(deltas if name == "delta" else _require_value(values, name, named) for name in names)
        ):
            point = dict(zip(names, chosen, strict=True))
            yield (
                {"notion": named, **{name: float(point[name]) for name in names}},
                {"notion": named, **point},
            )
    for named in values["notion"] if values["max_loss"] else ():
        measure = get_notion(named)
        if set(measure.parameters) != {"epsilon", "delta"}:
            continue
        for delta in values["delta"] if measure.has_delta else [ZERO]:
            for budget in values["max_loss"]:
                row = {"notion": named, "max_loss": float(budget), "delta": float(delta)}
                yield (
                    row,
                    {"notion": named, "delta": delta, "max_loss": budget, "minimise": "epsilon"},
                )


def list_notion_requests(kind: Family, question: Any, values: Values) -> Iterator[Point]:
    """(columns that name a point, its request) of a family whose requests take a notion, a loss and perhaps runs."""
    query = question or kind.parse_question(values)
    common = {
        name: values[name] for name in ("loss", "solver", "certify", "time_limit") if name in values
    }
    for row, given in [*list_budget_points(values)]:
        for runs in [{"runs": number} for number in values.get("runs") or ()] or [{}]:
            request = kind.make_request(query, **runs, **common, **given)
            yield {**row, "loss": str(request.loss_name), **runs}, request


def make_notion_plan(
    points: Sequence[Point],
    name: str,
    series: AllSeries,
    notions: Iterable[str],
    task: Callable[[Row, Any, str], Task] = make_design_task,
    title: str = "",
) -> Plan:
    """The plan of a frontier of `notion_requests`. name: of the designed mechanism; notions: with budgets (ε, δ); task:
    of a point; title: before question and loss."""
    if not points:
        return Plan("", [])
    request = points[0][1]
    words = f"{request.loss_name} loss"
    whole = f"{title}{request.question}, {words}"
    draw = partial(
        draw_notion_frontier, name=name, series=series, notions=[*notions], title=whole, words=words
    )
    return Plan(whole, [task(row, request, name) for row, request in points], draw)


def draw_notion_frontier(
    table: pd.DataFrame,
    name: str,
    series: AllSeries,
    notions: Sequence[str],
    title: str,
    words: str,
) -> Plots:
    """Every plot of such a frontier, by name; words: of the error."""
    from workbench.pipeline.frontier_plots import make_budget_plots

    once = table[table["notion"].isin(notions) & ~table["mechanism"].eq(LEAST_EPSILON)]
    once = once[once["runs"].fillna(1).eq(1)] if "runs" in once else once
    return {
        **make_budget_plots(once, name, series, title, words),
        **make_notion_plots(table, series, title, words),
    }


def make_notion_plots(table: pd.DataFrame, series: AllSeries, title: str, words: str) -> Plots:
    """Error against ρ, μ and Rényi's ε (one line per order), and the least ε against error budgets (per δ)."""

    from workbench.pipeline.frontier_plots import (  # slow to import
        Quantity,
        draw_panels,
        make_value_series,
    )

    error = Quantity("objective", words, True)

    def drawn(rows: pd.DataFrame, x: str, label: str, what: str) -> Any:
        return partial(
            draw_panels, rows, Quantity(x, label, True), error, series, f"{title}: {what}"
        )

    def of(name: str) -> pd.DataFrame:
        return table[table["notion"].eq(name)]

    renyi, is_least = of("renyi"), table["mechanism"].eq(LEAST_EPSILON)
    renyi, least = renyi[renyi["curve"].eq("point")], table[is_least]
    return {
        **_plot_against_runs(table[~is_least], series, title, f"{words} of one run"),
        "error_rho": drawn(of("zcdp"), "rho", "ρ", "zCDP"),
        "error_mu": drawn(of("gdp"), "mu", "μ", "GDP"),
        **{
            f"error_scale_{name}": drawn(of(name), "scale", "scale of the budget", name)
            for name in ("curve", "tradeoff")
        },
        "error_epsilon_renyi": partial(
            draw_panels,
            renyi,
            Quantity("epsilon", "ε", True),
            error,
            make_value_series(renyi.get("alpha", ()), "α = {:g}"),
            f"{title}: Rényi DP",
            by="alpha",
        ),
        "epsilon_budget": partial(
            draw_panels,
            least,
            Quantity("max_loss", words),
            Quantity("objective", "least ε", True),
            make_value_series(least.get("delta", ()), "δ = {:g}"),
            f"{title}: the least ε",
            by="delta",
        ),
    }


def _plot_against_runs(table: pd.DataFrame, series: AllSeries, title: str, words: str) -> Plots:
    """One figure for each budget (ε, δ) that several numbers of runs share."""
    from workbench.pipeline.frontier_plots import Quantity, add_baseline_series, draw_panels

    plots: Record = {}
    if "runs" not in table or table["runs"].nunique() < 2:
        return plots
    for k, ((epsilon, delta), rows) in enumerate(
        [*table[table["runs"].notna()].groupby(["epsilon", "delta"])][:_FIGURES]
    ):
        drawn = rows.groupby("mechanism")["runs"].nunique()
        plots["loss_runs" + (f"_{k + 1}" if k else "")] = partial(
            draw_panels,
            rows,
            Quantity("runs", "runs under one budget", True, has_value_ticks=True),
            Quantity("objective", words, True),
            {
                name: look
                for name, look in add_baseline_series(series, rows).items()
                if drawn.get(name, 0) > 1
            },
            f"{title}\nε = {epsilon:g}, δ = {delta:g}",
        )
    return plots
