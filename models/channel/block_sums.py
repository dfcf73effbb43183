"""Solve the equations that couple the outputs in the interior-point method for channels.

The method is `workbench.models.channel.block_interior`. The equations are sums over outputs: of
masses, of losses if the loss of the worst input is minimised, of slacks if δ > 0, and the sums of
user-defined rows.

Notation. v_o, ℓ_o and s_o are the masses, the losses and the hockey-stick slacks at output o, A_o
and b the coefficients and the limits of the user-defined rows. r are the slacks of the sums that
have an upper limit, q the multipliers of all sums, π = -q those of the sums with a limit, ω the
largest loss, and S the Schur complement (`workbench.models.channel.block_factors`), shape (K, K)
for K sums.

    Σ_o v_o = 1,    Σ_o ℓ_o v_o + r = ω (worst case),    Σ_o s_o + r = δ (δ > 0),
    Σ_o A_o v_o + r = b (user-defined),    r >= 0, or r = 0 where user-defined rows are equations

    (S + diag(r/π at sums that have one)) dq - [0, 1, 0] dω = residuals of the sums,
    Σ dq of losses = Σ π - 1,    π = -q

The last line exists only if the loss of the worst input is minimised, so that there is an ω.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.models.channel.scaled_cholesky import ScaledCholesky
from workbench.solvers.arrays import Flags, Positions, Vector

# Shifts of the scaled Schur complement that are tried if it is not positive definite.
_DIAGONAL_SHIFTS = (0.0, *(10.0**power for power in range(-16, -5)))
_REFINEMENT_STEPS = 3  # A solution of the Schur complement is refined this many times.
_MIN_START_SLACK = 0.01  # A sum with a limit of at most 0 has at least this slack at the start.
# A matrix is factored as a band matrix if it has more than this many times its bandwidth in rows.
_MIN_BAND_RATIO = 4


def max_step(values: Vector, direction: Vector) -> float:
    """Return the longest step that keeps positive values from falling below 0, else infinity.

    Args:
        values: positive values, any shape.
        direction: changes of the values in a step of length 1, the same shape.
    """
    smallest_ratio = float((direction / values).min(initial=0.0))
    return -1 / smallest_ratio if smallest_ratio < 0 else np.inf


class Target(NamedTuple):
    """Products w z at which a corrector aims (Mehrotra 1992; Gondzio 1996).

    The target of a product is its value after the steps below, clipped to [low, high]. A product is
    lowered by at most `high`.

    Attributes:
        primal: step length of the values.
        dual: step length of the multipliers.
        low: the smallest product aimed at.
        high: the largest product aimed at.
    """

    primal: float
    dual: float
    low: float
    high: float

    def product_corrections(
        self,
        w: Vector,
        dw: Vector,
        z: Vector,
        dz: Vector,
    ) -> Vector:
        """Compute the targets minus the products after the steps, in the shape of `w`.

        Args:
            w: values, any shape.
            dw: Newton directions of w, the same shape.
            z: multipliers, the same shape.
            dz: Newton directions of z, the same shape.
        """
        products = (w + self.primal * dw) * (z + self.dual * dz)
        return np.maximum(np.clip(products, self.low, self.high) - products, -self.high)


class OutputSums:
    """The K sums over outputs, with the slacks of sums that have an upper limit.

    Args:
        limit: limits of the sums: 1 for masses, δ for slacks, 0 for losses (which are at most ω),
            b for user-defined rows; shape (K,).
        inequalities: positions of the sums that are at most their limit, shape (inequalities,).
        is_loss: whether each inequality is a sum of losses, limited by ω, shape (inequalities,).
        start_sums: values of the sums at the starting point, shape (K,).
        scale: product of slack and multiplier at the start, for sums other than losses.
        band: bandwidth of the Schur complement, None for a full matrix.

    Attributes:
        limit: limits of the sums, shape (K,).
        inequalities: positions of the sums that are at most their limit, shape (inequalities,).
        is_loss: whether each inequality is a sum of losses, shape (inequalities,).
        has_losses: whether the loss of the worst input is minimised.
        equations: positions of the sums that equal their limit.
        q: multipliers of the sums, shape (K,); q = -π for inequalities.
        largest_loss: ω.
        slack: r of the inequalities, shape (inequalities,).
        d_q: direction of q.
        d_largest_loss: direction of ω.
    """

    def __init__(
        self,
        limit: Vector,
        inequalities: Positions,
        is_loss: Flags,
        start_sums: Vector,
        scale: float,
        band: int | None = None,
    ) -> None:
        self.limit = limit
        self.inequalities = inequalities
        self.is_loss = is_loss
        self.has_losses = bool(is_loss.any())
        self.equations = np.delete(np.arange(limit.size), inequalities)
        self._loss_indicator = np.zeros(limit.size)
        self._loss_indicator[inequalities] = is_loss
        self.q = np.zeros(limit.size)
        is_narrow = band is not None and _MIN_BAND_RATIO * band < limit.size
        self._band = band if is_narrow else None
        sums = start_sums[inequalities]
        self.largest_loss = 1.5 * float(sums[is_loss].max()) if self.has_losses else 0.0
        upper = limit[inequalities] + self.largest_loss * is_loss
        min_slack = np.where(upper > 0, 0.5 * upper, _MIN_START_SLACK - 0.5 * upper)
        self.slack = np.maximum(upper - sums, min_slack)
        loss_weight = -1 / max(1, int(is_loss.sum()))
        self.q[inequalities] = np.where(is_loss, loss_weight, -scale / self.slack)
        self.start_direction()

    @property
    def multipliers(self) -> Vector:
        """Return π of all inequalities, shape (inequalities,)."""
        return -self.q[self.inequalities]

    @property
    def loss_weights(self) -> Vector:
        """Return π of the sums of losses."""
        return self.multipliers[self.is_loss]

    def residuals(self, sums: Vector) -> Vector:
        """Compute the residuals of the sums at a point, shape (K,).

        Args:
            sums: the sums, shape (K,).
        """
        lack = self.limit - sums
        lack[self.inequalities] += self.largest_loss * self.is_loss - self.slack
        return lack

    def max_violation(self, sums: Vector) -> float:
        """Compute by how much the sums of a point break an equation or a limit at most.

        Args:
            sums: the sums, shape (K,).
        """
        limited = self.inequalities[~self.is_loss]
        excess = float((sums - self.limit)[limited].max(initial=0.0))
        equation_error = float(np.abs(self.limit - sums)[self.equations].max())
        return max(equation_error, excess)

    def complementarity(self) -> float:
        """Compute r · π."""
        return float(self.slack @ self.multipliers)

    def factorize(self, system: Vector) -> None:
        """Factor the Schur complement of the sums.

        Args:
            system: the blocks' part of the Schur complement, shape (K, K), which is overwritten.

        Raises:
            LinAlgError: the system is not positive definite at any shift.
        """
        system[self.inequalities, self.inequalities] += self.slack / self.multipliers
        self.factors = ScaledCholesky(system, _DIAGONAL_SHIFTS, _REFINEMENT_STEPS, self._band)

    def start_direction(self) -> None:
        """Start a direction towards products r π = 0."""
        self._product_steps = -self.slack * self.multipliers
        self.d_q = np.zeros_like(self.q)
        self.d_largest_loss = 0.0

    def correct_direction(self, target: Target) -> None:
        """Change the products r π at which the direction aims.

        Args:
            target: the new products.
        """
        self._saved = self._product_steps, self.d_q, self.d_largest_loss
        self._product_steps = self._product_steps + target.product_corrections(
            self.slack, self.d_slack, self.multipliers, -self.d_q[self.inequalities]
        )

    def undo_correction(self) -> None:
        """Take the last correction back."""
        self._product_steps, self.d_q, self.d_largest_loss = self._saved

    @property
    def d_slack(self) -> Vector:
        """Return the direction of the slacks, shape (inequalities,)."""
        return (self._product_steps + self.slack * self.d_q[self.inequalities]) / self.multipliers

    def refine_direction(self, lack: Vector) -> Vector:
        """Add multipliers that remove the residuals that the direction leaves.

        Args:
            lack: amounts by which the sums of the direction dx miss the residuals of the sums,
                shape (K,).

        Returns:
            The added multipliers, shape (K,).
        """
        lack = lack.copy()
        lack[self.inequalities] += self.d_largest_loss * self.is_loss - self.d_slack
        weight_error = self.loss_weights.sum() - 1 - self._loss_indicator @ self.d_q
        added_q, added_loss = self._solve_bordered(lack, weight_error)
        self.d_q = self.d_q + added_q
        self.d_largest_loss = self.d_largest_loss + added_loss
        return added_q

    def _solve_bordered(
        self,
        right: Vector,
        total: float,
    ) -> tuple[Vector, float]:
        """Return (q, ω) with S q - [0, 1, 0] ω = right and Σ q of losses = total."""
        a = self.factors.solve(right)
        if not self.has_losses:
            return a, 0.0
        b = self.factors.solve(self._loss_indicator)
        omega = (total - self._loss_indicator @ a) / (self._loss_indicator @ b)
        return a + omega * b, float(omega)

    def max_steps(self) -> tuple[float, float]:
        """Return the longest steps that keep r >= 0 and π >= 0."""
        primal = max_step(self.slack, self.d_slack)
        dual = max_step(self.multipliers, -self.d_q[self.inequalities])
        return primal, dual

    def complementarity_after(
        self,
        primal: float,
        dual: float,
    ) -> float:
        """Compute r · π after steps.

        Args:
            primal: step length of the slacks.
            dual: step length of the multipliers.
        """
        slack = self.slack + primal * self.d_slack
        multipliers = self.multipliers - dual * self.d_q[self.inequalities]
        return float(slack @ multipliers)

    def take_step(
        self,
        primal: float,
        dual: float,
    ) -> None:
        """Move along the direction.

        Args:
            primal: step length of the slacks and of ω.
            dual: step length of the multipliers.
        """
        self.slack = self.slack + primal * self.d_slack
        self.q = self.q + dual * self.d_q
        self.largest_loss += primal * self.d_largest_loss
