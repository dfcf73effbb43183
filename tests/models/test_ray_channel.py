"""Extreme rays of the cone of one output's masses, and the least loss of a channel by them, against plain programs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from models.ray_channel import RayChannel, least


@pytest.mark.parametrize(("n", "w"), [(2, 1), (6, 1), (7, 2), (9, 3), (8, 5), (10, 4), (5, 4)])
@pytest.mark.parametrize("ratio", [1.1, 2.0, 30.0])
def test_the_least_ray_costs_as_much_as_the_least_column_of_a_program(n: int, w: int, ratio: float) -> None:
    r = np.random.default_rng(n + 7 * w).normal(size=(n, 4))
    values, steps = least(r, w, ratio)
    near = [(i, j) for i in range(n) for j in range(n) if i != j and abs(i - j) <= w]
    rows = np.array([np.eye(n)[i] - ratio * np.eye(n)[j] for i, j in near])
    for column, value, k in zip(r.T, values, steps.T, strict=True):
        found = linprog(column, rows, np.zeros(len(rows)), np.eye(n)[:1], [1.0])
        assert value == pytest.approx(found.fun, rel=1e-8, abs=1e-8)
        v = ratio ** k.astype(float)
        assert column @ v == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert (rows @ v <= 1e-9 * v.max()).all()


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("worst", [True, False])
def test_the_least_loss_is_that_of_a_program(worst: bool, squared: bool) -> None:
    """Of seven points, on a fine grid of outputs; both ends of the interval."""
    n, w, epsilon = 7, 2, 1.5
    x, outputs, eye = np.arange(n) / (n - 1), np.linspace(0, 1, 25), sp.csr_array(sp.eye_array(n))
    prior = np.arange(1.0, n + 1) / 28
    means = eye if worst else sp.csr_array(prior[None])
    model = RayChannel(x, x, eye, means, eye, squared, 0.0, w, epsilon, outputs)
    point = model.solve(1e-9)
    assert point is not None
    table, m = np.abs(outputs - x[:, None]) ** (1 + squared), outputs.size
    rows = [
        np.kron(np.eye(n)[i] - math.exp(epsilon) * np.eye(n)[j], np.eye(m)[o])
        for i in range(n) for j in range(n) if i != j and abs(i - j) <= w for o in range(m)
    ]  # fmt: skip
    losses = np.stack([np.kron(np.eye(n)[i], table[i]) for i in range(n)])
    losses = losses if worst else (prior @ losses)[None]
    above = np.vstack([np.hstack([rows, np.zeros((len(rows), 1))]), np.hstack([losses, -np.ones((len(losses), 1))])])
    sums = np.hstack([np.kron(np.eye(n), np.ones(m)), np.zeros((n, 1))])
    found = linprog(np.eye(n * m + 1)[-1], above, np.zeros(len(above)), sums, np.ones(n))
    step = squared / 24**2 / 4
    proven = model.proven(point, outputs)
    assert found.fun - step - 1e-6 <= proven + step <= found.fun + step + 1e-9
    assert found.fun - step - 1e-9 <= point.objective <= found.fun + 1e-9  # its outputs are real numbers
    masses = model.rays(point.columns.steps) * point.shares
    np.testing.assert_allclose(masses.sum(axis=1), 1, atol=1e-7)


def test_multipliers_prove_something_whatever_they_are() -> None:
    x, eye = np.arange(6) / 5, sp.csr_array(sp.eye_array(6))
    model = RayChannel(x, x, eye, sp.csr_array(np.full((1, 6), 1 / 6)), eye, False, 0.0, 2, 1.0, x)
    point = model.solve(1e-9)
    assert point is not None
    best, generator = model.proven(point, x), np.random.default_rng(3)
    for _ in range(5):
        moved = replace(point, y=point.y * generator.uniform(0.7, 1.3, 6))
        assert 0.0 <= model.proven(moved, x) <= best * (1 + 1e-3)
    assert best == pytest.approx(point.objective, rel=1e-4)
