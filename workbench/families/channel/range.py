"""The least-loss channel for real answers in a range: a certified design, and a bound on all channels of the range.

A range [low, high] is cut into n cells of equal width h. Neighbouring answers differ by at most S, and c(r) is |r| or
r². One finite channel M is solved for each n, from n points to the outputs o that are listed:

               under a prior, uniform on each of its parts         where the worst answer counts
points x_i     the middles of the cells                            the ends of the cells
an answer x    goes to the middle of its cell                      goes at random to an end of its cell, with mean x
loss           Σ_i p_i Σ_o M(i, o) E c(o - x), x in cell i         max over x of the mean of both rows' losses at x

n is doubled until loss and bound are within 1 % of each other, or the time limit, or, without a time limit, a
program that takes longer than some seconds.

Privacy. The points of two neighbouring answers are at most ⌈S/h⌉ steps apart (the lemma of
`workbench.mechanisms.range_mechanism`), also where both answers are rounded with one random draw. M protects all such
pairs of points. So the law of an answer is a row of M, or a mixture of rows with the same shares as that of its
neighbour, and M's guarantee is that of all answers under every notion that mixing preserves.

Loss. It is exact, and includes the rounding: the mean of c(o - x) over a cell is `cell_loss`; of a mixture of two rows
the loss at x is a piece of a parabola, whose maximum is taken (`workbench.privacy.expected_error`).

Bound under a prior. Let V be the least loss of the finite question that has the points as answers, any real outputs,
points at most ⌊S/h⌋ h <= S apart as neighbours, and the cells' probabilities p as prior. For every shift t in [0, h)
the answers low + t + i h are this question moved by t - h/2, and moving answers and outputs together changes no loss.
Every private channel of the range is private on them, so Σ_i p_i loss(low + t + i h) >= V. A cell lies in one part of
the prior, where answers are uniform, so the expected loss is the mean of that sum over t, and is at least V.

Bound for the worst answer. The ends are some of the answers, so the largest loss is at least that of their question.

Listed outputs. Let outputs o_j be p apart, from the first point or before it to the last point or beyond. Clamping an
output to them brings it no further from any point. Then o = (1 - s) o_j + s o_j+1 becomes o_j+1 with probability s,
else o_j. This is post-processing, which keeps every notion that is taken here. The mean of (o' - x)² is then
(o - x)² + s (1 - s) p², so listed outputs have at most p²/4 more loss than real ones. The mean of |o' - x| is |o - x|
where no point lies strictly between two outputs, so for the absolute loss the points are enough.

Bins. Where all answers are neighbours, under a prior and at δ = 0, RR-on-Bins is the best of all channels with real
outputs (Ghazi et al. 2023, Theorem 5). So the shifted grids have up to 2^18 points, and the bins are the channel.

A channel of δ = 0 is private at every δ, and bounds at δ = 0 are bounds at δ after a small amount is taken off
(`lower_bound.gain_of_delta`). So bins, and for a small δ grids at δ = 0, come first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np

from workbench.errors import Infeasible, InvalidRequest, NotApplicable, NotProven, must
from workbench.exact.numbers import ONE, ZERO, Rationals
from workbench.families.channel.block_work import (
    NAME,
    BlocksSize,
    estimate_block_seconds,
    estimate_program_seconds,
    explain_memory_shortfall,
)
from workbench.families.channel.proof import bound_gain_of_delta
from workbench.families.channel.request import ChannelRequest, ChannelTooLarge
from workbench.mechanisms.label_randomizers.randomized_response import round_odds_down
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import optimal_bins
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Session, Values
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.problem import Problem
from workbench.pipeline.recommendation import RANGE_CHANNEL, Query, TimeShares, find_least_epsilon
from workbench.pipeline.request import Aim
from workbench.pipeline.requirements import is_hockey_stick
from workbench.pipeline.routes import Answer, Route, applies_always
from workbench.pipeline.solve import design_problem
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.expected_error import compute_expected_error
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import MAX_CELLS, RangeQuery, mean_cell_loss
from workbench.solvers.search import Deadline

_TARGET_GAP = Fraction(1, 100)  # The search ends at this relative gap between loss and bound.
_BIN_POINT_COUNTS = (
    1 << 15,
    1 << 18,
)  # Points of which bins are made, the larger number where the smaller is not close.
_MIN_CELLS = 8  # The first grid has about so many cells.
_MIN_CURVED_CELLS = 4  # The first grid under a notion that is no hockey stick has about so many.
_MAX_COARSE_CELLS = (
    32  # Where more cells are needed for S to be a whole number of them, coarser grids come first.
)
_MAX_PROGRAM_SECONDS = (
    10.0  # Without a time limit, no program is tried that takes longer, by estimate.
)
_BLOCK_GAP = 1e-5  # Relative gap at which the interior point of a grid stops.
_MIN_BLOCK_EPSILON = Fraction(
    1, 10**6
)  # Below this ε a grid is solved as a program, not by blocks.
_OUTPUT_SHARE = 0.002  # p²/4 is at most this share of the loss, where a loss is known.
_FIRST_PARTS = 4  # Outputs in each cell of the first grid, for the squared loss.
_WORST_PARTS = 2  # Outputs in each cell for the absolute loss of the worst answer.
_SMALL_DELTA = Fraction(1, 10**4)  # Up to this δ grids at δ = 0 come first.
_MIN_SECONDS = 0.2  # The time limit of a grid's program, where less is left.


class RangeSession(Session):
    """The session of a request for a range."""

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Return the best channel of all grids that were tried, with the best bound on all channels of the range."""
        request = self.request if point is None else self.request.at_point(point)
        assert isinstance(request, ChannelRequest)
        if request.claim.delta and request.claim.delta >= 1:
            must(
                "delta",
                "less than 1 for a range: there the answer itself may be published",
                float(request.claim.delta),
            )
        if request.aim.minimise == "epsilon":
            return design_least_epsilon(request)
        search = _RangeSearch(request)
        search.run()
        return search.design()


def bound_by_bins(request: Any) -> tuple[float, float]:
    """Return (bound, loss) of a range under a prior at δ = 0, with every two answers neighbours, by bins alone."""
    assert isinstance(request, ChannelRequest)
    search = _RangeSearch(request)
    search.try_bins()
    assert search.best is not None
    return float(search.bound), float(search.best[0])


class _RangeSearch:
    """The best channel so far, as (loss, its cells, its design), and the bound on all channels of the range."""

    def __init__(self, request: ChannelRequest) -> None:
        assert isinstance(request.question, RangeQuery)
        self.request = request
        self.question = request.question
        self.best: tuple[Fraction, RangeQuery, Design] | None = None
        self.bound = ZERO
        self._loss = parse_loss(str(request.aim.loss))
        self._power = 2 if self._loss.name == "squared" else 1
        self._deadline = Deadline(request.how.options.time_limit)
        self._is_stopped = False  # whether the time limit ended a program

    @property
    def is_close(self) -> bool:
        """Whether loss and bound are within 1 %."""
        return self.best is not None and self.best[0] - self.bound <= _TARGET_GAP * self.best[0]

    def run(self) -> None:
        """Try bins, then finer and finer grids, until loss and bound are close. Raises WorkbenchError."""
        request, question = self.request, self.question
        has_sticks = is_hockey_stick(request.claim.notion)
        has_bins = (
            has_sticks
            and question.has_all_neighbours
            and question.weights is not None
            and not question.has_user_cells
        )
        if has_bins:
            self.try_bins()
        elif has_sticks and request.claim.delta and request.claim.delta <= _SMALL_DELTA:
            self._refine(request.with_values(claim=Claim("pure", request.claim.epsilon)))
        if not self.is_close and (request.claim.delta or not has_bins):
            self._refine(request)
        self._try_constant()

    # Bins.

    def try_bins(self) -> None:
        """Take the best bins at δ = 0, whose loss on a grid of points is a bound as well."""
        delta = self.request.claim.delta or ZERO
        request = self.request.with_values(claim=Claim("pure", self.request.claim.epsilon))
        for count in _BIN_POINT_COUNTS:
            points = -(-count // self.question.part_count) * self.question.part_count
            values = self._bound_by_bins(points)
            outputs = [
                self.question.low + self._range_width * Fraction(f"{value:.12g}")
                for value in values
            ]
            if len(outputs) == 1:
                outputs *= 2
            self._record_nearest_outputs(
                request, tuple(outputs), round_odds_down(Fraction(request.claim.epsilon))[0]
            )
            if self.is_close or delta:
                break
        points = _MIN_CELLS * self.question.part_count
        while delta and points < _BIN_POINT_COUNTS[0]:
            self._bound_by_bins(points)
            points *= 2

    def _bound_by_bins(self, points: int) -> Any:
        """Raise the bound to that of the best bins of so many points, and return their outputs in [0, 1]."""
        prior = np.repeat(
            np.array([float(w) for w in self.question.weights or ()]),
            points // self.question.part_count,
        )
        bins = optimal_bins(
            (np.arange(points) + 0.5) / points, prior, float(self.request.claim.epsilon), self._loss
        )
        self._raise_bound(
            Fraction(max(bins.bound, 0.0)) * self._range_width**self._power, points, ZERO
        )
        return bins.values

    # Grids.

    def _refine(self, request: ChannelRequest) -> None:
        """Try more and more cells until loss and bound are close. Raises WorkbenchError where there is no channel.

        Args:
            request: that of the search, or the same at δ = 0, where its own loss and bound also end the search.
        """
        least_loss, bound = None, ZERO
        for count in _list_cell_counts(request):
            cells = self.question.with_cells(count)
            if self.best is not None:
                allowed = max(_MAX_PROGRAM_SECONDS, self._deadline.remaining_seconds or 0.0)
                if self._deadline.has_passed or not _is_quick(
                    request, cells, self._list_outputs(cells), allowed
                ):
                    break
            try:
                loss, below = self._try_grid(request, cells)
            except (ChannelTooLarge, InvalidRequest, NotProven) as error:
                if getattr(error, "interrupted", False):
                    raise
                if self.best is None and not isinstance(error, NotProven):
                    raise
                self._is_stopped = self._is_stopped or self._deadline.has_passed
                break
            least_loss = loss if least_loss is None else min(least_loss, loss)
            bound = max(bound, below)
            self._raise_bound(bound, len(cells.points), request.claim.delta or ZERO)
            if self.request.how.progress is not None and self.best is not None:
                words = f"loss {float(self.best[0]):.9g}, bound {float(self.bound):.9g}"
                self.request.how.progress(f"{count} cells: {words}")
            if self.is_close or least_loss - bound <= _TARGET_GAP * least_loss:
                break

    def _try_grid(self, request: ChannelRequest, cells: RangeQuery) -> tuple[Fraction, Fraction]:
        """Return the loss of the best channel of these cells, rounding included, and the bound of their points."""
        outputs = self._list_outputs(cells)
        upper, lower = (
            cells.finite_query(cells.max_point_distance, outputs),
            cells.lower_bound_query(outputs),
        )
        reached = self._solve_finite_question(request, upper)
        loss = self._record_design(reached, cells)
        if lower is None:
            return loss, ZERO
        if (lower.inputs, lower.pairs) != (upper.inputs, upper.pairs):
            reached = self._solve_finite_question(request.with_values(check="none"), lower)
        extra = ZERO
        if self._power == 2:
            extra = max(b - a for a, b in pairwise(outputs)) ** 2 / 4
        return loss, Fraction(reached.bound or 0) - extra

    def _list_outputs(self, cells: RangeQuery) -> Rationals:
        """Return the listed outputs of a grid."""
        if self._power == 1:
            return (
                cells.divided_ends(_WORST_PARTS) if cells.weights is None else tuple(cells.points)
            )
        parts = _FIRST_PARTS
        if self.best is not None:
            parts = math.ceil(
                float(cells.width) / math.sqrt(4 * _OUTPUT_SHARE * float(self.best[0]))
            )
        return cells.divided_ends(max(parts, 1))

    def _solve_finite_question(self, request: ChannelRequest, question: FiniteQuery) -> Design:
        """Return the best channel of a finite question, proven or not. Raises WorkbenchError."""
        left = self._deadline.remaining_seconds
        options = request.how.options
        if left is not None:
            options = replace(options, time_limit=max(_MIN_SECONDS, left))
        method = request.how.method
        if _uses_blocks(request):
            method = NAME
            options = replace(options, gap=_BLOCK_GAP if options.gap is None else options.gap)
        losses = make_loss_table(question, request.aim.loss)
        inner = request.with_values(
            question=question, losses=losses, method=method, options=options
        )
        try:
            reached: Design = inner.family.design_request(inner)
            return reached
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            self._is_stopped = self._is_stopped or self._deadline.has_passed
            unproven: Design = error.design
            return unproven

    # What was found.

    @property
    def _range_width(self) -> Fraction:
        return self.question.high - self.question.low

    def _raise_bound(self, bound: Fraction, points: int, delta: Fraction) -> None:
        """Raise the bound on all channels of the range.

        Args:
            bound: on the loss of so many points.
            points: number of points.
            delta: at which the bound holds: that of the request, or 0.
        """
        if delta != (self.request.claim.delta or ZERO):
            gain = bound_gain_of_delta(
                self.request.claim.epsilon, self.request.claim.delta or ZERO, points
            )
            bound -= gain * self._range_width**self._power
        self.bound = max(self.bound, bound)

    def _record_design(self, reached: Design, cells: RangeQuery) -> Fraction:
        """Return the loss of a design, and keep it where it is the least so far."""
        if isinstance(reached.mechanism, NearestOutputs):
            loss: Fraction = reached.details["loss"]
        else:
            loss = compute_rounded_loss(reached, cells)
        if self.best is None or loss < self.best[0]:
            self.best = loss, cells, reached
        return loss

    def _record_nearest_outputs(
        self, request: ChannelRequest, outputs: Rationals, odds: Fraction
    ) -> None:
        """Take the mechanism that makes the nearest of these outputs likelier."""
        nearest = NearestOutputs((self.question.low, self.question.high), outputs, 1, odds)
        self._record_design(design_problem(GivenMechanism(request, nearest)), self.question)

    def _try_constant(self) -> None:
        """Take the output that costs least whatever the answer is, where nothing cheaper was found."""
        output, loss = self.question.best_constant(self._loss.name)
        if self.best is None or self.best[0] > loss:
            self._record_nearest_outputs(self.request, (output, output), ONE)

    def design(self) -> Design:
        """Return what was found as a design of the range. Raises NotProven where the time limit ended the search."""
        assert self.best is not None
        loss, cells, reached = self.best
        bound = float(self.bound)
        mechanism, certificate, outputs = (
            reached.mechanism,
            reached.certificate,
            reached.question.outputs,
        )
        if isinstance(mechanism, NearestOutputs):
            outputs = mechanism.bins
            rounded = f"{len(mechanism.cells)} cells"
            how = f"It takes answers in {rounded}"
            route = "bins"
            if len({*outputs}) == 1:
                how = f"It publishes {float(outputs[0]):g} whatever the answer is"
                route = "constant"
        else:
            rounded = cells.points_text
            mechanism = cells.make_mechanism(mechanism)
            if (
                certificate is not None
            ):  # The loss and bias of the points are not those of the answers.
                certificate = Certificate(mechanism, certificate.claim, record=certificate.record)
            how = f"It takes answers rounded to {rounded}"
            route = f"grid of points, {reached.route}"
            if cells.weights is None:
                how = (
                    "It takes answers rounded at random to one of the two nearest, the answer being the mean, of "
                    f"{rounded}"
                )
        words = f"{how}. The loss includes the rounding. {self._describe_interval()}"
        words = " ".join((words, *getattr(mechanism, "column_cautions", ())))
        if reached.request.claim.delta != self.request.claim.delta:
            words += " It is private at delta = 0."
        chosen = self.request.with_values(
            question=cells.with_outputs(outputs), losses=reached.request.losses
        )
        none = OracleVerdict.without_formula("no closed form is known for a range.")
        details = {**reached.details, "loss": loss, "rounded": rounded, "solver": reached.solver}
        scale = LossScale(width=float(self.question.best_constant(self._loss.name)[1]))
        reported = replace(
            reached,
            request=chosen,
            mechanism=mechanism,
            certificate=certificate,
            claim=self.request.audited_claim,
            objective=float(loss),
            bound=bound,
            oracle=none,
            solution=None,
            words=(words,),
            details=details,
            route=route,
            scale=scale,
        )
        if self._is_stopped or (self._deadline.has_passed and not self.is_close):
            stopped = f"The search stopped at its time limit: incumbent {reported.objective:.9g}, bound {bound:.9g}."
            raise NotProven(stopped, incumbent=reported.objective, bound=bound, design=reported)
        return reported

    def _describe_interval(self) -> str:
        """Between which two numbers the least loss of all channels of the range lies."""
        assert self.best is not None
        interval = f"lies between {float(self.bound):.9g} and {float(self.best[0]):.9g}"
        near = "within 1 %" if self.is_close else "not proven within 1 %"
        return f"The least loss of any channel of the range at {self.request.budget_text} {interval} ({near})."


def _list_cell_counts(request: ChannelRequest) -> list[int]:
    """Return the numbers of cells to try: multiples of the prior's parts, such that the sensitivity is a whole number
    of cells where that is possible."""
    question = request.question
    assert isinstance(question, RangeQuery)
    if question.has_user_cells:
        return [question.cells]
    fewest = _MIN_CURVED_CELLS if request.has_several_bounds else _MIN_CELLS
    whole = math.lcm(
        ((question.high - question.low) / question.sensitivity).numerator, question.part_count
    )
    counts = _list_multiples(whole, fewest, MAX_CELLS)
    if whole > _MAX_COARSE_CELLS:
        counts = (
            _list_multiples(question.part_count, fewest, _MAX_COARSE_CELLS if counts else MAX_CELLS)
            + counts
        )
    return counts


def _list_multiples(step: int, fewest: int, most: int) -> list[int]:
    """Return the multiples of a step by powers of two and three times powers of two, in order."""
    powers = [1 << i for i in range(MAX_CELLS.bit_length())]
    factors = sorted(powers + [3 * power for power in powers])
    return [step * factor for factor in factors if fewest <= step * factor <= most]


def _uses_blocks(request: ChannelRequest) -> bool:
    """Whether grids are solved by blocks, as no solver or other method was asked for."""
    is_free = (
        request.how.method == "auto"
        and request.how.solver == "highs"
        and request.how.options.algorithm is None
    )
    return (
        is_free and not request.has_several_bounds and request.claim.epsilon >= _MIN_BLOCK_EPSILON
    )


def _is_quick(
    request: ChannelRequest, cells: RangeQuery, outputs: Rationals, allowed: float
) -> bool:
    """Whether the program of a grid is estimated to end within the allowed seconds, and fits into memory."""
    question = cells.finite_query(cells.max_point_distance, outputs)
    is_compact = (
        question.pairs is None and not request.claim.delta and not request.has_several_bounds
    )
    if request.how.method == NAME or _uses_blocks(request):
        pairs = None if is_compact else question.neighbour_pairs
        size = BlocksSize(
            question.k, question.m, pairs, question.k if request.claim.delta else None
        )
        return estimate_block_seconds(size) <= allowed and explain_memory_shortfall(size) is None
    compared = question.k if is_compact else len(question.neighbour_pairs)
    return estimate_program_seconds(2 * compared * question.m) <= allowed


class GivenMechanism(Problem):
    """Bins, or one output for all, as a problem of a request in which any two answers of the range are neighbours."""

    request: ChannelRequest
    routes = (
        Route("given mechanism", applies_always, lambda problem, programs, start: problem.answer),
    )

    def __init__(self, request: ChannelRequest, mechanism: NearestOutputs) -> None:
        super().__init__(request)
        self.answer = Answer(mechanism, None, None, "RR-on-Bins")
        weights = cast(RangeQuery, request.question).weights
        mean, worst, _ = mechanism.errors(str(request.aim.loss), weights or (Fraction(1),))
        self._loss = worst if weights is None else mean

    def compute_loss(self, mechanism: NearestOutputs) -> Fraction:
        """Exact."""
        return self._loss

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """None: it is one of many."""
        return OracleVerdict.without_formula("no closed form is known for a range.")

    def require_proof(self, design: Design) -> Design:
        """Return the design: what is proven is said of the range."""
        return design


def compute_rounded_loss(reached: Design, cells: RangeQuery) -> Fraction:
    """Return the exact loss of a channel of cells, rounding included: the expected one, or that of the worst answer."""
    loss, outputs, rows = (
        str(reached.request.aim.loss),
        reached.question.outputs,
        reached.mechanism.rows,
    )
    if cells.weights is None:
        worst = compute_expected_error(cells.make_mechanism(reached.mechanism), loss).worst_error
        assert worst is not None  # The loss is made of finitely many pieces.
        return worst
    total = ZERO
    for row, middle, weight in zip(rows, cells.points, cells.cell_weights, strict=True):
        total += weight * row.mean(
            [mean_cell_loss(loss, output - middle, cells.width) for output in outputs]
        )
    return total


def design_least_epsilon(request: ChannelRequest) -> Design:
    """The channel at the least ε found for the largest loss, as `recommend` seeks it. Raises Infeasible."""
    question, seconds = request.question, request.how.options.time_limit
    assert isinstance(question, RangeQuery)
    request.check_max_loss()
    aim = Aim(loss=str(request.aim.loss), minimise="epsilon", max_loss=request.aim.max_loss)
    time = None if seconds is None else TimeShares(seconds)
    query = Query(question=question, claim=request.claim, aim=aim, time=time)
    try:
        value = find_least_epsilon(query, RANGE_CHANNEL)
    except NotApplicable as error:
        raise Infeasible(
            f"Loss {request.loss_name} at most {float(query.aim.max_loss or 0):g}: {error}."
        ) from None
    assert value.design is not None  # certified
    reached = value.design()
    chosen = reached.request.with_values(
        minimise="epsilon", max_loss=request.aim.max_loss, options=request.how.options
    )
    reported = replace(reached, request=chosen, objective=value.objective, bound=value.bound)
    if value.is_stopped:
        words = f"The search stopped at its time limit: least epsilon {value.objective:.9g} so far."
        raise NotProven(words, incumbent=value.objective, bound=value.bound, design=reported)
    return reported
