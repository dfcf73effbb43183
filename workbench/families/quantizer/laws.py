"""Live LPs for the laws at given points: the exact quantizer on fixed knots, MVU on its input grid, re-solved hot.

A `LawProblem` fixes points and how losses depend on the outputs; ε and the outputs move. It returns the optimal value,
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
from workbench.mechanisms.quantization_error import error_of, loss_weights_and_slopes, slope_of

__all__ = ["LawAnswer", "LawProblem", "end_points", "exact_problem", "grid_problem", "knot_losses"]

Vector = NDArray[np.float64]
Losses = Callable[[Vector], tuple[Vector, Vector]]  # outputs (m,) -> costs and their slopes in the outputs, both (n, m)


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
    """The least expected loss of private unbiased laws at fixed points, as a function of ε and the outputs.

    Args:
        points: (n,) in increasing order, a knot twice for its two one-sided limits.
        outputs: m.
        losses: as above.
        symmetric: points and costs are symmetric; then outputs must be, and half of the laws are stated.
        ratios: between which points they are bounded, and by what.
    """

    def __init__(
        self,
        points: Vector,
        outputs: int,
        losses: Losses,
        *,
        symmetric: bool,
        ratios: Ratios = Ratios(),
        solver: str = "highs",
        options: Options | None = None,
    ) -> None:
        self.points, self.outputs, self.losses = points, outputs, losses
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

    def excess(self, epsilon: float, c: float) -> float:
        """How far beyond the last points ±c outputs must reach on either side for a law to exist, and need not farther.

        With outputs >= -B and p_{x'} <= r p_x, x' + B <= r (x + B): B >= (x' - x)/(r - 1) - x, and its mirror image. At
        that B the law on ±B alone meets all of it.
        """
        odds = self.odds(epsilon)
        if self.model.relation == "all":
            return float(2 * c / odds)
        inside = c - np.maximum(-self.points[:-1], self.points[1:])
        return float((np.diff(self.points) / odds - inside).max())

    def _fold(self, table: Vector, sign: float = 1.0) -> Vector:
        """Losses of a point and its mirror image together (the middle of an odd number is its own mirror); sign: -1 for
        slopes, as an output's mirror image moves the other way."""
        if not self.symmetric:
            return table
        folded = table + sign * table[::-1, ::-1]
        if table.shape[0] % 2:
            folded[table.shape[0] // 2] /= 2
        return np.asarray(folded[self.keep])

    def values(self, epsilon: float, outputs: Vector) -> Mapping[str, Any]:
        """The parameter values of `model.program`."""
        return self.model.values(
            self.odds(epsilon), outputs, self.points[self.keep], self._fold(self.losses(outputs)[0])
        )

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
        losses, moved = self.losses(outputs)
        slope = np.zeros(0)
        if slopes and solution.row_dual is not None:
            slope = self.model.slopes(half, solution.row_dual, self._fold(moved, -1.0))
        value = math.fsum((self._fold(losses) * half).ravel())  # rounded once, so the same on every machine
        return LawAnswer(value, self.unfold(half), slope, solution)

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
    loss: object = "absolute",
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
    width = np.diff(knots)

    def losses(bins: Vector) -> tuple[Vector, Vector]:
        both = loss_weights_and_slopes(knots, bins, density, loss)
        weights, slopes = (_flat(table) if metric is None else _joined(table) for table in both)
        return weights, slopes

    points = end_points(knots) if metric is None else knots
    return LawProblem(
        points, outputs, losses, symmetric=symmetric, ratios=_ratios(width, metric), solver=solver, options=options
    )


def _ratios(width: Vector, metric: str | None) -> Ratios:
    """Between any two laws, or by a metric between neighbouring ones."""
    return Ratios() if metric is None else Ratios("chain", _links(width, metric))


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
    loss: object = "squared",
    *,
    weights: Vector | None = None,
    symmetric: bool | None = None,
    metric: str | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> LawProblem:
    """MVU's LP in P: the mean error over the grid points (weighted when asked), private between all of them.

    symmetric: whether points and weights are, and outputs will be; found out by default.
    metric: as in `exact_problem`; "absolute" holds for all real inputs, which are dithered to the points.
    """
    share = np.full(points.size, 1 / points.size) if weights is None else weights

    def losses(bins: Vector) -> tuple[Vector, Vector]:
        gap = bins[None, :] - points[:, None]
        return share[:, None] * error_of(np.abs(gap), loss), share[:, None] * slope_of(gap, loss)

    if symmetric is None:
        symmetric = bool(np.allclose(points, -points[::-1]) and np.allclose(share, share[::-1]))
    return LawProblem(
        points,
        outputs,
        losses,
        symmetric=symmetric,
        ratios=_ratios(np.diff(points), metric),
        solver=solver,
        options=options,
    )


def knot_losses(knots: Vector, outputs: Vector, density: Density, loss: object) -> tuple[Vector, Vector]:
    """What the end laws of all pieces loss, and the slopes in the outputs at fixed knots. Shapes (2 pieces, m)."""
    weights, slopes = loss_weights_and_slopes(knots, outputs, density, loss)
    return _flat(weights), _flat(slopes)


def _flat(table: Vector) -> Vector:
    return table.reshape(-1, table.shape[-1])


def _joined(table: Vector) -> Vector:
    """Losses at the knots of a continuous law: those of its two sides together. Shape (K + 1, m)."""
    joined = np.zeros((table.shape[0] + 1, table.shape[2]))
    joined[:-1] += table[:, 0]
    joined[1:] += table[:, 1]
    return joined
