"""The published, measured against the optimum: results/published, from `workbench.recommendation.published`.

declared/published.toml states the grid of budgets, and what of the field is missing with the reason. The table
`published` sums up what the heat maps of each setting show.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pandas as pd

from workbench.data.parameter_grid import read_grid
from workbench.io.figures import (
    add_percent_colour_bar,
    apply_style_sheet,
    draw_percent_map,
    make_panels,
)
from workbench.io.result import Row
from workbench.papers.artifact import (
    Artifact,
    build_declared_paper,
    make_artifact,
    read_declaration,
    select_arguments,
)
from workbench.recommendation.published import SETTINGS, compare_setting, summarise_setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@lru_cache
def _measure_setting(setting: str, full: bool) -> list[Row]:
    """The rows of a setting on the grid that is stated."""
    budgets = select_arguments(read_declaration("published")["grid"], full)
    return compare_setting(
        setting, read_grid(budgets["epsilon"], "epsilon"), read_grid(budgets["delta"], "delta")
    )


def _make_setting_artifact(name: str, full: bool) -> Artifact:
    table = pd.DataFrame(_measure_setting(name, full))
    return make_artifact(
        "published",
        name,
        table,
        draw=_draw_heat_maps,
        known=int(table["most_percent"].notna().sum()),
        count=len(table),
    )


def _make_summary_artifact(full: bool) -> Artifact:
    table = pd.DataFrame(
        [row for name in SETTINGS for row in summarise_setting(name, _measure_setting(name, full))]
    )
    missing = " ".join(
        f"{name}: {reason}" for name, reason in read_declaration("published")["missing"].items()
    )
    return make_artifact("published", "published", table, missing=missing)


@apply_style_sheet
def _draw_heat_maps(table: pd.DataFrame) -> Figure:
    """How far above the proven optimum: a row of panels over (ε, δ) for each mechanism, one panel for each loss; with
    one δ a panel for each loss."""
    losses, several = list(table["loss"].unique()), table["delta"].nunique() > 1
    names = list(table["mechanism"].unique()) if several else [None]
    columns, down = (len(losses), "delta") if several else (1, "mechanism")
    figure, axes = make_panels(
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
            image = draw_percent_map(axis, part, ("epsilon", down), "most_percent")
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
        add_percent_colour_bar(
            image,
            axes,
            "% above the optimum, at most"
            + ("" if table["most_percent"].notna().all() else "\n?: no optimum is proven"),
        )
    return figure


PAPER = build_declared_paper(
    "published",
    {"published": _make_summary_artifact}
    | {name: partial(_make_setting_artifact, name) for name in SETTINGS},
)
