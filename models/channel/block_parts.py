"""Store the problem, the current point and the current step of the interior-point channel solver.

The solver is `workbench.models.channel.block_interior`. `BlockProblem` is its input. `BlockSetup`
decides which sums over outputs exist and at which positions they stand. `BlockColumns` has the
current point and the current direction.

Notation, as in `block_interior`. The channel has k labels (its rows) and m outputs (its columns).
The column of output o, with the masses v_o of the k labels, is one block of the program; x holds
the variables of all blocks. G x >= 0 are the privacy rows. w = G x > 0 are their slacks and z > 0
their multipliers. The products w z fall to 0 on the way to the optimum.

q are the multipliers of the K sums Σ_o W_o' x_o over outputs (W' is the transpose of W). The sums
are those of the masses of each label, the losses (worst case only), the user-defined rows, and the
slacks s of v[first] <= ratio v[second] + s (δ > 0 only). H_o = G' diag(z/w) G is the matrix of
block o, and h_o the right-hand side of its equation H_o dx_o = W_o dq + h_o. A residual is the
amount by which a point or a direction misses an equation.

Another kind of sum needs an entry in `BlockSetup.extra_sums`, its positions (as `loss_sums`) and
its limit in `BlockSetup.build_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from workbench.models.channel.block_factors import (
    AllPairsFactors,
    BandedOrder,
    BlockFactors,
    GraphFactors,
)
from workbench.models.channel.block_slack import SlackFactors, SumLayout
from workbench.models.channel.block_sums import OutputSums, Target, max_step
from workbench.solvers.arrays import Flags, Positions, Vector


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """A channel program whose blocks are the outputs, for k labels and m outputs.

    Attributes:
        losses: loss of every output for every label, shape (k, m).
        prior: weights of the labels, shape (k,). None for the worst label.
        first: first labels of the rows v[first] <= ratio v[second], shape (rows,). None for all
            pairs under one ratio.
        second: second labels of the rows, shape (rows,), or None.
        ratios: ratios of the rows, shape (rows,), or (1,) for all pairs.
        delta: limit of the sum of each row's slacks, shape (rows,), or one number for all rows.
        is_stated: whether the program has a variable for each mass, shape (k, m). The other masses
            are 0. Only used if delta > 0. None for all.
        extra_rows: user-defined linear rows in M, with one column for each label and output, label
            by label; shape (R, k m). No row is empty. None for none.
        extra_limits: limits of the user-defined rows, shape (R,).
        is_equation: whether each user-defined row is an equation, shape (R,). The others are at
            most their limit.
    """

    losses: Vector
    prior: Vector | None
    first: Positions | None
    second: Positions | None
    ratios: Vector
    delta: Vector | float = 0.0
    is_stated: Flags | None = None
    extra_rows: sp.csr_array | None = None
    extra_limits: Vector = field(default_factory=lambda: np.zeros(0))
    is_equation: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))


class BlockState(NamedTuple):
    """A point of the columns. Its arrays have one column for each output, or are flat if δ > 0.

    Attributes:
        x: variables of the blocks.
        w: slacks w = G x of the privacy rows.
        z: multipliers of the privacy rows, in the shape of w.
    """

    x: Vector
    w: Vector
    z: Vector


class BlockDirection(NamedTuple):
    """A direction of the columns: how x, w and z change in a step of length 1.

    Attributes:
        x: change of x.
        w: change of w.
        z: change of z.
        residual: remaining violation of the equations of the multipliers, in the shape of x.
    """

    x: Vector
    w: Vector
    z: Vector
    residual: Vector


@dataclass(frozen=True, eq=False)
class BlockSetup:
    """The problem and the costs of its masses, from which the columns and the sums are built.

    Attributes:
        problem: the channel program.
        costs: costs of the masses, shape (k, m), with the labels in the order of `problem`. They
            are shifted and scaled so that the best constant output costs 1 (`block_interior`).
        start_product: product w z of every privacy row at the start.
    """

    problem: BlockProblem
    costs: Vector
    start_product: float = 1.0

    @property
    def has_worst_case(self) -> bool:
        """Check whether the loss of the worst label is minimised, so that losses are summed."""
        return self.problem.prior is None

    @cached_property
    def order(self) -> BandedOrder | None:
        """Return the labels in an order that makes each H_o a band matrix.

        It is None if all pairs of labels are neighbours, or if δ > 0.
        """
        problem = self.problem
        if problem.first is None or problem.second is None or np.any(problem.delta):
            return None
        return BandedOrder(self.costs.shape[0], problem.first, problem.second, problem.ratios)

    @cached_property
    def extra_sums(self) -> sp.csr_array | None:
        """Return the coefficients of the sums of losses and of the user-defined rows.

        The losses of the k labels come first (worst case only). The matrix has one row for each sum
        and one column for each label and output, label by label. It is None if there are no such
        sums.
        """
        user_rows = self.problem.extra_rows
        if not self.has_worst_case:
            return user_rows
        k, m = self.costs.shape
        cells = np.arange(self.costs.size)
        loss_rows = sp.csr_array((self.costs.ravel(), (cells // m, cells)), shape=(k, k * m))
        if user_rows is None:
            return sp.csr_array(sp.vstack([loss_rows]))
        return sp.csr_array(sp.vstack([loss_rows, user_rows]))

    @cached_property
    def layout(self) -> SumLayout | None:
        """Return the order of the sums if pairs have slacks (δ > 0), else None."""
        problem = self.problem
        if problem.first is None or problem.second is None or not np.any(problem.delta):
            return None
        k, m = self.costs.shape
        smallest_labels = np.empty(0, dtype=int)  # The smallest label in each extra sum.
        if self.extra_sums is not None:
            labels = self.extra_sums.indices // m
            # No row is empty. The callers solve user-defined rows without masses otherwise.
            smallest_labels = np.minimum.reduceat(labels, self.extra_sums.indptr[:-1])
        return SumLayout(k, problem.first, problem.second, problem.ratios, extra=smallest_labels)

    def build_sums(self, start_sums: Vector) -> OutputSums:
        """Build the sums over outputs, with their limits and their multipliers at the start.

        Without a layout the Schur complement is full.

        Args:
            start_sums: values of the sums at the starting point, shape (K,).
        """
        problem = self.problem
        loss_sums = self.loss_sums
        slack_sums = np.empty(0, dtype=int)
        band = None
        if self.layout is not None:
            slack_sums = self.layout.pair_sums
            # With a prior the layout makes the Schur complement a band matrix. A sum of losses for
            # each label would fill it, since every output enters all of them.
            if not loss_sums.size:
                band = self.layout.bandwidth(self.is_stated)
        limit = np.ones(start_sums.size)
        limit[loss_sums] = 0.0
        limit[self.user_sums] = problem.extra_limits
        limit[slack_sums] = problem.delta
        limited_user_sums = self.user_sums[~problem.is_equation]
        inequalities = np.concatenate([loss_sums, limited_user_sums, slack_sums])
        is_loss = np.arange(inequalities.size) < loss_sums.size
        return OutputSums(limit, inequalities, is_loss, start_sums, self.start_product, band)

    @property
    def loss_sums(self) -> Positions:
        """Return the positions of the sums of losses among the K sums; none with a prior."""
        loss_count = self.costs.shape[0] if self.has_worst_case else 0
        return self._extra_positions[:loss_count]

    @property
    def user_sums(self) -> Positions:
        """Return the positions of the sums of user-defined rows among the K sums."""
        return self._extra_positions[self.loss_sums.size :]

    @property
    def _extra_positions(self) -> Positions:
        """Return the positions of the sums of `extra_sums` among the K sums."""
        if self.layout is not None:
            return self.layout.extra_sums
        k = self.costs.shape[0]
        count = 0 if self.extra_sums is None else self.extra_sums.shape[0]
        return np.arange(k, k + count)

    @property
    def is_stated(self) -> Flags:
        """Return whether the program has a variable for each mass, shape (k, m)."""
        if self.problem.is_stated is None:
            return np.ones(self.costs.shape, dtype=bool)
        return self.problem.is_stated

    def build_columns(self) -> BlockColumns:
        """Build the columns of all outputs at the starting point."""
        k, m = self.costs.shape
        cells = np.arange(self.costs.size).reshape(self.costs.shape)
        share = np.ones((k, 1)) / m
        if self.order is not None:
            cells = cells[self.order.label_order]
        extra_sums = None
        if self.extra_sums is not None:
            extra_sums = sp.csr_array(self.extra_sums[:, cells.ravel()])
        if self.layout is not None:
            share = 1 / self.is_stated.sum(axis=1, keepdims=True)
            factors: BlockFactors = SlackFactors(self.layout, self.is_stated, extra_sums)
        elif self.order is None:
            factors = AllPairsFactors(k, float(self.problem.ratios[0]))
            factors.extra_sums = extra_sums
        else:
            factors = GraphFactors(self.order)
            factors.extra_sums = extra_sums
        costs = np.zeros(cells.shape) if self.has_worst_case else self.costs.ravel()[cells]
        return BlockColumns(factors, costs, share, self.start_product)


class BlockColumns:
    """The columns of a channel, one for each output, with their point and direction.

    Each step calls the methods in this order:

    1. `measure`, then `factorize` at the point,
    2. `start_direction`, then `refine_direction` with the multipliers of the sums, repeatedly,
    3. any number of times `correct_direction` and `refine_direction`; `undo_correction` restores
       the direction before the last correction,
    4. `take_step`.

    `max_steps` and `complementarity_after` examine the current direction.

    Args:
        factors: the factors of the blocks.
        costs: costs of the masses in the order of the factors, shape (k, outputs).
        share: masses at the start, shape (k, 1).
        start_product: product w z of every privacy row at the start.

    Attributes:
        x: variables of the blocks.
        w: slacks w = G x of the privacy rows.
        z: multipliers of the privacy rows, in the shape of w.
    """

    def __init__(
        self,
        factors: BlockFactors,
        costs: Vector,
        share: Vector,
        start_product: float,
    ) -> None:
        self._factors = factors
        self._outputs = costs.shape[1]
        self.x = factors.interior_start(share, self._outputs)
        self._costs = factors.place_costs(costs)
        self.w = factors.apply_rows(self.x)
        self.z = start_product / self.w

    def state(self) -> BlockState:
        """Return the current point. Later steps make new arrays and leave these unchanged."""
        return BlockState(self.x, self.w, self.z)

    def start(self) -> tuple[Vector, float, int]:
        """Return what the solver needs to choose the first multipliers.

        Returns:
            The sums over outputs, shape (K,); the sum of |G' (1/w)| over all masses, by which the
            solver chooses the size of the multipliers; and the number of rows of G in all blocks.
        """
        effects = self._factors.apply_adjoint(1 / self.w)
        total_effect = float(np.abs(self._factors.label_masses(effects)).sum())
        return self._factors.sum_outputs(self.x), total_effect, self.w.size

    def label_masses(self, x: Vector) -> Vector:
        """Return the channel M of a point, shape (k, outputs).

        Args:
            x: variables of the blocks.
        """
        return self._factors.label_masses(x)

    def row_multipliers(self, z: Vector) -> Vector:
        """Return the multipliers of the privacy rows, shape (rows, outputs).

        Args:
            z: multipliers of all rows.
        """
        return self._factors.row_multipliers(z)

    def measure(self, q: Vector) -> tuple[Vector, float, float, Vector]:
        """Compute the sums, the cost, and the optimality measures of the current point.

        Args:
            q: multipliers of the sums, shape (K,).

        Returns:
            The sums over outputs, shape (K,); the cost Σ costs x; the total w · z of the products;
            and multipliers of the sums with which z proves a lower bound, shape (K,).
        """
        cost = float((self._costs * self.x).sum())
        proof_multipliers = self._factors.min_reduced_costs(self._costs, self.z, q)
        products = float((self.w * self.z).sum())
        return self._factors.sum_outputs(self.x), cost, products, proof_multipliers

    def factorize(self) -> Vector:
        """Factor the matrices H_o at the point.

        Returns:
            Their part Σ_o W_o' H_o⁻¹ W_o of the Schur complement, shape (K, K).
        """
        self._scalings = self.z / self.w
        self._factors.factorize(self.x, self.w, self.z)
        return self._factors.schur_complement()

    def start_direction(self, q: Vector) -> Vector:
        """Start a direction towards w z = 0.

        Args:
            q: multipliers of the sums, shape (K,).

        Returns:
            The sums Σ_o W_o' H_o⁻¹ h_o, shape (K,). They are part of the right-hand side of the
            equations that couple the outputs (the Schur complement).
        """
        reduced_costs = self._costs - self._factors.spread_multipliers(q, self._outputs)
        self._point_residual = reduced_costs - self._factors.apply_adjoint(self.z)
        no_x = np.zeros_like(self.x)
        no_w = np.zeros_like(self.w)
        # With dx = dw = 0, the change dz = -z aims at w z = 0. It leaves minus the reduced costs.
        self._direction = BlockDirection(no_x, no_w, -self.z, -reduced_costs)
        return self.solve_residual()

    def correct_direction(self, target: Target) -> Vector:
        """Change the products w z at which the direction aims.

        Args:
            target: the rule that sets the new products.

        Returns:
            The sums Σ_o W_o' H_o⁻¹ h_o, with the change of h_o in place of h_o, shape (K,).
        """
        self._uncorrected_direction = self._direction
        x, w, z, residual = self._direction
        corrections = target.product_corrections(self.w, w, self.z, z) / self.w
        residual = residual + self._factors.apply_adjoint(corrections)
        self._direction = BlockDirection(x, w, z + corrections, residual)
        return self.solve_residual()

    def undo_correction(self) -> None:
        """Restore the direction before the last correction."""
        self._direction = self._uncorrected_direction

    def refine_direction(
        self,
        added_q: Vector,
        d_q: Vector,
    ) -> tuple[Vector, float]:
        """Change dx, dw and dz after a change of dq, so that the residual falls.

        Args:
            added_q: the change of dq, shape (K,).
            d_q: dq after this change, shape (K,).

        Returns:
            The sums of dx over outputs, shape (K,), and the largest residual of the multipliers.
        """
        x, w, z, residual = self._direction
        # Both parts are solved at once, since either alone is far larger than their sum.
        right = residual + self._factors.spread_multipliers(added_q, self._outputs)
        step = self._factors.solve(right)
        row_step = self._factors.apply_rows(step)
        z = z - self._scalings * row_step
        sum_effects = self._factors.spread_multipliers(d_q, self._outputs)
        residual = sum_effects + self._factors.apply_adjoint(z) - self._point_residual
        self._direction = BlockDirection(x + step, w + row_step, z, residual)
        sums = self._factors.sum_outputs(self._direction.x)
        return sums, float(np.abs(residual).max())

    def solve_residual(self) -> Vector:
        """Compute the sums of H⁻¹ times the residual of the direction, shape (K,)."""
        return self._factors.sum_outputs(self._factors.solve(self._direction.residual))

    def max_steps(self) -> tuple[float, float]:
        """Return the longest steps that keep w >= 0 and z >= 0."""
        return max_step(self.w, self._direction.w), max_step(self.z, self._direction.z)

    def complementarity_after(
        self,
        primal: float,
        dual: float,
    ) -> float:
        """Compute w · z after steps along the direction, without taking them.

        Args:
            primal: step length of w.
            dual: step length of z.
        """
        w = self.w + primal * self._direction.w
        z = self.z + dual * self._direction.z
        return float((w * z).sum())

    def take_step(
        self,
        primal: float,
        dual: float,
    ) -> BlockState:
        """Move along the direction and return the new point.

        Args:
            primal: step length of x and w.
            dual: step length of z.
        """
        self.x = self.x + primal * self._direction.x
        self.w = self.w + primal * self._direction.w
        self.z = self.z + dual * self._direction.z
        return self.state()
