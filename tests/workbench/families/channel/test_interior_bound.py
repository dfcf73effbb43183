"""Bounds on channels by multipliers alone: never above the optimum of a convex program that is written here."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.families.channel.family import FAMILY
from workbench.families.channel.interior_bound import bound_smooth_loss, solve_by_interior_point
from workbench.families.channel.proof import bound_least_loss
from workbench.families.channel.repair import Edges
from workbench.models.convex.requirements import POWER_CONE, RELATIVE_ENTROPY, Bound
from workbench.notions.gdp import GDP
from workbench.pipeline.loss_tables import LossTable

LINE = [(0, 1), (1, 0), (1, 2), (2, 1)]


def least_loss(
    losses: np.ndarray, prior: np.ndarray | None, alphas: dict[float, float], entropy: float = 0
) -> float:
    """Of all channels with Σ P^α Q^(1-α) <= M of every α: M, and relative entropy, along a line, by Clarabel."""
    k, m = losses.shape
    M = cp.Variable((k, m), nonneg=True)
    rows = [cp.sum(M, axis=1) == 1]
    for i, j in [(i, i + s) for i in range(k) for s in (-1, 1) if 0 <= i + s < k]:
        for alpha, most in alphas.items():
            t = cp.Variable(m)
            rows += [cp.sum(t) <= most, cp.PowCone3D(t, M[j], M[i], np.full(m, 1 / alpha))]
        if entropy:
            rows.append(cp.sum(cp.rel_entr(M[i], M[j])) <= entropy)
    each = cp.sum(cp.multiply(losses, M), axis=1)
    loss = cp.max(each) if prior is None else prior @ each
    return float(cp.Problem(cp.Minimize(loss), rows).solve(solver="CLARABEL"))


@pytest.mark.parametrize(
    "prior", [(Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)), None], ids=["prior", "worst"]
)
def test_any_multipliers_and_tangents_prove_no_more_than_the_optimum(prior):
    rng = np.random.default_rng(3)
    table = LossTable("own", np.array(rng.integers(0, 9, (3, 5)), dtype=object), 4)
    bounds = [Bound(POWER_CONE, 3.0, 1.4), Bound(RELATIVE_ENTROPY, 1.0, 0.1)]
    weights = None if prior is None else np.array([float(p) for p in prior])
    least = least_loss(table.floats, weights, {3.0: 1.4}, 0.1)
    best = -math.inf
    for size in (0.01, 0.1, 1.0, 10.0):
        for _ in range(25):
            presses = [
                (bound, i, j, float(size * rng.random())) for i, j in LINE for bound in bounds
            ]
            masses = rng.dirichlet(np.full(5, 0.5 if size < 1 else 20.0), 3)
            best = max(best, float(bound_smooth_loss(table, prior, rng.random(3), presses, masses)))
    assert best <= least + 1e-7


@pytest.mark.parametrize("prior", ["5,2,1", "worst"])
@pytest.mark.parametrize("notion", ["renyi", "zcdp"])
def test_the_multipliers_of_the_interior_method_prove_its_own_point(prior, notion):
    outputs = "0..2:0.25"
    budget = {"alpha": 3, "epsilon": "0.4"} if notion == "renyi" else {"rho": "0.2"}
    request = FAMILY.make_request(
        wb.FiniteQuery("0..2", outputs, max_shift=1, prior=prior), notion=notion, **budget
    )
    masses, bound = solve_by_interior_point(request)
    each = (masses * request.losses.floats).sum(axis=1)
    reached = each.max() if request.prior_weights is None else request.prior_weights @ each
    assert float(bound) <= reached + 1e-9
    assert reached - float(bound) <= 1e-4 * reached
    alphas = [3.0] if notion == "renyi" else [1.5, 2.0, 3.0, 5.0]
    limits = {a: math.exp((a - 1) * (0.4 if notion == "renyi" else 0.2 * a)) for a in alphas}
    least = least_loss(
        request.losses.floats, request.prior_weights, limits, 0 if notion == "renyi" else 0.2
    )
    assert least - 1e-6 <= reached  # which is within more bounds
    if notion == "renyi":
        assert float(bound) <= least + 1e-6


def test_the_bound_on_a_fine_list_of_outputs_is_below_cones():
    listed = wb.design(
        wb.FiniteQuery("0..2", "0..2:0.05", max_shift=1), notion="renyi", alpha=4, epsilon="0.8"
    )
    outputs = np.linspace(0, 2, 41)
    losses = (outputs - np.arange(3)[:, None]) ** 2
    least = least_loss(losses, np.full(3, 1 / 3), {4.0: math.exp(3 * 0.8)})
    assert listed.bound <= least + 1e-7
    assert least - 1e-6 <= listed.objective <= listed.bound * 1.01


def test_hockey_sticks_of_several_epsilons_prove_no_more_than_their_program():
    """One pair under several (ε, δ), with multipliers that are any."""
    rng = np.random.default_rng(11)
    table = LossTable("own", np.array(rng.integers(0, 9, (3, 4)), dtype=object), 3)
    sticks = [
        (Fraction(0), Fraction(1, 4)),
        (Fraction(1, 2), Fraction(1, 10)),
        (Fraction(-1, 2), Fraction(9, 20)),
    ]
    rows = [(pair, *stick) for pair in LINE for stick in sticks]
    size = 12 + 4 * len(rows)
    above, high = [], []
    for at, ((i, j), epsilon, delta) in enumerate(rows):
        for o in range(4):
            row = np.zeros(size)
            row[[4 * i + o, 4 * j + o, 12 + 4 * at + o]] = 1, -math.exp(epsilon), -1
            above.append(row)
            high.append(0.0)
        row = np.zeros(size)
        row[12 + 4 * at : 16 + 4 * at] = 1
        above.append(row)
        high.append(float(delta))
    costs = np.concatenate([(table.floats / 3).ravel(), np.zeros(size - 12)])
    equal = np.hstack([np.kron(np.eye(3), np.ones(4)), np.zeros((3, size - 12))])
    found = linprog(costs, above, high, equal, np.ones(3), method="highs")
    edges, delta = (
        Edges([pair for pair, *_ in rows], [e for _, e, _ in rows]),
        [d for *_, d in rows],
    )
    prior = [Fraction(1, 3)] * 3
    for _ in range(50):
        u = {"ratio": rng.random((len(rows), 4)) * rng.choice([0.01, 0.1, 1])}
        assert bound_least_loss(table, prior, edges, delta, u) <= found.fun + 1e-9
    duals = -found.ineqlin.marginals.reshape(len(rows), 5)[:, :4]
    assert float(bound_least_loss(table, prior, edges, delta, {"ratio": duals})) == pytest.approx(
        found.fun, abs=1e-9
    )


@pytest.mark.parametrize("mu", ["0.1", "1", "3", "8"])
def test_the_tighter_hockey_sticks_meet_above_the_curve_of_gaussian_dp(mu):
    """P - e^ε Q = δ and P - e^ε' Q = δ' cross at (P, Q) with Φ^-1(P) - Φ^-1(Q) <= μ; those implied have the δ of μ."""
    normal, value = NormalDist(), float(mu)
    sticks = GDP().hockey_stick_grid({"mu": Fraction(mu)})
    for (implied, one), (_, two) in pairwise(sticks):
        assert one.epsilon == implied.epsilon
        assert one.delta < implied.delta
        e, f = math.exp(one.epsilon), math.exp(two.epsilon)
        q = float(one.delta - two.delta) / (f - e)
        p = float(one.delta) + e * q
        if p > 1e-9 and q > 1e-9:
            assert normal.inv_cdf(p) - normal.inv_cdf(q) <= value * (
                1 + 1e-4
            )  # ε are multiples of 2^-14
        near, far = (
            math.erfc((float(implied.epsilon) / value + side) / 2**0.5) / 2
            for side in (-value / 2, value / 2)
        )
        exact = near - math.exp(implied.epsilon) * far
        assert exact <= float(implied.delta) <= exact + 1e-12


@pytest.mark.parametrize(
    ("answers", "outputs", "budget"),
    [
        ("0..3", "0..3:0.5", {"notion": "gdp", "mu": 3}),
        ("0..3", "0..3:0.5", {"notion": "gdp", "mu": "0.1"}),
        ("0..3", "0..3:0.25", {"notion": "zcdp", "rho": "0.1"}),
        ("0..20", None, {"notion": "renyi", "alpha": 8, "epsilon": "0.5"}),
    ],
    ids=str,
)
def test_listed_outputs_are_proven_within_a_percent(answers, outputs, budget):
    listed = wb.design(wb.FiniteQuery(answers, outputs, max_shift=1), **budget)
    assert listed.certificate is not None
    assert listed.objective * 0.99 <= listed.bound <= listed.objective


def test_multipliers_prove_what_a_program_of_tangents_left_open():
    listed = wb.design(
        wb.FiniteQuery("0..20", max_shift=1), notion="zcdp", rho="0.1", loss="absolute"
    )
    assert 0.999 * listed.objective <= listed.bound <= listed.objective


@pytest.mark.parametrize(
    "budget", [{"notion": "gdp", "mu": 1}, {"notion": "zcdp", "rho": "0.1"}], ids=str
)
def test_the_absolute_loss_needs_no_output_beside_the_answers(budget):
    listed, finer = (
        wb.design(wb.FiniteQuery("0..3", outputs, max_shift=1), loss="absolute", **budget)
        for outputs in ("0..3", "0..3:0.5")
    )
    assert listed.objective - listed.bound <= 1e-6 * listed.objective
    assert finer.objective >= listed.bound
