"""The exact program of a noise request with the violations held fixed: every model of `models.modulo` as a linear
program in rationals.

E = ⌊2^112 e^ε (1-τ)⌋/2^112 and δ(1-τ) with τ = 2^-64 leave room for rounding, at a loss of about 1e-19:

    mass above a ratio    f(η) <= E f(η+μ) outside V_μ,  Σ f(V_μ) <= δ
    hockey stick          y >= f(η) - E f(η+μ),  Σ y <= δ
    either, δ = 0         f(η) <= E f(η+μ)                               least δ: δ is a column, and the loss a row

Where the notion asks for no pattern this program is the request, and bounds what anything can reach: its multipliers
are read in the program that gives nothing away, with E = ⌈2^112 e^ε⌉/2^112 and δ rounded up.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from models.modulo_constraints import constraint_program
from solvers.program import Program
from solvers.rational_lp import Rational, RationalLP, RationalPoint
from solvers.rational_refinement import solve_rational
from solvers.solution import Later, PointStatus, Solution, Termination
from workbench.errors import NotCertified
from workbench.exact.numbers import exp_bounds, round_down
from workbench.families.modulo.request import ModuloRequest
from workbench.families.outcome import translated_errors
from workbench.families.requirements import HOCKEY_STICK
from workbench.privacy.repair import Pattern

__all__ = ["CELLS", "extra_constraints", "noise_program", "refined", "rows_of", "solve_exactly"]

TAU = Fraction(1, 1 << 64)  # what the exact program gives away so that rounding cannot break it
_BITS = 112
CELLS = 60_000  # rows of the exact program above which it is not stated


def extra_constraints(request: ModuloRequest) -> Program:
    """The request's extra constraints alone, compiled; the block "f" holds the masses."""
    assert request.constraints is not None
    with translated_errors():
        return constraint_program(request.constraints, request.question.order)


def rows_of(program: Program) -> list[tuple[dict[int, Rational], Rational | None, Rational | None]]:
    """The rows of a compiled program in exact numbers: entries, lower and upper bound (None: no bound)."""
    lp = RationalLP.of(program.template)
    return [(row, low, high) for row, (low, high) in zip(lp.rows, lp.sides, strict=True)]


def noise_program(request: ModuloRequest, pattern: Pattern | None, *, relaxed: bool = False) -> RationalLP:
    """The linear program of a pattern in exact numbers. Columns: f, then y of every difference (hockey sticks), δ or
    the largest loss, and what the extra constraints need. relaxed: rounded so that no mechanism is left out."""
    q = request.question
    N, shifts = q.order, list(request.budgets)
    least_delta = request.minimise == "delta"
    bounds = request.bounds
    pure = not bounds.delta
    hockey = bounds.kind == HOCKEY_STICK and not pure
    extra = extra_constraints(request) if request.constraints is not None else None
    first_y = N
    last = N + (N * len(shifts) if hockey else 0)
    worst = request.losses.ndim == 2 and not least_delta
    extra_at = last + int(least_delta) + int(worst)
    lp = RationalLP(extra_at + (extra.shape[1] - N if extra is not None else 0))
    lp.row(dict.fromkeys(range(N), 1), 1, 1)

    def allowed(value: Fraction) -> Fraction:
        return Fraction(math.ceil(value * (1 << lp.bits)), 1 << lp.bits) if relaxed else value * (1 - TAU)

    delta = allowed(bounds.delta)
    for at, shift in enumerate(shifts):
        low, high = exp_bounds(bounds.epsilons[shift], _BITS)
        e = Fraction(high if relaxed else max(1 << _BITS, int(low * (1 - TAU))), 1 << _BITS)
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
        stick = range(first_y + at * N, first_y + (at + 1) * N) if hockey else np.flatnonzero(np.asarray(free)).tolist()
        row: dict[int, Fraction | int] = dict.fromkeys(stick, 1)
        if row and least_delta:
            lp.row(row | {last: -1}, None, 0)
        elif row:
            lp.row(row, None, delta)
    losses = [[Fraction(c) for c in row] for row in (request.losses if request.losses.ndim == 2 else [request.losses])]
    if least_delta:
        limit = request.loss_limit
        assert limit is not None
        for row_losses in losses:
            lp.row(dict(enumerate(row_losses)), None, allowed(limit))
        lp.cost[last] = Fraction(1)
    elif worst:
        lp.bounds[last] = (Fraction(0), max(map(max, losses)))
        for row_losses in losses:
            lp.row(dict(enumerate(row_losses)) | {last: -1}, None, 0)
        lp.cost[last] = Fraction(1)
    else:
        lp.cost[:N] = losses[0]
    if extra is not None:
        _append(lp, extra, extra_at)
    return lp


def solve_exactly(request: ModuloRequest, pattern: Pattern | None, time_limit: float | None) -> RationalPoint:
    """The solution of a pattern's program; its bound holds for the request where that asks for no pattern.

    Raises NotCertified, also when there is no time.
    """
    relaxed = None if request.bounds.mass else noise_program(request, pattern, relaxed=True)
    with translated_errors():
        return solve_rational(noise_program(request, pattern), relaxed=relaxed, time_limit=time_limit)


def refined(request: ModuloRequest, solution: Solution, time_limit: float | None) -> Solution:
    """The answer to a linear program with the exact one's point and bound; as it is where that has none, or columns of
    a user's constraints."""
    begin, program, q = time.perf_counter(), solution.program, request.question
    try:
        exact = solve_exactly(request, None, time_limit)
    except NotCertified:
        return solution
    last = len(exact.x) - 1
    first = {"f": 0, "delta": last, "aux_worst": last}
    first |= {f"y_{'_'.join(map(str, shift))}": q.order * (1 + at) for at, shift in enumerate(request.budgets)}
    if exact.bound is None or last + 1 != program.shape[1] or not {b.name for b in program.variables} <= set(first):
        return solution
    x = np.zeros(program.shape[1])
    for block in program.variables:
        at = first[block.name]
        x[block.start : block.start + block.size] = [float(v) for v in exact.x[at : at + block.size]]
    seconds = replace(solution.seconds, solve=solution.seconds.solve + time.perf_counter() - begin)
    return replace(
        solution,
        termination=Termination.OPTIMAL,
        point=PointStatus.FEASIBLE,
        dual=PointStatus.NONE,
        x=x,
        later=Later(None),
        native_bound=round_down(exact.bound),
        seconds=seconds,
        raw_status="Optimal, refined",
        notes=(
            *solution.notes,
            f"refined in exact arithmetic; {solution.solver} by itself says {solution.raw_status!r}, which is no proof",
        ),
    )


def _append(lp: RationalLP, extra: Program, start: int) -> None:
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
    for row, low, high in rows_of(extra):
        lp.row({column[j]: a for j, a in row.items()}, low, high)
