"""One question about PDP noise in numbers, and what is known about its answer before anything is solved.

| paper             | here                                      |
|-------------------|-------------------------------------------|
| e^eps_mu          | `Noise.exp_epsilon`                       |
| rho_eta           | `Noise.cost`                              |
| delta, rho-bar    | `Noise.delta`, `Noise.budget`             |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.noise import shifted
from models.noise_constraints import UserConstraints

__all__ = ["Facts", "Noise"]

Vector = NDArray[np.float64]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Noise:
    """One instance of (13) or (15) in numbers.

    Attributes:
        sizes, shifts: as `models.noise.NoiseModel`.
        exp_epsilon: (shifts,) e^eps of every shift.
        cost: (N,), or (N, N) for the worst true answer.
        delta: given, or None when it is a variable.
        budget: of the cost when delta is minimised, else None.
        constraints: the user's own.
        span, slope: with neither delta nor budget, delta is a variable in this interval and cost - slope delta is
            minimised (see `models.noise_frontier`).
    """

    sizes: tuple[int, ...]
    shifts: tuple[tuple[int, ...], ...]
    exp_epsilon: Vector
    cost: Vector
    delta: float | None = None
    budget: float | None = None
    constraints: UserConstraints | None = None
    span: tuple[float, float] = (0.0, 1.0)
    slope: float = 0.0

    @property
    def N(self) -> int:
        """Order of the group."""
        return math.prod(self.sizes)

    @property
    def error_rate(self) -> bool:
        """Whether the cost is the error rate and nothing else is asked, so that the level theorem applies."""
        zero_one = self.cost.ndim == 1 and self.cost[0] == 0.0 and bool((self.cost[1:] == 1.0).all())
        return zero_one and self.constraints is None

    def targets(self) -> tuple[Positions, ...]:
        """For every shift the positions of eta + mu, (N,), read-only."""
        return _targets(self.sizes, self.shifts)


@lru_cache(maxsize=4)
def _targets(sizes: tuple[int, ...], shifts: tuple[tuple[int, ...], ...]) -> tuple[Positions, ...]:
    """`Noise.targets`: those of one group serve every relaxation of a frontier."""
    targets = tuple(shifted(sizes, mu) for mu in shifts)
    for target in targets:
        target.setflags(write=False)
    return targets


@dataclass(frozen=True, eq=False)
class Facts:
    """What is proven about some optimal f, and what the relaxation leaves out.

    Attributes:
        kept: (N,) the noise values with a variable of their own.
        lower: (N,) f >= lower.
        weights: f(eta) <= weights(eta) f(0), or None.
        delta: no more than this mass is broken (when delta is minimised: an incumbent's).
    """

    kept: Mask
    lower: Vector
    weights: Vector | None = None
    delta: float = 1.0

    @staticmethod
    def none(noise: Noise, kept: Mask | None = None) -> Facts:
        """Nothing known."""
        kept = np.ones(noise.N, dtype=bool) if kept is None else kept
        return Facts(kept, np.zeros(noise.N), None, noise.span[1] if noise.delta is None else noise.delta)
