"""The exact pieces of a frontier over δ: the value of the designs, read backwards the least δ."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb


def pieces(question: Any, epsilon: Any, **options: Any) -> list[dict[str, Any]]:
    """Those under PDP at one ε."""
    given = {
        "delta": 0,
        "notion": "pdp",
        "level": "none",
        "baselines": False,
        "whole": True,
    } | options
    return [
        row for row in wb.frontier(question, epsilon=epsilon, **given) if row["curve"] == "piece"
    ]


def at(rows: list[dict[str, Any]], delta: float, what: str = "objective") -> float:
    """The value, or the bound, at a δ."""
    row = next(row for row in rows[::-1] if row["delta"] <= delta)
    share = (delta - row["delta"]) / (row["delta_high"] - row["delta"])
    return float(row[what] + share * (row[f"{what}_high"] - row[what]))


@pytest.mark.parametrize(
    ("question", "epsilon", "loss"),
    [
        (wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), 1.5, "error-rate"),
        (wb.ModuloNoise(n=6, shifts=[1, 2]), 1, "squared"),
        (wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), 1, "error-rate"),
        (wb.ModuloNoise(n=6, shifts=[4], directed=True), 5, "error-rate"),
        (wb.ModuloNoise(n=4, shifts=[2], directed=True), "1.187006032252775", "error-rate"),
    ],
)
def test_they_are_the_value_of_the_designs(question: Any, epsilon: Any, loss: str) -> None:
    rows = pieces(question, epsilon, loss=loss)
    assert {row["status"] for row in rows} == {"optimal"}
    for delta in (0, 1e-6, 0.003, 0.0123, 0.1212, 0.4, 0.77, 1):
        made = wb.design(question, notion="pdp", epsilon=epsilon, delta=delta, loss=loss)
        assert at(rows, delta) == pytest.approx(made.objective, abs=2e-8 * max(1, made.objective))


def test_read_backwards_they_are_the_least_delta() -> None:
    question = wb.ModuloNoise(n=8, max_shift=3)
    rows = pieces(question, 1.5)
    for error in (0.55, 0.3, 0.05, 0):
        made = wb.design(question, notion="pdp", epsilon=1.5, minimise="delta", max_loss=error)
        assert at(rows, made.objective + 1e-8) <= error + 1e-7
        assert at(rows, max(0, made.objective - 1e-6)) > error - 1e-9


def test_an_unproven_piece_is_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    question = wb.ModuloNoise(n=8, max_shift=3)
    truth = at(pieces(question, 1.5), 0.1)
    monkeypatch.setattr("workbench.families.modulo.frontier._MAX_PIECE_SECONDS", 1e-9)
    late = pieces(question, 1.5, whole=False)
    assert {row["status"] for row in late} == {"not_proven"}
    assert at(late, delta=0.1, what="bound") < at(late, 0.1)
    assert at(late, delta=0.1, what="bound") - 1e-9 <= truth <= at(late, 0.1) + 1e-9
