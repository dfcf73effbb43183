"""The whole optimal value function rho*(delta) of PDP noise at fixed epsilon, as an exact list of
linear pieces.

For a set B of pairs that may be broken let v_B(delta) be the least loss of a PMF that keeps all
other pairs and has, for every mu, mass delta at most on the elements of B. It is a linear program
with delta on the right-hand side, so v_B is convex, piecewise linear and non-increasing from the
least delta it needs on; and rho* = min over B of v_B, as f is feasible for (13) at delta exactly
when it is so for B = the pairs it breaks. The frontier is a lower envelope:

1. Known patterns give an envelope E >= rho*, at first v of "nothing broken", the loss at delta = 0.
2. A piece of E, alpha + beta delta on [d1, d2], is proven by one more optimisation in which delta
   is a variable,
       min over patterns, f and delta in [d1, d2] of  rho'f - beta delta,
   solved by `workbench.models.modulo.search`: if nothing is below alpha (up to TOLERANCE), rho* = E on the whole
   piece, between the breakpoints as well as at them.
3. Otherwise the better f breaks a pattern B, whose v_B lowers E; go on with the new pieces.

There are finitely many patterns, so this ends. One program on one live session states all of it:
delta is a variable, its interval, the slope and the pattern are parameters. At a jump of rho*,
where a pattern becomes affordable, the left piece is proven up to SEPARATION short of it.

Rounding may spoil a trace of v_B where it is steep, near the least delta that B needs. So the point
(delta, loss) of the better f is entered as well: v_B is convex, hence the lower hull of known
points is an upper bound of it, and E falls at the point found whatever the trace says. A piece
whose program the solver cannot manage is halved. What stays unproven all the same has the proven
bound of its search.

Where the loss is the error rate, with one eps, all this is left to
`workbench.models.modulo.level_frontier`, which needs no solver.

v_B is traced exactly: with the slope of a chord the same program for one pattern has a point of v_B
below the chord, or proves that v_B is the chord.

| paper       | here                       |
|-------------|----------------------------|
| rho*(delta) | `delta_frontier`           |
| (15)        | its inverse                |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from workbench.models.modulo.level_frontier import (
    FrontierPiece,
    compute_level_frontier,
    has_levels,
    proven_length,
)
from workbench.models.modulo.levels import LevelSearch
from workbench.models.modulo.patterns import NoiseProblem, Relaxation, build_relaxation
from workbench.models.modulo.program import loss_vector
from workbench.models.modulo.search import PatternOutcome, PatternSearch, with_tight_tolerances
from workbench.solvers.arrays import Flags, Vector
from workbench.solvers.backend import Options, get_backend
from workbench.solvers.contract import Backend
from workbench.solvers.search import Deadline
from workbench.solvers.session import Session
from workbench.solvers.solution import Start, Termination

Point = tuple[float, float]
Progress = Callable[[float, int], None]

VALUE_TOLERANCE = 1e-9  # of values, relative to max(1, |value|)
DELTA_TOLERANCE = 1e-12  # of deltas: where rho* falls steeply a piece is proven up to such a shift
JUMP_SEPARATION = 1e-8  # of deltas at a jump
_SLIVER = 1e-13  # of deltas: rounding of breakpoints
_HALVINGS = 6  # of a piece whose program the solver cannot manage
_STEEP = 1e8  # of losses over deltas: towards the least delta that a pattern needs
_DEEPEST = 60  # halves of halves of a pattern's function
_TRIES = 30  # points better than one and the same piece, each lower only by what rounding hides


def _envelope(
    functions: Sequence[list[Point]], low: float, high: float
) -> list[tuple[Point, Point]]:
    """The linear pieces of the lower envelope of piecewise linear functions, each from its first point to `high`."""
    cuts = np.unique(np.concatenate([[low, high], *([x for x, _ in f] for f in functions)]))
    cuts = cuts[(cuts >= low) & (cuts <= high)]
    tables = [np.array(f) for f in functions]
    values = np.stack(
        [np.interp(cuts, f[:, 0], f[:, 1], left=np.inf) for f in tables]
    )  # (functions, cuts)
    pieces = []
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
    pairs: list[tuple[Point, Point]] = []
    for piece in pieces:
        if pairs:
            (x0, v0), (x1, v1) = pairs[-1]
            (_, w1), (x2, v2) = piece
            reach = v0 + (v1 - v0) * (x2 - x0) / (x1 - x0) if x1 > x0 else v1
            if abs(w1 - v1) <= 1e-12 * max(1.0, abs(v1)) and (
                abs(reach - v2) <= 1e-11 * max(1.0, abs(v2)) or x2 - x1 <= _SLIVER
            ):
                pairs[-1] = ((x0, v0), (x2, v2))
                continue
        pairs.append(piece)
    return pairs


def compute_delta_frontier(
    sizes: Sequence[int],
    shifts: Sequence[Sequence[int]],
    epsilon: float | Sequence[float],
    loss: str | Vector = "error-rate",
    *,
    high: float = 1.0,
    solver: str = "highs",
    seconds: float | None = None,
    progress: Progress = lambda delta, pieces: None,
) -> list[FrontierPiece]:
    """rho*(delta) on [0, high] for PDP at fixed epsilon.

    Args:
        sizes: orders of the cyclic factors; shifts: the differences, closed under negation when they are symmetric.
        epsilon: > 0, one or one per shift.
        loss: a key of `workbench.models.modulo.program.LOSSES` without a prior and without a worst case, or (N,)
        distortions. high: the largest delta, in (0, 1].
        solver: a backend with duals that solves linear programs to a vertex.
        seconds: pieces that could not be proven within these are marked, and have a bound.
        progress: told (how much of [0, high] is proven, pieces so far) before every search.

    Returns:
        The pieces in order of delta. They join, except at jumps of rho*.

    Raises:
        ValueError: for a bad value; the solvers' own errors for an unusable solver.
    """
    if not 0 < high <= 1:
        raise ValueError(f"high must be in (0, 1]. Got {high}.")
    rho = loss_vector(loss, sizes) if isinstance(loss, str) else np.asarray(loss, dtype=float)
    moves = tuple(tuple(int(k) for k in shift) for shift in shifts)
    levels = np.broadcast_to(np.asarray(epsilon, dtype=float), (len(moves),))
    if rho.ndim != 1 or not (np.isfinite(levels) & (levels > 0)).all() or not moves:
        raise ValueError(
            "the frontier needs shifts, epsilon > 0 and a loss of one number per noise value."
        )
    noise = NoiseProblem(tuple(sizes), moves, np.exp(levels), rho, delta_span=(0.0, high))
    deadline = Deadline(seconds)
    chosen = get_backend(solver)
    if not (chosen.capabilities().duals and chosen.capabilities().exact_vertex):
        raise ValueError(f"solver must give duals and vertices of linear programs. Got {solver!r}.")
    if has_levels(noise):
        levels_of = LevelSearch(noise.sizes, noise.shifts, float(levels[0]), deadline)
        return compute_level_frontier(
            levels_of, high, lambda pieces: progress(proven_length(pieces), len(pieces))
        )
    relaxed = build_relaxation(noise)
    with chosen.open(relaxed.program, with_tight_tolerances(Options(), chosen)) as session:
        return _Frontier(noise, chosen, relaxed, session, deadline, progress).run()


@dataclass
class _Frontier:
    """progress: told (delta up to which everything is proven, pieces so far) after every program."""

    noise: NoiseProblem
    solver: Backend
    relaxed: Relaxation
    session: Session
    deadline: Deadline
    progress: Progress

    def __post_init__(self) -> None:
        self.high = self.noise.delta_span[1]
        self.functions: dict[bytes, list[Point]] = {}  # pattern -> points of v_B, on its lower hull
        self.proven: list[tuple[Point, Point]] = []
        self.bounds: dict[
            tuple[Point, Point], float
        ] = {}  # of pieces that were given up: on loss - slope delta
        self.tries: Counter[tuple[float, float]] = Counter()

    def run(self) -> list[FrontierPiece]:
        self._trace(np.zeros((len(self.noise.shifts), self.noise.N), dtype=bool))
        while True:
            pieces = _envelope(list(self.functions.values()), 0.0, self.high)
            waiting = [
                piece for piece in pieces if piece not in self.bounds and not self._known(piece)
            ]
            if not waiting or self.deadline.has_passed:
                return [self._finished(piece) for piece in pieces]
            self.progress(waiting[0][0][0], len(pieces))
            self._settle(waiting[0], _HALVINGS)

    def _finished(self, piece: tuple[Point, Point]) -> FrontierPiece:
        (a, va), (b, vb) = piece
        if self._known(piece):
            return FrontierPiece(a, b, va, vb, True, va, vb)
        slope, bound = _slope(piece), self.bounds.get(piece)
        if (
            bound is None
        ):  # there was no time for it: one program with nothing decided, towards loss 0 at delta = 1
            slope = -va / (1.0 - a)
            bound = self._search(((a, va), (b, va + slope * (b - a))), root=True)[0].bound
        low, high = (max(0.0, min(bound + slope * x, value)) for x, value in piece)
        return FrontierPiece(a, b, va, vb, False, low, high)

    def _trace(self, pattern: Flags) -> bytes:
        """Enter the points of a pattern's value function; returns its key."""
        key = np.packbits(pattern).tobytes()
        if key not in self.functions:
            low, right = (
                self._vertex(pattern, (0.0, self.high), -_STEEP),
                self._vertex(pattern, (self.high, self.high)),
            )
            # at the least delta a program may be infeasible by rounding
            starts = (
                []
                if low is None
                else [low[0] + clear * JUMP_SEPARATION for clear in (0.0, 0.1, 1.0, 10.0, 100.0)]
            )
            for start in starts:
                left = self._vertex(pattern, (start, start)) if start <= self.high else None
                if left is not None and right is not None:
                    self.functions[key] = [
                        left,
                        *self._between(pattern, left, right, _DEEPEST),
                        right,
                    ]
                    break
        return key

    def _vertex(
        self, pattern: Flags, span: tuple[float, float], slope: float = 0.0
    ) -> Point | None:
        """The point (delta, loss) of least loss - slope delta of a pattern in full, None where the solver has none.
        Ctrl-C raises KeyboardInterrupt, as there is no other way to say so here."""
        relaxed, broken = self.relaxed, pattern[self.relaxed.shift, self.relaxed.element]
        values = relaxed.values(
            replace(self.noise, delta_span=span, delta_slope=slope), ~broken, broken
        )
        for start in (Start.HOT, Start.COLD):
            answer = self.session.solve(values, start=start)
            if answer.termination is Termination.INTERRUPTED:
                raise KeyboardInterrupt
            if answer.is_optimal and answer.x is not None:
                delta = float(answer.x[relaxed.program.block("delta").start])
                return min(max(delta, span[0]), span[1]), float(
                    self.noise.loss @ answer.x[: self.noise.N]
                )
        return None

    def _between(self, pattern: Flags, left: Point, right: Point, depth: int) -> list[Point]:
        """Breakpoints of v_B strictly between two of its points."""
        (a, va), (b, vb) = left, right
        if b - a <= 1e-12 or depth == 0:
            return []
        slope = (vb - va) / (b - a)
        lowest = self._vertex(pattern, (a, b), slope)
        if lowest is None or va + slope * (lowest[0] - a) - lowest[1] <= 1e-11 * max(1.0, abs(va)):
            return []
        before = self._between(pattern, left, lowest, depth - 1)
        return [*before, lowest, *self._between(pattern, lowest, right, depth - 1)]

    def _enter(self, key: bytes, point: Point) -> None:
        """Enter a point (delta, loss) of a pattern's value function."""
        points = self.functions.get(key, [])
        self.functions[key] = _lower_hull(
            [*points, point, (self.high, min([point[1], *(v for _, v in points)]))]
        )

    def _known(self, piece: tuple[Point, Point]) -> bool:
        """Whether a piece lies on a proven one."""
        (a, va), (b, vb) = piece
        for proven_piece in self.proven:
            (c, vc), (d, _) = proven_piece
            steep = _slope(proven_piece)
            small, near = _small(vc, steep), c - _SLIVER <= a and b <= d + _SLIVER
            if (
                near
                and abs(vc + steep * (a - c) - va) <= small
                and abs(vc + steep * (b - c) - vb) <= small
            ):
                return True
        return False

    def _settle(self, piece: tuple[Point, Point], halvings: int) -> bool:
        """Prove a piece, or enter what is better; else halve it, and at last give it up with the bound there is.

        Returns whether it is proven.
        """
        (a, va), (b, vb) = piece
        for again in (False, True):  # what tight tolerances leave of nodes without a checked ray
            outcome, cutoff = self._search(piece, again=again)
            ended = outcome.x is None and outcome.termination in (
                Termination.OPTIMAL,
                Termination.INFEASIBLE,
            )
            proven = (
                ended
                and not outcome.unchecked_infeasible
                and outcome.bound >= cutoff - 1e-11 * max(1.0, abs(cutoff))
            )
            if (
                not outcome.unchecked_infeasible and ended == proven
            ):  # else on a solver's word, or by loose duals
                break
        if outcome.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        self.tries[a, b] += 1
        if outcome.x is not None and self.tries[a, b] <= _TRIES:
            delta = float(outcome.x[self.relaxed.program.block("delta").start])
            loss = outcome.value + _slope(piece) * delta
            self._enter(
                self._trace(self.relaxed.broken_table(self.noise, outcome.x)), (delta, loss)
            )
            return False
        if proven:
            self.proven.append(piece)
            return True
        if (
            halvings
            and not self.deadline.has_passed
            and b - a > 4 * JUMP_SEPARATION
            and outcome.x is None
        ):
            middle = ((a + b) / 2, (va + vb) / 2)
            before = len(self.functions), sum(map(len, self.functions.values()))
            left = self._settle((piece[0], middle), halvings - 1)
            if self._settle((middle, piece[1]), halvings - 1) and left:
                self.proven.append(piece)
                return True
            if before != (len(self.functions), sum(map(len, self.functions.values()))):
                return False  # something better was found: the envelope has changed
        self.bounds[piece] = -np.inf if outcome.unchecked_infeasible else outcome.bound
        return False

    def _search(
        self, piece: tuple[Point, Point], *, root: bool = False, again: bool = False
    ) -> tuple[PatternOutcome, float]:
        """What is below a piece; with the value below which it looked.

        root: one program with nothing decided, however late it is; again: with the tightest tolerances.
        """
        (a, va), (b, _) = piece
        slope = _slope(piece)
        # short of the right end: a pattern that starts there makes rho* jump, and is known
        starts = b < self.high and any(
            abs(f[0][0] - b) < JUMP_SEPARATION for f in self.functions.values()
        )
        below = replace(
            self.noise,
            delta_span=(a, max(a, b - JUMP_SEPARATION) if starts else b),
            delta_slope=slope,
        )
        cutoff = va - slope * a - _small(va, slope)
        nodes, deadline = (0, Deadline()) if root else (None, self.deadline)
        tight = with_tight_tolerances(
            Options(feasibility_tolerance=1e-10, dual_feasibility_tolerance=1e-10), self.solver
        )
        with (
            self.solver.open(self.relaxed.program, tight)
            if again
            else nullcontext(self.session) as session
        ):
            # whole programs: what is better by little is found as well
            outcome = PatternSearch(
                below, self.relaxed, session, 1e-12, deadline, nodes, can_stop_early=False
            ).run(cutoff)
        return outcome, cutoff


def _small(value: float, slope: float) -> float:
    """What a value on a piece is proven to: TOLERANCE of it, or SHIFT of delta."""
    return VALUE_TOLERANCE * max(1.0, abs(value)) + DELTA_TOLERANCE * abs(slope)


def _slope(piece: tuple[Point, Point]) -> float:
    (a, va), (b, vb) = piece
    return (vb - va) / (b - a)


def _lower_hull(points: Sequence[Point]) -> list[Point]:
    """The points on the lower convex hull, by rising delta."""
    hull: list[Point] = []
    for x, v in sorted(points):
        if hull and hull[-1][0] == x:
            continue
        while len(hull) > 1:
            (x0, v0), (x1, v1) = hull[-2:]
            if (v1 - v0) * (x - x0) < (v - v0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, v))
    return hull
