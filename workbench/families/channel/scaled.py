"""The losses of a channel in the scale of its request (`workbench.pipeline.loss_scale`).

    loss of a channel = unit * (loss at `table`) + shift

`shift` is what no channel can avoid: every input's least loss under a prior, the least of all where the worst input
counts. The best channel that ignores its input has one output for every connected part of the neighbour relation.
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
    """The losses `table`, their `unit` and `shift`, and the `scale` of the losses as they were given. constant: (k,)
    the output of every input in the best channel that ignores its input; constant_is_best: whether it costs no more
    than there is without privacy."""

    table: LossTable
    unit: float
    shift: Fraction
    scale: LossScale
    constant: Any
    constant_is_best: bool

    @classmethod
    def of(cls, losses: LossTable, question: FiniteQuery) -> ScaledLosses:
        """The losses of a question in their scale."""
        prior, least = question.prior, losses.values.min(axis=1)
        if prior is None:
            subtracted = np.full(least.shape, least.min(), dtype=object)
            shift, floor = Fraction(int(least.min()), losses.unit), Fraction(int(least.max()), losses.unit)
        else:
            subtracted = least
            shift = floor = sum(map(mul, prior, least.tolist()), ZERO) / losses.unit
        reduced = losses.less(subtracted)
        width, constant = _constant(reduced.floats, question)
        if prior is None:
            width -= float(floor - shift)
        constant_is_best = width <= 0
        if constant_is_best:  # which constraints may not allow: then the largest loss is all that is known
            weights = 1.0 if prior is None else np.array([[float(p)] for p in prior])
            finite = np.where(np.isfinite(reduced.floats), reduced.floats, 0.0)
            width = float((weights * finite).max()) or 1.0
        scale = LossScale(floor, width)
        return cls(reduced.over(scale.unit), scale.unit, shift, scale, constant, constant_is_best)

    def at_unit(self, loss: Fraction) -> Fraction:
        """A loss as one at the table."""
        return (loss - self.shift) / Fraction(self.unit)

    def loss(self, at_unit: Fraction) -> Fraction:
        """A loss, or a bound, at the table as one of the losses that were given."""
        return at_unit * Fraction(self.unit) + self.shift


def _constant(losses: Any, question: FiniteQuery) -> tuple[float, Any]:
    """(the loss, and the output of every input, of the best channel that has one output for every part of the
    relation)."""
    prior = question.prior
    weights = np.ones(question.k) if prior is None else np.array([float(p) for p in prior])
    forbidden = np.isinf(losses)
    if forbidden.any():
        largest = np.finfo(float).max / (2 * question.k)
        losses = np.where(forbidden, largest, losses)
    total, chosen = 0.0, np.zeros(question.k, dtype=int)
    for part in [slice(None)] if question.pairs is None else question.components:
        each = losses[part].max(axis=0) if prior is None else weights[part] @ losses[part]
        chosen[part] = int(each.argmin())
        total = max(total, float(each.min())) if prior is None else total + float(each.min())
    if forbidden.any() and total >= largest * weights.min(initial=1.0, where=weights > 0):
        total = float((weights[:, None] * np.where(forbidden, 0.0, losses)).max())
    return total, chosen
