"""DQL files are read as they were written, and damaged ones are refused."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from scipy import stats

from workbench.errors import CorruptFile, InvalidRequest
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace import stream as dql_stream
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream
from workbench.mechanisms.dyadic_laplace.stream import read_header, read_stream, write_stream

KEY = bytes(range(32))
MECHANISM = DyadicLaplace(0.5, 1.7)
X = np.linspace(-3, 3, 1001)


def resealed(data: bytes) -> bytes:
    """A forger's file: the checksum is right again."""
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little")


@pytest.mark.parametrize("code", elias.CODES)
def test_a_written_stream_is_read_as_the_same_numbers(code: elias.Code) -> None:
    data = write_stream(X, MECHANISM, KEY, code, local=InsecureLocalStream(1))
    noisy, header = read_stream(data, KEY, epsilon=0.5, ell=1.7)
    assert (header.mechanism, header.code, header.count) == (MECHANISM, code, X.size)
    assert len(data) == 88 + header.size + 36
    assert noisy.shape == X.shape
    assert stats.kstest((noisy - X) * 0.5, "laplace").pvalue > 1e-4
    assert np.array_equal(read_stream(data, KEY)[0], noisy)


def test_shapes_are_flattened_row_major_and_may_be_empty() -> None:
    grid = np.arange(6.0).reshape(2, 3) * 1000
    noisy, _ = read_stream(write_stream(grid, MECHANISM, KEY), KEY)
    assert np.abs(noisy - grid.reshape(-1)).max() < 100
    assert read_stream(write_stream([], MECHANISM, KEY), KEY)[0].shape == (0,)


def test_every_file_has_its_own_nonce_and_shared_randomness() -> None:
    one, two = (write_stream(X, MECHANISM, KEY, local=InsecureLocalStream(1)) for _ in range(2))
    assert read_header(one).nonce != read_header(two).nonce
    assert not np.array_equal(read_stream(one, KEY)[0], read_stream(two, KEY)[0])


def test_neither_key_nor_shared_randomness_is_in_the_file() -> None:
    header = read_header(write_stream(X, MECHANISM, KEY))
    data = write_stream(X, MECHANISM, KEY)
    assert KEY[:8] not in data
    assert header.key_check != read_header(data).key_check  # The check depends on the nonce.


def test_another_key_is_refused_before_decoding() -> None:
    data = write_stream(X, MECHANISM, KEY)
    with pytest.raises(InvalidRequest, match="key must be the one the stream was encoded with"):
        read_stream(data, KEY[::-1])
    with pytest.raises(InvalidRequest, match="key must be at least 16 random bytes"):
        read_stream(data, b"short")


@pytest.mark.parametrize(("name", "value"), [("epsilon", 0.6), ("ell", 1.8)])
def test_other_parameters_are_refused(name: str, value: float) -> None:
    data = write_stream(X, MECHANISM, KEY)
    with pytest.raises(
        InvalidRequest, match=rf"{name} must be the .* the stream was encoded with\. Got {value}\."
    ):
        read_stream(data, KEY, **{name: value})


def test_every_truncated_file_is_refused() -> None:
    data = write_stream(X[:50], MECHANISM, KEY)
    for size in range(len(data)):
        with pytest.raises(CorruptFile):
            read_stream(data[:size], KEY)
    with pytest.raises(CorruptFile):
        read_stream(data + b"\0", KEY)


def test_every_changed_byte_is_refused_with_and_without_a_new_checksum() -> None:
    data = write_stream(X[:50], MECHANISM, KEY)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 + at % 255
        with pytest.raises(CorruptFile):
            read_stream(bytes(changed), KEY)
        if at < len(data) - 4:
            with pytest.raises((CorruptFile, InvalidRequest)):
                read_stream(resealed(bytes(changed)), KEY)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"x", "not a DQL stream"),
        (8, b"\x02", "format version 2"),
        (9, b"\x02", "header is not valid: unknown code"),
        (10, b"\x01", "caps T at 1"),
        (12, b"\x01", "header is not valid"),
        (16, bytes(8), "header is not valid: epsilon must be"),
        (16, b"\xff" * 8, "header is not valid: epsilon must be"),
        (24, bytes(8), "header is not valid: ell must be"),
        (48, b"\xff" * 8, "sizes that do not add up"),
    ],
)
def test_hostile_headers_are_refused(at: int, value: bytes, message: str) -> None:
    data = write_stream(X[:50], MECHANISM, KEY)
    with pytest.raises(CorruptFile, match=message):
        read_header(resealed(data[:at] + value + data[at + len(value) :]))


def test_a_sealed_file_with_a_wrong_count_is_still_noticed() -> None:
    data = write_stream(X[:50], MECHANISM, KEY)
    header = read_header(data)
    for count in (49, 51, 2**62):
        body = data[:40] + count.to_bytes(8, "little") + data[48:-36]
        seal = dql_stream._digest(KEY, dql_stream._SEAL_LABEL, header.nonce, body)
        with pytest.raises(CorruptFile, match="bit stream is corrupt"):
            read_stream(resealed(body + seal + bytes(4)), KEY)


def test_the_layout_of_the_file_is_pinned() -> None:
    """Version 1 as documented, built by hand."""
    import hashlib
    import hmac
    import struct

    data = write_stream([0.25, -8.0], MECHANISM, KEY, "delta", local=InsecureLocalStream(3))
    nonce = data[56:72]

    def mac(label: bytes, message: bytes) -> bytes:
        inner = hmac.new(KEY, label + nonce, hashlib.sha256).digest()
        return hmac.new(inner, message, hashlib.sha256).digest()

    assert data[:8] == b"\x89DQL\r\n\x1a\n"
    size = len(data) - 124
    fields = struct.pack("<BBHIdddQQ", 1, 1, MECHANISM.max_level, 0, 0.5, 1.7, 2.0**24, 2, size)
    assert data[8:56] == fields
    assert data[72:88] == mac(b"workbench dql: key check, version 1\0", nonce)[:16]
    assert data[-36:-4] == mac(b"workbench dql: seal, version 1\0", data[:-36])
    assert data[-4:] == zlib.crc32(data[:-4]).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([np.nan], MECHANISM, KEY), "x.* must be a finite number"),
        ((X, MECHANISM, b""), "key must be at least 16"),
        ((X, MECHANISM, KEY, "zip"), "code must be"),
    ],
)
def test_invalid_data_keys_and_codes_are_refused(
    arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        write_stream(*arguments)
