"""Lower bounds at (ε, δ) on the loss of every channel for real answers of which any two are neighbours.

Answers x_i in order with weights p_i, Σ p = 1. Take any multipliers λ_i and A_i(o), B_i(o) >= 0 that fall as o moves
away from x_i, and r_i(o) = p_i c(o - x_i) - λ_i + A_i(o) + B_i(o). Every channel M costs, as Σ_o M_i(o) = 1,

    loss = Σ λ + Σ_o Σ_i r_i M_i - Σ_o Σ_i (A_i + B_i) M_i

Lemma. Where r >= 0 does not fall as o moves away from x_i, and for every output o

    e^ε Σ_i A_i(o) <= Σ_{x_j > o} r_j(o),        e^ε Σ_i B_i(o) <= Σ_{x_j < o} r_j(o)

the loss is at least Σ λ - δ Σ_i (A_i(x_i) + B_i(x_i)). Proof. A_i is a sum of layers, weights w on the outputs of
intervals S around x_i, and r_j left of x_j one of rays, weights on all outputs below some end. From right to left over
the outputs every layer is put on rays of e^ε times its weight when its right end is reached, and leaves them beyond its
left end: rays only begin on the way, so that by the first inequality there are always enough. Each layer S of i stays
on the same rays, of some j with shares θ_j, and M_i(S) <= δ + e^ε Σ_j θ_j M_j(S) at (ε, δ). Summed over layers,

    Σ_o Σ_i A_i M_i <= δ Σ_i A_i(x_i) + Σ_o Σ_{x_j > o} r_j M_j

and B_i likewise with rays to the right of x_j. ∎ With r_i < 0 somewhere the loss is less by max_o r_i^- at most; where
r_j falls, its least value further out takes its place; where only shares a_i of A_i fit, the rest costs A_i(x_i)
at most and not δ A_i(x_i). So `_proven` holds for all numbers, whatever the digits of the programs that find them.

With v_i = p_i c(o - x_i) - λ_i, v = v^+ - v^-, λ best at δ = 0 and A + B = v^-, so that r = v^+, the bound is (1 - δ) Σ
λ where the lemma holds, which the best channel at δ = 0 reaches where it publishes the answer itself with probability
δ: with three bins and more A = a v^-, B = (1 - a) v^-, shares a_i, did in all that was tried (`bound_of`). With one bin
or two only some of the best λ are as good (`bound_of_few`). Nor are all p that are best at δ = 0; the loss of the worst
answer is at least the mean under any p, and all of the lemma is linear in p, λ, A and B together (`bound_of_worst`).

An output between two of those given, the x_i among them, may be drawn at random from the two, with itself as the mean:
that costs no more where c(r) = |r|, and L²/4 more at most where they are L apart and c(r) = r²; one beyond them all
becomes the nearest. So the outputs are those given, and the caller takes L²/4 off.

Without the λ (`bound_of_bins`): at δ = 0 there are λ_i >= 0 with Σ_j v_j^+ >= e^ε Σ_i v_i^- and Σ λ = U, the least
loss, for the outputs of M and those of the best bins (duality; rows of sums >= 1 cost as much, as one that cannot be
lowered anywhere is the least everywhere, so that all can be scaled). With θ_j(o) = v_j^+/Σ v^+, Σ_o Σ_i v_i^- M_i <=
Σ_ij Σ_o θ_j v_i^- (M_i - e^ε M_j) + Σ_o Σ_j v_j^+ M_j, so that

    loss >= U - δ Σ_i λ_i A_i,      A_i = Σ_j max_o (v_i^-(o)/λ_i) v_j^+(o) / (F(o) - U),      F(o) = Σ_j p_j c(o - x_j)

as Σ v^+ >= Σ v = F - U. As v_i^- <= λ_i, Σ_j p_j max_o c(o - x_j)/(F - U) is above A_i for all i: for c(r) = r² it is 1
+ K/(K - U), K = F(m), m the mean (Cauchy and Schwarz: F = K + (o - m)²); for |r| the maximum is convex in x_j, so
chords are above it. With many bins v_i^- is narrow: let r_i be the distance to the value of a bin beside that of x_i.
The d bins have the loss Σ λ + Σ_bins (G + q Σ_own v_i^+ + q Σ_others v_i^-)/(d + q), G = Σ v^+ - e^ε Σ v^- >= 0, q =
e^ε - 1, so that all λ_i that exceed p_i c(r_i) do by (d + q)/q times what the loss is above U at most; lowering them to
it leaves Σ v^+ >= e^ε Σ v^- true. So v_i^-/λ_i <= 1 - c(e/r_i), e = |o - x_i| < r_i. With D = |x_i - x_j|, g = F(x_i) -
U, k = |F'(x_i)|, as F is convex, A_i <= Σ_j p_j max_e (1 - c(e/r)) c(D + e)/(g - k e), where k r < g, and

    |r|: (1 - e/r)/(g - k e) <= (1 - e/s)/g, 1/s = 1/r - k/g; (1 - e/s)(D + e) <= D, plus s/4 where D < s; where
         D >= s + r_j, v_j^+ = p_j c - λ_j, for which it is D - λ_j/p_j; else λ_j <= p_j r_j. So, as F - Σ λ = g,
             A_i <= 1 + (s/4 Σ_{D < s} p_j + Σ_{D < s + r_j} p_j r_j)/g
    r²:  1/(g - k e) <= (1 + h e)/g <= (1 + h e/2)²/g, h = k/(g - k r); (1 - e²/r²)(D + e z)² <= D² + r² z² (Cauchy and
         Schwarz), z = 1 + h (D + r)/2. So, as Σ p D² = F, with Minkowski's inequality
             A_i <= (F + r² (1 + h (r + √F)/2)²)/g
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.losses import loss_named
from models.oracles.bins import Bins, optimal_bins
from models.quantizer import largest_ratio
from solvers.arrays import Flags, Vector
from solvers.backend import solve
from solvers.data import Data
from solvers.program import Block, Program
from solvers.solution import Solution

_ROUNDED = 1e-9  # relative, more than floats lose
_CHORDS, _TINY, _SMALL = 65, 1e-200, 1e-3
_FEWEST, _OF_A_BIN, _OF_A_GAP = 24, 8, 4  # cells between points of a bound of the worst answer, outputs between them
_NEAR, _NARROW = 1.0, 3  # bins between an answer and outputs where A or B are above 0, where there are more bins


def bound_of_bins(x: Vector, p: Vector, bins: Bins, epsilon: float, delta: float, loss: str) -> float:
    """The bound of the best bins at δ = 0, without multipliers, rounded down. x: (k,) increasing; p: (k,) of sum 1;
    loss: absolute or squared."""
    moment, below = np.cumsum(p * x), np.cumsum(p)
    values = np.concatenate([[-math.inf], bins.values, [math.inf]])
    own = np.searchsorted(bins.starts, np.arange(x.size), side="right")
    r = np.minimum(np.minimum(abs(x - values[own - 1]), abs(values[own + 1] - x)), x[-1] - x[0])
    if loss == "squared":
        spread = float(p @ (x - moment[-1]) ** 2)
        F, k = spread + (x - moment[-1]) ** 2, 2 * abs(x - moment[-1])
        most = 1 + spread / max(spread * (1 - _ROUNDED) - bins.objective, _TINY)
    else:
        F = x * (2 * below - below[-1]) + moment[-1] - 2 * moment
        k = np.maximum(abs(2 * below - 1), abs(2 * (below - p) - 1))
    g = np.maximum(F * (1 - _ROUNDED) - bins.objective, _TINY)
    narrow = np.flatnonzero((k * r < g) & (p > 0))
    x_, r_, F_, k_, g_ = (each[narrow] for each in (x, r, F, k, g))
    if loss == "squared":
        A = (F_ + (r_ * (1 + k_ / (g_ - k_ * r_) * (r_ + np.sqrt(F_)) / 2)) ** 2) / g_
    else:
        at = np.linspace(x[0], x[-1], _CHORDS)
        most = float(p @ np.interp(x, at, np.array([(abs(x - each) / g).max() for each in at])))
        s = r_ / (1 - k_ * r_ / g_)

        def within(terms: Vector, reach: Vector) -> Vector:
            sums = np.append(0.0, np.cumsum(terms))
            return np.asarray(sums[np.searchsorted(x, x_ + reach, "right")] - sums[np.searchsorted(x, x_ - reach)])

        A = 1 + (s / 4 * within(p, s) + within(p * r, s + r[p > 0].max())) / g_
    if narrow.size == np.count_nonzero(p):
        most = min(most, float(A.max()))
    q = math.expm1(epsilon)
    least = bins.bound - (bins.objective - bins.bound) * (bins.d + q) / q
    return least * (1 - delta * most * (1 + _ROUNDED))


def bound_of(
    x: Vector, p: Vector, outputs: Vector, multipliers: Vector, loss: str, ratio: float, delta: float
) -> float:
    """The bound of any multipliers, by the best A = a v^- and B = b v^-, rounded down.

    x, p: (k,) as above; outputs: (m,) increasing, the x among them; multipliers: (k,) λ; ratio: e^ε, rounded up.
    """
    from scipy.optimize import linprog  # slow to import

    v, below = _costs(x, p, outputs, loss) - multipliers[:, None], x[:, None] > outputs
    less, alone = np.maximum(-v, 0.0), sp.eye_array(x.size)
    rays = [(np.maximum(v, 0.0) * side).sum(axis=0) for side in (below, x[:, None] < outputs)]
    units = [np.maximum(each, _SMALL * each.max()) for each in rays]
    charged = sp.block_diag([sp.csr_array(less.T * (ratio / unit[:, None])) for unit in units])
    rows: Any = sp.vstack([charged, sp.hstack([alone, alone])], format="csr")
    limits = np.concatenate([*(each / unit for each, unit in zip(rays, units, strict=True)), np.ones(x.size)])
    worth = np.tile(np.maximum(multipliers, 0.0), 2) / multipliers.sum()
    solution = linprog(-worth, rows, limits, bounds=(0, None), method="highs")
    a, b = np.zeros((2, x.size)) if solution.x is None else solution.x.reshape(2, -1)
    return _proven((x, p, outputs, loss), multipliers, a[:, None] * less, b[:, None] * less, ratio, delta)


def bound_of_worst(
    points: Vector, prior: Vector, epsilon: float, delta: float, loss: str, solve: Callable[[Program], Solution] = solve
) -> float:
    """The bound on the loss of the worst answer, by the best of all priors, rounded down: a program on points that are
    spread as the bins of some points under a prior that is good at δ = 0 are. solve: what solves it."""
    starts = optimal_bins(points, prior, epsilon, loss).starts
    ends, below = np.append(points[starts], points[-1]), np.arange(starts.size + 1.0)
    x = np.unique(np.interp(np.linspace(0, starts.size, max(_FEWEST, _OF_A_BIN * starts.size) + 1), below, ends))
    gaps, outputs, width = np.diff(x), x, 0.0
    if loss == "squared":
        parts = np.ceil(_OF_A_GAP * gaps / gaps.mean()).astype(int)
        steps = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        outputs = np.append(np.repeat(x[:-1], parts) + np.repeat(gaps / parts, parts) * steps, x[-1])
        width = float(np.diff(outputs).max())
    apart = np.abs(np.interp(x, ends, below)[:, None] - np.interp(outputs, ends, below))
    near = apart <= (_NEAR if starts.size > _NARROW else math.inf)
    value = bound_of_few(x, None, outputs, loss, largest_ratio(epsilon), delta, near, solve)
    return value - width**2 / 4


def bound_of_few(
    x: Vector, p: Vector | None, outputs: Vector, loss: str, ratio: float, delta: float, near: Flags | None = None,
    solve: Callable[[Program], Solution] = solve,
) -> float:  # fmt: skip
    """The bound of the best λ, A and B, rounded down: a program; 0 where its solver stops. Arguments as of `bound_of`,
    but p: None for the prior that proves most, which is a bound for the worst answer; near: (k, m) where A and B may
    be above 0, everywhere by default; solve: what solves the program."""
    near = np.ones((x.size, outputs.size), dtype=bool) if near is None else near
    (k, m), size = near.shape, int(near.sum())
    answer, output = np.nonzero(near)
    table, own = loss_named(loss)(outputs[None], x[:, None]), x[:, None] == outputs
    sides = right, _ = x[:, None] > outputs, x[:, None] < outputs
    stated = sp.csr_array((np.ones(size), (np.flatnonzero(near), np.arange(size))), shape=(k * m, size))
    masses = sp.csr_array((table.ravel(), (np.arange(k * m), np.arange(k).repeat(m))), shape=(k * m, k))
    touched = near[:, :-1] | near[:, 1:]
    inward = sp.diags_array(np.where(right[:, :-1], 1.0, -1.0)[touched])
    steps = sp.eye_array(m - 1, m) - sp.eye_array(m - 1, m, k=1)
    falls = inward @ sp.kron(sp.eye_array(k), steps, "csr")[touched.ravel()]
    T, peaks = falls @ stated, stated[own.ravel()]
    totals = sp.csr_array((np.ones(size), (output, np.arange(size))), shape=(m, size))
    rays = [totals @ sp.diags_array(side[answer, output] * 1.0) for side in sides]
    costs = [sp.csr_array((-table * side).T) for side in sides]
    sums = [sp.csr_array(side.T * 1.0) for side in sides]
    rows = sp.csc_array(sp.block_array([
        [None, None, T, None],
        [None, None, None, T],
        [-falls @ masses, None, -T, -T],
        [None, sp.eye_array(k), -peaks, -peaks],
        [costs[0], sums[0], ratio * totals - rays[0], -rays[0]],
        [costs[1], sums[1], -rays[1], ratio * totals - rays[1]],
        [sp.csr_array(np.ones((1, k))), None, None, None],
    ]))  # fmt: skip
    rows.data[np.abs(rows.data) < _ROUNDED] = 0.0  # as solvers do: whatever they find is a bound
    rows.eliminate_zeros()
    peak = delta * own[answer, output]
    cost = np.concatenate([np.zeros(k), np.full(k, -1.0), peak, peak])
    high, (first, last) = np.append(np.zeros(rows.shape[0] - 1), 1.0), (0.0, np.inf) if p is None else (p, p)
    lower, upper = np.zeros(cost.size), np.full(cost.size, np.inf)
    lower[:k], upper[:k], lower[k : 2 * k] = first, last, -np.inf
    left = np.append(np.full(high.size - 1, -np.inf), 1.0)
    data = Data(cost, 0.0, rows, left, high, lower, upper, np.zeros(cost.size, dtype=bool))
    blocks = Block("p", 0, (k,)), Block("λ", k, (k,)), Block("A", 2 * k, (size,)), Block("B", 2 * k + size, (size,))
    solution = solve(Program("bound of a range", data, variables=blocks))
    if solution.x is None:
        return 0.0
    if p is None:
        p = np.maximum(solution["p"], 0.0)
    A, B = (np.asarray(stated @ solution[each]).reshape(k, m) for each in "AB")
    return _proven((x, p / p.sum(), outputs, loss), solution["λ"], A, B, ratio, delta)


def _costs(x: Vector, p: Vector, outputs: Vector, loss: str) -> Vector:
    return np.asarray(p[:, None] * loss_named(loss)(outputs[None], x[:, None]))


def _proven(question: Any, multipliers: Vector, A: Vector, B: Vector, ratio: float, delta: float) -> float:
    """The bound of any λ, A and B: what falls short of the lemma is taken off, or paid."""
    x, outputs, total = question[0][:, None], question[2], float(multipliers.sum())

    def least(T: Vector, *, back: bool) -> Vector:
        return np.minimum.accumulate(T[:, ::-1], axis=1)[:, ::-1] if back else np.minimum.accumulate(T, axis=1)

    A, B = (np.where(_ROUNDED * T.max() < T, T, 0.0) for T in (A, B))
    A, B = (np.where(x > outputs, least(np.where(x < outputs, np.inf, T), back=True),
                     least(np.where(x > outputs, np.inf, T), back=False)) for T in (A, B))  # fmt: skip
    r = _costs(*question) - multipliers[:, None] + A + B
    total -= float(np.maximum(-r, 0.0).max(axis=1).sum())
    r = np.maximum(r, 0.0)
    for T, side, back in ((A, x > outputs, False), (B, x < outputs, True)):
        rays, taken = (least(r, back=back) * side).sum(axis=0) * (1 - _ROUNDED), ratio * T.sum(axis=0)
        fits = np.minimum(1.0, rays / np.maximum(taken, _TINY))
        share = np.where(T > 0, fits, 1.0).min(axis=1)
        total -= float((1 - (1 - delta) * share) @ T.max(axis=1))
    return total - _ROUNDED * float(np.abs(multipliers).sum())
