"""Test that finite queries are read in every format, and that invalid ones are errors."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.questions.finite_query import FiniteQuery


def test_numeric_answers_are_read_in_every_format(tmp_path: Path):
    column = tmp_path / "answers.csv"
    column.write_text("0\n0.5\n1\n")
    for answers in (
        "0..1:0.5",
        "0,0.5,1",
        [0, 0.5, 1],
        np.array([0, 0.5, 1]),
        [Decimal(0), "1/2", 1],
        column,
        str(column),
    ):
        assert FiniteQuery(answers, max_shift="0.5").inputs == (0, Fraction(1, 2), 1)


def test_a_range_of_answers_has_the_step_1():
    assert FiniteQuery("5..9", max_shift=1).inputs == (5, 6, 7, 8, 9)


def test_answers_may_be_names_or_tuples():
    assert FiniteQuery("red,green", neighbours="all").inputs == ("red", "green")
    assert FiniteQuery([(0, 1), (1, "x")], neighbours="all").inputs == ((0, 1), (1, "x"))


def test_the_outputs_may_be_listed():
    assert FiniteQuery("0..2", "0..9", max_shift=1).m == 10


def test_consecutive_neighbours_are_read_in_every_format(tmp_path: Path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("from,to\n0,1\n2,1\n3,2\n")
    for neighbours in (
        "consecutive",
        [(0, 1), (2, 1), (3, 2), (2, 3)],
        {"max_distance": 1},
        pairs,
        str(pairs),
    ):
        question = FiniteQuery("0..3", neighbours=neighbours)
        assert question.pairs == ((0, 1), (1, 2), (2, 3))
        assert question.distances is None
        assert question.is_line


def test_a_third_column_of_a_file_of_pairs_has_distances(tmp_path: Path):
    graph = tmp_path / "graph.csv"
    graph.write_text("0,1,1\n1,2,2\n2,3,3\n")
    assert FiniteQuery("0..3", neighbours=graph).distances == (1, 2, 3)


def test_a_matrix_of_distances_has_infinity_where_answers_are_no_neighbours():
    infinity = float("inf")
    matrix = np.array([[0, 1, infinity], [1, 0, 2], [infinity, 2, 0]])
    for distances in (matrix, matrix.tolist()):
        question = FiniteQuery("a,b,c", neighbours=distances)
        assert question.pairs == ((0, 1), (1, 2))
        assert question.distances == (1, 2)


def test_three_pairs_with_distances_are_not_read_as_a_matrix():
    question = FiniteQuery("0..2", neighbours=[(0, 1, 2), (1, 2, 1), (0, 2, 1)])
    # The pairs are sorted: (0, 1), (0, 2), (1, 2).
    assert question.distances == (2, 1, 1)


def test_max_shift_makes_neighbours_of_all_answers_within_it():
    assert FiniteQuery("0..3", max_shift=2).pairs == ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3))
    # None: all answers are neighbours.
    assert FiniteQuery("0..3", max_shift=3).pairs is None


def test_components_are_answers_that_pairs_connect():
    assert FiniteQuery("0..3", neighbours=[(0, 1), (2, 3)]).components == [[0, 1], [2, 3]]


def test_metric_pairs_are_the_positions_of_consecutive_numbers_and_their_distances():
    """The consecutive numbers are (3, 2) and (1, 2)."""
    question = FiniteQuery([3, 1, 2], neighbours="all")
    assert question.metric_pairs() == (((0, 2), (1, 2)), (1, 1))


def test_a_line_needs_neighbours_that_are_consecutive_inputs():
    """2 is a neighbour of 1 and of 3, but 3 and 1 are consecutive inputs."""
    assert not FiniteQuery([3, 1, 2], max_shift=1).is_line


def test_priors_are_read_and_normalised(tmp_path: Path):
    weights_file = tmp_path / "one.csv"
    answers_and_weights_file = tmp_path / "two.csv"
    weights_file.write_text("1\n0\n3\n")
    answers_and_weights_file.write_text("answer,weight\n2,3\n0,1\n")
    for prior in ([1, 0, 3], "1,0,3", weights_file, answers_and_weights_file):
        question = FiniteQuery("0..2", max_shift=1, prior=prior)
        assert question.prior == (Fraction(1, 4), 0, Fraction(3, 4))


def test_the_default_prior_is_uniform():
    assert FiniteQuery("0..2", max_shift=1).prior == (Fraction(1, 3),) * 3


def test_the_worst_prior_is_no_list_of_weights():
    assert FiniteQuery("0..2", max_shift=1, prior="worst").prior is None


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            lambda: FiniteQuery([1, 1.0], neighbours="all"),
            "inputs must be all different (1, 1.0 and '1' are one number). Got 1",
        ),
        (
            lambda: FiniteQuery([1, True], neighbours="all"),
            "every one of the inputs must be a finite number, a text",
        ),
        (
            lambda: FiniteQuery([1, float("nan")], neighbours="all"),
            "every one of the inputs must be a finite number",
        ),
        (
            lambda: FiniteQuery(["1", "nan"], neighbours="all"),
            "every one of the inputs must be a finite number",
        ),
        (
            lambda: FiniteQuery([1], neighbours="all"),
            "inputs must be at least two for a neighbour relation. Got 1.",
        ),
        (lambda: FiniteQuery("1..0", max_shift=1), "inputs must be LOW..HIGH"),
        (lambda: FiniteQuery("0..10000000", max_shift=1), "inputs must be 1 to 4000 of them"),
        (
            lambda: FiniteQuery("0..3"),
            "Give either max_shift or neighbours. Got none.",
        ),
        (lambda: FiniteQuery("0..3", max_shift=0), "max_shift must be a number > 0. Got 0."),
        (
            lambda: FiniteQuery("0..3", max_shift=0.5),
            "max_shift must be at least the smallest distance of two inputs",
        ),
        (
            lambda: FiniteQuery("a,b", max_shift=1),
            "max_shift must be left out for inputs that are no numbers",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours=[(0, 9)]),
            "neighbours must be pairs of inputs. Got 9, which is no input.",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours=[(1, 1)]),
            "neighbours must be pairs of different inputs. Got 1 twice.",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours=[]),
            "neighbours must be at least one pair of inputs. Got none.",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours=[(0, 1, 0)]),
            "the distance of 0 and 1 must be a finite number > 0. Got 0.",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours=[(0, 1, 1), (1, 0, 2)]),
            "neighbours must be pairs with one distance each",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours=[(0, 1, 1), (1, 2)]),
            "Distances must be given for every pair",
        ),
        (
            lambda: FiniteQuery("0..1", neighbours=np.array([[0, 1], [2, 0]])),
            "a matrix of distances must be symmetric",
        ),
        (
            lambda: FiniteQuery("0..1", neighbours=np.array([[1, 1], [1, 0]])),
            "a matrix of distances must be 0 on its diagonal",
        ),
        (
            lambda: FiniteQuery("0..1", neighbours=np.array([[0, np.nan], [np.nan, 0]])),
            "a matrix of distances must be symmetric",
        ),
        (
            lambda: FiniteQuery("0..3", neighbours="near"),
            "neighbours must be all, consecutive, or a CSV file of pairs",
        ),
        (
            lambda: FiniteQuery("0..1", max_shift=1, prior=[0, 0]),
            "prior must be weights >= 0, not all 0",
        ),
        (
            lambda: FiniteQuery("0..1", max_shift=1, prior=[1]),
            "prior must be uniform, worst, or 2 weights",
        ),
        (
            lambda: FiniteQuery("0..1", max_shift=1, prior="even"),
            "prior must be uniform, worst, weights or a CSV file",
        ),
    ],
)
def test_invalid_questions_are_refused_in_one_sentence(question, sentence: str):
    with pytest.raises(wb.InvalidRequest, match=re.escape(sentence)) as error:
        question()
    assert "\n" not in str(error.value)
