"""Every real output at once: a finite question whose least loss no channel with real outputs is below.

Anchors p_1 < ... < p_n from the least answer to the largest cut that range into cells, the knots z between them. Let
low(y, ·) be linear on every cell, and at most the loss there. A channel that publishes o in a cell [z, z'] may publish
z or z' at random instead, with mean o: that is post-processing, so the channel stays as private, and for every answer
it costs no more at `low` than before at the loss. So

    least loss of all channels with real outputs  >=  least loss at low(y, z) of the channels whose outputs are knots

and with outputs at the anchors there is one above. Outputs beyond the answers are clipped to their range, at which no
loss that grows with the distance rises.

loss                  knots                          low(y, z)
squared, huber        the middles between anchors    the lesser of the tangents of the two anchors beside z
absolute, pinball,    the answers                    the loss itself, linear between answers: outputs of any other
error-rate                                           value are of no use (being wrong costs 1 wherever)
a table of one's own           its outputs                    linear between them, as it is read

At an anchor that is an output of the optimum nothing is lost: the multipliers of the optimum there, moved along with
the tangent, stay feasible beside it. So both sides meet as soon as the anchors are the outputs of the optimum and their
cells are short; where they do not, cells that the lower one uses are cut.
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

LINEAR_LOSSES = (
    "absolute",
    "pinball",
    "error-rate",
)  # between answers, or nowhere better than at them
CONVEX_LOSSES = ("squared", "huber", *LINEAR_LOSSES)
TANGENT_LOSS_NAME = "tangents of the loss"

Numbers = Sequence[Fraction]


class LowerQuestion(NamedTuple):
    """A question below that of all real outputs: its outputs, its losses, which are `shift` above `low`."""

    knots: Rationals
    losses: LossTable
    shift: Fraction


def make_lower_question(inputs: Numbers, anchors: Numbers, named: Loss) -> LowerQuestion:
    """The question at the tangents of anchors (n,), increasing, for the loss squared or huber."""
    knots = (anchors[0], *((p + q) / 2 for p, q in pairwise(anchors)), anchors[-1])
    h = read_number(named.parameter or 0, "the parameter of a loss")
    scale = math.lcm(h.denominator, *{value.denominator for value in (*inputs, *anchors, *knots)})
    y, p, z = (
        np.array([int(value * scale) for value in values], dtype=object)
        for values in (inputs, anchors, knots)
    )
    value, slope, unit = _evaluate_losses(
        named.kind, p[None, :] - y[:, None], int(h * scale), scale
    )
    left = (
        value + slope * (z[1:] - p)[None, :]
    )  # the tangent of every anchor at the knot above it, and below it
    right = value + slope * (z[:-1] - p)[None, :]
    values = np.concatenate(
        [right[:, :1], np.minimum(left[:, :-1], right[:, 1:]), left[:, -1:]], axis=1
    )
    shift = max(0, -int(values.min()))
    return LowerQuestion(
        knots, LossTable(TANGENT_LOSS_NAME, values + shift, unit), Fraction(shift, unit)
    )


def _evaluate_losses(kind: str, r: Integers, h: int, scale: int) -> tuple[Integers, Integers, int]:
    """Losses of differences r and their slopes, times a unit."""
    if kind == "squared":
        return r * r, 2 * r, scale**2
    near = np.clip(r, -h, h)
    return near * (2 * r - near), 2 * near, 2 * scale**2


def find_posterior_points(named: Loss, inputs: Vector, weights: Vector) -> Vector:
    """The output that costs least for every column of weights (k, m) of the inputs (k,): mean, or Huber's. Shape (m,).
    For the loss squared or huber."""
    mass = weights.sum(axis=0)
    mean = inputs @ weights / mass
    if named.kind == "squared":
        return np.asarray(mean)
    ends, h = np.full((2, mass.size), [[inputs.min()], [inputs.max()]]), float(named.parameter or 0)

    def rising(at: Vector) -> Flags:  # the slope rises with the output
        return np.asarray((weights * np.clip(at - inputs[:, None], -h, h)).sum(axis=0) > 0)

    low, high = bisect_each(rising, ends[0], ends[1], 60)
    return (low + high) / 2
