"""Programs whose columns hold laws under convex bounds (`workbench.models.convex.tangent_program`) by a primal-dual
interior method, from even laws, which are within all bounds.

    min c'x   s.t.   A x = b,   G x <= h,   low <= x <= high,   g_i(x) = Σ_o φ(P_o, Q_o) / limit - 1 <= 0

With slacks s of all inequalities, their multipliers y and derivatives J, and H = Σ y_i ∇²g_i, Newton's equations are

    (H + J'(y/s)J) dx - A'dλ = A'λ - c - J'(y + (μ - s y + y (Jx + s))/s),     A dx = b - A x

solved with the rows of J and A beside x, where H is sparse: of a channel, a block for each output.

φ is homogeneous: its second derivative is w (dP - r dQ)², r = P/Q, so that an outcome adds a matrix of rank one to H.

A notion that bounds every level θ of a range, g(x, θ) <= 0, is stated where g has its maxima over θ, which move with x.
There ∂g/∂θ = 0, so that the largest g has the derivative of g in x, and as its second derivative (local reduction,
Hettich and Kortanek 1993, Sec. 7)

    ∇²g - (∂²g/∂x∂θ) (∂²g/∂x∂θ)' / (∂²g/∂θ²)

Mehrotra's predictor and corrector (1992) with one step length, at whose end x is within all bounds, of all levels, and
no product s y is far below the others. Only a guess: what is claimed is proven by the tangents at its point, with y as
their multipliers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.linalg import LinAlgError

from workbench.models.convex.requirements import POWER_CONE, Bound
from workbench.models.convex.tangents import max_term_sum
from workbench.solvers.arrays import Integers, Pair, Positions, Vector
from workbench.solvers.data import Data
from workbench.solvers.search import Deadline

_STEPS, _SHARE, _LESS = (
    300,
    0.99,
    0.7,
)  # at most; of the way to where a variable vanishes; of a step that is refused
_SHORTEST, _CAUTIOUS = 1e-8, 1e-2  # step; from which on it raises y
_TURNS = 2  # by which levels follow
_NEAR, _CAREFUL = (
    1e-4,
    0.9,
)  # products s y, over their mean, at least; of them, how much stays after steps of length 0
_GAP, _WRONG = (
    1e-9,
    1e-6,
)  # relative, at which it ends: Σ s y over the value, equations over the largest cost
_SLOW, _STUCK = 0.05, 8  # steps so short, and how many of them, or at the gap, in a row end it
_LITTLE = 1e-10  # share of the largest cost, up to which the costs of a bound do not count
_PRESSES = 0.5  # of a limit, from where a level is stated
_NOISE, _FLAT = 1e-12, 1e-9  # of g; of its second derivative
_STEP, _FINE = 2.0**-7, 2.0**36  # of differences in θ; θ are multiples of its inverse
_CELLS, _FAR = (
    160,
    2.0**-4,
)  # of the range of θ in which maxima are looked for; the longest step of θ
_LESS_EVEN, _MORE_EVEN = (
    3.0,
    2.0,
)  # times that products of ends of columns may be below and above even ones
_EVENED = 2  # times, that equations are scaled
_TINY = 1e-300  # mass that counts as 0
_APART, _BEGIN = 1e-3, 0.1  # slacks at least at the start; Σ s y there, over the largest cost


@dataclass(frozen=True)
class LevelRange:
    """The bounds of every level θ in a range. at: the bound of a level."""

    low: float
    high: float
    bound_at: Callable[[float], Bound]


def _measured(kind: str, level: Vector, p: Vector, q: Vector) -> tuple[Vector, ...]:
    """φ, its derivatives in P and Q, and w. level: (..., 1); p, q: (..., outcomes)."""
    ratio = p / q
    if kind == POWER_CONE:
        rise = ratio ** (level - 1)
        slopes = level * (rise - 1), (1 - level) * (ratio * rise - 1)
        return (
            np.maximum(slopes[0] * p + slopes[1] * q, 0.0),
            *slopes,
            level * (level - 1) * rise / p,
        )
    log = np.log(ratio)
    return np.maximum(p * log - p + q, 0.0), log, 1 - ratio, 1 / p


class ComparisonBounds:
    """Of comparisons `at`, with their levels; (K,) each. kinds, m, limits: in numbers."""

    def __init__(self, at: Positions, bounds: Sequence[Bound]) -> None:
        self.comparisons, self.bounds = at, list(bounds)
        self.kinds = np.array([bound.kind for bound in bounds], dtype=object)
        self.levels = np.array([bound.level for bound in bounds])[:, None]
        self.limits = np.array([max_term_sum(bound) for bound in bounds])[:, None]

    def evaluate(self, p: Vector, q: Vector) -> list[Vector]:
        """g, (K,), and the derivatives of its terms and w, (K, outcomes), at all laws (comparisons, outcomes)."""
        parts = [np.zeros((len(self.bounds), p.shape[1])) for _ in range(4)]
        for kind in set(self.kinds):
            here = self.kinds == kind
            of_kind = _measured(
                kind, self.levels[here], p[self.comparisons[here]], q[self.comparisons[here]]
            )
            for part, values in zip(parts, of_kind, strict=True):
                part[here] = values / self.limits[here]
        return [parts[0].sum(axis=1) - 1, *parts[1:]]


class _Program:
    """The program in its free columns, (columns,) each, with ends of columns below alone."""

    def __init__(
        self, data: Data, entries: sp.csr_array, first: Integers, second: Integers
    ) -> None:
        self.free = data.upper > data.lower
        self.fixed, equal = np.where(self.free, 0.0, data.lower), data.row_lower == data.row_upper
        rows, beside = data.A.tocsr()[:, self.free].toarray(), data.A @ self.fixed
        self.above, below = (
            np.isfinite(side) & ~equal for side in (data.row_upper, data.row_lower)
        )
        self.A, self.b = rows[equal], (data.row_upper - beside)[equal]
        self.G = np.vstack([rows[self.above], -rows[below]])
        self.h = np.concatenate(
            [(data.row_upper - beside)[self.above], (beside - data.row_lower)[below]]
        )
        self.c, self.low = data.c[self.free], data.lower[self.free]
        self.ends = np.flatnonzero(np.isfinite(self.low))
        self.scale = float(np.abs(self.c).max(initial=0.0)) or 1.0
        self.entries, self.constant = sp.csr_array(entries[:, self.free]), entries @ self.fixed
        self.first, self.second = np.broadcast_to(first, second.shape), second

    def laws(self, x: Vector) -> Pair:
        """(P, Q), no mass of which is 0."""
        e = np.maximum(self.entries @ x + self.constant, _TINY)
        return e[self.first], e[self.second]

    def slacks(self, x: Vector) -> Vector:
        """Of the ends and rows."""
        return np.concatenate([(x - self.low)[self.ends], self.h - self.G @ x])

    def slopes(self, at: Positions, a: Vector, b: Vector) -> Vector:
        """Σ_o a P_o + b Q_o of comparisons as rows, (K, columns)."""
        size, rows = self.constant.size, np.arange(at.size)[:, None]
        e = np.bincount((rows * size + self.first[at]).ravel(), a.ravel(), at.size * size)
        e += np.bincount((rows * size + self.second[at]).ravel(), b.ravel(), at.size * size)
        return (self.entries.T @ e.reshape(at.size, size).T).T

    def bend(self, at: Positions, weights: Vector, ratios: Vector) -> sp.csr_array:
        """Σ weights (dP - r dQ)², (columns, columns)."""
        first, second, size = self.first[at].ravel(), self.second[at].ravel(), self.constant.size
        w, r = weights.ravel(), ratios.ravel()
        where = (
            np.concatenate([first, second, first, second]),
            np.concatenate([first, second, second, first]),
        )
        e = sp.csr_array(
            (np.concatenate([w, w * r * r, -w * r, -w * r]), where), shape=(size, size)
        )
        return sp.csr_array(self.entries.T @ e @ self.entries)


class _Interior:
    """The iterate: x; s and y of ends, rows and bounds, in this order; λ. stated: bounds, first those that are given,
    each of all comparisons, then those of the levels theta."""

    def __init__(
        self,
        program: _Program,
        bounds: Sequence[Bound],
        levels: LevelRange | None,
        x: Vector,
        *,
        loose: bool,
    ) -> None:
        self.program, self.x, self.last, count = program, x, 0.0, len(program.second)
        self.loose = loose
        self.given = ComparisonBounds(
            np.tile(np.arange(count), len(bounds)), [b for b in bounds for _ in range(count)]
        )
        self.stated, self.theta, self.grid = self.given, np.zeros(0), list[float]()
        if levels is not None:
            self.at, self.ends = lru_cache(maxsize=None)(levels.bound_at), (levels.low, levels.high)
            self.grid = _fine(np.linspace(levels.low, levels.high, _CELLS)).tolist()
            self.wide = 1.5 * (self.grid[1] - self.grid[0])
            self.cells = [
                ComparisonBounds(np.arange(count), [self.at(theta)] * count) for theta in self.grid
            ]
        self.g = self.stated.evaluate(*program.laws(x))[0]
        s = np.concatenate([np.maximum(program.slacks(x), _APART), -self.g])
        self.s, self.y, self.dual = s, _BEGIN * program.scale / s.size / s, np.zeros(program.b.size)

    @property
    def gap(self) -> float:
        """Σ s y."""
        return float(self.s @ self.y)

    def step(self) -> bool:
        """Whether there was one. Raises LinAlgError."""
        here, s, y, linear = self.program, self.s, self.y, self.s.size - self.g.size
        _, a, b, w = self.stated.evaluate(*here.laws(self.x))
        p, q = (side[self.stated.comparisons] for side in here.laws(self.x))
        J = np.vstack([here.G, here.slopes(self.stated.comparisons, a, b)])
        ends, rest = slice(0, here.ends.size), slice(here.ends.size, None)
        reduced = here.c + J.T @ y[rest] - here.A.T @ self.dual
        if self.loose:  # what is left of a cost, where that is near, leaves no residual
            even = self.gap / s.size / s[ends]
            y[ends] = np.clip(reduced[here.ends], even / _LESS_EVEN, even * _MORE_EVEN)
        reduced[here.ends] -= y[ends]
        matrix = here.bend(self.stated.comparisons, w * y[linear:, None], p / q)
        wrong = np.concatenate([s[:linear] - here.slacks(self.x), self.g + s[linear:]])
        missing = here.b - here.A @ self.x
        self.off = float(np.abs(reduced) @ np.abs(self.x))
        self.wrong = max(
            float(np.abs(each).max(initial=0.0)) for each in (reduced / here.scale, missing, wrong)
        )
        along, stiff = self._reduced(y[linear:])
        own = np.zeros(self.x.size)
        own[here.ends] = (y / s)[ends]
        diagonal = np.concatenate([0 * missing, (s / y)[rest], stiff])
        solve = _solver(matrix + sp.diags_array(own), np.vstack([-here.A, J, along]), diagonal)
        none = np.zeros(stiff.size)

        def move(products: Vector) -> tuple[Vector, ...]:
            right = -reduced
            right[here.ends] += ((products + y * wrong) / s)[ends]
            dx, more = solve(right, np.concatenate([-missing, (-wrong - products / y)[rest], none]))
            ds = -wrong - np.concatenate([-dx[here.ends], J @ dx])
            return dx, ds, (products - y * ds) / s, more[: missing.size]

        _, ds, dy, _ = move(-s * y)
        length = min(_longest(s, ds), _longest(y, dy))
        mean = self.gap / s.size
        after = float((s + length * ds) @ (y + length * dy)) / s.size
        goal = mean * max((after / mean) ** 3, _CAREFUL * (1 - self.last) ** 2, 1e-6)
        goal = max(goal, 0.3 * _GAP * abs(float(here.c @ self.x)) / s.size)
        moved = move(goal - s * y - length * ds * dy)
        length = min(1.0, _SHARE * min(_longest(s, moved[1]), _longest(y, moved[2])))
        while not self._reaches(length, *moved):
            length *= _LESS
            if length < _SHORTEST:
                return False
        self.last = length
        return True

    def _of_levels(self, at: Positions, theta: Vector) -> ComparisonBounds:
        """The bounds of levels, each of its comparison."""
        return ComparisonBounds(at, [self.at(level) for level in theta.tolist()])

    def _reduced(self, y: Vector) -> Pair:
        """(R, d): what levels that follow x add to H is R' diag(1/d) R. y: of the stated bounds."""
        low, high = self.ends if self.theta.size else (0.0, 0.0)
        inner = np.flatnonzero((self.theta - _STEP > low) & (self.theta + _STEP < high))
        which, laws = self.given.comparisons.size + inner, self.program.laws(self.x)
        if not inner.size:
            return np.zeros((0, self.x.size)), np.zeros(0)
        at = self.stated.comparisons[which]
        (g, a, b, _), (h, c, d, _) = (
            self._of_levels(at, self.theta[inner] + side).evaluate(*laws)
            for side in (-_STEP, _STEP)
        )
        bend = (2 * self.g[which] - g - h) / _STEP**2
        rows = self.program.slopes(at, (c - a) / (2 * _STEP), (d - b) / (2 * _STEP))
        bent = bend > _FLAT
        return rows[bent], (bend / y[which])[bent]

    def _reaches(self, length: float, dx: Vector, ds: Vector, dy: Vector, dual: Vector) -> bool:
        """Go so far, if that is within all bounds and no product is far below the others. Levels follow."""
        x, linear = self.x + length * dx, self.s.size - self.g.size
        laws = self.program.laws(x)
        stated, theta = self.stated, self.theta
        if self.grid:
            at, theta = self._apart(*self._followed(*self._with_tops(laws), laws))
            levels = self._of_levels(at, theta)
            stated = ComparisonBounds(
                np.concatenate([self.given.comparisons, at]), [*self.given.bounds, *levels.bounds]
            )
        g = stated.evaluate(*laws)[0]
        if not (g < 0).all():
            return False
        s, y = np.concatenate([self.s[:linear] + length * ds[:linear], -g]), self.y + length * dy
        mean = float((s[: y.size] @ y) / y.size)
        y = np.concatenate([y, mean / s[y.size :]])
        if length < _CAUTIOUS:
            y = np.maximum(y, _NEAR * mean / s)
        elif not (s * y >= _NEAR * mean).all():
            return False
        self.x, self.s, self.y, self.dual = x, s, y, self.dual + length * dual
        self.stated, self.theta, self.g = stated, theta, g
        return True

    def _with_tops(self, laws: Pair) -> tuple[Positions, Vector]:
        """Comparisons and their levels, also levels of the grid where a comparison comes near the limit, and none is
        stated nearby."""
        heights = np.pad(
            [cell.evaluate(*laws)[0] for cell in self.cells],
            ((1, 1), (0, 0)),
            constant_values=-np.inf,
        )
        tops = (
            (heights[1:-1] >= heights[:-2])
            & (heights[1:-1] >= heights[2:])
            & (heights[1:-1] > -_PRESSES)
        )
        at, theta = (
            self.stated.comparisons[self.given.comparisons.size :].tolist(),
            self.theta.tolist(),
        )
        for cell, k in np.argwhere(tops).tolist():
            level = self.grid[cell]
            if not any(
                other == k and abs(near - level) < self.wide
                for other, near in zip(at, theta, strict=True)
            ):
                at, theta = [*at, k], [*theta, level]
        return np.array(at, dtype=np.intp), np.array(theta)

    def _apart(self, at: Positions, theta: Vector) -> tuple[Positions, Vector]:
        """Without new levels that lead to others."""
        kept = [*range(self.theta.size)]
        for k in range(self.theta.size, theta.size):
            if not any(at[j] == at[k] and abs(theta[j] - theta[k]) < self.wide / 10 for j in kept):
                kept.append(k)
        return at[kept], theta[kept]

    def _followed(self, at: Positions, theta: Vector, laws: Pair) -> tuple[Positions, Vector]:
        """Levels at the tops of parabolas through three of them, where bounds are higher there."""
        low, high = self.ends

        def heights(levels: Vector) -> Vector:
            return self._of_levels(at, levels).evaluate(*laws)[0]

        for _ in range(_TURNS if theta.size else 0):
            middle = np.clip(theta, low + _STEP, high - _STEP)
            before, here, behind = (heights(middle + side) for side in (-_STEP, 0.0, _STEP))
            bend = np.minimum(before - 2 * here + behind, -_TINY)
            new = _fine(
                np.clip(
                    middle + np.clip((before - behind) / (2 * bend) * _STEP, -_FAR, _FAR), low, high
                )
            )
            theta = np.where(heights(new) > heights(theta) - _NOISE, new, theta)
        return at, theta


def _fine(levels: Vector) -> Vector:
    return np.rint(levels * _FINE) / _FINE


def _solver(
    matrix: sp.csr_array, rows: Vector, diagonal: Vector
) -> Callable[[Vector, Vector], Pair]:
    """Solves M x + R'v = a, R x - D v = b, scaled to entries of about one, columns first: M is sparse. Raises
    LinAlgError."""
    from scipy.sparse.linalg import splu  # slow to import

    beside = sp.csr_array(rows)
    whole = sp.csr_array(
        sp.vstack([sp.hstack([matrix, beside.T]), sp.hstack([beside, sp.diags_array(-diagonal)])])
    )
    if not np.isfinite(whole.data).all():
        raise LinAlgError("the equations overflowed")
    size = np.ones(whole.shape[0])
    for _ in range(_EVENED):
        scaled = abs(whole) * size
        size /= np.sqrt(np.maximum(scaled.max(axis=1).toarray().ravel() * size, _TINY))
    try:
        factors = splu(sp.csc_array(whole * size * size[:, None]), "NATURAL")
    except RuntimeError as error:
        raise LinAlgError("the equations are singular") from error

    def solve(a: Vector, b: Vector) -> Pair:
        x = size * factors.solve(size * np.concatenate([a, b]))
        if not np.isfinite(x).all():
            raise LinAlgError("the equations are singular")
        return x[: a.size], x[a.size :]

    return solve


def _longest(v: Vector, dv: Vector) -> float:
    """Step to where a variable vanishes."""
    return 1 / max(float((-dv / v).max()), _TINY)


class InteriorPoint(NamedTuple):
    """Columns x within all bounds, near the optimum; the bounds that press there, each with its comparison and its
    multiplier, of Σ φ <= limit; multipliers of rows, >= 0 of those that are at most a limit, (rows,)."""

    x: Vector
    active_bounds: list[tuple[Bound, int, float]]
    row_multipliers: Vector


def solve_interior_point(
    data: Data,
    comparisons: tuple[sp.csr_array, Integers, Integers],
    bounds: Sequence[Bound],
    level_range: LevelRange | None,
    even_columns: Vector,
    deadline: Deadline | None = None,
    gap: float | None = None,
) -> InteriorPoint | None:
    """Where it ends; None where even laws are not within the bounds.

    compared: entries, first and second of `workbench.models.convex.tangent_program.Comparisons`; bounds: of all
    comparisons, cones with limits > 0; levels: further ones; even: columns whose laws are even; gap: relative, that is
    enough where columns are priced once more, so that multipliers of those in use count alone.
    """
    from threadpoolctl import threadpool_limits  # slow to import

    program = _Program(data, *comparisons)
    with (
        threadpool_limits(1, "blas"),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        at = _Interior(
            program, bounds, level_range, even_columns[program.free], loose=gap is not None
        )
        if not (at.g < 0).all():
            return None
        slow = 0
        for _ in range(_STEPS):
            try:
                if (deadline is not None and deadline.has_passed) or not at.step():
                    break
            except LinAlgError:
                break
            enough = (gap or _GAP) * abs(float(program.c @ at.x))
            slow = slow + 1 if at.last < _SLOW or (at.loose and at.gap < enough) else 0
            if slow == _STUCK or (
                at.gap < enough and (at.wrong < _WRONG or (at.loose and at.off < enough))
            ):
                break
        _, a, b, _ = at.stated.evaluate(*program.laws(at.x))
    x = program.fixed.copy()
    x[program.free] = at.x
    y = at.y[at.s.size - at.g.size :]
    presses = np.flatnonzero(y * np.abs(np.hstack([a, b])).max(axis=1) > _LITTLE * program.scale)
    limits = at.stated.limits[:, 0]
    rows = np.zeros(data.row_upper.size)
    rows[data.row_lower == data.row_upper] = at.dual
    rows[program.above] = at.y[program.ends.size :][: program.above.sum()]
    return InteriorPoint(
        x,
        [
            (at.stated.bounds[k], int(at.stated.comparisons[k]), float(y[k] / limits[k]))
            for k in presses
        ],
        rows,
    )
