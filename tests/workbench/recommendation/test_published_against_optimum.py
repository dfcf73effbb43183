"""Test the stated distance of published and user-defined mechanisms from the proven optimum.

The distance is the share by which the loss of a mechanism is above the optimum, in percent. The
optimum is between a proven lower bound ("lower") and the smallest loss found ("upper"), so the
distance is between `least_percent` and `most_percent`. A setting is a kind of question, such as
"reals". A baseline is a mechanism that a user names or defines.
"""

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
    _LossAndBound,
    compare_setting,
    summarise_setting,
)
from workbench.solvers.search import Deadline

# A file with a user-defined baseline: geometric noise on 0..4, clamped, for the budget share · ε.
# With a share of at most 1 it is private at ε.
BASELINE_FILE = """
import math


def baseline(epsilon, delta):
    r = math.exp(-{share} * epsilon)
    return [[r ** abs(k - q) * (1 if k in (0, 4) else 1 - r) / (1 + r) for k in range(5)] for q in range(5)]
"""


def compare_at(name: str, epsilon: str, delta: str) -> dict[tuple[str, str], dict]:
    """Return (loss, mechanism) -> row of a setting at one budget."""
    rows = compare_setting(name, epsilons=[Fraction(epsilon)], deltas=[Fraction(delta)])
    return {(row["loss"], row["mechanism"]): row for row in rows}


@pytest.mark.parametrize("name", ["reals", "integers", "counts", "labels", "range", "unbiased"])
def test_no_published_mechanism_is_below_the_proven_bound(name: str):
    rows = compare_at(name, "1", "0.1")
    assert {loss for loss, _ in rows} == {*SETTINGS[name].losses}
    for row in rows.values():
        assert row["lower"] <= row["objective"] * (1 + 1e-9)
        assert row["lower"] <= row["upper"] <= row["objective"]
        assert 0 <= row["least_percent"] <= row["most_percent"]
        assert row["source"]


@pytest.mark.parametrize(
    ("setting", "epsilon", "delta", "loss", "mechanism"),
    [
        ("reals", "20", "0", "absolute", "staircase (pure)"),
        ("integers", "1", "0", "absolute", "geometric"),
        ("labels", "0.5", "0.01", "error-rate", "randomized response"),
        ("counts", "1", "0", "error-rate", "clamped geometric"),
    ],
)
def test_a_mechanism_that_is_known_to_be_optimal_has_the_distance_0(
    setting: str, epsilon: str, delta: str, loss: str, mechanism: str
):
    row = compare_at(setting, epsilon, delta)[loss, mechanism]
    assert row["most_percent"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("setting", "epsilon", "loss", "mechanism", "percent"),
    [
        ("reals", "20", "squared", "Laplace", 1000),
        ("counts", "1", "error-rate", "exponential", 10),
    ],
)
def test_a_mechanism_that_is_far_from_optimal_has_a_large_distance(
    setting: str, epsilon: str, loss: str, mechanism: str, percent: float
):
    assert compare_at(setting, epsilon, "0")[loss, mechanism]["most_percent"] > percent


def test_no_distance_is_stated_if_the_optimum_is_not_known_closely():
    row = compare_at("reals", "8", "0.1")["absolute", "Laplace"]
    assert row["lower"] is None
    assert row["most_percent"] is None
    assert row["objective"] > 0


def test_the_summary_of_a_setting_counts_its_budgets():
    rows = []
    for delta in ("0", "0.1"):
        rows += compare_at("integers", "1", delta).values()
    summaries = {
        (row["loss"], row["mechanism"]): row for row in summarise_setting("integers", rows)
    }
    geometric = summaries["squared", "geometric"]
    assert geometric["budgets"] == geometric["proven"] == 2
    assert geometric["within_1_percent"] == 1
    assert geometric["where"] == "δ = 0: ε = 1"
    assert geometric["worst_at"] == "ε = 1, δ = 0.1"
    assert geometric["worst_percent"] > geometric["median_percent"] > 0
    # Truncated geometric noise needs δ > 0.
    assert summaries["squared", "truncated geometric"]["budgets"] == 1


def describe_baseline_file(tmp_path: Path, share: float) -> list[str]:
    """Return the sentences of a recommendation on a file mine.py with a baseline."""
    path = tmp_path / "mine.py"
    path.write_text(BASELINE_FILE.format(share=share))
    table = wb.recommend(
        answers="0..4",
        max_shift=1,
        epsilon=1,
        loss="error-rate",
        baseline=str(path),
        time_limit=300,
    )
    return [sentence for sentence in table.sentences if sentence.startswith("mine")]


def test_the_distance_of_a_user_defined_function_is_stated_for_every_epsilon(tmp_path: Path):
    (sentence,) = describe_baseline_file(tmp_path, share=0.9)
    assert sentence.startswith("mine: at this budget its expected loss is at most ")
    interval = " % above the proven optimum on the same outputs. For every epsilon in [0.1, 4]"
    assert interval in sentence
    assert "proven between them by monotonicity" in sentence


def test_nothing_is_stated_on_a_baseline_that_is_not_private(tmp_path: Path):
    assert not describe_baseline_file(tmp_path, share=1.1)


@pytest.mark.parametrize("has_time", [False, True])
def test_the_stated_distance_holds_at_every_epsilon_between_the_compared_ones(has_time: bool):
    """The optimum is e^-ε, and the loss 1.07 e^-ε, except that it is larger at ε = 2.

    On [a, b] only the mechanism made for the budget a may be used, because those made for budgets
    in between are not known. The loss is not known for 0.1 < ε < 0.3, and the optimum not at ε = 1.
    """
    compared_epsilons: list[float] = []

    def measure(epsilon: Fraction) -> _LossAndBound:
        """Return the loss and the bound on the optimum at ε, and record that ε was compared."""
        e = float(epsilon)
        compared_epsilons.append(e)
        loss = 1.07 * math.exp(-e) + (0.05 if e == 2 else 0.0)
        if 0.1 < e < 0.3:
            loss = math.inf
        return _LossAndBound(loss, lower=0.0 if e == 1 else math.exp(-e))

    sentence = _describe_every_epsilon(measure, Deadline(None if has_time else 0.0))
    percent = float(sentence.split("at most ")[1].split(" %")[0])
    usable_epsilons = [e for e in compared_epsilons if not 0.1 < e < 0.3]
    for e in np.linspace(0.1, 4, 997):
        # A mechanism that is private at a smaller ε may be used at e.
        best_loss = min(measure(Fraction(a)).loss for a in usable_epsilons if a <= e)
        assert best_loss / math.exp(-e) <= 1 + percent / 100
    # Six compared ε prove little. Many prove hardly more than the largest distance at one of them.
    assert (percent < 100) == has_time


def test_a_function_that_is_private_at_no_other_budget_is_described_so():
    sentence = _describe_every_epsilon(lambda _: _LossAndBound(math.inf, lower=0.0), Deadline())
    assert sentence == "At other budgets it is not private, or its distance is not known."


ERROR_QUERY = {"answers": "0..4", "max_shift": 1, "loss": "error-rate"}


def find_sentence(table: wb.Result, name: str) -> str:
    """Return the one sentence on the distance of a mechanism."""
    (sentence,) = [text for text in table.sentences if text.startswith(f"{name}: at this")]
    return sentence


def test_the_distance_of_a_named_mechanism_holds_at_other_budgets():
    table = wb.recommend(**ERROR_QUERY, epsilon=1, baseline="exponential", time_limit=300)
    sentence = find_sentence(table, "exponential")
    percents = [float(part.split(" %")[0]) for part in sentence.split("at most ")[1:]]
    percent_at_budget, percent_everywhere = percents
    assert "For every epsilon in [0.1, 4]" in sentence
    assert 10 < percent_at_budget <= percent_everywhere < 100
    # The named mechanism is in the table anyway, and not a second time.
    assert [row["class"] for row in table].count("exponential") == 1
    for epsilon in ("0.137", "0.9", "3.21"):
        rows = {row["class"]: row for row in wb.recommend(**ERROR_QUERY, epsilon=epsilon)}
        limit = rows["best channel"]["bound"] * (1 + percent_everywhere / 100)
        assert rows["exponential"]["objective"] <= limit


def test_an_unknown_name_of_a_baseline_is_refused():
    with pytest.raises(wb.InvalidRequest, match="baseline must be one of clamped geometric"):
        wb.recommend(**ERROR_QUERY, epsilon=1, baseline="exponentail")


def test_the_distance_is_from_the_optimum_on_the_outputs_of_the_query():
    """The best channel of the table chooses other outputs and has a smaller loss."""
    query = {"answers": "0..4", "max_shift": 1, "loss": "squared", "epsilon": 1}
    table = wb.recommend(**query, baseline="clamped geometric", time_limit=300)
    sentence = find_sentence(table, "clamped geometric")
    end = " % above the proven optimum on the same outputs"
    percent = float(sentence.split("at most ")[1].split(end)[0])
    rows = {row["class"]: row for row in table}
    loss = rows["clamped geometric"]["objective"]
    optimum = wb.design("channel", **query)
    assert 100 * (loss / optimum.bound - 1) <= percent
    assert percent <= 100 * (loss / optimum.objective - 1) + 0.02
    assert loss > rows["best channel"]["objective"] * (1 + 2 * percent / 100)


def test_the_distance_of_a_published_mechanism_at_every_epsilon_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("workbench.recommendation.published._MAX_COMPARED_EPSILONS", 12)
    assert 0 < _bound_excess_everywhere("labels", "error-rate", "randomized response") < 100


def test_a_mechanism_that_needs_delta_has_no_distance_at_delta_0():
    name = "clamped discrete Gaussian"
    assert _bound_excess_everywhere("labels", "error-rate", name) is None


@pytest.mark.parametrize(
    ("text", "message"), [("x = 1", "function baseline"), ("1/0", "ZeroDivisionError")]
)
def test_a_file_that_defines_no_baseline_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.recommend(answers="0..4", max_shift=1, epsilon=1, baseline=str(path))
