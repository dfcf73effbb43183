"""Show the explorer's page of one request in a notebook (`workbench.explore`)."""

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
from workbench.pipeline.registry import get_family, list_families

_FRAME_HEIGHT_PIXELS = 720  # The visible height of the page in pixels. The page scrolls.


@dataclass(frozen=True)
class ExplorerPage:
    """The explorer's page of one request: its design, trade-offs and privacy, in one file.

    The page needs no network. The last line of a notebook cell shows it.

    Attributes:
        family: The name of the family.
        given: Option -> its text, flag or list of texts.
        html: The complete page as HTML text.
    """

    family: str
    given: Values
    html: str = field(repr=False)
    _files: FileTexts = field(default=(), repr=False)

    def _repr_html_(self) -> str:
        """Return the page in a frame, which separates its style and script from the notebook's."""
        return (
            f'<iframe title="dp-workbench" srcdoc="{escape(self.html)}" loading="lazy" '
            f'style="width: 100%; height: {_FRAME_HEIGHT_PIXELS}px; border: 0"></iframe>'
        )

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, as `workbench explore --export FILE` does, and return its path.

        Args:
            path: The path of an HTML file.

        Raises:
            InvalidRequest: The name does not end in .html or .htm.
        """
        target = read_file_path(path, "path")
        if target.suffix.lower() not in (".html", ".htm"):
            must("path", "named .html or .htm", target)
        write_page(target, self.html)
        return target

    def design(self) -> Design:
        """Design the request, certified if the family certifies. Raises as `workbench.design`."""
        family = get_family(self.family)
        values = read_option_values(family, self.given, self._files)
        request = family.make_request_from_values(values | {"check": "certify"})
        return family.design_request(request)


def explore(family: str | None = None, **options: Any) -> ExplorerPage:
    """Make the explorer's page of one request. A notebook shows it in a frame.

        >>> import workbench as wb
        >>> page = wb.explore("modulo", n=8, max_shift=3, epsilon=1.5)
        >>> page.given
        {'n': '8', 'max_shift': '3', 'epsilon': '1.5'}

    Args:
        family: The name of a family (`workbench design --help` lists them). Default: the first one.
        options: Its options, as its command takes them. A text may name a file. Default: an
            example.

    Returns:
        The page. `save(path)` writes it to a file, `design()` returns its certified design.

    Raises:
        InvalidRequest: The family or an option is unknown, or a value is wrong.
        WorkbenchError: The request has no design.
    """
    if family is None and options:
        raise InvalidRequest("family must be given before its options. Got none.")
    family_entry = list_families()[0] if family is None else get_family(family)
    given = write_option_texts(family_entry, options) or dict(first_example(family_entry))
    files = list_file_texts(family_entry, given)
    # A wrong option is refused before the page is computed.
    read_option_values(family_entry, given, files)
    html = build_export_page(family_entry.name, given, files)
    return ExplorerPage(family_entry.name, given, html, files)
