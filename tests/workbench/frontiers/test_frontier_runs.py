"""The trade-off of integer noise against the number of runs."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import workbench as wb


def test_loss_against_runs():
    found = wb.frontier(wb.IntegerNoise(), epsilon=6, delta="1e-5", runs="1,2", time_limit="1")
    assert [row["runs"] for row in found if row["curve"] == "point"] == [1, 2]
    rows = {(row["mechanism"], row["runs"]): row.get("objective") for row in found}
    for runs in (1, 2):
        best = rows["noise", runs]
        assert best <= rows["geometric", runs] * (1 + 1e-6)
        assert best < rows["discrete Gaussian", runs]
    assert {row["curve"] for row in found} == {"point", "baseline"}
    assert [row.get("bound") is None for row in found if row["curve"] == "point"] == [False, True]
    assert "loss_runs" in found.plots
    figure = found.plot(which="loss_runs")
    assert isinstance(figure, Figure)
    # No lower bound is proven for several runs, so the noise is not called optimal.
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["best noise found", "geometric", "discrete Gaussian"]


def test_noise_for_one_run_is_called_optimal():
    found = wb.frontier("noise", epsilon="1,2", baselines=False)
    (line,) = found.plot(which="error_epsilon").axes[0].get_lines()
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
    """Every ε of a curve times the scale; f with the scale as its weight beside a blind guess, 1 -
    α.
    """
    given = {"curve": "0.5:0.1,1:0.01", "tradeoff": "0:1,0.1:0.6,0.8:0", "loss": "squared"}
    found = wb.frontier(question, notion="curve,tradeoff", scale="0.5,1", **given)
    losses = {
        (row["notion"], row["scale"]): row["objective"] for row in found if row["curve"] == "point"
    }
    scaled = {"curve": "0.25:0.1,0.5:0.01", "tradeoff": "0:1,0.1:0.75,0.8:0.1,1:0"}
    for notion in ("curve", "tradeoff"):
        for scale, budget in ((0.5, scaled[notion]), (1.0, given[notion])):
            design = wb.design(question, notion=notion, loss="squared", **{notion: budget})
            assert losses[notion, scale] == pytest.approx(design.objective, rel=1e-6)
        assert losses[notion, 0.5] > losses[notion, 1.0]
        assert isinstance(found.plot(which=f"error_scale_{notion}"), Figure)
    with pytest.raises(
        wb.InvalidRequest, match=r"scale must be in \(0, 1\] for a trade-off function. Got 2"
    ):
        wb.frontier(question, notion="tradeoff", scale="1,2", **given)
