"""Test the heat maps of published mechanisms."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench.papers.published import _draw_heat_maps


@pytest.mark.parametrize("losses", [("absolute",), ("absolute", "squared")])
def test_the_label_of_the_colour_bar_is_inside_the_figure(losses: tuple[str, ...]) -> None:
    rows = [
        {"loss": loss, "mechanism": "piecewise", "epsilon": 1, "delta": 0, "most_percent": None}
        for loss in losses
    ]
    figure = _draw_heat_maps(pd.DataFrame(rows))
    figure.draw_without_rendering()
    label = figure.axes[-1].yaxis.label
    assert label.get_text().startswith("excess over the optimum")
    box = label.get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= figure.bbox.height
