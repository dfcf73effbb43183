"""Test `workbench recommend`: it lists the classes of mechanisms at one budget by their losses.

A class is a set of mechanisms, such as "modulo noise". A row of the table has the loss of its best
mechanism ("objective"), a lower bound on the loss of all its mechanisms ("bound"), and whether the
mechanism has a certificate. The sentences below the table say which class to use, and why.
"""

from __future__ import annotations

import json
import math
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.families.channel.recommendation import candidates
from workbench.pipeline.recommendation import Candidate, Query, Value
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim
from workbench.questions.range_query import RangeQuery
from workbench.recommendation.recommend import COLUMNS, _improve_stopped_rows
from workbench.recommendation.wording import describe_range_query


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Run a command line. Returns (exit code, standard output, standard error)."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def index_by_class(result) -> dict:
    """Return class -> row of a table."""
    return {row["class"]: row for row in result}


@pytest.fixture(scope="module")
def count_table() -> wb.Result:
    """Return the recommendation for a count in 0..20 with δ > 0."""
    return wb.recommend(answers="0..20", max_shift=1, epsilon=1, delta="1e-5")


def test_the_rows_of_a_count_are_sorted_by_loss_and_certified(count_table: wb.Result):
    losses = [row["objective"] for row in count_table if row["objective"] is not None]
    assert count_table[0]["class"] == "best channel"
    assert losses == sorted(losses)
    assert all(row["certified"] for row in count_table if row["objective"] is not None)
    assert tuple(count_table.to_frame().columns) == COLUMNS


def test_the_losses_of_a_count_are_those_of_its_designs(count_table: wb.Result):
    rows = index_by_class(count_table)
    budget = {"epsilon": 1, "delta": "1e-5"}
    channel = wb.design("channel", answers="0..20", max_shift=1, outputs="free", **budget)
    noise = wb.design(wb.ModuloNoise(n=20, max_shift=1), loss="squared", notion="dp", **budget)
    assert rows["best channel"]["objective"] == channel.objective
    assert rows["modulo noise"]["objective"] == noise.objective
    assert rows["clamped geometric"]["objective"] < noise.objective


def test_notes_and_sentences_of_a_count_explain_its_classes(count_table: wb.Result):
    notes = {row["class"]: row["notes"] for row in count_table}
    needed = "it needs numeric answers, all of them neighbours, and a prior"
    assert notes["RR-on-Bins"].startswith(needed)
    assert "wraps around" in notes["modulo noise"]
    sentences = " ".join(count_table.sentences)
    contained = "so its optimum is at least as good: integer noise, clamped; clamped truncated"
    assert contained in sentences
    assert "an output that a neighbour cannot produce" in sentences


def test_the_notes_of_published_mechanisms_explain_the_letter_of_their_parameter(
    count_table: wb.Result,
):
    """A note ends with, for example, "; noise k has probability ... to α^|k|: α = 0.367879"."""
    for row in count_table:
        if row["notes"].startswith("published"):
            meaning, parameter = row["notes"].rsplit(": ", 1)
            letter = parameter.split(" = ")[0]
            assert letter in meaning.split("; ", 1)[1], row["notes"]


def test_the_plot_omits_classes_of_much_larger_loss(count_table: wb.Result):
    """The best class is on top. Classes with over 20 times its loss are named below the axis."""
    axis = count_table.plot().axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names[-1] == "best channel"
    assert "randomized response" not in names
    assert "randomized response" in axis.get_xlabel()


def test_of_two_classes_with_equal_loss_the_simpler_one_is_recommended():
    result = wb.recommend(
        answers="red,green,blue", neighbours="all", epsilon=1, delta="0.1", loss="error-rate"
    )
    assert result.sentences[0].startswith("Use the randomized response: expected loss 0.381494804")
    assert "No compared class has a smaller loss" in result.sentences[0]
    assert result.sentences[1] == "Classes with the same loss that are less simple: best channel."


def test_the_channel_of_a_range_is_recommended_with_its_bound_and_not_called_best():
    result = wb.recommend(
        range="0..200000", epsilon="0.5", delta="0.05", loss="absolute", time_limit=300
    )
    sentences = " ".join(result.sentences)
    assert "best" not in sentences
    assert result[0]["class"] == "channel on a grid"
    # Randomized response on one bit, with the medians of both halves as outputs, has this loss.
    loss_of_one_bit = 46885
    loss = result[0]["objective"]
    assert 0.99 * loss <= result[0]["bound"] <= loss < loss_of_one_bit
    assert "(within 1 %)" in result[0]["notes"]
    assert "The proven lower bound for all channels of the range is" in sentences


def make_range_row(name: str, objective: float, certified: bool, notes: str = "biased") -> dict:
    """Make a row of a table for real answers."""
    row = {"class": name, "objective": objective, "bound": None, "bias": None}
    return row | {"certified": certified, "notes": notes}


def test_a_smaller_loss_without_a_certificate_is_named():
    question = RangeQuery("0..100", sensitivity=1)
    claim = Claim("dp", Fraction(1))
    query = Query(question=question, claim=claim, aim=Aim(loss="absolute"))
    staircase = make_range_row(
        "staircase (pure)", objective=0.9, certified=False, notes="unbiased; published"
    )
    channel = make_range_row("channel on a grid", objective=5.5, certified=True)
    sentences = [
        *describe_range_query(
            query, [staircase, channel | {"bound": 0.0}], candidates=[], mechanisms={}
        )
    ]
    assert sentences[0].startswith("Use the channel on a grid")
    assert "expected loss 5.5" in sentences[0]
    assert "Other channels may have a smaller loss" in sentences[0]
    assert sentences[1] == "Not certified, with a smaller loss than 5.5: staircase (pure) (0.9)."
    rows = [channel, staircase | {"objective": 6.0}]
    assert len([*describe_range_query(query, rows, candidates=[], mechanisms={})]) == 1


def test_a_loss_matrix_gives_the_losses_of_the_named_loss():
    query = {"answers": "0..3", "neighbours": "all", "epsilon": 1, "prior": [5, 1, 1, 1]}
    matrix = [[abs(o - x) for o in range(4)] for x in range(4)]
    by_name = index_by_class(wb.recommend(**query, loss="absolute"))
    by_matrix = index_by_class(wb.recommend(**query, loss=matrix))
    for name in ("best channel", "modulo noise", "randomized response"):
        loss = by_name[name]["objective"]
        assert by_matrix[name]["objective"] == pytest.approx(loss, rel=1e-9)
    best_loss = by_name["best channel"]["objective"]
    assert by_name["RR-on-Bins"]["objective"] == pytest.approx(best_loss, rel=1e-9)
    assert "--prior 5,1,1,1 " in by_name["best channel"]["command"]
    # A matrix cannot be written on a command line.
    assert by_matrix["best channel"]["command"] is None


def test_modulo_noise_does_not_apply_to_the_worst_input():
    rows = index_by_class(
        wb.recommend(answers="0..4", max_shift=1, epsilon=1, prior="worst", loss="absolute")
    )
    assert rows["modulo noise"]["objective"] is None
    assert "worst input" in rows["modulo noise"]["notes"]
    assert rows["best channel"]["objective"] < rows["clamped geometric"]["objective"]


@pytest.fixture(scope="module")
def range_rows() -> list[dict]:
    """Return the rows of a recommendation for real answers in 0..8 with the absolute loss."""
    return [*wb.recommend(range="0..8", epsilon=1, loss="absolute", time_limit=300)]


def test_for_real_answers_designed_noise_is_at_least_as_good_as_published_noise(
    range_rows: list[dict],
):
    rows = index_by_class(range_rows)
    noise = rows["real noise"]
    assert noise["bound"] <= noise["objective"]
    assert noise["objective"] <= rows["staircase (pure)"]["objective"] * 1.001
    # Laplace noise has the absolute loss sensitivity/ε. The sensitivity is the width of 0..8.
    assert rows["Laplace"]["objective"] == pytest.approx(8.0)
    assert rows["Laplace"]["certified"] is True
    assert noise["objective"] < rows["Laplace"]["objective"]


def test_for_real_answers_clamping_reduces_the_loss_of_noise(range_rows: list[dict]):
    rows = index_by_class(range_rows)
    assert rows["real noise, clamped"]["objective"] < rows["real noise"]["objective"]
    assert rows["real noise, clamped"]["certified"] is True


def test_for_real_answers_a_channel_is_no_worse_than_a_constant_output(range_rows: list[dict]):
    loss_of_publishing_4 = 2
    loss = index_by_class(range_rows)["channel on a grid"]["objective"]
    assert loss <= loss_of_publishing_4 + 1e-12


def test_the_command_of_every_row_of_a_range_computes_its_loss(capsys, range_rows: list[dict]):
    for row in range_rows:
        assert bool(row["command"]) == (row["objective"] is not None)
        if row["command"]:
            _, out, _ = run(capsys, row["command"].removeprefix("workbench ") + " --json")
            report = json.loads(out)
            # `recommend --only` prints a table of one row, and `design` one design.
            computed_row = report["rows"][0] if "rows" in report else report
            assert computed_row["objective"] == pytest.approx(row["objective"], rel=1e-12)


def test_the_command_for_a_range_recommends_for_averages_and_writes_a_page(capsys, tmp_path: Path):
    page = tmp_path / "r.html"
    line = f"recommend --range 0..8 --epsilon 1 --loss absolute --html {page} --json"
    code, out, _ = run(capsys, line)
    report = json.loads(out)
    assert code == 0
    assert set(report["rows"][0]) == {*COLUMNS}
    assert "if many answers are averaged (unbiased)" in " ".join(report["sentences"][:2])
    assert not any(sentence.startswith("Publishing 4") for sentence in report["sentences"])
    assert page.stat().st_size > 1000


def test_the_best_channel_and_clamped_noise_apply_to_1001_answers():
    query = Query(
        question=wb.FiniteQuery("0..1000", max_shift=1),
        claim=Claim("dp", Fraction(1), Fraction(1, 10**5)),
    )
    candidates_by_name = {candidate.name: candidate for candidate in candidates(query)}
    assert candidates_by_name["best channel"].reason is None
    value = candidates_by_name["clamped geometric"].solve()
    assert value.is_certified
    # The value of the current program, pinned. It is below 1.8413, the variance 1 / (2 sinh²(1/2))
    # of geometric noise that is not clamped.
    assert value.objective == pytest.approx(1.83681754, rel=1e-7)


def test_a_loss_file_is_read_and_a_plot_is_written(
    capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("loss.csv").write_text("0,1,4\n1,0,1\n4,1,0\n")
    line = "recommend --answers 0..2 --max-shift 1 --epsilon 1 --loss loss.csv --plot r.svg"
    code, out, _ = run(capsys, line)
    assert code == 0
    assert "own matrix loss" in " ".join(out.split())
    assert Path("r.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--answers 0..2 --epsilon 1", "Give either max_shift or neighbours"),
        ("--answers 0..2 --max-shift 1 --epsilon 0", "epsilon must be a finite number > 0"),
        ("--answers 0..2 --max-shift 1 --epsilon 1 --loss near", "loss must be one of"),
        ("--epsilon 1", "exactly one of answers, places and range"),
        ("--range 5..5 --epsilon 1", "LOW..HIGH"),
        ("--range 0..5 --max-shift 1 --epsilon 1", "request with a range must be made of"),
        ("--range 0..5 --sensitivity 6 --epsilon 1", "at most the width of the range"),
        ("--range 0..5 --epsilon 1 --loss error-rate", "loss must be one of absolute, squared"),
    ],
)
def test_an_invalid_query_is_refused_with_exit_code_2(capsys, options: str, message: str):
    code, out, err = run(capsys, f"recommend {options}")
    assert (code, out) == (2, "")
    assert message in err


def test_an_unknown_option_is_refused_in_python():
    with pytest.raises(wb.InvalidRequest, match="request must be made of answers"):
        wb.recommend(answers="0..2", max_shift=1, epsilon=1, colour="squared")


@pytest.fixture(scope="module")
def label_table() -> wb.Result:
    """Return the recommendation for four answers that are all neighbours, with δ > 0."""
    return wb.recommend(
        answers=[4, 0, 1, 9], neighbours="all", epsilon=1, delta="0.1", prior=[1, 2, 3, 4]
    )


def test_the_best_class_is_a_design_that_can_be_saved(label_table: wb.Result, tmp_path: Path):
    # RR-on-Bins has the loss of the best channel and is simpler.
    assert label_table.chosen == "RR-on-Bins"
    assert isinstance(label_table.best, wb.Design)
    assert label_table.best.objective == pytest.approx(label_table[0]["objective"], rel=1e-12)
    assert label_table.best.question.inputs == (4, 0, 1, 9)
    label_table.best.save(tmp_path / "best.json")
    assert wb.load(tmp_path / "best.json") == label_table.best.mechanism


def test_the_columns_of_a_row_are_those_of_its_design(label_table: wb.Result):
    for row in label_table:
        if row["objective"] is None:
            with pytest.raises(wb.InvalidRequest, match="class must be one of"):
                label_table.design(row["class"])
            continue
        design = label_table.design(row["class"])
        assert design.certificate is not None
        assert design.objective == pytest.approx(row["objective"], rel=1e-12)
        matrix = np.array(design.mechanism.matrix)
        x, o = design.question.coordinates
        worst_loss = float((matrix * (o - x[:, None]) ** 2).sum(axis=1).max())
        largest_bias = float(np.abs(matrix @ o - x).max())
        assert row["worst"] == pytest.approx(worst_loss, rel=1e-9)
        assert row["bias"] == pytest.approx(largest_bias, rel=1e-7, abs=1e-9)
        assert row["rmse"] ** 2 == pytest.approx(row["objective"])


def test_a_sentence_states_the_loss_if_the_prior_is_wrong(label_table: wb.Result):
    start = "If the prior is wrong, its expected loss for one answer can be up to"
    assert any(sentence.startswith(start) for sentence in label_table.sentences)


LEAST_EPSILON = {"answers": "0..5", "max_shift": 1, "delta": "0.01"}


def test_the_smallest_epsilon_of_each_class_reaches_the_loss_and_a_smaller_one_does_not():
    table = wb.recommend(**LEAST_EPSILON, minimise="epsilon", max_loss="0.6")
    rows = {row["class"]: row for row in table if row["objective"] is not None}
    expected_names = {"best channel", "integer noise, clamped", "clamped geometric", "modulo noise"}
    assert expected_names <= {*rows}
    for name, row in rows.items():
        epsilon = row["objective"]
        (above,) = wb.recommend(**LEAST_EPSILON, epsilon=epsilon * (1 + 1e-5), only=name)
        (below,) = wb.recommend(**LEAST_EPSILON, epsilon=epsilon * (1 - 1e-3), only=name)
        assert above["objective"] <= 0.6 * (1 + 1e-9)
        # The loss of clamped discrete Gaussian noise is not monotone, because its parameter jumps.
        assert below["objective"] > 0.6 or name == "clamped discrete Gaussian"
    assert "For a loss of at most 0.6 use the best channel: epsilon = " in table.sentences[0]
    assert table.best.certificate is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1, "max_loss": 1}, "must be given together"),
        ({"minimise": "epsilon", "max_loss": 100}, "max_loss must be less than"),
    ],
)
def test_an_invalid_largest_loss_is_refused(options, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.recommend(**LEAST_EPSILON, **options)


@pytest.mark.parametrize(
    "budget",
    [
        {"notion": "zcdp", "rho": "0.1"},
        {"notion": "gdp", "mu": "0.5"},
        {"notion": "renyi", "alpha": 4, "epsilon": "0.3"},
        {"notion": "curve", "curve": "0.5:0.1,1:0.01"},
    ],
)
def test_classes_at_a_budget_of_another_notion_are_certified_and_bounded(budget):
    table = wb.recommend(answers="0..2", max_shift=1, time_limit=300, **budget)
    rows = index_by_class(table)
    for name in ("best channel", "integer noise, clamped", "modulo noise"):
        assert rows[name]["certified"], rows[name]["notes"]
        assert rows[name]["bound"] <= rows[name]["objective"]
    noise_loss = rows["integer noise, clamped"]["objective"]
    assert rows["best channel"]["objective"] <= noise_loss * (1 + 1e-6)
    assert "its parameter is not known for the notion" in rows["randomized response"]["notes"]


def recommend_one(name: str, **budget) -> dict:
    """Return the row of one class for the answers 0, 1, 2."""
    return wb.recommend(answers="0..2", max_shift=1, only=name, time_limit=300, **budget)[0]


FOUR_RUNS = {"epsilon": 2, "delta": "1e-5", "runs": 4}
QUARTER_BUDGET = {"epsilon": "0.5", "delta": "2.5e-6"}


def test_the_best_channel_for_four_runs_is_at_least_as_good_as_that_of_a_quarter_of_the_budget():
    row = recommend_one("best channel", **FOUR_RUNS)
    assert row["certified"]
    quarter_loss = recommend_one("best channel", **QUARTER_BUDGET)["objective"]
    assert row["objective"] <= quarter_loss * (1 + 1e-3)


def test_published_noise_for_four_runs_gets_a_quarter_of_the_budget():
    row = recommend_one("clamped geometric", **FOUR_RUNS)
    assert row["objective"] == recommend_one("clamped geometric", **QUARTER_BUDGET)["objective"]
    assert row["bound"] is None
    assert "each of 4 runs gets an equal share of the budget" in row["notes"]


def test_each_of_several_pure_runs_gets_an_equal_share_of_the_budget():
    several = wb.recommend(answers="0..3", max_shift=1, epsilon=2, runs=4)
    shared = wb.recommend(answers="0..3", max_shift=1, epsilon="0.5")
    assert [row["objective"] for row in several] == [row["objective"] for row in shared]
    assert several[0]["bound"] == shared[0]["bound"]
    # The command designs the mechanism of one run.
    assert several[0]["command"] == shared[0]["command"]


# Real answers.


def test_the_staircase_at_large_epsilon_is_the_designed_noise():
    """The staircase is piecewise constant on cells of the line. Each step has 495 cells."""
    query = {"range": "-3..-2", "sensitivity": "0.5", "epsilon": 20, "time_limit": 300}
    staircase = wb.recommend(**query, only="staircase (pure)")
    noise = wb.recommend(**query, only="real noise")
    assert staircase[0]["certified"]
    assert staircase[0]["objective"] == noise[0]["objective"]
    assert noise[0]["objective"] == pytest.approx(2.55585801e-7, rel=1e-8)
    assert staircase.best.mechanism == noise.best.mechanism
    (clamped,) = wb.recommend(**query, only="real noise, clamped")
    assert clamped["objective"] < noise[0]["objective"]
    assert clamped["certified"]


def test_published_noise_on_the_reals_with_delta_is_certified():
    table = wb.recommend(range="0..8", sensitivity=1, epsilon="0.1", delta="0.01", time_limit=300)
    rows = index_by_class(table)
    for name in ("staircase (pure)", "Laplace", "truncated Laplace", "Gaussian", "uniform"):
        assert rows[name]["certified"], name


def test_gaussian_noise_under_zcdp_is_computed_in_floats_and_not_certified():
    (row,) = wb.recommend(range="0..8", notion="zcdp", rho="0.1", only="Gaussian")
    assert not row["certified"]
    assert "floating point" in row["notes"]


def test_laplace_noise_has_no_design_because_its_density_has_no_cells():
    table = wb.recommend(range="0..8", epsilon=1, only="Laplace")
    with pytest.raises(wb.InvalidRequest, match="one of none with a certificate"):
        _ = table.best


def find_least_epsilon(name: str, max_loss: str) -> wb.Result:
    """Return the table of one class with its smallest ε for real answers in 0..8."""
    return wb.recommend(
        range="0..8", minimise="epsilon", max_loss=max_loss, only=name, time_limit=300
    )


def test_the_smallest_epsilon_of_laplace_noise_is_that_of_its_variance():
    """The variance of Laplace noise is 2 (8/ε)²."""
    epsilon = find_least_epsilon("Laplace", "4.9")[0]["objective"]
    assert epsilon == pytest.approx(8 * math.sqrt(2 / 4.9), rel=1e-5)


def test_the_smallest_epsilon_of_a_channel_of_a_range_is_bounded_from_both_sides():
    table = find_least_epsilon("channel on a grid", "4.9")
    (row,) = table
    assert row["certified"]
    at_epsilon = wb.design(RangeQuery("0..8"), epsilon=repr(row["objective"]))
    assert 4.89 < at_epsilon.objective <= 4.9
    assert table.best.objective == at_epsilon.objective
    assert 0.85 * row["objective"] < row["bound"] < row["objective"]
    assert wb.design(RangeQuery("0..8"), epsilon=repr(row["bound"])).bound > 4.9
    start = "For a loss of at most 4.9 use the channel on a grid: epsilon = "
    assert table.sentences[0].startswith(start)


def test_a_largest_loss_that_a_constant_reaches_is_refused():
    """Publishing 4 has the squared loss 64/12."""
    message = r"max_loss must be less than 5\.33333333, the loss of one output"
    with pytest.raises(wb.InvalidRequest, match=message):
        find_least_epsilon("Laplace", "6")


def test_each_of_four_pure_runs_on_a_range_gets_a_quarter_of_the_budget():
    query = {"range": "0..8", "only": "channel on a grid"}
    four_runs = wb.recommend(**query, epsilon=2, runs=4, time_limit=300)[0]
    one_run = wb.recommend(**query, epsilon="0.5")[0]
    assert four_runs["objective"] == one_run["objective"]


@pytest.mark.parametrize(
    ("budget", "variance"),
    [
        ({"notion": "zcdp", "rho": "0.1"}, 5.0),  # 1/(2 ρ)
        ({"notion": "gdp", "mu": "0.5"}, 4.0),  # 1/μ²
        ({"notion": "renyi", "alpha": 4, "epsilon": 1}, 2.0),  # α/(2 ε)
    ],
)
def test_gaussian_noise_at_other_notions_has_the_known_variance(budget, variance: float):
    query = {"range": "0..8", **budget}
    noise = wb.recommend(**query, only="Gaussian")[0]
    assert noise["objective"] == pytest.approx(8**2 * variance)
    laplace = wb.recommend(**query, only="Laplace")[0]
    assert "not known for the notion" in laplace["notes"]


def test_a_channel_of_a_range_under_zcdp_is_certified_and_bounded():
    design = wb.design(RangeQuery("0..8", cells=2), notion="zcdp", rho="0.1")
    loss_of_publishing_4 = 64 / 12
    assert 0 < design.bound < design.objective < loss_of_publishing_4
    assert design.certificate is not None


def test_a_stopped_search_for_the_smallest_epsilon_has_a_command_that_continues_it():
    options = {"minimise": "epsilon", "max_loss": "1", "time_limit": "0.01"}
    (row,) = wb.recommend(range="0..8", only="real noise, clamped", **options)
    assert "stopped" in row["notes"]
    assert row["command"].endswith("--time-limit 600")


@pytest.fixture(scope="module")
def rows_of_worst_answer() -> dict[str, dict]:
    """Return class -> row for the worst of the real answers in 0..8, with the squared loss."""
    return index_by_class(wb.recommend(range="0..8", epsilon=1, prior="worst", time_limit=300))


def test_for_the_worst_answer_of_a_range_the_channel_has_the_smallest_bound(
    rows_of_worst_answer: dict[str, dict],
):
    channel = rows_of_worst_answer["channel on a grid"]
    assert channel["certified"]
    assert "--prior worst" in channel["command"]
    clamped_loss = rows_of_worst_answer["real noise, clamped"]["objective"]
    assert channel["bound"] < clamped_loss < rows_of_worst_answer["real noise"]["objective"]


def test_the_loss_of_laplace_noise_is_the_same_for_every_answer(
    rows_of_worst_answer: dict[str, dict],
):
    """It is the variance 2 · 8²."""
    assert rows_of_worst_answer["Laplace"]["objective"] == pytest.approx(128)


def test_a_mechanism_for_uniform_answers_does_not_apply_to_the_worst_answer(
    rows_of_worst_answer: dict[str, dict],
):
    row = rows_of_worst_answer["optimal piecewise"]
    assert row["objective"] is None
    assert "uniform" in row["notes"]


def test_a_quantizer_has_no_bound_for_the_worst_answer(rows_of_worst_answer: dict[str, dict]):
    quantizer = rows_of_worst_answer["quantizer, 2 outputs"]
    assert quantizer["objective"] > rows_of_worst_answer["channel on a grid"]["objective"]
    assert quantizer["bound"] is None


@pytest.mark.parametrize("question", [{"range": "0..8"}, {"answers": "0..3", "max_shift": 1}])
@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"epsilon": 1, "rho": 1}, "rho must be left out when notion is dp"),
        (
            {"notion": "zcdp", "rho": 1, "epsilon": 1},
            "epsilon must be left out when notion is zcdp",
        ),
        ({"notion": "gdp", "mu": 1, "delta": "0.1"}, "delta must be left out when notion is gdp"),
        ({"notion": "pure", "epsilon": 1, "delta": "0.1"}, "delta must be 0 when notion is pure"),
    ],
)
def test_a_budget_of_another_notion_is_refused(question: dict, budget: dict, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.recommend(**question, **budget)


# Classes that reach the time limit.

# Three classes of mechanisms. The class "all" contains the classes "noise" and "open".
NESTED_CANDIDATES = [
    Candidate("all", contains=("noise", "open")),
    Candidate("noise"),
    Candidate("open"),
]


def make_row(name: str, objective: float | None, bound: float, notes: str) -> dict:
    """Make a row of a recommendation. It is certified if `objective` is a number.

    Args:
        name: class of mechanisms.
        objective: loss of the best mechanism found. None: none was found.
        bound: lower bound on the loss.
        notes: notes about the class, such as "stopped".
    """
    row = {**dict.fromkeys(COLUMNS), "class": name, "objective": objective}
    return row | {"bound": bound, "notes": notes, "certified": objective is not None}


def test_a_stopped_class_shows_the_best_mechanism_that_it_contains():
    noise = Value(objective=5.0, bound=5.0, is_certified=True)
    values = {"all": Value(objective=6.0, bound=0.0, is_certified=True), "noise": noise}
    rows = [
        make_row("all", 6.0, -1e-9, "stopped"),
        make_row("noise", 5.0, 5.0, ""),
        make_row("open", None, 0.0, "stopped"),
    ]
    all_row, noise_row, open_row = _improve_stopped_rows(rows, NESTED_CANDIDATES, values)
    assert (all_row["objective"], all_row["bound"]) == (5.0, None)
    assert all_row["notes"] == "stopped; no bound is known; best so far: noise"
    assert values["all"] is noise
    assert noise_row["objective"] == 5.0
    assert (open_row["objective"], open_row["bound"]) == (None, None)
    assert open_row["notes"] == "stopped; no bound is known"


def test_a_stopped_class_has_the_bound_of_a_class_that_contains_it():
    rows = [make_row("all", 6.0, 3.0, "stopped"), make_row("open", None, 0.0, "stopped")]
    values = {"all": Value(objective=6.0, bound=3.0, is_certified=True)}
    _, open_row = _improve_stopped_rows(rows, NESTED_CANDIDATES, values)
    assert (open_row["bound"], open_row["notes"]) == (3.0, "stopped")


def test_a_range_without_time_has_a_row_with_a_valid_bound_or_none():
    query = {"range": "0..50", "prior": "worst", "loss": "absolute"}
    (row,) = wb.recommend(
        **query, epsilon="0.01", delta="0.01", only="channel on a grid", time_limit="0.01"
    )
    assert (row["bound"] is None) == ("no bound is known" in row["notes"])
    if row["objective"] is not None and row["bound"] is not None:
        assert row["bound"] <= row["objective"]


def test_the_exposure_of_directed_neighbours_is_that_of_the_protected_order():
    """The exposure of the other order, which is not protected, would be 0.64."""
    result = wb.recommend(
        answers="0..4",
        max_shift=1,
        directed=True,
        epsilon=1,
        delta=".01",
        loss="squared",
        only="best channel",
    )
    (sentence,) = [sentence for sentence in result.sentences if "cannot produce" in sentence]
    assert sentence.startswith("With probability up to 0.01 ")
