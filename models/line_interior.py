"""The linear program of noise under hockey sticks (`models.line_program`) by a primal-dual interior-point method.

Many shifts press at once on a fine grid, on many outcomes each: thousands of rows for some hundred columns, which the
simplex method meets in hundreds of rounds. With t_so = max(0, P_o - m Q_o) of a shift s as columns,

    min c'x    s.t.   w'x = 1,    R_s x - t_s + u_s = 0,    Σ_o t_so + r_s = δ,    x, t, u, r >= 0
    max λ - δ Σ_s y_s    s.t.   z = c + Σ_s R_s'v_s - λ w,    0 <= v_so <= y_s,    z >= 0

Newton's equations are solved for the columns x alone: with D = 1/(t/(y - v) + u/v), τ = t/(y - v), and U_s = (τD)'R_s

    z/x + Σ_s R_s'D R_s + U_s U_s' / (Σ_o τD u/v + r/y)_s

has the size of x however many shifts and outcomes there are. Mehrotra's predictor and corrector (1992).

An end that counts: x is scaled to mass 1 and its excess measured; v and y, with v cut off at y, prove a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from models.block_sums import Target
from models.requirements import Bound
from models.scaled_cholesky import ScaledCholesky
from models.tangent_program import Comparisons, Multipliers
from models.tangents import term_tangents
from solvers.arrays import Vector
from solvers.errors import SolverError
from solvers.search import Deadline

_STEPS, _STUCK = 250, 6  # at most; that bring neither a better point nor a better bound
_SHARE = 0.995  # of the way to where a variable vanishes
_SHIFTS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11)  # of the scaled system, where it is not positive in floats
_REFINED = 1  # times, for the rounding of a solution
_CORRECTIONS, _FARTHER, _GAIN = 3, 0.2, 0.02  # of a step: how many, how much longer each aims at, and has to reach
_APART = 10.0  # times what products of pairs are to be, or a share of it, from where they are drawn
_START = 0.1  # least z at the start, relative to the largest cost

Parts = tuple[Vector, ...]


@dataclass(frozen=True)
class InteriorPoint:
    """The least point met, within the limits if there was one, and v and y of the best bound.

    x: columns of mass 1; bound: in floats; excess: over the worst limit, relative; steps: in all; stuck: since it.
    """

    excess: float
    value: float
    x: Vector
    bound: float
    v: Vector
    y: Vector
    steps: int = 1
    stuck: int = 0

    def better(self, other: InteriorPoint) -> InteriorPoint:
        """With what another knows better."""
        point = min(self, other, key=lambda each: (each.excess, each.value))
        proof = max(self, other, key=lambda each: each.bound)
        stuck = self.stuck + 1 if self is point is proof else 0
        return replace(point, bound=proof.bound, v=proof.v, y=proof.y, steps=self.steps + 1, stuck=stuck)

    def multipliers(self, compared: Comparisons, bounds: Sequence[Bound]) -> list[Multipliers]:
        """Those of the bound."""
        multipliers = []
        for bound, of_bound, of_sums in zip(bounds, self.v, self.y.tolist(), strict=True):
            for second, v, of_sum in zip(compared.second, of_bound, of_sums, strict=True):
                o = np.flatnonzero(v > 0)
                a, b = term_tangents(bound, np.ones(o.size), np.ones(o.size))
                multipliers.append(Multipliers(bound.limit, of_sum, o, compared.first[o], second[o], a, b, v[o]))
        return multipliers


class _Program:
    """The program; R of (bounds, shifts, outcomes), and what is made of it. Few outcomes are no single column each
    (`far`)."""

    def __init__(self, costs: Vector, mass: Vector, compared: Comparisons, bounds: Sequence[Bound]) -> None:
        self.costs, self.mass, self.size = costs, mass, costs.size
        self.limits = np.array([bound.limit for bound in bounds])[:, None]
        self.entries, self.first, self.second = compared.entries, compared.first, compared.second
        self.back, (shifts, _) = self.entries.T.tocsr(), self.second.shape
        self.levels = -np.array([term_tangents(b, np.ones(1), np.ones(1))[1] for b in bounds])[:, :, None]
        self.far = self.first > self.size
        own = self.entries.toarray()
        places = own[self.second[:, self.far]]
        self.dense = own[self.first[self.far]] - self.levels[..., None] * places  # (bounds, shifts, far, columns)
        near = np.flatnonzero(~self.far)
        self.p = np.tile(self.first[near], shifts)
        self.q = self.second[:, near].ravel()
        self.row = np.repeat(np.arange(shifts) * (self.size + 1), near.size)

    def times(self, x: Vector) -> Vector:
        """R x."""
        e = self.entries @ x
        return np.asarray(e[self.first] - self.levels * e[self.second])

    def back_times(self, v: Vector) -> Vector:
        """R'v."""
        count = self.entries.shape[0]
        e = np.bincount(self.first, v.sum(axis=(0, 1)), count)
        e -= np.bincount(self.second.ravel(), (self.levels * v).sum(axis=0).ravel(), count)
        return self.back @ e

    def gram(self, weights: Vector) -> Vector:
        """R'diag(weights)R."""
        size, near = self.size + 1, weights[:, :, ~self.far]
        once, cross, twice = (((self.levels**k) * near).sum(axis=0).ravel() for k in range(3))
        whole = np.bincount(self.p * size + self.q, -cross, size * size).reshape(size, size)
        whole += whole.T
        whole.flat[:: size + 1] += np.bincount(self.p, once, size) + np.bincount(self.q, twice, size)
        far = np.sqrt(weights[:, :, self.far]).reshape(-1, 1) * self.dense.reshape(-1, self.size)
        return np.asarray(whole[:-1, :-1] + far.T @ far)

    def sums(self, weights: Vector) -> Vector:
        """Σ_o weights R of every bound and shift: (bounds shifts, columns)."""
        (shifts, _), size, sums = self.second.shape, self.size + 1, []
        for level, part, dense in zip(self.levels.ravel(), weights, self.dense, strict=True):
            near = part[:, ~self.far].ravel()
            e = np.bincount(self.row + self.p, near, shifts * size)
            e -= level * np.bincount(self.row + self.q, near, shifts * size)
            sums.append(e.reshape(shifts, size)[:, :-1] + np.einsum("so,son->sn", part[:, self.far], dense))
        return np.vstack(sums)

    def start(self) -> _Iterate:
        """Even masses."""
        x, shape, largest = np.full(self.size, 1 / self.mass.sum()), self.second.shape, float(np.abs(self.costs).max())
        level = largest / shape[0]
        excess = self.times(x)
        t = np.maximum(excess, 0.0) + self.limits[:, :, None] / shape[1]
        y, v = np.full((len(self.limits), shape[0]), level), np.full(t.shape, level / 2)
        z = np.maximum(self.costs + self.back_times(v), _START * largest)
        slack = np.maximum(self.limits - t.sum(axis=2), self.limits)
        return _Iterate((x, t, t - excess, slack), (z, y[:, :, None] - v, v, y), 0.0)

    def met(self, at: _Iterate) -> InteriorPoint:
        """What an iterate proves."""
        x, (_, _, v, y) = at.primal[0] / (self.mass @ at.primal[0]), at.dual
        v = np.minimum(v, y[:, :, None])
        bound = float(((self.costs + self.back_times(v)) / self.mass).min() - (self.limits * y).sum())
        excess = float((np.maximum(self.times(x), 0.0).sum(axis=2) / self.limits).max() - 1)
        return InteriorPoint(max(excess, 0.0), float(self.costs @ x), x, bound, v, y)


class _Iterate(NamedTuple):
    """primal: x, t, u, r; dual: z, y - v, v, y, each the slack of the one; level: λ."""

    primal: Parts
    dual: Parts
    level: float

    @property
    def products(self) -> Parts:
        return tuple(p * q for p, q in zip(self.primal, self.dual, strict=True))

    def moved(self, steps: tuple[float, float], move: _Iterate) -> _Iterate:
        primal, dual = (
            tuple(p + step * d for p, d in zip(side, way, strict=True))
            for step, side, way in zip(steps, self[:2], move[:2], strict=True)
        )
        return _Iterate(primal, dual, self.level + steps[1] * move.level)

    def steps(self, move: _Iterate, share: float) -> tuple[float, float]:
        """The longest <= 1, of the primal and the dual side, and a share of the way to where a variable vanishes."""
        a, b = (
            max(float((-d / p).max()) for p, d in zip(side, way, strict=True))
            for side, way in zip(self[:2], move[:2], strict=True)
        )
        return min(1.0, share / max(a, 1e-300)), min(1.0, share / max(b, 1e-300))


class _Newton:
    """Newton's equations at an iterate, factored. Raises LinAlgError."""

    def __init__(self, program: _Program, at: _Iterate) -> None:
        self.program, self.at = program, at
        (x, t, u, r), (z, w, v, y) = at.primal, at.dual
        self.wrong = (
            1 - program.mass @ x,
            t - u - program.times(x),
            program.limits - t.sum(axis=2) - r,
            program.costs + program.back_times(v) - program.mass * at.level - z,
            y[:, :, None] - v - w,
        )
        self.ratio = t / w
        self.weight = 1 / (self.ratio + u / v)
        self.both = self.ratio * self.weight
        self.across = program.sums(self.both)
        self.own = (self.both * (u / v)).sum(axis=2).ravel() + (r / y).ravel()
        scaled = self.across / np.sqrt(self.own)[:, None]
        matrix = program.gram(self.weight) + scaled.T @ scaled
        matrix.flat[:: x.size + 1] += z / x
        self.factors = ScaledCholesky(matrix, _SHIFTS, _REFINED)
        self.even = self.factors.solve(program.mass)

    def move(self, products: Parts, whole: bool) -> _Iterate:
        """To these products of the pairs, less what they are, and (whole) to where the equations hold."""
        (x, t, u, r), (z, w, v, y) = self.at.primal, self.at.dual
        rx, rt, ru, rr = products
        mass, row, limit, reduced, gap = self.wrong if whole else (0.0,) * 5
        stays = rt / w - self.ratio * gap
        moved = ru / v - stays - row
        rest = (limit - rr / y - stays.sum(axis=2) - (self.both * moved).sum(axis=2)).ravel()
        right = rx / x - reduced - self.program.back_times(self.weight * moved) + self.across.T @ (rest / self.own)
        dx = self.factors.solve(right)
        level = (mass - self.program.mass @ dx) / (self.program.mass @ self.even)
        dx = dx + level * self.even
        dy = ((self.across @ dx - rest) / self.own).reshape(y.shape)
        dv = self.weight * (self.program.times(dx) + self.ratio * dy[:, :, None] + moved)
        dw = dy[:, :, None] - dv + gap
        primal = dx, (rt - t * dw) / w, (ru - u * dv) / v, (rr - r * dy) / y
        return _Iterate(primal, ((rx - z * dx) / x, dw, dv, dy), float(level))


def interior_point(
    costs: Vector, mass: Vector, compared: Comparisons, bounds: Sequence[Bound], gap: float, deadline: Deadline
) -> InteriorPoint:
    """A point within all bounds whose value is about as close to the proven bound as a relative gap.

    costs, mass: c and w, (columns,); bounds: hockey sticks with δ > 0. Raises SolverError.
    """
    program, known = _Program(costs, mass, compared, bounds), None
    with threadpool_limits(1, "blas"), np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # small systems
        at = program.start()
        while (known is None or known.steps < _STEPS) and not deadline.passed:
            met = program.met(at)
            if not np.isfinite(met.bound + met.excess):
                break
            known = met if known is None else known.better(met)
            if known.stuck == _STUCK or (not known.excess and known.value - known.bound <= gap * abs(known.value)):
                break
            try:
                at = _stepped(_Newton(program, at))
            except LinAlgError:
                break
    if known is None:
        raise SolverError("the interior-point method met no point.")
    return known


def _stepped(newton: _Newton) -> _Iterate:
    """Where Mehrotra's step leads, corrected while that makes it longer: products of pairs that a longer one would take
    far from the others are drawn to them (Gondzio, Comput. Optim. Appl. 6, 1996)."""
    at = newton.at
    products = at.products
    count, total = sum(part.size for part in products), sum(float(part.sum()) for part in products)
    first = newton.move(tuple(-part for part in products), whole=True)
    after = sum(float(part.sum()) for part in at.moved(at.steps(first, 1.0), first).products)
    goal = total / count * (after / total) ** 3
    whole = first.moved((1.0, 1.0), newton.move(tuple(goal - part for part in first.products), whole=False))
    for _ in range(_CORRECTIONS):
        a, b = at.steps(whole, 1.0)
        target = Target(min(1.0, a + _FARTHER), min(1.0, b + _FARTHER), goal / _APART, goal * _APART)
        drawn = tuple(map(target.more, at.primal, whole.primal, at.dual, whole.dual))
        corrected = whole.moved((1.0, 1.0), newton.move(drawn, whole=False))
        if sum(at.steps(corrected, 1.0)) < a + b + _GAIN:
            break
        whole = corrected
    return at.moved(at.steps(whole, _SHARE), whole)
