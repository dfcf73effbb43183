"""Figures as plain data, which the explorer's page draws in the browser and `chart` by Matplotlib.

    figure       what it holds
    lines        x and y axes {label, log}, series {name, look, colour, x, y (, low)}; zero: 0 apart on a log axis
    bars         labels, values; others: outlines {name, x (labels as numbers), y} over them
    heat         rows, columns, values [row][column]

look: line, dashed, hollow (a solver's word), filled (proven), halo (around other marks), segments (pairs of points),
dashed-segments, band (low..y), area (down to 0). None or NaN in x or y is a gap. steps: whether a value is kept until
the next point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

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
_NUMBERED = 12  # rows and columns of a heat map with numbers in its cells
_DARK = 0.4  # of the largest mass, from where letters are white
_LETTERS, _WIDE = 84, 7  # of an axis, and of its narrowest tick
NOISE_TITLE = "Probability of every noise value"
MIN_VISIBLE_SHARE = 1e-4  # of the largest mass: less is nothing to see
MAX_TOTAL_ERROR = 1e-12  # Doubles of a whole law miss a sum of 1 by less than this.
MAX_TAIL_BARS = 900  # A picture shows at most so many noise values of each geometric tail.


def make_line_figure(
    title: str, x: str, y: str, series: Iterable[FigureData], *, log: bool = False, **more: Any
) -> FigureData:
    """A figure of lines and points; log: whether x is logarithmic."""
    axes = {"x": {"label": x, "log": log}, "y": {"label": y, "log": False}}
    return {"kind": "lines", "title": title, **axes, "series": list(series), **more}


def make_series(
    name: str, look: str, colour: int, x: Iterable[Any], y: Iterable[Any], **more: Any
) -> FigureData:
    """One series of a figure of lines."""
    return {"name": name, "look": look, "colour": colour, "x": [*x], "y": [*y], **more}


def make_bar_figure(
    title: str,
    x: str,
    labels: Iterable[Any],
    values: Any,
    min_visible_share: float = MIN_VISIBLE_SHARE,
) -> FigureData:
    """Probabilities as bars, as far as a bar can be seen: above `seen` times the largest. The note names the bars that
    are drawn, and their probability, where others are left out."""
    masses, words = np.asarray(values, dtype=float), format_names(labels)
    kept = np.flatnonzero(masses > min_visible_share * masses.max())
    part = slice(int(kept[0]), int(kept[-1]) + 1)
    shown, drawn = words[part], masses[part]
    is_cut = drawn.size < masses.size or bool(masses.sum() < 1 - MAX_TOTAL_ERROR)
    note = describe_drawn_part(shown[0], shown[-1], drawn.sum()) if is_cut else ""
    return {
        "kind": "bars", "title": title, "x": x, "y": "probability", "labels": shown, "values": drawn, "note": note,
    }  # fmt: skip


def describe_drawn_part(first: str, last: str, share: float) -> str:
    """Name the part of a law that a picture draws, and its probability in percent: below 100 %, as it is not all."""
    digits = next(
        (digits for digits in range(5, 15) if float(f"{100 * share:.{digits}g}") < 100), 15
    )
    return f"drawn: {first}..{last}, {100 * share:.{digits}g} % of the mass"


def make_heat_figure(
    title: str,
    row_label: str,
    rows: Iterable[Any],
    column_label: str,
    columns: Iterable[Any],
    cells: Any,
) -> FigureData:
    """A matrix of probabilities with the names of its rows and columns."""
    named = {"rows": format_names(rows), "columns": format_names(columns)}
    return {
        "kind": "heat",
        "title": title,
        "x": column_label,
        "y": row_label,
        **named,
        "values": cells,
    }


def format_names(values: Iterable[Any]) -> list[str]:
    """Inputs or outputs in words."""
    numbers = (int, float, Fraction, np.generic)
    return [f"{float(value):g}" if isinstance(value, numbers) else str(value) for value in values]


def overlay_laws(figure: FigureData, laws: Mapping[str, tuple[Any, Any]]) -> FigureData:
    """A law with others over it, as far as it goes. laws: name -> (values, masses), of densities (edges, means)."""
    if figure["kind"] != "lines":
        return {
            **figure,
            "others": [{"name": name, "x": x, "y": y} for name, (x, y) in laws.items()],
        }
    drawn = [*figure["series"]]
    for name, (at, means) in laws.items():
        x, y = np.asarray(at), np.append(means, means[-1:])[: len(at)]
        inside = (x >= drawn[0]["x"][0]) & (x <= drawn[0]["x"][-1])
        drawn.append(make_series(name, "line", len(drawn), x[inside], y[inside]))
    return {**figure, "series": drawn}


@apply_style_sheet
def draw_chart(figure: FigureData, title: str = "") -> Drawn:
    """A figure of these kinds by Matplotlib; title: its own by default."""
    kinds = {"lines": draw_lines, "bars": _draw_bars, "heat": _draw_heat_map}
    drawn, (axis,) = make_panels(
        width=SCREEN_INCHES, height=3.8 if figure["kind"] == "heat" else 3.0
    )
    kinds[figure["kind"]](axis, figure)
    set_wrapped_title(axis, title or figure["title"])
    if figure.get("note"):
        axis.set_xlabel(f"{axis.get_xlabel()}\n{wrap_text(figure['note'], SCREEN_INCHES)}")
    if len({*axis.get_legend_handles_labels()[1]}) > 1:
        add_legend_below(drawn, [axis])
    return drawn


def draw_lines(axis: Axes, figure: Values) -> None:
    """Its series, as line, filled, segments, band or area, and the words of its axes."""
    for law in figure["series"]:
        x, y = (np.array(law[at], dtype=float) for at in ("x", "y"))
        look, step, colour = law["look"], law.get("steps"), COLOURS[law["colour"] % len(COLOURS)]
        style: Record = {"color": colour, "label": law["name"]}
        if look in ("band", "area"):
            between: Record = {"step": "post" if step else None, "alpha": 0.25, "linewidth": 0}
            axis.fill_between(x, law.get("low", 0), y, **between, **style)
        if look == "segments":  # a gap after every second point
            x, y = (np.insert(ends, range(2, ends.size, 2), np.nan) for ends in (x, y))
            style |= {"marker": "|"}
        if look == "dashed":
            style |= {"linestyle": "--"}
        if look == "filled":
            style |= {"marker": "o", "linestyle": "none"}
        if look != "band":
            axis.plot(x, y, drawstyle="steps-post" if step else "default", **style)
    axis.set(
        xlabel=figure["x"]["label"], ylabel=figure["y"]["label"], ylim=(0, 1.06 * axis.dataLim.ymax)
    )


def _choose_ticks(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Places and names of some labels, 0 among them."""
    every = -(-len(labels) * max(_WIDE, 2 + max(map(len, labels))) // _LETTERS)
    first = labels.index("0") % every if "0" in labels else 0
    return list(range(first, len(labels), every)), list(labels[first::every])


def _draw_bars(axis: Axes, figure: Values) -> None:
    labels, values = figure["labels"], figure["values"]
    axis.bar(range(len(labels)), values, width=0.8, color=COLOURS[0])[0].set_label("this design")
    for k, law in enumerate(figure.get("others", ()), 1):
        masses = {f"{float(at):g}": mass for at, mass in zip(law["x"], law["y"], strict=True)}
        edges, level = np.arange(len(labels) + 1) - 0.5, [masses.get(name, 0.0) for name in labels]
        look: Record = {
            "color": COLOURS[k % len(COLOURS)],
            "linestyle": DASHES[k % len(DASHES)],
            "linewidth": 1.4,
        }
        axis.stairs(level, edges, baseline=None, label=law["name"], **look)
    axis.set_xticks(*_choose_ticks(labels))
    axis.set(xlabel=figure["x"], ylabel=figure["y"])


def _draw_heat_map(axis: Axes, figure: Values) -> None:
    """On a square-root scale: the darker, the likelier."""
    from matplotlib.colors import PowerNorm

    cells = np.asarray(figure["values"], dtype=float)
    most = float(cells.max())
    image = axis.imshow(cells, cmap="Blues", norm=PowerNorm(0.5, 0, most), aspect="auto")
    if max(cells.shape) <= _NUMBERED:
        for (i, j), mass in np.ndenumerate(cells):
            colour = "white" if mass > _DARK * most else "black"
            short = (
                f"{mass:.1e}".replace("e-0", "e-") if 0 < mass < 0.01 else f"{mass:.3g}"
            )  # six characters at most
            axis.text(j, i, short, ha="center", va="center", fontsize=6, color=colour)
    axis.set_yticks(*_choose_ticks(figure["rows"]))
    axis.set_xticks(*_choose_ticks(figure["columns"]))
    axis.grid(False)
    axis.set(xlabel=figure["x"], ylabel=figure["y"])
    axis.figure.colorbar(image, ax=axis, label="probability, square-root scale")
