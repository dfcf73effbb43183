"""The best noise on the integers or the reals: solved from both sides, made private exactly, certified.

δ > 0    both programs of `models.integer_noise` or `models.real_noise`; the upper one's law, repaired by a share of
         truncated staircase noise that is private at (ε, δ/2); a curve of several (ε, δ) alike
others   `workbench.families.noise.notion_design`: Rényi DP, zCDP, GDP, curves with a δ of 0
δ = 0    the staircase, which is optimal (Geng and Viswanath 2014); as a ratio a rational a little above e^-ε
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from models.integer_noise import Budget, bracket
from models.oracles import line_noise
from models.oracles.canonical_noise import canonical_loss, discrete_gaussian, rounded_gaussian
from models.real_noise import real_bracket
from workbench.errors import InvalidRequest, NotProven
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import exp_bounds, round_down
from workbench.families.convex_notion import meets
from workbench.families.design import Design, OracleVerdict
from workbench.families.least_epsilon import Tried, least_epsilon
from workbench.families.noise.many_runs import solve_runs
from workbench.families.noise.notion_design import bracket_notion
from workbench.families.noise.repair import repaired_by_staircase
from workbench.families.noise.request import LEAST_DELTA, NoiseRequest
from workbench.families.noise.worst_prior import Response, worst_case
from workbench.families.outcome import translated_errors
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise, RealNoise
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate, ExpectedLoss
from workbench.privacy.certify import rounded_objective
from workbench.privacy.repair import inverse_exponential, staircase

__all__ = ["exact_loss", "is_open", "solve_noise"]

_BITS = 64
_LEAST = Fraction(1, 1000)  # ε that is tried
_STEPS = 64  # of a sensitivity, for pure noise on the reals
LineNoise = AdditiveIntegerNoise | AdditiveRealNoise


@dataclass(frozen=True)
class _Solved:
    """mechanism: not yet repaired; bound: proven; excess: of its hockey sticks over δ, relative; work: in words."""

    mechanism: LineNoise
    bound: Fraction
    excess: float
    work: dict[str, Any]


def solve_noise(request: NoiseRequest) -> Design:
    """The design. Raises InvalidRequest, NotProven, NotCertified."""
    begin = time.perf_counter()
    if request.minimise != "loss":
        return _least_budget(request)
    if request.runs > 1:
        with translated_errors():
            return solve_runs(
                request, lambda noise: exact_loss(noise, request), lambda noise, loss: _stated(noise, request, loss)
            )
    with translated_errors():
        if request.worst:
            solved = _worst_answer(request, begin)
        elif request.convex and not request.points:
            part = bracket_notion(request, lambda noise: exact_loss(noise, request), begin)
            solved = _Solved(part.mechanism, part.bound, 0.0, part.work)
        elif request.points:
            solved = (_integers if isinstance(request.question, IntegerNoise) else _reals)(request, begin)
        else:
            solved = _staircase(request)
    mechanism, words = solved.mechanism, []
    claim, least = request.claim, max(solved.bound, Fraction(0))  # no loss is negative
    if request.certified and request.points:
        mechanism = repaired_by_staircase(mechanism, claim, _budgets(request, Fraction(1, 2)), solved.excess)
    loss = exact_loss(mechanism, request)
    certificate = None
    if request.certified:
        record = {"bound": round_down(least), **solved.work}
        objective = _stated(mechanism, request, loss)
        certificate = Certificate(mechanism, claim, objective=objective, record=record)
        privacy = certificate.privacy
    else:
        privacy = audit(mechanism, claim.values.get("epsilon", 0))
        if not meets(privacy, claim):
            words.append(privacy.words(claim, "The solver's law"))
    bound = round_down(least)
    timing = {"seconds": time.perf_counter() - begin}
    design = Design(
        request,
        mechanism,
        float(loss),
        bound,
        claim,
        _oracle(request, float(loss)),
        words=tuple(words),
        privacy=privacy,
        certificate=certificate,
        details={**solved.work, **timing},
    )
    if is_open(design) and request.steps is None:
        stop = _stop(request, begin)
        late = stop is not None and time.perf_counter() > stop
        if not late and request.gap is None:
            why = "The solver's digits were used up" if request.convex else "The largest grid was reached"
            words = [*words, f"{why}: the optimum lies between {bound:.9g} and {float(loss):.9g}."]
            return replace(design, words=tuple(words))
        reason = "at its time limit" if late else "at the largest program it states"
        raise NotProven(
            f"The search stopped {reason}: incumbent {float(loss):.9g}, bound {bound:.9g}.",
            incumbent=float(loss),
            bound=bound,
            design=replace(design, details={**design.details, "stopped": True}),
        )
    return design


def _least_budget(request: NoiseRequest) -> Design:
    """The least ε, or δ, whose least loss is within max_loss."""
    name, budget = request.minimise, request.max_loss
    assert budget is not None

    def at(value: Fraction) -> Tried:
        least_error = request.at({"minimise": "loss", "max_loss": None, name: value})
        assert isinstance(least_error, NoiseRequest)
        try:
            design = solve_noise(least_error)
        except NotProven as error:
            if error.design is None:
                raise
            design = error.design
        assert design.bound is not None
        return design, exact_loss(design.mechanism, least_error), Fraction(design.bound)

    words = f"{request.loss_name} loss"
    if name == "epsilon":
        optimum = least_epsilon(at, budget, words, request.epsilon, _LEAST)
        return replace(optimum, request=request.at({"epsilon": optimum.claim.epsilon}))
    pure = _pure(at)
    if pure is not None and pure[1] <= budget:
        none = OracleVerdict.none("δ = 0 is the least there is.")
        optimum = replace(pure[0], objective=0.0, bound=0.0, oracle=none)
    else:
        optimum = least_epsilon(at, budget, words, request.delta, LEAST_DELTA, "delta")
    reached = request.at({})
    object.__setattr__(reached, "delta", optimum.claim.delta)  # 0 too
    return replace(optimum, request=reached)


def _pure(at: Callable[[Fraction], Tried]) -> Tried | None:
    """What is best without δ; None where there is no closed form of it."""
    try:
        return at(Fraction(0))
    except InvalidRequest:
        return None


def is_open(design: Design) -> bool:
    """Whether the gap that was asked for is not reached."""
    assert design.bound is not None
    if design.request.minimise != "loss":
        return bool(design.objective - design.bound > 1e-6 * design.objective)
    return bool(design.objective - design.bound > max(design.request.target, 1e-8) * design.objective)


def exact_loss(mechanism: LineNoise, request: NoiseRequest) -> Fraction:
    """The exact mean loss of a mechanism for a request."""
    if isinstance(mechanism, AdditiveRealNoise):
        return mechanism.loss(request.loss_name)
    if request.worst:
        return max(_each_answer(mechanism, request))
    loss, law = request.line_loss, mechanism.noise
    if loss.power:
        return mechanism.loss(request.loss_name)
    m, inside = loss.span, Fraction(0)
    parts = [(law.in_blocks(eta), loss.at(eta)) for eta in range(-m, m + 1)]
    sums = [Fraction(0)] * (1 + max(blocks for (_, blocks), _ in parts))
    for (mass, blocks), each in parts:
        sums[blocks] += mass * each
    for value in reversed(sums):  # Σ_b sums[b] ratio^b, without a power of it for each
        inside = inside * law.ratio + value
    below, above = law.below(-m), law.total - law.below(m + 1)
    return (inside + below * loss.at(-m) + above * loss.at(m)) / law.total


def _stop(request: NoiseRequest, begin: float) -> float | None:
    limit = request.options.time_limit
    return None if limit is None else begin + limit


def _budgets(request: NoiseRequest, share: Fraction = Fraction(1)) -> list[Budget]:
    """The hockey sticks as programs take them, with a share of every δ."""
    return [Budget(float(stick.epsilon), stick.ratio_up(_BITS), stick.delta * share) for stick in request.points]


def _integers(request: NoiseRequest, begin: float) -> _Solved:
    question = request.question
    assert isinstance(question, IntegerNoise)
    result = bracket(
        question.sensitivity,
        _budgets(request),
        request.line_loss,
        gap=request.target / 10,
        stop=_stop(request, begin),
        solver=request.solver,
    )
    upper = result.upper
    law = _trimmed(upper.program.masses(upper.x), -upper.program.reach)
    work = {"solver": request.solver, "version": upper.version, "rounds": upper.rounds + result.lower.rounds}
    return _Solved(AdditiveIntegerNoise(question, law), result.lower.bound, upper.excess, work)


def _worst_answer(request: NoiseRequest, begin: float) -> _Solved:
    """The least loss of the worst answer, from the best noise for several priors."""
    question = request.question
    assert isinstance(question, IntegerNoise)
    assert question.clamp is not None

    def best(prior: tuple[Fraction, ...]) -> Response:
        known = request.at({"prior": prior})
        assert isinstance(known, NoiseRequest)
        least = _integers(known, begin) if known.points else _staircase(known)
        assert isinstance(least.mechanism, AdditiveIntegerNoise)
        return Response(least.mechanism.noise, least.bound, least.excess, least.work)

    answers, loss = question.clamp[1] - question.clamp[0] + 1, request.loss_at
    result = worst_case(answers, lambda r: Fraction(loss(r)), best, gap=request.target / 2, stop=_stop(request, begin))
    return _Solved(AdditiveIntegerNoise(question, result.law), result.bound, result.excess, result.work)


def _each_answer(mechanism: AdditiveIntegerNoise, request: NoiseRequest) -> list[Fraction]:
    """The exact mean loss on every answer of clamped noise."""
    loss = request.loss_at
    return [
        sum((w * Fraction(loss(o - q)) for o, w in enumerate(law.integers)), Fraction(0)) / law.total
        for q, law in enumerate(mechanism.rows)
    ]


def _trimmed(masses: Any, first: int) -> IntegerLaw:
    used = [k for k, mass in enumerate(masses) if mass > 0]
    return IntegerLaw(first + used[0], Distribution.from_floats(masses[used[0] : used[-1] + 1]))


def _reals(request: NoiseRequest, begin: float) -> _Solved:
    question, name = request.question, request.loss_name
    assert isinstance(question, RealNoise)
    result = real_bracket(
        _budgets(request),
        name,
        gap=0.9 * request.target,
        steps=request.steps,
        stop=_stop(request, begin),
        solver=request.solver,
    )
    upper = result.upper
    size, atom = upper.program.reach, max(0.0, float(upper.x[-1]))
    masses = [Fraction(mass) for mass in upper.program.masses(upper.x).tolist()]
    if not any(masses):
        given = f"{float(max(stick.delta for stick in request.points)):.15g}"
        InvalidRequest.must("delta", "less for noise on the reals: here the answer itself may be published", given)
    kept = max(abs(k - size) for k, mass in enumerate(masses) if mass)
    mechanism = AdditiveRealNoise.of(
        question, result.steps, -kept, masses[size - kept : size + kept + 1], Fraction(atom)
    )
    unit = question.sensitivity ** line_noise.POWERS[name]
    work = {
        "solver": request.solver,
        "version": upper.version,
        "rounds": result.rounds,
        "programs": result.programs,
        "bound_steps": result.lower_steps,
    }
    return _Solved(mechanism, result.bound * unit, upper.excess, work)


def _staircase(request: NoiseRequest) -> _Solved:
    """The optimum for δ = 0; its ratio is shorter where a clamped law takes many powers of it."""
    question, epsilon, name = request.question, request.epsilon, request.loss_name
    assert epsilon is not None
    if isinstance(question, IntegerNoise):
        loss, d = request.line_loss, question.sensitivity
        ratio = inverse_exponential(epsilon, _BITS if loss.power else 32)
        less = Fraction(exp_bounds(-epsilon, _BITS)[0], 1 << _BITS)
        if loss.power:
            _, r = line_noise.staircase_integers(ratio, d, name)
            bound = line_noise.staircase_integers(less, d, name)[0]
        else:
            losses = [
                exact_loss(AdditiveIntegerNoise(question, staircase(ratio, d, r)), request) for r in range(1, d + 1)
            ]
            r = 1 + losses.index(min(losses))
            bound = min(
                exact_loss(AdditiveIntegerNoise(question, staircase(less, d, r)), request) for r in range(1, d + 1)
            )
        return _Solved(AdditiveIntegerNoise(question, staircase(ratio, d, r)), bound, 0.0, {"optimum": "staircase"})
    assert isinstance(question, RealNoise)
    share, steps, inner = line_noise.staircase_share(float(epsilon), name), request.steps, 1
    choices = [(k, max(1, min(k, round(share * k + 0.5)))) for k in ([steps] if steps else range(1, _STEPS + 1))]
    steps, inner = min(choices, key=lambda pair: abs((pair[1] - 0.5) / pair[0] - share))
    law = staircase(inverse_exponential(epsilon), steps, inner)
    value = line_noise.staircase_reals(float(epsilon), float(question.sensitivity), name)
    work = {"optimum": "staircase", "bound_words": "the closed form of Geng and Viswanath (2014), in floating point"}
    return _Solved(AdditiveRealNoise(question, steps, law), Fraction(value * (1 - 1e-12)), 0.0, work)


def _stated(mechanism: LineNoise, request: NoiseRequest, loss: Fraction) -> Any:
    """The loss as a certificate states it; None for one's own losses of clamped answers."""
    question, name = request.question, request.loss_name
    if isinstance(mechanism, AdditiveIntegerNoise) and isinstance(question, IntegerNoise):
        if question.clamp is not None:
            if not isinstance(request.loss, str):
                return None  # certificates name the loss of what is published
            low, high = question.clamp
            answers = tuple(map(Fraction, range(low, high + 1)))
            prior = request.prior or (Fraction(1),) * len(answers)
            if isinstance(prior, str):  # the prior of the worst answer, on which the loss is `loss`
                each = _each_answer(mechanism, request)
                prior = tuple(Fraction(int(k == each.index(loss))) for k in range(len(each)))
            stated = ExpectedLoss(name, Fraction(0), answers, prior, answers, tuple(range(len(answers))))
            return replace(stated, value=rounded_objective("loss", loss, None).value)
        if not request.line_loss.power:
            noise = mechanism.noise
            return rounded_objective(name, loss, tuple(map(request.line_loss.at, range(noise.first, noise.last + 1))))
    return rounded_objective(name, loss, None)


def _oracle(request: NoiseRequest, objective: float) -> OracleVerdict:
    question, name = request.question, request.loss_name
    if request.worst:
        return OracleVerdict.none("no closed form is known for the worst answer.")
    canonical = _canonical(request, objective)
    if canonical is not None:
        return canonical
    if name not in line_noise.POWERS or getattr(question, "clamp", None) is not None:
        return OracleVerdict.none("no closed form is known for this loss.")
    if request.convex:
        return OracleVerdict.none("no closed form is known for this notion.")
    epsilon, delta = float(request.epsilon or 0), float(request.delta)
    pure = "Pure noise is (epsilon, delta)-private for every delta." if delta else "Geng and Viswanath (2014)."
    kind = "upper bound" if delta else "optimum"
    if isinstance(question, IntegerNoise):
        ratio = inverse_exponential(request.epsilon or Fraction(0))
        value = float(line_noise.staircase_integers(ratio, question.sensitivity, name)[0])
        return OracleVerdict.judge(objective, "staircase on the integers", value, kind, pure)
    spread = float(question.sensitivity)
    if not delta:
        value = line_noise.staircase_reals(epsilon, spread, name)
        bound = None if request.steps is None else -math.inf  # the optimum is over all cells
        slack = max(2e-4, request.target)
        return OracleVerdict.judge(objective, "staircase", value, kind, pure, slack, incumbent_bound=bound)
    value = line_noise.truncated_laplace(epsilon, delta, spread, name)
    return OracleVerdict.judge(
        objective, "truncated Laplace", value, kind, "It is private (Geng et al. 2020).", max(2e-4, request.target)
    )


def _canonical(request: NoiseRequest, objective: float) -> OracleVerdict | None:
    """Of noise on the integers under a trade-off function with D = 1, or Rényi DP and zCDP; None where none applies."""
    question, values = request.question, request.claim.values
    if not isinstance(question, IntegerNoise) or not request.line_loss.even:
        return None

    def loss(eta: int) -> float:
        return float(request.line_loss.at(eta))

    d, slack = question.sensitivity, max(1e-6, request.target)
    proof = "It is stochastically smallest for a trade-off function (Awan and Ramasethu, arXiv 2308.08343)."
    sticks = request.claim.requirements(()) if request.convex else request.points
    if sticks and d == 1 and min(stick.delta for stick in sticks) < 1:
        value = canonical_loss([(float(stick.epsilon), float(stick.delta)) for stick in sticks], loss)
        return OracleVerdict.judge(objective, "canonical discrete noise", value, "optimum", proof, slack)
    if request.notion == "gdp":
        value = rounded_gaussian(float(values["mu"]) / d, loss)
        kind = "optimum" if d == 1 else "upper bound"
        proof = proof if d == 1 else "Rounding a Gaussian is post-processing."
        return OracleVerdict.judge(objective, "rounded Gaussian", value, kind, proof, slack)
    variance = request.claim.notion.gaussian_variance(values)
    if variance is None:
        return None
    value = discrete_gaussian(d * d * float(variance), loss)
    return OracleVerdict.judge(
        objective,
        "discrete Gaussian",
        value,
        "upper bound",
        "It is within the budget (Canonne, Kamath and Steinke 2020).",
        slack,
    )
