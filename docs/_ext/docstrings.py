"""Convert docstrings of the workbench to reStructuredText, which Sphinx reads.

A docstring consists of paragraphs. A paragraph is text, an indented equation or table, an example
(">>>"), or a section such as "Args:" with entries.

    docstring                       reStructuredText
    The least |x| of `f`.           The least \\|x\\| of ``f``.
    an indented paragraph           a literal block after "::"
    Args:                           **Args**
        x: The x value.             * ``x``: The x value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$")
_ENTRY = re.compile(r" {4}(\S[^:]*): (.*)$")  # An entry of a section: "    name: sentence".
_SECTIONS_OF_ENTRIES = ("Args", "Attributes", "Raises")

# The first line of a listing of options in an entry: "        name: default=...".
_LISTING = re.compile(r" {8}\w+: \w+=")

# The first paragraphs of the docstring of `workbench.design`. The lists of options after them are
# on the pages of the families.
_DESIGN_INTRODUCTION_PARAGRAPHS = 2


def convert_docstring(lines: list[str]) -> list[str]:
    """Convert a docstring to reStructuredText.

    >>> convert_docstring(["The least |x| of `f`.", "", "    x = 1"])
    ['The least \\\\|x\\\\| of ``f``.', '', '::', '', '    x = 1', '']

    Args:
        lines: The lines of the docstring, without the indentation that all share.

    Returns:
        The lines of reStructuredText.
    """
    converted = []
    for paragraph in _split_paragraphs(lines):
        converted += _convert_paragraph(paragraph)
    return converted


def _split_paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines between blank lines."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _convert_paragraph(paragraph: list[str]) -> list[str]:
    """Return a paragraph in reStructuredText, with a blank line at its end."""
    first = paragraph[0]
    if _SECTION.match(first):
        return [*_convert_section(first[:-1], paragraph[1:]), ""]
    if first.lstrip().startswith(">>>"):
        return [*[line.strip() for line in paragraph], ""]
    is_indented = all(line.startswith("    ") for line in paragraph)
    if is_indented or first.startswith("| "):
        literal_lines = [line if line.startswith("    ") else f"    {line}" for line in paragraph]
        return ["::", "", *literal_lines, ""]
    return [*map(_escape_line, paragraph), ""]


def _convert_section(title: str, lines: list[str]) -> Iterator[str]:
    """Yield a section as a list of its entries. A listing in an entry becomes a literal block."""
    yield from (f"**{title}**", "")
    is_in_entry = False
    is_in_listing = False
    for line in lines:
        entry = _ENTRY.match(line) if title in _SECTIONS_OF_ENTRIES else None
        starts_listing = bool(_LISTING.match(line)) and not is_in_listing
        if is_in_listing and entry:
            yield ""
        elif starts_listing:
            yield from ("", "  ::", "")
        is_in_listing = not entry and (is_in_listing or starts_listing)
        is_in_entry = is_in_entry or bool(entry)
        if entry:
            yield f"* ``{entry[1]}``: {_escape_line(entry[2])}"
        elif is_in_listing:
            yield line
        else:
            indentation = "  " if is_in_entry else ""
            yield f"{indentation}{_escape_line(line.strip())}"


def _escape_line(line: str) -> str:
    """Return a line with `code` in double backquotes, and special characters outside escaped."""
    escaped = ""
    # The parts are in turn text and code.
    for k, part in enumerate(re.split(r"`([^`]+)`", line)):
        is_code = k % 2 == 1
        if is_code:
            escaped += f"``{part}``"
        else:
            # "_" at the end of a word would be a link.
            escaped += re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
    return escaped


def _process_docstring(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Replace the lines of a docstring. Sphinx calls this function for every documented name."""
    if name == "workbench.design":
        paragraphs = list(_split_paragraphs(lines))[:_DESIGN_INTRODUCTION_PARAGRAPHS]
        lines[:] = [line for paragraph in paragraphs for line in [*paragraph, ""]]
        lines += ["The page of each family lists its options."]
    else:
        lines[:] = convert_docstring(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the conversion. Sphinx calls this function."""
    app.connect("autodoc-process-docstring", _process_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
