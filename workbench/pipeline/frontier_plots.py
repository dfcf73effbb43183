"""Draw the figures of a frontier from the rows of its table.

A frontier is the optimum as a function of the budget. The column "curve" states what a row of its
table is (`workbench.pipeline.frontier_plan`):

    "point"      the design at one budget                       a marker on a line
    "level"      the minimal ε or δ at one expected loss        a marker on a line
    "baseline"   a published mechanism at one budget            a line without markers
    "piece"      an interval of δ with one formula              a straight line with marked ends
    "limit"      a proven interval of the optimum               a band

This module turns rows into declarations, dictionaries that `workbench.io.drawing` draws. For
example, {"x": "epsilon", "y": "objective", "rows": rows, "colour": 0, "label": "optimal noise"} is
one line of a figure. The functions `_declare_...` and `_list_...` return such dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.objects import Record
from workbench.io.figures import (
    COLOURS,
    DASHES,
    MARKERS,
    PAGE_INCHES,
    SCREEN_INCHES,
    SOLVER_MARKER_STYLE,
)
from workbench.io.result import Plots
from workbench.notions import get_notion
from workbench.notions.dp import DeltaNotion

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.exact.objects import FloatPair, Pair

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
# The style of a proven interval.
_BAND: Record = {"kind": "band", "alpha": 0.25}
# The y axis starts at 0, unless the smallest number is at least this share of the largest one.
_MIN_ZERO_AXIS_SHARE = 0.6
# Room below and above the curves, as shares of the height of the axis.
_ROOM_BELOW = 0.35
_ROOM_ABOVE = 0.08
# A line has about this many markers, so that they do not overlap.
_MAX_MARKERS = 14
# The size of a marker in points.
_MARKER_SIZE = 4.5


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
        marker: Marker of Matplotlib for computed points. None: the marker of the colour.
        marker_size: Size of the marker in points.
        marker_turn: Numbers (k, n). The points k, k + n, k + 2n, ... have a marker, so that the
            markers of n equal lines with different k are all visible.
    """

    label: str
    colour: int
    dash: Any = "-"
    has_jumps: bool = False
    width: float = 1.5
    marker: str | None = None
    marker_size: float = _MARKER_SIZE
    marker_turn: Pair = (0, 1)


AllSeries = Mapping[str, Series]


@dataclass(frozen=True)
class Quantity:
    """A column of the table that an axis shows, or that divides a figure into panels.

    Attributes:
        column: Column of the table.
        label: Label of the axis. For panels, the format of their titles, such as "m = {}".
        log: Whether the axis is logarithmic.
        axis_end: Largest number on the axis. None: the largest number in the rows.
        has_value_ticks: Whether the axis has ticks at the numbers of the column.
    """

    column: str
    label: str
    log: bool = False
    axis_end: float | None = None
    has_value_ticks: bool = False


def thin_values(values: Iterable[Any], max_count: int = 5) -> list[Any]:
    """Return at most `max_count` of the distinct values, sorted and evenly spaced in their order.

    >>> thin_values([1, 2, 2, 3, 10, 20], 3)
    [1, 3, 20]
    """
    sorted_values = sorted(set(values))
    count = min(max_count, len(sorted_values))
    # The positions are at least one apart, so that rounding does not repeat one.
    positions = np.linspace(0, len(sorted_values) - 1, count).round()
    return [sorted_values[int(position)] for position in positions]


def make_value_series(
    values: Iterable[float], label: str, max_count: int = 6, *, nested: bool = False
) -> dict[float, Series]:
    """Return one series for each number of a column, at most `max_count`.

    Args:
        values: Numbers of the column. NaN is left out.
        label: Format of a label, such as "δ = {:g}".
        max_count: Largest number of series.
        nested: Whether later lines are thinner, so that equal curves are all visible.
    """
    drawn_values = thin_values((value for value in values if not np.isnan(value)), max_count)
    series = {}
    for k, value in enumerate(drawn_values):
        width = Series.width
        if nested:
            width = 1.2 * (len(drawn_values) - k)
        series[value] = Series(label.format(value), k, width=width)
    return series


def may_jump(rows: Iterable[Mapping[Any, Any]]) -> bool:
    """Return whether the optima of some rows of a frontier may jump as the budget grows.

    Under a convex notion with ε > 0, the private laws are a convex set around the uniform law, so
    that the minimal loss is continuous in the budget. Under PDP with δ > 0 the private laws are
    not a convex set, and the minimal loss may jump.
    """
    names = {row.get("notion") for row in rows if row.get("delta") != 0}
    notions = (get_notion(name) for name in names if isinstance(name, str))
    return any(isinstance(notion, DeltaNotion) and not notion.is_convex for notion in notions)


def choose_drawstyle(rows: pd.DataFrame) -> str:
    """Return the Matplotlib style of a line through the optima of some rows.

    Optima that may jump are drawn as steps: each optimum remains feasible until the next one.
    """
    return "steps-post" if may_jump(rows.to_dict("records")) else "default"


def make_proven_band(rows: pd.DataFrame, x: str, high: str) -> Record:
    """Declare the band between the bounds and the optima of some rows.

    Between two budgets whose optima may jump, only the bound at the larger budget is proven. The
    lower end of the band is then moved one row to the left.

    Args:
        rows: Rows of a frontier, with the column "bound".
        x: Column of the x axis.
        high: Column of the optima.
    """
    low = rows["bound"].astype(float)
    step = None
    if choose_drawstyle(rows) != "default":
        low = low.shift(-1).fillna(low)
        step = "post"
    intervals = rows[[x, high]].astype(float).assign(low=low)
    return {**_BAND, "rows": intervals, "x": x, "y": ["low", high], "step": step}


def has_open_gap(rows: pd.DataFrame) -> bool:
    """Return whether some interval [bound, objective] of the rows is wide enough to be drawn."""
    objective = rows["objective"].astype(float)
    gap = objective - rows["bound"].astype(float)
    return bool((gap > _MIN_BAND_GAP * objective.abs() + _ROUNDING_GAP).any())


def add_baseline_series(series: AllSeries, table: pd.DataFrame) -> dict[str, Series]:
    """Add dashed series for the baselines of packages and users, in colours that are not used.

    Args:
        series: Series of the family, by mechanism. They do not contain these baselines.
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
    """Draw one line for each mechanism, and one panel for each value of a further column.

    A row without a value in the panel's column is in every panel. For example, Laplace noise has no
    number of outputs. Panels whose values are texts have the same y axis.

    Args:
        table: Rows of a frontier.
        x_quantity: Column and label of the x axis.
        y_quantity: Column and label of the y axis.
        series: Style of a line, by the value of the column `by`. Other values are not drawn.
        title: Title above all panels.
        by: Column whose values are the lines.
        panel: Column whose values are the panels. None: one panel.

    Returns:
        The figure. None if a column is missing, or if there are fewer than two numbers on the x
        axis and no pieces.
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
    has_text_panels = bool(panel_values) and isinstance(panel_values[0], str)
    if has_text_panels:
        values = list(dict.fromkeys(panel_values))
    else:
        values = thin_values(panel_values, _MAX_COLUMNS)
    if not values or (points[x_quantity.column].nunique() < 2 and pieces.empty):
        return None
    if y_quantity.column == "objective":
        y_quantity = _choose_log_axis(y_quantity, points)
    column_count = min(len(values), _MAX_COLUMNS)
    row_count = -(-len(values) // column_count)  # The quotient is rounded up.
    panels = []
    for k, value in enumerate(values):
        panel_rows = rows
        if panel is not None:
            column = rows[panel.column]
            panel_rows = rows[(column == value) | column.isna()]
        lines = _list_panel_lines(
            panel_rows, x_quantity.column, y=y_quantity.column, series=series, by=by
        )
        if k == 0:
            lines += _list_legend_entries(points, pieces, x_quantity, y_quantity)
        axis_rows = panel_rows
        if has_text_panels:
            axis_rows = rows
        has_y_label = k % column_count == 0
        declaration = {
            "series": lines,
            **_declare_axes(x_quantity, y_quantity, axis_rows, has_y_label=has_y_label),
        }
        if panel is not None:
            declaration["title"] = panel.label.format(value)
        panels.append(declaration)
    figure = {
        "columns": column_count,
        "rows": row_count,
        "width": PAGE_INCHES if column_count > 1 else SCREEN_INCHES,
        "height": 2.6 if row_count == 1 else 2.2,  # Inches of one panel.
        "heading": title,
        "legend": 4,  # The legend below the panels has at most this many columns.
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
    """Declare the lines of one panel: the limit, then the series in order.

    `x` and `y` are columns of the rows. The keys of `series` are values of the column `by`.
    """
    lines = _list_limits(rows[rows["curve"].eq("limit")], x)
    for key, line_style in series.items():
        lines += _list_lines(rows[rows[by] == key], x, y, line_style)
    return lines


def _declare_axes(
    x_quantity: Quantity, y_quantity: Quantity, rows: pd.DataFrame, *, has_y_label: bool
) -> Record:
    """Declare labels, scales, ends and ticks of both axes of one panel.

    A linear y axis starts at 0 unless this would compress the curves.

    Args:
        x_quantity: Column and label of the x axis.
        y_quantity: Column and label of the y axis.
        rows: Rows that both axes must contain.
        has_y_label: Whether the panel shows the label of the y axis.
    """
    quantities = (("x", x_quantity), ("y", y_quantity))
    properties: Record = {"xlabel": x_quantity.label, "ylabel": ""}
    if has_y_label:
        properties["ylabel"] = y_quantity.label
    scales: Record = {name: "log" for name, quantity in quantities if quantity.log}
    ticks = {}
    for name, quantity in quantities:
        if quantity.has_value_ticks:
            ticks[name] = thin_values(rows[quantity.column].dropna(), 10)
    if not y_quantity.log:
        low, high = rows[y_quantity.column].agg(["min", "max"]).astype(float)
        start = 0.0
        if low >= _MIN_ZERO_AXIS_SHARE * high and low != high:
            start = low - _ROOM_BELOW * (high - low)
        end = high + _ROOM_ABOVE * (high - start)
        # Matplotlib chooses the end None itself. It is needed if all numbers are 0.
        properties["ylim"] = (start, end or None)
    ends = _log_delta_ends(rows, x_quantity)
    if ends is not None:
        scales["x"] = ends
    elif x_quantity.axis_end is not None:
        # A small margin keeps a marker at 0 whole.
        properties["xlim"] = (-0.01 * x_quantity.axis_end, x_quantity.axis_end)
    return {"set": properties, "scales": scales, "plain": ticks}


def _log_delta_ends(rows: pd.DataFrame, x_quantity: Quantity) -> FloatPair | None:
    """Return the smallest and the largest δ > 0, as the ends of a logarithmic axis of δ.

    None if the axis shows another column, or if a linear axis distinguishes every δ from 0.
    """
    if x_quantity.column != "delta":
        return None
    deltas = rows[~rows["curve"].eq("piece")]["delta"].dropna()
    positive = deltas[deltas > 0].astype(float)
    last = x_quantity.axis_end or (float(positive.max()) if len(positive) else 0.0)
    if positive.empty or positive.min() >= _MIN_DELTA_SHARE * last:
        return None
    return float(positive.min()), last


def _list_legend_entries(
    points: pd.DataFrame, pieces: pd.DataFrame, x_quantity: Quantity, y_quantity: Quantity
) -> list[Record]:
    """Declare the entries of the legend that explain lines, steps and bands. They have no rows."""
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
        entries.append(
            {
                **_BAND,
                "y": ["bound", "objective"],
                "label": "shaded: proven lower bound to loss found",
            }
        )
    columns = {
        "x": x_quantity.column,
        "y": y_quantity.column,
        "rows": points[:0],
        "colour": "black",
    }
    return [{**columns, **entry} for entry in entries]


def _list_lines(rows: pd.DataFrame, x: str, y: str, line_style: Series) -> list[Record]:
    """Declare the lines of one series: its pieces, its points or baselines, and its band.

    Computed points are drawn with markers, hollow ones if the series also has pieces. If no row has
    a number on the x axis, the series is a horizontal line.
    """
    style: Record = {
        "x": x,
        "y": y,
        "colour": line_style.colour,
        "linestyle": line_style.dash,
        "label": line_style.label,
    }
    is_piece = rows["curve"].eq("piece")
    lines = [style | pieces for pieces in _list_pieces(rows[is_piece], x, y)]
    points = rows[~is_piece]
    if points.empty:
        return lines
    if points[x].isna().all():
        # The mechanism is the same at every x, so one row states its height.
        style.pop("x")
        return [*lines, {**style, "kind": "across", "rows": points[:1]}]
    points = points.dropna(subset=[x]).sort_values(x)
    is_computed = points["curve"].isin(_COMPUTED_CURVES).any()
    if is_computed:
        spacing = max(1, len(points) // _MAX_MARKERS)
        style |= {
            "marker": line_style.marker or MARKERS[line_style.colour],
            "markersize": line_style.marker_size,
            "markevery": [line_style.marker_turn[0] * spacing, line_style.marker_turn[1] * spacing],
        }
    if is_piece.any():
        style |= {"label": None, **SOLVER_MARKER_STYLE}
    drawstyle = choose_drawstyle(points)
    if line_style.has_jumps and x == "epsilon":
        drawstyle = "steps-post"
    numbers = points[[x, y]].astype(float)
    lines.append({**style, "rows": numbers, "linewidth": line_style.width, "drawstyle": drawstyle})
    if is_computed and y == "objective" and has_open_gap(points):
        lines.append({**make_proven_band(points, x, y), "colour": line_style.colour})
    return lines


def _list_pieces(pieces: pd.DataFrame, x: str, y: str) -> list[Record]:
    """Declare one line for all proven pieces and a dashed line for all unproven pieces.

    A piece goes from the point (x, y) to (x_high, y_high) and has a mark at both ends.
    """
    import pandas as pd

    # A piece has several points, because logarithmic axes bend straight lines.
    shares = np.concatenate([[0.0], np.geomspace(1e-8, 1, _PIECE_POINTS)])
    lines: list[Record] = []
    for is_proven, group in pieces.groupby(pieces["status"].eq("optimal")):
        # The ends of the pieces have shape (pieces, 2).
        starts = group[[x, y]].to_numpy(float)
        ends = group[[f"{x}_high", f"{y}_high"]].to_numpy(float)
        # Shape (pieces, points, 2). A NaN after each piece interrupts the line.
        points = starts[:, None, :] + shares[None, :, None] * (ends - starts)[:, None, :]
        breaks = np.full((len(points), 1, 2), np.nan)
        line = np.concatenate([points, breaks], axis=1).reshape(-1, 2)
        # The index -1 of a piece is its NaN, so its last point has the index -2.
        marked_indices = np.arange(len(line)).reshape(len(points), -1)[:, [0, -2]].ravel()
        dash = "-" if is_proven else "--"
        style = {"linestyle": dash, "marker": "|", "markersize": 9, "markevery": marked_indices}
        lines.append({"rows": pd.DataFrame(line, columns=[x, y]), **style})
    return lines


def _list_limits(rows: pd.DataFrame, x: str) -> list[Record]:
    """Declare the band of the proven interval of the optimum over all outputs.

    Rows without x give one interval for the whole axis. Without rows the list is empty.
    """
    ends = rows.sort_values(x)[[x, "bound", "objective"]].astype(float)
    if ends.empty:
        return []
    # The line makes an interval visible that is too narrow for a band.
    style: Record = {
        **_BAND,
        "colour": "black",
        "linewidth": 1,
        "label": "limit for any outputs, proven interval",
    }
    if ends[x].isna().all():
        # The interval is the same at every x, so one row states it.
        return [{**style, "kind": "span", "rows": ends[:1], "y": ["bound", "objective"]}]
    return [{**style, "rows": ends, "x": x, "y": ["bound", "objective"]}]


def draw_by_name(
    rows: pd.DataFrame,
    names: Iterable[str],
    x_quantity: Quantity,
    y_quantity: Quantity,
    title: str = "",
) -> Figure | None:
    """Draw one line with markers for each name.

    Args:
        rows: Rows with the columns of both axes.
        names: Name of the line of each row, in the order of the rows.
        x_quantity: Column and label of the x axis.
        y_quantity: Column and label of the y axis.
        title: Title of the figure.
    """
    # The bound equals the number itself, so that no band is drawn.
    points = rows.assign(curve="point", bound=rows[y_quantity.column], name=list(names))
    series = {}
    for k, name in enumerate(points["name"].unique()):
        series[name] = Series(name, k % len(COLOURS))
    return draw_panels(points, x_quantity, y_quantity, series, title, by="name")


def _join_single_curves(
    points: pd.DataFrame, series: AllSeries
) -> tuple[pd.DataFrame, dict[str, Series]]:
    """Move the curve of each budget with only one mechanism into the first panel with several.

    A panel with one line says less than the line beside the others. The title of the first panel
    then states the budget of the lines whose labels name no budget. Without a panel of several
    mechanisms, nothing changes.

    Args:
        points: Rows of a frontier with the column "budget", which divides the panels.
        series: Style of each mechanism, by name.

    Returns:
        The rows and the styles, in which a moved curve has a name and a marker of its own.
    """
    mechanisms_by_budget = points.groupby("budget", sort=False)["mechanism"].unique()
    crowded = [budget for budget, names in mechanisms_by_budget.items() if len(names) > 1]
    single_budgets = {}
    for budget, names in mechanisms_by_budget.items():
        if len(names) == 1 and names[0] in series:
            single_budgets[budget] = names[0]
    joined_series = {**series}
    if not crowded or not single_budgets:
        return points, joined_series
    designs = points[points["curve"].isin(_COMPUTED_CURVES)]["mechanism"].unique()
    used_markers = {MARKERS[series[name].colour] for name in designs if name in series}
    free_markers = [marker for marker in MARKERS if marker not in used_markers] or [*MARKERS]
    # A moved curve may hide the curve of its mechanism, so they take turns with their markers.
    turn_count = len(single_budgets) + 1
    for name in single_budgets.values():
        joined_series[name] = replace(series[name], marker_turn=(0, turn_count))
    panel_title = f"{crowded[0]} unless stated"
    points = points.assign(budget=points["budget"].replace(crowded[0], panel_title))
    for k, (budget, name) in enumerate(single_budgets.items(), 1):
        style = series[name]
        joined_name = f"{style.label}, {budget}"
        joined_series[joined_name] = replace(
            style,
            label=joined_name,
            # The first dash is the solid line of the other curves.
            dash=DASHES[1 + k % (len(DASHES) - 1)],
            marker=free_markers[k % len(free_markers)],
            marker_turn=(k, turn_count),
        )
        is_moved = points["budget"] == budget
        points = points.assign(
            mechanism=points["mechanism"].mask(is_moved, joined_name),
            budget=points["budget"].mask(is_moved, panel_title),
        )
    return points, joined_series


def make_budget_plots(
    table: pd.DataFrame, name: str, series: AllSeries, title: str, loss_label: str
) -> Plots:
    """Make the plots of a frontier whose budgets are pairs (ε, δ).

        error_epsilon         expected loss of every mechanism against ε; one panel for each δ, if
                              it has several mechanisms
        error_epsilon_delta   expected loss of the design against ε; one line for each δ
        error_delta           expected loss of the design against δ, with pieces; a line for each ε
        level_curves          minimal δ against ε; one line for each limit of the expected loss

    Args:
        table: Rows of a frontier.
        name: Name of the designed mechanism in the column "mechanism".
        series: Style of each mechanism, by name.
        title: Title of the plots.
        loss_label: Label of the expected loss.

    Returns:
        Functions without arguments that draw the plots, by name.
    """
    rows = table[table["objective"].notna()]
    rows = rows.assign(notion_title=[get_notion(notion).title for notion in rows["notion"]])
    points = rows[rows["curve"].isin(("point", "baseline"))]
    levels = rows[rows["curve"].eq("level")]
    pieces = rows[rows["curve"].eq("piece")]
    budgets = zip(points["notion_title"], points["delta"], strict=True)
    points = points.assign(budget=[f"{notion}, δ = {delta:g}" for notion, delta in budgets])
    designs = points[points["mechanism"].eq(name)]
    deltas = make_value_series(designs["delta"], "δ = {:g}", nested=True)
    axis_end = None
    if len(pieces):
        # Pieces may reach δ = 1, but the axis ends a little after the largest requested δ.
        axis_end = min(1.0, max(0.3, 1.5 * float(designs["delta"].max())))
    epsilon = Quantity("epsilon", "ε")
    delta = Quantity("delta", "δ", axis_end=axis_end)
    loss = Quantity("objective", loss_label)
    log_loss = Quantity("objective", loss_label, log=True)
    draw_by_notion = partial(draw_panels, panel=Quantity("notion_title", "{}"))
    # If only some ε have pieces, the plot against δ shows these.
    designs_with_pieces = designs[designs["epsilon"].isin(pieces["epsilon"])]
    drawn_epsilons = designs["epsilon"]
    if len(designs_with_pieces):
        drawn_epsilons = designs_with_pieces["epsilon"]
    drawn_points = points[points["delta"].isin(thin_values(points["delta"], _MAX_COLUMNS))]
    all_series = add_baseline_series(series, points)
    drawn_points, all_series = _join_single_curves(drawn_points, all_series)
    is_curve = rows["mechanism"].eq(name) & rows["curve"].isin(("point", "piece"))
    return {
        "error_epsilon": partial(
            draw_panels,
            drawn_points,
            epsilon,
            log_loss,
            all_series,
            title,
            panel=Quantity("budget", "{}"),
        ),
        "error_epsilon_delta": partial(
            draw_by_notion,
            designs if len(deltas) > 1 else designs[:0],  # One δ is in the first plot already.
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
            make_value_series(drawn_epsilons, "ε = {:.4g}", max_count=5),
            f"{title}, against δ",
            by="epsilon",
        ),
        "level_curves": partial(
            draw_by_notion,
            levels,
            epsilon,
            Quantity("objective", "minimal δ"),  # At a fixed loss, δ is the objective.
            make_value_series(levels.get("max_loss", ()), loss_label + " ≤ {:g}"),
            f"{title}: minimal δ of a loss",
            by="max_loss",
        ),
    }
