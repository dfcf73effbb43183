"""Plots that several kinds of frontier share: series in panels. Each from the table of rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.exact.objects import Record
from workbench.io.figures import COLOURS, MARKERS, PAGE, SCREEN, SOLVER, legend_below, panels, styled, titled, wrapped
from workbench.io.result import Plots
from workbench.privacy.notions import notion as named
from workbench.privacy.notions.dp import DeltaNotion

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = 4  # of numbers
OPEN = 1e-6  # a gap from here on is drawn as a band


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
    """What an axis shows: a column of the table, its label, whether the axis is logarithmic, where it ends, and whether
    it has ticks at the values themselves."""

    column: str
    label: str
    log: bool = False
    most: float | None = None
    whole: bool = False


@dataclass(frozen=True)
class Line:
    """A line that is known exactly, of a series in a panel; joined: as `drawstyle` says."""

    panel: Any
    series: Any
    x: ArrayLike
    y: ArrayLike
    dash: str
    joined: str = "default"
    marker: str = ""


@dataclass(frozen=True)
class Exact:
    """Exact lines, and what lines and dashes mean; computed optima are hollow markers over them."""

    lines: Sequence[Line]
    meaning: str
    dashed: str


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


def is_open(rows: pd.DataFrame, least: float = 1.0) -> bool:
    """Whether a proven interval [bound, objective] is not closed, relative to the objective or to `least`."""
    objective = rows["objective"].astype(float)
    return bool((objective - rows["bound"].astype(float) > OPEN * objective.abs().clip(lower=least)).any())


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
    panel: Quantity,
    across: Quantity,
    up: Quantity,
    series: Mapping[Any, Series],
    title: str,
    *,
    by: str = "mechanism",
    exact: Exact | None = None,
) -> Figure | None:
    """One line per mechanism (or value of the column `by`), one panel per value of another column, whose label is a
    format of it; None with too few rows.

    Points have markers, baselines none. Rows without a value of the panel's column (Laplace has no number of outputs)
    stand in every panel; a "limit" is a band from its bound to its objective. Panels of words have one scale.
    """
    lines = () if exact is None else exact.lines
    rows, x = table[table[up.column].notna()] if up.column in table else table[:0], across.column
    if rows.empty or not {panel.column, x} <= {*rows}:
        return None
    points = rows[rows["curve"] == "point"]
    known = points[panel.column].dropna().tolist()
    words = isinstance(next(iter(known), 0), str)
    values = list(dict.fromkeys(known)) if words else few(known, _PANELS)
    if not values or (points[x].nunique() < 2 and not any(np.unique(line.x).size > 1 for line in lines)):
        return None
    deep = 1 if len(values) <= _PANELS else 2
    columns = -(-len(values) // deep)
    figure, axes = panels(columns, deep, width=PAGE if columns > 1 else SCREEN, height=2.6 if deep == 1 else 2.2)
    for axis, value in zip(axes, values, strict=False):
        here = rows[(rows[panel.column] == value) | rows[panel.column].isna()]
        _limit(axis, here[here["curve"] == "limit"], x)
        _series(axis, here[here["curve"] != "limit"], across, up, by, series, [l for l in lines if l.panel == value])
        titled(axis, panel.label.format(value))
        _ends(axis, across, up, rows if words else here)
    for axis in axes[1:]:
        axis.set_ylabel("")
    for axis in axes[len(values) :]:
        axis.set_axis_off()
    if exact is not None:
        _explain(axes[0], points, exact)
    elif up.column == "objective" and is_open(points, least=0.0):
        axes[0].fill_between([], [], [], color=COLOURS[0], alpha=0.25, linewidth=0, label="band: [bound, objective]")
    figure.suptitle(wrapped(title, PAGE))
    legend_below(figure, axes, columns=4)
    return figure


def _ends(axis: Axes, across: Quantity, up: Quantity, rows: pd.DataFrame) -> None:
    """Where the axes end: upwards from 0, unless that would press the curves."""
    if not up.log:
        low, high = rows[up.column].agg(["min", "max"]).astype(float)
        start = 0.0 if low < 0.6 * high or low == high else low - 0.35 * (high - low)
        axis.set_ylim(start, high + 0.08 * (high - start) or None)
    if across.most is not None:
        axis.set_xlim(-0.01 * across.most, across.most)


def _explain(axis: Axes, points: pd.DataFrame, exact: Exact) -> None:
    """Entries of the legend, for what lines, markers, steps and bands mean."""
    dashes = {line.dash for line in exact.lines}
    solver = "marker: solver, certified" if points["certified"].eq(True).all() else "marker: solver"
    if dashes:
        axis.plot([], [], color="black", label=f"line: {exact.meaning}")
    if "--" in dashes:
        axis.plot([], [], "--", color="black", label=f"dashed: {exact.dashed}")
    axis.plot([], [], color="black", marker="o", label=solver, **(SOLVER if dashes else {}))
    if {*(line.joined for line in exact.lines), "default" if dashes else drawstyle(points)} != {"default"}:
        axis.plot([], [], color="black", drawstyle="steps-post", label="steps (PDP): the last value, which still holds")
    if is_open(points):
        axis.fill_between([], [], [], color="black", alpha=0.25, linewidth=0, label="band: [bound, objective]")


def _series(
    axis: Axes,
    rows: pd.DataFrame,
    across: Quantity,
    up: Quantity,
    by: str,
    series: Mapping[Any, Series],
    exact: Sequence[Line] = (),
) -> None:
    """The rows of every value of a column as a line, the exact ones, and the axes."""
    for key, look in series.items():
        _line(
            axis, rows[rows[by] == key], across.column, up.column, look, [line for line in exact if line.series == key]
        )
    axis.set_xlabel(across.label)
    axis.set_ylabel(up.label)
    for which, quantity in (("x", across), ("y", up)):
        if quantity.log:
            plain_log(axis, which)
        if quantity.whole:
            at = few(rows[quantity.column].dropna(), 10)
            axis.set(**{f"{which}ticks": at, f"{which}ticklabels": [f"{value:g}" for value in at]})
            axis.minorticks_off()


def _line(axis: Axes, part: pd.DataFrame, x: str, y: str, look: Series, exact: Sequence[Line]) -> None:
    """One series: exact lines, points with markers, closed forms without, open gaps as bands, a level line where it has
    no x."""
    for line in exact:
        axis.plot(
            line.x,
            line.y,
            color=COLOURS[look.colour],
            label=look.label,
            linewidth=look.width,
            linestyle=line.dash,
            drawstyle=line.joined,
            marker=line.marker,
            markersize=9,
        )
    if part.empty:
        return
    style = {"color": COLOURS[look.colour], "linestyle": look.dash, "label": look.label}
    if part[x].isna().all():
        axis.axhline(float(part[y].iloc[0]), **style)
        return
    part = part.dropna(subset=[x]).sort_values(x)
    points = (part["curve"] == "point").any()
    if points:
        style |= {"marker": MARKERS[look.colour], "markersize": 4.5, "markevery": max(1, len(part) // 14)}
    if points and exact:
        style |= {"label": None, **SOLVER}
    joined = "steps-post" if look.jumps and x == "epsilon" else drawstyle(part)
    axis.plot(part[x].astype(float), part[y].astype(float), linewidth=look.width, drawstyle=joined, **style)
    if points and y == "objective" and is_open(part, least=1.0 if exact else 0.0):
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


@styled
def lines(
    table: pd.DataFrame, across: Quantity, up: Quantity, by: str, series: Mapping[Any, Series], title: str
) -> Figure | None:
    """One line per value of a column; points with markers, closed forms over them, open gaps as bands; the legend says
    where a line has no value."""
    if up.column not in table:
        return None
    known = table[up.column].notna()
    rows = table[known]
    if rows.empty or rows[across.column].nunique() < 2:
        return None
    for key, lost in table[~known].groupby(by)[across.column]:
        if key in series and lost.notna().all():
            where = f"{across.label.split()[0]} = {', '.join(f'{x:g}' for x in few(lost, 3))}"
            series = {**series, key: replace(series[key], label=f"{series[key].label} (none at {where})")}
    figure, (axis,) = panels(width=SCREEN, height=3.4)
    _series(axis, rows, across, up, by, series)
    titled(axis, title)
    legend_below(figure, [axis], columns=3)
    return figure


def by_name(rows: pd.DataFrame, names: Iterable[str], across: Quantity, up: Quantity, title: str = "") -> Figure | None:
    """One line for each of the names of rows, of values that are computed."""
    named = rows.assign(curve="point", bound=rows[up.column], name=list(names))
    series = {name: Series(name, k % len(COLOURS)) for k, name in enumerate(named["name"].unique())}
    return lines(named, across, up, "name", series, title)


def budget_plots(
    rows: pd.DataFrame,
    own: pd.DataFrame,
    against_delta: pd.DataFrame,
    series: AllSeries,
    title: str,
    words: str,
) -> Plots:
    """Error against ε at the first δ and for every δ, and against δ for every ε.

    rows: of budgets (ε, δ); own: of them those of the designed mechanism; against_delta: those that are drawn so;
    words: of the error.
    """
    first = rows["delta"].min() if len(rows) else 0.0
    least = rows[rows["delta"].eq(first)] if len(rows) else rows
    deltas = each(own["delta"], "δ = {:g}")
    epsilon, error, logged = Quantity("epsilon", "ε"), Quantity("objective", words), Quantity("objective", words, True)
    return {
        "error_epsilon": partial(
            lines, least, epsilon, logged, "mechanism", all_series(series, least), f"{title}, δ = {first:g}"
        ),
        "error_epsilon_delta": partial(
            lines, own if len(deltas) > 1 else own[:0], epsilon, logged, "delta", deltas, f"{title}, per δ"
        ),
        "error_delta": partial(
            by_panel,
            against_delta,
            Quantity("epsilon", "ε = {:.3g}"),
            Quantity("delta", "δ"),
            error,
            series,
            f"{title} against δ",
        ),
    }
