"""Recompute the figures and tables of the papers into results/ and write the gallery.

Each artifact is written as soon as it is done, completely or not at all, so an interrupted run
keeps the finished ones. Its files are results/<paper>/<artifact>.csv, .png, .svg, .pdf and .json
(caption and comparisons). The gallery results/README.md is assembled from the JSON files.

Parameters of an artifact may be changed (`workbench.papers.parameters`). The folder results/ keeps
the papers' parameters, so changed artifacts are written into another folder.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record, Values
from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.io.extras import EXTRAS, install_command, is_importable, require_extra
from workbench.io.result import Progress, Result, Row, ignore_progress
from workbench.papers import PAPERS, load_paper
from workbench.papers.artifact import FORMATS, Artifact, Paper, read_declaration
from workbench.papers.gallery import summarise_agreement, write_gallery
from workbench.papers.parameters import format_parameter, read_parameters
from workbench.papers.steps import COMPARISON_COLUMNS, ERRATA, Reproduction
from workbench.pipeline.option import MAX_WORKERS, integer_reader
from workbench.solvers.search import Deadline
from workbench.sweeps.workers import count_cores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# The columns that are printed: all except the last two, the remarks, which are long.
SHOWN_COLUMNS = ("paper", "artifact", *COMPARISON_COLUMNS[:-2])


RESULTS_FOLDER = Path("results")  # The folder of the results with the papers' parameters.
_MIN_DPI = 20  # A PNG file with fewer dots per inch is refused, because its text is unreadable.
_MAX_DPI = 2400  # A PNG file with more dots per inch is refused, because it would fill the memory.


@dataclass(frozen=True, repr=False, eq=False)
class ReproductionResult(Result):
    """The printed numbers beside ours, and the recomputed figures and tables.

    If one figure or table was recomputed, `frame` is its table and `figure` its figure.

    Attributes:
        artifacts: The finished artifacts by (paper, artifact).
    """

    artifacts: Mapping[tuple[str, str], Artifact] = field(default_factory=dict)

    @property
    def artifact(self) -> Artifact:
        """Return the only recomputed artifact.

        Raises:
            InvalidRequest: There are several, or none.
        """
        if len(self.artifacts) != 1:
            names = ", ".join(" ".join(key) for key in self.artifacts) or "none"
            must("only", "one figure or table; the attribute artifacts has all", names)
        (artifact,) = self.artifacts.values()
        return artifact

    @property
    def frame(self) -> pd.DataFrame:
        """Return the table of the only recomputed artifact.

        Raises:
            InvalidRequest: There are several artifacts, or none.
        """
        return self.artifact.rounded_table()

    @property
    def figure(self) -> Figure:
        """Return the figure of the only recomputed artifact, drawn by Matplotlib.

        Raises:
            InvalidRequest: There are several artifacts or none, or the artifact is a table.
        """
        if self.artifact.draw is None:
            must("only", "the name of a figure", f"{self.artifact.name}, a table")
        return self.artifact.draw(self.frame)


def reproduce(
    papers: str | Iterable[str] | None = None,
    only: str | Sequence[str] | None = None,
    results: str | Path | None = None,
    *,
    full: bool = False,
    jobs: int | None = None,
    formats: Collection[str] = (),
    dpi: int | None = None,
    progress: Progress = ignore_progress,
    **parameters: Any,
) -> ReproductionResult:
    """Recompute figures and tables of the papers and write them (`workbench reproduce`).

    The gallery is written as well.

        >>> import workbench as wb
        >>> numbers = wb.reproduce("modulo-noise", "table1", "results")   # doctest: +SKIP
        >>> [row["what"] for row in numbers if row["surprising"]]         # doctest: +SKIP
        []

    Parameters of a figure can be changed. Its printed numbers are then neither compared nor drawn,
    and files are only written if `results` is given:

        >>> wider = wb.reproduce("modulo-noise", only="fig10", n=16)      # doctest: +SKIP
        >>> wider.frame["eta"].max(), type(wider.figure).__name__         # doctest: +SKIP
        (16, 'Figure')

    Args:
        papers: Names of papers. Default: all.
        only: Names of artifacts, each of one of the papers, or "errata" for the errata of the
            papers. Default: all.
        results: The folder of the results. Default: "results", or none if a parameter is changed.
        full: Whether to recompute the artifacts that take longer than minutes too.
        jobs: The number of processes. Default: the number of cores. It does not change the files.
        formats: Formats to write besides CSV, PNG, SVG and PDF: "tex" (tables for LaTeX with
            booktabs), "column" and "page" (PDF figures 3.3 and 7 inches wide).
        dpi: Dots per inch of PNG files, 20 to 2400. Default: 200.
        progress: Called with (number of finished artifacts, number of artifacts, a line of text)
            when an artifact starts, every half minute, and when it is done.
        **parameters: Values of parameters of the artifacts, such as n=16. All artifacts must have
            them. `list_artifacts` and `workbench reproduce --list` list them.

    Returns:
        One row for every printed number: paper, artifact, what, place, printed, ours, difference,
        tolerance, verdict, surprising (the verdict is not the expected one), remark. After Ctrl-C,
        the rows of the finished artifacts, whose files are written. The attributes `artifacts`,
        `frame` and `figure` have the recomputed tables and figures.

    Raises:
        InvalidRequest: A name or a parameter is unknown or wrong, or changed parameters would
            replace results with the papers' parameters (raised before anything is computed).
        NotInstalled: A named artifact needs an extra (raised before anything is computed).
        WorkbenchError: An artifact cannot be computed.
    """
    if jobs is not None:
        integer_reader(1, MAX_WORKERS)(jobs, "jobs")
    if dpi is not None:
        dpi = integer_reader(_MIN_DPI, _MAX_DPI)(dpi, "dpi")
    for name in formats:
        InvalidRequest.check_choice(FORMATS, "format", name)
    selected_papers = _select_papers(papers, full)
    artifact_names = [only] if isinstance(only, str) else only
    selected_artifacts = _select_artifacts(selected_papers, artifact_names, full)
    if parameters and not selected_artifacts:
        must("set", "left out for errata, which have no parameters", ", ".join(parameters))
    changes = _read_changes(selected_artifacts, parameters)
    artifacts, notes = _drop_uninstalled(selected_artifacts, are_named=bool(artifact_names))
    folder = None if results is None else Path(results)
    if folder is None and not changes:
        folder = RESULTS_FOLDER
    if folder is not None:
        _check_stored_parameters(folder, changes)

    clock = Deadline()
    for note in notes:
        progress(0, len(artifacts), note)
    wanted_steps = [*artifacts]
    if (artifact_names is None and not changes) or ERRATA in (artifact_names or ()):
        wanted_steps += [(paper, ERRATA) for paper in selected_papers if paper.errata]
        # The sort is stable: the errata of a paper follow its artifacts.
        wanted_steps.sort(key=lambda pair: selected_papers.index(pair[0]))

    run = Reproduction(wanted_steps, folder, full, progress, formats, dpi, changes)
    done_count = len(artifacts)
    try:
        run.run(jobs or count_cores())
    except KeyboardInterrupt:
        # The run is incomplete even if only a check of errata was interrupted.
        done_count = min(len(run.rows_by_artifact), max(0, len(artifacts) - 1))
    finally:
        # The finished artifacts are in the gallery even if a later one failed.
        if folder is not None and folder.is_dir():
            write_gallery(folder)

    sentences = [*notes]
    if run.rows:
        sentences.insert(0, f"{summarise_agreement(run.rows)}.")
    sentences += [f"{paper}: {summary}." for paper, summary in run.errata_summaries.items()]
    if changes:
        names = ", ".join(f"{paper} {name}" for paper, name in changes)
        sentences.insert(
            0, f"Other parameters than in the paper, so no printed number is compared: {names}."
        )
    return ReproductionResult(
        title="Printed numbers beside ours",
        rows=run.rows,
        name="printed_numbers",
        columns=SHOWN_COLUMNS,
        draw=lambda table: {"differences": partial(_draw_differences, table)},
        finished=done_count,
        total=len(artifacts),
        seconds=clock.elapsed_seconds,
        sentences=tuple(sentences),
        artifacts=run.artifacts,
    )


def list_artifacts(
    papers: str | Iterable[str] | None = None, only: str | Sequence[str] | None = None
) -> list[Row]:
    """Return the figures and tables of papers with their parameters.

    Args:
        papers: Names of papers. Default: all.
        only: Names of artifacts, each of one of the papers. Default: all.

    Returns:
        One row for each parameter: paper, artifact, title, parameter, type, default, meaning. An
        artifact without parameters has one row, in which the last four are empty.

    Raises:
        InvalidRequest: A name is unknown.
    """
    selected_papers = _select_papers(papers, full=True)
    artifact_names = [only] if isinstance(only, str) else only
    rows: list[Row] = []
    for paper, name in _select_artifacts(selected_papers, artifact_names, full=True):
        owner: Row = {"paper": paper.name, "artifact": name}
        empty: Row = dict.fromkeys(("parameter", "type", "default", "meaning"), "")
        parameters = paper.parameters.get(name, {}).values()
        for parameter in parameters:
            cells: Row = {
                "parameter": parameter.name,
                "type": parameter.type,
                "default": format_parameter(parameter.default),
                "meaning": parameter.meaning,
            }
            rows.append(owner | cells)
        if not parameters:
            rows.append(owner | empty)
    return rows


def _read_changes(
    artifacts: Sequence[tuple[Paper, str]], values: Values
) -> dict[tuple[str, str], Record]:
    """Return the parameters that differ from the defaults, by (paper, artifact) and name.

    Raises InvalidRequest if an artifact does not have a parameter, or a value is wrong.
    """
    changes = {}
    if values:
        for paper, name in artifacts:
            parameters = paper.parameters.get(name, {})
            changed_values = read_parameters(parameters, values, f"{paper.name} {name}")
            if changed_values:
                changes[paper.name, name] = changed_values
    return changes


def _check_stored_parameters(folder: Path, changes: Iterable[tuple[str, str]]) -> None:
    """Refuse to replace artifacts with the papers' parameters by changed ones.

    Raises InvalidRequest.
    """
    for paper, name in changes:
        if folder.resolve() == RESULTS_FOLDER.resolve():
            must("out", "another folder than results where parameters are changed", str(folder))
        file = folder / paper / f"{name}.json"
        if file.exists() and "parameters" not in json.loads(file.read_text("utf-8")):
            rule = f"a folder without the {name} of {paper} with the paper's parameters"
            must("out", rule, str(folder))


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
