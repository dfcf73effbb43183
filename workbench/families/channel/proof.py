"""Compute exact lower bounds on the loss of every private channel from the dual multipliers of a
solver.

The multipliers need not be trusted: every choice proves a valid bound, and all sums are in
integers.

Notation: M[y,o] is the probability of output o for input y, and ℓ(y,o) is the loss. π is the prior,
or any distribution for the worst-case loss. E is e^ε rounded up. An ordered pair of neighbours p =
(y, y') is "from y" and "to y'".

Listed pairs. Let Σ_o max(0, M[y,o] - E M[y',o]) <= δ for every pair p. Then every u >= 0 proves

    Σ_y π_y Σ_o M[y,o] ℓ(y,o)
      >=  Σ_y min_o ( π_y ℓ(y,o) + Σ_{p from y} u[p,o] - E Σ_{p to y} u[p,o] ) - δ Σ_p max_o u[p,o]

by Lagrangian duality. For each p, Σ_o u[p,o] (M[y,o] - E M[y',o]) is at most δ max_o u[p,o]. So
adding the left-hand side to the loss and subtracting the right-hand side does not increase it. The
sum is then Σ_y Σ_o M[y,o] (...), and as a row of M is a distribution, it is at least Σ_y min_o.

All pairs, δ = 0. The ratios hold if and only if there are numbers t_o >= 0 with t_o <= M[y,o] <=
E t_o. Multipliers a, b >= 0 of these rows with Σ_y a[y,o] >= E Σ_y b[y,o] for every o prove that
the loss is at least Σ_y min_o ( π_y ℓ(y,o) - a[y,o] + b[y,o] ), in the same way.

User-defined rows A M <= c with multipliers q <= 0, or A M = c with any q, add q c to either bound
and subtract A'q from π_y ℓ(y,o) in it.

A line, δ = 0: consecutive inputs are neighbours. Numbers λ_y prove that the loss is at least Σ λ if
Σ_y M[y,o] w[y,o] >= 0 for every output o and every private M, where w[y,o] = π_y ℓ(y,o) - λ_y. The
masses of two neighbours differ at most by the factor E. So a surplus w > 0 at one input is worth at
least 1/E of it at the next input, and a deficit w < 0 becomes at most E times as large there.
`bound_loss_on_line` passes all of w to one input, and checks that no deficit is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import mul

import numpy as np

from workbench.exact.numbers import ZERO, exp_bounds
from workbench.families.channel.extra_rows import ExtraRows
from workbench.families.channel.repair import Edges, Prior
from workbench.pipeline.loss_tables import Integers, LossTable
from workbench.solvers.arrays import Vector
from workbench.solvers.data import floor_to_bits

# Multipliers are rounded down to multiples of 2^-96.
MULTIPLIER_BITS = 96
# A smaller sum of weights counts as this, so that nothing is divided by 0.
_MIN_WEIGHT_SUM = 1e-300
# Ratios e^ε are rounded up to multiples of 2^-112.
_RATIO_BITS = 112
# The ratio e^ε is rounded down to a multiple of 2^-160 in `bound_gain_of_delta`.
_GAIN_BITS = 160


def round_weights(prior: Prior, weights: Vector) -> list[int]:
    """Return the weights π of the inputs in a bound, k integers over 2^96.

    Args:
        prior: prior of the inputs, which is rounded down. None: the worst-case loss counts.
        weights: for the worst-case loss, any weights >= 0, shape (k,). They are scaled to a
            distribution.
    """
    if prior is not None:
        return [(w.numerator << MULTIPLIER_BITS) // w.denominator for w in prior]
    weights = np.maximum(weights, 0.0)
    # If all weights are 0, the last line below gives the whole mass to one input.
    distribution = weights / max(float(weights.sum()), _MIN_WEIGHT_SUM)
    shares: list[int] = floor_to_bits(distribution, MULTIPLIER_BITS).tolist()
    shares[int(np.argmax(weights))] -= sum(shares) - (1 << MULTIPLIER_BITS)
    return shares


def weigh_losses(losses: LossTable, shares: Sequence[int]) -> Integers:
    """Return π ℓ over 2^96, rounded down, shape (k, m).

    Args:
        losses: table of losses ℓ, shape (k, m).
        shares: weights π of the inputs over 2^96.
    """
    return np.asarray((losses.values * np.array(shares, dtype=object)[:, None]) // losses.unit)


def _sum_reduced_rows(
    rows: Integers, multipliers: Mapping[str, Vector], edges: Edges
) -> tuple[int, list[int]]:
    """Add the terms of the multipliers to the rows π ℓ, and return what the bound needs of them.

    Returns (sum, largest), both over 2^96: Σ_y min_o of the rows with these terms, and max_o u[p,o]
    of every pair p. The list is empty if all inputs are neighbours.
    """
    if "ratio" in multipliers:
        rows = rows.copy()
        u = floor_to_bits(multipliers["ratio"], MULTIPLIER_BITS)
        ratios = {epsilon: _round_ratio_up(epsilon) for epsilon in set(edges.epsilons)}
        for (i, j), epsilon, row in zip(edges.pairs or (), edges.epsilons, u, strict=True):
            rows[i] += row
            # E u is rounded up, so that the bound stays valid.
            rows[j] -= -((-row * ratios[epsilon]) >> _RATIO_BITS)
        return int(rows.min(axis=1).sum()), u.max(axis=1).tolist()
    # The rows t <= M are called "least", and the rows M <= E t are called "most".
    a = floor_to_bits(multipliers["least"], MULTIPLIER_BITS)
    b = floor_to_bits(multipliers["most"], MULTIPLIER_BITS)
    a_sums = a.sum(axis=0) << _RATIO_BITS
    b_sums = b.sum(axis=0) * _round_ratio_up(edges.epsilons[0])
    # b is reduced where the condition Σ_y a >= E Σ_y b is violated.
    b = np.where(b_sums > a_sums, b * a_sums // np.maximum(b_sums, 1), b)
    return int((rows - a + b).min(axis=1).sum()), []


def _round_ratio_up(epsilon: Fraction) -> int:
    """Return e^ε over 2^112, rounded up."""
    _, rounded_ratio = exp_bounds(epsilon, _RATIO_BITS)
    return rounded_ratio


def bound_least_loss(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    delta: Fraction | Sequence[Fraction],
    multipliers: Mapping[str, Vector],
    extra_rows: ExtraRows | None = None,
) -> Fraction:
    """Return a lower bound on the loss of every private channel.

    Args:
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the bound is on the worst-case loss.
        edges: ordered pairs of neighbours. A pair may occur under several ε.
        delta: δ of every edge, or one for all.
        multipliers: arrays by name: either "ratio" of shape (edges, m), which are u; or, if all
            inputs are neighbours, "least" (a) and "most" (b), both of shape (k, m). Without a
            prior also "losses" (k,), from which π is made; with extra rows also "extra" (R,).
            `workbench.models.channel.program.ChannelModel.multipliers` returns all but "extra".
        extra_rows: R rows of extra constraints. Default: none.

    Returns:
        The right-hand side of the module's inequality, in the units of `losses`. It is a valid
        bound for any multipliers, but far from the optimum if they are.
    """
    weights = np.zeros(0)
    if prior is None:
        weights = multipliers["losses"]
    rows = weigh_losses(losses, round_weights(prior, weights))
    extra_terms = 0
    if extra_rows is not None:
        rows, extra_terms = extra_rows.apply_multipliers(
            rows, multipliers["extra"], MULTIPLIER_BITS
        )
    value, largest_multipliers = _sum_reduced_rows(rows, multipliers, edges)
    deltas = delta if isinstance(delta, Sequence) else [delta] * len(largest_multipliers)
    return Fraction(
        value + extra_terms - sum(map(mul, deltas, largest_multipliers)), 1 << MULTIPLIER_BITS
    )


def bound_gain_of_delta(epsilon: Fraction, delta: Fraction, inputs: int) -> Fraction:
    """Bound by how much δ lowers the smallest loss, as a share of the largest difference of two
    losses.

    The proof turns an (ε, δ)-private channel M into one that is private at δ = 0. Let d(y,y') be
    the number of steps between neighbours from y to y'. Raise every mass M[y,o] to the maximum over
    y' of M[y',o] e^(-ε d(y,y')). By group privacy M is (d ε, δ (e^(d ε) - 1)/(e^ε - 1))-private for
    inputs d steps apart. So each y' adds at most δ/(e^ε - 1) to a row, and the k - 1 others add at
    most A = (k - 1) δ/(e^ε - 1). Now add mass to one output until every row has the sum S = 1 + A
    e^ε/(e^ε - 1); the ratios then hold at this output as well (`repair`). Divided by S, the result
    is a pure channel. Its loss is larger by at most (S - 1) times the largest difference of two
    losses. The outputs may be any.

    Args:
        epsilon: ε > 0 of neighbours.
        delta: δ of neighbours.
        inputs: k, the number of inputs.

    Returns:
        S - 1, rounded up.
    """
    rounded_ratio, _ = exp_bounds(epsilon, _GAIN_BITS)
    ratio = Fraction(rounded_ratio, 1 << _GAIN_BITS)
    return (inputs - 1) * delta * ratio / (ratio - 1) ** 2


def bound_least_delta(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    max_loss: Fraction,
    multipliers: Mapping[str, Vector],
) -> Fraction:
    """Return a lower bound on the δ of every channel whose loss is at most a limit.

    Let τ >= 0 be the multipliers of the limits on the loss: one number under a prior, else one for
    each input. The module's inequality with τ π_y ℓ (or τ_y ℓ) instead of π_y ℓ has a left-hand
    side of at most τ max_loss (or Σ τ_y max_loss). Solved for δ it gives the bound: Σ_y min_o minus
    this limit, divided by max(1, Σ_p max_o u[p,o]).

    Args:
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the limit is on the worst-case loss.
        edges: ordered pairs of neighbours with their ε.
        max_loss: largest loss allowed, in the units of `losses`.
        multipliers: as for `bound_least_loss`.
    """
    tau = floor_to_bits(np.maximum(multipliers["losses"], 0.0), MULTIPLIER_BITS).tolist()
    shares = tau
    if prior is not None:
        shares = [(p.numerator * tau[0]) // p.denominator for p in prior]
    value, largest_multipliers = _sum_reduced_rows(weigh_losses(losses, shares), multipliers, edges)
    numerator = Fraction(value - max_loss * sum(tau))
    return max(ZERO, numerator / max(1 << MULTIPLIER_BITS, sum(largest_multipliers)))


def bound_loss_on_line(
    losses: LossTable, prior: Sequence[Fraction], epsilon: Fraction, share: Vector
) -> Fraction:
    """Return a lower bound on the loss for pure ε, if consecutive inputs are neighbours.

    For every output o, the surplus and the deficit w[y,o] of all inputs are passed from both ends
    of the line, step by step, to the input at which o has its smallest loss. If a deficit is left
    there, λ of that input is lowered by the largest deficit of its outputs.

    Args:
        losses: table of losses, shape (k, m).
        prior: prior of the inputs.
        epsilon: ε of neighbours.
        share: λ, the share of every input in the bound, shape (k,). Any floats are valid;
            `post_process_geometric` returns good ones.

    Returns:
        Σ λ minus the deficits.
    """
    rows = weigh_losses(losses, round_weights(prior, share))
    scaled_ratio = _round_ratio_up(epsilon)
    lam = floor_to_bits(np.asarray(share, dtype=float), MULTIPLIER_BITS)
    rows = rows - lam[:, None]
    k, m = rows.shape

    def pass_to_neighbour(value: int) -> int:
        """Return what a surplus or a deficit is worth at the next input, rounded down."""
        if value >= 0:
            return (value << _RATIO_BITS) // scaled_ratio
        # The shift rounds the size of the deficit down, so 1 more is enough.
        return -((-value * scaled_ratio) >> _RATIO_BITS) - 1

    pass_all = np.frompyfunc(pass_to_neighbour, 1, 1)
    best_input = losses.values.argmin(axis=0)
    # The balance of an output is its w at its best input, plus what both ends of the line pass on.
    balance = rows[best_input, np.arange(m)]
    for inputs in (range(k), range(k - 1, -1, -1)):
        carry = np.zeros(m, dtype=object)
        for y in inputs:
            is_before_best = best_input > y if inputs.step > 0 else best_input < y
            balance = np.where(best_input == y, balance + carry, balance)
            carry = np.where(is_before_best, pass_all(rows[y] + carry), carry)
    largest_deficits: dict[int, int] = {}
    for o, y in enumerate(best_input.tolist()):
        largest_deficits[y] = max(largest_deficits.get(y, 0), -int(balance[o]))
    total_deficit = sum(largest_deficits.values())
    return Fraction(int(lam.sum()) - total_deficit, 1 << MULTIPLIER_BITS)
