"""Noise for few runs: what is reached where gradients stall."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.models.noise.repeated_noise import expected_loss, optimise_losses
from workbench.models.noise.repeated_wide_noise import RepeatedWideNoise, published_shapes


def test_two_runs_are_better_than_pure_noise_with_a_steep_end():
    best = optimise_losses(2, 1.0, 1e-5, np.square, max_rounds=0)
    assert best[:20] == pytest.approx(0.5)
    assert best[-1] == pytest.approx(1.5)
    assert expected_loss(best, np.square)[0] < 7.8225 < 7.824


@pytest.mark.parametrize(
    ("runs", "epsilon", "delta", "reached"),
    [(4, 1.0, 1e-6, 31.80949), (3, 2.0, 1e-4, 4.30379), (2, 4.0, 1e-3, 0.358405)],
)
def test_the_steep_end_has_the_loss_of_the_best_next_round(
    runs: int, epsilon: float, delta: float, reached: float
):
    """The reference iterates linear programs of one round beside T - 1 rounds of the last noise."""
    best = optimise_losses(runs, epsilon, delta, np.square, max_rounds=0)
    assert expected_loss(best, np.square)[0] == pytest.approx(reached, rel=2e-6)


@pytest.mark.parametrize(
    ("runs", "epsilon", "delta"), [(3, 1.0, 1e-5), (2, 1.0, 0.3), (5, 20.0, 1e-6), (2, 0.2, 1e-5)]
)
def test_never_worse_than_known_noise(runs: int, epsilon: float, delta: float):
    best = expected_loss(optimise_losses(runs, epsilon, delta, np.abs, max_rounds=0), np.abs)[0]
    for shape in published_shapes(1).values():
        assert best <= RepeatedWideNoise(runs, epsilon, delta, 1, shape).expected_loss(np.abs) * (
            1 + 1e-9
        )
