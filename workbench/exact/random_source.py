"""Random draws that follow exact rational laws: no float ever decides an outcome.

    words          independent 64-bit words, from the operating system (or, seeded, from PCG64: not for releases)
    below          uniform on 0..d-1, by rejection
    bernoulli      true with probability a/b: the next word against ⌊2^64 a/b⌋, more bits only on a tie
    discrete_laplace   Pr[y] ∝ e^{-|y| s/t} for integers s, t > 0 (Canonne, Kamath, Steinke 2020, Algorithm 2)

Samplers with floats are a known hole in published mechanisms (Mironov 2012); these have none to attack.
"""

from __future__ import annotations

import os
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import read_integer
from workbench.exact.arrays import Flags, Integers, Words

_WORD = 1 << 64
Word = TypeVar("Word", np.uint64, np.uint16, np.uint8)


class Source:
    """A stream of random words of the operating system.

    insecure_seed: an integer >= 0 makes it repeatable, for experiments only: who knows the seed knows the noise.
    Raises InvalidRequest.
    """

    def __init__(self, insecure_seed: int | None = None) -> None:
        seed = None if insecure_seed is None else read_integer(insecure_seed, "insecure_seed", 0)
        self.generator = None if seed is None else np.random.default_rng(seed)

    def draw_uint64(self, count: int) -> Words:
        """(count,) independent uniform 64-bit words."""
        return self._uniform(np.uint64, count)

    def draw_uint16(self, count: int) -> NDArray[np.uint16]:
        """(count,) independent uniform 16-bit words."""
        return self._uniform(np.uint16, count)

    def draw_uint8(self, count: int) -> NDArray[np.uint8]:
        """(count,) independent uniform bytes."""
        return self._uniform(np.uint8, count)

    def _uniform(self, kind: type[Word], count: int) -> NDArray[Word]:
        limits = np.iinfo(kind)
        if self.generator is not None:
            return self.generator.integers(0, limits.max, count, dtype=kind, endpoint=True)
        return np.frombuffer(os.urandom(limits.bits // 8 * count), dtype=kind)

    def draw_integers(self, bound: int, count: int) -> Integers:
        """(count,) uniform integers in 0..bound-1; 1 <= bound < 2^63."""
        limit = np.uint64(
            _WORD - _WORD % bound - 1
        )  # accept words up to here: a multiple of bound of them
        drawn = self.draw_uint64(count).copy()
        again = np.flatnonzero(drawn > limit)
        while again.size:
            drawn[again] = self.draw_uint64(again.size)
            again = again[drawn[again] > limit]
        return (drawn % np.uint64(bound)).astype(np.int64)

    def is_uniform_below(self, value: int, bits: int, numerator: int, denominator: int) -> bool:
        """Whether a uniform U is less than numerator/denominator: value: its first bits; 16 more until they decide."""
        while value * denominator < numerator << bits < (value + 1) * denominator:
            value, bits = value << 16 | int(self.draw_uint16(1)[0]), bits + 16
        return value * denominator < numerator << bits

    def draw_bernoulli(self, numerator: int, denominator: int, count: int) -> Flags:
        """(count,) booleans, true with probability numerator/denominator exactly. 0 <= numerator <= denominator."""
        cut, rest = divmod(numerator * _WORD, denominator)
        if cut >= _WORD:
            return np.ones(count, dtype=bool)
        words = self.draw_uint64(count)
        true = words < np.uint64(cut)
        ties = np.flatnonzero(words == np.uint64(cut)) if rest else np.zeros(0, dtype=np.intp)
        if ties.size:
            true[ties] = self.draw_bernoulli(rest, denominator, ties.size)
        return true

    def draw_discrete_laplace(self, s: int, t: int, count: int) -> Integers:
        """(count,) draws of Pr[y] ∝ e^{-|y| s/t}. s, t > 0, t < 2^40."""
        drawn = np.zeros(count, dtype=np.int64)
        open_ = np.arange(count)
        while open_.size:
            u = self.draw_integers(t, open_.size)
            kept = self._exp_minus(u, t)
            open_kept, u = open_[kept], u[kept]
            v = np.zeros(u.size, dtype=np.int64)
            going = np.arange(u.size)
            while going.size:
                going = going[self._exp_minus(np.ones(going.size, dtype=np.int64), 1)]
                v[going] += 1
            y = (u + t * v) // s
            negative = self.draw_integers(2, y.size) == 1
            good = ~(negative & (y == 0))
            drawn[open_kept[good]] = np.where(negative, -y, y)[good]
            open_ = np.concatenate([open_[~kept], open_kept[~good]])
        return drawn

    def _exp_minus(self, u: Integers, t: int) -> Flags:
        """True with probability e^{-u/t}, 0 <= u <= t: the parity of the first failure of Bernoulli(u/(t j))."""
        parity = np.zeros(u.size, dtype=bool)
        alive = np.arange(u.size)
        j = 0
        while alive.size:
            j += 1
            parity[alive] = j % 2 == 1
            alive = alive[self.draw_integers(t * j, alive.size) < u[alive]]
        return parity
