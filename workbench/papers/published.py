"""The published, measured against the optimum: results/published, from `workbench.comparison.published`.

declared/published.toml states the grid of budgets, and what of the field is missing with the reason. The table
`published` sums up what the heat maps of each setting show.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench.comparison.published import SETTINGS, compared, summary
from workbench.io.figures import panels
from workbench.io.parameter_grid import grid
from workbench.io.result import Row
from workbench.papers.artifact import Artifact, artifact, declared, given, paper_stated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST, _MOST = 0.1, 1000.0  # percent, ends of the colours
_SHOWN = 0.05  # below it a distance is 0 to the digits shown
_DARK = 100.0  # percent from which a cell is dark


@lru_cache
def _rows(setting: str, full: bool) -> list[Row]:
    """The rows of a setting on the grid that is stated."""
    budgets = given(declared("published")["grid"], full)
    return compared(setting, grid(budgets["epsilon"], "epsilon"), grid(budgets["delta"], "delta"))


def _setting(name: str, full: bool) -> Artifact:
    table = pd.DataFrame(_rows(name, full))
    known = int(table["most_percent"].notna().sum())
    return artifact("published", name, table, draw=_draw, known=known, count=len(table))


def _published(full: bool) -> Artifact:
    table = pd.DataFrame([row for name in SETTINGS for row in summary(name, _rows(name, full))])
    missing = " ".join(f"{name}: {reason}" for name, reason in declared("published")["missing"].items())
    return artifact("published", "published", table, missing=missing)


def _draw(table: pd.DataFrame) -> Figure:
    """How far above the proven optimum: a panel for each mechanism and loss over (ε, δ), or one for each loss."""
    losses, several = list(table["loss"].unique()), table["delta"].nunique() > 1
    columns = list(table["mechanism"].unique()) if several else [None]
    down = "delta" if several else "mechanism"
    figure, axes = panels(len(columns), len(losses), width=2.4 if several else 6.0, height=2.1 if several else 2.4)
    image = None
    for at, axis in enumerate(axes):
        loss, name = losses[at // len(columns)], columns[at % len(columns)]
        part = table[(table["loss"] == loss) & (True if name is None else table["mechanism"] == name)]
        image = _panel(axis, part, down) or image
        axis.set_title(f"{loss} loss" if name is None else f"{name}\n{loss} loss", fontsize=8)
        if at % len(columns) == 0 and several:
            axis.set_ylabel("δ", fontsize=8)
        if at // len(columns) == len(losses) - 1:
            axis.set_xlabel("ε", fontsize=8)
    if image is not None:
        bar = figure.colorbar(image, ax=axes, label="at most so many percent above the optimum", shrink=0.8)
        bar.set_ticks([0.1, 1, 10, 100, 1000], labels=["0.1", "1", "10", "100", "1000"])
        bar.minorticks_off()
    return figure


def _panel(axis: Axes, part: pd.DataFrame, down: str) -> Any:
    """One heat map; grey where the optimum is not proven closely, white where the mechanism does not apply."""
    from matplotlib.colors import LogNorm

    if part.empty:
        axis.set_axis_off()
        return None
    cells = part.assign(shown=part["most_percent"].astype(float).clip(_LEAST, _MOST))
    order = list(dict.fromkeys(part[down]))
    values = cells.pivot_table(index=down, columns="epsilon", values="shown", dropna=False).reindex(order)
    there = cells.assign(there=1.0).pivot_table(index=down, columns="epsilon", values="there").reindex(values.index)
    axis.grid(False)
    axis.imshow(there, cmap="Greys", vmin=0, vmax=4, aspect="auto", origin="lower")
    image = axis.imshow(values, norm=LogNorm(_LEAST, _MOST), cmap="YlOrRd", aspect="auto", origin="lower")
    axis.set_xticks(range(values.shape[1]), [f"{e:g}" for e in values.columns], fontsize=6)
    labels = [f"{d:g}" if isinstance(d, float) else str(d) for d in values.index]
    axis.set_yticks(range(values.shape[0]), labels, fontsize=6)
    for row in part.to_dict("records"):
        x, y = list(values.columns).index(row["epsilon"]), list(values.index).index(row[down])
        percent = row["most_percent"]
        colour = "white" if percent is not None and percent > _DARK else "black"
        axis.text(x, y, _cell(percent), ha="center", va="center", fontsize=5, color=colour)
    return image


def _cell(percent: float | None) -> str:
    if percent is None or math.isnan(percent):
        return "?"
    if percent < 10:
        return "0" if percent < _SHOWN else f"{percent:.1f}"
    return f"{percent:.0f}" if percent < _MOST else ">1k"


PAPER = paper_stated("published", {"published": _published} | {name: partial(_setting, name) for name in SETTINGS})
