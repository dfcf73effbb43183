"""Tests of the interior-point method: private at every order, with the loss of a conic program."""

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


def _order(level: float) -> Bound:
    alpha = 1 + math.exp(level)
    return Bound(POWER_CONE, alpha, math.exp(_RHO * alpha * (alpha - 1)))


def _posed() -> tuple[np.ndarray, InteriorPoint]:
    """(losses, the answer) of a channel on 0..3 under orders from 1.016 to 50."""
    answer_values = np.arange(4.0)
    model = ChannelModel(
        answer_values,
        answer_values,
        np.full(4, 1 / 4),
        np.subtract.outer(answer_values, answer_values) ** 2,
        pairs=(),
    )
    compared = model.build_comparisons(((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)))
    even = np.full(model.program.shape[1], 1 / 4)
    levels = LevelRange(math.log(2**-6), math.log(49), _order)
    entropy = [Bound(RELATIVE_ENTROPY, 1.0, _RHO)]
    met = solve_interior_point(
        model.program.template,
        (compared.entries, compared.first, compared.second),
        entropy,
        levels,
        even,
    )
    assert met is not None
    return model.program.template.c, met


def test_the_interior_point_is_private_at_every_order_and_as_good_as_cones():
    costs, (x, pressing, _) = _posed()
    M = x.reshape(4, 4, order="F")
    assert np.abs(M.sum(axis=1) - 1).max() < 1e-10
    alphas = 1 + np.exp(np.linspace(math.log(2**-6), math.log(49), 4001))
    for p, q in [(M[i], M[j]) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2))]:
        moments = np.log((p[:, None] ** alphas * q[:, None] ** (1 - alphas)).sum(axis=0))
        assert (moments <= _RHO * alphas * (alphas - 1) + 1e-12).all()
    pressed = sorted({round(bound.level, 2) for bound, *_ in pressing if bound.kind == POWER_CONE})
    min_loss = _by_cones(costs, [*pressed, 1.1, 1.5, 2.0, 3.0, 5.0, 8.0])
    assert (
        min_loss * (1 - 1e-7) <= costs @ x <= min_loss * (1 + 1e-4)
    )  # The cones use rounded orders.


def _by_cones(costs: np.ndarray, alphas: list[float]) -> float:
    """The least loss under relative entropy and some of the orders, by Clarabel."""
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
    ("answers", "notion"),
    [
        ("0..10", {"notion": "zcdp", "rho": ".1"}),
        ("0..10", {"notion": "renyi", "alpha": 2, "epsilon": ".5"}),
    ],
    ids=["zcdp", "renyi"],
)
def test_ten_answers_are_proven_to_seven_digits(answers: str, notion: dict[str, object]):
    design = wb.design(wb.FiniteQuery(answers, max_shift=1), loss="squared", **notion)
    assert design.private
    assert 0 <= design.objective - design.bound <= 1e-7 * design.objective
