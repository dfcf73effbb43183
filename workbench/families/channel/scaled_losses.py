"""Convert the losses of a channel request to the scale in which its programs are solved, and back.

The loss that no channel can avoid is subtracted, and the rest is divided by a power of 2^12. The
best channel that ignores its input then has a loss between 1/4 and 1024, whatever the units of the
request are, and the optimum is between 0 and this loss (`workbench.pipeline.loss_scale`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np

from workbench.exact.numbers import ZERO
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import LossTable
from workbench.questions.finite_query import FiniteQuery


@dataclass(frozen=True, eq=False)
class ScaledLosses:
    """The losses of a channel in the scale of its request.

        loss of a channel = unit * (loss at `table`) + shift

    Attributes:
        table: losses in the scale, shape (k, m), for k inputs and m outputs.
        unit: number of the request's units in one unit of `table`.
        shift: loss that no channel can avoid. Under a prior it is the mean of the smallest loss of
            every input. For the worst-case loss it is the smallest loss of all.
        scale: scale by which gaps of losses in the units of the request are judged.
        constant_outputs: column of the output of every input in the best channel with one output
            for every connected part of the neighbour relation, shape (k,). The channel reveals
            only the part of its input. This is private, because neighbours are in the same part.
        is_constant_optimal: whether the loss of that channel is the loss without privacy.
    """

    table: LossTable
    unit: float
    shift: Fraction
    scale: LossScale
    constant_outputs: Any
    is_constant_optimal: bool

    @classmethod
    def from_table(cls, losses: LossTable, question: FiniteQuery) -> ScaledLosses:
        """Scale the losses of a question.

        Args:
            losses: losses as they were given, shape (k, m).
            question: question with k inputs and m outputs.
        """
        prior = question.prior
        row_minima = losses.values.min(axis=1)
        if prior is None:
            subtrahends = np.full(row_minima.shape, row_minima.min(), dtype=object)
            shift = Fraction(int(row_minima.min()), losses.unit)
            floor = Fraction(int(row_minima.max()), losses.unit)
        else:
            subtrahends = row_minima
            shift = sum(map(mul, prior, row_minima.tolist()), ZERO) / losses.unit
            floor = shift
        reduced_losses = losses.subtract_from_rows(subtrahends)
        width, constant_outputs = _find_constant_channel(reduced_losses.floats, question)
        if prior is None:
            width -= float(floor - shift)
        is_constant_optimal = width <= 0
        if is_constant_optimal:
            # Constraints may exclude this channel. Then only the largest loss bounds the optimum.
            weights = 1.0 if prior is None else np.array([[float(p)] for p in prior])
            finite = np.where(np.isfinite(reduced_losses.floats), reduced_losses.floats, 0.0)
            width = float((weights * finite).max()) or 1.0
        scale = LossScale(floor, width)
        table = reduced_losses.scale_to_unit(scale.unit)
        return cls(table, scale.unit, shift, scale, constant_outputs, is_constant_optimal)

    def scale_loss(self, loss: Fraction) -> Fraction:
        """Convert a loss of the request to the scale.

        Args:
            loss: loss, or a limit on it, in the units of the request.
        """
        return (loss - self.shift) / Fraction(self.unit)

    def unscale_loss(self, scaled_loss: Fraction) -> Fraction:
        """Convert a loss in the scale to a loss of the request.

        Args:
            scaled_loss: loss, or a bound on it, in the units of `table`.
        """
        return scaled_loss * Fraction(self.unit) + self.shift


def _find_constant_channel(losses: Any, question: FiniteQuery) -> tuple[float, Any]:
    """Find the best channel with one output for every connected part of the neighbour relation.

    losses: floats, shape (k, m). An infinite loss marks a forbidden output, and counts as huge when
    the output is chosen.

    Returns (loss, outputs): its loss, and the column of the output of every input, shape (k,).
    """
    prior = question.prior
    weights = np.ones(question.k) if prior is None else np.array([float(p) for p in prior])
    is_forbidden = np.isinf(losses)
    if is_forbidden.any():
        finite_limit = np.finfo(float).max / (2 * question.k)
        losses = np.where(is_forbidden, finite_limit, losses)
    total = 0.0
    outputs = np.zeros(question.k, dtype=int)
    # Without listed pairs all inputs are neighbours, which is one part.
    parts = [slice(None)] if question.pairs is None else question.components
    for part in parts:
        if prior is None:
            output_losses = losses[part].max(axis=0)
            total = max(total, float(output_losses.min()))
        else:
            output_losses = weights[part] @ losses[part]
            total += float(output_losses.min())
        outputs[part] = int(output_losses.argmin())
    if is_forbidden.any():
        least_weight = weights.min(initial=1.0, where=weights > 0)
        if total >= finite_limit * least_weight:
            # Every constant output is forbidden for some input. The largest weighted loss is used.
            total = float((weights[:, None] * np.where(is_forbidden, 0.0, losses)).max())
    return total, outputs
