"""State the linear program (LP) of the private unbiased laws with the smallest loss.

The program, `LawModel`, designs two mechanisms: the exact quantizer, which is private and unbiased
for every real input, and MVU of Chaudhuri et al. 2022 on a grid of inputs.

Notation. The outputs are B_1..B_m, also called bins. A law is the distribution of the output at one
input. Law p_e belongs to the point x_e, e = 1..n; p_e(i) is the probability of B_i. low(i) is a
variable that is at most p_e(i) for every e. A knot is an input at which the law may jump or bend.
Between knots the laws are mixtures of the laws at the two ends, so that unbiasedness and privacy at
the points imply both for the whole mechanism (workbench.mechanisms.quantizer). r_e = e^{ε d} with d
the distance of x_e and x_{e+1} in the metric. Equation numbers are those of Cai et al. 2024.

    exact quantizer      points = both one-sided limits at every knot,             relation "all"
    MVU, fixed outputs   points = the grid points to which inputs are dithered     relation "all"
                         (rounded at random without bias),
    metric privacy       points = knots (the law is continuous),                   relation "chain"

    minimise    Σ_e Σ_i loss[e, i] p_e(i)
    subject to  Σ_i p_e(i) = 1,   Σ_i B_i p_e(i) = x_e,      so every x between is unbiased too
                "all":    low(i) <= p_e(i) <= e^ε low(i)     (6), ε-DP for every real x, in n m rows
                "chain":  p_e(i) <= r_e p_{e+1}(i),  p_{e+1}(i) <= r_e p_e(i)
                                                             neighbouring points imply all pairs

loss[e, i] is the integral of the error over the pieces between knots. It is exact, because it is
linear in the laws at the ends of a piece. For the same bins, every two-bin mechanism
(`workbench.models.quantizer.two_bin`) is feasible.

Symmetry. If bins, points and costs are symmetric, averaging a law with its mirror image does not
change the loss. So only the points x > 0 (and at 0 one side) have a law in the program, and
loss[e, i] is the sum over a point and its mirror image.

`program` is built without CVXPY (a cold solve takes milliseconds); the tests state the same in
CVXPY and solve both. With p = low + s, s >= 0, the rows of "all" become s_e(i) <= (e^ε - 1) low(i).
Another relation changes `LawModel.program`, `LawModel.laws` and `LawModel._odds_shape`.

| paper (Cai et al. 2024) | here                                         |
|-------------------------|----------------------------------------------|
| e^ε - 1                 | parameter "odds"; "chain": r_e - 1, (n - 1,) |
| B_i, x                  | parameters "bins" (m,), "at" (n,)            |
| (5), integrated         | parameter "loss" (n, m)                      |
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
_ODDS_DIGITS = 60  # e^ε is computed with this many decimal digits, before it is rounded.


def smallest_epsilon(
    low: float,
    high: float,
    c: float = 1.0,
) -> float:
    """Compute the smallest ε of an unbiased private quantizer with given extreme outputs.

    The laws that need the smallest ε publish only `low` and `high`. Let p = Pr[high | c] and
    q = Pr[high | -c]. By unbiasedness p = (c - low)/w and q = (-c - low)/w with w = high - low.
    Privacy requires
    p <= e^ε q and 1 - q <= e^ε (1 - p). If -low = high = B, the result is ln((B + c)/(B - c)).

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
    with localcontext(prec=_ODDS_DIGITS):
        return float(Decimal(epsilon).exp() - 1)


def smallest_reach(
    epsilon: float,
    c: float = 1.0,
    metric: str | None = None,
) -> float:
    """Compute the smallest B for which outputs in [-B, B] can be unbiased and ε-private.

    It is c (e^ε + 1)/(e^ε - 1). Under the metric "absolute", which allows the ratio e^{ε|x - x'|},
    it is c + 1/ε. There Σ_i (B_i + B) p_i(x) = x + B may grow at most at the rate ε (x + B), and
    its slope is 1; at x = -c this gives B >= c + 1/ε.

    Args:
        epsilon: ε > 0.
        c: inputs are in [-c, c].
        metric: "absolute", or None for pure ε.
    """
    if metric == "absolute":
        return c + 1 / epsilon
    return c * (1 + 2 / compute_odds(epsilon))


def default_reach(epsilon: float) -> float:
    """Return the default limit of the outputs for inputs in [-1, 1], twice the smallest reach.

    Outputs lie in [-limit, limit]. A limit is needed because the mean absolute error has no
    minimum: it keeps falling slightly as the outermost outputs go to infinity.

    Args:
        epsilon: ε > 0.
    """
    return 2 * smallest_reach(epsilon)


@dataclass(frozen=True)
class LawModel:
    """The linear program for given numbers of points and outputs.

    ε, bins, points and costs are parameters of the program, so it is built once.

    Attributes:
        points: number n of points with a law in the program.
        outputs: number m of outputs.
        symmetric: whether low(i) = low(m + 1 - i), so that the mirror images of the points have no
            law in the program; only with relation "all".
        relation: "all" if all inputs are neighbours under one ε, "chain" for metric privacy.
    """

    points: int
    outputs: int
    symmetric: bool = False
    relation: str = "all"

    @property
    def _low_numbers(self) -> Positions:
        """Return the number of the variable that each low(i) is, counted from 0, shape (m,)."""
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

        Its columns are s, or p for relation "chain" (Fortran order), then low. Its row blocks are
        "sum" (masses sum to 1), "mean" (unbiasedness) and "private".
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
            odds_column = odds[:, None]
            rises = s[1:] - s[:-1] <= odds_column * s[:-1]
            falls = s[:-1] - s[1:] <= odds_column * s[1:]
            private_rows = [rises.transpose(), falls.transpose()]
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
            odds: e^ε - 1, a number; for relation "chain" r_e - 1, shape (n - 1,).
            bins: outputs B_i, shape (m,). Outputs below 1e-9 in size are set to 0.
            point_values: points x_e, shape (n,).
            loss: cost loss[e, i] of each point and output, shape (n, m).
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
        """Compute the slopes of the optimal value in the outputs B_i.

        They are Σ_e (∂loss[e, i]/∂B_i - y_e) p_e(i), where y_e is the dual value of the row "mean"
        of point e. If the optimal value has a kink, the result is one of its slopes.

        Args:
            laws: the laws p_e, shape (n, m).
            row_dual: dual values of a solution, shape (rows,).
            loss_slope: ∂loss[e, i]/∂B_i, shape (n, m).

        Returns:
            The slopes, shape (m,).
        """
        y = row_dual[self.points : 2 * self.points]
        return np.asarray(((loss_slope - y[:, None]) * laws).sum(axis=0))
