"""The best noise on the integers or the reals as a problem: its programs, its repair, its exact loss, its oracles.

δ = 0    the staircase, which is optimal (Geng and Viswanath 2014); as a ratio a rational a little above e^-ε
else     the bracket of `workbench.families.noise.bracket`, its law repaired by a share of private noise
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.exact.numbers import ONE, ZERO, exp_interval, round_down
from workbench.exact.objects import Record, Values
from workbench.families.noise.bracket import (
    BracketResult,
    LineNoise,
    LineProgramSolver,
    NoiseClaimBounds,
    bracket_optimum,
    compute_coarse_bound,
)
from workbench.families.noise.pure import bracket_pure_noise, mix_with_point_mass
from workbench.families.noise.repair import repair_line_noise
from workbench.families.noise.request import MIN_DELTA, NoiseRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import MAX_STEPS, AdditiveRealNoise, best_gamma
from workbench.models.oracles import line_noise
from workbench.models.oracles.canonical_noise import (
    canonical_loss,
    discrete_gaussian_loss,
    rounded_gaussian_loss,
)
from workbench.pipeline.convex_notion import DEFAULT_TANGENT_SECONDS
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Session
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.problem import ZERO_DELTA_NOTE, Problem, Repaired
from workbench.pipeline.routes import Answer, Reason, Route, applies_always, require_one_bound
from workbench.pipeline.solve import ProblemSession, design_problem
from workbench.privacy.audit import Privacy
from workbench.privacy.audit_work import MAX_WORK_UNITS, count_work_units
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.objective import ExpectedLoss, Objective, round_loss_up
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise
from workbench.solvers.errors import SolverError
from workbench.solvers.search import Deadline

_BITS = 64
_LEAST = Fraction(1, 1000)  # ε that is tried
_AUDITED = 10 * MAX_WORK_UNITS  # units of an audit of clamped noise, some ten seconds
_TINY_DELTA = Fraction(
    1, 10**9
)  # Up to this δ the optimum at δ = 0 may end the search on the reals.
_LISTED = 400  # steps and sensitivity up to which pure noise is solved first
_STEPS, _FINE, _NARROW = (
    64,
    512,
    0.125,
)  # of a sensitivity, for pure noise on the reals; for a γ below


def has_open_gap(design: Design) -> bool:
    """Whether the gap that was asked for is not reached."""
    if design.bound is None:  # of clamped real noise
        return False
    if design.request.aim.minimise != "loss":
        return bool(design.objective - design.bound > 1e-6 * design.objective)
    return not design.scale.settles(
        design.objective, design.bound, max(design.request.target, 1e-8)
    )


def make_staircase_on_reals(
    question: RealNoise, epsilon: Fraction, loss_name: str, cell_count: int | None = None
) -> AdditiveRealNoise:
    """The staircase on the reals whose γ, half a cell less than whole ones, is nearest to the best. given: cells of a
    sensitivity."""
    share = best_gamma(float(epsilon), loss_name)
    most = _FINE if share < _NARROW else _STEPS
    most = min(max(most, math.ceil(0.5 / share)), MAX_STEPS)  # half a cell is the least inner step
    choices = [
        (k, max(1, min(k, round(share * k + 0.5))))
        for k in ([cell_count] if cell_count else range(1, most + 1))
    ]
    steps, inner = min(choices, key=lambda pair: abs((pair[1] - 0.5) / pair[0] - share))
    return AdditiveRealNoise(
        question, steps, build_staircase_law(bound_inverse_exponential(epsilon), steps, inner)
    )


def clamp_design(design: Design, request: NoiseRequest) -> Design:
    """Noise on the reals, the best before it is clamped, clamped as a request says."""
    mechanism = replace(design.mechanism, question=request.question)
    loss, certificate = compute_noise_loss(mechanism, request), design.certificate
    if certificate is not None:
        certificate = Certificate(
            mechanism, certificate.claim, record={**certificate.record, "bound": None}
        )
    answers = "of the worst answer" if request.is_worst_case else "answers uniform on the range"
    if not request.is_worst_case and request.aim.prior is not None:
        answers = f"answers uniform on each of {len(request.aim.prior)} equal parts of the range"
    best = "the best found" if design.details.get("stopped") else "the best"
    words = (
        f"The noise is {best} before it is clamped ({design.objective:.9g}); the loss is that of what is published, "
        f"{answers}. Of other clamped mechanisms nothing is claimed."
    )
    none = OracleVerdict.without_formula("no closed form is known for clamped noise.")
    return replace(design, request=request, mechanism=mechanism, bound=None, objective=float(loss),
                   certificate=certificate, oracle=none, words=(*design.words, words),
                   details={**design.details, "loss": loss, "bound": None},
                   route=f"{design.route}, then clamped")  # fmt: skip


def compute_noise_loss(mechanism: LineNoise, request: NoiseRequest) -> Fraction:
    """The exact mean loss of a mechanism for a request."""
    if isinstance(mechanism, AdditiveRealNoise):
        if mechanism.question.clamp is None:
            return mechanism.loss(request.loss_name)
        weights = request.aim.prior or (ONE,)
        return mechanism.clamped_loss(
            request.loss_name, None if isinstance(weights, str) else weights
        )
    if request.is_worst_case:
        return max(_each_answer(mechanism, request))
    (loss,), law = request.line_losses, mechanism.noise
    if loss.power:
        return mechanism.loss(request.loss_name)
    # beyond its table the loss is a line on each side: with these as they are, and what the table differs from them by
    m = loss.span
    lines = [
        (loss.value_at(side * m) - m * slope, slope)
        for side, slope in zip((1, -1), loss.slopes, strict=True)
    ]
    law = law.cover(-m, m)
    return law.mean(loss.values_between(law.first, law.last).__getitem__, *lines)


def _each_answer(mechanism: AdditiveIntegerNoise, request: NoiseRequest) -> list[Fraction]:
    """The exact mean loss on every answer of clamped noise."""
    loss = request.loss_function
    return [
        sum((w * loss(q, o) for o, w in enumerate(mechanism.rows[q].integers)), ZERO)
        / mechanism.rows[q].total
        for q in request.counted_positions
    ]


def make_certificate_loss(mechanism: LineNoise, request: NoiseRequest) -> ExpectedLoss | Any:
    """The loss as a certificate states it; None for one's own losses of clamped answers."""
    loss, name, clamp = compute_noise_loss(mechanism, request), request.loss_name, request.clamp
    if clamp is not None and isinstance(mechanism, AdditiveIntegerNoise):
        if not isinstance(request.aim.loss, str):
            return None  # certificates name the loss of what is published
        answers = tuple(request.aim.unit * answer for answer in range(clamp[0], clamp[1] + 1))
        prior = request.aim.prior or (ONE,) * len(answers)
        if isinstance(prior, str):  # the prior of the worst answer, on which the loss is `loss`
            each = _each_answer(mechanism, request)
            prior = tuple(Fraction(int(k == each.index(loss))) for k in range(len(each)))
        stated = ExpectedLoss(name, ZERO, answers, prior, answers, tuple(range(len(answers))))
        return replace(stated, value=round_loss_up(loss))
    own = None
    if isinstance(mechanism, AdditiveIntegerNoise) and not request.line_losses[0].power:
        name = "own"
        if mechanism.noise.ratio:
            return None  # a file lists losses of weights alone
        own = tuple(
            map(
                request.line_losses[0].value_at,
                range(mechanism.noise.first, mechanism.noise.last + 1),
            )
        )
    return Objective(name, round_loss_up(loss), own)


class NoiseProblem(Problem):
    """The problem of a request for one run."""

    SUBJECT: str = "The solver's law"
    routes: Sequence[Route] = (
        Route(
            "staircase",
            lambda problem: problem.why_no_staircase(),
            lambda problem, programs, start: problem.staircase(),
        ),
        Route(
            "programs at delta = 0",
            lambda problem: problem.why_no_pure_programs(),
            lambda problem, programs, start: problem.answer_by_programs(problem.bracket_at_zero_delta),
        ),
        Route(
            "programs from both sides",
            applies_always,
            lambda problem, programs, start: problem.answer_by_programs(problem.bracket_at_positive_delta),
        ),
    )

    request: NoiseRequest

    def __init__(self, request: NoiseRequest) -> None:
        super().__init__(request)
        limit = request.how.options.time_limit
        if (
            limit is None and request.is_on_reals and request.has_several_bounds
        ):  # whose programs may take hours
            limit = DEFAULT_TANGENT_SECONDS
        self.deadline = Deadline(limit)
        self._private: LineNoise | None = (
            None  # known to be private: the optimum at delta = 0, or pure noise
        )

    def why_no_staircase(self) -> Reason:
        """Return why the staircase is not known to be optimal (Geng and Viswanath 2014)."""
        request = self.request
        if (reason := require_one_bound(self)) is not None:
            return reason
        if request.claim.delta:
            return f"delta is {float(request.claim.delta):g}, not 0"
        if request.is_worst_case:
            return "the loss is that of the worst answer"
        if not all(each.is_even and (each.power or each.is_rising) for each in request.line_losses):
            return "the loss does not rise alike on both sides"
        return None

    def answer_by_staircase(self) -> Answer:
        """Return the staircase; its ratio is shorter where a clamped law takes many powers of it."""
        request, name = self.request, self.request.loss_name
        question, epsilon = request.question, request.claim.epsilon
        if isinstance(question, RealNoise):
            mechanism = make_staircase_on_reals(question, epsilon, name, request.how.steps)
            value = line_noise.staircase_reals(float(epsilon), float(question.sensitivity), name)
            words = "the closed form of Geng and Viswanath (2014), in floating point"
            details = {"optimum": "staircase", "bound_words": words, **self._timing_details()}
            return Answer(mechanism, Fraction(value * (1 - 1e-12)), details=details)
        assert isinstance(question, IntegerNoise)
        d, power = question.sensitivity, request.line_losses[0].power
        ratio = bound_inverse_exponential(epsilon, _BITS if power or question.clamp is None else 32)
        less = exp_interval(-epsilon, _BITS)[0]
        if power:
            _, r = line_noise.staircase_integers(ratio, d, name)
            bound = line_noise.staircase_integers(less, d, name)[0]
        else:
            steps = range(1, d + 1)
            losses, below = (
                [
                    self.compute_loss(AdditiveIntegerNoise(question, build_staircase_law(b, d, r)))
                    for r in steps
                ]
                for b in (ratio, less)
            )
            r, bound = 1 + losses.index(min(losses)), min(below)
        noise = AdditiveIntegerNoise(question, build_staircase_law(ratio, d, r))
        return Answer(noise, bound, details={"optimum": "staircase", **self._timing_details()})

    def why_no_pure_programs(self) -> Reason:
        """Return why the programs of pure noise on the integers do not apply."""
        request = self.request
        if request.is_on_reals:
            return "the noise is on the reals"
        if request.claim.delta:
            return f"delta is {float(request.claim.delta):g}, not 0"
        return require_one_bound(self)

    def answer_by_programs(self, find: Callable[[NoiseClaimBounds], BracketResult]) -> Answer:
        """Answer by linear programs; by private noise that is known, where they stop early or are too large."""
        with translate_errors():
            within = NoiseClaimBounds(self.claim)
            try:
                best = find(within)
            except (SolverError, InvalidRequest) as error:
                stopped = isinstance(error, SolverError)
                if stopped and not self.deadline.has_passed:
                    raise
                if self._private is not None:
                    best = BracketResult(
                        self._private, self._coarse_bound(), {"solver": self.request.how.solver}
                    )
                elif stopped:
                    words = "The search stopped at its time limit, before it had a mechanism."
                    raise NotProven(words) from None
                else:
                    raise
        details = {**best.solver_details, **self._timing_details()}
        return Answer(best.mechanism, max(best.bound, ZERO), law=within, details=details)

    def bracket_at_zero_delta(self, within: NoiseClaimBounds) -> BracketResult:
        """Return the best noise on the integers at δ = 0, and a bound on all noise."""
        return bracket_pure_noise(
            LineProgramSolver(self.request, within, self.deadline), self.compute_loss
        )

    def bracket_at_positive_delta(self, within: NoiseClaimBounds) -> BracketResult:
        """Return the best noise found and a bound on all noise, from both sides.

        The optimum at δ = 0 is a candidate at every δ: a tiny δ leaves a solver no digits. Where a small program of it
        is exact it is mixed with a point mass.
        """
        request = self.request
        programs = LineProgramSolver(request, within, self.deadline)
        if (
            request.has_several_bounds
            and request.is_on_reals
            and not within.can_end
            and isinstance(request.question, RealNoise)
        ):
            self._private = make_staircase_on_reals(
                request.question,
                Fraction(within.reference_epsilon),
                request.loss_name,
                request.how.steps,
            )
        if request.has_several_bounds or not request.claim.delta or request.claim.delta >= 1:
            return bracket_optimum(request, within, self.compute_loss, self.deadline)
        if not self._programmed():
            self._private = pure = self._without_delta(programs)
            can_end = request.is_on_reals and request.claim.delta <= _TINY_DELTA
            known = pure if can_end else None
            return bracket_optimum(request, within, self.compute_loss, self.deadline, known)
        loss = request.line_losses
        pure = bracket_pure_noise(programs, self.compute_loss).mechanism
        least = min(
            range(-loss[0].span, loss[0].span + 1),
            key=lambda eta: max(each.value_at(eta) for each in loss),
        )
        self._private = known = mix_with_point_mass(pure, request.claim.delta, least)
        return bracket_optimum(request, within, self.compute_loss, self.deadline, known)

    def _without_delta(self, programs: LineProgramSolver) -> LineNoise | None:
        """The best noise at δ = 0; None where its own program is too large or has no answer."""
        try:
            at_zero = NoiseProblem(self.request.with_values(delta=ZERO))
            if at_zero.why_no_staircase() is None:
                pure: LineNoise = at_zero.answer_by_staircase().mechanism
            else:
                pure = bracket_pure_noise(programs, self.compute_loss).mechanism
        except (InvalidRequest, SolverError):
            return None
        return pure

    def _coarse_bound(self) -> Fraction:
        """A bound on all noise from a small program, where that of the request is too large; 0 where none is known."""
        name = self.request.loss_name
        known = (
            name in line_noise.POWERS
            and self.request.clamp is None
            and not self.request.has_several_bounds
        )
        if not known or self.deadline.has_passed:
            return ZERO
        try:
            return compute_coarse_bound(self.request, self.deadline)
        except SolverError:
            return ZERO

    def _programmed(self) -> bool:
        """Whether the losses end somewhere, so that a small program of pure noise is exact."""
        if self.request.is_on_reals:
            return False
        span = max(each.span for each in self.request.line_losses)
        listed = not any(each.power or any(each.slopes) for each in self.request.line_losses)
        return listed and span + self.request.question.sensitivity <= _LISTED

    def _timing_details(self) -> Record:
        return {"seconds": self.deadline.elapsed_seconds}

    def repair(self, answer: Answer) -> Repaired:
        """The law that the exact audit accepts, its bound and its loss in the certificate."""
        mechanism, claim = answer.mechanism, self.claim
        words: list[str] = []
        if isinstance(answer.law, NoiseClaimBounds):
            mechanism = self._repaired(mechanism, answer.law)
            if (
                mechanism is self._private
                and not self.request.has_several_bounds
                and not self._programmed()
            ):
                claim = Claim(
                    claim.notion, claim.epsilon, ZERO
                )  # quick to audit, and it implies the other
                words.append(ZERO_DELTA_NOTE)
        assert answer.bound is not None
        record = {"bound": round_down(Fraction(answer.bound)), **answer.details}
        record.pop("seconds")
        self._check_size(mechanism)
        stated = make_certificate_loss(mechanism, self.request)
        return mechanism, Certificate(mechanism, claim, objective=stated, record=record), words

    def _repaired(self, mechanism: LineNoise, within: NoiseClaimBounds) -> LineNoise:
        """What the exact audit accepts, or the noise known to be private where that costs less. Raises
        NotCertified."""
        known = self._private
        if known is None:
            return repair_line_noise(mechanism, within)
        if mechanism is known:
            return known
        try:
            candidate = repair_line_noise(mechanism, within)
        except NotCertified:
            return known
        return known if self.compute_loss(known) < self.compute_loss(candidate) else candidate

    def _check_size(self, mechanism: Any) -> None:
        """Raise InvalidRequest where an audit of so many clamped answers would outlast every time limit."""
        clamp, claim = self.request.clamp, self.claim
        if clamp is None:
            return

        def units(answers: int) -> int:
            narrower = replace(
                mechanism, question=replace(mechanism.question, clamp=(0, answers - 1))
            )
            return count_work_units(narrower, claim.notion, claim.values)

        answers = clamp[1] - clamp[0] + 1
        if units(answers) > _AUDITED:
            most = bisect_right(range(answers), _AUDITED, lo=mechanism.reach + 1, key=units) - 1
            most *= most > mechanism.reach  # else none would
            raise InvalidRequest(
                f"clamp must leave answers that can be audited one by one. Got {answers}; {most} would fit, or noise "
                "that is not clamped: clamping what it publishes costs no privacy."
            )

    def compute_loss(self, mechanism: Any) -> Fraction:
        """Exact."""
        return compute_noise_loss(mechanism, self.request)

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses of noise."""
        return self.request.scale

    def audit(self, mechanism: Any) -> Privacy:
        """That of clamped noise where it ends."""
        self._check_size(mechanism)
        return super().audit(mechanism)

    def require_proof(self, design: Design) -> Design:
        """The design, within the gap that was asked for, or where nothing larger is stated. Raises NotProven."""
        request, loss, bound = self.request, design.objective, design.bound
        design = replace(design, oracle=self.judge_by_closed_forms(loss), raw=None)
        if bound is not None and not self.loss_scale.proves(
            bound, loss, max(request.target_gap, 1e-6)
        ):  # a raw answer, stopped
            raise NotProven(
                f"The search stopped before its noise was private: it costs {loss:.9g}, less than any that is, "
                f"{bound:.9g}. Without certify=False it is made private first.",
                bound=bound,
            )
        if not has_open_gap(design) or request.how.steps is not None:
            return design
        design = design.mark_stopped()
        if not self.deadline.has_passed and request.how.gap is None:
            why = (
                "The solver's digits were used up"
                if request.has_several_bounds
                else "The largest grid was reached"
            )
            words = f"{why}: the optimum lies between {bound:.9g} and {loss:.9g}."
            return replace(design, words=(*design.words, words))
        reason = (
            "at its time limit" if self.deadline.has_passed else "at the largest program it states"
        )
        raise NotProven(
            f"The search stopped {reason}: incumbent {loss:.9g}, bound {design.bound_text}.",
            design=replace(design, details={**design.details, "stopped": True}),
        )

    def judge_by_closed_forms(self, objective: float) -> OracleVerdict:
        """What closed forms say of a loss."""
        judge = partial(OracleVerdict.judge, scale=self.loss_scale)
        request, question, name = self.request, self.request.question, self.request.loss_name
        if request.is_worst_case:
            return OracleVerdict.without_formula("no closed form is known for the worst answer.")
        canonical = self._canonical(objective)
        if canonical is not None:
            return canonical
        if name not in line_noise.POWERS or request.clamp is not None:
            return OracleVerdict.without_formula("no closed form is known for this loss.")
        if request.has_several_bounds:
            return OracleVerdict.without_formula("no closed form is known for this notion.")
        epsilon, delta = float(request.claim.epsilon), float(request.claim.delta)
        pure = (
            "Pure noise is (epsilon, delta)-private for every delta."
            if delta
            else "Geng and Viswanath (2014)."
        )
        kind = "upper bound" if delta else "optimum"
        spread, slack = float(question.sensitivity), max(2e-4, request.target_gap)
        if not request.is_on_reals:
            ratio = bound_inverse_exponential(request.claim.epsilon)
            value = float(line_noise.staircase_integers(ratio, question.sensitivity, name)[0])
            return judge(objective, "staircase on the integers", value, kind, pure)
        if not delta:
            value = line_noise.staircase_reals(epsilon, spread, name)
            kind = (
                kind if request.how.steps is None else "lower bound"
            )  # the optimum is over all cells
            return judge(objective, "staircase", value, kind, pure, slack)
        value = line_noise.truncated_laplace(epsilon, delta, spread, name)
        words = "It is private (Geng et al. 2020)."
        return judge(objective, "truncated Laplace", value, kind, words, slack)

    def _canonical(self, objective: float) -> OracleVerdict | None:
        """Of noise on the integers under a trade-off function with D = 1, or Rényi DP and zCDP; None where none
        applies."""
        request, values = self.request, self.claim.values
        judge = partial(OracleVerdict.judge, scale=self.loss_scale)
        if request.is_on_reals or not request.line_losses[0].is_even:
            return None

        def loss(eta: int) -> float:
            return float(request.line_losses[0].value_at(eta))

        d, slack = request.question.sensitivity, max(1e-6, request.target_gap)
        proof = "It is stochastically smallest for a trade-off function (Awan and Ramasethu, arXiv 2308.08343)."
        sticks = (
            ()
            if request.has_infinite_support and not request.has_several_bounds
            else self.claim.list_ratio_bounds(())
        )
        if sticks and d == 1 and min(stick.delta for stick in sticks) < 1:
            value = canonical_loss(
                [(float(stick.epsilon), float(stick.delta)) for stick in sticks], loss
            )
            return judge(objective, "canonical discrete noise", value, "optimum", proof, slack)
        if (mu := self.claim.notion.gaussian_mu(values)) is not None:
            value = rounded_gaussian_loss(float(mu) / d, loss)
            kind = "optimum" if d == 1 else "upper bound"
            proof = proof if d == 1 else "Rounding a Gaussian is post-processing."
            return judge(objective, "rounded Gaussian", value, kind, proof, slack)
        variance = self.claim.notion.gaussian_variance(values)
        if variance is None:
            return None
        value, proof = (
            discrete_gaussian_loss(d * d * float(variance), loss),
            "Canonne, Kamath and Steinke 2020",
        )
        proof = f"It is within the budget ({proof})."
        return judge(objective, "discrete Gaussian", value, "upper bound", proof, slack)


class NoiseSession(ProblemSession):
    """The session of a family's requests. problem: that of their runs."""

    def __init__(self, request: NoiseRequest, problem_class: type[NoiseProblem]) -> None:
        super().__init__(request, problem_class, _LEAST)

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The design at a point, or the least ε or δ there."""
        request = self.request.at_point(point or {})
        assert isinstance(request, NoiseRequest)
        if request.aim.minimise != "delta":
            return super().design(point, start=start)
        try:
            pure = design_problem(
                NoiseProblem(request.with_values(minimise="loss", max_loss=None, delta=ZERO))
            )
        except InvalidRequest:  # there is no closed form without δ
            pure = None
        if pure is None or pure.details["loss"] > (request.aim.max_loss or 0):
            return self._design_least(request, "delta", MIN_DELTA)
        none = OracleVerdict.without_formula("δ = 0 is the least there is.")
        return replace(
            pure, request=request.at_point({"delta": ZERO}), objective=0.0, bound=0.0, oracle=none
        )


class ClampedSession(Session):
    """The session of noise on the reals that is designed before it is clamped."""

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        plain = request.with_values(question=replace(request.question, clamp=None), prior=None)
        self._plain = NoiseSession(plain, NoiseProblem)

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The best noise at a point, clamped."""
        request: Any = self.request.at_point(point or {})
        try:
            reached = clamp_design(self._plain.design(point, start=start), request)
            if request.has_several_bounds or not ZERO < request.claim.delta <= _TINY_DELTA:
                return reached
            pure = clamp_design(
                self._plain.design({**(point or {}), "delta": ZERO}, start=start), request
            )
            return min(reached, pure, key=lambda design: design.objective)
        except NotProven as error:
            if error.design is None:
                raise
            clamped = clamp_design(error.design, request)
            words = f"{error} Clamped, it costs {clamped.objective:.9g}."
            raise NotProven(words, design=clamped, interrupted=error.interrupted) from None

    def close(self) -> None:
        """Give the solvers' resources back."""
        self._plain.close()
