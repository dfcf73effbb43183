"""Prove lower bounds on the error of every unbiased ε-private mechanism for inputs in [-1, 1].

`bound_least_error` and `compute_output_bound` answer: which error can no such mechanism undercut,
with any outputs or with a given number of outputs?

Notation. LP is the linear program of laws p_i at points x_i, i = 1..n, and duals are its
multipliers. p_i(o) is the probability of the output o at x_i, and loss_i(o) its loss there (times
the weight of x_i). M(x) is the output of the mechanism at the input x, and X a random input.
(z)^+ is max(0, z). An error e has the loss a |e| + b e². MAE is the mean absolute error. The reach
is the largest size of an output that is allowed.

The limit, for any number of outputs. Outputs are added to the LP until its duals (α_i for the row
Σ_o p_i(o) = 1, β_i for the row Σ_o o p_i(o) = x_i) prove that no other real output reduces the
error. A new output o would have masses p_i(o) that differ by at most the factor e^ε. Scale them so
that the smallest is 1. Their contribution to the LP, priced by the duals, is at least

    h(o) = min { Σ_i p_i(o) g_i(o) : 1 <= p_i(o) <= e^ε }
         = Σ_i (g_i(o))^+ - e^ε (-g_i(o))^+,           g_i(o) = loss_i(o) - α_i - β_i o

since masses are small (1) where g_i > 0 and large (e^ε) where g_i < 0. If h(o) >= 0 for every o in
the reach, no output reduces the error, and Σ_i α_i + β_i x_i is a lower bound for every mechanism
(weak duality). h is piecewise polynomial in o, so its minimum is computed, not sampled. If it is
negative, every α_i is lowered by -min h / n: g_i rises by that, so h rises by at least -min h.

For the loss |o - x| outputs may be arbitrarily far (a mass λ/B at B has the loss λ for every B).
There the infimum is not attained, and α and β are reduced until the slope of h at infinity is not
negative.

From points to the interval [-1, 1]. The interval is divided into cells. The bound for points in
these cells, minus a small amount, is a bound for all inputs (`bound_least_error`).

For a number of outputs, the bound is the largest of four bounds. Each is derived where it is
computed:

* two outputs: their loss at the least reach (`compute_two_output_error`)
* any number of outputs within the reach: the limit above, close if most of the error is due to
  privacy
* m outputs without privacy, uniform inputs: close at large ε (`_compute_rounding_error`)
* two inputs that privacy makes hard to distinguish: never 0, while the limit is 0 at very large ε
  (`_compute_two_input_bound`)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from workbench.errors import NotProven
from workbench.exact.numbers import read_number
from workbench.families.quantizer.certify import repair_quantizer
from workbench.families.quantizer.laws import (
    LawQuestion,
    add_end_points,
    make_exact_problem,
    make_grid_problem,
)
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import compute_error, error_coefficients
from workbench.models.quantizer.program import compute_odds, smallest_reach
from workbench.questions.density import Density
from workbench.solvers.arrays import Pair, Positions, Vector
from workbench.solvers.search import bisect

_CELL_COUNT = 40  # [-1, 1] is divided into this many cells; more cells give a closer bound.
_MAX_ROUNDS = 40  # Outputs are added to the LP at most this many times.
_MAX_DENSITY_ROUNDS = 10  # The same for a density that is not uniform, whose rounds take longer.
_FIRST_OUTPUT_COUNT = 8  # The first LP has this many outputs >= 0 if the loss has a squared part.
_FIRST_INNER_COUNT = 5  # The first LP has this many outputs from 0 to the largest input otherwise.
_KNOT_COUNT = 41  # The mechanism near the limit has this many knots.
_PRICING_ROUNDING = 1e-13  # Sums that price outputs err by less than this share times e^ε.
_LIMIT_TOLERANCE = 1e-6  # Outputs are added until upper and lower bound differ by at most this.
_BOUND_FACTOR = 1 - 1e-9  # Bounds are lowered by this, more than sums of doubles err.
_MAX_NEW_OUTPUTS = 6  # At most this many outputs are added to the LP at a time.
_MIN_DRAWN_MASS = 1e-7  # Outputs that no law draws more often may be due to rounding.
_ATOM_TOLERANCE = 1e-12  # An atom this close to an end of the inputs is at the end.
_INFINITE_EDGE = 1e7  # Without a reach, h is minimised up to this multiple of the largest input.


@dataclass(frozen=True)
class GridLimits:
    """The outputs that may be added to the LP, as multiples of the least reach r.

    The choice changes how close the bound is, and not whether it is proven.

    Attributes:
        last_squared: the largest output for a loss with a squared part.
        last_absolute: the largest output for the absolute loss, whose best outputs are far away.
        first_squared: the reach of the outputs of the first LP, if the loss has a squared part.
        first_absolute: the same for the absolute loss; the largest output is added.
        dense_reach: up to this multiple the grid is evenly spaced; beyond it is geometric.
        dense_count: the number of evenly spaced outputs.
        far_count: the number of geometrically spaced outputs.
        first_far_share: the first of these, as a share of the largest output.
        decimals: the decimals to which outputs are rounded, the same on every machine.
    """

    last_squared: float = 60
    last_absolute: float = 3e3
    first_squared: float = 1.6
    first_absolute: float = 1.5
    dense_reach: float = 3
    dense_count: int = 700
    far_count: int = 60
    first_far_share: float = 1e-3
    decimals: int = 9


_GRID = GridLimits()


@dataclass(frozen=True)
class Limit:
    """An interval that contains the least error of any outputs.

    Attributes:
        lower: a proven lower bound for every unbiased ε-private mechanism with outputs within the
            reach.
        upper: the error of `quantizer`. If that is None, the optimum of the LP on `outputs`.
        outputs: the outputs of the last LP, in increasing order (m,).
        quantizer: an exactly unbiased and private mechanism with the error `upper`; None if none
            was made.
    """

    lower: float
    upper: float
    outputs: Vector
    quantizer: Quantizer | None = None


@dataclass(frozen=True)
class _LimitDual:
    """Duals of the LP of laws at points, by which all real outputs are priced.

    Attributes:
        x: the points (n,).
        w: the weights of the points, shape (n,).
        loss: the loss, as in `LawQuestion`.
        ratio: e^ε.
        alpha: the duals of Σ p = 1 (n,).
        beta: the duals of the means (n,).
    """

    x: Vector
    w: Vector
    loss: object
    ratio: float
    alpha: Vector
    beta: Vector

    def price(self, outputs: Vector) -> Vector:
        """Compute h (see the module) at outputs (m,). Shape (m,)."""
        column = outputs[:, None]
        losses = self.w * compute_error(np.abs(column - self.x), self.loss)
        g = losses - self.alpha - self.beta * column
        return np.asarray(np.where(g > 0, g, self.ratio * g).sum(axis=1))

    def shrink(self) -> _LimitDual:
        """Shrink the duals until the slope of h at infinity is not negative, for the absolute loss.

        With duals 0 that slope is Σ w, with the duals as they are it is least_slope. The slope is
        concave in the duals, so with duals times `factor` it is at least
        factor * least_slope + (1 - factor) * Σ w, which the factor makes 0.
        """
        # The slopes of every g_i as the output goes to infinity, and to minus infinity.
        slopes = self.w - np.array([[1.0], [-1.0]]) * self.beta
        least_slope = float(np.where(slopes > 0, slopes, self.ratio * slopes).sum(axis=1).min())
        total = float(self.w.sum())
        factor = total / (total - min(0.0, least_slope))
        return replace(self, alpha=factor * self.alpha, beta=factor * self.beta)

    def compute_bound(self, reach: float) -> float:
        """Compute Σ α + β x, lowered until the duals are feasible for all outputs in ±reach."""
        breaks = self._find_breaks(reach)
        h = self.price(breaks)
        least_h = float(h.min())
        _, squared_coefficient = error_coefficients(self.loss)
        if squared_coefficient:
            # Otherwise h is affine between breaks, so its minimum is at a break.
            h_middle = self.price((breaks[1:] + breaks[:-1]) / 2)
            least_h = min(least_h, _find_least_vertex(h, h_middle))
        # Each of the n duals α_i is lowered by -least_h / n.
        return float(self.alpha.sum() + self.beta @ self.x) + min(0.0, least_h)

    def _find_breaks(self, reach: float) -> Vector:
        """Find the outputs in ±reach between which h is a polynomial."""
        a, b = error_coefficients(self.loss)
        breaks = [self.x]
        # The zeros of g_i at x_i + d solve b w d² + (sign a w - β) d - (α + β x) = 0 if d has this
        # sign. A solution of the other sign is no zero, but a superfluous break does no harm.
        for sign in (-1.0, 1.0):
            p = b * self.w
            q = sign * a * self.w - self.beta
            r = -(self.alpha + self.beta * self.x)
            with np.errstate(divide="ignore", invalid="ignore"):
                root = np.sqrt(np.maximum(q * q - 4 * p * r, 0))
                # The two solutions are stable/p and r/stable, in which no digits cancel.
                stable = -(q + np.copysign(root, q)) / 2
                breaks += [self.x + stable / p, self.x + r / stable]
        edge = reach
        if not math.isfinite(reach):
            edge = _INFINITE_EDGE * float(np.abs(self.x).max())
        all_breaks = np.concatenate(breaks)
        inner_breaks = all_breaks[np.isfinite(all_breaks) & (np.abs(all_breaks) <= edge)]
        return np.unique(np.concatenate([inner_breaks, [-edge, edge]]))


def _find_least_vertex(h: Vector, h_middle: Vector) -> float:
    """Find the least vertex of the parabolas through three points of every segment.

    Args:
        h: the values at the ends of the segments (k + 1,).
        h_middle: the values in the middle of the segments (k,).
    """
    h0 = h[:-1]
    h1 = h[1:]
    # At the share t of a segment the parabola is h0 + slope t + curvature t².
    curvature = 2 * (h0 + h1 - 2 * h_middle)
    slope = 4 * h_middle - 3 * h0 - h1
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(curvature > 0, -slope / (2 * curvature), -1.0)  # -1: there is no vertex.
        vertex = np.where((t > 0) & (t < 1), h0 + slope * t + curvature * t * t, np.inf)
    return float(vertex.min())


# Any number of outputs.


def solve_unlimited_outputs(
    points: Vector,
    epsilon: float,
    loss: object = "squared",
    *,
    reach: float = math.inf,
    weights: Vector | None = None,
    symmetric: bool = True,
    rounds: int = _MAX_ROUNDS,
    context: LawQuestion | None = None,
) -> Limit:
    """Bound the least mean loss of ε-private unbiased laws at points, with any outputs.

    Args:
        points: the points (n,).
        epsilon: the budget ε > 0.
        loss: the loss, as in `LawQuestion`.
        reach: the largest output allowed in size; outputs are in [-reach, reach].
        weights: the weights of the points, shape (n,). Default: equal weights.
        symmetric: whether points and weights are symmetric around 0.
        rounds: the largest number of times that outputs are generated.
        context: the question whose solver, options and deadline are used (see `LawProblem`).

    Returns:
        The interval that contains the least loss. `upper` is reached on `outputs`.

    Raises:
        NotProven: the LP has no solution.
    """
    if weights is None:
        weights = np.full(points.size, 1 / points.size)
    _, squared_coefficient = error_coefficients(loss)
    has_squared_part = bool(squared_coefficient)
    outputs = _make_first_outputs(points, epsilon, reach, has_squared_part)
    grid = _make_output_grid(points, epsilon, reach, has_squared_part)
    ratio = 1 + compute_odds(epsilon)
    lower = -math.inf
    upper = math.inf
    for _ in range(rounds):
        problem = make_grid_problem(
            points, outputs.size, loss, weights=weights, symmetric=symmetric, context=context
        )
        solution = problem.solve(epsilon, outputs)
        problem.close()
        if solution.objective is None or solution.row_dual is None:
            raise NotProven(f"The limit's LP has no solution ({solution.raw_status}).")
        upper = solution.objective
        dual = _LimitDual(points, weights, loss, ratio, *problem.unfold_duals(solution.row_dual))
        must_shrink = math.isinf(reach) and not has_squared_part
        feasible_dual = dual.shrink() if must_shrink else dual
        lower = max(lower, feasible_dual.compute_bound(reach))
        if upper - lower <= _LIMIT_TOLERANCE * max(1.0, upper):
            break
        new_outputs = _generate_outputs(dual, grid, symmetric)
        all_outputs = _mirror_values(np.concatenate([outputs, new_outputs]))
        if all_outputs.size == outputs.size:
            break
        outputs = all_outputs
    largest_loss = float(compute_error(np.abs(outputs).max(), loss))
    return Limit(lower - _PRICING_ROUNDING * ratio * largest_loss, upper, outputs)


def _choose_last_output(
    points: Vector, epsilon: float, reach: float, has_squared_part: bool
) -> float:
    """Choose the largest output that is generated, at most `reach`.

    It is a multiple of the least reach of the input points at ε. The multiple depends on whether
    the loss has a squared part.
    """
    least_reach = smallest_reach(epsilon, float(np.abs(points).max()))
    factor = _GRID.last_squared if has_squared_part else _GRID.last_absolute
    return min(reach, factor * least_reach)


def _make_first_outputs(
    points: Vector, epsilon: float, reach: float, has_squared_part: bool
) -> Vector:
    """Make the outputs of the first LP, symmetric around 0. See `_choose_last_output`."""
    c = float(np.abs(points).max())
    least_reach = smallest_reach(epsilon, c)
    last = _choose_last_output(points, epsilon, reach, has_squared_part)
    if has_squared_part:
        first_reach = min(last, _GRID.first_squared * least_reach)
        return _mirror_values(np.linspace(0, 1, _FIRST_OUTPUT_COUNT) * first_reach)
    inner = np.linspace(0, c, _FIRST_INNER_COUNT)
    outer = min(last, _GRID.first_absolute * least_reach)
    return _mirror_values(np.asarray([*inner, outer, last]))


def _make_output_grid(
    points: Vector, epsilon: float, reach: float, has_squared_part: bool
) -> Vector:
    """Make the outputs that may be generated, in increasing order (k,), symmetric around 0.

    See `_choose_last_output` for the arguments.
    """
    least_reach = smallest_reach(epsilon, float(np.abs(points).max()))
    last = _choose_last_output(points, epsilon, reach, has_squared_part)
    dense_end = min(last, _GRID.dense_reach * least_reach)
    even_outputs = np.linspace(0, dense_end, _GRID.dense_count)
    far_outputs = np.geomspace(_GRID.first_far_share, 1, _GRID.far_count) * last
    grid = np.concatenate([even_outputs, far_outputs])
    return _mirror_values(np.append(np.round(grid, _GRID.decimals), last))


def _generate_outputs(dual: _LimitDual, grid: Vector, symmetric: bool) -> Vector:
    """Return the outputs of the grid with the lowest local minima of h, if they are negative."""
    h = dual.price(grid)
    is_minimum = (h[1:-1] <= h[:-2]) & (h[1:-1] <= h[2:])
    # An output with a larger h lowers the optimum by less than the tolerance.
    is_useful = h[1:-1] < -_LIMIT_TOLERANCE / 10
    indices = np.flatnonzero(is_minimum & is_useful) + 1
    if symmetric:
        indices = indices[grid[indices] >= 0]
    order = np.argsort(h[indices], kind="stable")
    return np.asarray(grid[indices[order][:_MAX_NEW_OUTPUTS]])


def _mirror_values(outputs: Vector) -> Vector:
    """Return outputs and their mirror images in increasing order."""
    return np.unique(np.concatenate([-np.abs(outputs), np.abs(outputs)]))


def bound_least_error(question: LawQuestion, reach: float = math.inf) -> Limit:
    """Bound the error of all unbiased ε-private mechanisms on [-1, 1] from below.

    The average of a mechanism over a cell of width w is a private law that is unbiased at the
    midpoint of the cell. Its absolute loss there is at most (w/4) tanh(ε/2) more than the mean loss
    in the cell, for two reasons. The mean of |o - x| under an unbiased law is that of 2 (o - x)^+,
    which is convex in x. And Pr[o > midpoint] varies by at most tanh(ε/2) between the inputs of the
    cell. So the optimum of the LP over midpoints (and ±1 with weight 0), minus (w/4) tanh(ε/2), is
    a lower bound for every mechanism on the interval.

    For the squared error, E (M - x)² = E M² - x² for an unbiased M, so the mean loss in the cell is
    smaller than the loss at the midpoint by the variance of x in the cell, w²/12. This is
    subtracted instead. If the density is not uniform, the midpoint is replaced by the mean μ of the
    input in the cell. The absolute loss there is at most tanh(ε/2) E|x - μ| more (uniform:
    E|x - μ| = w/4).

    Args:
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        reach: the largest output allowed in size; outputs are in [-reach, reach].

    Returns:
        The limit. Its `lower` is a bound for all inputs in [-1, 1]; `upper` and `outputs` are those
        of the LP over the means of _CELL_COUNT cells.
    """
    a, b = error_coefficients(question.loss)
    epsilon = question.float_epsilon
    is_uniform = question.density.shape is None
    if is_uniform:
        width = 2 / _CELL_COUNT
        points, weights = add_end_points(-1 + width * (np.arange(_CELL_COUNT) + 0.5))
        absolute_excess = width / 4
        squared_excess = width**2 / 12
    else:
        points, weights, absolute_excess, squared_excess = _compute_cell_means(question.density)
    limit = solve_unlimited_outputs(
        points,
        epsilon,
        question.loss,
        reach=reach,
        weights=weights,
        symmetric=is_uniform,
        rounds=_MAX_ROUNDS if is_uniform else _MAX_DENSITY_ROUNDS,
        context=question,
    )
    lower = limit.lower - a * absolute_excess * math.tanh(epsilon / 2) - b * squared_excess
    return Limit(lower, limit.upper, limit.outputs)


def _compute_cell_means(density: Density) -> tuple[Vector, Vector, float, float]:
    """Compute the means and masses of the cells of a density.

    Returns:
        ±1 and the cells' means (k + 2,), their masses (k + 2,), E|x - mean| and E (x - mean)² over
        all cells. The masses of ±1 are those of atoms.
    """
    cuts = np.linspace(-1.0, 1.0, _CELL_COUNT + 1)

    def integrate_inside(breaks: Vector) -> tuple[Vector, Vector, Positions]:
        """Return the nodes inside (-1, 1), their weights and their cells."""
        x, w = density.quadrature(breaks)
        is_inside = (np.abs(x) < 1) & (w > 0)
        x = x[is_inside]
        cells = np.searchsorted(cuts, x, side="right") - 1
        return x, w[is_inside], np.clip(cells, 0, _CELL_COUNT - 1)

    x, w, cells = integrate_inside(cuts)
    masses = np.bincount(cells, weights=w, minlength=_CELL_COUNT)
    moments = np.bincount(cells, weights=w * x, minlength=_CELL_COUNT)
    is_used = masses > 0
    # A cell without mass has no mean. Its left end stands for it, and is left out of the points.
    means = np.where(is_used, moments / np.where(is_used, masses, 1.0), cuts[:-1])
    means = np.clip(means, cuts[:-1], cuts[1:])
    # The means are breaks too, because |x - mean| has a kink there.
    x, w, cells = integrate_inside(np.concatenate([cuts, means]))
    distances = np.abs(x - means[cells])
    end_masses = [_sum_atoms_at(density, end) for end in (-1, 1)]
    points = np.concatenate([[-1.0], means[is_used], [1.0]])
    weights = np.concatenate([end_masses[:1], masses[is_used], end_masses[1:]])
    return points, weights, float(w @ distances), float(w @ distances**2)


def _sum_atoms_at(density: Density, x: float) -> float:
    """Sum the atoms of a density at an input."""
    return sum(mass for place, mass in density.atoms if abs(place - x) <= _ATOM_TOLERANCE)


# A number of outputs.


def compute_two_output_error(reach: float, loss: object, square: float) -> float:
    """Compute the mean error a |e| + b e² of the quantizer with two outputs ±B, up to rounding.

    Two outputs leave one unbiased law, Pr[B] = (B + x)/(2B), whose error at x is
    (B² - x²)(a/B + b). The error of any two outputs falls if one of them moves towards the inputs,
    so it is smallest if both are at the least reach.

    Args:
        reach: the size B of both outputs.
        loss: the loss, as in `LawQuestion`.
        square: the mean square E x² of the inputs.
    """
    a, b = error_coefficients(loss)
    return (reach**2 - square) * (a / reach + b)


def _compute_largest_bound(
    compute_limit: Callable[[], Limit],
    levels: int,
    question: LawQuestion,
    inputs: Pair,
    median_distance: float,
) -> float:
    """Compute the largest lower bound: of Le Cam's, of two outputs, and of any number of outputs.

    Args:
        compute_limit: computes the limit of any number of outputs. It may raise NotProven.
        levels: the number of outputs. If it is 2, the error of two outputs is a bound as well.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        inputs: the inputs x (n,) and their weights (n,).
        median_distance: E|X - median|, or a lower bound on it.
    """
    bounds = [_compute_two_input_bound(question, inputs, median_distance) * _BOUND_FACTOR]
    if levels == 2:
        x, w = inputs
        reach = smallest_reach(question.float_epsilon)
        error = compute_two_output_error(reach, question.loss, float(w @ x**2))
        bounds.append(error * _BOUND_FACTOR)
    with contextlib.suppress(NotProven):
        bounds.append(compute_limit().lower)
    return max(bounds)


def _compute_two_input_bound(question: LawQuestion, inputs: Pair, median_distance: float) -> float:
    """Compute the bound that two inputs give, because privacy makes them hard to distinguish.

    Let X be a random input, and p(x, o) the probability of the output o at the input x. By Le Cam,
    the inputs x < y have

        E|M(x) - x| + E|M(y) - y| >= (y - x) Σ_o min(p(x, o), p(y, o)) >= 2 (y - x)/(1 + e^ε)

    If the quantiles q and q + 1/2 are paired, MAE >= 2 E|X - median|/(1 + e^ε). By Hammersley,
    Chapman and Robbins, the variance at x is at least

        Δ²/χ² >= Δ² e^ε/(e^ε - 1)²

    where Δ = 1 + |x| is the distance to the farther end, and χ² the chi-squared divergence of the
    laws at both inputs.

    Args:
        question: the loss and ε of the law (see `LawQuestion`).
        inputs: the inputs x (n,) and their weights (n,).
        median_distance: E|X - median|, or a lower bound on it.
    """
    a, b = error_coefficients(question.loss)
    odds = compute_odds(question.float_epsilon)  # e^ε - 1
    x, w = inputs
    variance = float(w @ (1 + np.abs(x)) ** 2) * (1 + odds) / odds**2
    return 2 * a * median_distance / (2 + odds) + b * variance


def _compute_rounding_error(levels: int, loss: object) -> float:
    """Compute the least mean error of a number of outputs without privacy, for uniform inputs.

    Between two neighbouring outputs at distance d, the unbiased law with the least error publishes
    only these two. At the distance u from one of them, its mean absolute error is 2 u (d - u)/d,
    and its mean squared error u (d - u). The integrals over the gap are d²/3 and d³/6. The
    levels - 1 gaps cover [-1, 1], and both sums are least for equal gaps d = 2/(levels - 1). The
    density 1/2 then makes the MAE d/3, and the mean squared error d²/6.

    Args:
        levels: the number of outputs.
        loss: the loss, as in `LawQuestion`.
    """
    a, b = error_coefficients(loss)
    gap = 2 / (levels - 1)
    return a * gap / 3 + b * gap**2 / 6


def compute_alphabet_bound(
    points: Vector, question: LawQuestion, reach: float = math.inf, levels: int = 0
) -> float:
    """Compute a lower bound on the mean error over points for every alphabet within the reach.

    Args:
        points: the points from -1 to 1, symmetric around 0. Shape (n,).
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        reach: the largest output allowed in size; outputs are in [-reach, reach].
        levels: 2 if the alphabet has two outputs, for which the bound is larger. For any other
            number the bound holds for alphabets of every size.
    """
    inputs = points, np.full(points.size, 1 / points.size)
    compute_limit = partial(
        solve_unlimited_outputs,
        points,
        question.float_epsilon,
        question.loss,
        reach=reach,
        context=question,
    )
    median_distance = float(np.abs(points).mean())
    return _compute_largest_bound(compute_limit, levels, question, inputs, median_distance)


def compute_output_bound(
    levels: int, question: LawQuestion, reach: float = math.inf
) -> float | None:
    """Compute a lower bound on the error of a number of outputs.

    Args:
        levels: the number of outputs.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        reach: the largest output allowed in size; outputs are in [-reach, reach].

    Returns:
        The bound; None if it is 0.
    """
    density = question.density
    bound = _compute_largest_bound(
        partial(bound_least_error, question, reach),
        levels,
        question,
        inputs=density.quadrature([0.0]),
        median_distance=_compute_median_distance(density),
    )
    if density.shape is None:
        bound = max(bound, _compute_rounding_error(levels, question.loss) * _BOUND_FACTOR)
    return bound if bound > 0 else None


def _compute_median_distance(density: Density) -> float:
    """Compute a lower bound on E|X - median| that is less than 2^-40 below it.

    The derivative of E|X - t| in t is at most 1 in size.
    """

    def is_above_median(t: float) -> bool:
        """Return whether at least half of the mass is at most `t`."""
        x, w = density.quadrature([t])
        return float(w[x <= t].sum()) >= 0.5

    low, high = bisect(is_above_median, low=-1.0, high=1.0, tolerance=2.0**-41)
    x, w = density.quadrature([high])
    return max(0.0, float(w @ np.abs(x - high)) - (high - low))


@lru_cache(maxsize=256)
def bound_least_mae(epsilon: float, reach: float = math.inf) -> Limit:
    """Bound the MAE of all unbiased ε-private mechanisms for uniform x in [-1, 1] from below.

    Args:
        epsilon: the budget ε > 0.
        reach: the largest output allowed in size; outputs are in [-reach, reach].

    Returns:
        The limit of `bound_least_error`.
    """
    return bound_least_error(LawQuestion(read_number(epsilon, "epsilon")), reach)


def compute_mae_limit(epsilon: float, *, reach: float = math.inf) -> Limit:
    """Compute an interval that contains the least MAE for uniform x in [-1, 1] and any outputs.

    Args:
        epsilon: the budget ε > 0.
        reach: the largest output allowed in size; outputs are in [-reach, reach].

    Returns:
        The interval. The mechanism of its upper end has 41 knots and is exactly unbiased and
        ε-private.

    Raises:
        NotProven: a program of the mechanism has no solution.
    """
    law = LawQuestion(read_number(epsilon, "epsilon"))
    limit = bound_least_mae(epsilon, reach)
    outputs = np.unique(np.round(limit.outputs, _GRID.decimals))
    knots = np.linspace(-1, 1, _KNOT_COUNT)
    is_used = np.zeros(outputs.size, dtype=bool)
    while not is_used.all():
        # Outputs that are hardly drawn are left out, and the program is solved again.
        problem = make_exact_problem(knots, outputs.size, law, symmetric=True)
        answer = problem.find_optimum(epsilon, outputs, start="cold")
        problem.close()
        if answer is None:
            raise NotProven(
                f"The limit at epsilon = {epsilon:g} is beyond the solver's accuracy.",
                bound=limit.lower,
            )
        quantizer = Quantizer.from_ends("limit", outputs.tolist(), knots.tolist(), answer.laws)
        is_used = answer.laws.max(axis=0) > _MIN_DRAWN_MASS
        outputs = outputs[is_used]
    mechanism, _ = repair_quantizer(quantizer, law.epsilon)
    return Limit(limit.lower, mechanism.mae(), outputs, mechanism)
