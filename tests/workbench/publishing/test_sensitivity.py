"""Test sensitivities against the largest difference over all rows of a person, by brute force.

Values are on [18, 95]. Sums and counts are linear in a person's rows, so the ends of the range and
one inner value decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

import workbench as wb
from workbench.publishing.sensitivity import (
    PersonRows,
    compute_sensitivity,
    make_histogram_query,
)

LOW = 18
HIGH = 95
# The values of the rows of one person.
Rows = tuple[int, ...]


def list_people(counts: range, low: int = LOW, high: int = HIGH) -> list[Rows]:
    """Return the counted values of all people with these numbers of rows."""
    people: list[Rows] = []
    for count in counts:
        people += combinations_with_replacement((low, (low + high) // 2, high), count)
    return people


def find_largest_move(statistic: Callable[[Rows], int], pairs: Iterator[tuple[Rows, Rows]]) -> int:
    """Return the largest difference of a statistic between two people."""
    return max(abs(statistic(old) - statistic(new)) for old, new in pairs)


def pair_all(people: list[Rows], *, same_count: bool = False) -> Iterator[tuple[Rows, Rows]]:
    """Yield all pairs of people, or those with equally many rows."""
    for old in people:
        for new in people:
            if not same_count or len(old) == len(new):
                yield old, new


def pair_with_nobody(people: list[Rows]) -> Iterator[tuple[Rows, Rows]]:
    """Yield every person with a person without rows, as if the person is added or removed."""
    return ((person, ()) for person in people)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("low", "high"), [(18, 95), (-95, -18), (-20, 60), (-60, 20)])
def test_adding_a_person_moves_a_sum_as_brute_force_says(rows: int, low: int, high: int) -> None:
    people = list_people(range(rows + 1), low, high)
    expected = find_largest_move(sum, pair_with_nobody(people))
    assert compute_sensitivity("sum", PersonRows(rows=rows), low, high) == expected


@pytest.mark.parametrize(("rows", "expected"), [(1, 77), (3, 231)])
def test_replacing_as_many_rows_moves_a_sum_by_the_width(rows: int, expected: int) -> None:
    people = list_people(range(rows + 1))
    assert find_largest_move(sum, pair_all(people, same_count=True)) == expected
    assert compute_sensitivity("sum", PersonRows("replace", rows), LOW, HIGH) == expected


@pytest.mark.parametrize("reason", ["has_filter", "drops_missing", "can_exceed_rows"])
@pytest.mark.parametrize(("rows", "expected"), [(1, 95), (3, 285)])
def test_a_changed_number_of_rows_moves_a_sum_by_the_larger_end(
    rows: int, expected: int, reason: str
) -> None:
    people = list_people(range(rows + 1))
    assert find_largest_move(sum, pair_all(people)) == expected
    person = PersonRows("replace", rows, **{reason: True})
    assert compute_sensitivity("sum", person, LOW, HIGH) == expected


def test_a_person_who_keeps_a_row_moves_a_sum_by_less() -> None:
    """One row of 18 becomes three rows of 95: 267. The sensitivity lets all rows vanish: 285."""
    people = list_people(range(1, 4))
    assert find_largest_move(sum, pair_all(people)) == 267
    person = PersonRows("replace", 3, can_exceed_rows=True)
    assert compute_sensitivity("sum", person, LOW, HIGH) == 285


@pytest.mark.parametrize(("low", "high"), [(-95, -18), (-20, 60), (-60, 20)])
def test_a_changed_number_of_rows_is_brute_forced_on_ranges_below_0(low: int, high: int) -> None:
    people = list_people(range(4), low, high)
    person = PersonRows("replace", 3, has_filter=True)
    expected = find_largest_move(sum, pair_all(people))
    assert compute_sensitivity("sum", person, low, high) == expected


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_count_moves_by_the_rows_of_a_person(neighbours: str) -> None:
    people = list_people(range(4))
    pairs = pair_all(people) if neighbours == "replace" else pair_with_nobody(people)
    person = PersonRows(neighbours, 3, has_filter=True)
    assert compute_sensitivity("count", person) == find_largest_move(len, pairs) == 3


@pytest.mark.parametrize(("neighbours", "expected"), [("add-remove", 231), ("replace", 462)])
def test_the_pair_of_sums_moves_in_the_l1_norm_as_brute_force_says(
    neighbours: str, expected: int
) -> None:
    people = list_people(range(4))
    pairs = pair_all(people) if neighbours == "replace" else pair_with_nobody(people)
    moves = []
    for old, new in pairs:
        first = sum(x - LOW for x in old) - sum(x - LOW for x in new)
        second = sum(HIGH - x for x in old) - sum(HIGH - x for x in new)
        moves.append(abs(first) + abs(second))
    assert max(moves) == expected
    assert compute_sensitivity("mean", PersonRows(neighbours, 3), LOW, HIGH) == expected


@pytest.mark.parametrize(("neighbours", "expected"), [("add-remove", 2), ("replace", 4)])
def test_a_histogram_has_the_norm_of_its_worst_shift_vector(neighbours: str, expected: int) -> None:
    person = PersonRows(neighbours, 2)
    assert compute_sensitivity("histogram", person) == expected
    for one_row_per_bin in (False, True):
        query = make_histogram_query(person, one_row_per_bin=one_row_per_bin)
        assert max(sum(map(abs, vector)) for vector in query.shifts) == expected


def test_a_mean_of_a_public_number_of_rows_moves_by_a_share_of_the_width() -> None:
    person = PersonRows("replace", 2)
    assert compute_sensitivity("mean", person, LOW, HIGH, 2000) == Fraction(154, 2000)


@pytest.mark.parametrize(
    "person",
    [
        PersonRows("add-remove"),
        PersonRows("replace", has_filter=True),
        PersonRows("replace", drops_missing=True),
        PersonRows("replace", can_exceed_rows=True),
    ],
)
def test_a_public_number_of_rows_is_refused_where_it_can_change(person: PersonRows) -> None:
    with pytest.raises(wb.InvalidRequest, match="private number of rows"):
        compute_sensitivity("mean", person, LOW, HIGH, 2000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("median", PersonRows()), "statistic must be one of"),
        (("sum", PersonRows()), "low must be a finite number"),
        (("sum", PersonRows(), 5, 5), "high must be above low"),
        (("sum", PersonRows(), 5, 6, 10), "public_rows must be left out for a sum"),
        (("count", PersonRows(), 5, 6), "low and high must be left out for a count"),
        (("count", PersonRows(), None, None, 10), "public_rows must be left out for a count"),
        (("mean", PersonRows("replace"), 5, 6, 0), "public_rows must be an integer"),
        (("sum", PersonRows(), "nan", 6), "low must be a finite number"),
    ],
)
def test_arguments_outside_their_range_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        compute_sensitivity(*arguments)


@pytest.mark.parametrize("options", [{"rows": 0}, {"neighbours": "swap"}, {"has_filter": 1}])
def test_rules_of_a_person_outside_their_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(wb.InvalidRequest, match=f"{next(iter(options))} must be"):
        PersonRows(**options)
