"""From a problem to a design, the same way for every family and notion.

    the first route that applies ──▶ exact mechanism ──▶ repair ──▶ one audit ──▶ loss, bound, oracle ──▶ Design, error

What is claimed is the exact audit of the repaired mechanism, and nothing a solver says.

The least ε, or δ, at which some mechanism costs no more than a budget: by bisection and chords over exact intervals. At
every ε tried, a certified mechanism (loss <= budget: ε is enough) or a proven lower bound (> budget: it is not)
decides; what neither decides ends the search. The least error falls with ε, so what is below an ε that is not enough is
not enough either. The same holds of δ at a fixed ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven, WorkbenchError
from workbench.exact.numbers import ONE, ZERO, round_down
from workbench.exact.time_limit import OutOfTime
from workbench.pipeline.convex_notion import is_claim_proven
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Session, Values
from workbench.pipeline.infeasible import EXPLANATION_SECONDS, format_least_value
from workbench.pipeline.problem import ZERO_DELTA_NOTE, Problem, ProgramTooLarge
from workbench.pipeline.request import Request
from workbench.pipeline.routes import Answer, Programs, answer_by_routes
from workbench.privacy.claim import Claim
from workbench.solvers.search import Chords, bisect
from workbench.solvers.solution import Start, Termination

_TINY_DELTA = Fraction(
    1, 10**8
)  # Up to this δ the optimum at δ = 0 is always tried beside the program's.
_CLOSE = 1e-10  # relative, of the ends
_STEP = 4e-7  # relative, from where a loss and its bound lie on both sides of the budget
_TURNS = 80
_SHARE = 1e-6  # of the way between the ends, at least
_KNOWN = 1e-5  # relative gap up to which a least value is called so
_LARGEST = 20  # ε that is tried where none is enough
LONGER_TIME_HINT = " A longer time limit (--time-limit) may narrow the interval."


def design_problem(
    problem: Problem, programs: Programs | None = None, start: str = "cold"
) -> Design:
    """Solve, repair, audit, bound, judge; take the optimum at δ = 0 or a constant where that costs less.

    Raises InvalidRequest, Infeasible, NotProven, NotCertified, SolverUnavailable.
    """
    failure: WorkbenchError | None = None
    reached: Design | None = None
    try:
        reached = _solve_by_routes(problem, programs, start)
    except (NotCertified, NotProven, ProgramTooLarge, MemoryError) as error:
        if not problem.request.wants_certificate or getattr(error, "interrupted", False):
            raise
        if isinstance(error, MemoryError):
            error = NotProven("The program needs more memory than there is.")
        failure, reached = error, getattr(error, "design", None)
    known = (
        _find_simple_design(problem, reached, failure)
        if problem.request.wants_certificate
        else None
    )
    if known is None:
        if failure is not None:
            raise failure
        assert reached is not None
        return reached
    known_bounds = [getattr(each, "bound", None) for each in (known, reached, failure)]
    bound: float | None = max((each for each in known_bounds if each is not None), default=None)
    solution = None if reached is None else reached.solution
    known = replace(
        known, bound=bound, solution=solution, details={**known.details, "bound": bound}
    )
    if failure is None:
        return known
    if bound is not None and problem.loss_scale.proves(known.objective, bound, _KNOWN):
        return known
    if solution is not None and solution.termination is Termination.OPTIMAL:
        solution = replace(solution, termination=Termination.GAP_LIMIT)
    known = replace(
        known, solution=solution, details={**known.details, "stopped": True}
    ).mark_stopped()
    raise NotProven(_explain_unproven(known, reached, failure), design=known)


def _explain_unproven(known: Design, reached: Design | None, failure: WorkbenchError) -> str:
    """Why a simple mechanism that costs less than a program's answer is not proven optimal, its loss and the proven
    bound, and what may help. The program's answer is dearer, so its loss is not mentioned."""
    interval = (
        f"The best certified mechanism costs {known.objective:.9g}, and the proven lower bound is "
        f"{known.bound_text}. {known.words[-1]}"
    )
    if reached is None or reached.solution is None:
        too_large = isinstance(failure, ProgramTooLarge)
        return f"{failure} {interval}{'' if too_large else LONGER_TIME_HINT}"
    solution = reached.solution
    return f"{solution.solver} ended with {solution.raw_status!r}, without a proof. {interval}{LONGER_TIME_HINT}"


def _find_simple_design(
    problem: Problem, reached: Design | None, failure: WorkbenchError | None
) -> Design | None:
    """The cheapest of the optimum at δ = 0 and the constant, where it costs less than what was reached."""
    best, below = None, math.inf if reached is None else reached.objective
    constant = problem.find_constant(below)
    if constant is not None:
        candidate = _make_design(problem, constant)
        if candidate.objective < below:
            best, below = candidate, candidate.objective
    for answer in problem.find_simpler_candidates() if failure is not None else ():
        with suppress(NotCertified):
            candidate = _make_design(problem, answer)
            if candidate.objective < below:
                best = replace(candidate, bound=None if best is None else best.bound)
                below = candidate.objective
    delta = problem.request.claim.delta
    if not delta or (failure is None and delta > _TINY_DELTA):
        return best
    pure = problem.without_delta()
    if pure is None:
        return best
    try:
        optimum = _solve_by_routes(pure, Programs(problem.request.how.solver), "cold")
    except NotProven as error:
        optimum = error.design
    except (InvalidRequest, Infeasible, NotCertified):
        return best
    if optimum is None or optimum.certificate is None or optimum.objective >= below:
        return best
    at_delta = None if optimum.bound is None else problem.bound_at_delta(optimum.bound)
    bounds = [] if at_delta is None else [round_down(at_delta)]
    if best is not None and best.bound is not None:
        bounds.append(best.bound)
    return replace(
        optimum,
        request=optimum.request.with_values(delta=problem.reported_request.claim.delta),
        claim=problem.claim,
        bound=max(bounds, default=None),
        oracle=OracleVerdict.without_formula("it is of delta = 0."),
        words=(*optimum.words, ZERO_DELTA_NOTE),
        details=optimum.details,
        route=f"{optimum.route} at delta = 0",
    )


def _solve_by_routes(problem: Problem, programs: Programs | None, start: str) -> Design:
    """The design of a problem by its routes. Raises as `design`."""
    answer = answer_by_routes(problem, problem.routes, programs, start)
    interrupted = (
        answer.solution is not None and answer.solution.termination is Termination.INTERRUPTED
    )
    try:
        reached = problem.require_proof(_make_design(problem, answer))
    except OutOfTime as error:
        error.bound = None if answer.bound is None else round_down(Fraction(answer.bound))
        raise
    except NotProven as error:
        error.interrupted = error.interrupted or interrupted
        if error.design is not None:
            error.design = error.design.mark_stopped()
        raise
    if interrupted:  # though proven: whoever asks for many designs must stop here
        words = f"{problem.request.how.solver} was interrupted: incumbent {reached.objective:.9g}, bound"
        raise NotProven(
            f"{words} {reached.bound_text}.", design=reached.mark_stopped(), interrupted=True
        )
    return reached


def _make_design(problem: Problem, answer: Answer) -> Design:
    """The design that an answer makes, proven optimal or not."""
    request, mechanism = problem.request, answer.mechanism
    certificate, words = None, [*problem.list_notes(), *answer.notes]
    if request.wants_certificate:
        mechanism, certificate, more = problem.repair(answer)
        words += more
    privacy = problem.audit(mechanism) if certificate is None else certificate.deciding_audit
    claim, loss = problem.claim_for_audit(privacy), problem.compute_loss(mechanism)
    minimised = certificate is None or answer.is_proxy
    objective = (
        answer.claimed_objective if minimised and answer.claimed_objective is not None else loss
    )
    if request.aim.minimise == "delta":
        objective = (
            problem.smallest_delta(answer, privacy)
            if certificate is None
            else certificate.delta or ZERO
        )
        claim = Claim(claim.notion, claim.epsilon, objective)
    if certificate is None and not is_claim_proven(privacy, claim):
        words.append(privacy.describe_verdict(claim, problem.SUBJECT))
    if answer.bound is None and answer.solution is not None and problem.CLAIMS_OPTIMUM:
        words.append(
            f"{request.how.solver} gives no bound: that nothing is better rests on its word."
        )
    named = problem.reported_request.how.solver
    answered_by = (
        answer.details.get("solver") if answer.solution is None else answer.solution.solver
    )
    if named != "highs" and answered_by is None:  # a request for the default names no solver
        words.append(
            f"No solver ran: a closed form or the workbench's own algorithm answered, and {named} was not asked."
        )
    return Design(
        problem.reported_request,
        mechanism,
        float(objective),
        None if answer.bound is None else round_down(Fraction(answer.bound)),
        claim,
        problem.judge_by_formula(answer),
        answer.solution,
        tuple(words),
        privacy,
        certificate,
        None if certificate is None or answer.mechanism is mechanism else answer.mechanism,
        answer.origin,
        route=answer.route,
        details={**answer.details, "loss": loss, "bound": answer.bound},
        scale=problem.loss_scale,
    )


@contextmanager
def _suppress_unless_interrupted() -> Iterator[None]:
    """Pass over the errors of a design that is only tried, but not over Ctrl-C."""
    try:
        yield
    except WorkbenchError as error:
        if getattr(error, "interrupted", False):
            raise


class ProblemSession(Session):
    """The session of a family's requests. problem: of one request; least: the least ε that is tried."""

    def __init__(
        self, request: Request, problem_class: Callable[[Any], Problem], least: Fraction = ZERO
    ) -> None:
        super().__init__(request)
        self._problem, self._tried = problem_class, least
        self._programs = Programs(request.how.solver)

    def close(self) -> None:
        """Give the solvers' resources back."""
        self._programs.close()

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The design at a point, or the least ε there."""
        if start not in Start.__members__.values():
            InvalidRequest.check_choice([*Start], "start", start)
        request = self.request if point is None else self.request.at_point(point)
        least = request.aim.minimise
        if least == "epsilon":
            return self._design_least(request, "epsilon", self._tried)
        try:
            return design_problem(self._problem(request), self._programs, start)
        except Infeasible as refused:
            if least == "loss" or "would do" in str(refused):
                raise
            raise Infeasible(
                f"{refused}{self._explain_sufficient(request, ('epsilon', 'loss'))}"
            ) from None

    def _explain_sufficient(self, request: Any, names: Sequence[str]) -> str:
        """The least ε, δ or loss that would do, each with the rest as it was asked, and the largest δ that was
        allowed."""
        words, delta = "", ONE if request.claim.delta is None else request.claim.delta
        options = replace(
            request.how.options,
            time_limit=min(
                request.how.options.time_limit or EXPLANATION_SECONDS, EXPLANATION_SECONDS
            ),
        )
        sides: dict[str, Values] = {
            "epsilon": {"epsilon": Fraction(_LARGEST)}, "delta": {"delta": ONE}, "loss": {"max_loss": None}
        }  # fmt: skip
        for name in names:
            other = copy(self)
            other._programs = Programs(request.how.solver)
            with _suppress_unless_interrupted(), closing(other):
                changed = {"delta": delta, "minimise": name, "options": options, **sides[name]}
                other.request = request.with_values(**changed)
                best = other.design()
                if (
                    best.bound is not None
                    and best.objective - best.bound <= _KNOWN * best.objective
                ):
                    words += format_least_value(name, best.objective, "")
                else:
                    words += f" {name} {best.objective * (1 + 1e-6):.6g} would do."
        return words

    def _design_least(self, request: Any, name: str, least: Fraction) -> Design:
        """The design at the least ε (or δ) found, with it as its objective and the largest one excluded as its bound.
        least: of those that are tried."""
        request.check_max_loss()

        def at(value: Fraction) -> Design:
            tried = request.with_values(minimise="loss", max_loss=None, **{name: value})
            try:
                return design_problem(self._problem(tried), self._programs, "hot")
            except NotProven as error:
                if error.design is None or error.interrupted:
                    raise
                unproven: Design = error.design
                return unproven

        try:
            optimum = _search_least_value(at, request, least, name)
        except NotProven as error:
            if error.design is not None:
                known = {name: error.design.request.claim.values[name]}
                error.design = replace(error.design, request=request.with_values(**known))
            raise
        except Infeasible as refused:
            names = ("epsilon", "loss") if name == "delta" else ("epsilon", "delta")
            tried = (
                name == "epsilon" and request.claim.values[name] >= _LARGEST
            )  # this was asked for here
            raise Infeasible(
                f"{refused}{'' if tried else self._explain_sufficient(request, names)}"
            ) from None
        least_value = {name: optimum.request.claim.values[name]}
        return replace(optimum, request=request.with_values(**least_value))


def _search_least_value(
    at: Callable[[Fraction], Design], request: Any, least: Fraction, name: str
) -> Design:
    """The design at the least ε found, with ε as its objective and the largest ε excluded as its bound.

    at: the least error at an ε; least: of those tried; name: epsilon, or delta where that is what is tried. The request
    of the design is that of its ε, which the caller replaces.
    Raises Infeasible where the limit of ε is not enough, NotProven.
    """
    budget, limit, loss = (
        request.aim.max_loss,
        request.claim.values[name],
        f"Loss {request.loss_name}",
    )
    try:
        best = at(limit)
    except (NotProven, OutOfTime) as error:
        error.bound = error.incumbent = None  # of a loss, which is not what is minimised
        raise
    ended: Exception | None = None
    reached, bound = best.details["loss"], best.details["bound"]
    if reached > budget:
        if bound is not None and bound > budget:
            raise Infeasible(
                f"{loss} at most {float(budget):g} needs {name} > {float(limit):g}: there the least is "
                f"{float(bound):.9g}."
            )
        raise NotProven(
            f"Whether {loss} of {float(budget):g} is in reach at {name} = {float(limit):g} is undecided."
        )
    chords, undecided = Chords(_SHARE), list[Fraction]()
    chords.values[limit] = float(reached - budget)

    def enough(epsilon: Fraction) -> bool | None:
        nonlocal best, ended
        try:
            tried = at(epsilon)
        except OutOfTime as error:
            ended = error
            return None
        except NotProven as error:
            ended = error if error.interrupted else ended
            return None
        reached, bound = tried.details["loss"], tried.details["bound"]
        if reached <= budget:
            best, bound = tried, reached
        elif bound is None or bound <= budget:
            undecided.append(epsilon)
            return None
        chords.values[epsilon] = float(bound - budget)
        return bool(reached <= budget)

    def between(low: Fraction, high: Fraction) -> Fraction:
        if high - low <= Fraction(_CLOSE) * high or high <= least:
            return high
        near = Fraction(f"{chords.choose_point(low, high, 0.5 if low else 0.25):.15g}")
        return max(least, near if low < near < high else (low + high) / 2)

    low, high = bisect(enough, ZERO, limit, max_steps=_TURNS, choose_point=between)
    # once costs are as near the budget as they are known: a little to either side
    sides = (
        Fraction(f"{float(at) * (1 + step):.15g}") for at in undecided for step in (_STEP, -_STEP)
    )
    if ended is None:
        low, high = bisect(
            enough,
            low,
            high,
            choose_point=lambda low, high: next((at for at in sides if low < at < high), high),
        )
    none = OracleVerdict.without_formula(f"no closed form is known for the least {name}.")
    more = (
        ()
        if high - low <= Fraction(10 * _CLOSE) * high
        else (
            f"The search ended with the least {name} between {float(low):.12g} and {float(high):.12g}.",
        )
    )
    optimum = replace(
        best, objective=float(high), bound=round_down(low), oracle=none, words=(*best.words, *more)
    )
    if ended is not None:
        interrupted = getattr(ended, "interrupted", False)
        words = (
            str(ended)
            or f"The search stopped at its time limit: least {name} {float(high):.9g} so far."
        )
        raise NotProven(words, design=optimum.mark_stopped(), interrupted=interrupted)
    return optimum
