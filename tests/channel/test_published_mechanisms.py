"""Published mechanisms at a budget, and baselines of one's own: least parameters, proven; none missing in silence."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.families.channel.baselines import BASELINES, published
from workbench.families.integer_laws import NAMES, NotApplicable, clamped_table, fitted_laws, masses
from workbench.families.recommendation import Query


def query(answers: str, epsilon: str, delta: str = "0", **more) -> Query:
    notion, loss = more.pop("notion", "dp"), more.pop("loss", "squared")
    question = wb.FiniteQuery(answers, **more)
    return Query(question=question, epsilon=Fraction(epsilon), delta=Fraction(delta), notion=notion, loss=loss)


def hockey_stick(f: np.ndarray, epsilon: float, reach: int) -> float:
    """The largest over all shifts, of a law on a window wide enough."""
    worst = 0.0
    for s in range(1, reach + 1):
        p, q = np.append(f, np.zeros(s)), np.append(np.zeros(s), f)
        worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return worst


@pytest.mark.parametrize("reach", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_least_parameters_spend_the_whole_budget(name: str, reach: int):
    epsilon, delta = Fraction(1, 2), Fraction(1, 100)
    fitted = fitted_laws(name, reach, epsilon, delta, "dp")
    assert all(one.holds() for one in fitted)
    f, cdf = masses(fitted[0].law, 400)
    assert f.sum() == pytest.approx(1)
    assert cdf[400] == pytest.approx(f[:401].sum())
    spent = hockey_stick(f, 0.5, reach)
    if name in ("geometric", "discrete Gaussian"):
        assert spent == pytest.approx(0.01, rel=1e-4)
    elif name == "staircase":
        assert spent == pytest.approx(0, abs=1e-12)
        assert len(fitted) == reach
    else:  # its support is a whole number: one value less on either side is not private
        assert spent <= 0.01
        cut = f.copy()
        cut[[400 - int(fitted[0].value), 400 + int(fitted[0].value)]] = 0
        assert hockey_stick(cut / cut.sum(), 0.5, reach) > 0.01


def test_clamped_rows_are_the_law_summed_beyond_the_ends():
    law = fitted_laws("geometric", 2, Fraction(1), Fraction(0), "pure")[0].law
    alpha, table = float(law.ratio), clamped_table(law, 5)
    direct = np.zeros((5, 5))
    for q in range(5):
        for eta in range(-300, 301):
            direct[q, min(4, max(0, q + eta))] += (1 - alpha) / (1 + alpha) * alpha ** abs(eta)
    assert np.allclose(table, direct, atol=1e-13)


@pytest.mark.parametrize(
    ("asked", "applies"),
    [
        (query("0..300", "1", "1e-5", max_shift=1), set(BASELINES)),
        (query("0..1000", "1", neighbours="all", loss="zero-one"),
         {"clamped geometric", "randomized response"}),
        (query("0..6", "1", "0.01", max_shift=2, notion="pdp", prior="worst"),
         {"clamped geometric", "clamped staircase", "exponential", "randomized response"}),
        (query("a,b,c", "1", "0.2", neighbours="all", loss="zero-one"),
         set(BASELINES)),
    ],
)  # fmt: skip
def test_every_baseline_is_there_or_says_why(asked: Query, applies: set[str]):
    for name in BASELINES:
        if name in applies:
            found = published(asked, name)
            assert found.certified
            assert found.objective > 0
        else:
            with pytest.raises(NotApplicable, match=r"\w+ \w+"):
                published(asked, name)


def test_a_channel_of_a_baseline_costs_what_its_row_says():
    """Clamped discrete Gaussian noise, row by row, at the parameter that was found."""
    asked = query("0..8", "1", "0.05", max_shift=2, prior=[1, 2, 3, 4, 5, 4, 3, 2, 1])
    found = published(asked, "clamped discrete Gaussian")
    eta = np.arange(-60, 61)
    f = np.exp(-(eta**2) / (2 * found.value))
    f /= f.sum()
    prior = np.array([1, 2, 3, 4, 5, 4, 3, 2, 1]) / 25
    cost = sum(p * (f * (np.clip(q + eta, 0, 8) - q) ** 2).sum() for q, p in enumerate(prior))
    assert found.objective == pytest.approx(cost, rel=1e-9)


def test_modulo_frontiers_keep_their_baselines_at_any_size():
    rows = wb.frontier(wb.ModuloNoise(n=200, max_shift=1), epsilon="1", delta="0.001", notion="dp", level="none")
    by = {row["mechanism"]: row for row in rows if row["curve"] == "baseline"}
    assert set(by) == {"data-independent", "geometric", "gaussian", "exponential", "truncated geometric", "staircase"}
    assert all(row["objective"] > 0 for row in by.values())
    small = wb.frontier(
        wb.ModuloNoise(n=12, max_shift=1), epsilon="1", delta="0.001", notion="dp", cost="worst-squared"
    )
    left = [row for row in small if row["curve"] == "baseline"]
    assert left
    assert {row["status"] for row in left} == {"not applicable"}


def test_baselines_of_ones_own(tmp_path: Path):
    (tmp_path / "pmf.csv").write_text("noise,probability\n-1,0.25\n0,0.5\n1,0.25\n")
    (tmp_path / "rows.csv").write_text("0.5,0.5\n0.25,0.75\n")
    given = {"a file": tmp_path / "pmf.csv", "a function": lambda e, d: {0: 1 - d, 1: d}, "raises": lambda e, d: 1 / 0}
    rows = {row["class"]: row for row in wb.recommend(answers="0..4", max_shift=1, epsilon=1, delta="0.3",
                                                      baseline=given)}  # fmt: skip
    assert rows["a file"]["objective"] == pytest.approx((3 * 0.5 + 2 * 0.25) / 5)
    assert rows["a file"]["certified"] is True
    assert rows["best channel"]["objective"] < rows["a file"]["objective"]
    assert "not private at this budget" in rows["a function"]["notes"]
    assert "ZeroDivisionError" in rows["raises"]["notes"]
    matrix = wb.recommend(
        answers="0,1", max_shift=1, epsilon=2, delta=0, baseline=tmp_path / "rows.csv", cost="absolute"
    )
    assert {row["class"]: row["objective"] for row in matrix}["rows"] == pytest.approx(0.375)
    for question, cost in ((wb.ModuloNoise(n=4, max_shift=1), 0.5), (wb.FiniteQuery("0..4", max_shift=1), 0.4)):
        table = wb.frontier(question, epsilon="1", delta="0.3", notion="dp", baseline=tmp_path / "pmf.csv")
        own = next(row for row in table if row["mechanism"] == "pmf")
        assert own["private"] is True
        assert own["objective"] == pytest.approx(cost)
    for bad in ({0: 0.5}, {0.5: 1}, [[1, 0], [1]], "nowhere.csv", 3, {0: -1, 1: 2}):
        with pytest.raises(wb.WorkbenchError):
            wb.recommend(answers="0..4", max_shift=1, epsilon=1, baseline=bad)
