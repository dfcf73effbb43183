"""What a quantizer's error is: the loss functions, and their exact integrals over a law that is
affine between knots.

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
    """(a, b) of the error a |e| + b e²: loss "absolute", "squared", or a number λ in [0, 1] for
    λ|e| + (1 - λ) e²."""
    if isinstance(loss, str) and loss in ("absolute", "squared"):
        if loss == "absolute":
            return (1.0, 0.0)
        return (0.0, 1.0)
    wanted = "one of absolute, squared, λ; λ in [0, 1] is the share of absolute"
    share = read_number_where(loss, "loss", wanted, lambda number: 0 <= number <= 1)
    return float(share), float(1 - share)


def locate_inputs(knots: Vector, x: Vector) -> tuple[Positions, Vector]:
    """The piece that each x is on, and how far along it, in [0, 1]; a piece of width 0 holds c
    alone."""
    piece = find_pieces(knots, x)
    width = np.diff(knots)[piece]
    return piece, (x - knots[piece]) / np.where(width > 0, width, 1.0)


def compute_error(gap: Vector, loss: Any) -> Vector:
    """a |e| + b e² of distances |e|. Shape of gap."""
    a, b = error_coefficients(loss)
    return a * gap + b * gap**2


def error_slope(gap: Vector, loss: Any) -> Vector:
    """The derivative of the error in e, at signed distances e. Shape of gap."""
    a, b = error_coefficients(loss)
    return a * np.sign(gap) + 2 * b * gap


class RealErrors(ABC):
    """A mechanism on numbers, [-c, c] around a middle, with m outputs `bins`, and the expected
    errors of its floating-point laws.
    """

    bins: Rationals
    c: Any
    middle: Any = 0
    inputs = None
    is_one_sided = False  # every two inputs are compared in both orders

    @property
    def m(self) -> int:
        """The number of bins."""
        return len(self.bins)

    @cached_property
    def outputs(self) -> Vector:
        """The bins as floats: what is published. Shape (m,)."""
        return np.array([nearest_float(b) for b in self.bins])

    @property
    def distances(self) -> Distances:
        """Of the inputs."""
        low = round_up(self.middle - self.c)
        high = round_down(self.middle + self.c)
        return Distances("real", ((low, high),), max_distance=high - low)

    def with_max_distance(self, distance: float) -> Self:
        """Itself: every two inputs are neighbours."""
        return self

    @abstractmethod
    def probabilities(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """p(x, i) as floats. Shape x.shape + (m,)."""

    @abstractmethod
    def expected_loss(self, loss: Any = "absolute", density: Density | None = None) -> float:
        """E error under a density (uniform by default). loss: as `error_function`."""

    def mae(self, density: Density | None = None) -> float:
        """E|M(X) - X|."""
        return self.expected_loss("absolute", density)

    def mse(self, density: Density | None = None) -> float:
        """E(M(X) - X)²."""
        return self.expected_loss("squared", density)

    def error_at(self, x: ArrayLike, loss: Any = "absolute") -> Vector:
        """The expected error at given inputs (Fig. 3). Shape of x."""
        values = read_floats(x, "x", column=True)
        gap = np.abs(self.outputs - values[..., None])
        return np.asarray((self.probabilities(values) * compute_error(gap, loss)).sum(axis=-1))

    @property
    def mae_51(self) -> float:
        """The paper's convention: the mean error over the 51 points -c, -0.96 c, ..., c of its
        Table 1."""
        return float(
            self.error_at(
                float(self.middle) + np.linspace(-float(self.c), float(self.c), 51)
            ).mean()
        )


class ErrorIntegrals:
    """Integrals between the knots (K + 1,) from -c to c and outputs (m,), of what p(x, i)
    multiplies.

    E error = Σ weights * end laws, the exact integral of p(x, i) e(B_i - x) f(x); weights, slopes:
    (pieces, 2, m).
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
        """W. loss: as `error_function`."""
        return self._integrals(compute_error(np.abs(self._gap), loss))

    def slopes(self, loss: Any) -> Vector:
        """∂W/∂B_i at fixed knots."""
        return self._integrals(error_slope(self._gap, loss))

    def _integrals(self, error: Vector) -> Vector:
        """∫ t(x) error(x) f(x) dx over every piece, t the share of either end's law at x."""
        each = self._share[:, :, None] * (error * self._weights[:, None])[:, None, :]
        flat = np.bincount(self._cell, weights=each.ravel(), minlength=math.prod(self._shape))
        return np.asarray(flat, dtype=np.float64).reshape(self._shape)
