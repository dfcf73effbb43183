"""Ways to answer a request: a `Problem` lists its routes, and the first that applies answers.

    for route in problem.routes: applies(problem) is None ──▶ answer(problem, ...) ──▶ Answer

A route whose answer proves too little returns a `Doubt`, and the next route that applies is used.
The mechanism of the earlier route is kept, with the larger of the two bounds.

family and problem             routes in order
modulo  `ModuloProblem`        tangents, fast search, program
noise   `NoiseProblem`         staircase, programs at delta = 0, programs from both sides
        `RunsProblem`          composed noise
channel `ChannelProblem`       one output, outputs without privacy, geometric noise, blocks,
                               program, interior method, tangents, hockey sticks, interior bound
        `FreeOutputsProblem`   one output, linear loss, search over outputs
        `GivenMechanism`       given mechanism (of a range)
quantizer `QuantizerProblem`   exact program, search over outputs, optm, optm-theorem6,
                               optm-authors, product, mvu, rqm, erm
labels  `BinsProblem`          bins
        `WithPriorProblem`     rr-with-prior
        `ChannelOfLabels`      those of `ChannelProblem`
        `UnbiasedProblem`      cones
other packages `Problem`       program, or routes of their own

A design names its route (`Design.route`). Simple candidates are also tried, because they may have a
smaller loss (`Problem.find_constant`, `Problem.find_simpler_candidates`, `Problem.without_delta`).
The design names them too. Searches over designs (many runs, ranges, clamped noise, the minimal ε or
δ) are sessions, and name the route of the design that they select.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from workbench.errors import NotProven, WorkbenchError
from workbench.exact.objects import Values
from workbench.pipeline.outcome import translate_error
from workbench.solvers.backend import Options, get_backend
from workbench.solvers.errors import SolverError
from workbench.solvers.solution import Solution

Reason = str | None  # Why a route does not apply, without a full stop. None if it applies.

# At this integrality tolerance, the answers of mixed-integer programs are worth certifying. At the
# usual 1e-5 a binary of 4e-6 allows 4e-6 of probability to exceed the budget unnoticed.
_CERTIFIABLE_INTEGRALITY_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Answer:
    """What a route answers, before the mechanism is repaired.

    Attributes:
        mechanism: The solver's mechanism, in floats.
        bound: Lower bound on what is minimised.
        solution: The solver's answer. None for a closed form.
        origin: Where the certified masses come from, as text.
        law: What is repaired, if this is more than the mechanism.
        claimed_objective: Objective of a design that is not repaired, if it is not the loss of the
            mechanism.
        is_proxy: Whether `claimed_objective` is the objective of a repaired design too, because
            what is minimised is not the loss.
        notes: Sentences for the reader.
        details: Values that only the family uses.
        route: Name of the route that answered.
    """

    mechanism: Any
    bound: Fraction | float | None
    solution: Solution | None = None
    origin: str = "repair"
    law: Any = None
    claimed_objective: float | None = None
    is_proxy: bool = False
    notes: Sequence[str] = ()
    details: Values = field(default_factory=dict)
    route: str | None = None


class Programs:
    """The compiled programs of one family and solver, which stay live between requests.

    Args:
        solver: Label of the solver.

    Attributes:
        backend: The solver.
        live_sessions: For each key, the model and the session of the solver.
    """

    def __init__(self, solver: str) -> None:
        try:
            self.backend = get_backend(solver)
        except (ValueError, SolverError) as error:
            raise translate_error(error) from None
        self.live_sessions: dict[Any, Any] = {}

    def tighten_tolerances(self, options: Options) -> Options:
        """Return options whose mixed-integer answers are worth certifying.

        Args:
            options: The options of the request. A tolerance that it sets is kept.
        """
        if "integrality_tolerance" not in self.backend.supported_options:
            return options
        tolerance = options.integrality_tolerance or _CERTIFIABLE_INTEGRALITY_TOLERANCE
        return replace(options, integrality_tolerance=tolerance)

    def close(self) -> None:
        """Release the resources of the solver."""
        for _, session in self.live_sessions.values():
            session.close()
        self.live_sessions.clear()


@dataclass(frozen=True)
class Doubt:
    """What a route returns if its answer proves too little.

    Attributes:
        reason: Why the next route is used.
        answer: The mechanism that was found and its bound. None if there is none.
        error: Error to raise if no other route answers. None if `answer` is the answer then.
    """

    reason: str
    answer: Answer | None = None
    error: WorkbenchError | None = None


@dataclass(frozen=True)
class Route:
    """One way to answer a request.

    Attributes:
        name: Name in reports.
        applies: Function of a problem that returns None if the route can answer it, else the reason
            why it cannot.
        answer: Function of a problem, the compiled programs and the start ("hot" or "cold") that
            returns the answer or a doubt.
    """

    name: str
    applies: Callable[[Any], Reason]
    answer: Callable[[Any, Programs | None, str], Answer | Doubt]


def applies_always(problem: Any) -> Reason:
    """Return None: the route answers every problem of its class.

    Args:
        problem: The `Problem` of the request.
    """
    return None


def require_several_bounds(problem: Any) -> Reason:
    """Return why a route for notions with several convex bounds does not apply.

    Args:
        problem: The `Problem` of the request.
    """
    if problem.request.has_several_bounds:
        return None
    return f"{problem.request.claim.notion.name} states one bound on ratios"


def require_one_bound(problem: Any) -> Reason:
    """Return why a route for notions with one bound on ratios does not apply.

    Args:
        problem: The `Problem` of the request.
    """
    if not problem.request.has_several_bounds:
        return None
    return f"{problem.request.claim.notion.name} states several bounds"


def list_refusals(problem: Any) -> dict[str, str]:
    """Return the reason of every route that does not apply, by its name.

    Args:
        problem: The `Problem` of the request.
    """
    reasons = {route.name: route.applies(problem) for route in problem.routes}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def answer_by_routes(
    problem: Any, routes: Iterable[Route], programs: Programs | None, start: str
) -> Answer:
    """Return the answer of the first route that applies and proves enough.

    Args:
        problem: The problem of a request.
        routes: The ways to answer it, in order.
        programs: The compiled programs of the session. None if no route needs any.
        start: "hot" or "cold".

    Returns:
        The answer, which names its route.

    Raises:
        InvalidRequest, Infeasible, NotProven, SolverUnavailable: As the route that answered.
        NotProven: Every route doubts its answer and has none.
    """
    doubtful_answer: Answer | None = None
    error: WorkbenchError | None = None
    reasons: list[str] = []
    for route in routes:
        reason = route.applies(problem)
        if reason is None:
            outcome = route.answer(problem, programs, start)
            answer = outcome.answer if isinstance(outcome, Doubt) else outcome
            if doubtful_answer is not None:
                doubtful_answer = _keep_larger_bound(doubtful_answer, answer)
                continue
            if not isinstance(outcome, Doubt):
                return replace(outcome, route=route.name)
            error = error or outcome.error
            reason = outcome.reason
            if answer is not None and error is None:
                doubtful_answer = replace(answer, route=route.name)
        reasons.append(f"{route.name}: {reason}")
    if doubtful_answer is not None:
        return doubtful_answer
    raise error or NotProven(f"No route answers the request ({'; '.join(reasons)}).")


def _keep_larger_bound(answer: Answer, other_answer: Answer | None) -> Answer:
    """Return an answer with the larger of its bound and the bound of another answer."""
    if other_answer is None:
        return answer
    bound = other_answer.bound or 0  # Without a proof, the trivial bound is 0.
    if answer.bound is not None and answer.bound >= bound:
        return answer
    return replace(answer, bound=bound)
