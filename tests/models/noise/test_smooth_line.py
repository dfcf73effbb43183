"""The interior-point method for noise under smooth bounds agrees with a cone program.

The sensitivity is 3, and the loss is squared.
"""

from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from workbench.families.noise.bracket import NoiseClaimBounds
from workbench.models.convex.requirements import HOCKEY_STICK, Bound
from workbench.models.noise.program import LineAnswer, LineProgram
from workbench.models.noise.smooth import solve_smooth_line
from workbench.privacy.claim import Claim

SENSITIVITY = 3
REACH = 15
RHO = Fraction(1, 2)
ORDER_2 = Claim("renyi", alpha=2, epsilon=1)
ALL_ORDERS = Claim("zcdp", rho=RHO)


def solve_line(claim: Claim, is_folded: bool = True) -> LineAnswer:
    """Solve the program for noise of any size by the interior-point method."""
    claim_bounds = NoiseClaimBounds(claim)
    losses = [lambda j: Fraction(j * j)]
    line = LineProgram(SENSITIVITY, REACH, losses, claim_bounds.bounds, is_folded)
    start = claim_bounds.make_inner_columns(line)
    answer = solve_smooth_line(line, start, claim_bounds.levels)
    assert answer is not None
    return answer


def solve_cone_program(max_entropy: float | None) -> float:
    """Minimise the mean of η² with CVXPY under order 2, D_2 <= 1, and a relative entropy.

    Noise values beyond REACH + SENSITIVITY are one outcome on each side, with the loss of the
    first of them. Outcomes beyond REACH are merged in both laws.
    """
    end = REACH + SENSITIVITY + 1
    noise_values = np.arange(-end, end + 1)
    x = cp.Variable(noise_values.size, nonneg=True)
    outcome_count = 2 * REACH + 3

    def make_law(shift: int) -> cp.Expression:
        """Return the masses of the outcomes -REACH - 1..REACH + 1 if the noise is shifted."""
        outcomes = np.clip(noise_values - shift, -REACH - 1, REACH + 1)
        outcomes[0] = -REACH - 1
        outcomes[-1] = REACH + 1
        matrix = np.zeros((outcome_count, noise_values.size))
        matrix[outcomes + REACH + 1, np.arange(noise_values.size)] = 1
        return matrix @ x

    constraints = [cp.sum(x) == 1]
    p = make_law(0)
    for shift in (*range(1, SENSITIVITY + 1), *range(-SENSITIVITY, 0)):
        q = make_law(shift)
        if max_entropy is not None:
            constraints.append(cp.sum(cp.rel_entr(p, q)) <= max_entropy)
        t = cp.Variable(outcome_count)
        constraints.append(cp.sum(t) <= math.e)
        constraints.append(cp.PowCone3D(t, q, p, np.full(outcome_count, 0.5)))
    objective = cp.Minimize(noise_values**2 @ x)
    # Clarabel does not reach this tolerance under relative entropies.
    tolerance = 1e-11 if max_entropy is None else 1e-8
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
    return float(cp.Problem(objective, constraints).solve(solver="CLARABEL", **tolerances))


def test_the_loss_and_the_bound_under_one_order_are_those_of_a_cone_program():
    answer = solve_line(ORDER_2)
    optimum = solve_cone_program(max_entropy=None)
    assert answer.value == pytest.approx(optimum, rel=1e-6)
    assert float(answer.bound) == pytest.approx(optimum, rel=1e-6)
    assert float(answer.bound) <= answer.value


def test_the_loss_under_all_orders_is_that_of_a_cone_program():
    """At rho = 0.5 the relative entropy and orders close to it determine the noise."""
    answer = solve_line(ALL_ORDERS)
    optimum = solve_cone_program(max_entropy=float(RHO))
    assert answer.value == pytest.approx(optimum, rel=1e-5)
    assert float(answer.bound) == pytest.approx(answer.value, rel=1e-6)


def test_a_program_that_is_not_folded_has_the_same_loss():
    answer = solve_line(ORDER_2, is_folded=False)
    assert answer.value == pytest.approx(solve_line(ORDER_2).value, rel=1e-7)


def test_hockey_sticks_are_not_smooth():
    line = LineProgram(1, 5, [lambda j: Fraction(abs(j))], [Bound(HOCKEY_STICK, 2.0, 0.1)])
    assert solve_smooth_line(line, np.zeros(line.weights.size), None) is None
