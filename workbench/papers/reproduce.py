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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.io.extras import EXTRAS, need, present
from workbench.io.figures import save_figure
from workbench.io.files import write_whole
from workbench.io.result import Plots, Result, Row
from workbench.papers import PAPERS
from workbench.papers.artifact import Artifact, Erratum, Paper, rounded
from workbench.papers.gallery import FOLD, Shown, agreement, write_index

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["gallery", "load", "reproduce", "write_artifact"]

Progress = Callable[[int, int, str], None]
COLUMNS = ("paper", "artifact", "what", "place", "printed", "ours", "difference", "tolerance", "verdict", "surprising")


def load(name: str) -> Paper:
    """The Paper of a name. Raises InvalidRequest."""
    if name not in PAPERS:
        InvalidRequest.must("paper", f"one of {', '.join(PAPERS)}", repr(name))
    paper: Paper = importlib.import_module(PAPERS[name]).PAPER
    return paper


def write_artifact(artifact: Artifact, folder: Path) -> None:
    """Write an artifact's table, figure and record into a folder."""
    import matplotlib.pyplot as plt

    shown = artifact.shown()
    table = shown.to_csv(index=False, float_format="%.12g", lineterminator="\n")
    write_whole(folder / f"{artifact.name}.csv", table.encode())
    if artifact.draw is not None:
        figure = artifact.draw(shown)
        save_figure(figure, folder / f"{artifact.name}.png")
        save_figure(figure, folder / f"{artifact.name}.svg")
        plt.close(figure)
    record = {
        "name": artifact.name,
        "title": artifact.title,
        "caption": artifact.caption,
        "figure": artifact.draw is not None,
        "comparisons": [
            {
                **asdict(c),
                "ours": c.shown,
                "difference": rounded(c.shown - c.printed, 4),
                "tolerance": float(f"{c.tolerance:.6g}"),
                "verdict": c.verdict,
                "surprising": c.surprising,
            }
            for c in artifact.comparisons
        ],
    }
    write_whole(folder / f"{artifact.name}.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())


def reproduce(
    papers: str | Iterable[str] | None = None,
    only: str | Sequence[str] | None = None,
    results: str | Path = Path("results"),
    *,
    full: bool = False,
    progress: Progress = lambda done, total, what: None,
) -> Result:
    """Recompute figures and tables of the papers; write them, their records and the gallery (`workbench reproduce`).

        >>> import workbench as wb
        >>> found = wb.reproduce("modulo-noise", "table1", "results")     # doctest: +SKIP
        >>> [row["what"] for row in found if row["surprising"]]           # doctest: +SKIP
        []

    Args:
        papers: names; all by default.
        only: names of artifacts; all by default. With one paper or several, each named artifact must exist in one.
        results: the folder.
        full: also what takes longer than the default's minutes.
        progress: told (artifacts done, artifacts, a line) when one starts, every half minute, and when it is done.

    Returns:
        One row for every printed number: paper, artifact, what, place, printed, ours, difference, tolerance, verdict,
        surprising (not as expected), remark. After Ctrl-C those of the artifacts finished so far; these are written.

    Raises:
        InvalidRequest: an unknown name, NotInstalled: a named artifact needs an extra; both before anything runs.
        WorkbenchError: an artifact cannot be computed.
    """
    names = [papers] if isinstance(papers, str) else list(papers or ())
    artifacts = [only] if isinstance(only, str) else only
    chosen = [paper for name in (names or PAPERS) if not (paper := load(name)).on_demand or full or names]
    known = [artifact for paper in chosen for artifact in paper.artifacts]
    for name in artifacts or ():
        if name not in known:
            listed = [f"{', '.join(paper.artifacts)} ({paper.name})" for paper in chosen]
            InvalidRequest.must("only", f"one of {'; '.join(listed)}", repr(name))
    large = {artifact for paper in chosen for artifact in paper.only_full} if not full else set()
    for name in large.intersection(artifacts or ()):
        InvalidRequest.must("only", f"given with --full for {name}, which takes minutes", repr(name))
    wanted = [name for name in known if name not in large and (artifacts is None or name in artifacts)]
    tasks = [(paper, name) for paper in chosen for name in paper.artifacts if name in wanted]
    lacking = [(paper, name) for paper, name in tasks if name in paper.needs and not present(EXTRAS[paper.needs[name]])]
    tasks = [task for task in tasks if task not in lacking]
    for paper, name in lacking if artifacts else ():
        if name not in [other for _, other in tasks]:  # named by the user: refused before anything runs
            need(paper.needs[name], f"{paper.name} {name}")
    notes = tuple(_left_out(lacking))
    rows: list[Row] = []
    done, begin = 0, time.perf_counter()
    for note in notes:
        progress(0, len(tasks), note)
    try:
        for paper in chosen:
            for name in [name for other, name in tasks if other is paper]:
                label = f"[{done + 1}/{len(tasks)}] {paper.name} {name}"
                rows += _artifact(paper, name, Path(results), full, partial(progress, done, len(tasks)), label)
                done += 1
            if artifacts is None and paper.errata is not None:
                progress(done, len(tasks), f"{paper.name}: checking the errata ...")
                errata = list(paper.errata())
                content = json.dumps([asdict(e) for e in errata], indent=1, ensure_ascii=False) + "\n"
                write_whole(Path(results) / paper.name / "errata.json", content.encode())
    except KeyboardInterrupt:
        done = min(done, len(tasks) - 1)  # an interrupted check of errata, too
    finally:  # an artifact that fails costs none of those before it
        if Path(results).is_dir():
            gallery(Path(results))
    sentences = ((f"{agreement(rows)}.",) if rows else ()) + notes
    return Result("Printed numbers beside ours", rows, "printed_numbers", COLUMNS, _plots, done, len(tasks),
                  time.perf_counter() - begin, sentences)  # fmt: skip


def _left_out(lacking: Sequence[tuple[Paper, str]]) -> Iterator[str]:
    """One sentence for every missing extra."""
    for extra in sorted({paper.needs[name] for paper, name in lacking}):
        names = ", ".join(f"{paper.name} {name}" for paper, name in lacking if paper.needs[name] == extra)
        yield f"Left out: {names}, which need the extra {extra!r}: pip install 'dp-workbench[{extra}]'."


def _artifact(paper: Paper, name: str, results: Path, full: bool, tell: Callable[[str], None], label: str) -> list[Row]:
    """Compute one artifact and write it; a row for every printed number in it."""
    tell(f"{label} ...")
    begin = time.perf_counter()
    with _heartbeat(tell, label):
        kept = results / paper.name / f"{name}.partial.jsonl"
        artifact = paper.artifacts[name](full, kept) if name in paper.resumed else paper.artifacts[name](full)
    seconds = time.perf_counter() - begin
    write_artifact(artifact, results / paper.name)
    kept.unlink(missing_ok=True)
    agree = sum(c.agrees for c in artifact.comparisons)
    count = f", {agree} of {len(artifact.comparisons)} printed numbers agree" if artifact.comparisons else ""
    tell(f"{label} done in {seconds:.1f} s{count}")
    return [
        {
            "paper": paper.name, "artifact": name, "what": c.what, "place": c.place, "printed": c.printed,
            "ours": c.ours, "difference": c.difference, "tolerance": c.tolerance, "verdict": c.verdict,
            "surprising": c.surprising, "remark": c.remark,
        }
        for c in artifact.comparisons
    ]  # fmt: skip


def _plots(table: pd.DataFrame) -> Plots:
    return {"differences": partial(_draw, table)}


def _draw(table: pd.DataFrame) -> Figure | None:
    """|ours - printed| in units of the tolerance, one mark for every printed number."""
    if table.empty:
        return None
    from workbench.io.figures import COLOURS, legend_below, panels

    figure, (axis,) = panels(width=7.2)
    units = (table["difference"].abs() / table["tolerance"]).clip(lower=1e-3)
    for k, (verdict, part) in enumerate(table.groupby("verdict", sort=False)):
        axis.plot(part.index, units[part.index], "o", color=COLOURS[k % len(COLOURS)], label=str(verdict))
    axis.axhline(1.0, color="#999999", linewidth=0.8)
    axis.set_yscale("log")
    axis.set_xlabel("printed numbers")
    axis.set_ylabel("|ours - printed| / tolerance")
    legend_below(figure, [axis])
    return figure


@contextmanager
def _heartbeat(tell: Callable[[str], None], name: str, every: float = 30.0) -> Iterator[None]:
    """Say every so many seconds that something is still running."""
    done, begin = threading.Event(), time.perf_counter()

    def beat() -> None:
        while not done.wait(every):
            tell(f"{name} ... {time.perf_counter() - begin:.0f} s so far")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def gallery(results: Path) -> Path:
    """Assemble results/README.md and results/index.html from the records of every paper; returns the first's path."""
    lines = [
        "# Results",
        "",
        "Every figure and table below was recomputed by `make reproduce` (by `make full` where it takes minutes);",
        "printed numbers of the papers stand beside ours, with the difference and a verdict. Tables are CSV, figures",
        "PNG and SVG. A printed number is never used to compute ours. The same as one page, with pictures that grow",
        "and data one click away: [index.html](index.html).",
        "",
    ]
    shown = list(_records(results))
    for paper, records, errata in shown:
        lines += [f"## {paper.title}", "", paper.citation, ""]
        lines += [f"* {remark}" for remark in paper.remarks] + ([""] if paper.remarks else [])
        if compared := [c for record in records for c in record["comparisons"]]:
            lines += [f"{agreement(compared)}.", ""]
        for record in records:
            lines += _section(paper.name, record, results / paper.name)
        if errata:
            lines += _errata(errata)
    while lines[-1] == "":
        lines.pop()
    path = results / "README.md"
    write_whole(path, ("\n".join(lines) + "\n").encode())
    write_index(results, shown)
    return path


def _records(results: Path) -> Iterator[Shown]:
    """The papers of which there are results, with the records of their artifacts and their errata."""
    for name in PAPERS:
        folder = results / name
        if not folder.is_dir():
            continue
        paper = load(name)
        files = [folder / f"{artifact}.json" for artifact in paper.artifacts]
        records = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
        errata = folder / "errata.json"
        listed = json.loads(errata.read_text("utf-8")) if errata.exists() else []
        yield paper, records, [Erratum(**item) for item in listed]


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
    return ["<details>", f"<summary>{agreement(records)}</summary>", "", *rows, "", "</details>", ""]


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
