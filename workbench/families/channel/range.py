"""The best channel for real answers in a range, by finite ones on points that are h apart: both bounds, exactly.

                  under a prior, uniform on each of its parts         where the worst answer counts
points            the middles m_i of cells of width h                 the ends x_i of cells of width h
an answer x       goes to the middle of its cell                      to an end of its cell, at random, x the mean
cost              Σ_i p_i Σ_o M(i, o) c(o - m_i), c the mean loss     max over x between x_i and x_i+1 of the mean of
                  of a cell (`cell_loss`)                             their rows' losses at x: pieces of parabolas
bound             for every offset t the answers low + t + i h are    the answers x_i are some of all
                  a finite question, the same for all t but for a
                  shift; the mean loss is the mean over t

Neighbours differ by S at most: their points by ⌈S/h⌉ h (with one draw for both if it is random; what mixes private
rows with the same shares is private), which M protects, while the bound may use ⌊S/h⌋ h only; where all answers are
neighbours so are all points. Where h divides S, or S is the whole range, cost and bound differ by O(h²) for most.

All neighbours under a prior, δ = 0: RR-on-Bins is the best of all with real outputs (Ghazi et al. 2023, Theorem 5), so
the finite questions are answered by their bins, on up to 2^15 points for the bound.

All neighbours, small δ: an (ε, δ)-private M on k points is near a pure one. With L = min_i M_i, N_i = min(M_i, e^ε L)
lacks at most η = (k - 1) δ of M_i, and N_i + (c + what it lacks) R_i is pure, times 1/(1 + c), where R is private for
ε - ln(1 + η/c). So the least loss at (ε, δ) is at least (1 + c) V(ε) - (c + η) loss(R): with R constant and
c = η/(e^ε - 1), or R the best at ε - ln 2 and c = η.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from models.oracles.bins import optimal_bins
from solvers.arrays import Integers, Vector
from solvers.search import Deadline
from workbench.errors import InvalidRequest, NotProven
from workbench.exact.distribution import Distribution
from workbench.families.base import Session, Values
from workbench.families.channel.losses import loss_table
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.request import ChannelRequest, ChannelTooLarge
from workbench.families.design import Design, OracleVerdict
from workbench.families.pipeline import design
from workbench.families.problem import Answer
from workbench.families.requirements import is_hockey_stick
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import on_bins
from workbench.mechanisms.range_query import MOST_CELLS, RangeQuery, cell_loss

_CELLS = (8, 16, 32, 64, 128, 12, 24, 48, 96)  # refined until cost and bound are close; not every refinement helps
_BINNED = (8, 16, 32, 64, 128, 256, 512, 1 << 11, 1 << 13, 1 << 15)  # above MOST_CELLS for the bound alone
_BY_TANGENTS = (4, 8)  # cells under a notion of several bounds
_CLOSE = 0.01  # of each other, relative
_MASSES = 33_000  # compared on the cells' own points; with δ half
_STEEP = 30  # ε up to which bins are known
_HALVED, _ROUNDED = 0.69314719, 1e-9  # a little more than ln 2; than floats lose
_SMALL = 1e-4  # δ up to which pure channels are worth the search by programs


class RangeSession(Session):
    """The session of a request for a range."""

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The best channel on the finest cells that are tried, with the best bound on all channels of the range."""
        request = self.request if point is None else self.request.at(point)
        assert isinstance(request, ChannelRequest)
        search = _Search(request)
        if search.pure is not None:
            search.refine(search.pure)
        if search.pure is None or (request.delta and not search.close):
            search.refine(request)
        return search.design()


class _Search:
    """The best channel so far, and the bound. pure: the request at δ = 0, where that helps."""

    def __init__(self, request: ChannelRequest) -> None:
        assert isinstance(request.question, RangeQuery)
        self.request, self.question = request, request.question
        self._deadline = Deadline(request.options.time_limit)
        self.best: tuple[Fraction, RangeQuery, Design] | None = None
        self.bound = Fraction(0)
        alike = self.question.local and is_hockey_stick(request.notion)
        few = self.question.weights is not None or (request.delta or 0) <= _SMALL
        self.pure = replace(request, notion="pure", delta=Fraction(0)) if alike and few else None

    @property
    def close(self) -> bool:
        """Whether cost and bound are."""
        return self.best is not None and self.best[0] - self.bound <= Fraction(_CLOSE) * self.best[0]

    @property
    def _constant(self) -> Fraction:
        return self.question.constant(str(self.request.loss))[1]

    def refine(self, request: ChannelRequest) -> None:
        """Try more and more cells until cost and bound are close. Raises WorkbenchError where there is no channel."""
        binned = request is self.pure and self.question.weights is not None and float(request.epsilon or 0) <= _STEEP
        for count in self._counts(request, binned):
            if self.best is not None and (
                self._deadline.passed or not (binned or _few(request, self.question.of(count)))
            ):
                break
            try:
                (self._binned if binned else self._solved)(request, count)
            except (ChannelTooLarge, InvalidRequest, NotProven) as error:
                if self.best is None or getattr(error, "interrupted", False):
                    raise
                break
            if request.progress is not None and self.best is not None:
                request.progress(f"{count} cells: loss {float(self.best[0]):.9g}, bound {float(self.bound):.9g}")
            if self.close:
                break

    def _counts(self, request: ChannelRequest, binned: bool) -> list[int]:
        """How many cells are tried: such that the sensitivity is so many cells, where that is possible."""
        question = self.question
        if question.given:
            return [question.cells]
        counts = _BINNED if binned else _BY_TANGENTS if request.cut else _CELLS
        whole = math.lcm(((question.high - question.low) / question.sensitivity).numerator, question.parts)
        for each in (whole, question.parts):
            dividing = [*dict.fromkeys(each * -(-count // each) for count in counts)]
            if binned or request.cut:
                break
            if few := [n for n in dividing if n <= MOST_CELLS and _few(request, question.of(n))]:
                return few
        return dividing

    def _solved(self, request: ChannelRequest, count: int) -> None:
        """By programs."""
        cells = self.question.of(count)
        reached = self._finite(request, cells.finite(cells.far))
        self._take(reached, cells)
        lower = cells.below()
        if lower is not None:
            same = (lower.inputs, lower.pairs) == (cells.inputs, cells.pairs)
            below = reached if same else self._finite(request, lower)
            self._prove(request, lower.k, Fraction(below.bound or 0))

    def _finite(self, request: ChannelRequest, question: FiniteQuery) -> Design:
        """The best channel of a finite question; proven or not. Raises WorkbenchError."""
        left = self._deadline.left
        options = request.options if left is None else replace(request.options, time_limit=max(0.2, left))
        inner = replace(request, question=question, losses=loss_table(question, request.loss), options=options)
        try:
            return inner.family.designed(inner)
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            unproven: Design = error.design
            return unproven

    def _binned(self, request: ChannelRequest, count: int) -> None:
        """By the best bins, whose loss is the bound as well."""
        question, epsilon = self.question, float(request.epsilon or 0)
        width = float(question.high - question.low) / count
        labels = float(question.low) + width * (np.arange(count) + 0.5)
        prior = np.repeat([float(w) for w in question.weights or ()], count // question.parts)
        loss = str(request.loss)
        bins = optimal_bins(labels, prior, epsilon, loss)
        if count <= MOST_CELLS:
            cells = question.of(count)
            self._take(design(_Bins(request, cells.finite(cells.far), bins.starts, bins.values)), cells)
        other = optimal_bins(labels, prior, epsilon - _HALVED, loss).objective if epsilon > 1 else math.inf
        self._prove(request, count, Fraction(bins.bound), other)

    def _take(self, reached: Design, cells: RangeQuery) -> None:
        cost = _cost(reached, cells)
        if self.best is None or cost < self.best[0]:
            self.best = cost, cells, reached

    def _prove(self, request: ChannelRequest, k: int, bound: Fraction, other: float = math.inf) -> None:
        """A bound on the channels of k points that the request takes, and what follows for all (module docstring).
        other: the least loss at ε - ln 2."""
        if delta := (self.request.delta or 0) - (request.delta or 0):
            eta = Fraction((k - 1) * delta)
            ways = [(eta / Fraction(math.expm1(float(request.epsilon or 0)) * (1 - _ROUNDED)), self._constant)]
            if other < math.inf:
                ways.append((eta, Fraction(other * (1 + _ROUNDED))))
            bound = max((1 + c) * bound - (c + eta) * loss for c, loss in ways)
        self.bound = max(self.bound, bound)

    def design(self) -> Design:
        """What was found, as a design of the range. Raises NotProven where the time is up."""
        assert self.best is not None
        (cost, cells, reached), bound = self.best, float(self.bound)
        gap = float((cost - self.bound) / cost)
        proven = "within 1 % of any channel" if self.close else f"not proven within 1 % of any channel ({gap:.2g})"
        nearest = (
            "at random to one of the two nearest, the answer being the mean, of" if cells.weights is None else "to"
        )
        words = f"It takes answers rounded {nearest} {cells.rounded}, which the loss charges; {proven} of the range"
        words += f" at {self.request.budget_words}."
        if reached.request.delta != self.request.delta:
            words += " It is private at delta = 0."
        chosen = replace(reached.request, question=cells.placed(reached.question.outputs), options=self.request.options)
        none = OracleVerdict.none("no closed form is known for a range.")
        details = {**reached.details, "loss": cost, "rounded": cells.rounded}
        reported = replace(reached, request=chosen, objective=float(cost), bound=bound, oracle=none, solution=None,
                        words=(words,), details=details)  # fmt: skip
        if self._deadline.passed and not self.close:
            words = f"The search stopped at its time limit: incumbent {reported.objective:.9g}, bound {bound:.9g}."
            raise NotProven(words, incumbent=reported.objective, bound=bound, design=reported)
        return reported


class _Bins(ChannelProblem):
    """RR-on-Bins on the points of a finite question, every two of them neighbours."""

    def __init__(self, request: ChannelRequest, question: FiniteQuery, starts: Integers, values: Vector) -> None:
        labels = Labels(question.places[0], [float(p) for p in question.prior or ()])
        bins = on_bins(labels, starts, [float(f"{value:.12g}") for value in values], request.epsilon or 0)
        outputs, at = np.unique(bins.outputs, return_inverse=True)  # two bins may publish one value
        rows = np.array([row.integers for row in map(bins.row, range(question.k))], dtype=object)
        self._law = np.zeros((question.k, outputs.size), dtype=object)
        np.add.at(self._law.T, at, rows.T)
        placed = question.placed(tuple(map(Fraction, map(repr, outputs.tolist()))))
        super().__init__(replace(request, question=placed, losses=loss_table(placed, request.loss)))

    def closed_form(self) -> Answer:
        """The randomizer."""
        rows = Channel(tuple(map(Distribution.from_integers, self._law.tolist())))
        return Answer(self.request.channel(rows), None, None, "RR-on-Bins", (self._law, None))

    def oracle(self, answer: Answer) -> OracleVerdict:
        """None: the points are not the range."""
        return OracleVerdict.none("it is for a range.")

    def proven(self, reached: Design) -> Design:
        """What is proven is said of the range."""
        return reached


def _few(request: ChannelRequest, cells: RangeQuery) -> bool:
    """Whether the program is one of moments."""
    pairs = cells.cells * (2 if cells.local and not request.delta else cells.far)
    return 2 * pairs * cells.cells <= (_MASSES // 2 if request.delta else _MASSES)


def _cost(reached: Design, cells: RangeQuery) -> Fraction:
    """What the channel costs, the rounding charged, exactly."""
    loss, outputs, rows, points = (
        str(reached.request.loss),
        reached.question.outputs,
        reached.mechanism.rows,
        cells.points,
    )

    def mean(row: Distribution, at: Fraction, width: Fraction) -> Fraction:
        return row.mean([cell_loss(loss, o - at, width) for o in outputs])

    if cells.prior is not None:
        each = (mean(row, at, cells.width) for row, at in zip(rows, points, strict=True))
        return sum((p * cost for p, cost in zip(cells.prior, each, strict=True)), Fraction(0))

    def between(at: Fraction, i: int) -> Fraction:
        share = (at - points[i]) / cells.width
        return (1 - share) * mean(rows[i], at, Fraction(0)) + share * mean(rows[i + 1], at, Fraction(0))

    def pieces() -> Iterator[Fraction]:
        for i, (low, high) in enumerate(pairwise(points)):
            inside = sorted({o for o in outputs if low < o < high}) if loss == "absolute" else ()
            for a, b in pairwise([low, *inside, high]):
                yield _highest(*(between(at, i) for at in (a, (a + b) / 2, b)))

    return max(pieces())


def _highest(first: Fraction, middle: Fraction, last: Fraction) -> Fraction:
    """The largest value of a parabola between its ends."""
    bend, slope = 2 * (first - 2 * middle + last), 4 * middle - 3 * first - last
    if bend < 0 < slope < -2 * bend:
        return first - slope**2 / (4 * bend)
    return max(first, last)
