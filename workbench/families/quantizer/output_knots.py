"""The exact quantizer LP whose knots are equally spaced points and the outputs themselves, where the best laws jump.

V(B) is its value at outputs B. When an inner output moves, so do the knot there, its two laws' means and four columns
of losses. With κ between its neighbours a < κ < b, W(κ-), W(κ+) the weights of the losses of the laws on either side of
it (`loss_weights`), f the density, e the error and y the duals of the means,

    ∂V/∂κ = Σ_i [W(κ-)_i (p_a - p_κ-)_i / (κ - a) + W(κ+)_i (p_κ+ - p_b)_i / (b - κ)
                 + f(κ) e(B_i - κ) (p_κ- - p_κ+)_i] + y_κ- + y_κ+

is added to the slope at fixed knots (an envelope theorem: the derivative of the Lagrangian at an optimal pair). It is
exact where V is smooth; at a kink it is one of the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backend import Options
from workbench.families.quantizer.laws import LawAnswer, LawProblem, end_points, knot_losses
from workbench.mechanisms.density import Density
from workbench.mechanisms.quantization_error import error_function

__all__ = ["OutputKnots"]

Vector = NDArray[np.float64]


class OutputKnots(LawProblem):
    """The exact quantizer LP on the knots of `even` and the outputs inside them.

    even: (K,) knots from -c to c; outputs: m; symmetric: as of `LawProblem`. The outermost outputs are beyond ±c. An
    inner output beyond them, or at a knot, leaves a piece of width 0, which costs nothing.
    """

    def __init__(
        self,
        even: Vector,
        outputs: int,
        density: Density,
        loss: object = "absolute",
        *,
        symmetric: bool,
        solver: str = "highs",
        options: Options | None = None,
    ) -> None:
        self.even, self.density, self.loss = even, density, loss
        self._last: tuple[bytes, tuple[Vector, Vector]] | None = None
        points = np.zeros(2 * (even.size + outputs - 3))
        super().__init__(points, outputs, self._losses_there, symmetric=symmetric, solver=solver, options=options)

    def knots(self, outputs: Vector) -> Vector:
        """Where the laws are stated. Shape (K + m - 2,)."""
        c = self.even[-1]
        return np.sort(np.concatenate([self.even, np.clip(outputs[1:-1], -c, c)]))

    def _losses_there(self, outputs: Vector) -> tuple[Vector, Vector]:
        key = outputs.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, knot_losses(self.knots(outputs), outputs, self.density, self.loss)
        return self._last[1]

    def values(self, epsilon: float, outputs: Vector) -> Mapping[str, Any]:
        """The parameter values of `model.program`."""
        self.points = end_points(self.knots(outputs))
        return super().values(epsilon, outputs)

    def answer(self, epsilon: float, outputs: Vector, *, start: str = "hot", slopes: bool = True) -> LawAnswer | None:
        """The optimum at these outputs, or None when the solver has none; the slope is of outputs and knots."""
        optimum = super().answer(epsilon, outputs, start=start, slopes=slopes)
        if optimum is None or not slopes:
            return optimum
        return LawAnswer(optimum.value, optimum.laws, optimum.slope + self._moved(outputs, optimum), optimum.solution)

    def _moved(self, outputs: Vector, optimum: LawAnswer) -> Vector:
        """∂V/∂κ of the knots at inner outputs. Shape (m,)."""
        assert optimum.solution.row_dual is not None
        knots, slope = self.knots(outputs), np.zeros(outputs.size)
        dual = optimum.solution.row_dual[self.model.points : 2 * self.model.points]
        if self.symmetric:  # each stands for a law and its mirror image
            dual = np.concatenate([-dual[::-1], dual]) / 2
        mean, laws = dual.reshape(-1, 2), optimum.laws.reshape(-1, 2, outputs.size)
        weights = self._losses_there(outputs)[0].reshape(-1, 2, outputs.size)
        a, b = error_function(self.loss)
        for i, at in enumerate(outputs.tolist()):
            if i in (0, outputs.size - 1) or not knots[0] < at < knots[-1]:
                continue
            left = int(np.searchsorted(knots, at, side="left")) - 1  # the pieces on either side
            right = int(np.searchsorted(knots, at, side="right")) - 1
            gap = np.abs(outputs - at)
            error = self.density.height(at) * (a * gap + b * gap**2)
            terms = np.concatenate(
                [
                    weights[left, 1] * (laws[left, 0] - laws[left, 1]) / (at - knots[left]),
                    weights[right, 0] * (laws[right, 0] - laws[right, 1]) / (knots[right + 1] - at),
                    error * (laws[left, 1] - laws[right, 0]),
                    [mean[left, 1], mean[right, 0]],
                ]
            )
            slope[i] = math.fsum(terms)
        return slope
