"""Where a command may write: checked before any work starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import InvalidRequest
from workbench.io.files import distinct_files, not_read_only, write_whole

__all__ = ["html_file", "output_file", "output_files", "output_folder", "write_output"]


def output_folder(path: Path, name: str) -> None:
    """Make a folder for results, and refuse one that cannot be written before anything is computed."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        _try(path)
    except OSError as error:
        InvalidRequest.must(name, "a folder that can be written", f"{path}: {error.strerror}")


def _try(folder: Path) -> None:
    """Write a file without a name into a folder: its mode does not tell whether that works. Raises OSError."""
    import tempfile

    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


def output_file(path: Path, name: str, endings: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written before anything is computed."""
    if endings and path.suffix.lower() not in endings:
        InvalidRequest.must(name, f"named {', '.join(endings[:-1])} or {endings[-1]}", path.name)
    if not path.absolute().parent.is_dir():
        InvalidRequest.must("output folder", "an existing folder", path.parent)
    not_read_only(path, name)
    if path.exists() and not path.is_file():  # a device or a pipe, which is written into
        return
    try:
        _try(Path(os.path.realpath(path)).parent)
    except OSError as error:
        InvalidRequest.must(name, "in a folder that can be written", f"{path}: {error.strerror}")


def html_file(path: Path | None, files: Mapping[str, Path | str | None]) -> None:
    """Refuse a page that cannot be written, or that is one file with another one of the command."""
    if path is not None:
        output_file(path, "html file", (".html", ".htm"))
        distinct_files(files, {"html file": path})


def output_files(saved: Path | None, plot: Path | None, inputs: Mapping[str, Path | str | None] | None = None) -> None:
    """Refuse a saved file or a plot that cannot be written, or that is one file with the other or with an input."""
    if plot is not None:
        output_file(plot, "plot file", (".png", ".svg", ".pdf"))
    if saved is not None:
        output_file(saved, "saved file")
    distinct_files(inputs or {}, {"saved file": saved, "plot file": plot})


def write_output(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a result whole or not at all; private: a new file is its owner's alone. Raises InvalidRequest."""
    try:
        write_whole(path, content, private=private)
    except OSError as error:
        InvalidRequest.must("output", "a file that can be written", f"{path.name}: {error.strerror}")
