"""Make the figures of a frontier from its table of rows alone.

Each figure is a declaration that `workbench.io.drawing` draws. The column "curve" of the table says
what a row is: a point, a piece, a level, a limit or a baseline
(`workbench.pipeline.frontier_plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.objects import Record
from workbench.io.figures import COLOURS, MARKERS, PAGE_INCHES, SCREEN_INCHES, SOLVER_MARKER_STYLE
from workbench.io.result import Plots
from workbench.notions import get_notion
from workbench.notions.dp import DeltaNotion

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.exact.objects import FloatPair

# Largest number of panels in a row, and of numeric values that get a panel each.
_MAX_COLUMNS = 4
# A relative gap above this is drawn as a band.
_MIN_BAND_GAP = 1e-6
# An absolute gap up to this is rounding.
_ROUNDING_GAP = 1e-12
# A δ below this share of the axis cannot be distinguished from 0 on a linear axis.
_MIN_DELTA_SHARE = 0.02
# Losses that differ by more than this factor are drawn on a logarithmic axis.
_LOG_AXIS_MIN_RATIO = 30.0
# An exact piece has this many points, because a logarithmic axis bends it.
_PIECE_POINTS = 60
# Curves of these names are computed points and have markers.
_COMPUTED_CURVES = ("point", "level")
# This is the look of a proven interval.
_BAND: Record = {"kind": "band", "alpha": 0.25}


@dataclass(frozen=True)
class Series:
    """How a mechanism is drawn.

    Attributes:
        label: Name in the legend.
        colour: Index of its colour and marker.
        dash: Matplotlib's line style.
        has_jumps: Whether its error jumps as the budget grows, as a minimum of finitely many
            errors.
        width: Width of the line in points.
    """

    label: str
    colour: int
    dash: Any = "-"
    has_jumps: bool = False
    width: float = 1.5


AllSeries = Mapping[str, Series]


@dataclass(frozen=True)
class Quantity:
    """What an axis or the panels of a figure show.

    Attributes:
        column: Column of the table.
        label: Label of the axis. For panels, a format of the value.
        log: Whether the axis is logarithmic.
        axis_end: Where the axis ends. None: at the data.
        has_value_ticks: Whether the axis has ticks at the values themselves.
    """

    column: str
    label: str
    log: bool = False
    axis_end: float | None = None
    has_value_ticks: bool = False


def thin_values(values: Iterable[Any], max_count: int = 5) -> list[Any]:
    """Choose some of the values, spread over their order.

    Args:
        values: The values.
        max_count: Largest number of values to return.
    """
    sorted_values = sorted(set(values))
    count = min(max_count, len(sorted_values))
    # The positions are at least one apart, so that rounding does not repeat one.
    positions = np.linspace(0, len(sorted_values) - 1, count).round()
    return [sorted_values[int(position)] for position in positions]


def make_value_series(
    values: Iterable[float], label: str, max_count: int = 6, *, nested: bool = False
) -> dict[float, Series]:
    """Make a series for each of some values.

    Args:
        values: The values. NaN is left out.
        label: Format of a label, such as "δ = {:g}".
        max_count: Largest number of series.
        nested: Whether later lines are thinner, so that equal curves are all visible.
    """
    values = thin_values((value for value in values if value == value), max_count)
    series = {}
    for k, value in enumerate(values):
        width = Series.width
        if nested:
            width = 1.2 * (len(values) - k)
        series[value] = Series(label.format(value), k, width=width)
    return series


def may_jump(rows: Iterable[Mapping[Any, Any]]) -> bool:
    """Return whether the optima of some rows may jump as the budget grows.

    The private laws of a convex notion are a convex set around the uniform law if ε > 0, so that
    their minimal error is continuous. The laws that are private under PDP with δ > 0 are not
    convex.

    Args:
        rows: Rows of a frontier.
    """
    names = {row.get("notion") for row in rows if row.get("delta") != 0}
    notions = (get_notion(name) for name in names if isinstance(name, str))
    return any(isinstance(notion, DeltaNotion) and not notion.is_convex for notion in notions)


def choose_drawstyle(rows: pd.DataFrame) -> str:
    """Return the Matplotlib style of a line through computed optima.

    Args:
        rows: Rows of a frontier. If they may jump, each value holds until the next one.
    """
    return "steps-post" if may_jump(rows.to_dict("records")) else "default"


def make_proven_band(rows: pd.DataFrame, x: str, high: str) -> Record:
    """Declare the proven interval [bound, value] of optima.

    Args:
        rows: Rows of a frontier. If they may jump, the bound of the next row holds before it.
        x: Column of the x axis.
        high: Column of the values.
    """
    low = rows["bound"].astype(float)
    step = None
    if choose_drawstyle(rows) != "default":
        low = low.shift(-1).fillna(low)
        step = "post"
    intervals = rows[[x, high]].astype(float).assign(low=low)
    return {**_BAND, "rows": intervals, "x": x, "y": ["low", high], "step": step}


def has_open_gap(rows: pd.DataFrame) -> bool:
    """Return whether some proven interval [bound, objective] is wide enough to be drawn.

    Args:
        rows: Rows of a frontier.
    """
    objective = rows["objective"].astype(float)
    gap = objective - rows["bound"].astype(float)
    return bool((gap > _MIN_BAND_GAP * objective.abs() + _ROUNDING_GAP).any())


def add_baseline_series(series: AllSeries, table: pd.DataFrame) -> dict[str, Series]:
    """Add series for the baselines of packages and users, in colours that are not used.

    Args:
        series: Series of the family.
        table: Rows of a frontier.
    """
    baselines = table[table["curve"] == "baseline"]["mechanism"].dropna().unique()
    new_names = [name for name in baselines if name not in series]
    mechanisms = table["mechanism"].unique()
    used_colours = {series[name].colour for name in mechanisms if name in series}
    colours = [k for k in range(len(COLOURS)) if k not in used_colours]
    if not colours:
        colours = [*range(len(COLOURS))]
    new_series = {}
    for k, name in enumerate(new_names):
        new_series[name] = Series(name, colours[k % len(colours)], "--")
    return {**series, **new_series}


def draw_panels(
    table: pd.DataFrame,
    x_quantity: Quantity,
    y_quantity: Quantity,
    series: Mapping[Any, Series],
    title: str,
    *,
    by: str = "mechanism",
    panel: Quantity | None = None,
) -> Figure | None:
    """Draw one line per mechanism, and one panel per value of a further column.

    Computed points have markers, baselines have none. Exact pieces are straight lines between their
    ends, dashed if they are not proven, with hollow markers of computed points. Rows without a
    value of the panel's column are in every panel (Laplace has no number of outputs). A "limit" is
    a band from its bound to its objective. Panels whose values are texts have the same scale.

    Args:
        table: Rows of a frontier.
        x_quantity: What the x axis shows.
        y_quantity: What the y axis shows.
        series: How each value of the column `by` is drawn.
        title: Title above all panels.
        by: Column of the lines.
        panel: Column of the panels. None: one panel.

    Returns:
        The figure. None if there are too few rows.
    """
    # This module is slow to import.
    from workbench.io.drawing import Drawing, draw_declared_figure

    needed_columns = {x_quantity.column, y_quantity.column}
    if panel:
        needed_columns.add(panel.column)
    if not needed_columns <= {*table}:
        return None
    rows = table[table[y_quantity.column].notna()]
    if rows.empty:
        return None
    points = rows[rows["curve"].isin(_COMPUTED_CURVES)]
    pieces = rows[rows["curve"].eq("piece")]
    panel_values: list[Any] = [""]
    if panel:
        panel_values = points[panel.column].dropna().tolist()
    has_text_panels = isinstance(next(iter(panel_values), 0), str)
    if has_text_panels:
        values = list(dict.fromkeys(panel_values))
    else:
        values = thin_values(panel_values, _MAX_COLUMNS)
    if not values or (points[x_quantity.column].nunique() < 2 and pieces.empty):
        return None
    if y_quantity.column == "objective":
        y_quantity = _choose_log_axis(y_quantity, points)
    column_count = min(len(values), _MAX_COLUMNS)
    row_count = -(-len(values) // column_count)
    panels = []
    for k, value in enumerate(values):
        panel_rows = rows
        if panel is not None:
            column = rows[panel.column]
            panel_rows = rows[(column == value) | column.isna()]
        lines = _list_panel_lines(panel_rows, x_quantity.column, y_quantity.column, series, by)
        if k == 0:
            lines += _explain(points, pieces, x_quantity, y_quantity)
        axis_rows = panel_rows
        if has_text_panels:
            axis_rows = rows
        is_first = k % column_count == 0
        spec = {
            "series": lines,
            **_declare_axes(x_quantity, y_quantity, axis_rows, is_first=is_first),
        }
        if panel is not None:
            spec["title"] = panel.label.format(value)
        panels.append(spec)
    figure = {
        "columns": column_count,
        "rows": row_count,
        "width": PAGE_INCHES if column_count > 1 else SCREEN_INCHES,
        "height": 2.6 if row_count == 1 else 2.2,
        "heading": title,
        "legend": 4,
        "panels": panels,
    }
    return draw_declared_figure(Drawing(figure, template_values=None), rows)


def _choose_log_axis(quantity: Quantity, points: pd.DataFrame) -> Quantity:
    """Return the quantity with a logarithmic axis if its losses differ by a large factor."""
    losses = points[quantity.column].astype(float)
    is_wide = losses.min() > 0 and losses.max() > _LOG_AXIS_MIN_RATIO * losses.min()
    return replace(quantity, log=quantity.log or bool(is_wide))


def _list_panel_lines(
    rows: pd.DataFrame, x: str, y: str, series: Mapping[Any, Series], by: str
) -> list[Record]:
    """Declare the lines of one panel."""
    lines = [*_declare_limit(rows[rows["curve"].eq("limit")], x)]
    for key, look in series.items():
        lines += _list_lines(rows[rows[by] == key], x, y, look)
    return lines


def _declare_axes(
    x_quantity: Quantity, y_quantity: Quantity, rows: pd.DataFrame, *, is_first: bool
) -> Record:
    """Declare the scales and ends of the axes.

    The y axis begins at 0 unless this would compress the curves.
    """
    quantities = (("x", x_quantity), ("y", y_quantity))
    properties: Record = {"xlabel": x_quantity.label, "ylabel": ""}
    if is_first:
        properties["ylabel"] = y_quantity.label
    scales: Record = {name: "log" for name, quantity in quantities if quantity.log}
    ticks = {}
    for name, quantity in quantities:
        if quantity.has_value_ticks:
            ticks[name] = thin_values(rows[quantity.column].dropna(), 10)
    if not y_quantity.log:
        low, high = rows[y_quantity.column].agg(["min", "max"]).astype(float)
        start = 0.0
        if low >= 0.6 * high and low != high:
            start = low - 0.35 * (high - low)
        # None stands for an automatic end, if all values are 0.
        properties["ylim"] = (start, high + 0.08 * (high - start) or None)
    ends = _log_delta_ends(rows, x_quantity)
    if ends is not None:
        scales["x"] = ends
    elif x_quantity.axis_end is not None:
        properties["xlim"] = (-0.01 * x_quantity.axis_end, x_quantity.axis_end)
    return {"set": properties, "scales": scales, "plain": ticks}


def _log_delta_ends(rows: pd.DataFrame, x_quantity: Quantity) -> FloatPair | None:
    """Return the ends of a logarithmic axis of δ.

    None if the smallest δ > 0 is visibly above 0 on a linear axis.
    """
    if x_quantity.column != "delta":
        return None
    deltas = rows[~rows["curve"].eq("piece")]["delta"].dropna()
    positive = deltas[deltas > 0].astype(float)
    last = x_quantity.axis_end or (float(positive.max()) if len(positive) else 0.0)
    if positive.empty or positive.min() >= _MIN_DELTA_SHARE * last:
        return None
    return float(positive.min()), last


def _explain(
    points: pd.DataFrame, pieces: pd.DataFrame, x_quantity: Quantity, y_quantity: Quantity
) -> list[Record]:
    """Declare the entries of the legend that explain lines, steps and bands."""
    entries: list[Record] = []
    if len(pieces):
        label = "line: exact frontier with its breakpoints"
        entries.append({"marker": "|", "markersize": 9, "label": label})
    if pieces["status"].ne("optimal").any():
        entries.append({"linestyle": "--", "label": "dashed: not proven in time"})
    has_epsilon_points = pieces.empty and x_quantity.column == "epsilon"
    if has_epsilon_points and choose_drawstyle(points) != "default":
        label = "steps (PDP): the last value, which still holds"
        entries.append({"drawstyle": "steps-post", "label": label})
    if y_quantity.column == "objective" and has_open_gap(points):
        entries.append({**_BAND, "y": ["bound", "objective"], "label": "band: [bound, objective]"})
    columns = {
        "x": x_quantity.column,
        "y": y_quantity.column,
        "rows": points[:0],
        "colour": "black",
    }
    return [{**columns, **entry} for entry in entries]


def _list_lines(part: pd.DataFrame, x: str, y: str, look: Series) -> list[Record]:
    """Declare the lines of one series.

    Exact pieces are lines, computed points have markers, closed forms have none, open gaps are
    bands, and a value without x is a horizontal line.
    """
    style: Record = {
        "x": x,
        "y": y,
        "colour": look.colour,
        "linestyle": look.dash,
        "label": look.label,
    }
    is_exact = part["curve"].eq("piece")
    lines = [style | pieces for pieces in _list_pieces(part[is_exact], x, y)]
    part = part[~is_exact]
    if part.empty:
        return lines
    if part[x].isna().all():
        level = {name: value for name, value in style.items() if name != "x"}
        return [*lines, {**level, "kind": "across", "rows": part[:1]}]
    part = part.dropna(subset=[x]).sort_values(x)
    is_computed = part["curve"].isin(_COMPUTED_CURVES).any()
    if is_computed:
        style |= {
            "marker": MARKERS[look.colour],
            "markersize": 4.5,
            "markevery": max(1, len(part) // 14),
        }
    if is_exact.any():
        style |= {"label": None, **SOLVER_MARKER_STYLE}
    drawstyle = choose_drawstyle(part)
    if look.has_jumps and x == "epsilon":
        drawstyle = "steps-post"
    numbers = part[[x, y]].astype(float)
    lines.append({**style, "rows": numbers, "linewidth": look.width, "drawstyle": drawstyle})
    if is_computed and y == "objective" and has_open_gap(part):
        lines.append({**make_proven_band(part, x, y), "colour": look.colour})
    return lines


def _list_pieces(pieces: pd.DataFrame, x: str, y: str) -> list[Record]:
    """Declare the lines of exact pieces, proven and unproven ones, with a mark at every end."""
    import pandas as pd

    # A piece has several points, because logarithmic axes bend straight lines.
    shares = np.concatenate([[0.0], np.geomspace(1e-8, 1, _PIECE_POINTS)])
    lines: list[Record] = []
    for is_proven, part in pieces.groupby(pieces["status"].eq("optimal")):
        lows = part[[x, y]].to_numpy(float)
        highs = part[[f"{x}_high", f"{y}_high"]].to_numpy(float)
        points = lows[:, None, :] + shares[None, :, None] * (highs - lows)[:, None, :]
        breaks = np.full((len(points), 1, 2), np.nan)
        line = np.concatenate([points, breaks], axis=1).reshape(-1, 2)
        ends = np.arange(len(line)).reshape(len(points), -1)[:, [0, -2]].ravel()
        dash = "-" if is_proven else "--"
        marks = {"linestyle": dash, "marker": "|", "markersize": 9, "markevery": ends}
        lines.append({"rows": pd.DataFrame(line, columns=[x, y]), **marks})
    return lines


def _declare_limit(limit: pd.DataFrame, x: str) -> list[Record]:
    """Declare the proven interval of the optimum over all outputs.

    Rows without x give one interval for the whole axis.
    """
    ends = limit.sort_values(x)[[x, "bound", "objective"]].astype(float)
    if ends.empty:
        return []
    # The line makes an interval visible that is too narrow for a band.
    look: Record = {
        **_BAND,
        "colour": "black",
        "linewidth": 1,
        "label": "limit for any outputs, proven interval",
    }
    if ends[x].isna().all():
        return [{**look, "kind": "span", "rows": ends[:1], "y": ["bound", "objective"]}]
    return [{**look, "rows": ends, "x": x, "y": ["bound", "objective"]}]


def draw_by_name(
    rows: pd.DataFrame,
    names: Iterable[str],
    x_quantity: Quantity,
    y_quantity: Quantity,
    title: str = "",
) -> Figure | None:
    """Draw one line for each name, through computed values.

    Args:
        rows: The values.
        names: Name of every row.
        x_quantity: What the x axis shows.
        y_quantity: What the y axis shows.
        title: Title of the figure.
    """
    points = rows.assign(curve="point", bound=rows[y_quantity.column], name=list(names))
    series = {}
    for k, name in enumerate(points["name"].unique()):
        series[name] = Series(name, k % len(COLOURS))
    return draw_panels(points, x_quantity, y_quantity, series, title, by="name")


def make_budget_plots(
    table: pd.DataFrame, name: str, series: AllSeries, title: str, loss_label: str
) -> Plots:
    """Make the plots of rows at budgets (ε, δ).

    Args:
        table: Rows of a frontier.
        name: Name of the designed mechanism.
        series: How mechanisms are drawn.
        title: Title of the plots.
        loss_label: Label of the expected loss.

    Returns:
        Functions that draw the plots, by name: every mechanism against ε at some δ; the loss of the
        designed one against ε for every δ, and against δ for every ε, with its exact pieces; the
        minimal δ of losses against ε.
    """
    rows = table[table["objective"].notna()]
    rows = rows.assign(measure=[get_notion(notion).title for notion in rows["notion"]])
    points = rows[rows["curve"].isin(("point", "baseline"))]
    levels = rows[rows["curve"].eq("level")]
    pieces = rows[rows["curve"].eq("piece")]
    budgets = zip(points["measure"], points["delta"], strict=True)
    points = points.assign(budget=[f"{notion}, δ = {delta:g}" for notion, delta in budgets])
    designs = points[points["mechanism"].eq(name)]
    deltas = make_value_series(designs["delta"], "δ = {:g}", nested=True)
    traced_designs = designs[designs["epsilon"].isin(pieces["epsilon"])]
    axis_end = None
    if len(pieces):
        axis_end = min(1.0, max(0.3, 1.5 * float(designs["delta"].max())))
    epsilon = Quantity("epsilon", "ε")
    delta = Quantity("delta", "δ", axis_end=axis_end)
    loss = Quantity("objective", loss_label)
    log_loss = Quantity("objective", loss_label, True)
    draw_by_notion = partial(draw_panels, panel=Quantity("measure", "{}"))
    traced_epsilons = designs["epsilon"]
    if len(traced_designs):
        traced_epsilons = traced_designs["epsilon"]
    is_curve = rows["mechanism"].eq(name) & rows["curve"].isin(("point", "piece"))
    return {
        "error_epsilon": partial(
            draw_panels,
            points[points["delta"].isin(thin_values(points["delta"], _MAX_COLUMNS))],
            epsilon,
            log_loss,
            add_baseline_series(series, points),
            title,
            panel=Quantity("budget", "{}"),
        ),
        "error_epsilon_delta": partial(
            draw_by_notion,
            designs if len(deltas) > 1 else designs[:0],
            epsilon,
            loss,
            deltas,
            f"{title}, per δ",
            by="delta",
        ),
        "error_delta": partial(
            draw_by_notion,
            rows[is_curve],
            delta,
            loss,
            make_value_series(traced_epsilons, "ε = {:.4g}", 5),
            f"{title}, against δ",
            by="epsilon",
        ),
        "level_curves": partial(
            draw_by_notion,
            levels,
            epsilon,
            Quantity("objective", "minimal δ"),
            make_value_series(levels.get("max_loss", ()), loss_label + " ≤ {:g}"),
            f"{title}: minimal δ of a loss",
            by="max_loss",
        ),
    }
