"""Cones that columns of a program lie in, beside its linear rows and bounds.

    minimise c'x + c0   subject to   rows and bounds as in `solvers.data`,   x[columns of a cone] in the cone

    kind            x = (x_0, x_1, ...) lies in it when                       z lies in its dual cone when
    second-order    x_0 >= |(x_1, ..., x_d)|                                  z_0 >= |(z_1, ..., z_d)|
    power α         x_0^α x_1^(1-α) >= |x_2|,  x_0, x_1 >= 0                  (z_0/α)^α (z_1/(1-α))^(1-α) >= |z_2|
    exponential     x_1 exp(x_0/x_1) <= x_2,   x_1 >= 0                       -z_0 exp(z_1/z_0 - 1) <= z_2,  z_0 <= 0

(Power and exponential cones as CVXPY's PowCone3D and ExpCone.) Cones are homogeneous, so `Program.scale` leaves them as
they are. An inequality in an affine expression is stated by columns that equal it.

A lower bound. For row multipliers y and z = c - A'y, every x in the cones and bounds has

    c'x >= y'(A x) + Σ over cones of (z - z*)'x,     z* in the dual cone

so what is left beside z* counts as a reduced cost, and `lagrangian_bound` bounds the rest over the columns' box. A
solver's z misses the dual cone by its tolerance; `lifted` gives a z* near it that is inside.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import Positions, Vector
from .errors import InvalidProgram

_ROUNDING = 4e-15  # relative, of a norm or a power


class Cone(enum.StrEnum):
    """The kinds."""

    SECOND_ORDER = "second-order"
    POWER = "power"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True)
class Cones:
    """Cones of one kind and size. columns: (cones, size), no column twice; exponents: (cones,) α in (0, 1) of power
    cones. Raises InvalidProgram."""

    kind: Cone
    columns: Positions
    exponents: Vector | None = None

    def __post_init__(self) -> None:
        if self.columns.ndim != 2 or (self.kind is not Cone.SECOND_ORDER and self.columns.shape[1] != 3):
            raise InvalidProgram(f"{self.kind} cones must have three columns each. Got shape {self.columns.shape}.")
        if (self.exponents is not None) != (self.kind is Cone.POWER):
            raise InvalidProgram("power cones, and no others, must have exponents.")
        if self.exponents is not None and not ((self.exponents > 0) & (self.exponents < 1)).all():
            raise InvalidProgram(f"exponents must lie in (0, 1). Got {self.exponents}.")

    def _left(self, x: Vector) -> Vector:
        """How far every cone's inequality is from being met, > 0 where it is not. x: (cones, size)."""
        if self.kind is Cone.SECOND_ORDER:
            return np.asarray(np.linalg.norm(x[:, 1:], axis=1) - x[:, 0])
        if self.kind is Cone.POWER:
            assert self.exponents is not None
            first, second = np.maximum(x[:, 0], 0.0), np.maximum(x[:, 1], 0.0)
            inside = np.abs(x[:, 2]) - first**self.exponents * second ** (1 - self.exponents)
            return np.asarray(np.max([inside, -x[:, 0], -x[:, 1]], axis=0))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            curve = np.where(x[:, 1] > 0, x[:, 1] * np.exp(x[:, 0] / x[:, 1]), np.maximum(x[:, 0], 0.0))
        return np.asarray(np.max([curve - x[:, 2], -x[:, 1]], axis=0))

    def _lift(self, z: Vector) -> None:
        """Move rows of z (cones, size) into the dual cone, in place."""
        if self.kind is Cone.SECOND_ORDER:
            z[:, 0] = np.maximum(z[:, 0], np.linalg.norm(z[:, 1:], axis=1) * (1 + _ROUNDING))
        elif self.kind is Cone.POWER:
            assert self.exponents is not None
            z[:, :2] = np.maximum(z[:, :2], 0.0)
            _lift_power(z, self.exponents)
        else:
            z[:, 0] = np.minimum(z[:, 0], 0.0)
            free = z[:, 0] == 0
            z[free] = np.maximum(z[free], 0.0)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                least = np.where(free, 0.0, -z[:, 0] * np.exp(z[:, 1] / z[:, 0] - 1) * (1 + _ROUNDING))
            z[:, 2] = np.maximum(z[:, 2], np.where(np.isfinite(least), least, 0.0))
            z[~np.isfinite(least)] = 0.0


def _lift_power(z: Vector, a: Vector) -> None:
    """Of four ways into the dual power cone the shortest: raise z_0, or z_1, or both alike, or lower |z_2|."""
    x, y, size = z[:, 0], z[:, 1], np.abs(z[:, 2])
    need = size * (1 + _ROUNDING)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = (x / a) ** a * (y / (1 - a)) ** (1 - a)
        first = a * (need / (y / (1 - a)) ** (1 - a)) ** (1 / a) * (1 + _ROUNDING)
        second = (1 - a) * (need / (x / a) ** a) ** (1 / (1 - a)) * (1 + _ROUNDING)
        factor = need / reach
        moves = np.array([first - x, second - y, (factor - 1) * (x + y), size - reach])
    moves = np.where(np.isfinite(moves), moves, np.inf)
    way = np.where(need > reach, moves.argmin(axis=0), -1)
    x[way == 0], y[way == 1] = first[way == 0], second[way == 1]
    z[way == 2, :2] *= factor[way == 2, None]
    down = way == 3
    z[down, 2] *= reach[down] / need[down] * (1 - _ROUNDING)


def violation(cones: Sequence[Cones], x: Vector) -> float:
    """The largest violation of a cone's inequality at x (columns,)."""
    return max((float(cone._left(x[cone.columns]).max(initial=0.0)) for cone in cones), default=0.0)


def lifted(cones: Sequence[Cones], z: Vector) -> Vector:
    """A z* (columns,), zero outside the cones' columns, in the dual cones and near z there."""
    inside = np.zeros_like(z)
    for cone in cones:
        block = z[cone.columns]
        cone._lift(block)
        inside[cone.columns] = block
    return inside
