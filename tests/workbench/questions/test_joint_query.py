"""Test the shift vectors of joint releases against vectors that are counted from rows of a person."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

import workbench as wb
from workbench.questions.joint_query import JointQuery, list_partitions

# Numbers of partitions of 0..10: https://oeis.org/A000041
PARTITION_COUNTS = [1, 1, 2, 3, 5, 7, 11, 15, 22, 30, 42]


def list_histograms(bin_count: int, rows: int, *, one_per_bin: bool) -> set[tuple[int, ...]]:
    """Return the histograms of all people with 0..rows rows."""
    histograms = set()
    for count in range(rows + 1):
        for bins in combinations_with_replacement(range(bin_count), count):
            if not one_per_bin or len(set(bins)) == count:
                histograms.add(tuple(bins.count(k) for k in range(bin_count)))
    return histograms


def list_pairs_of_sums(span: int, rows: int) -> set[tuple[int, ...]]:
    """Return Σ (x - lo) and Σ (hi - x) of all people with 0..rows rows, x - lo in 0..span."""
    pairs: set[tuple[int, ...]] = set()
    for count in range(rows + 1):
        for offsets in product(range(span + 1), repeat=count):
            pairs.add((sum(offsets), sum(span - offset for offset in offsets)))
    return pairs


def iter_moves(people: set[tuple[int, ...]], neighbours: str) -> Iterator[tuple[int, ...]]:
    """Yield every nonzero vector by which a person's rows move the answers."""
    for old, new in product(people, repeat=2):
        vector = tuple(b - a for a, b in zip(old, new, strict=True))
        is_one_sided = not any(old) or not any(new)
        if any(vector) and (neighbours == "replace" or is_one_sided):
            yield vector


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("release", ["rows-anywhere", "row-per-bin"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_vectors_of_a_histogram_are_the_moves_of_all_people(
    release: str, neighbours: str, rows: int
) -> None:
    people = list_histograms(2 * rows, rows, one_per_bin=release == "row-per-bin")
    moves = set()
    for vector in iter_moves(people, neighbours):
        moves.add(tuple(sorted((part for part in vector if part), reverse=True)))
    assert set(JointQuery(release, neighbours, rows).shifts) == moves


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("rows", "span"), [(1, 1), (1, 7), (2, 3), (3, 2)])
def test_the_vectors_of_a_pair_are_the_moves_of_all_people(
    neighbours: str, rows: int, span: int
) -> None:
    moves = set(iter_moves(list_pairs_of_sums(span, rows), neighbours))
    assert set(JointQuery("pair-of-sums", neighbours, rows, span).shifts) == moves


def test_one_person_of_a_pair_moves_both_sums_by_the_span_together() -> None:
    """The first two vectors of each line of the list are (0, 77) and (1, 76)."""
    query = JointQuery("pair-of-sums", neighbours="add-remove", rows=1, span=77)
    assert {abs(a) + abs(b) for a, b in query.shifts} == {77}
    assert len(query.shifts) == 2 * 78


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("release", "span"), [("rows-anywhere", None), ("row-per-bin", None), ("pair-of-sums", 5)]
)
def test_the_largest_norm_is_the_norm_of_a_vector(
    release: str, neighbours: str, span: int | None
) -> None:
    query = JointQuery(release, neighbours=neighbours, rows=4, span=span)
    assert query.max_norm == max(sum(map(abs, vector)) for vector in query.shifts)


def test_adding_a_person_of_many_rows_lists_each_partition_and_its_negative() -> None:
    """There are 7,337 partitions of 1..24 (sums of OEIS A000041). All pairs would take long."""
    assert len(JointQuery("rows-anywhere", "add-remove", 24).shifts) == 2 * 7337


def test_partitions_are_as_many_as_in_the_encyclopedia() -> None:
    assert [len(list_partitions(total)) for total in range(11)] == PARTITION_COUNTS


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("rows",), "release must be one of"),
        (("rows-anywhere", "swap"), "neighbours must be one of"),
        (("rows-anywhere", "replace", 0), "rows must be an integer"),
        (("rows-anywhere", "replace", 65), "rows must be an integer"),
        (("rows-anywhere", "replace", True), "rows must be an integer"),
        (("rows-anywhere", "replace", 1, 5), "span must be left out"),
        (("pair-of-sums", "replace", 1), "span must be an integer"),
        (("pair-of-sums", "replace", 1, 0), "span must be an integer"),
        (("rows-anywhere", "replace", 13), f"Got {373**2 - 1} of 13 rows"),
        (("pair-of-sums", "replace", 3, 10_000), "Use fewer rows or a coarser grid"),
    ],
)
def test_a_relation_outside_its_range_is_refused(parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        JointQuery(*parts)


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        (1, "replacing up to 1 row of a person in any bins by up to 1 other"),
        (3, "replacing up to 3 rows of a person in any bins by up to 3 others"),
    ],
)
def test_the_text_says_that_replacing_may_add_rows(rows: int, change: str) -> None:
    query = JointQuery("rows-anywhere", "replace", rows)
    # A neighbour may have one row more, and none less.
    assert (1,) in query.shifts
    assert str(query) == f"Noise on each bin of a histogram, for {change}"
