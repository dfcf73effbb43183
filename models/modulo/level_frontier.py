"""Compute the smallest error rate rho*(delta) of PDP noise, for all delta or at a single one.

`compute_level_frontier` computes it for all delta, `search_level_optimum` at one delta. Both use
the staircase of level functions that `workbench.models.modulo.levels` searches.

Notation. f is the PMF of the noise, mu a shift, and a = e^-eps. A level function l gives the noise
value eta the weight a^l(eta). T is the sum of all weights, and S the weight of the pairs (eta, mu)
that it breaks, for the worst mu. The staircase is the smallest T for every bound on S. A state of
the search is the set of elements whose level is chosen, a label one choice of levels with its T and
S, and a completion a choice of the other levels. w are the weights e^-d of
`workbench.models.modulo.level_noise`.

All delta. Windows of S are proven one after the other, from S = 1 (delta = 1) down to 0. If the
search is stopped, the staircase found so far is an upper bound of rho*. A lower bound is
(1 - delta) rho*(0), the optimum under (eps, delta)-DP, which PDP implies
(`workbench.models.oracles.hops` has the proof). Another lower bound is rho* at the smallest delta
that is proven, since rho* never rises with delta.

One delta. By the level theorem (`workbench.models.modulo.levels`) the largest f(0) is the largest
min(1/T, delta/S) of all level functions. Let phi be that of the best one found. A better one has

    T < 1/phi  and  S < delta/phi,

so the level search of that one stair, T = 1/phi at every S < delta/phi, finds a better one or
proves that there is none. phi rises, and the stair falls, while the search runs.

Proof that no better level function is lost. The search leaves out a label in three cases only:
another label of its state is nowhere larger in T or S, hence no worse in min(1/T, delta/S); every
completion has T >= 1/phi, up to the tolerance, or S >= delta/phi; or a shift is dropped that is not
the one where S is largest. In none of these cases a completion is better than phi at that time, and
phi never falls. []

The level function that attains phi is rebuilt, and its value is computed again: its levels are
raised to the shortest path lengths over the pairs it keeps, T and S are summed from them, and
f = phi max(a^l, theta w) by the proof of `workbench.models.modulo.level_noise`.

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

# Groups of at most this order are left to the search over patterns, so that level functions can
# judge the result.
MAX_PATTERN_ELEMENTS = 24
# The proven bound lies this far below the value: it covers the tolerance of the search and all
# rounding of its sums.
BOUND_MARGIN = 1e-10
# A search stops after this much work, counted in decisions. It takes one to three seconds.
MAX_DECISIONS = 400_000
# For a smaller eps the weights a^l are so close that the bounds of the search lose too many digits.
MIN_LEVEL_EPSILON = 1e-2

_WINDOW_RATIO = 0.8  # The lower end of a window of S is this share of its upper end.
_MIN_WINDOW_S = 1e-10  # The window below this S reaches 0.
_SEARCH_TOLERANCE = 1e-11  # Tolerance of the error rate in the search at one delta.
_BEAM_WIDTH = 20  # A first search follows this many states of every level, for good solutions.
_MAX_ELEMENTS = 100_000  # The search holds each element with a list of its neighbours.
_MIN_RELATIVE_GAIN = 1e-13  # A phi that is larger by less does not count as better.


@dataclass(frozen=True)
class FrontierPiece:
    """A linear piece of the frontier.

    If `is_proven`, rho* is the line from (delta_low, value_low) to (delta_high, value_high).
    Otherwise rho* lies between that line and the proven one from (delta_low, bound_low) to
    (delta_high, bound_high). For a proven piece both lines are the same.

    Attributes:
        delta_low: the smallest delta of the piece.
        delta_high: the largest delta of the piece.
        value_low: loss at `delta_low`.
        value_high: loss at `delta_high`.
        is_proven: whether the losses are proven.
        bound_low: lower bound at `delta_low`.
        bound_high: lower bound at `delta_high`.
    """

    delta_low: float
    delta_high: float
    value_low: float
    value_high: float
    is_proven: bool
    bound_low: float
    bound_high: float

    def value_at(self, delta: float) -> float:
        """Return the loss at a delta of the piece.

        Args:
            delta: between `delta_low` and `delta_high`.
        """
        deltas = (self.delta_low, self.delta_high)
        return float(np.interp(delta, deltas, (self.value_low, self.value_high)))


def proven_length(pieces: Sequence[FrontierPiece]) -> float:
    """Return the length of the interval of delta that the proven pieces cover.

    Args:
        pieces: pieces of one frontier.
    """
    return sum(piece.delta_high - piece.delta_low for piece in pieces if piece.is_proven)


def _keeps_digits(noise: NoiseProblem) -> bool:
    """Check that eps is so large that the sums of the search keep enough digits."""
    return float(np.log(noise.exp_epsilon[0])) >= MIN_LEVEL_EPSILON


def has_levels(noise: NoiseProblem) -> bool:
    """Check whether the frontier of a problem comes from level functions.

    It does for the error rate at one eps, which must not be tiny if the group is small.

    Args:
        noise: group, shifts, budgets and loss of the noise.
    """
    has_one_epsilon = bool((noise.exp_epsilon == noise.exp_epsilon[0]).all())
    has_shift = any(
        any(step % size for step, size in zip(mu, noise.sizes, strict=True)) for mu in noise.shifts
    )
    is_level_problem = noise.is_error_rate and has_one_epsilon and has_shift
    return is_level_problem and (noise.N > MAX_PATTERN_ELEMENTS or _keeps_digits(noise))


def compute_level_frontier(
    search: LevelSearch,
    high: float,
    report: Callable[[list[FrontierPiece]], None] = lambda pieces: None,
) -> list[FrontierPiece]:
    """Compute rho*(delta) on [0, high].

    Args:
        search: the search of the problem; the stairs it has proven are not proven again.
        high: the largest delta, in (0, 1].
        report: called with the pieces found so far after every window.

    Returns:
        The pieces in order of delta. Pieces that the time limit left unproven have
        `is_proven` = False.
    """
    stairs = search.stairs
    try:
        while stairs.proven_from > 0.0:
            low = 0.0
            if stairs.proven_from > _MIN_WINDOW_S:
                low = stairs.proven_from * _WINDOW_RATIO
            search.prove(low, stairs.proven_from)
            report(_pieces_of_stairs(stairs, high))
    except OutOfTime:
        pass
    return _pieces_of_stairs(stairs, high)


def _pieces_of_stairs(stairs: Stairs, high: float) -> list[FrontierPiece]:
    """Return the pieces of the staircase up to a delta."""
    corners = stairs.corners()
    proven_delta = 0.0 if stairs.proven_from == 0.0 else stairs.proven_delta
    deltas, values = zip(*corners, strict=True)
    proven_value = float(np.interp(min(proven_delta, 1.0), deltas, values))
    constant_bound = max(0.0, proven_value - ERROR_RATE_TOLERANCE)
    pieces = []
    for (a, value_a), (b, value_b) in pairwise(corners):
        if a >= high or b <= a:
            continue
        if b > high:
            value_b = value_a + (value_b - value_a) * (high - a) / (b - a)
            b = high
        bounds = [value_a, value_b]
        is_proven = a >= proven_delta
        if not is_proven:
            line = [(1.0 - x) * values[0] for x in (a, b)]
            if not sum(line) > 2.0 * constant_bound:
                line = [constant_bound, constant_bound]
            bounds = np.minimum(line, bounds).tolist()
        pieces.append(FrontierPiece(a, b, value_a, value_b, is_proven, *bounds))
    return pieces


@dataclass(frozen=True, eq=False)
class LevelOptimum:
    """The result of a search over level functions at one delta.

    Attributes:
        best: the best PMF found.
        is_proven: whether it is optimal, up to BOUND_MARGIN.
        decisions: decisions of the search.
    """

    best: LevelNoise
    is_proven: bool
    decisions: int


def is_searchable(noise: NoiseProblem) -> bool:
    """Check whether `search_level_optimum` accepts a problem.

    It accepts the error rate at one eps and a given delta, on groups of a suitable order.

    Args:
        noise: group, shifts, budgets and loss of the noise.
    """
    has_suitable_order = MAX_PATTERN_ELEMENTS < noise.N <= _MAX_ELEMENTS
    if noise.delta is None or not has_suitable_order or not has_levels(noise):
        return False
    return 0.0 < noise.delta < 1.0 and _keeps_digits(noise)


def search_level_optimum(
    noise: NoiseProblem,
    w: Vector,
    best_known: LevelNoise,
    deadline: Deadline | None = None,
    max_decisions: int = MAX_DECISIONS,
) -> LevelOptimum:
    """Search all level functions for noise with a smaller error rate.

    Args:
        noise: a problem that `is_searchable` accepts.
        w: weights e^-d by the distance d from 0, shape (N,).
        best_known: the best noise so far, with f(0) > 0.
        deadline: time limit; None for none.
        max_decisions: work after which the search stops, counted in decisions.

    Returns:
        The best noise, `best_known` if the search finds none better, and whether it is proven.
    """
    first_phi = 1.0 - best_known.value
    search = _OptimumSearch(noise, first_phi, deadline or Deadline(), max_decisions)
    try:
        search.prove(0.0, search.high, _BEAM_WIDTH)
        search.prove(0.0, search.high)
        is_proven = True
    except OutOfTime:
        is_proven = False
    best = best_known
    if search.best_trace is not None:
        levels = search.rebuild_levels(*search.best_trace)
        found_noise = best_noise_of_masses(noise, w, distance_weights(noise, levels))
        if found_noise.value < best.value:
            best = found_noise
        # The sums of the PMF must have the value with which the search continued.
        has_value = 1.0 - best.value >= search.phi * (1.0 - _SEARCH_TOLERANCE)
        is_proven = is_proven and has_value
    return LevelOptimum(best, is_proven, search.decisions)


class _OptimumSearch(LevelSearch):
    """A search for level functions that are better than phi, which rises while it runs."""

    def __init__(
        self,
        noise: NoiseProblem,
        phi: float,
        deadline: Deadline,
        max_decisions: int,
    ) -> None:
        epsilon = float(np.log(noise.exp_epsilon[0]))
        super().__init__(
            noise.sizes, noise.shifts, epsilon, deadline, max_decisions, _SEARCH_TOLERANCE
        )
        assert noise.delta is not None
        self.delta = noise.delta
        # Arguments of `rebuild_levels`; None while nothing better than the first phi is found.
        self.best_trace: tuple[Trace | None, int | None] | None = None
        self._raise_phi(phi)

    def _raise_phi(self, phi: float) -> None:
        """Continue the search with a larger phi: the stair T = 1/phi, up to S = delta/phi."""
        self.phi = phi
        self.high = self.delta / phi
        self.stairs = Stairs(s=[0.0], t=[1.0 / phi])

    def record(
        self,
        T: float,
        S: float,
        trace: Trace | None,
        dropped_mask: int | None,
    ) -> None:
        """Keep a level function if it is better than phi.

        Args:
            T: total weight of the level function.
            S: weight of its broken pairs, for the shift where it is largest.
            trace: first levels of the function, as `LevelSearch.record` takes them.
            dropped_mask: the dropped shifts, as in `LevelSearch.record`.
        """
        phi = 1.0 / T if S <= 0.0 else min(1.0 / T, self.delta / S)
        if phi > self.phi * (1.0 + _MIN_RELATIVE_GAIN):
            self.best_trace = (trace, dropped_mask)
            self._raise_phi(phi)
