"""Live LPs for the laws at given points: the exact quantizer on fixed knots, MVU on its input grid, re-solved hot.

A `LawProblem` fixes points and how costs depend on the outputs; ε and the outputs move. It returns the optimal value,
the laws and, from the LP's duals, the slope of the value in every output, so that outputs can be optimised on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.quantizer import LawModel, odds_of
from solvers.backend import Options, Session, backend
from solvers.solution import Solution
from workbench.families.outcome import translated_errors
from workbench.mechanisms.density import Density
from workbench.mechanisms.quantization_error import cost_weights_and_slopes, error_function

__all__ = ["LawAnswer", "LawProblem", "end_points", "exact_problem", "grid_problem", "knot_costs"]

Vector = NDArray[np.float64]
Costs = Callable[[Vector], tuple[Vector, Vector]]  # outputs (m,) -> costs and their slopes in the outputs, both (n, m)


@dataclass(frozen=True)
class LawAnswer:
    """value: of the LP; laws: at all points (n, m); slope: dV/dB (m,); solution: the solver's full answer."""

    value: float
    laws: Vector
    slope: Vector
    solution: Solution


@dataclass(frozen=True)
class Ratios:
    """What is bounded of laws. relation: "all" for the ratios between any two points, or "chain" for neighbouring ones;
    odds: of ε, e^ε - 1, for a chain an array (n - 1,)."""

    relation: str = "all"
    odds: Callable[[float], float | Vector] = odds_of


class LawProblem:
    """The least expected cost of private unbiased laws at fixed points, as a function of ε and the outputs.

    Args:
        points: (n,) in increasing order, a knot twice for its two one-sided limits.
        outputs: m.
        costs: as above.
        symmetric: points and costs are symmetric; then outputs must be, and half of the laws are stated.
        ratios: between which points they are bounded, and by what.
    """

    def __init__(
        self,
        points: Vector,
        outputs: int,
        costs: Costs,
        *,
        symmetric: bool,
        ratios: Ratios = Ratios(),
        solver: str = "highs",
        options: Options | None = None,
    ) -> None:
        self.points, self.outputs, self.costs = points, outputs, costs
        self.symmetric = symmetric and ratios.relation == "all"
        self.odds, self.solver, self.options = ratios.odds, solver, options or Options()
        n = points.size
        self.keep = np.arange((n + 1) // 2 if self.symmetric else 0, n)
        if self.symmetric and n % 2:
            self.keep = np.arange(n // 2, n)
        self.model = LawModel(self.keep.size, outputs, self.symmetric, ratios.relation)
        self.solves = 0

    @cached_property
    def _session(self) -> Session:
        with translated_errors():
            return backend(self.solver).open(self.model.program, self.options)

    def _fold(self, table: Vector) -> Vector:
        """Costs of a point and its mirror image together (the middle of an odd number is its own mirror)."""
        if not self.symmetric:
            return table
        folded = table + table[::-1, ::-1]
        if table.shape[0] % 2:
            folded[table.shape[0] // 2] /= 2
        return np.asarray(folded[self.keep])

    def values(self, epsilon: float, outputs: Vector) -> Mapping[str, Any]:
        """The parameter values of `model.program`."""
        cost, _ = self.costs(outputs)
        return self.model.values(self.odds(epsilon), outputs, self.points[self.keep], self._fold(cost))

    def solve(self, epsilon: float, outputs: Vector, *, start: str = "hot") -> Solution:
        """The solver's answer alone."""
        self.solves += 1
        with translated_errors():
            return self._session.solve(self.values(epsilon, outputs), start=start)

    def answer(self, epsilon: float, outputs: Vector, *, start: str = "hot", slopes: bool = True) -> LawAnswer | None:
        """The optimum at these outputs, or None when the solver has none. slopes: whether the slope is needed, for
        which a solver must give dual values; empty without."""
        solution = self.solve(epsilon, outputs, start=start)
        if solution.x is None or solution.objective is None or (slopes and solution.row_dual is None):
            return None
        half = self.model.laws(solution.x)
        costs, moved = self.costs(outputs)
        slope = np.zeros(0)
        if slopes and solution.row_dual is not None:
            slope = self.model.slopes(half, solution.row_dual, self._fold_slope(moved))
        value = math.fsum((self._fold(costs) * half).ravel())  # rounded once, so the same on every machine
        return LawAnswer(value, self.unfold(half), slope, solution)

    def _fold_slope(self, slopes: Vector) -> Vector:
        # an output's mirror image moves the other way
        if not self.symmetric:
            return slopes
        folded = slopes - slopes[::-1, ::-1]
        if slopes.shape[0] % 2:
            folded[slopes.shape[0] // 2] /= 2
        return np.asarray(folded[self.keep])

    def unfold(self, half: Vector) -> Vector:
        """The laws at all points from those of the program."""
        if not self.symmetric:
            return half
        n = self.points.size
        laws = np.zeros((n, self.outputs))
        laws[self.keep] = half
        laws[: n // 2] = half[::-1, ::-1][: n // 2]
        if n % 2:
            laws[n // 2] = (half[0] + half[0, ::-1]) / 2
        return laws

    def close(self) -> None:
        """Give the solver's resources back."""
        if "_session" in self.__dict__:
            self._session.close()


def end_points(knots: Vector) -> Vector:
    """Both one-sided limits of every knot inside, and ±c: (2 (K - 1),)... in increasing order, shape (2 pieces,)."""
    return np.stack([knots[:-1], knots[1:]], axis=1).ravel()


def exact_problem(
    knots: Vector,
    outputs: int,
    density: Density,
    cost: object = "mae",
    *,
    symmetric: bool,
    metric: str | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> LawProblem:
    """The exact quantizer LP on fixed knots (bins need not be knots; then the law just has no jump there).

    metric "absolute": p(x) <= e^{ε|x-x'|} p(x') for all real x, by a continuous law with |p(b) - p(a)| <= ε (b - a)
    min(p(a), p(b)) on every piece; "squared": for inputs dithered to the knots, ln p(b)/p(a) <= ε (b - a)².
    """
    continuous = metric is not None
    width = np.diff(knots)

    def costs(bins: Vector) -> tuple[Vector, Vector]:
        weights, slopes = knot_costs(knots, bins, density, cost)
        pair = weights.reshape(-1, 2, bins.size), slopes.reshape(-1, 2, bins.size)
        return (_joined(pair[0]), _joined(pair[1])) if continuous else (weights, slopes)

    if metric is None:
        return LawProblem(end_points(knots), outputs, costs, symmetric=symmetric, solver=solver, options=options)

    return LawProblem(
        knots, outputs, costs, symmetric=False, ratios=Ratios("chain", _links(width, metric)), solver=solver,
        options=options,
    )  # fmt: skip


def _links(width: Vector, metric: str) -> Callable[[float], Vector]:
    """ε -> how much more likely an output may be at one end of a link than at the other, less 1.

    "absolute": for every real input between, whose law is affine, the logarithm's slope must stay below ε: ε w, which
    is less than the e^{εw} - 1 that would do for the two ends alone. "squared": for the two ends, e^{εw²} - 1.
    """
    if metric == "absolute":
        return lambda epsilon: np.asarray(epsilon * width)
    return lambda epsilon: np.array([odds_of(float(epsilon * w**2)) for w in width])


def grid_problem(
    points: Vector,
    outputs: int,
    cost: object = "mse",
    *,
    weights: Vector | None = None,
    metric: str | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> LawProblem:
    """MVU's LP in P: the mean error over the grid points (weighted when asked), private between all of them.

    metric: as in `exact_problem`; "absolute" holds for all real inputs, which are dithered to the points.
    """
    a, b = error_function(cost)
    share = np.full(points.size, 1 / points.size) if weights is None else weights
    width = np.diff(points)

    def costs(bins: Vector) -> tuple[Vector, Vector]:
        gap = bins[None, :] - points[:, None]
        return share[:, None] * (a * np.abs(gap) + b * gap**2), share[:, None] * (a * np.sign(gap) + 2 * b * gap)

    if metric is None:
        even = bool(np.allclose(points, -points[::-1]) and np.allclose(share, share[::-1]))
        return LawProblem(points, outputs, costs, symmetric=even, solver=solver, options=options)

    return LawProblem(
        points, outputs, costs, symmetric=False, ratios=Ratios("chain", _links(width, metric)), solver=solver,
        options=options,
    )  # fmt: skip


def knot_costs(knots: Vector, outputs: Vector, density: Density, cost: object) -> tuple[Vector, Vector]:
    """What the end laws of all pieces cost, and the slopes in the outputs at fixed knots. Shapes (2 pieces, m)."""
    weights, slopes = cost_weights_and_slopes(knots, outputs, density, cost)
    return weights.reshape(-1, outputs.size), slopes.reshape(-1, outputs.size)


def _joined(table: Vector) -> Vector:
    """Costs at the knots of a continuous law: what its two sides cost together. Shape (K + 1, m)."""
    joined = np.zeros((table.shape[0] + 1, table.shape[2]))
    joined[:-1] += table[:, 0]
    joined[1:] += table[:, 1]
    return joined
