"""Two-bin mechanisms: OPTM, the linear programs of Cai et al. 2024 (Theorems 4-6), and their exact optimum in a box.

The mechanism draws a left bin by q^l_j and a right bin by q^r_{m-j} (mechanisms.baselines.two_bin in the workbench). On
piece j, where j bins lie at or left of x, the two have the joint law π_j(l, r) = q^l_j(l) q^r_{m-j}(m+1-r), and

    p(x, l) = Σ_r π_j(l, r) s(l, r),   p(x, r) = Σ_l π_j(l, r) (1 - s(l, r)),   s(l, r) = (B_r - x)/(B_r - B_l)      (4)

OPTM. A linear program needs bounds o <= q <= u on one factor of each product: in z(x, i) >= p(x, i) that factor is
replaced by u, in w(x, i) <= p(x, i) by o, (11)-(12). The factor replaced is the one of the shorter vector (q_j with
j <= m/2), the own one q_j(i) when both have the same length; products with q_1(1) = 1 are linear as they are. With
m = 4 that leaves one number, q_2(1), and slices [l, l + 0.01] of it: 99 LPs for one choice of bins.

    minimise    Σ_j Pr[B_j <= X < B_{j+1}] (ζ^r_{m-j} + B_{j+1} - B_j + ζ^l_j) / 2            (8); (7) when q^l = q^r
    subject to  z <= e^ε w  for every z of S̄_i and every w of S_i (Lemma 2), every i           Theorem 5
                q_i(i) >= q_j(i),  o <= q <= u,  Σ_i q_j(i) = 1

Theorem 5 is read as all pairs (z, w) of Lemma 2's two sets, as its proof needs; printed are only those with equal k,
and its "q_{m+1-j}(m+1-j)" must read q_{m+1-i}(m+1-i). All pairs of one i share a number t_i: z <= e^ε t_i, t_i <= w.
For a bin right of 1 the largest p is approached at the right ends of pieces (Lemma 2 prints p(B_k, i) there too,
which is harmless under its symmetry but not in Theorem 4's setting). The authors' public code states other programs:
workbench.papers.optm.authors.

The optimum. Everything exact is linear in π: the end laws (4), hence low(i) <= p(x, i) <= e^ε low(i) at both ends of
every piece, and the expected error

    E e(M(X) - X) = Σ_j Σ_{l,r} π_j(l, r) E[ (B_r - X) e(X - B_l) + (X - B_l) e(B_r - X) ; X in piece j ] / (B_r - B_l)

Only "π is a product" is not linear. In a box lo <= q <= hi of the shorter vectors every product obeys

    lo(k) q(k') <= π(k, k') <= hi(k) q(k'),      Σ_k' π(k, k') = q(k),   Σ_k π(k, k') = q(k')

which is an LP whose value bounds all products in the box below, and is exact when lo = hi. Branching on boxes gives
the optimum with a proof; for m <= 5 only one number is branched on.

| paper              | here                                                        |
|--------------------|-------------------------------------------------------------|
| q^(l)_j, q^(r)_j   | columns["l", j], columns["r", j]; symmetric: only "l"       |
| o_j(i), u_j(i)     | bounds: {(side, j): (o, u)}, arrays of length j             |
| ζ                  | in `losses`                                                 |
| Theorem 6          | bounds (u_{s-1}(s-1), o_{t-1}(1), o_t(1))                   |
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.solvers.arrays import Pair, Positions, Vector

VectorKey = tuple[str, int]
VectorBounds = Mapping[VectorKey, Pair]
Entries = tuple[Positions, Vector]  # columns and their coefficients
Compared = tuple[
    tuple[int, int], tuple[int, int], float
]  # (j, i), (k, l), f of a row q_j(i) <= f q_k(l)
_NO_MORE = np.array([1.0, -1.0])  # of a row that one column is no more than another


@lru_cache(maxsize=1024)
def _shares(bins: tuple[float, ...], j: int, x: float) -> Vector:
    places = np.array(bins)
    return np.asarray((places[j:] - x) / (places[j:] - places[:j, None]))


@dataclass(frozen=True)
class TwoBinShape:
    """Bins and who may draw what: the columns, pieces and products of the two-bin family.

    Attributes:
        bins: B_1 < ... < B_m, floats; inputs are in [-1, 1].
        masses: Pr[X in piece] for every piece, from left to right.
        symmetric: q^l = q^r (for symmetric bins and densities).
    """

    bins: tuple[float, ...]
    masses: tuple[float, ...]
    symmetric: bool = True

    @property
    def m(self) -> int:
        """The number of bins."""
        return len(self.bins)

    @property
    def right_side(self) -> str:
        """The side that right bins are drawn by."""
        return "l" if self.symmetric else "r"

    @cached_property
    def inner_bins(self) -> list[int]:
        """The bins i (from 1) in (-1, 1)."""
        return [i for i, b in enumerate(self.bins, 1) if -1 < b < 1]

    @cached_property
    def pieces(self) -> list[tuple[int, float, float]]:
        """(j, a, b): for x in [a, b) there are j bins at or left of x."""
        ends = [-1.0, *(self.bins[i - 1] for i in self.inner_bins), 1.0]
        below = sum(b <= -1 for b in self.bins)
        return [(below + k, ends[k], ends[k + 1]) for k in range(len(ends) - 1)]

    @cached_property
    def columns(self) -> dict[VectorKey, Positions]:
        """The columns of every selection distribution that inputs use, (side, length) -> those of q(1), q(2), ..."""
        keys = sorted(
            {key for j, _, _ in self.pieces for key in (("l", j), (self.right_side, self.m - j))}
        )
        parts = np.split(np.arange(sum(j for _, j in keys)), np.cumsum([j for _, j in keys])[:-1])
        return dict(zip(keys, parts, strict=True))

    @cached_property
    def size(self) -> int:
        """How many columns these are."""
        return sum(j for _, j in self.columns)

    def piece_columns(self, j: int) -> tuple[Positions, Positions]:
        """The columns of the left bins 1..j and of the right bins j+1..m, both from left to right, on piece j."""
        return self.columns["l", j], self.columns[self.right_side, self.m - j][::-1]

    def shorter_vector(self, j: int) -> VectorKey:
        """The vector of piece j that is bounded: of equal ones the left."""
        return ("l", j) if 2 * j <= self.m else (self.right_side, self.m - j)

    @cached_property
    def bounded_vectors(self) -> list[VectorKey]:
        """The vectors of two entries or more that need bounds."""
        return sorted(
            key for key in {self.shorter_vector(j) for j, _, _ in self.pieces} if key[1] > 1
        )

    def left_probabilities(self, j: int, x: float) -> Vector:
        """s(l, r) of (4) on piece j. Shape (j, m - j)."""
        return _shares(self.bins, j, x)

    def replaced_probabilities(
        self, j: int, x: float, fixed: Mapping[VectorKey, Vector], other: float | None = None
    ) -> list[Entries]:
        """p(x, i) on piece j, i = 1..m, with the bounded factor at its values `fixed`; other: x of i > j."""
        (left, right), shorter = self.piece_columns(j), self.shorter_vector(j)
        s, kept = (
            self.left_probabilities(j, x),
            1 - self.left_probabilities(j, x if other is None else other),
        )
        q = fixed[shorter] if shorter[1] > 1 else np.ones(1)
        own = (
            self.symmetric and 2 * j == self.m
        )  # both vectors are the bounded one: the own factor is replaced
        first = shorter == ("l", j)
        upper: Iterable[Entries]
        lower = (
            ((right, row) for row in q[:, None] * s)
            if first
            else zip(left[:, None], s @ q[::-1, None], strict=True)
        )
        if not first or own:
            upper = ((left, row) for row in q[::-1, None] * kept.T)
        else:
            upper = zip(right[:, None], kept.T @ q[:, None], strict=True)
        return [*lower, *upper]

    @property
    def private_bin_count(self) -> int:
        """How many bins' privacy is stated: half of them when symmetric."""
        return (self.m + 1) // 2 if self.symmetric else self.m

    @cached_property
    def losses(self) -> Vector:
        """(8) as costs of the columns. Its constant is a cost of left vectors, whose sums are 1."""
        loss, bins = np.zeros(self.size), np.array(self.bins)
        for (j, _, _), mass in zip(self.pieces, self.masses, strict=True):
            left, right = self.piece_columns(j)
            loss[left] += mass * (bins[j] - bins[:j]) / 2
            loss[right] += mass * (bins[j:] - bins[j]) / 2
        return loss

    def start_program(self, extra: int, bounds: VectorBounds) -> EntrywiseProgram:
        """Σ q = 1 and these bounds, without losses; `extra` more columns in [0, 1]."""
        lp = EntrywiseProgram(self.size + extra)
        for key, (low, high) in bounds.items():
            lp.lower[self.columns[key]], lp.upper[self.columns[key]] = low, high
        for columns in self.columns.values():
            lp.add_row(columns, np.ones(columns.size), 1.0, 1.0)
        return lp

    def theorem5(
        self, epsilon: float, bounds: VectorBounds, *, optimistic: bool = False
    ) -> EntrywiseProgram:
        """The LP of Theorem 5 (Theorem 4 when not symmetric).

        bounds: (o, u) of every vector in `bounded`. optimistic: o and u change places in the products, which turns
        the restriction into a relaxation of every LP whose bounds lie within these: its value bounds theirs below.
        """
        lp, odds = self.start_program(self.m, bounds), float(np.exp(epsilon))
        lp.c[: self.size] = self.losses
        low, high = (
            {key: pair[k] for key, pair in bounds.items()}
            for k in ((1, 0) if optimistic else (0, 1))
        )
        largest = [self.replaced_probabilities(j, a, high, b) for j, a, b in self.pieces]
        smallest = [self.replaced_probabilities(j, b, low, a) for j, a, b in self.pieces]
        for i in range(1, self.private_bin_count + 1):
            t = [self.size + i - 1], [1.0]
            for (j, a, b), large, small in zip(self.pieces, largest, smallest, strict=True):
                if i not in self.inner_bins or (a if i <= j else b) == self.bins[i - 1]:
                    lp.add_at_most(large[i - 1], t, odds)  # z <= e^ε t
                lp.add_at_most(t, small[i - 1])  # t <= w
        return lp.add_comparisons(self._diagonal)

    @cached_property
    def _diagonal(self) -> list[Entries]:
        """The rows q_j(i) <= q_i(i)."""
        vectors = self.columns.items()
        return [
            (np.array([long[i - 1], short[i - 1]]), _NO_MORE)
            for (side, i), short in vectors
            for (other, j), long in vectors
            if side == other and j > i
        ]

    def theorem6(
        self, epsilon: float, u: float, o_before: float, o_last: float
    ) -> EntrywiseProgram:
        """The reduced LP of Theorem 6 for symmetric bins with at least two inside (-1, 1).

        u, o_before, o_last: the bounds on q_{s-1}(s-1), q_{t-1}(1), q_t(1); B_s < B_t are the bins in (-1, 1)
        closest to -1 and 1. (What is known to be 1 needs no bound.)
        """
        if not self.symmetric or len(self.inner_bins) < 2:
            raise ValueError("Theorem 6 must have symmetric bins with at least two inside (-1, 1).")
        s, t, m, q = self.inner_bins[0], self.inner_bins[-1], self.m, self.columns
        lp = self.start_program(0, {})
        lp.c[: self.size] = self.losses
        lp.add_comparisons(self._falling)
        # the two largest probabilities of an output, q_s(s) and p(-1, s-1), and the two smallest, p(B_t, 1) and p(1, 1)
        at_c, before, at_t = (
            self.left_probabilities(s - 1, -1.0)[-1],
            self.piece_columns(t - 1)[1],
            self.piece_columns(t),
        )
        larger = (
            (q["l", s][[-1]], np.ones(1)),
            (self.piece_columns(s - 1)[1], (1.0 if s == 2 else u) * at_c),
        )
        last = self.left_probabilities(t, 1.0)[
            0
        ]  # of one right bin: q_1(1) = 1, no bound is needed
        smaller = (
            (before[1:], o_before * self.left_probabilities(t - 1, self.bins[t - 1])[0, 1:]),
            (at_t[0][[0]], last) if m - t == 1 else (at_t[1], o_last * last),
        )
        for large, small in itertools.product(larger, smaller):
            lp.add_at_most(large, small, float(np.exp(epsilon)))
        lp.add_comparisons(self._following)
        for j, bound in ((t - 1, o_before), (t, o_last)):
            if ("l", j) in q and (j != t or m - t > 1):
                lp.lower[q["l", j][0]] = max(lp.lower[q["l", j][0]], bound)
        if s > 2:
            lp.upper[q["l", s - 1][-1]] = u
        return lp

    def _rows(self, pairs: Iterable[Compared]) -> list[Entries]:
        """The rows q_j(i) <= factor q_k(l) for (j, i), (k, l), where inputs use both."""
        return [
            (np.array([self.columns["l", j][i - 1] for j, i in both]), np.array([1.0, -factor]))
            for *both, factor in pairs
            if both[0] != both[1] and all(("l", j) in self.columns for j, _ in both)
        ]

    @cached_property
    def _falling(self) -> list[Entries]:
        """Of Theorem 6: selections fall with the length, and away from the input."""
        pairs = []
        for _, j in self.columns:
            for i in range(1, j + 1):
                pairs.append(((j + 1, i), (j, i), 1.0))
                if i < j:
                    pairs.append(((j, i), (j, i + 1), 1.0))
        return self._rows([*pairs, *(((i + 1, i + 1), (i, i), 1.0) for i in self.inner_bins)])

    @cached_property
    def _following(self) -> list[Entries]:
        """Of Theorem 6: lengths that follow each other, bin by bin."""
        pairs = []
        m, bins = self.m, self.bins
        for k in range(self.inner_bins[0], self.inner_bins[-1] + 1):
            for r in range(k + 2, m + 1):
                factor, i = (bins[r - 1] - bins[k - 1]) / (bins[r - 1] - bins[k]), m - r + 1
                pairs += [
                    ((m - k, i), (m - k + 1, i), factor),
                    ((m - k - 1, i), (m - k, i), factor),
                ]
        return self._rows(pairs)

    def read_distribution(self, x: Vector, key: VectorKey) -> Vector:
        """One selection distribution of a point of a program, a distribution again."""
        q = np.maximum(x[self.columns[key]], 0.0)
        return np.asarray(q / q.sum())

    def read_selections(self, x: Vector) -> tuple[list[Vector | None], list[Vector | None]]:
        """The left and right selection distributions of a point, for `two_bin`: None where no input uses one."""
        laws = {key: np.maximum(x[columns], 0.0) for key, columns in self.columns.items()}
        left, right = (
            [laws.get((side, j)) for j in range(1, self.m)] for side in ("l", self.right_side)
        )
        return left, right


@dataclass(frozen=True, eq=False)
class ProductModel:
    """The boxes of one two-bin family.

    Attributes:
        shape: bins, pieces and vectors.
        gains: for every piece j E[...] above, the losses of π_j, from the caller's density and error, (j, m - j).
    """

    shape: TwoBinShape
    gains: tuple[Vector, ...]

    @cached_property
    def joint_columns(self) -> list[Positions]:
        """The columns of π_j for every piece j. Shapes (j, m - j)."""
        ends = np.cumsum([self.shape.size, *(gain.size for gain in self.gains)])
        return [
            first + np.arange(g.size).reshape(g.shape)
            for first, g in zip(ends[:-1], self.gains, strict=True)
        ]

    def build_box_program(self, epsilon: float, box: VectorBounds) -> EntrywiseProgram:
        """The LP of a box, (lo, hi) for every bounded vector."""
        shape, odds, least = (
            self.shape,
            float(np.exp(epsilon)),
            int(self.joint_columns[-1][-1, -1]) + 1,
        )
        lp = shape.start_program(least - shape.size + shape.m, box)
        for (j, a, b), pi, gain in zip(shape.pieces, self.joint_columns, self.gains, strict=True):
            left, right = shape.piece_columns(j)
            for drawn, row in [*zip(left, pi, strict=True), *zip(right, pi.T, strict=True)]:
                lp.add_row([*row, drawn], [*np.ones(row.size), -1.0], 0.0, 0.0)
            lp.c[pi] = gain
            key = shape.shorter_vector(j)
            if key in box:
                of_left = key == ("l", j)
                low, high = (
                    np.broadcast_to(q[:, None] if of_left else q[::-1], pi.shape) for q in box[key]
                )
                other = np.broadcast_to(right if of_left else left[:, None], pi.shape)
                for column, q, least_q, most_q in zip(
                    pi.flat, other.flat, low.flat, high.flat, strict=True
                ):
                    lp.add_row([column, q], [-1.0, least_q])
                    lp.add_row([column, q], [1.0, -most_q])
            for x in (a, b):
                s = shape.left_probabilities(j, x)
                laws = [*zip(pi, s, strict=True), *zip(pi.T, (1 - s).T, strict=True)]
                for i, law in enumerate(laws[: shape.private_bin_count]):
                    lp.add_at_most(law, ([least + i], [1.0]), odds)
                    lp.add_at_most(([least + i], [1.0]), law)
        return lp

    def product_violation(self, x: Vector) -> dict[VectorKey, Vector]:
        """How far π is from a product, summed on every entry of the bounded vectors."""
        sums = {key: np.zeros(key[1]) for key in self.shape.bounded_vectors}
        for (j, _, _), pi in zip(self.shape.pieces, self.joint_columns, strict=True):
            left, right = self.shape.piece_columns(j)
            apart = np.abs(x[pi] - np.outer(x[left], x[right]))
            key = self.shape.shorter_vector(j)
            if key in sums:
                sums[key] += apart.sum(axis=1) if key == ("l", j) else apart.sum(axis=0)[::-1]
        return sums
