"""Make a finite question whose optimal loss is a lower bound for every channel with real outputs.

`output_search` solves this question (the lower question) to bound how much better other outputs
could be.

Notation: y is an answer and o a real output. *Anchors* p_1 < ... < p_n reach from the smallest
answer to the largest. *Knots* z_0 < ... < z_n lie between them: z_0 = p_1, z_n = p_n, and z_j
separates p_j from p_(j+1). So every *cell* [z_(j-1), z_j] contains the anchor p_j. low(y, ·) is a
function that is linear on every cell and nowhere above the loss ℓ(y, ·).

A channel that publishes o in a cell [z, z'] may publish z or z' at random instead, with mean o.
This is post-processing, so the channel stays private. Since low(y, ·) is linear on the cell, its
mean at the two knots is low(y, o), which is at most ℓ(y, o). So for every answer the expected `low`
of the new channel is at most the expected loss of the original one, and

    smallest loss of all channels with real outputs
      >=  smallest expected low(y, z) of the channels whose outputs are knots

The channels whose outputs are the anchors give an upper bound. Outputs beyond the answers are
clipped to their range. This increases no loss that grows with the distance.

loss                  knots                         low(y, z)
squared, huber        the middles between anchors   the smaller tangent of the two anchors beside z
absolute, pinball,    the answers                   the loss itself, linear between answers: other
error-rate                                          outputs are of no use (their error rate is 1)
a loss table          its outputs                   linear between them, as the table is read

The tangent touches the loss at its anchor. So if every output of an optimal channel is an anchor,
and its cell is short, the tangents lose nothing at these outputs and the bound meets the loss.
Otherwise the search adds anchors in the cells whose knots the optimum of the lower question uses.

Where to change: a further loss needs a place in `LINEAR_LOSSES` or `CONVEX_LOSSES`, and for the
latter its slope in `_evaluate_losses` and its best output in `find_posterior_points`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from workbench.exact.numbers import Rationals, read_number
from workbench.models.losses import Loss
from workbench.pipeline.loss_tables import Integers, LossTable
from workbench.solvers.arrays import Flags, Vector
from workbench.solvers.search import bisect_each

# These losses are linear between answers, or smallest at an answer.
LINEAR_LOSSES = ("absolute", "pinball", "error-rate")
# The bound over all real outputs is proven for these losses.
CONVEX_LOSSES = ("squared", "huber", *LINEAR_LOSSES)
# The name of a loss table of tangents.
TANGENT_LOSS_NAME = "tangents of the loss"

# The best output for the Huber loss is bisected this often, which leaves 2^-60 of the range.
_HUBER_BISECTION_STEPS = 60

Numbers = Sequence[Fraction]


class LowerQuestion(NamedTuple):
    """A finite question whose optimal loss, minus the shift, bounds all channels with real outputs.

    Attributes:
        knots: outputs of the question, n + 1 increasing numbers.
        losses: `low` at the knots plus the shift, shape (k, n + 1).
        shift: number that makes all losses at least 0.
    """

    knots: Rationals
    losses: LossTable
    shift: Fraction


def make_lower_question(inputs: Numbers, anchors: Numbers, named_loss: Loss) -> LowerQuestion:
    """Make the question whose losses are the tangents at the anchors.

    Args:
        inputs: answers, k numbers.
        anchors: increasing numbers, n of them, from the smallest answer to the largest.
        named_loss: squared or huber.
    """
    knots = (anchors[0], *((p + q) / 2 for p, q in pairwise(anchors)), anchors[-1])
    huber_width = read_number(named_loss.parameter or 0, "the parameter of a loss")
    denominators = {value.denominator for value in (*inputs, *anchors, *knots)}
    scale = math.lcm(huber_width.denominator, *denominators)
    y = _scale_to_integers(inputs, scale)
    p = _scale_to_integers(anchors, scale)
    z = _scale_to_integers(knots, scale)
    differences = p[None, :] - y[:, None]
    anchor_losses, slopes, unit = _evaluate_losses(
        named_loss.kind, differences, int(huber_width * scale), scale
    )
    # The tangent of every anchor is evaluated at the knots above and below it.
    upper_values = anchor_losses + slopes * (z[1:] - p)[None, :]
    lower_values = anchor_losses + slopes * (z[:-1] - p)[None, :]
    # An inner knot lies between two anchors, and gets the smaller value of their tangents.
    inner_values = np.minimum(upper_values[:, :-1], lower_values[:, 1:])
    low = np.concatenate([lower_values[:, :1], inner_values, upper_values[:, -1:]], axis=1)
    shift = max(0, -int(low.min()))
    losses = LossTable(TANGENT_LOSS_NAME, low + shift, unit)
    return LowerQuestion(knots, losses, Fraction(shift, unit))


def _scale_to_integers(values: Numbers, scale: int) -> Integers:
    """Return values times a common denominator, as integers."""
    return np.array([int(value * scale) for value in values], dtype=object)


def _evaluate_losses(
    kind: str, differences: Integers, huber_width: int, scale: int
) -> tuple[Integers, Integers, int]:
    """Return (losses times unit, slopes times unit, unit), all integers.

    differences: outputs minus answers, times `scale`. huber_width: distance up to which the Huber
    loss is quadratic, times `scale`; not used for the squared loss.
    """
    if kind == "squared":
        return differences * differences, 2 * differences, scale**2
    # With d clipped to c, the Huber loss is c (2 d - c) / 2 and has the slope c.
    slopes = np.clip(differences, -huber_width, huber_width)
    return slopes * (2 * differences - slopes), 2 * slopes, 2 * scale**2


def find_posterior_points(named_loss: Loss, inputs: Vector, weights: Vector) -> Vector:
    """Find the output of smallest loss for every column of weights: the mean, or Huber's point.

    Args:
        named_loss: squared or huber.
        inputs: answers, shape (k,).
        weights: weight of every answer in every column, >= 0, no column all 0. Shape (k, m).

    Returns:
        One output for each column, shape (m,).
    """
    mass = weights.sum(axis=0)
    mean = inputs @ weights / mass
    if named_loss.kind == "squared":
        return np.asarray(mean)
    huber_width = float(named_loss.parameter or 0)
    lower_ends = np.full(mass.size, inputs.min())
    upper_ends = np.full(mass.size, inputs.max())

    def is_increasing(points: Vector) -> Flags:
        """Return where the loss has a positive slope. The slope increases with the output."""
        slopes = np.clip(points - inputs[:, None], -huber_width, huber_width)
        return np.asarray((weights * slopes).sum(axis=0) > 0)

    low, high = bisect_each(is_increasing, lower_ends, upper_ends, _HUBER_BISECTION_STEPS)
    return (low + high) / 2
