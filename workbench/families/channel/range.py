"""Design channels for real answers in a range: a certified channel, and a lower bound on the loss
of all channels of the range.

Notation: the range [low, high] is cut into n cells of equal width h. Neighbouring answers differ by
at most S, the sensitivity. The loss of output o for answer x is c(o - x) with c(r) = |r| or r². One
finite channel M is designed for each n, from points x_i to listed outputs o. p_i is the probability
of cell i under the prior, and E the mean over answers x that are uniform in the cell:

               under a prior, uniform on its parts           for the worst-case loss
points x_i     the n middles of the cells                    the n + 1 ends of the cells
an answer x    goes to the middle of its cell                goes to a random end, with mean x
loss           Σ_i p_i Σ_o M(i, o) E c(o - x), x in cell i   max over x of both rows' mean loss

n is increased, by a factor of at most 2 each time, until loss and bound are within 1 % of each
other, or until the time limit. Without a time limit, it is increased until a program would take
more than 10 seconds.

Privacy. The points of two neighbouring answers are at most ⌈S/h⌉ steps apart (the lemma of
`workbench.mechanisms.range_mechanism`), also if both answers are rounded with one random draw. M
protects all such pairs of points. So the law of an answer is a row of M, or a mixture of rows with
the same shares as that of its neighbour. M's guarantee therefore holds for all answers, under every
notion that mixing preserves.

Loss. It is exact, and includes the rounding: the mean of c(o - x) over a cell is `mean_cell_loss`.
For a mixture of two rows the loss at x is a piece of a parabola, whose maximum is taken
(`workbench.privacy.expected_error`).

Bound. The smallest loss V of the finite question of the points, with any real outputs, is a lower
bound for all channels of the range (`_RangeSearch._try_grid` has the proof). The program of a grid
has listed outputs, which have slightly more loss (`_RangeSearch._list_outputs`).

Bins. If all answers are neighbours, under a prior and at δ = 0, RR-on-Bins (randomized response on
bins) gives V without a program (`_RangeSearch.try_bins`).

A channel that is private at δ = 0 is private at every δ. A bound at δ = 0 becomes a bound at δ
after a small amount is subtracted (`proof.bound_gain_of_delta`). So bins, and for a small δ grids
at δ = 0, come first.

Where to change: the sizes of grids are in `range_grids`; a further loss needs `mean_cell_loss`, its
expected error, and `_list_outputs` here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from workbench.errors import Infeasible, InvalidRequest, NotApplicable, NotProven, must
from workbench.exact.numbers import ONE, ZERO, Rationals
from workbench.families.channel.block_work import BLOCK_METHOD
from workbench.families.channel.proof import bound_gain_of_delta
from workbench.families.channel.range_grids import (
    MIN_CELLS,
    is_quick,
    list_cell_counts,
    uses_blocks,
)
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
from workbench.questions.range_query import RangeQuery, mean_cell_loss
from workbench.solvers.search import Deadline

# The search ends at this relative gap between loss and bound.
_TARGET_GAP = Fraction(1, 100)
# Bins are made on this many points. The larger number is used if the smaller one leaves a gap.
_BIN_POINT_COUNTS = (1 << 15, 1 << 18)
# A program with a longer estimated runtime is not solved unless the time limit allows it.
_MAX_PROGRAM_SECONDS = 10.0
# The time limit of a grid's program is at least this.
_MIN_PROGRAM_SECONDS = 0.2
# The interior-point method of a grid stops at this relative gap.
_BLOCK_GAP = 1e-5
# Listed outputs are so dense for the squared loss that g²/4, which they add to the loss, is at most
# this share of it.
_OUTPUT_LOSS_SHARE = 0.002
# Each cell of the first grid has this many outputs for the squared loss.
_FIRST_OUTPUTS_PER_CELL = 4
# Each cell has this many outputs for the worst-case absolute loss.
_WORST_OUTPUTS_PER_CELL = 2
# Grids at δ = 0 come first up to this δ.
_MAX_SMALL_DELTA = Fraction(1, 10**4)


class RangeSession(Session):
    """The session of a request for a range."""

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Design the best channel of all grids, with the best bound for all channels of the range.

        Args:
            point: option -> exact value of a point of a path. Default: the request of the session.
            start: not used, because every grid has its own programs.

        Raises:
            NotProven: the time limit was reached. The error carries the design.
        """
        request = self.request if point is None else self.request.at_point(point)
        assert isinstance(request, ChannelRequest)
        if request.claim.delta and request.claim.delta >= 1:
            must(
                "delta",
                "less than 1 for a range, because at 1 the answer itself may be published",
                float(request.claim.delta),
            )
        if request.aim.minimise == "epsilon":
            return design_least_epsilon(request)
        search = _RangeSearch(request)
        search.run()
        return search.design()


def bound_by_bins(request: Any) -> tuple[float, float]:
    """Bound the smallest loss of a range from both sides by RR-on-Bins, without solving a program.

    Args:
        request: request for a range under a prior at δ = 0, with every two answers as neighbours.

    Returns:
        (lower, upper): a lower bound on the loss of every channel of the range, and the loss of
        the best bins, both in the units of the loss.
    """
    assert isinstance(request, ChannelRequest)
    search = _RangeSearch(request)
    search.try_bins()
    assert search.best is not None
    return float(search.bound), float(search.best.loss)


class _BestChannel(NamedTuple):
    """The best channel of a search.

    Attributes:
        loss: exact loss, rounding included.
        cells: the range with the cells of the channel.
        design: design of the finite channel.
    """

    loss: Fraction
    cells: RangeQuery
    design: Design


class _RangeSearch:
    """A search for the best channel of a range.

    Attributes:
        request: request for the range.
        question: the range.
        best: best channel so far. None before the first one.
        bound: largest lower bound so far on the loss of all channels of the range, at the δ of
            the request.
    """

    def __init__(self, request: ChannelRequest) -> None:
        assert isinstance(request.question, RangeQuery)
        self.request = request
        self.question = request.question
        self.best: _BestChannel | None = None
        self.bound = ZERO
        self._loss = parse_loss(str(request.aim.loss))
        # If the range is c times as wide, losses are c to this power times as large.
        self._power = 2 if self._loss.name == "squared" else 1
        self._deadline = Deadline(request.how.options.time_limit)
        # Whether the time limit has ended a program. Its channel may still be close to the bound.
        self._has_stopped_program = False

    @property
    def was_cut_short(self) -> bool:
        """Return whether the time limit ended a program, or the search before it was close."""
        return self._has_stopped_program or (self._deadline.has_passed and not self.is_close)

    @property
    def is_close(self) -> bool:
        """Return whether loss and bound are within 1 %."""
        if self.best is None:
            return False
        return self.best.loss - self.bound <= _TARGET_GAP * self.best.loss

    def run(self) -> None:
        """Try bins, then finer and finer grids, until loss and bound are close.

        Raises WorkbenchError.
        """
        request = self.request
        question = self.question
        delta = request.claim.delta
        has_hockey_stick = is_hockey_stick(request.claim.notion)
        has_bins = (
            has_hockey_stick
            and question.has_all_neighbours
            and question.weights is not None
            and not question.has_user_cells
        )
        if has_bins:
            self.try_bins()
        elif has_hockey_stick and delta and delta <= _MAX_SMALL_DELTA:
            self._refine(request.with_values(claim=Claim("pure", request.claim.epsilon)))
        if not self.is_close and (delta or not has_bins):
            self._refine(request)
        self._try_constant()

    # Bins.

    def try_bins(self) -> None:
        """Try the best bins at δ = 0, and raise the bound by their loss on grids of points.

        If all answers are neighbours, under a prior, RR-on-Bins is optimal among all channels with
        real outputs (Ghazi et al. 2022, Theorem 5). Its loss on a grid of points is V of
        `_try_grid`. This is fast to compute, so the grids have up to 2^18 points. The mechanism
        itself publishes the output of the bin of x.
        """
        delta = self.request.claim.delta or ZERO
        parts = self.question.part_count
        request = self.request.with_values(claim=Claim("pure", self.request.claim.epsilon))
        for count in _BIN_POINT_COUNTS:
            # The number of points is rounded up to a multiple of the parts of the prior.
            point_count = -(-count // parts) * parts
            # Outputs of 12 digits keep the fractions of the certificate short.
            shares = [Fraction(f"{value:.12g}") for value in self._bound_by_bins(point_count)]
            outputs = [self.question.low + self._range_width * share for share in shares]
            if len(outputs) == 1:
                # `NearestOutputs` needs two outputs, which may be equal.
                outputs *= 2
            odds, _ = round_odds_down(Fraction(request.claim.epsilon))
            self._record_nearest_outputs(request, tuple(outputs), odds)
            if self.is_close or delta:
                break
        # The bound at δ loses more for more points (`bound_gain_of_delta`), so few points come too.
        point_count = MIN_CELLS * parts
        while delta and point_count < _BIN_POINT_COUNTS[0]:
            self._bound_by_bins(point_count)
            point_count *= 2

    def _bound_by_bins(self, point_count: int) -> Any:
        """Raise the bound to that of the best bins on a grid of points.

        Returns their outputs as shares of the range, in [0, 1].
        """
        weights = np.array([float(w) for w in self.question.weights or ()])
        prior = np.repeat(weights, point_count // self.question.part_count)
        points = (np.arange(point_count) + 0.5) / point_count
        bins = optimal_bins(points, prior, float(self.request.claim.epsilon), self._loss)
        bound = Fraction(max(bins.bound, 0.0)) * self._range_width**self._power
        self._raise_bound(bound, point_count, ZERO)
        return bins.values

    # Grids.

    def _refine(self, request: ChannelRequest) -> None:
        """Try more and more cells until loss and bound are close.

        Args:
            request: request of the search, or the same at δ = 0. The latter also ends when its own
                loss and bound are close.

        Raises:
            WorkbenchError: there is no channel.
        """
        request_loss: Fraction | None = None  # The smallest loss of this request so far.
        request_bound = ZERO
        for count in list_cell_counts(request):
            cells = self.question.with_cells(count)
            if self.best is not None:
                if self._deadline.has_passed:
                    break
                # A program may use all of the remaining time.
                max_seconds = max(_MAX_PROGRAM_SECONDS, self._deadline.remaining_seconds or 0.0)
                if not is_quick(request, cells, self._list_outputs(cells), max_seconds):
                    break
            try:
                loss, grid_bound = self._try_grid(request, cells)
            except (ChannelTooLarge, InvalidRequest, NotProven) as error:
                if getattr(error, "interrupted", False):
                    raise
                if self.best is None and not isinstance(error, NotProven):
                    raise
                self._has_stopped_program = self._has_stopped_program or self._deadline.has_passed
                break
            request_loss = loss if request_loss is None else min(request_loss, loss)
            request_bound = max(request_bound, grid_bound)
            self._raise_bound(request_bound, len(cells.points), request.claim.delta or ZERO)
            if self.request.how.progress is not None and self.best is not None:
                numbers = f"loss {float(self.best.loss):.9g}, bound {float(self.bound):.9g}"
                self.request.how.progress(f"{count} cells: {numbers}")
            if self.is_close or request_loss - request_bound <= _TARGET_GAP * request_loss:
                break

    def _try_grid(self, request: ChannelRequest, cells: RangeQuery) -> tuple[Fraction, Fraction]:
        """Design the best channel of a grid.

        Bound under a prior. Let V be the smallest loss of the finite question that has the points
        as answers, any real outputs, points at most ⌊S/h⌋ h <= S apart as neighbours, and the
        probabilities p_i as prior. For every shift t in [0, h) the answers low + t + i h are this
        question moved by t - h/2, and moving answers and outputs together changes no loss. Every
        private channel of the range is private on them, so Σ_i p_i loss(low + t + i h) >= V. A cell
        lies in one part of the prior, where answers are uniform. So the expected loss is the mean
        of that sum over t, and is at least V.

        Bound for the worst-case loss. The ends are some of the answers, so the largest loss is at
        least that of their question.

        Returns (loss, bound): its loss with the rounding, and a lower bound on the loss of all
        channels with real outputs for the points. The bound is 0 if the grid has none.
        """
        outputs = self._list_outputs(cells)
        upper = cells.finite_query(cells.max_point_distance, outputs)
        lower = cells.lower_bound_query(outputs)
        design = self._solve_finite_question(request, upper)
        loss = self._record_design(design, cells)
        if lower is None:
            return loss, ZERO
        if (lower.inputs, lower.pairs) != (upper.inputs, upper.pairs):
            design = self._solve_finite_question(request.with_values(check="none"), lower)
        listing_loss = ZERO
        if self._power == 2:
            # Listed outputs have at most g²/4 more loss than real ones.
            listing_loss = max(b - a for a, b in pairwise(outputs)) ** 2 / 4
        return loss, Fraction(design.bound or 0) - listing_loss

    def _list_outputs(self, cells: RangeQuery) -> Rationals:
        """Return the listed outputs of a grid.

        A channel with any real outputs o can be converted to one with listed outputs o_j, which are
        g apart and reach from the first point (or before it) to the last point (or beyond). First o
        is clamped to their range, which moves it away from no point. Then
        o = (1 - s) o_j + s o_(j+1) becomes o' = o_(j+1) with probability s, else o' = o_j. This is
        post-processing, which preserves every notion that is accepted here. The mean of (o' - x)²
        is (o - x)² + s (1 - s) g², so listed outputs have at most g²/4 more loss than real ones.
        The mean of |o' - x| is |o - x| if no point lies strictly between two outputs, so for the
        absolute loss the points are enough.
        """
        if self._power == 1:
            if cells.weights is None:
                return cells.divided_ends(_WORST_OUTPUTS_PER_CELL)
            return tuple(cells.points)
        outputs_per_cell = _FIRST_OUTPUTS_PER_CELL
        if self.best is not None:
            spacing = math.sqrt(4 * _OUTPUT_LOSS_SHARE * float(self.best.loss))
            outputs_per_cell = math.ceil(float(cells.width) / spacing)
        return cells.divided_ends(max(outputs_per_cell, 1))

    def _solve_finite_question(self, request: ChannelRequest, question: FiniteQuery) -> Design:
        """Design the best channel of a finite question, proven or not. Raises WorkbenchError."""
        options = request.how.options
        seconds_left = self._deadline.remaining_seconds
        if seconds_left is not None:
            options = replace(options, time_limit=max(_MIN_PROGRAM_SECONDS, seconds_left))
        method = request.how.method
        if uses_blocks(request):
            method = BLOCK_METHOD
            if options.gap is None:
                options = replace(options, gap=_BLOCK_GAP)
        losses = make_loss_table(question, request.aim.loss)
        finite_request = request.with_values(
            question=question, losses=losses, method=method, options=options
        )
        try:
            design: Design = finite_request.family.design_request(finite_request)
            return design
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            self._has_stopped_program = self._has_stopped_program or self._deadline.has_passed
            unproven_design: Design = error.design
            return unproven_design

    # Results.

    @property
    def _range_width(self) -> Fraction:
        """Return the width of the range."""
        return self.question.high - self.question.low

    def _raise_bound(self, bound: Fraction, point_count: int, delta: Fraction) -> None:
        """Raise the bound for all channels of the range.

        Args:
            bound: bound on the loss of a grid of points.
            point_count: number of points.
            delta: δ at which the bound holds: that of the request, or 0.
        """
        claimed_delta = self.request.claim.delta or ZERO
        if delta != claimed_delta:
            gain = bound_gain_of_delta(self.request.claim.epsilon, claimed_delta, point_count)
            bound -= gain * self._range_width**self._power
        self.bound = max(self.bound, bound)

    def _record_design(self, design: Design, cells: RangeQuery) -> Fraction:
        """Keep a design if it is the best so far. Return its loss."""
        if isinstance(design.mechanism, NearestOutputs):
            loss: Fraction = design.details["loss"]
        else:
            loss = compute_rounded_loss(design, cells)
        if self.best is None or loss < self.best.loss:
            self.best = _BestChannel(loss, cells, design)
        return loss

    def _record_nearest_outputs(
        self, request: ChannelRequest, outputs: Rationals, odds: Fraction
    ) -> None:
        """Record the mechanism that publishes the output nearest to the answer, with `odds` times
        the probability of each other output.
        """
        mechanism = NearestOutputs(
            ends=(self.question.low, self.question.high), bins=outputs, own=1, odds=odds
        )
        self._record_design(design_problem(GivenMechanism(request, mechanism)), self.question)

    def _try_constant(self) -> None:
        """Record the best constant output, if no channel with a smaller loss was found."""
        output, loss = self.question.best_constant(self._loss.name)
        if self.best is None or self.best.loss > loss:
            self._record_nearest_outputs(self.request, (output, output), ONE)

    def design(self) -> Design:
        """Return the best channel as a design of the range.

        Raises:
            NotProven: the time limit ended the search. The error carries the design.
        """
        assert self.best is not None
        loss, cells, finite_design = self.best
        mechanism = finite_design.mechanism
        certificate = finite_design.certificate
        bound = float(self.bound)
        if isinstance(mechanism, NearestOutputs):
            outputs = mechanism.bins
            points_text = f"{len(mechanism.cells)} cells"
            route = "bins"
            description = f"It takes answers in {points_text}"
            if len({*outputs}) == 1:
                route = "constant"
                description = f"It publishes {float(outputs[0]):g} whatever the answer is"
        else:
            outputs = finite_design.question.outputs
            points_text = cells.points_text
            mechanism = cells.make_mechanism(mechanism)
            if certificate is not None:
                # The loss and the bias of the points are not those of the answers.
                certificate = Certificate(mechanism, certificate.claim, record=certificate.record)
            route = f"grid of points, {finite_design.route}"
            description = f"It takes answers rounded to {points_text}"
            if cells.weights is None:
                description = (
                    "It takes answers rounded at random to one of the two nearest, the answer "
                    f"being the mean, of {points_text}"
                )
        note = f"{description}. The loss includes the rounding. {self._describe_interval()}"
        note = " ".join((note, *getattr(mechanism, "column_cautions", ())))
        if finite_design.request.claim.delta != self.request.claim.delta:
            note += " It is private at delta = 0."
        reported_request = self.request.with_values(
            question=cells.with_outputs(outputs), losses=finite_design.request.losses
        )
        details = {
            **finite_design.details,
            "loss": loss,
            "rounded": points_text,
            "solver": finite_design.solver,
        }
        _, constant_loss = self.question.best_constant(self._loss.name)
        design = replace(
            finite_design,
            request=reported_request,
            mechanism=mechanism,
            certificate=certificate,
            claim=self.request.audited_claim,
            objective=float(loss),
            bound=bound,
            oracle=OracleVerdict.without_formula("no closed form is known for a range."),
            solution=None,
            words=(note,),
            details=details,
            route=route,
            scale=LossScale(width=float(constant_loss)),
        )
        if self.was_cut_short:
            raise NotProven(
                f"The time limit was reached: incumbent {design.objective:.9g}, "
                f"lower bound {bound:.9g}.",
                incumbent=design.objective,
                bound=bound,
                design=design,
            )
        return design

    def _describe_interval(self) -> str:
        """Return a sentence that states the interval of the smallest loss of all channels of the
        range.
        """
        assert self.best is not None
        closeness = "not proven within 1 %"
        if self.is_close:
            closeness = "within 1 %"
        return (
            f"The smallest loss of any channel of the range at {self.request.budget_text} lies "
            f"between {float(self.bound):.9g} and {float(self.best.loss):.9g} ({closeness})."
        )


class GivenMechanism(Problem):
    """The problem whose answer is a given mechanism: RR-on-Bins, or one output for all answers.

    It certifies the mechanism and makes a `Design` of it. One output is RR-on-Bins with one bin.

    Args:
        request: request for the range. Any two of its answers must be neighbours, unless the
            mechanism publishes one constant.
        mechanism: the mechanism.
    """

    request: ChannelRequest
    routes = (
        Route(
            "given mechanism",
            applies_always,
            answer=lambda problem, programs, start: problem.answer,
        ),
    )

    def __init__(self, request: ChannelRequest, mechanism: NearestOutputs) -> None:
        super().__init__(request)
        self.answer = Answer(mechanism, bound=None, solution=None, origin="RR-on-Bins")
        weights = cast(RangeQuery, request.question).weights
        # Without a prior the mean error is not used, so any weights do.
        mean_error, worst_error, _ = mechanism.errors(
            str(request.aim.loss), weights or (Fraction(1),)
        )
        self._loss = worst_error if weights is None else mean_error

    def compute_loss(self, mechanism: NearestOutputs) -> Fraction:
        """Return the exact loss of the given mechanism.

        Args:
            mechanism: not used.
        """
        return self._loss

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Return that no formula is known: the mechanism is one of many.

        Args:
            answer: not used.
        """
        return OracleVerdict.without_formula("no closed form is known for a range.")

    def require_proof(self, design: Design) -> Design:
        """Return the design. The search over the range states what is proven.

        Args:
            design: design of the mechanism.
        """
        return design


def compute_rounded_loss(design: Design, cells: RangeQuery) -> Fraction:
    """Compute the exact loss of a channel of cells, rounding included.

    Args:
        design: design of a finite channel from the points of the cells.
        cells: the range with these cells.

    Returns:
        The expected loss, or the largest expected loss of a real answer if the range has no prior.
    """
    loss = str(design.request.aim.loss)
    outputs = design.question.outputs
    if cells.weights is None:
        mechanism = cells.make_mechanism(design.mechanism)
        worst_error = compute_expected_error(mechanism, loss).worst_error
        assert worst_error is not None  # The loss has finitely many pieces.
        return worst_error
    total = ZERO
    rows = zip(design.mechanism.rows, cells.points, cells.cell_weights, strict=True)
    for row, middle, weight in rows:
        losses = [mean_cell_loss(loss, output - middle, cells.width) for output in outputs]
        total += weight * row.mean(losses)
    return total


def design_least_epsilon(request: ChannelRequest) -> Design:
    """Design the channel of smallest ε for a largest loss, by the search of `recommend`.

    Args:
        request: request for a range that minimises ε.

    Raises:
        Infeasible: no ε reaches the loss.
        NotProven: the time limit was reached. The error carries the design.
    """
    question = request.question
    seconds = request.how.options.time_limit
    assert isinstance(question, RangeQuery)
    request.check_max_loss()
    aim = Aim(loss=str(request.aim.loss), minimise="epsilon", max_loss=request.aim.max_loss)
    time = None if seconds is None else TimeShares(seconds)
    query = Query(question=question, claim=request.claim, aim=aim, time=time)
    try:
        value = find_least_epsilon(query, RANGE_CHANNEL)
    except NotApplicable as error:
        max_loss = float(query.aim.max_loss or 0)
        raise Infeasible(f"Loss {request.loss_name} at most {max_loss:g}: {error}.") from None
    assert value.design is not None  # The value is certified.
    design = value.design()
    reported_request = design.request.with_values(
        minimise="epsilon", max_loss=request.aim.max_loss, options=request.how.options
    )
    design = replace(design, request=reported_request, objective=value.objective, bound=value.bound)
    if value.is_stopped:
        raise NotProven(
            f"The time limit was reached: the smallest epsilon found is {value.objective:.9g}.",
            incumbent=value.objective,
            bound=value.bound,
            design=design,
        )
    return design
