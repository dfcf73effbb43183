"""Compare published mechanisms with the proven optimum on grids of budgets (results/published).

`workbench.recommendation.published` computes the comparison. declared/published.toml has the grid
of budgets, and the mechanisms that are missing with the reasons. The table `published` summarises
the heat maps of all settings.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

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
def _compute_setting(setting: str, full: bool) -> list[Row]:
    """Return the rows of a setting on the declared grid."""
    grid = select_arguments(read_declaration("published")["grid"], full)
    epsilons = read_grid(grid["epsilon"], "epsilon")
    deltas = read_grid(grid["delta"], "delta")
    return compare_setting(setting, epsilons, deltas)


def _make_setting_artifact(name: str, full: bool) -> Artifact:
    """Make the table and the heat maps of a setting."""
    table = pd.DataFrame(_compute_setting(name, full))
    known_count = int(table["most_percent"].notna().sum())
    return make_artifact(
        "published", name, table, draw=_draw_heat_maps, known=known_count, count=len(table)
    )


def _make_summary_artifact(full: bool) -> Artifact:
    """Make the summary of all settings."""
    rows: list[Row] = []
    for name in SETTINGS:
        rows += summarise_setting(name, _compute_setting(name, full))
    reasons = read_declaration("published")["missing"]
    missing = " ".join(f"{name}: {reason}" for name, reason in reasons.items())
    return make_artifact("published", "published", pd.DataFrame(rows), missing=missing)


@apply_style_sheet
def _draw_heat_maps(table: pd.DataFrame) -> Figure:
    """Draw the excess loss over the proven optimum.

    With several δ: one row of panels over (ε, δ) for each mechanism, with one panel for each loss.
    With one δ: one panel over ε and the mechanisms for each loss.
    """
    losses = list(table["loss"].unique())
    by_mechanism = table["delta"].nunique() > 1
    mechanisms: list[Any]
    row_column = "mechanism"
    label_size = 8
    if by_mechanism:
        row_column = "delta"
        label_size = 6
        mechanisms = list(table["mechanism"].unique())
        column_count = len(losses)
        height = 1.05
    else:
        mechanisms = [None]
        column_count = 1
        height = max(1.5, 2.2 / len(losses))
    row_count = len(mechanisms) * len(losses) // column_count
    figure, axes = make_panels(column_count, row_count, height=height)
    image = None
    for k, axis in enumerate(axes):
        loss = losses[k % len(losses)]
        mechanism = mechanisms[k // len(losses)]
        rows = table[table["loss"] == loss]
        if mechanism is not None:
            rows = rows[rows["mechanism"] == mechanism]
        if rows.empty:
            # The mechanism does not apply to this loss.
            axis.set_axis_off()
        else:
            columns = ("epsilon", row_column)
            image = draw_percent_map(axis, rows, columns, "most_percent")
        if k < len(losses):
            axis.set_title(f"{loss} loss")
        is_first = k % column_count == 0
        is_last = k >= len(axes) - column_count
        if by_mechanism and is_first:
            axis.set_ylabel("\n".join([*str(mechanism).split(), "δ"]))
        axis.tick_params(labelleft=is_first, labelbottom=is_last, labelsize=label_size)
        axis.set_xlabel("")
        if is_last:
            axis.set_xlabel("ε")
    if image:
        label = "excess over the optimum in %, at most"
        if not table["most_percent"].notna().all():
            label += "\n?: no optimum is proven"
        add_percent_colour_bar(image, axes, label)
    return figure


_SETTING_ARTIFACTS = {name: partial(_make_setting_artifact, name) for name in SETTINGS}
PAPER = build_declared_paper(
    "published", {"published": _make_summary_artifact} | _SETTING_ARTIFACTS
)
