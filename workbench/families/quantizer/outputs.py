"""Optimised outputs: the best bins (or MVU's alphabet) for a law problem, by the duals of its LP, from several starts.

V(B) = the LP's optimum at outputs B is piecewise smooth and not convex. Its slope comes with every solve, so each
start is a quasi-Newton descent of hot re-solves, repeated from where it stalls; the best of all starts is kept. A local
optimum is a known trap (m = 4, n_in = 4, ε = 1.5: a gradient method stops at 1.802, 1.6198 exists), so starts spread
over how far and how evenly outputs reach, and neighbours of the winner are tried again.

The path of a descent is sensitive to rounding: at kinks of V, to which of several duals the solver returns. So that it
ends at the same outputs on every machine, V is asked at multiples of 2^-30 c alone, in numbers that are the same
everywhere (models.quantizer.odds_of, correctly rounded quadrature nodes, sums in a fixed order): what linear algebra
and elementary functions round differently from machine to machine never reaches the solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.quantizer import smallest_reach
from workbench.families.quantizer.laws import LawProblem

__all__ = ["Found", "best_outputs", "spread_starts"]

Vector = NDArray[np.float64]
Progress = Callable[[str], None]

_GRID = 2.0**-30  # of c, where outputs are
INFEASIBLE = 1e6  # the value of outputs at which no law is private and unbiased


@dataclass(frozen=True)
class Found:
    """outputs: the best found, sorted (m,); value: of the LP there; starts: (value after descent) of every start."""

    outputs: Vector
    value: float
    starts: tuple[float, ...]
    solves: int


def spread_starts(m: int, epsilon: float, c: float, count: int) -> list[Vector]:
    """Positive halves of symmetric outputs (m // 2,): reaches 1.02 .. 2.2 times the least, spaced by powers."""
    reach, half = smallest_reach(epsilon, c), m // 2
    found = []
    for factor, power in ((1.3, 1.0), (1.05, 0.7), (1.7, 1.3), (1.02, 2.0), (2.2, 1.0), (1.15, 0.3), (1.4, 2.5))[
        :count
    ]:
        k = (np.arange(half) + (1.0 if m % 2 else 0.6)) / (half - 1 + (1.0 if m % 2 else 0.6))
        found.append(np.asarray(reach * factor * k**power, dtype=np.float64))
    return found


def mirrored(half: Vector, m: int) -> Vector:
    """Symmetric outputs from their positive half (m // 2,); an odd m has a 0 in the middle. Shape (m,)."""
    middle = np.zeros(m % 2)
    return np.concatenate([-half[::-1], middle, half])


def _dot(a: Vector, b: Vector) -> float:
    return math.fsum(a * b)  # rounded once, whatever the machine's sums are


def _bfgs(value: Callable[[Vector], tuple[float, Vector]], z: Vector, top: float, iterations: int) -> None:
    """Descend from z within [-top, top]: BFGS, which serves for V's kinks, with a weak Wolfe search by bisection
    (Lewis and Overton 2013); entries at a bound that want to leave are held. `value` keeps the best point.
    """
    here, slope = value(z)
    inverse: NDArray[np.float64] | None = None
    for _ in range(iterations):
        free = (np.abs(z) < top) | (slope * z > 0)
        held = np.where(free, slope, 0.0)
        size = math.sqrt(_dot(held, held))
        if size < 1e-9:
            return
        way = -held / max(size, 1.0) if inverse is None else -np.array([_dot(row, held) for row in inverse]) * free
        low, high, step = 0.0, math.inf, 1.0
        for _ in range(25):
            trial = np.clip(z + step * way, -top, top)
            there, steeper = value(trial)
            moved = trial - z
            fall = _dot(slope, moved)
            if there > here + 1e-4 * fall:
                high = step
            elif _dot(steeper, moved) < 0.9 * fall:
                low = step
            else:
                break
            step = 2 * step if high == math.inf else (low + high) / 2
        if not there < here - 1e-12 * abs(here):
            return
        bend = np.where(free, steeper - slope, 0.0)
        z, here, slope, moved = trial, there, steeper, np.where(free, moved, 0.0)
        curvature = _dot(moved, bend)
        if curvature <= 0:
            continue
        if inverse is None:
            inverse = np.eye(z.size) * curvature / _dot(bend, bend)
        turned = np.array([_dot(row, bend) for row in inverse])
        both = np.outer(turned, moved) / curvature
        grown = (1 + _dot(bend, turned) / curvature) / curvature
        inverse = inverse - both - both.T + grown * np.outer(moved, moved)


def best_outputs(
    problem: LawProblem,
    epsilon: float,
    c: float,
    starts: Iterable[Vector],
    *,
    symmetric: bool = True,
    limit: float | None = None,
    rounds: int = 3,
    iterations: int = 60,
    tries: int = 0,
    progress: Progress = lambda line: None,
) -> Found:
    """The best outputs from several starts.

    starts: positive halves (m // 2,) when symmetric, else all outputs (m,). rounds: descents from one start.
    limit: the largest output allowed in size, 40 times the least feasible reach by default.
    tries: perturbed restarts from the best. Raises ValueError when no start is feasible.
    """
    m = problem.outputs
    reach = smallest_reach(epsilon, c) if problem.model.relation == "all" else c
    before = problem.solves
    unit = _GRID * 2.0 ** math.frexp(c)[1]
    top = 40 * max(reach, c) if limit is None else limit
    highest = math.floor(top / unit)

    def snapped(z: Vector) -> Vector:
        return np.asarray(np.clip(np.round(z / unit), -highest, highest) * unit)

    def full(z: Vector) -> Vector:
        if not symmetric:
            return np.sort(z)
        return mirrored(np.sort(np.abs(z)), m)

    seen: list[tuple[float, Vector]] = []  # the best point of a descent: what an aborted line search returns may not be

    def value(point: Vector) -> tuple[float, Vector]:
        z = snapped(point)
        order = np.argsort(np.abs(z) if symmetric else z, kind="stable")
        answer = problem.answer(epsilon, full(z))
        if answer is None:
            return INFEASIBLE, np.zeros_like(z)
        if not seen or answer.value < seen[0][0]:
            seen[:] = [(answer.value, z)]
        if not symmetric:
            slope = np.zeros_like(z)
            slope[order] = answer.slope
            return answer.value, slope
        slope = np.zeros_like(z)
        slope[order] = answer.slope[m - m // 2 :] - answer.slope[: m // 2][::-1]  # the mirror image moves against it
        return answer.value, slope * np.where(z < 0, -1.0, 1.0)

    def descend(z: Vector) -> tuple[float, Vector]:
        seen.clear()
        reached = INFEASIBLE
        for _ in range(rounds):
            _bfgs(value, z, highest * unit, iterations)
            if not seen or not seen[0][0] < reached - 1e-9:
                break
            reached, z = seen[0]
        return seen[0] if seen else (INFEASIBLE, z)

    results = []
    for k, start in enumerate(starts):
        results.append(descend(snapped(np.asarray(start, dtype=float))))
        progress(f"start {k + 1}: {results[-1][0]:.6f}")
    best = min(results, key=lambda pair: pair[0])
    if best[0] >= INFEASIBLE:
        raise ValueError("no start is feasible")
    rng = np.random.default_rng(0)
    for _ in range(tries):
        again = descend(snapped(best[1] * np.exp(rng.normal(0, 0.15, best[1].size))))
        results.append(again)
        if again[0] < best[0]:
            best = again
    return Found(full(best[1]), best[0], tuple(r[0] for r in results), problem.solves - before)
