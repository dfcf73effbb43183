"""Texts of recommendations: notes on baselines, priors of ranges, bounds, and ticks of plots."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import workbench as wb
from workbench.families.quantizer.frontier import _draw_quantizer_frontier
from workbench.questions.range_query import RangeQuery


def get_baseline_notes(**budget) -> str:
    """Return the notes of a user-defined baseline on the answers 0..3, which is not private."""
    noise = {-1: "0.2", 0: "0.6", 1: "0.2"}
    (row,) = wb.recommend(
        answers="0..3", max_shift=1, baseline={"mine": noise}, only="mine", **budget
    )
    assert row["objective"] is None
    return row["notes"]


def test_the_row_of_a_baseline_that_is_not_private_states_its_loss_and_its_delta():
    notes = get_baseline_notes(epsilon=1)
    # An answer at an end moves with probability 0.2, another one with 0.4.
    assert notes.startswith("its expected loss is 0.3, but")
    # Its δ is 0.8 - 0.2 e.
    assert "exact DP delta is 0.256344 at epsilon = 1, requested 0" in notes


def test_the_row_of_a_baseline_that_is_not_private_names_a_budget_of_another_notion():
    notes = get_baseline_notes(notion="zcdp", rho=1)
    assert "NOT private at the requested budget: zcdp, rho = 1" in notes


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        ("0,1", "2 equal parts, 0:1"),
        ("1,2,1.5", "3 equal parts, 2:4:3"),
        ("1,1", "uniform answers"),
    ],
)
def test_the_text_of_a_range_has_the_weights_of_its_prior(prior: str, text: str):
    assert str(RangeQuery("0..8", prior=prior)).endswith(text)


def test_the_text_of_a_range_omits_the_weights_of_many_parts():
    assert str(RangeQuery("0..8", prior=[*range(13)])).endswith("13 equal parts")


@pytest.mark.parametrize(
    ("bound", "text"), [(-2.6e-10, "unknown"), (0.0, "unknown"), (None, "unknown"), (0.5, "0.5")]
)
def test_a_bound_of_at_most_0_is_unknown(bound: float | None, text: str):
    design = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1)
    assert replace(design, bound=bound).bound_text == text


def test_the_bound_0_of_the_loss_0_is_known():
    design = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1)
    assert replace(design, objective=0.0, bound=0.0).bound_text == "0"


def test_the_axis_of_the_number_of_outputs_has_integer_ticks():
    rows = []
    for epsilon in (1.0, 2.0):
        for levels in (2, 3, 4):
            row = {"curve": "point", "mechanism": "exact", "status": "optimal", "bound": None}
            rows.append(row | {"epsilon": epsilon, "levels": levels, "objective": 1 / levels})
    plots = _draw_quantizer_frontier(pd.DataFrame(rows), "quantizers", "absolute")
    for axis in plots["error_levels"]().axes:
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["2", "3", "4"]
