"""Design noise on the integers or the reals for one request: solve, repair, evaluate and prove it.

`NoiseProblem` does this for one run, and `NoiseSession` at many budgets. A request takes the first
route that applies (`NoiseProblem.routes`):

route                      request                              how it is solved
staircase                  δ = 0, one bound on ratios, a loss   in closed form (Geng and Viswanath
                           that rises alike on both sides       2014); its ratio is a rational
                                                                slightly above e^-ε
programs at delta = 0      δ = 0, one bound on ratios, on the   `workbench.families.noise.pure`
                           integers
programs from both sides   all others                           `workbench.families.noise.bracket`

A solver's law is repaired by mixing in private noise (`workbench.families.noise.repair`). A new way
to solve a request is a new route.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.exact.numbers import ZERO, exp_interval, round_down
from workbench.exact.objects import Record, Values
from workbench.families.noise.bracket import (
    BracketResult,
    LineNoise,
    LineProgramSolver,
    NoiseClaimBounds,
    bracket_optimum,
    compute_coarse_bound,
)
from workbench.families.noise.expected_loss import compute_noise_loss, make_certificate_loss
from workbench.families.noise.oracle_check import judge_noise_loss
from workbench.families.noise.pure import bracket_pure_noise, mix_with_point_mass
from workbench.families.noise.repair import repair_line_noise
from workbench.families.noise.request import MIN_DELTA, NoiseRequest
from workbench.families.noise.staircase import make_staircase_on_reals
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.oracles import line_noise
from workbench.pipeline.convex_notion import DEFAULT_TANGENT_SECONDS
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.problem import ZERO_DELTA_NOTE, Problem, Repaired
from workbench.pipeline.routes import Answer, Reason, Route, applies_always, require_one_bound
from workbench.pipeline.solve import ProblemSession, design_problem
from workbench.privacy.audit import Privacy
from workbench.privacy.audit_work import MAX_WORK_UNITS, count_work_units
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise
from workbench.solvers.errors import SolverError
from workbench.solvers.search import Deadline

_RATIO_BITS = 64  # The ratio e^-ε of a staircase is rounded up to this many bits.
_SHORT_RATIO_BITS = 32  # The same for clamped noise, whose loss needs many powers of the ratio.
_MIN_SEARCHED_EPSILON = Fraction(1, 1000)  # A minimised ε is at least this.
_MAX_AUDIT_WORK = 10 * MAX_WORK_UNITS  # Audits with more work (about ten seconds) are refused.
# If the losses become constant within this many noise values (sensitivity included), the program
# at δ = 0 is solved first, and its optimum is a candidate at every δ.
_MAX_PURE_PROGRAM_REACH = 400
# Up to this δ, the search on the reals ends if the optimum at δ = 0 is within the gap.
MAX_TINY_DELTA = Fraction(1, 10**9)
_MAX_BUDGET_GAP = 1e-6  # A minimised ε or δ is optimal if its relative gap is at most this.
_MIN_LOSS_GAP = 1e-8  # A smaller target gap is not demanded of the rounded loss of a design.
_FLOAT_FORMULA_ERROR = 1e-12  # The closed form on the reals is exact up to this relative error.
_MIN_RAW_GAP = 1e-6  # A raw law may be below the bound by this relative gap, or the target gap.


def has_open_gap(design: Design) -> bool:
    """Check whether the gap between loss and lower bound is larger than requested.

    If δ or ε is minimised, the gap is that between its smallest value found and its bound.

    Args:
        design: a design of noise. One without a bound (clamped real noise) has no gap.
    """
    if design.bound is None:
        return False
    if design.request.aim.minimise != "loss":
        return bool(design.objective - design.bound > _MAX_BUDGET_GAP * design.objective)
    gap = max(design.request.target_gap, _MIN_LOSS_GAP)
    return not design.scale.settles(design.objective, design.bound, gap)


class NoiseProblem(Problem):
    """Answer a request for one run.

    Args:
        request: the request for noise on the integers or the reals.

    Attributes:
        deadline: when the search must end.
    """

    SUBJECT: str = "The solver's law"
    routes: Sequence[Route] = (
        Route(
            "staircase",
            applies=lambda problem: problem.why_not_staircase(),
            answer=lambda problem, programs, start: problem.answer_by_staircase(),
        ),
        Route(
            "programs at delta = 0",
            applies=lambda problem: problem.why_not_pure_programs(),
            answer=lambda problem, programs, start: problem.answer_by_programs(
                problem.bracket_at_zero_delta
            ),
        ),
        Route(
            "programs from both sides",
            applies_always,
            answer=lambda problem, programs, start: problem.answer_by_programs(
                problem.bracket_at_positive_delta
            ),
        ),
    )

    request: NoiseRequest

    def __init__(self, request: NoiseRequest) -> None:
        super().__init__(request)
        limit = request.how.options.time_limit
        if limit is None and request.is_on_reals and request.has_several_bounds:
            # Programs of real noise under smooth notions may take hours.
            limit = DEFAULT_TANGENT_SECONDS
        self.deadline = Deadline(limit)
        # Noise that is known to be private: the optimum at δ = 0, or the staircase.
        self._private_noise: LineNoise | None = None

    # Routes.

    def why_not_staircase(self) -> Reason:
        """Return why the staircase is not known to be optimal; None if it is optimal.

        It is optimal at δ = 0 for losses that rise alike on both sides (Geng and Viswanath 2014).
        """
        request = self.request
        reason = require_one_bound(self)
        if reason is not None:
            return reason
        if request.claim.delta:
            return f"delta is {float(request.claim.delta):g}, not 0"
        if request.is_worst_case:
            return "the loss is that of the worst answer"
        for loss in request.line_losses:
            if not loss.is_even or not (loss.power or loss.is_rising):
                return "the loss does not rise alike on both sides"
        return None

    def answer_by_staircase(self) -> Answer:
        """Return the staircase with the smallest expected loss, and a bound for all noise."""
        request = self.request
        question = request.question
        if isinstance(question, RealNoise):
            return self._answer_by_real_staircase(question)
        assert isinstance(question, IntegerNoise)
        sensitivity = question.sensitivity
        epsilon = request.claim.epsilon
        # There are several losses for the worst answer only, and then all are tables.
        first_loss, *_ = request.line_losses
        power = first_loss.power
        is_long = power or question.clamp is None
        ratio = bound_inverse_exponential(epsilon, _RATIO_BITS if is_long else _SHORT_RATIO_BITS)
        # The bound is the optimum for a ratio below e^-ε.
        smaller_ratio, _ = exp_interval(-epsilon, _RATIO_BITS)
        if power:
            name = request.loss_name
            _, inner = line_noise.staircase_integers(ratio, sensitivity, name)
            bound, _ = line_noise.staircase_integers(smaller_ratio, sensitivity, name)
        else:
            losses = self._compute_staircase_losses(question, ratio)
            inner = 1 + losses.index(min(losses))  # The inner widths are 1, 2, ..., D.
            bound = min(self._compute_staircase_losses(question, smaller_ratio))
        noise = AdditiveIntegerNoise(question, build_staircase_law(ratio, sensitivity, inner))
        return Answer(noise, bound, details={"optimum": "staircase", **self._timing_details()})

    def _answer_by_real_staircase(self, question: RealNoise) -> Answer:
        """Return the staircase on the reals, with its closed-form loss as the bound."""
        name = self.request.loss_name
        epsilon = self.request.claim.epsilon
        mechanism = make_staircase_on_reals(question, epsilon, name, self.request.how.steps)
        optimum = line_noise.staircase_reals(float(epsilon), float(question.sensitivity), name)
        details = {
            "optimum": "staircase",
            "bound_words": "the closed form of Geng and Viswanath (2014), in floating point",
            **self._timing_details(),
        }
        bound = Fraction(optimum * (1 - _FLOAT_FORMULA_ERROR))
        return Answer(mechanism, bound, details=details)

    def _compute_staircase_losses(self, question: IntegerNoise, ratio: Fraction) -> list[Fraction]:
        """Compute the exact losses of the staircases with an inner width of 1, 2, ..., D."""
        losses = []
        for inner in range(1, question.sensitivity + 1):
            law = build_staircase_law(ratio, question.sensitivity, inner)
            losses.append(self.compute_loss(AdditiveIntegerNoise(question, law)))
        return losses

    def why_not_pure_programs(self) -> Reason:
        """Return why the programs of pure noise on the integers do not apply; None if they do."""
        request = self.request
        if request.is_on_reals:
            return "the noise is on the reals"
        if request.claim.delta:
            return f"delta is {float(request.claim.delta):g}, not 0"
        return require_one_bound(self)

    def answer_by_programs(self, search: Callable[[NoiseClaimBounds], BracketResult]) -> Answer:
        """Answer by linear programs.

        If they stop early or are too large, fall back on noise that is known to be private.

        Args:
            search: solves the programs for the bounds of the claim (`bracket_at_zero_delta` or
                `bracket_at_positive_delta`).

        Raises:
            NotProven: the time limit was reached before any mechanism was found.
            InvalidRequest: the programs are too large, and no private noise is known.
            SolverError: a solver failed.
        """
        with translate_errors():
            claim_bounds = NoiseClaimBounds(self.claim)
            try:
                result = search(claim_bounds)
            except (SolverError, InvalidRequest) as error:
                is_stopped = isinstance(error, SolverError)
                if is_stopped and not self.deadline.has_passed:
                    raise
                if self._private_noise is not None:
                    details = {"solver": self.request.how.solver}
                    bound = self._compute_coarse_bound()
                    result = BracketResult(self._private_noise, bound, details)
                elif is_stopped:
                    raise NotProven(
                        "The search stopped at its time limit, before it had a mechanism."
                    ) from None
                else:
                    raise
        details = {**result.solver_details, **self._timing_details()}
        bound = max(result.bound, ZERO)
        return Answer(result.mechanism, bound, law=claim_bounds, details=details)

    def bracket_at_zero_delta(self, claim_bounds: NoiseClaimBounds) -> BracketResult:
        """Return the best noise found on the integers at δ = 0, and a bound for all noise.

        Args:
            claim_bounds: the bounds that the claim implies.
        """
        solver = LineProgramSolver(self.request, claim_bounds, self.deadline)
        return bracket_pure_noise(solver, self.compute_loss)

    def bracket_at_positive_delta(self, claim_bounds: NoiseClaimBounds) -> BracketResult:
        """Return the best noise found and a bound for all noise.

        The optimum at δ = 0 is a candidate at every δ, because a tiny δ is below the accuracy of
        a solver. If a small program gives it exactly, it is first mixed with a point mass of weight
        δ at the noise value of least loss, which uses the whole budget.

        Args:
            claim_bounds: the bounds that the claim implies.
        """
        request = self.request
        question = request.question
        has_real_staircase = (
            request.has_several_bounds and request.is_on_reals and not claim_bounds.can_end
        )
        if has_real_staircase and isinstance(question, RealNoise):
            epsilon = Fraction(claim_bounds.reference_epsilon)
            self._private_noise = make_staircase_on_reals(
                question, epsilon, request.loss_name, request.how.steps
            )
        known_noise: LineNoise | None = None
        delta = request.claim.delta
        if not request.has_several_bounds and delta and delta < 1:
            solver = LineProgramSolver(request, claim_bounds, self.deadline)
            if self._has_small_pure_program():
                known_noise = self._mix_pure_noise(solver)
                self._private_noise = known_noise
            else:
                self._private_noise = self._find_pure_noise(solver)
                if request.is_on_reals and delta <= MAX_TINY_DELTA:
                    known_noise = self._private_noise
        return bracket_optimum(request, claim_bounds, self.compute_loss, self.deadline, known_noise)

    def _mix_pure_noise(self, solver: LineProgramSolver) -> AdditiveIntegerNoise:
        """Mix the best noise at δ = 0 with a point mass of δ where the loss is smallest."""
        losses = self.request.line_losses
        first_loss, *_ = losses  # All losses have the same span.
        span = first_loss.span
        pure = bracket_pure_noise(solver, self.compute_loss).mechanism
        best_eta = min(
            range(-span, span + 1),
            key=lambda eta: max(loss.value_at(eta) for loss in losses),
        )
        return mix_with_point_mass(pure, self.request.claim.delta, best_eta)

    def _find_pure_noise(self, solver: LineProgramSolver) -> LineNoise | None:
        """Find the best noise at δ = 0; None if its program is too large or has no answer."""
        try:
            pure_problem = NoiseProblem(self.request.with_values(delta=ZERO))
            if pure_problem.why_not_staircase() is None:
                mechanism: LineNoise = pure_problem.answer_by_staircase().mechanism
                return mechanism
            return bracket_pure_noise(solver, self.compute_loss).mechanism
        except (InvalidRequest, SolverError):
            return None

    def _compute_coarse_bound(self) -> Fraction:
        """Compute a bound for all noise from a small program; 0 if there is none."""
        request = self.request
        has_bound = request.loss_name in line_noise.POWERS and request.clamp is None
        if not has_bound or request.has_several_bounds or self.deadline.has_passed:
            return ZERO
        try:
            return compute_coarse_bound(request, self.deadline)
        except SolverError:
            return ZERO

    def _has_small_pure_program(self) -> bool:
        """Check whether a small program gives the optimum at δ = 0 exactly.

        This is so if the losses are tables that are constant beyond a short span.
        """
        request = self.request
        if request.is_on_reals:
            return False
        span = max(loss.span for loss in request.line_losses)
        for loss in request.line_losses:
            if loss.power or any(loss.slopes):
                return False
        return bool(span + request.question.sensitivity <= _MAX_PURE_PROGRAM_REACH)

    def _timing_details(self) -> Record:
        """Return the runtime as an entry of the details of an answer."""
        return {"seconds": self.deadline.elapsed_seconds}

    # Repair and audit.

    def repair(self, answer: Answer) -> Repaired:
        """Repair the mechanism of an answer and certify it.

        Raises NotCertified if no mixture is private, and InvalidRequest if the audit is too long.
        """
        mechanism = answer.mechanism
        claim = self.claim
        notes: list[str] = []
        if isinstance(answer.law, NoiseClaimBounds):
            mechanism = self._repair_mechanism(mechanism, answer.law)
            is_pure = not self.request.has_several_bounds and not self._has_small_pure_program()
            if mechanism is self._private_noise and is_pure:
                # The claim at δ = 0 is quick to audit and implies the requested one.
                claim = Claim(claim.notion, claim.epsilon, ZERO)
                notes.append(ZERO_DELTA_NOTE)
        assert answer.bound is not None
        record = {"bound": round_down(Fraction(answer.bound)), **answer.details}
        record.pop("seconds")
        self._check_audit_size(mechanism)
        loss = make_certificate_loss(mechanism, self.request)
        return mechanism, Certificate(mechanism, claim, objective=loss, record=record), notes

    def _repair_mechanism(self, mechanism: LineNoise, claim_bounds: NoiseClaimBounds) -> LineNoise:
        """Repair a mechanism, or return the private noise if its loss is smaller.

        Raises NotCertified if the repair fails and no private noise is known.
        """
        private_noise = self._private_noise
        if private_noise is None:
            return repair_line_noise(mechanism, claim_bounds)
        if mechanism is private_noise:
            return private_noise
        try:
            candidate = repair_line_noise(mechanism, claim_bounds)
        except NotCertified:
            return private_noise
        if self.compute_loss(private_noise) < self.compute_loss(candidate):
            return private_noise
        return candidate

    def _check_audit_size(self, mechanism: Any) -> None:
        """Raise InvalidRequest if auditing every clamped answer would take too long."""
        claim = self.claim
        if self.request.clamp is None:
            return

        def compute_audit_work(answer_count: int) -> int:
            """Return the work of auditing the noise on the range 0..answer_count - 1."""
            question = replace(mechanism.question, clamp=(0, answer_count - 1))
            narrower = replace(mechanism, question=question)
            return count_work_units(narrower, claim.notion, claim.values)

        answer_count = self.request.answer_count
        if compute_audit_work(answer_count) <= _MAX_AUDIT_WORK:
            return
        # This is the first number of answers that is too large, so the largest fitting one is
        # smaller by 1. Clamped noise needs more answers than its reach.
        first_large_count = bisect_right(
            range(answer_count),
            _MAX_AUDIT_WORK,
            lo=mechanism.reach + 1,
            key=compute_audit_work,
        )
        max_count = first_large_count - 1
        if max_count <= mechanism.reach:
            max_count = 0  # Not even the smallest clamped noise can be audited.
        raise InvalidRequest(
            f"clamp must leave answers that can be audited one by one. Got {answer_count} answers. "
            f"Clamp to at most {max_count} answers, or leave clamp out: clamping what is published "
            "afterwards does not weaken privacy."
        )

    def compute_loss(self, mechanism: Any) -> Fraction:
        """Compute the exact expected loss.

        Args:
            mechanism: noise for the question of the request.
        """
        return compute_noise_loss(mechanism, self.request)

    @property
    def loss_scale(self) -> LossScale:
        """Return the scale of the losses of noise."""
        return self.request.loss_scale

    def audit(self, mechanism: Any) -> Privacy:
        """Audit a mechanism. Raises InvalidRequest if this would take too long.

        Args:
            mechanism: noise for the question of the request.
        """
        self._check_audit_size(mechanism)
        return super().audit(mechanism)

    # Proof.

    def require_proof(self, design: Design) -> Design:
        """Return the design if its loss is within the requested gap of its bound.

        A design with a larger gap is also returned in two cases: if the number of cells (steps) was
        requested, and, with a note, if the largest program was solved and no gap was requested.

        Args:
            design: the design, repaired and audited.

        Raises:
            NotProven: the search stopped early; with the design, if there is one.
        """
        request = self.request
        loss = design.objective
        bound = design.bound
        verdict = judge_noise_loss(request, self.claim, loss)
        design = replace(design, oracle=verdict, raw=None)
        if bound is not None:
            self._check_loss_above_bound(loss, bound)
        if not has_open_gap(design) or request.how.steps is not None:
            return design
        design = design.mark_stopped()
        if not self.deadline.has_passed and request.how.gap is None:
            reason = "The largest grid was reached"
            if request.has_several_bounds and not request.is_on_reals:
                reason = "The accuracy of the solver was reached"
            note = f"{reason}: the optimum lies between {bound:.9g} and {loss:.9g}."
            return replace(design, words=(*design.words, note))
        limit = "the largest program that it solves"
        if self.deadline.has_passed:
            limit = "its time limit"
        raise NotProven(
            f"The search stopped at {limit}: incumbent {loss:.9g}, bound {design.bound_text}.",
            design=replace(design, details={**design.details, "stopped": True}),
        )

    def _check_loss_above_bound(self, loss: float, bound: float) -> None:
        """Raise NotProven if the loss is below the bound for private noise.

        Only the uncertified law of a stopped search can be so, because it is not yet private.
        """
        gap = max(self.request.target_gap, _MIN_RAW_GAP)
        # With the arguments swapped, this checks that the bound is not far above the loss.
        if not self.loss_scale.proves(bound, loss, gap):
            raise NotProven(
                f"The search stopped before its noise was private. Its loss {loss:.9g} is below "
                f"the bound {bound:.9g} for private noise. Leave out certify=False to make the "
                "noise private.",
                bound=bound,
            )


class NoiseSession(ProblemSession):
    """Answer a request at many points of its hot options.

    Args:
        request: the request for noise.
        problem_class: the class of the problem, for one run or for several.
    """

    def __init__(self, request: NoiseRequest, problem_class: type[NoiseProblem]) -> None:
        super().__init__(request, problem_class, _MIN_SEARCHED_EPSILON)

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Return the design at a point, or the smallest ε or δ there.

        If δ is minimised, δ = 0 is tried first. Only if no pure noise is within max_loss, the
        smallest δ from MIN_DELTA on is searched.

        Args:
            point: values of hot options. Default: those of the request.
            start: "hot" or "cold".
        """
        request = self.request.at_point(point or {})
        assert isinstance(request, NoiseRequest)
        if request.aim.minimise != "delta":
            return super().design(point, start=start)
        values = {"minimise": "loss", "max_loss": None, "delta": ZERO}
        try:
            pure = design_problem(NoiseProblem(request.with_values(**values)))
        except InvalidRequest:
            pure = None  # The programs at δ = 0 are too large.
        if pure is None or pure.details["loss"] > (request.aim.max_loss or 0):
            return self._design_least(request, "delta", MIN_DELTA)
        verdict = OracleVerdict.without_formula("δ = 0 is the least there is.")
        request = request.at_point({"delta": ZERO})
        return replace(pure, request=request, objective=0.0, bound=0.0, oracle=verdict)
