"""Test clamped noise for the worst answer (`prior="worst"`) against an independent linear program.

The worst-case loss is the largest expected loss of any clamped answer.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.privacy.objective import is_rounded_up


def compute_least_worst_loss(
    n: int, sensitivity: int, epsilon: float, delta: float, power: int
) -> float:
    """Compute the least worst-case loss |published - true|^power of clamped noise by SciPy.

    The noise ends at a value beyond which the optimal noise has nearly no mass. The variables are
    its masses f(η), an excess max(0, f(η) - e^ε f(η + s)) for every shift s and η, and the largest
    expected loss t, which is minimised.

    Args:
        n: the largest answer; the answers are 0..n.
        sensitivity: the largest shift.
        epsilon: the budget ε.
        delta: the budget δ.
        power: 1 or 2.
    """
    last = 6 * sensitivity + 12
    eta = np.arange(-last, last + 1)
    shifts = [s for s in range(-sensitivity, sensitivity + 1) if s]
    variable_count = eta.size * (1 + len(shifts)) + 1
    rows = []
    limits = []
    for q in range(n + 1):  # The expected loss of the answer q is at most t.
        row = np.zeros(variable_count)
        row[: eta.size] = np.abs(np.clip(q + eta, 0, n) - q) ** power
        row[-1] = -1
        rows.append(row)
        limits.append(0.0)
    for k, s in enumerate(shifts, 1):
        for i in range(eta.size):  # f(η) - e^ε f(η + s) is at most the excess.
            row = np.zeros(variable_count)
            row[i] = 1
            row[k * eta.size + i] = -1
            if 0 <= i + s < eta.size:
                row[i + s] -= np.exp(epsilon)
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(variable_count)  # The excesses of a shift sum to at most δ.
        row[k * eta.size : (k + 1) * eta.size] = 1
        rows.append(row)
        limits.append(delta)
    sum_row = np.zeros((1, variable_count))
    sum_row[0, : eta.size] = 1
    objective = np.zeros(variable_count)
    objective[-1] = 1
    result = linprog(objective, A_ub=np.array(rows), b_ub=limits, A_eq=sum_row, b_eq=[1])
    return float(result.fun)


# The answers are 0..n.
QUESTIONS = pytest.mark.parametrize(
    ("n", "sensitivity", "loss"), [(4, 1, "squared"), (4, 4, "squared"), (5, 2, "absolute")]
)
POWERS = {"absolute": 1, "squared": 2}  # The loss of an error r is |r| to this power.


@functools.cache
def design_for_worst_answer(n: int, sensitivity: int, loss: str) -> wb.Design:
    """Design clamped noise with the smallest worst-case loss at ε = 1 and δ = 0.1."""
    question = wb.IntegerNoise(sensitivity, clamp=(0, n))
    return wb.design(question, epsilon=1, delta=0.1, loss=loss, prior="worst")


@QUESTIONS
def test_worst_case_loss_equals_a_separate_program(n: int, sensitivity: int, loss: str):
    """The noise of the program ends earlier, so its loss cannot be smaller."""
    design = design_for_worst_answer(n, sensitivity, loss)
    power = POWERS[loss]
    optimum = compute_least_worst_loss(n, sensitivity, epsilon=1, delta=0.1, power=power)
    assert design.objective == pytest.approx(optimum, rel=2e-4)
    assert design.objective <= optimum * (1 + 1e-6)


@QUESTIONS
def test_worst_case_loss_is_proven_optimal(n: int, sensitivity: int, loss: str):
    design = design_for_worst_answer(n, sensitivity, loss)
    assert design.bound is not None
    assert design.bound <= design.objective <= design.bound * (1 + 2e-8)


@QUESTIONS
def test_worst_case_loss_is_the_largest_loss_of_an_answer(n: int, sensitivity: int, loss: str):
    design = design_for_worst_answer(n, sensitivity, loss)
    answers = np.arange(n + 1)
    losses = [
        row.floats @ np.abs(answers - answer) ** POWERS[loss]
        for answer, row in enumerate(design.mechanism.rows)
    ]
    assert max(losses) == pytest.approx(design.objective)


@QUESTIONS
def test_the_certificate_states_the_worst_case_loss_rounded_up(n: int, sensitivity: int, loss: str):
    design = design_for_worst_answer(n, sensitivity, loss)
    assert design.certificate is not None
    statement = design.certificate.objective
    assert is_rounded_up(statement.value, statement.exact_loss_of(design.mechanism))


def test_mean_loss_is_smaller_than_the_worst_case_loss():
    question = wb.IntegerNoise(1, clamp=(0, 4))
    worst = wb.design(question, epsilon=1, delta=0.1, prior="worst")
    assert wb.design(question, epsilon=1, delta=0.1).objective < worst.objective


def test_pure_noise_for_the_worst_answer_mixes_staircases():
    """For sensitivity 2 there are two staircases; the best mixture is found on a grid of shares."""
    design = wb.design(
        wb.IntegerNoise(2, clamp=(0, 5)), epsilon=1, notion="pure", loss="squared", prior="worst"
    )
    eta = np.arange(-80, 81)
    losses_by_inner_width = {}
    for inner_width in (1, 2):
        # Masses are divided by e where |eta| is inner_width, inner_width + 2, ...
        masses = np.exp(-np.ceil((np.abs(eta) - inner_width + 1) / 2).clip(0))
        masses /= masses.sum()
        losses = [(masses * (np.clip(q + eta, 0, 5) - q) ** 2).sum() for q in range(6)]
        losses_by_inner_width[inner_width] = np.array(losses)
    shares = np.linspace(0, 1, 20001)[:, None]
    mixtures = shares * losses_by_inner_width[1] + (1 - shares) * losses_by_inner_width[2]
    optimum = mixtures.max(axis=1).min()
    assert design.objective == pytest.approx(optimum, rel=1e-6)
    assert design.bound == pytest.approx(optimum, rel=1e-6)
    assert design.privacy.pure_epsilon <= 1 + 1e-9


def test_worst_prior_without_clamped_answers_raises():
    with pytest.raises(wb.InvalidRequest, match="not clamped"):
        wb.design(wb.IntegerNoise(1), epsilon=1, delta=0.1, prior="worst")
    with pytest.raises(wb.InvalidRequest, match="when notion is zcdp"):
        wb.design(wb.IntegerNoise(1, clamp=(0, 4)), notion="zcdp", rho=0.1, prior="worst")
