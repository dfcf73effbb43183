"""Solve the equations that couple the outputs in the interior-point method for channels.

The method is `workbench.models.channel.block_interior`. The coupling equations are sums over
outputs: of the masses of each label, of the losses if the loss of the worst label is minimised, of
the hockey-stick slacks if δ > 0, and of the user-defined rows.

Notation. v_o, ℓ_o and s_o are the masses, the losses and the hockey-stick slacks at output o, A_o
and b the coefficients and the limits of the user-defined rows. r are the slacks of the sums that
have an upper limit, q the multipliers of all sums, π = -q those of the sums with a limit, ω the
largest loss, and S the Schur complement (`workbench.models.channel.block_factors`), shape (K, K)
for K sums. dq and dω are the changes of q and ω in one step.

    Σ_o v_o = 1,    Σ_o ℓ_o v_o + r = ω (worst case),    Σ_o s_o + r = δ (δ > 0),
    Σ_o A_o v_o + r = b (user-defined),    r >= 0, or r = 0 where user-defined rows are equations

    (S + diag(r/π at sums with a limit, else 0)) dq - e dω = residuals of the sums,
    Σ dq of losses = Σ π of losses - 1,    e = 1 at the sums of losses, else 0

The last line and ω exist only if the loss of the worst label is minimised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.models.channel.scaled_cholesky import ScaledCholesky
from workbench.solvers.arrays import Flags, Positions, Vector

# Shifts of the scaled Schur complement that are tried if it is not positive definite.
_DIAGONAL_SHIFTS = (0.0, *(10.0**power for power in range(-16, -5)))
_REFINEMENT_STEPS = 3  # A solution of the Schur complement is refined this many times.
# At the start a sum with a limit of at most 0 has at least this slack, to be inside the domain.
_MIN_START_SLACK = 0.01
_START_LOSS_RATIO = 1.5  # ω starts at this multiple of the largest loss.
# At the start a slack is at least this share of the limit of its sum.
_START_SLACK_SHARE = 0.5
# A matrix is factored as a band matrix if it has more than this many times its bandwidth in rows.
_MIN_BAND_RATIO = 4


def max_step(values: Vector, direction: Vector) -> float:
    """Return the longest step at which no value is below 0, infinity if none falls.

    Args:
        values: positive values, any shape.
        direction: changes of the values in a step of length 1, the same shape.
    """
    smallest_ratio = float((direction / values).min(initial=0.0))
    return -1 / smallest_ratio if smallest_ratio < 0 else np.inf


class Target(NamedTuple):
    """The rule that sets the product w z at which a corrector aims (Mehrotra 1992; Gondzio 1996).

    Take the product after the two steps below and clip it to [low, high]. A product is lowered by
    at most `high`. With low = 1 and high = 10, a product of 0.2 aims at 1, one of 5 stays, and one
    of 30 aims at 20.

    Attributes:
        primal: step length of the values w.
        dual: step length of the multipliers z.
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

    It holds the current point (q, r, ω) and the direction (d_q, d_slack, d_largest_loss). Each step
    calls the methods in the order of `block_parts.BlockColumns`: `factorize`, `start_direction`,
    `refine_direction` repeatedly, correctors, `take_step`.

    Args:
        limit: limits of the sums: 1 for masses, δ for slacks, 0 for losses (which are at most ω),
            b for user-defined rows; shape (K,).
        inequalities: positions of the sums that are at most their limit, shape (inequalities,).
        is_loss: whether each inequality is a sum of losses, limited by ω, shape (inequalities,).
        start_sums: values of the sums at the starting point, shape (K,).
        start_product: product of slack and multiplier at the start, for sums other than losses.
        band: bandwidth of the Schur complement, None for a full matrix.

    Attributes:
        limit: limits of the sums, shape (K,).
        inequalities: positions of the sums that are at most their limit, shape (inequalities,).
        is_loss: whether each inequality is a sum of losses, shape (inequalities,).
        has_losses: whether the loss of the worst label is minimised.
        equations: positions of the sums that equal their limit.
        q: multipliers of the sums, shape (K,); q = -π for inequalities.
        largest_loss: ω; 0 if the loss of the worst label is not minimised.
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
        start_product: float,
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
        # ω starts above all losses, so that every slack is positive.
        self.largest_loss = 0.0
        if self.has_losses:
            self.largest_loss = _START_LOSS_RATIO * float(sums[is_loss].max())
        upper = limit[inequalities] + self.largest_loss * is_loss
        share = _START_SLACK_SHARE * upper
        min_slack = np.where(upper > 0, share, _MIN_START_SLACK - share)
        self.slack = np.maximum(upper - sums, min_slack)
        loss_weight = -1 / max(1, int(is_loss.sum()))
        self.q[inequalities] = np.where(is_loss, loss_weight, -start_product / self.slack)
        self.start_direction()

    @property
    def multipliers(self) -> Vector:
        """Return π of all inequalities, shape (inequalities,)."""
        return -self.q[self.inequalities]

    @property
    def loss_weights(self) -> Vector:
        """Return π of the sums of losses, shape (k,) or (0,). In the optimum they sum to 1."""
        return self.multipliers[self.is_loss]

    def residuals(self, sums: Vector) -> Vector:
        """Compute by how much the sums of a point, with the slacks, fall short of the limits.

        Args:
            sums: values of the sums at the point, shape (K,).

        Returns:
            The residuals: limit - sum at equations, limit (or ω) - sum - slack at inequalities;
            shape (K,).
        """
        residuals = self.limit - sums
        residuals[self.inequalities] += self.largest_loss * self.is_loss - self.slack
        return residuals

    def max_violation(self, sums: Vector) -> float:
        """Compute the largest violation of an equation or a limit other than ω.

        Args:
            sums: values of the sums at a point, shape (K,).
        """
        limited = self.inequalities[~self.is_loss]
        excess = float((sums - self.limit)[limited].max(initial=0.0))
        equation_error = float(np.abs(self.limit - sums)[self.equations].max())
        return max(equation_error, excess)

    def complementarity(self) -> float:
        """Compute r · π, which falls to 0 on the way to the optimum."""
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
        self._product_changes = -self.slack * self.multipliers
        self.d_q = np.zeros_like(self.q)
        self.d_largest_loss = 0.0

    def correct_direction(self, target: Target) -> None:
        """Change the products r π at which the direction aims.

        Args:
            target: the new products.
        """
        self._uncorrected = self._product_changes, self.d_q, self.d_largest_loss
        self._product_changes = self._product_changes + target.product_corrections(
            self.slack, self.d_slack, self.multipliers, -self.d_q[self.inequalities]
        )

    def undo_correction(self) -> None:
        """Restore the direction before the last correction."""
        self._product_changes, self.d_q, self.d_largest_loss = self._uncorrected

    @property
    def d_slack(self) -> Vector:
        """Return the direction of the slacks, shape (inequalities,)."""
        slack_changes = self.slack * self.d_q[self.inequalities]
        return (self._product_changes + slack_changes) / self.multipliers

    def refine_direction(self, lack: Vector) -> Vector:
        """Change dq and dω so that the sums of the direction equal the residuals of the point.

        Args:
            lack: residuals of the point minus the sums of the direction dx, shape (K,).

        Returns:
            The change of dq, shape (K,).
        """
        right_side = lack.copy()
        right_side[self.inequalities] += self.d_largest_loss * self.is_loss - self.d_slack
        weight_error = self.loss_weights.sum() - 1 - self._loss_indicator @ self.d_q
        added_q, added_loss = self._solve_bordered(right_side, weight_error)
        self.d_q = self.d_q + added_q
        self.d_largest_loss = self.d_largest_loss + added_loss
        return added_q

    def _solve_bordered(
        self,
        right: Vector,
        total: float,
    ) -> tuple[Vector, float]:
        """Return (q, ω) with S q - e ω = right and e · q = total.

        S is the factored matrix. e is 1 at the sums of losses. Without losses, ω = 0.
        """
        q_without_loss = self.factors.solve(right)
        if not self.has_losses:
            return q_without_loss, 0.0
        q_per_loss = self.factors.solve(self._loss_indicator)
        missing_total = total - self._loss_indicator @ q_without_loss
        omega = missing_total / (self._loss_indicator @ q_per_loss)
        return q_without_loss + omega * q_per_loss, float(omega)

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
        """Compute r · π after steps along the direction, without taking them.

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
