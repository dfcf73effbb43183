"""Draw random numbers from exact laws, in integer arithmetic, so that no float decides an outcome.

    draw_uint64,              independent words from the operating system. With a seed they come
    draw_uint16, draw_uint8   from PCG64, which is for experiments only
    draw_integers             uniform on 0..bound-1, by rejection
    draw_bernoulli            true with probability a/b: a 64-bit word is compared with ⌊2^64 a/b⌋,
                              and more bits are drawn only if the two are equal
    draw_discrete_laplace     Pr[y] ∝ e^{-|y| s/t} for integers s, t > 0 (Canonne, Kamath, Steinke
                              2020, Algorithm 2)

Samplers with floats are a known weakness of published mechanisms (Mironov 2012). These samplers use
integers only.
"""

from __future__ import annotations

import os
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import read_integer
from workbench.exact.arrays import Flags, Integers, Words

_WORD_COUNT = 1 << 64  # The number of different 64-bit words.
Word = TypeVar("Word", np.uint64, np.uint16, np.uint8)


class Source:
    """A stream of random words of the operating system.

    Args:
        insecure_seed: An integer >= 0 that makes the stream repeatable. This is for experiments
            only, because whoever knows the seed knows the noise.

    Raises:
        InvalidRequest: If insecure_seed is no integer >= 0.
    """

    def __init__(self, insecure_seed: int | None = None) -> None:
        self.generator = None
        if insecure_seed is not None:
            seed = read_integer(insecure_seed, "insecure_seed", 0)
            self.generator = np.random.default_rng(seed)

    def draw_uint64(self, count: int) -> Words:
        """Draw independent uniform 64-bit words. Shape (count,)."""
        return self._draw_words(np.uint64, count)

    def draw_uint16(self, count: int) -> NDArray[np.uint16]:
        """Draw independent uniform 16-bit words. Shape (count,)."""
        return self._draw_words(np.uint16, count)

    def draw_uint8(self, count: int) -> NDArray[np.uint8]:
        """Draw independent uniform bytes. Shape (count,)."""
        return self._draw_words(np.uint8, count)

    def _draw_words(self, dtype: type[Word], count: int) -> NDArray[Word]:
        """Draw independent uniform words of an unsigned type. Shape (count,)."""
        limits = np.iinfo(dtype)
        if self.generator is not None:
            return self.generator.integers(0, limits.max, count, dtype=dtype, endpoint=True)
        return np.frombuffer(os.urandom(limits.bits // 8 * count), dtype=dtype)

    def draw_integers(self, bound: int, count: int) -> Integers:
        """Draw uniform integers in 0..bound-1. Shape (count,).

        Args:
            bound: The number of possible values, 1 <= bound < 2^63.
        """
        # The number of accepted words, 0..largest_word, is a multiple of `bound`, so the remainders
        # are uniform.
        largest_word = np.uint64(_WORD_COUNT - _WORD_COUNT % bound - 1)
        draws = self.draw_uint64(count).copy()  # The words of `os.urandom` are read-only.
        rejects = np.flatnonzero(draws > largest_word)
        while rejects.size:
            draws[rejects] = self.draw_uint64(rejects.size)
            rejects = rejects[draws[rejects] > largest_word]
        return (draws % np.uint64(bound)).astype(np.int64)

    def is_uniform_below(self, value: int, bits: int, numerator: int, denominator: int) -> bool:
        """Decide whether a uniform U in [0, 1) is below numerator/denominator.

        Further bits of U are drawn until the answer is certain.

        Args:
            value: The first bits of U, as an integer.
            bits: The number of these bits. 16 more are drawn at a time.
            numerator: The numerator of the probability, >= 0.
            denominator: The denominator of the probability, > 0.

        Returns:
            Whether U < numerator/denominator.
        """
        while value * denominator < numerator << bits < (value + 1) * denominator:
            value = value << 16 | int(self.draw_uint16(1)[0])
            bits += 16
        return value * denominator < numerator << bits

    def draw_bernoulli(self, numerator: int, denominator: int, count: int) -> Flags:
        """Draw booleans that are true with probability numerator/denominator exactly.

        Args:
            numerator: The numerator of the probability, >= 0.
            denominator: The denominator of the probability, > 0 and >= numerator.
            count: The number of draws.

        Returns:
            Shape (count,).
        """
        threshold, remainder = divmod(numerator * _WORD_COUNT, denominator)
        if threshold >= _WORD_COUNT:
            return np.ones(count, dtype=bool)
        random_words = self.draw_uint64(count)
        flags = random_words < np.uint64(threshold)
        if not remainder:
            return flags
        ties = np.flatnonzero(random_words == np.uint64(threshold))
        if ties.size:
            flags[ties] = self.draw_bernoulli(remainder, denominator, ties.size)
        return flags

    def draw_discrete_laplace(self, s: int, t: int, count: int) -> Integers:
        """Draw integers y from the discrete Laplace law, Pr[y] ∝ e^{-|y| s/t}.

        A uniform u in 0..t-1 is accepted with probability e^{-u/t}, and v >= 0 is geometric, Pr[v]
        ∝ e^{-v}. So x = u + t v has Pr[x] ∝ e^{-x/t}, and |y| = ⌊x/s⌋ has Pr[|y|] ∝ e^{-|y| s/t}.
        The sign is uniform, and -0 is rejected, because 0 would count twice.

        Args:
            s: The numerator of the rate s/t, > 0.
            t: The denominator of the rate s/t, > 0 and less than 2^40.
            count: The number of draws.

        Returns:
            Shape (count,).
        """
        draws = np.zeros(count, dtype=np.int64)
        open_positions = np.arange(count)  # Positions of `draws` that have no value yet.
        while open_positions.size:
            u = self.draw_integers(t, open_positions.size)
            is_accepted = self._draw_exp_minus(u, t)
            candidates = open_positions[is_accepted]
            u = u[is_accepted]

            v = np.zeros(u.size, dtype=np.int64)
            running = np.arange(u.size)
            while running.size:
                ones = np.ones(running.size, dtype=np.int64)
                running = running[self._draw_exp_minus(ones, 1)]
                v[running] += 1

            distance = (u + t * v) // s
            is_negative = self.draw_integers(2, distance.size) == 1
            is_valid = ~(is_negative & (distance == 0))
            signed_draws = np.where(is_negative, -distance, distance)
            draws[candidates[is_valid]] = signed_draws[is_valid]
            open_positions = np.concatenate([open_positions[~is_accepted], candidates[~is_valid]])
        return draws

    def _draw_exp_minus(self, u: Integers, t: int) -> Flags:
        """Draw booleans that are true with probability e^{-u/t}, for 0 <= u <= t. Shape as u.

        Booleans with probability u/(t j) are drawn for j = 1, 2, ... until one is false. The result
        is true if this last j is odd (Canonne, Kamath, Steinke 2020, Algorithm 1).
        """
        is_odd = np.zeros(u.size, dtype=bool)
        running = np.arange(u.size)
        j = 0
        while running.size:
            j += 1
            is_odd[running] = j % 2 == 1
            running = running[self.draw_integers(t * j, running.size) < u[running]]
        return is_odd
