"""Parts of the interior point of `workbench.models.channel.block_interior`: what is solved, its sums, and the columns
of the channel."""

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
from workbench.models.channel.block_sums import Sums, Target, max_step
from workbench.solvers.arrays import Flags, Positions, Vector


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """What is solved: losses (k, m), times the prior (k,) unless that is None, for the worst input.

    extra: (R, k m) linear rows of one's own, label by label, whose sums are at most `limit` (R,), or that where
    `equal`; None for none.

    first, second, ratios: (rows,) rows v[first] <= ratio v[second]; None: all pairs under one ratio, ratios (1,).
    delta: of every row its slacks' sum, (rows,), or one for all; stated: (k, m) masses that may be positive where
    delta > 0, None for all.
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


class State(NamedTuple):
    """Where the columns are: x, w = G x, and its multipliers z."""

    x: Vector
    w: Vector
    z: Vector


class Direction(NamedTuple):
    """Steps of x, w and z, and what they leave of the multipliers' equations."""

    x: Vector
    w: Vector
    z: Vector
    left: Vector


@dataclass(frozen=True, eq=False)
class Setup:
    """What columns and sums are made of. costs: (k, m), scaled, of labels as they were; ratios of `blocks`."""

    blocks: BlockProblem
    costs: Vector
    scale: float = 1.0

    @property
    def worst(self) -> bool:
        """Whether the largest loss counts, and is summed."""
        return self.blocks.prior is None

    @cached_property
    def order(self) -> BandedOrder | None:
        """Of a graph without slacks."""
        blocks = self.blocks
        if blocks.first is None or blocks.second is None or np.any(blocks.delta):
            return None
        return BandedOrder(self.costs.shape[0], blocks.first, blocks.second, blocks.ratios)

    @cached_property
    def extra(self) -> sp.csr_array | None:
        """What is summed beside masses, label by label: losses first, where the worst input counts."""
        own = self.blocks.extra_rows
        if not self.worst:
            return own
        (k, m), cells = self.costs.shape, np.arange(self.costs.size)
        rows = [sp.csr_array((self.costs.ravel(), (cells // m, cells)), shape=(k, k * m))]
        return sp.csr_array(sp.vstack(rows if own is None else [*rows, own]))

    @cached_property
    def pairs(self) -> SumLayout | None:
        """Of slacks."""
        blocks = self.blocks
        if blocks.first is None or blocks.second is None or not np.any(blocks.delta):
            return None
        k, m = self.costs.shape
        at = (
            np.empty(0, dtype=int)
            if self.extra is None
            else self.extra.indices[self.extra.indptr[:-1]] // m
        )
        return SumLayout(k, blocks.first, blocks.second, blocks.ratios, at)

    def sums(self, at: Vector) -> Sums:
        """What is summed. at: the sums at the start."""
        blocks, losses, pair, band = self.blocks, self.losses, np.empty(0, dtype=int), None
        if self.pairs is not None:
            pair, band = (
                self.pairs.pair_sums,
                None if losses.size else self.pairs.bandwidth(self.stated),
            )
        limit = np.ones(at.size)
        limit[losses], limit[self.own], limit[pair] = 0.0, blocks.extra_limits, blocks.delta
        most = np.concatenate([losses, self.own[~blocks.is_equation], pair])
        return Sums(limit, most, np.arange(most.size) < losses.size, at, self.scale, band)

    @property
    def losses(self) -> Positions:
        """The positions of losses among the sums."""
        k = self.costs.shape[0]
        return self._places[: k * self.worst]

    @property
    def own(self) -> Positions:
        """The positions of rows of one's own."""
        return self._places[self.losses.size :]

    @property
    def _places(self) -> Positions:
        if self.pairs is not None:
            return self.pairs.extra_sums
        k, more = self.costs.shape[0], 0 if self.extra is None else self.extra.shape[0]
        return np.arange(k, k + more)

    @property
    def stated(self) -> Flags:
        """Masses that may be positive."""
        return (
            np.ones(self.costs.shape, dtype=bool)
            if self.blocks.is_stated is None
            else self.blocks.is_stated
        )

    def columns(self) -> Columns:
        """Make the columns of all outputs, at their start."""
        cells, (k, m) = np.arange(self.costs.size).reshape(self.costs.shape), self.costs.shape
        share = np.ones((k, 1)) / m
        if self.order is not None:
            cells = cells[self.order.label_order]
        extra = None if self.extra is None else sp.csr_array(self.extra[:, cells.ravel()])
        if self.pairs is not None:
            share = 1 / self.stated.sum(axis=1, keepdims=True)
            factors: BlockFactors = SlackFactors(self.pairs, self.stated, extra)
        else:
            factors = (
                AllPairsFactors(k, float(self.blocks.ratios[0]))
                if self.order is None
                else GraphFactors(self.order)
            )
            factors.extra_sums = extra
        costs = np.zeros(cells.shape) if self.worst else self.costs.ravel()[cells]
        return Columns(factors, costs, share, self.scale)


class Columns:
    """The columns of a channel, one for each output: their point, and what of it is summed over outputs."""

    def __init__(self, factors: BlockFactors, costs: Vector, share: Vector, scale: float) -> None:
        """costs: (k, outputs), in the order of the factors; share: (k, 1), masses at the start; scale: of multipliers
        there."""
        self._f = factors
        self._outputs = costs.shape[1]
        self.x = factors.interior_start(share, self._outputs)
        self._costs = factors.place_costs(costs)
        self.w = factors.apply_rows(self.x)
        self.z = scale / self.w

    def state(self) -> State:
        """Return where the columns are. Its arrays are never changed."""
        return State(self.x, self.w, self.z)

    def start(self) -> tuple[Vector, float, int]:
        """(sums, what multipliers 1/w pull at labels, how many there are)."""
        pulled = self._f.apply_adjoint(1 / self.w)
        return (
            self._f.sum_outputs(self.x),
            float(np.abs(self._f.label_masses(pulled)).sum()),
            self.w.size,
        )

    def masses(self, x: Vector) -> Vector:
        """M of a point, (k, outputs)."""
        return self._f.label_masses(x)

    def multipliers(self, z: Vector) -> Vector:
        """Of the privacy rows, (rows, outputs)."""
        return self._f.row_multipliers(z)

    def measured(self, q: Vector) -> tuple[Vector, float, float, Vector]:
        """(sums, cost, w · z, what the sums prove)."""
        cost = float((self._costs * self.x).sum())
        least = self._f.min_reduced_costs(self._costs, self.z, q)
        return self._f.sum_outputs(self.x), cost, float((self.w * self.z).sum()), least

    def system(self) -> Vector:
        """Factor the blocks; return their part of the Schur complement. (K, K)"""
        self._scalings = self.z / self.w
        self._f.factorize(self.x, self.w, self.z)
        return self._f.schur_complement()

    def begin(self, q: Vector) -> Vector:
        """Start a direction, towards w z = 0; Σ W' H⁻¹ h."""
        slack = self._costs - self._f.spread_multipliers(q, self._outputs)
        self._residual = slack - self._f.apply_adjoint(self.z)
        self._d = Direction(np.zeros_like(self.x), np.zeros_like(self.w), -self.z, -slack)
        return self.again()

    def correct(self, target: Target) -> Vector:
        """Change what the direction leads to; Σ W' H⁻¹ h of the change."""
        self._kept = x, w, z, left = self._d
        more = target.more(self.w, w, self.z, z) / self.w
        self._d = Direction(x, w, z + more, left + self._f.apply_adjoint(more))
        return self.again()

    def undo(self) -> None:
        """Take the last correction back."""
        self._d = self._kept

    def end(self, more: Vector, total: Vector) -> tuple[Vector, float]:
        """Take a step with `more` multipliers, `total` of them in this direction: (sums of dx, the largest residual of
        the multipliers)."""
        x, w, z, left = self._d
        step = self._f.solve(
            left + self._f.spread_multipliers(more, self._outputs)
        )  # at once: either alone is far larger
        move = self._f.apply_rows(step)
        z = z - self._scalings * move
        left = (
            self._f.spread_multipliers(total, self._outputs)
            + self._f.apply_adjoint(z)
            - self._residual
        )
        self._d = Direction(x + step, w + move, z, left)
        return self._f.sum_outputs(self._d.x), float(np.abs(left).max())

    def again(self) -> Vector:
        """Start a refinement of the direction."""
        return self._f.sum_outputs(self._f.solve(self._d.left))

    def longest(self) -> tuple[float, float]:
        """The longest steps that keep w and z >= 0."""
        return max_step(self.w, self._d.w), max_step(self.z, self._d.z)

    def ahead(self, primal: float, dual: float) -> float:
        """w · z after steps."""
        return float(((self.w + primal * self._d.w) * (self.z + dual * self._d.z)).sum())

    def move(self, primal: float, dual: float) -> State:
        """Take the direction; where it leads."""
        self.x = self.x + primal * self._d.x
        self.w, self.z = self.w + primal * self._d.w, self.z + dual * self._d.z
        return self.state()
