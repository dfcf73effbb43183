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

from workbench.families.channel.proof import BITS, rows_of, shares_of
from workbench.families.channel.repair import Prior
from workbench.families.channel.request import ChannelRequest
from workbench.models.channel.output_pricing import cheapest_columns
from workbench.models.convex.interior import Levels, interior_point
from workbench.models.convex.requirements import HOCKEY_STICK, RELATIVE_ENTROPY, Bound
from workbench.models.convex.tangents import allowance, term_tangents
from workbench.pipeline.convex_notion import ClaimedBounds
from workbench.pipeline.loss_tables import LossTable
from workbench.solvers.arrays import Vector
from workbench.solvers.data import floor_to_bits
from workbench.solvers.search import Deadline

_GAP, _BARRIER = 1e-5, 1e-9  # relative to the loss, and to costs
_LEAST = 1e-300  # mass

Pressing = tuple[Bound, int, int, float]  # a bound of an ordered pair (y, y') with its multiplier


def least_smooth_loss(
    losses: LossTable, prior: Prior, weights: Vector, presses: Sequence[Pressing], masses: Vector
) -> Fraction:
    """A number that the (expected, or with prior None the largest) loss of no channel within the bounds is below.

    weights: (k,) of the inputs, >= 0, where the worst one counts; masses: (k, m) > 0, at whose ratios tangents are
    taken. Any multipliers >= 0 and masses are right, bad ones prove little.
    """
    rows, whole = rows_of(losses, shares_of(prior, weights)), Fraction(0)
    for bound, i, j, multiplier in presses:
        share = int(floor_to_bits(np.array([max(multiplier, 0.0)]), BITS)[0])
        for y, slopes in zip((i, j), term_tangents(bound, masses[i], masses[j]), strict=True):
            rows[y] = rows[y] + ((floor_to_bits(slopes, BITS) * share) >> BITS)
        whole += share * Fraction(allowance(bound))
    return (int(rows.min(axis=1).sum()) - whole) / (1 << BITS)


def _stated(request: ChannelRequest) -> tuple[list[Bound], Levels | None]:
    """The bounds of every comparison, and those of levels."""
    claimed = ClaimedBounds(request.audited_claim, request.question.ordered[0])
    levels = claimed.levels
    return [b for b in claimed.bounds if levels is None or b.kind == RELATIVE_ENTROPY], levels


def by_interior(request: ChannelRequest) -> bool:
    """Whether all its bounds are smooth."""
    smooth = request.cut and request.how.solver == "highs"
    return smooth and all(
        each.kind != HOCKEY_STICK and allowance(each) > 0 for each in _stated(request)[0]
    )


def solved_by_interior(request: ChannelRequest) -> tuple[Vector, Fraction] | None:
    """Return (masses, a bound); None where even laws are not within the bounds."""
    model, q, limit = request.model(), request.question, request.how.options.time_limit
    data, block = model.program.template, model.program.block("M")
    where, even = slice(block.start, block.start + block.size), data.upper.copy()
    even[where] = 1 / q.m
    comparisons, deadline = (
        model.compared(q.ordered),
        Deadline(None if limit is None else float(limit)),
    )
    compared = comparisons.entries, comparisons.first, comparisons.second
    reached = interior_point(data, compared, *_stated(request), even, deadline, _GAP)
    if reached is None:
        return None
    masses = np.maximum(reached.x[where].reshape(block.shape, order="F"), _LEAST)
    sums = data.row_lower == data.row_upper
    scaled_losses = request.scaled
    table, unit = scaled_losses.table, scaled_losses.unit
    weights, presses = (
        reached.rows[~sums],
        [(b, *q.ordered[at], each / unit) for b, at, each in reached.presses],
    )
    counts = weights / weights.sum() if request.weights is None else request.weights
    costs = table.floats * counts[:, None] - reached.rows[sums][:, None] / unit
    tangents = masses, cheapest_columns(costs, presses, _BARRIER * float(np.ptp(costs)))
    bounds = [least_smooth_loss(table, q.prior, weights, presses, each) for each in tangents]
    return masses, scaled_losses.loss(max(bounds))
