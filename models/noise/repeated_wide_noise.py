"""Find the steepest private noise of a given shape, for T runs and answers that differ by up to D.

It serves neighbouring answers that differ by more than 1 ("wide"): the shape of the noise is given,
and only its steepness is optimised. η is the noise, f its PMF, s its steepness, L its shape, c its
loss, and δ_T the smallest δ at which T runs together are (ε, δ)-private.

    f(η) ∝ exp(-s L(|η|)),  L convex, L(0) = 0           maximise s   subject to   δ_T <= δ

f is log-concave, so that the ratio f(η)/f(η - d) is monotone in η for every shift d. Therefore the
pair of laws at shift D dominates the pair at every smaller shift: an optimal test between the two
laws is a threshold test, and its power grows with the shift. Domination in one run implies
domination in T runs. So δ_T is computed at the shift D
(`workbench.models.noise.repeated_noise.ComposedDelta`). It grows with s.

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
# Sums of privacy losses are resolved up to _LOSS_FACTOR * ε + _LOSS_MARGIN.
_LOSS_MARGIN = 12.0
_LOSS_FACTOR = 1.3  # The comment of _LOSS_MARGIN explains this factor.
_MAX_SIDE_VALUES = 1 << 21  # Noise with more values on one side is refused.


def published_shapes(sensitivity: int) -> dict[str, Shape]:
    """Return the shapes "geometric" and "discrete Gaussian" of the module header by name.

    Args:
        sensitivity: D, the largest difference of neighbouring answers.
    """
    return {
        "geometric": lambda eta: eta / sensitivity,
        "discrete Gaussian": lambda eta: (eta / sensitivity) ** 2 / 2,
    }


class RepeatedWideNoise:
    """The private noise of one shape.

    Args:
        runs: number T of runs.
        epsilon: ε > 0 of the T runs together.
        delta: δ of the T runs together, in (0, 1).
        sensitivity: D, the largest difference of neighbouring answers.
        shape: convex function L from an array of distances to their values, with L(0) = 0.
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
        (value,) = self.shape(np.array([float(distance)]))
        return float(value)

    def exponents(self, steepness: float) -> Vector:
        """Compute s L(k) for k = 0..K, where K is a multiple of D and mass beyond is negligible.

        Args:
            steepness: s > 0.

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
        right_weights = np.exp(-self.exponents(self.max_steepness))
        weights = np.concatenate([right_weights[:0:-1], right_weights])
        values = np.arange(1.0 - right_weights.size, right_weights.size)
        return values, weights / weights.sum()

    def expected_loss(self, loss: Shape) -> float:
        """Compute Σ f(η) c(|η|) of the steepest private noise.

        Args:
            loss: function c from an array of distances |η| to their losses. It has the signature
                of a shape.
        """
        values, masses = self.law()
        return float(masses @ loss(np.abs(values)))

    def composed_delta(self, steepness: float) -> float:
        """Compute δ_T, ignoring the negligible mass beyond K (see `exponents`).

        Args:
            steepness: s > 0.
        """
        D = self.sensitivity
        right_exponents = self.exponents(steepness)
        exponents = np.concatenate([right_exponents[:0:-1], right_exponents])
        weights = np.exp(-exponents)
        # The privacy loss at η is s (L(|η + D|) - L(|η|)).
        privacy_losses = exponents[D:] - exponents[:-D]
        return self._composed.compose_pair(privacy_losses, weights[:-D] / weights.sum()).delta

    @cached_property
    def max_steepness(self) -> float:
        """Return the largest s with δ_T <= δ."""
        start = self.epsilon / (self.runs * self._shape_at(self.sensitivity))
        return find_largest_factor(self.composed_delta, self.delta, start)
