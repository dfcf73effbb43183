"""Invert the blocks of the interior-point method for channels without losing digits.

The method is `workbench.models.channel.block_interior`. There is one block H for each output. Its
inverses are summed over outputs, or applied to vectors.

Notation. v are the masses of the k labels at one output, G v = w > 0 the slacks of the privacy
rows, z > 0 their multipliers, and λ = e^ε. ' is the transpose, and ∘ the product entry by entry.
W are the coefficients of the K sums over outputs, and q their multipliers.

    H = G' diag(z/w) G,    G v = w > 0:    rows λ v_b - v_a for neighbours a and b of a graph,
                                           or v_y - t and λ t - v_y for every label y if all pairs
                                           are neighbours (t is one more variable)

Near an optimum z/w spans 1e-16..1e16, and a matrix H of floats has lost the digits that decide. Two
equivalent forms keep them:

    graph       with V = diag(v), V H V = L + diag(v ∘ G'z), L the Laplacian with weights
                Σ λ z v_a v_b / w >= 0 of the pairs: elimination on weights and row sums (Grassmann,
                Taksar and Heyman 1985) only adds positive numbers to the weights; the inverse is
                sums of products of the factors (Takahashi's recursion). The label eliminated last
                is treated apart: H⁻¹ = N + u u'/(u'H u) with u = v - N H v, where N is the inverse
                of the block of the other labels. Otherwise differences of entries of H⁻¹ would
                cancel where further sums of an output are tight
    all pairs   H is diagonal plus one row. Its Schur complement Σ_y D1 D2 (λ-1)²/(D1+D2) is a sum
                of positive terms, with D1, D2 the scalings z/w of v - t and λ t - v

Labels are put in an order of small bandwidth b. It is 1 for a line and the side for a grid; for
other graphs the order is that of reverse Cuthill-McKee. An elimination takes k b² steps, the
inverse k² b.

Arrays have the shape (labels or rows, outputs).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import as_strided

from workbench.solvers.arrays import Positions, Vector

_MAX_INVERSE_ENTRIES = 1_000_000  # Inverses of several outputs are held up to this many entries.
_MIN_PIVOT_SHARE = 1e-18  # A pivot is at least this share of the numbers that are added in it.
_MIN_PIVOT = 1e-300  # A pivot is never smaller than this, so that it can divide.
# Inverses are computed for groups of this many labels at a time: below the bandwidth _NARROW_BAND
# and above _WIDE_BAND. In between, the groups are as high as the band. Found by trial.
_NARROW_BAND = 16
_NARROW_BAND_HEIGHT = 24
_WIDE_BAND = 64
_WIDE_BAND_HEIGHT = 48


class BlockFactors(ABC):
    """The factors of the blocks of some outputs. Call `factorize` before the solving methods.

    Attributes:
        k: number of labels.
        n: number of variables of a block; the first k are the masses of the labels.
        extra_sums: coefficients of R further sums, beside the k row sums, so that K = k + R. There
            is one column for each label and output, label by label, shape (R, k outputs). None if
            R = 0.
    """

    k: int
    n: int
    extra_sums: sp.csr_array | None = None

    def spread_multipliers(
        self,
        q: Vector,
        outputs: int,
    ) -> Vector:
        """Compute Σ W q, the contribution of multipliers of sums to every variable.

        Args:
            q: multipliers of the sums, shape (K,).
            outputs: number of outputs.

        Returns:
            Contributions, shape (n, outputs).
        """
        contributions = np.zeros((self.n, outputs))
        contributions[: self.k] = q[: self.k, None]
        if self.extra_sums is not None:
            contributions[: self.k] += (q[self.k :] @ self.extra_sums).reshape(self.k, outputs)
        return contributions

    def sum_outputs(self, x: Vector) -> Vector:
        """Compute the sums Σ_o W' x, shape (K,).

        Args:
            x: variables, shape (n, outputs).
        """
        row_sums: Vector = x[: self.k].sum(axis=1)
        if self.extra_sums is None:
            return row_sums
        return np.concatenate([row_sums, self.extra_sums @ x[: self.k].ravel()])

    def min_reduced_costs(
        self,
        costs: Vector,
        z: Vector,
        q: Vector,
    ) -> Vector:
        """Compute the multipliers of sums with which z proves a lower bound.

        They are the smallest reduced cost of every label over all outputs, then q of the other
        sums. A reduced cost is the cost of a mass minus the share G'z of the privacy rows and minus
        the share of the other sums.

        Args:
            costs: costs of the variables, shape (n, outputs).
            z: multipliers of the privacy rows, shape (rows, outputs).
            q: multipliers of the sums, shape (K,).

        Returns:
            Multipliers, shape (K,).
        """
        reduced_costs = (costs - self.apply_adjoint(self.make_feasible(z)))[: self.k]
        if self.extra_sums is not None:
            reduced_costs -= (q[self.k :] @ self.extra_sums).reshape(reduced_costs.shape)
        return np.concatenate([reduced_costs.min(axis=1), q[self.k :]])

    def label_masses(self, x: Vector) -> Vector:
        """Return the channel M, shape (k, outputs), with the labels in their own order.

        Args:
            x: variables, shape (n, outputs).
        """
        return x[: self.k]

    def row_multipliers(self, z: Vector) -> Vector:
        """Return the multipliers of the privacy rows, shape (rows, outputs).

        Args:
            z: multipliers of all rows of G, shape (rows of G, outputs).
        """
        return z

    def place_costs(self, costs: Vector) -> Vector:
        """Return the costs of all variables, shape (n, outputs).

        Args:
            costs: costs of the masses, shape (k, outputs).
        """
        return np.concatenate([costs, np.zeros((self.n - self.k, costs.shape[1]))])

    @abstractmethod
    def interior_start(
        self,
        share: Vector,
        outputs: int,
    ) -> Vector:
        """Return a point, shape (n, outputs), that is strictly feasible except for its sums.

        Args:
            share: mass of each label at every output, shape (k, 1).
            outputs: number of outputs.
        """

    @abstractmethod
    def apply_rows(self, x: Vector) -> Vector:
        """Compute G x, shape (rows, outputs).

        Args:
            x: variables, shape (n, outputs).
        """

    @abstractmethod
    def apply_adjoint(self, z: Vector) -> Vector:
        """Compute G' z, shape (n, outputs).

        Args:
            z: multipliers, shape (rows, outputs).
        """

    def make_feasible(self, z: Vector) -> Vector:
        """Return multipliers near z that prove a bound.

        They satisfy G'z <= 0 at variables that are in no sum.

        Args:
            z: multipliers, shape (rows, outputs).
        """
        return z

    @abstractmethod
    def factorize(
        self,
        x: Vector,
        w: Vector,
        z: Vector,
    ) -> None:
        """Compute the factors of H at a point; the solving methods use them.

        Args:
            x: variables > 0, shape (n, outputs).
            w: G x > 0, shape (rows, outputs).
            z: multipliers > 0, shape (rows, outputs).
        """

    @abstractmethod
    def schur_complement(self) -> Vector:
        """Compute Σ_o W' H⁻¹ W, shape (K, K)."""

    @abstractmethod
    def solve(self, right: Vector) -> Vector:
        """Compute H⁻¹ times a right-hand side.

        Args:
            right: right-hand sides, shape (n, outputs).
        """


class AllPairsFactors(BlockFactors):
    """The blocks if all pairs of labels are neighbours: t <= v <= λ t for every output.

    The last variable is t. The rows of G are v - t for every label, then λ t - v.

    Args:
        k: number of labels.
        ratio: λ = e^ε > 1.
    """

    def __init__(
        self,
        k: int,
        ratio: float,
    ) -> None:
        self.k = k
        self.n = k + 1
        self._ratio = ratio
        self._diagonal = np.empty(0)
        self._t_shares = np.empty(0)
        self._t_pivots = np.empty(0)

    def interior_start(
        self,
        share: Vector,
        outputs: int,
    ) -> Vector:
        """Return equal masses, with t at the geometric mean of its smallest and largest value.

        Args:
            share: mass of each label at every output, shape (k, 1).
            outputs: number of outputs.
        """
        x = np.full((self.n, outputs), share[0])
        x[-1] /= np.sqrt(self._ratio)
        return x

    def apply_rows(self, x: Vector) -> Vector:
        """Compute v - t and λ t - v, shape (2 k, outputs).

        Args:
            x: variables, shape (n, outputs).
        """
        return np.concatenate([x[:-1] - x[-1], self._ratio * x[-1] - x[:-1]])

    def apply_adjoint(self, z: Vector) -> Vector:
        """Compute G' z, shape (n, outputs).

        Args:
            z: multipliers, shape (2 k, outputs).
        """
        lower = z[: self.k]
        upper = z[self.k :]
        t_row = self._ratio * upper.sum(axis=0) - lower.sum(axis=0)
        return np.concatenate([lower - upper, t_row[None]])

    def make_feasible(self, z: Vector) -> Vector:
        """Return z with the multipliers of λ t - v lowered so that G'z <= 0 at t.

        Args:
            z: multipliers, shape (2 k, outputs).
        """
        lower_sums = z[: self.k].sum(axis=0)
        upper_sums = z[self.k :].sum(axis=0) * self._ratio
        factors = np.minimum(1.0, lower_sums / upper_sums)
        return np.concatenate([z[: self.k], z[self.k :] * factors])

    def factorize(
        self,
        x: Vector,
        w: Vector,
        z: Vector,
    ) -> None:
        """Compute the diagonal, the row of t divided by it, and the Schur complement of t.

        Args:
            x: variables, shape (n, outputs); they are not needed.
            w: G x > 0, shape (2 k, outputs).
            z: multipliers > 0, shape (2 k, outputs).
        """
        lower = z[: self.k] / w[: self.k]
        upper = z[self.k :] / w[self.k :]
        self._diagonal = lower + upper
        self._t_shares = (lower + self._ratio * upper) / self._diagonal
        products = lower * (upper / self._diagonal)
        self._t_pivots = products.sum(axis=0) * (self._ratio - 1) ** 2

    def schur_complement(self) -> Vector:
        """Compute Σ_o W' H⁻¹ W, shape (K, K), from the diagonal and one product."""
        scaled_shares = self._t_shares / np.sqrt(self._t_pivots)
        size = scaled_shares.size
        # The cells (label, output) are listed label by label. `sums` adds up the cells of each
        # label, and `by_output` puts each share into the column of its output.
        cells = np.arange(size)
        outputs = len(scaled_shares.T)
        row_starts = np.arange(0, size + 1, outputs)
        sums = sp.csr_array((np.ones(size), cells, row_starts))
        if self.extra_sums is not None:
            sums = sp.csr_array(sp.vstack([sums, self.extra_sums]))
        by_output = sp.csr_array((scaled_shares.ravel(), cells % outputs, np.append(cells, size)))
        rows = (sums @ by_output).toarray()
        diagonal_part = sp.csr_array(sp.csr_array(sums / self._diagonal.ravel()) @ sums.T)
        return np.asarray(rows @ rows.T + diagonal_part.toarray())

    def solve(self, right: Vector) -> Vector:
        """Compute H⁻¹ times a right-hand side by the Schur complement of t.

        Args:
            right: right-hand sides, shape (n, outputs).
        """
        t = (right[-1] + (self._t_shares * right[:-1]).sum(axis=0)) / self._t_pivots
        masses = right[:-1] / self._diagonal + self._t_shares * t
        return np.concatenate([masses, t[None]])


class BandedOrder:
    """The rows λ x[second] >= x[first] of a graph, with the labels in an order of small bandwidth.

    A label in no row gets the row x >= 0. For all other labels x >= 0 follows from the rows: a
    cycle of rows back to the label gives (product of their λ) x >= x, and this product exceeds 1.

    Args:
        k: number of labels.
        first: labels x[first] of the rows, shape (rows,).
        second: labels x[second] of the rows, shape (rows,).
        ratios: λ of the rows, shape (rows,).

    Attributes:
        k: number of labels.
        positions: position of every label in the order, shape (k,).
        label_order: label at every position, shape (k,).
        band: bandwidth of the order, at least 1.
        ratios: λ of the rows, shape (rows, 1).
        i: positions of the first labels, shape (rows,).
        j: positions of the second labels, shape (rows,).
        matrix: all rows of G, shape (rows of G, k).
        transposed: the transpose of `matrix`.
        low: smaller position of each unordered pair, shape (pairs,).
        high: larger position of each unordered pair, shape (pairs,).
        pair_sums: matrix that sums rows to unordered pairs, shape (pairs, rows).
    """

    def __init__(
        self,
        k: int,
        first: Positions,
        second: Positions,
        ratios: Vector,
    ) -> None:
        count = first.size
        rows = np.arange(count)
        self.positions = banded_positions(k, first, second)
        self.label_order = np.argsort(self.positions)
        self.k = k
        self.band = max(1, _bandwidth(self.positions, first, second))
        self.ratios = ratios[:, None]
        self.i = self.positions[first]
        self.j = self.positions[second]
        isolated = np.setdiff1d(np.arange(k), np.concatenate([self.i, self.j]))
        entries = np.concatenate([ratios, -np.ones(count), np.ones(isolated.size)])
        row_numbers = np.concatenate([rows, rows, count + np.arange(isolated.size)])
        column_numbers = np.concatenate([self.j, self.i, isolated])
        shape = (count + isolated.size, k)
        self.matrix = sp.csr_array((entries, (row_numbers, column_numbers)), shape=shape)
        self.transposed = sp.csr_array(self.matrix.T)
        low = np.minimum(self.i, self.j)
        high = np.maximum(self.i, self.j)
        pairs, pair_of_row = np.unique(low * k + high, return_inverse=True)
        self.low = pairs // k
        self.high = pairs % k
        ones = np.ones(count)
        self.pair_sums = sp.csr_array((ones, (pair_of_row, rows)), shape=(pairs.size, count))


def banded_positions(
    k: int,
    first: Positions,
    second: Positions,
) -> Positions:
    """Return the position of each label in an order of small bandwidth, shape (k,).

    The order is the given one or that of reverse Cuthill-McKee, whichever has the smaller band.

    Args:
        k: number of labels.
        first: first labels of the pairs, shape (pairs,).
        second: second labels of the pairs, shape (pairs,).
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # This import is slow.

    graph = sp.csr_array((np.ones(first.size), (first, second)), shape=(k, k))
    order = reverse_cuthill_mckee(sp.csr_array(graph + graph.T), symmetric_mode=True)
    present_positions = np.arange(k)
    new_positions = np.empty(k, dtype=int)
    new_positions[order] = present_positions
    if _bandwidth(new_positions, first, second) < _bandwidth(present_positions, first, second):
        return new_positions
    return present_positions


def _bandwidth(
    positions: Positions,
    first: Positions,
    second: Positions,
) -> int:
    """Return the largest distance between the positions of a pair."""
    return int(np.abs(positions[first] - positions[second]).max(initial=0))


class GraphFactors(BlockFactors):
    """The blocks if neighbours are the pairs of a graph, with the labels in a banded order.

    Args:
        order: the rows and the order of the labels.
    """

    def __init__(self, order: BandedOrder) -> None:
        self._order = order
        self.k = order.k
        self.n = order.k
        self._shares = np.empty(0)
        self._pivots = np.empty(0)
        self._x = np.empty(0)

    def label_masses(self, x: Vector) -> Vector:
        """Return the channel M, shape (k, outputs), with the labels in their own order.

        Args:
            x: masses in the banded order, shape (k, outputs).
        """
        return x[self._order.positions]

    def row_multipliers(self, z: Vector) -> Vector:
        """Return the multipliers of the pairs, without those of isolated labels.

        Args:
            z: multipliers of all rows of G, shape (rows of G, outputs).
        """
        return z[: self._order.i.size]

    def interior_start(
        self,
        share: Vector,
        outputs: int,
    ) -> Vector:
        """Return equal masses, shape (k, outputs).

        Args:
            share: masses of the labels, shape (k, 1).
            outputs: number of outputs.
        """
        return np.full((self.n, outputs), share[0])

    def apply_rows(self, x: Vector) -> Vector:
        """Compute λ x_b - x_a, shape (rows, outputs).

        Args:
            x: masses in the banded order, shape (k, outputs).
        """
        return self._order.matrix @ x

    def apply_adjoint(self, z: Vector) -> Vector:
        """Compute G' z, shape (k, outputs).

        Args:
            z: multipliers, shape (rows, outputs).
        """
        return self._order.transposed @ z

    def factorize(
        self,
        x: Vector,
        w: Vector,
        z: Vector,
    ) -> None:
        """Factor V H V as L D L', with V = diag(v), without any subtraction.

        This also sets u and u'H u of the module header, for every output.

        Args:
            x: masses > 0 in the banded order, shape (k, outputs).
            w: G x > 0, shape (rows, outputs).
            z: multipliers > 0, shape (rows, outputs).
        """
        order = self._order
        n = self.n
        b = self._order.band
        outputs = x.shape[1]
        count = order.i.size
        self._x = x
        row_weights = order.ratios * z[:count] / w[:count] * x[order.i] * x[order.j]
        weights = np.asarray(order.pair_sums @ row_weights)
        sums = np.concatenate([x * self.apply_adjoint(z), np.zeros((b, outputs))])
        self._shares = np.empty((n, b, outputs))
        self._pivots = np.empty((n, outputs))
        band = np.zeros((n + b, 2 * b + 1, outputs))
        # The weights of a label to itself, which stay 0, are in column b of the band.
        band[order.low, order.high - order.low + b] = weights
        band[order.high, order.low - order.high + b] = weights
        eliminate(band, sums.copy(), self._shares, self._pivots)
        self._pivots[-1] = np.inf
        # An infinite last pivot leaves out the last label, so that N is applied from here on.
        n_h_v = x * substitute(self._shares, self._pivots, sums[:n])
        self._u = x - n_h_v
        # G u = G v - G N H v, and G v = w.
        self._u_h_u = (z / w * (w - self.apply_rows(n_h_v)) ** 2).sum(axis=0)

    def schur_complement(self) -> Vector:
        """Compute Σ_o W' H⁻¹ W, shape (K, K), from the inverses of a few outputs at a time."""
        n = self.n
        x = np.ascontiguousarray(self._x.T)
        outputs = len(x)
        extra_sums = None if self.extra_sums is None else sp.csc_array(self.extra_sums)
        size = n if extra_sums is None else n + extra_sums.shape[0]
        total = np.zeros((size, size))
        scaled_u = self._u / np.sqrt(self._u_h_u)
        total[:n, :n] = scaled_u @ scaled_u.T
        step = max(1, _MAX_INVERSE_ENTRIES // (n * n))
        for start in range(0, outputs, step):
            part = slice(start, start + step)
            inverses = invert_blocks(self._shares[:, :, part], self._pivots[:, part])
            total[:n, :n] += np.einsum("oi,oij,oj->ij", x[part], inverses, x[part])
            if extra_sums is None:
                continue
            for output, inverse in enumerate(inverses, start):
                # The columns are listed label by label, so those of one output are `outputs` apart.
                coefficients = sp.csr_array(extra_sums[:, output::outputs])
                rows = np.flatnonzero(np.diff(coefficients.indptr))
                coefficients = coefficients[rows]
                sums_of_u = coefficients @ scaled_u[:, output]
                block = x[output][:, None] * inverse * x[output]
                shares = coefficients @ block
                u_column = sums_of_u[:, None]
                total[n + rows, :n] += shares + u_column * scaled_u[:, output]
                extra_block = coefficients @ shares.T + u_column * sums_of_u
                total[np.ix_(n + rows, n + rows)] += extra_block
        total[:n, n:] = total[n:, :n].T
        return total

    def solve(self, right: Vector) -> Vector:
        """Compute H⁻¹ times a right-hand side, as N right + u (u' right)/(u'H u).

        Args:
            right: right-hand sides, shape (k, outputs).
        """
        u_amounts = (self._u * right).sum(axis=0) / self._u_h_u
        n_part = self._x * substitute(self._shares, self._pivots, self._x * right)
        solution: Vector = n_part + self._u * u_amounts
        return solution


def eliminate(
    band: Vector,
    sums: Vector,
    shares: Vector,
    pivots: Vector,
) -> None:
    """Factor Laplacians plus diagonals as L D L', one matrix for each output.

    Only positive numbers are added, so no digits cancel. The arguments `band` and `sums` are
    overwritten.

    Args:
        band: weights >= 0 of label a to the labels a - b..a + b (the entries off the diagonal,
            with their sign changed), shape (n + b, 2 b + 1, outputs).
        sums: sums of the rows of each matrix, shape (n + b, outputs).
        shares: output array for the factors: row a of L' right of its diagonal, with its sign
            changed, shape (n, b, outputs).
        pivots: output array for the diagonal D, shape (n, outputs).
    """
    n, b, outputs = shares.shape
    itemsize = band.itemsize
    row_stride = (2 * b + 1) * outputs * itemsize
    column_stride = outputs * itemsize
    for a in range(n):
        row = band[a, b + 1 :]
        row_sum = row.sum(axis=0)
        pivot = np.maximum(
            sums[a] + row_sum, _MIN_PIVOT_SHARE * (np.abs(sums[a]) + row_sum) + _MIN_PIVOT
        )
        share = row / pivot
        shares[a] = share
        pivots[a] = pivot
        later_count = min(b, n - 1 - a)
        sums[a + 1 : a + later_count + 1] += share[:later_count] * sums[a]
        # This view holds the weights of the next labels to each other.
        next_weights = as_strided(
            band[a + 1, b:],
            (later_count, later_count, outputs),
            (row_stride - column_stride, column_stride, itemsize),
        )
        next_weights[:] += share[:later_count, None] * row[None, :later_count]


def substitute(
    shares: Vector,
    pivots: Vector,
    right: Vector,
) -> Vector:
    """Solve systems that `eliminate` has factored.

    Args:
        shares: the factors that `eliminate` wrote, shape (n, b, outputs).
        pivots: the diagonal D, shape (n, outputs).
        right: right-hand sides, shape (n, outputs).

    Returns:
        The solutions, shape (n, outputs).
    """
    n, b, _ = shares.shape
    y = np.concatenate([right, np.zeros((b, right.shape[1]))])
    # The last label has no later ones.
    for a in range(n - 1):
        y[a + 1 : a + b + 1] += shares[a] * y[a]
    y[:n] /= pivots
    y[n:] = 0
    for a in range(n - 2, -1, -1):
        y[a] += (shares[a] * y[a + 1 : a + b + 1]).sum(axis=0)
    return y[:n]


def invert_blocks(shares: Vector, pivots: Vector) -> Vector:
    """Compute the inverses of matrices that `eliminate` has factored.

    Takahashi's recursion runs over groups of labels, from the last group to the first.

    Args:
        shares: the factors that `eliminate` wrote, shape (n, b, outputs).
        pivots: the diagonal D, shape (n, outputs).

    Returns:
        The inverses, shape (outputs, n, n).
    """
    n, b, outputs = shares.shape
    # The height of a group affects the speed only.
    if b < _NARROW_BAND:
        height = _NARROW_BAND_HEIGHT
    elif b <= _WIDE_BAND:
        height = b
    else:
        height = _WIDE_BAND_HEIGHT
    # From here on the first axis is the output.
    shares = np.ascontiguousarray(shares.transpose(2, 0, 1))
    pivots = pivots.T
    inverse = np.empty((outputs, n, n))
    for start in range((n - 1) // height * height, -1, -height):
        end = min(start + height, n)
        size = end - start
        later_count = min(b, n - end)
        group_shares = np.zeros((outputs, size, height + b + 1))
        for i in range(size):
            group_shares[:, i, i + 1 : i + 1 + b] = shares[:, start + i]
        triangle = invert_unit_triangle(group_shares[:, :, :size], b)
        diagonal_block = (triangle / pivots[:, None, start:end]) @ triangle.transpose(0, 2, 1)
        if later_count:
            onto_later = triangle @ group_shares[:, :, size : size + later_count]
            later = onto_later @ inverse[:, end : end + later_count, end:]
            inverse[:, start:end, end:] = later
            inverse[:, end:, start:end] = later.transpose(0, 2, 1)
            diagonal_block += later[:, :, :later_count] @ onto_later.transpose(0, 2, 1)
        inverse[:, start:end, start:end] = diagonal_block
    return inverse


def invert_unit_triangle(shares: Vector, band: int) -> Vector:
    """Compute (I - F)⁻¹ for strictly upper triangular matrices F >= 0.

    Args:
        shares: F, shape (outputs, h, h).
        band: bandwidth of F.

    Returns:
        The inverses, shape (outputs, h, h).
    """
    height = shares.shape[1]
    inverse = np.zeros_like(shares)
    diagonal = np.arange(height)
    inverse[:, diagonal, diagonal] = 1
    for i in range(height - 2, -1, -1):
        end = min(height, i + 1 + band)
        row = shares[:, i : i + 1, i + 1 : end]
        inverse[:, i, i + 1 :] += (row @ inverse[:, i + 1 : end, i + 1 :])[:, 0]
    return inverse
