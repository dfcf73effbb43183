"""Recompute the figures and tables of the papers into results/ and write the gallery.

Each artifact is written as soon as it is done, completely or not at all, so an interrupted run
keeps the finished ones. Its files are results/<paper>/<artifact>.csv, .png, .svg, .pdf and .json
(caption and comparisons). The gallery results/README.md is assembled from the JSON files.
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

# The columns that are printed: all except the last two, the remarks, which are long.
SHOWN_COLUMNS = ("paper", "artifact", *COMPARISON_COLUMNS[:-2])


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
    """Recompute figures and tables of the papers and write them (`workbench reproduce`).

    The gallery is written as well.

        >>> import workbench as wb
        >>> numbers = wb.reproduce("modulo-noise", "table1", "results")   # doctest: +SKIP
        >>> [row["what"] for row in numbers if row["surprising"]]         # doctest: +SKIP
        []

    Args:
        papers: Names of papers. Default: all.
        only: Names of artifacts, each of one of the papers, or "errata" for the errata of the
            papers. Default: all.
        results: The folder of the results.
        full: Whether to recompute the artifacts that take longer than minutes too.
        jobs: The number of processes. Default: the number of cores. It does not change the files.
        formats: Formats to write besides CSV, PNG, SVG and PDF: "tex" (tables for LaTeX with
            booktabs), "column" and "page" (PDF figures 3.3 and 7 inches wide).
        progress: Called with (number of finished artifacts, number of artifacts, a line of text)
            when an artifact starts, every half minute, and when it is done.

    Returns:
        One row for every printed number: paper, artifact, what, place, printed, ours, difference,
        tolerance, verdict, surprising (the verdict is not the expected one), remark. After Ctrl-C,
        the rows of the finished artifacts, whose files are written.

    Raises:
        InvalidRequest: A name is unknown (raised before anything is computed).
        NotInstalled: A named artifact needs an extra (raised before anything is computed).
        WorkbenchError: An artifact cannot be computed.
    """
    if jobs is not None:
        integer_reader(1, 1024)(jobs, "jobs")
    for name in formats:
        InvalidRequest.check_choice(FORMATS, "format", name)
    selected_papers = _select_papers(papers, full)
    artifact_names = [only] if isinstance(only, str) else only
    selected_artifacts = _select_artifacts(selected_papers, artifact_names, full)
    artifacts, notes = _drop_uninstalled(selected_artifacts, are_named=bool(artifact_names))

    clock = Deadline()
    for note in notes:
        progress(0, len(artifacts), note)
    wanted_steps = [*artifacts]
    if artifact_names is None or ERRATA in artifact_names:
        wanted_steps += [(paper, ERRATA) for paper in selected_papers if paper.errata]
        # The sort is stable: the errata of a paper follow its artifacts.
        wanted_steps.sort(key=lambda pair: selected_papers.index(pair[0]))

    run = Reproduction(wanted_steps, Path(results), full, progress, formats)
    done_count = len(artifacts)
    try:
        run.run(jobs or count_cores())
    except KeyboardInterrupt:
        # The run is incomplete even if only a check of errata was interrupted.
        done_count = min(len(run.rows_by_artifact), len(artifacts) - 1)
    finally:
        # The finished artifacts are in the gallery even if a later one failed.
        if Path(results).is_dir():
            write_gallery(Path(results))

    sentences = [*notes]
    if run.rows:
        sentences.insert(0, f"{summarise_agreement(run.rows)}.")
    sentences += [f"{paper}: {summary}." for paper, summary in run.errata_summaries.items()]
    return Result(
        title="Printed numbers beside ours",
        rows=run.rows,
        name="printed_numbers",
        columns=SHOWN_COLUMNS,
        draw=lambda table: {"differences": partial(_draw_differences, table)},
        finished=done_count,
        total=len(artifacts),
        seconds=clock.elapsed_seconds,
        sentences=tuple(sentences),
    )


def _select_papers(names: str | Iterable[str] | None, full: bool) -> list[Paper]:
    """Return the named papers, or without names all that this run recomputes.

    Raises InvalidRequest.
    """
    if not names:
        papers = [load_paper(name) for name in PAPERS]
        return [paper for paper in papers if full or not (paper.on_demand or paper.requires_full)]
    papers = [load_paper(name) for name in ([names] if isinstance(names, str) else names)]
    for paper in papers:
        if paper.requires_full and not full:
            rule = f"given with --full for {paper.name}, which takes minutes"
            must("paper", rule, repr(paper.name))
    return papers


def _select_artifacts(
    papers: Sequence[Paper], names: Sequence[str] | None, full: bool
) -> list[tuple[Paper, str]]:
    """Return the named artifacts in the order of the papers, or without names all.

    The name of a paper selects all of its artifacts. Raises InvalidRequest.
    """
    known_artifacts = [(paper, artifact) for paper in papers for artifact in paper.artifacts]
    for name in names or ():
        if any(paper.name == name for paper in papers):
            continue
        if name == ERRATA and any(paper.errata for paper in papers):
            continue
        owners = [paper for paper, artifact in known_artifacts if artifact == name]
        if not owners:
            choices = [f"{', '.join(paper.artifacts)} ({paper.name})" for paper in papers]
            must("only", f"one of {'; '.join(choices)}", repr(name))
        if not full and any(name in paper.only_full for paper in owners):
            must("only", f"given with --full for {name}, which takes minutes", repr(name))
    selected_artifacts = []
    for paper, artifact in known_artifacts:
        is_named = names is None or artifact in names or paper.name in names
        if is_named and (full or artifact not in paper.only_full):
            selected_artifacts.append((paper, artifact))
    return selected_artifacts


def _drop_uninstalled(
    wanted_artifacts: Sequence[tuple[Paper, str]], *, are_named: bool
) -> tuple[list[tuple[Paper, str]], tuple[str, ...]]:
    """Return the artifacts whose extras are installed, and a note for each missing extra.

    An extra is a group of optional packages, such as "learning". If the user named the artifacts
    (`are_named`), a missing extra raises NotInstalled. But if another paper has an artifact of the
    same name that can be computed, there is only a note.
    """
    artifacts = []
    missing = []
    for paper, name in wanted_artifacts:
        extra = paper.required_extras.get(name)
        if extra is None or is_importable(EXTRAS[extra]):
            artifacts.append((paper, name))
        else:
            missing.append((paper, name, extra))
    installed_names = {name for _, name in artifacts}
    names_by_extra: dict[str, list[str]] = {}
    for paper, name, extra in missing:
        artifact_label = f"{paper.name} {name}"
        if are_named and name not in installed_names:
            require_extra(extra, artifact_label)
        names_by_extra.setdefault(extra, []).append(artifact_label)
    notes = []
    for extra, names in names_by_extra.items():
        command = install_command(extra)
        notes.append(f"Omitted: {', '.join(names)}, which need the extra {extra!r}: {command}.")
    return artifacts, tuple(notes)


def _draw_differences(table: pd.DataFrame) -> Figure | None:
    """Draw |ours - printed| in units of the tolerance, with a marker for each printed number."""
    if table.empty:
        return None
    drawing = Drawing(read_declaration("agreement")["figure"])
    return draw_declared_figure(drawing, table.reset_index(names="number"))
