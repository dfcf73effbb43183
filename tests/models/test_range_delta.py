"""Bounds at delta > 0 of a range against the program at (epsilon, delta) itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.oracles.bins import optimal_bins
from models.range_channel import RangeChannel
from models.range_delta import bound_of, bound_of_bins, bound_of_few, bound_of_worst
from solvers.backend import solve
from tests.fuzz.queries import least_loss


def multipliers_of(x, p, outputs, epsilon: float, loss: str) -> np.ndarray:
    every = np.ones((x.size, outputs.size), dtype=bool)
    model = RangeChannel(x, outputs, every, math.expm1(epsilon), loss, p)
    return model.multipliers(solve(model.program()))


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("seed", range(10))
def test_no_bound_is_above_the_program(seed: int, loss: str):
    source = np.random.default_rng(seed)
    k, power = int(source.integers(3, 10 if loss == "absolute" else 7)), 1 if loss == "absolute" else 2
    x = np.sort(source.choice(30, k, replace=False)) / 29
    p = source.dirichlet(np.full(k, float(source.choice([0.5, 2, 20]))))
    if seed % 3 == 0:
        p[source.integers(k)] = 0
        p /= p.sum()
    epsilon, delta = float(source.choice([0.5, 1, 2, 4, 7])), float(source.choice([0.01, 0.1, 0.3, 0.7]))
    outputs = x if power == 1 else np.unique(np.concatenate([x, np.linspace(x[0], x[-1], 15)]))
    table, ratio = np.abs(outputs - x[:, None]) ** power, math.exp(epsilon) * (1 + 1e-12)
    least = least_loss(table, p, np.ones((k, k), dtype=bool), {"epsilon": epsilon, "delta": delta})
    multipliers = multipliers_of(x, p, outputs, epsilon, loss)
    few = bound_of_few(x, p, outputs, loss, ratio, delta)
    assert 0.98 * least <= few <= least * (1 + 1e-6)
    assert 0.5 * least <= bound_of(x, p, outputs, multipliers, loss, ratio, delta) <= least * (1 + 1e-6)
    for _ in range(20):  # whatever the multipliers are
        other = multipliers * source.uniform(-0.5, 1.8, k)
        assert bound_of(x, p, outputs, other, loss, ratio, delta) <= least * (1 + 1e-6)
    bins = optimal_bins(x, p, epsilon, loss)
    assert bound_of_bins(x, p, bins, epsilon, delta, loss) <= least * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_bound_of_narrow_bins_is_below_the_program(loss: str):
    """Among so many bins that the windows about answers decide, and not the range."""
    k, epsilon, delta = (16, 7.0, 0.05) if loss == "absolute" else (14, 12.0, 0.1)
    x, p, power = (np.arange(k) + 0.5) / k, np.full(k, 1 / k), 1 if loss == "absolute" else 2
    outputs = x if power == 1 else np.unique(np.concatenate([x, (x[1:] + x[:-1]) / 2]))
    table = np.abs(outputs - x[:, None]) ** power
    least = least_loss(table, p, np.ones((k, k), dtype=bool), {"epsilon": epsilon, "delta": delta})
    bins = optimal_bins(x, p, epsilon, loss)
    widest = np.abs(x[:, None] - x).max(axis=0).max() ** power
    everywhere = np.abs(table).T @ p - bins.objective
    wide = bins.bound * (1 - delta * float((p * (table.T / everywhere[:, None]).max(axis=0)).sum()))
    proven = bound_of_bins(x, p, bins, epsilon, delta, loss)
    assert widest > 0.8
    assert wide < proven <= least * (1 + 1e-6)
    fine = (np.arange(1 << 14) + 0.5) / (1 << 14)
    bins = optimal_bins(fine, None, 14.0, loss)
    share = bound_of_bins(fine, np.full(fine.size, 1 / fine.size), bins, 14.0, 0.3, loss) / bins.objective
    assert 0.997 * 0.7 < share < 0.7


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_of_many_points_the_loss_is_that_of_the_best_channel_less_delta(epsilon: float, loss: str):
    """(1 - delta) of the least loss at delta = 0, which a channel that publishes answers with probability delta has."""
    k, weights = 36, np.repeat([1.0, 3.0], 18)
    x, p, ratio = (np.arange(k) + 0.5) / k, weights / weights.sum(), math.exp(epsilon) * (1 + 1e-12)
    outputs = x if loss == "absolute" else np.sort(np.concatenate([x, (x[1:] + x[:-1]) / 2]))
    least = multipliers_of(x, p, outputs, epsilon, loss).sum()  # on these outputs
    for delta in (0.01, 0.3):
        few = bound_of_few(x, p, outputs, loss, ratio, delta)
        assert 0.99 * (1 - delta) * least <= few <= (1 - delta) * least * (1 + 1e-6)
        if epsilon == 4:
            proven = bound_of(x, p, outputs, multipliers_of(x, p, outputs, epsilon, loss), loss, ratio, delta)
            assert 0.99 * (1 - delta) * least <= proven <= (1 - delta) * least * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("seed", range(10))
def test_no_bound_for_the_worst_answer_is_above_the_program(seed: int, loss: str):
    source, power = np.random.default_rng(100 + seed), 1 if loss == "absolute" else 2
    for case in range(12):
        k = int(source.integers(2, 7))
        x = np.sort(source.choice(30, k, replace=False)) / 29
        epsilon, delta = float(source.choice([0.5, 1, 2, 4, 7])), float(source.choice([1e-5, 0.01, 0.1, 0.3, 0.7]))
        outputs = np.unique(np.concatenate([x, np.linspace(x[0], x[-1], 9)]))
        table, ratio = np.abs(outputs - x[:, None]) ** power, math.exp(epsilon) * (1 + 1e-12)
        every = np.ones((k, k), dtype=bool)
        least = least_loss(table, None, every, {"epsilon": epsilon, "delta": delta})
        proven = bound_of_few(x, None, outputs, loss, ratio, delta)
        assert 0.95 * least <= proven <= least * (1 + 1e-6)
        apart = np.abs(x[:, None] - outputs)
        narrow = bound_of_few(x, None, outputs, loss, ratio, delta, apart <= source.uniform(0, 0.5))
        assert narrow <= proven * (1 + 1e-6)
        if case < 2:  # under a prior, where A and B are stated near answers alone
            p = source.dirichlet(np.full(k, 2.0))
            least = least_loss(table, p, every, {"epsilon": epsilon, "delta": delta})
            assert bound_of_few(x, p, outputs, loss, ratio, delta, apart <= 0.3) <= least * (1 + 1e-6)


@pytest.mark.parametrize(
    ("loss", "epsilon", "least"),
    [("squared", 2.0, 0.0748), ("squared", 4.0, 0.01829), ("absolute", 3.0, 0.08849)],
)
def test_the_bound_of_the_worst_answer_is_near_a_channel_of_the_range(loss: str, epsilon: float, least: float):
    """least: .7 of what bins cost at delta = 0; a plain program on 13 answers and 49 outputs is within .4 % of it."""
    x = np.linspace(0, 1, 25)
    prior = np.where((x == 0) | (x == 1), 9.0, 1.0)
    assert 0.985 * least < bound_of_worst(x, prior / prior.sum(), epsilon, 0.3, loss) < least * 1.002
