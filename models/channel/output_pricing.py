"""Multipliers of convex bounds at every output: the masses at which a column of a channel costs least.

With multipliers λ_c of bounds Σ_o φ_c(M[i,o], M[j,o]) <= L_c and v_y of the rows of M, a column x of masses costs

    h_o(x) = Σ_y (c[y,o] - v_y) x_y + Σ_c λ_c φ_c(x_i, x_j)

convex and homogeneous of degree 1. Where h_o(x) - τ Σ_y ln x_y is least over Σ_y x_y = 1, the slopes of φ_c leave every
reduced cost above the least of h_o, less k τ: masses of an interior method do so only where an output is in use.
Newton's method with steps that lower the barrier function, for all outputs at once, while τ falls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.models.convex.interior import ComparisonBounds
from workbench.models.convex.requirements import Bound
from workbench.solvers.arrays import Vector

_FIRST, _FALL, _STEPS, _MOST = (
    0.1,
    0.2,
    3,
    30,
)  # τ over the range of costs; of τ; steps for each, and the last
_CLOSE, _NOISE = (
    1e-7,
    1e-15,
)  # decrease that a step promises, over τ, from which it is the last; of the function
_SHARE, _DESCENT, _HALVED = (
    0.9,
    1e-3,
    12,
)  # of the way to the boundary; Armijo's share; times that a step is halved


def find_cheapest_columns(
    costs: Vector, active_bounds: Sequence[tuple[Bound, int, int, float]], final_barrier: float
) -> Vector:
    """The masses, (k, m) > 0. costs: (k, m), c - v; presses: φ, i, j and λ; last: τ in the end."""
    (k, m), i, j = (
        costs.shape,
        *(np.array([each[at] for each in active_bounds], dtype=int) for at in (1, 2)),
    )
    stated = ComparisonBounds(np.arange(len(active_bounds)), [bound for bound, *_ in active_bounds])
    weights = np.array([each[3] for each in active_bounds])[:, None] * stated.limits
    diagonal = np.arange(k)

    def slopes(x: Vector) -> tuple[Vector, Vector]:
        _, a, b, w = stated.evaluate(x[i], x[j])
        rise = costs.copy()
        np.add.at(rise, i, weights * a)
        np.add.at(rise, j, weights * b)
        return rise, weights * w

    def height(x: Vector, tau: float) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((slopes(x)[0] * x).sum(axis=0) - tau * np.log(x).sum(axis=0))

    def moved(x: Vector, tau: float) -> tuple[Vector, float]:
        rise, w = slopes(x)
        r = x[i] / x[j]
        bend = np.zeros((k, k, m))
        for at, second, value in ((i, i, w), (j, j, w * r * r), (i, j, -w * r), (j, i, -w * r)):
            np.add.at(bend, (at, second), value)
        bend[diagonal, diagonal] += tau / x**2
        rise = rise - tau / x
        sides = np.stack([rise, np.ones_like(x)], axis=-1).transpose(
            1, 0, 2
        )  # scaled by x, where H is near τ
        H = bend.transpose(2, 0, 1) * (x.T[:, :, None] * x.T[:, None, :]) / tau
        solved = np.linalg.solve(H, sides * x.T[:, :, None] / tau) * x.T[:, :, None]
        step = -(
            solved[..., 0]
            - solved[..., 1] * (solved[..., 0].sum(1) / solved[..., 1].sum(1))[:, None]
        ).T
        length = np.minimum(1.0, _SHARE / np.maximum(-(step / x).min(axis=0), 1e-300))
        here, along = height(x, tau), (rise * step).sum(axis=0)
        for _ in range(_HALVED):
            off = ~(
                height(x + length * step, tau)
                <= here + _DESCENT * length * along + _NOISE * np.abs(here)
            )
            if not off.any():
                break
            length = np.where(off, length / 2, length)
        return x + np.where(off, 0.0, length) * step, float(-along.min() / tau)

    x, tau = np.full((k, m), 1 / k), _FIRST * float(np.ptp(costs))
    while tau > final_barrier:
        tau = max(tau * _FALL, final_barrier)
        for _ in range(_STEPS if tau > final_barrier else _MOST):
            x, decrement = moved(x, tau)
            if decrement < _CLOSE:
                break
    return x
