"""Check the output files of a command before any work starts, and write them at the end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import must
from workbench.exact.objects import Record, Values
from workbench.io.files import (
    check_folder_writable,
    refuse_read_only,
    require_distinct_files,
    write_atomically,
)

Inputs = Mapping[str, Path | str | None]  # Files that a command reads, by their names in messages.
_FILE_OPTIONS = {
    "save": "saved file",
    "plot": "plot file",
    "html": "html file",
    "mps": "program file",
}
_ENDINGS = {
    "plot file": ".png, .svg or .pdf (--html writes a page)",
    "html file": ".html or .htm",
    "export": ".html or .htm",
    "program file": ".mps",
}


def is_page(path: Path) -> bool:
    """Return whether the name of a file has the ending of an HTML page.

    Args:
        path: The file.
    """
    return path.suffix.lower() in (".html", ".htm")


def check_output_folder(path: Path, name: str) -> None:
    """Raise InvalidRequest if a folder cannot be made or written.

    The folder is made when something is written into it, so that a refused request leaves no empty
    folder.

    Args:
        path: The folder.
        name: Its name in messages.
    """
    missing_folders = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_folder_writable(path)
    except OSError as error:
        must(name, "a folder that can be written", f"{path}: {error.strerror}")
    finally:
        for folder in missing_folders:
            with suppress(OSError):
                folder.rmdir()


def check_output_file(path: Path, name: str) -> None:
    """Raise InvalidRequest if a file cannot be written.

    Args:
        path: The file.
        name: Its name in messages. The keys of `_ENDINGS` also require an ending of the file.
    """
    endings = _ENDINGS.get(name)
    if endings is not None and path.suffix.lower() not in re.findall(r"\.\w+", endings):
        must(name, f"named {endings}", path.name)
    if not path.absolute().parent.is_dir():
        must("output folder", "an existing folder", path.parent)
    refuse_read_only(path, name)
    if path.exists() and not path.is_file():
        # This is a device or a pipe, which is written into.
        return
    try:
        check_folder_writable(Path(os.path.realpath(path)).parent)
    except OSError as error:
        must(name, "in a folder that can be written", f"{path}: {error.strerror}")


def check_outputs(
    inputs: Inputs, outputs: Mapping[str, Path | None], width: str | None = None
) -> None:
    """Check the output files of a command.

    Args:
        inputs: Files that the command reads.
        outputs: Files that it writes, by their names in messages. None: not written.
        width: Width of the plot file. None: the default.

    Raises:
        InvalidRequest: An output cannot be written, is also an input or another output, or the
            width is invalid.
    """
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
    """The output files of a command, which are checked before the work and written after it.

    Args:
        inputs: Files that the command reads.
        given: Options of the command. The options of output files are removed.

    Raises:
        InvalidRequest: An output cannot be written.
    """

    def __init__(self, inputs: Inputs, given: Record) -> None:
        self._files: dict[str, Path | None] = {
            name: given.pop(option, None) for option, name in _FILE_OPTIONS.items()
        }
        self._width = given.pop("width", None)
        check_outputs(inputs, self._files, self._width)

    def __getitem__(self, name: str) -> Path | None:
        return self._files[name]

    def write(
        self,
        subject: Any,
        page: str = "",
        save: Callable[[Path], Any] | None = None,
        page_options: Values | None = None,
        **plot_options: Any,
    ) -> None:
        """Write the saved file, the plot and the HTML page of a result, as far as requested.

        Args:
            subject: The result, with the methods `save` and `plot`.
            page: Name of the function of `workbench.explorer.page` that makes the HTML page of the
                result. "": no page is written.
            page_options: Further arguments of this function.
            save: Function that saves the result to a path. None: the result's method `save`.
            plot_options: Further arguments of the result's method `plot`.
        """
        saved_file = self["saved file"]
        plot_file = self["plot file"]
        html_file = self["html file"]
        if saved_file:
            (save or subject.save)(saved_file)
        if plot_file:
            subject.plot(plot_file, width=self._width, **plot_options)
        if html_file and page:
            from workbench.explorer import page as pages

            pages.write_page(html_file, getattr(pages, page)(subject, **(page_options or {})))


def write_output(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a result completely or not at all.

    Args:
        path: File to write.
        content: Its content.
        private: Whether only the owner may read a new file.

    Raises:
        InvalidRequest: The file cannot be written.
    """
    try:
        write_atomically(path, content, private=private)
    except OSError as error:
        must("output", "a writable file", f"{path.name}: {error.strerror}")
