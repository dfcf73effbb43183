"""Test that published mechanisms of a frontier (baselines) are chosen by names or parts of names."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.cli.commands import main

# The options of the frontiers of channels.
CHANNEL: dict[str, Any] = {
    "answers": "0..3",
    "max_shift": 1,
    "loss": "absolute",
    "epsilon": "0.5,1",
}


def list_baselines(**options: Any) -> set[str]:
    """Return the names of the published mechanisms in a frontier of CHANNEL."""
    return {
        row["mechanism"]
        for row in wb.frontier("channel", **CHANNEL, **options)
        if row["curve"] == "baseline"
    }


def test_a_name_selects_its_mechanism() -> None:
    assert list_baselines(baseline=["clamped geometric"]) == {"clamped geometric"}


def test_a_part_of_a_name_selects_all_mechanisms_that_contain_it() -> None:
    assert list_baselines(baseline="geometric") == {
        "clamped geometric",
        "clamped truncated geometric",
    }


def test_names_are_separated_by_commas_and_may_be_capitalised() -> None:
    assert list_baselines(baseline="staircase,Randomized response") == {
        "clamped staircase",
        "randomized response",
    }


def test_a_synonym_selects_the_same_mechanisms() -> None:
    assert list_baselines(baseline="Discrete Laplace") == list_baselines(baseline="geometric")


def test_a_frontier_has_all_or_no_published_mechanisms() -> None:
    assert len(list_baselines()) > 4
    assert list_baselines(baselines=False) == set()


def test_an_unknown_name_is_refused_with_the_known_names() -> None:
    with pytest.raises(
        wb.InvalidRequest, match=r"baseline must be a file, or one of clamped .* Got 'cauchy'"
    ):
        list_baselines(baseline="cauchy")


def test_a_missing_file_of_a_baseline_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match=r"mine\.csv"):
        list_baselines(baseline="mine.csv")


def test_a_user_defined_baseline_is_added_to_named_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    law = tmp_path / "own.csv"
    law.write_text("noise,probability\n-1,1/4\n0,1/2\n1,1/4\n")
    command = "frontier noise --epsilon 1.5 --delta 0.1 --baseline geometric --json"
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--baseline", str(law), "--out", str(tmp_path / "f")])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert '"mechanism": "own"' in out
    assert '"mechanism": "geometric"' in out
    assert '"mechanism": "discrete Gaussian"' not in out


def test_a_named_mechanism_that_fits_no_budget_is_a_failed_row() -> None:
    noise = wb.ModuloNoise(n=4, max_shift=1)
    result = wb.frontier(noise, alpha=2, epsilon="0.5,1", notion="renyi", baseline="gaussian")
    *_, last_row = result
    assert (last_row["curve"], last_row["mechanism"]) == ("baseline", "gaussian")
    assert last_row.get("objective") is None
    assert last_row["failure"].startswith("gaussian is for none of these budgets")


def test_a_mechanism_that_fits_no_budget_and_is_not_named_has_no_row() -> None:
    noise = wb.ModuloNoise(n=4, max_shift=1)
    rows = wb.frontier(noise, alpha=2, epsilon="0.5,1", notion="renyi")
    assert {row["curve"] for row in rows} == {"point"}


def test_every_family_takes_names() -> None:
    rows = wb.frontier("quantizer", levels="2", epsilon="1", starts=1, baseline="pbm")
    assert {row["mechanism"] for row in rows if row["curve"] == "baseline"} == {"pbm"}
    rows = wb.frontier(
        wb.ModuloNoise(n=4, max_shift=1), epsilon="1", level="none", baseline="gaussian"
    )
    assert {row["mechanism"] for row in rows if row["curve"] == "baseline"} == {"gaussian"}
