"""Tests of noise for few runs, where the gradient method makes no progress from its start."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.models.noise.repeated_noise import expected_loss, optimise_losses
from workbench.models.noise.repeated_wide_noise import RepeatedWideNoise, published_shapes


def test_two_runs_get_geometric_noise_with_a_steep_end():
    """The privacy loss is ε/2 near 0 and larger far out, which lowers the loss of pure noise."""
    privacy_losses = optimise_losses(runs=2, epsilon=1.0, delta=1e-5, loss=np.square, max_rounds=0)
    assert privacy_losses[:20] == pytest.approx(0.5)
    assert privacy_losses[-1] == pytest.approx(1.5)
    loss, _ = expected_loss(privacy_losses, np.square)
    # The value of the current program, rounded up. Pure noise has the loss 1/(2 sinh²(1/4)).
    assert loss < 7.8225 < 1 / (2 * math.sinh(0.25) ** 2)


@pytest.mark.parametrize(
    ("runs", "epsilon", "delta", "reference_loss"),
    [(4, 1.0, 1e-6, 31.80949), (3, 2.0, 1e-4, 4.30379), (2, 4.0, 1e-3, 0.358405)],
)
def test_the_steep_end_has_the_loss_of_the_best_next_round(
    runs: int, epsilon: float, delta: float, reference_loss: float
):
    """The reference iterates linear programs for the noise of one run, with T - 1 runs fixed."""
    privacy_losses = optimise_losses(runs, epsilon, delta, np.square, max_rounds=0)
    loss, _ = expected_loss(privacy_losses, np.square)
    assert loss == pytest.approx(reference_loss, rel=2e-6)


@pytest.mark.parametrize(
    ("runs", "epsilon", "delta"), [(3, 1.0, 1e-5), (2, 1.0, 0.3), (5, 20.0, 1e-6), (2, 0.2, 1e-5)]
)
def test_the_loss_is_at_most_that_of_published_noise(runs: int, epsilon: float, delta: float):
    privacy_losses = optimise_losses(runs, epsilon, delta, np.abs, max_rounds=0)
    loss, _ = expected_loss(privacy_losses, np.abs)
    for shape in published_shapes(1).values():
        published_noise = RepeatedWideNoise(runs, epsilon, delta, sensitivity=1, shape=shape)
        assert loss <= published_noise.expected_loss(np.abs) * (1 + 1e-9)
