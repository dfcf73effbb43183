"""Build PDP noise f(0) max(v, theta w) from weights v and w that fall with the distance from 0.

By the level theorem below, some noise of this form has the smallest error rate.
`best_noise_of_masses` chooses f(0) and theta for given weights. `simplest_noise` gives a first
incumbent of a search.

Notation. f is the PMF of the noise eta, mu a shift (a difference of neighbouring answers) with the
budget eps_mu, and (13) and (15) are programs of Kadam et al. 2024: the smallest loss at a given
delta, and the smallest delta at a given loss. A pair (eta, mu) is kept by a function f if
f(eta) <= e^eps_mu f(eta + mu), otherwise broken. PDP allows the elements of broken pairs at most
mass delta for each mu.

Let d(eta) be the length of a shortest path from 0 to eta whose steps are the shifts mu and whose
lengths are the eps_mu (infinite where none leads), and w = e^{-d}.

**Level theorem.** Among the optimal f of (13) for the error rate, at any delta and any eps_mu, and
among those of (15), one has f <= w f(0).

Proof. Let f be feasible with f(0) > 0, L(eta) the length of a shortest path from 0 over pairs that
f keeps (infinite where none leads), and v = e^{-L}. Keeping a pair means f(eta + mu) >= e^{-eps_mu}
f(eta), so f >= f(0) v. Put g = max(v, theta w), 0 <= theta <= 1.

* A pair that f keeps is kept by v, because L is a shortest path length. It is kept by w, which
  keeps every pair. Hence g keeps it.
* A pair that f breaks can only be broken by g where g = v. Elsewhere g(eta) = theta w(eta), and
  theta w(eta) <= e^eps_mu theta w(eta + mu) <= e^eps_mu g(eta + mu). So f(0) g breaks pairs of
  mass at most f(0) v <= f, and only pairs that f breaks.
* As theta rises from 0 to 1, the sum of g rises from the sum of v, which is at most 1/f(0), to the
  sum T0 of w. If it passes 1/f(0), then for that theta f(0) g is a PMF with the same f(0); it is
  feasible and at most f(0) w. Otherwise w/T0 is a PMF that breaks nothing, and its mass at 0 is
  1/T0 >= f(0). In both cases the mass at 0 is at least f(0), and no larger delta is needed. []

| paper (Kadam et al. 2024) | here                             |
|---------------------------|----------------------------------|
| a^hops, a = e^-eps        | `distance_weights`, with one eps |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.models.modulo.patterns import NoiseProblem
from workbench.solvers.arrays import Flags, Vector

_RATIO_TOLERANCE = 1e-12  # A relative excess below this is rounding, and breaks no pair.


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """The best PMF f(0) max(v, theta w) of given weights.

    Attributes:
        pmf: masses, shape (N,).
        broken_pairs: whether the noise breaks each pair, shape (shifts, N).
        value: error rate 1 - f(0) if delta is given, else the smallest delta at the given loss
            (infinite if there is none).
    """

    pmf: Vector
    broken_pairs: Flags
    value: float


def distance_weights(noise: NoiseProblem, level: Vector | float = 0.0) -> Vector:
    """Compute w = e^{-d} by Bellman's iteration, shape (N,).

    d is the length of a shortest path from 0 to each element (see the module header). Every
    round allows paths with at least one more step. The last round changes no weight.

    Args:
        noise: group, shifts, budgets and loss of the noise.
        level: levels of the elements, shape (N,). Paths only use pairs with
            level(eta + mu) <= level(eta) + 1. One number stands for equal levels, which allow all
            pairs.
    """
    w = np.where(np.arange(noise.N) == 0, 1.0, 0.0)
    level = np.broadcast_to(level, noise.N)
    while True:
        last_w = w.copy()
        for e, target in noise.steps():
            is_pair_kept = level[target] <= level + 1.0
            reached_w = np.empty_like(w)
            reached_w[target] = np.where(is_pair_kept, w / e, 0.0)
            np.maximum(w, reached_w, out=w)
        if np.array_equal(last_w, w):
            return w


def simplest_noise(noise: NoiseProblem, w: Vector) -> LevelNoise:
    """Return the better of two simple PMFs.

    One is proportional to w and breaks nothing. The other is proportional to 1 at 0 and to theta w
    elsewhere.

    Args:
        noise: group, shifts, budgets and loss of the noise.
        w: weights e^-d by the distance d from 0, shape (N,).
    """
    private_noise = best_noise_of_masses(noise, w, w)
    if private_noise.value == 0.0:
        return private_noise
    zero_masses = np.where(np.arange(noise.N) == 0, 1.0, 0.0)
    zero_noise = best_noise_of_masses(noise, w, zero_masses)
    return min(private_noise, zero_noise, key=lambda candidate: candidate.value)


def best_noise_of_masses(noise: NoiseProblem, w: Vector, v: Vector) -> LevelNoise:
    """Return the best PMF f(0) max(v, theta w), which breaks at most the pairs that v breaks.

    T is the sum of v, and S the largest mass v of broken pairs over the shifts. For a given delta,
    f(0) = min(1/T, delta/S). For a given max_loss, f(0) = 1 - max_loss if that is at most 1/T; else
    there is no such PMF, and the value is infinite. If v breaks nothing, f(0) = 1/T.

    Args:
        noise: group, shifts, budgets and loss of the noise.
        w: weights e^-d by the distance d from 0, shape (N,).
        v: masses <= w of a level function, shape (N,).
    """
    total = float(v.sum())
    steps = noise.steps()
    broken_masses = []
    for e, target in steps:
        is_broken = v > e * v[target] * (1.0 + _RATIO_TOLERANCE)
        broken_masses.append(float(v[is_broken].sum()))
    broken_mass = max(broken_masses)
    if noise.delta is not None:
        zero_mass = min(1.0 / total, 1.0)
        if broken_mass > 0.0:
            zero_mass = min(1.0 / total, noise.delta / broken_mass)
        value = 1.0 - zero_mass
    else:
        min_zero_mass = 1.0 - float(noise.max_loss or 0.0)
        zero_mass = min(1.0 / total, min_zero_mass) if broken_mass > 0.0 else 1.0 / total
        value = zero_mass * broken_mass if total * min_zero_mass <= 1.0 else np.inf
    pmf = zero_mass * np.maximum(v, _theta_of_total(w, v, 1.0 / zero_mass) * w)
    broken_rows = [pmf > e * pmf[target] * (1.0 + _RATIO_TOLERANCE) for e, target in steps]
    return LevelNoise(pmf / pmf.sum(), np.stack(broken_rows), value)


def _theta_of_total(w: Vector, v: Vector, total: float) -> float:
    """Return the theta in [0, 1] at which the sum of max(v, theta w) is nearest to a total.

    The masses satisfy 0 <= v <= w.
    """
    is_positive = w > 0.0
    w = w[is_positive]
    v = v[is_positive]
    ratios = v / w
    order = np.argsort(ratios, kind="stable")
    weight_sums = np.cumsum(w[order])
    larger_masses = np.append(np.cumsum(v[order][::-1])[::-1][1:], 0.0)
    # If the k + 1 elements of the smallest ratios are raised, and no others, the total is
    # theta weight_sums[k] + larger_masses[k].
    theta = (total - larger_masses) / weight_sums
    next_ratios = np.append(ratios[order][1:], 1.0)
    k = int(np.argmax(next_ratios >= theta))
    return float(np.clip(theta[k], 0.0, 1.0))
