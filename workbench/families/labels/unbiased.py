"""Design the unbiased label randomizer of smallest squared loss: the mean of its output is exactly
the label.

Outputs may be any real numbers. The cone program of `workbench.models.labels.unbiased` finds an
approximate optimum: masses on intervals of labels. `unbiased_channel` turns it into a channel that
is exactly private and exactly unbiased.
"""

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

# Largest number of masses (labels times outputs) in a certificate. It is larger than for other
# methods, because nothing is repaired.
_MAX_CERTIFICATE_MASSES = 4_000_000
# If the gap is at most this share of the loss, the status is "optimal". Above it, a note states the
# interval of the optimum.
_OPTIMAL_GAP = 1e-7
# If the gap is a larger share of the loss than this, the design raises NotProven.
_PROVEN_GAP = 2e-3
# The optimum is expected to have this many times as many outputs as labels. The size of the
# certificate is checked with this number before the program is solved.
_OUTPUTS_PER_LABEL = 3
# Losses below this are treated as this in relative gaps.
_MIN_LOSS = 1e-300


def _is_within(gap: float, loss: float, bound: float) -> bool:
    """Return whether loss - bound is at most the share `gap` of the loss."""
    return loss - bound <= gap * max(loss, _MIN_LOSS)


class UnbiasedProblem(RandomizerProblem):
    """The problem of the unbiased optimum over all real outputs.

    The relative gap is usually 1e-7, and always at most 0.2 %.

    Args:
        request: request for labels with method unbiased.

    Attributes:
        odds: e^ε, rounded down to a rational.
        report: function that receives a line of text about every program that is solved.
        deadline: end of the time limit.
    """

    MAX_STATED_LOSSES = _MAX_CERTIFICATE_MASSES
    routes = (
        Route(
            "cones",
            applies_always,
            answer=lambda problem, programs, start: problem.answer_by_cones(),
        ),
    )

    def __init__(self, request: LabelRequest) -> None:
        super().__init__(request)
        self.odds, _ = round_odds_down(request.audited_claim.epsilon)
        self.report = request.how.progress or (lambda line: None)
        self.deadline = Deadline(request.how.options.time_limit)

    def answer_by_cones(self) -> Answer:
        """Solve cone programs, and convert their solution to an exact channel.

        Raises:
            InvalidRequest: there are too many labels for a certificate.
            NotProven: the time limit ended the search too early.
        """
        request = self.request
        k = request.question.k
        if request.wants_certificate:
            check_certificate_size(
                k, _OUTPUTS_PER_LABEL * k, pairs=None, masses=_MAX_CERTIFICATE_MASSES
            )
        point = self._solve_program()
        mechanism = self._make_exact_channel(point)
        loss = self.compute_loss(mechanism)
        bound = max(0.0, min(point.bound, loss))
        output_count = mechanism.outputs.size
        if request.wants_certificate and k * output_count > _MAX_CERTIFICATE_MASSES:
            raise NotProven(
                f"The search ended with a channel of {output_count} outputs, too many for a "
                "certificate. A longer time limit may lead to fewer outputs.",
                incumbent=loss,
                bound=bound,
            )
        notes = ["Every mass is an exact rational, with E[o|y] = y exactly."]
        # The exact channel and the bound decide the termination, not the solver.
        termination = Termination.OPTIMAL
        if not _is_within(_OPTIMAL_GAP, loss, bound):
            termination = Termination.GAP_LIMIT
            notes.append(
                "The smallest loss of an unbiased randomizer is between "
                f"{bound:.9g} and {loss:.9g}."
            )
        solution = replace(point.solution, termination=termination)
        return Answer(
            mechanism, bound, solution, "exact masses on intervals of labels", notes=notes
        )

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Return that no formula is known.

        Args:
            answer: not used.
        """
        return OracleVerdict.without_formula(
            "no closed form is known; the bound holds for all sets of labels and all real outputs."
        )

    def require_proof(self, design: Design) -> Design:
        """Return a design whose bound is close to its loss.

        Args:
            design: certified design of the request.

        Raises:
            NotProven: the gap is too large. The error carries the design.
        """
        loss = design.objective
        bound = design.details["bound"]
        if not _is_within(_PROVEN_GAP, loss, bound):
            raise NotProven(
                f"The program ended with the optimum between {bound:.9g} and {loss:.9g}.",
                design=design,
            )
        return design

    def _solve_program(self) -> UnbiasedOptimum:
        """Find the optimum: masses and moments on intervals of labels, and a bound.

        Raises NotProven if the time limit has passed and there is no point, or only one that is too
        large for a certificate. Within the time limit, raises Infeasible or NotProven if the solver
        gave no point.
        """
        request = self.request
        question = request.question
        bound = 0.0
        try:
            with translate_errors():
                search = UnbiasedSearch(
                    float(self.odds - 1),
                    request.how.solver,
                    request.how.options,
                    progress=self.report,
                )
                point = find_unbiased_optimum(search, question.values, question.prior)
            # If the search ended within its time limit, the size of the exact channel decides.
            interval_count = point.t.size
            is_too_large = question.k * interval_count > _MAX_CERTIFICATE_MASSES
            if not (self.deadline.has_passed and request.wants_certificate and is_too_large):
                return point
            bound = max(0.0, point.bound)
        except NoPoint as failure:
            if not self.deadline.has_passed:
                # The program is always feasible (randomized response is a point), so an answer
                # "infeasible" is an error of the solver.
                raise_no_point(
                    failure.solution,
                    missing=None,
                    reason_feasible=(
                        "randomized response with stretched outputs is private and unbiased"
                    ),
                )
        raise NotProven(
            "The time limit ended the search before a channel small enough for a certificate was "
            "found. Increase --time-limit.",
            bound=bound,
        )

    def _make_exact_channel(self, point: UnbiasedOptimum) -> Channel:
        """Convert an approximate optimum to an exact channel. Raises NotProven."""
        try:
            return build_exact_channel(self.request.question.values, self.odds, point)
        except ArithmeticError as error:
            reason = "program ended"
            if self.deadline.has_passed:
                reason = "time limit ended the search"
            raise NotProven(f"The {reason}, but {error}.", bound=max(0.0, point.bound)) from None
