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

from models.modulo_holes import Holes
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
_ROUNDING = 1e-12  # a pair is broken when its ratio is above e^eps by more than this
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
        holes = _holes(noise, w, holes, search.levels(*search.best))
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


def _holes(noise: Noise, w: Vector, known: Holes, level: Vector) -> Holes:
    """The PMF of a level function, or the known one where that is better."""
    a = 1.0 / float(noise.exp_epsilon[0])
    kept = [level[target] <= level + 1.0 for target in noise.targets()]
    raised = np.where(np.arange(noise.N) == 0, 0.0, np.inf)
    while True:  # Bellman's iteration over the pairs that the levels keep
        before = raised.copy()
        for keeps, target in zip(kept, noise.targets(), strict=True):
            moved = np.full(noise.N, np.inf)
            moved[target[keeps]] = raised[keeps] + 1.0
            np.minimum(raised, moved, out=raised)
        if np.array_equal(before, raised):
            break
    v = a**raised
    assert noise.delta is not None
    S = max(float(v[raised[target] > raised + 1.0].sum()) for target in noise.targets())
    zero = min(1.0 / float(v.sum()), noise.delta / S if S > 0.0 else 1.0)
    if zero <= 1.0 - known.value:
        return known
    pmf = zero * np.maximum(v, _theta(w, v, 1.0 / zero) * w)
    pairs = zip(noise.exp_epsilon, noise.targets(), strict=True)
    broken = np.stack([(raised[to] > raised + 1.0) & (pmf > e * pmf[to] * (1.0 + _ROUNDING)) for e, to in pairs])
    return Holes(pmf / pmf.sum(), broken, 1.0 - zero, float(w[v > 0.0].min()), zero, noise.delta)


def _theta(w: Vector, v: Vector, total: float) -> float:
    """The theta in [0, 1] at which max(v, theta w) has this total, or the nearest; 0 <= v <= w."""
    some = w > 0.0
    w, v = w[some], v[some]
    order = np.argsort(v / w, kind="stable")
    weight, mass = np.cumsum(w[order]), np.append(np.cumsum(v[order][::-1])[::-1][1:], 0.0)
    # with the k + 1 elements of the least ratios raised, and no others, the total is theta weight + mass
    theta = (total - mass) / weight
    k = int(np.argmax(np.append((v / w)[order][1:], 1.0) >= theta))
    return float(np.clip(theta[k], 0.0, 1.0))
