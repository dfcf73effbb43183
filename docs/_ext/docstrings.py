"""Our docstrings are plain text: sentences, indented equations and tables, sections of entries."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

_ENTRY = re.compile(r" {4}(\S[^:]*): (.*)$")
_LISTED = re.compile(r" {8}\w+: \w+=")
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$")


def as_rst(lines: list[str]) -> list[str]:
    """A docstring in the words of reStructuredText.

    >>> as_rst(["The least |x| of `f`.", "", "    x = 1"])
    ['The least \\\\|x\\\\| of ``f``.', '', '::', '', '    x = 1', '']
    """
    return [line for paragraph in _paragraphs(lines) for line in _shown(paragraph)]


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    found: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            found.append(line)
        elif found:
            yield found
            found = []


def _shown(paragraph: list[str]) -> list[str]:
    first = paragraph[0]
    if _SECTION.match(first):
        return [*_section(first[:-1], paragraph[1:]), ""]
    if first.lstrip().startswith(">>>"):
        return [*[line.strip() for line in paragraph], ""]
    if all(line.startswith("    ") for line in paragraph) or first.startswith("| "):
        return [
            "::",
            "",
            *(line if line.startswith("    ") else f"    {line}" for line in paragraph),
            "",
        ]
    return [*map(_escaped, paragraph), ""]


def _section(title: str, lines: list[str]) -> Iterator[str]:
    """Entries "name: sentences" as a list; what is indented further below one is a listing."""
    yield from (f"**{title}**", "")
    listing = within = False  # in a listing of options, in an entry
    for line in lines:
        entry = _ENTRY.match(line) if title in ("Args", "Attributes", "Raises") else None
        if listing and entry:
            yield ""
        elif not listing and _LISTED.match(line):
            yield from ("", "  ::", "")
        listing = not entry and (listing or bool(_LISTED.match(line)))
        within = within or bool(entry)
        if entry:
            yield f"* ``{entry[1]}``: {_escaped(entry[2])}"
        elif listing:
            yield line
        else:
            yield f"{'  ' if within else ''}{_escaped(line.strip())}"


def _escaped(line: str) -> str:
    parts = re.split(r"`([^`]+)`", line)
    return "".join(
        f"``{part}``" if k % 2 else re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
        for k, part in enumerate(parts)
    )


def _process(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    if (
        name == "workbench.design"
    ):  # the rest of its help are the tables of options, which stand on the families' pages
        lines[:] = [*lines[:4], "", "The options of each family stand on its page."]
    else:
        lines[:] = as_rst(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
