"""Find the outputs at which private unbiased laws have the smallest expected error on [-1, 1].

`search_window_outputs` answers this by a local search. The error is a smooth function of the
outputs o_i and of their least masses low_i (the smallest probability of output i at any input).
A law p_x is the distribution of the output at the input x. Below, e is the error function, f the
density of the inputs, and α and β are the dual values of the two equations of the program.

A law p_x on outputs o_1 <= ... <= o_m is ε-private if low_i <= p_x(i) <= t low_i for every x, with
t = e^ε. For given low, the program

    minimise    Σ_i p_x(i) e(o_i - x)
    subject to  Σ_i p_x(i) = 1,   Σ_i o_i p_x(i) = x,   low_i <= p_x(i) <= t low_i

is solved for each x separately. By its dual, the outputs with g_i = e(o_i - x) - α - β o_i < 0 have
their largest mass t low_i, and the outputs with g_i > 0 their least mass low_i. As e is convex, g
is negative on an interval only, so the outputs with g_i < 0 are consecutive.

So the law is a window. Give output i an interval of length (t - 1) low_i, its capacity, and put the
intervals next to each other in the order of the outputs. A window of length S = 1 - Σ low covers a
part of them, and p_x(i) is low_i plus the covered part of interval i. The position u of the window
is the one for which the mean of the law is x; the mean increases with u. At most two intervals, at
the ends of the window, are covered in part; g = 0 for their outputs, which determines α and β.
Between the inputs at which an end of the window meets an end of an interval, u is affine in x, and
so is p_x. With these inputs (`bends`) as knots, the exact quantizer LP has the same law.

F is the expected error. Its slopes follow from the dual values of the program (envelope theorem):

    F = ∫ Σ_i p_x(i) e(o_i - x) f(x) dx
    ∂F/∂low_i = ∫ min(g_i, t g_i) f(x) dx,    ∂F/∂o_i = ∫ p_x(i) (e'(o_i - x) - β) f(x) dx

The slopes of F are continuous if f has no atoms. Laws exist if the means of the windows farthest
right and left reach 1 and -1, which are two concave constraints. SciPy's SLSQP (Kraft 1988) finds
local optima. One start takes hundredths of a second, while the LP for given outputs returns one
value and a slope that jumps.

The linear algebra of SLSQP differs in its last digits between machines, so outputs are rounded to
five decimals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.objects import Progress
from workbench.families.quantizer.laws import LawQuestion, ignore_progress
from workbench.families.quantizer.outputs import (
    INFEASIBLE_VALUE,
    DescentPoint,
    LocalOptimum,
    find_thread_pools,
)
from workbench.mechanisms.quantization_error import compute_error, error_slope
from workbench.models.quantizer.program import compute_odds
from workbench.solvers.arrays import Pair, Vector

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


@dataclass(frozen=True)
class WindowLimits:
    """Limits and tolerances of the descents.

    Attributes:
        iterations: the largest number of iterations of a descent.
        first_tolerance: SLSQP ends the descent from a start if the value, divided by the largest
            output allowed, changes by less than this.
        last_tolerance: the same for the second descent, from the best result.
        stall_window: a descent ends if this many iterations gain less than `stall_share`.
        stall_share: the smallest gain within `stall_window` iterations, as a share of the value.
        min_outermost: the least distance of an outermost output from ±1, as a multiple of r - 1,
            where r is the least reach of a private law.
        decimals: decimals to which outputs are rounded, in their units
            (`_WindowDescent.units_and_origins`).
        fold_distance: outputs this close to symmetric ones are made symmetric, in their units.
        mean_tolerance: the farthest mean of a window may miss ±1 by this share of r - 1.
        min_width: a smaller distance of the outputs at the ends of a window counts as this, so that
            nothing is divided by 0.
    """

    iterations: int = 300
    first_tolerance: float = 1e-10
    last_tolerance: float = 1e-14
    stall_window: int = 50
    stall_share: float = 1e-8
    min_outermost: float = 1 + 8e-7
    decimals: int = 5
    fold_distance: float = 1e-4
    mean_tolerance: float = 1e-9
    min_width: float = 1e-12


_LIMITS = WindowLimits()


@dataclass(frozen=True)
class WindowObjective:
    """The expected error of the best laws for given outputs and least masses.

    Attributes:
        value: the expected error F.
        slopes: the slopes of F in the outputs, then in the least masses. Shape (2 m,).
        bends: the inputs x between which the laws are affine, in increasing order.
    """

    value: float
    slopes: Vector
    bends: Vector


def compute_window_objective(
    question: LawQuestion, outputs: Vector, low: Vector
) -> WindowObjective:
    """Compute the expected error F for given outputs and least masses.

    At an input that no window has as its mean, the law moves mass between the two outputs at the
    ends of the window until its mean is right. This law may break the capacities; the constraints
    of the descent exclude it.

    Args:
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        outputs: the outputs in increasing order (m,).
        low: the least masses of the outputs, shape (m,).
    """
    odds = compute_odds(question.float_epsilon)  # t - 1
    width = 1 - low.sum()  # S, the length of the window.
    m = low.size
    # The interval of output i is from ends[i] to ends[i + 1]. moments[i] is the sum of length times
    # output over the intervals before it.
    ends, moments = np.zeros((2, m + 1))
    np.add.accumulate(odds * low, out=ends[1:])
    np.add.accumulate(odds * low * outputs, out=moments[1:])
    # The positions u at which an end of the window meets an end of an interval, and their means.
    positions = np.concatenate([ends, ends - width])
    positions = np.maximum(0.0, np.minimum(positions, ends[-1] - width))
    positions.sort()
    bends = (
        (low * outputs).sum()
        + np.interp(positions + width, ends, moments)
        - np.interp(positions, ends, moments)
    )
    # Everything below has one column for each node x of the quadrature, because nodes are many and
    # outputs few. Sums are over tables with one row for each node, which fixes their order.
    x, weights = question.density.quadrature(np.concatenate([bends, outputs]))
    left = np.interp(x, bends, positions)
    right = left + width
    first = np.minimum(ends.searchsorted(left, side="right") - 1, m - 1)
    last = np.minimum(np.maximum(ends.searchsorted(right) - 1, 0), m - 1)
    # The positions of the two outputs in a flat table.
    nodes = np.arange(x.size)
    first_positions = first * x.size + nodes
    last_positions = last * x.size + nodes
    first_outputs = outputs[first]
    output_column = outputs[:, None]
    covered_masses = np.minimum(right, ends[1:, None]) - np.maximum(left, ends[:-1, None])
    law = low[:, None] + np.maximum(covered_masses, 0.0)
    gaps = output_column - x
    distances = np.maximum(outputs[last] - first_outputs, _LIMITS.min_width)
    # The two ends of the window give the law the mean x.
    correction = (x - law.T.copy() @ outputs) / distances
    flat_law = law.reshape(-1)
    flat_law[last_positions] += correction
    flat_law[first_positions] -= correction
    error = compute_error(np.abs(gaps), question.loss)
    first_error = error.take(first_positions)
    beta = (error.take(last_positions) - first_error) / distances
    g = error - first_error - beta * (output_column - first_outputs)
    output_slopes = law * (error_slope(gaps, question.loss) - beta)
    low_slopes = np.minimum(g, (1 + odds) * g)
    slopes = np.concatenate([weights @ output_slopes.T.copy(), weights @ low_slopes.T.copy()])
    node_losses = (law * error).T.copy().sum(axis=1)
    value = math.fsum(weights * node_losses)
    return WindowObjective(value, slopes, bends)


def compute_farthest_mean(ratio: float, outputs: Vector, low: Vector) -> tuple[float, Vector]:
    """Compute how far the mean of the window farthest right is beyond 1.

    Args:
        ratio: the ratio e^ε > 1.
        outputs: the outputs in increasing order (m,).
        low: the least masses of the outputs, shape (m,).

    Returns:
        The distance, and its slopes in the outputs and in the least masses (2 m,).
    """
    # The window covers the intervals of the largest outputs, and a part of that of output k.
    capacity_ends = np.add.accumulate((ratio - 1) * low[::-1])
    covered_count = capacity_ends.searchsorted(1 - low.sum())
    k = max(0, low.size - 1 - int(covered_count))
    factors = np.ones(low.size)
    factors[k + 1 :] = ratio
    law = factors * low
    law[k] += 1 - law.sum()
    slopes = np.concatenate([law, factors * (outputs - outputs[k])])
    return float(law @ (outputs - 1)), slopes


@dataclass(frozen=True)
class _WindowDescent:
    """A descent over the outputs and their least masses.

    The variables z (2 m,) are the m outputs, then t = e^ε times their m least masses. An outermost
    output is counted from ±1 in units of r - 1, where r is the least reach of a private law.

    Attributes:
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        m: the number of outputs.
        limit: the largest output allowed in size.
    """

    question: LawQuestion
    m: int
    limit: float

    @cached_property
    def ratio(self) -> float:
        """Return e^ε, the largest ratio of an output's probabilities at two inputs."""
        return 1 + compute_odds(self.question.float_epsilon)

    @cached_property
    def units_and_origins(self) -> Pair:
        """Return the units of the variables and the points from which they count, (2 m,) each."""
        excess = 2 / compute_odds(self.question.float_epsilon)
        units = np.full(2 * self.m, 1 / self.ratio)
        origins = np.zeros(2 * self.m)
        units[: self.m] = max(1.0, excess)
        units[[0, self.m - 1]] = excess
        origins[[0, self.m - 1]] = [-1.0, 1.0]
        return units, origins

    @cached_property
    def bounds(self) -> Pair:
        """Return the least and the largest z, (2 m,) each.

        Outermost outputs are between the least reach and the limit, others within the limit, and
        t low <= 1.
        """
        units, origins = self.units_and_origins
        low = np.zeros(2 * self.m)
        high = np.ones(2 * self.m)
        high[: self.m] = self.limit
        low[: self.m] = -self.limit
        low = (low - origins) / units
        high = (high - origins) / units
        low[self.m :] = 0.0
        high[self.m :] = 1.0
        high[0] = -_LIMITS.min_outermost
        low[self.m - 1] = _LIMITS.min_outermost
        return low, high

    def make_start(self, outputs: Vector) -> Vector:
        """Return z for outputs (m,) with equal least masses.

        Their sum is 2/(t + 1), the sum of the least masses of randomized response on two outputs.
        """
        units, origins = self.units_and_origins
        masses = np.full(self.m, 2 / (self.ratio + 1) / self.m)
        return np.clip((np.append(outputs, masses) - origins) / units, *self.bounds)

    def read_variables(self, z: Vector) -> Pair:
        """Return the outputs and the least masses of z, (m,) each."""
        units, origins = self.units_and_origins
        values = z * units + origins
        return values[: self.m], values[self.m :]

    def compute_means(self, z: Vector) -> Pair:
        """Compute how far the farthest means are beyond ±1, in units of an outermost output.

        Returns:
            The distances (2,), and their slopes (2, 2 m).
        """
        outputs, low = self.read_variables(z)
        right, right_slopes = compute_farthest_mean(self.ratio, outputs, low)
        left, left_slopes = compute_farthest_mean(self.ratio, -outputs[::-1], low[::-1])
        # The left side is the mirror image, whose slopes are mirrored back.
        output_slopes = -left_slopes[self.m - 1 :: -1]
        low_slopes = left_slopes[: self.m - 1 : -1]
        left_slopes = np.concatenate([output_slopes, low_slopes])
        units, _ = self.units_and_origins
        excess = units[0]
        slopes = np.array([right_slopes, left_slopes]) * units / excess
        return np.array([right, left]) / excess, slopes

    @cached_property
    def linear_constraints(self) -> Pair:
        """Return the order of the outputs and 1/t <= Σ low <= 1, as rows a and b of a z >= b.

        The second constraint holds because Σ low <= Σ_i p_x(i) = 1 <= t Σ low.
        """
        units, origins = self.units_and_origins
        rows = np.zeros((self.m + 1, 2 * self.m))
        rows[: self.m - 1, : self.m] = np.diff(np.eye(self.m), axis=0)
        rows[self.m - 1, self.m :] = self.ratio
        rows[self.m, self.m :] = -1.0
        limits = np.append(np.zeros(self.m - 1), [1.0, -1.0])
        return rows * units, limits - rows @ origins

    def descend(self, z: Vector, tolerance: float) -> DescentPoint | None:
        """Descend from z.

        Args:
            z: where the descent starts (2 m,).
            tolerance: SLSQP ends if the value, divided by `limit`, changes by less than this.

        Returns:
            The best value and its z; None if no point on the way has a private unbiased law.
        """
        from scipy.optimize import Bounds, minimize  # The import is slow.

        best: DescentPoint | None = None  # The best point with a law so far.
        values: list[float] = []  # The best value after each iteration.
        units, _ = self.units_and_origins
        rows, limits = self.linear_constraints
        # SLSQP asks for the constraints and their slopes at the same z in turn.
        cached_means = lru_cache(maxsize=1)(lambda key: self.compute_means(np.frombuffer(key)))

        def evaluate(z: Vector) -> tuple[float, Vector]:
            """Return the value and its slopes in z, divided by `limit`; remember the best z."""
            nonlocal best
            objective = compute_window_objective(self.question, *self.read_variables(z))
            if best is None or objective.value < best.value:
                distances, _ = cached_means(z.tobytes())
                if distances.min() > -_LIMITS.mean_tolerance:
                    best = DescentPoint(objective.value, z.copy())
            return objective.value / self.limit, objective.slopes * units / self.limit

        def compute_slacks(z: Vector) -> Vector:
            """Return the numbers that are >= 0 if z satisfies the constraints."""
            distances, _ = cached_means(z.tobytes())
            return np.concatenate([distances, rows @ z - limits])

        def compute_slack_slopes(z: Vector) -> Vector:
            """Return the slopes of the slacks in z, one row for each slack."""
            _, distance_slopes = cached_means(z.tobytes())
            return np.concatenate([distance_slopes, rows])

        def stop(intermediate_result: OptimizeResult) -> None:
            """End the descent if the last iterations gained too little."""
            # Without a law so far, every iteration counts as an improvement.
            values.append(INFEASIBLE_VALUE - len(values) if best is None else best.value)
            if len(values) > _LIMITS.stall_window:
                earlier_value = values[-_LIMITS.stall_window - 1]
                if not values[-1] < earlier_value * (1 - _LIMITS.stall_share):
                    raise StopIteration

        constraints: Any = {
            "type": "ineq",
            "fun": compute_slacks,
            "jac": compute_slack_slopes,
        }
        # The matrices are so small that threads would wait for each other.
        with find_thread_pools().limit(limits=1, user_api="blas"):
            minimize(
                evaluate,
                z,
                jac=True,
                bounds=Bounds(*self.bounds),
                constraints=constraints,
                method="SLSQP",
                callback=stop,
                options={"maxiter": _LIMITS.iterations, "ftol": tolerance},
            )
        return best

    def round_variables(self, z: Vector) -> Pair:
        """Return rounded outputs and the least masses of z, (m,) each.

        If the density is symmetric and the outputs nearly are, they are made symmetric.
        """
        if self.question.density.is_symmetric:
            mirror = np.append(-z[: self.m][::-1], z[self.m :][::-1])
            if np.abs(z - mirror)[: self.m].max() < _LIMITS.fold_distance:
                z = (z + mirror) / 2
        is_output = np.arange(z.size) < self.m
        rounded_z = np.where(is_output, np.round(z, _LIMITS.decimals), z)
        for bound in self.bounds:
            # Variables within the rounding of a bound are moved to it.
            is_at_bound = np.abs(z - bound) < 10.0**-_LIMITS.decimals
            rounded_z = np.where(is_at_bound, bound, rounded_z)
        return self.read_variables(rounded_z)


def search_window_outputs(
    question: LawQuestion,
    m: int,
    starts: Iterable[Vector],
    limit: float,
    progress: Progress = ignore_progress,
) -> LocalOptimum | None:
    """Search for the best outputs from several starts.

    If several starts reach the same value, to nine digits, the result of the first one is returned.

    Args:
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        m: the number of outputs.
        starts: the outputs from which the descents start, in increasing order, (m,) each.
        limit: the largest output allowed in size.
        progress: is called with the value of every start.

    Returns:
        The best outputs, or None if no start has a law.
    """
    descent = _WindowDescent(question, m, limit)
    results = []
    for k, start in enumerate(starts):
        result = descent.descend(descent.make_start(start), _LIMITS.first_tolerance)
        if result is not None:
            results.append(result)
            progress(f"start {k + 1}: {result.value:.6f}")
    if not results:
        return None
    best = min(results, key=lambda result: float(f"{result.value:.9g}"))
    value, z = descent.descend(best.z, _LIMITS.last_tolerance) or best
    outputs, low = descent.round_variables(z)
    bends = compute_window_objective(question, outputs, low).bends
    start_values = tuple(value for value, _ in results)
    return LocalOptimum(outputs, value, start_values, bends)
