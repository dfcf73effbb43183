"""Channels for real answers on a range: their cost against an integral, their bound against other channels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.families.channel.range import _Cells, on_range
from workbench.families.recommendation import RealQuery


def query(low, high, sensitivity=None, loss="squared", epsilon=1, delta="0") -> RealQuery:
    width = Fraction(high) - Fraction(low)
    reach = width if sensitivity is None else Fraction(sensitivity)
    return RealQuery(
        low=Fraction(low), high=Fraction(high), sensitivity=reach, loss=loss, epsilon=Fraction(epsilon),
        delta=Fraction(delta),
    )  # fmt: skip


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_cost_is_the_mean_over_real_answers(loss: str):
    cells = _Cells(query(-1, 5, loss=loss), 6)
    design = cells.design(cells.far)
    outputs = np.array([float(o) for o in design.question.outputs])
    x = (np.arange(60_000) + 0.5) / 60_000 * 6 - 1
    error = np.abs(outputs[None, :] - x[:, None]) ** (2 if loss == "squared" else 1)
    rows = design.mechanism.matrix[np.floor(x + 1).astype(int)]
    exact = float(cells.cost(design.mechanism, design.question.outputs))
    assert exact == pytest.approx((rows * error).sum(axis=1).mean(), rel=1e-6)


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_one_randomised_bit_is_between_bound_and_cost_or_above(loss: str, epsilon: str):
    """Is x in the upper half, by randomised response: outputs at each half's best point, found on a grid here."""
    value = on_range(query(0, 1, loss=loss, epsilon=epsilon))
    right = math.exp(float(epsilon)) / (1 + math.exp(float(epsilon)))
    x, o = (np.arange(2000) + 0.5) / 2000, np.linspace(0, 1, 2001)[:, None]
    power = 2 if loss == "squared" else 1
    weights = np.where(x < 0.5, right, 1 - right)
    bit = 2 * (weights * np.abs(o - x) ** power).mean(axis=1).min()
    assert value.certified
    assert 0 < value.bound <= value.objective <= value.bound / 0.99
    assert value.bound <= bit * (1 + 1e-6)
    assert value.objective <= bit * 1.01


def test_neighbours_within_a_sensitivity():
    value = on_range(query(0, 10, sensitivity=3, epsilon=1))
    everyone = on_range(query(0, 10, epsilon=1))
    assert value.bound <= value.objective <= value.bound / 0.99
    assert value.objective < everyone.objective
    assert _Cells(query(0, 10, sensitivity=3), 8).near == 2
    assert _Cells(query(0, 10, sensitivity=3), 8).far == 3
    uneven = on_range(query(0, 10, sensitivity="3.1", epsilon=1))  # which few cells do not divide
    assert uneven.bound <= uneven.objective
    assert "not proven within 1 %" in uneven.parameter


def test_a_range_that_is_shifted_and_scaled_costs_the_same():
    first, second = on_range(query(0, 1)), on_range(query(-100, 300))
    assert second.objective == pytest.approx(400**2 * first.objective, rel=1e-6)
    table = wb.recommend(range="-100..300", epsilon=1)
    assert table[0]["class"] == "channel on a grid"
    assert table[0]["objective"] == pytest.approx(second.objective, rel=1e-12)
