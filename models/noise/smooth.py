"""Find the noise on the integers with the smallest expected loss by an interior-point method.

`solve_smooth_line` solves a program of `workbench.models.noise.program` whose bounds are smooth:
those of Rényi DP and zCDP. Every shift has such bounds, and tangents of many shifts take minutes.
The interior-point method (`workbench.models.convex.interior`) takes seconds.

Its point is strictly within all bounds. The tangents at this point with the multipliers of the
method prove the lower bound, as described in `workbench.models.noise.program`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.models.convex.interior import (
    InteriorPoint,
    LevelRange,
    list_smooth_bounds,
    solve_interior_point,
)
from workbench.models.convex.tangent_program import BoundMultipliers
from workbench.models.convex.tangents import compute_tangents, max_term_sum
from workbench.models.noise.program import LineAnswer, LineProgram, prove_lower_bound
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline

_DEFAULT_GAP = 1e-8  # The method ends at this relative gap, unless the caller gives another.
_MAX_MASS_ERROR = 1e-9  # Points whose total mass differs from 1 by more than this are not used.


def solve_smooth_line(
    line: LineProgram,
    inner_columns: Vector,
    level_range: LevelRange | None,
    deadline: Deadline | None = None,
    gap: float = _DEFAULT_GAP,
) -> LineAnswer | None:
    """Solve a program under smooth bounds and prove a lower bound.

    Args:
        line: the program.
        inner_columns: columns of a law that is strictly within all bounds, shape (columns,).
        level_range: the range of levels whose bounds hold beside those of the program, or None.
        deadline: time limit; None for none.
        gap: the method ends at this gap between value and bound, relative to the value.

    Returns:
        The last point, which is within all bounds, with its value and the proven bound. None if a
        bound is not smooth, or if there is no such point.
    """
    bounds = list_smooth_bounds(line.bounds, level_range)
    if bounds is None:
        return None
    data = line.base.template
    comparisons = line.comparisons
    point = solve_interior_point(
        data,
        (comparisons.entries, comparisons.first, comparisons.second),
        bounds,
        level_range,
        inner_columns,
        deadline,
        gap,
    )
    if point is None:
        return None
    x = np.maximum(point.x, 0.0)
    if abs(line.weights @ x[: line.weights.size] - 1) > _MAX_MASS_ERROR:
        return None
    unit = float(line.loss_unit)
    loss_weights = point.row_multipliers[1:] / unit
    bound = prove_lower_bound(line, _list_multipliers(line, point), loss_weights.tolist())
    return LineAnswer(
        program=line,
        x=x[: line.weights.size],
        value=float(data.c @ x) + data.offset + float(line.shift),
        bound=bound * line.loss_unit + line.shift,
        excess=0.0,
        rounds=0,
        version="",
    )


def _list_multipliers(line: LineProgram, point: InteriorPoint) -> Iterator[BoundMultipliers]:
    """Yield the multipliers of every active bound, with the tangents of all outcomes at the point.

    Every tangent has the multiplier of its bound. The rows of a bound are divided by its unit.
    """
    p, q = line.comparisons.laws_at(np.maximum(point.x, 0.0))
    outcomes = np.arange(p.shape[1])
    for bound, comparison, multiplier in point.active_bounds:
        limit = max_term_sum(bound)
        unit = max(1.0, limit)
        first, second = line.comparisons.law_entries(comparison)
        a, b = compute_tangents(bound, p[comparison], q[comparison])
        scaled_multiplier = max(multiplier, 0.0) * unit / float(line.loss_unit)
        yield BoundMultipliers(
            limit=limit / unit,
            sum_multiplier=scaled_multiplier,
            outcomes=outcomes,
            first=first,
            second=second,
            a=a / unit,
            b=b / unit,
            tangent_multipliers=np.full(outcomes.size, scaled_multiplier),
        )
