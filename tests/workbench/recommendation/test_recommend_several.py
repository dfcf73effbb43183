"""Recommendations for several runs, and commands that continue a stopped search."""

from __future__ import annotations

import html
import json
import shlex
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main
from workbench.pipeline.recommendation import TimeShares
from workbench.questions.range_query import RangeQuery


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Run a command line. Returns (exit code, standard output, standard error)."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def get_last_sentence(**budget) -> str:
    """Return the last sentence of a recommendation for the answers 0, 1, 2."""
    return wb.recommend(answers="0..2", max_shift=1, time_limit=300, **budget).sentences[-1]


def test_the_budget_of_each_pure_run_is_stated():
    sentence = get_last_sentence(epsilon=1, runs=3)
    assert "budget is for 3 runs" in sentence
    assert "Each run has epsilon = 1/3" in sentence
    assert "losses are those of one run" in sentence


def test_classes_that_are_designed_for_all_runs_together_are_named():
    sentence = get_last_sentence(epsilon=1, delta="0.01", runs=4, only="best channel")
    share = "epsilon = 0.25, delta = 0.0025, which adds up to epsilon = 1, delta = 0.01."
    assert f"Each run has {share}" in sentence
    assert "Exceptions: best channel" in sentence
    end = "No bound is proven for designs for 4 runs, so no class is proven optimal."
    assert sentence.endswith(end)


def test_a_recommendation_for_one_run_does_not_mention_runs():
    assert "runs" not in get_last_sentence(epsilon=1)


def test_no_class_for_several_runs_with_delta_is_called_optimal():
    table = wb.recommend(
        answers="0..2", max_shift=1, epsilon=1, delta="0.01", runs=4, time_limit=300
    )
    best = next(row for row in table if row["class"] == "best channel")
    assert best["bound"] is None
    assert "best found for 4 runs, not proven optimal" in best["notes"]
    assert table.sentences[0] == f"Use the best channel: expected loss {best['objective']:.9g}."


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"notion": "zcdp", "rho": "0.1"}, "runs must be left out when notion is zcdp"),
        ({"notion": "gdp", "mu": 1}, "runs must be left out when notion is gdp"),
        ({"minimise": "epsilon", "max_loss": "0.05"}, "epsilon of several runs"),
    ],
)
@pytest.mark.parametrize("query", [{"range": "0..1"}, {"answers": "0..1", "max_shift": 1}])
def test_budgets_that_cannot_be_divided_among_runs_are_refused(budget, message: str, query):
    with pytest.raises(wb.InvalidRequest) as error:
        wb.recommend(runs=2, **query, **budget)
    assert message in str(error.value) or "runs must be 1 unless notion dp" in str(error.value)


def test_the_channel_of_a_range_for_two_pure_runs_is_that_of_half_the_budget():
    two_runs = wb.design(RangeQuery("0..1"), epsilon=1, runs=2)
    one_run = wb.design(RangeQuery("0..1"), epsilon="0.5")
    assert two_runs.objective == one_run.objective
    assert two_runs.request.claim.notion.name == "dp"
    assert two_runs.request.aim.runs == 2
    assert two_runs.certificate is not None


def test_the_report_and_the_page_have_the_command_that_continues_a_stopped_class(
    monkeypatch, capsys, tmp_path: Path
):
    monkeypatch.setattr(TimeShares, "class_seconds", -1.0)  # Every class is out of time.
    line = "recommend --answers 0..4 --max-shift 1 --epsilon 1 --delta 0.01 --time-limit 90"
    page = tmp_path / "r.html"
    code, report, _ = run(capsys, f"{line} --html {page}")
    rows = json.loads(run(capsys, f"{line} --json")[1])["rows"]
    stopped_rows = [row for row in rows if "stopped" in row["notes"]]
    assert code == 0
    assert {"best channel", "modulo noise"} <= {row["class"] for row in stopped_rows}
    for row in stopped_rows:
        assert row["command"].endswith("--time-limit 900")
        # The command is on one line, so that it can be copied.
        assert f"{row['class']}, to continue: {row['command']}\n" in report
        assert row["class"] in page.read_text()
        assert html.escape(row["command"], quote=False) in html.unescape(page.read_text())


def test_a_loss_too_large_for_a_float_is_refused():
    with pytest.raises(wb.InvalidRequest, match=r"loss must be at most 2\^1000 everywhere"):
        wb.design(wb.FiniteQuery([0, 10**300], neighbours="all"), loss="squared", epsilon=1)
