"""What linear programs of tangents hand back fits the program it is an answer to, whatever columns that one has."""

from __future__ import annotations

import math

import numpy as np
import pytest

import workbench as wb
from models.channel import ChannelModel
from models.modulo import MASS_SCALE
from models.requirements import HOCKEY_STICK, POWER_CONE, Bound
from solvers.backend import solve
from workbench.families.tangent_cuts import Tangents, polish, row_columns


def test_an_answer_from_inside_has_the_columns_of_its_program():
    losses = np.array([[0.0, 1.0], [1.0, 0.0]])
    numbers = np.arange(2.0)

    def model(bounds: dict) -> ChannelModel:
        return ChannelModel(numbers, numbers, np.array([0.5, 0.5]), losses, (), bounds=bounds, scale=MASS_SCALE)

    pairs = [(0, 1), (1, 0)]
    bounds = {pair: [Bound(POWER_CONE, 2.0, math.exp(0.5))] for pair in pairs}
    first = solve(model(bounds).program, solver="cvxpy:clarabel")
    plain = model({pair: [] for pair in pairs}).program
    tangents = Tangents(plain, {pair: row_columns(plain, pair) for pair in pairs})
    assert first.x.size > plain.shape[1]
    equal = Bound(HOCKEY_STICK, 1.0, 0.0)  # always named as broken: the point inside is handed back
    answer, _ = polish(first, tangents, bounds, lambda *_: [equal], lambda program: solve(program, solver="highs"))
    assert answer.x.size == answer.program.shape[1]
    assert np.isfinite(answer.objective)


@pytest.mark.parametrize(("k", "epsilon", "loss"), [(4, "1.1986", "squared"), (6, "1.3513", "squared")])
def test_linear_programs_answer_where_cones_find_no_point(k: int, epsilon: str, loss: str):
    """Clarabel ends these by InsufficientProgress, at every tolerance."""
    made = wb.design(wb.Labels(range(k)), epsilon=epsilon, alpha=8, notion="renyi", method="lp", loss=loss)
    assert made.private
    assert made.bound is not None
    assert made.bound <= made.objective <= made.bound * (1 + 1e-6)
