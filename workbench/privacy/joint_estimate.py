"""Estimate δ of a joint release in floating point, to direct a search for its noise.

An estimate proves nothing. A search uses it to find a parameter, which is then proven by
`workbench.privacy.joint_bound` or by an exact audit.

The privacy losses of one coordinate are placed on a grid of step h and convolved. An atom of loss L
between two points is cut into two with the same masses under both laws, as in
`workbench.privacy.loss_law`, so the estimate exceeds δ by O(h²). The losses of geometric noise
f(η) ∝ a^|η|, truncated or not, are multiples of ln 1/a. With this step nothing is cut, and the
estimate is δ up to the rounding of floats. All sums have positive terms only, so the relative error
is small even if δ is.

Estimates compare the maximal shift vectors alone: those with K rows on every side. If f is even and
never rises with |η|, the others have no larger δ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.exact.arrays import Integers, Vector
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.time_limit import check_time_limit
from workbench.questions.joint_query import JointQuery, ShiftVector

_GRID_POINTS = 160  # The largest privacy loss of one coordinate is this many steps.
_MAX_REFINEMENT = 4  # A step that divides the unit is at most this many times finer.
_MAX_SNAP_STEPS = 1e-7  # A loss within this of a point of the grid is placed on it.
_DROPPED_SHARE = 1e-13  # Tails with less than this share of δ are dropped after a convolution.


@dataclass(frozen=True)
class FloatLaw:
    """A law on all integers in floating point, with the form of an `IntegerLaw`.

    Attributes:
        first: The integer of the first weight.
        log_weights: Logarithms of the weights, -inf for 0. Shape (m,).
        period: The period of the tails.
        log_ratio: Logarithm of the ratio of the tails, -inf without tails.
    """

    first: int
    log_weights: Vector
    period: int = 1
    log_ratio: float = -math.inf

    @classmethod
    def from_law(cls, law: IntegerLaw, exponent: float = 1.0) -> FloatLaw:
        """Return the law ∝ f^exponent.

        Args:
            law: The law f.
            exponent: An exponent > 0.
        """
        log_total = math.log(max(law.weights))
        logs = [math.log(w) - log_total if w else -math.inf for w in law.weights]
        log_ratio = math.log(law.ratio) if law.ratio else -math.inf
        return cls(law.first, exponent * np.array(logs), law.period, exponent * log_ratio)

    def _log_weights_at(self, values: Integers) -> Vector:
        """Return ln f at integers, not normalised."""
        last = self.first + len(self.log_weights) - 1
        distance = np.maximum(np.maximum(values - last, self.first - values), 0)
        period_count = -(-distance // self.period)  # The quotient is rounded up.
        base = np.where(values > last, values - period_count * self.period, values)
        base = np.where(values < self.first, values + period_count * self.period, base)
        logs: Vector = self.log_weights[base - self.first]
        is_outside = period_count > 0
        logs[is_outside] += self.log_ratio * period_count[is_outside]
        return logs

    @cached_property
    def log_total(self) -> float:
        """Return the logarithm of the sum of all weights."""
        weights = np.exp(self.log_weights)
        ratio = math.exp(self.log_ratio)
        ends = float(weights[: self.period].sum() + weights[-self.period :].sum())
        return math.log(float(weights.sum()) + ratio / (1 - ratio) * ends)

    def compare_with_shift(self, shift: int) -> tuple[Vector, Vector]:
        """Return the log-masses of f and of f(· + shift) on the same outcomes.

        Outcomes of a tail that are equal modulo the period are merged. The masses of f are those of
        the merged outcomes. The log-ratios of both are right, too.

        Args:
            shift: The shift, an integer other than 0.
        """
        last = self.first + len(self.log_weights) - 1
        low = self.first - abs(shift)
        high = last + abs(shift)
        values = np.arange(low, high + 1)
        log_counts = np.zeros(len(values))
        if math.isfinite(self.log_ratio):
            right = np.arange(high + 1, high + 1 + self.period)
            left = np.arange(low - self.period, low)
            values = np.concatenate([values, right, left])
            # The masses of merged outcomes add up to 1 + ratio + ratio² + ... = 1 / (1 - ratio).
            repeats = np.full(2 * self.period, -math.log(-math.expm1(self.log_ratio)))
            log_counts = np.concatenate([log_counts, repeats])
        p = self._log_weights_at(values) + log_counts - self.log_total
        q = self._log_weights_at(values + shift) + log_counts - self.log_total
        return p, q


@dataclass(frozen=True)
class _Losses:
    """The law of a privacy loss on the grid: masses from a first index on, and the mass at ∞."""

    first: int
    masses: Vector
    infinite: float


class DeltaEstimator:
    """Estimates of δ of independent noise of one law on every coordinate.

    Args:
        law: The law f of one coordinate.
        shifts: The shifts of one coordinate that occur.
        delta: The size of δ up to which masses matter, > 0.
        step: Step h of the grid. None: a share of the largest privacy loss.
        unit: If step is None, this loss becomes a multiple of the step, if it is not too small.
    """

    def __init__(
        self,
        law: FloatLaw,
        shifts: Iterable[int],
        delta: float,
        step: float | None = None,
        unit: float = 0.0,
    ) -> None:
        self._delta = delta
        self._pairs = {shift: law.compare_with_shift(shift) for shift in shifts}
        if step is None:
            largest = 1e-300  # The step is positive even if all privacy losses are 0.
            for p, q in self._pairs.values():
                # Outcomes with a mass below e^-40 δ do not matter for the step.
                is_finite = np.isfinite(p) & np.isfinite(q) & (p > math.log(delta) - 40)
                differences = np.abs(p[is_finite] - q[is_finite])
                largest = max(largest, float(differences.max(initial=0.0)))
            step = largest / _GRID_POINTS
            if _MAX_REFINEMENT * unit >= step:
                step = unit / math.ceil(unit / step)
        self._step = step
        self._losses: dict[ShiftVector, _Losses] = {(): _Losses(0, np.ones(1), 0.0)}

    def delta_at(self, vector: ShiftVector, epsilon: float) -> float:
        """Estimate δ at ε for one shift vector.

        Args:
            vector: The shifts of the coordinates.
            epsilon: ε >= 0.
        """
        losses = self._convolve(vector)
        points = self._step * (losses.first + np.arange(len(losses.masses)))
        is_above = points > epsilon
        excess = losses.masses[is_above] * -np.expm1(epsilon - points[is_above])
        return losses.infinite + float(excess.sum())

    def _convolve(self, vector: ShiftVector) -> _Losses:
        """Return the losses of a vector. Vectors with the same beginning share its convolution."""
        if vector not in self._losses:
            check_time_limit()
            last = self._place(vector[-1])
            self._losses[vector] = self._multiply(self._convolve(vector[:-1]), last)
        return self._losses[vector]

    def _place(self, shift: int) -> _Losses:
        """Place the losses of one coordinate on the grid."""
        key = (shift,)
        if key not in self._losses:
            log_p, log_q = self._pairs[shift]
            p = np.exp(log_p)
            is_infinite = np.isneginf(log_q)
            is_finite = np.isfinite(log_p) & ~is_infinite
            losses = (log_p[is_finite] - log_q[is_finite]) / self._step
            masses = p[is_finite]
            nearest = np.round(losses)
            losses = np.where(np.abs(losses - nearest) < _MAX_SNAP_STEPS, nearest, losses)
            index = np.floor(losses)
            offset = losses - index
            h = self._step
            lower = masses * (np.exp(-offset * h) - math.exp(-h)) / -math.expm1(-h)
            first = int(index.min())
            position = index.astype(np.int64) - first
            grid: Vector = np.zeros(int(position.max()) + 2)
            grid += np.bincount(position, lower, minlength=len(grid))
            grid += np.bincount(position + 1, masses - lower, minlength=len(grid))
            self._losses[key] = _Losses(first, grid, float(p[is_infinite].sum()))
        return self._losses[key]

    def _multiply(self, left: _Losses, right: _Losses) -> _Losses:
        """Return the law of the sum of two losses, without light tails."""
        masses = np.convolve(left.masses, right.masses)
        infinite = left.infinite + right.infinite - left.infinite * right.infinite
        room = _DROPPED_SHARE * self._delta
        low_count = int(np.searchsorted(np.cumsum(masses), room))
        falling = np.cumsum(masses[::-1])
        high_count = min(int(np.searchsorted(falling, room)), len(masses) - low_count - 1)
        if high_count:
            infinite += float(falling[high_count - 1])
        masses = masses[low_count : len(masses) - high_count]
        return _Losses(left.first + right.first + low_count, masses, infinite)


def list_maximal_vectors(query: JointQuery) -> list[ShiftVector]:
    """List the shift vectors of a histogram with K rows on every side, as sorted sizes of shifts.

    Args:
        query: The relation of a histogram.
    """
    vectors = set()
    for vector in query.shifts:
        if sum(map(abs, vector)) == query.max_norm:
            vectors.add(tuple(sorted(map(abs, vector))))
    return sorted(vectors)
