"""Exact lower bounds on the loss of every private channel, proven in integers from multipliers.

The multipliers need not be trusted: every choice proves a valid bound.

Every u >= 0 proves, for channels with Σ_o max(0, M[y,o] - E M[y',o]) <= δ along ordered pairs p =
(y, y'),

    Σ_y π_y Σ_o M[y,o] ℓ(y,o)
      >=  Σ_y min_o ( π_y ℓ(y,o) + Σ_{p from y} u[p,o] - E Σ_{p to y} u[p,o] ) - δ Σ_p max_o u[p,o]

(Lagrangian duality: Σ_o u[p,o] (M[y,o] - E M[y',o]) <= max_o u[p,o] δ, and a row of M is a
distribution.) E is e^ε rounded up. π is the prior, or any distribution for the worst-case loss. All
pairs with pure ε have a column t_o with t <= M <= E t instead, and multipliers a, b >= 0 with Σ_y a
>= E Σ_y b: min_o ( π_y ℓ - a + b ). User-defined linear rows A M <= b (or = b) with multipliers q
<= 0 (or any) add q b, and subtract A'q from π ℓ.

Along a line no multipliers are needed for pure ε, only λ_y, the share of every input in the bound.
The surplus of w = π_y ℓ - λ_y can be passed from label to label. One unit of surplus is worth 1/E
at the next label, and one unit of deficit becomes E there. λ proves Σ λ if the column of every
output ends without a deficit (`bound_loss_on_line`).
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
# Ratios e^ε are rounded up to multiples of 2^-112.
_RATIO_BITS = 112
# The ratio e^ε is rounded down to a multiple of 2^-160 in `bound_gain_of_delta`.
_GAIN_BITS = 160


def round_weights(prior: Prior, weights: Vector) -> list[int]:
    """Return the weights of the inputs in a bound, as integers over 2^96.

    Args:
        prior: prior of the inputs, which is rounded down. None: the worst-case loss counts.
        weights: for the worst-case loss, any weights >= 0, shape (k,). They are scaled to a
            distribution.
    """
    if prior is not None:
        return [(w.numerator << MULTIPLIER_BITS) // w.denominator for w in prior]
    weights = np.maximum(weights, 0.0)
    distribution = weights / max(float(weights.sum()), 1e-300)
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
    """Return Σ_y min_o of the rows with the terms of the multipliers, and max_o u[p,o] of every
    pair, over 2^96.
    """
    if "ratio" in multipliers:
        rows = rows.copy()
        u = floor_to_bits(multipliers["ratio"], MULTIPLIER_BITS)
        ratios = {epsilon: _round_ratio_up(epsilon) for epsilon in set(edges.epsilons)}
        for (i, j), epsilon, row in zip(edges.pairs or (), edges.epsilons, u, strict=True):
            rows[i] += row
            rows[j] -= -((-row * ratios[epsilon]) >> _RATIO_BITS)
        return int(rows.min(axis=1).sum()), u.max(axis=1).tolist()
    a = floor_to_bits(multipliers["least"], MULTIPLIER_BITS)
    b = floor_to_bits(multipliers["most"], MULTIPLIER_BITS)
    a_sums = a.sum(axis=0) << _RATIO_BITS
    b_sums = b.sum(axis=0) * _round_ratio_up(edges.epsilons[0])
    b = np.where(b_sums > a_sums, b * a_sums // np.maximum(b_sums, 1), b)
    return int((rows - a + b).min(axis=1).sum()), []


def _round_ratio_up(epsilon: Fraction) -> int:
    """Return e^ε over 2^112, rounded up."""
    return exp_bounds(epsilon, _RATIO_BITS)[1]


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
        multipliers: as `workbench.models.channel.program.ChannelModel.multipliers` returns them,
            and "extra" for the extra rows. Any values give a valid bound; bad ones prove little.
        extra_rows: rows of extra constraints. Default: none.
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
    """Bound by how much δ lowers the least loss, as a share of the largest difference of two
    losses.

    Raise every mass of an (ε, δ)-channel to max over y' of M[y',o] e^(-ε d(y,y')), d counting steps
    between neighbours. It is (d ε, δ (e^(d ε) - 1)/(e^ε - 1))-private d steps apart, so a row gains
    at most A = (k - 1) δ/(e^ε - 1). What rows lack of S = 1 + A e^ε/(e^ε - 1) goes to one output,
    after which all ratios hold (`repair`). The result is a pure channel. Its loss is larger by at
    most (S - 1) times the spread of the losses. The outputs may be any.

    Args:
        epsilon: ε > 0 of neighbours.
        delta: δ of neighbours.
        inputs: k, the number of inputs.

    Returns:
        S - 1, rounded up.
    """
    ratio = Fraction(exp_bounds(epsilon, _GAIN_BITS)[0], 1 << _GAIN_BITS)
    return (inputs - 1) * delta * ratio / (ratio - 1) ** 2


def bound_least_delta(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    max_loss: Fraction,
    multipliers: Mapping[str, Vector],
) -> Fraction:
    """Return a lower bound on the δ of every channel whose loss is at most a limit.

    The sum of `bound_least_loss` is used with τ ℓ instead of π ℓ, where τ are the multipliers of
    the losses. Then τ max_loss is subtracted, and the result is divided by max(1, Σ_p max_o
    u[p,o]).

    Args:
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the limit is on the worst-case loss.
        edges: ordered pairs of neighbours with their ε.
        max_loss: largest loss allowed.
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

    What a column needs from other inputs is gathered at the input of its smallest loss, from both
    ends. An input passes most of its need on to its outer neighbours. If a deficit is left, λ of
    that input is lowered by it.

    Args:
        losses: table of losses, shape (k, m).
        prior: prior of the inputs.
        epsilon: ε of neighbours.
        share: λ, the share of every input in the bound, shape (k,). Any floats are valid.

    Returns:
        Σ λ minus the deficits.
    """
    rows = weigh_losses(losses, round_weights(prior, share))
    e = _round_ratio_up(epsilon)
    lam = floor_to_bits(np.asarray(share, dtype=float), MULTIPLIER_BITS)
    rows = rows - lam[:, None]
    k, m = rows.shape

    def pass_to_neighbour(value: int) -> int:
        """Return what a surplus or a deficit is worth at the next input, rounded down."""
        if value >= 0:
            return (value << _RATIO_BITS) // e
        return -((-value * e) >> _RATIO_BITS) - 1

    pass_all = np.frompyfunc(pass_to_neighbour, 1, 1)
    best_input = losses.values.argmin(axis=0)
    balance = rows[best_input, np.arange(m)]
    for steps in (range(k), range(k - 1, -1, -1)):
        carry = np.zeros(m, dtype=object)
        for y in steps:
            is_outside = best_input > y if steps.step > 0 else best_input < y
            balance = np.where(best_input == y, balance + carry, balance)
            carry = np.where(is_outside, pass_all(rows[y] + carry), carry)
    deficits: dict[int, int] = {}
    for o, y in enumerate(best_input.tolist()):
        deficits[y] = max(deficits.get(y, 0), -int(balance[o]))
    total_deficit = sum(max(0, value) for value in deficits.values())
    return Fraction(int(lam.sum()) - total_deficit, 1 << MULTIPLIER_BITS)
