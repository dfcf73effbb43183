"""Conic programs: compiled with parameters, solved, bounded from below by their own multipliers, refused by name."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

from solvers.backend import backend, solve
from solvers.canonical import compile
from solvers.cones import Cone, Cones, lifted, violation
from solvers.errors import BackendUnavailable, InvalidProgram
from solvers.solution import Termination


def distance():
    """The point of the box [0, 4]² on the line x + 2 y = s that is nearest to the origin: |s|/√5."""
    x, s = cp.Variable(2, name="x", bounds=[0, 4]), cp.Parameter(name="s")
    return cp.Problem(cp.Minimize(cp.norm2(x)), [x[0] + 2 * x[1] == s]), {"s": 3.0}, 3 / math.sqrt(5)


def entropy():
    """min KL(p | (a, 1 - a)) with p_0 >= 3/4."""
    p, a = cp.Variable(2, name="p", bounds=[0, 1]), cp.Parameter(2, name="a", nonneg=True)
    least = 0.75 * math.log(0.75 / 0.25) + 0.25 * math.log(0.25 / 0.75)
    cost = cp.sum(-cp.entr(p)) - cp.sum(cp.multiply(np.log([0.25, 0.75]), p))
    return cp.Problem(cp.Minimize(cost), [cp.sum(p) == 1, p[0] >= 3 * a[0]]), {"a": [0.25, 0.75]}, least


def moments():
    """min Σ t with t_i^(1/α) q_i^(1-1/α) >= p_i for fixed p, q: Σ p^α q^(1-α), for α = 2, 3."""
    t, p, q = cp.Variable(4, name="t", bounds=[0, 9]), np.array([0.5, 0.25]), cp.Parameter(2, name="q", nonneg=True)
    orders = np.repeat([2.0, 3.0], 2)
    rows = [cp.PowCone3D(t, cp.hstack([q, q]), np.tile(p, 2), 1 / orders)]
    value = sum(np.tile(p, 2) ** orders * np.tile([0.4, 0.6], 2) ** (1 - orders))
    return cp.Problem(cp.Minimize(cp.sum(t)), rows), {"q": [0.4, 0.6]}, value


@pytest.mark.parametrize("model", [distance, entropy, moments])
def test_a_compiled_program_reaches_the_known_optimum(model):
    problem, values, optimum = model()
    program = compile(problem, model.__name__, conic=True)
    assert program.cones
    found = solve(program, values, solver="cvxpy:clarabel")
    assert found.optimal
    assert found.objective == pytest.approx(optimum, abs=1e-6)
    assert found.residuals.worst < 1e-6
    assert found.bound is not None
    assert found.objective - 1e-5 <= found.bound <= optimum + 1e-9
    with pytest.raises(InvalidProgram, match="linear"):
        compile(problem, model.__name__)


def test_scaled_programs_keep_their_cones():
    problem, values, optimum = distance()
    found = solve(compile(problem, "scaled", scale=2.0**6, conic=True), values, solver="cvxpy:clarabel")
    assert found.objective == pytest.approx(optimum, abs=1e-7)


def test_linear_solvers_refuse_by_name():
    program = compile(distance()[0], "distance", conic=True)
    with pytest.raises(BackendUnavailable, match=r"highs knows no second-order cones.*Use cvxpy:clarabel"):
        backend("highs").open(program)
    assert "power cones" in backend("cvxpy:clarabel").capabilities().words()


def test_an_infeasible_program_is_proven_so():
    x = cp.Variable(2, name="x")
    program = compile(cp.Problem(cp.Minimize(x[0]), [cp.norm2(x) <= 1, x[0] + x[1] >= 2]), "far", conic=True)
    found = solve(program, solver="cvxpy:clarabel")
    assert found.termination is Termination.INFEASIBLE
    assert found.x is None


CONES = [
    Cones(Cone.SECOND_ORDER, np.arange(12).reshape(3, 4)),
    Cones(Cone.POWER, np.arange(9).reshape(3, 3), np.array([0.5, 0.25, 0.9])),
    Cones(Cone.EXPONENTIAL, np.arange(9).reshape(3, 3)),
]


def inside(cone: Cones, rng: np.random.Generator) -> np.ndarray:
    """A random point of the cones."""
    x = rng.normal(size=cone.columns.shape)
    if cone.kind is Cone.SECOND_ORDER:
        x[:, 0] = np.linalg.norm(x[:, 1:], axis=1) * (1 + rng.random(3))
    elif cone.kind is Cone.POWER:
        x[:, :2] = np.abs(x[:, :2])
        reach = x[:, 0] ** cone.exponents * x[:, 1] ** (1 - cone.exponents)
        x[:, 2] = reach * rng.uniform(-1, 1, 3)
    else:
        x[:, 1] = np.abs(x[:, 1]) + 0.1
        x[:, 2] = x[:, 1] * np.exp(x[:, 0] / x[:, 1]) * (1 + rng.random(3))
    return x.ravel()


@pytest.mark.parametrize("cone", CONES, ids=lambda cone: str(cone.kind))
def test_what_is_lifted_lies_in_the_dual_cone(cone):
    """z*'x >= 0 for every x in the cone; what is already in the dual cone hardly moves."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        z = lifted([cone], rng.normal(size=cone.columns.size))
        again = lifted([cone], z)
        assert np.allclose(again, z, rtol=1e-12, atol=1e-14)
        for _ in range(20):
            x = inside(cone, rng)
            assert violation([cone], x) <= 1e-12 * max(1, np.abs(x).max())
            products = (z * x).reshape(cone.columns.shape)
            assert (products.sum(axis=1) >= -1e-12 * np.abs(products).sum(axis=1)).all()
    assert violation([cone], -np.ones(cone.columns.size)) > 0.5


def test_wrong_cones_are_refused():
    three = np.arange(3).reshape(1, 3)
    with pytest.raises(InvalidProgram, match="three columns"):
        Cones(Cone.EXPONENTIAL, np.arange(4).reshape(1, 4))
    with pytest.raises(InvalidProgram, match="exponents"):
        Cones(Cone.POWER, three)
    with pytest.raises(InvalidProgram, match=r"\(0, 1\)"):
        Cones(Cone.POWER, three, np.array([1.0]))
