"""A channel under smooth convex bounds by `workbench.models.convex.interior`, proven by the multipliers that it ends
with.

Of every ordered pair c = (y, y') and bound Σ_o φ_c(M[y,o], M[y',o]) <= L_c let a M[y,o] + b M[y',o] <= φ_c be tangents,
one for each output. Every λ >= 0 proves, for channels within the bounds (Lagrangian duality),

    Σ_y π_y Σ_o M[y,o] ℓ(y,o)
      >=  Σ_y min_o ( π_y ℓ(y,o) + Σ_{c from y} λ_c a[c,o] + Σ_{c to y} λ_c b[c,o] ) - Σ_c λ_c L_c

as Σ_o a M[y,o] + b M[y',o] is at most Σ_o φ_c <= L_c, and a row of M is a distribution. At the optimum's own λ and
tangents both sides are equal, so that a point near it needs no further program. π is the prior, or any distribution
where the worst input counts; sums are in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from workbench.families.channel.proof import MULTIPLIER_BITS, round_weights, weigh_losses
from workbench.families.channel.repair import Prior
from workbench.families.channel.request import ChannelRequest
from workbench.models.channel.output_pricing import find_cheapest_columns
from workbench.models.convex.interior import LevelRange, solve_interior_point
from workbench.models.convex.requirements import HOCKEY_STICK, RELATIVE_ENTROPY, Bound
from workbench.models.convex.tangents import compute_tangents, max_term_sum
from workbench.pipeline.convex_notion import ClaimedBounds
from workbench.pipeline.loss_tables import LossTable
from workbench.solvers.arrays import Vector
from workbench.solvers.data import floor_to_bits
from workbench.solvers.search import Deadline

_INTERIOR_GAP, _BARRIER_SHARE = 1e-5, 1e-9  # relative to the loss, and to costs
_MIN_MASS = 1e-300  # mass

WeightedBound = tuple[
    Bound, int, int, float
]  # a bound of an ordered pair (y, y') with its multiplier


def bound_smooth_loss(
    losses: LossTable,
    prior: Prior,
    weights: Vector,
    weighted_bounds: Sequence[WeightedBound],
    masses: Vector,
) -> Fraction:
    """A number that the (expected, or with prior None the largest) loss of no channel within the bounds is below.

    weights: (k,) of the inputs, >= 0, where the worst one counts; masses: (k, m) > 0, at whose ratios tangents are
    taken. Any multipliers >= 0 and masses are right, bad ones prove little.
    """
    rows, whole = weigh_losses(losses, round_weights(prior, weights)), Fraction(0)
    for bound, i, j, multiplier in weighted_bounds:
        share = int(floor_to_bits(np.array([max(multiplier, 0.0)]), MULTIPLIER_BITS)[0])
        for y, slopes in zip((i, j), compute_tangents(bound, masses[i], masses[j]), strict=True):
            rows[y] = rows[y] + (
                (floor_to_bits(slopes, MULTIPLIER_BITS) * share) >> MULTIPLIER_BITS
            )
        whole += share * Fraction(max_term_sum(bound))
    return (int(rows.min(axis=1).sum()) - whole) / (1 << MULTIPLIER_BITS)


def _list_smooth_bounds(request: ChannelRequest) -> tuple[list[Bound], LevelRange | None]:
    """The bounds of every comparison, and those of levels."""
    claimed = ClaimedBounds(request.audited_claim, request.question.ordered_pairs[0])
    levels = claimed.levels
    return [b for b in claimed.bounds if levels is None or b.kind == RELATIVE_ENTROPY], levels


def has_smooth_bounds(request: ChannelRequest) -> bool:
    """Whether all its bounds are smooth."""
    smooth = request.has_several_bounds and request.how.solver == "highs"
    return smooth and all(
        each.kind != HOCKEY_STICK and max_term_sum(each) > 0
        for each in _list_smooth_bounds(request)[0]
    )


def solve_by_interior_point(request: ChannelRequest) -> tuple[Vector, Fraction] | None:
    """Return (masses, a bound); None where even laws are not within the bounds."""
    model, q, limit = request.model(), request.question, request.how.options.time_limit
    data, block = model.program.template, model.program.block("M")
    where, even = slice(block.start, block.start + block.size), data.upper.copy()
    even[where] = 1 / q.m
    comparisons, deadline = (
        model.build_comparisons(q.ordered_pairs),
        Deadline(None if limit is None else float(limit)),
    )
    compared = comparisons.entries, comparisons.first, comparisons.second
    reached = solve_interior_point(
        data, compared, *_list_smooth_bounds(request), even, deadline, _INTERIOR_GAP
    )
    if reached is None:
        return None
    masses = np.maximum(reached.x[where].reshape(block.shape, order="F"), _MIN_MASS)
    sums = data.row_lower == data.row_upper
    scaled_losses = request.scaled_losses
    table, unit = scaled_losses.table, scaled_losses.unit
    weights, presses = (
        reached.row_multipliers[~sums],
        [(b, *q.ordered_pairs[at], each / unit) for b, at, each in reached.active_bounds],
    )
    counts = weights / weights.sum() if request.prior_weights is None else request.prior_weights
    costs = table.floats * counts[:, None] - reached.row_multipliers[sums][:, None] / unit
    tangents = masses, find_cheapest_columns(costs, presses, _BARRIER_SHARE * float(np.ptp(costs)))
    bounds = [bound_smooth_loss(table, q.prior, weights, presses, each) for each in tangents]
    return masses, scaled_losses.unscale_loss(max(bounds))
