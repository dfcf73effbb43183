"""Test the exact pieces of a frontier: the smallest loss under PDP as a function of δ, at one ε.

The function is linear on each piece. A piece that is not proven also has a lower bound.
"""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb


def list_pieces(question: Any, epsilon: Any, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of the pieces under PDP at one ε, in increasing order of δ.

    By default, pieces are traced without a time limit ("whole").
    """
    frontier_options = {
        "delta": 0,
        "notion": "pdp",
        "level": "none",
        "baselines": False,
        "whole": True,
    } | options
    result = wb.frontier(question, epsilon=epsilon, **frontier_options)
    return [row for row in result if row["curve"] == "piece"]


def interpolate(pieces: list[dict[str, Any]], delta: float, column: str = "objective") -> float:
    """Return the objective or the bound at a δ. `column` names one of both."""
    piece = next(piece for piece in reversed(pieces) if piece["delta"] <= delta)
    share = (delta - piece["delta"]) / (piece["delta_high"] - piece["delta"])
    return float(piece[column] + share * (piece[f"{column}_high"] - piece[column]))


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
def test_pieces_have_the_losses_of_the_designs(question: Any, epsilon: Any, loss: str) -> None:
    pieces = list_pieces(question, epsilon, loss=loss)
    assert {piece["status"] for piece in pieces} == {"optimal"}
    for delta in (0, 1e-6, 0.003, 0.0123, 0.1212, 0.4, 0.77, 1):
        optimum = wb.design(
            question, notion="pdp", epsilon=epsilon, delta=delta, loss=loss
        ).objective
        assert interpolate(pieces, delta) == pytest.approx(optimum, abs=2e-8 * max(1, optimum))


def test_the_smallest_delta_of_a_loss_is_where_the_pieces_have_this_loss() -> None:
    question = wb.ModuloNoise(n=8, max_shift=3)
    pieces = list_pieces(question, 1.5)
    for max_loss in (0.55, 0.3, 0.05, 0):
        smallest_delta = wb.design(
            question, notion="pdp", epsilon=1.5, minimise="delta", max_loss=max_loss
        ).objective
        assert interpolate(pieces, smallest_delta + 1e-8) <= max_loss + 1e-7
        assert interpolate(pieces, max(0, smallest_delta - 1e-6)) > max_loss - 1e-9


def test_an_unproven_piece_is_an_interval_that_contains_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = wb.ModuloNoise(n=8, max_shift=3)
    optimum = interpolate(list_pieces(question, 1.5), 0.1)
    monkeypatch.setattr("workbench.families.modulo.frontier._MAX_PIECE_SECONDS", 1e-9)
    unproven_pieces = list_pieces(question, 1.5, whole=False)
    assert {piece["status"] for piece in unproven_pieces} == {"not_proven"}
    bound = interpolate(unproven_pieces, delta=0.1, column="bound")
    objective = interpolate(unproven_pieces, delta=0.1)
    assert bound < objective
    assert bound - 1e-9 <= optimum <= objective + 1e-9
