"""Write the gallery: every figure and table, with printed numbers next to ours.

The gallery is written as Markdown (README.md) and as one HTML page that needs no network. Both have
the same sections, which are assembled from the files that a reproduction writes
(results/<paper>/<artifact>.json, errata.json). The HTML page contains the pictures as SVG, which
grow on a click, and the data as tables that can be saved. Markdown links to the files.

A section is a dictionary with a title and parts. The section of a paper also has "level": 1 and an
"id", and begins a chapter (## in Markdown). For example:

    {"title": "Fig. 2", "parts": [
        {"kind": "image", "title": "Fig. 2", "svg": "<svg ...", "file": "dql/fig2.png"},
        {"kind": "text", "text": "Computed at ε = 1."},
        {"kind": "cells", "title": "", "heads": ["x", "y"], "rows": [["0", "1"]]}]}

The kind "numbers" is a table that is shown on a click. A part may have "markdown", its text in
Markdown, and "links", which only Markdown shows.
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

# The heads of the table of errata -> the keys of the records of `check_errata`.
_ERRATA_KEYS = {
    "place": "place",
    "printed": "printed",
    "right": "right",
    "check": "evidence",
    "shown": "holds",
}
# The columns of a table of comparisons.
_COMPARISON_KEYS = ("what", "place", "printed", "ours", "difference", "verdict", "remark")
# The heads of that table.
_COMPARISON_HEADS = ("quantity", *_COMPARISON_KEYS[1:])

_MAX_OPEN_COMPARISONS = 12  # A longer table of comparisons is shown on a click.
_MAX_OPEN_ROWS = 45  # A longer table of data is shown on a click.
_INTRODUCTION = """\
# Results

Every figure and table below was recomputed by `make reproduce`, or by `make full` if it takes
minutes. Printed numbers of the papers stand beside ours, with the difference and a verdict. A
printed number is never used to compute ours. Tables are CSV files, figures are PNG, SVG and PDF
files. The same gallery as one page, where pictures grow on a click and the data can be shown:
[index.html](index.html).
"""


def write_gallery(results: Path) -> Path:
    """Write results/README.md and results/index.html, and return the path of README.md.

    Args:
        results: The folder of the results.
    """
    sections: list[Values] = []
    for name in PAPERS:
        if (results / name).is_dir():
            sections += _make_sections(load_paper(name), results / name)
    page = build_document("Results: every figure and table, printed numbers beside ours", sections)
    write_page(results / "index.html", page)
    blocks = [_INTRODUCTION]
    for section in sections:
        blocks += _make_markdown_blocks(section)
    path = results / "README.md"
    write_atomically(path, "\n".join(block.rstrip("\n") + "\n" for block in blocks).encode())
    return path


def summarise_agreement(records: Sequence[Row]) -> str:
    """Return how many printed numbers agree and differ.

    Numbers whose agreement is no evidence have a reason in "apart", such as "beside those of a
    stand-in fitted to them". They are counted separately, after the others.

    Args:
        records: The comparisons as records (`Comparison.to_record`). Only "verdict" and "apart" are
            used. "apart" may be missing.

    Returns:
        A text without a full stop, such as "9 of 10 printed numbers agree, 1 differ because of an
        erratum".
    """
    verdicts_by_reason: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: bool(record.get("apart"))):
        verdicts_by_reason.setdefault(record.get("apart", ""), []).append(record["verdict"])
    counts = []
    for reason, verdicts in verdicts_by_reason.items():
        counts.append(_count_verdicts(f"printed numbers {reason}".strip(), verdicts))
    return "; ".join(counts)


def _count_verdicts(quantity: str, verdicts: Sequence[str]) -> str:
    """Return how many numbers agree and differ. `quantity` names them: "printed numbers"."""
    agreeing = verdicts.count("agrees")
    errata = verdicts.count("differs: erratum")
    unexplained = verdicts.count("differs: not explained")
    # All others are unexpected: "DIFFERS", and "agrees, although it is said to differ".
    counts = {
        "differ because of an erratum": errata,
        "differ and are not explained": unexplained,
        "are unexpected": len(verdicts) - agreeing - errata - unexplained,
    }
    parts = [f"{agreeing} of {len(verdicts)} {quantity} agree"]
    parts += [f"{count} {outcome}" for outcome, count in counts.items() if count]
    return ", ".join(parts)


# The sections, which Markdown and HTML share.


def _make_sections(paper: Paper, folder: Path) -> Iterator[Values]:
    """Yield the sections of a paper: the paper, its artifacts in order, its errata.

    Artifacts and errata without a file in the folder are omitted.
    """
    loaded_records = [_read_json(folder / f"{name}.json") for name in paper.artifacts]
    records = [record for record in loaded_records if record]
    comparisons = [row for record in records for row in record["comparisons"]]
    # HTML shows plain text, so the citation's links are written out and its emphasis is removed.
    citation = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r"\1, \2", paper.citation).replace("*", "")
    parts = [{**_make_text_part(citation), "markdown": paper.citation}]
    parts += [{**_make_text_part(remark), "markdown": f"* {remark}"} for remark in paper.remarks]
    if comparisons:
        parts.append(_make_text_part(f"{summarise_agreement(comparisons)}."))
    yield {"title": paper.title, "level": 1, "id": paper.name, "parts": parts}

    for record in records:
        yield {"title": record["title"], "parts": [*_make_artifact_parts(folder, record)]}

    errata = _read_json(folder / "errata.json")
    if errata:
        rows = []
        for erratum in errata:
            cells = {**erratum, "holds": "yes" if erratum["holds"] else "NOT SHOWN"}
            rows.append([cells[key] for key in _ERRATA_KEYS.values()])
        table = _make_table_part("", [*_ERRATA_KEYS], rows)
        yield {"title": f"{paper.title}: errata with their checks", "parts": [table]}


def _read_json(file: Path) -> Any:
    """Return the content of a JSON file, or None if it does not exist."""
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def _make_text_part(text: str) -> Row:
    """Return the part for a paragraph of plain text."""
    return {"kind": "text", "text": text}


def _make_table_part(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, is_folded: bool = False
) -> Row:
    """Return the part for a table. A folded table is shown on a click."""
    return {
        "kind": "numbers" if is_folded else "cells",
        "title": title,
        "heads": [*heads],
        "rows": [*map(list, rows)],
    }


def _make_artifact_parts(folder: Path, record: Values) -> Iterator[Values]:
    """Yield the parts of an artifact: picture, caption, data, and comparisons.

    record: the content of results/<paper>/<artifact>.json.
    """
    name = record["name"]
    comparisons = record["comparisons"]
    if record["figure"]:
        yield {
            "kind": "image",
            "title": record["title"],
            "svg": (folder / f"{name}.svg").read_text("utf-8"),
            "file": f"{folder.name}/{name}.png",
        }
    yield _make_text_part(record["caption"])
    heads, *rows = csv.reader((folder / f"{name}.csv").read_text("utf-8").splitlines())
    files = [f"{name}.{suffix}" for suffix in ("csv", "svg", "pdf")]
    links = [f"[{file}]({folder.name}/{file})" for file in files if (folder / file).exists()]
    is_folded = record["figure"] or len(rows) > _MAX_OPEN_ROWS
    data = _make_table_part(f"Data: {len(rows)} rows", heads, rows, is_folded=is_folded)
    yield {**data, "links": ", ".join(links)}
    if comparisons:
        yield _make_table_part(
            summarise_agreement(comparisons),
            _COMPARISON_HEADS,
            [[row[key] for key in _COMPARISON_KEYS] for row in comparisons],
            is_folded=len(comparisons) > _MAX_OPEN_COMPARISONS,
        )


# Markdown.


def _make_markdown_blocks(section: Values) -> Iterator[str]:
    """Yield the Markdown blocks of a section, which blank lines separate."""
    yield f"{'##' if section.get('level') else '###'} {section['title']}"
    for part in section["parts"]:
        if part["kind"] == "text":
            yield part.get("markdown") or _escape_markdown(part["text"])
        elif part["kind"] == "image":
            yield f"![{_escape_markdown(part['title'])}]({part['file']})"
        elif part["kind"] == "cells":
            yield _make_markdown_table(part["heads"], part["rows"])
        elif "links" not in part:
            # A folded table of comparisons. The data of an artifact are only linked.
            yield f"<details>\n<summary>{part['title']}</summary>"
            yield _make_markdown_table(part["heads"], part["rows"])
            yield "</details>"
        if "links" in part:
            yield part["links"]


def _make_markdown_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table with one line for each row."""
    lines = [f"| {' | '.join(map(_escape_markdown, row))} |" for row in (heads, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(heads)}", *lines[1:]])


def _escape_markdown(cell: Any) -> str:
    """Return the text of a cell with the special characters of Markdown escaped.

    Floats are written with nine significant digits.
    """
    text = f"{cell:.9g}" if isinstance(cell, float) else str(cell)
    return re.sub(r"([\\|*_<`\[\]~])", r"\\\1", text)
