"""Encode and decode signed integers by the Elias gamma and delta codes (Elias 1975).

The functions are vectorised, and a decoder checks every bit of its stream.

A signed integer m is sent as k = 2|m - 1/4| + 1/2 >= 1 (proof of Theorem 8 of the paper that
`dyadic_law` names): 0, 1, -1, 2, -2 become 1, 2, 3, 4, 5. With n = ⌊log2 k⌋
    gamma   n zeros, then the n + 1 bits of k                           2n + 1 bits
    delta   gamma code of n + 1, then the n low bits of k               n + 2⌊log2(n + 1)⌋ + 1 bits
Bits are packed from the most significant of each byte; the last byte is filled up with zeros.

    paper                           code
    M                               m
    2|M - 1/4| + 1/2                k, folded
    length of the description       length
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from workbench.data.plain import read_integer
from workbench.errors import CorruptFile, must
from workbench.exact.arrays import Integers, Words
from workbench.exact.objects import Pair
from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_integer_array

Code = Literal["gamma", "delta"]
CODES: Final[tuple[Code, ...]] = ("gamma", "delta")


# Fewer integers are decoded without Numba, because loading it would take longer.
_MIN_COMPILED_COUNT = 20_000
_TOO_LONG = -2  # The error code of a codeword that is too long.
_CUT = -1  # The error code of a stream that ends within a codeword.
_CORRUPT = "The bit stream is corrupt:"


def check_code(code: str) -> Code:
    """Return the code of a name.

    Args:
        code: The Elias code, "gamma" or "delta".

    Raises:
        InvalidRequest: If code is neither gamma nor delta.
    """
    if not isinstance(code, str) or code not in CODES:
        must("code", " or ".join(CODES), repr(code))
    if code == "gamma":
        return "gamma"
    return "delta"


def class_length(n: npt.ArrayLike, code: Code) -> Integers:
    """Compute the bits of the codeword of every k with ⌊log2 k⌋ = n.

    Any shape.

    Args:
        n: The class ⌊log2 k⌋ of the sent integer k, >= 0.
        code: The Elias code, "gamma" or "delta".
    """
    size = np.asarray(n, dtype=np.int64)
    return size + 1 + (size if code == "gamma" else 2 * _log2((size + 1).astype(np.uint64)))


def encode(m: npt.ArrayLike, code: Code) -> bytes:
    """Encode integers of any shape, in row-major order, as a stream of codewords.

    The last byte is filled up with zeros.

    Args:
        m: The integers to encode, |m| < 2^63, any shape.
        code: The Elias code, "gamma" or "delta".

    Raises:
        InvalidRequest: If m has an entry that is no 64-bit integer, or code is neither gamma nor
            delta.
    """
    check_code(code)
    k = _fold(m).reshape(-1)
    n = _log2(k)
    ends = np.cumsum(class_length(n, code))
    total = int(ends[-1]) if ends.size else 0
    stream_words = np.zeros(total // 64 + 2, dtype=np.uint64)
    if code == "gamma":
        _put_values(stream_words, k, ends)
    else:
        _put_values(stream_words, (n + 1).astype(np.uint64), ends - n)
        _put_values(stream_words, k - np.left_shift(np.uint64(1), n.astype(np.uint64)), ends)
    return stream_words.astype(">u8").tobytes()[: (total + 7) // 8]


def decode(data: bytes, count: int, code: Code) -> Integers:
    """Decode the integers of a stream. Shape (count,).

    A stream whose bits were changed within the code is a valid stream of other numbers: that takes
    a checksum to detect.

    Args:
        data: The bytes to read.
        count: The number of integers.
        code: The Elias code, "gamma" or "delta".

    Returns:
        The integers.

    Raises:
        CorruptFile: If a codeword is longer than any 64-bit integer needs, if the data end before
            `count` codewords or more than seven bits after them, or if the filling bits are not
            zero.
    """
    check_code(code)
    read_integer(count, "count", 0)
    if count > 8 * len(data):
        raise CorruptFile(f"{_CORRUPT} {len(data)} bytes cannot hold {count} integers.")
    stream_words = np.frombuffer(data + bytes(-len(data) % 8 + 16), dtype=">u8").astype(np.uint64)
    m = np.empty(count, dtype=np.int64)
    end, index = _loop(count >= _MIN_COMPILED_COUNT)(
        stream_words, 8 * len(data), m, code == "delta"
    )
    if end == _TOO_LONG:
        raise CorruptFile(f"{_CORRUPT} integer {index} of {count} is too long for 64 bits.")
    if end == _CUT:
        raise CorruptFile(f"{_CORRUPT} it ends within integer {index} of {count}.")
    if len(data) != (end + 7) // 8:
        raise CorruptFile(
            f"{_CORRUPT} {count} integers end in byte {(end + 7) // 8}, "
            f"the data in byte {len(data)}."
        )
    if end % 8 and data[-1] & ((1 << (8 - end % 8)) - 1):
        raise CorruptFile(f"{_CORRUPT} the filling bits after the last integer are not zero.")
    return m


@cache
def _loop(worthwhile: bool) -> Callable[[Words, int, Integers, bool], Pair]:
    """Return `_decode`, compiled if that is worth the time of loading Numba and Numba is there."""
    loop = _decode
    if worthwhile:
        with suppress(ImportError):
            from numba import njit

            loop = njit(cache=True)(_decode)
    return loop


def _decode(stream_words: Words, total: int, m: Integers, delta: bool) -> Pair:
    """Fill m with the integers of a stream of `total` bits, codeword after codeword.

    Args:
        stream_words: The stream, and another word of zeros.
        total: The number of bits of the stream.
        m: The array to fill.
        delta: Whether the code is delta, else gamma.

    Returns:
        (The bit after the last codeword, the number of integers), or (an error code, the number of
        the wrong integer).
    """

    def window(position: int) -> Any:
        """Return the 64 bits of the stream from `position` on, as a word."""
        # `position >> 6` is the number of the word, and `position & 63` the bit in this word. The
        # next word is shifted in two steps, because a shift by 64 is undefined.
        shift = np.uint64(position & 63)
        return stream_words[position >> 6] << shift | stream_words[
            (position >> 6) + 1
        ] >> np.uint64(1) >> (np.uint64(63) - shift)

    unit = np.uint64(1)
    position = 0
    for j in range(m.size):
        bits = window(position)
        zeros = 0
        while zeros < min(64, total - position) and not bits >> np.uint64(63 - zeros) & unit:
            zeros += 1
        # n is at most 63, and the delta code sends n + 1, which has at most 7 bits.
        if zeros > (6 if delta else 63):
            return _TOO_LONG, j + 1
        n: Any = zeros
        position += zeros + 1
        if delta and position <= total:
            # The first 2 zeros + 1 bits of the codeword are the gamma code of n + 1.
            n = np.int64(bits >> np.uint64(63 - 2 * zeros)) - 1
            position += zeros
            if n > 63:
                return _TOO_LONG, j + 1
        if position + n > total:
            return _CUT, j + 1
        k = unit << np.uint64(n) | window(position) >> unit >> np.uint64(63 - n)
        position += n
        half = np.int64(k >> unit)
        m[j] = -half if k & unit else half
    return position, m.size


def _fold(m: npt.ArrayLike) -> Words:
    """Compute k = 2|m - 1/4| + 1/2 in whole numbers: 2m for m > 0, 2|m| + 1 otherwise.

    Shape of m.
    """
    signed = read_integer_array(m)
    if signed.size and int(signed.min()) == -(2**63):
        must("m", "integers below 2^63 in size", -(2**63))
    return np.left_shift(np.abs(signed).astype(np.uint64), np.uint64(1)) + (signed <= 0)


def _log2(k: Words) -> Integers:
    """Compute ⌊log2 k⌋ of k >= 1 exactly. Shape of k."""
    _, exponents = np.frexp(k.astype(np.float64))
    # The guess is one too large if rounding reached a power of 2.
    guess = np.minimum(exponents.astype(np.int64) - 1, 63)
    return guess - (np.left_shift(np.uint64(1), guess.astype(np.uint64)) > k)


def _put_values(stream_words: Words, values: Words, ends: Integers) -> None:
    """Add each value to the zero bits that end before bit `ends`.

    The places are disjoint, so adding is the same as or-ing.
    """
    last = ends - 1
    word_index = last >> 6
    shift = (63 - (last & 63)).astype(np.uint64)
    np.add.at(stream_words, word_index, np.left_shift(values, shift))
    # The bits that do not fit into the word of the last bit belong to the word before it.
    spill = np.where(
        shift == 0, np.uint64(0), np.right_shift(values, (np.uint64(64) - shift) & np.uint64(63))
    )
    spilled = np.flatnonzero(spill)
    np.add.at(stream_words, word_index[spilled] - 1, spill[spilled])
