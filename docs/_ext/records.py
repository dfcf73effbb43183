"""What pages show of the package and of committed results, read when the site is built.

{options} FAMILY    the table of a family's options         {errata} PAPER    its errata, each with
its check
"""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from workbench.pipeline.option import to_json_value
from workbench.pipeline.registry import get_family

RESULTS = Path(__file__).resolve().parents[2] / "results"


def table(
    heads: Sequence[str], rows: Sequence[Sequence[nodes.Node]], widths: Sequence[int]
) -> nodes.table:
    """A table of nodes."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(heads))
    head = [nodes.paragraph("", word) for word in heads]
    for part, lines in ((nodes.thead(), [head]), (nodes.tbody(), rows)):
        part += [nodes.row("", *(nodes.entry("", cell) for cell in line)) for line in lines]
        group += part
    return nodes.table("", group)


class Options(SphinxDirective):
    """A family's options, with what each means."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table."""
        rows = []
        for option in get_family(self.arguments[0]).options:
            flag = (
                f"--{(option.command or option.name).replace('_', '-')}"
                if "command" in option.places
                else "-"
            )
            default = ""
            if option.required:
                default = "required"
            elif option.default is not None:
                default = str(to_json_value(option.default))
            cells = [nodes.literal("", flag), nodes.literal("", option.name), nodes.Text(default),
                     nodes.Text(option.python_help)]  # fmt: skip
            rows.append([nodes.paragraph("", "", cell) for cell in cells])
        return [table(["command line", "Python", "default", "meaning"], rows, [18, 14, 12, 56])]


class Errata(SphinxDirective):
    """List the errata of a paper: place, printed text, correction and the check that shows it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One folded item for each, that shows its place."""
        path = RESULTS / self.arguments[0] / "errata.json"
        self.env.note_dependency(str(path))
        entries: list[nodes.Node] = []
        for one in json.loads(path.read_text("utf-8")):
            check = "check (holds): " if one["holds"] else "check (FAILS): "
            told = (
                ("printed: ", one["printed"]),
                ("right: ", one["right"]),
                (check, one["evidence"]),
            )
            lines = [
                nodes.paragraph("", "", nodes.strong("", name), nodes.Text(words))
                for name, words in told
            ]
            opened = f"<details><summary>{html.escape(one['place'])}</summary>"
            entries += [
                nodes.raw("", opened, format="html"),
                *lines,
                nodes.raw("", "</details>", format="html"),
            ]
        return entries


def _links(app: Sphinx, name: str, source: list[str]) -> None:
    """What stands outside this folder on a forge is a page of the site."""
    text = re.sub(
        r"\]\((?:\.\./)+results/(?:README\.md|index\.html)(?:#[^)]*)?\)", "](gallery:)", source[0]
    )
    source[0] = text.replace("](../CONTRIBUTING.md)", "](contributing.md)")


def _gallery(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        shutil.copyfile(RESULTS / "index.html", Path(app.outdir) / "gallery.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx; the gallery of results, one file, goes beside the pages."""
    app.add_directive("options", Options)
    app.add_directive("errata", Errata)
    app.connect("source-read", _links)
    app.connect("build-finished", _gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
