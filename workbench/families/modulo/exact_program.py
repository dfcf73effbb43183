"""Solve the linear programs of modulo noise in exact arithmetic, and judge what a solver proves.

`solve_exactly` gives a solution that is private in exact arithmetic. `is_solution_proven` and
`why_unproven` answer whether a solver's solution is proven optimal.

Notation. f is the PMF of the noise η, and μ a shift (a difference of neighbouring answers). (14) is
the linear program of pure DP in Kadam et al. 2024: f(η) <= e^ε f(η+μ). PDP noise may violate this
inequality at some (η, μ), if the violating η of each μ weigh at most δ; the list of these (η, μ) is
called a pattern. With a given pattern the program is linear.

Privacy. e^ε is not rational. The programs use E = ⌊2^112 e^ε (1-τ)⌋/2^112 instead of e^ε, and
δ(1-τ) instead of δ, with τ = 2^-64. Both are smaller than the true values, so every solution is
private, also after its masses are rounded. This raises the loss by about 1e-19.

Lower bound. A notion without patterns (δ = 0, or dp) has one linear program, whose dual multipliers
prove a lower bound for every mechanism. For this they are evaluated in the program with
E = ⌈2^112 e^ε⌉/2^112 and δ rounded up: every private mechanism is feasible in it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.errors import NotCertified
from workbench.exact.numbers import exp_bounds, round_down
from workbench.families.modulo.request import ModuloRequest
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.solvers.arrays import Flags, Ints, Vector
from workbench.solvers.exact.rational_lp import RationalLP, RationalPoint
from workbench.solvers.exact.rational_refinement import read_held_sides, solve_rational
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import DualValues, PointStatus, Solution, Termination

PROGRAM_MARGIN = Fraction(1, 1 << 64)  # τ: budgets are lowered by this share to absorb rounding.
MAX_EXACT_ROWS = 60_000  # If a program has more rows, only the solver's floats are repaired.
_RATIO_BITS = 112  # e^ε is rounded to this many bits.
_DIGIT_BITS = 320  # Exact numbers of the program are rounded to this many bits.
MIN_SEEN_MASS = 1e-7  # A mass above this is "seen": the solver knows several of its digits.

# Terminations after which looser tolerances or exact arithmetic may still give an answer.
SOLVER_FAILURES = frozenset((Termination.NUMERICAL, Termination.ERROR, Termination.INFEASIBLE))

# The reasons for which a solver stopped, for messages.
LIMIT_NAMES = {
    Termination.TIME_LIMIT: "the time limit",
    Termination.NODE_LIMIT: "the node limit",
    Termination.ITERATION_LIMIT: "the iteration limit",
    Termination.INTERRUPTED: "an interrupt",
    Termination.NUMERICAL: "numerical trouble",
}


def solve_exactly(
    request: ModuloRequest, program: Program, solution: Solution, time_limit: float | None
) -> RationalPoint:
    """Solve the linear program of a violation pattern in rationals.

    Args:
        request: the request, whose budgets are the parameters of the program.
        program: the program of a pattern.
        solution: a solver's solution of the request; its basis is used if its program is the same.
        time_limit: the time limit in seconds, or None for no limit.

    Returns:
        The exact solution. Its bound is None if the notion has patterns; otherwise it is a lower
        bound for every private mechanism.

    Raises:
        NotCertified: the program could not be solved, or there was no time.
    """
    with translate_errors():
        # A basis of another program is of no use.
        is_same = solution.program is program
        # The cost factor and the shift of the objective are undone in the result.
        cost_factor = program.cost
        shift = Fraction(program.shift)
        template = replace(program.template, c=program.template.c * cost_factor)
        program = replace(program, template=template)
        relaxed_program = None
        if not request.bounds.bounds_mass:
            relaxed_program = _make_exact_program(request, program, is_relaxed=True)
        basis = None
        if is_same and solution.solver == "highs":
            basis = solution.basis
        lifted_basis = None
        if basis is not None:
            lifted_basis = _lift_basis(request, program.shape, solution["f"], basis)
        point = solve_rational(
            _make_exact_program(request, program),
            bound_program=relaxed_program,
            time_limit=time_limit,
            basis=basis,
            held_sides=lifted_basis,
        )
    bound = None if point.bound is None else point.bound / Fraction(cost_factor) + shift
    return replace(point, bound=bound, objective=point.objective / Fraction(cost_factor) + shift)


def _make_exact_program(
    request: ModuloRequest, program: Program, *, is_relaxed: bool = False
) -> RationalLP:
    """Make the linear program of a pattern in exact numbers.

    Args:
        request: the request, whose budgets are the parameters.
        program: the linear program of the pattern, in floats, with its parameters.
        is_relaxed: rounds the budgets up, so that every private mechanism is feasible. Otherwise
            they are lowered, so that every feasible mechanism is private.
    """

    def round_ratio(epsilon: Fraction) -> Fraction:
        """Return E of the module header, for e^ε."""
        low, high = exp_bounds(epsilon, _RATIO_BITS)
        if is_relaxed:
            return Fraction(high, 1 << _RATIO_BITS)
        # For a tiny ε the lowered ratio may be below 1, which e^ε never is.
        lowered_ratio = max(1 << _RATIO_BITS, int(low * (1 - PROGRAM_MARGIN)))
        return Fraction(lowered_ratio, 1 << _RATIO_BITS)

    def round_limit(limit: Fraction) -> Fraction:
        """Return δ or max_loss, rounded up or lowered."""
        if is_relaxed:
            return Fraction(math.ceil(limit * (1 << _DIGIT_BITS)), 1 << _DIGIT_BITS)
        return limit * (1 - PROGRAM_MARGIN)

    _, epsilons = request.bounds.epsilon_levels
    values = {
        "exp_epsilon": [round_ratio(epsilon) for epsilon in epsilons],
        "delta": [round_limit(request.bounds.delta)],
        "max_loss": [round_limit(request.loss_limit or Fraction(0))],
    }
    return RationalLP.from_program(program, values, _DIGIT_BITS)


def _lift_basis(
    request: ModuloRequest, shape: Ints, f: Vector, basis: Any
) -> tuple[Flags, Flags] | None:
    """Guess a basis of LP (14) that has tight rows at masses that are too small for a solver.

    A solver sets such masses to 0. At the optimum such a mass is as small as the larger masses
    allow: it follows from a seen mass by steps f(η+μ) = e^-ε f(η). The rows of these steps are
    tight. Each round of the loop below extends the paths by one step.

    Args:
        request: the checked request of the design.
        shape: the numbers of rows and columns of the program.
        f: the masses that the solver returned, shape (N,).
        basis: the final basis of HiGHS.

    Returns:
        Flags of the columns and rows that are at their lower limits, and flags of those at their
        upper limits; columns come first. None for other programs than LP (14), and if all masses
        are larger than MIN_SEEN_MASS.
    """
    question = request.question
    epsilons = request.budgets
    is_seen = f > MIN_SEEN_MASS
    # LP (14) has a row for the sum of the masses, then a row for each shift and noise value.
    if shape != (1 + len(epsilons) * f.size, f.size) or is_seen.all():
        return None
    targets = np.stack([question.shifted_positions(shift) for shift in epsilons])
    sources = np.argsort(targets, axis=1)  # The η of every η + μ.
    small_indices = np.flatnonzero(~is_seen)
    log_masses = np.full(f.size, -np.inf)
    log_masses[is_seen] = np.log(f[is_seen])
    log_ratios = np.array([[float(epsilon)] for epsilon in epsilons.values()])
    for _ in small_indices:
        # One row for each shift: the smallest ln f(η+μ) that f(η) allows.
        floors = log_masses[sources[:, small_indices]] - log_ratios
        previous = log_masses[small_indices]
        log_masses[small_indices] = floors.max(axis=0)
        if (previous == log_masses[small_indices]).all():
            break
    at_lower, at_upper = read_held_sides(basis)
    tight_rows = at_upper[1 + f.size :].reshape(targets.shape)
    tight_rows &= is_seen & is_seen[targets]
    deciding_shifts = floors.argmax(axis=0)
    tight_rows[deciding_shifts, sources[deciding_shifts, small_indices]] = True
    # No mass is at a limit, because all are > 0.
    at_lower[: f.size] = False
    at_upper[: f.size] = False
    return at_lower, at_upper


def is_solution_proven(solution: Solution, scale: LossScale) -> bool:
    """Check whether a solution is proven optimal, or within the allowed gap of the optimum.

    Args:
        solution: a solver's solution.
        scale: the scale of the losses, by which gaps are judged.
    """
    if why_unproven(solution, scale) is None:
        return True
    return solution.termination is Termination.GAP_LIMIT


def why_unproven(solution: Solution, scale: LossScale) -> str | None:
    """Return why a solution is not proven optimal, as the end of a sentence; None if it is.

    The status of the solver is not enough. If there is a bound, it must agree with the objective
    on the scale of the losses, whatever the solver's tolerances call optimal.

    Args:
        solution: a solver's solution.
        scale: the scale of the losses, by which gaps are judged.
    """
    if solution.termination is not Termination.OPTIMAL:
        status = f"its status {solution.termination}"
        limit = LIMIT_NAMES.get(solution.termination, status)
        return f"stopped at {limit} before proving an optimum"
    objective = solution.objective
    bound = solution.bound
    assert objective is not None
    if bound is None or scale.settles(objective, bound):
        return None
    return "says optimal, but its bound does not prove it"


def should_refine(request: ModuloRequest, solution: Solution) -> bool:
    """Check whether exact arithmetic may prove a solution of a linear program that is not proven.

    This is tried for linear programs of moderate size. With a large e^ε as a coefficient, the error
    of a solver's duals may exceed a tiny error rate; with a small ε, e^ε - 1 may be below its
    tolerances.

    Args:
        request: the checked request of the design.
        solution: a solver's solution of its program.
    """
    row_count = request.question.order * len(request.budgets)
    if request.bounds.bounds_mass or row_count > MAX_EXACT_ROWS:
        return False
    if solution.termination is Termination.OPTIMAL:
        return why_unproven(solution, request.loss_scale) is not None
    return solution.termination in SOLVER_FAILURES and solution.ray is None


def refine_exactly(
    request: ModuloRequest, solution: Solution, time_limit: float | None
) -> Solution:
    """Solve the program exactly, and put the exact point and bound into a solver's solution.

    Args:
        request: the checked request of the design.
        solution: a solver's solution of its linear program.
        time_limit: seconds, or None for no limit.

    Returns:
        The solution with the exact point and bound. The given solution if the exact program cannot
        be solved in time or gives no bound.
    """
    clock = Deadline()
    try:
        exact = solve_exactly(request, request.model().program, solution, time_limit)
    except NotCertified:
        return solution
    if exact.bound is None:
        return solution
    note = (
        f"refined in exact arithmetic; {solution.solver} by itself says "
        f"{solution.raw_status!r}, which is no proof"
    )
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
        notes=(*solution.notes, note),
    )
