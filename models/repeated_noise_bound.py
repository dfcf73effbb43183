"""No symmetric noise on the integers costs less, where T runs are (ε, δ)-private in all: a linear program.

Take a set A of outcomes and its mirror image (of sensitivity 1, η -> -1 - η). What a round says of them is a letter +,
- or 0 with P = (p, n, 1-p-n), Q = (n, p, 1-p-n), p = P(A), n = Q(A) = r p, r < 1. T letters follow from T outputs, so
they are (ε, δ)-private too, and

    δ_T(p, r) = Σ_s Pr[#(+) - #(-) = s] (1 - e^ε r^s)+  <=  δ

which bounds p by p(r): more of the letters + and - says more. A letter of ratio r in [r', r''] says no less than the
one of ratio r'' it becomes when + and - are confused, which has the same p + n. So for every E >= 1 and all A

    P(A) - E Q(A)  <=  h(E) = max over cells of  p(r'') (1 + r'')/(1 + r') (1 - E r')

and with A = {P > E Q} the hockey stick H_E <= h(E). These hold of one run: they are bounds of the linear program of
`models.line_program`, whose optimum over symmetric noise is then a bound.

Not of all noise: in one run noise mixed with its mirror image is as private as the noise, in several it need not be.
With P = (0, 1/2, 1/2), Q = (1/10, 1/10, 8/10) and e^ε = 3 two runs have δ = .24 and, of (Q, P), .19, but .2775 where
P is mixed with the mirror image of Q and Q with that of P. `models.composed_event_bound` has two letters only and holds
of all noise: for 16 runs, ε = 1, δ = 1e-5 its program gives 54.5 % of the best squared loss found (76.5 % of the
absolute), this one 64.7 % (83.2 %). No such bound comes near 100 % where runs are many: of Gaussian noise two letters
keep at most 2/π = 64 % of the Fisher information of an output on a shift (the sign), three letters 81 %, so that noise
of so much less variance passes all of them.

Rounding. δ_T(p, r) is a polynomial in the masses p, r p and 1 - p - r p with coefficients >= 0: masses rounded down
give a value rounded down. With u = 2^-53,

    masses      r p is off by its u-th, the middle one by u (1 - p) + u r p + u < 3 u: 4 u is taken off of both
    powers      sums of products of positive numbers are off by a factor 1 ± (4T + 2) u each, in whatever order;
                squaring doubles what was off before, so that T letters are off by 1 ± 8 T (1 + log2 T) u, less than
                1 ± 1e-9 for T <= 2^16, and by 1e-300 where products are too small for a float
    losses      ln r and ε - s ln(1/r) are off by 2 u s ln(1/r) + u |ε - s ln(1/r)|: 8 u (ε + s ln(1/r)) is taken off

so that `_composed` is never above δ_T(p, r). p(r) is a number where it exceeds δ: δ_T grows with p (a letter may
be replaced by 0 at random), hence no larger p is feasible either.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize.elementwise import find_root

from models.requirements import HOCKEY_STICK, Bound
from solvers.arrays import Vector

_UNIT = 2.0**-53
_SAFE = 1e-9  # relative, of the composition of T <= 2^16 letters
_CELLS = 1000
_ENTRIES = 2**16  # of a table of ratios and sums
_LARGEST_LOSS = 700.0  # Larger losses have ratios that underflow; the bound for the last ratio covers them.
_SHORT = 20  # columns up to which shifted sums beat a convolution for each row


def _worth(runs: int, epsilon: float, ratios: Vector) -> Vector:
    """(1 - e^ε r^s)+ for s = -T..T, rounded down: a row for each r."""
    losses = -np.log(ratios)[:, None] * np.arange(-runs, runs + 1)
    worth: Vector = -np.expm1(np.minimum(0.0, epsilon - losses + 8 * _UNIT * (epsilon + np.abs(losses))))
    return worth


def _composed(runs: int, p: Vector, ratios: Vector, worth: Vector) -> Vector:
    """δ_T(p, r), rounded down, from what the sums of letters are worth."""
    middle = np.maximum(0.0, 1 - p - ratios * p - 4 * _UNIT)
    square, left = np.stack([ratios * p * (1 - 4 * _UNIT), middle, p], axis=1), runs
    total = np.ones((p.size, 1))
    while True:
        if left & 1:
            total = _sums(total, square)
        left >>= 1
        if not left:
            break
        square = _sums(square, square)
    deltas: Vector = np.maximum(0.0, (total * worth).sum(axis=1) * (1 - _SAFE) - 1e-300)
    return deltas


def _sums(first: Vector, second: Vector) -> Vector:
    """The distribution of a sum: the convolution of each row, all rows at once where they are short."""
    if second.shape[1] > _SHORT:
        return np.array([np.convolve(*pair) for pair in zip(first, second, strict=True)])
    out = np.zeros((first.shape[0], first.shape[1] + second.shape[1] - 1))
    for shift, masses in enumerate(second.T):
        out[:, shift : shift + first.shape[1]] += first * masses[:, None]
    return out


def hockey_stick_bounds(runs: int, epsilon: float, delta: float, levels: Vector) -> Vector:
    """h(E) at the levels E >= 1, not increasing. ε > 0, 0 < δ < 1. Shape of levels."""
    wide = (2 * epsilon + 4) * np.linspace(0.0, 1.0, 3 * _CELLS + 1) ** 2  # fine near r = 1
    near = epsilon / runs * np.linspace(0.8, 1.6, _CELLS + 1)  # and about the loss of pure privacy
    losses = np.unique(np.concatenate([wide, near]))
    ratios = np.exp(-losses[losses <= _LARGEST_LOSS])
    rows = max(1, _ENTRIES // (2 * runs + 1))
    parts = [ratios[first : first + rows] for first in range(1, ratios.size, rows)]
    most = np.concatenate([[0.5], *(_most(runs, epsilon, delta, part) for part in parts)])  # r = 1: p = n
    above = most[:-1] * (1 + ratios[:-1]) / (1 + ratios[1:])
    bounds = np.max(above[:, None] * (1 - ratios[1:, None] * levels[None, :]), axis=0)
    last = most[-1] * (1 + ratios[-1])  # ratios below the last
    return np.asarray(np.maximum(bounds, last) * (1 + _SAFE) + 16 * _UNIT)  # 1 - E r' is off by 2 u


def _most(runs: int, epsilon: float, delta: float, ratios: Vector) -> Vector:
    """p(r), rounded up, for every r."""
    whole, worth = 1 / (1 + ratios), _worth(runs, epsilon, ratios)

    def excess(p: Vector, *row: Any, **_: Any) -> Vector:
        return _composed(runs, p, ratios[row[0]], worth[row[0]]) - delta

    every = np.arange(ratios.size)
    most, rows = whole * (1 + 4 * _UNIT), every[excess(whole, every) > 0]
    if rows.size == 0:
        return most
    ends = np.zeros(rows.size), whole[rows]
    roots = find_root(excess, ends, args=(rows,), tolerances={"xatol": 1e-300, "xrtol": 1e-12})
    assert np.all(roots.success)
    above, wider = np.asarray(roots.x), 1e-12
    low = np.arange(rows.size)
    while low.size:  # until no feasible p is as large
        low = low[(excess(above[low], rows[low]) <= 0) & (above[low] < whole[rows[low]])]
        above[low] = np.minimum(whole[rows[low]], above[low] * (1 + wider))
        wider *= 2
    most[rows] = above * (1 + 4 * _UNIT)
    return most


def run_bounds(runs: int, epsilon: float, delta: float, levels: int = 40) -> list[Bound]:
    """The hockey sticks H_E <= h(E) of one run on a grid of E. A floating-point E is rounded up, which only weakens
    it."""
    span = min(epsilon, 4 * epsilon / math.sqrt(runs) + 0.5)
    wide, near = np.linspace(0.0, span, levels), np.linspace(0.8, 1.6, levels // 2)
    ratios = np.nextafter(np.exp(np.unique(np.concatenate([wide, epsilon / runs * near]))), math.inf)
    sticks = np.nextafter(hockey_stick_bounds(runs, epsilon, delta, ratios), math.inf)
    return [Bound(HOCKEY_STICK, ratio, stick) for ratio, stick in zip(ratios.tolist(), sticks.tolist(), strict=True)]
