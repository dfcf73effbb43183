"""What passes between a session and its backend: entries that move on the way in, raw results on the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .arrays import Positions, Vector
from .program import Program
from .solution import PointStatus, Rest, Start, Termination, relative_gap

_INFINITY = 1e20  # as solvers have it

__all__ = ["Change", "Raw", "factors", "moved_bounds"]


@dataclass
class Raw:
    """What a session's `_run` reads off its solver, in dispatched (scaled) units and the backend's own statuses.

    Attributes:
        dual: what the multipliers in `rest` are; NONE when there are none.
        rest: multipliers, reduced costs and basis, or a function that reads them while the solver stands still.
        gap: `relative_gap` of the solver's own objective and bound (MILP): tells GAP_LIMIT from OPTIMAL.
        ray: of an infeasible program multipliers of the rows, of an unbounded one a direction of x (either sign).
        interrupted: Ctrl-C was pressed while the solver ran.
    """

    termination: Termination
    raw_status: str
    x: Vector | None = None
    point: PointStatus = PointStatus.NONE
    rest: Rest | Callable[[], Rest] | None = None
    dual: PointStatus = PointStatus.NONE
    bound: float | None = None
    gap: float | None = None
    ray: Vector | None = None
    iterations: int | None = None
    nodes: int | None = None
    start: Start = Start.COLD
    solve_seconds: float | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    def bounded(self, bound: float, objective: float) -> None:
        """Note the solver's own bound, unless it means infinity, and the gap to its objective where it has a point."""
        if self.termination is not Termination.INFEASIBLE and abs(bound) < _INFINITY:
            self.bound = bound
            self.gap = relative_gap(objective, bound) if self.x is not None else None


class Change:
    """The entries of a live object that move, in dispatched (scaled) units; an attribute is None when none does.

    Attributes:
        cost: (columns, values).
        offset: the new constant of the objective.
        coefficients: (rows, columns, values); positions: where they stand in the CSC data array.
        rows, columns: (which, lower bounds, upper bounds).
    """

    __slots__ = ("coefficients", "columns", "cost", "offset", "positions", "rows")

    def __init__(self) -> None:
        self.cost: tuple[Positions, Vector] | None = None
        self.offset: float | None = None
        self.coefficients: tuple[Positions, Positions, Vector] | None = None
        self.positions: Positions | None = None
        self.rows: tuple[Positions, Vector, Vector] | None = None
        self.columns: tuple[Positions, Vector, Vector] | None = None


def moved_bounds(
    live: tuple[Vector, Vector],
    lower: bool,
    index: Positions,
    values: Vector,
    before: tuple[Positions, Vector, Vector] | None,
) -> tuple[Positions, Vector, Vector]:
    """Enter one side's new bounds into the live ones; the triple of a `Change`, together with the other side's."""
    live[0 if lower else 1][index] = values
    if before is not None:
        index = index if np.array_equal(before[0], index) else np.union1d(before[0], index)
    else:
        return (index, values, live[1][index]) if lower else (index, live[0][index], values)
    return index, live[0][index], live[1][index]


def factors(program: Program) -> Vector | None:
    """What dispatching multiplies each moving entry by (see Data.scaled); None without scaling."""
    scale, template, moves = program.scale, program.template, program.moves
    if scale == 1.0:
        return None
    column = np.where(template.integrality, scale, 1.0)
    bound = np.where(template.integrality, 1.0, scale)
    factors = np.full(moves.index.size, scale)
    for section, run in moves.sections.items():
        index = moves.index[run]
        if section == "A":
            factors[run] = column[program.entry_columns[index]]
        elif section in ("c", "lower", "upper"):
            factors[run] = (column if section == "c" else bound)[index]
    return factors
