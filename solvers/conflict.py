"""Which constraints of an infeasible program conflict: a deletion filter over named groups of rows.

Group after group is left out. Where the rest is still infeasible the group stays out for good; where it becomes
feasible, the group is part of the conflict and goes back in. What is left is irreducible: infeasible together, feasible
without any one of them (J. Chinneck, E. Dravnieks: Locating minimal infeasible constraint sets in linear programs,
ORSA Journal on Computing 3, 1991). It need not be the conflict with the fewest groups.
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
    """The names of an irreducible infeasible set of groups of rows; None where none could be found in time.

    data: the program, whose rows outside all groups always hold. groups: name -> row positions, tried in this order.
    scale: of the dispatch, as of a Program. seconds: for all solves together.
    """
    deadline = Deadline(seconds)

    def infeasible(kept: Mapping[str, Positions]) -> bool | None:
        if deadline.has_passed:
            return None
        left = deadline.solver_time_limit
        rows = np.ones(data.A.shape[0], dtype=bool)
        for name, positions in groups.items():
            rows[positions] = name in kept
        part = replace(
            data.without_costs,
            A=data.A[rows],
            row_lower=data.row_lower[rows],
            row_upper=data.row_upper[rows],
        )
        given = replace(
            options or Options(),
            time_limit=min(t for t in (left, options and options.time_limit) if t),
        )
        with get_backend(solver).open(
            Program("a part of an infeasible program", part, scale=scale), given
        ) as session:
            solution = session.solve(start=Start.COLD)
        if solution.x is not None:
            return False
        return True if solution.termination is Termination.INFEASIBLE else None

    left = dict(groups)
    if not infeasible(left):
        return None
    for name in groups:
        without = {other: rows for other, rows in left.items() if other != name}
        verdict = infeasible(without)
        if verdict is None:
            return None
        if verdict:
            left = without
    return list(left)
