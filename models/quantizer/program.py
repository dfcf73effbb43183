"""State the linear program (LP) of the private unbiased laws with the smallest loss.

It serves the exact quantizer, which is private and unbiased for every real input, and MVU, the
mechanism of Chaudhuri et al. 2022 on a grid of inputs. Both are one model. Points x_1..x_n have
laws p_e over outputs B_1..B_m. Laws between points are mixtures, so that unbiasedness and privacy
of the laws at the points are those of the whole mechanism (workbench.mechanisms.quantizer):

    exact quantizer LP   points = both one-sided limits at every knot,          relation "all"
    MVU for fixed a      points = the n_in grid points inputs are dithered to,  relation "all"
    metric privacy       points = knots (the law is continuous),                relation "chain"

    minimise    Σ_e Σ_i loss[e, i] p_e(i)
    subject to  Σ_i p_e(i) = 1,   Σ_i B_i p_e(i) = x_e,      so every x between is unbiased too
                "all":    low(i) <= p_e(i) <= e^ε low(i)     (6) for every real x, in n m rows
                "chain":  p_e(i) <= r_e p_{e+1}(i),  p_{e+1}(i) <= r_e p_e(i)
                                                             neighbouring points imply all pairs

The loss is the exact integral of the error over the pieces, linear in the end laws. The LP has no
bounds to search, no proxy objective and no monotonicity assumption; for the same bins it contains
every two-bin mechanism.

Symmetry. If bins, points and costs are symmetric, averaging a law with its mirror image does not
change the loss. So only the points x > 0 (and at 0 one side) are stated, with loss[e, i] the sum
over a point and its mirror.

`program` is built without CVXPY (a cold solve takes milliseconds); the tests state the same in
CVXPY and solve both. With p = low + s the rows of "all" become s_e(i) <= (e^ε - 1) low(i).

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

# Laws are solved in units of 2^-20, so that tolerances of 1e-7 are 1e-13 of probability.
LAW_SCALE = 2.0**20
_MIN_COEFFICIENT = 1e-9  # Solvers drop smaller coefficients, so smaller bins count as 0.
_MAX_EXACT_EPSILON = 700  # For a larger ε the odds are computed in floats.


def smallest_epsilon(
    low: float,
    high: float,
    c: float = 1.0,
) -> float:
    """Compute the smallest ε of an unbiased private quantizer on [-c, c] with given outputs.

    The means at ±c differ by 2c. For e^ε-close laws with outputs in [low, high] and means -c and c
    the extreme laws are two-point, on the ends: with t = e^ε the most likely p of `high` at c and q
    at -c satisfy p <= t q and 1 - q <= t (1 - p), p = (c - low)/w, q = (-c - low)/w,
    w = high - low. Symmetric: ln((B + c)/(B - c)).

    Args:
        low: the smallest output.
        high: the largest output.
        c: inputs are in [-c, c].

    Returns:
        The smallest ε, infinite if the outputs do not enclose the inputs.
    """
    upper_margin = high - c
    lower_margin = -c - low
    if min(upper_margin, lower_margin) <= 0:
        return float("inf")
    lower_ratio = (lower_margin + 2 * c) / lower_margin
    upper_ratio = (upper_margin + 2 * c) / upper_margin
    return float(np.log(max(lower_ratio, upper_ratio)))


@lru_cache(maxsize=256)
def compute_odds(epsilon: float) -> float:
    """Compute e^ε - 1 correctly rounded, the same on every machine.

    A search then takes the same path on all machines.

    Args:
        epsilon: ε > 0.
    """
    if epsilon > _MAX_EXACT_EPSILON:
        return float(np.expm1(epsilon))
    with localcontext(prec=60):
        return float(Decimal(epsilon).exp() - 1)


def smallest_reach(
    epsilon: float,
    c: float = 1.0,
    metric: str | None = None,
) -> float:
    """Compute the smallest B for which outputs in [-B, B] can be unbiased and ε-private.

    It is c (e^ε + 1)/(e^ε - 1). Under the metric "absolute", e^{ε|x - x'|}, it is c + 1/ε:
    Σ_i (B_i + B) p_i(x) = x + B grows at most by ε of itself.

    Args:
        epsilon: ε > 0.
        c: inputs are in [-c, c].
        metric: "absolute", or None for pure ε.
    """
    if metric == "absolute":
        return c + 1 / epsilon
    return c * (1 + 2 / compute_odds(epsilon))


def default_reach(epsilon: float) -> float:
    """Return the default of the largest output for inputs in [-1, 1], twice the smallest reach.

    A limit is needed because the mean absolute error has no minimum: it keeps falling slightly as
    the outermost outputs go to infinity.

    Args:
        epsilon: ε > 0.
    """
    return 2 * smallest_reach(epsilon)


@dataclass(frozen=True)
class LawModel:
    """One shape of the model. ε, bins, points and costs are parameters.

    Attributes:
        points: n, the number of laws that are stated.
        outputs: m, the number of outputs.
        symmetric: whether low(i) = low(m + 1 - i), so that mirror images are not stated; only with
            relation "all".
        relation: "all" or "chain".
    """

    points: int
    outputs: int
    symmetric: bool = False
    relation: str = "all"

    @property
    def _low_numbers(self) -> Positions:
        """Return which variable each low(i) is, shape (m,)."""
        i = np.arange(self.outputs)
        if self.symmetric:
            return np.minimum(i, self.outputs - 1 - i)
        return i

    @property
    def _odds_shape(self) -> Ints:
        """Return the shape of the parameter "odds"."""
        return () if self.relation == "all" else (self.points - 1,)

    @cached_property
    def parameters(self) -> dict[str, Ints]:
        """Return the shapes of the parameters by name, in the order of the program."""
        return {
            "odds": self._odds_shape,
            "bins": (self.outputs,),
            "at": (self.points,),
            "loss": (self.points, self.outputs),
        }

    @cached_property
    def program(self) -> Program:
        """Build the program.

        Its columns are s (Fortran order), then low. Its rows are "sum", "mean", "private".
        """
        n = self.points
        m = self.outputs
        odds, bins, points, loss = (
            cp.Parameter(shape, name) for name, shape in self.parameters.items()
        )
        s = cp.Variable((n, m), "s", (0.0, np.inf))
        laws: cp.Affine = s
        mean_laws: cp.Affine = s
        if self.relation == "all":
            low_count = int(self._low_numbers.max()) + 1
            low = cp.Variable(low_count, "low", (0.0, np.inf))[self._low_numbers]
            laws = s + low
            # With symmetric low the sum Σ B_i low(i) is 0.
            mean_laws = s if self.symmetric else laws
            private_rows = [s <= odds * low]
        else:
            links = odds[:, None]
            right_from_left = s[1:] - s[:-1] <= links * s[:-1]
            left_from_right = s[:-1] - s[1:] <= links * s[1:]
            private_rows = [right_from_left.transpose(), left_from_right.transpose()]
        rows = [
            (cp.sum(laws, axis=1) == 1).set_label("sum"),
            (mean_laws @ bins - points == 0).set_label("mean"),
            *(row.set_label("private") for row in private_rows),
        ]
        problem = cp.Problem(cp.sum(loss * laws), rows, [s])
        return problem.to_program(f"quantizer laws at {n} points over {m} outputs", LAW_SCALE)

    def values(
        self,
        odds: ArrayLike,
        bins: ArrayLike,
        point_values: ArrayLike,
        loss: ArrayLike,
    ) -> Mapping[str, Any]:
        """Return the parameter values of the program.

        Args:
            odds: e^ε - 1, or r_e - 1 for relation "chain", shape (n - 1,).
            bins: outputs B_i, shape (m,). Bins below 1e-9 in size are set to 0.
            point_values: points x, shape (n,).
            loss: costs, shape (n, m).
        """
        outputs = np.asarray(bins, dtype=float)
        return {
            "odds": np.asarray(odds, dtype=float),
            "bins": np.where(np.abs(outputs) < _MIN_COEFFICIENT, 0.0, outputs),
            "at": point_values,
            "loss": loss,
        }

    def laws(self, x: Vector) -> Vector:
        """Return the laws p_e of a point of the program, shape (n, m).

        Args:
            x: the point, shape (columns,).
        """
        n = self.points
        m = self.outputs
        s = x[: n * m].reshape((n, m), order="F")
        if self.relation == "all":
            return s + x[n * m :][self._low_numbers]
        return s

    def slopes(
        self,
        laws: Vector,
        row_dual: Vector,
        loss_slope: Vector,
    ) -> Vector:
        """Compute dV/dB of the optimal value V: Σ_e (∂loss[e, i]/∂B_i - y_e) p_e(i).

        If V has a kink, the result is one of its slopes.

        Args:
            laws: the laws p_e, shape (n, m).
            row_dual: dual values of a solution, shape (rows,).
            loss_slope: ∂loss[e, i]/∂B_i, shape (n, m).

        Returns:
            The slopes, shape (m,).
        """
        y = row_dual[self.points : 2 * self.points]
        return np.asarray(((loss_slope - y[:, None]) * laws).sum(axis=0))
