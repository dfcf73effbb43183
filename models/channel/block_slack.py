"""Invert the blocks of the interior-point method for channels that are (ε, δ)-DP with δ > 0.

The method is `workbench.models.channel.block_interior`. A slack s_p is the hockey-stick term
max(0, v_a - λ v_b) of one output at an ordered pair p = (a, b) of labels. Outputs are coupled by
the sum of the slacks of every pair, beside the sums of the rows.

Notation. v are the masses of the k labels at one output o, λ = e^ε, and H is the matrix of one
output's block (`workbench.models.channel.block_factors`). w are the rows of the program that must
be positive, z their multipliers, ' is the transpose, and V = diag(v).

    s_p >= v_a - λ v_b,    s_p >= 0,    v >= 0 in every output,
    Σ_o s_p <= δ for every ordered pair p = (a, b)

Let g_p v = v_a - λ v_b, let g be the matrix with the rows g_p, and let D0, D1 and D2 be the ratios
z/w of the rows v, s - g v and s. The slacks of a block are eliminated:

    H = diag(D0) + Σ_p D1 D2/(D1 + D2) g_p' g_p  (sums of numbers >= 0),    f = D1/(D1 + D2),
    [I; f g] H⁻¹ [I, g' f] + diag(0, 1/(D1 + D2))    is the block's share of the Schur complement
                                                     of sums and pairs.

Near an optimum H⁻¹ is large along v itself if all pairs of an output are tight, and the differences
g H⁻¹ g' would cancel. So the label eliminated last is treated apart: with N the inverse of the
block of the other labels and u = v - N H v, H⁻¹ = N + u u'/(u'H u). Here
g u = (s - (s - g v)) - g N H v comes from the slacks as they are stored, and u'H u is a sum of
numbers >= 0.

With δ > 0 an optimal channel has no mass at outputs far from the label. Such masses may be left
out: the program then has a variable (a stated mass) for some inputs of each output only. The block
of the output and its share are small, and the Schur complement is banded if neighbouring inputs
share outputs. No proof depends on this choice, because the multipliers bound the loss of all
channels.

Arrays are flat. They list the stated masses of all outputs, then the slacks, then s - g v. The last
part is stored separately because it falls to 0.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

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

_MAX_JOINED_MASSES = 24  # Outputs of at most this many masses have their shares added by products.
_OUTPUTS_PER_PRODUCT = 8  # This many outputs of few masses are added by one product.


class SumLayout:
    """The order of the K sums over outputs, for rows v[first] <= ratio v[second] + slack.

    For every label the order lists the sum of its masses, the extra sums (losses and user-defined
    rows) that begin with it, then the sums of slacks of the pairs that begin with it.

    Args:
        k: number of labels.
        first: first labels of the ordered pairs, shape (pairs,).
        second: second labels of the ordered pairs, shape (pairs,).
        ratios: factor λ of each ordered pair, shape (pairs,).
        extra: smallest label that occurs in each extra sum, shape (R,).

    Attributes:
        k: number of labels.
        first: first labels of the ordered pairs, shape (pairs,).
        second: second labels of the ordered pairs, shape (pairs,).
        ratios: factor λ of each ordered pair, shape (pairs,).
        mass_sums: position of the sum of each label's masses, shape (k,).
        extra_sums: positions of the extra sums, shape (R,).
        pair_sums: positions of the sums of slacks, shape (pairs,).
        size: number of sums.
    """

    def __init__(
        self,
        k: int,
        first: Positions,
        second: Positions,
        ratios: Vector,
        extra: Positions,
    ) -> None:
        self.k = k
        self.first = first
        self.second = second
        self.ratios = ratios
        count_before_pairs = 1 + np.bincount(extra, minlength=k)
        order = np.argsort(banded_positions(k, first, second))
        counts = count_before_pairs + np.bincount(first, minlength=k)
        ends = np.cumsum(counts[order])
        starts = np.empty_like(ends)
        starts[order] = ends - counts[order]
        self.mass_sums = starts
        self.extra_sums = _number_by_label(extra, starts + 1)
        self.pair_sums = _number_by_label(first, starts + count_before_pairs)
        self.size = int(ends[-1])
        self._starts = starts
        self._ends = starts + counts

    def bandwidth(self, is_stated: Flags) -> int:
        """Return the largest distance between two sums that one output enters.

        Args:
            is_stated: whether the program has a variable for each mass, shape (k, outputs).
        """
        first = np.where(is_stated, self._starts[:, None], self.size).min(axis=0)
        last = np.where(is_stated, self._ends[:, None], 0).max(axis=0)
        # An end is one position past the last sum of its label.
        return int((last - first).max()) - 1


def _number_by_label(labels: Positions, starts: Positions) -> Positions:
    """Give every item a number: the items of one label count up from the start of the label.

    For example, labels [0, 1, 0] with starts [10, 20] give [10, 20, 11]. `labels` has the label of
    each item, and `starts` the first number of each label.
    """
    order = np.argsort(labels, kind="stable")
    sorted_labels = labels[order]
    rank_in_label = np.arange(labels.size) - np.searchsorted(sorted_labels, sorted_labels)
    numbers = np.empty_like(labels)
    numbers[order] = starts[sorted_labels] + rank_in_label
    return numbers


class _OutputPart(NamedTuple):
    """The part of one output in the flat arrays and in the sums.

    Attributes:
        masses: positions of the masses of this output in the flat array of masses.
        slacks: positions of the slacks of this output in the flat array of slacks.
        pair_places: positions of the pairs of this output within `sums`.
        sums: positions of the sums that this output enters, in increasing order.
        coefficients: coefficients of the masses in these sums, shape (sums, masses).
    """

    masses: slice
    slacks: slice
    pair_places: Positions
    sums: Positions
    coefficients: sp.csr_array


class SlackFactors(BlockFactors):
    """The blocks of some outputs with slacks.

    Args:
        layout: the pairs and the order of the sums.
        is_stated: whether the program has a variable for each mass, shape (k, outputs).
        extra_sums: coefficients of the extra sums (losses and user-defined rows), with one column
            for each label and output, label by label, shape (R, k outputs). None if R = 0.

    Attributes:
        layout: the pairs and the order of the sums.
        inputs: label of every stated mass, output by output, shape (mass_count,).
        outputs: output of every stated mass, shape (mass_count,).
        mass_count: number of stated masses.
        pair_numbers: number of the pair of every slack, output by output, shape (slacks,).
        pair_outputs: output of every slack, shape (slacks,).
        n: length of the flat arrays: the stated masses, the slacks, and s - g v.
    """

    def __init__(
        self,
        layout: SumLayout,
        is_stated: Flags,
        extra_sums: sp.csr_array | None,
    ) -> None:
        self.layout = layout
        self.k = layout.k
        outputs, inputs = np.nonzero(is_stated.T)
        self.outputs = outputs.astype(int)
        self.inputs = inputs.astype(int)
        self.mass_count = self.inputs.size
        output_count = is_stated.shape[1]
        mass_number = np.full((output_count, layout.k), -1)
        mass_number[self.outputs, self.inputs] = np.arange(self.mass_count)
        # A slack exists if the first mass of its pair is stated.
        self.pair_outputs, self.pair_numbers = np.nonzero(is_stated[layout.first].T)
        first = mass_number[self.pair_outputs, layout.first[self.pair_numbers]]
        second = mass_number[self.pair_outputs, layout.second[self.pair_numbers]]
        slack_count = self.pair_outputs.size
        self.n = self.mass_count + 2 * slack_count
        self._slack_end = self.mass_count + slack_count
        rows = np.arange(slack_count)
        has_second = second >= 0
        ratios = layout.ratios[self.pair_numbers]
        entries = np.concatenate([np.ones(slack_count), -ratios[has_second]])
        row_numbers = np.concatenate([rows, rows[has_second]])
        column_numbers = np.concatenate([first, second[has_second]])
        shape = (slack_count, self.mass_count)
        self._g = sp.csr_array((entries, (row_numbers, column_numbers)), shape=shape)
        self._g_transposed = sp.csr_array(self._g.T)
        self._build_sums(extra_sums)
        self._build_blocks(first, second, ratios, output_count)
        # `factorize` sets these: f, 1 - f and D1 + D2 of every slack, and N of every output.
        self._f = np.empty(0)
        self._one_minus_f = np.empty(0)
        self._slack_scalings = np.empty(0)
        self._inverses = np.empty(0)

    def _build_sums(self, extra_sums: sp.csr_array | None) -> None:
        """Build the matrix from flat arrays to the sums, shape (K, n), and its transpose."""
        layout = self.layout
        masses = np.arange(self.mass_count)
        rows = [layout.mass_sums[self.inputs], layout.pair_sums[self.pair_numbers]]
        columns = [masses, self.mass_count + np.arange(self.pair_numbers.size)]
        entries = [np.ones(self._slack_end)]
        if extra_sums is not None:
            output_count = extra_sums.shape[1] // layout.k
            stated_columns = self.inputs * output_count + self.outputs
            stated_sums = sp.coo_array(extra_sums[:, stated_columns])
            rows.append(layout.extra_sums[stated_sums.row])
            columns.append(masses[stated_sums.col])
            entries.append(stated_sums.data)
        places = np.concatenate(rows), np.concatenate(columns)
        self._sums = sp.csr_array((np.concatenate(entries), places), shape=(layout.size, self.n))
        self._sums_transposed = sp.csr_array(self._sums.T)

    def _build_blocks(
        self,
        first: Positions,
        second: Positions,
        ratios: Vector,
        output_count: int,
    ) -> None:
        """Build the layout of the Laplacians and the parts of the outputs.

        All blocks get the size of the largest one. `first` and `second` are the numbers of the two
        masses of every slack, shape (slacks,); `second` is -1 where the mass is not stated.
        """
        output_numbers = np.arange(output_count + 1)
        mass_starts = np.searchsorted(self.outputs, output_numbers)
        slack_starts = np.searchsorted(self.pair_outputs, output_numbers)
        mass_counts = np.diff(mass_starts)
        size = max(1, int(mass_counts.max()))
        local = np.arange(self.mass_count) - mass_starts[self.outputs]
        self._last_places = mass_counts - 1  # Place in the block of the label eliminated last.
        self._places = self.outputs, local  # Output, and place in its block, of every mass.
        inner_pairs = np.flatnonzero(second >= 0)
        i = first[inner_pairs]
        j = second[inner_pairs]
        offsets = local[j] - local[i]
        b = max(1, int(np.abs(offsets).max(initial=0)))
        self._band = b
        self._shape = size, output_count
        self._pair_masses = (i, j)
        self._pair_ratios = ratios[inner_pairs]
        self._inner_pairs = inner_pairs
        pair_output = self.pair_outputs[inner_pairs]
        cells = []
        for label, offset in ((i, offsets), (j, -offsets)):
            cells.append((local[label] * (2 * b + 1) + b + offset) * output_count + pair_output)
        columns = np.arange(inner_pairs.size)
        places = np.concatenate(cells), np.concatenate([columns, columns])
        cell_count = (size + b) * (2 * b + 1) * output_count
        ones = np.ones(2 * inner_pairs.size)
        shape = (cell_count, inner_pairs.size)
        self._weights_to_band = sp.csr_array((ones, places), shape=shape)
        # A mass enters its own sums directly, and the sums of slacks through its pairs.
        by_column = sp.csc_array(self._sums)
        self._parts: list[_OutputPart] = []
        for output in range(output_count):
            masses = slice(mass_starts[output], mass_starts[output + 1])
            slacks = slice(slack_starts[output], slack_starts[output + 1])
            mass_part = sp.csr_array(by_column[:, masses])
            mass_sums = np.flatnonzero(np.diff(mass_part.indptr))
            slack_sums = self.layout.pair_sums[self.pair_numbers[slacks]]
            sums = np.concatenate([mass_sums, slack_sums])
            coefficients = sp.vstack([mass_part[mass_sums], self._g[slacks, masses]])
            coefficients = sp.csr_array(coefficients)
            order = np.argsort(sums)
            # `argsort` of an order gives the new place of every item.
            pair_places = np.argsort(order)[mass_sums.size :]
            sorted_coefficients = sp.csr_array(coefficients[order])
            part = _OutputPart(masses, slacks, pair_places, sums[order], sorted_coefficients)
            self._parts.append(part)

    def place_costs(self, costs: Vector) -> Vector:
        """Return the costs of all variables, shape (n, 1).

        Args:
            costs: costs of the masses, shape (k, outputs).
        """
        flat = np.zeros((self.n, 1))
        flat[: self.mass_count, 0] = costs[self.inputs, self.outputs]
        return flat

    def interior_start(
        self,
        share: Vector,
        outputs: int,
    ) -> Vector:
        """Return equal masses of every label, with slacks above their smallest values, (n, 1).

        Args:
            share: mass of each label at every output, shape (k, 1).
            outputs: number of outputs.
        """
        v = share[self.inputs]
        # With the same margin above the smallest values, no slack and no difference is 0.
        margin = share[self.layout.first[self.pair_numbers]]
        excess = self._g @ v
        slacks = margin + np.maximum(0.0, excess)
        differences = margin + np.maximum(0.0, -excess)
        return np.concatenate([v, slacks, differences])

    def apply_rows(self, x: Vector) -> Vector:
        """Return the variables, since the rows that must be positive are the variables.

        Args:
            x: flat variables, shape (n, 1).
        """
        return x

    def apply_adjoint(self, z: Vector) -> Vector:
        """Apply the transpose of the map (v, s) -> (v, s, s - g v), shape (n, 1).

        Args:
            z: flat multipliers, shape (n, 1).
        """
        mass_z, slack_z, difference_z = self._split(z)
        masses = mass_z - self._g_transposed @ difference_z
        no_differences = np.zeros_like(difference_z)
        return np.concatenate([masses, slack_z + difference_z, no_differences])[:, None]

    def _split(self, x: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the masses, the slacks and the differences s - g v of a flat array."""
        flat = x[:, 0]
        slacks = flat[self.mass_count : self._slack_end]
        return flat[: self.mass_count], slacks, flat[self._slack_end :]

    def spread_multipliers(
        self,
        q: Vector,
        outputs: int,
    ) -> Vector:
        """Compute the contribution of multipliers of sums to every variable, shape (n, 1).

        Args:
            q: multipliers of the sums, shape (K,).
            outputs: number of outputs.
        """
        return np.asarray(self._sums_transposed @ q)[:, None]

    def sum_outputs(self, x: Vector) -> Vector:
        """Compute the sums, shape (K,).

        Args:
            x: flat variables, shape (n, 1).
        """
        return np.asarray(self._sums @ x[:, 0])

    def min_reduced_costs(
        self,
        costs: Vector,
        z: Vector,
        q: Vector,
    ) -> Vector:
        """Compute the multipliers of sums with which z proves a lower bound, shape (K,).

        Sums of slacks get minus the largest multiplier of s >= g v.

        Args:
            costs: costs of the variables, shape (n, 1).
            z: flat multipliers, shape (n, 1).
            q: multipliers of the sums, shape (K,).
        """
        pair_multipliers = z[self._slack_end :, 0]
        layout = self.layout
        extra_q = q.copy()
        extra_q[layout.mass_sums] = 0
        extra_q[layout.pair_sums] = 0
        extra_costs = np.asarray(self._sums_transposed @ extra_q)[: self.mass_count]
        privacy_costs = self._g_transposed @ pair_multipliers
        reduced_costs = costs[: self.mass_count, 0] + privacy_costs - extra_costs
        multipliers = extra_q.copy()
        multipliers[layout.mass_sums] = np.inf
        np.minimum.at(multipliers, layout.mass_sums[self.inputs], reduced_costs)
        np.minimum.at(multipliers, layout.pair_sums[self.pair_numbers], -pair_multipliers)
        return multipliers

    def label_masses(self, x: Vector) -> Vector:
        """Return the channel M, shape (k, outputs), with 0 for masses that are not stated.

        Args:
            x: flat variables, shape (n, 1).
        """
        table = np.zeros((self.k, self._shape[1]))
        table[self.inputs, self.outputs] = x[: self.mass_count, 0]
        return table

    def row_multipliers(self, z: Vector) -> Vector:
        """Return the multipliers of the ordered pairs, shape (pairs, outputs).

        Args:
            z: flat multipliers, shape (n, 1).
        """
        table = np.zeros((self.layout.first.size, self._shape[1]))
        table[self.pair_numbers, self.pair_outputs] = z[self._slack_end :, 0]
        return table

    def factorize(
        self,
        x: Vector,
        w: Vector,
        z: Vector,
    ) -> None:
        """Factor and invert V H V of all outputs, with V = diag(v).

        V H V is a Laplacian plus diag(v ∘ (z0 + g'(f z2 - (1 - f) z1))), where z0, z1 and z2 are
        the multipliers of v, s - g v and s. This sets u, g u and u'H u of the module header.

        Args:
            x: flat variables, shape (n, 1).
            w: the rows, which are the variables, shape (n, 1).
            z: flat multipliers, shape (n, 1).
        """
        size, output_count = self._shape
        b = self._band
        outputs, local = self._places
        all_outputs = np.arange(output_count)
        d0, d2, d1 = self._split(z / w)
        self._slack_scalings = d2 + d1
        self._f = d1 / (d2 + d1)
        self._one_minus_f = d2 / (d2 + d1)
        v = x[: self.mass_count, 0]
        i, j = self._pair_masses
        weights = (d2 * self._f)[self._inner_pairs] * self._pair_ratios * v[i] * v[j]
        band = np.asarray(self._weights_to_band @ weights)
        band = band.reshape(size + b, 2 * b + 1, output_count)
        mass_z, slack_z, difference_z = self._split(z)
        pair_z = self._f * slack_z - self._one_minus_f * difference_z
        # Places without a mass have the row sum 1, so that their pivots are positive.
        row_sums = np.ones((size + b, output_count))
        row_sums[local, outputs] = v * (mass_z + self._g_transposed @ pair_z)
        self._shares = np.empty((size, b, output_count))
        self._pivots = np.empty((size, output_count))
        eliminate(band, row_sums.copy(), self._shares, self._pivots)
        self._scale = np.ones((size, output_count))
        self._scale[local, outputs] = v
        # An infinite pivot leaves the last label out, so that N is applied from here on.
        self._pivots[self._last_places, all_outputs] = np.inf
        n_h_v = self._scale * substitute(self._shares, self._pivots, row_sums)
        n_h_v = n_h_v[local, outputs]
        self._inverses = invert_blocks(self._shares, self._pivots)
        self._inverses *= self._scale.T[:, :, None]
        self._inverses *= self._scale.T[:, None, :]
        self._u = v - n_h_v
        slack_differences = (x[self.mass_count : self._slack_end] - x[self._slack_end :])[:, 0]
        self._g_u = slack_differences - self._g @ n_h_v
        self._u_h_u = np.bincount(outputs, d0 * self._u**2, output_count)
        pair_terms = d2 * self._f * self._g_u**2
        self._u_h_u += np.bincount(self.pair_outputs, pair_terms, output_count)
        self._u_h_u[self._last_places < 0] = 1.0  # These outputs have no stated mass.

    def schur_complement(self) -> Vector:
        """Compute the Schur complement as a dense matrix, shape (K, K)."""
        total = np.zeros((self.layout.size, self.layout.size))
        if self._shape[0] <= _MAX_JOINED_MASSES:
            self._add_joined_shares(total)
        else:
            self._add_single_shares(total)
        slack_sums = self.layout.pair_sums[self.pair_numbers]
        np.add.at(total, (slack_sums, slack_sums), 1 / self._slack_scalings)
        return total

    def _add_joined_shares(self, total: Vector) -> None:
        """Add the shares of outputs of few masses to the Schur complement `total`.

        Consecutive outputs with the same sums are added by one product.
        """

        def group_key(numbered_part: tuple[int, _OutputPart]) -> tuple[int, bytes]:
            """Return the key that is equal for outputs that one product adds."""
            output, part = numbered_part
            return output // _OUTPUTS_PER_PRODUCT, part.sums.tobytes()

        for _, group in groupby(enumerate(self._parts), group_key):
            left_factors = []
            right_factors = []
            for output, part in group:
                left, right = self._share_factors(output, part)
                left_factors.append(left)
                right_factors.append(right)
                sums = part.sums
            total[np.ix_(sums, sums)] += np.hstack(left_factors) @ np.hstack(right_factors).T

    def _share_factors(
        self,
        output: int,
        part: _OutputPart,
    ) -> Pair:
        """Return (A, B) so that A B' is the share of an output without its slacks' diagonal.

        Both have the shape (sums, masses + 1).
        """
        size = part.coefficients.shape[1]
        scale = np.ones((part.sums.size, 1))
        sums_of_u = (part.coefficients @ self._u[part.masses])[:, None]
        sums_of_u[part.pair_places, 0] = self._g_u[part.slacks]
        scale[part.pair_places, 0] = self._f[part.slacks]
        inverse_part = part.coefficients @ self._inverses[output, :size, :size]
        left = np.hstack([inverse_part, sums_of_u / self._u_h_u[output]])
        return scale * left, scale * np.hstack([part.coefficients.toarray(), sums_of_u])

    def _add_single_shares(self, total: Vector) -> None:
        """Add the shares of outputs of many masses to the Schur complement `total`.

        Each sum depends on few of the masses, so sparse products are used.
        """
        for output, (masses, slacks, pair_places, sums, coefficients) in enumerate(self._parts):
            if not sums.size:
                continue
            size = coefficients.shape[1]
            scale = np.ones(sums.size)
            inverse = self._inverses[output, :size, :size]
            share = coefficients @ (coefficients @ inverse).T
            sums_of_u = coefficients @ self._u[masses]
            sums_of_u[pair_places] = self._g_u[slacks]
            scale[pair_places] = self._f[slacks]
            share += sums_of_u[:, None] * (sums_of_u / self._u_h_u[output])
            share *= scale[:, None]
            share *= scale
            first = sums[0]
            end = sums[-1] + 1
            if end - first == sums.size:
                total[first:end, first:end] += share
            else:
                total[np.ix_(sums, sums)] += share

    def solve(self, right: Vector) -> Vector:
        """Compute H⁻¹ times a right-hand side by elimination of the slacks, shape (n, 1).

        Args:
            right: flat right-hand side, shape (n, 1).
        """
        masses, slacks, _ = self._split(right)
        masses = masses + self._g_transposed @ (self._f * slacks)
        outputs, local = self._places
        table = np.zeros(self._shape)
        table[local, outputs] = masses
        n_part = self._scale * substitute(self._shares, self._pivots, self._scale * table)
        n_part = n_part[local, outputs]
        u_amounts = np.bincount(outputs, self._u * masses, self._shape[1]) / self._u_h_u
        pair_values = self._g @ n_part + self._g_u * u_amounts[self.pair_outputs]
        mass_solution = n_part + self._u * u_amounts[outputs]
        scaled_slacks = slacks / self._slack_scalings
        slack_solution = scaled_slacks + self._f * pair_values
        difference_solution = scaled_slacks - self._one_minus_f * pair_values
        return np.concatenate([mass_solution, slack_solution, difference_solution])[:, None]
