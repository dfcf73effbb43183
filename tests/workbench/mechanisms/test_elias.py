"""Elias codes follow their definition, and corrupt streams are refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import CorruptFile, InvalidRequest
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace.elias import CODES

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
]
EDGES += [-(2**63) + 1]
WIDE = st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from(EDGES))


def spelled(m: int, code: str) -> str:
    """The codeword as Elias defines it, a character a bit."""
    binary = format(2 * m if m > 0 else 2 * -m + 1, "b")
    if code == "gamma":
        return "0" * (len(binary) - 1) + binary
    size = format(len(binary), "b")
    return "0" * (len(size) - 1) + size + binary[1:]


def packed(bits: str) -> bytes:
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=150, deadline=None)
@given(st.lists(WIDE, max_size=40))
def test_streams_follow_the_definition_and_are_decoded(code: elias.Code, m: list[int]) -> None:
    words = [spelled(value, code) for value in m]
    data = elias.encode(m, code)
    assert data == packed("".join(words))
    assert elias.decode(data, len(m), code).tolist() == m


@pytest.mark.parametrize("code", CODES)
def test_every_single_integer_is_encoded_and_decoded(code: elias.Code) -> None:
    for m in [*range(-300, 301), *EDGES]:
        assert elias.decode(elias.encode(m, code), 1, code).tolist() == [m]


def test_zero_is_one_bit_and_the_first_codewords_are_those_of_the_textbook() -> None:
    assert elias.encode([0], "gamma") == elias.encode([0], "delta") == b"\x80"
    assert [spelled(m, "gamma") for m in (0, 1, -1, 2)] == ["1", "010", "011", "00100"]
    assert [spelled(m, "delta") for m in (0, 1, -1, 2)] == ["1", "0100", "0101", "01100"]
    assert elias.class_length([62, 63], "gamma").tolist() == [125, 127]
    assert elias.class_length([62, 63], "delta").tolist() == [73, 76]


@pytest.mark.parametrize("code", CODES)
def test_many_integers_are_decoded_and_truncation_is_refused(code: elias.Code) -> None:
    rng = np.random.default_rng(5)
    m = np.rint(np.exp(rng.uniform(0, 20, 500_000)) * rng.choice([-1, 1], 500_000)).astype(np.int64)
    data = elias.encode(m, code)
    assert np.array_equal(elias.decode(data, m.size, code), m)
    cut = len(data) // 2
    with pytest.raises(CorruptFile, match="ends within integer"):
        elias.decode(data[:cut], m.size, code)


@pytest.mark.parametrize("code", CODES)
def test_every_truncation_and_extension_is_noticed(code: elias.Code) -> None:
    m = [5, -1000, 0, 2**40, 0, 0, -7]
    data = elias.encode(m, code)
    for size in range(len(data)):
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            elias.decode(data[:size], len(m), code)
    for more in (b"\0", b"\x80", bytes(100)):
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            elias.decode(data + more, len(m), code)
    for count in (0, 5, 8, 10**9):
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            elias.decode(data, count, code)


@pytest.mark.parametrize("code", CODES)
def test_one_changed_bit_gives_an_error_or_a_valid_stream_of_other_numbers(
    code: elias.Code,
) -> None:
    m = [5, -1000, 0, 2**40, 0, 0, -7]
    data = elias.encode(m, code)
    errors = 0
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 128 >> bit % 8
        try:
            found = elias.decode(bytes(changed), len(m), code).tolist()
        except CorruptFile:
            errors += 1
        else:
            assert found != m
            assert packed("".join(spelled(value, code) for value in found)) == bytes(changed)
    assert errors > 10


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (bytes(8) + b"\x80" + bytes(8), "gamma", "too long for 64 bits"),
        (bytes(400_000), "gamma", "too long for 64 bits"),
        (bytes(400_000), "delta", "too long for 64 bits"),
        (
            b"\x01" + b"\xff" * 40,
            "delta",
            "too long for 64 bits",
        ),  # The first codeword claims a length of 255.
        (packed("000000" + format(65, "b") + "0" * 64), "delta", "too long for 64 bits"),
        (packed("000000" + format(64, "b") + "1" * 50), "delta", "ends within integer 1 of 1"),
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


def test_unknown_codes_and_invalid_integers_are_refused() -> None:
    for m in (0.5, 2**63, -(2**63), [True], "1"):
        with pytest.raises(InvalidRequest, match="m must be"):
            elias.encode(m, "gamma")
    for call in (lambda: elias.encode(1, "huffman"), lambda: elias.decode(b"", 0, "")):
        with pytest.raises(InvalidRequest, match="code must be gamma or delta"):
            call()
    with pytest.raises(InvalidRequest, match="count must be an integer >= 0"):
        elias.decode(b"", -1, "gamma")


def _answer(data: bytes, count: int, code: elias.Code) -> object:
    try:
        return elias.decode(data, count, code).tolist()
    except CorruptFile as error:
        return str(error)


@pytest.mark.parametrize("code", CODES)
def test_compiled_and_plain_loops_decode_the_same_integers(
    code: elias.Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    streams: list[tuple[bytes, int]] = []
    for _ in range(60):
        size = int(rng.integers(1, 60))
        m = rng.integers(-(2**63) + 1, 2**63, size) >> rng.integers(0, 64, size)
        data = elias.encode(m, code)
        broken = bytearray(data)
        broken[rng.integers(0, len(data))] ^= 1 << int(rng.integers(0, 8))
        streams += [
            (data, size),
            (data, size - 1),
            (data, size + 1),
            (data[:-1], size),
            (data + b"\0", size),
        ]
        streams += [
            (bytes(broken), size),
            (bytes(9) + rng.bytes(30), size),
            (rng.bytes(30), int(rng.integers(0, 50))),
        ]
    plain = [_answer(*stream, code) for stream in streams]
    monkeypatch.setattr(elias, "_MIN_COMPILED_COUNT", 0)
    assert plain == [_answer(*stream, code) for stream in streams]
    assert sum(isinstance(answer, str) for answer in plain) > len(streams) // 3


def test_decoding_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elias, "_MIN_COMPILED_COUNT", 0)
    monkeypatch.setitem(sys.modules, "numba", None)
    elias._loop.cache_clear()
    assert elias.decode(elias.encode([3, -1], "gamma"), 2, "gamma").tolist() == [3, -1]
    elias._loop.cache_clear()
