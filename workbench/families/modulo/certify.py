"""From a solver's noise to a certified one: its pattern re-solved exactly, repaired, judged by the exact audit.

With the pattern V_μ = {η : f(η) > e^ε f(η+μ)} of the solver's answer held fixed, every model of `models.modulo` is a
linear program (`workbench.families.modulo.exact_program`), which is solved to 230 bits (`solvers.rational_refinement`).

Candidates, best first: the exact optimum of that program, the solver's own floats, the closed form's PMF. What the
audit refuses is repaired (`workbench.privacy.repair`); the cheapest of what it accepts is returned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from models.oracles import ClosedForm
from solvers.backend import Options
from solvers.solution import Solution
from workbench import __version__
from workbench.errors import NotCertified
from workbench.exact.numbers import round_down, round_up
from workbench.families.design import Design
from workbench.families.modulo.exact_program import CELLS, extra_constraints, rows_of, solve_exactly
from workbench.families.modulo.request import ModuloRequest
from workbench.families.outcome import translated_errors
from workbench.families.requirements import MASS_ABOVE_RATIO
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import Privacy, audit
from workbench.privacy.certificate import Certificate, Objective
from workbench.privacy.certify import rounded_objective
from workbench.privacy.notions import delta_notion, notion
from workbench.privacy.repair import Pattern, exact_loss, pattern_of, repair_noise

__all__ = ["Certified", "certified_design", "certify_noise", "exacting", "record_of", "stated_loss"]

_CLOSE = Fraction(1, 10**12)  # how far above the solver's claim the closed form is asked as well


@dataclass(frozen=True)
class Certified:
    """A mechanism whose audit meets the request.

    route: where its masses come from; objective: its exact loss (or its exact δ when that is minimised, rounded up);
    optimum: a proven lower bound on what any mechanism with the same violations can reach, None where none was proven;
    delta: what is certified (the request's, or the least one reached); privacy: its audit; residual: by how much it
    misses the request's extra linear constraints or its max_loss, exact; None where those constraints are not linear
    in f alone.
    """

    mechanism: AdditiveNoise
    privacy: Privacy
    route: str
    objective: Fraction
    delta: Fraction
    optimum: Fraction | None = None
    residual: Fraction | None = Fraction(0)


def certify_noise(
    request: ModuloRequest,
    solution: Solution,
    closed_form: Callable[[], ClosedForm | None] | None = None,
    stop: float = math.inf,
) -> Certified:
    """The best certified mechanism for a request near a solver's answer.

    closed_form: gives the least error rate known and its PMF (N,), or None; asked only where the pattern fails or does
    not reach what the solver claims.
    stop: `time.perf_counter()` from which on nothing is solved exactly, and what the repair makes of floats has to do.

    Raises:
        NotCertified: no candidate meets the request in exact arithmetic.
    """
    candidates: list[Certified] = []
    reasons: list[str] = []

    def attempt(make: Callable[[], Certified]) -> None:
        try:
            candidates.append(make())
        except NotCertified as error:
            reasons.append(str(error))

    raw = AdditiveNoise.from_pmf(request.question, np.maximum(solution["f"], 0.0))
    affordable = request.question.order * len(request.budgets) <= CELLS
    for route, pattern in _patterns(request, solution, raw) if affordable else []:
        attempt(partial(_exactly, request, pattern, route, stop))
    if not candidates:
        attempt(lambda: _judged(request, raw.exact_pmf, None, "solver's floats"))
    claimed = solution.objective
    short = not candidates or (claimed is not None and _best(candidates).objective > Fraction(claimed) * (1 + _CLOSE))
    if (
        short and affordable and request.bounds.kind == MASS_ABOVE_RATIO
    ):  # without violations there is always a mechanism
        attempt(lambda: _exactly(request, _no_violations(request), "exact optimum without violations", stop))
    law = closed_form() if short and closed_form is not None and request.constraints is None else None
    if law is not None and law.pmf is not None and (not candidates or law.value < _best(candidates).objective):
        noise = AdditiveNoise.from_pmf(request.question, law.pmf)
        attempt(lambda: _judged(request, noise.exact_pmf, None, "closed form"))
        if affordable:
            route = "exact optimum of the closed form's pattern"
            attempt(lambda: _exactly(request, _pattern_of(request, noise), route, stop))
    if not candidates:
        raise NotCertified(f"No repaired mechanism meets the request exactly: {' '.join(dict.fromkeys(reasons))}")
    best = _best(candidates)
    if request.bounds.mass:
        return best
    bounds = [each.optimum for each in candidates if each.optimum is not None]  # one program, so all hold for all
    return replace(best, optimum=max(bounds, default=None))


def _no_violations(request: ModuloRequest) -> Pattern:
    return {shift: np.zeros(request.question.order, dtype=bool) for shift in request.budgets}


def _best(candidates: Sequence[Certified]) -> Certified:
    """Constraints first, then loss."""
    return min(candidates, key=lambda candidate: (bool(candidate.residual), candidate.objective))


def exacting(options: Options, supported: frozenset[str]) -> Options:
    """Options whose MILP answers are worth certifying: at the usual 1e-5 a binary of 4e-6 stands for 4e-6 of
    probability that breaks the budget unseen, and whole patterns for a δ of 1e-8 are fiction."""
    return replace(options, integrality_tolerance=1e-9) if "integrality_tolerance" in supported else options


def certified_design(raw: Design, closed_form: Callable[[], ClosedForm | None], stop: float = math.inf) -> Design:
    """A design with a certified mechanism in place of the solver's, and words for what a reader must know.

    closed_form, stop: as `certify_noise`. Raises NotCertified.
    """
    request: ModuloRequest = raw.request
    solution, limit = raw.solution, request.delta
    assert solution is not None
    least_delta = request.minimise == "delta"
    proof = certify_noise(request, solution, None if least_delta else closed_form, stop)
    if least_delta and limit is not None and proof.delta > limit:
        excess = float(proof.delta - limit)
        raise NotCertified(
            f"The least delta that could be certified exceeds the limit {float(limit):g} by {excess:.3g}."
        )
    bound = raw.bound
    if proof.optimum is not None and not request.bounds.mass:
        bound = max(round_down(proof.optimum), -math.inf if bound is None else bound)
    delta = _decimal_up(proof.delta) if least_delta else proof.delta
    claim, different = request.claim(delta), {*request.budgets.values()}
    epsilon = claim.epsilon if len(different) > 1 else different.pop()
    certificate = Certificate(
        proof.mechanism,
        request.notion,
        epsilon,
        delta,
        stated_loss(request, proof.objective),
        None,
        record_of(request, solution, proof.route) | {"bound": bound},
        audited=proof.privacy,
    )
    return replace(
        raw,
        claim=claim,
        mechanism=proof.mechanism,
        objective=float(proof.objective),
        bound=bound,
        privacy=certificate.privacy,
        words=(*raw.words, *_words(request, proof, raw.claimed)),
        certificate=certificate,
        raw=raw.mechanism,
        route=proof.route,
        optimum=None if proof.optimum is None else float(proof.optimum),
    )


def _words(request: ModuloRequest, proof: Certified, claimed: float) -> list[str]:
    words = []
    if proof.residual is None:
        words.append("Privacy is certified; the extra constraints hold within the solver's tolerances only.")
    elif proof.residual:
        what = "its max_loss" if request.constraints is None else "the extra constraints or its max_loss"
        words.append(f"The certified mechanism misses {what} by {round_up(proof.residual):.3g}, exactly.")
    if float(proof.objective) - claimed > 1e-9 * max(1.0, abs(claimed)):
        words.append(
            f"The solver claims {claimed:.12g}, which rests on its tolerances; "
            f"certified is {float(proof.objective):.12g}."
        )
    return words


def record_of(request: ModuloRequest, solution: Solution, route: str) -> dict[str, object]:
    """What a certificate says of how its mechanism was found."""
    limit = request.loss_limit
    return {
        "workbench": __version__,
        "solver": solution.solver,
        "solver_version": solution.version,
        "status": str(solution.termination),
        "claimed": solution.objective,
        "route": route,
        "minimise": request.minimise,
        "loss": request.loss,
        "max_loss": None if limit is None else float(limit),
    }


def stated_loss(request: ModuloRequest, loss: Fraction) -> Objective | None:
    """The loss that a certificate states, where it can be recomputed from the file."""
    if request.minimise != "loss" or request.losses.ndim != 1:
        return None
    losses = None if request.loss == "error-rate" else tuple(map(Fraction, request.losses.tolist()))
    return rounded_objective(request.loss, loss, losses)


def _decimal_up(delta: Fraction, places: int = 30) -> Fraction:
    """The least decimal of 30 places that is not below a delta."""
    return min(Fraction(1), Fraction(math.ceil(delta * 10**places), 10**places))


def _patterns(request: ModuloRequest, solution: Solution, raw: AdditiveNoise) -> list[tuple[str, Pattern | None]]:
    """The patterns worth solving: what the masses show, and what the solver's binaries say."""
    shown = _pattern_of(request, raw)
    if shown is None:
        return [("exact optimum", None)]
    patterns: list[tuple[str, Pattern | None]] = [("exact optimum of the pattern", shown)]
    names = {block.name for block in solution.program.variables}
    labels = {shift: f"u_{'_'.join(map(str, shift))}" for shift in request.budgets}
    if set(labels.values()) <= names:
        binaries = {shift: np.asarray(solution[label]) > 0.5 for shift, label in labels.items()}
        if any((binaries[shift] != shown[shift]).any() for shift in binaries):
            patterns.append(("exact optimum of the solver's binaries", binaries))
    return patterns


def _pattern_of(request: ModuloRequest, mechanism: AdditiveNoise) -> Pattern | None:
    """The violations a mechanism shows; None where the request allows none, or bounds no mass of them."""
    bounds = request.bounds
    return pattern_of(mechanism, bounds.epsilons) if bounds.mass else None


def _exactly(request: ModuloRequest, pattern: Pattern | None, route: str, stop: float) -> Certified:
    """The exact program of a pattern, solved, repaired and judged. Raises NotCertified, also when there is no time."""
    if time.perf_counter() > stop:
        raise NotCertified("There was no time left for the exact program of the solver's pattern.")
    left = stop - time.perf_counter()
    refined = solve_exactly(request, pattern, left if left < math.inf else None)
    values = refined.x[: request.question.order]
    if request.constraints is not None:
        try:
            with translated_errors():
                vertex = refined.vertex()[: request.question.order]
            return _judged(request, vertex, pattern, route, refined.bound, raw=True)
        except NotCertified:
            pass  # rounding then moves them by what `residual` says
    return _judged(request, values, pattern, route, refined.bound)


def _judged(
    request: ModuloRequest,
    values: Sequence[Fraction],
    pattern: Pattern | None,
    route: str,
    optimum: Fraction | None = None,
    *,
    raw: bool = False,
) -> Certified:
    """The mechanism these masses repair to, with what it costs. raw: keep the masses as they are."""
    q, measuring, limit = request.question, notion(request.notion), request.loss_limit
    # a least delta is whatever these masses reach; the audit says which
    delta = Fraction(1) if request.minimise == "delta" or request.delta is None else request.delta
    claim = request.claim(delta)
    privacy = audit(AdditiveNoise(q, values), claim.epsilon) if raw else repair_noise(q, values, claim, pattern)
    mechanism = privacy.mechanism
    assert isinstance(mechanism, AdditiveNoise)
    if request.minimise == "delta":
        reached = privacy.worst(measuring).measured
        delta = delta_notion(measuring).upper(reached)
        objective = delta = delta if reached.b == 0 else _ceiling(delta)
        assert limit is not None
        excess = max(Fraction(0), exact_loss(mechanism, request.losses) - limit)
        claim = request.claim(delta)
    else:
        objective, excess = exact_loss(mechanism, request.losses), Fraction(0)
    if not privacy.holds(claim):
        raise NotCertified(privacy.words(claim, "The repaired mechanism"))
    violation = _residual(request, mechanism)
    residual = None if violation is None else max(excess, violation)
    return Certified(mechanism, privacy, route, objective, delta, optimum, residual)


def _ceiling(value: Fraction, bits: int = 200) -> Fraction:
    return Fraction(-((-value.numerator << bits) // value.denominator), 1 << bits)


def _residual(request: ModuloRequest, mechanism: AdditiveNoise) -> Fraction | None:
    """The largest violation of the request's extra constraints, exact; None where they are not linear in f alone."""
    if request.constraints is None:
        return Fraction(0)
    f, worst = mechanism.exact_pmf, Fraction(0)
    program = extra_constraints(request)
    if program.shape[1] != len(f):
        return None
    for row, low, high in rows_of(program):
        value = sum((a * f[j] for j, a in row.items()), Fraction(0))
        worst = max(
            worst,
            *(low - value for low in [low] if low is not None),
            *(value - high for high in [high] if high is not None),
        )
    return worst
