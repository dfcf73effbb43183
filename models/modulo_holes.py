"""What is known about the least error rate before any program is solved: masses fall with the distance from 0.

Let d(eta) be the length of a shortest path from 0 to eta whose steps are the shifts mu and whose lengths are the eps_mu
(infinite where none leads), and w = e^{-d}.

**Level theorem.** Among the optimal f of (13) for the error rate, at any delta and any eps_mu, and among those of (15),
one has f <= w f(0).

Proof. Let f be feasible with f(0) > 0, L(eta) the length of a shortest path from 0 over pairs that f keeps (infinite
where none leads), and v = e^{-L}. Keeping a pair means f(eta + mu) >= e^{-eps_mu} f(eta), so f >= f(0) v. Put
g = max(v, theta w), 0 <= theta <= 1. A pair that f keeps is kept by v (L is a shortest path length) and every pair is
kept by w, hence the former are kept by g; a pair that f breaks is broken by g at most where g = v, as elsewhere
g(eta) = theta w(eta) <= e^eps theta w(eta + mu). So f(0) g breaks mass f(0) v <= f at most, at pairs that f breaks. As
theta rises from 0 to 1 the total of g rises from that of v, at most 1/f(0), to T0, that of w. If it passes 1/f(0), then
f(0) g is a PMF with the same f(0), feasible and at most f(0) w. If not, w/T0 is a PMF that breaks nothing and has
f(0) = 1/T0 at least as large. Either has the same zero mass or more, and needs no more delta. []

**Hole search.** Order the elements by d and empty all but the first m: with T the total of w on the support and S the
largest, over mu, w-mass of the support elements whose eta + mu is a hole, the PMF f(0) max(w on the support, theta w)
breaks no more than S f(0); it is feasible with f(0) = min(1/T, delta/S) if that is at least 1/T0. All m are compared in
one pass. It gives an incumbent and nothing else: no lower bound on the error rests on it.

**Lower bounds.** Let f(0) >= phi. While the known lower bound of f(eta) exceeds delta, no pair at eta can be broken, so
f(eta + mu) >= e^{-eps_mu} f(eta): the bounds spread from 0.

| paper | here                      |
|-------|---------------------------|
| a^hops| `weights`, with one eps   |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.modulo_patterns import Facts, Noise
from solvers.arrays import Flags, Positions, Vector

_SAFE = 1e-9  # relative margin by which float comparisons must hold
_ROUNDING = 1e-12  # by which weights are raised: more than all rounding of their products
_TINY = 1e-8  # smaller weights are raised to it: a weaker fact, but a coefficient that solvers can read


@dataclass(frozen=True, eq=False)
class Holes:
    """The best PMF of the hole search, and its value in the model's objective.

    broken: (shifts, N) the pairs it breaks, those from the support into a hole.

    Nothing at least as good has f(0) below `zero` or breaks more than `delta`.
    """

    pmf: Vector
    broken: Flags
    value: float
    zero: float
    delta: float


def weights(noise: Noise) -> Vector:
    """w = e^{-d}, (N,): Bellman's iteration, exact after as many rounds as the longest shortest path has steps."""
    w = np.zeros(noise.N)
    w[0] = 1.0
    return spread(w, noise, lambda e, target, w: w / e)


def spread(least: Vector, noise: Noise, step: Callable[[float, Positions, Vector], Vector]) -> Vector:
    """The least x from `least` on with x(eta + mu) >= step(e^eps_mu, all eta + mu, x)(eta) for every shift; step:
    monotone."""
    x = least.copy()
    while True:
        before = x.copy()
        for e, target in noise.steps():
            moved = np.empty_like(x)
            moved[target] = step(e, target, x)
            np.maximum(x, moved, out=x)
        if np.array_equal(before, x):
            return x


def hole_search(noise: Noise, w: Vector) -> Holes:
    """The best prefix for the error rate, by error for a given delta, by delta for a given max_loss."""
    order = np.argsort(-w, kind="stable")
    rank = np.empty(noise.N, dtype=int)
    rank[order] = np.arange(noise.N)
    total = np.cumsum(w[order])  # T of the first m + 1 elements
    lost = np.zeros(noise.N)
    for target in noise.targets():
        out = rank[target] > rank  # a hole from m = rank + 1 until m = rank of the target
        change = np.zeros(noise.N + 1)
        np.add.at(change, rank[out], w[out])
        np.add.at(change, rank[target][out], -w[out])
        np.maximum(lost, np.cumsum(change)[: noise.N], out=lost)
    lost[-1] = 0.0
    if noise.delta is not None:
        mass = np.minimum(1.0 / total, np.divide(noise.delta, lost, out=np.ones(noise.N), where=lost > 0))
        m = int(np.argmax(np.where(mass < 1.0 / total[-1], 0.0, mass)))
    else:
        m = int(np.argmin(np.where(total * (1.0 - float(noise.max_loss or 0.0)) <= 1.0, lost, np.inf)))
    nothing, best = attained(noise, w, w), attained(noise, w, np.where(rank <= m, w, 0.0))
    return nothing if nothing.value <= best.value else best


def attained(noise: Noise, w: Vector, v: Vector) -> Holes:
    """The best PMF f(0) max(v, theta w) of masses v <= w, those of a level function; it breaks what v breaks or less.

    For a given delta f(0) = min(1/T, delta/S), for a given max_loss f(0) = 1 - max_loss where that is 1/T at most, and
    else nothing (its value is infinite).
    """
    total, steps = float(v.sum()), noise.steps()
    lost = max(float(v[v > e * v[to] * (1.0 + _ROUNDING)].sum()) for e, to in steps)
    if noise.delta is not None:
        zero = min(1.0 / total, noise.delta / lost if lost > 0.0 else 1.0)
        value, least, most = 1.0 - zero, zero, noise.delta
    else:
        least = 1.0 - float(noise.max_loss or 0.0)
        zero = min(1.0 / total, least) if lost > 0.0 else 1.0 / total
        value = most = zero * lost if total * least <= 1.0 else np.inf
    pmf = zero * np.maximum(v, _theta(w, v, 1.0 / zero) * w)
    broken = np.stack([pmf > e * pmf[to] * (1.0 + _ROUNDING) for e, to in steps])
    return Holes(pmf / pmf.sum(), broken, value, least, most)


def _theta(w: Vector, v: Vector, total: float) -> float:
    """The theta in [0, 1] at which max(v, theta w) has this total, or the nearest; 0 <= v <= w."""
    some = w > 0.0
    w, v = w[some], v[some]
    order = np.argsort(v / w, kind="stable")
    weight, mass = np.cumsum(w[order]), np.append(np.cumsum(v[order][::-1])[::-1][1:], 0.0)
    # with the k + 1 elements of the least ratios raised, and no others, the total is theta weight + mass
    theta = (total - mass) / weight
    k = int(np.argmax(np.append((v / w)[order][1:], 1.0) >= theta))
    return float(np.clip(theta[k], 0.0, 1.0))


def facts(noise: Noise, w: Vector, zero: float, delta: float, kept: Flags) -> Facts:
    """The level theorem, and the lower bounds of every f with f(0) >= zero that breaks at most delta per shift."""
    lower = np.zeros(noise.N)
    lower[0] = max(0.0, zero * (1.0 - _SAFE))
    sure = delta * (1.0 + _SAFE)  # from this bound on no pair at an element can be broken
    lower = spread(lower, noise, lambda e, target, x: np.where(x > sure, x / e * (1.0 - 1e-15), 0.0))
    return Facts(kept, lower, np.where(w > 0, np.maximum(w * (1.0 + _ROUNDING), _TINY), 0.0), delta)
