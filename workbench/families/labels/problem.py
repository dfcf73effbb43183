"""Label randomizers as problems: the best bins, the channel of given outputs, and what certifies those of no program.

| method   | class of mechanisms                                                  | model                      |
|----------|----------------------------------------------------------------------|----------------------------|
| bins     | every ε-DP randomizer with real outputs (Theorem 5)                  | `oracles.bins`, exact      |
| lp       | every channel onto given outputs; neighbours, δ, metric, constraints | `channel.program`, any solver |
| unbiased | every unbiased ε-DP randomizer with real outputs, squared loss       | `labels.unbiased`, cones   |

A certificate holds one row for every label, states max |E[o|y] - y| and the expected loss under the prior (where that
is rational: not for Poisson losses), so its file knows labels, prior and outputs. Where so many rows cannot be compared
two by two, RR-on-Bins has one for every bin (all labels of a bin share their law).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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

_MAX_JUDGED_LABELS = 128  # labels up to which the printed algorithm judges the fast one
_MAX_LABEL_ROW_MASSES = (
    100_000  # masses up to which RR-on-Bins has a row for every label, not only for every bin
)
_MAX_STATED_LOSSES = (
    1_000_000  # labels times outputs up to which a certificate states the loss (a second)
)
_MAX_REFINED_MASSES, _REFINEMENT_BITS, _MAX_REPAIR_LOSS_SHARE = (
    500,
    160,
    1e-9,
)  # cells that rationals refine, bits there, of the loss what is worth it
_MAX_REFINEMENT_SECONDS = 10.0  # seconds for that


def find_best_bins(
    labels: Labels, epsilon: Real, loss: str | Loss = "squared"
) -> RandomizedResponse:
    """The best RR-on-Bins for labels with their prior, exact. Raises InvalidRequest."""
    with translate_errors():
        bins = optimal_bins(
            labels.values, labels.prior, nearest_float(read_positive(epsilon, "epsilon")), loss
        )
    return rr_on_bins(labels, bins.starts, bins.values, epsilon)


_CertifiedRows = tuple[
    Channel, Sequence[int] | None
]  # and the row of every label, where labels share them


class RandomizerProblem(Problem):
    """A randomizer that is exactly private as constructed, all labels being neighbours."""

    request: LabelRequest
    MAX_STATED_LOSSES = _MAX_STATED_LOSSES

    def make_certified_rows(self, mechanism: Any) -> _CertifiedRows:
        """(the channel of a certificate, the row of every label where labels share them). Raises InvalidRequest."""
        return mechanism, None

    def repair(self, answer: Answer) -> Repaired:
        """There is nothing to repair. Raises InvalidRequest, NotCertified."""
        request, mechanism, labels = self.request, answer.mechanism, self.request.question
        channel, rows = self.make_certified_rows(mechanism)
        if not satisfies_claim(channel, request.audited_claim):
            raise NotCertified("The exact audit refuses the randomizer.")
        values, prior, outputs = (
            tuple(map(Fraction, array.tolist()))
            for array in (labels.values, labels.prior, mechanism.outputs)
        )
        record = {"method": request.how.method, "loss": request.named_loss.name}
        if rows is not None:
            record |= {"rows": "one for every bin", "bins": mechanism.bins()}
        loss = (
            request.named_loss.name if labels.k * len(outputs) <= self.MAX_STATED_LOSSES else None
        )
        return (
            mechanism,
            make_certificate(
                channel, request.audited_claim, loss, (values, outputs), prior, record, rows
            ),
            [],
        )

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses of labels: the floor is that of publishing each, the width about that of the best one."""
        labels, loss = self.request.question, self.request.named_loss
        x, prior = labels.values, labels.prior
        floor = float(prior @ loss(x, x))
        middles = (x @ prior, x[np.searchsorted(np.cumsum(prior), 0.5)])
        constants = [
            float(prior @ loss(np.full(x.shape, x[np.abs(x - middle).argmin()]), x))
            for middle in middles
        ]
        width = min((each - floor for each in constants if np.isfinite(each)), default=0.0)
        return LossScale(Fraction(floor), max(width, 0.0))

    def compute_loss(self, mechanism: Any) -> float:
        """The expected loss under the prior."""
        prior = self.request.question.prior
        return float(prior[prior > 0] @ mechanism.losses(self.request.named_loss)[prior > 0])


class BinsProblem(RandomizerProblem):
    """RR-on-Bins, by the fast algorithm."""

    routes = (
        Route("bins", applies_always, lambda problem, programs, start: problem.answer_by_bins()),
    )

    def answer_by_bins(self) -> Answer:
        """Return the optimum over all real outputs."""
        request, question = self.request, self.request.question
        with translate_errors():
            bins = optimal_bins(
                question.values,
                question.prior,
                float(request.audited_claim.epsilon),
                request.named_loss,
            )
        mechanism = rr_on_bins(question, bins.starts, bins.values, request.audited_claim.epsilon)
        return Answer(
            mechanism, bins.bound, origin="exact as constructed", claimed_objective=bins.objective
        )

    def make_certified_rows(self, mechanism: RandomizedResponse) -> _CertifiedRows:
        """A row for every label; one for every bin, where the rows of all labels would be too many."""
        return make_bin_rows(mechanism)

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Algorithm 2 as printed judges the fast one."""
        question = self.request.question
        if question.k > _MAX_JUDGED_LABELS:
            return OracleVerdict.without_formula(
                f"the printed algorithm judges up to {_MAX_JUDGED_LABELS} labels only."
            )
        epsilon, loss = float(self.request.audited_claim.epsilon), self.request.named_loss
        other = printed_bins(question.values, question.prior, epsilon, loss).objective
        proof = "Algorithm 2 as printed: every partition into intervals, by dynamic programming; Theorem 5."
        return OracleVerdict.judge(answer.claimed_objective, "Algorithm 2", other, "optimum", proof)

    def require_proof(self, design: Design) -> Design:
        """By Theorem 5."""
        return design


def make_bin_rows(mechanism: RandomizedResponse) -> _CertifiedRows:
    """(the channel of a certificate, the row of every label where it has one for every bin). Raises InvalidRequest."""
    k, m = mechanism.labels.k, mechanism.outputs.size
    if k == 1:
        check_certificate_size(k, m, None)
    if k <= MAX_CERTIFIED_ROWS and k * m <= _MAX_LABEL_ROW_MASSES:
        return mechanism.certified_form(), None
    at = mechanism.distinct_rows().tolist()
    bins = mechanism.own[at].tolist()
    at = at if len(at) > 1 else [0, k - 1]  # two labels of the only bin
    if len(at) > MAX_CERTIFIED_ROWS or len(at) * m > MAX_CERTIFIED_MASSES:
        must(
            "bins",
            f"at most {math.isqrt(MAX_CERTIFIED_MASSES)} for a certificate of so many labels",
            m,
        )
    return Channel(tuple(map(mechanism.row, at))), [
        bins.index(own) for own in mechanism.own.tolist()
    ]


def _refine_route(route: Route) -> Route:
    """Return a route of channels whose answer is refined in rationals where the means are to be kept."""

    def answer(problem: ChannelOfLabels, programs: Programs | None, start: str) -> Answer | Doubt:
        plain = route.answer(problem, programs, start)
        return plain if isinstance(plain, Doubt) else problem.refine(plain)

    return replace(route, answer=answer)


class ChannelOfLabels(ChannelProblem):
    """The channel of a request for labels."""

    ACCEPTED_GAP = 1e-5
    routes = tuple(map(_refine_route, ChannelProblem.routes))

    def __init__(self, labels: LabelRequest) -> None:
        super().__init__(labels.channel)
        self.reported_request = labels

    def refine(self, answer: Answer) -> Answer:
        """Return an answer in rationals, where means are to be kept and a repair of the last digits costs loss."""
        request, solution = self.request, answer.solution
        kept = (
            "unbiased" in request.aim.constraints
            and request.losses.values.size <= _MAX_REFINED_MASSES
        )
        if (
            not kept
            or request.has_several_bounds
            or not request.wants_certificate
            or solution is None
        ):
            return answer
        loss = float(self.compute_loss(self.repair(answer)[0]))
        if answer.bound is not None and loss - float(answer.bound) <= _MAX_REPAIR_LOSS_SHARE * loss:
            return answer
        refined = _solve_in_rationals(
            solution,
            min(_MAX_REFINEMENT_SECONDS, request.how.options.time_limit or _MAX_REFINEMENT_SECONDS),
        )
        if refined is None:
            return answer
        rows, bound = refined
        proven = max(
            Fraction(known)
            for known in (bound, answer.bound)
            if known is not None and known > -np.inf
        )
        closer = replace(answer, bound=proven, law=(_round_rationals(rows), None))
        return (
            closer
            if float(self.compute_loss(self.repair(closer)[0])) < loss
            else replace(answer, bound=proven)
        )

    def require_proof(self, design: Design) -> Design:
        """See `ChannelProblem.proven`; compares with the best bins at δ = 0, whose outputs are real numbers.

        Bins with a smaller loss are the answer where the user left the method open; else a note gives their loss.
        """
        design, request = super().require_proof(design), self.reported_request
        is_plain = (
            request.aim.outputs is None
            and request.aim.neighbours == "all"
            and not request.aim.constraints
        )
        has_named_loss = isinstance(request.aim.loss, (str, Loss))
        has_one_bound = not request.has_several_bounds and not request.is_per_distance
        if not (
            is_plain
            and has_named_loss
            and has_one_bound
            and request.claim.delta
            and request.aim.runs == 1
        ):
            return design
        if request.aim.minimise != "loss":
            return design
        try:
            bins = find_best_bins(request.question, request.claim.epsilon, request.named_loss)
        except InvalidRequest:  # Theorem 5 does not cover every loss, such as the error rate.
            return design
        prior = request.question.prior
        loss = float(prior[prior > 0] @ bins.losses(request.named_loss)[prior > 0])
        if loss >= design.objective:
            return design
        if request.how.may_use_bins and request.wants_certificate:
            return self._bins_without_delta(design)
        words = (
            f"With real outputs less is possible: method bins at delta = 0, which is private at every delta, costs "
            f"{loss:.9g}."
        )
        return replace(design, words=(*design.words, words))

    def _bins_without_delta(self, reached: Design) -> Design:
        """The best bins at δ = 0 as the answer of a request with δ; its bound holds for all real outputs at δ."""
        request = self.reported_request
        pure = request.with_values(
            claim=Claim("pure", request.claim.epsilon), method="bins", may_use_bins=False
        )
        optimum = design_problem(BinsProblem(pure))
        bound = round_down(self.loss_scale.floor)  # No mechanism has a smaller loss, whatever δ is.
        below = None if optimum.bound is None else self.bound_at_delta(optimum.bound)
        if below is not None:
            bound = max(bound, round_down(below))
        is_optimal = self.loss_scale.proves(optimum.objective, bound)
        words = (
            f"These are the best bins at delta = 0 (method bins). With this delta a channel whose outputs are labels "
            f"costs {reached.objective:.9g} (method lp)."
        )
        return replace(
            optimum,
            request=request,
            claim=self.claim,
            bound=bound,
            oracle=OracleVerdict.without_formula("no closed form is known with delta > 0."),
            words=(*optimum.words, words),
            details={**optimum.details, "stopped": not is_optimal},
            route=f"{optimum.route} at delta = 0",
        )


def design_within_curve(request: LabelRequest, curve: Claim) -> Design:
    """The least-loss channel of one run within a claim of several (ε, δ). Raises as its session."""
    return design_problem(ChannelOfLabels(request.with_values(claim=curve)))


def _round_rationals(channel: Channel) -> Integers:
    """Rows over one sum."""
    K = np.array(
        [[(v << _REFINEMENT_BITS) // row.total for v in row.integers] for row in channel.rows],
        dtype=object,
    )
    for row in K:
        row[int(np.argmax(row))] += (1 << _REFINEMENT_BITS) - int(row.sum())
    return K


def _solve_in_rationals(solution: Solution, time_limit: float) -> tuple[Channel, float] | None:
    """The channel and the bound of the same program in rationals; None where refining has no answer.

    What keeps the means is mixed with rows that cost much, so a solver's last digits cost much.
    """
    try:
        point = solve_rational(
            RationalLP.from_data(solution.data, _REFINEMENT_BITS),
            accuracy=_REFINEMENT_BITS - 30,
            time_limit=time_limit,
        )
    except NoRationalSolution:
        return None
    block = solution.program.block("M")
    masses = np.array(point.x[block.start : block.start + block.size], dtype=object).reshape(
        block.shape, order="F"
    )
    rows = [
        Distribution([max(mass, ZERO) for mass in row], "a row of the channel") for row in masses
    ]
    return Channel(tuple(rows)), -np.inf if point.bound is None else round_down(point.bound)
