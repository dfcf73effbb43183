"""Test programs of tangents against the same bounds stated as cones.

A notion such as Rényi DP bounds a convex function of the masses. A program of tangents replaces it
by linear rows. Some tests have requests where a solver of cones finds no point.
"""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

import workbench as wb
from workbench.models.convex.tangent_program import TangentProgram
from workbench.solvers.solution import Solution


def _solve_by_cones(prior: np.ndarray | None, alpha: float | None, limit: float) -> float:
    """Return the minimal squared error of a channel on 0..2, by CVXPY and Clarabel.

    Args:
        prior: Weights of the three answers. None: the worst answer counts.
        alpha: Order of the Rényi divergence of consecutive rows. None: the relative entropy.
        limit: Largest divergence.
    """
    M = cp.Variable((3, 3), nonneg=True)
    rows = [cp.sum(M, axis=1) == 1]
    for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)):
        t = cp.Variable(3)
        if alpha is None:
            rows += [cp.sum(t) <= limit, cp.ExpCone(-t, M[i, :], M[j, :])]
        else:
            power = cp.PowCone3D(t, M[j, :], M[i, :], np.full(3, 1 / alpha))
            rows += [cp.sum(t) <= math.exp((alpha - 1) * limit), power]
    losses = cp.sum(cp.multiply(M, np.subtract.outer(np.arange(3), np.arange(3)) ** 2), axis=1)
    loss = cp.max(losses) if prior is None else prior @ losses
    problem = cp.Problem(cp.Minimize(loss), rows)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize(("prior", "weights"), [(None, np.full(3, 1 / 3)), ("worst", None)])
def test_tangents_and_cones_find_the_same_optimum(prior: str | None, weights: np.ndarray | None):
    question = wb.FiniteQuery("0..2", max_shift=1, prior=prior)
    renyi = wb.design(question, notion="renyi", alpha=4, epsilon="0.5", loss="squared")
    assert renyi.objective == pytest.approx(
        _solve_by_cones(weights, alpha=4.0, limit=0.5), rel=1e-6
    )
    assert 0 <= renyi.objective - renyi.bound <= 1e-7 * renyi.objective
    zcdp = wb.design(question, notion="zcdp", rho="0.3", loss="squared")
    # zCDP bounds every order, and the relative entropy is one of them (the limit α -> 1).
    assert zcdp.objective >= _solve_by_cones(weights, alpha=None, limit=0.3) * (1 - 1e-6)
    assert 0 <= zcdp.objective - zcdp.bound <= 1e-6 * zcdp.objective
    assert zcdp.private


@pytest.mark.parametrize(
    ("k", "epsilon", "loss"), [(4, "1.1986", "squared"), (6, "1.3513", "squared")]
)
def test_linear_programs_find_a_design_where_cones_find_no_point(k: int, epsilon: str, loss: str):
    """Clarabel ends with InsufficientProgress on these requests, at every tolerance."""
    design = wb.design(
        wb.Labels(range(k)), epsilon=epsilon, alpha=8, notion="renyi", method="lp", loss=loss
    )
    assert design.private
    assert design.bound is not None
    assert design.bound <= design.objective <= design.bound * (1 + 1e-6)


def test_the_best_bound_is_kept_if_close_hockey_sticks_spoil_the_last_one():
    """With hockey sticks at almost equal ε, HiGHS stops at a gap of 4e-5. Its last multipliers then
    prove a smaller bound than earlier ones.
    """
    design = wb.design(wb.FiniteQuery("0..10", max_shift=1), notion="gdp", mu="2", loss="squared")
    assert design.private
    assert design.bound is not None
    assert design.bound <= design.objective <= design.bound * (1 + 1e-6)


def test_a_channel_under_gaussian_dp_needs_no_column_beside_its_masses(
    monkeypatch: pytest.MonkeyPatch,
):
    programs = []
    build_solution = TangentProgram.build_solution

    def record_and_build(program: TangentProgram) -> Solution:
        """Record the linear program, and build its solution as usual."""
        programs.append(program.master)
        return build_solution(program)

    monkeypatch.setattr(TangentProgram, "build_solution", record_and_build)
    wb.design(wb.FiniteQuery("0..5", max_shift=1), notion="gdp", mu=1, loss="squared")
    assert [program.width for program in programs] == [36]
    # With a column for each term of a hockey stick, the program had 1,618 rows and a gap of 5e-7.
    assert programs[0].rows < 1000


def test_noise_under_gaussian_dp_is_tight_if_its_solution_exceeds_a_limit_by_the_tolerance():
    """Without a last segment from deep inside the bounds, the gap is 4e-7."""
    question = wb.ModuloNoise(n=12, max_shift=1)
    design = wb.design(question, notion="gdp", mu="0.8", loss="circular-squared")
    assert design.private
    assert design.bound is not None
    assert design.bound <= design.objective <= design.bound * (1 + 1e-7)
