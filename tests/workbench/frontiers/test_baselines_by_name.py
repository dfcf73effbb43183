"""Published mechanisms of a frontier are chosen by name, whole or in part."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.cli.commands import main

CHANNEL: dict[str, Any] = {
    "answers": "0..3",
    "max_shift": 1,
    "loss": "absolute",
    "epsilon": "0.5,1",
}


def drawn(**given: Any) -> set[str]:
    return {
        row["mechanism"]
        for row in wb.frontier("channel", **CHANNEL, **given)
        if row["curve"] == "baseline"
    }


def test_names_choose_what_is_drawn() -> None:
    assert drawn(baseline=["clamped geometric"]) == {"clamped geometric"}
    assert drawn(baseline="staircase,Randomized response") == {
        "clamped staircase",
        "randomized response",
    }
    assert drawn(baseline="geometric") == {"clamped geometric", "clamped truncated geometric"}
    assert drawn(baselines=False) == set()
    assert len(drawn()) > 4


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(
        wb.InvalidRequest, match=r"baseline must be a file, or one of clamped .* Got 'cauchy'"
    ):
        drawn(baseline="cauchy")
    with pytest.raises(wb.InvalidRequest, match=r"mine\.csv"):
        drawn(baseline="mine.csv")


def test_ones_own_stands_beside_named_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    law = tmp_path / "own.csv"
    law.write_text("noise,probability\n-1,1/4\n0,1/2\n1,1/4\n")
    line = "frontier noise --epsilon 1.5 --delta 0.1 --baseline geometric --json"
    with pytest.raises(SystemExit) as end:
        main([*line.split(), "--baseline", str(law), "--out", str(tmp_path / "f")])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert '"mechanism": "own"' in out
    assert '"mechanism": "geometric"' in out
    assert '"mechanism": "discrete Gaussian"' not in out


def test_one_that_serves_no_budget_says_so() -> None:
    noise = wb.ModuloNoise(n=4, max_shift=1)
    *_, last = wb.frontier(noise, alpha=2, epsilon="0.5,1", notion="renyi", baseline="gaussian")
    assert (last["curve"], last["mechanism"], last.get("objective")) == (
        "baseline",
        "gaussian",
        None,
    )
    assert last["failure"].startswith("gaussian is for none of these budgets")
    every = wb.frontier(noise, alpha=2, epsilon="0.5,1", notion="renyi")  # named by nobody
    assert {row["curve"] for row in every} == {"point"}


def test_every_family_takes_names() -> None:
    rows = wb.frontier("quantizer", levels="2", epsilon="1", starts=1, baseline="pbm")
    assert {row["mechanism"] for row in rows if row["curve"] == "baseline"} == {"pbm"}
    rows = wb.frontier(
        wb.ModuloNoise(n=4, max_shift=1), epsilon="1", level="none", baseline="gaussian"
    )
    assert {row["mechanism"] for row in rows if row["curve"] == "baseline"} == {"gaussian"}
