"""Test channels for the worst answer of a range whose neighbours are closer than the whole range.

Loss, bound and privacy are recomputed on a fine grid of answers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from tests.fuzz.queries import least_loss
from workbench.questions.range_query import RangeQuery

# Each cell is divided into this many steps between tested answers.
STEPS_PER_CELL = 16


def evaluate_loss(loss: str, errors: np.ndarray) -> np.ndarray:
    """Evaluate the squared or absolute loss at errors, output minus answer."""
    return errors**2 if loss == "squared" else np.abs(errors)


@pytest.mark.parametrize(
    ("ends", "sensitivity", "cells", "epsilon", "delta", "loss"),
    [
        ((0, 8), "2", 8, "1", "0", "squared"),
        ((-3, 5), "4", 6, "0.5", "0.01", "squared"),
        ((100, 101), "0.3", 10, "3", "1e-6", "squared"),
        ((0, 50), "12.5", 8, "5", "0.3", "squared"),
        ((0, 10), "3.1", 7, "2", "0.1", "squared"),  # The sensitivity is 2.17 cells.
        ((0, 8), "2", 8, "1", "0", "absolute"),
        ((0, 10), "3.1", 7, "0.1", "0.01", "absolute"),
        ((100, 150), "25", 6, "3", "0.3", "absolute"),
        ((0, 10), "9.9", 6, "1", "0", "absolute"),  # All cell ends are neighbours, 0 and 10 not.
    ],
)
def test_bound_privacy_and_loss_agree_with_plain_computations(
    ends, sensitivity, cells, epsilon, delta, loss: str
):
    low, high = ends
    query = RangeQuery(ends, sensitivity=sensitivity, cells=cells, prior="worst")
    design = wb.design(query, loss=loss, epsilon=epsilon, delta=delta)
    width = Fraction(high - low, cells)

    # First the bound. It is the optimum of the cell ends, except that the program lists an output
    # every 1/8 cell.
    positions = np.arange(cells + 1)
    are_neighbours = np.abs(positions[:, None] - positions) <= Fraction(sensitivity) // width
    outputs = np.linspace(0, high - low, 8 * cells + 1)
    losses = evaluate_loss(loss, outputs - positions[:, None] * float(width))
    optimum = least_loss(
        losses, weights=None, near=are_neighbours, query={"epsilon": epsilon, "delta": delta}
    )
    assert 0.9 * optimum - (float(width) / 8) ** 2 < design.bound <= optimum * (1 + 1e-7)

    # Then privacy. The law at an answer is a mixture of the rows of both ends of its cell.
    answer_index = np.arange(STEPS_PER_CELL * cells + 1)
    cell = np.minimum(answer_index // STEPS_PER_CELL, cells - 1)
    share = (answer_index / STEPS_PER_CELL - cell)[:, None]
    rows = design.mechanism.matrix
    laws = (1 - share) * rows[cell] + share * rows[cell + 1]
    hockey_sticks = []
    for distance in range(1, math.floor(Fraction(sensitivity) * STEPS_PER_CELL / width) + 1):
        for p, q in ((laws[:-distance], laws[distance:]), (laws[distance:], laws[:-distance])):
            excess = np.maximum(p - math.exp(float(epsilon)) * q, 0)
            hockey_sticks.append(excess.sum(axis=1).max())
    assert max(hockey_sticks) <= float(delta) + 1e-12

    # Last the loss, at the same answers.
    answers = np.linspace(low, high, answer_index.size)
    listed_outputs = np.array([float(o) for o in design.question.outputs])
    answer_losses = laws * evaluate_loss(loss, listed_outputs - answers[:, None])
    worst_loss = answer_losses.sum(axis=1).max()
    assert worst_loss <= design.objective * (1 + 1e-9)
    assert design.objective == pytest.approx(worst_loss, rel=5e-3)
    assert design.bound < design.objective


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "loss"),
    [("5", "1", "0", "absolute"), ("5", "0.5", "0.01", "squared"), ("5", "3", "0", "squared")],
)
def test_cells_are_refined_until_the_loss_is_within_one_percent_of_the_bound(
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
    cells_per_sensitivity = design.question.cells * Fraction(sensitivity) / 10
    assert cells_per_sensitivity.denominator == 1


def test_a_coarse_grid_comes_first_if_the_sensitivity_is_a_whole_number_of_cells_only_later():
    """A sensitivity of 3.1 in 0..10 is a whole number of cells from 100 cells on."""

    class FirstGridDone(Exception):
        """Raised at the first report of a grid."""

    def stop_at_first_grid(line: str) -> None:
        """Stop the search at a line of its progress such as "8 cells: loss ..."."""
        if " cells: " in line:
            raise FirstGridDone(line)

    query = RangeQuery("0..10", sensitivity="3.1", prior="worst")
    with pytest.raises(FirstGridDone, match=r"^8 cells: loss .*, bound"):
        wb.design(query, loss="absolute", epsilon=1, progress=stop_at_first_grid)
