"""Find conflicting constraints of an infeasible program, by a deletion filter over row groups.

The groups are left out one after the other. If the remaining program is still infeasible, the group
stays out. If it becomes feasible, the group is part of the conflict and goes back in. The remaining
groups are irreducible: they are infeasible together, and feasible without any one of them
(J. Chinneck, E. Dravnieks: Locating minimal infeasible constraint sets in linear programs, ORSA
Journal on Computing 3, 1991). There may be conflicts with fewer groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from workbench.solvers.arrays import Positions
from workbench.solvers.backend import Options, get_backend
from workbench.solvers.data import Data
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Start, Termination


def find_conflict(
    data: Data,
    groups: Mapping[str, Positions],
    solver: str = "highs",
    options: Options | None = None,
    *,
    scale: float = 1.0,
    seconds: float = 10.0,
) -> Sequence[str] | None:
    """Find an irreducible infeasible set of groups of rows.

    Args:
        data: the program. Rows outside all groups always hold.
        groups: name -> positions of rows. They are tried in this order.
        solver: name of the solver, as in `workbench doctor`.
        options: options of every solve, such as tolerances. Default: `Options()`.
        scale: factor of the continuous columns in the solver, as in `Program`.
        seconds: time limit of all solves together.

    Returns:
        The names of the groups. None if the program is feasible, or if a solve was undecided, for
        example at the time limit.
    """
    deadline = Deadline(seconds)
    options = options or Options()

    def is_infeasible(active_groups: Mapping[str, Positions]) -> bool | None:
        """Return whether the rows of these groups and all rows outside groups are infeasible.

        None if the solver did not decide.
        """
        if deadline.has_passed:
            return None
        has_row = np.ones(data.A.shape[0], dtype=bool)
        for name, positions in groups.items():
            has_row[positions] = name in active_groups
        remaining_data = replace(
            data.without_costs,
            A=data.A[has_row],
            row_lower=data.row_lower[has_row],
            row_upper=data.row_upper[has_row],
        )
        limits = [limit for limit in (deadline.solver_time_limit, options.time_limit) if limit]
        program = Program("a part of an infeasible program", remaining_data, scale=scale)
        limited_options = replace(options, time_limit=min(limits))
        with get_backend(solver).open(program, limited_options) as session:
            solution = session.solve(start=Start.COLD)
        if solution.x is not None:
            return False
        if solution.termination is Termination.INFEASIBLE:
            return True
        return None

    remaining_groups = dict(groups)
    if not is_infeasible(remaining_groups):
        return None
    for name in groups:
        groups_without = {key: rows for key, rows in remaining_groups.items() if key != name}
        is_still_infeasible = is_infeasible(groups_without)
        if is_still_infeasible is None:
            return None
        if is_still_infeasible:
            remaining_groups = groups_without
    return list(remaining_groups)
