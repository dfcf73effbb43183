"""From a solver's noise to a certified one: its pattern re-solved exactly, repaired, judged by the exact audit.

With the pattern V_μ = {η : f(η) > e^ε f(η+μ)} of the solver's answer held fixed, every model of `models.noise` is a
linear program in f (and one bound y per outcome for the hockey stick); E = ⌊2^112 e^ε (1-τ)⌋/2^112 and δ(1-τ) with
τ = 2^-64 leave room for rounding at a cost of about 1e-19:

    "pdp"   f(η) <= E f(η+μ) outside V_μ,  Σ f(V_μ) <= δ        "dp"   y >= f(η) - E f(η+μ),  Σ y <= δ
    "pure"  f(η) <= E f(η+μ)                                     least δ: δ is a column, and the cost a row

Candidates, best first: the exact optimum of that program, the solver's own floats, the closed form's PMF. What the
audit refuses is repaired (`workbench.privacy.repair`); the cheapest of what it accepts is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench import __version__, rooms

# isort: split
from models.oracles import ClosedForm
from solvers.backend import Options
from solvers.program import Program, compile
from solvers.solution import Solution
from workbench.designing import Design
from workbench.errors import NotCertified
from workbench.exact_lp import ExactLP
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise, Shift
from workbench.numbers import round_up
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import rounded_objective
from workbench.privacy.repair import Pattern, exact_cost, pattern_of, repair_noise, threshold

__all__ = ["Certified", "NoiseRequest", "certified_design", "certify_noise", "exacting"]

TAU = Fraction(1, 1 << 64)  # what the exact program gives away so that rounding cannot break it
_CLOSE = Fraction(1, 10**12)  # how far above the solver's claim the closed form is asked as well
_CELLS = 60_000  # rows of the exact program above which only floats are repaired


@dataclass(frozen=True)
class NoiseRequest:
    """What was asked, in exact numbers. costs: (N,) or (answers, N); budget: of the cost, when δ is minimised;
    extra: CVXPY constraints on f."""

    question: ModuloNoise
    budgets: Mapping[Shift, Fraction]
    notion: str
    delta: Fraction
    costs: NDArray[np.float64]
    minimise: str = "error"
    budget: Fraction | None = None
    extra: Callable[[Any], Sequence[Any]] | None = None


@dataclass(frozen=True)
class Certified:
    """A mechanism whose audit meets the request.

    route: where its masses come from; objective: its exact cost (or its exact δ when that is minimised, rounded up);
    optimum: a proven lower bound on what any mechanism with the same violations can reach, None where none was proven;
    delta: what is certified (the request's, or the least one reached); residual: by how much it misses the request's
    extra linear constraints, exact.
    """

    mechanism: AdditiveNoise
    route: str
    objective: Fraction
    delta: Fraction
    optimum: Fraction | None = None
    residual: Fraction = Fraction(0)


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
    return min(found, key=lambda one: (one.residual > 0, one.objective))


def exacting(options: Options, supported: frozenset[str]) -> Options:
    """Options whose MILP answers are worth certifying: at the usual 1e-5 a binary of 4e-6 stands for 4e-6 of
    probability that breaks the budget unseen, and whole patterns for a δ of 1e-8 are fiction."""
    return replace(options, integrality_tolerance=1e-9) if "integrality_tolerance" in supported else options


def certified_design(made: Design, proof: Certified, request: NoiseRequest) -> Design:
    """A design with its certified mechanism in place of the solver's, and words for what a reader must know."""
    words = list(made.words)
    if proof.residual:
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
    lp = _program(request, pattern)
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
    return Certified(made, route, objective, delta, optimum, max(excess, _residual(request, made)))


def _ceiling(value: Fraction, bits: int = 200) -> Fraction:
    return Fraction(-((-value.numerator << bits) // value.denominator), 1 << bits)


def _residual(request: NoiseRequest, made: AdditiveNoise) -> Fraction:
    """The largest violation of the request's extra constraints, exact; 0 where they are not linear in f alone."""
    if request.extra is None:
        return Fraction(0)
    f, worst = made.exact_pmf, Fraction(0)
    program = _extras(request)
    if program.shape[1] != len(f):
        return Fraction(0)
    for row, low, high in _rows(program):
        value = sum((a * f[j] for j, a in row.items()), Fraction(0))
        worst = max(worst, *(low - value for low in [low] if low is not None),
                    *(value - high for high in [high] if high is not None))  # fmt: skip
    return worst


def _extras(request: NoiseRequest) -> Program:
    """The request's extra constraints alone, compiled; the block "f" holds the masses."""
    import cvxpy as cp

    f = cp.Variable(request.question.order, name="f", bounds=[0, 1])
    assert request.extra is not None
    with rooms.speaking_our_errors():
        return compile(cp.Problem(cp.Minimize(cp.sum(f)), list(request.extra(f))), "extra constraints")


def _rows(program: Program) -> list[tuple[dict[int, Fraction], Fraction | None, Fraction | None]]:
    data = program.template
    rows: list[dict[int, Fraction]] = [{} for _ in range(program.shape[0])]
    table = data.A.tocoo()
    for i, j, a in zip(table.row.tolist(), table.col.tolist(), table.data.tolist(), strict=True):
        rows[i][j] = Fraction(a)
    sides = [[Fraction(v) if np.isfinite(v) else None for v in side] for side in (data.row_lower, data.row_upper)]
    return list(zip(rows, *sides, strict=True))


def _program(request: NoiseRequest, pattern: Pattern | None) -> ExactLP:
    """The linear program of a pattern in exact numbers. Columns: f, then y of every difference ("dp"), δ or the
    largest cost, and what the extra constraints need."""
    q = request.question
    N, shifts = q.order, list(request.budgets)
    least_delta = request.minimise == "delta"
    pure = not least_delta and (not request.delta or request.notion == "pure")
    hockey = request.notion == "dp" and not pure
    extra = _extras(request) if request.extra is not None else None
    first_y = N
    last = N + (N * len(shifts) if hockey else 0)
    worst = request.costs.ndim == 2 and not least_delta
    extra_at = last + int(least_delta) + int(worst)
    lp = ExactLP(extra_at + (extra.shape[1] - N if extra is not None else 0))
    lp.row(dict.fromkeys(range(N), 1), 1, 1)
    delta = request.delta * (1 - TAU)
    for at, shift in enumerate(shifts):
        e = Fraction(threshold(request.budgets[shift]), 1 << 112)
        e = max(Fraction(1), Fraction(int(e * (1 - TAU) * (1 << 112)), 1 << 112))
        index = q.index(shift).tolist()
        free = None if pure or hockey or pattern is None else pattern[shift]
        for eta in range(N):
            if free is None or not free[eta]:
                entries = {eta: Fraction(1)}
                entries[index[eta]] = entries.get(index[eta], Fraction(0)) - e
                if hockey:
                    entries[first_y + at * N + eta] = Fraction(-1)
                lp.row(entries, None, 0)
        if pure:
            continue
        spent = range(first_y + at * N, first_y + (at + 1) * N) if hockey else np.flatnonzero(np.asarray(free)).tolist()
        row: dict[int, Fraction | int] = dict.fromkeys(spent, 1)
        if row and least_delta:
            lp.row(row | {last: -1}, None, 0)
        elif row:
            lp.row(row, None, delta)
    costs = [[Fraction(c) for c in row] for row in (request.costs if request.costs.ndim == 2 else [request.costs])]
    if least_delta:
        assert request.budget is not None
        for one in costs:
            lp.row(dict(enumerate(one)), None, request.budget * (1 - TAU))
        lp.cost[last] = Fraction(1)
    elif worst:
        lp.bounds[last] = (Fraction(0), max(map(max, costs)))
        for one in costs:
            lp.row(dict(enumerate(one)) | {last: -1}, None, 0)
        lp.cost[last] = Fraction(1)
    else:
        lp.cost[:N] = costs[0]
    if extra is not None:
        _append(lp, extra, extra_at)
    return lp


def _append(lp: ExactLP, extra: Program, start: int) -> None:
    """Add the extra constraints; their columns other than f come last."""
    block = extra.block("f")
    column, at = {}, start
    for j in range(extra.shape[1]):
        if block.start <= j < block.start + block.size:
            column[j] = j - block.start
        else:
            low, high = extra.template.lower[j], extra.template.upper[j]
            lp.bounds[at] = (Fraction(low) if np.isfinite(low) else None, Fraction(high) if np.isfinite(high) else None)
            column[j], at = at, at + 1
    for row, low, high in _rows(extra):
        lp.row({column[j]: a for j, a in row.items()}, low, high)
