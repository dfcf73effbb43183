"""`workbench recommend`: every class at one budget, best first, none missing in silence."""

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
from workbench.pipeline.recommendation import Query
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim
from workbench.questions.range_query import RangeQuery
from workbench.recommendation.recommend import COLUMNS
from workbench.recommendation.wording import describe_range_query


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
    assert (
        rows["best channel"]["objective"]
        == wb.design(
            "channel", answers="0..20", max_shift=1, outputs="free", epsilon=1, delta="1e-5"
        ).objective
    )
    noise = wb.design(
        wb.ModuloNoise(n=20, max_shift=1), epsilon=1, delta="1e-5", loss="squared", notion="dp"
    )
    assert rows["modulo noise"]["objective"] == noise.objective
    assert rows["clamped geometric"]["objective"] < noise.objective
    assert all(row["certified"] for row in result if row["objective"] is not None)
    assert rows["RR-on-Bins"]["notes"].startswith(
        "it needs numeric answers, all of them neighbours, and a prior"
    )
    contained = "so its optimum is at least as good: integer noise, clamped; clamped truncated"
    assert any(contained in sentence for sentence in result.sentences[1:3])
    assert any(
        "an output that a neighbour cannot produce" in sentence for sentence in result.sentences
    )
    assert "wraps around" in rows["modulo noise"]["notes"]
    assert tuple(result.to_frame().columns) == COLUMNS
    axis = result.plot().axes[
        0
    ]  # dots, the best on top; what costs more than 20 times as much is named only
    assert axis.get_yticklabels()[-1].get_text() == "best channel"
    assert not {"randomized response"} & {tick.get_text() for tick in axis.get_yticklabels()}
    assert "randomized response" in axis.get_xlabel()


def test_a_tie_keeps_the_sentence_that_none_costs_less():
    result = wb.recommend(
        answers="red,green,blue", neighbours="all", epsilon=1, delta="0.1", loss="error-rate"
    )
    assert (
        result.sentences[0]
        == "Use the randomized response: expected loss 0.381494804. No compared class has a smaller "
        "loss."
    )
    assert result.sentences[1] == "Classes with the same loss that are less simple: best channel."


def test_nothing_is_called_best_beyond_the_classes_compared():
    """One randomised bit with the medians as outputs costs 46885; the channel on a grid no more."""
    result = wb.recommend(
        range="0..200000", epsilon="0.5", delta="0.05", loss="absolute", time_limit=300
    )
    words = " ".join(result.sentences)
    assert "best" not in words
    assert result[0]["class"] == "channel on a grid"
    assert 0.99 * result[0]["objective"] <= result[0]["bound"] <= result[0]["objective"] < 46885
    assert "(within 1 %)" in result[0]["notes"]
    assert "The proven lower bound for all channels of the range is" in words


def test_what_costs_less_than_the_class_to_use_and_is_not_certified_is_named():
    def row(name, objective, certified, notes="biased", bound=None):
        return {
            "class": name,
            "objective": objective,
            "bound": bound,
            "certified": certified,
            "bias": None,
            "notes": notes,
        }

    query = Query(
        question=RangeQuery("0..100", sensitivity=1),
        claim=Claim("dp", Fraction(1)),
        aim=Aim(loss="absolute"),
    )
    closed, channel = (
        row("staircase (pure)", 0.9, False, "unbiased; published"),
        row("channel on a grid", 5.5, True),
    )
    words = [*describe_range_query(query, [closed, channel | {"bound": 0.0}], [], {})]
    assert words[0] == (
        "Use the channel on a grid for one answer alone (biased): expected loss 5.5. Other channels "
        "may have a smaller loss."
    )
    assert words[1] == "Not certified, with a smaller loss than 5.5: staircase (pure) (0.9)."
    assert len([*describe_range_query(query, [channel, closed | {"objective": 6.0}], [], {})]) == 1


def test_all_classes_pay_under_the_same_prior():
    prior, loss = [5, 1, 1, 1], [[abs(o - x) for o in range(4)] for x in range(4)]
    named = by_class(
        wb.recommend(answers="0..3", neighbours="all", epsilon=1, prior=prior, loss="absolute")
    )
    own = by_class(
        wb.recommend(answers="0..3", neighbours="all", epsilon=1, prior=prior, loss=loss)
    )
    for name in ("best channel", "modulo noise", "randomized response"):
        assert own[name]["objective"] == pytest.approx(named[name]["objective"], rel=1e-9)
    assert named["RR-on-Bins"]["objective"] == pytest.approx(
        named["best channel"]["objective"], rel=1e-9
    )
    assert own["best channel"]["command"] is None  # a table has no text
    assert "--prior 5,1,1,1 " in named["best channel"]["command"]


def test_the_worst_input_has_no_modulo_noise():
    rows = by_class(
        wb.recommend(answers="0..4", max_shift=1, epsilon=1, prior="worst", loss="absolute")
    )
    assert rows["modulo noise"]["objective"] is None
    assert "worst input" in rows["modulo noise"]["notes"]
    assert rows["best channel"]["objective"] < rows["clamped geometric"]["objective"]


def test_real_answers_have_noise_clamped_noise_and_quantizers(capsys, tmp_path: Path):
    line = f"recommend --range 0..8 --epsilon 1 --loss absolute --time-limit 300 --html {tmp_path}/r.html --json"
    code, out, _ = run(capsys, line)
    found = json.loads(out)
    rows = {row["class"]: row for row in found["rows"]}
    assert code == 0
    assert set(found["rows"][0]) == {*COLUMNS}
    assert (
        rows["real noise"]["bound"]
        <= rows["real noise"]["objective"]
        <= rows["staircase (pure)"]["objective"] * 1.001
    )
    assert rows["real noise"]["objective"] < rows["Laplace"]["objective"] == pytest.approx(8.0)
    assert rows["real noise, clamped"]["objective"] < rows["real noise"]["objective"]
    assert rows["real noise, clamped"]["certified"] is True
    assert rows["Laplace"]["certified"] is True
    assert rows["channel on a grid"]["objective"] <= 2 + 1e-12  # what publishing 4 costs
    commands = [row for row in found["rows"] if row["command"]]
    assert {row["class"] for row in commands} == {
        row["class"] for row in rows.values() if row["objective"] is not None
    }
    for row in commands:
        _, made, _ = run(capsys, row["command"].removeprefix("workbench ") + " --json")
        made = json.loads(made)
        again = made["rows"][0] if "rows" in made else made
        assert again["objective"] == pytest.approx(row["objective"], rel=1e-12)
    assert "if many answers are averaged (unbiased)" in " ".join(found["sentences"][:2])
    assert not any(sentence.startswith("Publishing 4") for sentence in found["sentences"])
    assert (tmp_path / "r.html").stat().st_size > 1000


def test_a_large_count_has_rows_of_every_class():
    from workbench.families.channel.recommendation import candidates

    query = Query(
        question=wb.FiniteQuery("0..1000", max_shift=1),
        claim=Claim("dp", Fraction(1), Fraction(1, 10**5)),
    )
    rows = {one.name: one for one in candidates(query)}
    assert rows["best channel"].reason is None
    value = rows["clamped geometric"].solve()
    assert value.is_certified
    assert value.objective == pytest.approx(1.83681754, rel=1e-7)


def test_files_plots_and_bad_input(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("loss.csv").write_text("0,1,4\n1,0,1\n4,1,0\n")
    code, out, _ = run(
        capsys, "recommend --answers 0..2 --max-shift 1 --epsilon 1 --loss loss.csv --plot r.svg"
    )
    assert code == 0
    assert "own matrix loss" in " ".join(out.split())
    assert Path("r.svg").stat().st_size > 1000
    for line, sentence in (
        ("recommend --answers 0..2 --epsilon 1", "A neighbour relation must be given"),
        (
            "recommend --answers 0..2 --max-shift 1 --epsilon 0",
            "epsilon must be a finite number > 0",
        ),
        ("recommend --answers 0..2 --max-shift 1 --epsilon 1 --loss near", "loss must be one of"),
        ("recommend --epsilon 1", "exactly one of answers, places and range"),
        ("recommend --range 5..5 --epsilon 1", "LOW..HIGH"),
        (
            "recommend --range 0..5 --max-shift 1 --epsilon 1",
            "request with a range must be made of",
        ),
        ("recommend --range 0..5 --sensitivity 6 --epsilon 1", "at most the width of the range"),
        (
            "recommend --range 0..5 --epsilon 1 --loss error-rate",
            "loss must be one of absolute, squared",
        ),
    ):
        code, out, err = run(capsys, line)
        assert (code, out) == (2, "")
        assert sentence in err
    with pytest.raises(wb.InvalidRequest, match="request must be made of answers"):
        wb.recommend(answers="0..2", max_shift=1, epsilon=1, colour="squared")


def test_the_best_class_is_a_design(tmp_path):
    table = wb.recommend(
        answers=[4, 0, 1, 9], neighbours="all", epsilon=1, delta="0.1", prior=[1, 2, 3, 4]
    )
    assert table.chosen == "RR-on-Bins"  # costs what the best channel does, and is simpler
    assert isinstance(table.best, wb.Design)
    assert table.best.objective == pytest.approx(table[0]["objective"], rel=1e-12)
    assert table.best.question.inputs == (4, 0, 1, 9)
    table.best.save(tmp_path / "best.json")
    assert wb.load(tmp_path / "best.json") == table.best.mechanism
    for row in table:
        if row["objective"] is None:
            with pytest.raises(wb.InvalidRequest, match="class must be one of"):
                table.design(row["class"])
        else:
            made = table.design(row["class"])
            assert made.objective == pytest.approx(row["objective"], rel=1e-12)
            assert made.certificate is not None
            rows = np.array(made.mechanism.matrix)
            x, o = made.question.coordinates
            assert row["worst"] == pytest.approx(
                float((rows * (o - x[:, None]) ** 2).sum(axis=1).max()), rel=1e-9
            )
            assert row["bias"] == pytest.approx(
                float(np.abs(rows @ o - x).max()), rel=1e-7, abs=1e-9
            )
            assert row["rmse"] ** 2 == pytest.approx(row["objective"])
    assert any(
        sentence.startswith("If the prior is wrong, its expected loss for one answer can be up to")
        for sentence in table.sentences
    )


def test_the_least_epsilon_for_a_loss():
    given = {"answers": "0..5", "max_shift": 1, "delta": "0.01"}
    table = wb.recommend(**given, minimise="epsilon", max_loss="0.6")
    rows = {row["class"]: row for row in table if row["objective"] is not None}
    assert {"best channel", "integer noise, clamped", "clamped geometric", "modulo noise"} <= {
        *rows
    }
    for name, row in rows.items():
        at = wb.recommend(**given, epsilon=row["objective"] * (1 + 1e-5), only=name)[0]
        below = wb.recommend(**given, epsilon=row["objective"] * (1 - 1e-3), only=name)[0]
        assert at["objective"] <= 0.6 * (1 + 1e-9)
        assert (
            below["objective"] > 0.6 or name == "clamped discrete Gaussian"
        )  # whose parameter jumps
    assert "For a loss of at most 0.6 use the best channel: epsilon = " in table.sentences[0]
    assert table.best.certificate is not None
    with pytest.raises(wb.InvalidRequest, match="must be given together"):
        wb.recommend(**given, epsilon=1, max_loss=1)
    with pytest.raises(wb.InvalidRequest, match="max_loss must be less than"):
        wb.recommend(**given, minimise="epsilon", max_loss=100)


@pytest.mark.parametrize(
    "budget",
    [
        {"notion": "zcdp", "rho": "0.1"},
        {"notion": "gdp", "mu": "0.5"},
        {"notion": "renyi", "alpha": 4, "epsilon": "0.3"},
        {"notion": "curve", "curve": "0.5:0.1,1:0.01"},
    ],
)
def test_budgets_of_other_notions(budget):
    rows = {
        row["class"]: row
        for row in wb.recommend(answers="0..2", max_shift=1, time_limit=300, **budget)
    }
    for name in ("best channel", "integer noise, clamped", "modulo noise"):
        assert rows[name]["certified"], rows[name]["notes"]
        assert rows[name]["bound"] <= rows[name]["objective"]
    assert rows["best channel"]["objective"] <= rows["integer noise, clamped"]["objective"] * (
        1 + 1e-6
    )
    assert "its parameter is not known for the notion" in rows["randomized response"]["notes"]


def test_a_budget_of_several_runs():
    def of(name: str, **budget):
        return wb.recommend(answers="0..2", max_shift=1, only=name, time_limit=300, **budget)[0]

    runs, share = {"epsilon": 2, "delta": "1e-5", "runs": 4}, {"epsilon": "0.5", "delta": "2.5e-6"}
    best, geometric = of("best channel", **runs), of("clamped geometric", **runs)
    assert best["certified"]
    assert best["objective"] <= of("best channel", **share)["objective"] * (
        1 + 1e-3
    )  # sharing is one way
    assert geometric["objective"] == of("clamped geometric", **share)["objective"]
    assert geometric["bound"] is None
    assert "each of 4 runs gets an equal share of the budget" in geometric["notes"]


def test_pure_budgets_of_several_runs_are_equal_shares():
    several = wb.recommend(answers="0..3", max_shift=1, epsilon=2, runs=4)
    shared = wb.recommend(answers="0..3", max_shift=1, epsilon="0.5")
    assert [row["objective"] for row in several] == [row["objective"] for row in shared]
    assert several[0]["bound"] == shared[0]["bound"]
    assert several[0]["command"] == shared[0]["command"]


# Real answers.


def test_published_noise_on_the_reals_is_proven_or_says_that_it_is_not():
    """The staircase at a large ε is designed in a moment, though its steps are of 495 cells."""
    given = {"range": "-3..-2", "sensitivity": "0.5", "epsilon": 20}
    staircase, noise, clamped = (
        wb.recommend(**given, only=name, time_limit=300)
        for name in ("staircase (pure)", "real noise", "real noise, clamped")
    )
    assert staircase[0]["certified"]
    assert (
        staircase[0]["objective"] == noise[0]["objective"] == pytest.approx(2.55585801e-7, rel=1e-8)
    )
    assert clamped[0]["objective"] < noise[0]["objective"]
    assert clamped[0]["certified"]
    assert staircase.best.mechanism == noise.best.mechanism
    with_delta = by_class(
        wb.recommend(range="0..8", sensitivity=1, epsilon="0.1", delta="0.01", time_limit=60)
    )
    for name in ("staircase (pure)", "Laplace", "truncated Laplace", "Gaussian", "uniform"):
        assert with_delta[name]["certified"], name
    at_zcdp = wb.recommend(range="0..8", notion="zcdp", rho="0.1", only="Gaussian")[0]
    assert not at_zcdp["certified"]
    assert "floating point" in at_zcdp["notes"]
    laplace = wb.recommend(range="0..8", epsilon=1, only="Laplace")
    with pytest.raises(
        wb.InvalidRequest, match="one of none with a certificate"
    ):  # a density of no cells
        _ = laplace.best


def test_the_least_epsilon_of_a_range():
    def least(name: str, range_: str = "0..8", most: str = "4.9", **more):
        return wb.recommend(
            range=range_, minimise="epsilon", max_loss=most, only=name, time_limit=300, **more
        )

    assert least("Laplace")[0]["objective"] == pytest.approx(8 * math.sqrt(2 / 4.9), rel=1e-5)
    table = least("channel on a grid")
    best = table[0]
    assert best["certified"]
    at = wb.design(RangeQuery("0..8"), epsilon=repr(best["objective"]))
    assert 4.89 < at.objective <= 4.9
    assert table.best.objective == at.objective
    assert 0.85 * best["objective"] < best["bound"] < best["objective"]
    assert wb.design(RangeQuery("0..8"), epsilon=repr(best["bound"])).bound > 4.9
    assert table.sentences[0].startswith(
        "For a loss of at most 4.9 use the channel on a grid: epsilon = "
    )
    with pytest.raises(
        wb.InvalidRequest, match=r"max_loss must be less than 5\.33333333, the loss of one output"
    ):
        least("Laplace", most="6")


def test_a_range_for_several_runs_and_other_notions():
    several = wb.recommend(
        range="0..8", epsilon=2, runs=4, only="channel on a grid", time_limit=300
    )[0]
    assert (
        several["objective"]
        == wb.recommend(range="0..8", epsilon="0.5", only="channel on a grid")[0]["objective"]
    )
    for budget, variance in (
        ({"notion": "zcdp", "rho": "0.1"}, 5.0),
        ({"notion": "gdp", "mu": "0.5"}, 4.0),
        ({"notion": "renyi", "alpha": 4, "epsilon": 1}, 2.0),
    ):
        noise = wb.recommend(range="0..8", **budget, only="Gaussian")[0]
        assert noise["objective"] == pytest.approx(64 * variance)
        assert (
            "not known for the notion"
            in wb.recommend(range="0..8", **budget, only="Laplace")[0]["notes"]
        )
    channel = wb.design(RangeQuery("0..8", cells=2), notion="zcdp", rho="0.1")
    assert 0 < channel.bound < channel.objective < 64 / 12
    assert channel.certificate is not None


def test_a_search_for_the_least_epsilon_that_is_stopped_says_so():
    row = wb.recommend(
        range="0..8",
        minimise="epsilon",
        max_loss="1",
        time_limit="0.01",
        only="real noise, clamped",
    )[0]
    assert "stopped" in row["notes"]
    assert row["command"].endswith("--time-limit 600")


def test_a_range_with_a_prior():
    rows = by_class(wb.recommend(range="0..8", epsilon=1, prior="worst", time_limit=300))
    assert rows["channel on a grid"]["certified"]
    assert "--prior worst" in rows["channel on a grid"]["command"]
    assert rows["Laplace"]["objective"] == pytest.approx(128)  # the same for every answer
    assert rows["optimal piecewise"]["objective"] is None
    assert "uniform" in rows["optimal piecewise"]["notes"]
    noise = rows["real noise, clamped"]
    assert rows["channel on a grid"]["bound"] < noise["objective"] < rows["real noise"]["objective"]
    assert rows["quantizer, 2 outputs"]["objective"] > rows["channel on a grid"]["objective"]
    assert rows["quantizer, 2 outputs"]["bound"] is None


@pytest.mark.parametrize("question", [{"range": "0..8"}, {"answers": "0..3", "max_shift": 1}])
@pytest.mark.parametrize(
    ("budget", "words"),
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
def test_a_budget_of_another_notion_is_refused(question: dict, budget: dict, words: str):
    with pytest.raises(wb.InvalidRequest, match=words):
        wb.recommend(**question, **budget)


def test_a_class_that_was_stopped_has_what_others_know():
    """Its loss is that of the best mechanism in it, its bound that of a class that contains it."""
    from workbench.pipeline.recommendation import Candidate, Value
    from workbench.recommendation.recommend import _improve_stopped_rows

    inner = Value(5.0, 5.0, True)

    def row(name: str, objective: float | None, bound: float, notes: str) -> dict:
        known = {"class": name, "objective": objective, "bound": bound, "notes": notes}
        return {**dict.fromkeys(COLUMNS), "certified": objective is not None, **known}

    candidates = [
        Candidate("all", contains=("noise", "open")),
        Candidate("noise"),
        Candidate("open"),
    ]
    rows = [
        row("all", 6.0, -1e-9, "stopped"),
        row("noise", 5.0, 5.0, ""),
        row("open", None, 0.0, "stopped"),
    ]
    values = {"all": Value(6.0, 0.0, True), "noise": inner}
    whole, noise, none = _improve_stopped_rows(rows, candidates, values)
    assert (whole["objective"], whole["bound"], noise["objective"]) == (5.0, None, 5.0)
    assert whole["notes"] == "stopped; no bound is known; best so far: noise"
    assert values["all"] is inner
    assert (none["objective"], none["bound"], none["notes"]) == (
        None,
        None,
        "stopped; no bound is known",
    )
    rows[0]["bound"] = 3.0
    known = [*_improve_stopped_rows(rows, candidates, {**values})][2]
    assert (known["bound"], known["notes"]) == (3.0, "stopped")


def test_a_range_whose_time_is_over_is_a_row():
    query = {
        "range": "0..50",
        "prior": "worst",
        "loss": "absolute",
        "epsilon": "0.01",
        "delta": "0.01",
    }
    (row,) = wb.recommend(**query, only="channel on a grid", time_limit="0.01")
    assert (row["bound"] is None) == ("no bound is known" in row["notes"])
    assert None in (row["objective"], row["bound"]) or row["bound"] <= row["objective"]


def test_the_exposure_of_directed_neighbours_is_of_the_protected_order():
    """Compared the other way round, which nobody asked for, it would be 0.64."""
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
