"""Test the synthetic city: its files, and the artifacts of a smaller city.

The city has 24 x 24 places with weights, the prior of a person's place. The files in
workbench/papers/data contain the weights of `compute_weight`.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from workbench.papers import frontier

SIZE = 24  # The number of places along each side of the city.
SMALL_SIZE = 4


def compute_weight(x: int, y: int) -> int:
    """Return the weight of a place: two round centres, at (7, 9) and (18, 15), and 1 everywhere."""
    first_distance = (x - 7) ** 2 + (y - 9) ** 2
    second_distance = (x - 18) ** 2 + (y - 15) ** 2
    first_weight = math.floor(40 * math.exp(-first_distance / 32))
    second_weight = math.floor(15 * math.exp(-second_distance / 12))
    return 1 + first_weight + second_weight


@pytest.fixture
def small_city(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the file of the city by every sixth place along each side."""
    rows = ["x,y,weight"]
    for x, y in itertools.product(range(SMALL_SIZE), repeat=2):
        rows.append(f"{x},{y},{compute_weight(6 * x, 6 * y)}")
    (tmp_path / "city.csv").write_text("\n".join(rows))
    monkeypatch.setattr(frontier, "DATA", tmp_path)


def test_the_file_contains_the_weights_of_the_formula() -> None:
    rows = ["x,y,weight"]
    for x, y in itertools.product(range(SIZE), repeat=2):
        rows.append(f"{x},{y},{compute_weight(x, y)}")
    assert (frontier.DATA / "city.csv").read_text().split() == rows


def test_the_coarse_file_contains_sums_over_two_by_two_places() -> None:
    rows = (frontier.DATA / "city_coarse.csv").read_text().split()[1:]
    sums = []
    for x, y in itertools.product(range(0, SIZE, 2), repeat=2):
        block = itertools.product((x, x + 1), (y, y + 1))
        sums.append(sum(compute_weight(*place) for place in block))
    assert [int(row.split(",")[2]) for row in rows] == sums


@pytest.mark.usefixtures("small_city")
def test_no_published_mechanism_has_a_smaller_loss_than_the_channel() -> None:
    frontier._compute_frontier.cache_clear()
    curves = frontier._make_frontier_artifact("city_full", full=True).table
    frontier._compute_frontier.cache_clear()
    losses = curves.pivot(index="epsilon", columns="mechanism", values="objective")
    assert len(losses) == 5
    for mechanism in ("planar Laplace, remapped", "planar exponential"):
        assert (losses["channel"] <= losses[mechanism]).all()


@pytest.mark.usefixtures("small_city")
def test_the_maps_of_the_city_are_probabilities() -> None:
    artifact = frontier._make_city_map(full=True)
    sums = artifact.table[["prior", "published", "from_the_likeliest"]].sum()
    # Probabilities are rounded to five digits.
    assert sums.tolist() == pytest.approx([1, 1, 1], abs=1e-3)
    assert artifact.caption.count("Mean distance") == 1
