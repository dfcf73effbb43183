"""From a solver's noise to a certified one: its pattern re-solved exactly, repaired, judged by the exact audit.

With the pattern V_μ = {η : f(η) > e^ε f(η+μ)} of the solver's answer held fixed, every model of `models.noise` is a
linear program (`workbench.noise_program`), which is solved to 230 bits (`workbench.exact_lp`).

Candidates, best first: the exact optimum of that program, the solver's own floats, the closed form's PMF. What the
audit refuses is repaired (`workbench.privacy.repair`); the cheapest of what it accepts is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from workbench import __version__, rooms  # noqa: F401  (rooms first: it names a foreign `models` in one sentence)

# isort: split
from models.oracles import ClosedForm
from solvers.backend import Options
from solvers.solution import Solution
from workbench.designing import Design
from workbench.errors import NotCertified
from workbench.mechanisms.additive import AdditiveNoise
from workbench.noise_program import NoiseRequest, extra_constraints, noise_program, rows_of
from workbench.numbers import round_up
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import rounded_objective
from workbench.privacy.repair import Pattern, exact_cost, pattern_of, repair_noise

__all__ = ["Certified", "NoiseRequest", "certified_design", "certify_noise", "exacting"]

_CLOSE = Fraction(1, 10**12)  # how far above the solver's claim the closed form is asked as well
_CELLS = 60_000  # rows of the exact program above which only floats are repaired


@dataclass(frozen=True)
class Certified:
    """A mechanism whose audit meets the request.

    route: where its masses come from; objective: its exact cost (or its exact δ when that is minimised, rounded up);
    optimum: a proven lower bound on what any mechanism with the same violations can reach, None where none was proven;
    delta: what is certified (the request's, or the least one reached); residual: by how much it misses the request's
    extra linear constraints or its cost budget, exact; None where those constraints are not linear in f alone.
    """

    mechanism: AdditiveNoise
    route: str
    objective: Fraction
    delta: Fraction
    optimum: Fraction | None = None
    residual: Fraction | None = Fraction(0)


def certify_noise(
    request: NoiseRequest, solution: Solution, closed_form: Callable[[], ClosedForm | None] | None = None
) -> Certified:
    """The best certified mechanism for a request near a solver's answer.

    closed_form: gives the least error rate known and its PMF (N,), or None; asked only where the pattern fails or does
    not reach what the solver claims.

    Raises:
        NotCertified: no candidate meets the request in exact arithmetic.
    """
    found: list[Certified] = []
    reasons: list[str] = []

    def attempt(make: Callable[[], Certified]) -> None:
        try:
            found.append(make())
        except NotCertified as error:
            reasons.append(str(error))

    raw = AdditiveNoise.from_pmf(request.question, np.maximum(solution["f"], 0.0))
    affordable = request.question.order * len(request.budgets) <= _CELLS
    for route, pattern in _patterns(request, solution, raw) if affordable else []:
        attempt(lambda route=route, pattern=pattern: _exactly(request, pattern, route))  # type: ignore[misc]
    if not found:
        attempt(lambda: _judged(request, raw.exact_pmf, None, "solver's floats"))
    claimed = solution.objective
    short = not found or (claimed is not None and _best(found).objective > Fraction(claimed) * (1 + _CLOSE))
    if short and affordable and request.notion == "pdp":  # without violations there is always a mechanism
        attempt(lambda: _exactly(request, _no_violations(request), "exact optimum without violations"))
    law = closed_form() if short and closed_form is not None and request.extra is None else None
    if law is not None and law.pmf is not None and (not found or law.value < _best(found).objective):
        made = AdditiveNoise.from_pmf(request.question, law.pmf)
        attempt(lambda: _judged(request, made.exact_pmf, None, "closed form"))
        if affordable:
            attempt(lambda: _exactly(request, _pattern_of(request, made), "exact optimum of the closed form's pattern"))
    if not found:
        raise NotCertified(f"No repaired mechanism meets the request exactly: {' '.join(dict.fromkeys(reasons))}")
    return _best(found)


def _no_violations(request: NoiseRequest) -> Pattern:
    return {shift: np.zeros(request.question.order, dtype=bool) for shift in request.budgets}


def _best(found: Sequence[Certified]) -> Certified:
    """Constraints first, then cost."""
    return min(found, key=lambda one: (bool(one.residual), one.objective))


def exacting(options: Options, supported: frozenset[str]) -> Options:
    """Options whose MILP answers are worth certifying: at the usual 1e-5 a binary of 4e-6 stands for 4e-6 of
    probability that breaks the budget unseen, and whole patterns for a δ of 1e-8 are fiction."""
    return replace(options, integrality_tolerance=1e-9) if "integrality_tolerance" in supported else options


def certified_design(made: Design, proof: Certified, request: NoiseRequest) -> Design:
    """A design with its certified mechanism in place of the solver's, and words for what a reader must know."""
    words = list(made.words)
    if proof.residual is None:
        words.append("Privacy is certified; the extra constraints hold within the solver's tolerances only.")
    elif proof.residual:
        what = "its cost budget" if request.extra is None else "the extra constraints or its cost budget"
        words.append(f"The certified mechanism misses {what} by {round_up(proof.residual):.3g}, exactly.")
    claimed = made.claimed
    if float(proof.objective) - claimed > 1e-9 * max(1.0, abs(claimed)):
        words.append(
            f"The solver claims {claimed:.12g}, which rests on its tolerances; "
            f"certified is {float(proof.objective):.12g}."
        )
    solution = made.solution
    record = {
        "workbench": __version__,
        "solver": solution.solver,
        "solver_version": solution.version,
        "status": str(solution.termination),
        "claimed": claimed,
        "bound": made.bound,
        "route": proof.route,
        "minimise": request.minimise,
        "cost": made.request["cost"],
        "budget": None if request.budget is None else float(request.budget),
    }
    objective = None
    if request.minimise == "error" and request.costs.ndim == 1:
        name = str(made.request["cost"])
        costs = None if name == "error-rate" else tuple(map(Fraction, request.costs.tolist()))
        objective = rounded_objective(name, proof.objective, costs)
    budgets = dict(request.budgets)
    epsilon = next(iter(budgets.values())) if len(set(budgets.values())) == 1 else budgets
    delta = proof.delta if request.minimise == "error" else _decimal_up(proof.delta)
    certificate = Certificate(proof.mechanism, request.notion, epsilon, delta, objective, None, record)
    return replace(
        made,
        request={**made.request, "delta": delta},
        mechanism=proof.mechanism,
        objective=float(proof.objective),
        privacy=certificate.privacy,
        words=tuple(words),
        certificate=certificate,
        raw=made.mechanism,
        route=proof.route,
        optimum=None if proof.optimum is None else float(proof.optimum),
    )


def _decimal_up(delta: Fraction, places: int = 30) -> Fraction:
    """The least decimal of 30 places that is not below a delta."""
    return min(Fraction(1), Fraction(math.ceil(delta * 10**places), 10**places))


def _patterns(request: NoiseRequest, solution: Solution, raw: AdditiveNoise) -> list[tuple[str, Pattern | None]]:
    """The patterns worth solving: what the masses show, and what the solver's binaries say."""
    shown = _pattern_of(request, raw)
    if shown is None:
        return [("exact optimum", None)]
    found: list[tuple[str, Pattern | None]] = [("exact optimum of the pattern", shown)]
    names = {block.name for block in solution.program.variables}
    labels = {shift: f"u_{'_'.join(map(str, shift))}" for shift in request.budgets}
    if set(labels.values()) <= names:
        said = {shift: np.asarray(solution[label]) > 0.5 for shift, label in labels.items()}
        if any((said[shift] != shown[shift]).any() for shift in said):
            found.append(("exact optimum of the solver's binaries", said))
    return found


def _pattern_of(request: NoiseRequest, made: AdditiveNoise) -> Pattern | None:
    """The violations a mechanism shows; None where the request has no such notion."""
    if request.notion != "pdp" or (request.minimise == "error" and not request.delta):
        return None
    return pattern_of(made, request.budgets)


def _exactly(request: NoiseRequest, pattern: Pattern | None, route: str) -> Certified:
    """The exact program of a pattern, solved, repaired and judged."""
    lp = noise_program(request, pattern)
    refined = lp.solve()
    values = refined.x[: request.question.order]
    if request.extra is not None:
        try:
            return _judged(request, refined.vertex()[: request.question.order], pattern, route, refined.bound, raw=True)
        except NotCertified:
            pass  # rounding then moves them by what `residual` says
    return _judged(request, values, pattern, route, refined.bound)


def _judged(
    request: NoiseRequest, values: Sequence[Fraction], pattern: Pattern | None, route: str,
    optimum: Fraction | None = None, *, raw: bool = False,
) -> Certified:  # fmt: skip
    """The mechanism these masses repair to, with what it costs. raw: keep the masses as they are."""
    q, notion, delta = request.question, request.notion, request.delta
    if request.minimise == "delta":  # whatever δ these masses reach is the answer; the audit says which
        delta = Fraction(1)
    made = AdditiveNoise(q, values) if raw else repair_noise(q, values, request.budgets, notion, delta, pattern)
    privacy = audit(made, request.budgets)
    if request.minimise == "delta":
        delta = privacy.pdp_delta if notion == "pdp" else _ceiling(privacy.dp_delta.sharp()[1])
        objective = delta
        assert request.budget is not None
        excess = max(Fraction(0), exact_cost(made, request.costs) - request.budget)
    else:
        objective, excess = exact_cost(made, request.costs), Fraction(0)
    if not privacy.meets(notion, request.budgets, delta):
        raise NotCertified(privacy.verdict(notion, request.budgets, delta, subject="The repaired mechanism"))
    missed = _residual(request, made)
    return Certified(made, route, objective, delta, optimum, None if missed is None else max(excess, missed))


def _ceiling(value: Fraction, bits: int = 200) -> Fraction:
    return Fraction(-((-value.numerator << bits) // value.denominator), 1 << bits)


def _residual(request: NoiseRequest, made: AdditiveNoise) -> Fraction | None:
    """The largest violation of the request's extra constraints, exact; None where they are not linear in f alone."""
    if request.extra is None:
        return Fraction(0)
    f, worst = made.exact_pmf, Fraction(0)
    program = extra_constraints(request)
    if program.shape[1] != len(f):
        return None
    for row, low, high in rows_of(program):
        value = sum((a * f[j] for j, a in row.items()), Fraction(0))
        worst = max(worst, *(low - value for low in [low] if low is not None),
                    *(value - high for high in [high] if high is not None))  # fmt: skip
    return worst
