"""The steps of a reproduction: what is computed at a time, in this process or in several of this machine.

A step is an artifact, artifacts that share their computation, or the errata of a paper. Several processes begin with
the steps that take longest (`Paper.seconds`). Files are written by this process, as each artifact is complete, so a
worker that is stopped leaves nothing there but the rows of an artifact that are kept (`Paper.kept`). Each worker has
one thread, and the bytes are those of a single process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workbench.errors import WorkbenchError
from workbench.io.files import write_atomically
from workbench.io.result import Progress, Row
from workbench.papers import load_paper
from workbench.papers.artifact import Paper, encode_json
from workbench.solvers.search import Deadline

ERRATA = "errata"
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


class Step(NamedTuple):
    """Artifacts of a paper that one process computes one after the other, or ERRATA."""

    paper: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.paper} {', '.join(self.names)}"


@dataclass(frozen=True)
class Outcome:
    """What came of an artifact: its seconds, its files and a row for every printed number."""

    paper: str
    name: str
    seconds: float
    files: Mapping[str, bytes]
    rows: Sequence[Row] = ()


def plan_steps(wanted: Sequence[tuple[Paper, str]]) -> tuple[dict[Step, float], list[Step]]:
    """About how long each step takes, in the order of what is wanted; and the steps that come after them, alone: they
    measure time, or have processes of their own."""
    weighed: dict[Step, float] = {}
    alone = []
    for paper, name in wanted:
        if paper.on_demand or name in paper.timed:
            alone.append(Step(paper.name, (name,)))
            continue
        group = next((names for names in paper.together if name in names), (name,))
        names = tuple(other for of, other in wanted if of is paper and other in group)
        weighed[Step(paper.name, names)] = sum(paper.seconds.get(other, 1.0) for other in names)
    return weighed, alone


@dataclass
class Reproduction:
    """Steps taken so far.

    wanted: artifacts of papers, and ERRATA, in order; known: the rows of the artifacts finished.
    """

    wanted: Sequence[tuple[Paper, str]]
    results: Path
    full: bool
    progress: Progress
    formats: Collection[str] = ()
    rows_by_artifact: dict[tuple[str, str], Sequence[Row]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Those of the artifacts finished so far, in the order of the papers."""
        return [
            row
            for paper, name in self.wanted
            for row in self.rows_by_artifact.get((paper.name, name), ())
        ]

    @property
    def total(self) -> int:
        """How many artifacts are wanted."""
        return sum(name != ERRATA for _, name in self.wanted)

    def run(self, jobs: int) -> None:
        """All steps, on `jobs` processes where that many can be used. Raises WorkbenchError."""
        weighed, alone = plan_steps(self.wanted)
        apart, processes = list(weighed), min(jobs, len(weighed))
        if processes > 1:
            apart.sort(key=lambda step: -weighed[step])
            self._report(f"On {processes} processes, longest first:")
        self._run_steps(apart, processes)
        self._run_steps(alone, 1)

    def _run_steps(self, steps: Sequence[Step], processes: int) -> None:
        from workbench.sweeps.workers import run_on_processes

        tasks, waiting = (
            [(step, self.results, self.full, self.formats) for step in steps],
            list(steps),
        )

        def under_way() -> str:
            return f"{self._position} {'; '.join(map(str, waiting[:processes]))} ..."

        beat = report_elapsed_time(
            lambda seconds: self._report(f"{under_way()} {seconds:.0f} s so far")
        )
        with (
            beat,
            closing(
                run_on_processes(tasks, processes, _compute_step, tasks_per_process=1)
            ) as stream,
        ):
            while waiting:
                self._report(under_way())
                at, outcomes = next(stream)
                waiting.remove(steps[at])
                if outcomes is None:
                    raise WorkbenchError(
                        f"The processes that computed {steps[at]} died again and again."
                    )
                for outcome in outcomes:
                    self._store_outcome(outcome)

    def _store_outcome(self, outcome: Outcome) -> None:
        paper, name = outcome.paper, outcome.name
        for file, content in outcome.files.items():
            write_atomically(self.results / paper / file, content)
        _partial_rows_file(self.results, paper, name).unlink(missing_ok=True)
        if name == ERRATA:
            self._report(f"{paper}: the errata are checked")
            return
        agree = sum(row["verdict"].startswith("agrees") for row in outcome.rows)
        count = f", {agree} of {len(outcome.rows)} printed numbers agree" if outcome.rows else ""
        self._report(f"{self._position} {paper} {name} done in {outcome.seconds:.1f} s{count}")
        self.rows_by_artifact[paper, name] = outcome.rows

    @property
    def _position(self) -> str:
        return f"[{min(len(self.rows_by_artifact) + 1, self.total)}/{self.total}]"

    def _report(self, line: str) -> None:
        self.progress(len(self.rows_by_artifact), self.total, line)


def _partial_rows_file(results: Path, paper: str, name: str) -> Path:
    """The file of the rows of an artifact that is not finished."""
    return results / paper / f"{name}.partial.jsonl"


def _compute_step(task: tuple[Step, Path, bool, Collection[str]]) -> Iterable[Outcome]:
    """Compute the artifacts of a step, or the errata."""
    (step, results, full, formats), outcomes = task, []
    paper = load_paper(step.paper)
    for name in step.names:
        clock, compute = Deadline(), paper.artifacts.get(name)
        if compute is None:
            assert paper.errata
            content = encode_json(paper.errata())
            outcomes.append(
                Outcome(paper.name, name, clock.elapsed_seconds, {"errata.json": content})
            )
            continue
        artifact = (
            compute(full, _partial_rows_file(results, paper.name, name))
            if name in paper.kept
            else compute(full)
        )
        rows = [
            {
                "paper": paper.name,
                "artifact": name,
                **{column: getattr(c, column) for column in COMPARISON_COLUMNS},
            }
            for c in artifact.comparisons
        ]
        outcomes.append(
            Outcome(paper.name, name, clock.elapsed_seconds, artifact.build_files(formats), rows)
        )
    return outcomes


@contextmanager
def report_elapsed_time(
    report: Callable[[float], None], interval_seconds: float = 30.0
) -> Iterator[None]:
    """Say every so many seconds that something is still running. tell: told the seconds so far."""
    done, clock = threading.Event(), Deadline()

    def beat() -> None:
        while not done.wait(interval_seconds):
            report(clock.elapsed_seconds)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
