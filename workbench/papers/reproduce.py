"""Regenerate the figures and tables of the papers into results/, with a gallery that shows them beside the printed.

Every artifact is written whole or not at all, and recorded as soon as it is done, so an interrupted run keeps what it
has: results/<paper>/<artifact>.csv, .png, .svg and .json (caption and comparisons). The gallery results/README.md is
assembled from the .json records of all papers.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.files import write_whole
from workbench.papers import PAPERS
from workbench.papers.artifact import Artifact, Comparison, Erratum, Paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["gallery", "load", "reproduce", "save_figure", "write_artifact", "write_whole"]

Progress = Callable[[str], None]
FOLD = 12  # comparisons that are shown without a click


def load(name: str) -> Paper:
    """The Paper of a name. Raises InvalidRequest."""
    if name not in PAPERS:
        InvalidRequest.must("paper", f"one of {', '.join(PAPERS)}", repr(name))
    paper: Paper = importlib.import_module(PAPERS[name]).PAPER
    return paper


def save_figure(figure: Figure, path: Path) -> None:
    """Save a figure in the format of the path's ending, the same bytes for the same data (no dates, fixed ids)."""
    import io

    import matplotlib as mpl

    form = path.suffix.lstrip(".").lower()
    if form not in ("png", "svg", "pdf"):
        InvalidRequest.must("plot file", "named .png, .svg or .pdf", path.name)
    metadata: dict[str, Any] = {"Software": None} if form == "png" else {"Date": None}
    if form == "pdf":
        metadata = {"CreationDate": None}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "workbench", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=form, dpi=150, metadata=metadata, bbox_inches="tight")
    content = buffer.getvalue()
    if form == "svg":  # matplotlib leaves trailing blanks
        content = b"\n".join(line.rstrip() for line in content.split(b"\n"))
    write_whole(path, content)


def write_artifact(artifact: Artifact, folder: Path) -> None:
    """Write an artifact's table, figure and record into a folder."""
    import matplotlib.pyplot as plt

    table = artifact.table.to_csv(index=False, float_format="%.12g", lineterminator="\n")
    write_whole(folder / f"{artifact.name}.csv", table.encode())
    if artifact.draw is not None:
        figure = artifact.draw(artifact.table)
        save_figure(figure, folder / f"{artifact.name}.png")
        save_figure(figure, folder / f"{artifact.name}.svg")
        plt.close(figure)
    record = {
        "name": artifact.name,
        "title": artifact.title,
        "caption": artifact.caption,
        "figure": artifact.draw is not None,
        "comparisons": [
            {**asdict(c), "difference": c.difference, "verdict": c.verdict, "surprising": c.surprising}
            for c in artifact.comparisons
        ],
    }
    write_whole(folder / f"{artifact.name}.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())


def reproduce(
    papers: Iterable[str] | None = None,
    only: Sequence[str] | None = None,
    results: Path = Path("results"),
    *,
    full: bool = False,
    progress: Progress = lambda line: None,
) -> list[Comparison]:
    """Recompute artifacts and write them, their records and the gallery.

    Args:
        papers: names; all by default.
        only: names of artifacts; all by default. With one paper or several, each named artifact must exist in one.
        results: the folder.
        full: also what takes longer than the default's minutes.
        progress: told one line when an artifact starts, every half minute while it runs, and when it is done.

    Returns:
        The surprising comparisons (empty when everything is as expected).
    """
    chosen = [paper for name in (papers or PAPERS) if not (paper := load(name)).on_demand or full or papers]
    known = [artifact for paper in chosen for artifact in paper.artifacts]
    for name in only or ():
        if name not in known:
            listed = [f"{', '.join(paper.artifacts)} ({paper.name})" for paper in chosen]
            InvalidRequest.must("only", f"one of {'; '.join(listed)}", repr(name))
    large = {artifact for paper in chosen for artifact in paper.only_full} if not full else set()
    for name in large.intersection(only or ()):
        InvalidRequest.must("only", f"given with --full for {name}, which takes minutes", repr(name))
    surprises: list[Comparison] = []
    wanted = [name for name in known if name not in large and (only is None or name in only)]
    total = len(wanted)
    done = 0
    for paper in chosen:
        folder = results / paper.name
        for name, compute in paper.artifacts.items():
            if name not in wanted:
                continue
            done += 1
            progress(f"[{done}/{total}] {paper.name} {name} ...")
            begin = time.perf_counter()
            with _heartbeat(progress, f"[{done}/{total}] {paper.name} {name}"):
                artifact = compute(full)
            seconds = time.perf_counter() - begin
            write_artifact(artifact, folder)
            agree = sum(c.agrees for c in artifact.comparisons)
            count = f", {agree} of {len(artifact.comparisons)} printed numbers agree" if artifact.comparisons else ""
            progress(f"[{done}/{total}] {paper.name} {name} done in {seconds:.1f} s{count}")
            surprises += [c for c in artifact.comparisons if c.surprising]
        if only is None and paper.errata is not None:
            progress(f"{paper.name}: checking the errata ...")
            errata = list(paper.errata())
            content = json.dumps([asdict(e) for e in errata], indent=1, ensure_ascii=False) + "\n"
            write_whole(folder / "errata.json", content.encode())
        gallery(results)
    return surprises


@contextmanager
def _heartbeat(progress: Progress, name: str, every: float = 30.0) -> Iterator[None]:
    """Say every so many seconds that something is still running."""
    done, begin = threading.Event(), time.perf_counter()

    def beat() -> None:
        while not done.wait(every):
            progress(f"{name} ... {time.perf_counter() - begin:.0f} s so far")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def gallery(results: Path) -> Path:
    """Assemble results/README.md from the records of every paper; returns its path."""
    lines = [
        "# Results",
        "",
        "Every figure and table below was recomputed by `make reproduce` (by `make full` where it takes minutes);",
        "printed numbers of the papers stand beside ours, with the difference and a verdict. Tables are CSV, figures",
        "PNG and SVG. A printed number is never used to compute ours.",
        "",
    ]
    for name in PAPERS:
        folder = results / name
        if not folder.is_dir():
            continue
        paper = load(name)
        lines += [f"## {paper.title}", "", paper.citation, ""]
        lines += [f"* {remark}" for remark in paper.remarks] + ([""] if paper.remarks else [])
        files = [folder / f"{artifact}.json" for artifact in paper.artifacts]
        records = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
        if compared := [c for record in records for c in record["comparisons"]]:
            lines += [f"{_agreement(compared)}.", ""]
        for record in records:
            lines += _section(name, record, folder)
        errata = folder / "errata.json"
        if errata.exists():
            lines += _errata([Erratum(**item) for item in json.loads(errata.read_text("utf-8"))])
    while lines[-1] == "":
        lines.pop()
    path = results / "README.md"
    write_whole(path, ("\n".join(lines) + "\n").encode())
    return path


def _section(paper: str, record: dict[str, Any], folder: Path) -> list[str]:
    name = record["name"]
    lines = [f"### {record['title']}", ""]
    links = f"[{name}.csv]({paper}/{name}.csv)"
    if record["figure"]:
        lines += [f"![{_text(record['title'])}]({paper}/{name}.png)", ""]
        links += f", [{name}.svg]({paper}/{name}.svg)"
    else:
        lines += _inline((folder / f"{name}.csv").read_text("utf-8"))
    lines += [_text(record["caption"]), "", links, ""]
    return lines + _comparisons(record["comparisons"])


def _comparisons(records: Sequence[dict[str, Any]]) -> list[str]:
    """Printed numbers beside ours; a long table is folded behind its own summary."""
    if not records:
        return []
    rows = ["| quantity | place | printed | ours | difference | verdict |", "|---|---|---|---|---|---|"]
    for c in records:
        verdict = c["verdict"] + (f" ({c['remark']})" if c["remark"] else "")
        difference = "0" if abs(c["difference"]) < 1e-12 else f"{c['difference']:.2g}"
        rows.append(_row([c["what"], c["place"], f"{c['printed']:g}", f"{c['ours']:.9g}", difference, verdict]))
    if len(records) <= FOLD:
        return [*rows, ""]
    return ["<details>", f"<summary>{_agreement(records)}</summary>", "", *rows, "", "</details>", ""]


def _agreement(records: Sequence[dict[str, Any]]) -> str:
    """How many printed numbers agree, and what is to be said of the rest."""
    verdicts = [c["verdict"] for c in records]
    agree = sum(v == "agrees" for v in verdicts)
    errata = sum(v == "differs: erratum" for v in verdicts)
    words = f"{agree} of {len(records)} printed numbers agree"
    if errata:
        words += f", {errata} differ because of an erratum"
    if len(records) - agree - errata:
        words += f", {len(records) - agree - errata} are unexpected"
    return words


def _errata(errata: Sequence[Erratum]) -> list[str]:
    lines = ["### Errata, each with its check", ""]
    lines += ["| place | printed | right | check | shown |", "|---|---|---|---|---|"]
    lines += [_row([e.place, e.printed, e.right, e.evidence, "yes" if e.holds else "NOT SHOWN"]) for e in errata]
    return [*lines, ""]


def _inline(content: str) -> list[str]:
    """A table without a figure, shown whole (its first 40 rows)."""
    rows = list(csv.reader(content.splitlines()))
    return [_row(rows[0]), "|" + "---|" * len(rows[0]), *map(_row, rows[1:41]), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _text(words: str) -> str:
    """Words as Markdown shows them: no accidental emphasis, cells or tags."""
    return re.sub(r"([\\|*_<`\[\]~])", r"\\\1", words)
