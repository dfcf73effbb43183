"""What no outputs can beat: proven lower bounds on the error of unbiased ε-private laws, of any outputs or of so many.

The limit, of any number of outputs.
Outputs are generated until the LP's duals (α_e for Σ p = 1, β_e for the mean) price every real output a out:

    h(a) = min { Σ_e p_e g_e(a) : p_e <= e^ε p_e', max-scaled }  =  Σ_e max(g_e, 0) - e^ε max(-g_e, 0) >= 0,
    g_e(a) = loss_e(a) - α_e - β_e a

h is piecewise polynomial in a, so its least value is computed, not sampled; moving every α_e down by -min h / n makes
the duals feasible, and Σ α_e + β_e x_e bounds every mechanism below. With loss |a - x| outputs may be arbitrarily far
(a mass λ/B at B costs λ for every B): there the infimum is not attained, and β is shrunk until h's slope at infinity
is not negative.

From points to the interval [-1, 1]: averaging a mechanism over a cell of width w gives a law that is private and
unbiased at the cell's midpoint, and costs at most (w/4) tanh(ε/2) more there than it did in the cell (|a - x| =
2 (a - x)^+ in the mean of an unbiased law, (a - x)^+ is convex in x, and Pr[a > midpoint] varies by at most
tanh(ε/2)). So the LP over midpoints (and ±1, at no loss), less that, bounds every mechanism on the interval. In the
squared error it costs w²/12 more, the variance of x in the cell: E (M - x)² = E M² - x² for an unbiased M. For a
density that is not uniform the law is at the mean μ of the input in the cell, and costs at most tanh(ε/2) E|x - μ|
there more than in the cell (for the uniform one E|x - μ| = w/4).

So many outputs. The largest of these, each valid by itself, for the error a |e| + b e²:

* two outputs: what they cost at the least reach (`two_outputs`);
* any number of outputs within the reach, the limit: near the truth while privacy costs most;
* m outputs without privacy, uniform inputs: between neighbouring outputs d apart an unbiased law errs least when it
  draws those two alone (every other one is a mean-preserving spread of that), ∫ 2 u (d - u)/d du = d²/3 and
  ∫ u (d - u) du = d³/6 over the gap. m - 1 gaps cover [-1, 1]; both sums are least for equal gaps d = 2/(m - 1):
  MAE >= 2/(3 (m - 1)), mean squared error >= 2/(3 (m - 1)²). Near the truth at large ε;
* two inputs x < y cannot be told apart well (Le Cam): E|M(x) - x| + E|M(y) - y| >= (y - x) Σ_i min(p(x, i), p(y, i))
  >= 2 (y - x)/(1 + e^ε). Pairing quantiles q and q + 1/2: MAE >= 2 E|X - median|/(1 + e^ε). And the variance at x is
  at least Δ²/χ² >= Δ² e^ε/(e^ε - 1)², Δ = 1 + |x| the distance of the mean from that at the farther end (Hammersley,
  Chapman and Robbins). Never 0, where the limit is at very large ε.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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

_CELLS = 40  # of [-1, 1]
_DOUBLE = 1e-13  # of the largest loss, times e^ε: more than the sums that price outputs err by
_TOLERANCE = 1e-6  # of the limit: where no more outputs are generated
_ROUNDING = 1 - 1e-9  # of sums of doubles, whose errors are some 1e-13


@dataclass(frozen=True)
class Limit:
    """lower: proven for every unbiased ε-private mechanism (outputs within the reach); upper: reached by `quantizer`,
    or by a law at points on `outputs`."""

    lower: float
    upper: float
    outputs: Vector
    quantizer: Quantizer | None = None


@dataclass(frozen=True)
class _Dual:
    """Duals α of Σ p = 1 and β of the means of laws at points x, whose losses have the shares w. All (n,)."""

    x: Vector
    w: Vector
    loss: object
    odds: float  # e^ε
    alpha: Vector
    beta: Vector

    def price(self, outputs: Vector) -> Vector:
        """h at outputs. Shape (m,)."""
        at = outputs[:, None]
        g = self.w * compute_error(np.abs(at - self.x), self.loss) - self.alpha - self.beta * at
        return np.asarray(np.where(g > 0, g, self.odds * g).sum(axis=1))

    def shrunk(self) -> _Dual:
        """With h's slope at infinity not negative, for |e|: shrink * least + (1 - shrink) Σ w >= 0."""
        slope = self.w - np.array([[1.0], [-1.0]]) * self.beta
        least = float(np.where(slope > 0, slope, self.odds * slope).sum(axis=1).min())
        total = float(self.w.sum())
        shrink = total / (total - min(0.0, least))
        return replace(self, alpha=shrink * self.alpha, beta=shrink * self.beta)

    def bound(self, reach: float) -> float:
        """Σ α + β x, less what makes the duals feasible for every output in [-reach, reach]."""
        (a, b), x = error_coefficients(self.loss), self.x
        breaks = [x]
        for sign in (
            -1.0,
            1.0,
        ):  # zeros of g on either side of x_e: b w d² + (sign a w - β) d - (α + β x) = 0
            p, q, r = b * self.w, sign * a * self.w - self.beta, -(self.alpha + self.beta * x)
            with np.errstate(divide="ignore", invalid="ignore"):
                stable = -(q + np.copysign(np.sqrt(np.maximum(q * q - 4 * p * r, 0)), q)) / 2
                breaks += [x + stable / p, x + r / stable]
        edge = reach if math.isfinite(reach) else 1e7 * float(np.abs(x).max())
        cuts = np.concatenate(breaks)
        cuts = np.unique(
            np.concatenate([cuts[np.isfinite(cuts) & (np.abs(cuts) <= edge)], [-edge, edge]])
        )
        h, middle = self.price(cuts), self.price((cuts[1:] + cuts[:-1]) / 2)
        lowest = float(h.min())
        if b:  # a parabola through three points on every segment
            h0, h1 = h[:-1], h[1:]
            curve, slope = 2 * (h0 + h1 - 2 * middle), 4 * middle - 3 * h0 - h1
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.where(curve > 0, -slope / (2 * curve), -1.0)
                vertex = np.where((t > 0) & (t < 1), h0 + slope * t + curve * t * t, np.inf)
            lowest = min(lowest, float(vertex.min()))
        return float(self.alpha.sum() + self.beta @ x) + min(0.0, lowest)


def solve_unlimited_outputs(
    points: Vector,
    epsilon: float,
    loss: object = "squared",
    *,
    reach: float = math.inf,
    weights: Vector | None = None,
    symmetric: bool = True,
    rounds: int = 40,
    context: LawQuestion | None = None,
) -> Limit:
    """The least mean loss of ε-private unbiased laws at points with unlimited outputs in [-reach, reach].

    points, share: (n,), symmetric around 0 or not. `upper` is what `outputs` reach.
    context: see `LawProblem`.
    """
    b = error_coefficients(loss)[1]
    c = float(np.abs(points).max())
    weights = np.full(points.size, 1 / points.size) if weights is None else weights
    least = smallest_reach(epsilon, c)
    far = min(reach, 60 * least if b else 3e3 * least)
    begin = (
        np.linspace(0, 1, 8) * min(far, 1.6 * least)
        if b
        else [*np.linspace(0, c, 5), min(far, 1.5 * least), far]
    )
    outputs = _mirrored(np.asarray(begin))
    grid = np.concatenate(
        [np.linspace(0, min(far, 3 * least), 700), np.geomspace(1e-3, 1, 60) * far]
    )
    grid = _mirrored(np.append(np.round(grid, 9), far))  # the same outputs on every machine
    odds, lower, upper = 1 + compute_odds(epsilon), -math.inf, math.inf
    for _ in range(rounds):
        problem = make_grid_problem(
            points, outputs.size, loss, weights=weights, symmetric=symmetric, context=context
        )
        solution = problem.solve(epsilon, outputs)
        problem.close()
        if solution.objective is None or solution.row_dual is None:
            raise NotProven(f"The limit's LP has no solution ({solution.raw_status}).")
        upper = solution.objective
        dual = _Dual(points, weights, loss, odds, *problem.unfold_duals(solution.row_dual))
        proven = dual.shrunk() if math.isinf(reach) and not b else dual
        lower = max(lower, proven.bound(reach))
        if upper - lower <= _TOLERANCE * max(1.0, upper):
            break
        h = dual.price(grid)
        low = (
            np.flatnonzero((h[1:-1] <= h[:-2]) & (h[1:-1] <= h[2:]) & (h[1:-1] < -_TOLERANCE / 10))
            + 1
        )
        low = low[grid[low] >= 0] if symmetric else low
        more = _mirrored(
            np.concatenate([outputs, grid[low[np.argsort(h[low], kind="stable")][:6]]])
        )
        if more.size == outputs.size:
            break
        outputs = more
    return Limit(
        lower - _DOUBLE * odds * float(compute_error(np.abs(outputs).max(), loss)), upper, outputs
    )


def _mirrored(outputs: Vector) -> Vector:
    """Outputs and their mirror images, in order."""
    return np.unique(np.concatenate([-np.abs(outputs), np.abs(outputs)]))


def bound_least_error(question: LawQuestion, reach: float = math.inf) -> Limit:
    """The error below which no unbiased ε-private mechanism is, with outputs in ±reach.

    `lower` is that bound; `upper` and `outputs` belong to the LP over the means of 40 cells.
    """
    (a, b), epsilon, even = (
        error_coefficients(question.loss),
        question.float_epsilon,
        question.density.shape is None,
    )
    if even:
        width = 2 / _CELLS
        points, share = add_end_points(-1 + width * (np.arange(_CELLS) + 0.5))
        absolute, squared = width / 4, width**2 / 12
    else:
        points, share, absolute, squared = _cell_means(question.density)
    rounds = 40 if even else 10
    limit = solve_unlimited_outputs(
        points,
        epsilon,
        question.loss,
        reach=reach,
        weights=share,
        symmetric=even,
        rounds=rounds,
        context=question,
    )
    return Limit(
        limit.lower - a * absolute * math.tanh(epsilon / 2) - b * squared,
        limit.upper,
        limit.outputs,
    )


def _cell_means(density: Density) -> tuple[Vector, Vector, float, float]:
    """±1 with their atoms and the cells' means with their masses; E|x - mean| and E (x - mean)² over all cells."""
    cuts, cells = np.linspace(-1.0, 1.0, _CELLS + 1), _CELLS

    def inside(at: Vector) -> tuple[Vector, Vector, Positions]:
        x, w = density.quadrature(at)
        within = (np.abs(x) < 1) & (w > 0)
        return (
            x[within],
            w[within],
            np.clip(np.searchsorted(cuts, x[within], side="right") - 1, 0, cells - 1),
        )

    x, w, cell = inside(cuts)
    mass, first = (
        np.bincount(cell, weights=w, minlength=cells),
        np.bincount(cell, weights=w * x, minlength=cells),
    )
    used = mass > 0
    means = np.clip(
        np.where(used, first / np.where(used, mass, 1.0), cuts[:-1]), cuts[:-1], cuts[1:]
    )
    x, w, cell = inside(np.concatenate([cuts, means]))  # |x - mean| has a kink at the mean
    far = np.abs(x - means[cell])
    ends = [sum(p for at, p in density.atoms if abs(at - end) <= 1e-12) for end in (-1, 1)]
    points = np.concatenate([[-1.0], means[used], [1.0]])
    return (
        points,
        np.concatenate([ends[:1], mass[used], ends[1:]]),
        float(w @ far),
        float(w @ far**2),
    )


def compute_two_output_error(reach: float, loss: object, square: float) -> float:
    """The error a |e| + b e² with outputs ±reach, up to rounding. square: E x².

    They leave one unbiased law, Pr[B] = (B + x)/(2B), whose error at x is (B² - x²)(a/B + b). Of any two outputs it
    falls with the size of each: at the least reach it is the least.
    """
    a, b = error_coefficients(loss)
    return (reach**2 - square) * (a / reach + b)


def _bound(
    limit: Callable[[], Limit], levels: int, question: LawQuestion, inputs: Pair, spread: float
) -> float:
    """The largest of the bounds that hold for all inputs. inputs: x and their weights; spread: E|X - median|."""
    (a, b), odds, (x, w) = (
        error_coefficients(question.loss),
        compute_odds(question.float_epsilon),
        inputs,
    )
    squared = float(w @ (1 + np.abs(x)) ** 2) * (1 + odds) / odds**2
    bounds = [(2 * a * spread / (2 + odds) + b * squared) * _ROUNDING]
    if levels == 2:
        bounds.append(
            compute_two_output_error(
                smallest_reach(question.float_epsilon), question.loss, float(w @ x**2)
            )
            * _ROUNDING
        )
    with contextlib.suppress(NotProven):
        bounds.append(limit().lower)
    return max(bounds)


def compute_alphabet_bound(
    points: Vector, question: LawQuestion, reach: float = math.inf, levels: int = 0
) -> float:
    """A lower bound on the mean error over points (from -1 to 1, symmetric around 0) for every alphabet within the
    reach, of any size or, where that is 2, of `levels`."""
    inputs = points, np.full(points.size, 1 / points.size)
    limit = partial(
        solve_unlimited_outputs,
        points,
        question.float_epsilon,
        question.loss,
        reach=reach,
        context=question,
    )
    return _bound(limit, levels, question, inputs, float(np.abs(points).mean()))


def compute_output_bound(
    levels: int, question: LawQuestion, reach: float = math.inf
) -> float | None:
    """The bound for `levels` outputs in [-reach, reach]; None when it is 0."""
    density = question.density
    best = _bound(
        partial(bound_least_error, question, reach),
        levels,
        question,
        density.quadrature([0.0]),
        _spread(density),
    )
    if density.shape is None:
        (a, b), gap = error_coefficients(question.loss), 2 / (levels - 1)
        best = max(best, (a * gap / 3 + b * gap**2 / 6) * _ROUNDING)
    return best if best > 0 else None


def _spread(density: Density) -> float:
    """E|X - median|, less than 2^-40 below it: at t the derivative of E|X - t| is at most 1 in size."""

    def beyond(t: float) -> bool:
        x, w = density.quadrature([t])
        return float(w[x <= t].sum()) >= 0.5

    low, high = bisect(beyond, -1.0, 1.0, tolerance=2.0**-41)
    x, w = density.quadrature([high])
    return max(0.0, float(w @ np.abs(x - high)) - (high - low))


def compute_mae_limit(epsilon: float, *, reach: float = math.inf) -> Limit:
    """The least MAE of unbiased ε-private mechanisms for uniform x in [-1, 1], whatever their outputs in ±reach.

    The mechanism that gives the upper end has 41 knots, and is exactly unbiased and ε-private.
    """
    law = LawQuestion(read_number(epsilon, "epsilon"))
    limit = bound_least_error(law, reach)
    outputs, cuts = np.unique(np.round(limit.outputs, 9)), np.linspace(-1, 1, 41)
    used = np.zeros(outputs.size, dtype=bool)
    while (
        not used.all()
    ):  # outputs that are hardly drawn cannot be told from rounding: leave them out and solve again
        problem = make_exact_problem(cuts, outputs.size, law, symmetric=True)
        answer = problem.find_optimum(epsilon, outputs, start="cold")
        problem.close()
        if answer is None:
            raise NotProven(
                f"The limit at epsilon = {epsilon:g} is beyond the solver's accuracy.",
                bound=limit.lower,
            )
        solved = Quantizer.from_ends("limit", outputs.tolist(), cuts.tolist(), answer.laws)
        used = answer.laws.max(axis=0) > 1e-7
        outputs = outputs[used]
    mechanism, _ = repair_quantizer(solved, law.epsilon)
    return Limit(limit.lower, mechanism.mae(), outputs, mechanism)
