"""Queries of `recommend` with a prior that is counted from a column, or with several runs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.recommendation.queries import count_prior


def list_losses(table) -> list:
    """Return (class, loss) of every row."""
    return [(row["class"], row["objective"]) for row in table]


@pytest.fixture
def stars(tmp_path: Path) -> str:
    """Write six ratings with the column stars: 0.5, 1, 4 once, and 5 three times."""
    file = tmp_path / "ratings.csv"
    file.write_text("who,stars\na,5\nb,5\nc,4\nd,1\ne,5\nf,0.5\n")
    return str(file)


def test_a_column_gives_the_answers_and_their_frequencies(stars: str):
    counted = wb.recommend(prior=stars, column="stars", epsilon=1)
    listed = wb.recommend(answers=["0.5", 1, 4, 5], prior=[1, 1, 1, 3], neighbours="all", epsilon=1)
    assert list_losses(counted) == list_losses(listed)
    assert counted.chosen == "RR-on-Bins"
    assert "counted from 6 values of the column stars" in counted.sentences[-1]


def test_an_answer_that_is_not_in_the_column_has_the_prior_0(stars: str):
    query = {"answers": "0.5,1,2,3,4,5", "max_shift": 5, "epsilon": 1}
    counted = wb.recommend(**query, prior=stars, column="stars")
    listed = wb.recommend(**query, prior=[1, 1, 0, 0, 1, 3])
    assert list_losses(counted) == list_losses(listed)


def test_a_column_with_other_values_than_the_answers_is_refused(stars: str):
    with pytest.raises(wb.InvalidRequest, match="the column must be made of the 2 answers"):
        wb.recommend(answers="1,5", prior=stars, column="stars", max_shift=5, epsilon=1)


def test_a_column_without_a_file_is_refused():
    with pytest.raises(wb.InvalidRequest, match="prior must be a CSV file that has the column"):
        wb.recommend(answers="1,5", column="stars", max_shift=5, epsilon=1)


def test_each_of_four_pure_runs_gets_a_quarter_of_the_budget():
    query = {"answers": "0..3", "max_shift": 1}
    table = wb.recommend(**query, epsilon=1, runs=4)
    assert list_losses(table) == list_losses(wb.recommend(**query, epsilon=Fraction(1, 4)))


def test_decimals_of_a_column_are_matched_exactly_with_the_answers(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("x\n0.1\n0.2\n0.2\n0.3\n")
    query, _ = count_prior(
        {"answers": "0.1..0.3:0.1", "prior": str(tmp_path / "p.csv"), "column": "x"}
    )
    assert query["prior"] == [1, 2, 1]
