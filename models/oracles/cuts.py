"""Compute the error rate and the PMF of cut mechanisms: PDP noise that is smaller on some values.

A cut gives smaller masses to some noise values, its holes. `best_cut` chooses the cut with the
largest f(0) at a given δ from a list, and `cut_pmf` computes its PMF. All PDP laws of
`workbench.models.oracles` are families of cuts.

Notation. f is the PMF of the noise, a = e^-ε, μ a shift (a difference of neighbouring answers), and
θ in [0, 1] the factor of the holes. A constraint f(η) <= e^ε f(η + μ) is broken if it does not
hold. The hop level of an element is the smallest number of shifts that lead to it from 0. The
uncut law has no holes. The paper is Kadam et al. 2024.

Let w be hop weights (w(0) = 1 and w(η + μ) >= a w(η)) and declare some elements, never 0, to be
holes. With
    T  = the total of w off the holes,
    S  = the largest, over the shifts μ, w-mass of the elements off the holes whose η + μ is a hole,
    T₀ = the total of w,
consider the mechanism with masses proportional to w on the support (the elements off the holes) and
to θ·w on the holes. It breaks constraints only at the elements that S counts: a step inside the
support or inside the holes keeps its ratio, and a step out of a hole only increases the mass. So it
is (ε, δ)-PDP if S f(0) <= δ, and the best θ gives
    f(0) = min(1 / T, δ / S)    whenever that is at least 1 / T₀.
This f(0) is constant in δ while θ = 0, and linear in δ while S f(0) = δ. If all elements but 0 are
holes, f(0) = δ.

| paper (Kadam)    | here                                  |
|------------------|---------------------------------------|
| flat region      | θ = 0, f(0) = 1 / T                   |
| linear region    | 0 < θ <= 1, f(0) = δ / S              |
| δ̲ of flat region | S / T of its cut                      |
| δ̄ of flat region | S' / T, with S' of the next cut       |

Level cut, for any shifts with one ε: the holes are the hop levels beyond L. A step leads from the
support into a hole only from level L, so with n_i elements on level i
    T_L = Σ_{i <= L} n_i a^i,
    S_L = a^L · max over μ of the number of level-L elements η with η + μ on level L + 1.
L = 0 is (42) of the paper: everything but 0 is a hole.

Another family of cuts is a function that returns T and S of its cuts, as `level_cuts` does, with
`best_cut` and `cut_pmf` on top, and a line in `workbench.models.oracles.ORACLES`.
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

_MASS_TOLERANCE = 1e-14  # A total that exceeds 1 by at most this counts as feasible.


def geometric_sum(epsilon: float, terms: int | Integers) -> Vector:
    """Sum a + a² + ... + a^terms for a = e^{-ε}, accurately for every ε > 0.

    Args:
        epsilon: ε > 0.
        terms: number of terms, a scalar or an array.

    Returns:
        The sums, in the shape of `terms`.
    """
    exponents = -epsilon * np.asarray(terms, dtype=np.float64)
    return np.expm1(exponents) * (math.exp(-epsilon) / math.expm1(-epsilon))


def cut_values(totals: Vector, broken_weights: Vector, delta: float) -> Vector:
    """Compute the largest f(0) of each cut, min(1 / T, δ / S), also for S that underflows to 0.

    Args:
        totals: total weight T of the support of each cut, shape (cuts,).
        broken_weights: weight S of the broken constraints of each cut, shape (cuts,).
        delta: budget δ in [0, 1].

    Returns:
        The largest f(0) of each cut, shape (cuts,).
    """
    return np.divide(delta, broken_weights, out=1.0 / totals, where=delta * totals < broken_weights)


def best_cut(
    totals: Vector,
    broken_weights: Vector,
    total: float,
    delta: float,
) -> tuple[int | None, float]:
    """Return the cut with the largest f(0), and that f(0).

    Args:
        totals: total weight T of the support of each cut, shape (cuts,).
        broken_weights: weight S of the broken constraints of each cut, shape (cuts,).
        total: total weight T₀ of the uncut law.
        delta: budget δ in [0, 1].

    Returns:
        The number of the cut, or None if no cut is better than the uncut law, and f(0).
    """
    uncut_value = 1.0 / total
    values = cut_values(totals, broken_weights, delta)
    best_number = int(values.argmax())
    if values[best_number] > uncut_value:
        return best_number, float(values[best_number])
    return None, uncut_value


def least_delta(
    totals: Vector,
    broken_weights: Vector,
    total: float,
    error_rate: float,
) -> float:
    """Compute the smallest δ at which the error rate of some cut is at most a given one.

    It is (1 - error_rate)·min{S : T <= 1 / (1 - error_rate)}, and 0 if the uncut law suffices. If
    no cut does, it is 1 - error_rate, the δ at which everything but 0 may be a hole. An error rate
    that is missed by rounding only counts as reached.

    Args:
        totals: total weight T of the support of each cut, shape (cuts,).
        broken_weights: weight S of the broken constraints of each cut, shape (cuts,).
        total: total weight T₀ of the uncut law.
        error_rate: error rate 1 - f(0) in [0, 1].
    """
    mass = 1.0 - error_rate
    max_total = 1.0 + _MASS_TOLERANCE
    if total * mass <= max_total:
        return 0.0
    is_feasible = totals * mass <= max_total
    return mass * float(broken_weights[is_feasible].min()) if is_feasible.any() else mass


def cut_pmf(
    weights: Vector,
    holes: Flags,
    broken_weight: float,
    delta: float,
) -> tuple[float, Vector]:
    """Compute the error rate 1 - f(0) and the PMF of one cut at δ.

    Args:
        weights: hop weight w of every element, shape (N,).
        holes: whether each element is a hole, shape (N,). The first is not; the uncut law has none.
        broken_weight: weight S of the broken constraints of the cut; 0 for the uncut law.
        delta: budget δ in [0, 1].

    Returns:
        The error rate and the PMF, shape (N,).
    """
    # The sum leaves out w(0) = 1, which would drown a tiny error.
    support_sum = float(weights[1:][~holes[1:]].sum())
    hole_sum = float(weights[holes].sum())
    is_flat = delta * (1.0 + support_sum) >= broken_weight
    if is_flat:
        theta = 0.0
        scale = 1.0 / (1.0 + support_sum)
        error = support_sum / (1.0 + support_sum)
    else:
        theta = min((broken_weight / delta - 1.0 - support_sum) / hole_sum, 1.0)
        scale = delta / broken_weight
        error = 1.0 - scale
    return error, np.where(holes, theta * weights, weights) * scale


class LevelCuts(NamedTuple):
    """The cuts after level 0, 1, ..., and the uncut law. They do not depend on δ.

    Attributes:
        levels: level of every element (UNREACHABLE if no shifts lead to it), row-major, shape (N,).
        weights: hop weight w of every element, row-major, shape (N,).
        totals: total weight T of the support of every cut, shape (cuts,).
        broken_weights: weight S of the broken constraints of every cut, shape (cuts,).
        total: total weight T₀ of the uncut law.
    """

    levels: Integers
    weights: Vector
    totals: Vector
    broken_weights: Vector
    total: float


@remember_small_groups
def level_cuts(sizes: Ints, shifts: tuple[Shift, ...], epsilon: float) -> LevelCuts:
    """Compute all level cuts of a relation. The decorator caches those of small groups.

    Args:
        sizes: orders of the cyclic factors of the group.
        shifts: differences of neighbouring answers, one integer per cyclic factor.
        epsilon: budget ε > 0, the same for every shift.
    """
    hops = hop_distances(sizes, shifts)
    levels = hops.reshape(sizes)
    last_level = int(hops.max())
    leaving_counts = np.zeros(last_level + 1)
    for shift in shifts:
        goes_outward = values_after_shift(levels, shift) == levels + 1
        leaving_levels = levels[(levels >= 0) & goes_outward]
        counts = np.bincount(leaving_levels, minlength=last_level + 1)
        leaving_counts = np.maximum(leaving_counts, counts)
    powers = np.exp(-epsilon * np.arange(last_level + 1))
    weights = np.where(hops == UNREACHABLE, 0.0, powers[hops])
    level_counts = np.bincount(hops[hops >= 0], minlength=last_level + 1)
    totals = 1.0 + np.concatenate([[0.0], np.cumsum((level_counts * powers)[1:])])
    broken_weights = leaving_counts * powers
    return LevelCuts(hops, weights, totals[:-1], broken_weights[:-1], total=float(totals[-1]))


def best_level_cut(
    sizes: Ints,
    shifts: tuple[Shift, ...],
    epsilon: float,
    delta: float,
) -> tuple[float, Vector]:
    """Compute the error rate and the PMF of the level cut with the largest f(0).

    Args:
        sizes: orders of the cyclic factors of the group.
        shifts: differences of neighbouring answers, one integer per cyclic factor.
        epsilon: budget ε > 0, the same for every shift.
        delta: budget δ in [0, 1].

    Returns:
        The error rate and the PMF, row-major, shape (prod(sizes),).
    """
    cuts = level_cuts(sizes, shifts, epsilon)
    cut, _ = best_cut(cuts.totals, cuts.broken_weights, cuts.total, delta)
    # Cut number L makes the levels beyond L holes. The uncut law has no holes.
    last_level = cuts.levels.size if cut is None else cut
    broken_weight = 0.0 if cut is None else float(cuts.broken_weights[cut])
    return cut_pmf(cuts.weights, cuts.levels > last_level, broken_weight, delta)


def state_level_cut(question: Question) -> Iterator[ClosedForm]:
    """Yield the error rate of the best level cut, for every PDP question with one ε.

    Args:
        question: question about the error rate, of any notion and with any shifts.
    """
    if question.requires == MASS_ABOVE_RATIO and question.epsilon is not None:
        error, pmf = best_level_cut(
            question.sizes, question.shifts, question.epsilon, question.delta
        )
        proof = (
            "Any shifts, one ε: smaller masses beyond the hop level L break constraints only on "
            "level L, with mass at most δ. Feasible, not proven optimal."
        )
        yield ClosedForm("level cut", error, pmf, kind="upper bound", proof=proof)
