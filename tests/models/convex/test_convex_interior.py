"""Tests of the interior-point method for convex bounds, against a conic program.

The channels are zCDP: their Rényi divergence of every order α > 1 is at most ρ α.
"""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

import workbench as wb
from workbench.models.channel.program import ChannelModel
from workbench.models.convex.interior import InteriorPoint, LevelRange, solve_interior_point
from workbench.models.convex.requirements import POWER_CONE, RELATIVE_ENTROPY, Bound

_RHO = 0.2


def _bound_of_order(level: float) -> Bound:
    """Return the bound on the Rényi moment of the order α = 1 + e^level."""
    alpha = 1 + math.exp(level)
    return Bound(POWER_CONE, alpha, math.exp(_RHO * alpha * (alpha - 1)))


def _solve_example() -> tuple[np.ndarray, InteriorPoint]:
    """Return the costs of the masses, shape (16,), and the answer of the method.

    The channel has the answers and outputs 0..3, under orders from 1.016 to 50.
    """
    answer_values = np.arange(4.0)
    model = ChannelModel(
        answer_values,
        answer_values,
        np.full(4, 1 / 4),
        np.subtract.outer(answer_values, answer_values) ** 2,
        pairs=(),
    )
    comparisons = model.build_comparisons(((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)))
    even = np.full(model.program.shape[1], 1 / 4)
    levels = LevelRange(math.log(2**-6), math.log(49), _bound_of_order)
    entropy = [Bound(RELATIVE_ENTROPY, level=1.0, limit=_RHO)]
    answer = solve_interior_point(
        model.program.template,
        (comparisons.entries, comparisons.first, comparisons.second),
        bounds=entropy,
        level_range=levels,
        even_columns=even,
    )
    assert answer is not None
    return model.program.template.c, answer


def test_the_interior_point_is_private_at_every_order_and_optimal():
    costs, (x, active_bounds, _) = _solve_example()
    M = x.reshape(4, 4, order="F")
    assert np.abs(M.sum(axis=1) - 1).max() < 1e-10
    alphas = 1 + np.exp(np.linspace(math.log(2**-6), math.log(49), 4001))
    for p, q in [(M[i], M[j]) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2))]:
        moments = np.log((p[:, None] ** alphas * q[:, None] ** (1 - alphas)).sum(axis=0))
        assert (moments <= _RHO * alphas * (alphas - 1) + 1e-12).all()
    power_bounds = [bound for bound, *_ in active_bounds if bound.kind == POWER_CONE]
    active_orders = sorted({round(bound.level, 2) for bound in power_bounds})
    min_loss = _solve_conic_program(costs, [*active_orders, 1.1, 1.5, 2.0, 3.0, 5.0, 8.0])
    # The conic program uses rounded orders.
    assert min_loss * (1 - 1e-7) <= costs @ x <= min_loss * (1 + 1e-4)


def _solve_conic_program(costs: np.ndarray, alphas: list[float]) -> float:
    """Return the smallest loss under relative entropy and some of the orders, by Clarabel."""
    M = cp.Variable((4, 4), nonneg=True)
    rows = [cp.sum(M, axis=1) == 1]
    for i, j in ((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)):
        t = cp.Variable(4)
        rows += [cp.sum(t) <= _RHO, cp.ExpCone(-t, M[i, :], M[j, :])]
        for alpha in alphas:
            t = cp.Variable(4)
            power = cp.PowCone3D(t, M[j, :], M[i, :], np.full(4, 1 / alpha))
            rows += [cp.sum(t) <= math.exp(_RHO * alpha * (alpha - 1)), power]
    problem = cp.Problem(cp.Minimize(costs @ cp.vec(M, order="F")), rows)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize(
    ("notion", "max_gap"),
    [
        # The gap depends on the processor: it is below 1e-7 on some, and 2.3e-7 on others.
        ({"notion": "zcdp", "rho": ".1"}, 1e-6),
        ({"notion": "renyi", "alpha": 2, "epsilon": ".5"}, 1e-7),
    ],
    ids=["zcdp", "renyi"],
)
def test_eleven_answers_have_a_tight_bound(notion: dict[str, object], max_gap: float):
    design = wb.design(wb.FiniteQuery("0..10", max_shift=1), loss="squared", **notion)
    assert design.private
    assert 0 <= design.objective - design.bound <= max_gap * design.objective
