"""Draw exactly from one law with many outcomes, by the alias method (Walker 1977) in integers.

The law has m outcomes with integer weights k_1..k_m, whose sum is T. The table has N = 2^b >= m
columns of height T, in which outcome i gets the total area N k_i. Column j contains the mass a_j of
outcome j and the mass T - a_j of one other outcome (Vose 1991). For example, the weights 1 and 3
give N = 2 columns of height 4. Column 0 has a_0 = 2 and the other outcome 1, and column 1 consists
of outcome 1.

A draw selects a uniform column j and a uniform real U in [0, T). The result is outcome j if U <
a_j, and the other outcome otherwise, so its probabilities are exactly k_i / T. Of the first 24
random bits, b bits select the column. The others are the first bits v of U/T. They decide unless
v = ⌊a_j 2^(24 - b) / T⌋. Then 48 more bits are drawn, and then 16 at a time. No float decides an
outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.exact.arrays import Integers, Words
from workbench.exact.random_source import Source

MAX_OUTCOMES = 1 << 20  # Laws of more outcomes have no alias table.

_FIRST_BITS = 24  # Random bits of every draw: the number of the column and the first bits of U.
_TIE_BITS = 48  # Further bits of U that are drawn when the first ones do not decide.
_WORD_BITS = 16  # Random bits that are drawn at a time when a draw is still undecided.


class AliasTable:
    """The alias table of one law. The letters are those of the module header.

    Args:
        weights: The weights of the outcomes: 257 to MAX_OUTCOMES integers >= 0, not all 0. From 257
            outcomes on, at most 15 bits belong to U, so a threshold fits 16 bits.
        source: The source of randomness.

    Attributes:
        total: T.
        value_bits: Number of the first 24 bits that belong to U, 24 - b.
        own_masses: a_j of every column. Length N.
        floors: ⌊a_j 2^(value_bits + 48) / T⌋ of every column. Shape (N,).
        first_thresholds: ⌊a_j 2^value_bits / T⌋ of every column. Shape (N,).
        outcomes: j and the other outcome of column j at the positions 2 j and 2 j + 1. Shape
            (2 N,).
    """

    def __init__(self, weights: Sequence[int], source: Source) -> None:
        self.source = source
        self.total = sum(weights)
        column_bits = (len(weights) - 1).bit_length()
        self.value_bits = _FIRST_BITS - column_bits
        padding = [0] * ((1 << column_bits) - len(weights))
        masses = [*(weight << column_bits for weight in weights), *padding]
        self.own_masses, aliases = _fill_columns(masses)
        threshold_bits = self.value_bits + _TIE_BITS
        thresholds = [(mass << threshold_bits) // self.total for mass in self.own_masses]
        self.floors = np.array(thresholds, dtype=np.uint64)
        self.first_thresholds = (self.floors >> np.uint64(_TIE_BITS)).astype(np.uint16)
        self.outcomes = (
            np.stack([np.arange(len(aliases)), aliases], axis=1).astype(np.int32).ravel()
        )

    def draw(self, count: int) -> NDArray[np.int32]:
        """Draw independent outcomes. Shape (count,)."""
        random_words = self.source.draw_uint16(count)
        random_bytes = self.source.draw_uint8(count)
        # A word and a byte are 24 random bits: first the number of the column, then bits of U.
        value_mask = np.uint16((1 << self.value_bits) - 1)
        values = (random_words << np.uint16(8) | random_bytes) & value_mask
        columns = np.left_shift(random_words, 8, dtype=np.intp)
        columns |= random_bytes
        columns >>= self.value_bits
        thresholds = self.first_thresholds.take(columns)
        ties = np.flatnonzero(values == thresholds)
        is_other_outcome = values > thresholds
        if ties.size:
            tied_values = values[ties].astype(np.uint64)
            is_other_outcome[ties] = self._settle_ties(columns[ties], tied_values)
        positions = np.left_shift(columns, 1, out=columns)
        positions += is_other_outcome
        return self.outcomes.take(positions)

    def _settle_ties(self, columns: Integers, values: Words) -> NDArray[np.bool_]:
        """Decide with further bits whether U >= a_j, that is, the other outcome is drawn.

        Args:
            columns: Number j of the column of each draw. Shape (n,).
            values: First bits of U/T of each draw, equal to the first bits of a_j/T. Shape (n,).

        Returns:
            Whether U >= a_j. Shape (n,).
        """
        words_per_draw = _TIE_BITS // _WORD_BITS
        random_words = self.source.draw_uint16(words_per_draw * columns.size)
        for next_words in random_words.reshape(-1, columns.size):
            values = values << np.uint64(_WORD_BITS) | next_words
        floors = self.floors[columns]
        is_other_outcome = values > floors
        for draw in np.flatnonzero(values == floors).tolist():
            is_other_outcome[draw] = not self.source.is_uniform_below(
                int(values[draw]),
                self.value_bits + _TIE_BITS,
                self.own_masses[columns[draw]],
                self.total,
            )
        return is_other_outcome


def _fill_columns(masses: Sequence[int]) -> tuple[list[int], list[int]]:
    """Distribute the masses over columns of equal height with at most two outcomes each.

    Args:
        masses: Total area of each outcome. Length N. Their mean is the height of a column, an
            integer.

    Returns:
        (masses a_j, other outcomes), with one entry for each column j. A column that contains only
        outcome j has a_j = 0 and the other outcome j.
    """
    height = sum(masses) // len(masses)
    own_masses = [*masses]
    aliases = list(range(len(masses)))  # The other outcome of each column.
    small = [i for i, mass in enumerate(masses) if mass < height]
    large = [i for i, mass in enumerate(masses) if mass >= height]
    # The list grows inside the loop: a large outcome joins it when its remaining mass is below the
    # height.
    for i in small:
        donor = large[-1]
        aliases[i] = donor
        own_masses[donor] -= height - own_masses[i]
        if own_masses[donor] < height:
            small.append(large.pop())
    # The remaining large outcomes fill their whole column.
    for i in large:
        own_masses[i] = 0
    return own_masses, aliases
