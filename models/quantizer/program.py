"""The best private unbiased laws at given points: the exact quantizer LP, and MVU's LP in P, as one model.

Points x_1..x_n carry laws p_e over outputs B_1..B_m. Whatever lies between points is a mixture, so that unbiasedness
and privacy of the laws at the points are those of the whole mechanism (workbench.mechanisms.quantizer):

    exact quantizer LP   points = both one-sided limits at every knot,          relation "all"
    MVU for fixed a      points = the n_in grid points inputs are dithered to,  relation "all"
    metric privacy       points = knots (the law is continuous),                relation "chain"

    minimise    Σ_e Σ_i loss[e, i] p_e(i)
    subject to  Σ_i p_e(i) = 1,   Σ_i B_i p_e(i) = x_e,                         every x between is unbiased too
                "all":    low(i) <= p_e(i) <= e^ε low(i)                        (6) for every real x, in n m rows
                "chain":  p_e(i) <= r_e p_{e+1}(i),  p_{e+1}(i) <= r_e p_e(i)   neighbouring points imply all pairs

The loss is the exact integral of the error over the pieces, linear in the end laws. The LP has no bounds to search, no
proxy objective and no monotonicity assumption; for the same bins it contains every two-bin mechanism.

Symmetry. When bins, points and costs are symmetric, averaging a law with its mirror image costs nothing, so only
the points x > 0 (and at 0 one side) are stated, with loss[e, i] the sum over a point and its mirror.

`program` is stated without CVXPY (a cold solve has milliseconds); the tests state the same in CVXPY and solve both.
With p = low + s the rows of "all" become s_e(i) <= (e^ε - 1) low(i).

| paper           | here                                         |
|-----------------|----------------------------------------------|
| e^ε - 1         | parameter "odds"; "chain": r_e - 1, (n - 1,) |
| B_i, x          | parameters "bins" (m,), "at" (n,)            |
| (5), integrated | parameter "loss" (n, m)                      |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.models import statement as cp
from workbench.solvers.arrays import Ints, Positions, Vector
from workbench.solvers.program import Program

LAW_SCALE = (
    2.0**20
)  # laws are dispatched in units of 2^-20, so that 1e-7 tolerances are 1e-13 of probability


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
def compute_odds(epsilon: float) -> float:
    """e^ε - 1 correctly rounded: the same on every machine, as a search needs that must take the same path on all."""
    if epsilon > 700:
        return float(np.expm1(epsilon))
    with localcontext(prec=60):
        return float(Decimal(epsilon).exp() - 1)


def smallest_reach(epsilon: float, c: float = 1.0, metric: str | None = None) -> float:
    """The least B for which outputs in [-B, B] can be unbiased and ε-private: c (e^ε + 1)/(e^ε - 1).

    By the metric "absolute", e^{ε|x - x'|}, it is c + 1/ε: Σ_i (B_i + B) p_i(x) = x + B grows at most by ε of itself.
    """
    return c + 1 / epsilon if metric == "absolute" else c * (1 + 2 / compute_odds(epsilon))


def default_reach(epsilon: float) -> float:
    """The largest output that is searched for inputs in [-1, 1] unless asked otherwise, twice the least: the mean
    absolute error has no minimum, it keeps falling slightly as the outermost outputs go to infinity.
    """
    return 2 * smallest_reach(epsilon)


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

    @property
    def _tied(self) -> Positions:
        """Which variable low(i) is. Shape (m,)."""
        i = np.arange(self.outputs)
        return np.minimum(i, self.outputs - 1 - i) if self.symmetric else i

    @property
    def _links(self) -> Ints:
        return () if self.relation == "all" else (self.points - 1,)

    @cached_property
    def parameters(self) -> dict[str, Ints]:
        """Name -> shape, in the program's order."""
        return {
            "odds": self._links,
            "bins": (self.outputs,),
            "at": (self.points,),
            "loss": (self.points, self.outputs),
        }

    @cached_property
    def program(self) -> Program:
        """The same model as a sparse program. Columns: s (Fortran order), then low; rows: sum, mean, private."""
        n, m = self.points, self.outputs
        odds, bins, at, loss = (
            cp.Parameter(shape, name) for name, shape in self.parameters.items()
        )
        laws: cp.Affine
        means: cp.Affine
        laws = means = s = cp.Variable((n, m), "s", (0.0, np.inf))
        if self.relation == "all":
            low = cp.Variable(int(self._tied.max()) + 1, "low", (0.0, np.inf))[self._tied]
            laws = s + low
            means = s if self.symmetric else laws  # else Σ B_i low(i) = 0
            private = [s <= odds * low]
        else:
            links = odds[:, None]
            private = [
                (own - other <= links * other).transpose()
                for own, other in ((s[1:], s[:-1]), (s[:-1], s[1:]))
            ]
        rows = [
            (cp.sum(laws, axis=1) == 1).set_label("sum"),
            (means @ bins - at == 0).set_label("mean"),
            *(row.set_label("private") for row in private),
        ]
        problem = cp.Problem(cp.sum(loss * laws), rows, [s])
        return problem.to_program(f"quantizer laws at {n} points over {m} outputs", LAW_SCALE)

    def values(
        self, odds: ArrayLike, bins: ArrayLike, point_values: ArrayLike, loss: ArrayLike
    ) -> Mapping[str, Any]:
        """Parameter values of the program; bins below 1e-9 in size are 0 (solvers drop such coefficients)."""
        outputs = np.asarray(bins, dtype=float)
        outputs = np.where(np.abs(outputs) < 1e-9, 0.0, outputs)
        return {
            "odds": np.asarray(odds, dtype=float),
            "bins": outputs,
            "at": point_values,
            "loss": loss,
        }

    def laws(self, x: Vector) -> Vector:
        """The laws p_e of a point of the program. Shape (n, m)."""
        n, m = self.points, self.outputs
        s = x[: n * m].reshape((n, m), order="F")
        return s + x[n * m :][self._tied] if self.relation == "all" else s

    def slopes(self, laws: Vector, row_dual: Vector, loss_slope: Vector) -> Vector:
        """dV/dB of the optimal value V, by its duals: Σ_e (∂loss[e, i]/∂B_i - y_e) p_e(i). Shape (m,).

        row_dual: (rows,) of a solution; loss_slope: (n, m). (Where V has a kink, one of its slopes.)
        """
        y = row_dual[self.points : 2 * self.points]
        return np.asarray(((loss_slope - y[:, None]) * laws).sum(axis=0))
