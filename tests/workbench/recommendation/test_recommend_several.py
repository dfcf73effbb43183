"""`workbench recommend`: budgets of several runs or answers, and classes whose time is up."""

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
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_how_the_budgets_of_several_answers_add_up():
    def said(**budget):
        return wb.recommend(answers="0..2", max_shift=1, time_limit=300, **budget).sentences[-1]

    assert said(epsilon=1, runs=3) == (
        "The budget is for 3 runs. It also covers any number of such answers if one person changes "
        "at most 3 of them. Each run has epsilon = 1/3, which adds up to epsilon = 1. The losses "
        "are those of one run."
    )
    both = said(epsilon=1, delta="0.01", runs=4, only="best channel")
    share = (
        "Each run has epsilon = 0.25, delta = 0.0025, which adds up to epsilon = 1, delta = 0.01."
    )
    assert share in both
    assert "Exceptions: best channel" in both
    assert both.endswith(
        "No bound is proven for designs for 4 runs, so no class is proven optimal."
    )
    assert "runs" not in said(epsilon=1)


def test_no_class_for_several_runs_is_said_to_be_optimal():
    table = wb.recommend(
        answers="0..2", max_shift=1, epsilon=1, delta="0.01", runs=4, time_limit=300
    )
    best = next(row for row in table if row["class"] == "best channel")
    assert best["bound"] is None
    assert "best found for 4 runs, not proven optimal" in best["notes"]
    assert table.sentences[0] == f"Use the best channel: expected loss {best['objective']:.9g}."


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"notion": "zcdp", "rho": "0.1"}, "runs must be left out when notion is zcdp"),
        ({"notion": "gdp", "mu": 1}, "runs must be left out when notion is gdp"),
        ({"minimise": "epsilon", "max_loss": "0.05"}, "epsilon of several runs"),
    ],
)
@pytest.mark.parametrize("query", [{"range": "0..1"}, {"answers": "0..1", "max_shift": 1}])
def test_budgets_that_several_runs_do_not_share_are_refused(budget, words: str, query):
    with pytest.raises(wb.InvalidRequest) as error:
        wb.recommend(runs=2, **query, **budget)
    assert words in str(error.value) or "runs must be 1 unless notion dp" in str(error.value)


def test_a_channel_of_a_range_for_two_pure_runs():
    two, one = (
        wb.design(RangeQuery("0..1"), epsilon=e, runs=runs) for e, runs in ((1, 2), ("0.5", 1))
    )
    assert two.objective == one.objective
    assert (two.request.claim.notion.name, two.request.aim.runs, two.certificate is not None) == (
        "dp",
        2,
        True,
    )


def test_every_class_that_was_stopped_has_a_command_that_goes_on(
    monkeypatch, capsys, tmp_path: Path
):
    monkeypatch.setattr(TimeShares, "class_seconds", -1.0)
    line, page = (
        "recommend --answers 0..4 --max-shift 1 --epsilon 1 --delta 0.01 --time-limit 90",
        tmp_path / "r.html",
    )
    code, told, _ = run(capsys, f"{line} --html {page}")
    found = json.loads(run(capsys, f"{line} --json")[1])
    stopped = [row for row in found["rows"] if "stopped" in row["notes"]]
    assert code == 0
    assert {"best channel", "modulo noise"} <= {row["class"] for row in stopped}
    for row in stopped:
        assert row["command"].endswith("--time-limit 900")
        assert (
            f"{row['class']}, to continue: {row['command']}\n" in told
        )  # on one line, to be copied
        assert row["class"] in page.read_text()
        assert html.escape(row["command"], quote=False) in html.unescape(page.read_text())


def test_answers_whose_losses_are_no_floats_are_refused():
    with pytest.raises(wb.InvalidRequest, match=r"loss must be at most 2\^1000 everywhere"):
        wb.design(wb.FiniteQuery([0, 10**300], neighbours="all"), loss="squared", epsilon=1)
