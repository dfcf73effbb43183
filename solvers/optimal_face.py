"""Whether a linear program has one optimal point: a second program over the face of those that are.

x* optimal with multipliers y* and reduced costs d*. Every point that costs as little has x_j = x*_j where d*_j != 0
and a_i x = a_i x* where y*_i != 0. Over these points the width of a random direction is 0 exactly where x* is the
only one (with probability one, for directions drawn without knowing the program).
"""

from __future__ import annotations

import numpy as np

from workbench.solvers.backend import solve
from workbench.solvers.data import Data
from workbench.solvers.program import Program
from workbench.solvers.solution import PointStatus, Solution

_ZERO = 1e-9  # of a multiplier or reduced cost, as a share of the largest cost
_ONE, _SEVERAL = 1e-8, 1e-5  # widths up to which there is one, from which there are several
_SEED = 20260101


def has_unique_value(solution: Solution, name: str, solver: str = "highs") -> bool | None:
    """Whether the variable of a name has one value in all optimal points, in doubles; None where that is not decided:
    without multipliers, of integers and cones, and where the width of the face is neither 0 nor clearly more."""
    program, x = solution.program, solution.x
    if (
        x is None
        or solution.dual is not PointStatus.FEASIBLE
        or program.is_mip
        or program.cones is not None
    ):
        return None
    dual, reduced = solution.row_dual, solution.reduced_cost
    if dual is None or reduced is None:
        return None
    data, activity = solution.data, solution.data.A @ x
    scale = float(np.abs(data.c).max()) or 1.0
    rows, columns = np.abs(dual) > _ZERO * scale, np.abs(reduced) > _ZERO * scale
    direction = np.zeros(data.c.size)
    direction[program.block(name).read(np.arange(data.c.size, dtype=float)).astype(int)] = 1.0
    direction *= np.random.default_rng(_SEED).uniform(0.5, 1.0, data.c.size)
    ends = []
    for sign in (1.0, -1.0):
        face = Data(
            sign * direction, 0.0, data.A,
            np.where(rows, activity, data.row_lower), np.where(rows, activity, data.row_upper),
            np.where(columns, x, data.lower), np.where(columns, x, data.upper), data.integrality,
        )  # fmt: skip
        solved = solve(
            Program(program.name, face, variables=program.variables, rows=program.rows),
            solver=solver,
        )
        if not solved.is_optimal or solved.objective is None:
            return None
        ends.append(sign * solved.objective)
    width = ends[1] - ends[0]
    return True if width <= _ONE else False if width >= _SEVERAL else None
