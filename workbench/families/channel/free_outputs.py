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
from workbench.families.channel.output_cells import find_posterior_points, make_lower_question
from workbench.families.channel.problem import (
    MIN_INTERIOR_COMPARISONS,
    ONE_OUTPUT_NAME,
    ONE_OUTPUT_ROUTE,
    ChannelProblem,
)
from workbench.families.channel.request import MIN_EPSILON, ChannelRequest, ChannelTooLarge
from workbench.models.losses import Loss
from workbench.pipeline.design import Design
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.problem import Problem
from workbench.pipeline.routes import (
    Answer,
    Programs,
    Reason,
    Route,
    answer_by_routes,
    applies_always,
)
from workbench.pipeline.solve import ProblemSession
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Termination

_FIRST_PARTS_PER_INTERVAL = (4, 2, 1)  # of the interval between two answers, at first
_MAX_FIRST_COMPARISONS = (
    15_000  # masses of the first lower question; fewer parts where there would be more
)
_MAX_ROUNDS, _MAX_MOVES = 12, 4
_EASY_WORK, _MAX_WORK = (
    40_000,
    250_000,
)  # masses compared in a search: from which a looser gap ends it, and most of all
_WORK_PER_MASS_WITH_DELTA = 3  # with δ each mass counts so often
_SEARCH_GAP, _REPORTED_GAP = (
    5e-8,
    1e-6,
)  # relative gaps: that ends the search, from which a design says what is proven
_LOWER_GAP = (
    3e-8  # Relative gap of a lower question that is accepted: its bound is that of the search.
)
_NEGLIGIBLE_WIDTH_SHARE = (
    2e-9  # Gap, as a share of the width of the losses, up to which it is a design.
)
_MIN_USED_MASS = 1e-9  # A column whose largest mass is above this counts as used.
_OUTPUT_DIGITS = 11  # of the range, that an output has
_MIN_PROGRAM_SECONDS = 0.2  # seconds of one program, where none are left
_MIN_ANCHOR_DISTANCE_SHARE = Fraction(1, 10**9)  # of the range, that two anchors are at least
_STOPPED_TERMINATIONS = (Termination.INTERRUPTED, Termination.TIME_LIMIT)


class _Candidate(NamedTuple):
    """A channel on some outputs. points: where its columns cost least, of those in use."""

    request: ChannelRequest
    answer: Answer
    value: float
    points: list[Fraction]

    @property
    def is_stopped(self) -> bool:
        """Whether the solver was."""
        return (
            self.answer.solution is not None
            and self.answer.solution.termination in _STOPPED_TERMINATIONS
        )


class FreeOutputsProblem(ChannelProblem):
    """The problem of a request whose outputs are free; its request, once answered, is that on the chosen outputs."""

    routes = (
        ONE_OUTPUT_ROUTE,
        Route(
            "linear loss",
            lambda problem: problem.why_not_table(),
            lambda problem, programs, start: problem.answer_on_table(),
        ),
        Route(
            "search over outputs",
            applies_always,
            lambda problem, programs, start: problem.answer_by_search(),
        ),
    )

    def __init__(self, request: ChannelRequest) -> None:
        super().__init__(request)
        self._asked = request
        assert request.question.numbers is not None
        self._named, self._inputs = (
            request.losses.named_loss or Loss("table"),
            request.question.numbers[0],
        )
        self._ends = min(self._inputs), max(self._inputs)
        width = self._ends[1] - self._ends[0]
        self._scale = request.scaled_losses.scale
        self._work, self._deadline = 0, Deadline(request.how.options.time_limit)
        self._placed = {
            request.question.outputs: request
        }  # By outputs; those of a free question are its inputs.
        self._solved_on: dict[tuple[Fraction, ...], _Candidate] = {}
        self._interrupted = False  # whether Ctrl-C ended a program of the search
        self._digits, self._apart = (
            _OUTPUT_DIGITS - math.ceil(math.log10(width)),
            width * _MIN_ANCHOR_DISTANCE_SHARE,
        )

    def without_delta(self) -> Problem | None:
        """The same question with free outputs."""
        request = self._asked
        if request.is_per_distance or request.aim.minimise != "loss":
            return None
        return FreeOutputsProblem(request.with_values(delta=Fraction(0)))

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """Over all outputs, not those that were chosen: no loss is above the largest between the ends."""
        return ChannelProblem(self._asked).bound_at_delta(bound)

    def find_constant(self, loss_limit: float) -> Answer | None:
        """On the chosen outputs; on the inputs where none were chosen."""
        if self.request.question.has_free_outputs and not self.request.has_linear_loss:
            self.request = self.reported_request = self._place_outputs(self._inputs)
        return super().find_constant(loss_limit)

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses on the answers, which are the outputs without privacy."""
        return self._scale if self.request.aim.minimise == "loss" else LossScale()

    def why_not_table(self) -> Reason:
        """Return why other outputs may have a smaller loss than the answers, or those of a table."""
        return None if self.request.has_linear_loss else "the loss is not linear between outputs"

    def answer_on_table(self) -> Answer:
        """Return the answer on the answers, or the outputs of a table, between which the loss is linear."""
        return _answer_request(self.request)

    def answer_by_search(self) -> Answer:
        """Return the answer on the chosen outputs, with the bound over all real ones. Raises as `ChannelProblem`."""
        candidate, bound = self._search_outputs()
        self.request = self.reported_request = candidate.request
        answer = replace(candidate.answer, bound=bound)
        if not self._interrupted:
            return answer
        if answer.solution is None:
            raise KeyboardInterrupt
        return replace(
            answer, solution=replace(answer.solution, termination=Termination.INTERRUPTED)
        )

    def list_notes(self) -> list[str]:
        """How a table is read between its outputs."""
        sentence = "The loss is taken as linear between the outputs of its table; beyond them there are none."
        return super().list_notes() + [sentence] * isinstance(self.request.aim.loss, tuple)

    def require_proof(self, design: Design) -> Design:
        """The design, with what is proven of it. Raises NotProven, with the design."""
        solution, bound, loss = design.solution, design.bound, design.objective
        done = solution is None or solution.termination in (
            Termination.OPTIMAL,
            Termination.GAP_LIMIT,
        )
        if design.route == ONE_OUTPUT_NAME or not done or bound is None:
            return super().require_proof(design)
        little = _NEGLIGIBLE_WIDTH_SHARE * (self.loss_scale.width or 1.0)
        if not (self.loss_scale.settles(loss, bound, self.ACCEPTED_GAP) or loss - bound <= little):
            return super().require_proof(design)
        if self.loss_scale.settles(loss, bound, _REPORTED_GAP):
            return design
        words = f"The optimum over all real outputs lies between {bound:.9g} and {loss:.9g}."
        return replace(design, words=(*design.words, words))

    def _search_outputs(self) -> tuple[_Candidate, Fraction | None]:
        """The best channel, and a bound on all; None where the first lower question is too large or stopped."""
        bound = None
        best = self._move_outputs(self._inputs)
        anchors = self._choose_first_anchors(best)
        for round_ in range(1, _MAX_ROUNDS + 1):
            if self._work > _MAX_WORK or self._deadline.has_passed:
                break
            try:
                below, shift = self._solve_lower_question(anchors)
                least = None if below.answer.bound is None else Fraction(below.answer.bound) - shift
                if least is not None and (bound is None or least > bound):
                    bound = least
                self._report_round(round_, best, bound)
                if below.is_stopped or self._is_close(best.value, bound):
                    break
                near = [
                    *below.points,
                    *self._list_neighbouring_anchors(anchors, below),
                    *_list_used_outputs(best),
                ]
                candidate = self._move_outputs(near)
            except (ChannelTooLarge, NotProven) as error:
                if getattr(error, "interrupted", False):
                    raise
                break
            gained = candidate.value < best.value - _SEARCH_GAP * abs(best.value)
            best = candidate if candidate.value < best.value else best
            if candidate.is_stopped or self._is_close(best.value, bound):
                break
            new = [
                *candidate.points,
                *_list_used_outputs(candidate),
                *below.points,
                *_list_used_outputs(below),
            ]
            more = self._merge_points(anchors, new)
            if len(more) == len(anchors) and not gained:
                break
            anchors = more
        return best, bound

    def _report_round(self, round_: int, best: _Candidate, bound: Fraction | None) -> None:
        if (tell := self.request.how.progress) is not None:
            tell(f"outputs, round {round_}: loss {best.value:.9g}, bound {float(bound or 0):.9g}")

    def _is_close(self, value: float, bound: Fraction | None) -> bool:
        close = _SEARCH_GAP if self._work <= _EASY_WORK else self.ACCEPTED_GAP
        return bound is not None and value - float(bound) <= close * abs(value)

    def _choose_first_anchors(self, best: _Candidate) -> list[Fraction]:
        """Anchors: the outputs of the best channel on the answers, moved, and what there is room for between them."""
        each = self.request.comparison_count // self.request.question.m
        fits = (
            parts
            for parts in _FIRST_PARTS_PER_INTERVAL
            if each * (parts * (len(self._inputs) - 1) + 2) <= _MAX_FIRST_COMPARISONS
        )
        return self._merge_points(
            self._ends,
            [*best.points, *_list_used_outputs(best), *self._divide_intervals(next(fits, 0))],
        )

    def _divide_intervals(self, parts: int) -> list[Fraction]:
        """So many parts of every interval between two answers."""
        return [
            a + (b - a) * i / parts for a, b in pairwise(sorted(self._inputs)) for i in range(parts)
        ]

    def _solve_lower_question(self, anchors: Sequence[Fraction]) -> tuple[_Candidate, Fraction]:
        """The channel at the tangents, and by how much its losses are above them. Raises ChannelTooLarge."""
        low = make_lower_question(self._inputs, anchors, self._named)
        placed = self.request.with_outputs(low.knots, low.losses)
        if (
            placed.how.solver == "highs" and placed.how.options.algorithm is None
        ):  # one that is near enough, not the better one
            algorithm = (
                "interior-point"
                if placed.comparison_count >= MIN_INTERIOR_COMPARISONS
                else "simplex"
            )
            with suppress(NotProven):  # where one algorithm's digits do not suffice both are asked
                return self._solve_shifted_question(
                    placed.with_options(replace(placed.how.options, algorithm=algorithm)), low.shift
                )
        return self._solve_shifted_question(placed, low.shift)

    def _solve_shifted_question(
        self, placed: ChannelRequest, shift: Fraction
    ) -> tuple[_Candidate, Fraction]:
        if placed.aim.max_loss is None:
            return self._solve_candidate(placed, _LOWER_GAP), shift
        return self._solve_candidate(
            placed.with_values(max_loss=placed.aim.max_loss + shift), _LOWER_GAP
        ), Fraction(0)

    def _list_neighbouring_anchors(
        self, anchors: Sequence[Fraction], below: _Candidate
    ) -> list[Fraction]:
        """Where the worst input counts: anchors beside the knots in use, as no one weight of inputs says what costs
        least."""
        if self.request.question.prior is not None:
            return []
        at = [bisect_left(anchors, knot) for knot in _list_used_outputs(below)]
        return [anchors[i] for j in at for i in (j - 1, j, j + 1) if 0 <= i < len(anchors)]

    def _move_outputs(self, outputs: Iterable[Fraction]) -> _Candidate:
        """The channel on outputs, which are moved to where its columns cost least while that gains anything."""
        best = self._solve_on_outputs(outputs)
        for _ in range(0 if self.request.question.prior is None else _MAX_MOVES):
            moved = self._solve_on_outputs(best.points)
            if not moved.value < best.value:
                break
            gain, best = best.value - moved.value, moved
            if gain <= _SEARCH_GAP * abs(best.value):
                break
        return best

    def _solve_on_outputs(self, outputs: Iterable[Fraction]) -> _Candidate:
        kept = [
            *outputs,
            *(self._inputs if self.request.aim.max_loss is not None else ()),
        ]  # at which any loss is in reach
        points = tuple(self._merge_points((), kept))
        if points in self._solved_on:
            self._count_work(self._place_outputs(points))
        else:
            # Its bound is of no use, so that its loss need only be near its optimum.
            self._solved_on[points] = self._solve_candidate(
                self._place_outputs(points), _SEARCH_GAP
            )
        return self._solved_on[points]

    def _place_outputs(self, outputs: tuple[Fraction, ...]) -> ChannelRequest:
        """Return what is asked, on these outputs."""
        if outputs not in self._placed:
            losses = make_loss_table(self._asked.question.with_outputs(outputs), self._named.name)
            self._placed[outputs] = self._asked.with_outputs(outputs, losses)
        return self._placed[outputs]

    def _count_work(self, request: ChannelRequest) -> None:
        """Add what a program compares to the work of the search."""
        self._work += request.comparison_count * (
            _WORK_PER_MASS_WITH_DELTA if request.claim.delta else 1
        )

    def _solve_candidate(self, request: ChannelRequest, gap: float) -> _Candidate:
        """Answer a request with its outputs, up to a relative gap."""
        self._count_work(request)
        left = self._deadline.remaining_seconds
        options = (
            request.how.options
            if left is None
            else replace(request.how.options, time_limit=max(_MIN_PROGRAM_SECONDS, left))
        )
        answer = _answer_request(request.with_options(options), gap)
        if answer.solution is not None and answer.solution.termination is Termination.INTERRUPTED:
            self._interrupted = True
        lossy = request.aim.max_loss is None
        value = (
            float(ChannelProblem(request).compute_loss(answer.mechanism))
            if lossy
            else answer.claimed_objective or 0.0
        )
        matrix = answer.mechanism.matrix
        weights = _find_input_weights(request, answer)[:, None] * matrix
        used = (matrix.max(axis=0) > _MIN_USED_MASS) & (weights.sum(axis=0) > 0)
        points = find_posterior_points(
            self._named, request.question.coordinates[0], weights[:, used]
        )
        return _Candidate(
            request, answer, value, [self._round_output(point) for point in points.tolist()]
        )

    def _round_output(self, point: float) -> Fraction:
        """A point of so many digits, among the answers."""
        scale = Fraction(10) ** self._digits
        return min(
            max(Fraction(round(Fraction(point) * scale)) / scale, self._ends[0]), self._ends[1]
        )

    def _merge_points(self, known: Iterable[Fraction], more: Iterable[Fraction]) -> list[Fraction]:
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
        super().__init__(request, FreeOutputsProblem, MIN_EPSILON)

    def _design_least(self, request: ChannelRequest, name: str, least: Fraction) -> Design:
        """The least ε, on the outputs chosen there."""
        reached = super()._design_least(request, name, least)
        outputs = reached.mechanism.axis_labels[1]
        losses = make_loss_table(request.question.with_outputs(outputs), request.aim.loss)
        return replace(reached, request=reached.request.with_outputs(outputs, losses))


def _answer_request(request: ChannelRequest, gap: float = 0.0) -> Answer:
    """Answer a request with its outputs. gap: the relative one from which no other algorithm is asked."""
    problem = ChannelProblem(request)
    problem.accepted_gap = gap
    programs = Programs(request.how.solver)
    try:
        return answer_by_routes(problem, problem.routes, programs, "cold")
    finally:
        programs.close()


def _list_used_outputs(channel: _Candidate) -> list[Fraction]:
    """The outputs in use."""
    used = channel.answer.mechanism.matrix.max(axis=0) > _MIN_USED_MASS
    outputs = channel.request.question.outputs
    return [o for o, each in zip(outputs, used, strict=True) if each and isinstance(o, Fraction)]


def _find_input_weights(request: ChannelRequest, answer: Answer) -> Vector:
    """What every input counts: the prior, or the multipliers of the largest loss; (k,)."""
    if request.prior_weights is not None:
        return request.prior_weights
    even, known, solution = np.ones(request.question.k), None, answer.solution
    if solution is not None and solution.row_dual is not None:
        rows = [block for block in solution.program.rows if block.name == "losses"]
        known = next((-solution.row_dual[row.start : row.start + row.size] for row in rows), None)
    weights = even if known is None or known.size != even.size else np.maximum(known, 0.0)
    return weights if weights.any() else even
