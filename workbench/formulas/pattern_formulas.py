"""PDP at one ε: every piece of the exact frontier over δ with its formula.

Which pairs η, η + μ a noise breaks, f(η) > e^ε f(η + μ), is its pattern. Given the pattern the least loss is a linear
program, and has a formula in e^ε, affine in δ. That no other pattern is better is what `delta_frontier` proves at one
ε, to 1e-9; a formula is the optimum there, and at another ε only while its pattern is.

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
from workbench.models.modulo.level_frontier import FrontierPiece as Traced
from workbench.pipeline.registry import find_family
from workbench.pipeline.stated import FormulaProgram, Interval
from workbench.privacy.repair import Pattern, find_violation_pattern
from workbench.solvers.exact.parametric import Vertex
from workbench.solvers.exact.polynomials import ZERO, Affine, Root
from workbench.solvers.exact.regions import Formula as Solved
from workbench.solvers.exact.regions import find_meeting_delta, find_region_around

if TYPE_CHECKING:
    from workbench.families.modulo.request import ModuloRequest
    from workbench.questions.modulo_noise import ModuloNoise

_TRACE_TOLERANCE = 1e-7  # a formula and what was traced, of losses and of δ
_PROOF_TOLERANCE = 1e-9  # relative: a pair that a solver's point keeps


@dataclass(frozen=True)
class _PatternSolution:
    """A traced piece, the vertex whose value is its formula, the program it is of, and its pattern in words."""

    traced: Traced
    vertex: Vertex
    stated: FormulaProgram
    pattern: str


def solve_pattern_formula(
    request: ModuloRequest, deltas: Interval, time_limit: float | None, progress: Progress | None
) -> Formula:
    """The pieces for δ in an interval at the request's ε. Raises InvalidRequest, NotProven where nothing is proven."""
    traced = request.family.trace_patterns(request, deltas, time_limit, progress)
    epsilon, low = request.claim.epsilon, deltas[0]
    assert isinstance(epsilon, Fraction)
    known: list[_PatternSolution] = []
    left = []
    for piece in traced:
        if piece.delta_high <= low:
            continue
        formula = (
            _solve_traced_piece(request, piece, max(piece.delta_low, float(low)))
            if piece.proven
            else None
        )
        if formula is None:
            left.append((piece.delta_low, piece.delta_high))
        elif known and known[-1].vertex.value == formula.vertex.value and not left:
            known[-1] = replace(
                known[-1], traced=replace(known[-1].traced, delta_high=piece.delta_high)
            )
        else:
            known.append(formula)
    if not known:
        raise NotProven("No piece of the frontier is proven in this time.")
    what = f"{known[0].stated.title}, under PDP at ε = {float(epsilon):g}"
    return Formula(
        what,
        _make_delta_pieces(known, deltas, epsilon),
        unproven=tuple(left),
        proof=_refuse_proof_file,
        proven_epsilon=epsilon,
    )


def find_pattern_value(question: ModuloNoise, epsilon: Real, delta: Fraction) -> Affine | None:
    """The formula of the least error rate under PDP around a point; None where it is not proven there, to 1e-9."""
    request: Any = find_family(question).make_request(
        question, epsilon=epsilon, delta=delta, notion="pdp"
    )
    optimum = request.family.design_request(request)
    value, near = optimum.objective, float(delta) * _TRACE_TOLERANCE
    if optimum.bound is None or optimum.bound < value - _PROOF_TOLERANCE:
        return None
    piece = Traced(float(delta) - near, float(delta) + near, value, value, True, value, value)
    formula = _solve_traced_piece(request, piece, piece.delta_low)
    return None if formula is None else formula.vertex.value


def _refuse_proof_file() -> Record:
    raise InvalidRequest(
        "The formulas of PDP rest on a search over patterns, which no file proves again: save .tex, .py or .csv."
    )


def _solve_traced_piece(
    request: ModuloRequest, piece: Traced, low: float
) -> _PatternSolution | None:
    """The formula of a traced piece, None where none fits it."""
    delta = Fraction((low + piece.delta_high) / 2).limit_denominator(
        int(64 / (piece.delta_high - low)) + 1
    )
    for check in (
        "audit",
        "certify",
    ):  # a repaired mechanism where a solver's point says too little
        given = request.with_values(delta=delta, check=check)
        broken = find_violation_pattern(given.family.design_request(given).mechanism, given.budgets)
        stated = given.with_values(epsilon=ONE).formula_program(broken)
        try:
            vertex = _find_optimal_vertex(stated, given, delta)
        finally:
            stated.program.close()
        x, y = _enclose_exp_epsilon(given)
        if vertex is not None and all(
            abs(float(vertex.value((x + y) / 2, Fraction(d))) - piece.value_at(d))
            <= _TRACE_TOLERANCE
            for d in (low, piece.delta_high)
        ):
            return _PatternSolution(piece, vertex, stated, _describe_pattern(broken))
    return None


def _describe_pattern(broken: Pattern) -> str:
    """The pattern: "difference: noise values" of those that are broken."""
    parts = []
    for mu, flags in broken.items():
        if flags.any():
            at = ",".join(map(str, np.flatnonzero(flags).tolist()))
            parts.append(f"{'x'.join(map(str, mu))}: {at}")
    return "; ".join(parts) or "none"


def _enclose_exp_epsilon(request: ModuloRequest) -> Interval:
    """Rationals around e^ε."""
    assert isinstance(request.claim.epsilon, Fraction)
    return exp_interval(request.claim.epsilon, 64)


def _find_optimal_vertex(
    stated: FormulaProgram, request: ModuloRequest, delta: Fraction
) -> Vertex | None:
    """The vertex of a pattern's optimum at e^ε and a δ, None where what is proven does not reach e^ε itself."""
    low, high = _enclose_exp_epsilon(request)
    region = find_region_around(stated.program, (low + high) / 2, (delta, delta))
    covers = region.low.is_below(low) and (region.high is None or region.high.is_above(high))
    return region.formulas[0].vertex if covers and region.formulas[0].value is not None else None


def _make_delta_pieces(
    known: Sequence[_PatternSolution], deltas: Interval, epsilon: Fraction
) -> tuple[Piece, ...]:
    """The pieces by rising δ, with ends that are functions of e^ε: where two formulas meet, or where the second
    pattern begins. A traced end is not exact: where no function is near it, it stands as the number it is."""
    low, high = map(Root.from_rational, exp_interval(epsilon, 64))
    lows, highs = [Affine.from_number(deltas[0])], []
    for before, after in pairwise(known):
        ended, at = before.traced.delta_high, after.traced.delta_low
        joined = at - ended <= _PROOF_TOLERANCE**2
        options = [find_meeting_delta(before.vertex.value, after.vertex.value)] if joined else []
        options += _feasibility_thresholds(after.vertex, low.low)
        near = [
            end
            for end in options
            if end.denominator and abs(float(end(low.low)) - at) <= _TRACE_TOLERANCE
        ]
        lows.append(near[0] if near else Affine.from_number(Fraction(at)))
        highs.append(lows[-1] if joined else Affine.from_number(Fraction(ended)))
    highs.append(Affine.from_number(deltas[1]))
    pieces = []
    for each, first, last in zip(known, lows, highs, strict=True):
        solved = Solved(each.vertex.value, first, last, each.vertex, each.vertex)
        part = Part(low, high, solved, each.stated.masses)
        pieces.append(
            Piece(low, high, (first, last), each.vertex.value, (part,), pattern=each.pattern)
        )
    return tuple(pieces)


def _feasibility_thresholds(vertex: Vertex, x: Fraction) -> list[Affine]:
    """The δ from which on a vertex is feasible at x, as functions of x: of each condition that asks for δ."""
    return [
        Affine.from_ratio(-condition.constant, ZERO, condition.slope)
        for condition in vertex.primal_conditions
        if condition.slope and float(condition.delta_derivative()(x)) > 0
    ]
