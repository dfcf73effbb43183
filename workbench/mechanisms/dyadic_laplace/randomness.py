"""Draw the random words of dyadic quantized Laplace noise (DQL), for encoder and decoder.

Both know the shared stream; only the encoder has the local stream. Algorithms, theorems and
appendices are those of Communication-Efficient Laplace Mechanism for Differential Privacy via
Random Quantization. T is the level and U the shared uniform number. The integer M̃ and the uniform
number W are the encoder's own (`dyadic_laplace`).

    stream                known to            carries                       equation
    ------                --------            -------                       --------
    SharedStream          encoder, decoder    T and U of Algorithm 1        steps 2-3, and 2-3 of
                                                                            Algorithm 2
    LocalStream           encoder only        M̃ (two words) and W (one)     steps 4-11
    InsecureLocalStream   whoever has a seed  the same, repeatable          for experiments and
                                                                            tests only

The types keep the two apart: a mechanism takes a `SharedStream` and a `LocalStream` and
refuses anything else, so that they cannot be swapped by accident. Swapping them would publish the
only randomness that hides the data from the decoder.

Both are AES-256 in counter mode, so each is a pseudorandom generator under the standard assumption
on AES (the paper assumes ideal random numbers). Block i of a shared stream (16 bytes) belongs to
scalar i and to no other, whatever the batch sizes were: two words of 64 bits, little endian, the
first for T and the second for U. The AES key is HMAC-SHA256(key, label + nonce). Nothing else
enters, so the stream is the same on every machine and for every version of every library. One
stream serves one thread.

What rests on which stream (Theorem 7 and its proof, Appendix 9):
* the decoder's guarantee rests on the local stream alone: it holds for every fixed value of (T, U);
* the exact noise law, and with it the database's stronger guarantee, needs (T, U) uniform, unknown
  to the database, and used once. **Never use one (key, nonce) pair for two data sets**: each one
  alone keeps its guarantees, and the decoder's guarantees compose as usual, but the two noises
  become dependent, and a reader of both outputs is only protected by the decoder's (weaker)
  guarantees. `SharedStream.fresh` draws a new nonce, as every written file does.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from workbench.data.plain import read_integer
from workbench.errors import must
from workbench.exact.arrays import Vector, Words

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext


MIN_KEY_BYTES = 16  # A shorter key is refused.
NONCE_BYTES = 16  # A nonce has exactly this many bytes.
SHARED_WORDS = 2  # Each scalar uses this many shared words, one for T and one for U.
_BLOCK = 16  # A block of AES has this many bytes, which are the shared words of one scalar.
_SHARED_LABEL = b"workbench dql: shared stream, version 1\0"
_INSECURE_LABEL = b"workbench dql: insecure local stream, version 1\0"


def symmetric_uniform(random_words: Words) -> Vector:
    """Convert 64-bit words to uniform numbers on (-1/2, 1/2).

    The number is (s + 1/2) 2^-53, where s is the top 53 bits as a signed integer. Every value is
    exact in double precision, the law is symmetric, and neither 0 nor an end point occurs. Shape of
    random_words.

    Args:
        random_words: Uniform 64-bit words.
    """
    return np.asarray(((random_words.view(np.int64) >> np.int64(11)) + 0.5) * 2.0**-53)


def _counter_stream(key: bytes, first_block: int = 0) -> CipherContext:
    """Start AES-256-CTR under one 32-byte key at a 16-byte block."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(first_block.to_bytes(_BLOCK, "big"))).encryptor()


def _read_words(stream: CipherContext, rows: int, columns: int) -> Words:
    """Read the next rows x columns words of 64 bits, row by row."""
    all_words = np.frombuffer(stream.update(bytes(8 * rows * columns)), dtype="<u8")
    return all_words.astype(np.uint64, copy=False).reshape(rows, columns)


def _check_bytes(name: str, value: Any, max_length: float, constraint: str) -> None:
    """Raise InvalidRequest unless a value is bytes of an allowed length."""
    if not isinstance(value, bytes | bytearray):
        must(name, constraint, type(value).__name__)
    if not MIN_KEY_BYTES <= len(value) <= max_length:
        must(name, constraint, f"{len(value)} bytes")


class SharedStream:
    """The randomness (T, U) that encoder and decoder share, one block for each scalar.

    Two streams with equal (key, nonce, position) yield equal numbers.

    Args:
        key: The shared secret, at least 16 bytes that were drawn at random.
        nonce: 16 bytes, public, new for every data set.
        position: The index of the next scalar, >= 0.

    Raises:
        InvalidRequest: If the key is too short, the nonce has another size, or the position is
            negative.
    """

    def __init__(self, key: bytes, nonce: bytes, position: int = 0) -> None:
        _check_bytes("key", key, math.inf, f"at least {MIN_KEY_BYTES} random bytes")
        _check_bytes("nonce", nonce, NONCE_BYTES, f"{NONCE_BYTES} bytes")
        read_integer(position, "position", 0, 2**63 - 1, "an integer >= 0 and < 2^63")
        self.nonce = bytes(nonce)
        self.position = position
        stream_key = hmac.new(bytes(key), _SHARED_LABEL + self.nonce, hashlib.sha256).digest()
        self._stream = _counter_stream(stream_key, position)

    @classmethod
    def fresh(cls, key: bytes) -> SharedStream:
        """Return a stream with a new random nonce from the operating system.

        Args:
            key: The shared secret. Send `nonce` along with the description.
        """
        return cls(key, os.urandom(NONCE_BYTES))

    def take(self, count: int) -> Words:
        """Return the words (for T, for U) of the next `count` scalars. Shape (count, 2)."""
        self.position += count
        return _read_words(self._stream, count, SHARED_WORDS)

    def __repr__(self) -> str:
        return f"SharedStream(nonce={self.nonce.hex()}, position={self.position})"


class LocalStream:
    """The encoder's own randomness, keyed by the operating system.

    It is never shared, repeated, copied or pickled.

    A child process made by fork gets a new key. A copied stream would repeat its parent's numbers,
    and one stream used for two data sets would not hide their difference.
    """

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        """Start a new stream of this process with a fresh random key."""
        self._process = os.getpid()
        self._stream = _counter_stream(os.urandom(32))

    def take(self, count: int, columns: int) -> Words:
        """Return the next `count` rows of `columns` words. Shape (count, columns).

        Args:
            count: The number of rows.
            columns: The number of words in a row.
        """
        if self._process != os.getpid():
            self._rekey()
        return _read_words(self._stream, count, columns)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a LocalStream cannot be copied or pickled: the copy would repeat its randomness."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InsecureLocalStream(LocalStream):
    """A repeatable local stream for experiments and tests.

    It gives no privacy, because whoever knows the seed can read the data.

    Args:
        seed: An integer >= 0.

    Raises:
        InvalidRequest: If seed is no integer >= 0.
    """

    def __init__(self, seed: int) -> None:
        self.seed = read_integer(seed, "seed", 0)
        super().__init__()

    def _rekey(self) -> None:
        """Start a stream of this process whose key is a hash of the seed."""
        self._process = os.getpid()
        self._stream = _counter_stream(
            hashlib.sha256(_INSECURE_LABEL + str(self.seed).encode()).digest()
        )

    def __repr__(self) -> str:
        return f"InsecureLocalStream(seed={self.seed})"


def check_streams(shared: Any, local: Any = None) -> None:
    """Refuse anything but a SharedStream, and a LocalStream or None.

    Args:
        shared: The stream that both parties know.
        local: The encoder's stream.

    Raises:
        InvalidRequest: If shared is no SharedStream, or local is neither None nor a LocalStream.
    """
    if not isinstance(shared, SharedStream):
        must("shared", "a SharedStream", type(shared).__name__)
    if local is not None and not isinstance(local, LocalStream):
        must("local", "a LocalStream, which the decoder never sees", type(local).__name__)
