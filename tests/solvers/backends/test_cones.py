"""Tests of programs with second-order cones: they are solved, or the backend refuses them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from workbench.solvers.backend import get_backend, solve
from workbench.solvers.data import Data
from workbench.solvers.errors import BackendUnavailable, InvalidProgram
from workbench.solvers.program import Block, Program
from workbench.solvers.solution import Termination


def make_distance_program(right_side: float = 3.0, max_radius: float = np.inf) -> Program:
    """State the distance of a line from the origin; the optimum is right_side / √5.

    It is min r with r >= |(x, y)|, x + 2 y = right_side and r <= max_radius.
    """
    free = np.full(3, np.inf)
    data = Data(
        c=np.array([1.0, 0.0, 0.0]),
        offset=0.0,
        A=sp.csc_array(np.array([[0.0, 1.0, 2.0]])),
        row_lower=np.array([right_side]),
        row_upper=np.array([right_side]),
        lower=-free,
        upper=np.array([max_radius, np.inf, np.inf]),
        integrality=np.zeros(3, dtype=bool),
    )
    return Program("distance", data, variables=(Block("x", 0, (3,)),), cones=np.array([[0, 1, 2]]))


def test_a_program_with_a_cone_is_solved_to_its_optimum():
    solution = solve(make_distance_program(), solver="cvxpy:clarabel")
    assert solution.is_optimal
    assert solution.objective == pytest.approx(3 / math.sqrt(5), abs=1e-7)
    assert solution.residuals.max_violation < 1e-7
    assert solution.bound is None  # With cones, multipliers of rows prove no bound.


def test_residuals_include_the_violation_of_the_cone():
    solution = solve(make_distance_program(), solver="cvxpy:clarabel")
    solution.x[0] -= 0.5
    vars(solution).pop("residuals", None)  # Residuals are cached.
    assert solution.residuals.cones == pytest.approx(0.5, abs=1e-6)


def test_a_linear_solver_refuses_cones_and_names_a_solver_that_accepts_them():
    message = r"highs cannot solve programs with second-order cones.*Use cvxpy:clarabel"
    with pytest.raises(BackendUnavailable, match=message):
        get_backend("highs").open(make_distance_program())
    assert "second order cones" in get_backend("cvxpy:clarabel").capabilities().describe()


def test_an_infeasible_program_with_a_cone_is_called_infeasible():
    solution = solve(make_distance_program(max_radius=1.0), solver="cvxpy:clarabel")
    assert solution.termination is Termination.INFEASIBLE
    assert solution.x is None


def test_a_session_does_not_follow_a_program_with_cones():
    with (
        get_backend("cvxpy:clarabel").open(make_distance_program()) as session,
        pytest.raises(InvalidProgram, match="pattern"),
    ):
        session.follow(make_distance_program(right_side=2.0))
