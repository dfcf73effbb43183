"""What a row and its query say in words."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import workbench as wb
from workbench.families.quantizer.frontier import _draw_quantizer_frontier
from workbench.questions.range_query import RangeQuery


def test_a_baseline_that_is_not_private_says_what_it_needs():
    noise = {-1: "0.2", 0: "0.6", 1: "0.2"}
    (row,) = wb.recommend(
        answers="0..3", max_shift=1, epsilon=1, baseline={"mine": noise}, only="mine"
    )
    assert row["objective"] is None
    assert row["notes"].startswith(
        "its expected loss is 0.3, but"
    )  # with 0.2 an answer at an end moves, with 0.4 another one
    assert "exact DP delta is 0.256344 at epsilon = 1, requested 0" in row["notes"]  # 0.8 - 0.2 e
    (other,) = wb.recommend(
        answers="0..3", max_shift=1, notion="zcdp", rho=1, baseline={"mine": noise}, only="mine"
    )
    assert "NOT private at the requested budget: zcdp, rho = 1" in other["notes"]


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("0,1", "2 equal parts, 0:1"),
        ("1,2,1.5", "3 equal parts, 2:4:3"),
        ("1,1", "uniform answers"),
    ],
)
def test_a_prior_of_a_range_is_told_with_its_weights(prior: str, words: str):
    assert str(RangeQuery("0..8", prior=prior)).endswith(words)
    assert str(RangeQuery("0..8", prior=[*range(13)])).endswith("13 equal parts")


@pytest.mark.parametrize(
    ("bound", "words"), [(-2.6e-10, "unknown"), (0.0, "unknown"), (None, "unknown"), (0.5, "0.5")]
)
def test_a_bound_that_says_nothing_is_none(bound: float | None, words: str):
    design = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1)
    assert replace(design, bound=bound).bound_text == words
    assert replace(design, objective=0.0, bound=0.0).bound_text == "0"


def test_numbers_of_outputs_are_whole_on_their_axis():
    rows = [
        {
            "curve": "point",
            "mechanism": "exact",
            "status": "optimal",
            "epsilon": e,
            "levels": m,
            "objective": 1 / m,
        }
        for e in (1.0, 2.0)
        for m in (2, 3, 4)
    ]
    figure = _draw_quantizer_frontier(
        pd.DataFrame(rows).assign(bound=None), "quantizers", "absolute"
    )["error_levels"]()
    for axis in figure.axes:
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["2", "3", "4"]
