"""Make figures as plain data, which the explorer's page and Matplotlib (`draw_chart`) can draw.

A figure is a dictionary with the entries kind, title, and these:

    kind         entries
    lines        x and y: axes {label, log}; series: a list of {name, look, colour, x, y (, low)};
                 zero: whether 0 has a separate place on a logarithmic axis
    bars         x and y: labels of the axes; labels, values; note: what the picture leaves out, or
                 ""; others: outlines {name, x (labels as numbers), y} over the bars
    heat         x and y: labels of the axes; rows, columns, values [row][column]

The look of a series is one of these: line, dashed, hollow (points of a solver, which a thin line
joins), points (the same without a line), filled (proven points), halo (rings around other points),
segments (each two points are joined), dashed-segments, band (from low to y) or area (from 0 to y).
`draw_chart` draws hollow, halo and dashed-segments as lines. None or NaN in x or y is a gap in the
line. If the entry `steps` of a series is true, each y continues until the next x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.integer_law import IntegerLaw
from workbench.exact.objects import Record, Values
from workbench.io.figures import (
    COLOURS,
    DASHES,
    SCREEN_INCHES,
    add_legend_below,
    apply_style_sheet,
    make_panels,
    set_wrapped_title,
    wrap_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn

FigureData = dict[str, Any]

NOISE_TITLE = "Probability of every noise value"
MARGINALS_TITLE = "Probability of the noise of every coordinate"
MIN_VISIBLE_SHARE = 1e-4  # A mass below this share of the largest mass is not visible in a plot.
MAX_TOTAL_ERROR = 1e-12  # Masses with a sum below 1 by more than this are only a part of a law.
_MAX_TAIL_BARS = 900  # A picture shows at most this many noise values of each geometric tail.
_MAX_NUMBERED_SIZE = 12  # Heat maps with at most this many rows and columns have numbers in cells.
_WHITE_TEXT_SHARE = 0.4  # From this share of the largest mass, numbers are white.
_AXIS_CHARACTERS = 84  # The tick labels of an axis have at most this many characters in all.
_MIN_TICK_CHARACTERS = 7  # Space for the shortest tick label, in characters.


def make_line_figure(
    title: str,
    x: str,
    y: str,
    series: Iterable[FigureData],
    *,
    log: bool = False,
    **entries: Any,
) -> FigureData:
    """Make a figure of lines and points.

    Args:
        title: Title of the figure.
        x: Label of the x axis.
        y: Label of the y axis.
        series: Series that `make_series` made.
        log: Whether the x axis is logarithmic.
        **entries: Further entries of the figure, such as zero.
    """
    axes = {"x": {"label": x, "log": log}, "y": {"label": y, "log": False}}
    return {"kind": "lines", "title": title, **axes, "series": list(series), **entries}


def make_series(
    name: str, look: str, colour: int, x: Iterable[Any], y: Iterable[Any], **entries: Any
) -> FigureData:
    """Make one series of a figure of lines.

    Args:
        name: Name in the legend.
        look: A look of the module header.
        colour: Number of a colour of `workbench.io.figures.COLOURS`.
        x: Coordinates. Shape (n,).
        y: Coordinates. Shape (n,).
        **entries: Further entries of the series, such as low or steps.
    """
    return {"name": name, "look": look, "colour": colour, "x": [*x], "y": [*y], **entries}


def make_bar_figure(
    title: str,
    x: str,
    labels: Iterable[Any],
    values: Any,
    min_visible_share: float = MIN_VISIBLE_SHARE,
) -> FigureData:
    """Make a figure of probabilities as bars, up to the last visible bar on both sides.

    If bars are left out, the note states the drawn range and its probability.

    Args:
        title: Title of the figure.
        x: Label of the x axis.
        labels: Label of each bar. Length n.
        values: Probabilities. Shape (n,).
        min_visible_share: Bars below this share of the largest one are not visible.
    """
    masses = np.asarray(values, dtype=float)
    names = format_names(labels)
    visible = np.flatnonzero(masses > min_visible_share * masses.max())
    drawn = slice(int(visible[0]), int(visible[-1]) + 1)
    drawn_names = names[drawn]
    drawn_masses = masses[drawn]
    is_cut = drawn_masses.size < masses.size or bool(masses.sum() < 1 - MAX_TOTAL_ERROR)
    note = ""
    if is_cut:
        note = describe_drawn_part(drawn_names[0], drawn_names[-1], drawn_masses.sum())
    return {
        "kind": "bars",
        "title": title,
        "x": x,
        "y": "probability",
        "labels": drawn_names,
        "values": drawn_masses,
        "note": note,
    }


def make_noise_figure(noise: IntegerLaw) -> FigureData:
    """Make a figure of noise on the integers as bars, with the visible part of its tails.

    Args:
        noise: The law of η.
    """
    first, masses = noise.floats_with_tails(MIN_VISIBLE_SHARE, _MAX_TAIL_BARS)
    return make_bar_figure(NOISE_TITLE, "noise η", range(first, first + len(masses)), masses)


def describe_drawn_part(first: str, last: str, share: float) -> str:
    """Describe the drawn part of a law, such as "drawn: -5..5, 99.998 % of the mass".

    A share below 1 gets more digits if five would round it to 100 %.

    Args:
        first: First drawn value.
        last: Last drawn value.
        share: Probability of the drawn part.
    """
    digits = 5
    while digits < 15 and float(f"{100 * share:.{digits}g}") >= 100:
        digits += 1
    return f"drawn: {first}..{last}, {100 * share:.{digits}g} % of the mass"


def make_heat_figure(
    title: str,
    row_label: str,
    rows: Iterable[Any],
    column_label: str,
    columns: Iterable[Any],
    cells: Any,
) -> FigureData:
    """Make a figure of a matrix of probabilities.

    Args:
        title: Title of the figure.
        row_label: Label of the rows.
        rows: Names of the rows. Length k.
        column_label: Label of the columns.
        columns: Names of the columns. Length m.
        cells: Probabilities. Shape (k, m).
    """
    return {
        "kind": "heat",
        "title": title,
        "x": column_label,
        "y": row_label,
        "rows": format_names(rows),
        "columns": format_names(columns),
        "values": cells,
    }


def format_names(values: Iterable[Any]) -> list[str]:
    """Format inputs or outputs as short texts.

    Args:
        values: Numbers or other objects.
    """
    numbers = (int, float, Fraction, np.generic)
    return [f"{float(value):g}" if isinstance(value, numbers) else str(value) for value in values]


def overlay_laws(figure: FigureData, laws: Mapping[str, tuple[Any, Any]]) -> FigureData:
    """Draw other laws over a law, within its range.

    Args:
        figure: Figure of a law, as bars or lines.
        laws: For each name, (values, masses), or (edges, means) of a density.
    """
    if figure["kind"] != "lines":
        outlines = [{"name": name, "x": x, "y": y} for name, (x, y) in laws.items()]
        return {**figure, "others": outlines}
    series = [*figure["series"]]
    first = series[0]["x"][0]
    last = series[0]["x"][-1]
    for name, (edges, means) in laws.items():
        x = np.asarray(edges)
        # A density has one mean less than edges, so its last mean is repeated.
        y = np.append(means, means[-1:])[: len(edges)]
        is_inside = (x >= first) & (x <= last)
        series.append(make_series(name, "line", colour=len(series), x=x[is_inside], y=y[is_inside]))
    return {**figure, "series": series}


@apply_style_sheet
def draw_chart(figure: FigureData, title: str = "") -> Drawn:
    """Draw a figure with Matplotlib.

    Args:
        figure: Plain data of the figure.
        title: Title. Default: the title of the data.
    """
    draw_functions = {"lines": draw_lines, "bars": _draw_bars, "heat": _draw_heat_map}
    height = 3.0
    if figure["kind"] == "heat":
        height = 3.8
    drawn, (panel,) = make_panels(width=SCREEN_INCHES, height=height)
    draw_functions[figure["kind"]](panel, figure)
    set_wrapped_title(panel, title or figure["title"])
    if figure.get("note"):
        panel.set_xlabel(f"{panel.get_xlabel()}\n{wrap_text(figure['note'], SCREEN_INCHES)}")
    _, legend_labels = panel.get_legend_handles_labels()
    if len(set(legend_labels)) > 1:
        add_legend_below(drawn, [panel])
    return drawn


def draw_lines(panel: Axes, figure: Values) -> None:
    """Draw the series of a figure of lines, and label the axes.

    Args:
        panel: Axes of Matplotlib, on which it is drawn.
        figure: Plain data of the figure.
    """
    for series in figure["series"]:
        x = np.array(series["x"], dtype=float)
        y = np.array(series["y"], dtype=float)
        look = series["look"]
        has_steps = series.get("steps")
        style: Record = {
            "color": COLOURS[series["colour"] % len(COLOURS)],
            "label": series["name"],
        }
        if look in ("band", "area"):
            step = None
            if has_steps:
                step = "post"
            fill_style: Record = {"step": step, "alpha": 0.25, "linewidth": 0}
            panel.fill_between(x, series.get("low", 0), y, **fill_style, **style)
        if look == "segments":
            # A gap after every second point separates the segments.
            x = np.insert(x, range(2, x.size, 2), np.nan)
            y = np.insert(y, range(2, y.size, 2), np.nan)
            style |= {"marker": "|"}
        if look == "dashed":
            style |= {"linestyle": "--"}
        if look == "filled":
            style |= {"marker": "o", "linestyle": "none"}
        if look != "band":
            panel.plot(x, y, drawstyle="steps-post" if has_steps else "default", **style)
    # The axis ends a little above the data, or at 1 if all numbers are 0.
    top = 1.06 * panel.dataLim.ymax or 1.0
    panel.set(xlabel=figure["x"]["label"], ylabel=figure["y"]["label"], ylim=(0, top))


def _choose_ticks(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Choose equally spaced labels that fit on an axis. If "0" is a label, it is chosen.

    Returns (positions, labels) of the chosen ticks.
    """
    characters = max(_MIN_TICK_CHARACTERS, 2 + max(map(len, labels)))
    step = -(-len(labels) * characters // _AXIS_CHARACTERS)  # The quotient is rounded up.
    first = 0
    if "0" in labels:
        first = labels.index("0") % step
    return list(range(first, len(labels), step)), list(labels[first::step])


def _draw_bars(panel: Axes, figure: Values) -> None:
    """Draw bars, and outlines of other laws over them."""
    labels = figure["labels"]
    bars = panel.bar(range(len(labels)), figure["values"], width=0.8, color=COLOURS[0])
    bars[0].set_label("this design")
    edges = np.arange(len(labels) + 1) - 0.5
    for number, law in enumerate(figure.get("others", ()), 1):
        masses = {f"{float(x):g}": mass for x, mass in zip(law["x"], law["y"], strict=True)}
        heights = [masses.get(label, 0.0) for label in labels]
        style: Record = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number % len(DASHES)],
            "linewidth": 1.4,
        }
        panel.stairs(heights, edges, baseline=None, label=law["name"], **style)
    panel.set_xticks(*_choose_ticks(labels))
    panel.set(xlabel=figure["x"], ylabel=figure["y"])


def _draw_heat_map(panel: Axes, figure: Values) -> None:
    """Draw a matrix of probabilities on a square-root scale, with large ones dark."""
    from matplotlib.colors import PowerNorm

    cells = np.asarray(figure["values"], dtype=float)
    largest = float(cells.max())
    image = panel.imshow(cells, cmap="Blues", norm=PowerNorm(0.5, 0, largest), aspect="auto")
    if max(cells.shape) <= _MAX_NUMBERED_SIZE:
        for (i, j), mass in np.ndenumerate(cells):
            colour = "black"
            if mass > _WHITE_TEXT_SHARE * largest:
                colour = "white"
            # The text has at most six characters.
            text = f"{mass:.1e}".replace("e-0", "e-") if 0 < mass < 0.01 else f"{mass:.3g}"
            panel.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)
    panel.set_yticks(*_choose_ticks(figure["rows"]))
    panel.set_xticks(*_choose_ticks(figure["columns"]))
    panel.grid(False)
    panel.set(xlabel=figure["x"], ylabel=figure["y"])
    panel.figure.colorbar(image, ax=panel, label="probability, square-root scale")
