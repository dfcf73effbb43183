"""Find, for every output of a channel, the column of masses with the smallest reduced cost.

A caller states the tangents of convex privacy bounds at these columns and so proves a lower bound
on the loss.

Notation. M[y,o] is the channel, with k labels y and m outputs o. c[y,o] are the costs. Bound b says
Σ_o φ_b(M[i,o], M[j,o]) <= L_b for two labels i and j; φ_b is its term
(`workbench.models.convex.requirements`), L_b its limit and λ_b its multiplier. v_y is the
multiplier of the row Σ_o M[y,o] = 1, and τ the weight of the barrier.

A column x of masses x_y, one for each label, has at output o the reduced cost

    h_o(x) = Σ_y (c[y,o] - v_y) x_y + Σ_b λ_b φ_b(x_i, x_j)

It is convex and homogeneous of degree 1. Let x minimise h_o(x) - τ Σ_y ln x_y over Σ_y x_y = 1.
With the tangents of φ_b at x in place of φ_b, every reduced cost of a label at output o is at least
min h_o - k τ. Tangents at the masses of an interior-point method have this property only for
outputs of positive mass. Newton's method minimises the barrier function for all outputs at once.
Every step lowers it, and τ falls from one round of steps to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.models.convex.interior import ComparisonBounds
from workbench.models.convex.requirements import Bound
from workbench.solvers.arrays import Positions, Vector


@dataclass(frozen=True)
class PricingLimits:
    """The tuning numbers of the pricing of columns.

    Attributes:
        first_barrier: τ before the first decrease, divided by the range (largest minus smallest)
            of the costs.
        barrier_factor: factor below 1 by which τ is multiplied in every round.
        steps: largest number of Newton steps for each τ but the last.
        last_steps: largest number of Newton steps for the last τ.
        min_decrease: τ gets no further step after one that promises a decrease below this times τ.
        function_noise: relative rounding error of the barrier function.
        boundary_share: share of the way to the boundary that a step takes.
        armijo_share: share of the promised decrease that a step must reach (Armijo's rule).
        max_halvings: largest number of halvings of a step; a step that still fails is not taken.
        min_ratio: a smaller ratio of a step to x counts as this, since it divides a number.
    """

    first_barrier: float = 0.1
    barrier_factor: float = 0.2
    steps: int = 3
    last_steps: int = 30
    min_decrease: float = 1e-7
    function_noise: float = 1e-15
    boundary_share: float = 0.9
    armijo_share: float = 1e-3
    max_halvings: int = 12
    min_ratio: float = 1e-300


_LIMITS = PricingLimits()


class _ColumnCosts:
    """The reduced costs h_o of columns, with their derivatives.

    Args:
        costs: c - v, shape (k, m).
        active_bounds: bounds, each a tuple (bound, i, j, multiplier) with the positions i and j of
            its labels and its multiplier λ >= 0.

    Attributes:
        i: label i of each bound, shape (bounds,).
        j: label j of each bound, shape (bounds,).
    """

    def __init__(
        self,
        costs: Vector,
        active_bounds: Sequence[tuple[Bound, int, int, float]],
    ) -> None:
        self._costs = costs
        count = len(active_bounds)
        self.i = np.array([i for _, i, _, _ in active_bounds], dtype=int)
        self.j = np.array([j for _, _, j, _ in active_bounds], dtype=int)
        bounds = [bound for bound, *_ in active_bounds]
        self._bounds = ComparisonBounds(np.arange(count), bounds)
        multipliers = np.array([multiplier for *_, multiplier in active_bounds])
        # `ComparisonBounds.evaluate` divides by the limits; the weights multiply them back.
        self._weights = multipliers[:, None] * self._bounds.limits

    def slopes(self, x: Vector) -> tuple[Vector, Vector]:
        """Compute the gradient of h, and the second derivatives of its terms.

        Returns:
            The gradient, shape (k, m), and λ_b times the second derivative of φ_b in x_i, shape
            (bounds, m).
        """
        _, i_slopes, j_slopes, i_curvatures = self._bounds.evaluate(x[self.i], x[self.j])
        gradient = self._costs.copy()
        np.add.at(gradient, self.i, self._weights * i_slopes)
        np.add.at(gradient, self.j, self._weights * j_slopes)
        return gradient, self._weights * i_curvatures

    def barrier_value(
        self,
        x: Vector,
        tau: float,
    ) -> Vector:
        """Compute h_o(x) - τ Σ_y ln x_y, shape (m,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            # h is homogeneous of degree 1, so it is its gradient times x (Euler).
            gradient, _ = self.slopes(x)
            reduced_costs = (gradient * x).sum(axis=0)
            return np.asarray(reduced_costs - tau * np.log(x).sum(axis=0))


def find_cheapest_columns(
    costs: Vector,
    active_bounds: Sequence[tuple[Bound, int, int, float]],
    final_barrier: float,
) -> Vector:
    """Find the masses at which every column has the smallest reduced cost, up to the barrier.

    Args:
        costs: c - v, shape (k, m).
        active_bounds: bounds, each a tuple (bound, i, j, multiplier) with the positions i and j of
            its labels and its multiplier λ >= 0.
        final_barrier: the last τ > 0, in units of the costs.

    Returns:
        The columns x: masses > 0 with sum 1 for each output, shape (k, m).
    """
    k, m = costs.shape
    column_costs = _ColumnCosts(costs, active_bounds)
    x = np.full((k, m), 1 / k)
    tau = _LIMITS.first_barrier * float(np.ptp(costs))
    while tau > final_barrier:
        tau = max(tau * _LIMITS.barrier_factor, final_barrier)
        for _ in range(_LIMITS.steps if tau > final_barrier else _LIMITS.last_steps):
            x, decrease = _take_newton_step(column_costs, x, tau)
            if decrease < _LIMITS.min_decrease:
                break
    return x


def _take_newton_step(
    column_costs: _ColumnCosts,
    x: Vector,
    tau: float,
) -> tuple[Vector, float]:
    """Take one Newton step for all outputs.

    Returns the new masses, shape (k, m), and the largest promised decrease divided by τ.
    """
    gradient, curvatures = column_costs.slopes(x)
    hessian = _hessian(column_costs.i, column_costs.j, x, w=curvatures, tau=tau)
    gradient = gradient - tau / x
    # Rows and columns are scaled by x, so that the diagonal is at least 1 in units of τ.
    right_sides = np.stack([gradient, np.ones_like(x)], axis=-1).transpose(1, 0, 2)
    scale = x.T[:, :, None]
    scaled_hessian = hessian.transpose(2, 0, 1) * (scale * x.T[:, None, :]) / tau
    solutions = np.linalg.solve(scaled_hessian, right_sides * scale / tau) * scale
    newton = solutions[..., 0]
    ones = solutions[..., 1]
    # The multiple of H⁻¹ 1 keeps the sum of the masses of each output.
    step = -(newton - ones * (newton.sum(1) / ones.sum(1))[:, None]).T
    boundary_ratio = np.maximum(-(step / x).min(axis=0), _LIMITS.min_ratio)
    length = np.minimum(1.0, _LIMITS.boundary_share / boundary_ratio)
    value = column_costs.barrier_value(x, tau)
    slope = (gradient * step).sum(axis=0)
    noise = _LIMITS.function_noise * np.abs(value)
    for _ in range(_LIMITS.max_halvings):
        new_value = column_costs.barrier_value(x + length * step, tau)
        max_value = value + _LIMITS.armijo_share * length * slope + noise
        is_too_high = ~(new_value <= max_value)
        if not is_too_high.any():
            break
        length = np.where(is_too_high, length / 2, length)
    return x + np.where(is_too_high, 0.0, length) * step, float(-slope.min() / tau)


def _hessian(
    i: Positions,
    j: Positions,
    x: Vector,
    w: Vector,
    tau: float,
) -> Vector:
    """Compute the second derivative of the barrier function, shape (k, k, m).

    i and j are the labels of the bounds, x the columns (k, m), and tau the weight of the barrier.
    The argument w has the weighted second derivatives of the bounds in x_i, shape (bounds, m). A
    homogeneous term has the second derivative w (dx_i - r dx_j)² with r = x_i / x_j.
    """
    k, m = x.shape
    r = x[i] / x[j]
    hessian = np.zeros((k, k, m))
    np.add.at(hessian, (i, i), w)
    np.add.at(hessian, (j, j), w * r * r)
    np.add.at(hessian, (i, j), -w * r)
    np.add.at(hessian, (j, i), -w * r)
    diagonal = np.arange(k)
    hessian[diagonal, diagonal] += tau / x**2
    return hessian
