"""Test that the readers of neighbours, priors, groups, losses and tables return exact values.

Neighbours are given by answers and read as positions. For example, the answers 2 and 0 of the
inputs 2, 0, 1 are the positions (0, 1).
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from workbench.data.groups import list_shifts, read_sizes
from workbench.data.input_weights import align_counts, count_column, read_input_weights
from workbench.data.intervals import read_ends, read_integer_range
from workbench.data.label_lists import read_label_text
from workbench.data.losses import align_loss_matrix, read_loss_matrix, tabulate_loss
from workbench.data.neighbours import Neighbours, read_neighbours, read_row_pairs
from workbench.data.number_tables import list_lines, read_number_table
from workbench.data.points import list_point_values_and_weights, read_number_matrix, read_points
from workbench.data.priors import read_prior, read_range_prior
from workbench.errors import CorruptFile, InvalidRequest
from workbench.pipeline.loss_tables import read_loss

INPUTS = read_points("2,0,1", "inputs")
# |x - y| for the inputs x, y in this order.
DISTANCES = [[0, 2, 1], [2, 0, 1], [1, 1, 0]]


# `pairs=None` means every two inputs, or the places within `radius` of each other.
@pytest.mark.parametrize(
    ("relation", "is_directed", "expected"),
    [
        ("all", False, Neighbours(pairs=None)),
        ("all", True, Neighbours(pairs=((0, 1), (0, 2), (2, 1)))),
        ("consecutive", False, Neighbours(pairs=((0, 1), (1, 2)))),
        ({"max_distance": 1}, False, Neighbours(pairs=((0, 2), (1, 2)))),
        ({"max_distance": 1}, True, Neighbours(pairs=((0, 2), (2, 1)))),
        ([(0, 2)], False, Neighbours(pairs=((0, 1),))),
        ([(0, 2)], True, Neighbours(pairs=((1, 0),))),
        (DISTANCES, False, Neighbours(pairs=((0, 1), (0, 2), (1, 2)), distances=(2, 1, 1))),
        ("within 1 L1", False, Neighbours(pairs=None, norm="L1", radius=Fraction(1))),
        ("all Linf", True, Neighbours(pairs=None, norm="Linf")),
    ],
)
def test_every_form_of_a_neighbour_relation_is_read(
    relation: Any, is_directed: bool, expected: Neighbours
) -> None:
    assert read_neighbours(relation, INPUTS, [2, 0, 1], is_directed=is_directed) == expected


def test_a_table_of_distances_is_read_by_its_labels() -> None:
    table = pd.DataFrame([[0, 1, 2], [1, 0, 1], [2, 1, 0]], index=[0, 1, 2], columns=[0, 1, 2])
    neighbours = read_neighbours(table[[1, 0, 2]], INPUTS, [2, 0, 1], is_directed=False)
    assert neighbours == Neighbours(pairs=((0, 1), (0, 2), (1, 2)), distances=(2, 1, 1))
    matrix = read_loss_matrix(table[[1, 0, 2]], "loss")
    assert align_loss_matrix(matrix, INPUTS, INPUTS) == DISTANCES


def test_a_loss_function_gets_the_output_before_the_input() -> None:
    differences = [[x - o for o in (2, 0, 1)] for x in (2, 0, 1)]
    shifted = [[10 + difference for difference in row] for row in differences]
    assert tabulate_loss(lambda o, x: 10 + x - o, INPUTS, INPUTS) == shifted
    assert tabulate_loss(lambda o, x: abs(o - x), INPUTS, INPUTS) == DISTANCES


def test_pairs_of_rows_are_returned_in_both_orders_unless_directed() -> None:
    # The file has the rows 0 and 1, so its last row is 1.
    assert read_row_pairs(pairs=[(1, 0)], last_row=1, is_directed=True) == ((1, 0),)
    assert read_row_pairs(pairs=[(1, 0)], last_row=1, is_directed=False) == ((0, 1), (1, 0))
    with pytest.raises(InvalidRequest, match="two rows in"):
        read_row_pairs(pairs=[(0, 2)], last_row=1, is_directed=True)


def test_priors_are_probabilities_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    file = tmp_path / "prior.csv"
    file.write_text("input,weight\n0,3\n2,1\n", "utf-8")
    expected = (Fraction(1, 4), Fraction(3, 4), 0)
    assert read_prior(file, INPUTS) == expected
    assert read_prior(pd.Series([3, 0, 1], index=[0, 1, 2]), INPUTS) == expected
    assert read_prior("1,3,0", INPUTS) == expected
    assert read_prior("worst", INPUTS) is None


def test_the_prior_of_a_range_has_one_probability_for_each_part() -> None:
    assert read_range_prior([1, 3]) == (Fraction(1, 4), Fraction(3, 4))
    with pytest.raises(InvalidRequest, match="prior must be weights >= 0, not all 0"):
        read_range_prior([])


def test_groups_and_shifts_are_read_from_texts() -> None:
    assert read_sizes(sizes="5x3") == (5, 3)
    assert list_shifts("0,1;1,0") == [(0, 1), (1, 0)]


def test_labels_of_a_text_are_sorted_and_their_order_is_kept() -> None:
    labels = read_label_text("4,0,1")
    assert labels.values == [0, 1, 4]
    # The smallest label, 0, is entry 1 of the text (from 0), then 1 is entry 2, and 4 is entry 0.
    assert labels.order == (1, 2, 0)


def test_the_ends_of_a_range_are_read_from_texts() -> None:
    assert read_integer_range("0..50", "clamp", "two integers") == [0, 50]
    assert read_ends("0.5", "epsilon", "a range") == (Fraction(1, 2), Fraction(1, 2))


def test_the_numbers_of_a_column_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "ages.csv"
    file.write_text("age\n1\n2\n1\n", "utf-8")
    assert align_counts(count_column(file, "age"), INPUTS) == [1, 0, 2]


def test_input_weights_are_counts() -> None:
    for data in ([1, 2, 1], pd.Series([1, 2, 1]).value_counts()):
        counts, *_ = read_input_weights(data)
        assert counts == {1: 2, 2: 1}


def test_a_table_of_laws_names_its_inputs_and_outputs() -> None:
    table = read_number_table(list_lines("# laws\n\nx,a,b\nr,1/2,0.5\ns,0.25,0.75\n"))
    assert table.rows == [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]]
    assert table.labels == (("r", "s"), ("a", "b"))


def test_a_first_line_that_could_be_a_law_is_refused() -> None:
    with pytest.raises(CorruptFile, match="could be the law of the input"):
        read_number_table(list_lines("x,0.5,0.5\nr,0.5,0.5\ns,0.25,0.75\n"))


def test_a_file_cannot_replace_the_text_of_a_range_or_the_name_of_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("0..3", "0..1:0.5", "absolute", "pinball:0.5"):
        (tmp_path / name).write_text("7\n8\n")
    assert read_points("0..3", "inputs") == (0, 1, 2, 3)
    assert list_point_values_and_weights("0..1:0.5", "inputs") == ([0, Fraction(1, 2), 1], None)
    assert [read_loss(name, "loss") for name in ("absolute", "pinball:0.5")] == [
        "absolute",
        "pinball:0.5",
    ]
    (tmp_path / "high..low").write_text("7\n8\n")
    assert read_points("high..low", "inputs") == (7, 8)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 2]], "loss must be a matrix of 2 rows and 2 columns"),
        ([[1, 2], [3]], "loss must be a matrix of 2 rows and 2 columns"),
        ([[1, 2], [3, -1]], "every entry of loss must be a finite number >= 0"),
        ([[1, 2], [3, float("inf")]], "every entry of loss must be a finite number"),
    ],
)
def test_invalid_matrices_are_refused_in_one_sentence(matrix: object, message: str):
    with pytest.raises(InvalidRequest, match=message) as error:
        read_number_matrix(matrix, "loss", shape=(2, 2))
    assert "\n" not in str(error.value)
