"""Directed neighbours: of every pair one side alone, which the program, the audit, files and both checkers say."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.fuzz.queries import least_loss
from workbench.cli import main
from workbench.privacy.opendp import measurement

ROOT = Path(__file__).resolve().parents[4]
GIVEN = {"answers": "0..13", "max_shift": 3, "directed": True, "loss": "absolute", "epsilon": "0.7"}


def _checked(tool: str, path: Path) -> str:
    command = [sys.executable, "-I", "-S", str(ROOT / "tools" / tool), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _plain(design: wb.Design, delta: str, *, worst: bool) -> float:
    q, x = design.question, np.arange(design.question.k, dtype=float)
    near = np.zeros((q.k, q.k), dtype=bool)
    near[tuple(np.array(q.ordered_pairs).T)] = True
    weights = None if worst else np.ones(q.k)
    return least_loss(np.abs(x - x[:, None]), weights, near, {"epsilon": "0.7", "delta": delta})


@pytest.mark.parametrize(
    ("delta", "prior", "method"),
    [
        ("0", "uniform", "program"),
        ("0", "worst", "program"),
        ("0.01", "uniform", "block"),
        ("0.01", "worst", "block"),
    ],
)
def test_the_least_loss_is_that_of_a_plain_program(delta: str, prior: str, method: str):
    design = wb.design("channel", **GIVEN, delta=delta, prior=prior, method=method)
    assert design.objective == pytest.approx(
        _plain(design, delta, worst=prior == "worst"), rel=1e-7
    )
    assert design.mechanism.is_one_sided
    assert set(design.mechanism.pairs) == {
        (i, j) for i in range(14) for j in range(max(0, i - 3), i)
    }


def test_ratios_one_way_do_not_keep_masses_positive_output_by_output():
    with pytest.raises(wb.InvalidRequest, match="neighbours in both orders if delta = 0"):
        wb.design("channel", **GIVEN, method="block")


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
def test_the_larger_number_or_what_is_listed_first_is_bounded(relation: dict, pairs: tuple):
    answers = relation.pop("answers")
    assert wb.FiniteQuery(answers, directed=True, **relation).pairs == pairs


@pytest.mark.parametrize(
    "other",
    [{"notion": "metric"}, {"neighbours": [(0, 1, 2)], "max_shift": None}, {"directed": "yes"}],
)
def test_what_directed_does_not_go_with(other: dict):
    given = {"answers": "0..4", "max_shift": 1, "directed": True, "epsilon": 1} | other
    with pytest.raises(wb.InvalidRequest, match="directed must be"):
        wb.design("channel", **given)
    with pytest.raises(wb.InvalidRequest, match="directed must be left out with a range"):
        wb.design("channel", range="0..1", directed=True, epsilon=1)


def test_a_file_of_one_side_says_so(tmp_path: Path):
    path, turned = tmp_path / "one.json", tmp_path / "turned.json"
    design = wb.design("channel", answers="0..4", max_shift=1, directed=True, epsilon=1)
    design.save(path)
    assert (
        "Only one side of each pair of neighbours is protected (directed differences)."
        in design.certificate.sentences
    )
    assert "in one order only" in design.mechanism.describe()
    assert "4 pairs of neighbours, directed" in str(design)
    assert "one side of each pair only" in _checked("check_certificate.py", path)
    data = json.loads(path.read_text())
    pairs = data["mechanism"]["pairs"]
    data["mechanism"]["pairs"] = sorted([*pairs, *([j, i] for i, j in pairs)])
    turned.write_text(json.dumps(data))
    with pytest.raises(wb.CorruptFile):
        wb.load(turned)
    assert "proven" not in _checked("check_certificate.py", turned)


def test_a_formula_of_one_side_says_so(tmp_path: Path):
    path = tmp_path / "formula.json"
    wb.formula(wb.FiniteQuery("0..2", max_shift=1, directed=True), loss="absolute").save(path)
    assert (
        "directed neighbours" in wb.formula(wb.FiniteQuery("0..2", max_shift=1, directed=True)).what
    )
    assert (
        "proven: best channel, absolute loss, directed neighbours (one side of each pair"
        in _checked("check_formula.py", path)
    )
    data = json.loads(path.read_text())
    del data["question"]["options"]["directed"]
    path.write_text(json.dumps(data))
    assert "proven" not in _checked("check_formula.py", path)


def test_recommended_classes_say_which_sides_they_protect():
    given = {
        "answers": "0..4",
        "max_shift": 2,
        "directed": True,
        "epsilon": 1,
        "loss": "error-rate",
    }
    table = wb.recommend(**given)
    rows = {row["class"]: row for row in table}
    one, both = "protects one order of each pair only", "protects both sides of each pair"
    assert one in rows["best channel"]["notes"]
    assert one in rows["modulo noise"]["notes"]
    assert both in rows["integer noise, clamped"]["notes"]
    assert "directed" in rows["RR-on-Bins"]["notes"]
    assert any("Directed neighbours" in line for line in table.sentences)
    assert all("--directed" in row["command"].split() for row in table if row["command"])
    assert all(
        table.design(name).mechanism.is_one_sided for name in ("best channel", "exponential")
    )
    modulo = wb.design(wb.ModuloNoise(n=4, max_shift=2, directed=True), epsilon=1)
    assert rows["modulo noise"]["objective"] == pytest.approx(modulo.objective)
    risen = {
        **given,
        "max_shift": None,
        "neighbours": [(i, j) for i in range(5) for j in (i + 1, i + 2) if j < 5],
    }
    turned = {row["class"]: row["objective"] for row in wb.recommend(**risen)}
    assert turned["modulo noise"] == pytest.approx(modulo.objective)
    assert turned["best channel"] == pytest.approx(rows["best channel"]["objective"])


def test_a_command_of_one_side_makes_its_row(capsys: pytest.CaptureFixture[str]):
    table = wb.recommend(
        answers="0..3", max_shift=1, directed=True, epsilon=1, delta="0.01", loss="absolute"
    )
    commands = {row["command"]: row["objective"] for row in table if row["objective"] is not None}
    assert len(commands) > 5
    for command, objective in commands.items():
        with pytest.raises(SystemExit, match="0"):
            main([*shlex.split(command)[1:], "--json"])
        made = json.loads(capsys.readouterr().out)
        again = made["rows"][0] if "rows" in made else made
        assert again["objective"] == pytest.approx(objective, rel=1e-12)


def test_what_is_said_of_one_side_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    design = wb.design("channel", answers="0..2", max_shift=1, directed=True, epsilon=1)
    mechanism = design.mechanism
    said = [
        wb.audit(mechanism, 1),
        wb.compose(mechanism, 3, epsilon=1),
        wb.profile(mechanism),
        wb.risk(mechanism),
    ]
    for each in said:
        assert "one-sided neighbours" in dict(each.facts())["note"]
    design.save(tmp_path / "one.json")
    with pytest.raises(SystemExit, match="0"):
        main(["compose", str(tmp_path / "one.json"), "--times", "3", "--delta", "0.1", "--json"])
    assert json.loads(capsys.readouterr().out)["one_sided"] is True
    with pytest.raises(wb.InvalidRequest, match="neighbours in both orders"):
        measurement(mechanism, "privacy_loss_distribution")
    assert "directed" in repr(design.question)
