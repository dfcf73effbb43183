"""What T runs allow one run: hockey sticks of any mechanism whose T runs are (ε, δ)-private in all.

Of neighbouring laws P, Q of one run and a set A of outcomes let p = P(A), n = Q(A). Whether each of T runs is in A
follows from their outputs, so that this is (ε, δ)-private too (data processing):

    δ_T(p, n) = Σ_k C(T, k) max(0, p^k (1-p)^{T-k} - e^ε n^k (1-n)^{T-k})  <=  δ

δ_T grows with p and falls with n <= p (the other pair is a randomisation of this one), so that p <= p(n), which does
not fall with n. With A = {P > E Q} and cells [n', n''] of n, for every E >= 1

    H_E(P, Q) = p - E n  <=  h(E) = max over cells of  p(n'') - E n'

δ_T is rounded down: logarithms of binomial coefficients and powers are off by less than 1e-9 in all, which is taken off
of every term, and of the exponent of e^ε (n/p)^k ((1-n)/(1-p))^{T-k} 16 units of 2^-53 of the sizes that are added.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.arrays import Vector
from solvers.search import bisect_each

_UNIT, _SAFE = 2.0**-53, 1e-9
_CELLS, _TERMS = 2000, 200_000
_HALVINGS = 48


def composed_event(runs: int, epsilon: float, p: Vector, n: Vector) -> Vector:
    """δ_T(p, n) for 0 <= n <= p <= 1, T <= 1024, rounded down. Shape of p."""
    counts = np.arange(runs + 1.0)
    ways = np.array([math.log(math.comb(runs, k)) for k in range(runs + 1)])
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = np.log(p)[:, None], np.log1p(-p)[:, None]
        inside_q, outside_q = np.log(n)[:, None], np.log1p(-n)[:, None]
        mass = np.exp(ways + _times(counts, inside) + _times(runs - counts, outside))
        over, under = _times(counts, inside_q - inside), _times(runs - counts, outside_q - outside)
        sizes = _times(counts, inside_q) + _times(counts, inside) + _times(runs - counts, outside)
        sizes = epsilon - sizes - _times(runs - counts, outside_q)
        loss = np.where(mass > 0, epsilon + over + under + 16 * _UNIT * sizes, 0.0)
        share = -np.expm1(np.minimum(0.0, np.where(np.isnan(loss), -np.inf, loss)))
    total: Vector = (mass * share).sum(axis=1) * (1 - _SAFE)
    return total


def _times(counts: Vector, logarithms: Vector) -> Vector:
    """k ln x, 0 for k = 0."""
    return np.where(counts > 0, counts * logarithms, 0.0)


def event_bounds(runs: int, epsilon: float, delta: float, levels: Vector) -> Vector:
    """h(E) at the levels E >= 1, rounded up. ε > 0, 0 < δ < 1. Shape of levels."""
    cells = max(100, min(_CELLS, _TERMS // runs))
    n = np.linspace(0.0, 1.0, cells + 1)[1:] ** 2
    # no feasible p is as large as `broken`, but where it is 1
    _, broken = bisect_each(lambda p: composed_event(runs, epsilon, p, n) > delta, n, np.ones_like(n), _HALVINGS)
    before = np.concatenate([[0.0], n[:-1]])
    bounds: Vector = np.max(broken[:, None] - levels[None, :] * before[:, None], axis=0) + 16 * _UNIT * levels
    return np.clip(bounds, 0.0, 1.0)
