"""Test by brute force that no person moves a computed statistic further than its noise covers.

The tables have one fixed person and a second one, whose rows take every combination of up to three
rows. The statistic is computed by the code that publishes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from workbench.data.private_table import read_private_table
from workbench.publishing.pair_of_sums import ValueGrid, make_pair_query
from workbench.publishing.release import describe_persons
from workbench.publishing.request import StatisticOptions
from workbench.publishing.sensitivity import compute_sensitivity, make_histogram_query
from workbench.publishing.statistic import Answer, Statistic, compute_answer

# The cells of a row: the id of the person, the age and whether the person smokes.
Row = tuple[str, str, str]
FIXED_ROWS: list[Row] = [("o", "40", "yes"), ("o", "20", "no")]
# Values below, on and above the range, with both values of the filter.
VALUES = ("10", "18", "95", "120")
ROWS: list[Row] = [("p", value, smoker) for value in VALUES for smoker in ("yes", "no")]
MAX_ROWS = 3


def compute_answers(statistic: Statistic, grid: ValueGrid | None = None) -> dict[Any, Answer]:
    """Return the statistic of the table with these rows, by the rows of the second person."""
    answers = {}
    for count in range(MAX_ROWS + 1):
        for rows in combinations_with_replacement(ROWS, count):
            columns = zip(*FIXED_ROWS, *rows, strict=True)
            table = dict(zip(("id", "age", "smoker"), map(list, columns), strict=True))
            answers[rows] = compute_answer(statistic, read_private_table(table), grid)
    return answers


def list_pairs(answers: dict[Any, Answer], neighbours: str) -> Iterator[tuple[Answer, Answer]]:
    """Yield the answers of neighbours: without the person, or with as many other rows."""
    for rows, answer in answers.items():
        for neighbour_rows, neighbour_answer in answers.items():
            if neighbours == "add-remove" and not neighbour_rows:
                yield answer, neighbour_answer
            if neighbours == "replace" and len(rows) == len(neighbour_rows):
                yield answer, neighbour_answer


def find_largest_move(answers: dict[Any, Answer], neighbours: str) -> Fraction:
    """Return the largest difference of one number."""
    pairs = list_pairs(answers, neighbours)
    return max(abs(answer.values[0] - neighbour.values[0]) for answer, neighbour in pairs)


def read_sum(rows: int, **options: Any) -> Statistic:
    """Return the sum of ages in 18..95, of K rows of a person."""
    return StatisticOptions(
        column="age", range="18..95", person="id", rows_per_person=rows, **options
    ).read("sum")


@pytest.mark.parametrize(
    ("rows", "options", "largest"),
    [
        (1, {}, 95),
        (3, {}, 285),
        (1, {"neighbours": "replace", "where": "smoker=yes"}, 95),
        (3, {"neighbours": "replace", "where": "smoker=yes"}, 285),
        (3, {"neighbours": "replace"}, 231),
    ],
)
def test_a_person_moves_a_sum_by_at_most_its_sensitivity(
    rows: int, options: dict[str, Any], largest: int
) -> None:
    """K rows move a sum by 95 K if they may be left out, by (95 - 18) K if they are replaced."""
    statistic = read_sum(rows, **options)
    move = find_largest_move(compute_answers(statistic), statistic.person.neighbours)
    assert move == largest
    assert move <= compute_sensitivity("sum", statistic.person, 18, 95)


def test_the_sum_of_a_person_who_keeps_one_row_moves_by_267() -> None:
    """One row of 18 becomes three rows of 95. The sensitivity of 285 covers it."""
    answers = compute_answers(read_sum(3))
    sums = [answer.values[0] for rows, answer in answers.items() if rows]
    assert max(sums) - min(sums) == 267


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("option", ["rows_per_person", "bins_per_person"])
def test_every_move_of_a_histogram_is_a_shift_vector(option: str, neighbours: str) -> None:
    options: dict[str, Any] = {option: 2, "neighbours": neighbours}
    statistic = StatisticOptions(
        column="age", bins="0,15,50,100,other", person="id", **options
    ).read("histogram")
    query = make_histogram_query(statistic.person, one_row_per_bin=statistic.one_row_per_bin)
    moves = set()
    for answer, neighbour in list_pairs(compute_answers(statistic), neighbours):
        move = [int(a - b) for a, b in zip(answer.values, neighbour.values, strict=True)]
        moves.add(tuple(sorted((part for part in move if part), reverse=True)))
    assert moves - {()} <= {tuple(sorted(shift, reverse=True)) for shift in query.shifts}
    assert max(sum(map(abs, move)) for move in moves) == query.max_norm


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_every_move_of_a_pair_of_sums_is_a_shift_vector(neighbours: str) -> None:
    statistic = StatisticOptions(
        column="age",
        range="18..95",
        where="smoker=yes",
        person="id",
        rows_per_person=2,
        neighbours=neighbours,
    ).read("mean")
    grid = ValueGrid(low=18, high=95, step=7)
    query = make_pair_query(grid, statistic.person)
    moves = set()
    for answer, neighbour in list_pairs(compute_answers(statistic, grid), neighbours):
        ((first, second),) = answer.pairs
        ((neighbour_first, neighbour_second),) = neighbour.pairs
        moves.add((first - neighbour_first, second - neighbour_second))
    assert moves - {(0, 0)} <= set(query.shifts)


def test_the_groups_of_a_mean_are_moved_one_at_a_time() -> None:
    """A person of one row is in one group, so all groups cost what one costs."""
    statistic = StatisticOptions(
        column="age",
        range="18..95",
        by="smoker",
        values="yes,no",
        person="id",
        rows_per_person=1,
    ).read("mean")
    grid = ValueGrid(low=18, high=95, step=7)
    for answer, neighbour in list_pairs(compute_answers(statistic, grid), "add-remove"):
        groups = zip(answer.pairs, neighbour.pairs, strict=True)
        assert sum(pair != neighbour_pair for pair, neighbour_pair in groups) <= 1


def test_a_person_with_the_id_of_another_in_another_case_moves_bins_twice_as_far() -> None:
    """Without aB, the row of Ab counts in its place. So a bin falls by 1, and another one rises."""
    options = {"column": "ward", "values": "a,b", "person": "id", "rows_per_person": 1}
    statistic = StatisticOptions(**options).read("histogram")
    table_with_aB = read_private_table({"id": ["aB", "Ab"], "ward": ["a", "b"]})
    table_without_aB = read_private_table({"id": ["Ab"], "ward": ["b"]})
    assert compute_answer(statistic, table_with_aB, None).values == [1, 0]
    assert compute_answer(statistic, table_without_aB, None).values == [0, 1]
    assert "if upper and lower case" in describe_persons(statistic)
