"""Exact sampling from integer weights with integer randomness: no float decides anything.

For weights k_1..k_m with sum T the cumulative sums C_0 = 0 < ... < C_m = T cut [0, T). A draw is
a uniform real U in [0, T), of which only the leading bits are drawn, and the i with C_{i-1} <= U < C_i. The first n
bits v of U/T leave it in the cell [v, v+1) T / 2^n; where no C lies inside the cell the draw is settled, otherwise more
bits are taken. Hence the probabilities are exactly k_i / T, whatever T is, with no rejection:

    n <= 16    a table of 2^n entries for every law settles all but a share m / 2^n
    n = 48     a search among the integers ⌊C 2^n / T⌋, of several laws in one array, settles all but m / 2^n
    beyond     16 bits at a time, integers compared with integers

Many draws from one law of many outcomes come from an alias table (`workbench.exact.alias_table`), as exact.

Words come from the operating system in bulk (`Source`). Against timing attacks nothing is claimed.
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

_WORD, _DEPTH = 16, 48
_CHUNK = 1 << 16
_MANY = 1 << 12  # outcomes from which an alias table is faster, once it is made
_CELLS = 1 << 20  # of all tables together: what a processor's cache holds
_LAWS = 1 << _WORD


class Sampler:
    """Draws from one distribution, or from several on equally many outcomes, with exact probabilities k_i / T.

    laws: at most 65536; source: of randomness, the operating system by default. Raises InvalidRequest.
    """

    def __init__(
        self, laws: Distribution | Sequence[Distribution], source: Source | None = None
    ) -> None:
        self.laws = (laws,) if isinstance(laws, Distribution) else tuple(laws)
        if not 1 <= len(self.laws) <= _LAWS:
            must("laws", f"1 to {_LAWS} distributions", len(self.laws))
        self.source = source or Source()
        self.bits = max(8, min(_WORD, (_CELLS // len(self.laws)).bit_length() - 1))

    @cached_property
    def cumulative_sums(self) -> list[list[int]]:
        """C_1..C_m of every law."""
        return [list(accumulate(law.integers)) for law in self.laws]

    @cached_property
    def cell_outcomes(self) -> NDArray[np.int32]:
        """The outcomes of the cells of all laws."""
        return np.concatenate([_cell_outcomes(sums, self.bits) for sums in self.cumulative_sums])

    @cached_property
    def _boundaries(self) -> list[list[int]]:
        """⌊C 2^48 / T⌋ of every law."""
        return [
            [(c << _DEPTH) // sums[-1] for c in sums if c < sums[-1]]
            for sums in self.cumulative_sums
        ]

    @cached_property
    def floors(self) -> Words:
        """Those of all laws in one sorted array: the law's number in the leading bits."""
        numbered = [(law << _DEPTH) + c for law, part in enumerate(self._boundaries) for c in part]
        return np.array(numbered, dtype=np.uint64)

    @cached_property
    def boundary_offsets(self) -> Integers:
        """How many of them are those of earlier laws."""
        return np.array([0, *accumulate(map(len, self._boundaries))], dtype=np.int64)

    @cached_property
    def _aliases(self) -> AliasTable:
        return AliasTable(self.laws[0].integers, self.source)

    def draw(self, count: int) -> Integers:
        """Independent draws of 0..m-1 from the first law. count: >= 0. Shape (count,). Raises InvalidRequest."""
        drawn = np.empty(read_integer(count, "count", 0), dtype=np.int64)
        outcomes = len(self.laws[0].integers)
        aliases = _MANY < outcomes <= MAX_OUTCOMES and (
            "_aliases" in self.__dict__ or drawn.size >= outcomes
        )
        for start in range(0, drawn.size, _CHUNK):
            part = drawn[start : start + _CHUNK]
            part[:] = self._aliases.draw(part.size) if aliases else self._drawn(part.size)
        return drawn

    def draw_from(self, which: NDArray[np.integer]) -> NDArray[np.int32]:
        """One draw from each of the laws named. which: (n,) numbers of laws. Shape (n,)."""
        return self._drawn(which.size, which)

    def _drawn(self, count: int, which: NDArray[np.integer] | None = None) -> NDArray[np.int32]:
        """Draws by the cells of the laws named, of the first law without names."""
        words = self.source.draw_uint16(count)
        cells = words >> np.uint16(_WORD - self.bits)
        drawn = self.cell_outcomes.take(
            cells if which is None else (which.astype(np.int32) << self.bits) + cells
        )
        open_ = np.flatnonzero(drawn < 0)
        if open_.size:
            laws = (
                np.zeros(open_.size, dtype=np.int64)
                if which is None
                else which[open_].astype(np.int64)
            )
            drawn[open_] = self._settle_many(laws, words[open_])
        return drawn

    def _settle_many(self, which: Integers, words: NDArray[np.uint16]) -> Integers:
        """The outcomes of draws with these first words: 32 more bits each, and more where that is not enough."""
        value = words.astype(np.uint64)
        for next_words in self.source.draw_uint16(2 * words.size).reshape(2, -1):
            value = value << np.uint64(_WORD) | next_words
        key = which.astype(np.uint64) << np.uint64(_DEPTH) | value
        place = np.searchsorted(self.floors, key)
        outcome = place - self.boundary_offsets[which]
        for at in np.flatnonzero(self.floors.take(place, mode="clip") == key).tolist():
            outcome[at] = self._settle(self.cumulative_sums[int(which[at])], int(value[at]), _DEPTH)
        return np.asarray(outcome, dtype=np.int64)

    def _settle(self, sums: Sequence[int], value: int, bits: int) -> int:
        """The outcome of a draw whose first bits are `value`: more words until its cell meets one piece only."""
        while True:
            # of the pieces with the numbers value T / 2^bits and ((value + 1) T - 1) / 2^bits: the first C_i beyond
            ends = value * sums[-1], (value + 1) * sums[-1] - 1
            first, last = (bisect_right(sums, end, key=lambda c: c << bits) for end in ends)
            if first == last:
                return first
            value = value << _WORD | int(self.source.draw_uint16(1)[0])
            bits += _WORD


def _cell_outcomes(sums: Sequence[int], bits: int) -> NDArray[np.int32]:
    """The outcome of every cell of 2^-bits, -1 where it meets two pieces."""
    table = np.empty(1 << bits, dtype=np.int32)
    start, before = 0, 0  # cells below `start` are done; the last boundary
    for i, end in enumerate(sums):
        if end == before:
            continue
        whole, rest = divmod(end << bits, sums[-1])  # cells that end at or before the boundary
        table[start:whole] = i
        start = max(start, whole)
        if rest and start == whole:
            table[whole] = -1
            start = whole + 1
        before = end
    return table
