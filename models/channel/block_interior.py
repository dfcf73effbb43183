"""Find the private channel with the smallest loss by an interior-point method over output blocks.

`BlockInteriorPoint(problem).solve(gap)` solves the problem of `workbench.models.channel.program`,
faster if there are many labels. The columns of a channel meet only in the row sums, so the linear
system of each step splits into one block for each output.

Notation. v_o is column o of the channel (k labels), c_o its costs, w_o = G v_o the slacks of its
privacy rows with multipliers z_o, λ = e^ε, and 1 the vector of ones.

    min Σ_o c_o · v_o    s.t.  Σ_o v_o = 1,    w_o = G v_o >= 0 for every output o.

The privacy rows G are those of `workbench.models.channel.program` and the same for every output:
λ v_b - v_a >= 0 for neighbours a and b, or t <= v <= λ t with a variable t for each output if all
pairs are neighbours. With multipliers y of the sums and z_o of G, the Newton step towards w z = ν
splits into outputs:

    H_o = G' diag(z_o/w_o) G,    H_o dv_o = dy + h_o,    h_o = G'(ν/w_o) - c_o + y,
    (Σ_o H_o⁻¹) dy = 1 - Σ_o v_o - Σ_o H_o⁻¹ h_o,

where h_o is the right-hand side of output o and Σ_o H_o⁻¹ the k × k Schur complement. The step
lengths and the centring are those of Mehrotra 1992, with the correctors of Gondzio 1996. One
factorisation serves several correctors, as long as each lengthens the step.

If the loss of the worst label is minimised, the rows Σ_o ℓ_o v_o + r = ω with slacks r and
multipliers π are further sums, and c_o = π ∘ ℓ_o (the product entry by entry). In what follows
q = (y, -π) are the multipliers of all sums, and W_o = [1, ℓ_o] are their coefficients. User-defined
linear rows Σ_o A_o v_o <= b or = b are further sums as well. A row within one output is a sum over
that output alone.

The other files of the method, in `workbench.models.channel`:

* `block_factors` inverts the blocks without cancellation,
* `block_slack` adds the slacks of pairs if δ > 0,
* `block_parts` has the columns with their point and direction,
* `block_sums` has the sums over outputs with their multipliers. `self._master` below is this
  system, which couples the outputs.

This file only handles sums over outputs, which are K or K × K numbers. After every step the
multipliers satisfy G'z + W q = c up to a residual. The residual is refined here, since z/w
multiplies the rounding of dw.

Terms. The products are the numbers w z, and slack times multiplier of the sums. Their target ν is
the value at which a step aims; it falls to 0. The centring is this target divided by the mean
product. An affine direction has target 0. A corrector changes the targets of a direction. A
refinement removes the error that rounding left in a direction. The gap is objective minus bound.

| here             | meaning                                                                       |
|------------------|-------------------------------------------------------------------------------|
| x (n, m)         | v_o, for all pairs with t_o as its last row, flat with slacks for δ           |
| w, z (rows, m)   | G x and its multipliers                                                       |
| q (K,)           | multipliers of the sums over outputs: K = k, or 2k (worst case), user-defined |
|                  | rows, pairs (δ)                                                               |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.linalg import LinAlgError

from workbench.models.channel.block_parts import BlockProblem, BlockSetup
from workbench.models.channel.block_sums import Target
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline


@dataclass(frozen=True)
class BlockLimits:
    """The tuning numbers of the interior-point method.

    Attributes:
        max_steps: number of steps after which the method stops.
        boundary_share: share of the way to the boundary that a step takes if this way has a length
            of at least 1.
        short_boundary_share: the same share for a way of length near 0; linear in between.
        min_centring: smallest target of the products w z, as a share of their mean.
        max_centring: largest target of the products w z, as a share of their mean.
        max_correctors: largest number of correctors in one step.
        long_step: no corrector is added once both step lengths exceed this.
        min_step_share: a corrector is dropped if the shorter of the two step lengths falls below
            this share of its last value.
        lookahead_factor: a corrector looks at the products after a step of length
            lookahead_factor * step + lookahead_offset, at most 1.
        lookahead_offset: the offset in this length.
        low_product: smallest product that a corrector aims at, as a multiple of the target.
        high_product: largest product that a corrector aims at, as a multiple of the target.
        max_sum_error: a point whose sums are violated by at most this counts as feasible.
        min_refinements: refinements after which `usable_residual` is enough.
        good_residual: residual of multipliers, in units of the largest loss, that ends refinement.
        max_refinements: number of refinements after which refinement ends in any case.
        usable_residual: residual that ends refinement after `min_refinements`.
        max_residual_share: refinement goes on while the residual falls below this share of the last
            one.
        max_residual: directions with a larger residual are not used.
        min_step: the method stops when a step would be shorter.
        max_stale_steps: the method stops after more than this many steps without a better bound.
    """

    max_steps: int = 300
    boundary_share: float = 0.995
    short_boundary_share: float = 0.7
    min_centring: float = 1e-8
    max_centring: float = 0.1
    max_correctors: int = 10
    long_step: float = 0.95
    min_step_share: float = 0.5
    lookahead_factor: float = 1.08
    lookahead_offset: float = 0.2
    low_product: float = 0.1
    high_product: float = 10.0
    max_sum_error: float = 1e-8
    min_refinements: int = 5
    good_residual: float = 1e-15
    max_refinements: int = 15
    usable_residual: float = 1e-12
    max_residual_share: float = 0.5
    max_residual: float = 1e-7
    min_step: float = 1e-7
    max_stale_steps: int = 8


_LIMITS = BlockLimits()
_MIN_START_COST = 1e-3  # The start assumes costs of at least this size, so that w z is positive.


@dataclass(frozen=True, eq=False)
class BlockPoint:
    """The best point and the best multipliers of a solve.

    Attributes:
        masses: channel with masses >= 0, whose rows nearly sum to 1, shape (k, m).
        multipliers: multipliers of the privacy rows G, shape (rows, m).
        weights: weights of the labels if the loss of the worst label is minimised, shape (k,), else
            None.
        extra_multipliers: multipliers of the R user-defined rows, <= 0 except for equations,
            shape (R,).
        objective: loss of the channel, in floats.
        bound: lower bound, in floats.
        iterations: number of steps.
        seconds: runtime.
        stop_reason: why the method stopped: "optimal" if the gap is closed, "time limit",
            "iteration limit", "interrupted" (Ctrl-C), or "floats end here" if rounding errors
            allow no further progress.
    """

    masses: Vector
    multipliers: Vector
    weights: Vector | None
    extra_multipliers: Vector
    objective: float
    bound: float
    iterations: int
    seconds: float
    stop_reason: str


@dataclass
class _Best:
    """The best point and the best multipliers so far, in scaled losses.

    Attributes:
        objective: loss of the best point.
        merit: that loss plus the largest violation of a sum at the point.
        bound: the best lower bound.
        x: variables of the best point; None before a point nearly satisfies all sums.
        z: multipliers of the best bound; None before the first bound.
        total_weight: sum of the multipliers of the losses in the best bound; 1 with a prior. The
            bound is scaled by it, so that the weights sum to 1.
        weights: weights of the labels in the best bound, shape (k,); None with a prior.
        extra_multipliers: multipliers of the user-defined rows of the best bound.
        stale_steps: steps since the bound last rose.
    """

    objective: float = np.inf
    merit: float = np.inf
    bound: float = -np.inf
    x: Vector | None = None
    z: Vector | None = None
    total_weight: float = 1.0
    weights: Vector | None = None
    extra_multipliers: Vector = field(default_factory=lambda: np.zeros(0))
    stale_steps: int = 0


class BlockInteriorPoint:
    """The interior-point method on one channel program.

    The losses are shifted and scaled, loss = scaled loss * `_loss_unit` + `_loss_shift`, so that
    the best constant output has the scaled loss 1.

    Args:
        blocks: the channel program.
        report: called with (iteration, objective, bound) after every step; None for no calls.
    """

    def __init__(
        self,
        blocks: BlockProblem,
        report: Callable[[int, float, float], None] | None = None,
    ) -> None:
        self.blocks = blocks
        self._report = report
        k = blocks.losses.shape[0]
        if blocks.prior is None:
            costs = blocks.losses
            row_minima = np.full(k, costs.min())
            self._loss_shift = float(row_minima[0])
        else:
            costs = blocks.losses * blocks.prior[:, None]
            row_minima = costs.min(axis=1)
            self._loss_shift = float(row_minima.sum())
        costs = costs - row_minima[:, None]
        column_losses = costs.max(axis=0) if blocks.prior is None else costs.sum(axis=0)
        self._loss_unit = float(column_losses.min()) or float(costs.max()) or 1.0
        self._setup = BlockSetup(blocks, costs / self._loss_unit)
        self._sum_residuals = np.empty(0)  # A direction leaves these residuals of the sums.
        self._start()

    def _start(self) -> None:
        """Build the columns and sums at a start whose multipliers have about the right size.

        The product w z is chosen so that the effects G'z of the rows are about as large as the
        costs.
        """
        costs = self._setup.costs
        _, total_effect, _ = self._setup.build_columns().start()
        # The costs of the worst case are weighted by about 1/k.
        label_count = costs.shape[0] if self._setup.has_worst_case else 1
        start_product = max(float(costs.sum()) / label_count, _MIN_START_COST) / total_effect
        self._setup = replace(self._setup, start_product=start_product)
        self._columns = self._setup.build_columns()
        start_sums, _, row_count = self._columns.start()
        # The master system has the sums over all outputs with their multipliers.
        self._master = self._setup.build_sums(start_sums)
        self._product_count = row_count + self._master.slack.size
        self._state = self._columns.state()

    def solve(
        self,
        gap: float,
        deadline: Deadline | None = None,
        loss_floor: float = 0.0,
    ) -> BlockPoint:
        """Run until the gap is closed or no progress is possible, or until a limit or Ctrl-C.

        Args:
            gap: gap at which the method ends, relative to the larger of |loss - loss_floor| and
                |bound - loss_floor|.
            deadline: time limit; None for none.
            loss_floor: a loss that no channel falls below.

        Returns:
            The best point and the best multipliers.
        """
        deadline = deadline or Deadline()
        best = _Best(extra_multipliers=np.zeros(self._setup.user_sums.size))
        if self._setup.has_worst_case:
            k = self._setup.costs.shape[0]
            best.weights = np.full(k, 1 / k)
        stop_reason = "iteration limit"
        iteration = 0
        try:
            for iteration in range(_LIMITS.max_steps):
                self._update_best(best)
                objective, bound = self._unscaled_values(best)
                if self._report is not None:
                    self._report(iteration, objective, bound)
                size = max(abs(objective - loss_floor), abs(bound - loss_floor))
                if np.isfinite(objective) and objective - bound <= gap * size:
                    stop_reason = "optimal"
                    break
                if deadline.has_passed:
                    stop_reason = "time limit"
                    break
                if best.stale_steps > _LIMITS.max_stale_steps or not self._take_step():
                    stop_reason = "floats end here"
                    break
        except KeyboardInterrupt:
            stop_reason = "interrupted"
        objective, bound = self._unscaled_values(best)
        state = self._state
        masses = self._columns.label_masses(state.x if best.x is None else best.x)
        multipliers = self._columns.row_multipliers(state.z if best.z is None else best.z)
        return BlockPoint(
            masses=np.maximum(masses, 0.0),
            multipliers=multipliers / best.total_weight * self._loss_unit,
            weights=best.weights,
            extra_multipliers=best.extra_multipliers * self._loss_unit,
            objective=objective,
            bound=bound,
            iterations=iteration,
            seconds=deadline.elapsed_seconds,
            stop_reason=stop_reason,
        )

    def _unscaled_values(self, best: _Best) -> tuple[float, float]:
        """Return the best objective and bound in the losses of the program."""
        objective = best.objective * self._loss_unit + self._loss_shift
        return objective, best.bound * self._loss_unit + self._loss_shift

    def _update_best(self, best: _Best) -> None:
        """Compute objective and bound at the point and keep them if they are the best.

        The sums and the mean product of the point are stored for the next step.
        """
        master = self._master
        self._sums, cost, products, proof_multipliers = self._columns.measure(master.q)
        self._mean_product = (products + master.complementarity()) / self._product_count
        losses = self._sums[master.inequalities][master.is_loss]
        objective = float(losses.max()) if master.has_losses else cost
        bound = float(master.limit @ proof_multipliers)
        total_weight = float(master.loss_weights.sum()) if master.has_losses else 1.0
        best.stale_steps += 1
        violation = master.max_violation(self._sums)
        # The violation is repaired in the end, at a loss of about one unit for a unit of mass.
        merit = objective + violation
        if violation <= _LIMITS.max_sum_error and merit < best.merit:
            best.objective = objective
            best.merit = merit
            best.x = self._state.x
        if bound / total_weight > best.bound:
            best.bound = bound / total_weight
            best.z = self._state.z
            best.stale_steps = 0
            best.total_weight = total_weight
            best.weights = master.loss_weights / total_weight if master.has_losses else None
            best.extra_multipliers = master.q[self._setup.user_sums] / total_weight

    def _take_step(self) -> bool:
        """Take one step of Mehrotra's method, with Gondzio's correctors while they lengthen it.

        Returns whether a step was taken. None is taken if rounding makes the direction useless or
        the step too short.
        """
        master = self._master
        max_residual = _LIMITS.max_residual
        try:
            master.factorize(self._columns.factorize())
            # A larger diagonal shift makes the factors more stable, at the price of refinements.
            while not (
                self._solve_affine() <= max_residual and self._solve_centred() <= max_residual
            ):
                master.factors.increase_shift()
        except LinAlgError:
            return False
        self._add_correctors()
        self._refine(self._columns.solve_residual(), _LIMITS.good_residual)
        steps = self._max_steps()
        share_range = _LIMITS.boundary_share - _LIMITS.short_boundary_share
        share = _LIMITS.short_boundary_share + share_range * np.minimum(steps, 1.0)
        primal, dual = np.minimum(share * steps, 1.0).tolist()
        if not max(primal, dual) > _LIMITS.min_step:
            return False
        self._state = self._columns.take_step(primal, dual)
        master.take_step(primal, dual)
        return True

    def _add_correctors(self) -> None:
        """Add correctors to the direction while they lengthen the steps."""
        low = _LIMITS.low_product * self._target_product
        high = _LIMITS.high_product * self._target_product
        steps = np.minimum(self._max_steps(), 1.0)
        for _ in range(_LIMITS.max_correctors):
            if steps.min() > _LIMITS.long_step:
                break
            lookahead = _LIMITS.lookahead_factor * steps + _LIMITS.lookahead_offset
            primal, dual = np.minimum(lookahead, 1.0).tolist()
            saved_residuals = self._sum_residuals
            earlier_steps = steps
            residual = self._correct(Target(primal, dual, low, high))
            steps = np.minimum(self._max_steps(), 1.0)
            is_longer = (
                steps.sum() > earlier_steps.sum()
                and steps.min() > _LIMITS.min_step_share * earlier_steps.min()
            )
            if not (residual <= _LIMITS.max_residual and is_longer):
                self._columns.undo_correction()
                self._master.undo_correction()
                self._sum_residuals = saved_residuals
                break

    def _solve_affine(self) -> float:
        """Compute Newton's direction towards products of 0 and return its residual."""
        self._master.start_direction()
        self._sum_residuals = self._master.residuals(self._sums)
        return self._refine(self._columns.start_direction(self._master.q))

    def _solve_centred(self) -> float:
        """Compute Mehrotra's direction from the affine one and return its residual.

        The affine direction predicts how far the products can fall, which gives the target.
        """
        steps = np.minimum(self._max_steps(), 1.0)
        predicted_sum = self._columns.complementarity_after(*steps)
        predicted_sum = predicted_sum + self._master.complementarity_after(*steps)
        ratio = max(predicted_sum, 0.0) / self._product_count / self._mean_product
        centring = min(max(ratio**3, _LIMITS.min_centring), _LIMITS.max_centring)
        aim = self._mean_product * centring
        self._target_product = aim
        return self._correct(Target(primal=1.0, dual=1.0, low=aim, high=aim))

    def _correct(self, target: Target) -> float:
        """Change the target products of the direction and return its residual."""
        self._master.correct_direction(target)
        return self._refine(self._columns.correct_direction(target))

    def _refine(
        self,
        sums: Vector,
        good_residual: float = _LIMITS.usable_residual,
    ) -> float:
        """Refine the direction while its residual at least halves, and return the residual.

        The argument `sums` has the sums Σ_o W_o' H_o⁻¹ r_o of the residual r of the direction. It
        ends early at a residual of at most `good_residual`.
        """
        master = self._master
        last_residual = np.inf
        point_residuals = master.residuals(self._sums)
        for turn in range(_LIMITS.max_refinements + 1):
            added_q = master.refine_direction(self._sum_residuals - sums)
            dx_sums, multiplier_residual = self._columns.refine_direction(added_q, master.d_q)
            self._sum_residuals = point_residuals - dx_sums
            equation_residual = float(np.abs(self._sum_residuals[master.equations]).max())
            residual = max(multiplier_residual, equation_residual)
            has_min_turns = turn >= _LIMITS.min_refinements
            is_good = residual <= good_residual
            is_usable = has_min_turns and residual <= _LIMITS.usable_residual
            is_last = turn == _LIMITS.max_refinements
            has_fallen = residual < _LIMITS.max_residual_share * last_residual
            if is_good or is_usable or is_last or not has_fallen:
                break
            last_residual = residual
            sums = self._columns.solve_residual()
        return float(residual)

    def _max_steps(self) -> Vector:
        """Return the longest steps of the values (w, slacks) and of the multipliers, shape (2,)."""
        steps = [self._columns.max_steps(), self._master.max_steps()]
        return np.asarray(np.min(steps, axis=0))
