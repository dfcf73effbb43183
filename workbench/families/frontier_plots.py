"""Plots that several kinds of frontier share: series in panels. Each from the table of rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.objects import Record
from workbench.io.figures import COLOURS, MARKERS, PAGE, SCREEN, SOLVER, legend_below, panels, styled, titled, wrapped
from workbench.io.result import Plots
from workbench.privacy.notions import notion as named
from workbench.privacy.notions.dp import DeltaNotion

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = 4  # beside each other, and of numbers in all
OPEN, _ROUNDING = 1e-6, 1e-12  # a gap from here on is drawn as a band
_APART = 0.02  # A δ below this share of the axis cannot be told from 0 on a linear one.
_SPREAD = 30.0  # Losses that differ by more than this factor are drawn on a logarithmic axis.
_PIECE_POINTS = 60  # Points of an exact piece, which a logarithmic axis bends.
_COMPUTED = ("point", "level")  # curves with markers


@dataclass(frozen=True)
class Series:
    """How a mechanism is drawn: its name in the legend, its colour (index) and dash; jumps: whether its error jumps as
    the budget grows, as that of the best of finitely many does."""

    label: str
    colour: int
    dash: Any = "-"
    jumps: bool = False
    width: float = 1.5


AllSeries = Mapping[str, Series]


@dataclass(frozen=True)
class Quantity:
    """What an axis or panels show: a column of the table, its label (of panels a format of the value), whether the axis
    is logarithmic, where it ends, and whether it has ticks at the values themselves."""

    column: str
    label: str
    log: bool = False
    most: float | None = None
    whole: bool = False


def few(values: Iterable[Any], most: int = 5) -> list[Any]:
    """At most so many of the values, spread over their order."""
    ordered = sorted(set(values))
    places = np.linspace(0, len(ordered) - 1, min(most, len(ordered))).round()  # at least one apart
    return [ordered[int(k)] for k in places]


def each(values: Iterable[float], label: str, most: int = 6, *, nested: bool = False) -> dict[float, Series]:
    """A series for each of a few values. nested: curves that coincide show as one inside the other."""
    chosen = few((value for value in values if value == value), most)
    widths = [1.2 * (len(chosen) - k) if nested else Series.width for k in range(len(chosen))]
    return {value: Series(label.format(value), k, width=widths[k]) for k, value in enumerate(chosen)}


def jumps(rows: Iterable[Mapping[Any, Any]]) -> bool:
    """Whether optima like those of some rows may jump as the budget grows.

    The laws that meet a notion convex in them are a convex set, around the uniform law where ε > 0: their least error
    is continuous. Those that meet PDP with δ > 0 are not convex.
    """
    names = {row.get("notion") for row in rows if row.get("delta") != 0}
    known = (named(name) for name in names if isinstance(name, str))
    return any(isinstance(notion, DeltaNotion) and not notion.convex for notion in known)


def drawstyle(rows: pd.DataFrame) -> str:
    """How a line joins computed optima: where they may jump, by keeping the last one, which holds until the next."""
    return "steps-post" if jumps(rows.to_dict("records")) else "default"


def band(axis: Axes, rows: pd.DataFrame, x: str, high: str, **look: Any) -> None:
    """The proven interval [bound, value] of computed optima; between two that may jump, from the bound of the next."""
    low, steps = rows["bound"].astype(float), drawstyle(rows) != "default"
    if steps:
        low = low.shift(-1).fillna(low)
    ends = rows[[x, high]].astype(float)
    axis.fill_between(ends[x], low, ends[high], step="post" if steps else None, alpha=0.25, linewidth=0, **look)


def is_open(rows: pd.DataFrame) -> bool:
    """Whether a proven interval [bound, objective] is not closed, relative to the objective."""
    objective = rows["objective"].astype(float)
    return bool((objective - rows["bound"].astype(float) > OPEN * objective.abs() + _ROUNDING).any())


def all_series(ours: AllSeries, table: pd.DataFrame) -> dict[str, Series]:
    """The series of a family, and those of baselines from other packages, in colours that no other here has."""
    others = [name for name in table[table["curve"] == "baseline"]["mechanism"].dropna().unique() if name not in ours]
    taken = {ours[name].colour for name in table["mechanism"].unique() if name in ours}
    free = [k for k in range(len(COLOURS)) if k not in taken] or [*range(len(COLOURS))]
    return {**ours, **{name: Series(name, free[k % len(free)], "--") for k, name in enumerate(others)}}


def plain_log(axes: Axes, which: str) -> None:
    """A logarithmic axis ("x" or "y") in plain numbers: ticks at 1, 2, 5; where its ends are close, at round ones."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    logs = LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,), numticks=20)
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]) if high < 4 * low else logs)
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


@styled
def by_panel(
    table: pd.DataFrame,
    across: Quantity,
    up: Quantity,
    series: Mapping[Any, Series],
    title: str,
    *,
    by: str = "mechanism",
    panel: Quantity | None = None,
) -> Figure | None:
    """One line per mechanism (or value of the column `by`), one panel per value of another column; None with too few
    rows.

    What is computed has markers, baselines none; exact pieces are straight lines between their ends, proven or dashed,
    with hollow markers of what is computed over them. Rows without a value of the panel's column (Laplace has no number
    of outputs) stand in every panel; a "limit" is a band from its bound to its objective. Panels of words have one
    scale.
    """
    rows = table[table[up.column].notna()] if up.column in table else table[:0]
    if rows.empty or not {across.column, *([panel.column] if panel else [])} <= {*rows}:
        return None
    points, pieces = rows[rows["curve"].isin(_COMPUTED)], rows[rows["curve"].eq("piece")]
    known = points[panel.column].dropna().tolist() if panel else [""]
    words = isinstance(next(iter(known), 0), str)
    values = list(dict.fromkeys(known)) if words else few(known, _PANELS)
    if not values or (points[across.column].nunique() < 2 and pieces.empty):
        return None
    if up.column == "objective":
        losses = points[up.column].astype(float)
        up = replace(up, log=up.log or bool(losses.min() > 0 and losses.max() > _SPREAD * losses.min()))
    columns = min(len(values), _PANELS)
    deep = -(-len(values) // columns)
    figure, axes = panels(columns, deep, width=PAGE if columns > 1 else SCREEN, height=2.6 if deep == 1 else 2.2)
    for axis, value in zip(axes, values, strict=False):
        here = rows if panel is None else rows[(rows[panel.column] == value) | rows[panel.column].isna()]
        _limit(axis, here[here["curve"].eq("limit")], across.column)
        for key, look in series.items():
            _line(axis, here[here[by] == key], across.column, up.column, look)
        _axes(axis, across, up, rows if words else here)
        if panel is not None:
            titled(axis, panel.label.format(value))
    for k, axis in enumerate(axes):
        axis.set_ylabel("" if k % columns else up.label)
        if k >= len(values):
            axis.set_axis_off()
    _explain(axes[0], points, pieces, across, up)
    figure.suptitle(wrapped(title, figure.get_figwidth()))
    legend_below(figure, axes, columns=4)
    return figure


def _axes(axis: Axes, across: Quantity, up: Quantity, rows: pd.DataFrame) -> None:
    """The scales, and where the axes end: upwards from 0, unless that would press the curves."""
    axis.set_xlabel(across.label)
    for which, quantity in (("x", across), ("y", up)):
        if quantity.log:
            plain_log(axis, which)
        if quantity.whole:
            at = few(rows[quantity.column].dropna(), 10)
            axis.set(**{f"{which}ticks": at, f"{which}ticklabels": [f"{value:g}" for value in at]})
            axis.minorticks_off()
    if not up.log:
        low, high = rows[up.column].agg(["min", "max"]).astype(float)
        start = 0.0 if low < 0.6 * high or low == high else low - 0.35 * (high - low)
        axis.set_ylim(start, high + 0.08 * (high - start) or None)
    if across.most is not None:
        axis.set_xlim(-0.01 * across.most, across.most)
    if across.column == "delta":
        _separate_deltas(axis, rows[~rows["curve"].eq("piece")]["delta"].dropna(), across.most)


def _separate_deltas(axis: Axes, deltas: pd.Series, most: float | None) -> None:
    """Draw δ on a logarithmic axis with 0 apart where the least δ > 0 would fall together with 0 on a linear one."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    positive = deltas[deltas > 0].astype(float)
    last = most or (float(positive.max()) if len(positive) else 0.0)
    if positive.empty or positive.min() >= _APART * last:
        return
    first = float(positive.min())
    decades = np.arange(np.ceil(np.log10(first) - 1e-9), np.floor(np.log10(last) + 1e-9) + 1)
    every = -(-len(decades) // 5)
    axis.set_xscale("symlog", linthresh=first, linscale=0.6)
    axis.xaxis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in decades[::every])]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_xlim(-0.3 * first, 1.1 * last)


def _explain(axis: Axes, points: pd.DataFrame, pieces: pd.DataFrame, across: Quantity, up: Quantity) -> None:
    """Entries of the legend, for what lines, steps and bands mean."""
    if len(pieces):
        axis.plot([], [], color="black", marker="|", markersize=9, label="line: exact frontier with its breakpoints")
    if pieces["status"].ne("optimal").any():
        axis.plot([], [], "--", color="black", label="dashed: not proven in time")
    if pieces.empty and across.column == "epsilon" and drawstyle(points) != "default":
        axis.plot([], [], color="black", drawstyle="steps-post", label="steps (PDP): the last value, which still holds")
    if up.column == "objective" and is_open(points):
        axis.fill_between([], [], [], color="black", alpha=0.25, linewidth=0, label="band: [bound, objective]")


def _line(axis: Axes, part: pd.DataFrame, x: str, y: str, look: Series) -> None:
    """One series: exact pieces, computed points with markers, closed forms without, open gaps as bands, a level line
    where it has no x."""
    style: Record = {"color": COLOURS[look.colour], "linestyle": look.dash, "label": look.label}
    exact = part["curve"].eq("piece")
    for proven, pieces in part[exact].groupby(part["status"].eq("optimal") if exact.any() else exact):
        shares = np.concatenate([[0.0], np.geomspace(1e-8, 1, _PIECE_POINTS)])  # axes bend straight pieces
        lows, highs = (pieces[[f"{name}{end}" for name in (x, y)]].to_numpy(float) for end in ("", "_high"))
        places = lows[:, None, :] + shares[None, :, None] * (highs - lows)[:, None, :]
        line = np.concatenate([places, np.full((len(places), 1, 2), np.nan)], axis=1).reshape(-1, 2)
        ends = np.arange(len(line)).reshape(len(places), -1)[:, [0, -2]].ravel().tolist()
        look_of_pieces = {"linestyle": "-" if proven else "--", "marker": "|", "markersize": 9, "markevery": ends}
        axis.plot(*line.T, **style | look_of_pieces)
    part = part[~exact]
    if part.empty:
        return
    if part[x].isna().all():
        axis.axhline(float(part[y].iloc[0]), **style)
        return
    part = part.dropna(subset=[x]).sort_values(x)
    points = part["curve"].isin(_COMPUTED).any()
    if points:
        style |= {"marker": MARKERS[look.colour], "markersize": 4.5, "markevery": max(1, len(part) // 14)}
    if exact.any():
        style |= {"label": None, **SOLVER}
    joined = "steps-post" if look.jumps and x == "epsilon" else drawstyle(part)
    axis.plot(part[x].astype(float), part[y].astype(float), linewidth=look.width, drawstyle=joined, **style)
    if points and y == "objective" and is_open(part):
        band(axis, part, x, y, color=COLOURS[look.colour])


def _limit(axis: Axes, limit: pd.DataFrame, x: str) -> None:
    """The proven interval of an optimum over any outputs; a level one where it has no x."""
    label = "limit for any outputs, proven interval"
    look: Record = {"color": "black", "alpha": 0.25, "linewidth": 1, "label": label}  # an interval may be thin
    ends = limit.sort_values(x)[[x, "bound", "objective"]].astype(float)
    if ends.empty:
        return
    if ends[x].isna().all():
        axis.axhspan(*ends[["bound", "objective"]].iloc[0], **look)
    else:
        axis.fill_between(ends[x], ends["bound"], ends["objective"], **look)


def by_name(rows: pd.DataFrame, names: Iterable[str], across: Quantity, up: Quantity, title: str = "") -> Figure | None:
    """One line for each of the names of rows, of values that are computed."""
    named = rows.assign(curve="point", bound=rows[up.column], name=list(names))
    series = {name: Series(name, k % len(COLOURS)) for k, name in enumerate(named["name"].unique())}
    return by_panel(named, across, up, series, title, by="name")


def budget_plots(table: pd.DataFrame, name: str, series: AllSeries, title: str, words: str) -> Plots:
    """Of rows at budgets (ε, δ): every mechanism against ε at a few δ; of the designed one, by its name, the error
    against ε for every δ and against δ for every ε, with its exact pieces; the least δ of errors against ε.

    words: of the error.
    """
    known = table[table["objective"].notna()]
    known = known.assign(measure=[named(notion).title for notion in known["notion"]])
    points, levels = known[known["curve"].isin(("point", "baseline"))], known[known["curve"].eq("level")]
    points = points.assign(
        budget=[f"{notion}, δ = {delta:g}" for notion, delta in zip(points["measure"], points["delta"], strict=True)]
    )
    own, pieces = points[points["mechanism"].eq(name)], known[known["curve"].eq("piece")]
    deltas, traced = each(own["delta"], "δ = {:g}", nested=True), own[own["epsilon"].isin(pieces["epsilon"])]
    reach = min(1.0, max(0.3, 1.5 * float(own["delta"].max()))) if len(pieces) else None
    epsilon, delta = Quantity("epsilon", "ε"), Quantity("delta", "δ", most=reach)
    error, logged = Quantity("objective", words), Quantity("objective", words, True)
    drawn = partial(by_panel, panel=Quantity("measure", "{}"))
    return {
        "error_epsilon": partial(
            by_panel,
            points[points["delta"].isin(few(points["delta"], _PANELS))],
            epsilon,
            logged,
            all_series(series, points),
            title,
            panel=Quantity("budget", "{}"),
        ),
        "error_epsilon_delta": partial(
            drawn, own if len(deltas) > 1 else own[:0], epsilon, error, deltas, f"{title}, per δ", by="delta"
        ),
        "error_delta": partial(
            drawn,
            known[known["mechanism"].eq(name) & known["curve"].isin(("point", "piece"))],
            delta,
            error,
            each((traced if len(traced) else own)["epsilon"], "ε = {:.4g}", 5),
            f"{title}, against δ",
            by="epsilon",
        ),
        "level_curves": partial(
            drawn,
            levels,
            epsilon,
            Quantity("objective", "least δ"),
            each(levels.get("max_loss", ()), words + " ≤ {:g}"),
            f"{title}: least δ of an error",
            by="max_loss",
        ),
    }
