"""Search for the real outputs of a channel, with an exact lower bound over all real outputs.

    cells ──▶ lower question ──▶ outputs it uses ──▶ channel on them ──▶ outputs moved
      ▲         (a bound)                                            (to the mean, or Huber's point)
      └─────────── anchors at these outputs, cells that are in use cut ◀────────┘

An *anchor* is a real number at which the loss is replaced by its tangent. A *cell* is an interval
of the range of the answers with one anchor in it; its ends are *knots*. For the answers 0, 1, 2 the
anchors may be 0, 1, 2; the knots are then 0, 0.5, 1.5, 2. A *lower question* has these tangents as
losses and the knots as outputs. Its optimum is a lower bound for all channels with real outputs
(`output_cells` has the proof). An output is in use if the channel publishes it with a probability
above 1e-9 for some answer.

The search ends when bound and loss meet, when a round improves nothing, or at a limit of
`_SearchLimits`, which has all tuning numbers. Every question on the way is a finite one
(`ChannelProblem`). The notion has one bound on ratios, which post-processing preserves.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from workbench.errors import NotProven
from workbench.families.channel.output_cells import find_posterior_points, make_lower_question
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.program_solver import MIN_INTERIOR_COMPARISONS
from workbench.families.channel.request import ChannelRequest, ChannelTooLarge
from workbench.models.losses import Loss
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.routes import Answer, Programs, answer_by_routes
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Termination

# A column whose largest mass is above this is in use.
_MIN_USED_MASS = 1e-9
_STOPPED_TERMINATIONS = (Termination.INTERRUPTED, Termination.TIME_LIMIT)


@dataclass(frozen=True)
class _SearchLimits:
    """The limits of a search.

    Attributes:
        first_parts: numbers of parts into which each interval between two answers is divided by
            the first anchors. The first number that `first_comparisons` allows is used.
        first_comparisons: largest number of compared masses of the first lower question.
        rounds: largest number of rounds.
        moves: largest number of times that outputs are moved in a round.
        work: no round begins after the programs have compared this many masses together.
        easy_work: until the programs have compared this many masses, the search ends at `gap`.
            Afterwards it ends at the wider gap that a design accepts.
        work_per_mass_with_delta: a compared mass counts this many times if δ > 0.
        gap: the search ends if loss and bound differ by at most this share of the loss.
        lower_gap: a lower question is solved by one algorithm only if its relative gap is at most
            this. A wider gap would lower the bound.
        output_digits: decimal digits of an output, relative to the range of the answers.
        anchor_distance: smallest distance of two anchors, as a share of the range of the answers.
            A point that is nearer to another one is left out.
        program_seconds: smallest time limit of a program in seconds, also if no time is left.
    """

    first_parts: tuple[int, ...] = (4, 2, 1)
    first_comparisons: int = 15_000
    rounds: int = 12
    moves: int = 4
    work: int = 250_000
    easy_work: int = 40_000
    work_per_mass_with_delta: int = 3
    gap: float = 5e-8
    lower_gap: float = 3e-8
    output_digits: int = 11
    anchor_distance: Fraction = Fraction(1, 10**9)
    program_seconds: float = 0.2


_LIMITS = _SearchLimits()


class Candidate(NamedTuple):
    """A channel on some outputs.

    Attributes:
        request: the request with these outputs.
        answer: answer to the request: the channel, the bound and the solver's solution.
        value: expected or worst-case loss of the channel. With a max_loss, the minimised δ or ε.
        points: for each output in use, the real number that would be the best output for the
            same column of masses.
    """

    request: ChannelRequest
    answer: Answer
    value: float
    points: list[Fraction]

    @property
    def is_stopped(self) -> bool:
        """Return whether the solver was stopped."""
        solution = self.answer.solution
        return solution is not None and solution.termination in _STOPPED_TERMINATIONS

    def list_used_outputs(self) -> list[Fraction]:
        """List the outputs in use."""
        are_used = self.answer.mechanism.matrix.max(axis=0) > _MIN_USED_MASS
        outputs = zip(self.request.question.outputs, are_used, strict=True)
        return [output for output, is_used in outputs if is_used and isinstance(output, Fraction)]


class OutputSearch:
    """A search for the best real outputs.

    Args:
        request: request whose outputs are free, with a loss that is squared, huber or a table.
        accepted_gap: relative gap that ends the search after much work.

    Attributes:
        is_interrupted: whether Ctrl-C ended a program of the search.
    """

    def __init__(self, request: ChannelRequest, accepted_gap: float) -> None:
        assert request.question.numbers is not None
        self.is_interrupted = False
        self._request = request
        self._accepted_gap = accepted_gap
        self._named_loss = request.losses.named_loss or Loss("table")
        self._inputs, _ = request.question.numbers
        self._lowest = min(self._inputs)
        self._highest = max(self._inputs)
        width = self._highest - self._lowest
        self._deadline = Deadline(request.how.options.time_limit)
        # Number of masses that the programs of the search have compared (`_SearchLimits.work`).
        self._work = 0
        # The outputs of a question with free outputs are its inputs.
        self._requests_by_outputs = {request.question.outputs: request}
        self._candidates_by_outputs: dict[tuple[Fraction, ...], Candidate] = {}
        # Outputs are rounded to this many decimals, and anchors are at least this far apart.
        self._decimals = _LIMITS.output_digits - math.ceil(math.log10(width))
        self._min_distance = width * _LIMITS.anchor_distance

    def run(self) -> tuple[Candidate, Fraction | None]:
        """Search until bound and loss meet, or until nothing improves.

        Returns:
            (best, bound): the best channel, and a lower bound on the loss (or the minimised δ or
            ε) of all channels with real outputs. The bound is None if no lower question gave one,
            because the first was too large or stopped without a bound.

        Raises:
            NotProven: the search was interrupted.
        """
        bound: Fraction | None = None
        best = self._move_outputs(self._inputs)
        anchors = self._choose_first_anchors(best)
        for round_number in range(1, _LIMITS.rounds + 1):
            if self._work > _LIMITS.work or self._deadline.has_passed:
                break
            try:
                lower, shift = self._solve_lower_question(anchors)
                if lower.answer.bound is not None:
                    new_bound = Fraction(lower.answer.bound) - shift
                    bound = new_bound if bound is None else max(bound, new_bound)
                self._report_round(round_number, best, bound)
                if lower.is_stopped or self._is_close(best.value, bound):
                    break
                neighbours = self._list_neighbouring_anchors(anchors, lower)
                candidate = self._move_outputs(
                    [*lower.points, *neighbours, *best.list_used_outputs()]
                )
            except (ChannelTooLarge, NotProven) as error:
                if getattr(error, "interrupted", False):
                    raise
                break
            has_improved = candidate.value < best.value - _LIMITS.gap * abs(best.value)
            if candidate.value < best.value:
                best = candidate
            if candidate.is_stopped or self._is_close(best.value, bound):
                break
            new_points = [*candidate.points, *candidate.list_used_outputs()]
            new_points += [*lower.points, *lower.list_used_outputs()]
            more_anchors = self._merge_points(anchors, new_points)
            if len(more_anchors) == len(anchors) and not has_improved:
                break
            anchors = more_anchors
        return best, bound

    def place_outputs(self, outputs: tuple[Fraction, ...]) -> ChannelRequest:
        """Return the request with listed outputs. Each request is built once.

        Args:
            outputs: increasing numbers.
        """
        if outputs not in self._requests_by_outputs:
            question = self._request.question.with_outputs(outputs)
            losses = make_loss_table(question, self._named_loss.name)
            self._requests_by_outputs[outputs] = self._request.with_outputs(outputs, losses)
        return self._requests_by_outputs[outputs]

    def place_on_inputs(self) -> ChannelRequest:
        """Return the request with the inputs as outputs."""
        return self.place_outputs(self._inputs)

    # Rounds.

    def _report_round(self, round_number: int, best: Candidate, bound: Fraction | None) -> None:
        """Report the loss and the bound of a round."""
        progress = self._request.how.progress
        if progress is not None:
            numbers = f"loss {best.value:.9g}, bound {float(bound or 0):.9g}"
            progress(f"outputs, round {round_number}: {numbers}")

    def _is_close(self, value: float, bound: Fraction | None) -> bool:
        """Return whether the bound is so close to the value that the search ends."""
        gap = _LIMITS.gap if self._work <= _LIMITS.easy_work else self._accepted_gap
        return bound is not None and value - float(bound) <= gap * abs(value)

    def _choose_first_anchors(self, best: Candidate) -> list[Fraction]:
        """Return the outputs of the best channel, and as many points between the answers as are
        allowed.
        """
        comparisons_per_output = self._request.comparison_count // self._request.question.m
        fitting_parts = 0
        for parts in _LIMITS.first_parts:
            # Every interval has `parts` anchors, and the last answer is one more. The outputs of
            # the lower question are the knots, one more than the anchors.
            knot_count = parts * (len(self._inputs) - 1) + 2
            if comparisons_per_output * knot_count <= _LIMITS.first_comparisons:
                fitting_parts = parts
                break
        points = [*best.points, *best.list_used_outputs()]
        points += self._divide_intervals(fitting_parts)
        return self._merge_points((self._lowest, self._highest), points)

    def _divide_intervals(self, parts: int) -> list[Fraction]:
        """Divide every interval between two answers into equal parts, and return the lower ends of
        the parts.
        """
        points = []
        for a, b in pairwise(sorted(self._inputs)):
            points += [a + (b - a) * i / parts for i in range(parts)]
        return points

    def _solve_lower_question(self, anchors: Sequence[Fraction]) -> tuple[Candidate, Fraction]:
        """Solve the lower question of the anchors.

        Returns (channel, shift): the shift must be subtracted from the bound of the channel. Raises
        ChannelTooLarge.
        """
        lower = make_lower_question(self._inputs, anchors, self._named_loss)
        request = self._request.with_outputs(lower.knots, lower.losses)
        options = request.how.options
        if request.how.solver == "highs" and options.algorithm is None:
            # The gap of one algorithm is small enough. Both are run only if it proves nothing.
            algorithm = "simplex"
            if request.comparison_count >= MIN_INTERIOR_COMPARISONS:
                algorithm = "interior-point"
            with suppress(NotProven):
                return self._solve_shifted_question(
                    request.with_options(replace(options, algorithm=algorithm)), lower.shift
                )
        return self._solve_shifted_question(request, lower.shift)

    def _solve_shifted_question(
        self, request: ChannelRequest, shift: Fraction
    ) -> tuple[Candidate, Fraction]:
        """Solve a question whose losses exceed the tangents by a shift, and return the shift of its
        bound.

        If the request limits the loss, the limit is shifted instead. The returned shift is then 0,
        because the bound is on δ or ε.
        """
        if request.aim.max_loss is None:
            return self._solve_candidate(request, _LIMITS.lower_gap), shift
        shifted_request = request.with_values(max_loss=request.aim.max_loss + shift)
        return self._solve_candidate(shifted_request, _LIMITS.lower_gap), Fraction(0)

    def _list_neighbouring_anchors(
        self, anchors: Sequence[Fraction], lower: Candidate
    ) -> list[Fraction]:
        """List the anchors beside the knots in use, for the worst-case loss.

        There, no single weight of the inputs determines the output of smallest loss.
        """
        if self._request.question.prior is not None:
            return []
        neighbours: list[Fraction] = []
        for knot in lower.list_used_outputs():
            position = bisect_left(anchors, knot)
            neighbours += anchors[max(position - 1, 0) : position + 2]
        return neighbours

    # Channels on given outputs.

    def _move_outputs(self, outputs: Iterable[Fraction]) -> Candidate:
        """Return the best channel on some outputs, or on outputs derived from them.

        Under a prior every output in use is moved to the point of smallest posterior loss, and the
        channel is solved again, as long as this improves it.
        """
        best = self._solve_on_outputs(outputs)
        if self._request.question.prior is None:
            return best
        for _ in range(_LIMITS.moves):
            candidate = self._solve_on_outputs(best.points)
            if not candidate.value < best.value:
                break
            gain = best.value - candidate.value
            best = candidate
            if gain <= _LIMITS.gap * abs(best.value):
                break
        return best

    def _solve_on_outputs(self, outputs: Iterable[Fraction]) -> Candidate:
        """Return the best channel on outputs, which is computed once."""
        points = [*outputs]
        if self._request.aim.max_loss is not None:
            # Any loss can be reached with the inputs as outputs.
            points += self._inputs
        key = tuple(self._merge_points((), points))
        request = self.place_outputs(key)
        if key in self._candidates_by_outputs:
            self._count_work(request)
        else:
            # The bound of listed outputs is not used, so their loss need only be near its optimum.
            self._candidates_by_outputs[key] = self._solve_candidate(request, _LIMITS.gap)
        return self._candidates_by_outputs[key]

    def _count_work(self, request: ChannelRequest) -> None:
        """Add the compared masses of a program to the work of the search."""
        weight = _LIMITS.work_per_mass_with_delta if request.claim.delta else 1
        self._work += request.comparison_count * weight

    def _solve_candidate(self, request: ChannelRequest, gap: float) -> Candidate:
        """Return the best channel of a request with listed outputs, up to a relative gap."""
        self._count_work(request)
        options = request.how.options
        seconds_left = self._deadline.remaining_seconds
        if seconds_left is not None:
            options = replace(options, time_limit=max(_LIMITS.program_seconds, seconds_left))
        answer = answer_listed_outputs(request.with_options(options), gap)
        solution = answer.solution
        if solution is not None and solution.termination is Termination.INTERRUPTED:
            self.is_interrupted = True
        if request.aim.max_loss is None:
            value = float(ChannelProblem(request).compute_loss(answer.mechanism))
        else:
            value = answer.claimed_objective or 0.0
        matrix = answer.mechanism.matrix
        weights = _find_input_weights(request, answer)[:, None] * matrix
        is_used = (matrix.max(axis=0) > _MIN_USED_MASS) & (weights.sum(axis=0) > 0)
        inputs, _ = request.question.coordinates
        points = find_posterior_points(self._named_loss, inputs, weights[:, is_used])
        best_outputs = [self._round_output(point) for point in points.tolist()]
        return Candidate(request, answer, value, best_outputs)

    def _round_output(self, point: float) -> Fraction:
        """Round a point to few decimal digits, within the range of the answers."""
        scale = Fraction(10) ** self._decimals
        output = Fraction(round(Fraction(point) * scale)) / scale
        return min(max(output, self._lowest), self._highest)

    def _merge_points(
        self, points: Iterable[Fraction], new_points: Iterable[Fraction]
    ) -> list[Fraction]:
        """Return points in order, with the new points that are not too near to another one."""
        all_points = sorted(points)
        for point in sorted({*new_points}):
            position = bisect_left(all_points, point)
            neighbours = all_points[max(position - 1, 0) : position + 1]
            if all(abs(point - neighbour) >= self._min_distance for neighbour in neighbours):
                all_points.insert(position, point)
        return all_points


def answer_listed_outputs(request: ChannelRequest, gap: float = 0.0) -> Answer:
    """Return the answer to a request by the routes of listed outputs.

    Args:
        request: request for a channel. Free outputs count as their list, the inputs.
        gap: relative gap at which no other algorithm is tried.
    """
    problem = ChannelProblem(request)
    problem.accepted_gap = gap
    programs = Programs(request.how.solver)
    try:
        return answer_by_routes(problem, problem.routes, programs, "cold")
    finally:
        programs.close()


def _find_input_weights(request: ChannelRequest, answer: Answer) -> Vector:
    """Return the weight of every input, shape (k,): the prior, or the multipliers of the worst-case
    loss. They are uniform if the answer has no multipliers.
    """
    if request.prior_weights is not None:
        return request.prior_weights
    uniform = np.ones(request.question.k)
    solution = answer.solution
    if solution is None or solution.row_dual is None:
        return uniform
    for block in solution.program.rows:
        if block.name == "losses":
            # The rows are at most the largest loss, so their dual values are at most 0.
            multipliers = -solution.row_dual[block.start : block.start + block.size]
            weights = np.maximum(multipliers, 0.0)
            return weights if weights.size == uniform.size and weights.any() else uniform
    return uniform
