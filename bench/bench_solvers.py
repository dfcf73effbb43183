"""Re-solving through a session against the same loop hand-written on the bare solver, in one run.

An LP of n columns and m rows moves by one parameter: all its right-hand sides, or one coefficient in every row. Both
sides make the same change, solve, and read x and the objective; they take turns, and the median turn counts. "hot"
keeps the live object, "cold" builds the model from its arrays again. Ours also checks the numbers, reads duals and
basis, and keeps three statuses; the ratio says what that costs.
"""

from __future__ import annotations

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

TITLE = "Re-solve through a session against the bare solver"

SIZES = ((20, 200, 0.3), (500, 5000, 0.002))  # columns, rows, density
STEPS = 0.01 * np.arange(1, 8)
TURNS, SECONDS = 300, 1.0  # of one measurement: so many turns, or so long

Answer: TypeAlias = tuple[Any, float]  # x and objective
Turn: TypeAlias = Callable[[float], Answer]


def run() -> pd.DataFrame:
    """One row per backend, size, change and start: median milliseconds of ours and of the bare solver, their ratio."""
    rows: list[dict[str, Any]] = []
    for label in list_backend_names():
        solver = get_backend(label)
        if label not in BARE or not solver.is_installed():
            continue
        for columns, height, density in SIZES:
            program = instance(columns, height, density)
            shared = {"backend": label, "columns": columns, "rows": height}
            try:
                solver.open(program).close()
            except BackendUnavailable as error:
                rows.append(shared | {"note": str(error)})
                continue
            for start in ("hot", "cold") if solver.capabilities().hot_start else ("cold",):
                for change in ("right", "coefficient"):
                    bare = BARE[label](program.template)
                    with solver.open(program) as session:
                        mine, native, turns = measure(
                            ours(session, start, change), getattr(bare, f"{start}_{change}")
                        )
                    rows.append(
                        shared
                        | {
                            "change": change,
                            "start": start,
                            "ours_ms": 1e3 * mine,
                            "bare_ms": 1e3 * native,
                        }
                        | {"ratio": mine / native, "turns": turns, "note": ""}
                    )
    return pd.DataFrame(rows)


def instance(columns: int, rows: int, density: float) -> Program:
    """max w'x, A x <= b (1 + right), 0 <= x <= 5, where one entry of every row is a_i (1 + coefficient)."""
    rng = np.random.default_rng(columns)
    here = np.arange(rows)
    pattern = sp.coo_array((1.0 + rng.random(rows), (here, here % columns)), shape=(rows, columns))
    A = sp.csc_array(
        sp.csc_array(sp.random_array((rows, columns), density=density, rng=rng)) + pattern.tocsc()
    )
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
    moving = moving_entries(A)
    parts = {
        "row_upper": Move(here, b, sp.csr_array((b, (here, 0 * here)), shape=(rows, 2))),
        "A": Move(
            moving,
            A.data[moving],
            sp.csr_array((A.data[moving], (here, 0 * here + 1)), shape=(rows, 2)),
        ),
    }
    return Program(
        name=f"{columns} x {rows}",
        template=data,
        variables=(Block("x", 0, (columns,)),),
        parameters={"right": (), "coefficient": ()},
        moves=parts,
    )


def moving_entries(A: sp.csc_array) -> NDArray[np.intp]:
    """Positions in the CSC data array of the entries (i, i mod columns)."""
    column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    return np.flatnonzero(column == A.indices % A.shape[1])


def ours(session: Any, start: str, change: str) -> Turn:
    def turn(value: float) -> Answer:
        solution = session.solve({"right": 0.0, "coefficient": 0.0} | {change: value}, start=start)
        assert solution.is_optimal
        return solution.x, solution.objective

    return turn


def measure(ours: Turn, bare: Turn) -> tuple[float, float, int]:
    """Median seconds of a turn of each, and how many turns there were."""
    times: list[tuple[float, float]] = []
    begin = time.process_time()
    for k in range(-3, TURNS):  # three turns to warm up
        value = float(STEPS[k % STEPS.size])
        start = time.process_time()
        x, objective = ours(value)
        middle = time.process_time()
        bare_x, bare_objective = bare(value)
        end = time.process_time()
        assert abs(objective - bare_objective) <= 1e-3 * abs(bare_objective), (
            objective,
            bare_objective,
        )
        assert len(x) == len(bare_x)
        if k >= 0:
            times.append((middle - start, end - middle))
        if k > 2 and end - begin > SECONDS:
            break
    seconds = np.median(np.array(times), axis=0)
    return float(seconds[0]), float(seconds[1]), len(times)


class Bare:
    """A loop on the bare solver. `moved` gives the arrays of an instance, `build` and `solve` run it from scratch."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.moving = moving_entries(data.A)
        self.entries = data.A.data[self.moving]
        self.at_rows = data.A.indices[self.moving]
        self.at_columns = self.at_rows % data.A.shape[1]

    def cold_right(self, value: float) -> Answer:
        return self.cold(self.data.A, self.data.row_upper * (1 + value))

    def cold_coefficient(self, value: float) -> Answer:
        A = self.data.A.copy()
        A.data[self.moving] = self.entries * (1 + value)
        return self.cold(A, self.data.row_upper)

    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
        raise NotImplementedError


class BareHighs(Bare):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        import highspy

        self.highspy = highspy
        self.h = highspy.Highs()
        self.h.setOptionValue("output_flag", False)
        self.h.setOptionValue("threads", 1)
        self.cold(data.A, data.row_upper)
        self.all_rows = np.arange(data.row_upper.size, dtype=np.int32)

    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
        lp = self.highspy.HighsLp()
        lp.num_col_, lp.num_row_ = A.shape[1], A.shape[0]
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.data.c, self.data.lower, self.data.upper
        lp.row_lower_, lp.row_upper_ = self.data.row_lower, b
        lp.a_matrix_.format_ = self.highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
        self.h.clearModel()
        self.h.passModel(lp)
        return self.solve()

    def solve(self) -> Answer:
        self.h.run()
        return np.array(self.h.getSolution().col_value), self.h.getObjectiveValue()

    def hot_right(self, value: float) -> Answer:
        b = self.data.row_upper * (1 + value)
        self.h.changeRowsBounds(b.size, self.all_rows, self.data.row_lower, b)
        return self.solve()

    def hot_coefficient(self, value: float) -> Answer:
        values = (self.entries * (1 + value)).tolist()
        for i, j, a in zip(self.at_rows.tolist(), self.at_columns.tolist(), values, strict=True):
            self.h.changeCoeff(i, j, a)
        return self.solve()


class BareGurobi(Bare):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        import gurobipy

        self.gp = gurobipy
        self.env = gurobipy.Env(empty=True)
        self.env.setParam("OutputFlag", 0)
        self.env.start()
        self.cold(data.A, data.row_upper)
        self.rows = self.model.getConstrs()
        self.matrix_rows = gurobipy.MConstr.fromlist(self.rows)

    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
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
        return self.solve()

    def solve(self) -> Answer:
        self.model.optimize()
        return np.array(self.model.getAttr("X", self.columns)), self.model.ObjVal

    def hot_right(self, value: float) -> Answer:
        self.matrix_rows.setAttr("RHS", self.data.row_upper * (1 + value))
        return self.solve()

    def hot_coefficient(self, value: float) -> Answer:
        values = (self.entries * (1 + value)).tolist()
        for i, j, a in zip(self.at_rows.tolist(), self.at_columns.tolist(), values, strict=True):
            self.model.chgCoeff(self.rows[i], self.columns[j], a)
        return self.solve()


class BareMathOpt(Bare):
    """MathOpt's Python modelling layer, as its documentation shows it."""

    solver = "GLOP"

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        from ortools.math_opt.python import mathopt

        self.mathopt = mathopt
        self.kind = getattr(mathopt.SolverType, self.solver)
        self.parameters = mathopt.SolveParameters(threads=1)
        self.write(data.A, data.row_upper)
        self.live = mathopt.IncrementalSolver(self.model, self.kind)

    def write(self, A: sp.csc_array, b: NDArray[np.float64]) -> None:
        data = self.data
        self.model = self.mathopt.Model()
        self.x = [
            self.model.add_variable(lb=low, ub=high)
            for low, high in zip(data.lower.tolist(), data.upper.tolist(), strict=True)
        ]
        self.rows = [self.model.add_linear_constraint(ub=bound) for bound in b.tolist()]
        for j, loss in enumerate(data.c.tolist()):
            self.model.objective.set_linear_coefficient(self.x[j], loss)
            run = slice(A.indptr[j], A.indptr[j + 1])
            for i, a in zip(A.indices[run].tolist(), A.data[run].tolist(), strict=True):
                self.rows[i].set_coefficient(self.x[j], a)

    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
        self.write(A, b)
        return self.read(self.mathopt.solve(self.model, self.kind, params=self.parameters))

    def read(self, result: Any) -> Answer:
        return np.array(result.variable_values(self.x)), result.objective_value()

    def hot_right(self, value: float) -> Answer:
        for row, bound in zip(self.rows, (self.data.row_upper * (1 + value)).tolist(), strict=True):
            row.upper_bound = bound
        return self.read(self.live.solve(params=self.parameters))

    def hot_coefficient(self, value: float) -> Answer:
        values = (self.entries * (1 + value)).tolist()
        for i, j, a in zip(self.at_rows.tolist(), self.at_columns.tolist(), values, strict=True):
            self.rows[i].set_coefficient(self.x[j], a)
        return self.read(self.live.solve(params=self.parameters))


class BarePdlp(BareMathOpt):
    solver = "PDLP"


class BareGscip(BareMathOpt):
    solver = "GSCIP"


class BareConic(Bare):
    """min c'x, [A; I; -I] x + s = [b; upper; -lower], s >= 0, handed to the conic solver itself."""

    def stack(self, A: sp.csc_array, b: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        unit = sp.eye_array(A.shape[1], format="csc")
        rows = sp.csc_matrix(sp.vstack([A, unit, -unit], format="csc"))
        return rows, np.concatenate([b, self.data.upper, -self.data.lower])


class BareClarabel(BareConic):
    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
        import clarabel  # type: ignore[import-untyped]

        rows, right = self.stack(A, b)
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        n = self.data.c.size
        nothing, cones = sp.csc_matrix((n, n)), [clarabel.NonnegativeConeT(right.size)]
        solution = clarabel.DefaultSolver(
            nothing, self.data.c, rows, right, cones, settings
        ).solve()
        return np.array(solution.x), solution.obj_val


class BareScs(BareConic):
    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
        import scs  # type: ignore[import-untyped]

        rows, right = self.stack(A, b)
        problem = {"A": rows, "b": right, "c": self.data.c}
        settings = {"verbose": False, "linear_solver": "qdldl", "eps_abs": 1e-5, "eps_rel": 1e-5}
        result = scs.solve(problem, {"l": right.size}, **settings)
        return result["x"], result["info"]["pobj"]


class BareScip(Bare):
    def cold(self, A: sp.csc_array, b: NDArray[np.float64]) -> Answer:
        import pyscipopt

        data, model = self.data, pyscipopt.Model()
        model.hideOutput()
        bounds = zip(data.lower.tolist(), data.upper.tolist(), data.c.tolist(), strict=True)
        x = [model.addVar(lb=low, ub=high, obj=loss) for low, high, loss in bounds]
        by_row = A.tocsr()
        for i, bound in enumerate(b.tolist()):
            run = slice(by_row.indptr[i], by_row.indptr[i + 1])
            terms = zip(by_row.data[run].tolist(), by_row.indices[run].tolist(), strict=True)
            model.addCons(pyscipopt.quicksum(a * x[j] for a, j in terms) <= bound)
        model.optimize()
        best = model.getBestSol()
        return [model.getSolVal(best, variable) for variable in x], model.getObjVal()


BARE: dict[str, type[Bare]] = {
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
    print(run().to_string(index=False, float_format="%.3g"))
