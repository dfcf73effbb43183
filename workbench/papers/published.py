"""Compare published mechanisms with the proven optimum on grids of budgets (results/published).

`workbench.recommendation.published` computes the comparison. A setting is a question with its
losses, such as counts 0..10 with neighbours that differ by 1. declared/published.toml has the grid
of budgets, and the mechanisms that are missing with the reasons. The artifact `published`
summarises the heat maps of all settings.
"""

from __future__ import annotations

import itertools
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    # A figure, its panels row by row, and an image for the colour bar (None if all are empty).
    _Panels = tuple[Figure, list[Axes], Any]


# The height of the panels in inches: one for each mechanism and loss, or one for each loss.
_MECHANISM_PANEL_INCHES = 1.05
_LOSS_PANELS_INCHES = 2.2  # All panels together.
_MIN_LOSS_PANEL_INCHES = 1.5
_MIN_LABEL_INCHES = 2.5  # The label of the colour bar of a lower figure is broken into two lines.

# The font size of the ticks in points. It is smaller where there is one panel for each mechanism.
_TICK_SIZE = 8
_SMALL_TICK_SIZE = 6


@lru_cache
def _compute_setting(setting: str, full: bool) -> list[Row]:
    """Return one row for each loss, mechanism and budget of the declared grid (`compare_setting`).

    The column most_percent is an upper bound on the excess loss over the optimum, in percent. It is
    None if no optimum is proven.
    """
    grid = select_arguments(read_declaration("published")["grid"], full)
    epsilons = read_grid(grid["epsilon"], "epsilon")
    deltas = read_grid(grid["delta"], "delta")
    return compare_setting(setting, epsilons, deltas)


def _make_setting_artifact(name: str, full: bool) -> Artifact:
    """Make the table and the heat maps of a setting. Its name is the name of the artifact."""
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
    if table["delta"].nunique() > 1:
        figure, axes, image = _draw_mechanism_panels(table, losses)
    else:
        figure, axes, image = _draw_loss_panels(table, losses)
    for loss, axis in zip(losses, axes, strict=False):
        axis.set_title(f"{loss} loss")
    if image:
        label = "excess over the optimum in %, at most"
        if figure.get_figheight() < _MIN_LABEL_INCHES:
            label = label.replace(" in %", "\nin %")
        if not table["most_percent"].notna().all():
            label += "\n?: no optimum is proven"
        add_percent_colour_bar(image, axes, label)
    return figure


def _draw_mechanism_panels(table: pd.DataFrame, losses: list[str]) -> _Panels:
    """Draw a panel over (ε, δ) for each mechanism (row) and loss (column)."""
    mechanisms = list(table["mechanism"].unique())
    column_count = len(losses)
    figure, axes = make_panels(column_count, len(mechanisms), height=_MECHANISM_PANEL_INCHES)
    image = None
    for k, (mechanism, loss) in enumerate(itertools.product(mechanisms, losses)):
        axis = axes[k]
        rows = table[(table["loss"] == loss) & (table["mechanism"] == mechanism)]
        if rows.empty:
            # The mechanism does not apply to this loss.
            axis.set_axis_off()
        else:
            image = draw_percent_map(axis, rows, ("epsilon", "delta"), "most_percent")
        is_first = loss == losses[0]
        is_last = mechanism == mechanisms[-1]
        if is_first:
            axis.set_ylabel("\n".join([*str(mechanism).split(), "δ"]))
        axis.tick_params(labelleft=is_first, labelbottom=is_last, labelsize=_SMALL_TICK_SIZE)
        axis.set_xlabel("ε" if is_last else "")
    return figure, axes, image


def _draw_loss_panels(table: pd.DataFrame, losses: list[str]) -> _Panels:
    """Draw a panel over ε and the mechanisms for each loss, one below the other."""
    height = max(_MIN_LOSS_PANEL_INCHES, _LOSS_PANELS_INCHES / len(losses))
    figure, axes = make_panels(1, len(losses), height=height)
    image = None
    for loss, axis in zip(losses, axes, strict=True):
        rows = table[table["loss"] == loss]
        image = draw_percent_map(axis, rows, ("epsilon", "mechanism"), "most_percent")
        is_last = loss == losses[-1]
        axis.tick_params(labelleft=True, labelbottom=is_last, labelsize=_TICK_SIZE)
        axis.set_xlabel("ε" if is_last else "")
    return figure, axes, image


_SETTING_ARTIFACTS = {name: partial(_make_setting_artifact, name) for name in SETTINGS}
PAPER = build_declared_paper(
    "published", {"published": _make_summary_artifact} | _SETTING_ARTIFACTS
)
