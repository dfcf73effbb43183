"""Compare solving again through a session with the same loop written by hand on the bare solver.

An LP has one parameter, which multiplies all its right-hand sides ("right") or one coefficient in
every row ("coefficient"). Both sides change the parameter, solve, and read x and the objective.
"hot" changes the live object of the solver, and "cold" builds the model from its arrays again. Both
sides take turns, and the median turn counts.

The session also checks the numbers, reads dual values and basis, and determines its statuses. The
ratio (session / bare) shows how much time this takes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from workbench.solvers.backend import get_backend, list_backend_names
from workbench.solvers.errors import BackendUnavailable
from workbench.solvers.program import Block, Data, Move, Program

TITLE = "Solving again through a session against the bare solver"

SIZES = ((20, 200, 0.3), (500, 5000, 0.002))  # Columns, rows and density.
STEPS = 0.01 * np.arange(1, 8)  # Values of the parameter, in turns.
MAX_TURNS = 300  # A measurement ends after this many turns or MAX_SECONDS, whichever is first.
MAX_SECONDS = 1.0  # CPU seconds of both sides together.
MIN_TURNS = 4  # A measurement has at least this many turns, even after MAX_SECONDS.
WARM_UP_TURNS = 3  # The first turns are not measured.
_COMPARISON_TOLERANCE = 1e-3  # Relative difference of the objectives of both sides.

Matrix: TypeAlias = sp.csc_array
Vector: TypeAlias = NDArray[np.float64]
Answer: TypeAlias = tuple[Any, float]  # x and the objective.
Turn: TypeAlias = Callable[[float], Answer]  # Solves at a value of the parameter.


def run_solvers_benchmark() -> pd.DataFrame:
    """Return one row for each backend, size, start and change.

    It has the median milliseconds of the session and of the bare solver, and their ratio.
    """
    rows: list[dict[str, Any]] = []
    for label in list_backend_names():
        if label in BARE_SOLVERS and get_backend(label).is_installed():
            for columns, row_count, density in SIZES:
                program = make_program(columns, row_count, density)
                size = {"backend": label, "columns": columns, "rows": row_count}
                try:
                    rows += [size | row for row in _time_backend(label, program)]
                except BackendUnavailable as error:
                    rows.append(size | {"note": str(error)})
    return pd.DataFrame(rows)


def _time_backend(label: str, program: Program) -> list[dict[str, Any]]:
    """Return a row for each start and change. Raises BackendUnavailable."""
    solver = get_backend(label)
    solver.open(program).close()
    starts = ("hot", "cold") if solver.capabilities().hot_start else ("cold",)
    rows = []
    for start, change in itertools.product(starts, ("right", "coefficient")):
        bare_solver = BARE_SOLVERS[label](program.template)
        bare_turn = getattr(bare_solver, f"{start}_{change}")  # For example `hot_right`.
        with solver.open(program) as session:
            session_turn = make_session_turn(session, start, change)
            session_seconds, bare_seconds, turns = time_both_sides(session_turn, bare_turn)
        rows.append(
            {
                "change": change,
                "start": start,
                "ours_ms": 1e3 * session_seconds,
                "bare_ms": 1e3 * bare_seconds,
                "ratio": session_seconds / bare_seconds,
                "turns": turns,
                "note": "",
            }
        )
    return rows


def make_program(columns: int, rows: int, density: float) -> Program:
    """Make max w'x, A x <= b (1 + right), 0 <= x <= 5.

    One entry of every row is a_i (1 + coefficient).

    Args:
        columns: number of columns.
        rows: number of rows.
        density: share of non-zero entries.
    """
    rng = np.random.default_rng(columns)
    row_index = np.arange(rows)
    moving = (1.0 + rng.random(rows), (row_index, row_index % columns))
    pattern = sp.coo_array(moving, shape=(rows, columns))
    random_entries = sp.csc_array(sp.random_array((rows, columns), density=density, rng=rng))
    A = sp.csc_array(random_entries + pattern.tocsc())
    b = A.sum(axis=1) * rng.uniform(0.8, 1.2, rows)
    data = Data(
        c=-rng.uniform(0.5, 1.5, columns),
        offset=0.0,
        A=A,
        row_lower=np.full(rows, -np.inf),
        row_upper=b,
        lower=np.zeros(columns),
        upper=np.full(columns, 5.0),
        integrality=np.zeros(columns, dtype=bool),
    )
    positions = find_moving_entries(A)
    entries = A.data[positions]
    zeros = 0 * row_index
    side_matrix = sp.csr_array((b, (row_index, zeros)), shape=(rows, 2))
    entry_matrix = sp.csr_array((entries, (row_index, zeros + 1)), shape=(rows, 2))
    return Program(
        name=f"{columns} x {rows}",
        template=data,
        variables=(Block("x", 0, (columns,)),),
        parameters={"right": (), "coefficient": ()},
        moves={
            "row_upper": Move(row_index, b, side_matrix),
            "A": Move(positions, entries, entry_matrix),
        },
    )


def find_moving_entries(A: Matrix) -> NDArray[np.intp]:
    """Return the positions in the CSC data array of the entries (i, i mod columns).

    Args:
        A: (rows, columns).
    """
    column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    return np.flatnonzero(column == A.indices % A.shape[1])


def make_session_turn(session: Any, start: str, change: str) -> Turn:
    """Return the function that solves with a session.

    Args:
        session: session of the program.
        start: "hot" or "cold".
        change: name of the parameter.
    """

    def solve_turn(value: float) -> Answer:
        """Solve with one parameter at a value and the other one at 0."""
        values = {"right": 0.0, "coefficient": 0.0, change: value}
        solution = session.solve(values, start=start)
        assert solution.is_optimal
        return solution.x, solution.objective

    return solve_turn


def time_both_sides(session_turn: Turn, bare_turn: Turn) -> tuple[float, float, int]:
    """Return the median seconds of a turn of each side, and the number of turns.

    Args:
        session_turn: solves with a session.
        bare_turn: solves with the bare solver.
    """
    times: list[tuple[float, float]] = []  # Seconds of the session and of the bare solver.
    first_begin = time.process_time()
    for k in range(-WARM_UP_TURNS, MAX_TURNS):
        value = float(STEPS[k % STEPS.size])
        begin = time.process_time()
        x, objective = session_turn(value)
        middle = time.process_time()
        bare_x, bare_objective = bare_turn(value)
        end = time.process_time()
        difference = abs(objective - bare_objective)
        assert difference <= _COMPARISON_TOLERANCE * abs(bare_objective), (
            objective,
            bare_objective,
        )
        assert len(x) == len(bare_x)
        is_warm_up = k < 0
        if not is_warm_up:
            times.append((middle - begin, end - middle))
        if len(times) >= MIN_TURNS and end - first_begin > MAX_SECONDS:
            break
    seconds = np.median(np.array(times), axis=0)
    return float(seconds[0]), float(seconds[1]), len(times)


class BareSolver:
    """A linear program in a bare solver, which solves it at values of the parameter.

    The methods are named <start>_<change>. A subclass for a solver with hot starts also has
    `hot_right` and `hot_coefficient`.

    Attributes:
        data: the linear program.
        positions: positions of the moving entries in the CSC data array.
        entries: their values when the parameter is 0.
        entry_rows, entry_columns: their rows and columns.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self.positions = find_moving_entries(data.A)
        self.entries = data.A.data[self.positions]
        self.entry_rows = data.A.indices[self.positions]
        self.entry_columns = self.entry_rows % data.A.shape[1]

    def cold_right(self, value: float) -> Answer:
        """Build the model with right-hand sides multiplied by 1 + value, and solve it.

        Args:
            value: value of the parameter.
        """
        return self.solve_cold(self.data.A, self.data.row_upper * (1 + value))

    def cold_coefficient(self, value: float) -> Answer:
        """Build the model with moving entries multiplied by 1 + value, and solve it.

        Args:
            value: value of the parameter.
        """
        A = self.data.A.copy()
        A.data[self.positions] = self.entries * (1 + value)
        return self.solve_cold(A, self.data.row_upper)

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it.

        Args:
            A: (rows, columns) coefficients.
            b: (rows,) right-hand sides.
        """
        raise NotImplementedError

    def _list_moved_entries(self, value: float) -> list[tuple[int, int, float]]:
        """Return (row, column, value) of the moving entries at a value of the parameter."""
        values = (self.entries * (1 + value)).tolist()
        positions = zip(self.entry_rows.tolist(), self.entry_columns.tolist(), values, strict=True)
        return [*positions]


class BareHighs(BareSolver):
    """HiGHS through highspy."""

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        import highspy

        self.highspy = highspy
        self.h = highspy.Highs()
        self.h.setOptionValue("output_flag", False)
        self.h.setOptionValue("threads", 1)
        self.solve_cold(data.A, data.row_upper)
        self.all_rows = np.arange(data.row_upper.size, dtype=np.int32)

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it. Arguments: see `BareSolver.solve_cold`."""
        lp = self.highspy.HighsLp()
        lp.num_col_ = A.shape[1]
        lp.num_row_ = A.shape[0]
        lp.col_cost_ = self.data.c
        lp.col_lower_ = self.data.lower
        lp.col_upper_ = self.data.upper
        lp.row_lower_ = self.data.row_lower
        lp.row_upper_ = b
        lp.a_matrix_.format_ = self.highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = A.indptr
        lp.a_matrix_.index_ = A.indices
        lp.a_matrix_.value_ = A.data
        self.h.clearModel()
        self.h.passModel(lp)
        return self._run()

    def _run(self) -> Answer:
        """Solve the loaded model, and read x and the objective."""
        self.h.run()
        return np.array(self.h.getSolution().col_value), self.h.getObjectiveValue()

    def hot_right(self, value: float) -> Answer:
        """Change the right-hand sides and solve.

        Args:
            value: value of the parameter.
        """
        b = self.data.row_upper * (1 + value)
        self.h.changeRowsBounds(b.size, self.all_rows, self.data.row_lower, b)
        return self._run()

    def hot_coefficient(self, value: float) -> Answer:
        """Change the coefficients and solve.

        Args:
            value: value of the parameter.
        """
        for i, j, a in self._list_moved_entries(value):
            self.h.changeCoeff(i, j, a)
        return self._run()


class BareGurobi(BareSolver):
    """Gurobi through gurobipy."""

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        import gurobipy

        self.gp = gurobipy
        self.env = gurobipy.Env(empty=True)
        self.env.setParam("OutputFlag", 0)
        self.env.start()
        self.solve_cold(data.A, data.row_upper)
        self.rows = self.model.getConstrs()
        self.matrix_rows = gurobipy.MConstr.fromlist(self.rows)

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it. Arguments: see `BareSolver.solve_cold`."""
        self.model = self.gp.loadModel(
            env=self.env,
            numvars=A.shape[1],
            numconstrs=A.shape[0],
            obj=self.data.c,
            lb=self.data.lower,
            ub=self.data.upper,
            constr_csc=(A.data, A.indices, A.indptr),
            sense="<" * A.shape[0],
            rhs=b,
        )
        self.model.setParam("Threads", 1)
        self.columns = self.model.getVars()
        return self._run()

    def _run(self) -> Answer:
        """Solve the model, and read x and the objective."""
        self.model.optimize()
        return np.array(self.model.getAttr("X", self.columns)), self.model.ObjVal

    def hot_right(self, value: float) -> Answer:
        """Change the right-hand sides and solve.

        Args:
            value: value of the parameter.
        """
        self.matrix_rows.setAttr("RHS", self.data.row_upper * (1 + value))
        return self._run()

    def hot_coefficient(self, value: float) -> Answer:
        """Change the coefficients and solve.

        Args:
            value: value of the parameter.
        """
        for i, j, a in self._list_moved_entries(value):
            self.model.chgCoeff(self.rows[i], self.columns[j], a)
        return self._run()


class BareMathOpt(BareSolver):
    """GLOP through MathOpt's Python modelling layer, as its documentation shows it."""

    solver_name = "GLOP"

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        from ortools.math_opt.python import mathopt

        self.mathopt = mathopt
        self.solver_type = getattr(mathopt.SolverType, self.solver_name)
        self.parameters = mathopt.SolveParameters(threads=1)
        self._write_model(data.A, data.row_upper)
        self.incremental_solver = mathopt.IncrementalSolver(self.model, self.solver_type)

    def _write_model(self, A: Matrix, b: Vector) -> None:
        """Set `model`, `x` and `rows` to a new model, its variables and its constraints."""
        data = self.data
        self.model = self.mathopt.Model()
        self.x = [
            self.model.add_variable(lb=low, ub=high)
            for low, high in zip(data.lower.tolist(), data.upper.tolist(), strict=True)
        ]
        self.rows = [self.model.add_linear_constraint(ub=bound) for bound in b.tolist()]
        for j, cost in enumerate(data.c.tolist()):
            self.model.objective.set_linear_coefficient(self.x[j], cost)
            part = slice(A.indptr[j], A.indptr[j + 1])
            for i, a in zip(A.indices[part].tolist(), A.data[part].tolist(), strict=True):
                self.rows[i].set_coefficient(self.x[j], a)

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it. Arguments: see `BareSolver.solve_cold`."""
        self._write_model(A, b)
        return self._read_result(
            self.mathopt.solve(self.model, self.solver_type, params=self.parameters)
        )

    def _read_result(self, result: Any) -> Answer:
        """Return x and the objective of a result of MathOpt."""
        return np.array(result.variable_values(self.x)), result.objective_value()

    def hot_right(self, value: float) -> Answer:
        """Change the right-hand sides and solve.

        Args:
            value: value of the parameter.
        """
        b = (self.data.row_upper * (1 + value)).tolist()
        for row, bound in zip(self.rows, b, strict=True):
            row.upper_bound = bound
        return self._read_result(self.incremental_solver.solve(params=self.parameters))

    def hot_coefficient(self, value: float) -> Answer:
        """Change the coefficients and solve.

        Args:
            value: value of the parameter.
        """
        for i, j, a in self._list_moved_entries(value):
            self.rows[i].set_coefficient(self.x[j], a)
        return self._read_result(self.incremental_solver.solve(params=self.parameters))


class BarePdlp(BareMathOpt):
    """PDLP through MathOpt."""

    solver_name = "PDLP"


class BareGscip(BareMathOpt):
    """gSCIP through MathOpt."""

    solver_name = "GSCIP"


class BareConicSolver(BareSolver):
    """A conic solver for min c'x, [A; I; -I] x + s = [b; upper; -lower], s >= 0."""

    def _stack_rows(self, A: Matrix, b: Vector) -> tuple[Any, Vector]:
        """Return the matrix and the right-hand sides of all rows."""
        identity = sp.eye_array(A.shape[1], format="csc")
        rows = sp.csc_matrix(sp.vstack([A, identity, -identity], format="csc"))
        return rows, np.concatenate([b, self.data.upper, -self.data.lower])


class BareClarabel(BareConicSolver):
    """Clarabel."""

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it. Arguments: see `BareSolver.solve_cold`."""
        import clarabel  # type: ignore[import-untyped]

        rows, right_sides = self._stack_rows(A, b)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        size = self.data.c.size
        quadratic_costs = sp.csc_matrix((size, size))
        cones = [clarabel.NonnegativeConeT(right_sides.size)]
        solver = clarabel.DefaultSolver(
            quadratic_costs, self.data.c, rows, right_sides, cones, settings
        )
        solution = solver.solve()
        return np.array(solution.x), solution.obj_val


class BareScs(BareConicSolver):
    """SCS."""

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it. Arguments: see `BareSolver.solve_cold`."""
        import scs  # type: ignore[import-untyped]

        rows, right_sides = self._stack_rows(A, b)
        problem = {"A": rows, "b": right_sides, "c": self.data.c}
        settings = {"verbose": False, "linear_solver": "qdldl", "eps_abs": 1e-5, "eps_rel": 1e-5}
        result = scs.solve(problem, {"l": right_sides.size}, **settings)
        return result["x"], result["info"]["pobj"]


class BareScip(BareSolver):
    """SCIP through PySCIPOpt."""

    def solve_cold(self, A: Matrix, b: Vector) -> Answer:
        """Build the model and solve it. Arguments: see `BareSolver.solve_cold`."""
        import pyscipopt

        data = self.data
        model = pyscipopt.Model()
        model.hideOutput()
        columns = zip(data.lower.tolist(), data.upper.tolist(), data.c.tolist(), strict=True)
        x = [model.addVar(lb=low, ub=high, obj=cost) for low, high, cost in columns]
        by_row = A.tocsr()
        for i, bound in enumerate(b.tolist()):
            part = slice(by_row.indptr[i], by_row.indptr[i + 1])
            terms = zip(by_row.data[part].tolist(), by_row.indices[part].tolist(), strict=True)
            model.addCons(pyscipopt.quicksum(a * x[j] for a, j in terms) <= bound)
        model.optimize()
        best_point = model.getBestSol()
        return [model.getSolVal(best_point, variable) for variable in x], model.getObjVal()


BARE_SOLVERS: dict[str, type[BareSolver]] = {
    "highs": BareHighs,
    "gurobi": BareGurobi,
    "ortools:glop": BareMathOpt,
    "ortools:pdlp": BarePdlp,
    "ortools:gscip": BareGscip,
    "cvxpy:clarabel": BareClarabel,
    "cvxpy:scs": BareScs,
    "scip": BareScip,
}

if __name__ == "__main__":
    print(run_solvers_benchmark().to_string(index=False, float_format="%.3g"))
