"""Test files of the dyadic quantized Laplace mechanism (DQL): they round-trip, and damage is found.

A file consists of a header (88 bytes), the bit stream, a seal (32 bytes) and a CRC-32 (4 bytes).
The seal is a keyed hash of all bytes before it, so only the holder of the key can change the file.
`test_the_layout_of_the_file_is_pinned` shows every field.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
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
MECHANISM = DyadicLaplace(epsilon=0.5, ell=1.7)
X = np.linspace(-3, 3, 1001)
HEADER_SIZE = 88
SEAL_SIZE = 32
CHECKSUM_SIZE = 4


def make_checksum_valid(data: bytes) -> bytes:
    """Replace the checksum at the end of a changed file, as a forger without the key could do."""
    body = data[:-CHECKSUM_SIZE]
    return body + zlib.crc32(body).to_bytes(CHECKSUM_SIZE, "little")


@pytest.mark.parametrize("code", elias.CODES)
def test_a_written_stream_is_decoded_with_laplace_noise(code: elias.Code) -> None:
    data = write_stream(X, MECHANISM, KEY, code, local=InsecureLocalStream(1))
    noisy, header = read_stream(data, KEY, epsilon=0.5, ell=1.7)
    assert (header.mechanism, header.code, header.count) == (MECHANISM, code, X.size)
    assert len(data) == HEADER_SIZE + header.size + SEAL_SIZE + CHECKSUM_SIZE
    assert noisy.shape == X.shape
    assert stats.kstest((noisy - X) * 0.5, "laplace").pvalue > 1e-4
    assert np.array_equal(read_stream(data, KEY)[0], noisy)


def test_shapes_are_flattened_row_major_and_may_be_empty() -> None:
    grid = np.arange(6.0).reshape(2, 3) * 1000
    noisy, _ = read_stream(write_stream(grid, MECHANISM, KEY), KEY)
    assert np.abs(noisy - grid.reshape(-1)).max() < 100
    assert read_stream(write_stream([], MECHANISM, KEY), KEY)[0].shape == (0,)


def test_every_file_has_its_own_nonce_and_shared_randomness() -> None:
    first = write_stream(X, MECHANISM, KEY, local=InsecureLocalStream(1))
    second = write_stream(X, MECHANISM, KEY, local=InsecureLocalStream(1))
    assert read_header(first).nonce != read_header(second).nonce
    assert not np.array_equal(read_stream(first, KEY)[0], read_stream(second, KEY)[0])


def test_the_file_does_not_contain_the_key() -> None:
    assert KEY[:8] not in write_stream(X, MECHANISM, KEY)


def test_files_of_one_key_cannot_be_linked_by_their_key_check() -> None:
    first = read_header(write_stream(X, MECHANISM, KEY))
    second = read_header(write_stream(X, MECHANISM, KEY))
    assert first.key_check != second.key_check  # The check depends on the nonce.


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
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1 + index % 255
        with pytest.raises(CorruptFile):
            read_stream(bytes(changed), KEY)
        if index < len(data) - CHECKSUM_SIZE:
            with pytest.raises((CorruptFile, InvalidRequest)):
                read_stream(make_checksum_valid(bytes(changed)), KEY)


@pytest.mark.parametrize(
    ("offset", "field", "message"),
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
def test_hostile_headers_are_refused(offset: int, field: bytes, message: str) -> None:
    data = write_stream(X[:50], MECHANISM, KEY)
    changed = data[:offset] + field + data[offset + len(field) :]
    with pytest.raises(CorruptFile, match=message):
        read_header(make_checksum_valid(changed))


@pytest.mark.parametrize("count", [49, 51, 2**62])
def test_a_wrong_count_of_numbers_is_noticed_even_if_the_seal_is_valid(count: int) -> None:
    data = write_stream(X[:50], MECHANISM, KEY)
    header = read_header(data)
    # The count is in the bytes 40 to 47 of the header.
    end = len(data) - SEAL_SIZE - CHECKSUM_SIZE
    body = data[:40] + count.to_bytes(8, "little") + data[48:end]
    seal = dql_stream._digest(KEY, dql_stream._SEAL_LABEL, header.nonce, body)
    with pytest.raises(CorruptFile, match="bit stream is corrupt"):
        read_stream(make_checksum_valid(body + seal + bytes(CHECKSUM_SIZE)), KEY)


def test_the_layout_of_the_file_is_pinned() -> None:
    """The fields of version 1, as `workbench.mechanisms.dyadic_laplace.stream` documents them."""
    data = write_stream([0.25, -8.0], MECHANISM, KEY, "delta", local=InsecureLocalStream(3))
    nonce = data[56:72]

    def compute_keyed_hash(label: bytes, message: bytes) -> bytes:
        """Return the HMAC of a message, with the key that belongs to the label and the nonce."""
        derived_key = hmac.new(KEY, label + nonce, hashlib.sha256).digest()
        return hmac.new(derived_key, message, hashlib.sha256).digest()

    assert data[:8] == b"\x89DQL\r\n\x1a\n"
    bit_stream_size = len(data) - HEADER_SIZE - SEAL_SIZE - CHECKSUM_SIZE
    # Version, code, max_level, flags, ε, ℓ, reach, count of numbers, size of the bit stream.
    fields = (1, 1, MECHANISM.max_level, 0, 0.5, 1.7, 2.0**24, 2, bit_stream_size)
    assert data[8:56] == struct.pack("<BBHIdddQQ", *fields)
    key_check = compute_keyed_hash(b"workbench dql: key check, version 1\0", nonce)[:16]
    assert data[72:HEADER_SIZE] == key_check
    body = data[: HEADER_SIZE + bit_stream_size]
    seal = compute_keyed_hash(b"workbench dql: seal, version 1\0", body)
    assert data[len(body) : -CHECKSUM_SIZE] == seal
    assert data == make_checksum_valid(data)


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
