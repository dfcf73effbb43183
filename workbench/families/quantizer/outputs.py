"""Optimised outputs: the best outputs of a quantizer, or MVU's alphabet, by the duals of an LP, from several starts.

V(B) = the LP's optimum at outputs B is piecewise smooth and not convex. Its slope comes with every solve, so each
start is a descent of hot re-solves by SciPy's SLSQP, repeated from where it stalls; the best of all starts is kept. A
local optimum is a known trap (m = 4, n_in = 4, ε = 1.5: a gradient method stops at 1.802, 1.6198 exists), so starts
spread over how far and how evenly outputs reach, and are not all symmetric.

A law exists if and only if the outermost outputs are at least at the least reach r = (e^ε + 1)/(e^ε - 1) on either
side (by |x - x'|: 1 + 1/ε): that of the outermost two alone, Pr[high] = (x - low)/(high - low), is then private. At
large ε the best ones are within a few r - 1 of it, by a metric often at it, where a proof has no room; descents
therefore move z in r + (r - 1) e^z, and inner outputs as they are.

The path of a descent is sensitive to rounding: at kinks of V, to which of several duals the solver returns. So V is
asked at multiples of 2^-29 (of z: 2^-30) alone, in numbers that are the same on every machine
(workbench.models.quantizer.program.odds_of, correctly rounded exponentials and quadrature nodes, sums in a fixed
order). SLSQP's own steps may still differ in their last digits from machine to machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from workbench.exact.objects import FloatPair, Progress
from workbench.families.quantizer.laws import LawProblem, ignore_progress
from workbench.models.quantizer.program import smallest_reach
from workbench.solvers.arrays import Pair, Positions, Vector

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_UNIT, _GRID = 2.0**-29, 2.0**-30  # of which outputs are multiples, and z
_NEAREST = -14.0  # z of outermost outputs a millionth of r - 1 beyond the least reach
_WINDOW, _STALL = (
    4,
    1e-9,
)  # a descent ends when so many iterations gain less than this share of the value
_FIRST = 25  # iterations of a short descent
_TOLERANCE = 1e-12  # The change of the value at which SLSQP ends.
_Reached = tuple[float, Vector]  # a value, and its slope or where it is
INFEASIBLE_VALUE = 1e6  # the value of outputs at which no law is private and unbiased


@dataclass(frozen=True)
class LocalOptimum:
    """outputs: the best found, sorted (m,); value: of the best laws there; starts: (value after descent) of every
    start; bends: inputs that are worth a knot."""

    outputs: Vector
    value: float
    start_values: tuple[float, ...]
    bends: Vector = field(default_factory=lambda: np.zeros(0))


def make_spread_starts(m: int, epsilon: float, count: int) -> list[Vector]:
    """Symmetric outputs (m,): reaches 1.02 .. 2.2 times the least, spaced by powers."""
    least, first = smallest_reach(epsilon), 1.0 if m % 2 else 0.6
    steps = np.arange(m // 2) + first
    shapes = (
        (1.3, 1.0),
        (1.05, 0.7),
        (1.7, 1.3),
        (1.02, 2.0),
        (2.2, 1.0),
        (1.15, 0.3),
        (1.4, 2.5),
    )[:count]
    return [
        mirror_outputs((least * reach * (steps / steps[-1]) ** power), m) for reach, power in shapes
    ]


def mirror_outputs(half: Vector, m: int) -> Vector:
    """Symmetric outputs from their positive half (m // 2,); an odd m has a 0 in the middle. Shape (m,)."""
    return np.concatenate([-half[::-1], np.zeros(m % 2), half])


def make_start_alphabets(
    m: int, epsilon: float, inputs: int, starts: int, reach: float = math.inf
) -> list[Vector]:
    """Symmetric alphabets that a search starts from: spread ones, even ones, and nearly the inputs where those fit."""
    least = smallest_reach(epsilon)
    begin = [*make_spread_starts(m, epsilon, starts), least * np.linspace(-1.001, 1.001, m)]
    if m >= inputs and (m - inputs) % 2 == 0:
        grid = np.linspace(-1.0, 1.0, inputs)
        grid[[0, -1]] = (
            -2 * least + 1,
            2 * least - 1,
        )  # as far beyond the least reach as that is beyond 1
        begin.append(np.pad(grid, (m - inputs) // 2, mode="edge"))
    return [np.clip(start, -reach, reach) for start in begin]


def draw_asymmetric_outputs(
    rng: np.random.Generator, m: int, reaches: FloatPair, inside: float
) -> Vector:
    """Random outputs (m,): outermost ones between two reaches, most near the first, inner ones uniform in ±inside."""
    near, far = reaches
    ends = near + (far - near) * rng.random(2) ** 3
    return np.concatenate([[-ends[0]], np.sort(inside * rng.uniform(-1, 1, m - 2)), [ends[1]]])


def merge_close_outputs(outputs: Vector, laws: Vector, least: float = 1e-6) -> Pair:
    """Outputs closer than `least` as one, their masses added, and unused ones left out: a search may end so.

    outputs: (m,); laws: (n, m). Returns both with fewer outputs.
    """
    used = laws.max(axis=0) > 1e-10  # what is left of a mass that should be 0
    group = np.concatenate([[0], np.cumsum(np.diff(outputs[used]) > least)])
    centre = np.bincount(group, weights=outputs[used]) / np.bincount(group)
    onto = (group[:, None] == np.arange(centre.size)).astype(float)
    return np.where(np.abs(centre) < least, 0.0, centre), laws[:, used] @ onto


def widen_outermost_outputs(outputs: Vector, problem: LawProblem, epsilon: float) -> Vector:
    """Outputs whose outermost are beyond the least reach, by 4e-6 of what it has beyond 1: that itself, where a law is
    tight at every link, leaves a proof no room."""
    least, wider = 1 + (1 + 4e-6) * problem.compute_reach_excess(epsilon), outputs.copy()
    wider[[0, -1]] = min(outputs[0], -least), max(outputs[-1], least)
    return wider


def _descend(value: Callable[[Vector], _Reached], z: Vector, bounds: Pair, iterations: int) -> None:
    """Minimise a function of outputs by SciPy's SLSQP. `value` keeps the best point that it is asked for.

    Args:
        value: the function and its slope at z.
        z: where the descent starts (k,).
        bounds: the least and the largest z, (k,) each.
        iterations: the largest number of iterations.
    """
    from scipy.optimize import Bounds, minimize  # slow to import
    from threadpoolctl import threadpool_limits

    least = math.inf
    lowest_values: list[float] = []

    def tracked(point: Vector) -> _Reached:
        nonlocal least
        reached = value(point)
        least = min(least, reached[0])
        return reached

    def stop(intermediate_result: OptimizeResult) -> None:
        lowest_values.append(least)
        if len(lowest_values) > _WINDOW and not least < lowest_values[-_WINDOW - 1] * (1 - _STALL):
            raise StopIteration

    with threadpool_limits(
        1, "blas"
    ):  # The matrices are so small that threads would wait for each other.
        minimize(
            tracked,
            z,
            jac=True,
            bounds=Bounds(*bounds),
            method="SLSQP",
            callback=stop,
            options={"maxiter": iterations, "ftol": _TOLERANCE},
        )


@dataclass(frozen=True)
class _Coordinates:
    """What a descent moves. Outermost outputs: z in r + (r - 1) e^z, `excess` = r - 1; others as they are.

    symmetric: z is the positive half (m // 2,), its last the outermost; else all (m,), first and last outermost.
    """

    m: int
    symmetric: bool
    excess: float
    limit: float

    @property
    def outermost(self) -> list[int]:
        """Which z are excesses."""
        return [-1] if self.symmetric else [0, -1]

    @cached_property
    def bounds(self) -> Pair:
        """The least and the largest z."""
        far = math.floor(self.limit / _UNIT) * _UNIT
        high = np.full(self.m // 2 if self.symmetric else self.m, far)
        low = -high
        low[self.outermost] = _NEAREST
        high[self.outermost] = max(_NEAREST, round(self._excess(self.limit) / _GRID) * _GRID)
        return low, high

    def _excess(self, output: float) -> float:
        over = (abs(output) - (1 + self.excess)) / self.excess
        return max(_NEAREST, math.log(over)) if over > 0 else _NEAREST

    def of(self, outputs: Vector) -> Vector:
        """z of outputs, brought within the bounds."""
        z = np.clip(
            outputs[self.m - self.m // 2 :] if self.symmetric else outputs, -self.limit, self.limit
        )
        for k in self.outermost:
            z[k] = self._excess(z[k])
        return self.snapped(z)

    def snapped(self, z: Vector) -> Vector:
        """z on the grid, within the bounds."""
        grid = np.full(z.size, _UNIT)
        grid[self.outermost] = _GRID
        return np.asarray(np.clip(np.round(z / grid) * grid, *self.bounds))

    def outputs(self, z: Vector) -> tuple[Vector, Positions, Vector]:
        """The outputs at a snapped z (m,), the order of z in their (half), and |output|'s slope in z."""
        size, slope = np.array(z), np.ones(z.size)
        for k in self.outermost:
            over = self.excess * _exponential(float(z[k]))
            size[k] = min(1 + self.excess + over, self.limit)
            slope[k] = over if size[k] < self.limit else 0.0
        if self.symmetric:
            slope, size = np.where(size < 0, -slope, slope), np.abs(size)
        else:
            size[0], slope[0] = -size[0], -slope[0]
        order = np.argsort(size, kind="stable")
        return mirror_outputs(size[order], self.m) if self.symmetric else size[order], order, slope


def _exponential(z: float) -> float:
    """e^z, correctly rounded: the same on every machine."""
    with localcontext(prec=40):
        return float(Decimal(z).exp())


def orient_outputs(outputs: Vector) -> Vector:
    """Outputs or their mirror image: the one with the larger sum, to 1e-6."""
    return -outputs[::-1] if round(math.fsum(outputs), 6) < 0 else outputs


def search_best_outputs(
    problem: LawProblem,
    epsilon: float,
    starts: Iterable[Vector],
    *,
    symmetric: bool = True,
    limit: float = math.inf,
    rounds: int = 3,
    iterations: int = 60,
    progress: Progress = ignore_progress,
) -> LocalOptimum | None:
    """The best outputs from several starts, of equal values (nine digits) the first one's; None when none is feasible.

    starts: outputs (m,), symmetric ones when symmetric. limit: the largest output allowed in size, 40 times the
    least feasible reach by default. rounds: descents from one start; iterations: of each. Of several starts each has
    one short descent, and the best two go on to the end.
    """
    excess, half = problem.compute_reach_excess(epsilon), problem.outputs // 2
    space = _Coordinates(
        problem.outputs, symmetric, excess, 40 * (1 + excess) if math.isinf(limit) else limit
    )
    seen: list[
        _Reached
    ] = []  # The best point of a descent. The point at which SLSQP ends may be worse.

    def value(point: Vector) -> _Reached:
        z = space.snapped(point)
        outputs, order, moves = space.outputs(z)
        answer, slope = problem.find_optimum(epsilon, outputs), np.zeros_like(z)
        if answer is None or not answer.slopes.size:
            return INFEASIBLE_VALUE, slope
        if not seen or answer.value < seen[0][0]:
            seen[:] = [(answer.value, z)]
        each = answer.slopes
        if symmetric:  # the mirror image moves against it
            each = each[outputs.size - half :] - each[:half][::-1]
        slope[order] = each
        return answer.value, slope * moves

    def descend(z: Vector, rounds: int, iterations: int) -> _Reached:
        seen.clear()
        reached = INFEASIBLE_VALUE
        for _ in range(rounds):
            _descend(value, z, space.bounds, iterations)
            if not seen or not seen[0][0] < reached * (1 - _STALL):
                break
            reached, z = seen[0]
        return seen[0] if seen else (INFEASIBLE_VALUE, z)

    begin = [space.of(np.asarray(start, dtype=float)) for start in starts]
    several = len(begin) > 1
    results = []
    for k, z in enumerate(begin):
        results.append(descend(z, 1, _FIRST) if several else descend(z, rounds, iterations))
        progress(f"start {k + 1}: {results[-1][0]:.6f}")
    lead = sorted(range(len(results)), key=lambda k: results[k][0])
    for k in lead[:2] if several else []:
        results[k] = descend(results[k][1], rounds, iterations)
    best = min(
        results, key=lambda pair: float(f"{pair[0]:.9g}"), default=(INFEASIBLE_VALUE, np.zeros(0))
    )
    if best[0] >= INFEASIBLE_VALUE:
        return None
    return LocalOptimum(space.outputs(best[1])[0], best[0], tuple(value for value, _ in results))
