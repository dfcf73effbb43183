"""The whole optimal value function rho*(delta) of PDP noise at fixed epsilon, as an exact list of linear pieces.

For a set B of pairs that may be broken let v_B(delta) be the least cost of a PMF that keeps all other pairs and has,
for every mu, mass delta at most on the elements of B. It is a linear program with delta on the right-hand side, so v_B
is convex, piecewise linear and non-increasing from the least delta it needs on; and rho* = min over B of v_B, as f is
feasible for (13) at delta exactly when it is so for B = the pairs it breaks. The frontier is a lower envelope:

1. Known patterns give an envelope E >= rho*, at first v of "nothing broken", the cost at delta = 0.
2. A piece of E, alpha + beta delta on [d1, d2], is proven by one more optimisation in which delta is a variable,
       min over patterns, f and delta in [d1, d2] of  rho'f - beta delta,
   solved by `models.noise_search`: if nothing is below alpha (up to TOLERANCE), rho* = E on the whole piece, between
   the breakpoints as well as at them.
3. Otherwise the better f breaks a new pattern B, whose v_B lowers E; go on with the new pieces.

No pattern is found twice (E would already be as low as its f), and there are finitely many, so this ends. At a jump of
rho*, where a pattern becomes affordable, the left piece is proven up to SEPARATION short of it.

v_B is traced exactly: the value and slope (the reduced cost of delta) at two points either meet in a breakpoint, which
one more program confirms, or show another one between.

| paper       | here                       |
|-------------|----------------------------|
| rho*(delta) | `delta_frontier`, `at`     |
| (15)        | its inverse                |
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.noise import cost_vector
from models.noise_holes import facts, weights
from models.noise_patterns import Facts, Noise, Relaxation, relaxation
from models.noise_search import fine, search
from solvers.backend import Backend, Options, backend
from solvers.session import Session
from solvers.solution import Solution, Start, Termination

__all__ = ["Piece", "at", "delta_frontier"]

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Point = tuple[float, float]

TOLERANCE = 1e-9  # of values, relative to max(1, |value|)
SEPARATION = 1e-8  # of deltas at a jump
_SLIVER = 1e-11  # of deltas: rounding of breakpoints


@dataclass(frozen=True)
class Piece:
    """rho* is linear from (delta_low, value_low) to (delta_high, value_high); `proven`, or an upper bound only."""

    delta_low: float
    delta_high: float
    value_low: float
    value_high: float
    proven: bool

    def value(self, delta: float) -> float:
        """The cost at a delta of the piece."""
        share = (delta - self.delta_low) / (self.delta_high - self.delta_low) if self.delta_high > self.delta_low else 0
        return self.value_low + share * (self.value_high - self.value_low)


def at(pieces: Sequence[Piece], delta: float) -> float:
    """rho*(delta) on a frontier. Raises ValueError outside it."""
    k = bisect_right([piece.delta_low for piece in pieces], delta) - 1
    if k < 0 or delta > pieces[k].delta_high:
        raise ValueError(f"delta must be in [{pieces[0].delta_low:g}, {pieces[-1].delta_high:g}]. Got {delta}.")
    return pieces[k].value(delta)


def _uninterrupted(answer: Solution) -> Solution:
    """The answer, unless Ctrl-C ended its solve: then KeyboardInterrupt, as there is no other way to say so here."""
    if answer.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return answer


class _Patterns:
    """v_B of any pattern B, by linear programs on two live sessions."""

    def __init__(self, noise: Noise, solver: Backend, options: Options) -> None:
        self.noise = noise
        self.cost, self.opened = self._open(noise, solver, options)
        least = Noise(noise.sizes, noise.shifts, noise.exp_epsilon, noise.cost, budget=float(noise.cost.max()) + 1.0)
        self.least, self.opened_least = self._open(least, solver, options)

    def close(self) -> None:
        self.opened.close()
        self.opened_least.close()

    @staticmethod
    def _open(noise: Noise, solver: Backend, options: Options) -> tuple[Relaxation, Session]:
        made = relaxation(noise, Facts.none(noise))
        return made, solver.open(made.program, options)

    def trace(self, pattern: Mask, high: float) -> list[Point]:
        """The breakpoints of v_B from the least delta it needs up to `high`."""
        broken = pattern[self.least.shift, self.least.element]
        values = {"room": np.where(broken, 1.0, 0.0), "least": np.where(broken, 0.0, -1.0)}
        answer = _uninterrupted(self.opened_least.solve(values))
        if not answer.optimal or answer.objective is None:
            return []
        low = max(0.0, answer.objective)
        right = self._value(pattern, high)
        starts = (0.0, 0.1 * SEPARATION) if low < 1e-12 else (low + 0.1 * SEPARATION,)  # clear of the tolerance
        for start in starts:
            left = self._value(pattern, start) if start <= high else None
            if left is not None and right is not None:
                between = self._between(pattern, start, high, left, right, 60)
                return [(start, left[0]), *between, (high, right[0])]
        return []

    def _value(self, pattern: Mask, delta: float) -> Point | None:
        """v_B and a slope of it at a delta."""
        made = self.cost
        broken = pattern[made.shift, made.element]
        values = {
            "room": np.where(broken, 1.0, 0.0),
            "least": np.where(broken, 0.0, -1.0),
            "span": np.full(2, delta),
        }
        answer = _uninterrupted(self.opened.solve(values))
        if not answer.optimal:
            answer = _uninterrupted(self.opened.solve(values, start=Start.COLD))
        if not answer.optimal or answer.objective is None or answer.reduced_cost is None:
            return None
        return answer.objective, float(answer.reduced_cost[made.program.block("delta").start])

    def _between(self, pattern: Mask, a: float, b: float, at_a: Point, at_b: Point, depth: int) -> list[Point]:
        """Breakpoints strictly between two points whose values and slopes are known."""
        (va, ga), (vb, gb) = at_a, at_b
        small = 1e-11 * max(1.0, abs(va))
        on_a, on_b = abs(va + ga * (b - a) - vb), abs(vb - gb * (b - a) - va)
        if min(on_a, on_b) <= small or b - a <= 1e-12 or depth == 0:
            return []
        if gb - ga <= 0:
            return []
        x = a + (vb - va - gb * (b - a)) / (ga - gb)
        if not a < x < b:
            return []
        found = self._value(pattern, x)
        if found is None:
            return []
        left = self._between(pattern, a, x, at_a, found, depth - 1)
        return [*left, (x, found[0]), *self._between(pattern, x, b, found, at_b, depth - 1)]


def _envelope(functions: Sequence[list[Point]], low: float, high: float) -> list[tuple[Point, Point]]:
    """The linear pieces of the lower envelope of piecewise linear functions, each from its first point to `high`."""
    cuts = np.unique(np.concatenate([[low, high], *([x for x, _ in f] for f in functions)]))
    cuts = cuts[(cuts >= low) & (cuts <= high)]
    tables = [np.array(f) for f in functions]
    values = np.stack([np.interp(cuts, f[:, 0], f[:, 1], left=np.inf) for f in tables])  # (functions, cuts)
    pieces: list[tuple[Point, Point]] = []
    for k, (a, b) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
        inside = np.isfinite(values[:, k])
        left, right = values[inside, k], values[inside, k + 1]
        x, here = a, int(np.lexsort((right, left))[0])
        slopes = (right - left) / (b - a)
        while x < b:
            fall = slopes[here] - slopes
            with np.errstate(divide="ignore", invalid="ignore"):
                # lines that cross no later than x are level with the present one there, up to rounding
                meet = np.where(fall > 1e-13, np.maximum(a + (left - left[here]) / fall, x), np.inf)
            first = int(np.lexsort((right, meet))[0])
            stop = float(min(meet[first], b))
            start = float(left[here])
            slope = float(slopes[here])
            if stop > x:
                pieces.append(((x, start + slope * (x - a)), (stop, start + slope * (stop - a))))
            x, here = stop, first
    return _joined(pieces)


def _joined(pieces: list[tuple[Point, Point]]) -> list[tuple[Point, Point]]:
    """Neighbours on one line, and slivers, made one piece."""
    made: list[tuple[Point, Point]] = []
    for piece in pieces:
        if made:
            (x0, v0), (x1, v1) = made[-1]
            (_, w1), (x2, v2) = piece
            reach = v0 + (v1 - v0) * (x2 - x0) / (x1 - x0) if x1 > x0 else v1
            if abs(w1 - v1) <= 1e-12 * max(1.0, abs(v1)) and (
                abs(reach - v2) <= 1e-11 * max(1.0, abs(v2)) or x2 - x1 <= _SLIVER
            ):
                made[-1] = ((x0, v0), (x2, v2))
                continue
        made.append(piece)
    return made


def delta_frontier(
    sizes: Sequence[int],
    shifts: Sequence[Sequence[int]],
    epsilon: float | Sequence[float],
    cost: str | Vector = "error-rate",
    *,
    high: float = 1.0,
    solver: str = "highs",
    time_limit: float | None = None,
) -> list[Piece]:
    """rho*(delta) on [0, high] for PDP at fixed epsilon.

    Args:
        sizes: orders of the cyclic factors; shifts: the differences, closed under negation when they are symmetric.
        epsilon: > 0, one or one per shift.
        cost: a key of `models.noise.COSTS` without a prior and without a worst case, or (N,) distortions.
        high: the largest delta, in (0, 1].
        solver: a backend with duals that solves linear programs to a vertex.
        time_limit: seconds; pieces that could not be proven in time are marked.

    Returns:
        The pieces in order of delta. They join, except at jumps of rho*.

    Raises:
        ValueError: for a bad value; the solvers' own errors for an unusable solver.
    """
    if not 0 < high <= 1:
        raise ValueError(f"high must be in (0, 1]. Got {high}.")
    rho = cost_vector(cost, sizes) if isinstance(cost, str) else np.asarray(cost, dtype=float)
    moves = tuple(tuple(int(k) for k in shift) for shift in shifts)
    levels = np.broadcast_to(np.asarray(epsilon, dtype=float), (len(moves),))
    if rho.ndim != 1 or not (np.isfinite(levels) & (levels > 0)).all() or not moves:
        raise ValueError("the frontier needs shifts, epsilon > 0 and a cost of one number per noise value.")
    noise = Noise(tuple(sizes), moves, np.exp(levels), rho, span=(0.0, high))
    stop = None if time_limit is None else time.perf_counter() + time_limit
    chosen = backend(solver)
    if not (chosen.capabilities().duals and chosen.capabilities().exact_vertex):
        raise ValueError(f"solver must give duals and vertices of linear programs. Got {solver!r}.")
    patterns = _Patterns(noise, chosen, fine(Options(), chosen))
    try:
        return _Frontier(noise, chosen, patterns, stop).run()
    finally:
        patterns.close()


class _Frontier:
    def __init__(self, noise: Noise, solver: Backend, patterns: _Patterns, stop: float | None) -> None:
        self.noise, self.solver, self.patterns, self.stop = noise, solver, patterns, stop
        self.high = noise.span[1]
        self.functions: list[list[Point]] = []
        self.seen: set[bytes] = set()
        self.proven: list[tuple[Point, Point]] = []
        self.left: set[tuple[Point, Point]] = set()  # neither proven nor improved
        self.w = weights(noise) if noise.error_rate else None

    def run(self) -> list[Piece]:
        self._add(np.zeros((len(self.noise.shifts), self.noise.N), dtype=bool))
        while True:
            pieces = _envelope(self.functions, 0.0, self.high)
            waiting = [piece for piece in pieces if not self._known(piece) and piece not in self.left]
            late = self.stop is not None and time.perf_counter() > self.stop
            if not waiting or late:
                return [Piece(a, b, va, vb, self._known(((a, va), (b, vb)))) for (a, va), (b, vb) in pieces]
            if not self._examine(waiting[0]):
                self.left.add(waiting[0])

    def _add(self, pattern: Mask) -> bool:
        """Enter a pattern's value function; False when it is known or has none."""
        key = np.packbits(pattern).tobytes()
        if key in self.seen:
            return False
        self.seen.add(key)
        traced = self.patterns.trace(pattern, self.high)
        if traced:
            self.functions.append(traced)
        return bool(traced)

    def _known(self, piece: tuple[Point, Point]) -> bool:
        """Whether a piece lies on one that is proven."""
        (a, va), (b, vb) = piece
        for (c, vc), (d, vd) in self.proven:
            if c - _SLIVER <= a and b <= d + _SLIVER and d > c:
                slope = (vd - vc) / (d - c)
                small = TOLERANCE * max(1.0, abs(vc))
                if abs(vc + slope * (a - c) - va) <= small and abs(vc + slope * (b - c) - vb) <= small:
                    return True
        return False

    def _examine(self, piece: tuple[Point, Point]) -> bool:
        """Prove a piece or find what is better; False when neither was possible."""
        (a, va), (b, vb) = piece
        noise = self.noise
        slope = (vb - va) / (b - a)
        # short of the right end: a pattern that starts there makes rho* jump, and is known
        starts = b < self.high and any(abs(f[0][0] - b) < SEPARATION for f in self.functions)
        end = max(a, b - SEPARATION) if starts else b
        asked = Noise(noise.sizes, noise.shifts, noise.exp_epsilon, noise.cost, span=(a, end), slope=slope)
        kept = np.ones(noise.N, dtype=bool)
        known = Facts.none(asked)
        if self.w is not None:
            known = facts(asked, self.w, max(0.0, 1.0 - va), end, kept)
        made = relaxation(asked, known)
        alpha = va - slope * a
        cutoff = alpha - TOLERANCE * max(1.0, abs(va))
        with self.solver.open(made.program, fine(Options(), self.solver)) as session:
            found = search(asked, made, session, cutoff=cutoff, gap=1e-12, stop=self.stop)
        if found.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if found.x is None:
            ended = found.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
            if not ended or found.on_word or found.bound < cutoff - 1e-11 * max(1.0, abs(cutoff)):
                return False
            self.proven.append(piece)
            return True
        return self._add(made.pattern(noise, found.x))
