"""Where a command may write: checked before any work starts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import must
from workbench.exact.objects import Record
from workbench.io.files import (
    check_folder_writable,
    refuse_read_only,
    require_distinct_files,
    write_atomically,
)

Inputs = Mapping[str, Path | str | None]  # files that a command reads, by what a message calls them
_FILES = {"save": "saved file", "plot": "plot file", "html": "html file", "mps": "program file"}
_ENDINGS = {
    "plot file": ".png, .svg or .pdf (--html writes a page)",
    "html file": ".html or .htm", "export": ".html or .htm", "program file": ".mps",
}  # fmt: skip


def is_page(path: Path) -> bool:
    """Whether a file is named as a page."""
    return path.suffix.lower() in (".html", ".htm")


def check_output_folder(path: Path, name: str) -> None:
    """Refuse a folder for results that cannot be made or written before anything is computed.

    It is made by what is written into it, so that a request that is refused leaves no empty folder.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_folder_writable(path)
    except OSError as error:
        must(name, "a folder that can be written", f"{path}: {error.strerror}")
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def check_output_file(path: Path, name: str) -> None:
    """Refuse a place that cannot be written before anything is computed."""
    endings = _ENDINGS.get(name)
    if endings is not None and path.suffix.lower() not in re.findall(r"\.\w+", endings):
        must(name, f"named {endings}", path.name)
    if not path.absolute().parent.is_dir():
        must("output folder", "an existing folder", path.parent)
    refuse_read_only(path, name)
    if path.exists() and not path.is_file():  # a device or a pipe, which is written into
        return
    try:
        check_folder_writable(Path(os.path.realpath(path)).parent)
    except OSError as error:
        must(name, "in a folder that can be written", f"{path}: {error.strerror}")


def check_outputs(
    inputs: Inputs, outputs: Mapping[str, Path | None], width: str | None = None
) -> None:
    """Refuse outputs (what a message calls them -> path, None where not given) that cannot be written, or that are one
    file with an input or with each other; and a width that the plot file cannot have."""
    if width is not None:
        from workbench.io.figures import read_figure_width

        read_figure_width(width)
        if outputs["plot file"] is None:
            must("width", "given with a plot", width)
    for name, path in outputs.items():
        if path:
            check_output_file(path, name)
    require_distinct_files(inputs, outputs)


class Outputs:
    """The files that a command writes of what it has computed: checked before, written after.

    inputs: files it reads; given: its options, of which those of the files are taken out. Raises InvalidRequest.
    """

    def __init__(self, inputs: Inputs, given: Record) -> None:
        self._files: dict[str, Path | None] = {
            name: given.pop(option, None) for option, name in _FILES.items()
        }
        self._width = given.pop("width", None)
        check_outputs(inputs, self._files, self._width)

    def __getitem__(self, name: str) -> Path | None:
        return self._files[name]

    def write(
        self, subject: Any, page: str = "", save: Callable[[Path], Any] | None = None, **drawn: Any
    ) -> None:
        """Save it, plot it, and write its page, as far as these are wanted. page: the function of
        `workbench.explorer.page` that makes it; save: instead of its own; drawn: more options of the plot."""
        saved, plot, html, _ = self._files.values()
        if saved:
            (save or subject.save)(saved)
        if plot:
            subject.plot(plot, width=self._width, **drawn)
        if html and page:
            from workbench.explorer import page as pages

            pages.write_page(html, getattr(pages, page)(subject))


def write_output(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a result whole or not at all; private: a new file is its owner's alone. Raises InvalidRequest."""
    try:
        write_atomically(path, content, private=private)
    except OSError as error:
        must("output", "a file that can be written", f"{path.name}: {error.strerror}")
