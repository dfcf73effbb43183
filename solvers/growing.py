"""A linear program that gains and loses rows while HiGHS stays alive: the master program of cutting planes.

    min c'x   s.t.   A x = b,  x >= 0,  and rows r'x <= h that come and go; columns without a cost come with rows

`Session` moves the numbers of a program of fixed shape; here the shape moves, which only the simplex method re-solves
cheaply (by its dual, from the last basis).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .arrays import Positions, Vector
from .errors import SolverError
from .search import Deadline

__all__ = ["GrowingProgram", "Point"]


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
            "output_flag": False,
            "presolve": "off",
            "threads": 1,
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
        }.items():
            self._h.setOptionValue(name, value)
        size = costs.size
        self._h.addVars(size, np.zeros(size), np.full(size, highspy.kHighsInf))
        self._h.changeColsCost(size, np.arange(size, dtype=np.int32), costs)
        self._fixed = 0
        for row, right in equal:
            self._add(sp.csr_array(row[None, :]), right, right)
            self._fixed += 1

    def _add(self, rows: sp.csr_array, low: float, high: float) -> None:
        bounds = np.full(rows.shape[0], low), np.full(rows.shape[0], high)
        starts, index = (part.astype(np.int32) for part in (rows.indptr[:-1], rows.indices))
        self._done(self._h.addRows(rows.shape[0], *bounds, rows.nnz, starts, index, rows.data), "rows")

    def _done(self, status: object, what: str) -> None:
        if status != self._highspy.HighsStatus.kOk:
            raise SolverError(f"highs refused {what} of a growing program.")

    def add(self, row: Vector, right: float) -> None:
        """A row r'x <= right. row: (n,)."""
        self._add(sp.csr_array(row[None, :]), -self._highspy.kHighsInf, right)

    def extend(self, places: Positions, rows: sp.csr_array, right: float) -> None:
        """New columns z >= 0 without a cost, each with a 1 in the row that came at its place, and new rows over all
        columns, each <= right."""
        new = places.size
        none, most = np.zeros(new), np.full(new, self._highspy.kHighsInf)
        entries = np.arange(new, dtype=np.int32), (places + self._fixed).astype(np.int32), np.ones(new)
        self._done(self._h.addCols(new, none, none, most, new, *entries), "columns")
        self._add(rows, -self._highspy.kHighsInf, right)

    def remove(self, positions: Iterable[int]) -> None:
        """Rows by their places among those that came."""
        index = np.array(sorted(positions), dtype=np.int32) + self._fixed
        if index.size:
            self._h.deleteRows(index.size, index)

    def solve(self, deadline: Deadline | None = None) -> Point:
        """The optimum, from the last basis. Raises SolverError where HiGHS finds none, in time."""
        if deadline is not None and deadline.left is not None:
            self._h.setOptionValue("time_limit", self._h.getRunTime() + max(0.0, deadline.left))
        self._h.run()
        status, ends = self._h.getModelStatus(), self._highspy.HighsModelStatus
        if status not in (ends.kOptimal, ends.kTimeLimit):
            self._h.clearSolver()  # a hot start may end in numerical trouble that a cold one does not meet
            self._h.run()
        status = self._h.getModelStatus()
        if status != ends.kOptimal:
            raise SolverError(f"highs ended a growing program with {self._h.modelStatusToString(status)!r}.")
        answer = self._h.getSolution()
        duals = np.maximum(-np.array(answer.row_dual)[self._fixed :], 0.0)
        return Point(np.array(answer.col_value), duals, float(self._h.getInfoValue("objective_function_value")[1]))
