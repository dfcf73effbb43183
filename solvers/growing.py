"""A linear program that gains and loses rows while HiGHS stays alive: the master program of cutting planes.

    min c'x   s.t.   A x = b,  x >= 0,  and rows r'x <= h that come and go

`Session` moves the numbers of a program of fixed shape; here the shape moves, which only the simplex method re-solves
cheaply (by its dual, from the last basis).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import SolverError

__all__ = ["GrowingProgram", "Point"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """An optimal vertex. x: (columns,); duals: (rows,) of the rows that came, >= 0 where they press; value: c'x."""

    x: Vector
    duals: Vector
    value: float


class GrowingProgram:
    """One live program. costs: (n,); equal: rows (coefficients (n,), right side) that stay.

    tolerance: how far a row may be broken. Raises SolverError.
    """

    def __init__(self, costs: Vector, equal: Iterable[tuple[Vector, float]], tolerance: float = 1e-9) -> None:
        import highspy

        self._highspy, self._h = highspy, highspy.Highs()
        self.version = str(self._h.version())
        for name, value in {
            "output_flag": False, "presolve": "off", "threads": 1,
            "primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance,
        }.items():  # fmt: skip
            self._h.setOptionValue(name, value)
        size = costs.size
        self._h.addVars(size, np.zeros(size), np.full(size, highspy.kHighsInf))
        self._h.changeColsCost(size, np.arange(size, dtype=np.int32), costs)
        self._fixed = 0
        for row, right in equal:
            self._add(row[None, :], right, right)
            self._fixed += 1

    def _add(self, rows: Vector, low: float, high: float) -> None:
        place, index = np.nonzero(rows)
        starts = np.searchsorted(place, np.arange(len(rows))).astype(np.int32)
        bounds = np.full(len(rows), low), np.full(len(rows), high)
        entries = index.size, starts, index.astype(np.int32), rows[place, index]
        if self._h.addRows(len(rows), *bounds, *entries) != self._highspy.HighsStatus.kOk:
            raise SolverError("highs refused a row of a growing program.")

    def add(self, rows: Sequence[Vector], right: float) -> None:
        """Rows r'x <= right, each of shape (n,)."""
        if rows:
            self._add(np.array(rows), -self._highspy.kHighsInf, right)

    def remove(self, positions: Iterable[int]) -> None:
        """Rows by their places among those that came."""
        index = np.array(sorted(positions), dtype=np.int32) + self._fixed
        if index.size:
            self._h.deleteRows(index.size, index)

    def solve(self) -> Point:
        """The optimum, from the last basis. Raises SolverError where HiGHS finds none."""
        self._h.run()
        if self._h.getModelStatus() != self._highspy.HighsModelStatus.kOptimal:
            self._h.clearSolver()  # a hot start may end in numerical trouble that a cold one does not meet
            self._h.run()
        status = self._h.getModelStatus()
        if status != self._highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"highs ended a growing program with {self._h.modelStatusToString(status)!r}.")
        answer = self._h.getSolution()
        duals = np.maximum(-np.array(answer.row_dual)[self._fixed :], 0.0)
        return Point(np.array(answer.col_value), duals, float(self._h.getInfoValue("objective_function_value")[1]))
