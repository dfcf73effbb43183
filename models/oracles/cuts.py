"""Cut mechanisms: what a hole in the support buys under (ε, δ)-PDP. Every PDP law of this room is a family of cuts.

Let w be hop weights (w(0) = 1 and w(η + μ) >= a w(η)) and declare some elements, never 0, to be holes. With
    T  = the total of w off the holes,
    S  = the largest, over the shifts μ, w-mass of the elements off the holes whose η + μ is a hole,
    T₀ = the total of w,
the mechanism that puts w on the support and θ·w on the holes, 0 <= θ <= 1, normalised, breaks e^ε only on the elements
S counts: a step inside the support or inside the holes keeps its ratio, a step out of a hole only gains. So it is
(ε, δ)-PDP as soon as S f(0) <= δ, and the best θ gives
    f(0) = min(1 / T, δ / S)    whenever that is at least 1 / T₀:
flat in δ while θ = 0, linear in δ while S f(0) = δ. Making everything but 0 a hole gives f(0) = δ.

| paper            | here                                  |
|------------------|---------------------------------------|
| flat region      | θ = 0, f(0) = 1 / T                   |
| linear region    | 0 < θ <= 1, f(0) = δ / S              |
| δ̲, δ̄ of a region | S / T, and S' / T of the next cut     |
"""

import numpy as np

from solvers.arrays import Flags, Vector


def cut_values(totals: Vector, losses: Vector, delta: float) -> Vector:
    """min(1 / T, δ / S) of each cut, safe for S that underflows."""
    flat = 1.0 / totals
    values: Vector = np.divide(delta, losses, out=flat.copy(), where=delta * totals < losses)
    return values


def best_cut(totals: Vector, losses: Vector, total: float, delta: float) -> tuple[int | None, float]:
    """The cut with the largest f(0) and that f(0); (None, 1 / T₀) when no cut beats the uncut law."""
    uncut = 1.0 / total
    if len(totals) == 0:
        return None, uncut
    values = cut_values(totals, losses, delta)
    best = int(values.argmax())
    return (best, float(values[best])) if values[best] > uncut else (None, uncut)


def least_delta(totals: Vector, losses: Vector, total: float, error_rate: float) -> float:
    """Least δ at which some cut reaches f(0) >= 1 - error_rate: (1 - error_rate)·min{S : T <= 1 / (1 - error_rate)}.

    At a jump of the curve the floating-point neighbour of the exact error rate is taken as reached.
    """
    mass = 1.0 - error_rate
    if total * mass <= 1.0 + 1e-14:
        return 0.0
    within = totals * mass <= 1.0 + 1e-14
    return mass * float(losses[within].min()) if within.any() else mass


def cut_pmf(weights: Vector, holes: Flags, loss: float, delta: float) -> tuple[float, Vector]:
    """Error rate 1 - f(0) and PMF of one cut at δ. Shapes of weights and holes: (N,), holes[0] false."""
    support = float(weights[1:][~holes[1:]].sum())  # without w(0) = 1, which would drown a tiny error
    hollow = float(weights[holes].sum())
    if delta * (1.0 + support) >= loss:  # flat
        theta, scale = 0.0, 1.0 / (1.0 + support)
        error = support / (1.0 + support)
    else:
        theta = min((loss / delta - 1.0 - support) / hollow, 1.0)
        scale = delta / loss
        error = 1.0 - scale
    return error, np.where(holes, theta * weights, weights) * scale
