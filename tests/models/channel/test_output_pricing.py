"""The cheapest columns of a channel at multipliers of convex bounds, beside Clarabel."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from workbench.models.channel.output_pricing import find_cheapest_columns
from workbench.models.convex.requirements import POWER_CONE, RELATIVE_ENTROPY, Bound
from workbench.models.convex.tangents import compute_tangents


def test_reduced_costs_are_nowhere_below_the_least_of_the_column():
    """A column of Σ x = 1 costs Σ c x + Σ λ φ(x_i, x_j).

    With tangents at the cheapest column no reduced cost is below its cost.
    """
    rng = np.random.default_rng(7)
    costs = rng.uniform(-1, 1, (4, 6))
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    presses = [
        (Bound(POWER_CONE, alpha, 1.5), i, j, float(rng.uniform(0.1, 2)))
        for i, j in pairs
        for alpha in (2, 5)
    ]
    presses += [(Bound(RELATIVE_ENTROPY, 1.0, 0.3), i, j, 0.5) for i, j in pairs]
    x = find_cheapest_columns(costs, presses, 1e-9)
    assert x.min() > 0
    reduced = costs.copy()
    for bound, i, j, multiplier in presses:
        a, b = compute_tangents(bound, x[i], x[j])
        reduced[i] += multiplier * a
        reduced[j] += multiplier * b
    for o in range(6):
        v = cp.Variable(4, nonneg=True)
        value, rows = costs[:, o] @ v, [cp.sum(v) == 1]
        for bound, i, j, multiplier in presses:
            t = cp.Variable()
            if bound.kind == POWER_CONE:  # This states t >= P^α Q^(1-α).
                rows.append(cp.PowCone3D(t, v[j], v[i], 1 / bound.level))
                value += multiplier * (t - bound.level * v[i] + (bound.level - 1) * v[j])
            else:
                value += multiplier * (cp.rel_entr(v[i], v[j]) - v[i] + v[j])
        min_cost = cp.Problem(cp.Minimize(value), rows).solve(solver="CLARABEL")
        assert min_cost - 1e-5 <= reduced[:, o].min() <= min_cost + 1e-5
