"""The trade-off of integer noise against the number of runs."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import workbench as wb


def test_loss_against_runs():
    found = wb.frontier(wb.IntegerNoise(), epsilon=6, delta="1e-5", runs="1,2", time_limit="1")
    assert [row["runs"] for row in found if row["curve"] == "point"] == [1, 2]
    rows = {(row["mechanism"], row["runs"]): row["objective"] for row in found}
    for runs in (1, 2):
        best = rows["noise", runs]
        assert rows["proven bound", runs] <= best <= rows["geometric", runs] * (1 + 1e-6)
        assert best < rows["discrete Gaussian", runs]
    assert "loss_runs" in found.plots
    assert isinstance(found.plot(which="loss_runs"), Figure)


@pytest.mark.parametrize("runs", ["1.5", "0", "1,5000"])
def test_runs_are_whole_numbers(runs: str):
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.frontier("noise", epsilon=1, delta="1e-5", runs=runs)


@pytest.mark.parametrize("question", [wb.IntegerNoise(), wb.FiniteQuery("0..2", max_shift=1)])
@pytest.mark.parametrize("notion", ["curve", "tradeoff"])
def test_a_notion_without_an_axis_is_refused_in_one_sentence(question: object, notion: str):
    wanted = "notion must be one with an epsilon, rho or mu to draw against .*one by one.*Got '" + notion
    with pytest.raises(wb.InvalidRequest, match=wanted):
        wb.frontier(question, notion=notion, epsilon=1)
