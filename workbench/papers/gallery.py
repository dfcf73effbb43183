"""The gallery as one page without a network, results/index.html: every figure and table, printed numbers beside ours.

Assembled from the same records as results/README.md (`workbench.papers.reproduce`): pictures are inlined as SVG and
grow on a click, the data behind each stand in a table and can be saved.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.explorer.page import document, numbers, write_page

if TYPE_CHECKING:
    from workbench.papers.artifact import Erratum, Paper

__all__ = ["FOLD", "Shown", "agreement", "write_index"]

Shown = tuple["Paper", Sequence[dict[str, Any]], Sequence["Erratum"]]  # a paper, the records of its artifacts, errata
_HEADS = ["quantity", "place", "printed", "ours", "difference", "verdict", "remark"]
FOLD = 12  # comparisons that are shown without a click


def write_index(results: Path, shown: Sequence[Shown]) -> Path:
    """Write results/index.html; returns its path."""
    sections = [section for entry in shown for section in _paper(results, *entry)]
    path = results / "index.html"
    write_page(path, document("Results: every figure and table, printed numbers beside ours", sections))
    return path


def _paper(results: Path, paper: Paper, records: Sequence[dict[str, Any]], errata: Sequence[Erratum]) -> list[Any]:
    compared = [c for record in records for c in record["comparisons"]]
    words = [_plain(paper.citation), *paper.remarks, *([f"{agreement(compared)}."] if compared else [])]
    head = {
        "title": paper.title,
        "level": 1,
        "id": paper.name,
        "parts": [{"kind": "text", "text": sentence} for sentence in words],
    }
    sections = [head, *(_artifact(results / paper.name, record) for record in records)]
    if errata:
        rows = [[e.place, e.printed, e.right, e.evidence, "yes" if e.holds else "NOT SHOWN"] for e in errata]
        heads = ["place", "printed", "right", "check", "shown"]
        sections.append({"title": f"{paper.title}: errata, each with its check", "parts": [_table(heads, rows)]})
    return sections


def _artifact(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    name, parts = record["name"], []
    if record["figure"]:
        svg = (folder / f"{name}.svg").read_text("utf-8")
        parts.append({"kind": "image", "title": record["title"], "svg": svg})
    heads, *rows = csv.reader((folder / f"{name}.csv").read_text("utf-8").splitlines())
    parts.append({"kind": "text", "text": record["caption"]})
    parts.append(
        numbers(f"Data: {len(rows)} rows", heads, rows) if record["figure"] or len(rows) > 40 else _table(heads, rows)
    )
    compared = [
        [
            c["what"],
            c["place"],
            c["printed"],
            c["ours"],
            0.0 if abs(c["difference"]) < 1e-12 else c["difference"],
            c["verdict"],
            c["remark"],
        ]
        for c in record["comparisons"]
    ]
    if compared:
        words = agreement(record["comparisons"])
        parts.append(numbers(words, _HEADS, compared) if len(compared) > FOLD else _table(_HEADS, compared))
    return {"title": record["title"], "parts": parts}


def agreement(records: Sequence[dict[str, Any]]) -> str:
    """How many printed numbers agree, and what is to be said of the rest; those that stand apart after the others."""
    groups: dict[str, list[str]] = {}
    for c in sorted(records, key=lambda c: bool(c.get("apart"))):
        groups.setdefault(c.get("apart", ""), []).append(c["verdict"])
    return "; ".join(_counted(f"printed numbers {apart}".strip(), verdicts) for apart, verdicts in groups.items())


def _counted(what: str, verdicts: Sequence[str]) -> str:
    agree = sum(v == "agrees" for v in verdicts)
    errata = sum(v == "differs: erratum" for v in verdicts)
    unexplained = sum(v == "differs: not explained" for v in verdicts)
    words = f"{agree} of {len(verdicts)} {what} agree"
    if errata:
        words += f", {errata} differ because of an erratum"
    if unexplained:
        words += f", {unexplained} differ and are not explained"
    if unexpected := len(verdicts) - agree - errata - unexplained:
        words += f", {unexpected} are unexpected"
    return words


def _plain(markdown: str) -> str:
    """A citation without emphasis, its links written out."""
    return re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r"\1, \2", markdown).replace("*", "")


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    return {"kind": "cells", "heads": list(heads), "rows": [list(row) for row in rows]}
