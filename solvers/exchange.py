"""What passes between a session and its backend: entries that move on the way in, raw results on the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .solution import PointStatus, Rest, Start, Termination

__all__ = ["Change", "Raw"]

Vector = NDArray[np.float64]
Positions = NDArray[np.intp]


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
