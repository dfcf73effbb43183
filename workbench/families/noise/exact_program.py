"""The exact program of a noise request with the violations held fixed: every model of `models.noise` as a linear
program in rationals.

E = ⌊2^112 e^ε (1-τ)⌋/2^112 and δ(1-τ) with τ = 2^-64 leave room for rounding, at a cost of about 1e-19:

    mass above a ratio    f(η) <= E f(η+μ) outside V_μ,  Σ f(V_μ) <= δ
    hockey stick          y >= f(η) - E f(η+μ),  Σ y <= δ
    either, δ = 0         f(η) <= E f(η+μ)                               least δ: δ is a column, and the cost a row
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from models.noise_constraints import constraint_program
from solvers.program import Program
from solvers.rational_lp import RationalLP
from workbench.families.noise.request import NoiseRequest
from workbench.families.outcome import translated_errors
from workbench.families.requirements import HOCKEY_STICK
from workbench.privacy.repair import Pattern, threshold

__all__ = ["extra_constraints", "noise_program", "rows_of"]

TAU = Fraction(1, 1 << 64)  # what the exact program gives away so that rounding cannot break it


def extra_constraints(request: NoiseRequest) -> Program:
    """The request's extra constraints alone, compiled; the block "f" holds the masses."""
    assert request.constraints is not None
    with translated_errors():
        return constraint_program(request.constraints, request.question.order)


def rows_of(program: Program) -> list[tuple[dict[int, Fraction], Fraction | None, Fraction | None]]:
    """The rows of a compiled program in exact numbers: entries, lower and upper bound (None: no bound)."""
    data = program.template
    rows: list[dict[int, Fraction]] = [{} for _ in range(program.shape[0])]
    table = data.A.tocoo()
    for i, j, a in zip(table.row.tolist(), table.col.tolist(), table.data.tolist(), strict=True):
        rows[i][j] = Fraction(a)
    sides = [[Fraction(v) if np.isfinite(v) else None for v in side] for side in (data.row_lower, data.row_upper)]
    return list(zip(rows, *sides, strict=True))


def noise_program(request: NoiseRequest, pattern: Pattern | None) -> RationalLP:
    """The linear program of a pattern in exact numbers. Columns: f, then y of every difference (hockey sticks), δ or
    the largest cost, and what the extra constraints need."""
    q = request.question
    N, shifts = q.order, list(request.budgets)
    least_delta = request.minimise == "delta"
    bounds = request.bounds
    pure = not bounds.delta
    hockey = bounds.kind == HOCKEY_STICK and not pure
    extra = extra_constraints(request) if request.constraints is not None else None
    first_y = N
    last = N + (N * len(shifts) if hockey else 0)
    worst = request.costs.ndim == 2 and not least_delta
    extra_at = last + int(least_delta) + int(worst)
    lp = RationalLP(extra_at + (extra.shape[1] - N if extra is not None else 0))
    lp.row(dict.fromkeys(range(N), 1), 1, 1)
    delta = bounds.delta * (1 - TAU)
    for at, shift in enumerate(shifts):
        e = Fraction(threshold(bounds.epsilons[shift]), 1 << 112)
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
        stick = range(first_y + at * N, first_y + (at + 1) * N) if hockey else np.flatnonzero(np.asarray(free)).tolist()
        row: dict[int, Fraction | int] = dict.fromkeys(stick, 1)
        if row and least_delta:
            lp.row(row | {last: -1}, None, 0)
        elif row:
            lp.row(row, None, delta)
    costs = [[Fraction(c) for c in row] for row in (request.costs if request.costs.ndim == 2 else [request.costs])]
    if least_delta:
        limit = request.cost_limit
        assert limit is not None
        for row_costs in costs:
            lp.row(dict(enumerate(row_costs)), None, limit * (1 - TAU))
        lp.cost[last] = Fraction(1)
    elif worst:
        lp.bounds[last] = (Fraction(0), max(map(max, costs)))
        for row_costs in costs:
            lp.row(dict(enumerate(row_costs)) | {last: -1}, None, 0)
        lp.cost[last] = Fraction(1)
    else:
        lp.cost[:N] = costs[0]
    if extra is not None:
        _append(lp, extra, extra_at)
    return lp


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
