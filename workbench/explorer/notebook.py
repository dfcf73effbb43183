"""`workbench.explore`: the explorer's page of one request, shown in a frame of a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Values
from workbench.explorer.given import (
    FileTexts,
    first_example,
    list_file_texts,
    read_option_values,
    write_option_texts,
)
from workbench.explorer.page import build_export_page, write_page
from workbench.io.files import read_file_path
from workbench.pipeline.design import Design
from workbench.pipeline.registry import get_family as find_family
from workbench.pipeline.registry import list_families

_FRAME_HEIGHT_PIXELS = 720  # A notebook shows this much of the page; the frame scrolls.


@dataclass(frozen=True)
class ExplorerPage:
    """The explorer's page of one request: its design, its trade-offs and its privacy, in one file without a network.

    The last line of a cell shows it.
    """

    family: str
    given: Values
    html: str = field(repr=False)
    _files: FileTexts = field(default=(), repr=False)

    def _repr_html_(self) -> str:
        """Show the page in a frame, which keeps its style and its script apart from the notebook's."""
        return (
            f'<iframe title="dp-workbench" srcdoc="{escape(self.html)}" loading="lazy" '
            f'style="width: 100%; height: {_FRAME_HEIGHT_PIXELS}px; border: 0"></iframe>'
        )

    def save(self, path: Path | str) -> Path:
        """Write the page into a file, as `workbench explore --export FILE` does, and return its path."""
        target = read_file_path(path, "path")
        if target.suffix.lower() not in (".html", ".htm"):
            must("path", "named .html or .htm", target)
        write_page(target, self.html)
        return target

    def design(self) -> Design:
        """Design the request and certify it where the family certifies. Raises as `workbench.design`."""
        kind = find_family(self.family)
        values = read_option_values(kind, self.given, self._files)
        return kind.design_request(kind.make_request_from_values(values | {"check": "certify"}))


def explore(family: str | None = None, **options: Any) -> ExplorerPage:
    """Make the explorer's page of one request. A notebook shows it in a frame.

        >>> import workbench as wb
        >>> page = wb.explore("modulo", n=8, max_shift=3, epsilon=1.5)
        >>> page.given
        {'n': '8', 'max_shift': '3', 'epsilon': '1.5'}

    Args:
        family: Name of a family (`workbench design --help` lists them). Default: the first one.
        options: Its options as its command takes them; a text may name a file. Default: an example.

    Returns:
        The page. `save(path)` writes it into a file, `design()` is its design, certified.

    Raises:
        InvalidRequest: an unknown family or option, or a wrong value.
        WorkbenchError: the request has no design.
    """
    if family is None and options:
        raise InvalidRequest("family must be given before its options. Got none.")
    kind = list_families()[0] if family is None else find_family(family)
    given = write_option_texts(kind, options) or dict(first_example(kind))
    files = list_file_texts(kind, given)
    read_option_values(kind, given, files)
    return ExplorerPage(kind.name, given, build_export_page(kind.name, given, files), files)
