"""One look for every plot: colour-blind safe colours, named once; PMFs as bars; curves; what a reader needs."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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


# Okabe and Ito's palette, in the order used for series
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_NARROW, _WIDE, _POINTS = 2.0, 40.0, 8  # inches; size of letters
_OVER = 1.02  # of a width, by which a figure may be cut
_PANEL_WIDTH = 1.6  # In a given width, panels of fewer inches are placed below each other.
_PANEL_HEIGHT = (
    1.2  # In a given width, a figure is made higher until its panels have so many inches.
)
_DEEPENINGS = 8  # A figure is made higher at most so often.
_LEAST_POINTS = 4.0  # A legend that is wider than its figure has letters of at least this size.
_MAX_DECADES = 5  # A logarithmic axis with 0 apart has at most so many ticks.
_FAR = 20.0  # times the least loss: what costs more is named, not drawn
_PERCENT = (0.1, 1000.0)  # the ends of colours
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# A solver's points over a closed form's line: hollow, so that the line stays visible
SOLVER_MARKER_STYLE: Record = {
    "linestyle": "none",
    "markerfacecolor": "white",
    "markersize": 5,
    "markeredgewidth": 1.2,
}


COLUMN_INCHES, SCREEN_INCHES, PAGE_INCHES = (
    3.3,
    5.0,
    7.0,
)  # inches: of a column and of a page in print, of one panel on a screen
WIDTH_INCHES = {"column": COLUMN_INCHES, "page": PAGE_INCHES}
Width = str | float | None
_Draws = TypeVar("_Draws", bound="Callable[..., Any]")
_SIGN = 0.06  # inches of a letter of 8 points, about
_ONE_AT_A_TIME = RLock()  # matplotlib has one set of parameters for all threads


@cache
def _style() -> Any:
    """The style sheet, workbench.mplstyle; matplotlib's first import takes no display from the environment."""
    first = "matplotlib" not in sys.modules
    named = os.environ.pop(
        "MPLBACKEND", None
    )  # matplotlib is not imported where it knows no such backend
    import matplotlib as mpl

    if named is not None:
        os.environ["MPLBACKEND"] = named
    if named is not None and first:
        with suppress(ValueError):
            mpl.rcParams["backend"] = named
    return mpl.rc_params_from_file(
        Path(__file__).with_name("workbench.mplstyle"), use_default_template=False
    )


def apply_style_sheet(draw: _Draws) -> _Draws:
    """Whatever a function draws, drawn by the style sheet."""

    @wraps(draw)
    def drawn(*args: Any, **options: Any) -> Any:
        style = _style()
        import matplotlib as mpl

        with _ONE_AT_A_TIME, mpl.rc_context(style):
            return draw(*args, **options)

    return cast(_Draws, drawn)


@apply_style_sheet
def make_panels(
    columns: int = 1, rows: int = 1, *, width: float = PAGE_INCHES, height: float = 2.6
) -> tuple[Figure, list[Axes]]:
    """A figure of rows x columns panels without a display; the axes row-major; its width and a panel's height in
    inches."""
    from matplotlib.figure import Figure  # without pyplot, which would want one

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, [axis for row in figure.subplots(rows, columns, squeeze=False) for axis in row]


def set_wrapped_title(axis: Axes, title: str) -> None:
    """A title in as many lines as it takes above its panel."""
    place, figure = axis.get_subplotspec(), axis.get_figure(root=True)
    columns = 1 if place is None else place.get_gridspec().ncols
    axis.set_title(
        wrap_text(title, (PAGE_INCHES if figure is None else figure.get_figwidth()) / columns - 0.3)
    )


def wrap_text(text: str, inches: float) -> str:
    """Lines of 8 points within a width; none ends within "ε = 1"."""
    lines = text.replace(" = ", "\u00a0=\u00a0").split("\n")
    return "\n".join(fill(line, int(inches / _SIGN)) for line in lines).replace("\u00a0", " ")


def set_log_axis(axes: Axes, name: str) -> None:
    """Make the axis "x" or "y" logarithmic in plain numbers: ticks at 1, 2, 5; if its ends are close, at round ones."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis = axes.xaxis if name == "x" else axes.yaxis
    axes.set(**{f"{name}scale": "log"})
    low, high = axis.get_view_interval()
    logs = LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,), numticks=20)
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]) if high < 4 * low else logs)
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def set_log_axis_with_zero(axes: Axes, name: str, first: float, last: float) -> None:
    """Make the axis "x" or "y" logarithmic from first to last in plain numbers, with 0 apart."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis = axes.xaxis if name == "x" else axes.yaxis
    # A margin of such a scale overflows where it spans hundreds of decades.
    if name == "x":
        axes.set_xmargin(0.0)
    else:
        axes.set_ymargin(0.0)
    (axes.set_xscale if name == "x" else axes.set_yscale)("symlog", linthresh=first, linscale=0.6)
    decades = np.arange(np.ceil(np.log10(first) - 1e-9), np.floor(np.log10(last) + 1e-9) + 1)
    spacing = -(-len(decades) // _MAX_DECADES)
    axis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in decades[::spacing])]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.set(**{f"{name}lim": (-0.3 * first, 1.1 * last)})


def add_legend_below(figure: Figure, axes: Sequence[Axes], *, columns: int = 3) -> None:
    """One legend for several panels, below them all, each label once, in at most so many columns as fit; it can never
    cover data."""
    entries = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    labels = list(entries)
    columns = max(1, min(columns, len(labels)))
    while columns > 1 and _wide(labels, columns) > figure.get_figwidth():
        columns -= 1
    figure.set_figheight(figure.get_figheight() + 0.16 * -(-len(labels) // columns))
    figure.legend(list(entries.values()), labels, loc="outside lower center", ncols=columns)


def _wide(labels: Sequence[str], columns: int) -> float:
    """About how wide a legend of the style sheet is, in inches, each with its handle."""
    return sum(
        max(_SIGN * len(label) for label in part) + 0.6 for part in np.array_split(labels, columns)
    )


def draw_pmf_heat_map(
    axis: Axes, masses: ArrayLike, sizes: Pair, *, limits: tuple[float, float] | None = None
) -> None:
    """A two-dimensional PMF as a grid of numbers on a logarithmic colour scale; limits: its ends, for several grids."""
    from matplotlib.colors import LogNorm

    grid = np.asarray(masses, dtype=float).reshape(sizes)
    positive = grid[grid > 0]
    low, high = limits or (float(positive.min()), float(positive.max()))
    image = axis.imshow(
        np.where(grid > 0, grid, np.nan), cmap="viridis", norm=LogNorm(low / 1.5, high)
    )
    axis.grid(False)
    dark = (low / 1.5) ** 0.45 * high**0.55  # the darker part of the scale takes white numbers
    size = min(6.0, 33 / max(sizes))
    if max(sizes) <= 12:
        for (i, j), mass in np.ndenumerate(grid):
            number = (
                f"{mass:.4f}" if mass >= 1e-3 or mass == 0 else f"{mass:.1e}".replace("e-0", "e-")
            )
            axis.text(
                j,
                i,
                number,
                ha="center",
                va="center",
                fontsize=size,
                color="white" if mass < dark else "black",
            )
    axis.set_xlabel("η₂")
    axis.set_ylabel("η₁")
    axis.set_xticks(range(sizes[1]))
    axis.set_yticks(range(sizes[0]))
    axis.figure.colorbar(image, ax=axis, label="probability")


def draw_percent_map(axis: Axes, table: pd.DataFrame, places: tuple[str, str], value: str) -> Any:
    """Percentages as numbers in a grid, x and y in the columns `places`, on a logarithmic colour scale; "?" on grey
    where none is known, white where no row is."""
    from matplotlib.colors import LogNorm

    x, y = places
    columns, rows = sorted(table[x].unique()), list(dict.fromkeys(table[y]))
    values, known = np.full((2, len(rows), len(columns)), np.nan)
    for across, down, percent in zip(table[x], table[y], table[value].astype(float), strict=True):
        at = rows.index(down), columns.index(across)
        values[at], known[at] = percent, 1
        colour = "white" if percent > 100 else "black"
        axis.text(
            at[1], at[0], _percent(percent), ha="center", va="center", fontsize=6, color=colour
        )
    axis.grid(False)
    axis.imshow(known, cmap="Greys", vmin=0, vmax=4, aspect="auto", origin="lower")
    image = axis.imshow(
        values.clip(*_PERCENT),
        norm=LogNorm(*_PERCENT),
        cmap="YlOrRd",
        aspect="auto",
        origin="lower",
    )
    for names, ticks in ((columns, axis.set_xticks), (rows, axis.set_yticks)):
        ticks(range(len(names)), [name if isinstance(name, str) else f"{name:g}" for name in names])
    return image


def add_percent_colour_bar(image: Any, axes: Sequence[Axes], label: str) -> None:
    """The colours of `percent_map`, beside it."""
    bar = image.figure.colorbar(image, ax=axes, label=label)
    bar.set_ticks([0.1, 1, 10, 100, 1000], labels=["0.1", "1", "10", "100", "1000"])
    bar.minorticks_off()


def _percent(percent: float) -> str:
    if percent != percent:
        return "?"
    if percent < 9.95:
        return "0" if percent < _PERCENT[0] / 2 else f"{percent:.1f}"
    return f"{percent:.0f}" if percent < _PERCENT[1] else ">1k"


@apply_style_sheet
def draw_dot_plot(rows: Sequence[Mapping[Any, Any]], label: str, title: str) -> Figure:
    """What classes cost: a dot each (hollow: not certified), a line down to what is proven of the class; those above
    20 times the best are named only. rows: class, objective, bound, certified."""
    best = min(float(row["objective"]) for row in rows)
    near = [row for row in rows if row["objective"] <= _FAR * best][::-1]
    far = [
        f"{row['class']} ({row['objective']:.4g})" for row in rows if row["objective"] > _FAR * best
    ]
    figure, (axis,) = make_panels(height=0.25 * len(near) + 1.0)
    for k, row in enumerate(near):
        low = row["bound"]
        if low is not None and low == low and low > 0:
            axis.plot([low, row["objective"]], [k, k], color=COLOURS[0], marker="|", markevery=[0])
        face = COLOURS[0] if row["certified"] else "white"
        axis.plot([row["objective"]], [k], "o", color=COLOURS[0], markerfacecolor=face)
    axis.set_yticks(range(len(near)), [str(row["class"]) for row in near])
    axis.set_xlabel(
        label if not far else f"{label}\nnot drawn, above {_FAR:g} times the best: {', '.join(far)}"
    )
    set_wrapped_title(axis, title)
    return figure


@apply_style_sheet
def draw_place_maps(
    places: ArrayLike, masses: ArrayLike, map_titles: Sequence[str], true_place: ArrayLike
) -> Figure:
    """Maps of places (k, 2), each place coloured by a mass: `masses` (maps, k), named by `words`; own: (2,), the place
    that the last is the law of."""
    from matplotlib.collections import PolyCollection

    at, shades = np.asarray(places, dtype=float), np.asarray(masses, dtype=float)
    figure, axes = make_panels(len(map_titles), height=5.4 / len(map_titles) + 0.2)
    width = float(np.ptp(at, axis=0).max()) or 1.0
    side = min(np.diff(np.unique(column)).min(initial=width) for column in at.T)
    corners = side / 2 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    for axis, shade, name in zip(axes, shades, map_titles, strict=True):
        squares = PolyCollection(list(at[:, None, :] + corners), array=shade, cmap="viridis_r")
        squares.set_clim(0, None)
        squares.set_edgecolor("face")
        axis.add_collection(squares)
        axis.autoscale_view()
        axis.grid(False)
        axis.set_aspect("equal")
        set_wrapped_title(axis, name)
        axis.set(xlabel="first coordinate", ylabel="second coordinate" if axis is axes[0] else "")
        figure.colorbar(
            squares, ax=axis, shrink=0.8, label="probability" if axis is axes[-1] else ""
        )
    axes[-1].plot(*np.asarray(true_place, dtype=float), marker="x", color="#d62728")
    return figure


def read_figure_width(width: Any) -> float:
    """A width in inches, or by its name in `WIDTHS`. Raises InvalidRequest."""
    with suppress(TypeError, ValueError, OverflowError):
        wide = float(WIDTH_INCHES.get(width, width))
        if _NARROW <= wide <= _WIDE:
            return wide
    return must(
        "width", f"{', '.join(WIDTH_INCHES)}, or between {_NARROW:g} and {_WIDE:g} inches", width
    )


def _rearrange(figure: Figure, axes: Sequence[Axes], columns: int) -> float:
    """Place the panels of one grid in at most so many columns. Returns how many times as many rows there are then."""
    grids = {id(axis.get_gridspec()): axis.get_gridspec() for axis in axes}
    if len(grids) != 1:
        return 1.0
    (grid,) = grids.values()
    if grid is None or grid.ncols <= columns or len(axes) != grid.nrows * grid.ncols:
        return 1.0
    shown = [axis for axis in axes if axis.axison]
    rows = -(-len(shown) // columns)
    places = figure.add_gridspec(rows, columns)
    label = axes[0].get_ylabel()
    for axis in axes:
        if axis not in shown:
            figure.delaxes(axis)
    for k, axis in enumerate(shown):
        axis.set_subplotspec(places[k // columns, k % columns])
        if k % columns == 0 and not axis.get_ylabel():
            axis.set_ylabel(label)
    return rows / grid.nrows


def _fit(figure: Figure, width: float) -> None:
    """Make a figure so wide, with letters of 8 pt: panels below each other where they would be too narrow, titles in
    several lines, legends below it in fewer columns or smaller letters, and as high as its panels need.

    Raises InvalidRequest where it is wider all the same.
    """
    from matplotlib.text import Text

    across, high = figure.get_size_inches()
    placed = [axis for axis in figure.axes if axis.get_subplotspec() is not None]
    taller = _rearrange(figure, placed, max(1, int(width / _PANEL_WIDTH)))
    figure.set_size_inches(width, high * max(taller, width / across))
    for text in figure.findobj(Text):
        text.set_fontsize(_POINTS)
    for axis in figure.axes:
        axis.tick_params(which="both", labelsize=_POINTS)
        title, place = axis.title, axis.get_subplotspec()
        available = width / (1 if place is None else place.get_gridspec().ncols) - 0.3
        title.set_text(wrap_text(" ".join(title.get_text().split(" ")), available))
    for title in figure.texts:
        title.set_text(wrap_text(title.get_text(), width - 0.1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        _narrow_legends(figure)
        _deepen(figure)
        fits = figure.get_tightbbox().width <= width * _OVER
    if not fits:
        must("width", "enough for the figure's legend and axes", width)


def _narrow_legends(figure: Figure) -> None:
    """Give legends fewer columns, and then smaller letters, until they are no wider than the figure."""
    figure.draw_without_rendering()
    for axis in figure.axes:
        beside = axis.get_legend()
        if beside is not None and beside.get_window_extent().x0 > axis.get_window_extent().x1:
            beside.remove()  # there is no room beside the panel
            texts = [text.get_text() for text in beside.get_texts()]
            shown: Any = beside.legend_handles
            figure.legend(shown, texts, loc="outside lower center", frameon=False)
    for legend in [*figure.legends]:
        handles: Any = legend.legend_handles
        names = [text.get_text() for text in legend.get_texts()]
        points = float(_POINTS)
        for columns in (3, 2, 1, 1):
            legend.remove()
            look: Record = {"loc": "outside lower center", "frameon": False, "fontsize": points}
            legend = figure.legend(handles, names, ncols=columns, **look)
            figure.draw_without_rendering()
            wide = legend.get_window_extent().width / figure.bbox.width
            if wide <= 1:
                break
            points = max(_LEAST_POINTS, 0.98 * points / wide) if columns == 1 else points


def _deepen(figure: Figure) -> None:
    """Make a figure higher until its panels are at least `_PANEL_HEIGHT`, but for those of a fixed shape."""
    free = [
        axis
        for axis in figure.axes
        if axis.get_subplotspec() is not None and axis.get_aspect() == "auto"
    ]
    for _ in range(_DEEPENINGS):
        figure.draw_without_rendering()
        heights = [axis.get_window_extent().height / figure.dpi for axis in free]
        if not heights or min(heights) >= _PANEL_HEIGHT:
            return
        rows = max(axis.get_gridspec().nrows for axis in free)  # type: ignore[union-attr]
        figure.set_figheight(figure.get_figheight() + rows * (_PANEL_HEIGHT + 0.05 - min(heights)))


def save_figure(figure: Figure, path: Path, width: Width = None) -> None:
    """Save a figure in the format of the path's ending, as `figure_bytes` makes it."""
    form = path.suffix.lstrip(".").lower()
    if form not in PICTURE_FORMATS:
        must("plot file", "named .png, .svg or .pdf", path.name)
    write_atomically(path, render_figure(figure, form, width))


def render_figure(figure: Figure, form: str, width: Width = None) -> bytes:
    """A figure as "png", "svg" or "pdf", the same bytes for the same data (no dates, fixed ids).

    width: "column" or "page" of a paper (3.3 and 7 inches), or inches, with letters of 8 pt; None: its own.
    Raises InvalidRequest where it has no room in a width.
    """
    import matplotlib as mpl

    if width is not None:
        _fit(figure, read_figure_width(width))
    metadata = {"Software": None} if form == "png" else {"Date": None}
    if form == "pdf":
        metadata = {"CreationDate": None}
    buffer = BytesIO()
    with _ONE_AT_A_TIME, mpl.rc_context(_style()):
        figure.savefig(buffer, format=form, metadata=metadata)
    content = buffer.getvalue()
    if form == "svg":  # matplotlib leaves trailing blanks
        content = b"\n".join(line.rstrip() for line in content.split(b"\n"))
    return content
