"""Test user-defined losses of clamped noise against separate linear programs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb

CLAMPED = wb.IntegerNoise(sensitivity=1, clamp=(0, 6))
LOSSES = [0, 0, 1, 1, "2.5"]


def _least(
    prior: np.ndarray, losses: list[float], epsilon: float, delta: float, reach: int = 40
) -> float:
    """Minimise over laws on -reach..reach with shifts by one; the losses come from a table."""
    eta, n = np.arange(-reach, reach + 1), prior.size - 1
    table = np.array([losses[min(k, len(losses) - 1)] for k in range(n + 1)])
    q = np.arange(n + 1)[:, None]
    c = prior @ table[np.abs(np.clip(q + eta, 0, n) - q)]
    size, e = eta.size, math.exp(epsilon)
    up, down = np.eye(size) - e * np.eye(size, k=1), np.eye(size) - e * np.eye(size, k=-1)
    zero, one = np.zeros((size, size)), np.eye(size)
    excess = np.block([[up, -one, zero], [down, zero, -one]])
    sums = np.kron(np.array([[0, 1, 0], [0, 0, 1]]), np.ones(size))
    limits = np.r_[np.zeros(2 * size), delta, delta]
    result = linprog(
        np.r_[c, np.zeros(2 * size)],
        np.vstack([excess, sums]),
        limits,
        np.r_[np.ones(size), np.zeros(2 * size)][None],
        [1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return float(result.fun)


@pytest.mark.parametrize("prior", [None, [0.05, 0.05, 0.1, 0.2, 0.2, 0.2, 0.2]])
def test_mean_loss_equals_a_separate_program(prior: list[float] | None):
    design = wb.design(CLAMPED, epsilon=1, delta="0.01", loss=LOSSES, prior=prior)
    weights = np.full(7, 1 / 7) if prior is None else np.array(prior)
    assert design.objective == pytest.approx(
        _least(weights, [float(c) for c in LOSSES], 1, 0.01), rel=1e-7
    )
    assert design.bound is not None
    assert 0 <= design.objective - design.bound <= 1e-8 * design.objective


def test_list_of_squares_equals_the_squared_loss():
    listed = [k * k for k in range(7)]
    for prior in (None, "worst"):
        own = wb.design(CLAMPED, epsilon=1, delta="0.01", loss=listed, prior=prior)
        named = wb.design(CLAMPED, epsilon=1, delta="0.01", loss="squared", prior=prior)
        assert own.objective == pytest.approx(named.objective, rel=1e-12)
    own = wb.design(CLAMPED, epsilon=1, notion="pure", loss=listed)
    assert own.objective == pytest.approx(
        wb.design(CLAMPED, epsilon=1, notion="pure").objective, rel=1e-12
    )


def test_worst_case_loss_of_a_list_is_exact_and_not_certified(tmp_path: Path):
    design = wb.design(CLAMPED, epsilon=1, delta="0.01", loss=LOSSES, prior="worst")
    design.save(tmp_path / "own.json")
    assert design.certificate.objective is None
    assert wb.load(tmp_path / "own.json").outputs.tolist() == [*range(7)]
    matrix = np.array(
        [[float(w) / law.total for w in law.integers] for law in design.mechanism.rows]
    )
    table = np.array([0, 0, 1, 1, 2.5, 2.5, 2.5])
    each = (matrix * table[np.abs(np.arange(7)[:, None] - np.arange(7))]).sum(axis=1)
    assert each.max() == pytest.approx(design.objective, rel=1e-12)


def test_decreasing_losses_and_lists_on_the_reals_raise():
    with pytest.raises(wb.InvalidRequest, match="not fall"):
        wb.design(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss=[0, 2, 1])
    with pytest.raises(wb.InvalidRequest, match="absolute or squared for noise on the reals"):
        wb.design(wb.RealNoise(1), epsilon=1, delta="0.01", loss=[0, 1])


def test_noise_publishes_one_end_except_with_probability_delta():
    """At small ε one end is published, except that with probability δ it is the answer itself."""
    question = wb.IntegerNoise(1, clamp=(-4, -3))
    design = wb.design(
        question, loss="huber:2", unit=5, epsilon=".01", delta=".01", prior=("1/6", "5/6")
    )
    assert design.objective == pytest.approx(8 / 6 * 0.99, rel=1e-9)
    assert design.bound == pytest.approx(8 / 6 * 0.99, rel=1e-9)
    assert design.certificate is not None
    assert design.details["rounds"] < 500  # One small program of each side is enough.


def test_loss_function_of_unclamped_noise_raises():
    for question in (wb.IntegerNoise(1), wb.RealNoise(1)):
        with pytest.raises(wb.InvalidRequest, match="whose last step continues"):
            wb.design(question, epsilon=1, delta="0.01", loss=lambda noise: abs(noise) ** 1.5)
