"""Published mechanisms at a budget, and baselines of one's own: least parameters, proven; none missing in silence."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.errors import NotApplicable
from workbench.exact.integer_law import IntegerLaw
from workbench.families.channel.family import FAMILY as CHANNEL
from workbench.families.channel.published import PUBLISHED
from workbench.pipeline.integer_laws import (
    LAW_NAMES,
    compute_clamped_rows,
    compute_masses,
    fit_laws,
)
from workbench.pipeline.published import index_by_name, published_for
from workbench.pipeline.recommendation import Query
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim

ENTRIES = index_by_name(PUBLISHED)
PLANAR = {"planar Laplace, remapped", "planar exponential"}


def query(answers: str, epsilon: str, delta: str = "0", **more) -> Query:
    notion, loss = more.pop("notion", "dp"), more.pop("loss", "squared")
    question = wb.FiniteQuery(answers, **more)
    return Query(
        question=question,
        claim=Claim(notion, Fraction(epsilon), Fraction(delta)),
        aim=Aim(loss=loss),
    )


def hockey_stick(f: np.ndarray, epsilon: float, reach: int) -> float:
    """The largest over all shifts, of a law on a window wide enough."""
    worst = 0.0
    for s in range(1, reach + 1):
        p, q = np.append(f, np.zeros(s)), np.append(np.zeros(s), f)
        worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return worst


@pytest.mark.parametrize("reach", [1, 3])
@pytest.mark.parametrize("name", LAW_NAMES)
def test_least_parameters_spend_the_whole_budget(name: str, reach: int):
    epsilon, delta = Fraction(1, 2), Fraction(1, 100)
    if (name, reach) == ("staircase", 1):
        with pytest.raises(NotApplicable, match="it equals geometric noise"):
            fit_laws(name, reach, epsilon, delta, "dp")
        return
    fitted = fit_laws(name, reach, epsilon, delta, "dp")
    assert all(one.is_private() for one in fitted)
    f = compute_masses(fitted[0].law, -400, 400)
    assert f.sum() == pytest.approx(1)
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
    law = fit_laws("geometric", 2, Fraction(1), Fraction(0), "pure")[0].law
    alpha, table = float(law.ratio), np.array([*compute_clamped_rows(law, 5)])
    direct = np.zeros((5, 5))
    for q in range(5):
        for eta in range(-300, 301):
            direct[q, min(4, max(0, q + eta))] += (1 - alpha) / (1 + alpha) * alpha ** abs(eta)
    assert np.allclose(table, direct, rtol=1e-12, atol=0)


@pytest.mark.parametrize("epsilon", [1, 20, 40, 300])
@pytest.mark.parametrize("prior", [None, "worst"])
def test_losses_keep_their_digits_at_large_epsilon(epsilon: int, prior: str | None):
    """Clamped geometric noise and randomized response in rationals, whose masses off the diagonal may be 1e-130."""
    alpha = fit_laws("geometric", 1, Fraction(epsilon), Fraction(0), "dp")[0].law.ratio
    asked = query("0..10", str(epsilon), max_shift=1, prior=prior)

    def mass(q: int, j: int) -> Fraction:
        return alpha ** abs(j - q) / (1 + alpha) * (1 if j in (0, 10) else 1 - alpha)

    each = [sum(mass(q, j) * (j - q) ** 2 for j in range(11)) for q in range(11)]
    assert sum(mass(3, j) for j in range(11)) == 1
    assert ENTRIES["clamped geometric"].make_reference(asked).objective == float(
        max(each) if prior else sum(each) / 11
    )
    response = ENTRIES["randomized response"].make_reference(asked)
    own = response.mechanism.rows[0]
    rest = Fraction(own.integers[1], own.total)
    spread = [sum((j - q) ** 2 for j in range(11)) for q in range(11)]
    assert response.objective == float(rest * max(spread) if prior else rest * sum(spread) / 11)


@pytest.mark.parametrize("delta", ["0", "1e-9", "0.1"])
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
def test_nothing_published_is_ranked_below_a_proven_bound_of_its_class(epsilon: str, delta: str):
    for loss in ("squared", "absolute", "error-rate"):
        for given in ({"max_shift": 1}, {"neighbours": "all"}):
            rows = wb.recommend(answers="0..5", epsilon=epsilon, delta=delta, loss=loss, **given)
            bounds = {row["class"]: row["bound"] or 0.0 for row in rows}
            within = [
                row for row in rows if row["objective"] is not None and row["class"] != "RR-on-Bins"
            ]
            assert len(within) > 3
            for row in within:
                assert row["objective"] >= bounds["best channel"], (loss, given, row["class"])
                if row["class"].startswith("clamped"):
                    assert row["objective"] >= bounds["integer noise, clamped"], (
                        loss,
                        given,
                        row["class"],
                    )
    for question, loss in (
        (wb.IntegerNoise(1), "squared"),
        (wb.IntegerNoise(2, clamp=(0, 6)), "absolute"),
    ):
        rows = wb.frontier(question, epsilon=epsilon, delta=delta, notion="dp", loss=loss)
        bounds = [
            row["bound"] for row in rows if row["curve"] == "point" and row.get("bound") is not None
        ]
        losses = [
            row["objective"]
            for row in rows
            if row["curve"] == "baseline" and row.get("objective") is not None
        ]
        assert losses
        assert min(losses) >= max(bounds, default=0.0)


def test_noise_beside_integer_noise_is_told_at_any_epsilon():
    """From ε = 37 on, 1 - e^-ε is 1 in floats."""
    rows = wb.frontier(wb.IntegerNoise(1), epsilon="40", delta="0", notion="dp", loss="squared")
    alpha = fit_laws("geometric", 1, Fraction(40), Fraction(0), "dp")[0].law.ratio
    (geometric,) = (row for row in rows if row["mechanism"] == "geometric")
    assert geometric["objective"] == float(2 * alpha / (1 - alpha) ** 2)


def test_a_scan_reaches_the_least_parameter_of_large_budgets():
    rows = wb.frontier(
        wb.ModuloNoise(n=8, max_shift=1),
        epsilon="20",
        delta="0",
        notion="dp",
        loss="squared",
        level="none",
    )
    (scanned,) = (row for row in rows if row["mechanism"] == "geometric")
    least = ENTRIES["clamped geometric"].make_reference(query("0..8", "20", max_shift=1)).objective
    assert scanned["objective"] == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize(
    ("asked", "applies"),
    [
        (
            query("0..300", "1", "1e-5", max_shift=1),
            set(ENTRIES) - PLANAR - {"permute-and-flip", "clamped staircase"},
        ),
        (
            query("0..1000", "1", neighbours="all", loss="error-rate"),
            {"clamped geometric", "randomized response"},
        ),
        (
            query("0..6", "1", "0.01", max_shift=2, notion="pdp", prior="worst"),
            {
                "clamped geometric",
                "clamped staircase",
                "exponential",
                "permute-and-flip",
                "randomized response",
            },
        ),
        (query("a,b,c", "1", "0.2", neighbours="all", loss="error-rate"), {"randomized response"}),
    ],
)
def test_every_baseline_is_there_or_says_why(asked: Query, applies: set[str]):
    assert {entry.name for entry in published_for(asked, CHANNEL)} == {*ENTRIES} - PLANAR
    for name in ENTRIES:
        if name in applies:
            found = ENTRIES[name].make_reference(asked)
            assert found.is_certified
            assert found.objective > 0
        else:
            with pytest.raises(NotApplicable, match=r"\w+ \w+"):
                ENTRIES[name].make_reference(asked)


def test_a_channel_of_a_baseline_costs_what_its_row_says():
    """Clamped discrete Gaussian noise, row by row, at the parameter that was found."""
    asked = query("0..8", "1", "0.05", max_shift=2, prior=[1, 2, 3, 4, 5, 4, 3, 2, 1])
    found = ENTRIES["clamped discrete Gaussian"].make_reference(asked)
    eta = np.arange(-60, 61)
    f = np.exp(-(eta**2) / (2 * found.value))
    f /= f.sum()
    prior = np.array([1, 2, 3, 4, 5, 4, 3, 2, 1]) / 25
    loss = sum(p * (f * (np.clip(q + eta, 0, 8) - q) ** 2).sum() for q, p in enumerate(prior))
    assert found.objective == pytest.approx(loss, rel=1e-9)


def test_modulo_frontiers_keep_their_baselines_at_any_size():
    rows = wb.frontier(
        wb.ModuloNoise(n=200, max_shift=1), epsilon="1", delta="0.001", notion="dp", level="none"
    )
    by = {row["mechanism"]: row for row in rows if row["curve"] == "baseline"}
    assert set(by) == {
        "data-independent",
        "geometric",
        "gaussian",
        "exponential",
        "truncated geometric",
        "staircase",
    }
    assert (
        by.pop("staircase")["failure"] == "for neighbours one step apart it equals geometric noise"
    )
    assert all(row["objective"] > 0 for row in by.values())
    small = wb.frontier(
        wb.ModuloNoise(n=12, max_shift=1),
        epsilon="1",
        delta="0.001",
        notion="dp",
        loss="worst-squared",
    )
    left = [row for row in small if row["curve"] == "baseline"]
    assert left
    assert {row["status"] for row in left} == {"not applicable"}


def test_baselines_of_ones_own(tmp_path: Path):
    (tmp_path / "pmf.csv").write_text("noise,probability\n-1,0.25\n0,0.5\n1,0.25\n")
    (tmp_path / "rows.csv").write_text("0.5,0.5\n0.25,0.75\n")
    given = {
        "a file": tmp_path / "pmf.csv",
        "a function": lambda e, d: {0: 1 - d, 1: d},
        "raises": lambda e, d: 1 / 0,
    }
    rows = {
        row["class"]: row
        for row in wb.recommend(answers="0..4", max_shift=1, epsilon=1, delta="0.3", baseline=given)
    }
    assert rows["a file"]["objective"] == pytest.approx((3 * 0.5 + 2 * 0.25) / 5)
    assert rows["a file"]["certified"] is True
    assert rows["best channel"]["objective"] < rows["a file"]["objective"]
    assert "not private at this budget" in rows["a function"]["notes"]
    assert "ZeroDivisionError" in rows["raises"]["notes"]
    matrix = wb.recommend(
        answers="0,1",
        max_shift=1,
        epsilon=2,
        delta=0,
        baseline=tmp_path / "rows.csv",
        loss="absolute",
    )
    assert {row["class"]: row["objective"] for row in matrix}["rows"] == pytest.approx(0.375)
    for question, loss in (
        (wb.ModuloNoise(n=4, max_shift=1), 0.5),
        (wb.FiniteQuery("0..4", max_shift=1), 0.4),
    ):
        table = wb.frontier(
            question, epsilon="1", delta="0.3", notion="dp", baseline=tmp_path / "pmf.csv"
        )
        own = next(row for row in table if row["mechanism"] == "pmf")
        assert own["private"] is True
        assert own["objective"] == pytest.approx(loss)
    for bad in ({0: 0.5}, {0.5: 1}, [[1, 0], [1]], "nowhere.csv", 3, {0: -1, 1: 2}):
        with pytest.raises(wb.WorkbenchError):
            wb.recommend(answers="0..4", max_shift=1, epsilon=1, baseline=bad)


def flipped(weights: list[Fraction]) -> list[Fraction]:
    """Permute-and-flip as it is defined: answers in every order, the first whose coin shows heads."""
    shares = [Fraction(0)] * len(weights)
    for order in permutations(range(len(weights))):
        left = Fraction(1, math.factorial(len(weights)))
        for j in order:
            shares[j] += left * weights[j]
            left *= 1 - weights[j]
    return shares


def test_permute_and_flip_is_its_definition():
    asked = query("0..4", "1", max_shift=2)
    found = ENTRIES["permute-and-flip"].make_reference(asked)
    ratio = Fraction(found.value)
    for i, row in enumerate(found.mechanism.rows):
        law = flipped([ratio ** abs(i - j) for j in range(5)])
        assert [float(m) for m in law] == pytest.approx(row.floats.tolist(), rel=1e-9)
    assert found.value == pytest.approx(
        math.exp(-1 / 4), abs=0.2
    )  # ε over twice the sensitivity, or less
    assert wb.audit(found.mechanism, 1).pure_epsilon <= 1


@pytest.mark.parametrize(
    "law",
    [
        IntegerLaw(0, [1], 1, Fraction(8, 11)),
        IntegerLaw(-2, [1, 2, 5, 2, 1]),
        IntegerLaw(-3, [1, 2, 3, 4, 3, 2, 1], 2, Fraction(1, 7)),
    ],
)
def test_clamped_rows_in_rationals_are_those_of_the_law(law: IntegerLaw):
    assert [[*row] for row in compute_clamped_rows(law, 10, Fraction)] == [
        [*law.clamp(-q, 9 - q)] for q in range(10)
    ]
