"""Queries in other words: a prior counted from a column, answers that share a budget."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.recommendation import queries as recommend_queries


def numbers(table) -> list:
    return [(row["class"], row["objective"]) for row in table]


@pytest.fixture
def stars(tmp_path: Path) -> str:
    file = tmp_path / "ratings.csv"
    file.write_text("who,stars\na,5\nb,5\nc,4\nd,1\ne,5\nf,0.5\n")
    return str(file)


def test_a_column_is_its_values_and_how_often_they_occur(stars: str):
    counted = wb.recommend(prior=stars, column="stars", epsilon=1)
    spelled = wb.recommend(
        answers=["0.5", 1, 4, 5], prior=[1, 1, 1, 3], neighbours="all", epsilon=1
    )
    assert numbers(counted) == numbers(spelled)
    assert counted.chosen == "RR-on-Bins"
    assert "counted from 6 values of the column stars" in counted.sentences[-1]
    wider = wb.recommend(
        answers="0.5,1,2,3,4,5", prior=stars, column="stars", max_shift=5, epsilon=1
    )
    given = wb.recommend(answers="0.5,1,2,3,4,5", prior=[1, 1, 0, 0, 1, 3], max_shift=5, epsilon=1)
    assert numbers(wider) == numbers(given)
    with pytest.raises(wb.InvalidRequest, match="the column must be made of the 2 answers"):
        wb.recommend(answers="1,5", prior=stars, column="stars", max_shift=5, epsilon=1)
    with pytest.raises(wb.InvalidRequest, match="prior must be a CSV file that has the column"):
        wb.recommend(answers="1,5", column="stars", max_shift=5, epsilon=1)


def test_several_answers_share_one_budget():
    query = {"answers": "0..3", "max_shift": 1}
    table = wb.recommend(**query, epsilon=1, runs=4)
    assert numbers(table) == numbers(wb.recommend(**query, epsilon=Fraction(1, 4)))


def test_a_column_of_decimals_is_counted_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("x\n0.1\n0.2\n0.2\n0.3\n")
    query, _ = recommend_queries.count_prior(
        {"answers": "0.1..0.3:0.1", "prior": str(tmp_path / "p.csv"), "column": "x"}
    )
    assert query["prior"] == [1, 2, 1]
