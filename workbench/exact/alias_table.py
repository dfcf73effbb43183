"""Exact draws from many outcomes by the alias method (Walker 1977), in integers: no float decides anything.

Weights k_1..k_m of sum T fill N = 2^b >= m columns of height T, N k_i of outcome i: column j holds a_j of outcome j and
T - a_j of one other (Vose 1991). A draw is a uniform column j and a uniform real
U in [0, T): outcome j where U < a_j, the other elsewhere, so that its probabilities are exactly k_i / T. Of 24 random
bits b name the column; the others are the first ones v of U/T and decide unless v = ⌊a_j 2^(24 - b) / T⌋, where 48 more
are drawn, and then 16 at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.exact.arrays import Integers
from workbench.exact.random_source import Source

MAX_OUTCOMES = 1 << 20
"""Outcomes of a table, at most."""

_BITS, _MORE = 24, 48


class AliasTable:
    """Draws of one law. weights: 257..MOST integers >= 0, not all 0; source: of randomness."""

    def __init__(self, weights: Sequence[int], source: Source) -> None:
        self.source, self.total = source, sum(weights)
        columns = (len(weights) - 1).bit_length()
        self.value_bits = _BITS - columns  # bits of a word that are of U
        self.own_masses, others = _fill_columns(
            [*(k << columns for k in weights), *[0] * ((1 << columns) - len(weights))]
        )
        self.floors = np.array(
            [(mass << self.value_bits + _MORE) // self.total for mass in self.own_masses],
            dtype=np.uint64,
        )
        self.first_thresholds = (self.floors >> np.uint64(_MORE)).astype(np.uint16)
        self.outcomes = np.stack([np.arange(len(others)), others], axis=1).astype(np.int32).ravel()

    def draw(self, count: int) -> NDArray[np.int32]:
        """Independent draws. Shape (count,)."""
        words, more = self.source.draw_uint16(count), self.source.draw_uint8(count)
        value = (words << np.uint16(8) | more) & np.uint16((1 << self.value_bits) - 1)
        column = np.left_shift(words, 8, dtype=np.intp)
        column |= more
        column >>= self.value_bits
        cut = self.first_thresholds.take(column)
        ties = np.flatnonzero(value == cut)
        column += column
        column += value > cut
        if ties.size:
            column[ties] += self._beyond(column[ties] >> 1, value[ties].astype(np.uint64))
        return self.outcomes.take(column)

    def _beyond(self, column: Integers, value: Integers) -> NDArray[np.bool_]:
        """Whether U >= a_j. value: the first bits of U/T, as many as of a_j."""
        for words in self.source.draw_uint16(_MORE // 16 * column.size).reshape(-1, column.size):
            value = value << np.uint64(16) | words
        floor = self.floors[column]
        beyond = value > floor
        for at in np.flatnonzero(value == floor).tolist():
            mass, first = self.own_masses[column[at]], int(value[at])
            beyond[at] = not self.source.is_uniform_below(
                first, self.value_bits + _MORE, mass, self.total
            )
        return beyond


def _fill_columns(masses: Sequence[int]) -> tuple[list[int], list[int]]:
    """(a_j, the other outcome) of every column; a column of one outcome has a_j = 0 and itself as the other.

    masses: N of them, whose mean is an integer.
    """
    height = sum(masses) // len(masses)
    own, other = [*masses], list(range(len(masses)))
    small, large = (
        [i for i, mass in enumerate(masses) if (mass < height) == less] for less in (True, False)
    )
    for i in small:  # which grows by what is left of large ones
        at = other[i] = large[-1]
        own[at] -= height - own[i]
        if own[at] < height:
            small.append(large.pop())
    for at in large:  # all of the height now
        own[at] = 0
    return own, other
