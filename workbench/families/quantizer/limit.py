"""What no number of outputs can beat: the best unbiased ε-private law with unlimited outputs, with a proven bound.

Outputs are generated until the LP's duals (α_e for Σ p = 1, β_e for the mean) price every real output a out:

    h(a) = min { Σ_e p_e g_e(a) : p_e <= e^ε p_e', max-scaled }  =  Σ_e max(g_e, 0) - e^ε max(-g_e, 0) >= 0,
    g_e(a) = loss_e(a) - α_e - β_e a

h is piecewise polynomial in a, so its least value is computed, not sampled; moving every α_e down by -min h / n makes
the duals feasible, and Σ α_e + β_e x_e bounds every mechanism below. With loss |a - x| outputs may be arbitrarily far
(a mass λ/B at B costs λ for every B): there the infimum is not attained, and β is shrunk until h's slope at infinity
is not negative.

From points to the interval [-c, c]: averaging a mechanism over a cell of width w gives a law that is private and
unbiased at the cell's midpoint, and costs at most (w/4) tanh(ε/2) more there than it did in the cell (|a - x| =
2 (a - x)^+ in the mean of an unbiased law, (a - x)^+ is convex in x, and Pr[a > midpoint] varies by at most
tanh(ε/2)). So the LP over midpoints (and ±c, at no loss), less that, bounds every mechanism on the interval. In the
squared error it costs w²/12 more, the variance of x in the cell: E (M - x)² = E M² - x² for an unbiased M. For a
density that is not uniform the law is at the mean μ of the input in the cell, and costs at most tanh(ε/2) E|x - μ|
there more than in the cell (for the uniform one E|x - μ| = w/4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.quantizer import odds_of, smallest_reach
from workbench.errors import NotProven
from workbench.exact.numbers import exact
from workbench.families.quantizer.certify import repaired
from workbench.families.quantizer.laws import exact_problem, grid_problem
from workbench.mechanisms.density import Density, uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import error_function

__all__ = ["Limit", "least_error", "mae_limit", "proven_limit", "two_outputs", "unlimited"]

Vector = NDArray[np.float64]

_DOUBLE = 1e-13  # of the largest loss, times e^ε: more than the sums that price outputs err by


@dataclass(frozen=True)
class Limit:
    """lower: proven for every unbiased ε-private mechanism (outputs within `reach`); upper: reached by `quantizer`."""

    lower: float
    upper: float
    outputs: Vector
    reach: float
    quantizer: Quantizer | None = None


def unlimited(
    points: Vector,
    epsilon: float,
    loss: object = "squared",
    *,
    reach: float = math.inf,
    share: Vector | None = None,
    symmetric: bool = True,
    rounds: int = 40,
    tolerance: float = 1e-6,
) -> Limit:
    """The least mean loss of ε-private unbiased laws at points with unlimited outputs in [-reach, reach].

    points, share: (n,), symmetric around 0 or not. `lower` is proven up to rounding; `upper` is what `outputs` reach.
    """
    a, b = error_function(loss)
    n, c = points.size, float(np.abs(points).max())
    weights = np.full(n, 1 / n) if share is None else share
    least = smallest_reach(epsilon, c)
    far = min(reach, 3e3 * least if b == 0 else 60 * least)
    outputs = np.unique(np.concatenate([np.linspace(-c, c, 9), np.array([-1, 1]) * min(far, 1.5 * least), [-far, far]]))
    if b:
        outputs = np.unique(np.concatenate([np.linspace(-1, 1, 15) * min(far, 1.6 * least), [0.0]]))
    grid = np.geomspace(1e-3, 1, 60) * far
    grid = np.concatenate([np.linspace(0, min(far, 3 * least), 700), grid])
    grid = np.unique(np.concatenate([np.round(grid, 9), [far]]))  # the same outputs on every machine
    outputs = np.unique(np.concatenate([np.abs(outputs), -np.abs(outputs)]))
    grid = np.concatenate([-grid[:0:-1], grid])
    odds, best_lower, upper = 1 + odds_of(epsilon), -math.inf, math.inf
    for _ in range(rounds):
        problem = grid_problem(points, outputs.size, loss, weights=weights, symmetric=symmetric)
        solution = problem.solve(epsilon, outputs)
        problem.close()
        if solution.objective is None or solution.row_dual is None:
            raise NotProven(f"The limit's LP has no solution ({solution.raw_status}).")
        upper = solution.objective
        dual = solution.row_dual
        alpha, beta = _unfolded(dual, n) if symmetric else (dual[:n], dual[n : 2 * n])
        best_lower = max(best_lower, _proven(points, weights, a, b, alpha, beta, odds, reach))
        if upper - best_lower <= tolerance * max(1.0, upper):
            break
        h = _price(grid, points, weights, a, b, alpha, beta, odds)
        low = np.flatnonzero((h[1:-1] <= h[:-2]) & (h[1:-1] <= h[2:]) & (h[1:-1] < -tolerance / 10)) + 1
        low = low[grid[low] >= 0] if symmetric else low
        order = low[np.argsort(h[low], kind="stable")][:6]
        if not order.size:
            break
        positive = np.unique(np.abs(np.concatenate([outputs, grid[order]])))
        more = np.unique(np.concatenate([-positive, positive]))
        if more.size == outputs.size:
            break
        outputs = more
    return Limit(best_lower, upper, outputs, reach)


def _unfolded(dual: Vector, n: int) -> tuple[Vector, Vector]:
    """Duals of Σ p = 1 and of the means at all n points from those of the half stated; each stands for two points."""
    k = (n + 1) // 2
    left, right = dual[:k] / 2, dual[k : 2 * k] / 2
    if n % 2:  # the middle point stands for itself, and its mean is 0 by symmetry
        middle = np.array([2 * left[0]]), np.zeros(1)
        left, right = left[1:], right[1:]
        return np.concatenate([left[::-1], middle[0], left]), np.concatenate([-right[::-1], middle[1], right])
    return np.concatenate([left[::-1], left]), np.concatenate([-right[::-1], right])


def _price(grid: Vector, x: Vector, w: Vector, a: float, b: float, alpha: Vector, beta: Vector, odds: float) -> Vector:
    gap = grid[:, None] - x[None, :]
    g = w * (a * np.abs(gap) + b * gap**2) - alpha - beta * grid[:, None]
    return np.asarray(np.where(g > 0, g, odds * g).sum(axis=1))


def _proven(x: Vector, w: Vector, a: float, b: float, alpha: Vector, beta: Vector, odds: float, reach: float) -> float:
    """The bound that the duals prove after being made feasible for every output in [-reach, reach]."""
    shrink = 1.0
    if math.isinf(reach) and b == 0:
        for sign in (-1.0, 1.0):
            slope = a * w - sign * beta
            least = float(np.where(slope > 0, slope, odds * slope).sum())
            if least < 0:  # shrink * least + (1 - shrink) * a Σ w >= 0
                shrink = min(shrink, a * float(w.sum()) / (a * float(w.sum()) - least))
    alpha, beta = shrink * alpha, shrink * beta
    breaks = [x]
    for sign in (-1.0, 1.0):  # zeros of g on either side of x_e: b w d² + (sign a w - β) d - (α + β x) = 0, d = a - x
        p, q, r = b * w, sign * a * w - beta, -(alpha + beta * x)
        with np.errstate(divide="ignore", invalid="ignore"):
            if b:
                root = np.sqrt(np.maximum(q * q - 4 * p * r, 0))
                breaks += [x + (-q + root) / (2 * p), x + (-q - root) / (2 * p)]
            else:
                breaks.append(x - r / q)
    edge = reach if math.isfinite(reach) else 1e7 * float(np.abs(x).max())
    cuts = np.concatenate(breaks)
    cuts = np.unique(np.concatenate([cuts[np.isfinite(cuts) & (np.abs(cuts) <= edge)], [-edge, edge]]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    h0, h1, hm = (_price(part, x, w, a, b, alpha, beta, odds) for part in (cuts[:-1], cuts[1:], middle))
    lowest = min(float(h0.min()), float(h1.min()))
    if b:  # a parabola through three points on every segment
        curve, slope = 2 * (h0 + h1 - 2 * hm), 4 * hm - 3 * h0 - h1
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(curve > 0, -slope / (2 * curve), -1.0)
            vertex = np.where((t > 0) & (t < 1), h0 + slope * t + curve * t * t, np.inf)
        lowest = min(lowest, float(vertex.min()))
    return float(alpha.sum() + beta @ x) + min(0.0, lowest)


def proven_limit(limit: Limit, epsilon: float, loss: object) -> float:
    """`lower` less what sums of doubles may have erred by: 1e-13 of the largest loss, times e^ε."""
    a, b = error_function(loss)
    far = float(np.abs(limit.outputs).max())
    return limit.lower - _DOUBLE * (1 + odds_of(epsilon)) * (a * far + b * far**2)


def least_error(
    epsilon: float,
    c: float = 1.0,
    loss: object = "absolute",
    *,
    density: Density | None = None,
    reach: float = math.inf,
    cells: int = 40,
) -> Limit:
    """The error below which no unbiased ε-private mechanism is for x in [-c, c], with outputs in ±reach.

    `lower` is that bound; `upper` and `outputs` belong to the LP over the means of `cells`. loss: "absolute",
    "squared", or a share of absolute. density: uniform by default.
    """
    a, b = error_function(loss)
    width = 2 * c / cells
    if density is None or density.shape is None:
        points = np.concatenate([[-c], -c + width * (np.arange(cells) + 0.5), [c]])
        share = np.concatenate([[0.0], np.full(cells, 1 / cells), [0.0]])  # laws at ±c bind, but cost nothing
        limit = unlimited(points, epsilon, loss, reach=reach, share=share)
        absolute, squared = width / 4, width**2 / 12
    else:
        points, share, absolute, squared = _cell_means(density, np.linspace(-c, c, cells + 1))
        limit = unlimited(points, epsilon, loss, reach=reach, share=share, symmetric=False, rounds=10)
    lower = limit.lower - a * absolute * math.tanh(epsilon / 2) - b * squared
    return Limit(lower, limit.upper, limit.outputs, reach)


def two_outputs(reach: float, loss: object, square: float) -> float:
    """The error a |e| + b e² with outputs ±reach, up to rounding. square: E x².

    They leave one unbiased law, Pr[B] = (B + x)/(2B), whose error at x is (B² - x²)(a/B + b). Of any two outputs it
    falls with the size of each: at the least reach it is the least.
    """
    a, b = error_function(loss)
    return (reach**2 - square) * (a / reach + b)


def _cell_means(density: Density, cuts: Vector) -> tuple[Vector, Vector, float, float]:
    """±c with their atoms and the cells' means with their masses; E|x - mean| and E (x - mean)² over all cells."""
    c = cuts[-1]

    def inside(at: Vector) -> tuple[Vector, Vector, NDArray[np.intp]]:
        x, w = density.grid(at)
        within = (np.abs(x) < c) & (w > 0)
        x, w = x[within], w[within]
        return x, w, np.clip(np.searchsorted(cuts, x, side="right") - 1, 0, cuts.size - 2)

    x, w, cell = inside(cuts)
    mass = np.bincount(cell, weights=w, minlength=cuts.size - 1)
    first = np.bincount(cell, weights=w * x, minlength=cuts.size - 1)
    means = np.where(mass > 0, first / np.where(mass > 0, mass, 1.0), (cuts[1:] + cuts[:-1]) / 2)
    means = np.clip(means, cuts[:-1], cuts[1:])
    x, w, cell = inside(np.concatenate([cuts, means]))  # |x - mean| has a kink at the mean
    far = x - means[cell]
    ends = [sum(p for at, p in density.atoms if abs(at - end) <= 1e-12 * c) for end in (-c, c)]
    used = mass > 0
    points = np.concatenate([[-c], means[used], [c]])
    return points, np.concatenate([[ends[0]], mass[used], [ends[1]]]), float(w @ np.abs(far)), float(w @ far**2)


def mae_limit(epsilon: float, c: float = 1.0, *, reach: float = math.inf, cells: int = 40, knots: int = 41) -> Limit:
    """The least MAE of unbiased ε-private mechanisms for uniform x in [-c, c], whatever their outputs in ±reach.

    cells: of the lower bound; knots: of the mechanism that gives the upper one, exactly unbiased and ε-private.
    """
    limit = least_error(epsilon, c, reach=reach, cells=cells)
    outputs = np.unique(np.round(limit.outputs, 9))
    cuts = np.linspace(-c, c, knots)
    while True:  # outputs that are hardly drawn cannot be told from rounding: leave them out and solve again
        problem = exact_problem(cuts, outputs.size, uniform(c), "absolute", symmetric=True)
        answer = problem.answer(epsilon, outputs, start="cold")
        problem.close()
        if answer is None:
            raise NotProven(f"The limit at epsilon = {epsilon:g} is beyond the solver's accuracy.", bound=limit.lower)
        used = answer.laws.max(axis=0) > 1e-7
        if used.all():
            break
        outputs = outputs[used]
    ends = answer.laws.reshape(-1, 2, outputs.size)
    solved = Quantizer.from_ends("limit", outputs.tolist(), cuts.tolist(), ends)
    mechanism, _ = repaired(solved, exact(epsilon, "epsilon"))
    return Limit(limit.lower, mechanism.mae(), outputs, reach, mechanism)
