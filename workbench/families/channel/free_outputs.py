"""The least-loss channel of all with real outputs: outputs chosen, with a bound that is exact and over all of them.

    cells ──▶ lower question ──▶ outputs it uses ──▶ channel on them ──▶ outputs moved to where they cost least
      ▲         (a bound)                                                   (mean, or Huber's)        │
      └──────────────────── anchors at these outputs, cells that are in use cut ◀─────────────────────┘

until bound and channel meet (`output_cells` says why they do), or nothing is gained. Every question on the way is a
finite one (`ChannelProblem`), under a notion of one bound on ratios that post-processing keeps, a prior or the worst
input.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from workbench.errors import NotProven
from workbench.families.channel.output_cells import lower, posterior_points
from workbench.families.channel.problem import CONSTANT, LARGE, ONE_OUTPUT, ChannelProblem
from workbench.families.channel.request import LEAST, ChannelRequest, ChannelTooLarge
from workbench.models.losses import Loss
from workbench.pipeline.design import Design
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import loss_table
from workbench.pipeline.problem import Problem
from workbench.pipeline.routes import Answer, Programs, Reason, Route, always, answer_by_routes
from workbench.pipeline.solve import ProblemSession
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Termination

_PARTS = (4, 2, 1)  # of the interval between two answers, at first
_COMPARED = 15_000  # masses of the first lower question; fewer parts where there would be more
_ROUNDS, _MOVES = 12, 4
_EASY, _WORK = (
    40_000,
    250_000,
)  # masses compared in a search: from which a looser gap ends it, and most of all
_SLACKS = 3  # with δ each mass counts so often
_CLOSE, _SAID = (
    5e-8,
    1e-6,
)  # relative gaps: that ends the search, from which a design says what is proven
_LOWER_GAP = (
    3e-8  # Relative gap of a lower question that is accepted: its bound is that of the search.
)
_LITTLE = 2e-9  # Gap, as a share of the width of the losses, up to which it is a design.
_USED = 1e-9  # A column whose largest mass is above this counts as used.
_DIGITS = 11  # of the range, that an output has
_LEAST = 0.2  # seconds of one program, where none are left
_APART = Fraction(1, 10**9)  # of the range, that two anchors are at least
_STOPPED = (Termination.INTERRUPTED, Termination.TIME_LIMIT)


class _Candidate(NamedTuple):
    """A channel on some outputs. points: where its columns cost least, of those in use."""

    request: ChannelRequest
    answer: Answer
    value: float
    points: list[Fraction]

    @property
    def stopped(self) -> bool:
        """Whether the solver was."""
        return self.answer.solution is not None and self.answer.solution.termination in _STOPPED


class FreeOutputsProblem(ChannelProblem):
    """The problem of a request whose outputs are free; its request, once answered, is that on the chosen outputs."""

    routes = (
        ONE_OUTPUT,
        Route(
            "linear loss",
            lambda problem: problem.why_not_table(),
            lambda problem, programs, start: problem.answer_on_table(),
        ),
        Route(
            "search over outputs",
            always,
            lambda problem, programs, start: problem.answer_by_search(),
        ),
    )

    def __init__(self, request: ChannelRequest) -> None:
        super().__init__(request)
        self._asked = request
        assert request.question.numbers is not None
        self._named, self._inputs = (
            request.losses.named or Loss("table"),
            request.question.numbers[0],
        )
        self._ends = min(self._inputs), max(self._inputs)
        width = self._ends[1] - self._ends[0]
        self._scale = request.scaled.scale
        self._work, self._deadline = 0, Deadline(request.how.options.time_limit)
        self._placed = {
            request.question.outputs: request
        }  # By outputs; those of a free question are its inputs.
        self._solved_on: dict[tuple[Fraction, ...], _Candidate] = {}
        self._interrupted = False  # whether Ctrl-C ended a program of the search
        self._digits, self._apart = _DIGITS - math.ceil(math.log10(width)), width * _APART

    def without_delta(self) -> Problem | None:
        """The same question with free outputs."""
        request = self._asked
        if request.per_distance or request.aim.minimise != "loss":
            return None
        return FreeOutputsProblem(request.with_values(delta=Fraction(0)))

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """Over all outputs, not those that were chosen: no loss is above the largest between the ends."""
        return ChannelProblem(self._asked).bound_at_delta(bound)

    def constant(self, below: float) -> Answer | None:
        """On the chosen outputs; on the inputs where none were chosen."""
        if self.request.question.free and not self.request.linear:
            self.request = self.outer = self._on(self._inputs)
        return super().constant(below)

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses on the answers, which are the outputs without privacy."""
        return self._scale if self.request.aim.minimise == "loss" else LossScale()

    def why_not_table(self) -> Reason:
        """Return why other outputs may have a smaller loss than the answers, or those of a table."""
        return None if self.request.linear else "the loss is not linear between outputs"

    def answer_on_table(self) -> Answer:
        """Return the answer on the answers, or the outputs of a table, between which the loss is linear."""
        return _answer(self.request)

    def answer_by_search(self) -> Answer:
        """Return the answer on the chosen outputs, with the bound over all real ones. Raises as `ChannelProblem`."""
        candidate, bound = self._searched()
        self.request = self.outer = candidate.request
        answer = replace(candidate.answer, bound=bound)
        if not self._interrupted:
            return answer
        if answer.solution is None:
            raise KeyboardInterrupt
        return replace(
            answer, solution=replace(answer.solution, termination=Termination.INTERRUPTED)
        )

    def words(self) -> list[str]:
        """How a table is read between its outputs."""
        sentence = "The loss is taken as linear between the outputs of its table; beyond them there are none."
        return super().words() + [sentence] * isinstance(self.request.aim.loss, tuple)

    def proven(self, reached: Design) -> Design:
        """The design, with what is proven of it. Raises NotProven, with the design."""
        solution, bound, loss = reached.solution, reached.bound, reached.objective
        done = solution is None or solution.termination in (
            Termination.OPTIMAL,
            Termination.GAP_LIMIT,
        )
        if reached.route == CONSTANT or not done or bound is None:
            return super().proven(reached)
        little = _LITTLE * (self.loss_scale.width or 1.0)
        if not (self.loss_scale.settles(loss, bound, self.ENOUGH) or loss - bound <= little):
            return super().proven(reached)
        if self.loss_scale.settles(loss, bound, _SAID):
            return reached
        words = f"The optimum over all real outputs lies between {bound:.9g} and {loss:.9g}."
        return replace(reached, words=(*reached.words, words))

    def _searched(self) -> tuple[_Candidate, Fraction | None]:
        """The best channel, and a bound on all; None where the first lower question is too large or stopped."""
        bound = None
        best = self._moved(self._inputs)
        anchors = self._first(best)
        for round_ in range(1, _ROUNDS + 1):
            if self._work > _WORK or self._deadline.passed:
                break
            try:
                below, shift = self._below(anchors)
                least = None if below.answer.bound is None else Fraction(below.answer.bound) - shift
                if least is not None and (bound is None or least > bound):
                    bound = least
                self._tell(round_, best, bound)
                if below.stopped or self._enough(best.value, bound):
                    break
                near = [*below.points, *self._beside(anchors, below), *_used(best)]
                candidate = self._moved(near)
            except (ChannelTooLarge, NotProven) as error:
                if getattr(error, "interrupted", False):
                    raise
                break
            gained = candidate.value < best.value - _CLOSE * abs(best.value)
            best = candidate if candidate.value < best.value else best
            if candidate.stopped or self._enough(best.value, bound):
                break
            new = [*candidate.points, *_used(candidate), *below.points, *_used(below)]
            more = self._spread(anchors, new)
            if len(more) == len(anchors) and not gained:
                break
            anchors = more
        return best, bound

    def _tell(self, round_: int, best: _Candidate, bound: Fraction | None) -> None:
        if (tell := self.request.how.progress) is not None:
            tell(f"outputs, round {round_}: loss {best.value:.9g}, bound {float(bound or 0):.9g}")

    def _enough(self, value: float, bound: Fraction | None) -> bool:
        close = _CLOSE if self._work <= _EASY else self.ENOUGH
        return bound is not None and value - float(bound) <= close * abs(value)

    def _first(self, best: _Candidate) -> list[Fraction]:
        """Anchors: the outputs of the best channel on the answers, moved, and what there is room for between them."""
        each = self.request.compared // self.request.question.m
        fits = (
            parts for parts in _PARTS if each * (parts * (len(self._inputs) - 1) + 2) <= _COMPARED
        )
        return self._spread(self._ends, [*best.points, *_used(best), *self._steps(next(fits, 0))])

    def _steps(self, parts: int) -> list[Fraction]:
        """So many parts of every interval between two answers."""
        return [
            a + (b - a) * i / parts for a, b in pairwise(sorted(self._inputs)) for i in range(parts)
        ]

    def _below(self, anchors: Sequence[Fraction]) -> tuple[_Candidate, Fraction]:
        """The channel at the tangents, and by how much its losses are above them. Raises ChannelTooLarge."""
        low = lower(self._inputs, anchors, self._named)
        placed = self.request.placed(low.knots, low.losses)
        if (
            placed.how.solver == "highs" and placed.how.options.algorithm is None
        ):  # one that is near enough, not the better one
            algorithm = "interior-point" if placed.compared >= LARGE else "simplex"
            with suppress(NotProven):  # where one algorithm's digits do not suffice both are asked
                return self._lower(
                    placed.with_options(replace(placed.how.options, algorithm=algorithm)), low.shift
                )
        return self._lower(placed, low.shift)

    def _lower(self, placed: ChannelRequest, shift: Fraction) -> tuple[_Candidate, Fraction]:
        if placed.aim.max_loss is None:
            return self._candidate(placed, _LOWER_GAP), shift
        return self._candidate(
            placed.with_values(max_loss=placed.aim.max_loss + shift), _LOWER_GAP
        ), Fraction(0)

    def _beside(self, anchors: Sequence[Fraction], below: _Candidate) -> list[Fraction]:
        """Where the worst input counts: anchors beside the knots in use, as no one weight of inputs says what costs
        least."""
        if self.request.question.prior is not None:
            return []
        at = [bisect_left(anchors, knot) for knot in _used(below)]
        return [anchors[i] for j in at for i in (j - 1, j, j + 1) if 0 <= i < len(anchors)]

    def _moved(self, outputs: Iterable[Fraction]) -> _Candidate:
        """The channel on outputs, which are moved to where its columns cost least while that gains anything."""
        best = self._at(outputs)
        for _ in range(0 if self.request.question.prior is None else _MOVES):
            moved = self._at(best.points)
            if not moved.value < best.value:
                break
            gain, best = best.value - moved.value, moved
            if gain <= _CLOSE * abs(best.value):
                break
        return best

    def _at(self, outputs: Iterable[Fraction]) -> _Candidate:
        kept = [
            *outputs,
            *(self._inputs if self.request.aim.max_loss is not None else ()),
        ]  # at which any loss is in reach
        points = tuple(self._spread((), kept))
        if points in self._solved_on:
            self._count_work(self._on(points))
        else:
            # Its bound is of no use, so that its loss need only be near its optimum.
            self._solved_on[points] = self._candidate(self._on(points), _CLOSE)
        return self._solved_on[points]

    def _on(self, outputs: tuple[Fraction, ...]) -> ChannelRequest:
        """Return what is asked, on these outputs."""
        if outputs not in self._placed:
            losses = loss_table(self._asked.question.placed(outputs), self._named.name)
            self._placed[outputs] = self._asked.placed(outputs, losses)
        return self._placed[outputs]

    def _count_work(self, request: ChannelRequest) -> None:
        """Add what a program compares to the work of the search."""
        self._work += request.compared * (_SLACKS if request.claim.delta else 1)

    def _candidate(self, request: ChannelRequest, gap: float) -> _Candidate:
        """Answer a request with its outputs, up to a relative gap."""
        self._count_work(request)
        left = self._deadline.left
        options = (
            request.how.options
            if left is None
            else replace(request.how.options, time_limit=max(_LEAST, left))
        )
        answer = _answer(request.with_options(options), gap)
        if answer.solution is not None and answer.solution.termination is Termination.INTERRUPTED:
            self._interrupted = True
        lossy = request.aim.max_loss is None
        value = (
            float(ChannelProblem(request).loss(answer.mechanism))
            if lossy
            else answer.claimed or 0.0
        )
        matrix = answer.mechanism.matrix
        weights = _weights(request, answer)[:, None] * matrix
        used = (matrix.max(axis=0) > _USED) & (weights.sum(axis=0) > 0)
        points = posterior_points(self._named, request.question.places[0], weights[:, used])
        return _Candidate(
            request, answer, value, [self._number(point) for point in points.tolist()]
        )

    def _number(self, point: float) -> Fraction:
        """A point of so many digits, among the answers."""
        scale = Fraction(10) ** self._digits
        return min(
            max(Fraction(round(Fraction(point) * scale)) / scale, self._ends[0]), self._ends[1]
        )

    def _spread(self, known: Iterable[Fraction], more: Iterable[Fraction]) -> list[Fraction]:
        """Known points and those of more that are not next to one, in order."""
        kept = sorted(known)
        for point in sorted({*more}):
            at = bisect_left(kept, point)
            if all(abs(point - near) >= self._apart for near in kept[max(at - 1, 0) : at + 1]):
                kept.insert(at, point)
        return kept


class FreeOutputsSession(ProblemSession):
    """The session of requests whose outputs are free."""

    def __init__(self, request: ChannelRequest) -> None:
        super().__init__(request, FreeOutputsProblem, LEAST)

    def _least(self, request: ChannelRequest, name: str, least: Fraction) -> Design:
        """The least ε, on the outputs chosen there."""
        reached = super()._least(request, name, least)
        outputs = reached.mechanism.labelled[1]
        losses = loss_table(request.question.placed(outputs), request.aim.loss)
        return replace(reached, request=reached.request.placed(outputs, losses))


def _answer(request: ChannelRequest, gap: float = 0.0) -> Answer:
    """Answer a request with its outputs. gap: the relative one from which no other algorithm is asked."""
    problem = ChannelProblem(request)
    problem.accepted_gap = gap
    programs = Programs(request.how.solver)
    try:
        return answer_by_routes(problem, problem.routes, programs, "cold")
    finally:
        programs.close()


def _used(channel: _Candidate) -> list[Fraction]:
    """The outputs in use."""
    used = channel.answer.mechanism.matrix.max(axis=0) > _USED
    outputs = channel.request.question.outputs
    return [o for o, each in zip(outputs, used, strict=True) if each and isinstance(o, Fraction)]


def _weights(request: ChannelRequest, answer: Answer) -> Vector:
    """What every input counts: the prior, or the multipliers of the largest loss; (k,)."""
    if request.weights is not None:
        return request.weights
    even, known, solution = np.ones(request.question.k), None, answer.solution
    if solution is not None and solution.row_dual is not None:
        rows = [block for block in solution.program.rows if block.name == "losses"]
        known = next((-solution.row_dual[row.start : row.start + row.size] for row in rows), None)
    weights = even if known is None or known.size != even.size else np.maximum(known, 0.0)
    return weights if weights.any() else even
