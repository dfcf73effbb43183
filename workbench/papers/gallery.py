"""The gallery: every figure and table, printed numbers beside ours, as Markdown and as one page without a network.

Both are assembled from the records that a reproduction leaves (results/<paper>/<artifact>.json, errata.json). On the
page pictures are inlined as SVG and grow on a click, the data behind each stand in a table and can be saved.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.exact.objects import Values
from workbench.explorer.page import document, numbers, write_page
from workbench.io.files import write_whole
from workbench.io.result import Row
from workbench.papers import PAPERS, load

if TYPE_CHECKING:
    from workbench.papers.artifact import Paper


_ERRATA = "place", "printed", "right", "check", "shown"
_COMPARED = "quantity", "place", "printed", "ours", "difference", "verdict"
_FOLD = 12  # comparisons that are shown without a click
_INLINE = 40  # rows of a table that is shown
_INTRODUCTION = """\
# Results

Every figure and table below was recomputed by `make reproduce` (by `make full` where it takes minutes);
printed numbers of the papers stand beside ours, with the difference and a verdict. Tables are CSV, figures
PNG, SVG and PDF. A printed number is never used to compute ours. The same as one page, with pictures that grow
and data one click away: [index.html](index.html).
"""


@dataclass(frozen=True)
class _Shown:
    """A paper of which there are results in a folder."""

    paper: Paper
    folder: Path

    @cached_property
    def records(self) -> list[Row]:
        """Those of its artifacts, in their order."""
        files = [self.folder / f"{name}.json" for name in self.paper.artifacts]
        return [json.loads(file.read_text("utf-8")) for file in files if file.exists()]

    @property
    def errata(self) -> list[list[str]]:
        """A row for each erratum."""
        file = self.folder / "errata.json"
        listed = json.loads(file.read_text("utf-8")) if file.exists() else []
        return [
            [e["place"], e["printed"], e["right"], e["evidence"], "yes" if e["holds"] else "NOT SHOWN"] for e in listed
        ]

    @property
    def agreement(self) -> list[str]:
        """How many printed numbers agree, where there are some."""
        compared = [c for record in self.records for c in record["comparisons"]]
        return [f"{agreement(compared)}."] if compared else []

    def table(self, record: Values) -> list[list[str]]:
        """The cells of an artifact's table, its header first."""
        return list(csv.reader((self.folder / f"{record['name']}.csv").read_text("utf-8").splitlines()))


def gallery(results: Path) -> Path:
    """Assemble results/README.md and results/index.html from the records of every paper; returns the first's path."""
    shown = [_Shown(load(name), results / name) for name in PAPERS if (results / name).is_dir()]
    blocks = [_INTRODUCTION, *(block for entry in shown for block in _markdown(entry))]
    path = results / "README.md"
    write_whole(path, ("\n".join(block.rstrip("\n") + "\n" for block in blocks)).encode())
    sections = [section for entry in shown for section in _sections(entry)]
    page = document("Results: every figure and table, printed numbers beside ours", sections)
    write_page(results / "index.html", page)
    return path


def agreement(records: Sequence[Row]) -> str:
    """How many printed numbers agree, and what is to be said of the rest; those that stand apart after the others."""
    groups: dict[str, list[str]] = {}
    for c in sorted(records, key=lambda c: bool(c.get("apart"))):
        groups.setdefault(c.get("apart", ""), []).append(c["verdict"])
    return "; ".join(_counted(f"printed numbers {apart}".strip(), verdicts) for apart, verdicts in groups.items())


def _counted(what: str, verdicts: Sequence[str]) -> str:
    agree, errata, unexplained = map(verdicts.count, ("agrees", "differs: erratum", "differs: not explained"))
    rest = {
        "differ because of an erratum": errata,
        "differ and are not explained": unexplained,
        "are unexpected": len(verdicts) - agree - errata - unexplained,
    }
    counted = [f"{count} {words}" for words, count in rest.items() if count]
    return ", ".join([f"{agree} of {len(verdicts)} {what} agree", *counted])


def _compared(c: Values) -> list[Any]:
    """The cells of a printed number beside ours, the remark last."""
    difference = 0.0 if abs(c["difference"]) < 1e-12 else c["difference"]
    return [c["what"], c["place"], c["printed"], c["ours"], difference, c["verdict"], c["remark"]]


# Markdown.


def _markdown(shown: _Shown) -> Iterator[str]:
    """Blocks between blank lines."""
    paper = shown.paper
    yield f"## {paper.title}"
    yield paper.citation
    if paper.remarks:
        yield "\n".join(f"* {remark}" for remark in paper.remarks)
    yield from shown.agreement
    for record in shown.records:
        name, title = record["name"], record["title"]
        yield f"### {title}"
        links = f"[{name}.csv]({paper.name}/{name}.csv)"
        if record["figure"]:
            yield f"![{_text(title)}]({paper.name}/{name}.png)"
            also = [f"{name}.{form}" for form in ("svg", "pdf") if (shown.folder / f"{name}.{form}").exists()]
            links += "".join(f", [{file}]({paper.name}/{file})" for file in also)
        else:
            heads, *rows = shown.table(record)
            yield _rows(heads, rows[:_INLINE])
        yield _text(record["caption"])
        yield links
        if compared := record["comparisons"]:
            table = _rows(_COMPARED, map(_in_words, compared))
            folded = f"<details>\n<summary>{agreement(compared)}</summary>", table, "</details>"
            yield from folded if len(compared) > _FOLD else [table]
    if errata := shown.errata:
        yield "### Errata, each with its check"
        yield _rows(_ERRATA, errata)


def _in_words(c: Values) -> list[str]:
    """The cells of `_compared` as Markdown has them, the remark beside the verdict."""
    what, place, theirs, ours, difference, verdict, remark = _compared(c)
    shown = verdict + (f" ({remark})" if remark else "")
    return [what, place, f"{theirs:g}", f"{ours:.9g}", f"{difference:.2g}", shown]


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])


def _text(words: str) -> str:
    """Words as Markdown shows them: no accidental emphasis, cells or tags."""
    return re.sub(r"([\\|*_<`\[\]~])", r"\\\1", words)


# The page.


def _sections(shown: _Shown) -> Iterator[Values]:
    paper = shown.paper
    citation = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r"\1, \2", paper.citation).replace("*", "")  # links written out
    texts = [{"kind": "text", "text": sentence} for sentence in [citation, *paper.remarks, *shown.agreement]]
    yield {"title": paper.title, "level": 1, "id": paper.name, "parts": texts}
    for record in shown.records:
        yield {"title": record["title"], "parts": list(_record_parts(shown, record))}
    if errata := shown.errata:
        yield {"title": f"{paper.title}: errata, each with its check", "parts": [_cells(_ERRATA, errata)]}


def _record_parts(shown: _Shown, record: Values) -> Iterator[Values]:
    if record["figure"]:
        svg = (shown.folder / f"{record['name']}.svg").read_text("utf-8")
        yield {"kind": "image", "title": record["title"], "svg": svg}
    yield {"kind": "text", "text": record["caption"]}
    heads, *rows = shown.table(record)
    behind = record["figure"] or len(rows) > _INLINE
    yield numbers(f"Data: {len(rows)} rows", heads, rows) if behind else _cells(heads, rows)
    if compared := record["comparisons"]:
        heads, cells = [*_COMPARED, "remark"], [*map(_compared, compared)]
        yield numbers(agreement(compared), heads, cells) if len(compared) > _FOLD else _cells(heads, cells)


def _cells(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Row:
    return {"kind": "cells", "heads": list(heads), "rows": [list(row) for row in rows]}
