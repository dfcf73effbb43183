"""Tests of closed forms of pure ε-DP channels, against linear programs solved by SciPy."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from workbench.models.oracles.finite_channel import (
    extremal_value,
    geometric_channel,
    has_growing_losses,
    minimax_value,
    post_process_geometric,
    randomized_response_error,
)

Matrix = np.ndarray


def solve_channel_lp(
    losses: Matrix, prior: Matrix | None, pairs: list[tuple[int, int]], epsilon: float
) -> float:
    """Return the smallest loss of a pure ε-DP channel, by SciPy.

    Args:
        losses: loss of every answer and output, shape (k, m).
        prior: weights of the answers, shape (k,). None: the loss of the worst answer.
        pairs: neighbouring answers, each pair once.
        epsilon: the budget.
    """
    k, m = losses.shape
    # The columns are the masses M, row by row, then the worst-case loss.
    rows = []
    for i, j in [*pairs, *((j, i) for i, j in pairs)]:
        for o in range(m):
            row = np.zeros((k, m))
            row[i, o] = 1
            row[j, o] = -math.exp(epsilon)
            rows.append(np.r_[row.ravel(), 0])
    if prior is None:
        cost = np.r_[np.zeros(k * m), 1.0]
        for y in range(k):
            row = np.zeros((k, m))
            row[y] = losses[y]
            rows.append(np.r_[row.ravel(), -1])
    else:
        cost = np.r_[(prior[:, None] * losses).ravel(), 0.0]
    row_sums = np.hstack([np.kron(np.eye(k), np.ones((1, m))), np.zeros((k, 1))])
    optimum = linprog(
        cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=row_sums, b_eq=np.ones(k)
    )
    return float(optimum.fun)


def draw_counting_question(seed: int) -> tuple[float, Matrix, Matrix, list[tuple[int, int]]]:
    """Draw ε, a prior, losses that grow with the distance, and the neighbours 0-1, 1-2, ..."""
    source = np.random.default_rng(seed)
    k = int(source.integers(2, 7))
    epsilon = float(source.uniform(0.1, 2))
    prior = source.dirichlet(np.ones(k))
    distances = np.abs(np.arange(k)[:, None] - np.arange(k))
    losses = np.array(
        [np.cumsum(np.r_[0, source.uniform(low=0, high=1, size=k)])[row] for row in distances]
    )
    return epsilon, prior, losses, [(i, i + 1) for i in range(k - 1)]


@pytest.mark.parametrize("seed", range(6))
def test_post_processed_geometric_noise_is_optimal_for_losses_that_grow_with_the_distance(
    seed: int,
):
    epsilon, prior, losses, neighbours = draw_counting_question(seed)
    assert has_growing_losses(losses, np.arange(prior.size))
    optimum = post_process_geometric(losses, prior, epsilon)
    lp_value = solve_channel_lp(losses, prior, neighbours, epsilon)
    assert optimum.value == pytest.approx(lp_value, rel=1e-7)
    loss_of_channel = float((prior[:, None] * losses * optimum.channel).sum())
    assert optimum.value == pytest.approx(loss_of_channel, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_row_duals_of_post_processing_add_up_to_its_loss(seed: int):
    epsilon, prior, losses, _ = draw_counting_question(seed)
    optimum = post_process_geometric(losses, prior, epsilon)
    assert optimum.row_duals.sum() == pytest.approx(optimum.value, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_minimax_value_is_the_optimum_for_the_worst_answer(seed: int):
    epsilon, _, losses, neighbours = draw_counting_question(seed)
    lp_value = solve_channel_lp(losses, None, neighbours, epsilon)
    assert minimax_value(losses, epsilon) == pytest.approx(lp_value, rel=1e-7)


def test_post_processing_is_only_an_upper_bound_for_other_losses():
    losses = np.array([[0, 3, 1.0], [3, 0, 3], [1, 3, 0]])
    assert not has_growing_losses(losses, np.arange(3))
    prior = np.full(3, 1 / 3)
    optimum = solve_channel_lp(losses, prior, [(0, 1), (1, 2)], 1.0)
    assert post_process_geometric(losses, prior, epsilon=1.0).value >= optimum - 1e-9


def test_the_geometric_channel_has_log_ratios_epsilon_and_row_sums_one():
    G = geometric_channel(k=6, epsilon=0.7)
    assert np.allclose(G.sum(axis=1), 1)
    assert np.log(G[1:] / G[:-1]).max() == pytest.approx(0.7)


@pytest.mark.parametrize("seed", range(6))
def test_extremal_channels_are_optimal_if_all_answers_are_neighbours(seed: int):
    source = np.random.default_rng(seed)
    k = int(source.integers(2, 6))
    m = int(source.integers(1, 6))
    epsilon = float(source.uniform(0.1, 3))
    prior = source.dirichlet(np.ones(k))
    losses = source.uniform(low=0, high=1, size=(k, m))
    optimum = solve_channel_lp(losses, prior, list(combinations(range(k), 2)), epsilon)
    assert extremal_value(losses, prior, epsilon) == pytest.approx(optimum, rel=1e-7)


def test_randomized_response_has_the_smallest_error_rate():
    prior = np.array([0.6, 0.3, 0.05, 0.05])
    for epsilon in (0.2, 1.0, 3.0):
        optimum = solve_channel_lp(1 - np.eye(4), prior, list(combinations(range(4), 2)), epsilon)
        assert randomized_response_error(prior, epsilon) == pytest.approx(optimum, rel=1e-7)
