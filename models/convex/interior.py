"""Minimise a linear loss over laws under smooth convex privacy bounds by an interior-point method.

`solve_interior_point` returns a point near the optimum with its multipliers, if no bound is a
hockey stick. `workbench.models.convex.tangent_program` uses it as a first guess.

Notation. x are the columns (variables), c their costs, and ' is the transpose. P and Q are two laws
that are linear in x; such a pair is a comparison. A bound limits the sum of a term φ over the
outcomes o of a comparison (`workbench.models.convex.requirements`). ∇² is a second derivative, and
μ the weight of the barrier. Even laws are uniform ones. They are within all bounds, so the method
starts there.

    min c'x   s.t.   A x = b,   G x <= h,   low <= x <= high,
                     g_i(x) = Σ_o φ(P_o, Q_o) / limit - 1 <= 0   for every bound and comparison i

s are the slacks of all inequalities, y > 0 their multipliers, J the derivatives of the inequalities
in x, and λ the multipliers of the equations. With H = Σ y_i ∇²g_i, Newton's equations are

    (H + J'(y/s)J) dx - A'dλ = A'λ - c - J'(y + (μ - s y + y (Jx + s))/s),     A dx = b - A x

They are solved with the rows of J and A as further unknowns beside x, so that H stays sparse: for a
channel it has one block for each output.

φ is homogeneous, so its second derivative along (dP, dQ) is w (dP - r dQ)², where r = P/Q and w is
the second derivative of φ in P. Each outcome adds a matrix of rank one to H.

Some notions bound g(x, θ) <= 0 for every level θ of a range, such as every order of a Rényi
divergence. Such a bound is stated at the maxima of g over θ, which move with x (local reduction,
Hettich and Kortanek 1993, Sec. 7). There ∂g/∂θ = 0, so the derivative of the largest g in x is that
of g, and its second derivative is

    ∇²g - (∂²g/∂x∂θ) (∂²g/∂x∂θ)' / (∂²g/∂θ²)

The steps are the predictor and the corrector of Mehrotra 1992 with one step length. At the end x is
within all bounds of all levels, and no product s y is much smaller than the others. The result is
only a guess: bounds are proven by the tangents at its point, with y as their multipliers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.linalg import LinAlgError

from workbench.models.convex.requirements import (
    HOCKEY_STICK,
    POWER_CONE,
    RELATIVE_ENTROPY,
    Bound,
)
from workbench.models.convex.tangents import max_term_sum
from workbench.solvers.arrays import Integers, Pair, Positions, Vector
from workbench.solvers.data import Data
from workbench.solvers.search import Deadline

# `TangentProgram` starts at the interior point of a program with at most this many columns. The
# tangents of larger programs take minutes, so that the interior point itself is their answer.
MAX_INTERIOR_COLUMNS = 1500


@dataclass(frozen=True)
class InteriorLimits:
    """The tuning numbers of the interior-point method.

    Attributes:
        max_steps: number of steps after which the method ends.
        boundary_share: share of the longest step (at which a slack or multiplier becomes 0) that
            is taken.
        step_reduction: factor by which a refused step is shortened.
        min_step: the method ends when a step would have to be shorter.
        min_plain_step: a step that gives a product s y below `min_product_share` is refused. If it
            is shorter than this, it is taken, and the multiplier y is raised instead.
        min_product_share: smallest product s y after a step, divided by the mean product.
        centring_after_stall: smallest target of the products s y after a step of length 0, as a
            share of their mean.
        min_centring: smallest target of the products s y, as a share of their mean.
        last_target_share: the target stays above this share of the mean product at which the gap is
            closed.
        gap: the method ends when Σ s y is below this share of the objective.
        max_residual: largest residual of the equations at the end; residuals of costs are divided
            by the largest cost.
        short_step: steps of this length or less count as stalled.
        max_stalled_steps: consecutive stalled steps, or steps at the gap, after which it ends.
        min_active_share: a bound is returned as active if its multiplier times its largest slope
            exceeds this share of the largest cost.
        min_level_height: a level of the grid at a maximum of g is added if g is above this there.
        height_noise: rounding error of g.
        min_curvature: smaller second derivatives of g in θ count as 0.
        level_step: step of difference quotients in θ.
        levels_per_unit: levels θ are rounded to multiples of the inverse of this.
        level_updates: number of passes after each step in which levels follow the maxima.
        grid_levels: number of levels in the grid in which maxima over θ are found.
        max_level_step: the longest step of a level in one pass.
        peak_distance: a peak of the grid gains no level if one is nearer, in steps of the grid.
        merge_divisor: levels that are nearer than `peak_distance` divided by this are merged.
        max_multiplier_division: the multiplier of a lower end of a column is at least the even
            multiplier (at which s y is the mean product) divided by this. See `_Iterate.is_loose`.
        max_multiplier_factor: the multiplier is at most the even multiplier times this.
        scalings: number of passes that scale the equations to entries of about one.
        min_mass: a smaller number counts as this in a denominator or a logarithm.
        min_start_slack: smallest slack at the start.
        start_complementarity: Σ s y at the start, divided by the largest cost.
    """

    max_steps: int = 300
    boundary_share: float = 0.99
    step_reduction: float = 0.7
    min_step: float = 1e-8
    min_plain_step: float = 1e-2
    min_product_share: float = 1e-4
    centring_after_stall: float = 0.9
    min_centring: float = 1e-6
    last_target_share: float = 0.3
    gap: float = 1e-9
    max_residual: float = 1e-6
    short_step: float = 0.05
    max_stalled_steps: int = 8
    min_active_share: float = 1e-10
    min_level_height: float = -0.5
    height_noise: float = 1e-12
    min_curvature: float = 1e-9
    level_step: float = 2.0**-7
    levels_per_unit: float = 2.0**36
    level_updates: int = 2
    grid_levels: int = 160
    max_level_step: float = 2.0**-4
    peak_distance: float = 1.5
    merge_divisor: float = 10.0
    max_multiplier_division: float = 3.0
    max_multiplier_factor: float = 2.0
    scalings: int = 2
    min_mass: float = 1e-300
    min_start_slack: float = 1e-3
    start_complementarity: float = 0.1


_LIMITS = InteriorLimits()


@dataclass(frozen=True)
class LevelRange:
    """A family of bounds, one for every level θ in a range, such as all orders of a Rényi bound.

    Attributes:
        low: the smallest level.
        high: the largest level.
        bound_at: function from a level to its bound, a power cone.
    """

    low: float
    high: float
    bound_at: Callable[[float], Bound]


def list_smooth_bounds(
    bounds: Sequence[Bound],
    level_range: LevelRange | None,
) -> list[Bound] | None:
    """List the bounds that the interior-point method states beside a range of levels.

    Args:
        bounds: all bounds of a notion.
        level_range: the range of levels whose bounds are stated at their maxima. It stands for all
            bounds except those on the relative entropy. None if there is none.

    Returns:
        The bounds. None if one is a hockey stick or has no limit > 0, so that the method does not
        apply.
    """
    listed_bounds = list(bounds)
    if level_range is not None:
        listed_bounds = [bound for bound in bounds if bound.kind == RELATIVE_ENTROPY]
    for bound in listed_bounds:
        if bound.kind == HOCKEY_STICK or max_term_sum(bound) <= 0:
            return None
    return listed_bounds


def _evaluate_kind(
    kind: str,
    levels: Vector,
    p: Vector,
    q: Vector,
) -> tuple[Vector, ...]:
    """Compute φ, its derivatives in P and in Q, and its second derivative w in P.

    A kind other than "power-cone" is the relative entropy. Levels have the shape (..., 1), p and q
    the shape (..., outcomes), which is also the shape of the four results.
    """
    ratio = p / q
    if kind == POWER_CONE:
        power = ratio ** (levels - 1)
        p_slopes = levels * (power - 1)
        q_slopes = (1 - levels) * (ratio * power - 1)
        terms = np.maximum(p_slopes * p + q_slopes * q, 0.0)
        return terms, p_slopes, q_slopes, levels * (levels - 1) * power / p
    log = np.log(ratio)
    return np.maximum(p * log - p + q, 0.0), log, 1 - ratio, 1 / p


class ComparisonBounds:
    """A list of K bounds, each on the laws of one comparison.

    Args:
        comparisons: number of the comparison of every bound, shape (K,).
        bounds: the K bounds.

    Attributes:
        comparisons: number of the comparison of every bound, shape (K,).
        bounds: the K bounds.
        kinds: kinds of the bounds, such as "power-cone", shape (K,).
        levels: levels of the bounds (the order α of a power cone), shape (K, 1).
        limits: the largest sums of terms that the bounds allow, shape (K, 1).
    """

    def __init__(
        self,
        comparisons: Positions,
        bounds: Sequence[Bound],
    ) -> None:
        self.comparisons = comparisons
        self.bounds = list(bounds)
        self.kinds = np.array([bound.kind for bound in bounds], dtype=object)
        self.levels = np.array([bound.level for bound in bounds])[:, None]
        self.limits = np.array([max_term_sum(bound) for bound in bounds])[:, None]

    def evaluate(
        self,
        p: Vector,
        q: Vector,
    ) -> list[Vector]:
        """Compute g and the derivatives of its terms.

        Args:
            p: masses P of all comparisons, shape (comparisons, outcomes).
            q: masses Q of all comparisons, the same shape.

        Returns:
            g of shape (K,), then the derivatives of its terms in P and in Q, and their second
            derivative w in P, each of shape (K, outcomes). All are divided by the limits.
        """
        # The tables are φ, its derivatives in P and in Q, and w.
        tables = [np.zeros((len(self.bounds), p.shape[1])) for _ in range(4)]
        for kind in set(self.kinds):
            has_kind = self.kinds == kind
            comparisons = self.comparisons[has_kind]
            values_of_kind = _evaluate_kind(
                kind, self.levels[has_kind], p[comparisons], q[comparisons]
            )
            for table, values in zip(tables, values_of_kind, strict=True):
                table[has_kind] = values / self.limits[has_kind]
        return [tables[0].sum(axis=1) - 1, *tables[1:]]


class _FreeProgram:
    """The program in its free columns (those whose ends differ), with their lower ends only.

    Upper ends are not stated: the caller checks them at the final point.

    Equations are A x = b, inequalities G x <= h. Vectors of columns have the shape (columns,).

    Attributes:
        is_free: whether a column of the original program is free.
        fixed_values: values of the other columns, 0 at free ones, for all original columns.
        has_upper_side: whether a row of the original program is an inequality with an upper side.
        A: coefficients of the equations, shape (equations, columns).
        b: right-hand sides of the equations.
        G: coefficients of the inequalities, shape (inequalities, columns).
        h: right-hand sides of the inequalities.
        c: costs of the columns.
        low: lower ends of the columns, -inf for none.
        end_columns: numbers of the columns with a lower end.
        cost_scale: largest absolute cost, 1 if all are 0.
        entries: matrix of the entries of the laws (`Comparisons.entries`).
        constant: part of the entries that the fixed columns give.
        first: positions of P among the entries, shape (comparisons, outcomes).
        second: positions of Q among the entries, the same shape.
    """

    def __init__(
        self,
        data: Data,
        entries: sp.csr_array,
        first: Integers,
        second: Integers,
    ) -> None:
        self.is_free = data.upper > data.lower
        self.fixed_values = np.where(self.is_free, 0.0, data.lower)
        is_equation = data.row_lower == data.row_upper
        rows = data.A.tocsr()[:, self.is_free].toarray()
        fixed_sums = data.A @ self.fixed_values
        self.has_upper_side = np.isfinite(data.row_upper) & ~is_equation
        has_lower_side = np.isfinite(data.row_lower) & ~is_equation
        self.A = rows[is_equation]
        self.b = (data.row_upper - fixed_sums)[is_equation]
        self.G = np.vstack([rows[self.has_upper_side], -rows[has_lower_side]])
        upper_sides = (data.row_upper - fixed_sums)[self.has_upper_side]
        lower_sides = (fixed_sums - data.row_lower)[has_lower_side]
        self.h = np.concatenate([upper_sides, lower_sides])
        self.c = data.c[self.is_free]
        self.low = data.lower[self.is_free]
        self.end_columns = np.flatnonzero(np.isfinite(self.low))
        self.cost_scale = float(np.abs(self.c).max(initial=0.0)) or 1.0
        self.entries = sp.csr_array(entries[:, self.is_free])
        self.constant = entries @ self.fixed_values
        self.first = np.broadcast_to(first, second.shape)
        self.second = second

    def laws_at(self, x: Vector) -> Pair:
        """Compute (P, Q) of all comparisons, with every mass at least `min_mass`."""
        e = np.maximum(self.entries @ x + self.constant, _LIMITS.min_mass)
        return e[self.first], e[self.second]

    def linear_slacks(self, x: Vector) -> Vector:
        """Compute the slacks of the column ends and of the rows."""
        return np.concatenate([(x - self.low)[self.end_columns], self.h - self.G @ x])

    def law_rows(
        self,
        comparisons: Positions,
        a: Vector,
        b: Vector,
    ) -> Vector:
        """Compute the coefficients of Σ_o a P_o + b Q_o in x, shape (K, columns)."""
        size = self.constant.size
        count = comparisons.size
        # Every comparison has its own range of `size` places, so one call of bincount adds up the
        # coefficients of all comparisons separately.
        offsets = np.arange(count)[:, None] * size
        first_places = (offsets + self.first[comparisons]).ravel()
        second_places = (offsets + self.second[comparisons]).ravel()
        e = np.bincount(first_places, a.ravel(), count * size)
        e += np.bincount(second_places, b.ravel(), count * size)
        return (self.entries.T @ e.reshape(count, size).T).T

    def curvature(
        self,
        comparisons: Positions,
        weights: Vector,
        ratios: Vector,
    ) -> sp.csr_array:
        """Compute the matrix Σ weights (dP - ratios dQ)², shape (columns, columns)."""
        first = self.first[comparisons].ravel()
        second = self.second[comparisons].ravel()
        size = self.constant.size
        w = weights.ravel()
        r = ratios.ravel()
        row_numbers = np.concatenate([first, second, first, second])
        column_numbers = np.concatenate([first, second, second, first])
        values = np.concatenate([w, w * r * r, -w * r, -w * r])
        e = sp.csr_array((values, (row_numbers, column_numbers)), shape=(size, size))
        return sp.csr_array(self.entries.T @ e @ self.entries)


class _Iterate:
    """The current point of the method: x, s, y and λ (`dual`).

    s and y list the lower ends of the columns, then the rows, then the bounds. The bounds are first
    the fixed ones, each for all comparisons, then those of the levels θ.

    If `is_loose`, each step sets the multipliers of column ends from the reduced costs, within
    limits. This is correct only if the caller computes the reduced costs of all columns again.

    Attributes:
        x: values of the free columns.
        s: slacks of all inequalities.
        y: their multipliers.
        dual: λ, the multipliers of the equations.
        bounds: the bounds at this point, with their comparisons.
        fixed_bounds: the bounds that do not follow x.
        theta: levels of the other bounds, shape (levels,).
        g: relative excess of every bound, < 0 inside, shape (bounds,).
        grid: levels among which new maxima over θ are found; empty without a range of levels.
        last_step: length of the last step.
        cost_error: Σ |residual of costs| |x| at the last step.
        largest_residual: largest residual of the equations at the last step.
    """

    def __init__(
        self,
        program: _FreeProgram,
        bounds: Sequence[Bound],
        level_range: LevelRange | None,
        x: Vector,
        *,
        is_loose: bool,
    ) -> None:
        self.program = program
        self.x = x
        self.last_step = 0.0
        self.is_loose = is_loose
        comparison_count = len(program.second)
        comparisons = np.arange(comparison_count)
        repeated_bounds: list[Bound] = []
        for bound in bounds:
            repeated_bounds += [bound] * comparison_count
        self.fixed_bounds = ComparisonBounds(np.tile(comparisons, len(bounds)), repeated_bounds)
        self.bounds = self.fixed_bounds
        self.theta = np.zeros(0)
        self.grid: list[float] = []
        if level_range is not None:
            self.bound_at = lru_cache(maxsize=None)(level_range.bound_at)
            self.level_ends = level_range.low, level_range.high
            grid = np.linspace(level_range.low, level_range.high, _LIMITS.grid_levels)
            self.grid = _round_levels(grid).tolist()
            self.level_distance = _LIMITS.peak_distance * (self.grid[1] - self.grid[0])
            self.grid_bounds = [self.bound_at(theta) for theta in self.grid]
        self.g, *_ = self.bounds.evaluate(*program.laws_at(x))
        linear_slacks = np.maximum(program.linear_slacks(x), _LIMITS.min_start_slack)
        self.s = np.concatenate([linear_slacks, -self.g])
        self.y = _LIMITS.start_complementarity * program.cost_scale / self.s.size / self.s
        self.dual = np.zeros(program.b.size)

    @property
    def complementarity(self) -> float:
        """Return Σ s y."""
        return float(self.s @ self.y)

    def step(self) -> bool:
        """Take a step with one predictor and one corrector.

        Returns False if every step that keeps x within the bounds is too short. Raises LinAlgError
        if the equations of the step cannot be solved.
        """
        program = self.program
        s = self.s
        y = self.y
        linear_count = s.size - self.g.size
        comparisons = self.bounds.comparisons
        _, a, b, w = self.bounds.evaluate(*program.laws_at(self.x))
        p, q = (law[comparisons] for law in program.laws_at(self.x))
        J = np.vstack([program.G, program.law_rows(comparisons, a, b)])
        end_columns = program.end_columns
        ends = slice(0, end_columns.size)
        inequalities = slice(end_columns.size, None)
        reduced_costs = program.c + J.T @ y[inequalities] - program.A.T @ self.dual
        if self.is_loose:
            # Multipliers near the even ones absorb the reduced costs, which leaves no residual. `y`
            # is `self.y`, so the iterate keeps them.
            even_multipliers = self.complementarity / s.size / s[ends]
            y[ends] = np.clip(
                reduced_costs[end_columns],
                even_multipliers / _LIMITS.max_multiplier_division,
                even_multipliers * _LIMITS.max_multiplier_factor,
            )
        reduced_costs[end_columns] -= y[ends]
        # The curvature of the bounds, and the residuals of all equations at the point.
        hessian = program.curvature(comparisons, w * y[linear_count:, None], p / q)
        slack_errors = np.concatenate(
            [s[:linear_count] - program.linear_slacks(self.x), self.g + s[linear_count:]]
        )
        row_errors = program.b - program.A @ self.x
        self.cost_error = float(np.abs(reduced_costs) @ np.abs(self.x))
        residuals = (reduced_costs / program.cost_scale, row_errors, slack_errors)
        self.largest_residual = max(float(np.abs(part).max(initial=0.0)) for part in residuals)
        # The Newton system: its unknowns are dx, then dλ, the dy of rows and bounds, and levels.
        level_rows, level_diagonal = self._level_terms(y[linear_count:])
        end_diagonal = np.zeros(self.x.size)
        end_diagonal[end_columns] = (y / s)[ends]
        solve = _factor_newton_system(
            hessian + sp.diags_array(end_diagonal),
            np.vstack([-program.A, J, level_rows]),
            np.concatenate([np.zeros(row_errors.size), (s / y)[inequalities], level_diagonal]),
        )
        no_level_errors = np.zeros(level_diagonal.size)

        def solve_direction(products: Vector) -> tuple[Vector, ...]:
            """Return (dx, ds, dy, dλ) with which the products s y change by `products`."""
            right = -reduced_costs
            right[end_columns] += ((products + y * slack_errors) / s)[ends]
            inequality_errors = (-slack_errors - products / y)[inequalities]
            lower_right = np.concatenate([-row_errors, inequality_errors, no_level_errors])
            dx, multipliers = solve(right, lower_right)
            ds = -slack_errors - np.concatenate([-dx[end_columns], J @ dx])
            return dx, ds, (products - y * ds) / s, multipliers[: row_errors.size]

        # The predictor aims at products of 0. Its length decides how far the corrector aims.
        _, ds, dy, _ = solve_direction(-s * y)
        length = min(_max_step_length(s, ds), _max_step_length(y, dy))
        mean = self.complementarity / s.size
        predicted_mean = float((s + length * ds) @ (y + length * dy)) / s.size
        stall_share = _LIMITS.centring_after_stall * (1 - self.last_step) ** 2
        # The cube is Mehrotra's choice. At the start and after a short step the corrector aims near
        # the mean, so that the products become more even.
        target = mean * max((predicted_mean / mean) ** 3, stall_share, _LIMITS.min_centring)
        min_gap = _LIMITS.last_target_share * _LIMITS.gap * abs(float(program.c @ self.x))
        target = max(target, min_gap / s.size)
        dx, ds, dy, dual = solve_direction(target - s * y - length * ds * dy)
        max_length = min(_max_step_length(s, ds), _max_step_length(y, dy))
        length = min(1.0, _LIMITS.boundary_share * max_length)
        while not self._try_step(length, dx, ds, dy, dual):
            length *= _LIMITS.step_reduction
            if length < _LIMITS.min_step:
                return False
        self.last_step = length
        return True

    def _bounds_of_levels(
        self,
        comparisons: Positions,
        theta: Vector,
    ) -> ComparisonBounds:
        """Return the bounds of levels, each on its comparison."""
        return ComparisonBounds(comparisons, [self.bound_at(level) for level in theta.tolist()])

    def _level_terms(self, y: Vector) -> Pair:
        """Compute (R, d), with which levels that follow x add R' diag(1/d) R to H.

        The argument y has the multipliers of the bounds.
        """
        low, high = self.level_ends if self.theta.size else (0.0, 0.0)
        step = _LIMITS.level_step
        inner_levels = np.flatnonzero((self.theta - step > low) & (self.theta + step < high))
        if not inner_levels.size:
            return np.zeros((0, self.x.size)), np.zeros(0)
        laws = self.program.laws_at(self.x)
        positions = self.fixed_bounds.comparisons.size + inner_levels
        comparisons = self.bounds.comparisons[positions]
        theta = self.theta[inner_levels]
        lower_bounds = self._bounds_of_levels(comparisons, theta - step)
        upper_bounds = self._bounds_of_levels(comparisons, theta + step)
        lower_g, lower_a, lower_b, _ = lower_bounds.evaluate(*laws)
        upper_g, upper_a, upper_b, _ = upper_bounds.evaluate(*laws)
        bend = (2 * self.g[positions] - lower_g - upper_g) / step**2
        p_slopes = (upper_a - lower_a) / (2 * step)
        q_slopes = (upper_b - lower_b) / (2 * step)
        rows = self.program.law_rows(comparisons, p_slopes, q_slopes)
        has_bend = bend > _LIMITS.min_curvature
        return rows[has_bend], (bend / y[positions])[has_bend]

    def _try_step(
        self,
        length: float,
        dx: Vector,
        ds: Vector,
        dy: Vector,
        dual: Vector,
    ) -> bool:
        """Take a step if it stays within all bounds and keeps the products s y near each other.

        The levels follow their maxima. Returns whether the step was taken.
        """
        x = self.x + length * dx
        linear_count = self.s.size - self.g.size
        laws = self.program.laws_at(x)
        bounds = self.bounds
        theta = self.theta
        if self.grid:
            comparisons, theta = self._levels_with_peaks(laws)
            comparisons, theta = self._follow_maxima(comparisons, theta, laws)
            comparisons, theta = self._drop_duplicates(comparisons, theta)
            levels = self._bounds_of_levels(comparisons, theta)
            bounds = ComparisonBounds(
                np.concatenate([self.fixed_bounds.comparisons, comparisons]),
                [*self.fixed_bounds.bounds, *levels.bounds],
            )
        g, *_ = bounds.evaluate(*laws)
        if not (g < 0).all():
            return False
        s = np.concatenate([self.s[:linear_count] + length * ds[:linear_count], -g])
        y = self.y + length * dy
        # New levels come last in s and have no multipliers yet. They get the mean product.
        mean = float((s[: y.size] @ y) / y.size)
        y = np.concatenate([y, mean / s[y.size :]])
        if length < _LIMITS.min_plain_step:
            y = np.maximum(y, _LIMITS.min_product_share * mean / s)
        elif not (s * y >= _LIMITS.min_product_share * mean).all():
            return False
        self.x = x
        self.s = s
        self.y = y
        self.dual = self.dual + length * dual
        self.bounds = bounds
        self.theta = theta
        self.g = g
        return True

    def _levels_with_peaks(self, laws: Pair) -> tuple[Positions, Vector]:
        """Return the comparisons and levels of the bounds, with peaks of the grid added.

        A peak is a level of the grid where g of a comparison has a maximum near 0 or above, and no
        level of that comparison is nearby.
        """
        heights = np.pad(self._evaluate_grid(laws), ((1, 1), (0, 0)), constant_values=-np.inf)
        middle_heights = heights[1:-1]
        is_maximum = (middle_heights >= heights[:-2]) & (middle_heights >= heights[2:])
        is_peak = is_maximum & (middle_heights > _LIMITS.min_level_height)
        comparisons = self.bounds.comparisons[self.fixed_bounds.comparisons.size :].tolist()
        theta = self.theta.tolist()
        for cell, comparison in np.argwhere(is_peak).tolist():
            level = self.grid[cell]
            has_level_nearby = any(
                k == comparison and abs(present - level) < self.level_distance
                for k, present in zip(comparisons, theta, strict=True)
            )
            if not has_level_nearby:
                comparisons.append(comparison)
                theta.append(level)
        return np.array(comparisons, dtype=np.intp), np.array(theta)

    def _evaluate_grid(self, laws: Pair) -> Vector:
        """Compute g of all levels of the grid, shape (levels, comparisons).

        All are power cones, whose sums of terms are Σ P^α Q^(1-α) - α Σ P + (α - 1) Σ Q. One
        logarithm for all levels takes less time than a power for each.
        """
        p, q = laws
        log_p = np.log(p)
        log_ratio = log_p - np.log(q)
        p_sums = p.sum(axis=1)
        q_sums = q.sum(axis=1)
        heights = []
        for bound in self.grid_bounds:
            alpha = bound.level
            moments = np.exp((alpha - 1) * log_ratio + log_p).sum(axis=1)
            term_sums = moments - alpha * p_sums + (alpha - 1) * q_sums
            heights.append(term_sums / max_term_sum(bound) - 1)
        return np.array(heights)

    def _drop_duplicates(
        self,
        comparisons: Positions,
        theta: Vector,
    ) -> tuple[Positions, Vector]:
        """Drop new levels that moved next to another level of the same comparison."""
        distance = self.level_distance / _LIMITS.merge_divisor
        positions = list(range(self.theta.size))
        for k in range(self.theta.size, theta.size):
            is_duplicate = any(
                comparisons[j] == comparisons[k] and abs(theta[j] - theta[k]) < distance
                for j in positions
            )
            if not is_duplicate:
                positions.append(k)
        return comparisons[positions], theta[positions]

    def _follow_maxima(
        self,
        comparisons: Positions,
        theta: Vector,
        laws: Pair,
    ) -> tuple[Positions, Vector]:
        """Move each level to the top of the parabola through three levels, if g is higher there."""
        low, high = self.level_ends
        step = _LIMITS.level_step

        def heights_at(levels: Vector) -> Vector:
            """Return g of one level for each comparison, shape (levels,)."""
            g, *_ = self._bounds_of_levels(comparisons, levels).evaluate(*laws)
            return g

        for _ in range(_LIMITS.level_updates if theta.size else 0):
            centre = np.clip(theta, low + step, high - step)
            left_heights = heights_at(centre - step)
            centre_heights = heights_at(centre)
            right_heights = heights_at(centre + step)
            bend = left_heights - 2 * centre_heights + right_heights
            # Where the three heights have no maximum between them, this bend moves the level by the
            # longest step towards the higher side.
            bend = np.minimum(bend, -_LIMITS.min_mass)
            shift = (left_heights - right_heights) / (2 * bend) * step
            shift = np.where(np.isfinite(shift), shift, 0.0)  # Heights may overflow.
            shift = np.clip(shift, -_LIMITS.max_level_step, _LIMITS.max_level_step)
            moved_levels = _round_levels(np.clip(centre + shift, low, high))
            is_higher = heights_at(moved_levels) > heights_at(theta) - _LIMITS.height_noise
            theta = np.where(is_higher, moved_levels, theta)
        return comparisons, theta


def _round_levels(levels: Vector) -> Vector:
    """Round levels to the multiples on which they are stated."""
    return np.rint(levels * _LIMITS.levels_per_unit) / _LIMITS.levels_per_unit


def _factor_newton_system(
    matrix: sp.csr_array,
    rows: Vector,
    diagonal: Vector,
) -> Callable[[Vector, Vector], Pair]:
    """Factor the system M x + R'v = a, R x - D v = b and return its solver.

    The solver maps (a, b) to (x, v). The system is scaled to entries of about one. The columns x
    come first, since M is sparse. Raises LinAlgError if the system is singular.
    """
    from scipy.sparse.linalg import splu  # This import is slow.

    row_matrix = sp.csr_array(rows)
    upper_part = sp.hstack([matrix, row_matrix.T])
    lower_part = sp.hstack([row_matrix, sp.diags_array(-diagonal)])
    system = sp.csr_array(sp.vstack([upper_part, lower_part]))
    if not np.isfinite(system.data).all():
        raise LinAlgError("the equations overflowed")
    factors = np.ones(system.shape[0])
    for _ in range(_LIMITS.scalings):
        scaled_system = abs(system) * factors
        largest_entries = scaled_system.max(axis=1).toarray().ravel() * factors
        factors /= np.sqrt(np.maximum(largest_entries, _LIMITS.min_mass))
    try:
        decomposition = splu(sp.csc_array(system * factors * factors[:, None]), "NATURAL")
    except RuntimeError as error:
        raise LinAlgError("the equations are singular") from error

    def solve(a: Vector, b: Vector) -> Pair:
        """Solve for the right sides `a` and `b`, and divide the solution in the same way."""
        x = factors * decomposition.solve(factors * np.concatenate([a, b]))
        if not np.isfinite(x).all():
            raise LinAlgError("the equations are singular")
        return x[: a.size], x[a.size :]

    return solve


def _max_step_length(v: Vector, dv: Vector) -> float:
    """Return the step length at which the first of the positive variables v becomes 0.

    If none decreases, it is 1/`min_mass`, which stands for no limit.
    """
    return 1 / max(float((-dv / v).max()), _LIMITS.min_mass)


class InteriorPoint(NamedTuple):
    """Columns within all bounds, near the optimum, with multipliers.

    Attributes:
        x: values of the columns, shape (columns,).
        active_bounds: the bounds that are active at x, each a tuple (bound, number of the
            comparison, multiplier of Σ φ <= limit).
        row_multipliers: multipliers of the rows, >= 0 for rows with an upper side, shape (rows,).
    """

    x: Vector
    active_bounds: list[tuple[Bound, int, float]]
    row_multipliers: Vector


def solve_interior_point(
    data: Data,
    comparisons: tuple[sp.csr_array, Integers, Integers],
    bounds: Sequence[Bound],
    level_range: LevelRange | None,
    even_columns: Vector,
    deadline: Deadline | None = None,
    gap: float | None = None,
) -> InteriorPoint | None:
    """Minimise a linear objective over laws under smooth bounds.

    Args:
        data: the program without the bounds: costs, rows and ends of the columns.
        comparisons: the tuple (entries, first, second) of
            `workbench.models.convex.tangent_program.Comparisons`.
        bounds: bounds on all comparisons; cones must have limits > 0.
        level_range: further bounds, one for each level of a range, or None.
        even_columns: columns whose laws are even, shape (columns,).
        deadline: time limit; None for none.
        gap: relative gap at which the method ends. A number says that the caller computes the
            reduced costs of all columns again, so that only the multipliers of columns in use
            count. None for the default gap, without this assumption.

    Returns:
        The last iterate, or None if the even laws are not within the bounds.
    """
    from threadpoolctl import threadpool_limits  # This import is slow.

    program = _FreeProgram(data, *comparisons)
    with (
        threadpool_limits(1, "blas"),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        even_free_columns = even_columns[program.is_free]
        is_loose = gap is not None
        iterate = _Iterate(program, bounds, level_range, even_free_columns, is_loose=is_loose)
        if not (iterate.g < 0).all():
            return None
        stalled_steps = 0
        for _ in range(_LIMITS.max_steps):
            try:
                if (deadline is not None and deadline.has_passed) or not iterate.step():
                    break
            except LinAlgError:
                break
            max_gap = (gap or _LIMITS.gap) * abs(float(program.c @ iterate.x))
            is_gap_closed = iterate.complementarity < max_gap
            if iterate.last_step < _LIMITS.short_step or (is_loose and is_gap_closed):
                stalled_steps += 1
            else:
                stalled_steps = 0
            is_exact = iterate.largest_residual < _LIMITS.max_residual
            is_exact_enough = is_exact or (is_loose and iterate.cost_error < max_gap)
            if stalled_steps == _LIMITS.max_stalled_steps or (is_gap_closed and is_exact_enough):
                break
        _, a, b, _ = iterate.bounds.evaluate(*program.laws_at(iterate.x))
    x = program.fixed_values.copy()
    x[program.is_free] = iterate.x
    # y lists the lower ends of the columns, then the rows with an upper side, then the other rows,
    # then the bounds.
    y = iterate.y[iterate.s.size - iterate.g.size :]
    bound_costs = y * np.abs(np.hstack([a, b])).max(axis=1)
    active_positions = np.flatnonzero(bound_costs > _LIMITS.min_active_share * program.cost_scale)
    active_bounds = []
    for k in active_positions:
        multiplier = float(y[k] / iterate.bounds.limits[k, 0])
        comparison = int(iterate.bounds.comparisons[k])
        active_bounds.append((iterate.bounds.bounds[k], comparison, multiplier))
    row_multipliers = np.zeros(data.row_upper.size)
    row_multipliers[data.row_lower == data.row_upper] = iterate.dual
    row_count = program.has_upper_side.sum()
    upper_multipliers = iterate.y[program.end_columns.size :][:row_count]
    row_multipliers[program.has_upper_side] = upper_multipliers
    return InteriorPoint(x, active_bounds, row_multipliers)
