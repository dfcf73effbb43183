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
from workbench.io.files import write_whole
from workbench.io.result import Progress, Row
from workbench.papers import load
from workbench.papers.artifact import Paper, json_bytes
from workbench.solvers.search import Deadline

ERRATA = "errata"
COMPARED = (
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


def steps_of(wanted: Sequence[tuple[Paper, str]]) -> tuple[dict[Step, float], list[Step]]:
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
    known: dict[tuple[str, str], Sequence[Row]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Those of the artifacts finished so far, in the order of the papers."""
        return [
            row for paper, name in self.wanted for row in self.known.get((paper.name, name), ())
        ]

    @property
    def total(self) -> int:
        """How many artifacts are wanted."""
        return sum(name != ERRATA for _, name in self.wanted)

    def run(self, jobs: int) -> None:
        """All steps, on `jobs` processes where that many can be used. Raises WorkbenchError."""
        weighed, alone = steps_of(self.wanted)
        apart, processes = list(weighed), min(jobs, len(weighed))
        if processes > 1:
            apart.sort(key=lambda step: -weighed[step])
            self._tell(f"On {processes} processes, longest first:")
        self._take(apart, processes)
        self._take(alone, 1)

    def _take(self, steps: Sequence[Step], processes: int) -> None:
        from workbench.sweeps.workers import on_processes

        tasks, waiting = (
            [(step, self.results, self.full, self.formats) for step in steps],
            list(steps),
        )

        def under_way() -> str:
            return f"{self._place} {'; '.join(map(str, waiting[:processes]))} ..."

        beat = heartbeat(lambda seconds: self._tell(f"{under_way()} {seconds:.0f} s so far"))
        with beat, closing(on_processes(tasks, processes, _work, ahead=1)) as stream:
            while waiting:
                self._tell(under_way())
                at, outcomes = next(stream)
                waiting.remove(steps[at])
                if outcomes is None:
                    raise WorkbenchError(
                        f"The processes that computed {steps[at]} died again and again."
                    )
                for outcome in outcomes:
                    self._finished(outcome)

    def _finished(self, outcome: Outcome) -> None:
        paper, name = outcome.paper, outcome.name
        for file, content in outcome.files.items():
            write_whole(self.results / paper / file, content)
        _kept(self.results, paper, name).unlink(missing_ok=True)
        if name == ERRATA:
            self._tell(f"{paper}: the errata are checked")
            return
        agree = sum(row["verdict"].startswith("agrees") for row in outcome.rows)
        count = f", {agree} of {len(outcome.rows)} printed numbers agree" if outcome.rows else ""
        self._tell(f"{self._place} {paper} {name} done in {outcome.seconds:.1f} s{count}")
        self.known[paper, name] = outcome.rows

    @property
    def _place(self) -> str:
        return f"[{min(len(self.known) + 1, self.total)}/{self.total}]"

    def _tell(self, line: str) -> None:
        self.progress(len(self.known), self.total, line)


def _kept(results: Path, paper: str, name: str) -> Path:
    """The file of the rows of an artifact that is not finished."""
    return results / paper / f"{name}.partial.jsonl"


def _work(task: tuple[Step, Path, bool, Collection[str]]) -> Iterable[Outcome]:
    """Compute the artifacts of a step, or the errata."""
    (step, results, full, formats), outcomes = task, []
    paper = load(step.paper)
    for name in step.names:
        clock, compute = Deadline(), paper.artifacts.get(name)
        if compute is None:
            assert paper.errata
            content = json_bytes(paper.errata())
            outcomes.append(Outcome(paper.name, name, clock.elapsed, {"errata.json": content}))
            continue
        artifact = (
            compute(full, _kept(results, paper.name, name)) if name in paper.kept else compute(full)
        )
        rows = [
            {
                "paper": paper.name,
                "artifact": name,
                **{column: getattr(c, column) for column in COMPARED},
            }
            for c in artifact.comparisons
        ]
        outcomes.append(Outcome(paper.name, name, clock.elapsed, artifact.files(formats), rows))
    return outcomes


@contextmanager
def heartbeat(tell: Callable[[float], None], every: float = 30.0) -> Iterator[None]:
    """Say every so many seconds that something is still running. tell: told the seconds so far."""
    done, clock = threading.Event(), Deadline()

    def beat() -> None:
        while not done.wait(every):
            tell(clock.elapsed)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
