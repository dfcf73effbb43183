"""Neighbours in part of a range at δ = 0: designs and bounds by extreme rays (`models.ray_channel`).

          rows                              losses that count                                  what is summed
design    cells, under a prior              the mean one of cells                              every row
          ends of cells, the worst answer   at the ends and half-way between them, where       every row
                                            the law is that of both ends (`range_points`)
bound     points h/r apart                  at the points, their offset any, as `range` says   means by hats, 2 h wide

The rows are made exactly private in integers, as those of any channel, and what they cost is exact. Where the prior is
even, its rows are mixed with their reflections.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from models.ray_channel import RayChannel
from solvers.arrays import Positions, Vector
from solvers.search import Deadline
from workbench.errors import NotProven
from workbench.exact.numbers import Rationals
from workbench.families.channel.range_points import Points, by_points, fits
from workbench.families.channel.repair import to_integers
from workbench.families.channel.request import ChannelRequest
from workbench.families.problem import Answer
from workbench.mechanisms.range_query import MOST_CELLS, RangeQuery

_STEEP, _FLAT = 12, (0.01, 0.5)  # ε that doubles take; from which blocks are farther off, for the worst answer
_CELLS = (8, 16, 32, 64, 128, 12, 24, 48, 96)  # by programs, until cost and bound are close; not all of them help
_BINNED = (8, 16, 32, 64, 128, 256, 512, 1 << 11, 1 << 13, 1 << 15, 1 << 18)  # points that bins are made of
_BY_TANGENTS = (4, 8)  # cells under a notion of several bounds
_FEWEST, _MOST = 16, 200  # cells of a design, at most where the worst answer counts
_FINE, _BOUNDED = (8, 4), (64, 160, 96)  # r; cells up to which it is the first; cells of a bound, of a worst answer
_WIDE = 4  # sensitivities in a range, from which blocks (`range_points`) take longer for the worst answer
_MEANS = 8  # multipliers of a bound in a sensitivity, at most
_GAP, _NEAR = (5e-4, 2e-3), 0.993  # of a bound, of a design; share of its loss that a bound is, which is enough
_OFF, _OUTPUTS = 1e-3, 2_000  # p²/4 as a share of the bound, and 1/p at most
_USED = 1e-9


class GivenRows(Points):
    """The rows of a channel of points, in floats, as a problem of a request for its outputs."""

    def __init__(self, request: ChannelRequest, rows: Vector) -> None:
        super().__init__(request)
        self._rows = rows

    def closed_form(self) -> Answer:
        """The rows."""
        law = to_integers(self._rows), None
        return Answer(self.request.channel(self._rows), None, None, "exact repair, extreme rays", law)


def by_rays(request: ChannelRequest) -> bool:
    """Whether a request for a range is one that this file is for."""
    q = request.question
    assert isinstance(q, RangeQuery)
    if q.local or request.cut or request.delta or request.per_distance:
        return False
    if q.weights is None and (q.given or _WIDE * q.sensitivity > q.high - q.low):
        return False
    free = request.solver == "highs" and request.options.algorithm is None and request.method == "auto"
    return free and request.runs == 1 and _FLAT[q.weights is None] <= request.epsilon <= _STEEP


def counts_of(request: ChannelRequest, binned: bool) -> list[int]:
    """How many cells are tried: such that the sensitivity is so many cells, where that is possible. binned: by bins."""
    question = request.question
    assert isinstance(question, RangeQuery)
    if question.given:
        return [question.cells]
    whole = math.lcm(((question.high - question.low) / question.sensitivity).numerator, question.parts)
    if not binned and by_rays(request):
        most = MOST_CELLS if question.weights else _MOST
        each = whole if whole <= most else question.parts
        few, first = (part * -(-_FEWEST // part) for part in (question.parts, each))
        doubled = [first << turn for turn in range(MOST_CELLS.bit_length()) if not turn or first << turn <= most]
        return [few, *doubled] if first > 2 * few else doubled
    counts = _BINNED if binned else _BY_TANGENTS if request.cut else _CELLS
    for each in (whole, question.parts):
        dividing = [*dict.fromkeys(each * -(-count // each) for count in counts)]
        if binned or request.cut:
            break
        if fit := [n for n in dividing if n <= MOST_CELLS and fits(request, question.of(n))]:
            return sorted({*fit, *(_CELLS[:3] if each > _CELLS[2] else ())}) if by_points(request) else fit
    return dividing


class Rays:
    """The search of one request, in units of the range."""

    def __init__(self, request: ChannelRequest, deadline: Deadline) -> None:
        question = request.question
        assert isinstance(question, RangeQuery)
        self._low, self._width = question.low, question.high - question.low
        self._reach, self._deadline = question.sensitivity / self._width, deadline
        self._squared, self._epsilon = request.losses.name == "squared", float(request.epsilon)
        self._worst, weights = question.weights is None, question.weights or (Fraction(1),)
        self._shares = (4 - 2 * self._squared) if self._worst else 1  # of a cell, where losses count
        self._weights, self._even = np.array([*map(float, weights)]), weights == weights[::-1]
        self._bound, self._steps = 0.0, np.empty((0, 0), dtype=int)  # of the last design's rays

    def bound(self, count: int) -> float:
        """The best number known that no channel of the range costs less than, from so many cells where they are not too
        many."""
        means = min(count, math.ceil(_MEANS / self._reach))  # multipliers
        r = min(_FINE[count > _BOUNDED[0]], max(2, _FINE[0] * means // count))
        apart = math.floor(self._reach * count * r)
        if not apart or (self._bound and count > _BOUNDED[1 + self._worst]):
            return self._bound
        points = self._points(count * r)
        hats = np.maximum(0.0, 1 - np.abs(points * means - np.arange(means + 1)[:, None]))
        sums = sp.csr_array(hats / hats.sum(axis=1, keepdims=True))
        outputs = (
            self._outputs(2 * count) if self._squared else points[: -(-points.size // 2) if self._even else points.size]
        )
        model = self._model(points, points, sp.csr_array(sp.eye_array(points.size)), sums, sums, apart, outputs)
        point = model.solve(_GAP[0], deadline=self._deadline)
        if point is None:
            return self._bound
        if self._squared:
            steps = math.ceil(1 / math.sqrt(4 * _OFF * max(point.bound, 1 / _OUTPUTS**2)))
            outputs = self._outputs(min(steps, _OUTPUTS))
        self._bound = max(self._bound, model.proven(point, outputs))
        return self._bound

    def channel(self, count: int) -> tuple[Rationals, Vector]:
        """(outputs, rows) of a channel of so many cells, or of their ends, that costs little more than the bound or is
        the best of its kind. Raises NotProven."""
        points, places = self._points(count), self._points(self._shares * count)
        laws = np.eye(points.size)
        if self._worst:
            laws = np.stack([np.interp(places, points, law) for law in laws], axis=1)
        rows, losses = sp.csr_array(sp.eye_array(points.size)), sp.csr_array(sp.eye_array(places.size))
        width, apart = 0.0 if self._worst else 1 / count, math.ceil(self._reach * count)
        model = self._model(points, places, sp.csr_array(laws), losses, rows, apart, self._outputs(2 * count))
        model = replace(model, width=width)
        point = model.solve(_GAP[1], self._bound / _NEAR, self._refined(count), self._deadline)
        if point is None:
            raise NotProven("The search stopped at its time limit.", bound=None)
        used = point.shares > _USED
        self._steps = point.columns.steps[:, used]
        return self._laws(point.columns.outputs[used], model.rays(self._steps) * point.shares[used])

    def _laws(self, outputs: Vector, masses: Vector) -> tuple[Rationals, Vector]:
        """The rows of rays at outputs, those of one output together."""
        if self._even:
            outputs, masses = np.append(outputs, 1 - outputs), np.concatenate([masses, masses[::-1]], axis=1) / 2
        values, column = np.unique(outputs, return_inverse=True)
        rows = np.asarray(masses @ sp.csr_array((np.ones(column.size), (np.arange(column.size), column))))
        return tuple(self._low + self._width * Fraction(value) for value in values.tolist()), rows

    def _refined(self, count: int) -> Positions | None:
        """The last design's rays on twice as many cells, their steps where they were, or on either side."""
        known = len(self._steps) - self._worst
        if count != 2 * known:
            return None
        if not self._worst:
            return np.repeat(self._steps, 2, axis=0)
        return np.concatenate([np.repeat(self._steps, 2, axis=0)[end:][: count + 1] for end in (0, 1)], axis=1)

    def _points(self, count: int) -> Vector:
        """The middles of so many cells, or their ends."""
        return np.arange(count + 1) / count if self._worst else (2 * np.arange(count) + 1) / (2 * count)

    def _outputs(self, steps: int) -> Vector:
        """Outputs at so many equal steps, about; of one half where that is enough."""
        return np.linspace(0, 0.5, -(-steps // 2) + 1) if self._even else np.linspace(0, 1, steps + 1)

    def _model(
        self,
        points: Vector,
        places: Vector,
        laws: sp.csr_array,
        losses: sp.csr_array,
        sums: sp.csr_array,
        apart: int,
        outputs: Vector,
    ) -> RayChannel:
        """losses: D where the worst answer counts."""
        if not self._worst:
            each = points.size // self._weights.size
            losses = sp.csr_array(np.repeat(self._weights / each, each)[None])
        if self._even:
            losses, sums = _folded(losses), _folded(sums)
        return RayChannel(points, places, laws, losses, sums, self._squared, 0.0, apart, self._epsilon, outputs)


def _folded(rows: sp.csr_array) -> sp.csr_array:
    """The means of rows and their reflections, each once."""
    dense = rows.toarray()
    return sp.csr_array(((dense + dense[:, ::-1]) / 2)[: -(-len(dense) // 2)])
