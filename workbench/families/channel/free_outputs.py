"""Design channels whose outputs are free: the design chooses real outputs, and its bound holds for
all real outputs.

A loss that is linear between the outputs needs no search: the answers, or the outputs of its table,
are optimal, because any other output can be replaced by a random choice of its two neighbours among
them. For other losses `output_search` finds the outputs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from workbench.families.channel.output_search import OutputSearch, answer_listed_outputs
from workbench.families.channel.problem import ONE_OUTPUT_NAME, ONE_OUTPUT_ROUTE, ChannelProblem
from workbench.families.channel.request import MIN_EPSILON, ChannelRequest
from workbench.pipeline.design import Design
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import make_loss_table
from workbench.pipeline.problem import Problem
from workbench.pipeline.routes import Answer, Reason, Route, applies_always
from workbench.pipeline.solve import ProblemSession
from workbench.solvers.solution import Termination

# If the gap exceeds this share of the loss, a note states the interval of the optimum.
_REPORTED_GAP = 1e-6
# A gap of at most this share of the width of the losses (`LossScale.width`) is always accepted.
_NEGLIGIBLE_WIDTH_SHARE = 2e-9


class FreeOutputsProblem(ChannelProblem):
    """The problem of a request whose outputs are free.

    After the search, `request` is the request with the chosen outputs.

    Args:
        request: request whose outputs are free.
    """

    routes = (
        ONE_OUTPUT_ROUTE,
        Route(
            "linear loss",
            applies=lambda problem: problem.why_not_table(),
            answer=lambda problem, programs, start: problem.answer_on_table(),
        ),
        Route(
            "search over outputs",
            applies_always,
            answer=lambda problem, programs, start: problem.answer_by_search(),
        ),
    )

    def __init__(self, request: ChannelRequest) -> None:
        super().__init__(request)
        self._free_request = request
        self._scale = request.scaled_losses.scale
        self._search = OutputSearch(request, self.ACCEPTED_GAP)

    def without_delta(self) -> Problem | None:
        """Return the same problem with free outputs at δ = 0.

        None for a notion per distance, or if δ or ε is minimised.
        """
        request = self._free_request
        if request.is_per_distance or request.aim.minimise != "loss":
            return None
        return FreeOutputsProblem(request.with_values(delta=Fraction(0)))

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """Return a lower bound at δ over all real outputs, made from one at δ = 0.

        The answers as outputs are enough to compute it, because the largest loss occurs at an end
        of their range. None in the cases of `ChannelProblem.bound_at_delta`.

        Args:
            bound: lower bound on the loss at δ = 0.
        """
        return ChannelProblem(self._free_request).bound_at_delta(bound)

    def find_constant(self, loss_limit: float) -> Answer | None:
        """Return the best constant output: before a search among the inputs, afterwards among the
        chosen outputs.

        None if its loss is not smaller than the limit, or in the cases of
        `ChannelProblem.find_constant`.

        Args:
            loss_limit: the output is returned only if its loss is smaller than this.
        """
        if self.request.question.has_free_outputs and not self.request.has_linear_loss:
            self._use_request(self._search.place_on_inputs())
        return super().find_constant(loss_limit)

    def _use_request(self, request: ChannelRequest) -> None:
        """Replace the request that is solved, and the request that the design reports."""
        self.request = request
        self.reported_request = request

    @property
    def loss_scale(self) -> LossScale:
        """Return the scale of the losses if the outputs are the answers.

        Without privacy, the answers are the best outputs. The default scale if δ or ε is minimised.
        """
        return self._scale if self.request.aim.minimise == "loss" else LossScale()

    def why_not_table(self) -> Reason:
        """Return why other outputs than the answers, or than those of a table, may be better.

        None if they cannot be better.
        """
        return None if self.request.has_linear_loss else "the loss is not linear between outputs"

    def answer_on_table(self) -> Answer:
        """Return the answer with the inputs, or the outputs of a table, as outputs.

        The loss is linear between them.
        """
        return answer_listed_outputs(self.request)

    def answer_by_search(self) -> Answer:
        """Return the answer with the outputs of a search, and the bound over all real outputs.

        Raises:
            NotProven: the search was interrupted, as in `ChannelProblem`.
        """
        candidate, bound = self._search.run()
        self._use_request(candidate.request)
        answer = replace(candidate.answer, bound=bound)
        if not self._search.is_interrupted:
            return answer
        if answer.solution is None:
            raise KeyboardInterrupt
        solution = replace(answer.solution, termination=Termination.INTERRUPTED)
        return replace(answer, solution=solution)

    def list_notes(self) -> list[str]:
        """List notes, with one on how a loss table is read between its outputs."""
        notes = super().list_notes()
        if isinstance(self.request.aim.loss, tuple):
            notes.append(
                "The loss is read as linear between the outputs of its table. No outputs beyond "
                "them are considered."
            )
        return notes

    def require_proof(self, design: Design) -> Design:
        """Return a design that is proven nearly optimal, with a note on the interval of the
        optimum.

        Args:
            design: certified design of the request.

        Raises:
            NotProven: the gap is too large. The error carries the design.
        """
        solution = design.solution
        bound = design.bound
        loss = design.objective
        scale = self.loss_scale
        claims_optimum = solution is None or solution.termination in (
            Termination.OPTIMAL,
            Termination.GAP_LIMIT,
        )
        if design.route == ONE_OUTPUT_NAME or not claims_optimum or bound is None:
            return super().require_proof(design)
        negligible_gap = _NEGLIGIBLE_WIDTH_SHARE * (scale.width or 1.0)
        if not scale.settles(loss, bound, self.ACCEPTED_GAP) and loss - bound > negligible_gap:
            return super().require_proof(design)
        if scale.settles(loss, bound, _REPORTED_GAP):
            return design
        note = f"The optimum over all real outputs lies between {bound:.9g} and {loss:.9g}."
        return replace(design, words=(*design.words, note))


class FreeOutputsSession(ProblemSession):
    """The session of requests whose outputs are free.

    Args:
        request: request whose outputs are free.
    """

    def __init__(self, request: ChannelRequest) -> None:
        super().__init__(request, FreeOutputsProblem, MIN_EPSILON)

    def _design_least(self, request: ChannelRequest, name: str, least: Fraction) -> Design:
        """Design the channel at the smallest ε, and report the request with the outputs chosen
        there.
        """
        design = super()._design_least(request, name, least)
        _, outputs = design.mechanism.axis_labels
        losses = make_loss_table(request.question.with_outputs(outputs), request.aim.loss)
        return replace(design, request=design.request.with_outputs(outputs, losses))
