"""Draw Matplotlib figures from declarations, which are plain data such as TOML tables.

Papers declare figures in papers/declared/<paper>.toml and comparisons in comparison/figures.toml.
Frontiers make declarations from their rows (`pipeline/frontier_plots`). Example: one panel with a
joined line of the columns epsilon and loss, for the rows whose runs are 1:

    {"title": "Loss", "series": [{"x": "epsilon", "y": "loss", "where": "runs == 1"}]}

A figure has the keys

    width, height          "column", "page" or inches; inches of a panel
    columns, rows          numbers of columns and rows of the grid of panels (default: one row, or
                           as many rows as the columns need)
    by                     a column; each of its values makes one panel
    heading, legend        text above all panels; number of columns of a legend below all panels
    inside, inside_of      options of a legend inside panels; indices of these panels (default: all)
    panels                 list with one mapping for each panel, of the keys that differ

and, for all panels or in an entry of `panels`,

    names                  template: label of each row on the x axis
    title, where, set      template; condition on rows (`DataFrame.query`); properties of the axis,
                           where an end of a limit may be an expression of the rows
    scales                 {x or y = "log"}: logarithmic with plain numbers;
                           {x or y = [first, last]}: logarithmic between these numbers, with a
                           separate 0
    ticks, plain           {x or y = column}: ticks at its values, at most 17;
                           {x or y = [numbers]}: plain ticks at those in range
    series                 list of series, whose kinds and keys `_Curve` explains; each may have
                           its own `where`; keys that are not listed are Matplotlib's

A series may make several curves. `by` (columns) makes one for each value, in the order and style of
`styles` if that key exists. `curves` makes one for each {y = style}. The rows are those of the
table that is drawn, unless `of` names another table or `rows` is a table. An empty table only adds
the series to the legend. A colour is an index of `COLOURS`, "by" for the next colour of each curve,
"map:NAME" for the next colour of a colour map, or a colour of Matplotlib. A template is a text such
as "ε = {epsilon}". It is filled from the first row (`text`, `names`: from each row) and from
`Drawing.template_values`.

A series with `printed = true` shows printed numbers of a paper. It is left out if the parameters of
the figure differ from the paper's (`workbench.papers.parameters`).

A new kind of series needs a method `draw_KIND` of `_Curve`, a row of the table there, and its keys
in `_SERIES_KEYS`.
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
    apply_style_sheet,
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

# These keys of a figure apply to all panels, unless a panel has its own.
_PANEL_KEYS = (
    "title",
    "set",
    "scales",
    "ticks",
    "plain",
    "series",
    "where",
    "names",
    "inside",
)
# These keys of a series are not passed to Matplotlib.
_SERIES_KEYS = {
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
    "printed",
}
_MAX_TICKS = 17  # Labels of more ticks at the values of a column overlap.
_COLOUR_MAP_STEPS = 10  # A colour map is divided into this many colours.
_MIN_COLOURED_MASS = 1e-6  # A smaller positive probability gets the colour of this probability.


@cache
def read_toml_resource(package: str, file: str) -> Record:
    """Read a TOML file of a package.

    Args:
        package: Name of the package.
        file: Name of the file.
    """
    return tomllib.loads(resources.files(package).joinpath(file).read_text("utf-8"))


@dataclass(frozen=True)
class Drawing:
    """A declared figure, which draws a table when it is called.

    Attributes:
        figure: The declaration, with the keys of the module header.
        template_values: Values for its templates. None: its texts are no templates, and are shown
            unchanged.
        styles: Styles that series name.
        other_tables: Tables besides that of the artifact.
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
    """Draw a declared figure of a table. Panels of its grid without a declaration stay empty.

    Args:
        drawing: The declared figure.
        table: Rows of the artifact. Their columns are those that the declaration names.
    """
    figure = drawing.figure
    panels = _list_panels(figure, table)
    columns = figure.get("columns", len(panels))
    rows = figure.get("rows", -(-len(panels) // columns))  # The quotient is rounded up.
    width = figure.get("width", "page" if columns > 1 else "column")
    if isinstance(width, str):
        width = WIDTH_INCHES[width]
    drawn, axes = make_panels(columns, rows, width=width, height=figure.get("height", 2.4))
    for position, (panel, (spec, rows_of_panel)) in enumerate(
        zip(axes[: len(panels)], panels, strict=True)
    ):
        _draw_panel(panel, spec, rows_of_panel, drawing)
        if "inside" in spec and position in figure.get("inside_of", range(len(panels))):
            panel.legend(**spec["inside"])
    for panel in axes[len(panels) :]:
        panel.set_axis_off()
    if "heading" in figure:
        drawn.suptitle(wrap_text(figure["heading"], drawn.get_figwidth()))
    if "legend" in figure:
        add_legend_below(drawn, axes, columns=figure["legend"])
    return drawn


def _list_panels(figure: Values, table: pd.DataFrame) -> list[tuple[Record, pd.DataFrame]]:
    """List the declaration of each panel and its rows."""
    common = {key: figure[key] for key in _PANEL_KEYS if key in figure}
    parts = []
    if "by" in figure:
        parts = [part for _, part in table.groupby(figure["by"])]
    special_keys = figure.get("panels", [{}] * max(1, len(parts)))
    specs = []
    for keys in special_keys:
        properties = {**common.get("set", {}), **keys.get("set", {})}
        specs.append(common | {**keys, "set": properties})
    if not parts:
        parts = [_select_rows(spec, table) for spec in specs]
    return list(zip(specs, parts, strict=True))


def _draw_panel(panel: Axes, spec: Values, table: pd.DataFrame, drawing: Drawing) -> None:
    """Draw the series of a panel, then its scales, titles and ticks."""
    values = drawing.template_values
    for series in spec["series"]:
        rows = series.get("rows", table)
        if "of" in series:
            rows = _select_rows(spec, drawing.other_tables[series["of"]])
        curves = _list_curves(series, _select_rows(series, rows), drawing.styles)
        for position, (part, look) in enumerate(curves):
            curve = _Curve(panel, part, {**look, "at": position}, values)
            curve.draw()
    for name, scale in spec.get("scales", {}).items():
        if scale == "log":
            set_log_axis(panel, name)
        else:
            set_log_axis_with_zero(panel, name, *scale)
    if "title" in spec:
        set_wrapped_title(panel, _fill_template(spec["title"], table, values))
    properties = dict(spec.get("set", {}))
    for name in ("xlim", "ylim"):
        limits = properties.get(name, ())
        # A single number is the lower end of the axis.
        if np.ndim(limits) == 0:
            getattr(panel, f"set_{name}")(properties.pop(name), None)
        elif any(isinstance(limit, str) for limit in limits):
            properties[name] = [table.eval(str(limit)) for limit in limits]
    panel.set(**properties)
    for name, column in spec.get("ticks", {}).items():
        places = np.unique(table[column])
        # Of many places, every second or third has a tick, so that the labels do not overlap.
        panel.set(**{f"{name}ticks": places[:: -(-len(places) // _MAX_TICKS)]})
    if "names" in spec:
        row_numbers = range(len(table))
        names = [_fill_template(spec["names"], table, values, row) for row in row_numbers]
        panel.set_xticks(row_numbers, names)
    for name, numbers in spec.get("plain", {}).items():
        low, high = getattr(panel, f"get_{name}lim")()
        ticks = [number for number in numbers if low <= number <= high]
        getattr(panel, f"set_{name}ticks")(ticks, [f"{number:g}" for number in ticks])
        getattr(panel, f"set_{name}ticks")([], minor=True)


def _select_rows(spec: Values, table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows for which the condition of a declaration holds."""
    if "where" in spec:
        return table.query(spec["where"])
    return table


def _list_curves(
    series: Values, table: pd.DataFrame, styles: Values
) -> Iterator[tuple[pd.DataFrame, Record]]:
    """Yield the rows and the style of every curve of a series."""
    members: list[tuple[pd.DataFrame, Record]] = []
    if "curves" in series:
        members += [(table, {"y": y, **style}) for y, style in series["curves"].items()]
    elif "styles" in series:
        groups = dict(list(table.groupby(series["by"])))
        named_styles = styles[series["styles"]]
        members += [(groups[n], dict(named_styles[n])) for n in named_styles if n in groups]
    elif "by" in series:
        is_sorted = not isinstance(series["by"], list)
        members += [(part, {}) for _, part in table.groupby(series["by"], sort=is_sorted)]
    else:
        members.append((table, {}))
    count = len(members)
    for position, (part, style) in enumerate(members):
        # Adjacent curves have equal distances, and lie symmetrically around x.
        shift = (position - (count - 1) / 2) * series.get("spread", 0.0) / count
        width = series.get("spread", 0.8) / count
        yield part, {**style, **series, "shift": shift, "width": width}


def _fill_template(template: Any, table: pd.DataFrame, values: Values | None, row: int = 0) -> Any:
    """Fill a template with the cells of a row and with other values by name.

    A row takes precedence over `values`. If `values` are None, the text is returned unchanged.
    """
    if values is None or not isinstance(template, str) or "{" not in template:
        return template
    cells = {}
    if len(table):
        cells = {str(key): value for key, value in table.iloc[row].items()}
    return template.format(**{**values, **cells})


@dataclass(frozen=True)
class _Curve:
    """One curve of a series on a panel.

    The key `kind` of a series names the method that draws it:

        kind     draws                                      keys besides x and y
        line     points, joined (default)                   hollow: markers show the line below
        step     each y until the next x                    until: the last x
        bars     bars                                       spread: share of the unit for all series
        stairs   one level around each x
        errors   points with error bars                     error: length of the bars
        band     between the two expressions y
        across   lines across the panel at each y or each x
        span     a band across the panel from the smallest
                 to the largest y (a column, or two)
        heat     numbers in a grid of the masses y          limits: columns with the colour range
        cells    masses over x and y by colour, up to the   mass: the column
                 template value `most`                      until: the end of the last cell
        text     the template `text` beside each point,     offset: in points
                 with the cells of its row, and y as {value}

    x, y and `error` are columns, expressions of columns, or numbers.

    Attributes:
        panel: Axes of Matplotlib, on which it is drawn.
        table: Rows of the curve.
        look: Keys of its declaration, with "at", its number within the series.
        template_values: Values for templates. None if texts are no templates.
    """

    panel: Axes
    table: pd.DataFrame
    look: Values
    template_values: Values | None

    def draw(self) -> None:
        """Draw the curve by the method of its kind."""
        getattr(self, f"draw_{self.look.get('kind', 'line')}")()

    def values(self, source: Any) -> Any:
        """Return one value for each row.

        Args:
            source: A column, an expression of columns, a number, or None for the row numbers.
        """
        if isinstance(source, str):
            column = self.table[source] if source in self.table else self.table.eval(source)
            return np.asarray(column)
        row_count = len(self.table)
        if source is None:
            return np.arange(row_count)
        return np.full(row_count, source, dtype=float)

    @property
    def x(self) -> Any:
        """Return the x coordinates, shifted if series are drawn side by side."""
        values = self.values(self.look.get("x"))
        if self.look["shift"]:
            return values + self.look["shift"]
        return values

    @property
    def y(self) -> Any:
        """Return the y coordinates."""
        return self.values(self.look["y"])

    @property
    def colour(self) -> Any:
        """Return the colour for Matplotlib."""
        has_several_curves = bool(self.look.keys() & {"by", "curves"})
        colour = self.look.get("colour", "by" if has_several_curves else 0)
        if str(colour).startswith("map:"):
            # Curves become darker, each by one step of the colour map. The palest colours are left
            # out, because they are hard to see.
            import matplotlib as mpl

            shade = 0.08 + 0.92 * self.look["at"] / (_COLOUR_MAP_STEPS - 1)
            return mpl.colormaps[colour.removeprefix("map:")](shade)
        if colour == "by":
            colour = self.look["at"] % len(COLOURS)
        if isinstance(colour, str):
            return colour
        return COLOURS[colour]

    @property
    def style(self) -> Record:
        """Return the style for Matplotlib."""
        style: Record = {}
        for key, value in self.look.items():
            if key not in _SERIES_KEYS:
                style[key] = tuple(value) if isinstance(value, list) else value
        if style.get("marker") == "by":
            style["marker"] = MARKERS[self.look["at"] % len(MARKERS)]
        if "label" in style:
            style["label"] = _fill_template(style["label"], self.table, self.template_values)
        marker_style = {}
        if self.look.get("hollow"):
            marker_style = SOLVER_MARKER_STYLE
        return {**marker_style, **style, "color": self.colour}

    def style_without(self, *names: str) -> Record:
        """Return the style without some properties.

        Args:
            *names: Names of the properties.
        """
        return {key: value for key, value in self.style.items() if key not in names}

    def draw_line(self) -> None:
        """Draw points, joined by a line."""
        self.panel.plot(self.x, self.y, **self.style)

    def draw_step(self) -> None:
        """Draw each y until the next x."""
        x = self.x
        y = self.y
        if "until" in self.look:
            x = np.append(x, self.look["until"])
            y = np.append(y, y[-1])
        self.panel.step(x, y, where="post", **self.style)

    def draw_bars(self) -> None:
        """Draw a vertical bar from 0 to y at each x. The look gives their width."""
        style = self.style_without("marker", "linestyle")
        self.panel.bar(self.x, self.y, width=self.look["width"], **style)

    def draw_stairs(self) -> None:
        """Draw one level around each x."""
        edges = np.append(self.x - 0.5, self.x[-1] + 0.5)
        self.panel.stairs(self.y, edges, baseline=None, **self.style)

    def draw_errors(self) -> None:
        """Draw points with error bars, or without them if all lengths are 0 or unknown."""
        lengths = np.nan_to_num(self.values(self.look["error"]))
        if lengths.any():
            self.panel.errorbar(self.x, self.y, yerr=lengths, **self.style)
        else:
            style = self.style_without("capsize", "elinewidth")
            self.panel.plot(self.x, self.y, **style)

    def draw_band(self) -> None:
        """Draw a band between two expressions."""
        ends = map(self.values, self.look["y"])
        style = self.style_without("marker", "linestyle")
        self.panel.fill_between(self.x, *ends, **{"linewidth": 0, **style})

    def draw_across(self) -> None:
        """Draw lines over the panel at each x or each y."""
        if "x" in self.look:
            places = self.values(self.look["x"])
            draw_at: Any = self.panel.axvline
        else:
            places = self.values(self.look["y"])
            draw_at = self.panel.axhline
        for place in np.unique(places):
            draw_at(place, **self.style)

    def draw_span(self) -> None:
        """Draw a band over the panel from the smallest to the largest y."""
        names = self.look["y"]
        columns = names
        if not isinstance(names, list):
            columns = [names]
        ends = np.concatenate([self.values(name) for name in columns])
        self.panel.axhspan(ends.min(), ends.max(), **{"linewidth": 0, **self.style})

    def draw_heat(self) -> None:
        """Draw the masses as numbers in a square grid."""
        size = round(len(self.table) ** 0.5)
        limits = None
        if "limits" in self.look:
            numbers = self.table[self.look["limits"]].to_numpy()
            limits = (float(numbers.min()), float(numbers.max()))
        draw_pmf_heat_map(self.panel, self.y, (size, size), limits=limits)

    def draw_cells(self) -> None:
        """Draw masses over x and y by colour."""
        from matplotlib.colors import LogNorm

        look = self.look
        scale = LogNorm(_MIN_COLOURED_MASS, (self.template_values or {})["most"])
        pivot = self.table.pivot_table(index=look["y"], columns=look["x"], values=look["mass"])
        grid = pivot.to_numpy()
        edges = np.append(np.unique(self.x), look["until"])
        shown = np.where(grid > 0, np.maximum(grid, _MIN_COLOURED_MASS), np.nan)
        image = self.panel.pcolormesh(edges, edges, shown, cmap="viridis", norm=scale)
        self.panel.grid(False)
        self.panel.figure.colorbar(image, ax=self.panel, label="probability of the cell")

    def draw_text(self) -> None:
        """Draw a text beside each point."""
        style = self.style_without("label")
        offset = self.look.get("offset", (0, 0))
        for row, place in enumerate(zip(self.x, self.y, strict=True)):
            if not np.isfinite(place[1]):
                continue
            values = {**(self.template_values or {}), "value": place[1]}
            text = _fill_template(self.look["text"], self.table, values, row)
            self.panel.annotate(text, place, offset, textcoords="offset points", **style)
