"""Noise on the integers for many runs and answers up to D apart: the steepest of a shape within (ε, δ) of all runs.

    f(η) ∝ exp(-s L(|η|)),  L convex, L(0) = 0           maximise s   subject to   δ_T <= δ

f is log-concave, so that the ratio f(η)/f(η - d) is monotone in η, and its laws at a shift of D dominate those at every
smaller shift, in one run (threshold tests are best, and gain with the shift) and hence in T of them: δ_T is that of the
shift D (`workbench.models.noise.repeated_noise.ComposedDelta`), and grows with s.

    geometric            L(η) = η/D
    discrete Gaussian    L(η) = (η/D)²/2

These are floats: the guarantee of what is built from them is proven elsewhere, in integers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from workbench.models.noise.repeated_noise import ComposedDelta, find_largest_factor
from workbench.solvers.arrays import Pair, Vector

Shape = Callable[[Vector], Vector]

_TAIL = 45.0  # s L beyond which mass is left out
_FAR, _WIDER = 12.0, 1.3  # sums of losses are told apart up to ε times a factor, and more
_LONGEST = 1 << 21  # noise values


def published_shapes(sensitivity: int) -> dict[str, Shape]:
    """name -> L of the docstring. reach: D."""
    return {
        "geometric": lambda eta: eta / sensitivity,
        "discrete Gaussian": lambda eta: (eta / sensitivity) ** 2 / 2,
    }


class RepeatedWideNoise:
    """The noise of a shape. runs: T; reach: D; shape: L, vectorised."""

    def __init__(
        self, runs: int, epsilon: float, delta: float, sensitivity: int, shape: Shape
    ) -> None:
        self.runs, self.epsilon, self.delta, self.sensitivity, self.shape = (
            runs,
            epsilon,
            delta,
            sensitivity,
            shape,
        )
        self._composed = ComposedDelta(runs, epsilon, _WIDER * epsilon + _FAR)

    def exponents(self, steepness: float) -> Vector:
        """s L(k) for k = 0..K, K the first multiple of D from which on mass is negligible. Shape (K + 1,)."""
        size = 8
        while steepness * float(self.shape(np.array([float(size * self.sensitivity)]))[0]) < _TAIL:
            size *= 2
            if size * self.sensitivity > _LONGEST:
                raise ValueError(f"The noise must have at most {_LONGEST} values. Got more.")
        values = steepness * self.shape(np.arange(size * self.sensitivity + 1.0))
        first = int(np.searchsorted(values, _TAIL))
        return values[: -(-first // self.sensitivity) * self.sensitivity + 1]

    def law(self) -> Pair:
        """(-K..K, f(-K..K)) of the steepest noise. Shapes (2 K + 1,)."""
        side = np.exp(-self.exponents(self.max_steepness))
        masses = np.concatenate([side[:0:-1], side])
        return np.arange(1.0 - side.size, side.size), masses / masses.sum()

    def expected_loss(self, loss: Shape) -> float:
        """Σ f(η) c(|η|) of it. loss: of distances, vectorised."""
        values, masses = self.law()
        return float(masses @ loss(np.abs(values)))

    def composed_delta(self, steepness: float) -> float:
        """δ_T at s, but for mass beyond K."""
        exponents, d = self.exponents(steepness), self.sensitivity
        both = np.concatenate([exponents[:0:-1], exponents])
        mass = np.exp(-both)
        return self._composed.compose_pair(both[d:] - both[:-d], mass[:-d] / mass.sum())[0]

    @cached_property
    def max_steepness(self) -> float:
        """The largest s within the budget."""
        first = float(self.shape(np.array([float(self.sensitivity)]))[0])
        return find_largest_factor(
            self.composed_delta, self.delta, self.epsilon / (self.runs * first)
        )
