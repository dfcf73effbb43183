"""Draw, arrange and save figures in one style: colour-blind safe colours, axes and legends.

A figure has panels, which Matplotlib calls axes. A panel has an x axis and a y axis.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, wraps
from io import BytesIO
from pathlib import Path
from textwrap import fill
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import must
from workbench.exact.objects import Pair, Record
from workbench.io.files import PICTURE_FORMATS, write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# This is Okabe and Ito's palette, in the order used for series.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Markers of a solver are hollow, so that the line of a known formula below them stays visible.
SOLVER_MARKER_STYLE: Record = {
    "linestyle": "none",
    "markerfacecolor": "white",
    "markersize": 5,
    "markeredgewidth": 1.2,
}

COLUMN_INCHES = 3.3  # Width of a printed column.
SCREEN_INCHES = 5.0  # Width of one panel on a screen.
PAGE_INCHES = 7.0  # Width of a printed page.
WIDTH_INCHES = {"column": COLUMN_INCHES, "page": PAGE_INCHES}
Width = str | float | None  # A name in `WIDTH_INCHES`, or inches. None for the width as drawn.


@dataclass(frozen=True)
class _LayoutLimits:
    """Sizes that decide how a figure is arranged. Lengths are in inches, fonts in points."""

    min_width: float = 2.0
    """A smaller requested width is refused."""
    max_width: float = 40.0
    """A larger requested width is refused."""
    width_tolerance: float = 1.02
    """A figure may be wider than the requested width by this factor."""
    font_points: int = 8
    """Size of letters in points."""
    min_legend_points: float = 4.0
    """Smallest size of letters in a legend that would be wider than its figure."""
    letter_width: float = 0.06
    """Approximate width of a letter of 8 points."""
    min_panel_width: float = 1.6
    """In a requested width, narrower panels are placed below each other."""
    min_panel_height: float = 1.2
    """In a requested width, a figure is made higher until its panels have this height."""
    max_height_steps: int = 8
    """After this many steps, a figure is not made higher even if its panels are still low."""
    max_decade_ticks: int = 5
    """Largest number of ticks of a logarithmic axis with a separate 0."""
    title_margin: float = 0.3
    """A title is narrower than its panel by this length."""
    heading_margin: float = 0.1
    """A text above all panels is narrower than the figure by this length."""
    legend_row_height: float = 0.16
    """Height of one row of a legend."""
    legend_handle_width: float = 0.6
    """Width of the handle of a legend entry."""
    height_margin: float = 0.05
    """A figure is made higher by this length more than its panels need."""
    max_numbered_size: int = 12
    """Heat maps with at most this many rows and columns have numbers in their cells."""
    max_cell_font_size: float = 6.0
    """Largest size of the numbers in the cells of a heat map, in points."""
    cell_font_room: float = 33.0
    """Size of these numbers times the number of rows or columns, if there are many."""


_LAYOUT = _LayoutLimits()
# Losses above this multiple of the smallest loss are listed below the plot instead of drawn.
_MAX_DRAWN_LOSS_RATIO = 20.0
# Percentages at the ends of the colour scale. Colours of smaller and larger ones do not differ.
_PERCENT_RANGE = (0.1, 1000.0)
# The colour scale of a heat map begins at the smallest probability divided by this.
_SCALE_MARGIN = 1.5
# On the logarithmic scale, this share of the way from the low to the high end is dark.
_DARK_SHARE = 0.55
_DrawFunction = TypeVar("_DrawFunction", bound="Callable[..., Any]")
# Matplotlib has one set of parameters for all threads, so only one thread may use it.
_MATPLOTLIB_LOCK = RLock()


@cache
def _load_style() -> Any:
    """Load the style sheet workbench.mplstyle.

    The first import of Matplotlib fails if the environment names an unknown backend. The variable
    is therefore removed during the import.
    """
    is_first_import = "matplotlib" not in sys.modules
    backend = os.environ.pop("MPLBACKEND", None)
    import matplotlib as mpl

    if backend is not None:
        os.environ["MPLBACKEND"] = backend
    if backend is not None and is_first_import:
        with suppress(ValueError):
            mpl.rcParams["backend"] = backend
    path = Path(__file__).with_name("workbench.mplstyle")
    return mpl.rc_params_from_file(path, use_default_template=False)


def apply_style_sheet(draw: _DrawFunction) -> _DrawFunction:
    """Decorate a function so that it draws with the style sheet.

    Args:
        draw: A function that draws a figure.
    """

    @wraps(draw)
    def draw_styled(*args: Any, **options: Any) -> Any:
        """Draw with the style of the workbench, while no other thread draws."""
        style = _load_style()
        import matplotlib as mpl

        with _MATPLOTLIB_LOCK, mpl.rc_context(style):
            return draw(*args, **options)

    return cast(_DrawFunction, draw_styled)


@apply_style_sheet
def make_panels(
    columns: int = 1, rows: int = 1, *, width: float = PAGE_INCHES, height: float = 2.6
) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels, without a display.

    Args:
        columns: Number of columns of panels.
        rows: Number of rows of panels.
        width: Width of the figure in inches.
        height: Height of a panel in inches.

    Returns:
        The figure and its axes, row by row.
    """
    # Matplotlib is slow to import. Figures of pyplot would need a display.
    from workbench.io.saved_figure import SavedFigure

    figure = SavedFigure(figsize=(width, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, list(grid.ravel())


def set_wrapped_title(panel: Axes, title: str) -> None:
    """Set a title that is wrapped to the width of its panel.

    Args:
        panel: Axes of Matplotlib, on which it is drawn.
        title: Text of the title.
    """
    place = panel.get_subplotspec()
    figure = panel.get_figure(root=True)
    columns = 1
    if place is not None:
        columns = place.get_gridspec().ncols
    figure_width = PAGE_INCHES
    if figure is not None:
        figure_width = figure.get_figwidth()
    panel.set_title(wrap_text(title, figure_width / columns - _LAYOUT.title_margin))


def wrap_text(text: str, inches: float) -> str:
    """Wrap a text of 8 points to a width. No line ends within "ε = 1".

    Args:
        text: The text, which may have several lines.
        inches: Width in inches.
    """
    lines = text.replace(" = ", "\u00a0=\u00a0").split("\n")
    characters = int(inches / _LAYOUT.letter_width)
    return "\n".join(fill(line, characters) for line in lines).replace("\u00a0", " ")


def set_log_axis(axes: Axes, name: str) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks.

    Ticks are at 1, 2 and 5 times powers of ten, or at round numbers if the ends are close.

    Args:
        axes: Axes of Matplotlib, which are changed.
        name: "x" or "y".
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis = axes.xaxis if name == "x" else axes.yaxis
    axes.set(**{f"{name}scale": "log"})
    low, high = axis.get_view_interval()
    # Below a factor of 4 there are too few ticks of the form 1, 2, 5. From a factor of 300 on, only
    # powers of ten are labelled.
    if high < 4 * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        subs = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def set_log_axis_with_zero(axes: Axes, name: str, first: float, last: float) -> None:
    """Make an axis logarithmic between two numbers, with 0 at a separate place.

    Args:
        axes: Axes of Matplotlib, which are changed.
        name: "x" or "y".
        first: Smallest positive number of the axis.
        last: Largest number of the axis.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    # The part from 0 to `first` is as wide as `linscale` decades.
    # A margin of such a scale overflows if it spans hundreds of decades.
    if name == "x":
        axis: Any = axes.xaxis
        axes.set_xmargin(0.0)
        axes.set_xscale("symlog", linthresh=first, linscale=0.6)
    else:
        axis = axes.yaxis
        axes.set_ymargin(0.0)
        axes.set_yscale("symlog", linthresh=first, linscale=0.6)
    # The logarithm of a power of ten may have a rounding error.
    decades = np.arange(np.ceil(np.log10(first) - 1e-9), np.floor(np.log10(last) + 1e-9) + 1)
    spacing = -(-len(decades) // _LAYOUT.max_decade_ticks)
    axis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in decades[::spacing])]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    # Both ends have a margin. The one at 0 lies in the linear part of the scale, below `first`.
    axes.set(**{f"{name}lim": (-0.3 * first, 1.1 * last)})


def add_legend_below(figure: Figure, axes: Sequence[Axes], *, columns: int = 3) -> None:
    """Add one legend for several panels below all of them, so that it never covers data.

    Args:
        figure: Figure of Matplotlib.
        axes: Panels whose labels are listed, each label once.
        columns: Largest number of columns. Fewer are used if the legend would be too wide.
    """
    handles_by_label: dict[str, Any] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        handles_by_label.update(zip(labels, handles, strict=True))
    labels = list(handles_by_label)
    columns = max(1, min(columns, len(labels)))
    while columns > 1 and _estimate_legend_width(labels, columns) > figure.get_figwidth():
        columns -= 1
    row_count = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + _LAYOUT.legend_row_height * row_count)
    handles = list(handles_by_label.values())
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _estimate_legend_width(labels: Sequence[str], columns: int) -> float:
    """Estimate the width of a legend in inches, including its handles."""
    width = 0.0
    for part in np.array_split(labels, columns):
        width += max(_LAYOUT.letter_width * len(label) for label in part)
        width += _LAYOUT.legend_handle_width
    return width


def draw_pmf_heat_map(
    panel: Axes, masses: ArrayLike, sizes: Pair, *, limits: tuple[float, float] | None = None
) -> None:
    """Draw a two-dimensional PMF as a grid of numbers on a logarithmic colour scale.

    Args:
        panel: Axes of Matplotlib, on which it is drawn.
        masses: Probabilities. Shape (rows * columns,) or (rows, columns).
        sizes: Numbers of rows and columns.
        limits: Probabilities at the ends of the colour scale. None for those of this PMF.
    """
    from matplotlib.colors import LogNorm

    grid = np.asarray(masses, dtype=float).reshape(sizes)
    positive = grid[grid > 0]
    low, high = limits or (float(positive.min()), float(positive.max()))
    scale_low = low / _SCALE_MARGIN
    norm = LogNorm(scale_low, high)
    image = panel.imshow(np.where(grid > 0, grid, np.nan), cmap="viridis", norm=norm)
    panel.grid(False)
    # Cells below this probability are dark and have white numbers.
    dark_limit = scale_low ** (1 - _DARK_SHARE) * high**_DARK_SHARE
    if max(sizes) <= _LAYOUT.max_numbered_size:
        font_size = min(_LAYOUT.max_cell_font_size, _LAYOUT.cell_font_room / max(sizes))
        for (i, j), mass in np.ndenumerate(grid):
            panel.text(
                j,
                i,
                _format_probability(mass),
                ha="center",
                va="center",
                fontsize=font_size,
                color="white" if mass < dark_limit else "black",
            )
    panel.set_xlabel("η₂")
    panel.set_ylabel("η₁")
    panel.set_xticks(range(sizes[1]))
    panel.set_yticks(range(sizes[0]))
    panel.figure.colorbar(image, ax=panel, label="probability")


def _format_probability(mass: float) -> str:
    """Format a probability in at most six characters."""
    if mass >= 1e-3 or mass == 0:
        return f"{mass:.4f}"
    return f"{mass:.1e}".replace("e-0", "e-")


def draw_percent_map(panel: Axes, table: pd.DataFrame, places: tuple[str, str], value: str) -> Any:
    """Draw percentages as numbers in a grid on a logarithmic colour scale.

    An unknown percentage is "?" on grey. A cell without a row stays white.

    Args:
        panel: Axes of Matplotlib, on which it is drawn.
        table: Rows with the columns that the other arguments name.
        places: Columns with the x and the y coordinate.
        value: Column with the percentage.

    Returns:
        The image, for `add_percent_colour_bar`.
    """
    from matplotlib.colors import LogNorm

    x, y = places
    columns = sorted(table[x].unique())
    rows = list(dict.fromkeys(table[y]))
    # NaN marks cells without a row of the table, which stay white.
    values = np.full((len(rows), len(columns)), np.nan)
    has_row = np.full((len(rows), len(columns)), np.nan)
    percentages = table[value].astype(float)
    for column, row, percent in zip(table[x], table[y], percentages, strict=True):
        i = rows.index(row)
        j = columns.index(column)
        values[i, j] = percent
        has_row[i, j] = 1
        colour = "black"
        if percent > 100:
            colour = "white"
        text = _format_percent(percent)
        panel.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)
    panel.grid(False)
    # The number 1 on a scale from 0 to 4 is a light grey.
    panel.imshow(has_row, cmap="Greys", vmin=0, vmax=4, aspect="auto", origin="lower")
    image = panel.imshow(
        values.clip(*_PERCENT_RANGE),
        norm=LogNorm(*_PERCENT_RANGE),
        cmap="YlOrRd",
        aspect="auto",
        origin="lower",
    )
    panel.set_xticks(range(len(columns)), _format_tick_names(columns))
    panel.set_yticks(range(len(rows)), _format_tick_names(rows))
    return image


def _format_tick_names(names: Sequence[Any]) -> list[str]:
    """Format numbers in short form. Texts are returned unchanged."""
    return [name if isinstance(name, str) else f"{name:g}" for name in names]


def add_percent_colour_bar(image: Any, axes: Sequence[Axes], label: str) -> None:
    """Add the colour scale of `draw_percent_map`.

    Args:
        image: The image that `draw_percent_map` returned.
        axes: Panels beside which the scale is drawn.
        label: Label of the scale.
    """
    bar = image.figure.colorbar(image, ax=axes, label=label)
    bar.set_ticks([0.1, 1, 10, 100, 1000], labels=["0.1", "1", "10", "100", "1000"])
    bar.minorticks_off()


def _format_percent(percent: float) -> str:
    """Format a percentage in at most four characters, and NaN as "?"."""
    if percent != percent:
        return "?"
    low, high = _PERCENT_RANGE
    # One decimal would round 9.95 to 10.0, and a number below half of the low end to 0.0.
    if percent < 9.95:
        if percent < low / 2:
            return "0"
        return f"{percent:.1f}"
    if percent < high:
        return f"{percent:.0f}"
    return ">1k"


@apply_style_sheet
def draw_dot_plot(rows: Sequence[Mapping[Any, Any]], label: str, title: str) -> Figure:
    """Draw the loss of each mechanism class as a dot, with a line down to its lower bound.

    A hollow dot is not certified. Losses above 20 times the smallest one are named below the axis.

    Args:
        rows: Rows with the entries class (name), objective (expected loss), bound (lower bound on
            it, or None) and certified (boolean).
        label: Label of the axis.
        title: Title of the figure.
    """
    max_loss = _MAX_DRAWN_LOSS_RATIO * min(float(row["objective"]) for row in rows)
    # Positions rise from the bottom, so the first row comes last.
    drawn_rows = [row for row in rows if row["objective"] <= max_loss][::-1]
    omitted_rows = [row for row in rows if row["objective"] > max_loss]
    figure, (panel,) = make_panels(height=0.25 * len(drawn_rows) + 1.0)
    colour = COLOURS[0]
    for position, row in enumerate(drawn_rows):
        loss = row["objective"]
        bound = row["bound"]
        # NaN is not equal to itself.
        if bound is not None and bound == bound and bound > 0:
            line = [bound, loss]
            panel.plot(line, [position, position], color=colour, marker="|", markevery=[0])
        face = "white"
        if row["certified"]:
            face = colour
        panel.plot([loss], [position], "o", color=colour, markerfacecolor=face)
    panel.set_yticks(range(len(drawn_rows)), [str(row["class"]) for row in drawn_rows])
    if omitted_rows:
        names = ", ".join(f"{row['class']} ({row['objective']:.4g})" for row in omitted_rows)
        note = f"not drawn, above {_MAX_DRAWN_LOSS_RATIO:g} times the smallest loss: {names}"
        label = f"{label}\n{note}"
    panel.set_xlabel(label)
    set_wrapped_title(panel, title)
    return figure


@apply_style_sheet
def draw_place_maps(
    places: ArrayLike, masses: ArrayLike, map_titles: Sequence[str], true_place: ArrayLike
) -> Figure:
    """Draw maps of places, in which the colour of each place is a probability.

    Args:
        places: Coordinates. Shape (k, 2).
        masses: Probabilities for each map. Shape (maps, k).
        map_titles: Title of each map.
        true_place: Place whose law the last map shows. It is marked there. Shape (2,).
    """
    from matplotlib.collections import PolyCollection

    coordinates = np.asarray(places, dtype=float)
    shades = np.asarray(masses, dtype=float)
    map_count = len(map_titles)
    # The maps are about square: they share the page's width without margins, and a title is added.
    figure, axes = make_panels(map_count, height=5.4 / map_count + 0.2)
    width = float(np.ptp(coordinates, axis=0).max()) or 1.0
    # A place is drawn as a square. Its side is the least distance of two different coordinates.
    side = min(np.diff(np.unique(column)).min(initial=width) for column in coordinates.T)
    corners = side / 2 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    for panel, shade, title in zip(axes, shades, map_titles, strict=True):
        polygons = list(coordinates[:, None, :] + corners)
        squares = PolyCollection(polygons, array=shade, cmap="viridis_r")
        squares.set_clim(0, None)
        squares.set_edgecolor("face")
        panel.add_collection(squares)
        panel.autoscale_view()
        panel.grid(False)
        panel.set_aspect("equal")
        set_wrapped_title(panel, title)
        panel.set(xlabel="first coordinate", ylabel="second coordinate" if panel is axes[0] else "")
        bar_label = ""
        if panel is axes[-1]:
            bar_label = "probability"
        figure.colorbar(squares, ax=panel, shrink=0.8, label=bar_label)
    axes[-1].plot(*np.asarray(true_place, dtype=float), marker="x", color="#d62728")
    return figure


def read_figure_width(width: Any) -> float:
    """Read a width as inches.

    Args:
        width: A number of inches, or a name in `WIDTH_INCHES`.

    Raises:
        InvalidRequest: The width is none of these, or out of range.
    """
    low = _LAYOUT.min_width
    high = _LAYOUT.max_width
    with suppress(TypeError, ValueError, OverflowError):
        inches = float(WIDTH_INCHES.get(width, width))
        if low <= inches <= high:
            return inches
    names = ", ".join(WIDTH_INCHES)
    return must("width", f"{names}, or between {low:g} and {high:g} inches", width)


def _rearrange_panels(figure: Figure, axes: Sequence[Axes], columns: int) -> float:
    """Place the panels of one grid in fewer columns. Returns the factor by which rows increase."""
    # Grids are compared by identity.
    grids = {id(panel.get_gridspec()): panel.get_gridspec() for panel in axes}
    if len(grids) != 1:
        return 1.0
    (grid,) = grids.values()
    if grid is None or grid.ncols <= columns or len(axes) != grid.nrows * grid.ncols:
        return 1.0
    shown_axes = [panel for panel in axes if panel.axison]
    rows = -(-len(shown_axes) // columns)
    places = figure.add_gridspec(rows, columns)
    label = axes[0].get_ylabel()
    for panel in axes:
        if panel not in shown_axes:
            figure.delaxes(panel)
    for position, panel in enumerate(shown_axes):
        panel.set_subplotspec(places[position // columns, position % columns])
        if position % columns == 0 and not panel.get_ylabel():
            panel.set_ylabel(label)
    return rows / grid.nrows


def _fit_to_width(figure: Figure, width: float) -> None:
    """Fit a figure into a width, with letters of 8 points.

    Narrow panels are placed below each other, titles are wrapped, legends are moved below the
    figure with fewer columns or smaller letters, and the height is adapted. Raises InvalidRequest
    if the figure is still too wide.
    """
    from matplotlib.text import Text

    figure_width, figure_height = figure.get_size_inches()
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    columns = max(1, int(width / _LAYOUT.min_panel_width))
    row_factor = _rearrange_panels(figure, panels, columns)
    figure.set_size_inches(width, figure_height * max(row_factor, width / figure_width))
    for text in figure.findobj(Text):
        text.set_fontsize(_LAYOUT.font_points)
    # The axes of a figure are its panels and its colour bars.
    for axes in figure.axes:
        axes.tick_params(which="both", labelsize=_LAYOUT.font_points)
        place = axes.get_subplotspec()
        column_count = 1
        if place is not None:
            column_count = place.get_gridspec().ncols
        title = axes.title.get_text()
        axes.title.set_text(wrap_text(title, width / column_count - _LAYOUT.title_margin))
    for text in figure.texts:
        text.set_text(wrap_text(text.get_text(), width - _LAYOUT.heading_margin))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        _narrow_legends(figure)
        _increase_height(figure)
        fits = figure.get_tightbbox().width <= width * _LAYOUT.width_tolerance
    if not fits:
        must("width", "enough for the figure's legend and axes", width)


def _narrow_legends(figure: Figure) -> None:
    """Give legends fewer columns, and then smaller letters, until they fit into the figure."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None and legend.get_window_extent().x0 > axes.get_window_extent().x1:
            # A legend beside its panel is moved below the figure.
            legend.remove()
            labels = [text.get_text() for text in legend.get_texts()]
            legend_handles: Any = legend.legend_handles
            figure.legend(legend_handles, labels, loc="outside lower center", frameon=False)
    for legend in [*figure.legends]:
        handles: Any = legend.legend_handles
        labels = [text.get_text() for text in legend.get_texts()]
        points = float(_LAYOUT.font_points)
        # The second try with one column has smaller letters.
        for columns in (3, 2, 1, 1):
            legend.remove()
            style: Record = {"loc": "outside lower center", "frameon": False, "fontsize": points}
            legend = figure.legend(handles, labels, ncols=columns, **style)
            figure.draw_without_rendering()
            relative_width = legend.get_window_extent().width / figure.bbox.width
            if relative_width <= 1:
                break
            if columns == 1:
                # The factor 0.98 leaves a small margin.
                points = max(_LAYOUT.min_legend_points, 0.98 * points / relative_width)


def _increase_height(figure: Figure) -> None:
    """Make a figure higher until its panels are high enough, except panels of a fixed shape."""
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    flexible = [panel for panel in panels if panel.get_aspect() == "auto"]
    min_height = _LAYOUT.min_panel_height
    for _ in range(_LAYOUT.max_height_steps):
        figure.draw_without_rendering()
        heights = [panel.get_window_extent().height / figure.dpi for panel in flexible]
        if not heights or min(heights) >= min_height:
            return
        rows = max(panel.get_gridspec().nrows for panel in flexible)  # type: ignore[union-attr]
        missing_height = min_height + _LAYOUT.height_margin - min(heights)
        figure.set_figheight(figure.get_figheight() + rows * missing_height)


def save_figure(figure: Figure, path: Path, width: Width = None) -> None:
    """Save a figure in the format of the ending of its path.

    Args:
        figure: Figure of Matplotlib.
        path: Path ending with .png, .svg or .pdf.
        width: Width as for `render_figure`.

    Raises:
        InvalidRequest: The ending or the width is wrong.
    """
    form = path.suffix.lstrip(".").lower()
    if form not in PICTURE_FORMATS:
        must("plot file", "named .png, .svg or .pdf", path.name)
    write_atomically(path, render_figure(figure, form, width))


def render_figure(figure: Figure, form: str, width: Width = None, dpi: int | None = None) -> bytes:
    """Render a figure. Equal figures have equal bytes (no dates, fixed ids).

    Args:
        figure: Figure of Matplotlib.
        form: "png", "svg" or "pdf".
        width: "column" or "page" of a paper (3.3 and 7 inches), or inches, with letters of 8 pt.
            None for the width as drawn.
        dpi: Dots per inch of a PNG file. None for those of the style sheet.

    Raises:
        InvalidRequest: The figure does not fit into the width.
    """
    import matplotlib as mpl

    if width is not None:
        _fit_to_width(figure, read_figure_width(width))
    metadata: dict[str, None] = {"Date": None}
    if form == "png":
        metadata = {"Software": None}
    elif form == "pdf":
        metadata = {"CreationDate": None}
    resolution: Record = {}
    if dpi is not None and form == "png":
        resolution = {"dpi": dpi}
    buffer = BytesIO()
    with _MATPLOTLIB_LOCK, mpl.rc_context(_load_style()):
        figure.savefig(buffer, format=form, metadata=metadata, **resolution)
    content = buffer.getvalue()
    if form == "svg":
        # Matplotlib writes trailing blanks, which are removed.
        content = b"\n".join(line.rstrip() for line in content.split(b"\n"))
    return content
