"""`workbench recommend`: every class at one budget, best first, none missing in silence."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def by_class(result) -> dict:
    return {row["class"]: row for row in result}


def test_a_count_is_served_by_the_best_channel_and_wrapping_is_said():
    result = wb.recommend(answers="0..20", max_shift=1, epsilon=1, delta="1e-5")
    rows = by_class(result)
    assert result[0]["class"] == "best channel"
    served = [row["objective"] for row in result if row["objective"] is not None]
    assert served == sorted(served)
    assert rows["best channel"]["objective"] == wb.design("channel", answers="0..20", max_shift=1, epsilon=1,
                                                          delta="1e-5").objective  # fmt: skip
    noise = wb.design(wb.ModuloNoise(n=20, max_shift=1), epsilon=1, delta="1e-5", cost="squared", notion="dp")
    assert rows["modulo noise"]["objective"] == noise.objective
    assert rows["clamped geometric"]["objective"] < noise.objective
    assert all(row["certified"] for row in result if row["objective"] is not None)
    assert rows["RR-on-Bins"]["notes"].startswith("it is for numbers of which every two are neighbours")
    assert "Wrapping around costs" in result.sentences[1]
    assert list(result.to_frame().columns) == ["class", "objective", "bound", "certified", "command", "notes"]
    assert result.plot() is not None


def test_all_classes_pay_under_the_same_prior():
    prior, loss = [5, 1, 1, 1], [[abs(o - x) for o in range(4)] for x in range(4)]
    named = by_class(wb.recommend(answers="0..3", neighbours="all", epsilon=1, prior=prior, cost="absolute"))
    own = by_class(wb.recommend(answers="0..3", neighbours="all", epsilon=1, prior=prior, cost=loss))
    for name in ("best channel", "modulo noise", "randomized response"):
        assert own[name]["objective"] == pytest.approx(named[name]["objective"], rel=1e-9)
    assert named["RR-on-Bins"]["objective"] == pytest.approx(named["best channel"]["objective"], rel=1e-9)
    assert named["best channel"]["command"] is None  # a list has no text


def test_the_worst_input_has_no_modulo_noise():
    rows = by_class(wb.recommend(answers="0..4", max_shift=1, epsilon=1, prior="worst", cost="absolute"))
    assert rows["modulo noise"]["objective"] is None
    assert "worst input" in rows["modulo noise"]["notes"]
    assert rows["best channel"]["objective"] < rows["clamped geometric"]["objective"]


def test_every_command_makes_what_its_row_says(capsys):
    code, out, _ = run(capsys, "recommend --answers 0..6 --max-shift 1 --epsilon 0.7 --delta 0.01 --json")
    rows = json.loads(out)["rows"]
    assert code == 0
    commands = [row for row in rows if row["command"]]
    assert len(commands) >= 2
    for row in commands:
        _, made, _ = run(capsys, row["command"].removeprefix("workbench ") + " --json")
        assert json.loads(made)["objective"] == pytest.approx(row["objective"], rel=1e-12)


def test_files_plots_and_bad_input(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("loss.csv").write_text("0,1,4\n1,0,1\n4,1,0\n")
    code, out, _ = run(capsys, "recommend --answers 0..2 --max-shift 1 --epsilon 1 --cost loss.csv --plot r.svg")
    assert code == 0
    assert "--loss loss.csv" in " ".join(out.split())
    assert Path("r.svg").stat().st_size > 1000
    for line, sentence in (
        ("recommend --answers 0..2 --epsilon 1", "A neighbour relation must be given"),
        ("recommend --answers 0..2 --max-shift 1 --epsilon 0", "epsilon must be a finite number > 0"),
        ("recommend --answers 0..2 --max-shift 1 --epsilon 1 --cost near", "loss must be one of"),
    ):
        code, out, err = run(capsys, line)
        assert (code, out) == (2, "")
        assert sentence in err
    with pytest.raises(wb.InvalidRequest, match="request must be made of answers"):
        wb.recommend(answers="0..2", max_shift=1, epsilon=1, loss="squared")
