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
from workbench.families.modulo.infeasible import explanation
from workbench.families.modulo.oracle_check import (
    is_closed,
    known_bound,
    oracle_verdict,
    strongest_law,
    with_law,
)
from workbench.families.modulo.repair import (
    DEFEATED,
    LIMITS,
    Certified,
    certify_noise,
    cheapest_repair,
    is_proven,
    missed_words,
    refined,
    why_unproven,
    worth_refining,
)
from workbench.families.modulo.request import LEAST_EPSILON, ModuloRequest
from workbench.io.result import Row
from workbench.mechanisms.additive import AdditiveNoise
from workbench.pipeline.convex_notion import solve_by_tangents
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Values
from workbench.pipeline.infeasible import refuse_infeasible
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translated_errors
from workbench.pipeline.problem import Problem, Repaired
from workbench.pipeline.routes import (
    Answer,
    Programs,
    Reason,
    Route,
    answer_by_routes,
    only_one_bound,
    only_several_bounds,
)
from workbench.pipeline.solve import ProblemSession
from workbench.pipeline.user_constraints import TOLERATED
from workbench.privacy.audit import Privacy
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.objective import Objective, rounded_value
from workbench.privacy.repair import exact_loss
from workbench.solvers.search import Deadline
from workbench.solvers.session import Session as SolverSession
from workbench.solvers.solution import Solution, Start, Termination

if TYPE_CHECKING:
    from workbench.models.modulo.fast import FastSession

_CERTIFIED_BY = 1.5  # of the time limit: until then the exact program of a pattern is solved, its floats repaired after
_SHARP = 1e-6  # gap relative to the objective itself, above which it is said
_DIGITS = 30  # of a least δ


_TANGENTS = Route(
    "tangents", only_several_bounds, lambda problem, programs, start: problem.answer_by_tangents()
)
_FAST = Route(
    "fast search",
    lambda problem: problem.why_not_fast(),
    lambda problem, programs, start: problem.answer_by_solver(programs, start),
)
_PROGRAM = replace(_FAST, name="program", applies=only_one_bound)


class ModuloProblem(Problem):
    """The problem of a request. explains: whether an infeasible one is told what conflicts and what would do."""

    SUBJECT = "The solver's PMF"
    routes = (_TANGENTS, _FAST, _PROGRAM)
    request: ModuloRequest

    def __init__(self, request: ModuloRequest, *, explains: bool = True) -> None:
        super().__init__(request.in_scale())
        self.outer = request
        self._explains = explains
        self._deadline = Deadline(request.how.options.time_limit).times(_CERTIFIED_BY)
        self._proof: Certified | None = None  # of what is repaired

    # Answers.

    def answer_by_tangents(self) -> Answer:
        """Answer by linear programs with tangents, as many as are needed. Raises as `Problem`'s routes."""
        request = self.request
        model, shifts = request.model(), request.question.differences
        solution, least = solve_by_tangents(
            request, shifts[0], model.program, model.compared(shifts)
        )
        return Answer(self._noise(solution), least, solution)

    def answer_by_solver(self, programs: Programs | None, start: str) -> Answer:
        """Answer by the integer or linear program, or its fast search. Raises as `Problem`'s routes."""
        request = self.request
        assert programs is not None
        solution = self.solved(programs, start)
        why = partial(explanation, ModuloProblem, request, programs) if self._explains else str
        if solution.x is None:
            self._refuse(solution, why)
        least, outer = solution.objective, self.outer
        if request.aim.minimise != "delta":
            return Answer(self._noise(solution), solution.bound, solution)
        assert least is not None
        if request.claim.delta is not None and Fraction(least) > request.claim.delta * (
            1 + Fraction(1, 10**9)
        ):
            raise Infeasible(
                f"Loss {outer.aim.loss} at most {float(outer.aim.max_loss or 0):g} needs delta >= {least:.9g} at this "
                f"epsilon. Got delta = {float(request.claim.delta):g}.{why()}"
            )
        return Answer(self._noise(solution), solution.bound, solution, claimed=least)

    def why_not_fast(self) -> Reason:
        """Return why the search over patterns does not apply."""
        request = self.request
        if request.cut:
            return only_one_bound(self)
        if request.how.method != "fast":
            return f"method {request.how.method} was asked for"
        with translated_errors():
            by_patterns = request.model().by_patterns
        return None if by_patterns else "it searches the patterns of pdp with delta > 0"

    def _noise(self, solution: Solution) -> AdditiveNoise:
        """The solver's own masses."""
        return AdditiveNoise.from_pmf(self.request.question, np.maximum(solution["f"], 0.0))

    def _refuse(self, solution: Solution, why: Any) -> NoReturn:
        """Raise what an answer without a point means."""
        request, answer = self.request, f"{self.request.how.solver} says {solution.raw_status!r}"
        if solution.termination is Termination.INFEASIBLE:
            most = self.outer.aim.max_loss
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
            refuse_infeasible(solution, answer, what, "uniform noise is private", why)
        law = known_bound(request)
        known = max(
            (bound for bound in (solution.bound, law and law[0]) if bound is not None), default=None
        )
        limit = LIMITS.get(solution.termination, f"status {solution.termination}")
        words = f"{known:.9g}" if known is not None and known > 0 else "unknown"
        raise NotProven(
            f"{answer}: {limit} was reached without an incumbent; bound {words}.",
            bound=known,
            interrupted=_stopped(solution),
        )

    def solved(self, programs: Programs, start: str = "hot") -> Solution:
        """What the solver says, a point or none, of one bound on ratios.

        At the user's own tolerances where the exacting ones of a certified design defeat the solver.
        """
        request, options = self.request, self.request.how.options
        deadline = Deadline(options.time_limit)
        exacting = programs.exacting(options) if request.certified else options
        session, values = self._live(programs), request.parameters()
        with translated_errors():
            solution = session.solve(values, start=Start(start), time_limit=deadline.limit)
            if exacting != options and solution.termination in DEFEATED:
                with programs.backend.open(session.program, options) as second:
                    solution = second.solve(values, time_limit=deadline.limit)
        return (
            refined(request, solution, deadline.limit)
            if worth_refining(request, solution)
            else solution
        )

    def _live(self, programs: Programs) -> SolverSession | FastSession:
        """The model's live solver."""
        request, live = self.request, programs.live
        key = (
            request.aim.minimise,
            bool(request.bounds.delta),
            request.bounds.levels[0],
            request.certified,
        )
        with translated_errors():
            if key not in live:
                model = request.model()
                options = (
                    programs.exacting(request.how.options)
                    if request.certified
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

    def repaired(self, answer: Answer) -> Repaired:
        """What the exact audit accepts; the solver's own where that proves nothing and no repair is found."""
        request, solution = self.request, answer.solution
        assert solution is not None
        if request.cut:
            mechanism = cheapest_repair(request, answer.mechanism, answer.bound)
            certificate = self._certificate(
                mechanism, answer, exact_loss(mechanism, request.losses), request.audited_claim
            )
            return mechanism, certificate, [] if request.aim.constraints is None else [TOLERATED]
        least = request.aim.minimise == "delta"
        law = (
            (lambda: None)
            if least
            else partial(strongest_law, request, float(request.claim.delta or 0))
        )
        try:
            proof = certify_noise(request, solution, law, self._deadline)
            if least and request.claim.delta is not None and proof.delta > request.claim.delta:
                excess, limit = float(proof.delta - request.claim.delta), float(request.claim.delta)
                raise NotCertified(
                    f"The least delta that could be certified exceeds the limit {limit:g} by {excess:.3g}."
                )
        except NotCertified as error:
            if is_proven(solution, self.loss_scale):
                raise
            return answer.mechanism, None, [f"The incumbent is not certified. {error}"]
        self._proof = proof
        bound = answer.bound
        if proof.optimum is not None and not request.bounds.mass:
            bound = max(round_down(proof.optimum), -np.inf if bound is None else float(bound))
        delta = (
            min(ONE, Fraction(math.ceil(proof.delta * 10**_DIGITS), 10**_DIGITS))
            if least
            else proof.delta
        )
        different = {*request.budgets.values()}
        epsilon = request.audited_claim.epsilon if len(different) > 1 else different.pop()
        repaired = replace(answer, bound=bound, origin=proof.origin)
        claim = Claim(request.claim.notion, epsilon, delta)
        certificate = self._certificate(
            proof.mechanism, repaired, proof.objective, claim, proof.privacy
        )
        return proof.mechanism, certificate, missed_words(request, proof, solution)

    def _certificate(
        self,
        mechanism: AdditiveNoise,
        answer: Answer,
        loss: Fraction,
        claim: Claim,
        audited: Privacy | None = None,
    ) -> Certificate:
        """The certificate of a mechanism, with what it says of how that was found."""
        request, solution, limit = self.outer, answer.solution, self.outer.loss_limit
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
            stated = Objective(request.aim.loss, rounded_value(loss), losses)
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

    def loss(self, mechanism: AdditiveNoise) -> Fraction:
        """What a mechanism costs, exactly."""
        return exact_loss(mechanism, self.outer.losses)

    def least_delta(self, answer: Answer, privacy: Privacy) -> Fraction:
        """The solver's claim."""
        assert answer.claimed is not None
        return Fraction(repr(min(1.0, max(0.0, answer.claimed))))

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses of noise values."""
        return self.request.scale

    def words(self) -> list[str]:
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

    def oracle(self, answer: Answer) -> OracleVerdict:
        """What a closed form says of the solver's answer."""
        request, solution = self.request, answer.solution
        assert solution is not None
        if request.cut:
            return super().oracle(answer)
        return oracle_verdict(request, solution, why_unproven(solution, self.loss_scale) is None)

    def proven(self, reached: Design) -> Design:
        """The design, where the solver, the exact program or a closed form proves it. Raises NotProven, with it."""
        if self.request.cut:
            return super().proven(reached)
        solution, proof = reached.solution, self._proof
        assert solution is not None
        unproven, words = (
            why_unproven(solution, self.loss_scale),
            [*reached.words, *self._proof_words(reached, solution)],
        )
        design = replace(reached, words=tuple(words))
        if reached.certificate is not None and proof is not None:
            optimum = None if proof.optimum is None else float(proof.optimum)
            bound = reached.certificate.record["bound"]
            details = {**reached.details, "bound": None if bound is None else Fraction(bound)}
            design = replace(
                design, bound=bound, origin=proof.origin, optimum=optimum, details=details
            )
        if is_proven(solution, self.loss_scale):
            return design
        design = with_law(design)
        if solution.termination is Termination.OPTIMAL and is_closed(design):
            return design
        raise NotProven(
            f"{self.request.how.solver} {unproven}: incumbent {design.objective:.9g}, bound {design.bound_words}.",
            design=design,
            interrupted=_stopped(solution),
        )

    def _proof_words(self, reached: Design, solution: Solution) -> list[str]:
        """What a reader must know of how far a design is proven, and of squared errors that wrap."""
        request, objective, bound = self.request, solution.objective, solution.bound
        assert objective is not None
        words = []
        if (
            request.aim.loss == "squared"
            and request.aim.minimise == "loss"
            and request.question.scalar
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
        super().__init__(request, ModuloProblem, LEAST_EPSILON)

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """The answer at a point, checked as far as the request says; an infeasible one is not explained, as there may
        be many."""
        request = self.request.at(point)
        self._problem = partial(ModuloProblem, explains=False)
        if (
            request.how.check in ("audit", "certify")
            or request.aim.minimise == "epsilon"
            or request.cut
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
        proven = is_proven(solution, request.scale)
        assert solution.residuals is not None
        return row | {
            "status": str(solution.termination) if proven else "not_proven",
            "failure": None if proven else why_unproven(solution, request.scale),
            "bound": solution.bound,
            "gap": request.scale.gap(solution.objective, solution.bound),
            "residual": solution.residuals.worst,
        }


def _stopped(solution: Solution) -> bool:
    """Whether Ctrl-C ended the solve."""
    return solution.termination is Termination.INTERRUPTED


def _wrapping(mechanism: AdditiveNoise, loss: float) -> list[str]:
    """A sentence where most of a squared error is that of answers published near the other end."""
    order = mechanism.question.order
    steps = np.arange(order)
    near = mechanism.expected(np.minimum(steps, order - steps) ** 2)
    if near >= loss / 2:
        return []
    return [
        f"Wrapping around is {1 - near / loss:.0%} of this loss: answers near one end may be published near the other. "
        f"`workbench recommend` and `design noise --on integers --clamp 0..{order - 1}` have noise that does not."
    ]
