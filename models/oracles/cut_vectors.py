"""List cut mechanisms for noise modulo n + 1 with differences 1..μ̄, with their weights.

The functions answer: which sets of noise values may have smaller masses (holes), and what are the
total weight T of the rest, the weight S of the broken constraints and the chain loss of each? The
search for the best cut is in `column_cut`, the mechanism of a cut in `cuts`.

Notation. f is the PMF of the noise η, a = e^-ε, μ a shift (a difference of neighbouring answers)
and μ̄ the largest one. w is the weight of a noise value relative to f(0), and n = b μ̄ + r,
0 <= r < μ̄. "Off the holes" means on the elements that are not holes. A constraint
f(η) <= e^ε f(η + μ) is broken if it does not hold.

Write η = (i - 1) μ̄ + j, row i >= 1, column j in 1..μ̄; row(0) = 0 and w(η) = a^row. The first r
columns are tall (b + 1 rows), the others are short (b rows). A cut vector c makes the rows >= c_j
of column j holes, with c_j >= 2. If c_j is the height of the column plus 1, the column has no hole.
The mechanism and its δ are those of `cuts`, with

    T_c = 1 + Σ_j (a + ... + a^{c_j - 1}),
    S_c = max over μ of the w-mass of the elements off the holes whose η + μ is a hole;
          η + μ never wraps into a hole, as rows 0 and 1 have none,
    Σ_{j cut} a^{c_j - 1} = this w-mass for μ = μ̄, summed over the columns j with a hole: the chain
    loss, which is at most S_c.

Only grouped vectors are enumerated: non-increasing on the tall columns and non-increasing on the
short ones. Any cut vector gives a feasible mechanism, so no proof depends on this choice. Grouped
vectors suffice if μ̄ divides n and ε >= ln 2, or if n <= 2μ̄. For n <= 13 the tests find no better
vector, but larger n have some: for n = 59, μ̄ = 7, ε = .8772, δ = .0506 another vector has an f(0)
that is larger by the share 6e-5.

| paper (Kadam et al. 2024) | here                         |
|---------------------------|------------------------------|
| μ̄                         | `mu_bar`                     |
| b, r                      | `rows`, `tall_columns`, (26) |
| e^{-ε}                    | a                            |
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from workbench.models.oracles.cuts import geometric_sum
from workbench.solvers.arrays import Flags, Integers, Vector

# Grouped cut vectors are listed if that takes at most this many table look-ups: about a second.
MAX_LOOKUPS = 30_000_000
# Grouped cut vectors are listed if there are at most this many.
MAX_VECTORS = 200_000


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
    """Cut vectors with their T, S and chain losses.

    Attributes:
        vectors: the cut vectors, shape (V, μ̄).
        totals: total weight T of each cut, shape (V,).
        losses: weight S of the broken constraints of each cut, shape (V,).
        chain_losses: chain loss of each cut, shape (V,).
    """

    vectors: Integers
    totals: Vector
    losses: Vector
    chain_losses: Vector

    def select(self, mask: Flags) -> "Cuts":
        """Return the cuts for which the mask is true.

        Args:
            mask: whether each cut is returned, shape (V,).
        """
        return Cuts(
            self.vectors[mask],
            self.totals[mask],
            self.losses[mask],
            self.chain_losses[mask],
        )

    @staticmethod
    def join(families: Sequence["Cuts"]) -> "Cuts":
        """Return several families of cuts as one.

        Args:
            families: the families of cuts.
        """
        return Cuts(*(np.concatenate(parts) for parts in zip(*families, strict=True)))


def evaluate_cuts(grid: Grid, vectors: Integers) -> Cuts:
    """Compute T, S and the chain loss of cut vectors.

    Args:
        grid: table of rows and columns for n, μ̄ and ε.
        vectors: cut vectors with entries 2..height + 1, shape (V, μ̄).
    """
    heights = grid.heights
    powers = grid.ratio ** (vectors - 1)
    totals = 1.0 + geometric_sum(grid.epsilon, vectors - 1).sum(axis=1)
    chain_losses = np.where(vectors <= heights, powers, 0.0).sum(axis=1)
    span = grid.rows + 3
    run_sums = geometric_sum(grid.epsilon, np.arange(span))  # Sums a + ... + a^length.
    first_powers = grid.ratio ** (np.arange(span + 1) - 2.0)  # The entry c is a^(c - 2).
    losses = chain_losses.copy()
    columns = np.ascontiguousarray(vectors.T)
    for mu in range(1, grid.mu_bar):
        crossing = np.zeros(len(vectors))
        for column, height in enumerate(heights.tolist()):
            source = column - mu
            # A negative source is the column of the row above.
            is_row_above = int(source < 0)
            cut = columns[column]
            # The crossing elements have rows cut <= i < cut of the source in the same row, or <= it
            # in the row above. Their masses are a^i, or a^(i-1).
            end = np.minimum(columns[source] - 1 + is_row_above, height)
            length = np.maximum(end - cut + 1, 0)
            crossing += first_powers[cut + 1 - is_row_above] * run_sums[length]
        np.maximum(losses, crossing, out=losses)
    return Cuts(vectors, totals, losses, chain_losses)


def _non_increasing_vectors(length: int, low: int, high: int) -> Integers:
    """Return all non-increasing vectors with entries low..high, shape (vectors, length)."""
    vectors = list(combinations_with_replacement(range(high, low - 1, -1), length))
    return np.array(vectors, dtype=np.int64).reshape(len(vectors), length)


def grouped_cuts(grid: Grid) -> Cuts | None:
    """Return every grouped cut vector but the uncut one, for every δ.

    Args:
        grid: table of rows and columns for n, μ̄ and ε.

    Returns:
        The cuts, or None if there are too many.
    """
    mu_bar = grid.mu_bar
    if grid.grouped_count > min(MAX_VECTORS, MAX_LOOKUPS // mu_bar**2):
        return None
    tall_vectors = _non_increasing_vectors(grid.tall_columns, 2, grid.rows + 2)
    short_vectors = _non_increasing_vectors(mu_bar - grid.tall_columns, 2, grid.rows + 1)
    tall_part = np.repeat(tall_vectors, len(short_vectors), axis=0)
    short_part = np.tile(short_vectors, (len(tall_vectors), 1))
    vectors = np.hstack([tall_part, short_part])
    has_cut = (vectors <= grid.heights).any(axis=1)
    return evaluate_cuts(grid, vectors[has_cut])
