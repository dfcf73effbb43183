"""What a quantizer's error is: the cost functions, and their exact integrals over a law that is affine between knots.

paper (Cai et al. 2024)  code
E|M(X) - X|, eq. (5)     cost_weights(..., "mae"): an exact integral; the paper's average over 51 points: grid_51
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact
from workbench.mechanisms.density import Density

__all__ = ["cost_weights", "error_function", "grid_51", "places"]

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
    x, w = density.grid(np.concatenate([cuts, outputs]))
    piece, t = places(cuts, x)
    gap = np.abs(outputs[None, :] - x[:, None])
    error = (a * gap + b * gap**2) * w[:, None]
    weights = np.zeros((cuts.size - 1, 2, outputs.size))
    np.add.at(weights[:, 0], piece, (1 - t)[:, None] * error)
    np.add.at(weights[:, 1], piece, t[:, None] * error)
    return weights
