"""Test frontiers over the number of runs that share a budget, and over the scale of a budget.

A budget of two runs is one for both of their outputs together. The notions "curve" and "tradeoff"
have a whole function as their budget, and `scale` weakens it.
"""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import workbench as wb
from workbench.io.result import Result


@pytest.fixture(scope="module")
def runs_result() -> Result:
    """Return a frontier of integer noise for one run and for two runs."""
    return wb.frontier(wb.IntegerNoise(), epsilon=6, delta="1e-5", runs="1,2", time_limit="1")


def test_noise_for_one_and_two_runs_is_not_worse_than_published_noise(runs_result: Result):
    assert {row["curve"] for row in runs_result} == {"point", "baseline"}
    losses = {(row["mechanism"], row["runs"]): row.get("objective") for row in runs_result}
    for runs in (1, 2):
        assert losses["noise", runs] <= losses["geometric", runs] * (1 + 1e-6)
        assert losses["noise", runs] < losses["discrete Gaussian", runs]


def test_only_noise_for_one_run_has_a_lower_bound(runs_result: Result):
    points = [row for row in runs_result if row["curve"] == "point"]
    assert [row["runs"] for row in points] == [1, 2]
    assert [row.get("bound") is None for row in points] == [False, True]


def test_noise_for_several_runs_is_not_called_optimal_in_the_plot(runs_result: Result):
    assert "loss_runs" in runs_result.plots
    figure = runs_result.plot(which="loss_runs")
    assert isinstance(figure, Figure)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["best noise found", "geometric", "discrete Gaussian"]


def test_noise_for_one_run_is_called_optimal():
    result = wb.frontier("noise", epsilon="1,2", baselines=False)
    (line,) = result.plot(which="error_epsilon").axes[0].get_lines()
    assert line.get_label() == "optimal noise"


@pytest.mark.parametrize("runs", ["1.5", "0", "1,5000"])
def test_runs_are_whole_numbers(runs: str):
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.frontier("noise", epsilon=1, delta="1e-5", runs=runs)


@pytest.mark.parametrize("question", [wb.IntegerNoise(), wb.FiniteQuery("0..2", max_shift=1)])
@pytest.mark.parametrize("notion", ["curve", "tradeoff"])
def test_a_notion_without_its_budget_is_refused_in_one_sentence(question: object, notion: str):
    with pytest.raises(
        wb.InvalidRequest, match=f"{notion} must be given for the notion {notion}. Got none"
    ):
        wb.frontier(question, notion=notion, epsilon=1)


@pytest.mark.parametrize(
    "question", [wb.IntegerNoise(), wb.ModuloNoise(n=3, max_shift=1)], ids=["noise", "modulo"]
)
def test_curves_and_trade_off_functions_are_drawn_at_several_scales(question: object):
    """The scale s multiplies every ε of a curve.

    A trade-off function f becomes s f(α) + (1 - s)(1 - α), where 1 - α is the one of a blind guess.
    """
    # The budgets of both notions, by scale.
    budgets = {
        "curve": {1.0: "0.5:0.1,1:0.01", 0.5: "0.25:0.1,0.5:0.01"},
        "tradeoff": {1.0: "0:1,0.1:0.6,0.8:0", 0.5: "0:1,0.1:0.75,0.8:0.1,1:0"},
    }
    result = wb.frontier(
        question,
        notion="curve,tradeoff",
        scale="0.5,1",
        curve=budgets["curve"][1.0],
        tradeoff=budgets["tradeoff"][1.0],
        loss="squared",
    )
    losses = {
        (row["notion"], row["scale"]): row["objective"] for row in result if row["curve"] == "point"
    }
    for notion, budget_by_scale in budgets.items():
        for scale, budget in budget_by_scale.items():
            design = wb.design(question, notion=notion, loss="squared", **{notion: budget})
            assert losses[notion, scale] == pytest.approx(design.objective, rel=1e-6)
        assert losses[notion, 0.5] > losses[notion, 1.0]
        assert isinstance(result.plot(which=f"error_scale_{notion}"), Figure)


def test_a_scale_above_1_is_refused_for_a_trade_off_function():
    with pytest.raises(
        wb.InvalidRequest, match=r"scale must be in \(0, 1\] for a trade-off function. Got 2"
    ):
        wb.frontier(
            wb.IntegerNoise(),
            notion="tradeoff",
            scale="1,2",
            tradeoff="0:1,0.1:0.6,0.8:0",
            loss="squared",
        )
