"""Figures of frontiers: each from the table of rows alone, as a declaration that `workbench.io.drawing` draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.objects import Record
from workbench.io.figures import COLOURS, MARKERS, PAGE_INCHES, SCREEN_INCHES, SOLVER_MARKER_STYLE
from workbench.io.result import Plots
from workbench.notions import get_notion as named
from workbench.notions.dp import DeltaNotion

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.exact.objects import FloatPair

_MAX_COLUMNS = 4  # Panels beside each other, and values of a number that have a panel.
_OPEN_GAP = 1e-6  # A relative gap above this is drawn as a band.
_ROUNDING = 1e-12  # An absolute gap up to this is rounding.
_MIN_DELTA_SHARE = 0.02  # A δ below this share of the axis cannot be told from 0 on a linear one.
_SPREAD = 30.0  # Losses that differ by more than this factor are drawn on a logarithmic axis.
_PIECE_POINTS = 60  # Points of an exact piece, which a logarithmic axis bends.
_COMPUTED = ("point", "level")  # Curves with markers.
_BAND: Record = {"kind": "band", "alpha": 0.25}  # The look of a proven interval.


@dataclass(frozen=True)
class Series:
    """How a mechanism is drawn.

    Attributes:
        label: Name in the legend.
        colour: Index of its colour and marker.
        dash: Matplotlib's line style.
        jumps: Whether its error jumps as the budget grows, as the best of finitely many errors does.
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
    """What an axis or panels show.

    Attributes:
        column: Column of the table.
        label: Label of the axis; of panels a format of the value.
        log: Whether the axis is logarithmic.
        most: Where the axis ends. None: at the data.
        whole: Whether the axis has ticks at the values themselves.
    """

    column: str
    label: str
    log: bool = False
    axis_end: float | None = None
    has_value_ticks: bool = False


def thin_values(values: Iterable[Any], max_count: int = 5) -> list[Any]:
    """Choose at most so many of the values, spread over their order."""
    ordered = sorted(set(values))
    places = np.linspace(
        0, len(ordered) - 1, min(max_count, len(ordered))
    ).round()  # at least one apart
    return [ordered[int(k)] for k in places]


def make_value_series(
    values: Iterable[float], label: str, max_count: int = 6, *, nested: bool = False
) -> dict[float, Series]:
    """Make a series for each of a few values. nested: curves that coincide show as one inside the other."""
    chosen = thin_values((value for value in values if value == value), max_count)
    widths = [1.2 * (len(chosen) - k) if nested else Series.width for k in range(len(chosen))]
    return {
        value: Series(label.format(value), k, width=widths[k]) for k, value in enumerate(chosen)
    }


def may_jump(rows: Iterable[Mapping[Any, Any]]) -> bool:
    """Whether optima like those of some rows may jump as the budget grows.

    The laws that meet a notion convex in them are a convex set, around the uniform law where ε > 0: their least error
    is continuous. Those that meet PDP with δ > 0 are not convex.
    """
    names = {row.get("notion") for row in rows if row.get("delta") != 0}
    notions = (named(name) for name in names if isinstance(name, str))
    return any(isinstance(notion, DeltaNotion) and not notion.is_convex for notion in notions)


def choose_drawstyle(rows: pd.DataFrame) -> str:
    """Say how a line joins computed optima: if they may jump, by keeping the last one, which holds until the next."""
    return "steps-post" if may_jump(rows.to_dict("records")) else "default"


def make_proven_band(rows: pd.DataFrame, x: str, high: str) -> Record:
    """Declare the proven interval [bound, value] of optima; between two that may jump, from the bound of the next."""
    low = rows["bound"].astype(float)
    step = None
    if choose_drawstyle(rows) != "default":
        low = low.shift(-1).fillna(low)
        step = "post"
    ends = rows[[x, high]].astype(float).assign(low=low)
    return {**_BAND, "rows": ends, "x": x, "y": ["low", high], "step": step}


def has_open_gap(rows: pd.DataFrame) -> bool:
    """Whether a proven interval [bound, objective] is not closed, relative to the objective."""
    objective = rows["objective"].astype(float)
    gap = objective - rows["bound"].astype(float)
    return bool((gap > _OPEN_GAP * objective.abs() + _ROUNDING).any())


def add_baseline_series(ours: AllSeries, table: pd.DataFrame) -> dict[str, Series]:
    """Add series for the baselines of packages and users, in colours that no series of the family has."""
    others = [
        name
        for name in table[table["curve"] == "baseline"]["mechanism"].dropna().unique()
        if name not in ours
    ]
    taken = {ours[name].colour for name in table["mechanism"].unique() if name in ours}
    free = [k for k in range(len(COLOURS)) if k not in taken] or [*range(len(COLOURS))]
    return {
        **ours,
        **{name: Series(name, free[k % len(free)], "--") for k, name in enumerate(others)},
    }


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
    """Draw one line per mechanism, or value of another column, and one panel per value of a further column.

    Computed points have markers, baselines none. Exact pieces are straight lines between their ends, proven or dashed,
    with hollow markers of computed points over them. Rows without a value of the panel's column (Laplace has no number
    of outputs) stand in every panel. A "limit" is a band from its bound to its objective. Panels of
    words have one scale.

    Args:
        table: Rows of a frontier.
        across: What the x axis shows.
        up: What the y axis shows.
        series: How each value of the column `by` is drawn.
        title: Title above all panels.
        by: Column of the lines.
        panel: Column of the panels. None: one panel.

    Returns:
        The figure, None with too few rows.
    """
    from workbench.io.drawing import Drawing, draw_declared_figure  # slow to import

    rows = table[table[y_quantity.column].notna()] if y_quantity.column in table else table[:0]
    if rows.empty or not {x_quantity.column, *([panel.column] if panel else [])} <= {*rows}:
        return None
    points, pieces = rows[rows["curve"].isin(_COMPUTED)], rows[rows["curve"].eq("piece")]
    panel_values = points[panel.column].dropna().tolist() if panel else [""]
    has_words = isinstance(next(iter(panel_values), 0), str)
    values = (
        list(dict.fromkeys(panel_values)) if has_words else thin_values(panel_values, _MAX_COLUMNS)
    )
    if not values or (points[x_quantity.column].nunique() < 2 and pieces.empty):
        return None
    if y_quantity.column == "objective":
        losses = points[y_quantity.column].astype(float)
        y_quantity = replace(
            y_quantity,
            log=y_quantity.log or bool(losses.min() > 0 and losses.max() > _SPREAD * losses.min()),
        )
    columns = min(len(values), _MAX_COLUMNS)
    deep = -(-len(values) // columns)
    panels = []
    for k, value in enumerate(values):
        here = (
            rows
            if panel is None
            else rows[(rows[panel.column] == value) | rows[panel.column].isna()]
        )
        lines = [*_limit(here[here["curve"].eq("limit")], x_quantity.column)]
        for key, look in series.items():
            lines += _list_lines(here[here[by] == key], x_quantity.column, y_quantity.column, look)
        if k == 0:
            lines += _explain(points, pieces, x_quantity, y_quantity)
        spec = {
            "series": lines,
            **_axes(x_quantity, y_quantity, rows if has_words else here, is_first=k % columns == 0),
        }
        panels.append(spec if panel is None else {**spec, "title": panel.label.format(value)})
    figure = {
        "columns": columns,
        "rows": deep,
        "width": PAGE_INCHES if columns > 1 else SCREEN_INCHES,
        "height": 2.6 if deep == 1 else 2.2,
        "heading": title,
        "legend": 4,
        "panels": panels,
    }
    return draw_declared_figure(Drawing(figure, template_values=None), rows)


def _axes(across: Quantity, up: Quantity, rows: pd.DataFrame, *, is_first: bool) -> Record:
    """Declare the scales, and where the axes end: upwards from 0, unless that would press the curves."""
    properties: Record = {"xlabel": across.label, "ylabel": up.label if is_first else ""}
    scales: Record = {name: "log" for name, quantity in (("x", across), ("y", up)) if quantity.log}
    ticks = {
        name: thin_values(rows[q.column].dropna(), 10)
        for name, q in (("x", across), ("y", up))
        if q.has_value_ticks
    }
    if not up.log:
        low, high = rows[up.column].agg(["min", "max"]).astype(float)
        start = 0.0 if low < 0.6 * high or low == high else low - 0.35 * (high - low)
        properties["ylim"] = (start, high + 0.08 * (high - start) or None)
    ends = _separate_deltas(rows, across)
    if ends is not None:
        scales["x"] = ends
    elif across.axis_end is not None:
        properties["xlim"] = (-0.01 * across.axis_end, across.axis_end)
    return {"set": properties, "scales": scales, "plain": ticks}


def _separate_deltas(rows: pd.DataFrame, across: Quantity) -> FloatPair | None:
    """Return the ends of a logarithmic axis of δ, if the least δ > 0 would fall together with 0 on a linear one."""
    if across.column != "delta":
        return None
    deltas = rows[~rows["curve"].eq("piece")]["delta"].dropna()
    positive = deltas[deltas > 0].astype(float)
    last = across.axis_end or (float(positive.max()) if len(positive) else 0.0)
    if positive.empty or positive.min() >= _MIN_DELTA_SHARE * last:
        return None
    return float(positive.min()), last


def _explain(
    points: pd.DataFrame, pieces: pd.DataFrame, across: Quantity, up: Quantity
) -> list[Record]:
    """Declare entries of the legend that say what lines, steps and bands mean."""
    entries: list[Record] = []
    if len(pieces):
        entries.append(
            {"marker": "|", "markersize": 9, "label": "line: exact frontier with its breakpoints"}
        )
    if pieces["status"].ne("optimal").any():
        entries.append({"linestyle": "--", "label": "dashed: not proven in time"})
    if pieces.empty and across.column == "epsilon" and choose_drawstyle(points) != "default":
        entries.append(
            {"drawstyle": "steps-post", "label": "steps (PDP): the last value, which still holds"}
        )
    if up.column == "objective" and has_open_gap(points):
        entries.append({**_BAND, "y": ["bound", "objective"], "label": "band: [bound, objective]"})
    columns = {"x": across.column, "y": up.column, "rows": points[:0], "colour": "black"}
    return [{**columns, **entry} for entry in entries]


def _list_lines(part: pd.DataFrame, x: str, y: str, look: Series) -> list[Record]:
    """Declare one series: exact pieces, computed points with markers, closed forms without, open gaps as bands, a level
    line where it has no x."""
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
    is_computed = part["curve"].isin(_COMPUTED).any()
    if is_computed:
        style |= {
            "marker": MARKERS[look.colour],
            "markersize": 4.5,
            "markevery": max(1, len(part) // 14),
        }
    if is_exact.any():
        style |= {"label": None, **SOLVER_MARKER_STYLE}
    steps = "steps-post" if look.has_jumps and x == "epsilon" else choose_drawstyle(part)
    numbers = part[[x, y]].astype(float)
    lines.append({**style, "rows": numbers, "linewidth": look.width, "drawstyle": steps})
    if is_computed and y == "objective" and has_open_gap(part):
        lines.append({**make_proven_band(part, x, y), "colour": look.colour})
    return lines


def _list_pieces(pieces: pd.DataFrame, x: str, y: str) -> list[Record]:
    """Declare lines of exact pieces, those that are proven and the others, with a mark at every end."""
    import pandas as pd

    shares = np.concatenate(
        [[0.0], np.geomspace(1e-8, 1, _PIECE_POINTS)]
    )  # axes bend straight pieces
    lines: list[Record] = []
    for is_proven, part in pieces.groupby(pieces["status"].eq("optimal")):
        lows, highs = (
            part[[f"{name}{end}" for name in (x, y)]].to_numpy(float) for end in ("", "_high")
        )
        places = lows[:, None, :] + shares[None, :, None] * (highs - lows)[:, None, :]
        line = np.concatenate([places, np.full((len(places), 1, 2), np.nan)], axis=1).reshape(-1, 2)
        ends = np.arange(len(line)).reshape(len(places), -1)[:, [0, -2]].ravel()
        dash = "-" if is_proven else "--"
        marks = {"linestyle": dash, "marker": "|", "markersize": 9, "markevery": ends}
        lines.append({"rows": pd.DataFrame(line, columns=[x, y]), **marks})
    return lines


def _limit(limit: pd.DataFrame, x: str) -> list[Record]:
    """Declare the proven interval of an optimum over any outputs; a level one where it has no x."""
    ends = limit.sort_values(x)[[x, "bound", "objective"]].astype(float)
    if ends.empty:
        return []
    label = "limit for any outputs, proven interval"
    look: Record = {
        **_BAND,
        "colour": "black",
        "linewidth": 1,
        "label": label,
    }  # an interval may be thin
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
    """Draw one line for each of the names of rows, of values that are computed."""
    named = rows.assign(curve="point", bound=rows[y_quantity.column], name=list(names))
    series = {name: Series(name, k % len(COLOURS)) for k, name in enumerate(named["name"].unique())}
    return draw_panels(named, x_quantity, y_quantity, series, title, by="name")


def make_budget_plots(
    table: pd.DataFrame, name: str, series: AllSeries, title: str, loss_label: str
) -> Plots:
    """Plot rows at budgets (ε, δ).

    Args:
        table: Rows of a frontier.
        name: Name of the designed mechanism.
        series: How mechanisms are drawn.
        title: Title of the plots.
        words: Words for the error.

    Returns:
        By name: every mechanism against ε at a few δ; the error of the designed one against ε for every δ, and against
        δ for every ε, with its exact pieces; the least δ of errors against ε.
    """
    known = table[table["objective"].notna()]
    known = known.assign(measure=[named(notion).title for notion in known["notion"]])
    points, levels = (
        known[known["curve"].isin(("point", "baseline"))],
        known[known["curve"].eq("level")],
    )
    points = points.assign(
        budget=[
            f"{notion}, δ = {delta:g}"
            for notion, delta in zip(points["measure"], points["delta"], strict=True)
        ]
    )
    own, pieces = points[points["mechanism"].eq(name)], known[known["curve"].eq("piece")]
    deltas, traced = (
        make_value_series(own["delta"], "δ = {:g}", nested=True),
        own[own["epsilon"].isin(pieces["epsilon"])],
    )
    reach = min(1.0, max(0.3, 1.5 * float(own["delta"].max()))) if len(pieces) else None
    epsilon, delta = Quantity("epsilon", "ε"), Quantity("delta", "δ", axis_end=reach)
    error, logged = Quantity("objective", loss_label), Quantity("objective", loss_label, True)
    drawn = partial(draw_panels, panel=Quantity("measure", "{}"))
    return {
        "error_epsilon": partial(
            draw_panels,
            points[points["delta"].isin(thin_values(points["delta"], _MAX_COLUMNS))],
            epsilon,
            logged,
            add_baseline_series(series, points),
            title,
            panel=Quantity("budget", "{}"),
        ),
        "error_epsilon_delta": partial(
            drawn,
            own if len(deltas) > 1 else own[:0],
            epsilon,
            error,
            deltas,
            f"{title}, per δ",
            by="delta",
        ),
        "error_delta": partial(
            drawn,
            known[known["mechanism"].eq(name) & known["curve"].isin(("point", "piece"))],
            delta,
            error,
            make_value_series((traced if len(traced) else own)["epsilon"], "ε = {:.4g}", 5),
            f"{title}, against δ",
            by="epsilon",
        ),
        "level_curves": partial(
            drawn,
            levels,
            epsilon,
            Quantity("objective", "least δ"),
            make_value_series(levels.get("max_loss", ()), loss_label + " ≤ {:g}"),
            f"{title}: least δ of an error",
            by="max_loss",
        ),
    }
