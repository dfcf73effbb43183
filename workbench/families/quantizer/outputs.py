"""Optimised outputs: the best bins (or MVU's alphabet) for a law problem, by the duals of its LP, from several starts.

V(B) = the LP's optimum at outputs B is piecewise smooth and not convex. Its slope comes with every solve, so each
start is a quasi-Newton descent (L-BFGS-B) of hot re-solves, repeated from where it stalls; the best of all starts is
kept. A local optimum is a known trap (m = 4, n_in = 4, ε = 1.5: a gradient method stops at 1.802, 1.6362 exists), so
starts spread over how far and how evenly outputs reach, and neighbours of the winner are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from models.quantizer import smallest_reach
from workbench.families.quantizer.laws import LawProblem

__all__ = ["Found", "best_outputs", "spread_starts"]

Vector = NDArray[np.float64]
Progress = Callable[[str], None]

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

    def full(z: Vector) -> Vector:
        if not symmetric:
            return np.sort(z)
        return mirrored(np.sort(np.abs(z)), m)

    seen: list[tuple[float, Vector]] = []  # the best point of a descent: what an aborted line search returns may not be

    def value(z: Vector) -> tuple[float, Vector]:
        order = np.argsort(np.abs(z)) if symmetric else np.argsort(z)
        answer = problem.answer(epsilon, full(z))
        if answer is None:
            return INFEASIBLE, np.zeros_like(z)
        if not seen or answer.value < seen[0][0]:
            seen[:] = [(answer.value, z.copy())]
        if not symmetric:
            slope = np.zeros_like(z)
            slope[order] = answer.slope
            return answer.value, slope
        slope = np.zeros_like(z)
        slope[order] = answer.slope[m - m // 2 :] - answer.slope[: m // 2][::-1]  # the mirror image moves against it
        return answer.value, slope * np.where(z < 0, -1.0, 1.0)

    top = 40 * max(reach, c) if limit is None else limit

    def descend(z: Vector) -> tuple[float, Vector]:
        seen.clear()
        reached = INFEASIBLE
        for _ in range(rounds):
            bounds = [(-top, top)] * z.size
            minimize(value, z, jac=True, method="L-BFGS-B", bounds=bounds,
                     options={"maxiter": iterations, "ftol": 1e-12, "gtol": 1e-9})  # fmt: skip
            if not seen or not seen[0][0] < reached - 1e-9:
                break
            reached, z = seen[0]
        return seen[0] if seen else (INFEASIBLE, z)

    results = []
    for k, start in enumerate(starts):
        results.append(descend(np.asarray(start, dtype=float)))
        progress(f"start {k + 1}: {results[-1][0]:.6f}")
    best = min(results, key=lambda pair: pair[0])
    if best[0] >= INFEASIBLE:
        raise ValueError("no start is feasible")
    rng = np.random.default_rng(0)
    for _ in range(tries):
        again = descend(np.clip(best[1] * np.exp(rng.normal(0, 0.15, best[1].size)), -top, top))
        results.append(again)
        if again[0] < best[0]:
            best = again
    return Found(full(best[1]), best[0], tuple(r[0] for r in results), problem.solves - before)
