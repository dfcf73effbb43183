"""Linear programs that gain rows and columns between solves, as cutting-plane methods need them.

    growing = GrowingProgram(program)
    point = growing.solve()
    growing.extend(...)         # Add the rows that the point violates.
    point = growing.solve()     # Start from the last basis.

Added rows have the form r'x <= h. Columns 0 <= z <= u without a cost may be added with them.

`Session` changes the numbers of a program of fixed shape. Here the shape changes. The simplex
method of HiGHS solves such a program again from its last basis, which is fast. Other backends get
the whole program at every solve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from workbench.solvers.arrays import Positions, Vector
from workbench.solvers.backend import Options, solve
from workbench.solvers.backends.highs import create_silent_highs
from workbench.solvers.data import compute_row_factors
from workbench.solvers.errors import SolverError
from workbench.solvers.program import Data, Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import DualValues, PointStatus, Solution, Termination

_MAX_ITERATIONS = 100_000  # A solve with more iterations is stopped, because it is in a cycle.
# A backend that solves the whole program again gets at least this time, also after the deadline.
_MIN_SOLVE_SECONDS = 1.0
# Values of HiGHS's simplex_dual_edge_weight_strategy: chosen by HiGHS, and Devex.
_DEFAULT_EDGE_WEIGHTS = -1
_DEVEX_EDGE_WEIGHTS = 1
# HiGHS may fail at its tolerance, for example by calling a bounded program unbounded. The solve is
# then repeated with these coarser tolerances.
_COARSE_TOLERANCES = (1e-9, 1e-8)
# Values of HiGHS's simplex_scale_strategy: chosen by HiGHS, and by the largest entries.
_DEFAULT_SCALING = 2
_LARGEST_ENTRY_SCALING = 4


@dataclass(frozen=True)
class Point:
    """An optimal point.

    Attributes:
        x: (columns,).
        duals: (rows,) with the signs of `workbench.solvers.solution`: <= 0 where r'x <= h is tight.
        value: value of the objective, without the program's shift.
    """

    x: Vector
    duals: Vector
    value: float


class RestatedProgram:
    """A growing program for any backend, which solves the whole program anew each time.

    Attributes:
        width: number of columns.
        rows: number of rows.
    """

    def __init__(self, program: Program, solver: str, options: Options | None = None) -> None:
        """Begin with a program.

        Args:
            program: the initial program, at the numbers of its template. All numbers are in the
                units of the model.
            solver: label of the backend.
            options: options of every solve, except the time limit.
        """
        self._initial_program = program
        self._solver = solver
        self._options = options or Options()
        A = program.template.A.tocoo()
        self._entries = [(A.data, *A.coords)]  # Values, rows and columns.
        self._row_uppers = [program.template.row_upper]
        self._column_uppers = [program.template.upper]
        self.width = program.shape[1]
        self.rows = program.shape[0]
        self._solution: Solution | None = None

    def extend(
        self,
        column_rows: Positions,
        rows: sp.csr_array,
        row_upper: Vector | float,
        column_upper: Vector | float = np.inf,
    ) -> int:
        """Add columns and rows.

        Args:
            column_rows: for each new column, the earlier row in which it has the entry 1, or -1 if
                there is none. New columns z have no cost, and 0 <= z <= column_upper.
            rows: (new rows, all columns) coefficients.
            row_upper: upper bound of the new rows, or one for each.
            column_upper: upper bound of the new columns, or one for each.

        Returns:
            The position of the first new row.
        """
        column_count = column_rows.size
        first_row = self.rows
        new_columns = self.width + np.arange(column_count)
        coordinates = rows.tocoo()
        row_index, column_index = coordinates.coords
        has_row = column_rows >= 0
        self._entries += [
            (np.ones(has_row.sum()), column_rows[has_row], new_columns[has_row]),
            (coordinates.data, row_index + first_row, column_index),
        ]
        self._row_uppers.append(np.full(rows.shape[0], row_upper))
        self._column_uppers.append(np.full(column_count, column_upper))
        self.width += column_count
        self.rows += rows.shape[0]
        return first_row

    @property
    def program(self) -> Program:
        """Return the whole program."""
        data = self._initial_program.template
        values, rows, columns = map(np.concatenate, zip(*self._entries, strict=True))
        new_column_count = self.width - data.c.size
        new_row_count = self.rows - data.row_lower.size
        column_zeros = np.zeros(new_column_count)  # The costs and lower bounds of the new columns.
        is_new_integer = np.zeros(new_column_count, dtype=bool)
        template = Data(
            c=np.concatenate([data.c, column_zeros]),
            offset=data.offset,
            A=sp.csc_array((values, (rows, columns)), shape=(self.rows, self.width)),
            row_lower=np.concatenate([data.row_lower, np.full(new_row_count, -np.inf)]),
            row_upper=np.concatenate(self._row_uppers),
            lower=np.concatenate([data.lower, column_zeros]),
            upper=np.concatenate(self._column_uppers),
            integrality=np.concatenate([data.integrality, is_new_integer]),
        )
        return replace(self._initial_program, template=template)

    def solve(self, deadline: Deadline | None = None) -> Point:
        """Solve the program.

        Args:
            deadline: time limit of the search. None for no limit.

        Raises:
            SolverError: the backend found no optimum with dual values in time.
        """
        time_limit = None
        if deadline is not None and deadline.remaining_seconds is not None:
            time_limit = max(_MIN_SOLVE_SECONDS, deadline.remaining_seconds)
        options = replace(self._options, time_limit=time_limit)
        solution = solve(self.program, solver=self._solver, options=options)
        duals = np.zeros(self.rows) if solution.program.is_mip else solution.row_dual
        if solution.x is None or duals is None:
            raise SolverError(
                f"{self._solver} gave no optimum with duals: {solution.raw_status!r}."
            )
        self._solution = solution
        value = float(solution.objective or 0.0) - self._initial_program.shift
        return Point(solution.x, duals, value)

    @property
    def version(self) -> str:
        """Return the version of the solver, or "" before the first solve."""
        if self._solution is None:
            return ""
        return self._solution.version

    def to_solution(self, point: Point) -> Solution:
        """Return the last solution with the columns of a point.

        Args:
            point: the last point, or other columns with its multipliers.
        """
        assert self._solution is not None
        return replace(self._solution, x=point.x)


class GrowingProgram(RestatedProgram):
    """A growing program in one live object of HiGHS."""

    def __init__(self, program: Program, tolerance: float = 1e-9, use_devex: bool = False) -> None:
        """Begin with a program.

        Args:
            program: the initial program, at the numbers of its template.
            tolerance: allowed violation of rows.
            use_devex: whether edges are priced by Devex weights (Harris 1973). Exact norms, which
                HiGHS uses otherwise, are computed anew after new rows.

        Raises:
            SolverError: HiGHS refused the program.
        """
        import highspy

        super().__init__(program, "highs")
        self._highspy = highspy
        self._h = create_silent_highs()
        self._clock = Deadline()
        settings = {
            "output_flag": False,
            "presolve": "off",
            "threads": 1,
            "simplex_iteration_limit": _MAX_ITERATIONS,
            "simplex_dual_edge_weight_strategy": _DEFAULT_EDGE_WEIGHTS,
        }
        if use_devex:
            settings["simplex_dual_edge_weight_strategy"] = _DEVEX_EDGE_WEIGHTS
        for name, value in settings.items():
            self._h.setOptionValue(name, value)
        self._tolerance = tolerance
        self._set_tolerance(tolerance)
        data = program.template
        scale = program.scale
        size = data.c.size
        self._h.addVars(size, data.lower * scale, data.upper * scale)
        self._h.changeColsCost(size, np.arange(size, dtype=np.int32), data.c * program.cost)
        self._row_factors = compute_row_factors(data, scale)
        scaled_data = data.with_scaled_rows(self._row_factors)
        rows = sp.csr_array(scaled_data.A)
        self._add_rows(rows, scaled_data.row_lower, scaled_data.row_upper)

    def _add_rows(self, rows: sp.csr_array, low: Vector, high: Vector) -> None:
        """Add rows low <= rows @ x <= high, in units of the model, to the live object."""
        scale = self._initial_program.scale
        status = self._h.addRows(
            rows.shape[0],
            low * scale,
            high * scale,
            rows.nnz,
            rows.indptr[:-1].astype(np.int32),
            rows.indices.astype(np.int32),
            rows.data,
        )
        self._require_success(status, "rows")

    def _set_tolerance(self, tolerance: float) -> None:
        """Set the primal and the dual feasibility tolerance of HiGHS."""
        for side in ("primal", "dual"):
            self._h.setOptionValue(f"{side}_feasibility_tolerance", tolerance)

    def _require_success(self, status: object, part: str) -> None:
        """Raise SolverError if HiGHS did not accept the rows or columns named by `part`."""
        if status != self._highspy.HighsStatus.kOk:
            raise SolverError(f"highs refused {part} of a growing program.")

    def extend(
        self,
        column_rows: Positions,
        rows: sp.csr_array,
        row_upper: Vector | float,
        column_upper: Vector | float = np.inf,
    ) -> int:
        """Add columns and rows to the live object. Arguments: see `RestatedProgram.extend`."""
        column_count = column_rows.size
        costs = np.zeros(column_count)
        column_lower = np.zeros(column_count)
        has_row = column_rows >= 0
        entry_count = int(has_row.sum())
        # The position of the first entry of each column in the list of all entries.
        entry_starts: NDArray[np.int32] = (np.cumsum(has_row) - has_row).astype(np.int32)
        status = self._h.addCols(
            column_count,
            costs,
            column_lower,
            np.full(column_count, column_upper * self._initial_program.scale),
            entry_count,
            entry_starts,
            column_rows[has_row].astype(np.int32),
            np.ones(entry_count),
        )
        self._require_success(status, "columns")
        row_count = rows.shape[0]
        self._add_rows(rows, np.full(row_count, -np.inf), np.full(row_count, row_upper))
        return super().extend(column_rows, rows, row_upper, column_upper)

    def solve(self, deadline: Deadline | None = None) -> Point:
        """Solve the program from the last basis.

        Args:
            deadline: time limit of the search. None for no limit.

        Raises:
            SolverError: HiGHS found no optimum in time.
        """
        if deadline is not None and deadline.remaining_seconds is not None:
            end_time = self._h.getRunTime() + max(0.0, deadline.remaining_seconds)
            self._h.setOptionValue("time_limit", end_time)
        self._h.run()
        statuses = self._highspy.HighsModelStatus
        status = self._h.getModelStatus()
        for tolerance in (self._tolerance, *_COARSE_TOLERANCES):
            if status in (statuses.kOptimal, statuses.kTimeLimit):
                break
            # A hot start may end in numerical trouble that a cold start avoids.
            self._h.clearSolver()
            self._set_tolerance(tolerance)
            self._h.run()
            status = self._h.getModelStatus()
        self._set_tolerance(self._tolerance)
        if status not in (statuses.kOptimal, statuses.kTimeLimit):
            # Nearly parallel rows may need other scales.
            self._h.clearSolver()
            self._h.setOptionValue("simplex_scale_strategy", _LARGEST_ENTRY_SCALING)
            self._h.run()
            status = self._h.getModelStatus()
            self._h.setOptionValue("simplex_scale_strategy", _DEFAULT_SCALING)
        if status != statuses.kOptimal:
            raise SolverError(
                f"highs ended a growing program with {self._h.modelStatusToString(status)!r}."
            )
        return self._read_point()

    def _read_point(self) -> Point:
        """Return the point of HiGHS in the units of the model."""
        solution = self._h.getSolution()
        scale = self._initial_program.scale
        cost = self._initial_program.cost
        _, scaled_value = self._h.getInfoValue("objective_function_value")
        value = float(scaled_value) / (scale * cost)
        value += self._initial_program.template.offset
        duals = np.array(solution.row_dual) / cost
        if self._row_factors is not None:
            duals[: self._row_factors.size] *= self._row_factors
        return Point(np.array(solution.col_value) / scale, duals, value)

    @property
    def version(self) -> str:
        """Return the version of HiGHS."""
        return str(self._h.version())

    def to_solution(self, point: Point) -> Solution:
        """Return a point as a solution of the whole program.

        Args:
            point: columns and rows that were added after it get zeros.
        """
        new_columns = self.width - point.x.size
        new_rows = self.rows - point.duals.size
        return Solution(
            self.program,
            np.zeros(0),
            termination=Termination.OPTIMAL,
            point=PointStatus.FEASIBLE,
            dual=PointStatus.FEASIBLE,
            x=np.pad(point.x, (0, new_columns)),
            dual_values=DualValues(np.pad(point.duals, (0, new_rows)) * self._initial_program.cost),
            seconds=self._clock.elapsed_seconds,
            solver="highs",
            version=self.version,
            threads=1,
            raw_status="Optimal",
        )
