"""Show data of the package and of results/ on pages of the documentation, when it is built.

    directive            shows
    {options} FAMILY     the table of the options of a family
    {errata} PAPER       the errata of a paper, each with its check
    {claims} PAPER       the judged claims of a paper

The gallery of results (results/index.html) is copied to the site as gallery.html.
"""

from __future__ import annotations

import csv
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


# The relative widths of the columns of the table of options.
_OPTION_COLUMN_WIDTHS = (18, 14, 12, 56)

# The relative widths of the columns of the table of claims.
_CLAIM_COLUMN_WIDTHS = (36, 44, 10, 10)

# A link from a page to the gallery in results/, with or without an anchor.
_GALLERY_LINK = re.compile(r"\]\((?:\.\./)+results/(?:README\.md|index\.html)(?:#[^)]*)?\)")


def make_table(
    heads: Sequence[str], rows: Sequence[Sequence[nodes.Node]], widths: Sequence[int]
) -> nodes.table:
    """Return a table.

    Args:
        heads: The heads of the columns.
        rows: The cells, row by row.
        widths: The relative widths of the columns.
    """
    columns = [nodes.colspec(colwidth=width) for width in widths]
    group = nodes.tgroup("", *columns, cols=len(heads))
    head_cells = [nodes.paragraph("", head) for head in heads]
    group += _fill_table_part(nodes.thead(), [head_cells])
    group += _fill_table_part(nodes.tbody(), rows)
    return nodes.table("", group)


def _fill_table_part(part: nodes.Element, rows: Sequence[Sequence[nodes.Node]]) -> nodes.Element:
    """Add rows to the head or the body of a table, and return it."""
    for cells in rows:
        part += nodes.row("", *[nodes.entry("", cell) for cell in cells])
    return part


class Options(SphinxDirective):
    """The directive {options} FAMILY: the table of the options of a family."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = []
        for option in get_family(self.arguments[0]).options:
            flag = "-"
            if "command" in option.places:
                flag = f"--{(option.command or option.name).replace('_', '-')}"
            default = ""
            if option.required:
                default = "required"
            elif option.default is not None:
                default = str(to_json_value(option.default))
            cells = [
                nodes.literal("", flag),
                nodes.literal("", option.name),
                nodes.Text(default),
                nodes.Text(option.python_help),
            ]
            rows.append([nodes.paragraph("", "", cell) for cell in cells])
        heads = ["command line", "Python", "default", "meaning"]
        return [make_table(heads, rows, _OPTION_COLUMN_WIDTHS)]


class Errata(SphinxDirective):
    """The directive {errata} PAPER: the errata of a paper, each with its check."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one folded item for each erratum. Only its place in the paper is visible."""
        path = RESULTS / self.arguments[0] / "errata.json"
        self.env.note_dependency(str(path))
        items: list[nodes.Node] = []
        for erratum in json.loads(path.read_text("utf-8")):
            summary = f"<details><summary>{html.escape(erratum['place'])}</summary>"
            items.append(nodes.raw("", summary, format="html"))
            check_label = "check (holds): " if erratum["holds"] else "check (FAILS): "
            text_by_label = {
                "printed: ": erratum["printed"],
                "right: ": erratum["right"],
                check_label: erratum["evidence"],
            }
            for label, text in text_by_label.items():
                items.append(nodes.paragraph("", "", nodes.strong("", label), nodes.Text(text)))
            items.append(nodes.raw("", "</details>", format="html"))
        return items


class Claims(SphinxDirective):
    """The directive {claims} PAPER: the judged claims of a paper, from results/claims."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        path = RESULTS / "claims" / "claims.csv"
        self.env.note_dependency(str(path))
        rows = []
        with path.open(encoding="utf-8", newline="") as file:
            for claim in csv.DictReader(file):
                if claim["paper"] == self.arguments[0]:
                    cells = [f"{claim['place']}: “{claim['sentence']}”"]
                    cells += [claim[key] for key in ("ours", "verdict", "source")]
                    rows.append([nodes.paragraph("", cell) for cell in cells])
        heads = ["claim", "ours", "verdict", "source"]
        return [make_table(heads, rows, _CLAIM_COLUMN_WIDTHS)]


def _replace_outside_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace links to files outside docs/ by links to pages of the site.

    source: a list with the text of the page, which is changed in place.
    """
    text = _GALLERY_LINK.sub("](gallery:)", source[0])
    source[0] = text.replace("](../CONTRIBUTING.md)", "](contributing.md)")


def _copy_gallery(app: Sphinx, error: Exception | None) -> None:
    """Copy the gallery of results beside the pages, unless the build failed."""
    if error is None:
        shutil.copyfile(RESULTS / "index.html", Path(app.outdir) / "gallery.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives, the links and the copy of the gallery. Sphinx calls this."""
    app.add_directive("options", Options)
    app.add_directive("errata", Errata)
    app.add_directive("claims", Claims)
    app.connect("source-read", _replace_outside_links)
    app.connect("build-finished", _copy_gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
