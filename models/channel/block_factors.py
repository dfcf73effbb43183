"""Inverses of the blocks of `workbench.models.channel.block_interior`, one for every output: without cancellation,
summed, applied.

    H = G' diag(z/w) G,    G v = w > 0:    rows λ v_b - v_a of a graph, or v_y - t and λ t - v_y of all pairs

Near an optimum z/w spans 1e-16..1e16 and H written as a matrix has lost what decides. Two exact forms keep it:

    graph       with V = diag(v), V H V = L + diag(v ∘ G'z), L the Laplacian with weights Σ λ z v_a v_b / w >= 0 of the
                pairs: elimination on weights and row sums (Grassmann, Taksar and Heyman 1985) only adds positive
                numbers to the weights; the inverse is sums of products of what it leaves (Takahashi's recursion).
                The label eliminated last is taken apart, H⁻¹ = N + u u'/(u'H u), u = v - N H v, N the inverse of the
                others: where other sums of an output are tight, their differences of H⁻¹ would cancel
    all pairs   H is diagonal plus one row, its Schur complement Σ_y D1 D2 (λ-1)²/(D1+D2) a sum of positive terms, for
                D1, D2 the scalings z/w of v - t and λ t - v

Labels are put in an order of small bandwidth b: line 1, grid its side, any graph what reverse Cuthill-McKee finds. An
elimination takes k b² steps, the inverse k² b.

Arrays are (labels or rows, outputs): the outputs of one part, which knows nothing of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import as_strided

from workbench.solvers.arrays import Positions, Vector

_INVERSES = 1_000_000  # numbers of the inverses that are held at a time
_TINY = 1e-18  # of what is added in a pivot


class BlockFactors(ABC):
    """The factors of the blocks of some outputs; `factor` first. n: variables of a block, of which k are labels;
    extra: (R, k outputs), label by label, what is summed beside the masses, or None."""

    k: int
    n: int
    extra_sums: sp.csr_array | None = None

    def spread_multipliers(self, q: Vector, outputs: int) -> Vector:
        """Σ W q, (n, outputs)."""
        out = np.zeros((self.n, outputs))
        out[: self.k] = q[: self.k, None]
        if self.extra_sums is not None:
            out[: self.k] += (q[self.k :] @ self.extra_sums).reshape(self.k, outputs)
        return out

    def sum_outputs(self, x: Vector) -> Vector:
        """Σ_o W' x. (K,)"""
        plain = x[: self.k].sum(axis=1)
        return (
            plain
            if self.extra_sums is None
            else np.concatenate([plain, self.extra_sums @ x[: self.k].ravel()])
        )

    def min_reduced_costs(self, costs: Vector, z: Vector, q: Vector) -> Vector:
        """What the sums prove at multipliers z: the least reduced cost of every label, and multipliers. (K,)"""
        reduced = (costs - self.apply_adjoint(self.make_feasible(z)))[: self.k]
        if self.extra_sums is not None:
            reduced -= (q[self.k :] @ self.extra_sums).reshape(reduced.shape)
        return np.concatenate([reduced.min(axis=1), q[self.k :]])

    def label_masses(self, x: Vector) -> Vector:
        """M, (k, outputs), in the order of the labels."""
        return x[: self.k]

    def row_multipliers(self, z: Vector) -> Vector:
        """Of the privacy rows, (rows, outputs)."""
        return z

    def place_costs(self, costs: Vector) -> Vector:
        """Costs of masses (k, outputs) as those of all variables."""
        return np.concatenate([costs, np.zeros((self.n - self.k, costs.shape[1]))])

    @abstractmethod
    def interior_start(self, share: Vector, outputs: int) -> Vector:
        """A point (n, outputs) that is strictly feasible but for its sums; share: (k, 1), its masses, all equal where
        nothing but the sums is shared."""

    @abstractmethod
    def apply_rows(self, x: Vector) -> Vector:
        """G x."""

    @abstractmethod
    def apply_adjoint(self, z: Vector) -> Vector:
        """G' z."""

    def make_feasible(self, z: Vector) -> Vector:
        """Multipliers near z whose rows of what is no label prove something: G'z <= 0 there."""
        return z

    @abstractmethod
    def factorize(self, x: Vector, w: Vector, z: Vector) -> None:
        """Factors at x, w = G x and z, all > 0."""

    @abstractmethod
    def schur_complement(self) -> Vector:
        """Σ_o W' H⁻¹ W, (K, K): of masses alone the labels' part of the inverses."""

    @abstractmethod
    def solve(self, right: Vector) -> Vector:
        """H⁻¹ times (n, outputs)."""


class AllPairsFactors(BlockFactors):
    """Columns v with t <= v <= λ t; t is the last variable, the rows are v - t, then λ t - v."""

    def __init__(self, k: int, ratio: float) -> None:
        self.k, self.n, self._ratio = k, k + 1, ratio
        self._a = self._u = self._sigma = np.empty(0)

    def interior_start(self, share: Vector, outputs: int) -> Vector:
        """Equal masses, t half way down."""
        x = np.full((self.n, outputs), share[0])
        x[-1] /= np.sqrt(self._ratio)
        return x

    def apply_rows(self, x: Vector) -> Vector:
        """v - t and λ t - v."""
        return np.concatenate([x[:-1] - x[-1], self._ratio * x[-1] - x[:-1]])

    def apply_adjoint(self, z: Vector) -> Vector:
        """The transpose."""
        least, most = z[: self.k], z[self.k :]
        return np.concatenate(
            [least - most, (self._ratio * most.sum(axis=0) - least.sum(axis=0))[None]]
        )

    def make_feasible(self, z: Vector) -> Vector:
        """With Σ most / λ lowered to Σ least."""
        least, most = z[: self.k].sum(axis=0), z[self.k :].sum(axis=0) * self._ratio
        return np.concatenate([z[: self.k], z[self.k :] * np.minimum(1.0, least / most)])

    def factorize(self, x: Vector, w: Vector, z: Vector) -> None:
        """The diagonal, the row divided by it, the Schur complement."""
        low, high = z[: self.k] / w[: self.k], z[self.k :] / w[self.k :]
        self._a = low + high
        self._u = (low + self._ratio * high) / self._a
        self._sigma = (low * (high / self._a)).sum(axis=0) * (self._ratio - 1) ** 2

    def schur_complement(self) -> Vector:
        """A diagonal and one product."""
        u, cells = self._u / np.sqrt(self._sigma), np.arange(self._u.size)
        m = len(u.T)
        sums = sp.csr_array((np.ones(u.size), cells, np.arange(0, u.size + 1, m)))
        if self.extra_sums is not None:
            sums = sp.csr_array(sp.vstack([sums, self.extra_sums]))
        rows = (sums @ sp.csr_array((u.ravel(), cells % m, np.append(cells, u.size)))).toarray()
        own = sp.csr_array(sp.csr_array(sums / self._a.ravel()) @ sums.T)
        return np.asarray(rows @ rows.T + own.toarray())

    def solve(self, right: Vector) -> Vector:
        """By the Schur complement of t."""
        t = (right[-1] + (self._u * right[:-1]).sum(axis=0)) / self._sigma
        return np.concatenate([right[:-1] / self._a + self._u * t, t[None]])


class BandedOrder:
    """What the blocks of one graph share: its rows λ x[second] >= x[first], labels in an order of small bandwidth.

    Labels in no row get the row x >= 0; otherwise x >= 0 follows, round a cycle, from ratios whose product exceeds 1.
    """

    def __init__(self, k: int, first: Positions, second: Positions, ratios: Vector) -> None:
        ones, count = np.ones(first.size), first.size
        self.positions = banded_positions(k, first, second)
        self.label_order = np.argsort(self.positions)
        self.k, self.band = k, max(1, _band(self.positions, first, second))
        self.ratios, self.i, self.j = ratios[:, None], self.positions[first], self.positions[second]
        alone = np.setdiff1d(np.arange(k), np.concatenate([self.i, self.j]))
        at = np.arange(count)
        entries = np.concatenate([ratios, -np.ones(count), np.ones(alone.size)])
        where = (
            np.concatenate([at, at, count + np.arange(alone.size)]),
            np.concatenate([self.j, self.i, alone]),
        )
        self.matrix = sp.csr_array((entries, where), shape=(count + alone.size, k))
        self.transposed = sp.csr_array(self.matrix.T)
        low, high = np.minimum(self.i, self.j), np.maximum(self.i, self.j)
        pairs, which = np.unique(low * k + high, return_inverse=True)
        self.low, self.high = pairs // k, pairs % k
        self.pair_sums = sp.csr_array((ones, (which, at)), shape=(pairs.size, count))


def banded_positions(k: int, first: Positions, second: Positions) -> Positions:
    """Where each of k labels comes in an order of small bandwidth: the one that is, or reverse Cuthill-McKee's."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # slow to import

    graph = sp.csr_array((np.ones(first.size), (first, second)), shape=(k, k))
    order = reverse_cuthill_mckee(sp.csr_array(graph + graph.T), symmetric_mode=True)
    place, given = np.empty(k, dtype=int), np.arange(k)
    place[order] = given
    return place if _band(place, first, second) < _band(given, first, second) else given


def _band(place: Positions, first: Positions, second: Positions) -> int:
    return int(np.abs(place[first] - place[second]).max(initial=0))


class GraphFactors(BlockFactors):
    """Blocks of a graph, labels in `Order.order`."""

    def __init__(self, order: BandedOrder) -> None:
        self._order, self.k, self.n = order, order.k, order.k
        self._factors = self._pivots = self._x = np.empty(0)

    def label_masses(self, x: Vector) -> Vector:
        """Labels as they were."""
        return x[self._order.positions]

    def row_multipliers(self, z: Vector) -> Vector:
        """Without those of labels in no row."""
        return z[: self._order.i.size]

    def interior_start(self, share: Vector, outputs: int) -> Vector:
        """Equal masses."""
        return np.full((self.n, outputs), share[0])

    def apply_rows(self, x: Vector) -> Vector:
        """λ x_b - x_a."""
        return self._order.matrix @ x

    def apply_adjoint(self, z: Vector) -> Vector:
        """The transpose."""
        return self._order.transposed @ z

    def factorize(self, x: Vector, w: Vector, z: Vector) -> None:
        """L D L' of V H V: what is eliminated is never subtracted from."""
        order, n, b = self._order, self.n, self._order.band
        m, count = x.shape[1], order.i.size
        self._x = x
        weights = np.asarray(
            order.pair_sums @ (order.ratios * z[:count] / w[:count] * x[order.i] * x[order.j])
        )
        sums = np.concatenate([x * self.apply_adjoint(z), np.zeros((b, m))])
        self._factors, self._pivots = np.empty((n, b, m)), np.empty((n, m))
        band = np.zeros((n + b, 2 * b + 1, m))
        band[order.low, order.high - order.low + b] = weights
        band[order.high, order.low - order.high + b] = weights
        eliminate(band, sums.copy(), self._factors, self._pivots)
        self._pivots[-1] = np.inf
        away = x * substitute(self._factors, self._pivots, sums[:n])
        self._last, self._energy = x - away, (z / w * (w - self.apply_rows(away)) ** 2).sum(axis=0)

    def schur_complement(self) -> Vector:
        """Of some outputs at a time."""
        n, x = self.n, np.ascontiguousarray(self._x.T)
        extra = None if self.extra_sums is None else sp.csc_array(self.extra_sums)
        size = n if extra is None else n + extra.shape[0]
        total, last = np.zeros((size, size)), self._last / np.sqrt(self._energy)
        total[:n, :n] = last @ last.T
        step = max(1, _INVERSES // (n * n))
        for at in range(0, len(x), step):
            part = slice(at, at + step)
            inverse = invert_blocks(self._factors[:, :, part], self._pivots[:, part])
            total[:n, :n] += np.einsum("oi,oij,oj->ij", x[part], inverse, x[part])
            if extra is None:
                continue
            for output, own in enumerate(inverse, at):
                uses = sp.csr_array(extra[:, output :: len(x)])
                rows = np.flatnonzero(np.diff(uses.indptr))
                uses = uses[rows]
                along, share = uses @ last[:, output], uses @ (x[output][:, None] * own * x[output])
                total[n + rows, :n] += share + along[:, None] * last[:, output]
                total[np.ix_(n + rows, n + rows)] += uses @ share.T + along[:, None] * along
        total[:n, n:] = total[n:, :n].T
        return total

    def solve(self, right: Vector) -> Vector:
        """V (V H V)⁻¹ V."""
        along = (self._last * right).sum(axis=0) / self._energy
        moved: Vector = (
            self._x * substitute(self._factors, self._pivots, self._x * right) + self._last * along
        )
        return moved


def eliminate(band: Vector, sums: Vector, factors: Vector, pivots: Vector) -> None:
    """L D L' of Laplacians plus diagonals, many beside each other: what is eliminated is never subtracted from.

    band: (n + b, 2 b + 1, outputs), of label a the weights to a - b..a + b; sums: (n + b, outputs) of rows: both are
    used up. factors: (n, b, outputs) and pivots: (n, outputs) are written.
    """
    n, b, m = factors.shape
    size = band.itemsize
    down, along = (2 * b + 1) * m * size, m * size
    for a in range(n):
        row = band[a, b + 1 :]
        beside = row.sum(axis=0)
        pivot = np.maximum(sums[a] + beside, _TINY * (np.abs(sums[a]) + beside) + 1e-300)
        share = row / pivot
        factors[a], pivots[a] = share, pivot
        reach = min(b, n - 1 - a)
        sums[a + 1 : a + reach + 1] += share[:reach] * sums[a]
        later = as_strided(
            band[a + 1, b:], (reach, reach, m), (down - along, along, size)
        )  # weights to each other
        later[:] += share[:reach, None] * row[None, :reach]


def substitute(factors: Vector, pivots: Vector, right: Vector) -> Vector:
    """The solution (n, outputs) of what `eliminate` left."""
    n, b, _ = factors.shape
    y = np.concatenate([right, np.zeros((b, right.shape[1]))])
    for a in range(n - 1):
        y[a + 1 : a + b + 1] += factors[a] * y[a]
    y[:n] /= pivots
    y[n:] = 0
    for a in range(n - 2, -1, -1):
        y[a] += (factors[a] * y[a + 1 : a + b + 1]).sum(axis=0)
    return y[:n]


def invert_blocks(factors: Vector, pivots: Vector) -> Vector:
    """The inverses of what `eliminate` left, by Takahashi's recursion in blocks of labels, from the last. (outputs, n,
    n)"""
    n, b, m = factors.shape
    height = b if 16 <= b <= 64 else 24 if b < 16 else 48
    factors, pivots = np.ascontiguousarray(factors.transpose(2, 0, 1)), pivots.T
    inverse = np.empty((m, n, n))
    for start in range((n - 1) // height * height, -1, -height):
        end = min(start + height, n)
        beyond = min(b, n - end)
        shares = np.zeros((m, end - start, height + b + 1))
        for i in range(end - start):
            shares[:, i, i + 1 : i + 1 + b] = factors[:, start + i]
        own = invert_unit_triangle(shares[:, :, : end - start], b)
        within = (own / pivots[:, None, start:end]) @ own.transpose(0, 2, 1)
        if beyond:
            onto = own @ shares[:, :, end - start : end - start + beyond]
            later = onto @ inverse[:, end : end + beyond, end:]
            inverse[:, start:end, end:] = later
            inverse[:, end:, start:end] = later.transpose(0, 2, 1)
            within += later[:, :, :beyond] @ onto.transpose(0, 2, 1)
        inverse[:, start:end, start:end] = within
    return inverse


def invert_unit_triangle(shares: Vector, band: int) -> Vector:
    """(I - F)⁻¹ of strictly upper triangular F >= 0 with a band. (outputs, h, h)"""
    height = shares.shape[1]
    inverse = np.zeros_like(shares)
    inverse[:, np.arange(height), np.arange(height)] = 1
    for i in range(height - 2, -1, -1):
        reach = min(height, i + 1 + band)
        inverse[:, i, i + 1 :] += (
            shares[:, i : i + 1, i + 1 : reach] @ inverse[:, i + 1 : reach, i + 1 :]
        )[:, 0]
    return inverse
