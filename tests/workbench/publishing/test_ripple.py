"""Test the error of ripple noise against lists of all noise vectors.

Ripple noise on the bins of a histogram has the mass e^(-ε level). The level of a vector is the
smallest number of people who can move the bins by it. The tests list the levels by adding the moves
of one person again and again.
"""

from __future__ import annotations

import math
from itertools import product

import pytest

import workbench as wb
from workbench.publishing.ripple import compute_ripple_rmse
from workbench.questions.joint_query import JointQuery

# An integer for each bin.
Point = tuple[int, ...]


def list_moves(query: JointQuery, bins: int) -> set[Point]:
    """Return the moves of the bins by one person."""
    max_rows_in_a_bin = 1 if query.release == "row-per-bin" else query.rows
    counts = product(range(max_rows_in_a_bin + 1), repeat=bins)
    people = [rows_by_bin for rows_by_bin in counts if sum(rows_by_bin) <= query.rows]
    nobody = (0,) * bins
    moves = set()
    for old, new in product(people, repeat=2):
        if query.neighbours == "replace" or nobody in (old, new):
            moves.add(tuple(b - a for a, b in zip(old, new, strict=True)))
    return moves - {nobody}


def list_levels(query: JointQuery, bins: int, last_level: int) -> dict[Point, int]:
    """Return the level of every vector that at most `last_level` people can move."""
    moves = list_moves(query, bins)
    levels = {(0,) * bins: 0}
    last_vectors = [*levels]
    for level in range(1, last_level + 1):
        sums = {
            tuple(a + b for a, b in zip(vector, move, strict=True))
            for vector, move in product(last_vectors, moves)
        }
        last_vectors = [vector for vector in sums if vector not in levels]
        levels |= dict.fromkeys(last_vectors, level)
    return levels


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("release", "bins", "rows"),
    [
        ("row-per-bin", 2, 2),
        ("row-per-bin", 3, 2),
        ("rows-anywhere", 2, 2),
        ("rows-anywhere", 3, 1),
    ],
)
def test_the_error_is_that_of_the_list_of_all_vectors(
    release: str, bins: int, rows: int, neighbours: str
) -> None:
    query = JointQuery(release, neighbours, rows)
    levels = list_levels(query, bins, last_level=10)
    # Levels beyond 10 have masses below e^-40 at ε = 4.
    masses = {vector: math.exp(-4 * level) for vector, level in levels.items()}
    squares = sum(mass * vector[0] ** 2 for vector, mass in masses.items())
    expected = math.sqrt(squares / sum(masses.values()))
    assert compute_ripple_rmse(query, bins, epsilon=4) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("release", ["row-per-bin", "rows-anywhere"])
def test_one_person_changes_the_level_by_at_most_one(release: str, neighbours: str) -> None:
    """So a mass e^(-ε level) is private. Some person changes it by one, so no ε is wasted."""
    query = JointQuery(release, neighbours, 2)
    levels = list_levels(query, bins=2, last_level=6)
    changes = set()
    for (first, second), level in levels.items():
        if level <= 4:
            for first_move, second_move in list_moves(query, bins=2):
                changes.add(levels[first + first_move, second + second_move] - level)
    assert changes == {-1, 0, 1}


@pytest.mark.parametrize("bins", [1, 2, 5])
def test_ripple_noise_of_one_row_is_geometric_noise(bins: int) -> None:
    """The root mean squared error is √(2a) / (1 - a) with a = e^-ε."""
    a = math.exp(-0.5)
    rmse = compute_ripple_rmse(JointQuery("row-per-bin"), bins, "0.5")
    assert rmse == pytest.approx(math.sqrt(2 * a) / (1 - a), rel=1e-9)


def test_ripple_noise_on_one_bin_is_a_staircase_with_steps_of_k() -> None:
    """The mass of η is proportional to e^(-ε ⌈|η|/3⌉)."""
    masses = {eta: math.exp(-math.ceil(abs(eta) / 3)) for eta in range(-300, 301)}
    expected = math.sqrt(sum(m * eta**2 for eta, m in masses.items()) / sum(masses.values()))
    rmse = compute_ripple_rmse(JointQuery("rows-anywhere", rows=3), bins=1, epsilon=1)
    assert rmse == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("query", "epsilon", "message"),
    [
        (JointQuery("pair-of-sums", rows=1, span=3), 1, "relation of a histogram"),
        (JointQuery("row-per-bin"), "0.01", "large enough"),
    ],
)
def test_other_relations_and_tiny_budgets_are_refused(
    query: JointQuery, epsilon: int | str, message: str
) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        compute_ripple_rmse(query, 3, epsilon)
