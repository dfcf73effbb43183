"""A finite question whose optimal loss is a lower bound for every channel with real outputs.

Anchors p_1 < ... < p_n from the least answer to the largest cut that range into cells, the knots z
between them. Let low(y, ·) be linear on every cell, and at most the loss there. A channel that
publishes o in a cell [z, z'] may publish z or z' at random instead, with mean o. This is
post-processing, so the channel stays private. For every answer its expected `low` is at most the
expected loss of the original channel. So

    least loss of all channels with real outputs
      >=  least loss at low(y, z) of the channels whose outputs are knots

and the channels whose outputs are the anchors give an upper bound. Outputs beyond the answers are
clipped to their range. This increases no loss that grows with the distance.

loss                  knots                         low(y, z)
squared, huber        the middles between anchors   the smaller tangent of the two anchors beside z
absolute, pinball,    the answers                   the loss itself, linear between answers: other
error-rate                                          outputs are of no use (their error rate is 1)
a loss table          its outputs                   linear between them, as the table is read

If every output of the optimum is an anchor, the bound is tight: the multipliers of the optimum,
moved along with the tangent, stay feasible beside it. So loss and bound meet as soon as the anchors
are the outputs of the optimum and their cells are short. Otherwise the cells that the lower
question uses are cut.
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

_HUBER_BISECTION_STEPS = 60

Numbers = Sequence[Fraction]


class LowerQuestion(NamedTuple):
    """A finite question whose optimal loss, minus the shift, bounds all channels with real outputs.

    Attributes:
        knots: outputs of the question, increasing.
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
        anchors: increasing numbers, n of them, from the least answer to the largest.
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
    value, slope, unit = _evaluate_losses(
        named_loss.kind, differences, int(huber_width * scale), scale
    )
    # The tangent of every anchor is evaluated at the knots above and below it.
    upper_values = value + slope * (z[1:] - p)[None, :]
    lower_values = value + slope * (z[:-1] - p)[None, :]
    inner = np.minimum(upper_values[:, :-1], lower_values[:, 1:])
    values = np.concatenate([lower_values[:, :1], inner, upper_values[:, -1:]], axis=1)
    shift = max(0, -int(values.min()))
    losses = LossTable(TANGENT_LOSS_NAME, values + shift, unit)
    return LowerQuestion(knots, losses, Fraction(shift, unit))


def _scale_to_integers(values: Numbers, scale: int) -> Integers:
    """Return values times a common denominator."""
    return np.array([int(value * scale) for value in values], dtype=object)


def _evaluate_losses(
    kind: str, differences: Integers, huber_width: int, scale: int
) -> tuple[Integers, Integers, int]:
    """Return the losses of differences and their slopes, both times a unit, and the unit."""
    if kind == "squared":
        return differences * differences, 2 * differences, scale**2
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
