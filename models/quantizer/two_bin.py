"""State the linear programs of the best two-bin mechanisms: OPTM and the optimum in a box.

A two-bin mechanism publishes a private, unbiased estimate of a real input: it draws one output left
and one output right of the input, and publishes one of the two. The programs find the probabilities
of these draws that give the smallest expected error at a given ε. `TwoBinShape.theorem5` and
`theorem6` build the programs of Theorems 4-6 of Cai et al. 2024. That paper calls its mechanism,
and these programs, OPTM. `ProductModel.build_box_program` builds a linear program whose value is a
lower bound on the loss of all two-bin mechanisms in a box. Equation, lemma and theorem numbers
below are those of the paper.

Notation. B_1 < ... < B_m are the bins (outputs), x is the input in [-1, 1], and X is an input drawn
from the density. A selection distribution q_j = (q_j(1), ..., q_j(j)) has length j. Its
superscripts l and r are the left and the right side. Piece j is the interval of inputs that have j
bins at or left of them. p(x, i) is the probability of bin i at input x. Within one bin i, z(x, i)
is an upper bound and w(x, i) a lower bound of p(x, i).

The mechanism draws a left bin by q^l_j and, independently, a right bin by q^r_{m-j}. It then
publishes one of the two so that the mean is x (workbench.mechanisms.baselines.two_bin). On
piece j the left bin l and the right bin r have the joint law
π_j(l, r) = q^l_j(l) q^r_{m-j}(m+1-r) (right bins are counted from the right end), and

    p(x, l) = Σ_r π_j(l, r) s(l, r),   p(x, r) = Σ_l π_j(l, r) (1 - s(l, r)),
    s(l, r) = (B_r - x)/(B_r - B_l)                                                            (4)

Here s(l, r) is the probability of publishing the left bin.

OPTM. The products of two unknown factors are not linear, so a linear program needs bounds
o <= q <= u on one factor of each product. In z(x, i) >= p(x, i) that factor is replaced by u, in
w(x, i) <= p(x, i) by o, (11)-(12). Of each product q^l_j q^r_{m-j} the factor with fewer entries
is replaced. If both have m/2 entries, the factor of bin i itself is replaced. A vector of one entry
is 1, so its products are linear. For m = 4 only q_2(1) needs bounds. They are [l, l + 0.01] for 99
values l (slices), so one choice of bins takes 99 linear programs.

    minimise    Σ_j Pr[B_j <= X < B_{j+1}] (ζ^r_{m-j} + B_{j+1} - B_j + ζ^l_j) / 2
                                                                          (8); (7) when q^l = q^r
    subject to  z <= e^ε w  for every z of S̄_i and every w of S_i (Lemma 2), every i    Theorem 5
                q_i(i) >= q_j(i),  o <= q <= u,  Σ_i q_j(i) = 1

ζ^l_j is the mean distance between B_j and the drawn left bin, ζ^r_{m-j} that between B_{j+1} and
the drawn right bin. S̄_i is the set of bounds z(x, i), and S_i the set of bounds w(x, i), at those
inputs x where p(x, i) can be largest or smallest: the ends of pieces.

`TwoBinShape.theorem5` lists two errata of Theorem 5. The public code of the authors states other
programs: workbench.papers.optm.authors. `ProductModel` has the program whose branching proves the
optimum.

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

VectorKey = tuple[str, int]  # The side of a selection distribution, "l" or "r", and its length.
VectorBounds = Mapping[VectorKey, Pair]  # Lower and upper bounds of selection distributions.
Entries = tuple[Positions, Vector]  # The columns of a row and their coefficients.
# A comparison ((j, i), (k, l), f) is the row q_j(i) <= f q_k(l).
Comparison = tuple[tuple[int, int], tuple[int, int], float]

_DIFFERENCE = np.array([1.0, -1.0])  # Coefficients of a row that compares two columns.


@lru_cache(maxsize=1024)
def _left_probabilities(
    bins: tuple[float, ...],
    j: int,
    x: float,
) -> Vector:
    """Compute s(l, r) of (4) for the left bins 1..j and the right bins, shape (j, m - j)."""
    places = np.array(bins)
    return np.asarray((places[j:] - x) / (places[j:] - places[:j, None]))


@lru_cache(maxsize=1024)
def _right_probabilities(
    bins: tuple[float, ...],
    j: int,
    x: float,
) -> Vector:
    """Compute 1 - s(l, r) for the right bins and the left bins 1..j, shape (m - j, j)."""
    return np.asarray((1 - _left_probabilities(bins, j, x)).T)


@dataclass(frozen=True)
class TwoBinShape:
    """The columns, pieces and products of the two-bin mechanisms with given bins.

    A vector is a selection distribution q_j. Its key is a side ("l" or "r") and a length; if
    `symmetric`, only the side "l" exists. To add rows to the programs, see `theorem5`, `theorem6`
    and `ProductModel.build_box_program`; the rows that all share are in `start_program`.

    Attributes:
        bins: bins B_1 < ... < B_m, in floats. Inputs are in [-1, 1].
        masses: probability Pr[X in piece] of every piece, from left to right.
        symmetric: whether q^l = q^r. This loses nothing for symmetric bins and densities.
    """

    bins: tuple[float, ...]
    masses: tuple[float, ...]
    symmetric: bool = True

    @property
    def m(self) -> int:
        """Return the number of bins."""
        return len(self.bins)

    @property
    def right_side(self) -> str:
        """Return the side by whose vectors right bins are drawn."""
        return "l" if self.symmetric else "r"

    @cached_property
    def inner_bins(self) -> list[int]:
        """Return the numbers of the bins in (-1, 1), counted from 1."""
        return [i for i, b in enumerate(self.bins, 1) if -1 < b < 1]

    @cached_property
    def pieces(self) -> list[tuple[int, float, float]]:
        """Return (j, a, b) for every piece: for x in [a, b) there are j bins at or left of x."""
        ends = [-1.0, *(self.bins[i - 1] for i in self.inner_bins), 1.0]
        first_count = sum(b <= -1 for b in self.bins)
        return [(first_count + k, ends[k], ends[k + 1]) for k in range(len(ends) - 1)]

    @cached_property
    def columns(self) -> dict[VectorKey, Positions]:
        """Return the columns q(1), q(2), ... of every selection distribution that inputs use."""
        used_keys = set()
        for j, _, _ in self.pieces:
            used_keys.add(("l", j))
            used_keys.add((self.right_side, self.m - j))
        keys = sorted(used_keys)
        lengths = [length for _, length in keys]
        parts = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
        return dict(zip(keys, parts, strict=True))

    @cached_property
    def size(self) -> int:
        """Return the number of columns of all selection distributions."""
        return sum(j for _, j in self.columns)

    def piece_columns(self, j: int) -> tuple[Positions, Positions]:
        """Return the columns of the left bins 1..j and of the right bins j+1..m on piece j.

        Both are ordered from left to right.

        Args:
            j: number of bins at or left of the piece.
        """
        return self.columns["l", j], self.columns[self.right_side, self.m - j][::-1]

    def shorter_vector(self, j: int) -> VectorKey:
        """Return the key of the vector of piece j that gets bounds.

        It is the shorter one of q^l_j and q^r_{m-j}, the left one if both are equally long.

        Args:
            j: number of bins at or left of the piece.
        """
        if 2 * j <= self.m:
            return "l", j
        return self.right_side, self.m - j

    @cached_property
    def bounded_vectors(self) -> list[VectorKey]:
        """Return the keys of the vectors that need bounds; a vector of one entry needs none."""
        keys = {self.shorter_vector(j) for j, _, _ in self.pieces}
        return sorted((side, length) for side, length in keys if length > 1)

    def left_probabilities(
        self,
        j: int,
        x: float,
    ) -> Vector:
        """Compute s(l, r) of (4) on piece j, shape (j, m - j).

        Args:
            j: number of bins at or left of the piece.
            x: input.
        """
        return _left_probabilities(self.bins, j, x)

    def replaced_probabilities(
        self,
        j: int,
        x: float,
        bounded_values: Mapping[VectorKey, Vector],
        right_x: float | None = None,
    ) -> list[Entries]:
        """Return the probabilities p(x, i) of bins on piece j as linear expressions.

        In each product of two selection probabilities, one factor is replaced by a number (see OPTM
        in the module header).

        Args:
            j: number of bins at or left of the piece.
            x: input in [-1, 1].
            bounded_values: the numbers, for each key of `bounded_vectors` an array of its length.
            right_x: input for the bins i > j. None: the same input as for the other bins.

        Returns:
            For each bin i that needs privacy rows (`private_bin_count`) the columns and the
            coefficients of p(x, i).
        """
        left, right = self.piece_columns(j)
        bounded_key = self.shorter_vector(j)
        s = self.left_probabilities(j, x)
        if right_x is None:
            right_x = x
        right_shares = _right_probabilities(self.bins, j, right_x)
        _, bounded_length = bounded_key
        q = np.ones(1)
        if bounded_length > 1:
            q = bounded_values[bounded_key]
        is_left_bounded = bounded_key == ("l", j)
        # If both vectors are the bounded one, the factor of the bin itself is replaced.
        are_both_bounded = self.symmetric and 2 * j == self.m
        private_bin_count = self.private_bin_count
        left_count = min(j, private_bin_count)
        right_count = max(0, private_bin_count - j)
        # q counts right bins from the right end. Reversed, it is ordered from left to right, as the
        # rows and columns of the shares are.
        left_entries: Iterable[Entries]
        right_entries: Iterable[Entries]
        if is_left_bounded:
            left_entries = [(right, row) for row in q[:left_count, None] * s[:left_count]]
        else:
            left_entries = zip(left[:left_count, None], s[:left_count] @ q[::-1, None], strict=True)
        right_shares = right_shares[:right_count]
        if not is_left_bounded or are_both_bounded:
            right_entries = [(left, row) for row in q[::-1, None][:right_count] * right_shares]
        else:
            right_entries = zip(right[:right_count, None], right_shares @ q[:, None], strict=True)
        return [*left_entries, *right_entries]

    @property
    def private_bin_count(self) -> int:
        """Return the number of bins that need privacy rows. By symmetry half of them are enough."""
        return (self.m + 1) // 2 if self.symmetric else self.m

    @cached_property
    def losses(self) -> Vector:
        """Return the coefficients of the objective (8) in the columns, shape (size,).

        The constant of (8) is part of the coefficients of left vectors, because their sums are 1.
        """
        loss = np.zeros(self.size)
        bins = np.array(self.bins)
        for (j, _, _), mass in zip(self.pieces, self.masses, strict=True):
            left, right = self.piece_columns(j)
            loss[left] += mass * (bins[j] - bins[:j]) / 2
            loss[right] += mass * (bins[j:] - bins[j]) / 2
        return loss

    def start_program(
        self,
        extra: int,
        bounds: VectorBounds,
    ) -> EntrywiseProgram:
        """Return a program with the rows Σ q = 1 and bounds on vectors, without losses.

        Args:
            extra: number of further columns in [0, 1], behind the selection probabilities.
            bounds: lower and upper bounds of some vectors, for each key two arrays of its length.
        """
        lp = EntrywiseProgram(self.size + extra)
        for key, (low, high) in bounds.items():
            lp.lower[self.columns[key]] = low
            lp.upper[self.columns[key]] = high
        for columns in self.columns.values():
            lp.add_row(columns, np.ones(columns.size), low=1.0, high=1.0)
        return lp

    def theorem5(
        self,
        epsilon: float,
        bounds: VectorBounds,
        *,
        optimistic: bool = False,
    ) -> EntrywiseProgram:
        """Build the linear program of Theorem 5 (Theorem 4 if not symmetric).

        Two errata of the theorem. It prints only the pairs (z, w) with equal k, the number of the
        piece; its proof needs all pairs. Its "q_{m+1-j}(m+1-j)" should be q_{m+1-i}(m+1-i).

        The program states all pairs of one bin i with one more variable t_i: z <= e^ε t_i,
        t_i <= w. For a bin right of 1 the largest p is approached at the right ends of pieces.
        Lemma 2 prints p(B_k, i) there too. Under its symmetry this is harmless, but not in the
        setting of Theorem 4 (no symmetry).

        Args:
            epsilon: the budget ε > 0.
            bounds: bounds (o, u) for every key in `bounded_vectors`, two arrays of its length.
            optimistic: whether o and u change places in the products. The program is then a
                relaxation of every program of Theorem 5 whose bounds lie within these bounds. Its
                value is a lower bound on their values.

        Returns:
            The program. Its columns are the selection probabilities (`columns`) and t_1..t_m.
        """
        lp = self.start_program(self.m, bounds)
        odds = float(np.exp(epsilon))
        lp.c[: self.size] = self.losses
        low_values = {key: low for key, (low, _) in bounds.items()}
        high_values = {key: high for key, (_, high) in bounds.items()}
        if optimistic:
            low_values, high_values = high_values, low_values
        # On a piece, p(x, i) is largest at the end next to bin i, and smallest at the other end.
        largest = [self.replaced_probabilities(j, a, high_values, b) for j, a, b in self.pieces]
        smallest = [self.replaced_probabilities(j, b, low_values, a) for j, a, b in self.pieces]
        for i in range(1, self.private_bin_count + 1):
            t = np.array([self.size + i - 1]), np.ones(1)
            for (j, a, b), z, w in zip(self.pieces, largest, smallest, strict=True):
                end = a if i <= j else b
                # For a bin in (-1, 1) the largest probability is the one at the bin itself.
                if i not in self.inner_bins or end == self.bins[i - 1]:
                    lp.add_at_most(z[i - 1], t, odds)
                lp.add_at_most(t, w[i - 1])
        return lp.add_comparisons(self._diagonal_rows)

    @cached_property
    def _diagonal_rows(self) -> list[Entries]:
        """Return the rows q_j(i) <= q_i(i)."""
        rows = []
        vectors = self.columns.items()
        for ((side, i), vector_i), ((other_side, j), vector_j) in itertools.product(
            vectors, vectors
        ):
            if side == other_side and j > i:
                rows.append((np.array([vector_j[i - 1], vector_i[i - 1]]), _DIFFERENCE))
        return rows

    def theorem6(
        self,
        epsilon: float,
        u: float,
        o_before: float,
        o_last: float,
    ) -> EntrywiseProgram:
        """Build the reduced linear program of Theorem 6, for symmetric bins.

        At least two bins lie in (-1, 1); B_s < B_t are those closest to -1 and 1. Selection
        probabilities that equal 1 need no bound; the bounds given for them are ignored.

        Args:
            epsilon: ε > 0.
            u: upper bound of the probability q_{s-1}(s-1).
            o_before: lower bound of the probability q_{t-1}(1).
            o_last: lower bound of the probability q_t(1).

        Returns:
            The program. Its columns are the selection probabilities (`columns`).

        Raises:
            ValueError: the bins are not symmetric, or fewer than two are inside (-1, 1).
        """
        if not self.symmetric or len(self.inner_bins) < 2:
            raise ValueError("Theorem 6 must have symmetric bins with at least two inside (-1, 1).")
        s = self.inner_bins[0]
        t = self.inner_bins[-1]
        m = self.m
        q = self.columns
        odds = float(np.exp(epsilon))
        lp = self.start_program(0, {})
        lp.c[: self.size] = self.losses
        lp.add_comparisons(self._falling_rows)
        # The two largest probabilities of an output are q_s(s) and p(-1, s-1).
        _, right_at_end = self.piece_columns(s - 1)
        # The last row belongs to the left bin s - 1.
        shares_at_end = self.left_probabilities(s - 1, -1.0)[-1]
        # A distribution of length 1 has the probability 1, so u is not needed.
        factor = 1.0 if s == 2 else u
        largest = (
            (q["l", s][[-1]], np.ones(1)),
            (right_at_end, factor * shares_at_end),
        )
        # The two smallest probabilities of an output are p(B_t, 1) and p(1, 1).
        _, right_before = self.piece_columns(t - 1)
        left_last, right_last = self.piece_columns(t)
        # Row 0 belongs to bin 1. At x = B_t the first right bin is B_t itself. It leaves bin 1 the
        # share 0, so this column is left out.
        shares_before = self.left_probabilities(t - 1, self.bins[t - 1])[0, 1:]
        shares_last = self.left_probabilities(t, 1.0)[0]
        last_entries = (right_last, o_last * shares_last)
        if m - t == 1:
            # There is one right bin, with q_1(1) = 1, so no bound is needed.
            last_entries = (left_last[[0]], shares_last)
        smallest = ((right_before[1:], o_before * shares_before), last_entries)
        for z, w in itertools.product(largest, smallest):
            lp.add_at_most(z, w, odds)
        lp.add_comparisons(self._following_rows)
        for j, bound in ((t - 1, o_before), (t, o_last)):
            if ("l", j) in q and (j != t or m - t > 1):
                column = q["l", j][0]
                lp.lower[column] = max(lp.lower[column], bound)
        if s > 2:
            lp.upper[q["l", s - 1][-1]] = u
        return lp

    def _comparison_rows(self, comparisons: Iterable[Comparison]) -> list[Entries]:
        """Return the rows q_j(i) <= factor q_k(l), where inputs use both vectors."""
        rows = []
        for lesser, greater, factor in comparisons:
            entries = (lesser, greater)
            is_used = all(("l", j) in self.columns for j, _ in entries)
            if lesser != greater and is_used:
                columns = [self.columns["l", j][i - 1] for j, i in entries]
                rows.append((np.array(columns), np.array([1.0, -factor])))
        return rows

    @cached_property
    def _falling_rows(self) -> list[Entries]:
        """Return the rows of Theorem 6 by which selection probabilities fall.

        They fall as the length grows, and from bins near the input to bins farther away.
        """
        comparisons = []
        for _, j in self.columns:
            for i in range(1, j + 1):
                comparisons.append(((j + 1, i), (j, i), 1.0))
                if i < j:
                    comparisons.append(((j, i), (j, i + 1), 1.0))
        comparisons += [((i + 1, i + 1), (i, i), 1.0) for i in self.inner_bins]
        return self._comparison_rows(comparisons)

    @cached_property
    def _following_rows(self) -> list[Entries]:
        """Return the rows of Theorem 6 that compare consecutive lengths, bin by bin."""
        comparisons = []
        m = self.m
        bins = self.bins
        for k in range(self.inner_bins[0], self.inner_bins[-1] + 1):
            for r in range(k + 2, m + 1):
                factor = (bins[r - 1] - bins[k - 1]) / (bins[r - 1] - bins[k])
                i = m - r + 1
                comparisons.append(((m - k, i), (m - k + 1, i), factor))
                comparisons.append(((m - k - 1, i), (m - k, i), factor))
        return self._comparison_rows(comparisons)

    def read_distribution(
        self,
        x: Vector,
        key: VectorKey,
    ) -> Vector:
        """Return one selection distribution of a point, normalised, shape (length,).

        Args:
            x: a point of a program, shape (columns,).
            key: side ("l" or "r") and length of the distribution.
        """
        q = np.maximum(x[self.columns[key]], 0.0)
        return np.asarray(q / q.sum())

    def read_selections(self, x: Vector) -> tuple[list[Vector | None], list[Vector | None]]:
        """Return the left and right selection distributions of a point, for the mechanism.

        Args:
            x: a point of a program, shape (columns,).

        Returns:
            q^l_1..q^l_{m-1} and q^r_1..q^r_{m-1}. A distribution that no input uses is None.
        """
        laws = {key: np.maximum(x[columns], 0.0) for key, columns in self.columns.items()}
        left = [laws.get(("l", j)) for j in range(1, self.m)]
        right = [laws.get((self.right_side, j)) for j in range(1, self.m)]
        return left, right


@dataclass(frozen=True, eq=False)
class ProductModel:
    """The linear programs of boxes for one choice of bins.

    All exact conditions are linear in π: the laws at the ends of the pieces (4), hence
    low(i) <= p(x, i) <= e^ε low(i) at both ends of every piece, where low(i) is a variable, the
    smallest probability of bin i. The expected error, for an error function e, is linear as well:

        E e(M(X) - X) = Σ_j Σ_{l,r} π_j(l, r) E[ (B_r - X) e(X - B_l) + (X - B_l) e(B_r - X) ;
                                                 X in piece j ] / (B_r - B_l)

    Only "π is a product" is not linear. A box is a pair of bounds lo <= q <= hi on the shorter
    vector of each piece. In a box every product of the shorter vector (entries k) and the other one
    (entries k') satisfies

        lo(k) q(k') <= π(k, k') <= hi(k) q(k'),     Σ_k' π(k, k') = q(k),   Σ_k π(k, k') = q(k')

    With these rows in place of the products, the value of the linear program is a lower bound for
    all products in the box. It is exact if lo = hi. Branching on boxes gives the optimum with a
    proof; for m <= 5 only one number is branched on.

    Attributes:
        shape: the bins, pieces and selection distributions.
        gains: coefficients of π_j in the expected error (see above) for every piece j,
            each of shape (j, m - j). They depend on the density and the error function.
    """

    shape: TwoBinShape
    gains: tuple[Vector, ...]

    @cached_property
    def joint_columns(self) -> list[Positions]:
        """Return the columns of π_j for every piece j, each of shape (j, m - j)."""
        ends = np.cumsum([self.shape.size, *(gain.size for gain in self.gains)])
        columns = []
        for first, gain in zip(ends[:-1], self.gains, strict=True):
            columns.append(first + np.arange(gain.size).reshape(gain.shape))
        return columns

    def build_box_program(
        self,
        epsilon: float,
        box: VectorBounds,
    ) -> EntrywiseProgram:
        """Build the linear program whose value is a lower bound on the loss in a box.

        Args:
            epsilon: ε > 0.
            box: bounds (lo, hi) for every key in `bounded_vectors`, two arrays of its length.

        Returns:
            The program. Its columns are the selection probabilities, then the joint laws
            (`joint_columns`), then low(1)..low(m).
        """
        shape = self.shape
        odds = float(np.exp(epsilon))
        # The last entry of the last joint law is the last column before low(1).
        first_low_column = int(self.joint_columns[-1][-1, -1]) + 1
        lp = shape.start_program(first_low_column - shape.size + shape.m, box)
        for (j, a, b), pi, gain in zip(shape.pieces, self.joint_columns, self.gains, strict=True):
            left, right = shape.piece_columns(j)
            # The joint law has the two selection distributions as its margins.
            for column, row in [*zip(left, pi, strict=True), *zip(right, pi.T, strict=True)]:
                lp.add_row([*row, column], [*np.ones(row.size), -1.0], low=0.0, high=0.0)
            lp.c[pi] = gain
            key = shape.shorter_vector(j)
            if key in box:
                self._add_product_bounds(lp, j, pi, box[key])
            # The exact privacy rows: low(i) <= p(x, i) <= e^ε low(i) at both ends of the piece.
            for x in (a, b):
                s = shape.left_probabilities(j, x)
                laws = [*zip(pi, s, strict=True), *zip(pi.T, (1 - s).T, strict=True)]
                for i, law in enumerate(laws[: shape.private_bin_count]):
                    t = ([first_low_column + i], [1.0])
                    lp.add_at_most(law, t, odds)
                    lp.add_at_most(t, law)
        return lp

    def _add_product_bounds(
        self,
        lp: EntrywiseProgram,
        j: int,
        pi: Positions,
        bounds: Pair,
    ) -> None:
        """Add lo(k) q(k') <= π(k, k') <= hi(k) q(k') on piece j."""
        left, right = self.shape.piece_columns(j)
        if self.shape.shorter_vector(j) == ("l", j):
            low, high = (np.broadcast_to(q[:, None], pi.shape) for q in bounds)
            factor_columns = np.broadcast_to(right, pi.shape)
        else:
            low, high = (np.broadcast_to(q[::-1], pi.shape) for q in bounds)
            factor_columns = np.broadcast_to(left[:, None], pi.shape)
        for column, q, min_q, max_q in zip(
            pi.flat, factor_columns.flat, low.flat, high.flat, strict=True
        ):
            lp.add_row([column, q], [-1.0, min_q])
            lp.add_row([column, q], [1.0, -max_q])

    def product_violation(self, x: Vector) -> dict[VectorKey, Vector]:
        """Compute the distance of π from the product of its two selection distributions.

        Args:
            x: a point of the program of a box, shape (columns,).

        Returns:
            For each bounded vector an array of its length. Entry k is the sum over k' of
            |π(k, k') - q(k) q(k')|, over all pieces of this vector.
        """
        sums = {(side, n): np.zeros(n) for side, n in self.shape.bounded_vectors}
        for (j, _, _), pi in zip(self.shape.pieces, self.joint_columns, strict=True):
            left, right = self.shape.piece_columns(j)
            differences = np.abs(x[pi] - np.outer(x[left], x[right]))
            key = self.shape.shorter_vector(j)
            if key not in sums:
                continue
            if key == ("l", j):
                sums[key] += differences.sum(axis=1)
            else:
                sums[key] += differences.sum(axis=0)[::-1]
        return sums
