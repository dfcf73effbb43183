"""Test the lines of frontier plots: colours, names and panels.

A `Series` says how the rows of a mechanism are drawn. Published mechanisms (baselines) and those of
a user get a series if they have none.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import workbench as wb
from workbench.families.noise.frontier import SERIES
from workbench.io.figures import COLOURS, MARKERS
from workbench.pipeline.frontier_plots import Quantity, Series, add_baseline_series, draw_panels


def test_more_baselines_than_colours_use_the_colours_again():
    names = [f"mine {k}" for k in range(2 * len(COLOURS))]
    table = pd.DataFrame({"curve": "baseline", "mechanism": names})
    series_by_name = add_baseline_series(SERIES, table)
    assert set(series_by_name) == {*SERIES, *names}
    colour_count = min(len(COLOURS), len(MARKERS))
    assert all(0 <= series.colour < colour_count for series in series_by_name.values())


def test_a_user_defined_baseline_has_another_colour_than_the_optimal_noise():
    table = pd.DataFrame({"curve": ["point", "baseline"], "mechanism": ["noise", "mine"]})
    series_by_name = add_baseline_series(SERIES, table)
    assert series_by_name["mine"].colour != SERIES["noise"].colour


def test_braces_in_names_and_titles_are_drawn_as_they_are():
    baselines = pd.DataFrame(
        {"curve": "baseline", "mechanism": "f{x}", "epsilon": [1.0, 2.0], "objective": [2.0, 1.0]}
    )
    points = baselines.assign(
        curve="point", mechanism="ours", bound=1.0, notion="dp", delta=0.0, status=""
    )
    rows = pd.concat([baselines, points])
    figure = draw_panels(
        rows,
        Quantity("epsilon", "ε"),
        Quantity("objective", "loss"),
        add_baseline_series({}, rows),
        title="of {it}",
    )
    assert figure is not None
    assert figure.get_suptitle() == "of {it}"
    assert "f{x}" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_panels_without_values_stay_empty():
    """Five notions make two rows of four panels, of which three show nothing."""
    rows = pd.DataFrame(
        {"measure": list("abcde") * 2, "epsilon": [1.0] * 5 + [2.0] * 5, "objective": 1.0}
    )
    rows = rows.assign(
        curve="point", mechanism="ours", bound=1.0, notion="dp", delta=0.0, status="optimal"
    )
    quantities = Quantity("epsilon", "ε"), Quantity("objective", "loss")
    figure = draw_panels(
        rows, *quantities, {"ours": Series("ours", 0)}, "words", panel=Quantity("measure", "{}")
    )
    assert figure is not None
    assert [axis.axison for axis in figure.axes] == [True] * 5 + [False] * 3
    assert [axis.get_ylabel() for axis in figure.axes[:5]] == ["loss", "", "", "", "loss"]


def test_the_frontier_of_integer_noise_draws_all_its_baselines(tmp_path: Path):
    result = wb.frontier("noise", epsilon="1,2", delta="0.001,0.01")
    rows = result.to_frame()
    assert set(rows[rows["curve"] == "baseline"]["mechanism"]) <= set(SERIES)
    result.save(tmp_path / "drawn")
    assert list((tmp_path / "drawn").glob("*.png"))
