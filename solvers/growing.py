"""A linear program that gains rows and columns between its solves: the master program of cutting planes.

    min c'x   s.t.   A x = b,  x >= 0,  and rows r'x <= h that come later; columns without a cost come with them

`Session` moves the numbers of a program of fixed shape; here the shape moves, which only the simplex method re-solves
cheaply (by its dual, from the last basis). Other backends than HiGHS are given the whole program at every solve.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .arrays import Positions, Vector
from .backend import Options, backend
from .data import SMALLEST
from .errors import SolverError
from .program import Data, Program
from .search import Deadline


@dataclass(frozen=True)
class Point:
    """An optimal vertex. x: (columns,); duals: (rows,) of the rows that came, >= 0 where they press; value: c'x."""

    x: Vector
    duals: Vector
    value: float


class GrowingProgram:
    """One live program of HiGHS. costs: (n,); equal: rows (coefficients (n,), right side) that stay.

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

    def extend(self, places: Positions, rows: sp.csr_array, right: float) -> None:
        """New columns z >= 0 without a cost, each with a 1 in the row that came at its place, and new rows over all
        columns, each <= right."""
        new = places.size
        none, most = np.zeros(new), np.full(new, self._highspy.kHighsInf)
        entries = np.arange(new, dtype=np.int32), (places + self._fixed).astype(np.int32), np.ones(new)
        self._done(self._h.addCols(new, none, none, most, new, *entries), "columns")
        self._add(rows, -self._highspy.kHighsInf, right)

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


class RestatedProgram(GrowingProgram):
    """The same for any backend that gives duals, which solves the whole `program` anew. Raises SolverError."""

    def __init__(self, costs: Vector, equal: Iterable[tuple[Vector, float]], solver: str) -> None:
        rows, right = zip(*equal, strict=True)
        self._costs, self._solver, self.version = costs, solver, ""
        self._A, self._right, self._fixed = sp.csr_array(np.array(rows)), np.array(right, dtype=float), len(rows)

    def extend(self, places: Positions, rows: sp.csr_array, right: float) -> None:
        """As of a live program."""
        height, before = self._A.shape
        width = max(rows.shape[1], before + places.size)
        at = places + self._fixed, before + np.arange(places.size)
        new = sp.csr_array((np.ones(places.size), at), shape=(height, width))
        old, kept = (
            sp.csr_array((part.data, part.indices, part.indptr), shape=(part.shape[0], width))
            for part in (self._A, rows)
        )
        self._A = sp.csr_array(sp.vstack([old + new, kept]))
        self._right = np.append(self._right, np.full(rows.shape[0], right))

    @property
    def program(self) -> Program:
        """What is stated so far."""
        A, right = sp.csc_array(self._A), self._right
        A.data[np.abs(A.data) < SMALLEST] = 0.0
        A.eliminate_zeros()
        width = A.shape[1]
        lower = np.append(right[: self._fixed], np.full(right.size - self._fixed, -np.inf))
        costs = np.append(self._costs, np.zeros(width - self._costs.size))
        none, most = np.zeros(width), np.full(width, np.inf)
        return Program("growing", Data(costs, 0.0, A, lower, right, none, most, np.zeros(width, dtype=bool)))

    def solve(self, deadline: Deadline | None = None) -> Point:
        """The optimum. Raises SolverError where the backend finds none with duals, in time."""
        limit = None if deadline is None or deadline.left is None else max(1.0, deadline.left)
        with backend(self._solver).open(self.program, Options(time_limit=limit)) as session:
            solution = session.solve({})
        self.version = solution.version
        if solution.x is None or solution.row_dual is None:
            raise SolverError(f"{self._solver} gave no optimum with duals: {solution.raw_status!r}.")
        duals = np.maximum(-solution.row_dual[self._fixed :], 0.0)
        return Point(solution.x, duals, float(solution.objective or 0.0))
