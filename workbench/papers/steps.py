"""The steps of a reproduction: what is computed at a time, in this process or in several of this machine.

A step is an artifact, artifacts that share their computation, one part of these, or the errata of a paper. In
several processes steps begin in the order of how long they take (`Paper.seconds`), the longest first. Files are written
by this process, as each artifact is complete, so a worker that is stopped leaves nothing there. Each worker has one
thread, and the bytes are those of a single process.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from solvers.search import Deadline
from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.io.files import write_whole
from workbench.io.result import Progress, Row
from workbench.papers import load
from workbench.papers.artifact import Artifact, InParts, Paper, json_bytes

ERRATA = "errata"
COMPARED = ("what", "place", "printed", "ours", "difference", "tolerance", "verdict", "surprising", "remark", "apart")


@dataclass(frozen=True)
class Step:
    """names: artifacts of a paper that one process computes one after the other, or ERRATA; key: of a part of each,
    when they are artifacts in parts."""

    paper: str
    names: tuple[str, ...]
    key: Any = None


@dataclass(frozen=True)
class Outcome:
    """What came of an artifact: its seconds, its files and a row for every printed number; of a part what it found."""

    name: str
    seconds: float
    files: Mapping[str, bytes] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    data: Any = None

    @classmethod
    def of(cls, paper: str, artifact: Artifact, seconds: float, formats: Collection[str]) -> Outcome:
        """Of a whole artifact."""
        rows = [
            {"paper": paper, "artifact": artifact.name, **{name: getattr(c, name) for name in COMPARED}}
            for c in artifact.comparisons
        ]
        return cls(artifact.name, seconds, artifact.files(formats), rows)


def in_order(papers: Sequence[Paper], names: Iterable[tuple[Paper, str]], *, errata: bool) -> list[Step]:
    """The steps of one process: every artifact, then the errata, paper by paper."""
    chosen = list(names)
    steps = []
    for paper in papers:
        steps += [step for other, name in chosen if other is paper for step in _parts(paper, [name])]
        if errata and paper.errata:
            steps.append(Step(paper.name, (ERRATA,)))
    return steps


def _parts(paper: Paper, names: Sequence[str]) -> dict[Step, float]:
    """Artifacts that are computed together, by the key of their parts, and about how long each step takes; the longest
    part, which is the last, first."""
    parts: dict[Any, dict[str, float]] = {}
    for name in names:
        compute = paper.artifacts.get(name)
        keys = compute.keys[::-1] if isinstance(compute, InParts) else [None]
        for key in keys:
            parts.setdefault(key, {})[name] = paper.seconds.get(name, 1.0) / len(keys)
    return {Step(paper.name, tuple(sharing), key): sum(sharing.values()) for key, sharing in parts.items()}


def separate(papers: Sequence[Paper], steps: Iterable[Step]) -> tuple[list[Step], list[Step]]:
    """The steps of several processes, longest first, and those that come after them, alone: they measure
    time, or have processes of their own."""
    weighed: dict[Step, float] = {}
    alone: list[Step] = []
    by_name = {paper.name: paper for paper in papers}
    wanted = dict.fromkeys((step.paper, name) for step in steps for name in step.names)
    for paper, name in [(by_name[paper], name) for paper, name in wanted]:
        if paper.on_demand or name in paper.timed:
            alone += _parts(paper, [name])
            continue
        group = next((names for names in paper.together if name in names), (name,))
        weighed |= _parts(paper, [other for of, other in wanted if of == paper.name and other in group])
    return sorted(weighed, key=lambda step: -weighed[step]), alone


@dataclass
class Reproduction:
    """Steps taken so far.

    names: (paper, artifact) of all artifacts wanted, in order; done: how many of them are finished; parts: what the
    ended parts of the others found, by key.
    """

    papers: Sequence[Paper]
    names: Sequence[tuple[str, str]]
    results: Path
    full: bool
    progress: Progress
    formats: Collection[str] = ()
    done: int = 0
    known: dict[tuple[str, str], Sequence[Row]] = field(default_factory=dict)
    parts: dict[tuple[str, str], dict[Any, Outcome]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Those of the artifacts finished so far, in the order of the papers."""
        return [row for key in self.names for row in self.known.get(key, ())]

    def run(self, steps: Sequence[Step], jobs: int) -> None:
        """All steps, on `jobs` processes where that many can be used. Raises WorkbenchError."""
        from workbench.sweeps.workers import on_processes

        self._resume()
        apart, alone = (list(filter(self._left, part)) for part in separate(self.papers, steps))
        processes = min(jobs, len(apart))
        if processes > 1:
            waiting = list(apart)

            def under_way() -> str:
                return "; ".join(dict.fromkeys(map(_label, waiting[:jobs])))

            tasks = [(step, self.full, self.formats) for step in apart]
            self._tell(f"On {processes} processes, longest first: {under_way()} ...")
            beat = heartbeat(lambda line: self._tell(f"[{self.done}/{len(self.names)}] {under_way()}{line}"), "")
            with beat, closing(on_processes(tasks, processes, _work, ahead=1)) as stream:
                for at, outcomes in stream:
                    waiting.remove(apart[at])
                    if outcomes is None:
                        raise WorkbenchError(f"The processes that computed {_label(apart[at])} died again and again.")
                    self._receive(apart[at], outcomes)
        for step in alone if processes > 1 else filter(self._left, steps):
            label = _label(step) if step.names == (ERRATA,) else f"{self._place} {_label(step)}"
            if (step.paper, step.names[0]) not in self.parts:
                self._tell(f"{label} ...")
            with heartbeat(self._tell, label):
                outcomes = _taken(self._paper(step.paper), step, self.full, self.formats)
            self._receive(step, outcomes)

    def _resume(self) -> None:
        """Take up the parts that an interrupted run of this version kept; a line that was cut short is left out."""
        for paper, name in self.names:
            compute = self._paper(paper).artifacts[name]
            if not isinstance(compute, InParts) or not compute.kept or not self._kept(paper, name).exists():
                continue
            keys, ended = {json.dumps(key): key for key in compute.keys}, self.parts.setdefault((paper, name), {})
            for line in self._kept(paper, name).read_text("utf-8").splitlines():
                with suppress(ValueError):
                    version, key, data = json.loads(line)
                    if version == __version__ and json.dumps(key) in keys:
                        ended[keys[json.dumps(key)]] = Outcome(name, 0.0, data=data)
            self._join(paper, name, compute)

    def _left(self, step: Step) -> bool:
        """Whether a step is still to be taken."""
        return any(step.key not in self.parts.get((step.paper, name), ()) for name in step.names)

    def _receive(self, step: Step, outcomes: Iterable[Outcome]) -> None:
        """Write the files of what is complete; the parts of an artifact are put together once all have ended."""
        for outcome in outcomes:
            compute = self._paper(step.paper).artifacts.get(outcome.name)
            if isinstance(compute, InParts):
                self.parts.setdefault((step.paper, outcome.name), {})[step.key] = outcome
                if compute.kept:
                    kept = self._kept(step.paper, outcome.name)
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    with kept.open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps([__version__, step.key, outcome.data])}\n")
                self._join(step.paper, outcome.name, compute)
            else:
                self._finished(step.paper, outcome)

    def _join(self, paper: str, name: str, compute: InParts) -> None:
        """Put an artifact together once all of its parts have ended."""
        ended = self.parts[paper, name]
        if len(ended) == len(compute.keys):
            clock = Deadline()
            artifact = compute.join([ended[key].data for key in compute.keys], self.full)
            seconds = sum(outcome.seconds for outcome in ended.values()) + clock.elapsed
            self._finished(paper, Outcome.of(paper, artifact, seconds, self.formats))

    def _finished(self, paper: str, outcome: Outcome) -> None:
        for file, content in outcome.files.items():
            write_whole(self.results / paper / file, content)
        self._kept(paper, outcome.name).unlink(missing_ok=True)
        if outcome.name == ERRATA:
            self._tell(f"{paper}: the errata are checked")
            return
        agree = sum(row["verdict"].startswith("agrees") for row in outcome.rows)
        count = f", {agree} of {len(outcome.rows)} printed numbers agree" if outcome.rows else ""
        self._tell(f"{self._place} {paper} {outcome.name} done in {outcome.seconds:.1f} s{count}")
        self.known[paper, outcome.name] = outcome.rows
        self.done += 1

    def _kept(self, paper: str, name: str) -> Path:
        """The file of the ended parts of an artifact."""
        return self.results / paper / f"{name}.partial.jsonl"

    def _paper(self, name: str) -> Paper:
        return next(paper for paper in self.papers if paper.name == name)

    @property
    def _place(self) -> str:
        return f"[{self.done + 1}/{len(self.names)}]"

    def _tell(self, line: str) -> None:
        self.progress(self.done, len(self.names), line)


def _label(step: Step) -> str:
    return f"{step.paper} {', '.join(step.names)}"


def _work(task: tuple[Step, bool, Collection[str]]) -> list[Outcome]:
    """What a worker does with a step."""
    return _taken(load(task[0].paper), *task)


def _taken(paper: Paper, step: Step, full: bool, formats: Collection[str]) -> list[Outcome]:
    """Compute the artifacts of a step, or their parts of its key, or the errata."""
    outcomes = []
    for name in step.names:
        clock, compute = Deadline(), paper.artifacts.get(name)
        if isinstance(compute, InParts):
            data = compute.part(step.key, full)
            outcomes.append(Outcome(name, clock.elapsed, data=data))
        elif compute:
            outcomes.append(Outcome.of(paper.name, compute(full), clock.elapsed, formats))
        else:
            assert paper.errata
            content = json_bytes(paper.errata())
            outcomes.append(Outcome(name, clock.elapsed, {"errata.json": content}))
    return outcomes


def write_artifact(artifact: Artifact, folder: Path) -> None:
    """Write an artifact's table, figure and record into a folder."""
    for name, content in artifact.files().items():
        write_whole(folder / name, content)


@contextmanager
def heartbeat(tell: Callable[[str], None], name: str, every: float = 30.0) -> Iterator[None]:
    """Say every so many seconds that something is still running."""
    done, clock = threading.Event(), Deadline()

    def beat() -> None:
        while not done.wait(every):
            tell(f"{name} ... {clock.elapsed:.0f} s so far")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
