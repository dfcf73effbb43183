"""Ways to answer a request: a `Problem` lists its routes, and the first that applies answers.

    for route in problem.routes: applies(problem) is None ──▶ answer(problem, ...) ──▶ Answer

A route whose answer proves too little returns a `Doubt`, and the next route that applies is asked.
A mechanism that an earlier route has found is kept, with the larger of the two bounds.

family and problem             routes in order
modulo  `ModuloProblem`        tangents, fast search, program
noise   `NoiseProblem`         staircase, programs at delta = 0, programs from both sides
        `RunsProblem`          composed noise
channel `ChannelProblem`       one output, outputs without privacy, geometric noise, blocks, program,
                               tangents, hockey sticks, interior method
        `FreeOutputsProblem`   one output, linear loss, search over outputs
        `GivenMechanism`       given mechanism (of a range)
quantizer `QuantizerProblem`   exact program, search over outputs, optm, product, mvu
labels  `BinsProblem`          bins
        `ChannelOfLabels`      those of `ChannelProblem`
        `UnbiasedProblem`      cones
other packages `Problem`       program, or routes of their own

A design names its route (`Design.route`). Candidates are tried beside the routes, because they may
have a smaller loss (`Problem.constant`, `Problem.stronger`, `Problem.without_delta`); the design
names them too. Searches over designs (many runs, ranges, clamped noise, the least ε or δ) are
sessions, and name the route of the design that they chose.
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

Reason = str | None  # Why a route does not apply, without a full stop; None where it applies.


@dataclass(frozen=True)
class Answer:
    """What a route answers, before anything is repaired.

    Attributes:
        mechanism: the solver's own, in floats.
        bound: on what is minimised.
        solution: None of a closed form.
        origin: where the certified masses come from, in words.
        law: what is repaired, where that is more than the mechanism.
        claimed: the objective of a design that is not repaired, where it is not the loss of the
            mechanism.
        proxy: whether `claimed` is the objective of a repaired design too, as what is minimised is
            not the loss.
        words: what a reader must know of it.
        details: what only its family knows.
        route: the name of the route that answered.
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
    """The compiled programs of one family and solver, live from request to request."""

    def __init__(self, solver: str) -> None:
        try:
            self.backend = get_backend(solver)
        except (ValueError, SolverError) as error:
            raise translate_error(error) from None
        self.live_sessions: dict[Any, Any] = {}  # key -> (model, session of the solver)

    def tighten_tolerances(self, options: Options) -> Options:
        """Options whose MILP answers are worth certifying: at the usual 1e-5 a binary of 4e-6 stands for 4e-6 of
        probability that breaks the budget unseen, and whole patterns for a δ of 1e-8 are fiction."""
        known = "integrality_tolerance" in self.backend.supported_options
        return (
            replace(options, integrality_tolerance=options.integrality_tolerance or 1e-9)
            if known
            else options
        )

    def close(self) -> None:
        """Give the solver's resources back."""
        for _, session in self.live_sessions.values():
            session.close()
        self.live_sessions.clear()


@dataclass(frozen=True)
class Doubt:
    """What a route returns whose answer proves too little.

    Attributes:
        reason: why the next route is asked.
        answer: the mechanism that was found and its bound, None where there is none.
        error: what is raised if no other route answers, None where `answer` is the answer then.
    """

    reason: str
    answer: Answer | None = None
    error: WorkbenchError | None = None


@dataclass(frozen=True)
class Route:
    """One way to answer a request.

    Attributes:
        name: what the report calls it.
        applies: returns None where the route can answer a problem, else the reason why it cannot.
        answer: returns the answer of a problem, or a doubt. It is given the compiled programs and
            the start ("hot" or "cold").
    """

    name: str
    applies: Callable[[Any], Reason]
    answer: Callable[[Any, Programs | None, str], Answer | Doubt]


def applies_always(problem: Any) -> Reason:
    """Return None: the route answers every problem of its class."""
    return None


def require_several_bounds(problem: Any) -> Reason:
    """Return why a route for notions of several convex bounds does not apply."""
    return (
        None
        if problem.request.has_several_bounds
        else f"{problem.request.claim.notion.name} states one bound on ratios"
    )


def require_one_bound(problem: Any) -> Reason:
    """Return why a route for notions of one bound on ratios does not apply."""
    return (
        f"{problem.request.claim.notion.name} states several bounds"
        if problem.request.has_several_bounds
        else None
    )


def list_refusals(problem: Any) -> dict[str, str]:
    """Return the reason of every route of a problem that does not apply, by name."""
    reasons = {route.name: route.applies(problem) for route in problem.routes}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def answer_by_routes(
    problem: Any, routes: Iterable[Route], programs: Programs | None, start: str
) -> Answer:
    """Return the answer of the first route that applies and proves enough.

    Args:
        problem: The problem of a request.
        routes: The ways to answer it, in order.
        programs: The compiled programs of the session, None where no route needs any.
        start: "hot" or "cold".

    Returns:
        The answer, which names its route.

    Raises:
        InvalidRequest, Infeasible, NotProven, SolverUnavailable: as the route that was taken.
        NotProven: also where every route doubts its answer and has none.
    """
    kept: Answer | None = None
    error: WorkbenchError | None = None
    reasons: list[str] = []
    for route in routes:
        reason = route.applies(problem)
        if reason is None:
            outcome = route.answer(problem, programs, start)
            answer = outcome.answer if isinstance(outcome, Doubt) else outcome
            if kept is not None:
                kept = _keep_larger_bound(kept, answer)
                continue
            if not isinstance(outcome, Doubt):
                return replace(outcome, route=route.name)
            error = error or outcome.error
            reason = outcome.reason
            if answer is not None and error is None:
                kept = replace(answer, route=route.name)
        reasons.append(f"{route.name}: {reason}")
    if kept is not None:
        return kept
    raise error or NotProven(f"No route answers the request ({'; '.join(reasons)}).")


def _keep_larger_bound(kept: Answer, other: Answer | None) -> Answer:
    """Return an answer with the larger of its bound and that of another one."""
    if other is None:
        return kept
    bound = other.bound or 0
    return kept if kept.bound is not None and kept.bound >= bound else replace(kept, bound=bound)
