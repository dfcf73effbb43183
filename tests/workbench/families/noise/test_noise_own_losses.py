"""Test user-defined losses of clamped noise against separate linear programs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb

CLAMPED = wb.IntegerNoise(sensitivity=1, clamp=(0, 6))
# The losses of |published - true| = 0, 1, 2, 3 and 4. Larger differences have the last loss.
LOSSES = [0, 0, 1, 1, "2.5"]
LOSS_BY_DISTANCE = np.array([0, 0, 1, 1, 2.5, 2.5, 2.5])


def compute_least_mean_loss(prior: np.ndarray, epsilon: float, delta: float) -> float:
    """Compute the least mean of `LOSS_BY_DISTANCE` for sensitivity 1 by SciPy.

    The variables are the masses of the noise values -40..40, and their excesses over e^ε times the
    mass of the next value and of the previous value.

    Args:
        prior: the probabilities of the answers 0..6. Shape (7,).
        epsilon: the budget ε.
        delta: the budget δ.
    """
    eta = np.arange(-40, 41)
    q = np.arange(7)[:, None]
    mean_losses = prior @ LOSS_BY_DISTANCE[np.abs(np.clip(q + eta, 0, 6) - q)]
    size = eta.size
    identity = np.eye(size)
    zeros = np.zeros((size, size))
    next_difference = identity - math.exp(epsilon) * np.eye(size, k=1)
    previous_difference = identity - math.exp(epsilon) * np.eye(size, k=-1)
    excess_rows = np.block(
        [[next_difference, -identity, zeros], [previous_difference, zeros, -identity]]
    )
    sum_rows = np.kron(np.array([[0, 1, 0], [0, 0, 1]]), np.ones(size))
    result = linprog(
        np.r_[mean_losses, np.zeros(2 * size)],
        A_ub=np.vstack([excess_rows, sum_rows]),
        b_ub=np.r_[np.zeros(2 * size), delta, delta],
        A_eq=np.r_[np.ones(size), np.zeros(2 * size)][None],
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return float(result.fun)


@pytest.mark.parametrize("prior", [None, [0.05, 0.05, 0.1, 0.2, 0.2, 0.2, 0.2]])
def test_mean_loss_equals_a_separate_program(prior: list[float] | None):
    design = wb.design(CLAMPED, epsilon=1, delta="0.01", loss=LOSSES, prior=prior)
    probabilities = np.full(7, 1 / 7) if prior is None else np.array(prior)
    optimum = compute_least_mean_loss(probabilities, epsilon=1, delta=0.01)
    assert design.objective == pytest.approx(optimum, rel=1e-7)
    assert design.bound is not None
    assert 0 <= design.objective - design.bound <= 1e-8 * design.objective


def test_list_of_squares_equals_the_squared_loss():
    squares = [k * k for k in range(7)]
    for options in (
        {"delta": "0.01"},
        {"delta": "0.01", "prior": "worst"},
        {"notion": "pure"},
    ):
        by_list = wb.design(CLAMPED, epsilon=1, loss=squares, **options)
        by_name = wb.design(CLAMPED, epsilon=1, loss="squared", **options)
        assert by_list.objective == pytest.approx(by_name.objective, rel=1e-12)


def test_worst_case_loss_of_a_list_is_exact_and_not_certified(tmp_path: Path):
    design = wb.design(CLAMPED, epsilon=1, delta="0.01", loss=LOSSES, prior="worst")
    design.save(tmp_path / "own.json")
    assert design.certificate.objective is None
    assert wb.load(tmp_path / "own.json").outputs.tolist() == [*range(7)]
    matrix = np.array([law.floats for law in design.mechanism.rows])
    distances = np.abs(np.arange(7)[:, None] - np.arange(7))
    losses = (matrix * LOSS_BY_DISTANCE[distances]).sum(axis=1)
    assert losses.max() == pytest.approx(design.objective, rel=1e-12)


def test_decreasing_losses_and_lists_on_the_reals_raise():
    with pytest.raises(wb.InvalidRequest, match="not fall"):
        wb.design(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss=[0, 2, 1])
    with pytest.raises(wb.InvalidRequest, match="absolute or squared for noise on the reals"):
        wb.design(wb.RealNoise(1), epsilon=1, delta="0.01", loss=[0, 1])


def test_noise_publishes_one_end_except_with_probability_delta():
    """At a small ε the likelier answer is published, and with probability δ the true answer.

    A wrong answer has the Huber loss 2 (5 - 2/2) = 8 at the distance 5, and the prior 1/6.
    """
    question = wb.IntegerNoise(1, clamp=(-4, -3))
    design = wb.design(
        question, loss="huber:2", unit=5, epsilon=".01", delta=".01", prior=("1/6", "5/6")
    )
    optimum = 8 / 6 * (1 - 0.01)
    assert design.objective == pytest.approx(optimum, rel=1e-9)
    assert design.bound == pytest.approx(optimum, rel=1e-9)
    assert design.certificate is not None
    assert design.details["rounds"] < 500  # One small program of each side is enough.


def test_loss_function_of_unclamped_noise_raises():
    for question in (wb.IntegerNoise(1), wb.RealNoise(1)):
        with pytest.raises(wb.InvalidRequest, match="whose last step continues"):
            wb.design(question, epsilon=1, delta="0.01", loss=lambda noise: abs(noise) ** 1.5)
