"""Design modulo noise for one request: solve it, repair the result exactly and prove it.

`ModuloProblem` does this for one request. `ModuloSession` does it for many points, such as those of
a frontier, which share their compiled programs.

A request takes the first route that applies (`ModuloProblem.routes`):

route          request                                     how it is solved
tangents       a notion of several convex bounds           linear programs, with tangents of the
                                                           bounds added until they hold
fast search    pdp with δ > 0, method fast                 `workbench.models.modulo.fast`
program        every other notion of one bound on ratios   one linear or mixed-integer program

The solution of the last two is repaired by `certify_noise`, that of the first by
`find_cheapest_repair` (`workbench.families.modulo.repair`). The report says where the masses of a
design come from (its origin). A new way to solve a request is a new route.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from workbench import __version__
from workbench.errors import Infeasible, NotCertified, NotProven
from workbench.exact.numbers import ONE, round_down
from workbench.families.modulo.exact_program import (
    LIMIT_NAMES,
    SOLVER_FAILURES,
    is_solution_proven,
    refine_exactly,
    should_refine,
    why_unproven,
)
from workbench.families.modulo.infeasible import explain_infeasibility
from workbench.families.modulo.oracle_check import (
    add_closed_form_bound,
    find_closed_form_bound,
    find_strongest_law,
    is_proven_optimal,
    judge_by_closed_form,
)
from workbench.families.modulo.repair import (
    CertifiedNoise,
    certify_noise,
    describe_shortfalls,
    find_cheapest_repair,
)
from workbench.families.modulo.request import MIN_EPSILON, ModuloRequest
from workbench.io.result import Row
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models.oracles import ClosedForm
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

# No exact program starts after this multiple of the time limit.
_EXACT_TIME_FACTOR = 1.5
_MAX_UNNOTED_GAP = 1e-6  # The report contains a note if the relative gap is larger than this.
_DELTA_DECIMALS = 30  # A minimised δ is rounded up to this many decimals.
_DELTA_TOLERANCE = Fraction(1, 10**9)  # A minimised δ may exceed its limit by this share.

_TANGENTS = Route(
    "tangents",
    require_several_bounds,
    answer=lambda problem, programs, start: problem.answer_by_tangents(),
)
_FAST = Route(
    "fast search",
    applies=lambda problem: problem.why_not_fast(),
    answer=lambda problem, programs, start: problem.answer_by_solver(programs, start),
)
_PROGRAM = replace(_FAST, name="program", applies=require_one_bound)


class ModuloProblem(Problem):
    """Answer one request for modulo noise.

    Args:
        request: the checked request of the design.
        explains: whether an error for an infeasible request names the conflicting constraints.

    Attributes:
        request: the request that is solved, with losses divided by a unit if δ is minimised.
        reported_request: the request as the user stated it, for reports and certificates.
    """

    SUBJECT = "The solver's PMF"
    routes = (_TANGENTS, _FAST, _PROGRAM)
    request: ModuloRequest

    def __init__(self, request: ModuloRequest, *, explains: bool = True) -> None:
        super().__init__(request.with_scaled_losses())
        self.reported_request = request
        self._explains = explains
        self._deadline = Deadline(request.how.options.time_limit).rescale(_EXACT_TIME_FACTOR)
        self._proof: CertifiedNoise | None = None

    # Answers.

    def answer_by_tangents(self) -> Answer:
        """Answer by linear programs with tangents, which are added as needed.

        Raises:
            Infeasible: no noise is private with the constraints.
            NotProven: a limit was reached before there was any noise.
            SolverUnavailable: the solver is not installed.
        """
        request = self.request
        model = request.model()
        shifts = request.question.differences
        first_shift, *_ = shifts  # All differences have the same bounds.
        comparisons = model.build_comparisons(shifts)
        solution, bound = solve_by_tangents(request, first_shift, model.program, comparisons)
        return Answer(self._read_noise(solution), bound, solution)

    def answer_by_solver(self, programs: Programs | None, start: str) -> Answer:
        """Answer by the integer or linear program, or by the fast search over patterns.

        Args:
            programs: the compiled programs that the requests of one session share.
            start: "hot" or "cold".

        Raises:
            Infeasible: no noise is private with the constraints, or the limit on δ is too small.
            NotProven: a limit was reached before there was any noise.
        """
        request = self.request
        assert programs is not None
        solution = self.solve_program(programs, start)
        explain: Callable[[], str] = _explain_nothing
        if self._explains:
            explain = partial(explain_infeasibility, ModuloProblem, request, programs)
        if solution.x is None:
            self._raise_without_point(solution, explain)
        mechanism = self._read_noise(solution)
        if request.aim.minimise != "delta":
            return Answer(mechanism, solution.bound, solution)
        smallest_delta = solution.objective
        assert smallest_delta is not None
        limit = request.claim.delta
        if limit is not None and Fraction(smallest_delta) > limit * (1 + _DELTA_TOLERANCE):
            aim = self.reported_request.aim
            raise Infeasible(
                f"Loss {aim.loss} at most {float(aim.max_loss or 0):g} needs delta >= "
                f"{smallest_delta:.9g} at this epsilon. Got delta = {float(limit):g}.{explain()}"
            )
        return Answer(mechanism, solution.bound, solution, claimed_objective=smallest_delta)

    def why_not_fast(self) -> Reason:
        """Return why the fast search over patterns does not apply; None if it does."""
        request = self.request
        if request.has_several_bounds:
            return require_one_bound(self)
        if request.how.method != "fast":
            return f"the requested method is {request.how.method}"
        with translate_errors():
            by_patterns = request.model().is_pattern_model
        return None if by_patterns else "it searches the patterns of pdp with delta > 0"

    def _read_noise(self, solution: Solution) -> AdditiveNoise:
        """Return the noise with the solver's masses; negative ones are set to 0."""
        return AdditiveNoise.from_pmf(self.request.question, np.maximum(solution["f"], 0.0))

    def _raise_without_point(self, solution: Solution, explain: Callable[[], str]) -> NoReturn:
        """Raise the error for a solution without a point.

        Args:
            solution: the solution that the solver returned.
            explain: returns sentences on what conflicts, for an infeasible request.
        """
        request = self.request
        answer = f"{request.how.solver} says {solution.raw_status!r}"
        if solution.termination is Termination.INFEASIBLE:
            text = self._describe_constraints()
            raise_infeasible(
                solution,
                answer,
                missing=text,
                reason_feasible="uniform noise is private",
                explain=explain,
            )
        bounds = []
        if solution.bound is not None:
            bounds.append(solution.bound)
        closed_form = find_closed_form_bound(request)
        if closed_form is not None:
            closed_form_bound, _ = closed_form
            bounds.append(closed_form_bound)
        bound = max(bounds, default=None)
        limit = LIMIT_NAMES.get(solution.termination, f"status {solution.termination}")
        bound_text = "unknown"
        if bound is not None and bound > 0:
            bound_text = f"{bound:.9g}"
        raise NotProven(
            f"{answer}: {limit} was reached without an incumbent; bound {bound_text}.",
            bound=bound,
            interrupted=_is_interrupted(solution),
        )

    def _describe_constraints(self) -> str | None:
        """Return the end of the sentence "No ..." for an infeasible request.

        Returns None without constraints and without a limit on the loss.
        """
        max_loss = self.reported_request.aim.max_loss
        if max_loss is not None:
            return f"noise meets the request with max_loss {float(max_loss):g} and the constraints"
        if self.request.aim.constraints is None:
            return None
        return "noise meets the request with the extra constraints"

    def solve_program(self, programs: Programs, start: str = "hot") -> Solution:
        """Solve the program of a request under one bound on ratios.

        A certified design needs tight tolerances. If the solver fails with them, solve again with
        the tolerances of the request.

        Args:
            programs: the compiled programs that the requests of one session share.
            start: "hot" or "cold".

        Returns:
            The solution, with a point or without.
        """
        request = self.request
        options = request.how.options
        deadline = Deadline(options.time_limit)
        tight_options = options
        if request.wants_certificate:
            tight_options = programs.tighten_tolerances(options)
        session = self._get_session(programs)
        values = request.parameters()
        with translate_errors():
            solution = session.solve(
                values, start=Start(start), time_limit=deadline.solver_time_limit
            )
            if tight_options != options and solution.termination in SOLVER_FAILURES:
                with programs.backend.open(session.program, options) as second_session:
                    solution = second_session.solve(values, time_limit=deadline.solver_time_limit)
        if should_refine(request, solution):
            return refine_exactly(request, solution, deadline.solver_time_limit)
        return solution

    def _get_session(self, programs: Programs) -> SolverSession | FastSession:
        """Return the open solver of the model, and open one if there is none.

        Requests share a solver if their programs differ in parameter values only.
        """
        request = self.request
        sessions = programs.live_sessions
        # The groups say which differences have the same ε.
        groups, _ = request.bounds.epsilon_levels
        key = (
            request.aim.minimise,
            bool(request.bounds.delta),
            groups,
            request.wants_certificate,
        )
        with translate_errors():
            if key not in sessions:
                model = request.model()
                options = request.how.options
                if request.wants_certificate:
                    options = programs.tighten_tolerances(options)
                if self.why_not_fast() is None:
                    from workbench.models.modulo.fast import FastSession  # This import is slow.

                    sessions[key] = model, FastSession(model, programs.backend, options)
                else:
                    sessions[key] = model, programs.backend.open(model.program, options)
        session: SolverSession | FastSession
        _, session = sessions[key]
        return session

    # Repair.

    def repair(self, answer: Answer) -> Repaired:
        """Repair and certify the mechanism of an answer.

        If the solution is not proven and no repair is found, return the solver's mechanism without
        a certificate. Raises NotCertified if the solution is proven and no repair is found.
        """
        request = self.request
        solution = answer.solution
        assert solution is not None
        if request.has_several_bounds:
            return self._repair_several_bounds(answer)
        try:
            proof = self._certify(solution)
        except NotCertified as error:
            if is_solution_proven(solution, self.loss_scale):
                raise
            return answer.mechanism, None, [f"The incumbent is not certified. {error}"]
        self._proof = proof
        bound = answer.bound
        if proof.lower_bound is not None and not request.bounds.bounds_mass:
            bound = max(round_down(proof.lower_bound), -np.inf if bound is None else float(bound))
        delta = proof.delta
        if request.aim.minimise == "delta":
            unit = 10**_DELTA_DECIMALS
            delta = min(ONE, Fraction(math.ceil(delta * unit), unit))
        epsilons = {*request.budgets.values()}
        epsilon = request.audited_claim.epsilon
        if len(epsilons) == 1:
            epsilon = epsilons.pop()
        claim = Claim(request.claim.notion, epsilon, delta)
        answer = replace(answer, bound=bound, origin=proof.origin)
        certificate = self._make_certificate(
            proof.mechanism, answer, loss=proof.objective, claim=claim, audited=proof.privacy
        )
        return proof.mechanism, certificate, describe_shortfalls(request, proof, solution)

    def _repair_several_bounds(self, answer: Answer) -> Repaired:
        """Repair and certify a mechanism under several bounds. Raises NotCertified."""
        request = self.request
        mechanism = find_cheapest_repair(request, answer.mechanism, answer.bound)
        loss = compute_exact_loss(mechanism, request.losses)
        certificate = self._make_certificate(mechanism, answer, loss, request.audited_claim)
        notes = [] if request.aim.constraints is None else [CONSTRAINTS_NOTE]
        return mechanism, certificate, notes

    def _certify(self, solution: Solution) -> CertifiedNoise:
        """Certify the noise of a solution. Raises NotCertified, also above the limit on δ."""
        request = self.request
        minimises_delta = request.aim.minimise == "delta"

        def find_law() -> ClosedForm | None:
            """Return the law of the closed form at the budget, None if δ is minimised."""
            if minimises_delta:
                return None
            return find_strongest_law(request, float(request.claim.delta or 0))

        proof = certify_noise(request, solution, find_law, self._deadline)
        limit = request.claim.delta
        if minimises_delta and limit is not None and proof.delta > limit:
            excess = float(proof.delta - limit)
            raise NotCertified(
                f"The least delta that could be certified exceeds the limit {float(limit):g} "
                f"by {excess:.3g}."
            )
        return proof

    def _make_certificate(
        self,
        mechanism: AdditiveNoise,
        answer: Answer,
        loss: Fraction,
        claim: Claim,
        audited: Privacy | None = None,
    ) -> Certificate:
        """Make the certificate of a mechanism, with a record of how it was found.

        Args:
            mechanism: the repaired noise.
            answer: the answer from which it was made, with its bound and origin.
            loss: the exact expected loss of the noise.
            claim: the claim that the certificate proves.
            audited: an exact audit of the noise. None: the certificate makes one.
        """
        request = self.reported_request
        solution = answer.solution
        limit = request.loss_limit
        assert solution is not None
        objective = None
        if request.aim.minimise == "loss" and request.losses.ndim == 1:
            # A checker recomputes this loss from the file.
            losses = None
            if request.aim.loss != "error-rate":
                losses = tuple(map(Fraction, request.losses.tolist()))
            objective = Objective(request.aim.loss, round_loss_up(loss), losses)
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
        return Certificate(mechanism, claim, objective=objective, record=record, audited=audited)

    def compute_loss(self, mechanism: AdditiveNoise) -> Fraction:
        """Compute the exact expected loss of a mechanism.

        Args:
            mechanism: noise on the group of the request.
        """
        return compute_exact_loss(mechanism, self.reported_request.losses)

    def smallest_delta(self, answer: Answer, privacy: Privacy) -> Fraction:
        """Return the δ that the solver claims, for a mechanism that is not certified."""
        assert answer.claimed_objective is not None
        return Fraction(repr(min(1.0, max(0.0, answer.claimed_objective))))

    @property
    def loss_scale(self) -> LossScale:
        """Return the scale of the losses of noise values."""
        return self.request.loss_scale

    # Proof and notes.

    def list_notes(self) -> list[str]:
        """Return notes on the neighbour relation and the loss."""
        request = self.request
        notes = []
        if request.question.origin:
            notes.append(request.question.origin)
        if request.question.separation is not None:
            notes.append(request.question.separation)
        if request.question.directed:
            notes.append(
                "Directed differences protect one side of each pair of neighbours only, as the "
                "paper does; leave out directed for the symmetric relation."
            )
        elif request.aim.loss == "eta-squared":
            notes.append(
                "eta-squared counts a step down by 1 as a step up by n, which is misleading for "
                "symmetric differences. Use the loss squared instead."
            )
        return notes

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Compare the solver's objective with the closed form, if there is one."""
        request = self.request
        solution = answer.solution
        assert solution is not None
        if request.has_several_bounds:
            return super().judge_by_formula(answer)
        is_proven = why_unproven(solution, self.loss_scale) is None
        return judge_by_closed_form(request, solution, is_proven)

    def require_proof(self, design: Design) -> Design:
        """Return the design if the solver, the exact program or a closed form proves it.

        Args:
            design: the design, repaired and audited.

        Raises:
            NotProven: nothing proves it; with the design.
        """
        if self.request.has_several_bounds:
            return super().require_proof(design)
        solution = design.solution
        assert solution is not None
        reason = why_unproven(solution, self.loss_scale)
        notes = [*design.words, *self._describe_proof(design, solution)]
        design = self._add_exact_bound(replace(design, words=tuple(notes)))
        if is_solution_proven(solution, self.loss_scale):
            return design
        design = add_closed_form_bound(design)
        if solution.termination is Termination.OPTIMAL and is_proven_optimal(design):
            return design
        raise NotProven(
            f"{self.request.how.solver} {reason}: incumbent {design.objective:.9g}, "
            f"bound {design.bound_text}.{_advise_gap(solution)}",
            design=design,
            interrupted=_is_interrupted(solution),
        )

    def _add_exact_bound(self, design: Design) -> Design:
        """Return the design with the bound and the origin of its certified noise, if it has one."""
        proof = self._proof
        if design.certificate is None or proof is None:
            return design
        optimum = None
        if proof.lower_bound is not None:
            optimum = float(proof.lower_bound)
        bound = design.certificate.record["bound"]
        details = {**design.details, "bound": None if bound is None else Fraction(bound)}
        return replace(
            design, bound=bound, origin=proof.origin, pattern_optimum=optimum, details=details
        )

    def _describe_proof(self, design: Design, solution: Solution) -> list[str]:
        """Return notes on a wrapping squared error, a remaining gap and the closed form."""
        request = self.request
        objective = solution.objective
        bound = solution.bound
        assert objective is not None
        notes = []
        is_squared = request.aim.loss == "squared" and request.aim.minimise == "loss"
        if is_squared and request.question.is_scalar:
            notes += _describe_wrapping(design.mechanism, design.objective)
        if solution.termination is Termination.GAP_LIMIT:
            notes.append(
                f"Stopped within the allowed gap: the optimum lies between {bound:.9g} and "
                f"{objective:.9g}."
            )
        if why_unproven(solution, self.loss_scale) is not None:
            return notes
        if bound is not None:
            bound = max(float(self.loss_scale.floor), bound)
            gap = self.loss_scale.gap(objective, bound) or 0
            if gap > _MAX_UNNOTED_GAP:
                notes.append(
                    "Proven in absolute terms, not relative to so small a number: the optimum "
                    f"lies between {bound:.9g} and {objective:.9g}."
                )
        if design.oracle.agrees is False:
            name = design.oracle.name
            notes.append(f"The solver's answer DISAGREES with the closed form ({name}).")
        return notes


class ModuloSession(ProblemSession):
    """Answer a request at many points. Points with the same form of program share their solver.

    Args:
        request: the request for modulo noise.
    """

    request: ModuloRequest

    def __init__(self, request: ModuloRequest) -> None:
        super().__init__(request, ModuloProblem, MIN_EPSILON)

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """Return the answer at a point as a row of a table.

        The option check of the request decides how the answer is verified. The conflict behind an
        infeasible point is not explained, as there may be many such points.

        Args:
            point: values of the options that may vary without a new program, such as epsilon.
            start: "hot" or "cold".

        Returns:
            Column -> value: status, failure, objective, bound, start and audited; with check
            "bound" also gap and residual. Audited rows are those of `ProblemSession.row`.
        """
        request = self.request.at_point(point)
        self._make_problem = partial(ModuloProblem, explains=False)  # Also for the base class.
        is_audited = request.how.check in ("audit", "certify")
        if is_audited or request.aim.minimise == "epsilon" or request.has_several_bounds:
            return super().row(point, start=start)
        problem = self._make_problem(request)
        solution = answer_by_routes(problem, problem.routes, self._programs, start).solution
        assert solution is not None
        if _is_interrupted(solution):
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
        is_proven = is_solution_proven(solution, request.loss_scale)
        assert solution.residuals is not None
        row["status"] = str(solution.termination) if is_proven else "not_proven"
        row["failure"] = None if is_proven else why_unproven(solution, request.loss_scale)
        row["bound"] = solution.bound
        row["gap"] = request.loss_scale.gap(solution.objective, solution.bound)
        row["residual"] = solution.residuals.max_violation
        return row


def _explain_nothing() -> str:
    """Return no sentences: the conflict behind an infeasible request is not explained."""
    return ""


def _is_interrupted(solution: Solution) -> bool:
    """Check whether Ctrl-C ended the solver."""
    return solution.termination is Termination.INTERRUPTED


def _describe_wrapping(mechanism: AdditiveNoise, loss: float) -> list[str]:
    """Return a note if more than half of a squared error comes from noise that wraps around.

    Args:
        mechanism: the noise.
        loss: its expected squared error, where published minus true answer is in -n..n.
    """
    order = mechanism.question.order
    steps = np.arange(order)
    circular_loss = mechanism.expected_loss(np.minimum(steps, order - steps) ** 2)
    if circular_loss >= loss / 2:
        return []
    return [
        f"Wrapping around causes {1 - circular_loss / loss:.0%} of this loss: answers near one end "
        "may be published near the other. "
        f"`workbench recommend` and `design noise --on integers --clamp 0..{order - 1}` offer "
        "noise that does not wrap around."
    ]


def _advise_gap(solution: Solution) -> str:
    """Return a sentence on the option that accepts the interval of a stopped search, or ""."""
    gap = solution.gap
    if solution.termination is Termination.OPTIMAL or not gap or not solution.program.is_mip:
        return ""
    power = 10.0 ** math.floor(math.log10(gap))
    accepted_gap = math.ceil(gap / power) * power  # One digit, rounded up.
    return f" Allow more time, or accept this interval with gap {accepted_gap:.1g}."
