"""Programs with second-order cones are solved and measured, or refused by name."""

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


def nearest(right: float = 3.0, most: float = np.inf) -> Program:
    """min r with r >= |(x, y)|, x + 2 y = right, r <= most: right/√5."""
    free = np.full(3, np.inf)
    data = Data(
        np.array([1.0, 0.0, 0.0]),
        0.0,
        sp.csc_array(np.array([[0.0, 1.0, 2.0]])),
        np.array([right]),
        np.array([right]),
        -free,
        np.array([most, np.inf, np.inf]),
        np.zeros(3, dtype=bool),
    )
    return Program("nearest", data, variables=(Block("x", 0, (3,)),), cones=np.array([[0, 1, 2]]))


def test_a_program_with_a_cone_reaches_its_optimum():
    found = solve(nearest(), solver="cvxpy:clarabel")
    assert found.is_optimal
    assert found.objective == pytest.approx(3 / math.sqrt(5), abs=1e-7)
    assert found.residuals.max_violation < 1e-7
    assert found.bound is None  # multipliers of rows alone prove nothing of it


def test_residuals_measure_the_cone():
    found = solve(nearest(), solver="cvxpy:clarabel")
    found.x[0] -= 0.5
    found.__dict__.pop("residuals", None)
    assert found.residuals.cones == pytest.approx(0.5, abs=1e-6)


def test_linear_solvers_refuse_by_name():
    with pytest.raises(
        BackendUnavailable,
        match=r"highs cannot solve programs with second-order cones.*Use cvxpy:clarabel",
    ):
        get_backend("highs").open(nearest())
    assert "second order cones" in get_backend("cvxpy:clarabel").capabilities().describe()


def test_an_infeasible_program_ends_so():
    found = solve(nearest(most=1.0), solver="cvxpy:clarabel")
    assert found.termination is Termination.INFEASIBLE
    assert found.x is None


def test_programs_with_cones_are_not_followed():
    with (
        get_backend("cvxpy:clarabel").open(nearest()) as session,
        pytest.raises(InvalidProgram, match="pattern"),
    ):
        session.follow(nearest(right=2.0))
