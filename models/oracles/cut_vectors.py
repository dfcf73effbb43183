"""Cut vectors of the bounded-difference (BD) relation 𝓜 = {1..μ̄} on Z_{n+1}: their totals T, losses S and chain
losses.

Write η = (i - 1) μ̄ + j, row i >= 1, column j in 1..μ̄; row(0) = 0 and w(η) = a^row. The first r columns are tall
(b + 1 rows), the others short (b rows). A cut vector c makes the rows >= c_j >= 2 of column j holes; c_j = height + 1
leaves column j whole. The mechanism and its δ are those of `cuts`, with

    T_c = 1 + Σ_j (a + ... + a^{c_j - 1}),
    S_c = max over μ of the w-mass of the elements off the holes whose η + μ is a hole; η + μ never wraps into a hole,
          as rows 0 and 1 have none,
    Σ_{j cut} a^{c_j - 1} = the part of S_c that μ = μ̄ alone counts: the chain loss.

Only grouped vectors are enumerated: non-increasing on the tall columns and non-increasing on the short ones. Any cut
vector gives a feasible mechanism, so no proof rests on this choice. They are all one needs where μ̄ | n and ε >= ln 2
or n <= 2μ̄; tests find no better vector for n <= 13, but some exist: n = 59, μ̄ = 7, ε = .8772, δ = .0506 by 6e-5 of
f(0).

| paper    | here                                   |
|----------|----------------------------------------|
| μ̄        | `mu_bar`                               |
| b, r     | `rows`, `tall`, (26)                   |
| e^{-ε}   | a                                      |
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from workbench.models.oracles.cuts import geometric_sum
from workbench.solvers.arrays import Flags, Integers, Vector

MAX_LOOKUPS = 30_000_000
"""Grouped cut vectors are listed when that takes at most this many table look-ups (about a second) ..."""

MAX_VECTORS = 200_000
"""... and at most this many vectors."""


@dataclass(frozen=True)
class Grid:
    """The table of rows and columns of one BD question."""

    n: int
    mu_bar: int
    epsilon: float

    @property
    def rows(self) -> int:
        """b = ⌊n / μ̄⌋."""
        return self.n // self.mu_bar

    @property
    def tall(self) -> int:
        """r = n - b μ̄, the number of columns with b + 1 rows."""
        return self.n % self.mu_bar

    @property
    def ratio(self) -> float:
        """a = e^{-ε}."""
        return math.exp(-self.epsilon)

    @property
    def row(self) -> Integers:
        """Row of each η, shape (n + 1,)."""
        return -(-np.arange(self.n + 1) // self.mu_bar)

    @property
    def weights(self) -> Vector:
        """w(η) = a^row, shape (n + 1,)."""
        weights: Vector = np.exp(-self.epsilon * self.row)
        return weights

    @property
    def total(self) -> float:
        """T₀ = 1 / φ₀, (29)."""
        return 1.0 + float(
            self.mu_bar * geometric_sum(self.epsilon, self.rows)
            + self.tall * self.ratio ** (self.rows + 1)
        )

    @property
    def heights(self) -> Integers:
        """Rows of each column, shape (μ̄,)."""
        return self.rows + (np.arange(self.mu_bar) < self.tall).astype(np.int64)

    @property
    def grouped_count(self) -> int:
        """Number of grouped cut vectors, the uncut one included."""
        tall = math.comb(self.tall + self.rows, self.rows)
        return tall * math.comb(self.mu_bar - self.tall + self.rows - 1, self.rows - 1)

    def holes(self, cut: Integers) -> Flags:
        """Which η the cut vector empties, shape (n + 1,)."""
        holes = np.zeros(self.n + 1, dtype=np.bool_)
        holes[1:] = self.row[1:] >= cut[np.arange(self.n) % self.mu_bar]
        return holes


class Cuts(NamedTuple):
    """Cut vectors, shape (V, μ̄), and their T, S and chain losses, each of shape (V,)."""

    vectors: Integers
    totals: Vector
    losses: Vector
    chain_losses: Vector

    def select(self, kept: Flags) -> "Cuts":
        """The cut vectors of a mask."""
        return Cuts(
            self.vectors[kept], self.totals[kept], self.losses[kept], self.chain_losses[kept]
        )

    @staticmethod
    def join(families: Sequence["Cuts"]) -> "Cuts":
        """Several families as one."""
        return Cuts(*(np.concatenate(parts) for parts in zip(*families, strict=True)))


def evaluate_cuts(grid: Grid, vectors: Integers) -> Cuts:
    """T, S and chain loss of cut vectors, shape (V, μ̄), entries 2..height + 1."""
    heights = grid.heights
    powers = grid.ratio ** (vectors - 1)
    totals = 1.0 + geometric_sum(grid.epsilon, vectors - 1).sum(axis=1)
    chain_losses = np.where(vectors <= heights, powers, 0.0).sum(axis=1)
    span = grid.rows + 3
    run = geometric_sum(grid.epsilon, np.arange(span))  # a + ... + a^length
    before = grid.ratio ** (np.arange(span + 1) - 2.0)  # before[c] = a^(c - 2)
    losses = chain_losses.copy()
    columns = np.ascontiguousarray(vectors.T)
    for mu in range(1, grid.mu_bar):
        crossing = np.zeros(len(vectors))
        for column, height in enumerate(heights.tolist()):
            source = column - mu
            above = int(source < 0)  # then a negative index is the column of the row above
            cut = columns[column]
            # rows cut <= i < cut of the source (the same row), or <= it (the row above), have a^i, or a^(i-1)
            length = np.maximum(np.minimum(columns[source] - 1 + above, height) - cut + 1, 0)
            crossing += before[cut + 1 - above] * run[length]
        np.maximum(losses, crossing, out=losses)
    return Cuts(vectors, totals, losses, chain_losses)


def _non_increasing(length: int, low: int, high: int) -> Integers:
    vectors = list(combinations_with_replacement(range(high, low - 1, -1), length))
    return np.array(vectors, dtype=np.int64).reshape(len(vectors), length)


def grouped_cuts(grid: Grid) -> Cuts | None:
    """Every grouped cut vector but the uncut one, or None when there are too many; it does not depend on δ."""
    mu_bar = grid.mu_bar
    if grid.grouped_count > min(MAX_VECTORS, MAX_LOOKUPS // mu_bar**2):
        return None
    tall = _non_increasing(grid.tall, 2, grid.rows + 2)
    short = _non_increasing(mu_bar - grid.tall, 2, grid.rows + 1)
    vectors = np.hstack([np.repeat(tall, len(short), axis=0), np.tile(short, (len(tall), 1))])
    return evaluate_cuts(grid, vectors[(vectors <= grid.heights).any(axis=1)])
