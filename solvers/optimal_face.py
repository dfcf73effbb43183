"""Decide whether a variable of a linear program has the same value at all optimal points.

Let x* be an optimal point with multipliers y* and reduced costs d*. Every optimal point x has x_j =
x*_j where d*_j != 0, and a_i x = a_i x* where y*_i != 0 (a_i is row i of A). These points are the
optimal face. Let g be a random vector that is 0 outside the columns of the variable. Two programs
compute the smallest and the largest g'x over the face. If they are equal, the variable has only one
optimal value (with probability one, as g is drawn without knowing the program).
"""

from __future__ import annotations

import numpy as np

from workbench.solvers.arrays import Vector
from workbench.solvers.backend import solve
from workbench.solvers.data import Data
from workbench.solvers.program import Program
from workbench.solvers.solution import PointStatus, Solution

# A multiplier or reduced cost below this share of the largest cost counts as zero.
_ZERO_SHARE = 1e-9
_MAX_UNIQUE_WIDTH = 1e-8  # A value is unique if its width is at most this.
_MIN_SEVERAL_WIDTH = 1e-5  # There are several values if the width is at least this.
_SEED = 20260101  # The random direction is always the same.


def has_unique_value(solution: Solution, name: str, solver: str = "highs") -> bool | None:
    """Decide, in doubles, whether a variable has the same value in all optimal points.

    Args:
        solution: an optimal solution.
        name: name of the variable.
        solver: name of the solver, as in `workbench doctor`.

    Returns:
        Whether the value is unique. None if this is undecided: for programs with integers or cones,
        for solutions without multipliers, and if the width of the optimal face is between the two
        limits above.
    """
    program = solution.program
    x = solution.x
    row_dual = solution.row_dual
    reduced_cost = solution.reduced_cost
    if program.is_mip or program.cones is not None:
        return None
    if solution.dual is not PointStatus.FEASIBLE:
        return None
    if x is None or row_dual is None or reduced_cost is None:
        return None
    # The two programs over the optimal face.
    data = solution.data
    activity = data.A @ x
    scale = float(np.abs(data.c).max()) or 1.0
    is_fixed_row = np.abs(row_dual) > _ZERO_SHARE * scale
    is_fixed_column = np.abs(reduced_cost) > _ZERO_SHARE * scale
    direction = _draw_direction(program, name)
    ends = []
    for sign in (1.0, -1.0):
        face = Data(
            sign * direction,
            offset=0.0,
            A=data.A,
            row_lower=np.where(is_fixed_row, activity, data.row_lower),
            row_upper=np.where(is_fixed_row, activity, data.row_upper),
            lower=np.where(is_fixed_column, x, data.lower),
            upper=np.where(is_fixed_column, x, data.upper),
            integrality=data.integrality,
        )
        face_program = Program(program.name, face, variables=program.variables, rows=program.rows)
        extreme = solve(face_program, solver=solver)
        if not extreme.is_optimal or extreme.objective is None:
            return None
        ends.append(sign * extreme.objective)
    smallest, largest = ends
    width = largest - smallest
    if width <= _MAX_UNIQUE_WIDTH:
        return True
    if width >= _MIN_SEVERAL_WIDTH:
        return False
    return None


def _draw_direction(program: Program, name: str) -> Vector:
    """Draw a random direction (columns,) of the columns of a variable."""
    size = program.template.c.size
    columns = program.block(name).read(np.arange(size, dtype=float)).astype(int)
    direction = np.zeros(size)
    direction[columns] = 1.0
    direction *= np.random.default_rng(_SEED).uniform(0.5, 1.0, size)
    return direction
