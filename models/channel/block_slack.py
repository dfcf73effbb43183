"""Blocks of `workbench.models.channel.block_interior` where δ > 0: outputs share the slack of every ordered pair
beside their sums.

    s_p >= v_a - λ v_b,    s_p >= 0,    v >= 0 in every output,    Σ_o s_p <= δ for every ordered pair p = (a, b)

With g_p v = v_a - λ v_b and D0, D1, D2 the scalings z/w of v, of s - g v and of s, slacks are eliminated in a block:

    H = diag(D0) + Σ_p D1 D2/(D1 + D2) g_p' g_p  (sums of what is >= 0),    f = D1/(D1 + D2),
    [I; f g] H⁻¹ [I, g' f] + diag(0, 1/(D1 + D2))    is the block's share of the Schur complement of sums and pairs.

Near an optimum H⁻¹ is large along v itself where all pairs of an output are tight, and the differences g H⁻¹ g' would
cancel. So the label eliminated last is taken apart: with N the inverse of the others' block and u = v - N H v,
H⁻¹ = N + u u'/(u'H u), g u = (s - (s - g v)) - g N H v from the slacks as they are kept, and u'H u a sum of what is
>= 0.

Masses far out that δ makes needless may be left out: an output states those of its own inputs alone, so its block and
its share are small, and the Schur complement is banded where near inputs share outputs. No proof rests on it:
multipliers bound all channels.

Arrays are flat: what is stated of all outputs, masses, then slacks, then s - g v, which is kept apart: it falls to 0.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import scipy.sparse as sp

from workbench.models.channel.block_factors import (
    BlockFactors,
    banded_positions,
    eliminate,
    invert_blocks,
    substitute,
)
from workbench.solvers.arrays import Flags, Pair, Positions, Vector

_FEW, _AT_ONCE = (
    24,
    8,
)  # masses of an output; outputs of few whose shares are added up by one product


class SumLayout:
    """What all outputs share: ordered pairs first <= ratios second + slack of k labels, in the order in which sums are
    counted: of every label its mass, what else is summed from it on, then its pairs. extra: (R,) these labels."""

    def __init__(
        self, k: int, first: Positions, second: Positions, ratios: Vector, extra: Positions
    ) -> None:
        self.k, self.first, self.second, self.ratios = k, first, second, ratios
        own = 1 + np.bincount(extra, minlength=k)
        order = np.argsort(banded_positions(k, first, second))
        counts = own + np.bincount(first, minlength=k)
        ends = np.cumsum(counts[order])
        starts = np.empty_like(ends)
        starts[order] = ends - counts[order]
        self.mass_sums = starts
        self.extra_sums, self.pair_sums = _counted(extra, starts + 1), _counted(first, starts + own)
        self.size = int(ends[-1])
        self._starts, self._ends = starts, starts + counts

    def bandwidth(self, stated: Flags) -> int:
        """How far apart two sums are that one output enters."""
        first = np.where(stated, self._starts[:, None], self.size).min(axis=0)
        last = np.where(stated, self._ends[:, None], 0).max(axis=0)
        return int((last - first).max()) - 1


def _counted(labels: Positions, starts: Positions) -> Positions:
    """Positions from the start of each one's label on."""
    order, at = np.argsort(labels, kind="stable"), np.empty_like(labels)
    at[order] = (
        starts[labels[order]]
        + np.arange(labels.size)
        - np.searchsorted(labels[order], labels[order])
    )
    return at


class SlackFactors(BlockFactors):
    """The blocks of some outputs. stated: (k, outputs) masses that are; extra: (R, k outputs) of them, or None."""

    def __init__(self, pairs: SumLayout, stated: Flags, extra: sp.csr_array | None) -> None:
        self.pairs, self.k = pairs, pairs.k
        self.inputs, self.outputs = (each.astype(int) for each in np.nonzero(stated.T)[::-1])
        outputs = stated.shape[1]
        at = np.full((outputs, pairs.k), -1)
        at[self.outputs, self.inputs] = np.arange(self.inputs.size)
        output, self.which = np.nonzero(stated[pairs.first].T)  # pairs whose first mass is stated
        self.pair_outputs = output
        first, second = at[output, pairs.first[self.which]], at[output, pairs.second[self.which]]
        self.stated, slacks = self.inputs.size, output.size
        self.n = self.stated + 2 * slacks
        self._end = self.stated + slacks  # of the slacks
        rows, there, ratios = np.arange(slacks), second >= 0, pairs.ratios[self.which]
        entries = np.concatenate([np.ones(slacks), -ratios[there]])
        where = np.concatenate([rows, rows[there]]), np.concatenate([first, second[there]])
        self._g = sp.csr_array((entries, where), shape=(slacks, self.stated))
        self._g_turned = sp.csr_array(self._g.T)
        self._summing(extra)
        self._blocks(first, second, ratios, outputs)
        self._f = self._rest = self._total = self._inverses = np.empty(0)

    def _summing(self, extra: sp.csr_array | None) -> None:
        """The sums of flat arrays, (K, n), and their positions."""
        pairs, cells = self.pairs, np.arange(self.stated)
        rows = [pairs.mass_sums[self.inputs], pairs.pair_sums[self.which]]
        columns, entries = [cells, self.stated + np.arange(self.which.size)], [np.ones(self._end)]
        if extra is not None:
            own = sp.coo_array(extra[:, self.inputs * (extra.shape[1] // pairs.k) + self.outputs])
            rows.append(pairs.extra_sums[own.row])
            columns.append(cells[own.col])
            entries.append(own.data)
        where = np.concatenate(rows), np.concatenate(columns)
        self._sums = sp.csr_array((np.concatenate(entries), where), shape=(pairs.size, self.n))
        self._pulls = sp.csr_array(self._sums.T)

    def _blocks(self, first: Positions, second: Positions, ratios: Vector, outputs: int) -> None:
        """Of every output its masses, its slacks, its sums and how they depend on its masses; where its Laplacian has
        the weights of its pairs; all blocks as large as the largest."""
        at = np.searchsorted(self.outputs, np.arange(outputs + 1))
        pair_at = np.searchsorted(self.pair_outputs, np.arange(outputs + 1))
        size = max(1, int(np.diff(at).max()))
        local = np.arange(self.stated) - at[self.outputs]
        self._roots = np.diff(at) - 1
        self._slot = self.outputs, local
        both = np.flatnonzero(second >= 0)
        i, j, o = first[both], second[both], self.pair_outputs[both]
        apart = local[j] - local[i]
        b = self._band = max(1, int(np.abs(apart).max(initial=0)))
        self._shape = size, outputs
        self._ends, self._weights_of = (i, j), ratios[both]
        self._both = both
        rows = [
            (local[x] * (2 * b + 1) + b + gap) * outputs + o for x, gap in ((i, apart), (j, -apart))
        ]
        columns = np.arange(both.size)
        entries = np.ones(2 * both.size), (np.concatenate(rows), np.concatenate([columns, columns]))
        self._onto = sp.csr_array(entries, shape=((size + b) * (2 * b + 1) * outputs, both.size))
        depends = sp.csc_array(self._sums)  # a mass counts in its own sums; slacks by their pairs
        self._of: list[tuple[slice, slice, Positions, Positions, sp.csr_array]] = []
        for output in range(outputs):
            cells, slacks = (slice(ends[output], ends[output + 1]) for ends in (at, pair_at))
            part = sp.csr_array(depends[:, cells])
            kept = np.flatnonzero(np.diff(part.indptr))
            sums = np.concatenate([kept, self.pairs.pair_sums[self.which[slacks]]])
            uses = sp.csr_array(sp.vstack([part[kept], self._g[slacks, cells]]))
            order = np.argsort(sums)
            of_pairs = np.argsort(order)[kept.size :]
            self._of.append((cells, slacks, of_pairs, sums[order], sp.csr_array(uses[order])))

    def place_costs(self, costs: Vector) -> Vector:
        """Those of what is stated."""
        flat = np.zeros((self.n, 1))
        flat[: self.stated, 0] = costs[self.inputs, self.outputs]
        return flat

    def interior_start(self, share: Vector, outputs: int) -> Vector:
        """Equal masses of every label; slacks above what they must be."""
        v, more = share[self.inputs], share[self.pairs.first[self.which]]
        above = self._g @ v
        return np.concatenate([v, more + np.maximum(0.0, above), more + np.maximum(0.0, -above)])

    def apply_rows(self, x: Vector) -> Vector:
        """They are the variables."""
        return x

    def apply_adjoint(self, z: Vector) -> Vector:
        """The transpose of (v, s) -> (v, s, s - g v)."""
        own, slack, ratio = self._split(z)
        return np.concatenate([own - self._g_turned @ ratio, slack + ratio, np.zeros_like(ratio)])[
            :, None
        ]

    def _split(self, x: Vector) -> tuple[Vector, Vector, Vector]:
        flat = x[:, 0]
        return flat[: self.stated], flat[self.stated : self._end], flat[self._end :]

    def spread_multipliers(self, q: Vector, outputs: int) -> Vector:
        """Multipliers of the sums at what is summed."""
        return np.asarray(self._pulls @ q)[:, None]

    def sum_outputs(self, x: Vector) -> Vector:
        """What is summed. (K,)"""
        return np.asarray(self._sums @ x[:, 0])

    def min_reduced_costs(self, costs: Vector, z: Vector, q: Vector) -> Vector:
        """Of pairs less the largest multiplier of s >= g v."""
        u, other = z[self._end :, 0], q.copy()
        other[self.pairs.mass_sums] = other[self.pairs.pair_sums] = 0
        reduced = (
            costs[: self.stated, 0]
            + self._g_turned @ u
            - np.asarray(self._pulls @ other)[: self.stated]
        )
        least = other.copy()
        least[self.pairs.mass_sums] = np.inf
        np.minimum.at(least, self.pairs.mass_sums[self.inputs], reduced)
        np.minimum.at(least, self.pairs.pair_sums[self.which], -u)
        return least

    def label_masses(self, x: Vector) -> Vector:
        """0 where none is stated."""
        table = np.zeros((self.k, self._shape[1]))
        table[self.inputs, self.outputs] = x[: self.stated, 0]
        return table

    def row_multipliers(self, z: Vector) -> Vector:
        """Of ordered pairs."""
        table = np.zeros((self.pairs.first.size, self._shape[1]))
        table[self.which, self.pair_outputs] = z[self._end :, 0]
        return table

    def factorize(self, x: Vector, w: Vector, z: Vector) -> None:
        """The inverses of H of all outputs, through V H V = Laplacian + diag(v ∘ (z0 + g'(f z2 - (1 - f) z1)))."""
        (size, outputs), b = self._shape, self._band
        own, low, high = self._split(z / w)
        self._total, self._f, self._rest = low + high, high / (low + high), low / (low + high)
        v, (i, j) = x[: self.stated, 0], self._ends
        weights = (low * self._f)[self._both] * self._weights_of * v[i] * v[j]
        band = np.asarray(self._onto @ weights).reshape(size + b, 2 * b + 1, outputs)
        own_z, slack_z, ratio_z = self._split(z)
        sums = np.ones((size + b, outputs))
        output, local = self._slot
        sums[local, output] = v * (
            own_z + self._g_turned @ (self._f * slack_z - self._rest * ratio_z)
        )
        self._factors, self._pivots = np.empty((size, b, outputs)), np.empty((size, outputs))
        eliminate(band, sums.copy(), self._factors, self._pivots)
        self._scale = np.ones((size, outputs))
        self._scale[local, output] = v
        self._pivots[self._roots, np.arange(outputs)] = np.inf
        away = (self._scale * substitute(self._factors, self._pivots, sums))[local, output]
        self._inverses = invert_blocks(self._factors, self._pivots)
        self._inverses *= self._scale.T[:, :, None]
        self._inverses *= self._scale.T[:, None, :]
        self._last = v - away
        self._last_above = (x[self.stated : self._end] - x[self._end :])[:, 0] - self._g @ away
        self._energy = np.bincount(output, own * self._last**2, outputs)
        self._energy += np.bincount(self.pair_outputs, low * self._f * self._last_above**2, outputs)
        self._energy[self._roots < 0] = 1.0  # of outputs of which no mass is stated

    def schur_complement(self) -> Vector:
        """Dense, (K, K)."""
        total = np.zeros((self.pairs.size, self.pairs.size))
        if self._shape[0] <= _FEW:
            self._add_few(total)
        else:
            self._add_many(total)
        own = self.pairs.pair_sums[self.which]
        np.add.at(total, (own, own), 1 / self._total)
        return total

    def _add_few(self, total: Vector) -> None:
        """The shares of outputs of few masses, of outputs with the same sums by one product."""
        for _, alike in groupby(
            enumerate(self._of), lambda each: (each[0] // _AT_ONCE, each[1][3].tobytes())
        ):
            sides, sums = zip(
                *((self._share(output, *of), of[3]) for output, of in alike), strict=True
            )
            left, right = map(np.hstack, zip(*sides, strict=True))
            total[np.ix_(sums[0], sums[0])] += left @ right.T

    def _share(
        self,
        output: int,
        cells: slice,
        slacks: slice,
        of_pairs: Positions,
        sums: Positions,
        uses: sp.csr_array,
    ) -> Pair:
        """(A, B), whose product A B' is the share of an output without its slacks' own, (sums, masses + 1) each."""
        size, scale = uses.shape[1], np.ones((sums.size, 1))
        along = (uses @ self._last[cells])[:, None]
        along[of_pairs, 0], scale[of_pairs, 0] = self._last_above[slacks], self._f[slacks]
        left = np.hstack(
            [uses @ self._inverses[output, :size, :size], along / self._energy[output]]
        )
        return scale * left, scale * np.hstack([uses.toarray(), along])

    def _add_many(self, total: Vector) -> None:
        """The shares of outputs of many masses, on few of which each sum depends."""
        for output, (cells, slacks, of_pairs, sums, uses) in enumerate(self._of):
            if not sums.size:
                continue
            size, scale = uses.shape[1], np.ones(sums.size)
            share = uses @ (uses @ self._inverses[output, :size, :size]).T
            of_last = uses @ self._last[cells]
            of_last[of_pairs], scale[of_pairs] = self._last_above[slacks], self._f[slacks]
            share += of_last[:, None] * (of_last / self._energy[output])
            share *= scale[:, None]
            share *= scale
            first, last = sums[0], sums[-1] + 1
            if last - first == sums.size:
                total[first:last, first:last] += share
            else:
                total[np.ix_(sums, sums)] += share

    def solve(self, right: Vector) -> Vector:
        """By elimination of the slacks."""
        masses, slacks, _ = self._split(right)
        masses = masses + self._g_turned @ (self._f * slacks)
        (output, local), table = self._slot, np.zeros(self._shape)
        table[local, output] = masses
        moved = (self._scale * substitute(self._factors, self._pivots, self._scale * table))[
            local, output
        ]
        along = np.bincount(output, self._last * masses, self._shape[1]) / self._energy
        above = self._g @ moved + self._last_above * along[self.pair_outputs]
        moved, slacks = moved + self._last * along[output], slacks / self._total
        return np.concatenate([moved, slacks + self._f * above, slacks - self._rest * above])[
            :, None
        ]
