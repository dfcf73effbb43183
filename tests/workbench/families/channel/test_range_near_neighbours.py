"""The worst answer of a range whose neighbours are less than the range apart: design and bound against a program stated
here, on a finer grid of outputs, and privacy of all pairs of answers of a fine grid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from tests.fuzz.queries import least_loss
from workbench.questions.range_query import RangeQuery

ANSWERS = 16  # of a cell


def of(loss: str, r: np.ndarray) -> np.ndarray:
    return r**2 if loss == "squared" else np.abs(r)


@pytest.mark.parametrize(
    ("range_", "sensitivity", "cells", "epsilon", "delta", "loss"),
    [
        ("0..8", "2", 8, "1", "0", "squared"),
        ("-3..5", "4", 6, "0.5", "0.01", "squared"),
        ("100..101", "0.3", 10, "3", "1e-6", "squared"),
        ("0..50", "12.5", 8, "5", "0.3", "squared"),
        ("0..10", "3.1", 7, "2", "0.1", "squared"),  # between two and three cells
        ("0..8", "2", 8, "1", "0", "absolute"),
        ("0..10", "3.1", 7, "0.1", "0.01", "absolute"),
        ("100..150", "25", 6, "3", "0.3", "absolute"),
        ("0..10", "9.9", 6, "1", "0", "absolute"),  # points are all neighbours, answers not
    ],
)
def test_bound_and_design_are_those_of_a_plain_program(
    range_, sensitivity, cells, epsilon, delta, loss: str
):
    design = wb.design(
        RangeQuery(range_, sensitivity=sensitivity, cells=cells, prior="worst"),
        loss=loss,
        epsilon=epsilon,
        delta=delta,
    )
    low, high = map(int, range_.split(".."))
    budget, h, s = (
        {"epsilon": epsilon, "delta": delta},
        Fraction(high - low, cells),
        Fraction(sensitivity),
    )
    at, outputs = np.arange(cells + 1), np.linspace(0, high - low, 8 * cells + 1)
    near = np.abs(at[:, None] - at) <= math.floor(s / h)
    points = least_loss(of(loss, outputs - at[:, None] * float(h)), None, near, budget)
    assert 0.9 * points - (float(h) / 8) ** 2 < design.bound <= points * (1 + 1e-7)
    rows, published = (
        design.mechanism.matrix,
        np.array([float(o) for o in design.question.outputs]) - low,
    )
    cell, share = np.divmod(np.arange(ANSWERS * cells + 1), ANSWERS)
    cell, share = (
        np.minimum(cell, cells - 1),
        np.where(cell == cells, 1.0, share / ANSWERS)[:, None],
    )
    laws = (1 - share) * rows[cell] + share * rows[cell + 1]
    excess = 0.0
    for apart in range(1, math.floor(s * ANSWERS / h) + 1):
        for p, q in ((laws[:-apart], laws[apart:]), (laws[apart:], laws[:-apart])):
            excess = max(
                excess, float(np.maximum(p - math.exp(float(epsilon)) * q, 0).sum(axis=1).max())
            )
    assert excess <= float(delta) + 1e-12
    x = np.linspace(0, high - low, ANSWERS * cells + 1)
    worst = (laws * of(loss, published - x[:, None])).sum(axis=1).max()
    assert worst <= design.objective * (1 + 1e-9)
    assert design.objective == pytest.approx(worst, rel=5e-3)
    assert design.bound < design.objective


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "loss"),
    [("5", "1", "0", "absolute"), ("5", "0.5", "0.01", "squared"), ("5", "3", "0", "squared")],
)
def test_cells_are_refined_until_they_are_within_one_percent(
    sensitivity: str, epsilon: str, delta: str, loss: str
):
    design = wb.design(
        RangeQuery("0..10", sensitivity=sensitivity, prior="worst"),
        loss=loss,
        epsilon=epsilon,
        delta=delta,
    )
    assert 0.99 * design.objective <= design.bound <= design.objective
    assert "(within 1 %)" in design.words[0]
    assert design.certificate.deciding_audit.dp_delta.upper <= float(delta) * (1 + 1e-12)
    assert (design.question.cells * Fraction(sensitivity) / 10).denominator == 1


def test_a_sensitivity_that_few_cells_divide_has_a_design_of_few_cells_first():
    class Enough(Exception):
        pass

    def told(line: str) -> None:
        if " cells: " in line:
            raise Enough(line)

    query = RangeQuery("0..10", sensitivity="3.1", prior="worst")
    with pytest.raises(Enough, match=r"^8 cells: loss .*, bound"):
        wb.design(query, loss="absolute", epsilon=1, progress=told)
