"""Test the commands `workbench design|compare|frontier channel`, and sweeps of channels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import workbench as wb
from tests.tools.test_check_certificate import decide_by_both
from workbench.cli import main
from workbench.cli.commands import app


@pytest.fixture(autouse=True)
def _enter_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run every test in an empty folder."""
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Run a command line. Returns (exit code, standard output, standard error)."""
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


COUNT_COMMAND = "design channel --answers 0..8 --max-shift 1 --epsilon 1"


def design_count(capsys: pytest.CaptureFixture[str], options: str = "") -> dict[str, Any]:
    """Design the channel of COUNT_COMMAND at δ = 1e-5 with further options, and return its report."""
    code, out, _ = run(capsys, f"{COUNT_COMMAND} --delta 1e-5 --json {options}")
    assert code == 0
    return dict(json.loads(out))


def test_the_report_of_a_count_is_optimal_and_private(capsys):
    report = design_count(capsys)
    assert (report["status"], report["certified"], report["private"]) == ("optimal", True, True)
    assert report["bound"] <= report["objective"] <= report["bound"] * (1 + 1e-9)
    assert report["exact"]["dp_delta"] <= 1e-5


def test_the_command_computes_the_loss_of_the_function(capsys):
    design = wb.design("channel", answers="0..8", max_shift=1, epsilon=1, delta="1e-5")
    assert design_count(capsys)["objective"] == design.objective


def test_a_saved_count_is_proven_by_both_checkers(capsys):
    report = design_count(capsys, "--save c.json")
    assert decide_by_both(Path("c.json")) == ("proven", "proven")
    certificate = wb.check("c.json")
    assert float(certificate.objective.value) == pytest.approx(report["objective"], rel=1e-15)


def test_a_saved_count_is_sampled(capsys):
    design_count(capsys, "--save c.json")
    code, out, _ = run(capsys, "sample c.json --answer 3 --count 4")
    assert code == 0
    assert len(out.splitlines()) == 4


def test_a_count_is_plotted(capsys):
    design_count(capsys, "--plot c.svg")
    assert Path("c.svg").stat().st_size > 1000


def test_the_report_states_the_class_in_which_the_channel_is_optimal(capsys):
    assert "optimal channel with these outputs" in run(capsys, COUNT_COMMAND)[1]


def test_files_of_pairs_losses_and_priors_give_the_design_of_python(capsys):
    Path("pairs.csv").write_text("from,to\na,b\nb,c\n")
    Path("loss.csv").write_text("0,1,4\n1,0,1\n4,1,0\n")
    Path("prior.csv").write_text("a,1\nb,2\nc,1\n")
    line = "design channel --answers a,b,c --neighbours pairs.csv --epsilon 1 --json"
    _, out, _ = run(capsys, f"{line} --loss loss.csv --prior prior.csv")
    query = wb.FiniteQuery("a,b,c", neighbours=[("a", "b"), ("b", "c")], prior=[1, 2, 1])
    design = wb.design(query, loss=[[0, 1, 4], [1, 0, 1], [4, 1, 0]], epsilon=1)
    assert json.loads(out)["objective"] == design.objective
    assert json.loads(out)["loss_name"] == "own matrix"


def test_files_with_headers_and_empty_lines_equal_lists_and_data_frames(capsys):
    Path("answers.csv").write_text("answer\n0\n1\n2\n\n\n")
    Path("loss.csv").write_text("a,b,c\n0,1,4\n1,0,1\n4,1,0\n\n")
    Path("weights.csv").write_text("weight\n1\n2\n1\n")
    line = "design channel --answers answers.csv --loss loss.csv --prior weights.csv"
    objective = json.loads(run(capsys, f"{line} --max-shift 1 --epsilon 1 --json")[1])["objective"]
    answers = pd.DataFrame({"answer": [0, 1, 2]})
    loss = pd.DataFrame([[0, 1, 4], [1, 0, 1], [4, 1, 0]])
    # Weights with labels are assigned by their labels, here in descending order.
    labelled_weights = pd.DataFrame({"x": [2, 1, 0], "weight": [1, 2, 1]})
    for prior in (pd.DataFrame({"weight": [1, 2, 1]}), labelled_weights, [1, 2, 1]):
        for inputs in (answers, answers["answer"], "0..2"):
            query = wb.FiniteQuery(inputs, max_shift=1, prior=prior)
            assert wb.design(query, loss=loss, epsilon=1).objective == objective


def test_a_data_frame_of_pairs_states_the_neighbours():
    query = wb.FiniteQuery(range(3), neighbours=pd.DataFrame([[0, 1], [1, 2]]))
    assert query.pairs == ((0, 1), (1, 2))


@pytest.mark.parametrize("option", ["--answers", "--prior", "--loss", "--neighbours"])
def test_a_missing_file_is_missing(capsys, option: str):
    line = f"design channel --epsilon 1 {option} no.csv"
    if option != "--answers":
        line += " --answers 0..2"
    if option != "--neighbours":
        line += " --max-shift 1"
    code, _, err = run(capsys, line)
    assert code == 2
    assert err == f"InvalidRequest: {option[2:]} must be an existing file. Got no.csv.\n"


def test_integer_outputs_are_sampled_without_a_decimal_point(capsys):
    wb.save(wb.design(wb.FiniteQuery("0..2", max_shift=1), epsilon=1, loss="absolute"), "c.json")
    draws = run(capsys, "sample c.json --answer 1 --count 40")[1].split()
    assert {"1"} <= {*draws} <= {"0", "1", "2"}
    json_draws = json.loads(run(capsys, "sample c.json --answer 1 --json")[1])["draws"]
    assert all(isinstance(draw, int) for draw in json_draws)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("design channel --answers 0..4 --epsilon 1", "Give either max_shift or neighbours"),
        (COUNT_COMMAND.replace("--epsilon 1", ""), "epsilon must be given"),
        (f"{COUNT_COMMAND} --loss near", "loss must be one of squared"),
        (
            f"{COUNT_COMMAND} --loss loss.csv",
            "line 2, column 2 of loss.csv must be a finite number. Got x.",
        ),
        (f"{COUNT_COMMAND} --loss wide.csv", "loss must be a matrix of 9 rows and 9 columns"),
        (f"{COUNT_COMMAND} --minimise epsilon", "max_loss must be given"),
        (
            "design channel --answers 0..4 --neighbours unknown.csv --epsilon 1",
            "Got 7, which is no input",
        ),
        ("design channel --answers 0..4000 --max-shift 1 --epsilon 1", "answers must be 1 to 4000"),
        (
            "design channel --answers 0..900 --max-shift 1 --epsilon 1 --delta 0.1 --method program",
            "would fit",
        ),
        (f"{COUNT_COMMAND} --notion renyi", "alpha must be given for the notion renyi"),
        (
            "design channel --answers 0..4 --max-shift 1 --epsilon 1 --minimise epsilon --max-loss 0.01",
            "needs epsilon >",
        ),
    ],
)
def test_invalid_input_gives_one_line_and_exit_code_2(capsys, line: str, message: str):
    Path("loss.csv").write_text("0,1\n1,x\n")
    Path("wide.csv").write_text("0,1\n1,0\n")
    Path("unknown.csv").write_text("0,1\n1,7\n")
    code, out, err = run(capsys, line)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_compared_solvers_find_the_same_optimum(capsys):
    line = COUNT_COMMAND.replace("design", "compare")
    code, out, _ = run(capsys, f"{line} --delta 0.01 --solvers highs,ortools:glop --json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert [row["solver"] for row in rows] == ["highs", "ortools:glop"]
    assert rows[0]["objective"] == pytest.approx(rows[1]["objective"], rel=1e-6)


@pytest.fixture(scope="module")
def frontier_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Return the rows of a frontier at four budgets, with the best channel and seven mechanisms."""
    folder = tmp_path_factory.mktemp("frontier")
    line = "frontier channel --answers 0..6 --max-shift 1 --epsilon 0.5,1 --delta 0,0.01"
    assert CliRunner().invoke(app, [*line.split(), "--out", str(folder)]).exit_code == 0
    rows = list(csv.DictReader((folder / "frontier.csv").read_text().splitlines()))
    assert len(rows) == 4 * (1 + 7)
    return rows


def test_a_frontier_has_the_best_channel_below_published_mechanisms(
    frontier_rows: list[dict[str, str]],
):
    losses = {}  # By mechanism, ε and δ.
    for row in frontier_rows:
        if row["objective"]:
            key = (row["mechanism"], float(row["epsilon"]), float(row["delta"]))
            losses[key] = float(row["objective"])
    for epsilon in (0.5, 1):
        pure_loss = losses["channel", epsilon, 0]
        assert losses["channel", epsilon, 0.01] < pure_loss
        assert pure_loss < losses["clamped geometric", epsilon, 0]
        assert pure_loss < losses["randomized response", epsilon, 0]


def test_the_channels_of_a_frontier_are_certified(frontier_rows: list[dict[str, str]]):
    channels = [row for row in frontier_rows if row["mechanism"] == "channel"]
    assert {row["certified"] for row in channels} == {"True"}


def test_a_frontier_says_why_a_published_mechanism_has_no_loss(
    frontier_rows: list[dict[str, str]],
):
    pure_failures = {
        row["failure"]
        for row in frontier_rows
        if row["mechanism"] == "clamped discrete Gaussian" and float(row["delta"]) == 0
    }
    assert pure_failures == {"it needs delta > 0"}


def test_a_frontier_of_the_error_rate_under_pure_dp_is_optimal():
    frontier = wb.frontier(
        "channel", answers="0..3", max_shift=1, epsilon="1", notion="pure", loss="error-rate"
    )
    assert next(iter(frontier))["status"] == "optimal"


SWEEP = """
[[grid]]
model = "channel"
answers = "0..4"
max_shift = [1, 2]
epsilon = "0.5:1:2"
delta = [0, 0.01]
"""


def test_a_repeated_sweep_solves_no_point_again(capsys):
    Path("s.toml").write_text(SWEEP)
    code, _, err = run(capsys, "sweep s.toml --jobs 1 --ledger l.sqlite --json")
    assert code == 0, err
    with wb.Ledger("l.sqlite") as ledger:
        assert len(ledger) == 2 * 2 * 2
    _, out, _ = run(capsys, "sweep s.toml --jobs 1 --ledger l.sqlite --json")
    assert json.loads(out)["solved"] == 0
