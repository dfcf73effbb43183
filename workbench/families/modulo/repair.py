"""From a solver's noise to a certified one: its pattern re-solved exactly, repaired, judged by the exact audit.

With the pattern V_μ = {η : f(η) > e^ε f(η+μ)} of the solver's answer held fixed, every model of
`workbench.models.modulo.program` is a linear program, which is solved in rationals to 230 bits
(`workbench.solvers.exact.rational_refinement`). E = ⌊2^112 e^ε (1-τ)⌋/2^112 in place of e^ε and δ(1-τ), τ = 2^-64,
leave room for rounding, at a loss of about 1e-19. Where the notion asks for no pattern this program is the request,
and bounds what anything can reach: its multipliers are read in the program that gives nothing away, with E = ⌈2^112
e^ε⌉/2^112 and δ rounded up.

Candidates, best first: the exact optimum of that program, the solver's own floats, the closed form's PMF; under several
convex bounds the solver's masses, and the same with tails that fall no faster than its larger masses do. What the audit
refuses is repaired (`workbench.privacy.repair`); the cheapest of what it accepts is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from workbench.errors import NotCertified
from workbench.exact.numbers import exp_bounds, round_down, round_up
from workbench.families.modulo.request import ModuloRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models.modulo.constraints import compile_constraints
from workbench.models.oracles import ClosedForm
from workbench.notions import get_delta_notion
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.user_constraints import CONSTRAINTS_NOTE, find_max_violation
from workbench.privacy.audit import Privacy, audit
from workbench.privacy.claim import Claim
from workbench.privacy.repair import (
    Pattern,
    compute_exact_loss,
    find_violation_pattern,
    raise_weights,
    repair_noise,
)
from workbench.solvers.arrays import Flags, Ints, Vector
from workbench.solvers.exact.rational_lp import RationalLP, RationalPoint
from workbench.solvers.exact.rational_refinement import read_held_sides, solve_rational
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import DualValues, PointStatus, Solution, Termination

PROGRAM_MARGIN = Fraction(
    1, 1 << 64
)  # what the exact program gives away so that rounding cannot break it
_BITS = 112
MAX_EXACT_ROWS = 60_000  # rows of the exact program above which it is not stated
_CLOSE = Fraction(1, 10**12)  # how far above the solver's claim the closed form is asked as well
_FINE, _SEEN = 120, 1e-7  # bits of a repaired mass; masses that a solver knows to some digits
_STEEPER = (
    1,
    Fraction(9, 8),
    Fraction(5, 4),
    Fraction(3, 2),
    2,
)  # losses of the tails, of the largest loss seen
_NEAR = 1e-7  # relative gap at which no other repair is tried

SOLVER_FAILURES = frozenset((Termination.NUMERICAL, Termination.ERROR, Termination.INFEASIBLE))
LIMIT_NAMES = {
    Termination.TIME_LIMIT: "the time limit",
    Termination.NODE_LIMIT: "the node limit",
    Termination.ITERATION_LIMIT: "the iteration limit",
    Termination.INTERRUPTED: "an interrupt",
    Termination.NUMERICAL: "numerical trouble",
}


@dataclass(frozen=True)
class CertifiedNoise:
    """A mechanism whose audit meets the request.

    origin: where its masses come from; objective: its exact loss (or its exact δ when that is minimised, rounded up);
    optimum: a proven lower bound on what any mechanism with the same violations can reach, None where none was proven;
    delta: what is certified (the request's, or the least one reached); privacy: its audit; residual: by how much it
    misses the request's extra linear constraints or its max_loss, exact; None where those constraints are not linear
    in f alone.
    """

    mechanism: AdditiveNoise
    privacy: Privacy
    origin: str
    objective: Fraction
    delta: Fraction
    lower_bound: Fraction | None = None
    residual: Fraction | None = Fraction(0)


class _Candidates:
    """What repairs made, and why others made nothing. order: of what is better, the least."""

    def __init__(self, order: Callable[[Any], Any]) -> None:
        self.order = order
        self.mechanisms: list[Any] = []
        self.reasons: dict[str, None] = {}

    def attempt(self, make: Callable[[], Any]) -> bool:
        """Whether something was made."""
        try:
            self.mechanisms.append(make())
        except NotCertified as error:
            self.reasons[str(error)] = None
            return False
        return True

    @property
    def best(self) -> Any:
        """The best of what was made. Raises NotCertified where nothing was."""
        if not self.mechanisms:
            raise NotCertified(
                f"No repaired mechanism meets the request exactly: {' '.join(self.reasons)}"
            )
        return min(self.mechanisms, key=self.order)


def certify_noise(
    request: ModuloRequest,
    solution: Solution,
    closed_form: Callable[[], ClosedForm | None] = lambda: None,
    deadline: Deadline | None = None,
) -> CertifiedNoise:
    """The best certified mechanism for a request near a solver's answer.

    closed_form: gives the least error rate known and its PMF (N,), or None; asked only where the pattern fails or does
    not reach what the solver claims.
    deadline: from which on nothing is solved exactly, and what the repair makes of floats has to do.

    Raises:
        NotCertified: no candidate meets the request in exact arithmetic.
    """
    candidates = _Candidates(
        lambda candidate: (bool(candidate.residual), candidate.objective)
    )  # constraints first
    raw = AdditiveNoise.from_pmf(request.question, np.maximum(solution["f"], 0.0))
    exactly = partial(_exactly, request, solution, deadline=deadline or Deadline())
    affordable = request.question.order * len(request.budgets) <= MAX_EXACT_ROWS
    for origin, pattern in _patterns(request, solution, raw) if affordable else []:
        candidates.attempt(partial(exactly, pattern, origin))
    if not candidates.mechanisms:
        candidates.attempt(lambda: _judged(request, raw.exact_pmf, None, "solver's floats"))
    claimed = solution.objective
    mechanisms = candidates.mechanisms
    short = not mechanisms or (
        claimed is not None and candidates.best.objective > Fraction(claimed) * (1 + _CLOSE)
    )
    if (
        short and affordable and request.bounds.bounds_mass
    ):  # without violations there always is one
        nothing = {shift: np.zeros(request.question.order, dtype=bool) for shift in request.budgets}
        candidates.attempt(lambda: exactly(nothing, "exact optimum without violations"))
    law = closed_form() if short and request.aim.constraints is None else None
    if (
        law is not None
        and law.pmf is not None
        and (not mechanisms or law.value < candidates.best.objective)
    ):
        noise = AdditiveNoise.from_pmf(request.question, law.pmf)
        candidates.attempt(lambda: _judged(request, noise.exact_pmf, None, "closed form"))
        if affordable:
            by_law = "exact optimum of the closed form's pattern"
            candidates.attempt(lambda: exactly(_pattern_of(request, noise), by_law))
    best: CertifiedNoise = candidates.best
    if request.bounds.bounds_mass:
        return best
    bounds = [
        each.optimum for each in mechanisms if each.optimum is not None
    ]  # one program, so all hold for all
    return replace(best, lower_bound=max(bounds, default=None))


def _patterns(
    request: ModuloRequest, solution: Solution, raw: AdditiveNoise
) -> list[tuple[str, Pattern | None]]:
    """The patterns worth solving: what the masses show, and what the solver's binaries say."""
    shown = _pattern_of(request, raw)
    if shown is None:
        return [("exact optimum", None)]
    patterns: list[tuple[str, Pattern | None]] = [("exact optimum of the pattern", shown)]
    labels = {shift: f"u_{'_'.join(map(str, shift))}" for shift in request.budgets}
    if set(labels.values()) <= {block.name for block in solution.program.variables}:
        binaries = {shift: solution[label] > 0.5 for shift, label in labels.items()}
        if any((binaries[shift] != shown[shift]).any() for shift in binaries):
            patterns.append(("exact optimum of the solver's binaries", binaries))
    return patterns


def _pattern_of(request: ModuloRequest, mechanism: AdditiveNoise) -> Pattern | None:
    """The violations a mechanism shows; None where the request allows none, or bounds no mass of them."""
    bounds = request.bounds
    return find_violation_pattern(mechanism, bounds.epsilons) if bounds.bounds_mass else None


def _exact_program(
    request: ModuloRequest, program: Program, *, relaxed: bool = False
) -> RationalLP:
    """The linear program of a pattern in exact numbers. relaxed: rounded so that no mechanism is left out."""

    def ratio(epsilon: Fraction) -> Fraction:
        low, high = exp_bounds(epsilon, _BITS)
        return Fraction(
            high if relaxed else max(1 << _BITS, int(low * (1 - PROGRAM_MARGIN))), 1 << _BITS
        )

    def allowed(value: Fraction) -> Fraction:
        return (
            Fraction(math.ceil(value * (1 << 320)), 1 << 320)
            if relaxed
            else value * (1 - PROGRAM_MARGIN)
        )

    values = {
        "exp_epsilon": [ratio(epsilon) for epsilon in request.bounds.epsilon_levels[1]],
        "delta": [allowed(request.bounds.delta)],
        "max_loss": [allowed(request.loss_limit or Fraction(0))],
    }
    return RationalLP.from_program(program, values, 320)


def _solve_exactly(
    request: ModuloRequest, program: Program, solution: Solution, time_limit: float | None
) -> RationalPoint:
    """The solution of a pattern's program, from the basis of the request's solution where its program is the same; its
    bound holds for the request where that asks for no pattern.

    Raises NotCertified, also when there is no time.
    """
    with translate_errors():
        same, cost, shift = solution.program is program, program.cost, Fraction(program.shift)
        program = replace(program, template=replace(program.template, c=program.template.c * cost))
        relaxed = (
            None if request.bounds.bounds_mass else _exact_program(request, program, relaxed=True)
        )
        basis = solution.basis if same and solution.solver == "highs" else None
        held = None if basis is None else _lifted(request, program.shape, solution["f"], basis)
        point = solve_rational(
            _exact_program(request, program),
            bound_program=relaxed,
            time_limit=time_limit,
            basis=basis,
            held_sides=held,
        )
    bound = None if point.bound is None else point.bound / Fraction(cost) + shift
    return replace(point, bound=bound, objective=point.objective / Fraction(cost) + shift)


def _lifted(
    request: ModuloRequest, shape: Ints, f: Vector, basis: Any
) -> tuple[Flags, Flags] | None:
    """The basis of LP (14) that holds masses too small for a solver at the most that others ask of them,
    f(η+μ) = e^-ε f(η), along paths from masses that it sees; None for other programs, and where it sees all."""
    q, epsilons, seen = request.question, request.budgets, f > _SEEN
    if shape != (1 + len(epsilons) * f.size, f.size) or seen.all():
        return None
    moved = np.stack([q.shifted_positions(shift) for shift in epsilons])
    before = np.argsort(moved, axis=1)  # η of η+μ
    small = np.flatnonzero(~seen)
    size, gain = (
        np.full(f.size, -np.inf),
        np.array([[float(epsilon)] for epsilon in epsilons.values()]),
    )
    size[seen] = np.log(f[seen])
    for _ in small:
        floors = size[before[:, small]] - gain
        known, size[small] = size[small], floors.max(axis=0)
        if (known == size[small]).all():
            break
    low, high = read_held_sides(basis)
    rows = high[1 + f.size :].reshape(moved.shape)
    rows &= seen & seen[moved]
    asking = floors.argmax(axis=0)
    rows[asking, before[asking, small]] = True
    low[: f.size] = high[: f.size] = False
    return low, high


def is_solution_proven(solution: Solution, scale: LossScale) -> bool:
    """Whether the answer is an optimum, or within the allowed gap of one."""
    return why_unproven(solution, scale) is None or solution.termination is Termination.GAP_LIMIT


def why_unproven(solution: Solution, scale: LossScale) -> str | None:
    """Why the answer is not a proven optimum; None when it is.

    A solver's word alone is not enough: where a bound is known, objective and bound must agree as the scale of the
    losses says, whatever the solver's own tolerances call optimal.
    """
    if solution.termination is not Termination.OPTIMAL:
        limit = LIMIT_NAMES.get(solution.termination, f"its status {solution.termination}")
        return f"stopped at {limit} before proving an optimum"
    objective, bound = solution.objective, solution.bound
    assert objective is not None
    return (
        None
        if bound is None or scale.settles(objective, bound)
        else "says optimal, but its bound does not prove it"
    )


def should_refine(request: ModuloRequest, solution: Solution) -> bool:
    """Whether a linear program was answered without a proof, which its exact program may have.

    With e^ε as a coefficient a solver's duals are off by more than a tiny error rate, and e^ε - 1 may be less than
    its tolerances.
    """
    if request.bounds.bounds_mass or request.question.order * len(request.budgets) > MAX_EXACT_ROWS:
        return False
    if solution.termination is Termination.OPTIMAL:
        return why_unproven(solution, request.scale) is not None
    return solution.termination in SOLVER_FAILURES and solution.ray is None


def refine_exactly(
    request: ModuloRequest, solution: Solution, time_limit: float | None
) -> Solution:
    """The answer to a linear program with the exact one's point and bound; as it is where that has none."""
    clock = Deadline()
    try:
        exact = _solve_exactly(request, request.model().program, solution, time_limit)
    except NotCertified:
        return solution
    if exact.bound is None:
        return solution
    word = f"refined in exact arithmetic; {solution.solver} by itself says {solution.raw_status!r}, which is no proof"
    return replace(
        solution,
        termination=Termination.OPTIMAL,
        point=PointStatus.FEASIBLE,
        dual=PointStatus.NONE,
        x=np.array([float(v) for v in exact.x]),
        dual_values=DualValues(),
        native_bound=round_down(exact.bound - Fraction(solution.program.shift)),
        seconds=solution.seconds + clock.elapsed_seconds,
        raw_status="Optimal, refined",
        notes=(*solution.notes, word),
    )


def _exactly(
    request: ModuloRequest,
    solution: Solution,
    pattern: Pattern | None,
    origin: str,
    deadline: Deadline,
) -> CertifiedNoise:
    """The exact program of a pattern, solved, repaired and judged. Raises NotCertified, also when there is no time."""
    if deadline.has_passed:
        raise NotCertified("There was no time left for the exact program of the solver's pattern.")
    program = request.model(pattern).program
    point, f = (
        _solve_exactly(request, program, solution, deadline.remaining_seconds),
        program.block("f"),
    )
    masses = slice(f.start, f.start + f.size)
    if request.aim.constraints is not None:
        try:
            with translate_errors():
                vertex = point.solve_vertex()[masses]
            return _judged(request, vertex, pattern, origin, point.bound, raw=True)
        except NotCertified:
            pass  # rounding then moves them by what `residual` says
    return _judged(request, point.x[masses], pattern, origin, point.bound)


def _judged(
    request: ModuloRequest,
    values: Sequence[Fraction],
    pattern: Pattern | None,
    origin: str,
    optimum: Fraction | None = None,
    *,
    raw: bool = False,
) -> CertifiedNoise:
    """The mechanism these masses repair to, with what it costs. raw: keep the masses as they are."""
    q, limit, least = request.question, request.loss_limit, request.aim.minimise == "delta"
    # a least delta is whatever these masses reach; the audit says which
    delta = Fraction(1) if least or request.claim.delta is None else request.claim.delta
    claim = Claim(request.claim.notion, request.audited_claim.epsilon, delta)
    privacy = (
        audit(AdditiveNoise(q, values), claim.epsilon)
        if raw
        else repair_noise(q, values, claim, pattern)
    )
    mechanism = privacy.mechanism
    assert isinstance(mechanism, AdditiveNoise)
    objective, residual = (
        compute_exact_loss(mechanism, request.losses),
        _residual(request, mechanism),
    )
    if least:
        assert limit is not None
        if residual is not None:
            residual = max(objective - limit, residual)
        reached = privacy.worst_result(request.claim.notion).measurement
        delta = get_delta_notion(request.claim.notion).delta_upper_bound(reached)
        objective = delta = (
            delta if reached.b == 0 else Fraction(math.ceil(delta * (1 << 200)), 1 << 200)
        )
        claim = Claim(claim.notion, claim.epsilon, delta)
    if not privacy.holds(claim):
        raise NotCertified(privacy.describe_verdict(claim, "The repaired mechanism"))
    return CertifiedNoise(mechanism, privacy, origin, objective, delta, optimum, residual)


def _residual(request: ModuloRequest, mechanism: AdditiveNoise) -> Fraction | None:
    """The largest violation of the request's extra constraints, exact; None where they are not linear in f alone."""
    if request.aim.constraints is None:
        return Fraction(0)
    with translate_errors():
        program = compile_constraints(request.aim.constraints, request.question.order)
    return find_max_violation(program, mechanism.exact_pmf)


def find_cheapest_repair(
    request: ModuloRequest, raw: AdditiveNoise, bound: Fraction | float | None
) -> AdditiveNoise:
    """The cheapest repaired candidate under several convex bounds. Raises NotCertified.

    What is below a solver's tolerance is noise, whose ratios only a large share of uniform noise would mend.
    """
    question, f = request.question, raw.pmf
    weights = [int(mass * 2.0**_FINE) for mass in f.tolist()]
    moved = np.stack([f[question.shifted_positions(shift)] for shift in question.differences])
    with np.errstate(divide="ignore", invalid="ignore"):
        steepest = np.log(f / moved).max(initial=1e-3, where=(f > _SEEN) & (moved > _SEEN))
    candidates = _Candidates(
        lambda repaired: compute_exact_loss(repaired.mechanism, request.losses)
    )
    for share in (None, *_STEEPER):
        values = raw.exact_pmf
        if share is not None:
            most = Fraction(float(steepest) * share).limit_denominator(1 << 20)
            values = [
                *map(
                    Fraction,
                    raise_weights(
                        question, weights, dict.fromkeys(question.differences, most), None
                    ),
                )
            ]
        if (
            candidates.attempt(partial(repair_noise, question, values, request.audited_claim))
            and bound is not None
        ):
            loss = float(candidates.order(candidates.mechanisms[-1]))
            if request.scale.proves(loss, bound, _NEAR):
                break
    cheapest: AdditiveNoise = candidates.best.mechanism
    return cheapest


def describe_shortfalls(
    request: ModuloRequest, proof: CertifiedNoise, solution: Solution
) -> list[str]:
    """What the certified mechanism has not, of what was asked and of what the solver claims."""
    words, claimed, objective = [], solution.objective, float(proof.objective)
    if proof.residual is None:
        words.append(CONSTRAINTS_NOTE)
    elif proof.residual:
        what = (
            "its max_loss"
            if request.aim.constraints is None
            else "the extra constraints or its max_loss"
        )
        words.append(
            f"The certified mechanism misses {what} by {round_up(proof.residual):.3g}, exactly."
        )
    if claimed is not None and not request.scale.proves(objective, claimed, 1e-9):
        words.append(
            f"The solver claims {claimed:.12g}, which rests on its tolerances; certified is {objective:.12g}."
        )
    return words
