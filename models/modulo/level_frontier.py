"""The frontier rho*(delta) as linear pieces, and its value at one delta, from the staircase of
`workbench.models.modulo.levels`.

Windows of S are proven one after the other, from S = 1 (delta = 1) down to 0. Where a search is
stopped the staircase found so far is an upper bound of rho*. It is bounded from below by (1 -
delta) rho*(0), the optimum under (eps, delta)-DP, which PDP implies
(`workbench.models.oracles.hops` has the proof), and by rho* at the least delta that is proven, as
rho* never rises.

One delta. By the level theorem (`workbench.models.modulo.levels`) the largest f(0) is the largest
min(1/T, delta/S) of all level functions. Let phi be that of the best one known. Whatever is better
has

    T < 1/phi  and  S < delta/phi,

so the level search of that one stair, T = 1/phi at every S < delta/phi, finds a better one or
proves that there is none; phi rises, and the stair falls, while it runs. Proof that nothing is
lost: the search leaves out a label only where another one of its state is nowhere larger, hence no
worse in min(1/T, delta/S); where every completion has T >= 1/phi, up to the tolerance, or S >=
delta/phi; and where it drops a shift that is not the one S is taken at. None of these is better
than phi is then, and phi never falls. []

The level function that attains phi is rebuilt and judged anew: its levels are raised to the
shortest path lengths over the pairs it keeps, T and S are summed from them, and f = phi max(a^l,
theta w) by the proof of `workbench.models.modulo.level_noise`.

The work is counted, not timed, so that the answer is the same on every machine. A search that stops
proves nothing and leaves the best level function it found.

| paper       | here                                    |
|-------------|-----------------------------------------|
| rho*(delta) | `LevelOptimum.best.value`, once proven  |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from workbench.models.modulo.level_noise import LevelNoise, best_noise_of_masses, distance_weights
from workbench.models.modulo.levels import LevelSearch, OutOfTime, Trace
from workbench.models.modulo.patterns import NoiseProblem
from workbench.models.modulo.stairs import ERROR_RATE_TOLERANCE, Stairs
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline

MAX_PATTERN_ELEMENTS = 24  # designs of smaller groups are left to the search over patterns, which level functions can judge then

_WINDOW = 0.8  # the lower end of a window of S, of its upper end
_LAST = 1e-10  # the window below this S reaches 0


@dataclass(frozen=True)
class FrontierPiece:
    """rho* is linear from (delta_low, value_low) to (delta_high, value_high) when `proven`.

    Otherwise rho* lies between that line and the one from (delta_low, bound_low) to (delta_high, bound_high), which is
    proven; of a proven piece the two are the same.
    """

    delta_low: float
    delta_high: float
    value_low: float
    value_high: float
    is_proven: bool
    bound_low: float
    bound_high: float

    def value_at(self, delta: float) -> float:
        """The loss at a delta of the piece."""
        return float(
            np.interp(delta, (self.delta_low, self.delta_high), (self.value_low, self.value_high))
        )


def proven_length(pieces: Sequence[FrontierPiece]) -> float:
    """How much of the interval of delta the proven pieces cover."""
    return sum(piece.delta_high - piece.delta_low for piece in pieces if piece.is_proven)


def _keeps_digits(noise: NoiseProblem) -> bool:
    """Whether eps is so large that the sums of the search lose no digits that count."""
    return float(np.log(noise.exp_epsilon[0])) >= MIN_LEVEL_EPSILON


def has_levels(noise: NoiseProblem) -> bool:
    """Whether a question's frontier comes from level functions: the error rate at one eps, which is tiny at most where
    the group is large."""
    equal = bool((noise.exp_epsilon == noise.exp_epsilon[0]).all())
    moved = any(
        any(step % size for step, size in zip(mu, noise.sizes, strict=True)) for mu in noise.shifts
    )
    return (
        noise.is_error_rate
        and equal
        and moved
        and (noise.N > MAX_PATTERN_ELEMENTS or _keeps_digits(noise))
    )


def compute_level_frontier(
    search: LevelSearch,
    high: float,
    report: Callable[[list[FrontierPiece]], None] = lambda pieces: None,
) -> list[FrontierPiece]:
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
        while stairs.proven_from > 0.0:
            search.prove(
                stairs.proven_from * _WINDOW if stairs.proven_from > _LAST else 0.0,
                stairs.proven_from,
            )
            report(_pieces(stairs, high))
    except OutOfTime:
        pass
    return _pieces(stairs, high)


def _pieces(stairs: Stairs, high: float) -> list[FrontierPiece]:
    """The pieces of the staircase up to a delta."""
    corners = stairs.corners()
    proven = 0.0 if stairs.proven_from == 0.0 else stairs.proven_delta
    deltas, values = zip(*corners, strict=True)
    best = max(0.0, float(np.interp(min(proven, 1.0), deltas, values)) - ERROR_RATE_TOLERANCE)
    pieces = []
    for (a, va), (b, vb) in pairwise(corners):
        if a >= high or b <= a:
            continue
        if b > high:
            b, vb = high, va + (vb - va) * (high - a) / (b - a)
        low, least = va, vb
        if a < proven:
            line = [(1.0 - x) * values[0] for x in (a, b)]
            low, least = np.minimum(
                line if sum(line) > 2.0 * best else [best, best], [va, vb]
            ).tolist()
        pieces.append(FrontierPiece(a, b, va, vb, a >= proven, low, least))
    return pieces


BOUND_MARGIN = 1e-10
"""How far the proven bound lies below the value: the tolerance of the search and all rounding of its sums."""

MAX_DECISIONS = 400_000
"""Decisions after which a search stops, states counted by what they cost of these: one to three seconds."""

_TOLERANCE = 1e-11
_NARROW = 20  # states of every level that are looked at first, for what they find
_LARGEST = 100_000  # elements, each with its neighbours in a list
MIN_LEVEL_EPSILON = 1e-2  # of smaller ones the sums that a charge buys off lose too many digits


@dataclass(frozen=True, eq=False)
class LevelOptimum:
    """The best PMF known; the optimum, to MARGIN, if `proven`."""

    best: LevelNoise
    is_proven: bool
    decisions: int


def is_searchable(noise: NoiseProblem) -> bool:
    """Whether `level_optimum` takes a question: the error rate at one eps and a given delta, on a group of a size."""
    if (
        noise.delta is None
        or not MAX_PATTERN_ELEMENTS < noise.N <= _LARGEST
        or not has_levels(noise)
    ):
        return False
    return 0.0 < noise.delta < 1.0 and _keeps_digits(noise)


def search_level_optimum(
    noise: NoiseProblem,
    w: Vector,
    best_known: LevelNoise,
    deadline: Deadline | None = None,
    max_decisions: int = MAX_DECISIONS,
) -> LevelOptimum:
    """Search all level functions for a better one.

    Args:
        noise: a question that is `searchable`.
        w: (N,) its `weights`.
        best: what is known, with f(0) > 0.
        deadline, work (in decisions): after which to stop.
    """
    search = _OptimumSearch(noise, 1.0 - best_known.value, deadline or Deadline(), max_decisions)
    try:
        search.prove(0.0, search.high, _NARROW)
        search.prove(0.0, search.high)
        proven = True
    except OutOfTime:
        proven = False
    if search.best is not None:
        better = best_noise_of_masses(
            noise, w, distance_weights(noise, search.rebuild_levels(*search.best))
        )
        best_known = better if better.value < best_known.value else best_known
        # its own sums must have the value that the search went on with
        proven = proven and 1.0 - best_known.value >= search.phi * (1.0 - _TOLERANCE)
    return LevelOptimum(best_known, proven, search.decisions)


class _OptimumSearch(LevelSearch):
    """The level functions that are better than phi."""

    def __init__(self, noise: NoiseProblem, phi: float, deadline: Deadline, work: int) -> None:
        epsilon = float(np.log(noise.exp_epsilon[0]))
        super().__init__(noise.sizes, noise.shifts, epsilon, deadline, work, _TOLERANCE)
        assert noise.delta is not None
        self.delta = noise.delta
        self.best: tuple[Trace, int | None] | None = None
        self._raise(phi)

    def _raise(self, phi: float) -> None:
        self.phi, self.high = phi, self.delta / phi
        self.stairs = Stairs([0.0], [1.0 / phi])

    def record(self, T: float, S: float, trace: Trace, dropped: int | None) -> None:
        """Keep it if it is better."""
        phi = 1.0 / T if S <= 0.0 else min(1.0 / T, self.delta / S)
        if phi > self.phi * (1.0 + 1e-13):
            self.best = (trace, dropped)
            self._raise(phi)
