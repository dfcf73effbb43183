"""Test that figures have the sizes of the style sheet, whatever the user has set in Matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import workbench as wb
from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.io.figures import (
    COLUMN_INCHES,
    PAGE_INCHES,
    add_legend_below,
    draw_percent_map,
    make_panels,
    wrap_text,
)
from workbench.papers import PAPERS, load_paper
from workbench.papers.artifact import read_declaration

TABLE = pd.DataFrame({"panel": list("ab"), "x": [1, 2], "y": [1.0, 2.0]})


@pytest.mark.parametrize(("columns", "width"), [(1, COLUMN_INCHES), (2, PAGE_INCHES)])
def test_a_declared_figure_has_the_width_of_print_and_8_points(columns: int, width: float) -> None:
    series = {"x": "x", "y": "y", "label": "a label"}
    declaration = {
        "title": "n = 8",
        "legend": 2,
        "columns": columns,
        "panels": [{}] * columns,
        "series": [series],
    }
    user_points = 31
    with mpl.rc_context({"font.size": user_points}):
        figure = draw_declared_figure(Drawing(declaration), TABLE)
        assert mpl.rcParams["font.size"] == user_points
    assert figure.get_figwidth() == width
    figure.draw_without_rendering()
    assert {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()} == {8}


def test_no_declared_figure_sets_a_font_size() -> None:
    for paper in PAPERS:
        if paper == "program_library":
            continue  # It has no declared figures.
        declarations = read_declaration(load_paper(paper).name.replace("-", "_"))
        for artifact, declaration in declarations.items():
            figure_keys = declaration.get("figure", {}).keys()
            assert not {"size", "figsize"} & figure_keys, (paper, artifact)


def test_titles_break_between_words_but_not_within_an_equation() -> None:
    assert wrap_text("Optimal error rate (n = 4, max_shift = 1)", 2.0).splitlines() == [
        "Optimal error rate (n = 4,",
        "max_shift = 1)",
    ]


def test_a_legend_has_as_many_columns_as_fit() -> None:
    figure, (axis,) = make_panels(width=COLUMN_INCHES)
    for label in ("a long label of a series", "another long label", "a third long label"):
        axis.plot([0], [0], label=label)
    add_legend_below(figure, [axis], columns=3)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.bbox.width


def test_a_map_of_percentages_marks_unknown_values() -> None:
    table = pd.DataFrame({"x": [1, 2, 1], "y": ["a", "a", "b"], "percent": [0.01, np.nan, 2000.0]})
    _, (axis,) = make_panels(width=COLUMN_INCHES)
    draw_percent_map(axis, table, ("x", "y"), "percent")
    assert [text.get_text() for text in axis.texts] == ["0", "?", ">1k"]


def test_the_plot_of_a_result_is_at_most_as_wide_as_a_page(tmp_path: Path) -> None:
    result = wb.frontier("labels", labels="0..4", epsilon="1,2")
    assert result.plot(tmp_path / "f.pdf").get_figwidth() <= PAGE_INCHES
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
