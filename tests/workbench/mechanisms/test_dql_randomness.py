"""Random streams of DQL are pinned, independent, and refused if invalid."""

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
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = int.from_bytes(bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), "big")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    cipher = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5")
    stream = _read_words(_counter_stream(key, counter), 2, 2).astype("<u8").tobytes()
    assert bytes(a ^ b for a, b in zip(stream, plain, strict=True)) == cipher


def test_shared_stream_is_pinned_because_other_machines_must_agree() -> None:
    words = SharedStream(KEY, NONCE).take(2)
    pinned = [0x067346C08C3B0C78, 0x21CCCCA22513FEF0, 0x1818DFC9AB1931BA, 0x9B10FB673B209A87]
    assert words.reshape(-1).tolist() == pinned


def test_shared_stream_is_a_function_of_key_nonce_and_position_alone() -> None:
    whole = SharedStream(KEY, NONCE).take(1000)
    parts = SharedStream(KEY, NONCE)
    assert np.array_equal(np.concatenate([parts.take(n) for n in (1, 7, 400, 592)]), whole)
    assert parts.position == 1000
    assert np.array_equal(SharedStream(KEY, NONCE, 613).take(5), whole[613:618])
    assert not np.array_equal(SharedStream(KEY, b"b" * 16).take(1000), whole)
    assert not np.array_equal(SharedStream(KEY[::-1], NONCE).take(1000), whole)
    fresh = SharedStream.fresh(KEY), SharedStream.fresh(KEY)
    assert fresh[0].nonce != fresh[1].nonce
    assert KEY.hex() not in repr(fresh[0])


def test_shared_and_insecure_local_streams_differ_for_one_secret() -> None:
    shared = set(SharedStream(b"7" * 16, NONCE).take(500).reshape(-1).tolist())
    local = set(InsecureLocalStream(7777777777777777).take(500, 3).reshape(-1).tolist())
    assert not shared & local


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
    one, two = LocalStream(), LocalStream()
    assert not np.array_equal(one.take(10, 3), two.take(10, 3))
    for twice in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            twice(one)


def test_an_insecure_local_stream_repeats_its_words() -> None:
    one, two = InsecureLocalStream(5), InsecureLocalStream(5)
    assert np.array_equal(one.take(10, 3), np.concatenate([two.take(4, 3), two.take(6, 3)]))
    assert not np.array_equal(
        InsecureLocalStream(6).take(10, 3), InsecureLocalStream(5).take(10, 3)
    )
    for seed in (-1, 1.5, None, True):
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
    words = np.array([0, 2**63 - 1, 2**63, 2**64 - 1, 2**11], dtype=np.uint64)
    tiny = 2.0**-54
    assert symmetric_uniform(words).tolist() == [tiny, 0.5 - tiny, -0.5 + tiny, -tiny, 3 * tiny]
    drawn = symmetric_uniform(SharedStream(KEY, NONCE).take(200_000).reshape(-1))
    assert abs(drawn.mean()) < 4 * (1 / 12 / drawn.size) ** 0.5
    assert abs(drawn.var() - 1 / 12) < 0.001
    assert words.tolist()[1] == 2**63 - 1  # The input is not changed.
