"""Compute a lower bound on the loss of every channel under a notion with smooth convex bounds, such
as Rényi DP or zCDP.

The multipliers come from the interior-point method of `workbench.models.convex.interior`.

Notation: M[y,o] is the probability of output o for the input y, and ℓ(y,o) is the loss. π is the
prior, or any distribution for the worst-case loss. A *bound* c belongs to an ordered pair of
neighbours (y, y') and has the form Σ_o φ_c(M[y,o], M[y',o]) <= L_c with a convex function φ_c and a
limit L_c. Some notions state a bound for every number θ of a range, such as zCDP for every order
of the Rényi divergence. θ is called the level of the bound, and the range a level range.

For each output o let a M[y,o] + b M[y',o] be a tangent of φ_c, which is never above φ_c. Every
λ >= 0 proves, for channels within the bounds (Lagrangian duality),

    Σ_y π_y Σ_o M[y,o] ℓ(y,o)
      >=  Σ_y min_o ( π_y ℓ(y,o) + Σ_{c from y} λ_c a[c,o] + Σ_{c to y} λ_c b[c,o] ) - Σ_c λ_c L_c

because Σ_o a M[y,o] + b M[y',o] is at most Σ_o φ_c <= L_c, and the minimum over o is at most the
mean over the row M[y, ·], which is a distribution. "c from y" means that y is the first input of c,
and "c to y" that it is the second. With the λ and the tangents of the optimum both sides are equal,
so multipliers near the optimum prove a bound near the optimum. The sums are computed in integers.

Where to change: a new kind of bound needs its φ in `workbench.models.convex.requirements` and
`interior`, its tangents in `workbench.models.convex.tangents`, and a place in `has_smooth_bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from workbench.families.channel.proof import MULTIPLIER_BITS, round_weights, weigh_losses
from workbench.families.channel.repair import Prior
from workbench.families.channel.request import ChannelRequest
from workbench.models.channel.output_pricing import find_cheapest_columns
from workbench.models.convex.interior import (
    LevelRange,
    list_smooth_bounds,
    solve_interior_point,
)
from workbench.models.convex.requirements import Bound
from workbench.models.convex.tangents import compute_tangents, max_term_sum
from workbench.pipeline.convex_notion import ClaimedBounds
from workbench.pipeline.loss_tables import LossTable
from workbench.solvers.arrays import Vector
from workbench.solvers.data import floor_to_bits
from workbench.solvers.search import Deadline

# The interior-point method stops at this gap, relative to the loss.
_INTERIOR_GAP = 1e-7
# The second channel at which tangents are taken minimises the reduced losses plus a logarithmic
# barrier. The weight of the barrier is this share of the spread of the reduced losses.
_BARRIER_SHARE = 1e-9
# Smaller masses are raised to this one, because tangents need positive masses.
_MIN_MASS = 1e-300

# A bound of an ordered pair (y, y'), and its multiplier: (bound, y, y', multiplier).
WeightedBound = tuple[Bound, int, int, float]


def bound_smooth_loss(
    losses: LossTable,
    prior: Prior,
    weights: Vector,
    weighted_bounds: Sequence[WeightedBound],
    masses: Vector,
) -> Fraction:
    """Return a lower bound on the loss of every channel within the bounds.

    Any multipliers and masses give a valid bound. The bound is tight only near the optimum.

    Args:
        losses: table of the losses ℓ of k inputs and m outputs, shape (k, m).
        prior: prior π of the inputs, k numbers. None: the bound is on the worst-case loss.
        weights: weights >= 0 of the inputs, shape (k,), which are scaled to the distribution π if
            `prior` is None. With a prior they are not used.
        weighted_bounds: (bound, y, y', λ) for bounds of ordered pairs. A negative λ counts as 0.
        masses: channel at whose ratios the tangents are taken, > 0, shape (k, m).

    Returns:
        The right-hand side of the inequality in the module header, rounded down, in the units of
        `losses`.
    """
    rows = weigh_losses(losses, round_weights(prior, weights))
    allowance = Fraction(0)
    for bound, i, j, multiplier in weighted_bounds:
        # λ as an integer over 2^MULTIPLIER_BITS.
        (floored_multiplier,) = floor_to_bits(np.array([max(multiplier, 0.0)]), MULTIPLIER_BITS)
        scaled_multiplier = int(floored_multiplier)
        for y, slopes in zip((i, j), compute_tangents(bound, masses[i], masses[j]), strict=True):
            terms = (floor_to_bits(slopes, MULTIPLIER_BITS) * scaled_multiplier) >> MULTIPLIER_BITS
            rows[y] = rows[y] + terms
        allowance += scaled_multiplier * Fraction(max_term_sum(bound))
    return (int(rows.min(axis=1).sum()) - allowance) / (1 << MULTIPLIER_BITS)


def _list_claimed_bounds(request: ChannelRequest) -> tuple[list[Bound] | None, LevelRange | None]:
    """Return (bounds, levels): the listed bounds of every pair, and the range of levels.

    The first is None if a bound is not smooth, the second if there is no range of levels.
    """
    # Every pair has the same bounds, so the first pair represents all of them.
    first_pair, *_ = request.question.ordered_pairs
    claim_bounds = ClaimedBounds(request.audited_claim, first_pair)
    levels = claim_bounds.levels
    return list_smooth_bounds(claim_bounds.bounds, levels), levels


def has_smooth_bounds(request: ChannelRequest) -> bool:
    """Return whether `solve_by_interior_point` accepts a request.

    All its bounds must be smooth (no hockey stick, and a positive limit), and no other solver than
    the default may have been chosen.

    Args:
        request: a request for a channel.
    """
    if not request.has_several_bounds or request.how.solver != "highs":
        return False
    bounds, _ = _list_claimed_bounds(request)
    return bounds is not None


def solve_by_interior_point(request: ChannelRequest) -> tuple[Vector, Fraction] | None:
    """Solve a request with smooth bounds by an interior-point method.

    Args:
        request: a request for which `has_smooth_bounds` is true.

    Returns:
        (masses, bound): the channel, shape (k, m), and an exact lower bound on the loss of every
        channel, in the units of the request. None if even uniform rows violate the bounds.
    """
    model = request.model()
    question = request.question
    limit = request.how.options.time_limit
    data = model.program.template
    block = model.program.block("M")
    mass_columns = slice(block.start, block.start + block.size)
    uniform_point = data.upper.copy()
    uniform_point[mass_columns] = 1 / question.m
    comparisons = model.build_comparisons(question.ordered_pairs)
    deadline = Deadline(None if limit is None else float(limit))
    comparison_arrays = comparisons.entries, comparisons.first, comparisons.second
    bounds, levels = _list_claimed_bounds(request)
    assert bounds is not None
    point = solve_interior_point(
        data, comparison_arrays, bounds, levels, uniform_point, deadline, _INTERIOR_GAP
    )
    if point is None:
        return None
    masses = np.maximum(point.x[mass_columns].reshape(block.shape, order="F"), _MIN_MASS)
    scaled_losses = request.scaled_losses
    table = scaled_losses.table
    unit = scaled_losses.unit
    # The equations of the program are Σ_o M[y,o] = 1. Its inequalities are worst-case losses.
    is_row_sum = data.row_lower == data.row_upper
    loss_weights = point.row_multipliers[~is_row_sum]
    weighted_bounds = []
    for bound, pair_index, multiplier in point.active_bounds:
        i, j = question.ordered_pairs[pair_index]
        weighted_bounds.append((bound, i, j, multiplier / unit))
    input_weights = request.prior_weights
    if input_weights is None:
        input_weights = loss_weights / loss_weights.sum()
    reduced_losses = (
        table.floats * input_weights[:, None] - point.row_multipliers[is_row_sum][:, None] / unit
    )
    # The bound is computed with the tangents at two channels, and the larger value counts.
    barrier = _BARRIER_SHARE * float(np.ptp(reduced_losses))
    priced_masses = find_cheapest_columns(reduced_losses, weighted_bounds, barrier)
    proven_bounds = [
        bound_smooth_loss(table, question.prior, loss_weights, weighted_bounds, tangent_masses)
        for tangent_masses in (masses, priced_masses)
    ]
    return masses, scaled_losses.unscale_loss(max(proven_bounds))
