"""Bounds at delta > 0 of a range against the program at (epsilon, delta) itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.oracles.bins import optimal_bins
from models.range_channel import RangeChannel
from models.range_delta import bound_of, share_lost
from solvers.backend import solve
from tests.fuzz.queries import least_loss


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("seed", range(8))
def test_no_bound_is_above_the_program(seed: int, loss: str):
    source = np.random.default_rng(seed)
    k, power = int(source.integers(3, 6)), 1 if loss == "absolute" else 2
    x = np.sort(source.choice(30, k, replace=False)) / 29
    p = source.dirichlet(np.full(k, 2.0))
    epsilon, delta = float(source.choice([0.5, 1, 2, 4])), float(source.choice([0.01, 0.1, 0.3, 0.7]))
    outputs = x if power == 1 else np.linspace(x[0], x[-1], 15)
    if power == 2:
        outputs = np.unique(np.concatenate([outputs, x]))
    table = np.abs(outputs - x[:, None]) ** power
    least = least_loss(table, p, np.ones((k, k), dtype=bool), {"epsilon": epsilon, "delta": delta})
    q, every = math.expm1(epsilon), np.ones((k, outputs.size), dtype=bool)
    model = RangeChannel(x, np.arange(k), outputs, every, q, loss, p)
    multipliers = model.multipliers(solve(model.program()))
    proven = bound_of(p[:, None] * table, multipliers, math.exp(epsilon) * (1 + 1e-12), delta)
    assert 0.8 * least <= proven <= least * (1 + 1e-6)
    for _ in range(20):  # whatever the multipliers are
        other = multipliers * source.uniform(-0.5, 1.8, k)
        assert bound_of(p[:, None] * table, other, math.exp(epsilon) * (1 + 1e-12), delta) <= least * (1 + 1e-6)
    bins = optimal_bins(x, p, epsilon, loss)
    assert bins.bound - delta * bins.objective * share_lost(x, p, bins.objective, loss) <= least * (1 + 1e-6)


def test_of_many_points_the_loss_is_that_of_the_best_channel_less_delta():
    """(1 - delta) of the least loss at delta = 0, which a channel that publishes answers with probability delta has."""
    k, epsilon = 60, 3.0
    x, p = (np.arange(k) + 0.5) / k, np.full(k, 1 / k)
    model = RangeChannel(x, np.arange(k), x, np.ones((k, k), dtype=bool), math.expm1(epsilon), "absolute", p)
    multipliers = model.multipliers(solve(model.program()))
    least = optimal_bins(x, p, epsilon, "absolute").objective
    assert multipliers.sum() == pytest.approx(least, rel=1e-7)
    costs = p[:, None] * np.abs(x - x[:, None])
    for delta in (0.01, 0.3):
        proven = bound_of(costs, multipliers, math.exp(epsilon), delta)
        assert 0.98 * (1 - delta) * least <= proven <= (1 - delta) * least
