"""Test the Elias gamma and delta codes of integers, and that corrupt bit streams are refused.

An integer m is first mapped to k = 2 m if m > 0, and to k = 1 - 2 m otherwise: 0, 1, -1, 2 become
1, 2, 3, 4. The code is that of k. `spell_codeword` implements the textbook definition.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import CorruptFile, InvalidRequest
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace.elias import CODES

# Integers at the ends of binary lengths, of doubles and of 64-bit integers.
EDGES = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    2**31,
    -(2**31),
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63) + 1,
]
INTEGERS = st.one_of(
    st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from(EDGES)
)


def spell_codeword(m: int, code: str) -> str:
    """Return the codeword as Elias defines it, as a text of 0 and 1. Example: 2 -> 00100 (gamma)."""
    binary = format(2 * m if m > 0 else 2 * -m + 1, "b")
    if code == "gamma":
        return "0" * (len(binary) - 1) + binary
    size = format(len(binary), "b")
    return "0" * (len(size) - 1) + size + binary[1:]


def pack_bits(bits: str) -> bytes:
    """Convert a text of 0 and 1 to bytes, filled up with 0."""
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=150, deadline=None)
@given(st.lists(INTEGERS, max_size=40))
def test_streams_follow_the_definition_and_are_decoded(code: elias.Code, m: list[int]) -> None:
    words = [spell_codeword(integer, code) for integer in m]
    data = elias.encode(m, code)
    assert data == pack_bits("".join(words))
    assert elias.decode(data, len(m), code).tolist() == m


@pytest.mark.parametrize("code", CODES)
def test_every_single_integer_is_encoded_and_decoded(code: elias.Code) -> None:
    for m in [*range(-300, 301), *EDGES]:
        assert elias.decode(elias.encode(m, code), 1, code).tolist() == [m]


def test_zero_is_one_bit() -> None:
    assert elias.encode([0], "gamma") == elias.encode([0], "delta") == b"\x80"


def test_the_reference_spells_the_first_codewords_of_the_textbook() -> None:
    assert [spell_codeword(m, "gamma") for m in (0, 1, -1, 2)] == ["1", "010", "011", "00100"]
    assert [spell_codeword(m, "delta") for m in (0, 1, -1, 2)] == ["1", "0100", "0101", "01100"]


def test_the_length_of_a_codeword_follows_from_the_length_of_its_number() -> None:
    """For n = ⌊log2 k⌋ it is 2n + 1 (gamma) or n + 2 ⌊log2 (n + 1)⌋ + 1 (delta)."""
    assert elias.class_length([62, 63], "gamma").tolist() == [125, 127]
    assert elias.class_length([62, 63], "delta").tolist() == [62 + 2 * 5 + 1, 63 + 2 * 6 + 1]


@pytest.mark.parametrize("code", CODES)
def test_many_integers_are_decoded_and_truncation_is_refused(code: elias.Code) -> None:
    """500,000 integers of all sizes up to e^20."""
    rng = np.random.default_rng(5)
    sizes = np.exp(rng.uniform(low=0, high=20, size=500_000))
    m = np.rint(sizes * rng.choice([-1, 1], sizes.size)).astype(np.int64)
    data = elias.encode(m, code)
    assert np.array_equal(elias.decode(data, m.size, code), m)
    with pytest.raises(CorruptFile, match="ends within integer"):
        elias.decode(data[: len(data) // 2], m.size, code)


@pytest.mark.parametrize("code", CODES)
def test_every_truncation_and_extension_is_noticed(code: elias.Code) -> None:
    m = [5, -1000, 0, 2**40, 0, 0, -7]
    data = elias.encode(m, code)
    for size in range(len(data)):
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            elias.decode(data[:size], len(m), code)
    for extra_bytes in (b"\0", b"\x80", bytes(100)):
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            elias.decode(data + extra_bytes, len(m), code)
    for wrong_count in (0, 5, 8, 10**9):
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            elias.decode(data, wrong_count, code)


@pytest.mark.parametrize("code", CODES)
def test_one_changed_bit_gives_an_error_or_a_valid_stream_of_other_numbers(
    code: elias.Code,
) -> None:
    m = [5, -1000, 0, 2**40, 0, 0, -7]
    data = elias.encode(m, code)
    error_count = 0
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 128 >> bit % 8
        try:
            decoded = elias.decode(bytes(changed), len(m), code).tolist()
        except CorruptFile:
            error_count += 1
        else:
            assert decoded != m
            words = [spell_codeword(integer, code) for integer in decoded]
            assert pack_bits("".join(words)) == bytes(changed)
    assert error_count > 10


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (bytes(8) + b"\x80" + bytes(8), "gamma", "too long for 64 bits"),
        (bytes(400_000), "gamma", "too long for 64 bits"),
        (bytes(400_000), "delta", "too long for 64 bits"),
        # The first codeword claims a length of 255.
        (b"\x01" + b"\xff" * 40, "delta", "too long for 64 bits"),
        (pack_bits("000000" + format(65, "b") + "0" * 64), "delta", "too long for 64 bits"),
        (pack_bits("000000" + format(64, "b") + "1" * 50), "delta", "ends within integer 1 of 1"),
        (b"\x00", "gamma", "ends within integer 1 of 1"),
        (b"\xc0", "gamma", "filling bits"),
        (b"\x80\x00", "gamma", "end in byte 1, the data in byte 2"),
        (b"", "gamma", "0 bytes cannot hold 1"),
    ],
)
def test_corrupt_streams_are_refused(data: bytes, code: elias.Code, message: str) -> None:
    with pytest.raises(CorruptFile, match=message):
        elias.decode(data, 1, code)


def test_an_empty_stream_has_no_bytes() -> None:
    assert elias.encode([], "gamma") == b""
    assert elias.decode(b"", 0, "delta").shape == (0,)


@pytest.mark.parametrize("m", [0.5, 2**63, -(2**63), [True], "1"])
def test_invalid_integers_are_refused(m: object) -> None:
    with pytest.raises(InvalidRequest, match="m must be"):
        elias.encode(m, "gamma")


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="code must be gamma or delta"):
        elias.encode(1, "huffman")
    with pytest.raises(InvalidRequest, match="code must be gamma or delta"):
        elias.decode(b"", 0, "")


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="count must be an integer >= 0"):
        elias.decode(b"", -1, "gamma")


def decode_or_message(data: bytes, count: int, code: elias.Code) -> list[int] | str:
    """Decode a bit stream. Returns the integers, or the message of the error."""
    try:
        return elias.decode(data, count, code).tolist()
    except CorruptFile as error:
        return str(error)


@pytest.mark.parametrize("code", CODES)
def test_compiled_and_plain_loops_decode_the_same_integers(
    code: elias.Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They also give the same error messages. Each stream is given as (bytes, count)."""
    rng = np.random.default_rng(7)
    streams: list[tuple[bytes, int]] = []
    for _ in range(60):
        count = int(rng.integers(1, 60))
        m = rng.integers(-(2**63) + 1, 2**63, count) >> rng.integers(0, 64, count)
        data = elias.encode(m, code)
        broken = bytearray(data)
        broken[rng.integers(0, len(data))] ^= 1 << int(rng.integers(0, 8))
        streams += [
            (data, count),
            (data, count - 1),
            (data, count + 1),
            (data[:-1], count),
            (data + b"\0", count),
            (bytes(broken), count),
            (bytes(9) + rng.bytes(30), count),
            (rng.bytes(30), int(rng.integers(0, 50))),
        ]
    plain_answers = [decode_or_message(data, count, code) for data, count in streams]
    monkeypatch.setattr(elias, "_MIN_COMPILED_COUNT", 0)
    assert plain_answers == [decode_or_message(data, count, code) for data, count in streams]
    assert sum(isinstance(answer, str) for answer in plain_answers) > len(streams) // 3


def test_decoding_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elias, "_MIN_COMPILED_COUNT", 0)
    monkeypatch.setitem(sys.modules, "numba", None)
    elias._loop.cache_clear()
    assert elias.decode(elias.encode([3, -1], "gamma"), 2, "gamma").tolist() == [3, -1]
    elias._loop.cache_clear()
