"""List cut mechanisms for noise modulo n + 1 with differences 1..μ̄, with their weights.

A cut gives smaller masses to some noise values, its holes. For each cut the module computes the
total weight T of the other values, the weight S of the broken constraints, and the chain weight (a
lower bound on S that is cheap to compute; see below).
`column_cut` searches for the best cut. `cuts` computes the mechanism of a cut.

Notation. f is the PMF of the noise η, a = e^-ε, μ a shift (a difference of neighbouring answers)
and μ̄ the largest one. w is the weight of a noise value relative to f(0), and n = b μ̄ + r,
0 <= r < μ̄. "Off the holes" means on the elements that are not holes. A constraint
f(η) <= e^ε f(η + μ) is broken if it does not hold.

Write η = (i - 1) μ̄ + j, row i >= 1, column j in 1..μ̄; row(0) = 0 and w(η) = a^row. The first r
columns are tall (b + 1 rows), the others are short (b rows). A cut vector c makes the rows >= c_j
of column j holes, with c_j >= 2. If c_j is the height of the column plus 1, the column has no hole.

Example: n = 5, μ̄ = 2, so b = 2, r = 1, and the heights are (3, 2):

    η       0   1  2   3  4   5          c = (3, 3): only η = 5 (row 3 of column 1) is a hole
    row     0   1  1   2  2   3
    column  -   1  2   1  2   1

The mechanism and its δ are those of `cuts`, with

    T_c = 1 + Σ_j (a + ... + a^{c_j - 1}),
    S_c = max over μ of the w-mass of the elements off the holes whose η + μ is a hole;
          η + μ never wraps into a hole, as rows 0 and 1 have none,
    chain weight = Σ_{j with a hole} a^{c_j - 1} = this w-mass for μ = μ̄, which is at most S_c.
Only grouped vectors are enumerated: non-increasing on the tall columns and non-increasing on the
short ones. Any cut vector gives a feasible mechanism, so no proof depends on this choice. Grouped
vectors suffice if μ̄ divides n and ε >= ln 2, or if n <= 2μ̄. For n <= 13 the tests find no better
vector, but larger n have some: for n = 59, μ̄ = 7, ε = .8772, δ = .0506 another vector has an f(0)
that is larger by the share 6e-5.

| paper (Kadam et al. 2024) | here                         |
|---------------------------|------------------------------|
| μ̄                         | `mu_bar`                     |
| b, r, (26)                | `rows`, `tall_columns`       |
| e^{-ε}                    | `Grid.ratio`, a above        |
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from workbench.models.oracles.cuts import geometric_sum
from workbench.solvers.arrays import Flags, Integers, Vector

# If a list of grouped cut vectors would take more table look-ups (about a second), none is made.
MAX_LOOKUPS = 30_000_000
MAX_VECTORS = 200_000  # A list of more grouped cut vectors is not made.


@dataclass(frozen=True)
class Grid:
    """The table of rows and columns for answers 0..n and differences 1..μ̄.

    Attributes:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
    """

    n: int
    mu_bar: int
    epsilon: float

    @property
    def rows(self) -> int:
        """Return b = ⌊n / μ̄⌋."""
        return self.n // self.mu_bar

    @property
    def tall_columns(self) -> int:
        """Return r = n - b μ̄, the number of columns with b + 1 rows."""
        return self.n % self.mu_bar

    @property
    def ratio(self) -> float:
        """Return a = e^{-ε}."""
        return math.exp(-self.epsilon)

    @property
    def row(self) -> Integers:
        """Return the row of each η, shape (n + 1,)."""
        return -(-np.arange(self.n + 1) // self.mu_bar)

    @property
    def weights(self) -> Vector:
        """Return w(η) = a^row, shape (n + 1,)."""
        weights: Vector = np.exp(-self.epsilon * self.row)
        return weights

    @property
    def total(self) -> float:
        """Return T₀, the total weight of all noise values without a cut.

        It is 1 / φ₀ of (29) in Kadam et al. 2024.
        """
        full_rows = self.mu_bar * geometric_sum(self.epsilon, self.rows)
        return 1.0 + float(full_rows + self.tall_columns * self.ratio ** (self.rows + 1))

    @property
    def heights(self) -> Integers:
        """Return the number of rows of each column, shape (μ̄,)."""
        is_tall = np.arange(self.mu_bar) < self.tall_columns
        return self.rows + is_tall.astype(np.int64)

    @property
    def grouped_count(self) -> int:
        """Return the number of grouped cut vectors, the uncut one included."""
        tall_count = math.comb(self.tall_columns + self.rows, self.rows)
        short_columns = self.mu_bar - self.tall_columns
        return tall_count * math.comb(short_columns + self.rows - 1, self.rows - 1)

    def holes(self, cut: Integers) -> Flags:
        """Return whether a cut vector makes each noise value a hole, shape (n + 1,).

        Args:
            cut: cut vector, shape (μ̄,).
        """
        holes = np.zeros(self.n + 1, dtype=np.bool_)
        holes[1:] = self.row[1:] >= cut[np.arange(self.n) % self.mu_bar]
        return holes


class Cuts(NamedTuple):
    """Cut vectors with their T, S and chain weights. Position v of every array is one cut.

    Attributes:
        vectors: the cut vectors, shape (V, μ̄).
        totals: total weight T of each cut, shape (V,).
        broken_weights: weight S of the broken constraints of each cut, shape (V,).
        chain_weights: chain weight of each cut, shape (V,).
    """

    vectors: Integers
    totals: Vector
    broken_weights: Vector
    chain_weights: Vector

    def select(self, mask: Flags) -> "Cuts":
        """Return the cuts for which the mask is true.

        Args:
            mask: whether each cut is returned, shape (V,).
        """
        return Cuts(
            self.vectors[mask],
            self.totals[mask],
            self.broken_weights[mask],
            self.chain_weights[mask],
        )

    @staticmethod
    def join(families: Sequence["Cuts"]) -> "Cuts":
        """Concatenate lists of cuts.

        Args:
            families: at least one list of cuts, all for the same grid.
        """
        return Cuts(*(np.concatenate(parts) for parts in zip(*families, strict=True)))


def evaluate_cuts(grid: Grid, vectors: Integers) -> Cuts:
    """Compute T, S and the chain weight of cut vectors.

    Args:
        grid: table of rows and columns for n, μ̄ and ε.
        vectors: cut vectors with entries 2..height + 1, shape (V, μ̄).
    """
    heights = grid.heights
    powers = grid.ratio ** (vectors - 1)
    totals = 1.0 + geometric_sum(grid.epsilon, vectors - 1).sum(axis=1)
    chain_weights = np.where(vectors <= heights, powers, 0.0).sum(axis=1)
    span = grid.rows + 3
    run_sums = geometric_sum(grid.epsilon, np.arange(span))  # Sums a + ... + a^length.
    first_powers = grid.ratio ** (np.arange(span + 1) - 2.0)  # The entry c is a^(c - 2).
    broken_weights = chain_weights.copy()  # The chain weight is the broken weight of the shift μ̄.
    columns = np.ascontiguousarray(vectors.T)
    for mu in range(1, grid.mu_bar):
        # The shift mu leads from the source column into the column, in the same row or, where the
        # source column is negative, from the row above. A constraint is broken if its element is
        # off the holes and the shift leads it into a hole.
        shift_weight = np.zeros(len(vectors))
        for column, height in enumerate(heights.tolist()):
            source = column - mu
            is_row_above = int(source < 0)
            # The holes in which these constraints end have the rows first_hole..last_hole. Their
            # sources have the weights a^row, or a^(row - 1) in the row above.
            first_hole = columns[column]
            last_hole = np.minimum(columns[source] - 1 + is_row_above, height)
            hole_count = np.maximum(last_hole - first_hole + 1, 0)
            shift_weight += first_powers[first_hole + 1 - is_row_above] * run_sums[hole_count]
        np.maximum(broken_weights, shift_weight, out=broken_weights)
    return Cuts(vectors, totals, broken_weights, chain_weights)


def _non_increasing_vectors(length: int, low: int, high: int) -> Integers:
    """Return all non-increasing vectors with entries low..high, shape (vectors, length)."""
    vectors = list(combinations_with_replacement(range(high, low - 1, -1), length))
    return np.array(vectors, dtype=np.int64).reshape(len(vectors), length)


def grouped_cuts(grid: Grid) -> Cuts | None:
    """List every grouped cut vector that has a hole. The list does not depend on δ.

    Args:
        grid: table of rows and columns for n, μ̄ and ε.

    Returns:
        The cuts. None if there are more than MAX_VECTORS, or if the look-ups would exceed
        MAX_LOOKUPS.
    """
    mu_bar = grid.mu_bar
    if grid.grouped_count > min(MAX_VECTORS, MAX_LOOKUPS // mu_bar**2):
        return None
    tall_vectors = _non_increasing_vectors(grid.tall_columns, low=2, high=grid.rows + 2)
    short_vectors = _non_increasing_vectors(mu_bar - grid.tall_columns, low=2, high=grid.rows + 1)
    tall_part = np.repeat(tall_vectors, len(short_vectors), axis=0)
    short_part = np.tile(short_vectors, (len(tall_vectors), 1))
    vectors = np.hstack([tall_part, short_part])
    has_cut = (vectors <= grid.heights).any(axis=1)
    return evaluate_cuts(grid, vectors[has_cut])
