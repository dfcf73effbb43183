"""Answer requests for label randomizers: the optimal bins (randomized response on intervals of
labels), and the best channel with listed outputs.

The table says over which class of mechanisms the answer is optimal. Theorem 5 and Algorithm 2 are
those of Ghazi et al. 2022.

method     class of mechanisms                                        model
bins       every ε-DP randomizer with real outputs (Theorem 5)        `oracles.bins`, exact
lp         every channel with listed outputs, other notions           `channel.program`
unbiased   every unbiased ε-DP randomizer, real outputs, squared      `labels.unbiased`, cones
rr-with-prior   none: RRWithPrior is a published mechanism            `rr_with_prior`, exact

A certificate contains one row for every label. It states the bias max |E[o|y] - y| over labels y
with output o, and the expected loss under the prior if that is rational (not for Poisson losses).
So its file contains labels, prior and outputs. If there are too many rows to compare them two by
two, RR-on-Bins has one row for every bin, because all labels of a bin have the same distribution of
outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest, NotCertified, must
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ZERO, Real, nearest_float, read_positive, round_down
from workbench.families.channel.problem import ChannelProblem
from workbench.families.labels.request import (
    MAX_CERTIFIED_MASSES,
    MAX_CERTIFIED_ROWS,
    LabelRequest,
    check_certificate_size,
)
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import (
    RandomizedResponse,
    rr_on_bins,
    rr_with_prior,
)
from workbench.models.losses import Loss
from workbench.models.oracles.bins import optimal_bins, printed_bins
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.problem import Problem, Repaired, make_certificate
from workbench.pipeline.routes import Answer, Doubt, Programs, Route, applies_always
from workbench.pipeline.solve import design_problem
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.questions.labels import Labels
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.rational_lp import RationalLP
from workbench.solvers.exact.rational_refinement import solve_rational
from workbench.solvers.solution import Solution

# The fast algorithm is checked by the slow one as printed in the paper, up to this many labels.
_MAX_JUDGED_LABELS = 128
# RR-on-Bins has a row for every label up to this many masses, and otherwise one for every bin.
_MAX_LABEL_ROW_MASSES = 100_000
# A certificate states the loss up to this many masses. Computing it then takes a second.
_MAX_STATED_LOSSES = 1_000_000
# A solution is refined in rationals up to this many masses.
_MAX_REFINED_MASSES = 500
# Rationals are refined to this many binary digits.
_REFINEMENT_BITS = 160
# Refinement ends when the error is below 2^-130.
_REFINEMENT_ACCURACY_BITS = 130
# A solution is refined if its repaired loss exceeds the bound by a larger share of it than this.
_MAX_REPAIR_LOSS_SHARE = 1e-9
# Refinement may take this long.
_MAX_REFINEMENT_SECONDS = 10.0

# (channel, rows): the channel of a certificate, and for every label the position of its row. None
# instead of the positions: every label has its own row.
_CertifiedRows = tuple[Channel, Sequence[int] | None]


def find_best_bins(
    labels: Labels, epsilon: Real, loss: str | Loss = "squared"
) -> RandomizedResponse:
    """Find the optimal RR-on-Bins, exactly.

    Args:
        labels: labels with a prior.
        epsilon: ε > 0.
        loss: name of a loss that Theorem 5 covers (squared, absolute, pinball:τ, poisson, ...), or
            the loss itself.

    Returns:
        The randomizer, whose outputs are one real number for each bin.

    Raises:
        InvalidRequest: the theorem does not cover the loss.
    """
    with translate_errors():
        float_epsilon = nearest_float(read_positive(epsilon, "epsilon"))
        bins = optimal_bins(labels.values, labels.prior, float_epsilon, loss)
    return rr_on_bins(labels, bins.starts, bins.values, epsilon)


def _compute_expected_loss(request: LabelRequest, mechanism: Any) -> float:
    """Return the expected loss of a randomizer under the prior, also if the loss of a label of
    prior 0 is infinite.
    """
    prior = request.question.prior
    is_likely = prior > 0
    return float(prior[is_likely] @ mechanism.losses(request.named_loss)[is_likely])


class RandomizerProblem(Problem):
    """The problem of a randomizer that is exactly private by construction, all labels being
    neighbours.

    Attributes:
        MAX_STATED_LOSSES: largest number of masses for which a certificate states the loss.
    """

    request: LabelRequest
    MAX_STATED_LOSSES = _MAX_STATED_LOSSES

    def make_certified_rows(self, mechanism: Any) -> _CertifiedRows:
        """Return the channel of a certificate, and the row of every label (`_CertifiedRows`).

        Args:
            mechanism: the randomizer.

        Raises:
            InvalidRequest: the channel is too large for a certificate.
        """
        return mechanism, None

    def repair(self, answer: Answer) -> Repaired:
        """Return a certified answer. There is nothing to repair.

        Args:
            answer: answer of a route.

        Raises:
            InvalidRequest: the channel is too large for a certificate.
            NotCertified: the exact audit rejects the randomizer.
        """
        request = self.request
        mechanism = answer.mechanism
        labels = request.question
        channel, rows = self.make_certified_rows(mechanism)
        if not satisfies_claim(channel, request.audited_claim):
            raise NotCertified("The exact audit rejects the randomizer.")
        values = tuple(map(Fraction, labels.values.tolist()))
        prior = tuple(map(Fraction, labels.prior.tolist()))
        outputs = tuple(map(Fraction, mechanism.outputs.tolist()))
        record = {"method": request.how.method, "loss": request.named_loss.name}
        if rows is not None:
            record |= {"rows": "one for every bin", "bins": mechanism.bins()}
        stated_loss = None
        if labels.k * len(outputs) <= self.MAX_STATED_LOSSES:
            stated_loss = request.named_loss.name
        certificate = make_certificate(
            channel, request.audited_claim, stated_loss, (values, outputs), prior, record, rows
        )
        return mechanism, certificate, []

    @property
    def loss_scale(self) -> LossScale:
        """Return the scale of the losses of labels.

        The floor is the loss of publishing each label. The width is about the loss above the floor
        of the best label that is published for all: one near the mean or the median.
        """
        labels = self.request.question
        loss = self.request.named_loss
        x = labels.values
        prior = labels.prior
        floor = float(prior @ loss(x, x))
        widths = []
        for middle in (x @ prior, x[np.searchsorted(np.cumsum(prior), 0.5)]):
            nearest_label = x[np.abs(x - middle).argmin()]
            constant_loss = float(prior @ loss(np.full(x.shape, nearest_label), x))
            if np.isfinite(constant_loss):
                widths.append(constant_loss - floor)
        return LossScale(Fraction(floor), max(min(widths, default=0.0), 0.0))

    def compute_loss(self, mechanism: Any) -> float:
        """Compute the expected loss under the prior.

        Args:
            mechanism: randomizer of the labels of the request.
        """
        return _compute_expected_loss(self.request, mechanism)


class BinsProblem(RandomizerProblem):
    """The problem of the optimal bins, which the fast algorithm finds."""

    routes = (
        Route(
            "bins", applies_always, answer=lambda problem, programs, start: problem.answer_by_bins()
        ),
    )

    def answer_by_bins(self) -> Answer:
        """Return the optimum over all real outputs."""
        request = self.request
        question = request.question
        epsilon = request.audited_claim.epsilon
        with translate_errors():
            bins = optimal_bins(question.values, question.prior, float(epsilon), request.named_loss)
        mechanism = rr_on_bins(question, bins.starts, bins.values, epsilon)
        return Answer(
            mechanism, bins.bound, origin="exact as constructed", claimed_objective=bins.objective
        )

    def make_certified_rows(self, mechanism: RandomizedResponse) -> _CertifiedRows:
        """Return a row for every label, or one for every bin if there are too many labels.

        Args:
            mechanism: the randomizer.
        """
        return make_bin_rows(mechanism)

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Compare the fast algorithm with Algorithm 2 as printed.

        Args:
            answer: answer of the fast algorithm.
        """
        question = self.request.question
        if question.k > _MAX_JUDGED_LABELS:
            return OracleVerdict.without_formula(
                f"the printed algorithm judges up to {_MAX_JUDGED_LABELS} labels only."
            )
        epsilon = float(self.request.audited_claim.epsilon)
        printed_optimum = printed_bins(
            question.values, question.prior, epsilon, self.request.named_loss
        )
        proof = (
            "Algorithm 2 as printed: every partition into intervals, by dynamic programming; "
            "Theorem 5."
        )
        return OracleVerdict.judge(
            answer.claimed_objective, "Algorithm 2", printed_optimum.objective, "optimum", proof
        )

    def require_proof(self, design: Design) -> Design:
        """Return the design, which Theorem 5 proves optimal.

        Args:
            design: design of the optimal bins.
        """
        return design


class WithPriorProblem(RandomizerProblem):
    """The problem of RRWithPrior: randomized response among the labels that it selects.

    It selects the number of likeliest labels for which the published label is most often the true
    one. The loss of the request is only evaluated. Theorem 5 gives a lower bound on the loss of all
    randomizers, if it covers the loss.
    """

    CLAIMS_OPTIMUM = False
    routes = (
        Route(
            "rr-with-prior",
            applies_always,
            lambda problem, programs, start: problem.answer_by_prior(),
        ),
    )

    def answer_by_prior(self) -> Answer:
        """Return RRWithPrior, with the optimal loss of all randomizers as bound if it is known."""
        request = self.request
        labels = request.question
        epsilon = request.audited_claim.epsilon
        bound = None
        with suppress(ValueError):
            bound = optimal_bins(
                labels.values, labels.prior, float(epsilon), request.named_loss
            ).bound
        mechanism = rr_with_prior(labels, epsilon)
        notes = [
            f"Publishes one of the {mechanism.outputs.size} likeliest labels. Other labels publish "
            "any of them with the same probability."
        ]
        return Answer(mechanism, bound, origin="exact as constructed", notes=notes)

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Return that RRWithPrior has no optimum to agree with.

        Args:
            answer: answer of the route.
        """
        return OracleVerdict.without_formula(
            "RRWithPrior is a published mechanism, not an optimum."
        )

    def make_certified_rows(self, mechanism: RandomizedResponse) -> _CertifiedRows:
        """Return a row for every label.

        Args:
            mechanism: the randomizer.
        """
        check_certificate_size(mechanism.labels.k, mechanism.outputs.size, None)
        return mechanism.certified_form(), None

    def require_proof(self, design: Design) -> Design:
        """Return the design, which is private but not optimal.

        Args:
            design: design of RRWithPrior.
        """
        return design


def make_bin_rows(mechanism: RandomizedResponse) -> _CertifiedRows:
    """Return the channel of a certificate of bins.

    Args:
        mechanism: RR-on-Bins.

    Returns:
        (channel with a row for every label, None), or (channel with a row for every bin, position
        of the row of every label) if there are too many labels.

    Raises:
        InvalidRequest: there is only one label, or there are too many bins.
    """
    k = mechanism.labels.k
    m = mechanism.outputs.size
    if k == 1:
        check_certificate_size(k, m, pairs=None)
    if k <= MAX_CERTIFIED_ROWS and k * m <= _MAX_LABEL_ROW_MASSES:
        return mechanism.certified_form(), None
    positions = mechanism.distinct_rows().tolist()
    bins = mechanism.own[positions].tolist()
    if len(positions) == 1:
        # A channel needs two rows, so two labels of the only bin are listed.
        positions = [0, k - 1]
    if len(positions) > MAX_CERTIFIED_ROWS or len(positions) * m > MAX_CERTIFIED_MASSES:
        max_bins = math.isqrt(MAX_CERTIFIED_MASSES)
        must("bins", f"at most {max_bins} for a certificate of this many labels", m)
    channel = Channel(tuple(map(mechanism.row, positions)))
    return channel, [bins.index(label_bin) for label_bin in mechanism.own.tolist()]


def _refine_route(route: Route) -> Route:
    """Return a route of channels whose answer is refined (`ChannelOfLabels.refine`)."""

    def answer(problem: ChannelOfLabels, programs: Programs | None, start: str) -> Answer | Doubt:
        """Answer by the route, and refine the answer unless the route is in doubt."""
        result = route.answer(problem, programs, start)
        return result if isinstance(result, Doubt) else problem.refine(result)

    return replace(route, answer=answer)


class ChannelOfLabels(ChannelProblem):
    """The problem of the channel of a request for labels.

    Args:
        labels: request for labels with method lp.
    """

    ACCEPTED_GAP = 1e-5
    routes = tuple(map(_refine_route, ChannelProblem.routes))

    def __init__(self, labels: LabelRequest) -> None:
        super().__init__(labels.channel_request)
        self.reported_request = labels

    def refine(self, answer: Answer) -> Answer:
        """Refine an answer in rationals, if the means are constrained and its repair costs loss.

        Args:
            answer: answer of a route of channels.

        Returns:
            The refined answer if its repair costs less, and the larger bound.
        """
        solution = answer.solution
        if solution is None or not self._can_refine():
            return answer
        loss = self._compute_repaired_loss(answer)
        if answer.bound is not None and loss - float(answer.bound) <= _MAX_REPAIR_LOSS_SHARE * loss:
            return answer
        time_limit = self.request.how.options.time_limit or _MAX_REFINEMENT_SECONDS
        refinement = _solve_in_rationals(solution, min(_MAX_REFINEMENT_SECONDS, time_limit))
        if refinement is None:
            return answer
        rows, refined_bound = refinement
        bounds: list[Fraction | float] = [refined_bound]
        if answer.bound is not None:
            bounds.append(answer.bound)
        # A refinement without a bound has the bound -inf, which is no Fraction.
        bound = max(Fraction(value) for value in bounds if value > -np.inf)
        refined_answer = replace(answer, bound=bound, law=(_round_rationals(rows), None))
        if self._compute_repaired_loss(refined_answer) < loss:
            return refined_answer
        return replace(answer, bound=bound)

    def _can_refine(self) -> bool:
        """Return whether the means are constrained, and the channel is small and certified."""
        request = self.request
        return (
            "unbiased" in request.aim.constraints
            and request.losses.values.size <= _MAX_REFINED_MASSES
            and not request.has_several_bounds
            and request.wants_certificate
        )

    def _compute_repaired_loss(self, answer: Answer) -> float:
        """Return the loss of an answer after its repair."""
        mechanism, _, _ = self.repair(answer)
        return float(self.compute_loss(mechanism))

    def require_proof(self, design: Design) -> Design:
        """Return a proven design, or the optimal bins at δ = 0 if they have a smaller loss.

        Bins are the answer if the user left the method open. Otherwise a note states their loss.

        Args:
            design: certified design of the channel.

        Raises:
            NotProven: the channel is not proven optimal. The error carries the design.
        """
        design = super().require_proof(design)
        request = self.reported_request
        if not self._can_compare_bins():
            return design
        try:
            bins = find_best_bins(request.question, request.claim.epsilon, request.named_loss)
        except InvalidRequest:
            # Theorem 5 does not cover every loss, such as the error rate.
            return design
        loss = _compute_expected_loss(request, bins)
        if loss >= design.objective:
            return design
        if request.how.may_use_bins and request.wants_certificate:
            return self._use_bins_without_delta(design)
        note = (
            "A smaller loss is possible with real outputs: method bins at delta = 0, which is "
            f"private at every delta, has the expected loss {loss:.9g}."
        )
        return replace(design, words=(*design.words, note))

    def _can_compare_bins(self) -> bool:
        """Return whether the optimal bins at δ = 0 are an alternative to the channel."""
        request = self.reported_request
        aim = request.aim
        if aim.outputs is not None or aim.neighbours != "all" or aim.constraints:
            return False
        if not isinstance(aim.loss, (str, Loss)) or aim.minimise != "loss" or aim.runs != 1:
            return False
        if request.has_several_bounds or request.is_per_distance:
            return False
        return bool(request.claim.delta)

    def _use_bins_without_delta(self, channel_design: Design) -> Design:
        """Return the optimal bins at δ = 0 as the answer to a request with δ > 0.

        The bound holds for all real outputs at δ.
        """
        request = self.reported_request
        pure_request = request.with_values(
            claim=Claim("pure", request.claim.epsilon), method="bins", may_use_bins=False
        )
        bins_design = design_problem(BinsProblem(pure_request))
        # No mechanism has a smaller loss than the floor, whatever δ is.
        bound = round_down(self.loss_scale.floor)
        if bins_design.bound is not None:
            bound_at_delta = self.bound_at_delta(bins_design.bound)
            if bound_at_delta is not None:
                bound = max(bound, round_down(bound_at_delta))
        is_optimal = self.loss_scale.proves(bins_design.objective, bound)
        note = (
            "These are the optimal bins at delta = 0 (method bins). With this delta, a channel "
            "whose outputs are labels has the expected loss "
            f"{channel_design.objective:.9g} (method lp)."
        )
        return replace(
            bins_design,
            request=request,
            claim=self.claim,
            bound=bound,
            oracle=OracleVerdict.without_formula("no closed form is known with delta > 0."),
            words=(*bins_design.words, note),
            details={**bins_design.details, "stopped": not is_optimal},
            route=f"{bins_design.route} at delta = 0",
        )


def design_within_curve(request: LabelRequest, curve: Claim) -> Design:
    """Design the channel of one run of smallest loss within several (ε, δ).

    Args:
        request: request for labels with method lp.
        curve: claim of the notion "curve".

    Raises:
        WorkbenchError: as the session of the request.
    """
    return design_problem(ChannelOfLabels(request.with_values(claim=curve)))


def _round_rationals(channel: Channel) -> Integers:
    """Return the rows of a channel as integers of one sum. The largest mass takes the rounding."""
    unit = 1 << _REFINEMENT_BITS
    rows = [np.array(row.integers, dtype=object) * unit // row.total for row in channel.rows]
    K = np.array(rows, dtype=object)
    for integers in K:
        integers[int(np.argmax(integers))] += unit - int(integers.sum())
    return K


def _solve_in_rationals(solution: Solution, time_limit: float) -> tuple[Channel, float] | None:
    """Solve the program of a solution in rationals.

    The repair of constrained means mixes with rows of large loss, so the last digits of a solver
    have a large effect on the loss. Returns (channel, lower bound, which is -inf if none is known).
    None if no rational solution was found in time.
    """
    program = RationalLP.from_data(solution.data, _REFINEMENT_BITS)
    try:
        point = solve_rational(program, accuracy=_REFINEMENT_ACCURACY_BITS, time_limit=time_limit)
    except NoRationalSolution:
        return None
    block = solution.program.block("M")
    columns = point.x[block.start : block.start + block.size]
    masses = np.array(columns, dtype=object).reshape(block.shape, order="F")
    rows = [_make_row(row) for row in masses.tolist()]
    bound = -np.inf
    if point.bound is not None:
        bound = round_down(point.bound)
    return Channel(tuple(rows)), bound


def _make_row(masses: Sequence[Fraction]) -> Distribution:
    """Return a row of a channel. Negative masses count as 0."""
    return Distribution([max(mass, ZERO) for mass in masses], "a row of the channel")
