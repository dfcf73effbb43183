"""Test that declared artifacts exist and are drawn as declared."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.papers import load_paper
from workbench.papers.artifact import make_artifact, read_declaration

FIGURE = {
    "by": "panel",
    "title": "{panel}: n = {n}",
    "set": {"ylim": 0, "xlabel": "x"},
    "series": [
        {"by": "k", "x": "x", "y": "2 * y", "label": "k = {k}"},
        {"kind": "bars", "where": "k == 1", "x": "x", "y": "y", "colour": 3},
    ],
}


@pytest.mark.parametrize("name", ["modulo-noise", "dql", "optm", "label-dp", "dro"])
def test_every_declaration_is_of_an_artifact_and_its_words(name: str) -> None:
    stated = read_declaration(name.replace("-", "_"))
    artifacts = stated.keys() - {"paper", "styles", "errata", "mechanisms"}
    assert artifacts == load_paper(name).artifacts.keys()
    for own in (stated[key] for key in artifacts):
        assert own["title"]
        assert own["caption"]
        assert {
            s["styles"] for s in own.get("figure", {}).get("series", []) if "styles" in s
        } <= stated.get("styles", {}).keys()


def test_a_figure_has_what_is_declared() -> None:
    table = pd.DataFrame(
        {"panel": list("aabb"), "k": [1, 2, 1, 2], "x": [0, 0, 1, 1], "y": [1.0, 2.0, 3.0, 4.0]}
    )
    first, second = draw_declared_figure(Drawing(FIGURE, {"n": 8}), table).axes
    assert [axis.get_title() for axis in (first, second)] == ["a: n = 8", "b: n = 8"]
    assert [line.get_ydata().tolist() for line in second.lines] == [[6.0], [8.0]]
    assert [line.get_label() for line in first.lines] == ["k = 1", "k = 2"]
    assert [bar.get_height() for bar in second.patches] == [3.0]
    assert second.get_ylim()[0] == 0


def test_printed_numbers_stand_beside_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = {
        "what": "sum of {panel}",
        "place": "Table 1",
        "printed": "sums",
        "ours": "y.groupby(panel).sum()",
    }
    rows = {
        "what": "{k}",
        "printed": "theirs",
        "ours": "2 * y",
        "tolerance": "y / 10",
        "where": "k == 1",
    }
    compared = [sums | {"tolerance": 0.5}, rows | {"expected": "x > 0", "remark": "at {x}"}]
    own = {"title": "", "caption": "", "comparisons": compared}
    monkeypatch.setattr("workbench.papers.artifact.read_declaration", lambda paper: {"name": own})
    monkeypatch.setattr(
        "workbench.papers.artifact.read_printed_numbers",
        lambda paper: {"sums": [3, 7], "name": {"place": "there"}},
    )
    table = pd.DataFrame(
        {"panel": list("aabb"), "k": [1, 2, 1, 2], "x": [0, 0, 1, 1], "y": [1.0, 2.0, 3.0, 4.0]}
    )
    found = make_artifact("paper", "name", table.assign(theirs=table["x"])).comparisons
    assert [(c.what, c.place, c.printed, c.ours) for c in found] == [
        ("sum of a", "Table 1", 3, 3),
        ("sum of a", "Table 1", 7, 7),
        ("0", "there", 0, 2),
        ("1", "there", 1, 6),
    ]
    assert [(c.tolerance, c.expected, c.remark) for c in found[2:]] == [
        (0.1, False, "at 0"),
        (0.3, True, "at 1"),
    ]
