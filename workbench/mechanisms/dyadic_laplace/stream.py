"""Write and read DQL files: a header and the integers M₁, M₂, ... that the encoder sends.

A reader checks the key and the parameters in the header before it decodes an integer. DQL is the
dyadic quantized Laplace mechanism.

    offset  bytes  field         meaning (numbers little endian)
    0       8      magic         89 "DQL" 0D 0A 1A 0A, which text-mode transfers damage visibly
    8       1      version       1
    9       1      code          0 gamma, 1 delta
    10      2      max_level     the cap on T
    12      4      reserved      0
    16      8      epsilon       double
    24      8      ell           double
    32      8      reach         double
    40      8      count         scalars
    48      8      size          bytes of the payload
    56      16     nonce         of the shared stream, new for every file
    72      16     key check     HMAC-SHA256(check key, nonce), cut: tells another key from a
                                 damaged file
    88      size   payload       the code's bit stream
    ...     32     seal          HMAC-SHA256(seal key, all bytes before)
    ...     4      checksum      CRC-32 of all bytes before, so that damage shows without the key

The check key and the seal key are HMAC-SHA256(key, label + nonce) with labels of their own; they
say nothing of the key or of the shared stream, as long as the key is random (whoever holds a file
can try guessed keys on it). Everything in the file is public to the decoder, count and length
included. Order of the checks on reading: shape and checksum, key, seal, parameters, bit stream: a
wrong number is never returned.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from workbench.data.plain import read_floats
from workbench.errors import CorruptFile, InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.io.files import read_bytes
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.elias import CODES, Code
from workbench.mechanisms.dyadic_laplace.exact_integers import encode_exactly
from workbench.mechanisms.dyadic_laplace.randomness import NONCE_BYTES, LocalStream, SharedStream

_MAGIC = b"\x89DQL\r\n\x1a\n"
_VERSION = 1
_LAYOUT = struct.Struct(f"<8sBBHIdddQQ{NONCE_BYTES}s16s")
_SEAL_BYTES = 32  # The length of the seal, an HMAC-SHA256.
_CHECKSUM_BYTES = 4  # The length of the checksum, a CRC-32.
_MAX_FILE_BYTES = 1 << 30  # Larger files are refused; these hold about 10^9 scalars.
_CHECK_LABEL = b"workbench dql: key check, version 1\0"
_SEAL_LABEL = b"workbench dql: seal, version 1\0"


@dataclass(frozen=True)
class Header:
    """The header of a DQL file.

    It may be forged until `read_stream` has checked it with the key.

    Attributes:
        mechanism: The DQL mechanism with the parameters of the file.
        code: The Elias code of the payload.
        count: The number of encoded scalars.
        size: The number of bytes of the payload.
        nonce: The nonce of the shared stream.
        key_check: A hash that tells whether a key is the encoder's.
    """

    mechanism: DyadicLaplace
    code: Code
    count: int
    size: int
    nonce: bytes
    key_check: bytes


def _digest(key: bytes, label: bytes, nonce: bytes, message: bytes) -> bytes:
    """Return the HMAC of a message under a subkey of the label and the nonce, 32 bytes."""
    return hmac.new(
        hmac.new(key, label + nonce, hashlib.sha256).digest(), message, hashlib.sha256
    ).digest()


def _check_of(key: bytes, nonce: bytes) -> bytes:
    """Return the first 16 bytes of the hash by which a reader recognises the key."""
    return _digest(key, _CHECK_LABEL, nonce, nonce)[:16]


def write_stream(
    x: npt.ArrayLike,
    mechanism: DyadicLaplace,
    key: bytes,
    code: Code = "gamma",
    *,
    local: LocalStream | None = None,
    is_exact: bool = False,
) -> bytes:
    """Encode numbers into the bytes of a DQL file, under a new nonce.

    Numbers of any shape are taken in row-major order.

    Args:
        x: The real numbers to encode, any shape.
        mechanism: The DQL mechanism.
        key: The shared secret, at least 16 random bytes.
        code: The Elias code, "gamma" or "delta".
        local: A fresh LocalStream if None.
        is_exact: Whether the integers are drawn in exact arithmetic (`exact_integers`), with the
            randomness of the operating system. `local` is not used then.

    Returns:
        The bytes.

    Raises:
        InvalidRequest: If code is neither gamma nor delta, if the key is too short, if an entry of
            x is no finite number or has |εx| > reach, or if local is no LocalStream.
    """
    elias.check_code(code)
    shared_stream = SharedStream.fresh(key)
    values = read_floats(x, "x", column=True).reshape(-1)
    if is_exact:
        m = encode_exactly(mechanism, values, shared_stream)
    else:
        m = np.asarray(mechanism.encode(values, shared_stream, local), dtype=np.int64)
    payload = elias.encode(m, code)
    header = _LAYOUT.pack(
        _MAGIC,
        _VERSION,
        CODES.index(code),
        mechanism.max_level,
        0,
        mechanism.epsilon,
        mechanism.ell,
        mechanism.reach,
        m.size,
        len(payload),
        shared_stream.nonce,
        _check_of(key, shared_stream.nonce),
    )
    body = header + payload
    body += _digest(key, _SEAL_LABEL, shared_stream.nonce, body)
    return body + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little")


def load_bytes(path: Path) -> bytes:
    """Read the bytes of a DQL file, at most 2^30.

    Args:
        path: The path of the file.

    Raises:
        InvalidRequest: If the path is no regular file, or the file cannot be read.
        CorruptFile: If the file is larger than 2^30 bytes.
    """
    return read_bytes(path, _MAX_FILE_BYTES, "stream")


def read_header(data: bytes) -> Header:
    """Read the header of a DQL file whose shape and checksum are right; no key is needed.

    Args:
        data: The bytes to read.

    Raises:
        CorruptFile: If the bytes are no DQL file of this version.
    """
    if not isinstance(data, (bytes, bytearray)):
        must("data", "the bytes of a DQL stream", type(data).__name__)
    if data[: len(_MAGIC)] != _MAGIC:
        raise CorruptFile("The file is not a DQL stream: it does not begin with the DQL mark.")
    if len(data) < _LAYOUT.size + _SEAL_BYTES + _CHECKSUM_BYTES:
        raise CorruptFile(f"The DQL stream is cut short: {len(data)} bytes do not hold its header.")
    if zlib.crc32(data[:-_CHECKSUM_BYTES]) != int.from_bytes(data[-_CHECKSUM_BYTES:], "little"):
        raise CorruptFile("The DQL stream is damaged or cut short: its checksum does not match.")
    _, version, number, level, reserved_field, epsilon, ell, reach, count, size, nonce, check = (
        _LAYOUT.unpack_from(data)
    )
    if version != _VERSION:
        raise CorruptFile(
            f"The DQL stream has format version {version}; this program reads version {_VERSION}."
        )
    if (
        number >= len(CODES)
        or reserved_field
        or len(data) != _LAYOUT.size + size + _SEAL_BYTES + _CHECKSUM_BYTES
    ):
        raise CorruptFile(
            "The DQL stream's header is not valid: unknown code, or sizes that do not add up."
        )
    try:
        mechanism = DyadicLaplace(epsilon, ell, reach)
    except InvalidRequest as error:
        raise CorruptFile(f"The DQL stream's header is not valid: {error}") from None
    if mechanism.max_level != level:
        raise CorruptFile(
            f"The DQL stream caps T at {level}; its parameters mean {mechanism.max_level}."
        )
    return Header(
        mechanism=mechanism,
        code=CODES[number],
        count=count,
        size=size,
        nonce=nonce,
        key_check=check,
    )


def read_stream(
    data: bytes, key: bytes, *, epsilon: float | None = None, ell: float | None = None
) -> tuple[Vector, Header]:
    """Decode a DQL file.

    Args:
        data: The bytes to read.
        key: The key of the encoder.
        epsilon: The expected ε; a stream of another ε is refused. None to accept the (sealed)
            header.
        ell: The expected ℓ, likewise.

    Returns:
        (X̂, the header); X̂ has shape (count,).

    Raises:
        CorruptFile: If the file is damaged or altered.
        InvalidRequest: If the key or a parameter is not the one of the encoder.
    """
    header = read_header(data)
    shared_stream = SharedStream(key, header.nonce)
    check = _check_of(key, header.nonce)
    if not hmac.compare_digest(check, header.key_check):
        must(
            "key",
            f"the one the stream was encoded with (key check {header.key_check.hex()[:8]})",
            check.hex()[:8],
        )
    sealed_bytes = data[: -_SEAL_BYTES - _CHECKSUM_BYTES]
    seal = data[-_SEAL_BYTES - _CHECKSUM_BYTES : -_CHECKSUM_BYTES]
    if not hmac.compare_digest(_digest(key, _SEAL_LABEL, header.nonce, sealed_bytes), seal):
        raise CorruptFile(
            "The DQL stream was altered after it was encoded: its seal does not match."
        )
    for name, expected_value in (("epsilon", epsilon), ("ell", ell)):
        actual_value = getattr(header.mechanism, name)
        if expected_value is not None and float(expected_value) != actual_value:
            must(name, f"the {actual_value!r} the stream was encoded with", expected_value)
    m = elias.decode(data[_LAYOUT.size : _LAYOUT.size + header.size], header.count, header.code)
    return np.asarray(header.mechanism.decode(m, shared_stream)), header
