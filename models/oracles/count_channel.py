"""Count queries: geometric noise, clamped to 0..n, followed by the best post-processing.

    G[y,z] = (1-a)/(1+a) a^|y-z|,  a^|y-z|/(1+a) at the ends z = 0, n;  a = e^-ε

For pure ε, inputs in a row of which those that follow each other are neighbours, and losses that never fall as the
output moves away from the input,

    a prior p      min_M = Σ_z min_o Σ_y p_y G[y,z] ℓ(y,o)                 (Ghosh, Roughgarden, Sundararajan 2009)
    worst case     min_T max_y Σ_{z,o} G[y,z] T[z,o] ℓ(y,o), T stochastic        (Gupte, Sundararajan 2010)

For any losses both are upper bounds.

| paper (Ghosh et al.)        | here                                |
|-----------------------------|-------------------------------------|
| α, G                        | a, `geometric`                      |
| deterministic remap T       | `CountOptimum.remap` (k,)           |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.arrays import Positions, Vector

__all__ = ["CountOptimum", "geometric", "grows", "minimax_value", "post_processed"]


@dataclass(frozen=True, eq=False)
class CountOptimum:
    """value: the loss; remap: (k,) output of every noisy answer; channel: (k, m); share: λ (k,), dual to the rows of
    the channel: λ'G = min_o Σ_y p_y G[y,·] ℓ(y,o), so that Σ λ = value."""

    value: float
    remap: Positions
    channel: Vector
    share: Vector


def geometric(k: int, epsilon: float) -> Vector:
    """G on 0..k-1. Shape (k, k)."""
    a = np.exp(-epsilon)
    at = np.arange(k)
    masses = np.exp(-epsilon * np.abs(at[:, None] - at)) / (1 + a)
    masses[:, 1:-1] *= -np.expm1(-epsilon)
    return np.asarray(masses)


def grows(losses: Vector, closest: Positions) -> bool:
    """Whether every row of losses (k, m) never falls as the output moves away from `closest` (k,)."""
    steps, at = np.diff(losses, axis=1), np.arange(losses.shape[1] - 1)
    right = at[None, :] >= closest[:, None]
    return bool((np.where(right, steps, -steps) >= 0).all())


def post_processed(losses: Vector, prior: Vector, epsilon: float) -> CountOptimum:
    """The best post-processing of geometric noise. losses: (k, m), k >= 2."""
    k, m = losses.shape
    G = geometric(k, epsilon)
    losses = G.T @ (prior[:, None] * losses)  # (z, o)
    remap = losses.argmin(axis=1)
    least = losses[np.arange(k), remap]
    channel = np.zeros((k, m))
    for z, o in enumerate(remap.tolist()):
        channel[:, o] += G[:, z]
    return CountOptimum(float(least.sum()), remap, channel, np.linalg.solve(G.T, least))


def minimax_value(losses: Vector, epsilon: float) -> float:
    """The least worst-case loss of any post-processing. losses: (k, m) with k m <= 4000 or so."""
    from scipy.optimize import linprog

    k, m = losses.shape
    G = geometric(k, epsilon)
    rows = np.einsum("yz,yo->yzo", G, losses).reshape(k, k * m)
    loss = np.r_[np.zeros(k * m), 1.0]
    above = np.hstack([rows, -np.ones((k, 1))])
    whole = sp.hstack([sp.kron(sp.eye_array(k), np.ones((1, m))), sp.csr_array((k, 1))])
    equal: Any = whole  # SciPy's stubs know no sparse matrices here
    optimum = linprog(loss, A_ub=above, b_ub=np.zeros(k), A_eq=equal, b_eq=np.ones(k), method="highs")
    if not optimum.success:
        raise ValueError(f"the post-processing program ended with {optimum.message}")
    return float(optimum.fun or 0.0)
