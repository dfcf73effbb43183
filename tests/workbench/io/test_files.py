"""Test that files are written completely or not at all, and links, devices and pipes stay."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from workbench.errors import InvalidRequest
from workbench.io.files import write_atomically


def test_a_link_stays_and_its_target_is_written(tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder / "file")
    # The first write creates the target, and the second one replaces it.
    write_atomically(link, b"one")
    write_atomically(link, b"two")
    assert link.is_symlink()
    assert (folder / "file").read_bytes() == b"two"
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_device_is_written_into(tmp_path: Path):
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write_atomically(link, b"discarded")
    assert link.is_symlink()
    assert Path("/dev/null").is_char_device()


def test_a_pipe_is_written_into(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    # Opening a pipe waits for the other end, so reading needs a thread.
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"content")
    reader.join(10)
    assert received == [b"content"]
    assert pipe.is_fifo()


def test_a_failed_write_leaves_no_file(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="Got the folder"):
        write_atomically(tmp_path, b"a folder")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "file", "text")  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]
