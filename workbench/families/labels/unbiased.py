"""The least-squares unbiased label randomizer: the cone program of `workbench.models.labels.unbiased`, made exact on
its intervals."""

from __future__ import annotations

from dataclasses import replace

from workbench.errors import NotProven
from workbench.families.labels.problem import RandomizerProblem
from workbench.families.labels.request import LabelRequest, check_certificate_size
from workbench.families.labels.unbiased_channel import build_exact_channel
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import round_odds_down
from workbench.models.labels.unbiased_levels import (
    NoPoint,
    UnbiasedOptimum,
    UnbiasedSearch,
    find_unbiased_optimum,
)
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.infeasible import raise_no_point
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.routes import Answer, Route, applies_always
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Termination

_MAX_CERTIFICATE_MASSES = 4_000_000  # masses and stated losses of a certificate: it needs no repair, and its file is short
_OPTIMAL_GAP = 1e-7  # Up to this relative gap the answer is called optimal.
_PROVEN_GAP = 2e-3  # Up to this relative gap the answer is reported, with its interval.
_OUTPUTS_PER_LABEL = 3  # for every label, about


def _is_within(gap: float, loss: float, bound: float) -> bool:
    """Whether a bound is within a relative gap of a loss."""
    return loss - bound <= gap * max(loss, 1e-300)


class UnbiasedProblem(RandomizerProblem):
    """The optimum over all real outputs, to a relative gap of 1e-7 as a rule and of .2 % always.

    request.how.progress is told a line for every program.
    """

    MAX_STATED_LOSSES = _MAX_CERTIFICATE_MASSES
    routes = (
        Route("cones", applies_always, lambda problem, programs, start: problem.answer_by_cones()),
    )

    def __init__(self, request: LabelRequest) -> None:
        super().__init__(request)
        self.odds, _ = round_odds_down(request.audited_claim.epsilon)
        self.report = request.how.progress or (lambda line: None)
        self.deadline = Deadline(request.how.options.time_limit)

    def answer_by_cones(self) -> Answer:
        """Solve cone programs and make their point exact. Raises InvalidRequest, NotProven."""
        request = self.request
        if request.wants_certificate:
            check_certificate_size(
                request.question.k,
                _OUTPUTS_PER_LABEL * request.question.k,
                None,
                _MAX_CERTIFICATE_MASSES,
            )
        point = self._solve_program()
        mechanism = self._make_exact_channel(point)
        loss = self.compute_loss(mechanism)
        solution, bound = point.solution, max(0.0, min(point.bound, loss))
        if (
            request.wants_certificate
            and request.question.k * mechanism.outputs.size > _MAX_CERTIFICATE_MASSES
        ):
            raise NotProven(
                f"The search ended with a channel of {mechanism.outputs.size} outputs, too many for a certificate; "
                "a longer time limit may end with fewer.",
                incumbent=loss,
                bound=bound,
            )
        words = ["Every mass is an exact rational, with E[o|y] = y exactly."]
        # The exact channel and the bound decide how the search ended, not the solver.
        if _is_within(_OPTIMAL_GAP, loss, bound):
            solution = replace(solution, termination=Termination.OPTIMAL)
        else:
            solution = replace(solution, termination=Termination.GAP_LIMIT)
            words.append(
                f"The least loss of an unbiased randomizer is between {bound:.9g} and {loss:.9g}."
            )
        return Answer(
            mechanism, bound, solution, "exact masses on intervals of labels", notes=words
        )

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """There is none."""
        return OracleVerdict.without_formula(
            "no closed form is known; the bound prices all sets of labels and all real outputs."
        )

    def require_proof(self, design: Design) -> Design:
        """Accept a design whose bound is near. Raises NotProven, with the design."""
        loss, bound = design.objective, design.details["bound"]
        if not _is_within(_PROVEN_GAP, loss, bound):
            raise NotProven(
                f"The program ended with the optimum between {bound:.9g} and {loss:.9g}.",
                design=design,
            )
        return design

    def _solve_program(self) -> UnbiasedOptimum:
        """The optimum. Raises NotProven, Infeasible."""
        request, question, bound = self.request, self.request.question, 0.0
        try:
            with translate_errors():
                search = UnbiasedSearch(
                    float(self.odds - 1),
                    request.how.solver,
                    request.how.options,
                    progress=self.report,
                )
                point = find_unbiased_optimum(search, question.values, question.prior)
            if not (
                self.deadline.has_passed
                and request.wants_certificate
                and question.k * point.t.size > _MAX_CERTIFICATE_MASSES
            ):
                return point
            bound = max(0.0, point.bound)
        except NoPoint as failed:
            if not self.deadline.has_passed:
                raise_no_point(
                    failed.solution,
                    None,
                    "randomized response with stretched outputs is private and unbiased",
                )
        raise NotProven(
            "The time limit ended the search before a channel small enough for a certificate.",
            bound=bound,
        )

    def _make_exact_channel(self, point: UnbiasedOptimum) -> Channel:
        """Make the point an exact channel. Raises NotProven."""
        try:
            return build_exact_channel(self.request.question.values, self.odds, point)
        except ArithmeticError as error:
            ended = "time limit ended the search" if self.deadline.has_passed else "program ended"
            raise NotProven(f"The {ended}, but {error}.", bound=max(0.0, point.bound)) from None
