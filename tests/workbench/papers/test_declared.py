"""Test that artifacts are made as workbench/papers/declared/<paper>.toml declares them."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.papers import load_paper
from workbench.papers.artifact import Artifact, make_artifact, read_declaration

# A figure as a declared file describes it: one panel for each value of the column panel. Each panel
# has a line for each k, and a bar at every x for k = 1.
FIGURE = {
    "by": "panel",
    "title": "{panel}: n = {n}",
    "set": {"ylim": 0, "xlabel": "x"},
    "series": [
        {"by": "k", "x": "x", "y": "2 * y", "label": "k = {k}"},
        {"kind": "bars", "where": "k == 1", "x": "x", "y": "y", "colour": 3},
    ],
}
TABLE = pd.DataFrame(
    {"panel": list("aabb"), "k": [1, 2, 1, 2], "x": [0, 0, 1, 1], "y": [1.0, 2.0, 3.0, 4.0]}
)


@pytest.mark.parametrize("name", ["modulo-noise", "dql", "optm", "label-dp", "dro"])
def test_every_artifact_has_a_title_a_caption_and_known_styles(name: str) -> None:
    declaration = read_declaration(name.replace("-", "_"))
    sections = {"paper", "styles", "errata", "claims", "mechanisms", "parameters"}
    artifacts = declaration.keys() - sections
    assert artifacts == load_paper(name).artifacts.keys()
    for key in artifacts:
        entry = declaration[key]
        assert entry["title"]
        assert entry["caption"]
        series = entry.get("figure", {}).get("series", [])
        used_styles = {line["styles"] for line in series if "styles" in line}
        assert used_styles <= declaration.get("styles", {}).keys()


def test_a_figure_has_the_declared_panels_lines_and_bars() -> None:
    first, second = draw_declared_figure(Drawing(FIGURE, {"n": 8}), TABLE).axes
    assert [axis.get_title() for axis in (first, second)] == ["a: n = 8", "b: n = 8"]
    assert [line.get_ydata().tolist() for line in second.lines] == [[6.0], [8.0]]
    assert [line.get_label() for line in first.lines] == ["k = 1", "k = 2"]
    assert [bar.get_height() for bar in second.patches] == [3.0]
    assert second.get_ylim()[0] == 0


def test_declared_comparisons_are_made_from_rows_and_printed_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Printed sums of y, one for each panel.
    sums = {
        "what": "sum of {panel}",
        "place": "Table 1",
        "printed": "sums",
        "ours": "y.groupby(panel).sum()",
        "tolerance": 0.5,
    }
    # One comparison for each row with k = 1. In a template, k is the number of the comparison.
    rows = {
        "what": "{k}",
        "printed": "theirs",
        "ours": "2 * y",
        "tolerance": "y / 10",
        "where": "k == 1",
        "expected": "x > 0",
        "remark": "at {x}",
    }
    entry = {"title": "", "caption": "", "comparisons": [sums, rows]}
    monkeypatch.setattr("workbench.papers.artifact.read_declaration", lambda paper: {"name": entry})
    monkeypatch.setattr(
        "workbench.papers.artifact.read_printed_numbers",
        lambda paper: {"sums": [3, 7], "name": {"place": "there"}},
    )
    comparisons = make_artifact("paper", "name", TABLE.assign(theirs=TABLE["x"])).comparisons
    assert [(c.what, c.place, c.printed, c.ours) for c in comparisons] == [
        ("sum of a", "Table 1", 3, 3),
        ("sum of a", "Table 1", 7, 7),
        ("0", "there", 0, 2),
        ("1", "there", 1, 6),
    ]
    assert [(c.tolerance, c.expected, c.remark) for c in comparisons[2:]] == [
        (0.1, False, "at 0"),
        (0.3, True, "at 1"),
    ]


def test_a_limit_of_an_axis_may_be_an_expression_of_the_rows() -> None:
    figure = {**FIGURE, "set": {"xlim": [-1, "2 * x.max()"]}}
    first, second = draw_declared_figure(Drawing(figure, {"n": 8}), TABLE).axes
    assert first.get_xlim() == (-1, 0)
    assert second.get_xlim() == (-1, 2)


def test_panels_of_a_grid_have_as_many_rows_as_needed() -> None:
    figure = {**FIGURE, "by": "y", "columns": 3}
    axes = draw_declared_figure(Drawing(figure, {"n": 8}), TABLE.assign(panel="a")).axes
    assert axes[0].get_gridspec().get_geometry() == (2, 3)
    assert [axis.axison for axis in axes] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(("count", "tick_count"), [(17, 17), (18, 9), (65, 17)])
def test_ticks_at_the_values_of_a_column_do_not_crowd(count: int, tick_count: int) -> None:
    table = pd.DataFrame({"x": range(count), "y": range(count)})
    panel = {"series": [{"x": "x", "y": "y"}], "ticks": {"x": "x"}}
    figure = draw_declared_figure(Drawing({"panels": [panel]}, template_values=None), table)
    assert len(figure.axes[0].get_xticks()) == tick_count


def test_a_text_at_no_number_is_left_out() -> None:
    series = [{"kind": "text", "x": "x", "y": "y.where(k == 1)", "text": "{k}"}]
    (axis,) = draw_declared_figure(Drawing({"series": series}), TABLE).axes
    assert [text.get_text() for text in axis.texts] == ["1", "1"]


@pytest.mark.parametrize(("error", "bar_count"), [("0 * y", 0), ("y.where(y > 9)", 0), ("y", 1)])
def test_points_without_standard_errors_have_no_error_bars(error: str, bar_count: int) -> None:
    series = [{"kind": "errors", "x": "x", "y": "y", "error": error, "capsize": 2}]
    (axis,) = draw_declared_figure(Drawing({"series": series}), TABLE).axes
    assert len(axis.containers) == bar_count
    assert axis.lines[0].get_ydata().tolist() == [1, 2, 3, 4]


def test_there_may_be_more_curves_than_markers() -> None:
    series = [{"by": "x", "x": "x", "y": "y", "marker": "by"}]
    table = pd.DataFrame({"x": range(20), "y": 1.0})
    (axis,) = draw_declared_figure(Drawing({"series": series}), table).axes
    assert len(axis.lines) == 20


@pytest.fixture
def declared_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare a paper with one artifact "name", which has the parameter n = 8."""
    figure = {
        "set": {"ylim": [0, 1], "xlim": 0, "xlabel": "x"},
        "series": [{"x": "x", "y": "y"}, {"printed": True, "x": "x", "y": "y", "colour": 3}],
    }
    entry = {
        "title": "T",
        "caption": "At n = {n}.",
        "findings": "It agrees.",
        "figure": figure,
        "parameters": {"n": 8},
        "comparisons": [
            {"ours": "y", "printed": "y", "tolerance": 1, "place": "there"},
        ],
    }
    explained = {"n": {"type": "integer >= 1", "meaning": "a number"}}
    declaration = {"name": entry, "parameters": explained}
    monkeypatch.setattr("workbench.papers.artifact.read_declaration", lambda paper: declaration)


def draw_axis(artifact: Artifact) -> Any:
    """Draw an artifact, and return its only axis."""
    assert artifact.draw is not None
    (axis,) = artifact.draw(TABLE).axes
    return axis


@pytest.mark.usefixtures("declared_paper")
def test_an_artifact_with_default_values_has_findings_and_comparisons() -> None:
    artifact = make_artifact("paper", "name", TABLE)
    assert (artifact.title, artifact.caption) == ("T", "At n = 8. It agrees.")
    assert len(artifact.comparisons) == 4


@pytest.mark.usefixtures("declared_paper")
def test_an_artifact_with_full_values_has_findings_and_comparisons() -> None:
    artifact = make_artifact("paper", "name", TABLE, full_values={"n": 20})
    assert artifact.caption == "At n = 20. It agrees."
    assert len(artifact.comparisons) == 4


@pytest.mark.usefixtures("declared_paper")
def test_changed_parameters_remove_findings_and_comparisons() -> None:
    artifact = make_artifact("paper", "name", TABLE, n=9)
    assert artifact.title == "T, with other parameters"
    assert artifact.caption.startswith("At n = 9.")
    assert "n = 9 (default: 8)" in artifact.caption
    assert "It agrees." not in artifact.caption
    assert len(artifact.comparisons) == 0


@pytest.mark.usefixtures("declared_paper")
def test_changed_parameters_remove_printed_marks() -> None:
    assert len(draw_axis(make_artifact("paper", "name", TABLE)).lines) == 2
    assert len(draw_axis(make_artifact("paper", "name", TABLE, n=9)).lines) == 1


@pytest.mark.usefixtures("declared_paper")
def test_changed_parameters_remove_upper_limits_of_axes() -> None:
    """The largest y of the table is 4, so the limit 1 would cut the curve off."""
    assert draw_axis(make_artifact("paper", "name", TABLE)).get_ylim() == (0, 1)
    changed_axis = draw_axis(make_artifact("paper", "name", TABLE, n=9))
    assert changed_axis.get_ylim()[1] > 4
    assert changed_axis.get_xlim()[0] == 0


def test_a_record_names_the_changed_parameters_only() -> None:
    for changes in ({}, {"n": 3}):
        artifact = Artifact("a", "", TABLE, None, "", changes=changes)
        record = json.loads(artifact.build_files()["a.json"])
        assert record.get("parameters", {}) == changes
        assert ("parameters" in record) == bool(changes)
