"""Test which questions name a command `publish`, and that its arguments are those of the query."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.explorer.page import build_result_page
from workbench.pipeline.recommendation import Query
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim
from workbench.questions.range_query import RangeQuery
from workbench.recommendation.publish_command import describe_publish_command


def describe(question: Any, delta: str = "0", notion: str = "dp", **aim: Any) -> str:
    """Return the sentence of a query at ε = 1/2, or an empty text."""
    claim = Claim(notion, Fraction(1, 2), Fraction(delta))
    query = Query(question=question, claim=claim, aim=Aim(**{"loss": "squared", **aim}))
    return " ".join(describe_publish_command(query))


def test_answers_one_apart_are_a_count_of_one_row_for_each_person() -> None:
    text = describe(wb.FiniteQuery("0..20", max_shift=1))
    assert "no person has more than one row" in text
    assert "`workbench publish count DATA.csv --epsilon 0.5`" in text
    assert '`wb.publish.count("DATA.csv", epsilon="0.5")`' in text


def test_answers_three_apart_are_a_count_of_three_rows_for_each_person() -> None:
    text = describe(wb.FiniteQuery("0..20", max_shift=3), delta="0.01")
    assert "no person has more than 3 rows" in text
    assert "count DATA.csv --epsilon 0.5 --delta 0.01 --person COLUMN --rows-per-person 3`" in text


def test_a_sensitivity_of_a_part_of_the_range_is_a_mean() -> None:
    """77 / 2000 = .0385."""
    text = describe(RangeQuery("18..95", sensitivity="0.0385"))
    assert "mean DATA.csv --column COLUMN --range 18..95 --rows 2000 --epsilon 0.5`" in text


def test_the_absolute_loss_is_an_option() -> None:
    text = describe(wb.FiniteQuery("0..20", max_shift=1), loss="absolute")
    assert "count DATA.csv --epsilon 0.5 --loss absolute`" in text


@pytest.mark.parametrize(
    "question",
    [
        wb.FiniteQuery("1..20", max_shift=1),
        wb.FiniteQuery("0..4", neighbours="all"),
        wb.FiniteQuery("0,2,4", max_shift=2),
        wb.FiniteQuery("0..20", max_shift=1, directed=True),
        wb.FiniteQuery("0..2", max_shift=1, prior="1,2,1"),
        wb.FiniteQuery("0..20", "free", max_shift=1),
        wb.FiniteQuery("0..3", neighbours=[(0, 1), (1, 3)]),
        wb.FiniteQuery("north,south,coast", neighbours="all"),
        RangeQuery("0..1"),
        RangeQuery("0..1", sensitivity="0.4"),
        RangeQuery("0..1", sensitivity="0.5", prior="1,2"),
    ],
    ids=str,
)
def test_another_question_names_no_command(question: Any) -> None:
    assert describe(question) == ""


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "error-rate"},
        {"loss": [[0, 1], [1, 0]]},
        {"runs": 2},
        {"minimise": "epsilon"},
        {"notion": "pdp"},
    ],
)
def test_another_loss_or_budget_names_no_command(options: Any) -> None:
    assert describe(wb.FiniteQuery("0..20", max_shift=1), **options) == ""


def test_the_sentence_ends_a_recommendation() -> None:
    result = wb.recommend(answers="0..5", max_shift=1, epsilon=1, only="integer noise, clamped")
    assert "`workbench publish count DATA.csv --epsilon 1`" in result.sentences[-1]


def test_a_recommendation_has_the_guarantee_of_its_class() -> None:
    result = wb.recommend(answers="0..5", max_shift=1, epsilon=1, only="integer noise, clamped")
    assert result.guarantee is not None
    # 100 e / (e + 1) = 73.1.
    assert "right in at most 74 of 100 cases" in result.guarantee.sentences[1]
    page = build_result_page(result)
    assert " ".join(result.guarantee.sentences) in page
    assert all(json.dumps(text)[1:-1] in page for text in result.guarantee.limits)


def test_a_recommendation_without_a_class_has_no_guarantee() -> None:
    baseline = {"mine": {-1: "0.2", 0: "0.6", 1: "0.2"}}
    result = wb.recommend(answers="0..3", max_shift=1, epsilon=1, baseline=baseline, only="mine")
    assert result.guarantee is None
    assert "What the recommended class guarantees" not in build_result_page(result)


def test_a_recommendation_does_not_load_the_code_that_publishes() -> None:
    code = (
        "import sys, workbench as wb\n"
        "wb.recommend(answers='0..3', max_shift=1, epsilon=1)\n"
        "print([name for name in sys.modules if name.startswith('workbench.publishing.')])"
    )
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert process.stdout.decode().strip() == "['workbench.publishing.losses']"
