"""Tests of the columns of a channel with the smallest reduced cost, against the solver Clarabel."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from workbench.models.channel.output_pricing import find_cheapest_columns
from workbench.models.convex.requirements import POWER_CONE, RELATIVE_ENTROPY, Bound
from workbench.models.convex.tangents import compute_tangents


def test_tangents_at_the_cheapest_column_keep_its_reduced_cost():
    """A column x with Σ x = 1 has the reduced cost Σ c x + Σ λ φ(x_i, x_j).

    With tangents of φ at the cheapest column in place of φ, each answer i has a reduced cost at
    each output. At every output, the smallest of them equals the cost of the cheapest column.
    """
    rng = np.random.default_rng(7)
    costs = rng.uniform(-1, 1, (4, 6))
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    # The entries are (bound φ, i, j, multiplier λ).
    active_bounds = [
        (Bound(POWER_CONE, alpha, limit=1.5), i, j, float(rng.uniform(0.1, 2)))
        for i, j in pairs
        for alpha in (2, 5)
    ]
    active_bounds += [(Bound(RELATIVE_ENTROPY, level=1.0, limit=0.3), i, j, 0.5) for i, j in pairs]
    x = find_cheapest_columns(costs, active_bounds, final_barrier=1e-9)
    assert x.min() > 0
    reduced = costs.copy()
    for bound, i, j, multiplier in active_bounds:
        a, b = compute_tangents(bound, x[i], x[j])
        reduced[i] += multiplier * a
        reduced[j] += multiplier * b
    for o in range(6):
        v = cp.Variable(4, nonneg=True)
        reduced_cost = costs[:, o] @ v
        rows = [cp.sum(v) == 1]
        for bound, i, j, multiplier in active_bounds:
            t = cp.Variable()
            if bound.kind == POWER_CONE:  # This states t >= P^α Q^(1-α).
                rows.append(cp.PowCone3D(t, v[j], v[i], 1 / bound.level))
                reduced_cost += multiplier * (t - bound.level * v[i] + (bound.level - 1) * v[j])
            else:
                reduced_cost += multiplier * (cp.rel_entr(v[i], v[j]) - v[i] + v[j])
        min_cost = cp.Problem(cp.Minimize(reduced_cost), rows).solve(solver="CLARABEL")
        assert min_cost - 1e-5 <= reduced[:, o].min() <= min_cost + 1e-5
