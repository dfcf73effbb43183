"""Test places of the plane: files, distances, neighbours, and pairs that imply metric privacy."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra

import workbench as wb
from workbench.questions.places import Plane, reduce_metric_pairs

SQUARE = [(i, j) for i, j in product(range(4), repeat=2)]  # 16 places on a grid.


def write_city(tmp_path: Path, text: str) -> Path:
    """Write a CSV file of places with the columns x, y and sometimes weight. Return its path."""
    path = tmp_path / "city.csv"
    path.write_text(text, "utf-8")
    return path


def test_a_file_has_places_and_weights(tmp_path: Path) -> None:
    path = write_city(tmp_path, "x,y,weight\n0,0,1\n0,1.5,2\n3,0,1\n")
    question = wb.FiniteQuery(path, neighbours="within 1.5 L1")
    assert question.inputs == ((0, 0), (0, Fraction(3, 2)), (3, 0))
    assert question.prior == (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    assert question.pairs == ((0, 1),)


def test_places_without_weights_have_a_uniform_prior(tmp_path: Path) -> None:
    question = wb.FiniteQuery(write_city(tmp_path, "0,0\n0,1\n"), neighbours="all L1")
    assert question.prior == (Fraction(1, 2), Fraction(1, 2))


@pytest.mark.parametrize(
    ("norm", "radius", "count"),
    [("L1", 1, 24), ("L2", "1.41", 24), ("L2", "1.42", 42), ("Linf", 1, 42)],
)
def test_neighbours_are_the_places_within_a_radius(norm: str, radius: object, count: int) -> None:
    assert len(wb.FiniteQuery(SQUARE, neighbours=f"within {radius} {norm}").pairs or ()) == count


def test_a_radius_is_compared_up_to_the_rounding_of_floats() -> None:
    places = [("0.1", 0), ("0.4", 0), ("0.7000000000000001", 0), ("1.0001", 0)]
    assert wb.FiniteQuery(places, neighbours="within 0.3").pairs == ((0, 1), (1, 2))


@pytest.mark.parametrize("norm", ["L1", "L2", "Linf"])
def test_the_omitted_pairs_are_implied_by_the_others(norm: str) -> None:
    """The shortest path along the remaining pairs is as long as the distance of its two ends."""
    pairs, distances = reduce_metric_pairs(
        wb.FiniteQuery(SQUARE, neighbours="all").inputs, pairs=None, norm=norm
    )
    assert len(pairs) < 120  # The number of all pairs of 16 places.
    graph = np.zeros((16, 16))
    for (i, j), distance in zip(pairs, distances, strict=True):
        graph[i, j] = graph[j, i] = float(distance)
    power = {"L1": 1, "L2": 2, "Linf": math.inf}[norm]
    true_distances = [[np.linalg.norm(np.subtract(a, b), power) for b in SQUARE] for a in SQUARE]
    path_lengths = dijkstra(graph, directed=False)
    np.testing.assert_allclose(path_lengths, np.array(true_distances), rtol=1e-11)


def test_irrational_distances_are_rounded_down() -> None:
    """A smaller distance gives a smaller budget, which is safe."""
    inputs = wb.FiniteQuery(SQUARE, neighbours="all").inputs
    pairs, distances = reduce_metric_pairs(inputs, pairs=None, norm="L2")
    for (i, j), distance in zip(pairs, distances, strict=True):
        (x, y), (other_x, other_y) = SQUARE[i], SQUARE[j]
        assert distance**2 <= (x - other_x) ** 2 + (y - other_y) ** 2


def test_unit_steps_suffice_for_l1() -> None:
    pairs, _ = reduce_metric_pairs(
        wb.FiniteQuery(SQUARE, neighbours="all").inputs, pairs=None, norm="L1"
    )
    assert len(pairs) == 24


def test_losses_of_places_are_distances() -> None:
    plane = Plane(
        [(Fraction(0), Fraction(0))], [(Fraction(3), Fraction(4)), (Fraction(1), Fraction(1))], "L2"
    )
    values, unit = plane.losses()
    assert Fraction(int(values[0, 0]), unit) == 5
    assert float(Fraction(int(values[0, 1]), unit)) == pytest.approx(math.sqrt(2), rel=1e-15)


def test_metric_privacy_of_places_is_certified_for_every_pair() -> None:
    design = wb.design(
        wb.FiniteQuery(SQUARE, neighbours="all L2"), loss="euclidean", epsilon=1, notion="metric"
    )
    assert design.certificate is not None
    matrix = design.mechanism.matrix
    for i, j in product(range(16), repeat=2):
        max_ratio = math.exp(math.dist(SQUARE[i], SQUARE[j]))
        assert (matrix[i] <= max_ratio * matrix[j] * (1 + 1e-12)).all()
    assert any("imply the others" in sentence for sentence in design.words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,0\n1,1\n0,0.0\n", "all different"),
        ("0,0\n1,nan\n", "line 2, column 2 of city.csv must be a finite number"),
        ("0,0\n1,1,5\n", "rows|cells"),
        ("0,0,0\n0,1,0\n", "not all 0"),
        ("".join(f"{i},0\n" for i in range(4001)), "at most 4000"),
        ("0,0\n7,0\n", "within the smallest distance"),
    ],
)  # fmt: skip
def test_invalid_places_are_refused_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=words) as error:
        wb.FiniteQuery(write_city(tmp_path, text), neighbours="within 1 L1")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "relation", ["within", "within -1 L1", "within 1 L3", "all L7", "within a L1"]
)
def test_bad_relations_are_refused(relation: str) -> None:
    with pytest.raises(wb.InvalidRequest):
        wb.FiniteQuery(SQUARE, neighbours=relation)


def test_norms_are_refused_without_places() -> None:
    with pytest.raises(wb.InvalidRequest, match="no places of the plane"):
        wb.FiniteQuery("0..5", neighbours="all L1")


def test_separate_parts_are_reported() -> None:
    places = [(0, 0), (0, 1), (9, 9), (9, 8)]
    design = wb.design(
        wb.FiniteQuery(places, neighbours="within 1"), loss="euclidean", epsilon=1, notion="pure"
    )
    assert any("2 separate parts" in sentence for sentence in design.words)


def test_certificates_of_places_record_their_loss() -> None:
    for prior, name in ((None, "expected_loss"), ("worst", "largest_loss")):
        prior_option = {} if prior is None else {"prior": prior}
        corners = [(i, j) for i in range(2) for j in range(2)]
        options = {"neighbours": "all L1", "loss": "euclidean", "epsilon": 1, "notion": "pure"}
        design = wb.design("channel", places=corners, **options, **prior_option)
        assert design.certificate.record[name] == pytest.approx(design.objective, rel=1e-12)
        assert design.certificate.record[name] >= design.details["loss"]
        assert repr(design.certificate.record[name]) in " ".join(design.certificate.sentences)
