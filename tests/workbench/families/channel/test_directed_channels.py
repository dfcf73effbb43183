"""Test directed neighbours: one order of each pair is protected, and reports and files state it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.fuzz.queries import least_loss
from workbench.cli import main
from workbench.privacy.opendp import measurement

ROOT = Path(__file__).resolve().parents[4]
REQUEST = {
    "answers": "0..13",
    "max_shift": 3,
    "directed": True,
    "loss": "absolute",
    "epsilon": "0.7",
}


def _run_checker(tool: str, path: Path) -> str:
    """Return the standard output of a checker of the folder tools/ for a file."""
    command = [sys.executable, "-I", "-S", str(ROOT / "tools" / tool), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _solve_plain_program(design: wb.Design, delta: str, *, is_worst_case: bool) -> float:
    """Compute the smallest absolute loss at ε = 0.7 by a linear program written for tests."""
    question = design.question
    x = np.arange(question.k, dtype=float)
    # Entry (i, j) says that answer i is bounded by answer j.
    is_bounded = np.zeros((question.k, question.k), dtype=bool)
    is_bounded[tuple(np.array(question.ordered_pairs).T)] = True
    weights = None if is_worst_case else np.ones(question.k)
    budget = {"epsilon": "0.7", "delta": delta}
    return least_loss(np.abs(x - x[:, None]), weights, is_bounded, budget)


@pytest.mark.parametrize(
    ("delta", "prior", "method"),
    [
        ("0", "uniform", "program"),
        ("0", "worst", "program"),
        ("0.01", "uniform", "block"),
        ("0.01", "worst", "block"),
    ],
)
def test_the_loss_is_the_optimum_of_a_plain_program(delta: str, prior: str, method: str):
    design = wb.design("channel", **REQUEST, delta=delta, prior=prior, method=method)
    optimum = _solve_plain_program(design, delta, is_worst_case=prior == "worst")
    assert design.objective == pytest.approx(optimum, rel=1e-7)
    assert design.mechanism.is_one_sided
    larger_first = {(i, j) for i in range(14) for j in range(max(0, i - 3), i)}
    assert {*design.mechanism.pairs} == larger_first


def test_the_block_method_needs_both_orders_at_delta_0():
    with pytest.raises(wb.InvalidRequest, match="neighbours in both orders if delta = 0"):
        wb.design("channel", **REQUEST, method="block")


@pytest.mark.parametrize(
    ("relation", "pairs"),
    [
        ({"answers": [3, 1, 2], "max_shift": 1}, ((0, 2), (2, 1))),
        ({"answers": [3, 1, 2], "neighbours": "all"}, ((0, 1), (0, 2), (2, 1))),
        ({"answers": [3, 1, 2], "neighbours": "consecutive"}, ((0, 1), (2, 1))),
        ({"answers": ["a", "b", "c"], "neighbours": "all"}, ((1, 0), (2, 0), (2, 1))),
        ({"answers": [1, 2, 3], "neighbours": [(1, 2), (3, 2)]}, ((0, 1), (2, 1))),
    ],
)
def test_the_larger_number_or_the_first_of_a_listed_pair_is_bounded(relation: dict, pairs: tuple):
    answers = relation.pop("answers")
    assert wb.FiniteQuery(answers, directed=True, **relation).pairs == pairs


@pytest.mark.parametrize(
    "options",
    [{"notion": "metric"}, {"neighbours": [(0, 1, 2)], "max_shift": None}, {"directed": "yes"}],
)
def test_options_that_exclude_directed_neighbours_are_refused(options: dict):
    request = {"answers": "0..4", "max_shift": 1, "directed": True, "epsilon": 1} | options
    with pytest.raises(wb.InvalidRequest, match="directed must be"):
        wb.design("channel", **request)


def test_a_range_with_directed_neighbours_is_refused():
    with pytest.raises(wb.InvalidRequest, match="directed must be left out with a range"):
        wb.design("channel", range="0..1", directed=True, epsilon=1)


def test_a_directed_certificate_states_it_and_does_not_prove_the_other_order(tmp_path: Path):
    path = tmp_path / "directed.json"
    changed_path = tmp_path / "changed.json"
    design = wb.design("channel", answers="0..4", max_shift=1, directed=True, epsilon=1)
    design.save(path)
    assert any("one side of each pair" in text for text in design.certificate.sentences)
    assert "in one order only" in design.mechanism.describe()
    assert "4 pairs of neighbours, directed" in str(design)
    assert "one side of each pair only" in _run_checker("check_certificate.py", path)
    data = json.loads(path.read_text())
    pairs = data["mechanism"]["pairs"]
    data["mechanism"]["pairs"] = sorted([*pairs, *([j, i] for i, j in pairs)])
    changed_path.write_text(json.dumps(data))
    with pytest.raises(wb.CorruptFile):
        wb.load(changed_path)
    assert "proven" not in _run_checker("check_certificate.py", changed_path)


def test_a_directed_formula_states_it_and_does_not_prove_the_other_order(tmp_path: Path):
    path = tmp_path / "formula.json"
    query = wb.FiniteQuery("0..2", max_shift=1, directed=True)
    formula = wb.formula(query, loss="absolute")
    formula.save(path)
    assert "directed neighbours" in formula.what
    verdict = _run_checker("check_formula.py", path)
    assert "proven: best channel" in verdict
    assert "one side of each pair" in verdict
    data = json.loads(path.read_text())
    del data["question"]["options"]["directed"]
    path.write_text(json.dumps(data))
    assert "proven" not in _run_checker("check_formula.py", path)


DIRECTED_ERRORS = {"directed": True, "epsilon": 1, "loss": "error-rate"}


@pytest.fixture(scope="module")
def recommendation() -> Any:
    """Return the recommendation of mechanisms for directed neighbours."""
    return wb.recommend(answers="0..4", max_shift=2, **DIRECTED_ERRORS)


def test_the_rows_of_a_recommendation_state_which_orders_they_protect(recommendation: Any):
    notes = {row["class"]: row["notes"] for row in recommendation}
    assert "protects one order of each pair only" in notes["best channel"]
    assert "protects one order of each pair only" in notes["modulo noise"]
    assert "protects both sides of each pair" in notes["integer noise, clamped"]
    assert "directed" in notes["RR-on-Bins"]
    assert any("Directed neighbours" in sentence for sentence in recommendation.sentences)


def test_the_commands_of_a_directed_recommendation_have_the_option(recommendation: Any):
    commands = [row["command"] for row in recommendation if row["command"]]
    assert all("--directed" in command.split() for command in commands)


@pytest.mark.parametrize("name", ["best channel", "exponential"])
def test_designs_of_a_directed_recommendation_are_one_sided(recommendation: Any, name: str):
    assert recommendation.design(name).mechanism.is_one_sided


def test_modulo_noise_and_the_best_channel_are_the_same_for_reversed_pairs():
    """For differences, the larger answer is bounded. The listed pairs bound the smaller one."""
    rows = wb.recommend(answers="0..4", max_shift=2, **DIRECTED_ERRORS)
    reversed_pairs = [(i, j) for i in range(5) for j in (i + 1, i + 2) if j < 5]
    reversed_rows = wb.recommend(answers="0..4", neighbours=reversed_pairs, **DIRECTED_ERRORS)
    losses = {row["class"]: row["objective"] for row in rows}
    reversed_losses = {row["class"]: row["objective"] for row in reversed_rows}
    noise = wb.design(wb.ModuloNoise(n=4, max_shift=2, directed=True), epsilon=1)
    assert losses["modulo noise"] == pytest.approx(noise.objective)
    assert reversed_losses["modulo noise"] == pytest.approx(noise.objective)
    assert reversed_losses["best channel"] == pytest.approx(losses["best channel"])


def test_the_command_of_a_directed_row_computes_the_row(capsys: pytest.CaptureFixture[str]):
    table = wb.recommend(
        answers="0..3", max_shift=1, directed=True, epsilon=1, delta="0.01", loss="absolute"
    )
    commands = {row["command"]: row["objective"] for row in table if row["objective"] is not None}
    assert len(commands) > 5
    for command, objective in commands.items():
        with pytest.raises(SystemExit, match="0"):
            main([*shlex.split(command)[1:], "--json"])
        report = json.loads(capsys.readouterr().out)
        # `recommend --only` prints a table of one row, and `design` one design.
        computed_row = report["rows"][0] if "rows" in report else report
        assert computed_row["objective"] == pytest.approx(objective, rel=1e-12)


@pytest.fixture
def directed_design() -> wb.Design:
    """Return a channel for the answers 0, 1, 2 with directed neighbours."""
    return wb.design("channel", answers="0..2", max_shift=1, directed=True, epsilon=1)


def test_audits_of_a_directed_channel_state_that_neighbours_are_one_sided(
    directed_design: wb.Design,
):
    mechanism = directed_design.mechanism
    audits = [
        wb.audit(mechanism, 1),
        wb.compose(mechanism, 3, epsilon=1),
        wb.profile(mechanism),
        wb.risk(mechanism),
    ]
    for report in audits:
        assert "one-sided neighbours" in dict(report.facts())["note"]
    assert "directed" in repr(directed_design.question)


def test_the_composition_of_a_directed_channel_is_one_sided_in_json(
    directed_design: wb.Design, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    path = tmp_path / "directed.json"
    directed_design.save(path)
    with pytest.raises(SystemExit, match="0"):
        main(["compose", str(path), "--times", "3", "--delta", "0.1", "--json"])
    assert json.loads(capsys.readouterr().out)["one_sided"] is True


def test_a_directed_channel_has_no_opendp_measurement(directed_design: wb.Design):
    with pytest.raises(wb.InvalidRequest, match="neighbours in both orders"):
        measurement(directed_design.mechanism, "privacy_loss_distribution")
