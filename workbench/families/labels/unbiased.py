"""The least-squares unbiased label randomizer: the cone program of `models.unbiased`, made exact on its intervals."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from models.unbiased_levels import NoPoint, Optimum, Search, optimum
from solvers.search import Deadline
from solvers.solution import Termination
from workbench.errors import NotProven
from workbench.families.design import Design, OracleVerdict
from workbench.families.infeasible import no_point
from workbench.families.labels.problem import RandomizerProblem
from workbench.families.labels.request import LabelRequest, check_size
from workbench.families.labels.unbiased_channel import exact_channel
from workbench.families.outcome import translated_errors
from workbench.families.problem import Answer, Programs
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import odds_below

_CERTIFIED = 4_000_000  # masses and stated losses of a certificate: it needs no repair, and its file is short
_ENOUGH = 1e-7  # relative gap of what counts as an optimum
_OUTPUTS = 3  # for every label, about


def _far(loss: float, bound: float) -> bool:
    """Whether a loss is farther from its bound than an optimum may be."""
    return loss - bound > _ENOUGH * max(loss, 1e-300)


class UnbiasedProblem(RandomizerProblem):
    """The optimum over all real outputs, to a relative gap of 1e-7 (1e-8 or less as a rule).

    request.progress is told a line for every program.
    """

    STATED = _CERTIFIED

    def __init__(self, request: LabelRequest) -> None:
        super().__init__(request)
        self.odds, _ = odds_below(request.claim.epsilon)
        self.report = request.progress or (lambda line: None)
        self.deadline = Deadline(request.options.time_limit)

    def answered(self, programs: Programs | None, start: str) -> Answer:
        """By cones. Raises InvalidRequest, NotProven."""
        request = self.request
        if request.certified:
            check_size(request.question.k, _OUTPUTS * request.question.k, None, _CERTIFIED)
        point = self._solved()
        loss, mechanism = self._exact(point)
        solution, bound = point.solution, max(0.0, min(point.bound, loss))
        if request.certified and request.question.k * mechanism.outputs.size > _CERTIFIED:
            raise NotProven(
                f"The search ended with a channel of {mechanism.outputs.size} outputs, too many for a certificate; "
                "a longer time limit may end with fewer.",
                incumbent=loss,
                bound=bound,
            )
        if not _far(loss, bound) and solution.termination is not Termination.OPTIMAL:
            solution = replace(solution, termination=Termination.OPTIMAL)  # decided by the exact channel and the bound
        words = ["Every mass is an exact rational, with E[o|y] = y exactly."]
        return Answer(mechanism, bound, solution, "exact masses on intervals of labels", words=words)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """There is none."""
        return OracleVerdict.none("no closed form is known; the bound prices all sets of labels and all real outputs.")

    def proven(self, reached: Design) -> Design:
        """By the bound. Raises NotProven, with the design."""
        loss, bound = reached.objective, reached.details["bound"]
        if _far(loss, bound):
            raise NotProven(f"The program ended with the optimum between {bound:.9g} and {loss:.9g}.", design=reached)
        return reached

    def _solved(self) -> Optimum:
        """The optimum. Raises NotProven, Infeasible."""
        request, question, bound = self.request, self.request.question, 0.0
        try:
            with translated_errors():
                search = Search(float(self.odds - 1), request.solver, request.options, progress=self.report)
                point = optimum(search, question.values, question.prior)
            if not (self.deadline.passed and request.certified and question.k * point.t.size > _CERTIFIED):
                return point
            bound = max(0.0, point.bound)
        except NoPoint as failed:
            if not self.deadline.passed:
                no_point(failed.solution, None, "randomized response with stretched outputs is private and unbiased")
        raise NotProven("The time limit ended the search before a channel small enough for a certificate.", bound=bound)

    def _exact(self, answer: Optimum) -> tuple[float, Channel]:
        """The exact channel of the thinned point, or of that on more sets where it is too far off. Raises NotProven."""
        question = self.request.question
        known, refused = list[tuple[float, Channel]](), ""
        point: Optimum | None = answer
        while point is not None and (not known or _far(known[0][0], answer.bound)):
            try:
                mechanism = exact_channel(question.values, self.odds, point)
                known = sorted([*known, (self.loss(mechanism), mechanism)], key=itemgetter(0))
            except ArithmeticError as error:
                refused = str(error)
            point = point.wider
        if not known:
            ended = "time limit ended the search" if self.deadline.passed else "program ended"
            raise NotProven(f"The {ended}, but {refused}.", bound=max(0.0, answer.bound))
        return known[0]
