"""Files are written whole or not at all, and what is no file is never replaced by one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from workbench.errors import InvalidRequest
from workbench.io.files import write_atomically


def test_links_are_followed(tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    write_atomically(tmp_path / "link", b"one")
    write_atomically(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["file"]


def test_devices_and_pipes_are_written_into(tmp_path: Path):
    (tmp_path / "null").symlink_to("/dev/null")
    write_atomically(tmp_path / "null", b"gone")
    assert (tmp_path / "null").is_symlink()
    assert Path("/dev/null").is_char_device()
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_atomically(tmp_path / "pipe", b"through")
    reader.join(10)
    assert found == [b"through"]
    assert (tmp_path / "pipe").is_fifo()


def test_nothing_is_left_of_a_write_that_failed(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="Got the folder"):
        write_atomically(tmp_path, b"a folder")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "file", "text")  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]
