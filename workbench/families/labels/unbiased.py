"""The least-squares unbiased label randomizer: the cone program of `models.unbiased`, made exact on its intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NoReturn

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
_STOPPED = (Termination.TIME_LIMIT, Termination.ITERATION_LIMIT, Termination.INTERRUPTED)


@dataclass(frozen=True)
class _Exact:
    """An exact channel with its loss, and the optimum whose bound it is beside."""

    mechanism: Channel
    loss: float
    optimum: Optimum

    @property
    def gap(self) -> float:
        """Relative."""
        return (self.loss - self.optimum.bound) / max(self.loss, 1e-300)


class UnbiasedProblem(RandomizerProblem):
    """The optimum over all real outputs, to a relative gap of 1e-7 (1e-8 or less as a rule).

    request.progress is told a line for every program.
    """

    STATED: ClassVar[int] = _CERTIFIED

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
        best = self._solved()
        mechanism, solution = best.mechanism, best.optimum.solution
        bound = max(0.0, min(best.optimum.bound, best.loss))
        if request.certified and request.question.k * mechanism.outputs.size > _CERTIFIED:
            raise NotProven(
                f"The search ended with a channel of {mechanism.outputs.size} outputs, too many for a certificate; "
                "a longer time limit may end with fewer.",
                incumbent=best.loss,
                bound=bound,
            )
        if best.gap <= _ENOUGH and solution.termination is not Termination.OPTIMAL:
            solution = replace(solution, termination=Termination.OPTIMAL)  # decided by the exact channel and the bound
        words = ["Every mass is an exact rational, with E[o|y] = y exactly."]
        return Answer(mechanism, bound, solution, "exact masses on intervals of labels", words=words)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """There is none."""
        return OracleVerdict.none("no closed form is known; the bound prices all sets of labels and all real outputs.")

    def proven(self, reached: Design) -> Design:
        """By the bound. Raises NotProven, with the design."""
        loss, bound = reached.objective, reached.details["bound"]
        if loss - bound > _ENOUGH * max(loss, 1e-300):
            words = f"The program ended with the optimum between {bound:.9g} and {loss:.9g}."
            raise NotProven(words, design=reached)
        return reached

    def _solved(self) -> _Exact:
        """The exact channel of the optimum. Raises NotProven, Infeasible."""
        request, question = self.request, self.request.question
        try:
            with translated_errors():
                search = Search(float(self.odds - 1), request.solver, request.options, progress=self.report)
                point = optimum(search, question.values, question.prior)
        except NoPoint as failed:
            if self.deadline.passed:
                self._late(0.0)
            no_point(failed.solution, None, "randomized response with stretched outputs is private and unbiased")
        if self.deadline.passed and request.certified and question.k * point.t.size > _CERTIFIED:
            self._late(max(0.0, point.bound))
        return self._exact(point)

    def _late(self, bound: float) -> NoReturn:
        raise NotProven("The time limit ended the search before a channel small enough for a certificate.", bound=bound)

    def _exact(self, answer: Optimum) -> _Exact:
        """The exact channel of the thinned point, or of that on more sets where it is too far off. Raises NotProven."""
        question = self.request.question
        labels, best, refused = tuple(map(Fraction, question.values.tolist())), None, ""
        point: Optimum | None = answer
        while point is not None and (best is None or best.gap > _ENOUGH):
            try:
                outputs, channel = exact_channel(question.values, self.odds, point)
            except ArithmeticError as error:
                refused = str(error)
            else:
                mechanism = Channel(channel.rows, labelled=(labels, tuple(map(Fraction, outputs.tolist()))))
                exact = _Exact(mechanism, self.loss(mechanism), answer)
                best = exact if best is None or exact.loss < best.loss else best
            point = point.wider
        if best is None:
            ended = "time limit ended the search" if self.deadline.passed else "program ended"
            raise NotProven(f"The {ended}, but {refused}.", bound=max(0.0, answer.bound))
        return best
