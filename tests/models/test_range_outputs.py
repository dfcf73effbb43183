"""Outputs for the worst answer of [0, 1]: losses, slopes and the limit against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.range_channel import RangeChannel
from models.range_outputs import Limit, _slopes, by_masses, level, losses, spread
from solvers.backend import solve


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_losses_and_slopes_are_those_of_the_definition(loss: str):
    source, own, q, power = np.random.default_rng(3), 4, 30.0, 1 if loss == "absolute" else 2
    o = np.sort(source.uniform(0, 1, 23))
    x, G, W = losses(o, own, q, loss)
    assert [*x] == [0, *((o[:-own] + o[own:]) / 2), 1]
    gaps = np.abs(o - x[:, None]) ** power
    total = o.size + q * own
    assert gaps.sum(axis=1) / total == pytest.approx(G)
    assert q * np.sort(gaps, axis=1)[:, :own].sum(axis=1) / total == pytest.approx(W)
    o, step = (o + 1 - o[::-1]) / 2, 1e-7  # of which the last move as the first do
    _, G, W = losses(o, own, q, loss)
    for size in (11, 5):  # all, or those near the ends
        slopes = _slopes(o, size, own, q, loss)
        assert slopes.shape == (size + 1, size)
        for j in range(size):
            moved = o.copy()
            moved[[j, -1 - j]] += step, -step
            grown = np.add(*losses(moved, own, q, loss)[1:]) - (G + W)
            assert grown[: size + 1] / step == pytest.approx(slopes[:, j], abs=1e-4)


@pytest.mark.parametrize(("loss", "epsilon"), [("absolute", 9), ("squared", 16)])
def test_the_limit_is_level_and_outputs_come_near_it(loss: str, epsilon: int):
    q = math.expm1(epsilon)
    limit = Limit.of(q, loss)
    assert limit.density.mean() == pytest.approx(limit.bins)
    assert limit.prior.min() >= 0
    assert limit.prior.mean() == pytest.approx(1, rel=1e-3)
    x = (np.arange(limit.density.size) + 0.5) / limit.density.size
    power, w = (1, 1 / 4) if loss == "absolute" else (2, 1 / 12)
    G = (np.abs(x[::64, None] - x) ** power * limit.density).mean(axis=1) / (limit.bins + q)
    each = G + q * w / (limit.bins + q) / limit.density[::64] ** power
    assert each.max() == pytest.approx(each.min(), rel=1e-3)
    outputs = spread(limit, 16, q, loss)
    moved = level(outputs, 16, q, loss)
    before, after = (sum(losses(o, 16, q, loss)[1:]).max() for o in (outputs, moved))
    assert after < before < each.max() * 1.05
    assert after < each.max() * 1.015
    assert np.all(np.diff(moved) >= 0)
    assert moved == pytest.approx(1 - moved[::-1], abs=1e-12)


@pytest.mark.parametrize(("loss", "epsilon"), [("absolute", 2), ("squared", 3), ("absolute", 5), ("squared", 5)])
def test_outputs_of_a_mirrored_program_cost_little_more_than_it(loss: str, epsilon: int):
    """The program of points of a half is that of all; its outputs, moved, cost hardly more than what it proves."""
    q, x = math.expm1(epsilon), np.linspace(0, 1, 65)
    outputs, half = x if loss == "absolute" else np.linspace(0, 1, 129), x[:33]
    every = np.ones((x.size, outputs.size), dtype=bool)
    whole, folded = (
        RangeChannel(x, outputs, every, q, loss),
        RangeChannel(half, outputs, every[:33], q, loss, None, True),
    )
    least, solution = (solve(model.program()) for model in (whole, folded))
    assert solution.objective == pytest.approx(least.objective, rel=1e-7)
    t, multipliers = folded.least(solution), folded.both(folded.multipliers(solution)) / 2
    assert t == pytest.approx(t[::-1])
    assert multipliers.sum() == pytest.approx(least.objective, rel=1e-6)
    assert folded.both(folded.prior(solution)).sum() == pytest.approx(2)
    own, o, (places, below) = by_masses(outputs, t, q, loss)
    assert 0.75 * o.size < own * below[-1] <= o.size  # half the masses at the ends are beyond
    assert np.all(np.diff(below) >= 0)
    assert [places[0], places[-1]] == [0, 1]
    worst = max(np.add(*losses(o, own, q, loss)[1:]))
    assert least.objective <= worst * (1 + 1e-9)
    assert worst <= least.objective * 1.01
