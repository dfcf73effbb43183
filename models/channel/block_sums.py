"""What outputs share in `workbench.models.channel.block_interior`: sums of masses, of losses in the worst case, of
slacks where δ > 0.

    Σ_o v_o = 1,    Σ_o ℓ_o v_o + r = ω (worst case),    Σ_o s_o + r = δ (δ > 0),    Σ_o A_o v_o + r = b (one's own),
    r >= 0, or r = 0 where one's own are equations

    (S + diag(r/π at sums that have one)) dq - [0, 1, 0] dω = what sums lack,    Σ dq of losses = Σ π - 1,    π = -q

the last only where there is an ω.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.models.channel.scaled_cholesky import ScaledCholesky
from workbench.solvers.arrays import Flags, Positions, Vector

_SHIFTS = (
    0.0,
    *(10.0**power for power in range(-16, -5)),
)  # of the scaled Schur complement, where it is not positive
_REFINED = 3
_LEAST = 0.01  # of what is left at the start of a sum that is at most 0
_BANDED = 4  # times narrower than the whole, from which a band is factored


def max_step(value: Vector, move: Vector) -> float:
    """The longest step that keeps values > 0 from falling below 0."""
    least = float((move / value).min(initial=0.0))
    return -1 / least if least < 0 else np.inf


class Target(NamedTuple):
    """Products that a corrector aims at (Mehrotra 1992; Gondzio 1996): those of values after steps, brought between
    `low` and `high`, and lowered by at most `high`."""

    primal: float
    dual: float
    low: float
    high: float

    def more(self, w: Vector, dw: Vector, z: Vector, dz: Vector) -> Vector:
        """What products are to have more than w z + w dz + z dw."""
        product = (w + self.primal * dw) * (z + self.dual * dz)
        return np.maximum(np.clip(product, self.low, self.high) - product, -self.high)


class Sums:
    """What is summed over outputs, (K,), with what is left of each that is at most its limit.

    limit: (K,), 1 of masses, δ of slacks, 0 of losses, which are at most ω, b; most: positions of those that are at
    most their limit; rises: of these, whether that is ω.
    """

    def __init__(
        self,
        limit: Vector,
        most: Positions,
        rises: Flags,
        at: Vector,
        scale: float,
        band: int | None = None,
    ) -> None:
        """at: the sums at the start; scale: of slack times multiplier there; band: of the Schur complement."""
        self.limit, self.most, self.rises, self.worst = limit, most, rises, bool(rises.any())
        self.fixed = np.delete(np.arange(limit.size), most)
        self._ones = np.zeros(limit.size)
        self._ones[most] = rises
        self.q = np.zeros(limit.size)
        self._band = band if band is not None and _BANDED * band < limit.size else None
        self.top = 1.5 * float(at[most][rises].max()) if self.worst else 0.0
        bound = limit[most] + self.top * rises
        self.slack = np.maximum(
            bound - at[most], np.where(bound > 0, 0.5 * bound, _LEAST - 0.5 * bound)
        )
        self.q[most] = np.where(rises, -1 / max(1, int(rises.sum())), -scale / self.slack)
        self.begin()

    @property
    def multipliers(self) -> Vector:
        """π of all sums that are at most their limit."""
        return -self.q[self.most]

    @property
    def weights(self) -> Vector:
        """π of the losses."""
        return self.multipliers[self.rises]

    def missing(self, sums: Vector) -> Vector:
        """What the sums at a point lack."""
        lack = self.limit - sums
        lack[self.most] += self.top * self.rises - self.slack
        return lack

    def excess(self, sums: Vector) -> float:
        """How far they are from what they must be."""
        over = (sums - self.limit)[self.most[~self.rises]].max(initial=0.0)
        return max(float(np.abs(self.limit - sums)[self.fixed].max()), float(over))

    def complementarity(self) -> float:
        """r · π."""
        return float(self.slack @ self.multipliers)

    def factor(self, system: Vector) -> None:
        """Scaled to a diagonal of ones, shifted where floats do not have it positive. Raises LinAlgError."""
        system[self.most, self.most] += self.slack / self.multipliers
        self.factors = ScaledCholesky(system, _SHIFTS, _REFINED, self._band)

    def begin(self) -> None:
        """Start a direction, towards slack times multiplier 0."""
        self._goal = -self.slack * self.multipliers
        self.d_q, self.d_top = np.zeros_like(self.q), 0.0

    def correct(self, target: Target) -> None:
        """Change what the direction leads to."""
        self._kept = self._goal, self.d_q, self.d_top
        self._goal = self._goal + target.more(
            self.slack, self.d_slack, self.multipliers, -self.d_q[self.most]
        )

    def undo(self) -> None:
        """Take the last correction back."""
        self._goal, self.d_q, self.d_top = self._kept

    @property
    def d_slack(self) -> Vector:
        """The step of what is left."""
        return (self._goal + self.slack * self.d_q[self.most]) / self.multipliers

    def refine(self, lack: Vector) -> Vector:
        """More multipliers for what the direction leaves of `missing`: lack - sums of dx."""
        lack = lack.copy()
        lack[self.most] += self.d_top * self.rises - self.d_slack
        more, top = self._bordered(lack, self.weights.sum() - 1 - self._ones @ self.d_q)
        self.d_q, self.d_top = self.d_q + more, self.d_top + top
        return more

    def _bordered(self, right: Vector, total: float) -> tuple[Vector, float]:
        """(q, ω) with S q - [0, 1, 0] ω = right and Σ q of losses = total."""
        a = self.factors.solve(right)
        if not self.worst:
            return a, 0.0
        b = self.factors.solve(self._ones)
        top = (total - self._ones @ a) / (self._ones @ b)
        return a + top * b, float(top)

    def longest(self) -> tuple[float, float]:
        """The longest steps that keep r and π >= 0."""
        return max_step(self.slack, self.d_slack), max_step(self.multipliers, -self.d_q[self.most])

    def ahead(self, primal: float, dual: float) -> float:
        """r · π after steps."""
        return float(
            (self.slack + primal * self.d_slack) @ (self.multipliers - dual * self.d_q[self.most])
        )

    def move(self, primal: float, dual: float) -> None:
        """Take the direction."""
        self.slack = self.slack + primal * self.d_slack
        self.q = self.q + dual * self.d_q
        self.top += primal * self.d_top
