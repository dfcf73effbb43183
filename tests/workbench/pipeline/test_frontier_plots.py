"""Test which curves the plots of a frontier have."""

from __future__ import annotations

from itertools import product

import pandas as pd
import pytest

from workbench.families.laplace.frontier import _describe_ends
from workbench.pipeline.frontier_plots import Series, make_budget_plots

# The label, the colour and the line style of each mechanism.
SERIES = {"ours": Series("our design", 0), "theirs": Series("their noise", 1, "--")}


def make_rows(budgets: dict[float, list[str]]) -> pd.DataFrame:
    """Return two points of every mechanism at every δ. `budgets` has the mechanisms by δ."""
    rows = []
    for delta, names in budgets.items():
        for name, epsilon in product(names, (1.0, 2.0)):
            row = {
                "curve": "point" if name == "ours" else "baseline",
                "mechanism": name,
                "notion": "dp",
                "epsilon": epsilon,
                "delta": delta,
                "objective": 3.0 - epsilon,
                "bound": 0.0,
                "status": "optimal",
            }
            rows.append(row)
    return pd.DataFrame(rows)


def draw_errors(table: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Return the title and the labels of every panel of the plot against ε."""
    figure = make_budget_plots(table, "ours", SERIES, "title", "loss")["error_epsilon"]()
    assert figure is not None
    panels = []
    for axis in figure.axes:
        _, labels = axis.get_legend_handles_labels()
        curve_labels = [label for label in labels if not label.startswith("shaded")]
        panels.append((axis.get_title(), curve_labels))
    return panels


def test_a_budget_with_one_mechanism_is_drawn_beside_the_others() -> None:
    table = make_rows({0.0: ["ours", "theirs"], 0.01: ["ours"], 0.1: ["ours"]})
    assert draw_errors(table) == [
        (
            "DP, δ = 0 unless stated",
            ["our design", "their noise", "our design, DP, δ = 0.01", "our design, DP, δ = 0.1"],
        )
    ]


def test_joined_budgets_have_different_markers() -> None:
    table = make_rows({0.0: ["ours", "theirs"], 0.01: ["ours"], 0.1: ["ours"]})
    figure = make_budget_plots(table, "ours", SERIES, "title", "loss")["error_epsilon"]()
    assert figure is not None
    lines = [line for line in figure.axes[0].lines if "our design" in str(line.get_label())]
    assert len({line.get_marker() for line in lines}) == 3
    assert [line.get_markevery() for line in lines] == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("names", [["ours"], ["ours", "theirs"]])
def test_budgets_with_the_same_mechanisms_have_a_panel_each(names: list[str]) -> None:
    panels = draw_errors(make_rows({0.0: names, 0.01: names}))
    assert [title for title, _ in panels] == ["DP, δ = 0", "DP, δ = 0.01"]


def test_the_title_says_where_no_message_is_short_enough() -> None:
    table = pd.DataFrame(
        {"bits": [3, 3, 3, 4], "epsilon": [1, 2, 4, 4], "decoder_epsilon": [2.0, None, None, 8.0]}
    )
    assert _describe_ends(table) == "\nNo ℓ reaches 3 bits from ε = 2 on"
    assert _describe_ends(table[table["epsilon"] != 2]) == "\nNo ℓ reaches 3 bits at ε = 4"
    assert _describe_ends(table[table["bits"] == 4]) == ""
