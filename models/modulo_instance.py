"""One question about PDP noise in numbers, and what is known about its answer before anything is solved.

| paper             | here                                      |
|-------------------|-------------------------------------------|
| e^eps_mu          | `Noise.exp_epsilon`                       |
| rho_eta           | `Noise.loss`                              |
| delta, rho-bar    | `Noise.delta`, `Noise.max_loss`             |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from models.modulo import shifted
from models.modulo_constraints import UserConstraints
from solvers.arrays import Flags, Positions, Vector

__all__ = ["Facts", "Noise"]


@dataclass(frozen=True, eq=False)
class Noise:
    """One instance of (13) or (15) in numbers.

    Attributes:
        sizes, shifts: as `models.modulo.ModuloModel`.
        exp_epsilon: (shifts,) e^eps of every shift.
        loss: (N,), or (N, N) for the worst true answer.
        delta: given, or None when it is a variable.
        max_loss: of the loss when delta is minimised, else None.
        constraints: the user's own.
        span, slope: with neither delta nor max_loss, delta is a variable in this interval and loss - slope delta is
            minimised (see `models.modulo_frontier`).
    """

    sizes: tuple[int, ...]
    shifts: tuple[tuple[int, ...], ...]
    exp_epsilon: Vector
    loss: Vector
    delta: float | None = None
    max_loss: float | None = None
    constraints: UserConstraints | None = None
    span: tuple[float, float] = (0.0, 1.0)
    slope: float = 0.0

    @property
    def N(self) -> int:
        """Order of the group."""
        return math.prod(self.sizes)

    @property
    def error_rate(self) -> bool:
        """Whether the loss is the error rate and nothing else is asked, so that the level theorem applies."""
        error_rate = self.loss.ndim == 1 and self.loss[0] == 0.0 and bool((self.loss[1:] == 1.0).all())
        return error_rate and self.constraints is None

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

    kept: Flags
    lower: Vector
    weights: Vector | None = None
    delta: float = 1.0

    @staticmethod
    def none(noise: Noise, kept: Flags | None = None) -> Facts:
        """Nothing known."""
        kept = np.ones(noise.N, dtype=bool) if kept is None else kept
        return Facts(kept, np.zeros(noise.N), None, noise.span[1] if noise.delta is None else noise.delta)
