"""Sums of exactly K powers a, a², ..., a^p, repetition allowed: the nearest one below and above a target.

Meeting in the middle: list every multiset of the first half of the powers and every multiset of the second half, with
its size and its sum; for each size of the first part, look its complement up in the sorted sums of the second part.
Exact up to rounding, and far below the C(K + p, p) multisets of the whole.

| here            | meaning in the chain bound                                      |
|-----------------|-----------------------------------------------------------------|
| a^i             | what a column cut at row i + 1 adds to the chain loss           |
| counts          | how many columns are cut at rows 2, 3, ..., p + 1               |
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.oracles.closed_form import OutsideDomain
from solvers.arrays import Integers, Vector

ROWS = 2_000_000
"""The largest list of half-multisets that is built."""


@dataclass(frozen=True, eq=False)
class _Half:
    """Multisets of some powers, by size and in order of their sums.

    Attributes:
        sums: size -> the sums, rising.
        last, rest: size -> the last power of each, and where the others stand among those of one size less.
    """

    sums: list[Vector]
    last: list[NDArray[np.int32]]
    rest: list[NDArray[np.int32]]

    def counts(self, size: int, at: int, powers: int) -> Integers:
        """How often each power is in one of them."""
        counts = np.zeros(powers, dtype=np.int64)
        for k in range(size, 0, -1):
            counts[self.last[k][at]] += 1
            at = int(self.rest[k][at])
        return counts


def _half(powers: Vector, most: int) -> _Half:
    """Every multiset of k powers is one of k - 1 with a power that is not before its last; none is copied."""
    none = np.zeros(1, dtype=np.int32)
    half = _Half([np.zeros(1)], [none], [none])
    for _ in range(most):
        free = len(powers) - half.last[-1]
        rest = np.repeat(np.arange(len(free), dtype=np.int32), free)
        last = np.arange(len(rest), dtype=np.int32) - np.repeat(np.cumsum(free) - free, free) + half.last[-1][rest]
        sums = half.sums[-1][rest] + powers[last]
        order = np.argsort(sums, kind="stable")
        half.sums.append(sums[order])
        half.last.append(last[order].astype(np.int32))
        half.rest.append(rest[order])
    return half


class DigitSums:
    """All sums of at most `most` of the powers a^1..a^p; raises OutsideDomain when the lists would be too long."""

    def __init__(self, a: float, p: int, most: int) -> None:
        split = p // 2
        longest = math.comb(most + p - split, most)
        if longest > ROWS:
            raise OutsideDomain(f"the chain search needs lists of at most {ROWS} entries. Got {longest}.")
        powers: Vector = np.power(a, np.arange(1, p + 1))
        self._parts = split, p - split
        self._head = _half(powers[:split], most)
        self._tail = _half(powers[split:], most)

    def nearest(self, size: int, target: float) -> list[Integers]:
        """Counts, shape (p,), of the largest sum <= target and of the least sum > target among multisets of `size`."""
        best: dict[str, tuple[float, int, int, int]] = {}
        for head_size in range(size + 1):
            heads, tails = self._head.sums[head_size], self._tail.sums[size - head_size]
            if len(heads) == 0 or len(tails) == 0:
                continue
            above = np.searchsorted(tails, target - heads, side="right")
            low = np.where(above > 0, heads + tails[np.maximum(above - 1, 0)], -np.inf)
            high = np.where(above < len(tails), heads + tails[np.minimum(above, len(tails) - 1)], np.inf)
            i, k = int(low.argmax()), int(high.argmin())
            if np.isfinite(low[i]) and ("low" not in best or low[i] > best["low"][0]):
                best["low"] = (float(low[i]), head_size, i, int(above[i]) - 1)
            if np.isfinite(high[k]) and ("high" not in best or high[k] < best["high"][0]):
                best["high"] = (float(high[k]), head_size, k, int(above[k]))
        first, second = self._parts
        return [
            np.concatenate([self._head.counts(head, i, first), self._tail.counts(size - head, k, second)])
            for _, head, i, k in best.values()
        ]
