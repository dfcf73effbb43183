"""Draw from one or several exact distributions with integer randomness, so that no float decides.

Let the weights k_1..k_m have the sum T and the cumulative sums C_0 = 0 <= ... <= C_m = T. A draw is
a uniform real U in [0, T), of which only the leading bits are drawn, and its outcome is the i with
C_{i-1} <= U < C_i. The first n bits v of U/T say that U lies in the cell [v, v+1) T / 2^n. If no C
lies inside the cell, the outcome is decided; otherwise more bits are drawn. The probabilities are
therefore exactly k_i / T for every T, and no draw is rejected:

    n <= 16    A table of 2^n entries for every law decides all draws except a share of at most
               m / 2^n.
    n = 48     A binary search among the integers ⌊C 2^n / T⌋ decides the remaining draws except a
               share of at most m / 2^n. One sorted array has these integers of all laws.
    n > 48     For the last draws 16 more bits are drawn at a time, until the outcome is decided.

For many draws from one law with many outcomes an alias table is used
(`workbench.exact.alias_table`), which is exact too.

Words come from the operating system in bulk (`Source`). There is no protection against timing
attacks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import read_integer
from workbench.errors import must
from workbench.exact.alias_table import MAX_OUTCOMES, AliasTable
from workbench.exact.arrays import Integers, Words
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source

_WORD_BITS = 16  # Random bits that are drawn at a time.
_SEARCH_BITS = 48  # Bits of a draw that is settled by the search among all boundaries.
_MIN_TABLE_BITS = 8  # The cell table of a law has at least 2^8 entries.
_DRAWS_PER_CHUNK = 1 << 16  # The temporary arrays of a chunk stay small.
_MIN_ALIAS_OUTCOMES = 1 << 12  # For more outcomes, an alias table that exists is faster.
_MAX_TABLE_CELLS = 1 << 20  # All tables together stay within the cache of a processor.
_MAX_LAWS = 1 << _WORD_BITS  # The number of a law must fit above the bits of the search.


class Sampler:
    """Draw from one or several distributions with their exact probabilities k_i / T.

    Args:
        laws: One distribution, or 1 to 65,536 distributions with equally many outcomes.
        source: The source of randomness. Default: the operating system.

    Attributes:
        bits: The leading bits of a draw for which a table is made, 8 to 16.

    Raises:
        InvalidRequest: If there are no laws or too many, or if their numbers of outcomes differ.
    """

    def __init__(
        self, laws: Distribution | Sequence[Distribution], source: Source | None = None
    ) -> None:
        self.laws = (laws,) if isinstance(laws, Distribution) else tuple(laws)
        if not 1 <= len(self.laws) <= _MAX_LAWS:
            must("laws", f"1 to {_MAX_LAWS} distributions", len(self.laws))
        self.source = source or Source()
        affordable_bits = (_MAX_TABLE_CELLS // len(self.laws)).bit_length() - 1
        self.bits = max(_MIN_TABLE_BITS, min(_WORD_BITS, affordable_bits))

    @cached_property
    def cumulative_sums(self) -> list[list[int]]:
        """Return C_1..C_m of every law."""
        return [list(accumulate(law.integers)) for law in self.laws]

    @cached_property
    def cell_outcomes(self) -> NDArray[np.int32]:
        """Return the outcomes of the cells of all laws, -1 for open cells.

        Shape (laws * 2^bits,).
        """
        return np.concatenate([_cell_outcomes(sums, self.bits) for sums in self.cumulative_sums])

    @cached_property
    def _boundaries(self) -> list[list[int]]:
        """Return the boundaries ⌊C 2^48 / T⌋ of every law, for its sums C below T."""
        return [_scale_inner_sums(sums) for sums in self.cumulative_sums]

    @cached_property
    def floors(self) -> Words:
        """Return the boundaries ⌊C 2^48 / T⌋ of all laws in one sorted array, for a binary search.

        An entry is the number of its law (leading 16 bits), followed by the boundary (48 bits).
        """
        numbered = []
        for law, boundaries in enumerate(self._boundaries):
            numbered += [(law << _SEARCH_BITS) + boundary for boundary in boundaries]
        return np.array(numbered, dtype=np.uint64)

    @cached_property
    def boundary_offsets(self) -> Integers:
        """Return the number of boundaries of earlier laws, for every law. Shape (laws + 1,)."""
        return np.array([0, *accumulate(map(len, self._boundaries))], dtype=np.int64)

    @cached_property
    def _alias_table(self) -> AliasTable:
        """Return the alias table of the first law, which is made at its first use."""
        return AliasTable(self.laws[0].integers, self.source)

    def draw(self, count: int) -> Integers:
        """Draw independent outcomes from the first law.

        Args:
            count: The number of draws, >= 0.

        Returns:
            Outcomes in 0..m-1. Shape (count,).

        Raises:
            InvalidRequest: If count is no integer, or is negative.
        """
        draws = np.empty(read_integer(count, "count", 0), dtype=np.int64)
        outcome_count = len(self.laws[0].integers)
        # A cached property is in `__dict__` after its first use.
        has_alias_table = "_alias_table" in self.__dict__
        can_use_aliases = _MIN_ALIAS_OUTCOMES < outcome_count <= MAX_OUTCOMES
        is_table_worthwhile = has_alias_table or draws.size >= outcome_count
        for start in range(0, draws.size, _DRAWS_PER_CHUNK):
            chunk = draws[start : start + _DRAWS_PER_CHUNK]
            if can_use_aliases and is_table_worthwhile:
                chunk[:] = self._alias_table.draw(chunk.size)
            else:
                chunk[:] = self._draw_by_cells(chunk.size)
        return draws

    def draw_from(self, law_numbers: NDArray[np.integer]) -> NDArray[np.int32]:
        """Draw n independent outcomes, each from the law of a given number.

        Args:
            law_numbers: Position in `laws` for each draw. Shape (n,).

        Returns:
            Outcomes in 0..m-1. Shape (n,).
        """
        return self._draw_by_cells(law_numbers.size, law_numbers)

    def _draw_by_cells(
        self, count: int, law_numbers: NDArray[np.integer] | None = None
    ) -> NDArray[np.int32]:
        """Draw by the cell tables, and settle the draws in open cells with further bits.

        Args:
            count: The number of draws.
            law_numbers: Position in `laws` for each draw, shape (count,). None for the first law.
        """
        random_words = self.source.draw_uint16(count)
        cells = random_words >> np.uint16(_WORD_BITS - self.bits)
        if law_numbers is None:
            draws = self.cell_outcomes.take(cells)
        else:
            draws = self.cell_outcomes.take((law_numbers.astype(np.int32) << self.bits) + cells)
        open_draws = np.flatnonzero(draws < 0)
        if open_draws.size:
            open_laws = np.zeros(open_draws.size, dtype=np.int64)
            if law_numbers is not None:
                open_laws = law_numbers[open_draws].astype(np.int64)
            draws[open_draws] = self._settle_many(open_laws, random_words[open_draws])
        return draws

    def _settle_many(self, law_numbers: Integers, first_words: NDArray[np.uint16]) -> Integers:
        """Settle draws with 32 more bits each, and with more where these do not decide.

        Args:
            law_numbers: Position in `laws` for each draw. Shape (n,).
            first_words: The first 16 bits of each draw. Shape (n,).

        Returns:
            The outcomes. Shape (n,).
        """
        values = first_words.astype(np.uint64)
        for next_words in self.source.draw_uint16(2 * first_words.size).reshape(2, -1):
            values = values << np.uint64(_WORD_BITS) | next_words
        # A draw whose 48 bits lie above i boundaries of its law has the outcome i.
        keys = law_numbers.astype(np.uint64) << np.uint64(_SEARCH_BITS) | values
        places = np.searchsorted(self.floors, keys)
        outcomes = places - self.boundary_offsets[law_numbers]
        # A draw above all boundaries has no place in `floors`. The last boundary, to which it is
        # compared then, is no tie.
        is_tie = self.floors.take(places, mode="clip") == keys
        for draw in np.flatnonzero(is_tie).tolist():
            sums = self.cumulative_sums[int(law_numbers[draw])]
            outcomes[draw] = self._settle(sums, int(values[draw]), _SEARCH_BITS)
        return np.asarray(outcomes, dtype=np.int64)

    def _settle(self, sums: Sequence[int], value: int, bits: int) -> int:
        """Decide one draw: draw more bits until its cell contains no cumulative sum.

        Args:
            sums: Cumulative sums C_1..C_m of the law.
            value: The first bits of U/T, as an integer.
            bits: The number of these bits.
        """
        while True:
            # The outcomes at both ends of the cell. Everything is multiplied by 2^bits, so that the
            # numbers are integers. A sum at the end of the cell does not lie in it.
            cell_start = value * sums[-1]
            cell_end = (value + 1) * sums[-1] - 1
            first_outcome = bisect_right(sums, cell_start, key=lambda c: c << bits)
            last_outcome = bisect_right(sums, cell_end, key=lambda c: c << bits)
            if first_outcome == last_outcome:
                return first_outcome
            value = value << _WORD_BITS | int(self.source.draw_uint16(1)[0])
            bits += _WORD_BITS


def _scale_inner_sums(sums: Sequence[int]) -> list[int]:
    """Return ⌊C 2^48 / T⌋ of every cumulative sum C below the total T."""
    total = sums[-1]
    return [(c << _SEARCH_BITS) // total for c in sums if c < total]


def _cell_outcomes(sums: Sequence[int], bits: int) -> NDArray[np.int32]:
    """Compute the outcome of every cell of width T 2^-bits, or -1 if several are possible.

    Args:
        sums: C_1..C_m of a law.
        bits: The number of leading bits that select a cell.

    Returns:
        Shape (2^bits,).
    """
    outcomes = np.empty(1 << bits, dtype=np.int32)
    start = 0  # The cells below `start` have their outcome.
    previous_sum = 0
    for i, cumulative_sum in enumerate(sums):
        if cumulative_sum == previous_sum:
            continue
        # Cells below `boundary_cell` end at or before the cumulative sum. A cell that contains the
        # sum in its interior is left open.
        boundary_cell, remainder = divmod(cumulative_sum << bits, sums[-1])
        outcomes[start:boundary_cell] = i
        start = max(start, boundary_cell)
        if remainder and start == boundary_cell:
            outcomes[boundary_cell] = -1
            start = boundary_cell + 1
        previous_sum = cumulative_sum
    return outcomes
