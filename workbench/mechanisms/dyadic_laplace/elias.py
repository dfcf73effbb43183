"""Signed Elias gamma and delta codes as real bit streams (Elias 1975), vectorised, each stream checked bit by bit.

A signed integer m is sent as k = 2|m - 1/4| + 1/2 >= 1 (proof of Theorem 8): 0, 1, -1, 2, -2 become 1, 2, 3, 4, 5.
With n = ⌊log2 k⌋
    gamma   n zeros, then the n + 1 bits of k                           2n + 1 bits
    delta   gamma code of n + 1, then the n low bits of k               n + 2⌊log2(n + 1)⌋ + 1 bits
Bits are packed from the most significant of each byte; the last byte is filled up with zeros.

    paper                           code
    M                               m
    2|M - 1/4| + 1/2                k, folded
    length of the description       length
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from workbench.errors import CorruptFile, must
from workbench.exact.arrays import Integers, Words
from workbench.exact.plain import whole_number
from workbench.mechanisms.dyadic_laplace.piecewise_linear import integers

Code = Literal["gamma", "delta"]
CODES: Final[tuple[Code, ...]] = ("gamma", "delta")


_CORRUPT = "The bit stream is corrupt:"


def check_code(code: str) -> Code:
    """The code of a name; raises InvalidRequest."""
    if not isinstance(code, str) or code not in CODES:
        must("code", " or ".join(CODES), repr(code))
    return "gamma" if code == "gamma" else "delta"


def class_length(n: npt.ArrayLike, code: Code) -> Integers:
    """Bits of the codeword of every k with ⌊log2 k⌋ = n >= 0. Any shape."""
    size = np.asarray(n, dtype=np.int64)
    return size + 1 + (size if code == "gamma" else 2 * _log2((size + 1).astype(np.uint64)))


def encode(m: npt.ArrayLike, code: Code) -> bytes:
    """The codewords of all m in row-major order, one after the other, filled up to whole bytes with zeros.

    m: integers, |m| < 2^63. Raises InvalidRequest.
    """
    check_code(code)
    k = _fold(m).reshape(-1)
    n = _log2(k)
    ends = np.cumsum(class_length(n, code))
    total = int(ends[-1]) if ends.size else 0
    bits = np.zeros(total, dtype=np.uint8)
    if code == "gamma":
        _put(bits, k, ends, n + 1)
    else:
        prefix = (n + 1).astype(np.uint64)
        _put(bits, prefix, ends - n, _log2(prefix) + 1)
        _put(bits, k, ends, n)
    return np.packbits(bits).tobytes()


def decode(data: bytes, count: int, code: Code) -> Integers:
    """The `count` integers whose codewords `data` holds; shape (count,).

    Raises CorruptFile when a codeword is longer than any 64-bit integer needs, when the data end before `count`
    codewords or more than seven bits after them, and when the filling bits are not zero. A stream whose bits were
    changed within the code is a valid stream of other numbers: that takes a checksum to detect.
    """
    check_code(code)
    whole_number(count, "count", 0)
    if count > 8 * len(data):
        raise CorruptFile(f"{_CORRUPT} {len(data)} bytes cannot hold {count} integers.")
    bits, most = bin(int.from_bytes(b"\1" + data))[3:], 6 if code == "delta" else 63  # zeros of a codeword
    m, end = [], 0
    for at in range(1, count + 1):
        leading = bits.find("1", end, end + most + 1)
        if leading < 0 and len(bits) - end > most:
            raise CorruptFile(f"{_CORRUPT} integer {at} of {count} is too long for 64 bits.")
        n, start = leading - end, leading + 1
        if leading >= 0 and code == "delta":
            start += n
            n = int(bits[leading:start], 2) - 1
            if n > 63:
                raise CorruptFile(f"{_CORRUPT} integer {at} of {count} is too long for 64 bits.")
        end = start + n
        if leading < 0 or end > len(bits):
            raise CorruptFile(f"{_CORRUPT} it ends within integer {at} of {count}.")
        k = int("1" + bits[start:end], 2)
        m.append(-(k >> 1) if k & 1 else k >> 1)
    if len(data) != (end + 7) // 8:
        raise CorruptFile(f"{_CORRUPT} {count} integers end in byte {(end + 7) // 8}, the data in byte {len(data)}.")
    if end % 8 and data[-1] & ((1 << (8 - end % 8)) - 1):
        raise CorruptFile(f"{_CORRUPT} the filling bits after the last integer are not zero.")
    return np.array(m, dtype=np.int64)


def _fold(m: npt.ArrayLike) -> Words:
    """k = 2|m - 1/4| + 1/2 in whole numbers: 2m for m > 0, 2|m| + 1 otherwise."""
    signed = integers(m)
    if signed.size and int(signed.min()) == -(2**63):
        must("m", "integers below 2^63 in size", -(2**63))
    return np.left_shift(np.abs(signed).astype(np.uint64), np.uint64(1)) + (signed <= 0)


def _log2(k: Words) -> Integers:
    """⌊log2 k⌋ of k >= 1, exactly."""
    # one too large if rounding reached a power of 2
    guess = np.minimum(np.frexp(k.astype(np.float64))[1].astype(np.int64) - 1, 63)
    return guess - (np.left_shift(np.uint64(1), guess.astype(np.uint64)) > k)


def _put(bits: NDArray[np.uint8], values: Words, ends: Integers, lengths: Integers) -> None:
    """Write the lowest bits of each value, so many, before the places `ends`."""
    for place in range(int(lengths.max(initial=0))):
        at = np.flatnonzero(lengths > place)
        bits[ends[at] - 1 - place] = values[at] >> np.uint64(place) & np.uint64(1)
