"""Compute optimal ε-private channels in closed form, for two relations of neighbours.

The functions compute the smallest expected (or worst-case) loss of an ε-DP channel between finitely
many inputs, and a channel that attains it. Either consecutive inputs are neighbours, as for a
count, or all pairs of inputs are.

Notation. y is an input, o an output, p the prior of the inputs, ℓ(y,o) the loss, M the channel
matrix (inputs x outputs), a = e^-ε, and k the number of inputs.

Consecutive inputs are neighbours. G is geometric noise clamped to 0..n:

    G[y,z] = (1-a)/(1+a) a^|y-z|,  a^|y-z|/(1+a) at the ends z = 0, n

If the losses never fall as the output moves away from the input, an optimal channel is G followed
by a map T from each z to an output (post-processing). The smallest loss over all channels M is then

    a prior p      Σ_z min_o Σ_y p_y G[y,z] ℓ(y,o)
                                                    (Ghosh, Roughgarden, Sundararajan 2009)
    worst case     min_T max_y Σ_{z,o} G[y,z] T[z,o] ℓ(y,o), T stochastic
                                                    (Gupte, Sundararajan 2010)

For other losses the two formulas still give upper bounds on the optimum.

All pairs of inputs are neighbours. Every column of such a channel is a mixture of staircase
columns, whose entries are all 1 or e^ε, because the cone max_y m_y <= e^ε min_y m_y has no other
extreme rays. With the best output for each staircase column, the smallest loss is

    min Σ_S θ_S min_o Σ_y p_y S_y ℓ(y,o)   s.t.  Σ_S θ_S S_y = 1 for every y,  θ >= 0

over the 2^k - 1 staircase columns S with weights θ_S (Kairouz, Oh, Viswanath 2016). If the loss is
the error rate and the inputs are among the outputs, the optimum is
1 - max_j e^ε/(e^ε + j - 1) Σ of the j largest p (Ghazi et al. 2021, Theorem 3: RRTop-j).

| paper (Ghosh et al.)        | here                                |
|-----------------------------|-------------------------------------|
| α, G                        | a, `geometric_channel`              |
| deterministic remap T       | remap (k,)                          |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from workbench.solvers.arrays import Positions, Vector

MAX_EXTREMAL_INPUTS = 10  # `extremal_value` lists all staircases of at most this many inputs.


@dataclass(frozen=True, eq=False)
class CountOptimum:
    """The best post-processing of geometric noise.

    Attributes:
        value: expected loss, the sum of `row_duals`.
        channel: the optimal channel, shape (k, m).
        row_duals: dual values λ of the constraints "row y sums to 1", shape (k,). They sum to
            `value` and solve λ'G = min_o Σ_y p_y G[y,·] ℓ(y,o). If the losses never fall as
            the output moves away from the input, they are those of the program over all channels.
    """

    value: float
    channel: Vector
    row_duals: Vector


def geometric_channel(k: int, epsilon: float) -> Vector:
    """Compute clamped geometric noise G on 0..k-1, shape (k, k).

    Args:
        k: number of inputs.
        epsilon: budget ε > 0.
    """
    a = np.exp(-epsilon)
    answers = np.arange(k)
    distances = np.abs(answers[:, None] - answers)
    masses = np.exp(-epsilon * distances) / (1 + a)
    masses[:, 1:-1] *= -np.expm1(-epsilon)
    return np.asarray(masses)


def has_growing_losses(losses: Vector, closest: Positions) -> bool:
    """Check that no row of losses falls as the output moves away from the closest one.

    Args:
        losses: loss ℓ(y,o) of each input and output, shape (k, m).
        closest: closest output of each input, shape (k,).
    """
    steps = np.diff(losses, axis=1)
    step_numbers = np.arange(losses.shape[1] - 1)
    is_right_of_closest = step_numbers[None, :] >= closest[:, None]
    return bool((np.where(is_right_of_closest, steps, -steps) >= 0).all())


def post_process_geometric(losses: Vector, prior: Vector, epsilon: float) -> CountOptimum:
    """Compute the post-processing of geometric noise with the smallest expected loss.

    Args:
        losses: loss ℓ(y,o) of each input and output, shape (k, m), k >= 2.
        prior: probabilities of the inputs, which sum to 1, shape (k,).
        epsilon: budget ε > 0.
    """
    k, m = losses.shape
    G = geometric_channel(k, epsilon)
    expected_losses = G.T @ (prior[:, None] * losses)  # The shape is (noisy answers, outputs).
    remap = expected_losses.argmin(axis=1)
    least_losses = expected_losses[np.arange(k), remap]
    channel = np.zeros((k, m))
    for z, o in enumerate(remap.tolist()):
        channel[:, o] += G[:, z]
    row_duals = np.linalg.solve(G.T, least_losses)
    return CountOptimum(float(least_losses.sum()), channel, row_duals)


def minimax_value(losses: Vector, epsilon: float) -> float:
    """Compute the smallest worst-case loss of post-processed geometric noise.

    Args:
        losses: loss ℓ(y,o) of each input and output, shape (k, m), with k m up to about 4000.
        epsilon: budget ε > 0.
    """
    k, m = losses.shape
    table = np.einsum("yz,yo->yzo", geometric_channel(k, epsilon), losses)
    # The variables are T[z,o], row by row, and then the largest loss.
    loss_rows = np.hstack([table.reshape(k, k * m), -np.ones((k, 1))])
    costs = np.r_[np.zeros(k * m), 1.0]
    row_sums = sp.kron(sp.eye_array(k), np.ones((1, m)))
    equations = sp.hstack([row_sums, sp.csr_array((k, 1))])
    return _solve_lp(costs, A_ub=loss_rows, b_ub=np.zeros(k), A_eq=equations, b_eq=np.ones(k))


def extremal_value(losses: Vector, prior: Vector, epsilon: float) -> float:
    """Compute the smallest expected loss if all pairs of inputs are neighbours.

    Args:
        losses: loss ℓ(y,o) of each input and output, shape (k, m), k <= MAX_EXTREMAL_INPUTS.
        prior: probabilities of the inputs, which sum to 1, shape (k,).
        epsilon: budget ε > 0.
    """
    k = len(losses)
    # These are all 2^k - 1 staircases with a high entry. The staircase with all entries low is a
    # multiple of the one with all entries high.
    is_high = (np.arange(1, 1 << k)[:, None] >> np.arange(k)) & 1
    staircases = np.where(is_high, math.exp(epsilon), 1.0)
    costs = (staircases @ (prior[:, None] * losses)).min(axis=1)
    return _solve_lp(costs, A_eq=staircases.T, b_eq=np.ones(k))


def randomized_response_error(prior: Vector, epsilon: float) -> float:
    """Compute the smallest error rate if all pairs of inputs are neighbours: that of RRTop-j.

    Args:
        prior: probabilities of the inputs, which sum to 1, shape (k,).
        epsilon: budget ε > 0.
    """
    top_sums = np.cumsum(np.sort(prior)[::-1])
    correct_rates = top_sums / (1 + np.arange(prior.size) * math.exp(-epsilon))
    return float(1 - correct_rates.max())


def _solve_lp(costs: Vector, **rows: Any) -> float:
    """Return the optimum of min costs'x over x >= 0 and the rows. Raises ValueError."""
    from scipy.optimize import linprog

    optimum = linprog(costs, **rows, method="highs")
    if not optimum.success:
        raise ValueError(f"the program ended with {optimum.message}")
    return float(optimum.fun or 0.0)
