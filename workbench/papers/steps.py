"""Plan the steps of a reproduction, run them on processes, and write their files.

An artifact is a figure or table of a paper. A step is an artifact, a group of artifacts that share
their computation, or the check of the errata of a paper. If there are several processes, the
longest steps start first (`Paper.expected_seconds`). Only the calling process writes files, as soon
as an artifact is complete. A worker that is stopped therefore leaves nothing except the stored rows
of a resumable artifact. Each worker has one thread, and the bytes are the same as with a single
process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.objects import Values
from workbench.io.files import write_atomically
from workbench.io.result import Progress, Row
from workbench.papers import PAPERS, load_paper
from workbench.papers.artifact import Artifact, ArtifactFunction, Paper, encode_json
from workbench.solvers.search import Deadline

ERRATA = "errata"  # The name of the step that checks the errata of a paper.

# The columns of a row for a printed number, which are attributes of `Comparison`.
COMPARISON_COLUMNS = (
    "what",
    "place",
    "printed",
    "ours",
    "difference",
    "tolerance",
    "verdict",
    "surprising",
    "remark",
    "apart",
)

_DEFAULT_SECONDS = 1.0  # The expected runtime of an artifact without a declared one.
_REPORT_SECONDS = 30.0  # The elapsed time of a running step is reported at this interval.


class Step(NamedTuple):
    """Artifacts of a paper that one process computes one after the other, or the check of errata.

    Attributes:
        paper: The name of the paper.
        names: The names of the artifacts, or (ERRATA,).
    """

    paper: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.paper} {', '.join(self.names)}"


@dataclass(frozen=True)
class Outcome:
    """The files and rows of a computed artifact, or of the check of the errata.

    Attributes:
        paper: The name of the paper.
        name: The name of the artifact, or ERRATA.
        seconds: The runtime in seconds.
        files: File name -> content.
        rows: One row for every printed number that is compared. Errata have none.
        summary: How many errata are shown. Empty for artifacts.
        artifact: The artifact. None for errata.
    """

    paper: str
    name: str
    seconds: float
    files: Mapping[str, bytes]
    rows: Sequence[Row] = ()
    artifact: Artifact | None = None
    summary: str = ""


def plan_steps(wanted: Sequence[tuple[Paper, str]]) -> tuple[dict[Step, float], list[Step]]:
    """Divide artifacts into steps.

    Args:
        wanted: (paper, name of an artifact or ERRATA) in order.

    Returns:
        The expected seconds of each step that may run beside others, in the order of `wanted`. And
        the steps that run alone afterwards, because they measure time, start processes, or read
        the files of other artifacts.
    """
    expected_seconds: dict[Step, float] = {}
    lone_steps = []
    reading_steps = []
    for paper, name in wanted:
        if name in paper.reads_results:
            reading_steps.append(Step(paper.name, (name,)))
            continue
        if paper.on_demand or name in paper.timed_alone:
            lone_steps.append(Step(paper.name, (name,)))
            continue
        group = next((names for names in paper.computed_together if name in names), (name,))
        names = tuple(
            other_name
            for other_paper, other_name in wanted
            if other_paper is paper and other_name in group
        )
        seconds = sum(
            paper.expected_seconds.get(other_name, _DEFAULT_SECONDS) for other_name in names
        )
        expected_seconds[Step(paper.name, names)] = seconds
    return expected_seconds, lone_steps + reading_steps


@dataclass
class Reproduction:
    """Run the wanted steps, write their files, and collect the rows of their printed numbers.

    Attributes:
        wanted: (paper, name of an artifact or ERRATA) in order.
        results: The folder of the results. None: no file is written.
        full: Whether everything is recomputed (--full).
        progress: Called with (number of finished artifacts, number of artifacts, a line of text).
        formats: Names of `FORMATS` to write besides the default.
        dpi: Dots per inch of PNG files. None: those of the style sheet.
        changes: The parameters that differ from the defaults, by (paper, artifact) and name.
        rows_by_artifact: The rows of the finished artifacts by (paper, artifact).
        errata_summaries: How many errata are shown, by paper.
        artifacts: The finished artifacts by (paper, artifact).
    """

    wanted: Sequence[tuple[Paper, str]]
    results: Path | None
    full: bool
    progress: Progress
    formats: Collection[str] = ()
    dpi: int | None = None
    changes: Mapping[tuple[str, str], Values] = field(default_factory=dict)
    rows_by_artifact: dict[tuple[str, str], Sequence[Row]] = field(default_factory=dict)
    errata_summaries: dict[str, str] = field(default_factory=dict)
    artifacts: dict[tuple[str, str], Artifact] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Return the rows of the finished artifacts in the order of the papers."""
        rows: list[Row] = []
        for paper, name in self.wanted:
            rows += self.rows_by_artifact.get((paper.name, name), ())
        return rows

    @property
    def total(self) -> int:
        """Return the number of wanted artifacts."""
        return sum(name != ERRATA for _, name in self.wanted)

    def run(self, jobs: int) -> None:
        """Run all steps.

        Args:
            jobs: The maximal number of processes.

        Raises:
            WorkbenchError: An artifact cannot be computed, or its processes died repeatedly.
        """
        expected_seconds, lone_steps = plan_steps(self.wanted)
        steps = list(expected_seconds)
        process_count = min(jobs, len(steps))
        if process_count > 1:
            steps.sort(key=lambda step: -expected_seconds[step])
            self._report(f"On {process_count} processes, longest first:")
        self._run_steps(steps, process_count)
        self._run_steps(lone_steps, 1)

    def _run_steps(self, steps: Sequence[Step], process_count: int) -> None:
        """Run steps on processes and store their outcomes. Raises WorkbenchError."""
        from workbench.sweeps.workers import run_on_processes

        tasks = []
        for step in steps:
            changes = {name: self.changes.get((step.paper, name), {}) for name in step.names}
            tasks.append(_Task(step, self.results, self.full, self.formats, self.dpi, changes))
        waiting = list(steps)

        def describe_running() -> str:
            """Return a line that names the steps that may be running."""
            running = "; ".join(map(str, waiting[:process_count]))
            return f"{self._position} {running} ..."

        def report_seconds(seconds: float) -> None:
            """Report the steps that are running and how long they take so far."""
            self._report(f"{describe_running()} {seconds:.0f} s so far")

        results = run_on_processes(tasks, process_count, _compute_step, tasks_per_process=1)
        with report_elapsed_time(report_seconds), closing(results) as stream:
            while waiting:
                self._report(describe_running())
                index, outcomes = next(stream)
                waiting.remove(steps[index])
                if outcomes is None:
                    raise WorkbenchError(
                        f"The processes that computed {steps[index]} died repeatedly."
                    )
                for outcome in outcomes:
                    self._store_outcome(outcome)

    def _store_outcome(self, outcome: Outcome) -> None:
        """Write the files of an artifact and report that it is done."""
        paper = outcome.paper
        name = outcome.name
        if self.results is not None:
            for file, content in outcome.files.items():
                write_atomically(self.results / paper / file, content)
            _partial_rows_file(self.results, paper, name).unlink(missing_ok=True)
        if name == ERRATA:
            self._report(f"{paper}: {outcome.summary}")
            self.errata_summaries[paper] = outcome.summary
            return
        line = f"{self._position} {paper} {name} done in {outcome.seconds:.1f} s"
        if outcome.rows:
            agreeing = sum(row["verdict"].startswith("agrees") for row in outcome.rows)
            line += f", {agreeing} of {len(outcome.rows)} printed numbers agree"
        self._report(line)
        self.rows_by_artifact[paper, name] = outcome.rows
        if outcome.artifact is not None:
            self.artifacts[paper, name] = outcome.artifact

    @property
    def _position(self) -> str:
        """Return the number of the current artifact and the number of all, such as "[2/5]".

        Errata are not counted. Without artifacts it is "[errata]".
        """
        if not self.total:
            return "[errata]"
        current = min(len(self.rows_by_artifact) + 1, self.total)
        return f"[{current}/{self.total}]"

    def _report(self, line: str) -> None:
        """Report a line with the numbers of finished and of all artifacts."""
        self.progress(len(self.rows_by_artifact), self.total, line)


def _partial_rows_file(results: Path, paper: str, name: str) -> Path:
    """Return the file with the rows of an unfinished artifact."""
    return results / paper / f"{name}.partial.jsonl"


class _Task(NamedTuple):
    """A step and how it is computed, which is sent to a worker.

    Attributes:
        step: The step.
        results: The folder of the results. None: no file is made.
        full: Whether everything is recomputed.
        formats: Further formats of the artifacts.
        dpi: Dots per inch of PNG files.
        changes: Artifact -> the parameters that differ from the defaults, by name.
    """

    step: Step
    results: Path | None
    full: bool
    formats: Collection[str]
    dpi: int | None
    changes: Mapping[str, Values]


def _compute_step(task: _Task) -> list[Outcome]:
    """Compute the artifacts of a step, or check the errata. This function runs in a worker."""
    paper = load_paper(task.step.paper)
    outcomes = []
    for name in task.step.names:
        clock = Deadline()
        make = paper.artifacts.get(name)
        if make is None:
            assert paper.errata
            errata = paper.errata()
            shown_count = sum(erratum["holds"] for erratum in errata)
            summary = f"{shown_count} of {len(errata)} errata are shown by their checks"
            files = {"errata.json": encode_json(errata)}
            seconds = clock.elapsed_seconds
            outcomes.append(Outcome(paper.name, name, seconds, files, summary=summary))
            continue
        changes = task.changes[name]
        if name in paper.resumable and task.results is not None:
            partial_file = _partial_rows_file(task.results, paper.name, name)
            artifact = make(task.full, partial_file, **changes)
        elif name in paper.reads_results:
            all_papers = [load_paper(other_name) for other_name in PAPERS]
            artifact = make(task.full, task.results, all_papers)
        else:
            artifact = _make_with_parameters(paper.name, name, make, task.full, changes)
        rows = _list_comparison_rows(paper.name, artifact)
        files = {}
        if task.results is not None:
            files = artifact.build_files(task.formats, task.dpi)
        outcomes.append(
            Outcome(
                paper.name, name, clock.elapsed_seconds, files=files, rows=rows, artifact=artifact
            )
        )
    return outcomes


def _make_with_parameters(
    paper: str, name: str, make: ArtifactFunction, full: bool, changes: Values
) -> Artifact:
    """Make an artifact. Raises InvalidRequest if changed parameters give too large numbers."""
    try:
        return make(full, **changes)
    except OverflowError as error:
        if not changes:
            raise
        text = ", ".join(f"{key} = {value}" for key, value in changes.items())
        raise InvalidRequest(
            f"The parameters of {paper} {name} must be small enough for floating-point numbers. "
            f"Got {text}."
        ) from error


def _list_comparison_rows(paper: str, artifact: Artifact) -> list[Row]:
    """Return one row for every printed number of an artifact."""
    rows = []
    for comparison in artifact.comparisons:
        row: Row = {"paper": paper, "artifact": artifact.name}
        rows.append(row | {column: getattr(comparison, column) for column in COMPARISON_COLUMNS})
    return rows


@contextmanager
def report_elapsed_time(
    report: Callable[[float], None], interval_seconds: float = _REPORT_SECONDS
) -> Iterator[None]:
    """Report at intervals that something is still running.

    Args:
        report: Called with the elapsed seconds.
        interval_seconds: The time between two reports.
    """
    is_done = threading.Event()
    clock = Deadline()

    def report_until_done() -> None:
        """Report the elapsed time at every interval until the block ends."""
        while not is_done.wait(interval_seconds):
            report(clock.elapsed_seconds)

    thread = threading.Thread(target=report_until_done, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
