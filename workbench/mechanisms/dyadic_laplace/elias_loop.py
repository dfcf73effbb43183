"""The compiled loop that decodes Elias gamma and delta codes, codeword after codeword (see `elias`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["decode_loop"]

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def _window(words: Words, at: int) -> Any:
    """The 64 bits from bit `at` on."""
    word, shift = at >> 6, np.uint64(at & 63)
    window = words[word] << shift
    if shift:
        window |= words[word + 1] >> (np.uint64(64) - shift)
    return window


window: Callable[[Words, int], Any] = njit(cache=True, inline="always")(_window)


def _decode_loop(words: Words, total: int, m: Integers, delta: bool) -> int:
    """Fill m with the integers of a stream of `total` bits; the bit after the last one, or -1 where the stream holds
    less than that or a codeword that is no 64-bit integer's. words: the stream and a word of zeros more."""
    at, bit = 0, np.uint64(1)
    for j in range(m.size):
        if at >= total:
            return -1
        bits = window(words, at)
        if bits == 0:
            return -1
        zeros, top = 0, bits
        while top >> np.uint64(56) == 0:
            zeros += 8
            top <<= np.uint64(8)
        while top >> np.uint64(63) == 0:
            zeros += 1
            top <<= bit
        if delta:
            if zeros > 6:
                return -1
            n: Any = np.int64(bits >> np.uint64(63 - 2 * zeros)) - 1
            if n > 63:
                return -1
            at += 2 * zeros + 1
            k = bit << np.uint64(n)
            if n:
                k |= window(words, at) >> np.uint64(64 - n)
            at += n
        else:
            k = (bits if zeros < 32 else window(words, at + zeros)) >> np.uint64(63 - (2 if zeros < 32 else 1) * zeros)
            at += 2 * zeros + 1
        if at > total:
            return -1
        half = np.int64(k >> bit)
        m[j] = -half if k & bit else half
    return at


decode_loop: Callable[[Words, int, Integers, bool], int] = njit(cache=True)(_decode_loop)
