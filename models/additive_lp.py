"""Additive noise on the integers as one linear program, with the excesses y spelled out: fastest for few shifts.

    min Σ c(η) f(η) (+ c(0) a)  s.t.  Σ f (+ a) = 1,  y_s(η) >= f(η) - e^ε f(η + s),  y_s >= 0,  (a +) Σ_η y_s(η) <= δ

The letters, and the two sides, are those of `models.additive_cuts`. Bound: for any 0 <= v_s(η) <= u_s,

    min >= min_η (c(η) + Σ_s v_s(η) - e^ε v_s(η - s)) - δ Σ u,      in exact arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.backend import Options, backend
from solvers.data import Data
from solvers.errors import SolverError
from solvers.program import Block, Program
from solvers.solution import Solution

if TYPE_CHECKING:
    from models.additive_cuts import LineProgram

__all__ = ["SCALE", "solved", "stated"]

SCALE = 2.0**20  # of all masses, so that tolerances are fine beside a small δ


def stated(line: LineProgram) -> Program:
    """The program of the module's docstring. Variables "f" (the atom last), "y" (shifts x noise values, by budget)."""
    budgets, (shifts, values) = line.budgets, line.targets.shape
    shifts *= len(budgets)
    size, count = line.weights.size, shifts * values
    e, y = np.repeat([float(level) for level, _ in budgets], line.targets.size), np.arange(size, size + count)
    source = np.tile(line.columns, shifts)
    target = np.tile(line.targets.ravel(), len(budgets))
    inside = np.flatnonzero(target < len(line.costs))
    rows = np.arange(1, count + 1)
    budget_rows = count + 1 + np.repeat(np.arange(shifts), values)
    parts = [
        (np.zeros(size, dtype=int), np.arange(size), line.weights),
        (rows, source, np.ones(count)), (rows[inside], target[inside], -e[inside]),
        (rows, y, np.full(count, -1.0)), (budget_rows, y, np.ones(count)),
    ]  # fmt: skip
    if line.atom is not None:
        parts.append((count + 1 + np.arange(shifts), np.full(shifts, size - 1), np.ones(shifts)))
    row, column, entry = (np.concatenate([part[k] for part in parts]) for k in range(3))
    matrix = sp.csc_array((entry, (row, column)), shape=(1 + count + shifts, size + count))
    matrix.sum_duplicates()
    upper = np.concatenate([[1.0], np.zeros(count), np.repeat([float(d) for _, d in budgets], shifts // len(budgets))])
    lower = np.full(upper.size, -np.inf)
    lower[0] = 1.0
    costs = np.array([*map(float, line.costs), *([] if line.atom is None else [float(line.atom)])])
    data = Data(
        c=np.concatenate([line.weights * costs, np.zeros(count)]), offset=0.0, A=matrix, row_lower=lower,
        row_upper=upper, lower=np.zeros(size + count), upper=np.full(size + count, np.inf),
        integrality=np.zeros(size + count, dtype=bool),
    )  # fmt: skip
    blocks = (Block("f", 0, (size,)), Block("y", size, (shifts, values)))
    name = f"noise on the integers up to {line.reach}, {line.sensitivity} differences"
    return Program(name, data, variables=blocks, scale=SCALE)


def solved(
    line: LineProgram, solver: str, options: Options | None = None
) -> tuple[Solution, NDArray[np.float64], NDArray[np.float64]]:
    """(the solution, v (rows, noise values), u (rows,)), a row for each budget and shift. Raises SolverError."""
    program = stated(line)
    with backend(solver).open(program, options) as session:
        solution = session.solve({})
    if solution.x is None or solution.row_dual is None:
        raise SolverError(f"{solver} gave no optimum with duals: {solution.raw_status!r}.")
    shifts, values = len(line.budgets) * line.targets.shape[0], line.targets.shape[1]
    duals = np.maximum(-solution.row_dual, 0.0)
    u = duals[1 + shifts * values :]
    return solution, np.minimum(duals[1 : 1 + shifts * values].reshape(shifts, values), u[:, None]), u
