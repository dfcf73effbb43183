"""The least-squares unbiased label randomizer: the cone program of `models.unbiased`, made exact on its intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from models.unbiased_levels import InteriorSearch, NoPoint, Optimum, SolverSearch, optimum
from solvers.search import Deadline
from solvers.solution import Termination
from workbench.errors import NotProven
from workbench.families.design import Design, OracleVerdict
from workbench.families.infeasible import no_point
from workbench.families.labels.problem import RandomizerProblem
from workbench.families.labels.request import LabelRequest, check_size
from workbench.families.labels.unbiased_channel import Kept, exact_channel
from workbench.families.outcome import translated_errors
from workbench.families.problem import Answer, Programs
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.randomized_response import odds_below

_CERTIFIED = 4_000_000  # masses and stated losses of a certificate: it needs no repair, and its file is short
_ENOUGH = 1e-7  # relative gap of what counts as an optimum
_OUTPUTS = 3  # for every label, about
_SHARES = (1e-9, 1e-11)  # of the prior, of the labels that are left out, tried in turn
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
        """By cones, or by interior points of our own. Raises InvalidRequest, NotProven."""
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
        if best.gap <= _ENOUGH and solution is not None and solution.termination is not Termination.OPTIMAL:
            solution = replace(solution, termination=Termination.OPTIMAL)  # decided by the exact channel and the bound
        words = ["Every mass is an exact rational, with E[o|y] = y exactly."]
        if solution is None:
            words.append(f"{request.solver} left a gap: solved by an interior-point method of the workbench's own.")
        return Answer(mechanism, bound, solution, "exact masses on intervals of labels", words=words)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """There is none."""
        return OracleVerdict.none("no closed form is known; the bound prices all sets of labels and all real outputs.")

    def proven(self, reached: Design) -> Design:
        """By the bound. Raises NotProven, with the design."""
        loss, bound = reached.objective, reached.details["bound"]
        if loss - bound > _ENOUGH * max(loss, 1e-300):
            words = f"The program ended with the optimum between {bound:.9g} and {loss:.9g}."
            raise NotProven(words, incumbent=loss, bound=bound, design=reached)
        return reached

    def _solved(self) -> _Exact:
        """The exact channel of the solver's optimum or, where that leaves a gap, of one by interior points of our own.

        Raises NotProven, Infeasible.
        """
        request, question = self.request, self.request.question
        kept, q = Kept.beside(question.values, question.prior, -1.0), float(self.odds - 1)
        point: Optimum | None = None
        try:
            with translated_errors():
                search = SolverSearch(q, request.solver, request.options, progress=self.report)
                point = optimum(search, kept.values, kept.shares)
            solution = point.solution
        except NoPoint as failed:
            solution = failed.solution
        late = self.deadline.passed
        stopped = late or (solution is not None and solution.termination in _STOPPED)
        if late and (point is None or (request.certified and question.k * point.t.size > _CERTIFIED)):
            raise NotProven(
                "The time limit ended the search before a channel small enough for a certificate.",
                bound=0.0 if point is None else max(0.0, point.bound),
            )
        best, refused = self._nearest(self._points(kept, point, q, stopped))
        if best is None and point is not None and not stopped:
            best, refused = self._exact(kept, point)
        if best is not None:
            return best
        if self.deadline.passed:
            raise NotProven("The time limit ended the search before an exact channel.", bound=0.0)
        if point is None:
            assert solution is not None  # a solver says why
            no_point(solution, None, "randomized response with stretched outputs is private and unbiased")
        raise NotProven(f"The program ended, but {refused}.", bound=point.bound)

    def _points(self, kept: Kept, point: Optimum | None, q: float, stopped: bool) -> Iterator[tuple[Kept, Optimum]]:
        """What is made exact until it is near its bound: the solver's optimum, then those of our own."""
        if point is not None and (stopped or point.closed(_ENOUGH)):
            yield kept, point
        if not stopped:
            yield from self._closer(q, point)

    def _nearest(self, points: Iterator[tuple[Kept, Optimum]]) -> tuple[_Exact | None, str]:
        """The exact channel that is nearest to its bound, no further than near enough; why there was none."""
        best, refused = None, ""
        for kept, point in points:
            exact, refused = self._exact(kept, point)
            if best is None or (exact is not None and exact.gap < best.gap):
                best = exact
            if best is not None and best.gap <= _ENOUGH:
                break
        return best, refused

    def _closer(self, q: float, seen: Optimum | None) -> Iterator[tuple[Kept, Optimum]]:
        """Optima by interior points of our own: without labels of hardly any prior first, then of all."""
        question, size = self.request.question, 0
        for share in (*_SHARES, -1.0):
            kept = Kept.beside(question.values, question.prior, share)
            if kept.positions.size <= size:
                continue
            size = kept.positions.size
            search = InteriorSearch(q, self.deadline, progress=self.report)
            try:
                point = optimum(search, kept.values, kept.shares, seen if kept.whole else None)
            except NoPoint:
                continue
            yield kept, replace(point, proof=replace(point.proof, bound=kept.bound(point.bound)))

    def _exact(self, kept: Kept, answer: Optimum) -> tuple[_Exact | None, str]:
        """The exact channel of the thinned point, or of that on more sets where it is too far off; why there is
        none."""
        labels, best, refused = tuple(map(Fraction, self.request.question.values.tolist())), None, ""
        point: Optimum | None = answer
        while point is not None and (best is None or best.gap > _ENOUGH):
            try:
                outputs, channel = exact_channel(kept.values, self.odds, point)
            except ArithmeticError as error:
                refused = str(error)
            else:
                rows = (channel if kept.whole else kept.completed(channel)).rows
                mechanism = Channel(rows, labelled=(labels, tuple(map(Fraction, outputs.tolist()))))
                exact = _Exact(mechanism, self.loss(mechanism), answer)
                best = exact if best is None or exact.loss < best.loss else best
            point = point.wider
        return best, refused
