"""Show data of the package and of results/ on pages of the documentation, when it is built.

    directive            shows
    {options} FAMILY     the table of the options of a family
    {errata} PAPER       the errata of a paper, each with its check
    {claims} PAPER       the judged claims of a paper
    {thumbnails}         a small picture of every figure in results/, which opens the figure

The gallery of results (results/index.html) is copied to the site as gallery.html, and the figures
to the folder results of the site. The page of a notebook gets a link to its .ipynb file.
"""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import jupytext
import matplotlib.image
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

_THUMBNAIL_SCALE = 0.4  # A figure is 1400 pixels wide or less, so a thumbnail has up to 560 pixels.

# The sentence at the top of a notebook, and the link to it that its page on the site adds.
_NOTEBOOK_SENTENCE = "in JupyterLab.\n"
_NOTEBOOK_LINK = "in JupyterLab. Or download [`{name}.ipynb`](notebook:{name}.ipynb).\n"

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


class Thumbnails(SphinxDirective):
    """The directive {thumbnails}: a small picture of every figure in results/."""

    def run(self) -> list[nodes.Node]:
        """Return links with pictures. `_copy_results` writes the files that they name."""
        cards = ""
        for path in _list_figures():
            self.env.note_dependency(str(path))
            title = html.escape(_read_figure_title(path))
            name = path.relative_to(RESULTS.parent).as_posix()
            cards += (
                f'<a href="{name}"><img loading="lazy" src="{_name_thumbnail(name)}" alt="">'
                f"<span>{title}</span></a>"
            )
        return [nodes.raw("", f'<div class="thumbnails">{cards}</div>', format="html")]


def _list_figures() -> list[Path]:
    """Return the figures of all results, sorted by folder."""
    return sorted(RESULTS.glob("*/*.png"))


def _read_figure_title(path: Path) -> str:
    """Return the title of a figure, which is in the record beside it, after the name of its folder.

    A figure without a record is titled by the name of its file.
    """
    record_path = path.with_suffix(".json")
    title = path.stem.replace("_", " ")
    if record_path.exists():
        title = json.loads(record_path.read_text("utf-8")).get("title", title)
    return f"{path.parent.name}: {title}"


def _name_thumbnail(name: str) -> str:
    """Return the address of the thumbnail of a figure, for example "results/dql/small-fig2.png"."""
    folder, _, file_name = name.rpartition("/")
    return f"{folder}/small-{file_name}"


def _replace_outside_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace links to files outside docs/ by links to pages of the site.

    The page of a notebook also gets a link to the file that `_copy_results` writes.

    source: a list with the text of the page, which is changed in place.
    """
    text = _GALLERY_LINK.sub("](gallery:)", source[0])
    text = text.replace("](../CONTRIBUTING.md)", "](contributing.md)")
    if name.startswith("notebooks/"):
        link = _NOTEBOOK_LINK.format(name=Path(name).name)
        text = text.replace(_NOTEBOOK_SENTENCE, link, 1)
    source[0] = text


def _copy_results(app: Sphinx, error: Exception | None) -> None:
    """Write the gallery, the figures and the notebooks of the site, unless the build failed."""
    if error is not None:
        return
    site = Path(app.outdir)
    shutil.copyfile(RESULTS / "index.html", site / "gallery.html")
    for path in sorted(Path(app.srcdir, "notebooks").glob("*.md")):
        notebook = jupytext.read(path, fmt="md:myst")
        jupytext.write(notebook, site / "notebooks" / f"{path.stem}.ipynb")
    for path in _list_figures():
        name = path.relative_to(RESULTS.parent).as_posix()
        copy = site / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        matplotlib.image.thumbnail(
            str(path), str(site / _name_thumbnail(name)), scale=_THUMBNAIL_SCALE
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives, the links and the copies of results. Sphinx calls this."""
    app.add_directive("options", Options)
    app.add_directive("errata", Errata)
    app.add_directive("claims", Claims)
    app.add_directive("thumbnails", Thumbnails)
    app.connect("source-read", _replace_outside_links)
    app.connect("build-finished", _copy_results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
