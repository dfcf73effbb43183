"""The least error of private unbiased laws at every input of [-1, 1], smooth in the outputs and their least masses.

A law p_x over outputs o_1 <= ... <= o_m is ε-private where low_i <= p_x(i) <= t low_i, t = e^ε, for every x. Given low,

    minimise    Σ_i p_x(i) e(o_i - x)
    subject to  Σ_i p_x(i) = 1,   Σ_i o_i p_x(i) = x,   low_i <= p_x(i) <= t low_i

is solved at each x by itself. By its dual, outputs with g_i = e(o_i - x) - α - β o_i below 0 have all they may, others
the least. e is convex, so those below 0 are neighbours: p_x = low + what a window of width S = 1 - Σ low holds of the
capacities (t - 1) low_i, laid side by side in the order of the outputs. The window's place u follows from the mean,
which rises with it; at most the two outputs at its ends have a part of their capacity, and there g = 0 gives α and β.
u is affine in x between the places where an end of the window meets an end of a capacity, so p_x is too: with these x
as knots (`bends`) the exact quantizer LP has this very law.

    F = ∫ Σ_i p_x(i) e(o_i - x) f(x) dx,    ∂F/∂low_i = ∫ min(g_i, t g_i) f,    ∂F/∂o_i = ∫ p_x(i) (e'(o_i - x) - β) f

F has continuous slopes where f has no atoms. Laws exist where the means of the windows farthest right and left reach
1 and -1: two concave constraints. Their local optima are found by SciPy's SLSQP (Kraft 1988), a start in hundredths
of a second, where the LP at a choice of outputs gives one value and a slope that jumps.

SLSQP's linear algebra differs in its last digits from machine to machine, so that outputs are taken to five decimals.
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
from workbench.families.quantizer.outputs import INFEASIBLE_VALUE, LocalOptimum
from workbench.mechanisms.quantization_error import compute_error, error_slope
from workbench.models.quantizer.program import compute_odds
from workbench.solvers.arrays import Pair, Vector

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_ITERATIONS = 300  # of a descent
_FIRST, _TOLERANCE = (
    1e-10,
    1e-14,
)  # of the value over the limit: of every start, and of the best one's end
_WINDOW, _STALL = (
    50,
    1e-8,
)  # a descent ends when so many iterations gain less than this share of the value
_NEAREST = 1 + 8e-7  # the outermost outputs, in units of what the least reach has beyond 1, from 1
_DIGITS = 5  # of outputs in their units
_EVEN = 1e-4  # how far outputs that are taken for symmetric ones are from being so, in their units
_SLACK = 1e-9  # of what the least reach has beyond 1: how far a mean may stay from an end


@dataclass(frozen=True)
class WindowObjective:
    """value: F; slopes: in outputs and low (2 m,); bends: x at which the laws bend, in increasing order."""

    value: float
    slopes: Vector
    bends: Vector


def compute_window_objective(
    question: LawQuestion, outputs: Vector, low: Vector
) -> WindowObjective:
    """F at outputs in increasing order and their least masses, both (m,); inputs out of reach are taken as they would
    cost if the window's last outputs had more capacity."""
    odds, width, m = compute_odds(question.float_epsilon), 1 - low.sum(), low.size
    ends, moments = np.zeros((2, m + 1))
    np.add.accumulate(odds * low, out=ends[1:])
    np.add.accumulate(odds * low * outputs, out=moments[1:])
    places = np.maximum(0.0, np.minimum(np.concatenate([ends, ends - width]), ends[-1] - width))
    places.sort()
    bends = (
        (low * outputs).sum()
        + np.interp(places + width, ends, moments)
        - np.interp(places, ends, moments)
    )
    x, share = question.density.quadrature(np.concatenate([bends, outputs]))
    left = np.interp(x, bends, places)
    first = np.minimum(ends.searchsorted(left, side="right") - 1, m - 1)
    last = np.minimum(np.maximum(ends.searchsorted(left + width) - 1, 0), m - 1)
    left, each, start = left[:, None], np.arange(x.size), outputs[first]
    law = low + np.maximum(np.minimum(left + width, ends[1:]) - np.maximum(left, ends[:-1]), 0.0)
    gap, apart = outputs - x[:, None], np.maximum(outputs[last] - start, 1e-12)
    missing = (x - law @ outputs) / apart
    law[each, last] += missing
    law[each, first] -= missing
    error = compute_error(np.abs(gap), question.loss)
    least = error[each, first]
    beta = ((error[each, last] - least) / apart)[:, None]
    g = error - least[:, None] - beta * (outputs - start[:, None])
    by_output, by_low = (
        law * (error_slope(gap, question.loss) - beta),
        np.minimum(g, (1 + odds) * g),
    )
    slopes = np.concatenate([share @ by_output, share @ by_low])
    return WindowObjective(math.fsum(share * (law * error).sum(axis=1)), slopes, bends)


def compute_farthest_mean(ratio: float, outputs: Vector, low: Vector) -> tuple[float, Vector]:
    """How far the mean of the window farthest right is beyond 1; its slopes in outputs and low (2 m,). ratio: e^ε."""
    more = np.add.accumulate((ratio - 1) * low[::-1]).searchsorted(1 - low.sum())
    k = max(0, low.size - 1 - int(more))
    most = np.ones(low.size)
    most[k + 1 :] = ratio
    law = most * low
    law[k] += 1 - law.sum()
    return float(law @ (outputs - 1)), np.concatenate([law, most * (outputs - outputs[k])])


@dataclass(frozen=True)
class _Descent:
    """A descent's variables: outputs, outermost ones in units of what the least reach has beyond 1 and from ±1, then
    t low. Shape (2 m,)."""

    question: LawQuestion
    m: int
    limit: float

    @cached_property
    def ratio(self) -> float:
        """e^ε."""
        return 1 + compute_odds(self.question.float_epsilon)

    @cached_property
    def units(self) -> Pair:
        """The variables' units, and from where they count."""
        excess = 2 / compute_odds(self.question.float_epsilon)
        units, zero = np.full(2 * self.m, 1 / self.ratio), np.zeros(2 * self.m)
        units[: self.m] = max(1.0, excess)
        units[[0, self.m - 1]], zero[[0, self.m - 1]] = excess, [-1.0, 1.0]
        return units, zero

    @cached_property
    def bounds(self) -> Pair:
        """Least and largest z: outermost outputs from the least reach to the limit, others within it, t low <= 1."""
        units, zero = self.units
        low, high = np.zeros(2 * self.m), np.ones(2 * self.m)
        high[: self.m] = self.limit
        low[: self.m] = -self.limit
        low, high = (low - zero) / units, (high - zero) / units
        low[self.m :], high[self.m :] = 0.0, 1.0
        high[0], low[self.m - 1] = -_NEAREST, _NEAREST
        return low, high

    def begin(self, outputs: Vector) -> Vector:
        """The variables at outputs (m,), masses all the same: Σ low as of two outputs."""
        units, zero = self.units
        masses = np.full(self.m, 2 / (self.ratio + 1) / self.m)
        return np.clip((np.append(outputs, masses) - zero) / units, *self.bounds)

    def read(self, z: Vector) -> Pair:
        """Outputs and least masses, (m,) each."""
        units, zero = self.units
        here = z * units + zero
        return here[: self.m], here[self.m :]

    def means(self, z: Vector) -> Pair:
        """How far the farthest means are beyond ±1, in units of an outermost output, and their slopes. Shapes (2,) and
        (2, 2 m)."""
        outputs, low = self.read(z)
        right, by_right = compute_farthest_mean(self.ratio, outputs, low)
        left, by_left = compute_farthest_mean(self.ratio, -outputs[::-1], low[::-1])
        by_left = np.concatenate([-by_left[self.m - 1 :: -1], by_left[: self.m - 1 : -1]])
        excess = self.units[0][0]
        return np.array([right, left]) / excess, np.array([by_right, by_left]) * self.units[
            0
        ] / excess

    @cached_property
    def linear(self) -> Pair:
        """Outputs in their order and 1/t <= Σ low <= 1, as rows a z >= b."""
        units, zero = self.units
        rows = np.zeros((self.m + 1, 2 * self.m))
        rows[: self.m - 1, : self.m] = np.diff(np.eye(self.m), axis=0)
        rows[self.m - 1, self.m :], rows[self.m, self.m :] = self.ratio, -1.0
        return rows * units, np.append(np.zeros(self.m - 1), [1.0, -1.0]) - rows @ zero

    def descend(self, z: Vector, tolerance: float) -> tuple[float, Vector] | None:
        """The best value on the way from z, and where it is; None: no law."""
        from scipy.optimize import Bounds, minimize  # slow to import
        from threadpoolctl import threadpool_limits

        best: list[tuple[float, Vector]] = []
        values: list[float] = []
        means = lru_cache(maxsize=1)(lambda key: self.means(np.frombuffer(key)))
        rows, least = self.linear

        def value(z: Vector) -> tuple[float, Vector]:
            error = compute_window_objective(self.question, *self.read(z))
            if (not best or error.value < best[0][0]) and means(z.tobytes())[0].min() > -_SLACK:
                best[:] = [(error.value, z.copy())]
            return error.value / self.limit, error.slopes * self.units[0] / self.limit

        def stop(intermediate_result: OptimizeResult) -> None:
            values.append(best[0][0] if best else INFEASIBLE_VALUE - len(values))
            if len(values) > _WINDOW and not values[-1] < values[-_WINDOW - 1] * (1 - _STALL):
                raise StopIteration

        constraints: Any = {
            "type": "ineq",
            "fun": lambda z: np.concatenate([means(z.tobytes())[0], rows @ z - least]),
            "jac": lambda z: np.concatenate([means(z.tobytes())[1], rows]),
        }
        with threadpool_limits(1, "blas"):  # of matrices so small that threads wait for each other
            minimize(
                value,
                z,
                jac=True,
                bounds=Bounds(*self.bounds),
                constraints=constraints,
                method="SLSQP",
                callback=stop,
                options={"maxiter": _ITERATIONS, "ftol": tolerance},
            )
        return best[0] if best else None

    def rounded(self, z: Vector) -> Pair:
        """Outputs in so many digits, and the least masses; symmetric ones where they nearly are and the density is."""
        if self.question.density.is_symmetric:
            mirror = np.append(-z[: self.m][::-1], z[self.m :][::-1])
            z = (z + mirror) / 2 if np.abs(z - mirror)[: self.m].max() < _EVEN else z
        near = np.where(np.arange(z.size) < self.m, np.round(z, _DIGITS), z)
        for bound in self.bounds:
            near = np.where(np.abs(z - bound) < 10.0**-_DIGITS, bound, near)
        return self.read(near)


def search_window_outputs(
    question: LawQuestion,
    m: int,
    starts: Iterable[Vector],
    limit: float,
    progress: Progress = ignore_progress,
) -> LocalOptimum | None:
    """The best outputs from several starts (m,), of equal values (nine digits) the first one's; None without a law."""
    descent, reached = _Descent(question, m, limit), []
    for k, start in enumerate(starts):
        end = descent.descend(descent.begin(start), _FIRST)
        if end is not None:
            reached.append(end)
            progress(f"start {k + 1}: {end[0]:.6f}")
    if not reached:
        return None
    best = min(reached, key=lambda end: float(f"{end[0]:.9g}"))
    value, z = descent.descend(best[1], _TOLERANCE) or best
    outputs, low = descent.rounded(z)
    bends = compute_window_objective(question, outputs, low).bends
    return LocalOptimum(outputs, value, tuple(value for value, _ in reached), bends)
