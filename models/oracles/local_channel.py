"""Every two inputs neighbours, pure ε: extremal channels, and randomized response for being right most often.

Every column of such a channel is a mixture of staircase columns, those with entries in {1, e^ε} only (the cone
max_y m_y <= e^ε min_y m_y has no other extreme rays), so with the best output for each of them

    min_M = min Σ_S θ_S min_o Σ_y p_y S_y ℓ(y,o)   s.t.  Σ_S θ_S S_y = 1 for every y,  θ >= 0

over the 2^k - 1 staircases S (Kairouz, Oh, Viswanath 2016). For the error rate with the inputs among the outputs it is
1 - max_j e^ε/(e^ε + j - 1) Σ of the j largest p (Ghazi et al. 2021, Theorem 3: RRTop-j).
"""

from __future__ import annotations

import math

import numpy as np

from solvers.arrays import Vector

__all__ = ["MOST_INPUTS", "extremal_value", "right_most_often"]


MOST_INPUTS = 10


def extremal_value(losses: Vector, prior: Vector, epsilon: float) -> float:
    """The least expected loss. losses: (k, m) with k <= MOST_INPUTS. Raises ValueError."""
    from scipy.optimize import linprog

    k = len(losses)
    if k > MOST_INPUTS:
        raise ValueError(f"losses must have at most {MOST_INPUTS} rows. Got {k}.")
    high = (np.arange(1, 1 << k)[:, None] >> np.arange(k)) & 1
    stairs = np.where(high, math.exp(epsilon), 1.0)  # all of them high is as good as all low
    losses = (stairs @ (prior[:, None] * losses)).min(axis=1)
    optimum = linprog(losses, A_eq=stairs.T, b_eq=np.ones(k), method="highs")
    if not optimum.success:
        raise ValueError(f"the extremal program ended with {optimum.message}")
    return float(optimum.fun or 0.0)


def right_most_often(prior: Vector, epsilon: float) -> float:
    """The least error rate over all outputs."""
    likely = np.cumsum(np.sort(prior)[::-1])
    others = np.arange(prior.size) * math.exp(-epsilon)
    return float(1 - (likely / (1 + others)).max())
