"""Turn a solver's noise into certified noise, which is private in exact arithmetic.

Solvers return floats that violate privacy by rounding errors. `certify_noise` (for notions of one
bound on ratios: dp, pdp, pure, metric) and `find_cheapest_repair` (for notions of several convex
bounds, such as zCDP) make exactly private noise from them. They return the noise of smallest loss,
or of smallest δ if δ is minimised.

Notation. f is the PMF of the noise η, and μ a shift (a difference of neighbouring answers). A
violation is a pair (η, μ) with f(η) > e^ε f(η+μ); the pattern V_μ is the set of the η that violate
the bound for μ.

If the pattern of the solver's solution is fixed, every model of `workbench.models.modulo.program`
is a linear program. It is solved in rationals to 230 bits
(`workbench.families.modulo.exact_program`).

Candidates for one bound, in this order: the exact optimum of that program, the solver's floats, the
exact optimum without any violation, and the PMF of the closed form. The floats are only used if no
exact program was solved. The last two are only made if the others are worse than the solver's
claim.

Candidates for several bounds: the solver's masses, and the same masses after tiny ones are raised,
so that the tails fall no faster than the larger masses do.

Every candidate is repaired (`workbench.privacy.repair`) and audited. The accepted candidate of
least loss is returned.
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
from workbench.exact.numbers import round_up
from workbench.families.modulo.exact_program import (
    MAX_EXACT_ROWS,
    MIN_SEEN_MASS,
    solve_exactly,
)
from workbench.families.modulo.request import ModuloRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models.modulo.constraints import compile_constraints
from workbench.models.oracles import ClosedForm
from workbench.notions import get_delta_notion
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
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Solution

# If every candidate exceeds the solver's claim by more than this share, more candidates are tried.
_CLAIM_TOLERANCE = Fraction(1, 10**12)
_MASS_BITS = 120  # Before tails are raised, masses are rounded to this many bits.
_MAX_RELATIVE_GAP = 1e-7  # A repair within this gap of the bound ends the search.
_DELTA_BITS = 200  # A minimised δ that is no rational is rounded up to this many bits.
_MAX_TAIL_DENOMINATOR = 1 << 20  # The privacy loss of a tail is rounded to this denominator.
# Tails fall by at least this privacy loss, also if no mass is seen.
_MIN_TAIL_PRIVACY_LOSS = 1e-3
_MAX_UNNOTED_SHORTFALL = 1e-9  # A loss within this relative gap of the solver's claim has no note.
# A raised tail falls by one of these multiples of the largest privacy loss of the seen masses.
_TAIL_FACTORS = (1, Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), 2)


@dataclass(frozen=True)
class CertifiedNoise:
    """Noise that the exact audit proves private for its request.

    Attributes:
        mechanism: the noise, with exact masses.
        privacy: the exact audit of the noise.
        origin: where its masses come from, for the report.
        objective: the exact loss of the noise, or its exact δ, rounded up, if δ is minimised.
        delta: the δ that is certified: that of the request, or the least one reached.
        lower_bound: a proven lower bound for all mechanisms with the same violations; None if
            none is proven.
        residual: the largest exact amount by which the noise violates the request's extra linear
            constraints or its max_loss; 0 if it violates none. None if the constraints are not
            linear in f alone, so that the amount is unknown.
    """

    mechanism: AdditiveNoise
    privacy: Privacy
    origin: str
    objective: Fraction
    delta: Fraction
    lower_bound: Fraction | None = None
    residual: Fraction | None = Fraction(0)


class _Candidates:
    """Collect repaired mechanisms, and the reasons why other repairs failed.

    Args:
        sort_key: maps a candidate to a number or tuple; the candidate with the least one is the
            best.

    Attributes:
        mechanisms: the candidates that were made: `CertifiedNoise` or `Privacy` of noise.
        reasons: the messages of failed repairs, as keys, in order and without repetition.
    """

    def __init__(self, sort_key: Callable[[Any], Any]) -> None:
        self.sort_key = sort_key
        self.mechanisms: list[Any] = []
        self.reasons: dict[str, None] = {}

    def attempt(self, make: Callable[[], Any]) -> bool:
        """Add the candidate that a function makes. Returns whether it made one."""
        try:
            self.mechanisms.append(make())
        except NotCertified as error:
            self.reasons[str(error)] = None
            return False
        return True

    @property
    def best(self) -> Any:
        """Return the best candidate. Raises NotCertified if there is none."""
        if not self.mechanisms:
            reasons = " ".join(self.reasons)
            raise NotCertified(f"No repaired mechanism meets the request exactly: {reasons}")
        return min(self.mechanisms, key=self.sort_key)


def certify_noise(
    request: ModuloRequest,
    solution: Solution,
    closed_form: Callable[[], ClosedForm | None] = lambda: None,
    deadline: Deadline | None = None,
) -> CertifiedNoise:
    """Find the best certified noise near a solver's solution.

    Args:
        request: a request under a notion of one bound on ratios.
        solution: the solution that the solver returned.
        closed_form: returns the closed form of least loss with its PMF (N,), or None. It is called
            only if all other candidates are worse than the solver's claim.
        deadline: after it no exact program is solved, and only the solver's floats are repaired.
            None: there is no deadline.

    Returns:
        The candidate of least objective among those that satisfy the extra constraints; if there
        are none, the candidate of least objective.

    Raises:
        NotCertified: no candidate is private in exact arithmetic.
    """
    # Candidates that satisfy the extra constraints (residual 0) or whose residual is unknown come
    # first.
    candidates = _Candidates(lambda candidate: (bool(candidate.residual), candidate.objective))
    raw = AdditiveNoise.from_pmf(request.question, np.maximum(solution["f"], 0.0))
    solve_pattern = partial(_solve_pattern, request, solution, deadline=deadline or Deadline())
    is_small = request.question.order * len(request.budgets) <= MAX_EXACT_ROWS
    if is_small:
        for origin, pattern in _list_patterns(request, solution, raw):
            candidates.attempt(partial(solve_pattern, pattern, origin))
    if not candidates.mechanisms:
        candidates.attempt(
            lambda: _repair_masses(request, raw.exact_pmf, pattern=None, origin="solver's floats")
        )
    misses_claim = _misses_claim(candidates, solution)
    if misses_claim and is_small and request.bounds.bounds_mass:
        # Noise without any violation is always feasible.
        order = request.question.order
        no_violation = {shift: np.zeros(order, dtype=bool) for shift in request.budgets}
        candidates.attempt(lambda: solve_pattern(no_violation, "exact optimum without violations"))
    if misses_claim and request.aim.constraints is None:
        law = closed_form()
        if law is not None:
            _add_closed_form(request, candidates, law, solve_pattern if is_small else None)
    best: CertifiedNoise = candidates.best
    if request.bounds.bounds_mass:
        return best
    # Without patterns all candidates solve one program, so every bound holds for all of them.
    bounds = [noise.lower_bound for noise in candidates.mechanisms if noise.lower_bound is not None]
    return replace(best, lower_bound=max(bounds, default=None))


def _misses_claim(candidates: _Candidates, solution: Solution) -> bool:
    """Check whether all candidates are worse than the objective that the solver claims."""
    if not candidates.mechanisms:
        return True
    claimed_objective = solution.objective
    if claimed_objective is None:
        return False
    limit = Fraction(claimed_objective) * (1 + _CLAIM_TOLERANCE)
    return bool(candidates.best.objective > limit)


def _add_closed_form(
    request: ModuloRequest,
    candidates: _Candidates,
    law: ClosedForm,
    solve_pattern: Callable[[Pattern | None, str], CertifiedNoise] | None,
) -> None:
    """Add the PMF of a closed form, and the exact optimum of its pattern.

    Nothing is added if the closed form has no PMF or is no better than the best candidate.

    Args:
        request: the checked request of the design.
        candidates: the candidates so far.
        law: the closed form.
        solve_pattern: solves the exact program of a pattern; None if the program is too large.
    """
    if law.pmf is None:
        return
    if candidates.mechanisms and law.value >= candidates.best.objective:
        return
    noise = AdditiveNoise.from_pmf(request.question, law.pmf)
    candidates.attempt(
        lambda: _repair_masses(request, noise.exact_pmf, pattern=None, origin="closed form")
    )
    if solve_pattern is not None:
        pattern = _find_pattern(request, noise)
        origin = "exact optimum of the closed form's pattern"
        candidates.attempt(partial(solve_pattern, pattern, origin))


def _list_patterns(
    request: ModuloRequest, solution: Solution, raw: AdditiveNoise
) -> list[tuple[str, Pattern | None]]:
    """List the violation patterns whose exact programs are solved.

    The first is the pattern of the solver's masses. If the program has a binary variable for each
    violation (named u_ and the shift), and their values are another pattern, it is the second.

    Returns:
        (origin, pattern) pairs. The pattern is None if the notion has no patterns.
    """
    mass_pattern = _find_pattern(request, raw)
    if mass_pattern is None:
        return [("exact optimum", None)]
    patterns: list[tuple[str, Pattern | None]] = [("exact optimum of the pattern", mass_pattern)]
    labels = {shift: f"u_{'_'.join(map(str, shift))}" for shift in request.budgets}
    if set(labels.values()) <= {block.name for block in solution.program.variables}:
        binaries = {shift: solution[label] > 0.5 for shift, label in labels.items()}
        if any((binaries[shift] != mass_pattern[shift]).any() for shift in binaries):
            patterns.append(("exact optimum of the solver's binaries", binaries))
    return patterns


def _find_pattern(request: ModuloRequest, mechanism: AdditiveNoise) -> Pattern | None:
    """Find the violations of a mechanism; None for all notions but pdp with δ > 0."""
    bounds = request.bounds
    return find_violation_pattern(mechanism, bounds.epsilons) if bounds.bounds_mass else None


def _solve_pattern(
    request: ModuloRequest,
    solution: Solution,
    pattern: Pattern | None,
    origin: str,
    deadline: Deadline,
) -> CertifiedNoise:
    """Solve the exact program of a pattern, repair its solution and audit it.

    Raises NotCertified, also if there is no time.
    """
    if deadline.has_passed:
        raise NotCertified("There was no time left for the exact program of the solver's pattern.")
    program = request.model(pattern).program
    point = solve_exactly(request, program, solution, deadline.remaining_seconds)
    f = program.block("f")
    masses = slice(f.start, f.start + f.size)
    if request.aim.constraints is not None:
        try:
            with translate_errors():
                vertex = point.solve_vertex()[masses]
            return _repair_masses(request, vertex, pattern, origin, point.bound, keeps_masses=True)
        except NotCertified:
            pass  # The repair below changes masses, so the constraints hold up to the residual.
    return _repair_masses(request, point.x[masses], pattern, origin, point.bound)


def _repair_masses(
    request: ModuloRequest,
    masses: Sequence[Fraction],
    pattern: Pattern | None,
    origin: str,
    lower_bound: Fraction | None = None,
    *,
    keeps_masses: bool = False,
) -> CertifiedNoise:
    """Repair masses (N,) to private noise and audit it.

    Args:
        request: the checked request of the design.
        masses: exact masses, private up to rounding.
        pattern: the violations that are allowed. None: those that the masses have, if the notion
            allows any.
        origin: where the masses come from, for the report.
        lower_bound: a proven lower bound on the objective; None without one.
        keeps_masses: whether the masses are audited as they are, without a repair.

    Raises:
        NotCertified: the repaired noise is not private.
    """
    question = request.question
    minimises_delta = request.aim.minimise == "delta"
    # A minimised δ is whatever the masses reach; the audit computes it.
    delta = Fraction(1)
    if not minimises_delta and request.claim.delta is not None:
        delta = request.claim.delta
    claim = Claim(request.claim.notion, request.audited_claim.epsilon, delta)
    if keeps_masses:
        privacy = audit(AdditiveNoise(question, masses), claim.epsilon)
    else:
        privacy = repair_noise(question, masses, claim, pattern)
    mechanism = privacy.mechanism
    assert isinstance(mechanism, AdditiveNoise)
    objective = compute_exact_loss(mechanism, request.losses)
    violation = _compute_residual(request, mechanism)
    if minimises_delta:
        limit = request.loss_limit
        assert limit is not None
        if violation is not None:
            violation = max(objective - limit, violation)
        delta = _round_delta(request, privacy)
        objective = delta
        claim = Claim(claim.notion, claim.epsilon, delta)
    if not privacy.holds(claim):
        raise NotCertified(privacy.describe_verdict(claim, "The repaired mechanism"))
    return CertifiedNoise(
        mechanism, privacy, origin, objective, delta, lower_bound, residual=violation
    )


def _round_delta(request: ModuloRequest, privacy: Privacy) -> Fraction:
    """Return the exact δ of an audit, rounded up if it is no rational number."""
    measurement = privacy.worst_result(request.claim.notion).measurement
    delta = get_delta_notion(request.claim.notion).delta_upper_bound(measurement)
    if measurement.b == 0:  # δ is a - b e^ε, hence rational.
        return delta
    return Fraction(math.ceil(delta * (1 << _DELTA_BITS)), 1 << _DELTA_BITS)


def _compute_residual(request: ModuloRequest, mechanism: AdditiveNoise) -> Fraction | None:
    """Compute the largest violation of the extra constraints, exactly.

    Returns None if the constraints are not linear in f alone.
    """
    if request.aim.constraints is None:
        return Fraction(0)
    with translate_errors():
        program = compile_constraints(request.aim.constraints, request.question.order)
    return find_max_violation(program, mechanism.exact_pmf)


def find_cheapest_repair(
    request: ModuloRequest, raw: AdditiveNoise, bound: Fraction | float | None
) -> AdditiveNoise:
    """Find the repaired noise of least loss under several convex bounds.

    A repair mixes the noise with uniform noise. Masses below a solver's tolerance are rounding
    errors, and only a large share of uniform noise would repair their ratios. Other candidates
    therefore have these masses raised to tails first: tails that fall by the largest privacy loss
    of the seen masses, or by a multiple of it (_TAIL_FACTORS).

    Args:
        request: a request under a notion of several bounds.
        raw: the solver's noise.
        bound: a lower bound on the loss. The search ends at a repair within _MAX_RELATIVE_GAP of
            it. None: all candidates are tried.

    Returns:
        The exactly private noise of least loss.

    Raises:
        NotCertified: no repair is private.
    """
    question = request.question
    f = raw.pmf
    weights = [int(mass * 2.0**_MASS_BITS) for mass in f.tolist()]
    shifted_masses = np.stack(
        [f[question.shifted_positions(shift)] for shift in question.differences]
    )
    is_seen = (f > MIN_SEEN_MASS) & (shifted_masses > MIN_SEEN_MASS)
    with np.errstate(divide="ignore", invalid="ignore"):
        privacy_losses = np.log(f / shifted_masses)
        privacy_loss = privacy_losses.max(initial=_MIN_TAIL_PRIVACY_LOSS, where=is_seen)
    candidates = _Candidates(
        lambda repaired: compute_exact_loss(repaired.mechanism, request.losses)
    )
    for factor in (None, *_TAIL_FACTORS):  # None: the masses as they are.
        masses = raw.exact_pmf
        if factor is not None:
            # Short rationals keep the exact powers of the tails short.
            tail_privacy_loss = Fraction(float(privacy_loss) * factor).limit_denominator(
                _MAX_TAIL_DENOMINATOR
            )
            budgets = dict.fromkeys(question.differences, tail_privacy_loss)
            masses = [*map(Fraction, raise_weights(question, weights, budgets, pattern=None))]
        is_repaired = candidates.attempt(
            partial(repair_noise, question, masses, request.audited_claim)
        )
        if is_repaired and bound is not None:
            loss = float(candidates.sort_key(candidates.mechanisms[-1]))
            if request.loss_scale.proves(loss, bound, _MAX_RELATIVE_GAP):
                break
    cheapest: AdditiveNoise = candidates.best.mechanism
    return cheapest


def describe_shortfalls(
    request: ModuloRequest, proof: CertifiedNoise, solution: Solution
) -> list[str]:
    """Describe by how much certified noise misses the constraints and the solver's claim.

    Args:
        request: the checked request of the design.
        proof: the certified noise.
        solution: the solution that the solver returned.

    Returns:
        Notes for the report; empty if the noise misses nothing.
    """
    notes = []
    claimed_objective = solution.objective
    objective = float(proof.objective)
    if proof.residual is None:
        notes.append(CONSTRAINTS_NOTE)
    elif proof.residual:
        limit = "its max_loss"
        if request.aim.constraints is not None:
            limit = "the extra constraints or its max_loss"
        amount = f"{round_up(proof.residual):.3g}"
        notes.append(f"The certified mechanism misses {limit} by {amount}, exactly.")
    if claimed_objective is not None and not request.loss_scale.proves(
        objective, claimed_objective, _MAX_UNNOTED_SHORTFALL
    ):
        notes.append(
            f"The solver claims {claimed_objective:.12g}, which rests on its tolerances; "
            f"certified is {objective:.12g}."
        )
    return notes
