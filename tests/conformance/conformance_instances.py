"""Small programs with known answers, and a few that keep a solver busy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from solvers.program import Block, Data, Move, Program

INF = np.inf


def program(c, A, row_lower, row_upper, lower=0.0, upper=INF, integer=False, offset=0.0, scale=1.0, name="instance"):
    """A constant Program; scalars spread over all rows or columns."""
    c = np.array(c, dtype=float)
    n = c.size
    A = sp.csc_array(np.array(A, dtype=float))
    m = A.shape[0]

    def spread(value, size):
        return np.array(np.broadcast_to(np.asarray(value, dtype=float), (size,)))

    data = Data(
        c=c,
        offset=float(offset),
        A=A,
        row_lower=spread(row_lower, m),
        row_upper=spread(row_upper, m),
        lower=spread(lower, n),
        upper=spread(upper, n),
        integrality=np.array(np.broadcast_to(np.asarray(integer, dtype=bool), (n,))),
    )
    return Program(name=name, template=data, variables=(Block("x", 0, (n,)),), scale=scale)


def movable(base: Program, **sections) -> Program:
    """`base` with parameters: section -> (parameter name, entry); the parameter's value is added to the entry."""
    names = list(dict.fromkeys(name for name, _ in sections.values()))
    parts = {}
    for section, (name, entry) in sections.items():
        owner = base.template.A.data if section == "A" else np.atleast_1d(getattr(base.template, section))
        matrix = sp.csr_array(([1.0], ([0], [names.index(name)])), shape=(1, len(names)))
        parts[section] = Move(np.array([entry]), owner[[entry]].astype(float), matrix)
    return Program(
        name=base.name,
        template=base.template,
        variables=base.variables,
        scale=base.scale,
        parameters=dict.fromkeys(names, ()),
        moves=parts,
    )


def triangle(**kwargs) -> Program:
    """min -x - y + 5, x + 2y <= 3, 2x + y <= 3, x, y >= 0: optimum 3 at (1, 1), duals (-1/3, -1/3)."""
    return program([-1, -1], [[1, 2], [2, 1]], -INF, 3, offset=5, name="triangle", **kwargs)


def infeasible(integer=False) -> Program:
    """x + y <= 1 and x + y >= 2."""
    return program([1, 1], [[1, 1], [1, 1]], [-INF, 2], [1, INF], integer=integer, name="infeasible")


def unbounded(integer=False) -> Program:
    """min -x - y, x - y <= 1, x, y >= 0."""
    return program([-1, -1], [[1, -1]], -INF, 1, integer=integer, name="unbounded")


def both(integer=False) -> Program:
    """min -x - y, x - y <= 1 and x - y >= 2: infeasible, and its dual is infeasible as well."""
    return program([-1, -1], [[1, -1], [1, -1]], [-INF, 2], [1, INF], integer=integer, name="both")


def mixed(integer) -> Program:
    """Every kind of row and column: optimum 0.25 at (2, -1.5, 0.5, -3, 1) whether x1 is integer or not.

    Rows: range (at its lower side), equality, >=, <=, free. Columns: boxed, free, fixed, non-positive, boxed.
    """
    A = [
        [1, 1, 0, 0, 0],  # 0.5 <= x1 + x2 <= 4
        [1, 0, 2, 1, 0],  # x1 + 2 x3 + x4 = 0
        [0, 0, 0, 1, 3],  # x4 + 3 x5 >= 0
        [1, 0, 0, 0, 1],  # x1 + x5 <= 9
        [1, 1, 1, 1, 1],  # free
    ]
    return program(
        [0.25, 1.5, 4, 0, 0],
        A,
        [0.5, 0, 0, -INF, -INF],
        [4, 0, INF, 9, INF],
        lower=[0, -INF, 0.5, -INF, -1],
        upper=[2, INF, 0.5, 0, 1],
        integer=[integer, False, False, False, False],
        name="mixed",
    )


def knapsack() -> Program:
    """max 10a + 13b + 18c + 31d + 7e, 11a + 15b + 20c + 35d + 10e <= 47, each 0 or 1: optimum 41."""
    return program([-10, -13, -18, -31, -7], [[11, 15, 20, 35, 10]], -INF, 47, upper=1, integer=True, name="knapsack")


def packing(rows=30, columns=120, seed=0, integer=True) -> Program:
    """A multi-dimensional knapsack: incumbents at once, a proof in hours."""
    rng = np.random.default_rng(seed)
    A = rng.integers(1, 1000, (rows, columns)).astype(float)
    profit = A.mean(axis=0) + rng.integers(1, 500, columns)
    return program(-profit, A, -INF, np.floor(A.sum(axis=1) / 3), upper=1, integer=integer, name="packing")


def market_split(rows=5, columns=40, seed=0) -> Program:
    """Cornuejols and Dawande's equality knapsacks in binaries: no incumbent for a long time."""
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 100, (rows, columns)).astype(float)
    return program(
        np.ones(columns),
        A,
        np.floor(A.sum(axis=1) / 2),
        np.floor(A.sum(axis=1) / 2),
        upper=1,
        integer=True,
        name="market split",
    )


def slow_lp(size=1500, seed=0) -> Program:
    """A dense random LP."""
    rng = np.random.default_rng(seed)
    A = rng.random((size, size))
    return program(-rng.random(size), A, -INF, A.sum(axis=1) / 2, upper=10, name="slow")


def random_lp(rows=12, columns=8, seed=0, scale=1.0) -> Program:
    """Feasible and bounded, with every kind of row; non-degenerate with probability one."""
    rng = np.random.default_rng(seed)
    A = np.round(rng.normal(size=(rows, columns)), 3)
    inside = A @ rng.uniform(0.2, 0.8, columns)
    kind = np.arange(rows) % 4
    low = np.where(kind == 1, -INF, inside - rng.uniform(0.1, 1, rows))
    high = np.where(kind == 2, INF, inside + rng.uniform(0.1, 1, rows))
    high[0] = low[0] = inside[0]
    return program(rng.normal(size=columns), A, low, high, lower=-1, upper=1, scale=scale, name="random")
