"""Regenerate the figures and tables of the papers into results/, with a gallery that shows them beside the printed.

Every artifact is written whole or not at all, and recorded as soon as it is done, so an interrupted run keeps what it
has: results/<paper>/<artifact>.csv, .png, .svg, .pdf and .json (caption and comparisons). The gallery
results/README.md is assembled from the .json records of all papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest, must
from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.io.extras import EXTRAS, install_command, is_importable, require_extra
from workbench.io.result import Progress, Result, ignore_progress
from workbench.papers import PAPERS, load_paper
from workbench.papers.artifact import FORMATS, Paper, read_declaration
from workbench.papers.gallery import summarise_agreement, write_gallery
from workbench.papers.steps import COMPARISON_COLUMNS, ERRATA, Reproduction
from workbench.pipeline.option import integer_reader
from workbench.solvers.search import Deadline
from workbench.sweeps.workers import count_cores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHOWN_COLUMNS = ("paper", "artifact", *COMPARISON_COLUMNS[:-2])  # remarks are long


def reproduce(
    papers: str | Iterable[str] | None = None,
    only: str | Sequence[str] | None = None,
    results: str | Path = Path("results"),
    *,
    full: bool = False,
    jobs: int | None = None,
    formats: Collection[str] = (),
    progress: Progress = ignore_progress,
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
        jobs: processes of this machine, all its cores by default; the files are the same bytes with any number.
        formats: "tex" (tables for LaTeX, with booktabs), "column" and "page" (PDF, 3.3 and 7 inches wide, where a
            figure has room), besides CSV, PNG, SVG and PDF.
        progress: told (artifacts done, artifacts, a line) when one starts (of a single process), every half minute,
            and when it is done.

    Returns:
        One row for every printed number: paper, artifact, what, place, printed, ours, difference, tolerance, verdict,
        surprising (not as expected), remark. After Ctrl-C those of the artifacts finished so far; these are written.

    Raises:
        InvalidRequest: an unknown name, NotInstalled: a named artifact needs an extra; both before anything runs.
        WorkbenchError: an artifact cannot be computed.
    """
    if jobs is not None:
        integer_reader(1, 1024)(jobs, "jobs")
    for form in formats:
        InvalidRequest.check_choice(FORMATS, "format", form)
    chosen = _select_papers(papers, full)
    artifacts = [only] if isinstance(only, str) else only
    tasks, notes = _drop_uninstalled(
        _select_artifacts(chosen, artifacts, full), named=bool(artifacts)
    )
    clock = Deadline()
    for note in notes:
        progress(0, len(tasks), note)
    errata = [(paper, ERRATA) for paper in chosen if paper.errata and artifacts is None]
    wanted = sorted(
        [*tasks, *errata], key=lambda pair: chosen.index(pair[0])
    )  # after the artifacts of a paper
    run = Reproduction(wanted, Path(results), full, progress, formats)
    done = len(tasks)
    try:
        run.run(jobs or count_cores())
    except KeyboardInterrupt:
        done = min(len(run.rows_by_artifact), len(tasks) - 1)  # an interrupted check of errata, too
    finally:  # an artifact that fails costs none of those before it
        if Path(results).is_dir():
            write_gallery(Path(results))
    return Result(
        "Printed numbers beside ours",
        run.rows,
        "printed_numbers",
        SHOWN_COLUMNS,
        lambda table: {"differences": partial(_draw_differences, table)},
        done,
        len(tasks),
        clock.elapsed_seconds,
        ((f"{summarise_agreement(run.rows)}.",) if run.rows else ()) + notes,
    )


def _select_papers(papers: str | Iterable[str] | None, full: bool) -> list[Paper]:
    """Load the papers named; without names, all that this run recomputes. Raises InvalidRequest."""
    if not papers:
        return [
            paper
            for paper in map(load_paper, PAPERS)
            if full or not (paper.on_demand or paper.requires_full)
        ]
    chosen = [load_paper(name) for name in ([papers] if isinstance(papers, str) else papers)]
    for paper in chosen:
        if paper.requires_full and not full:
            must(
                "paper",
                f"given with --full for {paper.name}, which takes minutes",
                repr(paper.name),
            )
    return chosen


def _select_artifacts(
    chosen: Sequence[Paper], artifacts: Sequence[str] | None, full: bool
) -> list[tuple[Paper, str]]:
    """The artifacts named, by themselves or as those of a paper, in the papers' order; without names, all. Raises
    InvalidRequest."""
    tasks = [(paper, name) for paper in chosen for name in paper.artifacts]
    for name in artifacts or ():
        if name in [paper.name for paper in chosen]:  # which stands for all of its artifacts
            continue
        papers = [paper for paper, other in tasks if other == name]
        if not papers:
            listed = [f"{', '.join(paper.artifacts)} ({paper.name})" for paper in chosen]
            must("only", f"one of {'; '.join(listed)}", repr(name))
        if not full and any(name in paper.only_full for paper in papers):
            must("only", f"given with --full for {name}, which takes minutes", repr(name))
    return [
        (paper, name)
        for paper, name in tasks
        if (full or name not in paper.only_full)
        and (artifacts is None or {name, paper.name} & {*artifacts})
    ]


def _drop_uninstalled(
    wanted: Sequence[tuple[Paper, str]], *, named: bool
) -> tuple[list[tuple[Paper, str]], tuple[str, ...]]:
    """Those whose extras are installed, and one sentence for every extra that is not. Raises NotInstalled, before
    anything runs, where the user named an artifact that lacks one."""
    lacking = [
        pair
        for pair in wanted
        if pair[1] in pair[0].needs and not is_importable(EXTRAS[pair[0].needs[pair[1]]])
    ]
    tasks = [pair for pair in wanted if pair not in lacking]
    left_out: dict[str, list[str]] = {}
    for paper, name in lacking:
        extra, what = paper.needs[name], f"{paper.name} {name}"
        if named and name not in [other for _, other in tasks]:
            require_extra(extra, what)
        left_out.setdefault(extra, []).append(what)
    return tasks, tuple(
        f"Left out: {', '.join(names)}, which need the extra {extra!r}: {install_command(extra)}."
        for extra, names in left_out.items()
    )


def _draw_differences(table: pd.DataFrame) -> Figure | None:
    """|ours - printed| in units of the tolerance, one mark for every printed number."""
    return (
        None
        if table.empty
        else draw_declared_figure(
            Drawing(read_declaration("agreement")["figure"]), table.reset_index(names="number")
        )
    )
