"""Channels of the cells of a range, exactly: RR-on-Bins, mixtures of bins, and what any of them costs real answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from solvers.arrays import Integers, Vector
from workbench.exact.distribution import Distribution
from workbench.families.channel.losses import loss_table
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.repair import loss_of
from workbench.families.channel.request import ChannelRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.problem import Answer
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import on_bins
from workbench.mechanisms.range_query import RangeQuery, cell_loss


class GivenChannel(ChannelProblem):
    """A channel of a finite question, every two points neighbours: integers (k, m) and outputs, repaired."""

    def __init__(
        self, request: ChannelRequest, question: FiniteQuery, law: Any, outputs: tuple[Fraction, ...], name: str
    ) -> None:
        placed = question.placed(outputs)
        super().__init__(replace(request, question=placed, losses=loss_table(placed, request.loss)))
        self._law, self._name = law, name

    def closed_form(self) -> Answer:
        """The randomizer."""
        rows = Channel(tuple(map(Distribution.from_integers, self._law.tolist())))
        return Answer(self.request.channel(rows), None, None, self._name, (self._law, None))

    def oracle(self, answer: Answer) -> OracleVerdict:
        """None: the points are not the range."""
        return OracleVerdict.none("it is for a range.")

    def proven(self, reached: Design) -> Design:
        """What is proven is said of the range."""
        return reached


def law_of_bins(
    question: FiniteQuery, starts: Integers, values: Vector, epsilon: Fraction, delta: Fraction
) -> tuple[Any, tuple[Fraction, ...]]:
    """RR-on-Bins on points, which publishes the own bin's value with probability δ whatever it says: integers (k, m)
    and outputs."""
    labels = Labels(question.places[0], [float(p) for p in question.prior or ()])
    bins = on_bins(labels, starts, [float(f"{value:.12g}") for value in values], epsilon)
    outputs, at = np.unique(bins.outputs, return_inverse=True)  # two bins may publish one value
    rows = np.array([row.integers for row in map(bins.row, range(question.k))], dtype=object)
    law = np.zeros((question.k, outputs.size), dtype=object)
    np.add.at(law.T, at, rows.T)
    total, own = law.sum(axis=1), np.searchsorted(starts, np.arange(question.k), side="right") - 1
    law *= delta.denominator - delta.numerator
    law[np.arange(question.k), at[own]] += total * delta.numerator
    return law, tuple(map(Fraction, map(repr, outputs.tolist())))


def cost_of(reached: Design, cells: RangeQuery) -> Fraction:
    """What the channel costs, the rounding charged, exactly."""
    loss, outputs, rows, points = (
        str(reached.request.loss),
        reached.question.outputs,
        reached.mechanism.rows,
        cells.points,
    )

    if cells.weights is not None:
        parts = (w * _mean(rows[i], outputs, loss, at, width) for i, at, width, w in cells.pieces())
        return sum(parts, Fraction(0))
    if cells.edges is not None:
        sides = (FiniteQuery(ends, outputs, neighbours="all") for ends in (cells.ends[:-1], cells.ends[1:]))
        law = np.array([row.integers for row in rows], dtype=object)
        return max(loss_of(law, loss_table(side, loss), None) for side in sides)
    return worst_loss(zip(points, points[1:], rows, rows[1:], strict=False), outputs, loss)


def _mean(row: Distribution, outputs: Sequence[Fraction], loss: str, at: Fraction, width: Fraction) -> Fraction:
    return row.mean([cell_loss(loss, o - at, width) for o in outputs])


def worst_loss(
    pieces: Iterable[tuple[Fraction, Fraction, Distribution, Distribution]], outputs: Sequence[Fraction], loss: str
) -> Fraction:
    """The largest loss, absolute or squared, of an answer x on pieces (low, high, law at low, law at high), where the
    law is affine in x: parabolas between outputs, exactly."""

    def at_answer(at: Fraction, share: Fraction, laws: Sequence[Distribution]) -> Fraction:
        near, far = (_mean(law, outputs, loss, at, Fraction(0)) for law in laws)
        return (1 - share) * near + share * far

    def losses() -> Iterator[Fraction]:
        for low, high, *laws in pieces:
            inside = sorted({o for o in outputs if low < o < high}) if loss == "absolute" else ()
            for a, b in pairwise([low, *inside, high]):
                yield _highest(*(at_answer(at, (at - low) / (high - low), laws) for at in (a, (a + b) / 2, b)))

    return max(losses())


def _highest(first: Fraction, middle: Fraction, last: Fraction) -> Fraction:
    """The largest value of a parabola between its ends."""
    bend, slope = 2 * (first - 2 * middle + last), 4 * middle - 3 * first - last
    if bend < 0 < slope < -2 * bend:
        return first - slope**2 / (4 * bend)
    return max(first, last)
