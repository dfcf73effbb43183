"""Noise for few runs by linear programs: what a round says, and what is reached where gradients stall."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from models.repeated_noise import best_losses, expected_loss
from models.repeated_noise_round import NextRound, stationary_losses
from models.repeated_wide_noise import RepeatedWideNoise, published_shapes
from solvers.backend import backend
from solvers.canonical import compile

NOISE = np.array([0.3, 0.2, 0.1, 0.05])


def composed(rounds: list[np.ndarray], epsilon: float) -> float:
    """δ of rounds of different noise f(0..K), from every sequence of outcomes."""
    pairs = []
    for f in rounds:
        whole = np.concatenate([[0.0], f[:0:-1], f, [0.0]])
        pairs.append(list(itertools.pairwise(whole)))
    total = 0.0
    for outcomes in itertools.product(*pairs):
        p, q = np.prod([a for a, _ in outcomes]), np.prod([b for _, b in outcomes])
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("runs", [2, 3])
def test_a_round_is_worth_what_every_sequence_says(runs: int):
    noise = NOISE / (2 * NOISE.sum() - NOISE[0])
    step = NextRound(noise, runs, 0.9, np.square)
    assert step.delta == pytest.approx(composed([noise] * runs, 0.9), rel=1e-6)
    with backend("highs").open(compile(step.problem(1.3 * step.delta), scale=2.0**20)) as session:
        found = session.solve({})
    allowed = step.delta * (1 + 0.3 / runs)
    assert composed([noise] * (runs - 1) + [found["f"]], 0.9) == pytest.approx(allowed, rel=1e-3)


def test_two_runs_are_better_than_pure_noise_with_a_steep_end():
    losses = stationary_losses(2, 1.0, 1e-5, np.square, lambda: False)
    assert losses is not None
    assert losses[:20] == pytest.approx(0.5, abs=1e-4)
    assert losses[21] == pytest.approx(1.5, abs=1e-3)
    best = best_losses(2, 1.0, 1e-5, np.square, rounds=0)
    assert expected_loss(best, np.square)[0] < 7.8225 < 7.824


@pytest.mark.parametrize(("runs", "epsilon", "delta"), [(3, 1.0, 1e-5), (2, 1.0, 0.3), (5, 20.0, 1e-6), (2, 0.2, 1e-5)])
def test_never_worse_than_known_noise(runs: int, epsilon: float, delta: float):
    best = expected_loss(best_losses(runs, epsilon, delta, np.abs, rounds=0), np.abs)[0]
    for shape in published_shapes(1).values():
        assert best <= RepeatedWideNoise(runs, epsilon, delta, 1, shape).mean(np.abs) * (1 + 1e-9)
