"""Compute the error of the ripple mechanism on a histogram, for comparison.

Joseph, Kulesza, Wang and Yu (COLT 2026, "Ripple Mechanisms for Discrete and Private Statistics")
add one noise vector v to all bins, with the mass

    f(v) ∝ e^(-ε g(v)),    g(v) = the least number of people whose rows can move the bins by v

(Definition 11). g is subadditive, and g = 1 for the move of one person, so f is ε-private. The bins
are not independent. Let K be the rows of a person, and v = p - m with p, m >= 0 in different bins.

    release         h(p)                      neighbours    g(v)
    row-per-bin     max(⌈Σ p / K⌉, max p)     add-remove    h(p) + h(m)
    rows-anywhere   ⌈Σ p / K⌉                 replace       max(h(p), h(m))

The first of each is the Count mechanism of the paper (Lemmas 15 and 32). The others follow in the
same way: p with h(p) <= n is a sum of n vectors of one person's rows. A person who is added or
removed moves one of p and m. A person who is replaced moves both.

Let z = e^-ε. C_s(n) is the number of vectors of s positive entries with h <= n, and Q_s(n) is the
sum of their |p|². Of d bins, i have positive and j have negative noise. With sums over the levels,

    E v_1² = Σ choose(d; i, j) Σ z^g(v) (|p|² + |m|²) / (d Σ choose(d; i, j) Σ z^g(v))

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

RIPPLE = "ripple"  # Name of the mechanism in lists of errors.
_MAX_BINS = 64  # The sums of a histogram of more bins are not computed.
_MAX_LEVELS = 1000  # ε so small that more levels than this have mass is refused.
_LIGHT_EXPONENT = 60.0  # Levels whose masses have fallen by e^-60 are left out.


def compute_ripple_rmse(query: JointQuery, bins: int, epsilon: Real) -> float:
    """Compute the root mean squared error of one bin of a histogram with ripple noise.

    Args:
        query: The relation of the histogram.
        bins: d, the number of bins, 1 to 64.
        epsilon: ε > 0, at least about 0.1.

    Raises:
        InvalidRequest: If the relation is no histogram, or an argument is outside its range.
    """
    if query.dimension is not None:
        raise InvalidRequest("query must be the relation of a histogram. Got a pair of sums.")
    d = read_integer(bins, "bins", 1, _MAX_BINS)
    exact_epsilon = float(read_positive(epsilon, "epsilon"))
    # The number of vectors of level n grows like n^(d - 1), so more bins need more levels.
    levels = math.ceil((_LIGHT_EXPONENT + 3 * d) / exact_epsilon) + 2
    if levels > _MAX_LEVELS:
        must("epsilon", "large enough for at most 1000 levels of noise", epsilon)
    counts, squares = _count_by_level(query, d, levels)
    masses: Vector = np.exp(-exact_epsilon * np.arange(levels + 1.0))
    total = 0.0
    second_moment = 0.0
    for i in range(d + 1):
        for j in range(d + 1 - i):
            choices = math.comb(d, i) * math.comb(d - i, j)
            mass = _sum_masses(query, counts[:, i], counts[:, j], masses)
            positive_moment = _sum_masses(query, squares[:, i], counts[:, j], masses)
            negative_moment = _sum_masses(query, counts[:, i], squares[:, j], masses)
            total += choices * mass
            second_moment += choices * (positive_moment + negative_moment)
    return math.sqrt(second_moment / (d * total))


def _sum_masses(query: JointQuery, p: Vector, m: Vector, masses: Vector) -> float:
    """Return Σ z^g(v) of products of a number for p and a number for m.

    Args:
        query: The relation.
        p: The sum of the numbers of all p with h(p) <= n, for every level n. Shape (levels,).
        m: The same for m.
        masses: z^n. Shape (levels,).
    """
    # The differences belong to the vectors with h = n, because p and m count those with h <= n.
    if query.neighbours == ADD_REMOVE:
        return float((np.diff(p, prepend=0.0) @ masses) * (np.diff(m, prepend=0.0) @ masses))
    return float(np.diff(p * m, prepend=0.0) @ masses)


def _count_by_level(query: JointQuery, d: int, levels: int) -> tuple[Vector, Vector]:
    """Return C_s(n) and Q_s(n) for n in 0..levels and s in 0..d. Shapes (levels + 1, d + 1)."""
    counts = []
    squares = []
    for level in range(levels + 1):
        largest_sum = level * query.rows
        largest_entry = largest_sum
        if query.release == ROW_PER_BIN:
            largest_entry = level
        level_counts, level_squares = _count_vectors(d, largest_entry, largest_sum)
        counts.append(level_counts)
        squares.append(level_squares)
    return np.array(counts), np.array(squares)


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
