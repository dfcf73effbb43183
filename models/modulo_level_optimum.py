"""The least error rate of PDP noise at one delta, from level functions: no solver takes part.

By the level theorem (`models.modulo_levels`) the largest f(0) is the largest min(1/T, delta/S) of all level functions.
Let phi be that of the best one known. Whatever is better has

    T < 1/phi  and  S < delta/phi,

so the level search of that one stair, T = 1/phi at every S < delta/phi, finds a better one or proves that there is
none; phi rises, and the stair falls, while it runs. Proof that nothing is lost: the search leaves out a label only
where another one of its state is nowhere larger, hence no worse in min(1/T, delta/S); where every completion has
T >= 1/phi, up to the tolerance, or S >= delta/phi; and where it drops a shift that is not the one S is taken at. None
of these is better than phi is then, and phi never falls. []

The level function that attains phi is rebuilt and judged anew: its levels are raised to the shortest path lengths over
the pairs it keeps, T and S are summed from them, and f = phi max(a^l, theta w) by the proof of `models.modulo_holes`.

The work is counted, not timed, so that the answer is the same on every machine. A search that stops proves nothing and
leaves the best level function it found.

| paper       | here                                    |
|-------------|-----------------------------------------|
| rho*(delta) | `LevelOptimum.holes.value`, once proven |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.modulo_holes import Holes, attained
from models.modulo_level_frontier import has_levels
from models.modulo_levels import LevelSearch, OutOfTime, Stairs, Trace
from models.modulo_patterns import Noise
from solvers.arrays import Vector
from solvers.search import Deadline

__all__ = ["LevelOptimum", "level_optimum", "searchable"]


MARGIN = 1e-10
"""How far the proven bound lies below the value: the tolerance of the search and all rounding of its sums."""

WORK = 300_000
"""Decisions after which a search stops, states counted by what they cost of these: one to three seconds."""

_TOLERANCE = 1e-11
_LARGEST = 300  # elements; the recursion of the search is no deeper
_LEAST_EPSILON = 1e-2  # of smaller ones the sums that a charge buys off lose too many digits


@dataclass(frozen=True, eq=False)
class LevelOptimum:
    """The best PMF known, in the form of the hole search; the optimum, to MARGIN, if `proven`."""

    holes: Holes
    proven: bool
    decisions: int


def searchable(noise: Noise) -> bool:
    """Whether `level_optimum` takes a question: the error rate at one eps and a given delta, on a group of a size."""
    if noise.delta is None or noise.N > _LARGEST or not has_levels(noise):
        return False
    return 0.0 < noise.delta < 1.0 and float(np.log(noise.exp_epsilon[0])) >= _LEAST_EPSILON


def level_optimum(
    noise: Noise, w: Vector, holes: Holes, deadline: Deadline | None = None, work: int = WORK
) -> LevelOptimum:
    """Search all level functions for a better one than that of the hole search.

    Args:
        noise: a question that is `searchable`.
        w: (N,) its `weights`.
        holes: what is known, with f(0) > 0.
        deadline, work (in decisions): after which to stop.
    """
    search = _Search(noise, 1.0 - holes.value, deadline or Deadline(), work)
    try:
        search.prove(0.0, search.high)
        proven = True
    except OutOfTime:
        proven = False
    if search.best is not None:
        better = attained(noise, w, _raised(noise, search.levels(*search.best)))
        holes = better if better.value < holes.value else holes
        # its own sums must have the value that the search went on with
        proven = proven and 1.0 - holes.value >= search.phi * (1.0 - _TOLERANCE)
    return LevelOptimum(holes, proven, search.decisions)


class _Search(LevelSearch):
    """The level functions that are better than phi."""

    def __init__(self, noise: Noise, phi: float, deadline: Deadline, work: int) -> None:
        epsilon = float(np.log(noise.exp_epsilon[0]))
        super().__init__(noise.sizes, noise.shifts, epsilon, deadline, work, _TOLERANCE)
        assert noise.delta is not None
        self.delta = noise.delta
        self.best: tuple[Trace, int | None] | None = None
        self._raise(phi)

    def _raise(self, phi: float) -> None:
        self.phi, self.high = phi, self.delta / phi
        self.stairs = Stairs([0.0], [1.0 / phi])

    def enter(self, T: float, S: float, trace: Trace, dropped: int | None) -> None:
        """Keep it if it is better."""
        phi = 1.0 / T if S <= 0.0 else min(1.0 / T, self.delta / S)
        if phi > self.phi * (1.0 + 1e-13):
            self.best = (trace, dropped)
            self._raise(phi)


def _raised(noise: Noise, level: Vector) -> Vector:
    """a^l of the shortest path lengths l from 0 over the pairs that some levels keep: Bellman's iteration."""
    kept = [level[target] <= level + 1.0 for target in noise.targets()]
    shortest = np.where(np.arange(noise.N) == 0, 0.0, np.inf)
    while True:
        before = shortest.copy()
        for keeps, target in zip(kept, noise.targets(), strict=True):
            moved = np.full(noise.N, np.inf)
            moved[target[keeps]] = shortest[keeps] + 1.0
            np.minimum(shortest, moved, out=shortest)
        if np.array_equal(before, shortest):
            return (1.0 / float(noise.exp_epsilon[0])) ** shortest
