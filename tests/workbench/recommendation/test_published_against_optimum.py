"""Published mechanisms over proven optima: none below a bound, exact where the optimum is known, own ones as well."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.recommendation.published import (
    SETTINGS,
    _bound_excess_everywhere,
    _describe_every_epsilon,
    compare_setting,
    summarise_setting,
)
from workbench.solvers.search import Deadline

MINE = """
import math


def baseline(epsilon, delta):
    r = math.exp(-{share} * epsilon)
    return [[r ** abs(k - q) * (1 if k in (0, 4) else 1 - r) / (1 + r) for k in range(5)] for q in range(5)]
"""


def rows(name: str, epsilon: str, delta: str) -> dict[tuple[str, str], dict]:
    found = compare_setting(name, [Fraction(epsilon)], [Fraction(delta)])
    return {(row["loss"], row["mechanism"]): row for row in found}


@pytest.mark.parametrize("name", ["reals", "integers", "counts", "labels", "range", "unbiased"])
def test_nothing_published_costs_less_than_the_proven_optimum(name: str):
    found = rows(name, "1", "0.1")
    assert {loss for loss, _ in found} == {*SETTINGS[name].losses}
    for row in found.values():
        assert row["lower"] <= row["objective"] * (1 + 1e-9)
        assert row["lower"] <= row["upper"] <= row["objective"]
        assert 0 <= row["least_percent"] <= row["most_percent"]
        assert row["source"]


def test_known_optima_have_no_distance():
    pure = rows("reals", "20", "0")
    assert pure["absolute", "staircase (pure)"]["most_percent"] == pytest.approx(0, abs=1e-6)
    assert pure["squared", "Laplace"]["most_percent"] > 1000
    assert rows("integers", "1", "0")["absolute", "geometric"]["most_percent"] == pytest.approx(
        0, abs=1e-6
    )
    assert rows("labels", "0.5", "0.01")["error-rate", "randomized response"][
        "most_percent"
    ] == pytest.approx(0, abs=1e-6)
    counts = rows("counts", "1", "0")
    assert counts["error-rate", "clamped geometric"]["most_percent"] == pytest.approx(0, abs=1e-6)
    assert counts["error-rate", "exponential"]["most_percent"] > 10


def test_a_distance_is_told_only_beside_a_close_bound():
    far = rows("reals", "8", "0.1")["absolute", "Laplace"]
    assert far["lower"] is None
    assert far["most_percent"] is None
    assert far["objective"] > 0


def test_the_summary_counts_what_is_known():
    every = [*rows("integers", "1", "0").values(), *rows("integers", "1", "0.1").values()]
    summed = {(row["loss"], row["mechanism"]): row for row in summarise_setting("integers", every)}
    geometric = summed["squared", "geometric"]
    assert geometric["budgets"] == geometric["proven"] == 2
    assert geometric["within_1_percent"] == 1
    assert geometric["where"] == "δ = 0: ε = 1"
    assert geometric["worst_at"] == "ε = 1, δ = 0.1"
    assert geometric["worst_percent"] > geometric["median_percent"] > 0
    assert summed["squared", "truncated geometric"]["budgets"] == 1  # it needs δ > 0


def sentence(tmp_path: Path, share: float) -> list[str]:
    path = tmp_path / "mine.py"
    path.write_text(MINE.format(share=share))
    found = wb.recommend(
        answers="0..4",
        max_shift=1,
        epsilon=1,
        loss="error-rate",
        baseline=str(path),
        time_limit=300,
    )
    return [words for words in found.sentences if words.startswith("mine")]


def test_a_mechanism_of_ones_own_is_measured_along_epsilon(tmp_path: Path):
    (words,) = sentence(tmp_path, 0.9)
    assert words.startswith("mine: at this budget its expected loss is at most ")
    assert " % above the proven optimum on the same outputs. For every epsilon in [0.1, 4]" in words
    assert "proven between them by monotonicity" in words
    assert not sentence(tmp_path, 1.1)  # not private here


@pytest.mark.parametrize("steps", [0, 10])
def test_what_is_said_between_budgets_holds_at_each_of_them(steps: int):
    """Losses L of a function known at budgets alone: on [a, b] nothing but L(a) may be used."""
    asked: list[float] = []

    def measured(epsilon: Fraction) -> tuple[float, float]:
        at = float(epsilon)
        asked.append(at)
        unknown = 0.1 < at < 0.3
        loss = math.inf if unknown else 1.07 * math.exp(-at) + (0.05 if at == 2 else 0.0)
        return loss, math.exp(-at) if at != 1 else 0.0

    words = _describe_every_epsilon(measured, Deadline(0.0 if not steps else None))
    said = float(words.split("at most ")[1].split(" %")[0])
    budgets = sorted(at for at in asked if not 0.1 < at < 0.3)
    for at in np.linspace(0.1, 4, 997):
        served = min(measured(Fraction(a))[0] for a in budgets if a <= at)
        assert served / math.exp(-at) <= 1 + said / 100
    assert (said > 100) == (
        not steps
    )  # of six budgets little is known; of many, hardly more than at each


def test_a_function_that_is_private_nowhere_else_says_so():
    words = _describe_every_epsilon(lambda epsilon: (math.inf, 0.0), Deadline())
    assert words == "At other budgets it is not private, or its distance is not known."


def test_a_published_mechanism_that_is_named_is_measured_along_epsilon():
    question = {"answers": "0..4", "max_shift": 1, "loss": "error-rate"}
    table = wb.recommend(**question, epsilon=1, baseline="exponential", time_limit=300)
    (words,) = [
        sentence for sentence in table.sentences if sentence.startswith("exponential: at this")
    ]
    here, along = (float(part.split(" %")[0]) for part in words.split("at most ")[1:])
    assert "For every epsilon in [0.1, 4]" in words
    assert 10 < here <= along < 100
    assert [row["class"] for row in table].count("exponential") == 1
    for epsilon in ("0.137", "0.9", "3.21"):
        rows = {row["class"]: row for row in wb.recommend(**question, epsilon=epsilon)}
        assert rows["exponential"]["objective"] <= rows["best channel"]["bound"] * (1 + along / 100)
    with pytest.raises(wb.InvalidRequest, match="baseline must be one of clamped geometric"):
        wb.recommend(**question, epsilon=1, baseline="exponentail")


def test_the_optimum_that_distances_are_told_from_is_that_on_the_same_outputs():
    """Where a channel of other outputs costs less, the sentence is not about that one."""
    question = {"answers": "0..4", "max_shift": 1, "loss": "squared", "epsilon": 1}
    table = wb.recommend(**question, baseline="clamped geometric", time_limit=300)
    rows = {row["class"]: row for row in table}
    (words,) = [
        sentence
        for sentence in table.sentences
        if sentence.startswith("clamped geometric: at this")
    ]
    said = float(
        words.split("at most ")[1].split(" % above the proven optimum on the same outputs")[0]
    )
    loss, listed = rows["clamped geometric"]["objective"], wb.design("channel", **question)
    assert 100 * (loss / listed.bound - 1) <= said <= 100 * (loss / listed.objective - 1) + 0.02
    assert loss > rows["best channel"]["objective"] * (1 + 2 * said / 100)


def test_between_budgets_a_published_mechanism_is_as_near_as_at_them_or_unknown(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("workbench.recommendation.published._MAX_COMPARED_EPSILONS", 12)
    assert 0 < _bound_excess_everywhere("labels", "error-rate", "randomized response") < 100
    assert (
        _bound_excess_everywhere("labels", "error-rate", "clamped discrete Gaussian") is None
    )  # it needs δ > 0


def test_a_file_without_a_baseline_is_refused(tmp_path: Path):
    path = tmp_path / "mine.py"
    for text, message in (("x = 1", "function baseline"), ("1/0", "ZeroDivisionError")):
        path.write_text(text)
        with pytest.raises(wb.InvalidRequest, match=message):
            wb.recommend(answers="0..4", max_shift=1, epsilon=1, baseline=str(path))
