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
from workbench.exact.numbers import ZERO, Real, nearest_float, positive, round_down
from workbench.families.channel.problem import ChannelProblem
from workbench.families.labels.request import MASSES, ROWS, LabelRequest, check_size
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, on_bins
from workbench.models.losses import Loss
from workbench.models.oracles.bins import optimal_bins, printed_bins
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.outcome import translated_errors
from workbench.pipeline.problem import Problem, Repaired, stated_certificate
from workbench.pipeline.routes import Answer, Doubt, Programs, Route, always
from workbench.pipeline.solve import design
from workbench.privacy.audit import holds
from workbench.privacy.claim import Claim
from workbench.questions.labels import Labels
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.rational_lp import RationalLP
from workbench.solvers.exact.rational_refinement import solve_rational
from workbench.solvers.solution import Solution

_JUDGED = 128  # labels up to which the printed algorithm judges the fast one
_FULL = 100_000  # masses up to which RR-on-Bins has a row for every label, not only for every bin
_STATED = 1_000_000  # labels times outputs up to which a certificate states the loss (a second)
_REFINED, _DIGITS, _LOST = (
    500,
    160,
    1e-9,
)  # cells that rationals refine, bits there, of the loss what is worth it
_PATIENCE = 10.0  # seconds for that


def best_bins(labels: Labels, epsilon: Real, loss: str | Loss = "squared") -> RandomizedResponse:
    """The best RR-on-Bins for labels with their prior, exact. Raises InvalidRequest."""
    with translated_errors():
        bins = optimal_bins(
            labels.values, labels.prior, nearest_float(positive(epsilon, "epsilon")), loss
        )
    return on_bins(labels, bins.starts, bins.values, epsilon)


_Rows = tuple[Channel, Sequence[int] | None]  # and the row of every label, where labels share them


class RandomizerProblem(Problem):
    """A randomizer that is exactly private as constructed, all labels being neighbours."""

    request: LabelRequest
    STATED = _STATED

    def certified_rows(self, mechanism: Any) -> _Rows:
        """(the channel of a certificate, the row of every label where labels share them). Raises InvalidRequest."""
        return mechanism, None

    def repaired(self, answer: Answer) -> Repaired:
        """There is nothing to repair. Raises InvalidRequest, NotCertified."""
        request, mechanism, labels = self.request, answer.mechanism, self.request.question
        channel, rows = self.certified_rows(mechanism)
        if not holds(channel, request.audited_claim):
            raise NotCertified("The exact audit refuses the randomizer.")
        values, prior, outputs = (
            tuple(map(Fraction, array.tolist()))
            for array in (labels.values, labels.prior, mechanism.outputs)
        )
        record = {"method": request.how.method, "loss": request.named_loss.name}
        if rows is not None:
            record |= {"rows": "one for every bin", "bins": mechanism.bins()}
        loss = request.named_loss.name if labels.k * len(outputs) <= self.STATED else None
        return (
            mechanism,
            stated_certificate(
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

    def loss(self, mechanism: Any) -> float:
        """The expected loss under the prior."""
        prior = self.request.question.prior
        return float(prior[prior > 0] @ mechanism.losses(self.request.named_loss)[prior > 0])


class BinsProblem(RandomizerProblem):
    """RR-on-Bins, by the fast algorithm."""

    routes = (Route("bins", always, lambda problem, programs, start: problem.answer_by_bins()),)

    def answer_by_bins(self) -> Answer:
        """Return the optimum over all real outputs."""
        request, question = self.request, self.request.question
        with translated_errors():
            bins = optimal_bins(
                question.values,
                question.prior,
                float(request.audited_claim.epsilon),
                request.named_loss,
            )
        mechanism = on_bins(question, bins.starts, bins.values, request.audited_claim.epsilon)
        return Answer(mechanism, bins.bound, origin="exact as constructed", claimed=bins.objective)

    def certified_rows(self, mechanism: RandomizedResponse) -> _Rows:
        """A row for every label; one for every bin, where the rows of all labels would be too many."""
        return rows_of_bins(mechanism)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """Algorithm 2 as printed judges the fast one."""
        question = self.request.question
        if question.k > _JUDGED:
            return OracleVerdict.none(f"the printed algorithm judges up to {_JUDGED} labels only.")
        epsilon, loss = float(self.request.audited_claim.epsilon), self.request.named_loss
        other = printed_bins(question.values, question.prior, epsilon, loss).objective
        proof = "Algorithm 2 as printed: every partition into intervals, by dynamic programming; Theorem 5."
        return OracleVerdict.judge(answer.claimed, "Algorithm 2", other, "optimum", proof)

    def proven(self, reached: Design) -> Design:
        """By Theorem 5."""
        return reached


def rows_of_bins(mechanism: RandomizedResponse) -> _Rows:
    """(the channel of a certificate, the row of every label where it has one for every bin). Raises InvalidRequest."""
    k, m = mechanism.labels.k, mechanism.outputs.size
    if k == 1:
        check_size(k, m, None)
    if k <= ROWS and k * m <= _FULL:
        return mechanism.certified_form(), None
    at = mechanism.distinct().tolist()
    bins = mechanism.own[at].tolist()
    at = at if len(at) > 1 else [0, k - 1]  # two labels of the only bin
    if len(at) > ROWS or len(at) * m > MASSES:
        must("bins", f"at most {math.isqrt(MASSES)} for a certificate of so many labels", m)
    return Channel(tuple(map(mechanism.row, at))), [
        bins.index(own) for own in mechanism.own.tolist()
    ]


def _with_means_in_rationals(route: Route) -> Route:
    """Return a route of channels whose answer is refined in rationals where the means are to be kept."""

    def answer(problem: ChannelOfLabels, programs: Programs | None, start: str) -> Answer | Doubt:
        plain = route.answer(problem, programs, start)
        return plain if isinstance(plain, Doubt) else problem.refine(plain)

    return replace(route, answer=answer)


class ChannelOfLabels(ChannelProblem):
    """The channel of a request for labels."""

    ENOUGH = 1e-5
    routes = tuple(map(_with_means_in_rationals, ChannelProblem.routes))

    def __init__(self, labels: LabelRequest) -> None:
        super().__init__(labels.channel)
        self.outer = labels

    def refine(self, answer: Answer) -> Answer:
        """Return an answer in rationals, where means are to be kept and a repair of the last digits costs loss."""
        request, solution = self.request, answer.solution
        kept = "unbiased" in request.aim.constraints and request.losses.values.size <= _REFINED
        if not kept or request.cut or not request.certified or solution is None:
            return answer
        loss = float(self.loss(self.repaired(answer)[0]))
        if answer.bound is not None and loss - float(answer.bound) <= _LOST * loss:
            return answer
        refined = _refined(solution, min(_PATIENCE, request.how.options.time_limit or _PATIENCE))
        if refined is None:
            return answer
        rows, bound = refined
        proven = max(
            Fraction(known)
            for known in (bound, answer.bound)
            if known is not None and known > -np.inf
        )
        closer = replace(answer, bound=proven, law=(_integers(rows), None))
        return (
            closer
            if float(self.loss(self.repaired(closer)[0])) < loss
            else replace(answer, bound=proven)
        )

    def proven(self, reached: Design) -> Design:
        """See `ChannelProblem.proven`; compares with the best bins at δ = 0, whose outputs are real numbers.

        Bins with a smaller loss are the answer where the user left the method open; else a note gives their loss.
        """
        reached, request = super().proven(reached), self.outer
        is_plain = (
            request.aim.outputs is None
            and request.aim.neighbours == "all"
            and not request.aim.constraints
        )
        has_named_loss = isinstance(request.aim.loss, (str, Loss))
        has_one_bound = not request.cut and not request.per_distance
        if not (
            is_plain
            and has_named_loss
            and has_one_bound
            and request.claim.delta
            and request.aim.runs == 1
        ):
            return reached
        if request.aim.minimise != "loss":
            return reached
        try:
            bins = best_bins(request.question, request.claim.epsilon, request.named_loss)
        except InvalidRequest:  # Theorem 5 does not cover every loss, such as the error rate.
            return reached
        prior = request.question.prior
        loss = float(prior[prior > 0] @ bins.losses(request.named_loss)[prior > 0])
        if loss >= reached.objective:
            return reached
        if request.how.may_use_bins and request.certified:
            return self._bins_without_delta(reached)
        words = (
            f"With real outputs less is possible: method bins at delta = 0, which is private at every delta, costs "
            f"{loss:.9g}."
        )
        return replace(reached, words=(*reached.words, words))

    def _bins_without_delta(self, reached: Design) -> Design:
        """The best bins at δ = 0 as the answer of a request with δ; its bound holds for all real outputs at δ."""
        request = self.outer
        pure = request.with_values(
            claim=Claim("pure", request.claim.epsilon), method="bins", may_use_bins=False
        )
        optimum = design(BinsProblem(pure))
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
            oracle=OracleVerdict.none("no closed form is known with delta > 0."),
            words=(*optimum.words, words),
            details={**optimum.details, "stopped": not is_optimal},
            route=f"{optimum.route} at delta = 0",
        )


def within_curve(request: LabelRequest, curve: Claim) -> Design:
    """The least-loss channel of one run within a claim of several (ε, δ). Raises as its session."""
    return design(ChannelOfLabels(request.with_values(claim=curve)))


def _integers(channel: Channel) -> Integers:
    """Rows over one sum."""
    K = np.array(
        [[(v << _DIGITS) // row.total for v in row.integers] for row in channel.rows], dtype=object
    )
    for row in K:
        row[int(np.argmax(row))] += (1 << _DIGITS) - int(row.sum())
    return K


def _refined(solution: Solution, time_limit: float) -> tuple[Channel, float] | None:
    """The channel and the bound of the same program in rationals; None where refining has no answer.

    What keeps the means is mixed with rows that cost much, so a solver's last digits cost much.
    """
    try:
        point = solve_rational(
            RationalLP.of(solution.data, _DIGITS), accuracy=_DIGITS - 30, time_limit=time_limit
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
