"""Compute the error of the ripple mechanism on a histogram, for comparison.

Joseph, Kulesza, Wang and Yu (COLT 2026, "Ripple Mechanisms for Discrete and Private Statistics")
add one noise vector v to all bins, with the mass

    f(v) ∝ e^(-ε g(v)),    g(v) = the least number of people whose rows can move the bins by v

(Definition 11). g is subadditive, and g = 1 for the move of one person, so f is ε-private. The bins
are not independent. For people of K rows who are added or removed, and v = p - m with p, m >= 0,

    release         g(v) = h(p) + h(m)                            source
    row-per-bin     h(p) = max(⌈Σ p / K⌉, max p)                  Lemmas 15 and 32 (Count)
    rows-anywhere   h(p) = ⌈Σ p / K⌉                              Definition 11

A person adds rows or loses rows, so p and m need different people. A vector p with Σ p <= n K is a
sum of n vectors of at most K rows, which gives h. Let z = e^-ε. Over the vectors of s positive
entries, Z_s = Σ z^h(p) and Y_s = Σ z^h(p) |p|². Of d bins, i have positive and j have negative
noise, so

    E v_1² = Σ C(d; i, j) (Y_i Z_j + Z_i Y_j) / (d Σ C(d; i, j) Z_i Z_j)

This number is computed in floating point, and proves nothing. The workbench does not publish by the
ripple mechanism, as a certificate states noise that is independent in every bin. For K = 1, g is
the L1 norm, and the mechanism is geometric noise. It is then optimal among additive noise for the
mean L1 norm of the error (Corollary 58).
"""

from __future__ import annotations

import math

import numpy as np

from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Real, read_positive
from workbench.questions.joint_query import ADD_REMOVE, ROW_PER_BIN, JointQuery

_MAX_BINS = 64  # The sums of a histogram of more bins are not computed.
_MAX_LEVELS = 1000  # ε so small that more levels than this have mass is refused.
_LIGHT_EXPONENT = 60.0  # Levels whose masses have fallen by e^-60 are left out.


def compute_ripple_rmse(query: JointQuery, bins: int, epsilon: Real) -> float:
    """Compute the root mean squared error of one bin of a histogram with ripple noise.

    Args:
        query: The relation of the histogram, under add-remove.
        bins: d, the number of bins, 1 to 64.
        epsilon: ε > 0, at least about 0.1.

    Raises:
        InvalidRequest: If the relation is no histogram under add-remove, or an argument is outside
            its range.
    """
    if query.dimension is not None or query.neighbours != ADD_REMOVE:
        raise InvalidRequest("query must be a histogram under add-remove for ripple noise.")
    d = read_integer(bins, "bins", 1, _MAX_BINS)
    exact_epsilon = float(read_positive(epsilon, "epsilon"))
    # The number of vectors of level n grows like n^(d - 1).
    levels = math.ceil((_LIGHT_EXPONENT + 3 * d) / exact_epsilon) + 2
    if levels > _MAX_LEVELS:
        must("epsilon", "large enough for at most 1000 levels of noise", epsilon)
    counts, moments = _sum_one_side(query, d, levels, math.exp(-exact_epsilon))
    total = 0.0
    second_moment = 0.0
    for i in range(d + 1):
        for j in range(d + 1 - i):
            choices = math.comb(d, i) * math.comb(d - i, j)
            total += choices * counts[i] * counts[j]
            second_moment += choices * (moments[i] * counts[j] + counts[i] * moments[j])
    return math.sqrt(second_moment / (d * total))


def _sum_one_side(query: JointQuery, d: int, levels: int, z: float) -> tuple[Vector, Vector]:
    """Return Z_s and Y_s for s in 0..d. `levels` is the largest level, and z is e^-ε."""
    counts = np.zeros(d + 1)
    moments = np.zeros(d + 1)
    last_counts = np.zeros(d + 1)
    last_moments = np.zeros(d + 1)
    for level in range(levels + 1):
        largest_sum = level * query.rows
        largest_entry = largest_sum
        if query.release == ROW_PER_BIN:
            largest_entry = level
        below_counts, below_moments = _count_vectors(d, largest_entry, largest_sum)
        counts += z**level * (below_counts - last_counts)
        moments += z**level * (below_moments - last_moments)
        last_counts = below_counts
        last_moments = below_moments
    return counts, moments


def _count_vectors(d: int, largest_entry: int, largest_sum: int) -> tuple[Vector, Vector]:
    """Count vectors of s positive entries with a bounded sum, for s in 0..d.

    Returns:
        The number of vectors for each s, and the sum of their squared L2 norms. Shapes (d + 1,).
    """
    entries = np.zeros(largest_sum + 1)
    entries[1 : largest_entry + 1] = 1.0
    squares = entries * np.arange(largest_sum + 1.0) ** 2
    by_sum = np.zeros(largest_sum + 1)  # The number of vectors of each sum.
    by_sum[0] = 1.0
    squares_by_sum = np.zeros(largest_sum + 1)
    counts = [1.0]
    moments = [0.0]
    for _ in range(d):
        added_squares = np.convolve(by_sum, squares) + np.convolve(squares_by_sum, entries)
        squares_by_sum = added_squares[: largest_sum + 1]
        by_sum = np.convolve(by_sum, entries)[: largest_sum + 1]
        counts.append(float(by_sum.sum()))
        moments.append(float(squares_by_sum.sum()))
    return np.array(counts), np.array(moments)
