"""Test the closed form of the best noise on the integers for sensitivity 1 and δ > 0."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.errors import NotCertified
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.privacy.certificate import Certificate
from workbench.publishing.two_ends import POWERS, find_two_ends_noise
from workbench.questions.unbounded_noise import IntegerNoise

BUDGETS = [("1", "1e-3"), ("0.5", "0.01"), ("2", "0.1"), ("5", "1e-6")]
# Noise values on each side of 0 in the linear program.
WINDOW = 30


def solve_window(epsilon: float, delta: float, power: int) -> float:
    """Solve the linear program over all noise on a window, without symmetry, by SciPy."""
    values = np.arange(-WINDOW, WINDOW + 1)
    count = values.size
    # The variables are the masses f(j) and, for each shift, an excess x(j) >= 0 with the rows
    # f(j) - e^ε f(j + shift) <= x(j) and Σ x(j) <= δ. The value beyond each end has no mass.
    rows = []
    limits = []
    for shift, excess_start in ((1, count), (-1, 2 * count)):
        for j in range(count):
            row = np.zeros(3 * count)
            row[j] = 1
            if 0 <= j + shift < count:
                row[j + shift] = -math.exp(epsilon)
            row[excess_start + j] = -1
            rows.append(row)
            limits.append(0.0)
        sum_row = np.zeros(3 * count)
        sum_row[excess_start : excess_start + count] = 1
        rows.append(sum_row)
        limits.append(delta)
    costs = np.concatenate([np.abs(values) ** power, np.zeros(2 * count)])
    total = np.concatenate([np.ones(count), np.zeros(2 * count)])
    result = linprog(costs, np.array(rows), limits, total[None], [1.0])
    assert result.status == 0
    return float(result.fun)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_closed_form_is_the_optimum_of_a_linear_program(epsilon, delta, loss) -> None:
    noise = find_two_ends_noise(Fraction(epsilon), Fraction(delta), loss)
    optimum = solve_window(float(epsilon), float(delta), POWERS[loss])
    exact_loss = AdditiveIntegerNoise(IntegerNoise(1), noise.law).loss(loss)
    assert float(exact_loss) == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(("epsilon", "delta"), [*BUDGETS, ("0.05", "1e-6"), ("20", "0.3")])
def test_loss_and_lower_bound_agree_to_twelve_digits(epsilon, delta, loss) -> None:
    noise = find_two_ends_noise(Fraction(epsilon), Fraction(delta), loss)
    exact_loss = AdditiveIntegerNoise(IntegerNoise(1), noise.law).loss(loss)
    assert noise.bound <= exact_loss <= noise.bound * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize(("epsilon", "delta"), [*BUDGETS, ("0.05", "1e-6"), ("20", "0.3")])
def test_the_noise_is_private_and_uses_all_of_delta(epsilon, delta) -> None:
    law = find_two_ends_noise(Fraction(epsilon), Fraction(delta), "squared").law
    mechanism = AdditiveIntegerNoise(IntegerNoise(1), law)
    assert Certificate(mechanism, "dp", epsilon, delta).holds()
    smaller_delta = Fraction(delta) * Fraction(999, 1000)
    with pytest.raises(NotCertified):
        Certificate(mechanism, "dp", epsilon, smaller_delta)


def test_a_count_with_a_small_epsilon_and_delta_has_the_best_noise() -> None:
    release = wb.publish.count("no.csv", epsilon="0.01", delta="1e-5", dry_run=True)
    # The linear program of `wb.design` gives 137.7748654755608.
    assert release.rmse == pytest.approx(137.77486547, rel=1e-9)
    assert release.mechanism.startswith(
        "optimal noise on the integers: the smallest mean squared error"
    )


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_bound_for_a_sum_is_below_its_error_by_at_most_a_thousandth(loss: str) -> None:
    release = wb.publish.sum(
        "no.csv", "x", range="0..2000", epsilon="0.02", delta="1e-5", loss=loss, dry_run=True
    )
    bound = float(release.mechanism.rpartition(" ")[2])
    mechanism = release.certificate.mechanism
    error = release.rmse if loss == "squared" else float(mechanism.loss("absolute"))
    assert error * 0.999 <= bound <= error
    assert release.certificate.holds()


def test_a_sum_has_noise_for_delta_0_if_the_time_is_up() -> None:
    limited = wb.publish.sum(
        "no.csv", "x", range="0..1", epsilon=1, delta="1e-5", time_limit="0.001", dry_run=True
    )
    pure = wb.publish.sum("no.csv", "x", range="0..1", epsilon=1, dry_run=True)
    assert limited.rmse == pure.rmse
    assert limited.certificate.holds()
    assert "least" not in limited.mechanism
