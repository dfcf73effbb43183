"""Exact sampling from integer weights with integer randomness: no float decides anything.

For weights k_1..k_m with sum T the cumulative sums C_0 = 0 < ... < C_m = T cut [0, T). A draw is
a uniform real U in [0, T), of which only the leading bits are drawn, and the i with C_{i-1} <= U < C_i. The first n
bits v of U/T leave it in the cell [v, v+1) T / 2^n; where no C lies inside the cell the draw is settled, otherwise more
bits are taken. Hence the probabilities are exactly k_i / T, whatever T is, with no rejection:

    n = 16     a table of 2^16 entries settles all but a share m / 2^16
    n = 64     a binary search among the integers ⌊C 2^64 / T⌋ settles all but a share m / 2^64
    beyond     16 bits at a time, integers compared with integers

Words come from the operating system (`os.urandom`) in bulk. Against timing attacks nothing is claimed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.piecewise import PiecewiseAffine
from workbench.numbers import exact

__all__ = ["InsecureSampler", "Sampler", "insecure_words", "sample", "system_words"]

Words = Callable[[int], NDArray[np.uint16]]
_WORD = 16
_CHUNK = 1 << 20


def system_words(count: int) -> NDArray[np.uint16]:
    """Uniform 16-bit words of OS entropy. Shape (count,)."""
    return np.frombuffer(os.urandom(2 * count), dtype=np.uint16)


def insecure_words(seed: int) -> Words:
    """Words of a seeded generator, for experiments that must repeat: anybody who knows the seed knows the noise."""
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(0, 1 << _WORD, size=count, dtype=np.uint16)


class Sampler:
    """Draws from a distribution with exact probabilities k_i / T.

    masses: the distribution. words: where uniform 16-bit words come from, the operating system by default.
    """

    def __init__(self, masses: Masses | Sequence[int], words: Words = system_words) -> None:
        self.masses = masses if isinstance(masses, Masses) else Masses(masses)
        self.words = words
        self.total = self.masses.total
        sums, running = [], 0
        for k in self.masses.integers:
            running += k
            sums.append(running)
        self.sums = sums  # C_1..C_m
        self.table = _table(sums, self.total)
        self.floors = np.array([(c << 64) // self.total for c in sums if c < self.total], dtype=np.uint64)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Independent draws of 0..m-1. count: >= 0. Shape (count,). Raises InvalidRequest."""
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
            InvalidRequest.must("count", "an integer >= 0", count)
        found = np.empty(int(count), dtype=np.int64)
        for start in range(0, int(count), _CHUNK):
            words = self.words(min(_CHUNK, int(count) - start))
            part = self.table[words]
            open_ = np.flatnonzero(part < 0)
            if open_.size:
                part[open_] = self._settle_many(words[open_])
            found[start : start + part.size] = part
        return found

    def _settle_many(self, words: NDArray[np.uint16]) -> NDArray[np.int64]:
        """The outcomes of draws with these first words: 48 more bits each, and more where that is not enough."""
        value = words.astype(np.uint64)
        for more in self.words(3 * words.size).reshape(3, -1):
            value = value << np.uint64(_WORD) | more
        found = np.searchsorted(self.floors, value, side="left")
        for at in np.flatnonzero(np.searchsorted(self.floors, value, side="right") != found).tolist():
            found[at] = self._settle(int(value[at]), 64)
        return found

    def _settle(self, value: int, bits: int) -> int:
        """The outcome of a draw whose first bits are `value`: more words until its cell meets one piece only."""
        while True:
            first = _locate(self.sums, value * self.total, bits)
            last = _locate(self.sums, (value + 1) * self.total - 1, bits)
            if first == last:
                return first
            value = value << _WORD | int(self.words(1)[0])
            bits += _WORD


class InsecureSampler(Sampler):
    """A `Sampler` fed by a seeded generator. Repeatable, and therefore not private: for experiments only."""

    def __init__(self, masses: Masses | Sequence[int], seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            InvalidRequest.must("seed", "an integer >= 0", seed)
        super().__init__(masses, insecure_words(int(seed)))


def sample(mechanism: Any, count: int, *, answer: Any = None, insecure_seed: int | None = None) -> NDArray[np.int64]:
    """Draws from a mechanism, exactly distributed, with OS entropy.

    Args:
        mechanism: AdditiveNoise, Masses, a Channel or ChannelPairs, PiecewiseAffine, or a Certificate of one.
        count: of draws.
        answer: the true answer to publish; needed by a channel (a row number) and on real inputs (x). Noise without one
            gives η itself, and with one (an integer, or a tuple for a vector query) answer + η in the group.
        insecure_seed: draw from a seeded generator instead, for experiments only.

    Returns:
        Shape (count,) of row-major positions; (count, k) for noise on a group of k > 1 factors.

    Raises:
        InvalidRequest.
    """
    found = getattr(mechanism, "mechanism", mechanism)
    found = getattr(found, "channel", found)
    if isinstance(found, Channel):
        top = len(found.rows) - 1
        if isinstance(answer, bool) or not isinstance(answer, (int, np.integer)) or not 0 <= answer <= top:
            InvalidRequest.must("answer", f"a row of the channel, an integer in 0..{top}", answer)
        masses = found.rows[int(answer)]
    elif isinstance(found, PiecewiseAffine):
        if answer is None:
            InvalidRequest.must("answer", "the input x of a mechanism on real inputs", answer)
        masses = found.law(exact(answer, "answer") if isinstance(answer, str) else answer)
    elif isinstance(found, AdditiveNoise):
        masses = found.masses
    elif isinstance(found, Masses):
        masses = found
    else:
        InvalidRequest.must("mechanism", "additive noise or a channel", type(found).__name__)
    sampler = Sampler(masses) if insecure_seed is None else InsecureSampler(masses, insecure_seed)
    draws = sampler.draw(count)
    if not isinstance(found, AdditiveNoise):
        return draws
    sizes = found.question.sizes
    origin = _point(answer, sizes)
    points = np.stack(np.unravel_index(draws, sizes), axis=-1)
    moved = (points + np.array(origin)) % np.array(sizes)
    return np.asarray(moved[:, 0] if len(sizes) == 1 else moved, dtype=np.int64)


def _point(answer: Any, sizes: tuple[int, ...]) -> tuple[int, ...]:
    if answer is None:
        return (0,) * len(sizes)
    parts = tuple(answer) if isinstance(answer, (tuple, list, np.ndarray)) else (answer,)
    whole = all(isinstance(part, (int, np.integer)) and not isinstance(part, bool) for part in parts)
    if len(parts) != len(sizes) or not whole or not all(0 <= p < s for p, s in zip(parts, sizes, strict=True)):
        InvalidRequest.must("answer", f"an answer of the query, in 0..{sizes[0] - 1}" if len(sizes) == 1 else
                            f"{len(sizes)} integers, each in 0..size-1 of {sizes}", answer)  # fmt: skip
    return tuple(int(part) for part in parts)


def _table(sums: Sequence[int], total: int) -> NDArray[np.int32]:
    """The outcome of every first word, -1 where its cell meets two pieces."""
    table = np.empty(1 << _WORD, dtype=np.int32)
    start, before = 0, 0  # words below `start` are done; the last boundary
    for i, end in enumerate(sums):
        if end == before:
            continue
        whole, rest = divmod(end << _WORD, total)  # words whose cell ends at or before the boundary
        table[start:whole] = i
        start = max(start, whole)
        if rest and start == whole:
            table[whole] = -1
            start = whole + 1
        before = end
    return table


def _locate(sums: Sequence[int], scaled: int, bits: int) -> int:
    """The piece that holds the number scaled / 2^bits, 0 <= scaled / 2^bits < T: the first C_i > it."""
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] << bits > scaled:
            high = middle
        else:
            low = middle + 1
    return low
