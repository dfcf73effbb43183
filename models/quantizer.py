"""The best private unbiased laws at given points: the exact quantizer LP, and MVU's LP in P, as one model.

Points x_1..x_n carry laws p_e over outputs B_1..B_m. Whatever lies between points is a mixture, so that unbiasedness
and privacy of the laws at the points are those of the whole mechanism (workbench.mechanisms.quantizer):

    exact quantizer LP   points = both one-sided limits at every knot,          relation "all"
    MVU for fixed a      points = the n_in grid points inputs are dithered to,  relation "all"
    metric privacy       points = knots (the law is continuous),                relation "chain"

    minimise    Σ_e Σ_i cost[e, i] p_e(i)
    subject to  Σ_i p_e(i) = 1,   Σ_i B_i p_e(i) = x_e,                         every x between is unbiased too
                "all":    low(i) <= p_e(i) <= e^ε low(i)                        (6) for every real x, in n m rows
                "chain":  p_e(i) <= r_e p_{e+1}(i),  p_{e+1}(i) <= r_e p_e(i)   neighbouring points imply all pairs

The cost is the exact integral of the error over the pieces, linear in the end laws. The LP has no bounds to search, no
proxy objective and no monotonicity assumption; for the same bins it contains every two-bin mechanism.

Symmetry. When bins, points and costs are symmetric, averaging a law with its mirror image costs nothing, so only
the points x > 0 (and at 0 one side) are stated, with cost[e, i] the sum over a point and its mirror.

`program` builds the sparse form directly (a cold solve has milliseconds); `problem` states the same in CVXPY, and the
tests solve both. With p = low + s the rows of "all" become s_e(i) <= (e^ε - 1) low(i).

| paper           | here                                         |
|-----------------|----------------------------------------------|
| e^ε - 1         | parameter "odds"; "chain": r_e - 1, (n - 1,) |
| B_i, x          | parameters "bins" (m,), "at" (n,)            |
| (5), integrated | parameter "cost" (n, m)                      |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from solvers.program import Block, Data, Moves, Program, stating

__all__ = ["RELATIONS", "LawModel", "odds_of", "smallest_epsilon", "smallest_reach", "usual_reach"]

Vector = NDArray[np.float64]

RELATIONS = ("all", "chain")
LAW_SCALE = 2.0**20  # laws are dispatched in units of 2^-20, so that 1e-7 tolerances are 1e-13 of probability


def smallest_epsilon(low: float, high: float, c: float = 1.0) -> float:
    """The least ε at which an unbiased ε-private quantizer on [-c, c] with outputs in [low, high] exists.

    The means at ±c differ by 2c. For e^ε-close laws with outputs in [low, high] and means -c and c the extreme laws
    are two-point, on the ends: with t = e^ε the most likely p of `high` at c and q at -c obey p <= t q and
    1 - q <= t (1 - p), p = (c - low)/w, q = (-c - low)/w, w = high - low. Symmetric: ln((B + c)/(B - c)).
    """
    above, below = high - c, -c - low  # how far the outputs reach beyond the inputs
    if min(above, below) <= 0:
        return float("inf")
    return float(np.log(max((below + 2 * c) / below, (above + 2 * c) / above)))


@lru_cache(maxsize=256)
def odds_of(epsilon: float) -> float:
    """e^ε - 1 correctly rounded: the same on every machine, as a search needs that must take the same path on all."""
    if epsilon > 700:
        return float(np.expm1(epsilon))
    with localcontext(prec=60):
        return float(Decimal(epsilon).exp() - 1)


def smallest_reach(epsilon: float, c: float = 1.0) -> float:
    """The least B for which outputs in [-B, B] can be unbiased and ε-private: c (e^ε + 1)/(e^ε - 1)."""
    return c * (1 + 2 / odds_of(epsilon))


def usual_reach(epsilon: float, c: float = 1.0) -> float:
    """The largest output that is searched unless asked otherwise, twice the least: the mean absolute error has no
    minimum, it keeps falling slightly as the outermost outputs go to infinity.
    """
    return 2 * smallest_reach(epsilon, c)


@dataclass(frozen=True)
class LawModel:
    """One shape of the model; ε, bins, points and costs are parameters.

    Attributes:
        points: n, how many laws are stated.
        outputs: m.
        symmetric: whether low(i) = low(m + 1 - i) (the mirror images are not stated; relation "all" only).
        relation: "all" or "chain".
    """

    points: int
    outputs: int
    symmetric: bool = False
    relation: str = "all"

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS or (self.relation == "chain" and self.symmetric):
            raise ValueError(f"relation must be all, or chain without symmetry. Got {self.relation!r}.")

    @property
    def _tied(self) -> NDArray[np.intp]:
        """Which variable low(i) is. Shape (m,)."""
        i = np.arange(self.outputs)
        return np.minimum(i, self.outputs - 1 - i) if self.symmetric else i

    @property
    def _links(self) -> tuple[int, ...]:
        return () if self.relation == "all" else (self.points - 1,)

    @stating
    def problem(self) -> cp.Problem:
        """The model in CVXPY."""
        n, m = self.points, self.outputs
        s = cp.Variable((n, m), name="s", bounds=[0, None])
        odds = cp.Parameter(self._links, name="odds", nonneg=True)
        bins, at = cp.Parameter(m, name="bins"), cp.Parameter(n, name="at")
        cost = cp.Parameter((n, m), name="cost")
        if self.relation == "chain":
            up = cp.multiply(np.ones((n - 1, m)), cp.reshape(odds, (n - 1, 1), order="F") @ np.ones((1, m)))
            rows = [
                cp.sum(s, axis=1) == 1, s @ bins == at,
                s[1:] - s[:-1] <= cp.multiply(up, s[:-1]),
                s[:-1] - s[1:] <= cp.multiply(up, s[1:]),
            ]  # fmt: skip
            return cp.Problem(cp.Minimize(cp.sum(cp.multiply(cost, s))), rows)
        lows = cp.Variable(int(self._tied.max()) + 1, name="low", bounds=[0, None])
        low = lows[self._tied]
        rows = [
            cp.sum(s, axis=1) + cp.sum(low) == 1,
            s @ bins + bins @ low == at,
            *[s[e] <= odds * low for e in range(n)],
        ]
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(cost, s)) + cp.sum(cost @ low)), rows)

    @cached_property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape, in the program's order."""
        return {"odds": self._links, "bins": (self.outputs,), "at": (self.points,), "cost": (self.points, self.outputs)}

    @cached_property
    def program(self) -> Program:
        """The same model as a sparse program. Columns: s (Fortran order), then low; rows: sum, mean, private."""
        n, m = self.points, self.outputs
        odds_count = int(np.prod(self._links, dtype=int))
        first = {"odds": 0, "bins": odds_count, "at": odds_count + m, "cost": odds_count + m + n}
        size = first["cost"] + n * m
        e, i = np.tile(np.arange(n), m), np.repeat(np.arange(m), n)  # of the column s[e, i]
        s = np.arange(n * m)
        tied = self._tied
        lows = int(tied.max()) + 1 if self.relation == "all" else 0
        columns = n * m + lows
        entry: list[tuple[NDArray[Any], ...]] = []  # (row, column, constant, parameter or -1, factor)

        def put(row: Any, column: Any, constant: Any = 0.0, parameter: Any = -1, factor: Any = 0.0) -> None:
            entry.append(tuple(np.broadcast_arrays(row, column, constant, parameter, factor)))

        put(e, s, 1.0)
        put(n + e, s, 0.0, first["bins"] + i, 1.0)
        every, bin_ = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
        if self.relation == "all":
            low = n * m + tied
            put(every, low[bin_], 1.0)
            if not self.symmetric:  # else Σ B_i low(i) = 0
                put(n + every, low[bin_], 0.0, first["bins"] + bin_, 1.0)
            put(2 * n + s, s, 1.0)
            put(2 * n + s, low[i], 0.0, first["odds"], -1.0)
            private = n * m
        else:
            k = np.arange((n - 1) * m)
            a = np.repeat(np.arange(n - 1), m) + n * np.tile(np.arange(m), n - 1)
            link = first["odds"] + np.repeat(np.arange(n - 1), m)
            for offset, own, other in ((0, a + 1, a), (k.size, a, a + 1)):
                put(2 * n + offset + k, own, 1.0)
                put(2 * n + offset + k, other, -1.0, link, -1.0)
            private = 2 * k.size
        rows = 2 * n + private
        row, column, constant, parameter, factor = (np.concatenate([part[f] for part in entry]) for f in range(5))
        key, where = np.unique(column.astype(np.int64) * rows + row, return_inverse=True)
        base = np.asarray(np.bincount(where, weights=constant, minlength=key.size), dtype=np.float64)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(key // rows, minlength=columns))]).astype(np.int32)
        A = sp.csc_array((base, (key % rows).astype(np.int32), indptr), shape=(rows, columns))
        moving = parameter >= 0
        at_rows = np.arange(n, 2 * n)
        cost_columns, cost_parameters = s, first["cost"] + s
        if self.relation == "all":
            cost_columns = np.concatenate([s, low[i]])
            cost_parameters = np.concatenate([cost_parameters, first["cost"] + s])
        identity = (np.ones(n), (at_rows, first["at"] + np.arange(n)))
        ones = np.ones(cost_columns.size)
        maps = {
            "c": (sp.csr_array((ones, (cost_columns, cost_parameters)), shape=(columns, size)), np.zeros(columns)),
            "A": (
                sp.csr_array((factor[moving], (where[moving], parameter[moving])), shape=(key.size, size)),
                base,
            ),
            "row_lower": (sp.csr_array(identity, shape=(rows, size)), np.zeros(rows)),
            "row_upper": (sp.csr_array(identity, shape=(rows, size)), np.zeros(rows)),
        }
        parts: dict[str, tuple[NDArray[np.intp], Vector, Any]] = {}
        for section, (matrix, constants) in maps.items():
            live = np.flatnonzero(np.diff(matrix.indptr))
            parts[section] = live, constants[live], sp.csr_array(matrix[live])
        upper = np.zeros(rows)
        upper[:n] = 1.0
        lower = np.where(np.arange(rows) < 2 * n, upper, -np.inf)
        template = Data(
            np.zeros(columns), 0.0, A, lower, upper, np.zeros(columns), np.full(columns, np.inf),
            np.zeros(columns, dtype=bool),
        )  # fmt: skip
        variables = [Block("s", 0, (n, m))] + ([Block("low", n * m, (lows,))] if lows else [])
        labels = Block("sum", 0, (n,)), Block("mean", n, (n,)), Block("private", 2 * n, (private,))
        name = f"quantizer laws at {n} points over {m} outputs"
        moves = Moves(parts, size)
        return Program(name, template, 1, tuple(variables), labels, self.parameters, LAW_SCALE, moves)

    def values(self, odds: ArrayLike, bins: ArrayLike, at: ArrayLike, cost: ArrayLike) -> Mapping[str, Any]:
        """Parameter values of the program; bins below 1e-9 in size are 0 (solvers drop such coefficients)."""
        outputs = np.asarray(bins, dtype=float)
        outputs = np.where(np.abs(outputs) < 1e-9, 0.0, outputs)
        return {"odds": np.asarray(odds, dtype=float), "bins": outputs, "at": at, "cost": cost}

    def laws(self, x: Vector) -> Vector:
        """The laws p_e of a point of the program. Shape (n, m)."""
        n, m = self.points, self.outputs
        s = x[: n * m].reshape((n, m), order="F")
        return np.asarray(s + x[n * m :][self._tied] if self.relation == "all" else s)

    def slopes(self, laws: Vector, row_dual: Vector, cost_slope: Vector) -> Vector:
        """dV/dB of the optimal value V, by its duals: Σ_e (∂cost[e, i]/∂B_i - y_e) p_e(i). Shape (m,).

        row_dual: (rows,) of a solution; cost_slope: (n, m). (Where V has a kink, one of its slopes.)
        """
        y = row_dual[self.points : 2 * self.points]
        return np.asarray(((cost_slope - y[:, None]) * laws).sum(axis=0))
