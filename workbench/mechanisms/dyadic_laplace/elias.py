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

import sys
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.plain import refuse_marked

__all__ = ["CODES", "Code", "check_code", "class_length", "decode", "encode", "length"]

Code = Literal["gamma", "delta"]
CODES: Final[tuple[Code, ...]] = ("gamma", "delta")

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_WORTHWHILE: Final = 100_000  # integers that numpy decodes in a tenth of the time that Numba takes to load
_WINDOW: Final = 1 << 21  # bits decoded at a time
_LONGEST: Final = 127  # bits of the longest codeword of a 64-bit k
_CORRUPT: Final = "The bit stream is corrupt:"


def check_code(code: str) -> Code:
    """The code of a name; raises InvalidRequest."""
    if not isinstance(code, str) or code not in CODES:
        InvalidRequest.must("code", " or ".join(CODES), repr(code))
    return "gamma" if code == "gamma" else "delta"


def class_length(n: npt.ArrayLike, code: Code) -> Integers:
    """Bits of the codeword of every k with ⌊log2 k⌋ = n >= 0. Any shape."""
    size = np.asarray(n, dtype=np.int64)
    if code == "gamma":
        return np.asarray(2 * size + 1)
    return np.asarray(size + 2 * _log2((size + 1).astype(np.uint64)) + 1)


def length(m: npt.ArrayLike, code: Code) -> Integers:
    """Bits of the codeword of every m, |m| < 2^63. Any shape; raises InvalidRequest for other integers and codes."""
    return class_length(_log2(_fold(m)), check_code(code))


def encode(m: npt.ArrayLike, code: Code) -> bytes:
    """The codewords of all m in row-major order, one after the other, filled up to whole bytes with zeros.

    m: integers, |m| < 2^63. Raises InvalidRequest.
    """
    check_code(code)
    k = _fold(m).reshape(-1)
    n = _log2(k)
    ends = np.cumsum(class_length(n, code))
    total = int(ends[-1]) if ends.size else 0
    words = np.zeros(total // 64 + 2, dtype=np.uint64)
    if code == "gamma":
        _put(words, k, ends)
    else:
        _put(words, (n + 1).astype(np.uint64), ends - n)
        top = np.left_shift(np.uint64(1), n.astype(np.uint64))
        _put(words, k - top, ends)
    return words.astype(">u8").tobytes()[: (total + 7) // 8]


def decode(data: bytes, count: int, code: Code) -> Integers:
    """The `count` integers whose codewords `data` holds; shape (count,).

    Raises CorruptFile when a codeword is longer than any 64-bit integer needs, when the data end before `count`
    codewords or more than seven bits after them, and when the filling bits are not zero. A stream whose bits were
    changed within the code is a valid stream of other numbers: that takes a checksum to detect.
    """
    check_code(code)
    if not isinstance(count, int) or count < 0:
        InvalidRequest.must("count", "an integer >= 0", count)
    if count > 8 * len(data):
        raise CorruptFile(f"{_CORRUPT} {len(data)} bytes cannot hold {count} integers.")
    if (clean := _decode_clean(data, count, code)) is not None:
        return clean
    starts, end = _starts(data, count, code)
    if len(data) != (end + 7) // 8:
        raise CorruptFile(f"{_CORRUPT} {count} integers end in byte {(end + 7) // 8}, the data in byte {len(data)}.")
    if end % 8 and data[-1] & ((1 << (8 - end % 8)) - 1):
        raise CorruptFile(f"{_CORRUPT} the filling bits after the last integer are not zero.")
    padded = data + bytes(-len(data) % 8 + 16)
    words = np.frombuffer(padded, dtype=">u8").astype(np.uint64)
    zeros = _leading_zeros(words, starts)
    if code == "gamma":
        k = _get(words, starts + zeros, zeros + 1)
    else:
        n = _get(words, starts + zeros, zeros + 1).astype(np.int64) - 1
        k = _get(words, starts + 2 * zeros + 1, n) | np.left_shift(np.uint64(1), n.astype(np.uint64))
    half = np.right_shift(k, np.uint64(1)).astype(np.int64)
    return np.where(k & np.uint64(1), -half, half)


_numpy_decoded = 0  # integers that this process decoded without the compiled loop


def _decode_clean(data: bytes, count: int, code: Code) -> Integers | None:
    """What the compiled loop makes of a valid stream; None for any other, and while too little is decoded to pay for
    loading it."""
    global _numpy_decoded
    if _numpy_decoded + count < _WORTHWHILE and "numba" not in sys.modules:
        _numpy_decoded += count
        return None
    try:
        from workbench.mechanisms.dyadic_laplace.elias_loop import decode_loop
    except ImportError:  # without Numba
        return None
    words = np.frombuffer(data + bytes(-len(data) % 8 + 16), dtype=">u8").astype(np.uint64)
    m = np.empty(count, dtype=np.int64)
    end = decode_loop(words, 8 * len(data), m, code == "delta")
    whole = end >= 0 and len(data) == (end + 7) // 8
    return m if whole and not (end % 8 and data[-1] & ((1 << (8 - end % 8)) - 1)) else None


def _fold(m: npt.ArrayLike) -> Words:
    """k = 2|m - 1/4| + 1/2 in whole numbers: 2m for m > 0, 2|m| + 1 otherwise."""
    refuse_marked(m, "m", "an integer or an array of integers")
    try:
        values = np.asarray(m)
    except ValueError:
        InvalidRequest.must("m", "an integer or an array of integers", m)
    if values.dtype.kind not in "iu" and values.size:
        InvalidRequest.must("m", "an integer or an array of integers", f"dtype {values.dtype}")
    if values.size and (int(values.max()) >= 2**63 or int(values.min()) <= -(2**63)):
        InvalidRequest.must("m", "integers below 2^63 in size", int(values.min()))
    signed = values.astype(np.int64)
    doubled = np.left_shift(np.abs(signed).astype(np.uint64), np.uint64(1))
    return doubled + (signed <= 0)


def _log2(k: Words) -> Integers:
    """⌊log2 k⌋ of k >= 1, exactly."""
    guess = np.frexp(k.astype(np.float64))[1].astype(np.int64) - 1  # one too large if rounding reached a power of 2
    guess = np.minimum(guess, 63)
    too_large = np.left_shift(np.uint64(1), guess.astype(np.uint64)) > k
    return np.asarray(guess - too_large)


def _put(words: Words, values: Words, ends: Integers) -> None:
    """Add each value to the zero bits that end before bit `ends`; values with disjoint places, so adding is or-ing."""
    last = ends - 1
    at, shift = last >> 6, (63 - (last & 63)).astype(np.uint64)
    np.add.at(words, at, np.left_shift(values, shift))
    spill = np.where(shift == 0, np.uint64(0), np.right_shift(values, (np.uint64(64) - shift) & np.uint64(63)))
    over = np.flatnonzero(spill)
    np.add.at(words, at[over] - 1, spill[over])


def _get(words: Words, starts: Integers, widths: Integers) -> Words:
    """The `widths` (0..64) bits from each start, as whole numbers."""
    at, shift = starts >> 6, (starts & 63).astype(np.uint64)
    high = np.left_shift(words[at], shift)
    low = np.where(shift == 0, np.uint64(0), np.right_shift(words[at + 1], (np.uint64(64) - shift) & np.uint64(63)))
    drop = (64 - widths).astype(np.uint64)
    return np.where(widths == 0, np.uint64(0), np.right_shift(high | low, drop & np.uint64(63)))


def _leading_zeros(words: Words, starts: Integers) -> Integers:
    """Zeros from each start before the next one; at most 63 in a valid stream."""
    window = _get(words, starts, np.full_like(starts, 64))
    return np.asarray(63 - _log2(np.maximum(window, np.uint64(1))))


def _starts(data: bytes, count: int, code: Code) -> tuple[Integers, int]:
    """The first bit of each of `count` codewords, and the first bit after the last.

    For a window of bits, where a codeword starting at each bit would end is found for all bits at once; then one walk
    from end to end.
    """
    total = 8 * len(data)
    heads: list[int] = []
    at = 0
    while len(heads) < count:
        base = at & ~7
        stop = min(total, base + _WINDOW)
        ends = _ends(data[base // 8 : stop // 8], code)
        limit = stop - base - (_LONGEST + 8 if stop < total else 0)
        here = at - base
        while here < limit and len(heads) < count:
            heads.append(base + here)
            here = ends[here]
        at = base + here
        if here > stop - base + _LONGEST:
            raise CorruptFile(f"{_CORRUPT} integer {len(heads)} of {count} is too long for 64 bits.")
        if at > total or (len(heads) < count and at == total):
            raise CorruptFile(f"{_CORRUPT} it ends within integer {min(len(heads) + (at <= total), count)} of {count}.")
    return np.asarray(heads, dtype=np.int64), at


def _ends(data: bytes, code: Code) -> list[int]:
    """For each bit of `data`, the bit after a codeword that starts there; beyond the data where none can."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8))
    size = bits.size
    here = np.arange(size, dtype=np.int64)
    never = 4 * (size + _LONGEST)
    next_one = np.minimum.accumulate(np.where(bits, here, size)[::-1])[::-1]
    zeros = next_one - here
    if code == "gamma":
        gamma_ends: list[int] = np.where(zeros > 63, never, next_one + zeros + 1).tolist()
        return gamma_ends
    window = np.zeros(size + 1, dtype=np.int64)  # the seven bits from each bit on, zeros beyond the data
    for i in range(7):
        window[: size - i] |= bits[i:].astype(np.int64) << (6 - i)
    width = np.minimum(zeros, 6)
    size_of = window[next_one] >> (6 - width)
    ends = next_one + width + size_of
    cut = (next_one == size) & (zeros <= 6)
    bad = (zeros > 6) | (size_of > 64)
    delta_ends: list[int] = np.where(cut, size + 1, np.where(bad, never, ends)).tolist()
    return delta_ends
