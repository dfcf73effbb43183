"""Tests of noise for many runs: δ of all runs together, its gradient, and the loss that is reached.

Noise is described by its privacy losses: the number at k is ln(f(k)/f(k + 1)). The last one is
repeated for all larger k.
"""

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

# Privacy losses at 0..4 that have no common divisor.
PRIVACY_LOSSES = np.array([0.513, 0.707, 0.811, 0.907, 1.003])
# Sums of privacy losses are resolved within ±REACH. No sum of 4 runs is above 4.02.
REACH = 14.0


@functools.cache
def optimise_for_one_round(runs: int, epsilon: float) -> np.ndarray:
    """Return the privacy losses after one round of the optimisation, for squared loss."""
    return optimise_losses(runs, epsilon, delta=1e-5, loss=np.square, max_rounds=1)


def neighbouring_laws(privacy_losses, reach: int = 40):
    """Return the masses of the noise and of the noise moved by 1, on -reach..reach - 1."""
    masses, _ = noise_masses(privacy_losses)
    law = np.concatenate([masses[reach:0:-1], masses[: reach + 1]])
    return law[:-1], law[1:]


def test_masses_have_the_given_privacy_losses_and_sum_to_one():
    masses, all_losses = noise_masses(PRIVACY_LOSSES)
    assert 2 * masses.sum() - masses[0] == pytest.approx(1, abs=1e-14)
    assert np.log(masses[:-1] / masses[1:]) == pytest.approx(all_losses[:-1])
    assert all_losses[:5].tolist() == PRIVACY_LOSSES.tolist()
    assert set(all_losses[5:]) == {1.003}


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_delta_equals_the_sum_over_all_sequences_of_outcomes(runs):
    p, q = neighbouring_laws(PRIVACY_LOSSES, 12)
    exact = 0.0
    for outcomes in itertools.product(range(p.size), repeat=runs):
        exact += max(0.0, np.prod(p[list(outcomes)]) - math.exp(1.5) * np.prod(q[list(outcomes)]))
    # Privacy losses are rounded up to a grid, which gives an upper bound.
    assert (
        exact - 1e-12
        <= ComposedDelta(runs, epsilon=1.5, reach=REACH)(PRIVACY_LOSSES)
        <= exact * 1.001 + 1e-12
    )


@pytest.mark.parametrize("loss", [np.square, np.abs, lambda k: (k > 0).astype(float)])
def test_gradients_equal_differences(loss):
    composed = ComposedDelta(runs=4, epsilon=2.0, reach=REACH)
    _, delta_gradient = composed.value_and_gradient(PRIVACY_LOSSES)
    value, loss_gradient = expected_loss(PRIVACY_LOSSES, loss)
    masses, _ = noise_masses(PRIVACY_LOSSES)
    assert value == pytest.approx(2 * masses @ loss(np.arange(masses.size, dtype=float)))
    for j, step in enumerate(np.eye(5) * 1e-6):
        assert delta_gradient[j] == pytest.approx(
            (composed(PRIVACY_LOSSES + step) - composed(PRIVACY_LOSSES - step)) / 2e-6, abs=1e-6
        )
        ends = [expected_loss(PRIVACY_LOSSES + sign * step, loss)[0] for sign in (1, -1)]
        assert loss_gradient[j] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(("runs", "epsilon", "max_loss"), [(16, 4.0, 17.70)])
def test_noise_for_many_runs_has_a_smaller_loss_than_geometric_noise(runs, epsilon, max_loss):
    best = optimise_for_one_round(runs, epsilon)
    loss = expected_loss(best, np.square)[0]
    assert loss <= max_loss
    # The first half of the privacy losses, where nearly all mass is, rises.
    assert np.all(np.diff(best[: best.size // 2]) > -1e-3)
    fine_delta = ComposedDelta(runs, epsilon, min(epsilon + 12, 1.05 * runs * float(best.max())))
    assert fine_delta(best) <= 1.02e-5  # This grid differs from that of the optimisation.
    geometric = np.full(60, epsilon / runs)
    assert loss < expected_loss(geometric, np.square)[0]
