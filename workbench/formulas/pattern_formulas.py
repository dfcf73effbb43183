"""Compute the optimal loss of modulo noise under PDP at one ε as a formula in δ, piece by piece.

Notation: f is the law of the noise η, and μ a difference of neighbouring answers. A pair η, η + μ
is broken if f(η) > e^ε f(η + μ); PDP bounds the mass of broken pairs by δ. The pattern of a noise
is the set of its broken pairs. For a given pattern the minimal loss is a linear program and has a
formula in e^ε, affine in δ. `workbench.models.modulo.frontier.compute_delta_frontier` proves at one
ε, to 1e-9, that no other pattern has a smaller loss. A formula is the optimum there, and at another
ε only while its pattern is optimal.

    >>> import workbench as wb
    >>> noise = wb.ModuloNoise(n=4, max_shift=2, directed=True)
    >>> print(wb.formula(noise, notion="pdp", epsilon=1, delta="0..0.2"))
    best noise modulo 5, error-rate loss, under PDP at ε = 1
    0 ≤ δ ≤ 0.18335: 1 - e^(2ε) / (e^(2ε) + 2e^ε + 2)
    0.18335 ≤ δ ≤ 0.196612: 1 - e^ε δ
    0.196612 ≤ δ ≤ 0.2: 1 - e^(2ε) / (e^(2ε) + 2e^ε + 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.numbers import ONE, Real, exp_interval
from workbench.exact.objects import Progress, Record
from workbench.formulas.formula_object import Formula
from workbench.formulas.pieces import Part, Piece
from workbench.models.modulo.level_frontier import FrontierPiece
from workbench.pipeline.formula_program import FormulaProgram, Interval
from workbench.pipeline.registry import find_family
from workbench.privacy.repair import Pattern, find_violation_pattern
from workbench.solvers.exact.parametric import Vertex
from workbench.solvers.exact.polynomials import ZERO, Affine, Root
from workbench.solvers.exact.regions import Formula as RegionFormula
from workbench.solvers.exact.regions import find_meeting_delta, find_region_around

if TYPE_CHECKING:
    from workbench.families.modulo.request import ModuloRequest
    from workbench.questions.modulo_noise import ModuloNoise

# A formula whose losses or ends differ from the traced frontier by more than this is refused.
_TRACE_TOLERANCE = 1e-7
# A loss that exceeds its lower bound by at most this counts as optimal.
_PROOF_TOLERANCE = 1e-9
# Two pieces whose ends are at most this far apart are joined.
_MAX_JOINT_GAP = 1e-18
_EXP_BITS = 64  # e^ε is enclosed to this many bits.
# The pattern of a piece of width w in δ is computed at a rational δ near its middle, whose
# denominator is at most this number divided by w, plus 1. So this δ is within about w/64 of the
# middle.
_DELTA_RESOLUTION = 64


@dataclass(frozen=True)
class _PatternSolution:
    """A piece of the frontier with its formula.

    Attributes:
        frontier_piece: The piece of the frontier.
        vertex: The vertex of the program whose value is the formula.
        program: The program of the pattern.
        pattern: The description of the pattern.
    """

    frontier_piece: FrontierPiece
    vertex: Vertex
    program: FormulaProgram
    pattern: str


def solve_pattern_formula(
    request: ModuloRequest, deltas: Interval, time_limit: float | None, progress: Progress | None
) -> Formula:
    """Return the loss as a formula in δ, piece by piece, at the ε of the request.

    Args:
        request: The request of the family modulo, under PDP.
        deltas: The interval of δ, within [0, 1].
        time_limit: The time limit in seconds; None for none.
        progress: Called every few seconds with a sentence about what is proven.

    Raises:
        InvalidRequest: The request has no formula.
        NotProven: No piece is proven within the time limit.
    """
    traced_pieces = request.family.trace_patterns(request, deltas, time_limit, progress)
    epsilon = request.claim.epsilon
    assert isinstance(epsilon, Fraction)
    low, _ = deltas
    solutions: list[_PatternSolution] = []
    unproven: list[tuple[float, float]] = []
    for piece in traced_pieces:
        if piece.delta_high <= low:
            continue
        solution = None
        if piece.is_proven:
            solution = _solve_traced_piece(request, piece, max(piece.delta_low, float(low)))
        if solution is None:
            unproven.append((piece.delta_low, piece.delta_high))
        elif _can_extend(solutions, solution) and not unproven:
            extended_piece = replace(solutions[-1].frontier_piece, delta_high=piece.delta_high)
            solutions[-1] = replace(solutions[-1], frontier_piece=extended_piece)
        else:
            solutions.append(solution)
    if not solutions:
        raise NotProven("No piece of the frontier is proven within the time limit.")
    return Formula(
        f"{solutions[0].program.title}, under PDP at ε = {float(epsilon):g}",
        _make_delta_pieces(solutions, deltas, epsilon),
        unproven=tuple(unproven),
        proof=_refuse_proof_file,
        proven_epsilon=epsilon,
    )


def _can_extend(solutions: Sequence[_PatternSolution], solution: _PatternSolution) -> bool:
    """Return whether a solution has the same formula as the last one."""
    return bool(solutions) and solutions[-1].vertex.value == solution.vertex.value


def find_pattern_value(question: ModuloNoise, epsilon: Real, delta: Fraction) -> Affine | None:
    """Return the formula of the minimal error rate under PDP around a point.

    Args:
        question: The query with its neighbouring answers.
        epsilon: The value of ε, > 0.
        delta: The value of δ, in [0, 1].

    Returns:
        The formula, a function of e^ε and δ. None if no formula is proven there: the solver's bound
        is more than 1e-9 below the loss, or no pattern fits.
    """
    request: Any = find_family(question).make_request(
        question, epsilon=epsilon, delta=delta, notion="pdp"
    )
    design = request.family.design_request(request)
    loss = design.objective
    if design.bound is None or design.bound < loss - _PROOF_TOLERANCE:
        return None
    # A short piece around δ, so that `_solve_traced_piece` can find the formula of a point.
    radius = float(delta) * _TRACE_TOLERANCE
    low = float(delta) - radius
    high = float(delta) + radius
    piece = FrontierPiece(
        low, high, value_low=loss, value_high=loss, is_proven=True, bound_low=loss, bound_high=loss
    )
    solution = _solve_traced_piece(request, piece, piece.delta_low)
    return None if solution is None else solution.vertex.value


def _refuse_proof_file() -> Record:
    """Raise InvalidRequest, because no certificate file can hold the proof."""
    raise InvalidRequest(
        "The formulas of PDP rest on a search over patterns, which no file proves again. "
        "Save .tex, .py or .csv."
    )


def _solve_traced_piece(
    request: ModuloRequest, piece: FrontierPiece, low: float
) -> _PatternSolution | None:
    """Return the formula of a piece of the frontier from a δ on; None if no formula fits it."""
    width = piece.delta_high - low
    middle = Fraction((low + piece.delta_high) / 2)
    delta = middle.limit_denominator(int(_DELTA_RESOLUTION / width) + 1)
    # The solver's point may show a wrong pattern; the repaired mechanism is tried next.
    for check in ("audit", "certify"):
        point_request = request.with_values(delta=delta, check=check)
        mechanism = point_request.family.design_request(point_request).mechanism
        broken_pairs = find_violation_pattern(mechanism, point_request.budgets)
        # The program is in powers e^(r ε), with the numbers r where a request has its ε. At ε = 1
        # all r are 1, so the variable of the formula is e^ε.
        program = point_request.with_values(epsilon=ONE).formula_program(broken_pairs)
        try:
            vertex = _find_optimal_vertex(program, point_request, delta)
        finally:
            program.program.close()
        if vertex is not None and _fits_piece(vertex, point_request, piece, low):
            return _PatternSolution(piece, vertex, program, _describe_pattern(broken_pairs))
    return None


def _fits_piece(vertex: Vertex, request: ModuloRequest, piece: FrontierPiece, low: float) -> bool:
    """Return whether the value of a vertex equals the traced loss at both ends of a piece."""
    x_low, x_high = _enclose_exp_epsilon(request)
    x = (x_low + x_high) / 2
    for delta in (low, piece.delta_high):
        loss = float(vertex.value(x, Fraction(delta)))
        if abs(loss - piece.value_at(delta)) > _TRACE_TOLERANCE:
            return False
    return True


def _describe_pattern(broken_pairs: Pattern) -> str:
    """Write a pattern as "difference: noise values" of the broken pairs."""
    parts = []
    for difference, flags in broken_pairs.items():
        if flags.any():
            noise_values = ",".join(map(str, np.flatnonzero(flags).tolist()))
            parts.append(f"{'x'.join(map(str, difference))}: {noise_values}")
    return "; ".join(parts) or "none"


def _enclose_exp_epsilon(request: ModuloRequest) -> Interval:
    """Return rationals below and above e^ε."""
    assert isinstance(request.claim.epsilon, Fraction)
    return exp_interval(request.claim.epsilon, _EXP_BITS)


def _find_optimal_vertex(
    program: FormulaProgram, request: ModuloRequest, delta: Fraction
) -> Vertex | None:
    """Return the optimal vertex of a pattern at e^ε and a δ.

    The result is None if the proven region does not contain e^ε or if there is no mechanism.
    """
    low, high = _enclose_exp_epsilon(request)
    region = find_region_around(program.program, (low + high) / 2, (delta, delta))
    solution, *_ = region.formulas
    is_covered = region.low.is_below(low) and (region.high is None or region.high.is_above(high))
    if not is_covered or solution.value is None:
        return None
    return solution.vertex


def _make_delta_pieces(
    solutions: Sequence[_PatternSolution], deltas: Interval, epsilon: Fraction
) -> tuple[Piece, ...]:
    """Return the pieces by rising δ, with ends that are functions of e^ε.

    Two pieces meet where their formulas are equal, or where the second pattern becomes feasible.
    Both are functions of e^ε. The end of a piece of the traced frontier is only a float near one of
    them. If no such function is near the float, the float itself becomes the end.
    """
    x_low, x_high = map(Root.from_rational, exp_interval(epsilon, _EXP_BITS))
    first_delta, last_delta = deltas
    lows = [Affine.from_number(first_delta)]
    highs = []
    for left_solution, right_solution in pairwise(solutions):
        end = left_solution.frontier_piece.delta_high
        start = right_solution.frontier_piece.delta_low
        is_joined = start - end <= _MAX_JOINT_GAP
        candidates = []
        if is_joined:
            candidates.append(
                find_meeting_delta(left_solution.vertex.value, right_solution.vertex.value)
            )
        candidates += _feasibility_thresholds(right_solution.vertex, x_low.low)
        low = _choose_near(candidates, start, x_low.low)
        lows.append(low)
        highs.append(low if is_joined else Affine.from_number(Fraction(end)))
    highs.append(Affine.from_number(last_delta))
    pieces = []
    for solution, low, high in zip(solutions, lows, highs, strict=True):
        vertex = solution.vertex
        # The formula of one vertex, which is optimal at both ends of δ.
        region_formula = RegionFormula(
            value=vertex.value, low=low, high=high, start=vertex, vertex=vertex
        )
        part = Part(x_low, x_high, region_formula, solution.program.masses)
        pieces.append(
            Piece(x_low, x_high, (low, high), vertex.value, (part,), pattern=solution.pattern)
        )
    return tuple(pieces)


def _choose_near(candidates: Sequence[Affine], delta: float, x: Fraction) -> Affine:
    """Return the first function whose value at x is near a δ; without one, the δ itself."""
    for candidate in candidates:
        if candidate.denominator and abs(float(candidate(x)) - delta) <= _TRACE_TOLERANCE:
            return candidate
    return Affine.from_number(Fraction(delta))


def _feasibility_thresholds(vertex: Vertex, x: Fraction) -> list[Affine]:
    """Return the δ from which on each condition of a vertex holds at x, as functions of x.

    A condition is c(x) + δ s(x) >= 0. It has the threshold δ = -c(x)/s(x) if s(x) > 0; other
    conditions are left out.
    """
    return [
        Affine.from_ratio(-condition.constant, ZERO, condition.slope)
        for condition in vertex.primal_conditions
        if condition.slope and float(condition.delta_derivative()(x)) > 0
    ]
