"""Compute the expected loss of quantizers, exactly for laws that are affine between knots.

A quantizer M publishes an input x as one of the outputs B_i, with probability p(x, i). Its error is
e = B_i - x, and its loss a |e| + b e². f is the density of x. A knot is an input at which p is
given; a piece is the interval between two knots.

paper (Cai et al. 2024)                   code
E|M(X) - X|, eq. (5)                      `RealErrors.mae`, from the exact `ErrorIntegrals`
its average over 51 inputs, Table 1       `RealErrors.mae_51`
expected error at an input, Fig. 3        `RealErrors.error_at`
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
    pieces = find_pieces(knots, x)
    widths = np.diff(knots)[pieces]
    return pieces, (x - knots[pieces]) / np.where(widths > 0, widths, 1.0)


def compute_error(distances: Vector, loss: Any) -> Vector:
    """Compute the loss a |e| + b e² of errors, from their sizes. Shape of distances.

    Args:
        distances: The sizes |e| >= 0 of the errors, any shape.
        loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
    """
    a, b = error_coefficients(loss)
    # Searches compute millions of errors, so a part of weight 0 is left out.
    if not b:
        return a * distances
    if not a:
        return b * distances**2
    return a * distances + b * distances**2


def error_slope(errors: Vector, loss: Any) -> Vector:
    """Compute the derivative of the loss a |e| + b e² in e; 0 at e = 0. Shape of errors.

    Args:
        errors: The signed errors e, any shape.
        loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
    """
    a, b = error_coefficients(loss)
    if not b:
        return a * np.sign(errors)
    if not a:
        return 2 * b * errors
    return a * np.sign(errors) + 2 * b * errors


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
        """Return the mechanism itself, because every two inputs are already neighbours.

        Args:
            distance: The largest difference of neighbours that is asked for; not used.
        """
        return self

    @abstractmethod
    def probabilities(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """Return the output probabilities p(x, i) as floats. Shape x.shape + (m,).

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
        inputs = read_floats(x, "x", column=True)
        distances = np.abs(self.outputs - inputs[..., None])
        losses = compute_error(distances, loss)
        return np.asarray((self.probabilities(inputs) * losses).sum(axis=-1))

    @property
    def mae_51(self) -> float:
        """Return the mean error over 51 points -c, -0.96 c, ..., c, as Table 1 of the paper."""
        points = np.linspace(-float(self.c), float(self.c), 51)
        return float(self.error_at(float(self.middle) + points).mean())


class ErrorIntegrals:
    """Weights of the end laws in the expected error of a piecewise affine law.

    The expected error is the integral of p(x, i) loss(B_i - x) f(x), summed over i. As p is affine
    on each piece, this is Σ weights * end laws, where the end laws are the values of p at both ends
    of every piece.

    Args:
        knots: The K + 1 increasing knots from -c to c.
        outputs: The m published values B_i.
        density: The density f of the inputs.
    """

    def __init__(self, knots: Vector, outputs: Vector, density: Density) -> None:
        x, self._node_weights = density.quadrature(np.concatenate([knots, outputs]))
        pieces, t = locate_inputs(knots, x)
        self._errors = outputs[None, :] - x[:, None]  # Signed. Shape (nodes, m).
        self._end_shares = np.stack([1 - t, t], axis=1)  # Of the left and right end law.
        self._shape = knots.size - 1, 2, outputs.size
        ends = 2 * pieces[:, None] + np.arange(2)
        # For every node, end and output, the flat index of the weight to which it contributes.
        self._indices = (ends[:, :, None] * outputs.size + np.arange(outputs.size)).ravel()

    def weights(self, loss: Any = "absolute") -> Vector:
        """Return the weight of every end law and output. Shape (pieces, 2, m).

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
        """
        return self._integrate(compute_error(np.abs(self._errors), loss))

    def slopes(self, loss: Any) -> Vector:
        """Return the derivatives of the weights in the outputs B_i, at fixed knots.

        Shape (pieces, 2, m).

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
        """
        return self._integrate(error_slope(self._errors, loss))

    def _integrate(self, integrand: Vector) -> Vector:
        """Integrate a function of x and B_i times the share of each end law, over every piece.

        Args:
            integrand: The function at the nodes of the quadrature and the outputs. Shape
                (nodes, m).
        """
        weighted_integrand = integrand * self._node_weights[:, None]
        terms = self._end_shares[:, :, None] * weighted_integrand[:, None, :]
        sums = np.bincount(self._indices, weights=terms.ravel(), minlength=math.prod(self._shape))
        return np.asarray(sums, dtype=np.float64).reshape(self._shape)
