"""Channels of pure ε between finitely many inputs: those whose neighbours stand in a row, and those where all are.

Count queries: geometric noise, clamped to 0..n, followed by the best post-processing.

    G[y,z] = (1-a)/(1+a) a^|y-z|,  a^|y-z|/(1+a) at the ends z = 0, n;  a = e^-ε

For pure ε, inputs in a row of which those that follow each other are neighbours, and losses that never fall as the
output moves away from the input,

    a prior p      min_M = Σ_z min_o Σ_y p_y G[y,z] ℓ(y,o)                 (Ghosh, Roughgarden, Sundararajan 2009)
    worst case     min_T max_y Σ_{z,o} G[y,z] T[z,o] ℓ(y,o), T stochastic        (Gupte, Sundararajan 2010)

For any losses both are upper bounds.

Every two inputs neighbours: every column of such a channel is a mixture of staircase columns, those with entries in
{1, e^ε} only (the cone max_y m_y <= e^ε min_y m_y has no other extreme rays), so with the best output for each of them

    min_M = min Σ_S θ_S min_o Σ_y p_y S_y ℓ(y,o)   s.t.  Σ_S θ_S S_y = 1 for every y,  θ >= 0

over the 2^k - 1 staircases S (Kairouz, Oh, Viswanath 2016). For the error rate with the inputs among the outputs it is
1 - max_j e^ε/(e^ε + j - 1) Σ of the j largest p (Ghazi et al. 2021, Theorem 3: RRTop-j).

| paper (Ghosh et al.)        | here                                |
|-----------------------------|-------------------------------------|
| α, G                        | a, `geometric`                      |
| deterministic remap T       | remap (k,)                          |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from workbench.solvers.arrays import Positions, Vector

MAX_EXTREMAL_INPUTS = 10  # of `extremal_value`


@dataclass(frozen=True, eq=False)
class CountOptimum:
    """value: the loss; channel: (k, m); share: λ (k,), dual to the rows of
    the channel: λ'G = min_o Σ_y p_y G[y,·] ℓ(y,o), so that Σ λ = value."""

    value: float
    channel: Vector
    label_shares: Vector


def geometric_channel(k: int, epsilon: float) -> Vector:
    """G on 0..k-1. Shape (k, k)."""
    a = np.exp(-epsilon)
    at = np.arange(k)
    masses = np.exp(-epsilon * np.abs(at[:, None] - at)) / (1 + a)
    masses[:, 1:-1] *= -np.expm1(-epsilon)
    return np.asarray(masses)


def has_growing_losses(losses: Vector, closest: Positions) -> bool:
    """Whether every row of losses (k, m) never falls as the output moves away from `closest` (k,)."""
    steps, at = np.diff(losses, axis=1), np.arange(losses.shape[1] - 1)
    return bool((np.where(at[None, :] >= closest[:, None], steps, -steps) >= 0).all())


def post_process_geometric(losses: Vector, prior: Vector, epsilon: float) -> CountOptimum:
    """The best post-processing of geometric noise. losses: (k, m), k >= 2."""
    k, m = losses.shape
    G = geometric_channel(k, epsilon)
    losses = G.T @ (prior[:, None] * losses)  # (z, o)
    remap = losses.argmin(axis=1)
    least = losses[np.arange(k), remap]
    channel = np.zeros((k, m))
    for z, o in enumerate(remap.tolist()):
        channel[:, o] += G[:, z]
    return CountOptimum(float(least.sum()), channel, np.linalg.solve(G.T, least))


def minimax_value(losses: Vector, epsilon: float) -> float:
    """The least worst-case loss of any post-processing. losses: (k, m) with k m <= 4000 or so."""
    k, m = losses.shape
    rows = np.einsum("yz,yo->yzo", geometric_channel(k, epsilon), losses).reshape(k, k * m)
    loss = np.r_[np.zeros(k * m), 1.0]
    above = np.hstack([rows, -np.ones((k, 1))])
    whole = sp.hstack([sp.kron(sp.eye_array(k), np.ones((1, m))), sp.csr_array((k, 1))])
    return _least(loss, A_ub=above, b_ub=np.zeros(k), A_eq=whole, b_eq=np.ones(k))


def extremal_value(losses: Vector, prior: Vector, epsilon: float) -> float:
    """The least expected loss. losses: (k, m) with k <= MOST_INPUTS."""
    k = len(losses)
    high = (np.arange(1, 1 << k)[:, None] >> np.arange(k)) & 1
    stairs = np.where(high, math.exp(epsilon), 1.0)  # all of them high is as good as all low
    losses = (stairs @ (prior[:, None] * losses)).min(axis=1)
    return _least(losses, A_eq=stairs.T, b_eq=np.ones(k))


def randomized_response_error(prior: Vector, epsilon: float) -> float:
    """The least error rate over all outputs."""
    likely = np.cumsum(np.sort(prior)[::-1])
    return float(1 - (likely / (1 + np.arange(prior.size) * math.exp(-epsilon))).max())


def _least(loss: Vector, **rows: Any) -> float:
    """The optimum of min loss'x over x >= 0 and the rows. Raises ValueError."""
    from scipy.optimize import linprog

    optimum = linprog(loss, **rows, method="highs")
    if not optimum.success:
        raise ValueError(f"the program ended with {optimum.message}")
    return float(optimum.fun or 0.0)
