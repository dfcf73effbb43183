"""One request for noise as a problem: its programs, its repair, its bound, its oracle; and the session of requests.

origin                             where the masses come from
"exact optimum ...", ...           one bound on ratios: `workbench.families.modulo.repair`
"repair"                           several convex bounds, by tangents as they are needed
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from workbench import __version__
from workbench.errors import Infeasible, NotCertified, NotProven
from workbench.exact.numbers import ONE, round_down
from workbench.families.modulo.infeasible import explain_infeasibility
from workbench.families.modulo.oracle_check import (
    add_closed_form_bound,
    find_closed_form_bound,
    find_strongest_law,
    is_proven_optimal,
    judge_by_closed_form,
)
from workbench.families.modulo.repair import (
    LIMIT_NAMES,
    SOLVER_FAILURES,
    CertifiedNoise,
    certify_noise,
    describe_shortfalls,
    find_cheapest_repair,
    is_solution_proven,
    refine_exactly,
    should_refine,
    why_unproven,
)
from workbench.families.modulo.request import MIN_EPSILON, ModuloRequest
from workbench.io.result import Row
from workbench.mechanisms.additive import AdditiveNoise
from workbench.pipeline.convex_notion import solve_by_tangents
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Values
from workbench.pipeline.infeasible import raise_infeasible
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.problem import Problem, Repaired
from workbench.pipeline.routes import (
    Answer,
    Programs,
    Reason,
    Route,
    answer_by_routes,
    require_one_bound,
    require_several_bounds,
)
from workbench.pipeline.solve import ProblemSession
from workbench.pipeline.user_constraints import CONSTRAINTS_NOTE
from workbench.privacy.audit import Privacy
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.objective import Objective, round_loss_up
from workbench.privacy.repair import compute_exact_loss
from workbench.solvers.search import Deadline
from workbench.solvers.session import Session as SolverSession
from workbench.solvers.solution import Solution, Start, Termination

if TYPE_CHECKING:
    from workbench.models.modulo.fast import FastSession

_CERTIFIED_BY = 1.5  # of the time limit: until then the exact program of a pattern is solved, its floats repaired after
_SHARP = 1e-6  # gap relative to the objective itself, above which it is said
_DIGITS = 30  # of a least δ


_TANGENTS = Route(
    "tangents",
    require_several_bounds,
    lambda problem, programs, start: problem.answer_by_tangents(),
)
_FAST = Route(
    "fast search",
    lambda problem: problem.why_not_fast(),
    lambda problem, programs, start: problem.answer_by_solver(programs, start),
)
_PROGRAM = replace(_FAST, name="program", applies=require_one_bound)


class ModuloProblem(Problem):
    """The problem of a request. explains: whether an infeasible one is told what conflicts and what would do."""

    SUBJECT = "The solver's PMF"
    routes = (_TANGENTS, _FAST, _PROGRAM)
    request: ModuloRequest

    def __init__(self, request: ModuloRequest, *, explains: bool = True) -> None:
        super().__init__(request.with_scaled_losses())
        self.reported_request = request
        self._explains = explains
        self._deadline = Deadline(request.how.options.time_limit).rescale(_CERTIFIED_BY)
        self._proof: CertifiedNoise | None = None  # of what is repaired

    # Answers.

    def answer_by_tangents(self) -> Answer:
        """Answer by linear programs with tangents, as many as are needed. Raises as `Problem`'s routes."""
        request = self.request
        model, shifts = request.model(), request.question.differences
        solution, least = solve_by_tangents(
            request, shifts[0], model.program, model.build_comparisons(shifts)
        )
        return Answer(self._read_noise(solution), least, solution)

    def answer_by_solver(self, programs: Programs | None, start: str) -> Answer:
        """Answer by the integer or linear program, or its fast search. Raises as `Problem`'s routes."""
        request = self.request
        assert programs is not None
        solution = self.solve_program(programs, start)
        why = (
            partial(explain_infeasibility, ModuloProblem, request, programs)
            if self._explains
            else str
        )
        if solution.x is None:
            self._raise_without_point(solution, why)
        least, outer = solution.objective, self.reported_request
        if request.aim.minimise != "delta":
            return Answer(self._read_noise(solution), solution.bound, solution)
        assert least is not None
        if request.claim.delta is not None and Fraction(least) > request.claim.delta * (
            1 + Fraction(1, 10**9)
        ):
            raise Infeasible(
                f"Loss {outer.aim.loss} at most {float(outer.aim.max_loss or 0):g} needs delta >= {least:.9g} at this "
                f"epsilon. Got delta = {float(request.claim.delta):g}.{why()}"
            )
        return Answer(self._read_noise(solution), solution.bound, solution, claimed_objective=least)

    def why_not_fast(self) -> Reason:
        """Return why the search over patterns does not apply."""
        request = self.request
        if request.has_several_bounds:
            return require_one_bound(self)
        if request.how.method != "fast":
            return f"method {request.how.method} was asked for"
        with translate_errors():
            by_patterns = request.model().is_pattern_model
        return None if by_patterns else "it searches the patterns of pdp with delta > 0"

    def _read_noise(self, solution: Solution) -> AdditiveNoise:
        """The solver's own masses."""
        return AdditiveNoise.from_pmf(self.request.question, np.maximum(solution["f"], 0.0))

    def _raise_without_point(self, solution: Solution, why: Any) -> NoReturn:
        """Raise what an answer without a point means."""
        request, answer = self.request, f"{self.request.how.solver} says {solution.raw_status!r}"
        if solution.termination is Termination.INFEASIBLE:
            most = self.reported_request.aim.max_loss
            wish = (
                "the extra constraints"
                if most is None
                else f"max_loss {float(most):g} and the constraints"
            )
            what = (
                None
                if request.aim.constraints is None and most is None
                else f"noise meets the request with {wish}"
            )
            raise_infeasible(solution, answer, what, "uniform noise is private", why)
        law = find_closed_form_bound(request)
        known = max(
            (bound for bound in (solution.bound, law and law[0]) if bound is not None), default=None
        )
        limit = LIMIT_NAMES.get(solution.termination, f"status {solution.termination}")
        words = f"{known:.9g}" if known is not None and known > 0 else "unknown"
        raise NotProven(
            f"{answer}: {limit} was reached without an incumbent; bound {words}.",
            bound=known,
            interrupted=_stopped(solution),
        )

    def solve_program(self, programs: Programs, start: str = "hot") -> Solution:
        """What the solver says, a point or none, of one bound on ratios.

        At the user's own tolerances where the exacting ones of a certified design defeat the solver.
        """
        request, options = self.request, self.request.how.options
        deadline = Deadline(options.time_limit)
        exacting = programs.tighten_tolerances(options) if request.wants_certificate else options
        session, values = self._get_session(programs), request.parameters()
        with translate_errors():
            solution = session.solve(
                values, start=Start(start), time_limit=deadline.solver_time_limit
            )
            if exacting != options and solution.termination in SOLVER_FAILURES:
                with programs.backend.open(session.program, options) as second:
                    solution = second.solve(values, time_limit=deadline.solver_time_limit)
        return (
            refine_exactly(request, solution, deadline.solver_time_limit)
            if should_refine(request, solution)
            else solution
        )

    def _get_session(self, programs: Programs) -> SolverSession | FastSession:
        """The model's live solver."""
        request, live = self.request, programs.live_sessions
        key = (
            request.aim.minimise,
            bool(request.bounds.delta),
            request.bounds.epsilon_levels[0],
            request.wants_certificate,
        )
        with translate_errors():
            if key not in live:
                model = request.model()
                options = (
                    programs.tighten_tolerances(request.how.options)
                    if request.wants_certificate
                    else request.how.options
                )
                if self.why_not_fast() is None:
                    from workbench.models.modulo.fast import FastSession  # slow to import

                    live[key] = model, FastSession(model, programs.backend, options)
                else:
                    live[key] = model, programs.backend.open(model.program, options)
        session: SolverSession | FastSession = live[key][1]
        return session

    # Designs.

    def repair(self, answer: Answer) -> Repaired:
        """What the exact audit accepts; the solver's own where that proves nothing and no repair is found."""
        request, solution = self.request, answer.solution
        assert solution is not None
        if request.has_several_bounds:
            mechanism = find_cheapest_repair(request, answer.mechanism, answer.bound)
            certificate = self._make_certificate(
                mechanism,
                answer,
                compute_exact_loss(mechanism, request.losses),
                request.audited_claim,
            )
            return (
                mechanism,
                certificate,
                [] if request.aim.constraints is None else [CONSTRAINTS_NOTE],
            )
        least = request.aim.minimise == "delta"
        law = (
            (lambda: None)
            if least
            else partial(find_strongest_law, request, float(request.claim.delta or 0))
        )
        try:
            proof = certify_noise(request, solution, law, self._deadline)
            if least and request.claim.delta is not None and proof.delta > request.claim.delta:
                excess, limit = float(proof.delta - request.claim.delta), float(request.claim.delta)
                raise NotCertified(
                    f"The least delta that could be certified exceeds the limit {limit:g} by {excess:.3g}."
                )
        except NotCertified as error:
            if is_solution_proven(solution, self.loss_scale):
                raise
            return answer.mechanism, None, [f"The incumbent is not certified. {error}"]
        self._proof = proof
        bound = answer.bound
        if proof.lower_bound is not None and not request.bounds.bounds_mass:
            bound = max(round_down(proof.lower_bound), -np.inf if bound is None else float(bound))
        delta = (
            min(ONE, Fraction(math.ceil(proof.delta * 10**_DIGITS), 10**_DIGITS))
            if least
            else proof.delta
        )
        different = {*request.budgets.values()}
        epsilon = request.audited_claim.epsilon if len(different) > 1 else different.pop()
        repaired = replace(answer, bound=bound, origin=proof.origin)
        claim = Claim(request.claim.notion, epsilon, delta)
        certificate = self._make_certificate(
            proof.mechanism, repaired, proof.objective, claim, proof.privacy
        )
        return proof.mechanism, certificate, describe_shortfalls(request, proof, solution)

    def _make_certificate(
        self,
        mechanism: AdditiveNoise,
        answer: Answer,
        loss: Fraction,
        claim: Claim,
        audited: Privacy | None = None,
    ) -> Certificate:
        """The certificate of a mechanism, with what it says of how that was found."""
        request, solution, limit = (
            self.reported_request,
            answer.solution,
            self.reported_request.loss_limit,
        )
        assert solution is not None
        stated = None
        if (
            request.aim.minimise == "loss" and request.losses.ndim == 1
        ):  # it can be recomputed from the file
            losses = (
                None
                if request.aim.loss == "error-rate"
                else tuple(map(Fraction, request.losses.tolist()))
            )
            stated = Objective(request.aim.loss, round_loss_up(loss), losses)
        record = {
            "workbench": __version__,
            "solver": solution.solver,
            "solver_version": solution.version,
            "status": str(solution.termination),
            "claimed": solution.objective,
            "route": answer.origin,
            "minimise": request.aim.minimise,
            "loss": request.aim.loss,
            "max_loss": None if limit is None else float(limit),
            "bound": answer.bound,
        }
        return Certificate(mechanism, claim, objective=stated, record=record, audited=audited)

    def compute_loss(self, mechanism: AdditiveNoise) -> Fraction:
        """What a mechanism costs, exactly."""
        return compute_exact_loss(mechanism, self.reported_request.losses)

    def smallest_delta(self, answer: Answer, privacy: Privacy) -> Fraction:
        """The solver's claim."""
        assert answer.claimed_objective is not None
        return Fraction(repr(min(1.0, max(0.0, answer.claimed_objective))))

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses of noise values."""
        return self.request.scale

    def list_notes(self) -> list[str]:
        """What a reader must know of relation and loss."""
        request, words = self.request, []
        if request.question.separation is not None:
            words.append(request.question.separation)
        if request.question.directed:
            words.append(
                "Directed differences protect one side of each pair of neighbours only, as the paper does; "
                "leave out directed for the symmetric relation."
            )
        elif request.aim.loss == "eta-squared":
            words.append(
                "eta-squared counts a step down by 1 as a step up by n; with symmetric differences that cost is "
                "misleading, and squared is the honest one."
            )
        return words

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """What a closed form says of the solver's answer."""
        request, solution = self.request, answer.solution
        assert solution is not None
        if request.has_several_bounds:
            return super().judge_by_formula(answer)
        return judge_by_closed_form(
            request, solution, why_unproven(solution, self.loss_scale) is None
        )

    def require_proof(self, design: Design) -> Design:
        """The design, where the solver, the exact program or a closed form proves it. Raises NotProven, with it."""
        if self.request.has_several_bounds:
            return super().require_proof(design)
        solution, proof = design.solution, self._proof
        assert solution is not None
        unproven, words = (
            why_unproven(solution, self.loss_scale),
            [*design.words, *self._describe_proof(design, solution)],
        )
        design = replace(design, words=tuple(words))
        if design.certificate is not None and proof is not None:
            optimum = None if proof.lower_bound is None else float(proof.lower_bound)
            bound = design.certificate.record["bound"]
            details = {**design.details, "bound": None if bound is None else Fraction(bound)}
            design = replace(
                design, bound=bound, origin=proof.origin, pattern_optimum=optimum, details=details
            )
        if is_solution_proven(solution, self.loss_scale):
            return design
        design = add_closed_form_bound(design)
        if solution.termination is Termination.OPTIMAL and is_proven_optimal(design):
            return design
        raise NotProven(
            f"{self.request.how.solver} {unproven}: incumbent {design.objective:.9g}, bound {design.bound_text}.",
            design=design,
            interrupted=_stopped(solution),
        )

    def _describe_proof(self, reached: Design, solution: Solution) -> list[str]:
        """What a reader must know of how far a design is proven, and of squared errors that wrap."""
        request, objective, bound = self.request, solution.objective, solution.bound
        assert objective is not None
        words = []
        if (
            request.aim.loss == "squared"
            and request.aim.minimise == "loss"
            and request.question.is_scalar
        ):
            words += _wrapping(reached.mechanism, reached.objective)
        if solution.termination is Termination.GAP_LIMIT:
            words.append(
                f"Stopped within the allowed gap: the optimum lies between {bound:.9g} and {objective:.9g}."
            )
        if why_unproven(solution, self.loss_scale) is not None:
            return words
        if (
            bound is not None
            and (self.loss_scale.gap(objective, max(float(self.loss_scale.floor), bound)) or 0)
            > _SHARP
        ):
            words.append(
                "Proven in absolute terms, not relative to so small a number: the optimum lies between "
                f"{max(float(self.loss_scale.floor), bound):.9g} and {objective:.9g}."
            )
        if reached.oracle.agrees is False:
            words.append(
                f"The solver's answer DISAGREES with the closed form ({reached.oracle.name})."
            )
        return words


class ModuloSession(ProblemSession):
    """The session of a request; one compiled model and one live solver for each of the model's shapes."""

    request: ModuloRequest

    def __init__(self, request: ModuloRequest) -> None:
        super().__init__(request, ModuloProblem, MIN_EPSILON)

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """The answer at a point, checked as far as the request says; an infeasible one is not explained, as there may
        be many."""
        request = self.request.at_point(point)
        self._problem = partial(ModuloProblem, explains=False)
        if (
            request.how.check in ("audit", "certify")
            or request.aim.minimise == "epsilon"
            or request.has_several_bounds
        ):
            return super().row(point, start=start)
        problem = self._problem(request)
        solution = answer_by_routes(problem, problem.routes, self._programs, start).solution
        assert solution is not None
        if _stopped(solution):
            raise KeyboardInterrupt
        row = {
            "status": "claimed",
            "failure": None,
            "objective": solution.objective,
            "bound": None,
            "start": str(solution.start),
            "audited": False,
        }
        if request.how.check == "none" and solution.termination is Termination.OPTIMAL:
            return row
        proven = is_solution_proven(solution, request.scale)
        assert solution.residuals is not None
        return row | {
            "status": str(solution.termination) if proven else "not_proven",
            "failure": None if proven else why_unproven(solution, request.scale),
            "bound": solution.bound,
            "gap": request.scale.gap(solution.objective, solution.bound),
            "residual": solution.residuals.max_violation,
        }


def _stopped(solution: Solution) -> bool:
    """Whether Ctrl-C ended the solve."""
    return solution.termination is Termination.INTERRUPTED


def _wrapping(mechanism: AdditiveNoise, loss: float) -> list[str]:
    """A sentence where most of a squared error is that of answers published near the other end."""
    order = mechanism.question.order
    steps = np.arange(order)
    near = mechanism.expected_loss(np.minimum(steps, order - steps) ** 2)
    if near >= loss / 2:
        return []
    return [
        f"Wrapping around is {1 - near / loss:.0%} of this loss: answers near one end may be published near the other. "
        f"`workbench recommend` and `design noise --on integers --clamp 0..{order - 1}` have noise that does not."
    ]
