"""The frontier rho*(delta) as linear pieces, from the staircase of `models.modulo_levels`.

Windows of S are proven one after the other, from S = 1 (delta = 1) down to 0. Where a search is stopped the staircase
found so far is an upper bound of rho*. It is bounded from below by (1 - delta) rho*(0), the optimum under
(eps, delta)-DP, which PDP implies (`models.oracles.hops` has the proof), and by rho* at the least delta that is
proven, as rho* never rises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from models.modulo_levels import TOLERANCE, LevelSearch, OutOfTime, Stairs
from models.modulo_patterns import Noise

__all__ = ["Piece", "has_levels", "level_frontier"]

LEAST = 24  # smaller groups are left to the search over patterns, which any solver confirms

_WINDOW = 0.8  # the lower end of a window of S, of its upper end
_LAST = 1e-10  # the window below this S reaches 0


@dataclass(frozen=True)
class Piece:
    """rho* is linear from (delta_low, value_low) to (delta_high, value_high) when `proven`.

    Otherwise rho* lies between that line and the one from (delta_low, bound_low) to (delta_high, bound_high), which is
    proven; of a proven piece the two are the same.
    """

    delta_low: float
    delta_high: float
    value_low: float
    value_high: float
    proven: bool
    bound_low: float
    bound_high: float

    def value(self, delta: float) -> float:
        """The loss at a delta of the piece."""
        return self._between(self.value_low, self.value_high, delta)

    def bound(self, delta: float) -> float:
        """A proven lower bound on rho* at a delta of the piece."""
        return self._between(self.bound_low, self.bound_high, delta)

    def _between(self, low: float, high: float, delta: float) -> float:
        share = (delta - self.delta_low) / (self.delta_high - self.delta_low) if self.delta_high > self.delta_low else 0
        return low + share * (high - low)


def has_levels(noise: Noise) -> bool:
    """Whether a question's frontier comes from level functions: the error rate, one eps, and a group that is large."""
    equal = bool((noise.exp_epsilon == noise.exp_epsilon[0]).all())
    moved = any(any(step % size for step, size in zip(mu, noise.sizes, strict=True)) for mu in noise.shifts)
    return noise.error_rate and equal and moved and noise.N > LEAST


def level_frontier(
    search: LevelSearch, high: float, tell: Callable[[list[Piece]], None] = lambda pieces: None
) -> list[Piece]:
    """rho*(delta) on [0, high].

    Args:
        search: of the question; what it has proven already is not proven again.
        high: the largest delta, in (0, 1].
        tell: the pieces that are known after every window.

    Returns:
        The pieces in order of delta; what the search's time limit left unproven says so.
    """
    stairs = search.stairs
    try:
        while stairs.proven > 0.0:
            search.prove(stairs.proven * _WINDOW if stairs.proven > _LAST else 0.0, stairs.proven)
            tell(_pieces(stairs, high))
    except OutOfTime:
        pass
    return _pieces(stairs, high)


def _pieces(stairs: Stairs, high: float) -> list[Piece]:
    """The pieces of the staircase up to a delta."""
    corners = stairs.corners()
    proven = 0.0 if stairs.proven == 0.0 else stairs.proven_delta
    best = max(0.0, _at(corners, min(proven, 1.0)) - TOLERANCE)
    pieces = []
    for (a, va), (b, vb) in pairwise(corners):
        if a >= high:
            break
        if b <= a:
            continue
        if b > high:
            b, vb = high, va + (vb - va) * (high - a) / (b - a)
        if a >= proven:
            pieces.append(Piece(a, b, va, vb, True, va, vb))
            continue
        line = [(1.0 - x) * corners[0][1] for x in (a, b)]
        low, least = line if sum(line) > 2.0 * best else (best, best)
        pieces.append(Piece(a, b, va, vb, False, min(low, va), min(least, vb)))
    return pieces


def _at(corners: Sequence[tuple[float, float]], delta: float) -> float:
    return float(np.interp(delta, [x for x, _ in corners], [v for _, v in corners]))
