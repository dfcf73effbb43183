"""Test the shared and local random streams of the dyadic quantized Laplace mechanism (DQL).

Encoder and decoder must draw the same words of the shared stream on every machine, so some words
are pinned here. `take(count)` of a shared stream returns `count` rows of two words each, as a scalar
needs. A local stream has as many words in a row as `columns` says.
"""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from workbench.errors import InvalidRequest
from workbench.mechanisms.dyadic_laplace.randomness import (
    InsecureLocalStream,
    LocalStream,
    SharedStream,
    _counter_stream,
    _read_words,
    symmetric_uniform,
)

KEY = bytes(range(32))
NONCE = b"a public nonce.."


def test_counter_stream_is_aes_256_ctr_of_nist_sp_800_38a_f55() -> None:
    """The example of NIST SP 800-38A, F.5.5: the stream xor the plain text is the cipher text."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = int.from_bytes(bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), "big")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    cipher = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5")
    stream = _read_words(_counter_stream(key, counter), rows=2, columns=2).astype("<u8").tobytes()
    assert bytes(a ^ b for a, b in zip(stream, plain, strict=True)) == cipher


def test_shared_stream_is_pinned_because_other_machines_must_agree() -> None:
    words = SharedStream(KEY, NONCE).take(2)
    # Two rows of two words each, as drawn once by this code.
    pinned = [0x067346C08C3B0C78, 0x21CCCCA22513FEF0, 0x1818DFC9AB1931BA, 0x9B10FB673B209A87]
    assert words.reshape(-1).tolist() == pinned


def test_shared_stream_does_not_depend_on_batches() -> None:
    whole = SharedStream(KEY, NONCE).take(1000)
    stream = SharedStream(KEY, NONCE)
    batches = [stream.take(count) for count in (1, 7, 400, 592)]
    assert np.array_equal(np.concatenate(batches), whole)
    assert stream.position == 1000


def test_shared_stream_can_start_at_any_position() -> None:
    whole = SharedStream(KEY, NONCE).take(1000)
    assert np.array_equal(SharedStream(KEY, NONCE, position=613).take(5), whole[613:618])


def test_shared_streams_of_other_keys_or_nonces_differ() -> None:
    words = SharedStream(KEY, NONCE).take(1000)
    assert not np.array_equal(SharedStream(KEY, b"b" * 16).take(1000), words)
    assert not np.array_equal(SharedStream(KEY[::-1], NONCE).take(1000), words)


def test_fresh_shared_streams_have_their_own_nonce_and_hide_the_key() -> None:
    first = SharedStream.fresh(KEY)
    second = SharedStream.fresh(KEY)
    assert first.nonce != second.nonce
    assert KEY.hex() not in repr(first)


def test_shared_and_insecure_local_streams_differ_for_one_secret() -> None:
    # The decimal digits of the seed are the bytes of the key.
    shared_words = SharedStream(b"7" * 16, NONCE).take(500)
    local_words = InsecureLocalStream(seed=7777777777777777).take(count=500, columns=3)
    assert not {*shared_words.reshape(-1).tolist()} & {*local_words.reshape(-1).tolist()}


@pytest.mark.parametrize(
    ("key", "nonce", "position"),
    [
        (b"short", NONCE, 0),
        ("x" * 32, NONCE, 0),
        (KEY, b"short", 0),
        (KEY, None, 0),
        (KEY, NONCE, -1),
    ],
)
def test_invalid_keys_nonces_and_positions_are_refused(
    key: object, nonce: object, position: object
) -> None:
    with pytest.raises(InvalidRequest, match=r"must be .*Got"):
        SharedStream(key, nonce, position)


def test_local_streams_differ_and_cannot_be_repeated() -> None:
    stream = LocalStream()
    assert not np.array_equal(
        stream.take(count=10, columns=3), LocalStream().take(count=10, columns=3)
    )
    for copy_stream in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copy_stream(stream)


def test_an_insecure_local_stream_repeats_its_words() -> None:
    words = InsecureLocalStream(5).take(count=10, columns=3)
    stream = InsecureLocalStream(5)
    assert np.array_equal(
        np.concatenate([stream.take(count=4, columns=3), stream.take(count=6, columns=3)]), words
    )
    assert not np.array_equal(InsecureLocalStream(6).take(count=10, columns=3), words)


@pytest.mark.parametrize("seed", [-1, 1.5, None, True])
def test_invalid_seeds_are_refused(seed: object) -> None:
    with pytest.raises(InvalidRequest, match="seed must be an integer >= 0"):
        InsecureLocalStream(seed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_repeat_its_parent() -> None:
    script = """
import os
from workbench.mechanisms.dyadic_laplace.randomness import LocalStream
stream = LocalStream()
stream.take(3, 3)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, stream.take(1, 1).tobytes())
    os._exit(0)
print(os.read(read, 8) != stream.take(1, 1).tobytes())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_symmetric_uniform_is_exact_symmetric_and_open() -> None:
    """A word gives the middle of one of 2^53 intervals of (-1/2, 1/2), so never an end or 0."""
    words = np.array([0, 2**63 - 1, 2**63, 2**64 - 1, 2**11], dtype=np.uint64)
    half_interval = 2.0**-54
    assert symmetric_uniform(words).tolist() == [
        half_interval,
        0.5 - half_interval,
        -0.5 + half_interval,
        -half_interval,
        3 * half_interval,
    ]
    assert words.tolist()[1] == 2**63 - 1  # The input is not changed.


def test_symmetric_uniform_has_the_moments_of_the_uniform_law() -> None:
    numbers = symmetric_uniform(SharedStream(KEY, NONCE).take(200_000).reshape(-1))
    standard_error = (1 / 12 / numbers.size) ** 0.5
    assert abs(numbers.mean()) < 4 * standard_error
    assert abs(numbers.var() - 1 / 12) < 0.001
