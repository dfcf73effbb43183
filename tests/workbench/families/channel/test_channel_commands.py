"""`workbench design|compare|frontier|sweep channel` as a user meets them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

import workbench as wb
from tests.tools.test_check_certificate import verdicts
from workbench.cli import main


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


COUNT = "design channel --answers 0..8 --max-shift 1 --epsilon 1"


def test_a_count_is_designed_saved_drawn_and_checked_twice(capsys):
    code, out, _ = run(capsys, f"{COUNT} --delta 1e-5 --save c.json --plot c.svg --json")
    found = json.loads(out)
    assert code == 0
    assert (found["status"], found["certified"], found["private"]) == ("optimal", True, True)
    assert found["bound"] <= found["objective"] <= found["bound"] * (1 + 1e-9)
    assert (
        found["objective"]
        == wb.design("channel", answers="0..8", max_shift=1, epsilon=1, delta="1e-5").objective
    )
    assert found["exact"]["dp_delta"] <= 1e-5
    assert verdicts(Path("c.json")) == ("proven", "proven")
    assert Path("c.svg").stat().st_size > 1000
    proof = wb.check("c.json")
    assert float(proof.objective.value) == pytest.approx(found["objective"], rel=1e-15)
    code, out, _ = run(capsys, "sample c.json --answer 3 --count 4")
    assert code == 0
    code, out, _ = run(capsys, COUNT)
    assert "optimal channel with these outputs" in out


def test_files_of_pairs_losses_and_priors(capsys):
    Path("pairs.csv").write_text("from,to\na,b\nb,c\n")
    Path("loss.csv").write_text("0,1,4\n1,0,1\n4,1,0\n")
    Path("prior.csv").write_text("a,1\nb,2\nc,1\n")
    line = "design channel --answers a,b,c --neighbours pairs.csv --epsilon 1 --json"
    _, out, _ = run(capsys, f"{line} --loss loss.csv --prior prior.csv")
    table = [[0, 1, 4], [1, 0, 1], [4, 1, 0]]
    mine = wb.design(
        wb.FiniteQuery("a,b,c", neighbours=[("a", "b"), ("b", "c")], prior=[1, 2, 1]),
        loss=table,
        epsilon=1,
    )
    assert json.loads(out)["objective"] == mine.objective
    assert json.loads(out)["loss_name"] == "own matrix"


def test_headers_empty_lines_and_data_frames_are_read_as_the_same_numbers(capsys):
    Path("answers.csv").write_text("answer\n0\n1\n2\n\n\n")
    Path("loss.csv").write_text("a,b,c\n0,1,4\n1,0,1\n4,1,0\n\n")
    Path("weights.csv").write_text("weight\n1\n2\n1\n")
    line = "design channel --answers answers.csv --max-shift 1 --epsilon 1 --loss loss.csv --prior weights.csv --json"
    found = json.loads(run(capsys, line)[1])["objective"]
    answers, loss = (
        pd.DataFrame({"answer": [0, 1, 2]}),
        pd.DataFrame([[0, 1, 4], [1, 0, 1], [4, 1, 0]]),
    )
    for prior in (
        pd.DataFrame({"weight": [1, 2, 1]}),
        pd.DataFrame({"x": [2, 1, 0], "weight": [1, 2, 1]}),
        [1, 2, 1],
    ):
        for inputs in (answers, answers["answer"], "0..2"):
            query = wb.FiniteQuery(inputs, max_shift=1, prior=prior)
            assert wb.design(query, loss=loss, epsilon=1).objective == found
    assert wb.FiniteQuery(range(3), neighbours=pd.DataFrame([[0, 1], [1, 2]])).pairs == (
        (0, 1),
        (1, 2),
    )


@pytest.mark.parametrize("option", ["--answers", "--prior", "--loss", "--neighbours"])
def test_a_missing_file_is_missing(capsys, option: str):
    line = "design channel --answers 0..2 --epsilon 1 " + (
        "" if option == "--neighbours" else "--max-shift 1 "
    )
    code, _, err = run(capsys, f"{line} {option} no.csv")
    assert (code, "must be a file that can be read. Got no.csv: No such file" in err) == (2, True)


def test_draws_of_whole_outputs_have_no_point(capsys):
    wb.save(wb.design(wb.FiniteQuery("0..2", max_shift=1), epsilon=1, loss="absolute"), "c.json")
    drawn = run(capsys, "sample c.json --answer 1 --count 40")[1].split()
    assert {"1"} <= {*drawn} <= {"0", "1", "2"}
    assert all(
        isinstance(draw, int)
        for draw in json.loads(run(capsys, "sample c.json --answer 1 --json")[1])["draws"]
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("design channel --answers 0..4 --epsilon 1", "A neighbour relation must be given"),
        (COUNT.replace("--epsilon 1", ""), "epsilon must be given"),
        (f"{COUNT} --loss near", "loss must be one of squared"),
        (
            f"{COUNT} --loss loss.csv",
            "line 2, column 2 of loss.csv must be a finite number. Got x.",
        ),
        (f"{COUNT} --loss wide.csv", "loss must be a matrix of 9 rows and 9 columns"),
        (f"{COUNT} --minimise epsilon", "max_loss must be given"),
        (
            "design channel --answers 0..4 --neighbours unknown.csv --epsilon 1",
            "Got 7, which is no input",
        ),
        ("design channel --answers 0..4000 --max-shift 1 --epsilon 1", "inputs must be 1 to 4000"),
        (
            "design channel --answers 0..900 --max-shift 1 --epsilon 1 --delta 0.1 --method program",
            "would fit",
        ),
        (f"{COUNT} --notion renyi", "alpha must be given for the notion renyi"),
        (
            "design channel --answers 0..4 --max-shift 1 --epsilon 1 --minimise epsilon --max-loss 0.01",
            "needs epsilon >",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, line: str, sentence: str):
    Path("loss.csv").write_text("0,1\n1,x\n")
    Path("wide.csv").write_text("0,1\n1,0\n")
    Path("unknown.csv").write_text("0,1\n1,7\n")
    code, out, err = run(capsys, line)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_solvers_are_compared_on_one_channel(capsys):
    line = COUNT.replace("design", "compare")
    code, out, _ = run(capsys, f"{line} --delta 0.01 --solvers highs,ortools:glop --json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert [row["solver"] for row in rows] == ["highs", "ortools:glop"]
    assert rows[0]["objective"] == pytest.approx(rows[1]["objective"], rel=1e-6)


def test_the_frontier_has_the_optimum_below_the_usual(capsys):
    code, _, _ = run(
        capsys,
        "frontier channel --answers 0..6 --max-shift 1 --epsilon 0.5,1 --delta 0,0.01 --out f",
    )
    assert code == 0
    rows = list(csv.DictReader(Path("f/frontier.csv").read_text().splitlines()))
    by = {
        (r["mechanism"], float(r["epsilon"]), float(r["delta"])): float(r["objective"])
        for r in rows
        if r["objective"]
    }
    left_out = {(r["mechanism"], r["delta"]): r["failure"] for r in rows if not r["objective"]}
    assert left_out["clamped discrete Gaussian", "0"] == "it needs delta > 0"
    assert len(rows) == 4 * (1 + 7)
    for epsilon in (0.5, 1):
        assert (
            by["channel", epsilon, 0.01]
            < by["channel", epsilon, 0]
            < by["clamped geometric", epsilon, 0]
        )
        assert by["channel", epsilon, 0] < by["randomized response", epsilon, 0]
    assert {r["certified"] for r in rows if r["mechanism"] == "channel"} == {"True"}
    pure = wb.frontier(
        "channel", answers="0..3", max_shift=1, epsilon="1", notion="pure", loss="error-rate"
    )
    assert next(iter(pure))["status"] == "optimal"


def test_a_sweep_answers_every_point_once(capsys):
    Path("s.toml").write_text(
        '[[grid]]\nmodel = "channel"\nanswers = "0..4"\nmax_shift = [1, 2]\nepsilon = "0.5:1:2"\ndelta = [0, 0.01]\n'
    )
    code, out, err = run(capsys, "sweep s.toml --jobs 1 --ledger l.sqlite --json")
    assert code == 0, err
    with wb.Ledger("l.sqlite") as ledger:
        assert len(ledger) == 8
    code, out, _ = run(capsys, "sweep s.toml --jobs 1 --ledger l.sqlite --json")
    assert json.loads(out)["solved"] == 0
