"""Places of the plane among the classes that are compared: the optimum, noise on the plane, what selects a place."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main

PLACES = [(i, j) for i in range(4) for j in range(3)]
GIVEN = {"answers": PLACES, "loss": "euclidean", "epsilon": "0.7"}


def by_class(result: wb.Result) -> dict[str, dict[str, object]]:
    return {row["class"]: row for row in result}


@pytest.mark.parametrize(("neighbours", "notion"), [("within 1 L1", "pure"), ("all L2", "metric")])
def test_the_classes_for_places_are_those_of_the_plane(neighbours: str, notion: str) -> None:
    result = wb.recommend(**GIVEN, neighbours=neighbours, notion=notion, prior=range(1, 13))
    rows = by_class(result)
    best, noise, drawn = (
        rows[name] for name in ("best channel", "planar Laplace, remapped", "planar exponential")
    )
    assert result.chosen == "best channel"
    assert best["objective"] == pytest.approx(best["bound"], rel=1e-8)
    assert best["objective"] < noise["objective"]
    assert best["objective"] < drawn["objective"]
    assert "uses the prior" in str(noise["notes"])
    assert "does not use the prior" in str(drawn["notes"])
    assert "exponential" not in rows
    assert result.design("planar exponential").certificate is not None


def test_noise_on_the_plane_has_no_table_to_save() -> None:
    result = wb.recommend(
        **GIVEN, neighbours="within 1 L1", notion="pure", only="planar Laplace, remapped"
    )
    assert [row["certified"] for row in result] == [True]
    with pytest.raises(wb.InvalidRequest, match="class must be"):
        _ = result.best


def test_places_of_a_file_are_recommended_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    city = tmp_path / "city.csv"
    city.write_text("x,y,weight\n0,0,3\n0,1,1\n1,0,1\n1,1,2\n")
    line = [
        "recommend",
        "--places",
        str(city),
        "--neighbours",
        "within 1 L1",
        "--loss",
        "euclidean",
        "--epsilon",
        "1",
    ]
    saved = tmp_path / "best.json"
    with pytest.raises(SystemExit) as stop:
        main([*line, "--notion", "pure", "--save", str(saved)])
    assert not stop.value.code
    capsys.readouterr()
    assert wb.check(saved).holds
    with pytest.raises(SystemExit):
        main([*line, "--answers", "0..3"])
    assert "exactly one of answers, places and range" in capsys.readouterr().err


def test_a_budget_per_kilometre_is_read_in_the_unit_of_the_coordinates() -> None:
    given = {
        "answers": [(0, 0), (0, 1000), (1000, 0)],
        "neighbours": "all L2",
        "loss": "euclidean",
        "notion": "metric",
    }
    asked = wb.recommend(**given, epsilon="0.7/km", unit="m", only="best channel")
    same = wb.recommend(**given, epsilon="0.0007", only="best channel")
    assert [row["objective"] for row in asked] == [row["objective"] for row in same]
    for wrong, words in (({"unit": None}, "unit must be given"), ({"notion": "dp"}, "notion must be metric"),
                         ({"unit": "foot"}, "unit must be one of m, km, mi")):  # fmt: skip
        with pytest.raises(wb.InvalidRequest, match=words):
            wb.recommend(**{**given, "epsilon": "0.7/km", "unit": "m", **wrong})
