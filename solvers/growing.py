"""A program that gains rows and columns between its solves: the master program of cutting planes.

    a linear program, and rows r'x <= h that come later; columns 0 <= z <= u without a cost come with them

`Session` moves the numbers of a program of fixed shape; here the shape moves, which only the simplex method re-solves
cheaply (by its dual, from the last basis). Other backends than HiGHS are given the whole program at every solve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from workbench.solvers.arrays import Positions, Vector
from workbench.solvers.backend import Options, solve
from workbench.solvers.backends.highs import create_silent_highs
from workbench.solvers.data import compute_row_factors
from workbench.solvers.errors import SolverError
from workbench.solvers.program import Data, Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import DualValues, PointStatus, Solution, Termination

_ITERATIONS = 100_000  # of one solve: more are a cycle
_CHOSEN, _DEVEX = -1, 1  # by HiGHS itself; of its simplex_dual_edge_weight_strategy
_COARSER = (
    1e-9,
    1e-8,
)  # tolerances at which HiGHS may answer what it calls unbounded at finer ones


@dataclass(frozen=True)
class Point:
    """An optimum. x: (columns,); duals: (rows,) as `workbench.solvers.solution` has them: <= 0 where r'x <= h presses;
    value: of the objective, without the program's shift."""

    x: Vector
    duals: Vector
    value: float


class RestatedProgram:
    """A growing program for any backend, which solves the whole `program` anew.

    program: what it starts from, at its template's numbers; masses are in its scale throughout, like `Program` says.
    options: of every solve, but for the time limit.
    """

    def __init__(self, program: Program, solver: str, options: Options | None = None) -> None:
        self._first, self._solver, self._options = program, solver, options or Options()
        first = program.template.A.tocoo()
        self._entries = [(first.data, *first.coords)]  # value, row, column
        self._right, self._upper = [program.template.row_upper], [program.template.upper]
        self.width, self.rows = program.shape[1], program.shape[0]
        self._answer: Solution | None = None

    def extend(
        self,
        column_rows: Positions,
        rows: sp.csr_array,
        row_upper: float,
        column_upper: float = np.inf,
    ) -> int:
        """New columns 0 <= z <= most without a cost, each with a 1 in the row of its place, and new rows over all
        columns, each <= right; the position of the first of them."""
        new, first = column_rows.size, self.rows
        kept = rows.tocoo()
        row, column = kept.coords
        self._entries += [
            (np.ones(new), column_rows, self.width + np.arange(new)),
            (kept.data, row + first, column),
        ]
        self._right.append(np.full(rows.shape[0], row_upper))
        self._upper.append(np.full(new, column_upper))
        self.width, self.rows = self.width + new, first + rows.shape[0]
        return first

    @property
    def program(self) -> Program:
        """What is stated so far."""
        data = self._first.template
        values, rows, columns = map(np.concatenate, zip(*self._entries, strict=True))
        new, more = np.zeros(self.width - data.c.size), np.zeros(self.rows - data.row_lower.size)
        grown = Data(
            np.concatenate([data.c, new]),
            data.offset,
            sp.csc_array((values, (rows, columns)), shape=(self.rows, self.width)),
            np.concatenate([data.row_lower, more - np.inf]),
            np.concatenate(self._right),
            np.concatenate([data.lower, new]),
            np.concatenate(self._upper),
            np.concatenate([data.integrality, new > 0]),
        )
        return replace(self._first, template=grown)

    def solve(self, deadline: Deadline | None = None) -> Point:
        """The optimum. Raises SolverError where the backend finds none with duals, in time."""
        limit = (
            None
            if deadline is None or deadline.remaining_seconds is None
            else max(1.0, deadline.remaining_seconds)
        )
        options = replace(self._options, time_limit=limit)
        solution = solve(self.program, solver=self._solver, options=options)
        duals = np.zeros(self.rows) if solution.program.is_mip else solution.row_dual
        if solution.x is None or duals is None:
            raise SolverError(
                f"{self._solver} gave no optimum with duals: {solution.raw_status!r}."
            )
        self._answer = solution
        return Point(solution.x, duals, float(solution.objective or 0.0) - self._first.shift)

    @property
    def version(self) -> str:
        """Of the solver."""
        return "" if self._answer is None else self._answer.version

    def to_solution(self, point: Point) -> Solution:
        """The last point, or other columns with its multipliers, as an answer to what was stated then."""
        assert self._answer is not None
        return replace(self._answer, x=point.x)


class GrowingProgram(RestatedProgram):
    """One live program of HiGHS. tolerance: how far a row may be broken; devex: whether Devex weights (Harris 1973)
    price edges, and no exact norms, which HiGHS computes anew after new rows. Raises SolverError."""

    def __init__(self, program: Program, tolerance: float = 1e-9, use_devex: bool = False) -> None:
        import highspy

        super().__init__(program, "highs")
        self._highspy, self._h, self._clock = highspy, create_silent_highs(), Deadline()
        for name, value in {
            "output_flag": False,
            "presolve": "off",
            "threads": 1,
            "simplex_iteration_limit": _ITERATIONS,
            "simplex_dual_edge_weight_strategy": _DEVEX if use_devex else _CHOSEN,
        }.items():
            self._h.setOptionValue(name, value)
        self._tolerance = tolerance
        self._set_tolerance(tolerance)
        data, scale = program.template, program.scale
        size = data.c.size
        self._h.addVars(size, data.lower * scale, data.upper * scale)
        self._h.changeColsCost(size, np.arange(size, dtype=np.int32), data.c * program.cost)
        self._factors = compute_row_factors(data, scale)
        data = data.with_scaled_rows(self._factors)
        self._add_rows(sp.csr_array(data.A), data.row_lower, data.row_upper)

    def _add_rows(self, rows: sp.csr_array, low: Vector, high: Vector) -> None:
        scale = self._first.scale
        starts, index = (part.astype(np.int32) for part in (rows.indptr[:-1], rows.indices))
        self._require_success(
            self._h.addRows(
                rows.shape[0], low * scale, high * scale, rows.nnz, starts, index, rows.data
            ),
            "rows",
        )

    def _set_tolerance(self, tolerance: float) -> None:
        for side in ("primal", "dual"):
            self._h.setOptionValue(f"{side}_feasibility_tolerance", tolerance)

    def _require_success(self, status: object, what: str) -> None:
        if status != self._highspy.HighsStatus.kOk:
            raise SolverError(f"highs refused {what} of a growing program.")

    def extend(
        self,
        column_rows: Positions,
        rows: sp.csr_array,
        row_upper: float,
        column_upper: float = np.inf,
    ) -> int:
        """As of a restated program."""
        new = column_rows.size
        none, upper = np.zeros(new), np.full(new, column_upper * self._first.scale)
        entries = np.arange(new, dtype=np.int32), column_rows.astype(np.int32), np.ones(new)
        self._require_success(self._h.addCols(new, none, none, upper, new, *entries), "columns")
        self._add_rows(rows, np.full(rows.shape[0], -np.inf), np.full(rows.shape[0], row_upper))
        return super().extend(column_rows, rows, row_upper, column_upper)

    def solve(self, deadline: Deadline | None = None) -> Point:
        """The optimum, from the last basis. Raises SolverError where HiGHS finds none, in time."""
        if deadline is not None and deadline.remaining_seconds is not None:
            self._h.setOptionValue(
                "time_limit", self._h.getRunTime() + max(0.0, deadline.remaining_seconds)
            )
        self._h.run()
        status, ends = self._h.getModelStatus(), self._highspy.HighsModelStatus
        for tolerance in (self._tolerance, *_COARSER):
            if status in (ends.kOptimal, ends.kTimeLimit):
                break
            self._h.clearSolver()  # a hot start may end in numerical trouble that a cold one does not meet
            self._set_tolerance(tolerance)
            self._h.run()
            status = self._h.getModelStatus()
        self._set_tolerance(self._tolerance)
        if status != ends.kOptimal:
            raise SolverError(
                f"highs ended a growing program with {self._h.modelStatusToString(status)!r}."
            )
        answer, scale, cost = self._h.getSolution(), self._first.scale, self._first.cost
        value = float(self._h.getInfoValue("objective_function_value")[1]) / (scale * cost)
        value += self._first.template.offset
        duals = np.array(answer.row_dual) / cost
        if self._factors is not None:
            duals[: self._factors.size] *= self._factors
        return Point(np.array(answer.col_value) / scale, duals, value)

    @property
    def version(self) -> str:
        """Of HiGHS."""
        return str(self._h.version())

    def to_solution(self, point: Point) -> Solution:
        """A point as an answer to `program`."""
        size, rows = (
            self.width - point.x.size,
            self.rows - point.duals.size,
        )  # what came after the point
        return Solution(
            self.program,
            np.zeros(0),
            Termination.OPTIMAL,
            PointStatus.FEASIBLE,
            PointStatus.FEASIBLE,
            np.pad(point.x, (0, size)),
            DualValues(np.pad(point.duals, (0, rows)) * self._first.cost),
            seconds=self._clock.elapsed_seconds,
            solver="highs",
            version=self.version,
            threads=1,
            raw_status="Optimal",
        )
