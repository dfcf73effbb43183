"""Find the steepest private noise of a given shape, for T runs and answers that differ by up to D.

η is the noise, s its steepness, L its shape, and δ_T the smallest δ of T runs together at ε.

    f(η) ∝ exp(-s L(|η|)),  L convex, L(0) = 0           maximise s   subject to   δ_T <= δ

f is log-concave, so that the ratio f(η)/f(η - d) is monotone in η. Its laws at a shift of D
therefore dominate those at every smaller shift, in one run (threshold tests are optimal, and their
power grows with the shift) and hence in T of them. δ_T is that of the shift D
(`workbench.models.noise.repeated_noise.ComposedDelta`), and grows with s.

    geometric            L(η) = η/D
    discrete Gaussian    L(η) = (η/D)²/2

The numbers are floats: the guarantee of mechanisms built from them is proven elsewhere, in
integers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from workbench.models.noise.repeated_noise import ComposedDelta, find_largest_factor
from workbench.solvers.arrays import Pair, Vector

Shape = Callable[[Vector], Vector]

_MAX_EXPONENT = 45.0  # Mass at a larger exponent s L is left out.
_LOSS_MARGIN = 12.0  # Sums of losses are resolved up to this plus _LOSS_FACTOR times ε.
_LOSS_FACTOR = 1.3  # Sums of losses are resolved up to _LOSS_MARGIN plus this times ε.
_MAX_SIDE_VALUES = 1 << 21  # Noise with more values on one side is refused.


def published_shapes(sensitivity: int) -> dict[str, Shape]:
    """Return the shapes L of this module's docstring by name.

    Args:
        sensitivity: D.
    """
    return {
        "geometric": lambda eta: eta / sensitivity,
        "discrete Gaussian": lambda eta: (eta / sensitivity) ** 2 / 2,
    }


class RepeatedWideNoise:
    """The private noise of one shape.

    Args:
        runs: T.
        epsilon: ε of the T runs together.
        delta: δ of the T runs together.
        sensitivity: D.
        shape: function L from an array of distances.
    """

    def __init__(
        self,
        runs: int,
        epsilon: float,
        delta: float,
        sensitivity: int,
        shape: Shape,
    ) -> None:
        self.runs = runs
        self.epsilon = epsilon
        self.delta = delta
        self.sensitivity = sensitivity
        self.shape = shape
        self._composed = ComposedDelta(runs, epsilon, _LOSS_FACTOR * epsilon + _LOSS_MARGIN)

    def _shape_at(self, distance: int) -> float:
        """Return L at one distance."""
        return float(self.shape(np.array([float(distance)]))[0])

    def exponents(self, steepness: float) -> Vector:
        """Compute s L(k) for k = 0..K, where K is a multiple of D and mass beyond is negligible.

        Args:
            steepness: s.

        Returns:
            The exponents, shape (K + 1,).

        Raises:
            ValueError: the noise has too many values.
        """
        size = 8
        while steepness * self._shape_at(size * self.sensitivity) < _MAX_EXPONENT:
            size *= 2
            if size * self.sensitivity > _MAX_SIDE_VALUES:
                raise ValueError(
                    f"The noise must have at most {_MAX_SIDE_VALUES} values on one side. "
                    "Got more. Use a larger epsilon or delta."
                )
        values = steepness * self.shape(np.arange(size * self.sensitivity + 1.0))
        first_negligible = int(np.searchsorted(values, _MAX_EXPONENT))
        end = -(-first_negligible // self.sensitivity) * self.sensitivity
        return values[: end + 1]

    def law(self) -> Pair:
        """Compute the law of the steepest private noise.

        Returns:
            The values -K..K and their masses, each of shape (2 K + 1,).
        """
        side = np.exp(-self.exponents(self.max_steepness))
        masses = np.concatenate([side[:0:-1], side])
        return np.arange(1.0 - side.size, side.size), masses / masses.sum()

    def expected_loss(self, loss: Shape) -> float:
        """Compute Σ f(η) c(|η|) of the steepest private noise.

        Args:
            loss: function c from an array of distances to their losses.
        """
        values, masses = self.law()
        return float(masses @ loss(np.abs(values)))

    def composed_delta(self, steepness: float) -> float:
        """Compute δ_T, ignoring the mass beyond K.

        Args:
            steepness: s.
        """
        exponents = self.exponents(steepness)
        d = self.sensitivity
        both_sides = np.concatenate([exponents[:0:-1], exponents])
        mass = np.exp(-both_sides)
        losses = both_sides[d:] - both_sides[:-d]
        return self._composed.compose_pair(losses, mass[:-d] / mass.sum()).delta

    @cached_property
    def max_steepness(self) -> float:
        """Return the largest s with δ_T <= δ."""
        start = self.epsilon / (self.runs * self._shape_at(self.sensitivity))
        return find_largest_factor(self.composed_delta, self.delta, start)
