"""The program of `models.unbiased` over some intervals, by a primal-dual interior-point method of its own.

Labels in far clusters, or that grow geometrically, put masses of 1e-7 and less of the largest into the equations that
tell near labels apart. A general solver's tolerances are absolute and its systems are regularized, so that it leaves
noise there. The cone ρ τ >= σ² is that of the matrices X_S = [[ρ, σ], [σ, τ]] >= 0, and the program of
`models.unbiased` a semidefinite one in blocks of two,

    min Σ_S ρ_S + m_S τ_S    s.t.  Σ_S F_jS τ_S = a_j,    Σ_S F_jS (o_jS τ_S + g_S σ_S) = b_j    for every j = 1..k,

with m = V/(h² (1+q)), g = √((1+q)/W) and o_jS = (c_S - y_j)/h: moments about a point y_j beside the label of the row,
or differences of far clusters would cancel. Multipliers λ, κ give Z_S = [[1, -g (F'κ)/2], [·, m - F'λ - (F∘o)'κ]].
λ = -ζ e_k alone is inside the dual cone, so every iterate is dual feasible, and proves its value. The directions are
those of Helmberg, Rendl, Vanderbei and Wolkowicz (1996), Kojima, Shindoh and Hara (1997) and Monteiro (1997),

    ΔX = ν Z⁻¹ - X - sym((X ΔZ + Q) Z⁻¹),      Q = ΔX ΔZ of the predictor,

whose 2k equations are solved by Cholesky factors: these do not depend on how rows and columns are scaled, so neither
does how well small masses come out. Dense in the labels: seconds for a thousand.

| here              | meaning                                                                          |
|-------------------|----------------------------------------------------------------------------------|
| Blocks: a, b, c   | [[a, b], [b, c]] for every set, (3, n)                                           |
| flow, about       | F (k, n) and F∘o; rows 1..k-1 are consecutive labels' differences, k the p-mean  |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.linalg import LinAlgError

from models.scaled_cholesky import ScaledCholesky
from models.unbiased import Intervals, dual_values, flows, masses
from solvers.arrays import Flags, Vector
from solvers.search import Deadline

Sparse = sp.csr_array

_STEPS = 120
_START = 10.0  # X and Z at the start, times the unit matrix, about
_SHARE = 0.9  # of the way to the cones' boundary
_GAP = 1e-10  # relative, of the program's two values
_FEASIBLE = 1e-9  # residual of a row, relative to what is added in it
_SHIFTS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10)  # of the scaled system, where it is not positive in floats
_REFINED = 2
_STUCK = 1e-5
_AHEAD = 1e-4  # a gap that far below the residual has run ahead: floats end before the rows are met
_LOST = 1e-2  # relative gap and residual of a point that says nothing


Blocks = Vector  # (3, n): a, b, c


def _inverse(x: Blocks) -> Blocks:
    a, b, c = x
    return np.asarray(np.array([c, -b, a]) / (a * c - b**2))


def _inner(x: Blocks, z: Blocks) -> Vector:
    """The inner product, set by set."""
    return np.asarray(x[0] * z[0] + 2 * x[1] * z[1] + x[2] * z[2])


def _inside(x: Blocks) -> bool:
    """Whether every one is positive definite, in floats."""
    a, b, c = x
    return bool((a > 0).all() and (a * c - b**2 > 0).all() and np.isfinite(c).all())


def _longest(x: Blocks, move: Blocks) -> float:
    """The largest step <= 1 along a move that stays in the cone."""
    (a, b, c), (da, db, dc) = x, move
    size, turn = a * c - b**2, a * dc + c * da - 2 * b * db
    root = np.sqrt(np.maximum(turn**2 - 4 * size * (da * dc - db**2), 0.0)) - turn
    return min(1.0, float((2 * size[root > 0] / root[root > 0]).min(initial=np.inf)))


def _product(x: Blocks, move: Blocks, inverse: Blocks) -> Blocks:
    """sym(X ΔZ Z⁻¹), for ΔZ whose first entry is 0."""
    (a, b, c), (_, e, f), (p, r, s) = x, move, inverse
    ul, ur, ll, lr = b * e, a * e + b * f, c * e, b * e + c * f  # X ΔZ
    return np.array([ul * p + ur * r, (ul * r + ur * s + ll * p + lr * r) / 2, ll * r + lr * s])


@dataclass(frozen=True)
class InteriorPoint:
    """t, s (n,): masses and moments; v, u (k,): multipliers of `models.unbiased`; their values over these intervals."""

    t: Vector
    s: Vector
    v: Vector
    u: Vector
    objective: float
    bound: float


class _Program:
    """The rows, and the dual slack of multipliers."""

    def __init__(self, labels: Vector, prior: Vector, q: float, sets: Intervals, unit: float, others: Flags) -> None:
        h, mean = np.sqrt(unit), prior @ labels
        weights = 1 + q * others
        beside = weights @ prior
        centres = weights @ (prior * labels) / beside
        spreads = (weights * (labels - centres[:, None]) ** 2) @ prior
        each = zip(sets.moments(labels, prior, q), (beside, centres, spreads), strict=True)
        W, c, V = (np.concatenate(pair) for pair in each)
        self.k, self.n = labels.size, W.size
        steps = np.vstack([np.diff(others.astype(float), axis=1).T, beside[None, :] / (1 + q)])
        flow = flows(sets, self.k, W[: sets.first.size] / (1 + q))
        self.flow = sp.csr_array(sp.hstack([flow, sp.csr_array(steps)])) if len(others) else flow
        entries = self.flow.tocoo()
        self.middles = np.append((labels[1:] + labels[:-1]) / 2, mean) / h
        about = (c[entries.col] / h - self.middles[entries.row]) * entries.data
        self.about = sp.csr_array((about, (entries.row, entries.col)), shape=self.flow.shape)
        self.spread, self.mass = np.sqrt((1 + q) / W), V / unit / (1 + q)
        self.right = np.concatenate([np.eye(1, self.k, self.k - 1)[0], np.diff(labels) / h * (1 + q) / q, [0.0]])

    def rows(self, x: Blocks) -> Vector:
        _, b, c = x
        return np.concatenate([self.flow @ c, self.about @ c + self.flow @ (self.spread * b)])

    def sizes(self, x: Blocks) -> Vector:
        """The size of what is added in every row."""
        (_, b, c), flow = x, abs(self.flow)
        return np.concatenate([flow @ c, abs(self.about) @ c + flow @ (self.spread * np.abs(b))])

    def move(self, multipliers: Vector) -> Blocks:
        """-Σ multipliers times rows."""
        first, second = multipliers[: self.k], multipliers[self.k :]
        moments = self.flow.T @ second
        below = -(self.flow.T @ first) - self.about.T @ second
        return np.array([np.zeros(self.n), -self.spread * moments / 2, below])

    def slack(self, multipliers: Vector) -> Blocks:
        return np.array([np.ones(self.n), np.zeros(self.n), self.mass]) + self.move(multipliers)

    def system(self, x: Blocks, inverse: Blocks) -> Vector:
        """⟨A_i, sym(X A_j Z⁻¹)⟩ of the rows. (2k, 2k)"""
        g, (a, b, c), (p, r, s) = self.spread, x, inverse
        both, cross = c * s, g * (b * s + c * r) / 2
        spread = g * g * (a * s + 2 * b * r + c * p) / 4

        def summed(left: Sparse, weights: Vector, right: Sparse) -> Vector:
            return np.asarray((left @ sp.diags_array(weights) @ right.T).toarray())

        F, G = self.flow, self.about
        mixed = summed(F, cross, G)
        beside = summed(F, both, G) + summed(F, cross, F)
        below = summed(G, both, G) + mixed + mixed.T + summed(F, spread, F)
        return np.block([[summed(F, both, F), beside], [beside.T, below]])


def interior_point(
    labels: Vector,
    prior: Vector,
    q: float,
    sets: Intervals,
    unit: float,
    others: Flags | None = None,
    deadline: Deadline | None = None,
) -> InteriorPoint | None:
    """The optimum over some intervals, to a relative gap of about 1e-10 where floats allow; None where there is none.

    labels: (k,), about 1 in size; prior: (k,); unit: about the size of the optimum; others: (m, k) more sets of labels,
    whose masses are left out of the point: for its multipliers' sake; deadline: to end at.
    """
    program = _Program(labels, prior, q, sets, unit, np.zeros((0, labels.size), bool) if others is None else others)
    n, right, deadline = program.n, program.right, deadline or Deadline()
    multipliers = np.zeros(2 * program.k)
    multipliers[program.k - 1] = -_START
    x, z = np.array([[_START], [0.0], [_START]]) * np.ones(n), program.slack(multipliers)
    proven, point = (-np.inf, multipliers), x
    least = np.inf
    for _ in range(_STEPS):
        inverse, mean = _inverse(z), float(_inner(x, z).sum()) / (2 * n)
        off = float((np.abs(right - program.rows(x)) / (program.sizes(x) + np.abs(right))).max())
        value = float(right @ multipliers)
        proven = max(proven, (value, multipliers), key=lambda pair: pair[0])
        # the point: what is missing in its rows counts like a gap
        if (lost := 2 * n * mean / max(abs(value), 1e-300) + off) < least:
            least, point = lost, x
        if (off < _FEASIBLE and 2 * n * mean < _GAP * abs(value)) or deadline.passed:
            break
        try:
            factors = ScaledCholesky(program.system(x, inverse), _SHIFTS, _REFINED)
        except LinAlgError:
            break
        _, dx, dz = _direction(program, factors, (x, inverse), np.zeros((3, n)))
        steps = _longest(x, dx), _longest(z, dz)
        ahead = float(_inner(x + steps[0] * dx, z + steps[1] * dz).sum()) / (2 * n)
        share = min(1.0, max(ahead / mean, 0.0)) ** 3
        share = max(share, 1e-6 if min(steps) > 0.1 else 0.3)
        if 2 * n * mean < _AHEAD * off * abs(value):
            share = 1.0  # the rows first
        aim = share * mean * inverse - _product(dx, dz, inverse)
        more, dx, dz = _direction(program, factors, (x, inverse), aim)
        steps = min(1.0, _SHARE * _longest(x, dx)), min(1.0, _SHARE * _longest(z, dz))
        if not max(steps) > _STUCK:
            break
        following = x + steps[0] * dx, multipliers + steps[1] * more
        slack = program.slack(following[1])
        if not (_inside(following[0]) and _inside(slack)):
            break  # floats end here
        x, multipliers, z = *following, slack
    return None if least > _LOST else _point(program, point, proven[1], (labels, prior, q, sets, unit))


def _direction(
    program: _Program, factors: ScaledCholesky, at: tuple[Blocks, Blocks], aim: Blocks
) -> tuple[Vector, Blocks, Blocks]:
    """(multipliers, ΔX, ΔZ) towards ν Z⁻¹ less what the second order takes from it; at: (X, Z⁻¹)."""
    x, inverse = at
    more = factors.solve(program.right - program.rows(aim))
    dz = program.move(more)
    return more, aim - x - _product(x, dz, inverse), dz


def _point(
    program: _Program, x: Blocks, multipliers: Vector, stated: tuple[Vector, Vector, float, Intervals, float]
) -> InteriorPoint:
    labels, prior, q, _, unit = stated
    k = program.k
    a, b, c = x[:, : stated[3].first.size]
    t, s = masses(*stated, np.concatenate([a + c, a - c, 2 * b]))
    moved = multipliers.copy()
    moved[:k] -= program.middles * multipliers[k:]
    v, u = dual_values(labels, prior, q, unit, moved)
    objective = float(x[0].sum() + program.mass @ x[2]) * unit
    return InteriorPoint(t, s, v, u, objective, float(program.right @ multipliers) * unit)
