"""Noise for few runs: the best next round, as a linear program, taken until it is the round before.

Where T - 1 runs of noise g have the privacy loss A, one more run of f makes the whole private to

    δ(f; g) = E_A H_{ε - A}(f) = Σ_a Pr[A = a] Σ_k max(0, f(k) - e^{ε - a} f(k+1)),    δ(g; g) = δ_T(g)

where A = ∞ counts whole: convex in f, piecewise linear where A has few values. To first order, of f near g,
δ_T(f) = δ_T(g) + T (δ(f; g) - δ_T(g)). So a step is

    minimise  Σ c(|k|) f(k)    subject to    δ(f; g) <= δ_T(g) + (δ - δ_T(g)) / T

From geometric noise of losses ε/T, whose runs have T + 1 sums, the steps end after three or so, where δ pays for the
tail alone: losses of ε/T, which T times make ε, then of 3ε/T and more. There sums sit on kinks of δ_T, where methods
that follow gradients stall. What comes out is about feasible, and stationary at best: the caller compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Pair, Positions, Vector
from solvers.backend import backend
from solvers.canonical import compile
from solvers.errors import SolverError

if TYPE_CHECKING:
    import cvxpy as cp

_CELLS = 6000  # values of A times outcomes, above which a step is not taken
_STEPS = 8
_FINE, _COARSE = 4096, 64  # cells of ε/T, centred on its multiples, in which sums of losses and values of A are merged
_LIGHT = 1e-13  # of mass, about what a solver tells apart


class NextRound:
    """The linear program of the module's docstring.

    noise: g(0..K), zero beyond; runs: T >= 2; loss: of the distances 0..K, vectorised; delta: δ_T(g).
    """

    def __init__(self, noise: Vector, runs: int, epsilon: float, loss: Callable[[Vector], Vector]) -> None:
        self.size, self.runs, self.epsilon, self.loss = noise.size, runs, epsilon, loss
        share = epsilon / runs
        p = np.concatenate([noise[:0:-1], noise])
        q = np.append(p[1:], 0.0)
        both = (p > _LIGHT) & (q > _LIGHT)
        single = np.log(p[both] / q[both]), p[both]
        before, whole = single, single
        for _ in range(runs - 1):
            before, whole = whole, _merged(*_sums(whole, single), share / _FINE)
        self.sums, self.weights = _merged(*before, share / _COARSE) if runs > 2 else _merged(*single, share / _COARSE)
        broken = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - whole[0])))
        self.delta = float(whole[1] @ broken) + 1 - float(whole[1].sum())

    def problem(self, delta: float) -> cp.Problem:
        """The program in CVXPY."""
        import cvxpy as cp

        size = self.size
        f = cp.Variable(size, name="f", nonneg=True)
        at = np.arange(-size, size)
        here, there = (_window(np.abs(k), size) @ f for k in (at, at + 1))
        y = cp.Variable(self.sums.size * at.size, name="y", nonneg=True)  # of every value of A, every outcome
        symmetric = np.concatenate([[1.0], np.full(size - 1, 2.0)])
        rows: list[cp.Constraint] = [symmetric @ f == 1]
        for j, factor in enumerate(np.exp(self.epsilon - self.sums)):
            rows.append(y[j * at.size : (j + 1) * at.size] >= here - factor * there)
        infinite = 1 - float(self.weights.sum())
        rows.append(np.repeat(self.weights, at.size) @ y <= self.delta + (delta - self.delta) / self.runs - infinite)
        return cp.Problem(cp.Minimize((symmetric * self.loss(np.arange(size, dtype=float))) @ f), rows)


def stationary_losses(
    runs: int, epsilon: float, delta: float, loss: Callable[[Vector], Vector], stop: Callable[[], bool]
) -> Vector | None:
    """l_0..l_K of the noise where the steps end, about feasible; None where the first is too large or fails.

    stop: asked before each step whether to end there.
    """
    share = epsilon / runs
    size = math.ceil(math.log(10 * runs / delta) / share) + 8
    if 2 * size * runs > _CELLS:
        return None
    noise, value = np.exp(-share * np.arange(size)), math.inf
    noise /= 2 * noise.sum() - noise[0]
    for _ in range(_STEPS):
        step = NextRound(noise, runs, epsilon, loss)
        if stop() or 2 * size * step.sums.size > _CELLS:
            break
        try:
            with backend("highs").open(compile(step.problem(delta), f"next of {runs} runs", scale=2.0**20)) as session:
                solution = session.solve({})
        except SolverError:
            break
        if solution.objective is None:
            break
        before, value = value, solution.objective
        noise = np.maximum(solution["f"], 0.0)
        if abs(before - value) <= 1e-7 * value:
            break
    last = int(np.count_nonzero(np.minimum.accumulate(noise) > max(100 * _LIGHT, 1e-5 * delta))) - 1
    if value == math.inf or last < 1:
        return None
    losses: Vector = np.maximum(np.log(noise[:last] / noise[1 : last + 1]), share / 100)
    return losses


def _window(distances: Positions, size: int) -> sparse.csr_matrix:
    """The matrix that takes f(0..K) to f at some distances, zero beyond K."""
    inside = np.flatnonzero(distances < size)
    return sparse.csr_matrix((np.ones(inside.size), (inside, distances[inside])), shape=(distances.size, size))


def _sums(first: Pair, second: Pair) -> Pair:
    return np.add.outer(first[0], second[0]).ravel(), np.multiply.outer(first[1], second[1]).ravel()


def _merged(losses: Vector, masses: Vector, cell: float) -> Pair:
    """One loss for each cell, their mean."""
    _, index = np.unique(np.round(losses / cell).astype(np.int64), return_inverse=True)
    mass: Vector = np.bincount(index, masses).astype(float)
    moment: Vector = np.bincount(index, masses * losses).astype(float)
    heavy = mass > _LIGHT / 100
    return moment[heavy] / mass[heavy], mass[heavy]
