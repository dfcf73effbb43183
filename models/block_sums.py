"""What outputs share in `models.block_interior`: sums of masses, of losses in the worst case, and their multipliers.

    (S + diag(0, s/π)) dq - [0, 1] dω = what sums lack,    Σ dq[k:] = Σ π - 1,    π = -q[k:]

the second part, with slacks s >= 0 of Σ_o ℓ_o v_o + s = ω, only where the worst input counts.
"""

from __future__ import annotations

import numpy as np

from models.scaled_cholesky import ScaledCholesky
from solvers.arrays import Vector

_SHIFTS = (0.0, *(10.0**power for power in range(-16, -5)))  # of the scaled Schur complement, where it is not positive
_REFINED = 3


def longest(value: Vector, move: Vector) -> float:
    """The longest step that keeps values >= 0."""
    falling = move < 0
    return float((-value[falling] / move[falling]).min(initial=np.inf))


class Sums:
    """What is summed over outputs, and what only the worst case has: ω, slacks s, and π = -q[k:]."""

    def __init__(self, k: int, worst: bool, at: Vector) -> None:
        """at: the sums at the start."""
        self.k, self.worst = k, worst
        self.q = np.zeros(2 * k if worst else k)
        self.slack = np.empty(0)
        self.top = 0.0
        if worst:
            self.q[k:] = -1 / k
            self.top = 1.5 * float(at[k:].max())
            self.slack = self.top - at[k:]
        self.d_q, self.d_top, self.d_slack = np.zeros_like(self.q), 0.0, np.zeros_like(self.slack)
        self._goal = np.empty(0)

    @property
    def weights(self) -> Vector:
        """π."""
        return -self.q[self.k :]

    def missing(self, sums: Vector) -> Vector:
        """What the sums at a point lack."""
        lack = 1 - sums[: self.k]
        return np.concatenate([lack, self.top - self.slack - sums[self.k :]]) if self.worst else lack

    def complementarity(self) -> float:
        """s · π."""
        return float(self.slack @ self.weights) if self.worst else 0.0

    def factor(self, system: Vector) -> None:
        """Scaled to a diagonal of ones, shifted where floats do not have it positive. Raises LinAlgError."""
        if self.worst:
            at = np.arange(self.k, 2 * self.k)
            system[at, at] += self.slack / self.weights
        self.factors = ScaledCholesky(system, _SHIFTS, _REFINED)

    def step(self, lack: Vector, aim: float | None) -> Vector:
        """More multipliers for what sums lack at the first turn of a direction."""
        if not self.worst:
            self.d_q = self.factors.solve(lack)
            return self.d_q
        goal = -self.slack * self.weights + (0.0 if aim is None else aim + self.d_slack * self.d_q[self.k :])
        self._goal = goal
        lack = lack - np.concatenate([np.zeros(self.k), goal / self.weights])
        more, self.d_top = self._bordered(lack, self.weights.sum() - 1)
        self.d_q = more
        self.d_slack = (goal + self.slack * more[self.k :]) / self.weights
        return more

    def refine(self, lack: Vector) -> Vector:
        """More multipliers for what the direction leaves of `missing`: lack - sums of dx."""
        if not self.worst:
            more = self.factors.solve(lack)
            self.d_q = self.d_q + more
            return more
        lack = lack + np.concatenate([np.zeros(self.k), self.d_top - self.d_slack])
        more, top = self._bordered(lack, self.weights.sum() - 1 - self.d_q[self.k :].sum())
        self.d_q, self.d_top = self.d_q + more, self.d_top + top
        self.d_slack = (self._goal + self.slack * self.d_q[self.k :]) / self.weights
        return more

    def _bordered(self, right: Vector, total: float) -> tuple[Vector, float]:
        """(q, ω) with S q - [0, 1] ω = right and Σ q[k:] = total."""
        ones = np.concatenate([np.zeros(self.k), np.ones(self.k)])
        a, b = self.factors.solve(right), self.factors.solve(ones)
        top = (total - a[self.k :].sum()) / b[self.k :].sum()
        return a + top * b, float(top)

    def longest(self) -> tuple[float, float]:
        """The longest steps that keep s and π >= 0."""
        if not self.worst:
            return np.inf, np.inf
        return longest(self.slack, self.d_slack), longest(self.weights, -self.d_q[self.k :])

    def ahead(self, primal: float, dual: float) -> float:
        """s · π after steps."""
        if not self.worst:
            return 0.0
        weights = self.weights - dual * self.d_q[self.k :]
        return float((self.slack + primal * self.d_slack) @ weights)

    def move(self, primal: float, dual: float) -> None:
        """Take the direction."""
        self.q = self.q + dual * self.d_q
        if self.worst:
            self.top += primal * self.d_top
            self.slack = self.slack + primal * self.d_slack
