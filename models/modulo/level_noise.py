"""Noise of level functions, whose masses fall with the distance from 0: the least error rate is one of theirs.

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

| paper | here                      |
|-------|---------------------------|
| a^hops| `weights`, with one eps   |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.models.modulo.patterns import NoiseProblem
from workbench.solvers.arrays import Flags, Vector

_ROUNDING = 1e-12  # relative: an excess of less is no broken pair


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """The best PMF of a level function, its value in the model's objective, and the pairs it breaks, (shifts, N)."""

    pmf: Vector
    broken_pairs: Flags
    value: float


def distance_weights(noise: NoiseProblem, level: Vector | float = 0.0) -> Vector:
    """w = e^{-d}, (N,), over the pairs that levels (N,) keep, else over all: Bellman's iteration, exact after as many
    rounds as the longest shortest path has steps."""
    w = np.where(np.arange(noise.N) == 0, 1.0, 0.0)
    level = np.broadcast_to(level, noise.N)
    while True:
        before = w.copy()
        for e, target in noise.steps():
            moved = np.empty_like(w)
            moved[target] = np.where(level[target] <= level + 1.0, w / e, 0.0)
            np.maximum(w, moved, out=w)
        if np.array_equal(before, w):
            return w


def simplest_noise(noise: NoiseProblem, w: Vector) -> LevelNoise:
    """The better one of the PMF that breaks nothing, w, and that of no mass but at 0, theta w elsewhere."""
    nothing = best_noise_of_masses(noise, w, w)
    if nothing.value == 0.0:
        return nothing
    alone = best_noise_of_masses(noise, w, np.where(np.arange(noise.N) == 0, 1.0, 0.0))
    return min(nothing, alone, key=lambda known: known.value)


def best_noise_of_masses(noise: NoiseProblem, w: Vector, v: Vector) -> LevelNoise:
    """The best PMF f(0) max(v, theta w) of masses v <= w, those of a level function; it breaks what v breaks or less.

    For a given delta f(0) = min(1/T, delta/S), for a given max_loss f(0) = 1 - max_loss where that is 1/T at most, and
    else nothing (its value is infinite).
    """
    total, steps = float(v.sum()), noise.steps()
    lost = max(float(v[v > e * v[to] * (1.0 + _ROUNDING)].sum()) for e, to in steps)
    if noise.delta is not None:
        zero = min(1.0 / total, noise.delta / lost if lost > 0.0 else 1.0)
        value = 1.0 - zero
    else:
        least = 1.0 - float(noise.max_loss or 0.0)
        zero = min(1.0 / total, least) if lost > 0.0 else 1.0 / total
        value = zero * lost if total * least <= 1.0 else np.inf
    pmf = zero * np.maximum(v, _theta(w, v, 1.0 / zero) * w)
    broken = np.stack([pmf > e * pmf[to] * (1.0 + _ROUNDING) for e, to in steps])
    return LevelNoise(pmf / pmf.sum(), broken, value)


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
