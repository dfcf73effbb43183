"""Cut mechanisms: what a hole in the support buys under (ε, δ)-PDP. Every PDP law here is a family of cuts.

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

Level cut, for any shifts with one ε: the holes are the hop levels beyond L. A step leads from the support into a hole
only from level L, so with n_i elements on level i
    T_L = Σ_{i <= L} n_i a^i,    S_L = a^L · max over μ of the number of level-L elements η with η + μ on level L + 1.
L = 0 is the paper's (42): everything but 0 is a hole.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from workbench.models.convex.requirements import MASS_ABOVE_RATIO
from workbench.models.oracles.hops import (
    UNREACHABLE,
    hop_distances,
    remember_small_groups,
    values_after_shift,
)
from workbench.models.oracles.question import ClosedForm, Question, Shift
from workbench.solvers.arrays import Flags, Integers, Ints, Vector


def geometric_sum(epsilon: float, terms: int | Integers) -> Vector:
    """Sum a + a² + ... + a^terms for a = e^{-ε}, accurate for every ε > 0 (elementwise in `terms`)."""
    exponents = -epsilon * np.asarray(terms, dtype=np.float64)
    return np.expm1(exponents) * (math.exp(-epsilon) / math.expm1(-epsilon))


def cut_values(totals: Vector, losses: Vector, delta: float) -> Vector:
    """min(1 / T, δ / S) of each cut, safe for S that underflows."""
    return np.divide(delta, losses, out=1.0 / totals, where=delta * totals < losses)


def best_cut(
    totals: Vector, losses: Vector, total: float, delta: float
) -> tuple[int | None, float]:
    """The cut with the largest f(0) and that f(0); (None, 1 / T₀) when no cut beats the uncut law."""
    uncut = 1.0 / total
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
    """Error rate 1 - f(0) and PMF of one cut at δ; the uncut law has no holes and loses 0.

    Shapes of weights and holes: (N,), holes[0] false.
    """
    support = float(
        weights[1:][~holes[1:]].sum()
    )  # without w(0) = 1, which would drown a tiny error
    hollow = float(weights[holes].sum())
    if delta * (1.0 + support) >= loss:  # flat
        theta, scale = 0.0, 1.0 / (1.0 + support)
        error = support / (1.0 + support)
    else:
        theta = min((loss / delta - 1.0 - support) / hollow, 1.0)
        scale = delta / loss
        error = 1.0 - scale
    return error, np.where(holes, theta * weights, weights) * scale


class LevelCuts(NamedTuple):
    """The cuts after level 0, 1, ..., and the uncut law: what the shifts and ε decide, whatever δ.

    levels, weights: of every element, row-major; totals, losses: T and S of every cut; total: T₀.
    """

    levels: Integers
    weights: Vector
    totals: Vector
    losses: Vector
    total: float


@remember_small_groups
def level_cuts(sizes: Ints, shifts: tuple[Shift, ...], epsilon: float) -> LevelCuts:
    """All level cuts of a relation."""
    flat = hop_distances(sizes, shifts)
    levels, last = flat.reshape(sizes), int(flat.max())
    outward = np.zeros(last + 1)
    for shift in shifts:
        leaving = levels[(levels >= 0) & (values_after_shift(levels, shift) == levels + 1)]
        outward = np.maximum(outward, np.bincount(leaving, minlength=last + 1))
    powers = np.exp(-epsilon * np.arange(last + 1))
    weights = np.where(flat == UNREACHABLE, 0.0, powers[flat])
    counts = np.bincount(flat[flat >= 0], minlength=last + 1)
    totals = 1.0 + np.concatenate([[0.0], np.cumsum((counts * powers)[1:])])
    return LevelCuts(flat, weights, totals[:-1], (outward * powers)[:-1], float(totals[-1]))


def best_level_cut(
    sizes: Ints, shifts: tuple[Shift, ...], epsilon: float, delta: float
) -> tuple[float, Vector]:
    """Error rate and PMF of the level cut with the largest f(0)."""
    cuts = level_cuts(sizes, shifts, epsilon)
    cut, _ = best_cut(cuts.totals, cuts.losses, cuts.total, delta)
    beyond, loss = (cuts.levels.size, 0.0) if cut is None else (cut, float(cuts.losses[cut]))
    return cut_pmf(cuts.weights, cuts.levels > beyond, loss, delta)


def state_level_cut(question: Question) -> Iterator[ClosedForm]:
    """Give every PDP question with one ε an achievable error rate."""
    if question.requires == MASS_ABOVE_RATIO and question.epsilon is not None:
        error, pmf = best_level_cut(
            question.sizes, question.shifts, question.epsilon, question.delta
        )
        proof = (
            "Any shifts, one ε: cutting the hop levels beyond L breaks e^ε only on level L, within δ; feasible, not "
            "claimed optimal."
        )
        yield ClosedForm("level cut", error, pmf, "upper bound", proof)
