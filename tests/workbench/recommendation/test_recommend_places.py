"""Recommendations for places of the plane: the best channel and published planar mechanisms."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main

PLACES = [(i, j) for i in range(4) for j in range(3)]
QUERY = {"answers": PLACES, "loss": "euclidean", "epsilon": "0.7"}


def index_by_class(result: wb.Result) -> dict[str, dict[str, object]]:
    """Return class -> row of a table."""
    return {row["class"]: row for row in result}


@pytest.fixture(
    scope="module",
    params=[("within 1 L1", "pure"), ("all L2", "metric")],
    ids=["pure", "metric"],
)
def table(request: pytest.FixtureRequest) -> wb.Result:
    """Return the recommendation for the places, with an uneven prior."""
    neighbours, notion = request.param
    return wb.recommend(**QUERY, neighbours=neighbours, notion=notion, prior=range(1, 13))


def test_the_best_channel_of_places_is_optimal_and_below_the_planar_mechanisms(
    table: wb.Result,
) -> None:
    losses = {row["class"]: row["objective"] for row in table}
    best = index_by_class(table)["best channel"]
    assert table.chosen == "best channel"
    assert best["objective"] == pytest.approx(best["bound"], rel=1e-8)
    assert losses["best channel"] < losses["planar Laplace, remapped"]
    assert losses["best channel"] < losses["planar exponential"]


def test_a_note_says_whether_a_planar_mechanism_uses_the_prior(table: wb.Result) -> None:
    rows = index_by_class(table)
    assert "uses the prior" in str(rows["planar Laplace, remapped"]["notes"])
    assert "does not use the prior" in str(rows["planar exponential"]["notes"])


def test_the_exponential_mechanism_for_numbers_does_not_apply_to_places(table: wb.Result) -> None:
    assert "exponential" not in index_by_class(table)


def test_the_planar_exponential_mechanism_has_a_certified_design(table: wb.Result) -> None:
    assert table.design("planar exponential").certificate is not None


def test_planar_noise_is_certified_but_has_no_design() -> None:
    result = wb.recommend(
        **QUERY, neighbours="within 1 L1", notion="pure", only="planar Laplace, remapped"
    )
    assert [row["certified"] for row in result] == [True]
    with pytest.raises(wb.InvalidRequest, match="class must be"):
        _ = result.best


@pytest.fixture
def city(tmp_path: Path) -> Path:
    """Write four places with weights to a file."""
    path = tmp_path / "city.csv"
    path.write_text("x,y,weight\n0,0,3\n0,1,1\n1,0,1\n1,1,2\n")
    return path


def list_arguments(city: Path, *options: str) -> list[str]:
    """Return the arguments of `recommend` for the places of a file."""
    line = f"recommend --places {city} --loss euclidean --epsilon 1 --notion pure"
    return [*line.split(), "--neighbours", "within 1 L1", *options]


def test_the_recommended_class_for_a_file_of_places_is_saved(city: Path, tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    with pytest.raises(SystemExit) as stop:
        main(list_arguments(city, "--save", str(path)))
    assert not stop.value.code
    assert wb.check(path).holds


def test_places_and_answers_together_are_refused(
    city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(list_arguments(city, "--answers", "0..3"))
    assert "exactly one of answers, places and range" in capsys.readouterr().err


KILOMETRE_QUERY = {
    "answers": [(0, 0), (0, 1000), (1000, 0)],
    "neighbours": "all L2",
    "loss": "euclidean",
    "notion": "metric",
    "epsilon": "0.7/km",
    "unit": "m",
}


def test_a_budget_per_kilometre_is_converted_to_the_unit_of_the_coordinates() -> None:
    per_kilometre = wb.recommend(**KILOMETRE_QUERY, only="best channel")
    per_metre_query = {**KILOMETRE_QUERY, "epsilon": "0.0007", "unit": None}
    per_metre = wb.recommend(**per_metre_query, only="best channel")
    assert per_kilometre[0]["objective"] == per_metre[0]["objective"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": None}, "unit must be given"),
        ({"notion": "dp"}, "notion must be metric"),
        ({"unit": "foot"}, "unit must be one of m, km, mi"),
    ],
)
def test_a_budget_per_kilometre_needs_a_unit_and_metric_privacy(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.recommend(**{**KILOMETRE_QUERY, **options})
