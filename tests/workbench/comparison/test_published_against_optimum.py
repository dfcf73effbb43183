"""Published mechanisms over proven optima: none below a bound, exact where the optimum is known, own ones as well."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.comparison.published import SETTINGS, compared, summary

MINE = """
import math


def baseline(epsilon, delta):
    r = math.exp(-{share} * epsilon)
    return [[r ** abs(k - q) * (1 if k in (0, 4) else 1 - r) / (1 + r) for k in range(5)] for q in range(5)]
"""


def rows(name: str, epsilon: str, delta: str) -> dict[tuple[str, str], dict]:
    found = compared(name, [Fraction(epsilon)], [Fraction(delta)])
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
    assert pure["absolute", "staircase (pure)"]["most_percent"] == 0
    assert pure["squared", "Laplace"]["most_percent"] > 1000
    assert rows("integers", "1", "0")["absolute", "geometric"]["most_percent"] == pytest.approx(0, abs=1e-6)
    assert rows("labels", "0.5", "0.01")["error-rate", "randomized response"]["most_percent"] == pytest.approx(
        0, abs=1e-6
    )
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
    summed = {(row["loss"], row["mechanism"]): row for row in summary("integers", every)}
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
    found = wb.recommend(answers="0..4", max_shift=1, epsilon=1, loss="error-rate", baseline=str(path), time_limit=60)
    return [words for words in found.sentences if words.startswith("mine")]


def test_a_mechanism_of_ones_own_is_measured_along_epsilon(tmp_path: Path):
    (words,) = sentence(tmp_path, 0.9)
    assert words.startswith("mine: at most ")
    assert "above the proven optimum at this budget; at most " in words
    assert "at 6 budgets with epsilon in [0.1, 4]." in words
    assert 0 < float(words.split("at most ")[1].split(" %")[0]) < 20
    assert not sentence(tmp_path, 1.1)  # not private here


def test_a_file_without_a_baseline_is_refused(tmp_path: Path):
    path = tmp_path / "mine.py"
    for text, message in (("x = 1", "function baseline"), ("1/0", "ZeroDivisionError")):
        path.write_text(text)
        with pytest.raises(wb.InvalidRequest, match=message):
            wb.recommend(answers="0..4", max_shift=1, epsilon=1, baseline=str(path))
