"""What a quantizer's error is: the cost functions, and their exact integrals over a law that is affine between knots.

paper (Cai et al. 2024)  code
E|M(X) - X|, eq. (5)     cost_weights(..., "mae"): an exact integral; the paper's average over 51 points: grid_51
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact
from workbench.mechanisms.density import Density

__all__ = ["cost_weights", "cost_weights_and_slopes", "error_function", "grid_51", "places"]

Vector = NDArray[np.float64]


def grid_51(c: float = 1.0) -> Vector:
    """The 51 points -c, -0.96 c, ..., c of the paper's Table 1."""
    return np.linspace(-c, c, 51)


def error_function(cost: Any) -> tuple[float, float]:
    """(a, b) of the error a |e| + b e²: cost "mae", "mse", or a number λ in [0, 1] for λ|e| + (1 - λ) e²."""
    if cost in ("mae", "mse"):
        return (1.0, 0.0) if cost == "mae" else (0.0, 1.0)
    share = exact(cost, "cost", "mae, mse, or a share of mae in [0, 1]")
    if not 0 <= share <= 1:
        InvalidRequest.must("cost", "mae, mse, or a share of mae in [0, 1]", cost)
    return float(share), float(1 - share)


def places(knots: Vector, x: Vector) -> tuple[NDArray[np.intp], Vector]:
    """The piece that each x is on, and how far along it, in [0, 1]; a piece of width 0 holds c alone."""
    piece = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.size - 2)
    width = np.diff(knots)[piece]
    return piece, (x - knots[piece]) / np.where(width > 0, width, 1.0)


def cost_weights(knots: ArrayLike, bins: ArrayLike, density: Density, cost: Any = "mae") -> Vector:
    """W with E error = Σ W * end laws: the exact integral of p(x, i) e(B_i - x) f(x). Shape (pieces, 2, m).

    knots: (K + 1,) from -c to c; bins: (m,); cost: as `error_function`.
    """
    cuts, outputs = np.asarray(knots, dtype=float), np.asarray(bins, dtype=float)
    a, b = error_function(cost)
    nodes = _Nodes(cuts, outputs, density)
    gap = np.abs(nodes.gap)
    return nodes.integrals(a * gap + b * gap**2)


def cost_weights_and_slopes(knots: Vector, bins: Vector, density: Density, cost: Any) -> tuple[Vector, Vector]:
    """`cost_weights`, and their slopes in the outputs at fixed knots, ∂W/∂B_i. Shapes (pieces, 2, m)."""
    a, b = error_function(cost)
    nodes = _Nodes(knots, bins, density)
    size = np.abs(nodes.gap)
    return nodes.integrals(a * size + b * size**2), nodes.integrals(a * np.sign(nodes.gap) + 2 * b * nodes.gap)


class _Nodes:
    """Quadrature between the knots and outputs. gap: B_i - x at the nodes, (nodes, m)."""

    def __init__(self, knots: Vector, outputs: Vector, density: Density) -> None:
        x, self._weights = density.grid(np.concatenate([knots, outputs]))
        piece, t = places(knots, x)
        self.gap = outputs[None, :] - x[:, None]
        self._share = np.stack([1 - t, t], axis=1)
        self._shape = knots.size - 1, 2, outputs.size
        ends = 2 * piece[:, None] + np.arange(2)
        self._cell = (ends[:, :, None] * outputs.size + np.arange(outputs.size)).ravel()

    def integrals(self, error: Vector) -> Vector:
        """∫ t(x) error(x) f(x) dx over every piece, t the share of either end's law at x. Shape (pieces, 2, m)."""
        each = self._share[:, :, None] * (error * self._weights[:, None])[:, None, :]
        flat = np.bincount(self._cell, weights=each.ravel(), minlength=math.prod(self._shape))
        return np.asarray(flat, dtype=np.float64).reshape(self._shape)
