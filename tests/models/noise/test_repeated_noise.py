"""Noise for many runs: δ_T against every sequence of outcomes, its gradient, what is reached."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from workbench.models.noise.repeated_noise import (
    ComposedDelta,
    expected_loss,
    noise_masses,
    optimise_losses,
)

LOSSES = np.array([0.513, 0.707, 0.811, 0.907, 1.003])


@functools.cache
def improved(runs: int, epsilon: float) -> np.ndarray:
    """The noise found in one region of trust."""
    return optimise_losses(runs, epsilon, 1e-5, np.square, max_rounds=1)


def laws(losses, most: int = 40):
    """P and Q = P(· + 1) on -most..most."""
    density, _ = noise_masses(losses)
    law = np.concatenate([density[most:0:-1], density[: most + 1]])
    return law[:-1], law[1:]


def test_masses_are_a_law_with_these_losses():
    density, every = noise_masses(LOSSES)
    assert 2 * density.sum() - density[0] == pytest.approx(1, abs=1e-14)
    assert np.log(density[:-1] / density[1:]) == pytest.approx(every[:-1])
    assert every[:5].tolist() == LOSSES.tolist()
    assert set(every[5:]) == {1.003}


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_delta_is_that_of_every_sequence_of_outcomes(runs):
    p, q = laws(LOSSES, 12)
    exact = 0.0
    for outcomes in itertools.product(range(p.size), repeat=runs):
        exact += max(0.0, np.prod(p[list(outcomes)]) - math.exp(1.5) * np.prod(q[list(outcomes)]))
    assert (
        exact - 1e-12 <= ComposedDelta(runs, 1.5, 14.0)(LOSSES) <= exact * 1.001 + 1e-12
    )  # Losses on a grid give an upper bound.


@pytest.mark.parametrize("loss", [np.square, np.abs, lambda k: (k > 0).astype(float)])
def test_gradients_are_differences(loss):
    composed = ComposedDelta(4, 2.0, 14.0)
    _, slope = composed.value_and_gradient(LOSSES)
    value, steep = expected_loss(LOSSES, loss)
    density, _ = noise_masses(LOSSES)
    assert value == pytest.approx(2 * density @ loss(np.arange(density.size, dtype=float)))
    for j, step in enumerate(np.eye(5) * 1e-6):
        assert slope[j] == pytest.approx(
            (composed(LOSSES + step) - composed(LOSSES - step)) / 2e-6, abs=1e-6
        )
        ends = [expected_loss(LOSSES + sign * step, loss)[0] for sign in (1, -1)]
        assert steep[j] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(("runs", "epsilon", "most"), [(16, 4.0, 17.70)])
def test_the_noise_for_many_runs_beats_geometric_and_gaussian(runs, epsilon, most):
    best = improved(runs, epsilon)
    reached = expected_loss(best, np.square)[0]
    assert reached <= most
    assert np.all(np.diff(best[: best.size // 2]) > -1e-3)  # This half has nearly all mass.
    finest = ComposedDelta(runs, epsilon, min(epsilon + 12, 1.05 * runs * float(best.max())))
    assert finest(best) <= 1.02e-5  # The grids differ.
    geometric = np.full(60, epsilon / runs)
    assert reached < expected_loss(geometric, np.square)[0]
