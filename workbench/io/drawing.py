"""The one drawer of figures that are stated as data.

Papers state them in papers/declared/<paper>.toml, comparisons in comparison/figures.toml, and frontiers make them
from their rows (`families/frontier_plots`).

A figure: `width`, "column", "page" or inches, `height` of a panel in inches, `columns`, `rows`, `by` (the column whose
values make panels, in their order), `heading` above all panels, `legend` (columns of the one below all panels),
`inside` (of every panel, or of those at the indices `inside_of`), `panels` (what differs from panel to panel); and, for
all panels or each:

    names                  a template of the label of each row on the x axis
    title, where, set      a template; rows (`DataFrame.query`); matplotlib's properties of an axis
    scales                 {x or y = "log"}: logarithmic in plain numbers; {x or y = [first, last]}: logarithmic between
                           these numbers, with 0 apart
    ticks, plain           {x or y = column}: ticks at its values; {x or y = [numbers]}: those in range, plainly written
    series                 see below, each with `where` of its own; further keys are matplotlib's

    kind      draws                                    keys besides x, y (columns, expressions of them, or numbers)
    line      points, joined                           (default); a marker of `hollow` series lets the line be seen
    step      each y kept up to the next x             until: the last x
    bars      bars                                     spread: share of the unit that series side by side take
    stairs    one level around each x
    errors    points with bars of the length `error`
    band      between the two expressions y
    across    lines over the panel at each y or each x
    span      a band over the panel from the least to the largest y (a column, or two)
    heat      numbers in a grid of the masses y        limits: columns whose range the colours have
    cells     masses over x and y by colour, to the    mass: the column; until: the end of the last cell
              word `most`
    map       the percentages `value` in a grid of x and y `label`: of the colours
    text      `text`, a template of the row and its    offset: in points
              y as {value}, beside each point

One series of rows makes several curves: `by` (columns) one for each value, in the order and style of `styles` where
named, `curves` one for each {y = style}. `of` names another table than the artifact's, and `rows` is a table itself.
An empty table leaves the series to the legend alone. Colours are numbers of
`COLOURS`, "by" for one after the other, "map:NAME" for those of a colour map, or matplotlib's. Templates are filled
from the first row (text: each) and from the artifact's words.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.exact.objects import Record, Values
from workbench.io.figures import (
    COLOURS,
    MARKERS,
    SOLVER_MARKER_STYLE,
    WIDTH_INCHES,
    add_legend_below,
    add_percent_colour_bar,
    apply_style_sheet,
    draw_percent_map,
    draw_pmf_heat_map,
    make_panels,
    set_log_axis,
    set_log_axis_with_zero,
    set_wrapped_title,
    wrap_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_AXIS = ("title", "set", "scales", "ticks", "plain", "series", "where", "names", "inside")
_OURS = {
    "kind",
    "where",
    "of",
    "rows",
    "x",
    "y",
    "by",
    "styles",
    "curves",
    "colour",
    "until",
    "spread",
    "shift",
    "width",
    "hollow",
    "error",
    "limits",
    "mass",
    "most",
    "text",
    "offset",
    "at",
}

_MAPPED = 10  # colours taken of a map
_FAINT = 1e-6  # a probability that still has a colour


@cache
def read_toml_resource(package: str, file: str) -> Record:
    """What a TOML file of a package states."""
    return tomllib.loads(resources.files(package).joinpath(file).read_text("utf-8"))


@dataclass(frozen=True)
class Drawing:
    """A declared figure, to be drawn of a table.

    Attributes:
        figure: The declaration.
        words: Values for its templates. None: its texts are no templates, and are shown as they are.
        styles: Styles that series name.
        further: Tables besides the artifact's own.
    """

    figure: Values
    template_values: Values | None = field(default_factory=dict)
    styles: Values = field(default_factory=dict)
    other_tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def __call__(self, table: pd.DataFrame) -> Figure:
        """Draw the figure of a table."""
        return draw_declared_figure(self, table)


@apply_style_sheet
def draw_declared_figure(drawing: Drawing, table: pd.DataFrame) -> Figure:
    """Draw a declared figure of a table. Panels of its grid without a declaration stay empty."""
    figure = drawing.figure
    parts = _list_panels(figure, table)
    columns = figure.get("columns", len(parts))
    rows = figure.get("rows", 1)
    width = figure.get("width", "page" if columns > 1 else "column")
    if isinstance(width, str):
        width = WIDTH_INCHES[width]
    drawn, axes = make_panels(columns, rows, width=width, height=figure.get("height", 2.4))
    for at, (axis, (spec, part)) in enumerate(zip(axes[: len(parts)], parts, strict=True)):
        _draw_panel(axis, spec, part, drawing)
        if "inside" in spec and at in figure.get("inside_of", range(len(parts))):
            axis.legend(**spec["inside"])
    for axis in axes[len(parts) :]:
        axis.set_axis_off()
    if "heading" in figure:
        drawn.suptitle(wrap_text(figure["heading"], drawn.get_figwidth()))
    if "legend" in figure:
        add_legend_below(drawn, axes, columns=figure["legend"])
    return drawn


def _list_panels(figure: Values, table: pd.DataFrame) -> list[tuple[Record, pd.DataFrame]]:
    """List the declaration of each panel and its rows."""
    common = {key: figure[key] for key in _AXIS if key in figure}
    parts = [part for _, part in table.groupby(figure["by"])] if "by" in figure else []
    special = figure.get("panels", [{}] * max(1, len(parts)))
    specs = [
        common | {**own, "set": {**common.get("set", {}), **own.get("set", {})}} for own in special
    ]
    return list(zip(specs, parts or [_select_rows(spec, table) for spec in specs], strict=True))


def _draw_panel(axis: Axes, spec: Values, table: pd.DataFrame, drawing: Drawing) -> None:
    """Draw the series of a panel, then its scales, titles and ticks."""
    words = drawing.template_values
    for series in spec["series"]:
        rows = series.get("rows", table)
        if "of" in series:
            rows = _select_rows(spec, drawing.other_tables[series["of"]])
        for at, (part, look) in enumerate(
            _list_curves(series, _select_rows(series, rows), drawing.styles)
        ):
            getattr(_Curve(axis, part, {**look, "at": at}, words), look.get("kind", "line"))()
    for name, scale in spec.get("scales", {}).items():
        if scale == "log":
            set_log_axis(axis, name)
        else:
            set_log_axis_with_zero(axis, name, *scale)
    if "title" in spec:
        set_wrapped_title(axis, _fill(spec["title"], table, words))
    properties = dict(spec.get("set", {}))
    for name in ("xlim", "ylim"):  # one end alone
        if np.ndim(properties.get(name, ())) == 0:
            getattr(axis, f"set_{name}")(properties.pop(name), None)
    axis.set(**properties)
    for name, column in spec.get("ticks", {}).items():
        axis.set(**{f"{name}ticks": np.unique(table[column])})
    if "names" in spec:
        axis.set_xticks(
            range(len(table)), [_fill(spec["names"], table, words, at) for at in range(len(table))]
        )
    for name, numbers in spec.get("plain", {}).items():
        low, high = getattr(axis, f"get_{name}lim")()
        inside = [number for number in numbers if low <= number <= high]
        getattr(axis, f"set_{name}ticks")(inside, [f"{number:g}" for number in inside])
        getattr(axis, f"set_{name}ticks")([], minor=True)


def _select_rows(spec: Values, table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows that a declaration asks for."""
    return table.query(spec["where"]) if "where" in spec else table


def _list_curves(
    series: Values, table: pd.DataFrame, styles: Values
) -> Iterator[tuple[pd.DataFrame, Record]]:
    """List the rows and the style of every curve of a series."""
    if "curves" in series:
        members = [(table, {"y": y, **own}) for y, own in series["curves"].items()]
    elif "styles" in series:
        groups = dict(list(table.groupby(series["by"])))
        named = styles[series["styles"]]
        members = [(groups[name], dict(named[name])) for name in named if name in groups]
    elif "by" in series:
        members = [
            (part, {})
            for _, part in table.groupby(series["by"], sort=not isinstance(series["by"], list))
        ]
    else:
        members = [(table, {})]
    for k, (part, own) in enumerate(members):
        shift = (k - (len(members) - 1) / 2) * series.get("spread", 0.0) / len(members)
        yield (
            part,
            {**own, **series, "shift": shift, "width": series.get("spread", 0.8) / len(members)},
        )


def _fill(template: Any, table: pd.DataFrame, words: Values | None, at: int = 0) -> Any:
    """Fill a template with the values of one row and the words; leave a text without words as it is."""
    if words is None or not isinstance(template, str) or "{" not in template:
        return template
    row = {str(key): value for key, value in table.iloc[at].items()} if len(table) else {}
    return template.format(**{**words, **row})


@dataclass(frozen=True)
class _Curve:
    """One curve of a series on an axis; each method draws one kind of mark."""

    axis: Axes
    table: pd.DataFrame
    look: Values
    words: Values | None

    def values(self, what: Any) -> Any:
        """A column, an expression of columns, a number for every row, or the numbers of the rows."""
        if isinstance(what, str):
            return np.asarray(self.table[what] if what in self.table else self.table.eval(what))
        return (
            np.arange(len(self.table))
            if what is None
            else np.full(len(self.table), what, dtype=float)
        )

    @property
    def x(self) -> Any:
        """Moved aside where curves stand side by side."""
        values = self.values(self.look.get("x"))
        return values + self.look["shift"] if self.look["shift"] else values

    @property
    def y(self) -> Any:
        """As declared."""
        return self.values(self.look["y"])

    @property
    def colour(self) -> Any:
        """As matplotlib takes it."""
        colour = self.look.get("colour", "by" if self.look.keys() & {"by", "curves"} else 0)
        if str(colour).startswith("map:"):  # darker and darker, each its own
            import matplotlib as mpl

            return mpl.colormaps[colour[4:]](0.08 + 0.92 * self.look["at"] / (_MAPPED - 1))
        colour = self.look["at"] % len(COLOURS) if colour == "by" else colour
        return colour if isinstance(colour, str) else COLOURS[colour]

    @property
    def style(self) -> Record:
        """What matplotlib is told."""
        own = {
            key: tuple(v) if isinstance(v, list) else v
            for key, v in self.look.items()
            if key not in _OURS
        }
        if own.get("marker") == "by":
            own["marker"] = MARKERS[self.look["at"]]
        if "label" in own:
            own["label"] = _fill(own["label"], self.table, self.words)
        return {
            **(SOLVER_MARKER_STYLE if self.look.get("hollow") else {}),
            **own,
            "color": self.colour,
        }

    def without(self, *names: str) -> Record:
        """The style but for these properties."""
        return {key: value for key, value in self.style.items() if key not in names}

    def line(self) -> None:
        self.axis.plot(self.x, self.y, **self.style)

    def step(self) -> None:
        x, y = self.x, self.y
        if "until" in self.look:
            x, y = np.append(x, self.look["until"]), np.append(y, y[-1:])
        self.axis.step(x, y, where="post", **self.style)

    def bars(self) -> None:
        self.axis.bar(
            self.x, self.y, width=self.look["width"], **self.without("marker", "linestyle")
        )

    def stairs(self) -> None:
        self.axis.stairs(
            self.y, np.append(self.x - 0.5, self.x[-1] + 0.5), baseline=None, **self.style
        )

    def errors(self) -> None:
        self.axis.errorbar(
            self.x, self.y, yerr=np.nan_to_num(self.values(self.look["error"])), **self.style
        )

    def band(self) -> None:
        ends = map(self.values, self.look["y"])
        self.axis.fill_between(
            self.x, *ends, **{"linewidth": 0, **self.without("marker", "linestyle")}
        )

    def across(self) -> None:
        name, draw_at = ("x", self.axis.axvline) if "x" in self.look else ("y", self.axis.axhline)
        for at in np.unique(self.values(self.look[name])):
            draw_at(at, **self.style)

    def span(self) -> None:
        names = self.look["y"]
        ends = np.concatenate(
            [self.values(name) for name in (names if isinstance(names, list) else [names])]
        )
        self.axis.axhspan(ends.min(), ends.max(), **{"linewidth": 0, **self.style})

    def heat(self) -> None:
        size, limits = (
            round(len(self.table) ** 0.5),
            self.table[self.look.get("limits", [self.look["y"]])].to_numpy(),
        )
        ends = (float(limits.min()), float(limits.max())) if "limits" in self.look else None
        draw_pmf_heat_map(self.axis, self.y, (size, size), limits=ends)

    def cells(self) -> None:
        from matplotlib.colors import LogNorm

        look, scale = self.look, LogNorm(_FAINT, (self.words or {})["most"])
        grid = self.table.pivot_table(
            index=look["y"], columns=look["x"], values=look["mass"]
        ).to_numpy()
        edges = np.append(np.unique(self.x), look["until"])
        shown = np.where(grid > 0, np.maximum(grid, _FAINT), np.nan)
        image = self.axis.pcolormesh(edges, edges, shown, cmap="viridis", norm=scale)
        self.axis.grid(False)
        self.axis.figure.colorbar(image, ax=self.axis, label="probability of the cell")

    def map(self) -> None:
        look = self.look
        table = self.table.assign(percent=self.values(look["value"]))
        add_percent_colour_bar(
            draw_percent_map(self.axis, table, (look["x"], look["y"]), "percent"),
            [self.axis],
            look["label"],
        )

    def text(self) -> None:
        style, offset = self.without("label"), self.look.get("offset", (0, 0))
        for at, place in enumerate(zip(self.x, self.y, strict=True)):
            text = _fill(
                self.look["text"], self.table, {**(self.words or {}), "value": place[1]}, at
            )
            self.axis.annotate(text, place, offset, textcoords="offset points", **style)
