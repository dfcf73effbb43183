"""The gallery: every figure and table, printed numbers beside ours, as Markdown and as one page without a network.

Both are the same sections, assembled from the records that a reproduction leaves (results/<paper>/<artifact>.json,
errata.json). On the page pictures are inlined as SVG and grow on a click, the data behind each stand in a table and can
be saved; Markdown links the files.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.exact.objects import Values
from workbench.explorer.page import build_document, write_page
from workbench.io.files import write_atomically
from workbench.io.result import Row
from workbench.papers import PAPERS, load_paper

if TYPE_CHECKING:
    from workbench.papers.artifact import Paper


_ERRATA = {
    "place": "place",
    "printed": "printed",
    "right": "right",
    "check": "evidence",
    "shown": "holds",
}
_COMPARED = ("what", "place", "printed", "ours", "difference", "verdict", "remark")
_FOLD = 12  # comparisons that are shown without a click
_INLINE = 40  # rows of a table that is shown
_INTRODUCTION = """\
# Results

Every figure and table below was recomputed by `make reproduce` (by `make full` where it takes minutes);
printed numbers of the papers stand beside ours, with the difference and a verdict. Tables are CSV, figures
PNG, SVG and PDF. A printed number is never used to compute ours. The same as one page, with pictures that grow
and data one click away: [index.html](index.html).
"""


def write_gallery(results: Path) -> Path:
    """Assemble results/README.md and results/index.html from the records of every paper; returns the first's path."""
    shown = [(load_paper(name), results / name) for name in PAPERS if (results / name).is_dir()]
    sections = [section for paper, folder in shown for section in _make_sections(paper, folder)]
    page = build_document("Results: every figure and table, printed numbers beside ours", sections)
    write_page(results / "index.html", page)
    blocks = [
        _INTRODUCTION,
        *(block for section in sections for block in _make_markdown_blocks(section)),
    ]
    path = results / "README.md"
    write_atomically(path, ("\n".join(block.rstrip("\n") + "\n" for block in blocks)).encode())
    return path


def summarise_agreement(records: Sequence[Row]) -> str:
    """How many printed numbers agree, and what is to be said of the rest; those that stand apart after the others."""
    groups: dict[str, list[str]] = {}
    for c in sorted(records, key=lambda c: bool(c.get("apart"))):
        groups.setdefault(c.get("apart", ""), []).append(c["verdict"])
    return "; ".join(
        _count_verdicts(f"printed numbers {apart}".strip(), verdicts)
        for apart, verdicts in groups.items()
    )


def _count_verdicts(what: str, verdicts: Sequence[str]) -> str:
    agree, errata, unexplained = map(
        verdicts.count, ("agrees", "differs: erratum", "differs: not explained")
    )
    rest = {
        "differ because of an erratum": errata,
        "differ and are not explained": unexplained,
        "are unexpected": len(verdicts) - agree - errata - unexplained,
    }
    counted = [f"{count} {words}" for words, count in rest.items() if count]
    return ", ".join([f"{agree} of {len(verdicts)} {what} agree", *counted])


# What both show.


def _make_sections(paper: Paper, folder: Path) -> Iterator[Values]:
    """A paper of which there are results in a folder, its artifacts in their order, its errata."""
    read = [_read_json(folder / f"{name}.json") for name in paper.artifacts]
    records = [record for record in read if record]
    compared = [c for record in records for c in record["comparisons"]]
    citation = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r"\1, \2", paper.citation).replace(
        "*", ""
    )  # links written out
    told = [{**_make_text_part(citation), "markdown": paper.citation}]
    told += [{**_make_text_part(remark), "markdown": f"* {remark}"} for remark in paper.remarks]
    told += [_make_text_part(f"{summarise_agreement(compared)}.")] if compared else []
    yield {"title": paper.title, "level": 1, "id": paper.name, "parts": told}
    for record in records:
        yield {"title": record["title"], "parts": [*_make_artifact_parts(folder, record)]}
    if errata := _read_json(folder / "errata.json"):
        known = [{**e, "holds": "yes" if e["holds"] else "NOT SHOWN"} for e in errata]
        rows = [[e[key] for key in _ERRATA.values()] for e in known]
        yield {
            "title": f"{paper.title}: errata, each with its check",
            "parts": [_make_table_part("", [*_ERRATA], rows)],
        }


def _read_json(file: Path) -> Any:
    """What a file holds, None without one."""
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def _make_text_part(text: str) -> Row:
    return {"kind": "text", "text": text}


def _make_table_part(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, behind: bool = False
) -> Row:
    """A table, or behind a click."""
    return {
        "kind": "numbers" if behind else "cells",
        "title": title,
        "heads": [*heads],
        "rows": [*map(list, rows)],
    }


def _make_artifact_parts(folder: Path, record: Values) -> Iterator[Values]:
    """A picture, its caption, the data, and printed numbers beside ours."""
    name, compared = record["name"], record["comparisons"]
    if record["figure"]:
        svg = (folder / f"{name}.svg").read_text("utf-8")
        yield {
            "kind": "image",
            "title": record["title"],
            "svg": svg,
            "file": f"{folder.name}/{name}.png",
        }
    yield _make_text_part(record["caption"])
    heads, *rows = csv.reader((folder / f"{name}.csv").read_text("utf-8").splitlines())
    files = [
        file for form in ("csv", "svg", "pdf") if (folder / (file := f"{name}.{form}")).exists()
    ]
    links = ", ".join(f"[{file}]({folder.name}/{file})" for file in files)
    data = _make_table_part(
        f"Data: {len(rows)} rows", heads, rows, behind=record["figure"] or len(rows) > _INLINE
    )
    yield {**data, "links": links}
    if compared:
        cells = [[c[key] for key in _COMPARED] for c in compared]
        yield _make_table_part(
            summarise_agreement(compared),
            ["quantity", *_COMPARED[1:]],
            cells,
            behind=len(compared) > _FOLD,
        )


# Markdown.


def _make_markdown_blocks(section: Values) -> Iterator[str]:
    """Blocks between blank lines."""
    yield f"{'##' if section.get('level') else '###'} {section['title']}"
    for part in section["parts"]:
        if part["kind"] == "text":
            yield part.get("markdown") or _escape_markdown(part["text"])
        elif part["kind"] == "image":
            yield f"![{_escape_markdown(part['title'])}]({part['file']})"
        elif part["kind"] == "cells":
            yield _make_markdown_table(part["heads"], part["rows"])
        elif "links" not in part:
            yield f"<details>\n<summary>{part['title']}</summary>"
            yield _make_markdown_table(part["heads"], part["rows"])
            yield "</details>"
        yield from [part["links"]] if "links" in part else []


def _make_markdown_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(map(_escape_markdown, row)) + " |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])


def _escape_markdown(words: Any) -> str:
    """Words as Markdown shows them: no accidental emphasis, cells or tags; numbers in nine digits."""
    return re.sub(
        r"([\\|*_<`\[\]~])", r"\\\1", f"{words:.9g}" if isinstance(words, float) else str(words)
    )
