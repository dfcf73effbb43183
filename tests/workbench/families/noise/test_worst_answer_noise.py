"""Test clamped noise for the worst answer against a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.privacy.objective import is_rounded_up


def direct(n: int, D: int, epsilon: float, delta: float, power: int, L: int) -> float:
    """Minimise t >= every answer's mean loss over noise on -L..L."""
    size = 2 * L + 1
    shifts = [s for s in range(-D, D + 1) if s]
    eta, count = np.arange(-L, L + 1), size * (1 + len(shifts)) + 1
    rows, right = [], []
    for q in range(n + 1):
        row = np.zeros(count)
        row[:size] = np.abs(np.clip(q + eta, 0, n) - q) ** power
        row[-1] = -1
        rows.append(row)
        right.append(0.0)
    for k, s in enumerate(shifts, 1):
        for i in range(size):
            row = np.zeros(count)
            row[i], row[k * size + i] = 1, -1
            if 0 <= i + s < size:
                row[i + s] -= np.exp(epsilon)
            rows.append(row)
            right.append(0.0)
        row = np.zeros(count)
        row[k * size : (k + 1) * size] = 1
        rows.append(row)
        right.append(delta)
    whole = np.zeros((1, count))
    whole[0, :size] = 1
    loss = np.zeros(count)
    loss[-1] = 1
    return float(linprog(loss, A_ub=np.array(rows), b_ub=right, A_eq=whole, b_eq=[1]).fun)


@pytest.mark.parametrize(
    ("n", "D", "loss", "epsilon", "delta"),
    [(4, 1, "squared", 1, 0.1), (4, 4, "squared", 1, 0.1), (5, 2, "absolute", 1, 0.1)],
)
def test_worst_case_loss_is_bounded_from_both_sides(
    n: int, D: int, loss: str, epsilon: float, delta: float
):
    design = wb.design(
        wb.IntegerNoise(D, clamp=(0, n)), epsilon=epsilon, delta=delta, loss=loss, prior="worst"
    )
    value = direct(n, D, epsilon, delta, 2 if loss == "squared" else 1, 6 * D + 12)
    assert design.bound is not None
    assert design.bound <= design.objective <= design.bound * (1 + 2e-8)
    assert design.objective <= value * (
        1 + 1e-6
    )  # All noise is compared with noise of bounded length.
    assert design.objective == pytest.approx(value, rel=2e-4)
    each = [
        sum(p * abs(o - q) ** (2 if loss == "squared" else 1) for o, p in enumerate(row.floats))
        for q, row in enumerate(design.mechanism.rows)
    ]
    assert max(each) == pytest.approx(design.objective)
    mean = wb.design(wb.IntegerNoise(D, clamp=(0, n)), epsilon=epsilon, delta=delta, loss=loss)
    assert mean.objective < design.objective
    assert design.certificate is not None
    stated = design.certificate.objective
    assert is_rounded_up(stated.value, stated.exact_loss_of(design.mechanism))


def test_pure_noise_for_the_worst_answer_mixes_staircases():
    design = wb.design(
        wb.IntegerNoise(2, clamp=(0, 5)), epsilon=1, notion="pure", loss="squared", prior="worst"
    )
    weights = {1: None, 2: None}
    for r in weights:  # Masses are divided by e where |eta| is r, r + 2, ...
        eta = np.arange(-80, 81)
        f = np.exp(-np.ceil((np.abs(eta) - r + 1) / 2).clip(0))
        f /= f.sum()
        weights[r] = np.array([(f * (np.clip(q + eta, 0, 5) - q) ** 2).sum() for q in range(6)])
    shares = np.linspace(0, 1, 20001)[:, None]
    best = (shares * weights[1] + (1 - shares) * weights[2]).max(axis=1).min()
    assert design.objective == pytest.approx(best, rel=1e-6)
    assert design.bound == pytest.approx(best, rel=1e-6)
    assert design.privacy.pure_epsilon <= 1 + 1e-9


def test_worst_prior_without_clamped_answers_raises():
    with pytest.raises(wb.InvalidRequest, match="not clamped"):
        wb.design(wb.IntegerNoise(1), epsilon=1, delta=0.1, prior="worst")
    with pytest.raises(wb.InvalidRequest, match="when notion is zcdp"):
        wb.design(wb.IntegerNoise(1, clamp=(0, 4)), notion="zcdp", rho=0.1, prior="worst")
