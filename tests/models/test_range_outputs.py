"""Outputs for the worst answer of [0, 1]: losses, slopes and the limit against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.range_outputs import Limit, _slopes, level, losses, spread


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
    size, step = 11, 1e-7
    slopes = _slopes(o, size, own, q, loss).toarray()
    for j in range(size):
        moved = o.copy()
        moved[j] += step
        assert (losses(moved, own, q, loss)[2][:size] - W[:size]) / step == pytest.approx(slopes[:, j], abs=1e-4)


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
    assert np.all(np.diff(moved) >= 0)
    assert moved == pytest.approx(1 - moved[::-1], abs=1e-3)
