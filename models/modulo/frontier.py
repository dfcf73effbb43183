"""Compute the smallest loss rho* of PDP noise as a function of delta, at fixed epsilon, exactly.

`compute_delta_frontier` returns a list of linear pieces, each with its losses and a proven bound.
rho* is piecewise linear: for example, it falls from 0.4 at delta = 0 to 0.3 at delta = 0.1 on one
piece, and jumps to 0.25 where the next one starts.

Notation. f is the PMF of the noise eta, rho the vector of losses of the noise values, mu a shift (a
difference of neighbouring answers). A pair (eta, mu) is broken if f(eta) > e^eps f(eta + mu). A
pattern says which pairs may be broken. (13) is the mixed-integer program of Kadam et al. 2024: the
smallest loss at a given delta.

For a set B of pairs that may be broken let v_B(delta) be the smallest loss of a PMF that keeps all
other pairs and has, for every mu, mass at most delta on the elements of B. This is a linear program
with delta on the right-hand side. So v_B is convex, piecewise linear and non-increasing from the
smallest delta at which it is feasible. rho* is the minimum of v_B over all B, because f is feasible
for (13) at delta if and only if it is feasible for the set B of pairs that it breaks. The frontier
is therefore a lower envelope:

1. Known patterns give an envelope E >= rho*, at first v of "nothing broken", the loss at delta = 0.
2. A piece of E, alpha + beta delta on [d1, d2], is proven by one more optimisation in which delta
   is a variable,
       min over patterns, f and delta in [d1, d2] of  rho'f - beta delta,
   solved by `workbench.models.modulo.search`: if nothing is below alpha (up to VALUE_TOLERANCE),
   rho* = E on the whole piece, between the breakpoints as well as at them.
3. Otherwise the better f breaks a pattern B, whose v_B lowers E, and the loop continues with the
   new pieces.

There are finitely many patterns, so this ends. All steps use one linear program in one solver
session: delta is a variable, and its interval, the slope and the pattern are parameters. rho* jumps
where delta becomes large enough for a pattern. Left of a jump, the piece is proven up to
JUMP_SEPARATION short of it.

v_B is traced exactly. With the slope of a chord of v_B, the same program for one pattern finds a
point of v_B below the chord, or proves that v_B is the chord. Rounding may spoil a trace where v_B
is steep, near the smallest delta that B needs. So the point (delta, loss) of the better f is added
as well. v_B is convex, so the lower hull of its points is an upper bound of it, and E falls at this
point even if the trace is wrong. If the solver fails on the program of a piece, the piece is
halved. A piece that stays unproven has the proven bound of its search.

If the loss is the error rate, with one eps, `workbench.models.modulo.level_frontier` computes the
frontier without a solver.

| paper (Kadam et al. 2024)            | here                       |
|--------------------------------------|----------------------------|
| rho*(delta)                          | `compute_delta_frontier`   |
| (15), smallest delta at a given loss | the inverse of rho*        |
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

Point = tuple[float, float]  # A point has a delta and a loss.
Line = tuple[Point, Point]  # A line has its left and its right end.
# A function that is called with a delta up to which all is settled, and a number of pieces.
Progress = Callable[[float, int], None]

VALUE_TOLERANCE = 1e-9  # Losses are proven up to this, relative to max(1, |loss|).
# Losses are proven up to this times the slope as well: where rho* falls steeply, a rounding of
# delta changes the loss.
DELTA_TOLERANCE = 1e-12
JUMP_SEPARATION = 1e-8  # A piece is proven up to this distance of delta from a jump.
_MAX_SLIVER_LENGTH = 1e-13  # A piece up to this length comes from rounding, and is joined.
_MAX_HALVINGS = 6  # A piece on whose program the solver fails is halved at most this often.
# The optimum of loss + this times delta has the smallest delta that a pattern needs.
_STEEP_SLOPE = 1e8
_MAX_TRACE_DEPTH = 60  # The interval of a pattern's function is split at most this often.
# A piece is searched at most this often for better points, since points that are lower only by
# rounding could repeat.
_MAX_TRIES = 30
# Pieces are joined only if their ends differ by at most this, relative to max(1, |loss|).
_MAX_VALUE_JUMP = 1e-12
# Pieces are joined if they are on one line up to this, relative to max(1, |loss|).
_MAX_LINE_ERROR = 1e-11
_MIN_FALL = 1e-13  # Lines whose slopes differ by less than this count as parallel.
_MIN_TRACE_LENGTH = 1e-12  # On a shorter interval the rounding of the losses decides the slope.
_MIN_TRACE_GAIN = 1e-11  # A point below the chord by less, relative to max(1, |loss|), is rounding.
# A bound below the cutoff by at most this, relative to max(1, |cutoff|), proves a piece.
_MAX_BOUND_ERROR = 1e-11
_SEARCH_GAP = 1e-12  # The relative gap of a search over patterns.
_CHECK_TOLERANCE = 1e-10  # Tolerances of the program when a piece is searched again.
# At the smallest delta of a pattern rounding may make its program infeasible. A trace then starts
# this many times JUMP_SEPARATION further right.
_START_OFFSETS = (0.0, 0.1, 1.0, 10.0, 100.0)


def _lower_envelope(functions: Sequence[list[Point]], low: float, high: float) -> list[Line]:
    """Return the linear pieces of the lower envelope of piecewise linear functions.

    Each function is a list of its points by rising delta, and reaches from its first point to
    `high`. Left of its first point it is infinite.
    """
    breakpoints = [[x for x, _ in points] for points in functions]
    grid = np.unique(np.concatenate([[low, high], *breakpoints]))
    grid = grid[(grid >= low) & (grid <= high)]
    tables = [np.array(points) for points in functions]
    value_rows = [np.interp(grid, f[:, 0], f[:, 1], left=np.inf) for f in tables]
    values = np.stack(value_rows)  # The shape is (functions, grid points).
    pieces = []
    # Between two grid points every function is one line. The envelope follows the lowest line until
    # a line that falls faster crosses it.
    for k, (a, b) in enumerate(zip(grid[:-1].tolist(), grid[1:].tolist(), strict=True)):
        is_defined = np.isfinite(values[:, k])
        left = values[is_defined, k]
        right = values[is_defined, k + 1]
        x = a
        # The line that is lowest at a; of several, the one that is lowest at b. `lexsort` orders by
        # its last key first.
        lowest = int(np.lexsort((right, left))[0])
        slopes = (right - left) / (b - a)
        while x < b:
            fall = slopes[lowest] - slopes
            with np.errstate(divide="ignore", invalid="ignore"):
                # Lines that cross no later than x are level with the lowest one there, up to
                # rounding.
                crossings = np.maximum(a + (left - left[lowest]) / fall, x)
            crossings = np.where(fall > _MIN_FALL, crossings, np.inf)
            next_lowest = int(np.lexsort((right, crossings))[0])
            stop = float(min(crossings[next_lowest], b))
            start_value = float(left[lowest])
            slope = float(slopes[lowest])
            if stop > x:
                left_end = (x, start_value + slope * (x - a))
                pieces.append((left_end, (stop, start_value + slope * (stop - a))))
            x = stop
            lowest = next_lowest
    return _join_collinear(pieces)


def _join_collinear(pieces: list[Line]) -> list[Line]:
    """Join neighbouring pieces that lie on one line. A sliver joins the piece on its left."""
    joined_pieces: list[Line] = []
    for piece in pieces:
        if joined_pieces and _can_join(joined_pieces[-1], piece):
            left_end, _ = joined_pieces[-1]
            _, right_end = piece
            joined_pieces[-1] = (left_end, right_end)
        else:
            joined_pieces.append(piece)
    return joined_pieces


def _can_join(first: Line, second: Line) -> bool:
    """Check whether two neighbouring pieces are one line, or the second one is a sliver.

    Pieces with different losses where they meet (at a jump) are never joined.
    """
    (x0, v0), (x1, v1) = first
    (_, w1), (x2, v2) = second
    extended_value = v1
    if x1 > x0:
        extended_value = v0 + (v1 - v0) * (x2 - x0) / (x1 - x0)
    if abs(w1 - v1) > _MAX_VALUE_JUMP * max(1.0, abs(v1)):
        return False
    is_on_line = abs(extended_value - v2) <= _MAX_LINE_ERROR * max(1.0, abs(v2))
    return is_on_line or x2 - x1 <= _MAX_SLIVER_LENGTH


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
    """Compute rho*(delta) on [0, high] for PDP at fixed epsilon.

    Args:
        sizes: orders of the cyclic factors.
        shifts: the differences mu of neighbouring answers. If neighbours are not directed, list -mu
            beside every mu.
        epsilon: eps > 0, one number or one for each shift.
        loss: a key of `workbench.models.modulo.program.LOSSES` other than "prior-squared" and
            "worst-squared", or the loss of every noise value, shape (N,).
        high: the largest delta, in (0, 1].
        solver: name of a backend with duals that solves linear programs to a vertex.
        seconds: time limit. Pieces that could not be proven in time have `is_proven` = False and a
            lower bound. None for no limit.
        progress: called before every search, with a delta and the number of pieces. All pieces
            left of this delta are settled (for level functions: the proven length of delta).

    Returns:
        The pieces in order of delta. They join, except at jumps of rho*.

    Raises:
        ValueError: `high`, `epsilon`, `shifts` or `loss` is outside its domain, or the solver has
            no dual values. A solver that cannot be used raises its own errors.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    if not 0 < high <= 1:
        raise ValueError(f"high must be in (0, 1]. Got {high}.")
    rho = loss_vector(loss, sizes) if isinstance(loss, str) else np.asarray(loss, dtype=float)
    mus = tuple(tuple(int(k) for k in shift) for shift in shifts)
    epsilons = np.broadcast_to(np.asarray(epsilon, dtype=float), (len(mus),))
    if rho.ndim != 1 or not (np.isfinite(epsilons) & (epsilons > 0)).all() or not mus:
        raise ValueError(
            "the frontier needs shifts, epsilon > 0 and a loss of one number per noise value."
        )
    noise = NoiseProblem(tuple(sizes), mus, np.exp(epsilons), rho, delta_span=(0.0, high))
    deadline = Deadline(seconds)
    backend = get_backend(solver)
    if not (backend.capabilities().duals and backend.capabilities().exact_vertex):
        raise ValueError(f"solver must give duals and vertices of linear programs. Got {solver!r}.")
    if has_levels(noise):
        search = LevelSearch(noise.sizes, noise.shifts, float(epsilons[0]), deadline)
        return compute_level_frontier(
            search, high, report=lambda pieces: progress(proven_length(pieces), len(pieces))
        )
    relaxation = build_relaxation(noise)
    options = with_tight_tolerances(Options(), backend)
    with backend.open(relaxation.program, options) as session:
        return _FrontierSearch(noise, backend, relaxation, session, deadline, progress).run()


@dataclass
class _FrontierSearch:
    """The computation of one frontier by the search over patterns.

    Attributes:
        noise: group, shifts, budgets and loss of the noise.
        backend: solver of the linear programs.
        relaxation: linear program that all patterns share.
        session: solver session of `relaxation.program`.
        deadline: deadline at which the search stops.
        progress: called with the delta up to which all is proven and the number of pieces.
        high: the largest delta.
        functions: points (delta, loss) of v_B on its lower hull, by the key of the pattern B.
        proven_pieces: pieces of the frontier that are proven.
        bounds: for pieces that were given up, the proven lower bound on loss - slope * delta.
        tries: number of searches of each interval of delta.
    """

    noise: NoiseProblem
    backend: Backend
    relaxation: Relaxation
    session: Session
    deadline: Deadline
    progress: Progress

    def __post_init__(self) -> None:
        _, self.high = self.noise.delta_span
        self.functions: dict[bytes, list[Point]] = {}
        self.proven_pieces: list[Line] = []
        self.bounds: dict[Line, float] = {}
        self.tries: Counter[tuple[float, float]] = Counter()

    def run(self) -> list[FrontierPiece]:
        """Prove the pieces from left to right until all are settled or time is up."""
        self._trace_pattern(np.zeros((len(self.noise.shifts), self.noise.N), dtype=bool))
        while True:
            pieces = _lower_envelope(list(self.functions.values()), low=0.0, high=self.high)
            open_pieces = [
                piece for piece in pieces if piece not in self.bounds and not self._is_proven(piece)
            ]
            if not open_pieces or self.deadline.has_passed:
                return [self._finish_piece(piece) for piece in pieces]
            (first_open_delta, _), _ = open_pieces[0]
            self.progress(first_open_delta, len(pieces))
            self._settle(open_pieces[0], halvings=_MAX_HALVINGS)

    def _finish_piece(self, piece: Line) -> FrontierPiece:
        """Return a piece with the bounds that are proven."""
        (a, value_a), (b, value_b) = piece
        if self._is_proven(piece):
            return FrontierPiece(
                delta_low=a,
                delta_high=b,
                value_low=value_a,
                value_high=value_b,
                is_proven=True,
                bound_low=value_a,
                bound_high=value_b,
            )
        slope = _slope_of(piece)
        bound = self.bounds.get(piece)
        if bound is None:
            # Time ran out before this piece was searched. One program with no pair decided gives a
            # bound, on the line towards loss 0 at delta = 1.
            slope = -value_a / (1.0 - a)
            line = ((a, value_a), (b, value_a + slope * (b - a)))
            outcome, _ = self._search(line, root_only=True)
            bound = outcome.bound
        bound_a, bound_b = (max(0.0, min(bound + slope * x, value)) for x, value in piece)
        return FrontierPiece(
            delta_low=a,
            delta_high=b,
            value_low=value_a,
            value_high=value_b,
            is_proven=False,
            bound_low=bound_a,
            bound_high=bound_b,
        )

    def _trace_pattern(self, broken_table: Flags) -> bytes:
        """Add the points of a pattern's value function v_B, unless they are known.

        The table says whether each pair may be broken, shape (shifts, N). Returns its key. If the
        solver finds no points, none are added.
        """
        key = np.packbits(broken_table).tobytes()
        if key in self.functions:
            return key
        first_point = self._find_vertex(broken_table, (0.0, self.high), -_STEEP_SLOPE)
        right = self._find_vertex(broken_table, (self.high, self.high))
        if first_point is None:
            return key
        first_delta, _ = first_point
        for offset in _START_OFFSETS:
            start = first_delta + offset * JUMP_SEPARATION
            left = None
            if start <= self.high:
                left = self._find_vertex(broken_table, (start, start))
            if left is not None and right is not None:
                breakpoints = self._find_breakpoints(broken_table, left, right, _MAX_TRACE_DEPTH)
                self.functions[key] = [left, *breakpoints, right]
                break
        return key

    def _find_vertex(
        self,
        broken_table: Flags,
        span: tuple[float, float],
        slope: float = 0.0,
    ) -> Point | None:
        """Return the point with the smallest loss - slope * delta, for delta in a span.

        Exactly the pairs of the table may be broken. Returns None if the solver finds no point.
        Raises KeyboardInterrupt at Ctrl-C, which the session reports as a termination.
        """
        relaxation = self.relaxation
        low, high = span
        is_broken = broken_table[relaxation.shift, relaxation.element]
        noise = replace(self.noise, delta_span=span, delta_slope=slope)
        values = relaxation.values(noise, ~is_broken, is_broken)
        # If a hot start finds no optimum, a cold start may.
        for start in (Start.HOT, Start.COLD):
            answer = self.session.solve(values, start=start)
            if answer.termination is Termination.INTERRUPTED:
                raise KeyboardInterrupt
            if answer.is_optimal and answer.x is not None:
                delta = float(answer.x[relaxation.program.block("delta").start])
                loss = float(self.noise.loss @ answer.x[: self.noise.N])
                return min(max(delta, low), high), loss
        return None

    def _find_breakpoints(
        self,
        broken_table: Flags,
        left: Point,
        right: Point,
        depth: int,
    ) -> list[Point]:
        """Return the breakpoints of v_B strictly between two of its points.

        An interval is split at most `depth` times.
        """
        (a, value_a), (b, value_b) = left, right
        if b - a <= _MIN_TRACE_LENGTH or depth == 0:
            return []
        slope = (value_b - value_a) / (b - a)
        lowest = self._find_vertex(broken_table, (a, b), slope)
        if lowest is None:
            return []
        lowest_delta, lowest_value = lowest
        chord_value = value_a + slope * (lowest_delta - a)
        if chord_value - lowest_value <= _MIN_TRACE_GAIN * max(1.0, abs(value_a)):
            return []
        left_points = self._find_breakpoints(broken_table, left, lowest, depth - 1)
        right_points = self._find_breakpoints(broken_table, lowest, right, depth - 1)
        return [*left_points, lowest, *right_points]

    def _add_point(self, key: bytes, point: Point) -> None:
        """Add a point of a pattern's value function.

        The function is non-increasing. So its value at `high` is at most the lowest value of any
        point.
        """
        points = self.functions.get(key, [])
        # v_B does not rise, so its smallest known loss is possible at the right end as well.
        last_value = min(value for _, value in [*points, point])
        self.functions[key] = _lower_hull([*points, point, (self.high, last_value)])

    def _is_proven(self, piece: Line) -> bool:
        """Check whether a piece lies on a proven one."""
        (a, value_a), (b, value_b) = piece
        for proven_piece in self.proven_pieces:
            (c, value_c), (d, _) = proven_piece
            slope = _slope_of(proven_piece)
            tolerance = _proof_tolerance(value_c, slope)
            is_within = c - _MAX_SLIVER_LENGTH <= a and b <= d + _MAX_SLIVER_LENGTH
            error_a = abs(value_c + slope * (a - c) - value_a)
            error_b = abs(value_c + slope * (b - c) - value_b)
            if is_within and error_a <= tolerance and error_b <= tolerance:
                return True
        return False

    def _settle(self, piece: Line, halvings: int) -> bool:
        """Prove a piece, or add a better point. If neither works, halve it, or give it up.

        Args:
            piece: an open piece of the envelope, or a part of one.
            halvings: the piece may be halved this many times.

        Returns:
            Whether the piece is proven. A piece that was given up has an entry in `bounds`.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed during the search.
        """
        (a, value_a), (b, value_b) = piece
        outcome, is_proven = self._search_reliably(piece)
        if outcome.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        self.tries[a, b] += 1
        if outcome.x is not None and self.tries[a, b] <= _MAX_TRIES:
            delta = float(outcome.x[self.relaxation.program.block("delta").start])
            loss = outcome.value + _slope_of(piece) * delta
            key = self._trace_pattern(self.relaxation.broken_table(self.noise, outcome.x))
            self._add_point(key, (delta, loss))
            return False
        if is_proven:
            self.proven_pieces.append(piece)
            return True
        # The halves stay longer than the distance that a search keeps from a jump.
        can_halve = halvings and not self.deadline.has_passed and b - a > 4 * JUMP_SEPARATION
        if can_halve and outcome.x is None:
            left_end, right_end = piece
            middle = ((a + b) / 2, (value_a + value_b) / 2)
            last_counts = self._count_points()
            is_left_proven = self._settle((left_end, middle), halvings - 1)
            if self._settle((middle, right_end), halvings - 1) and is_left_proven:
                self.proven_pieces.append(piece)
                return True
            if last_counts != self._count_points():
                return False  # A better point was found, so the envelope has changed.
        self.bounds[piece] = outcome.bound
        if outcome.unchecked_infeasible:
            self.bounds[piece] = -np.inf
        return False

    def _search_reliably(self, piece: Line) -> tuple[PatternOutcome, bool]:
        """Search below a piece, and again with tight tolerances if the first outcome is doubtful.

        Returns the outcome of the last search, and whether it proves the piece.
        """
        for has_tight_tolerances in (False, True):
            outcome, cutoff = self._search(piece, has_tight_tolerances=has_tight_tolerances)
            # An infeasible node is settled by the solver's status alone if its ray fails the check.
            is_checked = not outcome.unchecked_infeasible
            has_no_point = outcome.x is None and outcome.termination in (
                Termination.OPTIMAL,
                Termination.INFEASIBLE,
            )
            min_bound = cutoff - _MAX_BOUND_ERROR * max(1.0, abs(cutoff))
            is_proven = has_no_point and is_checked and outcome.bound >= min_bound
            # Without a point, a bound below `min_bound` shows that the duals were too loose.
            is_reliable = is_checked and (is_proven or not has_no_point)
            if is_reliable:
                break
        return outcome, is_proven

    def _count_points(self) -> tuple[int, int]:
        """Return the number of patterns and of all their points."""
        return len(self.functions), sum(map(len, self.functions.values()))

    def _search(
        self,
        piece: Line,
        *,
        root_only: bool = False,
        has_tight_tolerances: bool = False,
    ) -> tuple[PatternOutcome, float]:
        """Search once for a PMF whose point (delta, loss) lies below a piece.

        The search minimises loss - slope * delta. On the piece this number is constant.

        Args:
            piece: the piece, with its slope.
            root_only: whether to solve only one program, in which no pair is decided, and to ignore
                the deadline.
            has_tight_tolerances: whether to open a new solver session with tight tolerances.

        Returns:
            The outcome, and the cutoff: only points with loss - slope * delta < cutoff count.
        """
        (a, value_a), (b, _) = piece
        slope = _slope_of(piece)
        # If a known pattern starts at the right end, rho* jumps there. The search then ends
        # JUMP_SEPARATION before that end.
        first_deltas = [delta for (delta, _), *_ in self.functions.values()]
        has_jump = b < self.high and any(
            abs(first_delta - b) < JUMP_SEPARATION for first_delta in first_deltas
        )
        end = max(a, b - JUMP_SEPARATION) if has_jump else b
        noise = replace(self.noise, delta_span=(a, end), delta_slope=slope)
        cutoff = value_a - slope * a - _proof_tolerance(value_a, slope)
        node_limit = None
        deadline = self.deadline
        if root_only:
            node_limit = 0
            deadline = Deadline()
        tight_options = with_tight_tolerances(
            Options(
                feasibility_tolerance=_CHECK_TOLERANCE,
                dual_feasibility_tolerance=_CHECK_TOLERANCE,
            ),
            self.backend,
        )
        with (
            self.backend.open(self.relaxation.program, tight_options)
            if has_tight_tolerances
            else nullcontext(self.session) as session
        ):
            # Programs do not stop early, so that slightly better points are found as well.
            search = PatternSearch(
                noise,
                self.relaxation,
                session,
                gap=_SEARCH_GAP,
                deadline=deadline,
                node_limit=node_limit,
                can_stop_early=False,
            )
            outcome = search.run(cutoff)
        return outcome, cutoff


def _proof_tolerance(value: float, slope: float) -> float:
    """Return the absolute tolerance to which a value on a piece is proven."""
    return VALUE_TOLERANCE * max(1.0, abs(value)) + DELTA_TOLERANCE * abs(slope)


def _slope_of(piece: Line) -> float:
    """Return the slope of a piece."""
    (a, value_a), (b, value_b) = piece
    return (value_b - value_a) / (b - a)


def _lower_hull(points: Sequence[Point]) -> list[Point]:
    """Return the points on the lower convex hull, by rising delta."""
    hull: list[Point] = []
    for x, v in sorted(points):
        if hull:
            last_x, _ = hull[-1]
            if last_x == x:
                continue
        while len(hull) > 1:
            (x0, v0), (x1, v1) = hull[-2:]
            if (v1 - v0) * (x - x0) < (v - v0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, v))
    return hull
