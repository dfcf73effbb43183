"""The published, measured against the optimum: results/published, from `workbench.recommendation.published`.

declared/published.toml states the grid of budgets, and what of the field is missing with the reason. The table
`published` sums up what the heat maps of each setting show.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pandas as pd

from workbench.data.parameter_grid import grid
from workbench.io.figures import panels, percent_bar, percent_map, styled
from workbench.io.result import Row
from workbench.papers.artifact import Artifact, artifact, declared, given, paper_stated
from workbench.recommendation.published import SETTINGS, compared, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@lru_cache
def _rows(setting: str, full: bool) -> list[Row]:
    """The rows of a setting on the grid that is stated."""
    budgets = given(declared("published")["grid"], full)
    return compared(setting, grid(budgets["epsilon"], "epsilon"), grid(budgets["delta"], "delta"))


def _setting(name: str, full: bool) -> Artifact:
    table = pd.DataFrame(_rows(name, full))
    return artifact(
        "published",
        name,
        table,
        draw=_draw,
        known=int(table["most_percent"].notna().sum()),
        count=len(table),
    )


def _published(full: bool) -> Artifact:
    table = pd.DataFrame([row for name in SETTINGS for row in summary(name, _rows(name, full))])
    missing = " ".join(
        f"{name}: {reason}" for name, reason in declared("published")["missing"].items()
    )
    return artifact("published", "published", table, missing=missing)


@styled
def _draw(table: pd.DataFrame) -> Figure:
    """How far above the proven optimum: a row of panels over (ε, δ) for each mechanism, one panel for each loss; with
    one δ a panel for each loss."""
    losses, several = list(table["loss"].unique()), table["delta"].nunique() > 1
    names = list(table["mechanism"].unique()) if several else [None]
    columns, down = (len(losses), "delta") if several else (1, "mechanism")
    figure, axes = panels(
        columns,
        len(names) * len(losses) // columns,
        height=1.05 if several else max(1.5, 2.2 / len(losses)),
    )
    image = None
    for at, axis in enumerate(axes):
        loss, name = losses[at % len(losses)], names[at // len(losses)]
        part = table[
            (table["loss"] == loss) & (True if name is None else table["mechanism"] == name)
        ]
        if part.empty:  # the mechanism does not apply
            axis.set_axis_off()
        else:
            image = percent_map(axis, part, ("epsilon", down), "most_percent")
        if at < len(losses):
            axis.set_title(f"{loss} loss")
        if several and at % columns == 0:
            axis.set_ylabel("\n".join([*str(name).split(), "δ"]))
        axis.tick_params(
            labelleft=at % columns == 0,
            labelbottom=at >= len(axes) - columns,
            labelsize=6 if several else 8,
        )
        axis.set_xlabel("ε" if at >= len(axes) - columns else "")
    if image:
        percent_bar(
            image,
            axes,
            "% above the optimum, at most"
            + ("" if table["most_percent"].notna().all() else "\n?: no optimum is proven"),
        )
    return figure


PAPER = paper_stated(
    "published", {"published": _published} | {name: partial(_setting, name) for name in SETTINGS}
)
