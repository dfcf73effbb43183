"""Design a mechanism for a problem: solve, repair, audit, and bound the optimum.

The steps are the same for every family and notion. The smallest ε or δ for a given loss is found
here as well.

    first route that applies ──▶ exact mechanism ──▶ repair ──▶ audit ──▶ loss, bound, oracle

The claim of a design is the exact audit of the repaired mechanism. It never relies on a solver.

With --minimise epsilon, the request limits the expected loss (max_loss) and ε is minimised. The
steps above are then repeated at several ε, each of which is one of these:

    sufficient     a certified mechanism has an expected loss within the limit
    insufficient   a proven lower bound on the expected loss exceeds the limit
    undecided      neither: loss and bound lie on both sides of the limit

The minimal loss falls with ε, so that every ε below an insufficient one is insufficient. The search
bisects the interval between the largest insufficient and the smallest sufficient ε, and also tries
points at which a chord of the loss crosses the limit. The minimal δ at a fixed ε is found in the
same way.
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
from workbench.pipeline.infeasible import (
    EXPLANATION_SECONDS,
    format_least_value,
    has_feasible_values,
)
from workbench.pipeline.problem import ZERO_DELTA_NOTE, Problem, ProgramTooLarge
from workbench.pipeline.request import Request
from workbench.pipeline.routes import Answer, Programs, answer_by_routes
from workbench.privacy.claim import Claim
from workbench.solvers.search import Chords, bisect
from workbench.solvers.solution import Start, Termination

# Up to this δ the optimum at δ = 0 is always tried beside the optimum of the program.
_TINY_DELTA = Fraction(1, 10**8)
# The search for a minimal value ends if its interval is narrower than this, relative to its end.
_RELATIVE_WIDTH = 1e-10
# Beside an undecided ε (or δ), the values larger and smaller by this share are tried.
_UNDECIDED_STEP = 4e-7
# The search for a minimal value ends after this many steps.
_MAX_SEARCH_STEPS = 80
# A chord step moves by at least this share of the interval, so that the search does not stall.
_MIN_CHORD_SHARE = 1e-6
# A loss, or a minimal ε or δ, within this relative gap of its bound counts as optimal.
_OPTIMALITY_GAP = 1e-5
# The message about an infeasible request searches for a feasible ε up to this value.
_MAX_EXPLAINED_EPSILON = 20
LONGER_TIME_HINT = " A longer time limit (--time-limit) may narrow the interval."


def design_problem(
    problem: Problem, programs: Programs | None = None, start: str = "cold"
) -> Design:
    """Design a mechanism for a problem: solve, repair, audit, bound and compare with the formula.

    If a simple mechanism has a smaller loss than the result of the routes, it is the design
    (`_find_simple_design`).

    Args:
        problem: The problem of a request.
        programs: Compiled programs of the session. None: compile what is needed.
        start: "hot" (solvers start from their previous solution) or "cold".

    Raises:
        InvalidRequest, Infeasible, NotProven, NotCertified, SolverUnavailable: There is no design,
            or it is not proven optimal.
    """
    failure: WorkbenchError | None = None
    program_design: Design | None = None
    try:
        program_design = _solve_by_routes(problem, programs, start)
    except (NotCertified, NotProven, ProgramTooLarge, MemoryError) as error:
        if not problem.request.wants_certificate or getattr(error, "interrupted", False):
            raise
        if isinstance(error, MemoryError):
            error = NotProven("The program needs more memory than is available.")
        failure = error
        program_design = getattr(error, "design", None)
    simple_design = None
    if problem.request.wants_certificate:
        simple_design = _find_simple_design(problem, program_design, failure)
    if simple_design is None:
        if failure is not None:
            raise failure
        assert program_design is not None
        return program_design
    return _finish_simple_design(problem, simple_design, program_design, failure)


def _finish_simple_design(
    problem: Problem,
    design: Design,
    program_design: Design | None,
    failure: WorkbenchError | None,
) -> Design:
    """Return a simple design with the best bound. Raises NotProven if it may not be optimal.

    Args:
        problem: The problem of a request.
        design: The simple design.
        program_design: The design of the routes. None: they found none.
        failure: Error of the routes. None: their design is proven optimal.
    """
    sources = (design, program_design, failure)
    bounds = [getattr(source, "bound", None) for source in sources]
    bound: float | None = max((value for value in bounds if value is not None), default=None)
    solution = None if program_design is None else program_design.solution
    details = {**design.details, "bound": bound}
    design = replace(design, bound=bound, solution=solution, details=details)
    if failure is None:
        return design
    if bound is not None and problem.loss_scale.proves(design.objective, bound, _OPTIMALITY_GAP):
        return design
    if solution is not None and solution.termination is Termination.OPTIMAL:
        solution = replace(solution, termination=Termination.GAP_LIMIT)
    details = {**design.details, "stopped": True}
    design = replace(design, solution=solution, details=details).mark_stopped()
    raise NotProven(_explain_unproven(design, program_design, failure), design=design)


def _explain_unproven(
    design: Design, program_design: Design | None, failure: WorkbenchError
) -> str:
    """Explain why a simple mechanism is not proven optimal.

    The message states its loss, the proven bound, and what may help. It leaves out the loss of the
    program's mechanism, which is larger.
    """
    interval = (
        f"The best certified mechanism reaches {design.objective:.9g}, and the proven lower bound "
        f"is {design.bound_text}. {design.words[-1]}"
    )
    if program_design is None or program_design.solution is None:
        if isinstance(failure, ProgramTooLarge):
            return f"{failure} {interval}"
        return f"{failure} {interval}{LONGER_TIME_HINT}"
    solution = program_design.solution
    ending = f"{solution.solver} ended with {solution.raw_status!r}, without a proof."
    return f"{ending} {interval}{LONGER_TIME_HINT}"


def _find_simple_design(
    problem: Problem, program_design: Design | None, failure: WorkbenchError | None
) -> Design | None:
    """Find the best simple design whose loss is smaller than the loss of the program's design.

    Simple designs are a constant output, and the optimum at δ = 0 if δ is tiny. If the routes
    failed, they are also mechanisms that a simpler argument proves private, and the optimum at
    δ = 0 for every δ.

    Args:
        problem: The problem of a request.
        program_design: The design of the routes. None: they found none.
        failure: Error of the routes. None: their design is proven optimal.

    Returns:
        The design. None: no simple design has a smaller loss.
    """
    best = None
    loss_limit = math.inf
    if program_design is not None:
        loss_limit = program_design.objective
    constant = problem.find_constant(loss_limit)
    if constant is not None:
        candidate = _make_design(problem, constant)
        if candidate.objective < loss_limit:
            best = candidate
            loss_limit = candidate.objective
    if failure is not None:
        for answer in problem.find_simpler_candidates():
            with suppress(NotCertified):
                candidate = _make_design(problem, answer)
                if candidate.objective < loss_limit:
                    # A candidate has no bound of its own.
                    best = replace(candidate, bound=None if best is None else best.bound)
                    loss_limit = candidate.objective
    delta = problem.request.claim.delta
    if not delta or (failure is None and delta > _TINY_DELTA):
        return best
    optimum = _design_at_zero_delta(problem)
    if optimum is None or optimum.certificate is None or optimum.objective >= loss_limit:
        return best
    bounds = []
    if best is not None and best.bound is not None:
        bounds.append(best.bound)
    if optimum.bound is not None:
        bound_at_delta = problem.bound_at_delta(optimum.bound)
        if bound_at_delta is not None:
            bounds.append(round_down(bound_at_delta))
    return replace(
        optimum,
        request=optimum.request.with_values(delta=problem.reported_request.claim.delta),
        claim=problem.claim,
        bound=max(bounds, default=None),
        oracle=OracleVerdict.without_formula("the mechanism is designed for delta = 0."),
        words=(*optimum.words, ZERO_DELTA_NOTE),
        details=optimum.details,
        route=f"{optimum.route} at delta = 0",
    )


def _design_at_zero_delta(problem: Problem) -> Design | None:
    """Return the design of a problem at δ = 0, None if it cannot be found or does not apply."""
    pure_problem = problem.without_delta()
    if pure_problem is None:
        return None
    try:
        return _solve_by_routes(pure_problem, Programs(problem.request.how.solver), "cold")
    except NotProven as error:
        design: Design | None = error.design
        return design
    except (InvalidRequest, Infeasible, NotCertified):
        return None


def _solve_by_routes(problem: Problem, programs: Programs | None, start: str) -> Design:
    """Return the proven design of a problem by its routes. Raises as `design_problem`."""
    answer = answer_by_routes(problem, problem.routes, programs, start)
    is_interrupted = False
    if answer.solution is not None:
        is_interrupted = answer.solution.termination is Termination.INTERRUPTED
    try:
        design = problem.require_proof(_make_design(problem, answer))
    except OutOfTime as error:
        error.bound = _round_bound(answer)
        raise
    except NotProven as error:
        error.interrupted = error.interrupted or is_interrupted
        if error.design is not None:
            error.design = error.design.mark_stopped()
        raise
    if is_interrupted:
        # The design is proven, but a caller that makes many designs must stop here.
        message = (
            f"{problem.request.how.solver} was interrupted: incumbent {design.objective:.9g}, "
            f"bound {design.bound_text}."
        )
        raise NotProven(message, design=design.mark_stopped(), interrupted=True)
    return design


def _make_design(problem: Problem, answer: Answer) -> Design:
    """Repair and audit the mechanism of an answer, and make the design.

    The objective of the design is its exact loss, or the δ that is minimised. It is the objective
    that the route claims if there is no certificate, or if the route minimises a proxy of the loss.
    """
    request = problem.request
    mechanism = answer.mechanism
    certificate = None
    notes = [*problem.list_notes(), *answer.notes]
    if request.wants_certificate:
        mechanism, certificate, repair_notes = problem.repair(answer)
        notes += repair_notes
    privacy = problem.audit(mechanism) if certificate is None else certificate.deciding_audit
    claim = problem.claim_for_audit(privacy)
    loss = problem.compute_loss(mechanism)
    objective = loss
    claimed_objective = answer.claimed_objective
    uses_claim = certificate is None or answer.is_proxy
    if uses_claim and claimed_objective is not None:
        objective = claimed_objective
    if request.aim.minimise == "delta":
        if certificate is None:
            objective = problem.smallest_delta(answer, privacy)
        else:
            objective = certificate.delta or ZERO
        claim = Claim(claim.notion, claim.epsilon, objective)
    if certificate is None and not is_claim_proven(privacy, claim):
        notes.append(privacy.describe_verdict(claim, problem.SUBJECT))
    notes += _list_solver_notes(problem, answer)
    solver_mechanism = None
    if certificate is not None and answer.mechanism is not mechanism:
        solver_mechanism = answer.mechanism
    return Design(
        request=problem.reported_request,
        mechanism=mechanism,
        objective=float(objective),
        bound=_round_bound(answer),
        claim=claim,
        oracle=problem.judge_by_formula(answer),
        solution=answer.solution,
        words=tuple(notes),
        privacy=privacy,
        certificate=certificate,
        raw=solver_mechanism,
        origin=answer.origin,
        route=answer.route,
        details={**answer.details, "loss": loss, "bound": answer.bound},
        scale=problem.loss_scale,
    )


def _round_bound(answer: Answer) -> float | None:
    """Return the bound of an answer as a float, rounded down."""
    if answer.bound is None:
        return None
    return round_down(Fraction(answer.bound))


def _list_solver_notes(problem: Problem, answer: Answer) -> list[str]:
    """List notes on a missing bound, and on a requested solver that was not called."""
    notes = []
    if answer.bound is None and answer.solution is not None and problem.CLAIMS_OPTIMUM:
        solver = problem.request.how.solver
        notes.append(f"{solver} gives no bound, so optimality is not proven.")
    requested_solver = problem.reported_request.how.solver
    if answer.solution is None:
        called_solver = answer.details.get("solver")
    else:
        called_solver = answer.solution.solver
    # HiGHS is the default, so that a request for it may name no solver.
    if requested_solver != "highs" and called_solver is None:
        notes.append(
            "No solver was called: a known formula or an algorithm of the workbench answered, "
            f"not {requested_solver}."
        )
    return notes


@contextmanager
def _suppress_unless_interrupted() -> Iterator[None]:
    """Suppress the errors of an optional design, but not Ctrl-C."""
    try:
        yield
    except WorkbenchError as error:
        if getattr(error, "interrupted", False):
            raise


class ProblemSession(Session):
    """The session of a family that has one problem for every request.

    Args:
        request: The request: its question, claim, aim and how.
        problem_class: Function of a request that returns its problem.
        lower_end: Lower end of the search for a minimal ε: no smaller ε is tried.
    """

    def __init__(
        self, request: Request, problem_class: Callable[[Any], Problem], lower_end: Fraction = ZERO
    ) -> None:
        super().__init__(request)
        self._make_problem = problem_class
        self._lower_end = lower_end
        self._programs = Programs(request.how.solver)

    def close(self) -> None:
        """Release the resources of the solvers."""
        self._programs.close()

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Return the design at a point, or the design at the minimal ε there.

        Args:
            point: Values of hot options. None: the values of the request.
            start: "hot" or "cold".

        Raises:
            WorkbenchError: As in `Session.design`.
        """
        if start not in Start.__members__.values():
            InvalidRequest.check_choice([*Start], "start", start)
        request = self.request
        if point is not None:
            request = request.at_point(point)
        minimise = request.aim.minimise
        if minimise == "epsilon":
            return self._design_least(request, "epsilon", self._lower_end)
        try:
            return design_problem(self._make_problem(request), self._programs, start)
        except Infeasible as error:
            if minimise == "loss" or has_feasible_values(str(error)):
                raise
            # δ is minimised here, so the message states sufficient values of the others.
            explanation = self._explain_sufficient(request, ("epsilon", "loss"))
            raise Infeasible(f"{error}{explanation}") from None

    def _explain_sufficient(self, request: Any, names: Sequence[str]) -> str:
        """Return sentences on the smallest feasible ε, δ or loss, each with all other values fixed.

        Args:
            request: An infeasible request.
            names: Names of the values: "epsilon", "delta" or "loss".
        """
        time_limit = min(request.how.options.time_limit or EXPLANATION_SECONDS, EXPLANATION_SECONDS)
        limits: dict[str, Values] = {
            "epsilon": {"epsilon": Fraction(_MAX_EXPLAINED_EPSILON)},
            "delta": {"delta": ONE},
            "loss": {"max_loss": None},
        }
        sentences = ""
        for name in names:
            session = copy(self)  # Subclasses have further attributes.
            session._programs = Programs(request.how.solver)
            with _suppress_unless_interrupted(), closing(session):
                values = {
                    "delta": ONE if request.claim.delta is None else request.claim.delta,
                    "minimise": name,
                    "options": replace(request.how.options, time_limit=time_limit),
                    **limits[name],
                }
                session.request = request.with_values(**values)
                sentences += _describe_feasible_value(name, session.design())
        return sentences

    def _design_least(self, request: Any, name: str, lower_end: Fraction) -> Design:
        """Return the design at the minimal ε or δ that was found.

        Args:
            request: The request: its question, claim, aim and how.
            name: "epsilon" or "delta".
            lower_end: Lower end of the search: the smallest value that is tried.

        Returns:
            The design. Its objective is the value, its bound the largest value that is excluded.
        """
        request.check_max_loss()

        def design_at(value: Fraction) -> Design:
            """Return the design of minimal loss at one ε or δ, also if it is not proven optimal."""
            values = {name: value, "minimise": "loss", "max_loss": None}
            problem = self._make_problem(request.with_values(**values))
            try:
                return design_problem(problem, self._programs, "hot")
            except NotProven as error:
                if error.design is None or error.interrupted:
                    raise
                unproven: Design = error.design
                return unproven

        try:
            optimum = _search_least_value(design_at, request, lower_end, name)
        except NotProven as error:
            if error.design is not None:
                values = {name: error.design.request.claim.values[name]}
                error.design = replace(error.design, request=request.with_values(**values))
            raise
        except Infeasible as error:
            # At the largest explained ε, this search is itself the explanation of an error.
            is_explanation = (
                name == "epsilon" and request.claim.values[name] >= _MAX_EXPLAINED_EPSILON
            )
            if is_explanation:
                raise Infeasible(str(error)) from None
            names = ("epsilon", "delta")
            if name == "delta":
                names = ("epsilon", "loss")
            explanation = self._explain_sufficient(request, names)
            raise Infeasible(f"{error}{explanation}") from None
        values = {name: optimum.request.claim.values[name]}
        return replace(optimum, request=request.with_values(**values))


def _describe_feasible_value(name: str, design: Design) -> str:
    """Return the sentence that a design proves about the smallest feasible value.

    Args:
        name: "epsilon", "delta" or "loss".
        design: A design that minimises this value.
    """
    objective = design.objective
    if design.bound is not None and objective - design.bound <= _OPTIMALITY_GAP * objective:
        return format_least_value(name, objective)
    # The value is printed with six digits, so it is increased by more than their rounding.
    return f" {name} {objective * (1 + 1e-6):.6g} is feasible."


class _LeastValueSearch:
    """Search for the minimal ε (or δ) at which the loss is within the limit of a request.

    Args:
        design_at: Function of a value that returns the design of minimal loss there.
        request: The request: its question, claim, aim and how.
        lower_end: Lower end of the search: the smallest value that is tried.
        name: "epsilon" or "delta".

    Attributes:
        best: The design at the smallest sufficient value so far.
        ending: The error that ended the search early. None: it did not end early.
    """

    best: Design

    def __init__(
        self, design_at: Callable[[Fraction], Design], request: Any, lower_end: Fraction, name: str
    ) -> None:
        self._design_at = design_at
        self._request = request
        self._lower_end = lower_end
        self._name = name
        self._limit: Fraction = request.claim.values[name]
        self._max_loss = request.aim.max_loss
        self._chords = Chords(_MIN_CHORD_SHARE)
        self._undecided_values: list[Fraction] = []
        self.ending: Exception | None = None

    def run(self) -> tuple[Fraction, Fraction]:
        """Return the largest insufficient and the smallest sufficient value.

        Raises:
            Infeasible: The largest allowed value is insufficient.
            NotProven: The largest allowed value is undecided.
        """
        self._design_at_limit()
        low, high = bisect(
            self._is_sufficient,
            ZERO,
            self._limit,
            max_steps=_MAX_SEARCH_STEPS,
            choose_point=self._choose_point,
        )
        if self.ending is None:
            # At the undecided values, loss and bound are too close to the limit. Values a little
            # larger and smaller can still be decided.
            nearby_values = self._list_nearby_values()

            def choose_nearby_value(low: Fraction, high: Fraction) -> Fraction:
                """Return a nearby value inside the interval, or `high` to end the search."""
                return next((value for value in nearby_values if low < value < high), high)

            low, high = bisect(self._is_sufficient, low, high, choose_point=choose_nearby_value)
        return low, high

    def _design_at_limit(self) -> None:
        """Set `best` to the design at the largest allowed value. Raises Infeasible, NotProven."""
        try:
            self.best = self._design_at(self._limit)
        except (NotProven, OutOfTime) as error:
            # The error has bounds on the loss, but callers expect bounds on ε or δ.
            error.bound = None
            error.incumbent = None
            raise
        loss = self.best.details["loss"]
        bound = self.best.details["bound"]
        self._chords.values[self._limit] = float(loss - self._max_loss)
        if loss <= self._max_loss:
            return
        name = self._name
        loss_text = f"Loss {self._request.loss_name}"
        if bound is not None and bound > self._max_loss:
            raise Infeasible(
                f"{loss_text} at most {float(self._max_loss):g} needs {name} > "
                f"{float(self._limit):g}: at this limit the minimal loss is {float(bound):.9g}."
            )
        raise NotProven(
            f"{loss_text} at most {float(self._max_loss):g} is neither reached nor excluded at "
            f"{name} = {float(self._limit):g}."
        )

    def _is_sufficient(self, value: Fraction) -> bool | None:
        """Return whether a value is sufficient. None: it is undecided, or the search must end."""
        try:
            design = self._design_at(value)
        except OutOfTime as error:
            self.ending = error
            return None
        except NotProven as error:
            if error.interrupted:
                self.ending = error
            return None
        loss = design.details["loss"]
        bound = design.details["bound"]
        # The chord uses the number that decides: the loss if it is within the limit, or the bound.
        if loss <= self._max_loss:
            self.best = design
            self._chords.values[value] = float(loss - self._max_loss)
            return True
        if bound is None or bound <= self._max_loss:
            self._undecided_values.append(value)
            return None
        self._chords.values[value] = float(bound - self._max_loss)
        return False

    def _choose_point(self, low: Fraction, high: Fraction) -> Fraction:
        """Return the next value to try between low and high, or `high` to end the search."""
        if high - low <= Fraction(_RELATIVE_WIDTH) * high or high <= self._lower_end:
            return high
        # Above low = 0 nothing is excluded yet. Minimal values are often far below the limit.
        default_share = 0.5 if low else 0.25
        point = Fraction(f"{self._chords.choose_point(low, high, default_share):.15g}")
        if not low < point < high:
            point = (low + high) / 2
        return max(self._lower_end, point)

    def _list_nearby_values(self) -> Iterator[Fraction]:
        """List a larger and a smaller value for each undecided value, including later ones."""
        for value in self._undecided_values:
            for step in (_UNDECIDED_STEP, -_UNDECIDED_STEP):
                yield Fraction(f"{float(value) * (1 + step):.15g}")


def _search_least_value(
    design_at: Callable[[Fraction], Design], request: Any, lower_end: Fraction, name: str
) -> Design:
    """Return the design at the minimal ε (or δ) that was found.

    Args:
        design_at: Function of a value that returns the design of minimal loss there.
        request: The request. The caller replaces the request of the design.
        lower_end: Lower end of the search: the smallest value that is tried.
        name: "epsilon" or "delta".

    Returns:
        The design. Its objective is the minimal value, and its bound is the largest insufficient
        value.

    Raises:
        Infeasible: The largest allowed value is insufficient.
        NotProven: The search ended early, or the largest allowed value is undecided.
    """
    search = _LeastValueSearch(design_at, request, lower_end, name)
    low, high = search.run()
    notes = [*search.best.words]
    # A wider interval than that at which the search ends shows that it ended earlier.
    if high - low > Fraction(10 * _RELATIVE_WIDTH) * high:
        interval = f"between {float(low):.12g} and {float(high):.12g}"
        notes.append(f"The search ended with the minimal {name} {interval}.")
    optimum = replace(
        search.best,
        objective=float(high),
        bound=round_down(low),
        oracle=OracleVerdict.without_formula(f"no formula is known for the minimal {name}."),
        words=tuple(notes),
    )
    if search.ending is None:
        return optimum
    is_interrupted = getattr(search.ending, "interrupted", False)
    message = str(search.ending)
    if not message:
        message = f"The search stopped at its time limit: minimal {name} at most {float(high):.9g}."
    raise NotProven(message, design=optimum.mark_stopped(), interrupted=is_interrupted)
