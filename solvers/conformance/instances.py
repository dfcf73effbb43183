"""Small programs with known answers, and a few that keep a solver busy.

All programs minimise, have the one variable "x" and are stated as arrays (`make_program`), except
`make_moving_program`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from workbench.solvers.arrays import Vector
from workbench.solvers.program import Block, Data, Move, Program

INF = np.inf

# Parameters of `make_moving_program` with their first values, one for each field of `Data`.
MOVING_BASE = {
    "right": 1.0,
    "coefficient": 0.5,
    "cost": 1.0,
    "bound": 2.0,
    "level": 0.3,
    "constant": 0.0,
}
# Optimal vertices of `make_moving_program` are unique after each of these changes.
MOVING_CHANGES: tuple[dict[str, float], ...] = (
    {"right": 1.2},
    {"coefficient": 0.9},
    {"cost": 3.5},
    {"bound": 0.6},
    {"level": 0.45},
    {"constant": -7.0},
    {"coefficient": 0.0},
    {"right": 0.8, "coefficient": 0.7, "cost": 2.0, "bound": 1.1, "level": 0.1, "constant": 4.0},
    {"right": -5.0},  # The program becomes infeasible.
    {"right": 1.0},
)


def make_program(
    c: ArrayLike,
    A: ArrayLike,
    row_lower: ArrayLike,
    row_upper: ArrayLike,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = INF,
    integer: ArrayLike = False,
    **fields: Any,
) -> Program:
    """State a program without parameters.

    Args:
        c: (columns,) costs.
        A: (rows, columns) coefficients.
        row_lower: lower bounds of rows; a scalar is the bound of all rows.
        row_upper: upper bounds of rows; a scalar is the bound of all rows.
        lower: lower bounds of columns; a scalar is the bound of all columns.
        upper: upper bounds of columns; a scalar is the bound of all columns.
        integer: whether each column is integer; a scalar applies to all columns.
        fields: `offset` of the objective; `name` and `scale` of the Program.

    Returns:
        The program, with one variable "x".
    """
    costs = np.array(c, dtype=float)
    matrix = sp.csc_array(np.array(A, dtype=float))
    row_count, column_count = matrix.shape[0], costs.size
    data = Data(
        c=costs,
        offset=float(fields.pop("offset", 0.0)),
        A=matrix,
        row_lower=_broadcast(row_lower, row_count),
        row_upper=_broadcast(row_upper, row_count),
        lower=_broadcast(lower, column_count),
        upper=_broadcast(upper, column_count),
        integrality=_broadcast(integer, column_count, bool),
    )
    name = fields.pop("name", "instance")
    return Program(name=name, template=data, variables=(Block("x", 0, (column_count,)),), **fields)


def _broadcast(value: ArrayLike, size: int, dtype: DTypeLike = float) -> Any:
    """Return a new array (size,) of the value, or of the values."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=dtype), (size,)))


def add_parameters(base: Program, **sections: tuple[str, int]) -> Program:
    """Give a program parameters, whose values are added to its numbers.

    Args:
        base: a program without parameters.
        sections: for each field of `Data` the pair (name of a parameter, position in that field of
            the number to which the parameter is added).

    Returns:
        The program with these parameters.
    """
    names = list(dict.fromkeys(name for name, _ in sections.values()))
    moves = {}
    for section, (name, entry) in sections.items():
        owner = base.template.A.data if section == "A" else getattr(base.template, section)
        numbers: Vector = np.atleast_1d(owner)
        matrix = sp.csr_array(([1.0], ([0], [names.index(name)])), shape=(1, len(names)))
        moves[section] = Move(np.array([entry]), numbers[[entry]].astype(float), matrix)
    return Program(
        name=base.name,
        template=base.template,
        variables=base.variables,
        scale=base.scale,
        parameters=dict.fromkeys(names, ()),
        moves=moves,
    )


def make_moving_program(scale: float = 1.0, *, integer: bool = False) -> Program:
    """Compile a maximisation in which every section of `Data` changes with a parameter.

    Args:
        scale: factor of the continuous columns in the solver, as in `Program`.
        integer: whether the columns are integer. The parameter "level" then has no effect, because
            the equation would have no integer solution.

    Returns:
        The program. Its parameters are those of `MOVING_BASE`.
    """
    import cvxpy as cp  # It is slow to import, and a session of another solver does without it.

    from workbench.solvers.canonical import compile_program

    parameters = {name: cp.Parameter(name=name) for name in MOVING_BASE}
    x = cp.Variable(6, name="x", bounds=[0, 3], integer=integer)
    # CVXPY requires that no other parameter multiplies z.
    z = cp.Variable(name="z", bounds=[0, parameters["bound"]], integer=integer)
    rng = np.random.default_rng(3)
    A = rng.uniform(0.2, 1, (10, 6))
    level_factor = 0.0 if integer else 1.0
    rows = [
        A @ x <= A.sum(axis=1) * (1 + parameters["right"]),
        parameters["coefficient"] * x[0] + x[1] + x[2] <= 2.25 + parameters["right"],
        (1 + parameters["coefficient"]) * x[3] >= 0.4,
        x[4] + x[5] == 1 + level_factor * parameters["level"],
        z + 0.5 * x[5] <= 1.7,
        cp.sum(x) >= 0.5,
    ]
    profit = rng.uniform(0.5, 1.5, 6) @ x + 1.1 * z + parameters["constant"]
    profit = profit + parameters["cost"] * x[0] + 0.37 * parameters["cost"] * x[3]
    return compile_program(cp.Problem(cp.Maximize(profit), rows), "moving", scale=scale)


def make_triangle(**fields: Any) -> Program:
    """State min -x - y + 5 under x + 2y <= 3, 2x + y <= 3, x, y >= 0.

    The optimum is 3 at (1, 1), with duals (-1/3, -1/3).

    Args:
        fields: further arguments of `make_program`.
    """
    return make_program([-1, -1], [[1, 2], [2, 1]], -INF, 3, offset=5, name="triangle", **fields)


def make_infeasible_program(*, integer: bool = False) -> Program:
    """State x + y <= 1 and x + y >= 2.

    Args:
        integer: whether the columns are integer.
    """
    return make_program(
        [1, 1], [[1, 1], [1, 1]], [-INF, 2], [1, INF], integer=integer, name="infeasible"
    )


def make_unbounded_program(*, integer: bool = False) -> Program:
    """State min -x - y under x - y <= 1, x, y >= 0.

    Args:
        integer: whether the columns are integer.
    """
    return make_program([-1, -1], [[1, -1]], -INF, 1, integer=integer, name="unbounded")


def make_doubly_infeasible_program(*, integer: bool = False) -> Program:
    """State min -x - y under x - y <= 1 and x - y >= 2. Its dual is infeasible as well.

    Args:
        integer: whether the columns are integer.
    """
    return make_program(
        [-1, -1],
        [[1, -1], [1, -1]],
        [-INF, 2],
        [1, INF],
        integer=integer,
        name="infeasible both ways",
    )


def make_mixed_program(*, integer: bool = False) -> Program:
    """State a program with every kind of row and column.

    The optimum is 0.25 at (2, -1.5, 0.5, -3, 1), whether x1 is integer or not. The rows are a
    range (at its lower side), an equality, a row with a lower bound, one with an upper bound and a
    free row. The columns are boxed, free, fixed, non-positive and boxed.

    Args:
        integer: whether x1 is integer.
    """
    A = [
        [1, 1, 0, 0, 0],  # 0.5 <= x1 + x2 <= 4
        [1, 0, 2, 1, 0],  # x1 + 2 x3 + x4 = 0
        [0, 0, 0, 1, 3],  # x4 + 3 x5 >= 0
        [1, 0, 0, 0, 1],  # x1 + x5 <= 9
        [1, 1, 1, 1, 1],  # free
    ]
    return make_program(
        [0.25, 1.5, 4, 0, 0],
        A,
        [0.5, 0, 0, -INF, -INF],
        [4, 0, INF, 9, INF],
        lower=[0, -INF, 0.5, -INF, -1],
        upper=[2, INF, 0.5, 0, 1],
        integer=[integer, False, False, False, False],
        name="mixed",
    )


def make_knapsack() -> Program:
    """State max 10a + 13b + 18c + 31d + 7e under 11a + 15b + 20c + 35d + 10e <= 47 in binaries.

    The optimum is 41.
    """
    return make_program(
        [-10, -13, -18, -31, -7],
        [[11, 15, 20, 35, 10]],
        -INF,
        47,
        upper=1,
        integer=True,
        name="knapsack",
    )


def make_packing(rows: int = 30, columns: int = 120, seed: int = 0) -> Program:
    """State a multi-dimensional knapsack. Incumbents are found at once, a proof takes hours.

    Args:
        rows: number of knapsacks.
        columns: number of items.
        seed: seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    A = rng.integers(1, 1000, (rows, columns)).astype(float)
    profit = A.mean(axis=0) + rng.integers(1, 500, columns)
    return make_program(
        -profit, A, -INF, np.floor(A.sum(axis=1) / 3), upper=1, integer=True, name="packing"
    )


def make_market_split(rows: int = 5, columns: int = 40, seed: int = 0) -> Program:
    """State a market split problem of Cornuejols and Dawande.

    Solvers need a long time to find the first feasible point.

    Args:
        rows: number of equality knapsacks.
        columns: number of binaries.
        seed: seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 100, (rows, columns)).astype(float)
    return make_program(
        np.ones(columns),
        A,
        np.floor(A.sum(axis=1) / 2),
        np.floor(A.sum(axis=1) / 2),
        upper=1,
        integer=True,
        name="market split",
    )


def make_slow_lp(size: int = 1500, seed: int = 0) -> Program:
    """State a dense random LP that takes solvers seconds.

    Args:
        size: number of rows, and of columns.
        seed: seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    A = rng.random((size, size))
    return make_program(-rng.random(size), A, -INF, A.sum(axis=1) / 2, upper=10, name="slow")


def make_random_lp(rows: int = 12, columns: int = 8, seed: int = 0, scale: float = 1.0) -> Program:
    """State a feasible and bounded LP with every kind of row, non-degenerate with probability 1.

    Args:
        rows: number of rows.
        columns: number of columns.
        seed: seed of the random numbers.
        scale: factor of the continuous columns in the solver, as in `Program`.
    """
    rng = np.random.default_rng(seed)
    A = np.round(rng.normal(size=(rows, columns)), 3)
    row_values = A @ rng.uniform(0.2, 0.8, columns)  # A point with these values stays feasible.
    row_kind = np.arange(rows) % 4
    has_only_upper_side = row_kind == 1
    has_only_lower_side = row_kind == 2
    low = np.where(has_only_upper_side, -INF, row_values - rng.uniform(0.1, 1, rows))
    high = np.where(has_only_lower_side, INF, row_values + rng.uniform(0.1, 1, rows))
    high[0] = low[0] = row_values[0]  # Row 0 is an equation.
    return make_program(
        rng.normal(size=columns), A, low, high, lower=-1, upper=1, scale=scale, name="random"
    )
