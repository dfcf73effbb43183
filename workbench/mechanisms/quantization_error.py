"""Compute the expected loss of quantizers, exactly for laws that are affine between knots.

Notation: B_i are the outputs, e = B_i - x is the error on the input x, and f is the density of x.

paper (Cai et al. 2024)  code
E|M(X) - X|, eq. (5)     `ErrorIntegrals`, exact; the paper's average over 51 points: mae_51
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.plain import read_floats
from workbench.exact.arrays import Positions, Vector
from workbench.exact.numbers import (
    Rationals,
    nearest_float,
    read_number_where,
    round_down,
    round_up,
)
from workbench.mechanisms.mechanism import Distances
from workbench.questions.density import Density, find_pieces


def error_coefficients(loss: Any) -> tuple[float, float]:
    """Return the coefficients (a, b) of a loss a |e| + b e² of the error e.

    Args:
        loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².

    Raises:
        InvalidRequest: If loss is another text, or a number outside [0, 1].
    """
    if isinstance(loss, str) and loss in ("absolute", "squared"):
        if loss == "absolute":
            return (1.0, 0.0)
        return (0.0, 1.0)
    constraint = "one of absolute, squared, λ; λ in [0, 1] is the share of absolute"
    share = read_number_where(loss, "loss", constraint, lambda number: 0 <= number <= 1)
    return float(share), float(1 - share)


def locate_inputs(knots: Vector, x: Vector) -> tuple[Positions, Vector]:
    """Find the piece on which each x lies, and where on the piece it lies.

    A piece of width 0 contains the last knot only.

    Args:
        knots: Increasing, shape (K + 1,).
        x: The inputs, any shape.

    Returns:
        (Number of the piece from 0, share of the piece that is left of x, in [0, 1]), each of the
        shape of x.
    """
    piece = find_pieces(knots, x)
    width = np.diff(knots)[piece]
    return piece, (x - knots[piece]) / np.where(width > 0, width, 1.0)


def compute_error(gap: Vector, loss: Any) -> Vector:
    """Compute a |e| + b e² of distances. Shape of gap.

    Args:
        gap: The sizes |e| of the errors, any shape.
        loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
    """
    a, b = error_coefficients(loss)
    return a * gap + b * gap**2


def error_slope(gap: Vector, loss: Any) -> Vector:
    """Compute the derivative of the error in e. Shape of gap.

    Args:
        gap: The signed errors e, any shape.
        loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
    """
    a, b = error_coefficients(loss)
    return a * np.sign(gap) + 2 * b * gap


class RealErrors(ABC):
    """A mechanism on numbers in [-c, c] around a middle, with its expected errors in floats.

    Attributes:
        bins: The m outputs, exact and increasing.
        c: Half the width of the inputs.
        middle: The middle of the inputs.
    """

    bins: Rationals
    c: Any
    middle: Any = 0
    inputs = None
    is_one_sided = False  # Every two inputs are compared in both orders.

    @property
    def m(self) -> int:
        """Return the number of bins."""
        return len(self.bins)

    @cached_property
    def outputs(self) -> Vector:
        """Return the bins as floats, which are published. Shape (m,)."""
        return np.array([nearest_float(b) for b in self.bins])

    @property
    def distances(self) -> Distances:
        """Return the distances of the inputs."""
        low = round_up(self.middle - self.c)
        high = round_down(self.middle + self.c)
        return Distances("real", ((low, high),), max_distance=high - low)

    def with_max_distance(self, distance: float) -> Self:
        """Return itself: every two inputs are neighbours.

        Args:
            distance: Not used.
        """
        return self

    @abstractmethod
    def probabilities(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """Return p(x, i) as floats. Shape x.shape + (m,).

        Args:
            x: The inputs, any shape.
            clip: Move inputs outside the range to its ends, instead of refusing them.
        """

    @abstractmethod
    def expected_loss(self, loss: Any = "absolute", density: Density | None = None) -> float:
        """Compute the expected error under a density.

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
            density: The density of x - middle, default: uniform.
        """

    def mae(self, density: Density | None = None) -> float:
        """Compute E|M(X) - X|.

        Args:
            density: The density of x - middle, default: uniform.
        """
        return self.expected_loss("absolute", density)

    def mse(self, density: Density | None = None) -> float:
        """Compute E(M(X) - X)².

        Args:
            density: The density of x - middle, default: uniform.
        """
        return self.expected_loss("squared", density)

    def error_at(self, x: ArrayLike, loss: Any = "absolute") -> Vector:
        """Compute the expected error at given inputs (Fig. 3). Shape of x.

        Args:
            x: The inputs, any shape.
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
        """
        values = read_floats(x, "x", column=True)
        gap = np.abs(self.outputs - values[..., None])
        return np.asarray((self.probabilities(values) * compute_error(gap, loss)).sum(axis=-1))

    @property
    def mae_51(self) -> float:
        """Return the mean error over 51 points -c, -0.96 c, ..., c, as Table 1 of the paper."""
        return float(
            self.error_at(
                float(self.middle) + np.linspace(-float(self.c), float(self.c), 51)
            ).mean()
        )


class ErrorIntegrals:
    """Weights of the end laws in the expected error of a piecewise affine law.

    The expected error is Σ weights * end laws. This is the exact integral of p(x, i) e(B_i - x)
    f(x).

    Args:
        knots: The K + 1 increasing knots from -c to c.
        outputs: The m published values B_i.
        density: The density f of the inputs.
    """

    def __init__(self, knots: Vector, outputs: Vector, density: Density) -> None:
        x, self._weights = density.quadrature(np.concatenate([knots, outputs]))
        piece, t = locate_inputs(knots, x)
        self._gap = outputs[None, :] - x[:, None]
        self._share = np.stack([1 - t, t], axis=1)
        self._shape = knots.size - 1, 2, outputs.size
        ends = 2 * piece[:, None] + np.arange(2)
        self._cell = (ends[:, :, None] * outputs.size + np.arange(outputs.size)).ravel()

    def weights(self, loss: Any = "absolute") -> Vector:
        """Return the weights. Shape (pieces, 2, m).

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
        """
        return self._integrals(compute_error(np.abs(self._gap), loss))

    def slopes(self, loss: Any) -> Vector:
        """Return ∂weights/∂B_i at fixed knots.

        Shape (pieces, 2, m).

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
        """
        return self._integrals(error_slope(self._gap, loss))

    def _integrals(self, error: Vector) -> Vector:
        """Compute ∫ t(x) error(x) f(x) dx over every piece.

        t is the share of either end's law at x.
        """
        weighted_errors = self._share[:, :, None] * (error * self._weights[:, None])[:, None, :]
        sums = np.bincount(
            self._cell, weights=weighted_errors.ravel(), minlength=math.prod(self._shape)
        )
        return np.asarray(sums, dtype=np.float64).reshape(self._shape)
