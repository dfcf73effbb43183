"""Lower bounds on what any private channel costs, in integers, from multipliers that nobody has to trust.

Every u >= 0 proves, for channels with Σ_o max(0, M[y,o] - E M[y',o]) <= δ along ordered pairs p = (y, y'),

    Σ_y π_y Σ_o M[y,o] ℓ(y,o)
      >=  Σ_y min_o ( π_y ℓ(y,o) + Σ_{p from y} u[p,o] - E Σ_{p to y} u[p,o] ) - δ Σ_p max_o u[p,o]

(Lagrangian duality: Σ_o u[p,o] (M[y,o] - E M[y',o]) <= max_o u[p,o] δ, and a row of M is a distribution.) E is e^ε
rounded up. π is the prior, or any distribution where the worst input counts. All pairs with pure ε have a column t_o
with t <= M <= E t instead, and multipliers a, b >= 0 with Σ_y a >= E Σ_y b: min_o ( π_y ℓ - a + b ). Linear rows
A M <= b of one's own (or = b) with multipliers q <= 0 (or any) add q b, and take A'q from π ℓ.

Along a line no multipliers are needed for pure ε, only λ_y, the share of every input in the bound: what
w = π_y ℓ - λ_y leaves over can be handed from label to label, one unit of it being worth 1/E next door, and one unit
that is missing costs E there. λ proves Σ λ where every output's column ends with nothing missing (`line_bound`).
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

BITS = 96  # of a multiplier
_EXP = 112  # of E
_GAIN_BITS = 160  # Binary digits of e^ε in `gain_of_delta`.


def shares_of(prior: Prior, weights: Vector) -> list[int]:
    """The prior over 2^BITS, rounded down, or, with None, weights >= 0 as a distribution over it."""
    if prior is not None:
        return [(w.numerator << BITS) // w.denominator for w in prior]
    weights = np.maximum(weights, 0.0)
    shares: list[int] = floor_to_bits(weights / max(float(weights.sum()), 1e-300), BITS).tolist()
    shares[int(np.argmax(weights))] -= sum(shares) - (1 << BITS)
    return shares


def rows_of(losses: LossTable, shares: Sequence[int]) -> Integers:
    """π ℓ over 2^BITS, rounded down. Shape (k, m)."""
    return np.asarray((losses.values * np.array(shares, dtype=object)[:, None]) // losses.unit)


def _reduced(rows: Integers, multipliers: Mapping[str, Vector], edges: Edges) -> tuple[int, list[int]]:
    """(Σ_y min_o of the rows with the multipliers' terms, max_o u[p,o] of every pair), over 2^BITS."""
    if "ratio" in multipliers:
        rows, u = rows.copy(), floor_to_bits(multipliers["ratio"], BITS)
        above = {epsilon: _e(epsilon) for epsilon in set(edges.epsilons)}
        for (i, j), epsilon, each in zip(edges.pairs or (), edges.epsilons, u, strict=True):
            rows[i] += each
            rows[j] -= -((-each * above[epsilon]) >> _EXP)
        return int(rows.min(axis=1).sum()), u.max(axis=1).tolist()
    a, b = floor_to_bits(multipliers["least"], BITS), floor_to_bits(multipliers["most"], BITS)
    least, most = a.sum(axis=0) << _EXP, b.sum(axis=0) * _e(edges.epsilons[0])
    b = np.where(most > least, b * least // np.maximum(most, 1), b)
    return int((rows - a + b).min(axis=1).sum()), []


def _e(epsilon: Fraction) -> int:
    return exp_bounds(epsilon, _EXP)[1]


def least_loss_bound(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    delta: Fraction | Sequence[Fraction],
    multipliers: Mapping[str, Vector],
    extra: ExtraRows | None = None,
) -> Fraction:
    """A number that the (expected, or with prior None the largest) loss of no private channel is below.

    delta: of every ordered pair of the edges, which may be there under several ε, or one for all. multipliers: as
    `workbench.models.channel.program.ChannelModel.multipliers` has them, and "extra" of such rows; any are right, bad
    ones prove little.
    """
    weights = multipliers["losses"] if prior is None else np.zeros(0)
    rows, added = rows_of(losses, shares_of(prior, weights)), 0
    if extra is not None:
        rows, added = extra.bound(rows, multipliers["extra"], BITS)
    value, largest = _reduced(rows, multipliers, edges)
    each = delta if isinstance(delta, Sequence) else [delta] * len(largest)
    return Fraction(value + added - sum(map(mul, each, largest)), 1 << BITS)


def gain_of_delta(epsilon: Fraction, delta: Fraction, inputs: int) -> Fraction:
    """Return by how much δ lowers the least loss at most, as a share of the difference of any two losses.

    Raise every mass of an (ε, δ)-channel to max over y' of M[y',o] e^(-ε d(y,y')), d counting steps between
    neighbours. It is (d ε, δ (e^(d ε) - 1)/(e^ε - 1))-private d steps apart, so a row gains at most
    A = (k - 1) δ/(e^ε - 1). What rows lack of S = 1 + A e^ε/(e^ε - 1) goes to one output, after which all ratios hold
    (`repair`): a pure channel that costs at most (S - 1) times the spread of the losses more. Outputs may be any.

    Args:
        epsilon: ε > 0 of neighbours.
        delta: δ of neighbours.
        inputs: k, the number of inputs.

    Returns:
        S - 1, rounded up.
    """
    ratio = exp_bounds(epsilon, _GAIN_BITS)[0]
    below = Fraction(ratio, 1 << _GAIN_BITS)
    return (inputs - 1) * delta * below / (below - 1) ** 2


def least_delta_bound(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    max_loss: Fraction,
    multipliers: Mapping[str, Vector],
) -> Fraction:
    """A number that δ of no channel is below whose loss is at most max_loss: the same sum with τ ℓ for ℓ and the
    max_loss handed back, over Σ_p max_o u[p,o] where that is more than 1."""
    tau = floor_to_bits(np.maximum(multipliers["losses"], 0.0), BITS).tolist()
    shares = tau if prior is None else [(p.numerator * tau[0]) // p.denominator for p in prior]
    value, largest = _reduced(rows_of(losses, shares), multipliers, edges)
    return max(ZERO, Fraction(value - max_loss * sum(tau)) / max(1 << BITS, sum(largest)))


def line_bound(losses: LossTable, prior: Sequence[Fraction], epsilon: Fraction, share: Vector) -> Fraction:
    """Σ λ less what is missing, for pure ε along a line. share: λ (k,) in floats, any.

    What a column needs from outside is gathered where its loss is least, from both ends; an input hands over most of
    what it needs from its outer neighbours. Where something is missing, λ of that input is lowered by it.
    """
    rows, e = rows_of(losses, shares_of(prior, share)), _e(epsilon)
    lam = floor_to_bits(np.asarray(share, dtype=float), BITS)
    rows = rows - lam[:, None]
    k, m = rows.shape

    def passed(value: int) -> int:
        return (value << _EXP) // e if value >= 0 else -((-value * e) >> _EXP) - 1

    pass_on = np.frompyfunc(passed, 1, 1)
    own = losses.values.argmin(axis=0)
    here = rows[own, np.arange(m)]
    for steps in (range(k), range(k - 1, -1, -1)):
        left = np.zeros(m, dtype=object)
        for y in steps:
            inside = own > y if steps.step > 0 else own < y
            here = np.where(own == y, here + left, here)
            left = np.where(inside, pass_on(rows[y] + left), left)
    missing: dict[int, int] = {}
    for o, y in enumerate(own.tolist()):
        missing[y] = max(missing.get(y, 0), -int(here[o]))
    return Fraction(int(lam.sum()) - sum(max(0, value) for value in missing.values()), 1 << BITS)
